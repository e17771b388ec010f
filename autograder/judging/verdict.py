"""The verdict on one answer, as data. `diagnosis` finds why it fails, and `feedback` writes what a learner reads."""

from dataclasses import dataclass

from autograder.catalogue.exercise import Exercise
from autograder.judging.observation import Outcome, Raised
from autograder.judging.partial_credit import hidden_points, visible_points
from autograder.judging.repeat_run import RepeatRun

UNWRITTEN = "NotImplementedError"
NO_FORWARD = ("forward",)  # what torch raises it for too (see `responder.describe`)
PASSED, WRONG, BLANK = "passed", "wrong", "blank"
MISSING, FORBIDDEN, NOT_CHECKED = "missing", "forbidden", "not checked"


@dataclass(frozen=True)
class Forbidden:
    """The answer uses a forbidden shortcut. findings: in its source (see `forbidden`); called: names of functions."""

    findings: tuple[str, ...] = ()
    called: tuple[str, ...] = ()


@dataclass(frozen=True)
class Missing:
    """There is nothing to judge. found: what the name stands for instead; stopped: the error that ended its cell, and
    the first error of all if it is in another cell."""

    name: str
    found: str = MISSING
    stopped: tuple[Raised, ...] = ()


@dataclass(frozen=True)
class NotChecked:
    """No verdict could be reached. excused: the answer is not the cause, so a person must look at it and no zero is
    final."""

    reason: str
    excused: bool = False


@dataclass(frozen=True)
class Verdict:
    """The decision about one answer.

    whole: whether hidden probes ran too. unasked: why no probe that counts ran, else None. again: the first failing
    probe repeated, for `diagnosis`; no points depend on it.
    """

    exercise: Exercise
    whole: bool
    outcomes: tuple[Outcome, ...] = ()
    unasked: Forbidden | Missing | NotChecked | None = None
    again: RepeatRun | None = None

    @property
    def visible_points(self) -> float:
        return visible_points(self.exercise, self.outcomes)

    @property
    def hidden_points(self) -> float:
        return hidden_points(self.exercise, self.outcomes)

    @property
    def points(self) -> float:
        return round(self.visible_points + self.hidden_points, 4)

    @property
    def possible(self) -> float:
        return self.exercise.points if self.whole else self.exercise.visible_points

    @property
    def passed(self) -> bool:
        return bool(self.outcomes) and all(outcome.passed for outcome in self.outcomes)

    @property
    def state(self) -> str:
        """How it ended: passed, wrong, blank, missing, forbidden or not checked."""
        if isinstance(self.unasked, NotChecked):
            return NOT_CHECKED
        if self.forbidden:
            return FORBIDDEN
        if self.passed:
            return PASSED
        return BLANK if self.blank else WRONG if self.outcomes else MISSING

    @property
    def forbidden(self) -> bool:
        return isinstance(self.unasked, Forbidden)

    @property
    def disclosed(self) -> bool:
        """Whether hidden probes ran that may be shown in full."""
        return any(outcome.disclosed for outcome in self.outcomes)

    @property
    def excused(self) -> bool:
        """Whether it could not be checked, through no fault of the answer."""
        return isinstance(self.unasked, NotChecked) and self.unasked.excused

    @property
    def blank(self) -> bool:
        """Whether the answer is still to be written."""
        first = self.outcomes[0].got if self.outcomes else None
        if first is None or not isinstance(first.result, Raised):
            return False
        of_torch = " not implemented for " in first.result.message  # an operation without a kernel for a dtype
        return first.result.type == UNWRITTEN and first.result.about != NO_FORWARD and not of_torch

    @property
    def first_failure(self) -> Outcome | None:
        """The first probe that the answer fails."""
        return next((outcome for outcome in self.outcomes if not outcome.passed), None)


def not_checked(exercise: Exercise, reason: str, excused: bool = False) -> Verdict:
    """The verdict if none could be reached; `excused` if the answer is not the cause."""
    return Verdict(exercise, True, unasked=NotChecked(reason, excused))
