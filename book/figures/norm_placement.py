"""One sub-layer with its norm and its residual, drawn twice: post-norm and pre-norm, with the values on their way."""

from collections.abc import Callable, Sequence
from typing import Any

from transformer_ref.visualization.drawing import Drawing
from transformer_ref.visualization.palette import INK, PAPER

COLUMN, HIGH = 270.0, 330.0  # of one placement
STREAM, BRANCH = 192.0, 76.0  # where the stream runs up, and the middle of the boxes next to it
BOX, TALL = 148.0, 46.0
START, FORK = 296.0, 262.0  # heights: the word that comes in, and where the branch leaves the stream

Word = Any  # a tensor (d,); this package draws and does not import torch
Function = Callable[[Word], Word]


class Placements:
    """Both figures, side by side if the column is wide enough; as text, the values at each step."""

    def __init__(self, drawings: Sequence[Drawing], words: Sequence[str]) -> None:
        self.drawings, self._words = drawings, words

    def __str__(self) -> str:
        return "\n".join(self._words)

    def _repr_html_(self) -> str:
        shown = "".join(f"<div style='flex:0 1 {COLUMN:g}px'>{drawing.to_svg()}</div>" for drawing in self.drawings)
        return f"<div style='display:flex;flex-wrap:wrap;justify-content:center;gap:0.5rem 1.5rem'>{shown}</div>"


def norm_placement(x: Word, sublayer: Function, norm: Function) -> Placements:
    """Return the figures for one word x, (d,), read upward: post-norm is norm(x + f(x)), pre-norm is x + f(norm(x)).

    sublayer, norm: functions of such a word. The values at each box are computed here.
    """
    post = {"f(x)": sublayer(x), "x + f(x)": x + sublayer(x), "LN(x + f(x))": norm(x + sublayer(x))}
    pre = {"LN(x)": norm(x), "f(LN(x))": sublayer(norm(x)), "x + f(LN(x))": x + sublayer(norm(x))}
    told = [f"x = {_values(x)}"]
    for name, steps in (("post-norm", post), ("pre-norm", pre)):
        told += [name, *(f"  {step} = {_values(value)}" for step, value in steps.items())]
    alts = (
        "Post-norm, read upward: a branch leaves the stream, passes the sub-layer and is added to the stream; then "
        f"comes the norm, on the stream itself. {_values(x)} becomes {_values(post['LN(x + f(x))'])}.",
        "Pre-norm, read upward: a branch leaves the stream, passes the norm and then the sub-layer, and is added to "
        f"the stream, on which there is no box. {_values(x)} becomes {_values(pre['x + f(LN(x))'])}.",
    )
    drawings = [Drawing(COLUMN, HIGH, alt) for alt in alts]
    _post(drawings[0], x, list(post.values()))
    _pre(drawings[1], x, list(pre.values()))
    return Placements(drawings, told)


def _post(drawing: Drawing, x: Word, values: Sequence[Word]) -> None:
    drawing.text(STREAM, 14, "post-norm", bold=True)
    _enter(drawing, x)
    _box(drawing, BRANCH, 212, "sub-layer f", values[0])
    _branch(drawing, top=212, join=164)
    drawing.text(STREAM - 16, 144, _values(values[1]), anchor="end", size=12.5)
    _box(drawing, STREAM, 102, "layer norm", values[2])
    drawing.line(STREAM, FORK, STREAM, 174, width=4)
    drawing.line(STREAM, 154, STREAM, 102 + TALL / 2, width=4)
    drawing.arrow(STREAM, 102 - TALL / 2, STREAM, 40, width=4)


def _pre(drawing: Drawing, x: Word, values: Sequence[Word]) -> None:
    drawing.text(STREAM, 14, "pre-norm", bold=True)
    _enter(drawing, x)
    _box(drawing, BRANCH, 226, "layer norm", values[0])
    drawing.arrow(BRANCH, 226 - TALL / 2, BRANCH, 150 + TALL / 2 + 1)
    _box(drawing, BRANCH, 150, "sub-layer f", values[1])
    _branch(drawing, top=150, join=102, first=226)
    drawing.text(STREAM - 16, 72, _values(values[2]), anchor="end", size=12.5)
    drawing.line(STREAM, FORK, STREAM, 112, width=4)
    drawing.arrow(STREAM, 92, STREAM, 40, width=4)


def _enter(drawing: Drawing, x: Word) -> None:
    drawing.text(STREAM, START + 18, f"x = {_values(x)}", size=12.5)
    drawing.line(STREAM, START + 4, STREAM, FORK, width=4)


def _branch(drawing: Drawing, top: float, join: float, first: float | None = None) -> None:
    """Draw the line from the fork into the lowest box, and from the highest one, at `top`, to the plus at the height
    `join`."""
    drawing.polyline([(STREAM, FORK + 10), (BRANCH, FORK + 10)], INK)
    drawing.arrow(BRANCH, FORK + 10, BRANCH, (first or top) + TALL / 2 + 1)
    drawing.polyline([(BRANCH, top - TALL / 2), (BRANCH, join)], INK)
    drawing.arrow(BRANCH, join, STREAM - 11, join)
    drawing.circle(STREAM, join, 10, PAPER, INK)
    drawing.text(STREAM, join, "+", bold=True)


def _box(drawing: Drawing, middle: float, y: float, name: str, value: Word) -> None:
    drawing.rectangle(middle - BOX / 2, y - TALL / 2, BOX, TALL, PAPER, stroke=INK, radius=6)
    drawing.text(middle, y - 10, name, bold=True, size=13)
    drawing.text(middle, y + 10, _values(value), size=12.5)


def _values(word: Word) -> str:
    """Return a word's values with at most two decimals: (0, −1.41, 0, 1.41)."""
    rounded = [round(float(value), 2) + 0.0 for value in word]
    return f"({', '.join(f'{value:g}' for value in rounded)})".replace("-", "−")
