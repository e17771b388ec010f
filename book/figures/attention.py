"""All of attention in one picture: Q meets K in the scores, the scores become weights, the weights mix V into Z."""

from collections.abc import Sequence

from book.figures.matrix import Table, draw_matrix, outline_row, plain, share, tint
from transformer_ref.visualization.drawing import Drawing
from transformer_ref.visualization.hero import PAGE, PHONE, Hero
from transformer_ref.visualization.palette import KEY, QUERY, VALUE
from transformer_ref.visualization.tables import text_table

HIGH, LOW = 36.0, 26.0  # a row of what is computed; a row of the matrix on top
STEPS = ("a score", "its weights", "its mixture")  # of the last only the first number
GAP = 18.0  # from a matrix to its result
ROLES = {
    "query": (QUERY, "what a word looks for"),
    "key": (KEY, "what it is found by"),
    "value": (VALUE, "what it gives"),
}


def attention_hero(words: Sequence[str], *, divisor: str, followed: int, met: int, **tables: Table) -> Hero:
    """Return the figure of one attention, laid out so that a row on the left meets a column above.

    words: one for each row. Q, K: (word, d_k); V: (word, d_v); S, A: (word, word); Z: (word, d_v), rows of numbers.
    divisor: the divisor of the products, as text. followed: the row that is outlined in all tables. met: the key for
    which its score is computed step by step. Raises ValueError when a table lacks a word.
    """
    if sorted(tables) != sorted("QKVSAZ"):
        raise ValueError(f"tables: expected Q, K, V, S, A, Z, got {', '.join(sorted(tables))}")
    for name, table in tables.items():
        if len(table) != len(words):
            raise ValueError(f"{name}: expected a row for each of {len(words)} words, got {len(table)}")
    figure = _Attention(list(words), {n: [[float(x) for x in r] for r in t] for n, t in tables.items()}, divisor)
    lines = figure.worked(followed, met)
    alt = (
        f"Attention for the words {' '.join(words)}. Queries are on the left, keys above, their products divided by "
        f"{divisor} are the scores; softmax makes weights of each row; the weights mix the values above them. "
        f"The outlined row: {'; '.join(lines)}."
    )
    return Hero(figure.in_one_line(followed, lines, alt), figure.stacked(followed, lines, alt), figure.as_text())


