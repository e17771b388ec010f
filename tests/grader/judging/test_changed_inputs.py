"""An answer that changes what it was given hears that first, by the argument's name, whatever it wrote."""

import pytest
import torch

from autograder import catalogue
from autograder.diagnosis.explain import judge_and_explain
from autograder.diagnosis.known_mistakes import namespace_of
from autograder.feedback.messages import explanation
from autograder.feedback.report import as_text
from autograder.judging.compare import inputs_difference
from autograder.judging.judge import draw_key
from autograder.judging.observation import Observation
from autograder.judging.observe import LocalEndpoint

KEY = draw_key(b"secret", "assignment", "exercise", ["submission"])
WRONG = {  # exercise, answer, the argument that it changes
    "divided in place": (
        "attention-weights",
        "Q.data.div_(Q.shape[-1] ** 0.5)\n    return torch.softmax(Q @ K.mT, -1)",
        "Q",
    ),
    "keys emptied": ("attention-weights", "W = torch.softmax(Q @ K.mT, -1)\n    K.data.zero_()\n    return W", "K"),
    "values centered": ("attend", "V.data.sub_(V.data.mean(1, keepdim=True))\n    return W @ V", "V"),
    "bias grown": (
        "project",
        "b = x.new_zeros(1) if b is None else b\n    x.data[..., 0] += 1\n    return x @ W + b",
        "x",
    ),
    "another mistake beside": ("attention-weights", "K.data.mul_(2)\n    return torch.softmax(Q @ K.mT, 1)", "K"),
    "popped": ("build-vocab", "sentences.pop()\n    return {}", "sentences"),
}


def verdict_on(name: str, body: str, key=KEY):
    exercise = catalogue.find(name)
    signature = {
        "attention-weights": "attention_weights(Q, K)",
        "attend": "attend(W, V)",
        "project": "project(x, W, b=None)",
        "build-vocab": "build_vocab(sentences, *rest)",
        "softmax": "softmax(x, *rest)",
    }[name]
    return judge_and_explain(exercise, LocalEndpoint(namespace_of(f"def {signature}:\n    {body}\n")), key)


@pytest.mark.parametrize("kind", WRONG)
def test_a_changed_argument_is_said_first_and_by_its_name(kind):
    name, body, argument = WRONG[kind]
    verdict = verdict_on(name, body)
    first = next(outcome for outcome in verdict.outcomes if not outcome.passed)
    assert first.difference.kind == "inputs"
    assert f"{argument} was changed by your code" in " ".join(as_text(verdict).split())


def test_a_right_answer_that_changes_its_argument_loses_what_asks_for_that_and_hears_which():
    body = "A = torch.softmax(Q @ K.mT / Q.shape[-1] ** 0.5, -1)\n    Q.data.zero_()\n    return A"
    verdict = verdict_on("attention-weights", body)
    assert 0 < verdict.points < verdict.possible
    assert "Q was changed by your code" in explanation(verdict)


def test_a_learners_own_check_says_what_a_hidden_one_will_find():
    body = "A = torch.softmax(Q @ K.mT / Q.shape[-1] ** 0.5, -1)\n    K.data.zero_()\n    return A"
    report = " ".join(as_text(verdict_on("attention-weights", body, None)).split())
    assert "3 of 3" in report and "But K was changed by your code" in report


def test_a_learners_own_check_says_nothing_where_nothing_changed():
    body = "return torch.softmax(Q @ K.mT / Q.shape[-1] ** 0.5, -1)"
    assert "changed" not in as_text(verdict_on("attention-weights", body, None))


NAN, INF = float("nan"), float("inf")
LARGEST = torch.finfo(torch.float32).max
UNCHANGED = (
    torch.tensor([1.0, NAN, INF, -INF]),
    torch.tensor([complex(NAN, 1.0), 2j]),
    torch.tensor([NAN, 1.0], dtype=torch.bfloat16),
    torch.tensor([True, False]),
    torch.tensor([2**53 + 1]),
    torch.empty(0, 3),
    torch.tensor(NAN),
)
CHANGED = {
    "NaN by zero": (torch.tensor([NAN, 1.0]), torch.tensor([0.0, 1.0])),
    "zero by NaN": (torch.tensor([0.0, 1.0]), torch.tensor([NAN, 1.0])),
    "infinity by the largest": (torch.tensor([INF, 1.0]), torch.tensor([LARGEST, 1.0])),
    "minus infinity by the smallest": (torch.tensor([-INF, NAN]), torch.tensor([-LARGEST, NAN])),
    "infinity by NaN": (torch.tensor([INF]), torch.tensor([NAN])),
    "one place of an integer": (torch.tensor([2**53 + 1]), torch.tensor([2**53])),
    "a flag": (torch.tensor([True, False]), torch.tensor([True, True])),
    "half a complex number": (torch.tensor([1 + 2j]), torch.tensor([1 + 3j])),
    "the dtype": (torch.tensor([1.0]), torch.tensor([1.0], dtype=torch.float64)),
    "the shape": (torch.empty(0, 3), torch.empty(0, 4)),
}


