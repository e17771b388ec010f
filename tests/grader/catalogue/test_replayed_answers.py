"""Right results of one grading earn few of the hidden points in another, returned in order or by the sizes asked."""

import copy
from typing import Any

import pytest
import torch

from autograder import catalogue
from autograder.judging.judge import in_order, judge
from autograder.judging.observe import LocalEndpoint

PAIRS = ((b"one", b"two"), (b"three", b"four"), (b"five", b"six"))
MOST = 0.5  # of the hidden points: some results are the same for everybody, such as an error that has to be raised
MOST_BY_SIZE = 0.7  # where whole numbers are all that is asked about, such as T and d, they decide the result
YES_OR_NO = {"leaks": 0.7}  # exercise -> its share, where half of all results are right by chance
# A result that answers further questions cannot be noted and returned later; a model that looks up the eight sentences
# is a known mistake.
OBJECTS = {"overfit-one-batch": "a trained model"}
EXERCISES = [
    each
    for assignment in catalogue.ASSIGNMENTS
    for each in assignment.exercises
    if each.hidden_points and not (each.trained or each.id in OBJECTS)
]


class Tape:
    """The correct answer, which records its results and errors, and later replays them for any probe."""

    def __init__(self, exercise) -> None:
        self._noted: list[tuple[bool, Any]] = []
        self._next: int | None = None
        self.namespace = {name: self._taped(thing) for name, thing in exercise.reference.items()}

    def replay(self) -> None:
        self._next = 0

    def _taped(self, thing: Any) -> Any:
        if not isinstance(thing, type):
            return self._call(thing)
        named = (name for name in vars(thing) if not name.startswith("_"))
        methods = ["forward"] if issubclass(thing, torch.nn.Module) else list(named)
        return type(thing.__name__, (thing,), {name: self._call(getattr(thing, name)) for name in methods})

    def _call(self, function: Any) -> Any:
        def call(*arguments: Any, **named: Any) -> Any:
            if self._next is not None:
                raised, result = self._noted[self._next % len(self._noted)]
                self._next += 1
                if raised:
                    raise result
                return _kept(result)
            try:
                result = function(*arguments, **named)
            except Exception as error:
                self._noted.append((True, error))
                raise
            self._noted.append((False, _kept(result)))
            return result

        return call


class Table(Tape):
    """The correct answer, which records its results by the sizes of its arguments, and later looks them up."""

    def __init__(self, exercise) -> None:
        self._table: dict[Any, list[tuple[bool, Any]]] = {}
        super().__init__(exercise)

    def _call(self, function: Any) -> Any:
        def call(*arguments: Any, **named: Any) -> Any:
            sizes = _sizes((*arguments, named))
            if self._next is not None:
                noted = self._table[sizes]
                noted.append(noted.pop(0))  # several questions of one size are answered in turn
                raised, result = noted[-1]
                if raised:
                    raise result
                return _kept(result)
            try:
                raised, result = False, function(*arguments, **named)
            except Exception as error:
                raised, result = True, error
            self._table.setdefault(sizes, []).append((raised, result if raised else _kept(result)))
            if raised:
                raise result
            return result

        return call


def _sizes(value: Any) -> Any:
    """The key of a look-up table: shapes, lengths, integers and names, without any drawn number."""
    if isinstance(value, torch.Tensor):
        return tuple(value.shape), value.dtype
    if isinstance(value, (list, tuple)):
        return type(value).__name__, *map(_sizes, value)
    if isinstance(value, dict):
        return tuple((name if isinstance(name, str) else None, _sizes(each)) for name, each in value.items())
    if isinstance(value, str):
        return len(value.split())
    return value if isinstance(value, (bool, int, float, type(None))) else type(value).__name__


def _kept(result: Any) -> Any:
    """A copy that no later call changes."""
    if isinstance(result, torch.Tensor):
        return result.detach().clone()
    if isinstance(result, (list, tuple)):
        return type(result)(map(_kept, result)) if type(result) in (list, tuple) else result
    if type(result) is dict:
        return {name: _kept(value) for name, value in result.items()}
    return copy.copy(result)


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda exercise: exercise.id)
def test_results_of_another_grading_earn_little(exercise):
    shares = []
    for first, second in PAIRS:
        tape = Tape(exercise)
        endpoint = LocalEndpoint(tape.namespace)
        assert judge(exercise, endpoint, first).passed
        tape.replay()
        shares.append(judge(exercise, endpoint, second).hidden_points / exercise.hidden_points)
    assert sum(shares) / len(shares) <= YES_OR_NO.get(exercise.id, MOST)


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda exercise: exercise.id)
def test_results_looked_up_by_the_sizes_of_the_inputs_earn_little(exercise):
    shares = []
    for first, second in PAIRS[:2]:
        table = Table(exercise)
        endpoint = LocalEndpoint(table.namespace)
        assert judge(exercise, endpoint, first).passed
        table.replay()
        shares.append(judge(exercise, endpoint, second).hidden_points / exercise.hidden_points)
    assert sum(shares) / len(shares) <= MOST_BY_SIZE


def test_the_order_of_hidden_probes_is_the_keys_and_all_are_asked():
    exercise = catalogue.find("leaks")
    orders = {key: [probe.name for probe in in_order(exercise, key)] for key in (b"one", b"two")}
    assert orders[b"one"] != orders[b"two"] and orders[b"one"] == [each.name for each in in_order(exercise, b"one")]
    assert sorted(orders[b"one"]) == sorted(probe.name for probe in exercise.hidden)


def test_a_report_lists_the_probes_in_the_catalogues_order_whatever_the_key():
    exercise = catalogue.find("causal-mask")
    endpoint = LocalEndpoint({"causal_mask": lambda *sizes: None})
    for key in (b"one", b"two"):
        outcomes = judge(exercise, endpoint, key).outcomes
        assert [outcome.probe.name for outcome in outcomes] == [probe.name for probe in exercise.probes]
