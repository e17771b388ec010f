"""Feedback pages that say what the gradebook says now: a person may have given points or written since.

nbgrader keeps a page that is there, whatever has changed in the gradebook. So a page is made once more and compared: it
depends on nothing but the graded notebook, the gradebook and the course's settings.
"""

import functools
from pathlib import Path

import nbformat
from nbgrader.converters import GenerateFeedback
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import GetGrades
from traitlets.config import Config

from transformer_ref.atomic_write import atomic_write

OURS = "autograder.reports.feedback.FeedbackPage"  # imported late: with torch, which most of nbgrader does without


def stale_pages(places: CourseDirectory, settings: Config, assignment: str, student: str) -> dict[Path, str]:
    """A student's pages that contradict the gradebook -> their current content.

    Empty if there is no page yet, and if the course writes another kind of pages.
    """
    named = settings.get("GenerateFeedback", {}).get("exporter_class", "")
    if named != OURS and f"{getattr(named, '__module__', '')}.{getattr(named, '__qualname__', '')}" != OURS:
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


def install() -> None:
    """Let `nbgrader generate_feedback` rewrite pages that contradict the gradebook."""
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

    GenerateFeedback.init_destination = init_destination


def _page(places: CourseDirectory, settings: Config, assignment: str, student: str, path: Path) -> str | None:
    from autograder.reports.feedback import FeedbackPage

    known = {"student": student, "assignment": assignment, "notebook": path.stem, "db_url": places.db_url}
    try:
        notebook = nbformat.read(path, as_version=4)
        notebook, resources = GetGrades().preprocess(notebook, {"nbgrader": known})
        return FeedbackPage(config=settings).from_notebook_node(notebook, resources)[0]
    except (OSError, ValueError, KeyError, AttributeError):  # no notebook, or one that the gradebook does not know
        return None
