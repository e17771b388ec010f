"""Numbers with their words next to them: a table on a page, and the same table as text where there is no page."""

import math
from collections.abc import Collection, Sequence
from html import escape

from transformer_ref.visualization.palette import INK, KEY, NEGATIVE, PAPER, POSITIVE, QUERY, WEIGHT

WHITE_INK_FROM = 0.935  # of a share: below it black is read at 4.5 to 1 or better, from here on white is
STRONGEST = 75  # percent of a signed hue in the largest number's cell: ink is read on both hues, light and dark

# Travels with each table, since JupyterLab, Colab and an exported page have no style sheet of ours. Colors of the
# page come first, then JupyterLab's, then black on white.
_EDGE = "var(--edge, var(--jp-border-color2, #d5dae1))"
_SHADED_INK = "var(--on-weight, var(--jp-content-font-color0, #000))"
_STYLE = f"""
.numbers {{ overflow-x: auto; margin: 0.6rem 0; }}
.numbers table.of-numbers.of-numbers {{ border-collapse: separate; border-spacing: 2px; width: auto; margin: 0;
  border: 0; font-size: 0.9em; line-height: 1.3; font-variant-numeric: tabular-nums; color: {INK}; }}
.of-numbers.of-numbers caption {{ caption-side: top; text-align: left; padding: 0 0 0.3em 2px; color: {INK};
  font-weight: 600; font-style: normal; }}
.of-numbers.of-numbers tr {{ background: none; border: 0; }}
.of-numbers.of-numbers :is(th, td) {{ border: 0; padding: 0.32em 0.6em; text-align: right; font-weight: 400;
  background: none; color: inherit; max-width: none; }}
.of-numbers.of-numbers th {{ font-weight: 600; }}
.of-numbers.of-numbers thead th {{ text-align: center; vertical-align: bottom; }}
.of-numbers.of-numbers tbody th {{ text-align: left; white-space: nowrap; }}
.of-numbers.of-numbers td {{ border-radius: 3px; text-align: center; min-width: 3.4em; white-space: nowrap; }}
.of-numbers.of-numbers td.words {{ white-space: normal; }}
.of-numbers.of-numbers td.share {{ color: {_SHADED_INK};
  background: color-mix(in srgb, {WEIGHT} calc(var(--of) * 1%), {PAPER}); }}
.of-numbers.of-numbers td.full {{ color: #fff; }}
.of-numbers.of-numbers td.above {{ color: {_SHADED_INK};
  background: color-mix(in srgb, {POSITIVE} calc(var(--of) * 1%), {PAPER}); }}
.of-numbers.of-numbers td.below {{ color: {_SHADED_INK};
  background: color-mix(in srgb, {NEGATIVE} calc(var(--of) * 1%), {PAPER}); }}
.of-numbers.of-numbers td.masked {{ background: repeating-linear-gradient(45deg, {_EDGE} 0 3px, {PAPER} 3px 7px); }}
.of-numbers.of-numbers .sum {{ border-left: 1.5px solid {_EDGE}; border-radius: 0; }}
.of-numbers.asking tbody th {{ border-right: 4px solid {QUERY} !important; text-align: right !important; }}
.of-numbers.asking thead th {{ border-bottom: 4px solid {KEY} !important; }}
.of-numbers.asking thead .sum {{ border-bottom-color: transparent !important; }}
.numbers p {{ margin: 0.3em 0 0 2px; font-size: 0.9em; color: {INK}; }}
@media (max-width: 480px) {{
  .numbers table.of-numbers.of-numbers {{ font-size: 0.8em; border-spacing: 1px; }}
  .of-numbers.of-numbers :is(th, td) {{ padding: 0.3em 0.28em; }}
  .of-numbers.of-numbers td {{ min-width: 2.6em; }}
  .of-numbers.of-numbers tbody th {{ white-space: normal; }}
  .numbers table.many.of-numbers.of-numbers {{ font-size: 0.68em; }}
  .many.of-numbers.of-numbers :is(th, td) {{ padding: 0.3em 0.1em; min-width: 0; }}
}}
"""
STYLE = "<style>" + " ".join(_STYLE.split()) + "</style>"
MANY = 6  # columns, from which on a phone sets a table smaller


