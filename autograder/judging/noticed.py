"""What can be seen in a wrong answer whose mistake nobody knows: facts, each true of every failure that it speaks of.

A fact is data; `report` puts it into words. None holds a number of an input or of a right result, so all may be told of
hidden probes too. Where only one failure shows a fact, it is not `sure`: it may be a coincidence.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from math import isfinite
from typing import Any

import torch
from torch import Tensor

from autograder.catalogue.defaults import FAR_AWAY
from autograder.catalogue.exercise import Case
from autograder.judging.observation import Observation, Outcome, Raised

OTHER = 20_817  # the seed of inputs that are asked for comparison
FEWEST = 3  # different numbers that a result must hold before a pattern in it says something


@dataclass(frozen=True)
class Noticed:
    """One fact.

    kind: what was seen (see the functions below). axis, axes, size: where, if it concerns an axis of the result, of how
    many, and how long it is. argument: its place, if it concerns one. factor: the constant of "scaled" and "offset".
    sure: seen in more than one failure.
    """

    kind: str
    axis: int = 0
    axes: int = 0
    size: int = 0
    argument: int = 0
    factor: float = 0.0
    sure: bool = True


@dataclass(frozen=True)
class Again:
    """A failing probe asked again: with the same input under other seeds, and with one argument alone drawn anew.

    others: argument's place -> (what the right answer then returns, what the learner's does).
    """

    outcome: Outcome
    same: tuple[Observation, ...]
    others: dict[int, tuple[Observation, Observation]]


def other_cases(case: Case) -> Iterator[tuple[int, Case]]:
    """The case with one tensor in it made anew, for each of them: (its place, the case).

    Floats are drawn; a mask that hides something is opened everywhere.
    """
    generator = torch.Generator().manual_seed(OTHER)
    for place, value in enumerate(case.arguments):
        numbers = isinstance(value, Tensor) and value.is_floating_point() and value.numel()
        if numbers or (isinstance(value, Tensor) and value.dtype == torch.bool and not value.all()):
            drawn = torch.ones_like(value)
            if numbers:
                drawn = torch.rand(value.shape, generator=generator, dtype=torch.float64).to(value.dtype) + 0.5
            yield place, replace(case, arguments=(*case.arguments[:place], drawn, *case.arguments[place + 1 :]))


def notice(outcomes: Sequence[Outcome], again: Again | None = None) -> list[Noticed]:
    """Facts about an answer that fails, the most telling first; at most one about the values themselves."""
    failures = [outcome for outcome in outcomes if not outcome.passed and outcome.got is not None]
    if not failures:
        return []
    facts = [*_changed(failures), *(_repeated(again) if again else ())]
    if kept := [*_kept(outcomes)]:
        return [*facts, *kept]
    values = [outcome for outcome in failures if outcome.difference.kind in ("value", "shape", "length")]
    found = [*_fixed(values), *_about_values(values), *_about_items(values), *_about_numbers(values)]
    return [*facts, *found[:1], *_about_probes(outcomes)][:3]


def _changed(failures: Sequence[Outcome]) -> Iterator[Noticed]:
    """An argument that is not what it was."""
    for outcome in failures:
        if isinstance(outcome.got.result, Raised) or len(outcome.got.inputs) != len(outcome.expected.inputs):
            continue
        for place, (before, after) in enumerate(zip(outcome.expected.inputs, outcome.got.inputs, strict=True)):
            if not _equal(before, after):
                yield Noticed("changed", argument=place)
                return


def _repeated(again: Again) -> Iterator[Noticed]:
    """What asking again shows: another result for the same input, or the same result for another input."""
    got = again.outcome.got.result
    if any(not isinstance(same.result, Raised) and not _equal(got, same.result) for same in again.same):
        yield Noticed("differs")
        return
    for place, (expected, other) in again.others.items():
        ignored = _equal(got, other.result) and not _equal(again.outcome.expected.result, expected.result)
        if ignored and not isinstance(got, Raised):
            yield Noticed("ignored", argument=place)


def _kept(outcomes: Sequence[Outcome]) -> Iterator[Noticed]:
    """Every result that fails is the right one of something that was asked earlier."""
    asked = [outcome for outcome in outcomes if outcome.got is not None]
    failing = [(outcome, asked[:place]) for place, outcome in enumerate(asked) if not outcome.passed]
    old = [
        bool(outcome.case.before) or any(_answers(outcome, each) for each in earlier) for outcome, earlier in failing
    ]
    plain = not isinstance(failing[0][0].got.result, Tensor)
    if all(old) and not all(outcome.case.before for outcome, _ in failing) and len(failing) > plain:
        yield Noticed("kept")


def _answers(outcome: Outcome, earlier: Outcome) -> bool:
    """Whether a result is the right one of an earlier question, and tells the two apart."""
    got, wanted, right = outcome.got.result, earlier.expected.result, outcome.expected.result
    if not isinstance(got, Tensor) or not isinstance(wanted, Tensor):
        return isinstance(got, (int, float, str, list, dict)) and _same(got, wanted) and not _same(wanted, right)
    told = got.numel() >= FEWEST and not got.is_complex()
    return told and _near(got, wanted, earlier) and not _near(wanted, right, outcome)


# --- values ----------------------------------------------------------------------------------------------------------


def _about_values(failures: Sequence[Outcome]) -> list[Noticed]:
    """The first pattern that every failing tensor shows, but for those too small to show any."""
    pairs = [pair for outcome in failures if (pair := _tensors(outcome)) is not None]
    if not pairs or len(pairs) != len(failures):
        return []
    for pattern in PATTERNS:
        shown = [({_key(fact): fact for fact in pattern(*pair)}, min(pair[1].shape, default=0)) for pair in pairs]
        telling = [facts for facts, smallest in shown if facts or smallest >= FEWEST]
        if telling and (common := set.intersection(*map(set, telling))):
            first = next(key for key in telling[0] if key in common)
            return [replace(telling[0][first], sure=len(telling) > 1)]
    return []


def _fixed(failures: Sequence[Outcome]) -> Iterator[Noticed]:
    """The same result for several inputs whose right results differ."""
    results = [(outcome.got.result, outcome.expected.result) for outcome in failures]
    if len(results) > 1 and not any(isinstance(got, (Raised, bool, type(None))) for got, _ in results):
        (got, expected), *others = results
        if all(_same(got, other) and not _same(expected, wanted) for other, wanted in others):
            yield Noticed("fixed")


def _about_items(failures: Sequence[Outcome]) -> Iterator[Noticed]:
    """What the items of a list or the letters of a text have in common with the right ones, in every failure."""
    pairs = [(outcome.got.result, outcome.expected.result) for outcome in failures]
    if not pairs or not all(isinstance(x, (list, str)) and type(x) is type(y) for x, y in pairs):
        return
    told = [(list(got), list(expected)) for got, expected in pairs]
    for kind, holds in ITEMS.items():
        if all(holds(got, expected) for got, expected in told):
            yield Noticed(kind, sure=len(told) > 1)
            return


def _first_of_each(items: list) -> list:
    first: dict[str, Any] = {}
    for item in items:
        first.setdefault(repr(item), item)
    return list(first.values())


ITEMS: dict[str, Callable[[list, list], bool]] = {
    "items reversed": lambda got, expected: _same(got, expected[::-1]),
    "first item missing": lambda got, expected: _same(got, expected[1:]),
    "last item missing": lambda got, expected: _same(got, expected[:-1]),
    "an item too many in front": lambda got, expected: _same(got[1:], expected),
    "an item too many at the end": lambda got, expected: _same(got[:-1], expected),
    "repeated items lost": lambda got, expected: _same(got, _first_of_each(expected)),
    "another order": lambda got, expected: sorted(map(repr, got)) == sorted(map(repr, expected)),
}


def _about_numbers(failures: Sequence[Outcome]) -> Iterator[Noticed]:
    """Plain numbers that are off by one and the same amount, or factor, in at least two failures."""
    pairs = [(outcome.got.result, outcome.expected.result) for outcome in failures]
    if len(pairs) < 2 or not all(type(x) in (int, float) and isfinite(x) for pair in pairs for x in pair):
        return
    if len({round(got - expected, 6) for got, expected in pairs}) == 1:
        yield Noticed("offset", factor=round(pairs[0][0] - pairs[0][1], 4))
    elif all(y for _, y in pairs) and len({round(got / expected, 4) for got, expected in pairs}) == 1:
        yield Noticed("scaled", factor=round(pairs[0][0] / pairs[0][1], 4))


def _key(fact: Noticed) -> tuple:
    return fact.kind, fact.axis, fact.axes if fact.kind == "transposed" else None, fact.factor


def _tensors(outcome: Outcome) -> tuple[Tensor, Tensor, Outcome] | None:
    """Result and right result as float64, of a tuple those parts that differ first; None where there are none."""
    got, expected = outcome.got.result, outcome.expected.result
    if isinstance(got, tuple) and isinstance(expected, tuple) and len(got) == len(expected):
        parts = [(one, other) for one, other in zip(got, expected, strict=True) if not _near(one, other, outcome)]
        got, expected = parts[0] if parts else (None, None)
    numbers = isinstance(got, Tensor) and isinstance(expected, Tensor) and not got.is_complex()
    if not numbers or got.numel() > 10**6 or not expected.isfinite().all():
        return None
    return got.detach().to(torch.float64), expected.detach().to(torch.float64), outcome


def _transposed(got: Tensor, expected: Tensor, outcome: Outcome) -> Iterator[Noticed]:
    """Two axes have changed places."""
    for order in permutations(range(expected.ndim)) if 2 <= expected.ndim <= 4 else ():
        moved = [axis for axis, source in enumerate(order) if axis != source]
        if len(moved) == 2 and _near(got, expected.permute(order), outcome):
            yield Noticed("transposed", axis=moved[0], axes=moved[1])


def _alike(got: Tensor, expected: Tensor, outcome: Outcome) -> Iterator[Noticed]:
    """Everything along an axis is the same, where the right result differs."""
    if got.shape != expected.shape:
        return
    if got.numel() >= FEWEST and _near(got, got.flatten()[0].expand_as(got), outcome):
        yield Noticed("constant")
    for axis in (axis for axis in range(got.ndim) if got.shape[axis] > 1):
        first, wanted = (table.narrow(axis, 0, 1).expand_as(table) for table in (got, expected))
        if _near(got, first, outcome) and not _near(expected, wanted, outcome):
            yield Noticed("alike", axis=axis, axes=got.ndim, size=got.shape[axis])


def _first_only(got: Tensor, expected: Tensor, outcome: Outcome) -> Iterator[Noticed]:
    """Right for the first sentence (or row) alone."""
    batched = got.shape == expected.shape and got.ndim >= 2 and got.shape[0] > 1
    if batched and _near(got[0], expected[0], outcome) and not any(map(_close(outcome), got[1:], expected[1:])):
        yield Noticed("first only", axis=0, axes=got.ndim, size=got.shape[0])


def _shifted(got: Tensor, expected: Tensor, outcome: Outcome) -> Iterator[Noticed]:
    """Moved by one place along an axis, whatever stands where nothing came from."""
    for axis in range(got.ndim) if got.shape == expected.shape else ():
        length = got.shape[axis]
        for by in (1, -1) if length >= FEWEST else ():
            here, there = (1, 0) if by == 1 else (0, 1)
            if _near(got.narrow(axis, here, length - 1), expected.narrow(axis, there, length - 1), outcome):
                yield Noticed("shifted", axis=axis, axes=got.ndim, size=by)


def _reversed(got: Tensor, expected: Tensor, outcome: Outcome) -> Iterator[Noticed]:
    """In the opposite order along an axis."""
    for axis in range(got.ndim) if got.shape == expected.shape else ():
        if got.shape[axis] > 1 and _near(got, expected.flip(axis), outcome):
            yield Noticed("reversed", axis=axis, axes=got.ndim)


def _scaled(got: Tensor, expected: Tensor, outcome: Outcome) -> Iterator[Noticed]:
    """A constant multiple of the right result."""
    if _varied(got, expected):
        largest = expected.abs().flatten().argmax()
        factor = float(got.flatten()[largest] / expected.flatten()[largest])
        if abs(factor) > 1e-6 and _near(got, factor * expected, outcome):
            yield Noticed("scaled", factor=round(factor, 4))


def _offset(got: Tensor, expected: Tensor, outcome: Outcome) -> Iterator[Noticed]:
    """The right result and a constant more."""
    if _varied(got, expected):
        more = float((got - expected).flatten()[0])
        if _near(got, expected + more, outcome):
            yield Noticed("offset", factor=round(more, 4))


def _unsigned(got: Tensor, expected: Tensor, outcome: Outcome) -> Iterator[Noticed]:
    """Right but for the signs."""
    if got.shape == expected.shape and _near(got.abs(), expected.abs(), outcome):
        yield Noticed("signs")


def _one_place(got: Tensor, expected: Tensor, outcome: Outcome) -> Iterator[Noticed]:
    """Everything that is wrong stands in the first, or in the last, place of an axis."""
    if got.shape != expected.shape:
        return
    wrong = ~torch.isclose(got, expected, rtol=outcome.probe.rtol, atol=outcome.probe.atol)
    for axis in reversed(range(got.ndim)):
        places = wrong.movedim(axis, 0).flatten(1).any(1) if got.ndim > 1 else wrong
        length = got.shape[axis]
        for kind, place in (("only the first", 0), ("only the last", length - 1)):
            if length >= FEWEST and bool(places[place]) and int(places.sum()) == 1:
                yield Noticed(kind, axis=axis, axes=got.ndim)


def _varied(got: Tensor, expected: Tensor) -> bool:
    return got.shape == expected.shape and bool(got.isfinite().all()) and expected.unique().numel() >= FEWEST


PATTERNS: tuple[Callable[[Tensor, Tensor, Outcome], Iterator[Noticed]], ...] = (
    _transposed,
    _alike,
    _first_only,
    _reversed,
    _scaled,
    _offset,
    _shifted,
    _unsigned,
    _one_place,
)


# --- which probes fail -----------------------------------------------------------------------------------------------


def _about_probes(outcomes: Sequence[Outcome]) -> Iterator[Noticed]:
    """What the failing probes have in common and the passing ones do not."""
    asked = [outcome for outcome in outcomes if outcome.got is not None]
    failing = [outcome for outcome in asked if not outcome.passed]
    passing = [outcome for outcome in asked if outcome.passed]
    if not passing:
        return
    for kind, holds in COMMON.items():
        if all(map(holds, failing)) and not any(map(holds, passing)):
            yield Noticed(kind)
            return
    shown = {_shapes(outcome) for outcome in asked if not outcome.probe.hidden}
    others = [outcome for outcome in asked if _shapes(outcome) not in shown and _shapes(outcome)]
    telling = [outcome for outcome in others if not _has_a_one(outcome)]  # with an axis of 1 much comes out right
    all_other = all(_shapes(outcome) not in shown for outcome in failing)
    if telling and all_other and not any(outcome.passed for outcome in telling):
        yield Noticed("only these sizes")


def _shapes(outcome: Outcome) -> tuple:
    return tuple(tuple(a.shape) for a in outcome.case.arguments if isinstance(a, Tensor))


def _has_a_one(outcome: Outcome) -> bool:
    return any(1 in shape for shape in _shapes(outcome))


def _is_float64(outcome: Outcome) -> bool:
    return any(isinstance(a, Tensor) and a.dtype == torch.float64 for a in outcome.case.arguments)


def _is_turned(outcome: Outcome) -> bool:
    return any(isinstance(a, Tensor) and not a.is_contiguous() for a in outcome.case.arguments)


def _asks_gradients(outcome: Outcome) -> bool:
    return "gradients" in outcome.probe.also and (outcome.passed or outcome.difference.kind != "no gradient")


def _misses_gradients(outcome: Outcome) -> bool:
    return "gradients" in outcome.probe.also and (outcome.passed or outcome.difference.kind == "no gradient")


def _asks_again(outcome: Outcome) -> bool:
    return bool(outcome.case.before) and (outcome.passed or outcome.difference.kind not in ("inputs", "state"))


def _loses_digits(outcome: Outcome) -> bool:
    tensors = [a for a in outcome.case.arguments if isinstance(a, Tensor) and a.dtype == torch.float64 and a.numel()]
    far = any(float(tensor.abs().max()) > FAR_AWAY for tensor in tensors)
    return far and (outcome.passed or outcome.difference.kind in ("value", "nan"))


COMMON: dict[str, Callable[[Outcome], bool]] = {
    "a second call": _asks_again,
    "lost digits": _loses_digits,
    "an axis of size 1": _has_a_one,
    "no gradient": _misses_gradients,
    "another gradient": _asks_gradients,
    "transposed in memory": _is_turned,
    "float64": _is_float64,
}


# --- equal or not ----------------------------------------------------------------------------------------------------


def _near(one: Any, other: Any, outcome: Outcome) -> bool:
    if not isinstance(one, Tensor) or not isinstance(other, Tensor):
        return _equal(one, other)
    if one.shape != other.shape:
        return False
    one, other = one.to(torch.float64), other.to(torch.float64)
    return torch.allclose(one, other, rtol=outcome.probe.rtol, atol=outcome.probe.atol, equal_nan=True)


def _close(outcome: Outcome) -> Callable[[Tensor, Tensor], bool]:
    return lambda one, other: _near(one, other, outcome)


def _same(one: Any, other: Any) -> bool:
    """Whether two values are of one kind and equal."""
    return type(one) is type(other) and _equal(one, other)


def _equal(one: Any, other: Any) -> bool:
    """Whether two values are the same; what cannot be compared is taken to be."""
    if isinstance(one, Tensor) and isinstance(other, Tensor):
        return one.shape == other.shape and torch.allclose(
            one.detach().to(torch.float64), other.detach().to(torch.float64), equal_nan=True
        )
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(_equal, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_equal(one[key], other[key]) for key in one)
    simple = (bool, int, float, str)
    return one == other if isinstance(one, simple) and isinstance(other, simple) else True
