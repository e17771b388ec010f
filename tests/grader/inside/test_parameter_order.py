"""The order in which a module uses its parameters is seen, and nothing else is touched by looking."""

import torch
from torch import nn

from autograder.inside import parameter_order


class Crossed(nn.Module):
    def __init__(self, stops=False):
        super().__init__()
        self.stops = stops
        self.made_first, self.made_second = nn.Linear(3, 3), nn.Parameter(torch.ones(3))

    def forward(self, x):
        if self.made_first.weight.shape[0] != 3 or self.stops:  # to ask about it is not a use of it
            raise ValueError
        x = x * self.made_second
        return self.made_first(self.made_first(x))


def test_parameters_come_in_the_order_of_use_each_as_often_as_it_is_used():
    linear = ["made_first.weight", "made_first.bias"]
    assert parameter_order.in_order(Crossed(), (torch.ones(2, 3),)) == ["made_second", *linear, *linear]


def test_a_forward_that_stops_shows_no_order():
    assert parameter_order.in_order(Crossed(stops=True), (torch.ones(2, 3),)) == []


def test_vectors_that_begin_as_ones_are_named_and_matrices_by_their_rows():
    module = Crossed()
    with torch.no_grad():
        module.made_first.weight.fill_(1.0)
    rows = [parameter_order.item_name("made_first.weight", place) for place in range(len(module.made_first.weight))]
    assert sorted(parameter_order.ones(module)) == sorted(["made_second", *rows])


def test_ones_along_two_axes_are_named_by_their_items():
    module = nn.Module()
    module.norms = nn.Parameter(torch.stack([torch.ones(2, 3), torch.zeros(2, 3)]))
    assert parameter_order.ones(module) == ["norms[0][0]", "norms[0][1]"]


class Stacked(nn.Module):
    def __init__(self):
        super().__init__()
        self.norms = nn.Parameter(torch.ones(2, 2, 3))

    def forward(self, x):
        return x * self.norms[1, 0] + self.norms[:, 1].sum(0)


def test_an_index_of_two_axes_is_a_use_of_the_items_inside_the_items():
    assert parameter_order.in_order(Stacked(), (torch.ones(2, 3),)) == [
        *("norms", "norms[1]", "norms[1][0]"),
        *("norms", "norms[0]", "norms[0][1]", "norms[1]", "norms[1][1]"),
    ]


def test_the_mode_is_as_it_was():
    module = Crossed().train()
    parameter_order.in_order(module, (torch.ones(2, 3),))
    assert module.training


class Table(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.ones(5, 3))

    def forward(self, x):
        x = x + self.table[:2] + self.table[-1] + self.table[3, 1:2]
        return x + self.table[[1, 0]] + self.table[torch.tensor([0, 1])]


def test_every_index_is_one_use_of_the_parameter_and_of_the_items_it_selects_and_indexing_is_as_it_was():
    before = nn.Parameter.__getitem__
    assert parameter_order.in_order(Table(), (torch.ones(2, 3),)) == [
        *("table", "table[0]", "table[1]"),
        *("table", "table[4]"),
        *("table", "table[3]"),
        "table",
        "table",
    ]
    assert nn.Parameter.__getitem__ is before
