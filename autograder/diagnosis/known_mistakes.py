"""Identifies the known mistake, or the two, whose observations equal the learner's."""

import inspect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, fields, replace
from functools import cache, cached_property
from itertools import combinations, islice
from typing import Any, ClassVar

from torch import Tensor

from autograder.catalogue.exercise import Case, Evidence, Exercise, Misconception, Probe
from autograder.catalogue.known_answers import Answer
from autograder.diagnosis.behavior import is_degenerate
from autograder.diagnosis.same_error import same_words, stopped_alike
from autograder.judging import compare
from autograder.judging.closeness import distance
from autograder.judging.observation import Difference, Observation, Outcome, Raised, Structure
from autograder.judging.observe import Candidate, EndpointGone, LocalEndpoint
from autograder.judging.probe_inputs import asks_everybody, question_of

FEWEST = 2  # failures that two mistakes at once must explain
FEW = 4  # different texts that an argument may be, to count as a setting
MORE = "Other checks fail as well, for the same reason or a different one: fix this first, then check again."
TWO = "Two known mistakes together give exactly your results."
NEARLY_TWO = "Two known mistakes together come close to your results."  # where the tolerance is large
SOME = "Some of your wrong results, but not all, match a known mistake:"
FIX_IT = "Fix this first, then check again."
LOOSE = 0.01  # a tolerance, relative or not, from which on results agree by chance, as of a measurement
MOST_PAIRS = 1_400  # of a class, which takes a millisecond each; of a whole model it is ten
MOST_TRIED = 400  # pairs that are not kept: a number and no time, so that all machines say the same
_PAIRS: dict[str, tuple[Exercise, tuple["_Pair", ...]]] = {}
EVERY, SOME_CHECKS, SETTING = "every", "some", "setting"


@dataclass(frozen=True)
class Claim:
    """The claim of the report about the checks, as data. extent: the mistake returns the answer's results in `EVERY`
    check, in `SOME_CHECKS` of the failing ones, or in all of one `SETTING`, which is `where`. only: no check fails
    elsewhere."""

    extent: str = EVERY
    where: tuple = ()
    only: bool = False


@dataclass(frozen=True)
class Identified(Misconception):
    """A known mistake with a message that says in which checks it was seen."""

    claim: Claim = Claim()


def _identified(known: Misconception, claim: Claim, **changed: Any) -> Identified:
    values = {field.name: getattr(known, field.name) for field in fields(Misconception)}
    return Identified(**(values | changed), claim=claim)


def diagnose(exercise: Exercise, outcomes: Sequence[Outcome]) -> tuple[Misconception, Evidence | None] | None:
    """The misconception that explains the failures, with visible evidence if there is any, or None.

    One that agrees with the learner on every probe is returned at once. Otherwise it is the one that explains most
    failures, if it explains the first, another, and at least half of them: an answer may have a known mistake and
    another one, but on a single input two mistakes may look alike. If a second one explains the rest, both are named
    (`_two_at_once`); otherwise the report says that something is left. If none explains enough, all pairs are tried.
    """
    asked = [outcome for outcome in outcomes if outcome.got is not None]
    # What is kept of the mistakes first, then what the most mistakes disagree with.
    asked = sorted(asked, key=lambda outcome: outcome.probe.hidden and 1 + outcome.passed)
    failures = sum(not outcome.passed for outcome in asked)
    failures_first = sorted(asked, key=lambda outcome: outcome.passed)
    best, most = None, 0
    for misconception in exercise.mistakes if failures else ():
        agreeing, clashes = _agreement(exercise, misconception, asked)
        if agreeing and not clashes:
            return misconception, _evidence(agreeing)
        values = any(not isinstance(outcome.got.result, Raised) for outcome in agreeing)  # errors alone show little
        if values and len(agreeing) > max(most, 1) and 2 * len(agreeing) >= failures:
            best, most = (misconception, _evidence(agreeing)), len(agreeing)
    if best is not None:
        known, evidence = best
        said = known  # a mark may be hidden
        if known.shows is None:
            said = _identified(known, Claim(SOME_CHECKS), message=f"{SOME} {known.message} {FIX_IT}")
        both = _two_at_once(exercise, failures_first, known)
        return both or _in_one_setting(exercise, failures_first) or (said, evidence)
    return _two_at_once(exercise, failures_first) or _in_one_setting(exercise, failures_first)


