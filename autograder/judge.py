"""The trusted side: draws inputs, asks the side that holds the answer, compares, diagnoses, and decides the points."""

import ast
import hashlib
import hmac
import inspect
import textwrap
import types
from collections.abc import Sequence
from typing import Any

import torch

from autograder import catalogue, compare, rules
from autograder.course import CourseError
from autograder.diagnose import Outcome, diagnose
from autograder.exercise import Exercise, Probe
from autograder.observe import LocalPeer, Peer, PeerGone, Subject
from autograder.verdict import Verdict, render


def judge(
    exercise: Exercise, peer: Peer, key: bytes | None, findings: Sequence[str] = (), stopped: str = ""
) -> Verdict:
    """The verdict on one answer.

    key: from which hidden inputs are drawn (see `draw_key`); None judges visible probes only, as a learner's check.
    findings: forbidden shortcuts that the source shows; any of them earns 0, as does a call of a forbidden function.
    stopped: what ended the answer's own code early, said when its object is therefore missing.
    """
    graded = key is not None
    if findings:
        return Verdict(exercise, graded, message=" ".join(findings), forbidden=True)
    subject = Subject(exercise, peer, exercise.forbidden)
    try:
        missing = _missing(exercise, subject)
        missing = f"{stopped} {missing}".strip() if missing else ""
    except PeerGone as gone:
        missing = f"Nothing could be asked: {gone}."
    if missing:
        return Verdict(exercise, graded, message=missing)
    outcomes = _ask(exercise, subject, exercise.probes if graded else exercise.visible, key or b"")
    if subject.called:
        return Verdict(exercise, graded, message=" ".join(rules.called(exercise, subject.called)), forbidden=True)
    return Verdict(exercise, graded, tuple(outcomes), diagnose(exercise, outcomes))


def draw_key(secret: bytes, assignment: str, exercise: str, source: str) -> bytes:
    """The key of a submission's hidden inputs: equal work is asked equal questions, a resubmission new ones."""
    digest = hashlib.sha256(source.encode()).hexdigest()
    return hmac.new(secret, f"{assignment}|{exercise}|{digest}".encode(), hashlib.sha256).digest()


def judge_in_notebook(exercise_id: str, namespace: dict[str, Any]) -> dict[str, Any]:
    """What a learner's own check shows: visible probes, judged in the same process."""
    try:
        exercise = catalogue.find(exercise_id)
    except CourseError as error:
        return outcome_of(None, f"check: {error}")
    if exercise is None:
        return outcome_of(
            None,
            f"check: there is no exercise {exercise_id!r}. The exercises are: {', '.join(catalogue.exercises())}.",
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


def _missing(exercise: Exercise, subject: Subject) -> str:
    wanted = "class" if exercise.roles is not None else "function"
    for name, kind in subject.kinds().items():
        if kind == "missing":
            return f"There is no {name} in this notebook yet. Run the cell that defines it, under exactly that name."
        if kind not in ("function", "class") or (wanted == "class" and kind != "class"):
            return (
                f"{name} should be a {wanted}, but it is now of type {kind}. Was the name used again in a later cell?"
            )
    return ""


def _ask(exercise: Exercise, subject: Subject, probes: Sequence[Probe], key: bytes) -> list[Outcome]:
    outcomes, gone = [], None
    for probe in probes:
        generator = torch.Generator().manual_seed(seed_of(key, exercise, probe))
        case, expected, cotangent = question(exercise, probe, generator)
        got, parted = None, None
        if gone is None:
            try:
                got = subject.observe(probe, case, expected, cotangent)
                parted = compare.difference(expected, got, probe)
            except PeerGone as reason:
                gone, got = reason, None
        if got is None:
            parted = compare.Difference("gone", f"not checked: {gone}")
        outcomes.append(Outcome(probe, case, cotangent, expected, got, parted))
        if subject.called:
            break  # a forbidden function earns nothing, whatever else comes out
    return outcomes


def question(exercise: Exercise, probe: Probe, generator: torch.Generator) -> tuple:
    """One drawn case with the reference's observation, and the factors under which gradients are compared."""
    case = probe.draw(generator)
    reference = Subject(exercise, LocalPeer(exercise.reference))
    expected, cotangent = reference.observe(probe, case, None), None
    if "gradients" in probe.also:
        first = expected.result[0] if isinstance(expected.result, tuple) else expected.result
        cotangent = torch.randn(first.shape, generator=generator, dtype=torch.float64).to(first.dtype)
        expected = reference.observe(probe, case, None, cotangent)
    return case, expected, cotangent


def seed_of(key: bytes, exercise: Exercise, probe: Probe) -> int:
    """The seed of a probe's inputs; a visible probe asks everybody the same."""
    name = f"{exercise.id}|{probe.name}".encode()
    return int.from_bytes(hmac.new(key if probe.hidden else b"", name, hashlib.sha256).digest()[:7], "big")


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
