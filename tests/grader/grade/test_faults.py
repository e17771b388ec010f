"""Whatever a machine does to a grading: a sentence for the teacher, the others graded, and `--resume` makes it
whole."""

import contextlib
import errno
import os
import pickle
import re
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import pytest
from graded_class import contents, grade, logs, of
from nbconvert.writers import FilesWriter
from nbgrader import api
from recorded_class import STUDENTS, replay, results_of, send, small
from sqlalchemy import event
from sqlalchemy.engine import Engine

from autograder import __main__ as command_line
from autograder import course
from autograder.feedback import verdict_log
from autograder.grade import fork_server, gradebook, journal, pool, worker
from autograder.grade.interrupt import Interrupted
from autograder.grade.journal import Journals
from autograder.grade.messages import Batch, Result, Submission
from autograder.inside import safe_rmtree
from autograder.intake import take_in
from autograder.policy import receipts
from autograder.prepare.sample_class import ASSIGNMENT
from autograder.sandbox import private_folder

pytestmark = pytest.mark.xdist_group("grade-faults")

FIRST, SECOND = STUDENTS
FULL = OSError(errno.ENOSPC, "No space left on device")
VERDICTS = f"classroom/verdicts/{ASSIGNMENT.id}.jsonl"
RELEASED = Path("exercises", ASSIGNMENT.id, f"{ASSIGNMENT.notebook}.ipynb")


@pytest.fixture(scope="module")
def results(ours) -> dict[str, Result]:
    return results_of(ours)


@dataclass
class Course:
    """A course of two, whose workers have done their part."""

    folder: Path
    at: Callable[[str, Callable], None]
    patch: pytest.MonkeyPatch
    stack: contextlib.ExitStack
    results: dict[str, Result]

    @property
    def gradebook(self) -> Path:
        return self.folder / "classroom" / "gradebook.db"

    def breaks(self, owner: object, name: str, when: Callable[..., bool], error: Exception = FULL) -> None:
        """Let a function raise an exception when `when` is true."""
        real = getattr(owner, name)

        def broken(*arguments, **named):
            if when(*arguments):
                raise error
            return real(*arguments, **named)

        self.patch.setattr(owner, name, broken)


@pytest.fixture
def two(ungraded, results, tmp_path, monkeypatch) -> Iterator[Course]:
    with contextlib.ExitStack() as stack:
        mine = {name: results[name] for name in STUDENTS}
        faults = stack.enter_context(pytest.MonkeyPatch.context())
        yield Course(small(tmp_path / "course", ungraded), replay(monkeypatch, mine), faults, stack, mine)


# --- faults of the writer: each makes itself, and returns how it is fixed --------------------------------------------


def log_full(two: Course) -> Callable[[], None]:
    number = iter(range(100))
    two.breaks(journal.os, "fsync", lambda _: next(number) == 2)  # start and writing are there
    return two.patch.undo


def gradebook_full(two: Course) -> Callable[[], None]:
    with contextlib.closing(sqlite3.connect(two.gradebook, isolation_level=None)) as file:
        file.execute("PRAGMA page_size = 512")  # so that no page has room to spare
        file.execute("VACUUM")
        (pages,) = file.execute("PRAGMA page_count").fetchone()

    def limit(connection: sqlite3.Connection, _: object) -> None:
        connection.execute(f"PRAGMA max_page_count = {pages}")

    event.listen(Engine, "connect", limit)

    def mend() -> None:
        event.remove(Engine, "connect", limit)
        api.create_engine.cache_clear()

    two.stack.callback(mend)
    return two.stack.close


def graded_folder_full(two: Course) -> Callable[[], None]:
    two.breaks(FilesWriter, "write", lambda writer, *_: FIRST in str(writer.build_directory))
    return two.patch.undo


def received_folder_full(two: Course) -> Callable[[], None]:
    two.breaks(take_in, "atomic_write", lambda path, text: "received" in path.parts and FIRST in path.parts)
    return two.patch.undo


