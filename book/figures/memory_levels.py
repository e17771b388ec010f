"""Levels of memory as boxes, from the small and fast one on top to the large and slow one at the bottom."""

from collections.abc import Mapping

from transformer_ref.visualization.drawing import Drawing
from transformer_ref.visualization.growth import said
from transformer_ref.visualization.palette import GRID, INK

WIDTH, HIGH, STEP = 350.0, 62.0, 78.0
NARROWEST = 0.52  # of the width: the box of the smallest level


def memory_levels(levels: Mapping[str, tuple[float, float]], moved: float) -> Drawing:
    """Return the figure. levels: name -> (capacity in bytes, bytes per second), the smallest and fastest first.

    moved: bytes; the figure shows how long each level takes to read them. Raises ValueError for another order.
    """
    sizes, speeds = zip(*levels.values(), strict=True)
    if list(sizes) != sorted(sizes) or list(speeds) != sorted(speeds, reverse=True):
        raise ValueError(f"levels: expected the smallest and fastest first, got {dict(levels)}")
    times = {name: moved / speed for name, (_, speed) in levels.items()}
    told = "; ".join(
        f"{name} holds {said(size, 'bytes')} and reads {said(moved, 'bytes')} in {_seconds(times[name])}"
        for name, (size, _) in levels.items()
    )
    alt = f"Levels of memory, the smallest on top and wider boxes below, each larger and slower: {told}."
    drawing = Drawing(WIDTH, 6 + STEP * len(levels) - (STEP - HIGH), alt)
    for place, (name, (size, _)) in enumerate(levels.items()):
        share = NARROWEST + (1 - NARROWEST) * place / max(1, len(levels) - 1)
        width, y = share * (WIDTH - 4), 3 + place * STEP
        drawing.rectangle(WIDTH / 2 - width / 2, y, width, HIGH, GRID, opacity=0.3, stroke=INK, radius=6)
        drawing.text(WIDTH / 2, y + 18, name, bold=True, size=13.5)
        drawing.text(WIDTH / 2, y + 42, f"{said(size, 'bytes')} · {_seconds(times[name])}", size=13)
        if place:
            drawing.arrow(WIDTH / 2 - 8, y, WIDTH / 2 - 8, y - (STEP - HIGH), INK)
            drawing.arrow(WIDTH / 2 + 8, y - (STEP - HIGH), WIDTH / 2 + 8, y, INK)
    return drawing


def _seconds(seconds: float) -> str:
    """Return seconds with two digits and a suitable unit: 3.4 µs, 43 µs, 5 ms."""
    unit, size = next((each for each in (("s", 1.0), ("ms", 1e-3)) if seconds >= each[1]), ("µs", 1e-6))
    return f"{float(f'{seconds / size:.2g}'):g} {unit}"
