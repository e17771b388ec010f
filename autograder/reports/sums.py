"""A class's grades as other grades: several assignments summed up, and points counted out of another maximum."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from autograder.catalogue.exercise import Assignment, Exercise
from autograder.course import CourseError
from autograder.reports.results import Class, Graded, GradedCell, Result, Student


def total(classes: Sequence[Class]) -> Class:
    """The sum of several assignments: one "exercise" for each, with the points after its late penalty. A student
    without a submission has no points there; one without any submission is left out."""
    cells = [GradedCell(each.assignment.id, each.assignment.id, each.possible) for each in classes]
    handed_in: dict[str, dict[str, Graded]] = {}
    everyone: dict[str, Student] = {}
    for each in classes:
        everyone |= {student.id: student for student in each.absent}
        for graded in each.graded:
            everyone[graded.student.id] = graded.student
            handed_in.setdefault(graded.student.id, {})[each.assignment.id] = graded
    sums = tuple(_sum(everyone[student], cells, works) for student, works in handed_in.items())
    absent = tuple(student for student in everyone.values() if student.id not in handed_in)
    return Class(Assignment.of("total", "total", cells), sum(each.possible for each in classes), sums, absent)


def scaled(graded: Class, possible: float) -> Class:
    """The same grades, scaled to this number of points. Raises CourseError if the maximum is 0."""
    if not graded.possible:
        raise CourseError(f"{graded.assignment.id} is worth 0 points, which cannot be scaled to {possible:g}.")
    factor = possible / graded.possible
    every = tuple(
        replace(
            each,
            results=tuple(_scaled_result(result, factor) for result in each.results),
            raw_score=each.raw_score * factor,
            penalty=each.penalty * factor,
        )
        for each in graded.graded
    )
    exercises = tuple(_scaled_exercise(exercise, factor) for exercise in graded.assignment.exercises)
    assignment = Assignment.of(graded.assignment.id, graded.assignment.notebook, exercises)
    return replace(graded, assignment=assignment, possible=possible, graded=every)


def _sum(student: Student, cells: Sequence[GradedCell], works: Mapping[str, Graded]) -> Graded:
    every = tuple(Result(each, works[each.id].score if each.id in works else 0.0) for each in cells)
    waiting = any(work.needs_manual_grade for work in works.values())
    comments = tuple(comment for work in works.values() for comment in work.comments)
    raw = sum(work.raw_score for work in works.values())
    penalty = sum(work.raw_score - work.score for work in works.values())  # a score is never below zero
    return Graded(student, every, raw, penalty, None, waiting, comments=comments)


def _scaled_result(result: Result, factor: float) -> Result:
    judged = None if result.judged_points is None else result.judged_points * factor
    exercise = _scaled_exercise(result.exercise, factor)
    return replace(result, exercise=exercise, points=result.points * factor, judged_points=judged)


def _scaled_exercise(exercise: Exercise | GradedCell, factor: float) -> Exercise | GradedCell:
    if isinstance(exercise, GradedCell):
        return replace(exercise, points=exercise.points * factor)
    visible, hidden = exercise.visible_points * factor, exercise.hidden_points * factor
    return replace(exercise, visible_points=visible, hidden_points=hidden)
