"""Sentences about a verdict: what was seen, and what it means. They are made of facts, and nothing reads them again.

A learner's own exception text is shown as it is. About a hidden check only fixed phrases are shown: an answer chooses
its own exception names, texts and shapes, and could tell its author what the hidden input was.
"""

import builtins
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch

from autograder.catalogue.exercise import Evidence, Exercise, Misconception, Remark
from autograder.diagnosis.behavior import IN_PLACE, NEW_VALUE, SWITCHED_BACK, WRITES
from autograder.diagnosis.evidence import Explained, Fact, argument_names, explained
from autograder.diagnosis.own_source import Written
from autograder.diagnosis.sentences import noticed_in
from autograder.feedback.about_types import about_dtype, about_lengths, about_shape, about_type, is_number, is_returned
from autograder.feedback.error_meanings import meaning
from autograder.feedback.errors import about_error
from autograder.feedback.structure import about_structure
from autograder.feedback.undefined_names import about_name
from autograder.feedback.values import called, cut, dtype_name, numbers_apart, tensors_apart
from autograder.inside.responder import EARLIER, MODE
from autograder.judging import forbidden
from autograder.judging.compare import value_difference
from autograder.judging.observation import Difference, Outcome, Part, Raised, Structure
from autograder.judging.verdict import MISSING, Forbidden, Missing, NotChecked, Verdict

WRONG_TYPE = "the result does not have the right type"
HIDDEN = {
    "value": "the returned values are not correct",
    "nan": "the result contains NaN (not a number)",
    "shape": "the result does not have the expected shape",
    "dtype": "the result does not have the dtype of its input",
    "type": WRONG_TYPE,
    "not raised": "a result was returned where an error should be raised",
    "length": "the number of returned items is not as expected",
    "keys": "the keys of the dictionary are not as expected",
    "state": "a global setting of torch was changed: its random state, default dtype or gradient mode",
    "undrawn": "the generator that was passed in was not used",
    "reseeded": "the generator that was passed in was seeded",
    "elsewhere": "not everything is drawn from the generator that was passed in: two equal ones give two results",
    "structure": "its parameters are not the ones that it should hold",
    "gone": "it could not be finished",
    "score": "it is not good enough for full points",
}
RANDOM_STATE = "the global random state"
UNASKED_DRAW = (
    "it draws from torch's global random state, or seeds it, and all other code uses it too. Nothing is to be drawn "
    "here; creating a layer, such as nn.Linear, draws as well"
)
SETTINGS = {  # as the answerer calls them
    "the default dtype": "torch's default dtype, a global setting, was changed and not restored",
    "the gradient mode": "torch's gradient mode, a global setting, was changed and not restored",
    RANDOM_STATE: "it draws from torch's global random state, or seeds it, and all other code uses it "
    "too. Draw only from a torch.Generator: the one passed in, if any (creating a layer draws as well)",
    MODE: "forward switches the module, or a part of it, to training or evaluation mode, which the caller chooses",
    EARLIER: "the result of an earlier call was changed by a later one. Make a new result in each call",
}
OF_A_CLASS = (
    "This is not one of the known mistakes. What do the failing checks have in common that the passing ones do not? "
    "Then compare your forward with the page, step by step."
)
BY_HAND = "This is not one of the known mistakes. Work a small example by hand, and compare step by step."
STEPS = "This is not one of the known mistakes. Print the shape and some numbers after each step."
OF_THE_ERROR = ("unreached", "two tensors", "local", "length")  # remarks that explain the error themselves
LOCATED = ("value", "length")  # differences whose general advice is of no use where the line is known
SCORE = (
    "Read some of your translations next to their sources before you change anything: their mistakes say more than the "
    "score. If only some words are wrong, a model of your own may need more training, or other hyperparameters."
)
VISIBLE = {
    "value": "This is not one of the known mistakes. Do one row by hand, and compare your numbers step by step.",
    "nan": "NaN (not a number) arises, for example, where 0 is divided by 0 or multiplied by infinity, infinity is "
    "subtracted from infinity, or the root or logarithm of a negative number is taken, and spreads from there. Print "
    "each step and find the first one that contains it.",
    "length": BY_HAND,
    "keys": "The keys should be exactly those that the docstring describes.",
    "inputs": IN_PLACE,
    "undrawn": "Pass it to each of torch's functions that draw.",
    "reseeded": "The caller has seeded it already. Draw from it as it is.",
    "no gradient": "The values are correct, but no gradient flows back: it is cut off by .item(), .data, .detach(), "
    "no_grad, numpy, torch.tensor(...) of a result, or a layer that holds a copy.",
    "gradient": "The values are correct there, but the gradient is not. A step that changes no value can change it, "
    "such as dividing by a sum that is already 1; so can cutting off one of several paths, or one of several results.",
    "not raised": "An error should be raised for such an input: does your condition cover it? An error that is only "
    "returned or printed goes unnoticed.",
}
MAX_ERROR = 300  # characters of an error that has several lines
SYNTAX = ("SyntaxError", "IndentationError", "TabError")
PLACE = re.compile(r" \([^()]*, line \d+\)$")  # "(answer.py, line 2)"


