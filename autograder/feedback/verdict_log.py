"""Verdicts on record: plain values next to the report, and, for appeals and regrades, the evidence as a line of JSON in
the assignment's file in classroom/verdicts/."""

import functools
import importlib.metadata
import json
import os
import platform
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from autograder.diagnosis.evidence import explained
from autograder.feedback.messages import explanation, seen
from autograder.judging.probe_inputs import seed_of
from autograder.judging.verdict import NOT_CHECKED, NotChecked, Verdict

FOLDER = "verdicts"  # in classroom/; a file an assignment, since a class of a thousand writes 200 MB in a term


def path_of(root: Path, assignment: str) -> Path:
    """The file with the verdicts of an assignment."""
    return root / "classroom" / FOLDER / f"{assignment}.jsonl"


def as_record(verdict: Verdict) -> dict[str, Any]:
    """The record of a verdict next to its report: plain values, nothing of a hidden input."""
    known = explained(verdict)
    found = known.misconception
    return {
        "exercise": verdict.exercise.id,
        "points": verdict.points,
        "state": verdict.state,
        "excused": verdict.excused,
        "passed": verdict.passed,
        "blank": verdict.blank,
        "forbidden": verdict.forbidden,
        "asked": bool(verdict.outcomes),
        "checked": verdict.state != NOT_CHECKED,
        "reason": verdict.unasked.reason if isinstance(verdict.unasked, NotChecked) else "",
        "misconception": found.name if found else None,
        "message": _text(explanation, verdict),
        "alike": list(known.alike),
    }


def add_to_log(root: Path, student: str, assignment: str, key: bytes, verdict: Verdict) -> None:
    """Add a verdict. Only for teachers, since the seeds determine the hidden inputs.

    key: of the inputs (see `judging.judge.draw_key`).
    """
    line = {
        "time": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "student": student,
        "assignment": assignment,
        **as_record(verdict),
        "possible": verdict.possible,
        "cases": [
            {
                "probe": outcome.probe.name,
                "hidden": outcome.probe.hidden,
                "seed": seed_of(key, verdict.exercise, outcome.probe),
                "passed": outcome.passed,
                "difference": _text(seen, verdict.exercise, outcome) if outcome.difference else None,
            }
            for outcome in verdict.outcomes
        ],
        "versions": _versions(),
    }
    path = path_of(root, assignment)
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    with os.fdopen(descriptor, "ab", buffering=0) as file:  # one write, so that two processes' lines never mix
        file.write((json.dumps(line, ensure_ascii=False) + "\n").encode())


def _text(write: Callable[..., str], *facts: Any) -> str:
    """A sentence about a verdict; empty if writing it failed, which must not change the points."""
    try:
        return write(*facts)
    except Exception:
        return ""


@functools.cache
def _versions() -> dict[str, Any]:
    packages = ("attention-by-hand", "torch", "nbgrader", "ipython")
    versions = {"python": platform.python_version()}
    for package in packages:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            versions[package] = None
    return versions
