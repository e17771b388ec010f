"""What has to be held to attend to a long text, drawn to one scale: a table, a tile, a state, keys and values."""

from collections.abc import Sequence

from transformer_ref.visualization.drawing import Drawing
from transformer_ref.visualization.growth import said
from transformer_ref.visualization.hero import PAGE, PHONE, Hero
from transformer_ref.visualization.palette import INK, KEY, PAPER, VALUE, WEIGHT

NUMBER = 4  # bytes of a number in float32


def drawn_to_scale_hero(length: int, tile: int, d_head: int, groups: Sequence[int]) -> Hero:
    """Return the figure of one head's table next to a tile, a state of linear attention, and caches of several heads.

    length: tokens; tile: of the table, a side; d_head: width of a query, key or value; groups: numbers of heads of keys
    and values that are kept, in descending order. Raises ValueError where a tile or a state would not be smaller than
    the table.
    """
    if not 0 < d_head < tile < length:
        raise ValueError(f"expected d_head < tile < length, got {d_head}, {tile}, {length}")
    held = {
        "table": length * length * NUMBER,
        "tile": tile * tile * NUMBER,
        "state": (d_head + 1) * d_head * NUMBER,
    }
    caches = {count: 2 * count * d_head * length * NUMBER for count in groups}
    told = [
        f"the table of one head, {length:,} x {length:,}: {said(held['table'], 'bytes')}",
        f"a tile of it, {tile:,} x {tile:,}: {said(held['tile'], 'bytes')}",
        f"the state of linear attention, {d_head} x {d_head} and {d_head}: {said(held['state'], 'bytes')}",
        *(
            f"keys and values of {count} group{'s' * (count > 1)}, {length:,} x {d_head} each: {said(size, 'bytes')}"
            for count, size in caches.items()
        ),
    ]
    alt = f"Boxes drawn to one scale, for {length:,} tokens in float32. {'; '.join(told)}."
    drawings = [make(length, tile, d_head, held, caches, alt) for make in (_wide, _narrow)]
    return Hero(*drawings, told)


def _wide(length: int, tile: int, d_head: int, held: dict[str, int], caches: dict[int, int], alt: str) -> Drawing:
    side = 270.0
    drawing = Drawing(PAGE, 48 + side + 44, alt)
    drawing.text(2, 12, f"1  all pairs of {length:,} tokens", anchor="start", bold=True)
    _table(drawing, 2, 48, side, tile / length, said(held["table"], "bytes"))
    drawing.text(302, 12, "2  a tile at a time", anchor="start", bold=True)
    _box(drawing, 304, 48, side * tile / length, WEIGHT)
    drawing.text(334, 48 + side * tile / length / 2, f"{tile} × {tile}: {said(held['tile'], 'bytes')}", anchor="start")
    drawing.text(302, 132, "3  a state", anchor="start", bold=True)
    _box(drawing, 304, 168, side * d_head / length, INK)
    drawing.text(334, 170, f"{d_head} × {d_head}: {said(held['state'], 'bytes')}", anchor="start")
    drawing.text(302, 204, "the same size after", anchor="start", size=13)
    drawing.text(302, 224, "any number of tokens", anchor="start", size=13)
    drawing.text(474, 12, "4  fewer keys and values", anchor="start", bold=True)
    _strips(drawing, 476, 48, side, side * d_head / length, caches, 40)
    return drawing


def _narrow(length: int, tile: int, d_head: int, held: dict[str, int], caches: dict[int, int], alt: str) -> Drawing:
    side = 176.0
    drawing = Drawing(PHONE, 2 * (52 + side) + 58, alt)
    drawing.text(2, 12, f"1  all pairs of {length:,}", anchor="start", bold=True, size=13)
    _table(drawing, 2, 44, side, tile / length, said(held["table"], "bytes"))
    drawing.text(200, 12, "2  a tile at a time", anchor="start", bold=True, size=13)
    _box(drawing, 202, 44, side * tile / length, WEIGHT)
    drawing.text(224, 50, f"{tile} × {tile}: {said(held['tile'], 'bytes')}", anchor="start", size=12)
    drawing.text(200, 116, "3  a state", anchor="start", bold=True, size=13)
    _box(drawing, 202, 148, side * d_head / length, INK)
    drawing.text(224, 150, f"{d_head} × {d_head}: {said(held['state'], 'bytes')}", anchor="start", size=12)
    top = 52 + side + 20
    drawing.text(2, top + 12, "4  fewer keys and values", anchor="start", bold=True, size=13)
    _strips(drawing, 4, top + 48, side, side * d_head / length, caches, 84)
    return drawing


def _table(drawing: Drawing, x: float, y: float, side: float, share: float, size: str) -> None:
    """Draw the whole table, with the current tile in it."""
    drawing.rectangle(x, y, side, side, PAPER, stroke=INK)
    drawing.rectangle(x, y, side, side, WEIGHT, opacity=0.2)
    drawing.rectangle(x + side / 2, y + side / 4, side * share, side * share, WEIGHT, stroke=INK)
    drawing.text(x + side / 2, y + side * 0.66, size, bold=True)
    drawing.text(x + side / 2, y - 14, "k  keys", size=12)


def _box(drawing: Drawing, x: float, y: float, side: float, fill: str) -> None:
    drawing.rectangle(x, y, side, side, fill, stroke=INK)


def _strips(
    drawing: Drawing, x: float, y: float, high: float, wide: float, caches: dict[int, int], between: float
) -> None:
    """Draw the keys and the values of each cache side by side, a strip for each group."""
    step = wide + 2
    for number, (count, size) in enumerate(caches.items()):
        for place in range(2 * count):
            drawing.rectangle(x + place * step, y, wide, high, KEY if place < count else VALUE)
        if number == 0:  # the others are too narrow for letters
            drawing.text(x + count * step / 2, y - 14, "k", size=12)
            drawing.text(x + 3 * count * step / 2, y - 14, "v", size=12)
        middle = x + count * step
        drawing.text(middle, y + high + 14, f"{count} group{'s' * (count > 1)}", size=12)
        drawing.text(middle, y + high + 32, said(size, "bytes"), size=12, bold=True)
        x += 2 * count * step + between
