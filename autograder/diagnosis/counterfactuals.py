"""Finds the changed input for which a wrong result is correct: an argument transposed, exchanged or cut short.

A supposition changes an argument in one way, and the reference answers what is then asked. Where this is what the
learner returned, to all questions that tell the two apart, the supposition is a fact about their answer, however it is
written. No number is reported, so all of it may be shown for hidden probes too.
"""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from autograder.catalogue.exercise import Case, Exercise, Misconception
from autograder.diagnosis.behavior import about_results, notice
from autograder.diagnosis.changed_arguments import BLANKED, CHANGES, OF_NUMBERS, changed_by
from autograder.diagnosis.evidence import Noticed
from autograder.diagnosis.known_mistakes import namespace_of, setting, settings, shown_by
from autograder.diagnosis.output_patterns.reductions import CHANGES as DONE_AFTERWARD
from autograder.diagnosis.output_patterns.scale import Reckoned, formula
from autograder.judging import compare
from autograder.judging.observation import Observation, Outcome, Raised, Structure
from autograder.judging.observe import Candidate, EndpointGone, LocalEndpoint
from autograder.judging.probe_inputs import right_answer
from autograder.judging.repeat_run import RepeatRun

FEWEST = 2  # questions that must bear a supposition out
EXACT = (  # patterns of a whole result, in which no number is left unexplained
    *("transposed", "scaled", "offset", "reversed", "signs", "items reversed", "missing first", "missing last"),
    *("another shape", "an axis of 1 too many", "an axis of 1 missing", "affine"),
    *("sum", "mean", "left over sum", "left over mean", "first item missing", "last item missing"),
    *("left over diagonal", "argument added", "argument taken away"),
)
WEAK = ("afterward rounded", "afterward one hot", "afterward cut below", "afterward cut above")  # often seen by chance
RELATED = (
    "divided by ",
    "multiplied by ",
    "more by ",
    "less by ",
    "turned, ",
)  # how the kinds of exact patterns begin that name what of an argument
BESIDE = ("changed", "differs", "kept")  # before these nothing else needs to be looked for
MOST = 10**5  # numbers in the arguments of a probe that is run again


@dataclass(frozen=True)
class Supposed(Noticed):
    """One supposition that holds. kind: how an argument is changed (see `changes`); argument: which one, by its place.

    other: the place of a second argument; second: another axis. values: of an argument that is one of few, what was
    passed and what was meant. back: whether the result was changed back in the same way.
    """

    other: int = 0
    second: int = 0
    values: tuple = ()
    back: bool = False


def looked_at(exercise: Exercise, outcomes: Sequence[Outcome], again: RepeatRun | None) -> list[Noticed]:
    """All that is found in an answer without a known mistake, the most telling first."""
    facts = notice(exercise, outcomes, again)
    if all(outcome.passed or outcome.got is None for outcome in outcomes):
        return facts
    telling = (fact for fact in facts if fact.kind not in WEAK and not fact.partial)
    if any(fact.kind in (*EXACT, *BESIDE) or fact.kind.startswith(("afterward", *RELATED)) for fact in telling):
        return facts
    found = suppose(exercise, outcomes) or beside_known(exercise, outcomes)
    if found or any(fact.kind != "ignored" for fact in facts):
        return found or facts
    return [*(_in_one_setting(exercise, outcomes) or _formula(exercise, outcomes)), *facts]


def _formula(exercise: Exercise, outcomes: Sequence[Outcome]) -> list[Reckoned]:
    asked = [outcome for outcome in outcomes if outcome.got is not None]
    return formula(exercise, asked) if not exercise.is_class and _can_be_asked(exercise, asked) else []


def _in_one_setting(exercise: Exercise, outcomes: Sequence[Outcome]) -> list[Noticed]:
    """A pattern of all results under the first failure's setting: its function, or the value of a flag or a text."""
    asked = [outcome for outcome in outcomes if outcome.got is not None]
    failed = next(outcome for outcome in asked if not outcome.passed)
    for name in settings(exercise, asked):
        where = setting(exercise, failed.case, name)
        here = [outcome for outcome in asked if setting(exercise, outcome.case, name) == where]
        if FEWEST <= len(here) < len(asked) and not any(outcome.passed for outcome in here):
            found = [fact for fact in about_results(here) if fact.sure and not fact.partial]
            if found:
                return [replace(found[0], where=where)]
    return []


