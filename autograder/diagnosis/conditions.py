"""What the failing probes have in common, and the passing ones do not."""

import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import torch
from torch import Tensor

from autograder.catalogue.defaults import FAR_AWAY
from autograder.catalogue.exercise import Exercise, Remark
from autograder.diagnosis.evidence import Fact, Names, Seen, argument_names, seen
from autograder.judging.closeness import equal
from autograder.judging.observation import Outcome, Raised
from autograder.judging.repeat_run import RepeatRun

SECOND_CALL = seen(
    "a second call",
    "It fails only where it is called a second time, with other values: what does it keep from the first call, in a "
    "dictionary, an attribute or a global name?",
)
ONLY_THESE_SIZES = seen(
    "only these sizes",
    "Every failing check has sizes that differ from the example's: is a size hard-coded, or does the code rely on "
    "something else that only the example has, such as whole numbers or sorted rows?",
)


@dataclass(frozen=True)
class ArgumentIs(Fact, doubt=""):
    """It fails exactly where an argument has a certain kind of value. value: a name in KINDS; of_constructor: whether
    it is an argument of the class, and not of its forward."""

    argument: int
    value: str
    of_constructor: bool = False

    @property
    def name(self) -> str:
        return f"argument {self.value}"

    def say(self, names: Names) -> str:
        made = made_with(names.exercise) if self.of_constructor else None
        name = made[self.argument] if made else names.argument(self.argument)
        return f"It fails where {name} is {self.value}, and only there."


@dataclass(frozen=True)
class SizeTells(Fact, name="size", doubt=""):
    """A size that separates the failing checks from the passing ones. of: the name of a configuration's field or of an
    argument, or the index of the constructor's argument; fails, passes: the sizes in either group; all of one group are
    larger than all of the other.
    """

    of: str | int
    fails: tuple[int, ...]
    passes: tuple[int, ...]

    def say(self, names: Names) -> str:
        name = made_with(names.exercise)[self.of] if isinstance(self.of, int) else self.of
        larger = self.fails[0] > self.passes[-1]
        fails, passes = _all_of(self.fails, larger), _all_of(self.passes, not larger)
        return f"It fails in every check where {name} is {fails}, and in none where {name} is {passes}."


def _all_of(sizes: tuple[int, ...], large: bool) -> str:
    """All sizes if they are few, else where they begin or end."""
    if len(sizes) < MOST_SIZES:
        return " or ".join(map(str, sizes))
    return f"{sizes[0]} or more" if large else f"{sizes[-1]} or less"


@dataclass(frozen=True)
class AxisFull(Fact, name="axis full", doubt=""):
    """It passes exactly where an axis of an argument is as long as a size of the constructed object. of: as in
    SizeTells."""

    argument: int
    axis: int
    of: str | int

    def say(self, names: Names) -> str:
        size = made_with(names.exercise)[self.of] if isinstance(self.of, int) else self.of
        axis = f"axis {self.axis} of {names.argument(self.argument)}"
        return f"In every check that passes, {axis} is {size} long; in every check that fails, it is not."


@dataclass(frozen=True)
class DtypeTells(Fact, name="dtype tells", doubt=""):
    """Every failing check has a tensor of one of these dtypes, and no passing one has."""

    dtypes: tuple[str, ...]

    def say(self, names: Names) -> str:
        return f"Every failing check has a tensor of dtype {' or '.join(self.dtypes)}, and no passing check has one."


def made_with(exercise: Exercise) -> list[str]:
    """The names of the constructor's arguments."""
    return list(inspect.signature(exercise.reference[exercise.names[0]].__init__).parameters)[1:]


MOST_SIZES = 4  # distinct sizes; where there are more, the reason is rarely the size
ENOUGH = 3  # checks of either group, to speak of a size that has many values
ONLY_CHECKED_THERE = ("undrawn", "reseeded", "elsewhere")  # differences that the passing checks may not look for
CHECKED_BY = {
    "inputs": "inputs",
    "gradient": "gradients",
    "no gradient": "gradients",
}  # difference -> what looks for it
LARGE = 80.0  # beyond it a float32 exponential is soon infinite


