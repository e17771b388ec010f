"""Every argument of an exercise's signature decides the verdict: an answer that ignores one fails some probe.

Such an answer is the reference with one argument fixed, to its default and to the value that most probes give it. That
finds arguments that no probe varies, and those that are varied where nothing depends on them.
"""

import functools
import inspect
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from autograder import catalogue
from autograder.catalogue.exercise import Case, Exercise
from autograder.judging.compare import difference
from autograder.judging.judge import draw_key
from autograder.judging.observe import Candidate, EndpointGone, LocalEndpoint
from autograder.judging.probe_inputs import question_of

KEY = draw_key(b"secret", "assignment", "every argument", ["one submission"])
EXERCISES = [exercise for assignment in catalogue.ASSIGNMENTS for exercise in assignment.exercises]

WITHOUT_EFFECT = {  # why an answer may ignore an argument
    ("mha-params", "mha_params", "h"): "the number of heads does not change the count, which is the lesson",
    ("attention-flops", "attention_flops", "h"): "the number of heads does not change the count, which is the lesson",
    ("score-std", "score_std", "n"): "a larger sample measures the same spread, and less uncertainly",
    ("overfit-one-batch", "overfit_one_batch", "cfg"): "the pairs have one configuration, and another model is welcome",
    ("transformer", "__init__", "generator"): "the reference's own, for its first weights; the notebook's has none",
}


def functions(exercise: Exercise) -> Iterator[tuple[str, str, Callable]]:
    """(name that a notebook defines, name of the function or method, the function itself)."""
    for name, made in exercise.reference.items():
        if not exercise.is_class:
            yield name, name, made
        elif exercise.methods:
            yield from ((name, method, each) for method, each in vars(made).items() if method in used(exercise))
        else:
            yield from ((name, method, getattr(made, method)) for method in ("__init__", "forward"))


def used(exercise: Exercise) -> set[str]:
    """The methods that the probes call."""
    return {step["method"] for probe in exercise.probes for step in question_of(exercise, probe, KEY)[0].arguments[0]}


def calls(exercise: Exercise, case: Case, name: str, function: str) -> Iterator[tuple]:
    """The arguments that a case passes to a function, call by call; a result of an earlier step is left out of its
    list."""
    if exercise.methods:
        for step in (step for step in case.arguments[0] if step["method"] == function):
            given = [] if step["given"] is None else [[*step["around"][0], *step["around"][1]]]
            yield *step["with"], *given
    elif function == "__init__":
        yield case.construct
    elif exercise.is_class or (case.function or exercise.names[0]) == name:
        yield case.arguments


def fixed_values(exercise: Exercise, name: str, function: str, parameter: inspect.Parameter, place: int) -> list:
    """The argument's default, and the value that most probes give it; the first, where none can be counted."""
    cases = [question_of(exercise, probe, KEY)[0] for probe in exercise.probes]
    made = [call for case in cases for call in calls(exercise, case, name, function)]
    given = [call[place] for call in made if len(call) > place]
    default = [] if parameter.default is inspect.Parameter.empty else [parameter.default]
    plain = Counter((type(value), value) for value in given if isinstance(value, (bool, int, float, str)))
    return default + ([plain.most_common(1)[0][0][1]] if plain else given[:1])


def with_fixed(exercise: Exercise, name: str, function: str, parameter: str, place: int, value: Any) -> dict:
    """The reference's objects, one function of which never looks at what is passed for one parameter."""

    def ignoring(original: Callable, shift: int) -> Callable:
        @functools.wraps(original)
        def call(*arguments: Any, **named: Any) -> Any:
            named.pop(parameter, None)
            before, after = arguments[: place + shift], arguments[place + shift + 1 :]
            filled = value.clone() if isinstance(value, torch.Tensor) else value
            return original(*before, filled, *after, **named)

        return call

    made = exercise.reference[name]
    if exercise.is_class:
        changed = type(made.__name__, (made,), {function: ignoring(getattr(made, function), 1)})
    else:
        changed = ignoring(made, 0)
    return {**exercise.reference, name: changed}


def fails(exercise: Exercise, objects: dict) -> bool:
    """Whether some probe distinguishes these objects from correct ones."""
    candidate = Candidate(exercise, LocalEndpoint(objects))
    for probe in exercise.probes:
        case, expected, cotangent = question_of(exercise, probe, KEY)
        try:
            if difference(expected, candidate.observe(probe, case, expected, cotangent), probe) is not None:
                return True
        except EndpointGone:
            return True
    return False


def arguments_without_effect(exercise: Exercise) -> set[tuple[str, str, str]]:
    """(id, function, parameter) of parameters that an answer could ignore and earn all points."""
    found = set()
    for name, function, original in functions(exercise):
        parameters = [each for each in inspect.signature(original).parameters.values() if each.name != "self"]
        for place, parameter in enumerate(parameters):
            fixed = fixed_values(exercise, name, function, parameter, place)
            objects = (with_fixed(exercise, name, function, parameter.name, place, value) for value in fixed)
            if not fixed or not all(fails(exercise, each) for each in objects):
                found.add((exercise.id, function, parameter.name))
    return found


@pytest.mark.parametrize(
    "exercise",
    [pytest.param(e, id=e.id, marks=pytest.mark.xdist_group(f"known-{e.id}")) for e in EXERCISES if not e.trained],
)
def test_an_answer_that_ignores_an_argument_fails(exercise):
    allowed = {found for found in WITHOUT_EFFECT if found[0] == exercise.id}
    assert arguments_without_effect(exercise) == allowed
