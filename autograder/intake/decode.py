"""Decodes bytes to text, whatever encoding they were saved in."""

import codecs
import re

_MARKS = (  # those of UTF-32 first: one of them begins with that of UTF-16
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_BY_ZEROS = {  # which bytes of four are zero in the letters of English
    (0, 1, 1, 1): "utf-32-le",
    (1, 1, 1, 0): "utf-32-be",
    (0, 1, 0, 1): "utf-16-le",
    (1, 0, 1, 0): "utf-16-be",
}
LOOKED_AT = 4_000  # bytes, in search of zeros
MOSTLY = 0.8

_BEYOND_ASCII = re.compile("[^\x00-\x7f\ufffd]")
_CONTROL_BYTES = bytes({*range(32), 127} - {*b"\t\n\r"})
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufeff]+")


def text_of(data: bytes) -> tuple[str, bool]:
    """The text without control characters and byte order marks, and whether its encoding is certain."""
    text, is_certain = _decoded(data)
    if len(data.translate(None, _CONTROL_BYTES)) == len(data) and "\ufeff" not in text:
        return text, is_certain  # nearly always, and the bytes tell it ten times as fast
    return _CONTROL.sub("", text), is_certain


def _decoded(data: bytes) -> tuple[str, bool]:
    data = data.removeprefix(codecs.BOM_UTF8)  # lstrip would take the first letter too, where it begins with EF
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return data.decode(encoding, "replace"), True
    if b"\x00" in data[:LOOKED_AT] and (encoding := _by_zeros(data[: LOOKED_AT // 4 * 4])):
        return data.decode(encoding, "replace"), True
    try:
        return data.decode("utf-8"), True
    except UnicodeDecodeError:
        text = data.decode("utf-8", "replace")
    # A file cut in the middle of a letter is UTF-8 all the same; one in which no letter is right is something else.
    return (text, True) if _BEYOND_ASCII.search(text) else (data.decode("cp1252", "replace"), False)


def _by_zeros(data: bytes) -> str | None:
    """The encoding UTF-16 or UTF-32 of a text without a byte order mark, recognized by its zero bytes."""
    share = [data[place::4].count(0) / max(1, len(data[place::4])) for place in range(4)]
    return _BY_ZEROS.get(tuple(int(each > MOSTLY) for each in share))
