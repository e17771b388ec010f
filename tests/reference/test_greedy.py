"""Greedy decoding says what the model says, row by row, and stops where it stops."""

import pytest
import torch
from drawn import ids as draw_ids
from drawn import seeds, tiny_config, tiny_model
from hypothesis import given
from hypothesis import strategies as st
from scripted_model import ScriptedModel, random_script, says

from transformer_ref.decoding.arguments import kept_rows
from transformer_ref.decoding.greedy import greedy_decode

either_way = pytest.mark.parametrize("use_cache", [True, False])
special_ids = st.sampled_from([(0, 1, 2), (9, 3, 5), (12, 0, 1)])


def answer_to(eos):
    """Return an answer whose length depends on the source: its words doubled, then eos."""
    return lambda source: [*[word for word in source for _ in range(2)][: source[0] - 5], eos]


@either_way
@given(special_ids)
def test_each_row_gets_its_own_answer_then_eos_then_pads(use_cache, special):
    pad, bos, eos = special
    config = tiny_config(source_vocabulary=13, pad=pad, bos=bos, eos=eos)
    model = ScriptedModel(says(answer_to(eos), 13, pad), config)
    source = torch.tensor([[7, 10, pad], [6, pad, pad], [8, 11, 7]])
    assert greedy_decode(model, source, max_length=8, use_cache=use_cache).tolist() == [
        [bos, 7, 7, eos, pad],
        [bos, 6, eos, pad, pad],
        [bos, 8, 8, 11, eos],
    ]


@either_way
def test_an_answer_is_cut_at_max_length(use_cache):
    model = ScriptedModel(says(answer_to(2), 13, 0))
    decoded = greedy_decode(model, torch.tensor([[10, 8, 6], [6, 0, 0]]), max_length=3, use_cache=use_cache)
    assert decoded.tolist() == [[1, 10, 10, 8], [1, 6, 2, 0]]


@given(seeds, st.permutations([0, 1, 2, 3]))
def test_a_row_is_decoded_alike_whatever_stands_beside_it(seed, order):
    model = ScriptedModel(random_script(seed, 6), tiny_config(target_vocabulary=6))
    source = draw_ids(seed, 4, 3)
    together = greedy_decode(model, source, max_length=9)
    for row in range(4):
        alone = greedy_decode(model, source[row : row + 1], max_length=9)[0].tolist()
        assert together[row].tolist() == alone + [0] * (together.shape[1] - len(alone))
    assert torch.equal(greedy_decode(model, source[order], max_length=9), together[order])


@given(seeds, st.booleans())
def test_with_a_cache_and_without_a_transformer_writes_the_same(seed, norm_first):
    model = tiny_model(seed, norm_first=norm_first, target_vocabulary=6, decoder_layers=2)
    source = draw_ids(seed, 9, 6)
    source[1, 4:] = source[3, 2:] = 0
    cached = greedy_decode(model, source, max_length=12)
    assert torch.equal(cached, greedy_decode(model, source, max_length=12, use_cache=False))


def test_the_law_of_the_cache_is_tried_on_rows_that_end_at_different_steps():
    models = [tiny_model(seed, target_vocabulary=6, decoder_layers=2) for seed in range(8)]
    decoded = [greedy_decode(model, draw_ids(seed, 9, 6), max_length=12) for seed, model in enumerate(models)]
    lengths = [set((ids != 0).sum(dim=1).tolist()) for ids in decoded]
    assert max(len(of_one_batch) for of_one_batch in lengths) > 2


@given(st.lists(st.booleans(), max_size=12))
def test_rows_that_go_on_are_kept_once_and_move_only_into_places_of_finished_ones(goes_on):
    rows = kept_rows(torch.tensor(goes_on, dtype=torch.bool)).tolist()
    assert sorted(rows) == [row for row, open_ in enumerate(goes_on) if open_]
    assert all(row == place if goes_on[place] else row >= len(rows) for place, row in enumerate(rows))


def test_finished_rows_are_not_computed_any_more():
    model = ScriptedModel(says(answer_to(2), 13, 0))
    greedy_decode(model, torch.tensor([[7, 10, 0], [6, 0, 0], [8, 11, 7]]), max_length=8)
    assert model.rows_decoded == 3 + 2 + 4  # a step for each token, eos included


def test_nothing_is_decoded_with_dropout():
    with pytest.raises(ValueError, match=r"model: expected evaluation mode .*, got training mode"):
        greedy_decode(tiny_model().train(), torch.tensor([[4, 5]]), max_length=3)
