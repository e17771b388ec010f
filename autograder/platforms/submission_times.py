"""When each work was handed in, from a file that a platform gives out: `collect --times FILE`.

Canvas: what its API returns for an assignment's submissions, as JSON or as a CSV file with the columns `user_id` and
`submitted_at`. Gradescope: the `submission_metadata.yml` of an export. Any other CSV file with a column that names
people (`id`, `email` ...) and a column `submitted_at`.
"""

import json
from collections.abc import Iterator, Mapping
from datetime import datetime, timezone, tzinfo
from pathlib import Path
from typing import Any

import yaml

from autograder.course import CourseError
from autograder.platforms.tables import cell, read_table
from autograder.policy import times

LARGEST = 64 * 1024 * 1024  # bytes
WHO = (
    "user_id",
    "sis_user_id",
    "login_id",
    "student_id",
    "id",
    "email",
    "sid",
    "ID",
    "SIS User ID",
    "SIS Login ID",
    "Email",
)
WHEN = ("submitted_at", "created_at", "Submission Time", "Submitted At")
EXPECTED = (
    "expected Canvas's submissions (JSON, or CSV with user_id and submitted_at) or Gradescope's submission_metadata.yml"
)


def read(path: Path, zone: tzinfo) -> dict[str, datetime]:
    """Whatever names somebody there -> when they handed in (UTC), the last of several times.

    zone: of times that name none. Raises CourseError naming the file and the line.
    """
    found: dict[str, datetime] = {}
    for line, row in _rows(path):
        when = next((value for name in WHEN if (value := row.get(name)) not in (None, "")), None)
        if when is None:
            continue
        try:
            moment = _moment(when, zone)
        except times.NoMoment as error:
            raise CourseError(f"{path}, {line}: {error}.") from None
        for name in WHO:
            key = str(row.get(name) or "").strip().casefold()
            if key:
                found[key] = max(moment, found.get(key, moment))
    if not found:
        raise CourseError(f"{path} names nobody and no time: {EXPECTED}.")
    return found


def _rows(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    kind = path.suffix.lower()
    if kind not in (".json", ".yml", ".yaml"):
        table = read_table(path)
        for number, row in enumerate(table.rows, 2):
            yield f"line {number}", {title: cell(row, place).strip() for place, title in enumerate(table.header)}
        return
    try:
        if path.stat().st_size > LARGEST:
            raise CourseError(f"{path}: expected at most {LARGEST >> 20} MB.")
        text = path.read_text(encoding="utf-8-sig")
        content = json.loads(text) if kind == ".json" else yaml.safe_load(text)
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:
        raise CourseError(f"{path} cannot be read ({str(error).partition(chr(10))[0]}): {EXPECTED}.") from error
    if kind == ".json":
        for number, each in enumerate(content if isinstance(content, list) else [], 1):
            if isinstance(each, dict):
                user = each.get("user")
                yield f"submission {number}", {**(user if isinstance(user, dict) else {}), **_without_its_own_id(each)}
        return
    yield from _of_gradescope(content)


def _of_gradescope(content: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The export of Gradescope, whose names are Ruby's: `:submitters`, `:created_at`."""
    for name, each in content.items() if isinstance(content, dict) else ():
        if not isinstance(each, dict):
            continue
        each = {str(key).lstrip(":"): value for key, value in each.items()}
        for submitter in each.get("submitters") or ():
            if isinstance(submitter, dict):
                who = {str(key).lstrip(":"): value for key, value in submitter.items()}
                yield (
                    str(name),
                    {"email": who.get("email"), "sid": who.get("sid"), "created_at": each.get("created_at")},
                )


def _without_its_own_id(each: Mapping[str, Any]) -> dict[str, Any]:
    """A submission has a number too, which is nobody's."""
    return {name: value for name, value in each.items() if name != "id"}


def _moment(when: Any, zone: tzinfo) -> datetime:
    if isinstance(when, datetime):
        return when.astimezone(timezone.utc).replace(tzinfo=None) if when.tzinfo else times.earliest(when, zone)
    return times.parse(str(when), zone)