def receipts_full(two: Course) -> Callable[[], None]:
    two.breaks(receipts, "atomic_write", lambda path, text: path.name == f"{FIRST}.json")
    return two.patch.undo


def verdicts_full(two: Course) -> Callable[[], None]:
    path = verdict_log.path_of(two.folder, ASSIGNMENT.id)
    path.parent.mkdir(exist_ok=True)
    path.symlink_to("/dev/full")
    return path.unlink


def gradebook_held(two: Course) -> Callable[[], None]:
    two.patch.setattr(gradebook, "PATIENCE_SECONDS", 0.0)
    two.patch.setattr(gradebook, "LOOK_SECONDS", 0.1)
    other = sqlite3.connect(two.gradebook, isolation_level=None)
    two.at(SECOND, lambda: other.execute("BEGIN EXCLUSIVE"))
    return other.close


def gradebook_spoiled(two: Course) -> Callable[[], None]:
    whole = two.folder / "backup.db"

    def spoil() -> None:
        shutil.copy(two.gradebook, whole)
        two.gradebook.write_bytes(b"not a database, at all" * 5000)
        api.create_engine.cache_clear()

    def mend() -> None:
        shutil.copy(whole, two.gradebook)
        api.create_engine.cache_clear()

    two.at(SECOND, spoil)
    return mend


def interrupted(*signals: int) -> Callable[[Course], Callable]:
    def begin(two: Course) -> Callable[[], None]:
        two.at(SECOND, lambda: send(signals[0]))
        two.at("end", lambda: send(*signals[1:]))  # while it tidies up
        return lambda: None

    return begin


def worker_died(two: Course) -> Callable[[], None]:
    whole = two.results[FIRST]
    two.results[FIRST] = Result(FIRST, failure="the worker was ended by SIGKILL, out of memory?", retry=True)
    return lambda: two.results.__setitem__(FIRST, whole)


WRITER = {
    "the log's disk is full": (log_full, 1, "No space left on device"),
    "the gradebook's disk is full": (gradebook_full, 1, "database or disk is full"),
    "the graded folder's disk is full": (graded_folder_full, 1, f"{FIRST}: No space left on device"),
    "the received folder's disk is full": (received_folder_full, 1, f"{FIRST}: not checked: No space left on device"),
    "the receipts' disk is full": (receipts_full, 1, f"{FIRST}: not checked: No space left on device"),
    "the verdicts' disk is full": (verdicts_full, 1, "No space left on device"),
    "the gradebook stays locked": (gradebook_held, 1, "still locked by another program"),
    "the gradebook is spoiled meanwhile": (gradebook_spoiled, 1, "file is not a database"),
    "Ctrl-C": (interrupted(signal.SIGINT), 130, "--resume goes on with the 1 others"),
    "Ctrl-C twice": (interrupted(signal.SIGINT, signal.SIGINT), 130, "--resume goes on with the 1 others"),
    "asked to end": (interrupted(signal.SIGTERM, signal.SIGINT), 143, "--resume goes on with the 1 others"),
    "the terminal is closed": (interrupted(signal.SIGHUP), 129, "--resume goes on with the 1 others"),
    "a worker was killed twice": (worker_died, 1, f"{FIRST}: the worker was ended by SIGKILL"),
}


@pytest.mark.parametrize("fault", WRITER)
def test_what_befalls_the_writer_is_a_sentence_and_resume_makes_the_class_whole(two, ours, fault):
    begin, code, words = WRITER[fault]
    mend = begin(two)
    done = grade(two.folder)
    said = done.stdout + done.stderr
    assert (done.returncode, words in said) == (code, True), said
    assert "Traceback" not in said
    assert "--resume" in said
    mend()
    done = grade(two.folder, "--resume")
    assert done.returncode == 0, done.stdout + done.stderr
    whole = contents(ours)
    assert contents(two.folder) == {name: kept for name, kept in whole.items() if name.split(" ")[0] in STUDENTS}
    (events,) = logs(two.folder)
    assert sorted(line["student"] for line in of(events, "graded")) == list(STUDENTS)


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [(Interrupted(signal.SIGINT), 130, "Interrupted."), (FULL, 1, "This machine cannot go on: No space left on")],
)
def test_a_run_that_ends_before_it_is_planned_is_not_said_to_be_resumable(two, error, code, words):
    two.breaks(gradebook.Classroom, "handed_in", lambda _: True, error)
    done = grade(two.folder, "--force")
    said = done.stdout + done.stderr
    assert done.returncode == code and words in said
    assert "Nothing was graded yet; give the same command again." in said and "--resume" not in said
    assert logs(two.folder) == []


