"""How a report looks: the same parts as plain text, for terminals and files, and as HTML, for notebooks.

The HTML follows the theme of whatever shows it (JupyterLab, VS Code, a page) by that theme's own ink; color is only
next to a sign that says the same. Whatever a learner or an answer wrote comes out as text.
"""

import html
import re
import textwrap
from collections.abc import Iterator, Sequence

from autograder.address import link
from autograder.feedback.parts import Example, Head, Line, Part, Reread, Row, Source
from autograder.inside.escaping import escaped

WIDTH = 82
SMALLEST = "The smallest input found on which it still fails:"
MARKS = {True: "✓ ", False: "✗ ", None: ""}
MISTAKE = "#d55e00"  # the book's color of a mistake; a sign, a number in bold and words say it too
INK = "color:var(--jp-content-font-color1,var(--vscode-editor-foreground,inherit));"
EDGE = "var(--jp-border-color1,var(--vscode-panel-border,#8886))"
LINK = "color:var(--jp-content-link-color,var(--vscode-textLink-foreground,LinkText));text-decoration:underline;"
MONO = "font-family:var(--jp-code-font-family,ui-monospace,Menlo,Consolas,monospace);font-size:.92em;"
BOX = (
    f"{INK}border:1px solid {EDGE};border-left:4px solid %s;border-radius:6px;padding:.5em .9em .6em;margin:.3em 0;"
    "max-width:46em;line-height:1.5;overflow-wrap:anywhere;"
)
DIFFERENT = f"font-weight:700;border-bottom:2px solid {MISTAKE};"
NAME = "text-align:left;font-weight:400;white-space:nowrap;padding:0 .8em 0 0;border:0;background:none;"
TABLE = "margin:.2em 0 .4em 1.35em;border-collapse:collapse;border:0;font-size:1em;color:inherit;table-layout:auto;"
CELL = f"{MONO}text-align:right;white-space:pre;padding:.05em .45em;border:0;background:none;"


def wrapped(text: str, indent: str = "  ") -> list[str]:
    """The lines of a paragraph of a report."""
    return textwrap.wrap(text, WIDTH, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False)


# --- plain text ------------------------------------------------------------------------------------------------------


def as_text(parts: Sequence[Part]) -> str:
    """The report as lines."""
    return "\n".join(escaped(line) for part in parts for line in _lines(part))


def as_terminal(parts: Sequence[Part]) -> str:
    """The report as lines with colors; no information is in a color alone."""
    return "\n".join(f"{_ink(part)}{escaped(line)}\x1b[0m" for part in parts for line in _lines(part))


def _ink(part: Part) -> str:
    match part:
        case Head():
            return "\x1b[1m"
        case Line(passed=True):
            return "\x1b[32m"
        case Line(passed=False) | Row():
            return "\x1b[33m"
        case Reread():
            return "\x1b[36m"
        case _:
            return ""


def _lines(part: Part) -> list[str]:
    match part:
        case Head():
            return [f"{part.exercise:<{WIDTH - 32}}{part.points:>8g} of {part.possible:g} {part.kind}"]
        case Line():
            return wrapped(f"{MARKS[part.passed]}{part.text}", "    " if part.below else "  ")
        case Row():
            return _row_lines(part)
        case Example():
            return _example_lines(part)
        case Source():
            return [f"    at your line {part.number}:  {part.text}".rstrip()]
        case Reread():
            return wrapped(f"Reread {_title(part)}{f'   ·   {part.hint}' if part.hint else ''}")


def _row_lines(row: Row) -> list[str]:
    wanted, yours = " ".join(row.wanted), " ".join(row.yours)
    label = f"{row.label} " if row.label else ""
    head = f"  ✗ {row.name}: {label}should be "
    if len(head) + max(len(wanted), len(yours)) > WIDTH:  # a long row gets lines of its own
        return [*wrapped(f"✗ {row.name}: {label}".strip()), f"    should be {wanted}", f"    yours is  {yours}"]
    return [f"{head}{wanted}", f"{'yours is ':>{len(head)}}{yours}"]


def _example_rows(example: Example) -> list[tuple[str, str]]:
    given = [(f"{name} =", value) for name, value in example.arguments]
    return [*given, ("should be", example.wanted), ("yours is", example.yours)]


def _example_lines(example: Example) -> list[str]:
    rows = _example_rows(example)
    width = max(len(head) for head, _ in rows)
    return [f"  {SMALLEST}", *(f"    {head:<{width}} {value}" for head, value in rows)]


def _title(part: Reread) -> str:
    return f'{part.section.chapter}, "{part.section.title}"'


# --- HTML ------------------------------------------------------------------------------------------------------------


def as_html(parts: Sequence[Part], book: str) -> str:
    """The report as self-contained HTML. book: the address of the book, or ""."""
    head = parts[0] if parts and isinstance(parts[0], Head) else None
    whole = head is not None and head.points >= head.possible
    edge = EDGE if whole or head is None else MISTAKE
    return f'<div style="{BOX % edge}">{"".join(each for part in parts for each in _blocks(part, book))}</div>'


