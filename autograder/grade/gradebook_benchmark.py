"""How long a large course's gradebook takes to answer: `python -m autograder.grade.gradebook_benchmark`.

It fills an SQLite gradebook with drawn points for every student and every assignment of the catalogue, then times what
the grader, the reports and formgrader ask of it. No notebook is graded: that time grows with the submissions handed in
and not with those already stored.
"""

import argparse
import json
import random
import shutil
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import sqlalchemy
import torch
from nbgrader import api
from nbgrader.apps.api import NbGraderAPI
from sqlalchemy.engine import Engine

from autograder import catalogue, course
from autograder.catalogue.exercise import Assignment
from autograder.grade.benchmark import with_text
from autograder.grade.gradebook import Classroom
from autograder.grade.older_rules import outdated_lateness
from autograder.policy import gradebook_indexes, late
from autograder.reports import results
from transformer_ref.device import device_name

RECORDED = Path(__file__).parent / "recorded_gradebook.json"
DUE = datetime(2026, 11, 2, 12)
ASKED = "05_self_attention"


class Answered(NamedTuple):
    """The cost of one request: total seconds, number of database queries, and seconds of the slowest query."""

    seconds: float
    queries: int
    slowest: float


def main() -> None:
    """Fill a gradebook, time the requests, and print the table; with --record also store the result for the book."""
    parser = argparse.ArgumentParser(prog="python -m autograder.grade.gradebook_benchmark", description=__doc__)
    parser.add_argument("--students", type=int, default=1000, metavar="N", help="number of students (default: 1000)")
    parser.add_argument("--record", action="store_true", help="keep the result, and write it into book/measured.md")
    chosen = parser.parse_args()
    root = course.find_root()
    with tempfile.TemporaryDirectory(prefix="gradebook-") as folder:
        found = measure(root, Path(folder), chosen.students)
    print(text(found))
    if chosen.record:
        RECORDED.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        page = root / "book" / "measured.md"
        page.write_text(with_result(page.read_text(encoding="utf-8")), encoding="utf-8")


def measure(root: Path, folder: Path, students: int) -> dict[str, Any]:
    """Time all requests in a course with this number of students, created in the folder."""
    shutil.copy(root / course.MARKER, folder)
    for step in ("solutions", "exercises"):  # formgrader lists what it finds there
        shutil.copytree(root / step, folder / step)
    address = results.directory(folder).db_url
    assignments = catalogue.assignments()
    with api.Gradebook(address, results.directory(folder).course_id) as gradebook:
        fill(gradebook, root, assignments, students)
        gradebook_indexes.create(gradebook)
        gradebook_indexes.count_rows(gradebook)
    return {
        "students": students,
        "assignments": len(assignments),
        "megabytes": round(Path(address.removeprefix("sqlite:///")).stat().st_size / 1e6),
        "processor": device_name(torch.device("cpu")),
        "answered": {name: ask_timed(question)._asdict() for name, question in _questions(folder).items()},
    }


def fill(gradebook: api.Gradebook, root: Path, assignments: tuple[Assignment, ...], students: int) -> None:
    """Store random points for each student in each assignment, with the cells of the released notebooks."""
    names = [f"student-{number:04d}" for number in range(students)]
    for assignment in assignments:
        gradebook.add_assignment(assignment.id, duedate=DUE)
        gradebook.add_notebook(assignment.notebook, assignment.id)
        for cell in course.read_notebook(course.notebook_path(root, "exercises", assignment))["cells"]:
            marked = cell["metadata"].get("nbgrader", {})
            if marked.get("grade"):
                place = (marked["grade_id"], assignment.notebook, assignment.id)
                gradebook.add_grade_cell(*place, max_score=marked["points"], cell_type=cell["cell_type"])
            elif marked.get("solution"):
                gradebook.add_solution_cell(marked["grade_id"], assignment.notebook, assignment.id)
    _insert(gradebook, api.Student, [{"id": name, "first_name": "Ada", "last_name": name} for name in names])
    drawn = random.Random(0)
    for row in gradebook.assignments:
        (notebook,) = row.notebooks
        submissions, notebooks, grades, comments = [], [], [], []
        for name in names:
            submission, submitted = _id(drawn), _id(drawn)
            came = DUE + timedelta(hours=drawn.randint(-48, 48))
            submissions.append({"id": submission, "assignment_id": row.id, "student_id": name, "timestamp": came})
            notebooks.append({"id": submitted, "notebook_id": notebook.id, "assignment_id": submission})
            for cell in notebook.grade_cells:
                points = cell.max_score * drawn.randint(0, 4) / 4
                grades.append({"id": _id(drawn), "notebook_id": submitted, "cell_id": cell.id, "auto_score": points})
            comments += [
                {"id": _id(drawn), "notebook_id": submitted, "cell_id": cell.id} for cell in notebook.solution_cells
            ]
        _insert(gradebook, api.SubmittedAssignment, submissions)
        _insert(gradebook, api.SubmittedNotebook, notebooks)
        _insert(gradebook, api.Grade, grades)
        _insert(gradebook, api.Comment, comments)


