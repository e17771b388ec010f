"""What was done to the right result afterwards, or left of it: a softmax too many, a limit, a sum over an axis.

A pattern is a kind and an axis (0 where it concerns none), for which the learner's tensor is the right one, changed.
"""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

Near = Callable[[Tensor, Tensor], bool]
DECIMALS = (0, 1, 2, 3, 4)


def done_afterward(got: Tensor, expected: Tensor, near: Near) -> Iterator[tuple[str, int]]:
    """All that explains the difference; none that leaves the right result as it is."""
    if got.shape == expected.shape:
        changed = [(kind, 0, change(expected)) for kind, change in CHANGES.items()]
        for axis in range(expected.ndim):
            changed.append(("softmax again", axis, expected.softmax(axis)))
            changed.append(("running sum", axis, expected.cumsum(axis)))
            changed.append(
                ("one hot", axis, torch.zeros_like(expected).scatter(axis, expected.argmax(axis, True), 1.0))
            )
            changed += [(kind, axis, change(expected, axis)) for kind, change in BY_LINE.items()]
        changed += [("rounded", 0, expected.round(decimals=decimals)) for decimals in DECIMALS]
        changed += [("cut below", 0, expected.clamp(min=got.min())), ("cut above", 0, expected.clamp(max=got.max()))]
    else:
        changed = list(_reduced(got, expected))
    for kind, axis, result in changed:
        if (
            result.shape == got.shape
            and near(got, result)
            and not (got.shape == expected.shape and near(result, expected))
        ):
            yield kind, axis


def _reduced(got: Tensor, expected: Tensor) -> Iterator[tuple[str, int, Tensor]]:
    """The right result with an axis of size 1 instead of a longer one; or one number (axis -1)."""
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
    """Every row brought back to the sum 1, as a softmax does after a mask."""
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
