"""What the exercises of chapter 01 share."""

import torch

from autograder.catalogue.sections import of_chapter


def _drawn(low: int, high: int, g: torch.Generator) -> int:
    return int(torch.randint(low, high + 1, (), generator=g))


sections = of_chapter("01")
