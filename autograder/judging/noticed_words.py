"""Sentences about what was noticed in an answer whose mistake nobody knows."""

import inspect
from collections.abc import Sequence

import torch

from autograder.catalogue.exercise import Exercise
from autograder.catalogue.numbers import number
from autograder.judging.noticed import Noticed
from autograder.judging.observation import Outcome

LINES = {  # of a result with so many axes, what lies along the axis that is so many places from the last
    0: ("numbers of each row", "number of each row"),
    1: ("rows", "row"),
    2: ("items of the batch", "item of the batch"),
}
FIXED = {
    "differs": "Two calls with the same input gave two different results: inside, something is made or drawn anew at "
    "each call, or kept from one call to the next.",
    "kept": "What came back is the answer to an earlier call, with other values: it was kept, in a dictionary, an "
    "attribute or a global name, under something that the two calls share.",
    "fixed": "The same result comes back for different inputs: is it that of the worked example?",
    "items reversed": "These are the right items in the opposite order.",
    "first item missing": "The first item is missing; the others are right.",
    "last item missing": "The last item is missing; the others are right.",
    "an item too many in front": "Something stands in front that should not; all that follows is right.",
    "an item too many at the end": "Something stands at the end that should not; all before it is right.",
    "repeated items lost": "What occurs several times came back once.",
    "another order": "These are the right items in another order.",
    "constant": "Every number of your result is the same one.",
    "signs": "The sizes of all numbers are right; some of the signs are not.",
    "only these sizes": "It is right for the sizes of the example and wrong for others: is one of them written into "
    "the code as a number?",
    "a second call": "It fails only where it is called a second time, with other values: what does it keep from the "
    "first call, in a dictionary, an attribute or a global name?",
    "lost digits": "It fails only in float64, with large numbers that differ by little: is something rounded to "
    "float32 on the way, a root or an exponential taken of what is too large, or a small number added to it?",
    "an axis of size 1": "It fails only where an axis has the size 1: squeeze() takes such an axis away, and a special "
    "case for it can be wrong by itself.",
    "no gradient": "All values are right; only no gradient flows. Where is a step cut off: .item(), .data, .detach(), "
    "no_grad, numpy, torch.tensor(...) of a result?",
    "another gradient": "All values are right; only the gradient is not. A step that changes no value, such as "
    "dividing by a sum that is 1 already, changes the gradient; so does cutting off one of several ways back.",
    "transposed in memory": "It fails only where a tensor lies transposed in memory: view cannot cut it, and "
    "reshape can.",
    "float64": "It fails only in float64: is a float32 made on the way, or too little precision kept?",
}
SAID = ("changed", "inputs")  # a fact that the words for such a difference say already
IN_PLACE = (
    "Whoever called it still needs it as it was: make a new value instead of writing into that one. A name that ends "
    "in _, += and [...] = write in place; so do append, pop and setdefault."
)


def noticed_in(exercise: Exercise, outcome: Outcome, noticed: Sequence[Noticed]) -> str:
    """What was noticed, as sentences. outcome: the first failure; of a hidden one no number is said."""
    told = [fact for fact in noticed if (fact.kind, outcome.difference.kind) != SAID]
    ignored = [fact for fact in told if fact.kind == "ignored"]
    said = [
        _independent(exercise, outcome, ignored) if fact.kind == "ignored" else _sentence(exercise, outcome, fact)
        for fact in told
        if fact not in ignored[1:]
    ]
    return " ".join(said)


def _independent(exercise: Exercise, outcome: Outcome, ignored: Sequence[Noticed]) -> str:
    """Which arguments the result does not depend on."""
    names = [_argument(exercise, outcome, fact) for fact in ignored]
    which = " or ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
    values = [outcome.case.arguments[fact.argument] for fact in ignored]
    opened = all(getattr(value, "dtype", None) == torch.bool for value in values)
    other = "all of it True" if opened else f"other numbers in {'it' if len(names) == 1 else 'them'}"
    return f"Your result does not depend on {which}: with {other}, the same comes back."


def _sentence(exercise: Exercise, outcome: Outcome, fact: Noticed) -> str:
    if fact.kind == "changed":
        return f"{_argument(exercise, outcome, fact)} was changed by your code. {IN_PLACE}"
    said = FIXED.get(fact.kind) or _pattern(fact, outcome.secret)
    return said if fact.sure else f"It looks as if: {said[0].lower()}{said[1:]}"


def _pattern(fact: Noticed, hidden: bool) -> str:
    match fact.kind:
        case "transposed":
            return f"These are the right numbers with axes {fact.axis} and {fact.axes} exchanged."
        case "scaled" if fact.factor == -1:
            return "Every number has the opposite sign."
        case "scaled":
            return f"Every number is {'a constant' if hidden else number(fact.factor)} times the right one."
        case "offset":
            more = "by the same amount" if hidden else f"by {number(abs(fact.factor))}"
            return f"Every number is too {'large' if fact.factor > 0 else 'small'} {more}."
        case "alike":
            return f"All {_along(fact)[0]} are the same in your result."
        case "first only":
            return f"Only the first {_along(fact)[1]} is right."
        case "reversed":
            return f"These are the right numbers in the opposite order along axis {fact.axis}."
        case "shifted":
            return f"These are the right numbers moved by one place along axis {fact.axis}."
        case kind:  # only the first, only the last
            return f"Everything is right but the {kind.removeprefix('only the ')} {_along(fact)[1]}."


def _along(fact: Noticed) -> tuple[str, str]:
    return LINES.get(fact.axes - 1 - fact.axis, (f"slices along axis {fact.axis}", f"slice along axis {fact.axis}"))


def argument_names(exercise: Exercise, outcome: Outcome) -> list[str]:
    """The names in the exercise's signature."""
    if exercise.methods:
        return ["calls"]  # of the class's methods, one after another
    reference = exercise.reference[outcome.case.function or exercise.names[0]]
    function = reference.forward if isinstance(reference, type) else reference
    return [name for name in inspect.signature(function).parameters if name != "self"]


def _argument(exercise: Exercise, outcome: Outcome, fact: Noticed) -> str:
    names = argument_names(exercise, outcome)
    return names[fact.argument] if fact.argument < len(names) else f"argument {fact.argument + 1}"
