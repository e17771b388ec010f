"""Every answer that the catalogue knows, handed in and graded by nbgrader itself."""

from collections.abc import Sequence

import pytest
from graded_course import Graded

from autograder import catalogue
from autograder.catalogue.exercise import Assignment, Exercise, Misconception, Variant
from autograder.prepare import sample_class


def _one_each(assignment: Assignment, kind: str) -> list[dict[str, Misconception | Variant]]:
    """The n-th misconception (or variant) of every exercise makes the n-th submission: exercise id -> answer."""
    lists: dict[str, Sequence] = {exercise.id: getattr(exercise, kind) for exercise in assignment.exercises}
    longest = max(map(len, lists.values()))
    return [{exercise: answers[n] for exercise, answers in lists.items() if n < len(answers)} for n in range(longest)]


def _hand_in(course: Graded) -> None:
    solution = sample_class.solved(course.assignment)
    for kind in ("wrong", "right"):
        for number, answers in enumerate(_one_each(course.assignment, kind)):
            cells = {exercise: answer.source for exercise, answer in answers.items()}
            sample_class.submit(course.folder, f"{kind}-{number:02}", solution | cells, course.assignment)


@pytest.fixture(scope="module")
def graded(request, empty_course):
    course = empty_course(request.param.id, request.param)
    _hand_in(course)
    course.autograde()
    assert course.code == 0, course.log[-3000:]
    return course


by_assignment = pytest.mark.parametrize(
    "graded",
    [pytest.param(a, id=a.id, marks=pytest.mark.xdist_group(a.id)) for a in catalogue.ASSIGNMENTS],
    indirect=True,
)


def _all(graded: Graded, kind: str) -> list[tuple[str, Exercise, Misconception | Variant]]:
    """(student, exercise, answer) of everything handed in of a kind."""
    return [
        (f"{kind}-{number:02}", catalogue.find(exercise), answer)
        for number, answers in enumerate(_one_each(graded.assignment, kind))
        for exercise, answer in answers.items()
    ]


@by_assignment
def test_every_misconception_fails_as_itself(graded):
    wrongly = []
    for student, exercise, known in _all(graded, "wrong"):
        points = graded.scores(student)[exercise.id]
        named = known.message in " ".join(graded.report(student, exercise.id).split())
        if points >= exercise.points or not named:
            wrongly.append((exercise.id, known.name, points, graded.report(student, exercise.id)))
    assert not wrongly


@by_assignment
def test_every_right_variant_earns_everything(graded):
    handed_in = _all(graded, "right")
    earned = {
        (exercise.id, answer.name): graded.scores(student)[exercise.id] for student, exercise, answer in handed_in
    }
    assert earned == {(exercise.id, answer.name): exercise.points for _, exercise, answer in handed_in}


@by_assignment
def test_a_mistake_in_one_exercise_costs_no_other(graded):
    submissions = _one_each(graded.assignment, "wrong")
    untouched = [
        (f"wrong-{number:02}", exercise)
        for number, answers in enumerate(submissions)
        for exercise in graded.assignment.exercises
        if exercise.id not in answers
    ]
    assert all(graded.scores(student)[exercise.id] == exercise.points for student, exercise in untouched)
