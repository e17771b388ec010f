"""What a submission may not do, in words, and the part of it that is found by reading: imports of the course's answers.

Calls of forbidden functions are seen when they happen (see `recorder`); source is read only for what the recorder
cannot know. Nothing of the learner's is run here. Only code that the exercise's objects reach counts, so whatever a
learner compares with in a cell of their own is free.
"""

import ast
import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from autograder.catalogue.exercise import Assignment, Exercise
from autograder.ipython_syntax import Budget, TooMuchToRead, as_python
from transformer_ref.learner.mine import GIVEN

OWN_PACKAGES = ("transformer_ref", "autograder")
ALWAYS_VISIBLE = ("autograder.check", "transformer_ref.learner.mine")  # the second gives what the assignment may import
PART = "part"  # of that module: part("softmax") is the course's own softmax, unless the learner's is there
INSIDE = "autograder.inside"  # what watches and counts where an answer runs
# What takes a call out of the recorder's sight. No notebook has a use for it, wherever in it.
SWITCHES = (
    "DisableTorchFunction",
    "_DisableTorchDispatch",
    "_disable_current_modes",
    "no_dispatch",
    "_pop_mode_temporarily",
    "_pop_mode",
    "_pop_torch_function_stack",
    "_pop_torch_dispatch_stack",
    "_ExcludeDispatchKeyGuard",
    "ExcludeDispatchKeyGuard",
    "_SetExcludeDispatchKeyGuard",
    "_ForceDispatchKeyGuard",
    "_dispatch_tls_set_dispatch_key_excluded",
    "_dispatch_tls_set_dispatch_key_included",
    "redispatch",
)
RUNNERS = ("eval", "exec", "compile", "run_line_magic", "run_cell_magic")
WRITERS = ("setattr", "update", "__setitem__")
MODULE = re.compile(rf"(?:{'|'.join(OWN_PACKAGES)})(?:\.\w+)*")

# The budget of one notebook. A chapter's solution has 10,000 letters and 3,000 nodes.
MOST_LETTERS = 300_000
MOST_NODES = 100_000
MOST_TRANSFORMED = 100_000  # letters; IPython reads a cell anew for each of its magics
UNREAD = (
    "One of your cells is too long to be read: together the notebook's code may have 300,000 characters. What is not "
    "read could hold anything, so this exercise earns no points. Take out what is not needed, such as pasted data, "
    "hundreds of magics in one cell, or thousands of operators in one expression."
)
UNSEEN = (
    "This notebook registers an operator of its own with torch (torch.library). What runs inside it cannot be seen, so "
    "it is not allowed here and this exercise earns no points. Write the function in plain Python."
)

SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def called(exercise: Exercise, names: Collection[str]) -> list[str]:
    """Sentences about the forbidden functions of these names, which an answer to the exercise has called."""
    if names and not {*names} & {*exercise.forbidden}:
        return [UNSEEN]
    return [
        f"{name} does the whole exercise by itself, so it is not allowed here and this exercise earns no points. "
        "Write the steps yourself; you are welcome to compare with it in your own cell."
        for name in exercise.forbidden
        if name in names
    ]


def findings(cells: Sequence[str], exercise: Exercise, assignment: Assignment | None) -> list[str]:
    """Sentences about forbidden mentions in the code that the exercise's objects depend on; empty if there are none.

    cells: sources of the notebook's code cells, in order. A cell that is not Python would not run, so it is skipped.
    Code beyond the budget, or too deeply nested to be read here, is a finding itself.
    """
    allowed = (*ALWAYS_VISIBLE, *(assignment.visible_modules if assignment else ()))
    statements, is_whole = _read(tuple(cells))
    reached = list(_reached(statements, exercise.names))
    if exercise.forbidden or exercise.harness:  # to patch what watches, an answer need not reach the cell that does it
        known = set(map(id, reached))
        reached += [statement for statement in statements if id(statement) not in known and _meddles(statement)]
    mentioned = dict.fromkeys(name for statement in reached for name in statement.mentions)
    modules = [name for name in mentioned if name not in SWITCHES and not _within(name, allowed)]
    for name in dict.fromkeys(name for statement in reached for name in statement.dotted):
        if not _within(name, allowed) and not any(module.startswith(f"{name}.") for module in allowed):
            modules.append(name)  # else it is allowed, or a step of a dotted name on the way to what is
    found = [] if is_whole else [UNREAD]
    found += [
        f"{name} switches off what sees which functions an answer calls, so this exercise earns no points."
        for name in mentioned
        if name in SWITCHES and (exercise.forbidden or exercise.harness)
    ]
    return found + [
        f"{name} is a part of the course that an answer may not use, so this exercise earns no points. "
        "What this notebook may import is in its set-up cells."
        for name in dict.fromkeys(modules)
    ]


