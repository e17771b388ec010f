"""The trusted side: draws inputs, asks the side that holds the answer, compares, diagnoses, and decides the points."""

import ast
import hashlib
import hmac
import inspect
import json
import textwrap
import types
from collections.abc import Sequence
from typing import Any

from autograder import catalogue
from autograder.catalogue.exercise import Case, Exercise, Probe
from autograder.course import CourseError
from autograder.judging import compare, rules
from autograder.judging.diagnose import Outcome, diagnose
from autograder.judging.observation import Observation
from autograder.judging.observe import LocalPeer, Peer, PeerGone, Subject
from autograder.judging.question import question_of
from autograder.judging.verdict import MISSING, NOT_CHECKED, Verdict, render


def judge(
    exercise: Exercise, peer: Peer, key: bytes | None, findings: Sequence[str] = (), stopped: str = ""
) -> Verdict:
    """The verdict on one answer, all of its probes asked at once; the arguments are those of `Hearing`."""
    hearing = Hearing(exercise, key, findings, stopped)
    hearing.ask(peer, hidden=False)
    hearing.ask(peer, hidden=True)
    return hearing.verdict()


class Hearing:
    """One answer under questions, on the way to its verdict. The visible probes come first.

    In grading the hidden ones are asked when no visible probe of the whole notebook is left to be asked, because a
    report shows what an answer returned to a visible probe: by then it has never met a hidden input that it could
    return.

    key: from which hidden inputs are drawn (see `draw_key`); None judges visible probes only, as a learner's check.
    findings: forbidden shortcuts that the source shows; any of them earns 0, as does a call of a forbidden function.
    stopped: what ended the answer's own code early, said when its object is therefore missing.
    """

    def __init__(self, exercise: Exercise, key: bytes | None, findings: Sequence[str] = (), stopped: str = "") -> None:
        self.exercise, self._key, self._findings, self._stopped = exercise, key, findings, stopped
        self._subject: Subject | None = None
        self._verdict: Verdict | None = None  # where it is reached without a question
        self._outcomes: dict[str, Outcome] = {}
        self._gone: PeerGone | None = None
        if findings:
            self._verdict = Verdict(exercise, key is not None, message=" ".join(findings), forbidden=True)

    @property
    def waits(self) -> bool:
        """Whether there are hidden probes left to be asked, of a side that still answers."""
        left = any(probe.name not in self._outcomes for probe in self.exercise.hidden)
        called = self._subject is not None and self._subject.called
        return bool(left and self._key is not None and self._verdict is None and self._gone is None and not called)

    def ask(self, peer: Peer, hidden: bool) -> None:
        """Put the visible or the hidden probes to the answer. A side that is lost is noted, never raised."""
        if self._verdict is not None or (hidden and self._key is None):
            return
        if self._subject is None:
            self._subject = Subject(self.exercise, peer, self.exercise.forbidden)
            self._look()
        self._subject.turn_to(peer)
        for probe in self.exercise.probes if self._verdict is None else ():
            if probe.hidden == hidden and not self._subject.called:  # a forbidden function earns nothing anyway
                self._outcomes[probe.name] = self._asked(probe)

    def lose(self, reason: str) -> None:
        """Note that nothing more can be asked."""
        if self._gone is None:
            self._gone = PeerGone(reason)

    def verdict(self) -> Verdict:
        """What was decided."""
        graded = self._key is not None
        if self._verdict is not None:
            return self._verdict
        if self._subject is not None and self._subject.called:
            sentences = rules.called(self.exercise, self._subject.called)
            return Verdict(self.exercise, graded, message=" ".join(sentences), forbidden=True)
        probes = self.exercise.probes if graded else self.exercise.visible
        outcomes = [self._outcomes.get(probe.name) or self._unasked(probe) for probe in probes]
        return Verdict(self.exercise, graded, tuple(outcomes), diagnose(self.exercise, outcomes))

    def _look(self) -> None:
        graded = self._key is not None
        try:
            message, unasked = _missing(self.exercise, self._subject, self._stopped), MISSING
        except PeerGone as gone:
            message, unasked = f"Nothing could be asked: {gone}.", NOT_CHECKED
        if message:
            self._verdict = Verdict(self.exercise, graded, message=message, unasked=unasked)

    def _asked(self, probe: Probe) -> Outcome:
        if self._gone is not None:
            return self._unasked(probe)
        case, expected, cotangent = question_of(self.exercise, probe, self._key or b"")
        try:
            got = self._subject.observe(probe, case, expected, cotangent)
        except PeerGone as gone:
            self._gone = gone
            return self._unasked(probe)
        return Outcome(probe, case, cotangent, expected, got, compare.difference(expected, got, probe))

    def _unasked(self, probe: Probe) -> Outcome:
        parted = compare.Difference("gone", f"not checked: {self._gone or 'it was not asked'}")
        return Outcome(probe, Case(()), None, Observation(None), None, parted)


def draw_key(secret: bytes, assignment: str, exercise: str, sources: Sequence[str | None]) -> bytes:
    """The key of a submission's hidden inputs: equal work is asked equal questions, a resubmission new ones.

    sources: the cells that were run, in order, and None where a check stands. The same text cut into other cells may
    act otherwise, so it is other work.
    """
    digest = hashlib.sha256(json.dumps(list(sources)).encode()).hexdigest()
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


def _missing(exercise: Exercise, subject: Subject, stopped: str) -> str:
    """Why there is nothing to ask: what stopped the cell that should define it, else that it is missing."""
    wanted = "class" if exercise.roles is not None else "function"
    for name, kind in subject.kinds().items():
        if kind == "missing":
            if stopped:
                return f"{stopped} So there is no {name} to check."
            return f"There is no {name} in this notebook yet. Run the cell that defines it, under exactly that name."
        if kind not in ("function", "class") or (wanted == "class" and kind != "class"):
            return (
                f"{name} should be a {wanted}, but it is now of type {kind}. Was the name used again in a later cell?"
            )
    return ""


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
