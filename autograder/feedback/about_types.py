"""Sentences about a result of another type, dtype or shape than the expected one."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from autograder.catalogue.exercise import Exercise
from autograder.inside import wire
from autograder.judging.observation import Difference, Outcome, Part

SHAPE = "Compare the two shapes, axis by axis: which ones are missing, which are too many, which are exchanged?"
KEPT = "The result should keep the dtype of its input. Where does a different one come in?"
BOOLEAN = "A boolean tensor is expected: True or False in every position."
NEW_INTEGERS = (
    "Nothing in the input has the dtype that is expected here. Look at where your code makes tensors: from whole "
    "numbers, torch.arange and torch.tensor make int64."
)
NEW_FLOATS = (
    "Nothing in the input has the dtype that is expected here. Look at where your code makes tensors: torch.zeros, "
    "torch.ones, torch.empty and every division make floats."
)
EVERY_PAIR = "Did every item of one argument meet every item of the other, instead of its counterpart?"
HALF = "float32 or float64 is expected, and this dtype keeps about three digits at most. Which line converts to it?"
MADE_BY = {
    "coroutine": "A function that begins with `async def` returns a coroutine when it is called. Begin it with `def`.",
    "generator": "A function with a `yield` returns a generator when it is called. Return the result with `return`.",
}
FUNCTIONS = ("builtin_function_or_method", "function", "method")
SINGLE = (
    "The result keeps the dtype of its input. Most often float32 comes from .float(), or from a tensor created without "
    "a dtype: torch.zeros, torch.empty, torch.tensor of plain numbers."
)
OTHER_DTYPES = {
    torch.bool: "The result keeps the dtype of its input. A comparison gives True and False.",
    torch.int64: "The result keeps the dtype of its input. Whole numbers come from argmax, one_hot, a count, and "
    "torch.tensor of whole numbers.",
}


def about_dtype(outcome: Outcome) -> str:
    """Return where another dtype may come from."""
    wanted, got = outcome.difference.expected, outcome.difference.got
    if wanted == torch.bool:
        return BOOLEAN
    if got in (torch.float16, torch.bfloat16) and wanted in (torch.float32, torch.float64):
        return HALF
    if not _has_dtype(outcome.case.arguments, wanted):
        return NEW_FLOATS if got.is_floating_point else NEW_INTEGERS
    if (wanted, got) == (torch.float64, torch.float32):
        return SINGLE
    return OTHER_DTYPES.get(got, KEPT)


def about_shape(parted: Difference, others: Sequence[Difference] = ()) -> str:
    """Return how the two shapes differ: an axis missing, too many, exchanged, too long; else what to look at.

    others: the shapes of further checks that fail. An axis is named only if leaving it out explains these as well.
    """
    wanted, got = tuple(parted.expected), tuple(parted.got)
    pairs = [(wanted, got), *((tuple(each.expected), tuple(each.got)) for each in others)]
    if wanted and all(longer == (*shorter, *shorter) for shorter, longer in pairs):
        return f"Yours has all the expected axes twice. {EVERY_PAIR}"
    if len(got) == len(wanted) - 1 and (axes := _left_out(wanted, got)):
        if _explains(pairs, lost=True):
            sizes = [longer[_left_out(longer, shorter)[0]] for longer, shorter in pairs]
            return f"Yours is the expected shape without {_which(wanted, axes)}. {_how_lost(max(sizes))}"
        return _of_two_checks(pairs, lost=True)
    if len(got) == len(wanted) + 1 and (axes := _left_out(got, wanted)):
        if not _explains(pairs, lost=False):
            return _of_two_checks(pairs, lost=False)
        said = f"Yours has one axis more: without its {_which(got, axes)}, it is the expected shape."
        table = len(axes) == 2 and any(longer[_left_out(longer, shorter)[0]] > 1 for shorter, longer in pairs)
        return f"{said} {EVERY_PAIR}" if table else said
    if not got:
        return "Yours is a single number. Was it summed or averaged over all axes, or indexed once too often?"
    if sorted(got) != sorted(wanted) and math.prod(got) == math.prod(wanted) > 0:
        return (
            "Yours holds as many numbers as expected, along other axes. Is a view or reshape missing, or another meant?"
        )
    if len(got) != len(wanted):
        return SHAPE
    apart = [axis for axis, pair in enumerate(zip(wanted, got, strict=True)) if pair[0] != pair[1]]
    if sorted(got) == sorted(wanted):
        if len(apart) == 2:
            return f"Axes {apart[0]} and {apart[1]} are exchanged. Is there a transpose too many, or one missing?"
        return "These are the expected sizes in another order. Is there a transpose, permute or view too many?"
    if len(apart) > 1:
        *first, last = (f"axis {axis} is {_longer(got[axis] - wanted[axis])}" for axis in apart)
        said = f"{', '.join(first)}, and {last}."
        return f"{said[0].upper()}{said[1:]}"
    more = got[apart[0]] - wanted[apart[0]]
    short = " Does a range or a slice begin or end one position off?" if abs(more) == 1 else ""
    return f"Only axis {apart[0]} differs: it is {_longer(more)}.{short}"


def about_lengths(names: Sequence[str], failures: Sequence[Outcome]) -> str:
    """Return which axis of which argument a wrong axis is as long as, if it is one, and the same in all these checks.

    names: of the arguments.
    """
    shapes = [(tuple(each.difference.expected), tuple(each.difference.got)) for each in failures]
    if any(len(got) != len(wanted) or sorted(got) == sorted(wanted) for wanted, got in shapes):
        return ""
    said: dict[tuple[int, int], list[int]] = {}  # the axes of the result, by the axis of an argument
    for axis in range(len(shapes[0][0])):
        wrong = [each for each in failures if each.difference.expected[axis] != each.difference.got[axis]]
        as_long = [set(_axes_of_length(each, each.difference.got[axis])) for each in wrong]
        common = set.intersection(*as_long) if len(wrong) == len(failures) else set()
        if len(common) == 1:
            said.setdefault(common.pop(), []).append(axis)
    told = [
        f"{_called(axes)} as long as axis {of_it} of {names[place]}"
        for (place, of_it), axes in said.items()
        if place < len(names)
    ]
    return f"In yours, {', and '.join(told)}." if told else ""


def _called(axes: Sequence[int]) -> str:
    """The name of one axis or of several, with the verb."""
    return f"axis {axes[0]} is" if len(axes) == 1 else f"axes {' and '.join(map(str, axes))} are"


def _axes_of_length(outcome: Outcome, length: int) -> Iterator[tuple[int, int]]:
    """The axes of the arguments, each with the position of its argument, that are so long; none for a length of 1."""
    for place, value in enumerate(outcome.case.arguments):
        if isinstance(value, torch.Tensor) and length > 1:
            yield from ((place, axis) for axis, size in enumerate(value.shape) if size == length)


def _left_out(longer: Sequence[int], shorter: Sequence[int]) -> list[int]:
    """The axes any one of which can be left out of the longer shape to make the shorter one."""
    return [axis for axis in range(len(longer)) if (*longer[:axis], *longer[axis + 1 :]) == tuple(shorter)]


def _which(shape: Sequence[int], axes: Sequence[int]) -> str:
    """One axis, of the alternatives that are possible."""
    size = shape[axes[0]]
    if len(axes) == 1:
        return f"axis {axes[0]}, of size {size}"
    return f"axis {', '.join(map(str, axes[:-1]))} or {axes[-1]}, each of size {size}"


def _explains(pairs: Sequence[tuple], lost: bool) -> bool:
    """Whether one axis is missing (or, if not lost, too many) in all checks, and it may be the same one, counted from
    the front or from the end."""
    ordered = [pair if lost else pair[::-1] for pair in pairs]
    if any(len(longer) != len(shorter) + 1 for longer, shorter in ordered):
        return False
    found = [(set(_left_out(longer, shorter)), len(longer)) for longer, shorter in ordered]
    from_front = set.intersection(*(each for each, _ in found))
    from_end = set.intersection(*({axis - length for axis in each} for each, length in found))
    return bool(from_front or from_end)


def _of_two_checks(pairs: Sequence[tuple], lost: bool) -> str:
    """That the shapes differ by more than the one axis that the first check shows, with those of another check."""
    (wanted, got), *others = pairs
    elsewhere = next((each for each in others if not _explains([(wanted, got), each], lost)), others[0])
    table = any(longer == (*shorter, *shorter) for shorter, longer in (pairs[0], elsewhere))
    return (
        f"Here one axis is {'missing' if lost else 'too many'}, but in another check {elsewhere[0]} is expected and "
        f"yours is {elsewhere[1]}. {EVERY_PAIR if table else 'Which axes of the input become those of your result?'}"
    )


def _how_lost(size: int) -> str:
    if size == 1:
        return (
            "Was it squeezed away, is a keepdim=True or an unsqueeze missing, or are results joined with cat where "
            "stack is meant?"
        )
    return "Was it summed, averaged or indexed away, or are results joined with cat where stack is meant?"


def _longer(more: int) -> str:
    return f"{abs(more)} too {'long' if more > 0 else 'short'}"


def about_type(exercise: Exercise, parted: Difference) -> str:
    """Return what a value of this type suggests about the code."""
    wanted, got = parted.expected, parted.got
    opaque = got.kind if isinstance(got, wire.Opaque) else ""
    if opaque and got.description.removeprefix("builtins.") in FUNCTIONS:
        return "You returned a function or a method and not its result: are the parentheses of a call missing?"
    if opaque and (said := MADE_BY.get(got.description.removeprefix("builtins."))):
        return said
    if is_number(wanted) and is_number(got):
        return "A whole number is expected, an int. Where did a float enter? A single / makes one, even from 4 / 2."
    if is_number(wanted) and isinstance(got, (list, tuple, dict)):
        return "You returned several values where a single number is expected."
    if is_number(wanted) and isinstance(got, str):
        return "A number is expected there, and this is a text."
    if is_number(wanted) and (got is not None or parted.where):
        kind = type(wanted).__name__
        return f"A plain {kind} is expected there: {kind}(...) makes one, for example of a tensor with one number."
    kept = ("", *exercise.kept_attributes)
    if got is None and parted.where and parted.where[0].kind == "result" and 0 < int(parted.where[0].name) < len(kept):
        return f"After this call, .{kept[int(parted.where[0].name)]} is None. Does forward set it in every case?"
    if got is None and is_returned(exercise, parted):
        return "Your function returned nothing: is there a `return` at the end of every path?"
    if opaque == "large":
        return "That is far more than there should be: which axis grew, or which loop adds to it without end?"
    if isinstance(got, tuple) and not isinstance(wanted, tuple):
        return "You returned several values where one is expected; a trailing comma makes a tuple too."
    if isinstance(wanted, torch.Tensor):
        if isinstance(got, list) and any(isinstance(item, torch.Tensor) for item in got):
            return "You returned a Python list of tensors. torch.stack makes one tensor of them."
        if isinstance(got, list) and not wanted.is_floating_point():
            return "You returned a Python list. torch.tensor makes a tensor of it."
        if isinstance(got, list) and any(isinstance(item, wire.Opaque) for item in got):
            items = next(item.description.rpartition(".")[2] for item in got if isinstance(item, wire.Opaque))
            return f"You returned a Python list of values of type {items}. Return one tensor, made by torch alone."
        if isinstance(got, list) and not _has_gradients(exercise):
            return "You returned a Python list of numbers. torch.tensor makes a tensor of it."
        if isinstance(got, list):
            return "You returned a Python list of numbers, through which no gradient flows. Compute with tensors."
        if isinstance(got, (bool, int, float)) and wanted.numel() > 1:
            return "You returned a single number where a tensor of many is expected: is there a `return` inside a loop?"
        if isinstance(got, (bool, int, float)):
            return (
                "You returned a plain Python value, through which no gradient flows: is there an .item(), a "
                ".tolist(), a float(...), or a number written into the code?"
            )
        if opaque == "layout":
            return "An ordinary tensor is expected, with every number in its place: .to_dense() makes one."
        if opaque and got.description.partition(".")[0] == "numpy":
            if not _has_gradients(exercise):
                return "You returned a NumPy array. Compute with torch, or make a tensor of it by torch.from_numpy."
            return "You returned a NumPy array. Use torch throughout, so that gradients can flow back."
    if isinstance(wanted, dict) and isinstance(got, torch.Tensor):
        return "The result does not have the shape and dtype that the docstring in the cell describes."
    return "The result is not of the type that the docstring in the cell describes."


def _has_gradients(exercise: Exercise) -> bool:
    return any("gradients" in probe.checks for probe in exercise.probes)


def is_number(value: Any) -> bool:
    """Whether it is a plain number and not a bool."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def is_returned(exercise: Exercise, parted: Difference) -> bool:
    """Whether a value is all that a call returned, and not a part of it."""
    return not parted.where or (bool(exercise.kept_attributes) and parted.where == (Part("result", 0),))


def _has_dtype(value: Any, dtype: torch.dtype) -> bool:
    """Whether a tensor of this dtype is among the arguments."""
    if isinstance(value, (list, tuple, dict)):
        return any(_has_dtype(each, dtype) for each in (value.values() if isinstance(value, dict) else value))
    return isinstance(value, torch.Tensor) and value.dtype == dtype