def _two_at_once(
    exercise: Exercise, asked: Sequence[Outcome], one: Misconception | None = None
) -> tuple[Misconception, None] | None:
    """Two known mistakes that together agree with the learner on every probe, two of which fail in values.

    Hundreds of pairs are tried, so their results on visible probes are cached. If that is impossible, or if a class has
    too many pairs, only a learner's own check tries them: the nearest first, at most `MOST_TRIED`. If the tolerance is
    large, neither of the two may explain the first failure alone.
    asked: the failures first. one: must be among the two, and gives the result its name; else the first mistake does.
    """
    failures, passes = [o for o in asked if not o.passed], [o for o in asked if o.passed]
    few = exercise.roles is None or len(list(islice(_made(_pairs(exercise)), MOST_PAIRS + 1))) <= MOST_PAIRS
    kept = few and asks_everybody(exercise, asked[0].probe, asked[0].case) if asked else False
    in_values = [outcome for outcome in failures if not isinstance(outcome.got.result, (Raised, Structure))]
    if len(in_values) < FEWEST or not (kept or asked[0].disclosed) or is_degenerate(in_values):
        return None
    loose = any(max(outcome.probe.rtol, outcome.probe.atol) >= LOOSE for outcome in asked)
    pairs = _pairs(exercise) if kept else islice(_made(_nearest_first(exercise, asked[0])), MOST_TRIED)
    for pair in pairs:
        first, second = pair.first, pair.second
        if one is not None and one not in (first, second):
            continue
        if not all(_passes(exercise, single, outcome) for single in (first, second) for outcome in passes):
            continue
        if (known := pair.known) is None:
            continue
        agreeing, clashes = _agreement(exercise, known, asked[:1], pair=True)
        if agreeing and not clashes:
            agreeing, clashes = _agreement(exercise, known, asked, pair=True)
        enough = loose and any(_agreement(exercise, single, asked[:1])[0] for single in (first, second))
        if agreeing and not clashes and not enough and not _claims_a_missing_axis(first, second, in_values):
            first, second = (second, first) if second == one else (first, second)
            alone = (
                f"The first, taken alone: {_beside(first.message)} The second, taken alone: {_beside(second.message)}"
            )
            said = f"{NEARLY_TWO if loose else TWO} {alone}"
            return _identified(known, Claim(), name=first.name, reread=first.reread, message=said), None
    return None


def _claims_a_missing_axis(first: Misconception, second: Misconception, failures: Sequence[Outcome]) -> bool:
    """Whether one of two mistakes is said to leave an axis of length 1, and no result has one."""
    claimed = any("length 1" in each.message for each in (first, second))
    shapes = [outcome.got.result.shape for outcome in failures if isinstance(outcome.got.result, Tensor)]
    return claimed and bool(shapes) and not all(1 in shape for shape in shapes)


def is_of_two(known: Misconception) -> bool:
    """Whether it is two known mistakes at once."""
    return known.message.startswith((TWO, NEARLY_TWO))


def _nearest_first(exercise: Exercise, outcome: Outcome) -> list["_Pair"]:
    """The pairs, sorted by the distance of each mistake's own result to the learner's."""
    apart = {}
    for known in exercise.mistakes:
        with suppress(EndpointGone):
            shown = Asked.of(exercise, known).shows(outcome)[0] if known.shows is None else Observation(None)
            far = distance(shown.result, outcome.got.result)  # 1 for lists, also equal ones
            apart[known.name] = far if far < 1 or not _same(shown, outcome) else 0.0
    return sorted(_pairs(exercise), key=lambda pair: apart.get(pair.first.name, 1.0) + apart.get(pair.second.name, 1.0))


