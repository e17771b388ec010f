"""What a model would write next if it ended after each of its blocks: one row a depth, one column a letter read."""

from collections.abc import Sequence
from typing import NamedTuple

from transformer_ref.visualization.depths import depth_names, sign
from transformer_ref.visualization.drawing import Drawing
from transformer_ref.visualization.hero import PAGE, PHONE, Hero
from transformer_ref.visualization.palette import DECODER, INK, PAPER, WEIGHT, text_on, weight_fill

ROW, CHIP = 38.0, 26.0


class Read(NamedTuple):
    """One input letter, the most probable next one at each depth with its probability, and the actual next letter."""

    letter: str
    guesses: Sequence[tuple[str, float]]  # the shallowest first
    next: str


def guesses_hero(text: str, reads: Sequence[Read], phone: int = 7) -> Hero:
    """Return the figure; on a phone it has the last `phone` letters.

    text: the whole input. Raises ValueError unless all letters have the same depths.
    """
    depths = {len(read.guesses) for read in reads}
    if len(depths) != 1:
        raise ValueError(f"reads: expected the same number of depths for every letter, got {sorted(depths)}")
    names = depth_names(depths.pop() - 1)
    told = [
        f"{name}: " + ", ".join(f"{sign(read.guesses[depth][0])} {read.guesses[depth][1]:.2f}" for read in reads)
        for depth, name in enumerate(names)
    ]
    told.append("what comes next: " + ", ".join(sign(read.next) for read in reads))
    alt = (
        f"A small GPT reads the letters {' '.join(sign(read.letter) for read in reads)} and predicts the next one "
        f"after each of its blocks; each guess with its probability. {'. '.join(told)}."
    )
    wide = _drawn(reads, names, PAGE, 92, alt)
    narrow = _drawn(reads[-phone:], names, PHONE, 74, alt)
    return Hero(wide, narrow, [f"text: {text}", "reads: " + " ".join(sign(read.letter) for read in reads), *told])


def _drawn(reads: Sequence[Read], names: Sequence[str], width: float, left: float, alt: str) -> Drawing:
    step = (width - left - 2) / len(reads)
    bottom = 30 + ROW * len(names)
    drawing = Drawing(width, bottom + 40, alt)
    drawing.text(2, 14, "next", anchor="start", bold=True, size=13)
    drawing.text(2, bottom + 23, "reads", anchor="start", bold=True, size=13)
    for depth, name in enumerate(names):
        drawing.text(2, _row(depth, names) + 16, name, anchor="start", size=13)
    for place, read in enumerate(reads):
        x = left + place * step
        drawing.text(x + step / 2 - 2, 14, sign(read.next), bold=True)
        drawing.rectangle(x + (step - 4 - CHIP) / 2, bottom + 10, CHIP, CHIP, PAPER, stroke=DECODER, radius=5)
        drawing.text(x + step / 2 - 2, bottom + 23, sign(read.letter), bold=True)
        for depth, (letter, share) in enumerate(read.guesses):
            y, (fill, opacity) = _row(depth, names), weight_fill(share)
            drawing.rectangle(x, y, step - 4, ROW - 5, PAPER, stroke=WEIGHT, radius=4)
            drawing.rectangle(x, y, step - 4, ROW - 5, fill, opacity=opacity, radius=4)
            right = letter == read.next
            ink = text_on(opacity)
            drawing.text(x + step / 2 - 2, y + 11, sign(letter), size=14, bold=right, fill=ink)
            drawing.text(x + step / 2 - 2, y + 25, f"{share:.2f}", size=12, fill=ink)
            if right:
                drawing.rectangle(x + 1.5, y + 1.5, step - 7, ROW - 8, "none", stroke=INK, radius=4)
    return drawing


def _row(depth: int, names: Sequence[str]) -> float:
    """Draw one row; the residual stream flows upward, so the deepest row is the highest."""
    return 30 + ROW * (len(names) - 1 - depth)
