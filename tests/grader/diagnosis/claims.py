"""Recomputes what an explanation claims, only from the results of the checks.

Each kind of fact has an oracle of its own here, written from its sentence and not from its detector. A fact that is not
`partial` has to hold in every check that fails; one that is, in at least one. Changes of arguments are looked up in the
detector's tables, since the name of such a change is its definition; whether they hold is computed here.
"""

import inspect
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import torch
from torch import Tensor

from autograder.diagnosis.conditions import ArgumentIs, AxisFull, DtypeTells, SizeTells
from autograder.diagnosis.evidence import Explained, Fact, argument_names
from autograder.diagnosis.known_mistakes import namespace_of, setting
from autograder.diagnosis.output_patterns.by_argument import COUNTS, MEASURES, MoreOrLess, Quotient
from autograder.diagnosis.output_patterns.formulas import Formula
from autograder.diagnosis.output_patterns.lengths import Length, Lengths
from autograder.diagnosis.output_patterns.reductions import BY_LINE, CHANGES
from autograder.diagnosis.suppositions import Supposed
from autograder.inside import wire
from autograder.judging import compare
from autograder.judging.observation import Outcome, Raised, Structure
from autograder.judging.observe import Candidate, LocalEndpoint
from autograder.judging.probe_inputs import right_answer

SEEN_ONCE = ("differs",)  # of the draws of one repeated run, which another run does not repeat
SOFT = ("beside",)  # "There seem to be two mistakes": claims nothing that could be computed


def check(verdict: Explained, endpoint: LocalEndpoint) -> tuple[int, list[str]]:
    """The number of claims in an explanation, and the false ones with their reasons."""
    claims, false = 0, []
    failing = [each for each in verdict.outcomes if not each.passed and each.got is not None]
    passing = [each for each in verdict.outcomes if each.passed]
    if verdict.diagnosis:
        claims += 1
        false += [f"known: {why}" for why in _known(verdict, failing, passing)]
    for fact in verdict.noticed:
        claims += 1
        false += [f"{fact.name}: {why}" for why in _fact(verdict, endpoint, fact, failing, passing)]
    return claims, false


# --- known mistakes ---------------------------------------------------------------------------------------------------


def _known(verdict: Explained, failing: Sequence[Outcome], passing: Sequence[Outcome]) -> list[str]:
    found, exercise = verdict.misconception, verdict.exercise
    claim = getattr(found, "claim", None)
    extent = claim.extent if claim else _extent(found.message)
    where = claim.where if claim else ()
    if found.shows is not None:
        return []
    sources = [found.source]
    if extent == "setting":
        if claim is None:
            if "and only there" in found.message.split(":")[0]:
                return _only_there(verdict, found.message, failing)
            return []
        failing_here = [each for each in failing if _in(exercise, each, where)]
        passing = [each for each in passing if _in(exercise, each, where)]
        if claim.only and len(failing_here) < len(failing):
            return ["some check fails elsewhere, too"]
        failing = failing_here
    candidate = Candidate(exercise, LocalEndpoint(namespace_of(sources[0])))
    asked = sorted([*failing, *passing], key=lambda each: verdict.outcomes.index(each))
    agree, clash = [], []
    for outcome in asked if exercise.roles is None else verdict.outcomes:
        shown = candidate.observe(outcome.probe, outcome.case, outcome.expected, outcome.cotangent)
        if outcome in failing:
            (agree if _shows_same(shown, outcome) else clash).append(outcome.probe.name)
        elif outcome in passing and compare.difference(outcome.expected, shown, outcome.probe) is not None:
            return [f"the mistake fails {outcome.probe.name!r}, and the answer passes it"]
    if extent == "some":
        stopped = any(isinstance(each.got.result, Raised) for each in failing)  # in other words than the mistake does
        return (
            [] if agree and (clash or stopped) else ["some, but not all: " + ("all agree" if agree else "none agrees")]
        )
    return [f"another result in {clash[0]!r}"] if clash else []


def _extent(message: str) -> str:
    """Before claims were data: what the words say."""
    if message.startswith("Some of your wrong results"):
        return "some"
    return "setting" if re.match(r"(Where \w+ is .{1,20}|In \w+)(, and only there)?: ", message) else "every"


def _only_there(verdict: Explained, message: str, failing: Sequence[Outcome]) -> list[str]:
    name = re.match(r"Where (\w+) is (.+?), and only there", message)
    if name is None:
        return []
    values = {setting(verdict.exercise, each.case, name[1])[2] for each in failing}
    return [] if len(values) == 1 and repr(next(iter(values))) == name[2] else [f"fails at {values}"]


