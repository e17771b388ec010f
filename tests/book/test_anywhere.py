"""A page that was downloaded as a notebook runs where only the package is: an empty folder, no repository around it."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from transformer_ref import recording

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "book").glob("[01][0-9]_*.md"))
OF_ITS_OWN = re.compile(r"^\s*#|\bPath\((?:tempfile\.mkdtemp\(\)|folder)\)")  # a comment, a temporary folder
CELL = re.compile(r"^```{code-cell}[^\n]*\n(?::[^\n]*\n)*(.*?)^```$", re.DOTALL | re.MULTILINE)


def test_no_page_reads_a_file_of_the_repository() -> None:
    """All data of a page comes from the package (`recording`)."""
    reading = [
        (page.name, line)
        for page in PAGES
        for cell in CELL.findall(page.read_text(encoding="utf-8"))
        for line in cell.splitlines()
        if re.search(r"\bPath\(|\bopen\(|__file__|read_text", line) and not OF_ITS_OWN.search(line)
    ]
    assert reading == []


def test_a_page_runs_in_an_empty_folder_with_the_packages_alone(tmp_path: Path) -> None:
    packages, folder = tmp_path / "packages", tmp_path / "empty"
    for package in ("transformer_ref", "autograder"):
        shutil.copytree(ROOT / package, packages / package, ignore=shutil.ignore_patterns("__pycache__"))
    folder.mkdir()
    cells = [cell for cell in CELL.findall(PAGES[0].read_text(encoding="utf-8")) if "recording" in cell]
    assert cells
    ran = subprocess.run(
        [sys.executable, "-c", "\n".join(cells)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(packages)},
        capture_output=True,
        text=True,
    )
    assert "Ho chiuso le finestre." in ran.stdout, ran.stderr


def test_a_recording_that_does_not_exist_is_named_with_those_that_do() -> None:
    with pytest.raises(ValueError, match="name: expected one of ablations, alignment, .*live_model.*, got 'no'"):
        recording.recording("no")
    for path in recording.FOLDER.glob("*.json"):
        assert recording.recording(path.stem) == json.loads(path.read_text(encoding="utf-8"))
