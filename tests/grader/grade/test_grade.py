"""A class through `python -m autograder grade`, held against plain `nbgrader autograde` of the same class."""

import json
import pickle
import shutil
import subprocess
import sys
import time
from pathlib import Path

import graded_class
import psutil
import pytest
from graded_class import NAMES, contents, files, grade, gradebook, logs, of

from autograder.grade import fork_server, pool
from autograder.grade.gradebook import Classroom
from autograder.grade.messages import Result, Submission
from autograder.prepare import sample_class
from autograder.prepare.sample_class import ASSIGNMENT

pytestmark = pytest.mark.xdist_group("grade")

FOLDER = Path(__file__).parent
CHECKS = [f"{exercise.id}-check" for exercise in ASSIGNMENT.exercises]


@pytest.fixture
def copy(ours, tmp_path) -> Path:
    """A graded class that a test may change."""
    return graded_class.twin(tmp_path / "course", ours)


@pytest.fixture(scope="module")
def results(ours) -> dict[str, Result]:
    """The workers' results for this class, from its records: then only the writer is under test."""
    found = {}
    for event in of(logs(ours)[0], "graded"):
        student = event["student"]
        place = ours / "classroom" / "autograded" / student / ASSIGNMENT.id / f"{ASSIGNMENT.notebook}.ipynb"
        found[student] = Result(student, notebooks={ASSIGNMENT.notebook: place.read_text(encoding="utf-8")})
    return found


# --- the same as nbgrader --------------------------------------------------------------------------------------------


def test_the_gradebook_is_that_of_plain_nbgrader(plain, ours):
    assert contents(ours) == contents(plain)


def test_the_graded_files_are_those_of_plain_nbgrader(plain, ours):
    assert files(ours) == files(plain)


def test_the_class_has_every_kind_of_grade(ours):
    totals = {name: contents(ours)[name][1] for name in NAMES}
    assert totals["perfect"] == 30
    assert totals["blank"] == 0
    assert 0 < totals["broken"] < 30
    assert contents(ours)["einsum penalty"] == totals["einsum"] == 30  # late, and this course takes everything off


def test_what_is_graded_is_passed_over_until_there_is_newer_work(copy):
    assert "All 6 submissions are graded already" in grade(copy).stdout
    assert len(logs(copy)) == 1
    folder = copy / "classroom" / "submitted"
    newer = folder / "blank" / ASSIGNMENT.id
    shutil.copy(folder / "perfect" / ASSIGNMENT.id / f"{ASSIGNMENT.notebook}.ipynb", newer)
    (newer / "timestamp.txt").write_text("2026-03-02 11:00:00 UTC", encoding="utf-8")
    done = grade(copy)
    assert done.returncode == 0, done.stderr
    assert [event["student"] for event in of(logs(copy)[1], "graded")] == ["blank"]
    assert contents(copy)["blank"][1] == 30
    assert "0 -> 8 (a new submission)" in done.stdout


# --- what a teacher reads --------------------------------------------------------------------------------------------


def test_the_log_tells_the_time_of_every_submission_and_cell(ours):
    events = logs(ours)[0]
    assert [event["event"] for event in events if event["event"] != "writing"] == ["start", *["graded"] * 6, "end"]
    assert sorted(event["student"] for event in of(events, "graded")) == list(NAMES)
    for event in of(events, "graded"):
        cells = dict(event["cells"])
        assert {exercise.id for exercise in ASSIGNMENT.exercises} | set(CHECKS) <= set(cells)
        assert 0 < sum(cells.values()) <= event["seconds"]


def test_the_summary_names_points_lateness_and_what_was_put_right(ours):
    said = (ours / "said").read_text(encoding="utf-8")
    assert said.startswith(f"{ASSIGNMENT.id}: 6 of 6 graded in ")
    assert "late: 1\n    einsum: 1.0 days, 30 points taken" in said
    assert "broken: The file is broken." in said
    rows = [line.split() for line in said.splitlines()]
    assert ["self-attention", "8", "4.14", "50%", "33%"] in rows


def test_without_a_terminal_progress_is_a_few_plain_lines(ours):
    shown = (ours / "progress").read_text(encoding="utf-8")
    assert "6 of 6" in shown
    assert "\x1b" not in shown
    assert "\r" not in shown
    assert len(shown.splitlines()) <= 7