def ask_timed(question: Callable[[], Any]) -> Answered:
    """Time one request."""
    with queries() as seconds:
        began = time.monotonic()
        question()
        took = time.monotonic() - began
    return Answered(round(took, 3), len(seconds), round(max(seconds, default=0.0), 3))


def text(found: dict[str, Any]) -> str:
    """The table."""
    lines = [
        f"{found['students']:,} students x {found['assignments']} assignments, a gradebook of {found['megabytes']} MB",
        f"{'':<52}{'seconds':>9}{'queries':>9}{'slowest query, s':>18}",
    ]
    for name, answered in found["answered"].items():
        lines.append(f"{name:<52}{answered['seconds']:>9.2f}{answered['queries']:>9,}{answered['slowest']:>18.3f}")
    return "\n".join(lines)


def with_result(page: str) -> str:
    """The page with the recorded table between its marks."""
    return with_text(page, "gradebook", text(json.loads(RECORDED.read_text(encoding="utf-8"))))


def _questions(folder: Path) -> dict[str, Callable[[], Any]]:
    places, settings = results.directory(folder), results.configuration(folder)
    assignment = results.find_any_assignment(folder, ASKED)
    classroom, formgrader = Classroom(folder, ASKED), NbGraderAPI(places, config=settings)

    def settle() -> None:
        with api.Gradebook(places.db_url, places.course_id) as gradebook:
            late.settle(gradebook, "student-0000", ASKED, late.Rules(percent=10, slip_days=3))

    return {
        "grade: what is stored of one submission": lambda: classroom.recorded("student-0000"),
        "grade: free days shared by one student's work": settle,
        "grade: whose lateness is out of date": lambda: outdated_lateness(folder, ASKED),
        "dashboard, export: a class's points": lambda: results.read_class(folder, assignment),
        "formgrader: all assignments": formgrader.get_assignments,
        "formgrader: an assignment's submissions": lambda: formgrader.get_submissions(ASKED),
        "formgrader: a notebook's submissions": lambda: formgrader.get_notebook_submissions(ASKED, assignment.notebook),
        "formgrader: all students": formgrader.get_students,
        "formgrader: a student's submissions": lambda: formgrader.get_student_submissions("student-0000"),
    }


def _insert(gradebook: api.Gradebook, table: Any, rows: list[dict[str, Any]]) -> None:
    gradebook.db.execute(sqlalchemy.insert(table.__table__), rows)
    gradebook.db.commit()


def _id(drawn: random.Random) -> str:
    return uuid.UUID(int=drawn.getrandbits(128)).hex


@contextmanager
def queries() -> Iterator[list[float]]:
    """While this lasts, the seconds of each query are added to the list."""
    seconds: list[float] = []

    def begin(*arguments: Any) -> None:
        arguments[4].begun = time.monotonic()

    def end(*arguments: Any) -> None:
        seconds.append(time.monotonic() - arguments[4].begun)

    sqlalchemy.event.listen(Engine, "before_cursor_execute", begin)
    sqlalchemy.event.listen(Engine, "after_cursor_execute", end)
    try:
        yield seconds
    finally:
        sqlalchemy.event.remove(Engine, "before_cursor_execute", begin)
        sqlalchemy.event.remove(Engine, "after_cursor_execute", end)


if __name__ == "__main__":
    main()
