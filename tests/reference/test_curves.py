"""Curves stay inside their picture, on axes of round numbers."""

import itertools
import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer_ref.visualization.curves import WIDTH, curves, ticks

ALT = "Two losses fall, the second above the first."
numbers = st.floats(-1e6, 1e6, allow_nan=False)


@given(numbers, st.floats(1e-3, 1e6))
def test_ticks_are_a_few_at_equal_distances_and_hold_the_whole_range(low, extent):
    marks = ticks(low, low + extent)
    assert 2 <= len(marks) <= 8
    assert marks[0] <= low + 1e-6 * extent and marks[-1] >= low + extent - 1e-6 * extent
    step = (marks[-1] - marks[0]) / (len(marks) - 1)
    assert all(math.isclose(late - early, step, rel_tol=1e-6) for early, late in itertools.pairwise(marks))


def test_ticks_of_a_range_worked_by_hand():
    assert ticks(0, 10) == [0, 2, 4, 6, 8, 10]
    assert ticks(1.9, 3.1) == [1.5, 2.0, 2.5, 3.0, 3.5]
    assert ticks(4, 4) == [4, 5]


@given(st.lists(st.tuples(numbers, numbers), max_size=30))
def test_every_point_lies_inside_the_picture(points):
    svg = curves({"training": sorted(points), "validation": sorted(points)[:2]}, ALT, "step", "loss").to_svg()
    height = float(re.search(r'viewBox="0 0 \S+ (\S+)"', svg)[1])
    for path in re.findall(r'<polyline points="([^"]*)"', svg):
        for x, y in (pair.split(",") for pair in path.split()):
            assert 0 <= float(x) <= WIDTH and 0 <= float(y) <= height


@pytest.mark.parametrize("series", [{}, {"training": []}, {"training": [[1, math.nan], [2, 3.0]]}])
def test_nothing_to_draw_is_drawn_as_empty_axes(series):
    assert not re.search(r"\bnan\b", curves(series, ALT, "step", "loss").to_svg())


def test_a_higher_loss_is_drawn_higher():
    svg = curves({"training": [[0, 8.0], [10, 2.0]]}, ALT, "step", "loss").to_svg()
    (_, first), (_, last) = (pair.split(",") for pair in re.search(r'points="([^"]*)"', svg)[1].split())
    assert float(first) < float(last)
