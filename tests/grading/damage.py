"""Damage that has been seen on submissions, and worse: each kind changes a real notebook the way its name says.

A kind that is honest leaves everything that a student wrote somewhere in the file; after it an answer must still count.
"""

import copy
import json
import random
from collections.abc import Callable
from typing import Any

Notebook = dict[str, Any]
HONEST: dict[str, Callable[[Notebook, random.Random], bytes | None]] = {}
BROKEN: dict[str, Callable[[Notebook, random.Random], bytes | None]] = {}


def _kind(kinds: dict) -> Callable:
    """Register a kind of damage: it changes the notebook, or returns the bytes to be handed in instead."""

    def add(function: Callable) -> Callable:
        kinds[function.__name__] = function
        return function

    return add


def damaged(notebook: Notebook, kinds: list[Callable], draw: random.Random) -> bytes:
    """The notebook's file after these kinds of damage, one after the other."""
    notebook = copy.deepcopy(notebook)
    for kind in kinds:
        try:
            data = kind(notebook, draw)
        except (KeyError, TypeError, AttributeError, IndexError, ValueError):
            continue  # earlier damage has left nothing that this one applies to
        if data is not None:
            return data
    return json.dumps(notebook).encode()


def drawn(notebook: Notebook, draw: random.Random) -> tuple[bytes, list[str]]:
    """A file with one to four kinds of damage, and their names."""
    kinds = draw.sample(sorted(HONEST | BROKEN), draw.randint(1, 4))
    return damaged(notebook, [(HONEST | BROKEN)[kind] for kind in kinds], draw), kinds


def _cell(notebook: Notebook, draw: random.Random, suffix: str = "") -> Notebook:
    """An answer cell, or with "-check" a check cell."""
    cells = [
        cell
        for cell in notebook["cells"]
        if cell["metadata"].get("nbgrader", {}).get("grade" if suffix else "solution")
    ]
    return draw.choice(cells)


def _new(source: str, kind: str = "code") -> Notebook:
    return {"cell_type": kind, "metadata": {}, "source": source}


@_kind(HONEST)
def untouched(notebook, draw):
    pass


@_kind(HONEST)
def cell_ids_gone(notebook, draw):
    notebook["nbformat_minor"] = 2
    for cell in notebook["cells"]:
        cell.pop("id")


@_kind(HONEST)
def metadata_gone(notebook, draw):
    for cell in notebook["cells"]:
        cell["metadata"] = {}


@_kind(HONEST)
def names_gone(notebook, draw):
    cell_ids_gone(notebook, draw)
    metadata_gone(notebook, draw)


@_kind(HONEST)
def grade_ids_renamed(notebook, draw):
    for number, cell in enumerate(notebook["cells"]):
        if "nbgrader" in cell["metadata"]:
            cell["metadata"]["nbgrader"]["grade_id"] = f"cell-{number}"


@_kind(HONEST)
def cell_ids_drawn(notebook, draw):
    for cell in notebook["cells"]:
        cell["id"] = f"{draw.getrandbits(32):08x}"


@_kind(HONEST)
def points_and_roles_forged(notebook, draw):
    for cell in notebook["cells"]:
        cell["metadata"].get("nbgrader", {}).update(points=100, grade=False, solution=True, locked=False)


@_kind(HONEST)
def tags_added(notebook, draw):
    for cell in notebook["cells"]:
        cell["metadata"]["tags"] = ["skip-execution", "raises-exception"]


@_kind(HONEST)
def check_deleted(notebook, draw):
    notebook["cells"].remove(_cell(notebook, draw, "-check"))


@_kind(HONEST)
def every_given_cell_deleted(notebook, draw):
    notebook["cells"] = [cell for cell in notebook["cells"] if cell["metadata"].get("nbgrader", {}).get("solution")]


@_kind(HONEST)
def check_edited(notebook, draw):
    _cell(notebook, draw, "-check")["source"] = "note = 1\nprint('15 points')"


@_kind(HONEST)
def check_made_text(notebook, draw):
    _cell(notebook, draw, "-check")["cell_type"] = "markdown"


