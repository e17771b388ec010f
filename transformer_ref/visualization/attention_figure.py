"""All of attention in one picture: Q meets K in the scores, the scores become shares, the shares mix V into Z."""

from collections.abc import Callable, Sequence

from transformer_ref.visualization.drawing import Drawing
from transformer_ref.visualization.palette import GRID, INK, KEY, QUERY, VALUE, text_on, weight_fill

Table = Sequence[Sequence[float]]

WIDTH = 392.0  # of each panel; two stand side by side where there is room, one above the other on a phone
CELL, LOW, HIGH = 48.0, 27.0, 34.0  # a column; a row of the matrix on top; a row of the result
NAMES = 70.0  # room for the words on the left
GAP = 26.0  # between a matrix and its result
TITLE = 46.0
PAD = 3.0  # from a cell to the outline around its row


class AttentionFigure:
    """Two panels, each a matrix product written so that a row from the left meets a column from above.

    words: one for each row. Q, K: (word, d_k); V: (word, d_v); S, A: (word, word); Z: (word, d_v), rows of numbers.
    divisor: what the products were divided by, as it should be read. followed: the row that is outlined throughout.
    Raises ValueError when a table does not have one row for each word.
    """

    def __init__(
        self, words: Sequence[str], *, divisor: str, followed: int, alt: tuple[str, str], **tables: Table
    ) -> None:
        if sorted(tables) != sorted("QKVSAZ"):
            raise ValueError(f"tables: expected Q, K, V, S, A, Z, got {', '.join(sorted(tables))}")
        for name, table in tables.items():
            if len(table) != len(words):
                raise ValueError(f"{name}: expected a row for each of {len(words)} words, got {len(table)}")
        numbers = {name: [[float(number) for number in row] for row in table] for name, table in tables.items()}
        self.panels = [
            _scores(list(words), numbers, divisor, followed, alt[0]),
            _mixture(list(words), numbers, followed, alt[1]),
        ]

    def _repr_html_(self) -> str:
        panel = "<div style='flex:1 1 19rem;max-width:27rem;min-width:0'>{}</div>"
        panels = "".join(panel.format(drawing.to_svg()) for drawing in self.panels)
        return f"<div class='attention-figure' style='display:flex;flex-wrap:wrap;gap:.6rem 1.2rem'>{panels}</div>"


def _scores(words: list[str], tables: dict, divisor: str, followed: int, alt: str) -> Drawing:
    """Draw Q on the left, the keys on top as columns, and the scores where they meet."""
    turned = [list(column) for column in zip(*tables["K"], strict=True)]  # (d_k, word)
    wide = len(tables["Q"][0]) * CELL
    left, top = NAMES + wide + GAP, TITLE + len(words) * LOW + GAP
    drawing = _panel(words, top, "1", "every query meets every key", alt)
    _matrix(drawing, NAMES, top, tables["Q"], HIGH, "q", _tint(QUERY), 0)
    _matrix(drawing, left, top - GAP - len(turned) * LOW, turned, LOW, "", _tint(KEY), 0)
    _matrix(drawing, left, top, tables["S"], HIGH, "", _plain, 3)
    drawing.text(left - 12, top - GAP - len(turned) * LOW / 2, "k", bold=True)
    for column, word in enumerate(words):
        drawing.text(left + (column + 0.5) * CELL, top - GAP - len(turned) * LOW - 11, word, size=12.5)
    drawing.text(left, top - 12, f"S = products ÷ {divisor}", anchor="start", bold=True)
    query, key = tables["Q"][followed], tables["K"][1]
    product = sum(a * b for a, b in zip(query, key, strict=True))
    terms = " + ".join(f"{a:g}·{b:g}" for a, b in zip(query, key, strict=True))
    worked = f"{words[followed]} asks {words[1]}: {terms} = {product:g}, ÷ {divisor} = {tables['S'][followed][1]:.3f}"
    drawing.text(2, 34, worked, anchor="start", size=12.5)
    _outline(drawing, NAMES, top, wide, followed)
    _outline(drawing, left, top, len(words) * CELL, followed)
    return drawing


def _mixture(words: list[str], tables: dict, followed: int, alt: str) -> Drawing:
    """Draw the shares on the left, the values on top, and the mixtures below them."""
    wide = len(words) * CELL
    left, top = NAMES + wide + GAP, TITLE + len(words) * LOW + GAP
    drawing = _panel(words, top, "2", "each row becomes shares, the shares mix the values", alt)
    _matrix(drawing, NAMES, top, tables["A"], HIGH, "", _share, 3)
    _matrix(drawing, left, top - GAP - len(words) * LOW, tables["V"], LOW, "", _tint(VALUE), 0)
    _matrix(drawing, left, top, tables["Z"], HIGH, "", _tint(VALUE), 3)
    drawing.text(left + CELL, top - GAP - len(words) * LOW - 11, "v", bold=True)
    drawing.text(left, top - 12, "Z = A · V", anchor="start", bold=True)
    drawing.text(NAMES, top - 34, "A = softmax(S)", anchor="start", bold=True)
    for row, word in enumerate(words):
        drawing.text(left - 8, top - GAP - (len(words) - row - 0.5) * LOW, word, anchor="end", size=12.5)
        drawing.text(NAMES + (row + 0.5) * CELL, top - 12, word, size=12.5)
    _outline(drawing, NAMES, top, wide, followed)
    _outline(drawing, left, top, len(tables["Z"][0]) * CELL, followed)
    return drawing


def _panel(words: list[str], top: float, number: str, title: str, alt: str) -> Drawing:
    drawing = Drawing(WIDTH, top + len(words) * HIGH + 2 * PAD, alt)
    drawing.text(2, 11, f"{number}  {title}", anchor="start")
    for row, word in enumerate(words):
        drawing.text(NAMES - 10, top + (row + 0.5) * HIGH, word, anchor="end")
    return drawing


def _matrix(
    drawing: Drawing,
    left: float,
    top: float,
    table: Table,
    high: float,
    letter: str,
    paint: Callable[[float], tuple[str, float, str, str]],
    digits: int,
) -> None:
    """Draw one matrix with a number in each cell. paint: a number -> (fill, opacity, stroke, text color)."""
    if letter:
        drawing.text(left + len(table[0]) * CELL / 2, top - 12, letter, bold=True)
    for row, numbers in enumerate(table):
        for column, number in enumerate(numbers):
            x, y = left + column * CELL, top + row * high
            fill, opacity, stroke, ink = paint(number)
            drawing.rectangle(x + 1, y + 1, CELL - 2, high - 2, fill, opacity=opacity, stroke=stroke, radius=3)
            drawing.text(x + CELL / 2, y + high / 2, f"{number:.{digits}f}", fill=ink)


def _outline(drawing: Drawing, left: float, top: float, wide: float, row: int) -> None:
    """Draw the ink frame around the row to follow."""
    y = top + row * HIGH
    drawing.rectangle(left - PAD + 1, y - PAD + 1, wide + 2 * PAD - 2, HIGH + 2 * PAD - 2, "none", stroke=INK, radius=5)


def _tint(color: str) -> Callable[[float], tuple[str, float, str, str]]:
    return lambda number: (color, 0.25, color, INK)


def _plain(number: float) -> tuple[str, float, str, str]:
    return "none", 1.0, GRID, INK


def _share(number: float) -> tuple[str, float, str, str]:
    fill, opacity = weight_fill(number)
    return fill, opacity, GRID, text_on(opacity)
