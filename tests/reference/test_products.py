"""Linear layers by oneDNN: outputs and gradients are those of torch.nn.Linear, wherever they are computed."""

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from transformer_ref import machine
from transformer_ref.fast import products
from transformer_ref.fast.accelerate import accelerate
from transformer_ref.fast.loss import projected_cross_entropy
from transformer_ref.fast.products import FEWEST_ROWS, QuickLinear, linear
from transformer_ref.training.loss import label_smoothed_cross_entropy

WAYS = ("plain", "outputs", "all")
ROWS = FEWEST_ROWS + 5


@pytest.fixture(params=WAYS)
def way(request, monkeypatch):
    monkeypatch.setenv(machine.VARIABLE, f"products={request.param}")
    yield request.param
    machine.forget_choices()


def drawn(*shape, dtype=torch.float32):
    generator = torch.Generator().manual_seed(sum(shape))
    return torch.randn(*shape, generator=generator).to(dtype)


@pytest.mark.parametrize("shape", [(ROWS, 12), (3, ROWS, 12), (2, 12), (0, 12)])
@pytest.mark.parametrize(("outputs", "bias"), [(20, True), (20, False), (7, True), (12, False)])
def test_a_quick_layer_computes_what_a_linear_layer_does_gradients_included(way, shape, outputs, bias):
    plain = nn.Linear(12, outputs, bias=bias)
    with torch.no_grad():
        for parameter in plain.parameters():
            parameter.copy_(drawn(*parameter.shape))
    quick = copy.deepcopy(plain)
    quick.__class__ = QuickLinear
    results = []
    for layer in (plain, quick):
        x = drawn(*shape).requires_grad_()
        y = layer(x)
        (y * drawn(*y.shape)).sum().backward()
        results.append([y, x.grad, *(parameter.grad for parameter in layer.parameters())])
    for ours, right in zip(results[1], results[0], strict=True):
        assert ours.shape == right.shape
        torch.testing.assert_close(ours, right, rtol=1e-4, atol=1e-4)


def test_only_gradients_that_are_asked_for_are_computed(way):
    x, weight = drawn(ROWS, 12), drawn(20, 12).requires_grad_()
    linear(x, weight).sum().backward()
    assert x.grad is None
    torch.testing.assert_close(weight.grad, x.sum(dim=0).expand(20, 12), rtol=1e-4, atol=1e-4)


def test_other_dtypes_and_few_rows_are_left_to_torch(monkeypatch):
    monkeypatch.setenv(machine.VARIABLE, "products=all")
    monkeypatch.setattr(products, "product", None)  # it would stop
    for x, weight in (
        (drawn(ROWS, 12, dtype=torch.bfloat16), drawn(20, 12, dtype=torch.bfloat16)),
        (drawn(ROWS, 12, dtype=torch.float64), drawn(20, 12, dtype=torch.float64)),
        (drawn(FEWEST_ROWS - 1, 12), drawn(20, 12)),
    ):
        assert torch.equal(linear(x, weight), F.linear(x, weight))


def test_a_torch_without_the_operator_is_served_by_the_plain_layer(monkeypatch):
    def missing(*_):
        raise AttributeError("no such operator")

    monkeypatch.delenv(machine.VARIABLE, raising=False)
    for other, why in ((missing, "no such operator"), (lambda x, weight: x @ weight.T + 1, "something else")):
        monkeypatch.setattr(products, "product", other)
        machine.forget_choices()
        choice = products.products()
        machine.forget_choices()
        assert choice.value == "plain" and why in choice.why


def test_an_accelerated_model_keeps_its_weights_and_what_shares_them():
    model = nn.Sequential(nn.Embedding(9, 4), nn.Linear(4, 9, bias=False))
    model[1].weight = model[0].weight
    names = list(model.state_dict())
    assert type(accelerate(model)[1]) is QuickLinear
    assert list(model.state_dict()) == names and model[1].weight is model[0].weight


def test_the_loss_and_its_gradients_are_the_same(way):
    labels = 1 + torch.arange(ROWS) % 29  # no pads
    table, hidden = drawn(30, 12), drawn(ROWS, 12)
    results = []
    for loss in (
        lambda rows, weights: projected_cross_entropy(rows, weights, labels, 0, 0.1),
        lambda rows, weights: label_smoothed_cross_entropy(F.linear(rows, weights)[None], labels[None], 0, 0.1),
    ):
        rows, weights = hidden.clone().requires_grad_(), table.clone().requires_grad_()
        total = loss(rows, weights)
        total.backward()
        results.append((total, rows.grad, weights.grad))
    for ours, right in zip(*results, strict=True):
        torch.testing.assert_close(ours, right, rtol=1e-4, atol=1e-4)
