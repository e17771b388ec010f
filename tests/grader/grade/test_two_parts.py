"""Visible questions first, hidden ones when the notebook has run: what that keeps in, and what it must not cost."""

import json
import re

import pytest
from nbformat.v4 import new_code_cell

from autograder import catalogue, course
from autograder.judging.probe_inputs import question_of
from autograder.prepare import sample_class
from autograder.prepare.sample_class import ASSIGNMENT

FIRST, LATER = catalogue.find("soft-lookup"), "project"  # no other solution calls the first
SOLVED = sample_class.solved()
SHOWN = {tuple(probe.draw(None).arguments[0].shape) for probe in FIRST.visible}
NAMES = {exercise.id: exercise.names[0] for exercise in ASSIGNMENT.exercises}
KEEPS = """
_whole = {name}
def {name}(*arguments):
    kept.append([argument.clone() for argument in arguments if hasattr(argument, "clone")])
    return _whole(*arguments)
"""
TELLS = """
def {name}(*arguments):
    text = " ".join(f"{{number:.4f}}" for one in kept for tensor in one for number in tensor.flatten().tolist()[:3])
    with open("seen", "a") as file:
        file.write(text)
    raise ValueError("SEEN " + text[-300:])
"""
FORGETS = "import torch\n" + "".join(f"{NAMES[name]} = None\n" for name in NAMES)


def submit(made, student: str, answers: dict[str, str], before: str = "", after: str = "", position: str = "") -> None:
    """Hand in answers with own cells before the first answer, after the last check, or before the check of an
    exercise."""
    path = sample_class.submit(made.folder, student, {**SOLVED, **answers})
    notebook = course.read_notebook(path)
    cells = notebook["cells"]
    if before:
        cells.insert(
            next(n for n, cell in enumerate(cells) if cell["id"] == ASSIGNMENT.exercises[0].id), new_code_cell(before)
        )
    if after and position:
        cells.insert(next(n for n, cell in enumerate(cells) if cell["id"] == position), new_code_cell(after))
    elif after:
        cells.append(new_code_cell(after))
    path.write_text(json.dumps(notebook), encoding="utf-8")


def killing(exercise: str, when: str) -> str:
    """The right answer of an exercise, which ends its process at some inputs."""
    name = NAMES[exercise]
    ends = (
        f"import os\n_right = {name}\ndef {name}(*arguments):\n    {when} and os._exit(0)\n"
        f"    return _right(*arguments)\n"
    )
    return f"{SOLVED[exercise]}\n{ends}"


@pytest.fixture(scope="module")
def graded(empty_course):
    """Students whose notebooks keep inputs, use names again, end their processes and stop in their cells."""
    made = empty_course("two-parts")
    last = ASSIGNMENT.exercises[-1].id
    keeps = SOLVED[FIRST.id] + KEEPS.format(name=NAMES[FIRST.id])
    submit(made, "a-honest", {})
    submit(made, "keeps-inputs", {FIRST.id: keeps, LATER: TELLS.format(name=LATER)}, before="kept = []\n")
    submit(made, "uses-names-again", {}, after=FORGETS)
    submit(made, "another-dtype-later", {}, after="import torch\ntorch.set_default_dtype(torch.float64)\n")
    submit(made, "leaves-at-the-end", {}, after="import os\nos._exit(0)\n")
    submit(made, "ends-in-a-visible-check", {FIRST.id: killing(FIRST.id, "True")})
    submit(made, "ends-in-a-hidden-check", {FIRST.id: killing(FIRST.id, f"tuple(arguments[0].shape) not in {SHOWN}")})
    submit(made, "cannot-import", {"attend": "import einops_of_mine\n" + SOLVED["attend"]})
    submit(made, "cannot-parse", {"attend": "def attend(W, V)\n    return W @ V\n"})
    submit(made, "other-name", {"attend": SOLVED["attend"].replace("def attend", "def atend")})
    submit(made, "set-up-stops", {"attend": "helper\n" + SOLVED["attend"]}, before="import nowhere\nhelper = 1\n")
    submit(made, "ends-in-the-middle", {}, after="import os\nos._exit(0)\n", position=last)
    made.autograde()
    assert made.code == 0, made.log[-3000:]
    return made


def everything() -> dict[str, float]:
    return {exercise.id: exercise.points for exercise in ASSIGNMENT.exercises}


@pytest.mark.parametrize("student", ["a-honest", "uses-names-again", "another-dtype-later", "leaves-at-the-end"])
def test_what_comes_after_the_checks_costs_nothing(graded, student):
    assert graded.scores(student) == everything()


def test_a_later_report_holds_no_number_of_a_hidden_input(graded):
    report = graded.report("keeps-inputs", LATER)
    said = re.findall(r"-?\d+\.\d{4}", report)
    asked = [each for probe in FIRST.visible for each in question_of(FIRST, probe, b"")[0].arguments]
    known = {f"{number:.4f}" for each in asked if hasattr(each, "flatten") for number in each.flatten().tolist()}
    assert "SEEN" in report and said
    assert set(said) <= known
    assert graded.scores("keeps-inputs")[FIRST.id] == FIRST.points


@pytest.mark.parametrize("when", ["visible", "hidden"])
def test_an_answer_that_ends_its_process_costs_only_itself(graded, when):
    scores = graded.scores(f"ends-in-a-{when}-check")
    least, most = (FIRST.visible_points, FIRST.points) if when == "hidden" else (0, 0.01)
    assert least <= scores.pop(FIRST.id) < most  # a hidden input may have the shape of a visible one
    assert scores == {name: points for name, points in everything().items() if name != FIRST.id}
    assert "process ended" in " ".join(graded.report(f"ends-in-a-{when}-check", FIRST.id).split())


def test_a_cell_that_ends_the_process_costs_what_comes_after_it_only(graded):
    scores = graded.scores("ends-in-the-middle")
    last = ASSIGNMENT.exercises[-1].id
    assert scores == everything() | {last: 0}
    assert "process ended in cell" in graded.report("ends-in-the-middle", last)


@pytest.mark.parametrize(
    ("student", "words"),
    [
        ("cannot-import", "Your code stopped with ModuleNotFoundError: No module named 'einops_of_mine' at line 1"),
        ("cannot-parse", "Your code stopped with SyntaxError: expected ':'"),
        (
            "set-up-stops",
            "Before that, your code stopped with ModuleNotFoundError: No module named 'nowhere' at line 1",
        ),
        ("other-name", "There is no attend in this notebook yet. Run the cell that defines it"),
    ],
)
def test_the_error_of_the_answers_own_cell_is_what_the_report_says(graded, student, words):
    report = " ".join(graded.report(student, "attend").split())
    assert words in report
    assert ("There is no attend in this notebook yet" in report) == (student == "other-name")
