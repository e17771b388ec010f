"""Finds how a wrong result was computed: the right one times the root of a size or plus an argument; of plain numbers,
the formula itself. Each holds for every probe that it covers, and names only arguments and axes.
"""

import inspect
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, combinations_with_replacement
from typing import Any

import torch
from torch import Tensor

from autograder.catalogue.exercise import Exercise
from autograder.diagnosis.evidence import Fact, Names
from autograder.diagnosis.known_mistakes import setting, settings
from autograder.diagnosis.output_patterns.pairs import tensors
from autograder.inside import wire
from autograder.judging.closeness import near
from autograder.judging.observation import Outcome

FEWEST = 2  # failures that must bear it out
QUESTIONS = 3  # that a formula must answer, with different numbers
TELLING = 1000  # what a number of a sum of two terms must come to, since small ones agree by chance
POWERS = {
    0.5: "multiplied by the square root of",
    -0.5: "divided by the square root of",
    1.0: "multiplied by",
    -1.0: "divided by",
    2.0: "multiplied by the square of",
    -2.0: "divided by the square of",
}
COEFFICIENTS = (Fraction(1), Fraction(2), Fraction(3), Fraction(4), Fraction(1, 2))


@dataclass(frozen=True)
class Formula(Fact, name="formula"):
    """How the result was computed. sentence: with slots for the argument's name and its axis."""

    sentence: str
    argument: int = 0
    argument_axis: int = 0

    def say(self, names: Names) -> str:
        return self.sentence.format(names.argument(self.argument), self.argument_axis)


def about_formulas(failures: Sequence[Outcome]) -> Iterator[Fact]:
    """How an argument or its sizes were applied to the correct tensor, in every failure."""
    found = [tensors(outcome) for outcome in failures]
    pairs = [pair for pair in found if pair is not None and pair[0].shape == pair[1].shape and pair[0].numel()]
    if len(pairs) == len(found) >= FEWEST and all(bool(got.isfinite().all()) for got, _, _ in pairs):
        yield from _sizes(pairs)
        yield from _arguments(pairs)


def _sizes(pairs: Sequence[tuple[Tensor, Tensor, Outcome]]) -> Iterator[Fact]:
    """The correct result times a power of a size, the same power for different sizes."""
    factors = []
    for got, expected, outcome in pairs:
        largest = expected.abs().flatten().argmax()
        whole = float(expected.flatten()[largest])
        factor = float(got.flatten()[largest]) / whole if whole else 0.0
        if factor <= 0 or not near(got, factor * expected, outcome):
            return
        factors.append(factor)
    for place, value in enumerate(pairs[0][2].case.arguments):
        for axis in range(value.ndim) if isinstance(value, Tensor) else ():
            found = [_size(outcome, place, axis) for _, _, outcome in pairs]
            sizes = [size for size in found if size is not None]
            for power, how in POWERS.items() if sizes == found and len(set(sizes)) >= FEWEST else ():
                if all(math.isclose(size**power, f, rel_tol=1e-3) for size, f in zip(sizes, factors, strict=True)):
                    said = f"Every number is the correct one, {how} the size of {{0}} along axis {{1}}."
                    yield Formula(said, place, axis)


def _size(outcome: Outcome, place: int, axis: int) -> int | None:
    value = outcome.case.arguments[place] if place < len(outcome.case.arguments) else None
    return value.shape[axis] if isinstance(value, Tensor) and axis < value.ndim else None


def _arguments(pairs: Sequence[tuple[Tensor, Tensor, Outcome]]) -> Iterator[Fact]:
    """The correct result plus, minus or times an argument, or a reduction of it along an axis."""
    got, expected, outcome = pairs[0]
    for key, part in _parts(outcome, expected).items():
        for how, made in _made(expected, part).items():
            if near(got, made, outcome) and all(_holds(pair, key, how) for pair in pairs[1:]):
                place, what, axis = key
                yield Formula(f"Your result is the correct one {how} {what}.", place, axis)


def _holds(pair: tuple[Tensor, Tensor, Outcome], key: tuple[int, str, int], how: str) -> bool:
    got, expected, outcome = pair
    part = _parts(outcome, expected).get(key)
    return part is not None and near(got, _made(expected, part)[how], outcome)


def _made(expected: Tensor, part: Tensor) -> dict[str, Tensor]:
    return {
        "plus": expected + part,
        "minus": expected - part,
        "times": expected * part,
        "divided by": expected / part,
    }


