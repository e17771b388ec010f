"""The files of a folder that somebody else filled: listed and read so that nothing in it can hang us or stop us.

No link is followed, nothing but a plain file is opened, and depth, number and size of what is looked at are bounded.
"""

import errno
import os
import stat
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

MAX_BYTES = 32 * 1024 * 1024  # of a larger file both ends are read; only printed output makes a notebook so large
MOST_ENTRIES = 200_000  # of a folder and all below it
DEEPEST = 40  # folders in folders
LONGEST = 1_000  # bytes of a path below the folder: the system's limit stays far away
NOT_LOOKED_INTO = (".git", ".Trash", ".venv", "__MACOSX", "__pycache__")  # of no student's making

_THEIRS = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.EISDIR, errno.ENXIO, errno.EINVAL}
_KINDS = (
    (stat.S_ISLNK, "a link"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISDIR, "a folder"),
)


class NoPlainFile(OSError):
    """The path to be read is a link, a pipe, a device or a folder, or does not exist."""


@dataclass
class Listing:
    """The content of a folder. files: regular files, those nearest to the top first. hidden: those that a file manager
    does not show. odd: path of anything else -> its kind. closed: folders that this user may not open. is_whole: False
    if some of it was not listed.
    """

    files: list[Path] = field(default_factory=list)
    hidden: list[Path] = field(default_factory=list)
    odd: dict[Path, str] = field(default_factory=dict)
    closed: list[Path] = field(default_factory=list)
    is_whole: bool = True


def look(folder: Path) -> Listing:
    """The content of a folder and its subfolders. Raises OSError only for a failure of this machine, such as of a
    disk."""
    found, left = Listing(), MOST_ENTRIES
    waiting = deque([(folder, 0, False)])
    while waiting and left > 0:
        place, depth, is_hidden = waiting.popleft()
        entries = _entries(place, left, found)
        left -= len(entries)
        for entry in entries:
            path = place / entry.name
            hidden = is_hidden or entry.name.startswith((".", "__"))
            kind = _kind(path)
            if len(os.fsencode(path)) - len(os.fsencode(folder)) > LONGEST:
                found.is_whole = False
            elif stat.S_ISREG(kind):
                (found.hidden if hidden else found.files).append(path)
            elif not stat.S_ISDIR(kind):
                found.odd[path] = _named(kind)
            elif depth == DEEPEST:
                found.is_whole = False
            elif entry.name not in NOT_LOOKED_INTO:
                waiting.append((path, depth + 1, hidden))
    found.is_whole = found.is_whole and left > 0
    return found


def inside(folder: Path) -> list[Path]:
    """The direct content of a folder; nothing if it may not be read."""
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def is_closed(folder: Path) -> bool:
    """Whether this user may not list a folder."""
    return not os.access(folder, os.R_OK | os.X_OK)


def is_folder(path: Path) -> bool:
    """Whether it is a folder, and no link to one; False if that cannot be known."""
    return stat.S_ISDIR(_kind(path))


def opened(path: Path) -> BinaryIO:
    """A regular file, open for reading. Raises NoPlainFile for anything else, PermissionError if it may not be read.

    Its type is checked before it is opened, since opening a pipe would block, and again afterwards, since it may have
    been replaced in between.
    """
    try:
        kind = path.lstat().st_mode
        if not stat.S_ISREG(kind):
            raise NoPlainFile(errno.EINVAL, f"it is {_named(kind)}", str(path))
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in _THEIRS and not isinstance(error, NoPlainFile):
            raise NoPlainFile(error.errno, error.strerror, str(path)) from error
        raise
    file = os.fdopen(descriptor, "rb", closefd=True)
    kind = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(kind):
        file.close()
        raise NoPlainFile(errno.EINVAL, f"it is {_named(kind)}", str(path))
    return file


def content_of(path: Path, most: int = MAX_BYTES) -> bytes:
    """The content of a file; if it is larger than `most`, both ends and one byte more, by which a reader recognizes
    this. Raises what `opened` raises."""
    half = most // 2
    with opened(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size <= most:
            return file.read(most)
        start = file.read(half + 1)
        file.seek(size - half)
        return start + file.read(half)


def copy_to(path: Path, place: Path, most: int) -> bool:
    """Copy a regular file, unless it is larger than `most` bytes; returns whether it was copied. Raises what `opened`
    raises."""
    with opened(path) as file:
        if os.fstat(file.fileno()).st_size > most:
            return False
        content = file.read(most + 1)
    if len(content) > most:  # it grew meanwhile
        return False
    place.write_bytes(content)
    return True


def copy_tree(folder: Path, place: Path) -> None:
    """Copy the regular files of a folder, as far as they are listed and not larger than `MAX_BYTES` each."""
    place.mkdir(parents=True, exist_ok=True)
    for path in look(folder).files:
        there = place / path.relative_to(folder)
        there.parent.mkdir(parents=True, exist_ok=True)
        copy_to(path, there, MAX_BYTES)


def _entries(folder: Path, most: int, found: Listing) -> list[os.DirEntry]:
    """The entries of one folder, in order; an unreadable folder is recorded."""
    entries = []
    try:
        with os.scandir(folder) as inside:
            for entry in inside:
                entries.append(entry)
                if len(entries) >= most:
                    break
    except PermissionError:
        found.closed.append(folder)
    except OSError as error:
        if error.errno not in _THEIRS:
            raise
    return sorted(entries, key=lambda entry: entry.name)


def _kind(path: Path) -> int:
    try:
        return path.lstat().st_mode
    except OSError:  # gone since, or not accessible
        return 0


def _named(kind: int) -> str:
    return next((name for is_kind, name in _KINDS if is_kind(kind)), "no file")
