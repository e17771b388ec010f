"""Whether an answer's observation is the reference's, and if not, where they part."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from autograder.catalogue.exercise import Probe
from autograder.inside import wire
from autograder.judging.observation import Observation, Raised, Structure

MAX_DECIMALS = 9


@dataclass(frozen=True)
class Difference:
    """Where two observations part.

    kind: one of error, type, shape, dtype, nan, value, length, keys, inputs, state, gradient, structure, gone.
    """

    kind: str
    text: str
    index: tuple[int, ...] = ()


def difference(expected: Observation, got: Observation, probe: Probe) -> Difference | None:
    """The first difference that the probe looks at, or None when the answer is right."""
    found = value_difference(expected.result, got.result, probe.rtol, probe.atol)
    if found is None and "inputs" in probe.also:
        found = inputs_difference(expected, got)
    if found is None and "state" in probe.also and got.changed:
        found = Difference("state", f"{got.changed[0]} was changed and not put back")
    if found is None and "generator" in probe.also and not got.drawn:
        found = Difference("state", "the generator that was passed in was not used")
    if found is None and "generator" in probe.also and got.reseeded:
        found = Difference("state", "the generator that was passed in was given another seed")
    if found is None and "gradients" in probe.also:
        found = _gradient_difference(expected, got)
    if found is not None and found.kind not in ("inputs", "error"):  # it may be why, so it is said in place of the rest
        found = inputs_difference(expected, got) or found
    if found is not None and probe.quiz and found.kind == "value":
        found = replace(found, text=re.sub(r"expected .*, got (.*)", r"\1 is not it", found.text))
    return found


def value_difference(expected: Any, got: Any, rtol: float, atol: float, where: str = "") -> Difference | None:
    """The first difference between two results; `where` names the part of a tuple that is looked at."""
    if isinstance(got, Raised):
        if isinstance(expected, Raised) and expected.type in (got.type, *got.kinds):
            return None
        return Difference("error", f"{got.type}: {got.message}" if got.message else got.type)
    if isinstance(expected, Raised):
        return Difference("type", f"expected {expected.type} to be raised, got a result")
    if isinstance(got, Structure) or isinstance(expected, Structure):
        same = isinstance(got, Structure) and isinstance(expected, Structure) and got.outline() == expected.outline()
        return (
            None if same else Difference("structure", "its parameters cannot be read as the projections it should hold")
        )
    if isinstance(expected, torch.Tensor):
        return _tensor_difference(expected, got, rtol, atol, where)
    if isinstance(expected, tuple):
        return _tuple_difference(expected, got, rtol, atol, where)
    if isinstance(expected, list):
        return _list_difference(expected, got, rtol, atol, where)
    if isinstance(expected, torch.Generator):
        same = isinstance(got, torch.Generator) and torch.equal(expected.get_state(), got.get_state())
        return None if same else Difference("type", f"{where}expected a generator in the same state, got {_name(got)}")
    if isinstance(expected, (bool, str, bytes)) or expected is None:
        same = type(got) is type(expected) and got == expected
        return None if same else Difference("value", f"{where}expected {expected!r}, got {_name(got)}")
    if isinstance(expected, (int, float)):
        return _number_difference(expected, got, rtol, atol, where)
    if isinstance(expected, dict):
        return _dict_difference(expected, got, rtol, atol, where)
    if isinstance(expected, wire.Opaque):  # a known wrong answer may return what does not travel
        same = isinstance(got, wire.Opaque) and got.description == expected.description
        return None if same else Difference("type", f"{where}got {_name(got)}")
    raise TypeError(
        f"expected: a reference may return tensors, numbers, text and collections of them, got {type(expected)}"
    )


def _tensor_difference(expected: torch.Tensor, got: Any, rtol: float, atol: float, where: str) -> Difference | None:
    if not isinstance(got, torch.Tensor):
        return Difference("type", f"{where}expected a tensor, got {_name(got)}")
    if got.shape != expected.shape:
        return Difference("shape", f"{where}expected shape {tuple(expected.shape)}, got {tuple(got.shape)}")
    if got.dtype != expected.dtype:
        return Difference("dtype", f"{where}expected dtype {_dtype(expected)}, got {_dtype(got)}")
    if torch.equal(expected, got):  # the usual case, in a tenth of the time
        return None
    wanted, found = expected.to(torch.float64), got.to(torch.float64)
    off = ~torch.isclose(found, wanted, rtol=rtol, atol=atol, equal_nan=True)
    if not off.any():
        return None
    if (found.isnan() & ~wanted.isnan()).any():
        index = tuple((found.isnan() & ~wanted.isnan()).nonzero()[0].tolist())
        return Difference("nan", f"{where}NaN (not a number) at index {index}", index)
    gap = torch.where(off, (found - wanted).abs().nan_to_num(nan=math.inf), 0.0)
    index = _place_of(int(gap.argmax()), gap.shape)
    place = f" at index {index}" if index else ""
    shown = written_apart(expected, got, index)
    return Difference("value", f"{where}expected {shown[0]}{place}, got {shown[1]}", index)


def _place_of(position: int, shape: Sequence[int]) -> tuple[int, ...]:
    """The index of an element by its position; torch's own function imports a compiler first."""
    index: list[int] = []
    for size in reversed(shape):
        position, place = divmod(position, size)
        index.append(place)
    return tuple(reversed(index))


