"""Untrusted archives: their contents are copied out within limits, or named.

A class's download is a zip or a folder; what a student put into it can be anything, archives in archives included. Each
student's work has bounds of its own (`SubmissionStore`), so that no archive costs anybody but its author. These limits
are for all files of a student in a platform's export. `intake.unpack` has others, for one submitted
file, which it unpacks in memory.
"""

import gzip
import os
import shutil
import stat
import struct
import tarfile
import unicodedata
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from autograder.intake.unpack import LONG_HEADERS, header_within

MOST_BYTES = 256 << 20  # of one student's work, unpacked
MOST_FILES = 1_000  # of one student's work
MOST_ARCHIVES = 20  # of one student's work that are opened
DEEPEST = 3  # archives in archives
MOST_FOLDERS = 12  # that a file lies in
DIRECTORY_BYTES = 4 << 20  # of the list of contents of a student's zip: some 40,000 names
DIRECTORY_FILES = 40_000  # that a student's tar may list
MOST_REMARKS = 10  # about one student's work
LONGEST, LONGEST_ENDING = 180, 12  # bytes of a name; file systems hold 255
CHUNK = 1 << 20

_BLOCK = 512  # bytes; a tar begins with one that says "ustar" here:
_USTAR = slice(257, 262)
_GZIP = b"\x1f\x8b"
_END = struct.Struct("<4s4H2LH")  # a zip's end record; its sixth field is the size of the list of contents


class Bounds(Exception):
    """A submission exceeds a limit; the text says which."""


@dataclass(frozen=True)
class ArchivedFile:
    """A file in an archive. `parts`: its cleaned path. `open`: returns its bytes, and raises whatever the archive's
    reader raises. `refused`: why it must not be read, or ""."""

    parts: tuple[str, ...]
    open: Callable[[], BinaryIO]
    refused: str = ""


@contextmanager
def opened(path: Path) -> Iterator[list[ArchivedFile]]:
    """The files in a zip, or in a folder that was unpacked from one, without hidden files.

    Raises OSError or zipfile.BadZipFile for anything else.
    """
    if path.is_dir():
        yield list(_in_folder(path))
    else:
        with zipfile.ZipFile(path) as archive:
            yield list(_in_zip(archive))


def cleaned(name: str) -> tuple[tuple[str, ...], str]:
    """A path from an archive as names that any file system accepts, and why it may not be used, or ""."""
    names = [part for part in name.replace("\\", "/").split("/") if part not in ("", ".")]
    if name.startswith(("/", "\\")) or ".." in names or (names and len(names[0]) == 2 and names[0][1] == ":"):
        return tuple(_name(part) for part in names), "its path leads out of the archive"
    if len(names) > MOST_FOLDERS:
        return tuple(_name(part) for part in names[:2]), f"it lies in more than {MOST_FOLDERS} folders"
    return tuple(_name(part) for part in names), ""


def is_hidden(parts: tuple[str, ...]) -> bool:
    """Whether it is a file of the operating system or of Jupyter."""
    return any(part.startswith(".") or part == "__MACOSX" for part in parts)


def fitted(name: str) -> str:
    """A file name, shortened if it is too long; its extension stays."""
    stem, dot, ending = name.rpartition(".")
    if not dot or len(ending) > LONGEST_ENDING:
        stem, dot, ending = name, "", ""
    return stem.encode()[:LONGEST].decode(errors="ignore") + dot + ending


