"""A learner's own check: judged in their Jupyter's process, and the report as a message to it.

The whole check asks the hidden probes too, with numbers that are drawn on the spot, and says all about them. The
numbers that an answer fails on stay until it passes on them, so that a learner sees the same failure while fixing it;
then others are drawn, and decide.
"""

import ast
import inspect
import linecache
import secrets
import textwrap
import types
from collections.abc import Sequence
from typing import Any

from autograder import catalogue
from autograder.address import book_address
from autograder.catalogue.exercise import Exercise
from autograder.course import CourseError
from autograder.diagnosis.explain import judge_and_explain
from autograder.feedback import render
from autograder.feedback.parts import Line, Part
from autograder.feedback.report import report
from autograder.judging import forbidden
from autograder.judging.observe import LocalEndpoint
from autograder.judging.verdict import Verdict
from autograder.notebook import progress_store

UNCHANGED = "This is the same {kind} as at your last check. If you have changed its cell, run that cell first."
_kept: dict[str, bytes] = {}  # exercise -> key of the numbers on which its answer failed
_failed: dict[str, tuple[list[Any], str]] = {}  # exercise -> the objects that failed last, and the report about them


def judge_in_notebook(exercise_id: str, namespace: dict[str, Any], whole: bool = True) -> dict[str, Any]:
    """The result of a learner's own check. whole: whether hidden probes run too, on numbers drawn here."""
    try:
        exercise = catalogue.find(exercise_id)
    except CourseError as error:
        return outcome_of(None, [Line(f"check: {error}")])
    if exercise is None:
        known = ", ".join(catalogue.exercise_ids())
        return outcome_of(None, [Line(f"check: there is no exercise {exercise_id!r}. The exercises are: {known}.")])
    findings = forbidden.findings(_sources(exercise.names, namespace), exercise, catalogue.assignment_of(exercise))
    if whole:
        verdict = _on_drawn_numbers(exercise, namespace, findings)
    else:
        cell = _cell_of(exercise.names, namespace)
        verdict = judge_and_explain(exercise, LocalEndpoint(namespace), None, findings, source=cell)
    parts = report(verdict)
    return outcome_of(verdict, parts + _unchanged(verdict, namespace, render.as_text(parts)))


def outcome_of(verdict: Verdict | None, parts: Sequence[Part]) -> dict[str, Any]:
    """The verdict as a message to the notebook: the report as text and as HTML, and the points."""
    shown = {"text": render.as_text(parts), "html": render.as_html(parts, book_address())}
    if verdict is None:
        return {**shown, "earned": 0.0, "possible": 0.0, "passed": False}
    return {**shown, "earned": verdict.points, "possible": verdict.possible, "passed": verdict.passed}


def _on_drawn_numbers(exercise: Exercise, namespace: dict[str, Any], findings: Sequence[str]) -> Verdict:
    """The verdict on the stored numbers, if the answer still fails on them, else on new ones."""
    keys = [_kept.pop(exercise.id)] if exercise.id in _kept else []
    cell = _cell_of(exercise.names, namespace)
    for key in (*keys, secrets.token_bytes(32)):
        verdict = judge_and_explain(exercise, LocalEndpoint(namespace), key, findings, disclosed=True, source=cell)
        if not verdict.passed:
            _kept[exercise.id] = key
            break
    return verdict


def _unchanged(verdict: Verdict, namespace: dict[str, Any], text: str) -> list[Part]:
    """A line for a learner who checks the same objects again with the same report: the cell may not have run."""
    exercise = verdict.exercise
    objects = [namespace.get(name) for name in exercise.names]
    before = _failed.pop(exercise.id, None)
    if verdict.passed or not all(map(callable, objects)):
        return []
    _failed[exercise.id] = objects, text
    same = before is not None and before[1] == text and [*map(id, before[0])] == [*map(id, objects)]
    said = UNCHANGED.format(kind="class" if exercise.is_class else "function")
    return [Line(said)] if same else []


def _sources(names: Sequence[str], namespace: dict[str, Any]) -> list[str]:
    """Sources of the named objects, and of the notebook's functions and classes that they use."""
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


def _cell_of(names: Sequence[str], namespace: dict[str, Any]) -> str:
    """The source of the cell that defines the answer; nothing if it cannot be found, or there are several."""
    files = progress_store.files_of(names, namespace)
    return "".join(linecache.getlines(files.pop())) if len(files) == 1 else ""


def _source_of(name: str, namespace: dict[str, Any]) -> str:
    """The source of a learner's object in the notebook, or nothing if it cannot be found."""
    try:
        source = textwrap.dedent(inspect.getsource(namespace[name]))
        ast.parse(source)
        return source
    except (KeyError, OSError, TypeError, SyntaxError):
        return ""
