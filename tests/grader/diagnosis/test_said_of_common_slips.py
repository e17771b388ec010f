"""Sentences that were false, or sent a learner to the wrong line, for slips that are easily made."""

import re
from types import SimpleNamespace

import pytest
import torch
from explanations import said

from autograder import catalogue
from autograder.diagnosis.explain import judge_and_explain
from autograder.diagnosis.known_mistakes import namespace_of
from autograder.diagnosis.output_patterns import lengths
from autograder.feedback.about_types import SHAPE, about_lengths, about_shape
from autograder.feedback.report import as_text
from autograder.judging import forbidden
from autograder.judging.observation import Difference
from autograder.judging.observe import LocalEndpoint


def report(exercise_id: str, source: str) -> str:
    """The whole report of a learner's own check, on one line."""
    exercise, endpoint = catalogue.find(exercise_id), LocalEndpoint(namespace_of(source))
    return " ".join(as_text(judge_and_explain(exercise, endpoint, b"key", disclosed=True)).split())


def test_a_list_of_numpys_numbers_is_not_said_to_ignore_an_argument() -> None:
    source = catalogue.find("gradient-norms").correct[0].source
    again = "\n_right = gradient_norms\ndef gradient_norms(*given):\n    return [*_right(*given).numpy()]\n"
    told = said("gradient-norms", source + again)
    assert "does not depend" not in told, told


def test_a_list_of_arrays_is_not_called_numbers() -> None:
    told = said(
        "last-state", "def last_state(H, lengths):\n    return [H[b, n - 1].numpy() for b, n in enumerate(lengths)]"
    )
    assert "a Python list of values of type ndarray" in told and "of numbers" not in told, told


def test_a_method_that_has_the_name_of_a_function_of_torch_is_said_to_lack_self() -> None:
    right = catalogue.find("multi-head-attention").correct[0].source
    told = said("multi-head-attention", right.replace("self.split(", "split("))
    assert 'is "self." missing before it, or is torch.split meant?' in told, told


def test_a_constructor_that_refuses_nothing_is_not_told_to_keep_a_signature() -> None:
    right = catalogue.find("multi-head-attention").correct[0].source
    lenient = right + (
        "\n_made = MultiHeadAttention.__init__\ndef _lenient(self, d_model, h, *more, **named):\n"
        "    _made(self, d_model, 1 if (d_model, h) == (15, 9) else h, *more, **named)\n"
        "MultiHeadAttention.__init__ = _lenient\n"
    )
    told = report("multi-head-attention", lenient)
    assert "to be raised by the constructor" in told and "Keep that signature" not in told, told
    assert "the check constructed it with d_model = 15, h = 9" in told, told


ONE_HEAD = """
def _forward(self, x_q, x_kv=None, mask=None):
    x_kv = x_q if x_kv is None else x_kv
    self.last_weights = torch.softmax(x_q @ x_kv.mT, dim=-1)
    return self.last_weights @ x_kv
MultiHeadAttention.forward = _forward
"""
SOMETIMES_KEPT = """
_always = MultiHeadAttention.forward
def _sometimes(self, x_q, x_kv=None, mask=None):
    result = _always(self, x_q, x_kv, mask)
    self.last_weights = None if mask is None else self.last_weights
    return result
MultiHeadAttention.forward = _sometimes
"""
HEAD = """class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, h, bias=True):
        super().__init__()
        self.q = nn.Linear(d_model, d_model)
"""


def test_an_error_of_a_class_is_shown_with_what_the_check_constructed_it_with() -> None:
    told = report("multi-head-attention", HEAD.replace("(d_model, d_model)", "(d_model, d_model / h)"))
    assert "the check constructed it with d_model = 4, h = 2 ✗" in told and "called it" not in told, told
    forward = "    def forward(self, x_q, x_kv=None, mask=None):\n        return self.q(x_q).view(-1, 7)\n"
    told = report("multi-head-attention", HEAD + forward)
    assert "the check constructed it with d_model = 4, h = 2 and called it with x_q of shape" in told, told


def test_an_argument_that_has_lost_its_default_is_named() -> None:
    told = report("multi-head-attention", HEAD + "    def forward(self, x_q, x_kv, mask=None):\n        return x_q\n")
    assert "In the signature of the task's cell, x_kv has a default, x_kv=None, so the check may leave it out" in told
    without = HEAD.replace("bias=True", "bias")
    told = report(
        "multi-head-attention", without + "    def forward(self, x_q, x_kv=None, mask=None):\n        return x_q\n"
    )
    assert "bias has a default, bias=True" in told, told


def test_a_second_result_of_another_shape_is_named_behind_wrong_values_of_the_first() -> None:
    right = catalogue.find("multi-head-attention").correct[0].source
    told = report("multi-head-attention", right + ONE_HEAD)
    assert "In the same check, last_weights: expected shape (1, 2, 3, 3), got (1, 3, 3)." in told, told


