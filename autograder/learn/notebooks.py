"""A learner's own copy of the notebooks: what is new is copied, and what is there is never written to."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from autograder.address import linked
from autograder.course import CHECK_SUFFIX, PROGRESS, CourseError, code_cells, read_notebook
from autograder.policy import deadlines

PACKED = Path(__file__).with_name("packed")  # in an installed package; setup.py puts them there
EXERCISES = Path(__file__).resolve().parents[2] / "exercises"  # in the course's own folder
SOLUTIONS = "solutions"


@dataclass(frozen=True)
class Copied:
    """The paths that were copied into a folder, and those that existed already."""

    new: tuple[str, ...]
    kept: tuple[str, ...]

    def __str__(self) -> str:
        if not self.kept:
            return f"{len(self.new)} notebooks copied"
        said = f"your {len(self.kept)} notebooks are as you left them"
        return f"{said}; new: {', '.join(self.new)}" if self.new else said


def source() -> Path:
    """The folder of notebooks of the course, or of the package.

    Raises CourseError if neither has any.
    """
    for folder in (PACKED, EXERCISES):
        if any(folder.glob("*/*.ipynb")):
            return folder
    raise CourseError(
        "The notebooks did not come with this package. Download one from the page of its chapter, and open it with "
        "`jupyter lab`."
    )


def copy(folder: Path, book: str) -> Copied:
    """Copy the notebooks that the folder lacks, with links to the book at this address.

    Raises CourseError for a folder that cannot be written to, or that contains solutions.
    """
    if (folder / SOLUTIONS).is_dir():
        raise CourseError(f"{folder} holds the course's {SOLUTIONS}: name a folder of your own.")
    new, kept = [], []
    try:
        for path in sorted(source().glob("*/*.ipynb")):
            name = path.relative_to(path.parents[1])
            if (folder / name).exists():
                kept.append(name.as_posix())
                continue
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            _copy(path, folder / name, book)
            new.append(name.as_posix())
    except OSError as error:
        raise CourseError(f"{folder} cannot hold your notebooks: {error.strerror or error}.") from error
    return Copied(tuple(new), tuple(kept))


def _copy(path: Path, to: Path, book: str) -> None:
    """Copy a whole notebook or nothing, to a name that does not exist yet."""
    half = to.with_name(f".{to.name}.half")
    half.write_text(linked(path.read_text(encoding="utf-8"), book), encoding="utf-8", newline="\n")
    half.rename(to)


def to_open(folder: Path) -> str:
    """The notebook to continue with: the first with an exercise whose check has not passed; the first of all if all
    have."""
    earned = _earned(folder)
    paths = sorted(path.relative_to(folder).as_posix() for path in folder.glob("[0-9][0-9]_*/*.ipynb"))
    return next((path for path in paths if not _is_done(folder / path, earned)), paths[0])


def due(folder: Path, now: datetime) -> list[tuple[str, str]]:
    """(name, due date and time left) of each unfinished notebook with a due date, the earliest first.

    now: UTC.
    """
    earned = _earned(folder)
    found = []
    for path in sorted(folder.glob("*/*.ipynb")):
        when = deadlines.read(path)
        if when is not None and not _is_done(path, earned):
            found.append((when[0], path.relative_to(folder).as_posix(), deadlines.said(path, now)))
    return [(name, said) for _, name, said in sorted(found)]


def _earned(folder: Path) -> Mapping[str, bool]:
    """Exercise id -> whether its check passed, from the progress file; empty if it is damaged."""
    try:
        told = json.loads((folder / PROGRESS).read_text(encoding="utf-8"))["exercises"]
        return {name: each["points"] >= each["of"] for name, each in told.items()}
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return {}


def _is_done(path: Path, earned: Mapping[str, bool]) -> bool:
    try:
        names = [name for name, _, _ in code_cells(read_notebook(path)) if name.endswith(CHECK_SUFFIX)]
    except (CourseError, AttributeError, TypeError):  # it is the learner's to break
        return False
    return all(earned.get(name.removesuffix(CHECK_SUFFIX), False) for name in names)
