"""Ways to have misunderstood a question: an argument is changed, two are exchanged, another value is meant.

A supposition changes the question that was asked into the one that was understood instead, and describes the change.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from autograder.catalogue.exercise import Case
from autograder.diagnosis.changed_arguments import ALONG_AN_AXIS, BLANKED, CHANGES, OF_NUMBERS, changed_by
from autograder.diagnosis.evidence import Fact, Names, along
from autograder.judging.observation import Outcome, Raised


@dataclass(frozen=True)
class Supposed(Fact, doubt=""):
    """A supposition about how the learner reads an argument. argument: the position of the changed one."""

    argument: int

    @property
    def blunt(self) -> bool:
        """Whether it is too general to be combined with a second mistake."""
        return False

    def understood(self, case: Case) -> Case | None:
        """The case as the learner would understand it; None if the supposition does not apply."""
        if self.argument >= len(case.arguments):
            return None
        value = case.arguments[self.argument]
        changed = self.changed(value)
        return None if changed is None else with_arguments(case, {self.argument: changed})

    def changed(self, value: Any) -> Any:
        """The changed argument; None if the supposition does not apply."""
        raise NotImplementedError

    def back(self, result: Any) -> Any:
        """The result, changed back if the supposition requires it."""
        return result


def with_arguments(case: Case, changed: dict[int, Any]) -> Case:
    """The case with some arguments replaced."""
    return replace(case, arguments=tuple(changed.get(place, value) for place, value in enumerate(case.arguments)))


def _right_for(words: str) -> str:
    return f"Your result is the correct one for {words}."


@dataclass(frozen=True)
class OtherValue(Supposed, name="value", doubt=""):
    """One of the few values of an argument is treated like another."""

    passed: Any
    meant: Any

    @property
    def blunt(self) -> bool:
        return True

    def changed(self, value: Any) -> Any:
        return self.meant if value == self.passed else None

    def say(self, names: Names) -> str:
        spelled = ": is it compared as the task spells it?" if isinstance(self.passed, str) else "."
        name = names.argument(self.argument)
        return f"Where {name} is {self.passed!r}, your result is the correct one for {self.meant!r}{spelled}"


@dataclass(frozen=True)
class ExchangedValues(OtherValue, name="values", doubt=""):
    """Two of the few values of an argument are exchanged."""

    def changed(self, value: Any) -> Any:
        return {self.passed: self.meant, self.meant: self.passed}.get(value)

    def say(self, names: Names) -> str:
        one, two, name = repr(self.passed), repr(self.meant), names.argument(self.argument)
        return f"{one} and {two} are exchanged: for {name} = {one} you return the result for {two}, and the reverse."


@dataclass(frozen=True)
class ExchangedArguments(Supposed, name="exchanged", doubt=""):
    """Two arguments are exchanged."""

    other: int

    def understood(self, case: Case) -> Case | None:
        if max(self.argument, self.other) >= len(case.arguments):
            return None
        one, two = case.arguments[self.argument], case.arguments[self.other]
        return None if two is None else with_arguments(case, {self.argument: two, self.other: one})

    def say(self, names: Names) -> str:
        one, two = names.argument(self.argument), names.argument(self.other)
        return _right_for(f"{one} and {two} exchanged: each is where the other belongs")


@dataclass(frozen=True)
class ChangedArgument(Supposed, doubt=""):
    """An argument is changed as a whole. change: a name in CHANGES; other: a second argument, changed as well."""

    change: str
    other: int = 0

    @property
    def name(self) -> str:
        return self.change

    @property
    def blunt(self) -> bool:
        return self.change in OF_NUMBERS

    def understood(self, case: Case) -> Case | None:
        if max(self.argument, self.other) >= len(case.arguments):
            return None
        places = [self.argument, self.other] if self.other else [self.argument]
        changed = {place: changed_by(CHANGES[self.change], case.arguments[place]) for place in places}
        changed = {place: value for place, value in changed.items() if value is not None}
        return with_arguments(case, changed) if changed else None

    def say(self, names: Names) -> str:
        name = names.argument(self.argument)
        name = f"{name} and {names.argument(self.other)}, each" if self.other else name
        return _right_for(CHANGES[self.change].words.format(name=name))


@dataclass(frozen=True)
class ChangedAxis(Supposed, doubt=""):
    """A tensor is changed along one of its axes, counted from its end. change: a name in ALONG_AN_AXIS."""

    change: str
    axis: int
    axes: int

    @property
    def name(self) -> str:
        return self.change

    @property
    def blunt(self) -> bool:
        return self.change in BLANKED

    def changed(self, value: Any) -> Any:
        if not isinstance(value, Tensor) or value.ndim < self.axes - self.axis:
            return None
        return ALONG_AN_AXIS[self.change].made(value, self.axis - self.axes)

    def say(self, names: Names) -> str:
        lines, line = along(self.axis, self.axes)
        words = ALONG_AN_AXIS[self.change].words
        return _right_for(words.format(name=names.argument(self.argument), axis=self.axis, lines=lines, line=line))


@dataclass(frozen=True)
class ExchangedAxes(Supposed, name="turned", doubt=""):
    """Two axes of a tensor are exchanged. and_back: then those of the result."""

    axis: int
    second: int
    and_back: bool = False

    def changed(self, value: Any) -> Any:
        fits = isinstance(value, Tensor) and value.ndim > self.second
        return value.transpose(self.axis, self.second) if fits else None

    def back(self, result: Any) -> Any:
        if not self.and_back or not isinstance(result, Tensor):
            return result
        if result.ndim <= max(self.axis, self.second):
            return Raised("IndexError", "")
        return result.transpose(self.axis, self.second)

    def say(self, names: Names) -> str:
        name = names.argument(self.argument)
        if self.and_back:
            return (
                f"Something is done along the wrong axis: with axes {self.axis} and {self.second} of {name} exchanged, "
                "and exchanged back in the result, your values are the correct ones."
            )
        return _right_for(f"{name} with its axes {self.axis} and {self.second} exchanged")


def suppositions(asked: Sequence[Outcome]) -> Iterator[Supposed]:
    """All suppositions that apply to the arguments of the first failure."""
    arguments = asked[0].case.arguments
    for place, value in enumerate(arguments):
        if isinstance(value, (str, bool)):
            given = [o.case.arguments for o in asked if not o.probe.hidden and place < len(o.case.arguments)]
            shown = {arguments[place] for arguments in given}
            for meant in sorted(shown - {value}, key=repr) if value in shown and len(shown) < 5 else ():
                yield OtherValue(place, value, meant)
                yield ExchangedValues(place, value, meant)
    for place, value in enumerate(arguments):
        for other in range(place + 1, len(arguments)):
            if _exchangeable(value, arguments[other]):
                yield ExchangedArguments(place, other)
    for place, value in enumerate(arguments):
        for name, change in CHANGES.items():
            if changed_by(change, value) is not None:
                yield ChangedArgument(place, name)
        if isinstance(value, Tensor):
            yield from _of_tensor(arguments, place)
    for place, value in enumerate(arguments):
        for axis in range(value.ndim) if isinstance(value, Tensor) else ():
            if value.shape[axis] > 1:  # last, since what is one place off in a result comes of much
                yield ChangedAxis(place, "moved on", axis, value.ndim)
                yield ChangedAxis(place, "moved back", axis, value.ndim)


def _of_tensor(arguments: tuple, place: int) -> Iterator[Supposed]:
    """Further suppositions about one tensor: another one changed with it, and changes along each of its axes."""
    value = arguments[place]
    for other in range(place + 1, len(arguments)):
        for name, change in OF_NUMBERS.items():
            if _exchangeable(value, arguments[other]) and changed_by(change, value) is not None:
                yield ChangedArgument(place, name, other)
    for axis in range(value.ndim):
        names = ["first for all", "final for all", "flipped"]
        names = ["first hidden", "last hidden", *names] if value.dtype == torch.bool else names
        names = [*names, *BLANKED] if value.is_floating_point() else names
        for name in names if value.shape[axis] > 1 else ():
            yield ChangedAxis(place, name, axis, value.ndim)
        for second in range(axis + 1, value.ndim):
            yield ExchangedAxes(place, axis, second, and_back=True)
            yield ExchangedAxes(place, axis, second)


def _exchangeable(one: Any, other: Any) -> bool:
    if isinstance(one, Tensor) and isinstance(other, Tensor):
        return one.dtype == other.dtype and one.ndim == other.ndim
    return type(one) is type(other) is int
