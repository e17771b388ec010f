"""Finds the changed input for which a wrong result is correct: an argument transposed, exchanged or cut short.

A supposition changes an argument in one way, and the reference computes the result for it. If the learner returned
exactly that in all checks in which the change matters, the supposition is a fact about their answer, however it is
written. No number is reported, so all of it may be shown for hidden probes too.
"""

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from torch import Tensor

from autograder.catalogue.exercise import Case, Exercise, Misconception
from autograder.diagnosis.behavior import is_degenerate
from autograder.diagnosis.evidence import Fact
from autograder.diagnosis.known_mistakes import Asked, namespace_of, setting
from autograder.diagnosis.output_patterns.results import about_results
from autograder.diagnosis.suppositions import Supposed, suppositions
from autograder.judging import closeness, compare
from autograder.judging.observation import Observation, Outcome, Raised, Structure
from autograder.judging.observe import Candidate, EndpointGone, LocalEndpoint
from autograder.judging.probe_inputs import right_answer

FEWEST = 2  # questions that must bear a supposition out
MOST = 250_000  # numbers in the arguments of a probe that is run again


def suppose(exercise: Exercise, outcomes: Sequence[Outcome]) -> list[Supposed]:
    """The first supposition that is consistent with all probes; none if the reference is slow."""
    asked = [outcome for outcome in outcomes if outcome.got is not None]
    failing = [outcome for outcome in asked if not outcome.passed]
    if len(failing) < FEWEST or not can_be_asked(exercise, asked):
        return []
    asked = [outcome for outcome in asked if outcome.case.function == failing[0].case.function]
    asked.sort(key=lambda outcome: outcome.passed)
    elsewhere = any(outcome.case.function != failing[0].case.function for outcome in failing)

    def answers(outcome: Outcome, case: Case) -> Observation:
        return right_answer(exercise, outcome.probe, case)

    little = is_degenerate(failing)
    nothing = all(isinstance(each.got.result, Tensor) and not each.got.result.any() for each in failing)
    for supposed in suppositions(asked):
        if (little and supposed.name.startswith("always ")) or (nothing and supposed.name == "zeros"):
            continue
        if unexplained := _unexplained(answers, supposed, asked):
            where = setting(exercise, failing[0].case, "") if elsewhere else ()
            return [replace(supposed, where=where, partial=unexplained.failures > 0)]
    return []


def beside_known(exercise: Exercise, outcomes: Sequence[Outcome]) -> list[Fact]:
    """A known mistake together with another: its results differ from the learner's by a pattern or a changed argument.

    A changed argument is only searched for in a learner's own check, where there is time.
    """
    asked = [outcome for outcome in outcomes if outcome.got is not None]
    failing = [outcome for outcome in asked if not outcome.passed]
    kinds = (Tensor, tuple)  # in lists much is alike by chance
    if len(failing) < FEWEST or not all(isinstance(outcome.got.result, kinds) for outcome in failing):
        return []
    if is_degenerate(failing):
        return []
    ways = [_pattern_beside]
    if failing[0].disclosed and exercise.roles is None and can_be_asked(exercise, asked):
        ways.append(_beside)
    for way in ways:
        for known in exercise.mistakes:
            with contextlib.suppress(EndpointGone):
                if known.shows is None and (fact := way(exercise, known, asked)) is not None:
                    return [replace(fact, beside=known.message)]
    return []


def _pattern_beside(exercise: Exercise, known: Misconception, asked: Sequence[Outcome]) -> Fact | None:
    """The pattern that turns a known mistake's results into the learner's, in every probe.

    The mistake's results on visible probes are cached, so these come first.
    """
    candidate = Asked.of(exercise, known)
    failing = [outcome for outcome in asked if not outcome.passed]
    visible = [outcome for outcome in failing if not outcome.probe.hidden]
    found: list[Fact] = []
    for some in (visible, failing) if visible else ():
        alike, mistaken = [], 0
        for outcome in some:
            shown, fails = candidate.shows(outcome)
            mistaken += fails is not None
            if isinstance(shown.result, (Raised, Structure)):
                return None
            if any(closeness.same(shown.result, argument) for argument in outcome.case.arguments):
                return None  # "nothing was done" is false where something was
            if _spoils(shown, outcome):
                return None
            parted = compare.value_difference(shown.result, outcome.got.result, outcome.probe.rtol, outcome.probe.atol)
            if parted is None:  # the mistake explains it without a pattern
                continue
            if parted.kind not in ("value", "nan", "shape", "length"):
                return None
            alike.append(replace(outcome, expected=shown, difference=parted))
        found = [fact for fact in about_results(alike) if fact.exact and not fact.partial]
        if not found or 2 * mistaken < len(some):  # where it is not a mistake at all it explains nothing
            return None
        if getattr(found[0], "left_over", False):
            return None  # the mistake's sum, mean or selection is not in the answer
        if found[0].part and not any(_is_wrong(outcome, found[0].part) for outcome in some):
            return None
    passes = (outcome for outcome in asked if outcome.passed)
    return found[0] if found and found[0].sure and all(candidate.shows(o)[1] is None for o in passes) else None