def test_the_rest_of_a_forced_run_is_named_by_a_plain_one_and_resumed(two):
    assert grade(two.folder).returncode == 0
    two.at(SECOND, lambda: send(signal.SIGINT))
    assert grade(two.folder, "--force").returncode == 130
    said = grade(two.folder).stdout
    assert "All 2 submissions are graded already" in said
    assert re.search(r"The run of [\d-]+ [\d:]+ UTC was interrupted before 1 of 2 were graded; --resume goes on", said)
    assert "1 of 2 are left" in grade(two.folder, "--resume").stdout
    assert "was interrupted" not in grade(two.folder).stdout


@pytest.mark.parametrize("fault", ["received_folder_full", "receipts_full", "graded_folder_full", "worker_died"])
def test_what_befalls_one_leaves_the_other_graded(two, fault):
    globals()[fault](two)
    done = grade(two.folder)
    assert f"{ASSIGNMENT.id}: 1 of 2 graded" in done.stdout
    assert [line["student"] for line in of(logs(two.folder)[0], "graded")] == [SECOND]
    assert "the submissions are not the reason: --resume tries them again" in done.stdout


def test_a_gradebook_that_is_locked_for_a_while_is_waited_for(two):
    other = sqlite3.connect(two.gradebook, isolation_level=None)
    two.patch.setattr(gradebook, "LOOK_SECONDS", 0.1)
    two.at(FIRST, lambda: other.execute("BEGIN EXCLUSIVE"))
    said = []

    def hear(text: str) -> None:
        said.append(text)
        other.close()

    two.patch.setattr(gradebook, "say", hear)
    done = grade(two.folder)
    assert done.returncode == 0, done.stderr
    assert len(said) == 1 and said[0].endswith("gradebook.db is locked by another program; waiting ...")


# --- what is found broken at the start -------------------------------------------------------------------------------


def spoil(name: str, content: bytes | None) -> Callable[[Path], None]:
    def act(folder: Path) -> None:
        path = folder / name
        if path.is_dir():
            shutil.rmtree(path)
        path.unlink(missing_ok=True)
        if content is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)

    return act


def pipe(name: str) -> Callable[[Path], None]:
    def act(folder: Path) -> None:
        spoil(name, None)(folder)
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        os.mkfifo(folder / name)

    return act


def misspell(folder: Path) -> None:
    with (folder / "nbgrader_config.py").open("a", encoding="utf-8") as file:
        file.write("\nc.LateRules.percent = (10\n")


START = {
    "the configuration is no Python": (
        misspell,
        "nbgrader_config.py cannot be read: SyntaxError: '(' was never closed",
    ),
    "the gradebook is no database": (
        spoil("classroom/gradebook.db", b"junk" * 3000),
        "cannot be used: file is not a data",
    ),
    "the log is no folder": (spoil("classroom/log", b""), "cannot be written"),
    "the released notebook is missing": (spoil(str(RELEASED), None), "is missing"),
    "the released notebook is no JSON": (spoil(str(RELEASED), b"<html>"), "is not a notebook"),
    "the released notebook is no notebook": (spoil(str(RELEASED), b'{"cells": [1, {"a": 2}]}'), "is not a notebook"),
    "the secret is empty": (spoil("classroom/secret", b""), "classroom/secret is empty"),
    # opening one would block for ever
    "the secret is a pipe": (pipe("classroom/secret"), "classroom/secret is a named pipe. Expected a file"),
    "the verdicts are a pipe": (pipe(VERDICTS), f"{VERDICTS} is a named pipe"),
    "the gradebook is a pipe": (pipe("classroom/gradebook.db"), "classroom/gradebook.db is a named pipe"),
    "the released notebook is a pipe": (pipe(str(RELEASED)), f"{RELEASED} is a named pipe"),
    "the lock is a pipe": (pipe("classroom/log/grade/lock"), "classroom/log/grade/lock is a named pipe"),
}


