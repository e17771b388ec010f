"""From text to vectors: each token has a number, and the number is a row of a table."""

from collections.abc import Sequence

from book.figures.matrix import Table, draw_matrix
from transformer_ref.visualization.drawing import Drawing
from transformer_ref.visualization.hero import PAGE, PHONE, Hero
from transformer_ref.visualization.palette import GRID, INK, PAPER

LOW, HIGH, STEP = 28.0, 30.0, 52.0  # a row of the table; a chip; from one word to the next


def rows_of_a_table_hero(text: str, vocabulary: Sequence[str], ids: Sequence[int], table: Table) -> Hero:
    """Return the figure of a text cut into tokens, their ids, the table with the rows that are used, and these rows.

    vocabulary: a token for each row of the table. Raises ValueError when the two are not of one length.
    """
    if len(table) != len(vocabulary):
        raise ValueError(f"table: expected a row for each of {len(vocabulary)} tokens, got {len(table)}")
    tokens = [vocabulary[id] for id in ids]
    rows = [", ".join(f"{float(x):g}" for x in table[id]) for id in ids]
    told = [f"{token}: id {id}, row ({row})" for token, id, row in zip(tokens, ids, rows, strict=True)]
    alt = (
        f"The text {text} is cut into tokens. Each has an id, each id is a row of a table of {len(table)} rows, and "
        f"those rows, in the order of the text, are what the model gets. {'; '.join(told)}."
    )
    figure = _Rows(text, list(vocabulary), list(ids), table)
    return Hero(figure.wide(alt), figure.narrow(alt), [f"text: {text}", *told])


class _Rows:
    def __init__(self, text: str, vocabulary: list[str], ids: list[int], table: Table) -> None:
        self.text, self.vocabulary, self.ids, self.table = text, vocabulary, ids, table
        self.tall = LOW * len(vocabulary)

    def words(self, drawing: Drawing, top: float, step: float) -> None:
        """Draw the tokens and their ids, one below the other, from the origin on."""
        for place, id in enumerate(self.ids):
            y = top + place * step
            drawing.rectangle(0, y, 84, HIGH, PAPER, stroke=INK, radius=6)
            drawing.text(42, y + HIGH / 2, self.vocabulary[id])
            drawing.arrow(87, y + HIGH / 2, 108, y + HIGH / 2, width=1.5)
            drawing.rectangle(112, y, 34, HIGH, PAPER, stroke=INK, radius=15)
            drawing.text(129, y + HIGH / 2, str(id), bold=True)

    def rows(self, drawing: Drawing, cell: float, digits: int) -> None:
        """Draw the whole table; rows that are not used are faint, those that are used have a frame."""
        wide = cell * len(self.table[0])
        for id, token in enumerate(self.vocabulary):
            used = id in self.ids
            drawing.text(-8, (id + 0.5) * LOW, f"{token}  {id}", anchor="end", size=12.5, bold=used)
        draw_matrix(drawing, self.table, cell=(cell, LOW), digits=digits, size=12.5)
        for id in self.ids:
            drawing.rectangle(-1, id * LOW - 1, wide + 2, LOW + 2, "none", stroke=INK, radius=4)

    def wide(self, alt: str) -> Drawing:
        """For a page: words, table, rows from left to right, joined by lines."""
        top, left, cell = 58.0, 330.0, 54.0
        across = cell * len(self.table[0])
        drawing = Drawing(PAGE, top + self.tall + 8, alt)
        first = top + (self.tall - STEP * (len(self.ids) - 1) - HIGH) / 2
        right = PAGE - across - 4
        heads = ((2, "tokens"), (112, "ids"), (left, f"table W, {len(self.table)} rows"), (right, "X, the vectors"))
        for x, words in heads:
            drawing.text(x, top - 18, words, anchor="start", bold=True)
        drawing.text(2, 12, f"text: {self.text}", anchor="start")
        for place, id in enumerate(self.ids):
            middle, row = first + place * STEP + HIGH / 2, top + (id + 0.5) * LOW
            drawing.polyline([(150, middle), (left - 92, row)], GRID)
            drawing.arrow(left + across + 4, row, right - 6, middle, GRID, width=1.8)
            with drawing.at(right, middle - HIGH / 2):
                draw_matrix(drawing, [self.table[id]], cell=(cell, HIGH), digits=1)
        with drawing.at(2, 0):
            self.words(drawing, first, STEP)
        with drawing.at(left, top):
            self.rows(drawing, cell, 1)
        return drawing

    def narrow(self, alt: str) -> Drawing:
        """For a phone: the words with their vectors first, the table below."""
        cell, top = 48.0, 66.0
        second = top + 38 * len(self.ids) + 44
        drawing = Drawing(PHONE, second + self.tall + 8, alt)
        drawing.text(2, 12, f"text: {self.text}", anchor="start")
        for x, words in ((4, "tokens"), (116, "ids"), (190, "X, the vectors")):
            drawing.text(x, top - 18, words, anchor="start", bold=True)
        with drawing.at(4, 0):
            self.words(drawing, top, 38)
        for place, id in enumerate(self.ids):
            y = top + 38 * place
            drawing.arrow(154, y + HIGH / 2, 182, y + HIGH / 2, width=1.5)
            with drawing.at(188, y):
                draw_matrix(drawing, [self.table[id]], cell=(cell, HIGH), digits=1)
        drawing.text(4, second - 16, f"table W, {len(self.table)} rows", anchor="start", bold=True)
        with drawing.at(188, second):
            self.rows(drawing, cell, 1)
        return drawing
