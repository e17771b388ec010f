"""The notebook of an own assignment: its first cells, and those of one more exercise."""

from typing import Any

from autograder.catalogue import own
from autograder.catalogue.exercise import Exercise
from autograder.prepare import task_cells

KERNEL = {
    "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
ANSWER = '''def {function}(x):
    """Every row less its own mean.

    x: (rows, columns) of numbers. Returns the same shape.
    """
    ### BEGIN SOLUTION
    return x - x.mean(dim=-1, keepdim=True)
    ### END SOLUTION'''
LAST = ("-summary-title", "-progress")  # new exercises come before the cells whose ids end so


def beginning(assignment: str) -> dict[str, Any]:
    """A notebook without exercises. assignment: its id, such as own_week3."""
    name = assignment.removeprefix(own.PREFIX)
    stem, title = name.replace("_", "-"), name.replace("_", " ").capitalize()
    welcome = (
        f"# {title}\n\nCHANGE: what this notebook is about.\n\nFill the cell with the TODO, run it, then run the check "
        "below it. Hidden checks, on random inputs, decide part of the points."
    )
    set_up = "import torch\n\nfrom autograder.check import check, progress"
    cells = [
        _markdown(f"{stem}-notebook", welcome),
        _code(f"{stem}-set-up", set_up),
        _markdown(f"{stem}-summary-title", "## Where you stand"),
        _code(f"{stem}-progress", "progress()"),
    ]
    return {"cells": cells, "metadata": KERNEL, "nbformat": 4, "nbformat_minor": 5}


def cells_of(exercise: Exercise) -> list[dict[str, Any]]:
    """Task, hints, answer and check of the starter's exercise, under another name."""
    function = exercise.names[0]
    task = (
        f"## {exercise.number} `{function}`\n\nCHANGE: what to build. Take from every row of numbers its own mean, so "
        "that each row sums to 0.\n\n**By hand.** (1, 2, 6) has the mean 3, so it becomes **(−2, −1, 3)**.\n\n"
        f"*{task_cells.facts(exercise)} · reread "
        f"{exercise.section.chapter}, {exercise.section.title}*"
    )
    answer = ANSWER.format(function=function)
    return [
        _markdown(f"{exercise.id}-task", task),
        _markdown(f"{exercise.id}-hints", task_cells.hints(exercise)),
        _code(exercise.id, answer, solution=True, locked=False),
        _code(f"{exercise.id}-check", f'check("{exercise.id}")', grade=True, points=exercise.points),
    ]


def with_exercise(notebook: dict[str, Any], exercise: Exercise) -> dict[str, Any]:
    """The notebook with one more exercise, before its closing cells."""
    cells = notebook["cells"]
    ends = [place for place, cell in enumerate(cells) if cell.get("id", "").endswith(LAST)]
    place = ends[0] if ends else len(cells)
    return {**notebook, "cells": [*cells[:place], *cells_of(exercise), *cells[place:]]}


def _markdown(name: str, source: str) -> dict[str, Any]:
    return {"cell_type": "markdown", "id": name, "metadata": {}, "source": source}


def _code(name: str, source: str, **marks: Any) -> dict[str, Any]:
    graded = {"cell_type": "code", "grade": False, "grade_id": name, "locked": True, "schema_version": 3}
    return {
        "cell_type": "code",
        "execution_count": None,
        "id": name,
        "metadata": {"nbgrader": {**graded, "solution": False, "task": False, **marks}},
        "outputs": [],
        "source": source,
    }
