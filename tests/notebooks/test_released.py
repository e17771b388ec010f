"""The committed notebooks: what solutions generate, in the form that nbgrader and learners rely on."""

import html
import json
import re

import nbformat
import pytest

from autograder import catalogue, course
from autograder.policy.points import sentence

ROOT = course.find_root()
by_assignment = pytest.mark.parametrize("assignment", catalogue.ASSIGNMENTS, ids=lambda a: a.id)


def cells_of(step, assignment):
    return course.read_notebook(course.notebook_path(ROOT, step, assignment))["cells"]


def source_of(cell):
    return cell["source"] if isinstance(cell["source"], str) else "".join(cell["source"])


@by_assignment
def test_releasing_the_solution_gives_the_committed_exercise_to_the_byte(assignment, released):
    made = course.notebook_path(released(assignment, checked=True), "exercises", assignment).read_bytes()
    assert made == course.notebook_path(ROOT, "exercises", assignment).read_bytes()


@by_assignment
@pytest.mark.parametrize("step", ["solutions", "exercises"])
def test_a_notebook_is_valid_and_committed_without_outputs(assignment, step):
    notebook = nbformat.read(course.notebook_path(ROOT, step, assignment), as_version=4)
    nbformat.validate(notebook)
    assert (notebook.nbformat, notebook.nbformat_minor) == (4, 5)
    assert all(not cell.outputs and cell.execution_count is None for cell in notebook.cells if cell.cell_type == "code")


@by_assignment
def test_cell_ids_are_the_grade_ids_and_points_the_catalogues(assignment):
    graded = {
        cell["id"]: cell["metadata"]["nbgrader"]
        for cell in cells_of("exercises", assignment)
        if "nbgrader" in cell["metadata"]
    }
    assert all(name == marks["grade_id"] for name, marks in graded.items())
    points = {name: marks["points"] for name, marks in graded.items() if marks["grade"]}
    by_hand = {each.id: each.points for each in assignment.by_hand}
    assert points == {f"{e.id}-check": e.points for e in assignment.exercises} | by_hand
    answers = {name for name, marks in graded.items() if marks["solution"]}
    assert answers == {e.id for e in assignment.exercises} | by_hand.keys()


def test_cell_ids_are_unique_in_the_course():
    ids = [cell["id"] for assignment in catalogue.ASSIGNMENTS for cell in cells_of("exercises", assignment)]
    assert len(ids) == len(set(ids))


@by_assignment
def test_each_exercise_is_introduced_hinted_answered_and_checked(assignment):
    order = [cell["id"] for cell in cells_of("exercises", assignment)]
    for exercise in assignment.exercises:
        start = order.index(f"{exercise.id}-task")
        name = exercise.id
        assert order[start : start + 4] == [f"{name}-task", f"{name}-hints", name, f"{name}-check"]


@by_assignment
def test_the_task_says_number_section_minutes_and_points(assignment):
    cells = {cell["id"]: source_of(cell) for cell in cells_of("exercises", assignment)}
    for exercise in assignment.exercises:
        task = cells[f"{exercise.id}-task"]
        assert f"## {exercise.number} " in task
        assert exercise.section.title in task
        assert re.search(r"about \d+ minutes", task)
        assert f"{exercise.points:g} point{'s' * (exercise.points != 1)} ({exercise.visible_points:g} visible" in task


@by_assignment
def test_the_folded_hints_are_the_catalogues(assignment):
    cells = {cell["id"]: source_of(cell) for cell in cells_of("exercises", assignment)}
    for exercise in assignment.exercises:
        folded = re.findall(r"</summary>\s*(.*?)\s*</details>", cells[f"{exercise.id}-hints"], re.DOTALL)
        assert [html.unescape(hint) for hint in folded] == [sentence(hint) for hint in exercise.hints]


@by_assignment
def test_no_released_cell_holds_a_solution(assignment):
    text = json.dumps(cells_of("exercises", assignment))
    assert "BEGIN SOLUTION" not in text
    for cell in cells_of("exercises", assignment):
        if cell["metadata"].get("nbgrader", {}).get("solution") and cell["cell_type"] == "code":
            assert "raise NotImplementedError" in source_of(cell)
