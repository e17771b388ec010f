"""Training at a glance: what the decoder reads, what it should output at the same position, and the loss there."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from transformer_ref.visualization.drawing import Drawing
from transformer_ref.visualization.hero import PAGE, PHONE, Hero
from transformer_ref.visualization.palette import DECODER, GRID, INK, PAPER

NAMES, HIGH = 86.0, 32.0
LARGEST = 3.0  # nats: a longer bar is cut
BAR = 60.0  # pixels of the largest


class Taught(NamedTuple):
    """One sentence of a batch. reads, asked: inputs and labels by position, pads at the end; shares: the probability of
    the label, or None."""

    source: str
    reads: Sequence[str]
    asked: Sequence[str]
    shares: Sequence[float | None]


def shifted_right_hero(sentences: Sequence[Taught]) -> Hero:
    """Return the figure of a batch: for each position the input, the label, and the loss.

    The loss is minus the logarithm of a probability; a pad has none. Raises ValueError unless all sentences have the
    same number of positions.
    """
    places = {len(row) for sentence in sentences for row in sentence[1:]}
    if len(places) != 1:
        raise ValueError(f"sentences: expected the same number of positions in every row, got {sorted(places)}")
    losses = [[None if s is None else abs(math.log(s)) for s in sentence.shares] for sentence in sentences]
    real = [loss for row in losses for loss in row if loss is not None]
    mean = f"{sum(real):.2f} ÷ {len(real)} = {sum(real) / len(real):.3f}"
    told = [_text(sentence, row) for sentence, row in zip(sentences, losses, strict=True)]
    told.append(f"the batch's loss, a mean over real words: {mean}")
    alt = (
        "The input, the label and the loss at each position. Each label is the input of the next position. "
        + " ".join(f"{s.source} reads {' '.join(s.reads)} and should say {' '.join(s.asked)}." for s in sentences)
        + f" The mean over the real words is {mean}; pads are hatched and cost nothing."
    )
    return Hero(_wide(sentences, losses, mean, alt), _narrow(sentences, losses, mean, alt), told)


def _text(sentence: Taught, losses: Sequence[float | None]) -> str:
    rows = zip(sentence.reads, sentence.asked, sentence.shares, losses, strict=True)
    lines = [
        f"  {read:12}{asked:12}" + ("not counted" if loss is None else f"{share:.3f}  {loss:.3f}")
        for read, asked, share, loss in rows
    ]
    return "\n".join([f"{sentence.source}\n  {'reads':12}{'should say':12}share  loss", *lines, ""])


def _token(drawing: Drawing, x: float, y: float, wide: float, word: str, *, pad: bool, bold: bool = False) -> None:
    if pad:
        drawing.hatched_rectangle(x, y, wide, HIGH - 6)
        return
    color = DECODER if bold else GRID
    drawing.rectangle(x, y, wide, HIGH - 6, PAPER, stroke=color, radius=5)
    drawing.text(x + wide / 2, y + (HIGH - 6) / 2, word, size=12.5, bold=bold)


def _wide(sentences: Sequence[Taught], losses: list[list[float | None]], mean: str, alt: str) -> Drawing:
    count = len(sentences[0].reads)
    step = (PAGE - NAMES - 2) / count
    tall = 3 * HIGH + BAR + 66
    drawing = Drawing(PAGE, tall * len(sentences) + 24, alt)
    for number, (sentence, lost) in enumerate(zip(sentences, losses, strict=True)):
        with drawing.at(0, tall * number):
            drawing.text(0, 12, f"source: {sentence.source}", anchor="start", bold=True)
            for row, name in ((34, "reads"), (34 + 2 * HIGH, "should say"), (46 + 3 * HIGH, "is lost")):
                drawing.text(NAMES - 12, row + 13, name, anchor="end", size=13)
            for place in range(count):
                x, wide = NAMES + place * step, step - 22
                pad = lost[place] is None
                _token(drawing, x, 34, wide, sentence.reads[place], pad=pad)
                _token(drawing, x, 34 + 2 * HIGH, wide, sentence.asked[place], pad=pad, bold=True)
                if pad:
                    continue
                drawing.arrow(x + wide / 2, 34 + HIGH - 4, x + wide / 2, 34 + 2 * HIGH - 2, width=1.5)
                if place + 1 < count and lost[place + 1] is not None:
                    drawing.arrow(x + wide - 4, 34 + 2 * HIGH - 1, x + step + 6, 34 + HIGH - 4, GRID, width=1.5)
                _bar(drawing, x + wide / 2, 42 + 3 * HIGH, lost[place], upright=True)
    drawing.text(
        NAMES, tall * len(sentences) + 8, f"loss of this batch: {mean}, a mean over real words", anchor="start"
    )
    return drawing


def _bar(drawing: Drawing, x: float, y: float, loss: float, *, upright: bool) -> None:
    length = max(BAR * min(loss / LARGEST, 1), 1.5)
    if upright:
        drawing.rectangle(x - 13, y, 26, length, INK, opacity=0.6, radius=2)
        drawing.text(x, y + length + 12, f"{loss:.2f}", size=12.5)
    else:
        drawing.rectangle(x, y - 8, length, 16, INK, opacity=0.6, radius=2)
        drawing.text(x + length + 6, y, f"{loss:.2f}", anchor="start", size=12.5)


def _narrow(sentences: Sequence[Taught], losses: list[list[float | None]], mean: str, alt: str) -> Drawing:
    """For a phone: a line for each position."""
    count = len(sentences[0].reads)
    tall = count * HIGH + 62
    drawing = Drawing(PHONE, tall * len(sentences) + 42, alt)
    for number, (sentence, lost) in enumerate(zip(sentences, losses, strict=True)):
        with drawing.at(0, tall * number):
            drawing.text(2, 12, sentence.source, anchor="start", bold=True)
            for x, name in ((50, "reads"), (178, "should say"), (280, "is lost")):
                drawing.text(x, 36, name, size=12.5)
            for place in range(count):
                y, pad = 50 + place * HIGH, lost[place] is None
                _token(drawing, 2, y, 96, sentence.reads[place], pad=pad)
                _token(drawing, 130, y, 96, sentence.asked[place], pad=pad, bold=True)
                if pad:
                    continue
                drawing.arrow(101, y + 13, 127, y + 13, width=1.5)
                _bar(drawing, 240, y + 13, lost[place], upright=False)
    drawing.text(2, tall * len(sentences) + 8, "loss of this batch, a mean over real words:", anchor="start", size=13)
    drawing.text(2, tall * len(sentences) + 28, mean, anchor="start", size=13)
    return drawing