class SubmissionStore:
    """One student's submission, while it is stored in a folder. `remarks`: what is missing, and why."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.remarks: list[str] = []
        self._bytes, self._files, self._archives = MOST_BYTES, MOST_FILES, MOST_ARCHIVES
        self._effort = 4 * MOST_BYTES  # what is written in all, that which is thrown away again included

    def add(self, entry: ArchivedFile, parts: tuple[str, ...]) -> None:
        """Copy a file to this path in the folder; an archive is unpacked next to it. No file raises an exception:
        unreadable ones are named in the remarks.
        """
        try:
            if entry.refused:
                raise Bounds(entry.refused)
            path = self._copy(entry, self.folder, parts)
        except Exception as error:  # whatever a broken or hostile archive makes its reader raise
            self._remark(f"{shown('/'.join(parts))} is left out: {_reason(error)}.")
        else:
            self._unpack(path, 1)

    def _copy(self, entry: ArchivedFile, folder: Path, parts: tuple[str, ...]) -> Path:
        if not self._files:
            raise Bounds(f"there are more than {MOST_FILES} files")
        path = folder.joinpath(*map(fitted, parts))
        path.parent.mkdir(parents=True, exist_ok=True)
        path, left = _free(path), self._bytes
        try:
            with entry.open() as source, path.open("xb") as target:
                while chunk := source.read(CHUNK):
                    left -= len(chunk)
                    self._effort -= len(chunk)
                    if min(left, self._effort) < 0:
                        raise Bounds(f"with it there are more than {MOST_BYTES >> 20} MiB")
                    target.write(chunk)
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        self._bytes, self._files = left, self._files - 1
        return path

    def _unpack(self, path: Path, depth: int) -> None:
        reader = _reader(path)
        if reader is None:
            return
        before, folder = (self._bytes, self._files), _free(path.with_name(_stem(path.name).removesuffix(".ipynb")))
        to = path.parent if reader is _students_gzip else folder
        try:
            if depth > DEEPEST:
                raise Bounds(f"it is the {depth}th archive in an archive")
            if not self._archives:
                raise Bounds(f"there are more than {MOST_ARCHIVES} archives")
            self._archives -= 1
            copied = [self._copy(entry, to, entry.parts) for entry in reader(path) if self._wanted(entry)]
        except Exception as error:  # it stays one file, as submitted
            shutil.rmtree(folder, ignore_errors=True)
            self._bytes, self._files = before
            self._remark(f"{shown(path.relative_to(self.folder).as_posix())} is not unpacked: {_reason(error)}.")
            return
        path.unlink()
        for each in copied:
            self._unpack(each, depth + 1)

    def _wanted(self, entry: ArchivedFile) -> bool:
        if entry.refused:
            self._remark(f"{shown('/'.join(entry.parts))} is left out: {entry.refused}.")
        return not entry.refused

    def _remark(self, text: str) -> None:
        if len(self.remarks) < MOST_REMARKS:
            self.remarks.append(text)


def shown(name: str) -> str:
    """A name for a sentence: short and printable."""
    text = "".join(letter if letter.isprintable() else "?" for letter in name)
    return text if len(text) <= 100 else f"{text[:97]}..."


def _in_folder(folder: Path) -> Iterator[ArchivedFile]:
    for place, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = Path(place, name)
            parts = path.relative_to(folder).parts
            if not is_hidden(parts) and stat.S_ISREG(path.lstat().st_mode):  # links may point anywhere
                parts, refused = cleaned("/".join(parts))
                yield ArchivedFile(parts, lambda path=path: path.open("rb"), refused)


def _in_zip(archive: zipfile.ZipFile) -> Iterator[ArchivedFile]:
    for info in archive.infolist():
        parts, refused = cleaned(info.filename)
        if info.is_dir() or not parts or is_hidden(parts):
            continue
        kind = stat.S_IFMT(info.external_attr >> 16)
        if kind not in (0, stat.S_IFREG):
            refused = "it is not a plain file"
        elif info.flag_bits & 1:
            refused = "it is encrypted"
        yield ArchivedFile(parts, lambda info=info: archive.open(info), refused)


def _students_zip(path: Path) -> Iterator[ArchivedFile]:
    _check_directory(path)
    with zipfile.ZipFile(path) as archive:
        yield from _in_zip(archive)


def _check_directory(path: Path) -> None:
    """Refuse a zip whose directory would fill the memory, before anything reads it."""
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - (1 << 16) - _END.size))
        tail = file.read()
    place = tail.rfind(b"PK\x05\x06")
    if place < 0 or len(tail) - place < _END.size:
        raise Bounds("it breaks off")
    if _END.unpack_from(tail, place)[5] > DIRECTORY_BYTES or tail[max(0, place - 20) : place].startswith(b"PK\x06\x07"):
        raise Bounds("it lists too many files")


def _students_tar(path: Path) -> Iterator[ArchivedFile]:
    with gzip.open(path) if _beginning(path).startswith(_GZIP) else path.open("rb") as file:
        header = header_within([LONG_HEADERS])
        with tarfile.open(fileobj=_Limited(file), mode="r|", errors="replace", tarinfo=header) as archive:
            for count, member in enumerate(archive):
                if count > DIRECTORY_FILES:
                    raise Bounds("it lists too many files")
                parts, refused = cleaned(member.name)
                if member.isdir() or not parts or is_hidden(parts):
                    continue
                if not member.isreg():
                    refused = "it is not a plain file"
                yield ArchivedFile(parts, lambda member=member: archive.extractfile(member), refused)


def _students_gzip(path: Path) -> Iterator[ArchivedFile]:
    yield ArchivedFile((_stem(path.name),), lambda: gzip.open(path))


class _Limited:
    """A stream for reading a tar, limited to the size of a submission, headers and gaps included."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._left = file, MOST_BYTES

    def read(self, size: int) -> bytes:
        data = self._file.read(size)
        self._left -= len(data)
        if self._left < 0:
            raise Bounds(f"it holds more than {MOST_BYTES >> 20} MiB")
        return data


def _reader(path: Path) -> Callable[[Path], Iterator[ArchivedFile]] | None:
    """The function that unpacks this file; None if it is not an archive, whatever its name is."""
    name, begins = path.name.lower(), _beginning(path)
    if name.endswith(".zip"):
        return _students_zip if begins.startswith(b"PK") else None
    if name.endswith(".tar"):
        return _students_tar if begins[_USTAR] == b"ustar" else None
    if name.endswith((".gz", ".tgz")) and begins.startswith(_GZIP):
        return _students_tar if name.endswith((".tar.gz", ".tgz")) or _holds_tar(path) else _students_gzip
    return None


def _beginning(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(_BLOCK)


def _holds_tar(path: Path) -> bool:
    try:
        with gzip.open(path) as file:
            return file.read(_BLOCK)[_USTAR] == b"ustar"
    except (OSError, EOFError, zlib.error):
        return False


def _stem(name: str) -> str:
    """The name without the extension of an archive: a.ipynb.zip -> a.ipynb, work.tar.gz -> work."""
    stem = name.rsplit(".", 1)[0]
    return stem.removesuffix(".tar") or "archive"


def _free(path: Path) -> Path:
    """The path, or the next free one like it if it exists already."""
    count, free = 1, path
    while os.path.lexists(free):
        count += 1
        free = path.with_name(f"{path.stem} ({count}){path.suffix}")
    return free


def _name(part: str) -> str:
    """A file name without characters that some file system refuses."""
    text = unicodedata.normalize("NFC", part.encode("utf-8", "replace").decode())
    text = "".join("_" if letter in '<>:"|?*' or not letter.isprintable() else letter for letter in text)
    return text.rstrip(" .") or "_"


def _reason(error: BaseException) -> str:
    """Why a file could not be read, in a few words."""
    if isinstance(error, Bounds):
        return str(error)
    if isinstance(error, (EOFError, zipfile.BadZipFile, tarfile.TarError, gzip.BadGzipFile, zlib.error)):
        return "it is damaged or breaks off"
    return f"it cannot be read ({type(error).__name__})"
