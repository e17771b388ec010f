"""Values as a sentence names or quotes them."""

from typing import Any

import torch

from autograder.catalogue.numbers import number
from autograder.diagnosis.counterexample import LEAST_DIGITS, MOST_DIGITS, rounded
from autograder.inside import wire

MAX_DECIMALS = 9
MAX_COMPARED = 100  # numbers of a tensor


def called(value: Any) -> str:
    """The kind of a value in words, for a sentence to a learner."""
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


def cut(text: str, longest: int = 60) -> str:
    """The beginning of a long text."""
    return text if len(text) <= longest else f"{text[: longest - 3]}..."


def dtype_name(dtype: torch.dtype) -> str:
    """The name of a dtype without its module."""
    return str(dtype).removeprefix("torch.")


def written(tensor: torch.Tensor, index: tuple[int, ...]) -> str:
    """One number of a tensor: integers and booleans unchanged, others as in `number`."""
    value = tensor[index].item()
    return number(value) if tensor.is_floating_point() else str(value)


def tensors_apart(one: torch.Tensor, other: torch.Tensor, index: tuple[int, ...]) -> tuple[str, str]:
    """The same element of two tensors, with enough decimals to show the difference."""
    if not (one.is_floating_point() and other.is_floating_point()):
        return written(one, index), written(other, index)
    return numbers_apart(one[index].item(), other[index].item())


def numbers_apart(one: float, other: float) -> tuple[str, str]:
    """Two numbers, with enough decimals to show the difference."""
    texts = number(one), number(other)
    for decimals in range(4, MAX_DECIMALS + 1):
        if texts[0] != texts[1] or one == other:
            break
        texts = f"{one:.{decimals}f}", f"{other:.{decimals}f}"
    return texts


def digits_exact(value: Any) -> int:
    """How many digits give the numbers of a small value back when they are read again; `MOST_DIGITS` if none do."""
    if isinstance(value, torch.Tensor):
        if not value.is_floating_point() or value.numel() > MAX_COMPARED:
            return LEAST_DIGITS
        fits = (digits for digits in range(LEAST_DIGITS, MOST_DIGITS) if torch.equal(rounded(value, digits), value))
        return next(fits, MOST_DIGITS)
    if isinstance(value, float):
        return digits_exact(torch.tensor(value, dtype=torch.float64))
    if isinstance(value, (list, tuple, dict)):
        parts = value.values() if isinstance(value, dict) else value
        return max(map(digits_exact, parts), default=LEAST_DIGITS)
    return LEAST_DIGITS


def plainly(value: Any, digits: int = LEAST_DIGITS) -> str:
    """A small value as Python: a tensor as nested lists, numbers with at most this many digits."""
    if isinstance(value, torch.Tensor):
        return plainly(value.tolist(), digits)
    if isinstance(value, float):
        return f"{value:.{digits}g}"
    if isinstance(value, (list, tuple)):
        inner = ", ".join(plainly(each, digits) for each in value)
        return f"[{inner}]" if isinstance(value, list) else f"({inner}{',' if len(value) == 1 else ''})"
    if isinstance(value, dict):
        pairs = (f"{plainly(key, digits)}: {plainly(each, digits)}" for key, each in value.items())
        return "{" + ", ".join(pairs) + "}"
    return repr(value) if value is None or isinstance(value, (int, str)) else called(value)
