"""The shell blocks of the teacher's pages, run one after another as a teacher would type them.

A new block is walked by itself. A comment of MyST's right above a block says what is special about it:

    % not walked: REASON        it needs a program, a network or a person that a test does not have
    % on another machine        it runs in a course just set up elsewhere, to which CARRIED was brought
    % next year                 it runs in a copy, since what comes after still needs this year's class

A Python block below a paragraph that ends in "into `answer.py`:" is written into that file. Before work is collected or
graded for the first time, the class hands it in.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

from warm import Warm

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "book" / "teach"
CARRIED = "class.tar.gz"
FENCE = re.compile(r"^(?P<indent> *)```(?P<kind>\w+)\n(?P<body>.*?)^ *```$", re.DOTALL | re.MULTILINE)
COMMENT = re.compile(r"^ *% *(.+)\n\Z", re.MULTILINE)
INTO = re.compile(r"into\s+`([\w./]+)`:\s*\Z")
NOT_WALKED, ELSEWHERE, NEXT_YEAR = "not walked:", "on another machine", "next year"
AUTOGRADER = ["python", "-m", "autograder"]
PLACES = ("", ELSEWHERE, NEXT_YEAR)

NAMES = {"501": "Ada Lovelace", "502": "Bob O'Neill, Jr."}
WRONG = "def center_rows(x):\n    return x - x.mean()\n"  # Bob's submission, where a page needs one


@dataclass(frozen=True)
class Block:
    """One block of a page. place: the folder where it is run; why_not: why it is not run; into: the file it is written
    into."""

    page: str
    kind: str
    body: str
    place: str = ""
    why_not: str = ""
    into: str = ""

    @property
    def commands(self) -> list[str]:
        """The commands of a shell block, each on one line."""
        if self.kind != "bash":
            return []
        lines = self.body.replace("\\\n", " ").splitlines()
        return [re.sub(r" +", " ", line.strip()) for line in lines if line.strip()]


def pages() -> list[str]:
    """The names of the teacher's pages, in the order of the table of contents."""
    listed = re.findall(r"file: teach/(\w+)", (ROOT / "_toc.yml").read_text(encoding="utf-8"))
    assert sorted(listed) == sorted(path.stem for path in FOLDER.glob("*.md"))
    return listed


def blocks(page: str, text: str) -> list[Block]:
    """All fenced blocks of a page. Raises ValueError for a comment above one that says nothing known."""
    found = []
    for match in FENCE.finditer(text):
        before = text[: match.start()]
        comment = COMMENT.search(before)
        said = comment[1].strip() if comment else ""
        if not said.startswith(NOT_WALKED) and said not in PLACES:
            wanted = ", ".join(filter(None, (*PLACES, f"{NOT_WALKED} ...")))
            raise ValueError(f"{page}: a comment above a block: expected one of {wanted}, got {said!r}")
        why_not = said.removeprefix(NOT_WALKED).strip() if said.startswith(NOT_WALKED) else ""
        into = INTO.search(before) if match["kind"] == "python" else None
        place = "" if why_not else said
        found.append(Block(page, match["kind"], match["body"], place, why_not, into[1] if into else ""))
    return found


def all_blocks() -> list[Block]:
    """The blocks of all pages, in order."""
    return [block for page in pages() for block in blocks(page, (FOLDER / f"{page}.md").read_text(encoding="utf-8"))]


class Commands:
    """Runs a shell's commands: those of nbgrader and of ours in forks of a warm process, anything else in bash."""

    def __init__(self) -> None:
        path = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])
        self._environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "PATH": path}
        self._warm = Warm()

    def say(self, folder: Path, command: str) -> str:
        """Run one command in a folder and return what it printed. It must succeed; `try` may find a wrong answer."""
        words = shlex.split(command)
        if words[0] == "nbgrader" or words[:3] == AUTOGRADER:
            code, out, err = self._warm.command(folder, words, self._environment)
        else:
            done = subprocess.run(
                ["bash", "-c", command], cwd=folder, env=self._environment, text=True, capture_output=True
            )
            code, out, err = done.returncode, done.stdout, done.stderr
        assert code == 0 or (code == 1 and words[:4] == [*AUTOGRADER, "try"]), f"{command}\n{out}\n{err}"
        return out + err


