"""The landing page: a translator that has translated one sentence already, and the clickable map of the course.

    ```{live-translator}
    ```

shows the first recorded sentence with what the model looked at, before any weights are fetched (assets/ch00.js).

    ```{course-map}
    # The machine
    05 | Self-attention | How does a word listen to its sentence?
    ```

A chapter that has a page is a link to it, with minutes and points computed as in its own head (reading_time.py); one
that has none is said not to be written yet. How much was read is kept by the reader's browser alone: assets/front.js
notes it on each chapter and shows it on the map.
"""

import json
from html import escape
from pathlib import Path

from docutils import nodes
from reading_time import minutes_of_core
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

ROOT = Path(__file__).resolve().parents[2]
RECORD = ROOT / "transformer_ref" / "recorded" / "live_model.json"
SUMMARY = (
    '<p class="course-sum">{count} chapters so far: {read} hours to read, '
    "{solve} hours and {points:g} points of exercises.</p>"
)


class LiveTranslator(SphinxDirective):
    """The widget of chapter 00 with a recorded sentence in it, which is also shown without JavaScript."""

    def run(self) -> list[nodes.Node]:
        self.env.note_dependency(str(RECORD))
        recorded = json.loads(RECORD.read_text(encoding="utf-8"))["sentences"][0]
        safe = json.dumps(recorded, ensure_ascii=False).replace("<", "\\u003c")
        said = f"{escape(recorded['text'])} → <span lang='it'>{escape(recorded['translation'])}</span>"
        html = f"""<div class="widget translated" data-live-translator id="live-translator"><p>{said}</p>
<script type="application/json">{safe}</script></div>
<script defer src="_static/live_model.js"></script>
<script defer src="_static/ch00.js"></script>"""
        return [nodes.raw("", html, format="html")]


class CourseMap(SphinxDirective):
    """The chapters in rows under headings."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        self.pages = {page[:2]: page for page in sorted(self.env.found_docs) if page[:2].isdigit()}
        self.sums = {"count": 0, "read": 0, "solve": 0, "points": 0}
        rows, opened = [], False
        for line in filter(None, self.content):
            if line.startswith("#"):
                rows.append(f"{'</ol>' if opened else ''}<h3>{escape(line.strip('# '))}</h3><ol>")
                opened = True
            else:
                rows.append(self._card(*(part.strip() for part in line.split("|"))))
        hours = {name: round(self.sums[name] / 60) for name in ("read", "solve")}
        said = SUMMARY.format(**(self.sums | hours))
        rows_of_cards = f"{''.join(rows)}</ol>"
        html = f'{said}<section class="course-map" aria-label="Map of the course">{rows_of_cards}</section>'
        return [nodes.raw("", html, format="html")]

    def _card(self, number: str, title: str, question: str) -> str:
        asks = f"<span>{escape(question)}</span>"
        if (page := self.pages.get(number)) is None:
            facts = "<small>not written yet</small>"
            return f'<li class="planned" data-number="{number}">{escape(title)} {asks} {facts}</li>'
        reading, solving, points, count = self._costs(number, page)
        facts = f"<small>{reading} min to read, <br>{solving} min for {count} exercises, {points:g} points</small>"
        name = f'<a href="{page}.html">{escape(title)}</a>'
        return f'<li class="open" data-number="{number}" data-chapter="{number}">{name} {asks} {facts}</li>'

    def _costs(self, number: str, page: str) -> tuple[int, int, float, int]:
        from autograder import catalogue  # the book is built from the repository that grades it

        path = Path(self.env.doc2path(page))
        for needed in (path, *(ROOT / "autograder" / "catalogue").glob(f"ch{number}_*/*.py")):
            self.env.note_dependency(str(needed))
        assigned = catalogue.find_assignment(page)
        exercises = (*assigned.exercises, *assigned.by_hand)
        reading = minutes_of_core(path.read_text(encoding="utf-8"))
        solving, points = sum(e.minutes for e in exercises), sum(e.points for e in exercises)
        for name, amount in (("count", 1), ("read", reading), ("solve", solving), ("points", points)):
            self.sums[name] += amount
        return reading, solving, points, len(exercises)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directives and the script that marks chapters as read."""
    app.add_directive("live-translator", LiveTranslator)
    app.add_directive("course-map", CourseMap)
    app.add_js_file("front.js", loading_method="defer")
    app.add_css_file("front.css")
    return {"parallel_read_safe": True, "parallel_write_safe": True}
