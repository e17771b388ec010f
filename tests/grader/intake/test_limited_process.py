"""Work on strangers' files ends at its limits, and costs the process that waits for it nothing else."""

import os
import time

import pytest

from autograder.intake import take_in
from autograder.prepare import sample_class
from autograder.prepare.sample_class import ASSIGNMENT
from autograder.sandbox import limited_process

ROOM = 256 << 20


def stopped(work, seconds: float = 20, memory: int = ROOM) -> str:
    with pytest.raises(limited_process.Stopped) as found:
        limited_process.run(work, seconds, memory)
    return str(found.value)


def test_a_result_comes_back_and_is_a_copy():
    given = {"a": [1, 2.5, None, "ü"]}
    assert limited_process.run(lambda: given, 5, ROOM) == given
    assert limited_process.run(lambda: "x" * 3_000_000, 5, ROOM) == "x" * 3_000_000


def test_what_does_not_end_is_ended():
    assert "more than 0.5 s of processor time" in stopped(lambda: sum(iter(int, 1)), seconds=0.5)


def test_what_only_waits_is_ended_too(monkeypatch):
    monkeypatch.setattr(limited_process, "CLOCK_SECONDS", 0.5)
    assert "took more than 1.5 s on the clock" in stopped(lambda: time.sleep(60), seconds=0.2)


def test_memory_is_limited_and_the_parents_does_not_count():
    mine = bytearray(300 << 20)
    assert "needed more than 256 MiB" in stopped(lambda: len(bytearray(400 << 20)))
    assert limited_process.run(lambda: len(mine), 5, ROOM) == len(mine)


def test_errors_and_ends_are_told():
    assert stopped(lambda: 1 // 0) == "ZeroDivisionError: integer division or modulo by zero"
    assert "exit code 3" in stopped(lambda: os._exit(3))


def handed_in(folder, student="ada"):
    return sample_class.submit(folder, student, sample_class.solved()).parent


def taken(folder):
    released = take_in.released_notebook(sample_class.ROOT, ASSIGNMENT)
    return take_in.take_in(released, ASSIGNMENT, folder)


@pytest.fixture
def large(tmp_path):
    """A submission that is no longer read at once."""
    folder = handed_in(tmp_path)
    (folder / "notes.txt").write_bytes(b" " * (take_in.LITTLE + 1))
    return folder


def test_a_submission_that_would_be_read_for_ever_is_one_persons_failure(large, monkeypatch):
    folder = large
    monkeypatch.setattr(take_in, "SECONDS", 1.0)
    monkeypatch.setattr(take_in, "rebuild", lambda data, released: sum(iter(int, 1)))
    found = taken(folder)
    assert "reading it took more than 1 s of processor time. Look at its files by hand." in found.failure
    monkeypatch.undo()
    assert taken(folder).failure == ""


def test_a_submission_that_would_fill_the_memory_is_one_persons_failure(large, monkeypatch):
    folder = large
    monkeypatch.setattr(take_in, "rebuild", lambda data, released: bytearray(4 << 30))
    assert "reading it needed more than 2048 MiB" in taken(folder).failure


def test_the_same_is_read_of_a_submission_in_either_way(large, tmp_path):
    small = handed_in(tmp_path / "other")
    for found in (taken(large), taken(small)):
        assert (found.failure, found.reasons) == ("", ())
        assert found.notebook == taken(small).notebook
