"""Changed inputs for which a wrong result is right, and known mistakes that are made only in one setting."""

import math

import pytest
import torch

from autograder import catalogue
from autograder.diagnosis import changed_arguments, known_mistakes
from autograder.diagnosis.explain import judge_and_explain
from autograder.diagnosis.known_mistakes import namespace_of
from autograder.feedback.messages import explanation
from autograder.judging.closeness import distance
from autograder.judging.observe import LocalEndpoint


def verdict_on(exercise_id: str, source: str, disclosed: bool = False):
    namespace = dict(namespace_of(""))
    exec(source, namespace)
    return judge_and_explain(catalogue.find(exercise_id), LocalEndpoint(namespace), b"key", disclosed=disclosed)


def said(exercise_id: str, source: str, disclosed: bool = False) -> str:
    """What a learner reads below the lines of the checks."""
    return " ".join(explanation(verdict_on(exercise_id, source, disclosed)).split())


def around(exercise_id: str, function: str, arguments: str) -> str:
    """A right answer that is called with other arguments than those passed in."""
    right = catalogue.find(exercise_id).correct[0].source
    return f"{right}\n_right = {function}\ndef {function}(*given):\n    return _right({arguments})\n"


@pytest.mark.parametrize(
    ("exercise_id", "function", "arguments", "told"),
    [
        ("last-state", "last_state", "given[0], torch.as_tensor(given[1]) - 1", "lengths - 1 instead of lengths."),
        ("bpe-encode", "bpe_encode", "given[0][::-1], given[1]", "word read backward."),
        ("batch-matmul", "batch_matmul", "given[0], given[1].roll(1, 0)", "moved on by one position"),
        (
            "last-state",
            "last_state",
            "given[0], (torch.as_tensor(given[1]) - 1).clamp(min=1)",
            "1 where that is below 1",
        ),
        (
            "batch-matmul",
            "batch_matmul",
            "given[0], F.normalize(given[1], dim=-1)",
            "b with every row of it normalized to length 1",
        ),
        (
            "first-true",
            "first_true",
            "given[0] & (torch.arange(given[0].shape[1]) > 0)",
            "with False at its first position along axis 1: that position is never used",
        ),
        ("gradient-norms", "gradient_norms", "given[0] @ given[0], given[1]", "W multiplied by itself"),
        ("last-state", "last_state", "given[0], torch.as_tensor(given[1]).roll(1)", "moved on by one position"),
        ("first-true", "first_true", "~given[0]", "the opposite of mask"),
        (
            "batch-matmul",
            "batch_matmul",
            "given[0], given[1][-1:].expand_as(given[1])",
            "b with its last item along axis 0",
        ),
        ("gradient-norms", "gradient_norms", "given[0].abs(), given[1]", "W without its minus signs."),
        ("layer-cost", "layer_cost", "given[0], given[2], given[1], given[3]", "n and d exchanged"),
        ("project", "project", "given[0].relu(), *given[1:]", "x with 0 instead of its negative numbers."),
        (
            "project",
            "project",
            "F.normalize(given[0], dim=-1), *given[1:]",
            "x with every row of it normalized to length 1",
        ),
        ("attend", "attend", "given[0] ** 2, given[1] ** 2", "W and V, each with all its numbers squared"),
        (
            "attend",
            "attend",
            "given[0], given[1].sum(0, keepdim=True).expand_as(given[1])",
            "V with the sum of its items",
        ),
        (
            "dot",
            "dot",
            "given[0] * (torch.arange(given[0].shape[-1]) > 0).to(given[0]), given[1]",
            "a with 0 in its first number",
        ),
        ("temperature", "temperature", "given[0], given[1] and given[1] ** 0.5", "the root of tau instead of tau"),
        (
            "temperature",
            "temperature",
            "given[0], given[1] if given[1] < 0 else int(given[1])",
            "tau cut to a whole number",
        ),
    ],
)
def test_what_came_back_is_said_to_be_right_for_a_changed_argument(exercise_id, function, arguments, told):
    found = verdict_on(exercise_id, around(exercise_id, function, arguments))
    assert not found.passed
    text = said(exercise_id, around(exercise_id, function, arguments))
    known = found.misconception is not None
    assert known or told in text, text


