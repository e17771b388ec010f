"""Pages that are one file and ask nothing of the network: what a template says, in the course's look."""

import base64
import hashlib
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from autograder import catalogue
from autograder.catalogue.sections import chapter_title
from autograder.feedback import render

FOLDER = Path(__file__).parent
STYLES = {"light": "a11y-high-contrast-light", "dark": "a11y-high-contrast-dark"}  # the book's own


def page(template: str, script: str = "", **values: object) -> str:
    """The page from a template of this folder and values, all texts of which are escaped.

    script: the name of a file of this folder, the only script that the page may run.
    """
    source = (FOLDER / script).read_text(encoding="utf-8") if script else ""
    digest = base64.b64encode(hashlib.sha256(source.encode()).digest()).decode() if script else ""
    return (
        _environment()
        .get_template(template)
        .render(values, style=Markup(_style()), script=Markup(source), script_digest=digest)
    )


def code(source: str) -> Markup:
    """Python as colored HTML, for any source."""
    return Markup(highlight(source, PythonLexer(), HtmlFormatter(nowrap=True)))


def prose(text: str) -> Markup:
    """A sentence of the catalogue as HTML: *stars* mean emphasis, `ticks` mean code, everything else is escaped."""
    return Markup(render.prose(text))


def title(assignment: str, notebook: str) -> str:
    """The title of an assignment on a page: that of its chapter or, if it has none, its notebook's name."""
    number = assignment[:2] if assignment in {each.id for each in catalogue.ASSIGNMENTS} else ""
    if chapter := chapter_title(number):
        return f"{number} · {chapter}"
    return notebook.replace("_", " ").capitalize()


def points(number: float) -> str:
    """A number of points in short form: 3, 0.5, 2.67."""
    return f"{round(number, 2):g}"


@cache
def _environment() -> Environment:
    files = FileSystemLoader(FOLDER)
    environment = Environment(
        loader=files, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"code": code, "prose": prose, "points": points}
    return environment


@cache
def _style() -> str:
    light, dark = (HtmlFormatter(style=STYLES[theme]).get_style_defs(".code") for theme in ("light", "dark"))
    own = (FOLDER / "page.css").read_text(encoding="utf-8")
    return f"{light}\n@media (prefers-color-scheme: dark) {{\n{dark}\n}}\n{own}"
