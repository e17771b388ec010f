"""How a wrong result goes with the right one by way of an argument: divided by its lengths, or with it added on top.

What a line is divided by wrongly is most often something of the arguments: a length, a sum, how many there are of
something. Each of them is tried; a fact is reported only where every failure shows the same one.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from autograder.diagnosis.evidence import Noticed
from autograder.judging.closeness import near
from autograder.judging.observation import Outcome

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


def by_argument(got: Tensor, expected: Tensor, outcome: Outcome) -> Iterator[Noticed]:
    """Every number is the right one, divided by or multiplied with a property of an argument; or that one is added.

    The axis of a fact is counted from the end: 0 is the last.
    """
    if got.shape != expected.shape or not bool(got.isfinite().all()):
        return
    arguments = outcome.case.arguments
    floats = [(place, value) for place, value in enumerate(arguments) if _is_numbers(value)]
    for place, value in floats:
        value = value.detach().to(torch.float64)
        for kind, more in (("added", value), ("taken away", -value)):
            if _fits(more, got) and bool(more.any()) and near(got, expected + more, outcome):
                yield Noticed(f"argument {kind}", argument=place)
    for place, axis, count in _counts(arguments):
        for name in ("itself", "root"):
            for kind, more in (("more", COUNTS[name](count)), ("less", -COUNTS[name](count))):
                if more and near(got, expected + more, outcome):
                    yield Noticed(f"{kind} by count {name}", argument=place, axis=axis)
    if turned := not bool((got * expected > 1e-9).any()):
        got = -got
    if bool((got * expected < -1e-9).any()):  # neither lengths nor sizes turn a sign around
        return
    for place, value in floats:
        for axis in range(value.ndim):
            for name, measure in MEASURES.items():
                for spread in _spread(measure(value.detach().to(torch.float64), axis), axis, got):
                    found = _quotient(got, expected, outcome, spread, name, place, value.ndim - 1 - axis)
                    yield from _named(found, turned)
    for place, axis, count in _counts(arguments):
        for name, of in COUNTS.items():
            if of(count) > 0:
                found = _quotient(got, expected, outcome, torch.tensor(of(count)), f"count {name}", place, axis)
                yield from _named(found, turned)


def _named(found: Iterator[Noticed], turned: bool) -> Iterator[Noticed]:
    return (replace(fact, kind=f"turned, {fact.kind}") if turned else fact for fact in found)


def _quotient(
    got: Tensor, expected: Tensor, outcome: Outcome, divisor: Tensor, name: str, place: int, axis: int
) -> Iterator[Noticed]:
    if bool((divisor < 0).any()) or not bool((divisor > 0).any()) or bool((divisor == 1).all()):
        return
    divided = torch.where(divisor > 0, expected / divisor, got)  # what was done about a division by 0 is another matter
    for kind, made in (("divided", divided), ("multiplied", expected * divisor)):
        if near(got, made, outcome):
            yield Noticed(f"{kind} by {name}", argument=place, axis=axis)


def _counts(arguments: tuple[Any, ...]) -> Iterator[tuple[int, int, float]]:
    """Sizes of axes, and plain numbers (axis -1), by the argument's place."""
    for place, value in enumerate(arguments):
        if isinstance(value, Tensor):
            yield from ((place, axis, size) for axis, size in enumerate(reversed(value.shape)))
        elif type(value) in (int, float):
            yield place, -1, value


def _spread(measured: Tensor, axis: int, like: Tensor) -> Iterator[Tensor]:
    """One number for each line of an argument, laid out to meet a result: in its own place, as rows, as columns."""
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
