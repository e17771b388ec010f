"""Damage in which something is lost, or which is not an accident: whatever comes of it, nobody else may suffer."""

import copy
import json

from damage.kinds import BROKEN, a_cell, has_role, kind, new_cell


@kind(BROKEN)
def answer_deleted(notebook, draw):
    notebook["cells"].remove(a_cell(notebook, draw))


@kind(BROKEN)
def shuffled(notebook, draw):
    draw.shuffle(notebook["cells"])


@kind(BROKEN)
def duplicated_ids(notebook, draw):
    for cell in notebook["cells"]:
        cell["id"] = "same"
        if "nbgrader" in cell["metadata"]:
            cell["metadata"]["nbgrader"]["grade_id"] = "same"


@kind(BROKEN)
def names_exchanged(notebook, draw):
    named = [cell for cell in notebook["cells"] if "nbgrader" in cell["metadata"]]
    names = [cell["metadata"]["nbgrader"]["grade_id"] for cell in named]
    draw.shuffle(names)
    for cell, name in zip(named, names, strict=True):
        cell["metadata"]["nbgrader"]["grade_id"] = name


@kind(BROKEN)
def wrong_types(notebook, draw):
    wrong = [None, 1, -0.5, True, "x", [], {}, [[]], {"a": [1]}, ["a", 1, None], "\ud800", "\x00", 10**400]
    for _ in range(draw.randint(1, 20)):
        cell = draw.choice(notebook["cells"])
        cell[draw.choice(["source", "metadata", "cell_type", "id", "outputs"])] = draw.choice(wrong)
        graded = cell["metadata"].get("nbgrader") if isinstance(cell.get("metadata"), dict) else None
        if isinstance(graded, dict):
            graded[draw.choice(["grade_id", "points", "locked", "schema_version"])] = draw.choice(wrong)


@kind(BROKEN)
def cells_of_wrong_type(notebook, draw):
    notebook["cells"] = draw.choice([None, {}, "cells", 3, [None, 1, "x", [], {}]])


@kind(BROKEN)
def nested_deeply(notebook, draw):
    return b'{"cells": [{"cell_type": "code", "metadata": ' + b'{"a":' * 50_000


@kind(BROKEN)
def truncated(notebook, draw):
    data = json.dumps(notebook).encode()
    return data[: draw.randrange(len(data))]


@kind(BROKEN)
def bytes_flipped(notebook, draw):
    data = bytearray(json.dumps(notebook).encode())
    for _ in range(draw.randint(1, 30)):
        data[draw.randrange(len(data))] = draw.randrange(256)
    return bytes(data)


@kind(BROKEN)
def emptied(notebook, draw):
    return draw.choice([b"", b"   \n", b"{}", b"[]", b"null", b'""', b"NaN", b'{"cells": []}'])


@kind(BROKEN)
def something_else(notebook, draw):
    return draw.choice(
        [b"<!doctype html><p>404", b"PK\x03\x04", b"%PDF-1.7", b"\x89PNG", b"import torch\n", bytes(999)]
    )


@kind(BROKEN)
def noise(notebook, draw):
    return draw.randbytes(draw.randint(1, 4000))


@kind(BROKEN)
def lone_surrogates(notebook, draw):
    a_cell(notebook, draw)["source"] += "\n# \ud800\x00\x1b[31m"


@kind(BROKEN)
def bomb_of_cells(notebook, draw):
    notebook["cells"][3:3] = [new_cell(f"cell_{number} = {number}") for number in range(3_000)]


@kind(BROKEN)
def a_cell_without_end(notebook, draw):
    notebook["cells"].insert(3, new_cell("x = 1\n" * 200_000))


@kind(BROKEN)
def answers_emptied(notebook, draw):
    for cell in notebook["cells"]:
        if has_role(cell, "solution"):
            cell["source"] = draw.choice(["", "pass", "\n"])


@kind(BROKEN)
def given_back_blank(notebook, draw):
    for cell in notebook["cells"]:
        cell["source"] = notebook["blank"][cell["id"]]


@kind(BROKEN)
def an_answer_that_does_not_parse(notebook, draw):
    answer = a_cell(notebook, draw)
    answer["source"] = "".join(answer["source"]).replace(":", "", 1)


@kind(BROKEN)
def quotes_of_a_word_processor(notebook, draw):
    return json.dumps(notebook).replace('"', "\u201d").encode()


@kind(BROKEN)
def half_a_cell_lost(notebook, draw):
    answer = a_cell(notebook, draw)
    answer["source"] = "".join(answer["source"])[: len("".join(answer["source"])) // 2]


@kind(BROKEN)
def a_piece_cut_out(notebook, draw):
    data = json.dumps(notebook).encode()
    start = draw.randrange(len(data))
    return data[:start] + data[start + draw.randint(1, 3000) :]


@kind(BROKEN)
def quotes_lost(notebook, draw):
    data = json.dumps(notebook)
    places = {draw.randrange(len(data)) for _ in range(50)}
    return "".join(letter for place, letter in enumerate(data) if place not in places or letter != '"').encode()


@kind(BROKEN)
def brackets_without_end(notebook, draw):
    return b"[" * 100_000 + json.dumps(notebook).encode()


@kind(BROKEN)
def upside_down(notebook, draw):
    notebook["cells"].reverse()


@kind(BROKEN)
def every_answer_three_times(notebook, draw):
    for cell in [cell for cell in notebook["cells"] if has_role(cell, "solution")]:
        wrong = copy.deepcopy(cell) | {"source": "x = 1 / 0"}
        place = notebook["cells"].index(cell)
        notebook["cells"][place + 1 : place + 1] = [wrong, copy.deepcopy(wrong)]


@kind(BROKEN)
def answers_exchanged(notebook, draw):
    answers = [cell for cell in notebook["cells"] if has_role(cell, "solution")]
    texts = [cell["source"] for cell in answers]
    draw.shuffle(texts)
    for cell, text in zip(answers, texts, strict=True):
        cell["source"] = text
