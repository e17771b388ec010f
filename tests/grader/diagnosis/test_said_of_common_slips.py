"""Sentences that were false, or sent a learner to the wrong line, for slips that are easily made."""

import re

import pytest
from explanations import said

from autograder import catalogue
from autograder.diagnosis.explain import judge_and_explain
from autograder.diagnosis.known_mistakes import namespace_of
from autograder.feedback.about_types import SHAPE, about_shape
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
        "    _made(self, d_model, 1 if (d_model, h) == (9, 6) else h, *more, **named)\n"
        "MultiHeadAttention.__init__ = _lenient\n"
    )
    told = report("multi-head-attention", lenient)
    assert "to be raised by the constructor" in told and "Keep that signature" not in told, told
    assert "the check constructed it with d_model = 9, h = 6" in told, told


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


def test_one_length_that_differs_is_said_and_no_question_is_asked() -> None:
    def about(got: tuple[int, ...]) -> str:
        return about_shape(Difference("shape", expected=(2, 5), got=got))

    about_one = "Only axis 1 differs: it is 1 too short. Does a range or a slice begin or end one position off?"
    assert about((2, 4)) == about_one
    assert about((6, 5)) == "Only axis 0 differs: it is 4 too long."
    assert about((5, 2)) == about((5,)) == SHAPE


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
