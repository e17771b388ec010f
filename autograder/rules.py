"""What a submission may not call, found by reading its source. Nothing of the learner's is run here.

Only code that the exercise's objects can reach counts: a learner may compare with the library in a cell of their own.
"""

import ast
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from autograder.constants import UNKNOWN, text_of, value_of
from autograder.exercise import Assignment, Exercise

OWN_PACKAGES = ("transformer_ref", "autograder")
ALWAYS_VISIBLE = ("autograder.check",)
RUNNERS = ("eval", "exec", "compile")


def findings(cells: Sequence[str], exercise: Exercise, assignment: Assignment | None) -> list[str]:
    """Sentences naming each forbidden shortcut in the code that the exercise's objects reach; empty when there is none.

    cells: sources of the notebook's code cells, in order. A cell that is not Python is passed over.
    """
    statements = [statement for cell in cells for statement in _parse(cell)]
    texts = _constants(statements)
    reached = _reachable(statements, exercise.names, texts)
    found = [
        f"{name} does the whole exercise by itself, so it is not allowed here and this exercise earns no points. "
        "Write the steps yourself; comparing with it in a cell of your own is welcome."
        for name in exercise.forbidden
        if _uses(name, statements, reached, texts)
    ]
    allowed = (*ALWAYS_VISIBLE, *(assignment.visible_modules if assignment else ()))
    modules = dict.fromkeys(module for statement in reached for module in _own_modules(statement, texts, allowed))
    found += [
        f"{module} is a part of the course that an answer may not use, so this exercise earns no points. "
        "What this notebook may import is in its first code cell."
        for module in modules
        if not any(f"{module}.".startswith(f"{name}.") for name in allowed)
    ]
    return found


@lru_cache(maxsize=256)
def _nodes(node: ast.AST) -> tuple[ast.AST, ...]:
    """A node with everything below it. Kept, since every exercise of a notebook asks about the same statements."""
    return tuple(ast.walk(node))


@lru_cache(maxsize=64)
def _parse(cell: str) -> list[ast.stmt]:
    """The cell's statements; lines for IPython itself (magics, shell) are left out. Nothing when it is not Python."""
    lines = [line if not line.lstrip().startswith(("%", "!", "?")) else "" for line in cell.splitlines()]
    try:
        return ast.parse("\n".join(lines)).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []


def _reachable(statements: Sequence[ast.stmt], names: Sequence[str], texts: Mapping[str, Any]) -> list[ast.stmt]:
    """The top-level statements that the names depend on, with the programs that `exec` and `eval` are given as text."""
    definitions = [(statement, _defined(statement, texts)) for statement in statements]
    wanted, seen, reached = list(names) + ["*"], set(), []
    while wanted:
        name = wanted.pop()
        if name in seen:
            continue
        seen.add(name)
        for statement, defined in definitions:
            if name in defined and statement not in reached:
                reached.append(statement)
                for part in (statement, *_programs(statement, texts)):
                    reached += [part] if part is not statement else []
                    wanted += [node.id for node in _nodes(part) if isinstance(node, ast.Name)]
    return reached


def _defined(statement: ast.stmt, texts: Mapping[str, Any]) -> set[str]:
    """The names that a statement binds, patches or writes into a namespace."""
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return {statement.name}
    names = {name for part in _programs(statement, texts) for name in _defined(part, texts)}
    for node in _nodes(statement):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, ast.alias):
            names.add((node.asname or node.name).split(".")[0])
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, (ast.Attribute, ast.Subscript)) and isinstance(node.ctx, ast.Store):
            names |= {inner.id for inner in _nodes(node.value) if isinstance(inner, ast.Name)}
            written = text_of(node.slice, texts) if isinstance(node, ast.Subscript) else None
            names |= {written} if written else set()
        elif isinstance(node, ast.Call) and _called(node) in ("setattr", "update", "__setitem__"):
            names |= {inner.id for inner in _nodes(node) if isinstance(inner, ast.Name)}
            names |= {
                inner.value
                for inner in _nodes(node)
                if isinstance(inner, ast.Constant) and isinstance(inner.value, str)
            }
    return names


def _programs(statement: ast.stmt, texts: Mapping[str, Any]) -> Iterator[ast.stmt]:
    """Statements inside texts that are run as code."""
    for node in _nodes(statement):
        if isinstance(node, ast.Call) and _called(node) in RUNNERS and node.args:
            yield from _parse(text_of(node.args[0], texts) or "")


def _constants(statements: Sequence[ast.stmt]) -> dict[str, Any]:
    """Names that are bound to a plain value, texts above all."""
    found: dict[str, Any] = {}
    for statement in statements:
        for node in _nodes(statement):
            if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
                value = value_of(node.value, found)
                if value is not UNKNOWN:
                    found[node.targets[0].id] = value
    return found


