"""What tests of several folders share: things made once for all workers, one Chromium, who runs what first; shards."""

import fcntl
import functools
import os
import re
import shutil
import subprocess
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright
from unchanged import Unchanged

CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")

# What takes longest, a group of tests or a file, longest first, with its seconds, roughly, on two cores. Begun last, it
# would leave the other worker without work; two of them in one shard, the other shards.
LONG = {
    "drawn-claims": 100, "every-page": 300, "test_jupyterlab": 225, "attacks-bubblewrap": 200, "walk": 150,
    "09_blocks": 135, "15_pretrained": 115, "attacks-landlock": 110, "sandbox": 95, "13_gpt": 85, "grade-faults": 75,
    "test_road": 75, "grade": 70, "test_extension": 65, "test_browser": 65, "10_training": 60, "test_drawn_parts": 60,
    "14_vision": 60, "11_inference": 60, "larger-recipe": 60, "test_chapter_13": 55, "test_intake": 50,
    "test_ordinary_user": 50, "test_certificate": 45, "built-in-training": 45, "test_commands_on_pretended_device": 40,
    "drawn-garbage": 40, "test_types": 40, "06_multi_head_attention": 40, "16_efficient": 40, "test_broken_parts": 40,
    "test_killed_and_shared": 40, "test_own_exercises": 35, "test_exported_page": 35, "test_try_file": 35,
    "test_pages": 30, "12_capstone": 30, "07_positional_encoding": 30, "01_why_attention": 30, "test_live_model": 30,
    "test_forged_replies": 30, "test_untrusted_files": 30, "reports": 30, "test_assemble": 30,
    "test_blank_capstone": 25, "test_widgets": 25, "00_start_here": 25, "04_softmax": 25, "08_masks": 25,
    "02_text_to_vectors": 25, "03_similarity": 25, "sample-class": 25, "test_rebuild": 25, "test_check": 25,
    "test_chapter_10": 25, "test_replayed_answers": 20, "test_execute": 20, "test_command_line": 20,
    "known-transformer": 20, "05_self_attention": 20, "test_inventory_page": 20, "test_formgrader": 20,
    "test_graded_by_hand": 20, "known-decoder-layer": 20, "known-gpt-block": 20, "test_hosted": 20,
    "test_said_of_strangers": 20, "test_release": 20, "test_sandbox_accounts": 20, "known-encoder-layer": 15,
    "known-vit": 15, "known-gpt": 15, "test_grading_benchmark": 15, "test_two_parts": 15, "test_chapter_08": 15,
    "test_not_checked": 10,
}  # fmt: skip

# What only `make test-all` runs -> what it covers, as the last lines of a shorter run say it. Here by what a test
# needs, a fixture or a value of its parameters. To build the book takes minutes; `make site` does it too, with warnings
# as errors. Each test of the sandboxes runs with bubblewrap all the same.
LONG_BY_NEED = {
    "book": "the built book, most of it in a browser",
    "landlock": "the sandbox by landlock",
}

