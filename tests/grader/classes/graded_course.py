"""A course that nbgrader grades, and the sandboxes that tests try; `conftest` makes fixtures of them."""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from autograder.catalogue.exercise import Assignment
from autograder.prepare import sample_class
from autograder.sandbox import backends


@dataclass
class Graded:
    """A released course, after `autograde` one that nbgrader has graded."""

    folder: Path
    assignment: Assignment
    log: str = ""
    code: int = 0

    def autograde(self) -> None:
        graded = sample_class.nbgrader(self.folder, "autograde", self.assignment.id)
        self.log, self.code = graded.stdout, graded.returncode

    def report(self, student: str, exercise: str) -> str:
        """What the check cell of the graded notebook shows."""
        outputs = self._outputs(student, exercise)
        return "".join("".join(output["text"]) for output in outputs if output["output_type"] == "stream")

    def record(self, student: str, exercise: str) -> dict[str, Any]:
        """The record of the verdict in addition to the report."""
        return self._outputs(student, exercise)[-1]["metadata"]["judged"]

    def _outputs(self, student: str, exercise: str) -> list[dict[str, Any]]:
        name = f"{self.assignment.notebook}.ipynb"
        path = self.folder / "classroom" / "autograded" / student / self.assignment.id / name
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        grade_id = f"{exercise}-check"
        return next(c["outputs"] for c in cells if c["metadata"].get("nbgrader", {}).get("grade_id") == grade_id)

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
