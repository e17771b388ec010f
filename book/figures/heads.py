"""One head against several: vectors are cut into heads, each head attends separately, and the outputs are joined."""

from collections.abc import Sequence
from typing import NamedTuple

from book.figures.matrix import Table, draw_matrix, plain, share, tint
from transformer_ref.visualization.drawing import Drawing
from transformer_ref.visualization.hero import PAGE, PHONE, Hero
from transformer_ref.visualization.palette import GRID, VALUE
from transformer_ref.visualization.tables import text_table

HIGH = 30.0
GREEN = tint(VALUE)


class Head(NamedTuple):
    """One head's input, weights and output: a row for each word in all three."""

    piece: Table
    weights: Table
    found: Table


def heads_hero(words: Sequence[str], x: Table, heads: Sequence[Head], whole: Head) -> Hero:
    """Return the figure of x split into two heads and merged again, above one head of the full width.

    words: one for each row. x: (word, D). heads: two, each with (word, d_k), (word, word), (word, d_k). whole: the
    one head that takes all of x. Raises ValueError for any other number of heads.
    """
    if len(heads) != 2:
        raise ValueError(f"heads: expected 2, got {len(heads)}")
    joined = [[*map(float, a), *map(float, b)] for a, b in zip(heads[0].found, heads[1].found, strict=True)]
    alt = (
        f"{len(words)} words of {len(x[0])} numbers are cut into two heads. Each head has its own attention weights "
        "and its own output; side by side the outputs are as wide as before. Below, one head of the full width has one "
        f"row of attention weights for each word. For {words[0]}: head 0 "
        + ", head 1 ".join(" ".join(f"{float(s):.3f}" for s in head.weights[0]) for head in heads)
        + ", one head "
        + " ".join(f"{float(s):.3f}" for s in whole.weights[0])
        + "."
    )
    figure = _Heads(list(words), x, heads, whole, joined)
    return Hero(figure.wide(alt), figure.narrow(alt), figure.as_text())


class _Heads:
    def __init__(self, words: list[str], x: Table, heads: Sequence[Head], whole: Head, joined: Table) -> None:
        self.words, self.x, self.heads, self.whole, self.joined = words, x, heads, whole, joined
        self.tall = HIGH * len(words)

    def block(
        self,
        drawing: Drawing,
        x: float,
        y: float,
        table: Table,
        title: str,
        *,
        cell: float,
        role: str,
        names: bool = False,
    ) -> None:
        """Draw one matrix with its title above it; role: words, weights or outputs."""
        paint, digits, size = {"words": (plain, 0, 13), "weights": (share, 3, 12.5), "outputs": (GREEN, 3, 12.5)}[role]
        with drawing.at(x, y):
            drawing.text(0, -14, title, anchor="start", bold=True, size=13, subscripts=True)
            rows = self.words if names else ()
            draw_matrix(drawing, table, cell=(cell, HIGH), paint=paint, digits=digits, size=size, rows=rows)

    def wide(self, alt: str) -> Drawing:
        """For a page: two lanes from left to right, one lane below them."""
        lanes = (38, 38 + self.tall + 52)
        middle = (lanes[0] + lanes[1]) / 2
        third = lanes[1] + self.tall + 78
        drawing = Drawing(PAGE, third + self.tall + 8, alt)
        self.block(drawing, 56, middle, self.x, "X", cell=27, role="words", names=True)
        for number, (top, head) in enumerate(zip(lanes, self.heads, strict=True)):
            y = top + self.tall / 2
            drawing.arrow(167, middle + self.tall / 2, 196, y)
            self.block(drawing, 202, top, head.piece, f"head {number}", cell=27, role="words")
            drawing.arrow(261, y, 286, y)
            self.block(drawing, 292, top, head.weights, f"attention weights A_{number}", cell=43, role="weights")
            drawing.arrow(426, y, 451, y)
            self.block(drawing, 457, top, head.found, f"output Z_{number}", cell=43, role="outputs")
            drawing.arrow(548, y, 575, middle + self.tall / 2)
        with drawing.at(581, middle):
            drawing.text(0, -14, "side by side", anchor="start", bold=True, size=13)
            draw_matrix(drawing, self.joined, cell=(34, HIGH), paint=GREEN, digits=2, size=12.5)
        drawing.line(2, third - 44, PAGE - 2, third - 44, GRID, width=1)
        self.block(drawing, 56, third, self.x, "the same X, one head", cell=27, role="words", names=True)
        y = third + self.tall / 2
        drawing.arrow(170, y, 286, y)
        self.block(drawing, 292, third, self.whole.weights, "weights: one row for each word", cell=43, role="weights")
        drawing.arrow(426, y, 545, y)
        self.block(drawing, 551, third, self.whole.found, "one output Z", cell=41, role="outputs")
        return drawing

    def narrow(self, alt: str) -> Drawing:
        """For a phone: the lanes one below the other."""
        step, left = self.tall + 48, 54
        drawing = Drawing(PHONE, 5 * step - 6, alt)
        y = 32.0
        self.block(drawing, left, y, self.x, "X, cut into two heads", cell=32, role="words", names=True)
        for number, head in enumerate(self.heads):
            y += step
            self.block(drawing, left, y, head.piece, f"head {number}", cell=25, role="words", names=True)
            self.block(drawing, left + 64, y, head.weights, f"weights A_{number}", cell=43, role="weights")
            self.block(drawing, left + 207, y, head.found, f"output Z_{number}", cell=44, role="outputs")
        y += step
        self.block(drawing, left, y, self.joined, "side by side", cell=44, role="outputs", names=True)
        y += step
        self.block(drawing, left, y, self.whole.weights, "one head", cell=41, role="weights", names=True)
        self.block(drawing, left + 131, y, self.whole.found, "one output Z", cell=41, role="outputs")
        return drawing

    def as_text(self) -> list[str]:
        numbers = [str(place) for place in range(len(self.x[0]))]
        lines = [f"X\n{text_table(self.x, self.words, numbers, digits=0)}\n"]
        for number, head in [*enumerate(self.heads), ("of full width", self.whole)]:
            wide = numbers[: len(head.found[0])]
            lines += [
                f"head {number}: attention weights\n{text_table(head.weights, self.words, self.words, sums=True)}",
                f"head {number}: output\n{text_table(head.found, self.words, wide)}\n",
            ]
        return [*lines, f"heads 0 and 1 side by side\n{text_table(self.joined, self.words, numbers)}"]