def test_a_value_that_is_taken_for_another_is_said_with_both():
    source = catalogue.find("path-length").correct[0].source.replace('"recurrent"', '"recurrence"')
    told = said("path-length", source)
    assert "Where kind is 'recurrent', your result is the correct one for 'attention'" in told


def test_values_that_changed_places_are_said():
    right = catalogue.find("path-length").correct[0].source
    swapped = right.replace('"recurrent"', '"?"').replace(
        "        steps = distance\n", "        steps = min(distance, 1)\n"
    )
    swapped = swapped.replace("        steps = min(distance, 1)\n    return", "        steps = distance\n    return")
    assert "exchanged" in said("path-length", swapped.replace('"?"', '"recurrent"'))


def test_a_known_mistake_along_the_wrong_axis_is_told_as_two():
    told = said("row-normalize", "def row_normalize(x):\n    return torch.softmax(x, 0)\n", disclosed=True)
    assert "There seem to be two mistakes" in told and "along the wrong axis" in told
    assert "softmax takes exponentials first" in told


def test_a_pattern_in_one_setting_is_said_with_it():
    source = (
        catalogue.find("layer-cost")
        .correct[0]
        .source.replace("return n * n * d", "return 7 * n * n * d")
        .replace("return d\n", "return 3 * d + 5\n")
    )
    assert "Where kind is 'attention': Every number is 7.000 times the correct one." in said("layer-cost", source)


def test_a_change_that_changes_nothing_says_nothing():
    source = """
def embed(ids, W, scale=True):
    table = nn.Embedding(*W.shape)
    table.weight = nn.Parameter(W.clone())
    return table(ids) * (W.shape[1] ** 0.5 if scale else 1)
"""
    verdict = verdict_on("embed", source)
    assert not verdict.passed and not [fact for fact in verdict.noticed if fact.name == "turned"]


def test_two_mistakes_are_not_named_where_their_changes_do_not_mean_what_each_means_alone():
    told = said(
        "batch-matmul",
        "def batch_matmul(a, b):\n    return (a.unsqueeze(-1) * b.unsqueeze(1)).mean(2).transpose(1, 2)\n",
    )
    assert "rows and columns are exchanged" in told and "averaged" in told, told
    assert "b was transposed" not in told, told


WRONG_IN_TWO = """
def layer_cost(kind, n, d, k):
    if kind == "recurrent":
        return n * d * d
    if kind == "convolution":
        return k * n * d
    return 2 * n * n * d

def break_even(d):
    return d // 2
"""


def test_mistakes_in_several_settings_are_named_with_them():
    told = said("layer-cost", WRONG_IN_TWO)
    for place in ("Where kind is 'attention': ", "Where kind is 'convolution': ", "In break_even: "):
        assert place in told


def test_a_mistake_in_several_settings_is_told_once():
    source = """
def path_length(kind, i, j, k=3):
    if kind == "recurrent":
        return max(j - i, 0)
    return -(-max(j - i, 0) // (k // 2)) if kind == "window" else int(i != j)
"""
    told = said("path-length", source)
    assert "Where kind is 'recurrent', and where kind is 'window': " in told and told.count("you say 0") == 1


def test_a_hidden_none_is_said_to_be_one():
    right = catalogue.find("path-length").correct[0].source
    source = (
        f"{right}\n_right = path_length\ndef path_length(kind, i, j, k=3):\n"
        "    if i != j or kind != 'attention':\n        return _right(kind, i, j, k)\n"
    )
    assert "the function returned None, as a path without a `return` does." in said("path-length", source)


def test_what_is_left_beside_a_mistake_in_one_setting_is_said():
    told = said("layer-cost", WRONG_IN_TWO.replace("d // 2", "7 * d + 3"))
    assert (
        "Where kind is 'attention': " in told
        and "Other checks fail as well, for the same reason or a different one" in told
    )


def test_an_error_of_another_kind_is_not_taken_for_numpy():
    source = """
def row_normalize(x):
    out = x.new_empty(x.shape)
    for row, target in zip(x, out):
        target.copy_(row / row.sum())
    return out
"""
    assert "NumPy" not in said("row-normalize", source)