def _shows_same(shown: Any, outcome: Outcome) -> bool:
    """Errors count as the same: two spellings of one mistake stop in different ways."""
    if isinstance(shown.result, Raised) and isinstance(outcome.got.result, Raised):
        return True
    if outcome.difference.kind in ("inputs", "state", "gradient", "no gradient"):
        return compare.difference(outcome.expected, shown, outcome.probe) is not None
    return compare.value_difference(shown.result, outcome.got.result, outcome.probe.rtol, outcome.probe.atol) is None


def _in(exercise, outcome: Outcome, where: tuple) -> bool:
    """Whether a check ran under these settings."""
    wheres = where if where and isinstance(where[0], tuple) else (where,) if where else ()
    return all(setting(exercise, outcome.case, each[1]) == tuple(each) for each in wheres)


# --- facts ------------------------------------------------------------------------------------------------------------


def _fact(verdict, endpoint, fact: Fact, failing: Sequence[Outcome], passing: Sequence[Outcome]) -> list[str]:
    exercise = verdict.exercise
    if fact.beside:
        return []
    if fact.name in OF_CHECKS:
        return [] if OF_CHECKS[fact.name](failing, passing) else ["the checks that fail or pass say otherwise"]
    if isinstance(fact, ArgumentIs):
        return _of_argument(verdict, endpoint, fact, failing, passing)
    if isinstance(fact, SizeTells):
        return _of_object(exercise, fact, failing, passing)
    if isinstance(fact, (AxisFull, DtypeTells)):
        holds = _is_full if isinstance(fact, AxisFull) else _has_none_of
        right = not any(holds(fact, each) for each in failing) and all(holds(fact, each) for each in passing)
        return [] if right else ["the checks that fail or pass say otherwise"]
    if fact.name in SEEN_ONCE:
        return []
    if fact.name in REPEATED:
        return REPEATED[fact.name](verdict, endpoint, fact, failing)
    here = [each for each in failing if _in(exercise, each, fact.where)]
    here = [each for each in here if each.difference.kind not in ("gradient", "no gradient")]  # its values are right
    if fact.name == "formula":  # an integer of more than 64 bits is not sent, so nobody knows it
        here = [each for each in here if not isinstance(each.got.result, wire.Opaque)]
    if isinstance(fact, Supposed):
        shows = lambda each: _supposed(exercise, fact, each)  # noqa: E731
        wrong = [each for each in passing if not _in_or_none(exercise, fact, each)]
        if wrong and not getattr(fact, "partial", False):
            return [f"would not pass {wrong[0].probe.name!r}"]
    else:
        shows = lambda each: _shows(fact, each)  # noqa: E731
    holding = [each for each in here if shows(each)]
    if not holding:
        return ["holds in no check that fails"]
    if len(holding) < len(here) and fact.sure and not getattr(fact, "partial", False):
        missing = next(each for each in here if each not in holding)
        return [f"not in {missing.probe.name!r} ({missing.difference.kind}); in {len(holding)} of {len(here)}"]
    return []


def _of_argument(verdict, endpoint, fact, failing, passing) -> list[str]:
    """Fails where an argument is so, and only there: no other value of it may fail in the same place."""
    holds, exercise = VALUES[fact.value], verdict.exercise
    value = lambda each: _with_defaults(exercise, each.case, fact.of_constructor)[fact.argument]  # noqa: E731
    if not all(holds(value(each)) for each in failing) or any(holds(value(each)) for each in passing):
        return ["the checks that fail or pass say otherwise"]
    candidate = Candidate(verdict.exercise, endpoint)
    for outcome in failing[:2]:
        for other in passing[:3]:
            arguments = list(_with_defaults(exercise, outcome.case, fact.of_constructor))
            arguments[fact.argument] = value(other)
            changed = {"construct" if fact.of_constructor else "arguments": tuple(arguments)}
            case = replace(outcome.case, **changed)
            expected = right_answer(exercise, outcome.probe, case)
            if isinstance(expected.result, Raised):
                continue
            if not all(_passes(exercise, outcome.probe, case, expected, known.source) for known in exercise.correct):
                continue  # no question of this exercise: where a token is drawn, correct answers draw different ones
            got = candidate.observe(outcome.probe, case, expected)
            if compare.value_difference(expected.result, got.result, outcome.probe.rtol, outcome.probe.atol):
                return [f"{outcome.probe.name!r} also fails where it is {value(other)!r}"]
    return []


