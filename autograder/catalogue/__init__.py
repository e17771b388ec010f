"""The catalogue: one file a chapter, each holding its assignment, and beside them a teacher's own."""

from functools import cache

from autograder.catalogue import ch00, ch01, ch02, ch03, ch04, ch05, own
from autograder.catalogue.exercise import Assignment, Exercise
from autograder.course import CourseError

ASSIGNMENTS: tuple[Assignment, ...] = (  # the course's
    ch00.ASSIGNMENT,
    ch01.ASSIGNMENT,
    ch02.ASSIGNMENT,
    ch03.ASSIGNMENT,
    ch04.ASSIGNMENT,
    ch05.ASSIGNMENT,
)


def assignments() -> tuple[Assignment, ...]:
    """The course's assignments, then a teacher's own; those that cannot be read are in `troubles`."""
    return (*ASSIGNMENTS, *own.read(_of_the_course()).assignments)


def troubles() -> list[str]:
    """Why own assignments cannot be read, with file and line; usually none."""
    return list(own.read(_of_the_course()).troubles.values())


def exercises() -> dict[str, Exercise]:
    """Every exercise by its id, in the order of the book, own ones last."""
    return {exercise.id: exercise for assignment in assignments() for exercise in assignment.exercises}


def find(exercise_id: str) -> Exercise | None:
    """The exercise of that id, or None. Raises CourseError for an own one that cannot be read.

    The course's exercises are found without looking at own ones, so that nothing there can hurt them.
    """
    if exercise_id in _of_the_course():
        return _of_the_course()[exercise_id]
    found = exercises().get(exercise_id)
    if found is None:
        for name, trouble in own.read(_of_the_course()).troubles.items():
            if any(path.stem == exercise_id.replace("-", "_") for path in own.sources(name)):
                raise CourseError(trouble)
    return found


def assignment_of(exercise: Exercise) -> Assignment:
    """The assignment that an exercise belongs to; the chapter's, where an own assignment holds it too."""
    everywhere = ASSIGNMENTS if exercise.id in _of_the_course() else assignments()
    return next(assignment for assignment in everywhere if exercise in assignment.exercises)


def find_assignment(assignment_id: str) -> Assignment | None:
    """The assignment of that id (its folder's name), or None. Raises CourseError for an own one that cannot be read."""
    for assignment in ASSIGNMENTS:
        if assignment.id == assignment_id:
            return assignment
    owned = own.read(_of_the_course())
    if assignment_id in owned.troubles:
        raise CourseError(owned.troubles[assignment_id])
    return next((assignment for assignment in owned.assignments if assignment.id == assignment_id), None)


@cache
def _of_the_course() -> dict[str, Exercise]:
    return {exercise.id: exercise for assignment in ASSIGNMENTS for exercise in assignment.exercises}