@pytest.fixture(scope="module")
def regraded(plain, ours, tmp_path_factory) -> tuple[Path, Path, str]:
    """Plain's class and ours, of which two were graded again, and what ours said.

    Meanwhile one had been given points by hand, and one had points that the catalogue of then had given by mistake.
    """
    folders = [
        graded_class.twin(tmp_path_factory.mktemp(name) / "course", of) for name, of in (("p", plain), ("o", ours))
    ]
    for folder in folders:
        with gradebook(folder) as book:
            given = book.find_grade(CHECKS[1], ASSIGNMENT.notebook, ASSIGNMENT.id, "no-scaling")
            given.manual_score, given.needs_manual_grade = 5.5, False
            book.find_grade(CHECKS[0], ASSIGNMENT.notebook, ASSIGNMENT.id, "perfect").auto_score = 1.0
            book.db.commit()
    (path,) = (folders[1] / "classroom" / "log" / "grade" / ASSIGNMENT.id).glob("*.jsonl")
    start, *rest = path.read_text(encoding="utf-8").splitlines()
    start = json.loads(start)
    start["versions"]["the catalogue (ch05_self_attention)"] = "as it was before it was put right"
    path.write_text("\n".join([json.dumps(start), *rest]) + "\n", encoding="utf-8")
    done = sample_class.nbgrader(folders[0], "autograde", ASSIGNMENT.id, "--student=[np]*", "--force")
    assert done.returncode == 0, done.stdout
    done = grade(folders[1], "--student", "no-*", "--student", "perfect", "--force", "--workers", "1")
    assert done.returncode == 0, done.stderr
    return *folders, done.stdout


def test_points_given_by_hand_survive_a_regrade_as_in_nbgrader(regraded):
    theirs, ours, said = regraded
    assert contents(ours) == contents(theirs)
    automatic, manual, _, waits = contents(ours)[f"no-scaling {CHECKS[1]}"]
    assert (manual, waits) == (5.5, True)
    assert automatic != manual
    assert "wait for a person: 1\n    no-scaling: 1 cell" in said


def test_a_regrade_tells_which_grades_changed_and_why(regraded):
    _, ours, said = regraded
    first = ASSIGNMENT.exercises[0]
    assert (
        f"grades changed by this regrade: 1\n    perfect, {first.id}: 1 -> {first.points:g} "
        "(the catalogue (ch05_self_attention) changed"
    ) in said
    changes = {event["student"]: event["changes"] for event in of(logs(ours)[-1], "graded")}
    assert changes["no-scaling"] == []
    ((cell, before, after, why),) = changes["perfect"]
    assert (cell, before, after) == (CHECKS[0], 1.0, first.points)
    assert why.startswith("the catalogue (ch05_self_attention) changed")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--student", "nobody"], "There are no submissions that match nobody"),
        (["--workers", "0"], "expected at least 1, got 0"),
        (["--resume", "--force"], "not allowed with argument"),
        (["--resume", "--student", "blank"], "--student cannot choose others"),
    ],
)
def test_wrong_use_is_named(ungraded, arguments, words):
    done = grade(ungraded, *arguments)
    assert done.returncode == 2
    assert words in done.stderr
    assert not (ungraded / "classroom" / "autograded").exists()


def test_an_assignment_that_was_never_released_is_named(ungraded):
    done = grade(ungraded, assignment="06_nothing")
    assert done.returncode == 2
    assert "nbgrader generate_assignment 06_nothing" in done.stderr
    assert ASSIGNMENT.id in done.stderr


def test_two_runs_at_once_are_refused(ungraded):
    from autograder.course import CourseError
    from autograder.grade.journal import OneWriter

    with OneWriter(ungraded), pytest.raises(CourseError, match="graded already, by another"), OneWriter(ungraded):
        pass


def test_where_nothing_can_isolate_grading_is_refused_with_the_way_out(ungraded, tmp_path, monkeypatch):
    folder = graded_class.twin(tmp_path / "course", ungraded)
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent))
    monkeypatch.setenv("ATTENTION_BY_HAND_SANDBOX", "docker")
    done = grade(folder, "--student", "blank")
    assert done.returncode == 2
    assert "--trust-submissions" in done.stderr
    assert not (folder / "classroom" / "autograded").exists()


# --- killed and resumed ----------------------------------------------------------------------------------------------

