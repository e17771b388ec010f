"""The teacher's pages: every command they show exists, and the road of the first page is walked to its end."""

import argparse
import csv
import os
import re
import shlex
import shutil
import subprocess
import sys
import zipfile
from importlib import import_module
from pathlib import Path

import pytest
from nbgrader.apps import NbGraderApp
from nbgrader.exchange.default import Exchange

from autograder.__main__ import COMMANDS

ROOT = Path(__file__).resolve().parents[2]
PAGES = {path.stem: path.read_text(encoding="utf-8") for path in sorted((ROOT / "book" / "teach").glob("*.md"))}
sys.path.append(str(ROOT / "tests" / "grading"))  # where the sample class lives
import sample_class  # noqa: E402
from sample_class import ASSIGNMENT  # noqa: E402


def commands(page: str) -> list[str]:
    """The lines of a page's shell blocks, in order."""
    blocks = re.findall(r"^ *```bash\n(.*?)^ *```", PAGES[page], re.DOTALL | re.MULTILINE)
    lines = "\n".join(blocks).replace("\\\n", " ").splitlines()
    return [re.sub(r" +", " ", line.strip()) for line in lines if line.strip()]


ELSEWHERE = {"export", "pip", "ngshare-course-management"}  # commands of programs that are not installed here
OF_THE_HUB = {"JupyterHub.services", "JupyterHub.load_roles"}  # gone through by hand with JupyterHub 6.1
SHOWN = [(page, command) for page in PAGES for command in commands(page)]


@pytest.mark.parametrize(("page", "command"), SHOWN, ids=lambda value: value)
def test_every_command_shown_is_one_that_exists(page, command):
    words = shlex.split(command)
    if words[:3] == ["python", "-m", "autograder"]:
        module, _ = COMMANDS[words[3]]
        parser = argparse.ArgumentParser()
        import_module(f"autograder.{module}").add_arguments(parser)
        parser.parse_args(words[4:])
    elif words[0] == "nbgrader":
        assert words[1] in NbGraderApp.subcommands
    elif words[:2] == ["docker", "build"]:
        assert (ROOT / words[words.index("--file") + 1]).is_file()
    else:
        assert words[0] in ELSEWHERE


def test_every_setting_shown_is_one_that_nbgrader_or_this_course_has():
    ours = import_module("autograder.intake").Intake, import_module("autograder.feedback").FeedbackPage
    classes = [*NbGraderApp().all_configurable_classes(), Exchange, *ours]
    known = {f"{cls.__name__}.{trait}" for cls in classes for trait in cls.class_trait_names(config=True)}
    named = set(re.findall(r"\bc\.(\w+\.\w+)", "\n".join(PAGES.values())))
    assert len(named) >= 7
    assert named - known == OF_THE_HUB


def test_every_file_and_make_command_named_exists():
    text = "\n".join(PAGES.values())
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    assert set(re.findall(r"`make ([a-z-]+)`", text)) <= targets
    named = re.findall(r"`([\w-]+/[\w./-]*)`", text)
    places = [name for name in named if not name.startswith(("classroom/", "archive/"))]
    assert places and [name for name in places if not (ROOT / name).exists()] == []


@pytest.fixture(scope="module")
def walked(tmp_path_factory):
    """A course in which the first page's commands were run one after another: (folder, command -> what it said)."""
    folder = tmp_path_factory.mktemp("taught")
    sample_class.lay_out(folder)
    answers = sample_class.answers()
    with (folder / "roster.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(
            [
                ["id", "first_name", "last_name", "email"],
                ["501", "Ada", "Lovelace", "ada@uni.example"],
                ["502", "Bob", "O'Neill, Jr.", "bob@uni.example"],
            ]
        )
    with (folder / "gradebook.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(
            [
                ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", "Homework 5 (77)"],
                ["    Points Possible", "", "", "", "", "30.00"],
                ["Lovelace, Ada", "501", "u1", "ada", "Lab", ""],
                ["O'Neill, Jr., Bob", "502", "u2", "bob", "Lab", ""],
            ]
        )
    archive = folder / "classroom" / "downloaded" / ASSIGNMENT.id / "archive"
    archive.mkdir(parents=True)
    with zipfile.ZipFile(archive / "submissions.zip", "w") as zipped:
        for student, work in (("lovelaceada_501", "perfect"), ("oneillbob_502", "no-scaling")):
            notebook = sample_class.submit(folder, "elsewhere", answers[work])
            zipped.write(notebook, f"{student}_9{len(zipped.namelist())}_{notebook.name}")
    shutil.rmtree(folder / "classroom" / "submitted")
    return folder, {command: say(folder, command) for command in commands("index")}


