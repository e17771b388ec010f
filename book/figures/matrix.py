"""A matrix as a picture: a cell for each number, painted by its role, with words on two sides."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from transformer_ref.visualization.drawing import FONT_SIZE, Drawing
from transformer_ref.visualization.palette import GRID, INK, KEY, QUERY, signed_fill, text_on, weight_fill

Table = Sequence[Sequence[float]]


class Cell(NamedTuple):
    """The paint of one cell."""

    fill: str
    opacity: float
    stroke: str
    ink: str


Paint = Callable[[float], Cell]


def tint(color: str) -> Paint:
    """Return the paint of queries, keys or values: the same light tint for every number."""
    return lambda number: Cell(color, 0.25, color, INK)


def plain(number: float) -> Cell:
    """Paint a number that has no role, such as a score."""
    return Cell("none", 1.0, GRID, INK)


def share(number: float) -> Cell:
    """Paint a weight from 0 to 1."""
    fill, opacity = weight_fill(number)
    return Cell(fill, opacity, GRID, text_on(opacity))


def signed(largest: float) -> Paint:
    """Return the paint of numbers from -largest to largest, with 0 as white as paper."""

    def paint(number: float) -> Cell:
        fill, opacity = signed_fill(number, largest)
        return Cell(fill, opacity, GRID, INK)

    return paint


def draw_matrix(
    drawing: Drawing,
    table: Table,
    *,
    cell: tuple[float, float],
    paint: Paint = plain,
    digits: int = 3,
    rows: Sequence[str] = (),
    columns: Sequence[str] = (),
    hidden: Sequence[Sequence[bool]] | None = None,
    size: float = FONT_SIZE,
    least: float = 0.0,
) -> None:
    """Draw the cells from the drawing's origin on, the words of the rows left of it, those of the columns above it.

    cell: width and height in pixels. hidden: True where a cell is masked: hatched, without a number. least: a number
    nearer to 0 is shown only by its color.
    """
    wide, high = cell
    for place, word in enumerate(rows):
        drawing.text(-8, (place + 0.5) * high, word, anchor="end", size=size)
    for place, word in enumerate(columns):
        drawing.text((place + 0.5) * wide, -11, word, size=size)
    for row, numbers in enumerate(table):
        for column, number in enumerate(numbers):
            x, y = column * wide, row * high
            if hidden is not None and hidden[row][column]:
                drawing.hatched_rectangle(x + 1.5, y + 1.5, wide - 3, high - 3)
                continue
            look = paint(float(number))
            drawing.rectangle(
                x + 1, y + 1, wide - 2, high - 2, look.fill, opacity=look.opacity, stroke=look.stroke, radius=3
            )
            if abs(float(number)) >= least:
                drawing.text(x + wide / 2, y + high / 2, told(number, digits), fill=look.ink, size=size)


def draw_map(
    drawing: Drawing,
    weights: Table,
    queries: Sequence[str],
    keys: Sequence[str],
    *,
    cell: tuple[float, float],
    hidden: Sequence[Sequence[bool]] | None = None,
    least: float = 0.0,
) -> None:
    """Draw weights with the words of the queries on the left and those of the keys above, written vertically.

    The two axes have the colors of their roles.
    """
    wide, high = cell
    drawing.line(0, -4, wide * len(keys), -4, KEY, width=3)
    drawing.line(-4, 0, -4, high * len(queries), QUERY, width=3)
    for column, word in enumerate(keys):
        drawing.text((column + 0.5) * wide + 2, -10, word, anchor="start", size=12.5, turn=-90)
    for row, word in enumerate(queries):
        drawing.text(-9, (row + 0.5) * high, word, anchor="end", size=12.5)
    with drawing.at(2, 0):
        draw_matrix(drawing, weights, cell=cell, paint=share, digits=2, hidden=hidden, size=12, least=least)


def outline_row(drawing: Drawing, row: int, width: float, high: float, pad: float = 3.0) -> None:
    """Draw a frame around a row of a matrix that begins at the drawing's origin."""
    drawing.rectangle(
        1 - pad, row * high + 1 - pad, width + 2 * pad - 2, high + 2 * pad - 2, "none", stroke=INK, radius=5
    )


def told(number: float, digits: int) -> str:
    """Return a number as it is written in a figure: with a minus sign, and none before a zero."""
    text = f"{float(number):.{digits}f}"
    return text.replace("-", "−") if float(text) else text.replace("-", "")
