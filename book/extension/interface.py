"""The public names of a package, from its sources: signatures and docstrings, without importing anything.

    ```{interface} transformer_ref
    model/attention.py
    training/optimizer.py
    ```

writes a section for each file: its docstring's first sentence, then every function and class whose name has no
underscore and that has a docstring. What a page says here is what the code says.
"""

import ast
import re
from pathlib import Path

from docutils import nodes
from repository import code_address
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

ROOT = Path(__file__).resolve().parents[2]
TICKED = re.compile(r"`([^`\n]+)`")
Definition = ast.FunctionDef | ast.ClassDef
log = logging.getLogger(__name__)


class Interface(SphinxDirective):
    """The argument is a package's folder, each line of the body one of its files."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        package = self.arguments[0]
        made = []
        for file in filter(None, (line.strip() for line in self.content)):
            path = ROOT / package / file
            if not path.is_file():
                log.warning("interface: expected a file of %s, got %r", package, file, location=self.get_location())
                continue
            self.env.note_dependency(str(path))
            made.append(self._module(f"{package}/{file}", path))
        return made

    def _module(self, file: str, path: Path) -> nodes.section:
        module = file.removesuffix(".py").replace("/", ".")
        tree = ast.parse(path.read_text(encoding="utf-8"))
        title = nodes.title("", "", nodes.literal("", module))
        section = nodes.section("", title, ids=[f"api-{module}"], names=[module], classes=["interface"])
        self.state.document.note_explicit_target(section)
        section += nodes.paragraph("", "", *words(first_paragraph(ast.get_docstring(tree) or "")))
        for node in public(tree.body):
            section += described(node, module, file)
        return section


def public(body: list[ast.stmt]) -> list[Definition]:
    """Return the public definitions with a docstring, in the order of the file."""
    kinds = (ast.FunctionDef, ast.ClassDef)
    return [
        node for node in body if isinstance(node, kinds) and not node.name.startswith("_") and ast.get_docstring(node)
    ]


def described(node: Definition, module: str, file: str) -> list[nodes.Node]:
    """Return a definition's signature, docstring and, for a class, its public methods."""
    shown = nodes.literal_block("", signature(node), language="python", classes=["signature"])
    shown["ids"].append(f"api-{module}.{node.name}")
    box = nodes.container("", shown, *said(ast.get_docstring(node) or ""), classes=["api-name"])
    if isinstance(node, ast.ClassDef):
        for method in public(node.body):
            box += nodes.container(
                "",
                nodes.literal_block("", signature(method), language="python", classes=["signature"]),
                *said(ast.get_docstring(method) or ""),
                classes=["api-method"],
            )
    if address := code_address(file, node.lineno):
        link = nodes.reference("", "source", refuri=address)
        box += nodes.paragraph("", "", link, classes=["api-source"])
    return [box]


def signature(node: Definition) -> str:
    """Return a definition's signature, and for a class its fields."""
    if isinstance(node, ast.FunctionDef):
        returned = f" -> {ast.unparse(node.returns)}" if node.returns else ""
        marks = "".join(f"@{ast.unparse(mark)}\n" for mark in node.decorator_list)
        one_line = f"def {node.name}({ast.unparse(node.args)}){returned}"
        if len(one_line) <= 84:
            return marks + one_line
        return f"{marks}def {node.name}(\n" + "".join(f"    {part},\n" for part in parts(node.args)) + f"){returned}"
    bases = ", ".join(map(ast.unparse, node.bases))
    lines = [f"class {node.name}({bases})" if bases else f"class {node.name}"]
    for statement in node.body:
        if isinstance(statement, ast.AnnAssign) and not ast.unparse(statement.target).startswith("_"):
            lines.append(f"    {ast.unparse(statement)}")
        elif isinstance(statement, ast.FunctionDef) and statement.name == "__init__":
            lines.append("    " + signature(statement).replace("\n", "\n    "))
    return "\n".join(lines)


def parts(arguments: ast.arguments) -> list[str]:
    """Return the parameters of a function one by one, as they are written."""
    separate, depth, found = ast.unparse(arguments), 0, [""]
    for letter in separate:
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0:
            found.append("")
        else:
            found[-1] += letter
    return [part.strip() for part in found]


def said(docstring: str) -> list[nodes.Node]:
    """Return a docstring as paragraphs; lines that are indented keep their breaks."""
    made: list[nodes.Node] = []
    for block in re.split(r"\n\s*\n", docstring):
        lines = block.splitlines()
        if lines and lines[0].startswith("    "):
            made.append(nodes.literal_block("", "\n".join(line[4:] for line in lines), language="text"))
            continue
        for line in joined(lines):
            made.append(nodes.paragraph("", "", *words(line)))
    return made


def joined(lines: list[str]) -> list[str]:
    """Join wrapped lines of a docstring; a line that begins "name: ..." or "Returns ..." stays separate."""
    found: list[str] = []
    for line in lines:
        begins = re.match(r"(?:[\w*, ]{1,40}: |Returns? |Raises? |Yields? )", line)
        if not found or begins:
            found.append(line.strip())
        else:
            found[-1] += f" {line.strip()}"
    return found


def words(text: str) -> list[nodes.Node]:
    """Return a line of a docstring with the text between backticks as code."""
    pieces = TICKED.split(text)
    return [nodes.literal("", piece) if place % 2 else nodes.Text(piece) for place, piece in enumerate(pieces) if piece]


def first_paragraph(docstring: str) -> str:
    """Return the text of a docstring before its first empty line."""
    return " ".join(re.split(r"\n\s*\n", docstring)[0].split())


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("interface", Interface)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
