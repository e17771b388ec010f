"""What an answer shares between calls, between objects, or takes from elsewhere costs points, and a report says so.

Each of these answers earned everything before it was looked at.
"""

import pytest

from autograder import catalogue
from autograder.catalogue.ch05_self_attention import attend, self_attention
from autograder.catalogue.ch06_multi_head_attention import multi_head_attention
from autograder.catalogue.ch15_pretrained import mlm_mask
from autograder.diagnosis.explain import judge_and_explain
from autograder.diagnosis.known_mistakes import namespace_of
from autograder.feedback.messages import explanation, seen
from autograder.feedback.report import as_text
from autograder.judging.judge import draw_key
from autograder.judging.observe import LocalEndpoint

KEY = draw_key(b"secret", "assignment", "exercise", ["submission"])
ATTENTION, HEADS, MASK = self_attention.RIGHT, multi_head_attention.RIGHT, mlm_mask.RIGHT
BUFFER = """
kept = BUFFERS.setdefault((mixed.shape, mixed.dtype), torch.empty_like(mixed.detach()))
return mixed if mixed.requires_grad else kept.copy_(mixed)
"""
SHARED = "self.W_q = LAYERS.setdefault((d_model, d_k), nn.Linear(d_model, d_k, bias=False))"


def verdict_on(exercise: str, source: str, key: bytes | None = KEY):
    return judge_and_explain(catalogue.find(exercise), LocalEndpoint(namespace_of(source)), key)


# exercise, the answer, the probes that it fails, and words of the report
WRONG = {
    "a layer of all objects": (
        "self-attention",
        "LAYERS = {}\n" + ATTENTION.but("self.W_q = nn.Linear(d_model, d_k, bias=False)", SHARED),
        {"a second call; nothing else is touched"},
        "the returned values are not correct",
    ),
    "training mode in forward": (
        "self-attention",
        ATTENTION.beginning_with("self.train()"),
        {"a second call; nothing else is touched"},
        "forward switches the module",
    ),
    "evaluation mode in forward": (
        "self-attention",
        ATTENTION.beginning_with("self.eval()"),
        {"one word, in training"},
        "forward switches the module",
    ),
    "a part in evaluation mode": (
        "multi-head-attention",
        HEADS.beginning_with("self.W_q.eval()"),
        {"the same in training"},
        "forward switches the module, or a part of it",
    ),
    "a result that is overwritten": (
        "attend",
        "BUFFERS = {}\n" + attend.RIGHT.but("return mixed", BUFFER),
        {"a second call; nothing else is touched"},
        "the result of an earlier call was changed by a later one",
    ),
    "the fates from the global generator": (
        "mlm-mask",
        MASK.but("fate = torch.rand(ids.shape, generator=g)", "fate = torch.rand(ids.shape)"),
        {"p = 0.5, drawn with g", "a second call; nothing else is touched"},
        "not everything is drawn from the generator",
    ),
    "the fates from a generator of its own": (
        "mlm-mask",
        "OWN = torch.Generator()\n" + MASK.but("fate = torch.rand(ids.shape, generator=g)",
                                               "fate = torch.rand(ids.shape, generator=OWN)"),
        {"p = 0.5, drawn with g"},
        "not everything is drawn from the generator",
    ),
}  # fmt: skip


@pytest.mark.parametrize("which", WRONG)
def test_the_probes_that_ask_for_it_fail_and_no_others(which):
    exercise, source, probes, words = WRONG[which]
    verdict = verdict_on(exercise, source)
    assert {outcome.probe.name for outcome in verdict.outcomes if not outcome.passed} == probes
    assert words in explanation(verdict) + " ".join(as_text(verdict).split())


RIGHT = {
    "a mode that is put back": ("self-attention", ATTENTION.beginning_with("self.train(self.training)")),
    "a result that is kept": (
        "attend",
        "RESULTS = []\n" + attend.RIGHT.but("return mixed", "RESULTS.append(mixed)\n    return mixed"),
    ),
    "kept weights in a buffer": (
        "multi-head-attention",
        HEADS.but("self.last_weights = weights", """
            same = getattr(self, "last_weights", None) is not None and self.last_weights.shape == weights.shape
            self.last_weights = self.last_weights.copy_(weights.detach()) if same else weights.detach().clone()"""),
    ),
}  # fmt: skip


@pytest.mark.parametrize("which", RIGHT)
def test_what_disturbs_nobody_earns_everything(which):
    assert verdict_on(*RIGHT[which]).passed


def test_an_error_that_the_constructor_should_raise_comes_too_late_in_forward():
    exercise = catalogue.find("multi-head-attention")
    late = next(each for each in exercise.mistakes if each.name == "sizes checked in forward")
    verdict = verdict_on(exercise.id, late.source, None)
    (failed,) = (outcome for outcome in verdict.outcomes if not outcome.passed)
    assert failed.probe.name == "d_model 10, 4 heads" and verdict.misconception.name == late.name
    assert seen(exercise, failed) == "expected ValueError to be raised by the constructor, got an object"
