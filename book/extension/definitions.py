"""A term of the glossary explains itself where a chapter uses it: on hover, on focus, on a tap, without the network.

The first place on a chapter's page where a term is in running text becomes a link to the glossary, and the
definitions of the page's terms travel with the page. assets/front.js shows them in a bubble; without JavaScript the
link leads to the glossary. Words that also have an everyday meaning are linked only from the chapter on that explains
them (FROM_THEN_ON), or only in that chapter (ONLY_THERE); WINDOWS, which the course's four words are about, never.
Some words have two technical meanings: a chapter that uses the one that the glossary does not explain has no link
(NOT_IN), and neither has a phrase in which the word means something else (OTHER_SENSES).
"""

import json
import re
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

PAGE = "notation"  # where the glossary is
WINDOWS = {"window"}
FROM_THEN_ON = set(
    "attention batch benchmark bottleneck checkpoint freezing head id key leak mask offset pad pipeline position "
    "query sampling score shape temperature".split()
)
ONLY_THERE = {"feature map"} | set(
    "alignment chunk cue hypothesis label memory merge norm probability saturation signature stride value".split()
)
NOT_IN = {  # term -> chapters that mean something else by it
    "head": {13, 15},  # the last layer of a model
    "offset": {9},  # the one that layer norm adds
    "score": {10, 11, 12, 13, 15},  # logits, and BLEU
}
OTHER_SENSES = {  # term -> phrases in which it means something else
    "head": r"(?:linear|output) heads?",
    "key": r"(?:Tab|Enter|Escape|arrow) keys?",
    "mask": r"mask (?:a |the )?words?",
}
WITHOUT_CHAPTER = 5  # query, key, value and score name no section; chapter 05 is about them
QUIET = (
    nodes.reference,
    nodes.literal,
    nodes.emphasis,
    nodes.math,
    nodes.raw,
    nodes.title,
    nodes.table,
    nodes.footnote,
)
QUIET_CLASSES = {"predict-question", "predict-choices", "cell", "notation", "sd-card"}
LETTERS = {
    "alpha": "α",
    "sum": "Σ",
    "ln": "ln ",
    "log": "log ",
    "sqrt": "√",
    "operatorname": "",
    "cdot": "·",
    "tanh": "tanh",
}


class Definition(NamedTuple):
    """A term: its anchor, its definition as HTML, the chapter that explains it."""

    anchor: str
    html: str
    chapter: int


class Glossary:
    """The terms of a build and their mentions in a text."""

    def __init__(self, env: BuildEnvironment) -> None:
        self.terms = {term.casefold(): found for term, found in terms_of(env.get_doctree(PAGE))}

    @cached_property
    def pattern(self) -> re.Pattern:
        """Finds a term or its plural, the longest first."""
        names = "|".join(re.escape(name) for name in sorted(self.terms, key=len, reverse=True))
        return re.compile(rf"(?<![\w-])({names})(s|es)?(?![\w-])", re.IGNORECASE)

    def mentions(self, text: str, chapter: int) -> Iterator[tuple[re.Match, str, Definition]]:
        """Yield each position where a chapter may link a term, with the term and its definition."""
        for found in self.pattern.finditer(text):
            name = found[1].casefold()
            known = self.terms[name]
            too_early = name in FROM_THEN_ON and chapter < known.chapter
            elsewhere = name in ONLY_THERE and chapter != known.chapter
            differs = chapter in NOT_IN.get(name, ()) or has_other_sense(name, text, found)
            if not (name in WINDOWS or too_early or elsewhere or differs):
                yield found, name, known


def has_other_sense(name: str, text: str, found: re.Match) -> bool:
    """Whether the term found in a text is part of a phrase in which it means something else."""
    phrases = re.finditer(rf"\b{OTHER_SENSES[name]}\b", text) if name in OTHER_SENSES else ()
    return any(phrase.start() <= found.start() and found.end() <= phrase.end() for phrase in phrases)


def terms_of(doctree: nodes.document) -> Iterator[tuple[str, Definition]]:
    """Yield the terms of the glossary on a page, each with its definition."""
    for glossary in doctree.findall(addnodes.glossary):
        for item in glossary.findall(nodes.definition_list_item):
            paragraph = next(item.findall(nodes.paragraph))
            sections = [node["reftarget"] for node in paragraph.findall(addnodes.pending_xref)]
            sections += [node.get("refid", "") for node in paragraph.findall(nodes.reference)]
            chapters = [int(name[4:6]) for name in sections if re.match(r"sec-\d\d-", name)]
            for term in item.findall(nodes.term):
                anchor = term["ids"][0]
                yield (
                    term.astext(),
                    Definition(anchor, as_html(paragraph), chapters[0] if chapters else WITHOUT_CHAPTER),
                )


