"""Files made to block their reader: reading each of them ends, and soon."""

import json
import tarfile
import time
from pathlib import Path

import nbformat
import pytest

from autograder.intake import choose, rebuild, salvage, scripts, unpack

ROOT = Path(__file__).resolve().parents[3]


def tar_header(name: str, size: int, kind: bytes = tarfile.REGTYPE) -> bytes:
    """A header of a tar; a size below zero as GNU tar writes large ones."""
    header = bytearray(tarfile.TarInfo(name).tobuf(tarfile.GNU_FORMAT))
    header[124:136] = b"%011o\0" % size if size >= 0 else b"\xff" + size.to_bytes(11, "big", signed=True)
    header[148:157] = b" " * 8 + kind
    header[148:156] = b"%06o\0 " % sum(header)
    return bytes(header)


def test_a_tar_that_leads_back_to_where_it_was_comes_to_an_end(monkeypatch):
    read = []
    take = tarfile.TarInfo.frombuf.__func__

    def counted(kind, *arguments):
        read.append(1)
        if len(read) > 50_000:
            pytest.fail("it goes on and on")
        return take(kind, *arguments)

    monkeypatch.setattr(tarfile.TarInfo, "frombuf", classmethod(counted))
    back = tar_header("a.txt", 0) + tar_header("__MACOSX/a", -512) + bytes(2048)
    longer = b"13 size=-512\n"
    told = tar_header("pax", len(longer), tarfile.XHDTYPE) + longer.ljust(512, b"\0") + tar_header("__MACOSX/a", 0)
    for data in (back, tar_header("a.txt", 0) + told + bytes(2048)):
        assert len(list(unpack.members("a.tar", data))) <= 1


def test_long_headers_of_a_tar_are_not_searched_without_end():
    """Their search takes the square of their length: of a megabyte of digits a quarter of an hour."""
    size = 200 * 512
    long = tar_header("pax", size, tarfile.XHDTYPE) + b"1" * size + tar_header("a.txt", 0) + bytes(1024)
    assert list(unpack.members("a.tar", long)) == []
    many = (tar_header("pax", 1 << 14, tarfile.XHDTYPE) + b"x" * (1 << 14) + tar_header("a.txt", 0)) * 50
    assert len(list(unpack.members("a.tar", many + bytes(1024)))) < 20


def test_texts_in_a_file_are_together_read_again_as_often_as_one(monkeypatch):
    class Counted:
        tried = 0

        def raw_decode(self, *arguments):
            self.tried += 1
            return decoder.raw_decode(*arguments)

    decoder, texts = salvage.DECODER, 40
    broken = '{"cell_type":' + '{"a":[1,' * 100
    monkeypatch.setattr(salvage, "WORK", 20 * len(broken))
    monkeypatch.setattr(salvage, "DECODER", Counted())
    assert salvage.read(json.dumps([broken] * texts).encode())[0].pieces == ()
    assert salvage.DECODER.tried < 10 * texts


# --- every pattern over a student's bytes takes time in proportion to their number ------------------------------------

HOSTILE = {
    "an open string of escaped quotes": (salvage._repaired, lambda n: '{"a": "' + '\\"' * n),
    "quotes": (salvage._repaired, lambda n: '"' * n),
    "backslashes": (salvage._repaired, lambda n: '"\\' * n),
    "commas": (salvage._repaired, lambda n: ", " * n),
    "a bracket and blanks": (salvage._repaired, lambda n: "}" + " " * n),
    "base64 that ends in blanks": (salvage._is_base64, lambda n: "a" * 200 + " " * n + "!"),
    "an import without end": (choose._IMPORT.findall, lambda n: "from " + "a" * n),
    "an import of packages": (choose._IMPORT.findall, lambda n: "from a" + ".a" * n),
    "imports in one line": (choose._IMPORT.findall, lambda n: "import a" + " ,a" * n),
    "fences that begin": (scripts.cells, lambda n: "```python\n" * n),
    "fences in one line": (scripts.cells, lambda n: "```{code-cell}" * n),
    "fences with options": (scripts.cells, lambda n: "```{python " * n),
    "backticks": (scripts.cells, lambda n: "`" * n),
    "boxes that begin": (scripts.cells, lambda n: "<p>" + '<div class="hl-python"><pre>' * n),
    "a class without end": (scripts.cells, lambda n: '<div class="' + "hl-python " * n),
    "angle brackets": (scripts.cells, lambda n: f'<div class="hl-python"><pre>{"<" * n}</pre>'),
    "a box and blanks": (scripts.cells, lambda n: '<div class="hl-python">' + " " * n),
    "prompts": (scripts.cells, lambda n: "# In [" + "1 " * n),
    "cells in cells": (salvage.read, lambda n: b'{"cell_type":' * n),
    "cells in lists": (salvage.read, lambda n: b'{"cell_type":[1,' * n),
}


def seconds(read, data) -> float:
    """The processor time of reading, the least of three."""
    times = []
    for _ in range(3):
        begin = time.process_time()
        read(data)
        times.append(time.process_time() - begin)
    return min(times)


@pytest.mark.parametrize("what", HOSTILE)
def test_reading_takes_time_in_proportion_to_what_is_read(what):
    """Of eight times as much, some eight times as long; a pattern that tries each beginning takes 64 times as long."""
    read, make = HOSTILE[what]
    assert seconds(read, make(80_000)) < 24 * max(seconds(read, make(10_000)), 1e-3)


def test_a_number_of_a_letter_that_python_refuses_to_read_ends_no_reading():
    number = f"&#{'1' * 5_000};"
    page = f'<div class="hl-python"><pre>x = "&lt;{number}&#65;"</pre></div>'
    assert [cell["source"] for cell in scripts.cells(page)] == [f'x = "<{number}A"']
    wrapped = f"{{&quot;cells&quot;: [], &quot;x&quot;: &quot;{number}&quot;}}"
    assert salvage.read(wrapped.encode())[0].pieces == ()


def test_a_function_cut_into_many_cells_is_parsed_a_bounded_number_of_times(monkeypatch):
    parsed = []

    def counted(source):
        parsed.append(len(source))
        return scripts.is_python(source)

    def rebuilt(cells: int) -> int:
        parsed.clear()
        lines = [f"    x = {number}" for number in range(cells)]
        sources = ["def attention_weights(Q, K):\n    y = 0", *lines]
        notebook = {"cells": [{"cell_type": "code", "metadata": {}, "source": source} for source in sources]}
        rebuild.rebuild(json.dumps(notebook).encode(), released)
        return sum(parsed)

    released = nbformat.read(ROOT / "exercises" / "05_self_attention" / "self_attention.ipynb", as_version=4)
    monkeypatch.setattr(rebuild, "is_python", counted)
    assert rebuilt(400) < 8 * rebuilt(100)
