"""Numbers with their words beside them, as plain text: what a screen reader and a pencil can follow."""

from collections.abc import Sequence


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
    table = [[float(number) for number in row] for row in numbers]
    if len(table) != len(rows) or any(len(row) != len(columns) for row in table):
        raise ValueError(f"numbers: expected {len(rows)} x {len(columns)} numbers for these words, got {table}")
    heads = [*columns, "sum"] if sums else list(columns)
    texts = [[f"{number:.{digits}f}" for number in ([*row, sum(row)] if sums else row)] for row in table]
    first = max(len(word) for word in rows)
    widths = [max(len(head), *(len(row[column]) for row in texts)) for column, head in enumerate(heads)]
    lines = [(" " * first, heads), *zip((word.ljust(first) for word in rows), texts, strict=True)]
    return "\n".join(
        "  ".join([word, *(text.rjust(width) for text, width in zip(row, widths, strict=True))]) for word, row in lines
    )
