"""The log of grading, as JSON lines, and the memory by which an interrupted run continues.

One file a run, `classroom/log/grade/ASSIGNMENT/TIME.jsonl`. Its events:

    start    students, options, versions; the first line
    writing  student: from here to the next line of this student the gradebook may hold half of it
    graded   student, seconds, cells [[id, seconds], ...], points, notes, submission, memory ...
    failed   student, reason, attempts
    resume   the run went on after it had been cut off
    end      the counts; a file without it was interrupted
"""

import fcntl
import json
import os
from collections.abc import Sequence
from datetime import datetime, timezone
from itertools import pairwise
from pathlib import Path
from typing import IO, Any

from autograder.course import CourseError

DECIDED = ("graded", "failed")


class Journal:
    """One run's file. Every line is on disk before the next step is taken."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.events = read(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        whole = sum(len(line) for line in _whole_lines(path))
        self._file: IO[bytes] = path.open("ab")
        self._file.truncate(whole)  # a line that was being written when the machine stopped

    def write(self, event: str, **facts: Any) -> None:
        """Append one event."""
        line = {"event": event, "time": datetime.now(timezone.utc).isoformat(timespec="milliseconds"), **facts}
        self.events.append(line)
        self._file.write(json.dumps(line, ensure_ascii=False).encode() + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())

    def close(self) -> None:
        self._file.close()

    @property
    def students(self) -> list[str]:
        """Whom the run is to grade."""
        return self.events[0]["students"]

    @property
    def options(self) -> dict[str, Any]:
        return self.events[0]["options"]

    def left(self) -> list[str]:
        """Whom the run has not come to, or was writing when it ended."""
        decided = {event["student"] for event in self.events if event["event"] in DECIDED}
        return [student for student in self.students if student not in decided]

    def of(self, event: str) -> list[dict[str, Any]]:
        """All lines of one kind."""
        return [line for line in self.events if line["event"] == event]

    @property
    def seconds(self) -> float:
        """How long the run took, without the time between an interruption and the resumption."""
        times = [(datetime.fromisoformat(event["time"]), event["event"]) for event in self.events]
        pairs = pairwise(times)
        return sum((later - earlier).total_seconds() for (earlier, _), (later, kind) in pairs if kind != "resume")

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
        stamp = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H-%M-%S.%f")
        journal = Journal(self.folder / f"{stamp}.jsonl")
        journal.write("start", students=list(students), options=options, versions=versions)
        return journal

    def interrupted(self) -> Journal | None:
        """The latest run, if it did not come to its end."""
        paths = self._paths()
        latest = Journal(paths[-1]) if paths else None
        if latest and latest.is_open and latest.students:
            return latest
        if latest:
            latest.close()
        return None

    def half_written(self) -> set[str]:
        """Whose record may be incomplete, because a run ended in the middle of it."""
        events = [event for path in self._paths() for event in read(path)]
        last = {event["student"]: event["event"] for event in events if "student" in event}
        return {student for student, event in last.items() if event == "writing"}

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
        return [path for path in sorted(self.folder.glob("*.jsonl")) if read(path)]


class OneWriter:
    """While this lasts no other run writes to the gradebook. The system lets go of it when the process ends."""

    def __init__(self, root: Path) -> None:
        self._path = root / "classroom" / "log" / "grade" / "lock"

    def __enter__(self) -> "OneWriter":
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._file = self._path.open("a+")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._file.close()
            raise CourseError("This course is being graded already, by another `grade`: one at a time.") from error
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()


def read(path: Path) -> list[dict[str, Any]]:
    """The events of a file, without a last line that was cut short."""
    return [json.loads(line) for line in _whole_lines(path)]


def _whole_lines(path: Path) -> list[bytes]:
    lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
    return lines[:-1] if lines and not lines[-1].endswith(b"\n") else lines
