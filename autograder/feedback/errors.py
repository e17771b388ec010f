"""Sentences about an exception that ended a learner's function: what it is about, and where to look."""

import inspect
import math
import re
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any

import torch

from autograder.catalogue.exercise import Exercise
from autograder.diagnosis.evidence import argument_names
from autograder.feedback.error_meanings import NO_VALUE, OVER, meaning, rule_of_shapes
from autograder.feedback.undefined_names import about_name
from autograder.judging.observation import Outcome, Raised
from autograder.judging.verdict import NO_FORWARD, UNWRITTEN

OWNERS = {"Tensor": torch.Tensor, "Optimizer": torch.optim.SGD, "list": list, "dict": dict, "str": str}
MOST_LAYERS = 8  # that are listed
STOPPED_BY_SHAPES = ("IndexError", "RuntimeError", "ValueError")
OF_SIZES = re.compile(
    r"siz|shape|dim|axes|axis|element|length|unpack|broadcast|operand|subscript|\d-?D\b", re.IGNORECASE
)
NOT_OF_SHAPES = re.compile(  # in words that are those of sizes, or of an index
    r"view size is not compatible|cannot sample n_sample|tensors used as indices must|only integers, slices"
)
TRANSPOSED = r"\.(?P<how>m?T\b|t\(\)|(?:transpose|swapaxes|permute)\((?P<axes>[-\d, ]+)\))"
OF_DTYPES = re.compile(
    r"same dtype|dtypes must be the same|did not match (?:Float|Double)|scalar type|data types to match|"
    r"dtypes? .*to match|expected dtype"
)
BUILTIN_MAXIMUM = re.compile(r"(?<![\w.])(max|min)\(")
RETURNED = re.compile(r"torch\.return_types\.(max|min|sort|topk|median|mode|kthvalue|cummax|cummin)\b")
NO_ATTRIBUTE = re.compile(r"module '(torch[\w.]*|math)' has no attribute '(\w+)'")
NEW_SHAPE = re.compile(r"shape '\[(.*)\]' is invalid for input of size (\d+)")
NO_TENSOR = re.compile(r"must be Tensor, not (\w+)")
OPERANDS = re.compile(r"unsupported operand type\(s\) for .+: '(\w+)' and '(\w+)'")
BETWEEN = re.compile(r"[\w)\]]\s*[-+*/<>]")  # a sign between two things, not the one of a number
TAKEN = re.compile(r"takes (\d+) positional arguments? but (\d+) ")
WITHOUT = re.compile(r"missing \d+ required positional arguments?: (.*)")
NO_CONSTRUCTOR = re.compile(r"\w+\.__init__\(\) takes 1 positional argument but")
FUNCTIONAL = re.compile(r"\b(?:F|functional)\.linear\(")
WEIGHT_FIRST = "F.linear takes its weight as (outputs, inputs), the transpose of what x @ W takes."
PRODUCTS = ("@", "matmul", ".bmm", ".mm")
ASKED_WHOLE = re.compile(r"\b(and|or|(?<!is )not(?! in\b))\b")
ENTRY_BY_ENTRY = {
    "and": "`and` needs one truth value, and a tensor of several entries has none. & combines two masks entry by "
    "entry.",
    "or": "`or` needs one truth value, and a tensor of several entries has none. | combines two masks entry by entry; "
    "any() and all() make one truth value of many; `is None` shows whether an argument was left out.",
    "not": "`not` needs one truth value, and a tensor of several entries has none. ~ inverts each entry of a mask.",
}
TRUTH = "A tensor of several numbers is neither true nor false: check whether it `is None`, or compare its entries."
UNMADE = "super().__init__() has to come first in the constructor: before it, a module can hold no layers."
OF_IDS = "A row of a table is selected by its id, a whole number. Floats are given: are the arguments in their order?"
NO_SHARE = "A row has no probability above 0: nothing is left to draw."
OWN = (
    "Your own code raises this error, where a result is expected. Why is that line reached: does its condition cover "
    "too much, or does the code before it not return?"
)
NO_LINE = (
    "No line of yours raised this error: it arose later, where the value that your code returned was used. Does each "
    "method return what its docstring says?"
)
NAMES_OF_STATES = (
    "load_state_dict takes exactly the names of the model's own parameters, with their shapes. Compare what the "
    "message lists with what your code makes."
)
KINDS = "Two dtypes are combined there. Create your own tensors with the dtype of the input, such as x.dtype."
LEAF = (
    "A tensor for which gradients are computed is written into in place. Make a new value instead. (Only a layer's own "
    "parameters may be overwritten, inside `with torch.no_grad():`.)"
)
OVERWRITTEN = (
    "A tensor that the gradients still need was written into afterwards, by +=, by [...] = or a name that ends in _. "
    "Make a new one at each step: a = a + b."
)
NUMPY = "Something was converted to NumPy on the way. Use torch throughout, so that gradients can flow back."
MAXIMUM = (
    "Python's max and min compare two whole tensors, and several numbers give no single answer. To compare them "
    "element by element, use torch's functions."
)
A_MASK = (
    "A mask of True and False is used where numbers are expected. Is it passed instead of another argument? "
    "Arguments without a name are taken in the order of the signature."
)
MATH = "The functions of math take single numbers. For most, torch has functions of the same names for tensors."
OF_A_NUMBER = "torch.{0} takes a tensor, and this is a plain number, of type {1}. The module math has one for numbers."
PAIR = "{0} returns two tensors here, the values and their indices. Select one of them first."
LAYER = (
    "nn.{0}(...) makes a layer and computes nothing yet: what is in its brackets are its settings. The layer that was "
    "made is then called with the tensor."
)
LINEAR = "The last axis of a linear layer's input is as long as the first size that the layer was made with."
EITHER = (
    "In A @ B the last axis of A must be as long as the last but one of B. In a linear layer the last axis of the "
    "input must be as long as the first size that the layer was made with. Does a matrix have to be transposed?"
)
MATRICES = "mat1 and mat2"
LENGTH_FIRST = (
    "PyTorch's attention takes the first axis for the length and the second for the batch, and so does its "
    "Transformer. When you make the layer, you can say that the batch comes first."
)
MASK_OF_FOUR_AXES = (
    "nn.MultiheadAttention takes a mask of two axes, (query, key), or of three, (batch * heads, query, key), and True "
    "means *hidden* there. A mask of four axes in which True means *may attend* has to be converted first, as in 08.6."
)
TORCH_SAYS = {  # how torch's words begin, where nothing else tells one of its errors from another
    "Error(s) in loading state_dict for": NAMES_OF_STATES,
    "Boolean value of Tensor with more than one value is ambiguous": TRUTH,
    "selected index k out of range": "k is negative, or larger than the axis along which topk selects.",
    "cannot assign module before Module.__init__() call": UNMADE,
    "cannot assign parameters before Module.__init__() call": UNMADE,
    "Expected tensor for argument #1 'indices'": OF_IDS,
    "The shape of the 2D attn_mask is": LENGTH_FIRST,
    "For batched (3-D) `query`, expected `attn_mask` to be `None`, 2-D or 3-D but found 4-D": MASK_OF_FOUR_AXES,
    "the batch number of src and tgt must be equal": LENGTH_FIRST,
    "Expected key_padded_mask.shape[0] to be": LENGTH_FIRST,
    "a leaf Variable that requires grad": LEAF,
    "a view of a leaf Variable that requires grad": LEAF,
    "one of the variables needed for gradient computation": OVERWRITTEN,
    "invalid multinomial distribution (sum of probabilities <= 0)": NO_SHARE,
    "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.": NUMPY,
}


