"""A teacher's own exercises: a folder `own` that no update of the course touches, read into the same entries.

    own/own_week3/__init__.py         what the assignment's notebook may import, in settings
    own/own_week3/centered_rows.py    one exercise, as EXERCISE; its file bears its id
    own/own_week3/test_centered_rows.py

A folder that cannot be read is reported separately, with file and line, and stops nothing else.
"""

import ast
import importlib
import importlib.util
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from autograder.catalogue.exercise import Assignment, EntryError, Exercise
from autograder.course import MARKER, CourseError

FOLDER, PREFIX = "own", "own_"
NOT_AN_EXERCISE = ("_", "test_")  # how the names of a folder's other files begin
_READ: dict[Path, tuple[tuple, "Own"]] = {}  # a folder is read once, and again when a file of it has changed


class Own(NamedTuple):
    """The contents of the folder: assignments, and for each folder that cannot be read, the reason."""

    assignments: tuple[Assignment, ...] = ()
    troubles: Mapping[str, str] = {}


def folder() -> Path | None:
    """The folder of own exercises: the nearest from here upward, but not above the current course; outside of a course,
    the one that was installed with this package."""
    try:
        here = Path.cwd()
    except FileNotFoundError:
        return None
    for place in (here, *here.parents):
        if _is_own(place / FOLDER):
            return place / FOLDER
        if (place / MARKER).is_file():
            return None
    beside = Path(__file__).resolve().parents[2] / FOLDER
    return beside if _is_own(beside) else None


def read(course: Sequence[Assignment]) -> Own:
    """All that can be read of the folder. course: the course's own assignments, whose exercises' ids are taken."""
    place = folder()
    if place is None:
        return Own()
    files = sorted(place.glob(f"{PREFIX}*/*.py"))
    state = tuple((path, path.stat().st_mtime_ns) for path in files)
    if place not in _READ or _READ[place][0] != state:
        _READ[place] = state, _read(place, course)
    return _READ[place][1]


def sources(assignment_id: str) -> list[Path]:
    """The files that an own assignment is made of; none for an assignment of the course."""
    place = folder()
    if place is None or not assignment_id.startswith(PREFIX):
        return []
    return [place / "__init__.py", *sorted((place / assignment_id).glob("*.py"))]


def blame(error: BaseException) -> str | None:
    """`own/own_week3/x.py, line 12: NameError: ...` for an exception raised in a file of the folder, else None."""
    place = folder()
    if place is None:
        return None
    frames = [(frame.filename, frame.lineno) for frame in traceback.extract_tb(error.__traceback__)]
    if isinstance(error, SyntaxError):
        frames.append((error.filename or "", error.lineno))
    for filename, line in reversed(frames):
        if place in Path(filename).parents:
            said = error.msg if isinstance(error, SyntaxError) else error
            kind = "" if isinstance(error, EntryError) else f"{type(error).__name__}: "
            return f"{Path(filename).relative_to(place.parent)}, line {line}: {kind}{said}"
    return None


def _is_own(place: Path) -> bool:
    return (place / "__init__.py").is_file()


def _read(place: Path, course: Sequence[Assignment]) -> Own:
    _make_importable(place)
    assignments, troubles = [], {}
    taken = {name: "the course" for assignment in course for name in assignment.exercise_ids}
    for package in sorted(place.glob(f"{PREFIX}*")):
        if _is_own(package):
            try:
                assignments.append(_assignment(package, course, taken))
            except CourseError as trouble:
                troubles[package.name] = str(trouble)
    return Own(tuple(assignments), troubles)


def _make_importable(place: Path) -> None:
    """Make `import own` import this folder with its current files."""
    loaded = sys.modules.get(FOLDER)
    same = loaded is not None and Path(loaded.__file__ or "").parent == place
    for name in [name for name in sys.modules if name.partition(".")[0] == FOLDER]:
        if not same or not (name == FOLDER or name.rpartition(".")[2].startswith("test_")):  # a test may be asking
            del sys.modules[name]
    importlib.invalidate_caches()
    if not same:
        spec = importlib.util.spec_from_file_location(
            FOLDER, place / "__init__.py", submodule_search_locations=[str(place)]
        )
        sys.modules[FOLDER] = importlib.util.module_from_spec(spec)  # its file holds a docstring: nothing is run


def _assignment(package: Path, course: Sequence[Assignment], taken: dict[str, str]) -> Assignment:
    settings = _imported(f"{FOLDER}.{package.name}")
    borrowed = tuple(getattr(settings, "COURSE_EXERCISES", ()))
    lenders = {name: assignment.load for assignment in course for name in assignment.exercise_ids}
    if unknown := [name for name in borrowed if name not in lenders]:
        raise CourseError(f"{_named(package)}/__init__.py: COURSE_EXERCISES: the course has no {unknown[0]!r}")
    files = [path for path in sorted(package.glob("*.py")) if not path.name.startswith(NOT_AN_EXERCISE)]
    own = sorted((_exercise(package, path, taken) for path in files), key=_order)
    taken.update((exercise.id, _named(package)) for exercise in own)
    entries = {exercise.id: exercise for exercise in own}
    return Assignment(
        id=package.name,
        notebook=package.name.removeprefix(PREFIX),
        exercise_ids=(*borrowed, *entries),
        load=lambda name: entries[name] if name in entries else lenders[name](name),
        visible_modules=tuple(getattr(settings, "VISIBLE_MODULES", ())),
        files=tuple(getattr(settings, "FILES", ())),
    )


def _exercise(package: Path, path: Path, taken: Mapping[str, str]) -> Exercise:
    exercise = getattr(_imported(f"{FOLDER}.{package.name}.{path.stem}"), "EXERCISE", None)
    for wrong in _wrong(exercise, path.stem.replace("_", "-"), taken):
        raise CourseError(f"{_named(package)}/{path.name}, line {_line_of_entry(path)}: {wrong}")
    return exercise


def _wrong(exercise: object, file: str, taken: Mapping[str, str]) -> Iterator[str]:
    """The errors in an entry, one sentence each."""
    if not isinstance(exercise, Exercise):
        yield f"EXERCISE: expected an Exercise, got {type(exercise).__name__}. A file that is none begins with _"
        return
    if exercise.id != file:
        yield f"id: expected {file!r}, as the file is called, got {exercise.id!r}"
    if exercise.id in taken:
        yield f"id: {exercise.id!r} is taken by {taken[exercise.id]}; choose another, for the file too"


def _imported(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a teacher's file can raise anything, SystemExit too
        raise CourseError(blame(error) or f"{name}: {type(error).__name__}: {error}") from error


def _named(package: Path) -> str:
    return f"{FOLDER}/{package.name}"


def _line_of_entry(path: Path) -> int:
    """Where the file says EXERCISE = ...; 1 when it does not."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and any(getattr(name, "id", "") == "EXERCISE" for name in node.targets):
            return node.lineno
    return 1


def _order(exercise: Exercise) -> tuple:
    """Sort key: numbers in numerical order, 2 before 10."""
    return [(int(part), "") if part.isdigit() else (0, part) for part in exercise.number.split(".")], exercise.id
