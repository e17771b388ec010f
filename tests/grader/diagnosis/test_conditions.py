"""Reports name the argument, size or dtype that failing checks share and passing ones lack."""

from dataclasses import replace
from types import SimpleNamespace

import claims
import pytest
import torch

from autograder import catalogue
from autograder.catalogue.exercise import Case
from autograder.diagnosis.conditions import AxisFull, DtypeTells, about_probes
from autograder.diagnosis.evidence import Names
from autograder.diagnosis.explain import judge_and_explain
from autograder.diagnosis.known_mistakes import namespace_of
from autograder.feedback.messages import explanation
from autograder.judging.observe import LocalEndpoint

MASK = "    right = torch.ones(T, T + cached).tril(cached).bool()\n"
HEADS = catalogue.find("multi-head-attention").correct[0].source


def explained(exercise_id: str, source: str):
    """The explanation, and the endpoint that judged."""
    endpoint = LocalEndpoint(namespace_of(source))
    return judge_and_explain(catalogue.find(exercise_id), endpoint, b"key", disclosed=True), endpoint


SHIFTED_WITHOUT_BIAS = f"""{HEADS}
_Right = MultiHeadAttention
class MultiHeadAttention(_Right):
    def __init__(self, d_model, h, bias=True):
        super().__init__(d_model, h, bias)
        self.shift = 0.0 if bias else 0.5
    def forward(self, x_q, x_kv=None, mask=None):
        return super().forward(x_q, x_kv, mask) + self.shift
"""


@pytest.mark.parametrize(
    ("exercise_id", "source", "told"),
    [
        ("multi-head-attention", SHIFTED_WITHOUT_BIAS, "It fails where bias is False, and only there."),
        (
            "causal-mask",
            f"def causal_mask(T, cached=0):\n{MASK}    return right if T < 4 else right.roll(1, 0)\n",
            "It fails in every check where Tq is 4 or 6 or 19, and in none where Tq is 1 or 2 or 3.",
        ),
    ],
)
def test_an_argument_or_a_number_that_only_the_failing_checks_have_is_named(exercise_id, source, told) -> None:
    verdict, endpoint = explained(exercise_id, source)
    assert told in explanation(verdict), explanation(verdict)
    assert claims.check(verdict, endpoint)[1] == []


def asked(arguments: dict[str, tuple], construct: tuple = ()):
    """Outcomes of checks that are passed, or failed with another value, on these arguments."""
    outcome = next(each for each in explained("softmax", "def softmax(x, dim):\n    return x * 0\n")[0].outcomes)
    right = replace(outcome, difference=None, got=outcome.expected)
    made = {"fails": outcome, "passes": right}
    return [
        replace(made[which], case=Case(arguments=given, construct=construct))
        for which, groups in arguments.items()
        for given in groups
    ]


def test_the_dtypes_that_only_failing_checks_have_are_named() -> None:
    narrow, wide, usual = (torch.ones(2, 3, dtype=dtype) for dtype in (torch.float16, torch.float64, torch.float32))
    outcomes = asked({"fails": (([{"w": narrow}],), ([wide, usual],)), "passes": (([usual],),)})
    fact = next(iter(about_probes(outcomes)))
    assert fact == DtypeTells(("float16", "float64"))
    assert "dtype float16 or float64, and no passing check has one" in fact.say(SimpleNamespace())
    mixed = asked({"fails": (([narrow],),), "passes": (([narrow],), ([usual],))})
    assert not any(isinstance(each, DtypeTells) for each in about_probes(mixed))


def test_that_only_a_full_axis_is_right_is_said() -> None:
    full, short = torch.ones(2, 5), torch.ones(2, 3)
    outcomes = asked({"fails": ((short,), (short + 1,)), "passes": ((full,), (full + 1,))}, construct=(7, 5))
    (fact,) = about_probes(outcomes)
    assert fact == AxisFull(0, 1, 1)
    exercise = catalogue.find("multi-head-attention")
    names = Names(exercise, replace(outcomes[0], case=Case(arguments=(short,))))
    assert fact.say(names) == (
        "In every check that passes, axis 1 of x_q is h long; in every check that fails, it is not."
    )
    mixed = asked({"fails": ((full,), (short,)), "passes": ((full,), (full + 1,))}, construct=(7, 5))
    assert not any(isinstance(each, AxisFull) for each in about_probes(mixed))
