"""Whether an answer's observation is the reference's, and if not, where they part (in words: see `feedback`)."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import torch

from autograder.catalogue.exercise import Probe, Scale
from autograder.inside import wire
from autograder.inside.responder import MODE
from autograder.judging.closeness import differing
from autograder.judging.observation import Difference, Observation, Part, Raised, Structure


def difference(expected: Observation, got: Observation, probe: Probe) -> Difference | None:
    """The first difference that the probe checks, or None if the answer is correct."""
    made = got.dictionaries - expected.dictionaries  # what `normalize` makes of a result is not a result itself
    if made and not isinstance(expected.result, Raised):
        found = Difference("type", expected=expected.result, got=got.result)
    elif probe.scale is not None and isinstance(expected.result, list) and not isinstance(got.result, Raised):
        found = _below_full(expected.result, got.result, probe.scale)
    else:
        found = value_difference(expected.result, got.result, probe.rtol, probe.atol)
    if found is None and "inputs" in probe.checks:
        found = inputs_difference(expected, got)
    if found is None and (changed := [each for each in got.changed if _is_checked(each, probe)]):
        found = Difference("state", (Part("setting", changed[0]),))
    if found is None and "generator" in probe.checks:
        found = _generator_difference(got)
    if found is None and "gradients" in probe.checks:
        found = _gradient_difference(expected, got)
    if found is not None and found.kind not in ("inputs", "error"):  # the reason, perhaps
        found = inputs_difference(expected, got, with_modes=False) or found
    return found


def _is_checked(changed: str, probe: Probe) -> bool:
    return "state" in probe.checks or (changed == MODE and "training" in probe.checks)


def _generator_difference(got: Observation) -> Difference | None:
    wrong = {"undrawn": not got.drawn, "reseeded": got.reseeded, "elsewhere": got.elsewhere}
    return next((Difference(kind) for kind, is_so in wrong.items() if is_so), None)


def _below_full(expected: list, got: Any, scale: Scale) -> Difference | None:
    """The difference of a list of texts in its form, or a score too low for all points."""
    if not isinstance(got, (list, tuple)):
        return Difference("type", expected=expected, got=got)
    if len(got) != len(expected):
        return Difference("length", expected=expected, got=got)
    for place, (wanted, text) in enumerate(zip(expected, got, strict=True)):
        if not isinstance(text, str):
            return Difference("type", (Part("index", place),), wanted, text)
    score = scale.measure(expected, list(got))
    return None if scale.share(score) >= 1 else Difference("score", expected=scale, got=score)


def value_difference(expected: Any, got: Any, rtol: float, atol: float) -> Difference | None:
    """The first difference between two results. Raises TypeError if a reference returns an unsupported type."""
    if isinstance(got, Raised):
        if not isinstance(expected, Raised) or expected.type not in (got.type, *got.kinds):
            return Difference("error", got=got)
        too_late = expected.in_constructor and not got.in_constructor
        return Difference("not raised", expected=expected, got=got) if too_late else None
    if isinstance(expected, Raised):
        return Difference("not raised", expected=expected, got=got)
    if isinstance(got, Structure) or isinstance(expected, Structure):
        both = isinstance(got, Structure) and isinstance(expected, Structure)
        return None if both and got.outline() == expected.outline() else Difference("structure", got=got)
    if isinstance(expected, torch.Tensor):
        return _tensor_difference(expected, got, rtol, atol)
    if isinstance(expected, tuple):
        if not isinstance(got, (tuple, list)) or len(got) != len(expected):
            return Difference("type", expected=expected, got=got)
        parts = [Part("result", position) for position in range(len(expected))]
        return _first(zip(parts, expected, got, strict=True), rtol, atol)
    if isinstance(expected, list):
        return _list_difference(expected, got, rtol, atol)
    if isinstance(expected, torch.Generator):
        same = isinstance(got, torch.Generator) and torch.equal(expected.get_state(), got.get_state())
        return None if same else Difference("type", expected=expected, got=got)
    if isinstance(expected, (bool, str, bytes)) or expected is None:
        same = type(got) is type(expected) and got == expected
        return None if same else Difference("value", expected=expected, got=got)
    if isinstance(expected, (int, float)):
        return _number_difference(expected, got, rtol, atol)
    if isinstance(expected, dict):
        return _dict_difference(expected, got, rtol, atol)
    if isinstance(expected, wire.Opaque):  # a known wrong answer may return what does not travel
        same = isinstance(got, wire.Opaque) and got.description == expected.description
        return None if same else Difference("type", expected=expected, got=got)
    raise TypeError(
        f"expected: a reference may return tensors, numbers, text and collections of them, got {type(expected)}"
    )


def _first(parts: Iterable[tuple[Part, Any, Any]], rtol: float, atol: float) -> Difference | None:
    """The first difference among the parts of a collection. parts: (key, expected, returned)."""
    for part, wanted, found in parts:
        parted = value_difference(wanted, found, rtol, atol)
        if parted is not None and isinstance(wanted, tuple) and part.kind != "result":
            return Difference("value", (part,), wanted, found)  # a pair or a shape is one item
        if parted is not None:
            return replace(parted, where=(part, *parted.where))
    return None


def _tensor_difference(expected: torch.Tensor, got: Any, rtol: float, atol: float) -> Difference | None:
    if not isinstance(got, torch.Tensor):
        return Difference("type", expected=expected, got=got)
    if got.shape != expected.shape:
        return Difference("shape", expected=tuple(expected.shape), got=tuple(got.shape))
    if got.dtype != expected.dtype:
        return Difference("dtype", expected=expected.dtype, got=got.dtype)
    if torch.equal(expected, got):  # the usual case, in a tenth of the time
        return None
    off = differing(got, expected, rtol, atol)
    if not off.any():
        return None
    wanted, found = expected.to(torch.float64), got.to(torch.float64)
    if (found.isnan() & ~wanted.isnan()).any():
        index = tuple((found.isnan() & ~wanted.isnan()).nonzero()[0].tolist())
        return Difference("nan", (), expected, got, index)
    gap = torch.where(off, (found - wanted).abs().nan_to_num(nan=math.inf), -1.0)  # large integers may have a gap of 0
    return Difference("value", (), expected, got, _place_of(int(gap.argmax()), gap.shape))


def _place_of(position: int, shape: Sequence[int]) -> tuple[int, ...]:
    """The index of an element by its position in flattened order; torch's own function imports a compiler first."""
    index: list[int] = []
    for size in reversed(shape):
        position, place = divmod(position, size)
        index.append(place)
    return tuple(reversed(index))


