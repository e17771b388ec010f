"""Patterns of order: the right numbers moved by one position, backward, or at other positions."""

from collections.abc import Iterator
from dataclasses import dataclass

from torch import Tensor

from autograder.diagnosis.evidence import AlongAxis, Fact, Names, seen
from autograder.diagnosis.output_patterns.scale import comparable
from autograder.judging.closeness import near
from autograder.judging.observation import Outcome

OTHER_PLACES = seen(
    "other places",
    "All the correct values are there, but at different positions: did you use view or reshape where axes should be "
    "transposed, or are two orders mixed up?",
)


@dataclass(frozen=True)
class Shifted(AlongAxis, name="shifted"):
    """Shifted by one position."""

    def say(self, names: Names) -> str:
        return f"These are the correct values moved by one position along axis {self.axis}."


def shifted(got: Tensor, expected: Tensor, outcome: Outcome) -> Iterator[Fact]:
    """Shifted by one position along an axis, with anything at the vacated position."""
    for axis in range(got.ndim) if got.shape == expected.shape else ():
        length = got.shape[axis]
        for here in (1, 0) if length > 1 else ():
            if near(got.narrow(axis, here, length - 1), expected.narrow(axis, 1 - here, length - 1), outcome):
                yield Shifted(axis, got.ndim)


@dataclass(frozen=True)
class Reversed(AlongAxis, name="reversed", exact=True):
    """In reverse order."""

    def say(self, names: Names) -> str:
        return f"These are the correct values in the opposite order along axis {self.axis}."


def reverse(got: Tensor, expected: Tensor, outcome: Outcome) -> Iterator[Fact]:
    """In reverse order along an axis."""
    for axis in range(got.ndim) if got.shape == expected.shape else ():
        if got.shape[axis] > 1 and near(got, expected.flip(axis), outcome):
            yield Reversed(axis, got.ndim)


@dataclass(frozen=True)
class OtherOrder(AlongAxis, name="other order"):
    """In another order along an axis."""

    def say(self, names: Names) -> str:
        return f"These are the correct values in a different order along axis {self.axis}."


def elsewhere(got: Tensor, expected: Tensor, outcome: Outcome) -> Iterator[Fact]:
    """The correct numbers in another order, along an axis or overall."""
    if comparable(got, expected):
        for axis in (axis for axis in range(got.ndim) if got.shape[axis] > 1):
            if near(got.sort(axis).values, expected.sort(axis).values, outcome):
                yield OtherOrder(axis, got.ndim)
        if near(got.flatten().sort().values, expected.flatten().sort().values, outcome):
            yield OTHER_PLACES
