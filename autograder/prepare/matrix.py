"""Is every known answer judged as it should be? `python -m autograder doctor --matrix` prints the table.

Each submission gets hidden inputs of its own, so a mistake that fails on one class's numbers might pass on
another's, and a right answer that is compared with chance, or rounds otherwise, might fail. `--draws` says on how many
numbers each answer is tried.
"""

import hashlib
import hmac
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from autograder import catalogue, course
from autograder.catalogue.exercise import Assignment, Exercise
from autograder.diagnosis.evidence import Explained
from autograder.diagnosis.explain import judge_and_explain
from autograder.diagnosis.known_mistakes import namespace_of
from autograder.feedback.messages import explanation
from autograder.judging.judge import draw_key
from autograder.judging.observe import LocalEndpoint
from autograder.prepare.release import answer_cells
from autograder.prepare.trial import Trials


@dataclass(frozen=True)
class Row:
    """The results of the known answers to one exercise. failed, named, passed: the number that did so on all draws."""

    exercise: Exercise
    solution: float
    blank: float
    failed: int
    named: int
    passed: int
    complaints: tuple[str, ...]


def print_matrix(ids: Sequence[str], draws: int = 1) -> int:
    """Judge the solutions, blanks, misconceptions and variants of the exercises; returns 1 if any is judged wrongly.

    draws: number of keys on which each of them is tried.
    """
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
                    rows.append(_examine(trials, assignment, exercise, draws))
                except course.CourseError as trouble:
                    if assignment in catalogue.ASSIGNMENTS:
                        raise
                    complaints.append(f"{exercise.id}: {trouble}")  # a teacher's own, not finished: the others go on
    print(f"{'exercise':<22}{'solution':>10}{'blank':>8}{'misconceptions: wrong, named':>32}{'right variants':>18}")
    for row in rows:
        known, variants = len(row.exercise.mistakes), len(row.exercise.correct)
        print(
            f"{row.exercise.id:<22}{f'{row.solution:g} of {row.exercise.points:g}':>10}{row.blank:>8g}"
            f"{f'{row.failed} and {row.named} of {known}':>32}{f'{row.passed} of {variants}':>18}"
        )
    complaints += [complaint for row in rows for complaint in row.complaints]
    well = "Every known answer is judged as it should be" + (
        f", on {draws} draws of hidden numbers." if draws > 1 else "."
    )
    print("\n".join(complaints) if complaints else well)
    return 1 if complaints else 0


def _examine(trials: Trials, assignment: Assignment, exercise: Exercise, draws: int) -> Row:
    root = course.find_root()
    set_up, secret = course.set_up_cells(root, assignment, exercise), course.secret(root)
    others = [hmac.new(secret, f"draw {n}".encode(), hashlib.sha256).digest() for n in range(1, draws)]
    done, total = 0, 2 + len(exercise.mistakes) + len(exercise.correct)

    def judge(source: str, draws_from: Sequence[bytes] = (secret, *others)) -> list[Explained]:
        nonlocal done
        done += 1
        if sys.stderr.isatty():
            end = "" if done < total else "\n"
            print(f"\r{exercise.id}: {done} of {total} ", end=end, file=sys.stderr, flush=True)
        if not exercise.trained:
            return [trials.judge(exercise, set_up, source, f"{exercise.id}.py", each) for each in draws_from]
        keys = [draw_key(each, assignment.id, exercise.id, [source]) for each in draws_from]
        return [judge_and_explain(exercise, LocalEndpoint(namespace_of(source)), key) for key in keys]

    def odd(what: str, verdicts: Sequence[Explained], is_well: Callable[[Explained], bool]) -> list[str]:
        """A complaint if not all are judged correctly: the first such answer, and their number."""
        wrongly = [verdict for verdict in verdicts if not is_well(verdict)]
        often = f" (On {len(wrongly)} of {len(verdicts)} draws.)" if len(verdicts) > 1 else ""
        return [f"{exercise.id}: {what} {_fared(wrongly[0])}{often}"] if wrongly else []

    own = answer_cells(root, "solutions", assignment)[exercise.id]
    solutions = judge(exercise.correct[0].source if exercise.trained else own)  # its own would have to be trained
    blanks = judge(answer_cells(root, "exercises", assignment)[exercise.id], [secret])
    complaints = odd("the solution", solutions, lambda verdict: verdict.passed)
    complaints += odd("the blank", blanks, lambda verdict: not verdict.points)
    failed = named = passed = 0
    for known in exercise.mistakes:
        verdicts = judge(known.source)
        failed += not any(verdict.passed for verdict in verdicts)
        named += all(_name(verdict) == known.name for verdict in verdicts)
        complaints += odd(repr(known.name), verdicts, lambda verdict, name=known.name: _name(verdict) == name)
    for variant in exercise.correct:
        verdicts = judge(variant.source)
        passed += all(verdict.passed for verdict in verdicts)
        complaints += odd(f"right variant {variant.name!r}", verdicts, lambda verdict: verdict.passed)
    worst, best = min(each.points for each in solutions), max(each.points for each in blanks)
    return Row(exercise, worst, best, failed, named, passed, tuple(complaints))


def _name(verdict: Explained) -> str | None:
    return verdict.misconception.name if verdict.misconception else None


def _fared(verdict: Explained) -> str:
    if verdict.passed:
        return "passes."
    if _name(verdict):
        return f"earns {verdict.points:g} and is diagnosed as {_name(verdict)!r}."
    return f"earns {verdict.points:g}. {explanation(verdict)}"