def _spoils(shown: Observation, outcome: Outcome) -> bool:
    """Whether a mistake changes one of several results that is correct here."""
    results = shown.result, outcome.got.result, outcome.expected.result
    if not all(isinstance(each, tuple) for each in results) or len(set(map(len, results))) > 1:
        return False
    near = closeness.near
    return any(
        near(got, right, outcome) and not near(told, right, outcome) for told, got, right in zip(*results, strict=True)
    )


def _is_wrong(outcome: Outcome, part: int) -> bool:
    """Whether one of several results, counted from 1, differs from the correct one; False if there are not several."""
    got, expected = outcome.got.result, outcome.expected.result
    several = isinstance(got, tuple) and isinstance(expected, tuple) and part <= min(len(got), len(expected))
    return several and not closeness.near(got[part - 1], expected[part - 1], outcome)


def _beside(exercise: Exercise, known: Misconception, asked: Sequence[Outcome]) -> Fact | None:
    """The change of an argument with which a known mistake returns the learner's results."""
    candidate = Candidate(exercise, LocalEndpoint(namespace_of(known.source)))

    def answers(outcome: Outcome, case: Case) -> Observation:
        return candidate.observe(outcome.probe, case, None)

    ordered = sorted(asked, key=lambda outcome: outcome.passed)
    tried = (each for each in suppositions(ordered) if not each.blunt)  # those would also take long
    return next((each for each in tried if _unexplained(answers, each, ordered) == NOTHING), None)


def can_be_asked(exercise: Exercise, asked: Sequence[Outcome]) -> bool:
    """Whether the reference is fast, and returns a value for the first failing probe."""
    plain = not (exercise.methods or exercise.harness or exercise.trained)
    failing = next(outcome for outcome in asked if not outcome.passed)
    return plain and not isinstance(failing.got.result, Raised) and all(_small(outcome.case) for outcome in asked)


def _small(case: Case) -> bool:
    numbers = sum(value.numel() for value in case.arguments if isinstance(value, Tensor))
    return numbers <= MOST and not any(map(callable, case.arguments))


@dataclass(frozen=True)
class Unexplained:
    """The failures that a confirmed supposition does not explain: those in which the reference itself raises an
    exception."""

    failures: int


NOTHING = Unexplained(0)


def _unexplained(
    answers: Callable[[Outcome, Case], Observation], supposed: Supposed, asked: Sequence[Outcome]
) -> Unexplained | None:
    """What is left if the reference, called with the changed arguments, returns the learner's result in every check,
    two of them failing. None if it does not."""
    agreeing = stopped = 0
    for outcome in asked:
        if outcome.passed and isinstance(outcome.expected.result, Raised):  # what is refused, is refused first
            continue
        case = supposed.understood(outcome.case)
        if case is None:
            if not outcome.passed:
                return None
            continue
        try:
            meant = supposed.back(answers(outcome, case).result)
        except Exception:  # no probe has this input, and `normalize` may not find what it reads of a result
            return None
        if isinstance(meant, Raised):
            if outcome is asked[0] or outcome.passed or not isinstance(outcome.got.result, Tensor):
                return None  # it raises where the learner returned no wrong tensor
            stopped += not outcome.passed
            continue
        closeness = outcome.probe.rtol, outcome.probe.atol
        if compare.value_difference(meant, outcome.got.result, *closeness) is not None:
            return None
        empty = isinstance(meant, (list, str)) and not meant
        told = not empty and compare.value_difference(outcome.expected.result, meant, *closeness) is not None
        agreeing += told and not outcome.passed
    return Unexplained(stopped) if agreeing >= FEWEST else None
