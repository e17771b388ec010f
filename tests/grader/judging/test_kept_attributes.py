"""Attributes that forward leaves on a module are checked as further results."""

import pytest

from autograder import catalogue
from autograder.diagnosis.explain import judge_and_explain
from autograder.diagnosis.known_mistakes import namespace_of
from autograder.feedback.report import as_text
from autograder.judging.observe import LocalEndpoint

EXERCISE = catalogue.find("multi-head-attention")
RIGHT = EXERCISE.correct[0].source
KEEPING = "self.last_weights = weights"


def judged(source: str):
    return judge_and_explain(EXERCISE, LocalEndpoint(namespace_of(source)), None)


def test_a_result_that_is_right_earns_nothing_where_nothing_was_kept():
    verdict = judged(RIGHT.replace(KEEPING, "pass"))
    assert verdict.visible_points < EXERCISE.visible_points
    assert verdict.misconception.name == "the weights forgotten"


def test_a_report_calls_what_was_kept_by_its_name():
    report = " ".join(as_text(judged(RIGHT.replace(KEEPING, "self.last_weights = weights[:1]"))).split())
    assert "last_weights: expected shape (2, 3, 4, 4), got (1, 3, 4, 4)" in report
    assert "result 2" not in report


@pytest.mark.parametrize("kept", ["weights.detach()", "weights.clone()", "weights"])
def test_what_is_kept_may_be_attached_or_detached(kept):
    assert judged(RIGHT.replace(KEEPING, f"self.last_weights = {kept}")).passed


def test_a_layer_in_the_wrong_place_is_seen_though_weights_are_copied_in():
    normed = RIGHT.replace("super().__init__()", "super().__init__(); self.norm = nn.LayerNorm(d_model)")
    assert judged(normed.replace("return self.W_o(attended)", "return self.norm(self.W_o(attended))")).passed is False


def test_a_reading_that_many_inputs_allow_is_settled_by_those_that_do_not():
    rows = RIGHT
    for name in "qkvo":
        bias = f"self.b_{name} = nn.Parameter(torch.zeros(d_model)) if bias else None"
        made = f"nn.Parameter(torch.randn(d_model, d_model)); {bias}"
        rows = rows.but(f"self.W_{name} = nn.Linear(d_model, d_model, bias=bias)", f"self.W_{name} = {made}")
        rows = rows.but(f"self.W_{name}(", f"F.linear(weight=self.W_{name}, bias=self.b_{name}, input=")
    assert judged(rows).passed  # the first visible input has four identities, which read the same both ways round
