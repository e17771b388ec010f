"""What a batch looks like at every part of the machine: one column of shapes for each side, to be read upward."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from transformer_ref.visualization.drawing import Drawing
from transformer_ref.visualization.palette import DECODER, ENCODER, INK, PAPER

WIDTH, HIGH, NOTE, GAP = 160, 44, 20, 18  # of a box; what a note makes it higher; from one to the next
LEFTS = (2, 190)  # of the columns
PAGE, TOP = 352, 8


class Step(NamedTuple):
    """The output of one part: its name, its shape and, if it has weights, a line about them."""

    name: str
    shape: tuple[int, ...]
    note: str = ""


def forward_pass(columns: Mapping[str, Sequence[Step]], reads: str, asks: str) -> Drawing:
    """Return the picture: the encoder's steps and the decoder's, each from first to last.

    reads: the name of the encoder's step whose output is the memory; asks: the name of the decoder's cross-attention
    step.
    """
    told = "; ".join(
        f"{side}: " + ", ".join(f"{step.name} {step.shape}" for step in steps) for side, steps in columns.items()
    )
    bottom = TOP + max(sum(_high(step) + GAP for step in steps) for steps in columns.values())
    drawing = Drawing(PAGE, bottom + 16, f"The shapes of one batch, part by part, to be read upward. {told}.")
    places: dict[tuple[int, str], float] = {}
    for side, (name, steps) in enumerate(columns.items()):
        x, color, below = LEFTS[side], (ENCODER, DECODER)[side], bottom - GAP
        for row, step in enumerate(steps):
            top = below - _high(step)
            places[side, step.name] = top + HIGH / 2
            if row:
                drawing.arrow(x + WIDTH / 2, below + GAP, x + WIDTH / 2, below + 1, INK)
            drawing.rectangle(x, top, WIDTH, below - top, PAPER, stroke=INK, radius=6)
            drawing.rectangle(x, top, 7, below - top, color)
            drawing.text(x + 16, top + 12, step.name, anchor="start", size=13)
            drawing.text(x + 16, top + 32, str(step.shape), anchor="start", bold=True)
            if step.note:
                drawing.text(x + 16, top + 52, step.note, anchor="start", size=12.5)
            below = top - GAP
        drawing.text(x + WIDTH / 2, bottom, name, bold=True)
    start, end = places[0, reads], places[1, asks]
    middle = (LEFTS[0] + WIDTH + LEFTS[1]) / 2
    drawing.polyline([(LEFTS[0] + WIDTH, start), (middle, start), (middle, end)], INK)
    drawing.arrow(middle, end, LEFTS[1] - 1, end, INK)
    return drawing


def _high(step: Step) -> int:
    return HIGH + (NOTE if step.note else 0)
