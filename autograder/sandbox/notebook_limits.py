"""The limits of a notebook while it is graded: the usual, or what its assignment states, or what a teacher has set."""

from autograder.catalogue.exercise import Assignment
from autograder.inside.limits import Limits

USUAL = Limits()


def limits_of(assignment: Assignment | None, configured: Limits = USUAL) -> Limits:
    """The limits of an assignment's notebooks. configured: the course's, which count if they are larger than usual.

    An assignment's own budget replaces the usual one, whether larger or smaller.
    """
    if assignment is None:
        return configured
    own = {"cell_seconds": assignment.cell_seconds, "notebook_seconds": assignment.notebook_seconds}
    chosen = vars(configured).copy()
    for name, seconds in own.items():
        if seconds:
            chosen[name] = max(seconds, chosen[name]) if chosen[name] > getattr(USUAL, name) else seconds
    return Limits(**chosen)
