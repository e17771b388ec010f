"""How long a chapter takes, computed from the page and from its exercises, so that neither can say something else.

    ```{time-needed} 05_self_attention
    ```

writes the line "Time: ... minutes to read, ... for six exercises (30 points)". Where sections are asides (asides.py) it
says "... minutes to read (... with the asides)": the first number is that of the core.

Reading: the words of the page at WORDS a minute, its visible code at CODE_LINES a minute, and STUDIED minutes for each
figure, widget and displayed formula, which are there to be redone; rounded up to five minutes. The three numbers fit
the times that a newcomer needed for chapters 06 to 09: 65, 55, 85 and 115 minutes. The exercises' minutes and points
are those of the catalogue.
"""

import math
import re
import sys
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

ROOT = Path(__file__).resolve().parents[2]
WORDS, CODE_LINES = 130, 7  # a minute: of plain English in a second language; of Python that is new
STUDIED = 1.2  # minutes for a figure or a formula
SECTION = re.compile(r"^(?=\([\w-]+\)=\n## )", re.MULTILINE)  # each begins with its label
ASIDE = re.compile(r"^`{3}\{aside-section\}$", re.MULTILINE)
DROPDOWN = re.compile(r"^(?P<fence>:{3,})\{dropdown\}.*?^(?P=fence)$", re.DOTALL | re.MULTILINE)
NUMBERS = "no one two three four five six seven eight nine ten eleven twelve".split()

CELL = re.compile(r"^```\{code-(?:cell|block)\}[^\n]*\n(?P<body>.*?)^```$", re.DOTALL | re.MULTILINE)
UNREAD = [
    re.compile(r"\A---\n.*?^---$", re.DOTALL | re.MULTILINE),  # front matter
    re.compile(r"^```\{raw\}.*?^```$", re.DOTALL | re.MULTILINE),
    re.compile(r"^[ \t]*(?:`{3,}|:{3,})(?:\{[\w-]+\})?|^:[\w-]+:.*$|^\([\w-]+\)=$", re.MULTILINE),  # directives, labels
    re.compile(r"\{[\w:]+\}(?=`)"),  # the name of a role
]


def contents(text: str) -> tuple[int, int, int]:
    """Return the amount of text on a page: words, lines of visible code, figures and formulas."""
    lines, studied = 0, text.count('class="widget"') + text.count("$$") // 2
    for cell in CELL.finditer(text):
        if re.search(r"^:tags:.*hide-input", cell["body"], re.MULTILINE):
            studied += 1
        elif not re.search(r"^:tags:.*hide-cell", cell["body"], re.MULTILINE):
            lines += sum(bool(line.strip()) and not line.startswith(":") for line in cell["body"].splitlines())
    prose = CELL.sub("", text)
    for pattern in UNREAD:
        prose = pattern.sub("", prose)
    words = re.findall(r"[^\W_]+(?:['’.,][^\W_]+)*", prose)  # a number or a symbol is a word as well
    return len(words), lines, studied


def minutes_to_read(text: str) -> int:
    """Return the minutes a page takes to read, a multiple of five."""
    return 5 * math.ceil(_minutes(text) / 5)


def core(text: str) -> str:
    """Return a page without its folded parts: asides and answers."""
    return DROPDOWN.sub("", "".join(part for part in SECTION.split(text) if not ASIDE.search(part)))


def minutes_of_core(text: str) -> int:
    """Return the minutes the core of a page takes to read, a multiple of five; of a page without asides, all of it."""
    return minutes_to_read(core(text) if ASIDE.search(text) else text)


def minutes_of_aside(text: str, names: list[str]) -> int:
    """Return the minutes that the section with one of these labels takes; ValueError if the page has none."""
    for part in SECTION.split(text):
        label = re.match(r"\(([\w-]+)\)=", part)
        if label and label[1] in names:
            return math.ceil(_minutes(part))
    raise ValueError(f"an aside needs a label above its title: expected one of {names}")


def _minutes(text: str) -> float:
    words, lines, studied = contents(text)
    return words / WORDS + lines / CODE_LINES + studied * STUDIED


class TimeNeeded(SphinxDirective):
    """The line about time in a chapter's head; the argument is its assignment."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        if str(ROOT) not in sys.path:
            sys.path.append(str(ROOT))
        from autograder import catalogue  # the book is built from the repository that grades it

        (assignment,) = self.arguments
        for path in sorted((ROOT / "autograder" / "catalogue").glob(f"ch{assignment[:2]}_*/*.py")):
            self.env.note_dependency(str(path))
        assigned = catalogue.find_assignment(assignment)
        exercises = (*assigned.exercises, *assigned.by_hand)
        text = Path(self.env.doc2path(self.env.docname)).read_text(encoding="utf-8")
        short, whole = minutes_of_core(text), minutes_to_read(text)
        reading = f"{short} minutes to read" + (f" ({whole} with the asides)" if short < whole else "")
        said = (
            f" {reading}, {sum(e.minutes for e in exercises)} for {NUMBERS[len(exercises)]} exercises "
            f"({sum(e.points for e in exercises):g} points)."
        )
        return [nodes.paragraph("", "", nodes.strong("", "Time:"), nodes.Text(said), classes=["chapter-time"])]


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("time-needed", TimeNeeded)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
