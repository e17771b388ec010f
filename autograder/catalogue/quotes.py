"""Sentences that quote a learner's own numbers, put before a message."""

import torch
from torch import Tensor

from autograder.catalogue.exercise import Evidence, sizes
from autograder.catalogue.numbers import number


def row(tensor: Tensor) -> str:
    """The numbers of a row, as a learner would write them."""
    return " ".join(number(value) for value in tensor.tolist())


def row_sums(evidence: Evidence) -> str:
    """The sums of the rows of a weight matrix."""
    return f"Your rows sum to {row(_weights(evidence).flatten(0, -2).sum(-1)[:4])}."


def columns(evidence: Evidence) -> str:
    """The sums of the columns and rows of the first weight matrix."""
    table = _weights(evidence).flatten(0, -3)[0]
    return f"Your columns sum to {row(table.sum(-2)[:4])}, your rows to {row(table.sum(-1)[:4])}."


def first(evidence: Evidence) -> str:
    """The first number of the result, and the correct one."""
    got, wanted = evidence.got.flatten()[0], evidence.expected.flatten()[0]
    return f"Your first number is {number(got)}; by hand it is {number(wanted)}."


def wrong_row(evidence: Evidence, row_name: str = "row", most: int = 4) -> str:
    """The first row that differs, and the correct one; for another shape, both shapes.

    row_name: what a row is, such as "word". Rows count from 0, over all axes before the last.
    """
    if tuple(evidence.got.shape) != tuple(evidence.expected.shape):
        return sizes(evidence)
    wanted = evidence.expected.flatten(0, -2)
    got = evidence.got.flatten(0, -2).to(wanted.dtype)
    far = ~torch.isclose(got, wanted, rtol=1e-3, atol=1e-5)
    place = int(far.any(-1).int().argmax())
    columns = slice(0, most) if bool(far[place, :most].any()) else slice(-most, None)
    yours, correct = (row(each[place, columns]) for each in (got, wanted))
    if yours == correct:  # they differ in later digits
        at = divmod(int((got - wanted).abs().argmax()), wanted.shape[-1])
        return f"The largest difference is in {row_name} {at[0]}: {got[at]:.9g}, where {wanted[at]:.9g} is correct."
    name = f"Your first {row_name}" if place == 0 else f"Your {row_name} {place}"
    return f"{name} {'is' if columns.start == 0 else 'ends in'} {yours}; it should be {correct}."


def _weights(evidence: Evidence) -> Tensor:
    return evidence.got[1] if isinstance(evidence.got, tuple) else evidence.got
