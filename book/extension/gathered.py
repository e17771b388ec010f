"""Directives that collect parts of the chapters on one page: self-checks, mistakes of the lectures, moving figures.

- `self-checks`: the questions of every section "Check yourself", their answers unfolded.
- `spotted`: every line of a lecture that a section "Spot the mistake" asks about, with a link to its answer.
- `widget-index`: every moving figure, with a link to where it is.
- `correction`: one row of "What the slides got wrong".
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

ROOT = Path(__file__).resolve().parents[2]
KINDS = {
    "wrong": "it does not hold",
    "loose": "true in a way, and easy to take for more",
    "slip": "of the pen",
    "source": "a date or a source",
    "right": "it holds",
}

TITLE = re.compile(r"^# (?:\d\d · )?(?P<title>.+)$", re.MULTILINE)
LABEL = re.compile(r"^\((?P<label>sec-[\w-]+)\)=\n+#+ (?P<title>.+)$", re.MULTILINE)
CELL = re.compile(r"^```\{code-cell\}.*?^```$\n?", re.DOTALL | re.MULTILINE)
ASKED = re.compile(r"^:{3,}\{(?:predict|dropdown)\} (?P<line>.+)$", re.MULTILINE)
FOLD = re.compile(r"^(:{3,})\{dropdown\} .*$", re.MULTILINE)
PREDICTION = re.compile(r"^(?P<fence>:{3,})\{predict\} (?P<line>.+)\n(?P<options>(?::\w+:.*\n)*)", re.MULTILINE)
WIDGET = re.compile(r"""\bid=["'](?P<id>W\d\d[a-z])["']|\b(?P<named>W\d\d[a-z])\b""")
KIND = re.compile(r"""data-[\w-]+="(?P<kind>[\w-]+)" id="(?P<id>W\d\d[a-z])\"""")
NAMED = (
    re.compile(r'"(?P<title>[^"<>]+)",\s*"(?P<id>W\d\d[a-z])"'),
    re.compile(r"widget-head'>(?P<title>[^<{]+?) <span class='widget-id'>(?P<id>W\d\d[a-z])<"),
    re.compile(r'"(?P<title>[^"<>]+)",(?: " ",)?\s*html\("span", \{ class: "widget-id" \}, "(?P<id>W\d\d[a-z])"'),
)


class Gathered(SphinxDirective):
    """Base of the directives below: the chapters' sources, and their Markdown parsed as part of this page."""

    def chapters(self) -> Iterator[tuple[str, str, str]]:
        """Yield each published chapter's page, title and text."""
        for page in sorted(name for name in self.env.found_docs if name[:2].isdigit()):
            path = Path(self.env.doc2path(page))
            self.env.note_dependency(str(path))
            text = path.read_text(encoding="utf-8")
            yield page, TITLE.search(CELL.sub("", text))["title"], text

    def inline(self, text: str) -> list[nodes.Node]:
        """Return a line of Markdown as nodes."""
        found, problems = self.parse_inline(text)
        return [*found, *problems]

    def section(self, anchor: str, title: str) -> nodes.section:
        """Return a section with a heading of its own."""
        made = nodes.section("", nodes.title("", "", *self.inline(title)), ids=[anchor], names=[anchor])
        self.state.document.note_explicit_target(made)
        return made

    def read_into(self, node: nodes.Element, text: str) -> nodes.Element:
        """Return the node with a text of Markdown in it."""
        self.state.nested_parse(StringList(text.splitlines(), source=self.env.docname), self.content_offset, node)
        return node


class SelfChecks(Gathered):
    """All questions and answers."""

    def run(self) -> list[nodes.Node]:
        made = []
        for page, title, text in self.chapters():
            label = f"sec-{page[:2]}-self-check"
            if not (asked := section_of(text, label)):
                continue
            part = self.section(f"answers-{page[:2]}", f"{page[:2]} · {title}")
            made.append(self.read_into(part, f"{unfolded(asked)}\n\nAsked in {{ref}}`{label}`."))
        return made


class Spotted(Gathered):
    """The chapters' own questions about lines of lectures."""

    def run(self) -> list[nodes.Node]:
        rows = []
        for page, title, text in self.chapters():
            label = f"sec-{page[:2]}-wrong-slides"
            if lines := [found["line"] for found in ASKED.finditer(section_of(text, label))]:
                listed = "\n".join(f"  - {line}" for line in lines)
                rows.append(f"- {{ref}}`{page[:2]} · {title} <{label}>`\n{listed}")
        return self.read_into(nodes.container(classes=["spotted"]), "\n".join(rows)).children


class WidgetIndex(Gathered):
    """A row for each moving figure: its name, its title, and its section."""

    def run(self) -> list[nodes.Node]:
        titles = widget_titles(ROOT / "book")
        made = []
        for page, title, text in self.chapters():
            found = {match["id"] or match["named"]: match for match in WIDGET.finditer(text)}
            rows = []
            for name in sorted(name for name in found if name.startswith(f"W{page[:2]}")):
                before = [match for match in LABEL.finditer(text) if match.start() < found[name].start()]
                up = "../" * self.env.docname.count("/")
                at = f'<a href="{up}{page}.html#{name}">{name}</a>' if f'id="{name}"' in text else name
                where = f"{{ref}}`{before[-1]['label']}`" if before else ""
                rows.append(f"| {at} | {titles.get(name, '')} | {where} |")
            if rows:
                head = "| figure | what it shows | where |\n|---|---|---|\n"
                part = self.section(f"widgets-{page[:2]}", f"{page[:2]} · {title}")
                made.append(self.read_into(part, head + "\n".join(rows)))
        return made


class Correction(Gathered):
    """A correction of a lecture: the argument is "number | line", the body the correct statement."""

    required_arguments = 1
    final_argument_whitespace = True
    has_content = True
    option_spec: ClassVar = {
        "kind": lambda text: directives.choice(text, tuple(KINDS)),
        "by": directives.unchanged,
        "proof": directives.unchanged,
    }

    def run(self) -> list[nodes.Node]:
        number, _, line = (part.strip() for part in self.arguments[0].partition("|"))
        kind = self.options["kind"]
        made = nodes.container(classes=["correction", kind], ids=[f"slide-{number}"])
        by = f" {{cite}}`{self.options['by']}`" if self.options.get("by") else ""
        self.read_into(made, f"**{number}** *{kind}*  {line}{by}")
        made[0]["classes"].append("correction-said")
        self.read_into(made, "\n".join(self.content))
        if proof := self.options.get("proof"):
            places = ", ".join(f"{chapter_of(label)}{{ref}}`{label}`" for label in proof.split())
            self.read_into(made, f"Proof: {places}.")
            made[-1]["classes"].append("correction-proof")
        return [made]


def chapter_of(label: str) -> str:
    """Return the number of the chapter whose section that is, and a space."""
    return f"{label[4:6]} " if label.startswith("sec-") else ""


def section_of(text: str, label: str) -> str:
    """Return the text of a labeled section, without its cells; nothing if the label is missing."""
    found = re.search(
        rf"^\({label}\)=\n+## [^\n]+\n(?P<body>.*?)(?=^\(sec-[\w-]+\)=$|^## |\Z)",
        CELL.sub("", text),
        re.DOTALL | re.MULTILINE,
    )
    return found["body"].strip() if found else ""


def unfolded(text: str) -> str:
    """Return questions with visible answers: folds become boxes, and the correct choice of a prediction is named."""

    def said(found: re.Match) -> str:
        options = dict(re.findall(r"^:(\w+): *(.*)$", found["options"], re.MULTILINE))
        choices = " · ".join(choice.strip() for choice in options.get("choices", "").split("|"))
        right = f"**{options['right']}.** " if "right" in options else ""
        return (
            f"{found['line']}" + (f" ({choices})" if choices else "") + f"\n\n{found['fence']}{{div}} answer\n{right}"
        )

    return FOLD.sub(r"\1{div} answer", PREDICTION.sub(said, text))


def widget_titles(book: Path) -> dict[str, str]:
    """Return each widget's title from its own heading."""
    texts = [
        path.read_text(encoding="utf-8") for path in (*sorted(book.glob("*.md")), *sorted(book.glob("assets/*.js")))
    ]
    titles = {
        found["id"]: found["kind"].replace("-", " ").capitalize() for text in texts for found in KIND.finditer(text)
    }
    return titles | {found["id"]: found["title"] for text in texts for form in NAMED for found in form.finditer(text)}


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directives."""
    for name, directive in {
        "self-checks": SelfChecks,
        "spotted": Spotted,
        "widget-index": WidgetIndex,
        "correction": Correction,
    }.items():
        app.add_directive(name, directive)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