def test_a_known_mistake_with_something_done_on_top_is_told_under_grading_too():
    told = said("scaled-scores", "def scaled_scores(Q, K):\n    return torch.tanh(Q @ K.T)\n")
    assert (
        "There seem to be two mistakes" in told
        and "plain dot products" in told
        and "Your result is that one after tanh" in told
    ), told


@pytest.mark.parametrize("change", [*changed_arguments.CHANGES.values(), *changed_arguments.ALONG_AN_AXIS.values()])
def test_the_words_for_a_change_name_the_argument_and_nothing_unknown(change):
    said = change.words.format(name="ids", axis=1, line="row", lines="rows")
    assert "ids" in said or change.words.startswith(("-1 ", "0 ", "1 "))


def test_whole_numbers_are_compared_to_the_last_digit():
    source = catalogue.find("layer-cost").correct[0].source.replace("return n * n * d", "return int(float(n * n * d))")
    assert "more digits than a float holds" in said("layer-cost", source)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        (
            "n * n * d",
            "n * n * d + n * n",
            "Where kind is 'attention': Your result is the correct number plus n * n.",
        ),
        ("n * n * d", "n * n * n + 2 * n * d", "2 * n * d + n * n * n"),
        ("return d\n", "return d * d * d\n", "In break_even: Your result is d * d * d."),
    ],
)
def test_the_formula_of_a_plain_number_is_said(old, new, told):
    source = catalogue.find("layer-cost").correct[0].source
    assert source.count(old) == 1 and told in said("layer-cost", source.replace(old, new))


def test_an_argument_left_to_its_default_stops_no_judge():
    source = "def embed(ids, W, scale=True):\n    return (W - W.mean(0))[ids] * (W.shape[1] ** 0.5 if scale else 1)\n"
    assert "W with the mean of every column subtracted from it" in said("embed", source)


def test_a_formula_may_compare_two_arguments():
    source = catalogue.find("path-length").correct[0].source.replace("steps = distance\n", "steps = 2 * max(i, j)\n")
    assert "Where kind is 'recurrent': Your result is 2 * max(i, j)." in said("path-length", source)


TWO_IN_A_CLASS = """
class SelfAttention(nn.Module):
    def __init__(self, d_model, d_k, d_v):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(d_model, d) for d in (d_k, d_k, d_v))
        self.d_v = d_v

    def forward(self, x):
        scores = F.relu(self.q(x)) @ F.relu(self.k(x)).mT / self.d_v ** 0.5
        weights = torch.softmax(scores, dim=-1)
        return weights @ F.relu(self.v(x)), weights
"""


def test_two_known_mistakes_in_a_class_are_named_under_grading_too():
    told = said("self-attention", TWO_IN_A_CLASS)
    assert "Two known mistakes together" in told and "ReLU" in told and "root of d_v" in told, told


def test_pairs_are_looked_at_by_how_near_each_mistake_alone_comes():
    exercise = catalogue.find("self-attention")
    failed = next(o for o in verdict_on("self-attention", TWO_IN_A_CLASS).outcomes if not o.passed)
    nearest = known_mistakes._nearest_first(exercise, failed)
    names = [(pair.first.name, pair.second.name) for pair in known_mistakes._made(nearest)]
    assert 100 < len(names) < len(nearest) == len(known_mistakes._pairs(exercise))  # some do not fit together
    meant = {"ReLU on the projections", "divided by the root of d_v"}
    assert next(place for place, pair in enumerate(names) if set(pair) == meant) < len(names) / 10


def test_a_distance_is_between_0_and_1():
    one, far = torch.ones(2, 3), torch.full((2, 3), -5.0)
    assert distance(one, one) == 0 and distance((one, far), (one, -far)) == 0.5
    assert distance(one, far) == distance(one, one[0]) == distance(one, None) == distance(one, one * math.nan) == 1


def test_a_known_mistake_that_shows_nowhere_is_not_said_to_be_made_beside_another():
    told = said(
        "log-softmax",
        "def log_softmax(x, dim):\n    return torch.tanh(x.log_softmax(dim))\n".replace(
            "x.log_softmax(dim)", "x - torch.logsumexp(x, dim, keepdim=True)"
        ),
    )
    assert "after tanh" in told and "underflowed" not in told, told
