"""Is every known answer judged as it should be? `python -m autograder doctor --matrix` prints the table."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass

from autograder import catalogue, course
from autograder.catalogue.exercise import Assignment, Exercise
from autograder.judging import judge as judging
from autograder.judging.diagnose import namespace_of
from autograder.judging.judge import draw_key
from autograder.judging.observe import LocalPeer
from autograder.judging.words import explanation
from autograder.prepare.release import answer_cells
from autograder.prepare.trial import Trials


@dataclass(frozen=True)
class Row:
    """How the known answers to one exercise fared."""

    exercise: Exercise
    solution: float
    blank: float
    failed: int
    named: int
    passed: int
    complaints: tuple[str, ...]


def print_matrix(ids: Sequence[str]) -> int:
    """Judge the solutions, blanks, misconceptions and variants of the exercises; returns 1 if any is judged wrongly."""
    unknown = [name for name in ids if catalogue.find(name) is None]
    if unknown:
        raise course.CourseError(
            f"There is no exercise {unknown[0]!r}. The exercises are: {', '.join(catalogue.exercise_ids())}."
        )
    rows, complaints = [], [] if ids else catalogue.troubles()
    with Trials(trust=True) as trials:
        for assignment in catalogue.assignments():
            for exercise in assignment.exercises:
                if ids and exercise.id not in ids:
                    continue
                try:
                    rows.append(_examine(trials, assignment, exercise))
                except course.CourseError as trouble:
                    if assignment in catalogue.ASSIGNMENTS:
                        raise
                    complaints.append(f"{exercise.id}: {trouble}")  # a teacher's own, not finished: the others go on
    print(f"{'exercise':<22}{'solution':>10}{'blank':>8}{'misconceptions: wrong, named':>32}{'right variants':>18}")
    for row in rows:
        known, variants = len(row.exercise.wrong), len(row.exercise.right)
        print(
            f"{row.exercise.id:<22}{f'{row.solution:g} of {row.exercise.points:g}':>10}{row.blank:>8g}"
            f"{f'{row.failed} and {row.named} of {known}':>32}{f'{row.passed} of {variants}':>18}"
        )
    complaints += [complaint for row in rows for complaint in row.complaints]
    print("\n".join(complaints) if complaints else "Every known answer is judged as it should be.")
    return 1 if complaints else 0


def _examine(trials: Trials, assignment: Assignment, exercise: Exercise) -> Row:
    root = course.find_root()
    set_up, secret = course.set_up_cells(root, assignment, exercise), course.secret(root)
    done, total = 0, 2 + len(exercise.wrong) + len(exercise.right)

    def judge(source: str):
        nonlocal done
        done += 1
        if sys.stderr.isatty():
            print(
                f"\r{exercise.id}: {done} of {total} ",
                end="" if done < total else "\n",
                file=sys.stderr,
                flush=True,
            )
        if exercise.trained:
            key = draw_key(secret, assignment.id, exercise.id, [source])
            return judging.judge(exercise, LocalPeer(namespace_of(source)), key)
        return trials.judge(exercise, set_up, source, f"{exercise.id}.py", secret)

    own = answer_cells(root, "solutions", assignment)[exercise.id]
    solution = judge(exercise.right[0].source if exercise.trained else own)  # its own would have to be trained
    blank = judge(answer_cells(root, "exercises", assignment)[exercise.id])
    complaints = (
        [f"{exercise.id}: the solution earns {solution.points:g}. {explanation(solution)}"]
        if not solution.passed
        else []
    )
    complaints += [f"{exercise.id}: the blank earns {blank.points:g}."] if blank.points else []
    failed = named = passed = 0
    for known in exercise.wrong:
        verdict = judge(known.source)
        found = verdict.misconception.name if verdict.misconception else None
        failed += not verdict.passed
        named += found == known.name
        if verdict.passed or found != known.name:
            complaints.append(
                f"{exercise.id}: {known.name!r} {'passes' if verdict.passed else f'is diagnosed as {found!r}'}."
            )
    for variant in exercise.right:
        verdict = judge(variant.source)
        passed += verdict.passed
        complaints += (
            []
            if verdict.passed
            else [f"{exercise.id}: right variant {variant.name!r} earns {verdict.points:g}. {explanation(verdict)}"]
        )
    return Row(exercise, solution.points, blank.points, failed, named, passed, tuple(complaints))
