"""Answers to chapters 03 to 05 as students write them: what fails, and which mistake is named."""

import pytest
import torch

from autograder import catalogue
from autograder.diagnosis.explain import judge_and_explain
from autograder.diagnosis.known_mistakes import namespace_of
from autograder.judging.judge import draw_key
from autograder.judging.observe import LocalEndpoint
from autograder.judging.probe_inputs import question
from autograder.judging.verdict import Verdict

KEY = draw_key(b"secret", "assignment", "exercise", ["submission"])


def verdict_on(exercise: str, source: str) -> Verdict:
    return judge_and_explain(catalogue.find(exercise), LocalEndpoint(namespace_of(source)), KEY)


def failed(verdict: Verdict) -> set[str]:
    return {outcome.probe.name for outcome in verdict.outcomes if not outcome.passed}


NAN_REPLACED = """
def cosine(A, B):
    table = A @ B.T / (A.norm(dim=1, keepdim=True) * B.norm(dim=1))
    return torch.nan_to_num(table)
"""
TOLERANCE = """
def linear_weights(x):
    if torch.any(x < -1e-6):
        raise ValueError("negative")
    total = x.sum()
    if total.abs() < 1e-8:
        raise ValueError("sum is 0")
    return x / total
"""
POWER_OF_TAU = """
def temperature(x, tau):
    if tau < 0:
        raise ValueError("tau must not be negative")
    if tau == 0:
        return F.one_hot(x.argmax(-1), x.shape[-1]).to(x.dtype)
    p = torch.softmax(x, dim=-1) ** (1 / tau)
    return p / p.sum(-1, keepdim=True)
"""
POWER_OF_BETA = """
def soft_lookup(q, keys, values, beta):
    w = torch.softmax(keys @ q, dim=0) ** beta
    return (w / w.sum()) @ values
"""
FIRST_WEIGHTS = """
def attend(W, V):
    return torch.einsum("qk,bkd->bqd", W[0], V)
"""
ALL_OF_B = """
def project(x, W, b=None):
    out = x @ W
    if b is not None and b.all():
        out += b
    return out
"""
KEYS_UNDER_NO_GRAD = """
class SelfAttention(nn.Module):
    def __init__(self, d_model, d_k, d_v):
        super().__init__()
        self.W_q, self.W_k, self.W_v = nn.Linear(d_model, d_k), nn.Linear(d_model, d_k), nn.Linear(d_model, d_v)

    def forward(self, x):
        q, v = self.W_q(x), self.W_v(x)
        with torch.no_grad():
            k = self.W_k(x)
        weights = torch.softmax(q @ k.mT / q.shape[-1] ** 0.5, dim=-1)
        return weights @ v, weights
"""
MEAN_SUBTRACTED = """
def softmax(x, dim):
    e = torch.exp(x - x.mean(dim=dim, keepdim=True))
    return e / e.sum(dim=dim, keepdim=True)
"""


@pytest.mark.parametrize(
    ("exercise", "source", "name"),
    [
        ("cosine", NAN_REPLACED, "NaN replaced in the result"),
        ("linear-weights", TOLERANCE, "compared with a tolerance"),
        ("temperature", POWER_OF_TAU, "exponential without care"),
        ("soft-lookup", POWER_OF_BETA, "exponential without care"),
        ("attend", FIRST_WEIGHTS, "first sentence's weights for all"),
        ("project", ALL_OF_B, "bias left out where it holds a 0"),
    ],
)
def test_the_mistake_is_named(exercise, source, name):
    verdict = verdict_on(exercise, source)
    assert verdict.misconception is not None and verdict.misconception.name == name, failed(verdict)


def test_a_projection_without_a_gradient_fails_in_several_checks():
    assert failed(verdict_on("self-attention", KEYS_UNDER_NO_GRAD)) == {
        "gradients", "large scores", "one word, in training",
    }  # fmt: skip


def test_the_mean_fails_where_1000_and_minus_1000_are_in_one_row():
    assert "scores around 1000 and -1000" in failed(verdict_on("softmax", MEAN_SUBTRACTED))


def test_rounding_is_expected_as_0():
    exercise = catalogue.find("equivariance-gap")
    _, expected, _ = question(exercise, exercise.probes[0], torch.Generator().manual_seed(0))
    assert expected.result == 0.0
