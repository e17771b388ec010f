"""Words as arrows, and three numbers for each pair: the dot product, the cosine and the scaled score."""

import math
from collections.abc import Mapping, Sequence

from book.figures.matrix import Table, draw_matrix, outline_row
from transformer_ref.visualization.drawing import Drawing
from transformer_ref.visualization.hero import PAGE, PHONE, Hero
from transformer_ref.visualization.palette import GRID, INK, KEY, QUERY
from transformer_ref.visualization.tables import text_table

HIGH = 34.0
UNIT = 54.0  # pixels for a length of 1
ARC = 30.0  # the radius of an angle's mark


def three_measures_hero(
    words: Sequence[str], vectors: Table, measures: Mapping[str, tuple[Table, int]], asks: int, asked: int
) -> Hero:
    """Return the figure of words in a plane next to three tables of the same pairs.

    vectors: (word, 2), no number below 0. measures: three tables (word, word) by name, each with its digits. asks,
    asked: the pair whose angle is drawn and whose dot product is computed. Raises ValueError for another number of
    measures.
    """
    if len(measures) != 3:
        raise ValueError(f"measures: expected 3 tables, got {list(measures)}")
    plain = [[float(x) for x in vector] for vector in vectors]
    figure = _Measures(list(words), plain, measures, asks, asked)
    alt = (
        f"Four words as arrows in a plane, and three tables of four by four: {', '.join(measures)}. "
        f"{figure.worked}. The row of {words[asks]} is outlined."
    )
    return Hero(figure.wide(alt), figure.narrow(alt), figure.as_text())


class _Measures:
    def __init__(
        self,
        words: list[str],
        vectors: list[list[float]],
        measures: Mapping[str, tuple[Table, int]],
        asks: int,
        asked: int,
    ) -> None:
        self.words, self.vectors, self.measures, self.asks, self.asked = words, vectors, measures, asks, asked
        a, b = vectors[asks], vectors[asked]
        product = sum(x * y for x, y in zip(a, b, strict=True))
        lengths = [math.hypot(*vector) for vector in (a, b)]
        self.degrees = math.degrees(math.acos(min(product / (lengths[0] * lengths[1]), 1)))
        terms = " + ".join(f"{x:g}·{y:g}" for x, y in zip(a, b, strict=True))
        self.worked = (
            f"{words[asks]} · {words[asked]} = {terms} = {product:g} = "
            f"{lengths[0]:.3g} · {lengths[1]:.4g} · cos {self.degrees:.0f}°"
        )

    def plane(self, drawing: Drawing, unit: float) -> None:
        """Draw the arrows from (0, 0), which is at the drawing's origin; y points upward."""
        reach = [max(vector[axis] for vector in self.vectors) for axis in (0, 1)]
        drawing.line(0, 0, reach[0] * unit + 12, 0, GRID)
        drawing.line(0, 0, 0, -reach[1] * unit - 12, GRID)
        angles = sorted(math.atan2(self.vectors[w][1], self.vectors[w][0]) for w in (self.asks, self.asked))
        steps = [angles[0] + (angles[1] - angles[0]) * share / 12 for share in range(13)]
        drawing.polyline([(ARC * math.cos(angle), -ARC * math.sin(angle)) for angle in steps], INK)
        middle = sum(angles) / 2
        drawing.text(
            (ARC + 6) * math.cos(middle),
            -(ARC + 6) * math.sin(middle) - 1,
            f"{self.degrees:.0f}°",
            anchor="start",
            size=12,
        )
        for place, (word, (x, y)) in sorted(
            enumerate(zip(self.words, self.vectors, strict=True)), key=lambda one: one[0] != self.asks
        ):
            chosen = place == self.asks
            drawing.arrow(0, 0, x * unit, -y * unit, QUERY if chosen else KEY, width=4 if chosen else 2.5)
            below = y == 0
            drawing.text(x * unit, 15 if below else -y * unit - 12, word, size=12.5, bold=chosen)

    def table(self, drawing: Drawing, name: str, cell: float, names: bool) -> None:
        """Draw one measure for all pairs, its name and the words of the keys above it."""
        numbers, digits = self.measures[name]
        wide = cell * len(self.words)
        drawing.text(0, -74, name, anchor="start", bold=True, size=13, subscripts=True)
        drawing.line(0, -3, wide, -3, KEY, width=3)
        for column, word in enumerate(self.words):
            drawing.text((column + 0.5) * cell, -10, word, anchor="start", size=12.5, turn=-90)
        if names:
            drawing.line(-4, 0, -4, HIGH * len(self.words), QUERY, width=3)
        rows = self.words if names else ()
        draw_matrix(drawing, numbers, cell=(cell, HIGH), digits=digits, rows=rows, size=12.5)
        outline_row(drawing, self.asks, wide, HIGH, pad=1)

    def wide(self, alt: str) -> Drawing:
        """For a page: the plane, then the three tables in a row."""
        top = 98.0
        bottom = top + HIGH * len(self.words)
        drawing = Drawing(PAGE, bottom + 40, alt)
        with drawing.at(14, bottom - 24):
            self.plane(drawing, UNIT)
        x = 218.0
        for place, (name, (_, digits)) in enumerate(self.measures.items()):
            cell = 43.0 if digits else 28.0
            with drawing.at(x, top):
                self.table(drawing, name, cell, names=place == 0)
            x += cell * len(self.words) + 13
        drawing.text(2, bottom + 26, self.worked, anchor="start")
        return drawing

    def narrow(self, alt: str) -> Drawing:
        """For a phone: the plane and the first table next to each other, the others below."""
        step = HIGH * len(self.words) + 110
        drawing = Drawing(PHONE, 190 + 3 * step - 10, alt)
        with drawing.at(40, 130):
            self.plane(drawing, 96)
        drawing.text(2, 172, self.worked, anchor="start", size=12)
        for place, (name, (_, digits)) in enumerate(self.measures.items()):
            with drawing.at(74, 190 + step * place + 86):
                self.table(drawing, name, 64 if digits else 40, names=True)
        return drawing

    def as_text(self) -> list[str]:
        tables = [
            f"{name}\n{text_table(numbers, self.words, self.words, digits=digits)}\n"
            for name, (numbers, digits) in self.measures.items()
        ]
        return [self.worked, "", *tables]