def suppose(exercise: Exercise, outcomes: Sequence[Outcome]) -> list[Supposed]:
    """The first supposition that all questions bear out; none where the reference takes long."""
    asked = [outcome for outcome in outcomes if outcome.got is not None]
    failing = [outcome for outcome in asked if not outcome.passed]
    if len(failing) < FEWEST or not _can_be_asked(exercise, asked):
        return []
    asked = [outcome for outcome in asked if outcome.case.function == failing[0].case.function]
    asked.sort(key=lambda outcome: outcome.passed)
    elsewhere = any(outcome.case.function != failing[0].case.function for outcome in failing)

    def answers(outcome: Outcome, case: Case) -> Observation:
        return right_answer(exercise, outcome.probe, case)

    for supposed in _suppositions(asked):
        if unexplained := _unexplained(answers, supposed, asked):
            where = setting(exercise, failing[0].case, "") if elsewhere else ()
            return [replace(supposed, where=where, partial=unexplained.failures > 0)]
    return []


def beside_known(exercise: Exercise, outcomes: Sequence[Outcome]) -> list[Noticed]:
    """A known mistake and one more slip: its results differ from the learner's by a pattern or a changed argument.

    A changed argument is looked for only in a learner's own check, which takes the time.
    """
    asked = [outcome for outcome in outcomes if outcome.got is not None]
    failing = [outcome for outcome in asked if not outcome.passed]
    kinds = (Tensor, tuple)  # in lists much is alike by chance
    if len(failing) < FEWEST or not all(isinstance(outcome.got.result, kinds) for outcome in failing):
        return []
    ways = [_pattern_beside]
    if failing[0].disclosed and exercise.roles is None and _can_be_asked(exercise, asked):
        ways.append(_beside)
    for way in ways:
        for known in exercise.mistakes:
            with contextlib.suppress(EndpointGone):
                if known.shows is None and (fact := way(exercise, known, asked)) is not None:
                    return [replace(fact, beside=known.message)]
    return []


def _pattern_beside(exercise: Exercise, known: Misconception, asked: Sequence[Outcome]) -> Noticed | None:
    """The pattern that turns a known mistake's results into the learner's, in every probe.

    The mistake's results on visible probes are kept, so they are looked at first.
    """
    candidate = shown_by(exercise, known)
    failing = [outcome for outcome in asked if not outcome.passed]
    visible = [outcome for outcome in failing if not outcome.probe.hidden]
    found: list[Noticed] = []
    for some in (visible, failing) if visible else ():
        alike, mistaken = [], 0
        for outcome in some:
            shown, fails = candidate.shows(outcome)
            mistaken += fails is not None
            if isinstance(shown.result, (Raised, Structure)):
                return None
            parted = compare.value_difference(shown.result, outcome.got.result, outcome.probe.rtol, outcome.probe.atol)
            if parted is None:  # the mistake explains it without a pattern
                continue
            if parted.kind not in ("value", "nan", "shape", "length"):
                return None
            alike.append(replace(outcome, expected=shown, difference=parted))
        found = [fact for fact in about_results(alike) if _is_exact(fact)]
        if not found or 2 * mistaken < len(some):  # where it is not a mistake at all it explains nothing
            return None
    passes = (outcome for outcome in asked if outcome.passed)
    return found[0] if found and found[0].sure and all(candidate.shows(o)[1] is None for o in passes) else None


def _is_exact(fact: Noticed) -> bool:
    """Whether a pattern leaves no number unexplained, and is none that is often seen by chance."""
    kind = fact.kind.removeprefix("afterward ")
    exact = fact.kind in EXACT or fact.kind.startswith(RELATED) or (kind != fact.kind and kind in DONE_AFTERWARD)
    return exact and not fact.partial


