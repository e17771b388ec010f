"""The sample class through generate_assignment, autograde, generate_feedback and export, and a class of hard cases."""

import csv
import json

import pytest

from autograder.diagnosis.explain import judge_and_explain
from autograder.diagnosis.known_mistakes import namespace_of
from autograder.judging.judge import draw_key
from autograder.judging.observe import LocalEndpoint
from autograder.prepare import sample_class
from autograder.prepare.sample_class import ASSIGNMENT

pytestmark = pytest.mark.xdist_group("sample-class")

EXERCISES = {exercise.id: exercise for exercise in ASSIGNMENT.exercises}
SET_UP = "from transformer_ref.model.softmax import softmax\n"


def expected(cells: dict[str, str]) -> dict[str, float]:
    """What the catalogue says these answers are worth."""
    worth = {}
    for name, source in cells.items():
        key = draw_key(b"another secret", ASSIGNMENT.id, name, [source])
        worth[name] = judge_and_explain(EXERCISES[name], LocalEndpoint(namespace_of(SET_UP + source)), key).points
    return worth


@pytest.fixture(scope="module")
def graded(tmp_path_factory, empty_course):
    course = empty_course("sample-class")
    for student, cells in sample_class.answers().items():
        sample_class.submit(course.folder, student, cells)
    _hand_in_hard_cases(course.folder)
    course.autograde()
    return course


def _edit(path, change):
    notebook = json.loads(path.read_text(encoding="utf-8"))
    change({cell["id"]: cell for cell in notebook["cells"]}, notebook)
    path.write_text(json.dumps(notebook), encoding="utf-8")


def _hand_in_hard_cases(folder):
    solution = sample_class.solved()

    def hand_in(student, **answers):
        return sample_class.submit(
            folder, student, {**solution, **{name.replace("_", "-"): s for name, s in answers.items()}}
        )

    hand_in("x-broken-json").write_text('{"cells": [', encoding="utf-8")
    hand_in("x-missing-notebook").unlink()
    hand_in("x-wrong-name", attend="def atend(W, V):\n    return W @ V\n")
    hand_in("x-wrong-shape", attend="def attend(W, V):\n    return (W @ V)[0]\n")
    hand_in("x-nan", attend="def attend(W, V):\n    return W @ V * float('nan')\n")
    hand_in(
        "x-warning",
        attend="import sys, warnings\ndef attend(W, V):\n    warnings.warn('careful')\n"
        "    print('hm', file=sys.stderr)\n    return W @ V\n",
    )
    hand_in("x-check-renamed", project="check = 1\n" + solution["project"])
    hand_in("x-kernel-dies", soft_lookup="import os\ndef soft_lookup(q, keys, values, beta):\n    os._exit(1)\n")
    hand_in(
        "x-display",
        attend="def attend(W, V):\n    get_ipython().displayhook(1.0)\n    raise ValueError('no')\n",
    )
    beside = hand_in("x-stale-files")
    for name in ("torch.py", "numbers.py", "transformer_ref.py"):
        (beside.parent / name).write_text("raise RuntimeError('a file of the same name')\n", encoding="utf-8")

    def skip(cells, notebook):
        for name in EXERCISES:
            cells[f"{name}-check"]["metadata"]["tags"] = ["skip-execution"]

    _edit(hand_in("x-skip-tags", **{name.replace("-", "_"): "pass" for name in EXERCISES}), skip)
    _edit(hand_in("x-check-deleted"), lambda cells, notebook: notebook["cells"].remove(cells["attend-check"]))

    def copy_cell(cells, notebook):
        place = notebook["cells"].index(cells["attend"])
        notebook["cells"].insert(place + 1, json.loads(json.dumps(cells["attend"])))

    _edit(hand_in("x-cell-copied"), copy_cell)


@pytest.mark.parametrize("student", sorted(sample_class.answers()))
def test_sample_student_earns_what_the_catalogue_says(graded, student):
    assert graded.scores(student) == pytest.approx(expected(sample_class.answers()[student]))


