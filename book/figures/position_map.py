"""Positions written twice: as binary numbers, and as the sines and cosines of chapter 07, fast columns on the left."""

from collections.abc import Sequence

from transformer_ref.visualization.drawing import Drawing
from transformer_ref.visualization.palette import GRID, INK, signed_fill

CELL_WIDTH, CELL_HEIGHT = 13.0, 8.0
LEFT, TOP, BETWEEN = 30.0, 34.0, 34.0  # room for the positions, for the titles, and between the tables
SHADES = 8  # on each side of 0: neighbors of one shade are drawn as one


def position_map(table: Sequence[Sequence[float]]) -> Drawing:
    """Return the map of a table of positions, (T, d), values from -1 to 1, next to a binary counter from 0 to T - 1.

    Raises ValueError for a table that is not such a matrix.
    """
    try:
        rows = [[float(value) for value in row] for row in table]
    except TypeError:  # a row that is one number
        rows = []
    length, width = len(rows), len(rows[0]) if rows else 0
    if not width or any(len(row) != width or max(map(abs, row)) > 1 for row in rows):
        raise ValueError(f"table: expected (T, d) with values from -1 to 1, got {table!r:.200}")
    bits = max(1, (length - 1).bit_length())
    right = LEFT + bits * CELL_WIDTH + BETWEEN
    alt = (
        f"Positions 0 to {length - 1}, one row each. Left, as binary numbers, the lowest bit first: it changes in "
        f"every row, the next one in every second row, and so on. Right, {width} columns of sines and cosines: the "
        "first ones wave quickly from row to row, those to the right ever more slowly, and the last hardly change."
    )
    drawing = Drawing(right + width * CELL_WIDTH + 2, TOP + length * CELL_HEIGHT + 30, alt)
    drawing.text(LEFT, 12, "binary", anchor="start", bold=True, size=13)
    drawing.text(right, 12, "sines and cosines", anchor="start", bold=True, size=13)
    for position in range(0, length, 8):
        drawing.text(LEFT - 6, TOP + (position + 0.5) * CELL_HEIGHT, str(position), anchor="end", size=12)
    counted = [[position >> bit & 1 for position in range(length)] for bit in range(bits)]
    waves = [[round(value * SHADES) for value in column] for column in zip(*rows, strict=True)]
    _columns(drawing, LEFT, counted, 1)
    _columns(drawing, right, waves, SHADES)
    for left, count in ((LEFT, bits), (right, width)):
        drawing.rectangle(left, TOP, count * CELL_WIDTH, length * CELL_HEIGHT, "none", stroke=GRID)
        end = left + count * CELL_WIDTH
        drawing.arrow(left, TOP + length * CELL_HEIGHT + 8, end, TOP + length * CELL_HEIGHT + 8, INK, width=1.5)
        drawing.text(left, TOP + length * CELL_HEIGHT + 22, "fast", anchor="start", size=12)
        drawing.text(end, TOP + length * CELL_HEIGHT + 22, "slow", anchor="end", size=12)
    return drawing


def _columns(drawing: Drawing, left: float, columns: list[list[int]], largest: int) -> None:
    """Draw columns of integers from -largest to largest; equal numbers below each other share a box, 0 has none."""
    for across, column in enumerate(columns):
        start = 0
        for down in range(1, len(column) + 1):
            if down == len(column) or column[down] != column[start]:
                if column[start]:
                    fill, opacity = signed_fill(column[start], largest)
                    x, y = left + across * CELL_WIDTH, TOP + start * CELL_HEIGHT
                    drawing.rectangle(x, y, CELL_WIDTH, (down - start) * CELL_HEIGHT, fill, opacity=opacity)
                start = down
