"""What tests of several folders share: things made once for all workers, one Chromium, and who runs what first."""

import fcntl
import os
import shutil
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
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep tests that share a module's fixture on one worker, which makes it once; let the longest begin first."""
    for item in items:
        if _shares_with_its_module(item) and not list(item.iter_markers("xdist_group")):
            item.add_marker(pytest.mark.xdist_group(item.path.stem))
    items.sort(key=_place)  # a stable sort: within a group the order stays


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
