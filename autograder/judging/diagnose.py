"""Which known mistake an answer shows, or which two: whose observations are the learner's own."""

import inspect
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import cache
from itertools import combinations
from typing import Any, ClassVar

from autograder.catalogue.exercise import Case, Evidence, Exercise, Misconception, Probe
from autograder.catalogue.known_answers import Answer
from autograder.judging import compare
from autograder.judging.observation import Difference, Observation, Outcome, Raised
from autograder.judging.observe import LocalPeer, PeerGone, Subject
from autograder.judging.question import asks_everybody, question_of

FEWEST = 2  # failures that two mistakes at once must explain
TWO = "Two mistakes that we know, made together, give exactly your results."
_PAIRS: dict[str, tuple[Exercise, tuple]] = {}


def diagnose(exercise: Exercise, outcomes: Sequence[Outcome]) -> tuple[Misconception, Evidence | None] | None:
    """The misconception that explains the failures, with visible evidence if there is any; None when none does.

    One that agrees with the learner on every probe is taken at once. Otherwise the one that explains most failures,
    if it explains the first, another, and at least half of them: an answer may hold a known mistake beside another, but
    on one input alone two mistakes may look alike. Where none does, two that were made together may (`_two_at_once`).
    """
    asked = [outcome for outcome in outcomes if outcome.got is not None]
    # What is kept of the mistakes first, then what the most mistakes disagree with.
    asked = sorted(asked, key=lambda outcome: outcome.probe.hidden and 1 + outcome.passed)
    failures = sum(not outcome.passed for outcome in asked)
    best, most = None, 0
    for misconception in exercise.wrong if failures else ():
        agreeing, clashes = _agreement(exercise, misconception, asked)
        if agreeing and not clashes:
            return misconception, _evidence(agreeing)
        if len(agreeing) > max(most, 1) and 2 * len(agreeing) >= failures:
            best, most = (misconception, _evidence(agreeing)), len(agreeing)
    if best is not None:
        return best
    failures_first = sorted(asked, key=lambda outcome: outcome.passed)
    return _two_at_once(exercise, failures_first) or _in_one_setting(exercise, failures_first)


def _two_at_once(exercise: Exercise, asked: Sequence[Outcome]) -> tuple[Misconception, None] | None:
    """Two known mistakes in one answer that agree with the learner on every probe, at least two failures in values.

    Hundreds of pairs are looked at, so what they show to a visible probe is kept; where it cannot be, a learner's own
    check takes the time and grading does not. asked: the failures first. It goes under the first mistake's name.
    """
    failures, passes = [o for o in asked if not o.passed], [o for o in asked if o.passed]
    kept = exercise.roles is None and asks_everybody(exercise, asked[0].probe, asked[0].case) if asked else False
    in_values = [outcome for outcome in failures if not isinstance(outcome.got.result, Raised)]
    if len(in_values) < FEWEST or not (kept or asked[0].disclosed):
        return None
    for known, first, second in _pairs(exercise):
        if not all(_passes(exercise, single, outcome) for single in (first, second) for outcome in passes):
            continue
        agreeing, clashes = _agreement(exercise, known, asked[:1])
        if agreeing and not clashes:
            agreeing, clashes = _agreement(exercise, known, asked)
        if agreeing and not clashes:
            said = f"{TWO} One: {first.message} The other: {second.message}"
            return replace(known, name=first.name, message=said), None
    return None


def _in_one_setting(exercise: Exercise, asked: Sequence[Outcome]) -> tuple[Misconception, Evidence | None] | None:
    """A known mistake that is made under one of a flag's two values alone, where every failure has this value.

    What was asked under the other value is left out, and must have been right. asked: the failures first.
    """
    if not asked or asked[0].passed:
        return None
    for name, value in _flags(exercise, asked[0].case).items():
        here = [outcome for outcome in asked if _flags(exercise, outcome.case).get(name) is value]
        others = [outcome for outcome in asked if _flags(exercise, outcome.case).get(name) is (not value)]
        if not others or not all(outcome.passed for outcome in others):
            continue
        for known in exercise.wrong:
            agreeing, clashes = _agreement(exercise, known, here)
            if agreeing and not clashes:
                said = f"Where {name} is {value}, and only there: {known.message}"
                return replace(known, message=said), _evidence(agreeing)
    return None


