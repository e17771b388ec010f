"""Results with an axis of the wrong length: which length it equals."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from autograder.diagnosis.evidence import Fact, Names
from autograder.judging.observation import Outcome

FEWEST = 2  # failures, of different lengths, that must bear it out


LENGTHS = {  # of what has another length than it should
    "axis": "as long as axis {1} of {0}",
    "product": "as long as axes {1} and {2} of {0} multiplied",
    "times": "as long as axis {1} of {0} times {2}",
    "divided": "as long as axis {1} of {0} divided by {2}",
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
    or a multiple; third: a further axis, or a further argument, which is a number."""

    axis: int
    how: str
    argument: int = 0
    second: int = 0
    third: int = 0

    def say(self, names: Names) -> str:
        third = names.argument(self.third) if self.how in ("times", "divided") else self.third
        length = LENGTHS[self.how].format(names.argument(self.argument), self.second, third)
        written = ", though its length should vary: is a number written into the code?"
        return f"Axis {self.axis} of your result is {length}{written if self.how == 'fixed' and self.second else '.'}"


@dataclass(frozen=True)
class Lengths(Fact, name="sizes"):
    """The lengths of several axes of the result."""

    each: tuple[Length, ...]

    def say(self, names: Names) -> str:
        return " ".join(length.say(names) for length in self.each)


def about_lengths(failures: Sequence[Outcome]) -> Iterator[Fact]:
    """The lengths that the wrong axes have in every failure, if these are the same axes."""
    pairs = [(outcome.got.result, outcome.expected.result) for outcome in failures]
    if len(pairs) < FEWEST or not all(isinstance(x, Tensor) for pair in pairs for x in pair):
        return
    wrong = [_wrong_axes(got, expected) for got, expected in pairs]
    if not wrong[0] or any(axes != wrong[0] for axes in wrong):
        return
    if len(wrong[0]) == 1:
        yield from _about_axis(failures, wrong[0][0])
        return
    if all(sorted(got.shape) == sorted(expected.shape) for got, expected in pairs):
        return  # axes are exchanged
    each = [next(_about_axis(failures, axis), None) for axis in wrong[0]]
    told = tuple(fact for fact in each if fact is not None)
    if len(told) > 1:
        yield Lengths(told)
    else:
        yield from told


def _about_axis(failures: Sequence[Outcome], axis: int) -> Iterator[Length]:
    """The length that one axis has in every failure."""
    lengths = [outcome.got.result.shape[axis] for outcome in failures]
    wanted = [outcome.expected.result.shape[axis] for outcome in failures]
    if len(set(lengths)) < FEWEST:
        if len(set(wanted)) >= FEWEST:
            yield Length(axis, "fixed", second=lengths[0])
        return
    arguments = [outcome.case.arguments for outcome in failures]
    if (what := same_length(arguments, lengths, _lengths)) is not None:
        yield Length(axis, what[1], what[0], *what[2:])
        return
    together = list(zip(lengths, wanted, strict=True))
    if all(length == 2 * right for length, right in together):
        yield Length(axis, "twice")
    for multiple in (16, 8, 4, 2):
        if all(length == -(-right // multiple) * multiple for length, right in together):
            yield Length(axis, "multiple", second=multiple)
            return
    if (what := same_length(arguments, lengths, _combined)) is not None:
        yield Length(axis, what[1], what[0], *what[2:])


def same_length(
    arguments: Sequence[tuple], lengths: Sequence[int], kinds: Callable[[tuple], Iterator[tuple[tuple, int]]]
) -> tuple | None:
    """What among the arguments has the given length in every check; None if nothing has."""
    candidates = [dict(kinds(each)) for each in arguments]
    for what in candidates[0]:
        if all(each.get(what) == length for each, length in zip(candidates, lengths, strict=True)):
            return what
    return None


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


def _combined(arguments: tuple) -> Iterator[tuple[tuple[int, str, int, int], int]]:
    """Products and quotients of two lengths of an argument, or of a length and an argument that is a number."""
    numbers = [(place, value) for place, value in enumerate(arguments) if type(value) is int and value > 1]
    for place, value in enumerate(arguments):
        sizes = [*enumerate(value.shape)] if isinstance(value, Tensor) else []
        for one, size in sizes:
            for two, other in sizes[one + 1 :]:
                yield (place, "product", one, two), size * other
            for number, factor in numbers:
                yield (place, "times", one, number), size * factor
                if size % factor == 0:
                    yield (place, "divided", one, number), size // factor


def _length(item: Any) -> int | None:
    return len(item) if isinstance(item, (list, str)) or (isinstance(item, Tensor) and item.ndim) else None
