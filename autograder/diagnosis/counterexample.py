"""The smallest input on which an answer still fails, where no known mistake explains it.

Property-based testing calls this shrinking: axes are cut to one or two places, numbers become 0, 1 or whole, lists lose
items, as long as the answer fails in the same way. An input counts only if it keeps what was true of the first one
(`_keeps`) and every known correct answer of the exercise agrees on it with the reference: otherwise it may lie outside
of what the task promises, where many loops never end. So the learner's answer runs last, and in this process every
answer executes a limited number of lines. (A loop inside of C is not counted.) The limits are numbers of questions and
lines, not of seconds, so the same answer gets the same example on every machine.
"""

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from autograder.catalogue.exercise import Case, Exercise, Probe
from autograder.diagnosis.known_mistakes import namespace_of
from autograder.inside.line_limit import TooManyLines, few_lines
from autograder.inside.wire import Opaque
from autograder.judging import compare
from autograder.judging.observation import Observation, Outcome, Raised, Structure
from autograder.judging.observe import Candidate, Endpoint, LocalEndpoint
from autograder.judging.probe_inputs import right_answer

KINDS = ("value", "nan", "shape", "dtype", "length", "type", "keys", "error", "not raised", "inputs")
OF_THE_CODE = (
    *("NameError", "UnboundLocalError", "AttributeError", "TypeError", "ImportError", "ModuleNotFoundError"),
    *("SystemExit", "EOFError", "OSError", "FileNotFoundError"),
)
MOST_QUESTIONS = 250  # put to the answer
MOST_NUMBERS = 16  # of all arguments together, and of a result: what is read at a glance
LEAST_DIGITS, MOST_DIGITS = 4, 9  # of a number of the input, as it is shown
PLAIN = (int, float, str, bool, type(None))


def smallest(exercise: Exercise, endpoint: Endpoint, outcomes: Sequence[Outcome]) -> Outcome | None:
    """The first failure that may be shown, on the smallest failing input that was found; None if none is small enough
    to read.

    Raises EndpointGone when the answer's process is lost.
    """
    if exercise.is_class or exercise.methods or exercise.harness or exercise.trained or _stops_anyway(outcomes):
        return None
    for outcome in outcomes:
        if not outcome.passed and not outcome.secret and _can_shrink(outcome):
            found = _Search(exercise, endpoint, outcome, _with_equal_features(outcomes)).run()
            return found if found is not outcome and numbers(found.case.arguments) <= MOST_NUMBERS else None
    return None


def numbers(value: Any) -> int:
    """The number of numbers, strings and booleans in a value."""
    if isinstance(value, Tensor):
        return value.numel()
    if isinstance(value, dict):
        return sum(map(numbers, value.values())) + len(value)
    return sum(map(numbers, value)) if isinstance(value, (list, tuple)) else 1


def _stops_anyway(outcomes: Sequence[Outcome]) -> bool:
    """Whether every visible check ends with one and the same error of the code, or with nothing that can be compared:
    no input causes that."""
    visible = [each.got and each.got.result for each in outcomes if not each.secret]
    if all(each is None or isinstance(each, Opaque) for each in visible):
        return True
    errors = {(each.type, each.message) for each in visible if isinstance(each, Raised) and each.type in OF_THE_CODE}
    return len(errors) == 1 and all(isinstance(each, Raised) and each.type in OF_THE_CODE for each in visible)


def _can_shrink(outcome: Outcome) -> bool:
    if outcome.got is None or outcome.difference.kind not in KINDS or outcome.case.before:
        return False
    return not isinstance(outcome.got.result, Structure) and all(map(_is_plain, outcome.case.arguments))


