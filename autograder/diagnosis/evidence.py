"""Why an answer fails, as typed facts. Each fact produces its own sentence.

A detector yields the facts that it sees in failed checks. Its module defines these facts, with their sentences. No fact
holds a number of an input (but that it is 0, 1 or negative) or of a right result, so all of them may be reported for
hidden checks too.
"""

import inspect
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, NamedTuple

from autograder.catalogue.exercise import Evidence, Exercise, Misconception
from autograder.diagnosis.one_change import OneChange
from autograder.diagnosis.own_source import Written
from autograder.judging.observation import Outcome
from autograder.judging.verdict import Verdict

FEWEST = 3  # different numbers that a result must hold before a pattern in it says something
LINES = {  # by the number of axes and the distance from the last axis: what lies along that axis
    0: ("numbers of each row", "number of each row"),
    1: ("rows", "row"),
}  # before these lies the batch, or time, or the heads: its number is true of all


@dataclass(frozen=True)
class Names:
    """The names used in a sentence. outcome: the first failure; numbers of a hidden one are not shown."""

    exercise: Exercise
    outcome: Outcome

    @property
    def secret(self) -> bool:
        """Whether numbers must not be shown."""
        return self.outcome.secret

    def argument(self, place: int) -> str:
        """The name of an argument in the exercise's signature."""
        names = argument_names(self.exercise, self.outcome)
        return names[place] if place < len(names) else f"argument {place + 1}"


def about_values(failures: Sequence[Outcome]) -> list[Outcome]:
    """The failures but those of gradients alone, which follow from the values for other inputs."""
    return [outcome for outcome in failures if outcome.difference.kind not in ("gradient", "no gradient")]


def argument_names(exercise: Exercise, outcome: Outcome) -> list[str]:
    """The names in the exercise's signature."""
    if exercise.methods:
        return ["calls"]  # of the class's methods, one after another
    reference = exercise.reference[outcome.case.function or exercise.names[0]]
    function = reference.forward if isinstance(reference, type) else reference
    return [name for name in inspect.signature(function).parameters if name != "self"]


class Traits(NamedTuple):
    """Properties that all facts of a class share, given at its definition: `class Changed(Fact, name="changed")`."""

    name: str = ""
    exact: bool = False
    settles: bool = False
    once: bool = False
    doubt: str = "In one failing check: "


@dataclass(frozen=True, kw_only=True)
class Fact:
    """One fact about the results of an answer. Two facts are equal if they say the same about two results.

    sure: seen in more than one failure. beside: the message of a known mistake, if the fact compares with its result
    instead of the correct one. where: the setting to which it is limited (see `known_mistakes.setting`). part: which of
    several results it concerns, from 1; 0 if there is one, or if it is the first wrong one. partial: it holds in the
    first failing check and in others, but not in all; otherwise it holds in every failing check.
    """

    sure: bool = True
    beside: str = ""
    where: tuple = ()
    part: int = 0
    partial: bool = False

    _traits: ClassVar[Traits]

    def __init_subclass__(cls, **traits: Any) -> None:
        cls._traits = Traits(**traits)

    @property
    def traits(self) -> Traits:
        """The properties of its class."""
        return self._traits

    @property
    def name(self) -> str:
        """The name in tests and records."""
        return self.traits.name

    @property
    def exact(self) -> bool:
        """Whether it determines every number of a result, and is unlikely to hold by chance."""
        return self.traits.exact

    @property
    def settles(self) -> bool:
        """Whether the search ends with it."""
        return self.exact or self.traits.settles

    @property
    def once(self) -> bool:
        """Whether one failure is sufficient evidence."""
        return self.traits.once

    @property
    def doubt(self) -> str:
        """The words before its sentence if it is not sure; empty for none."""
        return self.traits.doubt

    def say(self, names: Names) -> str:
        """Return its sentences."""
        raise NotImplementedError

    def in_a_setting(self) -> "Fact":
        """Return the fact to report after the words for its setting, as in "Where causal is True: ..."."""
        return replace(self, where=())


@dataclass(frozen=True)
class Seen(Fact):
    """A fact that consists of its sentence."""

    sentence: str
    own: Traits

    @property
    def traits(self) -> Traits:
        return self.own

    def say(self, names: Names) -> str:
        return self.sentence


def seen(name: str, sentence: str, **traits: bool) -> Seen:
    """Return a fact that consists of its sentence; traits: see `Traits`."""
    return Seen(sentence, Traits(name, **traits))


@dataclass(frozen=True)
class AlongAxis(Fact):
    """A fact about one axis of a result; axes: how many the result has."""

    axis: int
    axes: int = field(default=0, compare=False)

    @property
    def lines(self) -> str:
        """The name of the items along the axis, such as "rows"."""
        return along(self.axis, self.axes)[0]

    @property
    def line(self) -> str:
        """The name of one item, such as "row"."""
        return along(self.axis, self.axes)[1]


def along(axis: int, axes: int) -> tuple[str, str]:
    """Return the plural and the singular name of the items along an axis."""
    if axes == 1:
        return "numbers", "number"
    return LINES.get(axes - 1 - axis, (f"items along axis {axis}", f"item along axis {axis}"))


@dataclass(frozen=True)
class Explained(Verdict):
    """A verdict with an explanation, which does not change its points.

    diagnosis: the known mistake, with the evidence for it. noticed: facts about a failure that no known mistake
    explains. failed_explanation: the traceback of an internal error that ended the explanation. counterexample: the
    smallest failing input that was found. one_change: a change to the answer that makes all checks pass. written: a
    remark on the answer's own source. alike: a fingerprint of the answer's behavior, if no known mistake explains it
    (see `alike`).
    """

    diagnosis: tuple[Misconception, Evidence | None] | None = None
    noticed: tuple[Fact, ...] = ()
    failed_explanation: str = ""
    counterexample: Outcome | None = None
    one_change: OneChange | None = None
    written: Written | None = None
    alike: tuple[str, ...] = ()

    @property
    def misconception(self) -> Misconception | None:
        return self.diagnosis[0] if self.diagnosis else None


def explained(verdict: Verdict, **found: object) -> Explained:
    """The verdict as an `Explained`; without an explanation if none was searched for."""
    if isinstance(verdict, Explained):
        return replace(verdict, **found)
    return Explained(**{field.name: getattr(verdict, field.name) for field in fields(Verdict)}, **found)
