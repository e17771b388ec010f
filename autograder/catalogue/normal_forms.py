"""Forms of a result that count as one, for `Exercise.normalize`."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from autograder.catalogue.exercise import Case, Remark

Normal = Callable[[Case, Any], Any]


class JudgedParts(dict):
    """The parts of a result that are judged, by key; `told` is only quoted."""

    def __init__(self, judged: dict[str, Any], told: dict[str, Any]) -> None:
        super().__init__(judged)
        self.told = told


class InWords(Remark):
    """What is wrong with values that are compared after it, in words. It equals any other: the values decide whether
    two answers agree."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, InWords)

    def __ne__(self, other: object) -> bool:  # a text has its own
        return not self == other

    def __hash__(self) -> int:
        return hash(InWords)


def of_same_form(normalize: Normal) -> Normal:
    """Mark a normal form in which a correct result keeps its type, so that a report can name the type expected."""
    normalize.keeps_type = True  # type: ignore[attr-defined]
    return normalize


@of_same_form
def bools(case: Case, result: Any) -> Any:
    """Convert a tensor that holds one bool to that bool, in a dictionary too: `bool` and `if` accept either."""
    if isinstance(result, dict):
        return {key: bools(case, value) for key, value in result.items()}
    one = isinstance(result, Tensor) and result.dtype == torch.bool and result.numel() == 1
    return bool(result) if one else result
