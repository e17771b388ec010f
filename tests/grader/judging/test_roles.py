"""A learner's parameters are read by role, whatever their names and layouts."""

import pytest
import torch

from autograder import catalogue
from autograder.judging.parameter_matching import roles

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


@pytest.mark.parametrize("more", [{}, {"b": (1, 1, 7)}, {"b": (1, 7)}], ids=["no bias", "three axes", "two axes"])
def test_a_layer_with_one_output_keeps_its_axis_of_size_1_and_a_bias_is_no_such_layer(more):
    wanted = catalogue.find("self-attention").roles(6, 1, 7)
    shapes = {"q": (1, 6, 1), "k": (6, 1, 1), "v": (7, 6, 1), **more}
    weights = {role.name: torch.randn(role.inputs, role.outputs) for role in wanted}
    (reading,) = roles.assign(shapes, wanted, {})
    values = roles.load(reading, shapes, weights)
    assert all(torch.equal(slot.take(values), weights[name]) for name, slot in reading.items())
    assert read({"qkv": (17, 6), "bias": (1, 1, 17)})[0] == dict.fromkeys(("query", "key", "value"), "qkv")


def test_biases_are_zeroed_and_scalars_left_alone():
    shapes = {"q": (5, 6), "k": (5, 6), "v": (7, 6), "q_bias": (5,), "temperature": ()}
    values = roles.load(
        roles.assign(shapes, ROLES, {})[0], shapes, {r.name: torch.ones(r.inputs, r.outputs) for r in ROLES}
    )
    assert values["q_bias"].tolist() == [0] * 5
    assert "temperature" not in values


HEADS = catalogue.find("multi-head-attention").roles(12, 4)  # d_k 3
ONE_A_HEAD = {f"heads.{i}.{name}.weight": (3, 12) for i in range(4) for name in ("query", "key", "value")}


@pytest.mark.parametrize(
    "shapes",
    [
        {**ONE_A_HEAD, "out.weight": (12, 12)},
        {f"heads.{i}.weight": (9, 12) for i in range(4)} | {"out.weight": (12, 12)},
        {"q": (4, 12, 3), "k": (4, 3, 12), "v": (12, 4, 3), "o": (4, 3, 12)},
        {"qkv.weight": (36, 12), "out.weight": (12, 12)},
        {"q": (12, 12), "k": (12, 12), "v": (12, 12), "o": (12, 12)},
    ],
    ids=["a layer for each head", "fused for each head", "three axes", "fused", "square"],
)
def test_what_comes_in_a_piece_for_each_head_is_read_and_loaded_back_unchanged(shapes):
    weights = {role.name: torch.randn(role.inputs, role.outputs) for role in HEADS}
    readings = roles.assign(shapes, HEADS, {})
    assert readings
    for reading in readings:
        values = roles.load(reading, shapes, weights)
        assert all(torch.equal(slot.take(values), weights[name]) for name, slot in reading.items())


def test_a_head_of_its_own_gets_its_share_of_the_columns():
    shapes = {**ONE_A_HEAD, "out.weight": (12, 12)}
    weights = {role.name: torch.randn(role.inputs, role.outputs) for role in HEADS}
    values = roles.load(roles.assign(shapes, HEADS, {})[0], shapes, weights)
    assert torch.equal(values["heads.2.key.weight"].T, weights["key"][:, 6:9])


def test_a_matrix_of_all_heads_is_read_role_by_role_and_head_by_head():
    readings = roles.assign({"qkv.weight": (36, 12), "out.weight": (12, 12)}, HEADS, {})
    starts = {tuple(reading[name].start for name in ("query", "key", "value")) for reading in readings}
    assert {(0, 12, 24), (0, 3, 6)} <= starts


def test_square_pieces_of_three_heads_may_be_fused_ones():
    three = catalogue.find("multi-head-attention").roles(15, 3)
    readings = roles.assign({f"heads.{i}.weight": (15, 15) for i in range(3)} | {"fc.weight": (15, 15)}, three, {})
    assert any(reading["key"].parameter == "heads.*.weight" for reading in readings)


def test_a_bare_square_matrix_is_read_both_ways_round_and_a_layer_one_way():
    bare = roles.assign({"q": (12, 12), "k": (12, 12), "v": (12, 12), "o": (12, 12)}, HEADS, {})
    layers = roles.assign({f"{name}.weight": (12, 12) for name in "qkvo"}, HEADS, {})
    assert {reading["query"].outputs_first for reading in bare} == {False, True}
    assert [reading["query"].outputs_first for reading in layers] == [True]


def test_the_scale_of_a_normalization_is_left_as_it_was():
    shapes = {"q": (5, 6), "k": (5, 6), "v": (7, 6), "norm.weight": (6,), "norm.bias": (6,)}
    values = roles.load(
        roles.assign(shapes, ROLES, {})[0], shapes, {r.name: torch.ones(r.inputs, r.outputs) for r in ROLES}
    )
    assert "norm.weight" not in values
    assert values["norm.bias"].tolist() == [0] * 6


def test_biases_of_several_axes_are_no_matrices_and_take_the_number_they_are_given():
    wanted = catalogue.find("multi-head-attention").roles(8, 2)
    shapes = {f"w_{name}": (8, 2, 4) for name in "qkv"} | {"w_o": (2, 4, 8), "b_q": (2, 4), "b_kv": (2, 1, 2, 4)}
    weights = {role.name: torch.randn(8, 8) for role in wanted}
    reading = roles.assign(shapes, wanted, {})[0]
    assert [slot.parameter for slot in reading.values()] == ["w_k", "w_o", "w_q", "w_v"]
    for given, number in (({}, 0.0), ({"bias": torch.tensor(0.5)}, 0.5)):
        values = roles.load(reading, shapes, weights | given)
        assert all(bool((values[name] == number).all()) for name in ("b_q", "b_kv"))
