"""Answers that the catalogue knows, handed in and graded as a class is: in notebooks, in a sandbox.

`grade` runs them, which gives what plain nbgrader gives to the last byte (tests/grader/grade/test_grade.py). Short runs
grade one in three submissions; test_entries judges every known answer in process.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import graded_class
import pytest
from graded_course import Graded

from autograder import catalogue
from autograder.catalogue.exercise import Assignment, Exercise, Misconception, Variant
from autograder.feedback.render import WIDTH
from autograder.prepare import sample_class

Known = Misconception | Variant


def _one_each(assignment: Assignment) -> list[dict[str, Known]]:
    """The n-th known answer of every exercise, wrong ones first, makes the n-th submission: exercise id -> answer."""
    asked = [exercise for exercise in assignment.exercises if not exercise.trained]  # that would take minutes each
    known = {exercise.id: (*exercise.mistakes, *exercise.correct) for exercise in asked}
    longest = max(map(len, known.values()))
    return [{exercise: answers[n] for exercise, answers in known.items() if n < len(answers)} for n in range(longest)]


def _cells(assignment: Assignment) -> list[dict[str, str]]:
    """What each submission holds: once an exercise has no known answer left its solution, then nothing any more."""
    solution, last = sample_class.solved(assignment), {}
    submissions = []
    for answers in _one_each(assignment):
        left = {each.id for each in assignment.exercises if not each.trained} - set(answers)
        last |= {exercise: last.get(exercise, -1) + 1 for exercise in left}
        solved = {name: source for name, source in solution.items() if not last.get(name)}
        cells = {exercise: answer.source for exercise, answer in answers.items()}
        submissions.append(solved | cells | dict.fromkeys(assignment.trains, "pass"))
    return submissions


@dataclass
class GradedAnswers(Graded):
    """A course whose students, by these numbers, handed in known answers."""

    numbers: Sequence[int] = ()


@pytest.fixture(scope="module")
def graded(request, empty_course, part) -> GradedAnswers:
    empty = empty_course(request.param.id, request.param)
    cells = _cells(empty.assignment)
    course = GradedAnswers(empty.folder, empty.assignment, numbers=part(range(len(cells)), 3))
    for number in course.numbers:
        sample_class.submit(course.folder, f"known-{number:02}", cells[number], course.assignment)
    done = graded_class.grade(course.folder, "--workers", "1", assignment=course.assignment.id)
    assert done.returncode == 0, done.stdout + done.stderr
    return course


by_assignment = pytest.mark.parametrize(
    "graded",
    [pytest.param(a, id=a.id, marks=pytest.mark.xdist_group(a.id)) for a in catalogue.ASSIGNMENTS],
    indirect=True,
)


def _handed_in(graded: GradedAnswers) -> Iterator[tuple[str, Exercise, Known | None]]:
    """(student, exercise, answer) of everything handed in; None where it was the solution."""
    known = _one_each(graded.assignment)
    for number, answers in ((number, known[number]) for number in graded.numbers):
        for exercise in (each for each in graded.assignment.exercises if not each.trained):
            yield f"known-{number:02}", exercise, answers.get(exercise.id)


def _earned(graded: Graded, student: str) -> dict[str, float]:
    return _points(graded.folder, graded.assignment.id, student)


@cache
def _points(folder: Path, assignment: str, student: str) -> dict[str, float]:
    return sample_class.scores(folder, student, catalogue.find_assignment(assignment))


@by_assignment
def test_a_misconception_fails_as_itself(graded):
    wrongly = []
    for student, exercise, known in _handed_in(graded):
        if isinstance(known, Misconception):
            points, report = _earned(graded, student)[exercise.id], graded.report(student, exercise.id)
            said = known.message in " ".join(report.split()) and graded.record(student, exercise.id)["misconception"]
            if points >= exercise.points or said != known.name or max(map(len, report.splitlines())) > WIDTH:
                wrongly.append((exercise.id, known.name, points, said, report))
    assert not wrongly


@by_assignment
def test_every_right_variant_earns_everything_whatever_is_wrong_beside_it(graded):
    wrongly = []
    for student, exercise, known in _handed_in(graded):
        if isinstance(known, Variant) and _earned(graded, student)[exercise.id] != exercise.points:
            wrongly.append((exercise.id, known.name, graded.report(student, exercise.id)))
    assert not wrongly


@by_assignment
def test_a_mistake_in_one_exercise_costs_no_other(graded):
    cells = {f"known-{number:02}": each for number, each in enumerate(_cells(graded.assignment))}
    left = [(student, e) for student, e, known in _handed_in(graded) if known is None and e.id in cells[student]]
    assert left or len(graded.numbers) < len(_one_each(graded.assignment))  # a part may hold none
    assert [each for each in left if _earned(graded, each[0])[each[1].id] != each[1].points] == []
