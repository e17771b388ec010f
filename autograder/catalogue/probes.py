"""Probes in few words: a name, how a case is drawn, its sizes. `usual_probes` are those that every function deserves."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from autograder.catalogue.exercise import Case, Law, Probe

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


def visible(name: str, draw: Case | Callable[..., Case], *sizes: Any, **options: Any) -> Probe:
    """A probe that a learner's own check asks: a case, or what draws one from (generator, *sizes).

    Options: also, laws, rtol, atol, quiz as in `Probe`; the others are passed on to `draw`.
    """
    return _probe(name, draw, sizes, options, hidden=False)


def hidden(name: str, draw: Case | Callable[..., Case], *sizes: Any, **options: Any) -> Probe:
    """A probe that is asked when the notebook is graded; the arguments are those of `visible`."""
    return _probe(name, draw, sizes, options, hidden=True)


def usual_probes(
    draw: Callable[..., Case],
    *,
    other: Sequence[Any],
    common: Sequence[Any],
    smallest: Sequence[Any] | None = None,
    floats: bool = True,
    gradients: bool = True,
) -> Iterator[Probe]:
    """The hidden probes of a function of tensors. draw: (generator, *sizes, dtype=...) -> case.

    other: sizes unlike the visible ones, no two alike. smallest: sizes of 1 wherever they may be. common: sizes for the
    rest: float64 laid out as after a transpose and gradients (unless `floats` or `gradients` is False), and that nothing
    else is touched.
    """
    yield hidden("other sizes", draw, *other)
    if smallest is not None:
        yield hidden("the smallest sizes", draw, *smallest)
    if floats:
        yield hidden("float64, transposed in memory", _turned(draw), *common, dtype=torch.float64)
    if gradients:
        yield hidden("gradients", draw, *common, dtype=torch.float64, also=GRADIENTS)
    yield hidden("nothing else is touched", draw, *common, also=UNTOUCHED)


def _probe(
    name: str, draw: Case | Callable[..., Case], sizes: Sequence[Any], options: dict[str, Any], hidden: bool
) -> Probe:
    asked = {option: options.pop(option) for option in ("rtol", "atol", "quiz") if option in options}
    also: Iterable[str] = options.pop("also", ())
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

    return Probe(name, drawn, hidden, frozenset({also} if isinstance(also, str) else also), laws, **asked)


def _turned(draw: Callable[..., Case]) -> Callable[..., Case]:
    def drawn(generator: torch.Generator, *sizes: Any, **options: Any) -> Case:
        case = draw(generator, *sizes, **options)
        arguments = (turned(a) if isinstance(a, Tensor) and a.ndim > 1 else a for a in case.arguments)
        return replace(case, arguments=tuple(arguments))

    return drawn
