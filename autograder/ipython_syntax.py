"""What a cell may hold besides Python: magics, shell lines and help, found by IPython's own reader."""

import re
from collections.abc import Iterator

from IPython.core.inputtransformer2 import TransformerManager

CALL = "get_ipython()"
MOST_READ = 300_000  # letters that are read for one cell
# The time of some regular expressions grows with the square of the text that they search: so many letters squared take
# as long as one letter that is read.
_BLANKS, _BLANKS_SQUARED = re.compile(r"[ \t\f]{20,}"), 14  # of the tokenizer, before Python 3.12
_QUOTES, _QUOTES_SQUARED = re.compile(r"\\['\"]"), 150
_WORDS, _WORDS_SQUARED = re.compile(r"[\w*.\[\]-]{50,}"), 100  # of IPython, in search of the name before a "?"


class TooMuchToRead(Exception):
    """IPython would have to read more than the budget allows."""


class Budget:
    """The number of letters that may still be read."""

    def __init__(self, letters: int = MOST_READ) -> None:
        self._left = letters

    def take(self, letters: int) -> None:
        """Subtract these letters; raises TooMuchToRead if fewer are left."""
        self._left -= letters
        if self._left < 0:
            raise TooMuchToRead


class _Counted(TransformerManager):
    """IPython's reader, which reads the whole cell again for each magic that it finds, within a budget."""

    def __init__(self, budget: Budget) -> None:
        super().__init__()
        self._budget = budget

    def do_one_token_transform(self, lines: list[str]) -> tuple[bool, list[str]]:
        self._budget.take(sum(map(_work, lines)))
        return super().do_one_token_transform(lines)


def as_python(cell: str, budget: Budget | None = None) -> str:
    """The cell as IPython runs it: magics, shell lines and help become calls. Empty if IPython cannot parse it.

    Raises TooMuchToRead where this takes more than the budget.
    """
    try:
        return _Counted(budget or Budget()).transform_cell(cell)
    except TooMuchToRead:
        raise
    except Exception:  # whatever IPython raises, such as an IndexError: it would not run the cell either
        return ""


def without_magics(cell: str) -> str:
    """The cell as plain Python that runs anywhere, without magics, shell lines and help.

    All other lines stay unchanged, such as a comment that ends in "?" or a line that begins with the operator %.
    Raises TooMuchToRead for a cell with too many magics.
    """
    if cell.lstrip().startswith("%%"):
        return ""
    read = as_python(cell)
    if CALL not in read:
        return cell
    written = set(cell.splitlines())
    lines = []
    for line in read.splitlines():
        if CALL in line and line not in written:
            begin = line[: len(line) - len(line.lstrip())]
            line = f"{begin}pass" if begin else ""  # as the only line of a block it has to be a statement
        lines.append(line)
    return "\n".join(lines) + "\n"


def _work(line: str) -> int:
    """The letters of a line, and what its long runs cost in addition."""
    return len(line) + sum(_of_runs(line))


def _of_runs(line: str) -> Iterator[int]:
    yield sum(len(run) ** 2 for run in _BLANKS.findall(line)) // _BLANKS_SQUARED
    yield len(_QUOTES.findall(line)) * len(line) // _QUOTES_SQUARED
    yield sum(len(run) ** 2 for run in _WORDS.findall(line)) // _WORDS_SQUARED
