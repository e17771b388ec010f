"""Sources that differ from a given one by one change: another operator, constant, argument or order of statements."""

import ast
import copy
import random
from collections.abc import Iterator

OPERATORS = {
    ast.Add: (ast.Sub, ast.Mult), ast.Sub: (ast.Add,), ast.Mult: (ast.Div, ast.Add), ast.Div: (ast.Mult, ast.FloorDiv),
    ast.Pow: (ast.Mult,), ast.FloorDiv: (ast.Div,), ast.Mod: (ast.FloorDiv,), ast.BitAnd: (ast.BitOr,),
    ast.BitOr: (ast.BitAnd,), ast.Lt: (ast.LtE, ast.Gt), ast.LtE: (ast.Lt, ast.GtE), ast.Gt: (ast.GtE, ast.Lt),
    ast.GtE: (ast.Gt, ast.LtE), ast.Eq: (ast.NotEq,), ast.NotEq: (ast.Eq,), ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,), ast.In: (ast.NotIn,), ast.NotIn: (ast.In,), ast.And: (ast.Or,), ast.Or: (ast.And,),
}  # fmt: skip
NAMES = {
    "sum": ("mean", "amax"), "mean": ("sum",), "softmax": ("log_softmax", "sigmoid"), "tril": ("triu",),
    "triu": ("tril",), "max": ("min",), "min": ("max",), "argmax": ("argmin",), "sin": ("cos",), "cos": ("sin",),
    "zeros": ("ones",), "ones": ("zeros",), "amax": ("amin",), "exp": ("log1p",), "append": ("extend",),
    "var": ("std",), "sqrt": ("square",), "any": ("all",), "all": ("any",), "relu": ("tanh",), "sorted": ("list",),
}  # fmt: skip


def mutations(source: str, generator: random.Random) -> Iterator[tuple[str, str]]:
    """All mutations of a source by one change, in random order: (description of the change, new source)."""
    tree = ast.parse(source)
    nodes = list(ast.walk(tree))
    places = [(number, which) for number, node in enumerate(nodes) for which, _ in enumerate(_changes(node, tree))]
    generator.shuffle(places)
    for number, which in places:
        kind, change = list(_changes(nodes[number], tree))[which]
        twin = copy.deepcopy(tree)
        try:
            change(list(ast.walk(twin))[number])
            text = ast.unparse(ast.fix_missing_locations(twin))
            compile(text, "<mutation>", "exec")
        except (SyntaxError, ValueError, AttributeError, TypeError):
            continue
        if text != ast.unparse(tree):
            yield f"line {getattr(nodes[number], 'lineno', 0)}: {kind}", text


def _changes(node: ast.AST, tree: ast.AST) -> Iterator[tuple]:
    """Yield (description, function that applies the change to a copy of the node)."""

    def put(**values):
        return lambda target: [setattr(target, name, copy.deepcopy(value)) for name, value in values.items()]

    def first(items, value):
        return [value, *items[1:]]

    if isinstance(node, (ast.BinOp, ast.AugAssign, ast.BoolOp)):
        for other in OPERATORS.get(type(node.op), ()):
            yield f"{type(node.op).__name__} to {other.__name__}", put(op=other())
    if isinstance(node, ast.BinOp):
        yield "the operands exchanged", put(left=node.right, right=node.left)
        yield "the left operand alone", put(right=ast.Constant(1), op=ast.Mult())
    if isinstance(node, ast.Compare):
        for other in OPERATORS.get(type(node.ops[0]), ()):
            yield f"{type(node.ops[0]).__name__} to {other.__name__}", put(ops=first(node.ops, other()))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.Invert, ast.Not)):
        yield "a sign dropped", put(op=ast.UAdd()) if isinstance(node.op, ast.USub) else put(op=ast.Not())
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
        value = node.value
        others: tuple = (not value,) if isinstance(value, bool) else (2 * value,)
        if type(value) is int:
            others = (value + 1, value - 1)
        for other in others:
            yield f"{value} to {other}", put(value=other)
    if isinstance(node, ast.Call):
        for place in range(len(node.args) - 1):
            swapped = [*node.args[:place], node.args[place + 1], node.args[place], *node.args[place + 2 :]]
            yield "arguments exchanged", put(args=swapped)
        for place in range(len(node.keywords)):
            yield "a keyword dropped", put(keywords=[*node.keywords[:place], *node.keywords[place + 1 :]])
        if len(node.args) > 1:
            yield "the last argument dropped", put(args=node.args[:-1])
    if isinstance(node, ast.Attribute):
        for other in NAMES.get(node.attr, ()):
            yield f"{node.attr} to {other}", put(attr=other)
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        for other in NAMES.get(node.id, ()):
            yield f"{node.id} to {other}", put(id=other)
        for other in sorted(_arguments(tree) - {node.id}) if node.id in _arguments(tree) else ():
            yield f"{node.id} to {other}", put(id=other)
    if isinstance(node, ast.Slice):
        for end in ("lower", "upper"):
            if getattr(node, end) is not None:
                yield f"no {end} end", put(**{end: None})
    if isinstance(node, (ast.If, ast.IfExp, ast.While)):
        yield "the condition negated", put(test=ast.UnaryOp(ast.Not(), node.test))
    for name in ("body", "orelse"):
        body = getattr(node, name, None)
        if isinstance(body, list) and not isinstance(node, (ast.Module, ast.ClassDef)):
            for place in range(len(body)):
                if len(body) > 1:
                    yield "a statement dropped", put(**{name: [*body[:place], *body[place + 1 :]]})
                if place + 1 < len(body):
                    turned = [*body[:place], body[place + 1], body[place], *body[place + 2 :]]
                    yield "statements exchanged", put(**{name: turned})


def _arguments(tree: ast.AST) -> set[str]:
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
    return {each.arg for function in functions for each in function.args.args} - {"self"}