# And here by groups and files. The comments say what guards the same in `make test`.
ONLY_IN_ALL = {
    # test_entries judges every known answer in process; chapter 05 and the sample class are graded for real.
    **dict.fromkeys(
        (
            *("00_start_here", "01_why_attention", "02_text_to_vectors", "03_similarity", "04_softmax"),
            "06_multi_head_attention",
        ),
        "known answers of chapters 00 to 04 and 06 in real gradings",
    ),
    **dict.fromkeys(
        ("07_positional_encoding", "08_masks", "09_blocks", "10_training", "11_inference"),
        "known answers of chapters 07 to 11 in real gradings",
    ),
    **dict.fromkeys(
        ("12_capstone", "13_gpt", "14_vision", "15_pretrained", "16_efficient"),
        "known answers of chapters 12 to 16 in real gradings",
    ),
    # `release` refuses a solution that does not earn everything, and the committed exercises are what it released;
    # test_entries judges the known answers of each entry.
    "test_solutions_and_blanks": "what all solutions and all blanks earn",
    "test_grading_benchmark": "the benchmark of grading",  # test_grade grades a class
    "test_blank_capstone": "gradings of chapter 12 that train nothing",  # test_two_parts grades parts of a notebook
    "test_own_exercises": "a course with exercises of its own, graded",  # test_teach reads the page that shows one
    "test_replayed_answers": "results of one grading, returned in another",  # test_hidden_probes draws each probe twice
    "test_certificate": "certificates, their page and their PDF",  # test_assemble judges a learner's notebooks as well
    "test_execute": "pages that run, fail, are interrupted and run again",  # `make site` runs every cell
    "test_hosted": "a notebook in an environment without the course",  # test_released compares its first cell
    "larger-recipe": "the benchmark of the Multi30k recipe",  # test_benchmark measures the built-in one
    "test_jupyterlab": "notebooks and explorers in JupyterLab",  # test_desk runs them in a kernel
    # test_sandbox, test_sandbox_accounts and test_hiding try each wall for itself
    **dict.fromkeys(("attacks-bubblewrap", "attacks-landlock"), "a batch of attacks on each sandbox"),
    "grade-faults": "gradings that are killed, on full disks, on a cluster",  # test_grade, test_points, test_intake
    "drawn-garbage": "thousands of forged replies and broken notebooks",  # both files try each kind once
    "drawn-claims": "the claims of explanations about hundreds of drawn mistakes",  # test_claims draws forty
    "built-in-training": "a whole built-in training run",  # test_command_line trains a few steps, test_training to BLEU
    "test_commands_on_pretended_device": "every command on a pretended device",  # test_pretended_device counts a step's
    "test_ordinary_user": "the sandbox started by an ordinary user",  # test_sandbox starts it as this user
    "test_formgrader": "formgrader in a browser",  # test_reports reads the pages that it shows
    "test_graded_by_hand": "points that a person gave, in formgrader",  # test_points
    "walk": "every command that the teacher's pages show",  # test_teach reads the pages and their settings
    "test_inventory_page": "the inventory in a browser",  # test_inventory proves its key
    "test_exported_page": "an exported translator in a browser",  # test_live_model compares the engine with the package
    "test_road": "a newcomer's way through all chapters, with a training run",  # test_assemble, test_own_code
    "test_drawn_parts": "randomly drawn styles of the assembled parts",  # test_given_parts
    "test_broken_parts": "training with broken parts",  # test_own_code compares with each fault at a small size
    "test_killed_and_shared": "training runs that are killed, or shared by several processes",  # test_trainer resumes
}

DRAWN = "two thirds of the known answers in real gradings, five sixths of the drawn claims, most forged results"
LEFT_OUT = pytest.StashKey[Counter]()
UNCHANGED = pytest.StashKey[Unchanged]()
Make = Callable[[Path], object]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep tests that share a module's fixture on one worker, which makes it once; let the longest begin first."""
    for item in items:
        if _shares_with_its_module(item) and not list(item.iter_markers("xdist_group")):
            item.add_marker(pytest.mark.xdist_group(item.path.stem))
    items.sort(key=_place)  # a stable sort: within a group the order stays
    _keep_chosen(config, items)
    _keep_shard(config, items)
    config.stash[UNCHANGED].keep_changed(items)


def pytest_configure(config: pytest.Config) -> None:
    """Record what passed, and skip it while its inputs are unchanged."""
    config.stash[UNCHANGED] = Unchanged(config, _together)
    config.pluginmanager.register(config.stash[UNCHANGED])


def _shares_with_its_module(item: pytest.Item) -> bool:
    fixtures = getattr(item, "_fixtureinfo", None)
    known = fixtures.name2fixturedefs.values() if fixtures else ()
    return any(fixture[-1].scope == "module" for fixture in known)


def _place(item: pytest.Item) -> int:
    return list(LONG).index(_together(item)) if _together(item) in LONG else len(LONG)


def _together(item: pytest.Item) -> str:
    """The group of tests that share a class, a book or a module's fixture: its name, else that of the file."""
    group = item.get_closest_marker("xdist_group")
    return [*group.args, *group.kwargs.values()][0] if group else item.path.stem


def _long(item: pytest.Item) -> str:
    """The reason why only `make test-all` runs a test; "" for one that `make test` runs."""
    call = getattr(item, "callspec", None)
    needs = {
        *getattr(item, "fixturenames", ()),
        *(value for value in (call.params if call else {}).values() if isinstance(value, str)),
    }
    return ONLY_IN_ALL.get(_together(item)) or next((LONG_BY_NEED[each] for each in LONG_BY_NEED if each in needs), "")


def _runs_all(config: pytest.Config) -> bool:
    """Whether nothing is left out: with --all, and for a named file."""
    named = config.args_source == config.ArgsSource.ARGS and not config.getoption("--rest")
    return config.getoption("--all") or named