def about_error(exercise: Exercise, outcome: Outcome, error: Raised) -> str:
    """Return what an error is about and where to look: by the definition that was called, by what is known of the
    error, by its message; else advice that is right of any error."""
    said = _about_definition(exercise, outcome, error) or _about_facts(exercise, outcome, error)
    if said or (said := _about_message(error)):
        return said
    if exercise.methods and not error.line:
        return NO_LINE
    tensors = any(isinstance(value, torch.Tensor) for value in outcome.case.arguments)
    what = "shapes" if tensors else "values"
    return f"The line above is where it stopped. Print the {what} just before it and compare them with what you expect."


def _about_definition(exercise: Exercise, outcome: Outcome, error: Raised) -> str:
    """A sentence about the function or class that the check called: what is missing in it, or its signature."""
    name, first = outcome.case.function or exercise.names[0], exercise.names[0]
    if NO_CONSTRUCTOR.match(error.message) and exercise.is_class:
        return f"{first} has no __init__ with arguments: is it spelled with two underscores on each side?"
    if error.about == NO_FORWARD and f"[{first}]" in error.message:
        return f"{first} has no method called forward: check its spelling and its indentation."
    if error.type == UNWRITTEN and not error.message:
        return f"{name} is still to be written, in addition to what you have done so far."
    if error.about == ("arguments",):
        if error.message == f"'{first}' object is not callable":
            return f"{first} has to be a module: class {first}(nn.Module). A module can be called."
        if exercise.is_class and (count := TAKEN.search(error.message)) and int(count[2]) == int(count[1]) + 1:
            return f"{name} takes one argument fewer than it is passed. Is self missing, or one of the signature's?"
        if left_out := _defaults_lost(exercise.reference[name], error):
            return f"In the signature of the task's cell, {left_out}, so the check may leave it out."
        return (
            f"The check calls {name} with the arguments of the signature in the task's cell, in that order, and may "
            "leave out those that have a default there. Keep that signature."
        )
    called = "forward" if exercise.is_class else name
    return _other_order(called, argument_names(exercise, outcome), error.parameters)


