"""What a batch looks like at every part of the machine: one column of shapes for each side, to be read upward."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from transformer_ref.visualization.drawing import Drawing
from transformer_ref.visualization.palette import DECODER, ENCODER, INK, PAPER

WIDTH, HIGH, STEP = 216, 44, 62  # of a box; from one to the next
LEFTS = (8, 268)  # of the columns
PAGE, TOP = 492, 40


class Step(NamedTuple):
    """What came out of one part: its name, its shape and, where it has any, a line about its weights."""

    name: str
    shape: tuple[int, ...]
    note: str = ""


def forward_pass(columns: Mapping[str, Sequence[Step]], reads: str, asks: str) -> Drawing:
    """Return the picture: the encoder's steps and the decoder's, each from first to last.

    reads: the name of the encoder's step that the decoder looks at; asks: the name of the decoder's that looks.
    """
    rows = max(len(steps) for steps in columns.values())
    bottom = TOP + (rows - 1) * STEP + HIGH / 2
    told = "; ".join(
        f"{side}: " + ", ".join(f"{step.name} {step.shape}" for step in steps) for side, steps in columns.items()
    )
    drawing = Drawing(
        PAGE, bottom + HIGH / 2 + 34, f"The shapes of one batch, part by part, to be read upward. {told}."
    )
    places: dict[tuple[int, str], float] = {}
    for side, (name, steps) in enumerate(columns.items()):
        x, color = LEFTS[side], (ENCODER, DECODER)[side]
        for row, step in enumerate(steps):
            y = bottom - row * STEP
            places[side, step.name] = y
            if row:
                drawing.arrow(x + WIDTH / 2, y + STEP - HIGH / 2, x + WIDTH / 2, y + HIGH / 2 + 1, INK)
            drawing.rectangle(x, y - HIGH / 2, WIDTH, HIGH, PAPER, stroke=INK, radius=6)
            drawing.rectangle(x, y - HIGH / 2, 7, HIGH, color)
            drawing.text(x + 16, y - 11, step.name, anchor="start", size=13)
            drawing.text(x + 16, y + 10, str(step.shape), anchor="start", size=14, bold=True)
            if step.note:
                kind, _, shape = step.note.partition(" ")
                drawing.text(x + WIDTH - 8, y - 11, kind, anchor="end", size=12)
                drawing.text(x + WIDTH - 8, y + 10, shape, anchor="end", size=12)
        drawing.text(x + WIDTH / 2, bottom + HIGH / 2 + 18, name, bold=True)
    start, end = places[0, reads], places[1, asks]
    middle = (LEFTS[0] + WIDTH + LEFTS[1]) / 2
    drawing.polyline([(LEFTS[0] + WIDTH, start), (middle, start), (middle, end)], INK)
    drawing.arrow(middle, end, LEFTS[1] - 1, end, INK)
    return drawing
