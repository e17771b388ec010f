"""Small images drawn as the squares that they are made of, whole or cut into patches."""

import math
from typing import Any

from transformer_ref.visualization.drawing import Drawing

SEAM = 0.3  # by which a square reaches into the next, or a hair of paper is seen between them
LEVELS = 15  # shades of a channel that can be distinguished: neighbors of one shade are drawn as one


def paint(drawing: Drawing, pixels: Any, x: float, y: float, pixel: float) -> None:
    """Draw an image with its upper left corner at (x, y), each of its pixels `pixel` wide.

    pixels: a tensor (3, height, width), colors from 0 to 1, or (height, width), where 0 is white and 1 is black; other
    values are clipped. Raises ValueError for another shape.
    """
    if pixels.dim() == 2:
        pixels = (1 - pixels).expand(3, -1, -1)  # (3, height, width)
    if pixels.dim() != 3 or pixels.shape[0] != 3:
        raise ValueError(f"pixels: expected (3, height, width) or (height, width), got {tuple(pixels.shape)}")
    shades = (pixels.clamp(0, 1) * LEVELS).round().long()
    colors = [
        ["#" + "".join(f"{shade:x}" for shade in cell) for cell in row] for row in shades.permute(1, 2, 0).tolist()
    ]
    ground = max((color for row in colors for color in row), key=[c for row in colors for c in row].count)
    drawing.rectangle(x, y, pixel * len(colors[0]), pixel * len(colors), ground)
    boxes: dict[str, list[tuple[float, float, float, float]]] = {}  # color -> where it is
    for down, row in enumerate(colors):
        start = 0
        for across in range(1, len(row) + 1):
            if across == len(row) or row[across] != row[start]:
                box = (x + pixel * start, y + pixel * down, pixel * (across - start) + SEAM, pixel + SEAM)
                boxes.setdefault(row[start], []).append(box)
                start = across
    for color, places in boxes.items():
        if color != ground:
            drawing.boxes(places, color)


def cut(pixels: Any, p: int) -> list[Any]:
    """Return the patches of an image, a tensor, p by p pixels each, row by row: (3, p, p), or (p, p)."""
    rows, columns = pixels.shape[-2] // p, pixels.shape[-1] // p
    return [
        pixels[..., p * (n // columns) : p * (n // columns + 1), p * (n % columns) : p * (n % columns + 1)]
        for n in range(rows * columns)
    ]


def paint_apart(drawing: Drawing, pixels: Any, x: float, y: float, pixel: float, p: int, gap: float) -> None:
    """Draw an image cut into patches, `gap` between them."""
    patches = cut(pixels, p)
    across = math.isqrt(len(patches))
    for number, patch in enumerate(patches):
        step = p * pixel + gap
        paint(drawing, patch, x + step * (number % across), y + step * (number // across), pixel)
