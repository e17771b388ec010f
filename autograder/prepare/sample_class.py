"""A class of eight for chapter 05, graded by nbgrader: `python -m autograder.prepare.sample_class FOLDER`.

The folder becomes a course of its own, so a real classroom is never touched. The submissions are drawn from the
catalogue: right answers in three styles, three known mistakes, a blank, and a notebook with one cell that raises.
"""

import csv
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from autograder import catalogue, course
from autograder.catalogue.exercise import Assignment, Exercise
from autograder.prepare.release import answer_cells
from autograder.reports import dashboard, results
from autograder.reports.feedback import address_of_book
from autograder.sandbox import backends
from transformer_ref.atomic_write import atomic_write

ROOT = Path(__file__).resolve().parents[2]
ASSIGNMENT = catalogue.find_assignment("05_self_attention")
FIRST_NAMES = "Ada Bruno Chiara Davide Elena Franco Giulia Hugo".split()  # what they hand in is their last name
DASHBOARD = "python -m autograder dashboard"


class Step(NamedTuple):
    """A step of grading the class. work: its approximate seconds, for the estimated time left."""

    what: str
    command: str
    work: float


STEPS = (
    Step("releasing the exercises", f"nbgrader generate_assignment {ASSIGNMENT.id}", 3),
    Step("grading eight submissions", f"nbgrader autograde {ASSIGNMENT.id}", 12),
    Step("writing their feedback", f"nbgrader generate_feedback {ASSIGNMENT.id}", 5),
    Step("exporting the grades", "nbgrader export --to grades.csv", 2),
    Step("writing the teacher's page", DASHBOARD, 1),
)
RAISING = {"attend": "def attend(W, V):\n    return weights @ V\n"}  # a name that does not exist


def answers() -> dict[str, dict[str, str]]:
    """Student -> exercise id -> source of the answer cell. A blank submission has the released cells."""
    solution = solved()
    return {
        "blank": answer_cells(ROOT, "exercises", ASSIGNMENT),
        "einsum": {**solution, **_variants("einsum")},
        "loops": {**solution, **_variants("loops")},
        "no-scaling": {**solution, **_mistaken("no scaling", "attention-weights", "self-attention")},
        "one-cell-raises": {**solution, **RAISING},
        "perfect": solution,
        "shared-projection": {
            **solution,
            **_mistaken("one projection for queries and keys", "self-attention"),
        },
        "wrong-axis": {
            **solution,
            **_mistaken("softmax over the queries", "attention-weights", "self-attention"),
        },
    }


def solved(assignment: Assignment = ASSIGNMENT, root: Path = ROOT) -> dict[str, str]:
    """Exercise id -> the solution, as a student would write it."""
    return {
        name: "\n".join(line for line in source.splitlines() if "### BEGIN" not in line and "### END" not in line)
        for name, source in answer_cells(root, "solutions", assignment).items()
    }


def write_course(folder: Path) -> None:
    """Create the sample course: configuration, solutions and submissions."""
    lay_out(folder)
    for student, cells in answers().items():
        submit(folder, student, cells)


def enroll(folder: Path) -> None:
    """Add the class, with names, to the gradebook of the course."""
    from nbgrader.api import Gradebook

    with Gradebook(f"sqlite:///{folder / 'classroom' / 'gradebook.db'}") as gradebook:
        for student, first in zip(sorted(answers()), FIRST_NAMES, strict=True):
            last = student.replace("-", " ").capitalize()
            gradebook.update_or_create_student(student, first_name=first, last_name=last)


def lay_out(folder: Path, assignment: Assignment = ASSIGNMENT) -> None:
    """A course with one assignment and nobody's work yet."""
    for name in ("solutions", "exercises", "classroom"):
        shutil.rmtree(folder / name, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(ROOT / course.MARKER, folder)
    for name in ("solutions", "exercises"):
        shutil.copytree(ROOT / name / assignment.id, folder / name / assignment.id)


def submit(folder: Path, student: str, cells: Mapping[str, str], assignment: Assignment = ASSIGNMENT) -> Path:
    """Write a submission: the released notebook with these answer cells; returns its path."""
    notebook = course.read_notebook(course.notebook_path(ROOT, "exercises", assignment))
    for cell in notebook["cells"]:
        if cell["id"] in cells and cell["cell_type"] == "code":
            cell["source"] = cells[cell["id"]]
    path = folder / "classroom" / "submitted" / student / assignment.id / f"{assignment.notebook}.ipynb"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(notebook), encoding="utf-8")
    return path


