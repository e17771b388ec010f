"""A class that is graded without running a notebook: real verdicts on catalogue answers, laid down where nbgrader does.

Much faster than nbgrader's own road, which test_sample_class takes; for what comes after grading.
"""

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import nbformat
from nbformat.v4 import new_markdown_cell, new_output
from nbgrader.api import Gradebook

from autograder import catalogue
from autograder.catalogue.exercise import Exercise
from autograder.diagnosis.alike import fingerprinted, is_compared
from autograder.diagnosis.explain import explain
from autograder.diagnosis.known_mistakes import namespace_of
from autograder.feedback.report import as_text
from autograder.feedback.verdict_log import as_record
from autograder.judging.judge import JudgingSession, draw_key
from autograder.judging.observe import LocalEndpoint
from autograder.judging.verdict import Verdict
from autograder.prepare import sample_class
from autograder.prepare.sample_class import ASSIGNMENT
from autograder.reports.results import NOTE_ID

SECRET = b"a classroom's secret"
SET_UP = "from transformer_ref.model.softmax import softmax\n"


@dataclass
class Work:
    """One student of the roster and their submission; `answers` replace the solution's. None: nothing came."""

    id: str
    first_name: str = ""
    last_name: str = ""
    email: str = ""
    answers: Mapping[str, str] | None = field(default_factory=dict)
    verdicts: Mapping[str, Verdict] = field(default_factory=dict)
    by_hand: Mapping[str, float] = field(default_factory=dict)
    comments: Mapping[str, str] = field(default_factory=dict)
    penalty: float = 0.0
    timestamp: datetime | None = None
    repaired: str = ""


def mistaken(exercise: str, name: str) -> dict[str, str]:
    """The catalogue's source of a misconception, as an answer."""
    known = catalogue.find(exercise).mistakes
    return {exercise: next(each.source for each in known if each.name == name)}


def lay_out(folder: Path, roster: list[Work], released: Path) -> None:
    """A copy of the released course, with a gradebook of these students and their graded notebooks."""
    shutil.copytree(released, folder)
    (folder / "classroom").mkdir(exist_ok=True)
    (folder / "classroom" / "secret").write_bytes(SECRET)
    with (folder / "nbgrader_config.py").open("a", encoding="utf-8") as file:  # the penalties here are made up
        file.write('c.LatePenalties.plugin_class = "nbgrader.plugins.LateSubmissionPlugin"\n')
    solution = sample_class.solved()
    with Gradebook(f"sqlite:///{folder / 'classroom' / 'gradebook.db'}", "attention-by-hand") as gradebook:
        for work in roster:
            gradebook.add_student(work.id, first_name=work.first_name, last_name=work.last_name, email=work.email)
            if work.answers is not None:
                sources = {**solution, **work.answers}
                verdicts = {
                    each.id: work.verdicts.get(each.id) or _verdict(each, sources) for each in ASSIGNMENT.exercises
                }
                _write_notebook(folder, work, sources, verdicts)
                _record(gradebook, work, verdicts)


def _verdict(exercise: Exercise, sources: Mapping[str, str]) -> Verdict:
    source = sources[exercise.id]
    key = draw_key(SECRET, ASSIGNMENT.id, exercise.id, [source])
    session, endpoint = JudgingSession(exercise, key), LocalEndpoint(namespace_of(SET_UP + source))
    for hidden in (False, True):
        session.ask(endpoint, hidden)
    verdict = explain(session.verdict())
    return fingerprinted(verdict, session, endpoint, SECRET) if is_compared(verdict) else verdict


def _write_notebook(folder: Path, work: Work, sources: Mapping[str, str], verdicts: Mapping[str, Verdict]) -> None:
    submitted = sample_class.submit(folder, work.id, sources)
    notebook = nbformat.read(submitted, as_version=4)
    for cell in notebook.cells:
        verdict = verdicts.get(cell.id.removesuffix("-check"))
        if cell.cell_type == "code" and cell.id.endswith("-check") and verdict is not None:
            score = new_output(
                "execute_result", data={"text/plain": str(verdict.points)}, metadata={"judged": as_record(verdict)}
            )
            cell.outputs = [new_output("stream", name="stdout", text=as_text(verdict) + "\n"), score]
            cell.metadata["execution"] = {
                "iopub.execute_input": "2026-11-02T09:00:00.000000Z",
                "shell.execute_reply": "2026-11-02T09:00:01.250000Z",
            }
    if work.repaired:
        text = f"**About what you handed in**\n\n- {work.repaired}"
        notebook.cells.insert(0, new_markdown_cell(text, id=NOTE_ID))
    path = Path(str(submitted).replace("submitted", "autograded", 1))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(notebook), encoding="utf-8")


def _record(gradebook: Gradebook, work: Work, verdicts: Mapping[str, Verdict]) -> None:
    submission = gradebook.add_submission(ASSIGNMENT.id, work.id)
    submission.timestamp = work.timestamp
    (notebook,) = submission.notebooks
    notebook.late_submission_penalty = work.penalty
    for grade in notebook.grades:
        exercise = grade.name.removesuffix("-check")
        grade.auto_score = verdicts[exercise].points
        grade.manual_score = work.by_hand.get(exercise)
        grade.needs_manual_grade = False
    for comment in notebook.comments:
        comment.manual_comment = work.comments.get(comment.name)
    gradebook.db.commit()