def _is_plain(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return all(map(_is_plain, value))
    if isinstance(value, dict):
        return all(_is_plain(each) for pair in value.items() for each in pair)
    return isinstance(value, (Tensor, *PLAIN))


class _Search:
    """A search for the smallest failing input of one answer."""

    def __init__(self, exercise: Exercise, endpoint: Endpoint, first: Outcome, paired: set[tuple[int, int]]) -> None:
        self._exercise, self._first, self._best, self._paired = exercise, first, first, paired
        self._candidate = Candidate(exercise, endpoint)
        self._others = correct_answers(exercise)
        self._left = MOST_QUESTIONS

    def run(self) -> Outcome:
        """Shrink the input until nothing smaller fails."""
        while self._left > 0 and any(self._accepts(case) for case in _smaller(self._best.case)):
            pass
        self._round()
        return self._best

    def _round(self) -> None:
        """Round the numbers to as few digits as it takes to fail: the input fails as it is shown."""
        self._left += MOST_DIGITS
        for digits in range(LEAST_DIGITS, MOST_DIGITS):
            case = self._best.case
            arguments = tuple(rounded(value, digits) for value in case.arguments)
            if self._best is self._first or _equal(arguments, case.arguments):
                return
            if self._accepts(replace(case, arguments=arguments)):
                return

    def _accepts(self, case: Case) -> bool:
        if self._left <= 0 or not _keeps(self._first.case.arguments, case.arguments):
            return False
        if any(case.arguments[i].shape[-1] != case.arguments[j].shape[-1] for i, j in self._paired):
            return False
        probe, first = self._first.probe, self._first
        with few_lines():
            expected = right_answer(self._exercise, probe, case)
        if _kind(expected.result) != _kind(first.expected.result) or not _is_finite(expected.result):
            return False
        if not all(_agrees(other, probe, case, expected) for other in self._others):
            return False
        self._left -= 1
        with few_lines():
            got = self._candidate.observe(probe, case, expected)
        parted = compare.difference(expected, got, probe)
        if isinstance(got.result, Raised) and got.result.type == TooManyLines.__name__:
            return False
        if parted is None or parted.kind != first.difference.kind or _kind(got.result) != _kind(first.got.result):
            return False
        self._best = replace(first, case=case, expected=expected, got=got, difference=parted)
        return True


def correct_answers(exercise: Exercise) -> tuple[Candidate, ...]:
    """The known correct answers, by which is tested whether the task allows an input."""
    return tuple(Candidate(exercise, LocalEndpoint(namespace_of(each.source))) for each in exercise.correct)


def _agrees(other: Candidate, probe: Probe, case: Case, expected: Observation) -> bool:
    with few_lines():
        result = other.observe(probe, case, expected).result
    return compare.value_difference(expected.result, result, probe.rtol, probe.atol) is None


def _kind(result: Any) -> str:
    return f"Raised {result.type}" if isinstance(result, Raised) else type(result).__name__


def _is_finite(result: Any) -> bool:
    if isinstance(result, (list, tuple)):
        return all(map(_is_finite, result))
    return not isinstance(result, Tensor) or not result.is_floating_point() or bool(result.isfinite().all())


def rounded(value: Any, digits: int) -> Any:
    """The value with this many significant digits in every number."""
    if isinstance(value, float):
        return float(f"{value:.{digits}g}")
    if isinstance(value, Tensor) and value.is_floating_point():
        numbers = [float(f"{each:.{digits}g}") for each in value.flatten().tolist()]
        return torch.tensor(numbers, dtype=value.dtype).reshape(value.shape)
    if isinstance(value, (list, tuple)):
        return type(value)(rounded(each, digits) for each in value)
    if isinstance(value, dict):
        return {key: rounded(each, digits) for key, each in value.items()}
    return value


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, Tensor):
        return torch.equal(one, other)
    if isinstance(one, dict):
        return all(_equal(each, other[key]) for key, each in one.items())
    return all(map(_equal, one, other)) if isinstance(one, (list, tuple)) else one == other


# --- smaller inputs --------------------------------------------------------------------------------------------------


def _smaller(case: Case) -> Iterator[Case]:
    """Inputs that are smaller or simpler than this one, the smallest first."""
    arguments = case.arguments
    for one in _single_items(arguments):
        yield replace(case, arguments=one, labels=())
    for size in sorted(_sizes(arguments), reverse=True):
        for length in range(1, min(size, 4)):
            yield replace(case, arguments=_cut(arguments, size, length), labels=())
    for place, value in enumerate(arguments):
        for plainer in _plainer(value):
            yield replace(case, arguments=(*arguments[:place], plainer, *arguments[place + 1 :]), labels=())


def _single_items(arguments: Sequence[Any]) -> Iterator[tuple]:
    """One item of the batch: of the first axis of the first tensor, and of everything else of that length."""
    batch = next((len(value) for value in arguments if isinstance(value, Tensor) and value.ndim > 1), 1)

    def cut(value: Any, item: int) -> Any:
        if isinstance(value, Tensor):
            return value[item : item + 1].contiguous() if value.shape[:1] == (batch,) else value
        return value[item : item + 1] if isinstance(value, list) and len(value) == batch else value

    for item in range(min(batch, 4)) if batch > 1 else ():
        yield tuple(cut(value, item) for value in arguments)


def _sizes(arguments: Sequence[Any]) -> set[int]:
    return {size for value in arguments if isinstance(value, Tensor) for size in value.shape if size > 1}


