"""USE_MINE: the learner's own where there is one that runs, else the package's, and a line that says which."""

import sys

import pytest

from transformer_ref.learner import mine
from transformer_ref.model.softmax import softmax


@pytest.fixture
def notebook(tmp_path, monkeypatch):
    """A function that runs what a set-up cell runs, in a notebook's folder below the learner's."""
    folder = tmp_path / "05_self_attention"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.delenv(mine.GRADED, raising=False)

    def run(use_mine: bool):
        space = {"USE_MINE": use_mine, "part": mine.part}
        exec('softmax = part("softmax")', space)
        return space["softmax"]

    return run


@pytest.mark.parametrize("place", [".", ".."], ids=["beside", "above"])
def test_the_learner_s_own_is_taken_and_said(notebook, capsys, place):
    (mine.Path(place) / mine.FILE).write_text("def softmax(x, dim):\n    return 'mine'\n", "utf-8")
    assert notebook(True)(None, 0) == "mine"
    assert "softmax: yours" in capsys.readouterr().out


def test_a_file_that_changed_is_read_again(notebook):
    for answer in ("first", "second"):
        mine.Path(mine.FILE).write_text(f"def softmax(x, dim):\n    return {answer!r}\n", "utf-8")
        assert notebook(True)(None, 0) == answer


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "There is no my_transformer.py"),
        ("x = 1", "has no softmax"),
        ("x = (", "SyntaxError"),
        ("1 / 0", "ZeroDiv"),
    ],
)
def test_without_one_that_runs_it_is_the_package_s_and_the_line_says_why(notebook, capsys, content, said):
    if content is not None:
        mine.Path(mine.FILE).write_text(content, "utf-8")
    assert notebook(True) is softmax
    printed = capsys.readouterr().out
    assert printed.startswith("softmax: the package's.") and said in printed


def test_nothing_of_the_learner_s_is_run_unless_they_ask_for_it_nor_under_grading(notebook, monkeypatch, capsys):
    mine.Path(mine.FILE).write_text("raise AssertionError('it was run')", "utf-8")
    assert notebook(False) is softmax
    assert "the package's" in capsys.readouterr().out
    monkeypatch.setenv(mine.GRADED, "1")
    assert notebook(True) is softmax
    assert capsys.readouterr().out == ""


def test_what_the_package_gives_exists_under_every_name_it_is_given():
    for name in mine.GIVEN:
        space = {"part": mine.part}
        assert callable(eval(f"part({name!r})", space))
    with pytest.raises(ValueError, match="name: expected one of .*softmax"):
        mine.part("no_such_part")


DATACLASS = """
from __future__ import annotations
from dataclasses import dataclass

@dataclass
class Sizes:
    d: int

def softmax(x, dim):
    return Sizes(d=dim)

def scaled_scores(sizes):
    return isinstance(sizes, Sizes)
"""


def test_two_parts_come_from_one_module_and_a_dataclass_in_it_finds_itself(notebook):
    mine.Path(mine.FILE).write_text(DATACLASS, "utf-8")
    space = {"USE_MINE": True, "part": mine.part}
    exec('first, second = part("softmax"), part("scaled_scores")', space)
    assert space["second"](space["first"](None, 3))
    assert sys.modules["my_transformer"].Sizes is type(space["first"](None, 3))


def test_a_file_that_exits_does_not_end_the_notebook_and_leaves_the_old_module(notebook, capsys):
    mine.Path(mine.FILE).write_text("def softmax(x, dim):\n    return 'mine'\n", "utf-8")
    notebook(True)
    before = sys.modules["my_transformer"]
    mine.Path(mine.FILE).write_text("raise SystemExit(3)", "utf-8")
    assert notebook(True) is softmax and sys.modules["my_transformer"] is before
    assert "stops with SystemExit" in capsys.readouterr().out
