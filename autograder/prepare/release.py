"""From solutions/ to exercises/, once it is proven that the solutions earn everything and the blanks nothing."""

import argparse
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from autograder import catalogue, course
from autograder.catalogue.exercise import Assignment, Exercise
from autograder.grade import points
from autograder.judging.verdict import Verdict
from autograder.judging.words import explanation
from autograder.prepare import entry_words, hand_out
from autograder.prepare.trial import Trials


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("assignments", nargs="*", metavar="ASSIGNMENT", help="only these (default: all)")


def run(chosen: argparse.Namespace) -> int:
    """Release what the command line names."""
    return release(chosen.assignments)


def release(ids: Sequence[str], root: Path | None = None) -> int:
    """Release the assignments (all by default) by nbgrader's own command; returns the exit code.

    What states other points than the catalogue is put right first. Raises CourseError when checks or hints are not the
    catalogue's, a solution earns less than everything, a blank more than nothing, or a notebook cannot be told what its
    checks ask (see `HandOut`).
    """
    root = root or course.find_root()
    for assignment in _chosen(ids):
        for cell in entry_words.refresh(root, assignment):
            print(f"{assignment.id}: put right: the cell {cell}", flush=True)
        for change in points.write_course(root, assignment):
            print(f"{assignment.id}: put right: {change}", flush=True)
        points.refuse_cells(root, assignment)
        hand_out.refuse(root, assignment)
        print(f"{assignment.id}: checking that the solutions earn everything ...", flush=True)
        with Trials(trust=True) as trials:  # solutions are a teacher's own
            code = _checked_release(trials, root, assignment)
        if code:
            return code
        print(
            f"{assignment.id}: released to {course.notebook_path(root, 'exercises', assignment).relative_to(root)}",
            flush=True,
        )
    for trouble in [] if ids else catalogue.troubles():
        raise course.CourseError(trouble)
    return 0


def _checked_release(trials: Trials, root: Path, assignment: Assignment) -> int:
    """Release between a look at the solutions and one at the blanks; returns nbgrader's exit code."""
    for exercise, verdict in _judged_cells(trials, root, "solutions", assignment):
        if exercise.trained:
            continue  # it needs minutes of training: grading the solution's whole notebook shows what it earns
        if not verdict.passed:
            raise course.CourseError(
                f"{assignment.id}: the solution of {exercise.id} does not earn everything.\n{explanation(verdict)}"
            )
    command, environment = course.nbgrader_command("generate_assignment", assignment.id, "--log-level=WARN")
    done = subprocess.run(command, cwd=root, env=environment, stderr=subprocess.PIPE, text=True, check=False)
    code, said = done.returncode, done.stderr.splitlines(keepends=True)
    sys.stderr.writelines(line for line in said if "Removing existing assignment" not in line)  # that is what we asked
    for exercise, verdict in () if code else _judged_cells(trials, root, "exercises", assignment):
        if verdict.points:
            raise course.CourseError(
                f"{assignment.id}: the blank of {exercise.id} earns {verdict.points:g} points instead of none."
            )
    return code


def _judged_cells(trials: Trials, root: Path, step: str, assignment: Assignment) -> Iterator[tuple[Exercise, Verdict]]:
    """The verdict on each answer cell of the assignment's notebook in solutions/ or exercises/."""
    answers = answer_cells(root, step, assignment)
    for exercise in assignment.exercises:
        set_up = course.set_up_cells(root, assignment, exercise, step)
        yield (
            exercise,
            trials.judge(exercise, set_up, answers[exercise.id], f"{exercise.id}.py", course.secret(root)),
        )


def answer_cells(root: Path, step: str, assignment: Assignment) -> dict[str, str]:
    """Exercise id -> source of its answer cell. Raises CourseError naming an exercise without one."""
    path = course.notebook_path(root, step, assignment)
    cells = {
        grade_id: source for grade_id, source, is_answer in course.code_cells(course.read_notebook(path)) if is_answer
    }
    missing = [exercise.id for exercise in assignment.exercises if exercise.id not in cells]
    if missing:
        raise course.CourseError(f"{path} has no answer cell for {', '.join(missing)}.")
    return cells


def _chosen(ids: Sequence[str]) -> list[Assignment]:
    for name in ids:
        if catalogue.find_assignment(name) is None:
            known = ", ".join(assignment.id for assignment in catalogue.assignments())
            raise course.CourseError(f"There is no assignment {name!r}. The assignments are: {known}.")
    return [assignment for assignment in catalogue.assignments() if not ids or assignment.id in ids]
