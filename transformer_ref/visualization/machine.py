"""The whole machine as boxes that lead somewhere, to be read upward, with some of its parts taken apart next to it."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

from transformer_ref.visualization.drawing import Drawing
from transformer_ref.visualization.hero import PAGE, PHONE, Hero
from transformer_ref.visualization.palette import DECODER, ENCODER, INK, KEY, PAPER, POSITION, QUERY, VALUE

HIGH = 30.0  # of a box with one line
FRAME = 13.0  # from a box to the edge of its layer, where the way around a sub-layer runs
STRIPE = 6.0  # the color of a role at a box's left edge

Address = Callable[[str], str]


class Part(NamedTuple):
    """A part of the model: its number (0: none), its label, the chapter that builds it, the colors of its role.

    exercise: the id of the exercise that builds it.
    """

    number: int
    name: str
    chapter: str
    colors: tuple[str, ...] = ()
    exercise: str = ""


PARTS = {
    "embedding": Part(1, "embedding", "02", exercise="embed"),
    "position": Part(2, "+ position", "07", (POSITION,), exercise="add-positions"),
    "self": Part(3, "self-attention", "06", exercise="multi-head-attention"),
    "add": Part(4, "add & norm", "09", exercise="layer-norm"),
    "feed": Part(5, "feed-forward", "09", exercise="feed-forward"),
    "masked": Part(6, "masked attention", "08", exercise="decoder-mask"),
    "cross": Part(7, "cross-attention", "09", exercise="decoder-layer"),
    "linear": Part(8, "scores of words", "09", exercise="transformer"),
    "shares": Part(9, "softmax", "04", exercise="softmax"),
    "encoder": Part(10, "encoder layer", "09", (ENCODER,), exercise="encoder-layer"),
    "decoder": Part(11, "decoder layer", "09", (DECODER,), exercise="decoder-layer"),
    "project": Part(12, "project", "05", (QUERY, KEY, VALUE), exercise="project"),
    "split": Part(13, "split", "06", exercise="split-heads"),
    "scores": Part(14, "scores, ÷√d_k", "05", (QUERY, KEY), exercise="attention-weights"),
    "mask": Part(15, "mask", "08", exercise="masked-attention"),
    "softmax": Part(16, "softmax", "04", exercise="softmax"),
    "mix": Part(17, "mix the values", "05", (VALUE,), exercise="attend"),
    "merge": Part(18, "merge", "06", exercise="merge-heads"),
    "output": Part(19, "project again", "06", exercise="multi-head-attention"),
    "residual": Part(20, "add the change", "09", exercise="encoder-layer"),
    "norm": Part(21, "layer norm", "09", exercise="layer-norm"),
}
STACKS = {
    "encoder": ["embedding", "position", "encoder", "self", "add", "feed", "add"],
    "decoder": [
        *("embedding", "position", "decoder", "masked", "add", "cross", "add", "feed", "add", "linear", "shares")
    ],
}
TAKEN_APART = {
    "inside an attention": ["project", "split", "scores", "mask", "softmax", "mix", "merge", "output"],
    "inside add & norm": ["residual", "norm"],
}

ROAD = {
    "embedding": Part(0, "words as numbers", "02"),
    "position": Part(0, "+ position", "07", (POSITION,)),
    "encoder": Part(0, "encoder layer", "09", (ENCODER,)),
    "decoder": Part(0, "decoder layer", "09", (DECODER,)),
    "self": Part(0, "self-attention", "05"),
    "masked": Part(0, "masked attention", "08"),
    "cross": Part(0, "cross-attention", "09"),
    "feed": Part(0, "feed-forward", "09"),
    "shares": Part(0, "which word?", "04"),
    "why": Part(0, "why attention?", "01"),
    "alike": Part(0, "who is like whom", "03", (QUERY, KEY)),
    "softmax": Part(0, "scores to weights", "04"),
    "mix": Part(0, "mix what is found", "05", (VALUE,)),
    "heads": Part(0, "several at once", "06"),
    "mask": Part(0, "hide some words", "08"),
    "train": Part(0, "train it", "10"),
    "write": Part(0, "let it write", "11"),
    "own": Part(0, "a translator, yours", "12"),
}
ROAD_STACKS = {
    "encoder": ["embedding", "position", "encoder", "self", "feed"],
    "decoder": ["embedding", "position", "decoder", "masked", "cross", "feed", "shares"],
}
ROAD_LISTS = {
    "inside an attention": ["alike", "softmax", "mix", "heads", "mask"],
    "around the machine": ["why", "train", "write", "own"],
}


class Arrangement(NamedTuple):
    """The layout: left edges of the two stacks and of the lists, widths of their boxes, the size of letters."""

    page: float
    stacks: tuple[float, float]
    box: float
    lists: tuple[float, float]
    list_box: float
    beside: bool  # the lists are next to the stacks, or below them
    size: float
    high: float  # of a box in a stack; high ones have the chapter on a line of its own


WIDE = Arrangement(PAGE, (15, 212), 160, (400, 566), 152, True, 12.5, HIGH)
NARROW = Arrangement(PHONE, (14, 198), 144, (2, 180), 168, False, 12.5, 42)


def solved_parts(solved: Collection[str]) -> list[str]:
    """Return the keys of the parts that are built once these exercises are solved."""
    return [key for key, part in PARTS.items() if part.exercise in solved]


def machine(address: Address, solved: Collection[str] = ()) -> Hero:
    """Return the figure of the paper's model; `address`: a key of PARTS -> the link of its box.

    An attention and an "add and norm" are shown in detail next to it. Parts whose exercise is among the ids in `solved`
    have a tick.
    """
    ticked = solved_parts(solved)
    alt = (
        "The machine of the paper in two columns, to be read upward. Encoder: embedding, position, then a layer of "
        "self-attention, add and norm, feed-forward, add and norm. Decoder: embedding, position, then a layer of "
        "masked attention, cross-attention and feed-forward, each with add and norm, then scores and softmax. An arrow "
        "leads from the encoder's top to the cross-attention. Beside it: an attention in eight steps, add and norm "
        "in two."
    )
    alt += f" {len(ticked)} of the {len(PARTS)} parts are ticked." if ticked else ""
    words = ("I closed the windows", "<bos> Ho chiuso le")
    return _hero(PARTS, STACKS, TAKEN_APART, address, alt, words, ticked)


def road_map(address: Address) -> Hero:
    """Return the figure of the model with each part's chapter; `address`: a chapter's number -> its link."""
    alt = (
        "The road map. The machine in two columns, to be read upward. Encoder: words as numbers (chapter 02), position "
        "(07), then a layer of attention (05) and feed-forward (09). Decoder: words as numbers, position, then a layer "
        "of masked attention (08), cross-attention (09) and feed-forward, and the choice of a word (04). "
        "An arrow leads from the encoder's top to the cross-attention. Beside it: inside an attention (03, 04, 05, "
        "06, 08), and around the machine (01, 10, 11, 12)."
    )
    return _hero(
        ROAD,
        ROAD_STACKS,
        ROAD_LISTS,
        lambda key: address(ROAD[key].chapter),
        alt,
        words=("I closed the windows", "Ho chiuso le …"),
    )


def _hero(
    parts: Mapping[str, Part],
    stacks: Mapping[str, Sequence[str]],
    lists: Mapping[str, Sequence[str]],
    address: Address,
    alt: str,
    words: tuple[str, str],
    ticked: Collection[str] = (),
) -> Hero:
    drawn = {key: part._replace(name=f"{part.name} ✓") if key in ticked else part for key, part in parts.items()}
    drawings = [_draw(drawn, stacks, lists, address, alt, words, arrangement) for arrangement in (WIDE, NARROW)]

    def line(key: str) -> str:
        part = drawn[key]
        return f"  {f'{part.number:2d} ' if part.number else ''}{part.name.replace('_', ''):20}chapter {part.chapter}"

    told = [
        row
        for title, keys in {**{f"{side}, from below": keys for side, keys in stacks.items()}, **lists}.items()
        for row in (title, *map(line, keys))
    ]
    return Hero(*drawings, told)


def _draw(
    parts: Mapping[str, Part],
    stacks: Mapping[str, Sequence[str]],
    lists: Mapping[str, Sequence[str]],
    address: Address,
    alt: str,
    words: tuple[str, str],
    where: Arrangement,
) -> Drawing:
    step = where.high + 14
    tallest = max(len(keys) for keys in stacks.values())
    bottom = 16 + step * (tallest - 1) + where.high / 2
    list_top = 16.0 if where.beside else bottom + where.high / 2 + 58
    longest = max(len(keys) for keys in lists.values())
    below_lists = list_top + 26 + (HIGH + 14) * longest
    drawing = Drawing(where.page, max(bottom + where.high / 2 + 34, below_lists), alt)
    tops = {}
    for (side, keys), x, color, said in zip(stacks.items(), where.stacks, (ENCODER, DECODER), words, strict=True):
        tops[side] = _stack(drawing, parts, keys, x, bottom, color, address, where, is_layer=side)
        drawing.text(x + where.box / 2, bottom + where.high / 2 + 20, said, bold=True, size=where.size + 0.5)
    _memory(drawing, stacks, bottom, step, where)
    for x, (title, keys) in zip(where.lists, lists.items(), strict=True):
        drawing.text(x, list_top, title, anchor="start", bold=True)
        for place, key in enumerate(keys):
            y = list_top + 34 + (HIGH + 14) * place
            if place:
                middle = x + where.list_box / 2
                drawing.arrow(middle, y - 14 - HIGH / 2, middle, y - HIGH / 2 - 1, INK)
            with drawing.link(address(key)):
                _box(drawing, parts[key], x, y, where.list_box, HIGH, where.size)
    return drawing


def _stack(
    drawing: Drawing,
    parts: Mapping[str, Part],
    keys: Sequence[str],
    x: float,
    bottom: float,
    color: str,
    address: Address,
    where: Arrangement,
    is_layer: str,
) -> float:
    """Draw one column. The layer's box is behind the sub-layers that it holds."""
    high, step, middle = where.high, where.high + 14, x + where.box / 2
    heights = [bottom - step * row for row in range(len(keys))]
    first = keys.index(is_layer)
    last = max(row for row, key in enumerate(keys) if key in ("add", "feed"))
    top = heights[last] - high / 2 - 8
    drawing.rectangle(
        x - FRAME,
        top,
        where.box + FRAME + 6,
        heights[first] + high / 2 + 7 - top,
        color,
        opacity=0.16,
        stroke=color,
        radius=10,
    )
    for key, y in zip(keys, heights, strict=True):
        if y != bottom:
            drawing.arrow(middle, y + step - high / 2, middle, y + high / 2 + 1, INK)
        if key == "add":  # the way around the sub-layer
            below = y + step + high / 2 + 7
            drawing.polyline([(middle, below), (x - 9, below), (x - 9, y)], INK)
            drawing.arrow(x - 9, y, x - 0.5, y, INK)
        with drawing.link(address(key)):
            _box(drawing, parts[key], x, y, where.box, high, where.size, times=key == is_layer)
    return heights[-1]


