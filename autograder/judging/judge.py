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
    """The verdict on one answer, all of its probes asked at once; the arguments are those of `JudgingSession`."""
    session = JudgingSession(exercise, key, findings, stopped, disclosed)
    session.ask(endpoint, hidden=False)
    session.ask(endpoint, hidden=True)
    return session.verdict()


class JudgingSession:
    """One answer under questions, on the way to its verdict. The visible probes come first.

    The hidden ones come in an order that the key draws (see `in_order`). In grading they run when no visible probe of
    the whole notebook is left to run, because a report shows what an answer returned to a visible probe: by then it has
    never met a hidden input that it could return.

    key: from which hidden inputs are drawn (see `draw_key`); None judges visible probes only (see `visible_check`).
    findings: forbidden shortcuts that the source shows; any of them earns 0, as does a call of a forbidden function.
    stopped: what ended the answer's own code early, said when its object is therefore missing (see `Missing`).
    disclosed: hidden probes may be shown in full too; never in grading.
    """

    def __init__(
        self,
        exercise: Exercise,
        key: bytes | None,
        findings: Sequence[str] = (),
        stopped: Sequence[Raised] = (),
        disclosed: bool = False,
    ) -> None:
        self.exercise, self._key, self._findings, self._stopped = exercise, key, findings, stopped
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
        """Whether hidden probes are left to run, and the other side still answers."""
        left = any(probe.name not in self._outcomes for probe in self.exercise.hidden)
        called = self._candidate is not None and self._candidate.called
        return bool(left and self._key is not None and self._verdict is None and self._gone is None and not called)

    def ask(self, endpoint: Endpoint, hidden: bool) -> None:
        """Put the visible or the hidden probes to the answer. A side that is lost is noted, never raised."""
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
        """What the answer shows to the hidden probes under another key. No points depend on it.

        Raises EndpointGone when the other side is lost.
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
        """Note that no more probes can run."""
        if self._gone is None:
            self._gone = EndpointGone(reason)

    def verdict(self) -> Verdict:
        """What was decided, not yet explained (see `explain`)."""
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
        """The first failure, run once more, for the explanation. An exception of ours costs the explanation only.

        Of a hidden one that may not be shown it is only asked whether two calls differ.
        """
        asked = [self._outcomes[probe.name] for probe in self.exercise.probes if probe.name in self._outcomes]
        failures = [outcome for outcome in asked if not outcome.passed and outcome.got is not None]
        if not failures or isinstance(failures[0].got.result, (Raised, Structure)):
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

    Many right results are the same under every key, such as True and False. In one fixed order they could be returned
    without looking at any input.
    """
    return sorted(exercise.hidden, key=lambda probe: hmac.digest(key, f"order|{probe.name}".encode(), "sha256"))


def draw_key(secret: bytes, assignment: str, exercise: str, sources: Sequence[str | None]) -> bytes:
    """The key of a submission's hidden inputs: equal work gets equal inputs, a resubmission new ones.

    sources: the cells that were run, in order, and None where a check is. The same text cut into other cells may
    act otherwise, so it is other work.
    """
    digest = hashlib.sha256(json.dumps(list(sources)).encode()).hexdigest()
    return hmac.new(secret, f"{assignment}|{exercise}|{digest}".encode(), hashlib.sha256).digest()


def _missing(exercise: Exercise, candidate: Candidate, stopped: Sequence[Raised]) -> Missing | None:
    """Why there is nothing to ask; None when there is."""
    wanted = ("class",) if exercise.is_class else ("function", "class")
    for name, kind in candidate.kinds().items():
        if kind not in wanted:
            return Missing(name, kind, tuple(stopped))
    return None
