"""How a page opens and how its code is set: what a style sheet alone cannot do.

- A chapter's number is by itself in its title, in the list of chapters and at the foot of its neighbors; its time
  follows its question.
- A line of code or output that is too long for a phone goes on below its own beginning, unless its columns are
  below others. A formula keeps the full stop or comma that follows it on its line, and a number its percent sign.
- The style that travels with every table of numbers stands on a page once.
- A module's long name in the list of a page's sections goes on in the next line behind a dot, not within a word.
- A phone's home screen gets its own logo.
"""

import re
from collections.abc import Callable

from definitions import is_running_text
from docutils import nodes
from sphinx.application import Sphinx

NUMBER = r"(\d\d) · "
NUMBERED = r'<span class="chapter-number">\1</span><span class="chapter-dot"> · </span>'
CODE = re.compile(r"(<div class=\"highlight[^>]*>)<pre>((?:<span></span>)?)(.*?)</pre>", re.DOTALL)
TAG = re.compile(r"<[^>]+>")
TABLE_STYLE = re.compile(r"<style>\.numbers .*?</style>", re.DOTALL)
FORMULA = re.compile(r'(<span class="math notranslate nohighlight">(?:(?!</span>).)*</span>)([.,;:!?)’”]+)', re.DOTALL)
MODULE = re.compile(r'(?<=<span class="pre">)[\w.]+(?=</span>)')
COLUMNS = re.compile(r"\S {2,}\S")  # two blanks within a line


def put_time_below_question(app: Sphinx, doctree: nodes.document) -> None:
    """Move a chapter's reading time from its card to the line below the opening question."""
    if not app.env.docname[:2].isdigit():
        return
    times = [node for node in doctree.findall(nodes.paragraph) if "chapter-time" in node["classes"]]
    questions = [node for node in doctree.findall(nodes.paragraph) if isinstance(node.parent, nodes.section)]
    if times and questions:
        times[0].parent.remove(times[0])
        questions[0]["classes"].append("chapter-question")
        place = questions[0].parent.index(questions[0])
        questions[0].parent.insert(place + 1, times[0])


def keep_percents(app: Sphinx, doctree: nodes.document, page: str) -> None:
    """Let no line of running text break between a number and its percent sign."""
    for text in [node for node in doctree.findall(nodes.Text) if is_running_text(node)]:
        kept = with_kept_percents(text.astext())
        if kept != text.astext():
            text.parent.replace(text, nodes.Text(kept))


def with_kept_percents(text: str) -> str:
    """Return a text with a no-break space between each number and its percent sign."""
    return re.sub(r"(?<=\d)[ \n]%(?!\w)", "\N{NO-BREAK SPACE}%", text)


def hanging(code: str) -> str:
    """Return highlighted code with each line in an element with its indentation."""
    lines = []
    for line in code.rstrip("\n").split("\n"):
        text = TAG.sub("", line)
        indent = len(text) - len(text.lstrip(" "))
        style = f' style="--indent:{indent}"' if indent else ""
        lines.append(f'<span class="line"{style}>{line}\n</span>')
    return "".join(lines)


def set_lines(body: str) -> str:
    """Return a page on which long lines of code wrap with their indentation."""

    def set_block(found: re.Match) -> str:
        lined = sum(bool(COLUMNS.search(line)) for line in TAG.sub("", found[3]).split("\n"))
        kind = ' class="columns"' if lined > 1 else ""
        return f"{found[1]}<pre{kind}>{found[2]}{hanging(found[3])}</pre>"

    return CODE.sub(set_block, body)


def once(style: re.Pattern, body: str) -> str:
    """Return a page with each style only at its first occurrence."""
    first = style.search(body)
    return body[: first.end()] + style.sub("", body[first.end() :]) if first else body


def number_chapters(app: Sphinx, page: str, template: str, context: dict, doctree: nodes.document | None) -> None:
    """Wrap chapters' numbers in elements, on the page and in the links to it."""
    if "body" in context:
        body = re.sub(f"<h1>{NUMBER}", f"<h1>{NUMBERED}", context["body"], count=1)
        context["body"] = FORMULA.sub(r'<span class="kept">\1\2</span>', set_lines(once(TABLE_STYLE, body)))
    for neighbor in ("prev", "next"):
        if context.get(neighbor):
            title = re.sub(f"^{NUMBER}", NUMBERED, context[neighbor]["title"])
            context[neighbor] = {**context[neighbor], "title": title}
    if "generate_toctree_html" in context:
        context["generate_toctree_html"] = numbered(context["generate_toctree_html"])
    if "generate_toc_html" in context:
        context["generate_toc_html"] = broken_at_dots(context["generate_toc_html"])
    icon = context["pathto"]("_static/apple-touch-icon.png", resource=True)
    context["metatags"] = f'{context.get("metatags") or ""}\n<link rel="apple-touch-icon" href="{icon}" />\n'


def numbered(list_of_pages: Callable) -> Callable:
    """Return the theme's function for the list of pages, with its numbers wrapped in elements."""

    def listed(*given: object, **named: object) -> object:
        found = list_of_pages(*given, **named)
        return re.sub(rf"(?<=>){NUMBER}", NUMBERED, str(found)) if named.get("kind") == "sidebar" else found

    return listed


def broken_at_dots(list_of_sections: Callable) -> Callable:
    """Return the theme's function for the list of a page's sections, in which names of modules may be broken."""

    def listed(*given: object, **named: object) -> object:
        found = list_of_sections(*given, **named)
        return found if given or named else MODULE.sub(lambda name: name[0].replace(".", ".<wbr>"), str(found))

    return listed


def setup(app: Sphinx) -> dict[str, bool]:
    """Register everything above."""
    app.connect("doctree-read", put_time_below_question)
    app.connect("doctree-resolved", keep_percents)
    app.connect("html-page-context", number_chapters, priority=950)
    app.add_js_file("look.js", loading_method="defer")
    return {"parallel_read_safe": True, "parallel_write_safe": True}
