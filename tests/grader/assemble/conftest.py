"""A newcomer who has solved every notebook, made once for all tests of the road from there to a page."""

from pathlib import Path

import newcomer
import pytest


@pytest.fixture(scope="session")
def solved(once) -> Path:
    """A folder with all notebooks solved, and the file that `assemble` wrote next to them; its output is in
    said.txt."""

    def make(folder: Path) -> None:
        newcomer.write_notebooks(folder)
        (folder / "said.txt").write_text(newcomer.assemble(folder), encoding="utf-8")

    return once("newcomer", make)


@pytest.fixture(scope="session")
def mine(solved) -> Path:
    """The assembled file of that newcomer."""
    return solved / "exercises" / newcomer.MINE
