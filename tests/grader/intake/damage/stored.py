"""Files as they arrive: the ways to store a notebook, all of which leave it whole, the names it bears, and the ways to
lose it."""

import base64
import bz2
import copy
import gzip
import html
import io
import json
import lzma
import os
import random
import socket
import tarfile
import urllib.parse
import zipfile
from collections.abc import Callable
from pathlib import Path

from damage.kinds import Notebook

WAYS: dict[str, Callable[[Notebook, random.Random], bytes]] = {}
ENDINGS: dict[str, str] = {}  # a way -> what it adds to the file's name, or puts instead of its ending
CODE_ONLY = ("script_of_jupyter", "script_of_jupytext", "markdown_of_jupyter", "page_of_jupyter")  # text goes lost
LOST: dict[str, Callable[[Path, Notebook], None]] = {}
STEM = "self_attention"
NAMES = [
    "{}.ipynb",
    "{}.ipynb ",
    " {}.ipynb",
    "{}.ipynb.",
    "{}.IPYNB",
    "{} (1).ipynb",
    "{}(1).ipynb",
    "{}.ipynb (1)",
    "{}-1.ipynb",
    "{}-2.ipynb",
    "{}-Copy1.ipynb",
    "{} - Copy.ipynb",
    "{} – Kopie.ipynb",
    "Copy of {}.ipynb",
    "{}.ipynb.txt",
    "{}.ipynb.json",
    "{}.ipynb.download",
    "{}.ipynb.crdownload",
    "{}.ipynb_",
    "{}.ipynb~",
    "{}.ipynb.ipynb",
    "{}.json",
    "{}.txt",
    "{}.download",
    "{}.inpyb",
    "{}",
    "doejane_12345_678901_{}-1.ipynb",
    "Jane Doe_501_assignsubmission_file_{}.ipynb",
    "Self Attention.ipynb",
    "self‑attention.ipynb",
    "SELF_ATTENTION.ipynb",
    "work/{}.ipynb",
    "a/b/c/d/e/{}.ipynb",
    "Aufgabe für Übung/{}.ipynb",
    "Aufgabe fu\u0308r U\u0308bung.ipynb",
    "homework 5.ipynb",
    "Untitled.ipynb",
    ".ipynb",
    ".{}.ipynb",
    ".ipynb_checkpoints/{}-checkpoint.ipynb",
    "\udcff{}.ipynb",
    "x" * 240 + ".ipynb",
]


def way(ending: str = "") -> Callable:
    """Register a way to store a notebook."""

    def add(function: Callable) -> Callable:
        WAYS[function.__name__], ENDINGS[function.__name__] = function, ending
        return function

    return add


def lost(function: Callable) -> Callable:
    """Register a way to lose a notebook: `function` fills the folder."""
    LOST[function.__name__] = function
    return function


def stored(notebook: Notebook, name: str, draw: random.Random) -> bytes:
    """The notebook's file, stored this way."""
    return WAYS[name](copy.deepcopy({key: value for key, value in notebook.items() if key != "blank"}), draw)


def _compact(notebook: Notebook) -> bytes:
    return json.dumps(notebook).encode()


def _pretty(notebook: Notebook) -> str:
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


# Encodings

for _encoding in ("utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be"):
    way()(lambda notebook, draw, encoding=_encoding: _pretty(notebook).encode(encoding))
    WAYS[_encoding], ENDINGS[_encoding] = WAYS.pop("<lambda>"), ENDINGS.pop("<lambda>")


@way()
def windows_1252(notebook, draw):
    return json.dumps(notebook, ensure_ascii=False).encode("cp1252", "replace")


@way()
def marked_twice(notebook, draw):
    return b"\xef\xbb\xbf" * 2 + _compact(notebook)


@way()
def windows_lines(notebook, draw):
    return _pretty(notebook).replace("\n", "\r\n").encode()


@way()
def old_mac_lines(notebook, draw):
    return _pretty(notebook).replace("\n", "\r").encode()


