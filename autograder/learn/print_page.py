"""A page as a PDF, printed by a browser that is on this machine anyway."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from autograder.course import CourseError

NAMES = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "microsoft-edge",
    "chrome",
    "msedge",
)
PLACES = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Microsoft Edge.app/Contents/MacOS/Microsoft Edge",
    r"C:\Program Files\Google\Chrome\Application\chrome.exe",
    r"C:\Program Files (x86)\Google\Chrome\Application\chrome.exe",
    r"C:\Program Files (x86)\Microsoft\Edge\Application\msedge.exe",
)
SECONDS = 120.0  # a browser that is started for the first time is slow


def browser() -> str:
    """The browser for printing; CHROMIUM names another. Raises CourseError if none is found."""
    named = os.environ.get("CHROMIUM")
    found = named or next(filter(None, map(shutil.which, NAMES)), None)
    found = found or next((place for place in PLACES if Path(place).is_file()), None)
    if found is None:
        raise CourseError(
            "--pdf: expected Chrome, Chromium or Edge on this machine, found none (the variable CHROMIUM may name "
            "one). Without the option, open the page in any browser and print it."
        )
    return found


def to_pdf(page: Path, pdf: Path, printer: str) -> None:
    """Print an HTML file. Raises CourseError if the browser does not write the PDF."""
    # As root, as in a container, Chromium starts only without its own sandbox; the page is ours and has no script.
    alone = ["--no-sandbox"] if getattr(os, "geteuid", lambda: 1)() == 0 else []
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        written = Path(profile, "page.pdf")
        command = [
            printer,
            "--headless",
            "--disable-gpu",
            "--no-pdf-header-footer",
            *alone,
            f"--user-data-dir={profile}",
            f"--print-to-pdf={written}",
            page.resolve().as_uri(),
        ]
        try:
            subprocess.run(command, capture_output=True, timeout=SECONDS, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise CourseError(f"--pdf: {printer} did not print {page}: {error}") from error
        if not written.is_file():
            raise CourseError(f"--pdf: {printer} did not print {page}. Open the page in a browser and print it.")
        shutil.move(written, pdf)
