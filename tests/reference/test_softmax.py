"""Shares are positive and sum to one, and what is masked has no share."""

import pytest
import torch
from drawn import mask as draw_mask
from drawn import seeds, sizes, tensor
from hypothesis import given
from hypothesis import strategies as st

from transformer_ref.model.softmax import masked_softmax, softmax

axes = st.sampled_from([-1, 0, 1])


@given(sizes(3), seeds, axes)
def test_shares_are_positive_and_sum_to_one_along_the_axis_asked_for(shape, seed, dim):
    shares = softmax(tensor(seed, *shape), dim)
    assert (shares > 0).all()
    torch.testing.assert_close(shares.sum(dim), torch.ones_like(shares.sum(dim)))


@given(sizes(3), seeds, axes)
def test_softmax_agrees_with_the_library(shape, seed, dim):
    scores = 3 * tensor(seed, *shape)
    torch.testing.assert_close(softmax(scores, dim), torch.softmax(scores, dim))


@given(sizes(2), seeds, st.floats(-1e6, 1e6))
def test_adding_one_number_to_every_score_changes_nothing(shape, seed, shift):
    scores = tensor(seed, *shape)
    torch.testing.assert_close(softmax(scores + shift), softmax(scores), atol=1e-8, rtol=0)  # rounding at 1e6


@given(sizes(2), seeds)
def test_masked_places_get_exactly_zero_and_the_rest_is_the_softmax_of_the_rest(shape, seed):
    scores, mask = tensor(seed, *shape), draw_mask(seed, *shape)
    shares = masked_softmax(scores, mask)
    assert (shares[~mask] == 0).all()
    for row, allowed, row_shares in zip(scores, mask, shares, strict=True):
        torch.testing.assert_close(row_shares[allowed], torch.softmax(row[allowed], -1))


@given(sizes(2), seeds, st.sampled_from([1e6, -1e6, 1e30]))
def test_the_score_of_a_masked_place_does_not_matter(shape, seed, poison):
    scores, mask = tensor(seed, *shape), draw_mask(seed, *shape)
    assert torch.equal(masked_softmax(scores.masked_fill(~mask, poison), mask), masked_softmax(scores, mask))


@given(sizes(3), seeds, axes)
def test_a_mask_acts_along_the_axis_asked_for(shape, seed, dim):
    scores, mask = tensor(seed, *shape), draw_mask(seed, *shape)
    sums = masked_softmax(scores, mask, dim).sum(dim)
    torch.testing.assert_close(sums, mask.any(dim).to(sums.dtype))


@pytest.mark.filterwarnings("ignore:Anomaly Detection has been enabled")
def test_a_slice_without_any_place_is_zero_with_zero_gradients():
    scores = tensor(1, 2, 3).requires_grad_()
    mask = torch.tensor([[False, False, False], [True, False, True]])
    with torch.autograd.detect_anomaly(check_nan=True):
        shares = masked_softmax(scores, mask)
        (shares * tensor(2, 2, 3)).sum().backward()
    assert shares[0].tolist() == [0, 0, 0]
    assert scores.grad[0].tolist() == [0, 0, 0]
    assert scores.grad[1, 0] != 0


def test_one_hot_shares_at_scores_that_would_overflow():
    assert softmax(torch.tensor([[1000.0, 0.0], [-1000.0, -2000.0]])).tolist() == [[1, 0], [1, 0]]
    assert softmax(torch.tensor([0.0, -torch.inf])).tolist() == [1, 0]


def test_scores_below_any_made_up_constant_still_beat_a_masked_place():
    shares = masked_softmax(torch.tensor([-30_000.0, -30_001.0, 0.0]), torch.tensor([True, True, False]))
    torch.testing.assert_close(shares, torch.tensor([0.7311, 0.2689, 0.0]), atol=5e-5, rtol=0)


def test_half_precision_stays_half_precision_and_finite():
    scores = torch.tensor([[200.0, 190.0, 60_000.0], [1.0, 2.0, 3.0]], dtype=torch.float16)
    shares = masked_softmax(scores, torch.tensor([[True, True, False], [False, False, False]]))
    assert shares.dtype == torch.float16
    assert shares.isfinite().all() and shares[0, 0] > 0.99 and shares[1].sum() == 0


def test_a_score_that_is_no_number_is_not_hidden():
    shares = masked_softmax(torch.tensor([torch.nan, 1.0, 2.0]), torch.tensor([True, True, False]))
    assert shares[:2].isnan().all()


def test_the_worked_examples():
    for scores, shares in (([1.0, 0.71], [0.572, 0.428]), ([1.414, 1.414, 0.0, 2.828], [0.157, 0.157, 0.038, 0.647])):
        torch.testing.assert_close(softmax(torch.tensor(scores)), torch.tensor(shares), atol=5e-4, rtol=0)


def test_the_gradient_is_the_derivative_and_the_scores_are_left_alone():
    scores, mask = tensor(3, 4, 5).requires_grad_(), draw_mask(3, 4, 5)
    before = scores.detach().clone()
    assert torch.autograd.gradcheck(softmax, (scores,))
    assert torch.autograd.gradcheck(lambda x: masked_softmax(x, mask), (scores,))
    assert torch.equal(scores, before)


def test_no_mask_allows_every_place():
    scores = tensor(4, 2, 3)
    assert torch.equal(masked_softmax(scores, None), softmax(scores))


def test_a_mask_of_zeros_and_ones_is_refused():
    with pytest.raises(TypeError, match="mask: expected a boolean tensor"):
        masked_softmax(torch.zeros(2, 3), torch.ones(2, 3))