def _list_difference(expected: list, got: Any, rtol: float, atol: float) -> Difference | None:
    """The first item that differs."""
    if not isinstance(got, (tuple, list)):
        return Difference("type", expected=expected, got=got)
    shared = range(min(len(expected), len(got)))
    parted = _first(((Part("index", place), expected[place], got[place]) for place in shared), rtol, atol)
    if parted is None and len(got) != len(expected):
        return Difference("length", expected=expected, got=got)
    return parted


def _number_difference(expected: float, got: Any, rtol: float, atol: float) -> Difference | None:
    if isinstance(got, bool) or not isinstance(got, (int, float)):
        return Difference("type", expected=expected, got=got)
    if isinstance(expected, int) and not isinstance(got, int):
        return Difference("type", expected=expected, got=got)
    if isinstance(expected, int):  # exact: a count of seventeen digits has more than a float holds
        return None if got == expected else Difference("value", expected=expected, got=got)
    if math.isclose(got, expected, rel_tol=rtol, abs_tol=atol) or (math.isnan(got) and math.isnan(expected)):
        return None
    return Difference("nan" if math.isnan(got) else "value", expected=expected, got=got)


def _dict_difference(expected: dict, got: Any, rtol: float, atol: float) -> Difference | None:
    if not isinstance(got, dict):
        return Difference("type", expected=expected, got=got)
    found = {str(key): value for key, value in got.items()}  # a key that is written as the expected one is accepted
    if {*map(str, expected)} != found.keys():
        return Difference("keys", expected=tuple(expected), got=tuple(got))
    return _first(((Part("key", key), wanted, found[str(key)]) for key, wanted in expected.items()), rtol, atol)


def inputs_difference(expected: Observation, got: Observation, with_modes: bool = True) -> Difference | None:
    """The argument that the answer changed and the reference does not; None if there is none.

    with_modes: whether a model that is left in the other mode counts.
    """
    for position, (before, after) in enumerate(zip(expected.inputs, got.inputs, strict=False)):
        is_model = isinstance(before, str)  # of a model its mode arrives, in words; a text cannot be changed
        if not _unchanged(before, after) and (with_modes or not is_model):
            return Difference("inputs", (Part("argument", position),), before, after)
    return None


def _unchanged(before: Any, after: Any) -> bool:
    """Whether an argument is unchanged; a generator may be drawn from, and a function is not inspected."""
    if isinstance(before, torch.Tensor):
        return isinstance(after, torch.Tensor) and _identical(before, after)
    if isinstance(before, (list, tuple)):
        same_length = isinstance(after, type(before)) and len(before) == len(after)
        return same_length and all(map(_unchanged, before, after))
    if isinstance(before, dict):
        same_keys = isinstance(after, dict) and list(before) == list(after)
        return same_keys and all(_unchanged(value, after[key]) for key, value in before.items())
    if isinstance(before, float) and math.isnan(before):
        return isinstance(after, float) and math.isnan(after)
    if isinstance(before, (str, bool, int, float)):
        return isinstance(after, (str, bool, int, float)) and before == after
    return True


def _identical(before: torch.Tensor, after: torch.Tensor) -> bool:
    """Whether two tensors have the same shape, dtype and entries; NaN equals NaN."""
    if before.shape != after.shape or before.dtype != after.dtype:
        return False
    if torch.equal(before, after):  # the usual case
        return True
    return bool(((before == after) | (before.isnan() & after.isnan())).all())


def _gradient_difference(expected: Observation, got: Observation) -> Difference | None:
    for place, wanted in expected.gradients.items():
        if wanted is None:
            continue
        found = got.gradients.get(place)
        if found is None:
            return Difference("no gradient", (place,), wanted)
        if value_difference(wanted, found, 1e-3, 1e-6) is not None:
            return Difference("gradient", (place,), wanted, found)
    return None
