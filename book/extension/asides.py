"""What may be skipped: a section that is an aside is folded below its title, with the minutes that it takes.

    (sec-09-epsilon)=
    ## Where epsilon belongs
    ```{aside-section}
    ```

folds everything of that section but its title. The title stays in the list of the page's sections and in the search. A
link to the section, or to anything in it, opens it (assets/asides.js); so does printing. Without scripts it is a fold
like any other. How long a page takes with and without its asides is computed by reading_time.py.
"""

from docutils import nodes
from reading_time import minutes_of_aside
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective


class Mark(nodes.General, nodes.Element):
    """Marks the directive's position until the section around it is folded."""


class Aside(SphinxDirective):
    """The directive, used directly below a section's title."""

    def run(self) -> list[nodes.Node]:
        return [Mark()]


def fold(app: Sphinx, doctree: nodes.document) -> None:
    """Fold the content of every section that is an aside."""
    for mark in list(doctree.findall(Mark)):
        section = mark.parent
        if not isinstance(section, nodes.section) or section.index(mark) != 1:
            raise ValueError(f"{app.env.docname}: expected an aside directly below a section's title")
        source = app.env.doc2path(app.env.docname)
        with open(source, encoding="utf-8") as page:
            minutes = minutes_of_aside(page.read(), section["names"] + section["ids"])
        opening = f'<details class="aside"><summary>Aside, {minutes} min: you may skip it</summary>'
        section["classes"].append("aside-section")
        section.replace(mark, nodes.raw("", opening, format="html"))
        section.append(nodes.raw("", "</details>", format="html"))


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive, the folding, and the script that unfolds."""
    app.add_node(Mark)
    app.add_directive("aside-section", Aside)
    app.connect("doctree-read", fold)
    app.add_js_file("asides.js", loading_method="defer")
    return {"parallel_read_safe": True, "parallel_write_safe": True}
