"""A stranger's HTML for formgrader's page: it may look like something, and it does nothing.

nbgrader's template cleans no markdown cell, and nbconvert's own filter knows no paragraph: it shows `<p>` as letters.
So both filters are these, named in nbgrader_config.py.
"""

import re
import time
from functools import cache
from html import escape
from typing import Any
from urllib.parse import quote, unquote

import bleach
from jinja2 import pass_context
from jinja2.runtime import Context
from nbconvert.exporters import HTMLExporter

from autograder.intake import attachments

TAGS = frozenset(
    "a abbr b blockquote br caption code dd del details div dl dt em h1 h2 h3 h4 h5 h6 hr i img kbd li ol p pre s samp "
    "small span strong sub summary sup table tbody td tfoot th thead tr u ul var".split()
)
PLAIN = {"a": ("title",), "img": ("alt", "title", "width", "height"), "ol": ("start",), "details": ("open",)}
COLUMNS = ("align", "colspan", "rowspan")
# Pygments' classes; those of the page's own styles could lay a link over all of it.
OF_CODE = re.compile(r"highlight|hll|[a-z][a-z0-9]{0,2}")
ADDRESS = re.compile(r"https?://|mailto:|#", re.IGNORECASE)
_NO_PICTURE = "text/x-no-picture"
_MISSING = re.compile(
    rf'<img [^<>]{{0,2000}}?src="data:{_NO_PICTURE};base64,(?P<name>[^"<>]{{0,2000}})"[^<>]{{0,2000}}>'
)
# The page of one submission is rendered in the teacher's Jupyter, which does nothing else meanwhile. A chapter's
# longest text has 3,000 letters, and all of its texts together take less than a second.
MOST_LETTERS = 20_000  # of one cell; most floods of marks take time in proportion to it
MOST_FORMULAS = 10_000_000  # openings of formulas times letters: of each the whole rest is searched for its end
MOST_SECONDS = 10.0  # of processor time for the texts of one page
NOT_RENDERED = "This text is shown as it was written, since it could not be rendered, or not in the time of a page."
MOST_TAGS = 4_000_000  # tags, as of a raw cell, times those of them that are not the spans of colored code
_SPENT = "seconds of markdown"
_TAG = re.compile(r"<(?:(?P<of_code>span\b)|[A-Za-z])")
_FORMULA = re.compile(r"\\\\[\[(]|\\begin\{")
PICTURE = re.compile(r"data:image/(png|jpeg|gif|webp);base64,", re.IGNORECASE)


def clean_html(html: str | bytes) -> str:
    """The HTML with only harmless tags and attributes; every other tag is escaped.

    Pictures must be embedded: a fetched one would tell its server when the page is read. Thousands of tags would take
    the square of their number where they are nested, so they are shown as they were written.
    """
    text = html.decode() if isinstance(html, bytes) else str(html)
    tags = [found["of_code"] is None for found in _TAG.finditer(text)]
    return _as_written(text) if sum(tags) * len(tags) > MOST_TAGS else _cleaned(text)


def _cleaned(text: str) -> str:
    return bleach.clean(text, tags=TAGS, attributes=_is_harmless, protocols={"http", "https", "mailto", "data"})


@pass_context
def markdown2html(context: Context, source: str) -> str:
    """A markdown cell as nbconvert renders it, cleaned. A missing picture is reported as missing: nbconvert
    would raise, and the whole page with it. A text that would take too long, or that raises an error, is shown as it
    was written."""
    page = context.get("resources")  # one dictionary for all cells of a page
    spent = page.get(_SPENT, 0.0) if isinstance(page, dict) else 0.0
    formulas = sum(1 for _ in _FORMULA.finditer(source))
    if len(source) > MOST_LETTERS or formulas * len(source) > MOST_FORMULAS or spent > MOST_SECONDS:
        return _as_written(source)
    began = time.thread_time()
    try:
        return _brackets_apart(_rendered(context, source))
    except Exception:  # of whatever kind: a stranger's text must not end the page
        return _as_written(source)
    finally:
        if isinstance(page, dict):
            page[_SPENT] = spent + time.thread_time() - began


def _rendered(context: Context, source: str) -> str:
    cell = context.get("cell", {})
    pictures = _Pictures(attachments.kept(cell.get("attachments")))
    html = HTMLExporter.markdown2html(_exporter(), {**context, "cell": {**cell, "attachments": pictures}}, source)
    return _cleaned(_MISSING.sub(_missing, html))


def _as_written(source: str) -> str:
    return _brackets_apart(f"<p><em>{NOT_RENDERED}</em></p><pre>{escape(source)}</pre>")


def _brackets_apart(html: str) -> str:
    """The same HTML for a browser; nbgrader's templates search the rest of the page for an end at every bracket."""
    return html.replace("[", "&#91;")


class _Pictures(dict):
    """A cell's pictures by name; a missing one gives data that is no picture."""

    def __contains__(self, name: object) -> bool:
        return True

    def __missing__(self, name: str) -> dict[str, str]:
        return {_NO_PICTURE: quote(name, safe="")}


def _missing(found: re.Match) -> str:
    return f"<em>(the picture {escape(unquote(unquote(found['name'])))} is missing)</em>"


def _is_harmless(tag: str, name: str, value: str) -> bool:
    if name == "href":
        return tag == "a" and ADDRESS.match(value) is not None
    if name == "src":
        return tag == "img" and PICTURE.match(value) is not None
    if name == "class":
        return tag in ("div", "span", "pre") and all(map(OF_CODE.fullmatch, value.split()))
    return name in PLAIN.get(tag, ()) or (tag in ("td", "th") and name in COLUMNS)


@cache
def _exporter() -> Any:
    return HTMLExporter(exclude_anchor_links=True)