def _with_defaults(exercise, case, of_constructor: bool) -> tuple:
    """The arguments of a call or a constructor, with the defaults of those left out."""
    values, reference = (
        case.construct if of_constructor else case.arguments,
        exercise.reference[case.function or exercise.names[0]],
    )
    if isinstance(reference, type):
        reference = reference.__init__ if of_constructor else reference.forward
    parameters = [each for each in inspect.signature(reference).parameters.values() if each.name != "self"]
    return (*values, *(each.default for each in parameters[len(values) :]))


def _is_full(fact, outcome: Outcome) -> bool:
    made = outcome.case.construct
    size = made[fact.of] if isinstance(fact.of, int) else next(getattr(c, fact.of) for c in made if hasattr(c, fact.of))
    return outcome.case.arguments[fact.argument].shape[fact.axis] == size


def _has_none_of(fact, outcome: Outcome) -> bool:
    def tensors(value):
        if isinstance(value, Tensor):
            return [value]
        parts = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
        return [each for part in parts for each in tensors(part)]

    return not {str(each.dtype) for each in tensors(outcome.case.arguments)} & {f"torch.{d}" for d in fact.dtypes}


def _passes(exercise, probe, case, expected, source) -> bool:
    """Whether an answer returns the expected result."""
    got = Candidate(exercise, LocalEndpoint(namespace_of(source))).observe(probe, case, expected)
    return compare.value_difference(expected.result, got.result, probe.rtol, probe.atol) is None


VALUES: dict[str, Callable[[Any], bool]] = {
    "None": lambda value: value is None,
    "given": lambda value: value is not None,
    "True": lambda value: value is True,
    "False": lambda value: value is False,
    "0": lambda value: type(value) in (int, float) and value == 0,
    "1": lambda value: type(value) in (int, float) and value == 1,
    "negative": lambda value: type(value) in (int, float) and value < 0,
    "empty": lambda value: type(value) in (str, list, dict) and len(value) == 0,
}


def _of_object(exercise, fact, failing, passing) -> list[str]:
    def size(outcome):
        if isinstance(fact.of, int):
            return outcome.case.construct[fact.of]
        if not any(hasattr(each, fact.of) for each in outcome.case.construct):  # an argument
            named = argument_names(exercise, outcome).index(fact.of)
            return _with_defaults(exercise, outcome.case, False)[named]
        return next(getattr(each, fact.of) for each in outcome.case.construct if hasattr(each, fact.of))

    right = {*map(size, failing)} == {*fact.fails} and {*map(size, passing)} == {*fact.passes}
    return [] if right and not {*fact.fails} & {*fact.passes} else ["the checks that fail or pass say otherwise"]


def _tensors(outcome: Outcome) -> list[Tensor]:
    return [each for each in outcome.case.arguments if isinstance(each, Tensor)]


def _only(holds: Callable[[Outcome], bool], kinds: tuple[str, ...] | None = None):
    def told(failing, passing):
        fails = all(holds(each) and (kinds is None or each.difference.kind in kinds) for each in failing)
        return fails and not any(map(holds, passing))

    return told


def _values_right(outcome: Outcome) -> bool:
    probe = outcome.probe
    return compare.value_difference(outcome.expected.result, outcome.got.result, probe.rtol, probe.atol) is None


def _asks_gradients(outcome: Outcome) -> bool:
    return "gradients" in outcome.probe.checks


def _shapes(outcome: Outcome) -> tuple:
    return tuple(tuple(each.shape) for each in _tensors(outcome))


OF_CHECKS: dict[str, Callable[[Sequence[Outcome], Sequence[Outcome]], bool]] = {
    "in training": _only(lambda each: "training" in each.probe.checks),
    "lost digits": _only(
        lambda each: any(t.dtype == torch.float64 and t.numel() and t.abs().max() > 1e3 for t in _tensors(each))
    ),
    "too large": _only(
        lambda each: any(t.is_floating_point() and t.numel() and t.abs().max() > 50 for t in _tensors(each)), ("nan",)
    ),
    "an axis of size 1": _only(lambda each: any(1 in t.shape for t in _tensors(each))),
    "no gradient": lambda failing, passing: (
        all(map(_values_right, failing))
        and all(each.difference.kind == "no gradient" for each in failing)
        and not any(map(_asks_gradients, passing))
    ),
    "another gradient": lambda failing, passing: (
        all(map(_values_right, failing)) and not any(map(_asks_gradients, passing))
    ),
    "stops with gradients": _only(_asks_gradients, ("error",)),
    "values with gradients": _only(_asks_gradients),
    "transposed in memory": _only(lambda each: any(not t.is_contiguous() for t in _tensors(each))),
    "float64": _only(lambda each: any(t.dtype == torch.float64 for t in _tensors(each))),
    "only these sizes": lambda failing, passing: (
        not (
            {_shapes(each) for each in failing}
            & {_shapes(each) for each in (*failing, *passing) if not each.probe.hidden}
        )
    ),
}


