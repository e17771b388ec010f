"""The value that an expression is certain to have, by reading it: "soft" + "max", [::-1], chr, base64 and their like.

Nothing of a learner's is run: only the listed operations on plain values, each kept small.
"""

import ast
import base64
import binascii
import codecs
import operator
import re
from collections.abc import Mapping
from typing import Any

MOST = 20_000  # letters, items or steps; a longer constant is not the name of a function
UNKNOWN = object()

OPERATORS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mod: operator.mod,
    ast.BitXor: operator.xor,
}
FUNCTIONS = {
    "str": str,
    "chr": chr,
    "ord": ord,
    "bytes": bytes,
    "bytearray": bytes,
    "list": list,
    "tuple": tuple,
    "reversed": lambda value: list(reversed(value)),
    "sorted": sorted,
    "b64decode": base64.b64decode,
    "urlsafe_b64decode": base64.urlsafe_b64decode,
    "b32decode": base64.b32decode,
    "b16decode": base64.b16decode,
    "b85decode": base64.b85decode,
    "unhexlify": binascii.unhexlify,
    "fromhex": bytes.fromhex,
}
DECODINGS = ("utf-8", "utf8", "ascii", "latin-1", "rot13", "rot_13", "hex", "base64")
METHODS = {
    str: ("join", "lower", "upper", "swapcase", "title", "capitalize", "casefold", "strip", "lstrip", "rstrip")
    + ("replace", "removeprefix", "removesuffix", "split", "encode", "format"),
    bytes: ("decode", "join", "replace", "lower", "upper", "strip", "hex"),
}
UNCERTAIN = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
PLAIN = (str, bytes, int, list, tuple)


def value_of(node: ast.AST, names: Mapping[str, Any]) -> Any:
    """The value of an expression in which the names have these values; UNKNOWN when that is not certain."""
    try:
        return _Reader(names).value(node)
    except UNCERTAIN:
        return UNKNOWN


def text_of(node: ast.AST, names: Mapping[str, Any]) -> str | None:
    """The text that an expression is certain to be, or None."""
    value = value_of(node, names)
    return value if isinstance(value, str) else None


class _NotPlain(ValueError):
    pass


class _Reader:
    """Works out one expression, in a limited number of steps."""

    def __init__(self, names: Mapping[str, Any]) -> None:
        self._names, self._steps = dict(names), 0

    def value(self, node: ast.AST) -> Any:
        self._steps += 1
        if self._steps > MOST:
            raise _NotPlain
        value = self._value(node)
        if not isinstance(value, PLAIN) or _size(value) > MOST:
            raise _NotPlain
        return value

    def _value(self, node: ast.AST) -> Any:
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Name):
            return self._names[node.id]
        if isinstance(node, (ast.List, ast.Tuple)):
            return [self.value(item) for item in node.elts]
        if isinstance(node, ast.JoinedStr):
            return "".join(self.value(part) for part in node.values)
        if isinstance(node, ast.FormattedValue) and node.conversion == -1 and node.format_spec is None:
            return str(self.value(node.value))
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return -self.value(node.operand)
        if isinstance(node, ast.BinOp):
            left, right = self.value(node.left), self.value(node.right)
            return OPERATORS[type(node.op)](_fitting(left, right), right)
        if isinstance(node, ast.Subscript):
            return self.value(node.value)[self._index(node.slice)]
        if isinstance(node, (ast.ListComp, ast.GeneratorExp)) and len(node.generators) == 1:
            return self._comprehended(node)
        if isinstance(node, ast.Call) and not node.keywords:
            return self._called(node)
        raise _NotPlain

    def _index(self, node: ast.AST) -> Any:
        if not isinstance(node, ast.Slice):
            return self.value(node)
        return slice(*(None if part is None else self.value(part) for part in (node.lower, node.upper, node.step)))

    def _comprehended(self, node: ast.ListComp | ast.GeneratorExp) -> list[Any]:
        generator, values = node.generators[0], []
        if generator.ifs or not isinstance(generator.target, ast.Name):
            raise _NotPlain
        for item in self.value(generator.iter):
            self._names[generator.target.id] = item
            values.append(self.value(node.elt))
        return values

    def _called(self, node: ast.Call) -> Any:
        function = node.func
        name = getattr(function, "id", getattr(function, "attr", ""))
        if name == "map" and len(node.args) == 2 and isinstance(node.args[0], ast.Name):
            return [FUNCTIONS[node.args[0].id](item) for item in self.value(node.args[1])]
        arguments = [self.value(argument) for argument in node.args]
        if name == "decode" and arguments and arguments[-1] not in DECODINGS:
            raise _NotPlain
        if name == "decode" and len(arguments) == 2:
            return codecs.decode(*arguments)
        if isinstance(function, ast.Attribute):
            owner = self._owner(function.value)
            if name in METHODS.get(type(owner), ()):
                return getattr(_fitting(owner, arguments), name)(*arguments)
        if name in ("bytes", "bytearray") and arguments and isinstance(arguments[0], int):
            raise _NotPlain  # that many zeros
        return FUNCTIONS[name](*arguments)

    def _owner(self, node: ast.AST) -> Any:
        """The value whose method is called; UNKNOWN for a module such as base64."""
        try:
            return self.value(node)
        except UNCERTAIN:
            return UNKNOWN


def _size(value: Any) -> int:
    """Letters, bytes or digits, those of the items included."""
    if isinstance(value, int):
        return value.bit_length() // 3
    return len(value) + sum(_size(item) for item in value if not isinstance(value, (str, bytes)))


def _fitting(owner: Any, arguments: Any) -> Any:
    """The owner, when nothing that it does with the arguments can become large."""
    padded = isinstance(owner, (str, bytes)) and re.search(r"\d{4}" if isinstance(owner, str) else rb"\d{4}", owner)
    if _size(owner) * _size(arguments) > MOST * 50 or (padded and arguments):
        raise _NotPlain
    return owner
