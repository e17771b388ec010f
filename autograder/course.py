"""Where a course lives on disk: its notebooks, its classroom, its secret."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import secrets
import stat
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the catalogue imports torch, which a look at the course's files does without
    from autograder.catalogue.exercise import Assignment, Exercise

CHECK_SUFFIX = "-check"
MARKER = "nbgrader_config.py"
PROGRESS = ".progress.json"  # next to a learner's notebooks: what checks have earned (see `notebook.progress_store`)


class CourseError(Exception):
    """A problem with the course's files that a teacher can fix; the text says which."""


def add_assignment(parser: argparse.ArgumentParser) -> None:
    """Add the argument of a command that is about one assignment."""
    parser.add_argument(
        "assignment", metavar="ASSIGNMENT", help="name of the assignment's folder, such as 05_self_attention"
    )


def find_root() -> Path:
    """The nearest folder, from this one upward, that holds a course; else the one this package is installed from."""
    start = Path.cwd().resolve()
    for folder in (start, *start.parents, Path(__file__).resolve().parents[1]):
        if (folder / MARKER).is_file():
            return folder
    raise CourseError(f"There is no course here: no folder from {start} upward holds {MARKER}.")


def no_pipes(root: Path) -> None:
    """Check that no file of the course is a named pipe: opening one would block for ever.

    Submissions are not checked here (see `intake.untrusted_files`). Raises CourseError naming the first.
    """
    places = [root / MARKER, *(root / "classroom").glob("*")]
    for folder in (root / "classroom" / "log", root / "classroom" / "verdicts", root / "exercises", root / "solutions"):
        places += [Path(here, name) for here, _, names in os.walk(folder) for name in names]
    for path in places:
        with contextlib.suppress(OSError):  # a file that is missing or not accessible is the caller's problem
            if stat.S_ISFIFO(path.stat().st_mode):
                raise CourseError(f"{path} is a named pipe. Expected a file. Put your copy in its place.")


def secret(root: Path) -> bytes:
    """The secret from which hidden inputs are drawn; created on first use, readable only by its owner.

    Raises CourseError if its file is empty, OSError if it can be neither read nor created; then no file is left.
    """
    path = root / "classroom" / "secret"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        if judged := judged_assignments(root):
            print(
                f"{path} is gone, although submissions were judged with it ({', '.join(judged)}). A new one is made, "
                "so a regrade of that work uses other hidden inputs. If you have a copy, put it back and grade again.",
                file=sys.stderr,
            )
        _make_secret(path)
    content = path.read_bytes()
    if not content:
        raise CourseError(f"{path} is empty, so hidden inputs could be guessed. Remove it; a new one is made.")
    return content


def judged_assignments(root: Path) -> list[str]:
    """The assignments with verdicts on record, whose hidden inputs were drawn from the secret."""
    files = sorted((root / "classroom" / "verdicts").glob("*.jsonl"))
    return [path.stem for path in files if path.stat().st_size]


def _make_secret(path: Path) -> None:
    """Write it under another name, then link it: if two processes create one at once, both get the first."""
    descriptor, partial = tempfile.mkstemp(prefix=".secret-", dir=path.parent)  # only its owner may read it
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(secrets.token_bytes(32))
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(partial, path)
        except FileExistsError:
            return
        except OSError:  # a file system without links
            os.replace(partial, path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(partial)


# As `python -m nbgrader`, without a second of imports in each command that nothing here needs: see `autograder.grade`.
NBGRADER = "import autograder.grade; from nbgrader.apps.nbgraderapp import main; main()"


def nbgrader_command(*arguments: str) -> tuple[list[str], dict[str, str]]:
    """Command and environment that run nbgrader, which starts another program by its bare name."""
    path = os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", "")])
    return [sys.executable, "-c", NBGRADER, *arguments], {**os.environ, "PATH": path}


def notebook_path(root: Path, step: str, assignment: Assignment) -> Path:
    """solutions/05_self_attention/self_attention.ipynb for step "solutions"."""
    return root / step / assignment.id / f"{assignment.notebook}.ipynb"


def read_notebook(path: Path) -> dict[str, Any]:
    """The notebook's JSON. Raises CourseError naming the file if it is missing or damaged."""
    try:
        notebook = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise CourseError(f"{path} is missing.") from error
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise CourseError(f"{path} is not a notebook: {error}.") from error
    if not isinstance(notebook, dict) or not isinstance(notebook.get("cells"), list):
        raise CourseError(f"{path} is not a notebook: it has no cells.")
    return notebook


def code_cells(notebook: dict[str, Any]) -> Iterator[tuple[str, str, bool]]:
    """(grade id or "", source, whether a learner writes it) of each code cell."""
    for cell in notebook["cells"]:
        if cell.get("cell_type") == "code":
            graded = cell.get("metadata", {}).get("nbgrader", {})
            source = cell.get("source", "")
            yield (
                graded.get("grade_id", ""),
                source if isinstance(source, str) else "".join(source),
                bool(graded.get("solution")),
            )


def set_up_cells(
    root: Path, assignment: Assignment, exercise: Exercise, step: str = "exercises", training: bool = False
) -> list[str]:
    """The cells of the notebook that run before an exercise's answer and are not answers or checks.

    training: with those that take minutes (see `Assignment.trains`).
    """
    cells = []
    notebook = read_notebook(notebook_path(root, step, assignment))
    left_out = [] if training else [cell for cell in notebook["cells"] if cell.get("id") in assignment.trains]
    notebook["cells"] = [cell for cell in notebook["cells"] if cell not in left_out]
    for grade_id, source, is_answer in code_cells(notebook):
        if grade_id == exercise.id:
            break
        if not is_answer and not grade_id.endswith(CHECK_SUFFIX):
            cells.append(source)
    return cells
