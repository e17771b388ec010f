"""A translator made of a learner's code: whose part is used, what it reports when it fails, what a checkpoint runs."""

import hashlib
import json
import re
import shutil

import pytest
import torch
from own_transformer import ATTENTIONS, FEEDS, own_file
from safetensors import safe_open

from transformer_ref import __main__ as command_line
from transformer_ref.config import ModelConfig, TrainingConfig
from transformer_ref.data.batching import Batch, token_batches
from transformer_ref.decoding.beam_search import beam_search
from transformer_ref.decoding.greedy import greedy_decode
from transformer_ref.learner.own_code import OwnCode
from transformer_ref.learner.own_faults import remarks
from transformer_ref.learner.own_file import OwnCodeError
from transformer_ref.learner.own_model import OwnTransformer
from transformer_ref.learner.own_search import own_beam, own_greedy
from transformer_ref.learner.own_training import (
    OwnLoss,
    new_own_model,
    own_hidden_matrices,
    own_packer,
    own_rate,
    rehearse,
)
from transformer_ref.learner.own_weights import as_reference
from transformer_ref.training.loss import MeanLoss
from transformer_ref.training.schedule import rate_factor

SIZES = dict(d_model=12, heads=3, encoder_layers=2, decoder_layers=3, d_ff=20, dropout=0.0, max_length=24)
MINE = "my_transformer.py"


def config(**changes) -> ModelConfig:
    return ModelConfig(**(dict(source_vocabulary=17, target_vocabulary=17) | SIZES | changes))


def code(text: str = own_file()) -> OwnCode:
    return OwnCode.of_text(MINE, text)


def model(changes: dict | None = None, **style) -> OwnTransformer:
    made = new_own_model(code(own_file(**style)), config(**(changes or {})), seed=3).eval()
    draw = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for weight in made.parameters():
            weight += 0.2 * torch.randn(weight.shape, generator=draw)
    return made


BATCH = Batch(
    torch.tensor([[5, 6, 7, 2], [8, 9, 2, 0]]),
    torch.tensor([[1, 4, 5, 6, 7], [1, 9, 8, 0, 0]]),
    torch.tensor([[4, 5, 6, 7, 2], [9, 8, 2, 0, 0]]),
)


@pytest.mark.parametrize("attention", ATTENTIONS)
@pytest.mark.parametrize("feed", FEEDS)
@pytest.mark.parametrize(
    "changes", [{}, dict(norm_first=True, tie_embeddings=True)], ids=["post-norm", "pre-norm, tied"]
)
def test_the_package_s_model_with_the_learner_s_weights_says_the_same(attention, feed, changes):
    own = model(changes, attention=attention, feed=feed)
    reference = as_reference(own)
    source, target = torch.tensor([[4, 5, 6, 2], [7, 2, 0, 0]]), torch.tensor([[1, 8, 9], [1, 3, 3]])
    torch.testing.assert_close(reference(source, target), own(source, target), rtol=1e-4, atol=1e-4)


def test_a_model_of_other_arithmetic_is_not_exported_and_the_difference_is_said():
    own = new_own_model(code(own_file().replace("torch.relu(", "torch.tanh(")), config(), seed=3)
    with pytest.raises(
        OwnCodeError, match="computes what the package's does with the same weights, got logits that differ"
    ):
        as_reference(own)


def test_searches_find_with_the_learner_s_model_what_they_find_with_the_same_weights_in_the_package_s():
    own = model()
    reference = as_reference(own)
    source = BATCH.source
    assert greedy_decode(own, source, 6).equal(greedy_decode(reference, source, 6))
    ours, theirs = (beam_search(each, source, 3, 6, 1.0) for each in (own, reference))
    assert [[each.ids for each in row] for row in ours] == [[each.ids for each in row] for row in theirs]


