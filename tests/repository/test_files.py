"""Which files the repository holds, and what none of them may contain."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

TOP_LEVEL = {
    "book",
    "exercises",
    "solutions",
    "autograder",
    "transformer_ref",
    "tests",
    "_config.yml",
    "_toc.yml",
    "requirements.txt",
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "LICENSE",
    "SECURITY.md",
    "CITATION.cff",
    "Makefile",
    "pyproject.toml",
    "setup.py",
    "nbgrader_config.py",
    ".ci",
    ".github",
    ".gitignore",
    ".gitattributes",
}
LARGEST = 2_000_000  # bytes; a clone stays small, and checkpoints and data belong in build/
LONGEST = 450  # lines of a file of code: what one reads at a sitting

# Spelled in pieces, so that this file does not find itself.
CONFLICT = re.compile(r"^(<{7} |>{7} )", re.MULTILINE)
MACHINE = re.compile(
    r"/(?:work|tmp/w|root|opt/pypi|Users)/[\w.]|/home/(?!jovyan)\w+/\w|[A-Z]:\\Users\\"
    + r"|pypi\."
    + r"org/simple|files\.python"
    + r"hosted|registry\.npm"
    + r"js"
)


def text_of(path: Path) -> str | None:
    """The file's text, or None where it is not text."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return None


def test_the_top_level_is_exactly_the_one_the_architecture_names(repository_files: list[Path]) -> None:
    assert {path.parts[0] for path in repository_files} == TOP_LEVEL


def test_no_two_test_modules_share_a_name(repository_files: list[Path]) -> None:
    """pytest imports a test module by its bare name: of two, the second one is an error of the whole run."""
    names = [path.name for path in repository_files if path.parts[0] == "tests" and path.name.startswith("test_")]
    assert sorted(names) == sorted(set(names))


def test_no_file_is_larger_than_two_megabytes(root: Path, repository_files: list[Path]) -> None:
    sizes = {str(path): (root / path).stat().st_size for path in repository_files}
    assert {name: size for name, size in sizes.items() if size > LARGEST} == {}


def test_no_file_of_code_is_longer_than_a_sitting(root: Path, repository_files: list[Path]) -> None:
    code = [
        path
        for path in repository_files
        if path.suffix == ".py" and path.parts[0] in ("autograder", "transformer_ref", "book")
        if not path.match("autograder/catalogue/ch*/*.py")  # an entry is a list of known answers, read by name
    ]
    lines = {str(path): len((root / path).read_text(encoding="utf-8").splitlines()) for path in code}
    assert {name: count for name, count in lines.items() if count > LONGEST} == {}


def test_no_file_holds_a_conflict_marker(root: Path, repository_files: list[Path]) -> None:
    found = {str(path) for path in repository_files if CONFLICT.search(text_of(root / path) or "")}
    assert found == set()


def test_no_file_names_a_path_or_a_package_host_of_somebodys_machine(root: Path, repository_files: list[Path]) -> None:
    found = []
    for path in repository_files:
        if "vendor" in path.parts:
            continue
        match = MACHINE.search(text_of(root / path) or "")
        if match:
            found.append(f"{path}: {match.group()}")
    assert found == []


@pytest.mark.parametrize("folder", ["build", "classroom", ".venv"])
def test_git_ignores(root: Path, folder: str) -> None:
    ignored = subprocess.run(["git", "check-ignore", "-q", f"{folder}/anything"], cwd=root)
    assert ignored.returncode == 0, f"{folder}/ is not ignored"


def test_notebooks_are_committed_without_outputs(root: Path, repository_files: list[Path]) -> None:
    notebooks = [path for path in repository_files if path.suffix == ".ipynb"]
    dirty = [
        f"{path}: cell {cell.get('id')}"
        for path in notebooks
        if path.parts[0] in ("solutions", "exercises")
        for cell in json.loads((root / path).read_text(encoding="utf-8"))["cells"]
        if cell.get("outputs") or cell.get("execution_count") is not None
    ]
    assert dirty == []


@pytest.mark.parametrize("package", ["transformer_ref", "autograder"])
def test_importing_the_package_alone_loads_nothing_heavy(root: Path, package: str) -> None:
    program = f"import sys, {package}; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", program], cwd=root, check=True, capture_output=True, text=True)
    assert {"torch", "numpy", "matplotlib", "nbgrader"} & set(loaded.stdout.split()) == set()
