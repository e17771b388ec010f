"""Patterns of a further step: the correct result after a softmax too many, a limit or a sum over an axis."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from autograder.diagnosis.evidence import Fact, Names
from autograder.judging.closeness import near
from autograder.judging.observation import Outcome

DECIMALS = (0, 1, 2, 3, 4)
OFTEN_BY_CHANCE = ("rounded", "one hot", "cut below", "cut above")


@dataclass(frozen=True)
class Afterward(Fact):
    """How the correct result was changed, along an axis (0 for none, -1 for all axes)."""

    how: str
    axis: int = 0

    @property
    def name(self) -> str:
        return f"afterward {self.how}"

    @property
    def exact(self) -> bool:
        return self.how in CHANGES

    @property
    def settles(self) -> bool:
        return self.how not in OFTEN_BY_CHANCE

    @property
    def along_an_axis(self) -> bool:
        """Whether each line along its axis is changed by itself."""
        return self.how in BY_LINE or self.how in ("softmax again", "running sum", "one hot")

    def say(self, names: Names) -> str:
        return SENTENCES[self.how].format("all positions" if self.axis < 0 else f"axis {self.axis}", self.axis)


def afterward(got: Tensor, expected: Tensor, outcome: Outcome) -> Iterator[Fact]:
    """All changes that explain the difference."""
    if bool(got.isnan().any()):
        return
    changed = _changed(got, expected) if got.shape == expected.shape else list(_reduced(got, expected))
    if getattr(outcome.expected.result, "dtype", None) == torch.bool:  # which have no mean and no square
        changed = [each for each in changed if each[0] in OF_BOOLEANS]
    for how, axis, result in changed:
        if (
            result.shape == got.shape
            and near(got, result, outcome)
            and not (got.shape == expected.shape and near(result, expected, outcome))
        ):
            yield Afterward(how, axis)


def _changed(got: Tensor, expected: Tensor) -> list[tuple[str, int, Tensor]]:
    """The correct result, changed in each way."""
    changed = [(how, 0, change(expected)) for how, change in CHANGES.items()]
    for axis in range(expected.ndim):
        changed.append(("softmax again", axis, expected.softmax(axis)))
        changed.append(("running sum", axis, expected.cumsum(axis)))
        changed.append(("one hot", axis, torch.zeros_like(expected).scatter(axis, expected.argmax(axis, True), 1.0)))
        changed += [(how, axis, change(expected, axis)) for how, change in BY_LINE.items()]
    changed += [("rounded", 0, expected.round(decimals=decimals)) for decimals in DECIMALS]
    if got.unique().numel() > 1:  # one number everywhere may be a limit, and much else
        changed += [("cut below", 0, expected.clamp(min=got.min())), ("cut above", 0, expected.clamp(max=got.max()))]
    return changed


def _reduced(got: Tensor, expected: Tensor) -> Iterator[tuple[str, int, Tensor]]:
    """The correct result reduced to size 1 along an axis, or to one number (axis -1)."""
    if got.ndim == 0 and expected.ndim > 1:
        yield "summed", -1, expected.sum()
        yield "averaged", -1, expected.mean()
    for axis in range(expected.ndim) if got.ndim == expected.ndim else ():
        if expected.shape[axis] > 1:
            yield "summed", axis, expected.sum(axis, keepdim=True)
            yield "averaged", axis, expected.mean(axis, keepdim=True)
            yield "first alone", axis, expected.narrow(axis, 0, 1)
            yield "last alone", axis, expected.narrow(axis, expected.shape[axis] - 1, 1)


def _triangle(cut: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    return lambda table: cut(table) if table.ndim >= 2 else table


def _without_diagonal(table: Tensor) -> Tensor:
    return table * (1 - torch.eye(*table.shape[-2:], dtype=table.dtype))


def _shared(table: Tensor) -> Tensor:
    """Every row normalized to the sum 1, as by a softmax after a mask."""
    return table / table.sum(-1, keepdim=True)


CHANGES: dict[str, Callable[[Tensor], Tensor]] = {
    "square": torch.square,
    "root": torch.sqrt,
    "logarithm": torch.log,
    "exponential": torch.exp,
    "reciprocal": torch.reciprocal,
    "no negative ones": torch.relu,
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "degrees": lambda x: x.clamp(-1, 1).acos().rad2deg(),
    "lower triangle": _triangle(torch.tril),
    "upper triangle": _triangle(torch.triu),
    "lower triangle shared": _triangle(lambda table: _shared(table.tril())),
    "diagonal gone": _triangle(_without_diagonal),
    "all but the diagonal shared": _triangle(lambda table: _shared(_without_diagonal(table))),
    "upper triangle shared": _triangle(lambda table: _shared(table.triu())),
}
OF_BOOLEANS = ("lower triangle", "upper triangle", "diagonal gone", "first alone", "last alone")
_Change = Callable[[Tensor, int], Tensor]
BY_LINE: dict[str, _Change] = {  # what is done to each line along an axis
    "standardized": lambda x, axis: (x - x.mean(axis, True)) / x.std(axis, correction=0, keepdim=True),
    "brought to length 1": lambda x, axis: x / x.norm(dim=axis, keepdim=True),
    "centered": lambda x, axis: x - x.mean(axis, True),
    "shares": lambda x, axis: x / x.sum(axis, True),
    "shares of squares": lambda x, axis: x.square() / x.square().sum(axis, True),
    "shares of cubes": lambda x, axis: x**3 / (x**3).sum(axis, True),
    "shares of roots": lambda x, axis: x.sqrt() / x.sqrt().sum(axis, True),
    "shares of reciprocals": lambda x, axis: x.reciprocal() / x.reciprocal().sum(axis, True),
    "by the largest": lambda x, axis: x / x.amax(axis, True),
    "running sum from the end": lambda x, axis: x.flip(axis).cumsum(axis).flip(axis),
    "from 0 to 1": lambda x, axis: (x - x.amin(axis, True)) / (x.amax(axis, True) - x.amin(axis, True)),
}
SENTENCES = {  # {0}: the axis in words; {1}: its number
    "softmax again": "Your result is the correct one after one more softmax.",
    "one hot": "Each row is 1 at the position of the correct row's largest number, and 0 elsewhere.",
    "rounded": "These are the correct values, rounded.",
    "cut below": "All numbers below a limit were replaced by that limit, as by a clamp.",
    "cut above": "All numbers above a limit were replaced by that limit, as by a clamp.",
    **{
        kind: f"Every number is the {kind} of the correct one."
        for kind in ("square", "root", "logarithm", "exponential", "reciprocal")
    },
    "no negative ones": "Where the correct value is negative, yours is 0; all others are correct.",
    "sigmoid": "Your result is the correct one after a sigmoid.",
    "tanh": "Your result is the correct one after tanh.",
    "degrees": "These are the angles, in degrees, whose cosines are the correct values.",
    "lower triangle": "Above the diagonal you have only 0 or False; all other entries are correct.",
    "upper triangle": "Below the diagonal you have only 0 or False; all other entries are correct.",
    "lower triangle shared": "Above the diagonal you have 0, and the rest of each row was normalized again: that is a "
    "causal mask, which hides later positions.",
    "upper triangle shared": "Below the diagonal you have 0, and the rest of each row was normalized again: a mask "
    "hides earlier positions.",
    "diagonal gone": "The diagonal is 0; everything else is correct.",
    "all but the diagonal shared": "The diagonal is 0, and the rest of each row was normalized again: something hides "
    "each position from itself.",
    "summed": "These are the correct values, summed over {0}.",
    "standardized": "Your result equals the correct one, normalized to mean 0 and standard deviation 1 along axis {1}.",
    "brought to length 1": "Your result equals the correct one, divided along axis {1} by its length, the root of the "
    "sum of squares.",
    "centered": "Your result equals the correct one minus its mean along axis {1}.",
    "shares": "Your result equals the correct one divided by its sum along axis {1}.",
    "shares of squares": "Along axis {1} your numbers are in proportion to the squares of the correct ones.",
    "shares of cubes": "Along axis {1} your numbers are in proportion to the third powers of the correct ones.",
    "shares of roots": "Along axis {1} your numbers are in proportion to the roots of the correct ones.",
    "shares of reciprocals": "Along axis {1} your numbers are large where the correct ones are small, in proportion to "
    "1 divided by them.",
    "by the largest": "Your result equals the correct one divided by its largest value along axis {1}.",
    "running sum": "Each number is the sum of the correct ones up to it along axis {1}: should a sum start again at 0?",
    "running sum from the end": "Each number is the sum of the correct ones from it to the end along axis {1}.",
    "from 0 to 1": "Your result equals the correct one, rescaled along axis {1} so that the smallest value is 0 and "
    "the largest 1.",
    "averaged": "These are the correct values, averaged over {0}.",
    "first alone": "Only the first item along {0} was returned.",
    "last alone": "Only the last item along {0} was returned.",
}
