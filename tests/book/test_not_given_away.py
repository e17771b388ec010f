"""No page shows the answer to its own exercise openly: it shows the idea or a smaller case, and code in folds."""

import ast
import re
from pathlib import Path

import pytest

from autograder import catalogue

ROOT = Path(__file__).resolve().parents[2]
CELL = re.compile(
    r"^```\{code-cell\}[^\n]*\n(?P<options>(?::[^\n]*\n)*|---\n.*?\n---\n)(?P<code>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


def open_cells(page: str) -> list[str]:
    """The code that a reader of a page sees without unfolding anything."""
    found = CELL.finditer(page)
    return [cell["code"] for cell in found if not re.search("hide-(cell|input)|remove-(cell|input)", cell["options"])]


def shape_of(node: ast.FunctionDef) -> list[str]:
    """The kinds of a function's nodes in order: what it computes, without names, annotations and docstring."""
    body = node.body[1:] if ast.get_docstring(node) is not None else node.body
    left_out = ast.Name, ast.arg, ast.arguments, ast.expr_context
    return [type(each).__name__ for part in body for each in ast.walk(part) if not isinstance(each, left_out)]


def functions(source: str) -> list[ast.FunctionDef]:
    return [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef)]


@pytest.mark.parametrize("assignment", catalogue.ASSIGNMENTS, ids=lambda each: each.id)
def test_no_open_cell_is_the_answer_to_an_exercise_of_its_chapter(assignment):
    page = (ROOT / "book" / f"{assignment.id}.md").read_text(encoding="utf-8")
    cells = open_cells(page)
    assert cells
    named = {name: exercise for exercise in assignment.exercises for name in exercise.names}
    answers = [
        (exercise.id, shape_of(function))
        for exercise in assignment.exercises
        for answer in exercise.correct
        for function in functions(str(answer.source))
        if len(function.body) > 2
    ]
    for code in cells:
        try:
            tree = ast.parse(code)
        except SyntaxError:  # a cell with a magic command shows no function
            continue
        for node in ast.walk(tree):
            if not isinstance(node, ast.FunctionDef | ast.ClassDef):
                continue
            assert node.name not in named, f"{assignment.id}: {node.name} is shown"
            alike = [name for name, shape in answers if isinstance(node, ast.FunctionDef) and shape == shape_of(node)]
            assert not alike, f"{assignment.id}: {node.name} is an answer to {alike}"


def test_an_answer_that_is_shown_under_another_name_is_found():
    shown = """
def norm(z, gain, shift, tiny):
    m = z.mean(dim=-1, keepdim=True)
    return gain * (z - m) + shift
"""
    kept = shown.replace("norm", "layer_norm").replace("gain", "g").replace("m ", "mean ").replace("- m", "- mean")
    assert shape_of(ast.parse(shown).body[0]) == shape_of(ast.parse(kept).body[0])


def test_folded_cells_are_not_looked_at_and_others_are():
    page = "```{code-cell} python\n:tags: [hide-cell]\nx = 1\n```\n\n```{code-cell} python\ny = 2\n```\n"
    assert open_cells(page) == ["y = 2\n"]
