"""A learner's parameters are read by role, whatever their names and layouts."""

import pytest
import torch

from autograder import catalogue
from autograder.judging import roles

ROLES = catalogue.find("self-attention").roles(6, 5, 7)


def read(parameters: dict[str, tuple[int, ...]], said: dict[str, str] | None = None) -> list[dict[str, str]]:
    return [
        {role: slot.parameter for role, slot in reading.items()}
        for reading in roles.assign(parameters, ROLES, said or {})
    ]


def test_names_decide_between_query_and_key():
    named = {"W_k.weight": (5, 6), "W_q.weight": (5, 6), "W_v.weight": (7, 6)}
    assert read(named) == [{"query": "W_q.weight", "key": "W_k.weight", "value": "W_v.weight"}]


def test_without_names_both_orders_are_tried_and_registration_comes_first():
    readings = read({"a": (6, 5), "b": (6, 5), "c": (6, 7)})
    assert readings[0] == {"query": "a", "key": "b", "value": "c"}
    assert {"query": "b", "key": "a", "value": "c"} in readings
    assert len(readings) == 2


def test_what_the_class_says_wins():
    said = {"query": "b", "key": "a", "value": "c"}
    assert read({"a": (6, 5), "b": (6, 5), "c": (6, 7)}, said) == [said]


def test_a_fused_matrix_is_cut_in_order():
    (first, *_) = roles.assign({"qkv.weight": (17, 6)}, ROLES, {})
    assert [(first[name].start, first[name].stop) for name in ("query", "key", "value")] == [
        (0, 5),
        (5, 10),
        (10, 17),
    ]


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"qk": (5, 6), "v": (7, 6)},
        {"q": (5, 6), "k": (5, 6), "v": (7, 6), "out": (6, 7)},
        {"q": (4, 6), "k": (5, 6), "v": (7, 6)},
    ],
)
def test_what_cannot_be_read_is_not_guessed(parameters):
    assert read(parameters) == []


@pytest.mark.parametrize(
    "shapes", [{"q": (5, 6), "k": (6, 5), "v": (7, 6, 1)}, {"x": (6, 17)}, {"q": (6, 5), "kv": (12, 6)}]
)
def test_loaded_weights_are_taken_back_unchanged(shapes):
    weights = {role.name: torch.randn(role.inputs, role.outputs) for role in ROLES}
    reading = roles.assign(shapes, ROLES, {})[0]
    values = roles.load(reading, shapes, weights)
    for name, slot in reading.items():
        assert torch.equal(slot.take(values), weights[name])


def test_biases_are_zeroed_and_scalars_left_alone():
    shapes = {"q": (5, 6), "k": (5, 6), "v": (7, 6), "q_bias": (5,), "temperature": ()}
    values = roles.load(
        roles.assign(shapes, ROLES, {})[0], shapes, {r.name: torch.ones(r.inputs, r.outputs) for r in ROLES}
    )
    assert values["q_bias"].tolist() == [0] * 5
    assert "temperature" not in values
