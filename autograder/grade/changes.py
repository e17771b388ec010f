"""What a regrade changed, and why, as far as the log can tell."""

import ast
import functools
import hashlib
import json
import platform
from collections.abc import Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

import nbformat

import autograder
import transformer_ref
from autograder import catalogue
from autograder.catalogue import chapters, own
from autograder.policy import deadlines

GRADER, PACKAGE = Path(autograder.__file__).parent, Path(transformer_ref.__file__).parent
SPOKEN = ("torch", "Python")  # versions that people know by their number
DECIDING = (  # what of the grader decides points; the exercises are looked at apart
    *("inside/**/*.py", "sandbox/**/*.py", "intake/*.py", "catalogue/*.py", "judging/**/*.py"),
    *("grade/execute.py", "policy/points.py", "policy/late.py", "policy/arrival.py", "policy/times.py"),
)
NOT_DECIDING = ("benchmark", "visualization")  # folders of transformer_ref that no answer is compared with
MESSAGES = ("families.py", "quotes.py")  # files of the catalogue that no points depend on
EXPLAINING = (  # arguments of an entry that no points depend on
    *("mistakes", "correct", "hints", "section", "quotes"),
    *("difficulty", "minutes"),
)
SAME = 1e-9  # points; a sum of equal shares may differ in its last bit


class Change(NamedTuple):
    """One grade that has changed."""

    student: str
    cell: str
    before: float | None
    after: float | None
    why: str


def versions(assignment: str, released: Path) -> dict[str, str]:
    """Everything that a grade depends on in addition to the submission, each as a digest."""
    if assignment.startswith(own.PREFIX):
        entries = {"your own exercises": own.sources(assignment)}
    else:
        entry = catalogue.find_assignment(assignment)
        sources = chapters.sources(entry) if entry else []
        entries = {f"the catalogue (ch{assignment})": sources} if entry else {}
    return {
        **{what: _digest(*files) for what, files in entries.items()},
        "the released notebook": _digest_of_notebooks(sorted(released.rglob("*.ipynb"))),
        **installed(),
    }


def installed() -> dict[str, str]:
    """Everything that the grades of all assignments depend on."""
    return {
        "the grader": _digest(*deciding()),
        "transformer_ref": _digest(*sorted(_package())),
        "torch": metadata.version("torch"),
        "Python": platform.python_version(),
    }


def deciding() -> list[Path]:
    """The files of the grader that decide points, whatever the exercise."""
    return sorted(path for pattern in DECIDING for path in GRADER.glob(pattern) if path.name not in MESSAGES)


def _package() -> Iterator[Path]:
    for path in PACKAGE.rglob("*.py"):
        if path.relative_to(PACKAGE).parts[0] not in NOT_DECIDING:
            yield path


def rules_changed(then: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """The rules that decide about points and have changed since."""
    return [what for what in now if what not in SPOKEN and then.get(what) != now[what]]


def changed(
    student: str,
    before: Mapping[str, float | None],
    after: Mapping[str, float | None],
    last: Mapping[str, Any] | None,
    submission: str,
    now: Mapping[str, str],
) -> list[Change]:
    """Each grade of a student that a regrade changed.

    last: the student's last `graded` line of the log, with the versions of its run; None when there is none.
    submission, now: digest of what is graded, and versions, this time.
    """
    differing = [
        cell
        for cell, points in after.items()
        if (old := before.get(cell)) is not None and (points is None or abs(points - old) > SAME)
    ]
    why = _why(last, submission, now) if differing else ""
    return [Change(student, cell, before[cell], after[cell], why) for cell in differing]


def _why(last: Mapping[str, Any] | None, submission: str, now: Mapping[str, str]) -> str:
    if last is None:
        return "the earlier grade is in no log"
    if last["submission"] != submission:
        return "a new submission"
    then = last["versions"]
    moved = [
        f"{what} is now {now[what]}, was {then[what]}" if what in SPOKEN else f"{what} changed"
        for what in now
        if then.get(what, now[what]) != now[what]
    ]
    return "; ".join(moved) or "unknown: same work, same catalogue, same versions"


def _digest_of_notebooks(paths: Sequence[Path]) -> str:
    """A digest of the notebooks, without the due date."""
    known = hashlib.sha256()
    for path in paths:
        content = path.read_bytes()
        try:
            notebook = json.loads(content)
            if deadlines.without(notebook) != notebook:
                content = (nbformat.writes(nbformat.from_dict(deadlines.without(notebook))) + "\n").encode()
        except (ValueError, KeyError, TypeError, AttributeError):  # no notebook: its bytes are all there is to compare
            pass
        known.update(path.name.encode() + b"\0" + content)
    return known.hexdigest()[:16]


def _digest(*files: Path) -> str:
    """A digest of the files; Python code without comments, layout, docstrings and messages."""
    known = hashlib.sha256()
    for file in files:
        if file.is_file():
            content = file.read_bytes()
            known.update(file.name.encode() + b"\0" + (_code(content) if file.suffix == ".py" else content))
    return known.hexdigest()[:16]


@functools.cache  # a grading asks twice about hundreds of files
def _code(content: bytes) -> bytes:
    """A digest of a module's code, the same under each version of Python; of all its text if it cannot be parsed."""
    try:
        tree = ast.parse(content)
    except (SyntaxError, ValueError):
        return hashlib.sha256(content).digest()
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(tree):
        if isinstance(node, documented) and ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:]
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Exercise":
            node.keywords = [each for each in node.keywords if each.arg not in EXPLAINING]
    tree.body = [node for node in tree.body if not _is_message(node)]
    return hashlib.sha256(_written(tree).encode()).digest()


def _is_message(node: ast.stmt) -> bool:
    """Whether a statement names a family of mistakes."""
    made = node.value if isinstance(node, ast.Assign) else None
    return isinstance(made, ast.Call) and isinstance(made.func, ast.Name) and made.func.id == "Family"


def _written(node: object) -> str:
    """A syntax tree as text. Empty fields are left out, since newer versions of Python add some."""
    if isinstance(node, ast.AST):
        fields = {name: value for name, value in ast.iter_fields(node) if value not in (None, []) and name != "ctx"}
        return f"{type(node).__name__}({', '.join(f'{name}={_written(value)}' for name, value in fields.items())})"
    return f"[{', '.join(map(_written, node))}]" if isinstance(node, list) else repr(node)
