"""Matches the parameters of an encoder layer, a decoder layer or a whole model by the order in which they are used.

A block is read in the order in which its forward uses its parameters (`inside/parameter_order`), since that is the
order of the sub-layers whatever their names: matrices of the model's width make attentions, four squares each; those of
the inner width a feed-forward network; vectors that are not a bias are norms. Inside an attention `roles` reads names
and layouts.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise

import torch

from autograder.catalogue.exercise import Block, Role
from autograder.judging.parameter_matching import roles, single_parts, vector_slots
from autograder.judging.parameter_matching.roles import Assignment, Matrix, Shape, Slot

MOST_READINGS = 24
PARTS = ("query", "key", "value", "output")


@dataclass(frozen=True)
class Trouble:
    """A block that is missing or superfluous. shared: one of those found is used more than once."""

    what: str
    found: int
    wanted: int
    shared: bool = False


@dataclass(frozen=True)
class Parameters:
    """A learner's parameters.

    shapes: in order of registration; used: names in the order of use, with repeats; ones: vectors that are initialized
    with ones.
    """

    shapes: Mapping[str, Shape]
    used: Sequence[str] = ()
    ones: frozenset[str] = frozenset()

    @property
    def order(self) -> list[str]:
        """The used parameters, in the order of use; all in order of registration, if no use was recorded."""
        return [name for name in dict.fromkeys(self.used) if name in self.shapes] or list(self.shapes)

    def shared(self, names: Sequence[str]) -> bool:
        return any(list(self.used).count(name) > 1 for name in names)


def attention_roles(width: int, heads: int) -> tuple[Role, ...]:
    """The four projections of an attention, which may be split into heads."""
    return (
        Role("query", width, width, ("q", "wq", "query", "queries"), heads),
        Role("key", width, width, ("k", "wk", "key", "keys"), heads),
        Role("value", width, width, ("v", "wv", "value", "values"), heads),
        Role("output", width, width, ("o", "wo", "out", "output"), heads, cut_inputs=True),
    )


def assign(parameters: Parameters, blocks: Sequence[Block], said: Mapping[str, str]) -> list[Assignment]:
    """All assignments of the parameters to the blocks, most likely first; empty if there are none (see `troubles`).

    said: role -> parameter name, if the class declares it.
    """
    return [dict(reading) for reading in _read(*_hashed(parameters, blocks, said))[0]]


def troubles(parameters: Parameters, blocks: Sequence[Block], said: Mapping[str, str]) -> tuple[Trouble, ...]:
    """The reasons why the parameters cannot be assigned to the blocks."""
    return _read(*_hashed(parameters, blocks, said))[1]


def _hashed(parameters: Parameters, blocks: Sequence[Block], said: Mapping[str, str]) -> tuple[tuple, ...]:
    seen = tuple(parameters.shapes.items()), tuple(parameters.used), parameters.ones
    return seen, tuple(blocks), tuple(said.items())


@lru_cache(maxsize=256)
def _read(seen: tuple, blocks: tuple[Block, ...], said: tuple) -> tuple[list[Assignment], tuple[Trouble, ...]]:
    """The assignments and the troubles; cached, since a class is constructed many times."""
    shapes, used, ones = seen
    reader = _Reader(Parameters(dict(shapes), used, ones), blocks, dict(said))
    return [] if reader.troubles else list(reader.readings()), tuple(reader.troubles)


def load(reading: Assignment, shapes: Mapping[str, Shape], weights: Mapping[str, torch.Tensor]) -> dict:
    """Tensors for the parameters with a role; others are not changed, such as a table of positions."""
    dtype = next(iter(weights.values())).dtype
    members = dict.fromkeys(name for slot in reading.values() for name, _ in slot.matrix.members)
    values = {name: torch.zeros(shapes[name], dtype=dtype) for name in members}
    for role, slot in reading.items():
        slot.place(values, weights[role])
    return values


class _Reader:
    """Sorts the parameters by kind, and records missing and superfluous blocks."""

    def __init__(self, parameters: Parameters, blocks: Sequence[Block], said: Mapping[str, str]) -> None:
        self._seen, self._blocks = parameters, blocks
        self._shapes: dict[str, Shape] = {}
        wanted = (shape for block in blocks for shape in block.shapes().values())
        self._matrices = {tuple(sorted(shape)) for shape in wanted if len(shape) > 1}
        self.troubles: list[Trouble] = []
        self._fixed = self._by_word(said)
        taken = vector_slots.members(self._fixed)
        self._order = [name for name in parameters.order if name not in taken]
        vectors = self._place_vectors()
        taken |= vector_slots.members(vectors)
        self._order = [name for name in self._order if name not in taken]
        self._biases = self._matched_biases()
        self._simple: Assignment = self._fixed | vectors
        taken |= self._place_single_parts()
        used = taken | self._place_tables(taken)
        self._groups = self._attention_groups(used | self._place_feed_forward(used))
        self._place_norms()
        self._count_biases()

    def readings(self) -> Iterator[Assignment]:
        """The assignments in which all attentions are read in the same way."""
        blocks = [block for block in self._of("attention") if f"{block.name}.query" not in self._fixed]
        each = [self._attention(block, names) for block, names in zip(blocks, self._groups, strict=True)]
        if not all(each):
            return
        for place in range(min(max(map(len, each), default=1), MOST_READINGS)):
            for simple in self._tables_exchanged():
                for ways in each:
                    simple |= ways[min(place, len(ways) - 1)]
                yield simple

    def _tables_exchanged(self) -> Iterator[Assignment]:
        """The assignments of the parts outside of attention; also with two tables of the same size exchanged."""
        yield dict(self._simple)
        tables = [block for block in self._of("table") if f"{block.name}.rows" not in self._fixed]
        if len(tables) == 2 and tables[0].sizes == tables[1].sizes:
            one, other = (f"{block.name}.rows" for block in tables)
            yield self._simple | {one: self._simple[other], other: self._simple[one]}

    def _of(self, kind: str) -> list[Block]:
        return [block for block in self._blocks if block.kind == kind]

    def _by_word(self, said: Mapping[str, str]) -> Assignment:
        """The assignments that the class declares: role -> parameter."""
        wanted = {role: shape for block in self._blocks for role, shape in block.shapes().items()}
        found: Assignment = {}
        for role, name in said.items():
            name = name if name in self._seen.shapes else f"{name}.weight"
            shape = self._seen.shapes.get(name, ())
            if role not in wanted or sorted(roles.squeeze(shape, len(wanted[role]))) != sorted(wanted[role]):
                continue
            if len(wanted[role]) == 1:
                found[role] = vector_slots.vector_slot(name, wanted[role][0])
            else:
                found[role] = vector_slots.whole_slot(name, shape, wanted[role])
        return found

    def _shape(self, name: str) -> Shape:
        """The shape of a parameter; that of the whole vector for a bias that is split into heads."""
        if name not in self._shapes:
            shape = vector_slots.without_ones(self._seen.shapes[name], self._matrices)
            attentions = {block.sizes for block in self._of("attention")}
            cut = len(shape) == 2 and any(shape == (heads, width // heads) for width, heads in attentions)
            self._shapes[name] = (shape[0] * shape[1],) if cut else shape
        return self._shapes[name]

    def _matched_biases(self) -> dict[str, str]:
        """Matrix -> its bias, by names, else by the order of use."""
        vectors = [name for name in self._order if len(self._shape(name)) == 1]
        matrices = [name for name in self._order if len(self._shape(name)) > 1]
        free = [name for name in vectors if name not in self._seen.ones]
        # A shift follows its scale, whatever it is called: b1 after g1 is not a bias of a W1 that comes much later.
        shifts = {
            name
            for scale, name in pairwise(self._order)
            if scale in self._seen.ones and self._shape(scale) == self._shape(name)
        }
        found: dict[str, str] = {}
        for fits, may_be in (
            (vector_slots.by_module, free),
            (vector_slots.by_key, [name for name in free if name not in shifts]),
        ):
            for matrix in matrices:
                for vector in may_be:
                    if matrix not in found and vector not in found.values() and fits(matrix, vector):
                        if self._may_be_added(matrix, vector):
                            found[matrix] = vector
        scales = {name for name in vectors if name in self._seen.ones or name.endswith(".weight")}
        before = None
        for name in self._order:
            if name in scales:
                before = None  # what follows is its shift
            elif name in matrices:
                before = name
            elif before and before not in found and name in free and name not in found.values():
                if self._may_be_added(before, name) and not self._in_norm(name):
                    found[before] = name
                before = None
        return found

    def _may_be_added(self, matrix: str, vector: str) -> bool:
        shape, (size,) = self._shape(matrix), self._shape(vector)
        return size in shape or (len(shape) == 3 and size in (shape[0] * shape[2], shape[1] * shape[2]))

    def _in_norm(self, vector: str) -> bool:
        """Whether the vector's module has only vectors, one of them a scale."""
        module = vector.rpartition(".")[0]
        beside = [name for name in self._seen.shapes if name.rpartition(".")[0] == module]
        all_vectors = all(len(self._shape(name)) == 1 for name in beside)
        return bool(module) and all_vectors and any(name in self._seen.ones for name in beside)

    def _matrices_of(self, sizes: Sequence[int], taken: set[str]) -> list[str]:
        shapes = (tuple(sizes), tuple(reversed(sizes)))
        return [name for name in self._order if name not in taken and self._shape(name) in shapes]

    def _place_tables(self, taken: set[str]) -> set[str]:
        """Assign the tables, and then the output, in the order of use among those of their shape."""
        used: set[str] = set()
        blocks = {f"{block.name}.rows": block for block in self._of("table")}
        blocks |= {f"{block.name}.scores": block for block in self._of("output")}
        for role, block in blocks.items():
            found = [name for name in self._matrices_of(block.sizes, taken) if name not in used]
            if role not in self._fixed and found:
                used.add(found[0])
                self._simple[role] = vector_slots.whole_slot(found[0], self._seen.shapes[found[0]], block.sizes)
        missing = [role for role in blocks if role not in self._simple]
        shapes = {tuple(sorted(block.sizes)) for block in blocks.values()}
        left = {name for shape in shapes for name in self._matrices_of(shape, taken) if name not in used}
        if missing or left:
            self.troubles += self._wrong_tables(blocks, missing, left)
        return used | left

    def _place_vectors(self) -> Assignment:
        """Assign vectors that are not a bias and not in a norm, such as a class token."""
        blocks = [each for each in self._of("vector") if f"{each.name}.numbers" not in self._fixed]
        matrices = [name for name in self._order if len(self._shape(name)) > 1]

        def is_of_another(name: str) -> bool:
            a_scale = name in self._seen.ones or name.endswith(".weight") or self._in_norm(name)
            return a_scale or any(
                fits(matrix, name) for fits in (vector_slots.by_module, vector_slots.by_key) for matrix in matrices
            )

        found = single_parts.vectors(blocks, self._seen.shapes, self._order, is_of_another, self._matrices)
        self.troubles += [Trouble(each.name, 0, 1) for each in blocks if f"{each.name}.numbers" not in found]
        return {role: vector_slots.vector_slot(name, self._numbers(name)) for role, name in found.items()}

    def _place_single_parts(self) -> set[str]:
        """Assign rows, such as positions, and projections with their biases."""
        others = [each for each in self._blocks if each.kind != "rows"]
        found, near = single_parts.rows(self._free("rows", "rows"), self._seen.shapes, self._order, others)
        self._simple |= found
        for block in self._free("rows", "rows"):
            what, number, wanted = (f"rows of {block.name}", near, block.sizes[0]) if near else (block.name, 0, 1)
            self.troubles.append(Trouble(what, number, wanted))
        self._order = [name for name in self._order if name not in vector_slots.members(found)]
        found, spare = single_parts.projections(self._free("projection", "weight"), self._seen.shapes, self._order)
        self._simple |= found
        missing = self._free("projection", "weight")
        if spare:
            self.troubles.append(Trouble("projections", len(found) + len(spare), len(found) + len(missing)))
        self.troubles += [Trouble(block.name, 0, 1) for block in missing]
        for block in self._of("projection"):
            slot, role = self._simple.get(f"{block.name}.weight"), f"{block.name}.bias"
            bias = self._bias_of(slot.parameter) if slot else None
            if bias is not None and self._numbers(bias) == block.sizes[1]:
                self._simple[role] = vector_slots.vector_slot(bias, block.sizes[1])
            elif slot is not None and role not in self._fixed:
                self.troubles.append(Trouble(f"bias of the {block.name}", 0, 1))
        return vector_slots.members(self._simple)

    def _bias_of(self, matrix: str) -> str | None:
        """The bias that was matched; for a matrix that the class declares, the one with a similar name."""
        named = (
            name for name in self._order if vector_slots.by_module(matrix, name) or vector_slots.by_key(matrix, name)
        )
        return self._biases.get(matrix) or next(named, None)

    def _free(self, kind: str, part: str) -> list[Block]:
        """The blocks of a kind without an assigned parameter."""
        return [each for each in self._of(kind) if f"{each.name}.{part}" not in self._simple]

    def _wrong_tables(self, blocks: Mapping[str, Block], missing: Sequence[str], left: set[str]) -> Iterator[Trouble]:
        """The troubles with tables: their number or, if their sizes differ, the wrong sizes."""
        sizes = list(dict.fromkeys(block.sizes for block in blocks.values()))
        if len(sizes) == 1 or self._of("output"):
            yield Trouble("tables", len(blocks) - len(missing) + len(left), len(blocks))
            return
        for rows, width in sizes:
            wanted = [role for role, block in blocks.items() if block.sizes == (rows, width)]
            more = left.intersection(self._matrices_of((rows, width), set()))
            found = len(wanted) - len(set(wanted) & set(missing)) + len(more)
            if found != len(wanted):
                yield Trouble(f"tables of {rows} by {width}", found, len(wanted))

    def _place_feed_forward(self, taken: set[str]) -> set[str]:
        used: set[str] = set()
        blocks = self._of("feed-forward")
        for block in blocks:
            width, inner = block.sizes
            names = {"first": (width, inner), "second": (inner, width)}
            if f"{block.name}.first" in self._fixed:
                continue
            found = [name for name in self._matrices_of((width, inner), taken) if name not in used][:2]
            if len(found) < 2:
                matrices = len(self._matrices_of((width, inner), set()))
                self.troubles.append(
                    Trouble("feed-forward matrices", matrices, 2 * len(blocks), self._seen.shared(found))
                )
                break
            for name, (role, wanted) in zip(found, names.items(), strict=True):
                used.add(name)
                self._simple[f"{block.name}.{role}"] = vector_slots.whole_slot(name, self._seen.shapes[name], wanted)
        return used

    def _attention_groups(self, taken: set[str]) -> list[list[str]]:
        """The matrices of each attention: four square ones, in the order of use."""
        blocks = [block for block in self._of("attention") if f"{block.name}.query" not in self._fixed]
        if not blocks:
            return []
        width, heads = blocks[0].sizes
        sizes = {width, 2 * width, 3 * width, 4 * width, heads, *(n * width // heads for n in (1, 2, 3))}
        groups: list[list[str]] = [[]]
        for name in self._order:
            shape = self._shape(name)
            if len(shape) < 2 or name in taken or not set(shape) <= sizes:
                continue
            if sum(self._numbers(each) for each in groups[-1]) >= 4 * width**2:
                groups.append([])
            groups[-1].append(name)
        whole = [group for group in groups if sum(self._numbers(each) for each in group) == 4 * width**2]
        left = sum(self._numbers(each) for group in groups for each in group) - 4 * width**2 * len(whole)
        if len(whole) != len(blocks) or left:
            every = [name for group in groups for name in group]
            found = sum(map(self._numbers, every)) // width**2
            self.troubles.append(Trouble("attention projections", found, 4 * len(blocks), self._seen.shared(every)))
        return whole

    def _numbers(self, name: str) -> int:
        return torch.Size(self._seen.shapes[name]).numel()

    def _attention(self, block: Block, names: list[str]) -> list[Assignment]:
        """The assignments of an attention's matrices; without telling names, the one used last is the output
        projection."""
        prefix = vector_slots.shared_path(names)
        shapes = {name.removeprefix(prefix): self._seen.shapes[name] for name in names}
        ways = roles.assign(shapes, attention_roles(*block.sizes), {})
        last = names[-1].removeprefix(prefix)
        ends = [way for way in ways if last in (name for name, _ in way["output"].matrix.members)]
        found = []
        for way in ends or ways:
            placed: Assignment = {}
            for part, slot in way.items():
                members = tuple((f"{prefix}{name}", place) for name, place in slot.matrix.members)
                slot = replace(slot, matrix=replace(slot.matrix, name=f"{prefix}{slot.matrix.name}", members=members))
                placed[f"{block.name}.{part}"] = slot
                bias = self._bias_slot(slot, block.sizes[0])
                if bias is not None:
                    placed[f"{block.name}.{part} bias"] = bias
            if len(placed) == 2 * len(PARTS):
                found.append(placed)
        return found

    def _bias_slot(self, slot: Slot, width: int) -> vector_slots.VectorSlot | None:
        """The slot of a projection's bias, split like its matrix."""
        names = list(dict.fromkeys(self._biases.get(name) for name, _ in slot.matrix.members))
        if None in names:
            return None
        size = sum(self._numbers(name) for name in names)
        matrix = Matrix(names[0], (size,), tuple((name, None) for name in names))
        if size == width:
            return vector_slots.VectorSlot(matrix, 0, width, True)
        return vector_slots.VectorSlot(matrix, slot.start, slot.stop, True, slot.heads, slot.stride)

    def _place_norms(self) -> None:
        """Assign vectors that are not biases: scale and shift of each norm, in the order of use."""
        blocks = [block for block in self._of("norm") if f"{block.name}.scale" not in self._fixed]
        width = self._of("norm")[0].sizes[0]
        biases = set(self._biases.values())
        vectors = [n for n in self._order if n not in biases and self._shape(n) == (width,)]
        scales, shifts = self._scales_and_shifts(vectors)
        if len(scales) != len(blocks) or len(shifts) != len(blocks):
            found = min(len(scales), len(shifts)) if scales and shifts else max(len(scales), len(shifts))
            what = "norms" if len(scales) == len(shifts) else "norms with a scale and a shift"
            self.troubles.append(Trouble(what, found, len(blocks), self._seen.shared(vectors)))
            return
        for block, scale, shift in zip(blocks, scales, shifts, strict=True):
            self._simple[f"{block.name}.scale"] = vector_slots.vector_slot(scale, width)
            self._simple[f"{block.name}.shift"] = vector_slots.vector_slot(shift, width)

    def _scales_and_shifts(self, vectors: Sequence[str]) -> tuple[list[str], list[str]]:
        scales = [name for name in vectors if name in self._seen.ones or name.endswith(".weight")]
        shifts = [name for name in vectors if name not in scales]
        if not scales:
            scales, shifts = list(vectors[::2]), list(vectors[1::2])
        by_module = {name.rpartition(".")[0]: name for name in shifts}
        paired = [by_module.get(name.rpartition(".")[0]) for name in scales]
        if len(by_module) == len(shifts) and set(paired) == set(shifts):
            return scales, [name for name in paired if name]
        return scales, shifts

    def _count_biases(self) -> None:
        """Check that each matrix of attentions and feed-forward networks has a bias, and the output none."""
        feed_forward = {role: slot for role, slot in self._simple.items() if role.endswith((".first", ".second"))}
        for role, slot in feed_forward.items():
            bias = self._biases.get(slot.parameter)
            size = slot.matrix.shape[0 if slot.outputs_first else 1]
            if bias is not None and self._numbers(bias) == size:
                self._simple[f"{role} bias"] = vector_slots.vector_slot(bias, size)
            elif f"{role} bias" not in self._fixed:
                self.troubles.append(Trouble("feed-forward biases", 0, len(feed_forward)))
                break
        if any(name not in self._biases for group in self._groups for name in group):
            self.troubles.append(Trouble("attention biases", 0, len(PARTS) * len(self._groups)))
        ends = [self._simple.get(f"{block.name}.scores") for block in self._of("output")]
        ends += [self._simple.get(f"{block.name}.rows") for block in self._of("table")]
        if any(slot is not None and slot.parameter in self._biases for slot in ends) or self._bias_of_tied():
            self.troubles.append(Trouble("output biases", 1, 0))

    def _bias_of_tied(self) -> bool:
        """Whether a vector is as long as a vocabulary, and a table's or nobody's: a table that makes the scores as well
        has its bias in another module."""
        placed = {name for slot in self._simple.values() for name, _ in slot.matrix.members}
        tables = [block.sizes for block in self._of("table")]
        rows = {size for size, _ in tables} - {block.sizes[0] for block in self._of("norm")}
        owners = {vector: matrix for matrix, vector in self._biases.items()}
        vectors = [name for name in self._order if len(self._shape(name)) == 1 and self._numbers(name) in rows]
        shapes = [self._shape(owners[name]) if name in owners else None for name in vectors if name not in placed]
        return any(shape is None or tuple(sorted(shape)) in map(tuple, map(sorted, tables)) for shape in shapes)