def text_table(
    numbers: Sequence[Sequence[float]],
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    digits: int = 3,
    sums: bool = False,
) -> str:
    """Return an aligned table with a word before each row and above each column.

    sums: append each row's total, which is 1 for attention weights.
    Raises ValueError when the words do not fit the numbers.
    """
    return _text(_fitting(numbers, rows, columns), list(rows), list(columns), digits, sums)


class Table:
    """A table of numbers under a title: shaded cells on a page, aligned text in a terminal.

    numbers: anything that gives rows of numbers (a list, an array, a tensor).
        A cell may be a text instead, which is shown without shading.
    rows, columns: the word before each row and above each column.
    title: describes the numbers; a screen reader says it first.
    digits: after the point, for all numbers or for each column.
    shares: every row is a distribution, such as attention weights: cells are shaded on the scale from 0
        to 1 that all figures use, and a last column holds the row's sum.
    shaded: True, or the words of the rows or columns whose numbers are probabilities from 0 to 1.
    signed: cells are shaded in two hues that meet at 0, purple below and green above, the largest number deepest.
    asking: rows are queries and columns are keys, marked blue and orange as in every heat map.
    masked: True where a mask hides the cell, which is then hatched.
    note: a sentence below the numbers.
    Raises ValueError when the words do not fit the numbers, and for a share outside 0 to 1.
    """

    def __init__(
        self,
        numbers: Sequence[Sequence[float | str]],
        rows: Sequence[str],
        columns: Sequence[str],
        title: str,
        *,
        digits: int | Sequence[int] = 3,
        shares: bool = False,
        shaded: bool | Collection[str] = False,
        signed: bool = False,
        asking: bool = False,
        masked: Sequence[Sequence[bool]] | None = None,
        note: str = "",
    ):
        if not title.strip():
            raise ValueError(f"title: expected words that say what the numbers are, got {title!r}")
        self.numbers = _fitting(numbers, rows, columns)
        self.rows, self.columns, self.title, self.note = list(rows), list(columns), title, note
        self.digits = _of_columns(digits, len(self.columns))
        self.sums, self.signed, self.asking = shares, signed, asking
        self.masked = [[bool(hides) for hides in row] for row in masked] if masked is not None else None
        named = set() if isinstance(shaded, bool) else set(shaded)
        if named - {*self.rows, *self.columns}:
            raise ValueError(f"shaded: expected words of the rows or columns, got {sorted(named)}")
        self._shaded = [
            [shares or shaded is True or row in named or column in named for column in self.columns]
            for row in self.rows
        ]
        for shades, values in zip(self._shaded, self.numbers, strict=True):
            outside = [each for shade, each in zip(shades, values, strict=True) if shade and not _is_share(each)]
            if outside:
                raise ValueError(f"numbers: expected shares from 0 to 1 in {title!r}, got {outside[0]}")

    def __repr__(self) -> str:
        table = _text(self.numbers, self.rows, self.columns, self.digits, self.sums)
        return "\n".join([self.title, table, *([self.note] if self.note else [])])

    def _repr_html_(self) -> str:
        kind = "of-numbers" + " asking" * self.asking + " many" * (len(self.columns) + self.sums >= MANY)
        heads = " ".join(f'<th scope="col">{escape(word)}</th>' for word in self.columns)
        total = ' <th scope="col" class="sum">sum</th>' if self.sums else ""
        body = "\n".join(self._row(place) for place in range(len(self.rows)))
        note = f"\n<p>{escape(self.note)}</p>" if self.note else ""
        return (
            f'{STYLE}<div class="numbers"><table class="{kind}">\n<caption>{escape(self.title)}</caption>\n'
            f"<thead><tr><td></td> {heads}{total}</tr></thead>\n<tbody>\n{body}\n</tbody></table>{note}</div>"
        )

    def _row(self, place: int) -> str:
        """Return one row of the table on the page."""
        numbers = self.numbers[place]
        shown = [_shown(value, digits) for value, digits in zip(numbers, self.digits, strict=True)]
        cells = [f"<td{self._look(place, column)}>{escape(text)}</td>" for column, text in enumerate(shown)]
        if self.sums:
            cells.append(f'<td class="sum">{_shown(_total(numbers), self.digits[0])}</td>')
        return f'<tr><th scope="row">{escape(self.rows[place])}</th> {" ".join(cells)}</tr>'

    def _look(self, row: int, column: int) -> str:
        """Return the attributes that shade one cell."""
        if self.masked is not None and self.masked[row][column]:
            return ' class="masked"'
        value = self.numbers[row][column]
        if isinstance(value, str):
            return ' class="words"'
        if self._shaded[row][column]:
            full = " full" if value >= WHITE_INK_FROM else ""
            return f' class="share{full}" style="--of:{100 * min(max(value, 0.0), 1.0):.1f}"'
        if self.signed and math.isfinite(value):
            numbers = [number for row in self.numbers for number in row if not isinstance(number, str)]
            largest = max((abs(number) for number in numbers if math.isfinite(number)), default=0)
            side = "above" if value >= 0 else "below"
            return f' class="{side}" style="--of:{STRONGEST * abs(value) / (largest or 1):.1f}"'
        return ""


