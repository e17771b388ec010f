"""The cells of a handed-in file, whatever became of the file: nothing here raises, and nothing but the text of its
cells and the names they bear is taken from it."""

import ast
import base64
import binascii
import json
import re
import urllib.parse
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from autograder.intake import attachments, conflict, scripts
from autograder.intake.attachments import Attachments
from autograder.intake.decode import text_of
from autograder.intake.untrusted_files import MAX_BYTES

WORK = 200_000_000  # characters that may be read again in search of whole cells in a broken file
DEEPEST = 5  # wrappers in wrappers
MOST_LOOKS = 1_000_000  # values that are looked at in search of cells
MOST_CELLS = 10_000
LITERAL = 1_000_000  # characters that are read as Python's own notation
DECODER = json.JSONDecoder(parse_int=float, strict=False)  # float: an int of 5,000 digits would raise

_OBJECT = re.compile(r'\{\s*"[A-Za-z_]+"\s*:')  # inside a JSON string the quotes would be escaped
_CELL = re.compile(r'"(?:cell_type|cells|worksheets)"')
_CELLISH = re.compile(r"cell_type|cells|worksheets")
_COMMA = re.compile(r",(?=\s*[}\]])|(?<=[}\]])\s*(?=[{\[])")
# A string without an end is one match too, or each quotation mark in it would be tried as a beginning.
_STRING_OR_COMMA = re.compile(rf'("[^"\\]*(?:\\.[^"\\]*)*)("?)|{_COMMA.pattern}', re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "\\": "\\", "/": "/"}
_NOT_BASE64 = re.compile(r"[^A-Za-z0-9+/_\-\s]")
LEAST_BASE64 = 200  # characters, from which on a text may be a file that was encoded
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]+")
_SURROGATE = re.compile("[\ud800-\udfff]")
_ODD = re.compile("[\u00a0\u2007\u202f\u200b\u200c\u200d\u2060\ufeff]")
_PLAIN = str.maketrans({**dict.fromkeys("\u00a0\u2007\u202f", " "), **dict.fromkeys("\u200b\u200c\u200d\u2060\ufeff")})
_TEXTS = ("source", "input", "code", "value", "text")  # nbformat 4, 3 and 2, 1, VS Code, text cells of 1
_OF_CODE = {"outputs", "execution_count", "input", "code"}
_KINDS = {"code": "code", "markdown": "markdown", "heading": "markdown", "text": "markdown", "html": "markdown"}
_LOOKS = (
    (b"PK", "it is a zip archive"),
    (b"\x1f\x8b", "it is an archive"),
    (b"7z\xbc\xaf", "it is a 7z archive"),
    (b"Rar!", "it is a RAR archive"),
    (b"%PDF", "it is a PDF"),
    (b"\x89PNG", "it is a picture"),
    (b"{\\rtf", "it is a document of a word processor"),
    (b"bplist", "it is a page that Safari saved"),
    (b"<", "it is a web page (HTML), which shows a notebook but is none"),
    (b"{", "no cells are in it"),
)

INSIDE = "The file was not a plain notebook. One was found in it, and that was graded."
BROKEN = "The file is broken. What could be read of it was graded: {}."
EXPORT = "The file is not a notebook but an export of one. The code found in it was graded: {}."


@dataclass(frozen=True)
class SubmittedCell:
    """A submitted cell: its text, its type ("code", "markdown" or "raw"), its ids ("" if none),
    and the pictures pasted into it."""

    source: str
    kind: str
    grade_id: str = ""
    id: str = ""
    attachments: Attachments = field(default_factory=dict, compare=False)


@dataclass(frozen=True)
class Salvaged:
    """The cells of a file in order, and sentences for its author about its defects."""

    pieces: tuple[SubmittedCell, ...]
    reasons: tuple[str, ...] = ()


