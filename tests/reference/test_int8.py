"""Products of 8-bit integers are close to those in fp32, on every engine, and int8 is refused where it is missing."""

import pytest
import torch
from drawn import generator, seeds, tiny_config
from drawn import ids as draw_ids
from hypothesis import given
from hypothesis import strategies as st

from transformer_ref import translate
from transformer_ref.decoding.beam_search import beam_search
from transformer_ref.decoding.greedy import greedy_decode
from transformer_ref.fast import int8
from transformer_ref.fast.inference import InferenceTransformer, for_inference
from transformer_ref.fast.int8 import Int8Linear, available_engines, saturates
from transformer_ref.machine import choices_made, forget_choices
from transformer_ref.model.transformer import Transformer
from transformer_ref.text.tokenizer import WordTokenizer
from transformer_ref.translate import Translator

pytestmark = pytest.mark.skipif(not available_engines(), reason="this torch has no engine for int8")
TOKENIZER = WordTokenizer.build(["uno due tre quattro."])


def model(**changes):
    vocabulary = {"source_vocabulary": TOKENIZER.size, "target_vocabulary": TOKENIZER.size}
    return Transformer(tiny_config(dropout=0.0, **{**vocabulary, **changes}), generator(1)).eval()


def linear(seed, rows, inputs, outputs):
    drawing = generator(seed)
    x, bias = torch.randn(rows, inputs, generator=drawing), torch.randn(outputs, generator=drawing)
    weight = torch.randn(outputs, inputs, generator=drawing) * 2.0 ** torch.arange(outputs)[:, None].remainder(9)
    return x, weight, bias


@pytest.mark.parametrize("engine", available_engines())
@given(seeds, st.integers(1, 40), st.integers(1, 70), st.integers(1, 50), st.booleans(), st.booleans())
def test_each_output_is_off_by_no_more_than_the_rounding_of_inputs_and_weights(
    engine, seed, rows, inputs, outputs, biased, relu
):
    x, weight, bias = linear(seed, rows, inputs, outputs)
    bias = bias if biased else None
    expected = torch.nn.functional.linear(x, weight, bias)
    expected = expected.relu() if relu else expected
    found = Int8Linear(weight, bias, relu, engine)(x)
    levels = 127 if saturates(engine) else 255
    of_input = (x.max().clamp_min(0) - x.min().clamp_max(0)) / levels  # half of it for rounding, half for the zero
    of_weight = weight.abs().amax(dim=1) / 127 / 2  # (outputs,)
    bound = of_input * (weight.abs().sum(dim=1) + inputs * of_weight) + of_weight * x.abs().sum(dim=1, keepdim=True)
    assert found.shape == expected.shape and found.dtype == torch.float32
    assert ((found - expected).abs() <= 1.01 * bound + 1e-4).all()


@pytest.mark.parametrize("engine", available_engines())
def test_the_largest_inputs_and_weights_do_not_overflow(engine):
    x = torch.ones(9, 512)
    found = Int8Linear(torch.ones(64, 512), engine=engine)(x)
    assert (found - 512).abs().max() < 1


@pytest.mark.parametrize("engine", available_engines())
def test_a_channel_without_weights_gives_its_bias_and_other_channels_keep_their_scale(engine):
    weight = torch.cat([torch.zeros(1, 8), torch.full((1, 8), 1e-3), torch.full((1, 8), 1e3)])
    found = Int8Linear(weight, torch.tensor([5.0, 0.0, 0.0]), engine=engine)(torch.ones(2, 8))
    torch.testing.assert_close(found, torch.tensor([[5.0, 8e-3, 8e3]] * 2), rtol=0.01, atol=1e-5)


def test_the_engine_is_chosen_by_a_measurement_and_stated_once(monkeypatch):
    speeds = {"fbgemm": 2.0, "onednn": 5.0, "qnnpack": 1.0}
    monkeypatch.setattr(int8, "_speedup_of", lambda engine, usual: speeds[engine] / speeds[usual])
    monkeypatch.setattr(int8, "available_engines", lambda: list(speeds))
    forget_choices()
    assert int8.int8_engine().value == "onednn"
    assert [str(choice) for choice in choices_made()] == ["products in int8: onednn (2.5 times as fast as fbgemm)"]
    forget_choices()


