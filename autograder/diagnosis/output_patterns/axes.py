"""Patterns in which a tensor differs from the right one: axes exchanged, one place too few, a constant factor.

A pattern is given a result and the right one (both as float64) with their outcome, and yields the facts that it sees.
"""

from collections.abc import Callable, Iterator
from itertools import combinations, permutations
from typing import Any

import torch
from torch import Tensor

from autograder.diagnosis.evidence import FEWEST, Noticed
from autograder.diagnosis.output_patterns.by_argument import by_argument
from autograder.diagnosis.output_patterns.reductions import done_afterward
from autograder.judging.closeness import close, near
from autograder.judging.observation import Outcome

LITTLE = 0.01  # of a number: by no more than this are those wrong that are nearly right


def key(fact: Noticed) -> tuple:
    return fact.kind, fact.axis, fact.axes if fact.kind == "transposed" else None, fact.factor, fact.argument


def holds_infinity(value: Any) -> bool:
    return isinstance(value, Tensor) and not bool(value.isfinite().all())


def tensors(outcome: Outcome, part: int = 0) -> tuple[Tensor, Tensor, Outcome] | None:
    """Result and right result as float64; None where there are none.

    part: of a tuple, which, from 1; 0 is the first that differs.
    """
    got, expected = outcome.got.result, outcome.expected.result
    if isinstance(got, tuple) and isinstance(expected, tuple) and len(got) == len(expected):
        parts = [
            (one, other) for one, other in zip(got, expected, strict=True) if part or not near(one, other, outcome)
        ]
        got, expected = parts[max(part - 1, 0)] if len(parts) >= part and parts else (None, None)
    elif part:
        return None
    numbers = isinstance(got, Tensor) and isinstance(expected, Tensor) and not got.is_complex()
    if not numbers or got.numel() > 10**6 or holds_infinity(expected):
        return None
    return got.detach().to(torch.float64), expected.detach().to(torch.float64), outcome


def _transposed(got: Tensor, expected: Tensor, outcome: Outcome) -> Iterator[Noticed]:
    """Two axes have changed places."""
    for order in permutations(range(expected.ndim)) if 2 <= expected.ndim <= 4 else ():
        moved = [axis for axis, source in enumerate(order) if axis != source]
        if len(moved) == 2 and near(got, expected.permute(order), outcome):
            yield Noticed("transposed", axis=moved[0], axes=moved[1])


def _infinite(got: Tensor, expected: Tensor, outcome: Outcome) -> Iterator[Noticed]:
    """Infinity where the right result has none."""
    if got.isinf().any() and not got.isnan().any():
        yield Noticed("infinite")


def _alike(got: Tensor, expected: Tensor, outcome: Outcome) -> Iterator[Noticed]:
    """Everything along an axis is the same, where the right result differs."""
    if got.shape != expected.shape:
        return
    if got.numel() >= FEWEST and near(got, got.flatten()[0].expand_as(got), outcome):
        yield Noticed("constant")
    for axis in (axis for axis in range(got.ndim) if got.shape[axis] > 1):
        first, wanted = (table.narrow(axis, 0, 1).expand_as(table) for table in (got, expected))
        if near(got, first, outcome) and not near(expected, wanted, outcome):
            yield Noticed("alike", axis=axis, axes=got.ndim, size=got.shape[axis])


def _cut(got: Tensor, expected: Tensor, outcome: Outcome) -> Iterator[Noticed]:
    """One place too few or too many along an axis, the first or the last; or an axis that was added up or left over."""
    for axis in range(expected.ndim) if got.ndim == expected.ndim else ():
        lengths = got.shape[axis], expected.shape[axis]
        if abs(lengths[0] - lengths[1]) == 1 and min(lengths) > 0:
            short, long = (got, expected) if lengths[0] < lengths[1] else (expected, got)
            kind = "missing" if short is got else "too many"
            for which, start in (("first", 1), ("last", 0)):
                if near(short, long.narrow(axis, start, min(lengths)), outcome):
                    yield Noticed(f"{kind} {which}", axis=axis, axes=expected.ndim)
        shorter = min(lengths)
        if lengths[0] != lengths[1] and shorter > 1:
            kind, short, long = ("cut short", got, expected) if shorter == lengths[0] else ("goes on", expected, got)
            if near(short, long.narrow(axis, 0, shorter), outcome):
                yield Noticed(kind, axis=axis, axes=expected.ndim)
    if abs(got.ndim - expected.ndim) == 1:
        small, large = sorted((got, expected), key=Tensor.dim)
        before = "" if small is got else "left over "
        for axis in (axis for axis in range(large.ndim) if large.shape[axis]):
            for kind, reduce in REDUCTIONS.items():
                if near(small, reduce(large, axis), outcome):
                    yield Noticed(f"{before}{kind}", axis=axis, axes=large.ndim)
    if got.ndim == expected.ndim + 1:
        for one, two in combinations(range(got.ndim), 2):
            own = got.diagonal(dim1=one, dim2=two).movedim(-1, one)
            if got.shape[one] == got.shape[two] > 1 and near(own, expected, outcome):
                yield Noticed("left over diagonal")