def test_where_names_of_files_are_no_text_nothing_is_graded(tmp_path):
    plain = {"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    command = [sys.executable, "-m", "autograder", "grade", ASSIGNMENT.id]
    done = subprocess.run(
        command, cwd=tmp_path, env={**os.environ, **plain}, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert "reads the names of files as ascii" in done.stderr and "Set PYTHONUTF8=1." in done.stderr


@pytest.mark.parametrize("fault", START)
def test_what_is_broken_at_the_start_is_a_sentence_and_nothing_is_written(two, fault):
    begin, words = START[fault]
    begin(two.folder)
    done = grade(two.folder)
    assert (done.returncode, words in done.stderr) == (2, True), done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert not (two.folder / "classroom" / "autograded").exists()


def test_where_the_log_is_read_only_nothing_is_graded(two):
    two.breaks(Path, "mkdir", lambda path, *_: path.name == "grade", OSError(errno.EROFS, "Read-only file system"))
    done = grade(two.folder)
    assert done.returncode == 2
    assert "cannot be written (Read-only file system), and without its log nothing is graded" in done.stderr


def test_a_damaged_receipt_costs_its_student_at_most(two):
    assert grade(two.folder).returncode == 0
    path = two.folder / "classroom" / "receipts" / ASSIGNMENT.id / f"{FIRST}.json"
    path.write_bytes(path.read_bytes()[:20])
    shutil.rmtree(two.folder / "classroom" / "autograded" / SECOND)
    done = grade(two.folder)
    assert SECOND in [line["student"] for line in of(logs(two.folder)[-1], "graded")], done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr


def test_a_submission_that_went_while_the_run_was_interrupted_is_a_failure_of_its_own(two):
    two.at(SECOND, lambda: send(signal.SIGINT))
    assert grade(two.folder).returncode == 130
    shutil.rmtree(two.folder / "classroom" / "submitted" / SECOND)
    done = grade(two.folder, "--resume")
    assert (done.returncode, f"{SECOND}: the folder is no longer there" in done.stdout) == (1, True)
    assert "No run was interrupted" in grade(two.folder, "--resume").stdout  # to try again would help nobody


# --- logs and clocks -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", [0, 2])
def test_a_damaged_line_of_the_log_costs_a_second_look_and_no_more(two, place):
    assert grade(two.folder).returncode == 0
    (path,) = (two.folder / "classroom" / "log" / "grade" / ASSIGNMENT.id).glob("*.jsonl")
    lines = path.read_bytes().splitlines(keepends=True)
    assert b'"graded"' in lines[2]
    lines[place] = b"\x00\xff" + lines[place][9:]
    path.write_bytes(b"".join(lines))
    done = grade(two.folder)
    assert done.returncode == 0, done.stderr
    assert "1 of the lines of" in done.stdout
    if place:
        assert [line["student"] for line in of(logs_read(two.folder)[-1], "graded")] == [FIRST]


def logs_read(folder: Path) -> list[list[dict]]:
    return [
        journal.read(path) for path in sorted((folder / "classroom" / "log" / "grade" / ASSIGNMENT.id).glob("*.jsonl"))
    ]


def test_a_log_without_its_first_line_is_not_gone_on_with(tmp_path):
    journals = Journals(tmp_path, "05")
    run = journals.new(["ann"], {}, {})
    run.write("writing", student="ann")
    run.close()
    run.path.write_bytes(run.path.read_bytes()[5:])
    assert journals.interrupted() is None
    assert journals.half_written() == {"ann"}


def test_the_order_of_runs_survives_a_clock_that_is_set_back(tmp_path):
    journals = Journals(tmp_path, "05")
    ahead = tmp_path / "classroom" / "log" / "grade" / "05" / "2199-01-01T00-00-00.000000.jsonl"
    first = journals.new(["ann"], {}, {"torch": "1"})
    first.write("graded", student="ann")
    first.close()
    first.path.rename(ahead)
    second = journals.new(["ann"], {}, {"torch": "2"})
    second.write("graded", student="ann")
    second.write("failed", student="ann", retry=True)
    second.close()
    third = journals.new(["bob"], {}, {})
    assert [path.stem for path in journals._paths()] == [ahead.stem, second.path.stem, third.path.stem]
    assert journals.last_grades()["ann"]["versions"] == {"torch": "2"}
    assert journals.half_written() == {"ann"}
    third.close()


def test_a_run_is_never_shorter_than_nothing(tmp_path):
    run = Journals(tmp_path, "05").new(["ann"], {}, {})
    run.write("graded", student="ann")
    run.events[0]["time"] = "2199-01-01T00:00:00.000+00:00"
    assert run.seconds == 0
    run.close()


def test_new_work_is_graded_though_the_clock_has_gone_back(ours, results, tmp_path, monkeypatch):
    folder = small(tmp_path / "course", ours)
    config = folder / course.MARKER
    config.write_text(config.read_text().replace("trust_timestamps = True", "trust_timestamps = False"))
    replay(monkeypatch, results)
    assert grade(folder).returncode == 0  # by their receipts now
    assert "All 2 submissions are graded already" in grade(folder).stdout
    submitted = folder / "classroom" / "submitted"
    name = Path(ASSIGNMENT.id, f"{ASSIGNMENT.notebook}.ipynb")
    shutil.copy(submitted / SECOND / name, submitted / FIRST / name)
    monkeypatch.setattr(receipts, "_now", lambda: "2001-01-01 00:00:00.000000 UTC")
    assert grade(folder).returncode == 0
    assert [line["student"] for line in of(logs(folder)[-1], "graded")] == [FIRST]


def test_a_line_for_which_there_is_no_room_leaves_the_log_whole(tmp_path, monkeypatch):
    run = Journals(tmp_path, "05").new(["ann"], {}, {})
    with monkeypatch.context() as patch:
        patch.setattr(journal.os, "fsync", lambda _: (_ for _ in ()).throw(FULL))
        with pytest.raises(OSError, match=r"No space left on device.*jsonl"):
            run.write("writing", student="ann")
    run.write("graded", student="ann")
    run.close()
    assert [line["event"] for line in journal.read(run.path)] == ["start", "graded"]


# --- workers, folders for them, and the reader of the output ---------------------------------------------------------


@pytest.fixture
def born(monkeypatch):
    """A fork_server whose workers sleep."""
    sleeping = "fork_server.serve(int(sys.argv[1]), lambda *_: time.sleep(999))"
    program = f"import sys, time; from autograder.grade import fork_server; {sleeping}"
    monkeypatch.setattr(fork_server, "PROGRAM", (sys.executable, "-c", program))
    with fork_server.ForkServer({}) as started:
        yield started


def test_without_room_for_temporary_files_no_worker_is_started_and_that_is_said(born, monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    for start in (lambda: pool.Worker(born), lambda: fork_server.ForkServer({})):
        with pytest.raises(
            course.CourseError, match=r"No worker can be started \(No such file.*TMPDIR names another place"
        ):
            start()


def test_with_too_many_open_files_no_worker_is_started_and_nothing_is_left(born, monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    descriptor = os.open(os.devnull, os.O_RDONLY)
    os.close(descriptor)
    for start in (lambda: pool.Worker(born), lambda: fork_server.ForkServer({})):
        for spare in range(1, 4):
            resource.setrlimit(resource.RLIMIT_NOFILE, (descriptor + spare, before[1]))
            try:
                with pytest.raises(course.CourseError, match="Too many open files"):
                    start()
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert list(tmp_path.iterdir()) == []


def test_a_nursery_that_ends_at_once_is_named_with_its_reason(monkeypatch, tmp_path):
    monkeypatch.setattr(fork_server, "PROGRAM", (sys.executable, "-c", "raise ImportError('torch is broken')"))
    with (
        fork_server.ForkServer({}) as stillborn,
        pytest.raises(course.CourseError, match="ImportError: torch is broken"),
    ):
        pool.Worker(stillborn)


def test_a_worker_that_hangs_is_ended_and_its_submission_tried_once_more(born, monkeypatch, tmp_path):
    monkeypatch.setattr(pool, "LONGEST_SECONDS", 0.2)
    monkeypatch.setattr(pool, "TIDY_SECONDS", 0.1)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pool.Pool(Batch("05", b"", {}, b"", {}), 1, born) as workers:
        (result,) = workers.grade([Submission("ann", tmp_path)])
    assert (result.failure, result.retry, result.attempts) == (pool.TOO_LONG, True, 2)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("depth", [1500, 2500])
def test_a_tree_of_any_depth_is_removed_and_stops_nobody(tmp_path, depth):
    place = tmp_path / "tree"
    place.mkdir()
    here = os.getcwd()
    os.chdir(place)
    for _ in range(depth):
        os.mkdir("d")
        os.chdir("d")
    os.chdir(here)
    safe_rmtree.remove(place)
    assert not place.exists()


KILLED = """
import os, signal, sys, tempfile
from pathlib import Path
from autograder.sandbox.private_folder import PrivateFolder
folder = PrivateFolder("grade")
(folder.path / "secret").write_text("x")
print(folder.path, flush=True)
if sys.argv[1] == "kill":
    os.kill(os.getpid(), signal.SIGKILL)
sys.stdin.read()
"""


def test_what_a_killed_grader_left_is_swept_away_and_nothing_else(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    command = [sys.executable, "-c", KILLED]
    alive = subprocess.Popen([*command, "stay"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    held = Path(alive.stdout.readline().strip())
    left = Path(subprocess.run([*command, "kill"], capture_output=True, text=True, check=False).stdout.strip())
    (tmp_path / f"{private_folder.PREFIX}being-made").mkdir()
    (tmp_path / "grade-of-somebody-else").mkdir()
    assert (left / "secret").exists()
    assert left.stat().st_mode & 0o077 == 0o011  # may be passed through, and not be looked into
    private_folder.sweep()
    assert not left.exists()
    assert held.exists() and len(list(tmp_path.iterdir())) == 3
    alive.communicate()
    private_folder.sweep()
    assert not held.exists()


def test_what_a_grader_left_that_was_killed_while_it_removed_its_folder_is_swept_away(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    left = tmp_path / f"{private_folder.PREFIX}grade-half-gone"
    (left / "up-0").mkdir(parents=True)
    (left / "up-0" / "essay.ipynb").write_text("somebody's work")
    private_folder.sweep()
    assert left.exists()  # it may be one that is being made
    hour_ago = time.time() - 3600
    os.utime(left, (hour_ago, hour_ago))
    private_folder.sweep()
    assert not left.exists()


def test_a_grader_makes_no_other_folder_that_would_stay_when_it_is_killed():
    package = Path(course.__file__).parent
    of_their_own = {
        "sandbox/private_folder.py",
        "learn/open.py",
        "learn/print_page.py",
        "grade/benchmark.py",
        "grade/gradebook_benchmark.py",
    }  # these hold no work
    makes = re.compile(r"(?:TemporaryDirectory|mkdtemp)\((?![^)\n]*dir=)")
    found = {str(p.relative_to(package)) for p in package.rglob("*.py") if makes.search(p.read_text(encoding="utf-8"))}
    assert found == of_their_own


def test_a_folder_that_goes_while_it_is_read_is_no_empty_submission(tmp_path):
    bench = SimpleNamespace(
        _app=SimpleNamespace(coursedir=SimpleNamespace(assignment_id=ASSIGNMENT.id)),
        _folder=tmp_path,
        _classroom=tmp_path,
    )
    with pytest.raises(worker.Gone, match="the folder is no longer there"):
        worker.Bench._take_in(bench, Submission("ann", tmp_path / "gone"))


def test_ctrl_c_while_it_imports_is_a_sentence(monkeypatch, capsys):
    def interrupt(name: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(command_line, "import_module", interrupt)
    assert command_line.main(["grade", ASSIGNMENT.id]) == 130
    assert capsys.readouterr().err == "\nInterrupted.\n"


def test_where_nobody_reads_what_is_said_the_grading_goes_on(two):
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as closed:
        with contextlib.redirect_stdout(closed), contextlib.redirect_stderr(closed):
            before = os.getcwd()
            os.chdir(two.folder)
            try:
                assert command_line.main(["grade", ASSIGNMENT.id]) == 0
            finally:
                os.chdir(before)
    assert len(of(logs(two.folder)[0], "graded")) == 2


# --- a disk that is really full, and really read-only ----------------------------------------------------------------

ON_A_SMALL_DISK = """
import pickle, subprocess, sys
from pathlib import Path

import pytest
from graded_class import grade
from recorded_class import replay

folder, results = Path(sys.argv[1]), pickle.loads(Path(sys.argv[2]).read_bytes())
classroom, disk = folder / "classroom", folder / "disk"
disk.mkdir()
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", disk], check=True)
subprocess.run(["cp", "-a", f"{classroom}/.", disk], check=True)
subprocess.run(["mount", "--bind", disk, classroom], check=True)
with pytest.MonkeyPatch.context() as patch:
    replay(patch, results)
    said = []
    for spare in (0, 8, 32, 64, 128):  # blocks of 4 kB: each time something else finds no room
        with open(classroom / "ballast", "wb", buffering=0) as ballast:
            try:
                while ballast.write(bytes(4096)):
                    pass
            except OSError:
                pass
            ballast.truncate(max(0, ballast.tell() - 4096 * spare))
        done = grade(folder, "--resume")
        said.append((spare, done.returncode, done.stdout + done.stderr))
        (classroom / "ballast").unlink()
    done = grade(folder, "--resume")
    said.append(("room", done.returncode, done.stdout + done.stderr))
    subprocess.run(["mount", "-o", "remount,ro,bind", classroom], check=True)
    done = grade(folder, "--force")
    said.append(("read-only", done.returncode, done.stdout + done.stderr))
    subprocess.run(["mount", "-o", "remount,rw,bind", classroom], check=True)
    subprocess.run(["cp", "-a", f"{disk}/.", sys.argv[3]], check=True)
Path(sys.argv[2]).write_bytes(pickle.dumps(said))
"""


def _may_mount() -> bool:
    tried = ["unshare", "--mount", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
    return bool(shutil.which("unshare")) and subprocess.run(tried, capture_output=True, check=False).returncode == 0


@pytest.mark.skipif(not _may_mount(), reason="only root may mount a small disk")
def test_a_full_disk_and_a_read_only_one_are_sentences_and_nothing_is_lost(ungraded, ours, results, tmp_path):
    folder, kept = small(tmp_path / "course", ungraded), tmp_path / "kept"
    exchange = tmp_path / "exchange"
    exchange.write_bytes(pickle.dumps({name: results[name] for name in STUDENTS}))
    (kept / "classroom").mkdir(parents=True)
    command = ["unshare", "--mount", sys.executable, "-c", ON_A_SMALL_DISK]
    places = {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])}
    done = subprocess.run(
        [*command, str(folder), str(exchange), str(kept / "classroom")],
        env={**os.environ, **places},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    said = {when: (code, text) for when, code, text in pickle.loads(exchange.read_bytes())}
    assert not any("Traceback" in text for _, text in said.values())
    full = [text for when, (code, text) in said.items() if isinstance(when, int) and code]
    assert full and all("No space left on device" in text or "disk is full" in text for text in full)
    assert said["room"][0] == 0, said["room"]
    assert said["read-only"][0] in (1, 2) and "ead-only" in said["read-only"][1]
    whole = contents(ours)
    assert contents(kept) == {name: each for name, each in whole.items() if name.split(" ")[0] in STUDENTS}