def _defaults_lost(reference: Any, error: Raised) -> str:
    """The first argument that a call lacks and that has a default in the task's signature, with it; else nothing."""
    in_forward = isinstance(reference, type) and ".forward() missing" in error.message
    function = reference.forward if in_forward else reference
    lacking = WITHOUT.search(error.message)
    defaults = {
        name: each.default
        for name, each in inspect.signature(function).parameters.items()
        if each.default is not inspect.Parameter.empty
    }
    names = re.findall(r"'(\w+)'", lacking[1]) if lacking else []
    return next((f"{name} has a default, {name}={defaults[name]!r}" for name in names if name in defaults), "")


def _about_facts(exercise: Exercise, outcome: Outcome, error: Raised) -> str:
    """A sentence about what raised the error, whatever its message says."""
    if error.about == ("handed over",):
        return "A function that the check passes to yours raised this error. Look at what your line calls it with."
    if error.about[:1] == ("attribute",) and len(error.about) == 3:
        return _about_attribute(exercise, *error.about[1:]) + _has_instead(exercise, outcome, error.about[1])
    if said := about_name(exercise, error, outcome):
        return said
    if isinstance(outcome.expected.result, Raised):
        return f"An error is right here, but of a different kind: {outcome.expected.result.type} is expected."
    if error.about == ("raised",):
        return OWN
    if error.about[:1] == ("hidden",) and error.about[1:]:
        name = error.about[1]
        return (
            f"The name {name} has been given to a value, so that Python's own {name} cannot be called any more. Call "
            f"the value something else; where it is in a cell of its own, `del {name}` brings Python's back."
        )
    if error.type == "SystemExit":
        return "exit() ends the whole program. A function ends with `return`, an error is raised with `raise`."
    if error.type == "KeyError" and error.message and not meaning(error.message):
        is_tensor = error.message.startswith("tensor(")
        why = (
            "Each tensor is a separate key, whatever number it holds. .item() returns that number." if is_tensor else ""
        )
        if not why and (name := _holds_as_a_value(exercise, outcome, error.message)):
            return (
                f"{error.message} is one of the values in {name}, not a key. Is the way back from values to keys meant?"
            )
        why = why or "Is it read before it is entered, or of a different type?"
        return f"Nothing is stored under the key {error.message}. {why}"
    return ""


def _holds_as_a_value(exercise: Exercise, outcome: Outcome, key: str) -> str:
    """The argument, a dictionary, that has this key among its values and not among its keys; else nothing."""
    for name, value in zip(argument_names(exercise, outcome), outcome.case.arguments, strict=False):
        if isinstance(value, dict) and key in map(repr, value.values()) and key not in map(repr, value):
            return name
    return ""


