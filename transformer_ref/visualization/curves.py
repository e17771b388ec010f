"""How a number goes over time: one line for each series, such as a training's losses."""

import math
from collections.abc import Mapping, Sequence

from transformer_ref.visualization.drawing import Drawing
from transformer_ref.visualization.palette import GRID, KEY, POSITION, QUERY, VALUE

WIDTH, HEIGHT = 560.0, 320.0
LEFT, RIGHT, TOP, BOTTOM = 64.0, 16.0, 40.0, 48.0  # room around the plot
COLORS = (QUERY, KEY, VALUE, POSITION)
TICKS = 5

Points = Sequence[Sequence[float]]  # [x, y] each


def curves(series: Mapping[str, Points], alt: str, x_label: str, y_label: str) -> Drawing:
    """Return lines over common axes: the first whole, the others dashed, each with a dot on every point if few.

    series: points [x, y] in the order of x, by name; those that are not finite are left out.
    """
    kept = {name: [(x, y) for x, y in points if math.isfinite(y)] for name, points in series.items()}
    every = [point for points in kept.values() for point in points] or [(0.0, 0.0)]
    x_ticks, y_ticks = (ticks(min(values), max(values)) for values in zip(*every, strict=True))

    def place(x: float, y: float) -> tuple[float, float]:
        across, up = ((value - marks[0]) / (marks[-1] - marks[0]) for value, marks in ((x, x_ticks), (y, y_ticks)))
        return LEFT + across * (WIDTH - LEFT - RIGHT), HEIGHT - BOTTOM - up * (HEIGHT - TOP - BOTTOM)

    drawing = Drawing(WIDTH, HEIGHT, alt)
    for x in x_ticks:
        drawing.line(*place(x, y_ticks[0]), *place(x, y_ticks[-1]), GRID, width=1)
        drawing.text(place(x, 0)[0], HEIGHT - BOTTOM + 14, f"{x:,g}")
    for y in y_ticks:
        drawing.line(*place(x_ticks[0], y), *place(x_ticks[-1], y), GRID, width=1)
        drawing.text(LEFT - 8, place(0, y)[1], f"{y:,g}", anchor="end")
    drawing.text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 10, x_label)
    drawing.text(16, (TOP + HEIGHT - BOTTOM) / 2, y_label, turn=-90)
    for number, (name, points) in enumerate(kept.items()):
        color, legend = COLORS[number % len(COLORS)], LEFT + 130 * number
        drawing.polyline([place(*point) for point in points], color, dashed=number > 0)
        for point in points if len(points) <= 2 * TICKS else ():
            drawing.circle(*place(*point), 4, color)
        drawing.polyline([(legend, 16), (legend + 24, 16)], color, dashed=number > 0)
        drawing.text(legend + 32, 16, name, anchor="start")
    return drawing


def ticks(low: float, high: float) -> list[float]:
    """Return round numbers at equal distances, from at most `low` to at least `high`, two at the least."""
    scale = max(abs(low), abs(high), 1e-3)  # numbers closer than a millionth of it are one number
    rough = (high - low) / TICKS if high - low > 1e-6 * scale else max(1.0, 1e-6 * scale)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * (1 - 1e-9))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(number * step, 12) for number in range(first, max(last, first + 1) + 1)]
