"""Sections of the book by their labels. `python -m autograder.catalogue.sections` notes those that the book has."""

import json
import re
from collections.abc import Callable
from difflib import get_close_matches
from functools import cache
from pathlib import Path

from autograder.catalogue.exercise import Section

NOTED = Path(__file__).parent / "sections.json"
BOOK = Path(__file__).resolve().parents[2] / "book"
LABELED = re.compile(r"^\((?P<label>sec-(?P<chapter>\d\d)-[\w-]+)\)=\n+#+ (?P<title>.+?)\s*$", re.MULTILINE)


def of_chapter(chapter: str) -> Callable[[str], list[Section]]:
    """What turns short labels of a chapter into its sections: of_chapter("05")("why-divide which-axis")."""

    def sections(labels: str) -> list[Section]:
        return [section(f"sec-{chapter}-{label}") for label in labels.split()]

    return sections


def section(label: str) -> Section:
    """The section of that label. Raises ValueError when the book has none."""
    known = _noted()
    if label not in known:
        near = get_close_matches(label, known, n=1)
        meant = f" Did you mean {near[0]!r}?" if near else ""
        raise ValueError(
            f"sections: expected the label of a section of the book, got {label!r}.{meant} "
            "For a section that is new: python -m autograder.catalogue.sections"
        )
    return Section(label[4:6], known[label], label)


def read_book() -> dict[str, str]:
    """Label -> title of every section in the chapters' pages."""
    pages = sorted(BOOK.glob("[0-9][0-9]_*.md"))
    return {found["label"]: found["title"] for page in pages for found in LABELED.finditer(page.read_text("utf-8"))}


@cache
def _noted() -> dict[str, str]:
    return json.loads(NOTED.read_text(encoding="utf-8"))


if __name__ == "__main__":
    NOTED.write_text(json.dumps(read_book(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
