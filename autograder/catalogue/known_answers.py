"""Known answers, right and wrong, in few words: a mistake is written as a change of a right answer.

    RIGHT = answer('''
        def attend(W, V):
            mixed = W @ V
            return mixed
    ''')
    mistake("a copy of the values", RIGHT.but("W @ V", "V"), MIX, "These are the values themselves, not mixed.")

A change that does not apply exactly once, or leaves no Python, is refused when the entry is made.
"""

import ast
import warnings
from collections.abc import Callable
from functools import lru_cache
from itertools import accumulate
from textwrap import dedent, indent

from autograder.catalogue.exercise import Evidence, Misconception, Section, Variant, usual_quote


class Answer(str):
    """Source of an answer, from which others are made by changing it. origin: the answer that was changed first, None
    for one that is written out; changes: what was done to it since, each a method's name and its arguments.
    """

    origin: "Answer | None" = None
    changes: tuple[tuple[str, ...], ...] = ()

    def _changed(self, source: str, *change: str) -> "Answer":
        new = Answer(source)
        new.origin, new.changes = self.origin or self, (*self.changes, change)
        return new

    def together(self, other: "Answer") -> "Answer | None":
        """The answer that holds the changes of both, made of one origin; None where they do not fit together."""
        if not other.changes or not self.changes or self.origin is None or self.origin != other.origin:
            return None
        for first, second in ((self, other), (other, self)):
            both, alone = first, self.origin
            try:
                for change in second.changes:
                    if change not in first.changes:
                        both = both._as_in(alone, *change)
                    alone = alone._again(*change)
                with warnings.catch_warnings():
                    warnings.simplefilter("error", SyntaxWarning)  # as of a number in whose place a tensor was
                    compile(both, "<both>", "exec")  # it refuses what a parser lets pass, as an argument named twice
            except (ValueError, SyntaxError):  # what the one changes is not there any more
                continue
            if both not in (first, second):
                return both
        return None

    def _again(self, method: str, *arguments: str) -> "Answer":
        return getattr(self, method)(*arguments)

    def _as_in(self, alone: "Answer", method: str, *arguments: str) -> "Answer":
        """The answer with one more change, which means here what it means in `alone`. Raises ValueError where it does
        not: "a @ b" is no expression of its own in "a @ b.T", so what replaces it would be transposed, and b was not.
        """
        changed = self._again(method, *arguments)
        if method != "but":
            return changed
        old, new = arguments
        here, there = self.find(old), alone.find(old)
        if _line_at(self, here) == _line_at(alone, there):  # so for most, and Python need not be read
            return changed
        for text, mine, its in ((old, self, alone), (new, changed, alone._again(method, *arguments))):
            if _is_node(its, there, text) and not _is_node(mine, here, text):
                raise ValueError(f"but: expected {text!r} to be an expression or a statement of its own in\n{mine}")
        return changed

    def but(self, old: str, new: str) -> "Answer":
        """The answer with `new` where `old` is, which must be exactly once.

        A `new` that begins with a line break is a block: it is indented as the line where `old` begins.
        """
        if (times := self.count(old)) != 1:
            raise ValueError(f"but: expected {old!r} exactly once, got it {times} times in\n{self}")
        given = new
        before, _, after = self.partition(old)
        if new.startswith("\n"):
            line = before.rpartition("\n")[2]
            margin = line[: len(line) - len(line.lstrip())]
            new = indent(dedent(new).strip("\n"), margin).removeprefix(margin)
        return self._changed(before + new + after, "but", old, given)

    def without(self, line: str) -> "Answer":
        """The answer without a line, given without its margin, which must be there exactly once."""
        return self._changed(self._at(line, lambda margin, text: ""), "without", line)

    def before(self, line: str, new: str) -> "Answer":
        """The answer with new lines before a line, which must be there exactly once; both without their margin."""
        source = self._at(line, lambda margin, text: indent(dedent(new).strip("\n"), margin) + "\n" + text)
        return self._changed(source, "before", line, new)

    def after(self, line: str, new: str) -> "Answer":
        """The answer with new lines after a line, which must be there exactly once; both without their margin."""
        source = self._at(line, lambda margin, text: text + indent(dedent(new).strip("\n"), margin) + "\n")
        return self._changed(source, "after", line, new)

    def _at(self, line: str, change: Callable[[str, str], str]) -> str:
        lines = self.splitlines(keepends=True)
        found = [place for place, text in enumerate(lines) if text.strip() == line.strip()]
        if len(found) != 1:
            raise ValueError(f"expected the line {line!r} exactly once, got it {len(found)} times in\n{self}")
        text = lines[found[0]]
        lines[found[0]] = change(text[: len(text) - len(text.lstrip())], text)
        return "".join(lines)

    def ending_in(self, method: str) -> "Answer":
        """The answer with every value that it returns passed through a method, such as ".float()".

        Of a tuple every element is passed through it; of a class, what `forward` returns.
        """
        lines = self.encode().splitlines(keepends=True)
        for value in sorted(_returned(self), key=lambda value: (value.lineno, value.col_offset), reverse=True):
            if value.lineno != value.end_lineno:
                raise ValueError(f"ending_in: expected returned values of one line, got more in\n{self}")
            line = lines[value.lineno - 1]
            text = line[value.col_offset : value.end_col_offset].decode()
            simple = isinstance(value, (ast.Name, ast.Call, ast.Attribute, ast.Subscript))
            passed = f"{text}{method}" if simple else f"({text}){method}"
            lines[value.lineno - 1] = line[: value.col_offset] + passed.encode() + line[value.end_col_offset :]
        return self._changed(b"".join(lines).decode(), "ending_in", method)

    def beginning_with(self, *lines: str) -> "Answer":
        """The answer whose function, or whose class's `forward`, begins with these lines."""
        first, text = _function(self).body[0], self.splitlines(keepends=True)
        margin = " " * first.col_offset
        return Answer(
            "".join([*text[: first.lineno - 1], *(f"{margin}{line}\n" for line in lines), *text[first.lineno - 1 :]])
        )


