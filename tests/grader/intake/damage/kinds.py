"""How kinds of damage are registered, drawn and done."""

import ast
import copy
import json
import random
from collections.abc import Callable
from typing import Any

Notebook = dict[str, Any]
HONEST: dict[str, Callable[[Notebook, random.Random], bytes | None]] = {}
BROKEN: dict[str, Callable[[Notebook, random.Random], bytes | None]] = {}


def kind(kinds: dict) -> Callable:
    """Register a kind of damage: it changes the notebook, or returns the bytes to submit instead."""

    def add(function: Callable) -> Callable:
        kinds[function.__name__] = function
        return function

    return add


def changed(notebook: Notebook, name: str, draw: random.Random) -> bytes | None:
    """Do this damage to the notebook; returns the bytes to submit instead, if there are any."""
    before = copy.deepcopy(notebook)
    try:
        return (HONEST | BROKEN)[name](notebook, draw)
    except (KeyError, TypeError, AttributeError, IndexError, ValueError):
        notebook.clear()  # earlier damage has left nothing that this one applies to
        notebook.update(before)
        return None


def damaged(notebook: Notebook, kinds: list[str], draw: random.Random) -> bytes:
    """The notebook's file after these kinds of damage, one after the other."""
    notebook = copy.deepcopy(notebook)
    for name in kinds:
        data = changed(notebook, name, draw)
        if data is not None:
            return data
    return json.dumps({key: value for key, value in notebook.items() if key != "blank"}).encode()


def drawn(notebook: Notebook, draw: random.Random) -> tuple[bytes, list[str]]:
    """A file with one to four kinds of damage, and their names."""
    kinds = draw.sample(sorted(HONEST | BROKEN), draw.randint(1, 4))
    return damaged(notebook, kinds, draw), kinds


def a_cell(notebook: Notebook, draw: random.Random, suffix: str = "") -> Notebook:
    """An answer cell, or with "-check" a check cell."""
    cells = [
        cell
        for cell in notebook["cells"]
        if cell["metadata"].get("nbgrader", {}).get("grade" if suffix else "solution")
    ]
    return draw.choice(cells)


def has_role(cell: Notebook, role: str) -> bool:
    return bool(cell["metadata"].get("nbgrader", {}).get(role))


def answer_ids(notebook: Notebook) -> set[str]:
    return {name for name, text in notebook["blank"].items() if "NotImplementedError" in text}


def is_whole(cell: Notebook) -> bool:
    """Whether its text is not a half of a function that was cut."""
    try:
        ast.parse("".join(cell["source"]))
    except SyntaxError:
        return False
    return True


def new_cell(source: str, kind: str = "code") -> Notebook:
    return {"cell_type": kind, "metadata": {}, "source": source}
