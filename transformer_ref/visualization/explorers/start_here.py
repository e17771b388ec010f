"""Chapter 00: numbers that say where they were, before and after the learner's functions."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from ipywidgets import IntSlider, RadioButtons, VBox

from transformer_ref.visualization.drawing import Drawing
from transformer_ref.visualization.explorers.panel import WIDE, panel, shares_from, tensor_from
from transformer_ref.visualization.heat_map import heat_map
from transformer_ref.visualization.palette import KEY, POSITION, QUERY

COLORS = (QUERY, KEY, POSITION)  # one a sentence
CELL, ROW, GAP, TOP = 36.0, 24.0, 18.0, 26.0


def explorer(swap_batch_time: Callable[..., Any], row_normalize: Callable[..., Any]) -> VBox:
    """Return the panel: the function, and the size of its input."""
    which = RadioButtons(options=["swap_batch_time", "row_normalize"], description="yours", style=WIDE)
    sizes = [
        IntSlider(value=value, min=1, max=most, description=words, style=WIDE)
        for value, most, words in ((2, 3, "B sentences"), (3, 4, "T words"), (2, 3, "D features"))
    ]

    def view(which: str, B: int, T: int, D: int) -> Drawing:
        return _swapped(swap_batch_time, B, T, D) if which == "swap_batch_time" else _shares(row_normalize, B, T)

    return panel("Explorer: where do your functions put each number?", [which, *sizes], view)


def _swapped(swap_batch_time: Callable[..., Any], B: int, T: int, D: int) -> Drawing:
    places = torch.tensor([100, 10, 1])
    before = (torch.cartesian_prod(*map(torch.arange, (B, T, D))).view(B, T, D, 3) * places).sum(-1)  # (B, T, D)
    after = tensor_from(swap_batch_time, before.clone(), shape=(T, B, D))
    misplaced = int((after != before.transpose(0, 1)).sum())
    told = "every number is where it belongs" if not misplaced else f"{misplaced} numbers are elsewhere"
    alt = (
        f"Above the batch {(B, T, D)}, a table for each sentence; 12 is sentence 0, word 1, feature 2. Below what your "
        f"swap_batch_time made of it, {(T, B, D)}, a table for each place of a word: {told}."
    )
    drawing = Drawing(max(_width(before), _width(after)), 3 * TOP + (T + B) * ROW, alt)
    _tables(drawing, before.tolist(), 0.0, "sentence")
    _tables(drawing, after.tolist(), TOP + T * ROW + TOP, "word")
    return drawing


def _width(tables: torch.Tensor) -> float:
    return tables.shape[0] * (max(tables.shape[2], 2.4) * CELL + GAP)


def _tables(drawing: Drawing, tables: Sequence[Sequence[Sequence[int]]], top: float, name: str) -> None:
    """Draw the tables side by side, each number in the color of the sentence that it came from."""
    for place, table in enumerate(tables):
        left = place * (max(len(table[0]), 2.4) * CELL + GAP)
        drawing.text(left, top + 12, f"{name} {place}", anchor="start", bold=True)
        for row, numbers in enumerate(table):
            for column, number in enumerate(numbers):
                x, y = left + column * CELL, top + TOP + row * ROW
                drawing.rectangle(x, y, CELL - 3, ROW - 3, COLORS[int(number) // 100 % 3], opacity=0.25, radius=3)
                drawing.text(x + CELL / 2 - 1, y + ROW / 2 - 1, str(number))


def _shares(row_normalize: Callable[..., Any], rows: int, columns: int) -> Drawing:
    numbers = (torch.arange(rows * columns).view(rows, columns) * 5 % 7 + 1).float()  # (row, column)
    shares = shares_from(row_normalize, numbers.clone(), shape=numbers.shape)
    names = [" ".join(f"{number:g}" for number in row) for row in numbers.tolist()]
    sums = ", ".join(f"{total:.3f}" for total in shares.sum(-1).tolist())
    alt = f"What your row_normalize made of a table of {rows} rows. The rows of the result sum to {sums}."
    return heat_map(shares, names, [f"column {place}" for place in range(columns)], alt)
