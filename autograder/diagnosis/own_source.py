"""What a wrong answer's own source shows by itself: a `return` that ends a loop, a result that nothing keeps.

Each remark is true of the source as it is written, whatever the input, and fits the kind of the first failure. So it
replaces general advice, and where the code stopped with an error it follows the text about that error.
"""

import ast
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress

from torch import Tensor

from autograder.diagnosis import python_slips
from autograder.diagnosis.remarks import VALUES, Remark, Written
from autograder.diagnosis.remarks import raised as _raised
from autograder.diagnosis.remarks import remark as _remark
from autograder.judging.observation import Outcome, Raised

PURE = {  # methods of tensors and functions of torch that change nothing in place and have no other effect
    "masked_fill", "transpose", "permute", "reshape", "view", "unsqueeze", "squeeze", "flatten", "unflatten",
    "softmax", "log_softmax", "clone", "contiguous", "clamp", "tril", "triu", "repeat", "repeat_interleave", "expand",
    "flip", "roll", "swapaxes", "detach", "index_fill", "scatter", "exp", "log", "sqrt", "abs", "matmul", "bmm",
    "cat", "stack", "cumsum", "strip", "lower", "upper", "replace", "removeprefix", "removesuffix", "masked_select",
    "argsort", "logsumexp", "relu",
}  # fmt: skip
PAIRS = {"max", "min", "sort", "topk", "median", "mode", "kthvalue", "cummax", "cummin"}  # with an axis
BESIDE_KNOWN = {"swallowed", "not kept"}  # why code that looks right shows a known mistake
PARTS = {"values", "indices"}
ANY_ERROR = {"Exception", "BaseException"}
IN_A_LOOP = "Line {line} returns in the first pass of its loop, so there is no second pass."
IN_A_LOOP_WITH_A_BREAK = (
    "Line {line} is inside the loop and returns at the end of its first pass, if no break ends the loop before. There "
    "is never a second pass."
)
NOT_KEPT = "Line {line} computes a new value and does not keep it: {name} changes nothing in place."
SWALLOWED = "The `raise` in line {line} is inside a `try`, and your own `except` in line {other} catches it."
NO_RAISE = "Your code has no `raise`, so no such input is refused."
RETURNED_ERROR = "Line {line} returns {name} like any result. It stops the caller only if it is raised, with `raise`."
UNREACHED = (
    "This error is not your own: line {line}, which raises {name}, was not reached. Does its condition hold for this "
    "input, and does it come before the line that stopped?"
)
TWO_TENSORS = "In line {line}, {name} returns two tensors, the values and their indices. Select one of them."
FLATTENED = (
    "In line {line}, the mask in [...] has the shape of the tensor itself: what it selects comes back as one long row, "
    "and all other axes are lost."
)
CLASSES = (
    "In line {line}, one_hot is not given the number of classes, and takes the largest index plus one. So the size "
    "of its result depends on the values."
)
OVERWRITTEN = (
    "Line {line} gives {name} a new value in each pass of the loop, without the one from before: only that of the last "
    "pass is kept."
)
POWER = "In line {line}, ** comes before /: the exponent is 1, and only afterwards {name} divides."
LOCAL = (
    "Line {line} gives a value to a local name, {name}, which is gone when the method returns. Only what is stored in "
    "self.{name} is kept."
)
DEFINED = (ast.FunctionDef, ast.ClassDef)
LENGTH = (
    "No line gives {name} a value. In the docstring it is a length in the shape of {other}, and the code has to take "
    "it from there."
)
UNDEFINED = re.compile(r"name '(\w+)' is not defined")


def written(source: str, outcomes: Sequence[Outcome], names: Sequence[str]) -> Written | None:
    """The first remark on a source that fits the first failure; None if there is none, or if it may not be shown.

    names: of the functions and classes that the exercise asks for; helpers that they use count as well.
    """
    first = next((each for each in outcomes if not each.passed), None)
    if first is None or first.got is None or first.secret:
        return None
    with suppress(SyntaxError, ValueError, RecursionError, MemoryError):
        tree = _answer(ast.parse(source), names)
        return next((found for remark in REMARKS for found in remark(tree, first)), None)
    return None


def _answer(tree: ast.Module, names: Sequence[str]) -> ast.Module:
    """The definitions with these names, and those that they use."""
    defined = {each.name: each for each in tree.body if isinstance(each, DEFINED)}
    reached = [name for name in names if name in defined]
    for name in reached:  # which grows
        used = {node.id for node in ast.walk(defined[name]) if isinstance(node, ast.Name)}
        reached += [each for each in defined if each in used and each not in reached]
    return ast.Module([defined[name] for name in reached], [])


