"""The record of the checks that `release` has made: an assignment is checked again if anything that they depend on has
changed.

The record is in build/, so a fresh clone checks everything once, and `make clean` forgets it.
"""

import functools
import hashlib
import json
import platform
import re
from collections.abc import Iterable, Mapping
from importlib import metadata
from pathlib import Path

import autograder
import transformer_ref
from autograder import course
from autograder.catalogue import own
from autograder.catalogue.exercise import Assignment
from transformer_ref.atomic_write import atomic_write

FILE = Path("build", "checked.json")
GRADER, REFERENCE = Path(autograder.__file__).parent, Path(transformer_ref.__file__).parent
CATALOGUE = GRADER / "catalogue"
CHAPTER = re.compile(r"\bch\d\d_\w+")
SOURCES = (".py", ".json", ".js")
BLANKS = "the blanks"


def inputs(root: Path, assignment: Assignment) -> dict[str, str]:
    """Everything that decides whether the solutions earn all points and the blanks none: name -> digest or version.

    The blanks are generated from these; `release` adds their digest (`BLANKS`) afterwards.
    """
    return {
        "the solution": digest_folder(root / "solutions" / assignment.id),
        "the catalogue": _digest(entries(assignment)),
        course.MARKER: hashlib.sha256((root / course.MARKER).read_bytes()).hexdigest()[:16],
        **_installed(),
    }


def entries(assignment: Assignment) -> list[Path]:
    """The files of its exercises, and those of all chapters that these files import."""
    if assignment.id.startswith(own.PREFIX):  # it may borrow exercises from any chapter
        return [*own.sources(assignment.id), *filter(_is_entry, _sources(GRADER))]
    found, waiting = set(), {f"ch{assignment.id}"}
    while waiting:
        chapter = waiting.pop()
        found.add(chapter)
        named = {
            name for path in (CATALOGUE / chapter).glob("*.py") for name in CHAPTER.findall(path.read_text("utf-8"))
        }
        waiting |= {name for name in named if (CATALOGUE / name).is_dir()} - found
    return sorted(path for chapter in found for path in (CATALOGUE / chapter).glob("*.py"))


def digest_folder(folder: Path) -> str:
    """A digest of the names and contents of all files in a folder, hidden files excepted."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file() and not _hidden(path, folder))
    return _digest_texts(f"{path.relative_to(folder).as_posix()} {_digest([path])}" for path in files)


class CheckCache:
    """A course's record: assignment -> its `inputs` and `BLANKS` when all its checks last passed."""

    def __init__(self, root: Path) -> None:
        self._path = root / FILE
        try:
            known = json.loads(self._path.read_text(encoding="utf-8"))
        except (OSError, ValueError):  # none, or one that a kill has cut: everything is checked
            known = {}
        self._known: dict[str, Mapping[str, str]] = known if isinstance(known, dict) else {}

    def reason(self, assignment: Assignment, now: Mapping[str, str]) -> str:
        """Why an assignment must be checked again: the inputs that differ from its last check, or ""."""
        then = self._known.get(assignment.id)
        if not isinstance(then, dict):
            return "not checked before"
        changed = [name for name, value in now.items() if then.get(name) != value]
        return f"changed: {', '.join(changed)}" if changed else ""

    def store(self, assignment: Assignment, now: Mapping[str, str]) -> None:
        """Record that all checks of an assignment have passed with these inputs."""
        self._known[assignment.id] = dict(now)
        atomic_write(self._path, json.dumps(self._known, indent=1) + "\n")


@functools.cache
def _installed() -> dict[str, str]:
    return {
        "the grader": _digest(path for path in _sources(GRADER) if not _is_entry(path)),
        "transformer_ref": _digest(_sources(REFERENCE)),
        "Python": platform.python_version(),
        "the installed packages": _digest_texts(f"{each.name} {each.version}" for each in metadata.distributions()),
    }


def _sources(package: Path) -> list[Path]:
    return sorted(path for path in package.rglob("*") if path.suffix in SOURCES and "__pycache__" not in path.parts)


def _is_entry(path: Path) -> bool:
    return path.parent.parent == CATALOGUE


def _hidden(path: Path, folder: Path) -> bool:
    return any(part.startswith(".") or part == "__pycache__" for part in path.relative_to(folder).parts)


def _digest(files: Iterable[Path]) -> str:
    return _digest_texts(
        f"{path.parent.name}/{path.name} {hashlib.sha256(path.read_bytes()).hexdigest()}" for path in files
    )


def _digest_texts(texts: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(sorted(texts)).encode()).hexdigest()[:16]
