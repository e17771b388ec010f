"""The page that a student reads after grading; nbgrader writes it (`nbgrader generate_feedback`).

It is made anew from the graded notebook and shows three things only: what the judge wrote, what a teacher wrote, and
the answers as submitted. The notebook's own output is left out: an answer could print the hidden inputs that
it was called with.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Any

from nbconvert.exporters import Exporter
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from nbgrader import utils
from nbgrader.api import Gradebook, MissingEntry
from traitlets import Unicode, default
from traitlets.config import Config

from autograder import catalogue, course
from autograder.address import book_address, link
from autograder.catalogue.exercise import Section
from autograder.course import CHECK_SUFFIX
from autograder.policy import course_time, late, times
from autograder.reports import pages, shared_comments
from autograder.reports.results import Result, configuration, notes_of, result_of, student_of
from autograder.reports.shared_comments import Comment

TO_ALL = "Your teacher writes to everyone whose answer gives these results:"


class FeedbackPage(Exporter):
    """Replaces nbconvert's HTML exporter in `nbgrader generate_feedback`."""

    book = Unicode("", help="Where the class reads the book; for what an empty one means see `autograder.address`.")
    book.tag(config=True)
    output_mimetype = "text/html"

    @default("file_extension")
    def _file_extension_default(self) -> str:
        return ".html"

    def from_notebook_node(
        self, nb: NotebookNode, resources: dict[str, Any] | None = None, **options: Any
    ) -> tuple[str, dict[str, Any]]:
        """The page of one graded notebook, whose cells have scores and comments from nbgrader's preprocessors."""
        nb, resources = super().from_notebook_node(nb, resources, **options)
        zone, root = course_time.zone_of(self.config), root_of(self.config)
        page = told(nb, resources["nbgrader"], book_address(self.book), zone, root, late.cost_in_words(self.config))
        return pages.page("feedback.html.j2", **vars(page), again=again(page), to_all=TO_ALL), resources


def root_of(settings: Config) -> Path:
    """The folder of the course that these settings are for."""
    named = settings.get("CourseDirectory", {}).get("root", "")
    return Path(named) if isinstance(named, str) and named else course.find_root()


def address_of_book(root: Path) -> str:
    """The address of the book for this course's class."""
    return book_address(configuration(root).FeedbackPage.get("book", ""))


@dataclass(frozen=True)
class Told:
    """The feedback on one graded notebook, from which a page or a notebook is made."""

    title: str
    student: str
    score: float
    possible: float
    penalty: float
    notes: tuple[str, ...]
    sections: list["Part"]
    next: "Part | None"
    due: str
    handed_in: str = ""
    late_cost: str = ""


def told(nb: NotebookNode, known: Mapping[str, Any], book: str, zone: tzinfo, root: Path, late_cost: str = "") -> Told:
    """The feedback on a graded notebook. known: the resources from nbgrader's GetGrades. zone: the course's, in which
    times are shown. root: the course's folder. late_cost: from `late.cost_in_words`."""
    stored = _of_gradebook(known)
    sections = _sections(nb, book, stored, shared_comments.read(root))
    return Told(
        title=pages.title(known["assignment"], known["notebook"]),
        student=_named(known),
        score=max(0.0, known["score"]),
        possible=known["max_score"],
        penalty=known["late_penalty"],
        notes=notes_of(nb),
        sections=sections,
        next=next((part for part in sections if part.to_do), None),
        due=times.shown(stored.due, zone) if stored.due else "",
        handed_in=times.shown(stored.handed_in, zone) if stored.due and stored.handed_in else "",
        late_cost=late_cost,
    )


def as_notebook(page: Told) -> NotebookNode:
    """The feedback as a notebook: texts, and the answers as code, without outputs."""
    points = f"**{pages.points(page.score)} of {pages.points(page.possible)} points**"
    dates = [f"{pages.points(page.penalty)} taken off because it came late."] if page.penalty else []
    dates += [f"It counts as handed in on {page.handed_in}; due was {page.due}."] if page.handed_in else []
    notes = [f"- {note}" for note in page.notes]
    head = [f"# {page.title}\n\nFeedback for {page.student}", points, *dates, *_next_step(page), *notes]
    cells = [new_markdown_cell("\n\n".join(head))]
    for part in page.sections:
        head = f"## {part.title}: {pages.points(part.points)} of {pages.points(part.possible)} points"
        reread = [f"Reread {part.reread}: {part.address}".rstrip(": ")] if part.reread else []
        hand = ["A teacher set these points by hand."] if part.by_hand else []
        comment = [f"Your teacher writes: {part.comment}"] if part.comment else []
        comment += [f"{TO_ALL} {part.shared}"] if part.shared else []
        report = [_fenced(part.report)] if part.report else []
        cells.append(new_markdown_cell("\n\n".join([head, f"{part.seen}.", *reread, *hand, *comment, *report])))
        if part.written:
            cells.append((new_code_cell if part.is_code else new_markdown_cell)(part.written))
    for place, cell in enumerate(cells):
        cell.id = f"feedback-{place}"  # equal feedback gives equal files
    return new_notebook(cells=cells)


