"""The questions at the door and at the exit, drawn from the inventory that commands and dashboard read as well.

    ```{inventory}
    ```

writes one form with all questions. assets/inventory.js shuffles the choices, keeps the answers in the browser, and
compares them when the reader has answered twice. Without JavaScript the questions can be read, and nothing says which
choice is right.
"""

import hashlib
import json
import re
import sys
from html import escape
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

ROOT = Path(__file__).resolve().parents[2]
UNKNOWN_SAYS = "I do not know."
FORM = 'class="inventory"'
WITHOUT_SCRIPT = (
    "<noscript><p>Without JavaScript this page cannot keep your answers. You can read the questions; what is right "
    "stands in the chapters.</p></noscript>"
)


def words(text: str) -> str:
    """Text of the inventory as HTML: *stars* mean emphasis, x^2 a power."""
    text = re.sub(r"\*([^*]+)\*", r"<em>\1</em>", escape(text, quote=False))
    return re.sub(r"\^(\w+)", r"<sup>\1</sup>", text)


def _choice(question: str, answer: str, text: str) -> str:
    return (
        f'<label><input type="radio" name="{escape(question)}" value="{escape(answer)}">'
        f"<span>{words(text)}</span></label>"
    )


def _fieldset(number: int, question) -> str:
    """One question, its choices in an order that does not depend on which is right, also without a script."""
    answers = [("right", question.right), *((each.mistake, each.choice) for each in question.wrong)]
    answers.sort(key=lambda answer: hashlib.sha256(f"{question.id} {answer[1]}".encode()).digest())
    choices = [_choice(question.id, *answer) for answer in (*answers, ("unknown", UNKNOWN_SAYS))]
    return (
        f'<fieldset id="inventory-{question.id}"><legend><b>{number}</b> {words(question.asks)}</legend>'
        f"{''.join(choices)}</fieldset>"
    )


class InventoryForm(SphinxDirective):
    """All questions, with the results for the reader."""

    def run(self) -> list[nodes.Node]:
        if str(ROOT) not in sys.path:
            sys.path.append(str(ROOT))
        from autograder import catalogue  # the book is built from the repository that grades it
        from autograder.catalogue import inventory

        self.env.note_dependency(str(inventory.FILE))
        pages = {assignment.id[:2]: assignment.id for assignment in catalogue.ASSIGNMENTS}
        held, told = inventory.read(), {}
        for question in held.questions:
            reread = question.section
            told[question.id] = {
                "because": words(question.because),
                "href": f"{pages[reread.chapter]}.html#{reread.label}",
                "section": f"{reread.chapter}, {reread.title}",
                "exercises": {each.mistake: catalogue.find(each.exercise).number for each in question.wrong},
            }
        data = json.dumps({"inventory": held.id, "version": held.version, "told": told}).replace("<", "\\u003c")
        form = "".join(_fieldset(number, question) for number, question in enumerate(held.questions, 1))
        page = (
            f'<div {FORM}>{WITHOUT_SCRIPT}<form novalidate aria-label="The questions">{form}</form>'
            f'<script type="application/json">{data}</script></div>'
        )
        return [nodes.raw("", page, format="html")]


def add_assets(app: Sphinx, page: str, template: str, context: dict, doctree: nodes.document | None) -> None:
    """Give script and style to the page that holds the form, and to no other."""
    if FORM in context.get("body", ""):
        app.add_js_file("inventory.js", loading_method="defer")
        app.add_css_file("inventory.css")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("inventory", InventoryForm)
    app.connect("html-page-context", add_assets)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
