"""Four ways to let one word know about another: through one vector, by looking back, by windows, by attention."""

from collections.abc import Mapping, Sequence

from transformer_ref.visualization.drawing import Drawing
from transformer_ref.visualization.hero import PAGE, PHONE, Hero
from transformer_ref.visualization.palette import DECODER, ENCODER, GRID, INK, PAPER, QUERY

PANEL = 168.0  # pixels wide; four are in a row on a page, two on a phone
CENTERS = (14.0, 54.0, 97.0, 140.0)  # of the four words, whose lengths differ
READS, WRITES = 62.0, 148.0  # the middle of the encoder's boxes, of the decoder's
FACTS = 206.0  # where the numbers of a panel begin
SEEN = 0.05  # a weight below it is drawn faint


def four_ways_hero(
    source: Sequence[str], target: Sequence[str], weights: Sequence[Sequence[float]], facts: Mapping[str, Sequence[str]]
) -> Hero:
    """Return the figure of the four ways, each with its numbers below it.

    source, target: four words each. weights: (target, source), of the second way. facts: the name of each way, in the
    order of this module's first line, with its lines of numbers. Raises ValueError for other counts.
    """
    if len(source) != 4 or len(target) != 4 or len(facts) != 4:
        raise ValueError(
            f"facts: expected four words on each side and four ways, got {source}, {target}, {list(facts)}"
        )
    told = [f"{place}. {name}: {', '.join(lines)}" for place, (name, lines) in enumerate(facts.items(), 1)]
    alt = (
        "Four small pictures. A chain of boxes hands one thick line to a second chain; two chains with a line from "
        "each box of the second to the boxes it looks at; layers of windows that widen like a cone; four words, each "
        f"joined to all. {'. '.join(told)}."
    )
    painters = (_one_vector, _looks_back, _windows, _attention)
    high = FACTS + 20 * max(len(lines) for lines in facts.values()) + 4

    def panel(drawing: Drawing, place: int, x: float, y: float) -> None:
        name, lines = list(facts.items())[place]
        with drawing.at(x, y):
            drawing.text(0, 12, f"{place + 1}  {name}", anchor="start", bold=True)
            painters[place](drawing, source, target, weights)
            for row, line in enumerate(lines):
                drawing.text(1, FACTS + 20 * row, line, anchor="start", size=12.5)

    wide, narrow = Drawing(PAGE, high, alt), Drawing(PHONE, 2 * high + 14, alt)
    for place in range(4):
        panel(wide, place, place * (PAGE - PANEL) / 3, 0)
        panel(narrow, place, (place % 2) * (PHONE - PANEL), (place // 2) * (high + 14))
    return Hero(wide, narrow, told)


def _chains(drawing: Drawing, source: Sequence[str], target: Sequence[str]) -> None:
    """Draw the encoder's boxes with the words that it reads, the decoder's with the words that it generates."""
    for middle, color, words, outside in ((READS, ENCODER, source, -27), (WRITES, DECODER, target, 27)):
        for place, (x, word) in enumerate(zip(CENTERS, words, strict=True)):
            drawing.rectangle(x - 12, middle - 13, 24, 26, PAPER, radius=4)
            drawing.rectangle(x - 12, middle - 13, 24, 26, color, opacity=0.3, stroke=color, radius=4)
            drawing.text(x, middle + outside, word, size=12)
            if place:
                drawing.arrow(CENTERS[place - 1] + 13, middle, x - 13, middle, width=1.5)


def _one_vector(drawing: Drawing, source: Sequence[str], target: Sequence[str], _: object) -> None:
    middle = (READS + WRITES) / 2
    drawing.line(CENTERS[3], READS + 13, CENTERS[3], middle, width=4)
    drawing.line(CENTERS[3], middle, CENTERS[0], middle, width=4)
    drawing.arrow(CENTERS[0], middle, CENTERS[0], WRITES - 14, width=4)
    drawing.text(84, middle - 12, "one vector", size=12.5)
    _chains(drawing, source, target)


def _looks_back(
    drawing: Drawing, source: Sequence[str], target: Sequence[str], weights: Sequence[Sequence[float]]
) -> None:
    for row, looks in zip(CENTERS, weights, strict=True):
        for column, weight in zip(CENTERS, map(float, looks), strict=True):
            color = QUERY if weight >= SEEN else GRID
            drawing.line(column, READS + 13, row, WRITES - 13, color, width=1 + 5 * weight)
    _chains(drawing, source, target)


def _windows(drawing: Drawing, *_: object) -> None:
    """Draw nine words and four layers of windows of three, with the receptive field of the middle word of the highest
    layer."""
    across, up, bottom = 18.5, 30.0, 160.0
    for layer in range(1, 5):
        for place in range(layer, 9 - layer):
            for below in (place - 1, place, place + 1):
                ends = (10 + across * place, bottom - up * layer, 10 + across * below, bottom - up * (layer - 1))
                drawing.line(*ends, GRID, width=1.2)
    for layer in range(5):
        for place in range(layer, 9 - layer):
            drawing.circle(10 + across * place, bottom - up * layer, 6, ENCODER, INK)
    drawing.text(84, bottom + 20, "nine words", size=12)


def _attention(drawing: Drawing, source: Sequence[str], *_: object) -> None:
    for above in CENTERS:
        for below in CENTERS:
            drawing.line(above, READS, below, WRITES, QUERY, width=1.8)
    for middle, outside in ((READS, -22), (WRITES, 22)):
        for x, word in zip(CENTERS, source, strict=True):
            drawing.circle(x, middle, 8, ENCODER, INK)
            drawing.text(x, middle + outside, word, size=12)
