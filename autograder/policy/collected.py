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


@dataclass(frozen=True)
class Collected:
    """What is known of one student's work in one assignment.

    system, number, name: how the platform calls them. digest: of the submission. files: path of each file here ->
    what the platform called it. archive, made: which download it came from, and when that was made (seconds). arrived:
    when the first download was made that held this work, so it was on the platform then; 0 where that is not known.
    submitted: the platform's submission time; 0 if there is none. is_late: what Canvas's name for it
    says; None where nothing does.
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
        """When this work arrived, as well as the platform tells it."""
        downloaded = self.arrived or self.made
        moment = self.submitted or downloaded
        if not moment:
            return None
        by = PLATFORM if self.submitted else DOWNLOAD if self.is_late is None else LATE if self.is_late else IN_TIME
        return Arrival(datetime.fromtimestamp(moment, timezone.utc).replace(tzinfo=None), by)


@dataclass
class Register:
    """One assignment's collected work by student, and the numbers of those in its worksheet who handed in nothing."""

    path: Path
    students: dict[str, Collected] = field(default_factory=dict)
    numbers: dict[str, str] = field(default_factory=dict)

    def save(self) -> None:
        """Write it whole or not at all."""
        content = {
            "numbers": self.numbers,
            "students": {student: vars(each) for student, each in sorted(self.students.items())},
        }
        self.path.parent.mkdir(parents=True, exist_ok=True)
        receipts.write(self.path, json.dumps(content, indent=1, ensure_ascii=False) + "\n")


def register(root: Path, assignment: str) -> Register:
    """What has been collected of an assignment. Raises CourseError when its file has been damaged."""
    return read(_path(root, assignment))


def arrived(root: Path, assignment: str, student: str, folder: Path) -> Arrival | None:
    """When the work in a folder arrived at its platform; None where it did not come from there, as it is.

    What a download holds was there when it was made, which may be days before anybody looks at it here. Raises
    CourseError when the record of it has been damaged.
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
    """Of all files, without the receipt times that are written next to them."""
    total = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()):
        name = path.relative_to(folder).as_posix()
        if name not in (receipts.STAMP, receipts.ASIDE):
            content = hashlib.sha256(path.read_bytes()).hexdigest()
            total.update(f"{len(name)} {name} {content}\n".encode())
    return total.hexdigest()
