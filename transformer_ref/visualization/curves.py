"""How a number changes over time: one line for each series, such as the losses of a training run."""

import math
from collections.abc import Mapping, Sequence

from transformer_ref.visualization.drawing import Drawing
from transformer_ref.visualization.palette import GRID, INK, PAPER

WIDTH, PLOT = 400.0, 200.0  # of the picture; height of only the plot
LEFT, RIGHT, TOP, BOTTOM = 62.0, 20.0, 14.0, 48.0  # room around the plot
LEGEND = 22.0  # of each line below it
TICKS = 5
DOTS = 12  # on a line, about

Points = Sequence[Sequence[float]]  # [x, y] each


def curves(series: Mapping[str, Points], alt: str, x_label: str, y_label: str) -> Drawing:
    """Return curves over common axes, in the text color, since other colors mean query or key; they differ by dashes
    and dots.

    series: points [x, y] in the order of x, by name; points that are not finite are left out.
    """
    kept = {name: [(x, y) for x, y in points if math.isfinite(y)] for name, points in series.items()}
    every = [point for points in kept.values() for point in points] or [(0.0, 0.0)]
    x_ticks, y_ticks = (ticks(min(values), max(values)) for values in zip(*every, strict=True))

    def place(x: float, y: float) -> tuple[float, float]:
        across, up = ((value - marks[0]) / (marks[-1] - marks[0]) for value, marks in ((x, x_ticks), (y, y_ticks)))
        return LEFT + across * (WIDTH - LEFT - RIGHT), TOP + (1 - up) * PLOT

    drawing = Drawing(WIDTH, TOP + PLOT + BOTTOM + LEGEND * len(kept), alt)
    for x in x_ticks:
        drawing.line(*place(x, y_ticks[0]), *place(x, y_ticks[-1]), GRID, width=1)
        drawing.text(place(x, 0)[0], TOP + PLOT + 14, _said(x))
    for y in y_ticks:
        drawing.line(*place(x_ticks[0], y), *place(x_ticks[-1], y), GRID, width=1)
        drawing.text(LEFT - 8, place(0, y)[1], _said(y), anchor="end")
    drawing.text((LEFT + WIDTH - RIGHT) / 2, TOP + PLOT + 36, x_label)
    drawing.text(16, TOP + PLOT / 2, y_label, turn=-90)
    draw_series(drawing, {name: [place(*point) for point in points] for name, points in kept.items()}, LEFT)
    return drawing


def draw_series(
    drawing: Drawing, lines: Mapping[str, list[tuple[float, float]]], left: float, dots: float = DOTS
) -> None:
    """Draw each line in the text color, told apart by dashes and dots, and at the bottom a legend of their names.

    lines: points in pixels, by name; left: of the legend; dots: on a line, about. The drawing ends in LEGEND pixels for
    each line.
    """
    for number, (name, line) in enumerate(lines.items()):
        y = drawing.height - LEGEND * (len(lines) - number - 0.5)
        for path in (line, [(left, y), (left + 20, y), (left + 40, y)]):
            drawing.polyline(path, INK, dashed=number % 2 == 1)
            for x, height in path[:: int(len(path) / dots) + 1] if number % 4 >= 2 else ():
                drawing.circle(x, height, 3.5, PAPER, INK)
        drawing.text(left + 50, y, name, anchor="start")


def _said(mark: float) -> str:
    """Return the label of a tick, with a minus sign and not a hyphen."""
    return f"{mark:,g}".replace("-", "−")


def ticks(low: float, high: float) -> list[float]:
    """Return round numbers at equal distances, from at most `low` to at least `high`, two at the least."""
    scale = max(abs(low), abs(high), 1e-3)  # numbers closer than a millionth of it are one number
    rough = (high - low) / TICKS if high - low > 1e-6 * scale else max(1.0, 1e-6 * scale)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * (1 - 1e-9))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(number * step, 12) for number in range(first, max(last, first + 1) + 1)]
