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
    """Nobody can be graded any more, or nothing be recorded. The text says why."""


@dataclass(frozen=True)
class Batch:
    """What every submission of one run needs.

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
        """One name for equal batches, so that a worker is prepared once."""
        known = hashlib.sha256(self.configuration + self.gradebook + repr(sorted(self.environment.items())).encode())
        for name in sorted(self.files):
            known.update(name.encode() + b"\0" + self.files[name])
        return f"{self.assignment}-{known.hexdigest()[:16]}"


@dataclass(frozen=True)
class Submission:
    """One student's work: a folder of this machine, or for another machine what is in it."""

    student: str
    folder: Path
    archive: bytes | None = None

    def unpacked(self, place: Path) -> Path:
        """The folder with the work: where it is, or below `place`, where an archive is written."""
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
    """The work as the intake left it: the rebuilt notebook, what had to be put right, the digest of the file that was
    handed in, and the names of other files that count."""

    notebook: str
    reasons: tuple[str, ...]
    digest: str
    files: tuple[str, ...]


@dataclass(frozen=True)
class Result:
    """What came of one submission.

    notebooks: notebook id -> the notebook as it ran, judged. received: the work before that. failure: why there is
    none, else ""; retry: whether that is of our making (a full disk, a worker that died), so that another time may do
    better. cells: (cell, its seconds). notes: what nbgrader warned about. unchecked: (exercise,
    reason) of each that no verdict was reached on. records: path below classroom/ ->
    lines to keep there. memory: bytes that the worker holds afterwards. attempts: how often the submission was begun.
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
    records: dict[str, bytes] = field(default_factory=dict)
    memory: int = 0
    attempts: int = 1
