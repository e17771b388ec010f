"""Marian's weights in a Transformer that a learner wrote: their logits, their words, or a sentence that says why."""

import json

import pytest
import torch
from own_transformer import HEAD, own_file
from sentence_piece_file import sentence_piece_model
from test_interop_marian import EOS, PAD, SHAPES, example, marian, their_logits

from transformer_ref.__main__ import main
from transformer_ref.interop.marian import load_marian
from transformer_ref.learner.own_code import OwnCode
from transformer_ref.learner.own_file import OwnCodeError
from transformer_ref.learner.own_marian import InPlaceOfReLU, OwnMarian
from transformer_ref.translate import Translator

SEED = 1
WITH_BIASES = ("four linears", "fused", "named as in the library", "a layer for each head")


def own(text=None):
    return OwnCode.of_text("mine.py", own_file() if text is None else text)


def saved(theirs, folder):
    theirs.save_pretrained(folder)
    return load_marian(folder)


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_a_learner_s_transformer_with_marian_s_weights_gives_marian_s_logits(shape, tmp_path):
    theirs = marian(3, **shape)
    mine = OwnMarian(own(), saved(theirs, tmp_path))
    source, target = example()
    with torch.no_grad():
        found, expected = mine(source, target), their_logits(theirs, source, target)
    assert expected.std() > 0.1  # or everything would agree
    assert (found - expected).abs().max() < 1e-4


@pytest.mark.parametrize("feed", ["modules", "functions"])
@pytest.mark.parametrize("attention", WITH_BIASES)
def test_names_and_layout_of_the_learner_s_weights_are_free(attention, feed, tmp_path):
    theirs = marian(4, **SHAPES["opus"])
    mine = OwnMarian(own(own_file(attention, feed)), saved(theirs, tmp_path))
    source, target = example()
    with torch.no_grad():
        assert (mine(source, target) - their_logits(theirs, source, target)).abs().max() < 1e-4


RELUS = {
    "torch.relu": "torch.relu(x @ self.W1 + self.b1)",
    "clamp": "(x @ self.W1 + self.b1).clamp(min=0)",
    "maximum": "torch.maximum(x @ self.W1 + self.b1, torch.tensor(0.0))",
    "in place": "(x @ self.W1 + self.b1).relu_()",
    "module": "nn.ReLU()(x @ self.W1 + self.b1)",
    "clip": "torch.clip(x @ self.W1 + self.b1, 0)",
}


@pytest.mark.parametrize("relu", RELUS.values(), ids=RELUS)
def test_silu_stands_in_for_a_relu_however_it_is_written(relu, tmp_path):
    theirs = marian(5, **SHAPES["opus"])
    text = own_file("four linears", "functions").replace(RELUS["torch.relu"], relu)
    assert relu in text
    mine = OwnMarian(own(text), saved(theirs, tmp_path))
    source, target = example()
    with torch.no_grad():
        assert (mine(source, target) - their_logits(theirs, source, target)).abs().max() < 1e-4


def test_outside_of_the_learner_s_forward_relu_is_relu():
    x = torch.tensor([-1.0, 2.0])
    with InPlaceOfReLU(torch.nn.functional.silu):
        assert torch.allclose(torch.relu(x), torch.nn.functional.silu(x))
        assert x.clamp(min=-0.5, max=1.0).tolist() == [-0.5, 1.0]
    assert torch.relu(x).tolist() == [0.0, 2.0]


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("math.sqrt(q.shape[-1])", "1.0", "got logits that differ by"),
        ("nn.Linear(d, d) for _", "nn.Linear(d, d, bias=False) for _", "no bias for encoder.layers.0.self_attention"),
        ("encoder_layers))", "encoder_layers - 1))", "lists of 1 and 3 layers"),
    ],
)
def test_a_transformer_that_computes_something_else_is_refused_and_said_why(before, after, message, tmp_path):
    text = own_file()
    assert before in text
    with pytest.raises(OwnCodeError, match=message):
        OwnMarian(own(text.replace(before, after)), saved(marian(3, **SHAPES["opus"]), tmp_path))


@pytest.fixture
def folder(tmp_path):
    """Return a folder as OPUS-MT's are, whose answers depend on the input."""
    sides = [["▁a", "b", "▁", "ab"], ["▁c", "d", "▁", "c"]]
    words = ["</s>", "<unk>", *dict.fromkeys([*sides[0], *sides[1]])]
    words += [f"more{number}" for number in range(PAD - len(words))] + ["<pad>"]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)  # the library draws its weights from the global generator
        theirs = marian(3, **{**SHAPES["opus"], "vocab_size": len(words)})
    with torch.no_grad():
        theirs.final_logits_bias.zero_()
        theirs.model.shared.weight.mul_(4)
        for name, parameter in theirs.named_parameters():
            if "fc" in name or ("attn" in name and parameter.dim() == 2):
                parameter.mul_(2)
    theirs.save_pretrained(tmp_path / "marian")
    (tmp_path / "marian" / "vocab.json").write_text(json.dumps({word: id for id, word in enumerate(words)}))
    for name, pieces in zip(("source.spm", "target.spm"), sides, strict=True):
        model = sentence_piece_model([("<unk>", 0.0), *((piece, -2.0) for piece in pieces)])
        (tmp_path / "marian" / name).write_bytes(model)
    return tmp_path / "marian"


def file(folder, text):
    path = folder.parent / "my_transformer.py"
    path.write_text(text, encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("beam", ["1", "3"])
def test_translate_with_a_marian_folder_and_own_code_writes_what_the_package_writes(folder, beam, capsys):
    asked = ["translate", "--checkpoint", str(folder), "--beam-size", beam, "ab a", "b", "a bb"]
    assert main(asked) == 0
    expected = capsys.readouterr().out
    assert len(set(expected.splitlines())) > 1
    assert main([*asked, "--model", file(folder, own_file(parts=""))]) == 0
    assert capsys.readouterr().out == expected


def test_the_learner_s_own_search_is_used_too(folder):
    packages, code = Translator.load(folder), OwnCode.read(file(folder, own_file()))
    tokenizers = packages.source_tokenizer, packages.target_tokenizer
    mine = Translator(OwnMarian(code, load_marian(folder)), *tokenizers)
    assert code.part("greedy_decode") is not None
    assert mine.translate(["ab a", "b"], beam_size=1) == packages.translate(["ab a", "b"], beam_size=1)


def test_a_marian_folder_holds_no_code_to_run(folder, capsys):
    assert main(["translate", "--checkpoint", str(folder), "--run-its-code", "ab a"]) == 2
    assert "expected a checkpoint that keeps code" in capsys.readouterr().err


def test_a_file_without_a_transformer_is_one_sentence(folder, capsys):
    assert main(["translate", "--checkpoint", str(folder), "--model", file(folder, HEAD), "ab a"]) == 2
    assert "expected a class Transformer" in capsys.readouterr().err


def test_padding_of_the_source_is_hidden_although_it_also_begins_translations(tmp_path):
    mine = OwnMarian(own(), saved(marian(3, **SHAPES["opus"]), tmp_path))
    source, target = example()
    longer = torch.cat([source, torch.full((3, 2), PAD)], dim=1)
    with torch.no_grad():
        assert torch.allclose(mine(longer, target), mine(source, target), atol=1e-5)
        assert EOS != PAD and target[0, 0] == PAD
