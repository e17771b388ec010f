"""What the exercises of chapter 08 share."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from autograder.catalogue.exercise import Case, Evidence
from autograder.catalogue.sections import of_chapter

PAD = 0
sections = of_chapter("08")
#  we closed the windows <pad> <pad> · the cat sleeps <pad> <pad> <pad>
SENTENCES = torch.tensor([[5, 8, 4, 6, 0, 0], [4, 9, 7, 0, 0, 0]])
WORDS = ("I", "closed", "the", "windows")
EMBEDDINGS = torch.tensor([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0], [2.0, 0.0]])


def sentences(g: torch.Generator, B: int, T: int, pad: int = PAD) -> Tensor:
    """Ids of sentences of different lengths, all but one padded, (B, T)."""
    ids = torch.randint(1, 30, (B, T), generator=g)
    ids = ids.where(ids != pad, 30)
    lengths = torch.randint(1, T, (B,), generator=g) if T > 1 else torch.ones(B, dtype=torch.int64)
    lengths[-1] = T
    if B > 2:
        lengths[0], lengths[1] = T - 1, 1
    return ids.masked_fill(torch.arange(T) >= lengths[:, None], pad)


def over_all_queries(case: Case, result: Any) -> Any:
    """A mask spread over all queries, (B, 1, T, T), since any shape that broadcasts to it is right."""
    B, T = case.arguments[0].shape
    return spread(result, B, 1, T, T)


def spread(result: Any, *shape: int) -> Any:
    """A mask broadcast to a shape; unchanged if it does not fit."""
    if not isinstance(result, Tensor) or result.ndim > len(shape):
        return result
    try:
        return result.broadcast_to(shape)
    except RuntimeError:
        return result


def open_cells(evidence: Evidence) -> str:
    """The number of True cells in both, if it differs."""
    if not isinstance(evidence.got, Tensor) or evidence.got.dtype != torch.bool:
        return f"You returned {getattr(evidence.got, 'dtype', type(evidence.got).__name__)}."
    got, expected = int(evidence.got.sum()), int(evidence.expected.sum())
    if got == expected:
        return ""
    return (f"{got} of your {evidence.got.numel()} cells are True; "
            f"{expected} of {evidence.expected.numel()} should be.")


def open_cells_of(rows: str) -> Callable[[Evidence], str]:
    """The number of True cells in both, if it differs, of masks that were broadcast before they were compared.

    rows: which rows are counted. The learner's own tensor may be smaller, so its size is not quoted.
    """

    def quote(evidence: Evidence) -> str:
        if not isinstance(evidence.got, Tensor) or evidence.got.shape != evidence.expected.shape:
            return ""
        if evidence.got.dtype != torch.bool or bool(evidence.got.sum() == evidence.expected.sum()):
            return ""
        return (f"Counted over {rows}, {int(evidence.got.sum())} cells of your mask are True; "
                f"{int(evidence.expected.sum())} should be.")

    return quote  # fmt: skip
