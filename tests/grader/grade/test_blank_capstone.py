"""A class in which many hand in a blank chapter 12 does not wait for a training that nobody's answer needs."""

import json
import subprocess
import sys

import pytest

from autograder import catalogue, course
from autograder.grade.execute import NOT_NEEDED
from autograder.prepare import sample_class

CAPSTONE = catalogue.find_assignment("12_capstone")


@pytest.fixture(scope="module")
def graded(empty_course):
    made = empty_course("blank-capstone", CAPSTONE)
    sample_class.submit(made.folder, "blank", {}, CAPSTONE)
    solved = sample_class.solved(CAPSTONE)
    sample_class.submit(made.folder, "some", {"average-checkpoints": solved["average-checkpoints"]}, CAPSTONE)
    made.autograde()
    assert made.code == 0, made.log
    sample_class.submit(
        made.folder, "ours", {}, CAPSTONE
    )  # graded by our own command, whose workers have a folder each
    command = [sys.executable, "-m", "autograder", "grade", CAPSTONE.id, "--workers", "1"]
    done = subprocess.run(command, cwd=made.folder, text=True, capture_output=True, check=False)
    assert done.returncode == 0 and "1 of 1 graded" in done.stdout, done.stdout + done.stderr
    return made


def outputs(graded, student):
    folder = graded.folder / "classroom" / "autograded" / student / CAPSTONE.id
    cells = course.read_notebook(folder / f"{CAPSTONE.notebook}.ipynb")["cells"]
    return {cell.get("id"): json.dumps(cell["outputs"]) for cell in cells if cell["cell_type"] == "code"}


@pytest.mark.parametrize("student", ["blank", "some", "ours"])
def test_the_cells_that_train_are_not_run_and_say_why(graded, student):
    found = outputs(graded, student)
    assert all(NOT_NEEDED.strip() in found[name] for name in CAPSTONE.trains)
    assert "Ready, with torch" in found["capstone-set-up"]


def test_points_are_those_of_the_answers(graded):
    exercise = catalogue.find("average-checkpoints")
    assert set(graded.scores("blank").values()) == {0}
    assert graded.scores("some") == {name: 0 for name in graded.scores("some")} | {exercise.id: exercise.points}
    assert graded.record("blank", "translate")["blank"]
