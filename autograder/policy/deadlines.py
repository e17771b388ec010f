"""When a notebook is due, written into the released notebook, and read there without a network.

`release` takes the date from the gradebook; a notebook of an assignment without one says nothing. The cell that says it
to people and the metadata that says it to programs do not count as part of what decides a grade.
"""

import json
from collections.abc import Mapping
from datetime import datetime, timezone, tzinfo
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from autograder.policy import times

CELL = "due-date"
KEY = "attention_by_hand"
LARGEST = 64 * 1024 * 1024  # bytes of a notebook that is looked at
FORMAT = "%Y-%m-%dT%H:%M:%SZ"


def write(notebook: dict[str, Any], due: datetime | None, zone: ZoneInfo) -> bool:
    """Write the due date (UTC) into a notebook's second cell and metadata, or remove it (None). Returns whether the
    notebook changed."""
    before = json.dumps([notebook["metadata"].get(KEY), _cell(notebook)])
    notebook["cells"] = [cell for cell in notebook["cells"] if cell.get("id") != CELL]
    notebook["metadata"].pop(KEY, None)
    if due is not None:
        text = (
            f"**Due {times.shown(due, zone)}.** `progress()` shows this and the time that is left; an extension of "
            "your own is not counted here."
        )
        cell = {"cell_type": "markdown", "id": CELL, "metadata": {}, "source": text}
        notebook["cells"].insert(min(1, len(notebook["cells"])), cell)
        notebook["metadata"][KEY] = {"due": due.strftime(FORMAT), "zone": zone.key}
    return before != json.dumps([notebook["metadata"].get(KEY), _cell(notebook)])


def without(notebook: Mapping[str, Any]) -> dict[str, Any]:
    """The same notebook without a due date."""
    metadata = {name: value for name, value in notebook.get("metadata", {}).items() if name != KEY}
    return {**notebook, "metadata": metadata, "cells": [cell for cell in notebook["cells"] if cell.get("id") != CELL]}


def read(path: Path) -> tuple[datetime, tzinfo] | None:
    """The due date (UTC) in a notebook, and the course's zone, or UTC if this machine has no zone data; None if there
    is no due date."""
    try:
        if path.stat().st_size > LARGEST:
            return None
        found = json.loads(path.read_text(encoding="utf-8"))["metadata"][KEY]
        due, name = datetime.strptime(found["due"], FORMAT), str(found["zone"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):  # it is the learner's to break
        return None
    try:
        return due, ZoneInfo(name)
    except (ValueError, KeyError, OSError):  # no database of zones, as in Python for Windows
        return due, timezone.utc


def said(path: Path, now: datetime) -> str:
    """The due date and the time left: "due Monday 2 November 2026, 23:59 CET (22:59 UTC), in 3 days", or "".

    now: UTC.
    """
    found = read(path)
    if found is None:
        return ""
    due, zone = found
    return f"due {times.shown(due, zone)}, {_left((due - now).total_seconds())}"


def _cell(notebook: Mapping[str, Any]) -> Any:
    return next((cell for cell in notebook["cells"] if cell.get("id") == CELL), None)


def _left(seconds: float) -> str:
    if seconds < 0:
        return "which has passed"
    for length, unit in ((86_400, "day"), (3_600, "hour"), (60, "minute")):
        count = int(seconds // length)
        if count:
            return f"in {count} {unit}{'s' if count > 1 else ''}"
    return "in less than a minute"
