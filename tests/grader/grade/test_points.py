"""One truth about points: the catalogue's. Who was graded by others is named, and can be graded again."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from graded_class import contents, grade, gradebook, logs, of, twin
from recorded_class import STUDENTS, replay, results_of, send, small

from autograder import catalogue, course
from autograder.catalogue.exercise import Assignment
from autograder.course import CourseError
from autograder.grade import older_rules, summary
from autograder.grade.messages import Result
from autograder.grade.worker import unchecked
from autograder.policy import points
from autograder.prepare import doctor, release, sample_class, task_cells
from autograder.prepare.sample_class import ASSIGNMENT, ROOT, lay_out

FIRST, SECOND = STUDENTS
PROJECT = catalogue.find("project")


def with_project(changed):
    """The assignment's exercises, with another entry for project."""
    return tuple(changed if each.id == PROJECT.id else each for each in ASSIGNMENT.exercises)


DEARER = Assignment.of(
    ASSIGNMENT.id,
    ASSIGNMENT.notebook,
    with_project(replace(PROJECT, visible_points=1.5, hidden_points=4.5)),
)


def notebook_of(root: Path, step: str) -> dict:
    return course.read_notebook(course.notebook_path(root, step, ASSIGNMENT))


def outdated(root: Path, assignment: str) -> dict[str, str]:
    return older_rules.outdated_of(root, assignment, older_rules.graded_folders(root, assignment))


def with_points(root: Path, given: float) -> None:
    """The released notebook states this number of points for the first exercise."""
    path = course.notebook_path(root, "exercises", ASSIGNMENT)
    notebook = notebook_of(root, "exercises")
    (cell,) = [cell for cell in notebook["cells"] if cell["id"] == f"{PROJECT.id}-check"]
    cell["metadata"]["nbgrader"]["points"] = given
    path.write_text(json.dumps(notebook), encoding="utf-8")


# --- written once ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("assignment", catalogue.ASSIGNMENTS, ids=lambda each: each.id)
def test_every_notebook_states_the_catalogue_s_points(assignment):
    for step in ("solutions", "exercises"):
        notebook = course.read_notebook(course.notebook_path(ROOT, step, assignment))
        assert points.disagreements(notebook, assignment) == []
    points.refuse_cells(ROOT, assignment)


def test_other_points_in_the_catalogue_are_written_into_metadata_task_and_table(tmp_path):
    lay_out(tmp_path)
    changes = points.write_course(tmp_path, DEARER)
    assert [change.partition(", ")[2] for change in changes] == [
        "the table: | 05.4 | `project` | every word through one and the same matrix | 3 |, in the catalogue "
        "| 05.4 | `project` | every word through one and the same matrix | 6 |",
        "the task of project: 3 points (1 visible, 2 hidden), in the catalogue 6 points (1.5 visible, 4.5 hidden)",
        "the check of project: 3, in the catalogue 6",
    ]
    assert points.write_course(tmp_path, DEARER) == []
    assert points.write_course(tmp_path, ASSIGNMENT) != []
    name = f"solutions/{ASSIGNMENT.id}/{ASSIGNMENT.notebook}.ipynb"
    assert (tmp_path / name).read_text(encoding="utf-8") == (ROOT / name).read_text(encoding="utf-8")


def test_release_refuses_a_solution_without_a_check(tmp_path):
    lay_out(tmp_path)
    path = course.notebook_path(tmp_path, "solutions", ASSIGNMENT)
    path.write_text(path.read_text(encoding="utf-8").replace('"project-check"', '"project-chek"'), encoding="utf-8")
    with pytest.raises(CourseError, match="no graded cell project-check"):
        release.release([ASSIGNMENT.id], tmp_path)


@pytest.mark.parametrize("assignment", catalogue.ASSIGNMENTS, ids=lambda each: each.id)
def test_every_notebook_says_the_hints_the_difficulty_and_the_minutes_of_its_entries(assignment):
    for step in ("solutions", "exercises"):
        assert task_cells.rewrite(course.read_notebook(course.notebook_path(ROOT, step, assignment)), assignment) == []


def test_hints_difficulty_and_minutes_are_written_once_and_put_right_in_the_notebook():
    harder = replace(PROJECT, difficulty=3, minutes=45, hints=("other words", *PROJECT.hints[1:]))
    notebook = notebook_of(ROOT, "solutions")
    changed = Assignment.of(ASSIGNMENT.id, ASSIGNMENT.notebook, with_project(harder))
    assert task_cells.rewrite(notebook, changed) == ["project-task", "project-hints"]
    text = json.dumps(notebook, ensure_ascii=False)
    assert "Difficulty ●●● · about 45 minutes · 3 points (1 visible, 2 hidden)" in text and "Other words" in text
    assert task_cells.rewrite(notebook, changed) == []


