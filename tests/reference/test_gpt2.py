"""GPT-2's weights as Hugging Face stores them give their logits in our code."""

import json
import socket

import pytest
import torch
from drawn import generator, ids
from safetensors.torch import load_file, save_file

from transformer_ref.beyond import gpt2
from transformer_ref.beyond.gpt import generate, generate_cached

transformers = pytest.importorskip("transformers")

SHAPES = {
    "tiny": dict(n_embd=12, n_head=3, n_layer=2),
    "one block": dict(n_embd=8, n_head=2, n_layer=1),
    "narrow inside": dict(n_embd=20, n_head=4, n_layer=3, n_inner=14),
}


def theirs(seed=0, **sizes):
    """Return a GPT-2 of transformers with random weights."""
    config = transformers.GPT2Config(vocab_size=31, n_positions=17, bos_token_id=30, eos_token_id=30, **sizes)
    model = transformers.GPT2LMHeadModel(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn(parameter.shape, generator=generator(seed)))
    return model


@pytest.mark.parametrize("shape", SHAPES)
def test_their_folder_gives_their_logits_in_our_code(shape, tmp_path):
    model = theirs(**SHAPES[shape])
    model.save_pretrained(tmp_path)
    text = ids(1, 2, 11, low=0, high=31)
    with torch.no_grad():
        expected = model(text).logits
        # both add up a few dozen float32 products, in another order
        torch.testing.assert_close(gpt2.load_gpt2(tmp_path)(text), expected, rtol=1e-4, atol=1e-4)


def test_what_we_write_with_a_cache_is_what_they_write(tmp_path):
    model = theirs(**SHAPES["tiny"])
    model.save_pretrained(tmp_path)
    ours, prompt = gpt2.load_gpt2(tmp_path), ids(2, 1, 5, low=0, high=29)
    settings = dict(max_new_tokens=8, do_sample=False, pad_token_id=30, eos_token_id=None)
    expected = model.generate(prompt, attention_mask=torch.ones_like(prompt), **settings)
    assert torch.equal(generate_cached(ours, prompt, 8, 0.0), expected)
    assert torch.equal(generate(ours, prompt, 8, 17, 0.0), expected)


def test_names_without_their_prefix_and_stored_masks_are_read_too():
    model = theirs(**SHAPES["tiny"])
    plain = {name: tensor.clone() for name, tensor in model.transformer.state_dict().items()}
    plain["h.0.attn.bias"] = torch.ones(1, 1, 17, 17)
    text = ids(1, 2, 11, low=0, high=31)
    with torch.no_grad():
        ours = gpt2.gpt_from(model.config.to_dict(), plain)(text)
        torch.testing.assert_close(ours, model(text).logits, rtol=1e-4, atol=1e-4)


def test_the_approximation_is_not_the_exact_gelu():
    model = theirs(**SHAPES["tiny"])
    ours = gpt2.gpt_from(model.config.to_dict(), model.state_dict())
    for block in ours.blocks:
        block.feed_forward.activation = torch.nn.functional.gelu
    text = ids(1, 2, 11, low=0, high=31)
    with torch.no_grad():
        assert (ours(text) - model(text).logits).abs().max() > 1e-5


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda config, weights: config.update(activation_function="relu"), "activation_function: expected 'gelu_new'"),
        (lambda config, weights: config.pop("n_head"), "n_head: expected this field"),
        (lambda config, weights: config.update(layer_norm_epsilon=1e-6), "layer_norm_epsilon: expected 1e-05"),
        (lambda config, weights: weights.pop("transformer.h.1.ln_2.bias"), "h.1.ln_2.bias: expected a weight"),
        (lambda config, weights: config.update(n_layer=1), "expected those of 1 blocks, got also h.1"),
        (lambda config, weights: config.update(vocab_size=30), r"embedding.weight: expected shape \(30, 12\)"),
        (
            lambda config, weights: weights.update({"lm_head.weight": torch.zeros(31, 12)}),
            "lm_head.weight: expected the",
        ),
    ],
)
def test_what_does_not_fit_is_named(change, said, tmp_path):
    theirs(**SHAPES["tiny"]).save_pretrained(tmp_path)
    config, weights = json.loads((tmp_path / "config.json").read_text()), load_file(tmp_path / "model.safetensors")
    change(config, weights)
    (tmp_path / "config.json").write_text(json.dumps(config))
    save_file(weights, tmp_path / "model.safetensors")
    with pytest.raises(ValueError, match=said):
        gpt2.load_gpt2(tmp_path)