KILL = """
import contextlib, os, pickle, signal, sys
from pathlib import Path
import autograder.grade.run as run
from autograder.grade import gradebook, journal, workers
from nbgrader.preprocessors import AssignLatePenalties, SaveAutoGrades

results, assignment, points = pickle.loads(Path(sys.argv[1]).read_bytes()), sys.argv[2], sys.argv[3:]

class Pool:
    def __init__(self, batch, size, fork_server): pass
    def __enter__(self): return self
    def __exit__(self, *_): pass
    def grade(self, submissions): return (results[each.student] for each in submissions)

def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)

def after(owner, name, times=1):
    real, left = getattr(owner, name), [times]
    def wrapped(*arguments, **named):
        value = real(*arguments, **named)
        left[0] -= 1
        return die() if not left[0] else value
    setattr(owner, name, wrapped)

def torn(owner, name):
    real = owner.write
    def wrapped(self, event, **facts):
        if event != "graded":
            return real(self, event, **facts)
        self._file.write(b'{"event": "gra')
        self._file.flush()
        die()
    owner.write = wrapped

AT = {
    "start": lambda: after(journal.Journals, "new"),
    "writing": lambda: after(journal.Journal, "write", 2),
    "student": lambda: after(gradebook._StepsAfterRun, "init_assignment"),
    "half the scores": lambda: after(SaveAutoGrades, "_add_score", 3),
    "scores": lambda: after(SaveAutoGrades, "preprocess"),
    "penalty": lambda: after(AssignLatePenalties, "preprocess"),
    "notebook": lambda: after(gradebook._StepsAfterRun, "write_single_notebook"),
    "recorded": lambda: after(gradebook.Classroom, "record"),
    "torn line": lambda: torn(journal.Journal, "write"),
    "all but the end": lambda: setattr(run, "_end", die),
    "never": lambda: None,
}
workers.Pool, workers.ForkServer = Pool, lambda environment, assignment: contextlib.nullcontext()
for number, point in enumerate(points):
    child = os.fork()  # the imports are made once
    if not child:
        AT[point]()
        os._exit(run.grade(Path.cwd(), assignment, run.Options(resume=number > 0)))
    status = os.waitpid(child, 0)[1]
    wanted = 0 if point == "never" else signal.SIGKILL
    assert status == wanted, (point, status)
    print(point, flush=True)
"""
POINTS = [
    *("start", "writing", "student", "half the scores", "scores", "penalty", "notebook", "recorded", "torn line"),
    *("all but the end", "never"),
]