# --- what asking again shows ------------------------------------------------------------------------------------------


def _changed(verdict, endpoint, fact, failing) -> list[str]:
    for each in failing:
        if not isinstance(each.got.result, Raised) and fact.argument < len(each.got.inputs):
            before, after = each.expected.inputs[fact.argument], each.got.inputs[fact.argument]
            if not isinstance(before, Tensor) or not torch.equal(before.nan_to_num(), after.nan_to_num()):
                return []
    return ["it is as it was"]


def _kept(verdict, endpoint, fact, failing) -> list[str]:
    asked = [each for each in verdict.outcomes if each.got is not None]
    for outcome in failing:
        earlier = [each.expected.result for each in asked[: asked.index(outcome)]]
        if outcome.case.before:
            before = replace(outcome.case, arguments=outcome.case.before, before=())
            earlier.append(right_answer(verdict.exercise, outcome.probe, before).result)
        probe, got = outcome.probe, outcome.got.result
        if isinstance(got, Raised) or all(
            compare.value_difference(each, got, probe.rtol, probe.atol) for each in earlier
        ):
            return [] if getattr(fact, "partial", False) else [f"no answer to an earlier call in {probe.name!r}"]
    return []


def _fixed(verdict, endpoint, fact, failing) -> list[str]:
    results = [(each.expected.result, each.got.result) for each in failing if not isinstance(each.got.result, Raised)]
    for place, (wanted, got) in enumerate(results):
        for other, also in results[place + 1 :]:
            if compare.value_difference(got, also, 1e-6, 1e-8) is None and compare.value_difference(
                wanted, other, 1e-6, 1e-8
            ):
                return []
    return ["no two results are the same"]


def _ignored(verdict, endpoint, fact, failing) -> list[str]:
    """With other numbers in that argument of the first check that fails, drawn here, the same comes back."""
    asked = [each for probe in verdict.exercise.probes for each in failing if each.probe is probe]
    outcome, candidate = asked[0], Candidate(verdict.exercise, endpoint)
    value = outcome.case.arguments[fact.argument]
    generator = torch.Generator().manual_seed(4_711)
    if value.dtype == torch.bool:
        drawn = [torch.ones_like(value)]
    else:
        drawn = [3 * torch.randn(value.shape, generator=generator, dtype=torch.float64) for _ in range(5)]
    for other in drawn:
        arguments = list(outcome.case.arguments)
        arguments[fact.argument] = other.to(value.dtype)
        case = replace(outcome.case, arguments=tuple(arguments))
        got = candidate.observe(outcome.probe, case, right_answer(verdict.exercise, outcome.probe, case))
        if compare.value_difference(outcome.got.result, got.result, 1e-6, 1e-8):
            return [f"other numbers in argument {fact.argument} of {outcome.probe.name!r} give another result"]
    return []


def _returned(verdict, endpoint, fact, failing) -> list[str]:
    for outcome in failing:
        probe, got, argument = outcome.probe, outcome.got.result, outcome.case.arguments[fact.argument]
        if not fact.partial and (
            isinstance(got, Raised) or compare.value_difference(argument, got, 1e-6, 1e-8) is not None
        ):
            return [f"not the argument in {probe.name!r}"]
    return []


def _second_call(verdict, endpoint, fact, failing) -> list[str]:
    """Only checks with a call before fail, and without it the first of them gives something else."""
    if not all(bool(each.case.before) != each.passed for each in verdict.outcomes):
        return ["the checks that fail or pass say otherwise"]
    first, candidate = failing[0], Candidate(verdict.exercise, endpoint)
    alone = candidate.observe(first.probe, replace(first.case, before=()), first.expected, first.cotangent).result
    got = first.got.result
    stops = isinstance(got, Raised), isinstance(alone, Raised)
    if any(stops):
        return [] if not all(stops) else ["it stops without the call before, too"]
    return [] if compare.value_difference(got, alone, 1e-6, 1e-8) else ["the same comes back without the call before"]


REPEATED = {
    "a second call": _second_call,
    "changed": _changed,
    "returned": _returned,
    "kept": _kept,
    "fixed": _fixed,
    "empty": _fixed,
    "ignored": _ignored,
}