def explanation(verdict: Verdict) -> str:
    """The sentences about the error, to be read without the lines of the report; empty if there is none."""
    verdict = explained(verdict)
    said, first = known(verdict), verdict.first_failure
    if said or first is None:
        return said
    if first.secret or first.got is None:
        return unexplained(verdict.exercise, first, verdict.noticed)
    parted = f"{first.probe.name}: {seen(verdict.exercise, first).removesuffix('.')}."
    change = verdict.one_change
    found = f"{change.say()} It is line {change.line}: {change.source}" if change else ""
    return " ".join(filter(None, [parted, below_the_lines(verdict), found]))


def below_the_lines(verdict: Verdict) -> str:
    """The sentences after the lines of a report, which show the results."""
    verdict = explained(verdict)
    said, first = known(verdict), verdict.first_failure
    if said or first is None:
        return said
    if verdict.written is not None:
        return _with_the_source(verdict, first, verdict.written)
    located = verdict.one_change is not None and not verdict.noticed
    if located and first.difference.kind in LOCATED:
        return ""
    return " ".join(
        filter(
            None,
            [
                _of_another(verdict.exercise, first),
                unexplained(verdict.exercise, first, verdict.noticed, _of_shapes(verdict, first)),
            ],
        )
    )


def _of_shapes(verdict: Verdict, first: Outcome) -> list[Outcome]:
    """The other failures that may be shown, if they are of shapes in the same part of a result."""
    shown = [each for each in verdict.outcomes if not each.passed and each is not first and not each.secret]
    alike = [each for each in shown if each.difference.kind == "shape"]
    where = [[part for part in each.difference.where if part.kind == "result"] for each in (first, *alike)]
    return [each for each, there in zip(alike, where[1:], strict=True) if there == where[0]]


def _with_the_source(verdict: Explained, first: Outcome, remark: Written) -> str:
    """A remark on the learner's own source, before the facts instead of general advice; after what an error means."""
    if first.difference.kind == "error" and remark.name not in OF_THE_ERROR:
        return f"{unexplained(verdict.exercise, first, verdict.noticed)} {remark.sentence}"
    return f"{remark.sentence} {noticed_in(verdict.exercise, first, verdict.noticed)}".strip()


def _of_another(exercise: Exercise, outcome: Outcome) -> str:
    """A sentence about a later result of the same call that is of another form, where the values of one are wrong."""
    if outcome.secret or outcome.difference.kind not in ("value", "nan") or not outcome.difference.where:
        return ""
    first, wanted, got = outcome.difference.where[0], outcome.expected.result, outcome.got.result
    if first.kind != "result":
        return ""
    for place in range(int(first.name) + 1, len(wanted)):
        parted = value_difference(wanted[place], got[place], outcome.probe.rtol, outcome.probe.atol)
        if parted is not None and parted.kind in ("type", "shape", "dtype"):
            said = _parted(exercise, outcome, replace(parted, where=(Part("result", place), *parted.where)))
            return f"In the same check, {_step(exercise, Part('result', place))}{said}."
    return ""


def known(verdict: Verdict) -> str:
    """The message for an answer that was not run, is blank, or has a known mistake; else empty."""
    if verdict.unasked is not None:
        return _why_unasked(verdict.exercise, verdict.unasked)
    if verdict.blank:
        first = verdict.first_failure
        raised = first.got.result if first is not None and first.got is not None else None
        in_which = isinstance(raised, Raised) and raised.line and verdict.exercise.is_class  # of several methods
        line = f" in line {raised.line}" if in_which else ""
        return f"The answer still raises NotImplementedError{line}: write it where the TODO is, and remove that line."
    found, remark = explained(verdict).diagnosis, explained(verdict).written
    return " ".join([_explained(*found), *([remark.sentence] if remark else [])]) if found else ""


