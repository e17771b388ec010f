"""When each work arrived. The record is ours: a timestamp.txt next to a notebook may be as much the student's as that.

`classroom/receipts/ASSIGNMENT/STUDENT.json` lists every version of a work that was seen, the latest last. A work
arrives at the platform's submission time; if there is none, when the download was made that it came in, or when it is
first seen. How a time is known is on record too (`policy.arrival`), and a better source replaces a worse one. The same
work seen again keeps its time, and so does an earlier version that is put back. New versions are recognized by its
digest, whatever the clock says, and the clock here never gives a later version an earlier time: one that was set back
would else hide new work. Where the collector is known to write timestamp.txt (nbgrader's exchange, ngshare), a course
can believe it: `c.Intake.trust_timestamps`.
"""

import json
import os
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import NamedTuple

from nbgrader.utils import parse_utc

from autograder.course import CourseError
from autograder.intake import untrusted_files
from autograder.policy import arrival
from autograder.policy.arrival import Arrival
from transformer_ref.atomic_write import atomic_write

STAMP = "timestamp.txt"  # nbgrader reads the receipt time from it, next to the notebook
ASIDE = "timestamp.txt.handed-in"
LONGEST = 100  # characters of a time
FORMAT = "%Y-%m-%d %H:%M:%S.%f UTC"
CORRECTED = ", clock corrected"  # after how a time is known, where the clock said an earlier one than before
PUT_BACK = ", an earlier version put back"


class Version(NamedTuple):
    """One version of a submission: its digest ("" for none), its arrival time, and the source of that time."""

    digest: str
    received: str
    by: str = ""


def latest(root: Path, assignment: str, student: str) -> Version | None:
    """The version that was seen last, or None. Raises CourseError if the record is damaged."""
    versions = _versions(_path(root, assignment, student))
    if not versions:
        return None
    return Version(versions[-1]["digest"], versions[-1]["received"], str(versions[-1].get("by", "")))


def moment(received: str) -> datetime | None:
    """The receipt time in UTC; None if the text is not a time."""
    try:
        return parse_utc(received)
    except (ValueError, OverflowError, TypeError):
        return None


def record(
    root: Path,
    assignment: str,
    student: str,
    digest: str,
    reasons: Sequence[str],
    stamp: str | None,
    arrived: Arrival | None = None,
) -> str:
    """Record a submission and return its receipt time, in nbgrader's format; `stamp`, if given, is that time.

    arrived: from a platform or its download. digest: of the submission, "" for none. reasons: the corrections made.
    Raises CourseError if the record is damaged.
    """
    path = _path(root, assignment, student)
    versions = _versions(path)
    if not versions or versions[-1]["digest"] != digest:
        versions.append(_new_version(versions, digest))
    latest = versions[-1]
    before = versions[-2]["received"] if len(versions) > 1 else ""
    if stamp:
        received, is_corrected = _after(before, stamp)
        latest.update(received=received, by=STAMP + (CORRECTED if is_corrected else ""))
    elif arrived and _is_better(arrived, latest):
        latest.update(received=arrived.moment.strftime(FORMAT), by=arrived.by)
        if arrival.TRUST[arrived.by] <= arrival.TRUST[arrival.DOWNLOAD]:
            latest["received"], is_corrected = _after(before, latest["received"])
            latest["by"] += CORRECTED if is_corrected else ""
    elif "received" not in latest:
        received, is_corrected = _after(before, _now())
        latest.update(received=received, by=arrival.ARRIVAL + (CORRECTED if is_corrected else ""))
    latest["reasons"] = list(reasons)
    atomic_write(path, json.dumps({"versions": versions}, indent=1, ensure_ascii=False) + "\n")
    return latest["received"]


def _new_version(versions: Sequence[dict], digest: str) -> dict:
    """A new version, or an earlier one that was restored, with its first arrival time."""
    for known in reversed(versions):
        if known["digest"] == digest and digest:
            return {**known, "by": arrival.source(str(known.get("by", ""))) + PUT_BACK}
    return {"digest": digest}


def _is_better(arrived: Arrival, known: dict) -> bool:
    """Whether a source is better than the recorded one, or equally good with an earlier time."""
    if "received" not in known:
        return True
    ours, theirs = arrival.TRUST[arrived.by], arrival.TRUST.get(arrival.source(str(known.get("by", ""))), 0)
    earlier = moment(known["received"])
    return ours > theirs or (ours == theirs and earlier is not None and arrived.moment < earlier)


def stamp_of(folder: Path) -> str | None:
    """The time in timestamp.txt, if it is in the past; else None."""
    try:
        text = untrusted_files.content_of(folder / STAMP, LONGEST).decode("ascii").strip()
        moment = parse_utc(text)
    except (OSError, ValueError, OverflowError, TypeError):  # there is none, or it is not text, or no time
        return None
    return text if text and moment <= datetime.now(timezone.utc).replace(tzinfo=None) else None


def stamp(folder: Path, received: str) -> bool:
    """Write the receipt time where nbgrader and formgrader read it; returns whether another one was renamed."""
    path = folder / STAMP
    there = os.path.lexists(path)
    try:
        if untrusted_files.content_of(path, LONGEST).strip() == received.encode():
            return False
    except OSError:  # there is none, or something else of that name, which is put aside like a wrong time
        pass
    if there:
        os.replace(path, folder / ASIDE)
    atomic_write(path, received)
    return there


def _versions(path: Path) -> list[dict]:
    try:
        versions = json.loads(path.read_text(encoding="utf-8"))["versions"]
        return [{"digest": version["digest"], "received": version["received"], **version} for version in versions]
    except FileNotFoundError:
        return []
    except (ValueError, KeyError, TypeError) as error:
        raise CourseError(f"{path} is not a record of receipts: {error}. Correct it, or remove it.") from error


def _path(root: Path, assignment: str, student: str) -> Path:
    return root / "classroom" / "receipts" / assignment / f"{student}.json"


def _after(before: str, received: str) -> tuple[str, bool]:
    """The time, or one just after the previous time if it is not later; and whether it was changed."""
    try:
        earliest, moment = parse_utc(before), parse_utc(received)
    except (ValueError, OverflowError, TypeError):  # there is none before, or somebody wrote something else there
        return received, False
    if moment > earliest:
        return received, False
    return (earliest + timedelta(microseconds=1)).strftime(FORMAT), True


def _now() -> str:
    return datetime.now(timezone.utc).strftime(FORMAT)
