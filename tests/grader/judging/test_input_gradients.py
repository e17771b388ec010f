"""Gradients of the arguments: in any memory layout, and reported under the name of the argument."""

import pytest

from autograder import catalogue
from autograder.diagnosis.explain import judge_and_explain
from autograder.diagnosis.known_mistakes import namespace_of
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


@pytest.mark.parametrize("name", ["additive-context", "self-attention", "masked-attention"])
def test_gradients_flow_from_each_of_several_results(name):
    exercise = catalogue.find(name)
    called = "SelfAttention.forward" if exercise.is_class else exercise.names[0]
    for cut in (0, 1):
        source = f"""{exercise.correct[0].source}
attached = {called}

def one_detached(*arguments):
    results = list(attached(*arguments))
    results[{cut}] = results[{cut}].detach()
    return tuple(results)

{called} = one_detached
"""
        verdict = judge_and_explain(exercise, LocalEndpoint(namespace_of(source)), KEY)
        wrong = {outcome.difference.kind for outcome in verdict.outcomes if not outcome.passed}
        assert wrong <= {"gradient", "no gradient"}, cut
        assert wrong, cut
