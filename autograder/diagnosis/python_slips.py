"""What single constructs of Python and torch do in a learner's lines, where learners often expect something else."""

import ast
from collections.abc import Iterator
from contextlib import suppress
from difflib import get_close_matches

from autograder.diagnosis.remarks import VALUES, Remark, Written, called, raised, remark
from autograder.judging.observation import Outcome, Raised

BOOLEANS = {"True", "False"}
OF_TORCH = {"F", "nn.functional", "torch.nn.functional"}
STRIPS = {"strip": "both ends", "lstrip": "the beginning", "rstrip": "the end"}
RETURN_NONE = {"append", "extend", "insert", "reverse", "backward"}
SHIFTS = {"remove", "pop", "insert"}  # the items of a list
CHANGES = {*SHIFTS, "append", "clear", "extend"}
INVERTS = {"logical_not", "bitwise_not", "where", "masked_fill", "eq"}
LAYERS = {"Linear", "Embedding", "LayerNorm", "Conv1d", "Conv2d", "MultiheadAttention", "Parameter", "Dropout"}
INFINITE = {"inf", "-inf", "infinity", "-infinity"}
FILLS = {"zeros", "ones", "empty", "full", "zeros_like", "ones_like", "empty_like", "list", "dict", "Counter"}
A_TEXT = "Line {line} compares with the text '{text}'. The value {text} is not that text, so they are never equal."
DROPOUT = (
    "In line {line}, F.dropout does not know whether the model is training. Without its argument training it always "
    "drops entries, after eval() too."
)
TORCHS_MASK = (
    "In line {line}, {name} goes to nn.MultiheadAttention. There, True marks a position that must NOT be attended to, "
    "the opposite of the masks in this course."
)
MAX_NORM = (
    "In line {line}, max_norm writes into the table: F.embedding shortens the rows that are longer than it, in place."
)
LETTERS = (
    "In line {line}, {name} removes every character that occurs in '{text}' from {where}, in any order, and not this "
    "text as a whole."
)
A_SET = "In line {line}, the curly brackets hold items without colons. They make a set; a dictionary needs key: value."
NOT_STRICT = "In line {line}, strict=False makes load_state_dict skip missing and unexpected names without an error."
ONE_MAXIMUM = "In line {line}, {name} is not given an axis, so it returns one number, that of the whole tensor."
NEXT = (
    "Line {line} reads the index {name} + 1. In the last pass of the loop, {name} is the last index of {other}, and no "
    "item comes after it."
)
SHARED_DEFAULT = (
    "In line {line}, the default of {name} is made once, not in each call. What one call stores in it, the next one "
    "finds there."
)
IDENTITY = (
    "Line {line} compares with `is`, which checks whether two names hold the same object. == compares their values."
)
BITWISE = (
    "In line {line}, {sign} comes before the comparison, as * comes before +. Put each comparison in round brackets."
)
NO_PASS = (
    "In line {line}, range counts upwards to 0, and so has no numbers: its third argument, a step of -1, is missing."
)
CHANGED = "Line {line} changes {name} while the loop in line {other} goes through it, so items are skipped or repeated."
SAME_ROWS = "In line {line}, * repeats one and the same list: what is written into one of its rows is in all of them."
SAME_LAYER = "In line {line}, * repeats one and the same layer, so all of them share their parameters."
NONE = "Line {line} takes what {name} returns, and that is None: {name} changes something and returns nothing."
NEW_LAYER = (
    "Line {line} makes a new nn.{name} whenever it runs, with settings and parameters of its own, and uses it once. A "
    "module makes its layers in __init__."
)
NO_AXIS = (
    "In line {line}, {name} is not given an axis. torch then chooses one by the number of axes, and of a tensor with "
    "three it takes the first."
)
TIMES_INFINITY = "Line {line} multiplies by infinity. 0 times infinity is NaN, so it cannot be switched off by a 0."
NEVER_EQUAL = "Line {line} compares with NaN. NaN is equal to nothing, not even to itself; isnan finds it."
COMMA = "The comma at the end of line {line} makes a tuple with one item."
ALIAS = "Line {line} gives {names} one and the same value: what is written into one of them is in the other, too."
KEYS = (
    "The loop in line {line} goes over {name}, a dictionary. Such a loop yields only the keys; .items() yields them "
    "together with their values."
)
NEW_KEY = "In line {line}, {sign}= reads the value under the key first, and a new key has none yet."
UNUSED = "Line {line} computes a value and does not keep it: it has no = and no return."
COMPARED = "Line {line} compares with == and changes nothing. A single = gives a value."
AFTER_THE_LOOP = (
    "Line {line} comes after the loop in line {other}, not inside it, so it runs once: {name} gets only what the last "
    "pass computed."
)
SIMILAR = "No line gives self.{name} a value. Line {line} gives one to self.{other}: is it the one you mean?"
UNCALLED = "Line {line} names the method {name} and does not call it: round brackets are missing."


