"""Where the part of a block lives in a parameter, and which parameters' names belong together."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import torch

from autograder.judging.parameter_matching.roles import Assignment, Matrix, Shape, Slot, squeeze


@dataclass(frozen=True)
class VectorSlot(Slot):
    """The slot of a vector: the elements of a parameter, or of joined parameters, that correspond to the rows of a
    matrix."""

    def place(self, tensors: Mapping[str, torch.Tensor], value: torch.Tensor) -> None:
        target = self.matrix.joined(tensors).clone()
        target[self._rows()] = value
        self.matrix.part(tensors, target)

    def take(self, tensors: Mapping[str, torch.Tensor]) -> torch.Tensor:
        return self.matrix.joined(tensors)[self._rows()]


def members(reading: Assignment) -> set[str]:
    return {name for slot in reading.values() for name, _ in slot.matrix.members}


def shared_path(names: Sequence[str]) -> str:
    """The common module prefix of all names, with a dot at the end; or nothing."""
    path = ""
    for step in names[0].split(".")[:-1]:
        if not all(name.startswith(f"{path}{step}.") for name in names):
            break
        path += f"{step}."
    return path


def without_ones(shape: Shape, matrices: Collection[Shape] = ()) -> Shape:
    """The shape without axes of size 1, which a vector may have; not without those of one of these matrices, such as a
    projection to a single output. matrices: with their axes in order of size."""
    matrix = squeeze(shape)
    return matrix if tuple(sorted(matrix)) in matrices else squeeze(shape, axes=1) or (1,)


def vector_slot(name: str, size: int) -> VectorSlot:
    return VectorSlot(Matrix(name, (size,), ((name, None),)), 0, size, True)


def whole_slot(name: str, shape: Shape, wanted: Shape) -> Slot:
    """A parameter that is all of one matrix (inputs, outputs), in either layout."""
    matrix = Matrix(name, squeeze(shape), ((name, None),))
    return Slot(matrix, 0, wanted[1], matrix.shape != tuple(wanted))


def by_module(matrix: str, vector: str) -> bool:
    """nn.Linear's weight and bias, and in_proj_weight and in_proj_bias."""
    return matrix.endswith("weight") and vector == matrix.removesuffix("weight") + "bias"


def by_key(matrix: str, vector: str) -> bool:
    """Names of one module that differ only by a w and a b: W1 and b1, w_q and bias_q."""
    (path, _, one), (other_path, _, other) = matrix.rpartition("."), vector.rpartition(".")
    return path == other_path and "b" in other.lower() and _key(one) == _key(other)


def _key(name: str) -> str:
    return re.sub(r"weights?|bias|[wb_]", "", name.lower())