def _uses(name: str, statements: Sequence[ast.stmt], reached: Sequence[ast.stmt], texts: Mapping[str, Any]) -> bool:
    """Whether the reached code uses the library's `name`; a function or method of that name may be the learner's."""
    bound = [name in _bound(statement) for statement in statements]
    owners = _owners(statements, name)
    for statement in reached:
        before = bound[: statements.index(statement)] if statement in statements else bound
        late = any(bound) and not any(before)  # what runs at once here cannot mean the learner's own yet
        if late and any(_loads(node, name) for node in _run_at_once(statement)):
            return True
        own = _own_attributes(statement, name, owners)
        if any(_mentions(node, name, any(bound), texts) for node in _nodes(statement) if node not in own):
            return True
    return False


def _mentions(node: ast.AST, name: str, is_own: bool, texts: Mapping[str, Any]) -> bool:
    if isinstance(node, ast.Attribute) and node.attr == name:
        return True
    if isinstance(node, ast.alias) and node.name.split(".")[-1] == name:
        return True
    if _loads(node, name) and not is_own:
        return True
    return any(text.split(".")[-1] == name for text in _looked_up(node, texts))


def _loads(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)


@lru_cache(maxsize=256)
def _bound(statement: ast.stmt) -> set[str]:
    """The names that a statement gives a meaning of the learner's own: by def, class or assignment."""
    nodes = list(_nodes(statement))
    names = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    return names | {node.name for node in nodes if isinstance(node, (ast.FunctionDef, ast.ClassDef))}


def _run_at_once(node: ast.AST) -> Iterator[ast.AST]:
    """The parts of a statement that run where it stands, which the body of a function does not."""
    yield node
    skipped = node.body if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)) else []
    for child in ast.iter_child_nodes(node):
        if child is not skipped and not (isinstance(skipped, list) and child in skipped):
            yield from _run_at_once(child)


def _owners(statements: Sequence[ast.stmt], name: str) -> set[str]:
    """The learner's classes that hold an attribute of that name, of their own or from a class before them."""
    owners: set[str] = set()
    for node in (node for statement in statements for node in _nodes(statement) if isinstance(node, ast.ClassDef)):
        inner = [part for part in _nodes(node) if part is not node]
        defined = any(isinstance(part, ast.FunctionDef) and part.name == name for part in inner)
        stored = any(
            getattr(part, "attr", getattr(part, "id", "")) == name and isinstance(part.ctx, ast.Store)
            for part in inner
            if isinstance(part, (ast.Name, ast.Attribute))
        )
        if defined or stored or any(isinstance(base, ast.Name) and base.id in owners for base in node.bases):
            owners.add(node.name)
    return owners


def _own_attributes(statement: ast.stmt, name: str, owners: set[str]) -> set[ast.AST]:
    """Where that attribute is the learner's: `self.name` inside an owner, `Owner.name`, `Owner(...).name`."""
    inside = {
        node
        for owner in _nodes(statement)
        if isinstance(owner, ast.ClassDef) and owner.name in owners
        for node in _nodes(owner)
    }
    own: set[ast.AST] = set()
    for node in _nodes(statement):
        if isinstance(node, ast.Attribute) and node.attr == name:
            base = node.value.func if isinstance(node.value, ast.Call) else node.value
            if isinstance(base, ast.Name) and (
                base.id in owners or (base.id == "self" and base is node.value and node in inside)
            ):
                own.add(node)
    return own


def _own_modules(statement: ast.stmt, texts: Mapping[str, Any], allowed: Sequence[str]) -> Iterator[str]:
    """Every module of ours that the statement imports or reaches into."""
    for node in _nodes(statement):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Attribute):
            # A dotted name on the way to an allowed module is no use of what lies beside it.
            names = [name for name in (_dotted(node),) if not any(module.startswith(f"{name}.") for module in allowed)]
        else:
            names = list(_looked_up(node, texts))
        yield from (name for name in names if name.split(".")[0] in OWN_PACKAGES)


def _looked_up(node: ast.AST, texts: Mapping[str, Any]) -> Iterator[str]:
    """Constant texts by which something is fetched: getattr(F, "name"), vars(F)["name"], import_module("name")."""
    if isinstance(node, ast.Subscript):
        candidates = [node.slice]
    elif isinstance(node, ast.Call) and _called(node) not in ("print", "warn", "ValueError", "TypeError"):
        candidates = [*node.args, *(keyword.value for keyword in node.keywords)]
    else:
        return
    yield from (text for text in (text_of(candidate, texts) for candidate in candidates) if text)


def _called(node: ast.Call) -> str:
    return (
        node.func.id
        if isinstance(node.func, ast.Name)
        else node.func.attr
        if isinstance(node.func, ast.Attribute)
        else ""
    )


def _dotted(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""
