"""Who was graded by older rules: by a different catalogue, released notebook or grader than there is now, or by other
due dates, extensions and late rules."""

import json
from collections.abc import Mapping
from pathlib import Path

from nbgrader.api import MissingEntry

from autograder import catalogue
from autograder.catalogue.exercise import Assignment
from autograder.grade import changes
from autograder.grade.journal import Journals
from autograder.policy import late, points
from autograder.reports import results


def outdated(root: Path, assignment: str) -> dict[str, str]:
    """Student -> what has changed since they were graded, for everyone whose grade is based on older rules."""
    return outdated_of(root, assignment, _graded(root, assignment))


def _graded(root: Path, assignment: str) -> dict[str, Path]:
    """Student -> the folder with their graded notebooks."""
    places = results.directory(root)
    folders = Path(places.format_path(places.autograded_directory, "*", assignment))
    return {path.parent.name: path for path in root.glob(str(folders.relative_to(root))) if any(path.glob("*.ipynb"))}


def outdated_of(root: Path, assignment: str, graded: Mapping[str, Path]) -> dict[str, str]:
    """The same for these students. graded: student -> the folder with their graded notebooks.

    The log has the versions of what `grade` graded. For what plain nbgrader graded only the points are known, from the
    notebook.
    """
    now = changes.versions(assignment, root / "exercises" / assignment)
    logged, entry = Journals(root, assignment).last_grades(), catalogue.find_assignment(assignment)
    late_now = outdated_lateness(root, assignment)
    found = {}
    for student, folder in sorted(graded.items()):
        if student in logged:
            moved = changes.rules_changed(logged[student]["versions"], now)
            why = f"{_listed(moved)} changed" if moved else ""
        else:
            why = _other_points(folder, entry) if entry else ""
        reasons = [reason for reason in (why, late_now.get(student)) if reason]
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


def not_in_gradebook(root: Path, assignment: str) -> list[str]:
    """Students with a graded notebook and nothing in the gradebook, which was emptied or restored."""
    places = results.directory(root)
    if not results.has_gradebook(places):
        return []
    with results.gradebook_of(places) as gradebook:
        return sorted(
            _graded(root, assignment).keys() - {row.student.id for row in gradebook.assignment_submissions(assignment)}
        )


def remarks(root: Path, assignment: str) -> list[str]:
    """Lines for a teacher about grades that should not be given to students yet."""
    found = outdated_lateness(root, assignment)
    lines = [f"{assignment}, {student}: {stale}." for student, stale in found.items()]
    again = f"python -m autograder grade {assignment} --outdated settles it."
    nothing = f"graded, and the gradebook holds nothing of it: python -m autograder grade {assignment}"
    lost = [f"{assignment}, {student}: {nothing}" for student in not_in_gradebook(root, assignment)]
    return [*lines, *([again] if lines else []), *lost]


def _other_points(folder: Path, entry: Assignment) -> str:
    try:
        notebook = json.loads((folder / f"{entry.notebook}.ipynb").read_text(encoding="utf-8"))
        other = [change for change in points.disagreements(notebook, entry) if change.graded]
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return "the graded notebook cannot be read"
    return "; ".join(f"{change.where} was worth {change.stated}, is worth {change.counted}" for change in other)


def _listed(what: list[str]) -> str:
    return what[0] if len(what) == 1 else f"{', '.join(what[:-1])} and {what[-1]}"
