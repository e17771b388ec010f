"""The trusted side: draws inputs, sends them to the side that holds the answer, compares, and decides the points.

Why an answer fails is found afterwards, by `explain`; nothing here depends on it.
"""

import hashlib
import hmac
import json
from collections.abc import Sequence

from autograder.catalogue.exercise import Case, Exercise, Probe
from autograder.course import CourseError
from autograder.judging import compare
from autograder.judging.observation import Difference, Observation, Outcome, Raised, Structure
from autograder.judging.observe import Candidate, Endpoint, EndpointGone
from autograder.judging.probe_inputs import question_of
from autograder.judging.repeat_run import RepeatRun, repeat
from autograder.judging.verdict import Forbidden, Missing, NotChecked, Verdict


def judge(
    exercise: Exercise,
    endpoint: Endpoint,
    key: bytes | None,
    findings: Sequence[str] = (),
    stopped: Sequence[Raised] = (),
    disclosed: bool = False,
) -> Verdict:
    """The verdict on one answer, after all of its probes; the arguments are those of `JudgingSession`."""
    session = JudgingSession(exercise, key, findings, stopped, disclosed)
    session.ask(endpoint, hidden=False)
    session.ask(endpoint, hidden=True)
    return session.verdict()


class JudgingSession:
    """The judging of one answer. The visible probes come first.

    The hidden ones come in an order that the key draws (see `in_order`). In grading they run after all visible probes
    of the whole notebook, because a report shows what an answer returned to a visible probe: it must not have seen a
    hidden input by then.

    key: of the hidden inputs (see `draw_key`); None judges visible probes only (see `visible_check`). findings:
    forbidden shortcuts in the source; any of them earns 0, as does a call of a forbidden function. stopped: the errors
    that ended the answer's code, reported if its object is therefore missing (see `Missing`). disclosed: hidden probes
    may be shown in full too; never in grading.
    """

    def __init__(
        self,
        exercise: Exercise,
        key: bytes | None,
        findings: Sequence[str] = (),
        stopped: Sequence[Raised] = (),
        disclosed: bool = False,
    ) -> None:
        self.exercise, self._key, self._stopped = exercise, key, stopped
        self._disclosed = disclosed
        self._candidate: Candidate | None = None
        self._verdict: Verdict | None = None  # where it is reached without a question
        self._outcomes: dict[str, Outcome] = {}
        self._again: RepeatRun | None = None
        self._gone: EndpointGone | None = None
        if findings:
            self._verdict = Verdict(exercise, key is not None, unasked=Forbidden(tuple(findings)))

    @property
    def waits(self) -> bool:
        """Whether hidden probes are left to run, and the endpoint still responds."""
        left = any(probe.name not in self._outcomes for probe in self.exercise.hidden)
        called = self._candidate is not None and self._candidate.called
        return bool(left and self._key is not None and self._verdict is None and self._gone is None and not called)

    def ask(self, endpoint: Endpoint, hidden: bool) -> None:
        """Run the visible or the hidden probes. A lost endpoint is recorded, never raised."""
        if self._verdict is not None or (hidden and self._key is None):
            return
        if self._candidate is None:
            self._candidate = Candidate(self.exercise, endpoint, self.exercise.forbidden)
            self._look()
        self._candidate.turn_to(endpoint)
        probes = in_order(self.exercise, self._key) if hidden else self.exercise.visible
        for probe in probes if self._verdict is None else ():
            if not self._candidate.called:  # a forbidden function earns nothing anyway
                self._outcomes[probe.name] = self._asked(probe)
        if self._again is None and self._verdict is None and not self._candidate.called:
            self._again = self._asked_again(may_be_shown=self._disclosed or not hidden)

    def observe_under(self, key: bytes, endpoint: Endpoint) -> list[Outcome]:
        """The observations of the answer on the hidden probes under another key. No points depend on them.

        Raises EndpointGone if the endpoint is lost.
        """
        if self._candidate is None:
            return []
        self._candidate.turn_to(endpoint)
        outcomes = []
        for probe in self.exercise.hidden:
            case, expected, cotangent = question_of(self.exercise, probe, key)
            got = self._candidate.observe(probe, case, expected, cotangent)
            parted = compare.difference(expected, got, probe)
            outcomes.append(Outcome(probe, case, cotangent, expected, got, parted))
        return outcomes

    def lose(self, reason: str) -> None:
        """Record that no more probes can run."""
        if self._gone is None:
            self._gone = EndpointGone(reason)

    def verdict(self) -> Verdict:
        """The verdict, without an explanation (see `explain`)."""
        whole = self._key is not None
        if self._verdict is not None:
            return self._verdict
        if self._candidate is not None and self._candidate.called:
            return Verdict(self.exercise, whole, unasked=Forbidden(called=tuple(sorted(self._candidate.called))))
        probes = self.exercise.probes if whole else self.exercise.visible
        outcomes = [self._outcomes.get(probe.name) or self._unasked(probe) for probe in probes]
        return Verdict(self.exercise, whole, tuple(outcomes), again=self._again)

    def _look(self) -> None:
        try:
            unasked = _missing(self.exercise, self._candidate, self._stopped)
        except EndpointGone as gone:
            unasked = NotChecked(str(gone))
        if unasked is not None:
            self._verdict = Verdict(self.exercise, self._key is not None, unasked=unasked)

    def _asked(self, probe: Probe) -> Outcome:
        if self._gone is not None:
            return self._unasked(probe)
        case, expected, cotangent = question_of(self.exercise, probe, self._key or b"")
        try:
            got = self._candidate.observe(probe, case, expected, cotangent)
        except EndpointGone as gone:
            self._gone = gone
            return self._unasked(probe)
        parted = compare.difference(expected, got, probe)
        return Outcome(probe, case, cotangent, expected, got, parted, self._disclosed)

    def _asked_again(self, may_be_shown: bool) -> RepeatRun | None:
        """The first failing probe, repeated for the explanation. An internal error costs only the explanation.

        For a hidden probe that may not be shown, only whether two calls differ.
        """
        asked = [self._outcomes[probe.name] for probe in self.exercise.probes if probe.name in self._outcomes]
        failures = [outcome for outcome in asked if not outcome.passed and outcome.got is not None]
        if not failures or isinstance(failures[0].got.result, Structure):
            return None  # what parameters a class holds depends on no seed and on no input
        try:
            return repeat(self.exercise, self._candidate, failures[0], may_be_shown)
        except EndpointGone as gone:
            self._gone = gone
        except CourseError:
            raise
        except Exception:
            return None
        return None

    def _unasked(self, probe: Probe) -> Outcome:
        parted = Difference("gone", got=str(self._gone or ""))
        return Outcome(probe, Case(()), None, Observation(None), None, parted, self._disclosed)


def in_order(exercise: Exercise, key: bytes) -> list[Probe]:
    """The hidden probes in the order that a key gives them.

    Many correct results, such as True and False, are the same under every key. In a fixed order they could be returned
    without reading any input.
    """
    return sorted(exercise.hidden, key=lambda probe: hmac.digest(key, f"order|{probe.name}".encode(), "sha256"))


def draw_key(secret: bytes, assignment: str, exercise: str, sources: Sequence[str | None]) -> bytes:
    """The key of a submission's hidden inputs: equal submissions get equal inputs, a changed one new inputs.

    sources: the cells that were run, in order, with None for each check. The same text in other cells may behave
    differently, so it gets another key.
    """
    digest = hashlib.sha256(json.dumps(list(sources)).encode()).hexdigest()
    return hmac.new(secret, f"{assignment}|{exercise}|{digest}".encode(), hashlib.sha256).digest()


def _missing(exercise: Exercise, candidate: Candidate, stopped: Sequence[Raised]) -> Missing | None:
    """The reason why there is nothing to judge; None if there is something."""
    wanted = ("class",) if exercise.is_class else ("function", "class")
    for name, kind in candidate.kinds().items():
        if kind not in wanted:
            return Missing(name, kind, tuple(stopped))
    return None
