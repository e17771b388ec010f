"""A translator with its attention: for each word that was written, where it looked in the sentence that it read."""

from collections.abc import Sequence
from typing import NamedTuple

from book.figures.matrix import Table, draw_map
from transformer_ref.visualization.drawing import Drawing
from transformer_ref.visualization.hero import PAGE, PHONE, Hero
from transformer_ref.visualization.palette import INK
from transformer_ref.visualization.tables import text_table

HIGH, NAMES, TOP = 28.0, 78.0, 116.0  # of a row; room for words on the left; above the first row
LEAST = 0.1  # a smaller weight is shown only by its color


class Translation(NamedTuple):
    """Source and translation, token by token; weights: (target, source); followed: the row with a frame."""

    read: Sequence[str]
    written: Sequence[str]
    weights: Table
    followed: int


def translations_hero(translations: Sequence[Translation]) -> Hero:
    """Return the figure of these translations, side by side on a page, one below the other on a phone."""
    told = [_told(each) for each in translations]
    alt = "Where a translator looked while it wrote. " + " ".join(told)
    texts = [
        f"{line}\n{text_table(each.weights, each.written, each.read, digits=2, sums=True)}\n"
        for line, each in zip(told, translations, strict=True)
    ]
    return Hero(_wide(translations, alt), _narrow(translations, alt), texts)


def _told(each: Translation) -> str:
    best = _most(each)
    return (
        f"{' '.join(each.read)} becomes {' '.join(each.written)}; {each.written[each.followed]} attends most to "
        f"{each.read[best]}, {float(each.weights[each.followed][best]):.2f}."
    )


def _most(each: Translation) -> int:
    """Return the index of the word with the largest weight in the followed row."""
    return max(range(len(each.read)), key=lambda place: float(each.weights[each.followed][place]))


def _wide(translations: Sequence[Translation], alt: str) -> Drawing:
    room = PAGE - len(translations) * (NAMES + 8)
    cell = min(room / sum(len(each.read) for each in translations), 44)
    drawing = Drawing(PAGE, TOP + HIGH * max(len(each.written) for each in translations) + 6, alt)
    left = 0.0
    for each in translations:
        with drawing.at(left + NAMES, 0):
            _map(drawing, each, cell)
        left += NAMES + 8 + cell * len(each.read)
    return drawing


def _narrow(translations: Sequence[Translation], alt: str) -> Drawing:
    heights = [TOP + HIGH * len(each.written) + 24 for each in translations]
    drawing = Drawing(PHONE, sum(heights) - 18, alt)
    for place, each in enumerate(translations):
        with drawing.at(NAMES, sum(heights[:place])):
            _map(drawing, each, min((PHONE - NAMES - 6) / len(each.read), 44))
    return drawing


def _map(drawing: Drawing, each: Translation, cell: float) -> None:
    drawing.text(2 - NAMES, 11, f"{each.read[_most(each)]} → {each.written[each.followed]}", anchor="start", bold=True)
    with drawing.at(0, TOP):
        draw_map(drawing, each.weights, each.written, each.read, cell=(cell, HIGH), least=LEAST)
        frame = (0, each.followed * HIGH - 1, cell * len(each.read) + 4, HIGH + 2)
        drawing.rectangle(*frame, "none", stroke=INK, radius=4)
