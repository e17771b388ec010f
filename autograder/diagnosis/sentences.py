"""Sentences about what was noticed in an answer whose mistake nobody knows."""

import inspect
from collections.abc import Sequence
from dataclasses import replace

import torch

from autograder.catalogue.exercise import Exercise
from autograder.catalogue.numbers import number
from autograder.diagnosis.changed_arguments import OF_NUMBERS
from autograder.diagnosis.conditions import Sized
from autograder.diagnosis.counterfactuals import Supposed
from autograder.diagnosis.evidence import Noticed
from autograder.diagnosis.known_mistakes import where_it_is
from autograder.judging.observation import Outcome

LINES = {  # by the number of axes and the distance from the last axis: what lies along that axis
    0: ("numbers of each row", "number of each row"),
    1: ("rows", "row"),
}  # before these lies the batch, or time, or the heads: its number is true of all
FIXED = {
    "differs": "Two calls with the same input gave two different results: inside, something is made or drawn anew at "
    "each call, or kept from one call to the next.",
    "kept": "You returned the result of an earlier call, with other values: it was kept, in a dictionary, an "
    "attribute or a global name, under something that the two calls share.",
    "fixed": "The same result comes back for different inputs: is it that of the worked example?",
    "empty": "It comes back empty where something should be in it: is everything left out, or a loop left at once?",
    "items reversed": "These are the right items in the opposite order.",
    "first item missing": "The first item is missing; the others are right.",
    "last item missing": "The last item is missing; the others are right.",
    "ends early": "What comes back is right as far as it goes; it ends too early.",
    "goes too far": "The beginning is what should come back; then it goes on.",
    "an item too many in front": "There is one item too many in front; all that follows is right.",
    "an item too many at the end": "There is one item too many at the end; all before it is right.",
    "repeated items lost": "What occurs several times came back once.",
    "items of another kind": "The list holds items of a different kind than it should: ids where words belong, "
    "say, or texts where pairs do.",
    "items missing": "Some items are missing; those that came back are right, in the right order.",
    "items too many": "All the right items are there, in the right order, and others with them.",
    "another order": "These are the right items in another order.",
    "constant": "Every number of your result is the same one.",
    "signs": "The sizes of all numbers are right; some of the signs are not.",
    "infinite": "Infinity came back: a power or a quotient became too large, or the logarithm of 0 was taken.",
    "whole": "Whole numbers came back where the right ones are not: was the result rounded, or cut by int or //?",
    "affine": "Every number is the right one times one constant, and another constant more.",
    "offset by line": "Along one axis all numbers are wrong by the same amount, another for each line: what a whole "
    "line has in common is wrong, such as its sum, its maximum or a bias.",
    "scaled by line": "Along one axis all numbers are the right ones times one number, another for each line: what a "
    "whole line is divided by or multiplied with is wrong.",
    "only the diagonal": "Only the diagonal is wrong.",
    "all but the diagonal": "Only the diagonal is right.",
    "other places": "All the right numbers are there, but not in their places: was something cut anew (view, reshape) "
    "where axes should change places, or are two orders mixed up?",
    "too large": "It fails only where numbers are large, and there with NaN: is exp taken of them directly? Only "
    "differences matter to shares, so the largest can be subtracted first.",
    "an axis of 1 too many": "The numbers are right; an axis of size 1 is too many.",
    "an axis of 1 missing": "The numbers are right; an axis of size 1 is missing.",
    "left over diagonal": "An axis is left over: everything was combined with everything, and the right numbers are "
    "on the diagonal, where each meets its own partner.",
    "another shape": "These are the right numbers in the right order, cut into another shape.",
    "nearly": "Your numbers are nearly right, wrong by less than one in a hundred: was something small added, such as "
    "an epsilon, or a number rounded or written with too few digits?",
    "only these sizes": "Every check that fails has other sizes than the example: is a size of the example written "
    "into the code as a number?",
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
    "values with gradients": "It fails only where gradients are computed: does a step there depend on requires_grad?",
    "stops with gradients": "It stops only where gradients are computed: does it write into an argument, by x[...]"
    " = or an operation whose name ends in _, or make a numpy array of it?",
    "transposed in memory": "It fails only where a tensor lies transposed in memory: view cannot cut it, and "
    "reshape can.",
    "float64": "It fails only in float64: is a float32 made on the way, or too little precision kept?",
}
AFTERWARD = {  # what was done to the right result, along the axis {0}
    "softmax again": "Your result is the right one, sent through one more softmax.",
    "one hot": "Of each row only the place of the largest number is left: a 1 there, and 0 elsewhere.",
    "rounded": "These are the right numbers, rounded.",
    "cut below": "All numbers below a limit came back as that limit: something cuts them off.",
    "cut above": "All numbers above a limit came back as that limit: something cuts them off.",
    **{
        kind: f"Every number is the {kind} of the right one."
        for kind in ("square", "root", "logarithm", "exponential", "reciprocal")
    },
    "no negative ones": "Where the right number is negative, yours is 0; all others are right.",
    "sigmoid": "Your result is the right one, sent through a sigmoid.",
    "tanh": "Your result is the right one, sent through tanh.",
    "degrees": "These are the angles, in degrees, whose cosines are the right numbers.",
    "lower triangle": "Only the diagonal and the entries below it are filled; above it you have 0.",
    "upper triangle": "Only the diagonal and the entries above it are filled; below it you have 0.",
    "lower triangle shared": "Above the diagonal you have 0, and the rest of each row was shared out anew: that is a "
    "causal mask, which hides what comes later.",
    "upper triangle shared": "Below the diagonal you have 0, and the rest of each row was shared out anew: a mask "
    "hides what comes earlier.",
    "diagonal gone": "The diagonal is 0; everything else is right.",
    "all but the diagonal shared": "The diagonal is 0, and the rest of each row was shared out anew: something hides "
    "each place from itself.",
    "summed": "These are the right numbers, summed over {0}.",
    "standardized": "The right numbers, but brought to mean 0 and spread 1 along axis {1}.",
    "brought to length 1": "The right numbers, but divided along axis {1} by their length, the root of the sum of "
    "squares.",
    "centered": "The right numbers, but less their mean along axis {1}.",
    "shares": "The right numbers, but divided by their sum along axis {1}.",
    "shares of squares": "Along axis {1} your numbers are in proportion to the squares of the right ones.",
    "shares of cubes": "Along axis {1} your numbers are in proportion to the third powers of the right ones.",
    "shares of roots": "Along axis {1} your numbers are in proportion to the roots of the right ones.",
    "shares of reciprocals": "Along axis {1} your numbers are large where the right ones are small, in proportion "
    "to 1 divided by them.",
    "by the largest": "The right numbers, but divided by the largest along axis {1}.",
    "running sum": "Each number is the sum of the right ones up to it along axis {1}: is a sum kept that should "
    "begin anew?",
    "running sum from the end": "Each number is the sum of the right ones from it to the end along axis {1}.",
    "from 0 to 1": "The right numbers, but stretched along axis {1} so that the smallest is 0 and the largest 1.",
    "averaged": "These are the right numbers, averaged over {0}.",
    "first alone": "Of {0}, only the first came back.",
    "last alone": "Of {0}, only the last came back.",
}
AS_IF = {  # what came back is the right result for ...
    "one more": "{0} + 1 instead of {0}",
    "one less": "{0} - 1 instead of {0}",
    "one less, from 0": "{0} - 1 instead of {0}, and 0 where that would be less",
    "one less, from 1": "{0} - 1 instead of {0}, and 1 where that would be less",
    "opposite": "the opposite of {0}, with True and False exchanged",
    "opened": "{0} with True everywhere: what it should hide still takes part",
    "zeros": "{0} with nothing but zeros in it: its numbers play no part",
    "unsigned": "{0} without its minus signs",
    "each turn on": "{0} with its numbers moved on by one place, the last one in front",
    "each turn back": "{0} with its numbers moved back by one place, the first one at the end",
    "times itself": "{0} multiplied by itself instead of {0}: two steps where one is meant",
    "symmetric part": "the mean of {0} and its transpose instead of {0}",
    "inverted": "the inverse of {0} instead of {0}",
    "least for all": "the least number of {0} in every place of it",
    "greatest for all": "the greatest number of {0} in every place of it",
    "last for all": "the last number of {0} in every place of it",
    "without the first": "{0} without its first item",
    "without the last": "{0} without its last item",
    "backward": "{0} read backward",
    "each once": "{0} with what occurs again left out",
    "each backward": "{0} with every sequence in it read backward",
    "each without its first": "{0} with the first item of every sequence left out",
    "each without its last": "{0} with the last item of every sequence left out",
    "longest first": "{0} sorted by length, the longest first",
    "shortest first": "{0} sorted by length, the shortest first",
    "small letters": "{0} in small letters",
    "one over": "1 / {0} instead of {0}",
    "root of": "the root of {0} instead of {0}",
    "square of": "the square of {0} instead of {0}",
    "nonnegative": "{0} with 0 instead of its negative numbers",
    "opposite signs": "{0} with all its signs changed",
    "squared": "{0} with all its numbers squared",
    "unit rows": "{0} with every row of it brought to length 1",
    "unit columns": "{0} with every column of it brought to length 1",
    "centered rows": "{0} with the mean of every row taken away from it",
    "centered columns": "{0} with the mean of every column taken away from it",
    "shared rows": "{0} with a softmax over every row of it first",
    "shared columns": "{0} with a softmax over every column of it first",
    "always -1": "-1 instead of {0}, whatever it is",
    "always 0": "0 instead of {0}, whatever it is",
    "always 1": "1 instead of {0}, whatever it is",
    "e to the": "e to the power of {0} instead of {0}",
    "cut to whole": "{0} cut to a whole number",
    "from the other end": "-{0} - 1 instead of {0}: the axis was counted from the other end",
    "rooted": "{0} with the root of all its numbers",
    "standardized rows": "{0} with every row of it brought to mean 0 and variance 1",
    "running sum": "{0} with running sums of its {5}",
    "first blank": "{0} with 0 in its first {4}: it plays no part",
    "final blank": "{0} with 0 in its last {4}: it plays no part",
    "sum for all": "{0} with the sum of its {5} in every place",
    "mean for all": "{0} with the mean of its {5} in every place",
    "exchanged": "{0} and {1} exchanged: each is where the other belongs",
    "turned": "{0} with its axes {2} and {3} exchanged",
    "first for all": "{0} with its first {4} in every place",
    "final for all": "{0} with its last {4} in every place",
    "moved on": "{0} with each {4} moved on by one place, and the last one in front",
    "moved back": "{0} with each {4} moved back by one place, and the first one at the end",
    "first hidden": "{0} with False in its first place along axis {2}: that place is never looked at",
    "last hidden": "{0} with False in its last place along axis {2}: that place is never looked at",
    "with 1s on the diagonal": "{0} with 1 more on its diagonal",
    "flipped": "{0} in the opposite order along axis {2}",
}
LENGTHS = {  # of what has another length than it should
    "axis": "as long as axis {1} of {0}",
    "count": "as long as {0} has items",
    "together": "as long as all items of {0} together, end to end",
    "fixed": "of one and the same length wherever it is wrong",
    "multiple": "rounded up to a multiple of {1}",
    "mean": "as long as the items of {0} are on average",
    "shortest": "as long as the shortest item of {0}",
    "first": "as long as the first item of {0}",
    "last": "as long as the last item of {0}",
    "value": "as long as {0} says",
    "one more": "one longer than {0} says",
    "one less": "one shorter than {0} says",
    "twice": "twice as long as it should be",
}
ALONG = (
    "Something is done along the wrong axis: with axes {2} and {3} of {0} exchanged, and exchanged back in the result, "
    "these are the right numbers."
)
TWO = "Two slips at once, so it seems."
BESIDE = {  # the words of a fact about a known mistake's result instead of the right one
    "these are the right numbers": "the numbers agree",
    "the right number is": "that number is",
    "the right numbers": "those numbers",
    "the right ones": "those",
    "numbers are right": "numbers are those",
    "the right result": "that result",
    "the right one": "that one",
    "the right items": "those items",
}
REDUCED = {
    "sum": "{0} added up along axis {1}",
    "mean": "{0} averaged along axis {1}",
    "largest": "the largest number of {0} along axis {1}",
    "first": "the first slice of {0} along axis {1}",
    "last": "the last slice of {0} along axis {1}",
}
ADDED = {
    "argument added": "Your result is the right one with {0} added to it.",
    "argument taken away": "Your result is the right one with {0} taken away from it.",
}
FROM_THE_END = {0: "its last axis", 1: "its last axis but one", 2: "its last axis but two"}
MEASURED = {  # what of an argument {1} every number was divided by, or multiplied with
    "length": "the length (the root of the sum of squares) of {1} along {2}",
    "squared length": "the sum of squares of {1} along {2}",
    "sum of sizes": "the sum of the absolute values of {1} along {2}",
    "sum": "the sum of {1} along {2}",
    "largest": "the largest number of {1} along {2}",
    "largest size": "the largest absolute value of {1} along {2}",
    "count itself": "{0}{1}",
    "count root": "the root of {0}{1}",
    "count root of the root": "the root of the root of {0}{1}",
    "count square": "the square of {0}{1}",
    "count one less": "one less than {0}{1}",
    "count one more": "one more than {0}{1}",
}
SAID = ("changed", "inputs")  # a fact that the words for such a difference say already
LEFT_OTHERWISE = (
    "A model is left as it came, also in the mode in which it came: code that switches the mode has to switch it back."
)
ANEW = (  # of a class, which is constructed for each call
    "Two objects of your class, given the same weights and the same input, gave two different results. Either dropout "
    "is on in evaluation mode, or there is a parameter that the task does not ask for: it keeps the random values that "
    "it begins with, as learned positions do where fixed ones are expected."
)
IN_PLACE = (
    "The caller still needs it as it was: make a new value instead of writing into that one. A name that ends "
    "in _, += and [...] = write in place; so do append, pop and setdefault."
)


