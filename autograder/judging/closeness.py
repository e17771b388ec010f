"""Whether two values are the same, or near enough under a probe's tolerances, whatever they are.

`compare` decides whether a result is correct, with `differing`. `near` and `close` only serve the diagnosis.
"""

from collections.abc import Callable
from math import isfinite
from typing import Any

import torch
from torch import Tensor

from autograder.judging.observation import Outcome


def near(one: Any, other: Any, outcome: Outcome) -> bool:
    """Whether two tensors have one shape and agree under the probe's tolerances; other values must be `equal`.

    For the diagnosis, which looks for a formula that gives the learner's result. No verdict depends on it.
    """
    if not isinstance(one, Tensor) or not isinstance(other, Tensor):
        return equal(one, other)
    if one.shape != other.shape:
        return False
    rtol, atol = outcome.probe.rtol, outcome.probe.atol
    if one.numel() and one.is_floating_point():  # most often the first number tells, in a tenth of the time
        a, b = one.flatten()[0].item(), other.flatten()[0].item()
        if isfinite(a) and isfinite(b) and abs(a - b) > atol + rtol * abs(b):
            return False
    return not differing(one, other, rtol, atol).any()


def differing(one: Tensor, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8) -> Tensor:
    """Where two tensors of one shape differ: integers if they are not equal, since float64 does not hold all of them;
    other numbers by more than the tolerances. NaN equals NaN."""
    if not (one.is_floating_point() or other.is_floating_point()):
        return one != other
    return ~torch.isclose(one.to(torch.float64), other.to(torch.float64), rtol=rtol, atol=atol, equal_nan=True)


def close(outcome: Outcome) -> Callable[[Tensor, Tensor], bool]:
    """`near` for the probe of this outcome, as a function of two tensors."""
    return lambda one, other: near(one, other, outcome)


def same(one: Any, other: Any) -> bool:
    """Whether two values have the same type and are equal, including everything in them."""
    if isinstance(one, (list, tuple)):
        return type(one) is type(other) and len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    return type(one) is type(other) and equal(one, other)


def equal(one: Any, other: Any) -> bool:
    """Whether two values are equal; True if they cannot be compared."""
    if isinstance(one, Tensor) and isinstance(other, Tensor):
        return one.shape == other.shape and not differing(one.detach(), other.detach()).any()
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(equal, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(equal(one[key], other[key]) for key in one)
    simple = (bool, int, float, str)
    if not isinstance(one, simple) or not isinstance(other, simple):
        return True
    return one == other or (one != one and other != other)  # NaN is what it is


def distance(one: Any, other: Any) -> float:
    """The distance of two tensors, from 0 to 1; for tuples, the mean; 1 if they cannot be compared."""
    if isinstance(one, tuple) and isinstance(other, tuple) and len(one) == len(other) > 0:
        return sum(map(distance, one, other)) / len(one)
    if not isinstance(one, Tensor) or not isinstance(other, Tensor) or one.shape != other.shape or one.is_complex():
        return 1.0
    one, other = one.detach().to(torch.float64), other.detach().to(torch.float64)
    largest = float((one.abs() + other.abs()).sum())
    apart = float((one - other).abs().sum()) / largest if largest else 0.0
    return apart if apart <= 1.0 else 1.0  # NaN is far away
