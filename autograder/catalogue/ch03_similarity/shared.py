"""What the exercises of chapter 03 share."""

import torch
from torch import Tensor

from autograder.catalogue.exercise import Evidence
from autograder.catalogue.numbers import number
from autograder.catalogue.parts import row
from autograder.catalogue.sections import of_chapter

WORDS = ("I", "closed", "the", "windows")
EMBEDDINGS = torch.tensor([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0], [2.0, 0.0]])


def _whole(g: torch.Generator, *shape: int) -> Tensor:
    """Whole numbers up to 900 in size, whose sums of products are exact in float32."""
    return torch.randint(-900, 901, shape, generator=g).float()


def _first_row(evidence: Evidence) -> str:
    """The first row of the result, as it is and as it should be."""
    if not isinstance(evidence.got, Tensor) or evidence.got.dim() != 2:
        return "The result is not a table with a row for each vector of the first argument."
    got, expected = evidence.got[0][:8], evidence.expected[0][:8]
    return f"Your first row is {row(got)}; by hand it is {row(expected)}."


def _yours(evidence: Evidence) -> str:
    """A number that came back, and the one that should have."""
    return f"You returned {number(evidence.got)} where {number(evidence.expected)} was expected."


sections = of_chapter("03")
