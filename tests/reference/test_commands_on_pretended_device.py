"""The commands, from a text to its translation and to other libraries, and the models beyond translation, on a
pretended CUDA device."""

import copy
import shutil

import pytest
import torch
from drawn import generator, ids, tiny_config
from pretended_device import DEVICE, DeviceTensor, pretended_device

from transformer_ref import __main__ as command_line
from transformer_ref.__main__ import main
from transformer_ref.beyond import efficient, vision
from transformer_ref.beyond.convolution import DeepCNN, LocalCNN
from transformer_ref.beyond.gpt import GPT, generate, generate_cached, lm_batch, logit_lens
from transformer_ref.beyond.masked_language import MaskedLanguageModel, ReviewJudge, small_config
from transformer_ref.beyond.pretrained import as_foreign, load_mapped, mlm_mask
from transformer_ref.beyond.questions import QuestionAttention, ask, draw, scenes
from transformer_ref.beyond.small_encoder import SmallClassifier, SmallEncoder
from transformer_ref.interop.marian import load_marian, save_marian
from transformer_ref.interop.torch_transformer import load_torch_transformer, save_torch_transformer
from transformer_ref.model.transformer import Transformer
from transformer_ref.training import recipes
from transformer_ref.translate import Translator


@pytest.fixture
def log():
    with pretended_device() as log:
        yield log


# ---- the commands -------------------------------------------------------------------------------------------------


SETTINGS = ["--steps", "2", "--tokens-per-batch", "128", "--d-model", "16", "--heads", "2", "--d-ff", "24"]


@pytest.fixture
def small_corpus(monkeypatch):
    build = recipes.build_corpus
    for module in (recipes, command_line):
        monkeypatch.setattr(module, "build_corpus", lambda: build(train=200, validation=10, test=6, held_out=4))
    monkeypatch.setattr(command_line, "product_rate", lambda config, device: 1e12)  # of matrices too large for a CPU


@pytest.fixture
def checkpoint(once, small_corpus, tmp_path):
    """Return a folder that `train` left, which trained on the device."""

    def make(folder):
        with pretended_device():
            assert main(["train", "--device", "cuda", "--output", str(folder), "--overwrite", *SETTINGS]) == 0

    return shutil.copytree(once("trained-on-a-pretended-device", make), tmp_path / "made")


def test_a_text_is_translated_and_evaluated_on_the_device(checkpoint, log, capsys):
    lines = ["I closed the windows.", "", "She visited the bank near the river."]
    on_device, on_cpu = (Translator.load(checkpoint, device) for device in ("cuda", "cpu"))
    assert all(isinstance(each, DeviceTensor) for each in on_device.model.parameters())
    for beam in (1, 3):
        expected = on_cpu.translate(lines, beam_size=beam, extra_length=3)
        log.clear()
        assert on_device.translate(lines, beam_size=beam, extra_length=3) == expected
        assert log.count("copy") <= 1  # the limits of the lines, once a batch
    assert on_device.attention(lines[0], "Ho chiuso.").cross.cpu().isfinite().all()
    capsys.readouterr()
    assert main(["evaluate", "--device", "cuda", "--checkpoint", str(checkpoint), "--beam-size", "2"]) == 0
    assert "BLEU" in capsys.readouterr().out


def test_a_training_is_resumed_and_gone_on_from_on_the_device(checkpoint, log, tmp_path):
    more = [*SETTINGS[2:], "--steps", "3", "--device", "cuda"]
    assert main(["train", "--output", str(checkpoint), "--resume", *more]) == 0
    start = ["--from", str(checkpoint), "--output", str(tmp_path / "next"), "--steps", "1", "--device", "cuda"]
    assert main(["train", *start, *SETTINGS[2:4]]) == 0


@pytest.mark.parametrize("kind", ["page", "ctranslate2", "onnx"])
def test_a_model_on_the_device_is_exported(checkpoint, log, tmp_path, kind):
    if kind in ("ctranslate2", "onnx"):
        pytest.importorskip(kind)
    output = tmp_path / ("page.html" if kind == "page" else "exported")
    arguments = ["--device", "cuda", "--checkpoint", str(checkpoint), "--output", str(output)]
    assert main(["export", "--format", kind, *arguments]) == 0
    assert output.exists()


def test_a_model_on_the_device_is_given_to_other_libraries_and_back(log, tmp_path):
    config = tiny_config(source_vocabulary=11, target_vocabulary=11, tie_embeddings=True, layout="concatenated")
    model = Transformer(config, generator(1)).eval()
    moved = copy.deepcopy(model).to(DEVICE)
    save_marian(moved, tmp_path)
    from_marian, from_torch = load_marian(tmp_path), copy.deepcopy(moved)
    load_torch_transformer(from_torch, save_torch_transformer(moved))
    for back in (from_marian, from_torch):
        assert all(back.get_parameter(name).cpu().equal(old) for name, old in model.named_parameters())


# ---- models of the later chapters ---------------------------------------------------------------------------------


def gpt() -> GPT:
    torch.manual_seed(1)
    return GPT(11, 12, 3, 2, 20, max_length=16).eval()


