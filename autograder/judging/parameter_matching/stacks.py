"""Parameters that hold several matrices or vectors, one after another along their first axis, or their first two.

A W of shape (3, D, D) may hold the projections of queries, keys and values. Its items are matched like parameters of
their own, called W[0], W[1] and W[2], and put together again before they are loaded. An item may be a stack as well:
a parameter of shape (2, 2, D) may hold scale and shift of two norms, as N[0][0], N[0][1], N[1][0] and N[1][1].
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import torch

from autograder.catalogue.exercise import Block, Role
from autograder.inside.parameter_order import MOST_ITEMS, item_name
from autograder.judging.parameter_matching import blocks, roles
from autograder.judging.parameter_matching.blocks import Parameters
from autograder.judging.parameter_matching.roles import Assignment, Shape

Stacks = Mapping[str, int]  # parameter -> the number of its items; then the items that are stacks, too
MORE = 4  # items for each that is wanted, at most: a reply may hold any shapes, and matching takes the square of time


@dataclass(frozen=True)
class ParameterReading:
    """Which role each of a learner's parameters plays.

    shapes: of the parameters that are assigned, the items of stacks among them; stacks: the parameters they belong to.
    """

    assignment: Assignment
    shapes: Mapping[str, Shape]
    stacks: Stacks

    def together(self, tensors: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """The tensors of the learner's parameters from those of the assigned ones; an item without a role is 0."""
        found = dict(tensors)
        for name, count in reversed([*self.stacks.items()]):
            items = [found.pop(item_name(name, place), None) for place in range(count)]
            given = [item for item in items if item is not None]
            if given:
                found[name] = torch.stack([torch.zeros_like(given[0]) if item is None else item for item in items])
        return found

    def apart(self, tensors: Mapping[str, Any]) -> dict[str, Any]:
        """The inverse of `together`; what is not the tensor of a stack stays as it is."""
        found = dict(tensors)
        for name, count in self.stacks.items():
            stack = found.pop(name, None)
            if isinstance(stack, torch.Tensor) and stack.dim() and len(stack) == count:
                found |= {item_name(name, place): item for place, item in enumerate(stack)}
        return found


def readings(
    parameters: Parameters, wanted: Sequence[Role] | Sequence[Block], said: Mapping[str, str]
) -> list[ParameterReading]:
    """All ways in which the parameters may be meant, most likely first; empty if there are none.

    A stack is considered even where the parameters as they are can be read: three matrices D by D may also be the
    pieces of three heads. said: role -> parameter name, if the class declares it.
    """
    found: list[ParameterReading] = []
    for ways in ([{}], *(_ways(parameters.shapes, wanted, nested) for nested in (False, True))):
        for stacks in ways:
            seen = _apart(parameters, stacks)
            if isinstance(wanted[0], Block):
                assigned = blocks.assign(seen, wanted, said)
            else:
                assigned = roles.assign(seen.shapes, wanted, said)
            found += [ParameterReading(each, seen.shapes, stacks) for each in assigned]
            if assigned:
                break
    return found


def _ways(shapes: Mapping[str, Shape], wanted: Sequence[Role] | Sequence[Block], nested: bool) -> Iterator[Stacks]:
    """The parameters that may be stacks: those of matrices; with their biases; with other vectors, too.

    nested: whether those that may have stacks as items have them; there are no ways then if none of them may.
    """
    sought = _shapes(wanted)
    matrices = {tuple(sorted(shape)) for shape in sought if len(shape) == 2}
    numbers = {math.prod(shape) for shape in matrices}

    def holds(shape: Shape, number: int) -> bool:
        return shape[number:] in sought or tuple(sorted(shape[number:])) in matrices

    axes = {name: 1 for name, shape in shapes.items() if len(shape) > 1 and 2 <= shape[0] <= MOST_ITEMS}
    few = {name: s for name, s in shapes.items() if len(s) > 2 and min(s[:2]) > 0 and 1 < max(s[:2]) <= MOST_ITEMS}
    inner = {name for name, shape in few.items() if nested and holds(shape, 2) and not holds(shape, 1)}
    axes |= dict.fromkeys(inner, 2)
    counts = {name: math.prod(shapes[name][:number]) for name, number in axes.items()}
    items = {name: shapes[name][number:] for name, number in axes.items()}
    deep = {name for name, item in items.items() if len(item) > 2 and math.prod(item) in numbers}
    deep |= {name for name, item in items.items() if tuple(sorted(item)) in matrices}
    # An item of (heads, d_head) is a bias as well.
    whole = {
        name: (math.prod(item),) if len(item) == 2 and tuple(sorted(item)) not in matrices else item
        for name, item in items.items()
    }
    beside = {name for name in whole if whole[name] in sought and counts[name] in {counts[n] for n in deep}}
    biases = {name for name in beside if "b" in name.rpartition(".")[2].lower()}
    vectors = {name for name, item in items.items() if item in sought and tuple(sorted(shapes[name])) not in matrices}
    most = MORE * sum(len(each.shapes()) if isinstance(each, Block) else 1 for each in wanted)
    tried: list[set[str]] = [set()]
    for names in (deep, deep | biases, deep | biases | vectors, deep | beside | vectors):
        is_new = names not in tried and (not nested or names & inner)
        if is_new and sum(counts[name] for name in names) <= most:
            tried.append(names)
            outer = {name: shapes[name][0] for name in counts if name in names}
            within = {item_name(n, at): shapes[n][1] for n in outer if n in inner for at in range(outer[n])}
            yield outer | within


def _shapes(wanted: Sequence[Role] | Sequence[Block]) -> set[Shape]:
    """The shapes of the wanted matrices and vectors, also of several projections in one."""
    found: set[Shape] = set()
    for part in wanted:
        if isinstance(part, Block):
            found |= set(part.shapes().values())
        if isinstance(part, Role) or part.kind == "attention":
            inputs, outputs = (part.inputs, part.outputs) if isinstance(part, Role) else (part.sizes[0],) * 2
            found |= {(inputs, times * outputs) for times in (1, 2, 3, 4)}
            found |= {(times * outputs,) for times in (1, 2, 3, 4)}
    return found


def _apart(parameters: Parameters, stacks: Stacks) -> Parameters:
    """The parameters with each stack replaced by its items. A use of a whole stack is one of each item, in order."""
    if not stacks:
        return parameters

    def items(name: str, shape: Shape = ()) -> dict[str, Shape]:
        if name not in stacks:
            return {name: shape}
        inside = (items(item_name(name, place), shape[1:]) for place in range(stacks[name]))
        return {item: left for each in inside for item, left in each.items()}

    shapes = {item: left for name, shape in parameters.shapes.items() for item, left in items(name, shape).items()}
    used: list[str] = []
    for name, after in pairwise([*parameters.used, ""]):
        if name not in stacks or not after.startswith(f"{name}["):  # else the items that were taken follow
            used += items(name)
    return replace(parameters, shapes=shapes, used=tuple(used))