def _about_message(error: Raised) -> str:
    """A sentence about what Python or torch says, and about the shapes in the failing line."""
    if error.message.startswith("Boolean value of Tensor") and BUILTIN_MAXIMUM.search(error.source):
        return MAXIMUM
    if error.message.startswith("Boolean value of Tensor") and (word := ASKED_WHOLE.search(error.source)):
        return ENTRY_BY_ENTRY[word[1]]
    if said := [words for begins, words in TORCH_SAYS.items() if error.message.startswith(begins)]:
        return said[0]
    if error.about == ("numpy",):
        return NUMPY
    if error.message.startswith("only one element tensors") and "math." in error.source:
        return MATH
    if pair := RETURNED.search(error.message):
        return PAIR.format(pair[1])
    if kinds := OPERANDS.search(error.message) or NO_TENSOR.search(error.message):
        if made := [kind for kind in kinds.groups() if isinstance(getattr(torch.nn, kind, None), type)]:
            return LAYER.format(made[0])
        if kinds.re is NO_TENSOR and kinds[1] == "NoneType":
            return NO_VALUE
        function = error.message.partition("(")[0]
        if kinds.re is NO_TENSOR and kinds[1] in ("int", "float") and hasattr(math, function):
            return OF_A_NUMBER.format(function, kinds[1])
        if kinds.re is NO_TENSOR:
            return f"One of the arguments there has to be a tensor, and it is of type {kinds[1]}."
    if error.type == "RuntimeError" and OF_DTYPES.search(error.message):
        return A_MASK if "bool" in error.message.lower() else KINDS
    if named := NO_ATTRIBUTE.match(error.message):
        similar = _similar(named[2], sys.modules.get(named[1]))
        return f"{named[1]} has no {named[2]}. " + (f"Is {similar} meant?" if similar else "Is it spelled like that?")
    return meaning(error.message) or _shapes_that_met(error) or _rule(error)


def _rule(error: Raised) -> str:
    """The rule of shapes that an error is about. torch raises the same error for a product and a linear layer."""
    if error.message.startswith(MATRICES):
        return EITHER if any(sign in error.source for sign in PRODUCTS) else LINEAR
    if new := NEW_SHAPE.match(error.message):
        return " ".join(filter(None, [rule_of_shapes(error.message), _left_out(new[1], int(new[2]))]))
    return rule_of_shapes(error.message)


def _left_out(lengths: str, numbers: int) -> str:
    """By which factor the lengths of a new shape are too few or too many; nothing if that is not a whole number."""
    product = math.prod(int(length) for length in re.findall(r"-?\d+", lengths))
    if product > 0 and numbers % product == 0:
        return (
            f"The product of yours is {product}, so a factor of {numbers // product} is missing. Is an axis left out, "
            "such as the batch or the heads?"
        )
    if product > 0 and numbers and product % numbers == 0:
        return f"The product of yours is {product}, which is {product // numbers} times that. Is an axis counted twice?"
    return ""


def _about_attribute(exercise: Exercise, kind: str, attribute: str) -> str:
    if kind == "NoneType":
        return NO_VALUE
    if isinstance(getattr(torch.nn, kind, None), type) and kind not in exercise.names:
        return f"The value before the dot is a layer, nn.{kind}, and no tensor. Call the layer with a tensor first."
    if kind == "tuple":
        return f"A tuple has no {attribute}. Its items are unpacked, as in a, b = ..., or selected by their position."
    if kind in ("builtin_function_or_method", "method", "function", "method_descriptor"):
        return "The value before the dot is a function or method that is not called: round brackets are missing."
    if hasattr(getattr(torch.return_types, kind, None), "indices"):
        return PAIR.format(kind)
    if kind in exercise.names:
        return f"Your {kind} has no {attribute}: is it set in __init__, or defined as a method, under this very name?"
    similar = _similar(attribute, OWNERS[kind]) if kind in OWNERS else ""
    asked = f"Is {similar} meant?" if similar else _of_another(kind, attribute)
    return f"A value of type {kind} has no {attribute}. {asked}"


def _of_another(kind: str, attribute: str) -> str:
    """A sentence about a type that does have this attribute, else a question."""
    having = [name for name in ("Tensor", "list", "dict", "str") if name != kind and hasattr(OWNERS[name], attribute)]
    if not having:
        return "What did you expect there?"
    return f"A {having[0]} has: should the value before the dot be one, or is {attribute} called on the wrong value?"


def _has_instead(exercise: Exercise, outcome: Outcome, kind: str) -> str:
    """The names of the layers of an argument, a model of this class, which the learner did not write."""
    models = [each for each in outcome.case.arguments if isinstance(each, torch.nn.Module)]
    found = [[name for name, _ in each.named_children()] for each in models if type(each).__name__ == kind]
    if not found or not found[0] or kind in exercise.names:
        return ""
    return f" Its layers are called {', '.join(found[0][:MOST_LAYERS])}."


