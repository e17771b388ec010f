"""The messages between the writer and a worker, which may be on a different machine.

Both ends are trusted: a learner's code runs in the worker's sandbox and cannot send messages here.
"""

import hashlib
import io
import tarfile
from dataclasses import dataclass, field
from pathlib import Path

from autograder.course import CourseError


class Stopped(CourseError):
    """No further submission can be graded or recorded. The text says why."""


@dataclass(frozen=True)
class Batch:
    """The data that every submission of one run needs.

    configuration: the pickled configuration of nbgrader. files: path in a course -> content: the released notebook
    and the files next to it, the secret. gradebook: an SQLite file with the assignment's cells and without students.
    environment: variables that are set in each worker.
    """

    assignment: str
    configuration: bytes
    files: dict[str, bytes]
    gradebook: bytes
    environment: dict[str, str]

    @property
    def digest(self) -> str:
        """A digest that is the same for equal batches, so that a worker is prepared once."""
        known = hashlib.sha256(self.configuration + self.gradebook + repr(sorted(self.environment.items())).encode())
        for name in sorted(self.files):
            known.update(name.encode() + b"\0" + self.files[name])
        return f"{self.assignment}-{known.hexdigest()[:16]}"


@dataclass(frozen=True)
class Submission:
    """One student's work: a folder on this machine or, for another machine, its content."""

    student: str
    folder: Path
    archive: bytes | None = None

    def unpacked(self, place: Path) -> Path:
        """The folder with the work: the original one or, for an archive, one below `place`."""
        if self.archive is None:
            return self.folder
        place.mkdir(mode=0o700)  # the folder around it may be passed through by others
        folder = place / self.folder.name
        folder.mkdir()
        with tarfile.open(fileobj=io.BytesIO(self.archive)) as archive:
            for member in archive.getmembers():
                path = folder / member.name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(archive.extractfile(member).read())
        return folder


@dataclass(frozen=True)
class Received:
    """The result of the intake: the rebuilt notebook, the corrections, the digest of the submitted file, and the names
    of other files that count."""

    notebook: str
    reasons: tuple[str, ...]
    digest: str
    files: tuple[str, ...]


@dataclass(frozen=True)
class Result:
    """The result of one submission.

    notebooks: notebook id -> the executed and judged notebook. received: the work before that. failure: why there is
    none, else ""; retry: whether the cause is on our side (a full disk, a worker that died), so that another attempt
    may succeed. cells: (cell, its seconds). notes: nbgrader's warnings. unchecked: (exercise, reason) of each without a
    verdict. unusual: names in its code that no exercise needs.
    records: path below classroom/ -> lines to append there. memory: bytes that the worker uses afterwards.
    attempts: how often the submission was started.
    """

    student: str
    notebooks: dict[str, str] = field(default_factory=dict)
    received: Received | None = None
    failure: str = ""
    retry: bool = False
    seconds: float = 0.0
    cells: tuple[tuple[str, float], ...] = ()
    notes: tuple[str, ...] = ()
    unchecked: tuple[tuple[str, str], ...] = ()
    unusual: tuple[str, ...] = ()
    records: dict[str, bytes] = field(default_factory=dict)
    memory: int = 0
    attempts: int = 1