def test_the_class_is_worth_grading():
    totals = {student: sum(expected(cells).values()) for student, cells in sample_class.answers().items()}
    assert totals["blank"] == 0
    assert totals["perfect"] == totals["einsum"] == totals["loops"] == ASSIGNMENT.points == 30
    assert all(
        0 < totals[student] < 30 for student in ("no-scaling", "one-cell-raises", "shared-projection", "wrong-axis")
    )


@pytest.mark.parametrize(
    "student", ["x-warning", "x-check-renamed", "x-stale-files", "x-check-deleted", "x-cell-copied"]
)
def test_honest_work_loses_nothing(graded, student):
    assert graded.scores(student) == {name: exercise.points for name, exercise in EXERCISES.items()}


@pytest.mark.parametrize(
    ("student", "words"),
    [
        ("x-wrong-name", "There is no attend in this notebook yet"),
        ("x-wrong-shape", "The batch axis is gone"),
        ("x-nan", "NaN"),
        ("x-display", "your code stopped with ValueError: no"),
    ],
)
def test_one_bad_cell_costs_its_own_points_and_says_why(graded, student, words):
    assert graded.scores(student) == {name: 0.0 if name == "attend" else e.points for name, e in EXERCISES.items()}
    assert words in " ".join(graded.report(student, "attend").split())


def test_an_answer_that_ends_its_process_costs_itself_alone(graded):
    earned, worth = graded.scores("x-kernel-dies"), {exercise.id: exercise.points for exercise in ASSIGNMENT.exercises}
    assert earned == {**worth, "soft-lookup": 0}
    assert "process ended" in graded.report("x-kernel-dies", "soft-lookup")


def test_a_tag_that_skips_checks_earns_nothing(graded):
    assert set(graded.scores("x-skip-tags").values()) == {0.0}


def test_an_unreadable_notebook_is_named_and_stops_nobody(graded):
    assert graded.code == 0, graded.log[-3000:]
    (line,) = [line for line in graded.log.splitlines() if "x-broken-json:" in line]
    assert "could not be read as a notebook" in line
    assert "Traceback" not in graded.log
    assert set(graded.scores("x-broken-json").values()) == {0.0}
    assert sum(graded.scores("x-warning").values()) == 30


def test_a_missing_notebook_is_named_and_recorded_as_zero(graded):
    assert "x-missing-notebook: There was no notebook in what you handed in. The folder was empty." in graded.log
    assert set(graded.scores("x-missing-notebook").values()) == {0.0}


def test_feedback_shows_the_report_and_no_hidden_expectation(graded):
    done = sample_class.nbgrader(graded.folder, "generate_feedback", ASSIGNMENT.id, "--student=no-scaling")
    assert done.returncode == 0, done.stdout
    page = graded.folder / "classroom" / "feedback" / "no-scaling" / ASSIGNMENT.id / f"{ASSIGNMENT.notebook}.html"
    text = page.read_text(encoding="utf-8")
    assert "division by the square root of d_k is missing" in " ".join(text.split())
    assert "draw_key" not in text


def test_export_lists_every_student_with_the_total(graded):
    done = sample_class.nbgrader(graded.folder, "export", "--to", "grades.csv")
    assert done.returncode == 0, done.stdout
    with (graded.folder / "grades.csv").open(encoding="utf-8") as file:
        totals = {row["student_id"]: float(row["raw_score"]) for row in csv.DictReader(file)}
    assert totals["perfect"] == 30
    assert totals["blank"] == 0


def test_regrading_the_same_work_gives_the_same_marks(graded):
    before = graded.scores("shared-projection")
    done = sample_class.nbgrader(graded.folder, "autograde", ASSIGNMENT.id, "--student=shared-projection", "--force")
    assert done.returncode == 0, done.stdout
    assert sample_class.scores(graded.folder, "shared-projection") == before