@pytest.fixture
def folder(tmp_path):
    """A whole folder with a vocabulary of bytes and one merge."""
    letters = [*map(chr, range(33, 61)), "O", "Ġ", "ĠO"]  # 31 tokens; Ġ stands for a space
    (tmp_path / "vocab.json").write_text(json.dumps({letter: id for id, letter in enumerate(letters)}), "utf-8")
    (tmp_path / "merges.txt").write_text("#version: 0.2\nĠ O\n", "utf-8")
    theirs(**SHAPES["tiny"]).save_pretrained(tmp_path)
    return tmp_path


def test_the_command_continues_a_text(folder, capsys):
    assert gpt2.main(["--folder", str(folder), "!#% O", "--tokens", "5"]) == 0
    out = capsys.readouterr().out
    assert "'!#% O' is [0, 2, 4, 30]" in out and out.splitlines()[1].startswith("!#% O")


def test_without_a_network_or_a_folder_the_command_says_one_sentence(monkeypatch, tmp_path, capsys):
    def refuse(*_, **__):
        raise OSError("Network is unreachable")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr(socket.socket, "connect", refuse)
    assert gpt2.main(["--real"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("openai-community/gpt2: expected to download") and "Traceback" not in said
    assert gpt2.main(["--folder", str(tmp_path)]) == 2
    assert "which is not there" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("model.safetensors", "cut", "folder: expected a whole config.json and model.safetensors in "),
        ("config.json", "{", "folder: expected a whole config.json and model.safetensors in "),
        ("config.json", "[]", "folder: expected fields in "),
        ("config.json", {"n_head": 0}, "n_head: expected a number of at least 1 in config.json, got 0"),
        ("config.json", {"n_layer": "2"}, "n_layer: expected a number of at least 1 in config.json, got '2'"),
        ("vocab.json", "{", "folder: expected a vocabulary and its merges in "),
        ("merges.txt", "zz yy\n", "folder: expected a vocabulary and its merges in "),
        ("vocab.json", {"i": 31}, "vocab.json: expected ids below 31, as the model has them, got 31"),
    ],
)
def test_a_damaged_folder_is_one_sentence_and_status_two(name, text, said, folder, capsys):
    if isinstance(text, dict):
        text = json.dumps(json.loads((folder / name).read_text("utf-8")) | text)
    (folder / name).write_text(text, "utf-8")
    assert gpt2.main(["--folder", str(folder), "--tokens", "1", "!#%"]) == 2
    shown = capsys.readouterr().err.strip()
    assert shown.startswith(said) and "\n" not in shown


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([""], "text: expected at least one token to go on from, got none"),
        (["\udcff"], "text: expected text that UTF-8 can hold"),
        (["!#%", "--seed", str(2**70)], "seed: expected 0 to 9223372036854775807, got 1180591620717411303424"),
        (["!#%", "--tokens", "-3"], "n: expected at least 0, got -3"),
        (["!#%", "--tokens", "3", "--tau", "nan"], "tau: expected a finite number of at least 0, got nan"),
    ],
)
def test_a_text_that_cannot_be_continued_is_one_sentence_and_status_two(words, said, folder, capsys):
    assert gpt2.main(["--folder", str(folder), *words]) == 2
    shown = capsys.readouterr().err.strip()
    assert shown.startswith(said) and "\n" not in shown


def test_weights_that_are_no_numbers_are_named():
    model = theirs(**SHAPES["tiny"])
    weights = {name: tensor.clone() for name, tensor in model.transformer.state_dict().items()}
    weights["wte.weight"][0, 0] = torch.nan
    with pytest.raises(ValueError, match="embedding.weight: expected finite weights, got NaN or infinity"):
        gpt2.gpt_from(model.config.to_dict(), weights)
