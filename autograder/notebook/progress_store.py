"""What a learner's checks have earned, kept between sessions in a small file next to the notebooks.

An entry holds the points and a digest of the code that earned them: code that has changed since counts no longer. To
remove the file is to forget, and is allowed; one that cannot be read is left as it is and said.
"""

import ast
import contextlib
import hashlib
import inspect
import json
import linecache
import types
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from autograder import catalogue, course
from autograder.catalogue.exercise import Assignment
from autograder.course import PROGRESS as FILE
from transformer_ref.atomic_write import atomic_write


@dataclass(frozen=True)
class Earned:
    """The points of an exercise's last check, and the points that it decides. code: a digest of the answer."""

    points: float
    of: float
    code: str = ""


@dataclass(frozen=True)
class Remembered:
    """Exercise id -> entry. trouble: why the file could not be read, or ""."""

    entries: Mapping[str, Earned]
    trouble: str = ""


def note(exercise_id: str, points: float, of: float, namespace: Mapping[str, Any]) -> None:
    """Store the points of a check. Nothing happens if the file cannot be written or read."""
    folder = place()
    known = read(folder)
    if known.trouble:
        return
    names = catalogue.find(exercise_id).names
    entries = {**known.entries, exercise_id: Earned(points, of, code_of(names, namespace))}
    told = {name: asdict(entry) for name, entry in sorted(entries.items())}
    with contextlib.suppress(OSError):  # a folder that may not be written to: this session remembers all the same
        atomic_write(folder / FILE, json.dumps({"exercises": told}, indent=1) + "\n")


def read(folder: Path) -> Remembered:
    """The content of this folder's file; empty if there is none."""
    try:
        told = json.loads((folder / FILE).read_text(encoding="utf-8"))
        return Remembered({name: _entry(each) for name, each in told["exercises"].items()})
    except FileNotFoundError:
        return Remembered({})
    except OSError as error:
        return Remembered({}, f"{folder / FILE} cannot be read ({error.strerror})")
    except (ValueError, TypeError, KeyError, AttributeError):
        return Remembered({}, f"{folder / FILE} is not a list of earned points")


def _entry(told: Mapping[str, Any]) -> Earned:
    entry = Earned(float(told["points"]), float(told["of"]), str(told["code"]))
    if not 0 <= entry.points <= entry.of < 1_000:
        raise ValueError(f"points: expected 0 to {entry.of}, got {entry.points}")
    return entry


def place(start: Path | None = None) -> Path:
    """The folder of the progress file: the one with all notebooks, if a notebook is in its chapter's folder; else its
    own."""
    start = start or Path.cwd()
    return start.parent if any(start.name == each.id for each in catalogue.ASSIGNMENTS) else start


def notebook_of(folder: Path, assignment: Assignment) -> Path | None:
    """The path of an assignment's notebook: in its chapter's folder, or here."""
    name = f"{assignment.notebook}.ipynb"
    return next((path for path in (folder / assignment.id / name, folder / name) if path.is_file()), None)


def code_of(names: Sequence[str], namespace: Mapping[str, Any]) -> str:
    """A digest of the cells that define these names, without comments and layout; "" if they cannot be found."""
    cells = ["".join(linecache.getlines(file)) for file in sorted(files_of(names, namespace) - {""})]
    return digest("\n".join(cells)) if any(cells) else ""


def files_of(names: Sequence[str], namespace: Mapping[str, Any]) -> set[str]:
    """The files or, in a notebook, the cells that define these functions and classes; "" for an unknown one."""
    files = set()
    for found in map(namespace.get, names):
        defined = vars(found).values() if isinstance(found, type) else (found,)
        codes = [inspect.unwrap(each).__code__ for each in defined if isinstance(each, types.FunctionType)]
        files |= {code.co_filename for code in codes} or {""}
    return files


def digest(source: str) -> str:
    """Sixteen characters that change with the code."""
    try:
        source = ast.dump(ast.parse(source))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        source = source.strip()
    return hashlib.sha256(source.encode("utf-8", "surrogatepass")).hexdigest()[:16]


class Notebooks:
    """The saved notebooks of a folder, each read on first use."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._read: dict[str, frozenset[str] | None] = {}

    def holds(self, assignment: Assignment, code: str) -> bool:
        """Whether a cell of the saved notebook has this code; True if there is no notebook."""
        if assignment.id not in self._read:
            path = notebook_of(self.folder, assignment)
            self._read[assignment.id] = frozenset(_digests(path)) if path else None
        found = self._read[assignment.id]
        return not found or code in found

    @cached_property
    def remembered(self) -> Remembered:
        return read(self.folder)


def _digests(path: Path) -> Iterator[str]:
    try:
        yield from (digest(source) for _, source, _ in course.code_cells(course.read_notebook(path)))
    except (course.CourseError, OSError, AttributeError, TypeError):  # it is the learner's to break
        return
