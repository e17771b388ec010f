"""Multi-head attention in one picture, to be read downward: all heads side by side, with the shape after each step."""

from collections.abc import Sequence
from typing import Any

from transformer_ref.visualization.drawing import Drawing
from transformer_ref.visualization.palette import GRID, INK, KEY, PAPER, QUERY, VALUE, weight_fill

WIDTH = 420.0
LEFT, RIGHT = 10.0, 410.0  # edges of what all heads share
STRIP, PIECE, BOX = 24.0, 32.0, 34.0  # heights: of a word's features, of one head's, of the output matrix
LABEL, WAY = 26.0, 18.0  # heights: of a line of words, of the arrows below a row
GAP = 8.0  # between the heads

Weights = Any  # a tensor (heads, T, T); this package draws and does not import torch


def heads_poster(weights: Weights, d_model: int) -> Drawing:
    """Return the figure for the attention weights of all heads, (heads, T, T).

    Raises ValueError unless the heads divide d_model and there are 2 to 8 of them, each with a square of weights.
    """
    shape = tuple(weights.shape)
    if len(shape) != 3 or shape[1] != shape[2] or not 2 <= shape[0] <= 8:
        raise ValueError(f"weights: expected (heads, T, T) with 2 to 8 heads, got {shape}")
    heads = shape[0]
    if d_model % heads:
        raise ValueError(f"d_model: expected a multiple of {heads} heads, got {d_model}")
    return _Poster(weights.tolist(), d_model).drawing


class _Poster:
    """The figure while it is drawn: `y` is where the next row begins."""

    def __init__(self, weights: Sequence[Sequence[Sequence[float]]], d_model: int) -> None:
        heads, d_k = len(weights), d_model // len(weights)
        self._wide = (RIGHT - LEFT - GAP * (heads - 1)) / heads
        self._lefts = [LEFT + head * (self._wide + GAP) for head in range(heads)]
        rows = 5 * LABEL + 3 * STRIP + 2 * PIECE + self._wide + BOX + 6 * WAY + 8
        self.drawing = Drawing(
            WIDTH,
            rows,
            f"Multi-head attention, read downward. X, of shape (B, T, {d_model}), is projected to Q, K and V and then "
            f"split: each of {heads} heads gets its own Q, K and V with {d_k} features. Each head computes its own "
            f"table of weights, and each table looks different. Each head mixes its values to an output of shape "
            f"(B, T, {d_k}). The outputs are joined to (B, T, {d_model}), and W_O mixes them.",
        )
        self._y = 4.0
        whole, split = f"(B, T, {d_model})", f"(B, {heads}, T, {d_k})"
        self._label("the words X", whole)
        self._strip([GRID])  # every head sees all features
        self._arrows()
        self._label("Q, K, V of each head", split)
        self._pieces()
        self._arrows()
        self._label(f"softmax(QKᵀ / √{d_k}), in each head", f"(B, {heads}, T, T)")
        self._tables(weights)
        self._arrows()
        self._label("each head's output", split)
        self._outputs()
        self._arrows()
        self._label("merged: side by side", whole)
        self._strip([VALUE] * heads)
        self._arrow()
        self._output_matrix(d_model)
        self._arrow()
        self._strip([GRID])
        self.drawing.text((LEFT + RIGHT) / 2, self._y - STRIP / 2, f"one output for every word, {whole}")

    def _label(self, said: str, shape: str) -> None:
        self.drawing.text(LEFT, self._y + LABEL / 2 - 2, said, anchor="start", bold=True)
        self.drawing.text(RIGHT, self._y + LABEL / 2 - 2, shape, anchor="end")
        self._y += LABEL

    def _strip(self, fills: Sequence[str]) -> None:
        """Draw one word's features from edge to edge; a piece for each fill."""
        wide = (RIGHT - LEFT) / len(fills)
        for place, fill in enumerate(fills):
            self.drawing.rectangle(LEFT + place * wide, self._y, wide, STRIP, fill, opacity=0.45, stroke=INK)
        self._y += STRIP

    def _pieces(self) -> None:
        """Draw each head's queries, keys and values."""
        each = (self._wide - 4) / 3
        for left in self._lefts:
            for place, (name, color) in enumerate((("Q", QUERY), ("K", KEY), ("V", VALUE))):
                x = left + place * (each + 2)
                self.drawing.rectangle(x, self._y, each, PIECE, color, opacity=0.35, stroke=color)
                self.drawing.text(x + each / 2, self._y + PIECE / 2, name, size=13)
        self._y += PIECE

    def _tables(self, weights: Sequence[Sequence[Sequence[float]]]) -> None:
        """Draw each head's weights, a row for each query."""
        cell = self._wide / len(weights[0])
        for left, table in zip(self._lefts, weights, strict=True):
            self.drawing.rectangle(left, self._y, self._wide, self._wide, PAPER)
            for row, line in enumerate(table):
                for column, weight in enumerate(line):
                    fill, opacity = weight_fill(weight)
                    at = left + column * cell, self._y + row * cell
                    self.drawing.rectangle(*at, cell, cell, fill, opacity=opacity)
            self.drawing.rectangle(left, self._y, self._wide, self._wide, "none", stroke=INK)
        self._y += self._wide

    def _outputs(self) -> None:
        for number, left in enumerate(self._lefts):
            self.drawing.rectangle(left, self._y, self._wide, PIECE, VALUE, opacity=0.45, stroke=INK)
            self.drawing.text(left + self._wide / 2, self._y + PIECE / 2, str(number))
        self._y += PIECE

    def _output_matrix(self, d_model: int) -> None:
        self.drawing.rectangle(LEFT, self._y, RIGHT - LEFT, BOX, PAPER, stroke=INK, radius=6)
        middle = self._y + BOX / 2
        self.drawing.text(LEFT + 10, middle, "W_O: every head reaches every feature", anchor="start", subscripts=True)
        self.drawing.text(RIGHT - 8, middle, f"({d_model}, {d_model})", anchor="end")
        self._y += BOX

    def _arrows(self) -> None:
        """Draw an arrow down, below each head."""
        for left in self._lefts:
            middle = left + self._wide / 2
            self.drawing.arrow(middle, self._y + 2, middle, self._y + WAY - 2)
        self._y += WAY

    def _arrow(self) -> None:
        middle = (LEFT + RIGHT) / 2
        self.drawing.arrow(middle, self._y + 2, middle, self._y + WAY - 2)
        self._y += WAY
