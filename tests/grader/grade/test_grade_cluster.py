"""The same class on a Dask cluster of two worker processes, one of which is killed in the middle."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import graded_class
import psutil
import pytest
from graded_class import NAMES, contents, files, logs, of

from autograder.grade import cluster
from autograder.grade.messages import Submission
from autograder.prepare.sample_class import ASSIGNMENT

pytest.importorskip("distributed")
pytestmark = pytest.mark.xdist_group("grade-faults")  # shares the graded class with test_grade.py


@pytest.fixture
def dask(tmp_path):
    """Starts parts of a cluster and returns their processes; ends them all."""
    started: list[subprocess.Popen] = []

    def start(*arguments: str) -> subprocess.Popen:
        with (tmp_path / f"dask-{len(started)}").open("wb") as log:
            command = [sys.executable, "-m", "distributed.cli.dask_" + arguments[0], *arguments[1:], "--no-dashboard"]
            started.append(subprocess.Popen(command, cwd=tmp_path, stdout=log, stderr=log))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait()


def test_neither_a_killed_run_nor_a_killed_worker_costs_a_grade_and_neither_leaves_a_process(
    ungraded, plain, dask, tmp_path
):
    course = graded_class.twin(tmp_path / "course", ungraded)
    address, soon = tmp_path / "scheduler.json", tmp_path / "soon.py"
    soon.write_text("from autograder.grade import cluster\ncluster.IDLE_SECONDS = 2\n")
    dask("scheduler", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(address))
    one = ("--scheduler-file", str(address), "--nthreads", "1", "--no-nanny", "--host", "127.0.0.1")
    workers = [dask("worker", *one, "--preload", str(soon)) for _ in range(2)]

    def begun(*arguments: str) -> subprocess.Popen:
        """A run of which the next submission has been graded."""
        command = [sys.executable, "-m", "autograder", "grade", ASSIGNMENT.id, "--dask", _address(address), *arguments]
        before = len(_graded(course))
        running = subprocess.Popen(command, cwd=course, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        while len(_graded(course)) == before:
            assert running.poll() is None, running.stdout.read()
            time.sleep(0.02)
        return running

    def below(worker: subprocess.Popen) -> list[psutil.Process]:
        return psutil.Process(worker.pid).children(recursive=True)

    killed = begun()
    while not (started := [process for worker in workers for process in below(worker)]):
        time.sleep(0.02)
    killed.kill()
    killed.communicate()
    assert psutil.wait_procs(started, timeout=60)[1] == []
    assert all(worker.poll() is None for worker in workers)

    running = begun("--resume")
    while not (busy := next((worker for worker in workers if below(worker)), None)):
        assert running.poll() is None, running.stdout.read()
        time.sleep(0.02)
    orphans = below(busy)
    os.kill(busy.pid, signal.SIGKILL)
    said, _ = running.communicate()
    assert running.returncode == 0, said
    (events,) = logs(course)
    assert sorted(event["student"] for event in of(events, "graded")) == list(NAMES)
    assert of(events, "failed") == []
    assert contents(course) == contents(plain)
    assert files(course) == files(plain)
    assert psutil.wait_procs(orphans, timeout=60)[1] == []


def test_a_scheduler_that_does_not_answer_is_named(ungraded, tmp_path, monkeypatch):
    course = graded_class.twin(tmp_path / "course", ungraded)
    monkeypatch.setattr(cluster, "CONNECT_SECONDS", 1)
    from autograder.course import CourseError
    from autograder.grade import run

    with pytest.raises(CourseError, match="No Dask scheduler answers at 'tcp://127.0.0.1:1'"):
        run.grade(course, ASSIGNMENT.id, run.Options(force=True, scheduler="tcp://127.0.0.1:1"))


def test_what_travels_is_what_the_intake_reads_and_the_names_of_the_rest(tmp_path):
    folder = tmp_path / "work" / ASSIGNMENT.id
    (folder / "more").mkdir(parents=True)
    (folder / "self_attention (1).ipynb").write_bytes(b"\x00 anything")
    (folder / "data.csv").write_bytes(b"1,2")
    (folder / "more" / "film.mp4").write_bytes(bytes(10_000_000))
    (folder / "link").symlink_to("/etc/passwd")
    archive = cluster.pack(folder, replace(ASSIGNMENT, files=("data.csv",)))
    assert len(archive) < 1000
    there = Submission("ann", folder, archive).unpacked(tmp_path / "elsewhere")
    assert there.name == folder.name
    found = {str(path.relative_to(there)): path.read_bytes() for path in there.rglob("*") if path.is_file()}
    assert found == {"self_attention (1).ipynb": b"\x00 anything", "data.csv": b"1,2", "more/film.mp4": b""}


def _graded(course: Path) -> list[dict]:
    return [event for events in logs(course) for event in of(events, "graded")]


def _address(file: Path) -> str:
    import json

    while True:
        try:
            return json.loads(file.read_text(encoding="utf-8"))["address"]
        except (FileNotFoundError, json.JSONDecodeError):
            time.sleep(0.05)
