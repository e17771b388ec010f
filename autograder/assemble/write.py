"""From gathered answers to the text of one file: imports on top, then each chapter, each part under its number."""

import ast
import io
import json
import sys
import tokenize
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from textwrap import wrap

from autograder.assemble.gather import Gathered, Statement
from transformer_ref.learner import mine

HEAD = "My Transformer: what I wrote in the notebooks of Attention by Hand, chapter by chapter."
NOT_YOURS = "  (the course's answer)"
WIDTH = 100  # of a heading
WRITTEN = "Written by `python -m autograder assemble`"  # a file without it is nobody's to write over


@dataclass(frozen=True)
class Written:
    """The text of the file. renamed: exercise id -> the helpers of its cells that have another name in the file."""

    text: str
    renamed: dict[str, dict[str, str]]


def as_file(answers: Sequence[Gathered], of: int) -> Written:
    """The file that holds these answers, in this order. of: number of exercises in the course.

    If an answer imports from the package something that is an answer here, it uses the answer.
    """
    parts = {name for answer in answers for name in answer.exercise.names}
    taken = dict.fromkeys(parts, "")  # name -> the code that the file gives it; an exercise's name is not a helper's
    imports: dict[str, ast.stmt] = {}
    chapters: dict[str, list[str]] = {}
    renamed: dict[str, dict[str, str]] = {}
    for answer in answers:
        kept = [each for each in answer.statements if not _is_elsewhere(each, answer, parts)]
        names = _other_names(kept, answer, taken)
        part = [_heading(answer)]
        for statement in kept:
            text = _renamed(statement.text, names)
            if statement.imports:
                imports.setdefault(text, ast.parse(text).body[0])
            elif not any(text in known for known in chapters.values()):
                part.append(text)
        chapters.setdefault(answer.chapter, []).extend(part)
        if names:
            renamed[answer.exercise.id] = names
    return Written(_laid_out(answers, of, imports, chapters), renamed)


def _heading(answer: Gathered) -> str:
    heading = f"# {answer.exercise.number} {', '.join(answer.exercise.names)}"
    if answer.instead_of:
        heading += f": the course's answer, since yours is not in ({answer.instead_of})"
    return "\n".join(wrap(heading, WIDTH, subsequent_indent="# "))


def _is_elsewhere(statement: Statement, answer: Gathered, parts: set[str]) -> bool:
    """Whether a statement defines a name that is another part of the file."""
    used = statement.cell in answer.uses or statement.binds <= answer.given
    return used and bool(statement.binds & parts)


def _other_names(statements: Sequence[Statement], answer: Gathered, taken: dict[str, str]) -> dict[str, str]:
    """New names for the helpers of an answer whose name is used in the file already. The new names are recorded."""
    helpers = [each for each in statements if not _is_own(each, answer)]
    names: dict[str, str] = {}
    while True:
        given: dict[str, str] = {}
        for statement in helpers:
            for name in statement.binds - {"*"}:
                new = names.get(name, name)
                given[new] = given.get(new, "") + _renamed(statement.text, names)
        old_of = {new: old for old, new in names.items()}
        clashes = [name for name, text in given.items() if taken.get(name, text) != text and name not in old_of]
        if not clashes:
            taken |= given
            return names
        names |= {name: _free(name, answer, taken) for name in clashes}  # their callers' text changed: look again


def _is_own(statement: Statement, answer: Gathered) -> bool:
    return statement.cell == answer.exercise.id and bool(statement.binds & set(answer.exercise.names))


def _free(name: str, answer: Gathered, taken: dict[str, str]) -> str:
    """A name that is not used in the file yet."""
    chapter, number = answer.chapter.partition("_")[0], answer.exercise.number.replace(".", "_")
    tries = (f"{name}_{suffix}" for suffix in (chapter, number, *(f"{number}_{count}" for count in range(2, 1000))))
    return next(each for each in tries if each not in taken)


def _renamed(text: str, names: dict[str, str]) -> str:
    """The text with some names replaced; its comments are kept if possible."""
    for old, new in names.items():
        before, rename = ast.dump(ast.parse(text)), _Rename(old, new)
        wanted = rename.visit(ast.parse(text))
        if ast.dump(wanted) != before:
            in_place = _exchanged(text, old, new, rename.places)
            text = in_place if _says(in_place, wanted) else ast.unparse(wanted)
    return text


def _says(text: str, wanted: ast.Module) -> bool:
    try:
        return ast.dump(ast.parse(text)) == ast.dump(wanted)
    except SyntaxError:
        return False


