"""Who was graded by older rules: by a different catalogue, released notebook or grader than there is now, by other
points, or by other due dates, extensions and late rules.

Newer submissions are a different matter: `plan` decides which of them to grade.
"""

import json
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

from nbgrader.api import MissingEntry

from autograder import catalogue
from autograder.catalogue.exercise import Assignment
from autograder.course import CHECK_SUFFIX
from autograder.grade import changes
from autograder.grade.journal import Journals
from autograder.policy import late, points
from autograder.reports import results


def graded_folders(root: Path, assignment: str) -> dict[str, Path]:
    """Student -> the folder with their graded notebooks."""
    places = results.directory(root)
    folders = Path(places.format_path(places.autograded_directory, "*", assignment))
    return {path.parent.name: path for path in root.glob(str(folders.relative_to(root))) if any(path.glob("*.ipynb"))}


def outdated_of(root: Path, assignment: str, graded: Mapping[str, Path]) -> dict[str, str]:
    """Student -> what has changed since they were graded, for everyone whose grade is based on older rules.

    graded: student -> the folder with their graded notebooks. The log has the versions of what `grade` graded. For what
    plain nbgrader graded only the points are known, from the notebook.
    """
    now = changes.versions(assignment, root / "exercises" / assignment)
    logged, entry = Journals(root, assignment).last_grades(), catalogue.find_assignment(assignment)
    late_now = outdated_lateness(root, assignment)
    worth_now = {} if entry else outdated_points(root, assignment)
    found = {}
    for student, folder in sorted(graded.items()):
        if student in logged:
            moved = changes.rules_changed(logged[student]["versions"], now)
            why = f"{_listed(moved)} changed" if moved else ""
        else:
            why = _other_points(folder, entry) if entry else ""
        reasons = [reason for reason in (why or worth_now.get(student), late_now.get(student)) if reason]
        if reasons:
            found[student] = "; ".join(map(str, reasons))
    return found


def outdated_lateness(root: Path, assignment: str) -> dict[str, late.Stale]:
    """Student -> a penalty that differs from the one by the current dates and rules; empty without a gradebook.

    Raises CourseError when the extensions, the settings or the gradebook cannot be read.
    """
    places = results.directory(root)
    if not results.has_gradebook(places):
        return {}
    with results.gradebook_of(places) as gradebook:
        try:
            gradebook.find_assignment(assignment)
        except MissingEntry:
            return {}
        return late.stale(root, results.configuration(root), assignment, gradebook)


def outdated_points(root: Path, assignment: str) -> dict[str, str]:
    """Student -> the cells whose maximum in the gradebook differs from the one of their graded notebook.

    Their points count out of the earlier maximum, so a sum can exceed the current one. Raises CourseError when the
    settings or the gradebook cannot be read.
    """
    worth = _worth_in_gradebook(root, assignment)
    found = {}
    for student, folder in sorted(graded_folders(root, assignment).items()) if worth else ():
        other = [change for path in sorted(folder.glob("*.ipynb")) for change in _other_maximum(path, worth)]
        if other:
            found[student] = "; ".join(other)
    return found


def not_in_gradebook(root: Path, assignment: str) -> list[str]:
    """Students with a graded notebook and nothing in the gradebook, which was emptied or restored."""
    places = results.directory(root)
    if not results.has_gradebook(places):
        return []
    with results.gradebook_of(places) as gradebook:
        stored = {row.student.id for row in gradebook.assignment_submissions(assignment)}
        return sorted(graded_folders(root, assignment).keys() - stored)


def remarks(root: Path, assignment: str) -> list[str]:
    """Lines for a teacher about grades that should not be given to students yet."""
    names = {student.id: student.name_and_id for student in results.read_roster(root)}
    alike: dict[str, list[str]] = defaultdict(list)
    for found in (outdated_points(root, assignment), outdated_lateness(root, assignment)):
        for student, reason in found.items():
            alike[str(reason)].append(names.get(student, student))
    lines = [f"{assignment}, {_first_of(students)}: {reason}." for reason, students in alike.items()]
    again = f"python -m autograder grade {assignment} --outdated settles it."
    nothing = f"graded, and the gradebook holds nothing of it: python -m autograder grade {assignment}"
    lost = [f"{assignment}, {names.get(each, each)}: {nothing}" for each in not_in_gradebook(root, assignment)]
    return [*lines, *([again] if lines else []), *lost]


def _worth_in_gradebook(root: Path, assignment: str) -> dict[tuple[str, str], float]:
    """(notebook, cell) -> its maximum points; empty without a gradebook that has the assignment."""
    places = results.directory(root)
    if not results.has_gradebook(places):
        return {}
    with results.gradebook_of(places) as gradebook:
        try:
            notebooks = gradebook.find_assignment(assignment).notebooks
        except MissingEntry:
            return {}
        return {
            (each.name, cell.name): cell.max_score
            for each in notebooks
            for cell in (*each.grade_cells, *each.task_cells)
        }


def _other_maximum(path: Path, worth: Mapping[tuple[str, str], float]) -> list[str]:
    """A phrase for each graded cell of a notebook whose points differ from the gradebook's."""
    try:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        marks = [cell["metadata"].get("nbgrader") or {} for cell in cells]
        stated = {each["grade_id"]: each["points"] for each in marks if each.get("grade") or each.get("task")}
        return [
            f"{name.removesuffix(CHECK_SUFFIX)} was worth {points:g} points when it was graded, now it is worth "
            f"{worth[path.stem, name]:g}"
            for name, points in stated.items()
            if worth.get((path.stem, name), points) != points
        ]
    except (OSError, ValueError, TypeError, KeyError, AttributeError):  # `outdated_of` names it
        return []


def _first_of(students: list[str]) -> str:
    return ", ".join(students) if len(students) <= 3 else f"{students[0]} and {len(students) - 1} others"


def _other_points(folder: Path, entry: Assignment) -> str:
    try:
        notebook = json.loads((folder / f"{entry.notebook}.ipynb").read_text(encoding="utf-8"))
        other = [change for change in points.disagreements(notebook, entry) if change.graded]
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return "the graded notebook cannot be read"
    return "; ".join(f"{change.where} was worth {change.stated}, is worth {change.counted}" for change in other)


def _listed(what: list[str]) -> str:
    return what[0] if len(what) == 1 else f"{', '.join(what[:-1])} and {what[-1]}"
