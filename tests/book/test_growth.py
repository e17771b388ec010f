"""Lines over two axes that count in powers: chapter 16's figures, and those of the command that measures."""

import itertools
import re

import pytest
from bs4 import BeautifulSoup

from transformer_ref.visualization.growth import growth, said

SIZES = [64, 128, 256, 512]


def lines_of(drawing):
    """The curves' points, the legend's left out."""
    paths = [
        [tuple(map(float, point.split(","))) for point in line["points"].split()]
        for line in BeautifulSoup(drawing.to_svg(), "html.parser").select("polyline")
    ]
    return [path for path in paths if len({y for _, y in path}) > 1 or len(path) != 3]


def test_a_power_is_a_straight_line_and_its_slope_is_the_power():
    series = {f"n to the {power}": [1e-6 * size**power for size in SIZES] for power in (1, 2)}
    steps = []
    for path in lines_of(growth(SIZES, series, "seconds", "time of two ways", "tokens")):
        slopes = [(y - y2) / (x2 - x) for (x, y), (x2, y2) in itertools.pairwise(path)]
        assert max(slopes) - min(slopes) < 0.01
        steps.append(slopes[0])
    assert steps[1] == pytest.approx(2 * steps[0], rel=0.01)


def test_what_was_not_measured_is_left_out_of_its_line_and_every_number_is_said():
    drawing = growth(SIZES, {"a": [1.0, 2.0, None, None], "b": [4e3] * 4}, "bytes", "room of two ways", "tokens")
    assert [len(path) for path in lines_of(drawing)] == [2, 4]
    assert "a: 1 B at 64, 2 B at 128; b: 4 kB at 64" in drawing.alt


def test_lines_are_told_apart_without_color():
    drawing = growth(SIZES, {name: [1.0, 2.0, 3.0, 4.0] for name in "abcd"}, "bytes", "four equal ways", "tokens")
    picture = BeautifulSoup(drawing.to_svg(), "html.parser")
    looks = [
        (
            bool(line.get("stroke-dasharray")),
            bool(line.find_next_sibling() and line.find_next_sibling().name == "circle"),
        )
        for line in picture.select("polyline")[::2]
    ]
    assert len(set(looks)) == 4


@pytest.mark.parametrize(
    ("value", "unit", "words"),
    [
        (2.1e-7, "seconds", "0.21 µs"),
        (4.4e-5, "seconds", "44 µs"),
        (0.0012, "seconds", "1.2 ms"),
        (3.59, "seconds", "3.6 s"),
        (250.0, "seconds", "250 s"),
        (999, "bytes", "999 B"),
        (1000, "bytes", "1 kB"),
        (16_777_216, "bytes", "17 MB"),
        (4.0e10, "bytes", "40 GB"),
    ],
)
def test_numbers_are_said_with_the_unit_that_fits(value, unit, words):
    assert said(value, unit) == words


def test_numbers_that_cannot_be_drawn_are_refused():
    with pytest.raises(ValueError, match="unit: expected one of seconds, bytes, got 'meters'"):
        growth(SIZES, {"a": [1.0] * 4}, "meters", "a title that is long", "tokens")
    with pytest.raises(ValueError, match="series: expected at least one number, got none"):
        growth(SIZES, {"a": [None] * 4}, "bytes", "a title that is long", "tokens")


def test_all_words_are_inside_the_picture():
    drawing = growth(SIZES, {"a": [1e-6, 1e-3, 1.0, 900.0]}, "seconds", "time, every token sees all", "tokens")
    for text in BeautifulSoup(drawing.to_svg(), "html.parser").select("text"):
        long = 0.5 * float(text.get("font-size", 14)) * len(re.sub(r"\s", " ", text.get_text()))
        start = {"start": 0.0, "middle": long / 2, "end": long}[text.get("text-anchor", "middle")]
        assert float(text["x"]) - start >= -1 and float(text["x"]) - start + long <= drawing.width + 1
