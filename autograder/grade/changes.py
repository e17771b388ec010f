"""What a regrade changed, and why, as far as the log can tell."""

import hashlib
import platform
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

import autograder
import transformer_ref
from autograder import catalogue
from autograder.catalogue import chapters, own

GRADER, PACKAGE = Path(autograder.__file__).parent, Path(transformer_ref.__file__).parent
SPOKEN = ("torch", "Python")  # versions that people know by their number
DECIDING = (  # what of the grader decides points; the exercises are looked at apart
    *("inside/*.py", "sandbox/*.py", "judging/*.py", "intake/*.py", "catalogue/*.py"),
    *("grade/execute.py", "grade/points.py", "grade/late.py"),
)
SAME = 1e-9  # points; a sum of equal shares may differ in its last bit


class Change(NamedTuple):
    """One grade that is not what it was."""

    student: str
    cell: str
    before: float | None
    after: float | None
    why: str


def versions(assignment: str, released: Path) -> dict[str, str]:
    """What a grade depends on beside the submission, each as a short text that changes when it does."""
    if assignment.startswith(own.PREFIX):
        entries = {"your own exercises": own.sources(assignment)}
    else:
        entry = catalogue.find_assignment(assignment)
        sources = chapters.sources(entry) if entry else []
        entries = {f"the catalogue ({sources[0].parent.name})": sources} if entry else {}
    return {
        **{what: _digest(*files) for what, files in entries.items()},
        "the released notebook": _digest(*sorted(released.rglob("*.ipynb"))),
        **installed(),
    }


def installed() -> dict[str, str]:
    """What every grade depends on, whatever the assignment."""
    judging = (path for pattern in DECIDING for path in GRADER.glob(pattern))
    return {
        "the grader": _digest(*sorted(judging)),
        "transformer_ref": _digest(*sorted(PACKAGE.rglob("*.py"))),
        "torch": metadata.version("torch"),
        "Python": platform.python_version(),
    }


def rules_changed(then: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """What decides about points and is not now what it was then."""
    return [what for what in now if what not in SPOKEN and then.get(what) != now[what]]


def changed(
    student: str,
    before: Mapping[str, float | None],
    after: Mapping[str, float | None],
    last: Mapping[str, Any] | None,
    submission: str,
    now: Mapping[str, str],
) -> list[Change]:
    """Each grade of a student that a regrade changed.

    last: the student's last `graded` line of the log, with the versions of its run; None when there is none.
    submission, now: digest of what is graded, and versions, this time.
    """
    differing = [
        cell
        for cell, points in after.items()
        if before.get(cell) is not None and (points is None or abs(points - before[cell]) > SAME)
    ]
    why = _why(last, submission, now) if differing else ""
    return [Change(student, cell, before[cell], after[cell], why) for cell in differing]


def _why(last: Mapping[str, Any] | None, submission: str, now: Mapping[str, str]) -> str:
    if last is None:
        return "the earlier grade is in no log"
    if last["submission"] != submission:
        return "a new submission"
    then = last["versions"]
    moved = [
        f"{what} is now {now[what]}, was {then[what]}" if what in SPOKEN else f"{what} changed"
        for what in now
        if then.get(what, now[what]) != now[what]
    ]
    return "; ".join(moved) or "unknown: same work, same catalogue, same versions"


def _digest(*files: Path) -> str:
    known = hashlib.sha256()
    for file in files:
        if file.is_file():
            known.update(file.name.encode() + b"\0" + file.read_bytes())
    return known.hexdigest()[:16]
