"""What the exercises of chapter 04 share."""

from collections.abc import Callable

import torch
from torch import Tensor

from autograder.catalogue.exercise import Case, Evidence
from autograder.catalogue.families import Family
from autograder.catalogue.laws import sums_to_one
from autograder.catalogue.numbers import number
from autograder.catalogue.probes import FAR, normal
from autograder.catalogue.quotes import row
from autograder.catalogue.sections import of_chapter

# orange against orange, apple, motorcycle; and plain numbers
THINGS = torch.tensor([[1.0, 0.71, -1.0], [0.0, 2.0, 1.0]])
WINDOWS = torch.tensor([1.414, 1.414, 0.0, 2.828])  # what windows scored in chapter 03

# torch's own softmax, and what runs one for you. Modules and other spellings end in these (see recorder.MEANINGS).
LIBRARY_SOFTMAX = (
    "softmax", "log_softmax", "softmin", "gumbel_softmax", "cross_entropy", "Categorical",
    "scaled_dot_product_attention", "MultiheadAttention", "flex_attention",
)

ANOTHER_AXIS = Family("a negative dim taken for another axis", """A dim below -1, counted from the back, picks the wrong
    axis: -2 is the second-to-last one. torch counts from the back by itself, so dim needs no special case.""")

ROWS_SUM_TO_ONE = sums_to_one("every row sums to 1")

sections = of_chapter("04")


def scores(
    g: torch.Generator, shape: tuple[int, ...], dim: int, dtype: torch.dtype = torch.float32, below: float = 0.0
) -> Case:
    """below: how far the first score of every row along dim is below the others."""
    x = 2 * normal(g, *shape, dtype=dtype)
    x.select(dim, 0).sub_(below)
    return Case((x, dim))


def far_away(g: torch.Generator) -> Case:
    """Scores of about 100,000,000, which float32 cannot distinguish."""
    return Case((2 * normal(g, 2, 5, 3, dtype=torch.float64) + FAR, 2))


def around_1000(g: torch.Generator) -> Case:
    """Integers around +1000, -1000 and 0: exact in float32, too large for an exponential."""
    x = torch.randint(-3, 4, (3, 4), generator=g).float() + torch.tensor([1000.0, -1000.0, 0.0])[:, None]
    x[:, 1] += 4.5  # so that no row is all equal
    return Case((x, 1))


def with_minus_infinity(g: torch.Generator, rows: int, columns: int) -> Case:
    """Minus infinity among scores around 0, and among scores around -12,000, where -10,000 in its place would win."""
    x = normal(g, rows, columns)
    x[1] = (64 * x[1]).round() / 64 - 12_000  # exact in float32; a logarithm of their sum is rounded to 0.001
    x[1, 2], x[0, 0] = -torch.inf, -torch.inf
    return Case((x, -1))


def sums(evidence: Evidence) -> str:
    """The sum of each row, or of the single row."""
    got = evidence.got
    if got.dim() == 1:
        return f"Your numbers sum to {number(got.sum())}."
    return f"Your rows sum to {row(got.sum(-1))}."


def first_row(evidence: Evidence) -> str:
    """The first row that differs as it is printed, and the correct one; the first row if none does."""
    got, expected = (value if value.dim() > 1 else value[None] for value in (evidence.got, evidence.expected))
    pairs = [(row(mine), row(right)) for mine, right in zip(got, expected, strict=False)]
    mine, right = next((pair for pair in pairs if pair[0] != pair[1]), pairs[0])
    return f"You returned {mine}; by hand it is {right}."


def takes_another_axis(right: Callable[[Tensor, int], Tensor]) -> Callable[[Evidence], bool]:
    """Whether a result is that of another axis where dim is below -1: a mark of a mistake (`Misconception.shows`)."""

    def shows(evidence: Evidence) -> bool:
        x, dim = evidence.arguments
        others = set(range(x.ndim)) - {dim % x.ndim}
        return dim < -1 and any(torch.allclose(evidence.got, right(x, axis), rtol=1e-3, atol=1e-4) for axis in others)

    return shows
