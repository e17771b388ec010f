"""Unpacks an archive, and the archives in it, within limits: bombs do no harm.

These limits are for one submitted file, which is unpacked in memory. `platforms.archives` has others, for all files of
a student in a platform's export, which are copied to the disk.
"""

import bz2
import io
import lzma
import re
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from itertools import islice

MOST_BYTES = 64 * 1024 * 1024  # unpacked from one file, whatever is in between included
MOST_MEMBERS = 2_000
DEEPEST = 4  # archives in archives
MEMORY = 256 * 1024 * 1024  # that lzma may want for its dictionary
MOST_HEADERS = 10 * MOST_MEMBERS  # of a tar, those of folders and of junk included
LONG_HEADERS = 4_000_000_000  # bytes, squared, of a tar's extended headers: Python searches them in such a time
_EXTENDED = (tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE)

_ENDING = re.compile(r"\.(gz|bz2|xz|lzma|zip|tgz)[\s.]*$", re.IGNORECASE)


class _Room:
    """The budget for unpacking one file."""

    def __init__(self) -> None:
        self.bytes, self.members = MOST_BYTES, MOST_MEMBERS
        self.headers = [LONG_HEADERS]

    def take(self, content: bytes) -> bytes:
        self.bytes -= len(content)
        return content


def header_within(room: list[int]) -> type[tarfile.TarInfo]:
    """A reader of a tar's headers with a shared budget: a few thousand bytes could take days, and a negative size
    loops. Raises tarfile.ReadError."""

    class Header(tarfile.TarInfo):
        @classmethod
        def frombuf(cls, buf: bytes, encoding: str, errors: str) -> tarfile.TarInfo:
            header = super().frombuf(buf, encoding, errors)
            room[0] -= header.size**2 if header.type in _EXTENDED else 0
            if header.size < 0 or room[0] < 0:
                raise tarfile.ReadError("a header of an impossible size")
            return header

    return Header


def is_archive(data: bytes) -> bool:
    """Whether the bytes begin as a supported archive does."""
    return _opener(data) is not None


def members(name: str, data: bytes) -> Iterator[tuple[str, bytes]]:
    """(name, content) of each file in an archive and in archives in it; of anything else, the file itself.

    Raises nothing: a damaged archive gives its readable files, an encrypted one or a bomb none.
    """
    yield from _members(name, data, _Room(), 0)


def _members(name: str, data: bytes, room: _Room, depth: int) -> Iterator[tuple[str, bytes]]:
    opener = _opener(data)
    if opener is None:
        yield name, data
        return
    if depth == DEEPEST:
        return
    unpacked = opener(name, data, room)
    while room.bytes > 0 and room.members > 0:
        room.members -= 1
        try:
            inner, content = next(unpacked)
        except StopIteration:
            return
        except Exception:  # of these libraries' errors, each a different kind, every one says that it is damaged
            return
        yield from _members(inner, content, room, depth + 1)


def _opener(data: bytes) -> Callable[[str, bytes, _Room], Iterator[tuple[str, bytes]]] | None:
    if data.startswith(b"PK\x03\x04"):
        return _zipped
    if data[257:262] == b"ustar":
        return _tarred
    return _pressed if data.startswith((b"\x1f\x8b", b"BZh", b"\xfd7zXZ\x00", b"]\x00\x00")) else None


def _zipped(name: str, data: bytes, room: _Room) -> Iterator[tuple[str, bytes]]:
    if data.count(b"PK\x01\x02") > 10 * MOST_MEMBERS:
        return  # the very list of what is in it would fill the memory
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for info in sorted(archive.infolist(), key=lambda info: info.filename):
            if not info.is_dir() and not info.flag_bits & 1 and not _is_junk(info.filename):  # 1: locked by a password
                yield f"{name}/{info.filename}", room.take(_read(archive.open(info), room.bytes))


def _tarred(name: str, data: bytes, room: _Room) -> Iterator[tuple[str, bytes]]:
    header = header_within(room.headers)
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:", tarinfo=header) as archive:
        for info in islice(archive, MOST_HEADERS):
            if info.isreg() and not _is_junk(info.name):
                yield f"{name}/{info.name}", room.take(_read(archive.extractfile(info), room.bytes))


def _pressed(name: str, data: bytes, room: _Room) -> Iterator[tuple[str, bytes]]:
    """The readable part of a file compressed by gzip, bz2 or xz."""
    if data.startswith(b"\x1f\x8b"):
        machine = zlib.decompressobj(wbits=31)
    else:
        machine = bz2.BZ2Decompressor() if data.startswith(b"BZh") else lzma.LZMADecompressor(memlimit=MEMORY)
    yield _ENDING.sub("", name), room.take(machine.decompress(data, room.bytes))


def _read(file: io.BufferedIOBase, most: int) -> bytes:
    """The file up to `most` bytes; of a damaged one the part before the damage."""
    parts, left = [], most
    with file:
        try:
            while left > 0 and (part := file.read(min(left, 1 << 16))):
                parts.append(part)
                left -= len(part)
        except Exception:
            if not parts:
                raise
    return b"".join(parts)


def _is_junk(name: str) -> bool:
    return name.startswith("__MACOSX/") or name.rpartition("/")[2].startswith("._")