def test_the_courses_own_answer_taken_by_its_name_is_found_by_reading() -> None:
    for exercise_id, answer in (
        ("encoder-layer", 'EncoderLayer = part("EncoderLayer")'),
        ("softmax", 'def softmax(x, dim=-1):\n    return part("softmax")(x, dim)'),
        ("causal-mask", 'causal_mask = part("causal_mask")'),
    ):
        exercise = catalogue.find(exercise_id)
        assignment = catalogue.assignment_of(exercise)
        (finding,) = forbidden.findings(["from transformer_ref.learner.mine import part", answer], exercise, assignment)
        assert "is a part of the course that an answer may not use" in finding


def test_an_argument_of_the_constructor_that_forward_cannot_see_is_said_to_be_one() -> None:
    source = next(iter(catalogue.find("self-attention").correct)).source
    told = said("self-attention", f"{source}\nSelfAttention.forward = lambda self, x, *more: x / d_k\n")
    assert "d_k is an argument of __init__" in told and "self.d_k" in told, told


def test_a_text_without_its_quotes_is_told_what_it_is() -> None:
    told = said("path-length", "def path_length(kind, i, j):\n    return 1 if kind == recurrent else 0\n")
    assert "Without quotes, recurrent is the name of a variable" in told and "'recurrent'" in told, told


def test_a_text_of_another_check_without_its_quotes_is_told_the_same() -> None:
    cost = "def layer_cost(kind, n, d, k):\n    return 1 if kind == attention else 0\n"
    told = said("layer-cost", f"{cost}\ndef break_even(d):\n    return d\n")
    assert "Without quotes, attention is the name of a variable" in told, told


@pytest.mark.parametrize(
    ("wanted", "got", "told"),
    [
        ((2, 5), (2, 4), "Only axis 1 differs: it is 1 too short. Does a range or a slice begin or end one position"),
        ((2, 5), (6, 5), "Only axis 0 differs: it is 4 too long."),
        ((2, 5), (5, 2), "Axes 0 and 1 are exchanged."),
        ((2, 3, 5), (5, 2, 3), "These are the expected sizes in another order."),
        ((3, 4, 3, 3), (3, 4, 6, 5), "Axis 2 is 3 too long, and axis 3 is 2 too long."),
        ((2, 5), (5,), "Yours is the expected shape without axis 0, of size 2. Was it summed, averaged or indexed"),
        ((2, 1, 5), (2, 5), "Yours is the expected shape without axis 1, of size 1. Was it squeezed away"),
        ((3, 3), (3,), "Yours is the expected shape without axis 0 or 1, each of size 3."),
        ((2, 5), (1, 2, 5), "Yours has one axis more: without its axis 0, of size 1, it is the expected shape."),
        ((2, 5), (7, 7, 7), SHAPE),
        ((2, 5), (), "Yours is a single number."),
        ((2, 5), (10,), "Yours holds as many numbers as expected, along other axes."),
        ((2, 4, 6), (2, 8, 3), "Yours holds as many numbers as expected, along other axes."),
    ],
)
def test_how_two_shapes_differ_is_said(wanted: tuple, got: tuple, told: str) -> None:
    assert about_shape(Difference("shape", expected=wanted, got=got)).startswith(told)


def test_an_axis_of_1_that_is_lost_may_come_of_cat_as_well() -> None:
    assert "joined with cat where stack is meant" in about_shape(Difference("shape", expected=(1,), got=()))


def test_a_wrong_axis_as_long_as_one_of_an_argument_is_said_to_be() -> None:
    outcome = lambda got, *shapes: SimpleNamespace(  # noqa: E731
        difference=Difference("shape", expected=(2, 3, 3), got=got),
        case=SimpleNamespace(arguments=tuple(map(torch.ones, shapes))),
    )
    names = ["source", "target"]
    told = about_lengths(names, [outcome((2, 5, 5), (2, 5), (2, 4))])
    assert told == "In yours, axes 1 and 2 are as long as axis 1 of source."
    assert about_lengths(names, [outcome((2, 5, 3), (2, 5), (5, 4))]) == ""  # it may be either
    elsewhere = outcome((2, 6, 6), (2, 5), (2, 4))
    assert about_lengths(names, [outcome((2, 5, 5), (2, 5), (2, 4)), elsewhere]) == ""


