"""Only the writer of `grade`: a pool that returns what workers once returned, so that a test takes no worker's
time."""

import contextlib
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

import graded_class
import pytest
from graded_class import logs, of

from autograder.grade import workers
from autograder.grade.messages import Received, Result, Submission
from autograder.prepare.sample_class import ASSIGNMENT

STUDENTS = ("blank", "perfect")


def results_of(ours: Path) -> dict[str, Result]:
    """The workers' results for the graded class, from its records."""
    found = {}
    for event in of(logs(ours)[0], "graded"):
        student = event["student"]
        name = f"{ASSIGNMENT.notebook}.ipynb"
        graded, received = (
            (ours / "classroom" / step / student / ASSIGNMENT.id / name).read_text(encoding="utf-8")
            for step in ("autograded", "received")
        )
        found[student] = Result(
            student,
            notebooks={ASSIGNMENT.notebook: graded},
            received=Received(received, (), event["submission"], ()),
            records={f"verdicts/{ASSIGNMENT.id}.jsonl": b'{"student": "%s"}\n' % student.encode()},
        )
    return found


def small(folder: Path, of_class: Path, students: Iterable[str] = STUDENTS) -> Path:
    """The class, with only the submissions of these students."""
    graded_class.twin(folder, of_class)
    for step in ("submitted", "received", "autograded"):
        for place in (folder / "classroom" / step).glob("*"):
            if place.name not in students:
                shutil.rmtree(place)
    return folder


def replay(monkeypatch: pytest.MonkeyPatch, results: Mapping[str, Result]) -> Callable[..., None]:
    """Let `grade` use these results. Returns `at(student, act)`, which calls `act` before that student's result."""
    acts: dict[str, Callable[[], object]] = {}

    class Pool:
        def __init__(self, *_: object) -> None:
            pass

        def __enter__(self) -> "Pool":
            return self

        def __exit__(self, *_: object) -> None:
            acts.pop("end", lambda: None)()

        def grade(self, submissions: Iterable[Submission]) -> Iterator[Result]:
            for submission in submissions:
                acts.pop(submission.student, lambda: None)()
                yield results[submission.student]

    monkeypatch.setattr(workers, "Pool", Pool)
    monkeypatch.setattr(workers, "ForkServer", lambda environment, assignment: contextlib.nullcontext())

    def at(student: str, act: Callable[[], object]) -> None:
        acts[student] = act

    return at


def send(*signals: int) -> None:
    """Signals to this process."""
    for number in signals:
        os.kill(os.getpid(), number)
