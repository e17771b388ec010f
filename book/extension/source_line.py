"""Where a part of the package is written: {source}`model/encoder.py:EncoderLayer` becomes "model/encoder.py, line 15".

The line is looked up when the book is built, and a name that the file lacks is a warning. Where the public repository
is known, the line is a link to it.
"""

import ast
from pathlib import Path

from docutils import nodes
from repository import code_address
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.docutils import SphinxRole

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "transformer_ref"
log = logging.getLogger(__name__)


def line_of(path: Path, name: str) -> int | None:
    """Return the line on which a file defines a function, a class or, after a dot, a method; None if it does not."""
    scope: ast.AST = ast.parse(path.read_text(encoding="utf-8"))
    for part in name.split("."):
        named = (node for node in ast.iter_child_nodes(scope) if getattr(node, "name", None) == part)
        scope = next(named, None)
        if scope is None:
            return None
    return scope.lineno


class Source(SphinxRole):
    """A file of the package and a name in it, with a colon between them."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        file, _, name = self.text.partition(":")
        path = PACKAGE / file
        line = line_of(path, name) if path.is_file() else None
        if line is None:
            log.warning("source: expected a name in transformer_ref, got %r", self.text, location=self.get_location())
            return [nodes.literal("", self.text)], []
        self.env.note_dependency(str(path))
        said = nodes.inline("", f"{file}, line {line}", classes=["source-line"])
        if not (address := code_address(f"transformer_ref/{file}", line)):
            return [said], []
        return [nodes.reference("", "", said, refuri=address)], []


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the role."""
    app.add_role("source", Source())
    return {"parallel_read_safe": True, "parallel_write_safe": True}
