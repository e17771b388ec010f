"""Positions as fingerprints: a row of clock hands for each, fast on the left and slow on the right."""

import math
from collections.abc import Sequence

from book.figures.matrix import Table, draw_matrix, signed
from transformer_ref.visualization.drawing import Drawing
from transformer_ref.visualization.hero import PAGE, PHONE, Hero
from transformer_ref.visualization.palette import GRID, PAPER, POSITION
from transformer_ref.visualization.tables import text_table

HIGH, DIAL = 44.0, 18.0  # of a row; the radius of a clock


def clock_hands_hero(table: Table, places: Sequence[str], rounds: Sequence[float]) -> Hero:
    """Return the figure of a table of sines and cosines as clocks, and as numbers next to them.

    table: (position, d) with d even, the two columns of a hand side by side. places: the name of each row. rounds: the
    period of each hand, in words. Raises ValueError if the three do not fit.
    """
    if len(table) != len(places) or any(len(row) != 2 * len(rounds) for row in table):
        raise ValueError(f"table: expected {len(places)} rows of {2 * len(rounds)} numbers for these places and hands")
    told = "; ".join(f"hand {hand} completes a turn after {count:,.0f} words" for hand, count in enumerate(rounds))
    alt = (
        f"{len(rounds)} clocks in each row, a row for each of {len(places)} positions, and their sines and cosines "
        f"next to them. {told}. No two rows are alike."
    )
    drawings = [_wide(table, places, rounds, alt), _narrow(table, places, rounds, alt)]
    names = [f"{f} {hand}" for hand in range(len(rounds)) for f in ("sin", "cos")]
    return Hero(*drawings, [told, "", text_table(table, places, names)])


def _wide(table: Table, places: Sequence[str], rounds: Sequence[float], alt: str) -> Drawing:
    top, left, cell = 66.0, 100.0, 45.0
    drawing = Drawing(PAGE, top + HIGH * len(table) + 6, alt)
    with drawing.at(left, top):
        _clocks(drawing, table, places, rounds, 58)
    start = left + 58 * len(rounds) + 24
    drawing.text(start, 12, "the row that is added to the word", anchor="start", bold=True)
    with drawing.at(start, top):
        for hand in range(len(rounds)):
            drawing.text((2 * hand + 1) * cell, -34, f"hand {hand}", size=12.5)
        names = ["sin", "cos"] * len(rounds)
        draw_matrix(drawing, table, cell=(cell, HIGH), paint=signed(1.0), digits=2, columns=names, size=12.5)
    return drawing


def _narrow(table: Table, places: Sequence[str], rounds: Sequence[float], alt: str) -> Drawing:
    """For a phone: colors instead of numbers, which are in the text alternative."""
    top, left, low = 66.0, 92.0, 26.0
    second = top + HIGH * len(table) + 56
    drawing = Drawing(PHONE, second + low * len(table) + 6, alt)
    with drawing.at(left, top):
        _clocks(drawing, table, places, rounds, 63)
    drawing.text(left, second - 34, "the rows, −1 purple to 1 green", anchor="start", bold=True, size=13)
    paint, cell = signed(1.0), 63 / 2
    with drawing.at(left, second):
        for hand in range(len(rounds)):
            drawing.text((2 * hand + 1) * cell, -12, f"hand {hand}", size=12.5)
        for row, (place, numbers) in enumerate(zip(places, table, strict=True)):
            drawing.text(-8, (row + 0.5) * low, place, anchor="end", size=13)
            for column, number in enumerate(numbers):
                look = paint(float(number))
                box = (column * cell + 1, row * low + 1, cell - 2, low - 2)
                drawing.rectangle(*box, look.fill, opacity=look.opacity, stroke=GRID, radius=3)
    return drawing


def _clocks(drawing: Drawing, table: Table, places: Sequence[str], rounds: Sequence[float], wide: float) -> None:
    """Draw a clock for each hand and position; a hand points to (sin, cos), so 0 is at twelve."""
    drawing.text(-8, -54, "position", anchor="end", bold=True, size=13)
    for hand, count in enumerate(rounds):
        drawing.text((hand + 0.5) * wide, -54, f"hand {hand}", bold=True, size=13)
        drawing.text((hand + 0.5) * wide, -35, "round in", size=12)
        drawing.text((hand + 0.5) * wide, -19, f"{count:,.1f}" if count < 10 else f"{count:,.0f}", size=12)
    for row, (place, numbers) in enumerate(zip(places, table, strict=True)):
        y = (row + 0.5) * HIGH
        drawing.text(-8, y, place, anchor="end", size=13)
        for hand in range(len(rounds)):
            x = (hand + 0.5) * wide
            sine, cosine = float(numbers[2 * hand]), float(numbers[2 * hand + 1])
            drawing.circle(x, y, DIAL, PAPER, GRID)
            drawing.line(x, y - DIAL, x, y - DIAL + 4, GRID)
            length = (DIAL - 1) / max(math.hypot(sine, cosine), 1e-9)
            drawing.arrow(x, y, x + length * sine, y - length * cosine, POSITION, width=2.5)
