"""The catalogue: one file a chapter, each holding its assignment."""

from functools import cache

from autograder.catalogue import ch00, ch01, ch02, ch03, ch04, ch05
from autograder.exercise import Assignment, Exercise

ASSIGNMENTS: tuple[Assignment, ...] = (
    ch00.ASSIGNMENT,
    ch01.ASSIGNMENT,
    ch02.ASSIGNMENT,
    ch03.ASSIGNMENT,
    ch04.ASSIGNMENT,
    ch05.ASSIGNMENT,
)


@cache
def exercises() -> dict[str, Exercise]:
    """Every exercise of the course by its id, in the order of the book."""
    return {exercise.id: exercise for assignment in ASSIGNMENTS for exercise in assignment.exercises}


def find(exercise_id: str) -> Exercise | None:
    """The exercise of that id, or None."""
    return exercises().get(exercise_id)


def assignment_of(exercise: Exercise) -> Assignment:
    """The assignment that an exercise belongs to."""
    return next(assignment for assignment in ASSIGNMENTS if exercise in assignment.exercises)


def find_assignment(assignment_id: str) -> Assignment | None:
    """The assignment of that id (its folder's name), or None."""
    return next((assignment for assignment in ASSIGNMENTS if assignment.id == assignment_id), None)