def noticed_in(exercise: Exercise, outcome: Outcome, noticed: Sequence[Noticed]) -> str:
    """What was noticed, as sentences. outcome: the first failure; of a hidden one no number is shown."""
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
    return f"Here your result does not depend on {which}: with {other}, the same comes back."


def _sentence(exercise: Exercise, outcome: Outcome, fact: Noticed) -> str:
    if fact.kind == "changed":
        model = isinstance(outcome.case.arguments[fact.argument], torch.nn.Module)
        return f"{_argument(exercise, outcome, fact)} was changed by your code. {LEFT_OTHERWISE if model else IN_PLACE}"
    if fact.kind == "differs" and exercise.roles is not None:
        return ANEW
    if fact.partial:
        said = _sentence(exercise, outcome, replace(fact, partial=False))
        return f"In some of the checks that fail, though not in all: {said[0].lower()}{said[1:]}"
    if fact.where:
        return f"{where_it_is(fact.where)}: {_sentence(exercise, outcome, replace(fact, where=(), size=0))}"
    if fact.part:
        return f"Of result {fact.part}: {_sentence(exercise, outcome, replace(fact, part=0))}"
    if fact.beside:
        second = _sentence(exercise, outcome, replace(fact, beside=""))
        for right, those in BESIDE.items():
            second = second.replace(right, those)
        return f"{TWO} One: {fact.beside} The other, on top of it: {second}"
    if isinstance(fact, Sized):
        made = list(inspect.signature(exercise.reference[exercise.names[0]].__init__).parameters)[1:]
        name = made[fact.name] if isinstance(fact.name, int) else fact.name
        fails, passes = (" or ".join(map(str, sizes)) for sizes in (fact.fails, fact.passes))
        return f"It fails in every check where {name} is {fails}, and in none where {name} is {passes}."
    if isinstance(fact, Supposed):
        return _supposed(exercise, outcome, fact)
    if fact.kind in ADDED:
        return ADDED[fact.kind].format(_argument(exercise, outcome, fact))
    if fact.kind.startswith(("divided by ", "multiplied by ", "turned, ")):
        how, _, name = fact.kind.partition(" by ")
        plain = how.removeprefix("turned, ")
        by = f"{plain} {'by' if plain == 'divided' else 'with'} {MEASURED[name]}"
        axis = FROM_THE_END.get(fact.axis, "an earlier axis")
        size = "" if fact.axis < 0 else f"the size of {axis.replace('its', 'the')} of "
        turned = " and with its sign changed" if how.startswith("turned") else ""
        said = f"every number is the right one, {by.format(size, _argument(exercise, outcome, fact), axis)}{turned}."
        return f"{said[0].upper()}{said[1:]}" if fact.sure else f"It looks as if {said}"
    if fact.kind.startswith(("more by ", "less by ")):
        how, _, name = fact.kind.partition(" by ")
        size = f"the size of {FROM_THE_END.get(fact.axis, '').replace('its', 'the')} of " if fact.axis >= 0 else ""
        by = MEASURED[name].format(size, _argument(exercise, outcome, fact))
        return f"Every number is too {'large' if how == 'more' else 'small'} by {by}."
    if fact.kind.startswith("argument "):
        name, kind = _argument(exercise, outcome, fact), fact.kind.removeprefix("argument ")
        return f"It fails where {name} is {kind}, and only there."
    if fact.kind.startswith("afterward "):
        axis = "all places" if fact.axis < 0 else f"axis {fact.axis}"
        said = AFTERWARD[fact.kind.removeprefix("afterward ")].format(axis, fact.axis)
    else:
        said = FIXED.get(fact.kind) or _pattern(fact, outcome.secret, _argument(exercise, outcome, fact))
    return said if fact.sure else f"It looks as if: {said[0].lower()}{said[1:]}"


