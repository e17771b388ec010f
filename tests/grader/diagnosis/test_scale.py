"""Points on a scale: how good a list of texts is decides a share of them."""

import pytest
import torch

from autograder.catalogue.ch12_capstone import sentences, symptoms, translate
from autograder.catalogue.exercise import Case, Scale
from autograder.catalogue.probes import hidden
from autograder.judging import compare
from autograder.judging.observation import Observation, Outcome, Raised

RIGHT = ["a b", "c d", "e f", "g h"]
SCALE = Scale(lambda wanted, got: 100 * sum(map(str.__eq__, wanted, got)) / len(wanted), 25.0, 75.0, "percent")
PROBE = hidden("texts", Case((RIGHT,)), scale=SCALE)


def outcome_of(result):
    expected, got = Observation(list(RIGHT)), Observation(result)
    return Outcome(PROBE, Case((RIGHT,)), None, expected, got, compare.difference(expected, got, PROBE))


@pytest.mark.parametrize(("right", "share"), [(0, 0.0), (1, 0.0), (2, 0.5), (3, 1.0), (4, 1.0)])
def test_points_grow_in_proportion_between_none_and_full(right, share):
    outcome = outcome_of([*RIGHT[:right], *["x"] * (4 - right)])
    assert outcome.share == pytest.approx(share)
    assert outcome.passed is (share == 1.0)


@pytest.mark.parametrize(
    ("result", "kind"),
    [
        (None, "type"),
        ("a b", "type"),
        (RIGHT[:3], "length"),
        ([*RIGHT[:3], None], "type"),
        (Raised("ValueError", "no"), "error"),
    ],
)
def test_what_is_no_list_of_as_many_texts_earns_nothing(result, kind):
    outcome = outcome_of(result)
    assert (outcome.difference.kind, outcome.share) == (kind, 0.0)


def test_a_translation_that_never_ends_costs_no_more_than_a_long_one():
    wanted, topo = ["Il topo vede la casa."] * 2, "Il topo. "
    long, endless = ([topo * times] * 2 for times in (symptoms.READ // len(topo) + 1, 10_000))
    assert translate.measured(wanted, endless) == translate.measured(wanted, long)
    assert symptoms.words(endless[0]) == symptoms.words(long[0])


def test_old_lines_are_forgotten_but_not_those_that_everybody_is_asked(monkeypatch):
    monkeypatch.setattr(sentences, "ITALIAN", {"": ""})
    first = sentences.unseen(torch.Generator().manual_seed(0))
    for part in range(25):
        sentences.note({f"line {part} {n}": "riga" for n in range(1_000)})
    assert len(sentences.ITALIAN) == sentences.KEPT
    assert set(first) < set(sentences.ITALIAN)
    assert "line 24 999" in sentences.ITALIAN and "line 2 0" not in sentences.ITALIAN
