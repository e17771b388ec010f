"""The page that a student reads after grading; nbgrader writes it (`nbgrader generate_feedback`).

It is made anew from the graded notebook and shows three things only: what the judge wrote, what a teacher wrote, and
the answers as they were handed in. What the notebook printed is left out: an answer could print the hidden inputs that
it was asked with.
"""

from dataclasses import dataclass
from typing import Any

from nbconvert.exporters import Exporter
from nbformat import NotebookNode
from nbgrader import utils
from traitlets import Unicode, default

from autograder import catalogue, pages
from autograder.course import CHECK_SUFFIX
from autograder.exercise import Section
from autograder.results import Result, notes_of, result_of


class FeedbackPage(Exporter):
    """Takes the place of nbconvert's HTML exporter in `nbgrader generate_feedback`."""

    book = Unicode(
        "http://127.0.0.1:8000", help="Where the class reads the book; the default is where `make serve` puts it."
    ).tag(config=True)
    output_mimetype = "text/html"

    @default("file_extension")
    def _file_extension_default(self) -> str:
        return ".html"

    def from_notebook_node(
        self, nb: NotebookNode, resources: dict[str, Any] | None = None, **options: Any
    ) -> tuple[str, dict[str, Any]]:
        """The page of one graded notebook; nbgrader's preprocessors have put scores and comments into its cells."""
        nb, resources = super().from_notebook_node(nb, resources, **options)
        known = resources["nbgrader"]
        return pages.render(
            "feedback.html.j2",
            title=pages.title(known["assignment"], known["notebook"]),
            student=known["student"],
            score=max(0.0, known["score"]),
            possible=known["max_score"],
            penalty=known["late_penalty"],
            notes=notes_of(nb),
            sections=_sections(nb, self.book),
        ), resources


@dataclass(frozen=True)
class Part:
    """One exercise, or one cell that a person grades, as the page shows it."""

    anchor: str
    title: str
    seen: str
    state: str
    points: float
    possible: float
    report: str = ""
    comment: str = ""
    written: str = ""
    is_code: bool = True
    by_hand: bool = False
    reread: str = ""
    address: str = ""


def _sections(nb: NotebookNode, book: str) -> list[Part]:
    answers = {cell.metadata.nbgrader.grade_id: cell for cell in nb.cells if utils.is_solution(cell)}
    sections = []
    for cell in nb.cells:
        if not utils.is_grade(cell) and not utils.is_task(cell):
            continue
        exercise = catalogue.find(cell.metadata.nbgrader.grade_id.removesuffix(CHECK_SUFFIX))
        if exercise is None:
            sections.append(_graded_by_hand(cell))
        else:
            result = result_of(exercise, cell, cell.metadata.nbgrader.score)
            sections.append(_judged(result, answers.get(exercise.id), book))
    return sections


def _graded_by_hand(cell: NotebookNode) -> Part:
    graded = cell.metadata.nbgrader
    return Part(
        anchor=graded.grade_id,
        title=graded.grade_id.replace("-", " "),
        seen="read by a person",
        state="right" if graded.score >= graded.points else "wrong" if graded.score else "blank",
        points=graded.score,
        possible=graded.points,
        comment=graded.get("comment") or "",
        written=cell.source,
        is_code=cell.cell_type == "code",
    )


def _judged(result: Result, answer: NotebookNode | None, book: str) -> Part:
    exercise = result.exercise
    section = reread(result)
    return Part(
        anchor=exercise.id,
        title=f"{exercise.number} {exercise.names[0]}",
        seen=seen(result),
        state="right" if result.passed else "blank" if result.blank else "wrong",
        points=result.points,
        possible=exercise.points,
        report="" if result.passed else result.report.rstrip(),
        comment=(answer.metadata.nbgrader.get("comment") or "") if answer is not None else "",
        written=answer.source if answer is not None else "",
        by_hand=result.by_hand,
        reread=f'{section.chapter}, "{section.title}"' if section else "",
        address=pages.link(book, section) if section else "",
    )


def seen(result: Result) -> str:
    """In a few words, what the judge saw."""
    if result.passed:
        return "every check passed"
    if result.blank:
        return "not answered yet"
    if result.forbidden:
        return "a call that this exercise does not allow"
    if result.misconception:
        return f"a known mistake: {result.misconception.name}"
    if not result.checked:
        return "not checked"
    return "a check failed" if result.asked else "nothing to check yet"


def reread(result: Result) -> Section | None:
    """The section of the book that answers this result; None when nothing is wrong."""
    if result.passed:
        return None
    return result.misconception.reread if result.misconception else result.exercise.section
