"""The model prepared for decoding writes what the readable one writes."""

import pytest
import torch
from drawn import generator, seeds, tiny_config, tiny_model
from drawn import ids as draw_ids
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from transformer_ref.config import ModelConfig
from transformer_ref.decoding.beam_search import beam_search
from transformer_ref.decoding.greedy import greedy_decode
from transformer_ref.fast.attention import SHORTEST
from transformer_ref.fast.inference import InferenceTransformer, for_inference
from transformer_ref.faster import accelerate, top_k
from transformer_ref.model.multi_head_attention import MultiHeadAttention
from transformer_ref.model.transformer import Transformer

variants = st.fixed_dictionaries(
    {
        "norm_first": st.booleans(),
        "last_norm": st.booleans(),
        "output_bias": st.booleans(),
        "activation": st.sampled_from(["relu", "gelu", "silu"]),
        "layout": st.sampled_from(["interleaved", "concatenated"]),
        "encoder_layers": st.integers(1, 2),
        "decoder_layers": st.integers(1, 3),
    }
)


def drawn(seed, variant, length):
    """Return a model and sources that end at different places; one may be padding only."""
    model = tiny_model(seed, target_vocabulary=7, max_length=2 * SHORTEST + 8, **variant)
    source = draw_ids(seed, 5, length)
    source[1, length // 2 :] = source[3, 1:] = 0
    if seed % 3 == 0:
        source[2] = 0
    return model, source


@given(seeds, variants, st.integers(1, 2 * SHORTEST))
def test_greedy_decoding_writes_the_same_tokens(seed, variant, length):
    model, source = drawn(seed, variant, length)
    prepared = for_inference(model)
    assert isinstance(prepared, InferenceTransformer)
    assert torch.equal(greedy_decode(prepared, source, 30), greedy_decode(model, source, 30))


@given(seeds, variants, st.integers(1, 2 * SHORTEST), st.integers(1, 4))
def test_beam_search_finds_the_same_hypotheses_with_the_same_scores(seed, variant, length, beam):
    model, source = drawn(seed, variant, length)
    ours, readable = (beam_search(each, source, beam, 20, 1.0, top_k) for each in (for_inference(model), model))
    for one, other in zip(ours, readable, strict=True):
        assert [each.ids for each in one] == [each.ids for each in other]
        assert [each.score for each in one] == pytest.approx([each.score for each in other])


@given(seeds, variants)
def test_logits_of_each_step_are_those_of_the_whole_target(seed, variant):
    model, source = drawn(seed, variant, 6)
    target = draw_ids(seed + 1, 5, 2 * SHORTEST + 4, high=7)
    prepared = for_inference(model)
    with torch.inference_mode():
        encoded, cache = prepared.encode(source), prepared.new_cache()
        steps = [prepared.logits(prepared.decode(each, encoded, cache).hidden) for each in target.split(1, dim=1)]
        torch.testing.assert_close(torch.cat(steps, dim=1), model(source, target))


def test_bf16_is_as_close_to_fp32_as_the_readable_model_in_bf16():
    config = tiny_config(d_model=32, heads=2, d_ff=64, decoder_layers=2, dropout=0.0)
    model, source = Transformer(config, generator(1)).eval(), draw_ids(1, 6, 9)
    target = draw_ids(2, 6, 1)
    with torch.inference_mode():
        exact = model(source, target)
        coarse = model.to(torch.bfloat16)
        prepared = for_inference(coarse)
        ours = prepared.logits(prepared.decode(target, prepared.encode(source), prepared.new_cache()).hidden)
        assert ours.dtype == torch.bfloat16
        assert (ours - exact).norm() <= 1.5 * (coarse(source, target) - exact).norm() + 1e-3


def test_the_weights_of_the_moment_are_used():
    model, source = tiny_model(2), draw_ids(2, 3, 5)
    before = greedy_decode(for_inference(model), source, 9)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.neg_()
    after = greedy_decode(for_inference(model), source, 9)
    assert torch.equal(after, greedy_decode(model, source, 9)) and not torch.equal(after, before)


class OwnAttention(MultiHeadAttention):
    """Has the package's interface and may compute anything."""


def swap_attention(model):
    model.decoder.layers[0].self_attention = OwnAttention(12, 3).double().eval()


def hook(model):
    model.encoder.layers[0].feed_forward.register_forward_hook(lambda module, inputs, output: output * 2)


def own_forward(model):
    model.encoder.layers[0].forward = lambda x, mask=None, need_weights=False: (x, None)


def own_kernel(model):
    model.encoder.layers[0].self_attention.kernel = lambda query, key, value, attn_mask=None: value


def train(model):
    model.train()


@pytest.mark.parametrize("change", [swap_attention, hook, own_forward, own_kernel, train])
def test_a_model_that_may_compute_something_else_comes_back_as_it_is(change):
    model = tiny_model()
    assert isinstance(for_inference(accelerate(model)), InferenceTransformer)
    change(model)
    assert for_inference(model) is model


def test_something_else_than_the_package_s_model_comes_back_as_it_is():
    other = nn.Linear(2, 3)
    assert for_inference(other) is other


def test_a_first_step_reads_one_hypothesis_a_sentence_and_the_others_all():
    model, shapes = tiny_model(), []
    decode = model.decode
    model.decode = lambda ids, *rest, **named: (shapes.append(tuple(ids.shape)), decode(ids, *rest, **named))[1]
    beam_search(model, draw_ids(1, 3, 4), 4, 5, 1.0)
    assert shapes[0] == (3, 1) and {columns for _, columns in shapes[1:]} == {4}


def test_padding_after_a_source_that_goes_on_is_refused():
    prepared = for_inference(tiny_model())
    with pytest.raises(ValueError, match="source_ids: expected padding"):
        prepared.encode(torch.tensor([[4, 0, 5]]))


def test_a_target_longer_than_the_model_can_read_is_refused():
    model = Transformer(ModelConfig(7, 7, d_model=4, heads=1, d_ff=4, max_length=3), generator(1)).eval()
    with torch.no_grad():
        model.output.weight.zero_()  # never eos, whose id comes after pad and bos
    with pytest.raises(ValueError, match="length: expected at most 3 positions, got 4"):
        greedy_decode(for_inference(model), torch.tensor([[4]]), 9)
