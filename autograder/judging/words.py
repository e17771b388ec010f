"""What to say about an answer that no known mistake explains.

About a hidden check only fixed phrases are said: an answer chooses its own exception names, texts and shapes, and could
tell its author what the hidden input was.
"""

import builtins
import inspect
import re
from collections.abc import Mapping
from typing import Any

import torch

from autograder.catalogue.exercise import Exercise
from autograder.judging.diagnose import Outcome
from autograder.judging.observation import Raised, Structure

HIDDEN = {
    "value": "other values came back than the right ones",
    "nan": "NaN (not a number) came back",
    "shape": "the result has another shape than it should",
    "dtype": "the result has another dtype than its input",
    "type": "what came back is not of the right type",
    "length": "more or fewer items came back than expected",
    "keys": "the dictionary has other keys than expected",
    "inputs": "an input was changed by your code",
    "state": "a setting of torch that belongs to everybody was changed: its random state, dtype or gradient mode",
    "gradient": "the gradient that flows back is missing or not the right one",
    "structure": "its parameters cannot be read as the projections it should hold",
    "gone": "it could not be finished",
}
VISIBLE = {
    "value": "This is none of the mistakes we know. Do one row by hand, and compare your numbers step by step.",
    "nan": "NaN (not a number) is born where 0 is divided by 0, or infinity by infinity, and spreads from there. Print "
    "each step for the row above and find the first one that holds it.",
    "shape": "Compare the two shapes: which axis is missing, which is extra, which two are exchanged?",
    "dtype": "The result keeps the dtype of its input. Where did another one enter?",
    "length": "This is none of the mistakes we know. Work this one by hand, and compare step by step.",
    "keys": "This is none of the mistakes we know. Work this one by hand, and compare step by step.",
    "inputs": "Whoever called it still needs it as it was: make a new value instead of writing into that one. A name "
    "that ends in _, += and [...] = write in place; so do append, pop and setdefault.",
    "structure": "",
}

_NO_ATTRIBUTE = re.compile(r"'([\w.]+)' object has no attribute '(\w+)'")


def stopped_with(error: Mapping[str, Any]) -> str:
    """The sentence about an error that ended a cell, from its description (see `answerer.describe`)."""
    kind = f"{error['type']}: {error['message']}" if error["message"] else error["type"]
    source = str(error["source"]).strip()
    where = f" at line {error['line']}: {source}" if source else ""
    return f"Your code stopped with {kind}{where}."


def unexplained(exercise: Exercise, outcome: Outcome) -> str:
    """Sentences about the first failure, to be read after the line that shows it."""
    kind = outcome.difference.kind
    if outcome.got is None:
        return f"The checks could not finish: {outcome.difference.text.removeprefix('not checked: ')}."
    if outcome.probe.hidden:
        seen = _hidden(exercise, outcome)
        return f'Every visible check passes, but the hidden check "{outcome.probe.name}" does not: {seen}.'
    if isinstance(outcome.got.result, Raised):
        return _about_error(exercise, outcome, outcome.got.result)
    if isinstance(outcome.got.result, Structure):
        return _about_structure(exercise, outcome, outcome.got.result)
    if kind == "value" and not isinstance(outcome.got.result, torch.Tensor):
        kind = "length"  # a list or a text has no rows
    return _about_type(outcome.difference.text) if kind == "type" else VISIBLE.get(kind, "")


def named(exercise: Exercise, outcome: Outcome, text: str) -> str:
    """The text with the arguments called by their names instead of their numbers, where the text is of our making."""
    if outcome.difference is not None and outcome.difference.kind not in ("inputs", "gradient"):
        return text
    names = argument_names(exercise, outcome)
    return re.sub(
        r"argument (\d+)", lambda found: names[int(found[1]) - 1] if int(found[1]) <= len(names) else found[0], text
    )


def argument_names(exercise: Exercise, outcome: Outcome) -> list[str]:
    """The names in the exercise's signature."""
    reference = exercise.reference[outcome.case.function or exercise.names[0]]
    function = reference.forward if isinstance(reference, type) else reference
    return [name for name in inspect.signature(function).parameters if name != "self"]


