"""Ways to change an argument: each gives the changed one, or None where it is of another kind."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor


class Change(NamedTuple):
    """A change of an argument. words: describes the changed argument, such as "{name} read backward"."""

    made: Callable[..., Any]
    words: str


def changed_by(change: Change, value: Any) -> Any:
    """The changed argument; None if the change does not apply, or has no effect."""
    changed = change.made(value)
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
    """A change of several integers, in a list or a tensor."""

    def changed(value: Any) -> Any:
        numbers = value.tolist() if isinstance(value, Tensor) and value.ndim == 1 else value
        whole = isinstance(numbers, list) and len(numbers) > 1 and all(type(number) is int for number in numbers)
        if not whole:
            return None
        return torch.tensor(change(numbers), dtype=value.dtype) if isinstance(value, Tensor) else change(numbers)

    return changed


def _everywhere(choose: Callable[[list], Any]) -> Callable[[Any], Any]:
    """All of several integers replaced by one of them."""
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
    """Set one position of an axis to zero; alone: also if it is the only position."""

    def changed(value: Tensor, axis: int) -> Tensor:
        blanked = value.clone()
        if alone or value.shape[axis] > 1:
            blanked.select(axis, place).zero_()
        return blanked

    return changed


def _hidden(place: int) -> Callable[[Tensor, int], Tensor]:
    """Set one position of an axis to False."""

    def changed(value: Tensor, axis: int) -> Tensor:
        hidden = value.clone()
        hidden.select(axis, place).fill_(False)
        return hidden

    return changed


BLANKED: dict[str, Change] = {
    "first blank": Change(_blank(0, alone=True), "{name} with 0 in its first {line}: it has no effect"),
    "final blank": Change(_blank(-1, alone=True), "{name} with 0 in its last {line}: it has no effect"),
    "first blank beside others": Change(_blank(0, alone=False), "{name} with 0 in its first {line}: it has no effect"),
    "final blank beside others": Change(_blank(-1, alone=False), "{name} with 0 in its last {line}: it has no effect"),
    "running sum": Change(lambda value, axis: value.cumsum(axis), "{name} with running sums of its {lines}"),
    "sum for all": Change(
        lambda value, axis: value.sum(axis, keepdim=True).expand_as(value),
        "{name} with the sum of its {lines} at every position",
    ),
    "mean for all": Change(
        lambda value, axis: value.mean(axis, keepdim=True).expand_as(value),
        "{name} with the mean of its {lines} at every position",
    ),
}
ALONG_AN_AXIS: dict[str, Change] = {  # of a tensor, and one of its axes
    "first for all": Change(
        lambda value, axis: value.narrow(axis, 0, 1).expand_as(value), "{name} with its first {line} at every position"
    ),
    "final for all": Change(
        lambda value, axis: value.narrow(axis, value.shape[axis] - 1, 1).expand_as(value),
        "{name} with its last {line} at every position",
    ),
    "moved on": Change(
        lambda value, axis: value.roll(1, axis),
        "{name} with each {line} moved on by one position, and the last one in front",
    ),
    "moved back": Change(
        lambda value, axis: value.roll(-1, axis),
        "{name} with each {line} moved back by one position, and the first one at the end",
    ),
    "first hidden": Change(
        _hidden(0), "{name} with False at its first position along axis {axis}: that position is never used"
    ),
    "last hidden": Change(
        _hidden(-1), "{name} with False at its last position along axis {axis}: that position is never used"
    ),
    "flipped": Change(lambda value, axis: value.flip(axis), "{name} in the opposite order along axis {axis}"),
    **BLANKED,
}
OF_NUMBERS: dict[str, Change] = {  # looked for in one argument, and in two at once
    "nonnegative": Change(_of_numbers(torch.relu), "{name} with 0 instead of its negative numbers"),
    "opposite signs": Change(_of_numbers(torch.neg), "{name} with all its signs changed"),
    "squared": Change(_of_numbers(torch.square), "{name} with all its numbers squared"),
    "unit rows": Change(
        _of_numbers(lambda value: F.normalize(value, dim=-1) if value.ndim else value),
        "{name} with every row of it normalized to length 1",
    ),
    "unit columns": Change(
        _of_numbers(lambda value: F.normalize(value, dim=-2) if value.ndim > 1 else value),
        "{name} with every column of it normalized to length 1",
    ),
    "centered rows": Change(
        _of_numbers(lambda value: value - value.mean(-1, keepdim=True) if value.ndim else value),
        "{name} with the mean of every row subtracted from it",
    ),
    "centered columns": Change(
        _of_numbers(lambda value: value - value.mean(-2, keepdim=True) if value.ndim > 1 else value),
        "{name} with the mean of every column subtracted from it",
    ),
    "rooted": Change(
        _of_numbers(lambda value: value.sqrt() if bool((value >= 0).all()) else value),
        "{name} with the root of all its numbers",
    ),
    "standardized rows": Change(
        _of_numbers(lambda value: F.layer_norm(value, value.shape[-1:]) if value.ndim else value),
        "{name} with every row of it normalized to mean 0 and variance 1",
    ),
    "shared rows": Change(
        _of_numbers(lambda value: value.softmax(-1) if value.ndim else value),
        "{name} with a softmax over every row of it first",
    ),
    "shared columns": Change(
        _of_numbers(lambda value: value.softmax(-2) if value.ndim > 1 else value),
        "{name} with a softmax over every column of it first",
    ),
}
CHANGES: dict[str, Change] = {
    "one more": Change(_shifted(1), "{name} + 1 instead of {name}"),
    "one less": Change(_shifted(-1), "{name} - 1 instead of {name}"),
    "one less, from 0": Change(_shifted(-1, 0), "{name} - 1 instead of {name}, or 0 where that is below 0"),
    "one less, from 1": Change(_shifted(-1, 1), "{name} - 1 instead of {name}, or 1 where that is below 1"),
    "opposite": Change(_of_masks(lambda mask: ~mask), "the opposite of {name}, with True and False exchanged"),
    "opened": Change(_of_masks(torch.ones_like), "{name} with True everywhere: what it should hide still takes part"),
    "zeros": Change(_of_numbers(torch.zeros_like), "{name} with nothing but zeros in it: its numbers have no effect"),
    "unsigned": Change(_of_numbers(torch.abs), "{name} without its minus signs"),
    "least for all": Change(_everywhere(min), "the smallest number of {name} at each of its positions"),
    "greatest for all": Change(_everywhere(max), "the largest number of {name} at each of its positions"),
    "last for all": Change(
        _everywhere(lambda numbers: numbers[-1]), "the last number of {name} at every position of it"
    ),
    "without the first": Change(_of_items(lambda items: items[1:]), "{name} without its first item"),
    "without the last": Change(_of_items(lambda items: items[:-1]), "{name} without its last item"),
    "each turn on": Change(
        _of_counts(lambda numbers: numbers[-1:] + numbers[:-1]),
        "{name} with its numbers moved on by one position, the last one in front",
    ),
    "each turn back": Change(
        _of_counts(lambda numbers: numbers[1:] + numbers[:1]),
        "{name} with its numbers moved back by one position, the first one at the end",
    ),
    "times itself": Change(
        _of_squares(lambda x: x @ x), "{name} multiplied by itself instead of {name}: two steps where one is meant"
    ),
    "symmetric part": Change(
        _of_squares(lambda x: (x + x.T) / 2), "the mean of {name} and its transpose instead of {name}"
    ),
    "with 1s on the diagonal": Change(
        _of_squares(lambda x: x + torch.eye(len(x), dtype=x.dtype)), "{name} with 1 more on its diagonal"
    ),
    "inverted": Change(_of_squares(torch.linalg.pinv), "the inverse of {name} instead of {name}"),
    "backward": Change(_of_items(lambda items: items[::-1]), "{name} read backward"),
    "each once": Change(_of_items(_once), "{name} with what occurs again left out"),
    "each backward": Change(_of_each(lambda items: items[::-1]), "{name} with every sequence in it read backward"),
    "each without its first": Change(
        _of_each(lambda items: items[1:]), "{name} with the first item of every sequence left out"
    ),
    "each without its last": Change(
        _of_each(lambda items: items[:-1]), "{name} with the last item of every sequence left out"
    ),
    "longest first": Change(
        lambda value: sorted(value, key=len, reverse=True) if _of_each(len)(value) is not None else None,
        "{name} sorted by length, the longest first",
    ),
    "shortest first": Change(
        lambda value: sorted(value, key=len) if _of_each(len)(value) is not None else None,
        "{name} sorted by length, the shortest first",
    ),
    "small letters": Change(_small_letters, "{name} in small letters"),
    "always -1": Change(lambda value: -1 if type(value) is int else None, "-1 instead of {name}, whatever {name} is"),
    "always 0": Change(lambda value: 0 if type(value) is int else None, "0 instead of {name}, whatever {name} is"),
    "always 1": Change(lambda value: 1 if type(value) is int else None, "1 instead of {name}, whatever {name} is"),
    "one over": Change(_of_one_number(lambda value: 1 / value), "1 / {name} instead of {name}"),
    "e to the": Change(_of_one_number(math.exp), "e to the power of {name} instead of {name}"),
    "cut to whole": Change(lambda value: int(value) if type(value) is float else None, "{name} cut to a whole number"),
    "from the other end": Change(
        lambda value: -value - 1 if type(value) is int and value >= 0 else None,
        "-{name} - 1 instead of {name}: the axis was counted from the other end",
    ),
    "root of": Change(_of_one_number(lambda value: value**0.5), "the root of {name} instead of {name}"),
    "square of": Change(_of_one_number(lambda value: value**2), "the square of {name} instead of {name}"),
    **OF_NUMBERS,
}
