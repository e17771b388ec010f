"""What tests of several folders share: one Chromium, since a process can hold only one Playwright."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """The system's Chromium, else Playwright's own; CHROMIUM names another one."""
    named = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, CHROMIUM_NAMES)), None)
    with sync_playwright() as playwright:
        if not Path(named or playwright.chromium.executable_path).exists():
            refuse = pytest.fail if os.environ.get("CI") == "true" else pytest.skip
            refuse("no Chromium on this machine: `make setup` says how to get one")
        chromium = playwright.chromium.launch(executable_path=named, args=["--no-sandbox"])
        yield chromium
        chromium.close()
