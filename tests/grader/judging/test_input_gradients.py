"""Gradients of the arguments: in any memory layout, and reported under the name of the argument."""

from autograder import catalogue
from autograder.diagnosis.explain import judge_and_explain
from autograder.feedback.report import as_text
from autograder.judging.judge import draw_key
from autograder.judging.observe import LocalEndpoint

EMBED = """
import torch
import torch.nn.functional as F
def embed(ids, W, scale=True):
    return {}
"""
KEY = draw_key(b"secret", "assignment", "exercise", ["submission"])


def verdict_on(returned: str):
    namespace: dict = {}
    exec(EMBED.format(returned), namespace)
    exercise = catalogue.find("embed")
    return judge_and_explain(exercise, LocalEndpoint(namespace), KEY)


def test_a_sparse_gradient_is_the_gradient_of_its_numbers():
    verdict = verdict_on("F.embedding(ids, W, sparse=True) * (W.shape[1] ** 0.5 if scale else 1.0)")
    assert verdict.passed, as_text(verdict)


def test_a_gradient_is_reported_for_the_argument_that_has_one():
    told = as_text(verdict_on("W.detach()[ids] * (W.shape[1] ** 0.5 if scale else 1.0)"))
    assert "no gradient reaches W" in told and "reaches ids" not in told