def test_a_length_that_is_a_product_or_a_fixed_number_is_said_to_be() -> None:
    shaped = lambda *shape: SimpleNamespace(result=torch.ones(shape))  # noqa: E731
    outcome = lambda z, h, got, wanted: SimpleNamespace(  # noqa: E731
        case=SimpleNamespace(arguments=(torch.ones(z), h)), got=shaped(*got), expected=shaped(*wanted)
    )
    merged = [outcome((2, 3, 5), 1, (2, 15, 7), (2, 5, 8)), outcome((2, 4, 6), 1, (2, 24, 7), (2, 6, 9))]
    (fact,) = lengths.about_lengths(merged)
    names = SimpleNamespace(argument=lambda place: ("z", "h")[place])
    assert fact.say(names) == (
        "Axis 1 of your result is as long as axes 1 and 2 of z multiplied. Axis 2 of your result is 7 long wherever it "
        "is wrong, though its length should vary: is a number written into the code?"
    )
    by_h = [outcome((2, 12), 3, (2, 4), (2, 3)), outcome((2, 10), 2, (2, 5), (2, 2))]
    (fact,) = lengths.about_lengths(by_h)
    assert fact.say(names) == "Axis 1 of your result is as long as axis 1 of z divided by h."


def test_where_the_checks_own_line_stopped_no_line_above_is_named() -> None:
    right = catalogue.find("tokenizer").correct[0].source
    told = said("tokenizer", f"{right}\nTokenizer.encode = lambda self, line: None\n")
    assert "The line above" not in told, told


def test_what_the_check_makes_of_its_input_is_not_shown_as_the_learners() -> None:
    told = report("train-step", "def train_step(model, batch, opt, pad, clip):\n    return model.nothing\n")
    assert "model = a small model" in told and "'lr'" not in told and "tensor([" not in told, told
    told = report("tokenizer", "class Tokenizer:\n    def fit(self, lines):\n        return 1 / 0\n")
    assert "the check called first.fit(" in told and "'by'" not in told, told
    told = report("leaks", "def leaks(model, ids, t, vocab):\n    return model.nothing\n")
    assert "model = a model" in told, told


def test_integers_beyond_what_floats_hold_are_not_compared_as_floats() -> None:
    name = catalogue.find("swap-batch-time").names[0]
    told = said("swap-batch-time", f"def {name}(x):\n    return x.double().transpose(0, 1).contiguous().to(x.dtype)\n")
    assert "some of the signs are not" not in told, told


@pytest.mark.parametrize("exercise_id", ["self-attention", "conv-as-attention"])
def test_a_1_in_place_of_each_0_is_explained_where_several_results_come_back(exercise_id) -> None:
    exercise = catalogue.find(exercise_id)
    right = exercise.correct[0].source
    for zero in re.finditer(r"\b0\b", right):
        source = f"{right[: zero.start()]}1{right[zero.end() :]}"
        verdict = judge_and_explain(exercise, LocalEndpoint(namespace_of(source)), b"key", disclosed=True)
        assert not verdict.failed_explanation


def test_an_index_is_never_called_nearly_correct() -> None:
    near = "def first_true(mask):\n    right = torch.cat([mask, mask.new_ones(len(mask), 1)], 1).int().argmax(1)\n"
    told = said("first-true", f"{near}    return right - (right > 200).long()\n")
    assert "epsilon" not in told, told


def test_parameters_that_forward_never_uses_are_named_and_no_roles_are_asked_for() -> None:
    right = catalogue.find("gpt").correct[0].source
    idle = right.but("x = x + self.places(torch.arange(T))", "").but("x = self.norm(x)", "")
    told = said("gpt", idle)
    assert "places.weight, norm.weight, norm.bias are defined, but forward does not use them." in told, told
    assert "say which is which" not in told, told


def test_a_kept_attribute_that_is_set_in_some_cases_only_is_named() -> None:
    right = catalogue.find("multi-head-attention").correct[0].source
    told = report("multi-head-attention", f"{right}{SOMETIMES_KEPT}")
    assert "After this call, .last_weights is None. Does forward set it in every case?" in told, told
    assert "not of the type" not in told, told


def test_one_layer_for_several_projections_is_not_asked_for_its_names() -> None:
    forward = "    def forward(self, x_q, x_kv=None, mask=None):\n        return self.q(x_q)\n"
    told = report("multi-head-attention", HEAD + forward)
    assert "It saw fewer numbers than these have: q.weight (4, 4), q.bias (4,)." in told, told
    assert "Is one layer used for several of them" in told and "roles =" not in told, told


def test_an_array_is_not_said_to_stop_gradients_where_nothing_has_any() -> None:
    right = catalogue.find("sinusoidal-pe").correct[0].source
    told = said(
        "sinusoidal-pe", f"{right}\n_right = sinusoidal_pe\ndef sinusoidal_pe(*a):\n    return _right(*a).numpy()\n"
    )
    assert "torch.from_numpy" in told and "gradient" not in told, told


def test_where_an_argument_is_ignored_no_sum_or_bias_is_suspected() -> None:
    told = said(
        "add-positions", "def add_positions(x, pe, offset=0):\n    return x + torch.ones(x.shape[1], 1).cumsum(0)"
    )
    assert "does not depend on pe" in told and "a bias" not in told, told
