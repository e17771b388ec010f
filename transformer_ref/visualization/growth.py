"""How a quantity grows with a size: both axes count in powers, so a power law is a line, and its slope the power."""

import math
from collections.abc import Mapping, Sequence

from transformer_ref.visualization.curves import LEGEND, draw_series
from transformer_ref.visualization.drawing import Drawing
from transformer_ref.visualization.palette import GRID

WIDTH, PLOT = 350.0, 230.0  # of the picture; height of only the plot
LEFT, RIGHT, TOP, BOTTOM = 64.0, 20.0, 30.0, 46.0  # room around the plot
UNITS = {
    "seconds": ((1e-6, "µs"), (1e-3, "ms"), (1.0, "s")),
    "bytes": ((1.0, "B"), (1e3, "kB"), (1e6, "MB"), (1e9, "GB"), (1e12, "TB")),
}


def growth(
    sizes: Sequence[int], series: Mapping[str, Sequence[float | None]], unit: str, title: str, size_name: str
) -> Drawing:
    """Return one line for each series over the sizes, all in the text color, since other colors mean query or key.

    series: a positive number for each size, by name; None where nothing was measured. unit: "seconds" or "bytes".
    Raises ValueError for another unit, and where no number is given at all.
    """
    if unit not in UNITS:
        raise ValueError(f"unit: expected one of {', '.join(UNITS)}, got {unit!r}")
    points = {
        name: [(size, value) for size, value in zip(sizes, values, strict=True) if value is not None]
        for name, values in series.items()
    }
    every = [value for line in points.values() for _, value in line]
    if not every:
        raise ValueError("series: expected at least one number, got none")
    lowest, highest = math.floor(math.log10(min(every)) + 1e-9), math.ceil(math.log10(max(every)) - 1e-9)
    highest = max(highest, lowest + 1)
    across = math.log2(max(sizes) / min(sizes)) or 1.0

    def place(size: float, value: float) -> tuple[float, float]:
        x = LEFT + math.log2(size / min(sizes)) / across * (WIDTH - LEFT - RIGHT)
        return x, TOP + (highest - math.log10(value)) / (highest - lowest) * PLOT

    told = "; ".join(
        f"{name}: " + ", ".join(f"{said(value, unit)} at {size:,}" for size, value in line)
        for name, line in points.items()
        if line
    )
    drawing = Drawing(
        WIDTH, TOP + PLOT + BOTTOM + LEGEND * len(points), f"{title}, over {size_name}, both in powers. {told}."
    )
    drawing.text(2, 12, title, anchor="start", bold=True)
    for number, size in enumerate(sizes):
        x = place(size, 10.0**lowest)[0]
        drawing.line(x, TOP, x, TOP + PLOT, GRID, width=1)
        if (len(sizes) - 1 - number) % 2 == 0:
            drawing.text(x, TOP + PLOT + 13, f"{size:,}", size=13)
    for power in range(lowest, highest + 1):
        y = place(min(sizes), 10.0**power)[1]
        drawing.line(LEFT, y, WIDTH - RIGHT, y, GRID, width=1)
        drawing.text(LEFT - 7, y, said(10.0**power, unit), anchor="end", size=13)
    drawing.text((LEFT + WIDTH - RIGHT) / 2, TOP + PLOT + 34, size_name, size=13)
    draw_series(
        drawing, {name: [place(*point) for point in line] for name, line in points.items()}, LEFT, dots=math.inf
    )
    return drawing


def said(value: float, unit: str) -> str:
    """Return a number with its unit, such as 1.5 ms or 34 MB. unit: "seconds" or "bytes"."""
    scale, name = next((each for each in reversed(UNITS[unit]) if value >= each[0] * (1 - 1e-9)), UNITS[unit][0])
    number = value / scale
    return f"{number:.2g} {name}" if number < 10 else f"{number:,.0f} {name}"