def _flags(exercise: Exercise, case: Case) -> dict[str, bool]:
    """The arguments of a call, or of a class's constructor, that are True or False, by name."""
    made = case.construct or case.arguments
    names = inspect.signature(exercise.reference[case.function or exercise.names[0]]).parameters
    return {name: value for name, value in zip(names, made, strict=False) if isinstance(value, bool)}


def _pairs(exercise: Exercise) -> tuple[tuple[Misconception, Misconception, Misconception], ...]:
    """Mistakes that hold two known ones, each with the two: changes of one right answer that fit together."""
    made = _PAIRS.get(exercise.id)
    if made is None or made[0] is not exercise:
        changed = [known for known in exercise.wrong if isinstance(known.source, Answer) and known.shows is None]
        found = []
        for first, second in combinations(changed, 2):
            if both := first.source.together(second.source):
                name = f"{first.name} + {second.name}"
                found.append((replace(first, name=name, source=both, quotes=None), first, second))
        made = _PAIRS[exercise.id] = exercise, tuple(found)
    return made[1]


def namespace_of(source: str) -> Mapping[str, Any]:
    """What a snippet defines, run as a notebook cell would be after the set-up cell."""
    return dict(_executed(source))


@cache
def _executed(source: str) -> tuple[tuple[str, Any], ...]:
    namespace: dict[str, Any] = {"__name__": "answer"}
    exec(
        compile(
            "import math\nimport torch\nimport torch.nn.functional as F\nfrom torch import nn\n",
            "<set-up>",
            "exec",
        ),
        namespace,
    )
    exec(compile(source, "<answer>", "exec"), namespace)
    return tuple(namespace.items())


def _agreement(exercise: Exercise, known: Misconception, outcomes: Sequence[Outcome]) -> tuple[list[Outcome], int]:
    """The failures that the misconception reproduces, and the number of probes on which it says otherwise.

    One that does not reproduce the first failure, or fails where the learner does not, is out at once.
    """
    if known.shows is not None:
        failures = [outcome for outcome in outcomes if not outcome.passed]
        bearing = [outcome for outcome in failures if _bears_mark(known, outcome)]
        return (bearing, len(failures) - len(bearing)) if bearing[:1] == failures[:1] else ([], len(failures))
    asked = _Asked.of(exercise, known)
    agreeing, clashes = [], 0
    partly_right = any(outcome.passed and not outcome.probe.hidden for outcome in outcomes)
    for outcome in outcomes:
        try:
            shown, parted = asked.shows(outcome)
        except PeerGone:
            return [], len(outcomes)
        if outcome.passed:
            if parted is not None:
                return [], len(outcomes)  # the learner can do what this mistake cannot
        elif parted is not None and _agrees(parted, shown, outcome, agreeing, partly_right):
            agreeing.append(outcome)
        elif not agreeing:
            return [], len(outcomes)
        else:
            clashes += 1
    return agreeing, clashes


