"""When each work arrived. The record is ours: a timestamp.txt beside a notebook may be as much the student's as that.

`classroom/receipts/ASSIGNMENT/STUDENT.json` lists every version of a work that was seen, the latest last. A work
arrives when it is first seen, or when the download of Moodle or Canvas was made that it came in; the same work seen
again keeps its time. What is new is told by its digest, whatever the
clock says, and a later version never has an earlier time: a clock that was set back would else hide new work. Where the
collector is known to write timestamp.txt (nbgrader's exchange, ngshare), a course can believe it:
`c.Intake.trust_timestamps`.
"""

import json
import os
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import NamedTuple

from nbgrader.utils import parse_utc

from autograder.course import CourseError
from autograder.intake import handed_in

STAMP = "timestamp.txt"  # nbgrader reads the receipt time from it, beside the notebook
ASIDE = "timestamp.txt.handed-in"
LONGEST = 100  # characters of a time
FORMAT = "%Y-%m-%d %H:%M:%S.%f UTC"
CORRECTED = ", clock corrected"  # after how a time is known, where the clock said an earlier one than before


class Version(NamedTuple):
    """One version of a work: the digest of what was handed in ("" for none), and when it arrived."""

    digest: str
    received: str


def latest(root: Path, assignment: str, student: str) -> Version | None:
    """The version that was seen last, or None. Raises CourseError when the record has been damaged."""
    versions = _versions(_path(root, assignment, student))
    return Version(versions[-1]["digest"], versions[-1]["received"]) if versions else None


def record(
    root: Path,
    assignment: str,
    student: str,
    digest: str,
    reasons: Sequence[str],
    stamp: str | None,
    downloaded: datetime | None = None,
) -> str:
    """The work's receipt time, as nbgrader writes times; `stamp`, where given, is that time.

    downloaded: when a platform is known to have had the work, which is then the time of what is new. digest: of the
    work, "" for none. reasons: what had to be put right in it. All of it goes into the record. Raises CourseError when
    the record has been damaged.
    """
    path = _path(root, assignment, student)
    versions = _versions(path)
    known = bool(versions) and versions[-1]["digest"] == digest
    if not known:
        versions.append({"digest": digest})
    latest = versions[-1]
    if stamp or not known:
        before = versions[-2]["received"] if len(versions) > 1 else ""
        received, is_corrected = _after(before, stamp or (downloaded.strftime(FORMAT) if downloaded else _now()))
        by = STAMP if stamp else "download" if downloaded else "arrival"
        latest.update(received=received, by=by + (CORRECTED if is_corrected else ""))
    latest["reasons"] = list(reasons)
    path.parent.mkdir(parents=True, exist_ok=True)
    write(path, json.dumps({"versions": versions}, indent=1, ensure_ascii=False) + "\n")
    return latest["received"]


def stamp_of(folder: Path) -> str | None:
    """What timestamp.txt says, where that is a time that has been; else None."""
    try:
        text = handed_in.content_of(folder / STAMP, LONGEST).decode("ascii").strip()
        moment = parse_utc(text)
    except (OSError, ValueError, OverflowError, TypeError):  # there is none, or it is no text, or no time
        return None
    return text if text and moment <= datetime.now(timezone.utc).replace(tzinfo=None) else None


def stamp(folder: Path, received: str) -> bool:
    """Write the receipt time where nbgrader and formgrader look for it; whether another one had to be put aside."""
    path = folder / STAMP
    there = os.path.lexists(path)
    try:
        if handed_in.content_of(path, LONGEST).strip() == received.encode():
            return False
    except OSError:  # there is none, or something else of that name, which is put aside like a wrong time
        pass
    if there:
        os.replace(path, folder / ASIDE)
    write(path, received)
    return there


def write(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    partial = path.with_name(f".{path.name}.partial")
    partial.write_text(text, encoding="utf-8")
    os.replace(partial, path)


def _versions(path: Path) -> list[dict]:
    try:
        versions = json.loads(path.read_text(encoding="utf-8"))["versions"]
        return [{"digest": version["digest"], "received": version["received"], **version} for version in versions]
    except FileNotFoundError:
        return []
    except (ValueError, KeyError, TypeError) as error:
        raise CourseError(f"{path} is no record of receipts: {error}. Correct it, or remove it.") from error


def _path(root: Path, assignment: str, student: str) -> Path:
    return root / "classroom" / "receipts" / assignment / f"{student}.json"


def _after(before: str, received: str) -> tuple[str, bool]:
    """The time, made later than the one before where it is not; and whether it had to be."""
    try:
        earliest, moment = parse_utc(before), parse_utc(received)
    except (ValueError, OverflowError, TypeError):  # there is none before, or somebody wrote something else there
        return received, False
    if moment > earliest:
        return received, False
    return (earliest + timedelta(microseconds=1)).strftime(FORMAT), True


def _now() -> str:
    return datetime.now(timezone.utc).strftime(FORMAT)
