"""Chapter 07: the learner's `sinusoidal_pe` as a map, and one position of it as clock hands."""

import math
from collections.abc import Callable
from typing import Any

from ipywidgets import IntSlider, VBox

from transformer_ref.visualization.drawing import Drawing
from transformer_ref.visualization.explorers.panel import WIDE, panel, tensor_from
from transformer_ref.visualization.palette import GRID, POSITION, signed_fill

LENGTH = 41  # positions in the map
MAP_WIDTH, MAP_HEIGHT, LEFT, TOP = 260.0, 246.0, 34.0, 30.0
DIAL = 34.0  # radius of a clock
MOST_DIALS = 6


def explorer(sinusoidal_pe: Callable[..., Any]) -> VBox:
    """Return the panel: a position, and how many columns the table has."""
    position = IntSlider(value=3, min=0, max=LENGTH - 1, description="position", style=WIDE)
    pairs = IntSlider(value=4, min=1, max=16, description="clock hands, d / 2", style=WIDE)

    def view(position: int, pairs: int) -> Drawing:
        table = tensor_from(sinusoidal_pe, LENGTH, 2 * pairs, shape=(LENGTH, 2 * pairs))
        numbers = [[float(number) for number in row] for row in table]
        return _drawn(numbers, position)

    return panel("Explorer: your sinusoidal_pe", [position, pairs], view)


def _drawn(table: list[list[float]], position: int) -> Drawing:
    """Draw the table as a heat map with one row outlined, and that row's first clock hands next to it."""
    pairs = len(table[0]) // 2
    shown = min(pairs, MOST_DIALS)
    row = table[position]
    gaps = [math.dist(row, other) for other in table]
    nearest = min((gap, other) for other, gap in enumerate(gaps) if other != position)
    hands = ", ".join(f"({row[2 * pair]:.3f}, {row[2 * pair + 1]:.3f})" for pair in range(shown))
    more = " ..." if shown < pairs else ""
    alt = (
        f"Your row {position}, hand by hand (sine, cosine): {hands}{more}. The row most like it "
        f"in your table is {nearest[1]}, at a distance of {nearest[0]:.3f}."
    )
    drawing = Drawing(LEFT + MAP_WIDTH + 30 + 4 * DIAL + 40, TOP + MAP_HEIGHT + 30, alt)
    _map(drawing, table, position)
    for pair in range(shown):
        _dial(drawing, row[2 * pair : 2 * pair + 2], pair)
    return drawing


def _map(drawing: Drawing, table: list[list[float]], position: int) -> None:
    columns = len(table[0])
    width, height = MAP_WIDTH / columns, MAP_HEIGHT / len(table)
    largest = max(1.0, max(abs(number) for row in table for number in row))
    for at, row in enumerate(table):
        for column, number in enumerate(row):
            fill, opacity = signed_fill(number, largest)
            drawing.rectangle(LEFT + column * width, TOP + at * height, width, height, fill, opacity=opacity)
    y = TOP + (position + 0.5) * height
    drawing.arrow(LEFT + MAP_WIDTH + 24, y, LEFT + MAP_WIDTH + 3, y)
    drawing.text(LEFT, 14, "columns →", anchor="start")
    for at in (0, len(table) - 1):
        drawing.text(LEFT - 6, TOP + (at + 0.5) * height, str(at), anchor="end")
    drawing.text(LEFT, TOP + MAP_HEIGHT + 16, "positions downward; purple −1, green +1", anchor="start")


def _dial(drawing: Drawing, hand: list[float], pair: int) -> None:
    """Draw a clock whose hand points to (sine, cosine), normalized to length 1."""
    x = LEFT + MAP_WIDTH + 40 + DIAL + (pair % 2) * (2 * DIAL + 14)
    y = TOP + DIAL + (pair // 2) * (2 * DIAL + 18)
    drawing.circle(x, y, DIAL, "none", GRID)
    drawing.arrow(x, y, x + DIAL * hand[0], y - DIAL * hand[1], POSITION, width=3)