def _blocks(part: Part, book: str) -> Iterator[str]:
    match part:
        case Head():
            points = f"{part.points:g} of {part.possible:g} {part.kind}"
            yield (
                '<div style="display:flex;flex-wrap:wrap;gap:0 1.5em;justify-content:space-between;">'
                f"<strong>{_text(part.exercise)}</strong><strong>{_text(points)}</strong></div>"
            )
        case Line():
            shown = _prose(part.text) if part.ours else _text(part.text)
            yield _paragraph(f"{_sign(part.passed)}{shown}", below=part.below, marked=part.passed is not None)
        case Row():
            label = f": {part.label}" if part.label else ""
            yield _paragraph(f"{_sign(False)}{_text(part.name + label)}", marked=True)
            yield _table(part)
        case Example():
            yield _paragraph(SMALLEST)
            yield _example_table(part)
        case Source():
            code = f'<code style="{MONO}">{_text(part.text)}</code>'
            yield _paragraph(f"at your line {part.number}: {code}", below=True)
        case Reread():
            yield _paragraph(
                f"Reread {_linked(part, book)}{f' &nbsp;·&nbsp; {_prose(part.hint)}' if part.hint else ''}"
            )


def _paragraph(inner: str, below: bool = False, marked: bool = False) -> str:
    """marked: it begins with a sign; further lines are indented."""
    indent = "margin:.15em 0 .15em 1.35em;" if below else "margin:.3em 0;"
    hang = "margin:.15em 0 .15em 1.35em;text-indent:-1.35em;" if marked else indent
    return f'<p style="{hang}">{inner}</p>'


def _sign(passed: bool | None) -> str:
    if passed is None:
        return ""
    color, said = ("inherit", "passed") if passed else (MISTAKE, "not passed")
    style = f"display:inline-block;width:1.35em;text-indent:0;font-weight:700;color:{color};"
    return f'<span role="img" aria-label="{said}: " style="{style}">{MARKS[passed].strip()}</span>'


def _table(row: Row) -> str:
    """The two rows of numbers, one above the other; differing numbers of the learner are marked."""
    heads = [f'<th scope="row" style="{NAME}">{said}</th>' for said in ("should be", "yours is")]
    wanted = "".join(f'<td style="{CELL}">{_text(each)}</td>' for each in row.wanted)
    yours = "".join(
        f'<td style="{CELL}{"" if each.strip() == right.strip() else DIFFERENT}">{_text(each)}</td>'
        for each, right in zip(row.yours, row.wanted, strict=True)
    )
    rows = "".join(
        f'<tr style="background:none;">{head}{cells}</tr>' for head, cells in zip(heads, (wanted, yours), strict=True)
    )
    return f'<div style="overflow-x:auto;"><table style="{TABLE}">{rows}</table></div>'


def _example_table(example: Example) -> str:
    *rows, (yours, theirs) = _example_rows(example)
    marked = [(head, value, "") for head, value in rows] + [(yours, theirs, DIFFERENT)]
    shown = "".join(
        f'<tr style="background:none;"><th scope="row" style="{NAME}">{_text(head)}</th>'
        f'<td style="{CELL}text-align:left;"><span style="{mark}">{_text(value)}</span></td></tr>'
        for head, value, mark in marked
    )
    return f'<div style="overflow-x:auto;"><table style="{TABLE}">{shown}</table></div>'


def _linked(part: Reread, book: str) -> str:
    where = link(book, part.section)
    title = _text(_title(part))
    if not where:
        return title
    return f'<a href="{html.escape(where)}" target="_blank" rel="noopener" style="{LINK}">{title}</a>'


def bar(share: float) -> str:
    """A bar filled to this share, from 0 to 1; the text next to it says the same."""
    full = f"width:{100 * share:.0f}%;height:100%;background:#0072b2;border-radius:inherit;"
    outer = f"height:.55em;border-radius:.3em;border:1px solid {EDGE};overflow:hidden;min-width:4em;"
    return f'<div aria-hidden="true" style="{outer}"><div style="{full}"></div></div>'


def _text(text: str) -> str:
    return html.escape(text)


def _prose(text: str) -> str:
    """As `prose`, with code in the font of the rest of the report's code, whatever the theme's."""
    return prose(text).replace("<code>", f'<code style="{MONO}">')


def prose(text: str) -> str:
    """A sentence of the catalogue as HTML: *stars* mean emphasis, `ticks` mean code, everything else is escaped."""

    def marked(found: re.Match) -> str:
        code, stressed = found.groups()
        return f"<code>{code}</code>" if code else f"<em>{stressed}</em>"

    return re.sub(r"`([^`]+)`|(?<![\w*])\*(\w[^*]*)\*(?![\w*])", marked, html.escape(text))
