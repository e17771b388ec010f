"""What the exercises of chapter 07 share."""

from typing import Any

import torch
from torch import Tensor

from autograder.catalogue.exercise import Case, Evidence
from autograder.catalogue.numbers import number
from autograder.catalogue.sections import of_chapter

sections = of_chapter("07")


def in_single_precision(case: Case, result: Any) -> Any:
    """A table in float32, the default precision; float64 is accepted."""
    return result.float() if isinstance(result, Tensor) and result.dtype == torch.float64 else result


def off_row(evidence: Evidence) -> str:
    """Row 1 of the table, or the first wrong one, and the correct one: the first six numbers."""
    if not isinstance(evidence.got, Tensor) or evidence.got.shape != evidence.expected.shape or len(evidence.got) < 2:
        return ""
    off = (~torch.isclose(evidence.got, evidence.expected.to(evidence.got.dtype), atol=1e-3))[:,
        :6].any(dim=-1).tolist()
    if not any(off):
        return ""
    place = 1 if off[1] else off.index(True)
    got, wanted = (" ".join(number(value) for value in table[place, :6].tolist()) for table in (evidence.got,
        evidence.expected))
    return f"Your row {place} is {got}; by hand it is {wanted}."


def row_zero(evidence: Evidence) -> str:
    """Row 0 of the table, and the correct one."""
    if not isinstance(evidence.got, Tensor) or evidence.got.ndim != 2 or not len(evidence.got):
        return ""
    got, wanted = (" ".join(number(value) for value in table[0, :6].tolist()) for table in (evidence.got,
        evidence.expected))
    return f"Your row 0 is {got}; it should be {wanted}."
