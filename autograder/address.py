"""Where the book is read, and where a section is in it. Every link of a report or a page is made here.

One setting says where the book is: the environment variable ATTENTION_BY_HAND_BOOK; where that is not set, the address
called Book in pyproject.toml's [project.urls], which an installed package remembers. Without either it is where `make
serve` puts it, and in a package that was installed without the course, nowhere: then a section is named only in words.
"""

from __future__ import annotations

import os
import re
from functools import cache
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the catalogue imports torch, which opening a notebook does without
    from autograder.catalogue.exercise import Section

SETTING = "ATTENTION_BY_HAND_BOOK"
SERVED = "http://127.0.0.1:8000"  # by `make serve`
SAID = (  # in each notebook's first cell
    f"Links to the book open {SERVED}, where `make serve` puts it; anywhere else, look up the chapter and the section "
    "of that name."
)
PACKAGE, NAMED = "attention-by-hand", "Book"
PAGE = Path(__file__).resolve().parents[1] / "book" / "00_start_here.md"
ADDRESS = re.compile(r"(https?|file)://\S+")


def book_address(named: str = "") -> str:
    """The book's address without a slash at its end, or "" if none is set and the course is not here. named: the
    setting of a class for its own pages, which comes first. Anything but an http, https or file address is ignored.
    """
    said = (named, os.environ.get(SETTING, ""), _of_package(), SERVED if PAGE.is_file() else "")
    return next((each.rstrip("/") for each in said if ADDRESS.fullmatch(each)), "")


def link(book: str, section: Section) -> str:
    """The link to a section of the book at this address; empty without an address, or if its chapter has no page."""
    from autograder import catalogue

    pages = {assignment.id[:2]: assignment.id for assignment in catalogue.ASSIGNMENTS}
    page = pages.get(section.chapter)
    return f"{book.rstrip('/')}/{page}.html#{section.label}" if page and book else ""


def linked(text: str, book: str) -> str:
    """A notebook's text with its links, and the sentences about them, changed to the book at this address; unchanged
    for ""."""
    if not book or book == SERVED:
        return text
    return text.replace(SAID, f"Links open the book at {book}.").replace(f"{SERVED}/", f"{book}/")


def for_pip(named: str = "") -> str:
    """The address from which pip installs this course, or "" if unknown. named: the setting of a class, which comes
    first, then the environment's COURSE_REPOSITORY (owner/name on GitHub), then the address called Repository in
    pyproject.toml."""
    repository = os.environ.get("COURSE_REPOSITORY", "") or _of_package("Repository")
    if named or not repository:
        return named
    return f"git+{repository}" if "://" in repository else f"git+https://github.com/{repository}"


@cache
def _of_package(named: str = NAMED) -> str:
    try:
        urls = metadata(PACKAGE).get_all("Project-URL") or []
    except PackageNotFoundError:  # it is run from a folder that is not installed
        return ""
    labels = (url.partition(", ") for url in urls)
    return next((found for label, _, found in labels if label.casefold() == named.casefold()), "")