def _next_step(page: Told) -> list[str]:
    if page.next is None:
        return []
    points = f"{pages.points(page.next.points)} of {pages.points(page.next.possible)} points"
    return [f"**Next:** {page.next.title}, which has {points}. {again(page)}"]


def again(page: Told) -> str:
    """What to do about the next exercise. The same whether the due date has passed or not: a page is compared with its
    current content (`reports.fresh`), and a student may read it at any time."""
    if not page.due:
        return "Change your answer, run its check, and hand the notebook in again."
    cost = f", which costs {page.late_cost}" if page.late_cost else ""
    return (
        f"Change your answer and run its check. If you hand the notebook in again by {page.due}, it is in time. "
        f"A later version is late as a whole{cost}."
    )


def _fenced(text: str) -> str:
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{text}\n{fence}"


def _named(known: Mapping[str, Any]) -> str:
    """The student's name with the id, if the gradebook has it."""
    try:
        with Gradebook(known["db_url"]) as gradebook:
            return student_of(gradebook.find_student(known["student"])).name_and_id
    except (KeyError, MissingEntry):
        return known["student"]


@dataclass(frozen=True)
class Part:
    """One exercise, or one cell that a person grades, as the page shows it. shared: the teacher's comment on all
    answers that behave like this one."""

    anchor: str
    title: str
    seen: str
    state: str
    points: float
    possible: float
    report: str = ""
    comment: str = ""
    shared: str = ""
    written: str = ""
    is_code: bool = True
    by_hand: bool = False
    reread: str = ""
    address: str = ""
    to_do: bool = False


@dataclass(frozen=True)
class Stored:
    """The gradebook's data about one notebook. unread: cells that wait for a person. due: this student's due date;
    handed_in: the time from which lateness counts (UTC). comments: cell's name -> a person's comment."""

    unread: frozenset[str] = frozenset()
    due: datetime | None = None
    handed_in: datetime | None = None
    comments: Mapping[str, str] = field(default_factory=dict)


def _of_gradebook(known: Mapping[str, Any]) -> Stored:
    try:
        with Gradebook(known["db_url"]) as gradebook:
            notebook = gradebook.find_submission_notebook(known["notebook"], known["assignment"], known["student"])
            unread = (grade for grade in notebook.grades if grade.needs_manual_grade and grade.manual_score is None)
            submission = notebook.assignment
            return Stored(
                frozenset(grade.name for grade in unread),
                submission.duedate if submission.assignment.duedate else None,
                submission.timestamp,
                {comment.name: comment.manual_comment or "" for comment in notebook.comments},
            )
    except (KeyError, MissingEntry):
        return Stored()


def _sections(nb: NotebookNode, book: str, stored: Stored, comments: Sequence[Comment]) -> list[Part]:
    answers = {cell.metadata.nbgrader.grade_id: cell for cell in nb.cells if utils.is_solution(cell)}
    sections = []
    for cell in nb.cells:
        if not utils.is_grade(cell) and not utils.is_task(cell):
            continue
        exercise = catalogue.find(cell.metadata.nbgrader.grade_id.removesuffix(CHECK_SUFFIX))
        if exercise is None:
            sections.append(_graded_by_hand(cell, stored))
        else:
            result = result_of(exercise, cell, cell.metadata.nbgrader.score)
            shared = shared_comments.about(comments, result)
            sections.append(_judged(result, answers.get(exercise.id), stored, book, shared))
    return sections


def _graded_by_hand(cell: NotebookNode, stored: Stored) -> Part:
    graded = cell.metadata.nbgrader
    waits = graded.grade_id in stored.unread
    return Part(
        anchor=graded.grade_id,
        title=graded.grade_id.replace("-", " "),
        seen="waits for a person who reads it; its points are still to come" if waits else "read by a person",
        state="blank" if waits else "right" if graded.score >= graded.points else "wrong" if graded.score else "blank",
        points=graded.score,
        possible=graded.points,
        comment=stored.comments.get(graded.grade_id, ""),
        written=cell.source,
        is_code=cell.cell_type == "code",
    )


def _judged(result: Result, answer: NotebookNode | None, stored: Stored, book: str, shared: str = "") -> Part:
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
        comment=stored.comments.get(exercise.id, ""),
        shared=shared,
        written=answer.source if answer is not None else "",
        by_hand=result.by_hand,
        to_do=not (result.passed or result.by_hand) and (result.checked or result.blank),
        reread=f'{section.chapter}, "{section.title}"' if section else "",
        address=link(book, section) if section else "",
    )


def seen(result: Result) -> str:
    """The judge's result in a few words."""
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
    """The section of the book to reread for this result; None if nothing is wrong."""
    if result.passed:
        return None
    return result.misconception.reread if result.misconception else result.exercise.section
