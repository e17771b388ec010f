"""What was handed in, made fit for grading: no file of one student may stop the grading of another.

`classroom/submitted/` is left as it is. Beside it, `classroom/received/` holds what nbgrader is given to grade: for
each student who has a folder one notebook of the right name, rebuilt from the released one, and the receipt time.
"""

from __future__ import annotations

import copy
import functools
import hashlib
import os
import re
import shutil
import stat
import traceback
from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import nbformat
from nbformat import NotebookNode
from nbgrader.converters import Autograde
from nbgrader.converters.base import NbGraderException
from nbgrader.coursedir import CourseDirectory
from traitlets import Bool
from traitlets.config import Configurable

from autograder import course, late, receipts
from autograder.rebuild import NO_FILE, Rebuilt, rebuild, with_note
from autograder.salvage import MAX_BYTES

if TYPE_CHECKING:  # the catalogue imports torch, which most of nbgrader's commands do without
    from autograder.exercise import Assignment

RECEIVED = "classroom/received"
OF_THE_EXCHANGE = "submission_secret.txt"  # nbgrader names the feedback it hands back after it
MOST_FILES = 1_000  # of one submission that are looked at
MOST_NOTEBOOKS = 10  # of one submission that are read

_NOTEBOOK = re.compile(r"\.ipynb(\.txt|\.json| ?\(\d+\))*$", re.IGNORECASE)  # as browsers name what they save


class Intake(Configurable):
    """What a course decides about the intake, in nbgrader_config.py."""

    trust_timestamps = Bool(
        False, config=True, help="Whether the timestamp.txt of a submission is the collector's, and its time believed"
    )


class TakenIn(NamedTuple):
    """A work fit for grading. `reasons`: what had to be put right, in words for its author; they stand in the
    notebook's first cell too. `digest`: of the file that was read, "" for none; `files`: others that are wanted."""

    notebook: NotebookNode
    reasons: tuple[str, ...]
    digest: str
    files: tuple[Path, ...] = ()


def released_notebook(root: Path, assignment: Assignment) -> NotebookNode:
    """The notebook that the class was given. Raises CourseError when it is missing or broken."""
    path = course.notebook_path(root, "exercises", assignment)
    course.read_notebook(path)
    return nbformat.read(path, as_version=4)


def take_in(released: NotebookNode, assignment: Assignment, folder: Path) -> TakenIn:
    """One student's work, from the folder that was handed in. Nothing is written, nothing raised.

    The submission can be anything: what cannot be read is replaced by the released notebook, with the reason.
    """
    try:
        return _take_in(released, assignment, folder)
    except Exception:  # whatever it is, it stays this student's own trouble
        traceback.print_exc()
        rebuilt = rebuild(b"", released)
        return TakenIn(with_note(rebuilt.notebook, rebuilt.reasons), rebuilt.reasons, "")


def submissions(submitted: Path, assignment: Assignment, students: str = "*") -> dict[str, Path]:
    """Student -> the folder with their work for the assignment; `students` is a pattern as nbgrader takes it.

    A folder whose name differs in case, spaces or signs only is taken where there is no better one.
    """
    found = {}
    for place in _inside(submitted):
        if place.is_dir() and not place.name.startswith(".") and fnmatchcase(place.name, students):
            folders = [path for path in _inside(place) if path.is_dir() and not path.is_symlink()]
            alike = [path for path in folders if _folded(path.name) == _folded(assignment.id)]
            if alike:
                exact = place / assignment.id
                found[place.name] = min(alike, key=lambda path: (_is_empty(path), path != exact, path.name))
    return found


