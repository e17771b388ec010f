"""What tests of several folders share: things made once for all workers, one Chromium, who runs what first; shards."""

import fcntl
import os
import re
import shutil
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")

# The groups that take longest, longest first: begun last, one of them would leave the other worker without work.
LONG = (
    *("walk", "attacks-bubblewrap", "grade", "test_intake", "sandbox", "attacks-landlock", "sample-class"),
    *("test_not_checked", "test_two_parts", "test_formgrader"),
)

Make = Callable[[Path], object]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep tests that share a module's fixture on one worker, which makes it once; let the longest begin first."""
    for item in items:
        if _shares_with_its_module(item) and not list(item.iter_markers("xdist_group")):
            item.add_marker(pytest.mark.xdist_group(item.path.stem))
    items.sort(key=_place)  # a stable sort: within a group the order stays
    _keep_shard(config, items)


def _shares_with_its_module(item: pytest.Item) -> bool:
    fixtures = getattr(item, "_fixtureinfo", None)
    known = fixtures.name2fixturedefs.values() if fixtures else ()
    return any(fixture[-1].scope == "module" for fixture in known)


def _place(item: pytest.Item) -> int:
    names = [mark.args[0] for mark in item.iter_markers("xdist_group")]
    return min((LONG.index(name) for name in names if name in LONG), default=len(LONG))


@pytest.fixture(scope="session")
def shared_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that all workers of this test run see."""
    base = tmp_path_factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


@pytest.fixture(scope="session")
def once(shared_folder: Path) -> Callable[[str, Make], Path]:
    """once(name, make): a folder that is made one time in this test run, however many workers ask; others wait.

    make: fills the empty folder that it is given. Whoever wants to change what is in it takes a copy.
    """

    def folder_of(name: str, make: Make) -> Path:
        folder, made = shared_folder / f"once-{name}", shared_folder / f"once-{name}.made"
        with open(shared_folder / f"once-{name}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not made.exists():
                shutil.rmtree(folder, ignore_errors=True)
                folder.mkdir()
                make(folder)
                made.touch()
        return folder

    return folder_of


@pytest.fixture(scope="session")
def released(once) -> Callable[..., Path]:
    """released(assignment): a course with one assignment, released from its solution, and nobody's work yet.

    It is the sample class's assignment unless another is named. A test that changes the course takes a copy.
    """
    from autograder import course
    from autograder.prepare import release, sample_class

    def of(assignment=sample_class.ASSIGNMENT) -> Path:
        def make(folder: Path) -> None:
            shutil.copy(sample_class.ROOT / course.MARKER, folder)
            shutil.copytree(sample_class.ROOT / "solutions" / assignment.id, folder / "solutions" / assignment.id)
            assert release.release([assignment.id], folder) == 0

        return once(f"released-{assignment.id}", make)

    return of


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


def _keep_shard(config: pytest.Config, items: list[pytest.Item]) -> None:
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
