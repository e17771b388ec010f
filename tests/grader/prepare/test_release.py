"""`release` checks an assignment when anything that decides the outcome has changed, and hands out nothing
unchecked."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import graded_class
import pytest

from autograder import catalogue, course
from autograder.prepare import check_cache, release
from autograder.prepare.sample_class import ASSIGNMENT
from autograder.prepare.trial import Trials


@pytest.fixture
def folder(released, tmp_path):
    """A released course that a test may change."""
    return graded_class.twin(tmp_path / "course", released())


@pytest.fixture
def judged(monkeypatch):
    """The ids of exercises whose answers are judged, in order."""
    names, judge = [], Trials.judge

    def counting(self, exercise, *arguments, **options):
        names.append(exercise.id)
        return judge(self, exercise, *arguments, **options)

    monkeypatch.setattr(Trials, "judge", counting)
    return names


def change_solution(folder: Path, old: str, new: str) -> None:
    """Change the solution of `attend`."""
    path = course.notebook_path(folder, "solutions", ASSIGNMENT)
    notebook = course.read_notebook(path)
    (cell,) = (cell for cell in notebook["cells"] if cell["id"] == "attend")
    source = "".join(cell["source"])
    assert old in source
    cell["source"] = source.replace(old, new)
    path.write_text(json.dumps(notebook), encoding="utf-8")


def exercises(folder: Path) -> dict[str, tuple[int, bytes]]:
    paths = [path for path in (folder / "exercises").rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): (path.stat().st_mtime_ns, path.read_bytes()) for path in paths}


def test_what_has_not_changed_is_released_without_another_check(folder, judged, capsys):
    before = exercises(folder)
    assert release.release([ASSIGNMENT.id], folder) == 0
    assert judged == []
    assert "unchanged since the last check: 1 assignment" in capsys.readouterr().out
    assert exercises(folder) == before


def test_exercises_that_somebody_changed_are_written_anew_without_another_check(folder, judged):
    before = {name: content for name, (_, content) in exercises(folder).items()}
    path = course.notebook_path(folder, "exercises", ASSIGNMENT)
    path.write_text("{}", encoding="utf-8")
    (path.parent / "left over.txt").touch()
    assert release.release([ASSIGNMENT.id], folder) == 0
    assert judged == [] and {name: content for name, (_, content) in exercises(folder).items()} == before


def test_a_changed_solution_is_checked_again_and_so_are_its_blanks(folder, judged, capsys):
    change_solution(folder, "### BEGIN SOLUTION", "### BEGIN SOLUTION\n    # a remark")
    assert release.release([ASSIGNMENT.id], folder) == 0
    assert judged == 2 * [exercise.id for exercise in ASSIGNMENT.exercises]
    assert "checking its solutions and blanks, 1 of 1 (changed: the solution)" in capsys.readouterr().out


def test_check_checks_also_what_has_not_changed(folder, judged):
    assert release.release([ASSIGNMENT.id], folder, check=True) == 0
    assert judged == 2 * [exercise.id for exercise in ASSIGNMENT.exercises]


def test_a_solution_that_fails_is_not_released_and_fails_again(folder, judged):
    before = exercises(folder)
    change_solution(folder, "W @ V", "W @ V + 1")
    for _ in range(2):
        with pytest.raises(course.CourseError, match="the solution of attend does not earn everything"):
            release.release([ASSIGNMENT.id], folder)
        assert judged and exercises(folder) == before
        judged.clear()


def test_a_blank_that_earns_points_is_not_handed_out(folder):
    before = exercises(folder)
    change_solution(folder, "### BEGIN SOLUTION", "return W @ V\n    ### BEGIN SOLUTION")
    with pytest.raises(course.CourseError, match="the blank of attend earns"):
        release.release([ASSIGNMENT.id], folder)
    assert exercises(folder) == before
    assert list((folder / "classroom").glob(".released*")) == []


def test_blanks_that_come_out_differently_are_checked_again(folder, judged):
    path = folder / check_cache.FILE
    known = json.loads(path.read_text(encoding="utf-8"))
    known[ASSIGNMENT.id][check_cache.BLANKS] = "another digest"
    path.write_text(json.dumps(known), encoding="utf-8")
    assert release.release([ASSIGNMENT.id], folder) == 0
    assert judged == [exercise.id for exercise in ASSIGNMENT.exercises]


def test_a_difference_in_any_input_is_a_reason_to_check(folder):
    inputs = check_cache.inputs(folder, ASSIGNMENT)
    known = check_cache.CheckCache(folder)
    assert known.reason(ASSIGNMENT, inputs) == ""
    for name in inputs:
        assert known.reason(ASSIGNMENT, {**inputs, name: "another"}) == f"changed: {name}"
    assert known.reason(catalogue.ASSIGNMENTS[0], inputs) == "not checked before"


@pytest.mark.parametrize("content", ["", "{", "[]", '{"05_self_attention": 1}'])
def test_a_record_that_cannot_be_read_means_that_nothing_was_checked(folder, content):
    (folder / check_cache.FILE).write_text(content, encoding="utf-8")
    now = check_cache.inputs(folder, ASSIGNMENT)
    assert check_cache.CheckCache(folder).reason(ASSIGNMENT, now) == "not checked before"


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("the solution", "solutions/05_self_attention/self_attention.ipynb"),
        ("the solution", "solutions/05_self_attention/new.txt"),
        ("nbgrader_config.py", "nbgrader_config.py"),
        ("the catalogue", "autograder/catalogue/ch05_self_attention/attend.py"),
        ("the grader", "autograder/judging/judge.py"),
        ("the grader", "autograder/sandbox/new.py"),
        ("the grader", "autograder/catalogue/probes.py"),
        ("transformer_ref", "transformer_ref/model/attention.py"),
        ("transformer_ref", "transformer_ref/recorded/new.json"),
        (None, "autograder/catalogue/ch06_multi_head_attention/split_heads.py"),
    ],
)
def test_a_changed_file_changes_exactly_its_input(folder, monkeypatch, name, file):
    for package in ("autograder", "transformer_ref"):
        shutil.copytree(course.find_root() / package, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(check_cache, "GRADER", folder / "autograder")
    monkeypatch.setattr(check_cache, "REFERENCE", folder / "transformer_ref")
    monkeypatch.setattr(check_cache, "CATALOGUE", folder / "autograder" / "catalogue")

    def inputs() -> dict[str, str]:
        check_cache._installed.cache_clear()
        return check_cache.inputs(folder, ASSIGNMENT)

    before = inputs()
    with (folder / file).open("a", encoding="utf-8") as changed:
        changed.write("\n")
    after = inputs()
    check_cache._installed.cache_clear()
    assert [each for each in before if before[each] != after[each]] == ([name] if name else [])


IMPORTED = """
import importlib, json, sys
from autograder import catalogue
for assignment in catalogue.ASSIGNMENTS:
    for name in [name for name in sys.modules if name.startswith("autograder.catalogue.ch") and name[23:25].isdigit()]:
        del sys.modules[name]
    importlib.import_module(f"autograder.catalogue.ch{assignment.id}").ASSIGNMENT.exercises
    files = [str(getattr(module, "__file__", "")) for module in sys.modules.values()]
    print(json.dumps([assignment.id, [file for file in files if "/autograder/catalogue/ch" in file]]))
"""


def test_every_entry_that_is_imported_for_an_assignment_is_among_its_inputs():
    """Chapter 08 uses answers of chapter 05: a change there decides in both."""
    done = subprocess.run([sys.executable, "-c", IMPORTED], capture_output=True, text=True, check=True)
    imported = dict(map(json.loads, done.stdout.splitlines()))
    for assignment in catalogue.ASSIGNMENTS:
        files = {Path(file) for file in imported[assignment.id] if Path(file).parent.name != "catalogue"}
        assert len(files) > len(assignment.exercises)
        assert files <= set(check_cache.entries(assignment)), assignment.id
    lent = [file for file in imported["08_masks"] if "ch05_self_attention" in file]
    assert lent
