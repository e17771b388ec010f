"""The two parts of a session: visible probes first, hidden ones once, and a verdict whatever became of them."""

from dataclasses import replace

import pytest

from autograder import catalogue
from autograder.catalogue.exercise import Evidence
from autograder.catalogue.probes import SECOND_CALL
from autograder.diagnosis.explain import judge_and_explain
from autograder.diagnosis.known_mistakes import TWO, diagnose, namespace_of
from autograder.feedback.messages import known as said_of_it
from autograder.feedback.report import as_text
from autograder.feedback.verdict_log import as_record
from autograder.judging.judge import JudgingSession, draw_key
from autograder.judging.observation import Raised
from autograder.judging.observe import EndpointGone, LocalEndpoint
from autograder.judging.verdict import not_checked

KEY = draw_key(b"secret", "assignment", "exercise", ["submission"])
EXERCISE = catalogue.find("attention-weights")
RIGHT = EXERCISE.correct[0].source


class CountingEndpoint(LocalEndpoint):
    """Records its calls, and is lost after some of them."""

    def __init__(self, source: str, lost_after: int = 1000) -> None:
        super().__init__(namespace_of(source))
        self.asked, self._lost_after = 0, lost_after

    def ask(self, request):
        self.asked += request["do"] == "call"
        if self.asked > self._lost_after:
            raise EndpointGone("the notebook's process ended")
        return super().ask(request)


def test_the_first_part_asks_the_visible_probes_and_the_second_the_hidden_ones_once():
    first, second, third = CountingEndpoint(RIGHT), CountingEndpoint(RIGHT), CountingEndpoint(RIGHT)
    session = JudgingSession(EXERCISE, KEY)
    session.ask(first, hidden=False)
    assert session.waits
    session.ask(second, hidden=True)
    assert not session.waits
    called = len(EXERCISE.hidden) + sum(probe.name == SECOND_CALL for probe in EXERCISE.hidden)
    assert (first.asked, second.asked, third.asked) == (len(EXERCISE.visible), called, 0)
    assert session.verdict().points == EXERCISE.points


UNSTABLE = (
    "def attention_weights(Q, K):\n    e = torch.exp(Q @ K.mT / Q.shape[-1] ** 0.5)\n"
    "    return e / e.sum(-1, keepdim=True)\n"
)


def test_grading_discloses_no_hidden_outcome_and_a_learners_own_check_all_of_them():
    for disclosed in (False, True):
        verdict = judge_and_explain(EXERCISE, LocalEndpoint(namespace_of(UNSTABLE)), KEY, disclosed=disclosed)
        assert {outcome.secret for outcome in verdict.outcomes if outcome.probe.hidden} == {not disclosed}
        assert not any(outcome.secret for outcome in verdict.outcomes if not outcome.probe.hidden)
        assert ("yours is" in as_text(verdict)) == disclosed
        assert ("Hidden checks passed: 5 of 7." in as_text(verdict)) == (not disclosed)


def test_points_are_the_same_whether_hidden_checks_are_disclosed_or_not():
    verdicts = [
        judge_and_explain(EXERCISE, LocalEndpoint(namespace_of(UNSTABLE)), KEY, disclosed=each)
        for each in (False, True)
    ]
    assert verdicts[0].points == verdicts[1].points and verdicts[0].misconception is verdicts[1].misconception


def test_two_mistakes_at_once_need_two_failures_that_they_explain():
    source = "def attention_weights(Q, K):\n    return torch.softmax(Q @ K.mT / Q.shape[-1], dim=1)\n"
    outcomes = judge_and_explain(EXERCISE, LocalEndpoint(namespace_of(source)), KEY).outcomes
    failed = [outcome for outcome in outcomes if not outcome.passed]
    found, evidence = diagnose(EXERCISE, outcomes)
    assert TWO in found.message and evidence is None
    assert found.name in [known.name for known in EXERCISE.mistakes]  # reports count it under the first one
    assert diagnose(EXERCISE, failed[:1]) is None


def test_a_side_that_is_lost_in_the_second_part_costs_nothing_of_the_first():
    session = JudgingSession(EXERCISE, KEY)
    session.ask(CountingEndpoint(RIGHT), hidden=False)
    session.ask(CountingEndpoint(RIGHT, lost_after=2), hidden=True)
    verdict = session.verdict()
    assert not session.waits
    hidden = 2 * EXERCISE.hidden_points / len(EXERCISE.hidden)
    assert verdict.points == pytest.approx(EXERCISE.visible_points + hidden, abs=1e-4)
    assert "process ended" in as_text(verdict)


def test_a_hearing_that_never_came_to_its_second_part_still_ends_in_a_verdict():
    session = JudgingSession(EXERCISE, KEY)
    session.ask(CountingEndpoint(RIGHT), hidden=False)
    session.lose("a cell ended the process")
    assert session.verdict().points == EXERCISE.visible_points
    assert "a cell ended the process" in as_text(session.verdict())


@pytest.mark.parametrize(
    ("source", "state"),
    [
        (RIGHT, "passed"),
        (EXERCISE.mistakes[0].source, "wrong"),
        ("def attention_weights(Q, K):\n    raise NotImplementedError\n", "blank"),
        ("x = 1\n", "missing"),
        ("attention_weights = 3\n", "missing"),
    ],
)
def test_how_a_verdict_ended_is_data(source, state):
    record = as_record(judge_and_explain(EXERCISE, LocalEndpoint(namespace_of(source)), KEY))
    assert (record["state"], record["checked"], record["excused"]) == (state, True, False)


def test_a_forbidden_call_is_a_state():
    verdict = judge_and_explain(EXERCISE, LocalEndpoint(namespace_of(RIGHT)), KEY, ["That is not allowed."])
    assert as_record(verdict)["state"] == "forbidden"


def test_a_message_that_begins_like_one_of_ours_is_no_state():
    """The state was read from the first words of the message, which an answer's error may begin with."""
    stopped = [Raised("Not checked", "I say so.")]
    verdict = judge_and_explain(EXERCISE, LocalEndpoint({}), KEY, stopped=stopped)
    assert as_record(verdict)["state"] == "missing" and as_record(verdict)["checked"]


def test_what_was_not_checked_says_whose_fault_it_was():
    ours, theirs = not_checked(EXERCISE, "the judge stopped", excused=True), not_checked(EXERCISE, "it ended")
    assert as_record(ours)["state"] == as_record(theirs)["state"] == "not checked"
    assert as_record(ours)["excused"] and not as_record(theirs)["excused"]
    assert "Your answer is not at fault" in as_text(ours) and "no fault" not in as_text(theirs)


def test_a_known_mistake_is_named_where_its_numbers_cannot_be_quoted():
    known = replace(EXERCISE.mistakes[0], message="What it is.", quotes=lambda evidence: evidence.got.sum())
    verdict = judge_and_explain(EXERCISE, LocalEndpoint(namespace_of(known.source)), KEY)
    odd = replace(verdict, diagnosis=(known, Evidence((), [1.0], [2.0])))  # a list, where a tensor is quoted
    assert said_of_it(odd) == "What it is."
    assert "What it is." in as_text(odd)
