"""A page teaches what its exercises need, but does not print their answers before they are solved."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from autograder import catalogue

BOOK = Path(__file__).resolve().parents[2] / "book"
CELL = re.compile(r"^`{3,}\{code-(?:cell|block)\}[^\n]*\n(?P<body>.*?)^`{3,}$", re.DOTALL | re.MULTILINE)
FOLDED = re.compile(r"^:tags:.*hide-(?:cell|input)", re.MULTILINE)
# Calls and attributes that together are an exercise's answer, whatever the function around them is called.
TOGETHER = {
    "layer-norm": {"mean", "keepdim", "sqrt"},
    "encoder-layer": {"norm_first", "norms"},
    "transformer": {"source_embedding", "encoder", "target_embedding", "decoder", "logits"},
    "train-step": {"zero_grad", "backward", "clip_grad_norm_", "step"},
}
EXERCISES = [
    (assignment.id, exercise.id)
    for assignment in catalogue.assignments()
    for exercise in assignment.exercises
    if (BOOK / f"{assignment.id}.md").is_file()
]


def plain(name: str) -> str:
    """Return a name for comparison: `encoder_layer` and `EncoderLayer` both match `encoder-layer`."""
    return name.replace("_", "").replace("-", "").casefold()


def definitions(page: str) -> Iterator[ast.FunctionDef | ast.ClassDef]:
    """Yield the definitions in visible cells of a page that are more than a docstring, a `pass` or a `raise`."""
    for cell in CELL.finditer(page):
        if FOLDED.search(cell["body"]):
            continue
        code = "\n".join("" if line.startswith((":", "%", "!")) else line for line in cell["body"].splitlines())
        for node in ast.walk(ast.parse(code)):
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and any(map(does_something, node.body)):
                yield node


def does_something(statement: ast.stmt) -> bool:
    """Return whether a statement of a body is more than a docstring or a gap to fill."""
    constant = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    return not (constant or isinstance(statement, (ast.Pass, ast.Raise)))


def names_in(node: ast.AST) -> set[str]:
    """Return every name, attribute and keyword below a node."""
    found = {inner.attr for inner in ast.walk(node) if isinstance(inner, ast.Attribute)}
    found |= {inner.arg for inner in ast.walk(node) if isinstance(inner, (ast.keyword, ast.arg)) and inner.arg}
    return found | {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)}


def given_away(page: str, exercise: str) -> list[str]:
    """Return the visible definitions that answer an exercise."""
    signs = TOGETHER.get(exercise)
    return [
        node.name
        for node in definitions(page)
        if plain(node.name) == plain(exercise) or (signs and signs <= names_in(node))
    ]


@pytest.mark.parametrize(("chapter", "exercise"), EXERCISES)
def test_a_page_does_not_print_the_answer_of_its_exercise(chapter, exercise):
    assert given_away((BOOK / f"{chapter}.md").read_text(encoding="utf-8"), exercise) == []


def test_an_answer_is_found_by_its_name_and_by_what_it_does_unless_it_is_folded_or_a_stub():
    cell = "```{code-cell} python\n%s```\n"
    answer = "def encoder_layer(x):\n    return x\n"
    assert given_away(cell % answer, "encoder-layer") == ["encoder_layer"]
    assert given_away(cell % (":tags: [hide-cell]\n" + answer), "encoder-layer") == []
    assert (
        given_away(cell % 'def encoder_layer(x):\n    "Do it."\n    raise NotImplementedError\n', "encoder-layer") == []
    )
    step = "def f(o, l):\n    o.zero_grad()\n    l.backward()\n    clip_grad_norm_(o)\n    o.step()\n"
    assert given_away(cell % step, "train-step") == ["f"]


def test_each_answer_that_is_known_by_what_it_does_belongs_to_an_exercise():
    assert set(TOGETHER) <= {exercise for _, exercise in EXERCISES}