def _meddles(statement: "_Statement") -> bool:
    """Whether it mentions names that switch the recorder off, or modules that watch an answer."""
    return any(name in SWITCHES or _within(name, (INSIDE,)) for name in (*statement.mentions, *statement.dotted))


def _within(name: str, modules: Sequence[str]) -> bool:
    """Whether it is one of the modules or something in one."""
    return any(f"{name}.".startswith(f"{module}.") for module in modules)


@dataclass
class _Statement:
    """A statement of a cell: the names that it binds, the names that it needs, and its mentions.

    mentions: switches, and our modules that are imported or named in a string; dotted: attributes of our modules.
    """

    binds: set[str] = field(default_factory=set)
    needs: set[str] = field(default_factory=set)
    mentions: list[str] = field(default_factory=list)
    dotted: list[str] = field(default_factory=list)


def _reached(statements: Sequence[_Statement], names: Sequence[str]) -> Iterator[_Statement]:
    """The statements that the names depend on, each once."""
    by_name = defaultdict(list)
    for number, statement in enumerate(statements):
        for name in statement.binds:
            by_name[name].append(number)
    wanted, seen = [*names, "*"], set()
    while wanted:
        for number in by_name.pop(wanted.pop(), ()):
            if number not in seen:
                seen.add(number)
                yield statements[number]
                wanted += statements[number].needs


@lru_cache(maxsize=4)
def _read(cells: tuple[str, ...]) -> tuple[list[_Statement], bool]:
    """The statements of a notebook up to the budget, and whether that is all of them.

    Cached, since every exercise needs them.
    """
    read, letters, nodes, is_whole = [], 0, 0, True
    budget = Budget(MOST_TRANSFORMED)
    for cell in cells:
        if letters + len(cell) > MOST_LETTERS:
            is_whole = False
            continue
        letters += len(cell)
        try:
            body = _parse(cell)
            for node in _parse(as_python(cell, budget)) or () if body is None else body:
                statement, size = _statement(node)
                nodes += size
                if nodes > MOST_NODES:
                    return read, False
                read.append(statement)
        except (RecursionError, TooMuchToRead):
            is_whole = False
    return read, is_whole


def _parse(source: str) -> list[ast.stmt] | None:
    """The source's statements; None when it is not Python.

    Raises RecursionError for nested code that would run after sys.setrecursionlimit.
    """
    try:
        return ast.parse(source).body
    except (SyntaxError, ValueError, MemoryError):
        return None


class _Scope:
    """A scope (function, class, comprehension or the whole statement): the names bound and loaded in it."""

    def __init__(self, above: "_Scope | None", is_class: bool = False) -> None:
        # A method does not see the names of its class.
        self.above = above.above if above is not None and above.is_class else above
        self.is_class = is_class
        self.bound: set[str] = set()
        self.loaded: set[str] = set()
        self.elsewhere: set[str] = set()  # declared global or nonlocal


def _statement(top: ast.stmt) -> tuple[_Statement, int]:
    """The names that a statement binds, needs and mentions, and the number of its nodes."""
    result, root = _Statement(), _Scope(None)
    scopes, waiting, size = [root], [(top, root)], 0
    while waiting:
        node, scope = waiting.pop()
        size += 1
        result.mentions += _mentions(node)
        if isinstance(node, ast.Attribute) and MODULE.fullmatch(name := _dotted(node)):
            result.dotted.append(name)
        _note_names(node, scope, result.binds)
        inner = scope
        if isinstance(node, SCOPES + COMPREHENSIONS):
            inner = _Scope(scope, isinstance(node, ast.ClassDef))
            scopes.append(inner)
        outside = _outside(node)
        waiting += [(child, scope if id(child) in outside else inner) for child in ast.iter_child_nodes(node)]
        if scope is root:
            result.binds |= _written(node)
        waiting += [(part, inner) for part in _program(node)]
    for scope in reversed(scopes[1:]):
        free = scope.loaded - (scope.bound - scope.elsewhere)
        result.binds |= scope.bound & scope.elsewhere
        scope.above.loaded |= free
    result.binds |= root.bound
    result.needs |= root.loaded
    return result, size


