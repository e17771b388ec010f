"""True = may attend, on the key axis."""

import pytest
import torch
from drawn import ids as draw_ids
from drawn import seeds, sizes
from hypothesis import given
from hypothesis import strategies as st

from transformer_ref.model.masks import causal_mask, decoder_mask, padding_mask


@given(sizes(2), seeds, st.sampled_from([0, 7]))
def test_padding_mask_hides_the_pads_as_keys_from_every_query(shape, seed, pad):
    ids = draw_ids(seed, *shape, low=0, high=9)
    mask = padding_mask(ids, pad)
    assert mask.shape == (shape[0], 1, 1, shape[1]) and mask.dtype == torch.bool
    assert mask[:, 0, 0].tolist() == [[id != pad for id in row] for row in ids.tolist()]


@given(st.integers(1, 7), st.integers(0, 5))
def test_causal_mask_hides_every_later_position_and_no_other(length, offset):
    mask = causal_mask(length, offset)
    assert mask.shape == (length, offset + length) and mask.dtype == torch.bool
    for query in range(length):
        assert mask[query].tolist() == [key <= offset + query for key in range(offset + length)]


@given(st.integers(2, 7), st.integers(1, 6))
def test_a_chunk_s_mask_is_the_last_rows_of_the_whole_mask(length, chunk):
    chunk = min(chunk, length)
    assert torch.equal(causal_mask(chunk, length - chunk), causal_mask(length)[length - chunk :])


@given(sizes(2), seeds, st.sampled_from([0, 7]))
def test_decoder_mask_allows_a_key_that_is_real_and_not_later(shape, seed, pad):
    ids = draw_ids(seed, *shape, low=0, high=9)
    mask = decoder_mask(ids, pad)
    batch, length = shape
    assert mask.shape == (batch, 1, length, length)
    for row in range(batch):
        for query in range(length):
            assert mask[row, 0, query].tolist() == [
                key <= query and ids[row, key].item() != pad for key in range(length)
            ]


def test_six_words_leave_fifteen_cells_blocked():
    assert (~causal_mask(6)).sum() == 15


def test_ids_of_another_dtype_or_shape_are_refused():
    with pytest.raises(TypeError, match="ids: expected ids of dtype torch.int64"):
        padding_mask(torch.zeros(2, 3), 0)
    with pytest.raises(ValueError, match=r"ids: expected shape \(batch, key\), got \(3,\)"):
        decoder_mask(torch.zeros(3, dtype=torch.int64), 0)
