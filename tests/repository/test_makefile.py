"""The Makefile's commands: each parses, and tidying up never reaches a class's records or the environment."""

import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

TARGETS = [
    *(
        "help",
        "setup",
        "site",
        "release",
        "course",
        "learn",
        "serve",
        "quick",
        "test",
        "test-all",
        "test-oldest",
        "bench",
        "clean",
    )
]


def make(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs make in `folder`, free of what an outer make put in the environment."""
    from_make = ("MAKEFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "MFLAGS", "STEP", "TORCH_INDEX")
    environment = {name: value for name, value in os.environ.items() if name not in from_make}
    return subprocess.run(["make", *arguments], cwd=folder, capture_output=True, text=True, env=environment)


@pytest.mark.parametrize("target", TARGETS)
def test_a_dry_run_of_every_target_succeeds(root: Path, target: str) -> None:
    result = make(root, "-n", target)
    assert result.returncode == 0, result.stderr


def test_make_alone_names_every_command(root: Path) -> None:
    named = set(re.findall(r"^  make ([\w-]+)", make(root).stdout, flags=re.MULTILINE))
    assert named == set(TARGETS) - {"help"}


def test_clean_removes_build_and_keeps_classroom_and_environment(root: Path, tmp_path: Path) -> None:
    shutil.copy(root / "Makefile", tmp_path)
    kept = ["classroom/gradebook.db", "classroom/__pycache__/kept", ".venv/bin/python", "solutions/a.ipynb"]
    removed = ["build/site/index.html", "tests/__pycache__/a.pyc", "exercises/a/.ipynb_checkpoints/b.ipynb"]
    for name in kept + removed:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    make(tmp_path, "clean")
    assert [name for name in kept if not (tmp_path / name).exists()] == []
    assert [name for name in removed if (tmp_path / name).exists()] == []


def test_the_recipe_of_clean_does_not_name_classroom(root: Path) -> None:
    commands = make(root, "-n", "clean").stdout
    assert "build" in commands
    assert "classroom" not in commands.replace("never classroom", "")


def test_setup_does_again_only_what_a_changed_file_asks_for(root: Path, tmp_path: Path) -> None:
    """The stamps in order of age: a finished set-up runs no installer, a newer lock runs it again."""
    old = ["Makefile", "requirements.txt", "pyproject.toml", ".ci/install.py"]
    (tmp_path / ".ci").mkdir()
    for name in old:
        shutil.copy(root / name, tmp_path / name)
    (tmp_path / ".venv").mkdir()
    stamps = [".created", ".torch", ".requirements", ".ready"]
    for age, name in enumerate([*old, *(f".venv/{stamp}" for stamp in stamps)]):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (age, age))
    assert "install" not in make(tmp_path, "-n", "setup").stdout
    os.utime(tmp_path / "requirements.txt", (100, 100))
    assert "install.py -r requirements.txt" in make(tmp_path, "-n", "setup").stdout


def built(root: Path, folder: Path) -> None:
    """A course whose environment and book are newer than their sources."""
    (folder / ".ci").mkdir()
    made_of = ["Makefile", "requirements.txt", ".ci/install.py", "pyproject.toml", "_config.yml", "_toc.yml"]
    for number, name in enumerate(made_of):
        shutil.copy(root / name, folder / name)
        os.utime(folder / name, (number, number))
    (folder / "exercises" / "a").mkdir(parents=True)
    (folder / "exercises" / "a" / "b.ipynb").write_text("{}")
    (folder / ".venv" / "bin").mkdir(parents=True)
    for number, stamp in enumerate([".created", ".torch", ".requirements", ".ready"]):
        (folder / ".venv" / stamp).touch()
        os.utime(folder / ".venv" / stamp, (100 + number, 100 + number))
    make(folder, "build/.exercises")
    (folder / "build" / "site").mkdir()
    (folder / "build" / "site" / "index.html").touch()


def test_an_exercise_written_anew_with_the_same_content_builds_no_book(root: Path, tmp_path: Path) -> None:
    built(root, tmp_path)
    stamp, exercise = tmp_path / "build" / ".exercises", tmp_path / "exercises" / "a" / "b.ipynb"
    before = stamp.stat().st_mtime_ns
    os.utime(exercise)
    make(tmp_path, "build/.exercises")
    assert stamp.stat().st_mtime_ns == before
    exercise.write_text('{"cells": []}')
    make(tmp_path, "build/.exercises")
    assert stamp.stat().st_mtime_ns > before


FAKE = """#!/bin/bash
echo "$@" >> commands.txt
case "$*" in
  *.py*|*"-m transformer_ref train"*|*release*|*sample_class*) echo "  a line of $*"; echo "and a warning" >&2;;
esac
case "$*" in
  book/tools/build.py*) mkdir -p build/site; touch build/site/index.html;;
  "-m autograder release") [ ! -e edited ] || { sleep 0.5; echo '{}' > exercises/a/c.ipynb; }
    [ ! -e broken ] || { echo "the solution of attend is wrong"; exit 2; };;
  "-m autograder.prepare.sample_class"*) mkdir -p build/sample_class; touch build/sample_class/grades.csv;;
  "-m transformer_ref train"*) mkdir -p build/translator;;
  "-m transformer_ref translate"*) printf 'uno\\ndue\\ntre\\n';;
