"""Run the cells of the pages, several pages at a time, before the book is built: the builder then finds them executed.

The outputs go to the builder's own cache (jupyter-cache), so a build that was interrupted continues, and a page runs
again only when its cells or the code that they import have changed.
"""

import itertools
import multiprocessing
import re
import subprocess
import sys
import time
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path

import yaml
from jupyter_cache import get_cache
from jupyter_cache.base import CacheBundleIn, JupyterCacheAbstract
from jupyter_cache.executors.utils import ExecutionResult, single_nb_execution
from myst_nb.core.config import NbParserConfig
from myst_nb.core.read import create_nb_reader
from myst_parser.config.main import MdParserConfig
from nbformat import NotebookNode
from progress import clock, say

ROOT = Path(__file__).resolve().parents[2]
BOOK = ROOT / "book"
# How long a page's cells take next to the others', in seconds on one core. It orders the pages, the longest first, and
# turns the work that is done into the time left; another machine changes all of them alike.
WORK = {"10_training": 15, "11_inference": 15, "13_gpt": 15, "15_pretrained": 9, "12_capstone": 7, "16_efficient": 6,
        "14_vision": 6, "reference/slides": 1}  # fmt: skip
SHORT = 3.0


@dataclass(frozen=True)
class Page:
    """A page with cells: its name in the table of contents, its file, and its cells before execution."""

    name: str
    path: Path
    notebook: NotebookNode

    @property
    def work(self) -> float:
        return WORK.get(self.name, SHORT)


def pages_with_cells() -> list[Page]:
    """Return the pages of the table of contents with cells, parsed as by the builder."""
    settings = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
    markdown = MdParserConfig(enable_extensions=set(settings["parse"]["myst_enable_extensions"]))
    found = []
    for name in re.findall(
        r"^\s*(?:- file|root): (\S+)", (ROOT / "_toc.yml").read_text(encoding="utf-8"), re.MULTILINE
    ):
        path = BOOK / f"{name}.md"
        text = path.read_text(encoding="utf-8") if path.is_file() else ""
        reader = create_nb_reader(str(path), markdown, NbParserConfig(), text)
        notebook = reader.read(text) if reader else None
        if notebook is not None and any(cell.cell_type == "code" for cell in notebook.cells):
            found.append(Page(name, path, notebook))
    return found


def execute(cache_folder: Path, jobs: int) -> list[str]:
    """Run the cells of all pages that are not in the cache; return the pages with a failed cell.

    cache_folder: the builder's cache. jobs: pages at a time; each keeps one core busy.
    """
    cache_folder.mkdir(parents=True, exist_ok=True)
    cache = get_cache(str(cache_folder))
    pages = pages_with_cells()
    to_run = sorted((page for page in pages if not _is_cached(cache, page)), key=lambda page: -page.work)
    if not to_run:
        return []
    known = f"; {len(pages) - len(to_run)} are unchanged" if len(to_run) < len(pages) else ""
    say(f"running the cells of {len(to_run)} pages, {min(jobs, len(to_run))} at a time{known}")
    # Else the first figure would find matplotlib's fonts, and a slow machine would print a warning into the page.
    subprocess.run([sys.executable, "-c", "import matplotlib.font_manager"], capture_output=True, check=False)
    timeout = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))["execute"]["timeout"]
    failed, waiting, began = [], list(to_run), time.monotonic()
    jobs = min(jobs, len(to_run))
    with ProcessPoolExecutor(jobs) as pool:
        # No page is handed over before a process is free: an interrupted run would go on with it.
        begun = iter(to_run)
        running = {pool.submit(run_cells, page, timeout): page for page in itertools.islice(begun, jobs)}
        try:
            while running:
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    page, result = running.pop(future), future.result()
                    waiting.remove(page)
                    running.update({pool.submit(run_cells, each, timeout): each for each in itertools.islice(begun, 1)})
                    if result.err is not None:
                        failed.append(page.name)
                        say(f"book/{page.name}.md: ERROR: a cell failed\n{result.exc_string}")
                        continue
                    bundle = CacheBundleIn(result.nb, str(page.path), data={"execution_seconds": result.time})
                    cache.cache_notebook_bundle(bundle, check_validity=False, overwrite=True)
                    left = clock(remaining(to_run, waiting, jobs, time.monotonic() - began))
                    done = f"page {len(to_run) - len(waiting)} of {len(to_run)}"
                    say(f"{done}: {page.name}, {result.time:.0f} s" + (f", about {left} left" if waiting else ""))
        except BaseException:
            for process in multiprocessing.active_children():
                process.terminate()  # a process whose cells are running ends their kernel first
            raise
    return failed


def remaining(pages: list[Page], waiting: list[Page], jobs: int, elapsed: float) -> float:
    """Return the seconds that the waiting pages will take, by the work that was done in the elapsed seconds.

    The first jobs - 1 waiting pages are running, and count as half done; one more has just begun.
    """
    done = sum(page.work for page in pages) - sum(page.work for page in waiting)
    done += sum(page.work for page in waiting[: jobs - 1]) / 2
    return elapsed / done * (sum(page.work for page in pages) - done)


def run_cells(page: Page, timeout: float) -> ExecutionResult:
    """Run a page's cells in a kernel, in the page's folder. timeout: seconds, of each cell."""
    result = single_nb_execution(page.notebook, cwd=str(page.path.parent), timeout=timeout, allow_errors=False)
    if result.err is not None:
        result.err = str(result.err)  # nbclient's exceptions cannot be pickled
    return result


def _is_cached(cache: JupyterCacheAbstract, page: Page) -> bool:
    try:
        cache.match_cache_notebook(page.notebook)
    except KeyError:
        return False
    return True
