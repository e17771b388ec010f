"""`--shard K/N` cuts the suite into parts: each test in exactly one, and what shares a class in the same."""

import re
from importlib.util import module_from_spec, spec_from_file_location

import pytest

from autograder import catalogue
from autograder.sandbox.backends import BACKENDS

pytest_plugins = ["pytester"]
FILE = """
import pytest

@pytest.mark.parametrize("n", range(3))
def test_alone(n): pass

@pytest.mark.xdist_group("class")
def test_of_a_class(): pass
"""


@pytest.fixture
def suite(pytester: pytest.Pytester, root) -> pytest.Pytester:
    conftest = (root / "tests" / "conftest.py").read_text(encoding="utf-8")
    pytester.makeconftest(conftest)
    pytester.makepyfile(unchanged=(root / "tests" / "unchanged.py").read_text(encoding="utf-8"))
    pytester.makepyprojecttoml('[tool.pytest.ini_options]\nmarkers = ["xdist_group"]\n')
    pytester.makepyfile(**{f"test_{name}": FILE for name in "abcdefgh"})
    return pytester


def collected(suite: pytest.Pytester, *arguments: str) -> list[str]:
    return [
        line for line in suite.runpytest("--collect-only", "-q", "-p", "no:xdist", *arguments).outlines if "::" in line
    ]


def test_every_test_is_in_exactly_one_shard(suite):
    parts = [collected(suite, "--shard", f"{number}/3") for number in (1, 2, 3)]
    assert all(parts)
    assert sorted(line for part in parts for line in part) == sorted(collected(suite))


def test_what_stands_in_one_file_or_one_group_stays_together(suite):
    parts = [collected(suite, "--shard", f"{number}/3") for number in (1, 2, 3)]
    assert sum(any("test_of_a_class" in line for line in part) for part in parts) == 1
    for name in "abcdefgh":
        assert sum(any(f"test_{name}.py::test_alone" in line for line in part) for part in parts) == 1


@pytest.mark.parametrize("wrong", ["0/3", "4/3", "half"])
def test_a_part_that_does_not_exist_is_refused_by_name(suite, wrong):
    result = suite.runpytest("--collect-only", "--shard", wrong)
    assert result.ret != 0
    assert any("expected K/N with K from 1 to N" in line for line in result.outlines + result.errlines)


@pytest.fixture
def conftest(root):
    """The module of the suite's own `conftest.py`, under a name that no other has."""
    spec = spec_from_file_location("conftest_of_all", root / "tests" / "conftest.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_longest_are_dealt_out_so_that_four_parts_are_within_a_tenth_of_one_another(conftest):
    loads = [0] * 4
    for name, part in conftest._dealt(4).items():
        loads[part] += conftest.LONG[name]
    assert max(loads) < 1.1 * min(loads), loads


def test_what_is_said_to_take_long_exists(root, conftest):
    files = sorted((root / "tests").rglob("test_*.py"))
    texts = "".join(path.read_text(encoding="utf-8") for path in files)
    known = {path.stem for path in files} | {assignment.id for assignment in catalogue.ASSIGNMENTS}
    known |= {f"known-{name}" for name in catalogue.exercise_ids()} | {f"attacks-{name}" for name in BACKENDS}
    named = {*conftest.LONG, *conftest.ONLY_IN_ALL}
    assert {name for name in named if name not in known and f'xdist_group("{name}")' not in texts} == set()


DECLARED = re.compile(r"^ONLY_IN_ALL.*?^(?=LEFT_OUT)", re.MULTILINE | re.DOTALL)
LONG_FILE = {"test_c": "what takes long in c"}


@pytest.fixture
def suite_with_a_long_file(suite, root):
    conftest = (root / "tests" / "conftest.py").read_text(encoding="utf-8")
    suite.makeconftest(DECLARED.sub(f"ONLY_IN_ALL = {LONG_FILE!r}\n", conftest))
    return suite


def test_the_short_and_the_long_tests_are_together_all(suite_with_a_long_file):
    short, rest = collected(suite_with_a_long_file), collected(suite_with_a_long_file, "--rest")
    assert rest and all("test_c.py" in line for line in rest)
    assert not any("test_c.py::test_alone" in line for line in short)
    assert sorted(short + rest) == sorted(collected(suite_with_a_long_file, "--all"))


def test_a_file_that_is_named_runs_in_full(suite_with_a_long_file):
    assert collected(suite_with_a_long_file, "test_c.py")


NEEDS = """
import pytest

@pytest.fixture
def book(): pass

def test_reads_a_page(book): pass

@pytest.mark.parametrize("name", ["bubblewrap", "landlock"])
def test_of_a_sandbox(name): pass

def test_of_a_part(part, pytestconfig):
    assert len(part(range(9), 3)) == (9 if pytestconfig.getoption("--all") else 3)
"""


def test_what_needs_the_built_book_or_another_sandbox_is_long(suite):
    suite.makepyfile(test_needs=NEEDS)
    rest = {line.partition("::")[2] for line in collected(suite, "--rest")}
    assert rest == {"test_reads_a_page", "test_of_a_sandbox[landlock]"}


@pytest.mark.parametrize("everything", [(), ("--all",)])
def test_a_part_is_drawn_and_everything_is_all_of_it(suite, everything):
    suite.makepyfile(test_needs=NEEDS)
    assert suite.runpytest_subprocess("-p", "no:cacheprovider", "-k", "of_a_part", *everything).ret == 0


@pytest.mark.parametrize("workers", [(), ("-n", "2")])
def test_the_last_lines_say_what_was_not_run_and_why(suite_with_a_long_file, workers):
    suite_with_a_long_file.makepyfile(test_z="import pytest\n\n\ndef test_skips():\n    pytest.skip('no GPU here')\n")
    lines = suite_with_a_long_file.runpytest_subprocess("-p", "no:cacheprovider", *workers).outlines
    assert "not run: 1 skipped: no GPU here" in lines
    assert any(re.fullmatch(r"not run: \d+ long tests, which `make test-all` runs:", line) for line in lines)
    assert any(LONG_FILE["test_c"] in line for line in lines)
