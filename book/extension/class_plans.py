"""What is computed on the teachers' pages: a syllabus, the machine that a class needs, the size of the data set.

    ```{syllabus} 8            the course in so many weeks: what is read, what is handed in, hours and points
    ```
    ```{bonus-chapters}        the chapters after the capstone, each for itself
    ```
    ```{class-machines} 30 300 3000     how long grading takes for classes of these sizes
    ```
    ```{who-identifies}        how many known mistakes a score, unit tests and the judge identify
    ```
    {known-mistakes-counted}`lines`     how many known mistakes there are

Hours are those that the chapters' own heads say; grading is what was measured and recorded. Nothing here is written
twice.
"""

import json
import math
import sys
from dataclasses import dataclass
from functools import cache
from itertools import combinations, pairwise
from pathlib import Path

from docutils import nodes
from docutils.statemachine import StringList
from reading_time import minutes_to_read
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective, SphinxRole

ROOT = Path(__file__).resolve().parents[2]
WHOLE_CLASS = ROOT / "autograder" / "grade" / "recorded_grading.json"
EACH_CHAPTER = ROOT / "autograder" / "grade" / "recorded_chapters.json"
IDENTIFIED = ROOT / "autograder" / "prepare" / "recorded_identification.json"
LAST = "12_capstone"  # of the course; what follows is a bonus
CORES = (2, 4, 8, 16, 32, 64)
NIGHT = 10.0  # hours in which a class should be graded


@dataclass(frozen=True)
class Chapter:
    """A chapter's minutes to read and to solve, points, page and title."""

    page: str
    title: str
    reading: int
    solving: int
    points: float

    @property
    def minutes(self) -> int:
        return self.reading + self.solving


def chapters() -> tuple[Chapter, ...]:
    """The chapters of the course, in order, with the capstone as the last."""
    return tuple(each for each in _all_chapters() if each.page <= LAST)


def bonus() -> list[str]:
    """The chapters after the capstone as lines of a Markdown table."""
    lines = ["| chapter | hours to read | hours to solve | points |", "|---|--:|--:|--:|"]
    for each in _all_chapters():
        if each.page > LAST:
            named = f"{{doc}}`{each.title} </{each.page}>`"
            lines.append(f"| {named} | {hours(each.reading)} | {hours(each.solving)} | {each.points:g} |")
    return lines


@cache
def _all_chapters() -> tuple[Chapter, ...]:
    if str(ROOT) not in sys.path:
        sys.path.append(str(ROOT))
    from autograder import catalogue
    from autograder.catalogue.sections import chapter_title

    found = []
    for assignment in catalogue.ASSIGNMENTS:
        text = (ROOT / "book" / f"{assignment.id}.md").read_text(encoding="utf-8")
        solving = sum(each.minutes for each in (*assignment.exercises, *assignment.by_hand))
        title = f"{assignment.id[:2]} {chapter_title(assignment.id[:2])}"
        found.append(Chapter(assignment.id, title, minutes_to_read(text), solving, assignment.points))
    return tuple(found)


def weeks(planned: tuple[Chapter, ...], number: int) -> list[tuple[Chapter, ...]]:
    """The chapters in order, split into weeks so that the longest week is as short as possible.

    Raises ValueError if there are more weeks than chapters.
    """
    if not 1 <= number <= len(planned):
        raise ValueError(f"weeks: expected 1 to {len(planned)}, got {number}")

    def longest(cuts: tuple[int, ...]) -> tuple[int, int]:
        sums = [sum(chapter.minutes for chapter in week) for week in _cut(planned, cuts)]
        return max(sums), sum(each * each for each in sums)  # among equals the most even one

    return _cut(planned, min(combinations(range(1, len(planned)), number - 1), key=longest))


def _cut(planned: tuple[Chapter, ...], cuts: tuple[int, ...]) -> list[tuple[Chapter, ...]]:
    ends = (0, *cuts, len(planned))
    return [planned[begin:end] for begin, end in pairwise(ends)]


def hours(minutes: float) -> str:
    """Minutes as hours, to the next quarter."""
    return f"{math.ceil(minutes / 15) / 4:g}"


def syllabus(number: int) -> list[str]:
    """The plan as lines of a Markdown table."""
    lines = ["| week | chapters | hours to read | hours to solve | points |", "|---|---|--:|--:|--:|"]
    for place, week in enumerate(weeks(chapters(), number), 1):
        named = ", ".join(f"{{doc}}`{chapter.title} </{chapter.page}>`" for chapter in week)
        reading, solving = sum(each.reading for each in week), sum(each.solving for each in week)
        points = sum(each.points for each in week)
        lines.append(f"| {place} | {named} | {hours(reading)} | {hours(solving)} | {points:g} |")
    everything = chapters()
    reading, solving = sum(each.reading for each in everything), sum(each.solving for each in everything)
    points = sum(each.points for each in everything)
    return [*lines, f"| | **in all** | **{hours(reading)}** | **{hours(solving)}** | **{points:g}** |"]


