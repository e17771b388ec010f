"""What earlier sessions have earned: kept, believed only for the code that earned it, and never in the way."""

import json
import linecache
import os
from unittest.mock import Mock

import pytest

from autograder import catalogue
from autograder import check as check_module
from autograder.course import PROGRESS
from autograder.notebook import own_check, progress_store
from autograder.notebook.progress_overview import standing
from autograder.notebook.progress_store import Earned

RIGHT = "def dot(a, b):\n    return (a * b).sum()\n"
CHAPTER = "05_self_attention"
WEIGHTS = (
    "import torch\ndef attention_weights(Q, K):\n    return torch.softmax(Q @ K.mT / Q.shape[-1] ** 0.5, dim=-1)\n"
)


@pytest.fixture
def chapter(tmp_path, monkeypatch):
    """The folder of a chapter among a learner's notebooks, where their kernel runs."""
    folder = tmp_path / "mine" / CHAPTER
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    return folder


def cell(source: str) -> dict:
    """The names that a cell leaves behind, its lines where Jupyter puts them."""
    name = f"<cell {len(linecache.cache)} of remembered>"
    linecache.cache[name] = len(source), None, source.splitlines(keepends=True), name
    space: dict = {"__name__": "__main__"}
    exec(compile(source, name, "exec"), space)
    return space


def save(folder, source: str) -> None:
    """The notebook of the chapter with one answer, as a learner has saved it."""
    cells = [{"cell_type": "code", "metadata": {"nbgrader": {"grade_id": "attention-weights"}}, "source": source}]
    (folder / "self_attention.ipynb").write_text(json.dumps({"cells": cells}), encoding="utf-8")


def said(earned=None, namespace=None) -> str:
    return standing(earned or {}, namespace or {})["text"]


def line(text: str, name: str) -> str:
    return next(each for each in text.splitlines() if f" {name} " in each)


def test_a_decorated_answer_is_known_by_its_own_cell(chapter):
    decorated = WEIGHTS.replace("def attention", "@torch.no_grad()\ndef attention")
    progress_store.note("attention-weights", 8.0, 8.0, cell(decorated))
    save(chapter, decorated)
    assert line(said(), "attention-weights").endswith("8 of 8")


def test_a_later_session_knows_what_an_earlier_one_earned(chapter):
    progress_store.note("attention-weights", 8.0, 8.0, cell(WEIGHTS))
    save(chapter, WEIGHTS)
    assert (chapter.parent / PROGRESS).is_file()
    text = said()
    assert line(text, "attention-weights").endswith("8 of 8") and "05 Self-attention: 8 of 30 points" in text
    assert line(text, "Self-attention").endswith("1 of 6") and "Next: 05.1 attend." in text


def test_code_that_has_changed_since_counts_no_longer_in_the_kernel_or_in_the_saved_notebook(chapter):
    progress_store.note("attention-weights", 8.0, 8.0, cell(WEIGHTS))
    changed = WEIGHTS.replace("0.5", "0.4")
    save(chapter, changed)
    for text in (said(), said({}, cell(changed))):
        assert "by code that has changed since: check it again" in line(text, "attention-weights")
        assert line(text, "Self-attention").endswith("0 of 6")
    assert line(said({}, cell(WEIGHTS)), "attention-weights").endswith("8 of 8")  # what the kernel holds goes first


def test_in_the_notebook_of_the_whole_machine_progress_ticks_what_was_built(tmp_path, monkeypatch):
    monkeypatch.setattr(progress_store, "place", lambda: tmp_path)
    shown = standing({"feed-forward": (3.0, 3.0), "layer-norm": (1.0, 4.0)}, {})
    assert "Your machine: 1 of 21 parts" in shown["text"].splitlines()
    assert shown["html"].count("feed-forward ✓") == 4  # in both columns, for a page and for a phone
    assert "Your machine" not in standing({"softmax": (7.0, 7.0)}, {})["text"]