def _cut(arguments: Sequence[Any], size: int, length: int) -> tuple:
    """All axes of one size cut to another size, so that shapes stay consistent."""

    def cut(value: Any) -> Any:
        for axis in range(value.ndim) if isinstance(value, Tensor) else ():
            if value.shape[axis] == size:
                shares = axis == value.ndim - 1 and _are_shares(value)
                value = value.narrow(axis, 0, length)
                value = value / value.sum(-1, keepdim=True) if shares else value
        return value.contiguous() if isinstance(value, Tensor) else value

    return tuple(map(cut, arguments))


def _plainer(value: Any) -> Iterator[Any]:
    """Values that are shorter or easier to read, the simplest first, without those of earlier calls."""
    if isinstance(value, Tensor):
        yield from (each for each in _plainer_tensors(value) if _weight(each) < _weight(value))
    elif isinstance(value, (list, str)) and len(value) > 1:
        yield from (value[:1], value[: len(value) // 2], value[:-1], value[1:])
    elif type(value) is int and value > 2:
        yield from (1, 2)
    elif type(value) is int and value < -1:
        yield -1
    elif type(value) is float and value != round(value, 1):
        yield from (1.0, round(value, 1))
    if isinstance(value, list):
        for place, item in enumerate(value[:4]):
            for plainer in _plainer(item) if isinstance(item, (list, str)) else ():
                yield [*value[:place], plainer, *value[place + 1 :]]


def _plainer_tensors(value: Tensor) -> Iterator[Tensor]:
    for axis in range(value.ndim):  # only this axis, where others have its size by chance
        if value.shape[axis] > 1:
            yield value.narrow(axis, 0, 1).contiguous()
    if value.dtype == torch.bool:
        yield torch.ones_like(value)
    elif not value.is_floating_point():
        yield value.clamp(max=1)
    elif _are_shares(value):
        yield torch.nn.functional.one_hot(value.argmax(-1), value.shape[-1]).to(value.dtype)
        yield torch.full_like(value, 1 / value.shape[-1])
    else:
        yield torch.ones_like(value)
        yield (value > 0).to(value.dtype)
        yield torch.arange(value.numel(), dtype=value.dtype).reshape(value.shape)
        yield value.round().clamp(-3, 3)
        yield value.round()
        yield (10 * value).round() / 10


def _weight(value: Tensor) -> tuple[int, float]:
    """How hard a tensor is to read: the number of its elements, and the characters that they take."""
    shown = value.to(torch.float64).flatten().tolist()
    return value.numel(), sum(len(f"{each:.6g}") + (each != 0) for each in shown) + len(set(shown)) / 100


# --- what an input must keep -----------------------------------------------------------------------------------------


def _are_shares(value: Tensor) -> bool:
    """Whether no element is negative and each row sums to 1."""
    if not value.is_floating_point() or not value.numel() or value.ndim == 0 or bool((value < 0).any()):
        return False
    sums = value.sum(-1)
    return bool(torch.allclose(sums, torch.ones_like(sums), atol=1e-4))


PROPERTIES: tuple[Callable[[Tensor], bool], ...] = (
    _are_shares,
    lambda value: value.dtype != torch.bool and not bool((value < 0).any()),
    lambda value: value.dtype != torch.bool and not bool((value == 0).any()),
    lambda value: value.dtype == torch.bool and value.ndim > 0 and bool(value.any(-1).all()),
    lambda value: (
        not value.is_floating_point() and value.ndim == 1 and value.sort()[0].tolist() == [*range(len(value))]
    ),
    lambda value: value.ndim > 1 and value.shape[-1] == value.shape[-2],
)


def _keeps(before: Any, after: Any) -> bool:
    """Whether the properties of each argument are preserved: rows that sum to 1, signs, a permutation, a square
    matrix."""
    if isinstance(before, Tensor):
        return after.numel() > 0 and all(holds(after) for holds in PROPERTIES if holds(before))
    if isinstance(before, tuple):
        return len(before) == len(after) and all(map(_keeps, before, after))
    if isinstance(before, (list, str, dict)):
        return len(after) > 0 or not before
    return True


def _with_equal_features(outcomes: Sequence[Outcome]) -> set[tuple[int, int]]:
    """The pairs of arguments whose last axes are equally long in every check: cut to length 1, one of them would be
    broadcast, which no task promises."""
    widths = [
        [value.shape[-1] if isinstance(value, Tensor) and value.ndim else None for value in outcome.case.arguments]
        for outcome in outcomes
    ]
    pairs = itertools.combinations(range(min(map(len, widths), default=0)), 2)
    return {(i, j) for i, j in pairs if all(each[i] is not None and each[i] == each[j] for each in widths)}