def about_probes(
    outcomes: Sequence[Outcome], again: RepeatRun | None = None, exercise: Exercise | None = None
) -> Iterator[Fact]:
    """What the failing probes, and only they, have in common.

    again: the first of them, run again; without it, nothing is claimed about the call before. exercise: without it,
    nothing is claimed about arguments that a check leaves out.
    """
    asked = [outcome for outcome in outcomes if outcome.got is not None]
    failing = [outcome for outcome in asked if not outcome.passed]
    passing = [outcome for outcome in asked if outcome.passed]
    remarks = [isinstance(outcome.difference.got, Remark) for outcome in failing]
    if not passing or any(remarks) or any(outcome.difference.kind in ONLY_CHECKED_THERE for outcome in failing):
        return
    if (fact := _one_of_them(exercise, failing, passing)) is not None:
        yield fact
        return
    for fact, holds in COMMON.items():
        told = fact != SECOND_CALL or (again is not None and _differs_alone(again))
        if told and all(map(holds, failing)) and not any(map(holds, passing)):
            yield fact
            return
    if (fact := _one_dtype(failing, passing)) is not None:
        yield fact
        return
    shown = {_shapes(outcome) for outcome in asked if not outcome.probe.hidden}
    others = [outcome for outcome in asked if _shapes(outcome) not in shown and _shapes(outcome)]
    telling = [outcome for outcome in others if not _has_a_one(outcome)]  # with an axis of 1 much comes out right
    all_other = all(_shapes(outcome) not in shown for outcome in failing)
    if telling and all_other and not any(outcome.passed for outcome in telling):
        yield ONLY_THESE_SIZES


def _one_of_them(exercise: Exercise | None, failing: Sequence[Outcome], passing: Sequence[Outcome]) -> Fact | None:
    """An argument, or a size, that separates the failing checks from the passing ones that look for the same."""
    looked = {CHECKED_BY[each.difference.kind] for each in failing if each.difference.kind in CHECKED_BY}
    alike = [each for each in passing if looked <= set(each.probe.checks)]
    if not alike or len({outcome.case.function for outcome in (*failing, *passing)}) > 1:
        return None
    for separates in (_one_argument, _one_size, _one_full_axis):
        if separates(exercise, failing, alike) is not None and (fact := separates(exercise, failing, passing)):
            return fact
    return None


def given(exercise: Exercise | None, outcome: Outcome, to_constructor: bool = False) -> tuple:
    """The arguments of a call, or of the constructor, with the default values of those that are left out."""
    values = outcome.case.construct if to_constructor else outcome.case.arguments
    if exercise is None or exercise.methods or exercise.harness:
        return values
    reference = exercise.reference[outcome.case.function or exercise.names[0]]
    if to_constructor and not isinstance(reference, type):
        return ()
    function = reference
    if isinstance(reference, type):
        function = reference.__init__ if to_constructor else reference.forward
    defaults = [each.default for each in inspect.signature(function).parameters.values() if each.name != "self"]
    rest = defaults[len(values) :]
    return values if inspect.Parameter.empty in rest else (*values, *rest)


def _one_argument(
    exercise: Exercise | None, failing: Sequence[Outcome], passing: Sequence[Outcome]
) -> ArgumentIs | None:
    """An argument that is not a tensor and has one kind of value in every failing check and in no other; None if
    something else separates these checks too, since then this argument need not be the reason."""
    found: list[tuple[bool, int, str]] = []
    for made in (False, True):
        fails, passes = ([given(exercise, each, made) for each in group] for group in (failing, passing))
        for place in range(min(map(len, (*fails, *passes)))):
            for name, holds in (KINDS | TRAITS).items():
                here, elsewhere = ({holds(values[place]) for values in group} for group in (fails, passes))
                if len(here) == len(elsewhere) == 1 and here != elsewhere and (True in here or name in TRAITS):
                    found.append((made, place, name))
    places = {each[:2] for each in found}
    kinds = [each for each in found if each[2] in KINDS]
    others = (holds for holds in COMMON.values() if all(map(holds, failing)) and not any(map(holds, passing)))
    if len(places) != 1 or not kinds or any(others):
        return None
    made, place, name = kinds[0]
    return ArgumentIs(place, name, made)


def _one_size(exercise: Exercise | None, failing: Sequence[Outcome], passing: Sequence[Outcome]) -> Fact | None:
    """A size that is larger in all failing checks than in all passing ones, or a number among the arguments that is
    larger or smaller; None if there are several."""
    told = [_sizes(exercise, outcome) for outcome in failing]
    others = [_sizes(exercise, outcome) for outcome in passing]
    fewest = min(len(told), len(others))
    found = []
    for name in set.intersection(*map(set, [*told, *others])) if fewest >= 2 else ():
        fails, passes = (sorted({sizes[name] for sizes in group}) for group in (told, others))
        is_argument = name not in _constructed(failing[0])
        apart = fails[0] > passes[-1] or (is_argument and fails[-1] < passes[0])
        few = len(fails) + len(passes) <= MOST_SIZES
        if apart and (few or (is_argument and fewest >= ENOUGH)):
            found.append(SizeTells(name, tuple(fails), tuple(passes)))
    return found[0] if len(found) == 1 else None


