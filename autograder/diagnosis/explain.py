"""Why an answer fails: the known mistake that it shows, else what can be seen in its results.

`judge` decides the points and knows nothing of this module. A verdict is explained afterwards, and an exception in an
explanation costs nothing: the verdict then has no explanation, and `failed_explanation` says what was raised.
"""

import traceback
from collections.abc import Sequence
from dataclasses import replace

from autograder.catalogue.exercise import Exercise, Misconception, Remark
from autograder.diagnosis.counterexample import smallest
from autograder.diagnosis.evidence import Explained, explained
from autograder.diagnosis.known_mistakes import SOME_CHECKS, diagnose, is_of_two
from autograder.diagnosis.looking import looked_at
from autograder.diagnosis.one_change import OneChange, one_change
from autograder.diagnosis.output_patterns.lists import about_items
from autograder.diagnosis.output_patterns.results import about_results
from autograder.diagnosis.output_patterns.scale import OFFSET_BY_CHECK, SCALED_BY_CHECK, Offset, Scaled
from autograder.diagnosis.own_source import BESIDE_KNOWN, written
from autograder.judging.judge import judge
from autograder.judging.observation import Raised
from autograder.judging.observe import Endpoint, EndpointGone
from autograder.judging.verdict import Verdict


def explain(verdict: Verdict) -> Explained:
    """The same verdict with an explanation, if one is found. Points and outcomes are unchanged; never raises."""
    if not verdict.outcomes or verdict.passed:
        return explained(verdict)
    try:
        diagnosis = diagnose(verdict.exercise, verdict.outcomes)
        if diagnosis and _is_doubtful(diagnosis[0]) and (_items_tell(verdict) or _is_a_multiple(verdict)):
            diagnosis = None
        noticed = () if diagnosis else tuple(looked_at(verdict.exercise, verdict.outcomes, verdict.again))
    except EndpointGone:  # the answer could not be asked once more, which says nothing about this module
        return explained(verdict)
    except Exception:
        return explained(verdict, failed_explanation=traceback.format_exc())
    return explained(verdict, diagnosis=diagnosis, noticed=noticed)


def _is_doubtful(known: Misconception) -> bool:
    """Whether two mistakes are named, or one that explains some failures only."""
    claim = getattr(known, "claim", None)
    return is_of_two(known) or (claim is not None and claim.extent == SOME_CHECKS)


def _is_a_multiple(verdict: Verdict) -> bool:
    """Whether every failing result is the correct one times one number, or plus one number."""
    failing = [outcome for outcome in verdict.outcomes if not outcome.passed and outcome.got is not None]
    if any(each.difference.kind != "value" or isinstance(each.difference.got, Remark) for each in failing):
        return False
    simple = (Scaled, Offset), (SCALED_BY_CHECK, OFFSET_BY_CHECK)
    found = [fact for fact in about_results(failing) if fact.sure and not fact.partial and not fact.part]
    return any(isinstance(fact, simple[0]) or fact in simple[1] for fact in found)


def _items_tell(verdict: Verdict) -> bool:
    """Whether all failing lists are related to the correct ones in one simple way, such as ending too early, which is
    certain where two known mistakes at once are not. That items are missing somewhere says less than two mistakes."""
    failing = [outcome for outcome in verdict.outcomes if not outcome.passed and outcome.got is not None]
    return any(fact.sure and fact.name != "items missing" for fact in about_items(failing))


def judge_and_explain(
    exercise: Exercise,
    endpoint: Endpoint,
    key: bytes | None,
    findings: Sequence[str] = (),
    stopped: Sequence[Raised] = (),
    disclosed: bool = False,
    source: str = "",
) -> Explained:
    """The explained verdict on one answer; the arguments are those of `judge`.

    If no known mistake explains it, a smaller failing input is searched for among those that may be shown, and, given
    the source of the answer, a remark on it and one change to it that makes all checks pass. (Two mistakes are seldom
    repaired by one change: if that is possible, there is one.)
    """
    verdict = explain(judge(exercise, endpoint, key, findings, stopped, disclosed))
    if verdict.passed or verdict.blank or not verdict.outcomes:
        return verdict
    try:
        if not verdict.diagnosis:
            verdict = replace(verdict, counterexample=smallest(exercise, endpoint, verdict.outcomes))
        remark = written(source, verdict.outcomes, exercise.names) if source else None
        if remark and (not verdict.diagnosis or remark.name in BESIDE_KNOWN):
            verdict = replace(verdict, written=remark)
        if source and (not verdict.diagnosis or is_of_two(verdict.diagnosis[0])):
            return _with_one_change(verdict, one_change(exercise, endpoint, verdict.outcomes, source))
        return verdict
    except EndpointGone:
        return verdict
    except Exception:
        return replace(verdict, failed_explanation=traceback.format_exc())


def _with_one_change(verdict: Explained, found: OneChange | None) -> Explained:
    """The verdict with this change, without anything that says that there are two mistakes."""
    if found is None:
        return verdict
    noticed = tuple(fact for fact in verdict.noticed if not fact.beside)
    return replace(verdict, one_change=found, diagnosis=None, noticed=noticed)
