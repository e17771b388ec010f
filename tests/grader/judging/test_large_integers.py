"""Integers are compared exactly, also those that float64 does not hold and those within a probe's tolerance."""

import pytest
import torch

from autograder.judging import closeness, compare

LARGE = torch.tensor([[3, 2**53 + 1], [2**62, -(2**60)]])


@pytest.mark.parametrize("place", [(0, 1), (1, 0), (1, 1)])
def test_integers_that_differ_by_one_differ_and_their_index_is_said(place):
    other = LARGE.clone()
    other[place] -= 1
    parted = compare.value_difference(LARGE, other, 1e-4, 1e-5)
    assert (parted.kind, parted.index) == ("value", place)
    assert not closeness.equal(LARGE, other) and not closeness.same([LARGE], [other])


def test_integers_have_no_tolerance_and_floats_have():
    counts = torch.tensor([200_000, 7])
    assert compare.value_difference(counts, counts + torch.tensor([1, 0]), 1e-4, 1e-5).index == (0,)
    assert compare.value_difference(counts.double(), counts.double() + 1e-4, 1e-4, 1e-5) is None
    assert closeness.equal(LARGE, LARGE.clone()) and closeness.equal(torch.tensor([True]), torch.tensor([1]))
