"""What a submission may import of our own packages: a folder that holds those modules and, for the rest, a reason."""

import ast
import json
import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from autograder.catalogue.exercise import Assignment
from autograder.sandbox import recorded_corpus

PACKAGES = ("transformer_ref", "autograder", "own")
HERE = Path(__file__).resolve().parents[2]
CORPORA = "transformer_ref.data.grammar.corpora"  # replaced: the grammar translates every sentence of a hidden check
LEARNERS_SIDE = (
    "autograder.check",
    # These two do nothing under grading, and this one gives only what an assignment may import.
    "autograder.transplant",
    "transformer_ref.visualization.explore",
    "transformer_ref.learner.mine",
    *(f"autograder.inside.{path.stem}" for path in (HERE / "autograder" / "inside").glob("*.py")),
)


def modules(assignment: Assignment | None) -> set[str]:
    """Names of the modules that can be imported while the assignment is graded: the listed ones and their imports."""
    wanted, found = [*LEARNERS_SIDE, *(assignment.visible_modules if assignment else ())], set()
    while wanted:
        name = wanted.pop()
        if name not in found and (path := _source(name)) is not None:
            found.add(name)
            wanted += [name.rpartition(".")[0], *_imported(Path(recorded_corpus.__file__) if name == CORPORA else path)]
    return found


def build(folder: Path, assignment: Assignment | None) -> None:
    """Write the packages that the assignment's submissions may see."""
    visible = modules(assignment)
    for package in PACKAGES:
        for path in sorted((HERE / package).rglob("*.py")):
            relative = path.relative_to(HERE)
            name = ".".join(relative.with_suffix("").parts).removesuffix(".__init__")
            (folder / relative).parent.mkdir(parents=True, exist_ok=True)
            if name == CORPORA and name in visible:
                shutil.copyfile(recorded_corpus.__file__, folder / relative)
                (folder / relative).with_name(recorded_corpus.CORPUS).write_text(_corpus(), encoding="utf-8")
            elif name in visible:
                shutil.copyfile(path, folder / relative)
            else:
                (folder / relative).write_text(_stub(name, assignment), encoding="utf-8")
    for path in folder.rglob("*"):  # whatever the mask of this process, the one inside must read them
        path.chmod(0o755 if path.is_dir() else 0o644)


@cache
def _corpus() -> str:
    """The built-in corpus as JSON."""
    from transformer_ref.data.grammar.corpora import build_corpus  # its first use takes seconds

    return json.dumps(build_corpus(), ensure_ascii=False)


def _stub(name: str, assignment: Assignment | None) -> str:
    graded = f"{assignment.id} is" if assignment else "a notebook is"
    reason = f"{name} cannot be imported while {graded} graded: it could hold an answer."
    advice = "Its set-up cells show what it may import."
    return f"raise ImportError({f'{reason} {advice}'!r}, name={name!r})\n"


def _source(name: str) -> Path | None:
    """The file of one of our modules; None for anything else."""
    if name.partition(".")[0] not in PACKAGES:
        return None
    path = HERE.joinpath(*name.split("."))
    return next((file for file in (path.with_suffix(".py"), path / "__init__.py") if file.is_file()), None)


def _imported(path: Path) -> Iterator[str]:
    """The modules that a file imports at its top level."""
    for node in _at_import(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _at_import(node: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield child
            yield from _at_import(child)
