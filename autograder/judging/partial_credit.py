"""How an exercise's points are split between its probes: all visible ones earn their points together, each hidden one
earns its share of the rest."""

from collections.abc import Sequence

from autograder.catalogue.exercise import Exercise
from autograder.judging.observation import Outcome


def visible_points(exercise: Exercise, outcomes: Sequence[Outcome]) -> float:
    """The points of the visible probes, or none if one of them fails."""
    visible = [outcome for outcome in outcomes if not outcome.probe.hidden]
    return exercise.visible_points if visible and all(outcome.passed for outcome in visible) else 0.0


def hidden_points(exercise: Exercise, outcomes: Sequence[Outcome]) -> float:
    """The points of the hidden probes, in proportion to the shares that were earned (see `Outcome.share`)."""
    hidden = [outcome for outcome in outcomes if outcome.probe.hidden]
    earned = sum(outcome.share for outcome in hidden)
    return exercise.hidden_points * earned / len(hidden) if hidden else 0.0