def seen(exercise: Exercise, outcome: Outcome) -> str:
    """The difference from the correct answer, as part of a sentence."""
    parted = outcome.difference
    if isinstance(parted.got, Remark):
        return parted.got
    results = "".join(_step(exercise, part) for part in parted.where if part.kind == "result")
    inner = [part for part in parted.where if part.kind in ("index", "key")]
    if len(inner) > 1:
        results += f"at {''.join(f'[{part.name!r}]' for part in inner)}: "
    elif inner:
        results += f"at {inner[0].kind} {inner[0].name!r}: "
    return results + _parted(exercise, outcome, parted)


def unexplained(
    exercise: Exercise, outcome: Outcome, noticed: Sequence[Fact] = (), others: Sequence[Outcome] = ()
) -> str:
    """Sentences about the first failure, to be read after the line that shows it, and facts about all failures.

    others: further failures that may be shown, where the shapes differ as well.
    """
    facts = noticed_in(exercise, outcome, noticed)
    kind, result = outcome.difference.kind, outcome.got.result if outcome.got is not None else None
    if outcome.got is None:
        return f"The checks could not finish: {_why_gone(outcome.difference)}."
    if outcome.secret:
        shown = _hidden(exercise, outcome)
        where = _asked_with(exercise, outcome)
        begin = f'Every visible check passes, but the hidden check "{outcome.probe.name}" does not{where}: {shown}.'
        return f"{begin} {facts}".strip()
    if kind == "error":
        return f"{about_error(exercise, outcome, result)} {facts}".strip()
    if isinstance(result, Structure):
        return about_structure(exercise, outcome, result)
    if facts and kind == "nan":
        return f"{VISIBLE[kind]} {facts}"
    if facts and kind == "type" and isinstance(result, list):
        return facts
    if facts and kind in ("value", "shape", "length", "keys", "inputs", "no gradient", "gradient"):
        return facts
    if isinstance(outcome.difference.got, Remark):
        return ""
    if kind == "value" and exercise.roles is not None:  # its weights are drawn: nobody works it by hand
        return OF_A_CLASS
    if kind == "value" and (not isinstance(result, torch.Tensor) or result.ndim < 2):
        return STEPS if _draws(outcome) else BY_HAND  # a list, a text or a vector has no rows
    if kind == "score":
        return "" if outcome.difference.expected.is_nearly_full(outcome.difference.got) else SCORE
    if kind == "inputs" and _is_model(outcome):
        return SWITCHED_BACK
    if kind == "inputs" and isinstance(outcome.case.arguments[int(outcome.difference.where[0].name)], torch.Tensor):
        return f"{NEW_VALUE} {WRITES}."
    if kind == "dtype":
        return about_dtype(outcome)
    if kind == "shape":
        lengths = about_lengths(argument_names(exercise, outcome), [outcome, *others])
        return f"{about_shape(outcome.difference, [each.difference for each in others])} {lengths}".strip()
    return about_type(exercise, outcome.difference) if kind == "type" else VISIBLE.get(kind, "")


def _draws(outcome: Outcome) -> bool:
    """Whether random numbers are asked for, which nobody draws by hand."""
    return any(isinstance(argument, torch.Generator) for argument in outcome.case.arguments)


def _is_model(outcome: Outcome) -> bool:
    """Whether a changed argument is a model, of which an answer can change only the mode."""
    return isinstance(outcome.case.arguments[int(outcome.difference.where[0].name)], torch.nn.Module)


def _why_unasked(exercise: Exercise, why: Forbidden | Missing | NotChecked) -> str:
    if isinstance(why, Forbidden):
        return " ".join([*why.findings, *forbidden.called(exercise, why.called)])
    if isinstance(why, NotChecked):
        ours = " Your answer is not at fault: a person will look at it, and no zero is final until then."
        return f"Not checked: {why.reason}.{ours if why.excused else ''}"
    if why.found != MISSING:
        wanted, word = ("class", "class") if exercise.is_class else ("function", "def")
        return (
            f"{why.name} should be a {wanted}, but it is now of type {why.found}. Is it defined with `{word}`? Was the "
            "name used again in a later cell?"
        )
    if why.stopped:
        meant = about_name(exercise, why.stopped[0]) or meaning(why.stopped[0].message)
        return " ".join(filter(None, [_stopped(why.stopped), meant, f"So there is no {why.name} to check."]))
    return f"There is no {why.name} in this notebook yet. Run the cell that defines it, under exactly that name."