@_kind(HONEST)
def check_moved_up(notebook, draw):
    check = _cell(notebook, draw, "-check")
    notebook["cells"].remove(check)
    notebook["cells"].insert(0, check)


@_kind(HONEST)
def check_copied(notebook, draw):
    notebook["cells"].insert(draw.randrange(len(notebook["cells"])), copy.deepcopy(_cell(notebook, draw, "-check")))


@_kind(HONEST)
def answer_copied(notebook, draw):
    answer = _cell(notebook, draw)
    notebook["cells"].insert(notebook["cells"].index(answer) + 1, copy.deepcopy(answer))


@_kind(HONEST)
def answer_split_after_a_statement(notebook, draw):
    answer = _cell(notebook, draw)
    second = copy.deepcopy(answer) | {"id": "second-half"}
    second["source"], answer["source"] = answer["source"], "import math\nready = True"
    notebook["cells"].insert(notebook["cells"].index(answer) + 1, second)


@_kind(HONEST)
def answer_split_inside_a_function(notebook, draw):
    answer = _cell(notebook, draw)
    lines = "".join(answer["source"]).splitlines(keepends=True)
    cut = len(lines) - 1
    second = copy.deepcopy(answer) | {"id": "second-half", "source": "".join(lines[cut:])}
    answer["source"] = "".join(lines[:cut]).rstrip("\n")
    notebook["cells"].insert(notebook["cells"].index(answer) + 1, second)


@_kind(HONEST)
def answer_made_text(notebook, draw):
    answer = _cell(notebook, draw)
    answer["cell_type"] = "markdown"
    answer["source"] = draw.choice(["{}", "Mine:\n```python\n{}\n```\n"]).format("".join(answer["source"]))


@_kind(HONEST)
def answer_in_a_new_cell(notebook, draw):
    answer = _cell(notebook, draw)
    place = draw.choice([notebook["cells"].index(answer) + 1, len(notebook["cells"])])
    notebook["cells"].insert(place, _new("".join(answer["source"])))
    answer["source"] = notebook["blank"][answer["id"]]


@_kind(HONEST)
def answer_cell_replaced(notebook, draw):
    answer = _cell(notebook, draw)
    notebook["cells"][notebook["cells"].index(answer)] = _new("".join(answer["source"]))


@_kind(HONEST)
def own_cells_added(notebook, draw):
    for number in range(draw.randint(1, 5)):
        kind = draw.choice(["code", "markdown", "raw"])
        notebook["cells"].insert(draw.randrange(len(notebook["cells"])), _new(f"own_{number} = {number}", kind))


@_kind(HONEST)
def text_edited(notebook, draw):
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown":
            cell["source"] += "\n\nmy notes"


@_kind(HONEST)
def sources_as_lines(notebook, draw):
    for cell in notebook["cells"]:
        cell["source"] = "".join(cell["source"]).splitlines(keepends=True)


@_kind(HONEST)
def windows_lines(notebook, draw):
    for cell in notebook["cells"]:
        cell["source"] = "".join(cell["source"]).replace("\n", "\r\n")


@_kind(HONEST)
def nbformat_3(notebook, draw):
    cells = [{**cell, "input": cell["source"]} for cell in notebook["cells"]]
    for cell in cells:
        if cell["cell_type"] == "code":
            del cell["source"]
    return json.dumps({"nbformat": 3, "nbformat_minor": 0, "metadata": {}, "worksheets": [{"cells": cells}]}).encode()


@_kind(HONEST)
def from_the_future(notebook, draw):
    notebook.update(nbformat=5, nbformat_minor=99, shape="new")


@_kind(HONEST)
def utf_16(notebook, draw):
    return json.dumps(notebook, ensure_ascii=False).encode("utf-16")


@_kind(HONEST)
def windows_1252(notebook, draw):
    return json.dumps(notebook, ensure_ascii=False).encode("cp1252", "replace")


@_kind(HONEST)
def marked_as_utf_8(notebook, draw):
    return b"\xef\xbb\xbf" + json.dumps(notebook, ensure_ascii=False).encode()