def as_html(paragraph: nodes.paragraph) -> str:
    """Return a definition as a line of HTML, without the sentence that refers to a chapter."""
    parts = []
    for node in paragraph.children:
        text = node.astext()
        if isinstance(node, nodes.math):
            parts.append(plain_formula(text))
        elif isinstance(node, nodes.Text):
            parts.append(escaped(text))
        elif isinstance(node, nodes.emphasis):
            parts.append(f"<em>{escaped(text)}</em>")
        elif isinstance(node, nodes.literal):
            parts.append(f"<code>{escaped(text)}</code>")
        else:
            parts.append("\0")  # a reference
    said = " ".join("".join(parts).split())
    return re.sub(r"\s*See\s+\0[^\0]*$", "", said).replace("\0", "").strip()


def plain_formula(tex: str) -> str:
    """Return a short formula in letters, with real subscripts and superscripts."""
    text = escaped(tex)
    text = re.sub(r"\\([a-zA-Z]+) ?", lambda found: LETTERS.get(found[1], found[0]), text)
    text = re.sub(r"_\{([^{}]*)\}|_(\w)", lambda found: f"<sub>{found[1] or found[2]}</sub>", text)
    text = re.sub(r"\^\{([^{}]*)\}|\^(\w)", lambda found: f"<sup>{found[1] or found[2]}</sup>", text)
    return text.replace("{", "").replace("}", "").replace("-", "−")


def escaped(text: str) -> str:
    """Return text that is safe in HTML."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def is_running_text(node: nodes.Text) -> bool:
    """Whether a text belongs to a paragraph that a link may interrupt."""
    parent, in_paragraph = node.parent, False
    while parent is not None:
        if isinstance(parent, QUIET) or QUIET_CLASSES & set(parent.get("classes", ())):
            return False
        in_paragraph = in_paragraph or isinstance(parent, nodes.paragraph)
        parent = parent.parent
    return in_paragraph


def link_terms(app: Sphinx, doctree: nodes.document, page: str) -> None:
    """Link the first mention of each term on a chapter's page, and keep the definitions for its end."""
    if app.builder.format != "html" or not page[:2].isdigit():
        return
    if not hasattr(app, "course_glossary"):
        app.course_glossary = Glossary(app.env)
    glossary, linked = app.course_glossary, {}
    home = app.builder.get_relative_uri(page, PAGE)
    for text in [node for node in doctree.findall(nodes.Text) if is_running_text(node)]:
        pieces, at = [], 0
        for found, name, known in glossary.mentions(text.astext(), int(page[:2])):
            if name in linked:
                continue
            linked[name] = known
            shown = nodes.reference("", found[0], internal=True, refuri=f"{home}#{known.anchor}", classes=["defined"])
            pieces += [nodes.Text(text.astext()[at : found.start()]), shown]
            at = found.end()
        if pieces:
            pieces.append(nodes.Text(text.astext()[at:]))
            text.parent.replace(text, [piece for piece in pieces if piece.astext()])
    named = {node["reftarget"].casefold() for node in doctree.findall(addnodes.pending_xref)}
    named |= {node.astext().casefold() for node in doctree.findall(nodes.inline) if "std-term" in node["classes"]}
    linked |= {name: glossary.terms[name] for name in named if name in glossary.terms}
    said = json.dumps({known.anchor: known.html for known in linked.values()}, ensure_ascii=False, sort_keys=True)
    safe = said.replace("<", "\\u003c")
    doctree += nodes.raw("", f'<script type="application/json" id="definitions">{safe}</script>', format="html")


def with_their_glossary(app: Sphinx, env: BuildEnvironment, added: set, changed: set, removed: set) -> list[str]:
    """Rewrite the chapters when the glossary has changed."""
    return [page for page in env.found_docs if page[:2].isdigit()] if PAGE in added | changed else []


def setup(app: Sphinx) -> dict[str, bool]:
    """Register everything above."""
    app.connect("doctree-resolved", link_terms)
    app.connect("env-get-outdated", with_their_glossary)
    return {"parallel_read_safe": True, "parallel_write_safe": False}
