"""Checks that the hidden probes of an exercise cover what every exercise should ask, by the inputs that they draw.

An entry that leaves one of these out says why, in `Exercise.omits`.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from autograder.catalogue.exercise import Case

BEYOND_FLOAT32 = 2**24  # the first whole number after which float32 leaves some out
FAR_AWAY = 5e3  # numbers of float64 around here differ in digits that float32 does not hold


def asked(cases: Sequence[Case]) -> set[str]:
    """Which of the defaults these cases cover."""
    return {default for default, asks in DEFAULTS.items() if any(map(asks, cases))}


def _leaves(value: Any) -> Iterator[Any]:
    """Yield the value and everything in it."""
    yield value
    if isinstance(value, dict):
        value = [*value, *value.values()]
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from _leaves(item)


def _of(holds: Callable[[Any], bool]) -> Callable[[Case], bool]:
    return lambda case: any(holds(leaf) for leaf in _leaves(case.arguments) if leaf is not case.arguments)


def _one_of_many(value: Any) -> bool:
    return value.ndim > 1 and value.shape[0] == 1 if isinstance(value, Tensor) else _length(value) == 1


def _of_length_one(value: Any) -> bool:
    return 1 in value.shape[-max(value.ndim - 1, 1) :] if isinstance(value, Tensor) else _length(value) == 1


def _length(value: Any) -> int | None:
    return len(value) if isinstance(value, (str, list, dict)) else None


def _precise(value: Any) -> bool:
    if isinstance(value, Tensor):
        least = {torch.float64: FAR_AWAY, torch.long: BEYOND_FLOAT32}.get(value.dtype, math.inf)
        return least < math.inf and value.numel() > 0 and float(value.abs().max()) > least
    return type(value) is int and abs(value) > BEYOND_FLOAT32


def _falsy(value: Any) -> bool:
    if isinstance(value, Tensor):
        return value.element_size() > 1 and bool((value == 0).any())  # nothing but truth values is so small
    return not callable(value) and not value


def _repeated(value: Any) -> bool:
    if isinstance(value, Tensor):
        rows = value.movedim(-2, 0) if value.ndim > 1 else value
        return value.ndim > 0 and len(rows.unique(dim=0)) < len(rows)
    items = list(value.values()) if isinstance(value, dict) else value
    return isinstance(items, (list, tuple)) and len(set(map(repr, items))) < len(items)


DEFAULTS: dict[str, Callable[[Case], bool]] = {
    "a batch of one": _of(_one_of_many),
    "a length of one": _of(_of_length_one),
    "a second call": lambda case: bool(case.before),
    "precision": _of(_precise),
    "falsy values": _of(_falsy),
    "repeated items": _of(_repeated),
}