def take_in_class(coursedir: CourseDirectory, say: Callable[[str], None]) -> CourseDirectory:
    """Take in everyone whom the course directory selects; returns a course directory that reads what was taken in.

    coursedir: with the assignment and the pattern of students set. It is not changed. say: is told, student by student,
    what had to be put right. Assignments outside the catalogue are left to nbgrader. Raises CourseError when the
    released notebook is missing.
    """
    from autograder import catalogue, points

    root = Path(coursedir.root)
    late.check(root, (coursedir.parent or coursedir).config)
    assignment = catalogue.find_assignment(coursedir.assignment_id)
    if assignment is None:
        return coursedir
    released = released_notebook(root, assignment)
    points.refuse(released, assignment)
    found = submissions(root / coursedir.submitted_directory, assignment, coursedir.student_id)
    aside = 0
    for student, folder in found.items():
        taken = take_in(released, assignment, folder)
        aside += receive(coursedir, assignment, student, folder, taken, say)
        for reason in taken.reasons:
            say(f"{student}: {reason}")
    if aside:
        say(
            f"{aside} submissions came with a {receipts.STAMP} that was not believed. If nbgrader's exchange or "
            f"ngshare collected them, set c.Intake.trust_timestamps = True in {course.MARKER}."
        )
    _forget_others(root, assignment, coursedir.student_id, found)
    reading = copy.copy(coursedir)
    reading.submitted_directory = RECEIVED
    return reading


def receive(
    coursedir: CourseDirectory,
    assignment: Assignment,
    student: str,
    folder: Path,
    taken: TakenIn,
    say: Callable[[str], None],
) -> bool:
    """Keep what was taken in, with its receipt time; whether the submission came with another time, not believed."""
    root, given = Path(coursedir.root), receipts.stamp_of(folder)
    settings = (coursedir.parent or coursedir).config  # nbgrader reads nbgrader_config.py after it makes the directory
    believed = given if Intake(config=settings).trust_timestamps else None
    received = receipts.record(root, assignment.id, student, taken.digest, taken.reasons, believed)
    _store(root / RECEIVED / student / assignment.id, assignment, taken, received)
    return folder.name == assignment.id and _stamp(folder, received, say) and given is not None


def plain_files(folder: Path) -> Iterator[Path]:
    """The plain files below a folder that are looked at. Links are passed over, since they may point anywhere."""
    return islice(_files(folder), MOST_FILES)


def is_notebook(path: Path) -> bool:
    """Whether the name is that of a notebook, or what a browser makes of one."""
    return bool(_NOTEBOOK.search(path.name))


def install() -> None:
    """Let nbgrader's autograding take in the class before it looks for notebooks.

    nbgrader has no setting for that: its pre-convert hook comes after it has passed over empty folders and unknown file
    names, is not told the student, and its errors are swallowed. So the method that looks for notebooks is wrapped.
    """
    original = Autograde.init_notebooks
    if hasattr(original, "__wrapped__"):
        return  # formgrader reads the configuration more than once

    @functools.wraps(original)
    def init_notebooks(converter: Autograde) -> None:
        try:
            converter.coursedir = take_in_class(converter.coursedir, converter.log.warning)
        except course.CourseError as error:
            converter.log.error(str(error))
            raise NbGraderException(str(error)) from error
        original(converter)

    Autograde.init_notebooks = init_notebooks


def _take_in(released: NotebookNode, assignment: Assignment, folder: Path) -> TakenIn:
    files = list(plain_files(folder))
    name = f"{assignment.notebook}.ipynb"
    notebooks = [path for path in files if _NOTEBOOK.search(path.name)]
    notebooks.sort(key=lambda path: _rank(folder, path, name))
    read = [(path, data := content_of(path), rebuild(data, released)) for path in notebooks[:MOST_NOTEBOOKS]]
    reasons = [] if folder.name == assignment.id else [f"The folder was named {_shown(folder.name)}."]
    if not read:
        others = [path for path in files if path.name not in (receipts.STAMP, receipts.ASIDE, OF_THE_EXCHANGE)]
        there = f" There is {_list(folder, others)}." if others else " The folder was empty."
        rebuilt, digest = rebuild(None, released), ""
        reasons += [NO_FILE + there]
    else:
        path, data, rebuilt = max(read, key=_worth(folder, name))
        digest = hashlib.sha256(data).hexdigest()
        reasons += _about_names(folder, path, notebooks, name) + list(rebuilt.reasons)
    kept = (*assignment.files, OF_THE_EXCHANGE)
    wanted = tuple(path for path in files if path.relative_to(folder).as_posix() in kept)
    return TakenIn(with_note(rebuilt.notebook, reasons), tuple(reasons), digest, wanted)


