"""Matches the parameters of one attention (queries, keys, values, output) by shape, by name and by trying.

A projection may be an nn.Linear (out, in), a bare parameter (in, out), one slice of a fused matrix, or a piece for each
head: in a list, or along the first axis of a parameter. Biases are not assigned: all of them are filled with one
number, so their layout does not matter. Sizes in the probes are chosen so that a shape tells the layout, where they can
be. Where shapes leave a choice, names decide; where names are silent, every choice is a relabeling and each is tried.
"""

import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import torch

from autograder.catalogue.exercise import Role

Shape = tuple[int, ...]
MOST_PARAMETERS = 300  # of an attention in pieces; a reply may hold more, and matching takes the square of time


@dataclass(frozen=True)
class Matrix:
    """A matrix of the learner's: a parameter, or one for each head, joined along an axis.

    members: the parameters, in the order of the heads, and the index along the first axis if one holds all heads.
    """

    name: str
    shape: Shape
    members: tuple[tuple[str, int | None], ...]
    axis: int = 0

    def joined(self, tensors: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """The matrix, from the parameters' tensors."""
        pieces = [tensors[name] if place is None else tensors[name][place] for name, place in self.members]
        return pieces[0].reshape(self.shape) if len(pieces) == 1 else torch.cat(pieces, dim=self.axis)

    def part(self, tensors: Mapping[str, torch.Tensor], value: torch.Tensor) -> None:
        """The inverse of `joined`: write the matrix into the parameters' tensors."""
        pieces = value.chunk(len(self.members), dim=self.axis)
        for (name, place), piece in zip(self.members, pieces, strict=True):
            target = tensors[name] if place is None else tensors[name][place]
            target.copy_(piece.reshape(target.shape))


@dataclass(frozen=True)
class Slot:
    """The slot of a role: rows `start:stop` along the output axis of a matrix.

    heads: number of equal pieces of its rows, with `stride` rows from one piece to the next.
    """

    matrix: Matrix
    start: int
    stop: int
    outputs_first: bool
    heads: int = 1
    stride: int = 0

    @property
    def parameter(self) -> str:
        return self.matrix.name

    def place(self, tensors: Mapping[str, torch.Tensor], value: torch.Tensor) -> None:
        """Write a weight (inputs, outputs) into the parameters' tensors."""
        target = self.matrix.joined(tensors).clone()
        (target if self.outputs_first else target.mT)[self._rows()] = value.mT
        self.matrix.part(tensors, target)

    def take(self, tensors: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """The inverse of `place`."""
        source = self.matrix.joined(tensors)
        return (source if self.outputs_first else source.mT)[self._rows()].mT

    def _rows(self) -> torch.Tensor | slice:
        if self.heads == 1:
            return slice(self.start, self.stop)
        rows = torch.arange(self.start, self.stop)
        return (rows + self.stride * torch.arange(self.heads)[:, None]).flatten()


Assignment = dict[str, Slot]


def assign(parameters: Mapping[str, Shape], roles: Sequence[Role], said: Mapping[str, str]) -> list[Assignment]:
    """All assignments of the parameters to the roles, most likely first; empty if there are none.

    parameters: name -> shape, in order of registration; more than MOST_PARAMETERS are not read. said: role -> parameter
    name, if the class declares it.
    """
    if len(parameters) > MOST_PARAMETERS:
        return []
    return [dict(reading) for reading in _assigned(tuple(parameters.items()), tuple(roles), tuple(said.items()))]


@lru_cache(maxsize=256)
def _assigned(parameters: tuple, roles: tuple[Role, ...], said: tuple) -> list[tuple[tuple[str, Slot], ...]]:
    readings = []
    ways = itertools.product((False, True), repeat=3)
    for matrices in {tuple(_matrices(dict(parameters), roles, *way)): None for way in ways}:
        for groups in _groupings(roles) if len(matrices) <= len(roles) else ():
            if len(groups) == len(matrices):
                for chosen in itertools.permutations(matrices):
                    for reading in _read(groups, chosen):
                        if not _contradicts(reading, roles, dict(said)):
                            readings.append(tuple(sorted(reading.items())))
    position = {name: index for index, (name, _) in enumerate(parameters)}
    return sorted(dict.fromkeys(readings), key=lambda reading: _disorder(dict(reading), position, roles))


def load(
    assignment: Assignment, shapes: Mapping[str, Shape], weights: Mapping[str, torch.Tensor]
) -> dict[str, torch.Tensor]:
    """Tensors for the learner's parameters that hold the given role weights.

    Biases are filled with one number, weights["bias"] if given, else 0. Scalars are not changed, nor vectors called
    "weight", which belong to a normalization.
    """
    dtype = next(iter(weights.values())).dtype
    bias = float(weights["bias"]) if "bias" in weights else 0.0
    kept = {name for name, shape in shapes.items() if not shape or (len(shape) == 1 and name.endswith(".weight"))}
    values = {name: torch.full(shape, bias, dtype=dtype) for name, shape in shapes.items() if name not in kept}
    for role, slot in assignment.items():
        slot.place(values, weights[role])
    return values


def manner(reading: Assignment) -> frozenset:
    """The manner of an assignment, independent of sizes: other probes are assigned in the same manner."""
    return frozenset(
        (role, slot.parameter, slot.outputs_first, slot.start > 0, slot.heads > 1, len(slot.matrix.members) > 1)
        for role, slot in reading.items()
    )


def fits(slot: Slot, tensors: Mapping[str, torch.Tensor | None], shapes: Mapping[str, Shape]) -> bool:
    """Whether the tensors include all of a slot's parameters, with the correct shapes."""
    found = [(tensors.get(name), shapes[name]) for name, _ in slot.matrix.members]
    return all(tensor is not None and tuple(tensor.shape) == shape for tensor, shape in found)


def squeeze(shape: Sequence[int], axes: int = 2) -> Shape:
    """The shape as a matrix: a convolution of width one is a projection too, even to a single output.

    axes: how many are left at least; those of size 1 beyond are dropped, the last ones first.
    """
    kept = list(shape)
    for place in reversed(range(len(shape))):
        if len(kept) > axes and shape[place] == 1:
            del kept[place]
    return tuple(kept)


def _matrices(
    parameters: Mapping[str, Shape], roles: Sequence[Role], in_middle: bool, square: bool, biases: bool
) -> list[Matrix]:
    """The matrices among the parameters; those with a piece for each head are joined.

    in_middle: whether the middle one of three axes is tried first as the axis of heads; square: whether a square matrix
    may be a piece, such as one of three heads with queries, keys and values; biases: whether a parameter of several
    axes is a bias if only one of them is longer than 1, or if it has as many elements as some projections have outputs,
    such as one of (heads, d_head).
    """
    heads = max(role.heads for role in roles)
    if biases:
        sizes = {count * role.outputs for role in roles for count in range(1, len(roles))}
        projections = {role.inputs * role.outputs for role in roles}

        def is_bias(shape: Shape) -> bool:
            number = math.prod(shape)
            return number in sizes or (number == max(shape, default=1) and number not in projections)

        parameters = {name: shape for name, shape in parameters.items() if not is_bias(shape)}
    found: dict[str, Matrix] = {}
    for name, shape in parameters.items():
        whole = _in_heads(name, shape, heads, in_middle) if heads > 1 and len(shape) == 3 else None
        if whole is None and len(squeeze(shape)) == 2:
            whole = _joined(name, parameters, heads) if heads > 1 and (square or not _is_square(shape)) else None
            whole = whole or Matrix(name, squeeze(shape), ((name, None),))
        if whole is None and len(shape) == 4 and len(squeeze(shape)) > 2:  # (inputs, roles, heads, d_head)
            whole = Matrix(name, (shape[0], math.prod(shape[1:])), ((name, None),))
        if whole is not None:
            found.setdefault(whole.name, whole)
    return list(found.values())


def _in_heads(name: str, shape: Shape, heads: int, in_middle: bool) -> Matrix | None:
    """A parameter with three axes as a matrix: heads first (heads, a, b), or in the middle (inputs, heads, d_head)."""
    if shape[0] == heads and not (in_middle and shape[1] == heads):
        axis, joined = _cut(shape[1:], heads)
        return Matrix(name, joined, tuple((name, place) for place in range(heads)), axis)
    if shape[1] == heads:
        return Matrix(name, (shape[0], heads * shape[2]), ((name, None),))
    return None


def _joined(name: str, parameters: Mapping[str, Shape], heads: int) -> Matrix | None:
    """Parameters whose names differ only by a number, one for each head, as a matrix."""
    shape = squeeze(parameters[name])
    for number in re.finditer(r"\d+", name):
        before, after = name[: number.start()], name[number.end() :]
        pattern = re.compile(rf"{re.escape(before)}(\d+){re.escape(after)}")
        alike = [(int(found[1]), other) for other in parameters if (found := pattern.fullmatch(other))]
        if len(alike) == heads and all(squeeze(parameters[other]) == shape for _, other in alike):
            axis, joined = _cut(shape, heads)
            members = tuple((other, None) for _, other in sorted(alike))
            return Matrix(f"{before}*{after}", joined, members, axis)
    return None


def _is_square(shape: Shape) -> bool:
    rows, columns = squeeze(shape)
    return rows == columns


def _cut(piece: Shape, heads: int) -> tuple[int, Shape]:
    """The axis along which pieces for this number of heads were split, with up to three roles fused, and the shape of
    the whole."""
    first, second = piece
    if first * heads in (second, 2 * second, 3 * second):
        return 0, (first * heads, second)
    return 1, (first, second * heads)


def _groupings(roles: Sequence[Role]) -> list[tuple[tuple[Role, ...], ...]]:
    """The ways to fuse the roles into matrices: all separate, any pair fused, all fused, in any order inside a
    matrix."""
    found = {}
    for order in itertools.permutations(roles):
        for cuts in itertools.product((True, False), repeat=len(order) - 1):
            groups, group = [], [order[0]]
            for role, cut in zip(order[1:], cuts, strict=True):
                if cut:
                    groups.append(tuple(group))
                    group = []
                group.append(role)
            groups.append(tuple(group))
            found[frozenset(groups)] = tuple(groups)
    return list(found.values())


LAYOUTS = (False, True)  # whether a bare square matrix has its outputs first; a layer's has, unless another one shows


def _read(groups: Sequence[Sequence[Role]], matrices: Sequence[Matrix]) -> Iterator[Assignment]:
    """The assignments of these matrices to these groups of roles; several only if the shapes are ambiguous."""
    layouts = (*LAYOUTS, None) if any(map(_shows_inputs_first, groups, matrices)) else LAYOUTS
    for layout, by_head in itertools.product(layouts, (False, True)):
        reading: Assignment = {}
        for group, matrix in zip(groups, matrices, strict=True):
            reading |= _slots(group, matrix, layout, by_head) or {}
        if len(reading) == sum(map(len, groups)):
            yield reading


def _shows_inputs_first(group: Sequence[Role], matrix: Matrix) -> bool:
    """Whether a layer's weight has its inputs first, like GPT-2's Conv1D; then its square weights have too."""
    inputs, outputs = group[0].inputs, sum(role.outputs for role in group)
    return matrix.name.endswith(".weight") and inputs != outputs and matrix.shape == (inputs, outputs)


def _slots(group: Sequence[Role], matrix: Matrix, layout: bool | None, by_head: bool) -> Assignment | None:
    """The slots of a group's roles in a matrix; None if its shape does not fit.

    layout: whether a bare square matrix has its outputs first; None: not even a layer's has. by_head: whether a matrix
    of several roles holds one head after the other.
    """
    inputs, outputs = group[0].inputs, sum(role.outputs for role in group)
    if matrix.shape not in ((inputs, outputs), (outputs, inputs)) or any(role.inputs != inputs for role in group):
        return None
    outputs_first = matrix.shape == (outputs, inputs)
    if inputs == outputs:
        outputs_first = layout is not None and (layout or matrix.name.endswith(".weight"))
        if len(matrix.members) > 1:  # the axis that was cut tells
            outputs_first = (matrix.axis == 0) != group[0].cut_inputs
    heads = group[0].heads if len(group) > 1 and (by_head or len(matrix.members) > 1) else 1
    slots, start = {}, 0
    for role in group:
        width = role.outputs // heads
        slots[role.name] = Slot(matrix, start, start + width, outputs_first, heads, outputs // heads)
        start += width
    return slots


def _contradicts(reading: Assignment, roles: Sequence[Role], said: Mapping[str, str]) -> bool:
    """Whether a parameter's name contradicts the assignment."""
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


def _disorder(reading: Assignment, position: Mapping[str, int], roles: Sequence[Role]) -> int:
    """The distance of the roles' order from the order of registration."""
    places = [(position[reading[role.name].matrix.members[0][0]], reading[role.name].start) for role in roles]
    return sum(a > b for a, b in itertools.combinations(places, 2))


@lru_cache(maxsize=1024)
def _words(name: str) -> set[str]:
    """The words in a parameter's name: "toQuery.weight", "W_q" and "wq" all contain a word for the query."""
    parts = re.split(r"[^A-Za-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name))
    return {part.lower() for part in parts if part}