def _similar(name: str, owner: Any) -> str:
    """The most similar name that a module or class has; empty if none is similar."""
    names = [each for each in dir(owner) if not each.startswith("_")]
    same = [each for each in names if each.lower().replace("_", "") == name.lower().replace("_", "")]
    return next(iter(same or get_close_matches(name, names, 1, cutoff=0.82)), "")


def _other_order(name: str, asked: Sequence[str], taken: Sequence[str]) -> str:
    """A sentence that the learner's function takes its arguments in another order; empty if the names do not show
    it."""
    moved = [each for each in asked[: len(taken)] if each in taken and taken.index(each) != asked.index(each)]
    if not moved:
        return ""
    there = taken[asked.index(moved[0])]
    return (
        f"The check calls {name}({', '.join(asked)}), and yours is {name}({', '.join(taken)}): {there} gets the value "
        f"that is meant for {moved[0]}. Keep the order of the signature in the task's cell."
    )


def may_be_of_shapes(error: Raised) -> bool:
    """Whether the failing line has tensors, and the error is one that shapes cause."""
    other = error.about == ("raised",) or error.message.startswith(tuple(TORCH_SAYS))
    of_shapes = error.type == "IndexError" or OF_SIZES.search(error.message)
    other = other or not of_shapes or NOT_OF_SHAPES.search(error.message)
    return bool(error.shapes) and error.type in STOPPED_BY_SHAPES and not other


def _shapes_that_met(error: Raised) -> str:
    """The shapes in the failing line, and the rule for combining them there; empty if unknown."""
    if not may_be_of_shapes(error) or not (named := [f"{name} is {shape}" for name, shape in _operands(error).items()]):
        return ""
    said = f"In that line {' and '.join(filter(None, [', '.join(named[:-1]), named[-1]]))}."
    product = any(sign in error.source for sign in PRODUCTS)
    if error.message.startswith(MATRICES) and FUNCTIONAL.search(error.source):
        return f"{said} {WEIGHT_FIRST}"
    flat = product and any(len(shape) <= 2 for _, shape in error.shapes)
    rule = "" if flat and error.message.startswith(MATRICES) else _rule(error)
    if rule and not (product and rule == OVER):  # a product aligns its batches so, too
        return f"{said} {rule}"
    if error.type == "IndexError":
        return f"{said} An axis of length n has the indices 0 to n - 1, and the axes are numbered from 0."
    each = len(named) > 1 and BETWEEN.search(error.source.replace("->", ""))
    rules = [
        "A @ B needs the last axis of A to be as long as the last but one of B." if product else "",
        "Under +, -, * and / shapes are aligned from the right: two lengths must be equal, or one of them 1."
        if each
        else "",
    ]
    if any(rules):
        return " ".join([said, *filter(None, rules)])
    return f"{said} Which of these lengths did you expect to be different?"


def _operands(error: Raised) -> dict[str, tuple[int, ...]]:
    """The tensors in the failing line with their shapes, as they are written there: `K`, or `K.mT` where it is
    transposed."""
    found = {}
    for name, shape in error.shapes:
        for used in re.finditer(rf"(?<![\w.]){re.escape(name)}\b(?:{TRANSPOSED})?", error.source):
            turned = _transposed(shape, used["how"], used["axes"]) if used["how"] else None
            found[used[0] if turned else name] = turned or shape
    return found


def _transposed(shape: Sequence[int], how: str, axes: str | None) -> tuple[int, ...] | None:
    """The shape after a transposition, as it is written in Python; None if torch refuses it."""
    places = [*range(len(shape))]
    numbers = [int(axis) for axis in re.findall(r"-?\d+", axes or "")]
    try:
        if how in ("T", "t()"):
            order = places[::-1]
        elif how.startswith("permute"):
            order = [places[axis] for axis in numbers]
        else:
            (first, second), order = numbers or (-2, -1), [*places]
            order[first], order[second] = order[second], order[first]
    except (IndexError, ValueError):
        return None
    refused = sorted(order) != places or (how == "t()" and len(shape) > 2)
    return None if refused else tuple(shape[axis] for axis in order)
