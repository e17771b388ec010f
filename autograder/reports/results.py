"""A graded class as data: what the gradebook holds, and the verdicts that lie in the graded notebooks.

Points come from the gradebook, so that what a teacher entered by hand counts. Verdicts come from the check cells of the
graded notebooks, whose outputs the judge wrote; whatever else a notebook holds is a student's and only ever shown.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode
from nbgrader.api import Gradebook, MissingEntry, SubmittedAssignment
from nbgrader.coursedir import CourseDirectory
from sqlalchemy.engine import make_url
from sqlalchemy.exc import SQLAlchemyError
from traitlets.config import Config, PyFileConfigLoader

from autograder import catalogue
from autograder.catalogue.exercise import Assignment, Exercise, Misconception
from autograder.course import CHECK_SUFFIX, MARKER, CourseError, code_cells
from autograder.intake.rebuild import NOTE_ID
from autograder.judging.unusual import unusual
from autograder.policy import gradebook_indexes
from autograder.reports import shared_comments


@dataclass(frozen=True)
class Student:
    """A student in the gradebook."""

    id: str
    first_name: str = ""
    last_name: str = ""
    email: str = ""
    lms_user_id: str = ""

    @property
    def name(self) -> str:
        """First and last name, or the id where neither is known."""
        return f"{self.first_name} {self.last_name}".strip() or self.id

    @property
    def name_and_id(self) -> str:
        """The name and the id, or the id where no name is known."""
        return self.id if self.name == self.id else f"{self.name} ({self.id})"


@dataclass(frozen=True)
class GradedCell:
    """Replaces an exercise in an assignment outside the catalogue: a cell that nbgrader grades."""

    id: str
    number: str
    points: float

    @property
    def names(self) -> tuple[str, ...]:
        """Its names."""
        return (self.id,)


@dataclass(frozen=True)
class Result:
    """The result of one exercise of one submission.

    checked: whether a verdict was reached. asked: whether there was an answer that could be tested. alike: the
    fingerprint of a wrong answer that no known mistake explains (see `diagnosis.alike`).
    """

    exercise: Exercise | GradedCell
    points: float
    passed: bool = False
    blank: bool = False
    forbidden: bool = False
    checked: bool = False
    asked: bool = False
    misconception: Misconception | None = None
    message: str = ""
    report: str = ""
    judged_points: float | None = None
    alike: tuple[str, ...] = ()

    @property
    def by_hand(self) -> bool:
        """Whether the gradebook's points differ from the judge's."""
        return self.judged_points is not None and abs(self.points - self.judged_points) > 1e-3

    @property
    def unexplained(self) -> bool:
        """Wrong, and no known mistake explains it."""
        return self.asked and not (self.passed or self.blank or self.forbidden or self.misconception)


@dataclass(frozen=True)
class Graded:
    """One submission after grading.

    notes: corrections made before grading. seconds: cell's name -> its running time. comments: the teacher's, (cell's
    name, text). read_by_a_person: cell's name -> its points, None if not read yet. unusual: names in the code that no
    exercise needs.
    """

    student: Student
    results: tuple[Result, ...]
    raw_score: float
    penalty: float
    timestamp: datetime | None
    needs_manual_grade: bool
    notes: tuple[str, ...] = ()
    seconds: tuple[tuple[str, float], ...] = ()
    comments: tuple[tuple[str, str], ...] = ()
    read_by_a_person: Mapping[str, float | None] = field(default_factory=dict)
    unusual: tuple[str, ...] = ()

    @property
    def score(self) -> float:
        """Points after the late penalty, never below zero."""
        return max(0.0, self.raw_score - self.penalty)


@dataclass(frozen=True)
class Class:
    """Everyone on the roster, and the graded submissions."""

    assignment: Assignment
    possible: float
    graded: tuple[Graded, ...]
    absent: tuple[Student, ...]


def configuration(root: Path) -> Config:
    """The course's nbgrader configuration, read from its file."""
    return PyFileConfigLoader(MARKER, path=str(root)).load_config()


def directory(root: Path) -> CourseDirectory:
    """nbgrader's course directory, with the paths of the course's files and gradebook."""
    return CourseDirectory(config=configuration(root))


def has_gradebook(places: CourseDirectory) -> bool:
    """Whether there is a gradebook; opening a missing file would create it. A server is assumed to have one."""
    url = make_url(places.db_url)
    return not url.drivername.startswith("sqlite") or Path(url.database or "").is_file()