def read(data: bytes) -> list[Salvaged]:
    """The cells of a file; for a merge conflict those of each side, the first side first."""
    reasons = []
    if len(data) > MAX_BYTES:
        data = data[: MAX_BYTES // 2] + b"\n" + data[-MAX_BYTES // 2 :]
        reasons.append(f"The file is larger than {MAX_BYTES >> 20} MB. Its middle was not read.")
    text, is_certain = text_of(data)
    if not is_certain:
        reasons.append("The file was not saved as UTF-8. Letters with accents may have been read wrongly.")
    readings = [_reading(each, reasons, data) for each in conflict.sides(text) or (text,)]
    return [side for reading in readings for side in _sides(reading)]


def _reading(text: str, reasons: list[str], data: bytes) -> Salvaged:
    cells, said = _cells(text)
    if not cells and (cells := scripts.cells(text)):
        said = EXPORT
    if len(cells) > MOST_CELLS:
        reasons = [
            *reasons,
            f"There were {len(cells):,} cells. Of those without a name the first {MOST_CELLS:,} were read.",
        ]
        named = [cell for cell in cells[MOST_CELLS:] if "nbgrader" in str(cell.get("metadata"))[:MOST_CELLS]]
        cells = cells[:MOST_CELLS] + named[:MOST_CELLS]
    pieces = tuple(_piece(cell) for cell in cells)
    if not pieces:
        said = f"The file could not be read as a notebook: {_look(data)}. Please hand it in again."
    cells_read = "1 cell" if len(pieces) == 1 else f"{len(pieces)} cells"
    return Salvaged(pieces, (*reasons, said.format(cells_read)) if said else tuple(reasons))


def _sides(reading: Salvaged) -> list[Salvaged]:
    """The two sides of a conflict that nbdime wrote into the cells; else the reading itself."""
    both = {place: sides for place, piece in enumerate(reading.pieces) if (sides := conflict.sides(piece.source))}
    if not both:
        return [reading]
    return [
        replace(
            reading,
            pieces=tuple(
                replace(piece, source=_clean(both[place][side])) if place in both else piece
                for place, piece in enumerate(reading.pieces)
            ),
        )
        for side in (0, 1)
    ]


class _Room:
    """The budget for searching the texts of a file for complete cells."""

    def __init__(self) -> None:
        self.work = WORK


def _cells(text: str, depth: int = 0, room: _Room | None = None) -> tuple[list[dict], str]:
    """The cells found anywhere in a text, and the remark on how they were found ("" for a notebook).

    room: the budget of the file; None for the file itself.
    """
    room = room or _Room()
    try:
        document, end = DECODER.raw_decode(text, len(text) - len(text.lstrip()))
    except (ValueError, RecursionError):
        document, end = None, 0
    is_all = not _CELL.search(text, end)
    if is_all and (cells := _listed(document)):
        return cells, ""
    if is_all and (cells := _found(document, depth, room)):
        return cells, INSIDE
    cells, failures = _whole_cells(text, depth, room)
    if failures and (more := _whole_cells(_repaired(text), depth, room))[0] and len(more[0]) > len(cells):
        cells, failures = more
    if not cells and depth < DEEPEST:
        cells = next((cells for inner in _unwrapped(text) if (cells := _cells(inner, depth + 1, room)[0])), [])
        failures = 0
    if len(literal := _literal(text, depth, room)) > len(cells):
        return literal, INSIDE
    return cells, BROKEN if failures else INSIDE


def _listed(document: Any) -> list[dict]:
    """The cells of a valid notebook; in nbformat 3 and before they are in worksheets."""
    if not isinstance(document, dict):
        return []
    lists = [document.get("cells")]
    if not isinstance(lists[0], list) and isinstance(document.get("worksheets"), list):
        lists = [sheet.get("cells") for sheet in document["worksheets"] if isinstance(sheet, dict)]
    return [cell for each in lists if isinstance(each, list) for cell in each if isinstance(cell, dict)]


def _found(value: Any, depth: int, room: _Room) -> list[dict]:
    """The cells anywhere in a decoded value, in order: in lists, wrappers, strings of JSON."""
    cells, stack, looks = [], [value], 0
    while stack and looks < MOST_LOOKS:
        value, looks = stack.pop(), looks + 1
        if isinstance(value, dict):
            if _is_cell(value):
                cells.append(value)
            elif listed := _listed(value):
                cells += listed
            elif "output_type" not in value:  # what a cell printed is not part of the notebook
                stack += reversed(value.values())
        elif isinstance(value, list):
            stack += reversed(value)
        elif isinstance(value, str) and depth < DEEPEST and (_CELLISH.search(value) or _is_base64(value)):
            cells += _cells(value, depth + 1, room)[0]
    return cells


def _is_cell(value: dict) -> bool:
    if isinstance(value.get("source"), str | list) and isinstance(value.get("metadata"), dict):
        return True
    return "cell_type" in value or (value.get("kind") in (1, 2) and isinstance(value.get("value"), str))


def _whole_cells(text: str, depth: int, room: _Room) -> tuple[list[dict], int]:
    """The complete cells of a damaged or truncated file, and the number of damaged places."""
    cells, place, failures = [], 0, 0
    own = room if depth else _Room()  # what is in it takes nothing from the file itself
    while (own.work > 0 or failures < 2) and (found := _OBJECT.search(text, place)):
        start = found.start()
        try:
            value, place = DECODER.raw_decode(text, start)
        except json.JSONDecodeError as error:
            read_to = len(text) if error.msg.startswith("Unterminated") else error.pos
            own.work -= read_to - start + error.pos // 8  # the error itself counts lines from the beginning
            failures, place = failures + 1, start + 1
        except (ValueError, RecursionError):
            failures, place, own.work = failures + 1, start + 1, own.work - 1_000_000
        else:
            cells += _found(value, depth, room)
    return cells, failures


def _repaired(text: str) -> str:
    """JSON with missing commas between brackets added, and superfluous ones before a closing bracket removed."""

    def mended(found: re.Match) -> str:
        if found[1] is None:
            return mended_comma(found)
        return found[0] if found[2] else found[0][0] + _COMMA.sub(mended_comma, found[0][1:])

    def mended_comma(found: re.Match) -> str:
        return "" if found[0] == "," else ","

    return _STRING_OR_COMMA.sub(mended, text)


def _is_base64(text: str) -> bool:
    text = text.rstrip().rstrip("=")
    return len(text) >= LEAST_BASE64 and _NOT_BASE64.search(text) is None


def _unwrapped(text: str) -> Iterator[str]:
    """The text without the wrapper of another program."""
    if '\\"cell' in text:
        yield _ESCAPED.sub(lambda found: _ESCAPES.get(found[1], found[0]), text)
    if "&quot;cell" in text or "&#34;cell" in text:
        yield scripts.unescaped(text)
    if "%22cell" in text:
        yield urllib.parse.unquote_plus(text) if "+" in text and "%20" not in text else urllib.parse.unquote(text)
    encoded = text.rpartition("base64,")[2].strip()
    if _is_base64(encoded):
        try:
            yield text_of(base64.b64decode("".join(encoded.split()).translate(str.maketrans("-_", "+/"))))[0]
        except (binascii.Error, ValueError):
            return


def _literal(text: str, depth: int, room: _Room) -> list[dict]:
    """The cells of a notebook that was saved as a Python literal."""
    start, end = text.find("{"), text.rfind("}") + 1
    if "'cell_type'" not in text or start < 0 or end - start > LITERAL:
        return []
    try:
        return _found(ast.literal_eval(text[start:end]), depth, room)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return []


def _piece(cell: dict) -> SubmittedCell:
    kind = _KINDS.get(_text(cell.get("cell_type")).strip().lower(), "raw")
    if "cell_type" not in cell and (cell.get("kind") == 2 or _OF_CODE & set(cell)):
        kind = "code"
    metadata = cell.get("metadata")
    graded = metadata.get("nbgrader") if isinstance(metadata, dict) else None
    grade_id = _text(graded.get("grade_id")) if isinstance(graded, dict) else ""
    source = next((cell[name] for name in _TEXTS if name in cell), "")
    pictures = attachments.kept(cell.get("attachments")) if kind == "markdown" else {}
    return SubmittedCell(_clean(source), kind, grade_id, _text(cell.get("id")), pictures)


def _clean(source: Any) -> str:
    """A cell's text, cleaned so that it can be stored, run and shown."""
    if isinstance(source, list):
        lines = [line for line in source if isinstance(line, str)]
        is_cut = len(lines) > 1 and not any("\n" in line or "\r" in line for line in lines)
        source = ("\n" if is_cut else "").join(lines)  # some programs leave out the line ends
    text = _text(source).replace("\r\n", "\n").replace("\r", "\n")
    text = _SURROGATE.sub("\ufffd", _CONTROL.sub("", text)).lstrip("\ufeff")
    if _ODD.search(text) and not scripts.is_python(text) and scripts.is_python(plain := text.translate(_PLAIN)):
        return plain  # blanks of another kind, which come of copying from a page
    return text


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _look(data: bytes) -> str:
    if not data.strip():
        return "it is empty"
    return next((what for start, what in _LOOKS if data.lstrip().startswith(start)), "it is something else")
