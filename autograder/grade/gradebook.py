"""The gradebook's one writer: nbgrader's own autograding with the run left out, since a worker has done it."""

import contextlib
import copy
import logging
import os
import pickle
import sqlite3
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import nbformat
import sqlalchemy
from nbconvert.exporters import NotebookExporter
from nbconvert.writers import FilesWriter
from nbgrader.api import Gradebook, InvalidEntry, MissingEntry
from nbgrader.apps import AutogradeApp
from nbgrader.converters import Autograde
from sqlalchemy.exc import DatabaseError

from autograder import catalogue, course
from autograder.catalogue import own
from autograder.course import CourseError
from autograder.grade import db_retry, nbgrader_patches
from autograder.grade.messages import Batch, Result, Stopped
from autograder.grade.progress import say
from autograder.grade.worker import split
from autograder.inside.safe_rmtree import remove
from autograder.intake import take_in
from autograder.policy import course_time, gradebook_indexes, late, points
from autograder.reports import results
from autograder.sandbox.private_folder import PrivateFolder

if TYPE_CHECKING:
    from autograder.catalogue.exercise import Assignment

T = TypeVar("T")

PATIENCE_SECONDS = 600.0  # how long to wait while another program holds the gradebook
SAME_POINTS = 1e-6
LOOK_SECONDS = 2.0  # how often to look whether it still does


@dataclass(frozen=True)
class Recorded:
    """The gradebook's data about one submission: grade id -> points by the grader, and what people added.

    penalty: points deducted for lateness. by_hand: cells that wait for a person. total, most: as nbgrader counts them.
    by_person: grade id -> points that a person gave, which override the grader's.
    settled: remarks about the student's other assignments, which share the free days, and about an unknown submission
    time. handed_in, due: the two times between which lateness is counted (UTC, ISO format); "" for none.
    """

    points: dict[str, float | None]
    late_seconds: float
    penalty: float
    by_hand: int
    total: float
    most: float
    settled: tuple[str, ...] = ()
    handed_in: str = ""
    due: str = ""
    by_person: Mapping[str, float] = field(default_factory=dict)

    @property
    def score(self) -> float:
        """The points after the late penalty."""
        return max(0.0, self.total - self.penalty)


