"""What the exercises of chapter 10 share."""

from typing import Any

import torch
from torch import Tensor

from autograder.catalogue.exercise import Case, Evidence, Remark
from autograder.catalogue.numbers import number
from autograder.catalogue.sections import of_chapter

PAD, BOS, EOS = 0, 1, 2
sections = of_chapter("10")
TI_AMO = torch.tensor([[7, 4, 9, EOS]])  # Ti amo molto <eos>
TWO = torch.tensor([[5, 8, 4, 6, EOS], [4, 9, EOS, PAD, PAD]])
LARGE_ID = 2**24  # the first whole number after which float32 leaves some out


def sentences(g: torch.Generator, B: int, T: int, pad: int, first: int = 3, last: int = 40) -> Tensor:
    """Labels of different lengths, filled up with pads at the end, (B, T); one sentence fills its row."""
    ids = torch.randint(first, last, (B, T), generator=g)
    ids = ids.where(ids != pad, last)
    lengths = torch.randint(1, T, (B,), generator=g) if T > 1 else torch.ones(B, dtype=torch.int64)
    lengths[-1] = T
    if B > 2:
        lengths[0], lengths[1] = T - 1, 1
    return ids.masked_fill(torch.arange(T) >= lengths[:, None], pad)


def in_single_precision(case: Case, result: Any) -> Any:
    """A table in float32, the default precision; float64 is accepted, and a remark reports float16 and bfloat16."""
    if isinstance(result, Tensor) and result.dtype in (torch.float16, torch.bfloat16):
        return Remark(f"{str(result.dtype)[6:]} came back, where float32 or float64 is expected")
    return result.float() if isinstance(result, Tensor) and result.dtype == torch.float64 else result


def ids_of_the_first(evidence: Evidence) -> str:
    """The first row of ids, and the correct one."""
    if not isinstance(evidence.got, Tensor) or evidence.got.ndim != 2 or not len(evidence.got):
        return ""
    got, wanted = (" ".join(f"{value:g}" for value in table[0].tolist()) for table in (evidence.got, evidence.expected))
    return f"Your first row is {got}; it should be {wanted}."


def the_number(evidence: Evidence) -> str:
    """The returned number, and the correct one."""
    return f"You return {number(evidence.got)}; it should be {number(evidence.expected)}."


class Unreadable(Remark):
    """Why nothing of a result can be judged, as the end of a sentence; `told` is only quoted."""

    told: dict[str, Any]

    def __new__(cls, remark: str, told: dict[str, Any]) -> "Unreadable":
        made = super().__new__(cls, remark)
        made.told = told
        return made
