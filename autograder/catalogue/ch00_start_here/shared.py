"""What the exercises of chapter 00 share."""

import torch
from torch import Tensor

from autograder.catalogue.sections import of_chapter


def _positive(g: torch.Generator, *shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """Numbers between 0.2 and 5.2, the same ones in every dtype up to rounding."""
    return (torch.rand(*shape, generator=g, dtype=torch.float64) * 5 + 0.2).to(dtype)


def _plain(tensor: Tensor) -> str:
    """The numbers of a row, whole ones without a point."""
    return " ".join(f"{value:g}" for value in tensor.tolist())


sections = of_chapter("00")
