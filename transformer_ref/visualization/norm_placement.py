"""One sub-layer with its norm and its residual, drawn twice: post-norm and pre-norm, with the values on their way."""

from collections.abc import Callable, Sequence

from torch import Tensor

from transformer_ref.visualization.drawing import Drawing
from transformer_ref.visualization.heroes.hero import PAGE, PHONE, Hero
from transformer_ref.visualization.palette import INK, PAPER

COLUMN, HIGH = 340.0, 330.0  # of one placement
STREAM, BRANCH = 250.0, 96.0  # where the stream runs up, and the middle of the boxes next to it
BOX, TALL = 172.0, 46.0
START, FORK = 296.0, 262.0  # heights: the word that comes in, and where the branch leaves the stream

Function = Callable[[Tensor], Tensor]


def norm_placement(x: Tensor, sublayer: Function, norm: Function) -> Hero:
    """Return the figure for one word x, (d,), read upward: post-norm is norm(x + f(x)), pre-norm is x + f(norm(x)).

    sublayer, norm: functions of such a word. The values at each box are computed here.
    """
    post = {"f(x)": sublayer(x), "x + f(x)": x + sublayer(x), "LN(x + f(x))": norm(x + sublayer(x))}
    pre = {"LN(x)": norm(x), "f(LN(x))": sublayer(norm(x)), "x + f(LN(x))": x + sublayer(norm(x))}
    told = [f"x = {_values(x)}"]
    for name, steps in (("post-norm", post), ("pre-norm", pre)):
        told += [name, *(f"  {step} = {_values(value)}" for step, value in steps.items())]
    alt = (
        "Two ways to combine a sub-layer with a norm and a residual, each read upward. Post-norm: the branch has only "
        "the sub-layer, and the norm comes after the addition, on the stream itself. Pre-norm: the branch holds the "
        "norm and then the sub-layer, and the stream runs from bottom to top without a box on it. "
        f"The word {_values(x)} becomes {_values(post['LN(x + f(x))'])} and {_values(pre['x + f(LN(x))'])}."
    )
    wide, narrow = Drawing(PAGE, HIGH, alt), Drawing(PHONE, 2 * HIGH + 24, alt)
    for drawing, places in ((wide, ((0.0, 0.0), (PAGE - COLUMN, 0.0))), (narrow, ((5.0, 0.0), (5.0, HIGH + 24)))):
        for (left, top), draw, steps in zip(places, (_post, _pre), (post, pre), strict=True):
            with drawing.at(left, top):
                draw(drawing, x, list(steps.values()))
    return Hero(wide, narrow, told)


def _post(drawing: Drawing, x: Tensor, values: Sequence[Tensor]) -> None:
    drawing.text(COLUMN / 2, 14, "post-norm", bold=True)
    _enter(drawing, x)
    _box(drawing, BRANCH, 212, "sub-layer f", values[0])
    _branch(drawing, top=212, join=164)
    drawing.text(STREAM - 16, 144, _values(values[1]), anchor="end", size=12.5)
    _box(drawing, STREAM - 14, 102, "layer norm", values[2])
    drawing.line(STREAM, FORK, STREAM, 174, width=4)
    drawing.line(STREAM, 154, STREAM, 102 + TALL / 2, width=4)
    drawing.arrow(STREAM, 102 - TALL / 2, STREAM, 40, width=4)


def _pre(drawing: Drawing, x: Tensor, values: Sequence[Tensor]) -> None:
    drawing.text(COLUMN / 2, 14, "pre-norm", bold=True)
    _enter(drawing, x)
    _box(drawing, BRANCH, 226, "layer norm", values[0])
    drawing.arrow(BRANCH, 226 - TALL / 2, BRANCH, 150 + TALL / 2 + 1)
    _box(drawing, BRANCH, 150, "sub-layer f", values[1])
    _branch(drawing, top=150, join=102, first=226)
    drawing.text(STREAM - 16, 72, _values(values[2]), anchor="end", size=12.5)
    drawing.line(STREAM, FORK, STREAM, 112, width=4)
    drawing.arrow(STREAM, 92, STREAM, 40, width=4)


def _enter(drawing: Drawing, x: Tensor) -> None:
    drawing.text(STREAM, START + 18, f"x = {_values(x)}", size=12.5)
    drawing.line(STREAM, START + 4, STREAM, FORK, width=4)


def _branch(drawing: Drawing, top: float, join: float, first: float | None = None) -> None:
    """The way from the fork into the lowest box, and from the highest, at `top`, to the plus at the height `join`."""
    drawing.polyline([(STREAM, FORK + 10), (BRANCH, FORK + 10)], INK)
    drawing.arrow(BRANCH, FORK + 10, BRANCH, (first or top) + TALL / 2 + 1)
    drawing.polyline([(BRANCH, top - TALL / 2), (BRANCH, join)], INK)
    drawing.arrow(BRANCH, join, STREAM - 11, join)
    drawing.circle(STREAM, join, 10, PAPER, INK)
    drawing.text(STREAM, join, "+", bold=True)


def _box(drawing: Drawing, middle: float, y: float, name: str, value: Tensor) -> None:
    drawing.rectangle(middle - BOX / 2, y - TALL / 2, BOX, TALL, PAPER, stroke=INK, radius=6)
    drawing.text(middle, y - 10, name, bold=True, size=13)
    drawing.text(middle, y + 10, _values(value), size=12.5)


def _values(word: Tensor) -> str:
    """A word's values with at most two decimals: (0, −1.41, 0, 1.41)."""
    rounded = [round(float(value), 2) + 0.0 for value in word]
    return f"({', '.join(f'{value:g}' for value in rounded)})".replace("-", "−")
