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


CHAPTER = re.compile(r"^# (?P<chapter>\d\d) · (?P<title>.+?)\s*$", re.MULTILINE)


def chapter_title(chapter: str) -> str:
    """The title of a chapter on its page, such as "Self-attention" for "05"; empty when the book has none."""
    return _noted().get(f"chapter-{chapter}", "")


def of_chapter(chapter: str) -> Callable[[str], list[Section]]:
    """Return the function that turns short labels of a chapter into its sections: of_chapter("05")("why-divide
    which-axis")."""

    def sections(labels: str) -> list[Section]:
        return [section(f"sec-{chapter}-{label}") for label in labels.split()]

    return sections


def section(label: str) -> Section:
    """The section of that label. Raises ValueError when the book has none."""
    known = {each: title for each, title in _noted().items() if each.startswith("sec-")}
    if label not in known:
        near = get_close_matches(label, known, n=1)
        meant = f" Did you mean {near[0]!r}?" if near else ""
        raise ValueError(
            f"sections: expected the label of a section of the book, got {label!r}.{meant} "
            "For a section that is new: python -m autograder.catalogue.sections"
        )
    return Section(label[4:6], known[label], label)


def read_book() -> dict[str, str]:
    """Label -> title of every chapter, "chapter-05", and of every section in the chapters' pages."""
    texts = [page.read_text("utf-8") for page in sorted(BOOK.glob("[0-9][0-9]_*.md"))]
    chapters = {f"chapter-{found['chapter']}": found["title"] for text in texts for found in CHAPTER.finditer(text)}
    return chapters | {found["label"]: found["title"] for text in texts for found in LABELED.finditer(text)}


@cache
def _noted() -> dict[str, str]:
    return json.loads(NOTED.read_text(encoding="utf-8"))


if __name__ == "__main__":
    NOTED.write_text(json.dumps(read_book(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
