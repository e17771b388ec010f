"""Small images that a program draws, each with a question whose answer it knows (chapter 14).

Three tasks on one size of image, gray on noise:

- `shapes`: which of four marks is somewhere? Answered by one place.
- `counts`: how many dots are there? Answered by places that need not know of each other.
- `relations`: are the mark on the left and the mark on the right the same? No single position has the answer.
"""

from typing import NamedTuple

import torch
from torch import Generator, Tensor

SIDE = 18  # pixels of an image, in both directions
MARK = 5  # pixels of a mark
NOISE = 0.1  # its standard deviation; paper is 0, ink is 1
MOST_DOTS = 6

MARKS = {
    "plus": ("..#..", "..#..", "#####", "..#..", "..#.."),
    "ring": ("#####", "#...#", "#...#", "#...#", "#####"),
    "cross": ("#...#", ".#.#.", "..#..", ".#.#.", "#...#"),
    "tee": ("#####", "..#..", "..#..", "..#..", "..#.."),
}
LEFT, RIGHT = (0, 1), (12, 13)  # first columns of a mark in `relations`: at least 6 empty columns lie between


class Images(NamedTuple):
    """Images and their labels."""

    pixels: Tensor  # (image, 1, SIDE, SIDE)
    answers: Tensor  # (image,), int64


def marks() -> Tensor:
    """Return the four marks, (4, MARK, MARK), ink 1 on paper 0, in the order of MARKS."""
    return torch.tensor([[[cell == "#" for cell in row] for row in rows] for rows in MARKS.values()]).float()


def shapes(count: int, generator: Generator, columns: tuple[int, int] = (0, SIDE - MARK)) -> Images:
    """Return images with one mark anywhere; the label says which mark.

    columns: the first and the last column where a mark may begin.
    """
    pixels = _noise(count, generator)
    kinds = torch.randint(len(MARKS), (count,), generator=generator)
    rows = torch.randint(SIDE - MARK + 1, (count,), generator=generator)
    places = torch.randint(columns[0], columns[1] + 1, (count,), generator=generator)
    _draw(pixels, kinds, rows, places)
    return Images(pixels, kinds)


def counts(count: int, generator: Generator) -> Images:
    """Return images with 1 to MOST_DOTS dots of 2 by 2 pixels that do not touch; the label is their number minus 1."""
    pixels = _noise(count, generator)
    dots = torch.randint(1, MOST_DOTS + 1, (count,), generator=generator)
    cells = SIDE // 3  # a dot in a cell of 3 by 3 leaves a gap to the next
    order = torch.rand(count, cells * cells, generator=generator).argsort(dim=1)  # (image, cell)
    for image in range(count):
        for cell in order[image, : dots[image]].tolist():
            row, column = cell // cells * 3, cell % cells * 3
            pixels[image, 0, row : row + 2, column : column + 2] += 1
    return Images(pixels, dots - 1)


def relations(count: int, generator: Generator) -> Images:
    """Return images with a plus or a ring on the left and on the right; the label is 1 if both are the same."""
    pixels = _noise(count, generator)
    kinds = torch.randint(2, (2, count), generator=generator)
    for kind, columns in zip(kinds, (LEFT, RIGHT), strict=True):
        rows = torch.randint(SIDE - MARK + 1, (count,), generator=generator)
        places = torch.randint(columns[0], columns[1] + 1, (count,), generator=generator)
        _draw(pixels, kind, rows, places)
    return Images(pixels, (kinds[0] == kinds[1]).long())


def _noise(count: int, generator: Generator) -> Tensor:
    return torch.randn(count, 1, SIDE, SIDE, generator=generator) * NOISE


def _draw(pixels: Tensor, kinds: Tensor, rows: Tensor, columns: Tensor) -> None:
    drawn = marks()
    for image, (kind, row, column) in enumerate(zip(kinds.tolist(), rows.tolist(), columns.tolist(), strict=True)):
        pixels[image, 0, row : row + MARK, column : column + MARK] += drawn[kind]
