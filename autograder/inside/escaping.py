"""Makes text from a stranger safe to show: control characters and marks of direction become visible escapes.

A terminal obeys escape sequences, and a mark of direction makes a text read differently from what it is.
"""

KEPT = "\n\t"  # they only lay a text out


def escaped(text: str) -> str:
    """The text with every character that is not printable written as an escape, such as \\x1b; other spaces than " "
    become " "."""
    return text if text.isprintable() else "".join(map(_shown, text))


def _shown(character: str) -> str:
    if character.isprintable() or character in KEPT:
        return character
    return " " if character.isspace() and ord(character) > 0x7F else ascii(character)[1:-1]