@way()
def zeros_between_lines(notebook, draw):
    return _pretty(notebook).replace("\n", "\n\x00").encode()


@way()
def an_end_of_file_of_dos(notebook, draw):
    return _pretty(notebook).encode() + b"\x1a\x00\x00\x00"


# Something around it


@way()
def a_letter_before(notebook, draw):
    return draw.choice([b"x", b"\x00", b"?", b"\xef\xbf\xbd", b"]", b",", b"//", b"1", b'""', b"{", b"["]) + _compact(
        notebook
    )


@way()
def words_before_and_after(notebook, draw):
    return b"Hello, here is my {notebook}:\n\n" + _pretty(notebook).encode() + b"\n\nBest, {Jane}\n"


@way()
def headers_before(notebook, draw):
    return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n" + _compact(notebook)


@way()
def twice_in_one_file(notebook, draw):
    return _compact(notebook) + b"\n" + _compact(notebook)


@way()
def in_a_list(notebook, draw):
    return json.dumps([notebook]).encode()


@way()
def in_lists_of_lists(notebook, draw):
    return json.dumps([[], [[{"a": 1}, [notebook]]], None]).encode()


@way()
def answer_of_the_contents_api(notebook, draw):
    return json.dumps({"name": "a.ipynb", "type": "notebook", "format": "json", "content": notebook}).encode()


@way()
def base64_of_the_contents_api(notebook, draw):
    content = base64.encodebytes(_compact(notebook)).decode()
    return json.dumps({"name": "a.ipynb", "encoding": "base64", "content": content}).encode()


@way()
def wrapped_deeply(notebook, draw):
    for number in range(40):
        notebook = draw.choice([{f"level {number}": notebook, "x": [1]}, [notebook], {"data": [0, notebook]}])
    return json.dumps(notebook).encode()


@way()
def json_in_a_string(notebook, draw):
    return json.dumps(_pretty(notebook)).encode()


@way()
def json_in_strings_of_a_wrapper(notebook, draw):
    return json.dumps({"ipynb": json.dumps({"content": _pretty(notebook)})}).encode()


@way()
def half_a_string(notebook, draw):
    return json.dumps(_pretty(notebook))[1:-1].encode()


@way()
def base64_alone(notebook, draw):
    return draw.choice([b"", b"data:application/x-ipynb+json;base64,"]) + base64.b64encode(_compact(notebook))


@way()
def escaped_as_a_page(notebook, draw):
    return ("<pre>" * draw.randint(0, 1) + html.escape(_pretty(notebook))).encode()


@way()
def escaped_as_an_address(notebook, draw):
    return urllib.parse.quote(json.dumps(notebook)).encode()


@way()
def as_python_prints_it(notebook, draw):
    return repr(notebook).encode()


@way()
def commas_too_many(notebook, draw):
    return _pretty(notebook).replace("\n  }\n ]", "\n  },\n ]").replace('"\n   ]', '",\n   ]').encode()


@way()
def commas_too_few(notebook, draw):
    return _pretty(notebook).replace("\n  },\n  {", "\n  }\n  {").encode()


@way()
def lines_without_ends(notebook, draw):
    cells = [{**cell, "source": "".join(cell["source"]).split("\n")} for cell in notebook["cells"]]
    return json.dumps({**notebook, "cells": cells}).encode()


@way()
def cells_as_a_dictionary(notebook, draw):
    return json.dumps({**notebook, "cells": {str(n): cell for n, cell in enumerate(notebook["cells"])}}).encode()


# Formats of other times and programs


def _of_old(notebook: Notebook, code: str, text: str) -> list[dict]:
    return [
        {("text" if kind == "markdown" else "code") if text == "text" else "source": ""}
        | {key: value for key, value in cell.items() if key != "source"}
        | {(code if kind == "code" else text): cell["source"]}
        for cell in notebook["cells"]
        for kind in ["code" if _is_code(cell) else "markdown"]
    ]


