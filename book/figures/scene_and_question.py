"""A scene as a sentence of patches, a question that looks at them, and its answer."""

from collections.abc import Sequence
from typing import Any

from book.figures.matrix import told
from transformer_ref.visualization.drawing import Drawing
from transformer_ref.visualization.hero import PAGE, PHONE, Hero
from transformer_ref.visualization.palette import GRID, INK, PAPER, QUERY, WEIGHT
from transformer_ref.visualization.pixels import cut, paint

BAR = 34.0  # a weight of 1


def scene_and_question_hero(
    pixels: Any, patch: int, question: str, weights: Sequence[float], answers: Sequence[tuple[str, float]]
) -> Hero:
    """Return the figure of one question about one scene.

    pixels: (3, height, width); patch: the side of a patch; weights: one per patch, row by row; answers: the most
    probable answers with their probabilities. Raises ValueError when there are not as many weights as patches.
    """
    patches = cut(pixels, patch)
    if len(patches) != len(weights):
        raise ValueError(f"weights: expected one for each of {len(patches)} patches, got {len(weights)}")
    shares = [told(weight, 2) for weight in weights]
    said = ", ".join(f"{name} {told(share, 2)}" for name, share in answers)
    words = [
        f"question: {question}",
        f"weights on the {len(patches)} patches, row by row: {', '.join(shares)}",
        f"answers: {said}",
    ]
    most = max(range(len(weights)), key=lambda n: weights[n])
    alt = (
        f"A drawn table with food is cut into {len(patches)} patches, which form a row as words do. The question "
        f"{question} looks at them with the weights {', '.join(shares)}, most at patch {most + 1}. Answers: {said}."
    )
    both = [_drawn(pixels, patches, question, weights, answers, alt, wide) for wide in (PAGE, PHONE)]
    return Hero(both[0], both[1], words)


def _drawn(
    pixels: Any,
    patches: Sequence[Any],
    question: str,
    weights: Sequence[float],
    answers: Sequence[tuple[str, float]],
    alt: str,
    width: float,
) -> Drawing:
    """Draw the scene: on a page to the left of its sentence, on a phone above it."""
    phone, side = width == PHONE, 168.0
    drawing = Drawing(width, 428.0 if phone else 236.0, alt)
    left, top = (0.0, 214.0) if phone else (side + 34, 2.0)
    drawing.text(2, 14, "an image, cut", anchor="start", size=13)
    _scene(drawing, pixels, len(patches), 2, 28, side)
    with drawing.at(left, top):
        step = (width - left - 2) / len(patches)
        drawing.rectangle(2, 0, min(9 * len(question) + 20, width - left - 4), 26, PAPER, stroke=QUERY, radius=5)
        drawing.text(12, 13, question, anchor="start", size=13)
        drawing.text(2, 42, "is a sentence of patches: where does the question look?", anchor="start", size=12)
        for place, (patch, weight) in enumerate(zip(patches, weights, strict=True)):
            _word(drawing, patch, weight, 2 + place * step, 56, step - 5)
        for row, (name, share) in enumerate(answers):
            y = 56 + step + BAR + 34 + 20 * row
            drawing.text(2, y, name, anchor="start", size=13, bold=row == 0)
            drawing.rectangle(104, y - 4, 130, 8, GRID, opacity=0.6, radius=2)
            drawing.rectangle(104, y - 4, max(130 * share, 1), 8, WEIGHT, radius=2)
            drawing.text(244, y, told(share, 2), anchor="start", size=13, bold=row == 0)
    return drawing


def _scene(drawing: Drawing, pixels: Any, count: int, x: float, y: float, side: float) -> None:
    across = round(count**0.5)
    paint(drawing, pixels, x, y, side / pixels.shape[-1])
    for line in range(1, across):
        at = side * line / across
        drawing.line(x + at, y, x + at, y + side, PAPER, width=3)
        drawing.line(x, y + at, x + side, y + at, PAPER, width=3)


def _word(drawing: Drawing, patch: Any, weight: float, x: float, y: float, side: float) -> None:
    paint(drawing, patch, x, y, side / patch.shape[-1])
    if weight >= 0.5:
        drawing.rectangle(x - 1.5, y - 1.5, side + 3, side + 3, "none", stroke=INK, radius=2)
    bar = max(BAR * weight, 1)
    drawing.rectangle(x, y + side + 4, side, BAR, GRID, opacity=0.35)
    drawing.rectangle(x, y + side + 4 + BAR - bar, side, bar, WEIGHT)
    drawing.text(x + side / 2, y + side + BAR + 15, told(weight, 2), size=12)