REDUCTIONS: dict[str, Callable[[Tensor, int], Tensor]] = {
    "first": lambda table, axis: table.select(axis, 0),
    "last": lambda table, axis: table.select(axis, -1),
    "sum": lambda table, axis: table.sum(axis),
    "mean": lambda table, axis: table.mean(axis),
    "largest": lambda table, axis: table.amax(axis),
}


def _first_only(got: Tensor, expected: Tensor, outcome: Outcome) -> Iterator[Noticed]:
    """Right only for the first sentence, or only for the first position along another axis."""
    for axis in range(got.ndim) if got.shape == expected.shape and got.ndim >= 2 else ():
        (got_first, *got_rest), (first, *rest) = got.unbind(axis), expected.unbind(axis)
        one_place = any(got.shape[fact.axis] > 1 for fact in _one_place(got, expected, outcome) if fact.axis != axis)
        if rest and not one_place and near(got_first, first, outcome) and not any(map(close(outcome), got_rest, rest)):
            yield Noticed("first only", axis=axis, axes=got.ndim, size=got.shape[axis])


def _shifted(got: Tensor, expected: Tensor, outcome: Outcome) -> Iterator[Noticed]:
    """Moved by one place along an axis, whatever is where nothing came from."""
    for axis in range(got.ndim) if got.shape == expected.shape else ():
        length = got.shape[axis]
        for by in (1, -1) if length > 1 else ():
            here, there = (1, 0) if by == 1 else (0, 1)
            if near(got.narrow(axis, here, length - 1), expected.narrow(axis, there, length - 1), outcome):
                yield Noticed("shifted", axis=axis, axes=got.ndim, size=by)


def _reversed(got: Tensor, expected: Tensor, outcome: Outcome) -> Iterator[Noticed]:
    """In the opposite order along an axis."""
    for axis in range(got.ndim) if got.shape == expected.shape else ():
        if got.shape[axis] > 1 and near(got, expected.flip(axis), outcome):
            yield Noticed("reversed", axis=axis, axes=got.ndim)


def _scaled(got: Tensor, expected: Tensor, outcome: Outcome) -> Iterator[Noticed]:
    """A constant multiple of the right result."""
    if _comparable(got, expected) and bool(expected.any()):
        largest = expected.abs().flatten().argmax()
        factor = float(got.flatten()[largest] / expected.flatten()[largest])
        if abs(factor) > 1e-6 and abs(factor - 1) > LITTLE and near(got, factor * expected, outcome):
            yield Noticed("scaled", factor=round(factor, 4))


def _offset(got: Tensor, expected: Tensor, outcome: Outcome) -> Iterator[Noticed]:
    """The right result and a constant more."""
    if _comparable(got, expected):
        more = float((got - expected).flatten()[0])
        if near(got, expected + more, outcome) and not near(got, expected, outcome):  # as one part of a pair may be
            yield Noticed("offset", factor=round(more, 4))


def _affine(got: Tensor, expected: Tensor, outcome: Outcome) -> Iterator[Noticed]:
    """A constant multiple of the right result and a constant more."""
    if _comparable(got, expected) and expected.unique().numel() > 1:
        ends = torch.stack([expected.argmax(), expected.argmin()])
        (at_high, at_low), (top, bottom) = got.flatten()[ends], expected.flatten()[ends]
        factor = (at_high - at_low) / (top - bottom)
        if abs(float(factor)) > LITTLE and near(got, at_low + factor * (expected - bottom), outcome):
            yield Noticed("affine")


def _by_line(got: Tensor, expected: Tensor, outcome: Outcome) -> Iterator[Noticed]:
    """Every line along an axis is the right one and a number more, or times a number, another for each line."""
    if _comparable(got, expected):
        for axis in range(got.ndim):
            more = (got - expected).mean(axis, keepdim=True)
            times = (got * expected).sum(axis, keepdim=True) / expected.square().sum(axis, keepdim=True)
            for kind, made in (("offset by line", expected + more), ("scaled by line", expected * times)):
                if torch.allclose(got, made, rtol=1e-4, atol=1e-4 * float(got.abs().max())):
                    yield Noticed(kind)


def _elsewhere(got: Tensor, expected: Tensor, outcome: Outcome) -> Iterator[Noticed]:
    """The right numbers in another order along an axis, or anywhere else."""
    if _comparable(got, expected):
        for axis in (axis for axis in range(got.ndim) if got.shape[axis] > 1):
            if near(got.sort(axis).values, expected.sort(axis).values, outcome):
                yield Noticed("other order", axis=axis, axes=got.ndim)
        if near(got.flatten().sort().values, expected.flatten().sort().values, outcome):
            yield Noticed("other places")


def _unsigned(got: Tensor, expected: Tensor, outcome: Outcome) -> Iterator[Noticed]:
    """Right except for the signs."""
    if got.shape == expected.shape and near(got.abs(), expected.abs(), outcome):
        yield Noticed("signs")


