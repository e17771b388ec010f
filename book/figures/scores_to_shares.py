"""A row of scores on its way to probabilities, and how a temperature changes them."""

from collections.abc import Mapping, Sequence

from book.figures.matrix import draw_matrix, share
from transformer_ref.visualization.drawing import Drawing
from transformer_ref.visualization.hero import PAGE, PHONE, Hero
from transformer_ref.visualization.palette import GRID, WEIGHT
from transformer_ref.visualization.tables import text_table

HIGH, CELL, NAMES = 34.0, 62.0, 66.0
BAR = 86.0  # pixels of a share of 1


def scores_to_shares_hero(
    words: Sequence[str],
    scores: Sequence[float],
    powers: Sequence[float],
    shares: Sequence[float],
    temperatures: Mapping[str, Sequence[float]],
) -> Hero:
    """Return the figure of one softmax in three columns, and of its result at several temperatures.

    powers: the exponential of each score. temperatures: the probabilities by name. Raises ValueError unless each of
    them has a number for each word.
    """
    for name, numbers in {"scores": scores, "powers": powers, "shares": shares, **temperatures}.items():
        if len(numbers) != len(words):
            raise ValueError(f"{name}: expected {len(words)} numbers for these words, got {len(numbers)}")
    columns = [list(map(float, numbers)) for numbers in (scores, powers, shares)]
    figure = _Softmax(list(words), columns, {name: list(map(float, row)) for name, row in temperatures.items()})
    told = ", ".join(f"{word} {number:.3f}" for word, number in zip(words, columns[2], strict=True))
    alt = (
        f"The exponential of each score, divided by their sum {sum(columns[1]):.3f}, is a probability: {told}. "
        f"Next to them the probabilities as bars: {', '.join(temperatures)}."
    )
    return Hero(figure.wide(alt), figure.narrow(alt), figure.as_text())


class _Softmax:
    def __init__(self, words: list[str], columns: list[list[float]], temperatures: dict[str, list[float]]) -> None:
        self.words, self.columns, self.temperatures = words, columns, temperatures
        self.tall = HIGH * len(words)

    def table(self, drawing: Drawing, gap: float) -> None:
        """Draw score, exponential and probability of each word, with the sums below."""
        heads = ("score x", "exp(x)", "÷ the sum")
        for place, (head, numbers) in enumerate(zip(heads, self.columns, strict=True)):
            x = place * (CELL + gap)
            drawing.text(x + CELL / 2, -14, head, bold=True, size=13)
            with drawing.at(x, 0):
                rows = self.words if place == 0 else ()
                paint = {"paint": share} if place == 2 else {}
                draw_matrix(drawing, [[number] for number in numbers], cell=(CELL, HIGH), rows=rows, size=13, **paint)
            if place:
                drawing.arrow(x - gap + 3, self.tall / 2, x - 3, self.tall / 2, width=1.5)
                drawing.line(x + 6, self.tall + 4, x + CELL - 6, self.tall + 4, GRID)
                drawing.text(x + CELL / 2, self.tall + 18, f"{sum(numbers):.3f}", size=13)
        drawing.text(-8, self.tall + 18, "sum", anchor="end", size=13)

    def bars(self, drawing: Drawing, name: str, shares: list[float], full: float, high: float) -> None:
        """Draw the probabilities at one temperature, from the origin on."""
        drawing.text(0, -14, name, anchor="start", bold=True, size=13)
        for row, number in enumerate(shares):
            y = (row + 0.5) * high
            drawing.rectangle(0, y - 9, full, 18, "none", stroke=GRID, radius=2)
            drawing.rectangle(0, y - 9, full * number, 18, WEIGHT, radius=2)
            drawing.text(full + 5, y, f"{number:.3f}", anchor="start", size=12.5)

    def wide(self, alt: str) -> Drawing:
        """For a page: the table, then the temperatures in the same rows."""
        drawing = Drawing(PAGE, 34 + self.tall + 32, alt)
        with drawing.at(NAMES, 34):
            self.table(drawing, 20)
        start = NAMES + 3 * CELL + 2 * 20 + 34
        step = (PAGE - start) / len(self.temperatures)
        for place, (name, shares) in enumerate(self.temperatures.items()):
            with drawing.at(start + place * step, 34):
                self.bars(drawing, name, shares, step - 54, HIGH)
        return drawing

    def narrow(self, alt: str) -> Drawing:
        """For a phone: the table, then one block of bars for each temperature."""
        low = 26.0
        block = low * len(self.words) + 44
        first = 34 + self.tall + 66
        drawing = Drawing(PHONE, first + block * len(self.temperatures) - 30, alt)
        with drawing.at(NAMES, 34):
            self.table(drawing, 26)
        for place, (name, shares) in enumerate(self.temperatures.items()):
            with drawing.at(NAMES, first + block * place):
                self.bars(drawing, name, shares, 200, low)
                for row, word in enumerate(self.words):
                    drawing.text(-8, (row + 0.5) * low, word, anchor="end", size=12.5)
        return drawing

    def as_text(self) -> list[str]:
        steps = list(zip(*self.columns, strict=True))
        hot = list(zip(*self.temperatures.values(), strict=True))
        return [
            text_table(steps, self.words, ["score", "exp(x)", "probability"]),
            f"sums: {sum(self.columns[1]):.3f} and {sum(self.columns[2]):.3f}\n",
            text_table(hot, self.words, list(self.temperatures)),
        ]