def gradebook_of(places: CourseDirectory) -> Gradebook:
    """The course's gradebook. Raises CourseError saying why it cannot be read."""
    try:
        gradebook = Gradebook(places.db_url, places.course_id)
        gradebook_indexes.create(gradebook)
        return gradebook
    except (ImportError, RuntimeError, SQLAlchemyError) as error:
        where = make_url(places.db_url).render_as_string(hide_password=True)
        raise CourseError(f"The gradebook {where} cannot be read: {' '.join(str(error).split())[:200]}") from error


def read_roster(root: Path) -> tuple[Student, ...]:
    """Everyone in the gradebook; empty if there is none yet. Raises CourseError if it cannot be read."""
    places = directory(root)
    if not has_gradebook(places):
        return ()
    with gradebook_of(places) as gradebook:
        return tuple(student_of(row) for row in gradebook.students)


def find_assignment(assignment_id: str) -> Assignment:
    """The assignment of that id in the catalogue. Raises CourseError, naming all assignments, if there is none."""
    assignment = catalogue.find_assignment(assignment_id)
    if assignment is None:
        known = ", ".join(assignment.id for assignment in catalogue.assignments())
        raise CourseError(
            f"The catalogue has no assignment {assignment_id!r}: it has {known}. This command reads verdicts, which "
            "exist only for these; export and feedback take every assignment of the gradebook."
        )
    return assignment


def find_any_assignment(root: Path, assignment_id: str) -> Assignment:
    """The assignment of that id: the catalogue's, or a plain one that the gradebook knows, whose exercises are then its
    graded cells. Raises CourseError when there is neither."""
    found = catalogue.find_assignment(assignment_id)
    if found is not None:
        return found
    places = directory(root)
    if has_gradebook(places):
        with gradebook_of(places) as gradebook:
            try:
                notebooks = gradebook.find_assignment(assignment_id).notebooks
            except MissingEntry:
                notebooks = []
            if notebooks:
                cells = [
                    GradedCell(name := _cell_name(notebooks, notebook.name, cell.name), name, cell.max_score)
                    for notebook in notebooks
                    for cell in (*notebook.grade_cells, *notebook.task_cells)
                ]
                return Assignment.of(assignment_id, notebooks[0].name, cells)
    known = ", ".join(assignment.id for assignment in catalogue.assignments())
    raise CourseError(
        f"There is no assignment {assignment_id!r}: the gradebook has none, and the catalogue has {known}."
    )


def read_class(root: Path, assignment: Assignment) -> Class:
    """All students' results. Raises CourseError if the assignment has not been released or nothing is graded yet."""
    places = directory(root)
    if not has_gradebook(places):
        raise CourseError(f"There is no gradebook yet: nbgrader generate_assignment {assignment.id} makes it.")
    with gradebook_of(places) as gradebook:
        try:
            possible = gradebook.find_assignment(assignment.id).max_score
        except MissingEntry as error:
            raise CourseError(
                f"The gradebook does not know {assignment.id} yet: nbgrader generate_assignment {assignment.id}"
            ) from error
        submissions = {row.student.id: row for row in gradebook.assignment_submissions(assignment.id)}
        roster = [student_of(row) for row in gradebook.students]
        comments = shared_comments.read(root)
        graded = tuple(
            _graded(places, assignment, student, submissions[student.id], comments)
            for student in roster
            if student.id in submissions
        )
    if not graded:
        raise CourseError(f"Nothing of {assignment.id} is graded yet: nbgrader autograde {assignment.id}")
    absent = tuple(student for student in roster if student.id not in submissions)
    return Class(assignment, possible, graded, absent)


def check_cells(notebook: NotebookNode) -> dict[str, NotebookNode]:
    """Exercise id -> its check cell, by the grade id that the released notebook gave it."""
    cells = {}
    for cell in notebook.cells:
        graded = cell.metadata.get("nbgrader", {})
        if cell.cell_type == "code" and graded.get("grade"):
            cells[graded["grade_id"].removesuffix(CHECK_SUFFIX)] = cell
    return cells


def result_of(exercise: Exercise, cell: NotebookNode | None, points: float) -> Result:
    """The result in a check cell; `points` are the gradebook's."""
    record, report = _judged(cell)
    known = {misconception.name: misconception for misconception in exercise.mistakes}
    return Result(
        exercise,
        points,
        passed=bool(record.get("passed")),
        blank=bool(record.get("blank")),
        forbidden=bool(record.get("forbidden")),
        checked=bool(record.get("checked")),
        asked=bool(record.get("asked")),
        misconception=known.get(record.get("misconception")),
        message=str(record.get("message", "")),
        report=report,
        judged_points=record.get("points"),
        alike=tuple(part for part in record.get("alike", ()) if isinstance(part, str)),
    )


