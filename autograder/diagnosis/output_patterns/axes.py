"""Patterns of axes: exchanged, missing or extra, constant along one axis, or wrong at one position of an axis."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations, permutations

import torch
from torch import Tensor

from autograder.diagnosis.evidence import FEWEST, AlongAxis, Fact, Names, seen
from autograder.judging.closeness import close, near
from autograder.judging.observation import Outcome

CONSTANT = seen("constant", "All numbers in your result are equal.")
LEFT_OVER_DIAGONAL = seen(
    "left over diagonal",
    "There is an extra axis: every item was combined with every other, and the correct values are on the diagonal, "
    "where matching items are combined.",
    exact=True,
)
ONLY_THE_DIAGONAL = seen("only the diagonal", "Only the diagonal is wrong.")
ALL_BUT_THE_DIAGONAL = seen("all but the diagonal", "Only the diagonal is correct.")
ONE_TOO_MANY = seen(
    "an axis of 1 too many", "The values are correct, but there is an extra axis of size 1.", exact=True, once=True
)
ONE_MISSING = seen(
    "an axis of 1 missing", "The values are correct, but an axis of size 1 is missing.", exact=True, once=True
)
ANOTHER_SHAPE = seen(
    "another shape",
    "These are the correct values in the correct order, but in a different shape.",
    exact=True,
    once=True,
)


@dataclass(frozen=True)
class Transposed(Fact, name="transposed", exact=True):
    """Two axes are exchanged."""

    axis: int
    other: int

    def say(self, names: Names) -> str:
        return f"These are the correct values with axes {self.axis} and {self.other} exchanged."


def transposed(got: Tensor, expected: Tensor, outcome: Outcome) -> Iterator[Fact]:
    """Two axes are exchanged."""
    for order in permutations(range(expected.ndim)) if 2 <= expected.ndim <= 4 else ():
        moved = [axis for axis, source in enumerate(order) if axis != source]
        if len(moved) == 2 and near(got, expected.permute(order), outcome):
            yield Transposed(*moved)


@dataclass(frozen=True)
class Alike(AlongAxis, name="alike"):
    """All items along an axis are equal."""

    def say(self, names: Names) -> str:
        return f"All {self.lines} are the same in your result."


def alike(got: Tensor, expected: Tensor, outcome: Outcome) -> Iterator[Fact]:
    """All items along an axis are equal, where those of the correct result differ."""
    if got.shape != expected.shape:
        return
    if got.numel() >= FEWEST and near(got, got.flatten()[0].expand_as(got), outcome):
        yield CONSTANT
    for axis in (axis for axis in range(got.ndim) if got.shape[axis] > 1):
        first, wanted = (table.narrow(axis, 0, 1).expand_as(table) for table in (got, expected))
        if near(got, first, outcome) and not near(expected, wanted, outcome):
            yield Alike(axis, got.ndim)


# --- too few or too many places, or axes ------------------------------------------------------------------------------


@dataclass(frozen=True)
class OnePlace(AlongAxis):
    """The first or the last position along an axis is missing or superfluous."""

    which: str = "first"
    missing: bool = True

    @property
    def name(self) -> str:
        return f"{'missing' if self.missing else 'too many'} {self.which}"

    @property
    def exact(self) -> bool:
        return self.missing

    def say(self, names: Names) -> str:
        if self.missing:
            return f"The {self.which} {self.line} is missing; the others are correct."
        return f"There is one {self.line} too many, the {self.which}; the others are correct."


@dataclass(frozen=True)
class CutShort(AlongAxis, name="cut short"):
    """Only the beginning of the correct result."""

    def say(self, names: Names) -> str:
        return f"Your result is the beginning of the correct one: it is cut short along axis {self.axis}."


@dataclass(frozen=True)
class GoesOn(AlongAxis, name="goes on"):
    """The correct result, followed by more."""

    def say(self, names: Names) -> str:
        return f"Your result begins with the correct one, and continues after it along axis {self.axis}."


REDUCTIONS: dict[str, Callable[[Tensor, int], Tensor]] = {
    "first": lambda table, axis: table.select(axis, 0),
    "last": lambda table, axis: table.select(axis, -1),
    "sum": lambda table, axis: table.sum(axis),
    "mean": lambda table, axis: table.mean(axis),
    "largest": lambda table, axis: table.amax(axis),
}
REDUCED = {
    "sum": "{0} added up along axis {1}",
    "mean": "{0} averaged along axis {1}",
    "largest": "the largest number of {0} along axis {1}",
    "first": "the first slice of {0} along axis {1}",
    "last": "the last slice of {0} along axis {1}",
}


@dataclass(frozen=True)
class Reduced(AlongAxis):
    """An axis was reduced, or was not reduced although reducing it gives the correct result."""

    how: str = "sum"
    left_over: bool = False

    @property
    def name(self) -> str:
        return f"left over {self.how}" if self.left_over else self.how

    @property
    def exact(self) -> bool:
        return self.how in ("sum", "mean")

    def say(self, names: Names) -> str:
        if self.left_over:
            return f"There is an extra axis: the correct result is {REDUCED[self.how].format('yours', self.axis)}."
        return f"An axis is missing: your result is {REDUCED[self.how].format('the correct one', self.axis)}."


def cut(got: Tensor, expected: Tensor, outcome: Outcome) -> Iterator[Fact]:
    """One position too few or too many along an axis, the first or the last; or an axis that was reduced or left
    over."""
    for axis in range(expected.ndim) if got.ndim == expected.ndim else ():
        lengths = got.shape[axis], expected.shape[axis]
        if abs(lengths[0] - lengths[1]) == 1 and min(lengths) > 0:
            short, long = (got, expected) if lengths[0] < lengths[1] else (expected, got)
            for which, start in (("first", 1), ("last", 0)):
                if near(short, long.narrow(axis, start, min(lengths)), outcome):
                    yield OnePlace(axis, expected.ndim, which, missing=short is got)
        shorter = min(lengths)
        if lengths[0] != lengths[1] and shorter > 1:
            fact, short, long = (CutShort, got, expected) if shorter == lengths[0] else (GoesOn, expected, got)
            if near(short, long.narrow(axis, 0, shorter), outcome):
                yield fact(axis, expected.ndim)
    if abs(got.ndim - expected.ndim) == 1:
        small, large = sorted((got, expected), key=Tensor.dim)
        for axis in (axis for axis in range(large.ndim) if large.shape[axis]):
            for how, reduce in REDUCTIONS.items():
                if near(small, reduce(large, axis), outcome):
                    yield Reduced(axis, large.ndim, how, left_over=small is not got)
    if got.ndim == expected.ndim + 1:
        for one, two in combinations(range(got.ndim), 2):
            own = got.diagonal(dim1=one, dim2=two).movedim(-1, one)
            if got.shape[one] == got.shape[two] > 1 and near(own, expected, outcome):
                yield LEFT_OVER_DIAGONAL


def reshaped(got: Tensor, expected: Tensor, outcome: Outcome) -> Iterator[Fact]:
    """The correct numbers in the correct order, in another shape."""
    if got.shape == expected.shape or got.numel() != expected.numel():
        return
    if near(got.reshape(expected.shape), expected, outcome):
        ones = got.squeeze().shape == expected.squeeze().shape and got.ndim != expected.ndim
        if ones:
            yield ONE_TOO_MANY if got.ndim > expected.ndim else ONE_MISSING
        yield ANOTHER_SHAPE


class BySizes(AlongAxis):
    """Seen from the sizes of axes alone; among axes of equal size it may be either."""


@dataclass(frozen=True)
class AxesJoined(BySizes, name="axes joined", once=True):
    """Two axes were merged into one."""

    def say(self, names: Names) -> str:
        pair = f"Axes {self.axis} and {self.axis + 1}"
        return f"{pair} are one axis in your result: they were flattened and not split again."


@dataclass(frozen=True)
class AxisGone(BySizes, name="axis gone", once=True):
    """An axis of the correct result is missing."""

    def say(self, names: Names) -> str:
        return f"Axis {self.axis} of the correct result is missing: it was summed over, indexed or left out."


@dataclass(frozen=True)
class AxisTooMany(BySizes, name="axis too many", once=True):
    """An axis that the correct result does not have."""

    def say(self, names: Names) -> str:
        return (
            f"Your axis {self.axis} is one too many: sum over it, select from it, or combine each item only with its "
            "own partner."
        )


def of_another_shape(got: Tensor, expected: Tensor, outcome: Outcome) -> Iterator[Fact]:
    """Two axes merged into one, a missing axis, or a superfluous one, seen from the shapes alone."""
    short, long = (got, expected) if got.ndim < expected.ndim else (expected, got)
    if long.ndim != short.ndim + 1:
        return
    for axis in range(long.ndim):
        size, rest = long.shape[axis], (*long.shape[:axis], *long.shape[axis + 1 :])
        if short is got and axis < short.ndim:
            joined = (*long.shape[:axis], size * long.shape[axis + 1], *long.shape[axis + 2 :])
            if tuple(got.shape) == joined:
                yield AxesJoined(axis)
        if tuple(short.shape) == rest:
            yield AxisGone(axis) if short is got else AxisTooMany(axis)


# --- where it is wrong ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FirstOnly(AlongAxis, name="first only"):
    """Correct only for the first item of an axis, such as the first sentence."""

    rest_is_0: bool = False

    def say(self, names: Names) -> str:
        rest = " All others are 0: does a loop end too early, as with a `return` inside it?" if self.rest_is_0 else ""
        return f"Only the first {self.line} is correct.{rest}"


def _is_boolean(outcome: Outcome) -> bool:
    return getattr(outcome.expected.result, "dtype", None) == torch.bool


def first_only(got: Tensor, expected: Tensor, outcome: Outcome) -> Iterator[Fact]:
    """Correct only for the first sentence, or only for the first position along another axis."""
    for axis in range(got.ndim) if got.shape == expected.shape and got.ndim >= 2 else ():
        (got_first, *got_rest), (first, *rest) = got.unbind(axis), expected.unbind(axis)
        places = (fact.axis for fact in one_place(got, expected, outcome))
        elsewhere = any(got.shape[other] > 1 for other in places if other != axis)
        if rest and not elsewhere and near(got_first, first, outcome) and not any(map(close(outcome), got_rest, rest)):
            yield FirstOnly(
                axis, got.ndim, rest_is_0=not (_is_boolean(outcome) or any(bool(each.any()) for each in got_rest))
            )


@dataclass(frozen=True)
class OnlyThe(AlongAxis):
    """All errors are at the first, or at the last, position of an axis."""

    which: str = "first"

    @property
    def name(self) -> str:
        return f"only the {self.which}"

    def say(self, names: Names) -> str:
        return f"Everything is correct except the {self.which} {self.line}."


def one_place(got: Tensor, expected: Tensor, outcome: Outcome) -> Iterator[OnlyThe]:
    """All errors are at the first, or at the last, position of an axis."""
    if got.shape != expected.shape:
        return
    wrong = ~torch.isclose(got, expected, rtol=outcome.probe.rtol, atol=outcome.probe.atol)
    for axis in reversed(range(got.ndim)):
        places = wrong.movedim(axis, 0).flatten(1).any(1) if got.ndim > 1 else wrong
        length = got.shape[axis]
        for which, place in (("first", 0), ("last", length - 1)):
            if length and bool(places[place]) and int(places.sum()) == 1:
                yield OnlyThe(axis, got.ndim, which)


def diagonal(got: Tensor, expected: Tensor, outcome: Outcome) -> Iterator[Fact]:
    """Square matrices that are wrong only on their diagonal, or correct only there."""
    square = got.ndim >= 2 and got.shape == expected.shape and got.shape[-1] == got.shape[-2] >= FEWEST
    if square:
        right = torch.isclose(got, expected, rtol=outcome.probe.rtol, atol=outcome.probe.atol, equal_nan=True)
        on = torch.eye(got.shape[-1], dtype=torch.bool).expand_as(right)
        if bool(right[~on].all()):
            yield ONLY_THE_DIAGONAL
        if bool(right[on].all()) and not bool(right[~on].any()):
            yield ALL_BUT_THE_DIAGONAL