def test_the_engine_torch_is_set_to_stays_what_it_was():
    before = torch.backends.quantized.engine
    for engine in available_engines():
        Int8Linear(torch.ones(2, 3), engine=engine)
    assert torch.backends.quantized.engine == before


@given(seeds)
def test_logits_in_int8_are_close_to_those_in_fp32(seed):
    sizes = tiny_config(d_model=48, d_ff=96, decoder_layers=2, dropout=0.0)
    precise = Transformer(sizes, generator(seed)).eval()
    source = draw_ids(seed, 6, 7)
    coarse = for_inference(precise, int8=True)
    with torch.inference_mode():
        start = torch.ones(6, 1, dtype=torch.int64)
        expected = precise(source, start)[:, 0]
        found = coarse.logits(coarse.decode(start, coarse.encode(source), coarse.new_cache()).hidden)[:, 0]
        assert (found - expected).norm() <= 0.1 * expected.norm()  # 0.03 and 0.05 were seen with inputs of 8 and 7 bits
        assert not torch.equal(found, expected)  # or nothing was rounded
    assert greedy_decode(coarse, source, 9).shape[0] == len(beam_search(coarse, source, 3, 9, 1.0)) == 6


def test_a_translator_in_int8_decodes_in_int8_and_keeps_its_model(monkeypatch):
    seen, greedy = [], translate.greedy_decode
    monkeypatch.setattr(
        translate, "greedy_decode", lambda decoder, *rest: (seen.append(decoder), greedy(decoder, *rest))[1]
    )
    translator = Translator(model(), TOKENIZER, TOKENIZER, "int8")
    assert len(translator.translate(["uno due", "", "tre"], beam_size=1)) == 3
    (decoder,) = seen
    assert isinstance(decoder, InferenceTransformer) and isinstance(decoder.logits, Int8Linear)
    assert translator.precision == "int8" and translator.model.output.weight.dtype == torch.float32
    assert translator.attention("uno due", "tre").cross.shape[0] == 1


@pytest.mark.parametrize(("precision", "name"), [("fp32", "fp32"), ("bf16", "bf16"), (None, "float64")])
def test_no_other_precision_rounds_to_int8(precision, name):
    translator = Translator(model().double(), TOKENIZER, TOKENIZER, precision)
    assert translator.precision == name


def test_a_precision_nobody_has_is_refused_by_name():
    with pytest.raises(ValueError, match="precision: expected one of fp32, bf16, auto, int8, got 'int4'"):
        Translator(model(), TOKENIZER, TOKENIZER, "int4")


def test_int8_without_an_engine_is_refused_and_never_replaced(monkeypatch):
    monkeypatch.setattr(int8, "available_engines", lambda: [])
    forget_choices()
    with pytest.raises(
        ValueError, match="precision: expected a torch with one of the engines fbgemm, .* for int8, got"
    ):
        Translator(model(), TOKENIZER, TOKENIZER, "int8")


def test_int8_on_a_gpu_in_training_or_in_bf16_is_refused():
    with pytest.raises(ValueError, match="precision: expected the device cpu for int8, got meta"):
        for_inference(model().to("meta"), int8=True)
    with pytest.raises(ValueError, match="model: expected evaluation mode"):
        for_inference(model().train(), int8=True)
    with pytest.raises(ValueError, match="precision: expected weights in fp32 for int8, got torch.bfloat16"):
        for_inference(model().bfloat16(), int8=True)


def test_int8_of_a_model_with_foreign_parts_is_refused():
    changed = model()
    changed.encoder.layers[0].feed_forward.register_forward_hook(lambda module, inputs, output: output)
    with pytest.raises(ValueError, match="precision: expected a model of the package's own parts for int8, got FeedF"):
        for_inference(changed, int8=True)
