"""When each work arrived. The record is ours: a timestamp.txt beside a notebook may be as much the student's as that.

`classroom/receipts/ASSIGNMENT/STUDENT.json` lists every version of a work that was seen, the latest last. A work
arrives when it is first seen; the same work seen again keeps its time. Where the collector is known to write
timestamp.txt (nbgrader's exchange, ngshare), a course can believe it: `c.Intake.trust_timestamps`.
"""

import json
import os
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path

from nbgrader.utils import parse_utc

from autograder.course import CourseError

STAMP = "timestamp.txt"  # nbgrader reads the receipt time from it, beside the notebook
ASIDE = "timestamp.txt.handed-in"
LONGEST = 100  # characters of a time


def record(root: Path, assignment: str, student: str, digest: str, reasons: Sequence[str], stamp: str | None) -> str:
    """The work's receipt time, as nbgrader writes times; `stamp`, where given, is that time.

    digest: of the work, "" for none. reasons: what had to be put right in it. All of it goes into the record. Raises
    CourseError when the record has been damaged.
    """
    path = root / "classroom" / "receipts" / assignment / f"{student}.json"
    versions = _versions(path)
    known = bool(versions) and versions[-1]["digest"] == digest
    if not known:
        versions.append({"digest": digest})
    latest = versions[-1]
    if stamp:
        latest.update(received=stamp, by=STAMP)
    elif not known:
        latest.update(received=_now(), by="arrival")
    latest["reasons"] = list(reasons)
    path.parent.mkdir(parents=True, exist_ok=True)
    write(path, json.dumps({"versions": versions}, indent=1, ensure_ascii=False) + "\n")
    return latest["received"]


def stamp_of(folder: Path) -> str | None:
    """What timestamp.txt says, where that is a time that has been; else None."""
    try:
        with (folder / STAMP).open(encoding="ascii") as file:
            text = file.read(LONGEST).strip()
        moment = parse_utc(text)
    except (OSError, ValueError, OverflowError, TypeError):  # there is none, or it is no text, or no time
        return None
    return text if text and moment <= datetime.now(timezone.utc).replace(tzinfo=None) else None


def stamp(folder: Path, received: str) -> bool:
    """Write the receipt time where nbgrader and formgrader look for it; whether another one had to be put aside."""
    path = folder / STAMP
    there = os.path.lexists(path)
    if there and not path.is_symlink() and path.is_file() and path.stat().st_size <= LONGEST:
        if path.read_bytes().strip() == received.encode():
            return False
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


def _now() -> str:
    return datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M:%S.%f UTC")
