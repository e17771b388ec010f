"""The teacher's pages: every command they show exists, and all that can be run here is run in order."""

import argparse
import csv
import json
import pkgutil
import re
import shlex
import shutil
from importlib import import_module
from itertools import pairwise
from pathlib import Path

import pytest
import walk
from nbgrader.apps import NbGraderApp
from nbgrader.exchange.default import Exchange

from autograder import catalogue
from autograder.__main__ import COMMANDS
from autograder.prepare import doctor
from autograder.prepare.sample_class import ASSIGNMENT
from autograder.reports import results

ROOT = Path(__file__).resolve().parents[2]
PAGES = {path.stem: path.read_text(encoding="utf-8") for path in sorted((ROOT / "book" / "teach").glob("*.md"))}

BLOCKS = walk.all_blocks()
PROGRAMS = {"mv", "tar", "export"}  # of every system, or of the shell
# What an unwalked block may need.
NOT_HERE = {"cd", "docker", "export", "git", "jupyter", "make", "ngshare-course-management", "pip"}
OF_THE_HUB = {"JupyterHub.services", "JupyterHub.load_roles"}  # gone through by hand with JupyterHub 6.1
MADE_LATER = (  # named on a page, and made by a command or by a class
    "feedback/",
    *("classroom/", "archive/", "submitted/", "collected/", "unmatched/", "received/", "autograded/"),
    *("receipts/", "verdicts/", "log/", "replaced/"),
    *("own/", "solutions/own_", "exercises/own_", "build/"),
)
SHOWN = [(block, command) for block in BLOCKS for command in block.commands]


def test_every_block_that_is_not_walked_says_why_and_needs_something_that_is_not_here():
    for block in BLOCKS:
        if block.why_not:
            assert block.kind == "bash"
            of_others = [command for command in block.commands if shlex.split(command)[0] in NOT_HERE]
            assert of_others or "which the tests try apart" in block.why_not, block.body


def test_a_comment_above_a_block_that_says_nothing_known_is_refused():
    with pytest.raises(ValueError, match="not walkd"):
        walk.blocks("page", "% not walkd: a slip\n```bash\nls\n```\n")


def test_a_block_is_found_with_what_is_said_above_it():
    text = "Put it into `a.py`:\n\n```python\nx\n```\n"
    text += "\n1. Then\n\n   % next year\n   ```bash\n   mv a \\\n     b\n   ```\n"
    python, bash = walk.blocks("page", text)
    assert (python.into, python.body, python.commands) == ("a.py", "x\n", [])
    assert (bash.place, bash.commands) == ("next year", ["mv a b"])


@pytest.mark.parametrize(("block", "command"), SHOWN, ids=[f"{block.page}-{command}" for block, command in SHOWN])
def test_every_command_shown_is_one_that_exists(block, command):
    words = shlex.split(command)
    if words[:3] == ["python", "-m", "autograder"]:
        module, _ = COMMANDS[words[3]]
        parser = argparse.ArgumentParser()
        import_module(f"autograder.{module}").add_arguments(parser)
        parser.parse_args(words[4:])
    elif words[:2] == ["python", "-m"] and words[2].startswith("book."):
        assert callable(import_module(words[2]).main)
    elif words[0] == "nbgrader":
        assert words[1] in NbGraderApp.subcommands
    elif words[:2] == ["docker", "build"]:
        assert (ROOT / words[words.index("--file") + 1]).is_file()
    elif words[:3] != ["python", "-m", "pytest"]:
        assert words[0] in (NOT_HERE if block.why_not else PROGRAMS)


def test_every_setting_shown_is_one_that_nbgrader_or_this_course_has():
    ours = ["intake.take_in.Intake", "reports.feedback.FeedbackPage"]
    ours += [
        "policy.course_time.CourseTime",
        "policy.late.LateRules",
        "grade.execute.JudgedExecute",
        "prepare.hand_out.HandOut",
    ]
    ours = [pkgutil.resolve_name(f"autograder.{name}") for name in ours]
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
    places = [name for name in named if not name.startswith(MADE_LATER)]
    assert places and [name for name in places if not (ROOT / name).exists()] == []