def _functions(tree: ast.AST) -> Iterator[ast.FunctionDef]:
    yield from (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def _constant(node: ast.AST) -> object:
    """The value of a constant, also where a sign is before it; None if it is something else."""
    with suppress(ValueError, TypeError):
        return ast.literal_eval(node)
    return None


def _named(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _comparisons(tree: ast.AST, outcome: Outcome) -> Iterator[Written]:
    """With the text 'True', by `is`, with NaN, and next to an &."""
    for node in (each for each in ast.walk(tree) if isinstance(each, ast.Compare)):
        sides = [node.left, *node.comparators]
        texts = [each.value for each in sides if isinstance(each, ast.Constant) and each.value in BOOLEANS]
        equal = any(isinstance(each, (ast.Eq, ast.NotEq)) for each in node.ops)
        plain = any(isinstance(each, ast.Constant) and type(each.value) in (int, float, str) for each in sides)
        if texts and type(texts[0]) is str and equal:
            yield remark("a text", node, A_TEXT, text=texts[0])
        if plain and any(isinstance(each, (ast.Is, ast.IsNot)) for each in node.ops):
            yield remark("identity", node, IDENTITY)
        if equal and any(_infinite(each, {"nan"}) for each in sides):
            yield remark("never equal", node, NEVER_EQUAL)
        for each in node.comparators:
            bits = isinstance(each, ast.BinOp) and isinstance(each.op, (ast.BitAnd, ast.BitOr))
            if bits and type(_constant(each.left)) in (int, float, bool) and each.col_offset == each.left.col_offset:
                yield remark("bitwise", node, BITWISE, sign="&" if isinstance(each.op, ast.BitAnd) else "|")


def _infinite(node: ast.AST, texts: set[str]) -> bool:
    """Whether an expression is a float of this kind: float("inf"), math.inf, -torch.inf."""
    if isinstance(node, ast.UnaryOp):
        return _infinite(node.operand, texts)
    if called(node) == ("", "float") and len(node.args) == 1:
        value = _constant(node.args[0])
        return isinstance(value, str) and value.lower() in texts
    return isinstance(node, ast.Attribute) and node.attr in texts


def _calls(tree: ast.AST, outcome: Outcome) -> Iterator[Written]:
    """Functions that do something else without an argument, or with one."""
    kind, error = outcome.difference.kind, raised(outcome)
    subtracted = {id(x.right) for x in ast.walk(tree) if isinstance(x, ast.BinOp) and isinstance(x.op, ast.Sub)}
    for node in (each for each in ast.walk(tree) if isinstance(each, ast.Call)):
        owner, name = called(node)
        given = {each.arg: each.value for each in node.keywords}
        if owner in OF_TORCH and name == "dropout" and len(node.args) < 3 and not {"training", None} & {*given}:
            if error is None:
                yield remark("dropout", node, DROPOUT)
        if name == "embedding" and "max_norm" in given and kind in ("inputs", "value"):
            yield remark("max_norm", node, MAX_NORM)
        if owner in OF_TORCH and name in ("softmax", "log_softmax", "softmin") and len(node.args) == 1 and not given:
            if kind in VALUES:
                yield remark("no axis", node, NO_AXIS, name=name)
        if (
            name == "load_state_dict"
            and "strict" in given
            and _constant(given["strict"]) is False
            and kind == "not raised"
        ):
            yield remark("not strict", node, NOT_STRICT)
        text = _constant(node.args[0]) if name in STRIPS and len(node.args) == 1 else None
        if isinstance(text, str) and any(map(str.isalpha, text)) and len({*text}) > 1:
            yield remark("letters", node, LETTERS, name=name, text=text, where=STRIPS[name])
        whole = name in ("max", "min") and not node.args and not given and owner not in ("torch", "F")
        fits = error.line == node.lineno if error is not None else kind == "shape" and id(node) not in subtracted
        if whole and fits:
            yield remark("one maximum", node, ONE_MAXIMUM, name=name)
        if name == "range" and len(node.args) == 2 and _constant(node.args[1]) == 0 and kind != "error":
            start = node.args[0].left if isinstance(node.args[0], ast.BinOp) else node.args[0]
            less = _constant(node.args[0].right) == 1 if isinstance(node.args[0], ast.BinOp) else True
            if not owner and less and called(start) == ("", "len"):
                yield remark("no pass", node, NO_PASS)


def _masks_of_torch(tree: ast.AST, outcome: Outcome) -> Iterator[Written]:
    """A mask for nn.MultiheadAttention that nothing inverts."""
    if "MultiheadAttention" not in ast.unparse(tree):
        return
    inverted = any(
        isinstance(node, (ast.Invert, ast.Eq, ast.NotEq, ast.Lt, ast.Gt)) or called(node)[1] in INVERTS
        for node in ast.walk(tree)
    )
    if inverted:
        return
    for node in ast.walk(tree):
        of_torch = isinstance(node, ast.Call) and called(node)[1] != "scaled_dot_product_attention"
        for each in node.keywords if of_torch else ():
            if each.arg in ("attn_mask", "key_padding_mask") and _constant(each.value) is None:
                if not isinstance(each.value, ast.Constant):
                    yield remark("torch's mask", each.value, TORCHS_MASK, name=ast.unparse(each.value))


def _types(tree: ast.AST, outcome: Outcome) -> Iterator[Written]:
    """A set for a dictionary, a tuple by a comma, and the None of a method that works in place."""
    got, error, wanted = outcome.got.result, raised(outcome), outcome.expected.result
    none = got is None or (error is not None and "NoneType" in error.message)
    for node in ast.walk(tree):
        value = getattr(node, "value", None) if isinstance(node, (ast.Assign, ast.Return)) else None
        if isinstance(value, ast.Set) and isinstance(wanted, dict) and outcome.difference.kind in ("type", "error"):
            yield remark("a set", value, A_SET)
        single = isinstance(value, ast.Tuple) and len(value.elts) == 1
        if single and value.col_offset == value.elts[0].col_offset and outcome.difference.kind in ("type", "error"):
            yield remark("comma", node, COMMA)
        owner, name = called(value) if value is not None else ("", "")
        of_list = name == "sort" and any(each.arg in ("key", "reverse") for each in value.keywords)
        if none and owner not in ("", "self") and (name in RETURN_NONE or of_list):
            yield remark("none", node, NONE, name=name)


def _loops(tree: ast.AST, outcome: Outcome) -> Iterator[Written]:
    """What goes wrong between a loop and what it goes over."""
    error = raised(outcome)
    for loop in (node for node in ast.walk(tree) if isinstance(node, ast.For)):
        inside = [node for each in loop.body for node in ast.walk(each)]
        if error is not None and error.type == "IndexError":
            yield from _after_the_last(loop, inside, error.line, tree)
        over = loop.iter.id if isinstance(loop.iter, ast.Name) else ""
        ended = any(isinstance(node, (ast.Break, ast.Return, ast.Assign)) and _ends(node, over) for node in inside)
        for node in inside if over and not ended else ():
            owner, name = called(node)
            if owner == over and name in SHIFTS and error is None:
                yield remark("changed in a loop", node, CHANGED, name=over, other=loop.lineno)
        if over and error is not None and error.line == loop.lineno and isinstance(loop.target, ast.Tuple):
            if error.type in ("ValueError", "TypeError") and over in _dictionaries(tree, outcome, error):
                yield remark("keys", loop, KEYS, name=over)


def _ends(node: ast.AST, name: str) -> bool:
    """Whether a statement ends a loop, or gives its list a new value."""
    return not isinstance(node, ast.Assign) or any(_named(each, name) for each in node.targets)


def _after_the_last(loop: ast.For, inside: list[ast.AST], line: int, tree: ast.AST) -> Iterator[Written]:
    """x[i + 1] in a loop over range(len(x)), which no condition guards."""
    limit = loop.iter.args[0] if called(loop.iter) == ("", "range") and len(loop.iter.args) == 1 else None
    if limit is None or called(limit) != ("", "len") or not isinstance(loop.target, ast.Name):
        return
    index, over = loop.target.id, ast.unparse(limit.args[0])
    tests = [node for node in inside if isinstance(node, (ast.Compare, ast.Break, ast.Return, ast.Try))]
    guarded = any(
        not isinstance(node, ast.Compare)
        or any(_named(side, index) or ast.unparse(side) == f"{index} + 1" for side in (node.left, *node.comparators))
        for node in tests
    )
    for node in inside if not guarded else ():
        if isinstance(node, ast.Subscript) and ast.unparse(node.slice) == f"{index} + 1" and node.lineno == line:
            if ast.unparse(node.value) == over:
                yield remark("after the last", node, NEXT, name=index, other=over)


def _after_the_loop(tree: ast.AST, outcome: Outcome) -> Iterator[Written]:
    """An append to an empty list that is indented too little."""
    for block in (body for node in ast.walk(tree) if isinstance(body := getattr(node, "body", None), list)):
        for before, loop, after in zip(block, block[1:], block[2:], strict=False):
            empty = isinstance(before, ast.Assign) and isinstance(before.value, ast.List) and not before.value.elts
            owner, name = called(after.value) if isinstance(after, ast.Expr) else ("", "")
            if not (empty and isinstance(loop, ast.For) and name == "append" and len(after.value.args) == 1):
                continue
            inside = [node for each in loop.body for node in ast.walk(each)]
            stored = {node.id for node in inside if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
            item = after.value.args[0]
            used = any(_named(node, owner) for node in inside)
            if (
                any(_named(each, owner) for each in before.targets)
                and not used
                and _named(item, getattr(item, "id", ""))
            ):
                if item.id in stored:
                    yield remark("after the loop", after, AFTER_THE_LOOP, name=owner, other=loop.lineno)


def _dictionaries(tree: ast.AST, outcome: Outcome, error: Raised) -> set[str]:
    """The names that are given dictionaries and nothing else, and those of arguments that are dictionaries."""
    arguments = zip(error.parameters, outcome.case.arguments, strict=False)
    found, others = {name for name, value in arguments if isinstance(value, dict)}, set()
    for node in ast.walk(tree):
        for target in node.targets if isinstance(node, ast.Assign) else ():
            made = isinstance(node.value, (ast.Dict, ast.DictComp)) or called(node.value)[1] in ("dict", "Counter")
            if isinstance(target, ast.Name):
                (found if made else others).add(target.id)
    return found - others


def _shared(tree: ast.AST, outcome: Outcome) -> Iterator[Written]:
    """Two names, two rows, or two calls for one object, into which something is written."""
    if outcome.difference.kind not in (*VALUES, "type", "error", "state"):
        return
    changed = {name for node in ast.walk(tree) for name in _written_into(node)}
    for function in _functions(tree):
        given = function.args.posonlyargs + function.args.args
        defaults = [*zip(given[len(given) - len(function.args.defaults) :], function.args.defaults, strict=True)]
        for argument, default in defaults:
            if (isinstance(default, (ast.List, ast.Dict)) or _makes(default)) and argument.arg in changed:
                yield remark("shared default", default, SHARED_DEFAULT, name=argument.arg)
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Assign)
            and len(node.targets) > 1
            and all(isinstance(x, ast.Name) for x in node.targets)
        ):
            names = [target.id for target in node.targets]
            container = isinstance(node.value, (ast.List, ast.Dict)) or _makes(node.value)
            if container and changed & {*names}:
                yield remark("alias", node, ALIAS, names=" and ".join(names))
        of_one = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult) and isinstance(node.left, ast.List)
        if of_one and len(node.left.elts) == 1:
            item = node.left.elts[0]
            rows = isinstance(item, ast.List) or (isinstance(item, ast.BinOp) and isinstance(item.left, ast.List))
            if rows and any(_is_entry_of_a_row(each) for each in ast.walk(tree)):
                yield remark("same rows", node, SAME_ROWS)
            owner, name = called(item)
            if owner in ("nn", "torch.nn") and name in LAYERS - {"Dropout"}:
                yield remark("same layer", node, SAME_LAYER)


