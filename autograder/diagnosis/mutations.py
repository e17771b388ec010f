"""Sources that differ from a given one by one change: another name, number, operator, argument or order of statements.

A change of a correct answer is a slip as people make it. One that repairs a wrong answer shows where its slip is
(`one_change`).
"""

import ast
import random
import textwrap
from collections.abc import Container, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.MatMult)  # powers may grow without end
COMPARISONS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)
OPPOSITE = {
    ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.And: ast.Or, ast.Or: ast.And, ast.Is: ast.IsNot,
    ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
FUNCTIONS = {
    "sum": ("mean", "amax"), "mean": ("sum",), "softmax": ("log_softmax", "sigmoid"), "log_softmax": ("softmax",),
    "tril": ("triu",), "triu": ("tril",), "max": ("min",), "min": ("max",), "argmax": ("argmin",),
    "argmin": ("argmax",), "sin": ("cos",), "cos": ("sin",), "zeros": ("ones",), "ones": ("zeros",),
    "amax": ("amin",), "amin": ("amax",), "append": ("extend",), "extend": ("append",), "var": ("std",),
    "std": ("var",), "any": ("all",), "all": ("any",), "relu": ("gelu",), "gelu": ("relu",), "floor": ("ceil",),
    "ceil": ("floor",), "view": ("reshape",), "repeat": ("repeat_interleave",), "repeat_interleave": ("repeat",),
    "sqrt": ("square",), "square": ("sqrt",), "sorted": ("list",), "eval": ("train",), "train": ("eval",),
    "ReLU": ("GELU",), "GELU": ("ReLU",), "flip": ("clone",),
}  # fmt: skip
INFINITE = ("inf", "-inf")
MOST_EFFORT = 5
REDUCTIONS = {"sum", "mean", "amax", "amin", "max", "min", "any", "all", "norm"}
MODULES = {"torch", "F", "nn", "math", "np", "functional", "super"}
WHOLE = (ast.Call, ast.BinOp, ast.Compare, ast.Subscript, ast.stmt)  # what is shown around a part
DEFINITIONS = (ast.FunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom, ast.Assign, ast.AnnAssign)


@dataclass(frozen=True)
class Change:
    """One change to a function of a program. kind: a name that says what is changed; effort: how far-fetched it is."""

    kind: str
    effort: int
    _shown: ast.AST
    _around: ast.AST
    _function: ast.FunctionDef
    _node: ast.AST
    _values: dict[str, Any]

    @property
    def line(self) -> int:
        """The number of the line that is changed."""
        return getattr(self._shown, "lineno", 0)

    @contextmanager
    def _applied(self) -> Iterator[None]:
        before = {name: getattr(self._node, name) for name in self._values}
        for name, value in self._values.items():
            setattr(self._node, name, value)
        try:
            yield
        finally:
            for name, value in before.items():
                setattr(self._node, name, value)


class Program:
    """The definitions of a source, whose functions can be changed. Raises SyntaxError if it is not Python.

    definitions: the source without the other statements of the module, which print or train; lines keep their numbers.
    """

    def __init__(self, source: str) -> None:
        self._source, self._tree = source, ast.parse(source)
        self._lines = source.splitlines()
        for statement in self._tree.body:
            if not isinstance(statement, DEFINITIONS):
                self._lines[statement.lineno - 1 : statement.end_lineno] = [""] * _height(statement)
        self.definitions = "\n".join(self._lines)

    def changes(self) -> list[Change]:
        """All changes, in the order of the source. Their number grows with the square of the source's length."""
        return list(_Finder(self._tree).changes())

    def simplest_first(self, lines: Container[int] = ()) -> Iterator[Change]:
        """The same changes in the order of their effort. Each is made when it is its turn, so memory stays small.

        lines: in which an error stopped the code; changes there come earlier, like those of one effort less.
        """
        for effort in range(0, MOST_EFFORT + 1):
            if lines:
                yield from (each for each in _Finder(self._tree, effort + 1).changes() if each.line in lines)
            yield from (each for each in _Finder(self._tree, effort).changes() if each.line not in lines)

    def code(self, change: Change) -> str:
        """The code that a change concerns, as it is written; of a method, its name and arguments, as in `.exp()`."""
        shown = change._shown
        is_method = change.kind == "method too many" and isinstance(shown, ast.Call)
        attribute = shown.func if is_method else shown
        if isinstance(attribute, ast.Attribute) and (is_method or change.kind == "function"):
            if is_method or not isinstance(attribute.value, ast.Name):
                return self._after(attribute.value, shown)
        return self._written(shown)

    def around(self, change: Change) -> str:
        """The call, operation or statement that this code is a part of; of a method's arguments, its call as in
        `.tril(2)`."""
        around = change._around
        if isinstance(around, ast.Call) and isinstance(around.func, ast.Attribute):
            is_argument = not any(each is change._shown for each in ast.walk(around.func))
            if is_argument and isinstance(around.func.value, ast.Call):
                return self._after(around.func.value, around)
        return self._written(around)

    def _after(self, value: ast.expr, whole: ast.expr) -> str:
        """What follows a value in the code of an attribute of it, or of a call of its method."""
        rest = ast.Pass(
            lineno=value.end_lineno, col_offset=value.end_col_offset,
            end_lineno=whole.end_lineno, end_col_offset=whole.end_col_offset,
        )  # fmt: skip
        return self._written(rest).lstrip(") ")

    def _written(self, node: ast.AST) -> str:
        return " ".join((ast.get_source_segment(self._source, node) or ast.unparse(node)).split())

    def changed(self, change: Change) -> str:
        """The definitions with this change; empty if that is not Python."""
        function = change._function
        with suppress(SyntaxError, ValueError, AttributeError, TypeError, RecursionError), change._applied():
            text = textwrap.indent(ast.unparse(function), " " * function.col_offset)
            first = min(each.lineno for each in (function, *function.decorator_list)) - 1
            lines = [*self._lines[:first], text, *self._lines[function.end_lineno :]]
            return "\n".join(lines)
        return ""


def mutations(source: str, generator: random.Random) -> Iterator[tuple[str, str]]:
    """All mutations of a source by one change, in random order: (description of the change, new source)."""
    program = Program(source)
    changes, given = program.changes(), {ast.unparse(ast.parse(source))}
    generator.shuffle(changes)
    for change in changes:
        with suppress(SyntaxError, ValueError):
            text = ast.unparse(ast.parse(program.changed(change)))
            if text and text not in given:
                given.add(text)
                yield f"line {change.line}: {change.kind}, {program.code(change)}", text


def _height(node: ast.stmt) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


class _Finder:
    """Finds the changes of one program. They are made of parts of its tree, which they share.

    effort: of the changes to return; None for all.
    """

    def __init__(self, tree: ast.Module, effort: int | None = None) -> None:
        self._tree, self._effort = tree, effort
        self._places = {
            child: (node, field, place)
            for node in ast.walk(tree)
            for field, value in ast.iter_fields(node)
            for place, child in (enumerate(value) if isinstance(value, list) else [(None, value)])
            if isinstance(child, ast.AST)
        }
        self._attributes = sorted(
            {
                node.attr
                for node in ast.walk(tree)
                if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and _is_self(node.value)
            }
        )
        read = {
            node.id if isinstance(node, ast.Name) else node.attr
            for node in ast.walk(tree)
            if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load)
        }
        stored = [each for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) for each in _local_names(node)]
        self._unused = {*stored, *self._attributes} - read  # what was made, and perhaps meant somewhere
        made = [node for node in ast.walk(tree) if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)]
        kept = {each.attr for node in made for each in node.targets if isinstance(each, ast.Attribute)}
        self._layers = sorted(kept & self._unused)

    def changes(self) -> Iterator[Change]:
        """The changes in the order of the source, each made when it is its turn."""
        for function in (node for node in ast.walk(self._tree) if isinstance(node, ast.FunctionDef)):
            if not self._is_inside_another(function):
                self._function, names = function, _local_names(function)
                for node in (each for statement in function.body for each in ast.walk(statement)):
                    yield from self._of_node(node, names)
                yield from self._of_blocks(function)

    def _is_inside_another(self, node: ast.AST) -> bool:
        while node in self._places:
            node = self._places[node][0]
            if isinstance(node, ast.FunctionDef):
                return True
        return False

    def _add(self, kind: str, effort: int, shown: ast.AST, node: ast.AST, **values: Any) -> Iterator[Change]:
        if self._effort not in (None, effort):
            return
        around = shown
        while around in self._places and not (isinstance(around, WHOLE) and around is not shown):
            around = self._places[around][0]
        yield Change(kind, effort, shown, around, self._function, node, values)

    def _put(self, kind: str, effort: int, node: ast.AST, new: ast.expr) -> Iterator[Change]:
        """The change that puts another expression in the place of a node."""
        if self._effort not in (None, effort):
            return
        parent, field, place = self._places[node]
        value: Any = new
        if place is not None:
            value = [*getattr(parent, field)]
            value[place] = new
        yield from self._add(kind, effort, node, parent, **{field: value})

    def _of_node(self, node: ast.AST, names: list[str]) -> Iterator[Change]:
        match node:
            case ast.Name(ctx=ast.Load()):
                yield from self._of_name(node, names)
            case ast.Attribute(ctx=ast.Load()):
                yield from self._of_attribute(node)
            case ast.BinOp() | ast.AugAssign() | ast.BoolOp() | ast.Compare():
                yield from self._of_operator(node)
            case ast.UnaryOp():
                yield from self._put("sign", 2, node, node.operand)
            case ast.Constant():
                yield from self._of_constant(node, names)
            case ast.Call():
                yield from self._of_call(node)
            case ast.Tuple() if len(node.elts) > 1:
                for place in range(len(node.elts) - 1):
                    yield from self._add("items", 2, node, node, elts=_turned(node.elts, place))
            case ast.Subscript(ctx=ast.Load()):
                yield from self._put("part", 3, node, node.value)
            case ast.Slice():
                yield from self._of_slice(node)
            case ast.IfExp():
                yield from self._add("condition", 1, node.test, node, test=ast.UnaryOp(ast.Not(), node.test))
            case ast.If() | ast.While():
                yield from self._add("condition", 1, node.test, node, test=ast.UnaryOp(ast.Not(), node.test))
        if isinstance(node, (ast.Name, ast.Call, ast.BinOp, ast.Compare, ast.Attribute, ast.Subscript)):
            yield from self._around(node)

    def _of_name(self, node: ast.Name, names: list[str]) -> Iterator[Change]:
        is_local = node.id in names
        for other in names if is_local else ():
            if other != node.id:
                yield from self._add("name", 1 if other in self._unused else 2, node, node, id=other)
        for kept in self._attributes if is_local else ():
            if kept in self._unused:
                yield from self._put("name", 2, node, ast.Attribute(ast.Name("self", ast.Load()), kept, ast.Load()))
        for other in FUNCTIONS.get(node.id, ()):
            yield from self._add("function", 1, node, node, id=other)

    def _of_attribute(self, node: ast.Attribute) -> Iterator[Change]:
        for other in self._attributes if _is_self(node.value) and node.attr in self._attributes else ():
            if other != node.attr:
                yield from self._add("name", 1 if other in self._unused else 2, node, node, attr=other)
        for other in FUNCTIONS.get(node.attr, ()):
            yield from self._add("function", 1, node, node, attr=other)

    def _of_operator(self, node: ast.BinOp | ast.AugAssign | ast.BoolOp | ast.Compare) -> Iterator[Change]:
        for half in (node.left, node.right) if isinstance(node, ast.BinOp) else ():
            yield from self._put("side", 1, node, half)
        op = node.ops[0] if isinstance(node, ast.Compare) else node.op
        group = ARITHMETIC if isinstance(op, (*ARITHMETIC, ast.Pow)) else COMPARISONS if type(op) in COMPARISONS else ()
        others = [kind for kind in (*group, OPPOSITE.get(type(op))) if kind not in (None, type(op))]
        for other in others:
            values = {"ops": [other(), *node.ops[1:]]} if isinstance(node, ast.Compare) else {"op": other()}
            yield from self._add("operator", 1, node, node, **values)
        if isinstance(node, ast.BinOp):
            if not isinstance(op, (ast.Add, ast.Mult, ast.BitAnd, ast.BitOr)):
                yield from self._add("operands", 1, node, node, left=node.right, right=node.left)

    def _of_constant(self, node: ast.Constant, names: list[str]) -> Iterator[Change]:
        value = node.value
        others: tuple = ()
        if isinstance(value, bool):
            others = (not value,)
        elif isinstance(value, int):
            others = (value + 1, value - 1, -value, -value - 1, 0, 1, 2, 2 * value, 0.5)
        elif value in INFINITE:
            others = tuple(each for each in INFINITE if each != value)
        elif isinstance(value, float):
            others = (-value, 2 * value, value / 2, 0.0, 1.0, 0.5)
        for other in dict.fromkeys(others):
            if other != value:
                yield from self._add("constant", 1 if isinstance(value, bool) else 2, node, node, value=other)
        for name in names if others else ():
            yield from self._put("constant", 2 if isinstance(value, bool) else 4, node, ast.Name(name, ast.Load()))

    def _of_call(self, node: ast.Call) -> Iterator[Change]:
        given = node.args
        for place in range(len(given) - 1):
            yield from self._add("arguments", 1, node, node, args=_turned(given, place))
        for place in range(len(node.keywords)):
            rest = [*node.keywords[:place], *node.keywords[place + 1 :]]
            yield from self._add("argument too many", 2, node, node, keywords=rest)
        if given:
            yield from self._add("argument too many", 3, node, node, args=given[:-1])
        if len(given) == 2 and isinstance(node.func, ast.Name) and node.func.id == "range":
            yield from self._add("argument too many", 2, node, node, args=given[1:])
        method = node.func if isinstance(node.func, ast.Attribute) else None
        of_value = method is not None and not (isinstance(method.value, ast.Name) and method.value.id in MODULES)
        if of_value and not _is_self(method.value):
            yield from self._put("method too many", 2, node, method.value)
        if len(given) == 1 and not isinstance(given[0], ast.Starred):
            yield from self._put("call too many", 2, node, given[0])
        if method is not None and method.attr in REDUCTIONS:
            named = {each.arg for each in node.keywords}
            if "keepdim" not in named and (given or named):
                keeping = [*node.keywords, ast.keyword("keepdim", ast.Constant(True))]
                yield from self._add("argument too few", 2, node, node, keywords=keeping)
            if not given and not named:
                for axis in (-1, 0, 1, -2):
                    yield from self._add("argument too few", 2, node, node, args=[ast.Constant(axis)])

    def _of_slice(self, node: ast.Slice) -> Iterator[Change]:
        for end, usual in (("lower", 1), ("upper", -1)):
            bound = getattr(node, end)
            others: list[ast.expr | None] = [ast.Constant(usual)]
            if bound is not None:
                others = [None, *(ast.BinOp(bound, op(), ast.Constant(1)) for op in (ast.Add, ast.Sub))]
            for other in others:
                yield from self._add("bounds", 2, self._places[node][0], node, **{end: other})

    def _around(self, node: ast.expr) -> Iterator[Change]:
        """What may be missing around an expression: a sign, another order of axes, 1 more or less, a copy."""
        parent, field, _ = self._places[node]
        is_called = isinstance(parent, ast.Call) and field == "func"
        is_stored = isinstance(getattr(node, "ctx", None), (ast.Store, ast.Del))
        is_module = isinstance(node, ast.Name) and node.id in {*MODULES, "self"}
        if is_called or is_stored or is_module:
            return
        in_constructor = self._function.name == "__init__"
        is_value = isinstance(parent, (ast.BinOp, ast.Call, ast.Return, ast.Assign))
        for layer in self._layers if (is_value or self._is_asked(parent)) and not in_constructor else ():
            of_self = ast.Attribute(ast.Name("self", ast.Load()), layer, ast.Load())
            yield from self._put("layer", 2, node, ast.Call(of_self, [node], []))
        if isinstance(parent, ast.Attribute) and isinstance(node, ast.Name):
            return
        yield from self._put("opposite", 4, node, ast.UnaryOp(ast.Invert(), node))
        if is_value and not in_constructor:
            yield from self._put("opposite", 4, node, ast.UnaryOp(ast.USub(), node))
            turned = ast.Attribute(node, "transpose", ast.Load())
            yield from self._put("axes", 4, node, ast.Call(turned, [ast.Constant(-2), ast.Constant(-1)], []))
            for op in (ast.Add, ast.Sub) if isinstance(node, (ast.Name, ast.BinOp, ast.Subscript)) else ():
                yield from self._put("by one", 4, node, ast.BinOp(node, op(), ast.Constant(1)))
            yield from self._put("copy", 5, node, ast.Call(ast.Attribute(node, "clone", ast.Load()), [], []))

    def _is_asked(self, node: ast.AST) -> bool:
        """Whether a node is the method that is called of a value, as in x.view(...)."""
        parent, field, _ = self._places[node]
        return isinstance(node, ast.Attribute) and isinstance(parent, ast.Call) and field == "func"

    def _of_blocks(self, function: ast.FunctionDef) -> Iterator[Change]:
        for node in ast.walk(function):
            for name in ("body", "orelse"):
                block = getattr(node, name, None)
                for place, statement in enumerate(block) if isinstance(block, list) else ():
                    yield from self._of_statement(node, name, block, place, statement)

    def _of_statement(self, node: ast.AST, name: str, block: list, place: int, statement: ast.stmt) -> Iterator[Change]:
        before, after = block[:place], block[place + 1 :]
        if len(block) > 1:
            yield from self._add("line too many", 2, statement, node, **{name: [*before, *after]})
        if after:
            yield from self._add("lines exchanged", 2, statement, node, **{name: _turned(block, place)})
        if after and isinstance(statement, ast.Assign) and isinstance(after[0], ast.Assign):
            crossed = [ast.Assign(one.targets, other.value, lineno=one.lineno) for one, other in
                       ((statement, after[0]), (after[0], statement))]  # fmt: skip
            yield from self._add("values exchanged", 2, statement, node, **{name: [*before, *crossed, *after[1:]]})
        if isinstance(statement, ast.If):
            yield from self._add(
                "condition too many", 3, statement.test, node, **{name: [*before, *statement.body, *after]}
            )
        if isinstance(statement, (ast.For, ast.While, ast.If)):
            *others, last = statement.body
            if others:
                shorter = _with_body(statement, others)
                yield from self._add("indented", 2, last, node, **{name: [*before, shorter, last, *after]})
            if after:
                longer = _with_body(statement, [*statement.body, after[0]])
                yield from self._add("not indented", 2, after[0], node, **{name: [*before, longer, *after[1:]]})


def _with_body(statement: ast.For | ast.While | ast.If, body: list[ast.stmt]) -> ast.stmt:
    return type(statement)(**{**dict(ast.iter_fields(statement)), "body": body})


def _turned(items: list, place: int) -> list:
    """The items, the one at this place exchanged with the next."""
    return [*items[:place], items[place + 1], items[place], *items[place + 2 :]]


def _is_self(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id == "self"


def _local_names(function: ast.FunctionDef) -> list[str]:
    """The arguments and the variables of a function, and of those inside of it."""
    arguments = [
        each.arg
        for node in ast.walk(function)
        if isinstance(node, ast.arguments)
        for each in (*node.posonlyargs, *node.args, *node.kwonlyargs)
    ]
    stored = [node.id for node in ast.walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
    return [name for name in dict.fromkeys([*arguments, *stored]) if name != "self"]
