"""The card of a run tells it from another one, and its scores come with what they need to be compared."""

import json

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from transformer_ref import machine
from transformer_ref.config import TrainingConfig
from transformer_ref.data.parallel_text import Parallel
from transformer_ref.training import run as run_module
from transformer_ref.training.recipes import RECIPES
from transformer_ref.training.run import Run, changed, prepare
from transformer_ref.training.run_card import CARD_FILE, PAGE_FILE, add_scores, run_card, thinned, write_run_card
from transformer_ref.training.trainer import fit

CPU = torch.device("cpu")
LINES = Parallel(
    ["Tom sees a dog.", "A dog sees Tom.", "", "Tom sees Tom."],
    ["Tom vede un cane.", "Un cane vede Tom.", "Eh?", "Tom vede Tom."],
)


def run(train: Parallel = LINES, **changes) -> Run:
    config = TrainingConfig(**{**dict(steps=3, tokens_per_batch=24), **changes})
    return prepare("grammar", train, LINES, ("en", "it"), config, CPU)


@pytest.fixture
def folder(tmp_path):
    """Return a folder with the card of three steps."""
    ours = run()
    fit(ours.training)
    write_run_card(tmp_path, run_card(ours, CPU), "<svg/>")
    return tmp_path


def card_in(folder) -> dict:
    return json.loads((folder / CARD_FILE).read_text(encoding="utf-8"))


def test_a_card_counts_what_was_read(folder):
    card = card_in(folder)
    assert (card["steps"], card["data"]["train"]["pairs"], card["data"]["train"]["empty"]) == (3, 3, 1)
    assert card["target_tokens_per_second"] == pytest.approx(card["target_tokens"] / card["seconds"], rel=0.05)
    assert [step for step, _ in card["curves"]["training"]] == [1, 2, 3]


def test_a_card_lists_what_was_chosen_for_this_machine_and_why(tmp_path, monkeypatch):
    monkeypatch.setenv(machine.VARIABLE, "precision=fp32,muon=fp32")
    ours = run(precision="auto")
    fit(ours.training)
    write_run_card(tmp_path, run_card(ours, CPU), "<svg/>")
    expected = f"Muon's matrix products: fp32 (set by {machine.VARIABLE})"
    assert expected in card_in(tmp_path)["machine"]["choices"]
    page = (tmp_path / PAGE_FILE).read_text(encoding="utf-8")
    assert f"- {expected}\n" in page and "| muon_precision | fp32 |" in page


def test_equal_runs_have_equal_fingerprints_and_other_data_or_settings_other_ones():
    def fingerprints(ours: Run) -> tuple[str, str]:
        card = run_card(ours, CPU)
        return card["config_sha256"], card["data"]["train"]["sha256"]

    first = fingerprints(run())
    assert fingerprints(run()) == first
    assert fingerprints(run(seed=2))[0] != first[0]
    assert fingerprints(run(Parallel(LINES.source[::-1], LINES.target[::-1])))[1] != first[1]


def test_scores_are_added_by_split_and_beam_and_a_new_one_takes_an_old_one_s_place(folder):
    for split, beam, score in (("test", 5, 30.0), ("test", 1, 29.0), ("test", 5, 35.713)):
        assert add_scores(folder, split, beam, {"BLEU": (score, "nrefs:1|tok:13a")})
    assert add_scores(folder, "test", 5, {"BLEU": (35.5, "nrefs:1|tok:13a")}, "int8")  # in addition to that of fp32
    entries = [(*list(entry.values())[:3], entry["BLEU"]["score"]) for entry in card_in(folder)["scores"]]
    assert entries == [("test", 1, "fp32", 29.0), ("test", 5, "fp32", 35.71), ("test", 5, "int8", 35.5)]
    assert "| test | 5 | fp32 | BLEU | 35.71 | `nrefs:1|tok:13a` |" in (folder / PAGE_FILE).read_text(encoding="utf-8")


def test_where_there_is_no_card_nothing_is_written(tmp_path):
    assert not add_scores(tmp_path, "test", 5, {"BLEU": (1.0, "")}) and not list(tmp_path.iterdir())


@given(st.lists(st.floats(0, 9), max_size=1_100))
def test_a_thinned_curve_has_few_points_and_the_same_mean(losses):
    points = thinned(losses)
    assert len(points) <= 200
    ends = [0, *(int(step) for step, _ in points)]
    assert ends[-1] == len(losses)
    total = sum((end - start) * mean for start, end, (_, mean) in zip(ends, ends[1:], points, strict=False))
    assert total == pytest.approx(sum(losses))


def test_a_split_with_nothing_to_learn_from_is_refused_by_name():
    with pytest.raises(ValueError, match=r"train: expected a pair of lines with 1 to 23 tokens .* got none among 2"):
        run(Parallel(["", "word " * 30], ["niente", "parola"]))


def test_what_is_not_given_is_not_changed_and_steps_take_the_place_of_minutes():
    config = TrainingConfig(minutes=2.0)
    assert changed(config, steps=None, seed=None) == config
    assert changed(config, steps=7, seed=4) == TrainingConfig(steps=7, seed=4)


def test_every_recipe_has_a_training_and_a_validation_split():
    assert all({"train", "validation"} <= set(recipe.splits) for name, recipe in RECIPES.items() if name != "grammar")
    assert run_module.SECONDS_BETWEEN_SAVES > 0