def _one_place(got: Tensor, expected: Tensor, outcome: Outcome) -> Iterator[Noticed]:
    """Everything that is wrong is in the first, or in the last, place of an axis."""
    if got.shape != expected.shape:
        return
    wrong = ~torch.isclose(got, expected, rtol=outcome.probe.rtol, atol=outcome.probe.atol)
    for axis in reversed(range(got.ndim)):
        places = wrong.movedim(axis, 0).flatten(1).any(1) if got.ndim > 1 else wrong
        length = got.shape[axis]
        for kind, place in (("only the first", 0), ("only the last", length - 1)):
            if length and bool(places[place]) and int(places.sum()) == 1:
                yield Noticed(kind, axis=axis, axes=got.ndim)


def _diagonal(got: Tensor, expected: Tensor, outcome: Outcome) -> Iterator[Noticed]:
    """Square tables that are wrong only on their diagonal, or right only there."""
    square = got.ndim >= 2 and got.shape == expected.shape and got.shape[-1] == got.shape[-2] >= FEWEST
    if square:
        right = torch.isclose(got, expected, rtol=outcome.probe.rtol, atol=outcome.probe.atol, equal_nan=True)
        diagonal = torch.eye(got.shape[-1], dtype=torch.bool).expand_as(right)
        for kind, rest in (("only the diagonal", ~diagonal), ("all but the diagonal", diagonal)):
            if bool(right[rest].all()) and (kind == "only the diagonal" or not bool(right[~rest].any())):
                yield Noticed(kind)


def _reshaped(got: Tensor, expected: Tensor, outcome: Outcome) -> Iterator[Noticed]:
    """The right numbers in the right order, in another shape."""
    if got.shape == expected.shape or got.numel() != expected.numel():
        return
    if near(got.reshape(expected.shape), expected, outcome):
        ones = got.squeeze().shape == expected.squeeze().shape and got.ndim != expected.ndim
        if ones:
            yield Noticed("an axis of 1 too many" if got.ndim > expected.ndim else "an axis of 1 missing")
        yield Noticed("another shape")


def _of_another_shape(got: Tensor, expected: Tensor, outcome: Outcome) -> Iterator[Noticed]:
    """Two axes that came back as one, an axis that is gone, or one that is too many, whatever the numbers are."""
    short, long = (got, expected) if got.ndim < expected.ndim else (expected, got)
    if long.ndim != short.ndim + 1:
        return
    for axis in range(long.ndim):
        size, rest = long.shape[axis], (*long.shape[:axis], *long.shape[axis + 1 :])
        if short is got and axis < short.ndim:
            joined = (*long.shape[:axis], size * long.shape[axis + 1], *long.shape[axis + 2 :])
            if tuple(got.shape) == joined:
                yield Noticed("axes joined", axis=axis)
        if tuple(short.shape) == rest:
            yield Noticed("axis gone" if short is got else "axis too many", axis=axis)


def _afterward(got: Tensor, expected: Tensor, outcome: Outcome) -> Iterator[Noticed]:
    """The right result, changed or cut short."""
    if not bool(got.isnan().any()):
        for kind, axis in done_afterward(got, expected, close(outcome)):
            yield Noticed(f"afterward {kind}", axis=axis)


def _nearly(got: Tensor, expected: Tensor, outcome: Outcome) -> Iterator[Noticed]:
    """Wrong by little everywhere."""
    if _comparable(got, expected):
        apart = (got - expected).abs()
        if bool((apart <= LITTLE * expected.abs() + outcome.probe.atol).all()):
            yield Noticed("nearly")


def _one_value(got: Tensor, expected: Tensor, outcome: Outcome) -> Iterator[Noticed]:
    """One and the same number wherever it is wrong, where others belong; some places are right."""
    if got.shape == expected.shape:
        wrong = ~torch.isclose(got, expected, rtol=outcome.probe.rtol, atol=outcome.probe.atol)
        held = got[wrong].unique()
        if held.numel() == 1 and bool(held.isfinite()) and not bool(wrong.all()):
            yield Noticed("one value", factor=float(held))


def _comparable(got: Tensor, expected: Tensor) -> bool:
    return got.shape == expected.shape and got.numel() > 0 and bool(got.isfinite().all())


PATTERNS: tuple[Callable[[Tensor, Tensor, Outcome], Iterator[Noticed]], ...] = (
    _transposed,
    _infinite,
    _reshaped,
    _cut,
    _alike,
    _afterward,
    _first_only,
    _reversed,
    _scaled,
    _offset,
    by_argument,
    _shifted,
    _elsewhere,
    _unsigned,
    _one_place,
    _diagonal,
    _of_another_shape,
    _nearly,
    _by_line,
    _affine,
    _one_value,
)
WHOLE = (
    _transposed,
    _cut,
    _alike,
    _reversed,
    _scaled,
    _offset,
    _unsigned,
    _one_value,
)  # seen wherever there are two of each
