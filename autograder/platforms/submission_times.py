"""Submission times from a file that a platform exports: `collect --times FILE`.

Canvas: what its API returns for an assignment's submissions, as JSON or as a CSV file with the columns `user_id` and
`submitted_at`. Gradescope: the `submission_metadata.yml` of an export. Any other CSV file with a column that names
people (`id`, `email` ...) and a column `submitted_at`.
"""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone, tzinfo
from pathlib import Path
from typing import Any

import yaml
from nbgrader.api import MissingEntry
from nbgrader.coursedir import CourseDirectory

from autograder.course import CourseError
from autograder.platforms.downloads import CANVAS
from autograder.platforms.roster import listed
from autograder.platforms.tables import cell, read_table
from autograder.policy import arrival, course_time, times
from autograder.policy.collected import Collected, Register
from autograder.reports import results
from autograder.reports.results import Student

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
    """Any identifier in the table -> submission time (UTC), the last of several.

    zone: of times without one. Raises CourseError naming the file and the line.
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
            if name == "id" and row.get("user_id"):  # then it is the submission's number, which is nobody's
                continue
            key = str(row.get(name) or "").strip().casefold()
            if key:
                found[key] = max(moment, found.get(key, moment))
    if not found:
        raise CourseError(f"{path} names nobody and no time: {EXPECTED}.")
    return found


@dataclass(frozen=True)
class HandedIn:
    """The submission times in the given tables. system, by_number: of the worksheet; by_key: of --times."""

    system: str = ""
    by_number: Mapping[str, datetime] = field(default_factory=dict)
    by_key: Mapping[str, datetime] = field(default_factory=dict)

    def of(self, student: Student, system: str, number: str) -> datetime | None:
        """The submission time (UTC), by any identifier of this student."""
        if system == self.system and number in self.by_number:
            return self.by_number[number]
        keys = (number if system == CANVAS else "", student.id, student.email, student.lms_user_id)
        return next((self.by_key[key.casefold()] for key in keys if key.casefold() in self.by_key), None)


def untimed(places: CourseDirectory, assignment: str, register: Register) -> list[str]:
    """A remark for the teacher about submissions without a known time."""
    due, zone = _due(places, assignment), course_time.zone_of(results.configuration(Path(places.root)))
    names = {student.id: student.name_and_id for student in results.read_roster(Path(places.root))}
    doubts: dict[str, list[str]] = defaultdict(list)
    without = []
    for student, each in sorted(register.students.items()):
        if each.arrival is None or each.arrival.by == arrival.PLATFORM:
            continue
        without.append(student)
        if doubt := arrival.doubt(*each.arrival, due):
            doubts[doubt].append(names.get(student, student))
    lines = []
    if due is not None and doubts:
        lines.append(f"the due date is {times.shown(due, zone)}")
        lines += [f"{listed(students)}: {doubt}" for doubt, students in doubts.items()]
    elif due is None and without:
        lines.append(
            f"without a submission time: {len(without)} (Moodle: give the grading worksheet with --worksheet; "
            "Canvas: --times). Without a due date in the gradebook nothing is late"
        )
    marks = {each.is_late for each in register.students.values()}
    if due is not None and marks == {False} and any(_is_after(each, due) for each in register.students.values()):
        lines.append("Canvas marks nobody as late, and all count as in time: has the assignment a due date there?")
    return lines


def _is_after(each: Collected, due: datetime) -> bool:
    return each.arrival is not None and each.arrival.by != arrival.PLATFORM and each.arrival.moment > due


def _due(places: CourseDirectory, assignment: str) -> datetime | None:
    """The due date of an assignment (UTC), if there is a gradebook that has one."""
    if not results.has_gradebook(places):
        return None
    with results.gradebook_of(places) as gradebook:
        try:
            return gradebook.find_assignment(assignment).duedate
        except MissingEntry:
            return None


def _rows(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    kind = path.suffix.lower()
    if kind not in (".json", ".yml", ".yaml"):
        table = read_table(path)
        for line, row in zip(table.lines, table.rows, strict=True):
            yield f"line {line}", {title: cell(row, place).strip() for place, title in enumerate(table.header)}
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
                yield f"submission {number}", {**(user if isinstance(user, dict) else {}), **each}
        return
    yield from _of_gradescope(content)


def _of_gradescope(content: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The export of Gradescope, with Ruby's names: `:submitters`, `:created_at`."""
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


def _moment(when: Any, zone: tzinfo) -> datetime:
    if isinstance(when, datetime):
        return when.astimezone(timezone.utc).replace(tzinfo=None) if when.tzinfo else times.earliest(when, zone)
    return times.parse(str(when), zone)
