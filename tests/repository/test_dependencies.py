"""pyproject.toml says what the code needs, requirements.txt what it was tested with; the two agree."""

import re
import sys
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

# What torch's CUDA builds bring depends on the index torch was taken from, so the lock leaves it to torch.
BROUGHT_BY_TORCH = re.compile(r"^(nvidia|cuda|triton|pytorch-triton)\b")


@pytest.fixture(scope="module")
def project(root: Path) -> dict:
    return tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.fixture(scope="module")
def ranges(project: dict) -> list[Requirement]:
    """Every direct dependency, of the package and of each extra."""
    extras = project["optional-dependencies"].values()
    return [Requirement(line) for group in (project["dependencies"], *extras) for line in group]


@pytest.fixture(scope="module")
def pins(root: Path) -> dict[str, str]:
    """The lock as name -> version, in the file's order."""
    lines = (root / "requirements.txt").read_text(encoding="utf-8").splitlines()
    locked = [line for line in lines if line and not line.startswith("#")]
    assert [line for line in locked if not re.fullmatch(r"[\w.-]+==[\w.!-]+", line)] == []
    return {canonicalize_name(name): version for name, version in (line.split("==") for line in locked)}


def test_torch_is_locked_first_and_without_a_build_tag(pins: dict[str, str]) -> None:
    assert next(iter(pins)) == "torch"
    assert "+" not in pins["torch"]


def test_every_direct_dependency_is_locked_within_its_range(ranges: list[Requirement], pins: dict[str, str]) -> None:
    outside = [
        f"{wanted} but locked at {pins.get(canonicalize_name(wanted.name))}"
        for wanted in ranges
        if not wanted.specifier.contains(pins.get(canonicalize_name(wanted.name), "0"))
    ]
    assert outside == []


def test_the_lock_can_be_installed_with_every_python_that_the_makefile_gives_it_to(pins: dict[str, str]) -> None:
    here = {name: metadata.metadata(name).get("Requires-Python") for name in pins if installed(name)}
    assert len(here) > 100
    assert {name: asked for name, asked in here.items() if asked and "3.11.5" not in SpecifierSet(asked)} == {}


def installed(name: str) -> bool:
    try:
        return bool(metadata.version(name))
    except metadata.PackageNotFoundError:
        return False


def test_every_direct_dependency_has_a_lower_bound(ranges: list[Requirement]) -> None:
    assert [str(wanted) for wanted in ranges if ">=" not in str(wanted.specifier)] == []


def test_the_lock_is_complete(ranges: list[Requirement], pins: dict[str, str]) -> None:
    """Whatever the direct dependencies pull in on this machine is locked too."""
    waiting = [(wanted.name, wanted.extras) for wanted in ranges]
    seen: set[str] = set()
    while waiting:
        name, extras = waiting.pop()
        name = canonicalize_name(name)
        if name in seen or BROUGHT_BY_TORCH.match(name):
            continue
        seen.add(name)
        for line in metadata.requires(name) or []:
            child = Requirement(line)
            environments = [{"extra": extra} for extra in extras or {""}]
            if child.marker is None or any(child.marker.evaluate(each) for each in environments):
                waiting.append((child.name, child.extras))
    assert seen - set(pins) == set()
