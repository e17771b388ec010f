"""Where a learner stands in a notebook: every exercise of it, the points of the whole, what comes next."""

from collections.abc import Mapping
from typing import Any

from autograder import catalogue
from autograder.catalogue.exercise import Assignment, Exercise

NOTHING = "No check has been run in this session yet. Run the one below an answer, then ask again."


def standing(earned: Mapping[str, tuple[float, float]], namespace: Mapping[str, Any]) -> str:
    """The lines that `progress` prints.

    earned: exercise id -> (points earned, points that its check decides), of this session; a check that asks visible
    questions decides less than all. namespace: the notebook's, whose names tell which notebook it is.
    """
    assignment = _notebook(earned, namespace)
    if assignment is None:
        return NOTHING
    width = max(map(len, assignment.exercise_ids))
    lines = [_line(exercise, earned.get(exercise.id), width) for exercise in assignment.exercises]
    got = round(sum(earned[name][0] for name in assignment.exercise_ids if name in earned), 2)
    return "\n".join([*lines, f"  {got:g} of {assignment.points:g} points. {_next(assignment, earned)}"])


def _notebook(earned: Mapping[str, tuple[float, float]], namespace: Mapping[str, Any]) -> Assignment | None:
    """The assignment of which most was checked, and else most is defined; None where there is nothing of any."""

    def defined(name: str) -> bool:  # here, and not imported: chapter 05 borrows the softmax of chapter 04
        return name in namespace and getattr(namespace[name], "__module__", "") == namespace.get("__name__")

    def known(assignment: Assignment) -> tuple[int, int]:
        ids = assignment.exercise_ids
        return sum(each in earned for each in ids), sum(any(map(defined, _names(each))) for each in ids)

    best = max(catalogue.assignments(), key=known)
    return best if any(known(best)) else None


def _names(exercise_id: str) -> tuple[str, str]:
    """How a function or a class of an exercise is called, told without reading its entry."""
    return exercise_id.replace("-", "_"), exercise_id.title().replace("-", "")


def _line(exercise: Exercise, checked: tuple[float, float] | None, width: int) -> str:
    name = f"{exercise.number}  {exercise.id:<{width}}"
    if checked is None:
        return f"    {name}  0 of {exercise.points:g}, not checked yet"
    points, decided = checked
    later = exercise.points - decided
    more = f", {later:g} more when it is graded" if later > 0 else ""
    return f"  {'✓' if points >= decided else '·'} {name}  {round(points, 2):g} of {decided:g}{more}"


def _next(assignment: Assignment, earned: Mapping[str, tuple[float, float]]) -> str:
    """The first exercise that is not done, or what is left when all are."""
    for exercise in assignment.exercises:
        points, decided = earned.get(exercise.id, (0.0, exercise.points))
        if points < decided:
            return f"Next: {exercise.number} {exercise.id}."
    if any(earned[exercise.id][1] < exercise.points for exercise in assignment.exercises):
        return "Hidden checks decide the rest when the notebook is graded."
    return "That is all of it."