# --- patterns of results ----------------------------------------------------------------------------------------------


def _near(one: Any, other: Any, outcome: Outcome) -> bool:
    if not isinstance(one, Tensor) or not isinstance(other, Tensor) or one.shape != other.shape:
        return False
    probe = outcome.probe
    return torch.allclose(one.double(), other.double(), rtol=2 * probe.rtol, atol=2 * probe.atol, equal_nan=True)


def _pair(fact: Fact, outcome: Outcome) -> tuple[Any, Any]:
    """The result and the right one that a fact is about."""
    got, expected = outcome.got.result, outcome.expected.result
    if isinstance(got, tuple) and isinstance(expected, tuple) and len(got) == len(expected) and got:
        if fact.part:
            got, expected = got[fact.part - 1], expected[fact.part - 1]
        else:
            wrong = [pair for pair in zip(got, expected, strict=True) if not _near(*pair, outcome)]
            got, expected = wrong[0] if wrong else (None, None)
    if isinstance(got, Tensor) and isinstance(expected, Tensor):
        return got.detach().double(), expected.detach().double()
    return got, expected


def _shows(fact: Fact, outcome: Outcome) -> bool:
    got, expected = _pair(fact, outcome)
    if isinstance(got, (Raised, Structure)) or got is None:
        return False
    if isinstance(fact, Formula):
        return _reckoned(fact, outcome, got, expected)
    if isinstance(fact, (Length, Lengths)):
        return all(_sized(each, outcome, got, expected) for each in getattr(fact, "each", (fact,)))
    if fact.name in ITEMS:
        alike = type(got) is type(expected) and isinstance(got, (list, str))
        return alike and ITEMS[fact.name](list(got), list(expected))
    if not isinstance(got, Tensor) or not isinstance(expected, Tensor):
        return _plain(fact, got, expected)
    try:
        return _of_tensors(fact, outcome, got, expected)
    except (IndexError, RuntimeError):
        return False


def _plain(fact: Fact, got: Any, expected: Any) -> bool:
    if not all(type(each) in (int, float) for each in (got, expected)):
        return False
    close = lambda one, other: abs(one - other) <= 2e-4 * max(abs(one), abs(other)) + 1e-12  # noqa: E731
    match fact.name:
        case "whole":
            return got == round(got) and expected != round(expected)
        case "offset":
            return abs((got - expected) - fact.amount) <= 1e-4 * abs(fact.amount) and abs(fact.amount) > 0
        case "scaled":
            return close(got, fact.factor * expected) or abs(got / expected - fact.factor) < 1e-4
    return False


def _sequence(items: Sequence) -> list[str]:
    return [repr(each.tolist() if isinstance(each, Tensor) else each) for each in items]


def _within(few: Sequence, many: Sequence) -> bool:
    rest = iter(_sequence(many))
    return len(few) < len(many) and all(any(each == other for other in rest) for each in _sequence(few))


ITEMS: dict[str, Callable[[list, list], bool]] = {
    "items reversed": lambda got, right: _sequence(got) == _sequence(right)[::-1],
    "first item missing": lambda got, right: _sequence(got) == _sequence(right)[1:],
    "last item missing": lambda got, right: _sequence(got) == _sequence(right)[:-1],
    "ends early": lambda got, right: len(got) < len(right) and _sequence(got) == _sequence(right)[: len(got)],
    "goes too far": lambda got, right: len(got) > len(right) and _sequence(got)[: len(right)] == _sequence(right),
    "an item too many in front": lambda got, right: _sequence(got)[1:] == _sequence(right) and bool(got),
    "an item too many at the end": lambda got, right: _sequence(got)[:-1] == _sequence(right) and bool(got),
    "repeated items lost": lambda got, right: _sequence(got) == list(dict.fromkeys(_sequence(right))),
    "items of another kind": lambda got, right: (
        bool(got) and bool(right) and not {*map(type, got)} & {*map(type, right)}
    ),
    "items missing": lambda got, right: _within(got, right),
    "items too many": lambda got, right: _within(right, got),
    "another order": lambda got, right: sorted(_sequence(got)) == sorted(_sequence(right)),
}


