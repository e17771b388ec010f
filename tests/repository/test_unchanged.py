"""`make test` leaves out what passed here and has not changed since, and nothing else."""

import pytest

pytest_plugins = ["pytester"]
FILE = "import pytest\n\n\ndef test_one(): pass\n\n\ndef test_two(): assert {}\n"


@pytest.fixture
def suite(pytester: pytest.Pytester, root, monkeypatch) -> pytest.Pytester:
    """A small repository with a package, a grader and a book, each with a file of tests."""
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # they take longer than these tests
    pytester.makepyprojecttoml('[tool.pytest.ini_options]\nmarkers = ["xdist_group"]\ntestpaths = ["tests"]\n')
    for folder in ("transformer_ref", "autograder/catalogue/ch01_one", "autograder/catalogue/ch02_two", "book"):
        (pytester.path / folder).mkdir(parents=True)
    (pytester.path / "transformer_ref" / "model.py").write_text("x = 1\n")
    (pytester.path / "autograder" / "catalogue" / "ch01_one" / "first.py").write_text("x = 1\n")
    (pytester.path / "autograder" / "catalogue" / "ch02_two" / "second.py").write_text("x = 1\n")
    (pytester.path / "book" / "page.md").write_text("words\n")
    for folder in ("reference", "grader", "book"):
        (pytester.path / "tests" / folder).mkdir(parents=True)
        (pytester.path / "tests" / folder / f"test_{folder}.py").write_text(FILE.format(True))
    for name in ("first", "second"):
        marked = FILE.format(True).replace("def ", f'@pytest.mark.xdist_group("known-{name}")\ndef ')
        (pytester.path / "tests" / "grader" / f"test_{name}.py").write_text(marked)
    for name in ("conftest", "unchanged"):
        text = (root / "tests" / f"{name}.py").read_text(encoding="utf-8")
        (pytester.path / "tests" / f"{name}.py").write_text(text, encoding="utf-8")
    return pytester


def ran(suite: pytest.Pytester, *arguments: str) -> set[str]:
    """The files whose tests were run."""
    result = suite.runpytest_inprocess("-v", "-p", "no:cacheprovider", *arguments)
    files = {line.split("::")[0] for line in result.outlines if "::" in line and line.startswith("tests/")}
    return {file.rsplit("/", 1)[1].removeprefix("test_").removesuffix(".py") for file in files}


ALL = {"reference", "grader", "book", "first", "second"}


@pytest.mark.parametrize(
    ("changed", "again"),
    [
        ("book/page.md", {"book"}),
        ("autograder/catalogue/ch01_one/first.py", {"book", "grader", "first"}),
        ("transformer_ref/model.py", ALL),
        ("tests/reference/test_reference.py", {"reference"}),
        ("tests/reference/helper.py", {"reference"}),
        ("tests/conftest.py", ALL),
    ],
)
def test_a_change_runs_what_may_read_it_again_and_nothing_else(suite, changed, again):
    assert ran(suite) == ALL and ran(suite) == set()
    path = suite.path / changed
    path.write_text((path.read_text(encoding="utf-8") if path.exists() else "") + "\n", encoding="utf-8")
    assert ran(suite) == again
    assert ran(suite) == set()


def test_it_is_said_how_many_are_left_out_and_all_run_when_asked_for(suite, monkeypatch):
    ran(suite)
    result = suite.runpytest_inprocess()
    assert result.ret == 0
    assert any(line.startswith("not run: 10 tests that passed here") for line in result.outlines)
    assert ran(suite, "--again") == ALL
    assert ran(suite, "tests/book/test_book.py") == {"book"}  # named, it runs
    monkeypatch.setenv("CI", "true")
    assert ran(suite) == ALL


def test_what_failed_or_was_not_run_in_full_is_run_again(suite):
    failing = suite.path / "tests" / "grader" / "test_grader.py"
    failing.write_text(FILE.format(False), encoding="utf-8")
    assert ran(suite) == ALL and ran(suite) == {"grader"}
    (suite.path / "build" / "tests_passed.json").unlink()
    assert ran(suite, "-k", "one") == ALL == ran(suite)


def test_workers_leave_out_the_same(suite):
    suite.runpytest_subprocess("-p", "xdist", "-n", "2", "--dist", "loadgroup")
    result = suite.runpytest_subprocess("-p", "xdist", "-n", "2", "--dist", "loadgroup")
    assert result.ret == 0
    assert any(line.startswith("not run: 10 tests that passed here") for line in result.outlines)