def _beside(exercise: Exercise, known: Misconception, asked: Sequence[Outcome]) -> Noticed | None:
    """The change of an argument that makes a known mistake's results the learner's."""
    candidate = Candidate(exercise, LocalEndpoint(namespace_of(known.source)))

    def answers(outcome: Outcome, case: Case) -> Observation:
        return candidate.observe(outcome.probe, case, None)

    ordered = sorted(asked, key=lambda outcome: outcome.passed)
    left_out = ("value", "values", *OF_NUMBERS, *BLANKED)  # with a second slip they explain too much, and take long
    suppositions = (each for each in _suppositions(ordered) if each.kind not in left_out)
    return next((each for each in suppositions if _unexplained(answers, each, ordered) == NOTHING), None)


def _can_be_asked(exercise: Exercise, asked: Sequence[Outcome]) -> bool:
    """Whether the reference runs quickly on any input, and returns a value for the first probe that fails."""
    plain = not (exercise.methods or exercise.harness or exercise.trained)
    failing = next(outcome for outcome in asked if not outcome.passed)
    return plain and not isinstance(failing.got.result, Raised) and all(_small(outcome.case) for outcome in asked)


def _small(case: Case) -> bool:
    numbers = sum(value.numel() for value in case.arguments if isinstance(value, Tensor))
    return numbers <= MOST and not any(map(callable, case.arguments))


def _suppositions(asked: Sequence[Outcome]) -> Iterator[Supposed]:
    """All that the first failure's arguments suggest."""
    arguments = asked[0].case.arguments
    for place, value in enumerate(arguments):
        if isinstance(value, (str, bool)):
            given = [o.case.arguments for o in asked if not o.probe.hidden and place < len(o.case.arguments)]
            shown = {arguments[place] for arguments in given}
            for meant in sorted(shown - {value}, key=repr) if value in shown and len(shown) < 5 else ():
                yield Supposed("value", argument=place, values=(value, meant))
                yield Supposed("values", argument=place, values=(value, meant))
    for place, value in enumerate(arguments):
        for other in range(place + 1, len(arguments)):
            if _exchangeable(value, arguments[other]):
                yield Supposed("exchanged", argument=place, other=other)
    for place, value in enumerate(arguments):
        for kind, change in CHANGES.items():
            if changed_by(change, value) is not None:
                yield Supposed(kind, argument=place)
        for other in range(place + 1, len(arguments)) if isinstance(value, Tensor) else ():
            for kind, change in OF_NUMBERS.items():
                if _exchangeable(value, arguments[other]) and changed_by(change, value) is not None:
                    yield Supposed(kind, argument=place, other=other)
        if isinstance(value, Tensor):
            for axis in range(value.ndim):
                if value.shape[axis] > 1 and value.dtype == torch.bool:
                    yield Supposed("first hidden", argument=place, axis=axis, axes=value.ndim)
                    yield Supposed("last hidden", argument=place, axis=axis, axes=value.ndim)
                if value.shape[axis] > 1:
                    yield Supposed("first for all", argument=place, axis=axis, axes=value.ndim)
                    yield Supposed("final for all", argument=place, axis=axis, axes=value.ndim)
                    yield Supposed("flipped", argument=place, axis=axis, axes=value.ndim)
                    for kind in BLANKED if value.is_floating_point() else ():
                        yield Supposed(kind, argument=place, axis=axis, axes=value.ndim)
                for second in range(axis + 1, value.ndim):
                    yield Supposed("turned", argument=place, axis=axis, second=second, back=True)
                    yield Supposed("turned", argument=place, axis=axis, second=second)
    for place, value in enumerate(arguments):
        for axis in range(value.ndim) if isinstance(value, Tensor) else ():
            if value.shape[axis] > 1:  # last, since what is one place off in a result comes of much
                yield Supposed("moved on", argument=place, axis=axis, axes=value.ndim)
                yield Supposed("moved back", argument=place, axis=axis, axes=value.ndim)