def _one_full_axis(exercise: Exercise | None, failing: Sequence[Outcome], passing: Sequence[Outcome]) -> Fact | None:
    """An axis of an argument that is as long as a size of the object in all passing checks and in no failing one."""
    asked = (*failing, *passing)
    if min(len(failing), len(passing)) < 2:
        return None
    places = min(len(outcome.case.arguments) for outcome in asked)
    shapes = [[getattr(value, "shape", ()) for value in outcome.case.arguments[:places]] for outcome in asked]
    sizes = [_constructed(outcome) for outcome in asked]
    found = []
    for place in range(places):
        for axis in range(min(len(each[place]) for each in shapes)):
            for name in set.intersection(*map(set, sizes)):
                full = [each[place][axis] == of[name] for each, of in zip(shapes, sizes, strict=True)]
                if full == [False] * len(failing) + [True] * len(passing):
                    found.append(AxisFull(place, axis, name))
    return found[0] if len(found) == 1 else None


def _one_dtype(failing: Sequence[Outcome], passing: Sequence[Outcome]) -> Fact | None:
    """The dtypes of floats that every failing check has, and no passing one."""
    told = [_float_dtypes(outcome.case.arguments) for outcome in failing]
    others = set().union(*(_float_dtypes(outcome.case.arguments) for outcome in passing))
    own = set().union(*told) - others
    return DtypeTells(tuple(sorted(own))) if all(each & own for each in told) else None


def _float_dtypes(value: Any) -> set[str]:
    """The dtypes of all tensors of floats in a value, also in lists and dictionaries."""
    if isinstance(value, Tensor):
        return {str(value.dtype).removeprefix("torch.")} if value.is_floating_point() else set()
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    return set().union(*map(_float_dtypes, parts))


def _constructed(outcome: Outcome) -> dict[str | int, int]:
    """The integers with which an object is constructed: by the names of a configuration, else by their positions."""
    values: dict[str | int, Any] = dict(enumerate(outcome.case.construct))
    for value in outcome.case.construct:
        if is_dataclass(value):
            values |= {field.name: getattr(value, field.name) for field in fields(value)}
    return {name: value for name, value in values.items() if type(value) is int}


def _sizes(exercise: Exercise | None, outcome: Outcome) -> dict[str | int, int]:
    """The integers among the arguments, by their names, and those with which an object is constructed."""
    named = zip(argument_names(exercise, outcome), given(exercise, outcome), strict=False) if exercise else ()
    return {name: value for name, value in named if type(value) is int} | _constructed(outcome)


def _is_number(value: Any) -> bool:
    return type(value) in (int, float)


KINDS: dict[str, Callable[[Any], bool]] = {
    "None": lambda value: value is None,
    "given": lambda value: value is not None,
    "True": lambda value: value is True,
    "False": lambda value: value is False,
    "0": lambda value: _is_number(value) and value == 0,
    "1": lambda value: _is_number(value) and value == 1,
    "negative": lambda value: _is_number(value) and value < 0,
    "empty": lambda value: isinstance(value, (str, list, dict)) and not value,
}


