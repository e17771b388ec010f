"""Patterns of size: a constant factor or amount, other signs, infinity, nearly right."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from autograder.catalogue.numbers import number
from autograder.diagnosis.evidence import Fact, Names, seen
from autograder.judging.closeness import near
from autograder.judging.observation import Outcome

MUCH = 0.1  # of an error: a pattern leaves less than this of it
LITTLE = 0.01  # of a number: by no more than this are those wrong that are nearly right
INFINITE = seen(
    "infinite",
    "The result is infinite: an exponential or a quotient became too large, the logarithm of 0 was taken, or an "
    "infinity that hides something is still there.",
    once=True,
)
SIGNS = seen("signs", "The absolute values of all numbers are correct; some of the signs are not.", exact=True)
AFFINE = seen("affine", "Every number is the correct one times a constant, plus a second constant.", exact=True)
OFFSET_BY_LINE = seen(
    "offset by line",
    "Along one axis all numbers are wrong by the same amount, which differs from line to line: something that a whole "
    "line has in common is wrong, such as its sum, its maximum or a bias.",
)
SCALED_BY_LINE = seen(
    "scaled by line",
    "Along one axis all numbers are the correct ones times one number, which differs from line to line: the factor or "
    "divisor of a whole line is wrong.",
)
LINES_OF_0 = seen(
    "lines of 0",
    "Along one axis some lines are 0 from end to end, and the others are correct: does a loop end too early, as with a "
    "`return` inside it, or do these lines never get a value?",
)
OFFSET_BY_CHECK = seen(
    "offset by check",
    "All numbers are wrong by the same amount, another one in each check: something that all of them have in common is "
    "wrong, such as a sum, a maximum or a bias.",
)
SCALED_BY_CHECK = seen(
    "scaled by check",
    "All numbers are the correct ones times one number, another one in each check: the factor or divisor of the whole "
    "result is wrong.",
)
NEARLY = seen(
    "nearly",
    "Your numbers are nearly correct, wrong by less than one percent: was something small added, such as an epsilon, "
    "or a number rounded or written with too few digits?",
    once=True,
)


def infinite(got: Tensor, expected: Tensor, outcome: Outcome) -> Iterator[Fact]:
    """Infinity where the correct result is finite."""
    if got.isinf().any() and not got.isnan().any():
        yield INFINITE


@dataclass(frozen=True)
class Scaled(Fact, name="scaled", exact=True):
    """A constant multiple of the correct result."""

    factor: float

    def say(self, names: Names) -> str:
        if self.factor == -1:
            return "Every number has the opposite sign."
        return f"Every number is {'a constant' if names.secret else number(self.factor)} times the correct one."


def four_digits(value: float) -> float:
    """The number with four significant digits, so that nearly equal ones are equal."""
    return float(f"{value:.4g}")


def scaled(got: Tensor, expected: Tensor, outcome: Outcome) -> Iterator[Fact]:
    """A constant multiple of the correct result."""
    if comparable(got, expected) and bool(expected.any()):
        largest = expected.abs().flatten().argmax()
        factor = float(got.flatten()[largest] / expected.flatten()[largest])
        if abs(factor) > 1e-6 and abs(factor - 1) > LITTLE and near(got, factor * expected, outcome):
            yield Scaled(four_digits(factor))


@dataclass(frozen=True)
class Offset(Fact, name="offset", exact=True):
    """The correct result plus a constant."""

    amount: float

    def say(self, names: Names) -> str:
        more = "by the same amount" if names.secret else f"by {number(abs(self.amount))}"
        return f"Every number is too {'large' if self.amount > 0 else 'small'} {more}."


def offset(got: Tensor, expected: Tensor, outcome: Outcome) -> Iterator[Fact]:
    """The correct result plus a constant."""
    if comparable(got, expected):
        more = float((got - expected).flatten()[0])
        if near(got, expected + more, outcome) and not near(got, expected, outcome):  # as one part of a pair may be
            yield Offset(round(more, 4))


def affine(got: Tensor, expected: Tensor, outcome: Outcome) -> Iterator[Fact]:
    """A constant multiple of the correct result plus a constant."""
    if comparable(got, expected) and expected.unique().numel() > 1:
        ends = torch.stack([expected.argmax(), expected.argmin()])
        (at_high, at_low), (top, bottom) = got.flatten()[ends], expected.flatten()[ends]
        factor = (at_high - at_low) / (top - bottom)
        made = at_low + factor * (expected - bottom)
        if abs(float(factor)) > LITTLE and near(got, made, outcome) and _is_exact(got, made, expected):
            yield AFFINE


def by_line(got: Tensor, expected: Tensor, outcome: Outcome, least: int = 1) -> Iterator[Fact]:
    """Every line along an axis is the correct one plus a number or times a number, different for each line.

    least: numbers in a line; a line of one is a multiple of any other, so it shows nothing by itself.
    """
    boolean = getattr(outcome and outcome.expected.result, "dtype", None) == torch.bool
    if comparable(got, expected) and bool(got.any()) and not boolean:
        for axis in (axis for axis in range(got.ndim) if got.shape[axis] >= least):
            more = (got - expected).mean(axis, keepdim=True)
            times = (got * expected).sum(axis, keepdim=True) / expected.square().sum(axis, keepdim=True)
            for fact, made in ((OFFSET_BY_LINE, expected + more), (SCALED_BY_LINE, expected * times)):
                close = torch.allclose(got, made, rtol=1e-4, atol=1e-4 * float(got.abs().max()))
                if close and _is_exact(got, made, expected):
                    yield LINES_OF_0 if fact == SCALED_BY_LINE and _is_0_or_1(times) else fact


def _is_exact(got: Tensor, made: Tensor, expected: Tensor) -> bool:
    """Whether what is left of the error is small against the error itself, which may be as small as a tolerance."""
    return bool((got - made).abs().max() <= MUCH * (got - expected).abs().max())


def _is_0_or_1(factors: Tensor) -> bool:
    return bool(torch.minimum(factors.abs(), (factors - 1).abs()).nan_to_num().max() < 1e-4)


def by_check(got: Tensor, expected: Tensor, outcome: Outcome) -> Iterator[Fact]:
    """A result that is the correct one plus a number or times a number, different for each check."""
    if comparable(got, expected) and bool(got.any()):
        shifted = expected + (got - expected).mean()
        times = expected * (got * expected).sum() / expected.square().sum()
        if near(got, shifted, outcome) and _is_exact(got, shifted, expected):
            yield OFFSET_BY_CHECK
        if near(got, times, outcome) and _is_exact(got, times, expected):
            yield SCALED_BY_CHECK


def unsigned(got: Tensor, expected: Tensor, outcome: Outcome) -> Iterator[Fact]:
    """Correct except for the signs."""
    if got.shape == expected.shape and near(got.abs(), expected.abs(), outcome):
        yield SIGNS


def nearly(got: Tensor, expected: Tensor, outcome: Outcome) -> Iterator[Fact]:
    """Slightly wrong everywhere."""
    whole = outcome.difference.expected
    whole = isinstance(whole, Tensor) and not whole.is_floating_point()  # nothing small is added to an id
    if comparable(got, expected) and not whole:
        apart = (got - expected).abs()
        if bool((apart <= LITTLE * expected.abs() + outcome.probe.atol).all()):
            yield NEARLY


@dataclass(frozen=True)
class OneValue(Fact, name="one value"):
    """The same number wherever it is wrong."""

    value: float | bool

    def say(self, names: Names) -> str:
        shown = str(self.value) if isinstance(self.value, bool) else f"{self.value:g}"
        value = "the same value" if names.secret else shown
        return f"Wherever your result is wrong, it is {value}. Where in your code does that value come from?"


def one_value(got: Tensor, expected: Tensor, outcome: Outcome) -> Iterator[Fact]:
    """The same number wherever it is wrong; some positions are correct."""
    if got.shape == expected.shape:
        wrong = ~torch.isclose(got, expected, rtol=outcome.probe.rtol, atol=outcome.probe.atol)
        held = got[wrong].unique()
        if held.numel() == 1 and bool(held.isfinite()) and not bool(wrong.all()):
            boolean = getattr(outcome.expected.result, "dtype", None) == torch.bool
            yield OneValue(bool(held) if boolean else float(held))


def comparable(got: Tensor, expected: Tensor) -> bool:
    """Whether every number of a result has a counterpart in the correct one."""
    return got.shape == expected.shape and got.numel() > 0 and bool(got.isfinite().all())
