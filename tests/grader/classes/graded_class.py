"""A small class for the tests of `grade`: laid out twice, once for plain nbgrader, once for us, equal to the last
byte."""

import contextlib
import io
import json
import os
import secrets
import shutil
import subprocess
from pathlib import Path
from typing import Any

from nbgrader.api import Gradebook

from autograder.__main__ import main as autograder
from autograder.prepare import sample_class
from autograder.prepare.sample_class import ASSIGNMENT

NAMES = ("blank", "broken", "einsum", "no-scaling", "one-cell-raises", "perfect")
LATE = 'c.LateSubmissionPlugin.penalty_method = "zero"\nc.Intake.trust_timestamps = True\n'


def lay_out(folder: Path, released: Path) -> None:
    """A twin of the released course with six submissions, one of them broken and one of them late."""
    twin(folder, released)
    with (folder / "nbgrader_config.py").open("a", encoding="utf-8") as file:
        file.write(LATE)
    answers = sample_class.answers()
    for name in NAMES:
        path = sample_class.submit(folder, name, answers.get(name, answers["perfect"]))
        day = "03" if name == "einsum" else "01"
        (path.parent / "timestamp.txt").write_text(f"2026-03-{day} 12:00:00 UTC", encoding="utf-8")
        if name == "broken":
            path.write_bytes(path.read_bytes()[:9000])
    (folder / "classroom" / "secret").write_bytes(secrets.token_bytes(32))
    with gradebook(folder) as book:
        book.update_or_create_assignment(ASSIGNMENT.id, duedate="2026-03-02 12:00:00 UTC")


def twin(folder: Path, of: Path) -> Path:
    """The same course in another folder."""
    shutil.copytree(of, folder)
    return folder


def grade(folder: Path, *arguments: str, assignment: str = ASSIGNMENT.id) -> subprocess.CompletedProcess:
    """Run `python -m autograder grade` in this process; returns its exit code and output.

    One worker, unless `arguments` names a number, since each starts a sandbox that imports torch.
    """
    if "--workers" not in arguments:
        arguments = (*arguments, "--workers", "1")
    said, shown, before = io.StringIO(), io.StringIO(), os.getcwd()
    os.chdir(folder)
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(shown):
            code = autograder(["grade", assignment, *arguments])
    except SystemExit as wrong_use:
        code = wrong_use.code
    finally:
        os.chdir(before)
    return subprocess.CompletedProcess(arguments, code, said.getvalue(), shown.getvalue())


def gradebook(folder: Path) -> Gradebook:
    return Gradebook(f"sqlite:///{folder / 'classroom' / 'gradebook.db'}", "attention-by-hand")


def contents(folder: Path) -> dict[str, Any]:
    """All data of a gradebook about the class."""
    found: dict[str, Any] = {}
    with gradebook(folder) as book:
        for submission in book.assignment_submissions(ASSIGNMENT.id):
            student = submission.student.id
            found[student] = (
                submission.timestamp,
                submission.score,
                submission.max_score,
                submission.total_seconds_late,
            )
            for notebook in submission.notebooks:
                found[f"{student} penalty"] = notebook.late_submission_penalty
                for grade in notebook.grades:
                    points = (grade.auto_score, grade.manual_score, grade.extra_credit, grade.needs_manual_grade)
                    found[f"{student} {grade.name}"] = points
                for comment in notebook.comments:
                    found[f"{student} {comment.name} comment"] = (comment.auto_comment, comment.manual_comment)
    return found


def files(folder: Path, step: str = "autograded") -> dict[str, tuple[int, Any]]:
    """Path -> (mode, content) of each graded file; without the times at which cells ran."""
    found = {}
    for path in sorted((folder / "classroom" / step).rglob("*")):
        if path.is_file():
            content: Any = path.read_bytes()
            if path.suffix == ".ipynb":
                content = json.loads(content)
                for cell in content["cells"]:
                    cell["metadata"].pop("execution", None)
            found[str(path.relative_to(folder))] = (path.stat().st_mode, content)
    return found


def logs(folder: Path) -> list[list[dict[str, Any]]]:
    """The events of each run, oldest run first."""
    paths = sorted((folder / "classroom" / "log" / "grade" / ASSIGNMENT.id).glob("*.jsonl"))
    return [[json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] for path in paths]


def of(events: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    """The events of one kind."""
    return [event for event in events if event["event"] == kind]