def _of_tensors(fact: Fact, outcome: Outcome, got: Tensor, expected: Tensor) -> bool:
    kind, axis = fact.name, getattr(fact, "axis", 0)
    near = lambda one, other: _near(one, other, outcome)  # noqa: E731
    size = lambda of, along: of.shape[along] if of.ndim > along else 0  # noqa: E731
    same_shape = got.shape == expected.shape
    if kind.startswith("afterward "):
        return _afterward(kind.removeprefix("afterward "), axis, got, expected, near)
    if kind in ("argument added", "argument taken away"):
        more = outcome.case.arguments[fact.argument].double()
        return near(got, expected + more if kind == "argument added" else expected - more)
    if isinstance(fact, (Quotient, MoreOrLess)):
        return _by_argument(fact, outcome, got, expected, near)
    if kind.startswith(("only the ", "first only")) and kind != "only the diagonal":
        if not same_shape:
            return False
        wrong = ~torch.isclose(got, expected, rtol=outcome.probe.rtol, atol=outcome.probe.atol)
        lines = wrong.movedim(axis, 0).reshape(wrong.shape[axis], -1).any(1).tolist()
        if kind == "first only":
            return not lines[0] and all(lines[1:])
        place = 0 if kind.endswith("first") else -1
        rest = lines[1:] if place == 0 else lines[:-1]
        return lines[place] and not any(rest)
    if kind.startswith("left over ") and kind != "left over diagonal":
        return near(expected, REDUCED[kind.removeprefix("left over ")](got, axis))
    if kind in REDUCED:
        return near(got, REDUCED[kind](expected, axis))
    diagonal = torch.eye(max(got.shape[-2:], default=1), dtype=torch.bool) if got.ndim > 1 else None
    match kind:
        case "transposed":
            return near(got, expected.transpose(fact.axis, fact.other))
        case "infinite":
            return bool(got.isinf().any())
        case "constant":
            return near(got, got.flatten()[0].expand_as(got))
        case "alike":
            return near(got, got.narrow(axis, 0, 1).expand_as(got))
        case "scaled":
            return same_shape and (near(got, fact.factor * expected) or _close(got, fact.factor * expected))
        case "offset":
            return same_shape and (near(got, fact.amount + expected) or _close(got - expected, fact.amount))
        case "affine" | "offset by line" | "scaled by line" | "offset by check" | "scaled by check" | "nearly":
            return same_shape and _loose(kind, got, expected, outcome)
        case "lines of 0":
            right = torch.isclose(got, expected, rtol=outcome.probe.rtol, atol=1e-4 + outcome.probe.atol)
            return same_shape and any(bool((right.all(each) | (got == 0).all(each)).all()) for each in range(got.ndim))
        case "signs":
            return near(got.abs(), expected.abs())
        case "reversed":
            return near(got, expected.flip(axis))
        case "shifted":
            length = expected.shape[axis] - 1
            return same_shape and any(
                near(got.narrow(axis, here, length), expected.narrow(axis, 1 - here, length)) for here in (0, 1)
            )
        case "other order":
            return near(got.sort(axis).values, expected.sort(axis).values)
        case "other places":
            return near(got.flatten().sort().values, expected.flatten().sort().values)
        case "missing first" | "missing last" | "too many first" | "too many last":
            short, long = (got, expected) if kind.startswith("missing") else (expected, got)
            start = 1 if kind.endswith("first") else 0
            return size(long, axis) == size(short, axis) + 1 and near(
                short, long.narrow(axis, start, size(short, axis))
            )
        case "cut short" | "goes on":
            short, long = (got, expected) if kind == "cut short" else (expected, got)
            return size(short, axis) < size(long, axis) and near(short, long.narrow(axis, 0, size(short, axis)))
        case "only the diagonal" | "all but the diagonal":
            right = torch.isclose(got, expected, rtol=outcome.probe.rtol, atol=outcome.probe.atol)
            mask = diagonal.expand_as(right)
            if kind == "only the diagonal":
                return bool(right[~mask].all()) and not bool(right[mask].all())
            return bool(right[mask].all()) and not bool(right[~mask].any())
        case "left over diagonal":
            pairs = [(one, two) for one in range(got.ndim) for two in range(one + 1, got.ndim)]
            return any(near(got.diagonal(dim1=a, dim2=b).movedim(-1, a), expected) for a, b in pairs)
        case "another shape" | "an axis of 1 too many" | "an axis of 1 missing":
            ones = kind == "another shape" or [s for s in got.shape if s > 1] == [s for s in expected.shape if s > 1]
            return ones and got.numel() == expected.numel() and near(got.reshape(expected.shape), expected)
        case "axes joined":
            shape = list(expected.shape)
            return list(got.shape) == [*shape[:axis], shape[axis] * shape[axis + 1], *shape[axis + 2 :]]
        case "axis gone":
            return list(got.shape) == [*expected.shape[:axis], *expected.shape[axis + 1 :]]
        case "axis too many":
            return list(expected.shape) == [*got.shape[:axis], *got.shape[axis + 1 :]]
        case "one value":
            wrong = ~torch.isclose(got, expected, rtol=outcome.probe.rtol, atol=outcome.probe.atol)
            return same_shape and bool((got[wrong] - float(fact.value)).abs().max() < 1e-6 + 1e-6 * abs(fact.value))
    raise NotImplementedError(f"no oracle for {kind}")


