"""Parts that a model has once, such as those around a ViT's layers: which parameter is which.

A projection may be an nn.Linear, a bare matrix in either layout, or a convolution whose stride is its size. Rows (of
positions) and a vector (a class token) may be bare parameters with axes of size 1 around them, or an embedding.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from math import prod

import torch

from autograder.catalogue.exercise import Block
from autograder.judging.parameter_matching.roles import Matrix, Shape, Slot

SAYS_TOKEN = ("cls", "class", "token")
SAYS_PLACE = ("pos", "place")


@dataclass(frozen=True)
class JoinedRows(Slot):
    """Rows of which the first is a parameter of its own."""

    def place(self, tensors: Mapping[str, torch.Tensor], value: torch.Tensor) -> None:
        (first, _), (rest, _) = self.matrix.members
        for name, rows in ((first, value[:1]), (rest, value[1:])):
            tensors[name].copy_(rows.reshape(tensors[name].shape))

    def take(self, tensors: Mapping[str, torch.Tensor]) -> torch.Tensor:
        width = self.matrix.shape[-1]
        return torch.cat([tensors[name].reshape(-1, width) for name, _ in self.matrix.members])


def vectors(
    blocks: Sequence[Block],
    shapes: Mapping[str, Shape],
    order: Sequence[str],
    is_of_another: Callable[[str], bool],
    matrices: Collection[Shape],
) -> dict[str, str]:
    """Role -> parameter for the blocks that are one vector.

    order: names in the order of use; is_of_another: whether a vector is a bias or belongs to a norm, by its name.
    matrices: the shapes of matrices that are wanted, too, with their axes in order of size.
    """
    found: dict[str, str] = {}
    for block in (block for block in blocks if block.kind == "vector"):
        (size,) = block.sizes
        lone = [n for n in order if n not in found.values() and prod(shapes[n]) == size == max(shapes[n], default=0)]
        fits = [name for name in lone if len(shapes[name]) > 1 or not is_of_another(name)]
        if fits:
            found[f"{block.name}.numbers"] = min(
                fits, key=lambda name: _unlike_a_token(name, shapes[name], tuple(sorted(shapes[name])) in matrices)
            )
    return found


def _unlike_a_token(name: str, shape: Shape, may_be_matrix: bool) -> tuple[bool, bool, bool, bool]:
    """Sort key, least for the most likely one: a position has other names, as has a projection to a single output; a
    bias or a scale has one axis and other names."""
    place, token = (any(word in name.lower() for word in words) for words in (SAYS_PLACE, SAYS_TOKEN))
    return place, may_be_matrix and not token, len(shape) == 1, not token


def rows(
    blocks: Sequence[Block], shapes: Mapping[str, Shape], order: Sequence[str], others: Sequence[Block]
) -> tuple[dict[str, Slot], int]:
    """Role -> slot for the blocks that are rows; and the number of rows of a parameter that could be meant but does not
    fit.

    others: the other blocks, whose matrices are not rows.
    """
    found: dict[str, Slot] = {}
    beside = {size for block in others for size in block.sizes}
    beside |= {times * block.sizes[0] for block in others if block.kind == "attention" for times in (2, 3, 4)}
    near = 0
    for block in (block for block in blocks if block.kind == "rows"):
        taken = {slot.parameter for slot in found.values()}
        plain = {name: _plain(shapes[name], block.sizes[1]) for name in order if name not in taken}
        fits = [name for name, shape in plain.items() if shape == block.sizes]
        if fits:
            matrix = Matrix(fits[0], block.sizes, ((fits[0], None),))
            found[f"{block.name}.rows"] = Slot(matrix, 0, block.sizes[1], outputs_first=False)
        elif joined := _with_a_first(plain, shapes, block):
            found[f"{block.name}.rows"] = joined
        else:
            like = [s[0] for s in plain.values() if len(s) == 2 and s[1] == block.sizes[1] and s[0] not in beside]
            near = like[0] if like else 0
    return found, near


def _with_a_first(plain: Mapping[str, Shape], shapes: Mapping[str, Shape], block: Block) -> JoinedRows | None:
    """Rows in two parameters, of which one holds only the first row, as its axes of size 1 or its name show."""
    count, width = block.sizes
    alone = [name for name in plain if prod(shapes[name]) == width == max(shapes[name], default=0)]
    alone = [n for n in alone if len(shapes[n]) > 1 or any(word in n.lower() for word in SAYS_PLACE)]
    rest = [name for name, shape in plain.items() if shape == (count - 1, width) and name not in alone[:1]]
    if not rest or not alone:
        return None
    matrix = Matrix(rest[0], block.sizes, ((alone[0], None), (rest[0], None)))
    return JoinedRows(matrix, 0, width, outputs_first=False)


def _plain(shape: Shape, width: int) -> Shape:
    """A shape as rows of this width, without leading axes of size 1."""
    return (prod(shape[:-1]), width) if len(shape) > 1 and shape[-1] == width else shape


def projections(
    blocks: Sequence[Block], shapes: Mapping[str, Shape], order: Sequence[str]
) -> tuple[dict[str, Slot], set[str]]:
    """Role -> slot for the weights of the blocks that are projections; and the superfluous parameters."""
    found: dict[str, Slot] = {}
    fitting: set[str] = set()
    for block in (block for block in blocks if block.kind == "projection"):
        slots = {name: slot for name in order if (slot := _slot(name, shapes[name], *block.sizes)) is not None}
        fitting |= set(slots)
        free = [name for name in slots if name not in {slot.parameter for slot in found.values()}]
        if free:
            found[f"{block.name}.weight"] = slots[free[0]]
    return found, fitting - {slot.parameter for slot in found.values()}


def _slot(name: str, shape: Shape, inputs: int, outputs: int) -> Slot | None:
    """A parameter as a projection: outputs first, as layers and convolutions have them, or last; None if it is none."""
    if len(shape) < 2:
        return None
    if shape[0] == outputs and prod(shape[1:]) == inputs:
        return Slot(Matrix(name, (outputs, inputs), ((name, None),)), 0, outputs, outputs_first=True)
    if shape[-1] == outputs and prod(shape[:-1]) == inputs:
        return Slot(Matrix(name, (inputs, outputs), ((name, None),)), 0, outputs, outputs_first=False)
    return None
