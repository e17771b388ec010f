"""Writing word by word: at each step the likeliest words, and the one that is taken and read at the next step."""

from collections.abc import Sequence
from typing import NamedTuple

from transformer_ref.visualization.drawing import Drawing
from transformer_ref.visualization.hero import PAGE, PHONE, Hero
from transformer_ref.visualization.palette import DECODER, GRID, INK, PAPER, WEIGHT

ROW = 34.0  # of one candidate: its word and number, its bar below them


class Step(NamedTuple):
    """One step: the last input token, the most probable words with their probabilities, and the chosen one."""

    reads: str
    likeliest: Sequence[tuple[str, float]]
    taken: str


def time_steps_hero(source: str, steps: Sequence[Step]) -> Hero:
    """Return the figure of one sentence being generated.

    Raises ValueError if a step chooses a word that is not among its candidates, or reads another one than was chosen
    before.
    """
    for before, step in zip([None, *steps], steps, strict=False):
        if step.taken not in [word for word, _ in step.likeliest]:
            raise ValueError(f"steps: expected {step.taken!r} among the likeliest, got {step.likeliest}")
        if before is not None and step.reads != before.taken:
            raise ValueError(f"steps: expected a step that reads {before.taken!r}, got {step.reads!r}")
    told = [
        f"step {number}, reads {step.reads}: "
        + ", ".join(f"{word} {share:.3f}" for word, share in step.likeliest)
        + f"; takes {step.taken}"
        for number, step in enumerate(steps, 1)
    ]
    alt = f"{source} is translated, one word a step. {'. '.join(told)}."
    return Hero(_wide(source, steps, alt), _narrow(source, steps, alt), [f"source: {source}", *told])


def _wide(source: str, steps: Sequence[Step], alt: str) -> Drawing:
    step, count = PAGE / len(steps), max(len(one.likeliest) for one in steps)
    wide = step - 16
    drawing = Drawing(PAGE, 128 + ROW * count, alt)
    drawing.text(2, 12, f"source: {source}", anchor="start", bold=True)
    for place, one in enumerate(steps):
        x = place * step + 2
        drawing.text(x, 44, f"step {place + 1}", anchor="start", bold=True, size=13)
        drawing.text(x, 66, "reads", anchor="start", size=12)
        _chip(drawing, x, 78, wide, one.reads)
        with drawing.at(x, 122):
            _candidates(drawing, one, wide)
        if place + 1 < len(steps):
            row = [word for word, _ in one.likeliest].index(one.taken)
            middle = x + wide + 7
            drawing.polyline(
                [(x + wide + 2, 122 + (row + 0.4) * ROW), (middle, 122 + (row + 0.4) * ROW), (middle, 91)], INK
            )
            drawing.arrow(middle, 91, x + step, 91)
    return drawing


def _narrow(source: str, steps: Sequence[Step], alt: str) -> Drawing:
    """For a phone: a block for each step, the input on the left, the most probable words on the right."""
    heights = [ROW * len(one.likeliest) + 16 for one in steps]
    drawing = Drawing(PHONE, 34 + sum(heights), alt)
    drawing.text(2, 12, f"source: {source}", anchor="start", bold=True)
    for place, one in enumerate(steps):
        y = 34 + sum(heights[:place])
        drawing.text(2, y + 12, f"step {place + 1}  reads", anchor="start", size=13)
        _chip(drawing, 2, y + 26, 104, one.reads)
        drawing.arrow(110, y + 39, 136, y + 39)
        with drawing.at(144, y):
            _candidates(drawing, one, 200)
    return drawing


def _chip(drawing: Drawing, x: float, y: float, wide: float, word: str) -> None:
    drawing.rectangle(x, y, wide, 26, PAPER, stroke=DECODER, radius=5)
    drawing.text(x + wide / 2, y + 13, word, size=13)


def _candidates(drawing: Drawing, step: Step, wide: float) -> None:
    """Draw words with their probabilities; a bar of full width is 1, the chosen word has a frame."""
    for row, (word, share) in enumerate(step.likeliest):
        y, chosen = row * ROW, word == step.taken
        if chosen:
            drawing.rectangle(0, y, wide, ROW - 4, "none", stroke=INK, radius=5)
        drawing.text(6, y + 11, word, anchor="start", size=12.5, bold=chosen)
        full = wide - 46
        drawing.rectangle(5, y + 20, full, 5, GRID, opacity=0.6, radius=2)
        drawing.rectangle(5, y + 20, max(full * share, 1), 5, WEIGHT, radius=2)
        number = f"{share:.2f}" if share >= 0.005 else "< 0.01"
        drawing.text(wide - 4, y + 21, number, anchor="end", size=12, bold=chosen)
