"""Whole classes graded once by nbgrader's own commands; the tests read what came out."""

import json
from dataclasses import dataclass
from pathlib import Path

import pytest
import sample_class
from sample_class import ASSIGNMENT

from autograder.exercise import Assignment


@dataclass
class Graded:
    """A course after `nbgrader autograde`."""

    folder: Path
    assignment: Assignment
    log: str = ""
    code: int = 0

    def autograde(self) -> None:
        released = sample_class.nbgrader(self.folder, "generate_assignment", self.assignment.id)
        assert released.returncode == 0, released.stdout
        graded = sample_class.nbgrader(self.folder, "autograde", self.assignment.id)
        self.log, self.code = graded.stdout, graded.returncode

    def report(self, student: str, exercise: str) -> str:
        """What the check cell of the graded notebook shows."""
        name = f"{self.assignment.notebook}.ipynb"
        path = self.folder / "classroom" / "autograded" / student / self.assignment.id / name
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        grade_id = f"{exercise}-check"
        cell = next(cell for cell in cells if cell["metadata"].get("nbgrader", {}).get("grade_id") == grade_id)
        return "".join("".join(output["text"]) for output in cell["outputs"] if output["output_type"] == "stream")

    def scores(self, student: str) -> dict[str, float]:
        """Exercise id -> points in the gradebook."""
        return sample_class.scores(self.folder, student, self.assignment)


@pytest.fixture(scope="session")
def empty_course(tmp_path_factory):
    """Makes a course with one assignment and nobody's work yet."""

    def make(name: str, assignment: Assignment = ASSIGNMENT) -> Graded:
        folder = tmp_path_factory.mktemp(name)
        sample_class.lay_out(folder, assignment)
        return Graded(folder, assignment)

    return make
