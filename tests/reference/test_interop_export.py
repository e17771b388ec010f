"""CTranslate2 and onnxruntime say what our model says."""

from collections.abc import Iterable
from pathlib import Path

import pytest
import torch
from drawn import generator, tiny_model

from transformer_ref.config import ModelConfig
from transformer_ref.data.batching import shift_right
from transformer_ref.decoding.greedy import greedy_decode
from transformer_ref.interop.ctranslate2 import save_ctranslate2, token_names
from transformer_ref.interop.onnx import save_onnx
from transformer_ref.model.transformer import Transformer

MAX_LENGTH = 12
VARIANTS = [
    {"norm_first": False},
    {"norm_first": True},
    {"layout": "concatenated", "activation": "silu", "output_bias": True},
    {"tie_embeddings": True, "source_vocabulary": 13, "norm_first": True, "activation": "gelu"},
    {"scale_embedding": False, "last_norm": False},
]


def sources(config: ModelConfig) -> torch.Tensor:
    source = torch.randint(4, 11, (5, 7), generator=generator(3))
    for row, length in enumerate([6, 4, 2, 5, 1]):
        source[row, length], source[row, length + 1 :] = config.eos, config.pad
    return source


def words(ids: Iterable[int], config: ModelConfig) -> tuple[int, ...]:
    return tuple(id for id in ids if id not in (config.bos, config.eos, config.pad))


def talkative(**changes) -> Transformer:
    """Return the first model with four or more different translations, so that no mistake stays hidden."""
    for seed in range(200):
        model = tiny_model(seed, **changes).float()
        answers = greedy_decode(model, sources(model.config), MAX_LENGTH).tolist()
        if len({words(ids, model.config) for ids in answers}) >= 4:
            return model
    raise AssertionError("no model with different answers")


def saved_for_ctranslate2(model: Transformer, folder: Path):
    """Return their translator and the sources as it wants them."""
    ctranslate2 = pytest.importorskip("ctranslate2")
    save_ctranslate2(model, folder)
    names = [[str(id) for id in row if id != model.config.pad] for row in sources(model.config).tolist()]
    return ctranslate2.Translator(str(folder), intra_threads=1), names


@pytest.mark.parametrize("quantization", [None, "int8"])
def test_what_is_written_for_ctranslate2_leaves_the_model_as_it_was(quantization, tmp_path):
    pytest.importorskip("ctranslate2")
    model = talkative()
    before = {name: parameter.clone() for name, parameter in model.named_parameters()}
    save_ctranslate2(model, tmp_path, quantization)
    for name, parameter in model.named_parameters():
        assert parameter.equal(before[name]), name


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_ctranslate2_gives_our_greedy_translations(variant, tmp_path):
    model = talkative(**variant)
    translator, names = saved_for_ctranslate2(model, tmp_path)
    results = translator.translate_batch(names, beam_size=1, max_decoding_length=MAX_LENGTH, disable_unk=True)
    theirs = [words(map(int, result.hypotheses[0]), model.config) for result in results]
    ours = greedy_decode(model, sources(model.config), MAX_LENGTH).tolist()
    assert theirs == [words(ids, model.config) for ids in ours]


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_each_word_of_any_target_is_as_probable_in_ctranslate2_as_here(variant, tmp_path):
    model = talkative(**variant)
    translator, names = saved_for_ctranslate2(model, tmp_path)
    labels = torch.randint(3, 13, (len(names), 6), generator=generator(5))
    labels[:, -1] = model.config.eos
    results = translator.score_batch(names, [[str(id) for id in row[:-1]] for row in labels.tolist()])
    log_p = model(sources(model.config), shift_right(labels, model.config.bos)).log_softmax(-1)
    expected = log_p.gather(-1, labels[..., None]).squeeze(-1)
    theirs = torch.tensor([list(result.log_probs) for result in results])
    torch.testing.assert_close(theirs, expected, rtol=1e-4, atol=1e-4)  # their exponential is a quick one


def test_ctranslate2_refuses_a_norm_it_does_not_have(tmp_path):
    pytest.importorskip("ctranslate2")
    with pytest.raises(ValueError, match="last_norm: expected False in a post-norm model for CTranslate2, got True"):
        save_ctranslate2(talkative(last_norm=True), tmp_path)


def test_each_id_has_a_name_of_its_own():
    assert token_names(3) == ["0", "1", "2"]


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_onnxruntime_gives_our_logits_for_batches_and_lengths_of_any_size(variant, tmp_path):
    pytest.importorskip("onnx")
    onnxruntime = pytest.importorskip("onnxruntime")
    model = talkative(**variant)
    encoder, decoder = (
        onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
        for path in save_onnx(model, tmp_path)
    )
    every = sources(model.config)
    for source, length in ((every, 6), (every[:1], 1), (every[1:3, :5], 9)):
        target = torch.randint(4, 11, (len(source), length), generator=generator(4))
        memory, mask = encoder.run(None, {"source_ids": source.numpy()})
        (logits,) = decoder.run(None, {"target_ids": target.numpy(), "memory": memory, "mask": mask})
        torch.testing.assert_close(torch.from_numpy(logits), model(source, target), rtol=1e-5, atol=1e-5)


def test_an_exported_model_is_left_as_it_was(tmp_path):
    pytest.importorskip("onnx")
    model = talkative()
    save_onnx(model, tmp_path)
    assert not any(module.training for module in model.modules())


def test_a_model_in_training_is_not_exported(tmp_path):
    with pytest.raises(ValueError, match="model: expected evaluation mode"):
        save_onnx(talkative().train(), tmp_path)
