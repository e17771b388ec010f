"""What travels between the writer and a worker, which may be another machine.

Both ends are ours and trusted: a learner's code runs in the worker's sandbox and never speaks on this line.
"""

import hashlib
import io
import tarfile
from dataclasses import dataclass, field
from pathlib import Path

MOST_BYTES = 100_000_000  # of one submission; nbgrader's own limit for a folder (CourseDirectory.max_dir_size)


class TooLarge(Exception):
    """A submission that is not read because of its size; the text says how large it is."""


@dataclass(frozen=True)
class Batch:
    """What every submission of one run needs.

    configuration: the pickled configuration of nbgrader. files: path in a course -> content: the released notebook
    and what lies beside it, the secret. gradebook: an SQLite file that knows the assignment's cells and no student.
    """

    assignment: str
    configuration: bytes
    files: dict[str, bytes]
    gradebook: bytes

    @property
    def digest(self) -> str:
        """One name for equal batches, so that a worker is prepared once."""
        known = hashlib.sha256(self.configuration + self.gradebook)
        for name in sorted(self.files):
            known.update(name.encode() + b"\0" + self.files[name])
        return f"{self.assignment}-{known.hexdigest()[:16]}"


@dataclass(frozen=True)
class Submission:
    """One student's folder as a tar archive, with the times of its files."""

    student: str
    archive: bytes

    @property
    def digest(self) -> str:
        """Changes when the content of a notebook does."""
        known = hashlib.sha256()
        with tarfile.open(fileobj=io.BytesIO(self.archive)) as archive:
            for member in archive.getmembers():
                if member.name.endswith(".ipynb"):
                    known.update(member.name.encode() + b"\0" + archive.extractfile(member).read())
        return known.hexdigest()[:16]

    def unpack(self, folder: Path) -> None:
        """Write the files below the folder."""
        with tarfile.open(fileobj=io.BytesIO(self.archive)) as archive:
            for member in archive.getmembers():
                path = folder / member.name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(archive.extractfile(member).read())
                _set_time(path, member.mtime)


@dataclass(frozen=True)
class Result:
    """What came of one submission.

    notebooks: notebook id -> the notebook as it ran, judged. failure: why there is none, else "". cells: (cell, its
    seconds). notes: what nbgrader and the grading warned about. records: path below classroom/ -> lines to keep there.
    memory: bytes that the worker holds afterwards. attempts: how often the submission was begun.
    """

    student: str
    notebooks: dict[str, str] = field(default_factory=dict)
    failure: str = ""
    seconds: float = 0.0
    cells: tuple[tuple[str, float], ...] = ()
    notes: tuple[str, ...] = ()
    records: dict[str, bytes] = field(default_factory=dict)
    memory: int = 0
    attempts: int = 1


def pack(student: str, folder: Path) -> Submission:
    """Read one submission's plain files; links are left out, since they may point anywhere.

    Raises TooLarge, and OSError when the folder cannot be read.
    """
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and not path.is_symlink()]
    size = sum(path.stat().st_size for path in files)
    if size > MOST_BYTES:
        raise TooLarge(f"the submission holds {size / 1e6:.0f} MB; {MOST_BYTES / 1e6:.0f} MB are read at most")
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for path in files:
            archive.add(path, arcname=str(path.relative_to(folder)), recursive=False)
    return Submission(student, buffer.getvalue())


def _set_time(path: Path, seconds: float) -> None:
    import os

    os.utime(path, (seconds, seconds))
