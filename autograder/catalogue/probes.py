"""Probes in few words: a name, how a case is drawn, its sizes. `usual_probes` are those that every function
deserves."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from autograder.catalogue.exercise import Case, Law, Probe

UNTOUCHED = frozenset({"inputs", "state"})
GRADIENTS = frozenset({"gradients"})
PROMISED = "promised for every exercise"
SECOND_CALL = "a second call; nothing else is touched"
FAR = 1e8  # from numbers around here float32 keeps no difference below 8, and float64 one of 0.0000001


def normal(generator: torch.Generator, *shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """Standard normal numbers, the same in every dtype up to rounding."""
    return torch.randn(*shape, generator=generator, dtype=torch.float64).to(dtype)


def shares(generator: torch.Generator, *shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """Rows of positive numbers that sum to 1."""
    return torch.softmax(normal(generator, *shape, dtype=torch.float64), dim=-1).to(dtype)


def turned(tensor: Tensor) -> Tensor:
    """The same numbers, with the memory layout of a transposed tensor."""
    return tensor.mT.contiguous().mT


def visible(name: str, draw: Case | Callable[..., Case], *sizes: Any, **options: Any) -> Probe:
    """A probe that a learner's own check runs: a case, or a function that draws one from (generator, *sizes). Options:
    checks, laws, rtol, atol, hide_expected, announced_by, scale as in `Probe`; the others are passed on to `draw`.
    """
    return _probe(name, draw, sizes, options, hidden=False)


def hidden(name: str, draw: Case | Callable[..., Case], *sizes: Any, **options: Any) -> Probe:
    """A probe that runs when the notebook is graded; the arguments are those of `visible`."""
    return _probe(name, draw, sizes, options, hidden=True)


def usual_probes(
    draw: Callable[..., Case],
    *,
    other: Sequence[Any],
    common: Sequence[Any],
    smallest: Sequence[Any] | None = None,
    precise: Callable[[torch.Generator], Case] | None = None,
    floats: bool = True,
    gradients: bool = True,
    zero: bool = True,
    equal_rows: bool = True,
) -> Iterator[Probe]:
    """The hidden probes of a function of tensors. draw: (generator, *sizes, dtype=...) -> case. other: sizes unlike the
    visible ones, no two alike; the last row equals the first, and a 0 is among the numbers (unless `equal_rows` or
    `zero` is False). smallest: sizes of 1 wherever they may be, the first too. common: sizes for the rest: float64 laid
    out as after a transpose and gradients (unless `floats` or `gradients` is False), and a second call after which
    nothing else is touched. precise: draws float64 numbers whose differences float32 loses (see `FAR`), instead of
    those of common sizes.
    """
    usual = partial(hidden, announced_by=PROMISED)
    yield usual("other sizes", _met_before(draw, zero, equal_rows), *other)
    if smallest is not None:
        yield usual("the smallest sizes", draw, *smallest)
    if precise is not None:
        yield usual("float64, transposed in memory", _turned(precise), rtol=0.0)
    elif floats:
        yield usual("float64, transposed in memory", _turned(draw), *common, dtype=torch.float64)
    if gradients:
        yield usual("gradients", draw, *common, dtype=torch.float64, checks=GRADIENTS)
    yield second_call(draw, *common)


def second_call(draw: Callable[..., Case], *sizes: Any, name: str = SECOND_CALL, **options: Any) -> Probe:
    """The hidden probe that calls an answer a second time, with other values of the same sizes: the answer must not
    keep anything from the first call, or modify anything else. The arguments are those of `visible`."""

    def drawn(generator: torch.Generator, *sizes: Any, **options: Any) -> Case:
        case = draw(generator, *sizes, **options)
        return replace(case, before=draw(generator, *sizes, **options).arguments)

    return hidden(name, drawn, *sizes, **{"checks": UNTOUCHED, "announced_by": PROMISED} | options)


def _probe(
    name: str, draw: Case | Callable[..., Case], sizes: Sequence[Any], options: dict[str, Any], hidden: bool
) -> Probe:
    asked = {
        option: options.pop(option)
        for option in ("rtol", "atol", "hide_expected", "announced_by", "scale")
        if option in options
    }
    checks: Iterable[str] = options.pop("checks", ())
    laws: tuple[Law, ...] = tuple(options.pop("laws", ()))
    if isinstance(draw, Case):
        if sizes or options:
            raise TypeError(f"{name}: expected nothing to draw for a case that is given, got {sizes or options}")
        fixed = draw

        def drawn(generator: torch.Generator) -> Case:
            return fixed
    else:

        def drawn(generator: torch.Generator) -> Case:
            return draw(generator, *sizes, **options)

    return Probe(name, drawn, hidden, frozenset({checks} if isinstance(checks, str) else checks), laws, **asked)


def _turned(draw: Callable[..., Case]) -> Callable[..., Case]:
    def drawn(generator: torch.Generator, *sizes: Any, **options: Any) -> Case:
        case = draw(generator, *sizes, **options)
        arguments = (turned(a) if isinstance(a, Tensor) and a.ndim > 1 else a for a in case.arguments)
        return replace(case, arguments=tuple(arguments))

    return drawn


def _met_before(draw: Callable[..., Case], zero: bool, equal_rows: bool) -> Callable[..., Case]:
    """Cases whose last float tensor begins with a 0, and in which the last row of each tensor equals the first."""

    def drawn(generator: torch.Generator, *sizes: Any, **options: Any) -> Case:
        case = draw(generator, *sizes, **options)
        arguments = [a.clone() if isinstance(a, Tensor) else a for a in case.arguments]
        tensors = [a for a in arguments if isinstance(a, Tensor) and a.ndim]
        for tensor in [tensor for tensor in tensors if tensor.is_floating_point()][-1:] if zero else ():
            tensor[(0,) * tensor.ndim] = 0
        for tensor in tensors if equal_rows else ():
            rows = tensor.movedim(-2, 0) if tensor.ndim > 1 else tensor
            if len(rows) > 2:
                rows[-1] = rows[0]
        return replace(case, arguments=tuple(arguments))

    return drawn