@way()
def nbformat_3(notebook, draw):
    cells = _of_old(notebook, "input", "source")
    for cell in cells:
        if _is_code(cell):
            cell.pop("source", None)
    return json.dumps({"nbformat": 3, "nbformat_minor": 0, "metadata": {}, "worksheets": [{"cells": cells}]}).encode()


@way()
def nbformat_3_with_a_comma_too_many(notebook, draw):
    return nbformat_3(notebook, draw).replace(b"}]}]}", b"},]},]}")


@way()
def nbformat_2(notebook, draw):
    sheets = json.loads(nbformat_3(notebook, draw))["worksheets"]
    for cell in sheets[0]["cells"]:
        cell.pop("metadata", None)
    return json.dumps({"nbformat": 2, "metadata": {"name": ""}, "worksheets": sheets}).encode()


@way()
def nbformat_1(notebook, draw):
    cells = [
        {"cell_type": "code", "prompt_number": 1, "code": cell["source"]}
        if _is_code(cell)
        else {"cell_type": "text", "text": cell["source"]}
        for cell in notebook["cells"]
    ]
    return json.dumps({"cells": cells}).encode()


@way()
def cells_of_vs_code(notebook, draw):
    cells = [
        {"kind": 2 if _is_code(cell) else 1, "language": "python", "value": "".join(cell["source"])}
        for cell in notebook["cells"]
    ]
    return json.dumps(cells).encode()


def _is_code(cell: Notebook) -> bool:
    return cell.get("cell_type", "code" if "outputs" in cell else "").lower() == "code"


def _script(notebook: Notebook, begin: str, text: str) -> str:
    parts = []
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        lines = source if _is_code(cell) else "\n".join(f"# {line}" for line in source.splitlines())
        parts.append(f"{begin if _is_code(cell) else text}\n{lines}\n")
    return "\n\n".join(parts)


@way(".py")
def script_of_jupyter(notebook, draw):
    return ("#!/usr/bin/env python\n# coding: utf-8\n\n" + _script(notebook, "# In[3]:\n\n", "")).encode()


@way(".py")
def script_of_jupytext(notebook, draw):
    return ("# ---\n# jupyter:\n# ---\n\n" + _script(notebook, "# %%", "# %% [markdown]")).encode()


@way(".md")
def markdown_of_jupyter(notebook, draw):
    parts = [
        f"```python\n{''.join(cell['source'])}\n```" if _is_code(cell) else "".join(cell["source"])
        for cell in notebook["cells"]
    ]
    return "\n\n".join(parts).encode()


@way(".html")
def page_of_jupyter(notebook, draw):
    parts = [
        f'<div class="highlight '
        f'hl-ipython3"><pre><span></span><span>{html.escape("".join(cell["source"]))}</span></pre>'
        for cell in notebook["cells"]
        if _is_code(cell)
    ]
    return ("<!DOCTYPE html>\n<html><body>" + "\n".join(parts) + "</body></html>").encode()


# Archives


