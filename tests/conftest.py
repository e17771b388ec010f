"""What tests of several folders share: one Chromium, since a process can hold only one Playwright; and shards."""

import os
import re
import shutil
import zlib
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


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--shard", metavar="K/N", help="of N parts of the suite, run the K-th, such as 1/4")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the tests of one shard. What shares a class or a book, a file or an xdist group, stays together."""
    if (asked := config.getoption("--shard")) is None:
        return
    named = re.fullmatch(r"([1-9]\d*)/([1-9]\d*)", asked)
    if named is None or int(named[1]) > int(named[2]):
        raise pytest.UsageError(f"--shard: expected K/N with K from 1 to N, such as 1/4, got {asked!r}")
    wanted, count = int(named[1]) - 1, int(named[2])
    mine = [item for item in items if shard(item, count) == wanted]
    config.hook.pytest_deselected(items=[item for item in items if shard(item, count) != wanted])
    items[:] = mine


def shard(item: pytest.Item, count: int) -> int:
    """The part that a test belongs to, the same in every process and on every machine."""
    group = item.get_closest_marker("xdist_group")
    together = str(group.args or group.kwargs) if group else item.nodeid.partition("::")[0]
    return zlib.crc32(together.encode()) % count
