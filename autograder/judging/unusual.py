"""Names in a submission's code that no exercise needs, for a person to look at: with such tools a program can hide from
what watches it. They decide nothing, and honest code may have them."""

import ast
import re
from collections.abc import Iterable

TOOLS = frozenset(
    "CodeType FunctionType Popen TorchDispatchMode TorchFunctionMode __closure__ __code__ __globals__ __subclasses__ "
    "__wrapped__ _dispatch_library _getframe cffi ctypes custom_op fork forkpty get_objects get_referents "
    "get_referrers marshal multiprocessing onnxruntime posix_spawn setprofile settrace socket socketpair "
    "subprocess".split()
)
WORD = re.compile(r"[A-Za-z_]\w*")
MOST = 300_000  # letters of one notebook; the rest is a finding already (see `forbidden`)


def unusual(cells: Iterable[str]) -> list[str]:
    """The names of such tools in the code cells, sorted."""
    found: set[str] = set()
    left = MOST
    for cell in cells:
        left -= len(cell)
        if left < 0:
            break
        if any(tool in cell for tool in TOOLS):  # reading takes a thousand times as long
            found |= _named(cell) & TOOLS
    return sorted(found)


def _named(source: str) -> set[str]:
    """All names that a cell uses: of variables, attributes and modules, and texts that are one word.

    Of a cell that is not Python, as one with magics, all words outside of comments: IPython would read it again for
    each of its magics, and a student decides how many there are.
    """
    try:
        return {name for node in ast.walk(ast.parse(source)) for name in _of(node)}
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {word for line in source.splitlines() for word in WORD.findall(line.partition("#")[0])}


def _of(node: ast.AST) -> Iterable[str]:
    if isinstance(node, ast.Name):
        return [node.id]
    if isinstance(node, ast.Attribute):
        return [node.attr]
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        modules = [alias.name for alias in node.names] + [getattr(node, "module", None) or ""]
        return [part for module in modules for part in module.split(".")]
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier():
        return [node.value]  # as in getattr(os, "fork")
    return []


def in_words(names: list[str]) -> str:
    """What a teacher reads about these names."""
    which = " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
    return f"The code names {which}, which no exercise needs: look whether the answers are what they seem."