class _Asked:
    """A known mistake under a learner's questions. What it shows to the visible probes, which ask everybody the same,
    is kept for all learners.

    How a class's parameters are read depends on what was asked before. So it is asked the visible probes in their
    order, as a learner's is, and the hidden ones after all of them.
    """

    _KEPT: ClassVar[dict[tuple[str, str], "_Asked"]] = {}

    def __init__(self, exercise: Exercise, known: Misconception) -> None:
        self._exercise, self._source = exercise, known.source
        self._first = Subject(exercise, LocalPeer(namespace_of(known.source)))
        self._shown: dict[str, tuple[Observation, Difference | None]] = {}
        self._then: Subject | None = None

    @classmethod
    def of(cls, exercise: Exercise, known: Misconception) -> "_Asked":
        """The known mistake, beginning with what is kept of it."""
        kept = cls._KEPT.get((exercise.id, known.name))
        if kept is None or kept._exercise is not exercise or kept._source != known.source:
            kept = cls._KEPT[exercise.id, known.name] = cls(exercise, known)
        return copy(kept)  # with hidden questions of its own

    def shows(self, outcome: Outcome) -> tuple[Observation, Difference | None]:
        """What it shows to the question of an outcome, and where that parts from the right answer. Raises PeerGone."""
        if asks_everybody(self._exercise, outcome.probe, outcome.case):
            if outcome.probe.name not in self._shown:
                self._ask_visible(outcome.probe)
            return self._shown[outcome.probe.name]
        if self._then is None:
            if self._exercise.roles is not None and outcome.probe.hidden:
                self._ask_visible(self._exercise.visible[-1])
            self._then = self._first.beside(LocalPeer(namespace_of(self._source)))
        return self._look(self._then, outcome.probe, outcome.case, outcome.expected, outcome.cotangent)

    def _ask_visible(self, last: Probe) -> None:
        """Ask a visible probe; of a class, those before it first."""
        for probe in self._exercise.visible if self._exercise.roles is not None else (last,):
            if probe.name not in self._shown:
                self._shown[probe.name] = self._look(self._first, probe, *question_of(self._exercise, probe, b""))
            if probe.name == last.name:
                return

    @staticmethod
    def _look(
        subject: Subject, probe: Probe, case: Case, expected: Observation, cotangent: Any
    ) -> tuple[Observation, Difference | None]:
        shown = subject.observe(probe, case, expected, cotangent)
        return shown, compare.difference(expected, shown, probe)


def _passes(exercise: Exercise, known: Misconception, outcome: Outcome) -> bool:
    """Whether a known mistake passes a visible probe; a hidden one is asked in its turn."""
    if not asks_everybody(exercise, outcome.probe, outcome.case):
        return True
    try:
        return _Asked.of(exercise, known).shows(outcome)[1] is None
    except PeerGone:
        return False


def _agrees(
    parted: Difference,
    shown: Observation,
    outcome: Outcome,
    agreeing: Sequence[Outcome],
    partly_right: bool,
) -> bool:
    if isinstance(shown.result, Raised) and isinstance(outcome.got.result, Raised):
        # Two spellings of one mistake stop with different words. Once a value agrees, any error does; where the learner
        # also passes probes, as the mistake must then, the same kind of error does.
        if any(not isinstance(earlier.got.result, Raised) for earlier in agreeing):
            return True
        if partly_right and shown.result.type == outcome.got.result.type:
            return True
    return _alike(parted, outcome.difference) and _same(shown, outcome) and _reached(shown, outcome)


def _bears_mark(known: Misconception, outcome: Outcome) -> bool:
    if isinstance(outcome.got.result, Raised) or isinstance(outcome.expected.result, Raised):
        return False
    try:
        return bool(known.shows(Evidence(outcome.case.arguments, outcome.expected.result, outcome.got.result)))
    except Exception:  # a learner's result may be anything
        return False


def _alike(one: Difference, other: Difference) -> bool:
    """Whether two answers are wrong in the same respect; beside the result itself, also at the same place."""
    beside = one.kind in ("gradient", "no gradient", "inputs", "state")
    return one.kind == other.kind and (not beside or one.where == other.where)


def _same(shown: Observation, outcome: Outcome) -> bool:
    if isinstance(shown.result, Raised) and isinstance(outcome.got.result, Raised):
        return (shown.result.type, shown.result.message) == (
            outcome.got.result.type,
            outcome.got.result.message,
        )
    return compare.value_difference(shown.result, outcome.got.result, outcome.probe.rtol, outcome.probe.atol) is None


def _reached(shown: Observation, outcome: Outcome) -> bool:
    """Whether gradients reach the same arguments and projections."""
    wanted = [place for place, gradient in outcome.expected.gradients.items() if gradient is not None]
    got = outcome.got.gradients
    return all((shown.gradients.get(place) is None) == (got.get(place) is None) for place in wanted)


def _evidence(agreeing: Sequence[Outcome]) -> Evidence | None:
    for outcome in agreeing:
        if not outcome.probe.hidden and not isinstance(outcome.got.result, Raised):
            return Evidence(outcome.case.arguments, outcome.expected.result, outcome.got.result)
    return None
