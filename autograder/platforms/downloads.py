"""Whose a file in a download of Moodle or Canvas is: the platform's own part of its path says so, and nothing else.

Moodle (mod/assign/classes/downloader.php) makes a folder for each student, `Ada Lovelace_11_assignsubmission_file`,
with one underscore more before 4.1; with "Download submissions in folders" off, one flat level of files with that
before their name. It takes underscores out of people's names. The number is the student's *in that assignment* (or a
group's). Canvas (lib/content_zipper.rb) makes one flat level, `lovelaceada_LATE_501_98765_work.ipynb`: a name without
signs, perhaps LATE, the student's number, the file's, and the file's own name; `anon_Ab3dE` replaces the
number where grading is anonymous. The rest is the student's choice; to a degree, so are names in Canvas.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from autograder.platforms.archives import ArchivedFile

MOODLE, CANVAS = "moodle", "canvas"

_FOLDER = re.compile(r"(?P<name>.*?)_(?P<number>[0-9]+)_assignsubmission_[a-z0-9]+_?")
_NAMELESS = re.compile(r"(?P<name>[^_]*)_assignsubmission_[a-z0-9]+_?")  # who is in no group, where groups hand in
_FLAT = re.compile(r"(?P<name>[^_]*)_(?P<number>[0-9]+)_assignsubmission_[a-z0-9]+_(?P<file>.+)")
_ANONYMOUS = re.compile(
    r"(?:LATE_)?(?P<number>anon_[A-Za-z0-9]+)_(?:[1-9][0-9]*_(?P<file>.+)|(?P<page>text\.html|link\.html))"
)
_NUMBER = re.compile(r"[1-9][0-9]*")
_PAGES = ("text.html", "link.html")  # what Canvas makes of a submitted text or address


@dataclass(frozen=True)
class Owner:
    """A person on a platform. `name`: as in the download, for Canvas without punctuation."""

    system: str
    number: str
    name: str


@dataclass(frozen=True)
class PathReading:
    """One way to read a path: its owner, and the submitted path of the file. is_late: whether Canvas marks it as late;
    None for a platform that does not."""

    owner: Owner
    parts: tuple[str, ...]
    is_late: bool | None = None


def readings(parts: tuple[str, ...]) -> list[PathReading]:
    """The ways to read a path in a download; none if it is not from Moodle or Canvas.

    More than one only for Canvas, where the name of a person or a file may contain a number: then the roster decides.
    """
    top, below = parts[0], parts[1:]
    if below:  # only Moodle makes folders
        found = _FOLDER.fullmatch(top)
        if found:
            return [PathReading(Owner(MOODLE, found["number"], found["name"].strip()), below)]
        found = _NAMELESS.fullmatch(top)
        return [PathReading(Owner(MOODLE, "", found["name"].strip()), below)] if found else []
    found = _FLAT.fullmatch(top)
    if found:
        return [PathReading(Owner(MOODLE, found["number"], found["name"].strip()), (found["file"],))]
    found = _ANONYMOUS.fullmatch(top)
    if found:
        is_late = top.startswith("LATE_")
        return [PathReading(Owner(CANVAS, found["number"], ""), (found["file"] or found["page"],), is_late)]
    return list(_of_canvas(top))


def unwrapped(entries: Iterable[ArchivedFile]) -> list[ArchivedFile]:
    """The entries without a common top folder, as from unpacking and packing again."""
    entries = list(entries)
    while entries and all(len(entry.parts) > 1 for entry in entries):
        tops = {entry.parts[0] for entry in entries}
        if len(tops) > 1 or readings(entries[0].parts):
            break
        entries = [ArchivedFile(entry.parts[1:], entry.open, entry.refused) for entry in entries]
    return entries


def _of_canvas(name: str) -> Iterator[PathReading]:
    words = name.split("_")
    for place in range(1, len(words) - 1):
        number, rest = words[place], words[place + 1 :]
        if not _NUMBER.fullmatch(number):
            continue
        is_late = words[place - 1] == "LATE" and place > 1
        who = "_".join(words[: place - 1] if is_late else words[:place])
        if len(rest) > 1 and _NUMBER.fullmatch(rest[0]) and "_".join(rest[1:]):
            yield PathReading(Owner(CANVAS, number, who), ("_".join(rest[1:]),), is_late)
        elif rest in ([page] for page in _PAGES):
            yield PathReading(Owner(CANVAS, number, who), (rest[0],), is_late)


def resubmitted(name: str, known: Iterable[str]) -> str:
    """The name of a file before Canvas numbered it as a second attempt, if known; else unchanged."""
    path = PurePosixPath(name)
    first = re.sub(r"-\d+$", "", path.stem) + path.suffix
    return first if first in known else name
