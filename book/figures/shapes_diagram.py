"""The matrix products of attention as boxes, each side as long as its axis is."""

from typing import NamedTuple

from transformer_ref.visualization.drawing import Drawing
from transformer_ref.visualization.palette import GRID, INK, KEY, QUERY, VALUE, WEIGHT

CELL = 13.0
GAP = {"·": 58.0, "=": 58.0, "→": 86.0, "": 0.0}  # after each box, by the sign that is in it
MARGIN = 42.0
TOP, BOTTOM = 30.0, 18.0


class Box(NamedTuple):
    """A matrix to draw: its letter, its two axes as (word, length), its color, and the operator after it."""

    letter: str
    rows: tuple[str, int]
    columns: tuple[str, int]
    color: str
    sign: str


def shapes_diagram(queries: int, keys: int, d_k: int, d_v: int) -> Drawing:
    """Return the picture of (Q times K transposed, softmax) and (A times V) with these lengths."""
    query, key = ("query", queries), ("key", keys)
    first = [
        Box("Q", query, ("d_k", d_k), QUERY, "·"),
        Box("Kᵀ", ("d_k", d_k), key, KEY, "→"),
        Box("A", query, key, WEIGHT, ""),
    ]
    second = [
        Box("A", query, key, WEIGHT, "·"),
        Box("V", key, ("d_v", d_v), VALUE, "="),
        Box("Z", query, ("d_v", d_v), VALUE, ""),
    ]
    alt = (
        f"Two rows of boxes. Q of {queries} by {d_k} times K transposed of {d_k} by {keys} becomes A of {queries} "
        f"by {keys}; A times V of {keys} by {d_v} becomes Z of {queries} by {d_v}. The inner sides always agree."
    )
    return _draw_rows([first, second], alt)


def projections_diagram(words: int, d_model: int, d_k: int, d_v: int) -> Drawing:
    """Return the picture of X times W_Q, W_K and W_V: one sentence, three matrices, three tables."""
    word, feature = ("word", words), ("D", d_model)
    roles = [("Q", ("d_k", d_k), QUERY), ("K", ("d_k", d_k), KEY), ("V", ("d_v", d_v), VALUE)]
    rows = [
        [
            Box("X", word, feature, GRID, "·"),
            Box(f"W_{letter}", feature, width, color, "="),
            Box(letter, word, width, color, ""),
        ]
        for letter, width, color in roles
    ]
    alt = (
        f"Three rows of boxes. The same X of {words} by {d_model} is multiplied by W_Q, W_K and W_V, and becomes "
        f"Q and K of {words} by {d_k} and V of {words} by {d_v}. Every word meets the same three matrices."
    )
    return _draw_rows(rows, alt)


def _draw_rows(rows: list[list[Box]], alt: str) -> Drawing:
    tallest = max(box.rows[1] for row in rows for box in row) * CELL
    height = TOP + tallest + BOTTOM
    drawing = Drawing(max(_row_width(row) for row in rows) + MARGIN + 4, len(rows) * height, alt)
    for place, row in enumerate(rows):
        _draw_row(drawing, row, place * height + TOP, tallest)
    return drawing


def _row_width(boxes: list[Box]) -> float:
    return sum(box.columns[1] * CELL + GAP[box.sign] for box in boxes)


def _draw_row(drawing: Drawing, boxes: list[Box], top: float, tallest: float) -> None:
    x = MARGIN
    for box in boxes:
        height, width = box.rows[1] * CELL, box.columns[1] * CELL
        y = top + (tallest - height) / 2
        drawing.rectangle(x, y, width, height, box.color, opacity=0.28, stroke=box.color, radius=3)
        letter_size = 18 if len(box.letter) < 3 else 16
        drawing.text(x + width / 2, y + height / 2, box.letter, size=letter_size, bold=True, subscripts=True)
        drawing.text(x + width / 2, y - 12, f"{box.columns[0]} {box.columns[1]}", size=13.5, subscripts=True)
        drawing.text(x - 10, y + height / 2, f"{box.rows[0]} {box.rows[1]}", size=13.5, turn=-90, subscripts=True)
        middle = x + width + (GAP[box.sign] - 20) / 2  # the next box's label takes the last 20 pixels
        drawing.text(middle, top + tallest / 2, box.sign, size=22, fill=INK)
        if box.sign == "→":
            drawing.text(middle, top + tallest / 2 - 20, "÷√d_k", size=13.5, subscripts=True)
            drawing.text(middle, top + tallest / 2 + 20, "softmax", size=13.5)
        x += width + GAP[box.sign]
