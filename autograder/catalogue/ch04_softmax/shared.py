"""What the exercises of chapter 04 share."""

import torch

from autograder.catalogue.exercise import Case, Evidence, Law
from autograder.catalogue.numbers import number
from autograder.catalogue.parts import normal, row
from autograder.catalogue.sections import of_chapter

THINGS = torch.tensor(
    [[1.0, 0.71, -1.0], [0.0, 2.0, 1.0]]
)  # orange against orange, apple, motorcycle; and plain numbers
WINDOWS = torch.tensor([1.414, 1.414, 0.0, 2.828])  # what windows scored in chapter 03
INFINITY = float("inf")


# torch's own softmax, and what runs one for you. Modules and other spellings end in these (see recorder.MEANINGS).
LIBRARY_SOFTMAX = (
    "softmax",
    "log_softmax",
    "softmin",
    "gumbel_softmax",
    "cross_entropy",
    "Categorical",
    "scaled_dot_product_attention",
    "MultiheadAttention",
    "flex_attention",
)

ROWS_SUM_TO_ONE = Law("every row sums to 1", lambda got: torch.allclose(got.sum(-1), torch.ones(()), atol=1e-4))

CUT_OFF = "The values are right, but no gradient flows back to x: .detach(), .data, no_grad, numpy or a plain list cut the graph."
FLOAT32 = "float64 went in and float32 came out. The result keeps the dtype of the input."
IN_PLACE = """x was changed. An operation such as -=, /= or exp_ writes into the tensor that was passed in, and the caller still
needs it. Make a new one."""


def _sums(evidence: Evidence) -> str:
    """What each row, or the single row, sums to."""
    got = evidence.got
    if got.dim() == 1:
        return f"Your numbers sum to {number(got.sum())}."
    return f"Your rows sum to {row(got.sum(-1))}."


def _columns(evidence: Evidence) -> str:
    return f"Your columns sum to {row(evidence.got.sum(0))}, your rows to {row(evidence.got.sum(-1))}."


def _first_row(evidence: Evidence) -> str:
    """The first row as it is and as it should be."""
    got, expected = (value if value.dim() == 1 else value[0] for value in (evidence.got, evidence.expected))
    return f"You returned {row(got)}; by hand it is {row(expected)}."


def _large(g: torch.Generator) -> Case:
    """Whole numbers around +1000, -1000 and 0: exact in float32, far beyond what an exponential can hold."""
    x = torch.randint(-3, 4, (3, 4), generator=g).float() + torch.tensor([1000.0, -1000.0, 0.0])[:, None]
    x[:, 1] += 4.5  # so that no row is all equal
    return Case((x, 1))


def _forbidden_word(g: torch.Generator, rows: int, columns: int) -> Case:
    x = normal(g, rows, columns)
    x[1, 2], x[0, 0] = -INFINITY, -INFINITY
    return Case((x, -1))


sections = of_chapter("04")
