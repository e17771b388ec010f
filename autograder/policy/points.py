"""Writes an exercise's points from the catalogue to the notebooks, and checks that released notebooks agree with it.

An exercise's points are in its check cell's metadata, where nbgrader reads what it is worth; in the line below its
task; and in the table at the head of its notebook. `release` writes all of these; a chapter computes the sum when it
is built. What grades refuses to begin where a released notebook counts otherwise, since a grade of 3 could then mean
3 of 3 or 3 of 6.
"""

import copy
import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from autograder import course
from autograder.catalogue.exercise import Assignment, ByHand, Exercise
from autograder.course import CHECK_SUFFIX, CourseError

NUMBER = r"\d+(?:\.\d+)?"
TASK = re.compile(rf"{NUMBER} points? \({NUMBER} visible(?:, {NUMBER} hidden)?\)")
ROW = re.compile(rf"^(\| *(?P<number>\d+\.\d+) *\|.*\| *)(?P<points>{NUMBER})( *\| *)$", re.MULTILINE)
_NAME = re.compile(r"\w+ = |\w+\(|\w+ (is )?\([A-Za-z]|[b-zA-Z]\b|a and b\b")


class Change(NamedTuple):
    """A change of points in a notebook. graded: whether nbgrader reads them there."""

    where: str
    stated: str
    counted: str
    graded: bool

    def __str__(self) -> str:
        return f"{self.where}: {self.stated or 'nothing'}, in the catalogue {self.counted}"


def write(notebook: dict[str, Any], assignment: Assignment) -> list[Change]:
    """Write the catalogue's points into a notebook; returns the changes. Prose without points is not changed."""
    changes: list[Change] = []
    exercises = {exercise.id: exercise for exercise in assignment.exercises}
    by_hand = {each.id: each for each in assignment.by_hand}
    numbers = {each.number: each for each in (*assignment.exercises, *assignment.by_hand)}
    for cell in notebook["cells"]:
        name, marks = cell.get("id", ""), cell.get("metadata", {}).get("nbgrader") or {}
        grade_id = str(marks.get("grade_id", ""))
        graded = exercises.get(grade_id.removesuffix(CHECK_SUFFIX)) or by_hand.get(grade_id)
        if graded is not None and marks.get("grade") and marks.get("points") != graded.points:
            changes.append(Change(f"the check of {graded.id}", _said(marks.get("points")), f"{graded.points:g}", True))
            marks["points"] = graded.points
        if cell.get("cell_type") != "markdown":
            continue
        task = exercises.get(str(name).removesuffix("-task"))
        if task is not None:
            _rewrite(cell, TASK, lambda _, task=task: phrase(task), f"the task of {task.id}", changes)
        _rewrite(cell, ROW, lambda row: _row(row, numbers), "the table", changes)
    return changes


def disagreements(notebook: dict[str, Any], assignment: Assignment) -> list[Change]:
    """The places in a notebook whose points differ from the catalogue's."""
    return write(copy.deepcopy(notebook), assignment)


def refuse(notebook: dict[str, Any], assignment: Assignment) -> None:
    """Raise CourseError if the points by which nbgrader would grade differ from the catalogue's."""
    wrong = [str(change) for change in disagreements(notebook, assignment) if change.graded]
    if wrong:
        raise CourseError(
            f"{assignment.id}: the released notebook and the catalogue count points differently. {'; '.join(wrong)}. "
            f"`python -m autograder release {assignment.id}` writes the catalogue's points everywhere."
        )


def refuse_worth(worth: dict[str, float], assignment: Assignment) -> None:
    """Raise CourseError if the gradebook's points differ from the catalogue's. worth: grade id -> maximum points
    there."""
    wrong = [
        f"{exercise.id}: {worth[exercise.id + CHECK_SUFFIX]:g} in the gradebook, {exercise.points:g} in the catalogue"
        for exercise in assignment.exercises
        if worth.get(exercise.id + CHECK_SUFFIX, exercise.points) != exercise.points
    ]
    wrong += [
        f"{each.id}: {worth[each.id]:g} in the gradebook, {each.points:g} in the catalogue"
        for each in assignment.by_hand
        if worth.get(each.id, each.points) != each.points
    ]
    if wrong:
        raise CourseError(
            f"{assignment.id}: the gradebook and the catalogue count points differently. {'; '.join(wrong)}. "
            f"`nbgrader generate_assignment {assignment.id}` tells the gradebook; what was graded before is then named "
            "by `grade`, and graded again by `grade --outdated`."
        )


def write_course(root: Path, assignment: Assignment) -> list[str]:
    """Write the catalogue's points into the solution's notebook; returns a line for each change."""
    path = course.notebook_path(root, "solutions", assignment)
    notebook = course.read_notebook(path)
    changes = [f"{path.relative_to(root)}, {change}" for change in write(notebook, assignment)]
    if changes:
        path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return changes


def refuse_cells(root: Path, assignment: Assignment) -> None:
    """Raise CourseError if the solution's notebook lacks a check."""
    path = course.notebook_path(root, "solutions", assignment)
    graded = {
        cell.get("metadata", {}).get("nbgrader", {}).get("grade_id")
        for cell in course.read_notebook(path)["cells"]
        if cell.get("metadata", {}).get("nbgrader", {}).get("grade")
    }
    wanted = [*(exercise.id + CHECK_SUFFIX for exercise in assignment.exercises), *(e.id for e in assignment.by_hand)]
    if missing := [name for name in wanted if name not in graded]:
        raise CourseError(f"{path} does not agree with the catalogue: no graded cell {', '.join(missing)}.")


def sentence(hint: str) -> str:
    """A hint of the catalogue, capitalized unless it begins with a name: `a` and `A` differ."""
    return hint if _NAME.match(hint) else hint[0].upper() + hint[1:]


def _rewrite(
    cell: dict[str, Any],
    pattern: re.Pattern[str],
    new: Callable[[re.Match[str]], str],
    where: str,
    changes: list[Change],
) -> None:
    def replaced(found: re.Match[str]) -> str:
        text = new(found)
        if text != found[0]:
            changes.append(Change(where, found[0].strip(), text.strip(), False))
        return text

    source = _source(cell)
    written = pattern.sub(replaced, source)
    if written != source:
        cell["source"] = written if isinstance(cell["source"], str) else written.splitlines(keepends=True)


def phrase(exercise: Exercise) -> str:
    """The points as in a task: "3 points (1 visible, 2 hidden)"."""
    points, visible, hidden = exercise.points, exercise.visible_points, exercise.hidden_points
    return f"{points:g} {'point' if points == 1 else 'points'} ({visible:g} visible, {hidden:g} hidden)"


def _row(row: re.Match[str], numbers: Mapping[str, Exercise | ByHand]) -> str:
    exercise = numbers.get(row["number"])
    return row[0] if exercise is None else f"{row[1]}{exercise.points:g}{row[4]}"


def _said(points: Any) -> str:
    return f"{points:g}" if isinstance(points, int | float) else "" if points is None else repr(points)


def _source(cell: dict[str, Any]) -> str:
    source: str | Sequence[str] = cell.get("source", "")
    return source if isinstance(source, str) else "".join(source)
