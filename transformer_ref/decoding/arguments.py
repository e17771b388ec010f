"""Checks of the arguments that all decoders share."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from transformer_ref.config import LARGEST_EXPONENT


def expect_ready(model: nn.Module, max_length: int | Sequence[int] = 1) -> None:
    """Check that a model can decode up to max_length tokens.

    Raises ValueError when it is in training mode, where dropout would make the result random, or max_length is below 1.
    """
    if model.training:
        raise ValueError("model: expected evaluation mode (model.eval()), got training mode")
    if isinstance(max_length, int) and max_length < 1:
        raise ValueError(f"max_length: expected at least 1, got {max_length}")


def length_limits(source_ids: Tensor, max_length: int | Sequence[int]) -> list[int]:
    """Return the maximum number of tokens after bos, for each row of source_ids, (batch, source).

    max_length: one number for every row, or one number per row: then the translation of a row does not depend on the
    other rows of its batch. Raises ValueError for another count of numbers and for one below 1.
    """
    if isinstance(max_length, int):
        return [max_length] * len(source_ids)
    limits = [int(limit) for limit in max_length]
    if len(limits) != len(source_ids):
        raise ValueError(f"max_length: expected one for each of {len(source_ids)} sources, got {len(limits)}")
    if any(limit < 1 for limit in limits):
        raise ValueError(f"max_length: expected at least 1 for each source, got {min(limits)}")
    return limits


def expect_length_penalty(length_penalty: float) -> None:
    """Check the exponent that ranks hypotheses; raise ValueError for NaN and values out of range."""
    if not 0 <= length_penalty <= LARGEST_EXPONENT:
        raise ValueError(f"length_penalty: expected a number from 0 to {LARGEST_EXPONENT}, got {length_penalty:g}")


def kept_rows(goes_on: Tensor) -> Tensor:
    """Return the indices of the unfinished rows of a batch, in an order that moves few of them: (unfinished rows,).

    goes_on: (batch,), boolean. Rows from the end replace the finished rows; all others keep their index.
    """
    ascending = goes_on.nonzero().squeeze(1)  # waits for a GPU
    count = len(ascending)
    if count == 0:
        return ascending
    stays = goes_on[:count]
    hole = (~stays).cumsum(0)  # (count,), of a finished row: the how many-th it is
    from_the_end = ascending[(count - hole[-1] + hole - 1).clamp(0, count - 1)]
    return torch.arange(count, device=goes_on.device).where(stays, from_the_end)