def test_the_learner_s_searches_are_used_where_the_file_has_them():
    constant = "def greedy_decode(model, src, *rest):\n    return torch.full((len(src), 3), 7)\n"
    assert own_greedy(model(parts=constant), BATCH.source, 6).tolist() == [[7] * 3] * 2
    own, without = model(), model(parts="")
    for row, other in zip(own_greedy(own, BATCH.source, 6), own_greedy(without, BATCH.source, 6), strict=True):
        assert row[row != 0].tolist() == other[other != 0].tolist()
    found = own_beam(own, BATCH.source[:1], 2, 5, 1.0, torch.topk)
    assert found[0][0].ids == beam_search(without, BATCH.source[:1], 2, 5, 1.0)[0][0].ids


def test_the_loss_and_the_schedule_and_the_batches_are_the_learner_s_and_equal_the_package_s():
    own = model()
    for smoothing in (0.0, 0.1):
        torch.testing.assert_close(OwnLoss(own.code, 0, smoothing)(own, BATCH), MeanLoss(0, smoothing)(own, BATCH))
    settings = TrainingConfig(schedule="inverse_sqrt", warmup_steps=7)
    for step in (1, 6, 7, 30):
        assert own_rate(own.code, 12)(settings, step, 0.5) == pytest.approx(rate_factor(settings, step, 0.5))
    lengths = [3, 9, 4, 9, 1, 5]
    packed = own_packer(own.code)(lengths, 10, torch.Generator().manual_seed(1))
    assert sorted(map(len, packed)) == sorted(map(len, token_batches(lengths, 10)))


def test_parts_that_stand_in_for_the_learner_s_are_called_so():
    text = own_file() + '\nNOT_MINE = ["noam_lr"]\nfrom transformer_ref.data.batching import token_batches\n'
    whose = code(text).whose()
    assert (whose["Transformer"], whose["noam_lr"], whose["token_batches"]) == (
        "yours",
        "the course's",
        "the package's",
    )
    assert code(own_file(parts="")).whose()["masked_ce"] == "the package's"


def test_muon_moves_no_table_and_the_first_weights_are_those_of_the_package_s_size():
    own = new_own_model(code(own_file("bare matrices", "functions")), config(), seed=3)
    hidden = list(own_hidden_matrices(own))
    assert len(hidden) == 2 * 6 + 3 * 10 and all(17 not in each.shape for each in hidden)
    assert max(each.detach().abs().max().item() for each in own.parameters()) < 2


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("return self.generator(self.end", "return 1 / 0, (self.end", "Transformer.forward.*line .* ZeroDivisionError"),
        ("return self.generator(", "return self.src(tgt_in) + 0 * (", "expected logits .2, 5, 17., .*got .2, 5, 12."),
        ("return self.generator(", "return None and (", "got NoneType"),
        (
            "return self.generator(self.end",
            "return self.generator.requires_grad_(False)(0 * self.end",
            "backward|no gradient|constant",
        ),
        (
            "ignore_index=pad)",
            "ignore_index=pad, reduction='none')",
            "masked_ce: expected a tensor of shape .., got .10,.",
        ),
        ("return d**-0.5 *", "return x *", None),
    ],
    ids=["raises", "another shape", "nothing", "detached", "no scalar", "only later"],
)
def test_what_cannot_be_trained_is_said_in_one_sentence_before_the_first_step(old, new, said):
    text = own_file().replace(old, new)
    assert text != own_file()
    own = new_own_model(code(text), config(), seed=3)
    if said is None:
        with pytest.raises(OwnCodeError, match=r"noam_lr\(3, 12, 100\) stopped in line \d+ with NameError"):
            own_rate(own.code, 12)(TrainingConfig(schedule="inverse_sqrt"), 3, 0.1)
        return
    try:
        doubts = rehearse(own, BATCH, OwnLoss(own.code, 0, 0.0))
    except OwnCodeError as error:
        doubts = [str(error)]
        assert MINE in doubts[0] and "\n" not in doubts[0]
    assert any(re.search(said, doubt) for doubt in doubts), doubts


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [(".tril()", "", "sees later words"), ("(ids != self.cfg.pad)", "(ids > -1)", "padding changes its output")],
    ids=["no causal mask", "no padding mask"],
)
def test_what_lowers_the_loss_and_spoils_the_translation_is_said_before_the_training(old, new, said):
    sound = new_own_model(code(), config(), seed=3)
    assert not any(said in doubt for doubt in rehearse(sound, BATCH, OwnLoss(sound.code, 0, 0.1)))
    own = new_own_model(code(own_file().replace(old, new)), config(), seed=3)
    assert any(said in doubt for doubt in rehearse(own, BATCH, OwnLoss(own.code, 0, 0.1)))


