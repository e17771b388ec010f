"""Layers and models are read by what they are made of, in the order in which they use it."""

import pytest
import torch
from torch import nn

from autograder import catalogue
from autograder.diagnosis.explain import judge_and_explain
from autograder.diagnosis.known_mistakes import namespace_of
from autograder.feedback.messages import explanation
from autograder.inside import parameter_order
from autograder.judging.judge import draw_key
from autograder.judging.observe import LocalEndpoint
from autograder.judging.parameter_matching import blocks

SIZES = (6, 3, 10, 0.0, True)
ENCODER = catalogue.find("encoder-layer")
RIGHT = {variant.name: variant.source for variant in ENCODER.correct}
KEY = draw_key(b"secret", "assignment", "exercise", ["submission"])


def seen(module: nn.Module, *example) -> blocks.Parameters:
    shapes = {name: tuple(p.shape) for name, p in module.named_parameters()}
    return blocks.Parameters(shapes, parameter_order.in_order(module, example), frozenset(parameter_order.ones(module)))


def layer(source: str) -> nn.Module:
    return namespace_of(source)["EncoderLayer"](*SIZES)


@pytest.mark.parametrize("name", RIGHT)
def test_what_is_loaded_is_what_the_roles_are_given(name):
    parameters = seen(layer(RIGHT[name]), torch.randn(2, 4, 6))
    wanted = ENCODER.roles(*SIZES)
    weights = {role: torch.randn(shape) for block in wanted for role, shape in block.shapes().items()}
    reading = blocks.assign(parameters, wanted, {})[0]
    values = blocks.load(reading, parameters.shapes, weights)
    assert set(reading) == set(weights)
    assert values.keys() == parameters.shapes.keys()  # nothing keeps a number of its own
    assert all(torch.equal(slot.take(values), weights[role]) for role, slot in reading.items())


def test_norms_are_read_in_the_order_of_use_and_not_of_making():
    parameters = seen(layer(RIGHT["norms made second, used first"]), torch.randn(2, 4, 6))
    reading = blocks.assign(parameters, ENCODER.roles(*SIZES), {})[0]
    assert [reading[f"norm {n}.scale"].parameter for n in (1, 2)] == ["norm1.weight", "norm2.weight"]
    assert list(parameters.shapes).index("norm2.weight") < list(parameters.shapes).index("norm1.weight")


def test_a_shift_is_no_bias_of_a_matrix_that_is_called_alike():
    block = catalogue.find("gpt-block")
    bare = next(variant.source for variant in block.correct if variant.name == "bare parameters and einsum")
    for old, new in (("b1", "c1"), ("b2", "c2"), ("s1", "b1"), ("s2", "b2")):
        bare = bare.replace(f"self.{old}", f"self.{new}")
    parameters = seen(namespace_of(bare)["GPTBlock"](6, 3, 10), torch.randn(2, 4, 6))
    reading = blocks.assign(parameters, block.roles(6, 3, 10), {})[0]
    assert [reading[f"norm {n}.shift"].parameter for n in (1, 2)] == ["b1", "b2"]
    assert [reading[f"feed-forward.{part} bias"].parameter for part in ("first", "second")] == ["c1", "c2"]


def test_what_is_used_twice_is_said_to_be_shared():
    source = next(known.source for known in ENCODER.mistakes if known.name == "one norm for both")
    parameters = seen(layer(source), torch.randn(2, 4, 6))
    found = blocks.troubles(parameters, ENCODER.roles(*SIZES), {})
    assert found == (blocks.Trouble("norms", 1, 2, shared=True),)


def test_what_the_class_says_wins_over_the_order_of_use():
    said = {"norm 1.scale": "norm2", "norm 1.shift": "norm2.bias"}
    parameters = seen(layer(RIGHT["written out"]), torch.randn(2, 4, 6))
    reading = blocks.assign(parameters, ENCODER.roles(*SIZES), said)[0]
    assert reading["norm 1.scale"].parameter == "norm2.weight"
    assert reading["norm 2.scale"].parameter == "norm1.weight"


def test_a_layer_that_cannot_be_read_says_what_was_found_and_how_to_settle_it():
    source = RIGHT["written out"].replace("nn.LayerNorm(d), nn.LayerNorm(d)", "nn.LayerNorm(d), nn.RMSNorm(d)")
    told = explanation(judge_and_explain(ENCODER, LocalEndpoint(namespace_of(source)), KEY))
    assert "1 found, 2 expected" in told
    assert 'roles = {"norm 2.scale": "...", ...}' in told


def test_parameters_that_nobody_uses_are_no_trouble():
    source = RIGHT["written out"].replace("self.drop = nn", "self.spare = nn.LayerNorm(d)\n        self.drop = nn")
    assert judge_and_explain(ENCODER, LocalEndpoint(namespace_of(source)), KEY).points == ENCODER.points