def _outside(node: ast.AST) -> set[int]:
    """The children of a definition that belong to the scope around it: decorators, bases, defaults, annotations."""
    if isinstance(node, ast.ClassDef):
        return {id(part) for part in (*node.decorator_list, *node.bases, *node.keywords)}
    return {id(part) for part in getattr(node, "decorator_list", ())}


def _note_names(node: ast.AST, scope: _Scope, written: set[str]) -> None:
    """Add the names that a node binds or loads to the scope that it is in."""
    if isinstance(node, ast.Name):
        (scope.loaded if isinstance(node.ctx, ast.Load) else scope.bound).add(node.id)
    elif isinstance(node, ast.arg):
        scope.bound.add(node.arg)
    elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        scope.bound.add(node.name)
    elif isinstance(node, ast.alias):
        scope.bound.add((node.asname or node.name).split(".")[0])
    elif isinstance(node, (ast.Global, ast.Nonlocal)):
        scope.elsewhere |= set(node.names)
    elif isinstance(node, (ast.MatchAs, ast.MatchStar, ast.ExceptHandler)) and node.name:
        scope.bound.add(node.name)
    elif isinstance(node, ast.MatchMapping) and node.rest:
        scope.bound.add(node.rest)
    elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store) and not isinstance(node.value, ast.Name):
        written |= _texts(node.slice)  # globals()["name"] = ...


def _written(node: ast.AST) -> set[str]:
    """The objects that a node outside of functions patches: `module.name = ...`, `setattr(module, "name", ...)`."""
    if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
        return {node.attr} | ({node.value.id} if isinstance(node.value, ast.Name) else set())
    if isinstance(node, ast.Call) and _name_of(node.func) in WRITERS:
        parts = [*node.args, *(keyword.value for keyword in node.keywords)]
        keys = [key for part in parts if isinstance(part, ast.Dict) for key in part.keys if key is not None]
        named = {keyword.arg for keyword in node.keywords if keyword.arg}
        return named.union(*map(_texts, [*parts, *keys]), {part.id for part in parts if isinstance(part, ast.Name)})
    return set()


def _texts(node: ast.AST) -> set[str]:
    return {node.value} if isinstance(node, ast.Constant) and isinstance(node.value, str) else set()


def _program(node: ast.AST) -> list[ast.stmt]:
    """Statements in a string that is run as code, by exec and similar functions or by a magic."""
    if not isinstance(node, ast.Call) or _name_of(node.func) not in RUNNERS:
        return []
    return [part for argument in node.args for text in _texts(argument) for part in _parse(text) or ()]


def _mentions(node: ast.AST) -> Iterator[str]:
    """The switches that a node names in any way, and our modules that it imports or has as a string."""
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
        names = [f"{node.module}.{alias.name}".removesuffix(".*") for alias in node.names]
    elif isinstance(node, (ast.Attribute, ast.Name)):
        names = [name for name in (_name_of(node),) if name in SWITCHES]
    elif isinstance(node, ast.Call) and _name_of(node.func) == PART:
        names = [GIVEN[name] for argument in node.args for name in _texts(argument) if name in GIVEN]
    else:
        names = list(_texts(node))
    for name in names:
        if MODULE.fullmatch(name):
            yield name
        elif name.split(".")[-1] in SWITCHES:
            yield name.split(".")[-1]


def _dotted(node: ast.Attribute) -> str:
    """The text `a.b.c` of an attribute that consists only of names; else nothing."""
    parts, inner = [node.attr], node.value
    while isinstance(inner, ast.Attribute) and len(parts) < 9:
        parts.append(inner.attr)
        inner = inner.value
    return ".".join([inner.id, *reversed(parts)]) if isinstance(inner, ast.Name) else ""


def _name_of(function: ast.AST) -> str:
    return getattr(function, "id", getattr(function, "attr", ""))
