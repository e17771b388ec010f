"""Sentences about a name that has no value where it is used."""

import inspect
import math
import re
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from typing import Any

import torch

from autograder import catalogue
from autograder.catalogue.exercise import Exercise
from autograder.judging.observation import Outcome, Raised
from autograder.judging.probe_inputs import question_of

SET_UP = {  # what the set-up cells of these chapters import or define; after "not", those of all others
    "torch": "not",
    "F": "not",
    "nn": "not 00",
    "math": "not 00 15",
    "Counter": "02 11",
    "pairwise": "02",
    "softmax": "05 06 08 11 13 14 16",
    "causal_mask": "11 13",
    "padding_mask": "09",
    "decoder_mask": "09",
    "sinusoidal_pe": "09",
    "MultiHeadAttention": "09 13",
    "EncoderLayer": "14",
    "ModelConfig": "09 10",
    "Transformer": "10 12",
    "pad_sequences": "12",
}
OF_MODULES = {"torch": torch, "F": torch.nn.functional, "nn": torch.nn, "math": math}
UNDEFINED = re.compile(r"name '(\w+)' is not defined")
UNSET = re.compile(r".*(?:local|free) variable '(\w+)'")
UNUSED = "No exercise needs NumPy, and it is not imported. torch has such functions too, and gradients flow through."


def about_name(exercise: Exercise, error: Raised, outcome: Outcome | None = None) -> str:
    """Return a sentence about a name that has no value; empty if the error is a different one. outcome: of the check in
    which it was raised, if any."""
    if "NameError" not in (error.type, *error.kinds) or error.about == ("raised",):
        return ""
    if unset := UNSET.match(error.message):
        return (
            f"{unset[1]} is used before it has a value: the line that gives it one comes later, or is in an `if` or a "
            "loop that was not entered."
        )
    undefined = UNDEFINED.match(error.message)  # all that is known of an error outside of a check
    name = error.about[1] if error.about[:1] == ("name",) else undefined[1] if undefined else "this name"
    if name in ("np", "numpy"):
        return UNUSED
    if cell := _cell_of(exercise, name):
        in_a_file = f" In a file of your own, write {name} there too." if cell.startswith("your cell") else ""
        return f"{name} comes from {cell}: has it run since the kernel started?{in_a_file}"
    if outcome is not None and name in _texts_of(exercise):
        return f"Without quotes, {name} is the name of a variable, and there is none. The text is written '{name}'."
    if comparing := re.match(rf"{re.escape(name)} *==", error.source):
        return f"{comparing[0]} compares {name} with something. A single = gives it a value."
    similar = get_close_matches(name, error.parameters, 1, cutoff=0.75)
    if similar:
        return f"No line that has run gives {name} a value. Is {similar[0]} meant?"
    if exercise.is_class and name in _made_with(exercise):
        return (
            f"{name} is an argument of __init__. Other methods can use it only if it is stored there, as self.{name}."
        )
    owner = next((said for said, module in OF_MODULES.items() if len(name) > 2 and hasattr(module, name)), "")
    usual = 'is "self." missing before it' if exercise.is_class else "does your argument have a different name"
    torchs = f"is {owner}.{name} meant"
    its = usual if not owner else f"{usual}, or {torchs}" if exercise.is_class else torchs
    if not owner and re.search(rf"(?<![\w.]){re.escape(name)}[.(]", error.source):
        its = f"is its import missing, or {its}"
    return f"No line that has run gives {name} a value: is it misspelled, or {its}?".replace(", or is its", ", is its")


def _made_with(exercise: Exercise) -> Sequence[str]:
    """The names of the arguments of a class's constructor."""
    return list(inspect.signature(exercise.reference[exercise.names[0]].__init__).parameters)[1:]


def _texts_of(exercise: Exercise) -> set[str]:
    """The texts in the arguments and the results of the visible checks, such as the names of kinds."""
    questions = [question_of(exercise, probe, b"") for probe in exercise.visible]
    return {text for case, expected, _ in questions for text in (*_texts(case.arguments), *_texts(expected.result))}


def _texts(value: Any) -> Iterator[str]:
    """The texts in a value, among them the keys of dictionaries."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from (text for pair in value.items() for text in _texts(pair))
    elif isinstance(value, (list, tuple)):
        yield from (text for item in value for text in _texts(item))


def _cell_of(exercise: Exercise, name: str) -> str:
    """The cell of the notebook that defines this name, in words; empty if unknown."""
    if is_set_up(exercise.number[:2], name):
        return "the set-up cell at the top of the notebook"
    assignments = (each for each in catalogue.ASSIGNMENTS if exercise.id in each.exercise_ids)
    makers = (each for assignment in assignments for each in assignment.exercises if name in each.names)
    return next((f"your cell of {each.number}" for each in makers if each.id != exercise.id), "")


def is_set_up(chapter: str, name: str) -> bool:
    """Whether the set-up cell of a chapter's notebook defines a name."""
    chapters = SET_UP.get(name, "").split()
    return chapter.isdigit() and (chapter in chapters) != (chapters[:1] == ["not"])
