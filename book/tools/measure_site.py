"""How fast the built site is on a slow phone: every page in Chromium, on a slowed processor and a slow line.

    python book/tools/measure_site.py                 every page of the table of contents
    python book/tools/measure_site.py index 05        pages whose names begin so

The processor is slowed to a quarter, the line to 1.6 Mbit/s with 150 ms, the screen is 390 pixels wide, and what is
sent is compressed as a server would. Each page is loaded into an empty cache. The exit status is 1 where a page misses
a target. On a busy machine the times are longer than they are.
"""

import argparse
import functools
import gzip
import http.server
import os
import re
import shutil
import sys
import threading
from pathlib import Path
from typing import NamedTuple

from playwright.sync_api import Browser, sync_playwright

ROOT = Path(__file__).resolve().parents[2]
SITE = ROOT / "build" / "site"
SLOWER, BYTES_A_SECOND, LATENCY = 4, 1_600_000 / 8, 150
FIRST_PAINT, LOADED, SHIFT = 2.0, 8.0, 0.05  # seconds, seconds, share of the screen
LANDING_SIZE, PAGE_SIZE = 250_000, 400_000  # bytes as sent
WATCH = """
window.seen = { shift: 0, paint: null };
new PerformanceObserver((list) => list.getEntries().forEach((entry) => {
  if (!entry.hadRecentInput) window.seen.shift += entry.value;
})).observe({ type: "layout-shift", buffered: true });
new PerformanceObserver((list) => list.getEntries().forEach((entry) => {
  if (entry.name === "first-contentful-paint") window.seen.paint = entry.startTime;
})).observe({ type: "paint", buffered: true });
"""


class Measured(NamedTuple):
    """The cost of loading a page: seconds to the first paint and to the end, layout shift, bytes sent, requests."""

    paint: float
    loaded: float
    shift: float
    size: int
    requests: int

    def misses(self, page: str) -> list[str]:
        """Return the targets that the page misses."""
        largest = LANDING_SIZE if page == "index" else PAGE_SIZE
        return [
            f"{what} {value:g} > {most:g}"
            for what, value, most in (
                ("first paint", round(self.paint, 2), FIRST_PAINT),
                ("load", round(self.loaded, 2), LOADED),
                ("shift", round(self.shift, 3), SHIFT),
                ("bytes", self.size, largest),
            )
            if value > most
        ]


class Compressing(http.server.SimpleHTTPRequestHandler):
    """Serves files as a web server does: compressed, with connections that are kept."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Answer with the file that the path names."""
        path = Path(self.translate_path(self.path))
        if not path.is_file():
            self.send_error(404)
            return
        packed = path.suffix in {".html", ".js", ".css", ".svg", ".json", ".ipynb"}
        body = gzip.compress(path.read_bytes(), 6) if packed else path.read_bytes()
        self.send_response(200)
        self.send_header("Content-Type", self.guess_type(str(path)))
        if packed:
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def measure(browser: Browser, address: str) -> Measured:
    """Load one page in a window of its own and measure it."""
    context = browser.new_context(viewport={"width": 390, "height": 844}, is_mobile=True, has_touch=True)
    context.add_init_script(WATCH)
    page = context.new_page()
    tools = context.new_cdp_session(page)
    tools.send("Network.enable")
    tools.send("Emulation.setCPUThrottlingRate", {"rate": SLOWER})
    line = {"latency": LATENCY, "downloadThroughput": BYTES_A_SECOND, "uploadThroughput": BYTES_A_SECOND}
    tools.send("Network.emulateNetworkConditions", {"offline": False} | line)
    sizes: list[float] = []
    tools.on("Network.loadingFinished", lambda event: sizes.append(event["encodedDataLength"]))
    page.goto(address, wait_until="load", timeout=120_000)
    page.wait_for_timeout(1500)  # what still moves after it is loaded counts as a shift
    loaded = page.evaluate("performance.getEntriesByType('navigation')[0].loadEventEnd")
    seen = page.evaluate("window.seen")
    context.close()
    return Measured(seen["paint"] / 1000, loaded / 1000, seen["shift"], int(sum(sizes)), len(sizes))


def pages(wanted: list[str]) -> list[str]:
    """Return the pages of the table of contents, or those of them whose names begin as wanted."""
    contents = (ROOT / "_toc.yml").read_text(encoding="utf-8")
    found = re.findall(r"^\s*(?:- file|root): (\S+)", contents, re.MULTILINE)
    return [page for page in found if not wanted or page.startswith(tuple(wanted))]


def main() -> int:
    """Measure, print a row for each page, and return 1 if a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pages", nargs="*", help="beginnings of names")
    wanted = parser.parse_args().pages
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Compressing, directory=str(SITE)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    named = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    missed = False
    print(f"{'page':28} {'paint s':>8} {'load s':>7} {'shift':>6} {'KB':>6} {'files':>6}")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=named, args=["--no-sandbox"])
        for page in pages(wanted):
            took = measure(browser, f"http://127.0.0.1:{server.server_address[1]}/{page}.html")
            misses = took.misses(page)
            missed = missed or bool(misses)
            said = f"{took.paint:8.2f} {took.loaded:7.2f} {took.shift:6.3f} {took.size / 1000:6.0f} {took.requests:6}"
            print(f"{page:28} {said}  {'; '.join(misses)}", flush=True)
        browser.close()
    server.shutdown()
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