class Classroom:
    """The course as configured for nbgrader. Everything that nbgrader stores is written here."""

    def __init__(self, root: Path, assignment: str) -> None:
        """Read the configuration. Raises CourseError if that fails or the gradebook does not have the assignment."""
        self.root, self.assignment = root, assignment
        with _inside(root):
            self._app = AutogradeApp()
            self._app.raise_config_file_errors = True  # else they are printed, and the file is passed over
            try:
                self._app.initialize(["--log-level=ERROR"])
            except (SyntaxError, NameError, AttributeError, ImportError, TypeError, ValueError) as error:
                raise CourseError(f"{course.MARKER} cannot be read: {type(error).__name__}: {error}.") from error
        nbgrader_patches.install()
        db_retry.install(LOOK_SECONDS)  # after the configuration, which waits in silence: see `_patiently`
        self._settled = _Settled()
        self._app.log.handlers = [self._settled]  # the workers and the summary say what nbgrader would
        tracebacks = logging.getLogger("tornado.application")  # where nbgrader's gradebook prints them
        tracebacks.handlers, tracebacks.propagate = [logging.NullHandler()], False
        late.check(root, self._app.config)
        self.zone = course_time.zone_of(self._app.config)
        self._coursedir = self._app.coursedir
        self._coursedir.assignment_id = assignment
        self.not_believed = 0  # submissions that came with a receipt time of their own
        self._entry = catalogue.find_assignment(assignment)
        self._reading = copy.copy(self._coursedir)
        if self._entry is not None:
            self._reading.submitted_directory = take_in.RECEIVED
            self._released = _released(root, self._entry)
            points.refuse(self._released, self._entry)
        try:
            known = self._patiently(self._assignments)
        except Stopped as error:  # nothing has been graded that could be gone on with
            raise CourseError(str(error)) from error
        except (ImportError, RuntimeError) as error:  # a missing driver, another version's tables
            raise CourseError(_about_the_gradebook(self._address, str(error), False)) from error
        if assignment not in known:
            there = f"It knows: {', '.join(sorted(known))}." if known else "It knows none yet."
            raise CourseError(
                f"The gradebook knows no assignment {assignment!r}; "
                f"`nbgrader generate_assignment {assignment}` tells it. {there}"
            )
        if self._entry is not None:
            points.refuse_worth(self.most_points(), self._entry)

    def handed_in(self) -> dict[str, Path]:
        """Student -> the folder with their work, without those that the configuration excludes."""
        excluded = set(self._coursedir.student_id_exclude.split(","))
        top = self.root / self._coursedir.submitted_directory
        if self._entry is None:
            places = [top / path.name / self.assignment for path in top.iterdir()] if top.is_dir() else []
            found = {place.parent.name: place for place in places if place.is_dir()}
        else:
            found = take_in.submissions(top, self._entry)
        return {student: folder for student, folder in sorted(found.items()) if student not in excluded}

    def has_result(self, student: str, last: Mapping[str, Any] | None) -> bool:
        """Whether there is a graded notebook, and the gradebook has its points.

        last: the log's line about the last grading, or None. If the gradebook was emptied or restored to an earlier
        state, its points differ from those of that line or are missing.
        """
        graded = Path(self._path(self._coursedir.autograded_directory, student))
        kept = self.recorded(student) if any(graded.glob("*.ipynb")) else None
        given = last["points"] if last is not None else {}
        return kept is not None and all(_same_points(kept.points.get(cell), points) for cell, points in given.items())

    def is_same_work(self, student: str, folder: Path, last: Mapping[str, Any] | None) -> bool:
        """Whether this submission is the one that was graded, by its digest and its time.

        last: as above. Times are compared only for equality: a clock may have been set back between two submissions.
        """
        graded = Path(self._path(self._coursedir.autograded_directory, student))
        digest = last["submission"] if last is not None else None
        try:
            if self._entry is not None:
                taken = take_in.take_in(self._released, self._entry, folder)
                self._receive(student, folder, taken)
                if digest is not None and digest != taken.digest:
                    return False
            given = Path(self._path(self._reading.submitted_directory, student))
            new, old = map(self._coursedir.get_existing_timestamp, (str(given), str(graded)))
        except Exception:  # a damaged receipt, a full disk, a timestamp that is none: grading it again says so
            return False
        return new is None or old is None or new == old

    def names(self) -> dict[str, str]:
        """Student -> "Ada Lovelace (501)", for everyone whose name the gradebook knows."""

        def look() -> dict[str, str]:
            with self._open() as gradebook:
                students = map(results.student_of, gradebook.students)
                return {student.id: student.name_and_id for student in students if student.name != student.id}

        return self._patiently(look)

    def withdrawn(self) -> list[str]:
        """Students with points in the gradebook whose folder is gone."""
        there = self.handed_in()

        def look() -> list[str]:
            with self._open() as gradebook:
                rows = gradebook.assignment_submissions(self.assignment)
                return sorted(row.student.id for row in rows if row.student.id not in there)

        return self._patiently(look)

    def graded(self) -> dict[str, Path]:
        """Student -> the folder with their graded notebooks."""
        step = self._coursedir.autograded_directory
        found = {student: Path(self._path(step, student)) for student in self.handed_in()}
        return {student: folder for student, folder in found.items() if any(folder.glob("*.ipynb"))}

    def batch(self, environment: Mapping[str, str]) -> Batch:
        """The data that workers need to grade this assignment, without any student's."""
        files = {course.MARKER: (self.root / course.MARKER).read_bytes()}
        for step, name in (
            (self._coursedir.release_directory, "exercises"),
            (self._coursedir.source_directory, "solutions"),
        ):
            folder = Path(self._path(step, "."))
            for path in sorted(folder.rglob("*")):
                if path.is_file() and (name == "exercises" or path.suffix != ".ipynb"):
                    files[f"{name}/{self.assignment}/{path.relative_to(folder)}"] = path.read_bytes()
        for path in own.sources(self.assignment):
            files[str(path.relative_to(self.root))] = path.read_bytes()
        files["classroom/secret"] = course.secret(self.root)
        settings = copy.deepcopy(self._app.config)
        settings.CourseDirectory.pop("db_url", None)  # may hold a password, which a worker does not need
        try:
            configuration = pickle.dumps(settings)
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise CourseError(f"{course.MARKER}: expected settings that can be sent to a worker: {error}") from error
        return Batch(self.assignment, configuration, files, self._cells(), dict(environment))

    def record(self, result: Result, folder: Path) -> Recorded:
        """Store one judged submission as `nbgrader autograde` does; repeating it changes nothing.

        folder: the submission. Raises Stopped if the gradebook cannot be written, and any other error of this
        submission.
        """
        if result.received is not None:
            received = result.received
            notebook = nbformat.reads(received.notebook, as_version=nbformat.NO_CONVERT)
            files = tuple(folder / name for name in received.files)
            self._receive(result.student, folder, take_in.TakenIn(notebook, received.reasons, received.digest, files))
        try:
            recorded = self._patiently(lambda: self._record(result))
            return replace(recorded, settled=tuple(self._settled.lines))
        except BaseException:  # a folder that is there would make nbgrader pass over the student for good
            remove(Path(self._path(self._coursedir.autograded_directory, result.student)))
            raise

    def _record(self, result: Result) -> Recorded:
        self._settled.lines.clear()
        with _inside(self.root), warnings.catch_warnings():
            warnings.simplefilter("ignore", sqlalchemy.exc.SAWarning)  # nbgrader's own, at every new submission
            steps = _StepsAfterRun(self._reading, self._app)
            with nbgrader_patches.one_gradebook(self._coursedir.db_url, self._coursedir.course_id, keep=True):
                steps.record(result)
                recorded = self._recorded(result.student)
            steps.run_post_convert_hook()  # a teacher's hook may read the gradebook
        return recorded

    def recorded(self, student: str) -> Recorded | None:
        """The gradebook's data about a student's submission, or None."""
        return self._patiently(lambda: self._recorded(student))

    def _recorded(self, student: str) -> Recorded | None:
        with self._open() as gradebook:
            try:
                submission = gradebook.find_submission(self.assignment, student)
            except MissingEntry:
                return None
            grades = [grade for notebook in submission.notebooks for grade in notebook.grades]
            return Recorded(
                points={grade.name: grade.auto_score for grade in grades},
                late_seconds=submission.total_seconds_late,
                penalty=sum(notebook.late_submission_penalty or 0.0 for notebook in submission.notebooks),
                by_hand=sum(bool(grade.needs_manual_grade) for grade in grades),
                total=submission.score,
                most=submission.max_score,
                handed_in=_iso(submission.timestamp),
                by_person={grade.name: grade.manual_score for grade in grades if grade.manual_score is not None},
                due=_iso(submission.duedate if submission.assignment.duedate else None),
            )

    def finish(self) -> None:
        """Update the gradebook's statistics for fast queries; if it is locked now, the next run does it."""
        with contextlib.suppress(DatabaseError), self._open() as gradebook:
            gradebook_indexes.count_rows(gradebook)

    def keep(self, records: Mapping[str, bytes]) -> None:
        """Append what a worker wrote into its own classroom to the same files here, which only their owner can read."""
        for name, content in records.items():
            path = self.root / "classroom" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            with os.fdopen(descriptor, "ab", buffering=0) as file:
                whole = os.fstat(descriptor).st_size
                try:
                    while content:
                        content = content[file.write(content) :]
                except OSError:
                    with contextlib.suppress(OSError):
                        file.truncate(whole)  # half a line would spoil the next one
                    raise

    def most_points(self) -> dict[str, float]:
        """Grade id -> its maximum points, in the order of the notebook."""
        return self._patiently(self._most_points)

    def _most_points(self) -> dict[str, float]:
        with self._open() as gradebook:
            notebooks = gradebook.find_assignment(self.assignment).notebooks
            worth = {cell.name: cell.max_score for notebook in notebooks for cell in notebook.grade_cells}
            order = [cell.name for notebook in notebooks for cell in notebook.source_cells]
        return {name: worth[name] for name in order if name in worth}

    @property
    def _address(self) -> str:
        return sqlalchemy.make_url(self._coursedir.db_url).render_as_string(hide_password=True)

    def _receive(self, student: str, folder: Path, taken: take_in.TakenIn) -> None:
        say = self._app.log.warning
        self.not_believed += take_in.receive(self._coursedir, self._entry, student, folder, taken, say)

    def _assignments(self) -> set[str]:
        with self._open() as gradebook:
            gradebook_indexes.create(gradebook)
            return {each.name for each in gradebook.assignments}

    def _patiently(self, act: Callable[[], T]) -> T:
        """The result of `act`, which reads or writes the gradebook and may be repeated.

        While another program locks the gradebook, this prints a message and waits. Raises Stopped if it stays locked,
        is damaged or cannot be written.
        """
        until, told = time.monotonic() + PATIENCE_SECONDS, False
        while True:
            try:
                return act()
            except (DatabaseError, InvalidEntry) as raised:
                # nbgrader makes an InvalidEntry of a full or locked disk too
                error = raised.__context__ if isinstance(raised, InvalidEntry) else raised
                if not isinstance(error, sqlalchemy.exc.OperationalError) and type(error) is not DatabaseError:
                    raise  # about this submission's data
                reason = " ".join(str(error.orig).split())[:200]
                locked = "locked" in reason
                if not locked or time.monotonic() > until:
                    raise Stopped(_about_the_gradebook(self._address, reason, locked)) from error
            if not told:
                say(f"The gradebook {self._address} is locked by another program; waiting ...")
                told = True
            time.sleep(LOOK_SECONDS / 10)

    def _open(self) -> Gradebook:
        return Gradebook(self._coursedir.db_url, self._coursedir.course_id)

    def _path(self, step: str, student: str) -> str:
        return self._coursedir.format_path(step, student, self.assignment)

    def _cells(self) -> bytes:
        """An SQLite gradebook that holds the assignment's cells."""
        with PrivateFolder("grade") as folder:
            path = folder / "gradebook.db"
            with contextlib.closing(sqlite3.connect(path)) as database:
                # For a file without any table nbgrader runs alembic, for two seconds, to write down its version.
                database.execute("CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL)")

            def copied() -> bytes:
                with self._open() as here, Gradebook(f"sqlite:///{path}", self._coursedir.course_id) as there:
                    _copy_cells(here, there, self.assignment)
                return path.read_bytes()

            return self._patiently(copied)