def _beside(message: str) -> str:
    """A message without the words that everything else is right, which are false if there is a second mistake."""
    begin, but, rest = message.partition(" right, but ")
    return rest[0].upper() + rest[1:] if but and "." not in begin else message


def _in_one_setting(exercise: Exercise, asked: Sequence[Outcome]) -> tuple[Misconception, Evidence | None] | None:
    """A known mistake that explains all probes of one setting: one of several functions, or one value of a flag or of
    an argument with a few strings. It may be the only mistake, or there may be others in other settings.

    asked: the failures first; the setting of the first one comes first, and must be explained.
    """
    if not asked or asked[0].passed:
        return None
    names = settings(exercise, asked)
    confining = [name for name in names if len({setting(exercise, o.case, name) for o in asked if not o.passed}) == 1]
    for name in names:
        groups: dict[tuple, list[Outcome]] = {}
        for outcome in asked:
            groups.setdefault(setting(exercise, outcome.case, name), []).append(outcome)
        wrong = [setting for setting, here in groups.items() if not here[0].passed]
        if len(groups) == 1 or not (found := _explains_all(exercise, groups, wrong[0])):
            continue
        others = {setting: _explains_all(exercise, groups, setting) for setting in wrong[1:]}
        only = confining == [name]  # where two settings fit, neither is known to be the reason
        places = {found[0].message: [where_it_is(wrong[0]) + (", and only there" if only else "")]}
        for elsewhere, other in others.items():
            if other:
                places.setdefault(other[0].message, []).append(where_it_is(elsewhere))
        said = [
            f"{', and '.join([first, *map(uncapitalized, rest)])}: {text}" for text, (first, *rest) in places.items()
        ]
        said += [] if all(others.values()) else [MORE]
        return _identified(found[0], Claim(SETTING, wrong[0], only), message=" ".join(said)), found[1]
    return None


def _explains_all(
    exercise: Exercise, groups: Mapping[tuple, Sequence[Outcome]], here: tuple
) -> tuple[Misconception, Evidence | None] | None:
    """A known mistake that explains all probes of a setting; if there are several, one that passes in all others."""
    elsewhere = [outcome for setting, there in groups.items() if setting != here for outcome in there]
    first = None
    for known in exercise.mistakes:
        agreeing, clashes = _agreement(exercise, known, groups[here])
        if agreeing and not clashes:
            first = first or (known, _evidence(agreeing))
            if all(_passes(exercise, known, outcome) for outcome in elsewhere):
                return known, _evidence(agreeing)
    return first


def settings(exercise: Exercise, asked: Sequence[Outcome]) -> list[str]:
    """The names of the arguments that are flags or one of a few strings; also "" if there are several functions."""
    several = [""] if len({outcome.case.function for outcome in asked}) > 1 else []
    values: dict[str, set] = {}
    for outcome in asked:
        for name, value in _arguments(exercise, outcome.case).items():
            if isinstance(value, (bool, str)):
                values.setdefault(name, set()).add(value)
    return several + [name for name, found in values.items() if 1 < len(found) <= FEW]


def setting(exercise: Exercise, case: Case, name: str) -> tuple:
    """(function, name of the argument, its value); the name is empty if the function has no such argument."""
    value = _arguments(exercise, case).get(name)
    return (case.function or exercise.names[0], *((name, value) if isinstance(value, (bool, str)) else ("", None)))


def where_it_is(setting: tuple) -> str:
    """A setting in words, to begin a sentence: "Where causal is True", or "In decode" for a function."""
    function, name, value = setting
    return f"Where {name} is {value!r}" if name else f"In {function}"


def uncapitalized(text: str) -> str:
    """A sentence as it continues another one: its first letter is small."""
    return text[0].lower() + text[1:]