def _close(one: Tensor, other: Any) -> bool:
    other = torch.as_tensor(other, dtype=torch.float64).expand_as(one)
    return torch.allclose(one, other, rtol=2e-3, atol=1e-4)


def _loose(kind: str, got: Tensor, expected: Tensor, outcome: Outcome) -> bool:
    """One in a thousand of the largest number is enough for a claim without a number."""
    most = 1e-3 * float(got.abs().max()) + outcome.probe.atol
    if kind == "nearly":
        return bool(((got - expected).abs() <= 0.0101 * expected.abs() + outcome.probe.atol).all())
    if kind == "affine":
        table = torch.stack([expected.flatten(), torch.ones(expected.numel(), dtype=torch.float64)], 1)
        solved = torch.linalg.lstsq(table, got.flatten()[:, None]).solution
        return float((table @ solved - got.flatten()[:, None]).abs().max()) <= most
    if kind in ("offset by check", "scaled by check"):
        got, expected, kind = got.flatten(), expected.flatten(), kind.replace("check", "line")
    for axis in range(got.ndim):
        if kind == "offset by line" and float((got - expected - (got - expected).mean(axis, True)).abs().max()) <= most:
            return True
        factor = (got * expected).sum(axis, True) / expected.square().sum(axis, True)
        if kind == "scaled by line" and float((got - factor.nan_to_num() * expected).abs().max()) <= most:
            return True
    return False


REDUCED: dict[str, Callable[[Tensor, int], Tensor]] = {
    "sum": lambda x, axis: x.sum(axis),
    "mean": lambda x, axis: x.mean(axis),
    "largest": lambda x, axis: x.max(axis).values,
    "first": lambda x, axis: x.movedim(axis, 0)[0],
    "last": lambda x, axis: x.movedim(axis, 0)[-1],
}


def _afterward(kind: str, axis: int, got: Tensor, expected: Tensor, near: Callable[[Any, Any], bool]) -> bool:
    if kind in CHANGES:
        return near(got, CHANGES[kind](expected))
    if kind in BY_LINE:
        return near(got, BY_LINE[kind](expected, axis))
    match kind:
        case "softmax again":
            return near(got, expected.softmax(axis))
        case "running sum":
            return near(got, expected.cumsum(axis))
        case "one hot":
            return near(got, torch.zeros_like(expected).scatter(axis, expected.argmax(axis, True), 1.0))
        case "rounded":
            return any(near(got, expected.round(decimals=each)) for each in range(5))
        case "cut below":
            return near(got, expected.clamp(min=got.min()))
        case "cut above":
            return near(got, expected.clamp(max=got.max()))
        case "summed" | "averaged":
            how = Tensor.sum if kind == "summed" else Tensor.mean
            return near(got, how(expected)) if axis < 0 else near(got, how(expected, axis, keepdim=True))
        case "first alone" | "last alone":
            return near(got, expected.narrow(axis, 0 if kind == "first alone" else expected.shape[axis] - 1, 1))
    raise NotImplementedError(f"no oracle for afterward {kind}")


def _by_argument(fact: Fact, outcome: Outcome, got: Tensor, expected: Tensor, near: Callable[[Any, Any], bool]) -> bool:
    name = fact.measure
    if isinstance(fact, MoreOrLess):
        how = "less" if fact.less else "more"
    else:
        how, got = "multiplied" if fact.multiplied else "divided", -got if fact.turned else got
    value = outcome.case.arguments[fact.argument]
    if name.startswith("count "):
        count = value.shape[-1 - fact.axis] if fact.axis >= 0 else value
        measures = [torch.tensor(float(COUNTS[name.removeprefix("count ")](count)), dtype=torch.float64)]
    else:
        along = value.double().ndim - 1 - fact.axis
        whole = MEASURES[name](value.double(), along)
        flat = whole.squeeze(along)
        measures = [whole, flat, flat.unsqueeze(-1), flat.unsqueeze(-2) if flat.ndim else flat]
    for measure in measures:
        try:
            made = {
                "divided": torch.where(measure > 0, expected / measure, got), "multiplied": expected * measure,
                "more": expected + measure, "less": expected - measure,
            }[how]  # fmt: skip
        except RuntimeError:
            continue
        if near(got, made):
            return True
    return False