def _refused(tree: ast.AST, outcome: Outcome) -> Iterator[Written]:
    """Where an error is expected: it is caught by the code itself, or raised nowhere, or not reached."""
    expected, error = outcome.expected.result, _raised(outcome)
    if not isinstance(expected, Raised):
        return
    raises = [node for node in ast.walk(tree) if isinstance(node, ast.Raise)]
    if error is None and outcome.difference.kind in ("not raised", "type", "value", "shape"):
        yield from _swallowed(tree)
        yield from _returned_error(tree)
        if not raises and not any(isinstance(node, ast.Assert) for node in ast.walk(tree)):
            yield Written("no raise", 0, NO_RAISE)
    if error is not None and error.about != ("raised",):
        own = [node for node in raises if _raises(node) == expected.type]
        if len(own) == 1 and error.line and error.line != own[0].lineno:
            yield _remark("unreached", own[0], UNREACHED, name=expected.type)


def _returned_error(tree: ast.AST) -> Iterator[Written]:
    for node in ast.walk(tree):
        value = node.value if isinstance(node, ast.Return) else None
        kind = value.func if isinstance(value, ast.Call) else value
        if isinstance(kind, ast.Name) and kind.id.endswith(("Error", "Exception")):
            yield _remark("returned error", node, RETURNED_ERROR, name=kind.id)


def _swallowed(tree: ast.AST) -> Iterator[Written]:
    for tried in (node for node in ast.walk(tree) if isinstance(node, ast.Try)):
        inside = [node for each in tried.body for node in ast.walk(each) if isinstance(node, ast.Raise)]
        nested = any(isinstance(node, (ast.Try, *DEFINED)) for each in tried.body for node in ast.walk(each))
        for handler in tried.handlers if not nested else ():
            again = any(isinstance(node, ast.Raise) for each in handler.body for node in ast.walk(each))
            caught = [node for node in inside if _catches(handler, _raises(node))]
            if caught and not again:
                yield _remark("swallowed", caught[0], SWALLOWED, other=handler.lineno)


def _raises(node: ast.Raise) -> str:
    """The name of the exception that a statement raises; empty if it is not written there."""
    raised = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
    return raised.id if isinstance(raised, ast.Name) else ""


def _catches(handler: ast.ExceptHandler, name: str) -> bool:
    if handler.type is None:
        return True
    types = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    caught = {each.id for each in types if isinstance(each, ast.Name)}
    return bool(caught & {name, *ANY_ERROR}) and bool(name)


def _in_a_loop(tree: ast.AST, outcome: Outcome) -> Iterator[Written]:
    """A `return` that every first pass of a loop reaches."""
    if outcome.difference.kind not in (*VALUES, "type"):
        return
    for loop in (node for node in ast.walk(tree) if isinstance(node, (ast.For, ast.While))):
        last = loop.body[-1]
        inside = [node for each in loop.body for node in ast.walk(each)]
        if isinstance(last, ast.Return) and not any(isinstance(node, ast.Continue) for node in inside):
            left = any(isinstance(node, ast.Break) for node in inside)
            yield _remark("return in a loop", last, IN_A_LOOP if not left else IN_A_LOOP_WITH_A_BREAK)


