"""What `make test` leaves out: groups of tests that passed on this machine, and whose inputs have not changed since.

A group's inputs are the files that its tests may read: by its folder (INPUTS), all of them where a test names more
(NAMES_MORE); of the catalogue, the tests of one exercise read its own chapter. Python, the packages that matter most,
and what limits the processor count too. Continuous integration leaves nothing out; `--again` runs everything here.
"""

import functools
import hashlib
import json
import os
import platform
import re
import sys
from collections import defaultdict
from importlib import metadata
from pathlib import Path

import pytest

KEPT = Path("build") / "tests_passed.json"  # group -> digest of its inputs when all of its tests passed
ALWAYS = ("tests/conftest.py", "tests/unchanged.py", "pyproject.toml", "requirements.txt", "setup.py")
REFERENCE = ("transformer_ref", "book/recorded")
GRADER = (*REFERENCE, "autograder", "solutions", "exercises", "nbgrader_config.py", "book/00_start_here.md")
BOOK = (*GRADER, "book", "_config.yml", "_toc.yml", "Makefile", "*.md", "*.cff")
EVERYTHING = (*BOOK, "tests", ".ci", ".github")
INPUTS = {
    "reference": REFERENCE,
    "grader": GRADER,
    "book": BOOK,
}  # folder of tests -> what they read; others: EVERYTHING
NAMES_MORE = {  # what a test of a folder says that reads more
    "reference": re.compile(r"\bautograder\b|\bbook\b|\bsolutions\b|\bexercises\b|README|\bROOT\b|\broot\b"),
    "grader": re.compile(r"[\"']book[\"'/]|\bfrom book\b|\bimport book\b|README|CONTRIBUTING|Makefile"),
    "book": re.compile(r"[\"']tests[\"'/]|\.github|\.ci\b"),
}
KNOWN = "known-"  # and an exercise's id: the group of its known answers
CHAPTERS = re.compile(r"autograder/catalogue/ch\d\d_\w+/")
LIMITS = ("ATEN_CPU_CAPABILITY", "ONEDNN_MAX_CPU_ISA", "MKL_ENABLE_INSTRUCTIONS", "ATTENTION_BY_HAND_MACHINE")
PACKAGES = ("torch", "numpy", "nbgrader", "nbconvert", "ipykernel", "jupyter-book", "sphinx", "playwright", "pytest")
PASSED_OVER = ("__pycache__", ".ipynb_checkpoints")


class Inputs:
    """The files below a root, each read once."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def digest(self, group: str, file: Path) -> str:
        """A digest of all files that the tests of a group may read. file: one of its test files."""
        folder = file.relative_to(self.root).parts[1] if file.is_relative_to(self.root / "tests") else ""
        names = INPUTS.get(folder, EVERYTHING)
        if folder in NAMES_MORE and NAMES_MORE[folder].search(file.read_text(encoding="utf-8")):
            names = EVERYTHING
        own, here = file.relative_to(self.root).as_posix(), f"tests/{folder}"
        files = [
            name
            for name in self._files((*names, *ALWAYS, here))
            if names == EVERYTHING or name == own or not re.match(rf"{here}/.*\btest_\w+\.py$", name)
        ]
        if group.startswith(KNOWN) and names != EVERYTHING:
            files = [name for name in files if self._is_of(name, group.removeprefix(KNOWN))]
        told = [f"{name} {self._content(name)}" for name in files]
        return hashlib.sha256("\n".join([_machine(), *told]).encode()).hexdigest()

    def _is_of(self, name: str, exercise: str) -> bool:
        """Whether the known answers of an exercise may read a file: other chapters' entries they do not."""
        chapter = CHAPTERS.match(name)
        return chapter is None or chapter[0] == self._chapter(exercise)

    @functools.cache  # noqa: B019 (one object a run)
    def _chapter(self, exercise: str) -> str:
        file = f"{exercise.replace('-', '_')}.py"
        found = [path for path in self._files(("autograder",)) if path.endswith(f"/{file}") and CHAPTERS.match(path)]
        return CHAPTERS.match(found[0])[0] if found else ""

    @functools.cache  # noqa: B019
    def _files(self, names: tuple[str, ...]) -> list[str]:
        found = set()
        for name in names:
            for place in self.root.glob(name):
                below = place.rglob("*") if place.is_dir() else [place]
                found |= {path for path in below if path.is_file() and not set(path.parts) & set(PASSED_OVER)}
        return sorted(path.relative_to(self.root).as_posix() for path in found)

    @functools.cache  # noqa: B019
    def _content(self, name: str) -> str:
        return hashlib.sha256((self.root / name).read_bytes()).hexdigest()


