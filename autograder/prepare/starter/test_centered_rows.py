"""What must hold for centered-rows. `python -m pytest own` runs it."""

import pytest
import torch

from autograder import catalogue
from autograder.diagnosis.explain import judge_and_explain
from autograder.judging.observe import LocalEndpoint
from autograder.judging.verdict import Verdict

EXERCISE = catalogue.find("centered-rows")


def verdict_on(source: str) -> Verdict:
    """The verdict on an answer, hidden probes included. Only for your own answers, which run without a sandbox."""
    namespace = {"torch": torch}
    exec(source, namespace)
    return judge_and_explain(EXERCISE, LocalEndpoint(namespace), key=b"any")


@pytest.mark.parametrize("variant", EXERCISE.correct, ids=lambda variant: variant.name)
def test_a_right_answer_earns_everything(variant):
    assert verdict_on(variant.source).passed


@pytest.mark.parametrize("known", EXERCISE.mistakes, ids=lambda known: known.name)
def test_a_known_mistake_is_called_by_its_name(known):
    assert verdict_on(known.source).misconception == known


def test_an_answer_that_returns_its_input_earns_nothing_hidden():  # CHANGE: laws and cases of your own
    assert verdict_on("def centered_rows(x):\n    return x").points < EXERCISE.points
