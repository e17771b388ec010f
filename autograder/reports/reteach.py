"""A card for five minutes in class about one known mistake, drawn from the catalogue: what it does, shown on one small
case that the class can work on paper, and a question to begin with."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from autograder.catalogue.exercise import Exercise, Misconception, Section
from autograder.catalogue.numbers import number
from autograder.diagnosis.evidence import argument_names
from autograder.diagnosis.known_mistakes import namespace_of
from autograder.feedback.messages import seen
from autograder.judging.judge import judge
from autograder.judging.observation import Outcome, Raised, Structure
from autograder.judging.observe import LocalEndpoint
from autograder.policy.points import sentence

DEMONSTRATION = b"for the blackboard"  # hidden inputs of a card are drawn from this key, never from a course's secret
SMALL = 24  # numbers that fit on a blackboard


@dataclass(frozen=True)
class Example:
    """One case that shows the mistake: input, expected result, actual result.

    numbers: whether the actual result is numbers that can be compared with the expected ones.
    """

    name: str
    inputs: tuple[tuple[str, str], ...]
    right: str
    mistaken: str
    numbers: bool


@dataclass(frozen=True)
class Card:
    """The text and the example for one misconception of one exercise."""

    exercise: Exercise
    misconception: Misconception
    example: Example | None
    question: str
    nudge: str

    @property
    def reread(self) -> Section:
        return self.misconception.reread


def card(exercise: Exercise, misconception: Misconception) -> Card:
    """The card, with the smallest case of the exercise on which the wrong answer differs from the right one."""
    outcomes = judge(exercise, LocalEndpoint(namespace_of(misconception.source)), DEMONSTRATION).outcomes
    return card_from(exercise, misconception, outcomes)


def card_from(exercise: Exercise, misconception: Misconception, outcomes: Sequence[Outcome]) -> Card:
    """The card, with the smallest case on which the wrong answer failed."""
    failed = [outcome for outcome in outcomes if not outcome.passed and outcome.got is not None]
    failed.sort(key=lambda outcome: (outcome.probe.hidden, _size(outcome.case.arguments)))
    example = _example(exercise, failed[0]) if failed else None
    return Card(exercise, misconception, example, _question(exercise, example), sentence(exercise.hints[0].strip()))


def _question(exercise: Exercise, example: Example | None) -> str:
    name = exercise.names[0]
    if example is None:
        return f"What must be true of the result of {name}, whatever the input is?"
    if example.numbers:
        return f"Two results of {name} for the same input: which one is right, and how can you tell without code?"
    return f"What should {name} give for this input, and what would have to happen to get the other answer?"


def _example(exercise: Exercise, outcome: Outcome) -> Example:
    arguments = zip(argument_names(exercise, outcome), outcome.case.arguments, strict=False)
    inputs = tuple((name, written(value)) for name, value in arguments)
    right, mistaken, numbers = written(outcome.expected.result), written(outcome.got.result), False
    if isinstance(outcome.got.result, Structure):  # no result came, since the class does not hold what it should
        mistaken = seen(exercise, outcome)
    elif right == mistaken:  # what differs is not in the result itself
        right, mistaken = "", seen(exercise, outcome)
    else:
        numbers = _is_shown_in_numbers(outcome.got.result)
    return Example(outcome.probe.name, inputs, right, mistaken, numbers)


def _is_shown_in_numbers(value: Any) -> bool:
    if isinstance(value, torch.Tensor):
        return 0 < value.numel() <= SMALL
    return isinstance(value, (int, float, list, tuple)) and not isinstance(value, bool)


def _size(value: Any) -> int:
    if isinstance(value, torch.Tensor):
        return value.numel()
    if isinstance(value, (tuple, list)):
        return sum(map(_size, value))
    return 1


def written(value: Any) -> str:
    """A value as on a blackboard; a large one by its shape or its beginning."""
    if isinstance(value, torch.Tensor):
        return _tensor(value)
    if isinstance(value, Raised):
        return f"stops with {value.type}: {value.message}"
    if isinstance(value, float):
        return number(value)
    if isinstance(value, tuple) and any(isinstance(item, torch.Tensor) for item in value):
        return "\n\n".join(written(item) for item in value)
    if callable(value):
        return f"a {type(value).__name__}"
    text = repr(value)
    return text if len(text) <= 160 else f"{text[:157]}..."


def _tensor(tensor: torch.Tensor) -> str:
    """Rows under each other, columns aligned; further axes as blocks."""
    kind = "" if tensor.dtype == torch.float32 else f", {str(tensor.dtype).removeprefix('torch.')}"
    if tensor.numel() > SMALL or tensor.numel() == 0:
        return f"shape {tuple(tensor.shape)}{kind}"
    texts = [number(item) if isinstance(item, float) else str(item) for item in tensor.flatten().tolist()]
    if tensor.dim() == 0:
        return texts[0]
    width, columns = max(map(len, texts)), tensor.shape[-1]
    cells = [text.rjust(width) for text in texts]
    rows = ["  ".join(cells[start : start + columns]) for start in range(0, len(cells), columns)]
    block = tensor.shape[-2] if tensor.dim() > 2 else len(rows)
    return "\n\n".join("\n".join(rows[start : start + block]) for start in range(0, len(rows), block))