FILES = {  # what a teacher brings along
    "roster.csv": [
        ["id", "first_name", "last_name", "email"],
        ["501", "Ada", "Lovelace", "ada@uni.example"],
        ["502", "Bob", "O'Neill, Jr.", "bob@uni.example"],
    ],
    "grades.csv": [
        [
            *("Identifier", "Full name", "Email address", "Status", "Grade", "Maximum Grade", "Grade can be changed"),
            *("Last modified (submission)", "Last modified (grade)", "Feedback comments"),
        ],
        ["Participant 11", "Ada Lovelace", "ada@uni.example", "Submitted", "", "30.00", "Yes", "-", "-", ""],
        ["Participant 12", "Bob O'Neill, Jr.", "bob@uni.example", "Submitted", "", "30.00", "Yes", "-", "-", ""],
    ],
    "gradebook.csv": [
        ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", "Homework 5 (77)"],
        ["    Points Possible", "", "", "", "", "30.00"],
        ["Lovelace, Ada", "501", "u1", "ada", "Lab", ""],
        ["O'Neill, Jr., Bob", "502", "u2", "bob", "Lab", ""],
    ],
}


@pytest.fixture(scope="module")
def walked(tmp_path_factory):
    """A walk through all pages, block after block."""
    walker = walk.Walk(tmp_path_factory.mktemp("taught") / "course", walk.Commands())
    walk.set_up(walker.course)
    for name, rows in FILES.items():
        with (walker.course / name).open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows(rows)
    for block in BLOCKS:
        walker.go(block)
    yield walker


@pytest.mark.slow
@pytest.mark.xdist_group("walk")
def test_the_road_of_the_first_page_ends_with_grades_in_canvas(walked):
    exported = walked.course / "classroom" / "exports" / f"{ASSIGNMENT.id}-canvas.csv"
    rows = list(csv.reader(exported.open(encoding="utf-8")))
    assert {row[1]: row[-1] for row in rows[2:]} == {"501": "30", "502": "0"}


@pytest.mark.slow
@pytest.mark.xdist_group("walk")
def test_what_a_command_printed_is_what_the_pages_show_of_it(walked):
    """Every line that does not depend on the machine is in the output of the block before it."""
    compared = 0
    for before, block in pairwise(BLOCKS):
        if block.kind == "text" and before.kind == "bash" and not before.why_not:
            said = "\n".join(walked.said.get((before.page, command), "") for command in before.commands)
            for line in block.body.splitlines():
                if not line.strip() or any(part in line for part in OF_THE_MACHINE):
                    continue
                compared += 1
                wanted = line.partition(":")[0] if line.startswith(("✓", "  log")) else line.split()[0]
                assert (wanted if before.page == "index" else line.strip()) in said, (before.body, line)
    assert compared > 15


OF_THE_MACHINE = (".venv", "packages: ", "gradebook: ", "secret: ", "names: ")


@pytest.mark.slow
@pytest.mark.xdist_group("walk")
def test_an_own_exercise_begun_by_the_page_is_graded_right_and_its_mistake_is_told(walked):
    records = (walked.course / "classroom" / "verdicts" / "own_week3.jsonl").read_text(encoding="utf-8").splitlines()
    own = [json.loads(line) for line in records if '"center-rows"' in line]
    assert {record["student"]: record["points"] for record in own} == {"501": 3, "502": 0}
    (page,) = (walked.course / "classroom" / "autograded" / "502" / "own_week3").glob("*.ipynb")
    assert "You took one mean of all numbers" in page.read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.xdist_group("walk")