def seconds_of(cell: NotebookNode | None) -> float | None:
    """The running time of a cell, from its metadata; None if unknown."""
    times = cell.metadata.get("execution", {}) if cell is not None else {}
    begun, ended = times.get("iopub.execute_input"), times.get("shell.execute_reply")
    if not isinstance(begun, str) or not isinstance(ended, str):
        return None
    try:
        return max(0.0, (_moment(ended) - _moment(begun)).total_seconds())
    except ValueError:
        return None


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text.replace("Z", "+00:00"))  # Python 3.10 does not read the Z


def _judged(cell: NotebookNode | None) -> tuple[dict[str, Any], str]:
    """The record and the report that the judge wrote into a check cell."""
    for output in cell.get("outputs", []) if cell is not None else []:
        record = output.get("metadata", {}).get("judged")
        if isinstance(record, dict):
            text = "".join(each.text for each in cell.outputs if each.output_type == "stream")
            return record, text
    return {}, ""


def student_of(row: Any) -> Student:
    """The student in a row of the gradebook."""
    return Student(row.id, row.first_name or "", row.last_name or "", row.email or "", row.lms_user_id or "")


def _cell_name(notebooks: Any, notebook: str, cell: str) -> str:
    return cell if len(notebooks) == 1 else f"{notebook}/{cell}"


def _comments(row: SubmittedAssignment) -> tuple[tuple[str, str], ...]:
    written = [
        (comment.name, (comment.manual_comment or "").strip()) for each in row.notebooks for comment in each.comments
    ]
    return tuple((name, text) for name, text in written if text)


def _graded_plainly(assignment: Assignment, student: Student, row: SubmittedAssignment) -> Graded:
    points = {
        _cell_name(row.notebooks, notebook.name, grade.name): grade.score
        for notebook in row.notebooks
        for grade in notebook.grades
    }
    return Graded(
        student,
        tuple(Result(cell, points.get(cell.id, 0.0)) for cell in assignment.exercises),
        row.score,
        row.late_submission_penalty or 0.0,
        row.timestamp,
        bool(row.needs_manual_grade),
        comments=_comments(row),
    )


def _graded(
    places: CourseDirectory,
    assignment: Assignment,
    student: Student,
    row: SubmittedAssignment,
    comments: Sequence[shared_comments.Comment],
) -> Graded:
    if catalogue.find_assignment(assignment.id) is None:
        return _graded_plainly(assignment, student, row)
    notebook = _notebook(places, assignment, student)
    cells = check_cells(notebook) if notebook is not None else {}
    submitted = next((each for each in row.notebooks if each.name == assignment.notebook), None)
    grades = {grade.name.removesuffix(CHECK_SUFFIX): grade for grade in (submitted.grades if submitted else ())}
    points = {name: grade.score for name, grade in grades.items()}
    found = tuple(result_of(each, cells.get(each.id), points.get(each.id, 0.0)) for each in assignment.exercises)
    shared = [(result.exercise.id, text) for result in found if (text := shared_comments.about(comments, result))]
    return Graded(
        student,
        found,
        row.score,
        row.late_submission_penalty or 0.0,
        row.timestamp,
        bool(row.needs_manual_grade),
        notes_of(notebook) if notebook is not None else ("The graded notebook is missing.",),
        tuple(_seconds(notebook)) if notebook is not None else (),
        (*_comments(row), *shared),
        {each.id: _points_by_hand(grades.get(each.id)) for each in assignment.by_hand},
        tuple(unusual(cell[1] for cell in code_cells(notebook))) if notebook is not None else (),
    )


def _points_by_hand(grade: Any) -> float | None:
    """The points from a person, or None if not read yet; they stay, though nbgrader asks for another look after a
    regrade."""
    unread = grade is None or (grade.needs_manual_grade and grade.manual_score is None)
    return None if unread else grade.score


def _seconds(notebook: NotebookNode) -> Iterator[tuple[str, float]]:
    for place, cell in enumerate(notebook.cells, 1):
        seconds = seconds_of(cell) if cell.cell_type == "code" else None
        if seconds is not None:
            yield cell.metadata.get("nbgrader", {}).get("grade_id") or f"cell {place}", seconds


def _notebook(places: CourseDirectory, assignment: Assignment, student: Student) -> NotebookNode | None:
    folder = places.format_path(places.autograded_directory, student.id, assignment.id)
    path = Path(folder) / f"{assignment.notebook}.ipynb"
    return nbformat.read(path, as_version=4) if path.is_file() else None


def notes_of(notebook: NotebookNode) -> tuple[str, ...]:
    """The notes about corrections and unreadable parts, from the notebook's first cell; empty if there are none."""
    first = notebook.cells[0] if notebook.cells else None
    if first is None or first.cell_type != "markdown" or first.get("id") != NOTE_ID:
        return ()
    return tuple(line.removeprefix("- ") for line in first.source.splitlines() if line.startswith("- "))