class _StepsAfterRun(Autograde):
    """nbgrader's converter for notebooks that have been run: it performs the steps after the run."""

    def __init__(self, coursedir, parent) -> None:
        # What reads submissions is configured for the workers, since only they open them.
        settings = copy.deepcopy(parent.config)
        for name in ("exporter_class", "pre_convert_hook"):
            settings.Autograde.pop(name, None)
            settings.BaseConverter.pop(name, None)
        settings.Exporter.optimistic_validation = True  # the notebook, only after the last step
        super().__init__(coursedir=coursedir, parent=parent, config=settings)
        self.autograde_preprocessors = split(self.autograde_preprocessors)[1]

    def record(self, result: Result) -> None:
        """Replace the student's graded folder, then save scores, penalty and notebooks."""
        assignment, student = self.coursedir.assignment_id, result.student
        self.coursedir.student_id = student
        remove(Path(self._format_dest(assignment, student)))
        self.writer = FilesWriter(parent=self, config=self.config)
        self.exporter = NotebookExporter(parent=self, config=self.config)
        source = self._format_source(assignment, student)
        self.notebooks = [os.path.join(source, f"{name}.ipynb") for name in result.notebooks]
        self.init_assignment(assignment, student)
        self._sanitizing = False
        self._init_preprocessors()
        for name, text in result.notebooks.items():
            place = os.path.join(self._format_dest(assignment, student), f"{name}.ipynb")
            resources = self.init_single_notebook_resources(place)
            notebook = nbformat.reads(text, as_version=nbformat.NO_CONVERT)
            self.write_single_notebook(*self.exporter.from_notebook_node(notebook, resources))
        self._sanitizing = True
        self.set_permissions(assignment, student)