def test_comments_and_layout_are_no_change_of_code(chapter):
    progress_store.note("attention-weights", 8.0, 8.0, cell(WEIGHTS))
    save(chapter, WEIGHTS.replace("dim=-1)", "dim=-1)  # rows sum to 1") + "\n\n")
    assert line(said(), "attention-weights").endswith("8 of 8")


@pytest.mark.parametrize("source", ["x = " + "-" * 50_000 + "1", "x = a" + ".b" * 50_000], ids=["signs", "points"])
def test_a_cell_that_python_gives_up_on_is_remembered_by_its_text(source):
    assert progress_store.digest(source) == progress_store.digest(source + "\n") != progress_store.digest(source + "0")


def test_an_answer_that_fails_later_is_no_longer_solved(chapter):
    for points in (8.0, 3.0):
        progress_store.note("attention-weights", points, 8.0, cell(WEIGHTS))
    assert line(said(), "attention-weights").endswith("3 of 8") and line(said(), "Self-attention").endswith("0 of 6")


@pytest.mark.parametrize(
    "broken",
    ["{", "[]", "null", '{"exercises": []}', '{"exercises": {"attend": 1}}', "\xff",
     '{"exercises": {"attend": {"points": 1e9, "of": 4, "code": ""}}}',
     '{"exercises": {"attend": {"points": NaN, "of": 4, "code": ""}}}'],
)  # fmt: skip
def test_a_file_that_cannot_be_read_is_a_sentence_and_is_left_as_it_is(chapter, broken):
    file = chapter.parent / PROGRESS
    file.write_text(broken, encoding="latin-1")
    text = said({"attend": (4.0, 4.0)})
    assert "what earlier sessions earned is not counted. Remove it, and checks write a new one." in text
    assert line(text, "attend").endswith("4 of 4")
    progress_store.note("attend", 4.0, 4.0, {})
    assert file.read_text(encoding="latin-1") == broken


def test_a_folder_that_may_not_be_written_to_costs_nothing(chapter, monkeypatch):
    monkeypatch.setattr(os, "replace", Mock(side_effect=PermissionError(13, "no")))
    progress_store.note("attend", 4.0, 4.0, {})
    assert progress_store.read(chapter.parent).entries == {}


def test_two_notebooks_keep_what_the_other_has_noted(chapter, tmp_path, monkeypatch):
    progress_store.note("attend", 4.0, 4.0, {})
    monkeypatch.chdir(chapter.parent)  # a notebook next to the chapters' folders stores in the same place
    progress_store.note("softmax", 1.0, 7.0, {})
    assert progress_store.read(chapter.parent).entries == {"attend": Earned(4.0, 4.0), "softmax": Earned(1.0, 7.0)}


def test_a_finished_notebook_names_the_next_and_a_finished_course_says_so(chapter):
    def finish(ids):
        told = {name: {"points": 1, "of": 1, "code": ""} for name in ids}
        (chapter.parent / PROGRESS).write_text(json.dumps({"exercises": told}), encoding="utf-8")

    mine = list(catalogue.find_assignment(CHAPTER).exercise_ids)
    finish(mine)
    assert "Next: the notebook 06 Multi-head attention." in said()
    finish([*mine, *(each for each in catalogue.exercise_ids() if each != "dot-product")][:-1])
    finish(catalogue.exercise_ids())
    assert said().endswith("That is all of it.")


def test_a_check_is_noted_where_a_learner_types_and_nowhere_else(chapter, monkeypatch, capsys):
    monkeypatch.setattr(check_module, "_earned", {})
    for state in ("_kept", "_failed"):
        monkeypatch.setattr(own_check, state, {})
    space = cell(WEIGHTS)
    monkeypatch.setattr(check_module, "_shell", lambda: None)
    check_module._check("attention-weights", space, whole=True)
    assert not (chapter.parent / PROGRESS).exists()
    monkeypatch.setattr(check_module, "_shell", object)
    check_module._check("attention-weights", space, whole=True)
    [entry] = progress_store.read(chapter.parent).entries.values()
    assert entry.points == entry.of == 8 and entry.code == progress_store.digest(WEIGHTS)
    assert capsys.readouterr().err == ""
