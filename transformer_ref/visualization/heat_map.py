"""Attention weights as a map: a row for each query, a column for each key, one color scale from 0 to 1."""

from collections.abc import Sequence

from transformer_ref.visualization.drawing import FONT_SIZE, Drawing
from transformer_ref.visualization.palette import INK, KEY, QUERY, signed_fill, text_on, weight_fill

CELL_WIDTH, CELL_HEIGHT = 54.0, 38.0
MOST_NUMBERS = 60  # a map with more cells than this shows colors only
LETTER_WIDTH = 0.58 * FONT_SIZE  # of an average letter
MARK = 26.0  # room for the axis letters q and k


def heat_map(
    weights: Sequence[Sequence[float]],
    queries: Sequence[str],
    keys: Sequence[str],
    alt: str,
    *,
    hidden: Sequence[Sequence[bool]] | None = None,
    signed: bool = False,
    digits: int = 3,
) -> Drawing:
    """Return the map of a (query, key) table.

    weights: anything that gives rows of numbers (a list, an array, a tensor); 0 to 1 unless `signed`.
    queries, keys: the words on the left and top axis.
    hidden: True where a mask hides the cell, which is then grey and hatched and has no number.
    Raises ValueError when the words do not fit the table.
    """
    table = [[float(number) for number in row] for row in weights]
    if len(table) != len(queries) or any(len(row) != len(keys) for row in table):
        sizes = f"{len(table)} x {len(table[0]) if table else 0}"
        raise ValueError(f"weights: expected {len(queries)} x {len(keys)} numbers for these words, got {sizes}")
    left = MARK + max(len(word) for word in queries) * LETTER_WIDTH + 10
    top = MARK + FONT_SIZE + 12
    drawing = Drawing(left + len(keys) * CELL_WIDTH + 2, top + len(queries) * CELL_HEIGHT + 2, alt)
    _draw_axes(drawing, queries, keys, left, top)
    with_numbers = len(queries) * len(keys) < MOST_NUMBERS
    largest = max((abs(number) for row in table for number in row), default=1.0) or 1.0
    for row, query in enumerate(queries):
        for column, key in enumerate(keys):
            x, y = left + column * CELL_WIDTH, top + row * CELL_HEIGHT
            if hidden is not None and hidden[row][column]:
                drawing.hatched_rectangle(x, y, CELL_WIDTH - 2, CELL_HEIGHT - 2)
                continue
            number = table[row][column]
            fill, opacity = signed_fill(number, largest) if signed else weight_fill(number)
            title = f"{query} to {key}: {number:.{digits}f}"
            drawing.rectangle(x, y, CELL_WIDTH - 2, CELL_HEIGHT - 2, fill, opacity=opacity, radius=3, title=title)
            if with_numbers:
                words = f"{number:.{digits}f}"
                ink = INK if signed else text_on(opacity)
                drawing.text(x + CELL_WIDTH / 2 - 1, y + CELL_HEIGHT / 2 - 1, words, fill=ink)
    return drawing


def _draw_axes(drawing: Drawing, queries: Sequence[str], keys: Sequence[str], left: float, top: float) -> None:
    """Write the words, and mark the query axis blue with a q, the key axis orange with a k."""
    right, bottom = left + len(keys) * CELL_WIDTH - 2, top + len(queries) * CELL_HEIGHT - 2
    drawing.line(MARK - 8, top, MARK - 8, bottom, QUERY, width=4)
    drawing.line(left, MARK - 8, right, MARK - 8, KEY, width=4)
    drawing.text(MARK - 17, (top + bottom) / 2, "q", fill=INK, bold=True)
    drawing.text((left + right) / 2, MARK - 18, "k", fill=INK, bold=True)
    for row, word in enumerate(queries):
        drawing.text(left - 8, top + (row + 0.5) * CELL_HEIGHT - 1, word, anchor="end")
    for column, word in enumerate(keys):
        drawing.text(left + (column + 0.5) * CELL_WIDTH - 1, top - 12, word)
