"""What a notebook takes from the package instead of the learner's own does what the exercise of that name asks."""

import json
import re
from importlib import import_module

import pytest

from autograder import catalogue
from autograder.diagnosis.explain import judge_and_explain
from autograder.judging.judge import draw_key
from autograder.judging.observe import LocalEndpoint
from autograder.prepare.sample_class import ROOT
from transformer_ref.learner import mine

KEY = draw_key(b"secret", "assignment", "exercise", "source")
BY_NAME = {name: each for a in catalogue.ASSIGNMENTS for each in a.exercises for name in each.names}


@pytest.mark.parametrize("name", mine.GIVEN)
def test_the_package_s_part_would_earn_everything_in_its_exercise(name):
    module, _, attribute = mine.GIVEN[name].rpartition(".")
    exercise = BY_NAME[name]
    verdict = judge_and_explain(exercise, LocalEndpoint({name: getattr(import_module(module), attribute)}), KEY)
    assert [outcome.probe.name for outcome in verdict.outcomes if not outcome.passed] == []
    assert verdict.points == exercise.points


def test_the_notebooks_ask_for_exactly_the_names_that_are_given_and_for_none_of_their_own_chapter():
    asked = set()
    for path in sorted((ROOT / "solutions").glob("[0-9]*/*.ipynb")):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        names = {name for cell in cells for name in re.findall(r'\bpart\("(\w+)"', "".join(cell["source"]))}
        assert all(BY_NAME[name].number[:2] < path.parent.name[:2] for name in names), path.parent.name
        asked |= names
    assert asked == set(mine.GIVEN)
