"""Errors at the border name the argument, what was expected and what came."""

import pytest
import torch

from transformer_ref.shapes import expect_ids, expect_mask, expect_shape


def test_a_missing_axis_is_named_with_the_shape_that_came():
    with pytest.raises(ValueError) as error:
        expect_shape("query", torch.zeros(2, 3), "batch", "heads", "query", "d_head")
    assert str(error.value) == "query: expected shape (batch, heads, query, d_head), got (2, 3)"


@pytest.mark.parametrize("shape", [(2, 5, 6), (2, 5, 4), (6, 5), (1, 2, 6, 5)])
def test_a_fixed_size_must_be_met_and_a_word_fits_any_size(shape):
    expect_shape("key", torch.zeros(2, 6, 5), "batch", "key", 5)
    with pytest.raises(ValueError, match=rf"key: expected shape .*, got \({str(shape)[1:-1]}\)"):
        expect_shape("key", torch.zeros(shape), "batch", "key", 5)


@pytest.mark.parametrize("shape", [(6, 5), (2, 6, 5), (2, 3, 4, 6, 5)])
def test_an_ellipsis_stands_for_any_number_of_leading_axes(shape):
    expect_shape("key", torch.zeros(shape), ..., "key", 5)


@pytest.mark.parametrize("shape", [(5,), (2, 5, 6)])
def test_an_ellipsis_still_holds_the_last_axes_to_their_sizes(shape):
    with pytest.raises(ValueError, match=r"key: expected shape \(\.\.\., key, 5\)"):
        expect_shape("key", torch.zeros(shape), ..., "key", 5)


def test_a_list_is_no_tensor():
    with pytest.raises(TypeError, match="key: expected a tensor, got list"):
        expect_shape("key", [1.0], "key")


@pytest.mark.parametrize("dtype", [torch.float32, torch.int32, torch.bool])
def test_ids_of_another_dtype_are_refused(dtype):
    expect_ids("ids", torch.zeros(2, 3, dtype=torch.int64), "batch", "key")
    with pytest.raises(TypeError, match="ids: expected ids of dtype torch.int64, got torch"):
        expect_ids("ids", torch.zeros(2, 3, dtype=dtype), "batch", "key")


@pytest.mark.parametrize("mask", [torch.ones(4, 6), torch.ones(4, 6, dtype=torch.int64), None])
def test_a_mask_of_numbers_is_refused(mask):
    with pytest.raises(TypeError, match="mask: expected a boolean tensor"):
        expect_mask("mask", mask, 2, 4, 6)


@pytest.mark.parametrize("shape", [(), (6,), (1, 6), (4, 1), (2, 1, 6), (2, 4, 6)])
def test_a_mask_that_broadcasts_is_accepted(shape):
    expect_mask("mask", torch.ones(shape, dtype=torch.bool), 2, 4, 6)


@pytest.mark.parametrize("shape", [(4,), (6, 4), (3, 1, 6), (2, 4, 2), (1, 2, 4, 6)])
def test_a_mask_that_does_not_broadcast_is_refused(shape):
    with pytest.raises(ValueError, match=r"mask: expected a shape that broadcasts to \(2, 4, 6\)"):
        expect_mask("mask", torch.ones(shape, dtype=torch.bool), 2, 4, 6)