def _makes(node: ast.AST) -> bool:
    """Whether a call makes a container or a tensor."""
    return called(node)[0] in ("", "torch") and called(node)[1] in FILLS


def _written_into(node: ast.AST) -> Iterator[str]:
    """The name of what a statement changes in place."""
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    for target in targets if isinstance(node, (ast.Assign, ast.AugAssign)) else ():
        if isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
            yield target.value.id
    owner, name = called(node)
    if owner.isidentifier() and name in {*CHANGES, "add", "update", "setdefault"}:
        yield owner


def _is_entry_of_a_row(node: ast.AST) -> bool:
    """x[i][j] where it is written into."""
    return isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store) and isinstance(node.value, ast.Subscript)


def _new_layers(tree: ast.AST, outcome: Outcome) -> Iterator[Written]:
    """nn.Linear(...)(x), which is a new layer each time."""
    if outcome.difference.kind not in (*VALUES, "gradient", "no gradient", "state"):
        return
    for node in ast.walk(tree):
        owner, name = called(node.func) if isinstance(node, ast.Call) else ("", "")
        if owner in ("nn", "torch.nn") and name in LAYERS:
            yield remark("new layer", node, NEW_LAYER, name=name)


def _infinities(tree: ast.AST, outcome: Outcome) -> Iterator[Written]:
    """mask * float("-inf") where the result has NaN."""
    for node in ast.walk(tree) if outcome.difference.kind == "nan" else ():
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            if _infinite(node.left, INFINITE) or _infinite(node.right, INFINITE):
                yield remark("times infinity", node, TIMES_INFINITY)


