"""Patterns of lists, texts and plain numbers: items missing or too many, another order, off by one amount."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import isclose, isfinite
from typing import Any

from autograder.catalogue.numbers import number
from autograder.diagnosis.evidence import Fact, Names, Seen, seen
from autograder.diagnosis.output_patterns.scale import Offset, Scaled, four_digits
from autograder.judging.closeness import same
from autograder.judging.observation import Outcome


def _first_of_each(items: list) -> list:
    first: dict[str, Any] = {}
    for item in items:
        first.setdefault(repr(item), item)
    return list(first.values())


def _kinds(items: list) -> set[type]:
    return set(map(type, items))


def _in_order(few: list, many: list) -> bool:
    """Whether the few items, two or more, are a subsequence of the many."""
    rest = iter(many)
    return len(few) >= 2 and all(any(same(item, other) for other in rest) for item in few)


ITEMS: dict[Seen, Callable[[list, list], bool]] = {  # the first that holds is said
    seen("items reversed", "These are the correct items in the opposite order.", exact=True): lambda got, expected: (
        same(got, expected[::-1])
    ),
    seen(
        "first item missing", "The first item is missing; the others are correct.", exact=True
    ): lambda got, expected: same(got, expected[1:]),
    seen("last item missing", "The last item is missing; the others are correct.", exact=True): lambda got, expected: (
        same(got, expected[:-1])
    ),
    seen("ends early", "Your result is correct as far as it goes, but it ends too early."): lambda got, expected: (
        len(got) < len(expected) and same(got, expected[: len(got)])
    ),
    seen(
        "an item too many in front", "There is one item too many in front; everything after it is correct."
    ): lambda got, expected: same(got[1:], expected),
    seen(
        "an item too many at the end", "There is one item too many at the end; everything before it is correct."
    ): lambda got, expected: same(got[:-1], expected),
    seen("goes too far", "Your result begins correctly, and then goes on too long."): lambda got, expected: (
        len(got) > len(expected) and same(got[: len(expected)], expected)
    ),
    seen("repeated items lost", "Items that occur several times were returned only once."): lambda got, expected: same(
        got, _first_of_each(expected)
    ),
    seen(
        "items of another kind",
        "None of the items of your list has the type of the correct ones. What should each of them be?",
    ): lambda got, expected: bool(got) and bool(expected) and not _kinds(got) & _kinds(expected),
    seen(
        "items missing", "Some items are missing; the returned ones are correct and in the correct order."
    ): lambda got, expected: len(got) < len(expected) and _in_order(got, expected),
    seen(
        "items too many", "All correct items are there, in the correct order, but there are extra ones."
    ): lambda got, expected: len(got) > len(expected) and _in_order(expected, got),
    seen("another order", "These are the correct items in a different order."): lambda got, expected: (
        sorted(map(repr, got)) == sorted(map(repr, expected))
    ),
}


def about_items(failures: Sequence[Outcome]) -> Iterator[Fact]:
    """How the items of a list or the letters of a string are related to the correct ones, in every failure."""
    pairs = [(outcome.got.result, outcome.expected.result) for outcome in failures]
    if not pairs or not all(isinstance(x, (list, str)) and type(x) is type(y) for x, y in pairs):
        return
    told = [(list(got), list(expected)) for got, expected in pairs]
    for fact, holds in ITEMS.items():
        if all(holds(got, expected) for got, expected in told):
            yield replace(fact, sure=len(told) > 1)
            return


# --- plain numbers ----------------------------------------------------------------------------------------------------

WHOLE = seen(
    "whole",
    "You returned whole numbers where the correct values are not whole: was the result rounded, or cut by int or //?",
)


@dataclass(frozen=True)
class NumberOffset(Fact, name="offset", exact=True):
    """A number is too large by the same amount wherever it is wrong."""

    amount: float

    def say(self, names: Names) -> str:
        more = "by the same amount" if names.secret else f"by {abs(self.amount):g}"
        return f"Wherever your number is wrong, it is too {'large' if self.amount > 0 else 'small'} {more}."

    def in_a_setting(self) -> Fact:
        return Offset(self.amount, sure=self.sure)


@dataclass(frozen=True)
class NumberScaled(Fact, name="scaled", exact=True):
    """A number is the correct one times the same factor wherever it is wrong."""

    factor: float

    def say(self, names: Names) -> str:
        if self.factor == 0:
            return "Wherever your number is wrong, it is 0."
        if names.secret:
            return "Wherever your number is wrong, it is a multiple of the correct one, always by the same factor."
        return f"Wherever your number is wrong, it is {number(self.factor)} times the correct one."

    def in_a_setting(self) -> Fact:
        return Scaled(self.factor, sure=self.sure)


def _all_near(numbers: Sequence[float], rtol: float = 1e-5) -> bool:
    """Whether numbers equal one up to rounding, however small they are."""
    return all(isclose(number, numbers[0], rel_tol=rtol) for number in numbers)


def about_numbers(failures: Sequence[Outcome]) -> Iterator[Fact]:
    """Numbers that are off by the same amount or factor in at least two failures."""
    pairs = [(outcome.got.result, outcome.expected.result) for outcome in failures]
    if len(pairs) < 2 or not all(type(x) in (int, float) and isfinite(x) for pair in pairs for x in pair):
        return
    if all(got == round(got) and expected != round(expected) and abs(got - expected) <= 1 for got, expected in pairs):
        yield WHOLE
    elif _all_near(gaps := [got - expected for got, expected in pairs]):
        yield NumberOffset(gaps[0])
    elif all(y for _, y in pairs) and _all_near(factors := [got / expected for got, expected in pairs], 1e-4):
        yield NumberScaled(four_digits(factors[0]))