def _stopped(errors: Sequence[Raised]) -> str:
    """The error that ended a cell, and the one that ended an earlier cell."""
    beginnings = ("Your code stopped with", "Before that, your code stopped with")
    lines = [f" at line {error.line}: {error.source}" if error.source else "" for error in errors]
    each = zip(beginnings, errors, lines, strict=False)
    return " ".join(f"{beginning} {said_by(error)}{line}." for beginning, error, line in each)


def said_by(error: Raised) -> str:
    """An error as Python shows it, without the signatures that torch lists."""
    said = error.message.partition("\n")[0].removesuffix(", but expected one of:")
    if said.endswith(":"):  # what it announces comes in the next lines
        said = cut(" ".join(error.message.split()), MAX_ERROR)
    if error.type in SYNTAX:
        said = PLACE.sub("", said)  # the report says where
    return f"{error.type}: {said}" if said else error.type


def _explained(misconception: Misconception, evidence: Evidence | None) -> str:
    """The message of a known mistake; without its quote if the numbers are of another kind."""
    try:
        return misconception.explain(evidence)
    except Exception:  # a learner's result may be a list where a tuple is meant, or the like
        return misconception.message


def _step(exercise: Exercise, part: Part) -> str:
    if exercise.kept_attributes:
        return f"{('result', *exercise.kept_attributes)[int(part.name)]}: "
    return f"result {int(part.name) + 1}: "


def _parted(exercise: Exercise, outcome: Outcome, parted: Difference) -> str:
    """A difference in words, without its position in the result."""
    quiz, wanted, got = outcome.probe.hide_expected, parted.expected, parted.got
    match parted.kind:
        case "error":
            return said_by(got)
        case "not raised":
            where, found = ("", "a result") if not wanted.in_constructor else (" by the constructor", "an object")
            return f"expected {wanted.type} to be raised{where}, got {found}"
        case "type":
            return _other_type(exercise, parted)
        case "shape":
            return f"expected shape {wanted}, got {got}"
        case "dtype":
            return f"expected dtype {dtype_name(wanted)}, got {dtype_name(got)}"
        case "value" | "nan":
            return _other_value(exercise, parted, quiz)
        case "length":
            return f"expected {len(wanted)} items, got {len(got)}{'' if quiz else _next_item(wanted, got)}"
        case "keys":
            return _other_keys(wanted, got)
        case "inputs":
            changed = "left in the other mode" if _is_model(outcome) else "changed"
            return f"{_beside(exercise, outcome, parted)} was {changed} by your code"
        case "state":
            name = str(parted.where[0].name)
            if name == RANDOM_STATE and not _draws(outcome):
                return UNASKED_DRAW
            return SETTINGS.get(name, f"{name} was changed and not put back")
        case "no gradient":
            return f"no gradient reaches {_beside(exercise, outcome, parted)}"
        case "gradient":
            place = _beside(exercise, outcome, parted)
            return f"the gradient that reaches {place} is not the correct one"
        case "score":
            return _score(outcome, parted)
        case "gone":
            return f"not checked: {_why_gone(parted)}"
        case kind:
            return HIDDEN[kind]  # undrawn, reseeded, elsewhere, structure


def _score(outcome: Outcome, parted: Difference) -> str:
    scale, score = parted.expected, parted.got
    of_points = f"{scale.share(score):.0%} of the points"
    earns = f"earns {of_points}" if outcome.probe.hidden else f"would earn {of_points} in the graded check"
    return f"{score:.0f} {scale.unit}, which {earns}: none at {scale.none:.0f} or below, all from {scale.full:.1f} on"


def _why_gone(parted: Difference) -> str:
    return parted.got or "it was not asked"


def _beside(exercise: Exercise, outcome: Outcome, parted: Difference) -> str:
    """The object of a difference that is not the result: an argument by name, a projection by role."""
    (part,) = parted.where
    if part.kind == "projection":
        return str(part.name).replace(".", ", ") if "." in str(part.name) else f"the {part.name} projection"
    names = argument_names(exercise, outcome)
    place = int(part.name)
    return names[place] if place < len(names) else f"argument {place + 1}"


