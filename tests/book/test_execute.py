"""The cells of pages run before the builder reads them: several pages at a time, and none again without a reason."""

import importlib
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import psutil
import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = """---
jupytext: {{text_representation: {{format_name: myst}}}}
kernelspec: {{name: python3, display_name: Python 3}}
---
# {0}

```{{code-cell}} python
{1}
```
"""
RUN = """
import sys
sys.path.insert(0, {book!r})
from pathlib import Path
import build, execute
execute.ROOT, execute.BOOK = Path({root!r}), Path({root!r}, "book")
if __name__ == "__main__":
    import signal
    signal.signal(signal.SIGTERM, build.stop)
    execute.execute(Path({root!r}, "cache"), 1)
"""


@pytest.fixture
def execute(monkeypatch, tmp_path):
    """The module, for a book of the test's own: `write` makes its pages.

    Its processes are not forked from this one: a thread of torch or of the browser may hold a lock at that moment.
    """
    monkeypatch.syspath_prepend(str(ROOT / "book" / "tools"))
    module = importlib.import_module("execute")
    context = multiprocessing.get_context("forkserver")
    monkeypatch.setattr(module, "ProcessPoolExecutor", partial(ProcessPoolExecutor, mp_context=context))
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(module, "BOOK", tmp_path / "book")
    return module


def write(folder: Path, **cells: str) -> None:
    (folder / "book").mkdir(exist_ok=True)
    (folder / "_config.yml").write_text("execute: {timeout: 60}\nparse: {myst_enable_extensions: []}\n")
    (folder / "_toc.yml").write_text("root: index\nchapters:\n" + "".join(f"- file: {name}\n" for name in cells))
    (folder / "book" / "index.md").write_text("# No cells\n")
    for name, cell in cells.items():
        (folder / "book" / f"{name}.md").write_text(PAGE.format(name, cell))


def test_a_page_runs_once_and_again_only_where_its_cells_have_changed(execute, tmp_path, capsys):
    note = "open('runs.txt', 'a').write('{} ')"
    write(tmp_path, a=note.format("a"), b=note.format("b"))
    assert execute.execute(tmp_path / "cache", 2) == []
    runs = tmp_path / "book" / "runs.txt"
    assert sorted(runs.read_text().split()) == ["a", "b"]
    assert "page 2 of 2" in capsys.readouterr().out
    runs.unlink()
    write(tmp_path, a=note.format("a"), b=note.format("new"))
    assert execute.execute(tmp_path / "cache", 2) == []
    assert runs.read_text().split() == ["new"]
    assert "1 pages, 1 at a time; 1 are unchanged" in capsys.readouterr().out
    assert execute.execute(tmp_path / "cache", 2) == []
    assert capsys.readouterr().out == ""


def test_a_page_whose_cell_fails_is_named_with_the_error_and_the_others_are_kept(execute, tmp_path, capsys):
    write(tmp_path, a="1 / 0", b="1")
    assert execute.execute(tmp_path / "cache", 1) == ["a"]
    shown = capsys.readouterr().out
    assert "book/a.md: ERROR: a cell failed" in shown and "ZeroDivisionError" in shown
    assert execute.execute(tmp_path / "cache", 1) == ["a"]
    assert "running the cells of 1 pages" in capsys.readouterr().out


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_leaves_no_kernel_behind_and_keeps_finished_pages(execute, tmp_path, capsys, number):
    waits = f"open('{tmp_path}/pid', 'w').write(str(__import__('os').getpid())); __import__('time').sleep(600)"
    later = {name: f"open('{name}.ran', 'w')" for name in "cde"}
    write(tmp_path, a="1", b=waits, **later)
    program = RUN.format(book=str(ROOT / "book" / "tools"), root=str(tmp_path))
    (tmp_path / "run.py").write_text(program)
    with subprocess.Popen([sys.executable, tmp_path / "run.py"], stderr=subprocess.PIPE, start_new_session=True) as run:
        while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
            assert run.poll() is None, run.stderr.read().decode()
            time.sleep(0.1)
        kernel = psutil.Process(int((tmp_path / "pid").read_text()))
        started = run.pid
        if number == signal.SIGINT:
            os.killpg(started, number)  # as a terminal does
        else:
            os.kill(started, number)
        run.wait(60)
    assert run.returncode != 0
    psutil.wait_procs([kernel], timeout=60)
    assert not kernel.is_running()
    assert list((tmp_path / "book").glob("*.ran")) == []
    write(tmp_path, a="1", b="2", **later)
    assert execute.execute(tmp_path / "cache", 1) == []
    assert "running the cells of 4 pages, 1 at a time; 1 are unchanged" in capsys.readouterr().out


def test_the_time_left_is_the_share_of_the_work_that_is_left(execute):
    pages = [execute.Page(name, Path(name), None) for name in ("10_training", "11_inference", "a", "b")]
    whole = sum(page.work for page in pages)
    for done in range(1, len(pages) + 1):
        share = sum(page.work for page in pages[:done]) / whole
        assert execute.remaining(pages, pages[done:], 1, 60.0) == pytest.approx(60.0 / share - 60.0)
    assert 0 < execute.remaining(pages, pages[2:], 2, 60.0) < execute.remaining(pages, pages[2:], 1, 60.0)


def test_the_builder_finds_the_cells_of_every_page_executed(book):
    log = (ROOT / "build" / "book.log").read_text(encoding="utf-8")
    assert "Executing notebook" not in log


def test_pages_with_work_of_their_own_are_pages_of_the_book(execute, monkeypatch):
    monkeypatch.setattr(execute, "ROOT", ROOT)
    monkeypatch.setattr(execute, "BOOK", ROOT / "book")
    names = [page.name for page in execute.pages_with_cells()]
    assert set(execute.WORK) <= set(names)
    cells = {path for path in (ROOT / "book").rglob("*.md") if re.search(r"^```{code-cell}", path.read_text(), re.M)}
    assert {ROOT / "book" / f"{name}.md" for name in names} == cells


def test_of_what_the_builder_prints_progress_and_warnings_are_shown_and_all_is_kept(monkeypatch, tmp_path, capsys):
    monkeypatch.syspath_prepend(str(ROOT / "book" / "tools"))
    build = importlib.import_module("build")
    steps = [f"\x1b[01mreading sources... \x1b[39m[{percent:3}%] page\n" for percent in range(5, 105, 5)]
    others = ["loading translations\n", "book/a.md:3: WARNING: a broken link\n", "The HTML pages are in build\n"]
    build.Output(tmp_path / "log").follow([*steps, *others])
    shown = capsys.readouterr().out.splitlines()
    assert [line.split(",")[0].strip() for line in shown[:-1]] == [f"reading pages: {p} %" for p in (25, 50, 75, 100)]
    assert shown[-1] == "book/a.md:3: WARNING: a broken link"
    assert len((tmp_path / "log").read_text().splitlines()) == len(steps) + len(others)
