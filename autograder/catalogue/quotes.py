"""Sentences that quote a learner's own numbers, put before a message."""

from torch import Tensor

from autograder.catalogue.exercise import Evidence
from autograder.catalogue.numbers import number


def row(tensor: Tensor) -> str:
    """The numbers of a row as a learner would write them."""
    return " ".join(number(value) for value in tensor.tolist())


def row_sums(evidence: Evidence) -> str:
    """What the rows of a weights table sum to."""
    return f"Your rows sum to {row(_weights(evidence).flatten(0, -2).sum(-1)[:4])}."


def columns(evidence: Evidence) -> str:
    """What the columns and rows of the first weights table sum to."""
    table = _weights(evidence).flatten(0, -3)[0]
    return f"Your columns sum to {row(table.sum(-2)[:4])}, your rows to {row(table.sum(-1)[:4])}."


def sizes(evidence: Evidence) -> str:
    """Which shape came back, and which was expected."""
    return f"You returned shape {tuple(evidence.got.shape)} where {tuple(evidence.expected.shape)} was expected."


def first(evidence: Evidence) -> str:
    """The first number of the result, as it is and as it should be."""
    got, wanted = evidence.got.flatten()[0], evidence.expected.flatten()[0]
    return f"Your first number is {number(got)}; by hand it is {number(wanted)}."


def top_row(evidence: Evidence) -> str:
    """The first row of a table, as it is and as it should be."""
    return f"Your first row is {row(evidence.got[0])}; by hand it is {row(evidence.expected[0])}."


def _weights(evidence: Evidence) -> Tensor:
    return evidence.got[1] if isinstance(evidence.got, tuple) else evidence.got
