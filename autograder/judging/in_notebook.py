"""A learner's own check: the visible probes, judged in their Jupyter's process, and the report as a message to it."""

import ast
import inspect
import textwrap
import types
from collections.abc import Sequence
from typing import Any

from autograder import catalogue
from autograder.course import CourseError
from autograder.judging import rules
from autograder.judging.judge import judge
from autograder.judging.observe import LocalPeer
from autograder.judging.report import render
from autograder.judging.verdict import Verdict


def judge_in_notebook(exercise_id: str, namespace: dict[str, Any]) -> dict[str, Any]:
    """What a learner's own check shows: visible probes, judged in the same process."""
    try:
        exercise = catalogue.find(exercise_id)
    except CourseError as error:
        return outcome_of(None, f"check: {error}")
    if exercise is None:
        return outcome_of(
            None,
            f"check: there is no exercise {exercise_id!r}. The exercises are: {', '.join(catalogue.exercise_ids())}.",
        )
    findings = rules.findings(_sources(exercise.names, namespace), exercise, catalogue.assignment_of(exercise))
    return outcome_of(judge(exercise, LocalPeer(namespace), None, findings))


def outcome_of(verdict: Verdict | None, text: str = "") -> dict[str, Any]:
    """The verdict as a message to the notebook."""
    if verdict is None:
        return {"text": text, "earned": 0.0, "possible": 0.0, "passed": False}
    return {
        "text": render(verdict),
        "earned": verdict.points,
        "possible": verdict.possible,
        "passed": verdict.passed,
    }


def _sources(names: Sequence[str], namespace: dict[str, Any]) -> list[str]:
    """Sources of the named objects, and of the notebook's own functions and classes that these mention."""
    sources, wanted, seen = [], list(names), set()
    while wanted:
        name = wanted.pop()
        found = namespace.get(name)
        own = isinstance(found, (types.FunctionType, type)) and found.__module__ == namespace.get("__name__")
        if name in seen or not (own or name in names):
            continue
        seen.add(name)
        sources.append(_source_of(name, namespace))
        wanted += [node.id for node in ast.walk(ast.parse(sources[-1])) if isinstance(node, ast.Name)]
    return sources


def _source_of(name: str, namespace: dict[str, Any]) -> str:
    """The source of a learner's object as their notebook holds it, or nothing when Python cannot tell."""
    try:
        source = textwrap.dedent(inspect.getsource(namespace[name]))
        ast.parse(source)
        return source
    except (KeyError, OSError, TypeError, SyntaxError):
        return ""
