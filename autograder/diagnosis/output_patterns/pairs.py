"""A failed check as a pair of tensors: the result and the right one."""

from typing import Any

import torch
from torch import Tensor

from autograder.judging.closeness import near
from autograder.judging.observation import Outcome

EXACT = 2**53  # up to here float64 holds all integers


def is_comparable(value: Any) -> bool:
    """Whether patterns relative to this value may be searched for: a tensor must be finite, and float64 must represent
    its integers exactly."""
    if not isinstance(value, Tensor) or value.numel() == 0:
        return True
    if value.is_floating_point() or value.is_complex():
        return bool(value.isfinite().all())
    return value.dtype == torch.bool or -EXACT <= int(value.min()) <= int(value.max()) <= EXACT


def tensors(outcome: Outcome, part: int = 0) -> tuple[Tensor, Tensor, Outcome] | None:
    """Result and correct result as float64; None if they are no tensors.

    part: the element of a tuple, from 1; 0 is the first that differs.
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
    if not numbers or got.numel() > 10**6 or not is_comparable(expected):
        return None
    return got.detach().to(torch.float64), expected.detach().to(torch.float64), outcome
