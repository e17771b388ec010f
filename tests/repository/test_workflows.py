"""The workflows parse, name jobs, and call only make targets that exist."""

import re
import sys
from pathlib import Path

import pytest
import yaml

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

WORKFLOWS = ["site", "tests", "links"]


def parsed(root: Path, name: str) -> dict:
    """The workflow of that name; BaseLoader keeps the key `on` a word, not a truth value."""
    text = (root / ".github/workflows" / f"{name}.yml").read_text(encoding="utf-8")
    return yaml.load(text, Loader=yaml.BaseLoader)


@pytest.fixture(params=WORKFLOWS)
def workflow(request: pytest.FixtureRequest, root: Path) -> dict:
    return parsed(root, request.param)


def commands(workflow: dict) -> str:
    return "\n".join(step["run"] for job in workflow["jobs"].values() for step in job["steps"] if "run" in step)


def test_the_folder_holds_these_workflows_and_no_other(root: Path) -> None:
    present = {path.name for path in (root / ".github/workflows").iterdir()}
    assert present == {f"{name}.yml" for name in WORKFLOWS}


def test_a_workflow_has_a_trigger_and_jobs_with_steps_on_a_machine(workflow: dict) -> None:
    assert workflow["on"]
    assert workflow["jobs"]
    for name, job in workflow["jobs"].items():
        assert "runs-on" in job, name
        assert all("run" in step or "uses" in step for step in job["steps"]), name


def test_a_workflow_asks_only_for_rights_it_names(workflow: dict) -> None:
    assert workflow["permissions"]["contents"] == "read"


def test_a_workflow_calls_only_make_targets_that_exist(workflow: dict, root: Path) -> None:
    makefile = (root / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([\w-]+):", makefile, flags=re.MULTILINE))
    called = set(re.findall(r"\bmake ([a-z-]+)", commands(workflow)))
    assert called
    assert called <= targets


def test_the_weekly_jobs_never_block(root: Path) -> None:
    assert set(parsed(root, "links")["on"]) == {"schedule", "workflow_dispatch"}


def test_the_tests_run_on_the_oldest_the_locked_and_the_newest_torch(root: Path) -> None:
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    grading = " ".join(project["optional-dependencies"]["grading"])  # a learner by themselves needs less
    matrix = parsed(root, "tests")["jobs"]["torch"]["strategy"]["matrix"]["torch"]
    oldest = re.search(r"torch>=([\d.]+)", grading)
    assert oldest is not None
    assert set(matrix) == {f"torch=={oldest.group(1)}.*", "locked", "newest"}


def test_a_job_runs_the_learner_s_side_on_the_oldest_versions(root: Path) -> None:
    assert "make test-oldest" in [step.get("run") for step in parsed(root, "tests")["jobs"]["oldest"]["steps"]]


def test_a_job_runs_the_learner_s_side_on_three_systems_from_the_wheel_with_other_code_pages(root: Path) -> None:
    job = parsed(root, "tests")["jobs"]["learner"]
    matrix = job["strategy"]["matrix"]
    assert set(matrix["system"]) == {"ubuntu-latest", "windows-latest", "macos-latest"}
    assert {*matrix["encoding"], *(more["encoding"] for more in matrix["include"])} >= {"cp1252", "cp932"}
    assert job["defaults"]["run"]["shell"] == "bash"  # on Windows, too
    said = commands({"jobs": {"learner": job}})
    assert "pip wheel" in said and "make " not in said  # Windows has no make
    script = re.search(r"tests/repository/\w+\.py", said)
    assert script is not None and (root / script.group()).is_file()
    folder = re.search(r'--folder "(.+)"', said)
    assert folder is not None and not folder.group(1).isascii() and len(folder.group(1)) > 120
    assert job["steps"][-1]["env"]["PYTHONUTF8"] == "0"


def test_the_shards_are_all_parts_of_one_whole_and_no_other(root: Path) -> None:
    job = parsed(root, "tests")["jobs"]["locked"]
    shards = job["strategy"]["matrix"]["shard"]
    assert shards == [f"{number}/{len(shards)}" for number in range(1, len(shards) + 1)]
    assert [step["env"] for step in job["steps"] if step.get("run") == "bash .ci/run"] == [
        {"PYTEST_ARGS": "--shard ${{ matrix.shard }}"}
    ]


FORMS = ["bug", "class-mistake"]


def form(root: Path, name: str) -> dict:
    return yaml.load((root / f".github/ISSUE_TEMPLATE/{name}.yml").read_text(encoding="utf-8"), Loader=yaml.BaseLoader)


def test_an_issue_is_one_of_the_forms_and_attacks_are_sent_elsewhere(root: Path) -> None:
    present = {path.stem for path in (root / ".github/ISSUE_TEMPLATE").iterdir()}
    assert present == {*FORMS, "config"}
    assert "SECURITY.md" in str(form(root, "config")["contact_links"])


@pytest.mark.parametrize("name", FORMS)
def test_a_form_s_fields_have_names_of_their_own_and_labels(root: Path, name: str) -> None:
    fields = [field for field in form(root, name)["body"] if field["type"] != "markdown"]
    assert fields and all(field["attributes"]["label"] for field in fields)
    assert len({field["id"] for field in fields}) == len(fields)
    assert {field["type"] for field in fields} <= {"input", "textarea", "dropdown", "checkboxes"}


def test_the_form_for_a_mistake_asks_for_all_that_an_entry_needs(root: Path) -> None:
    needed = {field["id"] for field in form(root, "class-mistake")["body"] if "validations" in field}
    assert needed == {"exercise", "answer", "said", "should-say"}
