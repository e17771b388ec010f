"""JupyterLab on a learner's own notebooks: `python -m autograder learn`, in the course's folder `make learn`."""

import argparse
import functools
import http.client
import os
import secrets
import shlex
import socket
import tempfile
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from autograder.address import SERVED, SETTING, book_address
from autograder.course import CourseError
from autograder.learn import notebooks, quiet

HOME = "attention-by-hand"
SITE = Path(__file__).resolve().parents[2] / "build" / "site"
PORT, BOOK_PORT = 8888, int(SERVED.rpartition(":")[2])
TRIED = 20  # ports, one after the other
LOCAL = "http://127.0.0.1:"
NO_BOOK = "not on this machine; read it where you got the course from"
NO_LAB = "JupyterLab is not installed here. To get it: python -m pip install jupyterlab ipywidgets"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument(
        "folder",
        nargs="?",
        type=Path,
        metavar="FOLDER",
        help=f"where your notebooks are, or will be (default: {HOME} in your home folder)",
    )
    parser.add_argument(
        "--port",
        type=int,
        default=PORT,
        help="port of JupyterLab; if it is taken, the next free one (default: %(default)s)",
    )
    parser.add_argument("--no-browser", action="store_true", help="print the address instead of opening a browser")


def run(chosen: argparse.Namespace) -> int:
    """Copy new notebooks, print all addresses, and serve until Ctrl-C.

    Raises CourseError without JupyterLab, a free port, or a usable folder.
    """
    try:
        from jupyterlab.labapp import LabApp
    except ModuleNotFoundError as error:
        raise CourseError(NO_LAB) from error
    folder = (chosen.folder or Path.home() / HOME).expanduser().resolve()
    port = free_port(chosen.port)
    with tempfile.TemporaryDirectory(prefix="learn-") as place, book() as address:
        copied = notebooks.copy(folder, "" if address.startswith(LOCAL) else address)
        quiet.settings(Path(place))
        opened, token = notebooks.to_open(folder), secrets.token_hex(16)
        _say("Your notebooks", f"{folder} ({copied})")
        for name, when in notebooks.due(folder, datetime.now(timezone.utc).replace(tzinfo=None)):
            _say("Due", f"{name}: {when.removeprefix('due ')}")
        _say("Your code in one", f"python -m autograder assemble --from {shlex.quote(str(folder))}")
        _say("The book", address or NO_BOOK)
        if address.startswith(LOCAL) and address != SERVED:
            _say("", f"(port {BOOK_PORT} is taken, so links in notebooks lead elsewhere; those in reports are right)")
        _say("JupyterLab", f"{LOCAL}{port}/lab/tree/{opened}?token={token}")
        if port != chosen.port:
            _say("", f"(port {chosen.port} is taken by another program)")
        print("Ctrl-C ends it. Before, save in the notebook with Ctrl+S.", flush=True)
        LabApp.launch_instance(_options(folder, port, token, opened, not chosen.no_browser))
    print(f"Ended. Your notebooks stay in {folder}.")
    return 0


def _say(what: str, where: str) -> None:
    print(f"{what:<16} {where}")


def _options(folder: Path, port: int, token: str, opened: str, browser: bool) -> list[str]:
    options = {
        "LabApp.log_level": "ERROR",
        "ServerApp.ip": "127.0.0.1",
        "ServerApp.port": port,
        "ServerApp.port_retries": 0,
        "ServerApp.root_dir": folder,
        "ServerApp.answer_yes": True,  # Ctrl-C asks nothing
        "ServerApp.open_browser": browser,
        "IdentityProvider.token": token,
        "LabApp.default_url": f"/lab/tree/{opened}",
    }
    root = ["--allow-root"] if getattr(os, "geteuid", lambda: 1)() == 0 else []
    return ["--log-level=ERROR", *(f"--{name}={value}" for name, value in options.items()), *root]


def free_port(first: int) -> int:
    """The first free port from this one on. Raises CourseError if twenty are taken."""
    if not 0 < first < 65_536 - TRIED:
        raise CourseError(f"--port: expected a number from 1 to {65_535 - TRIED}, got {first}.")
    for port in range(first, first + TRIED):
        if _is_free(port):
            return port
    raise CourseError(f"The ports {first} to {first + TRIED - 1} are all taken. Name another: --port {first + 1_000}")


def _is_free(port: int) -> bool:
    try:
        socket.create_server(("127.0.0.1", port)).close()
        return True
    except OSError:
        return False


@contextmanager
def book() -> Iterator[str]:
    """The book's address while JupyterLab runs: the one that is set, else that of a server for the built book, else "".
    It is in the environment of kernels that start meanwhile."""
    said = book_address()
    if said != SERVED or not (SITE / "index.html").is_file():
        yield said if said != SERVED else ""
        return
    if _serves_this_book(SERVED):  # `make serve` does
        yield SERVED
        return
    port = free_port(BOOK_PORT)
    with ThreadingHTTPServer(("127.0.0.1", port), functools.partial(_Quiet, directory=str(SITE))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        os.environ[SETTING] = f"http://127.0.0.1:{port}"
        try:
            yield os.environ[SETTING]
        finally:
            del os.environ[SETTING]
            server.shutdown()


def _serves_this_book(address: str) -> bool:
    """Whether the server at an address serves the book of this folder."""
    if _is_free(BOOK_PORT):
        return False
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with direct.open(f"{address}/objects.inv", timeout=2) as answer:
            return answer.read() == (SITE / "objects.inv").read_bytes()
    except (OSError, http.client.HTTPException):
        return False


class _Quiet(SimpleHTTPRequestHandler):
    """Serves files without logging."""

    def log_message(self, *words: object) -> None:
        """Log nothing."""
