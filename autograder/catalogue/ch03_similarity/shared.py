"""What the exercises of chapter 03 share."""

import torch
from torch import Tensor

from autograder.catalogue.sections import of_chapter

WORDS = ("I", "closed", "the", "windows")
EMBEDDINGS = torch.tensor([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0], [2.0, 0.0]])


def whole(g: torch.Generator, *shape: int) -> Tensor:
    """Integers up to 900, whose sums of products are exact in float32."""
    return torch.randint(-900, 901, shape, generator=g).float()


sections = of_chapter("03")
(SMALL_PRINT,) = of_chapter("00")("contract")  # dtypes, changed inputs and gradients
