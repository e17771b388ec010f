"""What the exercises of chapter 04 share."""

import torch

from autograder.catalogue.exercise import Case, Evidence
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

ROWS_SUM_TO_ONE = sums_to_one("every row sums to 1")

sections = of_chapter("04")


def scores(g: torch.Generator, shape: tuple[int, ...], dim: int, dtype: torch.dtype = torch.float32) -> Case:
    return Case((2 * normal(g, *shape, dtype=dtype), dim))


def far_away(g: torch.Generator) -> Case:
    """Scores of about 100,000,000, which float32 cannot distinguish."""
    return Case((2 * normal(g, 2, 5, 3, dtype=torch.float64) + FAR, 2))


def around_1000(g: torch.Generator) -> Case:
    """Integers around +1000, -1000 and 0: exact in float32, too large for an exponential."""
    x = torch.randint(-3, 4, (3, 4), generator=g).float() + torch.tensor([1000.0, -1000.0, 0.0])[:, None]
    x[:, 1] += 4.5  # so that no row is all equal
    return Case((x, 1))


def with_minus_infinity(g: torch.Generator, rows: int, columns: int) -> Case:
    """Minus infinity among scores around 0, and among scores around -2,000."""
    x = normal(g, rows, columns)
    x[1] = (64 * x[1]).round() / 64 - 2000  # exact in float32
    x[1, 2], x[0, 0] = -torch.inf, -torch.inf
    return Case((x, -1))


def sums(evidence: Evidence) -> str:
    """The sum of each row, or of the single row."""
    got = evidence.got
    if got.dim() == 1:
        return f"Your numbers sum to {number(got.sum())}."
    return f"Your rows sum to {row(got.sum(-1))}."


def first_row(evidence: Evidence) -> str:
    """The first row, and the correct one."""
    got, expected = (value if value.dim() == 1 else value[0] for value in (evidence.got, evidence.expected))
    return f"You returned {row(got)}; by hand it is {row(expected)}."
