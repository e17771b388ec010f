"""What an answer in a notebook needs to stand alone: its own definitions, those it uses, and their imports."""

import argparse
import ast
import re
import symtable
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from autograder import catalogue, course
from autograder.catalogue.exercise import Assignment, Exercise
from autograder.course import CHECK_SUFFIX
from autograder.ipython_syntax import TooMuchToRead, without_magics
from transformer_ref.learner import mine

LEFT_OUT = ("solutions", "classroom", "build", "site-packages")  # folders that hold nobody's own notebooks
MARKS = re.compile(
    r"^[ \t]*### (?:BEGIN|END) SOLUTION[ \t]*\n?|^[ \t]*# TODO: write your answer here.*\n?", re.MULTILINE
)
LINE_END = re.compile(r"\r\n?|\n")  # those that count for Python: splitlines knows others too
USUAL_IMPORTS = "import math\n\nimport torch\nimport torch.nn.functional as F\nfrom torch import nn"
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


@dataclass(frozen=True)
class Statement:
    """A statement at the outermost level of a cell, with the comments above it.

    cell: the cell's grade id, or "". binds, needs: names that it defines and uses; star: it defines unknown names.
    """

    text: str
    cell: str
    node: ast.stmt = field(compare=False, repr=False)
    binds: frozenset[str]
    needs: frozenset[str]

    @property
    def imports(self) -> bool:
        return isinstance(self.node, ast.Import | ast.ImportFrom)

    @property
    def defines(self) -> bool:
        return isinstance(self.node, SCOPES)


@dataclass(frozen=True)
class Gathered:
    """An exercise's answer with all statements that it depends on, in the order of the notebook.

    uses: the exercises of the same notebook whose answers it calls. given: names that it takes from the package.
    instead_of: if this is the course's answer, the reason why the learner's is missing; else "".
    """

    exercise: Exercise
    chapter: str
    statements: tuple[Statement, ...]
    uses: frozenset[str]
    given: frozenset[str]
    instead_of: str = ""


class Unreadable(Exception):
    """An answer that cannot be gathered; the text says why."""


def add_folder(parser: argparse.ArgumentParser) -> None:
    """Add the argument that names the folder of a learner's notebooks."""
    parser.add_argument(
        "--from",
        dest="folder",
        type=Path,
        metavar="FOLDER",
        help="your notebooks (default: exercises/ where there is one, else this folder)",
    )


def own_notebooks(named: Path | None) -> tuple[Path, dict[str, list[Path]]]:
    """The folder of a learner's notebooks, and those of the course in it. Raises CourseError if there are none."""
    folder = named or (Path("exercises") if Path("exercises").is_dir() else Path())
    found = notebooks(folder, catalogue.ASSIGNMENTS) if folder.is_dir() else {}
    if not found:
        raise course.CourseError(
            f"There is no notebook of this course in {folder.resolve()}. `--from FOLDER` names the folder of yours."
        )
    return folder, found


def notebooks(folder: Path, assignments: Sequence[Assignment]) -> dict[str, list[Path]]:
    """Assignment id -> its notebooks below a folder, the best match first: those with the right name, then the
    newest."""
    by_exercise = {name: assignment for assignment in assignments for name in assignment.exercise_ids}
    found: dict[str, list[Path]] = {}
    for path in sorted(folder.rglob("*.ipynb")):
        below = path.relative_to(folder).parts[:-1]
        if any(part.startswith(".") or part in LEFT_OUT for part in below):
            continue
        try:
            names = [name for name, _, _ in course.code_cells(course.read_notebook(path))]
        except (course.CourseError, AttributeError, TypeError):
            continue
        for name in {by_exercise[name].id for name in names if name in by_exercise}:
            found.setdefault(name, []).append(path)
    named = {assignment.id: assignment.notebook for assignment in assignments}
    for name, paths in found.items():
        paths.sort(key=lambda path: (path.stem != named[name], path.parent.name != name, -path.stat().st_mtime))
    return found


def answer_of(cells: Sequence[tuple[str, str, bool]], assignment: Assignment, exercise: Exercise) -> Gathered:
    """The exercise's answer with its dependencies, from a notebook's code cells (see `course.code_cells`).

    Raises Unreadable when the notebook has no such cell, or its text is not Python.
    """
    source = next((source for name, source, _ in cells if name == exercise.id), None)
    if source is None:
        raise Unreadable("its cell is not in the notebook")
    statements = list(_statements(exercise.id, source, strict=True))
    before = []
    for name, other, _ in cells:
        if name == exercise.id + CHECK_SUFFIX:
            break
        if name != exercise.id and not name.endswith(CHECK_SUFFIX):
            before += _statements(name, other, strict=False)
    kept = _needed([*before, *statements], exercise)
    own = {name: other.id for other in assignment.exercises for name in other.names if other is not exercise}
    uses = frozenset(own[name] for each in kept for name in each.binds if own.get(name) == each.cell)
    given = frozenset(name for each in kept for name in each.binds if _is_given(each))
    return Gathered(exercise, assignment.id, tuple(kept), uses, given)


def of_course(
    cells: Sequence[tuple[str, str, bool]], assignment: Assignment, exercise: Exercise, reason: str
) -> Gathered:
    """The course's answer instead of the learner's, with its dependencies from the notebook; `reason`: why."""
    answer = (exercise.id, str(exercise.correct[0].source), False)
    around = [cell for cell in cells if cell[0] != exercise.id]
    place = next((index for index, cell in enumerate(cells) if cell[0] == exercise.id), len(around))
    taken = [("", USUAL_IMPORTS, False), *around[:place], answer, *around[place:]]
    return replace(answer_of(taken, assignment, exercise), instead_of=reason)


