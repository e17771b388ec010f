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
from collections.abc import Callable, Iterator, Sequence
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
        if not other.changes or not self.changes or self.origin != other.origin:
            return None
        for first, second in ((self, other), (other, self)):
            both, more = first, [change for change in second.changes if change not in first.changes]
            try:
                for method, *arguments in more:
                    both = getattr(both, method)(*arguments)
                with warnings.catch_warnings():
                    warnings.simplefilter("error", SyntaxWarning)  # as of a number in whose place a tensor was
                    compile(both, "<both>", "exec")  # it refuses what a parser lets pass, as an argument named twice
            except (ValueError, SyntaxError):  # what the one changes is not there any more
                continue
            if both not in (first, second):
                return both
        return None

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
    """The answer that is one expression: formula("attend(W, V)", "W @ V")."""
    return Answer(f"def {call}:\n    return {value}\n")


def mistake(
    name: str,
    source: str,
    reread: Section,
    message: str,
    quotes: Callable[[Evidence], str] | None = usual_quote,
    shows: Callable[[Evidence], bool | None] | None = None,
) -> Misconception:
    """A known wrong answer and the words that it deserves. message: why this comes out and what to look at, never the
    code. quotes: a sentence with the learner's own numbers, put before the message where a visible probe shows the
    mistake; by default the exercise's `quotes`, None for none. shows: for an answer that differs from process to
    process, whether a failed probe bears its mark. Raises ValueError when the source is not Python.
    """
    return Misconception(name, _source(name, source), " ".join(message.split()), reread, quotes, shows)


def correct(name: str, source: str) -> Variant:
    """A right answer in another style, which must earn everything."""
    return Variant(name, _source(name, source))


def in_place(argument: str, source: str, reread: Section, more: str = "") -> Misconception:
    """The known wrong answer that changes an argument; more: what is particular here, instead of the usual advice."""
    return mistake(
        f"{argument} changed in place",
        source,
        reread,
        f"Your function changed the caller's {argument}: an operation such as -=, /= or one whose name ends in _ "
        f"writes into the tensor that was passed in. {more or 'Make a new one.'}",
        quotes=None,
    )


def usual_mistakes(
    right_answer: Answer,
    *,
    arguments: str = "",
    detached: Section | None = None,
    float32: Section | None = None,
    single: Section | None = None,
    squeezed: Section | None = None,
    viewed: Section | None = None,
    rounded: Section | None = None,
    root: str = "",
    quotes_size: Callable[[Evidence], str] | None = None,
) -> Iterator[Misconception]:
    """Mistakes that occur everywhere, each named with where to reread; a section that is not given leaves one out.

    arguments: the tensors of floats, separated by blanks. detached: the result is cut off from the gradient, or one of
    the arguments is. float32: float64 comes back as float32; single: it is rounded so on the way. squeezed: an axis of
    size 1 vanishes, in any spelling; `quotes_size` says which shape came back. viewed: the first argument is cut anew,
    which fails where it lies transposed. rounded: `root`, as the answer writes it, is cut to a whole number.
    """
    names = arguments.split()
    if detached:
        yield from _cut_off(right_answer, names, detached)
    if float32:
        yield mistake(
            "always float32",
            right_answer.ending_in(".float()"),
            float32,
            "float64 went in and float32 came out. The result keeps the dtype of the input.",
        )
    if single:
        yield _single_inside(right_answer, names, single)
    if squeezed:
        yield mistake(
            "the batch axis squeezed away",
            right_answer.ending_in(".squeeze()"),
            squeezed,
            "An axis of size 1 vanished, such as the batch axis of one sentence. squeeze() removes every "
            "axis of size 1, "
            "squeeze(0) the first if it is one; it must stay.",
            quotes_size,
            lost_an_axis_of_1,
        )
    if viewed:
        yield mistake(
            "view of what lies transposed",
            right_answer.beginning_with(f"{names[0]} = {names[0]}.view(-1).view({names[0]}.shape)"),
            viewed,
            "Your code stops where a tensor lies transposed in memory, as after .mT: view only cuts the "
            "strip anew, and "
            "there it cannot. reshape can.",
        )
    if rounded:
        yield mistake(
            "root rounded",
            right_answer.but(root, f"int({root})"),
            rounded,
            "The root was cut to a whole number. That is right for a square, such as 4 or 64, and not otherwise.",
        )


def _cut_off(right_answer: Answer, names: Sequence[str], section: Section) -> Iterator[Misconception]:
    """The result is cut off from the gradient; or one of several arguments is."""
    yield mistake(
        "cut off from the gradient",
        right_answer.ending_in(".detach()"),
        section,
        "The values are right, but no gradient flows back: .detach(), .data, no_grad or numpy cut the graph, and "
        "nothing before it could be learned.",
    )
    for name in names if len(names) > 1 else ():
        yield mistake(
            f"{name} cut off from the gradient",
            right_answer.beginning_with(f"{name} = {name}.detach()"),
            section,
            f"The values are right, but no gradient reaches {name}: .detach(), .data, .item(), numpy or torch.tensor "
            "around a tensor cut it off, or a layer holds a copy of it.",
        )


def _single_inside(right_answer: Answer, names: Sequence[str], section: Section) -> Misconception:
    """All arguments are made single on the way in, and the result double again."""
    floats = ", ".join(f"{name}.float()" for name in names)
    return mistake(
        "single precision inside",
        right_answer.ending_in(".to(dtype)").beginning_with(
            f"dtype = {names[0]}.dtype", f"{', '.join(names)} = {floats}"
        ),
        section,
        "The result is float64 again, but on the way it was float32, which holds seven digits: 100,000,000 and "
        "100,000,001 become one number there. Compute in the dtype of the input.",
    )


def lost_an_axis_of_1(evidence: Evidence) -> bool:
    """Whether these are the right numbers without an axis of size 1, or the first such part of a tuple is."""
    pairs = [(evidence.got, evidence.expected)]
    if isinstance(evidence.expected, tuple):
        pairs = list(zip(evidence.got, evidence.expected, strict=True))
    got, expected = next((got, expected) for got, expected in pairs if got.shape != expected.shape)
    fewer = got.ndim < expected.ndim and got.squeeze().shape == expected.squeeze().shape
    return fewer and bool(((got.squeeze() - expected.squeeze()).abs() < 1e-4).all())


def _returned(source: str) -> list[ast.expr]:
    """The values that a function, or the forward of a class, returns; a tuple's elements one by one."""
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
