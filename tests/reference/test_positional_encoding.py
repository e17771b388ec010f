"""Positions differ, and a shift is the same rotation everywhere."""

import math

import pytest
import torch
from drawn import seeds, sizes, tensor
from hypothesis import given
from hypothesis import strategies as st

from transformer_ref.model.positional_encoding import LearnedPositions, SinusoidalPositions, sinusoidal_table

both_modules = pytest.mark.parametrize("module", [SinusoidalPositions, LearnedPositions])


@given(sizes(2, largest=40))
def test_each_entry_is_the_sine_or_cosine_of_the_formula(drawn):
    length, d_model = drawn
    table = sinusoidal_table(length, d_model)
    assert table.shape == (length, d_model)
    for position in range(length):
        for column in range(d_model):
            angle = position / 10_000 ** (2 * (column // 2) / d_model)
            expected = math.cos(angle) if column % 2 else math.sin(angle)
            assert table[position, column].item() == pytest.approx(expected, abs=1e-6)  # float32


@given(st.integers(1, 9), st.integers(1, 20), st.integers(0, 50))
def test_a_shift_is_one_rotation_whatever_the_position(pairs, shift, position):
    d_model = 2 * pairs
    table = sinusoidal_table(position + shift + 1, d_model).double()
    for pair in range(pairs):
        angle = shift / 10_000 ** (2 * pair / d_model)
        sine, cosine = table[position, 2 * pair : 2 * pair + 2]
        rotated = torch.stack(
            [sine * math.cos(angle) + cosine * math.sin(angle), cosine * math.cos(angle) - sine * math.sin(angle)]
        )
        moved = table[position + shift, 2 * pair : 2 * pair + 2]
        torch.testing.assert_close(moved, rotated, rtol=0, atol=1e-6)  # the table is float32


@given(sizes(2, largest=20))
def test_the_concatenated_layout_holds_the_same_columns_sines_first(drawn):
    length, d_model = drawn
    interleaved = sinusoidal_table(length, d_model)
    expected = torch.cat([interleaved[:, 0::2], interleaved[:, 1::2]], dim=1)
    assert torch.equal(sinusoidal_table(length, d_model, "concatenated"), expected)


def test_the_printed_table_of_four_columns():
    expected = torch.tensor(
        [[0, 1, 0, 1], [0.841, 0.540, 0.010, 1.0], [0.909, -0.416, 0.020, 1.0], [0.141, -0.990, 0.030, 1.0]]
    )
    torch.testing.assert_close(sinusoidal_table(4, 4), expected, rtol=0, atol=6e-4)  # three digits printed


@both_modules
@given(drawn=sizes(4), seed=seeds)
def test_tokens_further_on_get_the_rows_that_the_whole_sequence_would_get(module, drawn, seed):
    batch, before, after, d_model = drawn
    positions = module(before + after, d_model)
    x = tensor(seed, batch, before + after, d_model, dtype=torch.float32)
    assert torch.equal(positions(x[:, before:], before), positions(x)[:, before:])


@both_modules
def test_positions_beyond_the_table_are_refused(module):
    positions = module(5, 4)
    with pytest.raises(ValueError, match="length: expected at most 5 positions, got 6"):
        positions(torch.zeros(2, 2, 4), 4)
    with pytest.raises(ValueError, match=r"x: expected shape \(batch, length, 4\)"):
        positions(torch.zeros(2, 2, 1))


@both_modules
def test_tokens_may_stand_anywhere_and_several_at_one_place(module):
    positions, x = module(5, 4), torch.zeros(2, 3, 4)
    table = positions(torch.zeros(1, 5, 4))[0]
    assert torch.equal(positions(x, [4, 1, 1]), table[[4, 1, 1]].expand(2, -1, -1))
    with pytest.raises(ValueError, match="positions: expected one for each of 3 tokens, got 2"):
        positions(x, [4, 1])


def test_the_sinusoids_are_neither_learned_nor_saved():
    positions = SinusoidalPositions(5, 4)
    assert not list(positions.parameters()) and not positions.state_dict()
    assert [name for name, _ in LearnedPositions(5, 4).named_parameters()] == ["table"]


def test_another_layout_is_refused():
    with pytest.raises(ValueError, match='layout: expected "interleaved" or "concatenated", got "mixed"'):
        sinusoidal_table(3, 4, "mixed")
