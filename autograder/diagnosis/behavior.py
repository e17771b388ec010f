"""What can be seen in a wrong answer whose mistake nobody knows: facts, each true of every failure that it speaks of.

A fact is data; `report` puts it into words. None holds a number of an input (but that it is 0, 1 or negative) or of a
right result, so all of it may be reported for hidden probes too. Where only one failure shows a fact, it is not `sure`:
it may be a coincidence.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from math import isclose, isfinite
from typing import Any

from torch import Tensor

from autograder.catalogue.defaults import FAR_AWAY
from autograder.catalogue.exercise import Exercise
from autograder.diagnosis.conditions import about_probes
from autograder.diagnosis.evidence import FEWEST, Noticed
from autograder.diagnosis.output_patterns.axes import PATTERNS, WHOLE, holds_infinity, key, tensors
from autograder.diagnosis.output_patterns.lengths import about_sizes
from autograder.diagnosis.output_patterns.scale import about_reckoning
from autograder.judging.closeness import equal, near, same
from autograder.judging.observation import Outcome, Raised
from autograder.judging.probe_inputs import right_answer
from autograder.judging.repeat_run import RepeatRun


def notice(exercise: Exercise, outcomes: Sequence[Outcome], again: RepeatRun | None = None) -> list[Noticed]:
    """Facts about an answer that fails, the most telling first; at most one about the values themselves.

    A fact about the values holds in every check that fails. One that holds in the first and in others, though not in
    all, is `partial`; any other is left out.
    """
    failures = [outcome for outcome in outcomes if not outcome.passed and outcome.got is not None]
    if not failures:
        return []
    facts = [*_changed(failures), *(_repeated(again) if again else ())]
    if kept := [*_kept(exercise, outcomes)]:
        return [*facts, *kept]
    values = [o for o in failures if o.difference.kind in ("value", "shape", "length") or _items(o)]
    found = [*about_reckoning(values), *about_results(values)]
    if not found or found[0].kind in ("cut short", "goes on"):
        found = [*about_sizes(values), *found]
    if len(values) < len(failures):  # of another kind, such as an error, in which no pattern of values can hold
        first = values[:1] == failures[:1]
        found = [replace(fact, partial=True) for fact in found if first and (len(values) > 1 or fact.kind in NO_CHANCE)]
    found = [*_fixed(values), *found]
    by_chance = any(fact.kind == "differs" for fact in facts)  # then which probes fail says nothing
    return [*facts, *found[:1], *(() if by_chance else about_probes(outcomes))][:3]


def _items(outcome: Outcome) -> bool:
    """Whether it is an item of a list that is of another type than it should be."""
    return outcome.difference.kind == "type" and isinstance(outcome.got.result, list) and bool(outcome.difference.where)


def about_results(failures: Sequence[Outcome]) -> list[Noticed]:
    """Patterns in which all these results differ from the expected ones."""
    return [*_about_values(failures), *_about_items(failures), *_about_numbers(failures)]


def _changed(failures: Sequence[Outcome]) -> Iterator[Noticed]:
    """An argument that is not what it was."""
    for outcome in failures:
        if isinstance(outcome.got.result, Raised) or len(outcome.got.inputs) != len(outcome.expected.inputs):
            continue
        for place, (before, after) in enumerate(zip(outcome.expected.inputs, outcome.got.inputs, strict=True)):
            if not equal(before, after):
                yield Noticed("changed", argument=place)
                return


def _repeated(again: RepeatRun) -> Iterator[Noticed]:
    """What asking again shows: another result for the same input, or the same result for another input."""
    got = again.outcome.got.result
    if any(not isinstance(each.result, Raised) and not equal(got, each.result) for each in again.same):
        yield Noticed("differs")
        return
    for place, (expected, other) in again.others.items():
        if isinstance(got, Tensor) and got.is_floating_point() and not bool(got.isfinite().any()):
            break  # infinity, or no number at all, tells nothing of what it was made of
        ignored = same(got, other.result) and not equal(again.outcome.expected.result, expected.result)
        if ignored and not isinstance(got, Raised):
            yield Noticed("ignored", argument=place)


def _kept(exercise: Exercise, outcomes: Sequence[Outcome]) -> Iterator[Noticed]:
    """Every result that fails is the right one of an earlier call."""
    asked = [outcome for outcome in outcomes if outcome.got is not None]
    failing = [(outcome, asked[:place]) for place, outcome in enumerate(asked) if not outcome.passed]
    plain = not isinstance(failing[0][0].got.result, Tensor)
    if all(outcome.case.before for outcome, _ in failing) or len(failing) <= plain:
        return
    for outcome, earlier in failing:
        results = [each.expected.result for each in earlier]
        if outcome.case.before:
            before = replace(outcome.case, arguments=outcome.case.before, before=())
            results.append(right_answer(exercise, outcome.probe, before).result)
        if not any(_answers(outcome, result) for result in results):
            return
    yield Noticed("kept")


def _answers(outcome: Outcome, wanted: Any) -> bool:
    """Whether a result is the right one of an earlier call, and not of this one."""
    got, right = outcome.got.result, outcome.expected.result
    if not isinstance(got, Tensor) or not isinstance(wanted, Tensor):
        if isinstance(got, bool) or (isinstance(got, dict) and all(isinstance(value, bool) for value in got.values())):
            return False  # of yes and no, many a wrong answer is the right one of another question
        return isinstance(got, (int, float, str, list, dict)) and same(got, wanted) and not same(wanted, right)
    told = got.numel() >= FEWEST and not got.is_complex()
    return told and near(got, wanted, outcome) and not near(wanted, right, outcome)


NO_CHANCE = (
    "an axis of 1 too many",
    "an axis of 1 missing",
    "another shape",
    "axes joined",
    "axis gone",
    "axis too many",
    "nearly",
    "infinite",
)  # one failure shows them
BY_SIZES = ("axis gone", "axis too many", "axes joined")  # seen only by the sizes of axes


def _about_values(failures: Sequence[Outcome]) -> list[Noticed]:
    """A pattern of the results; of several, of the first that is wrong, else of the one from which that may be made."""
    several = [len(outcome.got.result) for outcome in failures if isinstance(outcome.got.result, tuple)]
    parts = range(2, min(several) + 1) if several and len(several) == len(failures) else ()
    found = _about_part(failures, 0)
    for part in parts if not found else ():
        found = [replace(fact, part=part) for fact in _about_part(failures, part)]
        if found:
            break
    return found


def _about_part(failures: Sequence[Outcome], part: int) -> list[Noticed]:
    """The first pattern that every failing tensor shows that is large and varied enough to tell, and has no infinity.

    If one of the others does not show it, the fact is partial.
    """
    finite = [outcome for outcome in failures if not holds_infinity(outcome.expected.result)]
    pairs = [pair for outcome in finite if (pair := tensors(outcome, part)) is not None]
    if not pairs or len(pairs) != len(finite):
        return []
    in_some: list[Noticed] = []
    for pattern in PATTERNS:
        shown = [({key(fact): fact for fact in pattern(*pair)}, pair[1]) for pair in pairs]
        telling = [facts for facts, expected in shown if _tells(expected, pattern in WHOLE)]
        telling = telling or [facts for facts, expected in shown if _may_tell(facts, expected)]
        common = [key for key in telling[0] if all(key in facts for facts in telling)] if telling else []
        if not common or (common[0][0] in BY_SIZES and sum(kind == common[0][0] for kind, *_ in common) > 1):
            continue  # of axes of equal size it may be the one or the other
        if common[0][0] == "nearly" and all(float(expected.abs().max()) >= FAR_AWAY for _, expected in shown):
            continue  # the digits that a large number lost
        fact = telling[0][common[0]]
        bearing = [common[0] in facts for facts, _ in shown]
        fact = replace(fact, sure=sum(bearing) > 1 or fact.kind in NO_CHANCE)
        if sum(bearing) == len(failures):
            return [fact]
        if fact.sure and bearing[0] and finite[0] is failures[0]:
            in_some.append(replace(fact, partial=True))
    return in_some[:1]


def _may_tell(facts: dict[tuple, Noticed], expected: Tensor) -> bool:
    """Whether a pattern seen in a small result is more than a coincidence."""
    return bool(facts) and (expected.unique().numel() > 1 or any(fact.kind in NO_CHANCE for fact in facts.values()))


def _tells(expected: Tensor, whole: bool) -> bool:
    """Whether a pattern that is not to be seen in this result is not there: it may be too small, or too much alike."""
    smallest = min(expected.shape, default=0)
    return smallest >= 2 if whole else smallest >= FEWEST and expected.unique().numel() >= FEWEST


def _fixed(failures: Sequence[Outcome]) -> Iterator[Noticed]:
    """The same result for several inputs whose right results differ."""
    results = [(outcome.got.result, outcome.expected.result) for outcome in failures]
    if len(results) > 1 and not any(isinstance(got, (Raised, bool, type(None))) for got, _ in results):
        (got, expected), *others = results
        if all(same(got, other) and not same(expected, wanted) for other, wanted in others):
            yield Noticed("empty" if isinstance(got, (list, str)) and not got else "fixed")


def _about_items(failures: Sequence[Outcome]) -> Iterator[Noticed]:
    """What the items of a list or the letters of a text have in common with the right ones, in every failure."""
    pairs = [(outcome.got.result, outcome.expected.result) for outcome in failures]
    if not pairs or not all(isinstance(x, (list, str)) and type(x) is type(y) for x, y in pairs):
        return
    told = [(list(got), list(expected)) for got, expected in pairs]
    for kind, holds in ITEMS.items():
        if all(holds(got, expected) for got, expected in told):
            yield Noticed(kind, sure=len(told) > 1)
            return


def _first_of_each(items: list) -> list:
    first: dict[str, Any] = {}
    for item in items:
        first.setdefault(repr(item), item)
    return list(first.values())


def _kinds(items: list) -> set[type]:
    return set(map(type, items))


def _in_order(few: list, many: list) -> bool:
    """Whether the few items, two or more, are among the many in their order."""
    rest = iter(many)
    return len(few) >= 2 and all(any(same(item, other) for other in rest) for item in few)


ITEMS: dict[str, Callable[[list, list], bool]] = {
    "items reversed": lambda got, expected: same(got, expected[::-1]),
    "first item missing": lambda got, expected: same(got, expected[1:]),
    "last item missing": lambda got, expected: same(got, expected[:-1]),
    "ends early": lambda got, expected: len(got) < len(expected) and same(got, expected[: len(got)]),
    "an item too many in front": lambda got, expected: same(got[1:], expected),
    "an item too many at the end": lambda got, expected: same(got[:-1], expected),
    "goes too far": lambda got, expected: len(got) > len(expected) and same(got[: len(expected)], expected),
    "repeated items lost": lambda got, expected: same(got, _first_of_each(expected)),
    "items of another kind": lambda got, expected: bool(got) and bool(expected) and not _kinds(got) & _kinds(expected),
    "items missing": lambda got, expected: len(got) < len(expected) and _in_order(got, expected),
    "items too many": lambda got, expected: len(got) > len(expected) and _in_order(expected, got),
    "another order": lambda got, expected: sorted(map(repr, got)) == sorted(map(repr, expected)),
}


def _all_near(numbers: Sequence[float]) -> bool:
    """Whether numbers equal one up to rounding, however small they are."""
    return all(isclose(number, numbers[0], rel_tol=1e-5) for number in numbers)


def _about_numbers(failures: Sequence[Outcome]) -> Iterator[Noticed]:
    """Plain numbers that are off by one and the same amount, or factor, in at least two failures."""
    pairs = [(outcome.got.result, outcome.expected.result) for outcome in failures]
    if len(pairs) < 2 or not all(type(x) in (int, float) and isfinite(x) for pair in pairs for x in pair):
        return
    if all(got == round(got) and expected != round(expected) and abs(got - expected) <= 1 for got, expected in pairs):
        yield Noticed("whole")
    elif _all_near(gaps := [got - expected for got, expected in pairs]):
        yield Noticed("offset", size=1, factor=gaps[0])
    elif all(y for _, y in pairs) and len({round(got / expected, 4) for got, expected in pairs}) == 1:
        yield Noticed("scaled", size=1, factor=round(pairs[0][0] / pairs[0][1], 4))
