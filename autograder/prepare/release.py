"""From solutions/ to exercises/: every solution must earn all points and every blank none.

An assignment that has not changed since its last check is not checked again (see `check_cache`).
"""

import argparse
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from nbgrader.api import MissingEntry

from autograder import catalogue, course
from autograder.catalogue.exercise import Assignment, Exercise
from autograder.feedback.messages import explanation
from autograder.grade.older_rules import outdated_points
from autograder.judging.verdict import Verdict
from autograder.policy import points
from autograder.prepare import check_cache, hand_out, task_cells
from autograder.prepare.check_cache import CheckCache
from autograder.prepare.generated import Generated
from autograder.prepare.trial import Trials
from autograder.reports import results
from transformer_ref.training.progress import clock


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("assignments", nargs="*", metavar="ASSIGNMENT", help="assignments to release (default: all)")
    parser.add_argument(
        "--check", action="store_true", help="also check assignments that have not changed since their last check"
    )


def run(chosen: argparse.Namespace) -> int:
    """Release what the command line names."""
    return release(chosen.assignments, check=chosen.check)


def release(ids: Sequence[str], root: Path | None = None, check: bool = False) -> int:
    """Release the assignments (all by default) as nbgrader does; returns the exit code.

    Points and hints in solutions/ that differ from the catalogue's are corrected first.
    check: also check assignments that have not changed since their last check.
    Raises CourseError when a solution earns less than all points or a blank more than none, when a solution's notebook
    lacks a check or the import that `HandOut` changes, and when the class has handed in a notebook with other cells.
    """
    root = root or course.find_root()
    chosen, cache = _chosen(ids), CheckCache(root)
    for assignment in chosen:
        refuse_other_cells(root, assignment)
    reasons = {assignment.id: _prepared(root, assignment, cache, check) for assignment in chosen}
    to_check = sum(map(bool, reasons.values()))
    if to_check < len(chosen):
        print(
            f"unchanged since the last check: {_count(len(chosen) - to_check)} (--check checks them again)", flush=True
        )
    checked, began = 0, time.monotonic()
    with Generated(root) as generated:
        for assignment in chosen:
            why = reasons[assignment.id]
            if why:
                left = (time.monotonic() - began) / checked * (to_check - checked) if checked else None
                print(
                    f"{assignment.id}: checking its solutions and blanks, {checked + 1} of {to_check}"
                    f"{'' if left is None else f', about {clock(left)} left'} ({why})",
                    flush=True,
                )
            if not _release(root, assignment, cache, generated, bool(why)):
                return 1
            checked += bool(why)
    print(f"released to exercises/: {_count(len(chosen))}", flush=True)
    for assignment in chosen:
        if students := len(outdated_points(root, assignment.id)):
            print(
                f"{assignment.id}: {students} graded by other points than now; `python -m autograder grade "
                f"{assignment.id} --outdated` grades them again",
                flush=True,
            )
    for trouble in [] if ids else catalogue.troubles():
        raise course.CourseError(trouble)
    return 0


def refuse_other_cells(root: Path, assignment: Assignment) -> None:
    """Raise CourseError if the class has handed in, and the solution's notebook has other cells than the released one.

    nbgrader would raise too, but after removing the released notebook.
    """
    places = results.directory(root)
    path = course.notebook_path(root, "solutions", assignment)
    if not results.has_gradebook(places) or not path.is_file():
        return
    with results.gradebook_of(places) as gradebook:
        try:
            notebook = gradebook.find_notebook(assignment.notebook, assignment.id)
        except MissingEntry:
            return
        students = len(notebook.submissions)
        before = {cell.name for cell in notebook.source_cells}
    marked = [cell.get("metadata", {}).get("nbgrader") or {} for cell in course.read_notebook(path)["cells"]]
    kinds = ("grade", "solution", "locked", "task")  # of which nbgrader keeps the text
    now = {marks["grade_id"] for marks in marked if marks.get("grade_id") and any(map(marks.get, kinds))}
    if not students or not before or now == before:
        return
    added, gone = (", ".join(sorted(names)) for names in (now - before, before - now))
    what = "; ".join(part for part in (added and f"new: {added}", gone and f"gone: {gone}") if part)
    raise course.CourseError(
        f"{assignment.id}: {students} students have handed in, and the notebook in solutions/ has other cells than "
        f"they were given ({what}). Nothing is touched. Put the new exercise into an assignment of its own, with "
        "`new-exercise NAME --assignment own_...`, or take the cells out again."
    )


def _prepared(root: Path, assignment: Assignment, cache: CheckCache, check: bool) -> str:
    """Write the catalogue's hints and points into the solution; returns why to check the assignment, or ""."""
    for cell in task_cells.refresh(root, assignment):
        print(f"{assignment.id}: corrected the cell {cell}", flush=True)
    for change in points.write_course(root, assignment):
        print(f"{assignment.id}: corrected {change}", flush=True)
    points.refuse_cells(root, assignment)
    hand_out.refuse(root, assignment)
    return "--check" if check else cache.reason(assignment, check_cache.inputs(root, assignment))


def _release(root: Path, assignment: Assignment, cache: CheckCache, generated: Generated, check: bool) -> bool:
    """Release one assignment, after checking its solutions and its blanks; returns whether nbgrader succeeded.

    check: whether to check the solutions; the blanks are also checked if they differ from those of the last check.
    """
    inputs = check_cache.inputs(root, assignment)
    with Trials(trust=True) as trials:  # solutions are a teacher's own
        if check:
            _check_solutions(trials, root, assignment)
        if not generated.write(assignment):
            return False
        inputs[check_cache.BLANKS] = check_cache.digest_folder(root / generated.step / assignment.id)
        if check or cache.reason(assignment, inputs):
            _check_blanks(trials, root, assignment, generated.step)
            cache.store(assignment, inputs)
    generated.install(assignment)
    return True


def _check_solutions(trials: Trials, root: Path, assignment: Assignment) -> None:
    for exercise, verdict in _judged_cells(trials, root, "solutions", assignment):
        if exercise.trained:
            continue  # it needs minutes of training: grading the solution's whole notebook shows what it earns
        if not verdict.passed:
            raise course.CourseError(
                f"{assignment.id}: the solution of {exercise.id} does not earn everything.\n{explanation(verdict)}"
            )


def _check_blanks(trials: Trials, root: Path, assignment: Assignment, step: str) -> None:
    for exercise, verdict in _judged_cells(trials, root, step, assignment):
        if verdict.points:
            raise course.CourseError(
                f"{assignment.id}: the blank of {exercise.id} earns {verdict.points:g} points instead of none."
            )


def _judged_cells(trials: Trials, root: Path, step: str, assignment: Assignment) -> Iterator[tuple[Exercise, Verdict]]:
    """The verdict on each answer cell of the assignment's notebook in a folder of the course, such as solutions/."""
    answers = answer_cells(root, step, assignment)
    for exercise in assignment.exercises:
        set_up = course.set_up_cells(root, assignment, exercise, step)
        yield (
            exercise,
            trials.judge(exercise, set_up, answers[exercise.id], f"{exercise.id}.py", course.secret(root)),
        )


def _count(assignments: int) -> str:
    return f"{assignments} assignment{'' if assignments == 1 else 's'}"


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
