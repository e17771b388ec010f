"""Makes submissions fit for grading: no file of one student may stop the grading of another.

`classroom/submitted/` is left as it is. Beside it, `classroom/received/` holds what nbgrader is given to grade: for
each student who has a folder one notebook of the right name, rebuilt from the released one, and the receipt time.
"""

from __future__ import annotations

import copy
import functools
import shutil
import sys
import traceback
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import nbformat
from nbformat import NotebookNode
from nbgrader.api import Gradebook, MissingEntry
from nbgrader.converters import Autograde
from nbgrader.converters.base import NbGraderException
from nbgrader.coursedir import CourseDirectory
from traitlets import Bool
from traitlets.config import Configurable

from autograder import course
from autograder.intake import choose, untrusted_files
from autograder.intake.choose import folded, shown
from autograder.intake.rebuild import rebuild, with_note
from autograder.policy import collected, late, receipts
from autograder.sandbox import limited_process
from transformer_ref.atomic_write import atomic_write

if TYPE_CHECKING:  # the catalogue imports torch, which most of nbgrader's commands do without
    from autograder.catalogue.exercise import Assignment

RECEIVED = "classroom/received"
OF_THE_EXCHANGE = "submission_secret.txt"  # nbgrader names the feedback it hands back after it
MOST_OF_THE_EXCHANGE = 4_096  # bytes of it
MOST_COPIED = 2_000  # files of one submission that are listed for another machine
SECONDS, MEMORY = 60.0, 2 << 30  # of processor time, and bytes, to read one submission
LITTLE = 256 << 10  # bytes of a submission that is read at once: a process of its own takes longer than reading them
PLAIN = (".ipynb", ".txt")
MOST_OF_A_FILE = 64 * 1024 * 1024  # bytes of another file that an assignment takes


class Intake(Configurable):
    """The settings of the intake, in nbgrader_config.py."""

    trust_timestamps = Bool(
        False, config=True, help="Whether the timestamp.txt of a submission is the collector's, and its time believed"
    )


class NotKept(Exception):
    """A submission cannot be stored for grading, through no fault of the student; the text tells a teacher why."""


class TakenIn(NamedTuple):
    """A submission ready for grading. `reasons`: sentences for its author about corrections; they are in the notebook's
    first cell too. `digest`: of the file that was read, "" for none; `files`: others that the assignment accepts.

    failure: "", or the reason, for a teacher, why the submission could not be read. Then it gets no grade, and
    `notebook` is the released one.
    """

    notebook: NotebookNode
    reasons: tuple[str, ...]
    digest: str
    files: tuple[Path, ...] = ()
    failure: str = ""


class ClassTakenIn(NamedTuple):
    """`coursedir`: of the submissions taken in. `failures`: student -> why they cannot be graded, for a teacher."""

    coursedir: CourseDirectory
    failures: dict[str, str]


def released_notebook(root: Path, assignment: Assignment) -> NotebookNode:
    """The released notebook. Raises CourseError if it is missing or damaged."""
    path = course.notebook_path(root, "exercises", assignment)
    course.read_notebook(path)
    return nbformat.read(path, as_version=4)


def take_in(released: NotebookNode, assignment: Assignment, folder: Path) -> TakenIn:
    """One student's submission, read from its folder. Writes nothing and raises nothing.

    If it cannot be read, it is replaced by the released notebook, with the reason. An error that is not the
    submission's becomes a `failure`.
    """
    try:
        return _limited(released, assignment, folder)
    except limited_process.Stopped as stopped:
        return _failed(released, f"{folder}: reading it {stopped}. Look at its files by hand.")


def _limited(released: NotebookNode, assignment: Assignment, folder: Path) -> TakenIn:
    """The same in a process with limits, so that no file can block the process that reads all submissions.

    A small one is read here: the time is proportional to the size (`test_bounds` doubles it).
    """

    def work() -> dict[str, Any]:
        taken, trace = _safely(released, assignment, folder)
        files = [path.relative_to(folder).as_posix() for path in taken.files]
        return {**taken._asdict(), "files": files, "trace": trace}

    found = work() if _is_little(folder) else limited_process.run(work, SECONDS, MEMORY)
    if found["trace"]:  # here, where somebody may listen to this process's errors
        print(found["trace"], file=sys.stderr)
    files = tuple(folder / name for name in found["files"])
    notebook = nbformat.from_dict(found["notebook"])
    return TakenIn(notebook, tuple(found["reasons"]), found["digest"], files, found["failure"])


