"""Which of a learner's parameters plays which role, whatever they are called and however they are laid out.

A projection may be an nn.Linear (out, in), a bare parameter (in, out), or one slice of a fused matrix. Biases play no
role: they are set to zero. Sizes in the probes are chosen so that a shape tells the layout. Where shapes leave a
choice, names decide; where names are silent, every choice is a relabeling and each is tried.
"""

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch

from autograder.catalogue.exercise import Role

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Slot:
    """Where a role lives: rows `start:stop` along the output axis of a parameter."""

    parameter: str
    start: int
    stop: int
    outputs_first: bool

    def place(self, target: torch.Tensor, value: torch.Tensor) -> None:
        """Write a weight (inputs, outputs) into the parameter's tensor."""
        if self.outputs_first:
            target[self.start : self.stop] = value.mT
        else:
            target[:, self.start : self.stop] = value

    def take(self, source: torch.Tensor) -> torch.Tensor:
        """The inverse of `place`."""
        return source[self.start : self.stop].mT if self.outputs_first else source[:, self.start : self.stop]


Assignment = dict[str, Slot]


def assign(parameters: Mapping[str, Shape], roles: Sequence[Role], said: Mapping[str, str]) -> list[Assignment]:
    """Every way to read the parameters as the roles, likeliest first; empty when there is none.

    parameters: name -> shape, in order of registration. said: role -> parameter name, where the class says so.
    """
    matrices = {name: squeeze(shape) for name, shape in parameters.items() if len(squeeze(shape)) == 2}
    readings = []
    for groups in _groupings(roles):
        if len(groups) == len(matrices):
            for names in itertools.permutations(matrices):
                reading = _read(groups, {name: matrices[name] for name in names})
                if reading is not None and not _contradicts(reading, roles, said):
                    readings.append(reading)
    unique = list(dict.fromkeys(tuple(sorted(reading.items(), key=lambda item: item[0])) for reading in readings))
    return [
        dict(reading) for reading in sorted(unique, key=lambda reading: _disorder(dict(reading), parameters, roles))
    ]


def load(
    assignment: Assignment, shapes: Mapping[str, Shape], weights: Mapping[str, torch.Tensor]
) -> dict[str, torch.Tensor]:
    """Tensors for the learner's parameters that hold the given role weights; biases become zero, scalars stay."""
    dtype = next(iter(weights.values())).dtype
    values = {name: torch.zeros(squeeze(shape), dtype=dtype) for name, shape in shapes.items() if shape}
    for role, slot in assignment.items():
        slot.place(values[slot.parameter], weights[role])
    return {name: value.reshape(shapes[name]) for name, value in values.items()}


def squeeze(shape: Sequence[int]) -> Shape:
    """The shape as a matrix: a convolution of width one is a projection too."""
    return tuple(size for size in shape if size != 1 or len(shape) <= 2)


def _groupings(roles: Sequence[Role]) -> list[tuple[tuple[Role, ...], ...]]:
    """Ways to fuse the roles into matrices: all apart, any pair fused, all fused, in any order inside a matrix."""
    found = []
    for order in itertools.permutations(roles):
        for cuts in itertools.product((True, False), repeat=len(order) - 1):
            groups, group = [], [order[0]]
            for role, cut in zip(order[1:], cuts, strict=True):
                if cut:
                    groups.append(tuple(group))
                    group = []
                group.append(role)
            found.append((*groups, tuple(group)))
    return found


def _read(groups: Sequence[Sequence[Role]], matrices: Mapping[str, Shape]) -> Assignment | None:
    reading: Assignment = {}
    for group, (name, shape) in zip(groups, matrices.items(), strict=True):
        inputs, outputs = group[0].inputs, sum(role.outputs for role in group)
        if shape not in ((inputs, outputs), (outputs, inputs)):
            return None
        start = 0
        for role in group:
            reading[role.name] = Slot(name, start, start + role.outputs, outputs_first=shape == (outputs, inputs))
            start += role.outputs
    return reading


def _contradicts(reading: Assignment, roles: Sequence[Role], said: Mapping[str, str]) -> bool:
    """Whether a name of the learner's says otherwise."""
    for role in roles:
        name = reading[role.name].parameter
        if role.name in said:
            if said[role.name] not in (name, name.removesuffix(".weight")):
                return True
            continue
        claims = {other.name for other in roles if _words(name) & set(other.words)}
        if (
            len(claims) == 1
            and role.name not in claims
            and sum(slot.parameter == name for slot in reading.values()) == 1
        ):
            return True
    return False


def _disorder(reading: Assignment, parameters: Mapping[str, Shape], roles: Sequence[Role]) -> int:
    """How far the roles stand from the order of registration."""
    position = {name: index for index, name in enumerate(parameters)}
    places = [(position[reading[role.name].parameter], reading[role.name].start) for role in roles]
    return sum(a > b for a, b in itertools.combinations(places, 2))


def _words(name: str) -> set[str]:
    """The words in a parameter's name: "toQuery.weight", "W_q" and "wq" all hold a word for the query."""
    parts = re.split(r"[^A-Za-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name))
    return {part.lower() for part in parts if part}
