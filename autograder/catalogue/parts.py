"""What entries of the catalogue are made of: drawn inputs, known answers, and sentences that quote a learner's numbers."""

from collections.abc import Callable
from textwrap import dedent

import torch
from torch import Tensor

from autograder.catalogue.exercise import Evidence, Misconception, Section, Variant
from autograder.judging.compare import number

UNTOUCHED = frozenset({"inputs", "state"})
GRADIENTS = frozenset({"gradients"})


def normal(generator: torch.Generator, *shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """Standard normal numbers, the same ones in every dtype up to rounding."""
    return torch.randn(*shape, generator=generator, dtype=torch.float64).to(dtype)


def shares(generator: torch.Generator, *shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """Rows of positive numbers that sum to 1."""
    return torch.softmax(normal(generator, *shape, dtype=torch.float64), dim=-1).to(dtype)


def turned(tensor: Tensor) -> Tensor:
    """The same numbers, laid out in memory as a transposed tensor is."""
    return tensor.mT.contiguous().mT


def known(
    name: str,
    source: str,
    message: str,
    reread: Section,
    seen: Callable[[Evidence], str] | None = None,
    shows: Callable[[Evidence], bool] | None = None,
) -> Misconception:
    """A known wrong answer; `seen` quotes the learner's numbers from a visible probe before the message."""
    return Misconception(name, dedent(source).lstrip(), " ".join(message.split()), reread, seen, shows)


def right(name: str, source: str) -> Variant:
    """A right answer in another style."""
    return Variant(name, dedent(source).lstrip())


def row(tensor: Tensor) -> str:
    """The numbers of a row as a learner would write them."""
    return " ".join(number(value) for value in tensor.tolist())


def ragged(evidence: Evidence) -> str:
    """What the rows of a weights table sum to."""
    got = evidence.got[1] if isinstance(evidence.got, tuple) else evidence.got
    return f"Your rows sum to {row(got.flatten(0, -2).sum(-1)[:4])}."


def columns(evidence: Evidence) -> str:
    """What the columns and rows of the first weights table sum to."""
    got = evidence.got[1] if isinstance(evidence.got, tuple) else evidence.got
    return f"Your columns sum to {row(got.flatten(0, -3)[0].sum(-2)[:4])}, your rows to {row(got.flatten(0, -3)[0].sum(-1)[:4])}."


def sizes(evidence: Evidence) -> str:
    """Which shape came back, and which was expected."""
    return f"You returned shape {tuple(evidence.got.shape)} where {tuple(evidence.expected.shape)} was expected."


def first(evidence: Evidence) -> str:
    """The first number of the result, as it is and as it should be."""
    return f"Your first number is {number(evidence.got.flatten()[0])}; by hand it is {number(evidence.expected.flatten()[0])}."