class _Rename(ast.NodeTransformer):
    """Renames a name of the notebook, except where it is an argument of the same name.

    places: line and byte of each changed word, before Python 3.12 without those inside an f-string.
    """

    def __init__(self, old: str, new: str) -> None:
        self._old, self._new = old, new
        self.places: set[tuple[int, int]] = set()

    def visit_Name(self, node: ast.Name) -> ast.Name:
        if node.id == self._old:
            node.id = self._new
            self.places.add((node.lineno, node.col_offset))
        return node

    def visit_alias(self, node: ast.alias) -> ast.alias:
        if (node.asname or node.name) == self._old:
            node.asname = self._new
        return node

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> ast.AST:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == self._old and node.col_offset == 0:
            node.name = self._new
        arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        arguments += [each for each in (node.args.vararg, node.args.kwarg) if each is not None]
        if all(each.arg != self._old for each in arguments):
            self.generic_visit(node)
        return node

    visit_FunctionDef = visit_AsyncFunctionDef = visit_Lambda = _function

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.ClassDef:
        if node.name == self._old and node.col_offset == 0:
            node.name = self._new
        self.generic_visit(node)
        return node

    def _declared(self, node: ast.Global | ast.Nonlocal) -> ast.Global | ast.Nonlocal:
        node.names = [self._new if name == self._old else name for name in node.names]
        return node

    visit_Global = visit_Nonlocal = _declared

    def _bound(self, node: ast.ExceptHandler | ast.MatchAs | ast.MatchStar) -> ast.AST:
        """`except Error as old`, `case old`, `case [*old]`"""
        if node.name == self._old:
            node.name = self._new
        self.generic_visit(node)
        return node

    visit_ExceptHandler = visit_MatchAs = visit_MatchStar = _bound

    def visit_MatchMapping(self, node: ast.MatchMapping) -> ast.MatchMapping:
        if node.rest == self._old:
            node.rest = self._new
        self.generic_visit(node)
        return node


def _exchanged(text: str, old: str, new: str, places: set[tuple[int, int]]) -> str:
    """The text with one word replaced at these places and where a statement defines it; nothing else changes."""
    lines = text.splitlines(keepends=True)
    tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    for before, token in reversed(list(pairwise(tokens))):
        if token.string != old:
            continue
        row, column = token.start
        line = lines[row - 1]
        defined = before.string in ("def", "class") and not before.line[0].isspace()
        if defined or (row, len(line[:column].encode())) in places:
            lines[row - 1] = line[:column] + new + line[column + len(old) :]
    return "".join(lines)


def _laid_out(
    answers: Sequence[Gathered], of: int, imports: dict[str, ast.stmt], chapters: dict[str, list[str]]
) -> str:
    contents = [
        f"  {answer.exercise.number}  {', '.join(answer.exercise.names)}" + (NOT_YOURS if answer.instead_of else "")
        for answer in answers
    ]
    foreign = [name for answer in answers if answer.instead_of for name in answer.exercise.names]
    own = sum(not answer.instead_of for answer in answers)
    parts = [
        '"""' + HEAD,
        "",
        f"{WRITTEN} from the cells that passed: {own} of {of} exercises.",
        "Change the notebooks and run it again, rather than this file: it is written anew each time, and never graded.",
        "Use a part in Python with `from my_transformer import ...`; the notebooks use it where USE_MINE is True.",
        "",
        *contents,
        '"""',
    ]
    blocks = ["\n".join(parts), *_import_blocks(imports)]
    if foreign:
        blocks.append(f"{mine.NOT_MINE} = {json.dumps(foreign)}  # the course's answers, which `--fill` asked for")
    text, headings = "\n\n".join(blocks), set(map(_heading, answers))
    for chapter, body in chapters.items():
        text += f"\n\n\n# {'-' * 20} {chapter.replace('_', ' ', 1)} {'-' * 20}"
        for each in body:
            text += ("\n\n\n" if each in headings else "\n") + each
    return text + "\n"


def _import_blocks(imports: dict[str, ast.stmt]) -> Iterator[str]:
    """The imports: the standard library, libraries, the course's package; each once, names of one module on one
    line."""
    groups: dict[int, list[str]] = {}
    together: dict[tuple[int, str], list[str]] = {}
    for text, node in imports.items():
        if isinstance(node, ast.ImportFrom) and node.names[0].name != "*":
            together.setdefault((_rank(node), text.split(" import ")[0]), []).append(text.split(" import ")[1])
        else:
            groups.setdefault(_rank(node), []).append(text)
    for rank in sorted({*groups, *(rank for rank, _ in together)}):
        lines = sorted(groups.get(rank, []))
        lines += sorted(
            f"{module} import {', '.join(sorted(names))}" for (of, module), names in together.items() if of == rank
        )
        yield "\n".join(lines)


def _rank(node: ast.stmt) -> int:
    module = (node.module or "") if isinstance(node, ast.ImportFrom) else node.names[0].name
    root = module.partition(".")[0]
    if root == "__future__":
        return 0
    return 3 if root in ("transformer_ref", "autograder") else 1 if root in sys.stdlib_module_names else 2