def _statements(tree: ast.AST, outcome: Outcome) -> Iterator[Written]:
    """A line that is a value and nothing else, and += of a key that is not there."""
    error = raised(outcome)
    tried = {id(node) for each in ast.walk(tree) if isinstance(each, ast.Try) for node in each.body}
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and id(node) not in tried:
            value = node.value
            part = isinstance(value, ast.Subscript) or (
                isinstance(value, ast.Attribute) and value.attr in ("T", "mT", "values", "indices")
            )
            if isinstance(value, ast.Compare) and isinstance(value.ops[0], ast.Eq):
                yield remark("compared", node, COMPARED)
            elif isinstance(value, (ast.BinOp, ast.Compare, ast.UnaryOp)) or part:
                yield remark("unused", node, UNUSED)
            if isinstance(value, ast.Attribute) and value.attr in ("zero_grad", "step", "backward", "eval", "train"):
                yield remark("uncalled", node, UNCALLED, name=value.attr)
        added = isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Subscript)
        if added and error is not None and error.type == "KeyError" and error.line == node.lineno:
            signs = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*"}
            others = [*ast.walk(node.target.slice), *ast.walk(node.target.value), *ast.walk(node.value)]
            if type(node.op) in signs and not any(isinstance(each, (ast.Subscript, ast.Call)) for each in others):
                yield remark("new key", node, NEW_KEY, sign=signs[type(node.op)])


def _misspelled(tree: ast.AST, outcome: Outcome) -> Iterator[Written]:
    """self.name, where only a similar name is given a value."""
    error = raised(outcome)
    if error is None or error.about[:1] != ("attribute",) or len(error.about) != 3:
        return
    for owner in (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef) and node.name == error.about[1]):
        stored = {
            node.attr: node
            for node in ast.walk(owner)
            if isinstance(node, ast.Attribute) and _named(node.value, "self") and isinstance(node.ctx, ast.Store)
        }
        similar = get_close_matches(error.about[2], stored, 1, cutoff=0.6)
        if similar and error.about[2] not in stored:
            yield remark("misspelled", stored[similar[0]], SIMILAR, name=error.about[2], other=similar[0])


REMARKS: tuple[Remark, ...] = (  # the most certain to be the reason first
    _misspelled,
    _types,
    _statements,
    _after_the_loop,
    _loops,
    _comparisons,
    _infinities,
    _calls,
    _new_layers,
    _masks_of_torch,
    _shared,
)