def _arguments(exercise: Exercise, case: Case) -> dict[str, Any]:
    """The arguments of a call, or of a class's constructor, by name."""
    made = case.construct or case.arguments
    names = inspect.signature(exercise.reference[case.function or exercise.names[0]]).parameters
    return dict(zip(names, made, strict=False))


@dataclass
class _Pair:
    """Two known mistakes, made by changes of the same correct answer."""

    first: Misconception
    second: Misconception

    @cached_property
    def known(self) -> Misconception | None:
        """The mistake that combines both; None if they cannot be combined. Computed on demand: few of hundreds of pairs
        are needed, and compiling takes most of the time."""
        both = self.first.source.together(self.second.source)
        name = f"{self.first.name} + {self.second.name}"
        return replace(self.first, name=name, source=both, quotes=None) if both else None


def _pairs(exercise: Exercise) -> tuple[_Pair, ...]:
    """All pairs of an exercise, also those that cannot be combined."""
    kept = _PAIRS.get(exercise.id)
    if kept is None or kept[0] is not exercise:
        changed = [
            known
            for known in exercise.mistakes
            if isinstance(known.source, Answer) and known.source.changes and known.shows is None
        ]
        pairs = combinations(changed, 2)
        one_origin = (_Pair(first, second) for first, second in pairs if first.source.origin == second.source.origin)
        kept = _PAIRS[exercise.id] = exercise, tuple(one_origin)
    return kept[1]


def _made(pairs: Iterable[_Pair]) -> Iterator[_Pair]:
    """The pairs that can be combined."""
    return (pair for pair in pairs if pair.known is not None)


def namespace_of(source: str) -> Mapping[str, Any]:
    """The namespace of a snippet that is run as a notebook cell after the set-up cell."""
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


def _agreement(
    exercise: Exercise, known: Misconception, outcomes: Sequence[Outcome], pair: bool = False
) -> tuple[list[Outcome], int]:
    """The failures that the misconception reproduces, and the number of probes on which it disagrees.

    The comparison ends at once if it does not reproduce the first failure, or fails where the learner does not.
    pair: it is two in one, so a value that agrees may show only one of them, and errors must be of one type.
    """
    if known.shows is not None:
        marks = [(outcome, _bears_mark(known, outcome)) for outcome in outcomes if not outcome.passed]
        failures = [outcome for outcome, mark in marks if mark is not None]
        bearing = [outcome for outcome, mark in marks if mark]
        return (bearing, len(failures) - len(bearing)) if bearing[:1] == failures[:1] else ([], len(failures))
    asked = Asked.of(exercise, known)
    agreeing, clashes = [], 0
    partly_right = any(outcome.passed and not outcome.probe.hidden for outcome in outcomes)
    for outcome in outcomes:
        try:
            shown, parted = asked.shows(outcome)
        except EndpointGone:
            return [], len(outcomes)
        if outcome.passed:
            if parted is not None:
                return [], len(outcomes)  # the learner can do what this mistake cannot
        elif parted is not None and _agrees(parted, shown, outcome, agreeing, partly_right, pair):
            agreeing.append(outcome)
        elif not agreeing:
            return [], len(outcomes)
        else:
            clashes += 1
    return agreeing, clashes