def _is_little(folder: Path) -> bool:
    """Whether it has only small notebooks and texts, and no archive under any name."""
    try:
        there = untrusted_files.look(folder)
        files = [*there.files, *there.hidden]
        if sum(path.lstat().st_size for path in files) > LITTLE or any(path.suffix not in PLAIN for path in files):
            return False
        notebooks = [path for path in there.files if path.suffix == ".ipynb"]
        return all(untrusted_files.content_of(path, LITTLE).lstrip().startswith(b"{") for path in notebooks)
    except (OSError, untrusted_files.NoPlainFile):
        return False


def _safely(released: NotebookNode, assignment: Assignment, folder: Path) -> tuple[TakenIn, str]:
    """The submission, or the traceback of an internal error."""
    try:
        return _take_in(released, assignment, folder), ""
    except MemoryError:
        raise
    except untrusted_files.NoPlainFile:  # it went away while it was read
        return _failed(released, f"{folder} changed while it was read. Grade it again."), ""
    except OSError as error:  # a closed folder, a disk that fails: nothing that its author wrote
        what = error.filename or folder
        return _failed(released, f"{what} cannot be read: {error.strerror or error}."), ""
    except Exception as error:  # a mistake of ours, which must cost nobody a point
        failed = _failed(released, f"taking it in failed with {type(error).__name__}: {error}")
        return failed, traceback.format_exc()


def _failed(released: NotebookNode, failure: str) -> TakenIn:
    return TakenIn(released, (), "", failure=failure)


def submissions(submitted: Path, assignment: Assignment, students: str = "*") -> dict[str, Path]:
    """Student -> the folder with their work for the assignment; `students` is a pattern as nbgrader takes it.

    A folder whose name differs only in case, spaces or punctuation is used if there is no better one. If a student's
    folder is unreadable, the expected one is returned, so that an error names it.
    """
    found = {}
    for place in untrusted_files.inside(submitted):
        if place.name.startswith(".") or not fnmatchcase(place.name, students) or not _is_place(place):
            continue
        exact = place / assignment.id
        if untrusted_files.is_closed(place):
            found[place.name] = exact
            continue
        folders = [path for path in untrusted_files.inside(place) if untrusted_files.is_folder(path)]
        alike = [path for path in folders if folded(path.name) == folded(assignment.id)]
        if alike:
            found[place.name] = min(alike, key=lambda path: (_is_empty(path), path != exact, path.name))
    return found


def take_in_class(coursedir: CourseDirectory, say: Callable[[str], None]) -> ClassTakenIn:
    """Take in all students whom the course directory selects.

    coursedir: with the assignment and the pattern of students set; not modified. say: called with the corrections of
    each student. Assignments outside the catalogue are left to nbgrader. Raises CourseError when the released notebook
    is missing.
    """
    from autograder import catalogue
    from autograder.policy import points

    root = Path(coursedir.root)
    late.check(root, (coursedir.parent or coursedir).config)
    assignment = catalogue.find_assignment(coursedir.assignment_id)
    if assignment is None:
        return ClassTakenIn(coursedir, {})
    released = released_notebook(root, assignment)
    points.refuse(released, assignment)
    found = submissions(root / coursedir.submitted_directory, assignment, coursedir.student_id)
    aside, failures = 0, {}
    for student, folder in found.items():
        taken = take_in(released, assignment, folder)
        try:
            aside += receive(coursedir, assignment, student, folder, taken, say)
        except NotKept as error:
            failures[student] = str(error)
        for reason in taken.reasons:
            say(f"{student}: {reason}")
    if aside:
        say(
            f"{aside} submissions came with a {receipts.STAMP} that was not believed. If nbgrader's exchange or "
            f"ngshare collected them, set c.Intake.trust_timestamps = True in {course.MARKER}."
        )
    _forget_others(root, assignment, coursedir.student_id, found, say)
    reading = copy.copy(coursedir)
    reading.submitted_directory = RECEIVED
    return ClassTakenIn(reading, failures)