def _sized(fact, outcome: Outcome, got: Any, expected: Any) -> bool:
    """Which length an axis has that is wrong."""
    if not isinstance(got, Tensor) or not isinstance(expected, Tensor) or got.ndim != expected.ndim:
        return False
    wrong = [axis for axis in range(got.ndim) if got.shape[axis] != expected.shape[axis]]
    length, right = got.shape[fact.axis], expected.shape[fact.axis]
    if fact.axis not in wrong:
        return False
    value = outcome.case.arguments[fact.argument] if fact.argument < len(outcome.case.arguments) else None
    items = [len(each) for each in value if hasattr(each, "__len__")] if isinstance(value, list) else []
    return {
        "fixed": lambda: True,
        "twice": lambda: length == 2 * right,
        "multiple": lambda: length == -(-right // fact.second) * fact.second,
        "axis": lambda: length == value.shape[fact.second],
        "product": lambda: length == value.shape[fact.second] * value.shape[fact.third],
        "times": lambda: length == value.shape[fact.second] * outcome.case.arguments[fact.third],
        "divided": lambda: length * outcome.case.arguments[fact.third] == value.shape[fact.second],
        "count": lambda: length == len(value),
        "together": lambda: length == sum(items),
        "shortest": lambda: length == min(items),
        "mean": lambda: length == round(sum(items) / len(items)),
        "first": lambda: length == items[0],
        "last": lambda: length == items[-1],
        "value": lambda: length == value,
        "one more": lambda: length == value + 1,
        "one less": lambda: length == value - 1,
    }[fact.how]()


def _reckoned(fact, outcome: Outcome, got: Any, expected: Any) -> bool:
    """The formula of a result, parsed from its sentence."""
    value = outcome.case.arguments[fact.argument] if fact.argument < len(outcome.case.arguments) else None
    words = fact.sentence
    if words.startswith("Your result is ") and "the correct one" not in words:
        return type(got) is int  # its formula is checked where the names of arguments are known
    number = torch.as_tensor(value).double() if isinstance(value, (Tensor, list)) else None
    if "size of {0}" in words:
        size = value.shape[fact.argument_axis]
        power = 2.0 if "square of" in words else 0.5 if "square root" in words else 1.0
        factor = size**power if "multiplied" in words else size**-power
        return _near(got, factor * expected, outcome)
    if "one number of it for each row" in words:
        part = number.view(-1, *[1] * (expected.ndim - 1))
    elif " slice of " in words:
        part = number.select(fact.argument_axis, 0 if "first" in words else -1)
    elif "the sum of" in words or "the mean of" in words:
        part = number.sum(fact.argument_axis) if "the sum of" in words else number.mean(fact.argument_axis)
    else:
        part = number
    sign = re.search(r"correct one (plus|minus|times|divided by)", words)[1]
    made = {"plus": expected + part, "minus": expected - part, "times": expected * part, "divided by": expected / part}
    return _near(got, made[sign], outcome)


# --- changed arguments ------------------------------------------------------------------------------------------------


def _right_for(exercise, fact, outcome: Outcome) -> Any:
    """What the reference returns to the changed arguments; None where the change does not apply."""
    case = fact.understood(outcome.case)
    return None if case is None else fact.back(right_answer(exercise, outcome.probe, case).result)


def _supposed(exercise, fact, outcome: Outcome) -> bool:
    made = _right_for(exercise, fact, outcome)
    probe = outcome.probe
    return made is not None and compare.value_difference(made, outcome.got.result, probe.rtol, probe.atol) is None


def _in_or_none(exercise, fact, outcome: Outcome) -> bool:
    """Whether the changed arguments give what passes, too; errors come before any argument is used."""
    if isinstance(outcome.expected.result, Raised) or (fact.where and not _in(exercise, outcome, fact.where)):
        return True
    made = _right_for(exercise, fact, outcome)
    probe = outcome.probe
    same = made is None or isinstance(made, Raised)
    return same or compare.value_difference(made, outcome.got.result, probe.rtol, probe.atol) is None


def value_of(formula: str, numbers: dict[str, int]) -> Fraction:
    """The value of a formula that an explanation names, such as "half of n * d" or "max(n, d) + 2 * n"."""
    python = re.sub(r"\|([^|]+)\|", r"abs(\1)", formula).replace("half of", "1 / 2 *")
    return Fraction(eval(python, {"abs": abs, "max": max, "min": min}, dict(numbers)))
