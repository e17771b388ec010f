r"""Predict first: a question whose answer is hidden until the reader has committed to one.

A question with choices, one of which is right:

    :::{predict} `x.view(10, -1)`, where `x` is (5, 2, 7)
    :choices: (5, 14) | (10, 7) | (7, 10)
    :right: (10, 7)
    70 numbers in 10 rows.
    :::

A question without `choices` (and without `right`) gets a field to write the prediction into. The body is the answer;
it may hold anything but a code cell. If the code cell right below shows the answer, tag it `hide-output`: it opens with
the prediction. `|` separates choices; where one has to stand in a choice, write `\|`.

With JavaScript (assets/predict.js) the answer is hidden until a prediction is made; then the page says whether it was
right. Without it the choices are a list and the answer is a fold. On paper everything is shown.
"""

import re
from typing import ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective


class Predict(SphinxDirective):
    """The question is the argument, its answer the body."""

    required_arguments = 1
    final_argument_whitespace = True
    has_content = True
    option_spec: ClassVar = {"choices": directives.unchanged_required, "right": directives.unchanged_required}

    def run(self) -> list[nodes.Node]:
        choices = [
            choice.strip().replace(r"\|", "|") for choice in re.split(r"(?<!\\)\|", self.options.get("choices", ""))
        ]
        choices = [choice for choice in choices if choice]
        right = self.options.get("right", "").strip()
        if (choices or right) and (right not in choices or len(set(choices)) < len(choices) or len(choices) < 2):
            raise self.error(f"predict: expected `right` to be one of two or more choices, got {right!r} of {choices}")
        if not self.content:
            raise self.error("predict: expected the answer in the body, got nothing")
        opening = f'<div class="predict" data-right="{choices.index(right) if choices else ""}">'
        question = nodes.paragraph("", "", *self._inline(self.arguments[0]), classes=["predict-question"])
        listed = nodes.bullet_list("", classes=["predict-choices"])
        for choice in choices:
            listed += nodes.list_item("", nodes.paragraph("", "", *self._inline(choice)))
        return [
            html(f'{opening}<span class="predict-label">Predict</span>'),
            question,
            *([listed] if choices else []),
            html('<details class="predict-answer"><summary>Answer</summary>'),
            *self.parse_content_to_nodes(),
            html("</details></div>"),
        ]

    def _inline(self, text: str) -> list[nodes.Node]:
        found, problems = self.parse_inline(text)
        return [*found, *problems]


def html(text: str) -> nodes.raw:
    """Return the HTML for the page."""
    return nodes.raw("", text, format="html")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive and its script."""
    app.add_directive("predict", Predict)
    app.add_js_file("predict.js", loading_method="defer")
    return {"parallel_read_safe": True, "parallel_write_safe": True}
