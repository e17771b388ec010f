"""Whole classes graded once by nbgrader's own commands; the tests read what came out."""

import signal
import subprocess
import sys
from pathlib import Path

import graded_class
import pytest
from graded_course import Graded
from warm import Warm

from autograder.catalogue.exercise import Assignment
from autograder.grade import fork_server
from autograder.notebook import progress_store
from autograder.prepare import sample_class
from autograder.prepare.sample_class import ASSIGNMENT

SECRET = bytes(range(32))  # of every class here, so that each run asks the same questions


@pytest.fixture(scope="session", autouse=True)
def sandbox_or_trust():
    """Only the tests of attacks and of the sandboxes themselves need isolation; they skip where there is none."""
    sample_class.trust_where_nothing_isolates()


@pytest.fixture(scope="session", autouse=True)
def forked_from_a_warm_process():
    """nbgrader's commands and the workers of gradings find their imports made; `warm` says why."""
    warm, spawned, program = Warm(), fork_server.ForkServer._spawned, fork_server.PROGRAM
    ours = pytest.MonkeyPatch()
    ours.setattr(sample_class, "nbgrader", warm.nbgrader)
    ours.setattr(
        fork_server.ForkServer,
        "_spawned",
        lambda one, line: (warm.spawned if fork_server.PROGRAM is program else spawned)(one, line),
    )
    yield
    ours.undo()


@pytest.fixture(autouse=True)
def what_checks_earn_here_is_not_remembered(tmp_path, monkeypatch):
    """A check that runs in the repository itself would leave what it earned for the next test, and for the next run."""
    place = progress_store.place
    here = sample_class.ROOT
    monkeypatch.setattr(
        progress_store, "place", lambda start=None: place(start) if start or Path.cwd() != here else tmp_path
    )


@pytest.fixture(autouse=True)
def signals_are_heard():
    """A shell lets what it starts in the background ignore Ctrl-C, and nohup the end of a terminal; tests send both."""
    defaults = {
        signal.SIGINT: signal.default_int_handler,
        signal.SIGHUP: signal.SIG_DFL,
        signal.SIGTERM: signal.SIG_DFL,
    }
    before = {number: signal.getsignal(number) for number in defaults}
    for number, default in defaults.items():
        if before[number] == signal.SIG_IGN:
            signal.signal(number, default)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture(scope="session")
def empty_course(released, tmp_path_factory):
    """Makes a course with one released assignment and nobody's work yet; its secret, and so all inputs, are the
    same."""

    def make(name: str, assignment: Assignment = ASSIGNMENT) -> Graded:
        folder = graded_class.twin(tmp_path_factory.mktemp(name) / "course", released(assignment))
        (folder / "classroom").mkdir(exist_ok=True)
        (folder / "classroom" / "secret").write_bytes(SECRET)
        return Graded(folder, assignment)

    return make


@pytest.fixture(scope="session")
def ungraded(once, released) -> Path:
    """The small class of `graded_class`, handed in; a test that changes it makes a twin."""
    return once("ungraded", lambda folder: graded_class.lay_out(folder / "course", released())) / "course"


@pytest.fixture(scope="session")
def plain(once, ungraded) -> Path:
    """The class after `nbgrader autograde`."""

    def make(folder: Path) -> None:
        course = graded_class.twin(folder / "course", ungraded)
        done = sample_class.nbgrader(course, "autograde", ASSIGNMENT.id)
        assert done.returncode == 0, done.stdout

    return once("plain", make) / "course"


@pytest.fixture(scope="session")
def ours(once, ungraded) -> Path:
    """The class after `python -m autograder grade`, with what that printed in the files "said" and "progress"."""

    def make(folder: Path) -> None:
        course = graded_class.twin(folder / "course", ungraded)
        command = [sys.executable, "-m", "autograder", "grade", ASSIGNMENT.id, "--workers", "2"]
        done = subprocess.run(command, cwd=course, text=True, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr
        (course / "said").write_text(done.stdout, encoding="utf-8")
        (course / "progress").write_text(done.stderr, encoding="utf-8")

    return once("ours", make) / "course"
