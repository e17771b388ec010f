"""Formulas as MathML, written when the book is built: a page needs no script to show them, and a screen reader none to
read them. A command that cannot be converted is a warning, and so an error of the build."""

from docutils import nodes
from math_core import LatexError, LatexToMathML
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.math import get_node_equation_number
from sphinx.writers.html5 import HTML5Translator

log = logging.getLogger(__name__)
converter = LatexToMathML()


def mathml(node: nodes.Node, *, display: bool) -> str:
    """Return a formula's MathML; its TeX in a code element where it cannot be converted."""
    formula = node.astext().strip()
    try:
        return converter.convert_with_local_state(formula, displaystyle=display)
    except LatexError as error:
        log.warning("formula: cannot convert %r: %s", formula, error, location=node)
        return nodes.literal("", formula).astext()


def visit_inline(self: HTML5Translator, node: nodes.math) -> None:
    """Write a formula in a line."""
    self.body.append(self.starttag(node, "span", "", CLASS="math notranslate nohighlight"))
    self.body.append(mathml(node, display=False) + "</span>")
    raise nodes.SkipNode


def visit_display(self: HTML5Translator, node: nodes.math_block) -> None:
    """Write a formula on a line of its own, with its number."""
    self.body.append(self.starttag(node, "div", "", CLASS="math notranslate nohighlight"))
    if node["number"]:
        self.body.append(f'<span class="eqno">({get_node_equation_number(self, node)})')
        self.add_permalink_ref(node, "Link to this equation")
        self.body.append("</span>")
    self.body.append(mathml(node, display=True) + "</div>\n")
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the renderer, which `html_math_renderer: mathml` chooses."""
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_display, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
