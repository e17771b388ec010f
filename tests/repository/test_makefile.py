"""The Makefile's commands: each parses, and tidying up never reaches a class's records or the environment."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

TARGETS = ["help", "setup", "site", "release", "course", "serve", "test", "bench", "clean"]


def make(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs make in `folder`, free of what an outer make put in the environment."""
    from_make = ("MAKEFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "MFLAGS", "STEP", "TORCH_INDEX")
    environment = {name: value for name, value in os.environ.items() if name not in from_make}
    return subprocess.run(["make", *arguments], cwd=folder, capture_output=True, text=True, env=environment)


@pytest.mark.parametrize("target", TARGETS)
def test_a_dry_run_of_every_target_succeeds(root: Path, target: str) -> None:
    result = make(root, "-n", target)
    assert result.returncode == 0, result.stderr


def test_make_alone_names_every_command(root: Path) -> None:
    named = set(re.findall(r"^  make (\w+)", make(root).stdout, flags=re.MULTILINE))
    assert named == set(TARGETS) - {"help"}


def test_clean_removes_build_and_keeps_classroom_and_environment(root: Path, tmp_path: Path) -> None:
    shutil.copy(root / "Makefile", tmp_path)
    kept = ["classroom/gradebook.db", "classroom/__pycache__/kept", ".venv/bin/python", "solutions/a.ipynb"]
    removed = ["build/site/index.html", "tests/__pycache__/a.pyc", "exercises/a/.ipynb_checkpoints/b.ipynb"]
    for name in kept + removed:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    make(tmp_path, "clean")
    assert [name for name in kept if not (tmp_path / name).exists()] == []
    assert [name for name in removed if (tmp_path / name).exists()] == []


def test_the_recipe_of_clean_does_not_name_classroom(root: Path) -> None:
    commands = make(root, "-n", "clean").stdout
    assert "build" in commands
    assert "classroom" not in commands.replace("never classroom", "")


def test_setup_does_again_only_what_a_changed_file_asks_for(root: Path, tmp_path: Path) -> None:
    """The stamps in order of age: a finished set-up runs no installer, a newer lock runs it again."""
    old = ["Makefile", "requirements.txt", "pyproject.toml"]
    for name in old:
        shutil.copy(root / name, tmp_path)
    (tmp_path / ".venv").mkdir()
    stamps = [".created", ".torch", ".requirements", ".ready"]
    for age, name in enumerate([*old, *(f".venv/{stamp}" for stamp in stamps)]):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (age, age))
    assert "pip" not in make(tmp_path, "-n", "setup").stdout
    os.utime(tmp_path / "requirements.txt", (100, 100))
    assert "install -r requirements.txt" in make(tmp_path, "-n", "setup").stdout
