"""Writes a class's own rules into its notebooks: a step of `nbgrader generate_assignment`, before its checksums."""

import json
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path

from nbformat import NotebookNode, from_dict
from nbgrader import utils
from nbgrader.api import Gradebook, MissingEntry
from nbgrader.converters.base import NbGraderException
from nbgrader.preprocessors import NbGraderPreprocessor
from traitlets import Bool, Unicode

from autograder import course
from autograder.address import book_address, for_pip, linked
from autograder.catalogue.exercise import Assignment
from autograder.policy import course_time, deadlines
from autograder.reports import results

IMPORTED = re.compile(r"^(from autograder\.check import (?:\w+, )*)check\b(?! as )", re.MULTILINE)
VISIBLE = "visible_check as check"


NOT_IMPORTED = (
    "c.HandOut.whole_checks is False: expected a code cell with the line `from autograder.check import check, "
    "progress`, found none"
)


# Before the source of the first locked cell.
INSTALLS = """\
import importlib.util

COURSE = {course}  # in Colab: the address of the course, as your teacher gives it, such as "git+https://..."
if importlib.util.find_spec("autograder") is None:
    if not COURSE:
        raise ModuleNotFoundError("The course is not installed. Write its address into COURSE, and run this again.")
    get_ipython().run_line_magic("pip", f"install --quiet {{COURSE}}")
    importlib.invalidate_caches()
    print("The course is installed. Colab forgets your work after some hours: File, Save a copy in Drive keeps it.")

"""


class HandOut(NbGraderPreprocessor):
    """Applies the course's settings, in nbgrader_config.py, to the released notebooks."""

    whole_checks = Bool(True, help="whether check() also runs the hidden checks, on inputs that it draws").tag(
        config=True
    )
    course = Unicode(
        "", help="where pip finds the course, for notebooks in Colab (default: see `address.for_pip`)"
    ).tag(config=True)

    def preprocess(self, nb: NotebookNode, resources: dict) -> tuple[NotebookNode, dict]:
        """Link to the class's book; write the due date; let the first locked cell install the course if it is missing;
        import the visible check instead of the whole one, if that is set.

        Raises NbGraderException if no code cell imports `check` in a known way.
        """
        address = book_address(self.config.FeedbackPage.get("book", ""))
        for cell in nb.cells if address else []:
            cell.source = linked(cell.source, address)
        deadlines.write(nb, _due(resources.get("nbgrader", {})), course_time.zone_of(self.config))
        nb.cells = [from_dict(cell) for cell in nb.cells]
        first = next((cell for cell in nb.cells if cell.cell_type == "code" and utils.is_locked(cell)), None)
        if first is not None:
            first.source = INSTALLS.format(course=json.dumps(for_pip(self.course))) + first.source
        if self.whole_checks:
            return nb, resources
        for cell in nb.cells:
            if cell.cell_type == "code":
                cell.source = IMPORTED.sub(rf"\1{VISIBLE}", cell.source)
        if not any(VISIBLE in source for source in _sources(nb)):
            raise NbGraderException(NOT_IMPORTED)
        return nb, resources


def _due(known: Mapping[str, str]) -> datetime | None:
    """The due date (UTC) in the gradebook; None if there is none."""
    if not known.get("db_url"):
        return None
    with Gradebook(known["db_url"]) as gradebook:
        try:
            return gradebook.find_assignment(known["assignment"]).duedate
        except MissingEntry:
            return None


def asks_everything(notebook: dict) -> bool:
    """Whether a released notebook's `check` runs the hidden checks too."""
    return not any(VISIBLE in source for source in _sources(notebook))


def refuse(root: Path, assignment: Assignment) -> None:
    """Raise CourseError if the course's settings cannot be applied to the solution's notebook."""
    decided = results.configuration(root).HandOut.get("whole_checks", HandOut.whole_checks.default_value)
    path = course.notebook_path(root, "solutions", assignment)
    if not decided and not any(IMPORTED.search(source) for source in _sources(course.read_notebook(path))):
        raise course.CourseError(f"{path}: {NOT_IMPORTED}.")


def _sources(notebook: dict) -> Iterator[str]:
    for cell in notebook["cells"]:
        if cell.get("cell_type") == "code":
            yield "".join(cell["source"])