def receive(
    coursedir: CourseDirectory,
    assignment: Assignment,
    student: str,
    folder: Path,
    taken: TakenIn,
    say: Callable[[str], None],
) -> bool:
    """Store a submission with its receipt time; returns whether the submission claimed another time, which is ignored.

    Raises NotKept, which concerns only this student.
    """
    if taken.failure:
        raise NotKept(taken.failure)
    root = Path(coursedir.root)
    place = root / RECEIVED / student / assignment.id
    settings = (coursedir.parent or coursedir).config  # nbgrader reads nbgrader_config.py after it makes the directory
    try:
        student.encode()
        given = receipts.stamp_of(folder)
        believed = given if Intake(config=settings).trust_timestamps else None
        arrived = collected.arrived(root, assignment.id, student, folder)
        received = receipts.record(root, assignment.id, student, taken.digest, taken.reasons, believed, arrived)
        _store(place, assignment, taken, received)
    except UnicodeEncodeError as error:
        raise NotKept(f"the folder's name {student!r} is not written in UTF-8. Rename it.") from error
    except course.CourseError as error:
        raise NotKept(str(error)) from error
    except (OSError, RecursionError) as error:
        reason = error.strerror or error if isinstance(error, OSError) else "it holds too many folders in folders"
        raise NotKept(f"{reason}: {place} or its receipt cannot be written anew.") from error
    return folder.name == assignment.id and _stamp(folder, received, say) and given is not None


def copied(folder: Path, assignment: Assignment | None) -> Iterator[tuple[str, bytes]]:
    """(name, content) of each file that another machine needs to take in a folder; of files that are not read, only the
    name. Raises OSError for what may not be read."""
    there = untrusted_files.look(folder)
    read = choose.worth_reading(there, folder, f"{assignment.notebook}.ipynb") if assignment else set()
    kept = (*assignment.files, OF_THE_EXCHANGE) if assignment else ()
    for path in sorted((*there.files, *there.hidden), key=lambda path: path not in read)[:MOST_COPIED]:
        inner = path.relative_to(folder).as_posix()
        is_sent = assignment is None or path in read or inner in kept
        try:
            yield inner, untrusted_files.content_of(path, _most(path)) if is_sent else b""
        except untrusted_files.NoPlainFile:
            continue


def copy_files(files: tuple[Path, ...], place: Path) -> None:
    """Copy a submission's other files to a folder, except those that are too large or no longer regular files."""
    for path in files:
        try:
            untrusted_files.copy_to(path, place / path.name, _most(path))
        except untrusted_files.NoPlainFile:
            continue


def install() -> None:
    """Let nbgrader's autograding take in the class before it looks for notebooks.

    nbgrader has no setting for that: its pre-convert hook comes after it has passed over empty folders and unknown file
    names, is not told the student, and its errors are swallowed. So the method that looks for notebooks is wrapped, and
    the one that grades them, which tells at its end whom it could not grade.
    """
    look, convert, skip = Autograde.init_notebooks, Autograde.convert_notebooks, Autograde.init_destination
    if hasattr(look, "__wrapped__"):
        return  # formgrader reads the configuration more than once

    @functools.wraps(look)
    def init_notebooks(converter: Autograde) -> None:
        try:
            taken = take_in_class(converter.coursedir, converter.log.warning)
        except course.CourseError as error:
            converter.log.error(str(error))
            raise NbGraderException(str(error)) from error
        converter.coursedir, converter.not_taken_in = taken
        _tell(converter)
        look(converter)
        for student in converter.not_taken_in:  # what an earlier grading left there is not theirs of today
            place = converter._format_source(converter.coursedir.assignment_id, student)
            converter.assignments.pop(place, None)

    @functools.wraps(convert)
    def convert_notebooks(converter: Autograde) -> None:
        convert(converter)
        if getattr(converter, "not_taken_in", {}):
            _tell(converter)  # again, where a teacher looks first
            raise NbGraderException("Some students were not graded.")  # nbgrader ends with code 1

    @functools.wraps(skip)
    def init_destination(converter: Autograde, assignment: str, student: str) -> bool:
        wanted = skip(converter, assignment, student)
        if wanted or converter.force or _is_in_gradebook(converter.coursedir, assignment, student):
            return wanted
        converter.log.warning(f"{student}: graded before, and the gradebook has nothing of it: graded again")
        converter.force = True
        try:
            return skip(converter, assignment, student)
        finally:
            converter.force = False

    Autograde.init_notebooks, Autograde.convert_notebooks = init_notebooks, convert_notebooks
    Autograde.init_destination = init_destination


