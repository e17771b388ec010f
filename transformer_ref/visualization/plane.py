"""Words as arrows and dots in a plane, with axes that fit them."""

import math
from collections.abc import Sequence

from transformer_ref.visualization.drawing import Drawing
from transformer_ref.visualization.palette import GRID, INK

Point = Sequence[float]


class Plane:
    """A drawing with mathematical coordinates: x to the right, y upward, one unit the same length on both.

    x_range, y_range: the smallest and largest coordinate shown. unit: pixels for a length of 1.
    """

    def __init__(
        self,
        x_range: tuple[float, float],
        y_range: tuple[float, float],
        alt: str,
        *,
        unit: float = 90,
        x_label: str = "",
        y_label: str = "",
        margin: float = 34,
    ):
        self.x_range, self.y_range, self.unit, self.margin = x_range, y_range, unit, margin
        width = (x_range[1] - x_range[0]) * unit + 2 * margin
        height = (y_range[1] - y_range[0]) * unit + 2 * margin
        self.drawing = Drawing(width, height, alt)
        self._draw_axes(x_label, y_label)

    def place(self, point: Point) -> tuple[float, float]:
        """Return the pixel of a point."""
        x, y = float(point[0]), float(point[1])
        return self.margin + (x - self.x_range[0]) * self.unit, self.margin + (self.y_range[1] - y) * self.unit

    def _draw_axes(self, x_label: str, y_label: str) -> None:
        for x in range(int(self.x_range[0]), int(self.x_range[1]) + 1):
            self.drawing.line(*self.place((x, self.y_range[0])), *self.place((x, self.y_range[1])), GRID, width=1)
        for y in range(int(self.y_range[0]), int(self.y_range[1]) + 1):
            self.drawing.line(*self.place((self.x_range[0], y)), *self.place((self.x_range[1], y)), GRID, width=1)
        self.drawing.line(*self.place((self.x_range[0], 0)), *self.place((self.x_range[1], 0)))
        self.drawing.line(*self.place((0, self.y_range[0])), *self.place((0, self.y_range[1])))
        right, base = self.place((self.x_range[1], self.y_range[0]))
        left, top = self.place((self.x_range[0], self.y_range[1]))
        apart = min(17, self.margin - 10)
        self.drawing.text(right, base + apart, x_label, anchor="end")
        self.drawing.text(left - 4, top - apart, y_label, anchor="start")

    def arrow(self, start: Point, end: Point, color: str = INK, *, width: float = 2.0, stop_short: float = 0.0) -> None:
        """Draw an arrow between two points, or to `stop_short` pixels before the end, where a dot sits."""
        (x1, y1), (x2, y2) = self.place(start), self.place(end)
        length = math.hypot(x2 - x1, y2 - y1)
        if length <= stop_short:
            return
        part = 1 - stop_short / length if length else 1.0
        self.drawing.arrow(x1, y1, x1 + part * (x2 - x1), y1 + part * (y2 - y1), color, width=width)

    def dot(self, point: Point, color: str, *, radius: float = 7) -> None:
        """Draw a dot."""
        self.drawing.circle(*self.place(point), radius, color, INK)

    def label(self, point: Point, words: str, *, right: float = 12, up: float = 0, bold: bool = False) -> None:
        """Write words next to a point; a negative `right` writes them to its left."""
        x, y = self.place(point)
        self.drawing.text(x + right, y - up, words, anchor="start" if right >= 0 else "end", bold=bold)

    def _repr_html_(self) -> str:
        return self.drawing.to_svg()