def _box(
    drawing: Drawing, part: Part, x: float, y: float, width: float, high: float, size: float, times: bool = False
) -> None:
    """Draw a box with its left edge at x and its middle at y: number, colors of its role, name, chapter."""
    drawing.rectangle(x, y - high / 2, width, high, PAPER, stroke=INK, radius=6)
    for place, color in enumerate(part.colors):
        share = high / len(part.colors)
        drawing.rectangle(x, y - high / 2 + place * share, STRIPE, share, color)
    left, many = x + (30 if part.number else 14), " × N" if times else ""
    if part.number:
        drawing.text(x + 18, y, f"{part.number}", bold=True, size=size)
    if high > HIGH:
        drawing.text(left, y - 9, part.name, anchor="start", size=size, subscripts=True)
        drawing.text(left, y + 10, f"chapter {part.chapter}{many and ', × N'}", anchor="start", size=12)
    else:
        drawing.text(left, y, part.name + many, anchor="start", size=size, subscripts=True)
        drawing.text(x + width - 7, y, part.chapter, anchor="end", size=12)


def _memory(
    drawing: Drawing, stacks: Mapping[str, Sequence[str]], bottom: float, step: float, where: Arrangement
) -> None:
    """Draw the arrow from the top of the encoder to the decoder's cross-attention."""
    top = bottom - step * len(stacks["encoder"])
    asks = bottom - step * stacks["decoder"].index("cross")
    start = where.stacks[0] + where.box / 2
    middle = (where.stacks[0] + where.box + 6 + where.stacks[1] - FRAME) / 2  # between the frames of the layers
    drawing.polyline([(start, top + step - where.high / 2), (start, top), (middle, top), (middle, asks)], INK)
    drawing.arrow(middle, asks, where.stacks[1] - 1, asks, INK)
    drawing.text(start, top - 12, "memory", size=13)
