"""What a class's notebooks say of its own rules: a step of `nbgrader generate_assignment`, before its checksums."""

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path

from nbformat import NotebookNode, from_dict
from nbgrader.api import Gradebook, MissingEntry
from nbgrader.converters.base import NbGraderException
from nbgrader.preprocessors import NbGraderPreprocessor
from traitlets import Bool

from autograder import course
from autograder.address import book_address, linked
from autograder.catalogue.exercise import Assignment
from autograder.policy import course_time, deadlines
from autograder.reports import results

IMPORTED = re.compile(r"^(from autograder\.check import (?:\w+, )*)check\b(?! as )", re.MULTILINE)
VISIBLE = "visible_check as check"


NOT_IMPORTED = (
    "c.HandOut.whole_checks is False: expected a code cell with the line `from autograder.check import check, "
    "progress`, found none"
)


class HandOut(NbGraderPreprocessor):
    """Lets the notebooks' `check` ask what the course has decided, in nbgrader_config.py."""

    whole_checks = Bool(True, help="whether check() also runs the hidden checks, on inputs that it draws").tag(
        config=True
    )

    def preprocess(self, nb: NotebookNode, resources: dict) -> tuple[NotebookNode, dict]:
        """Link to the book where the class reads it; say when the notebook is due; import the visible check in the
        place of the whole one, where that was decided.

        Raises NbGraderException where no code cell imports `check` in the way that is known here.
        """
        address = book_address(self.config.FeedbackPage.get("book", ""))
        for cell in nb.cells if address else []:
            cell.source = linked(cell.source, address)
        deadlines.write(nb, _due(resources.get("nbgrader", {})), course_time.zone_of(self.config))
        nb.cells = [from_dict(cell) for cell in nb.cells]
        if self.whole_checks:
            return nb, resources
        for cell in nb.cells:
            if cell.cell_type == "code":
                cell.source = IMPORTED.sub(rf"\1{VISIBLE}", cell.source)
        if not any(VISIBLE in source for source in _sources(nb)):
            raise NbGraderException(NOT_IMPORTED)
        return nb, resources


def _due(known: Mapping[str, str]) -> datetime | None:
    """When the assignment is due (UTC), by the gradebook; None where it does not say."""
    if not known.get("db_url"):
        return None
    with Gradebook(known["db_url"]) as gradebook:
        try:
            return gradebook.find_assignment(known["assignment"]).duedate
        except MissingEntry:
            return None


def asks_everything(notebook: dict) -> bool:
    """Whether a released notebook's `check` asks the hidden checks too."""
    return not any(VISIBLE in source for source in _sources(notebook))


def refuse(root: Path, assignment: Assignment) -> None:
    """Raise CourseError where the solution's notebook cannot say what the course has decided."""
    decided = results.configuration(root).HandOut.get("whole_checks", HandOut.whole_checks.default_value)
    path = course.notebook_path(root, "solutions", assignment)
    if not decided and not any(IMPORTED.search(source) for source in _sources(course.read_notebook(path))):
        raise course.CourseError(f"{path}: {NOT_IMPORTED}.")


def _sources(notebook: dict) -> Iterator[str]:
    for cell in notebook["cells"]:
        if cell.get("cell_type") == "code":
            yield "".join(cell["source"])
