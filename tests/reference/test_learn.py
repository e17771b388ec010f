"""The package in a few lines of Python: learn, load, translate, look at the attention."""

import pytest
import torch

from transformer_ref.learn import learn
from transformer_ref.translate import Translator

ENGLISH = [f"{subject} {verb}" for subject in ("we", "you", "they") for verb in ("read", "sleep", "sing", "eat")] * 4
ITALIAN = [f"{dict(we='noi', you='voi', they='loro')[a]} {b}" for a, b in map(str.split, ENGLISH)]
TINY = dict(d_model=24, heads=3, encoder_layers=2, decoder_layers=1, d_ff=32, dropout=0.0)


@pytest.fixture(scope="module")
def learned(tmp_path_factory):
    folder = tmp_path_factory.mktemp("learned")
    return folder, learn(
        ENGLISH,
        ITALIAN,
        folder,
        vocabulary=300,
        model=TINY,
        device="cpu",
        steps=220,
        warm_up=20,
        tokens_per_batch=200,
        precision="fp32",
        average_decay=0.0,
        label_smoothing=0.0,
    )


def test_what_was_learned_from_two_lists_is_translated(learned):
    assert learned[1].translate(ENGLISH[:12], beam=1) == ITALIAN[:12]


def test_a_loaded_translator_says_the_same(learned):
    folder, translator = learned
    assert Translator.load(folder).translate(["they sing", "we read"]) == translator.translate(["they sing", "we read"])


def test_the_attention_names_its_tokens_and_each_row_shares_out_one(learned):
    seen = learned[1].attention("they sing")
    assert seen.source[-1] == "<eos>" and "".join(seen.source[:-1]).split() == ["they", "sing"]
    assert seen.target[0] == "<bos>" and "".join(seen.target[1:]).split() == ["loro", "sing"]
    source, target = len(seen.source), len(seen.target)
    assert seen.encoder.shape == (2, 3, source, source)
    assert (seen.decoder.shape, seen.cross.shape) == ((1, 3, target, target), (1, 3, target, source))
    for weights in seen[2:]:
        torch.testing.assert_close(weights.sum(dim=-1), torch.ones(weights.shape[:-1]))
    assert seen.decoder.triu(1).eq(0).all()


def test_another_target_is_read_with_its_own_tokens(learned):
    assert "".join(learned[1].attention("they sing", "noi eat").target[1:]).split() == ["noi", "eat"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((["one"], ["uno", "due"]), r"targets: expected one for each of 1 sources \(at least two\), got 2"),
        (([], []), r"targets: expected one for each of 0 sources \(at least two\), got 0"),
    ],
)
def test_lists_that_do_not_fit_are_refused_by_name(arguments, words, tmp_path):
    with pytest.raises(ValueError, match=words):
        learn(*arguments, tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_a_setting_that_does_not_exist_is_named(tmp_path):
    with pytest.raises(ValueError, match="TrainingConfig: expected fields among .*, got .'step'."):
        learn(["a", "b"], ["c", "d"], tmp_path, step=5)
    with pytest.raises(TypeError, match="expected two lists of sentences, got a string"):
        learn("ab", "cd", tmp_path)
