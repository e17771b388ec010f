"""Results with an axis of the wrong length: which length it equals."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from autograder.diagnosis.evidence import Fact, Names
from autograder.judging.observation import Outcome

FEWEST = 2  # failures, of different lengths, that must bear it out


LENGTHS = {  # of what has another length than it should
    "axis": "as long as axis {1} of {0}",
    "count": "as long as {0} has items",
    "together": "as long as all items of {0} together, end to end",
    "fixed": "{1} long wherever it is wrong",
    "multiple": "rounded up to a multiple of {1}",
    "mean": "as long as the items of {0} are on average",
    "shortest": "as long as the shortest item of {0}",
    "first": "as long as the first item of {0}",
    "last": "as long as the last item of {0}",
    "value": "as long as {0} says",
    "one more": "one longer than {0} says",
    "one less": "one shorter than {0} says",
    "twice": "twice as long as it should be",
}


@dataclass(frozen=True)
class Length(Fact, name="size"):
    """The length of an axis of the result, in terms of an argument. how: see LENGTHS; second: an axis of the argument,
    or a multiple."""

    axis: int
    how: str
    argument: int = 0
    second: int = 0

    def say(self, names: Names) -> str:
        length = LENGTHS[self.how].format(names.argument(self.argument), self.second)
        return f"Axis {self.axis} of your result is {length}."


def about_lengths(failures: Sequence[Outcome]) -> Iterator[Fact]:
    """The length that one axis has in every failure, if all other axes are correct."""
    pairs = [(outcome.got.result, outcome.expected.result) for outcome in failures]
    if len(pairs) < FEWEST or not all(isinstance(x, Tensor) for pair in pairs for x in pair):
        return
    wrong = [_wrong_axes(got, expected) for got, expected in pairs]
    if len(wrong[0]) != 1 or any(axes != wrong[0] for axes in wrong):
        return
    (axis,) = wrong[0]
    lengths = [got.shape[axis] for got, _ in pairs]
    wanted = [expected.shape[axis] for _, expected in pairs]
    if len(set(lengths)) < FEWEST:
        if len(set(wanted)) >= FEWEST:
            yield Length(axis, "fixed", second=lengths[0])
        return
    candidates = [dict(_lengths(outcome.case.arguments)) for outcome in failures]
    for what in candidates[0]:
        if all(each.get(what) == length for each, length in zip(candidates, lengths, strict=True)):
            place, how, second = what
            yield Length(axis, how, place, second)
            return
    together = list(zip(lengths, wanted, strict=True))
    if all(length == 2 * right for length, right in together):
        yield Length(axis, "twice")
    for multiple in (16, 8, 4, 2):
        if all(length == -(-right // multiple) * multiple for length, right in together):
            yield Length(axis, "multiple", second=multiple)
            return


def _wrong_axes(got: Tensor, expected: Tensor) -> list[int]:
    if got.ndim != expected.ndim:
        return []
    return [axis for axis in range(got.ndim) if got.shape[axis] != expected.shape[axis]]


def _lengths(arguments: tuple) -> Iterator[tuple[tuple[int, str, int], int]]:
    """All lengths among the arguments: ((position of the argument, how, its axis), length)."""
    for place, value in enumerate(arguments):
        if isinstance(value, Tensor):
            yield from (((place, "axis", axis), size) for axis, size in enumerate(value.shape))
        elif isinstance(value, list) and value:
            items = [size for item in value if (size := _length(item)) is not None]
            if len(items) == len(value):
                yield (place, "together", 0), sum(items)
                yield (place, "shortest", 0), min(items)
                yield (place, "mean", 0), round(sum(items) / len(items))
                yield (place, "first", 0), items[0]
                yield (place, "last", 0), items[-1]
            yield (place, "count", 0), len(value)
        elif type(value) is int:
            yield from (((place, how, 0), value + by) for how, by in (("value", 0), ("one more", 1), ("one less", -1)))


def _length(item: Any) -> int | None:
    return len(item) if isinstance(item, (list, str)) or (isinstance(item, Tensor) and item.ndim) else None