@dataclass(frozen=True)
class Costs:
    """Seconds of one core for a submission: the usual chapter, the most expensive one, and the maximum for the
    capstone; and the memory of a worker and of the writer, in MB."""

    usual: float
    dearest: float
    capstone: float
    worker: int
    writer: int


@cache
def costs() -> Costs:
    """The measured costs, and the capstone's budget."""
    if str(ROOT) not in sys.path:
        sys.path.append(str(ROOT))
    from autograder import catalogue

    whole = json.loads(WHOLE_CLASS.read_text(encoding="utf-8"))
    usual = whole["seconds"]["ours"] * whole["cores"] / whole["submissions"]
    noted = json.loads(EACH_CHAPTER.read_text(encoding="utf-8"))
    used = {chapter: each["processor_seconds"] for chapter, each in noted.items()}
    dearest = usual * max(used.values()) / used[whole["assignment"]]  # measured alike, so their ratio holds
    trained = next(assignment for assignment in catalogue.ASSIGNMENTS if assignment.notebook_seconds)
    memory = whole["megabytes_at_the_end"]
    return Costs(usual, dearest, trained.notebook_seconds, memory["worker"], memory["writer"])


def cores_for(size: int, seconds: float) -> int:
    """The smallest number in CORES that grades a class in a night; the largest if none does."""
    return next((cores for cores in CORES if size * seconds / cores / 3600 <= NIGHT), CORES[-1])


def machines(sizes: list[int]) -> list[str]:
    """The machines for classes of each size, as lines of a Markdown table."""
    known = costs()
    lines = [
        "| class | cores | memory | a usual chapter | the dearest | the capstone, at most |",
        "|--:|--:|--:|--:|--:|--:|",
    ]
    for size in sizes:
        cores = cores_for(size, known.capstone)
        memory = math.ceil((known.writer + cores * known.worker) / 1000)
        times = (_time(size * each / cores) for each in (known.usual, known.dearest, known.capstone))
        lines.append(f"| {size:,} | {cores} | {memory} GB | {' | '.join(times)} |")
    return lines


def identified() -> list[str]:
    """The number of known mistakes that each method identifies, as lines of a Markdown table."""
    if str(ROOT) not in sys.path:
        sys.path.append(str(ROOT))
    from autograder.prepare import identification

    total = sum(identification.recorded().values(), identification.Count())
    lines = ["| who reads | can identify | of all |", "|---|--:|--:|"]
    for way, meaning in identification.WAYS.items():
        number = getattr(total, way)
        lines.append(f"| {meaning} | {number:,} | {number / total.mistakes:.1%} |")
    return lines


def _time(seconds: float) -> str:
    if seconds < 90:
        return f"{math.ceil(seconds)} s"
    return f"{math.ceil(seconds / 60)} min" if seconds < 90 * 60 else f"{math.ceil(seconds / 360) / 10:g} h"


class Table(SphinxDirective):
    """A computed Markdown table, parsed by the page's own parser so that its links work."""

    optional_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        numbers = [int(word) for word in " ".join(self.arguments).split()]
        for path in (WHOLE_CLASS, EACH_CHAPTER, IDENTIFIED, *(ROOT / "autograder" / "catalogue").glob("ch*/*.py")):
            self.env.note_dependency(str(path))
        for chapter in _all_chapters():
            self.env.note_dependency(str(ROOT / "book" / f"{chapter.page}.md"))
        made = {
            "syllabus": lambda: syllabus(*numbers),
            "bonus-chapters": bonus,
            "class-machines": lambda: machines(numbers),
            "who-identifies": identified,
        }
        lines = made[self.name]()
        holder = nodes.Element()
        self.state.nested_parse(StringList(lines, source="computed"), self.content_offset, holder)
        return holder.children


class Counted(SphinxRole):
    """The number of known mistakes in the bank: its `lines`, of `exercises` in `chapters`."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        _all_chapters()  # so that the catalogue can be imported
        from autograder import catalogue

        exercises = [each for assignment in catalogue.ASSIGNMENTS for each in assignment.exercises]
        counted = {
            "lines": sum(len(each.mistakes) for each in exercises),
            "exercises": len(exercises),
            "chapters": len(catalogue.ASSIGNMENTS),
        }
        return [nodes.Text(f"{counted[self.text]:,}")], []


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directives."""
    app.add_directive("syllabus", Table)
    app.add_directive("bonus-chapters", Table)
    app.add_directive("class-machines", Table)
    app.add_directive("who-identifies", Table)
    app.add_role("known-mistakes-counted", Counted())
    return {"parallel_read_safe": True, "parallel_write_safe": True}