def trust_where_nothing_isolates() -> None:
    """Allow the invented students' code without a sandbox on a machine that has none; a real class is refused there."""
    try:
        backends.choose()
    except backends.SandboxError as error:
        print(f"{error}\nThese students are invented, so they run all the same.", file=sys.stderr)
        os.environ[backends.SANDBOX] = backends.TRUST


def nbgrader(folder: Path, *arguments: str) -> subprocess.CompletedProcess:
    """Run one nbgrader command in the course; returns the completed process with its output."""
    command, environment = course.nbgrader_command(*arguments)
    return subprocess.run(
        command, cwd=folder, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )


def scores(folder: Path, student: str, assignment: Assignment = ASSIGNMENT) -> dict[str, float]:
    """Exercise id -> points in the gradebook."""
    from nbgrader.api import Gradebook

    with Gradebook(f"sqlite:///{folder / 'classroom' / 'gradebook.db'}") as gradebook:
        submission = gradebook.find_submission_notebook(assignment.notebook, assignment.id, student)
        return {grade.name.removesuffix(course.CHECK_SUFFIX): grade.score for grade in submission.grades}


def _variants(word: str) -> dict[str, str]:
    """For each exercise a correct variant whose name has the word, if there is one."""
    found = {exercise.id: [v.source for v in exercise.correct if word in v.name] for exercise in ASSIGNMENT.exercises}
    return {exercise: sources[0] for exercise, sources in found.items() if sources}


def _mistaken(name: str, *exercises: str) -> dict[str, str]:
    def source(exercise: Exercise) -> str:
        return next(known.source for known in exercise.mistakes if known.name == name)

    return {exercise: source(catalogue.find(exercise)) for exercise in exercises}


def main(folder: Path) -> int:
    """Grade the sample class, with progress, and print the points."""
    trust_where_nothing_isolates()
    write_course(folder)
    enroll(folder)
    done, whole, began = 0, sum(step.work for step in STEPS), time.monotonic()
    for number, step in enumerate(STEPS, 1):
        left = f", about {(time.monotonic() - began) / done * (whole - done):.0f} s left" if done else ""
        print(f"  {number} of {len(STEPS)}, {step.what}: {step.command}{left}", flush=True)
        code = _write_dashboard(folder) if step.command == DASHBOARD else _run(folder, step)
        if code:
            return code
        done += step.work
    _print_table(folder)
    return 0


def _run(folder: Path, step: Step) -> int:
    """Run nbgrader's command; returns its exit code. If it fails, its output is printed."""
    finished = nbgrader(folder, *step.command.split()[1:])
    if finished.returncode:
        print(finished.stdout, file=sys.stderr)
    return finished.returncode


def _write_dashboard(folder: Path) -> int:
    page = dashboard.page(results.read_class(folder, ASSIGNMENT), address_of_book(folder))
    atomic_write(folder / "classroom" / "dashboard" / f"{ASSIGNMENT.id}.html", page)
    return 0


def _print_table(folder: Path) -> None:
    ids = [exercise.id for exercise in ASSIGNMENT.exercises]
    print(f"\n  {'':<18}" + "".join(f"{exercise.number:>7}" for exercise in ASSIGNMENT.exercises) + f"{'total':>9}")
    with (folder / "grades.csv").open(encoding="utf-8") as file:
        totals = {row["student_id"]: float(row["raw_score"]) for row in csv.DictReader(file)}
    for student in answers():
        earned = scores(folder, student)
        print(f"  {student:<18}" + "".join(f"{earned[name]:>7.2f}" for name in ids) + f"{totals[student]:>9.2f}")
    print(
        f"  {'out of':<18}"
        + "".join(f"{exercise.points:>7.2f}" for exercise in ASSIGNMENT.exercises)
        + f"{ASSIGNMENT.points:>9.2f}"
    )
    print(f"\n  Feedback pages: {folder / 'classroom' / 'feedback'}")
    print(f"  The teacher's page: {folder / 'classroom' / 'dashboard' / f'{ASSIGNMENT.id}.html'}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m autograder.prepare.sample_class FOLDER")
    sys.exit(main(Path(sys.argv[1]).resolve()))
