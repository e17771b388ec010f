"""What the exercises of chapter 09 share."""

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import torch
from torch import Tensor

from autograder.catalogue.exercise import Block, Case, Evidence
from autograder.catalogue.families import Family
from autograder.catalogue.known_answers import Answer, answer
from autograder.catalogue.numbers import number
from autograder.catalogue.probes import normal
from autograder.catalogue.quotes import row
from autograder.catalogue.sections import of_chapter

sections = of_chapter("09")

WORKED = torch.tensor([2.0, 4.0, 4.0, 6.0])  # mean 4, variance 2
LIBRARY = (
    "TransformerEncoderLayer", "TransformerDecoderLayer", "TransformerEncoder", "TransformerDecoder", "Transformer",
)  # fmt: skip


def drawn(g: torch.Generator, blocks: Sequence[Block], dtype: torch.dtype = torch.float32) -> dict[str, Tensor]:
    """Weights for each role under which activations stay near 1; no scale is 1 and no shift 0."""
    weights = {}
    for block in blocks:
        for role, shape in block.shapes().items():
            if len(shape) == 2:
                weights[role] = normal(g, *shape) / min(shape) ** 0.5
            else:
                weights[role] = 0.3 * normal(g, *shape) + (1.0 if role.endswith(".scale") else 0.0)
    return {role: weight.to(dtype) for role, weight in weights.items()}


def silent(blocks: Sequence[Block]) -> dict[str, Tensor]:
    """Weights under which sub-layers return zeros and norms have scale 1 and shift 0."""
    shapes = {role: shape for block in blocks for role, shape in block.shapes().items()}
    return {role: torch.ones(shape) if role.endswith(".scale") else torch.zeros(shape) for role,
            shape in shapes.items()}


RATE = 0.4  # of dropout, in the probe that finds out from the values what was dropped
MOST_VALUES = 64


def constant_sub_layers(construct: tuple, blocks: Sequence[Block], biases: dict[str, float]) -> Case:
    """Sub-layers that return a constant, for words of equal numbers, so that each result shows what was dropped.

    construct: (d, h, d_ff, RATE, True); biases: role -> the constant, each more than twice the sum of those before.
    """
    weights = silent(blocks)
    for role, value in biases.items():
        weights[role] = torch.full_like(weights[role], value)
    return Case((torch.full((2, 16, construct[0]), 2.0),), construct=construct, weights=weights)


def dropped_by_element(*constants: float) -> Callable[[Case, Any], Any]:
    """The normal form of a result of `constant_sub_layers`: the different values in it, again and again, in ascending
    order. If each sub-layer's output is dropped element by element, the values are those of one dropout, even if there
    is more dropout inside. A result in which whole words or features are dropped stays as it is."""
    scales = (0.0, 1 / (1 - RATE), 1 / (1 - RATE) ** 2)

    def normal_form(case: Case, result: Any) -> Any:
        words = case.arguments[0]
        if case.construct[3] != RATE or not isinstance(result, Tensor) or result.shape != words.shape:
            return result
        added = result - words
        left = {}
        for factors in product(scales, repeat=len(constants)):
            value = sum(factor * constant for factor, constant in zip(factors, constants, strict=True))
            here = (added - value).abs() < 1e-3
            which = tuple(factor > 0 for factor in factors)
            left[which] = left.get(which, torch.zeros_like(here)) | here
        explained = torch.stack(list(left.values()))
        by_element = bool((result != result[..., :1]).any() and (result != result[:, :1]).any())
        values = result.round(decimals=3).unique(sorted=True)
        if bool(explained.any(dim=0).all() and explained.flatten(1).any(dim=1).all()):
            kept = product((0.0, 1 / (1 - RATE)), repeat=len(constants))
            sums = sorted(sum(f * constant for f, constant in zip(each, constants, strict=True)) for each in kept)
            values = words[0, 0, 0] + torch.tensor(sums, dtype=words.dtype)
        if not 0 < len(values) <= MOST_VALUES or (len(values) > 1 and not by_element):
            return result
        return values.repeat(-(-result.numel() // len(values)))[: result.numel()].reshape(result.shape)

    return normal_form


def wrong_word(evidence: Evidence, most: int = 4) -> str:
    """The row with the largest error, which is the one that the report shows, and the correct one."""
    wanted, got = evidence.expected.double(), evidence.got.double()
    off = ~torch.isclose(got, wanted, rtol=1e-4, atol=1e-5, equal_nan=True)
    gap = torch.where(off, (got - wanted).abs().nan_to_num(nan=torch.inf), 0.0)
    place = tuple((gap == gap.max()).nonzero()[0, :-1].tolist())
    columns = slice(0, most) if bool(off[place][:most].any()) else slice(-most, None)
    says = "is" if columns.start == 0 else "ends in"
    name = place[0] if len(place) == 1 else place
    return f"Your row {name} {says} {row(got[place][columns])}; it should be {row(wanted[place][columns])}."


def first_number(evidence: Evidence) -> str:
    """The first wrong number, and the correct one."""
    got, wanted = evidence.got.flatten(), evidence.expected.flatten()
    place = int((got - wanted).abs().nan_to_num(nan=1e9).argmax())
    return f"You returned {number(got[place])} where {number(wanted[place])} is expected."


# fmt: off
FIXED_RATE = Family("a fixed dropout rate", """In training your dropout does not use {rate} everywhere: some
    values stayed, although {rate} says that all are dropped. Pass {rate} on to every dropout layer.""")
CAPPED_AT_6 = Family("capped at 6", """Hidden values above 6 were set to 6. ReLU has no upper end: it sets values below
    0 to 0 and keeps all others.""")
ROOT_OF_D = Family("divided by the root of D", """Your {part}'s attention divides the scores by the root of D, the width
    of a whole word. Each head compares vectors of width d_k = D / h, so the root of d_k belongs there.""")
# fmt: on


HEADS = answer("""
    class Heads(nn.Module):
        def __init__(self, width, heads):
            super().__init__()
            self.heads = heads
            self.W_q = nn.Linear(width, width)
            self.W_k = nn.Linear(width, width)
            self.W_v = nn.Linear(width, width)
            self.W_o = nn.Linear(width, width)

        def cut(self, x):
            return x.reshape(x.shape[0], x.shape[1], self.heads, -1).transpose(1, 2)

        def forward(self, asking, asked, mask):
            q, k, v = self.cut(self.W_q(asking)), self.cut(self.W_k(asked)), self.cut(self.W_v(asked))
            scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
            if mask is not None:
                scores = scores.masked_fill(~mask, float("-inf"))
            shares = torch.softmax(scores, dim=-1)
            return self.W_o((shares @ v).transpose(1, 2).reshape(asking.shape))


""")


def with_heads(source: str) -> Answer:
    """An answer that has multi-head attention, as the notebook provides it, next to its own class."""
    return answer(f"{HEADS}\n\n{answer(source)}")
