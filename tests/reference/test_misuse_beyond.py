"""Beyond the translator, too, a mistake is one sentence that names the argument (chapters 13 to 16)."""

import math

import pytest
import torch
from drawn import generator, ids
from torch import nn

from transformer_ref.beyond import measure
from transformer_ref.beyond.efficient import attention_flops, attention_memory, linear_attention, tiled_attention
from transformer_ref.beyond.gpt import GPT, generate, generate_cached, lm_batch
from transformer_ref.beyond.masked_language import MASK, MaskedLanguageModel, WordList, guesses, small_config
from transformer_ref.beyond.pretrained import freeze_except, pool
from transformer_ref.beyond.vision import unpatchify


def small():
    return GPT(13, d_model=12, h=3, layers=1, d_ff=20, max_length=9).eval()


@pytest.mark.parametrize("write", [generate_cached, lambda model, text, n, tau: generate(model, text, n, 9, tau)])
@pytest.mark.parametrize(
    ("prompt", "n", "tau", "said"),
    [
        (ids(0, 1, 4), -1, 0.0, "n: expected at least 0, got -1"),
        (ids(0, 1, 4)[:, :0], 3, 0.0, "ids: expected at least one token to go on from, got none"),
        (ids(0, 1, 4)[0], 3, 0.0, "ids: expected shape"),
        ([[3, 4]], 3, 0.0, "ids: expected a tensor, got list"),
        (ids(0, 1, 4), 3, -1.0, "tau: expected a finite number of at least 0, got -1.0"),
        (ids(0, 1, 4), 3, math.nan, "tau: expected a finite number of at least 0, got nan"),
    ],
)
def test_what_cannot_be_continued_is_named_with_a_cache_and_without(write, prompt, n, tau, said):
    with pytest.raises((TypeError, ValueError), match=said):
        write(small(), prompt, n, tau)


@pytest.mark.parametrize("context", [0, -1])
def test_a_context_without_a_token_is_refused(context):
    with pytest.raises(ValueError, match=f"context: expected at least 1, got {context}"):
        generate(small(), ids(0, 1, 4), 3, context, 0.0)


@pytest.mark.parametrize(
    ("text", "T", "B", "said"),
    [
        (torch.arange(9), -1, 2, "T, B: expected T of at least 1 .* got -1 and 2"),
        (torch.arange(9), 2, -1, "T, B: expected .* got 2 and -1"),
        (list(range(9)), 2, 1, "ids: expected a tensor, got list"),
        (torch.arange(9)[:, None], 2, 1, "ids: expected shape"),
    ],
)
def test_windows_that_are_none_are_named(text, T, B, said):
    with pytest.raises((TypeError, ValueError), match=said):
        lm_batch(text, T, generator(0), B)


@pytest.mark.parametrize("count", [attention_flops, attention_memory])
def test_a_layer_without_heads_costs_nothing_that_could_be_said(count):
    with pytest.raises(ValueError, match="h: expected at least 1, got 0"):
        count(4, 8, 0)


@pytest.mark.parametrize("tile", [0, -1])
def test_a_tile_without_a_score_is_refused(tile):
    x = torch.ones(2, 5, 4)
    with pytest.raises(ValueError, match=f"tile: expected at least 1, got {tile}"):
        tiled_attention(x, x, x, tile=tile)


@pytest.mark.parametrize("attention", [linear_attention, tiled_attention])
def test_attention_to_no_key_is_refused_and_no_nan(attention):
    x = torch.ones(2, 5, 4)
    with pytest.raises(ValueError, match="key: expected at least one to look at, got none"):
        attention(x, x[:, :0], x[:, :0])


@pytest.mark.parametrize("p", [0, -2])
def test_patches_have_a_side(p):
    with pytest.raises(ValueError, match=f"p: expected at least 1, got {p}"):
        unpatchify(torch.zeros(1, 4, 12), p, 4, 4)


def test_one_string_in_place_of_names_frees_nothing():
    model = nn.Sequential(*(nn.Linear(1, 1) for _ in range(12)))
    with pytest.raises(TypeError, match="names: expected a list of names, got the string '11'"):
        freeze_except(model, "11")
    assert all(parameter.requires_grad for parameter in model.parameters())


@pytest.mark.parametrize("how", ["mean", "max", "cls"])
def test_a_mask_of_numbers_is_named_whatever_is_pooled(how):
    with pytest.raises(TypeError, match="mask: expected a boolean tensor .* got torch.int64"):
        pool(torch.ones(2, 3, 4), torch.ones(2, 3).long(), how)


def test_a_mask_in_the_texts_of_a_word_list_is_no_second_word():
    words = WordList(["a b", "a <mask> b"])
    assert len(set(words.tokens)) == len(words.tokens) and words.encode("<mask>")[1:] == [MASK]


@pytest.mark.parametrize(("text", "masks"), [("a b", 0), ("<mask> a <mask>", 2)])
def test_one_word_is_guessed_not_none_and_not_two(text, masks):
    words = WordList(["a b"])
    model = MaskedLanguageModel(small_config(len(words.tokens)), generator(0)).eval()
    with pytest.raises(ValueError, match=f'text: expected one "<mask>", got {masks}'):
        guesses(model, words, text)
    assert len(guesses(model, words, "a <mask>", count=99)) == len(words.tokens)


@pytest.mark.parametrize(
    ("output", "said"),
    [
        ("x.html", "--output: expected a file for numbers, such as efficient.json, got "),
        (".", "--output: expected a file"),
        ("a file/x.json", "output: expected a folder to write into, got "),
    ],
)
def test_numbers_that_could_not_be_written_are_not_measured(output, said, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(measure, "measure", None)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a file").write_text("")
    with pytest.raises(SystemExit):
        measure.main(["--longest", "64", "--output", output])
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("room", ["nan", "-1"])
def test_a_room_that_is_no_size_is_refused(room, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(measure, "measure", None)
    with pytest.raises(SystemExit):
        measure.main(["--longest", "64", "--room", room, "--output", str(tmp_path / "x.json")])
    assert "--room: expected at least 0 GiB" in capsys.readouterr().err