def classifier() -> SmallClassifier:
    torch.manual_seed(1)
    return SmallClassifier(SmallEncoder(11, 12, 20, 2, longest=9), 3)


def vit() -> vision.ViT:
    torch.manual_seed(1)
    return vision.ViT(8, 4, 3, 12, 3, 2, 20, classes=5)


def language_model() -> MaskedLanguageModel:
    return MaskedLanguageModel(small_config(11), generator(1))


IDS, IMAGES = ids(2, 3, 7, high=11), torch.rand(2, 3, 9, 9, generator=generator(3))
HEADS = torch.randn(3, 2, 3, 5, 4, generator=generator(4))  # query, key and value, (batch, heads, length, d_head) each
FORWARD = {
    "GPT": (gpt, IDS),
    "small classifier": (classifier, IDS),
    "ViT": (vit, IMAGES[..., :8, :8]),
    "masked language model": (language_model, IDS),
    "judge of reviews": (lambda: ReviewJudge(language_model(), "max"), IDS),
    "local convolutions": (lambda: LocalCNN(3, 4, 5, attention=True), IMAGES),
    "deep convolutions": (lambda: DeepCNN(3, 4, 5), IMAGES),
    "attention with features": (lambda: efficient.FeatureAttention(12, 3), torch.rand(2, 5, 12)),
}


@pytest.mark.parametrize("name", FORWARD)
def test_a_model_beyond_translation_learns_on_the_device_without_waiting(log, name):
    make, given = FORWARD[name]
    model = make()
    moved, on_device = copy.deepcopy(model).to(DEVICE), given.to(DEVICE)
    log.clear()
    outputs = [each(x) for each, x in ((model, given), (moved, on_device))]
    expected, found = (each[0] if isinstance(each, tuple) else each for each in outputs)
    found.square().sum().backward()
    assert log.waits() == 0
    torch.testing.assert_close(found.detach().cpu(), expected.detach())
    assert all(each.grad is None or each.grad.device == DEVICE for each in moved.parameters())


def test_a_gpt_writes_on_the_device_without_waiting(log):
    model = gpt()
    moved, prompt = copy.deepcopy(model).to(DEVICE), IDS[:, :3].to(DEVICE)
    log.clear()
    written = generate_cached(moved, prompt, 6, 0.0)
    generate(moved, prompt, 4, 5, 0.7, torch.Generator("cuda").manual_seed(1))
    inputs, labels = lm_batch(prompt[0].repeat(9), 4, torch.Generator("cuda").manual_seed(2), 3)
    logit_lens(moved, prompt)
    assert log.waits() == 0 and inputs.device == labels.device == DEVICE
    assert log.count("mask") == len(model.blocks) * 5  # one for each cached token after the prompt
    assert written.cpu().equal(generate_cached(model, IDS[:, :3], 6, 0.0))


def test_words_are_hidden_on_the_device(log):
    hidden = mlm_mask(IDS.to(DEVICE), 0.5, torch.Generator("cuda").manual_seed(1), 2, 11, (0, 1))
    expected = mlm_mask(IDS, 0.5, generator(1), 2, 11, (0, 1))
    assert all(mine.cpu().equal(other) for mine, other in zip(hidden, expected, strict=True))


def test_foreign_weights_are_read_into_a_model_on_the_device(log):
    encoder = classifier().encoder
    moved = copy.deepcopy(encoder).to(DEVICE)
    assert load_mapped(as_foreign(encoder), moved) and load_mapped(as_foreign(moved), encoder)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("way", ["linear_attention", "tiled_attention"])
def test_attention_that_costs_less_runs_on_the_device(log, way, causal):
    q, k, v = (each.to(DEVICE) for each in HEADS)
    log.clear()
    found = getattr(efficient, way)(q, k, v, causal)
    assert log.waits() == 0
    torch.testing.assert_close(found.cpu(), getattr(efficient, way)(*HEADS, causal))


def test_grouped_queries_and_recurrent_steps_run_on_the_device(log):
    q, k, v = (each.to(DEVICE) for each in HEADS)
    log.clear()
    efficient.grouped_query(q, k[:, :1], v[:, :1], 1)
    efficient.linear_step(efficient.empty_state(k, v), q[..., 0, :], k[..., 0, :], v[..., 0, :])
    assert log.waits() == 0


def test_pixels_attend_and_convolve_on_the_device(log):
    x, kernel = IMAGES[..., :5, :4], torch.rand(6, 3, 3, 3, generator=generator(5))
    found = vision.conv_as_attention(x.to(DEVICE), kernel.to(DEVICE)).output
    torch.testing.assert_close(found.cpu(), torch.nn.functional.conv2d(x, kernel, padding=1))


def test_questions_about_scenes_are_answered_on_the_device(log):
    told = scenes(3, generator(1))
    asked, pixels = ask(told, generator(2)), draw(told, generator(3))
    model = QuestionAttention().to(DEVICE)
    assert model(pixels.to(DEVICE), asked.ids.to(DEVICE)).logits.device == DEVICE