def answer(source: str) -> Answer:
    """The source of an answer, without the margin that it has in an entry."""
    return Answer(dedent(source).strip("\n") + "\n")


def formula(call: str, value: str) -> Answer:
    """The answer that consists of one expression: formula("attend(W, V)", "W @ V")."""
    return Answer(f"def {call}:\n    return {value}\n")


def mistake(
    name: str,
    source: str,
    reread: Section,
    message: str,
    quotes: Callable[[Evidence], str] | None = usual_quote,
    shows: Callable[[Evidence], bool | None] | None = None,
) -> Misconception:
    """A known wrong answer and its message. message: the cause of the result and what to look at, never the code.
    quotes: a sentence with the learner's own numbers, put before the message where a visible probe shows the mistake;
    by default the exercise's `quotes`, None for none. shows: for an answer that differs from process to process,
    whether a failed probe bears its mark. Raises ValueError when the source is not Python.
    """
    return Misconception(name, _source(name, source), " ".join(message.split()), reread, quotes, shows)


def correct(name: str, source: str) -> Variant:
    """A correct answer in another style, which must earn all points."""
    return Variant(name, _source(name, source))


def _is_node(source: str, begin: int, text: str) -> bool:
    """Whether a text of the source is an expression or a statement by itself, as "a @ b" is not in "a @ b.T"."""
    return (begin, begin + len(text)) in _spans(source)


def _line_at(source: str, place: int) -> str:
    return source[source.rfind("\n", 0, place) + 1 :].partition("\n")[0]


@lru_cache(1000)
def _spans(source: str) -> frozenset[tuple[int, int]]:
    """Begin and end of all nodes of a source, in characters; none if it is not Python."""
    try:
        nodes = list(ast.walk(ast.parse(source)))
    except SyntaxError:
        return frozenset()
    begins = [0, *accumulate(len(line) for line in source.splitlines(keepends=True))]
    lines = [line.encode() for line in source.splitlines(keepends=True)]

    def place(line: int, column: int) -> int:
        return begins[line - 1] + len(lines[line - 1][:column].decode())

    return frozenset(
        (place(node.lineno, node.col_offset), place(node.end_lineno, node.end_col_offset))
        for node in nodes
        if getattr(node, "end_lineno", None)
    )


def _returned(source: str) -> list[ast.expr]:
    """The values that a function, or the forward of a class, returns; the elements of a tuple separately."""
    values = [
        node.value for node in ast.walk(_function(source)) if isinstance(node, ast.Return) and node.value is not None
    ]
    return [part for value in values for part in (value.elts if isinstance(value, ast.Tuple) else [value])]


def _function(source: str) -> ast.FunctionDef:
    """The function of an answer, or the forward of its class."""
    function = ast.parse(source).body[-1]
    if isinstance(function, ast.ClassDef):
        function = next(part for part in function.body if isinstance(part, ast.FunctionDef) and part.name == "forward")
    return function


def _source(name: str, source: str) -> str:
    source = source if isinstance(source, Answer) else answer(source)
    try:
        ast.parse(source)
    except SyntaxError as error:
        raise ValueError(f"{name}: expected Python, got line {error.lineno}: {error.msg} in\n{source}") from error
    return source
