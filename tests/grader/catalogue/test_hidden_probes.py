"""Hidden probes: the same kinds for every exercise unless its entry says why not, and nothing unannounced."""

import json

import pytest
import torch

from autograder import catalogue
from autograder.catalogue import defaults
from autograder.catalogue.ch07_positional_encoding.check_criteria import random_table
from autograder.catalogue.exercise import Case
from autograder.catalogue.probes import PROMISED
from autograder.diagnosis.explain import judge_and_explain
from autograder.diagnosis.known_mistakes import namespace_of
from autograder.judging.judge import draw_key
from autograder.judging.observe import LocalEndpoint
from autograder.prepare.sample_class import ROOT

HIDDEN = [(a, exercise) for a in catalogue.ASSIGNMENTS for exercise in a.exercises if exercise.hidden]
by_id = pytest.mark.parametrize(("assignment", "exercise"), HIDDEN, ids=lambda value: value.id)


@by_id
def test_an_entry_asks_every_default_or_gives_the_reason(assignment, exercise):
    cases = [probe.draw(torch.Generator().manual_seed(1)) for probe in exercise.hidden]
    assert set(exercise.omits) == set(defaults.DEFAULTS) - defaults.asked(cases)
    assert all(exercise.omits.values())


@by_id
def test_what_a_hidden_probe_asks_stands_in_the_task(assignment, exercise):
    path = ROOT / "exercises" / assignment.id / f"{assignment.notebook}.ipynb"
    cells = {cell["id"]: "".join(cell["source"]) for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]}
    told = " ".join(f"{cells[f'{exercise.id}-task']} {cells[exercise.id]}".split())
    asked = {probe.name: probe.announced_by for probe in exercise.hidden if probe.announced_by != PROMISED}
    assert {name: says for name, says in asked.items() if not says or says not in told} == {}


@pytest.mark.parametrize(
    ("case", "default"),
    [
        (Case((torch.ones(1, 3),)), "a batch of one"),
        (Case((["a"],)), "a batch of one"),
        (Case((torch.ones(3, 1),)), "a length of one"),
        (Case((torch.ones(3),), before=(torch.ones(3),)), "a second call"),
        (Case((torch.tensor([1e8], dtype=torch.float64),)), "precision"),
        (Case(([2**24 + 1],)), "precision"),
        (Case(({"a": 0},)), "falsy values"),
        (Case((None,)), "falsy values"),
        (Case((["a", "b", "a"],)), "repeated items"),
        (Case((torch.tensor([[1, 2], [3, 4], [1, 2]]),)), "repeated items"),
    ],
)
def test_a_default_is_seen_in_what_is_drawn(case, default):
    assert default in defaults.asked([case])


def test_a_case_of_other_values_asks_no_default():
    x = torch.tensor([[1.5, 2.5], [3.5, 4.5]], dtype=torch.float64)
    assert defaults.asked([Case((x, 3, True, [5, 6], "aa"))]) == set()


def test_a_lookup_in_another_order_is_not_blamed_for_the_rounding_of_its_scores():
    lookup = catalogue.find("soft-lookup")
    probe = next(each for each in lookup.hidden if each.name == "two close keys and a large beta")
    for seed in range(300):
        q, keys, values, beta = probe.draw(torch.Generator().manual_seed(seed)).arguments
        ours = lookup.reference["soft_lookup"](q, keys, values, beta)
        theirs = torch.softmax(beta * keys @ q, -1) @ values
        assert torch.allclose(theirs, ours, rtol=probe.rtol, atol=probe.atol), seed


def test_scores_of_a_million_may_be_rounded_before_they_are_summed():
    scores = catalogue.find("scaled-scores")
    probe = next(each for each in scores.hidden if each.name == "a zero query, and large numbers")
    for seed in range(10_000):
        Q, K = probe.draw(torch.Generator().manual_seed(seed)).arguments
        ours, theirs = scores.reference["scaled_scores"](Q, K), (Q / Q.shape[1] ** 0.5) @ K.T
        assert torch.allclose(theirs, ours, rtol=probe.rtol, atol=probe.atol), seed


def test_a_table_that_is_another_at_each_call_holds_no_number_twice_in_a_column():
    for seed in range(20):
        table = random_table(seed)
        for column in (*table(50, 8).T, *table(10_000, 8).T):
            assert column.sort().values.diff().min() > 1e-5


def test_a_leak_test_of_one_token_and_one_position_fails_in_a_third_of_the_checks():
    def narrow(model, ids, t):
        changed = ids.clone()
        changed[:, t] = (ids[:, t] + 1) % model(ids).shape[-1]
        return bool((model(ids) - model(changed))[:, t - 1].abs().max() > 1e-3)

    exercise, missed = catalogue.find("leaks"), 0
    for probe in exercise.hidden:
        case = probe.draw(torch.Generator().manual_seed(1))
        case.arguments[0].eval()
        missed += narrow(*case.arguments) != exercise.reference["leaks"](*case.arguments)
    assert 3 * missed >= len(exercise.hidden)


def test_a_variance_from_mean_squares_is_wrong_around_a_large_mean():
    exercise = catalogue.find("layer-norm")
    probe = next(each for each in exercise.hidden if each.name == "float64, transposed in memory")
    for seed in range(20):
        x, g, b, eps = probe.draw(torch.Generator().manual_seed(seed)).arguments
        mean = x.mean(-1, keepdim=True)
        variance = (x * x).mean(-1, keepdim=True) - mean * mean
        ours = exercise.reference["layer_norm"](x, g, b, eps)
        assert not torch.allclose((x - mean) / (variance + eps).sqrt() * g + b, ours, rtol=1e-3, atol=1e-3)


def test_some_hidden_batch_of_a_padding_mask_has_a_pad_in_every_sentence():
    cases = [probe.draw(torch.Generator().manual_seed(1)) for probe in catalogue.find("padding-mask").hidden]
    assert any((ids == pad).any(dim=1).all() for ids, pad in (case.arguments for case in cases))


NEEDS_NUMBERS = {"online-softmax": "the first block's maximum throughout", "generate": "stops at an end"}


@pytest.mark.parametrize("exercise", NEEDS_NUMBERS)
def test_a_mistake_that_needs_certain_numbers_to_show_meets_them_on_every_draw(exercise):
    entry = catalogue.find(exercise)
    known = next(each for each in entry.mistakes if each.name == NEEDS_NUMBERS[exercise])
    for draw in range(15):
        verdict = judge_and_explain(
            entry, LocalEndpoint(namespace_of(known.source)), draw_key(b"secret", "", exercise, [str(draw)])
        )
        assert verdict.misconception and verdict.misconception.name == known.name, draw
