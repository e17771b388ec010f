"""Feedback pages that say what the gradebook says now: a person may have given points or written since.

nbgrader keeps a page that is there, whatever has changed in the gradebook. So a page is made once more and compared: it
depends on nothing but the graded notebook, the gradebook and the course's settings.
"""

import functools
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode
from nbgrader.converters import GenerateFeedback
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import GetGrades
from traitlets.config import Config

from autograder.course import CourseError
from transformer_ref.atomic_write import atomic_write

QUIET = logging.getLogger(f"{__name__}.quiet")
QUIET.disabled = True
OURS = "autograder.reports.feedback.FeedbackPage"  # imported late: with torch, which most of nbgrader does without


def stale_pages(places: CourseDirectory, settings: Config, assignment: str, student: str) -> dict[Path, str]:
    """A student's pages that contradict the gradebook -> their current content.

    Empty if there is no page yet, and if the course writes another kind of pages.
    """
    named = settings.get("GenerateFeedback", {}).get("exporter_class", "")
    if name_of(named) != OURS:
        return {}
    there = Path(places.format_path(places.feedback_directory, student, assignment))
    graded = Path(places.format_path(places.autograded_directory, student, assignment))
    found = {}
    for page in sorted(there.glob("*.html")):
        notebook = graded / f"{page.stem}.ipynb"
        if notebook.is_file() and (text := _page(places, settings, assignment, student, notebook)) is not None:
            if page.read_text(encoding="utf-8") != text:
                found[page] = text
    return found


def remake(places: CourseDirectory, settings: Config, assignment: str, student: str) -> bool:
    """Rewrite the pages that are out of date; returns whether there were any."""
    stale = stale_pages(places, settings, assignment, student)
    for page, text in stale.items():
        atomic_write(page, text)
    return bool(stale)


def with_grades(notebook: NotebookNode, known: Mapping[str, Any]) -> tuple[NotebookNode, dict[str, Any]]:
    """The graded notebook with the gradebook's points and comments, and nbgrader's resources with the score.

    Without nbgrader's log line for each late penalty, which does not name the student.
    """
    return GetGrades(log=QUIET).preprocess(notebook, {"nbgrader": {**known}})


def name_of(setting: object) -> str:
    """The full name of a class in nbgrader's configuration, which may give the class or its name."""
    if isinstance(setting, str):
        return setting
    return f"{getattr(setting, '__module__', '')}.{getattr(setting, '__qualname__', '')}"


def install() -> None:
    """Let `nbgrader generate_feedback` rewrite pages that contradict the gradebook, and name grades by older rules."""
    plain = GenerateFeedback.init_destination
    if hasattr(plain, "__wrapped__"):
        return

    @functools.wraps(plain)
    def init_destination(converter: GenerateFeedback, assignment_id: str, student_id: str) -> bool:
        wanted = plain(converter, assignment_id, student_id)
        if not wanted and not converter.force:
            if stale_pages(converter.coursedir, converter.config, assignment_id, student_id):
                converter.log.warning(f"{student_id}: the gradebook has changed since this feedback was written")
                converter.force = True
                try:
                    return plain(converter, assignment_id, student_id)
                finally:
                    converter.force = False
        return wanted

    started = GenerateFeedback.start

    @functools.wraps(started)
    def start(converter: GenerateFeedback) -> None:
        from autograder.grade.older_rules import remarks

        started(converter)
        try:
            lines = remarks(Path(converter.coursedir.root), converter.coursedir.assignment_id)
        except CourseError as error:  # the pages are there; only what else to look at is unknown
            lines = [str(error)]
        for line in lines:
            converter.log.warning(line)

    GenerateFeedback.init_destination, GenerateFeedback.start = init_destination, start


def _page(places: CourseDirectory, settings: Config, assignment: str, student: str, path: Path) -> str | None:
    from autograder.reports.feedback import FeedbackPage

    known = {"student": student, "assignment": assignment, "notebook": path.stem, "db_url": places.db_url}
    try:
        notebook, resources = with_grades(nbformat.read(path, as_version=4), known)
        return FeedbackPage(config=settings).from_notebook_node(notebook, resources)[0]
    except (OSError, ValueError, KeyError, AttributeError):  # no notebook, or one that the gradebook does not know
        return None
