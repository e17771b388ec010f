"""A remark on the source of an answer, and what the remarks need to know of the first failure."""

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from autograder.judging.observation import Outcome, Raised

VALUES = ("value", "shape", "length", "nan", "keys")


@dataclass(frozen=True)
class Written:
    """A remark on the source of an answer. name: of its kind, in tests; line: in the learner's cell."""

    name: str
    line: int
    sentence: str


Remark = Callable[[ast.AST, Outcome], Iterator[Written]]


def remark(kind: str, node: ast.AST, sentence: str, **values: object) -> Written:
    line = getattr(node, "lineno", 0)
    return Written(kind, line, sentence.format(line=line, **values))


def raised(outcome: Outcome) -> Raised | None:
    """The error that ended the first failing call."""
    result = outcome.got.result
    return result if outcome.difference.kind == "error" and isinstance(result, Raised) else None


def called(node: ast.AST) -> tuple[str, str]:
    """The part before the dot and the name of what a call calls, such as F and dropout; empty where there is none."""
    function = node.func if isinstance(node, ast.Call) else None
    if isinstance(function, ast.Attribute):
        return ast.unparse(function.value), function.attr
    return ("", function.id) if isinstance(function, ast.Name) else ("", "")
