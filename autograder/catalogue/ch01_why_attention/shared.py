"""What the exercises of chapter 01 share."""

import torch

from autograder.catalogue.sections import of_chapter

sections = of_chapter("01")
(SMALL_PRINT,) = of_chapter("00")("contract")  # dtypes, changed inputs, gradients and sizes of 1


def drawn(low: int, high: int, g: torch.Generator) -> int:
    """A whole number from low to high, both included."""
    return int(torch.randint(low, high + 1, (), generator=g))