def _hidden(exercise: Exercise, outcome: Outcome) -> str:
    result = outcome.got.result
    if outcome.difference.kind == "inputs":  # which one is ours to say: nothing of what the answer chose
        return f"{named(exercise, outcome, outcome.difference.text)}. {VISIBLE['inputs']}".rstrip(".")
    if not isinstance(result, Raised):
        return HIDDEN.get(outcome.difference.kind, "something is not as it should be")
    known = isinstance(getattr(builtins, result.type, None), type)
    return f"your code stopped with {result.type}" if known else "your code stopped with an exception"


def _about_error(exercise: Exercise, outcome: Outcome, error: Raised) -> str:
    name = outcome.case.function or exercise.names[0]
    if error.type == "NotImplementedError" and not error.message:
        return f"{name} is still to be written, beside what you have done so far."
    if error.type == "TypeError" and re.match(rf"{name}\(\) (takes|missing)", error.message):
        return f"The check passes in everything that the first line of the task's cell names: {name} must take it all."
    if error.type == "AttributeError" and (found := _NO_ATTRIBUTE.match(error.message)):
        return f"Before the dot stands a value of type {found[1]}, which has no {found[2]}. What did you expect there?"
    if 'missing the required "forward"' in error.message:
        return f"{exercise.names[0]} has no method called forward: check its spelling and its indentation."
    if "Boolean value of Tensor" in error.message:
        return (
            "A tensor of several numbers is neither true nor false: ask whether it `is None`, or compare its entries."
        )
    if error.type == "NameError":
        return "A name is used that nobody has defined: a misspelling, or an argument that is called otherwise above?"
    if "numpy()" in error.message or "numpy" in error.message.lower():
        return "Something was turned into NumPy on the way. Stay in torch: gradients have to find their way back."
    tensors = any(isinstance(value, torch.Tensor) for value in outcome.case.arguments)
    seen = "shapes" if tensors else "values"
    return f"The line above is where it stopped. Print the {seen} just before it and compare them with what you expect."


def _about_type(text: str) -> str:
    if "expected an integer" in text:
        return "A whole number is asked for, an int. Where did a float enter? A single / makes one, even of 4 / 2."
    if "plain Python number" in text and "without `return`" not in text:
        return "int(...) or float(...) makes a plain number of what holds one; None holds none."
    if "to be raised" in text:
        return "The caller has to hear of it: an error is raised. One that is returned or printed goes by unnoticed."
    if "without `return`" in text:
        return "Nothing came back: is there a `return` at the end of every path?"
    if "a tuple of" in text:
        return "Several things came back where one was asked for; a trailing comma makes a tuple too."
    if "expected a tensor" in text and "a list of" in text:
        return "A Python list came back: torch.stack or torch.tensor makes one tensor of it."
    if re.search(r"expected a tensor, got (-?[\d.]|True|False)", text):
        return "A plain Python value came back, through which no gradient flows: is there an .item() or a float(...)?"
    if "expected a tensor" in text and re.search(r"got an? (sparse_\w+|mkldnn|nested) tensor", text):
        return "An ordinary tensor is asked for, with every number in its place: .to_dense() makes one."
    if "which is more than a check reads" in text:
        return "That is far more than there should be: which axis grew, or which loop adds to it without end?"
    if "expected a tensor" in text and "numpy" in text:
        return "A NumPy array came back. Stay in torch: gradients have to find their way back."
    return "What comes back is not of the kind that the description above the cell asks for."


def _about_structure(exercise: Exercise, outcome: Outcome, seen: Structure) -> str:
    if not seen.module:
        return f"{exercise.names[0]} is not an nn.Module, so its weights cannot be found or trained."
    roles = exercise.roles(*outcome.case.construct)
    wanted = ", ".join(f"{role.name} {role.inputs} to {role.outputs}" for role in roles)
    if not seen.parameters:
        return f"The check looked for these projections: {wanted}. No parameter is registered at all."
    found = ", ".join(f"{name} {shape}" for name, shape in seen.parameters)
    matrices = sum(len(shape) > 1 for _, shape in seen.parameters)
    if matrices > len(roles):
        return (
            f"The check looked for these projections: {wanted}. It saw more than that: {found}. Which one is too many?"
        )
    example = ", ".join(f'"{role.name}": "..."' for role in roles)
    return (
        f"The check looked for these projections: {wanted}. It saw: {found}. "
        f"If they are there under other names, say which is which in the class body: roles = {{{example}}}."
    )
