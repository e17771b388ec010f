"""Which word may look at which: one map for each of the machine's three attentions, closed cells hatched."""

from collections.abc import Sequence
from typing import NamedTuple

from book.figures.matrix import Table, draw_map
from transformer_ref.visualization.drawing import Drawing
from transformer_ref.visualization.hero import PAGE, PHONE, Hero
from transformer_ref.visualization.tables import text_table

HIGH = 30.0
NAMES = 70.0  # room for the words on the left
COLUMN_WORDS = 72.0  # room above a map for upright words


class View(NamedTuple):
    """One attention: its name, its queries, its keys, its weights, and the masked cells."""

    name: str
    rule: str
    queries: Sequence[str]
    keys: Sequence[str]
    weights: Table
    closed: Sequence[Sequence[bool]]


def who_sees_whom_hero(views: Sequence[View]) -> Hero:
    """Return the figure of these attentions, side by side on a page, one below the other on a phone.

    The number in a cell is its weight. Raises ValueError if a masked cell has a weight.
    """
    for view in views:
        for weights, closed in zip(view.weights, view.closed, strict=True):
            if any(hidden and float(weight) != 0 for weight, hidden in zip(weights, closed, strict=True)):
                raise ValueError(f"weights: expected 0 wherever {view.name} is closed, got {list(weights)}")
    alt = "Which word may look at which. " + " ".join(_told(view) for view in views)
    return Hero(_wide(views, alt), _narrow(views, alt), [_text(view) for view in views])


def _told(view: View) -> str:
    count = sum(not hidden for row in view.closed for hidden in row)
    return f"{view.name}, {view.rule}: {count} of {len(view.queries) * len(view.keys)} cells are open."


def _text(view: View) -> str:
    table = text_table(view.weights, view.queries, view.keys, digits=2)
    if not any(hidden for row in view.closed for hidden in row):
        return f"{_told(view)}\n{table}\n"
    closed = [
        f"  {query} may not look at " + ", ".join(key for key, hidden in zip(view.keys, row, strict=True) if hidden)
        for query, row in zip(view.queries, view.closed, strict=True)
        if any(row)
    ]
    return "\n".join([_told(view), table, *closed, ""])


def _wide(views: Sequence[View], alt: str) -> Drawing:
    room = PAGE - (NAMES + 16) * len(views)
    cell = room / sum(len(view.keys) for view in views)
    drawing = Drawing(PAGE, 52 + COLUMN_WORDS + HIGH * max(len(view.queries) for view in views) + 6, alt)
    left = 0.0
    for view in views:
        with drawing.at(left + NAMES, 0):
            _map(drawing, view, cell)
        left += NAMES + 16 + cell * len(view.keys)
    return drawing


def _narrow(views: Sequence[View], alt: str) -> Drawing:
    cell = (PHONE - NAMES - 6) / max(len(view.keys) for view in views)
    heights = [52 + COLUMN_WORDS + HIGH * len(view.queries) + 30 for view in views]
    drawing = Drawing(PHONE, sum(heights) - 24, alt)
    for place, view in enumerate(views):
        with drawing.at(NAMES, sum(heights[:place])):
            _map(drawing, view, cell)
    return drawing


def _map(drawing: Drawing, view: View, cell: float) -> None:
    """Draw one map below its name and its rule."""
    drawing.text(2 - NAMES, 10, view.name, anchor="start", bold=True)
    drawing.text(2 - NAMES, 29, view.rule, anchor="start", size=12.5)
    with drawing.at(0, 48 + COLUMN_WORDS):
        draw_map(drawing, view.weights, view.queries, view.keys, cell=(cell, HIGH), hidden=view.closed)
