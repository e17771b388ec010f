"""The whole machine as boxes that lead somewhere, with an attention and an "add and norm" taken apart below it."""

from collections.abc import Callable
from typing import NamedTuple

from transformer_ref.visualization.drawing import Drawing
from transformer_ref.visualization.palette import DECODER, ENCODER, GRID, INK, KEY, PAPER, POSITION, QUERY, VALUE

WIDTH, HIGH, STEP = 188, 30, 44  # of a box; from one to the next
LEFT, RIGHT, PAGE = 24, 262, 474
BOTTOM = 470  # the middle of the lowest boxes
DETAIL = 590  # where the parts that are taken apart begin


class Part(NamedTuple):
    """A part of the machine: what is written on it, where it is built, the colors of its role."""

    number: int
    name: str
    chapter: str
    colors: tuple[str, ...] = (GRID,)


PARTS = {
    "embedding": Part(1, "embedding", "02"),
    "position": Part(2, "+ position", "07", (POSITION,)),
    "self": Part(3, "self-attention", "06"),
    "add": Part(4, "add & norm", "09"),
    "feed": Part(5, "feed-forward", "09"),
    "masked": Part(6, "masked attention", "08"),
    "cross": Part(7, "cross-attention", "09"),
    "linear": Part(8, "scores of words", "09"),
    "shares": Part(9, "softmax", "04"),
    "encoder": Part(10, "encoder layer", "09", (ENCODER,)),
    "decoder": Part(11, "decoder layer", "09", (DECODER,)),
    "project": Part(12, "project", "05", (QUERY, KEY, VALUE)),
    "split": Part(13, "split", "06"),
    "scores": Part(14, "scores, ÷√d_k", "05", (QUERY, KEY)),
    "mask": Part(15, "mask", "08"),
    "softmax": Part(16, "softmax", "04"),
    "mix": Part(17, "mix the values", "05", (VALUE,)),
    "merge": Part(18, "merge", "06"),
    "output": Part(19, "project again", "06"),
    "residual": Part(20, "add the change", "09"),
    "norm": Part(21, "layer norm", "09"),
}
STACKS = {
    "encoder": (LEFT, ENCODER, ["embedding", "position", "self", "add", "feed", "add"]),
    "decoder": (
        RIGHT,
        DECODER,
        ["embedding", "position", "masked", "add", "cross", "add", "feed", "add", "linear", "shares"],
    ),
}
TAKEN_APART = {
    "inside an attention": ["project", "split", "scores", "mask", "softmax", "mix", "merge", "output"],
    "inside add & norm": ["residual", "norm"],
}


def machine(address: Callable[[str], str]) -> Drawing:
    """Return the picture, to be read upward; `address` says where the box of a key of PARTS leads."""
    drawing = Drawing(
        PAGE,
        DETAIL + 7 * STEP + HIGH,
        "The machine of the paper in two columns, to be read upward. Encoder: embedding, position, then a layer of "
        "self-attention, add and norm, feed-forward, add and norm. Decoder: embedding, position, then a layer of "
        "masked attention, cross-attention and feed-forward, each with add and norm, then scores and softmax. An arrow "
        "leads from the encoder's top to the cross-attention. Below: an attention in eight steps, add and norm in two.",
    )
    for name, (x, color, keys) in STACKS.items():
        _stack(drawing, name, x, color, keys, address)
    _memory(drawing)
    _taken_apart(drawing, address)
    return drawing


def _stack(drawing: Drawing, name: str, x: float, color: str, keys: list[str], address: Callable[[str], str]) -> None:
    """One column. The layer's own box stands in the flow, below the sub-layers that it holds."""
    rows = [*keys[:2], name, *keys[2:]]
    heights = [BOTTOM - STEP * row for row in range(len(rows))]
    low, high = heights[2], heights[max(row for row, key in enumerate(rows) if key == "add")]
    drawing.rectangle(x - 16, high - 24, WIDTH + 26, low - high + 46, color, opacity=0.16, stroke=color, radius=10)
    middle = x + WIDTH / 2
    for key, y in zip(rows, heights, strict=True):
        drawing.arrow(middle, y + STEP - HIGH / 2, middle, y + HIGH / 2 + 1, INK)
        if key == "add":  # the way around the sub-layer
            below = y + STEP + HIGH / 2 + 7
            drawing.polyline([(middle, below), (x - 9, below), (x - 9, y)], INK)
            drawing.arrow(x - 9, y, x - 0.5, y, INK)
        with drawing.link(address(key)):
            _box(drawing, PARTS[key], x, y, WIDTH, times=key == name)
    words = "I closed the windows" if name == "encoder" else "<bos> Ho chiuso le"
    drawing.text(middle, BOTTOM + 40, words, bold=True)


def _box(drawing: Drawing, part: Part, x: float, y: float, width: float, times: bool = False) -> None:
    """A box around (x, y), its left edge and its middle: number, colors of its role, name, chapter."""
    drawing.rectangle(x, y - HIGH / 2, width, HIGH, PAPER, stroke=INK, radius=6)
    for place, color in enumerate(part.colors):
        share = HIGH / len(part.colors)
        drawing.rectangle(x, y - HIGH / 2 + place * share, 7, share, color)
    drawing.text(x + 22, y, f"{part.number}", bold=True, size=13)
    drawing.text(x + 37, y, part.name + (" × N" if times else ""), anchor="start", size=13, subscripts=True)
    drawing.text(x + width - 8, y, part.chapter, anchor="end", size=12)


def _memory(drawing: Drawing) -> None:
    """The arrow from the top of the encoder to the decoder's cross-attention."""
    top, asks = BOTTOM - STEP * 7, BOTTOM - STEP * 5
    middle = LEFT + WIDTH + 26
    start = LEFT + WIDTH / 2
    drawing.polyline([(start, top + STEP - HIGH / 2), (start, top), (middle, top), (middle, asks)], INK)
    drawing.arrow(middle, asks, RIGHT - 1, asks, INK)
    drawing.text(start, top - 12, "memory", size=13)


def _taken_apart(drawing: Drawing, address: Callable[[str], str]) -> None:
    for x, (title, keys) in zip((LEFT, RIGHT), TAKEN_APART.items(), strict=True):
        drawing.text(x, DETAIL - 34, title, anchor="start", bold=True)
        for place, key in enumerate(keys):
            y = DETAIL + STEP * place
            if place:
                drawing.arrow(x + WIDTH / 2, y - STEP + HIGH / 2, x + WIDTH / 2, y - HIGH / 2 - 1, INK)
            with drawing.link(address(key)):
                _box(drawing, PARTS[key], x, y, WIDTH)