def weight_table(
    weights: Sequence[Sequence[float]],
    words: Sequence[str],
    title: str = "weights",
    *,
    keys: Sequence[str] | None = None,
    digits: int = 3,
    masked: Sequence[Sequence[bool]] | None = None,
    note: str = "",
) -> Table:
    """Return the table of attention weights, with each row's sum; queries are `words`, keys `keys` or the same."""
    columns = words if keys is None else keys
    return Table(weights, words, columns, title, digits=digits, shares=True, asking=True, masked=masked, note=note)


def score_table(
    scores: Sequence[Sequence[float]],
    words: Sequence[str],
    title: str = "scores",
    *,
    keys: Sequence[str] | None = None,
    digits: int = 3,
    note: str = "",
) -> Table:
    """Return the table of attention scores, any real numbers; queries are `words`, keys `keys` or the same."""
    columns = words if keys is None else keys
    return Table(scores, words, columns, title, digits=digits, signed=True, asking=True, note=note)


def _is_share(value: float | str) -> bool:
    """Return whether a number is from 0 to 1; text and NaN are accepted, since they are not shaded."""
    return isinstance(value, str) or math.isnan(value) or -1e-6 <= value <= 1 + 1e-6


def _fitting(
    numbers: Sequence[Sequence[float | str]], rows: Sequence[str], columns: Sequence[str]
) -> list[list[float | str]]:
    """Return the cells as lists; raise ValueError unless there is one for each pair of words."""
    table = [[cell if isinstance(cell, str) else float(cell) for cell in row] for row in numbers]
    if len(table) != len(rows) or any(len(row) != len(columns) for row in table):
        raise ValueError(f"numbers: expected {len(rows)} x {len(columns)} numbers for these words, got {table}")
    return table


def _of_columns(digits: int | Sequence[int], columns: int) -> list[int]:
    """Return the number of digits of each column; raise ValueError unless there is one for each."""
    each = [digits] * columns if isinstance(digits, int) else list(digits)
    if len(each) != columns:
        raise ValueError(f"digits: expected one number, or {columns}, got {each}")
    return each


def _total(row: Sequence[float | str]) -> float:
    return sum(cell for cell in row if not isinstance(cell, str))


def _shown(cell: float | str, digits: int) -> str:
    """Return a cell as a page shows it, a number with a minus sign, which a screen reader reads."""
    return cell if isinstance(cell, str) else f"{cell:,.{digits}f}".replace("inf", "∞").replace("-", "−")


def _text(
    table: list[list[float | str]], rows: list[str], columns: list[str], digits: int | Sequence[int], sums: bool
) -> str:
    heads = [*columns, "sum"] if sums else columns
    each = [*_of_columns(digits, len(columns)), 0]
    each[-1] = each[0]  # of the sum
    full = [[*row, _total(row)] if sums else row for row in table]
    texts = [
        [cell if isinstance(cell, str) else f"{cell:,.{digits}f}" for cell, digits in zip(row, each, strict=False)]
        for row in full
    ]
    first = max(len(word) for word in rows)
    widths = [max(len(head), *(len(row[column]) for row in texts)) for column, head in enumerate(heads)]
    lines = [(" " * first, heads), *zip((word.ljust(first) for word in rows), texts, strict=True)]
    return "\n".join(
        "  ".join([word, *(text.rjust(width) for text, width in zip(row, widths, strict=True))]) for word, row in lines
    )
