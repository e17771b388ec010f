"""Attention weights as bars: one bar a word, as long as its weight, with the number next to it."""

from collections.abc import Sequence

from transformer_ref.visualization.drawing import FONT_SIZE, Drawing
from transformer_ref.visualization.palette import GRID, WEIGHT

FULL_LENGTH = 190.0  # of a bar whose weight is 1
ROW = 30.0
NUMBER_ROOM = 74.0


def share_bars(words: Sequence[str], weights: Sequence[float], alt: str, *, digits: int = 3) -> Drawing:
    """Return one bar for each word; the scale always runs from 0 to 1.

    weights: numbers from 0 to 1, one for each word. Raises ValueError for another count.
    """
    shares = [float(weight) for weight in weights]
    if len(shares) != len(words):
        raise ValueError(f"weights: expected {len(words)} numbers for these words, got {len(shares)}")
    left = max(len(word) for word in words) * 0.58 * FONT_SIZE + 14
    drawing = Drawing(left + FULL_LENGTH + NUMBER_ROOM, len(words) * ROW + 4, alt)
    for row, (word, share) in enumerate(zip(words, shares, strict=True)):
        middle = (row + 0.5) * ROW
        drawing.text(left - 8, middle, word, anchor="end")
        drawing.rectangle(left, middle - 9, FULL_LENGTH, 18, "none", stroke=GRID, radius=2)
        drawing.rectangle(left, middle - 9, FULL_LENGTH * share, 18, WEIGHT, radius=2)
        drawing.text(left + FULL_LENGTH + 8, middle, f"{share:.{digits}f}", anchor="start")
    return drawing
