"""What the exercises of chapter 06 share."""

import torch
from torch import Tensor

from autograder.catalogue.exercise import Evidence
from autograder.catalogue.numbers import number
from autograder.catalogue.quotes import sizes
from autograder.catalogue.sections import of_chapter

WORDS = ("first", "second", "third")
THREE_WORDS = torch.tensor([[1.0, 0.0, 0.0, 1.0], [0.0, 1.0, 1.0, 0.0], [1.0, 1.0, 0.0, 0.0]])

sections = of_chapter("06")


def labeled(B: int, T: int, D: int) -> Tensor:
    """Numbers that encode their position: 123 is sentence 1, word 2, feature 3."""
    return 100.0 * torch.arange(B)[:, None, None] + 10.0 * torch.arange(T)[:, None] + torch.arange(D,
        dtype=torch.float32)


def in_other_rows(got: object, expected: Tensor) -> bool | None:
    """Whether all numbers are there, and some are in rows of other words; (B, T, D). Numbers that occur twice cannot
    show it."""
    if not isinstance(got, Tensor) or got.shape != expected.shape:
        return False
    if len(expected.unique()) < expected.numel():
        return None
    got = got.to(expected.dtype)
    if not torch.equal(got.flatten().sort().values, expected.flatten().sort().values):
        return False
    return not torch.equal(got.sort(dim=-1).values, expected.sort(dim=-1).values)


def digits(row: Tensor) -> str:
    """A row of labeled numbers, with three digits if there are sentences beyond the first."""
    return " ".join(number(value) for value in row.tolist())


def stands(evidence: Evidence) -> str:
    """The first misplaced row, by its numbers."""
    got, expected = evidence.got, evidence.expected
    if tuple(got.shape) != tuple(expected.shape):
        return sizes(evidence)
    place = tuple((got != expected).any(-1).nonzero()[0].tolist())
    where = ", ".join(map(str, place))
    return f"[{where}] should hold {digits(expected[place])}; yours holds {digits(got[place])}."