def _files(folder: Path) -> Iterator[Path]:
    """The plain files below a folder. Links are passed over, since they may point anywhere."""
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith((".", "__")))
        for name in sorted(names):
            path = Path(place, name)
            if not name.startswith(".") and stat.S_ISREG(path.lstat().st_mode):
                yield path


def _rank(folder: Path, path: Path, name: str) -> tuple[int, str]:
    """How far a file's name is from the right one."""
    if path.name == name:
        return (0 if path.parent == folder else 1), str(path)
    return (2 if _folded(name.removesuffix(".ipynb")) in _folded(path.name) else 3), str(path)


def _worth(folder: Path, name: str) -> Callable[[tuple[Path, bytes, Rebuilt]], tuple]:
    """What is graded of several notebooks: one with answers in it; of those the one whose name is nearest."""

    def worth(read: tuple[Path, bytes, Rebuilt]) -> tuple:
        path, _, rebuilt = read
        return bool(rebuilt.answered), -_rank(folder, path, name)[0], len(rebuilt.answered)

    return worth


def _about_names(folder: Path, path: Path, notebooks: Sequence[Path], name: str) -> list[str]:
    reasons = []
    if path != folder / name:
        reasons.append(f"The notebook should be named `{name}`; {_list(folder, [path])} was graded.")
    others = [other for other in notebooks if other != path]
    if others:
        reasons.append(f"These notebooks were not graded: {_list(folder, others)}.")
    return reasons


def content_of(path: Path) -> bytes:
    """The file; of one that is too large for `rebuild` both ends, and a byte more, by which it knows."""
    size, half = path.stat().st_size, MAX_BYTES // 2
    with path.open("rb") as file:
        if size <= MAX_BYTES:
            return file.read(MAX_BYTES)
        start = file.read(half + 1)
        file.seek(size - half)
        return start + file.read(half)


def _store(place: Path, assignment: Assignment, taken: TakenIn, received: str) -> None:
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    for path in taken.files:
        shutil.copyfile(path, place / path.name)
    receipts.write(place / f"{assignment.notebook}.ipynb", nbformat.writes(taken.notebook) + "\n")
    receipts.write(place / receipts.STAMP, received)


def _stamp(folder: Path, received: str, say: Callable[[str], None]) -> bool:
    try:
        return receipts.stamp(folder, received)
    except OSError as error:
        say(f"{folder}: formgrader will not show when this arrived, since no file can be written there ({error}).")
        return False


def _forget_others(root: Path, assignment: Assignment, students: str, found: dict[str, Path]) -> None:
    """What was taken in from folders that are there no longer is not graded."""
    for place in (root / RECEIVED).glob(f"*/{assignment.id}"):
        if place.parent.name not in found and fnmatchcase(place.parent.name, students):
            shutil.rmtree(place)


def _is_empty(folder: Path) -> bool:
    return all(path.name in (receipts.STAMP, receipts.ASIDE) for path in _inside(folder))


def _inside(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:  # a folder that may not be read is as good as empty
        return []


def _folded(name: str) -> str:
    return "".join(filter(str.isalnum, name.casefold()))


def _list(folder: Path, paths: Sequence[Path]) -> str:
    shown = [_shown(path.relative_to(folder).as_posix()) for path in paths[:5]]
    return ", ".join(shown) + (f" and {len(paths) - 5} more" if len(paths) > 5 else "")


def _shown(name: str) -> str:
    """A file name as it can stand in a note: printable, short, and no markup."""
    kept = "".join(letter if letter.isprintable() and letter not in "`<>&" else "?" for letter in name[:80])
    return f"`{kept}`"
