"""The built book, once for all workers, and a Chromium that notices everything a page does."""

import contextlib
import fcntl
import functools
import http.server
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from bs4 import BeautifulSoup, Tag
from playwright.sync_api import Browser, Page

ROOT = Path(__file__).resolve().parents[2]


class Built(NamedTuple):
    """A finished build: the folder of the pages and the builder's output."""

    site: Path
    log: str

    def soup(self, page: str) -> BeautifulSoup:
        """Return one page, parsed once; a test that modifies it must copy it."""
        return _parsed(self.site / f"{page}.html")

    def section(self, page: str, label: str) -> Tag:
        """Return the section of a page that has this label."""
        marked = self.soup(page).find(id=label)
        assert marked is not None, f"no section of {page} has the label {label}"
        return marked if marked.name == "section" else marked.find_parent("section")

    def pages(self) -> list[str]:
        """Return the names of the pages in the table of contents."""
        return re.findall(r"^\s*(?:- file|root): (\S+)", (ROOT / "_toc.yml").read_text(encoding="utf-8"), re.MULTILINE)


@functools.cache
def _parsed(path: Path) -> BeautifulSoup:
    return BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")


def build(shared: Path, *arguments: str) -> Built:
    """Run book/tools/build.py once per test run; other workers wait and read its log."""
    name = "-".join(["book", *arguments]).replace("--", "")
    log = shared / f"{name}.log"
    with open(shared / f"{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not log.exists():
            command = [sys.executable, str(ROOT / "book" / "tools" / "build.py"), *arguments]
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
            assert done.returncode == 0, f"{command} failed:\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
            log.write_text(done.stdout + done.stderr, encoding="utf-8")
    return Built(ROOT / "build" / ("site-plain" if "--plain" in arguments else "site"), log.read_text(encoding="utf-8"))


@pytest.fixture(scope="session")
def book(shared_folder: Path) -> Built:
    """The book as `make site` builds it."""
    return build(shared_folder)


@pytest.fixture(scope="session")
def plain_book(book: Built, shared_folder: Path) -> Built:
    """The book as plain Sphinx builds it, which finds the cells executed."""
    return build(shared_folder, "--plain")


@pytest.fixture(scope="session")
def address(book: Built, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The site served below a path, as it is on a project page; the address ends without a slash."""
    root = tmp_path_factory.mktemp("served")
    (root / "some").mkdir()
    (root / "some" / "course").symlink_to(book.site)

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(root)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}/some/course"
    server.shutdown()


class Visit:
    """A loaded page, and the events while it loaded."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.requests: list[str] = []
        self.failures: list[str] = []
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("requestfailed", lambda request: self.failures.append(f"failed: {request.url}"))
        page.on("response", self._note_response)
        page.on("console", lambda said: self.failures.append(said.text) if said.type == "error" else None)
        page.on("pageerror", lambda error: self.failures.append(f"script error: {error}"))

    def _note_response(self, response) -> None:
        if response.status >= 400:
            self.failures.append(f"{response.status}: {response.url}")

    def load(self, url: str) -> "Visit":
        """Open a page and wait for its scripts."""
        self.page.goto(url)
        return self


@pytest.fixture
def visit(visits) -> Iterator:
    """A function that opens an address in a fresh window: visit(url, width=1280, theme="light")."""
    with visits() as open_page:
        yield open_page


@pytest.fixture(scope="session")
def visits(browser: Browser) -> Callable[[], contextlib.AbstractContextManager]:
    """The fixture `visit` as a context manager, for windows that outlive a test."""
    return functools.partial(_visits, browser)


@contextlib.contextmanager
def _visits(browser: Browser) -> Iterator:
    contexts = []

    def open_page(url: str, width: int = 1280, theme: str = "light") -> Visit:
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=theme, has_touch=width < 500, is_mobile=width < 500
        )
        contexts.append(context)
        context.add_init_script(f"localStorage.setItem('mode', '{theme}'); localStorage.setItem('theme', '{theme}')")
        return Visit(context.new_page()).load(url)

    try:
        yield open_page
    finally:
        for context in contexts:
            context.close()


@pytest.fixture
def chapter(request, address, visit) -> Page:
    """The page that the test's module names as CHAPTER, opened, with its asides unfolded."""
    page = visit(f"{address}/{request.module.CHAPTER}.html").page
    page.evaluate("document.querySelectorAll('details.aside').forEach((fold) => { fold.open = true; })")
    return page


@pytest.fixture
def printed(request, book: Built) -> str:
    """All that the cells of the page that the test's module names as CHAPTER have printed."""
    return "\n".join(node.get_text() for node in book.soup(request.module.CHAPTER).select(".cell_output"))