esac
"""
STEPS = {
    "1": "the environment is ready",
    "2": "a line of book/tools/build.py --zip --jobs",
    "3": "a line of -m autograder release",
    "4": "a line of -m autograder.prepare.sample_class build/sample_class",
    "5": "I closed the windows.  ->  uno",
    "6": "done in",
}


@pytest.fixture
def course(root: Path, tmp_path: Path) -> Path:
    """A folder, with a space in its path, in which the commands of the course are stubs."""
    folder = tmp_path / "my course"
    folder.mkdir()
    built(root, folder)
    shutil.rmtree(folder / "build")
    shutil.copy(root / "nbgrader_config.py", folder)
    (folder / ".venv" / "bin" / "python").write_text(FAKE)
    (folder / ".venv" / "bin" / "python").chmod(0o755)
    (folder / ".gitignore").write_text("build\n.venv\ncommands.txt\nbroken\nedited\n")
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b.example"]
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "all"]):
        subprocess.run([*git, *command], cwd=folder, check=True)
    return folder


@pytest.mark.parametrize("jobs", [[], ["-j4"], ["-kj3"]])
def test_the_course_says_of_each_line_which_step_it_is_of_and_warns_of_nothing(course: Path, jobs: list[str]) -> None:
    done = make(course, *jobs, "course")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    end = next(number for number, line in enumerate(lines) if line.startswith("[6/6]"))
    assert all(re.match(r"\[[1-6]/6\] ", line) for line in lines[:end])
    for step, words in STEPS.items():
        assert any(line.startswith(f"[{step}/6] ") and words in line for line in lines), (step, lines)
    assert [line for line in lines if "jobserver" in line or " -j" in line] == []


def test_a_second_run_of_the_course_finds_everything_done_and_says_so(course: Path) -> None:
    make(course, "course")
    (course / "commands.txt").unlink()
    done = make(course, "course")
    assert done.returncode == 0 and not (course / "commands.txt").exists()
    assert "[6/6] nothing has changed since the last run" in done.stdout
    assert "I closed the windows.  ->  uno" in done.stdout


def test_a_step_of_the_course_that_fails_says_why_and_the_next_run_does_what_is_left(course: Path) -> None:
    (course / "broken").touch()
    done = make(course, "course")
    assert done.returncode != 0 and "[6/6]" not in done.stdout
    assert "[3/6] the solution of attend is wrong" in done.stdout
    (course / "broken").unlink()
    (course / "commands.txt").unlink()
    done = make(course, "-k", "course")
    assert done.returncode == 0 and "[6/6] done in" in done.stdout
    assert "-m autograder release" in (course / "commands.txt").read_text().splitlines()


def test_the_course_does_not_write_over_exercises_that_somebody_changed(course: Path) -> None:
    (course / "exercises" / "a" / "b.ipynb").write_text('{"cells": [1]}')
    done = make(course, "course")
    assert done.returncode == 0
    assert "[3/6] exercises/ holds changes of yours and stays as it is" in done.stdout
    assert "release" not in (course / "commands.txt").read_text()


def test_a_book_whose_exercises_were_released_meanwhile_is_built_again(course: Path) -> None:
    (course / "edited").touch()
    lines = make(course, "course").stdout.splitlines()
    end = next(number for number, line in enumerate(lines) if line.startswith("[6/6]"))
    assert all(re.match(r"\[[1-6]/6\] ", line) for line in lines[:end])
    assert (course / "exercises" / "a" / "c.ipynb").exists()
    (course / "commands.txt").unlink()
    make(course, "site")
    assert not (course / "commands.txt").exists()


@pytest.mark.parametrize(
    ("number", "whole_group"), [(signal.SIGTERM, False), (signal.SIGHUP, True), (signal.SIGINT, True)]
)
def test_no_signal_leaves_a_server_of_serve_behind(
    root: Path, tmp_path: Path, number: signal.Signals, whole_group: bool
) -> None:
    """`kill` reaches only make; a closed terminal and Ctrl-C reach all that runs in it."""
    built(root, tmp_path)
    python = tmp_path / ".venv" / "bin" / "python"
    python.write_text(f"""#!/bin/bash
[ "$1" = -m ] || exec {shlex.quote(sys.executable)} "$@"
echo $$ > "$2.new"; mv "$2.new" "$2.pid"
exec sleep 600
""")
    python.chmod(0o755)
    ports = [f"{name}={free_port()}" for name in ("PORT", "JUPYTER_PORT")]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    with subprocess.Popen(
        ["make", "serve", *ports],
        cwd=tmp_path,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        start_new_session=True,
        preexec_fn=hear_signals,
    ) as serving:
        said = []
        for line in serving.stdout:
            said.append(line)
            if "Ctrl-C" in line:
                break
        files = [tmp_path / f"{name}.pid" for name in ("http.server", "jupyter")]
        while serving.poll() is None and not all(file.exists() for file in files):
            time.sleep(0.05)
        processes = [int(file.read_text()) for file in files]
        (os.killpg if whole_group else os.kill)(serving.pid, number)
    assert [process for process in processes if Path(f"/proc/{process}").exists()] == []
    assert "/login?next=%2Fformgrader%2Fmanage_assignments&token=" in "".join(said)


def hear_signals() -> None:
    """In the process to be started: the parent of the tests may ignore Ctrl-C, or the end of a terminal."""
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]