class _Attention:
    def __init__(self, words: list[str], tables: dict[str, list[list[float]]], divisor: str) -> None:
        self.words, self.tables, self.divisor = words, tables, divisor
        self.turned = [list(column) for column in zip(*tables["K"], strict=True)]  # (d_k, word)
        self.top = max(len(self.turned), len(words)) * LOW + 66  # where the rows begin, below the matrix on top

    def worked(self, followed: int, met: int) -> list[str]:
        """Return the arithmetic of one row in three lines: a score, the weights, the output."""
        query, key, word = self.tables["Q"][followed], self.tables["K"][met], self.words[followed]
        product = sum(a * b for a, b in zip(query, key, strict=True))
        terms = " + ".join(f"{a:g}·{b:g}" for a, b in zip(query, key, strict=True))
        score, shares = self.tables["S"][followed][met], self.tables["A"][followed]
        mixed = " + ".join(f"{s:.3f}·{v[0]:g}" for s, v in zip(shares, self.tables["V"], strict=True))
        return [
            f"{word} · {self.words[met]}: {terms} = {product:g}, ÷ {self.divisor} = {score:.3f}",
            " + ".join(f"{s:.3f}" for s in shares) + " = 1",
            f"{mixed} = {self.tables['Z'][followed][0]:.3f}",
        ]

    def scores(self, drawing: Drawing, narrow: float, cell: float, followed: int) -> float:
        """Draw Q on the left, the keys above as columns, the scores where they meet; return the width."""
        wide, gap = len(self.turned) * narrow, GAP
        with drawing.at(0, self.top):
            draw_matrix(drawing, self.tables["Q"], cell=(narrow, HIGH), paint=tint(QUERY), digits=0, rows=self.words)
            drawing.text(wide / 2, -13, "Q", bold=True)
            outline_row(drawing, followed, wide, HIGH)
        with drawing.at(wide + gap, self.top - len(self.turned) * LOW - 42):
            draw_matrix(drawing, self.turned, cell=(cell, LOW), paint=tint(KEY), digits=0, columns=self.words, size=12)
            drawing.text(-12, len(self.turned) * LOW / 2, "Kᵀ", bold=True)
        with drawing.at(wide + gap, self.top):
            drawing.text(0, -15, f"S = Q·Kᵀ ÷ {self.divisor}", anchor="start", bold=True)
            draw_matrix(drawing, self.tables["S"], cell=(cell, HIGH), paint=plain, size=13)
            outline_row(drawing, followed, len(self.words) * cell, HIGH)
        return wide + gap + len(self.words) * cell

    def mixture(self, drawing: Drawing, cell: float, followed: int) -> float:
        """Draw the weights, the values above, the outputs where they meet; return the width."""
        count, gap = len(self.words), GAP
        with drawing.at(0, self.top):
            drawing.text(0, -40, "A = softmax(S)", anchor="start", bold=True)
            draw_matrix(drawing, self.tables["A"], cell=(cell, HIGH), paint=share, columns=self.words, size=12.5)
            outline_row(drawing, followed, count * cell, HIGH)
        with drawing.at(count * cell + gap, self.top - count * LOW - 34):
            draw_matrix(drawing, self.tables["V"], cell=(cell, LOW), paint=tint(VALUE), digits=0, rows=self.words)
            drawing.text(len(self.tables["V"][0]) * cell / 2, -12, "V", bold=True)
        with drawing.at(count * cell + gap, self.top):
            drawing.text(0, -15, "Z = A·V", anchor="start", bold=True)
            draw_matrix(drawing, self.tables["Z"], cell=(cell, HIGH), paint=tint(VALUE), size=13)
            outline_row(drawing, followed, len(self.tables["Z"][0]) * cell, HIGH)
        return count * cell + gap + len(self.tables["Z"][0]) * cell

    def in_one_line(self, followed: int, lines: list[str], alt: str) -> Drawing:
        """For a page: one line from the queries to the outputs."""
        bottom = self.top + len(self.words) * HIGH
        drawing = Drawing(PAGE, bottom + 84, alt)
        for row, (role, (color, meaning)) in enumerate(ROLES.items()):
            y = 12 + 21 * row  # above the words of Kᵀ
            drawing.rectangle(8, y - 8, 16, 16, color, opacity=0.25, stroke=color, radius=3)
            drawing.text(32, y, role, anchor="start", bold=True)
            drawing.text(82, y, meaning, anchor="start", size=13)
        with drawing.at(68, 0):
            right = 68 + self.scores(drawing, 38, 47, followed)
        middle = self.top + (followed + 0.5) * HIGH
        drawing.arrow(right + 8, middle, right + 56, middle)
        drawing.text(right + 31, middle - 16, "softmax", size=13)
        with drawing.at(right + 64, 0):
            self.mixture(drawing, 47, followed)
        for row, (step, line) in enumerate(zip(STEPS, lines, strict=True)):
            drawing.text(80, bottom + 26 + 22 * row, step, anchor="end", size=13)
            drawing.text(92, bottom + 26 + 22 * row, line, anchor="start", size=13.5)
        return drawing

    def stacked(self, followed: int, lines: list[str], alt: str) -> Drawing:
        """For a phone: scores first, the mixture below them."""
        half = self.top + len(self.words) * HIGH
        drawing = Drawing(PHONE, 2 * half + 66, alt)
        with drawing.at(71, -40):
            self.scores(drawing, 34, 47, followed)
        drawing.text(2, half - 18, lines[0], anchor="start", size=12.5)
        with drawing.at(4, half - 4):
            self.mixture(drawing, 48, followed)
        y = 2 * half + 14
        for line in (lines[1], *_halves(lines[2])):
            drawing.text(2, y, line, anchor="start", size=12.5)
            y += 21
        return drawing

    def as_text(self) -> list[str]:
        features = [str(number + 1) for number in range(len(self.turned))]
        mixed = [str(number + 1) for number in range(len(self.tables["V"][0]))]
        return [
            *(f"{n}\n{text_table(self.tables[n], self.words, features, digits=0)}\n" for n in "QK"),
            f"V\n{text_table(self.tables['V'], self.words, mixed, digits=0)}\n",
            f"S = Q·Kᵀ ÷ {self.divisor}\n{text_table(self.tables['S'], self.words, self.words)}\n",
            f"A = softmax(S)\n{text_table(self.tables['A'], self.words, self.words, sums=True)}\n",
            f"Z = A·V\n{text_table(self.tables['Z'], self.words, mixed)}",
        ]


def _halves(line: str) -> tuple[str, str]:
    """Break a sum into two lines, before a plus near its middle."""
    terms = line.split(" + ")
    middle = len(terms) // 2
    return " + ".join(terms[:middle]), "+ " + " + ".join(terms[middle:])