class Unchanged:
    """A plugin that skips unchanged groups, and records which passed. group_of: the group of a test."""

    def __init__(self, config: pytest.Config, group_of) -> None:
        self.config, self.group_of = config, group_of
        self.left_out = 0
        self._digests: dict[str, str] = {}  # in the main process from its workers' tests
        self._failed: set[str] = set()
        chosen = config.args_source == config.ArgsSource.ARGS or config.option.keyword or config.option.markexpr
        self._is_whole = not chosen and not config.option.collectonly
        wanted = config.getoption("--again") or config.getoption("--all") or config.getoption("--rest")
        self._may_leave_out = self._is_whole and not wanted and os.environ.get("CI") != "true"

    def keep_changed(self, items: list[pytest.Item]) -> None:
        """Skip the tests of groups that passed with the same inputs; record the group of the others."""
        groups = defaultdict(list)
        for item in items:
            groups[self.group_of(item)].append(item)
        inputs, passed = Inputs(self.config.rootpath), _read(self.config.rootpath / KEPT)
        dropped = set()
        for group, members in groups.items():
            files = sorted({item.path for item in members})
            digest = hashlib.sha256("".join(inputs.digest(group, file) for file in files).encode()).hexdigest()
            if self._may_leave_out and passed.get(group) == digest:
                dropped.update(members)
            for item in members:
                item.user_properties.append(("group", f"{group} {digest}"))
        self.left_out = len(dropped)
        self.config.hook.pytest_deselected(items=list(dropped))
        items[:] = [item for item in items if item not in dropped]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """In the main process, which hears of every test."""
        for name, value in report.user_properties:
            if name == "group":
                group, digest = value.rsplit(" ", 1)
                self._digests[group] = digest
                if report.failed:
                    self._failed.add(group)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Record the groups that passed; those of an interrupted run are not known to pass."""
        if hasattr(self.config, "workeroutput"):
            self.config.workeroutput["unchanged"] = self.left_out
            return
        if session.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and self.left_out:
            session.exitstatus = pytest.ExitCode.OK  # `make test` has nothing to do
        if not self._is_whole or session.shouldstop or session.shouldfail or session.exitstatus not in (0, 1):
            return
        kept = _read(self.config.rootpath / KEPT)
        kept |= {group: digest for group, digest in self._digests.items() if group not in self._failed}
        for group in self._failed:
            kept.pop(group, None)
        (self.config.rootpath / KEPT).parent.mkdir(exist_ok=True)
        (self.config.rootpath / KEPT).write_text(json.dumps(kept, indent=0, sort_keys=True), encoding="utf-8")

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node) -> None:
        """All workers leave out the same, so one of them says how many."""
        self.left_out = getattr(node, "workeroutput", {}).get("unchanged", 0)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print what was not run, and why."""
        if self.left_out:
            terminalreporter.write_line(
                f"not run: {self.left_out:,} tests that passed here and whose inputs have not changed since "
                "(PYTEST_ARGS=--again runs them)"
            )


def _read(path: Path) -> dict[str, str]:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


@functools.cache
def _machine() -> str:
    installed = [f"{name} {metadata.version(name)}" for name in PACKAGES]
    limits = [f"{name}={os.environ.get(name, '')}" for name in LIMITS]
    return " ".join((sys.version, platform.platform(), platform.processor(), *limits, *installed))