def _needed(statements: Sequence[Statement], exercise: Exercise) -> list[Statement]:
    """The statements on which the exercise's names depend, in their order."""
    wanted, seen, kept = list(exercise.names), set(), set()
    while wanted:
        name = wanted.pop()
        if name in seen:
            continue
        seen.add(name)
        places = [place for place, statement in enumerate(statements) if name in statement.binds]
        if places and (statements[places[-1]].defines or statements[places[-1]].imports):
            last = places[-1]  # it replaces what was called so before; what changes it afterward is kept
            places = [place for place in places if place == last]
        for place in places:
            kept.add(place)
            wanted += statements[place].needs
        for place, statement in enumerate(statements):
            if "*" in statement.binds or name in _changed(statement.node):
                kept.add(place)
                wanted += statement.needs
    return [statements[place] for place in sorted(kept)]


def _changed(node: ast.stmt) -> set[str]:
    """Names of objects that a statement modifies, as in `SelfAttention.forward = forward`."""
    targets = node.targets if isinstance(node, ast.Assign) else []
    roots = set()
    for target in targets:
        while isinstance(target, ast.Attribute | ast.Subscript):
            target = target.value
            if isinstance(target, ast.Name):
                roots.add(target.id)
    return roots


def _is_given(statement: Statement) -> bool:
    return isinstance(statement.node, ast.ImportFrom) and (statement.node.module or "").startswith("transformer_ref")


def _from_package(statement: Statement) -> Statement:
    """The import of the package's own function for `softmax = part("softmax", USE_MINE)`; anything else unchanged."""
    match statement.node:
        case ast.Assign(
            targets=[ast.Name(id=name)],
            value=ast.Call(func=ast.Name(id="part"), args=[ast.Constant(value=str(asked)), *_]),
        ) if asked in mine.GIVEN:
            module, _, attribute = mine.GIVEN[asked].rpartition(".")
            text = f"from {module} import {attribute}" + (f" as {name}" if name != attribute else "")
            return Statement(text, statement.cell, ast.parse(text).body[0], frozenset([name]), frozenset())
    return statement


def _statements(cell: str, source: str, strict: bool) -> list[Statement]:
    """The top-level statements of a cell. strict: text that is not Python raises Unreadable, else it is skipped."""
    try:
        return list(_read(cell, MARKS.sub("", without_magics(source))))
    except (SyntaxError, ValueError) as error:
        line = f", line {error.lineno} of the cell" if getattr(error, "lineno", None) else ""
        reason = f"its cell is not valid Python yet: {getattr(error, 'msg', error)}{line}"
    except TooMuchToRead:
        reason = "its cell has too many magics to be read"
    except (RecursionError, MemoryError):
        reason = "its cell is nested too deeply to be read"
    if strict:
        raise Unreadable(reason)
    return []


def _read(cell: str, text: str) -> Iterator[Statement]:
    """The same, of the cell's text as plain Python."""
    body = ast.parse(text).body
    lines, end = LINE_END.split(text), 0
    for node in body:
        first = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", []))]) - 1
        shared = first < end
        while first > end and lines[first - 1].startswith("#"):
            first -= 1
        last, column = node.end_lineno or node.lineno, node.end_col_offset or 0  # a parsed node has both
        rest = lines[last - 1].encode()[column:].strip()
        alone = not shared and (not rest or rest.startswith(b"#"))
        segment = "\n".join(lines[first:last]) if alone else ast.unparse(node)
        end = last
        for part in _split(node):
            written = segment if part is node else ast.unparse(part)
            yield _from_package(Statement(written, cell, part, _binds(part), _needs(part)))


def _split(node: ast.stmt) -> list[ast.stmt]:
    """Split an import of several names into several imports, so that only the necessary ones are kept."""
    if isinstance(node, ast.Import):
        return [ast.Import([alias]) for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        return [ast.ImportFrom(node.module, [alias], node.level) for alias in node.names]
    return [node]


def _binds(node: ast.stmt) -> frozenset[str]:
    """The names that a statement defines in the notebook."""
    if isinstance(node, SCOPES):
        return frozenset([node.name])
    if isinstance(node, ast.Import | ast.ImportFrom):
        return frozenset(alias.asname or alias.name.partition(".")[0] for alias in node.names)
    return frozenset(_stored(node))


def _stored(node: ast.AST) -> Iterator[str]:
    """The names that a node binds outside of functions and classes."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, SCOPES):
            yield child.name
        elif isinstance(child, ast.Import | ast.ImportFrom):
            yield from (alias.asname or alias.name.partition(".")[0] for alias in child.names)
        elif not isinstance(child, ast.Lambda | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
            if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Store):
                yield child.id
            yield from _stored(child)


def _needs(node: ast.stmt) -> frozenset[str]:
    """The names that a statement uses from outside; names local to a function are not among them."""
    tables, found = [symtable.symtable(ast.unparse(node), "cell", "exec")], set()
    while tables:
        table = tables.pop()
        outermost = table.get_type() == "module"
        found |= {
            symbol.get_name()
            for symbol in table.get_symbols()
            if symbol.is_referenced() and (outermost or symbol.is_global())
        }
        tables += table.get_children()
    return frozenset(found)
