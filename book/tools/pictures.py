"""The pictures of the teachers' pages: feedback, dashboard and formgrader of the sample class.

    make sample-class
    python -m book.tools.pictures

writes book/teach/pictures/*.webp, and beside them outline.json: the bones of the pages that were photographed. When a
page gets other bones, a test says that its picture is old.
"""

import contextlib
import io
import json
import os
import re
import secrets
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, sync_playwright

ROOT = Path(__file__).resolve().parents[2]
CLASS = ROOT / "build" / "sample_class"
PICTURES = ROOT / "book" / "teach" / "pictures"
PAGES = ROOT / "autograder" / "reports" / "pages"
ASSIGNMENT, STUDENT = "05_self_attention", "no-scaling"
WIDTH, WIDE, HEIGHT = 900, 1200, 760  # CSS pixels; formgrader folds its menu on a narrow page
LARGEST = 100_000  # bytes of a picture
SERVER_SECONDS = 120  # to wait for JupyterLab and for its list
BONE = re.compile(r"<(h1|h2|h3|table|details|section|svg|dl|pre|input)\b[^>]*?(?:class=\"([\w -]+)\")?[^>]*>")


def outline() -> dict[str, list[str]]:
    """Template -> its structure: headings, tables, folds and so on with their classes, without text."""
    return {
        name: [" ".join(filter(None, found.groups())) for found in BONE.finditer(_text(name))]
        for name in ("feedback.html.j2", "dashboard.html.j2")
    }


def _text(template: str) -> str:
    return (PAGES / template).read_text(encoding="utf-8")


@contextlib.contextmanager
def formgrader() -> Iterator[str]:
    """Run JupyterLab in the sample class's folder; yields formgrader's address with its token."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    token = secrets.token_hex(16)
    command = [sys.executable, "-m", "jupyter", "lab", "--no-browser", f"--ServerApp.port={port}"]
    command += [f"--IdentityProvider.token={token}", "--log-level=ERROR"]
    command += ["--allow-root"] if os.geteuid() == 0 else []
    server = subprocess.Popen(command, cwd=CLASS, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _wait(f"http://127.0.0.1:{port}/api/status?token={token}")
        # by way of the log-in: formgrader's own address, opened first, gets a cookie for its own pages alone
        yield f"http://127.0.0.1:{port}/login?next=%2Fformgrader%2Fmanage_submissions%2F{ASSIGNMENT}&token={token}"
    finally:
        server.terminate()
        server.wait()


def _wait(address: str) -> None:
    until = time.monotonic() + SERVER_SECONDS
    while time.monotonic() < until:
        with contextlib.suppress(OSError), urllib.request.urlopen(address):
            return
        time.sleep(0.5)
    raise TimeoutError(f"JupyterLab did not answer within {SERVER_SECONDS} s")


def photograph(page: Page, name: str) -> None:
    """Write a screenshot of the page as name.webp, in the best quality within the size limit."""
    image = Image.open(io.BytesIO(page.screenshot()))
    for quality in (90, 80, 65, 50):
        written = io.BytesIO()
        image.save(written, "WEBP", quality=quality, method=6)
        if len(written.getvalue()) < LARGEST:
            break
    PICTURES.mkdir(parents=True, exist_ok=True)
    (PICTURES / f"{name}.webp").write_bytes(written.getvalue())
    print(f"{name}.webp: {len(written.getvalue()) // 1000} kB")


def main() -> int:
    """Take all pictures; returns 0, or 2 where there is no sample class."""
    feedback = CLASS / "classroom" / "feedback" / STUDENT / ASSIGNMENT / "self_attention.html"
    dashboard = CLASS / "classroom" / "dashboard" / f"{ASSIGNMENT}.html"
    if not feedback.is_file() or not dashboard.is_file():
        print(f"{CLASS.relative_to(ROOT)} holds no graded class: make sample-class", file=sys.stderr)
        return 2
    with sync_playwright() as playwright:
        found = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
        page.goto(feedback.as_uri())
        photograph(page, "feedback")
        page.goto(dashboard.as_uri())
        photograph(page, "dashboard")
        page.locator("section.card[aria-labelledby^=card]").first.evaluate("card => card.scrollIntoView()")
        photograph(page, "card")
        with formgrader() as address:
            page.set_viewport_size({"width": WIDE, "height": HEIGHT})
            page.goto(address)
            page.get_by_text(STUDENT).first.wait_for(timeout=1000 * SERVER_SECONDS)
            photograph(page, "formgrader")
        browser.close()
    (PICTURES / "outline.json").write_text(json.dumps(outline(), indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
