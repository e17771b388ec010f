"""Known answers, right and wrong, in few words: a mistake is written as a change of a right answer.

    RIGHT = answer('''
        def attend(W, V):
            mixed = W @ V
            return mixed
    ''')
    wrong("a copy of the values", RIGHT.but("W @ V", "V"), MIX, "These are the values themselves, not mixed.")

A change that does not apply exactly once, or leaves no Python, is refused when the entry is made.
"""

import ast
from collections.abc import Callable, Iterator
from textwrap import dedent, indent

from autograder.catalogue.exercise import Evidence, Misconception, Section, Variant


class Answer(str):
    """Source of an answer, from which others are made by changing it.

    origin: the answer that was changed first, None for one that is written out; changes: what was done to it since, each
    a method's name and its arguments.
    """

    origin: "Answer | None" = None
    changes: tuple[tuple[str, ...], ...] = ()

    def _changed(self, source: str, *change: str) -> "Answer":
        new = Answer(source)
        new.origin, new.changes = self.origin or self, (*self.changes, change)
        return new

    def together(self, other: "Answer") -> "Answer | None":
        """The answer that holds the changes of both, made of one origin; None where they do not fit together."""
        if not other.changes or not self.changes or self.origin != other.origin:
            return None
        for first, second in ((self, other), (other, self)):
            both, more = first, [change for change in second.changes if change not in first.changes]
            try:
                for method, *arguments in more:
                    both = getattr(both, method)(*arguments)
                ast.parse(both)
            except (ValueError, SyntaxError):  # what the one changes is not there any more
                continue
            if both not in (first, second):
                return both
        return None

    def but(self, old: str, new: str) -> "Answer":
        """The answer with `new` where `old` stands, which must be exactly once.

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
        """The answer without a line, given without its margin, which must stand there exactly once."""
        return self._changed(self._at(line, lambda margin, text: ""), "without", line)

    def before(self, line: str, new: str) -> "Answer":
        """The answer with new lines before a line, which must stand there exactly once; both without their margin."""
        source = self._at(line, lambda margin, text: indent(dedent(new).strip("\n"), margin) + "\n" + text)
        return self._changed(source, "before", line, new)

    def after(self, line: str, new: str) -> "Answer":
        """The answer with new lines after a line, which must stand there exactly once; both without their margin."""
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


def answer(source: str) -> Answer:
    """The source of an answer, without the margin that it has in an entry."""
    return Answer(dedent(source).strip("\n") + "\n")


def formula(call: str, value: str) -> Answer:
    """The answer that is one expression: formula("attend(W, V)", "W @ V")."""
    return Answer(f"def {call}:\n    return {value}\n")


def wrong(
    name: str,
    source: str,
    reread: Section,
    message: str,
    quotes: Callable[[Evidence], str] | None = None,
    shows: Callable[[Evidence], bool] | None = None,
) -> Misconception:
    """A known wrong answer and the words that it deserves.

    message: why this comes out and what to look at, never the code. quotes: a sentence with the learner's own numbers,
    put before the message where a visible probe shows the mistake. shows: for an answer that differs from process to
    process, whether a failed probe bears its mark. Raises ValueError when the source is no Python.
    """
    return Misconception(name, _source(name, source), " ".join(message.split()), reread, quotes, shows)


def right(name: str, source: str) -> Variant:
    """A right answer in another style, which must earn everything."""
    return Variant(name, _source(name, source))


def in_place(argument: str, source: str, reread: Section, more: str = "") -> Misconception:
    """The known wrong answer that changes an argument; more: what is particular here, in place of the usual advice."""
    return wrong(
        f"{argument} changed in place",
        source,
        reread,
        f"Your function changed the caller's {argument}: an operation such as -=, /= or one whose name ends in _ writes "
        f"into the tensor that was passed in. {more or 'Make a new one.'}",
    )


def usual_mistakes(
    right_answer: Answer,
    *,
    detached: Section | None = None,
    float32: Section | None = None,
    squeezed: Section | None = None,
    quotes_size: Callable[[Evidence], str] | None = None,
) -> Iterator[Misconception]:
    """What goes wrong everywhere, each named with where to reread; a section that is not given leaves one out.

    detached: the result is cut off from the gradient. float32: float64 comes back as float32. squeezed: every axis of
    size 1 vanishes; `quotes_size` says which shape came back.
    """
    if detached:
        yield wrong(
            "cut off from the gradient",
            right_answer.ending_in(".detach()"),
            detached,
            "The values are right, but no gradient flows back: .detach(), .data, no_grad or numpy cut the graph, and "
            "nothing before it could be learned.",
        )
    if float32:
        yield wrong(
            "always float32",
            right_answer.ending_in(".float()"),
            float32,
            "float64 went in and float32 came out. The result keeps the dtype of the input.",
        )
    if squeezed:
        yield wrong(
            "the batch axis squeezed away",
            right_answer.ending_in(".squeeze()"),
            squeezed,
            "With one sentence the batch axis of size 1 vanished. squeeze() removes every axis of size 1; this one must "
            "stay.",
            quotes_size,
        )


def _returned(source: str) -> list[ast.expr]:
    """The values that a function, or the forward of a class, returns; a tuple's elements one by one."""
    function = ast.parse(source).body[-1]
    if isinstance(function, ast.ClassDef):
        function = next(part for part in function.body if isinstance(part, ast.FunctionDef) and part.name == "forward")
    values = [node.value for node in ast.walk(function) if isinstance(node, ast.Return) and node.value is not None]
    return [part for value in values for part in (value.elts if isinstance(value, ast.Tuple) else [value])]


def _source(name: str, source: str) -> str:
    source = source if isinstance(source, Answer) else answer(source)
    try:
        ast.parse(source)
    except SyntaxError as error:
        raise ValueError(f"{name}: expected Python, got line {error.lineno}: {error.msg} in\n{source}") from error
    return source