class Walk:
    """A course in which the pages' commands are run. said: (page, command) -> its output."""

    def __init__(self, course: Path, commands: Commands) -> None:
        self.course, self.commands, self.said = course, commands, {}
        self._places = {"": course}

    def go(self, block: Block) -> None:
        """Execute one block."""
        if block.why_not:
            return
        if block.into:
            (self.course / block.into).write_text(block.body, encoding="utf-8")
        for command in block.commands:
            if command.startswith("export "):
                continue  # what it sets is set in every command here
            folder = self._place(block.place)
            words = shlex.split(command)
            if words[:4] == ["python", "-m", "autograder", "collect"]:
                hand_in_by_zip(folder, words[4:])
            elif words[:4] == ["python", "-m", "autograder", "grade"]:
                hand_in(folder, words[4])
            printed = self.commands.say(folder, command)
            self.said[block.page, command] = self.said.get((block.page, command), "") + printed

    def _place(self, name: str) -> Path:
        if name not in self._places:
            folder = self.course.parent / name.replace(" ", "_") / "course"
            if name == NEXT_YEAR:
                shutil.copytree(self.course, folder)
            else:
                set_up(folder)
                shutil.copy(self.course / CARRIED, folder)
            self._places[name] = folder
        return self._places[name]


def set_up(folder: Path) -> None:
    """A course as after `git clone`, without submissions."""
    folder.mkdir(parents=True)
    shutil.copy(ROOT / "nbgrader_config.py", folder)
    for step in ("solutions", "exercises"):
        shutil.copytree(ROOT / step, folder / step, ignore=shutil.ignore_patterns("own_*", ".ipynb_checkpoints"))


def hand_in(folder: Path, assignment: str) -> None:
    """Put the class's submissions where they are graded, unless there are some already."""
    if not list((folder / "classroom" / "submitted").glob(f"*/{assignment}")):
        for student, notebook in work(folder, assignment).items():
            path = folder / "classroom" / "submitted" / student / assignment / f"{name_of(folder, assignment)}.ipynb"
            path.parent.mkdir(parents=True)
            path.write_text(json.dumps(notebook), encoding="utf-8")


def hand_in_by_zip(folder: Path, arguments: list[str]) -> None:
    """Put a download of Moodle or Canvas where it is collected. arguments: those of `collect`."""
    assignment = arguments[0]
    name = f"{name_of(folder, assignment)}.ipynb"
    named = [folder / argument for argument in arguments[1:] if argument.endswith(".zip")]
    path = named[0] if named else folder / "classroom" / "downloaded" / assignment / "archive" / "submissions.zip"
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as zipped:
        for place, (student, notebook) in enumerate(work(folder, assignment).items()):
            if "grades.csv" in arguments:  # Moodle's worksheet
                inside = f"{NAMES[student]}_{11 + place}_assignsubmission_file/{name}"
            else:
                inside = f"student{student}_{student}_9{place}_{name}"
            zipped.writestr(inside, json.dumps(notebook))


def work(folder: Path, assignment: str) -> dict[str, dict]:
    """Student -> notebook. 501 answers all as the solution does, 502 nothing but the page's own wrong answer."""
    released, solved = (
        json.loads((folder / step / assignment / f"{name_of(folder, assignment)}.ipynb").read_text(encoding="utf-8"))
        for step in ("exercises", "solutions")
    )
    answers = {
        cell["id"]: re.sub(r"^ *### (BEGIN|END) SOLUTION\n?", "", "".join(cell["source"]), flags=re.MULTILINE)
        for cell in solved["cells"]
        if cell["metadata"].get("nbgrader", {}).get("solution")
    }
    return {"501": with_answers(released, answers), "502": with_answers(released, {"center-rows": WRONG})}


def with_answers(released: dict, answers: dict[str, str]) -> dict:
    """The released notebook with these cells answered."""
    notebook = json.loads(json.dumps(released))
    for cell in notebook["cells"]:
        cell["source"] = answers.get(cell["id"], cell["source"])
    return notebook


def name_of(folder: Path, assignment: str) -> str:
    """The name of an assignment's notebook."""
    (path,) = (folder / "exercises" / assignment).glob("*.ipynb")
    return path.stem