class Asked:
    """The results of a known mistake on a learner's probes. Those on visible probes, which are the same for everybody,
    are cached.

    How a class's parameters are matched depends on earlier probes, so the mistake runs the visible probes in the same
    order as a learner's answer, then the hidden ones.
    """

    _KEPT: ClassVar[dict[tuple[str, str], "Asked"]] = {}

    def __init__(self, exercise: Exercise, known: Misconception) -> None:
        self._exercise, self._source = exercise, known.source
        self._first = Candidate(exercise, LocalEndpoint(namespace_of(known.source)))
        self._shown: dict[str, tuple[Observation, Difference | None]] = {}
        self._then: Candidate | None = None

    @classmethod
    def of(cls, exercise: Exercise, known: Misconception) -> "Asked":
        """A copy of the cached results of a known mistake: visible ones are shared, hidden ones belong to the copy."""
        kept = cls._KEPT.get((exercise.id, known.name))
        if kept is None or kept._exercise is not exercise or kept._source != known.source:
            kept = cls._KEPT[exercise.id, known.name] = cls(exercise, known)
        return copy(kept)

    def shows(self, outcome: Outcome) -> tuple[Observation, Difference | None]:
        """Its observation on the probe of an outcome, and the difference from the correct answer.

        Raises EndpointGone.
        """
        if asks_everybody(self._exercise, outcome.probe, outcome.case):
            if outcome.probe.name not in self._shown:
                self._ask_visible(outcome.probe)
            return self._shown[outcome.probe.name]
        if self._then is None:
            if self._exercise.roles is not None and outcome.probe.hidden:
                self._ask_visible(self._exercise.visible[-1])
            self._then = self._first.beside(LocalEndpoint(namespace_of(self._source)))
        return self._look(self._then, outcome.probe, outcome.case, outcome.expected, outcome.cotangent)

    def _ask_visible(self, last: Probe) -> None:
        """Run a visible probe; for a class, also all probes before it."""
        for probe in self._exercise.visible if self._exercise.roles is not None else (last,):
            if probe.name not in self._shown:
                self._shown[probe.name] = self._look(self._first, probe, *question_of(self._exercise, probe, b""))
            if probe.name == last.name:
                return

    @staticmethod
    def _look(
        candidate: Candidate, probe: Probe, case: Case, expected: Observation, cotangent: Any
    ) -> tuple[Observation, Difference | None]:
        shown = candidate.observe(probe, case, expected, cotangent)
        return shown, compare.difference(expected, shown, probe)


def _passes(exercise: Exercise, known: Misconception, outcome: Outcome) -> bool:
    """Whether a known mistake passes a visible probe; True for a hidden one, which is run later."""
    if not asks_everybody(exercise, outcome.probe, outcome.case):
        return True
    try:
        return Asked.of(exercise, known).shows(outcome)[1] is None
    except EndpointGone:
        return False


def _agrees(
    parted: Difference,
    shown: Observation,
    outcome: Outcome,
    agreeing: Sequence[Outcome],
    partly_right: bool,
    pair: bool,
) -> bool:
    if isinstance(shown.result, Raised) and isinstance(outcome.got.result, Raised):
        # Two spellings of one mistake stop with different words. Once a value of this function agrees, any error does;
        # where the learner also passes probes, as the mistake must then, the same kind of error does.
        values = (each for each in agreeing if not isinstance(each.got.result, Raised))
        if any(each.case.function == outcome.case.function for each in values):
            return not pair or shown.result.type == outcome.got.result.type
        if partly_right and stopped_alike(shown.result, outcome.got.result):
            return True
    return _alike(parted, outcome.difference) and _same(shown, outcome) and _reached(shown, outcome)


def _bears_mark(known: Misconception, outcome: Outcome) -> bool | None:
    """Whether a failure has the mistake's mark; None if its probe cannot show it."""
    if isinstance(outcome.got.result, Raised) or isinstance(outcome.expected.result, Raised):
        return False
    try:
        mark = known.shows(Evidence(outcome.case.arguments, outcome.expected.result, outcome.got.result))
        return mark if mark is None else bool(mark)
    except Exception:  # a learner's result may be anything
        return False


def _alike(one: Difference, other: Difference) -> bool:
    """Whether two answers differ from the correct one in the same respect and, if that is not the result itself, at the
    same place."""
    beside = one.kind in ("gradient", "no gradient", "inputs", "state")
    return one.kind == other.kind and (not beside or one.where == other.where)


def _same(shown: Observation, outcome: Outcome) -> bool:
    if isinstance(shown.result, Raised) and isinstance(outcome.got.result, Raised):
        return same_words(shown.result, outcome.got.result)
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