def _released(root: Path, entry: "Assignment") -> nbformat.NotebookNode:
    """The released notebook. Raises CourseError if it is missing, damaged or no notebook."""
    try:
        return take_in.released_notebook(root, entry)
    except CourseError:
        raise
    except Exception as error:  # nbformat's complaints about what is JSON and no notebook are of every kind
        place = course.notebook_path(root, "exercises", entry)
        reason = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
        raise CourseError(f"{place} is not a notebook ({reason}); `make release` makes it anew.") from error


def _about_the_gradebook(address: str, reason: str, locked: bool) -> str:
    if locked:
        return f"The gradebook {address} is still locked by another program. Close that one."
    return f"The gradebook {address} cannot be used: {reason}."


def _same_points(one: float | None, other: float | None) -> bool:
    return one == other if one is None or other is None else abs(one - other) < SAME_POINTS


def _iso(moment: datetime | None) -> str:
    return moment.isoformat(timespec="seconds") if moment else ""


class _Settled(logging.Handler):
    """Collects the remarks of the late rules about other assignments."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if hasattr(record, "settled"):
            self.lines.append(record.getMessage())


@contextlib.contextmanager
def _inside(folder: Path) -> Iterator[None]:
    """Change to the course's folder, since nbgrader uses the current folder."""
    before = os.getcwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def _copy_cells(here: Gradebook, there: Gradebook, assignment: str) -> None:
    there.add_assignment(assignment)
    for notebook in here.find_assignment(assignment).notebooks:
        there.add_notebook(notebook.name, assignment, kernelspec=notebook.kernelspec)
        place = (notebook.name, assignment)
        for cell in notebook.grade_cells:
            there.add_grade_cell(cell.name, *place, max_score=cell.max_score, cell_type=cell.cell_type)
        for cell in notebook.task_cells:
            there.add_task_cell(cell.name, *place, max_score=cell.max_score, cell_type=cell.cell_type)
        for cell in notebook.solution_cells:
            there.add_solution_cell(cell.name, *place)
        for cell in notebook.source_cells:
            known = {key: getattr(cell, key) for key in ("cell_type", "locked", "source", "checksum")}
            there.add_source_cell(cell.name, *place, **known)
