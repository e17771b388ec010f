"""Figures of single chapters: the numbers drawn are computed from what is passed in, and wrong input is refused."""

import pytest
import torch
from torch.nn import functional as F

from book.figures.heads_poster import heads_poster
from book.figures.memory_levels import memory_levels
from book.figures.norm_placement import norm_placement
from book.figures.position_map import CELL_WIDTH, position_map
from transformer_ref.model.positional_encoding import sinusoidal_table


def normed(word):
    return F.layer_norm(word, word.shape)


def test_both_placements_show_what_they_compute():
    x = torch.tensor([2.0, 4.0, 4.0, 6.0])
    figure = norm_placement(x, lambda word: word.roll(1), normed)
    said = str(figure).splitlines()
    assert "  x + f(x) = (8, 6, 8, 10)" in said and "  LN(x + f(x)) = (0, −1.41, 0, 1.41)" in said
    assert "  x + f(LN(x)) = (3.41, 2.59, 4, 6)" in said
    shown = "".join(drawing.to_svg() for drawing in figure.drawings)
    assert all(step.partition(" = ")[2] in shown for step in said if " = " in step)


def test_a_sub_layer_of_zeros_leaves_the_word_in_pre_norm_alone():
    x = torch.tensor([1.0, 2.0, 3.0, 6.0])
    assert str(norm_placement(x, torch.zeros_like, normed)).endswith("x + f(LN(x)) = (1, 2, 3, 6)")


def boxes(svg: str) -> int:
    return svg.count("<rect")


def test_the_binary_counter_has_a_box_for_each_run_of_ones():
    flat = position_map(torch.zeros(8, 2))  # the sines draw nothing: 0 is paper
    assert boxes(flat.to_svg()) == 2 + 4 + 2 + 1  # two frames; the lowest bit is 1 four times, the next twice, once


def test_the_map_grows_by_a_column_and_merges_equal_neighbors():
    narrow, wide = position_map(sinusoidal_table(32, 14)), position_map(sinusoidal_table(32, 16))
    assert wide.width - narrow.width == 2 * CELL_WIDTH
    assert boxes(wide.to_svg()) < 32 * 16 / 2


@pytest.mark.parametrize("table", [torch.zeros(4), torch.full((4, 2), 2.0), torch.zeros(0, 2)])
def test_a_table_that_is_none_of_positions_is_refused(table):
    with pytest.raises(ValueError, match="table: expected"):
        position_map(table)


def test_each_level_says_how_long_it_reads():
    levels = {"near": (2e6, 1e12), "far": (4e9, 2e9)}
    svg = memory_levels(levels, moved=4e6).to_svg()
    assert "2 MB · 4 µs" in svg and "4 GB · 2 ms" in svg
    with pytest.raises(ValueError, match="smallest and fastest first"):
        memory_levels(dict(reversed(levels.items())), moved=4e6)


def test_the_poster_has_a_table_for_each_head_and_every_shape():
    weights = torch.rand(8, 4, 4).softmax(-1)
    poster = heads_poster(weights, d_model=512)
    svg = poster.to_svg()
    assert boxes(svg) == 1 + 8 * 3 + 8 * (4 * 4 + 2) + 8 + 8 + 1 + 1  # X, pieces, tables, outputs, merged, W_O, result
    for shape in ("(B, T, 512)", "(B, 8, T, 64)", "(B, 8, T, T)", "(512, 512)", "√64"):
        assert shape in svg
    assert heads_poster(weights[:2], d_model=6).to_svg().count(">Q<") == 2


@pytest.mark.parametrize(
    ("shape", "d_model", "said"),
    [((8, 4), 512, "weights: expected"), ((9, 4, 4), 512, "weights: expected"), ((8, 4, 4), 500, "d_model: expected")],
)
def test_a_poster_of_what_are_no_heads_is_refused(shape, d_model, said):
    with pytest.raises(ValueError, match=said):
        heads_poster(torch.rand(shape).softmax(-1), d_model)