# --- refused where they disagree -------------------------------------------------------------------------------------


@pytest.mark.xdist_group("grade")
def test_nobody_is_graded_while_notebook_and_catalogue_count_differently(ungraded, tmp_path):
    folder = small(tmp_path / "course", ungraded)
    with_points(folder, 6)
    words = "the check of project: 6, in the catalogue 3"
    for done in (grade(folder), sample_class.nbgrader(folder, "autograde", ASSIGNMENT.id)):
        assert done.returncode != 0
        assert words in f"{done.stdout}{done.stderr}"
    assert not (folder / "classroom" / "autograded").exists()
    (finding,) = [each for each in doctor.examine(folder) if each.about == "points"]
    assert words in finding.seen and finding.fatal


@pytest.mark.xdist_group("grade")
def test_nobody_is_graded_while_gradebook_and_catalogue_count_differently(ungraded, tmp_path):
    folder = small(tmp_path / "course", ungraded)
    with gradebook(folder) as book:
        book.find_grade_cell(f"{PROJECT.id}-check", ASSIGNMENT.notebook, ASSIGNMENT.id).max_score = 6
        book.db.commit()
    done = grade(folder)
    assert done.returncode == 2
    assert "project: 6 in the gradebook, 3 in the catalogue" in done.stderr
    (finding,) = [each for each in doctor.examine(folder) if each.about == "points"]
    assert "project: 6 in the gradebook" in finding.seen


# --- who was graded by older rules -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def results(ours) -> dict[str, Result]:
    return results_of(ours)


@pytest.fixture
def graded(ours, results, tmp_path, monkeypatch) -> Path:
    """The class of two after grading, one of them by another catalogue than there is now."""
    folder = small(tmp_path / "course", ours)
    shutil.rmtree(folder / "classroom" / "log")
    replay(monkeypatch, results)
    for student in STUDENTS:
        assert grade(folder, "--student", student, "--force").returncode == 0
    path = sorted((folder / "classroom" / "log" / "grade" / ASSIGNMENT.id).glob("*.jsonl"))[0]
    of_then(path)
    return folder


def of_then(path: Path) -> None:
    start, *rest = path.read_text(encoding="utf-8").splitlines()
    start = json.loads(start)
    start["versions"]["the catalogue (ch05_self_attention)"] = "as it was"
    path.write_text("\n".join([json.dumps(start), *rest]) + "\n", encoding="utf-8")


@pytest.mark.xdist_group("grade")
def test_whoever_was_graded_by_older_rules_is_named_and_graded_again_alone(graded):
    done = grade(graded)
    assert done.returncode == 0
    assert "All 2 submissions are graded already" in done.stdout
    assert f"graded by older rules: 1\n    {FIRST}: the catalogue (ch05_self_attention) changed" in done.stdout
    assert f"grade {ASSIGNMENT.id} --outdated grades them again" in done.stdout
    assert outdated(graded, ASSIGNMENT.id) == {FIRST: "the catalogue (ch05_self_attention) changed"}
    done = grade(graded, "--outdated")
    assert done.returncode == 0
    assert [line["student"] for line in of(logs(graded)[-1], "graded")] == [FIRST]
    assert "older rules: 1" not in done.stdout
    assert "0 of 2 were graded by older rules" in grade(graded, "--outdated").stdout
    assert outdated(graded, ASSIGNMENT.id) == {}


@pytest.mark.xdist_group("grade")
def test_what_plain_nbgrader_graded_for_other_points_is_named_too(graded, monkeypatch):
    shutil.rmtree(graded / "classroom" / "log")
    assert outdated(graded, ASSIGNMENT.id) == {}
    monkeypatch.setattr(catalogue, "find_assignment", lambda name: DEARER)
    why = "the check of project was worth 3, is worth 6"
    assert outdated(graded, ASSIGNMENT.id) == dict.fromkeys(STUDENTS, why)


@pytest.mark.xdist_group("grade")
def test_a_run_that_goes_on_after_the_rules_changed_measures_everyone_alike(ungraded, results, tmp_path, monkeypatch):
    folder = small(tmp_path / "course", ungraded)
    at = replay(monkeypatch, results)
    at(SECOND, lambda: send(2))
    assert grade(folder).returncode == 130
    (path,) = (folder / "classroom" / "log" / "grade" / ASSIGNMENT.id).glob("*.jsonl")
    of_then(path)
    done = grade(folder, "--resume")
    assert done.returncode == 0, done.stderr
    assert "the catalogue (ch05_self_attention) changed. One run measures everyone alike" in done.stdout
    assert sorted(line["student"] for line in of(logs(folder)[-1], "graded")) == list(STUDENTS)
    assert outdated(folder, ASSIGNMENT.id) == {}


