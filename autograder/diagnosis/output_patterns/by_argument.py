"""Wrong results that are the correct one divided by, or plus, something computed from an argument: a length, a sum, a
number of items.

Each candidate is tried; a fact is reported only where every failure shows the same one.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from autograder.diagnosis.evidence import Fact, Names
from autograder.judging.closeness import near
from autograder.judging.observation import Outcome

ROUNDED = 1e-5  # by which one number, made by itself, may differ from what tensors make
MEASURES: dict[str, Callable[[Tensor, int], Tensor]] = {
    "length": lambda value, axis: value.norm(dim=axis, keepdim=True),
    "squared length": lambda value, axis: value.square().sum(axis, keepdim=True),
    "sum of sizes": lambda value, axis: value.abs().sum(axis, keepdim=True),
    "sum": lambda value, axis: value.sum(axis, keepdim=True),
    "largest": lambda value, axis: value.amax(axis, keepdim=True),
    "largest size": lambda value, axis: value.abs().amax(axis, keepdim=True),
}
COUNTS: dict[str, Callable[[float], float]] = {
    "itself": lambda count: count,
    "root": lambda count: count**0.5 if count > 0 else 0.0,
    "root of the root": lambda count: count**0.25 if count > 0 else 0.0,
    "square": lambda count: count**2,
    "one less": lambda count: count - 1,
    "one more": lambda count: count + 1,
}


MEASURED = {  # {1}: the argument; {2}: its axis; {0}: whether it is a size of it
    "length": "the length (the root of the sum of squares) of {1} along {2}",
    "squared length": "the sum of squares of {1} along {2}",
    "sum of sizes": "the sum of the absolute values of {1} along {2}",
    "sum": "the sum of {1} along {2}",
    "largest": "the largest number of {1} along {2}",
    "largest size": "the largest absolute value of {1} along {2}",
    "count itself": "{0}{1}",
    "count root": "the root of {0}{1}",
    "count root of the root": "the root of the root of {0}{1}",
    "count square": "the square of {0}{1}",
    "count one less": "one less than {0}{1}",
    "count one more": "one more than {0}{1}",
}
FROM_THE_END = {0: "its last axis", 1: "its last axis but one", 2: "its last axis but two"}


def measured(measure: str, argument: str, axis: int) -> str:
    """A measure of an argument in words. axis: counted from the end, 0 is the last; -1 for a number."""
    words = FROM_THE_END.get(axis, "an earlier axis")
    size = "" if axis < 0 else f"the size of {words.replace('its', 'the')} of "
    return MEASURED[measure].format(size, argument, words)


@dataclass(frozen=True)
class Added(Fact, exact=True, doubt=""):
    """The correct result plus or minus an argument."""

    argument: int
    taken_away: bool = False

    @property
    def name(self) -> str:
        return f"argument {'taken away' if self.taken_away else 'added'}"

    def say(self, names: Names) -> str:
        how = "taken away from it" if self.taken_away else "added to it"
        return f"Your result is the correct one with {names.argument(self.argument)} {how}."


@dataclass(frozen=True)
class MoreOrLess(Fact, exact=True, doubt=""):
    """Every number is too large or too small by a measure of an argument."""

    argument: int
    measure: str
    axis: int
    less: bool

    @property
    def name(self) -> str:
        return f"{'less' if self.less else 'more'} by {self.measure}"

    def say(self, names: Names) -> str:
        by = measured(self.measure, names.argument(self.argument), self.axis)
        return f"Every number is too {'small' if self.less else 'large'} by {by}."


@dataclass(frozen=True)
class Quotient(Fact, exact=True, doubt="It looks as if "):
    """Every number is divided or multiplied by a measure of an argument, with the opposite sign if `turned`."""

    argument: int
    measure: str
    axis: int
    multiplied: bool
    turned: bool

    @property
    def name(self) -> str:
        how = "multiplied" if self.multiplied else "divided"
        return f"{'turned, ' if self.turned else ''}{how} by {self.measure}"

    def say(self, names: Names) -> str:
        how = "multiplied by" if self.multiplied else "divided by"
        by = measured(self.measure, names.argument(self.argument), self.axis)
        turned = " and with its sign changed" if self.turned else ""
        return f"Every number is the correct one, {how} {by}{turned}."


def by_argument(got: Tensor, expected: Tensor, outcome: Outcome) -> Iterator[Fact]:
    """Every number is the correct one, divided or multiplied by a property of an argument, or plus this property."""
    if got.shape != expected.shape or not got.numel() or not bool(got.isfinite().all()):
        return
    arguments = outcome.case.arguments
    floats = [(place, value) for place, value in enumerate(arguments) if _is_numbers(value)]
    for place, value in floats:
        value = value.detach().to(torch.float64)
        for taken_away, more in ((False, value), (True, -value)):
            if _fits(more, got) and bool(more.any()) and near(got, expected + more, outcome):
                yield Added(place, taken_away)
    for place, axis, count in _counts(arguments):
        for name in ("itself", "root"):
            for less, more in ((False, COUNTS[name](count)), (True, -COUNTS[name](count))):
                if more and near(got, expected + more, outcome):
                    yield MoreOrLess(place, f"count {name}", axis, less)
    if turned := not bool((got * expected > 1e-9).any()):
        got = -got
    if bool((got * expected < -1e-9).any()):  # neither lengths nor sizes turn a sign around
        return
    for place, value in floats:
        for axis in range(value.ndim):
            for name, measure in MEASURES.items():
                for spread in _spread(measure(value.detach().to(torch.float64), axis), axis, got):
                    for multiplied in _quotients(got, expected, outcome, spread):
                        yield Quotient(place, name, value.ndim - 1 - axis, multiplied, turned)
    for place, axis, count in _counts(arguments):
        for name, of in COUNTS.items():
            if of(count) > 0:
                for multiplied in _quotients(got, expected, outcome, torch.tensor(of(count))):
                    yield Quotient(place, f"count {name}", axis, multiplied, turned)


def _quotients(got: Tensor, expected: Tensor, outcome: Outcome, divisor: Tensor) -> Iterator[bool]:
    """Whether the correct result is multiplied by it (True) or divided by it (False); nothing if neither."""
    if bool((divisor < 0).any()) or not bool((divisor > 0).any()) or bool((divisor == 1).all()):
        return
    if not _may_be(got, expected, outcome, divisor):
        return
    divided = torch.where(divisor > 0, expected / divisor, got)  # what was done about a division by 0 is another matter
    for multiplied, made in ((False, divided), (True, expected * divisor)):
        if near(got, made, outcome):
            yield multiplied


def _may_be(got: Tensor, expected: Tensor, outcome: Outcome, divisor: Tensor) -> bool:
    """Whether the largest number of the correct result, multiplied or divided by its divisor, is the learner's number
    there. This quick test excludes most divisors."""
    place = int(expected.abs().argmax())
    wanted, there = expected.flatten()[place].item(), got.flatten()[place].item()
    by = divisor.expand(got.shape).flatten()[place].item()
    rtol, atol = 2 * outcome.probe.rtol + ROUNDED, 2 * outcome.probe.atol
    return by == 0 or any(not abs(made - there) > atol + rtol * abs(made) for made in (wanted / by, wanted * by))


def _counts(arguments: tuple[Any, ...]) -> Iterator[tuple[int, int, float]]:
    """Sizes of axes, and numbers (axis -1), by the position of the argument."""
    for place, value in enumerate(arguments):
        if isinstance(value, Tensor):
            yield from ((place, axis, size) for axis, size in enumerate(reversed(value.shape)))
        elif type(value) in (int, float):
            yield place, -1, value


def _spread(measured: Tensor, axis: int, like: Tensor) -> Iterator[Tensor]:
    """One number for each line of an argument, in shapes that broadcast with a result: in its own axis, as rows, as
    columns."""
    seen = []
    flat = measured.squeeze(axis)
    for laid in (measured, flat, flat.unsqueeze(-1), flat.unsqueeze(-2) if flat.ndim else flat):
        if _fits(laid, like) and tuple(laid.shape) not in seen:
            seen.append(tuple(laid.shape))
            yield laid


def _fits(value: Tensor, like: Tensor) -> bool:
    if value.ndim > like.ndim:
        return False
    sizes = zip(reversed(value.shape), reversed(like.shape), strict=False)
    return all(size in (1, wanted) for size, wanted in sizes)


def _is_numbers(value: Any) -> bool:
    return isinstance(value, Tensor) and value.is_floating_point() and 0 < value.numel() <= 10**5