def test_on_the_other_machine_nobody_is_graded_again_and_next_year_nobody_is_left(walked):
    moved, later = (walked.course.parent / place / "course" for place in ("on_another_machine", "next_year"))
    secrets = [(place / "classroom" / "secret").read_bytes() for place in (walked.course, moved)]
    assert secrets[0] == secrets[1]
    (again,) = [said for (_, command), said in walked.said.items() if command == AGAIN]
    assert "All 2 submissions are graded already" in again
    assert not (later / "classroom" / "secret").exists() and not (later / "classroom" / "submitted").exists()


AGAIN = f"python -m autograder grade {ASSIGNMENT.id}"


@pytest.mark.slow
@pytest.mark.xdist_group("walk")
def test_the_exchange_hands_out_collects_and_gives_feedback_back(walked, tmp_path):
    folder, say = walked.course, walked.commands.say
    (tmp_path / "exchange").mkdir(mode=0o777)
    (tmp_path / "exchange").chmod(0o777)
    setting = f'c.Exchange.root = "{tmp_path / "exchange"}"\n'
    with (folder / "nbgrader_config.py").open("a", encoding="utf-8") as file:
        file.write(setting + "c.Intake.trust_timestamps = True\n")
    walked_here = [
        block for block in BLOCKS if "exchange" in block.why_not and block.commands[0].startswith("nbgrader")
    ]
    (release, collect, feedback), (fetch,) = [block.commands for block in walked_here]
    say(folder, release)

    home = tmp_path / "student"
    home.mkdir()
    cache = f'c.Exchange.cache = "{tmp_path / "cache"}"\n'
    course_id = 'c.CourseDirectory.course_id = "attention-by-hand"\n'
    (home / "nbgrader_config.py").write_text(f"c = get_config()\n{setting}{cache}{course_id}", encoding="utf-8")
    say(home, f"nbgrader fetch_assignment {ASSIGNMENT.id}")
    say(home, f"nbgrader submit {ASSIGNMENT.id}")

    say(folder, collect)
    (collected,) = [path for path in (folder / "classroom" / "submitted").iterdir() if path.name not in ("501", "502")]
    assert (collected / ASSIGNMENT.id / f"{ASSIGNMENT.notebook}.ipynb").is_file()
    say(folder, f"nbgrader autograde {ASSIGNMENT.id} --student={collected.name}")
    say(folder, f"nbgrader generate_feedback {ASSIGNMENT.id} --student={collected.name}")
    for student in ("501", "502"):  # their work came as a zip, for which nbgrader's exchange has no way back
        shutil.rmtree(folder / "classroom" / "feedback" / student, ignore_errors=True)
    say(folder, feedback)
    assert list((tmp_path / "exchange").rglob("*.html"))
    say(home, fetch)
    assert list((home / ASSIGNMENT.id / "feedback").rglob(f"{ASSIGNMENT.notebook}.html"))


def test_what_the_doctor_says_on_the_page_is_what_it_says_to_a_new_course(tmp_path):
    walk.set_up(tmp_path / "course")
    shutil.rmtree(tmp_path / "course" / "classroom", ignore_errors=True)
    for assignment in catalogue.ASSIGNMENTS:
        shutil.copytree(
            ROOT / "exercises" / assignment.id, tmp_path / "course" / "exercises" / assignment.id, dirs_exist_ok=True
        )
    (shown,) = [text for text in re.findall(r"```text\n(.*?)```", PAGES["index"], re.DOTALL) if "can grade" in text]
    found = [
        *doctor.examine(tmp_path / "course"),
        doctor.try_sandbox(results.configuration(tmp_path / "course")),
    ]
    said = {finding.about: str(finding) for finding in found}
    lines = [line for line in shown.splitlines() if line.startswith("✓ ")]
    assert [line[2:].partition(":")[0] for line in lines] == [finding.about for finding in found]
    fixed = {
        "exercises",
        "time limits",
        "secret",
        "gradebook",
        "points",
        "students",
        "due dates",
        "late work",
        "a cell",
    }
    for about in fixed:
        assert said[about] in lines
