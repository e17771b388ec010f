"""What learners read about an exercise uses the field's terms: its task, its docstring, its hints and its messages."""

import json
import re

import pytest

from autograder import catalogue
from autograder.prepare.sample_class import ROOT

INSTEAD = {  # words that were used once, as a pattern -> the term
    r"\b(?:the|its|a|of|these|your|those|large|small) shares?\b(?! of ambiguous)": "probability, weight or fraction",
    r"\b(?:their|the|these|all|sum of) powers\b(?! of (?:2|10|e|W)\b)(?! run| double)": "exponentials",
    r"\b(?:taken?|takes?|took) (?:\w+ )?away\b": "subtracted",
    r"\banew\b": "again",
    r"\bplays? no part\b": "has no effect",
    r"\bthe right (?:numbers|result)\b": "the correct values, the correct result",
    r"\bas (?:it|they) comes?\b(?!, they)": "as it is",
    r"\b(?:told|asked|handed) (?:to|for|of)\b": "say what the program does",
}  # fmt: skip


def read_by_learners(assignment, exercise) -> list[str]:
    path = ROOT / "solutions" / assignment.id / f"{assignment.notebook}.ipynb"
    cells = {cell["id"]: "".join(cell["source"]) for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]}
    code = cells.get(exercise.id, "").partition("### BEGIN SOLUTION")[0]
    messages = [known.message for known in exercise.mistakes]
    return [cells[f"{exercise.id}-task"], code, *exercise.hints, *messages]


@pytest.mark.parametrize(
    ("assignment", "exercise"),
    [pytest.param(each, exercise, id=exercise.id) for each in catalogue.ASSIGNMENTS for exercise in each.exercises],
)
def test_an_exercise_is_stated_in_the_terms_of_the_field(assignment, exercise):
    texts = [" ".join(text.split()) for text in read_by_learners(assignment, exercise)]
    found = {
        f"{text[max(0, hit.start() - 40) : hit.end() + 20]!r}": term
        for text in texts
        for word, term in INSTEAD.items()
        for hit in re.finditer(word, text)
    }
    assert found == {}
