"""The cells of a notebook that was exported: as a script, as Markdown, as a web page."""

import ast
import html
import re
import warnings

MOST = 4_000_000  # characters of a text that is looked at

_PROMPT = re.compile(r"^# (?:In ?\[[ \d*]*\]:|%%|<codecell>|<markdowncell>|COMMAND -{5,})(.*)\n?", re.MULTILINE)
_GRADE_ID = re.compile(r'"?grade_id"?\s*[:=]\s*"([^"\n]+)"')
_FENCE = re.compile(r"(`{3,})[ \t]*(?:python3?|ipython3?|py|\{code-cell\}|\{python[^\n]*\})")  # begins a block of code
_CLOSED = re.compile(r"(`{3,})[ \t]*")
_CODE_IN_PAGE = re.compile(r'<div class="([^"<>]*)">\s*<pre>')
_OF_CODE = re.compile(r"\bhl-i?python3?\b")
_TAG = re.compile(r"<[^<>]*>")
_LONG_NUMBER = re.compile(r"&#(?=[0-9]{4000})")  # Python refuses to read it
_DEFINES = re.compile(r"^(?:async[ \t]+)?(?:def|class)[ \t]", re.MULTILINE)


def cells(text: str) -> list[dict]:
    """The cells, as nbformat has them; none where the text is not an export of a notebook."""
    text = text[:MOST].replace("\r\n", "\n").replace("\r", "\n")
    if text.lstrip().startswith("<"):
        found = [unescaped(_TAG.sub("", code)) for code in _code_in_page(text)]
        return [_cell(code.strip("\n")) for code in found if code.strip()]
    if _PROMPT.search(text):
        return _of_script(text)
    if blocks := _fenced(text):
        return [_cell(code.rstrip("\n")) for code in blocks if code.strip()]
    return [_cell(text.strip("\n"))] if _DEFINES.search(text) and is_python(text) else []


def unescaped(text: str) -> str:
    """HTML's characters such as &lt; as they are; a number of thousands of digits, which is none, stays."""
    return html.unescape(_LONG_NUMBER.sub("&amp;#", text))


def _code_in_page(text: str) -> list[str]:
    """The code between the tags of a page, with the tags that color it."""
    found, place = [], 0
    while begin := _CODE_IN_PAGE.search(text, place):
        end = text.find("</pre>", begin.end())
        if end < 0:
            break
        if _OF_CODE.search(begin[1]):
            found.append(text[begin.end() : end])
            place = end
        else:
            place = begin.end()
    return found


def _fenced(text: str) -> list[str]:
    """The closed blocks of Python in Markdown."""
    found: list[str] = []
    block: list[str] = []
    fence = ""  # of the block that we are in, where we are in one
    for line in text.split("\n"):
        if fence and (closed := _CLOSED.fullmatch(line)) and len(closed[1]) >= len(fence):
            found.append("".join(block))
            fence = ""
        elif fence:
            block.append(f"{line}\n")
        elif begun := _FENCE.match(line):
            fence, block = begun[1], []
    return found


def is_python(source: str) -> bool:
    """Whether a cell's text can be parsed; lines for IPython itself count as statements."""
    lines = ["pass" if line.startswith(("%", "!", "?")) else line for line in source.splitlines()]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            ast.parse("\n".join(lines))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return False
    return True


def _of_script(text: str) -> list[dict]:
    """The texts between the comments by which jupyter and jupytext mark the beginning of a cell."""
    found, marks = [], [*_PROMPT.finditer(text)]
    parts = [("", text[: marks[0].start()])]
    ends = [mark.start() for mark in marks[1:]] + [len(text)]
    parts += [(mark[0], text[mark.end() : end]) for mark, end in zip(marks, ends, strict=True)]
    for mark, source in parts:
        source = source.strip("\n")
        if not any(line.strip() and not line.startswith("#") for line in source.splitlines()):
            continue  # text, which is never an answer here
        if "[markdown]" in mark or "<markdowncell>" in mark:
            continue
        graded = _GRADE_ID.search(mark)
        found.append(_cell(source, graded[1] if graded else ""))
    return found


def _cell(source: str, grade_id: str = "") -> dict:
    return {"cell_type": "code", "metadata": {"nbgrader": {"grade_id": grade_id}}, "source": source}