@pytest.fixture(scope="session")
def part(pytestconfig: pytest.Config) -> Callable[[Sequence, int], Sequence]:
    """part(values, of): one of so many values, depending on the commit; all of them if nothing is left out."""

    def drawn(values: Sequence, of: int) -> Sequence:
        return values if _runs_all(pytestconfig) else values[_commit() % min(of, len(values)) :: of]

    return drawn


@functools.cache
def _commit() -> int:
    """A number that the commit determines; 0 where there is none."""
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "HEAD"]
    try:
        said = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    except OSError:
        return 0
    return int(said[:8] or "0", 16)


@pytest.fixture(scope="session")
def shared_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder shared by all workers of this test run."""
    base = tmp_path_factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


@pytest.fixture(scope="session")
def once(shared_folder: Path) -> Callable[[str, Make], Path]:
    """once(name, make): a folder that is made once per test run, while other workers wait.

    make: fills the empty folder. A test that changes its content must copy it.
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
    checked: as if the solution and the committed notebook had been checked before, which saves most of the time.
    """
    from autograder import course
    from autograder.prepare import check_cache, release, sample_class

    def of(assignment=sample_class.ASSIGNMENT, checked: bool = False) -> Path:
        def make(folder: Path) -> None:
            shutil.copy(sample_class.ROOT / course.MARKER, folder)
            shutil.copytree(sample_class.ROOT / "solutions" / assignment.id, folder / "solutions" / assignment.id)
            if checked:
                committed = check_cache.digest_folder(sample_class.ROOT / "exercises" / assignment.id)
                known = check_cache.inputs(folder, assignment) | {check_cache.BLANKS: committed}
                check_cache.CheckCache(folder).store(assignment, known)
            assert release.release([assignment.id], folder) == 0

        return once(f"released-{assignment.id}{'-unchecked' if checked else ''}", make)

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
    parser.addoption("--all", action="store_true", help="also run the long tests, ONLY_IN_ALL in tests/conftest.py")
    parser.addoption("--again", action="store_true", help="also run what passed and has not changed since")
    parser.addoption("--rest", action="store_true", help="run only the long tests")
    parser.addoption("--shard", metavar="K/N", help="of N parts of the suite, run the K-th, such as 1/4")


def _keep_chosen(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the short tests, with --all every test, with --rest the long ones. A file that is named runs in full."""
    if _runs_all(config):
        return
    left_out = [item for item in items if bool(_long(item)) != config.getoption("--rest")]
    config.hook.pytest_deselected(items=left_out)
    config.stash[LEFT_OUT] = Counter(map(_long, left_out))
    dropped = set(left_out)
    items[:] = [item for item in items if item not in dropped]


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A worker sends the main process what was left out."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["left_out"] = dict(session.config.stash.get(LEFT_OUT, {}))


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node) -> None:
    """All workers collect the same tests, so one of them says what was left out."""
    node.config.stash[LEFT_OUT] = Counter(getattr(node, "workeroutput", {}).get("left_out", {}))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print in the last lines what was not run, and why."""
    skipped = Counter(
        str(report.longrepr[2]).removeprefix("Skipped: ")
        for report in terminalreporter.stats.get("skipped", [])
        if isinstance(report.longrepr, tuple)
    )
    for reason, count in skipped.most_common():
        terminalreporter.write_line(f"not run: {count} skipped: {reason}")
    left_out = config.stash.get(LEFT_OUT, Counter())
    if left_out and not config.getoption("--rest"):
        terminalreporter.write_line(f"not run: {left_out.total():,} long tests, which `make test-all` runs:")
        for what, count in left_out.most_common():
            terminalreporter.write_line(f"  {count:5,}  {what}")
    if not _runs_all(config):
        terminalreporter.write_line(f"not run: {DRAWN}; others are drawn after each commit, `make test-all` runs all")


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
    """The shard of a test, the same in every process and on every machine; long tests are distributed evenly."""
    name = _together(item)
    return _dealt(count).get(name, zlib.crc32(name.encode()) % count)


@functools.cache
def _dealt(count: int) -> dict[str, int]:
    """Long test -> its shard, each assigned to the shard with the least time so far."""
    loads, parts = [0] * count, {}
    for name, seconds in LONG.items():
        parts[name] = loads.index(min(loads))
        loads[parts[name]] += seconds
    return parts
