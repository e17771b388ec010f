"""A cache holds what was appended, in order, for the rows that were kept."""

import pytest
import torch
from drawn import seeds, tensor
from hypothesis import given
from hypothesis import strategies as st

from transformer_ref.model.key_value_cache import DecoderCache, KeysAndValues, KeyValueCache


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4), seeds)
def test_chunks_of_any_size_come_back_in_the_order_they_were_appended(chunks, seed):
    key, value = tensor(seed, 2, 3, sum(chunks), 5), tensor(seed + 1, 2, 3, sum(chunks), 7)
    cache = KeyValueCache()
    for new_key, new_value in zip(key.split(chunks, 2), value.split(chunks, 2), strict=True):
        returned = cache.append(KeysAndValues(new_key, new_value))
    assert torch.equal(returned.key, key) and torch.equal(returned.value, value)
    assert cache.length == sum(chunks)


@given(st.lists(st.integers(0, 3), min_size=1, max_size=6))
def test_selected_rows_may_be_dropped_repeated_and_reordered(rows):
    key, value = tensor(1, 4, 3, 2, 5), tensor(2, 4, 3, 2, 7)
    cache = KeyValueCache()
    cache.append(KeysAndValues(key, value))
    cache.select(torch.tensor(rows))
    assert torch.equal(cache.held.key, key[rows]) and torch.equal(cache.held.value, value[rows])


def test_positions_are_written_beside_those_there_which_move_but_now_and_then():
    cache, places = KeyValueCache(), []
    for position in range(64):
        held = cache.append(KeysAndValues(tensor(position, 2, 3, 1, 5), tensor(position, 2, 3, 1, 7)))
        places.append((held.key.data_ptr(), held.value.data_ptr()))
    assert len(set(places)) <= 7


def test_what_was_appended_is_not_written_over():
    first, second = tensor(1, 2, 3, 2, 5), tensor(2, 2, 3, 1, 5)
    kept = first.clone()
    cache, other = KeyValueCache(), KeyValueCache()
    for each in (cache, other):
        each.append(KeysAndValues(first, first))
    cache.append(KeysAndValues(second, second))
    assert torch.equal(first, kept) and torch.equal(other.held.key, kept)


def test_bf16_is_kept_as_fp32_on_a_cpu_and_nothing_is_lost():
    first, second = (tensor(seed, 2, 3, 2, 5, dtype=torch.bfloat16) for seed in (1, 2))
    cache = KeyValueCache()
    for each in (first, second):
        cache.append(KeysAndValues(each, each))
    assert cache.held.key.dtype == torch.float32
    assert torch.equal(cache.held.key.bfloat16(), torch.cat([first, second], dim=2))


def filled_decoder_cache():
    cache = DecoderCache(layers=2)
    for layer in range(2):
        for of_one, length in ((cache.target[layer], 2), (cache.source[layer], 6)):
            of_one.append(KeysAndValues(tensor(layer, 4, 3, length, 5), tensor(layer + 9, 4, 3, length, 5)))
    return cache


def rows_of(cache, rows):
    """Return the given rows of the keys and values that a cache holds."""
    return [cache.held.key[rows], cache.held.value[rows]]


def test_select_keeps_rows_of_target_and_source_in_every_layer():
    cache, before, rows = filled_decoder_cache(), filled_decoder_cache(), torch.tensor([3, 1])
    cache.select(rows)
    for kept, old in zip(cache.target + cache.source, before.target + before.source, strict=True):
        assert all(map(torch.equal, kept.held, rows_of(old, rows)))


def test_a_new_cache_is_empty_and_selecting_from_it_is_harmless():
    cache = DecoderCache(layers=1)
    cache.select(torch.tensor([0]))
    assert cache.length == 0


def test_a_batch_of_another_size_is_refused():
    cache = KeyValueCache()
    cache.append(KeysAndValues(torch.zeros(2, 3, 1, 5), torch.zeros(2, 3, 1, 5)))
    with pytest.raises(ValueError, match="cache: expected a batch of 2 rows, got 4"):
        cache.append(KeysAndValues(torch.zeros(4, 3, 1, 5), torch.zeros(4, 3, 1, 5)))
