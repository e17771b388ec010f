"""Notebooks as Colab, VS Code, Deepnote and Kaggle save them: read, checked and assembled like any other."""

import json
import random

import damage
import nbformat
import pytest
from nbconvert import NotebookExporter

from autograder import course
from autograder.assemble import gather
from autograder.diagnosis.explain import judge_and_explain
from autograder.intake.rebuild import rebuild
from autograder.judging.observe import LocalEndpoint
from autograder.prepare import sample_class
from autograder.prepare.sample_class import ASSIGNMENT

PLATFORMS = sorted(kind for kind in damage.HONEST if kind.startswith("of_"))
PATH = course.notebook_path(sample_class.ROOT, "exercises", ASSIGNMENT)
RELEASED = nbformat.read(PATH, as_version=4)


def saved_by(platform: str) -> bytes:
    """The solved notebook as this place saves it."""
    notebook, solved = json.loads(PATH.read_text(encoding="utf-8")), sample_class.solved()
    blank = {cell["id"]: "".join(cell["source"]) for cell in notebook["cells"]}
    for cell in notebook["cells"]:
        cell["source"] = solved.get(cell["id"], "".join(cell["source"]))
    return damage.damaged(notebook | {"blank": blank}, [platform], random.Random(platform))


def test_the_places_are_the_ones_that_people_use():
    assert PLATFORMS == ["of_deepnote", "of_google_colab", "of_kaggle", "of_vs_code"]
    assert "5f0e" in saved_by("of_google_colab").decode()  # the widgets whose state nbconvert misses


@pytest.mark.parametrize("platform", PLATFORMS)
def test_every_answer_is_checked_and_passes(platform, capsys):
    rebuilt = rebuild(saved_by(platform), RELEASED)
    assert rebuilt.answered == set(ASSIGNMENT.exercise_ids)
    space: dict = {"__name__": "__main__"}
    for cell in rebuilt.notebook.cells:
        if cell.cell_type == "code" and "explore" not in cell.source and "/kaggle/" not in cell.source:
            exec(compile(cell.source, "cell", "exec"), space)
    report = capsys.readouterr().out
    assert report.count("passed") == len(ASSIGNMENT.exercises)
    for exercise in ASSIGNMENT.exercises:
        assert judge_and_explain(exercise, LocalEndpoint(space), b"key").passed


@pytest.mark.parametrize("platform", PLATFORMS)
def test_what_is_graded_can_be_exported(platform):
    """nbconvert stops at what Colab keeps of widgets; of the rebuilt notebook nothing of that is left."""
    text, _ = NotebookExporter().from_notebook_node(rebuild(saved_by(platform), RELEASED).notebook)
    assert "5f0e" not in text


@pytest.mark.parametrize("platform", PLATFORMS)
def test_every_answer_is_assembled(platform, tmp_path):
    path = tmp_path / "Copy of self_attention.ipynb"
    path.write_bytes(saved_by(platform))
    assert gather.notebooks(tmp_path, [ASSIGNMENT]) == {ASSIGNMENT.id: [path]}
    cells = list(course.code_cells(course.read_notebook(path)))
    for exercise in ASSIGNMENT.exercises:
        found = gather.answer_of(cells, ASSIGNMENT, exercise)
        assert {name for each in found.statements for name in each.binds} >= set(exercise.names)