def _tuple_difference(expected: tuple, got: Any, rtol: float, atol: float, where: str) -> Difference | None:
    if not isinstance(got, (tuple, list)):
        return Difference("type", f"{where}expected {len(expected)} results, got {_name(got)}")
    if len(got) != len(expected):
        return Difference("type", f"{where}expected {len(expected)} results, got {len(got)}")
    for position, (wanted, found) in enumerate(zip(expected, got, strict=True)):
        parted = value_difference(wanted, found, rtol, atol, f"{where}result {position + 1}: ")
        if parted is not None:
            return parted
    return None


def _list_difference(expected: list, got: Any, rtol: float, atol: float, where: str) -> Difference | None:
    """The first item that differs."""
    if not isinstance(got, (tuple, list)):
        return Difference("type", f"{where}expected a list, got {_name(got)}")
    for position, (wanted, found) in enumerate(zip(expected, got, strict=False)):
        parted = value_difference(wanted, found, rtol, atol, f"{where}at index {position}: ")
        if parted is not None and isinstance(wanted, tuple):
            return _item_difference(f"{where}at index {position}", wanted, found)
        if parted is not None:
            return parted
    if len(got) == len(expected):
        return None
    counted = f"{where}expected {len(expected)} items, got {len(got)}"
    if len(got) < len(expected):
        return Difference("length", f"{counted}; the next one should be {_cut(repr(expected[len(got)]))}")
    return Difference("length", f"{counted}; the first too many is {_cut(repr(got[len(expected)]))}")


def _number_difference(expected: float, got: Any, rtol: float, atol: float, where: str) -> Difference | None:
    if isinstance(got, bool) or not isinstance(got, (int, float)):
        name = "None" if got is None and where else _name(got)
        return Difference("type", f"{where}expected a plain Python number, got {name}")
    if isinstance(expected, int) and not isinstance(got, int):
        return Difference("type", f"{where}expected an integer, got {got!r}")
    same = math.isclose(got, expected, rel_tol=rtol, abs_tol=atol) or (math.isnan(got) and math.isnan(expected))
    if same:
        return None
    wanted, found = (repr(expected), repr(got)) if isinstance(expected, int) else _apart(expected, got)
    return Difference("nan" if math.isnan(got) else "value", f"{where}expected {wanted}, got {found}")


def _dict_difference(expected: dict, got: Any, rtol: float, atol: float, where: str) -> Difference | None:
    if not isinstance(got, dict):
        return Difference("type", f"{where}expected a dictionary, got {_name(got)}")
    missing = [key for key in expected if key not in got]
    extra = [key for key in got if key not in expected]
    if missing or extra:
        told = [f"the key {_cut(repr(missing[0]))} is missing"] if missing else []
        told += [f"the key {_cut(repr(extra[0]))} should not be there"] if extra else []
        return Difference("keys", f"{where}expected {len(expected)} keys, got {len(got)}: {', and '.join(told)}")
    for key, wanted in expected.items():
        parted = value_difference(wanted, got[key], rtol, atol, f"{where}at key {key!r}: ")
        if parted is not None and isinstance(wanted, tuple):
            return _item_difference(f"{where}at key {key!r}", wanted, got[key])
        if parted is not None:
            return parted
    return None