def _zip(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()


@way(".zip")
def zipped(notebook, draw):
    return _zip({f"{STEM}.ipynb": _compact(notebook)})


@way(".zip")
def zipped_on_a_mac(notebook, draw):
    return _zip(
        {
            "Homework/": b"",
            f"Homework/{STEM}.ipynb": _compact(notebook),
            f"__MACOSX/Homework/._{STEM}.ipynb": b"\x00\x05\x16\x07",
            "Homework/.DS_Store": b"\x00\x00\x00\x01Bud1",
            "Homework/picture.png": b"\x89PNG",
        }
    )


@way(".zip")
def zip_in_zip(notebook, draw):
    return _zip({"inner.zip": zipped(notebook, draw), "readme.txt": b"def f():\n    return 1\n"})


@way("")
def zipped_under_the_old_name(notebook, draw):
    return zipped(notebook, draw)


@way(".gz")
def gzipped(notebook, draw):
    return gzip.compress(_compact(notebook), mtime=0)


@way("")
def gzipped_twice(notebook, draw):
    return gzip.compress(gzipped(notebook, draw), mtime=0)


@way(".bz2")
def bzipped(notebook, draw):
    return bz2.compress(_compact(notebook))


@way(".xz")
def xzipped(notebook, draw):
    return lzma.compress(_compact(notebook))


@way(".tar.gz")
def tarred(notebook, draw):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, content in {"a/notes.txt": b"x", f"a/{STEM}.ipynb": _compact(notebook)}.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


# Conflicts


@way()
def conflict_in_the_first_line(notebook, draw):
    return f"<<<<<<< HEAD\n{_pretty(notebook)}=======\n>>>>>>> origin/main\n".encode()


@way()
def conflict_without_a_middle(notebook, draw):
    lines = _pretty(notebook).splitlines()
    starts = [number for number, line in enumerate(lines) if line == "  {"]
    lines.insert(draw.choice(starts), "<<<<<<< HEAD")
    return "\n".join([*lines, ">>>>>>> mine"]).encode()


@way()
def conflict_around_every_line_of_text(notebook, draw):
    """As git leaves it where the course's notebook was changed meanwhile: the student's side first, or second."""
    lines, found = _pretty(notebook).splitlines(), []
    mine_first = draw.random() < 0.5
    for line in lines:
        if '"execution_count"' in line:
            sides = [line, line.replace("null", "7")]
            sides = sides if mine_first else sides[::-1]
            found += ["<<<<<<< HEAD", sides[0], "||||||| base", line, "=======", sides[1], ">>>>>>> theirs"]
        else:
            found.append(line)
    return "\n".join(found).encode()


# Ways to lose it


@lost
def empty_folder(folder, notebook):
    pass


@lost
def empty_file(folder, notebook):
    (folder / f"{STEM}.ipynb").touch()


@lost
def only_a_picture(folder, notebook):
    (folder / "screenshot.png").write_bytes(b"\x89PNG" + bytes(1000))


@lost
def only_a_link(folder, notebook):
    (folder / f"{STEM}.ipynb").symlink_to("/nowhere/self_attention.ipynb")


@lost
def only_a_pipe(folder, notebook):
    os.mkfifo(folder / f"{STEM}.ipynb")
    os.mkfifo(folder / "timestamp.txt")
    os.mkfifo(folder / "submission_secret.txt")


@lost
def only_a_socket(folder, notebook):
    here = os.getcwd()
    os.chdir(folder)  # a socket's path must be short
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(f"{STEM}.ipynb")
    finally:
        os.chdir(here)


@lost
def a_folder_of_that_name(folder, notebook):
    (folder / f"{STEM}.ipynb" / "timestamp.txt").mkdir(parents=True)


@lost
def below_a_thousand_folders(folder, notebook):
    here = os.getcwd()
    os.chdir(folder)
    try:
        for _ in range(1_500):
            os.mkdir("d")
            os.chdir("d")
        Path(f"{STEM}.ipynb").write_bytes(_compact(notebook))
    finally:
        os.chdir(here)


@lost
def a_zip_without_its_end(folder, notebook):
    (folder / f"{STEM}.zip").write_bytes(zipped(notebook, random.Random(0))[:-200])


@lost
def a_bomb(folder, notebook):
    content = bytes(200 << 20)
    (folder / f"{STEM}.ipynb.gz").write_bytes(gzip.compress(content, compresslevel=1))


@lost
def a_file_without_end(folder, notebook):
    for name in (f"{STEM}.ipynb", "submission_secret.txt", "timestamp.txt"):
        with (folder / name).open("wb") as file:
            file.truncate(300 << 20)  # it takes no room on the disk


@lost
def another_course(folder, notebook):
    (folder / f"{STEM}.ipynb").write_bytes(_compact({"cells": [{"cell_type": "code", "source": "print(1)"}]}))