def _exchangeable(one: Any, other: Any) -> bool:
    if isinstance(one, Tensor) and isinstance(other, Tensor):
        return one.dtype == other.dtype and one.ndim == other.ndim
    return type(one) is type(other) is int


@dataclass(frozen=True)
class Unexplained:
    """What a supposition that holds leaves open: the number of failures in which the reference itself stops."""

    failures: int


NOTHING = Unexplained(0)


def _unexplained(
    answers: Callable[[Outcome, Case], Observation], supposed: Supposed, asked: Sequence[Outcome]
) -> Unexplained | None:
    """What is left if the reference, given the changed arguments, returns what the learner's answer did: in every
    check, and in two that fail. None where it does not."""
    agreeing = stopped = 0
    for outcome in asked:
        if outcome.passed and isinstance(outcome.expected.result, Raised):  # what is refused, is refused first
            continue
        case = _case(supposed, outcome.case)
        if case is None:
            if not outcome.passed:
                return None
            continue
        try:
            meant = _back(supposed, answers(outcome, case).result)
        except Exception:  # no probe has this input, and `normalize` may not find what it reads of a result
            return None
        if isinstance(meant, Raised):
            if outcome is asked[0] or not isinstance(outcome.got.result, Tensor):
                return None
            stopped += not outcome.passed
            continue
        closeness = outcome.probe.rtol, outcome.probe.atol
        if compare.value_difference(meant, outcome.got.result, *closeness) is not None:
            return None
        empty = isinstance(meant, (list, str)) and not meant
        told = not empty and compare.value_difference(outcome.expected.result, meant, *closeness) is not None
        agreeing += told and not outcome.passed
    return Unexplained(stopped) if agreeing >= FEWEST else None


def _case(supposed: Supposed, case: Case) -> Case | None:
    """The question that is supposed to have been understood; None where the supposition says nothing of it."""
    arguments = list(case.arguments)
    place, other = supposed.argument, supposed.other
    if max(place, other) >= len(arguments):
        return None
    value = arguments[place]
    axis = supposed.axis - supposed.axes  # counted from the end
    if supposed.kind == "value":
        passed, meant = supposed.values
        changed = meant if value == passed else None
    elif supposed.kind == "values":
        changed = dict(zip(supposed.values, supposed.values[::-1], strict=True)).get(value)
    elif supposed.kind == "exchanged":
        arguments[place], arguments[other] = arguments[other], value
        changed = arguments[place]
    elif supposed.kind in CHANGES:
        changed = changed_by(CHANGES[supposed.kind], value)
        if other and (second := changed_by(CHANGES[supposed.kind], arguments[other])) is not None:
            arguments[other], changed = second, value if changed is None else changed
    elif supposed.kind in BLANKED:
        fits = isinstance(value, Tensor) and value.ndim >= -axis
        changed = BLANKED[supposed.kind](value, axis) if fits else None
    elif not isinstance(value, Tensor) or value.ndim < max(supposed.axes - supposed.axis, supposed.second + 1):
        return None
    elif supposed.kind in ("first for all", "final for all"):
        which = 0 if supposed.kind == "first for all" else value.shape[axis] - 1
        changed = value.narrow(axis, which, 1).expand_as(value)
    elif supposed.kind in ("moved on", "moved back"):
        changed = value.roll(1 if supposed.kind == "moved on" else -1, axis)
    elif supposed.kind in ("first hidden", "last hidden"):
        which = 0 if supposed.kind == "first hidden" else value.shape[axis] - 1
        changed = value.clone()
        changed.select(axis, which).fill_(False)
    elif supposed.kind == "flipped":
        changed = value.flip(axis)
    else:
        changed = value.transpose(supposed.axis, supposed.second)
    if changed is None:
        return None
    arguments[place] = changed
    return replace(case, arguments=tuple(arguments))


def _back(supposed: Supposed, result: Any) -> Any:
    if supposed.back and isinstance(result, Tensor):
        if result.ndim <= max(supposed.axis, supposed.second):
            return Raised("IndexError", "")
        return result.transpose(supposed.axis, supposed.second)
    return result