def test_the_table_of_the_summary_counts_points_that_a_person_gave():
    """Its columns add up to the mean above it."""
    cell = f"{PROJECT.id}-check"
    event = {"total": 1.5, "most": 3.0, "points": {cell: 3.0}, "by_person": {cell: 1.5}}
    headline, _, row = summary._points([event, {**event, "total": 3.0, "by_person": {}}], {cell: 3.0})
    assert "mean 2.2" in headline and row.split() == [PROJECT.id, "3", "2.25", "50%", "0%"]


def test_the_summary_does_not_name_a_cell_that_only_the_intake_knows():
    timed = {"student": "ada", "seconds": 2.0, "cells": [["own-1", 1.5], ["attend", 0.2]]}
    assert summary._slowest([timed])[0].endswith("ada, 1.5 s of it in a cell that was added or changed")


# --- who was not checked ---------------------------------------------------------------------------------------------


@pytest.mark.xdist_group("grade")
def test_whoever_was_not_checked_is_named_with_the_reason_and_the_exit_code_says_so(
    ungraded, results, tmp_path, monkeypatch
):
    folder = small(tmp_path / "course", ungraded)
    reason = "the notebook's process ended in cell 10"
    mine = {name: results[name] for name in STUDENTS}
    mine[SECOND] = replace(mine[SECOND], unchecked=((PROJECT.id, reason),))
    replay(monkeypatch, mine)
    done = grade(folder)
    assert done.returncode == 1
    assert f"not checked, so look at them: 1\n    {SECOND}, project: {reason}" in done.stdout
    assert contents(folder)[SECOND][1] == 30  # whatever else was checked counts


@pytest.mark.parametrize(
    ("record", "found"),
    [
        ({"state": "not checked", "reason": "it died", "message": "Not checked: it died."}, [("project", "it died")]),
        ({"state": "wrong", "reason": "", "message": "no"}, []),
    ],
)
def test_what_was_not_checked_is_read_from_check_cells_alone(record, found):
    output = {"output_type": "execute_result", "metadata": {"judged": {"exercise": "project", **record}}}
    check = {"metadata": {"nbgrader": {"grade": True}}, "outputs": [output]}
    forged = {"metadata": {"nbgrader": {"grade": False}}, "outputs": [output]}
    assert unchecked({"cells": [forged, check, {"metadata": {}}]}) == found


# --- moved to another machine ----------------------------------------------------------------------------------------


@pytest.mark.xdist_group("grade")
def test_a_course_that_was_moved_grades_on_and_nobody_again(ours, results, tmp_path, monkeypatch):
    """Only the course's folder with its classroom moves; times of files and absolute paths do not matter."""
    folder = tmp_path / "another place" / "course"
    folder.parent.mkdir()
    small(tmp_path / "before", ours)
    shutil.copytree(tmp_path / "before", folder, copy_function=shutil.copyfile)
    shutil.rmtree(tmp_path / "before")
    replay(monkeypatch, results)
    done = grade(folder)
    assert done.returncode == 0, done.stderr
    assert "All 2 submissions are graded already" in done.stdout
    assert "older rules" not in done.stdout
    twin(folder / "classroom" / "submitted" / "einsum", ours / "classroom" / "submitted" / "einsum")
    assert grade(folder).returncode == 0
    assert [line["student"] for line in of(logs(folder)[-1], "graded")] == ["einsum"]
    for name in ("gradebook.db", f"log/grade/{ASSIGNMENT.id}", "receipts"):
        path = folder / "classroom" / name
        for file in [path] if path.is_file() else path.rglob("*.json*"):
            assert str(ours).encode() not in file.read_bytes(), file


@pytest.mark.xdist_group("grade")
def test_code_that_names_tools_which_no_exercise_needs_is_named_to_the_teacher(
    ungraded, results, tmp_path, monkeypatch
):
    folder = small(tmp_path / "course", ungraded)
    assert not any(each.unusual for each in results.values())
    mine = {name: results[name] for name in STUDENTS}
    mine[SECOND] = replace(mine[SECOND], unusual=("ctypes", "fork"))
    replay(monkeypatch, mine)
    done = grade(folder)
    assert done.returncode == 0
    assert f"look at the code: 1\n    {SECOND}: The code names ctypes and fork, which no exercise needs" in done.stdout
