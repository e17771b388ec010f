"""The log of grading, as JSON lines, and the memory by which an interrupted run continues.

One file a run, `classroom/log/grade/ASSIGNMENT/TIME.jsonl`. Its events:

    start    students, options, versions; the first line
    writing  student: from here to the next line of this student the gradebook may hold half of it
    graded   student, seconds, cells [[id, seconds], ...], points, notes, submission, memory ...
    failed   student, reason, attempts, retry: whether the reason is ours (a full disk, a worker that died), so that
             a resumed run tries again
    resume   the run went on after it had been cut off
    end      the counts; a file without it was interrupted
"""

import contextlib
import fcntl
import json
import os
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from itertools import pairwise
from pathlib import Path
from typing import IO, Any

from autograder.course import CourseError

DECIDED = ("graded", "failed")
NAMED = "%Y-%m-%dT%H-%M-%S.%f"  # a run's file


class Journal:
    """The log file of one run. Every line is on disk before the next step."""

    def __init__(self, path: Path) -> None:
        """Open it to go on. Raises OSError when it cannot be written."""
        self.path = path
        self.events = read(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        self._whole = sum(len(line) for line in _whole_lines(path))
        self._file: IO[bytes] = path.open("ab", buffering=0)
        self._file.truncate(self._whole)  # a line that was being written when the machine stopped

    def write(self, event: str, **facts: Any) -> None:
        """Append one event. Raises OSError if the disk is full; then nothing of it is in the file."""
        line = {"event": event, "time": datetime.now(timezone.utc).isoformat(timespec="milliseconds"), **facts}
        data = json.dumps(line, ensure_ascii=False).encode(errors="backslashreplace") + b"\n"
        try:
            written = 0
            while written < len(data):
                written += self._file.write(data[written:])
            os.fsync(self._file.fileno())
        except OSError as error:
            with contextlib.suppress(OSError):
                self._file.truncate(self._whole)
            raise OSError(error.errno, error.strerror, str(self.path)) from error
        self._whole += len(data)
        self.events.append(line)

    def close(self) -> None:
        self._file.close()

    @property
    def students(self) -> list[str]:
        """The students of the run."""
        return self.events[0]["students"]

    @property
    def options(self) -> dict[str, Any]:
        return self.events[0]["options"]

    @property
    def versions(self) -> dict[str, str]:
        """The versions that it grades with, from `changes.versions`; a resumed run records them again."""
        return next((event["versions"] for event in reversed(self.events) if "versions" in event), {})

    def left(self) -> list[str]:
        """The students that the run has not reached, was writing when it ended, or failed to grade because of an
        internal error."""
        last = _last_of_each(self.events)
        decided = {student for student, event in last.items() if event["event"] in DECIDED and not event.get("retry")}
        return [student for student in self.students if student not in decided]

    def of(self, event: str) -> list[dict[str, Any]]:
        """All lines of one kind; of those about a student only the last, if nothing else followed it."""
        last = _last_of_each(self.events)
        return [
            line
            for line in self.events
            if line["event"] == event and ("student" not in line or last[line["student"]] is line)
        ]

    @property
    def seconds(self) -> float:
        """The duration of the run, without the time between an interruption and the resumption."""
        times = [(datetime.fromisoformat(event["time"]), event["event"]) for event in self.events]
        pairs = pairwise(times)
        spans = ((later - earlier).total_seconds() for (earlier, _), (later, kind) in pairs if kind != "resume")
        return sum(max(0.0, span) for span in spans)  # the clock may have been set back meanwhile

    @property
    def is_open(self) -> bool:
        """Whether the run was interrupted."""
        return bool(self.events) and self.events[-1]["event"] != "end"


class Journals:
    """The runs of one assignment."""

    def __init__(self, root: Path, assignment: str) -> None:
        self.folder = root / "classroom" / "log" / "grade" / assignment

    def new(self, students: Sequence[str], options: dict[str, Any], versions: dict[str, str]) -> Journal:
        """Begin a run."""
        journal = Journal(self.folder / f"{self._next_name()}.jsonl")
        journal.write("start", students=list(students), options=options, versions=versions)
        return journal

    def interrupted(self) -> Journal | None:
        """The latest run, if it is not complete."""
        paths = self._paths()
        latest = Journal(paths[-1]) if paths else None
        if latest and latest.is_open and latest.events[0]["event"] == "start" and latest.students:
            return latest
        if latest:
            latest.close()
        return None

    def latest(self) -> str:
        """The name of the latest run's log, or "" before the first one."""
        return next((path.stem for path in reversed(self._files()) if path.stat().st_size), "")

    def half_written(self) -> set[str]:
        """The students whose record may be incomplete, because a run ended in the middle of it."""
        last = _last_of_each([event for path in self._paths() for event in read(path)])
        return {student for student, event in last.items() if event["event"] == "writing" or event.get("retry")}

    def damage(self) -> list[str]:
        """A sentence for each file with unreadable lines."""
        counted = {path: sum(_event(line) is None for line in _whole_lines(path)) for path in self._files()}
        return [
            f"{count} of the lines of {path} cannot be read; the students that they concern are graded again."
            for path, count in counted.items()
            if count
        ]

    def last_grades(self) -> dict[str, dict[str, Any]]:
        """Student -> the last `graded` line of any run, with the versions of that run."""
        found: dict[str, dict[str, Any]] = {}
        for path in self._paths():
            versions: dict[str, str] = {}
            for event in read(path):
                versions = event.get("versions", versions)
                if event["event"] == "graded":
                    found[event["student"]] = {**event, "versions": versions}
        return found

    def _paths(self) -> list[Path]:
        return [path for path in self._files() if read(path)]

    def _files(self) -> list[Path]:
        return sorted(self.folder.glob("*.jsonl"), key=lambda path: path.stem)

    def _next_name(self) -> str:
        """The current time as a name, or the name after the last one if the clock was set back: names give the order of
        runs."""
        now, last = datetime.now(timezone.utc).replace(tzinfo=None), datetime.min
        for path in self._files():
            with contextlib.suppress(ValueError):
                last = max(last, datetime.strptime(path.stem, NAMED))
        return max(now, last + timedelta(microseconds=1)).strftime(NAMED)


class OneWriter:
    """A lock that keeps other runs from writing to the gradebook. The system releases it when the process ends."""

    def __init__(self, root: Path) -> None:
        self._path = root / "classroom" / "log" / "grade" / "lock"

    def __enter__(self) -> "OneWriter":
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._file = self._path.open("a+")
        except OSError as error:
            raise CourseError(
                f"{self._path.parent} cannot be written ({error.strerror}), and without its log nothing is graded."
            ) from error
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._file.close()
            if isinstance(error, BlockingIOError):
                raise CourseError("This course is being graded already, by another `grade`: one at a time.") from error
            raise CourseError(f"{self._path} cannot be locked ({error.strerror}).") from error
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()


def read(path: Path) -> list[dict[str, Any]]:
    """The events of a file, without a truncated last line and damaged lines."""
    return [event for event in map(_event, _whole_lines(path)) if event is not None]


def _event(line: bytes) -> dict[str, Any] | None:
    try:
        event = json.loads(line)
        datetime.fromisoformat(event["time"])
        if event["event"] in (*DECIDED, "writing"):
            event["student"] = str(event["student"])
        return event
    except (ValueError, TypeError, KeyError):
        return None


def _last_of_each(events: Sequence[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Student -> the last event that names them."""
    return {event["student"]: event for event in events if "student" in event}


def _whole_lines(path: Path) -> list[bytes]:
    lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
    return lines[:-1] if lines and not lines[-1].endswith(b"\n") else lines