@_kind(HONEST)
def merge_conflict(notebook, draw):
    lines = json.dumps(notebook, indent=1).splitlines()
    starts = [number for number, line in enumerate(lines) if line == "  {"]
    lines.insert(draw.choice(starts), "<<<<<<< HEAD")
    return "\n".join([*lines, ">>>>>>> mine"]).encode()


@_kind(HONEST)
def flood_of_output(notebook, draw):
    output = {"output_type": "stream", "name": "stdout", "text": "y\n" * 50_000}
    notebook["cells"].insert(2, {**_new("print(1)"), "outputs": [output] * 4, "execution_count": 1})


@_kind(HONEST)
def pictures_attached(notebook, draw):
    for cell in notebook["cells"]:
        cell["attachments"] = {"a.png": {"image/png": "A" * 1000}}


@_kind(BROKEN)
def answer_deleted(notebook, draw):
    notebook["cells"].remove(_cell(notebook, draw))


@_kind(BROKEN)
def shuffled(notebook, draw):
    draw.shuffle(notebook["cells"])


@_kind(BROKEN)
def duplicated_ids(notebook, draw):
    for cell in notebook["cells"]:
        cell["id"] = "same"
        if "nbgrader" in cell["metadata"]:
            cell["metadata"]["nbgrader"]["grade_id"] = "same"


@_kind(BROKEN)
def names_exchanged(notebook, draw):
    named = [cell for cell in notebook["cells"] if "nbgrader" in cell["metadata"]]
    names = [cell["metadata"]["nbgrader"]["grade_id"] for cell in named]
    draw.shuffle(names)
    for cell, name in zip(named, names, strict=True):
        cell["metadata"]["nbgrader"]["grade_id"] = name


@_kind(BROKEN)
def wrong_types(notebook, draw):
    wrong = [None, 1, -0.5, True, "x", [], {}, [[]], {"a": [1]}, ["a", 1, None], "\ud800", "\x00", 10**400]
    for _ in range(draw.randint(1, 20)):
        cell = draw.choice(notebook["cells"])
        cell[draw.choice(["source", "metadata", "cell_type", "id", "outputs"])] = draw.choice(wrong)
        graded = cell["metadata"].get("nbgrader") if isinstance(cell.get("metadata"), dict) else None
        if isinstance(graded, dict):
            graded[draw.choice(["grade_id", "points", "locked", "schema_version"])] = draw.choice(wrong)


@_kind(BROKEN)
def cells_of_wrong_type(notebook, draw):
    notebook["cells"] = draw.choice([None, {}, "cells", 3, [None, 1, "x", [], {}]])


@_kind(BROKEN)
def nested_deeply(notebook, draw):
    return b'{"cells": [{"cell_type": "code", "metadata": ' + b'{"a":' * 50_000


@_kind(BROKEN)
def truncated(notebook, draw):
    data = json.dumps(notebook).encode()
    return data[: draw.randrange(len(data))]


@_kind(BROKEN)
def bytes_flipped(notebook, draw):
    data = bytearray(json.dumps(notebook).encode())
    for _ in range(draw.randint(1, 30)):
        data[draw.randrange(len(data))] = draw.randrange(256)
    return bytes(data)


@_kind(BROKEN)
def emptied(notebook, draw):
    return draw.choice([b"", b"   \n", b"{}", b"[]", b"null", b'""', b"NaN", b'{"cells": []}'])


@_kind(BROKEN)
def something_else(notebook, draw):
    return draw.choice(
        [b"<!doctype html><p>404", b"PK\x03\x04", b"%PDF-1.7", b"\x89PNG", b"import torch\n", bytes(999)]
    )


@_kind(BROKEN)
def noise(notebook, draw):
    return draw.randbytes(draw.randint(1, 4000))


@_kind(BROKEN)
def lone_surrogates(notebook, draw):
    _cell(notebook, draw)["source"] += "\n# \ud800\x00\x1b[31m"


@_kind(BROKEN)
def bomb_of_cells(notebook, draw):
    notebook["cells"][3:3] = [_new(f"cell_{number} = {number}") for number in range(3_000)]


@_kind(BROKEN)
def a_cell_without_end(notebook, draw):
    notebook["cells"].insert(3, _new("x = 1\n" * 200_000))
