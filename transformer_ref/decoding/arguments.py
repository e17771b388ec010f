"""What all decoders share: the check of the model, and which rows of a batch are still decoded."""

import torch
from torch import Tensor, nn


def expect_evaluation_mode(model: nn.Module) -> None:
    """Raise ValueError for a model in training mode, where dropout would make the result random."""
    if model.training:
        raise ValueError("model: expected evaluation mode (model.eval()), got training mode")


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