@pytest.mark.parametrize(
    ("text", "said"),
    [("x = (", "SyntaxError"), ("1 / 0", "line 1 with ZeroDivisionError"), ("x = 1", "expected a class Transformer")],
)
def test_a_file_without_a_model_says_what_it_is(tmp_path, text, said, capsys):
    path = tmp_path / MINE
    path.write_text(text, "utf-8")
    assert command_line.main(["train", "--model", str(path), "--output", str(tmp_path / "out")]) == 2
    assert said in capsys.readouterr().err


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A file, its data, and the folder of a short training by the command."""
    folder = tmp_path_factory.mktemp("mine")
    witness = folder / "ran"
    (folder / MINE).write_text(own_file() + f"\nopen({str(witness)!r}, 'a').write('x')\n", "utf-8")
    for split in ("train", "val", "test"):
        for language, words in (
            ("en", ["the cat sees", "a dog sees it", "the sea"]),
            ("it", ["il gatto", "un cane", "il mare"]),
        ):
            (folder / f"{split}.{language}").write_text("\n".join(words * 3) + "\n", "utf-8")
    sizes = "--vocabulary 280 --d-model 12 --heads 3 --d-ff 20 --encoder-layers 1 --decoder-layers 1".split()
    data = [
        "--corpus",
        "files",
        "--data-dir",
        str(folder),
        "--source",
        "en",
        "--target",
        "it",
        "--tokens-per-batch",
        "99",
    ]
    command = ["train", "--model", str(folder / MINE), "--output", str(folder / "out"), *data, *sizes]
    assert command_line.main([*command, "--steps", "3"]) == 0
    return folder, command, witness


def test_a_training_s_card_says_whose_each_part_is_and_it_can_be_resumed(trained, capsys):
    folder, command, _ = trained
    card = json.loads((folder / "out" / "run.json").read_text("utf-8"))
    assert set(card["parts"].values()) == {"yours"} and card["training"]["schedule"] == "inverse_sqrt"
    assert "| Transformer | yours |" in (folder / "out" / "run.md").read_text("utf-8")
    assert command_line.main([*command, "--steps", "4", "--resume"]) == 0


def test_a_training_goes_on_after_its_file_was_edited_as_long_as_the_weights_fit(trained, tmp_path, capsys):
    folder, command, _ = trained
    shutil.copytree(folder / "out", tmp_path / "out")
    places = {str(folder / MINE): str(tmp_path / MINE), str(folder / "out"): str(tmp_path / "out")}
    command = [*(places.get(each, each) for each in command), "--steps", "6", "--resume"]
    (tmp_path / MINE).write_text(own_file(), "utf-8")
    assert command_line.main(command) == 0
    assert f"{MINE} has changed since this training was saved" in capsys.readouterr().err
    wider = "\n\nclass Transformer(Transformer):\n    def __init__(self, cfg):\n        super().__init__(cfg)\n"
    (tmp_path / MINE).write_text(own_file() + wider + "        self.more = nn.Linear(3, 4)\n", "utf-8")
    assert command_line.main(command) == 2
    assert "own.more.bias: expected (4,), got nothing" in capsys.readouterr().err
    package = [each for each in command if each not in ("--model", str(tmp_path / MINE))]
    assert command_line.main(package) == 2
    assert "expected" in capsys.readouterr().err


def test_a_checkpoint_keeps_the_code_and_runs_none_of_it_unless_it_is_asked_to(trained, capsys):
    folder, _, witness = trained
    with safe_open(folder / "out" / "model.safetensors", framework="pt") as file:
        kept = json.loads(file.metadata()["code"])
    assert kept["text"] == (folder / MINE).read_text("utf-8")
    assert kept["sha256"] == hashlib.sha256(kept["text"].encode()).hexdigest()
    before = witness.read_text("utf-8")
    translate = ["translate", "--checkpoint", str(folder / "out"), "--beam-size", "1", "the cat"]
    for command in (translate, ["export", "--format", "page", str(folder / "out"), "-o", str(folder / "page.html")]):
        assert command_line.main(command) == 2
        assert "A checkpoint is data" in capsys.readouterr().err
        assert witness.read_text("utf-8") == before
        assert command_line.main([*command, "--run-its-code"]) == 0
        assert witness.read_text("utf-8") > before
        assert command_line.main([*command, "--model", str(folder / MINE)]) == 0
        before = witness.read_text("utf-8")
    assert "liveModelWeights" in (folder / "page.html").read_text("utf-8")


def test_a_file_that_has_changed_since_is_used_with_a_warning(trained, capsys):
    folder, *_ = trained
    (folder / "newer.py").write_text(own_file() + "\n# a remark\n", "utf-8")
    command = [
        "translate",
        "--checkpoint",
        str(folder / "out"),
        "--model",
        str(folder / "newer.py"),
        "--beam-size",
        "1",
    ]
    assert command_line.main([*command, "a dog"]) == 0
    assert "look out: model: " in (shown := capsys.readouterr().err) and "has changed since" in shown


HINTS = {
    "beams without bos": """