def _parts(outcome: Outcome, expected: Tensor) -> dict[tuple[int, str, int], Tensor]:
    """The tensors that can be combined with the correct result: (position of the argument, words for it, an axis) ->
    numbers."""
    parts: dict[tuple[int, str, int], Tensor] = {}
    for place, value in enumerate(outcome.case.arguments):
        whole = isinstance(value, list) and value and all(type(item) is int for item in value)
        numbers = torch.tensor(value) if whole else value
        if not isinstance(numbers, Tensor) or numbers.is_complex() or numbers.dtype == torch.bool:
            continue
        numbers = numbers.detach().to(torch.float64)
        if numbers.shape == expected.shape:
            parts[place, "{0}", 0] = numbers
        elif numbers.ndim == 1 < expected.ndim and len(numbers) == expected.shape[0]:
            parts[place, "{0}, one number of it for each row", 0] = numbers.view(-1, *[1] * (expected.ndim - 1))
        elif numbers.ndim == expected.ndim + 1 and numbers.numel():
            for axis in range(numbers.ndim):
                if numbers.shape[:axis] + numbers.shape[axis + 1 :] == expected.shape:
                    parts[place, "the first slice of {0} along axis {1}", axis] = numbers.select(axis, 0)
                    parts[place, "the last slice of {0} along axis {1}", axis] = numbers.select(axis, -1)
                    parts[place, "the sum of {0} along axis {1}", axis] = numbers.sum(axis)
                    parts[place, "the mean of {0} along axis {1}", axis] = numbers.mean(axis)
    return parts


# --- plain numbers ----------------------------------------------------------------------------------------------------


def formula(exercise: Exercise, outcomes: Sequence[Outcome]) -> list[Fact]:
    """The formula of integer arguments that an answer computes, if every probe in the first failure's setting is
    consistent with it."""
    asked = [outcome for outcome in outcomes if outcome.got is not None]
    failed = next(outcome for outcome in asked if not outcome.passed)
    names = settings(exercise, asked)
    where = [setting(exercise, failed.case, name) for name in names]
    here = [o for o in asked if [setting(exercise, o.case, name) for name in names] == where]
    here = [o for o in here if not isinstance(o.got.result, wire.Opaque)]  # as an integer of more than 64 bits
    tables = [_whole_numbers(exercise, outcome) for outcome in here]
    plain = all(type(outcome.got.result) is int and type(outcome.expected.result) is int for outcome in here)
    variables = [name for name in tables[0] if len({table[name] for table in tables}) > 1] if tables else []
    different = len({tuple(table.items()) for table in tables}) if plain and variables else 0
    large = plain and min((abs(outcome.got.result) for outcome in here), default=0) >= TELLING
    if different < (FEWEST if large else QUESTIONS):
        return []
    got = tuple(Fraction(outcome.got.result) for outcome in here)
    right = tuple(Fraction(outcome.expected.result) for outcome in here)
    if len(set(got)) < FEWEST:
        return []
    terms = _terms(variables, tables)
    said = terms.get(got)
    if said is None and different >= QUESTIONS and max(map(abs, got)) >= TELLING:
        said = _right_and(terms, got, right) or _sum(terms, got)
    place = [(w if w[1] else (w[0], "", None)) for w in where]
    confined = next((w for w in place if w[1]), place[0] if place else ())
    return [Formula(f"Your result is {said}.", where=confined)] if said else []


def _right_and(terms: dict[tuple, str], got: tuple, right: tuple) -> str | None:
    for sign, word in ((1, "plus"), (-1, "minus")):
        rest = tuple(sign * (one - other) for one, other in zip(got, right, strict=True))
        if rest in terms:
            return f"the correct number {word} {terms[rest]}"
    return None


def _sum(terms: dict[tuple, str], got: tuple) -> str | None:
    for values, words in terms.items():
        rest = tuple(one - other for one, other in zip(got, values, strict=True))
        if rest == values:
            number, times, factors = words.partition(" * ")
            return f"{2 * int(number)} * {factors}" if times and number.isdecimal() else f"2 * {words}"
        if rest in terms:
            return f"{words} + {terms[rest]}"
    return None


def _terms(variables: Sequence[str], tables: Sequence[dict[str, int]]) -> dict[tuple, str]:
    """The value of each product of powers in every probe, the simplest first."""
    found: dict[tuple, str] = {}
    for factors in (each for degree in range(1, 5) for each in combinations_with_replacement(variables, degree)):
        values = tuple(Fraction(math.prod(table[name] for name in factors)) for table in tables)
        for coefficient in COEFFICIENTS:
            number = [] if coefficient == 1 else ["half of" if coefficient < 1 else f"{coefficient} *"]
            words = " ".join([*number, " * ".join(factors)])
            found.setdefault(tuple(coefficient * value for value in values), words)
    return found


def _whole_numbers(exercise: Exercise, outcome: Outcome) -> dict[str, int]:
    """The integer arguments, by name, including those with a default; and the comparison of each two."""
    reference: Any = exercise.reference[outcome.case.function or exercise.names[0]]
    bound = inspect.signature(reference).bind(*outcome.case.arguments)
    bound.apply_defaults()
    numbers = {name: value for name, value in bound.arguments.items() if type(value) is int}
    for (one, first), (other, second) in combinations(list(numbers.items()), 2):
        numbers[f"|{one} - {other}|"] = abs(first - second)
        numbers[f"max({one}, {other})"] = max(first, second)
        numbers[f"min({one}, {other})"] = min(first, second)
    return numbers
