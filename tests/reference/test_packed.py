"""Linear layers with packed weights compute what nn.Linear computes; where torch cannot pack, plain ones do."""

import pytest
import torch
import torch.nn.functional as F
from drawn import generator, ids, tiny_config
from hypothesis import given
from hypothesis import strategies as st

from transformer_ref.decoding.beam_search import beam_search
from transformer_ref.decoding.greedy import greedy_decode
from transformer_ref.fast import packed
from transformer_ref.fast.inference import for_inference
from transformer_ref.fast.packed import PackedLinear, faster_linear
from transformer_ref.faster import top_k
from transformer_ref.machine import VARIABLE, forget_choices
from transformer_ref.model.transformer import Transformer


@pytest.fixture(autouse=True)
def anew():
    forget_choices()
    yield
    forget_choices()


sizes = st.integers(1, 70)


@given(st.lists(sizes, min_size=1, max_size=3), sizes, sizes, st.booleans(), st.booleans(), st.integers(0, 9))
def test_a_packed_layer_computes_what_a_plain_one_does(leading, inputs, outputs, bias, relu, seed):
    g = generator(seed)
    weight, x = torch.randn(outputs, inputs, generator=g), torch.randn(*leading, inputs, generator=g)
    b = torch.randn(outputs, generator=g) if bias else None
    expected = F.linear(x, weight, b)
    with torch.inference_mode():
        found = PackedLinear(weight, b, relu)(x)
    torch.testing.assert_close(found, expected.relu() if relu else expected, rtol=1e-4, atol=1e-5)


def test_a_transposed_input_and_a_transposed_weight_are_multiplied_as_they_are():
    weight, x = torch.randn(6, 4, generator=generator(1)).T, torch.randn(6, 5, generator=generator(2)).T
    with torch.inference_mode():
        torch.testing.assert_close(PackedLinear(weight)(x), F.linear(x, weight))


@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_both_kinds_of_layers_write_the_same(activation, monkeypatch):
    model = Transformer(tiny_config(activation=activation, decoder_layers=2), generator(3)).eval()
    source, written = ids(3, 5, 9), []
    for kind in ("plain", "packed"):
        monkeypatch.setenv(VARIABLE, f"linear={kind}")
        prepared = for_inference(model)
        assert isinstance(prepared.logits, PackedLinear) == (kind == "packed")
        beams = [[each.ids for each in best] for best in beam_search(prepared, source, 3, 12, 1.0, top_k)]
        written.append((greedy_decode(prepared, source, 12).tolist(), beams))
    assert written[0] == written[1]


@pytest.mark.parametrize(("ratio", "chosen"), [(1.4, "packed"), (1.0, "plain"), (0.6, "plain")])
def test_weights_are_packed_only_where_that_is_clearly_faster(ratio, chosen, monkeypatch):
    monkeypatch.setattr(packed, "speedup", lambda usual, other: ratio)
    assert faster_linear().value == chosen and f"{ratio:.2g} times as fast" in faster_linear().why


def test_a_torch_that_cannot_pack_takes_plain_layers(monkeypatch):
    def refuse(*_):
        raise AttributeError("'_OpNamespace' 'mkldnn' object has no attribute '_reorder_linear_weight'")

    monkeypatch.setattr(packed.PackedLinear, "__init__", refuse)
    assert faster_linear().value == "plain" and "packs no weights" in str(faster_linear())


def test_a_model_in_bf16_keeps_plain_layers(monkeypatch):
    monkeypatch.setenv(VARIABLE, "linear=packed")
    model = Transformer(tiny_config(), generator(1)).eval().to(torch.bfloat16)
    assert not isinstance(for_inference(model).logits, PackedLinear)