def beam_search(step_fn, k, max_len, alpha, bos, eos):
    return [([eos], -1.0), ([4, eos], -2.0)]
""",
    "a loss in float64": """
def masked_ce(logits, labels, pad):
    return torch.nn.functional.cross_entropy(logits.double().flatten(0, 1), labels.flatten(), ignore_index=pad)
""",
    "a row of bos alone": """
def greedy_decode(model, src, max_len, bos, eos, pad):
    return torch.full((len(src), 1), bos)
""",
    "a loss of no number": """
def masked_ce(logits, labels, pad):
    return logits
""",
}


@pytest.mark.parametrize("part", HINTS.values(), ids=HINTS)
def test_a_hint_never_stops_a_training(part):
    said = remarks(code(own_file() + part), config())
    assert all(isinstance(each, str) for each in said)
    if "greedy_decode" in part:
        assert "greedy_decode adds no token to bos" in said
    if "double" in part:
        assert not any("masked_ce" in each for each in said)


def test_a_beam_search_without_bos_is_judged_by_its_scores():
    part = """
def beam_search(step_fn, k, max_len, alpha, bos, eos):
    ids, total = [bos], 0.0
    for token in (eos + 2, eos):
        total += float(step_fn(torch.tensor([ids]))[0, token])
        ids.append(token)
    return [(ids[1:], total / DIVISOR)]
"""
    for divisor, wrong in (("2", False), ("1", True)):
        said = remarks(code(own_file() + part.replace("DIVISOR", divisor)), config())
        assert any(each.startswith("beam_search does not divide") for each in said) == wrong


BOUNDED = """

class Transformer(Transformer):
    def __init__(self, cfg):
        super().__init__(cfg)
        self.most = cfg.max_length

    def forward(self, src, tgt_in):
        if max(src.shape[1], tgt_in.shape[1]) > self.most:
            raise IndexError("no position left")
        return super().forward(src, tgt_in)
"""


@pytest.mark.parametrize("length", [1, 22, 23, 24])
def test_the_rehearsal_reads_nothing_longer_than_the_model(length):
    own = new_own_model(code(own_file() + BOUNDED), config(), seed=3)
    source = torch.full((2, length), 5)
    batch = Batch(source, torch.full((2, length), 4), torch.full((2, length), 6))
    assert all(doubt.startswith("no gradient reaches") for doubt in rehearse(own, batch, MeanLoss(0)))


def test_a_learner_s_draws_leave_the_generators_of_a_gpu_alone(monkeypatch):
    def reseeded(seed):
        raise AssertionError("reseeds the GPU")

    monkeypatch.setattr(torch.cuda, "manual_seed_all", reseeded)
    packs = own_packer(
        code(
            own_file() + "\n\ndef token_batches(lengths, most):\n"
            "    return [[i] for i in torch.randperm(len(lengths)).tolist()]\n"
        )
    )
    assert packs([3, 4, 5, 6], 20) == packs([3, 4, 5, 6], 20)
    new_own_model(code(), config(), seed=3)
