"""The picture in README is what the check says today."""

import re
from pathlib import Path

from book.recorded import diagnosis


def test_the_picture_is_drawn_from_the_report_of_today():
    assert diagnosis.PICTURE.read_text(encoding="utf-8") == diagnosis.svg(diagnosis.ANSWER, diagnosis.report())


def test_the_picture_shows_a_mistake_that_is_known_and_readme_shows_the_picture(root: Path):
    said = diagnosis.report()
    assert "✗" in said and "Reread" in said
    shown = re.findall(r"!\[([^]]+)\]\(([^)]+)\)", (root / "README.md").read_text(encoding="utf-8"))
    ((alternative, path),) = shown
    assert root / path == diagnosis.PICTURE and len(alternative.split()) > 10
    assert diagnosis.PICTURE.stat().st_size < 100_000


def test_signs_in_code_cannot_break_the_picture():
    assert "<b>" not in diagnosis.svg("a < b & c", "<b>") and "&lt;b&gt;" in diagnosis.svg("a < b & c", "<b>")
