"""What was handed in, made fit for grading: no file of one student may stop the grading of another."""

from typing import Any

import nbformat
from nbconvert.exporters import NotebookExporter
from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell
from nbgrader.preprocessors import NbGraderPreprocessor

from autograder import catalogue, course


class SubmissionExporter(NotebookExporter):
    """Reads a submission. One that is no notebook is graded as a blank that says so, instead of stopping the class."""

    def from_filename(self, filename: str, resources: Any = None, **options: Any) -> tuple[str, dict[str, Any]]:
        """Convert the file, or the released notebook with the reason on top when the file cannot be read."""
        try:
            notebook = nbformat.read(filename, as_version=4)
        except Exception as error:  # nbformat raises many kinds for a broken file
            reason = " ".join(str(error).split())[:200]
            print(f"UNREADABLE, graded as a blank: {filename}: {reason}. Ask for the file again.", flush=True)
            notebook = _blank(resources["nbgrader"]["assignment"], reason)
        return self.from_notebook_node(notebook, resources=resources, **options)


class FirstOfEachCell(NbGraderPreprocessor):
    """Takes the grading marks off a copied cell, so that a copy costs nobody anything."""

    def preprocess(self, nb: NotebookNode, resources: dict[str, Any]) -> tuple[NotebookNode, dict[str, Any]]:
        """Keep the first cell of every grade id as it is."""
        seen: set[str] = set()
        for cell in nb.cells:
            grade_id = cell.metadata.get("nbgrader", {}).get("grade_id")
            if grade_id in seen:
                del cell.metadata["nbgrader"]
            elif grade_id:
                seen.add(grade_id)
        return nb, resources


def _blank(assignment_id: str, reason: str) -> NotebookNode:
    assignment = catalogue.find_assignment(assignment_id)
    notebook = nbformat.read(course.notebook_path(course.find_root(), "exercises", assignment), as_version=4)
    note = f"**The file that was handed in could not be read as a notebook** ({reason}). Please hand it in again."
    notebook.cells.insert(0, new_markdown_cell(note, id="unreadable"))
    return notebook