def _is_in_gradebook(places: CourseDirectory, assignment: str, student: str) -> bool:
    """Whether the gradebook has a submission; it may not if it was emptied or restored while autograded/ stayed."""
    with Gradebook(places.db_url, places.course_id) as gradebook:
        try:
            gradebook.find_submission(assignment, student)
        except MissingEntry:
            return student in places.student_id_exclude.split(",")
    return True


def _tell(converter: Autograde) -> None:
    for student, failure in converter.not_taken_in.items():
        converter.log.error(f"{student}: not graded: {failure}")


def _take_in(released: NotebookNode, assignment: Assignment, folder: Path) -> TakenIn:
    there = untrusted_files.look(folder)
    name = f"{assignment.notebook}.ipynb"
    kept = (*assignment.files, OF_THE_EXCHANGE)
    wanted = [path for path in there.files if path.relative_to(folder).as_posix() in kept]
    chosen = choose.choose(there, folder, name, lambda data: rebuild(data, released))
    reasons = [] if folder.name == assignment.id else [f"The folder was named {shown(folder.name)}."]
    reasons += chosen.reasons
    for path in [path for path in wanted if path.stat().st_size > _most(path)]:
        wanted.remove(path)
        if path.name != OF_THE_EXCHANGE:
            reasons.append(f"{shown(path.name)} is larger than {_most(path) >> 20} MB and was left out.")
    others = [path.relative_to(folder).as_posix() for path in there.files if path not in wanted]
    reasons += choose.about_helpers(chosen.rebuilt.notebook, [*others, *chosen.beside])
    digest = choose.digest_with(chosen.digest, [path for path in wanted if path.name != OF_THE_EXCHANGE])
    return TakenIn(with_note(chosen.rebuilt.notebook, reasons), tuple(reasons), digest, tuple(wanted))


def _most(path: Path) -> int:
    return MOST_OF_THE_EXCHANGE if path.name == OF_THE_EXCHANGE else MOST_OF_A_FILE


def _store(place: Path, assignment: Assignment, taken: TakenIn, received: str) -> None:
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    copy_files(taken.files, place)
    atomic_write(place / f"{assignment.notebook}.ipynb", nbformat.writes(taken.notebook) + "\n")
    atomic_write(place / receipts.STAMP, received)


def _stamp(folder: Path, received: str, say: Callable[[str], None]) -> bool:
    try:
        return receipts.stamp(folder, received)
    except OSError as error:
        say(f"{folder}: formgrader will not show when this arrived, since no file can be written there ({error}).")
        return False


def _forget_others(
    root: Path, assignment: Assignment, students: str, found: dict[str, Path], say: Callable[[str], None]
) -> None:
    """Remove submissions from folders that no longer exist."""
    for place in (root / RECEIVED).glob(f"*/{assignment.id}"):
        if place.parent.name not in found and fnmatchcase(place.parent.name, students):
            try:
                shutil.rmtree(place)
            except (OSError, RecursionError) as error:
                say(f"{place.parent.name} has no submission any more, but {place} cannot be removed ({error}).")


def _is_place(path: Path) -> bool:
    """Whether it is a student's folder, or a link to one."""
    try:
        return path.is_dir()
    except OSError:
        return False


def _is_empty(folder: Path) -> bool:
    return all(path.name in (receipts.STAMP, receipts.ASIDE) for path in untrusted_files.inside(folder))