def _item_difference(where: str, wanted: tuple, found: Any) -> Difference:
    """A tuple inside a list or a dictionary (a pair, a shape) is one item."""
    shown = repr(found) if isinstance(found, (tuple, list)) else _name(found)
    return Difference("value", f"{where}: expected {wanted!r}, got {_cut(shown)}")


def inputs_difference(expected: Observation, got: Observation) -> Difference | None:
    """Which argument the answer left as another one than the reference does; None where it left them all alone."""
    for position, (before, after) in enumerate(zip(expected.inputs, got.inputs, strict=False), start=1):
        if not _unchanged(before, after):
            return Difference("inputs", f"argument {position} was changed by your code")
    return None


def _unchanged(before: Any, after: Any) -> bool:
    """Whether an argument is as it was; a generator may be drawn from, and a function is not looked into."""
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
    return before == after if isinstance(before, (str, bool, int, float)) else True


def _identical(before: torch.Tensor, after: torch.Tensor) -> bool:
    return (
        before.shape == after.shape
        and before.dtype == after.dtype
        and torch.equal(before.nan_to_num(), after.nan_to_num())
    )


def _gradient_difference(expected: Observation, got: Observation) -> Difference | None:
    for place, wanted in expected.gradients.items():
        if wanted is None:
            continue
        found = got.gradients.get(place)
        if found is None:
            return Difference("gradient", f"no gradient reaches {_place(place)}")
        if value_difference(wanted, found, 1e-3, 1e-6) is not None:
            return Difference(
                "gradient", f"the gradient that reaches {_place(place)} is not the one of the right answer"
            )
    return None


def _place(name: str) -> str:
    return f"argument {int(name.split()[1]) + 1}" if name.startswith("input ") else f"the {name} projection"


def _dtype(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def _name(value: Any) -> str:
    """What a value is, for a sentence: a learner reads it."""
    if value is None:
        return "None (a function without `return` gives None)"
    if isinstance(value, torch.Tensor):
        return f"a tensor of shape {tuple(value.shape)}"
    if isinstance(value, (bool, int, float)):
        return repr(value)
    if isinstance(value, str):
        return f"the text {value[:40]!r}"
    if isinstance(value, (tuple, list)):
        return f"a {type(value).__name__} of {len(value)} items"
    if isinstance(value, dict):
        return f"a dictionary of {len(value)} items"
    if isinstance(value, wire.Opaque):
        kind = value.description.removeprefix("builtins.") or wire.UNREAD
        article = "an" if kind[0] in "aeiou" else "a"
        return kind if kind == value.description else f"{article} {kind}"  # a set, a map, an ellipsis
    return f"a {type(value).__name__}"


def _cut(text: str, longest: int = 60) -> str:
    return text if len(text) <= longest else f"{text[: longest - 3]}..."


def written(tensor: torch.Tensor, index: tuple[int, ...]) -> str:
    """One number of a tensor: whole numbers and truth values as they are, others as `number` writes them."""
    value = tensor[index].item()
    return number(value) if tensor.is_floating_point() else str(value)


def written_apart(one: torch.Tensor, other: torch.Tensor, index: tuple[int, ...]) -> tuple[str, str]:
    """The same place of two tensors, with as many decimals as it takes to see that they differ."""
    if not (one.is_floating_point() and other.is_floating_point()):
        return written(one, index), written(other, index)
    return _apart(one[index].item(), other[index].item())


def _apart(one: float, other: float) -> tuple[str, str]:
    texts = number(one), number(other)
    for decimals in range(4, MAX_DECIMALS + 1):
        if texts[0] != texts[1] or one == other:
            break
        texts = f"{one:.{decimals}f}", f"{other:.{decimals}f}"
    return texts


def number(value: Any) -> str:
    """A number as a reader would write it: three decimals, more digits only where three would hide it."""
    value = float(value)
    if math.isnan(value) or math.isinf(value) or value == 0:
        return str(value) if value else "0.000"
    return f"{value:.3f}" if 1e-3 <= abs(value) < 1e5 else f"{value:.3g}"