def _supposed(exercise: Exercise, outcome: Outcome, fact: Supposed) -> str:
    name, other = _argument(exercise, outcome, fact), _argument(exercise, outcome, replace(fact, argument=fact.other))
    if fact.kind == "values":
        one, two = map(repr, fact.values)
        return f"{one} and {two} are exchanged: for {name} = {one} comes back what is right for {two}, and the reverse."
    if fact.kind == "value":
        passed, meant = map(repr, fact.values)
        spelled = ": is it compared as the task spells it?" if isinstance(fact.values[0], str) else "."
        return f"Where {name} is {passed}, what came back is the right result for {meant}{spelled}"
    if fact.back:
        return ALONG.format(name, other, fact.axis, fact.second)
    name = f"{name} and {other}, each" if fact.other and fact.kind in OF_NUMBERS else name
    said = AS_IF[fact.kind.removesuffix(" beside others")].format(
        name, other, fact.axis, fact.second, *reversed(_along(fact))
    )
    return f"What came back is the right result for {said}."


def _pattern(fact: Noticed, hidden: bool, name: str) -> str:
    match fact.kind:
        case "transposed":
            return f"These are the right numbers with axes {fact.axis} and {fact.axes} exchanged."
        case "scaled" if fact.size == 1:
            times = (
                "times the right one, always by the same factor"
                if hidden
                else f"{number(fact.factor)} times the right one"
            )
            return f"Wherever your number is wrong, it is {times}."
        case "offset" if fact.size == 1:
            more = "by the same amount" if hidden else f"by {abs(fact.factor):g}"
            return f"Wherever your number is wrong, it is too {'large' if fact.factor > 0 else 'small'} {more}."
        case "scaled" if fact.factor == -1:
            return "Every number has the opposite sign."
        case "scaled":
            return f"Every number is {'a constant' if hidden else number(fact.factor)} times the right one."
        case "offset":
            more = "by the same amount" if hidden else f"by {number(abs(fact.factor))}"
            return f"Every number is too {'large' if fact.factor > 0 else 'small'} {more}."
        case "missing first" | "missing last":
            return f"The {fact.kind.removeprefix('missing ')} {_along(fact)[1]} is missing; the others are right."
        case "too many first" | "too many last":
            place = fact.kind.removeprefix("too many ")
            return f"There is one {_along(fact)[1]} too many, the {place}; the others are right."
        case "sum" | "mean" | "largest" | "first" | "last":
            return f"An axis is missing: your result is {REDUCED[fact.kind].format('the right one', fact.axis)}."
        case "left over sum" | "left over mean" | "left over largest" | "left over first" | "left over last":
            how = REDUCED[fact.kind.removeprefix("left over ")].format("it", fact.axis)
            return f"An axis is left over: the right result is {how}."
        case "axes joined":
            return (
                f"Axes {fact.axis} and {fact.axis + 1} came back as one: they were flattened and not cut apart again."
            )
        case "axis gone":
            return f"Axis {fact.axis} of the right result is gone: it was summed over, picked from or left out."
        case "axis too many":
            return f"Your axis {fact.axis} is one too many: sum over it, or let each item meet only its own."
        case "one value":
            value = "the same number" if hidden else f"{fact.factor:g}"
            return (
                f"Wherever your result is wrong, it is {value}: was the result made with it, or is it a fixed number?"
            )
        case "alike":
            return f"All {_along(fact)[0]} are the same in your result."
        case "first only":
            return f"Only the first {_along(fact)[1]} is right."
        case "other order":
            return f"These are the right numbers in another order along axis {fact.axis}."
        case "reckoned":
            return fact.how.format(name, fact.second)
        case "goes on":
            return f"Your result begins with the right one; along axis {fact.axis} it goes on behind it."
        case "cut short":
            return f"Yours is the beginning of the right result: along axis {fact.axis} it is cut short."
        case "size":
            return f"Axis {fact.axis} of your result is {LENGTHS[fact.how].format(name, fact.second)}."
        case "reversed":
            return f"These are the right numbers in the opposite order along axis {fact.axis}."
        case "shifted":
            return f"These are the right numbers moved by one place along axis {fact.axis}."
        case kind:  # only the first, only the last
            return f"Everything is right but the {kind.removeprefix('only the ')} {_along(fact)[1]}."


def _along(fact: Noticed) -> tuple[str, str]:
    return LINES.get(fact.axes - 1 - fact.axis, (f"items along axis {fact.axis}", f"item along axis {fact.axis}"))


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