def say(folder: Path, command: str) -> str:
    """Run one command of a page as a shell would, in a folder; what it printed, when it succeeded."""
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    environment["PATH"] = os.pathsep.join([os.path.dirname(sys.executable), environment["PATH"]])
    done = subprocess.run(["bash", "-c", command], cwd=folder, env=environment, text=True, capture_output=True)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout + done.stderr


@pytest.mark.slow
def test_the_road_of_the_first_page_ends_with_grades_in_canvas(walked):
    folder, said = walked
    exported = folder / "classroom" / "exports" / f"{ASSIGNMENT.id}-canvas.csv"
    rows = list(csv.reader(exported.open(encoding="utf-8")))
    assert {row[1]: row[-1] for row in rows[2:]} == {"501": "30", "502": "14"}
    assert "2 of 2 graded" in said[f"python -m autograder grade {ASSIGNMENT.id}"]


@pytest.mark.slow
def test_what_a_command_printed_is_what_the_page_shows_of_it(walked):
    """The lines of words that do not depend on the class or the machine."""
    _, said = walked
    shown = re.findall(r"^```text\n(.*?)^```", PAGES["index"], re.DOTALL | re.MULTILINE)
    doctor, grade = shown
    for line in doctor.splitlines():
        if line.startswith("✓") and ".venv" not in line and "packages" not in line:
            assert line[2:].split(":")[0] in said["python -m autograder doctor"], line
    printed = said[f"python -m autograder grade {ASSIGNMENT.id}"]
    for line in grade.splitlines():
        assert line.split()[0] in printed, line


@pytest.mark.slow
def test_the_exchange_hands_out_collects_and_gives_feedback_back(walked, tmp_path):
    folder, _ = walked
    (tmp_path / "exchange").mkdir(mode=0o777)
    (tmp_path / "exchange").chmod(0o777)
    setting = f'c.Exchange.root = "{tmp_path / "exchange"}"\n'
    with (folder / "nbgrader_config.py").open("a", encoding="utf-8") as file:
        file.write(setting + "c.Intake.trust_timestamps = True\n")
    release, collect, feedback = (command for command in commands("hub") if command.startswith("nbgrader"))
    say(folder, release)

    student = tmp_path / "student"
    student.mkdir()
    cache = f'c.Exchange.cache = "{tmp_path / "cache"}"\n'
    course_id = 'c.CourseDirectory.course_id = "attention-by-hand"\n'
    (student / "nbgrader_config.py").write_text(f"c = get_config()\n{setting}{cache}{course_id}", encoding="utf-8")
    say(student, f"nbgrader fetch_assignment {ASSIGNMENT.id}")
    say(student, f"nbgrader submit {ASSIGNMENT.id}")

    say(folder, collect)
    (collected,) = [path for path in (folder / "classroom" / "submitted").iterdir() if path.name not in ("501", "502")]
    assert (collected / ASSIGNMENT.id / f"{ASSIGNMENT.notebook}.ipynb").is_file()
    say(folder, f"nbgrader autograde {ASSIGNMENT.id} --student={collected.name}")
    say(folder, f"nbgrader generate_feedback {ASSIGNMENT.id} --student={collected.name}")
    for student in ("501", "502"):  # their work came as a zip, for which nbgrader's exchange has no way back
        shutil.rmtree(folder / "classroom" / "feedback" / student, ignore_errors=True)
    say(folder, feedback)
    assert list((tmp_path / "exchange").rglob("*.html"))
