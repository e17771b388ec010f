"""Right results of one grading, returned in the same order in another, earn few of the hidden points."""

import copy
from typing import Any

import pytest
import torch

from autograder import catalogue
from autograder.judging.judge import in_order, judge
from autograder.judging.observe import LocalEndpoint

PAIRS = ((b"one", b"two"), (b"three", b"four"), (b"five", b"six"))
MOST = 0.5  # of the hidden points: some results are the same for everybody, such as an error that has to be raised
YES_OR_NO = {"leaks": 0.7}  # exercise -> its share, where half of all results are right by chance
# A result that answers further questions cannot be noted and returned later.
OBJECTS = {"tokenizer": "an object of the tokenizers library", "overfit-one-batch": "a trained model"}
EXERCISES = [
    each
    for assignment in catalogue.ASSIGNMENTS
    for each in assignment.exercises
    if each.hidden_points and not (each.trained or each.methods or each.id in OBJECTS)
]


class Tape:
    """The right answer, which notes what it returns and raises, and later repeats it for any question."""

    def __init__(self, exercise) -> None:
        self._noted: list[tuple[bool, Any]] = []
        self._next: int | None = None
        self.namespace = {name: self._taped(thing) for name, thing in exercise.reference.items()}

    def replay(self) -> None:
        self._next = 0

    def _taped(self, thing: Any) -> Any:
        if not isinstance(thing, type):
            return self._call(thing)
        return type(thing.__name__, (thing,), {"forward": self._call(thing.forward)})

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