@pytest.mark.xdist_group("grade-faults")
def test_a_run_killed_at_any_moment_goes_on_without_losing_or_repeating_a_grade(ungraded, ours, results, tmp_path):
    folder = graded_class.twin(tmp_path / "course", ungraded)
    for student in NAMES:  # as the intake leaves it
        shutil.copytree(ours / "classroom" / "received" / student, folder / "classroom" / "received" / student)
    (tmp_path / "results").write_bytes(pickle.dumps(results))
    done = subprocess.run(
        [sys.executable, "-c", KILL, str(tmp_path / "results"), ASSIGNMENT.id, *POINTS],
        cwd=folder,
        text=True,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert contents(folder) == contents(ours)
    assert files(folder) == files(ours)
    (events,) = logs(folder)
    assert sorted(event["student"] for event in of(events, "graded")) == list(NAMES)
    assert len(of(events, "resume")) == len(POINTS) - 1


@pytest.mark.xdist_group("grade-faults")
def test_after_kill_9_no_process_is_left_and_the_rest_is_graded(ungraded, ours, tmp_path):
    folder = graded_class.twin(tmp_path / "course", ungraded)
    running = subprocess.Popen(
        [sys.executable, "-m", "autograder", "grade", ASSIGNMENT.id, "--workers", "1"],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    while not (logs(folder) and of(logs(folder)[0], "graded")):
        assert running.poll() is None
        time.sleep(0.02)
    started = psutil.Process(running.pid).children(recursive=True)
    assert started
    running.kill()
    running.wait()
    _, alive = psutil.wait_procs(started, timeout=60)
    assert alive == []
    before = len(of(logs(folder)[0], "graded"))
    done = grade(folder, "--resume", "--workers", "1")
    assert done.returncode == 0, done.stderr
    assert f"{6 - before} of 6 are left" in done.stdout
    assert contents(folder) == contents(ours)
    (events,) = logs(folder)
    assert sorted(event["student"] for event in of(events, "graded")) == list(NAMES)


# --- workers that die ------------------------------------------------------------------------------------------------

STAND_IN = """
import os, signal, sys
from multiprocessing.connection import Connection
from pathlib import Path
from autograder.grade import fork_server
from autograder.grade.messages import Result

def work(descriptor, folder):
    line = Connection(descriptor)
    batch = line.recv()
    while True:
        submission = line.recv()
        seen = Path(batch.assignment, submission.student)
        first = not seen.exists()
        seen.touch()
        if submission.student == "always" or submission.student == "once" and first:
            os.kill(os.getpid(), signal.SIGKILL)
        if submission.student == "raises":
            sys.exit("no space left on this machine")
        if submission.student == "refused":
            line.send("there is no sandbox here")
        if submission.student == "orphan" and first:
            os.kill(os.getppid(), signal.SIGKILL)
            os.kill(os.getpid(), signal.SIGKILL)
        failure = "the database was locked" if submission.student == "unlucky" and first else ""
        line.send(Result(submission.student, failure=failure))

fork_server.serve(int(sys.argv[1]), work)
"""


@pytest.fixture
def stand_in(monkeypatch, tmp_path):
    """Results of a pool of two whose workers do as the students' names say."""
    from autograder.grade.messages import Batch

    monkeypatch.setattr(fork_server, "PROGRAM", (sys.executable, "-c", STAND_IN))

    def graded(*students: str) -> dict[str, Result]:
        batch = Batch(str(tmp_path), b"", {}, b"", {})
        with fork_server.ForkServer({}) as born, pool.Pool(batch, 2, born) as workers:
            results = list(workers.grade(Submission(student, tmp_path) for student in students))
        assert sorted(result.student for result in results) == sorted(students)
        return {result.student: result for result in results}

    return graded


def test_a_submission_whose_worker_died_is_tried_once_more(stand_in):
    results = stand_in("ann", "once", "bob", "unlucky", "cem")
    assert {student: (result.failure, result.attempts) for student, result in results.items()} == {
        "ann": ("", 1),
        "bob": ("", 1),
        "cem": ("", 1),
        "once": ("", 2),
        "unlucky": ("", 2),
    }


def test_a_submission_that_kills_two_workers_is_a_failure_with_the_reason_and_the_rest_goes_on(stand_in):
    results = stand_in("always", "ann", "bob", "raises", "cem")
    assert results["always"].failure == "the worker was ended by SIGKILL, out of memory?"
    assert results["raises"].failure == "the worker ended with code 1: no space left on this machine"
    assert results["always"].attempts == results["raises"].attempts == 2
    assert [results[name].failure for name in ("ann", "bob", "cem")] == [""] * 3


def test_a_nursery_that_is_killed_costs_no_grade_and_the_workers_that_it_has_born_go_on(stand_in):
    results = stand_in("ann", "orphan", "bob", "once", "cem")
    assert {student: (result.failure, result.attempts) for student, result in results.items()} == {
        **dict.fromkeys(("ann", "bob", "cem"), ("", 1)),
        **dict.fromkeys(("orphan", "once"), ("", 2)),
    }


def test_a_fork_server_that_is_killed_before_it_replies_leaves_no_worker_on_the_next_one_s_line(
    stand_in, monkeypatch, tmp_path
):
    """The worker that it had forked would read half of what is meant for the next one, and both would wait forever."""
    killed = f"""
import os, signal
from pathlib import Path
from autograder.grade import fork_server

born = fork_server._born

def born_and_killed(*arguments):
    reply, flag = born(*arguments), Path({str(tmp_path / "killed")!r})
    if not flag.exists():
        flag.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return reply

fork_server._born = born_and_killed
"""
    monkeypatch.setattr(fork_server, "PROGRAM", (sys.executable, "-c", killed + STAND_IN))
    results = stand_in("ann", "bob", "cem")
    assert {student: (result.failure, result.attempts) for student, result in results.items()} == dict.fromkeys(
        ("ann", "bob", "cem"), ("", 1)
    )


def test_a_fork_server_that_never_starts_is_a_sentence_with_its_last_line(stand_in, monkeypatch):
    from autograder.course import CourseError

    monkeypatch.setattr(fork_server, "PROGRAM", (sys.executable, "-c", "raise SystemExit('no such module here')"))
    with pytest.raises(CourseError, match="No worker can be started .no such module here."):
        stand_in("ann")


def test_a_worker_that_can_grade_nobody_stops_the_run(stand_in):
    from autograder.course import CourseError

    with pytest.raises(CourseError, match="there is no sandbox here"):
        stand_in("refused", "ann")


def test_a_failure_is_in_the_log_and_the_summary_and_leaves_the_grade_as_it_was(copy, results, monkeypatch, capsys):
    from autograder.grade import run, workers

    class Failing:
        def __init__(self, batch, size, fork_server):
            pass

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def grade(self, submissions):
            for submission in submissions:
                yield Result(submission.student, failure="the worker was ended by SIGKILL", attempts=2)

    before, kept = contents(copy), files(copy)
    monkeypatch.setattr(workers, "Pool", Failing)
    assert run.grade(copy, ASSIGNMENT.id, run.Options(students=("perfect",), force=True)) == 1
    assert "not graded: 1\n    perfect: the worker was ended by SIGKILL" in capsys.readouterr().out
    assert [event["reason"] for event in of(logs(copy)[-1], "failed")] == ["the worker was ended by SIGKILL"]
    assert contents(copy) == before
    assert files(copy) == kept


def test_workers_are_given_the_assignment_s_cells_and_nothing_about_students(ours):
    batch = Classroom(ours, ASSIGNMENT.id).batch({})
    assert CHECKS[0].encode() in batch.gradebook
    everything = b"".join([batch.gradebook, batch.configuration, *batch.files.values()])
    for name in NAMES:
        assert f'"{name}"'.encode() not in everything
        assert f"\x00{name}\x00".encode() not in everything
    assert not any(name.startswith("solutions/") for name in batch.files)
