"""Ways to change an argument: each gives the changed one, or None where it is of another kind."""

import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor


def changed_by(change: Callable[[Any], Any], value: Any) -> Any:
    changed = change(value)
    if isinstance(value, Tensor):
        return changed if changed is not None and not torch.equal(changed, value) else None
    return changed if repr(changed) != repr(value) else None  # a list may hold tensors, which are not equal or unequal


def _shifted(by: int, least: int | None = None) -> Callable[[Any], Any]:
    def one(number: float) -> float:
        return number + by if least is None else max(number + by, least)

    def shifted(value: Any) -> Any:
        if isinstance(value, int | float) and type(value) in ((int, float) if least is None else (int,)):
            return one(value)
        if isinstance(value, Tensor) and value.dtype == torch.long:
            return value + by if least is None else (value + by).clamp(min=least)
        if not isinstance(value, list) or not value or any(type(item) is not int for item in value):
            return None
        return [one(item) for item in value]

    return shifted


def _of_counts(change: Callable[[list], list]) -> Callable[[Any], Any]:
    """Of several whole numbers, in a list or a tensor."""

    def changed(value: Any) -> Any:
        numbers = value.tolist() if isinstance(value, Tensor) and value.ndim == 1 else value
        whole = isinstance(numbers, list) and len(numbers) > 1 and all(type(number) is int for number in numbers)
        if not whole:
            return None
        return torch.tensor(change(numbers), dtype=value.dtype) if isinstance(value, Tensor) else change(numbers)

    return changed


def _everywhere(choose: Callable[[list], Any]) -> Callable[[Any], Any]:
    """One of several whole numbers in the place of all."""
    return _of_counts(lambda numbers: [choose(numbers)] * len(numbers))


def _of_squares(change: Callable[[Tensor], Tensor]) -> Callable[[Any], Any]:
    return _of_numbers(lambda x: change(x) if x.ndim == 2 and x.shape[0] == x.shape[1] else None)


def _of_masks(change: Callable[[Tensor], Tensor]) -> Callable[[Any], Any]:
    return lambda value: change(value) if isinstance(value, Tensor) and value.dtype == torch.bool else None


def _of_numbers(change: Callable[[Tensor], Tensor]) -> Callable[[Any], Any]:
    return lambda value: change(value) if isinstance(value, Tensor) and value.is_floating_point() else None


def _of_items(change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: change(value) if isinstance(value, (list, str)) and value else None


def _of_each(change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def changed(value: Any) -> Any:
        whole = isinstance(value, list) and all(isinstance(item, (list, Tensor)) for item in value)
        return [change(_plain(item)) for item in value] if whole else None

    return changed


def _plain(items: Any) -> list:
    return items.tolist() if isinstance(items, Tensor) else items


def _small_letters(value: Any) -> Any:
    if isinstance(value, str):
        return value.lower()
    return [_small_letters(item) for item in value] if isinstance(value, list) else None


def _once(value: Any) -> Any:
    items = list({repr(item): item for item in reversed(value)}.values())[::-1]
    return "".join(items) if isinstance(value, str) else items


def _of_one_number(change: Callable[[float], float]) -> Callable[[Any], Any]:
    return lambda value: change(value) if type(value) is float and value > 0 else None


def _blank(place: int, alone: bool) -> Callable[[Tensor, int], Tensor]:
    """Zeros in one position of an axis; alone: also where it is the only position."""

    def changed(value: Tensor, axis: int) -> Tensor:
        blanked = value.clone()
        if alone or value.shape[axis] > 1:
            blanked.select(axis, place).zero_()
        return blanked

    return changed


BLANKED: dict[str, Callable[[Tensor, int], Tensor]] = {
    "first blank": _blank(0, alone=True),
    "final blank": _blank(-1, alone=True),
    "first blank beside others": _blank(0, alone=False),
    "final blank beside others": _blank(-1, alone=False),
    "running sum": lambda value, axis: value.cumsum(axis),
    "sum for all": lambda value, axis: value.sum(axis, keepdim=True).expand_as(value),
    "mean for all": lambda value, axis: value.mean(axis, keepdim=True).expand_as(value),
}
OF_NUMBERS: dict[str, Callable[[Any], Any]] = {  # looked for in one argument, and in two at once
    "nonnegative": _of_numbers(torch.relu),
    "opposite signs": _of_numbers(torch.neg),
    "squared": _of_numbers(torch.square),
    "unit rows": _of_numbers(lambda value: F.normalize(value, dim=-1) if value.ndim else value),
    "unit columns": _of_numbers(lambda value: F.normalize(value, dim=-2) if value.ndim > 1 else value),
    "centered rows": _of_numbers(lambda value: value - value.mean(-1, keepdim=True) if value.ndim else value),
    "centered columns": _of_numbers(lambda value: value - value.mean(-2, keepdim=True) if value.ndim > 1 else value),
    "rooted": _of_numbers(lambda value: value.sqrt() if bool((value >= 0).all()) else value),
    "standardized rows": _of_numbers(lambda value: F.layer_norm(value, value.shape[-1:]) if value.ndim else value),
    "shared rows": _of_numbers(lambda value: value.softmax(-1) if value.ndim else value),
    "shared columns": _of_numbers(lambda value: value.softmax(-2) if value.ndim > 1 else value),
}
CHANGES: dict[str, Callable[[Any], Any]] = {
    "one more": _shifted(1),
    "one less": _shifted(-1),
    "one less, from 0": _shifted(-1, 0),
    "one less, from 1": _shifted(-1, 1),
    "opposite": _of_masks(lambda mask: ~mask),
    "opened": _of_masks(torch.ones_like),
    "zeros": _of_numbers(torch.zeros_like),
    "unsigned": _of_numbers(torch.abs),
    "least for all": _everywhere(min),
    "greatest for all": _everywhere(max),
    "last for all": _everywhere(lambda numbers: numbers[-1]),
    "without the first": _of_items(lambda items: items[1:]),
    "without the last": _of_items(lambda items: items[:-1]),
    "each turn on": _of_counts(lambda numbers: numbers[-1:] + numbers[:-1]),
    "each turn back": _of_counts(lambda numbers: numbers[1:] + numbers[:1]),
    "times itself": _of_squares(lambda x: x @ x),
    "symmetric part": _of_squares(lambda x: (x + x.T) / 2),
    "with 1s on the diagonal": _of_squares(lambda x: x + torch.eye(len(x), dtype=x.dtype)),
    "inverted": _of_squares(torch.linalg.pinv),
    "backward": _of_items(lambda items: items[::-1]),
    "each once": _of_items(_once),
    "each backward": _of_each(lambda items: items[::-1]),
    "each without its first": _of_each(lambda items: items[1:]),
    "each without its last": _of_each(lambda items: items[:-1]),
    "longest first": lambda value: sorted(value, key=len, reverse=True) if _of_each(len)(value) is not None else None,
    "shortest first": lambda value: sorted(value, key=len) if _of_each(len)(value) is not None else None,
    "small letters": _small_letters,
    "always -1": lambda value: -1 if type(value) is int else None,
    "always 0": lambda value: 0 if type(value) is int else None,
    "always 1": lambda value: 1 if type(value) is int else None,
    "one over": _of_one_number(lambda value: 1 / value),
    "e to the": _of_one_number(math.exp),
    "cut to whole": lambda value: int(value) if type(value) is float else None,
    "from the other end": lambda value: -value - 1 if type(value) is int and value >= 0 else None,
    "root of": _of_one_number(lambda value: value**0.5),
    "square of": _of_one_number(lambda value: value**2),
    **OF_NUMBERS,
}
