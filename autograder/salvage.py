"""The cells of a handed-in file, whatever became of the file: nothing here raises, and nothing but the text of its
cells and the names they bear is taken from it."""

import codecs
import json
import re
from dataclasses import dataclass
from typing import Any

MAX_BYTES = 32 * 1024 * 1024  # of a larger file both ends are read; only printed output makes a notebook so large
WORK = 200_000_000  # characters that may be read again in search of whole cells in a broken file
DECODER = json.JSONDecoder(parse_int=float, strict=False)  # float: an int of 5,000 digits would raise

_OBJECT = re.compile(r'\{\s*"[a-z_]+"\s*:')  # inside a JSON string the quotes would be escaped
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_BEYOND_ASCII = re.compile("[^\x00-\x7f\ufffd]")
_LOOKS = (
    (b"PK", "it is a zip archive"),
    (b"%PDF", "it is a PDF"),
    (b"<", "it is a web page (HTML), which shows a notebook but is none"),
    (b"{", "no cells are in it"),
)


@dataclass(frozen=True)
class Piece:
    """A cell as it was handed in: its text, its kind ("code", "markdown" or "raw"), the names it bears ("" if none)."""

    source: str
    kind: str
    grade_id: str = ""
    id: str = ""


def read(data: bytes) -> tuple[list[Piece], list[str]]:
    """The cells in their order, and what was wrong with the file, in words for its author."""
    reasons = []
    if len(data) > MAX_BYTES:
        data = data[: MAX_BYTES // 2] + b"\n" + data[-MAX_BYTES // 2 :]
        reasons.append(f"The file is larger than {MAX_BYTES >> 20} MB. Its middle was not read.")
    text, is_utf8 = _decoded(data)
    cells = _listed(_document(text))
    if cells is None:
        cells = _whole_cells(text)
        if cells:
            reasons.append(f"The file is broken. {len(cells)} cells of it could be read, and they were graded.")
    if not cells:
        return [], [*reasons, f"The file could not be read as a notebook: {_look(data)}. Please hand it in again."]
    if not is_utf8:
        reasons.append("The file was not saved as UTF-8. Letters with accents may have been read wrongly.")
    return [_piece(cell) for cell in cells if isinstance(cell, dict)], reasons


def _decoded(data: bytes) -> tuple[str, bool]:
    """The text, and whether it was UTF-8."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return data.decode("utf-16", "replace"), False
    try:
        return data.decode("utf-8-sig"), True
    except UnicodeDecodeError:
        text = data.decode("utf-8", "replace")
    # A file cut in the middle of a letter is UTF-8 all the same; one in which no letter is right is something else.
    return (text, True) if _BEYOND_ASCII.search(text) else (data.decode("cp1252", "replace"), False)


def _document(text: str) -> Any:
    try:
        return DECODER.raw_decode(text, len(text) - len(text.lstrip()))[0]
    except (ValueError, RecursionError):
        return None


def _listed(document: Any) -> list | None:
    """The cells of a whole notebook; those of nbformat 3 stand in worksheets."""
    if not isinstance(document, dict):
        return None
    if isinstance(document.get("cells"), list):
        return document["cells"]
    sheets = document.get("worksheets")
    if not isinstance(sheets, list):
        return None
    cells = [sheet.get("cells") for sheet in sheets if isinstance(sheet, dict)]
    return [cell for each in cells if isinstance(each, list) for cell in each]


def _whole_cells(text: str) -> list[dict]:
    """The cells that are whole in a file that is not: cut off, merged with conflicts, damaged in one place."""
    cells, place, attempts = [], 0, max(2, WORK // (len(text) + 1))
    while attempts and (found := _OBJECT.search(text, place)):
        try:
            value, place = DECODER.raw_decode(text, found.start())
        except (ValueError, RecursionError):
            attempts, place = attempts - 1, found.start() + 1
        else:
            if isinstance(value, dict) and "cell_type" in value:
                cells.append(value)
    return cells


def _piece(cell: dict) -> Piece:
    kind = {"code": "code", "markdown": "markdown", "heading": "markdown"}.get(_text(cell.get("cell_type")), "raw")
    metadata = cell.get("metadata")
    graded = metadata.get("nbgrader") if isinstance(metadata, dict) else None
    grade_id = _text(graded.get("grade_id")) if isinstance(graded, dict) else ""
    source = cell.get("source", cell.get("input", ""))  # nbformat 3 calls a code cell's text "input"
    return Piece(_clean(source), kind, grade_id, _text(cell.get("id")))


def _clean(source: Any) -> str:
    """A cell's text as it can be stored, run and shown."""
    if isinstance(source, list):
        source = "".join(line for line in source if isinstance(line, str))
    text = _text(source).replace("\r\n", "\n").replace("\r", "\n")
    return _SURROGATE.sub("\ufffd", _CONTROL.sub("", text))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _look(data: bytes) -> str:
    if not data.strip():
        return "it is empty"
    return next((what for start, what in _LOOKS if data.lstrip().startswith(start)), "it is something else")
