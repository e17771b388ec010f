"""What a verdict rests on, for appeals and regrades: one line of JSON for each, in classroom/verdicts.jsonl."""

import functools
import importlib.metadata
import json
import os
import platform
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from autograder.judging.question import seed_of
from autograder.judging.verdict import Verdict, as_record

NAME = "verdicts.jsonl"


def record(root: Path, student: str, assignment: str, key: bytes, verdict: Verdict) -> None:
    """Add a verdict. Teachers only: the seeds give the hidden inputs away.

    key: from which the inputs were drawn (see `judge.draw_key`).
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
                "difference": outcome.difference.text if outcome.difference else None,
            }
            for outcome in verdict.outcomes
        ],
        "versions": _versions(),
    }
    path = root / "classroom" / NAME
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    with os.fdopen(descriptor, "ab", buffering=0) as file:  # one write, so that two processes' lines never mix
        file.write((json.dumps(line, ensure_ascii=False) + "\n").encode())


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
