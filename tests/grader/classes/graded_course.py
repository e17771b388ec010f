"""A course that nbgrader grades, and the sandboxes that tests try; `conftest` makes fixtures of them."""

import json
import os
from dataclasses import dataclass
from pathlib import Path

import pytest

from autograder.catalogue.exercise import Assignment
from autograder.prepare import sample_class
from autograder.sandbox import backends


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


ENGINES = ["docker", "podman"] if os.environ.get(backends.IMAGE) else []
SANDBOXES = ["bubblewrap", "landlock", *ENGINES]  # what tests of attacks and of sandboxes try


def need_isolation(name: str) -> None:
    """Skip a test of a backend that cannot isolate here; where CI could use none at all, fail."""
    reason = backends.why_not(name)
    if reason:
        no_other = all(map(backends.why_not, ("bubblewrap", "landlock")))
        refuse = pytest.fail if no_other and os.environ.get("CI") == "true" else pytest.skip
        refuse(f"{name} cannot isolate on this machine: {reason}")
