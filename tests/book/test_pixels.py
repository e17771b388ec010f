"""Small images, drawn as the squares they are made of."""

import re

import pytest
import torch

from transformer_ref.visualization.drawing import Drawing
from transformer_ref.visualization.pixels import cut, paint, paint_apart


def squares(pixels: torch.Tensor, pixel: float = 10) -> list[tuple[float, float, float, str]]:
    drawing = Drawing(100, 100, "An image of a few pixels.")
    paint(drawing, pixels, 0, 0, pixel)
    svg = drawing.to_svg()
    pattern = r'<rect x="([\d.]+)" y="([\d.]+)" width="([\d.]+)" height="[\d.]+" style="fill:(#\w+)'
    found = [(*map(float, box), color) for *box, color in re.findall(pattern, svg)]
    for path, color in re.findall(r'<path d="([^"]*)" style="fill:(#\w+)', svg):
        found += [(*map(float, box), color) for box in re.findall(r"M([\d.]+) ([\d.]+)h([\d.]+)v[\d.]+h-[\d.]+z", path)]
    return found


def test_boxes_of_one_color_are_one_shape():
    drawing = Drawing(100, 100, "Nine pixels, three of them black.")
    paint(drawing, torch.eye(3), 0, 0, 10)
    assert drawing.to_svg().count("<path") == 1


def test_ink_stands_where_it_is_and_neighbors_of_one_shade_are_one():
    pixels = torch.tensor([[0.0, 1, 1], [0, 0, 0], [1, 0, 1]])
    assert squares(pixels) == [(0, 0, 30, "#fff"), (10, 0, 20.3, "#000"), (0, 20, 10.3, "#000"), (20, 20, 10.3, "#000")]


def test_colors_are_colors_and_what_is_beyond_is_cut_off():
    red = torch.tensor([1.5, -0.2, 0.0])[:, None, None].expand(3, 2, 2)
    assert squares(red) == [(0, 0, 20, "#f00")]


def test_another_shape_is_refused():
    with pytest.raises(ValueError, match="pixels: expected"):
        squares(torch.zeros(1, 2, 2))


def test_patches_are_read_row_by_row_and_drawn_apart():
    pixels = torch.arange(16.0).reshape(4, 4)
    assert [patch.flatten().tolist() for patch in cut(pixels, 2)][1] == [2, 3, 6, 7]
    drawing = Drawing(100, 100, "Four patches, drawn apart.")
    paint_apart(drawing, torch.zeros(4, 4), 0, 0, 10, 2, 5)
    assert re.findall(r'<rect x="([\d.]+)" y="([\d.]+)"', drawing.to_svg()) == [
        ("0", "0"), ("25", "0"), ("0", "25"), ("25", "25"),
    ]  # fmt: skip