def _not_kept(tree: ast.AST, outcome: Outcome) -> Iterator[Written]:
    """A line that consists of a call without an effect."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            called = node.value.func
            if isinstance(called, ast.Attribute) and called.attr in PURE and not _writes(node.value):
                yield _remark("not kept", node, NOT_KEPT, name=called.attr)


def _writes(call: ast.Call) -> bool:
    """Whether a call is given a tensor to write into, or is one of a method of the class itself."""
    of_self = isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name)
    return any(each.arg == "out" for each in call.keywords) or (of_self and call.func.value.id in ("self", "super"))


def _two_tensors(tree: ast.AST, outcome: Outcome) -> Iterator[Written]:
    """A maximum or the like along an axis that is used like one tensor."""
    error = _raised(outcome)
    got, wanted = outcome.difference.got, outcome.difference.expected
    if error is None and not (isinstance(got, (tuple, list)) and isinstance(wanted, Tensor)):
        return
    for node in ast.walk(tree):
        for child in ast.iter_child_nodes(node):
            taken = isinstance(node, (ast.BinOp, ast.Compare, ast.UnaryOp, ast.Return, ast.Dict)) or (
                isinstance(node, ast.Attribute) and node.attr not in {*PARTS, "count", "index"}
            )
            if taken and _is_pair(child) and (error is None or error.line == child.lineno):
                yield _remark("two tensors", child, TWO_TENSORS, name=child.func.attr)


def _is_pair(node: ast.AST) -> bool:
    """Whether a call returns values and their indices."""
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in PAIRS):
        return False
    of_torch = isinstance(node.func.value, ast.Name) and node.func.value.id == "torch"
    given = node.args[1:] if of_torch else node.args
    along = any(each.arg == "dim" for each in node.keywords) or any(_whole(each) is not None for each in given[:1])
    return along or (node.func.attr in {"topk", "kthvalue"} and bool(node.args))


def _whole(node: ast.AST) -> int | None:
    """The whole number that an expression is; None if it is something else."""
    with suppress(ValueError, TypeError):
        value = ast.literal_eval(node)
        return value if type(value) is int else None
    return None


def _flattened(tree: ast.AST, outcome: Outcome) -> Iterator[Written]:
    """x[x > 0], which has one axis."""
    wanted = outcome.difference.expected
    if outcome.difference.kind != "shape" or len(wanted) < 1:
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load) and isinstance(node.slice, ast.Compare):
            sides = [node.slice.left, *node.slice.comparators]
            same = [ast.dump(each) == ast.dump(node.value) for each in sides]
            numbers = [isinstance(each, ast.Constant) for each in sides]
            if len(sides) == 2 and any(same) and any(numbers):
                yield _remark("flattened", node, FLATTENED)


def _classes(tree: ast.AST, outcome: Outcome) -> Iterator[Written]:
    """one_hot without its second argument."""
    if outcome.difference.kind not in ("shape", "error"):
        return
    for node in ast.walk(tree):
        called = getattr(node, "func", None)
        name = getattr(called, "attr", getattr(called, "id", ""))
        if isinstance(node, ast.Call) and name == "one_hot" and len(node.args) == 1 and not node.keywords:
            yield _remark("one_hot", node, CLASSES)


def _overwritten(tree: ast.AST, outcome: Outcome) -> Iterator[Written]:
    """A sum or a list that begins before a loop, and that each pass begins anew."""
    if outcome.difference.kind not in VALUES:
        return
    for block in (body for node in ast.walk(tree) if isinstance(body := getattr(node, "body", None), list)):
        for place, loop in enumerate(block):
            begun = {_assigned(each) for each in block[:place]} - {""}
            for each in loop.body if isinstance(loop, ast.For) else ():
                name = _assigned(each)
                inside = [node for part in loop.body for node in ast.walk(part)]
                elsewhere = [node for part in block[place + 1 :] for node in ast.walk(part)]
                stored = sum(_is_named(node, name, ast.Store) for node in inside)
                read = any(_is_named(node, name, ast.Load) for node in inside)
                used = any(_is_named(node, name, ast.Load) for node in elsewhere)
                if name in begun and stored == 1 and not read and used:
                    yield _remark("overwritten", each, OVERWRITTEN, name=name)


def _assigned(node: ast.stmt) -> str:
    """The one name to which a statement gives a value, else nothing."""
    single = isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name)
    return node.targets[0].id if single else ""


def _is_named(node: ast.AST, name: str, context: type[ast.expr_context]) -> bool:
    return isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, context)


def _power(tree: ast.AST, outcome: Outcome) -> Iterator[Written]:
    """x ** 1 / 2, which is half of x."""
    if outcome.difference.kind not in ("value", "error", "nan"):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) and _whole(node.right) is not None:
            product = isinstance(node.left, ast.BinOp) and isinstance(node.left.op, (ast.Div, ast.Mult))
            power = node.left.right if product else node.left  # of a / x ** 1 / 2
            if isinstance(power, ast.BinOp) and isinstance(power.op, ast.Pow) and _whole(power.right) == 1:
                yield _remark("power", node, POWER, name=_whole(node.right))


def _local(tree: ast.AST, outcome: Outcome) -> Iterator[Written]:
    """A name without self. in one method, and with it in another one, which does not find it."""
    error = _raised(outcome)
    if error is None or error.about[:1] != ("attribute",) or len(error.about) != 3:
        return
    for method in (node for each in ast.walk(tree) if isinstance(each, ast.ClassDef) for node in each.body):
        of_self = any(
            isinstance(node, ast.Attribute) and node.attr == error.about[2] and isinstance(node.ctx, ast.Store)
            for node in ast.walk(tree)
        )
        for node in ast.walk(method) if isinstance(method, ast.FunctionDef) and not of_self else ():
            if isinstance(node, ast.Name) and node.id == error.about[2] and isinstance(node.ctx, ast.Store):
                yield _remark("local", node, LOCAL, name=node.id)


def _length(tree: ast.AST, outcome: Outcome) -> Iterator[Written]:
    """A name without a value that the docstring uses for a length in a shape."""
    error = _raised(outcome)
    undefined = UNDEFINED.match(error.message) if error is not None and error.type == "NameError" else None
    for function in ast.walk(tree) if undefined else ():
        told = (ast.get_docstring(function) or "") if isinstance(function, DEFINED) else ""
        shape = re.search(rf"\b(\w+):? (?:of shape |has shape )?\([^()]*\b{undefined[1]}\b[^()]*\)", told)
        names = {each.arg for each in ast.walk(function) if isinstance(each, ast.arg)}
        if shape and shape[1] in names and undefined[1] not in names:
            yield _remark("length", function, LENGTH, name=undefined[1], other=shape[1])


REMARKS: tuple[Remark, ...] = (  # the most certain to be the reason first
    _refused,
    _length,
    _local,
    _not_kept,
    _in_a_loop,
    _two_tensors,
    _flattened,
    _classes,
    _power,
    _overwritten,
    *python_slips.REMARKS,
)
