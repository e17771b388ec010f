"""A model's parts outside its layers are read whatever they are made of: projections, rows of positions, one vector."""

import pytest
import torch

from autograder import catalogue
from autograder.diagnosis.explain import judge_and_explain
from autograder.diagnosis.known_mistakes import namespace_of
from autograder.feedback.messages import explanation
from autograder.inside import parameter_order
from autograder.judging.judge import draw_key
from autograder.judging.observe import LocalEndpoint
from autograder.judging.parameter_matching import blocks, single_parts

SIZES = (4, 2, 3, 9, 3, 2, 14, 7)
VIT = catalogue.find("vit")
RIGHT = {variant.name: variant.source for variant in VIT.correct}
WRONG = {known.name: known.source for known in VIT.mistakes}
KEY = draw_key(b"secret", "assignment", "exercise", ["submission"])


def seen(source, sizes=SIZES):
    model = namespace_of(source)["ViT"](*sizes)
    shapes = {name: tuple(p.shape) for name, p in model.named_parameters()}
    example = (torch.randn(2, 3, 4, 4),)
    return blocks.Parameters(shapes, parameter_order.in_order(model, example), frozenset(parameter_order.ones(model)))


@pytest.mark.parametrize("name", RIGHT)
def test_what_is_loaded_is_what_the_roles_are_given(name):
    parameters, wanted = seen(RIGHT[name]), VIT.roles(*SIZES)
    weights = {role: torch.randn(shape) for block in wanted for role, shape in block.shapes().items()}
    reading = blocks.assign(parameters, wanted, {})[0]
    values = blocks.load(reading, parameters.shapes, weights)
    assert set(reading) == set(weights)
    assert values.keys() == parameters.shapes.keys()  # nothing keeps a number of its own
    assert all(torch.equal(slot.take(values), weights[role]) for role, slot in reading.items())


@pytest.mark.parametrize(
    ("name", "trouble"),
    [
        ("positions before the class token", blocks.Trouble("rows of positions", 4, 5)),
        ("no positions", blocks.Trouble("positions", 0, 1)),
        ("a class token that cannot learn", blocks.Trouble("class token", 0, 1)),
        ("no bias in the head", blocks.Trouble("bias of the head", 0, 1)),
        ("no last norm", blocks.Trouble("norms", 4, 5)),
    ],
)
def test_what_is_missing_is_said_by_its_name(name, trouble):
    assert blocks.troubles(seen(WRONG[name]), VIT.roles(*SIZES), {}) == (trouble,)


def test_a_projection_that_is_there_twice_is_one_too_many():
    source = RIGHT["written out"].replace("self.head(x[:, 0])", "self.head(x[:, 0]) + self.more(x[:, 0])")
    source = source.replace("self.head = nn", "self.more = nn.Linear(d_model, classes)\n        self.head = nn")
    told = explanation(judge_and_explain(VIT, LocalEndpoint(namespace_of(source)), KEY))
    assert "You have too many projections. Projections: 3 found, 2 expected" in told


@pytest.mark.parametrize(
    ("shape", "outputs_first"), [((5, 12), True), ((12, 5), False), ((5, 3, 2, 2), True), ((3, 2, 2, 5), False)]
)
def test_a_projection_may_lie_in_any_layout(shape, outputs_first):
    block = catalogue.exercise.Block("head", "projection", (12, 5))
    found, spare = single_parts.projections([block], {"W": shape}, ["W"])
    assert found["head.weight"].outputs_first == outputs_first and spare == set()
    tensors, weight = {"W": torch.zeros(shape)}, torch.randn(12, 5)
    found["head.weight"].place(tensors, weight)
    inputs = torch.randn(7, 12)
    by_hand = tensors["W"].reshape(5, 12).T if outputs_first else tensors["W"].reshape(12, 5)
    torch.testing.assert_close(inputs @ by_hand, inputs @ weight)


@pytest.mark.parametrize("name", RIGHT)
def test_a_head_for_one_class_is_read(name):
    source = RIGHT[name].replace("classify", "head")  # the name says class, as that of a class token does
    parameters, wanted = seen(source, (*SIZES[:-1], 1)), VIT.roles(*SIZES[:-1], 1)
    weights = {role: torch.randn(shape) for block in wanted for role, shape in block.shapes().items()}
    reading = blocks.assign(parameters, wanted, {})[0]
    values = blocks.load(reading, parameters.shapes, weights)
    assert all(torch.equal(slot.take(values), weights[role]) for role, slot in reading.items())


def test_a_bias_is_no_class_token_and_a_class_token_no_bias():
    parameters = seen(RIGHT["everything a bare parameter"])
    reading = blocks.assign(parameters, VIT.roles(*SIZES), {})[0]
    assert reading["class token.numbers"].parameter == "class_token"
    assert reading["patch projection.bias"].parameter == "b"


def test_what_the_class_says_wins():
    source = RIGHT["written out"].replace("class ViT(nn.Module):", "class ViT(nn.Module):\n    roles = SAID")
    said = {"class token.numbers": "class_token", "head.weight": "head"}
    model = seen(source.replace("SAID", repr(said)))
    reading = blocks.assign(model, VIT.roles(*SIZES), said)[0]
    assert reading["head.weight"].parameter == "head.weight"
    assert (
        judge_and_explain(VIT, LocalEndpoint(namespace_of(source.replace("SAID", repr(said)))), KEY).points
        == VIT.points
    )
