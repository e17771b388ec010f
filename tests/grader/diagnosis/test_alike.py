"""Wrong answers that behave alike have a part of their fingerprints in common; others have none."""

import pytest
import torch

from autograder import catalogue
from autograder.catalogue.exercise import Case, Probe
from autograder.diagnosis import alike
from autograder.diagnosis.explain import explain
from autograder.diagnosis.known_mistakes import namespace_of
from autograder.judging.judge import JudgingSession
from autograder.judging.observation import Difference, Observation, Outcome
from autograder.judging.observe import LocalEndpoint

SECRET = b"a course's secret"
ONE_OF_EACH_CHAPTER = [
    [exercise.id for exercise in assignment.exercises if not exercise.trained][-1]
    for assignment in catalogue.ASSIGNMENTS
]
ANSWERS = {
    "product": """
def attention_weights(Q, K):
    S = Q @ K.transpose(-1, -2) / math.sqrt(Q.shape[-1])
    return 0.9 * torch.softmax(S, -1) + 0.1 * S
""",
    "einsum": """
def attention_weights(Q, K):
    S = torch.einsum("...qd,...kd->...qk", Q, K) * Q.shape[-1] ** -0.5
    E = (S - S.amax(-1, keepdim=True)).exp()
    W = E / E.sum(-1, keepdim=True)
    return W - (W - S) / 10
""",
    "other": """
def attention_weights(Q, K):
    S = Q @ K.transpose(-1, -2) / math.sqrt(Q.shape[-1])
    return 0.8 * torch.softmax(S, -1) + 0.2 * S
""",
}


def fingerprint(exercise, source, key=b"a submission's key"):
    session, endpoint = JudgingSession(exercise, key), LocalEndpoint(namespace_of(source))
    for hidden in (False, True):
        session.ask(endpoint, hidden)
    visible = [outcome for outcome in session.verdict().outcomes if not outcome.probe.hidden]
    fixed = session.observe_under(alike.key_of(SECRET, exercise), endpoint)
    return alike.fingerprint([*visible, *fixed], SECRET)


def of_answer(name, key=b"key"):
    return fingerprint(catalogue.find("attention-weights"), "import math\nimport torch\n" + ANSWERS[name], key)


def of_result(result, right):
    """The fingerprint of an answer that returns this to the only question."""
    probe = Probe("a probe", lambda generator: Case(()))
    outcome = Outcome(probe, Case(()), None, Observation(right), Observation(result), Difference("value"))
    return alike.fingerprint([outcome], SECRET)


def test_two_ways_to_write_one_mistake_are_alike_whatever_inputs_they_were_graded_on():
    assert of_answer("product") and alike.are_alike(of_answer("product", b"ada"), of_answer("einsum", b"ben"))
    assert not alike.are_alike(of_answer("product"), of_answer("other"))


def test_numbers_that_differ_by_rounding_are_alike_and_others_are_not():
    generator = torch.Generator().manual_seed(3)
    for _ in range(300):
        right = torch.randn(8, 40, generator=generator)
        wrong = right.roll(1, -1) * 100 ** torch.randn(8, 40, generator=generator)
        noise = 1 + 1e-6 * torch.randn(8, 40, generator=generator)
        assert alike.are_alike(of_result(wrong, right), of_result(wrong * noise, right))
        moved = wrong.clone()
        moved[0, 0] = 1.1 * moved[0, 0] + moved[0, 0].sign() * right.abs().max() / 10
        assert not alike.are_alike(of_result(wrong, right), of_result(moved, right))


@pytest.mark.parametrize(
    "first, second",
    [
        (torch.tensor([1.0, float("nan")]), torch.tensor([1.0, float("inf")])),
        (torch.zeros(2, 3), torch.zeros(3, 2)),
        (torch.zeros(2), torch.zeros(2, dtype=torch.float64)),
        ([1, 2, 3], [1, 3, 2]),
        ({"a": 1.0}, {"b": 1.0}),
        ("ab", ["ab"]),
        (1, True),
        ((1.0, None), (1.0, 0.0)),
    ],
)
def test_results_of_another_form_are_not_alike(first, second):
    right = torch.ones(2)
    assert alike.are_alike(of_result(first, right), of_result(first, right))
    assert not alike.are_alike(of_result(first, right), of_result(second, right))


@pytest.mark.parametrize("exercise_id", ONE_OF_EACH_CHAPTER)
def test_known_mistakes_of_every_chapter_are_told_apart(exercise_id):
    exercise = catalogue.find(exercise_id)
    first, second = exercise.mistakes[0], exercise.mistakes[1]
    once, again = (fingerprint(exercise, first.source, key) for key in (b"one", b"two"))
    assert len(once) == 3 and alike.are_alike(once, again)
    assert not alike.are_alike(once, fingerprint(exercise, second.source))
    assert fingerprint(exercise, exercise.correct[0].source) == ()


def test_without_the_secret_a_fingerprint_says_nothing():
    right, wrong = torch.ones(2), torch.zeros(2)
    outcome = Outcome(Probe("a probe", lambda generator: Case(())), Case(()), None, Observation(right),
                      Observation(wrong), Difference("value"))  # fmt: skip
    assert not alike.are_alike(alike.fingerprint([outcome], b"one"), alike.fingerprint([outcome], b"two"))


def test_what_a_known_mistake_explains_is_not_compared():
    exercise = catalogue.find("attention-weights")
    for source, compared in (
        (exercise.mistakes[0].source, False),
        ("import math\nimport torch\n" + ANSWERS["other"], True),
    ):
        session, endpoint = JudgingSession(exercise, b"key"), LocalEndpoint(namespace_of(source))
        for hidden in (False, True):
            session.ask(endpoint, hidden)
        assert alike.is_compared(explain(session.verdict())) is compared
