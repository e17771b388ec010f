"""Why an answer fails: the known mistake that it shows, else what can be seen in its results.

`judge` decides the points and knows nothing of this module. A verdict is explained afterwards, and an exception in an
explanation costs nothing: the verdict then has no explanation, and `failed_explanation` says what was raised.
"""

import traceback
from collections.abc import Sequence
from dataclasses import replace

from autograder.catalogue.exercise import Exercise
from autograder.judging.diagnose import diagnose
from autograder.judging.judge import judge
from autograder.judging.observation import Raised
from autograder.judging.observe import Peer
from autograder.judging.supposed import looked_at
from autograder.judging.verdict import Verdict


def explain(verdict: Verdict) -> Verdict:
    """The same verdict with an explanation, where one is found. Points and outcomes stay as they are; never raises."""
    if not verdict.outcomes or verdict.passed:
        return verdict
    try:
        diagnosis = diagnose(verdict.exercise, verdict.outcomes)
        noticed = () if diagnosis else tuple(looked_at(verdict.exercise, verdict.outcomes, verdict.again))
    except Exception:
        return replace(verdict, failed_explanation=traceback.format_exc())
    return replace(verdict, diagnosis=diagnosis, noticed=noticed)


def judge_and_explain(
    exercise: Exercise,
    peer: Peer,
    key: bytes | None,
    findings: Sequence[str] = (),
    stopped: Sequence[Raised] = (),
    disclosed: bool = False,
) -> Verdict:
    """The explained verdict on one answer; the arguments are those of `judge`."""
    return explain(judge(exercise, peer, key, findings, stopped, disclosed))
