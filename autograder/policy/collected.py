"""What has been collected of an assignment, by student, and when each work arrived at its platform.

`platforms` writes it into `classroom/collected/ASSIGNMENT.json`; intake reads the time of arrival from it.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from autograder.course import CourseError
from autograder.policy import receipts
from autograder.policy.arrival import DOWNLOAD, IN_TIME, LATE, PLATFORM, Arrival
from transformer_ref.atomic_write import atomic_write


@dataclass(frozen=True)
class Collected:
    """The record of one student's submission to one assignment.

    system, number, name: the student on the platform. digest: of the submission. files: path of each file here -> its
    name on the platform. archive, made: the download that it came from, and the time of that download (seconds).
    arrived: the time of the first download with this submission, so it was on the platform then; 0 if unknown.
    submitted: the platform's submission time; 0 if there is none. is_late: whether Canvas's name for it says so; None
    if unknown.
    """

    system: str
    number: str
    name: str
    digest: str
    files: Mapping[str, str]
    archive: str
    made: float
    arrived: float = 0.0
    submitted: float = 0.0
    is_late: bool | None = None

    @property
    def arrival(self) -> Arrival | None:
        """When this submission arrived, according to the platform."""
        downloaded = self.arrived or self.made
        moment = self.submitted or downloaded
        if not moment:
            return None
        by = PLATFORM if self.submitted else DOWNLOAD if self.is_late is None else LATE if self.is_late else IN_TIME
        return Arrival(datetime.fromtimestamp(moment, timezone.utc).replace(tzinfo=None), by)


@dataclass
class Register:
    """One assignment's collected submissions by student, and the numbers of those in its worksheet who handed in
    nothing."""

    path: Path
    students: dict[str, Collected] = field(default_factory=dict)
    numbers: dict[str, str] = field(default_factory=dict)

    def save(self) -> None:
        """Write it atomically."""
        content = {
            "numbers": self.numbers,
            "students": {student: vars(each) for student, each in sorted(self.students.items())},
        }
        atomic_write(self.path, json.dumps(content, indent=1, ensure_ascii=False) + "\n")


def register(root: Path, assignment: str) -> Register:
    """The register of an assignment. Raises CourseError if its file is damaged."""
    return read(_path(root, assignment))


def arrived(root: Path, assignment: str, student: str, folder: Path) -> Arrival | None:
    """When the submission in a folder arrived at its platform; None if it did not come from there in this form.

    The content of a download existed when it was made, which may be days before it is read here. Raises CourseError if
    the record is damaged.
    """
    if not _path(root, assignment).is_file():
        return None
    known = register(root, assignment).students.get(student)
    if known is None or known.arrival is None or known.digest != digest_of(folder):
        return None
    now = datetime.now(timezone.utc).replace(tzinfo=None)
    return known.arrival._replace(moment=min(known.arrival.moment, now))


def _path(root: Path, assignment: str) -> Path:
    return root / "classroom" / "collected" / f"{assignment}.json"


def read(path: Path) -> Register:
    try:
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        students = {student: Collected(**each) for student, each in content["students"].items()}
        return Register(path, students, dict(content["numbers"]))
    except FileNotFoundError:
        return Register(path)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CourseError(f"{path} is not a record of collected work: {error}. Correct it, or remove it.") from error


def digest_of(folder: Path) -> str:
    """A digest of all files, without the receipt times that are written next to them."""
    total = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()):
        name = path.relative_to(folder).as_posix()
        if name not in (receipts.STAMP, receipts.ASIDE):
            content = hashlib.sha256(path.read_bytes()).hexdigest()
            total.update(f"{len(name)} {name} {content}\n".encode())
    return total.hexdigest()