def _of_tensor(holds: Callable[[Tensor], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, Tensor) and value.numel() > 0 and holds(value)


TRAITS: dict[str, Callable[[Any], bool]] = {  # of other arguments, which may be the reason as well
    "one row": _of_tensor(lambda value: value.shape[:1] == (1,)),
    "one column": _of_tensor(lambda value: value.shape[-1:] == (1,)),
    "large": _of_tensor(lambda value: value.is_floating_point() and float(value.abs().max()) > LARGE),
    "float64": _of_tensor(lambda value: value.dtype == torch.float64),
    "all True": _of_tensor(lambda value: value.dtype == torch.bool and bool(value.all())),
    "equal": _of_tensor(lambda value: bool((value == value.flatten()[0]).all())),
    "one item": lambda value: isinstance(value, (str, list, dict)) and len(value) == 1,
}


def _shapes(outcome: Outcome) -> tuple:
    return tuple(tuple(a.shape) for a in outcome.case.arguments if isinstance(a, Tensor))


def _has_a_one(outcome: Outcome) -> bool:
    return any(1 in shape for shape in _shapes(outcome))


def _is_float64(outcome: Outcome) -> bool:
    return any(isinstance(a, Tensor) and a.dtype == torch.float64 for a in outcome.case.arguments)


def _is_turned(outcome: Outcome) -> bool:
    turned = any(isinstance(a, Tensor) and not a.is_contiguous() for a in outcome.case.arguments)
    changed = not outcome.passed and outcome.difference.kind in ("inputs", "state")  # memory layout causes neither
    return turned and not changed and not _wrong_in_late_digits(outcome)


def _wrong_in_late_digits(outcome: Outcome) -> bool:
    """Whether only the last digits of the numbers are wrong, which a memory layout does not cause."""
    if outcome.passed or outcome.difference.kind != "value":
        return False
    wanted, got = outcome.difference.expected, outcome.difference.got
    comparable = isinstance(wanted, Tensor) and isinstance(got, Tensor) and wanted.shape == got.shape
    return comparable and torch.allclose(got.double(), wanted.double(), rtol=1e-5, atol=0.0)


def _asks_gradients(outcome: Outcome) -> bool:
    told = outcome.passed or outcome.difference.kind == "gradient"
    return "gradients" in outcome.probe.checks and told


def _differs_with_gradients(outcome: Outcome) -> bool:
    told = outcome.passed or outcome.difference.kind not in ("gradient", "no gradient", "error")
    return "gradients" in outcome.probe.checks and told


def _stops_with_gradients(outcome: Outcome) -> bool:
    return "gradients" in outcome.probe.checks and (outcome.passed or outcome.difference.kind == "error")


def _misses_gradients(outcome: Outcome) -> bool:
    return "gradients" in outcome.probe.checks and (outcome.passed or outcome.difference.kind == "no gradient")


def _differs_alone(again: RepeatRun) -> bool:
    """Whether something else comes back without the call before: otherwise the values are merely wrong."""
    if again.alone is None:
        return False
    one, other = again.outcome.got.result, again.alone.result
    return isinstance(one, Raised) != isinstance(other, Raised) or not equal(one, other)


def _asks_again(outcome: Outcome) -> bool:
    return bool(outcome.case.before) and (outcome.passed or outcome.difference.kind not in ("inputs", "state"))


def _loses_digits(outcome: Outcome) -> bool:
    tensors = [a for a in outcome.case.arguments if isinstance(a, Tensor) and a.dtype == torch.float64 and a.numel()]
    far = any(float(tensor.abs().max()) > FAR_AWAY for tensor in tensors)
    return far and (outcome.passed or outcome.difference.kind in ("value", "nan"))


def _overflows(outcome: Outcome) -> bool:
    tensors = [a for a in outcome.case.arguments if isinstance(a, Tensor) and a.is_floating_point() and a.numel()]
    return any(float(a.abs().max()) > LARGE for a in tensors) and (outcome.passed or outcome.difference.kind == "nan")


def _trains(outcome: Outcome) -> bool:
    return "training" in outcome.probe.checks


COMMON: dict[Seen, Callable[[Outcome], bool]] = {
    seen(
        "in training",
        "It fails only in training mode, where dropout acts: is dropout wherever the task asks for it, and nowhere "
        "else?",
    ): _trains,
    SECOND_CALL: _asks_again,
    seen(
        "lost digits",
        "It fails only in float64, where more digits are compared: is something rounded to float32 on the way, is a "
        "root or an exponential taken of too large a number, or is a small number added?",
    ): _loses_digits,
    seen(
        "too large",
        "It fails only where numbers are large, and there with NaN: is exp taken of them directly? Softmax "
        "depends only on differences, so the largest can be subtracted first.",
    ): _overflows,
    seen(
        "an axis of size 1",
        "It fails only where an axis has the size 1: squeeze() removes such an axis, and a special case for it may be "
        "wrong.",
    ): _has_a_one,
    seen(
        "no gradient",
        "All values are correct, but no gradient flows. What cuts it off: .item(), .data, .detach(), no_grad, numpy, "
        "torch.tensor(...) of a result?",
    ): _misses_gradients,
    seen(
        "stops with gradients",
        "It stops only where gradients are computed: does it write into a tensor, by x[...] = or an operation whose "
        "name ends in _, or make a numpy array of one?",
    ): _stops_with_gradients,
    seen(
        "another gradient",
        "All values are correct, but the gradient is not. A step that changes no value, such as dividing by a sum that "
        "is already 1, changes the gradient; so does cutting off one of several paths, or one of several "
        "results.",
    ): _asks_gradients,
    seen(
        "values with gradients",
        "It fails only where gradients are computed: does a step there depend on requires_grad?",
    ): _differs_with_gradients,
    seen(
        "transposed in memory",
        "It fails only where a tensor is a transposed view: view needs contiguous memory, reshape does not.",
    ): _is_turned,
    seen(
        "float64",
        "It fails only in float64: is a float32 created on the way, or too little precision kept?",
    ): _is_float64,
}
