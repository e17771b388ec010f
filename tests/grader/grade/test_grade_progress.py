"""The progress that `grade` shows, and what is left of an interrupted log."""

import io

import pytest

from autograder.grade.journal import Journal, Journals
from autograder.grade.progress import Progress, duration


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_on_a_terminal_one_line_moves_and_failures_stay_above_it():
    screen = Terminal()
    progress = Progress("05_self_attention", 4, screen)
    progress.step()
    progress.step("ann: the worker was ended by SIGKILL")
    progress.step()
    progress.step()
    progress.end()
    lines = screen.getvalue().split("\n")
    assert len(lines) == 3  # the failure, the line that moved, and the end of it
    assert lines[0].endswith("ann: the worker was ended by SIGKILL")
    assert lines[1].split("\x1b[K")[-1].endswith("4 of 4  1 failed")


def test_progress_tells_the_failures_so_far_and_the_time_left(monkeypatch):
    clock = iter([0.0, 30.0, 30.0, 30.0]).__next__
    monkeypatch.setattr("autograder.grade.progress.time.monotonic", clock)
    progress = Progress("05_self_attention", 40, io.StringIO())
    progress._done, progress._failed = 10, 1
    assert progress.text().split("  ")[2:] == ["10 of 40", "1 failed", "20 a minute", "1 min 30 s left"]


@pytest.mark.parametrize(
    ("seconds", "words"), [(7.4, "7 s"), (200, "3 min 20 s"), (7500, "2 h 5 min"), (260_000, "3.0 days")]
)
def test_durations_read_as_people_say_them(seconds, words):
    assert duration(seconds) == words


def test_a_line_that_was_cut_off_is_dropped_and_the_log_goes_on(tmp_path):
    journals = Journals(tmp_path, "05")
    journal = journals.new(["ann", "bob", "cem"], {}, {})
    journal.write("writing", student="ann")
    journal.write("graded", student="ann")
    journal.write("writing", student="bob")
    journal.close()
    with journal.path.open("ab") as file:
        file.write(b'{"event": "graded", "stu')
    again = journals.interrupted()
    assert again.left() == ["bob", "cem"]
    assert journals.half_written() == {"bob"}
    again.write("graded", student="bob")
    again.close()
    assert [event["event"] for event in Journal(journal.path).events] == [
        "start",
        "writing",
        "graded",
        "writing",
        "graded",
    ]


def test_a_run_that_came_to_its_end_is_not_gone_on_with(tmp_path):
    journals = Journals(tmp_path, "05")
    journal = journals.new(["ann"], {}, {})
    journal.write("graded", student="ann")
    assert journals.interrupted().path == journal.path
    journal.write("end")
    assert journals.interrupted() is None