def difference_of_inputs(before, after):
    return inputs_difference(Observation(None, inputs=(before,)), Observation(None, inputs=(after,)))


@pytest.mark.parametrize("value", UNCHANGED, ids=str)
def test_an_argument_that_equals_itself_is_unchanged_whatever_it_holds(value):
    assert difference_of_inputs(value, value.clone()) is None


@pytest.mark.parametrize("what", CHANGED)
def test_an_argument_that_is_overwritten_is_changed_even_where_it_held_nan_or_infinity(what):
    found = difference_of_inputs(*CHANGED[what])
    assert found is not None and found.kind == "inputs"


MODES = {  # what is wrong besides the mode: the exercise, the answer
    "every word": ("greedy-decode", "def greedy_decode(model, src, *rest):\n    model.train()\n    return src * 0\n"),
    "the length": ("generate", "def generate(model, ids, *rest):\n    model.train()\n    return ids\n"),
    "the tokens": (
        "generate",
        "def generate(model, ids, n, *rest):\n    model.train()\n    return torch.nn.functional.pad(ids, (0, n))\n",
    ),
    "the number of entries": (
        "residual-trace",
        "def residual_trace(model, ids):\n    return [model.eval().embed(ids)]\n",
    ),
}


@pytest.mark.parametrize("name", MODES)
def test_wrong_values_are_named_before_the_mode_of_a_model(name):
    exercise, source = MODES[name]
    verdict = judge_and_explain(catalogue.find(exercise), LocalEndpoint(namespace_of(source)), KEY)
    said = " ".join(as_text(verdict).split())
    assert verdict.first_failure.difference.kind in ("value", "shape", "length"), said
    told = "model is left in the other mode." in said  # the others look at the mode of a model of theirs
    assert told == (exercise == "greedy-decode") and "changed by your code" not in said, said


def test_a_mode_alone_is_said_to_be_one():
    source = catalogue.find("greedy-decode").correct[0].source.but("model.train(training)", "model.train(not training)")
    verdict = judge_and_explain(catalogue.find("greedy-decode"), LocalEndpoint(namespace_of(source)), KEY)
    said = " ".join(as_text(verdict).split())
    assert "model was left in the other mode by your code" in said and "Code that switches the mode" in said
    assert "in place" not in said, said


@pytest.mark.parametrize(
    "error", ["replace() argument 1 must be str, not int", "argument 2 was changed by your code", "argument 1"]
)
def test_the_text_of_a_learners_own_exception_is_left_as_it_is(error):
    verdict = verdict_on("build-vocab", f"raise TypeError({error!r})")
    assert error in explanation(verdict)
    assert error in " ".join(as_text(verdict).split())


@pytest.mark.parametrize("made", ["to_sparse()", "to_mkldnn()"])
def test_a_right_result_of_an_odd_layout_is_a_wrong_type_said_in_words(made):
    body = f"return torch.softmax(Q @ K.mT / Q.shape[-1] ** 0.5, -1).{made}"
    verdict = verdict_on("attention-weights", body)
    assert verdict.visible_points == 0
    assert "to_dense" in explanation(verdict) and "tensor" in explanation(verdict)


@pytest.mark.parametrize(
    "made", ["mT.contiguous().mT", "unsqueeze(-1).expand(-1, -1, -1, 2)[..., 0]", "flip(0).flip(0)"]
)
def test_a_right_result_of_odd_strides_is_right(made):
    body = f"return torch.softmax(Q @ K.mT / Q.shape[-1] ** 0.5, -1).{made}"
    verdict = verdict_on("attention-weights", body)
    assert verdict.passed
