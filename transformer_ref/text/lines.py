"""What counts as a line of text, and as a list of them."""

import unicodedata
from collections.abc import Iterable

INVISIBLE_KINDS = frozenset(("Cc", "Cf", "Zs", "Zl", "Zp"))  # Unicode's controls, format characters and separators
INVISIBLE = frozenset(  # of other kinds, and never drawn: joiners, fillers, variation selectors, the empty braille cell
    "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0"
    + "".join(map(chr, range(0xFE00, 0xFE10)))
)


def list_of_lines(name: str, lines: Iterable[str]) -> list[str]:
    """Return the lines of a list or another iterable. name: of the argument, for the errors. Raises TypeError for one
    string and for a line that is not a string, ValueError for a line that is not text, see `expect_text`.
    """
    if isinstance(lines, (str, bytes)) or not isinstance(lines, Iterable):
        raise TypeError(f"{name}: expected a list of lines, got the {type(lines).__name__} {str(lines)[:40]!r}")
    lines = list(lines)
    for place, line in enumerate(lines):
        if not isinstance(line, str):
            raise TypeError(f"{name}: expected strings, got {line!r} in place {place}")
        expect_text(name, line)
    return lines


def expect_text(name: str, text: str) -> None:
    """Check that UTF-8 can encode a text.

    Raises ValueError for a lone surrogate, which Python makes of bytes that are not UTF-8.
    """
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(
            f"{name}: expected text that UTF-8 can hold, got {text[error.start : error.end]!r} in {text[:40]!r}"
        ) from error


def single_spaced(text: str) -> str:
    """Return the text with each run of white space replaced by one space, and none at its ends."""
    return " ".join(text.split())


def is_blank(text: str) -> bool:
    """Return whether a text is invisible: white space, control characters, zero-width characters, byte order marks."""
    return all(letter in INVISIBLE or unicodedata.category(letter) in INVISIBLE_KINDS for letter in text)


def one_line(text: str) -> str:
    """Return the text with every character that can end a line replaced by a space."""
    return " ".join(text.splitlines())


def composed(text: str) -> str:
    """Return the text in Unicode's form NFC, in which a letter and its accent are one character if possible."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)
