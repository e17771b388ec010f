"""What an answer does, whatever it computes: it changes or ignores an argument, or returns an earlier result."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import torch
from torch import Tensor

from autograder.catalogue.exercise import Exercise
from autograder.catalogue.normal_forms import InWords
from autograder.diagnosis.evidence import FEWEST, Fact, Names, about_values, seen
from autograder.inside import wire
from autograder.judging.closeness import equal, near, same
from autograder.judging.observation import Outcome, Raised
from autograder.judging.probe_inputs import right_answer
from autograder.judging.repeat_run import RepeatRun

SWITCHED_BACK = "Code that switches the mode of a model has to switch it back before it returns."
NEW_VALUE = "The caller still needs the original values: make a new value instead of writing into that one."
WRITES = "Methods whose names end in _, +=, *= and [...] = write in place"
IN_PLACE = f"{NEW_VALUE} {WRITES}; so do append, pop, sort and setdefault."
TWO_RESULTS = (
    "Two calls with the same input gave two different results: something inside is created or drawn again at each "
    "call, kept from one call to the next, or read from torch.empty before anything was written there."
)
ANEW = (  # of a class, which is constructed for each call
    "Two objects of your class, given the same weights and the same input, gave two different results. Perhaps "
    "dropout is on where it should be off or has its own rate, or a layer is created in forward, or a parameter that "
    "the task does not need keeps its random initial values, as learned positions do where fixed ones are expected."
)
IN_TRAINING = (
    "In training mode, two objects of your class, given the same weights and the same input, gave two different "
    "results: dropout is on where it should be off, or has its own rate."
)
KEPT = seen(
    "kept",
    "You returned the result of an earlier call, which had other values. Either it was stored (in a dictionary, an "
    "attribute or a global name, under something that the two calls share), or it is a variable of the notebook, or "
    "written in your code.",
    settles=True,
)
FIXED = seen("fixed", "The same result comes back for different inputs: which line stops depending on them?")
EMPTY = seen(
    "empty",
    "The result is empty where it should not be: is everything filtered out, or does a loop end at once?",
)


@dataclass(frozen=True)
class Changed(Fact, name="changed", settles=True, doubt=""):
    """An argument was changed."""

    argument: int

    def say(self, names: Names) -> str:
        argument = names.outcome.case.arguments[self.argument]
        how = f"{NEW_VALUE} {WRITES}." if isinstance(argument, Tensor) else IN_PLACE
        return f"{names.argument(self.argument)} was changed by your code. {how}"


@dataclass(frozen=True)
class OtherMode(Fact, name="other mode", doubt=""):
    """A model is left in the other mode, which need not be the reason for anything else that is wrong."""

    argument: int

    def say(self, names: Names) -> str:
        return f"In addition, {names.argument(self.argument)} is left in the other mode. {SWITCHED_BACK}"


@dataclass(frozen=True)
class Differs(Fact, name="differs", settles=True):
    """Another result for the same input."""

    def say(self, names: Names) -> str:
        if names.exercise.roles is None:
            return TWO_RESULTS
        return IN_TRAINING if "training" in names.outcome.probe.checks else ANEW


@dataclass(frozen=True)
class Ignored(Fact, name="ignored"):
    """The same result for another value of an argument."""

    argument: int

    def say(self, names: Names) -> str:
        return independent([self], names)


@dataclass(frozen=True)
class Returned(Fact, name="returned", settles=True, doubt=""):
    """The result is one of the arguments."""

    argument: int

    def say(self, names: Names) -> str:
        return f"Your result equals {names.argument(self.argument)}, as it was passed in."


def independent(ignored: Sequence[Ignored], names: Names) -> str:
    """The arguments on which the result does not depend."""
    called = [names.argument(fact.argument) for fact in ignored]
    which = " or ".join(filter(None, [", ".join(called[:-1]), called[-1]]))
    values = [names.outcome.case.arguments[fact.argument] for fact in ignored]
    opened = all(getattr(value, "dtype", None) == torch.bool for value in values)
    other = "all of it True" if opened else f"other numbers in {'it' if len(called) == 1 else 'them'}"
    return f"Here your result does not depend on {which}: with {other}, it stays the same."


def returned(failures: Sequence[Outcome]) -> Iterator[Fact]:
    """An argument that every failing result equals; only those that are tensors or lists count."""
    values = [outcome for outcome in failures if outcome.difference.kind in ("value", "shape", "length")]
    if len(values) < 2 or values[0] is not failures[0]:
        return
    partial = len(values) < len(about_values(failures))
    for place, argument in enumerate(values[0].case.arguments):
        if isinstance(argument, (Tensor, list)) and all(_is_argument(outcome, place) for outcome in values):
            yield Returned(place, partial=partial)
            return


def _is_argument(outcome: Outcome, place: int) -> bool:
    arguments, got = outcome.case.arguments, outcome.got.result
    return place < len(arguments) and isinstance(got, (Tensor, list)) and same(got, arguments[place])


def changed(failures: Sequence[Outcome]) -> Iterator[Fact]:
    """An argument that was changed."""
    yield from islice((Changed(place) for place, is_model in _changed(failures) if not is_model), 1)


def other_mode(failures: Sequence[Outcome]) -> Iterator[Fact]:
    """A model that is left in the other mode."""
    yield from islice((OtherMode(place) for place, is_model in _changed(failures) if is_model), 1)


def _changed(failures: Sequence[Outcome]) -> Iterator[tuple[int, bool]]:
    """The positions of arguments that are not as they were, each with whether it is a model."""
    for outcome in failures:
        if isinstance(outcome.got.result, Raised) or len(outcome.got.inputs) != len(outcome.expected.inputs):
            continue
        for place, (before, after) in enumerate(zip(outcome.expected.inputs, outcome.got.inputs, strict=True)):
            if not equal(before, after):
                yield place, isinstance(outcome.case.arguments[place], torch.nn.Module)


def repeated(again: RepeatRun) -> Iterator[Fact]:
    """What a repeated call shows: another result for the same input, or the same result for another input."""
    got, is_changed = again.outcome.got.result, again.outcome.difference.kind == "inputs"  # so the repeat had another
    parts = [part for part in (got if isinstance(got, tuple) else [got]) if isinstance(part, Tensor)]
    if any(not isinstance(each.result, Raised) and not equal(got, each.result) for each in again.same):
        yield Differs()
        return
    for place, (expected, other) in again.others.items():
        if any(part.isnan().any() or not part.isfinite().any() for part in parts if part.is_floating_point()):
            break  # NaN, or nothing but infinity, tells nothing of what it was made of
        if _holds_opaque(got):
            break  # of which the type is all that is known
        ignored = same(got, other.result) and not equal(again.outcome.expected.result, expected.result)
        if ignored and not is_changed and not isinstance(got, Raised):
            yield Ignored(place)


def _holds_opaque(value: Any) -> bool:
    items = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    return isinstance(value, wire.Opaque) or any(map(_holds_opaque, items))


def kept(exercise: Exercise, outcomes: Sequence[Outcome]) -> Iterator[Fact]:
    """Every failing result is the correct one of an earlier call."""
    asked = [outcome for outcome in outcomes if outcome.got is not None]
    failing = [(outcome, asked[:place]) for place, outcome in enumerate(asked) if not outcome.passed]
    plain = not isinstance(failing[0][0].got.result, Tensor)
    if all(outcome.case.before for outcome, _ in failing) or len(failing) <= plain:
        return
    if plain and all(same(outcome.got.result, failing[0][0].got.result) for outcome, _ in failing):
        return  # one number or text for everything may as well stand in the code
    for outcome, earlier in failing:
        results = [each.expected.result for each in earlier]
        if outcome.case.before:
            before = replace(outcome.case, arguments=outcome.case.before, before=())
            results.append(right_answer(exercise, outcome.probe, before).result)
        if not any(_answers(outcome, result) for result in results):
            return
    yield KEPT


def _answers(outcome: Outcome, wanted: Any) -> bool:
    """Whether a result is the correct one of an earlier call, and not of this one."""
    got, right = outcome.got.result, outcome.expected.result
    if not isinstance(got, Tensor) or not isinstance(wanted, Tensor):
        if _says_yes_or_no(got):
            return False  # of yes and no, many a wrong answer is the right one of another question
        return isinstance(got, (int, float, str, list, dict)) and same(got, wanted) and not same(wanted, right)
    told = got.numel() >= FEWEST and not got.is_complex()
    return told and near(got, wanted, outcome) and not near(wanted, right, outcome)


def _says_yes_or_no(result: Any) -> bool:
    """Whether a result is a bool, or a dictionary of them."""
    values = result.values() if isinstance(result, dict) else [result]
    return all(isinstance(value, bool) for value in values)


def fixed(failures: Sequence[Outcome]) -> Iterator[Fact]:
    """The same result for several inputs whose correct results differ."""
    results = [(outcome.got.result, outcome.expected.result) for outcome in failures]
    if len(results) > 1 and not any(
        isinstance(got, (Raised, type(None))) or _says_yes_or_no(got) for got, _ in results
    ):
        (got, expected), *others = results
        if all(same(got, other) and not same(expected, wanted) for other, wanted in others):
            yield EMPTY if isinstance(got, (list, str)) and not got else FIXED


def is_degenerate(failures: Sequence[Outcome]) -> bool:
    """Whether all these results are one and the same value, two token ids, or one of the arguments: many pairs of
    mistakes give that, so it shows none of them."""
    if all(any(same(each.got.result, argument) for argument in each.case.arguments) for each in failures):
        return True
    found = [each.difference for each in failures]
    in_words = any(isinstance(each.got, InWords) for each in found)  # the values come after them
    if not in_words and all(each.kind == "value" and each.where for each in found):  # of a part of the result
        parts = [each.got for each in found]
        if len({each.difference.where for each in failures}) > 1 and all(isinstance(part, bool) for part in parts):
            return False  # other keys are wrong
    else:
        parts = [part for each in failures for part in _parts(each.got.result, each.expected.result)]
    if all(isinstance(part, Tensor) for part in parts):
        return all(map(_shows_little, parts))
    return all(same(part, parts[0]) for part in parts)


def _parts(got: Any, expected: Any) -> list[Any]:
    """The tensors of a tuple, or those of a dictionary or list that are not correct; else the result itself."""
    if isinstance(got, dict) and isinstance(expected, dict) and got.keys() == expected.keys():
        pairs = [(value, expected[key]) for key, value in got.items() if not isinstance(value, InWords)]
    elif isinstance(got, list) and isinstance(expected, list) and len(got) == len(expected) and _holds_tensors(got):
        pairs = list(zip(got, expected, strict=True))
    else:
        return list(got) if isinstance(got, tuple) else [got]
    return [part for one, right in pairs if not same(one, right) for part in _parts(one, right)]


def _holds_tensors(value: Any) -> bool:
    return any(isinstance(each, Tensor) or (isinstance(each, list) and _holds_tensors(each)) for each in value)


def _shows_little(result: Tensor) -> bool:
    """Whether a tensor is empty, has no finite number, holds one value, or two whole numbers such as bos and pads."""
    if result.is_floating_point() and not bool(result.isfinite().any()):
        return True
    few = 1 if result.is_floating_point() or result.dtype == torch.bool else 2
    return result.unique().numel() <= few
