"""Padding, shifting, packing by tokens, and a stream of batches that can be set to any place."""

import itertools
from array import array

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from transformer_ref.data.batching import BatchStream, NextBatch, pad_sequences, shift_right, token_batches

sequences = st.lists(st.lists(st.integers(4, 99), min_size=1, max_size=9), min_size=1, max_size=12)


def stream(seed: int = 5, max_tokens: int = 40) -> BatchStream:
    """Return a stream of distinct pairs: sentence i holds the ids 10 i, 10 i + 1, ..."""
    lengths = [1 + i * 7 % 5 for i in range(30)]
    sources = [[10 * i + j + 4 for j in range(length)] for i, length in enumerate(lengths)]
    targets = [[1000 + each for each in source][::-1] + [2000] for source in sources]
    return BatchStream(sources, targets, max_tokens, pad=0, bos=1, eos=2, seed=seed)


@given(sequences, st.integers(0, 3))
def test_padding_keeps_each_sequence_and_adds_only_pads(rows, pad):
    padded = pad_sequences(rows, pad)
    assert padded.shape == (len(rows), max(map(len, rows))) and padded.dtype == torch.int64
    for row, sequence in zip(padded.tolist(), rows, strict=True):
        assert row == sequence + [pad] * (padded.shape[1] - len(sequence))


@given(sequences)
def test_shifting_right_puts_bos_before_all_labels_but_the_last(rows):
    labels = pad_sequences(rows, 0)
    before = labels.clone()
    shifted = shift_right(labels, 7)
    assert shifted[:, 0].eq(7).all() and shifted[:, 1:].equal(labels[:, :-1])
    assert labels.equal(before)


@given(st.lists(st.integers(1, 30), min_size=1, max_size=60), st.integers(30, 90), st.none() | st.integers(0, 99))
def test_batches_hold_each_item_once_and_never_more_padded_cells_than_allowed(lengths, max_tokens, seed):
    batches = token_batches(lengths, max_tokens, None if seed is None else torch.Generator().manual_seed(seed))
    assert sorted(itertools.chain(*batches)) == list(range(len(lengths)))
    for batch in batches:
        assert 0 < max(lengths[item] for item in batch) * len(batch) <= max_tokens


@given(st.lists(st.integers(1, 30), min_size=1, max_size=60), st.integers(30, 90))
def test_no_batch_has_room_for_the_next_shortest_item(lengths, max_tokens):
    batches = token_batches(lengths, max_tokens)
    for batch, following in itertools.pairwise(batches):
        assert (len(batch) + 1) * lengths[following[0]] > max_tokens


def test_batches_come_in_another_order_for_another_generator():
    lengths = [1 + i % 7 for i in range(200)]
    orders = [token_batches(lengths, 40, torch.Generator().manual_seed(seed)) for seed in (1, 1, 2)]
    assert orders[0] == orders[1] != orders[2]
    assert [max(map(lengths.__getitem__, batch)) for batch in orders[0]] != sorted(
        max(map(lengths.__getitem__, batch)) for batch in orders[0]
    )


def test_an_item_that_fits_no_batch_is_named():
    with pytest.raises(ValueError, match=r"expected at most max_tokens \(8\), got 9 for item 2"):
        token_batches([3, 8, 9], 8)


def test_labels_end_in_eos_and_the_input_is_the_labels_shifted():
    for batch in itertools.islice(stream(), 20):
        for labels, target_input, source in zip(batch.target_labels, batch.target_input, batch.source, strict=True):
            real = labels[labels != 0].tolist()
            assert real[-1] == 2 and real[-2] == 2000
            assert target_input.tolist()[: len(real)] == [1, *real[:-1]]
            assert source[source != 0].tolist() == [*[each - 1000 for each in real[:-2]][::-1], 2]


def test_every_epoch_has_every_sentence_once_in_another_order():
    batches = stream()
    first_epoch, second_epoch = [], []
    for batch in batches:
        if batches.epoch == 2:
            break
        (first_epoch if batches.epoch == 0 else second_epoch).extend(batch.source[:, 0].tolist())
    assert sorted(first_epoch) == sorted(second_epoch) == [10 * i + 4 for i in range(30)]
    assert first_epoch != second_epoch


@pytest.mark.parametrize("passed", [0, 1, 7, 19, 33])
def test_a_stream_set_to_a_place_goes_on_as_the_one_that_walked_there(passed):
    walked = stream()
    walking = iter(walked)
    for _ in range(passed):
        next(walking)
    jumped = stream()
    jumped.epoch, jumped.position = walked.epoch, walked.position
    for one, other in zip(itertools.islice(walking, 12), itertools.islice(jumped, 12), strict=True):
        assert all(a.equal(b) for a, b in zip(one, other, strict=True))


def test_a_stream_needs_a_target_for_each_source():
    with pytest.raises(ValueError, match="expected one for each of 2 sources"):
        BatchStream([[4], [5]], [[6]], 10, pad=0, bos=1, eos=2, seed=0)


def test_a_stream_is_told_from_one_with_the_same_ids_cut_elsewhere_and_not_from_the_same_one():
    def stream(sources, targets, seed=1):
        return BatchStream(sources, targets, 9, 0, 1, 2, seed)

    one = stream([[4, 5], [6]], [[7], [8]])
    assert one.sha256 == stream([array("i", [4, 5]), array("i", [6])], [[7], [8]], seed=2).sha256
    others = [([[4], [5, 6]], [[7], [8]]), ([[4, 5], [6]], [[8], [7]]), ([[7], [8]], [[4, 5], [6]])]
    assert len({one.sha256, *(stream(*other).sha256 for other in others)}) == 4


def test_a_batch_is_counted_once_and_what_was_counted_is_not_kept_for_another_batch():
    batch = next(iter(stream()))
    counted = batch.counted(0)
    assert batch.real is None and counted.counted(0) is counted
    assert counted.target_labels.flatten()[counted.real].equal(batch.target_labels[batch.target_labels != 0])
    assert counted.to(torch.device("cpu")).real.equal(counted.real)
    assert counted._replace(target_labels=batch.target_labels[:, 1:]).real is None
    assert counted.rows(0, 2).real is None


@pytest.mark.parametrize("ahead", [False, True])
def test_a_stream_stands_behind_the_last_batch_that_was_taken_even_if_the_next_one_is_built(ahead):
    walked, read = stream(), stream()
    walking, batches = iter(walked), NextBatch(read)
    for _ in range(25):  # more than an epoch
        if ahead:
            batches.build()
            batches.build()
        assert all(one.equal(other) for one, other in zip(batches.take(), next(walking), strict=True))
        assert (read.epoch, read.position) == (walked.epoch, walked.position)
    assert read.epoch > 0