def _other_type(exercise: Exercise, parted: Difference) -> str:
    wanted, got, found = parted.expected, parted.got, _found(exercise, parted)
    made = exercise.normalize is not None and not getattr(exercise.normalize, "keeps_type", False)
    if isinstance(wanted, dict) and made and not parted.where:
        return f"got {found}, of which the check can read nothing"  # what is compared is made of the result
    if isinstance(wanted, torch.Tensor):
        return f"expected a tensor, got {found}"
    if isinstance(wanted, tuple):
        return f"expected {len(wanted)} results, got {len(got) if isinstance(got, (tuple, list)) else found}"
    if isinstance(wanted, list):
        return f"expected a list, got {found}"
    if isinstance(wanted, dict):
        return f"expected a dictionary, got {found}"
    if isinstance(wanted, torch.Generator):
        return f"expected a generator in the same state, got {found}"
    if is_number(wanted) and is_number(got):
        return f"expected an integer, got {got!r}"
    if is_number(wanted):
        return f"expected a plain Python number, got {found}"
    return f"got {found}"


def _found(exercise: Exercise, parted: Difference) -> str:
    """The kind of the value that came back."""
    return "None" if parted.got is None and not is_returned(exercise, parted) else called(parted.got)


def _other_value(exercise: Exercise, parted: Difference, quiz: bool) -> str:
    wanted, got = parted.expected, parted.got
    if parted.kind == "nan" and isinstance(wanted, torch.Tensor):
        return f"NaN (not a number) at index {parted.index}"
    place = f" at index {parted.index}" if parted.index else ""
    if isinstance(wanted, torch.Tensor):
        texts = tensors_apart(wanted, got, parted.index)
    elif isinstance(wanted, tuple):  # one item of a list or a dictionary
        texts = repr(wanted), cut(repr(got) if isinstance(got, (tuple, list)) else _found(exercise, parted))
    elif isinstance(wanted, float):
        texts = numbers_apart(wanted, got)
    else:
        texts = repr(wanted), _found(exercise, parted)
    return f"{texts[1]} is not it" if quiz else f"expected {texts[0]}{place}, got {texts[1]}"


def _next_item(wanted: Sequence, got: Sequence) -> str:
    if len(got) < len(wanted):
        return f"; the next one should be {_item(wanted[len(got)])}"
    return f"; the first too many is {_item(got[len(wanted)])}"


def _item(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return f"a tensor of shape {tuple(value.shape)}"
    if isinstance(value, (list, tuple)) and any(isinstance(part, torch.Tensor) for part in value):
        return f"[{', '.join(map(_item, value))}]"
    if isinstance(value, dict) and any(isinstance(part, torch.Tensor) for part in value.values()):
        return f"a dictionary with the keys {', '.join(map(repr, value))}"
    return cut(repr(value))


def _other_keys(wanted: Sequence[str], got: Sequence[str]) -> str:
    missing = [key for key in wanted if key not in got][:1]
    extra = [key for key in got if key not in wanted][:1]
    told = [f"the key {cut(repr(key))} is missing" for key in missing]
    told += [f"the key {cut(repr(key))} should not be there" for key in extra]
    counted = "" if len(wanted) == len(got) else f"expected {len(wanted)} keys, got {len(got)}: "
    return f"{counted}{', and '.join(told)}"


def _asked_with(exercise: Exercise, outcome: Outcome) -> str:
    """The shapes of a hidden check's arguments, which are the same for everybody."""
    pairs = zip(argument_names(exercise, outcome), outcome.case.arguments, strict=False)
    shapes = [f"{name} {tuple(value.shape)}" for name, value in pairs if isinstance(value, torch.Tensor)]
    return f" (with {', '.join(shapes)})" if shapes else ""


def _hidden(exercise: Exercise, outcome: Outcome) -> str:
    result = outcome.got.result
    if outcome.difference.kind in ("no gradient", "gradient", "score"):
        return seen(exercise, outcome)
    if outcome.difference.kind == "shape":
        return f"the result should have the shape {outcome.difference.expected} and has another"
    if outcome.difference.kind == "state" and outcome.difference.where[0].name in SETTINGS:
        return SETTINGS[outcome.difference.where[0].name]
    if outcome.difference.kind == "inputs":  # which one is ours to say: nothing of what the answer chose
        return f"{seen(exercise, outcome)}. {SWITCHED_BACK if _is_model(outcome) else IN_PLACE}".rstrip(".")
    if result is None and outcome.difference.kind == "type":
        return "the function returned None, as a path without a `return` does"
    if outcome.difference.kind != "error":
        return HIDDEN[outcome.difference.kind]
    builtin = isinstance(getattr(builtins, result.type, None), type)
    return f"your code stopped with {result.type}" if builtin else "your code stopped with an exception"
