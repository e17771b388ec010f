"""A file comes from the first of its mirrors that has it whole, and its checksum decides what is whole."""

import hashlib
import http.client
import os
import sys
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

SECONDS_OF_SILENCE = 30  # then a mirror is given up
BLOCK = 1 << 16  # bytes read at a time
BAR = 24  # characters


class DownloadError(OSError):
    """No mirror had the file."""


def download(path: Path, mirrors: Sequence[str], size: int, sha256: str, stream: TextIO | None = None) -> None:
    """Download a file to `path`, unless it is there already.

    mirrors: addresses of folders that hold a file of this name; size: in bytes; sha256: in hexadecimal.
    stream: where the progress is shown (default: stderr). After a dropped connection, <name>.part stays next to it, and
    the next attempt continues there (range requests: RFC 9110, section 14).
    Raises DownloadError with the error of each mirror.
    """
    if path.is_file():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    problems = []
    for mirror in mirrors:
        address, bar = f"{mirror}/{path.name}", ByteBar(path.name, size, stream or sys.stderr)
        host = urllib.parse.urlsplit(mirror).netloc
        attempts = 2 if part.is_file() else 1  # wrong bytes may be those that lay there, so once more without them
        try:
            for _ in range(attempts):
                _fetch_with_patience(address, part, size, bar)
                got = hashlib.sha256(part.read_bytes()).hexdigest()
                if got == sha256:
                    os.replace(part, path)
                    return
                part.unlink()
            problems.append(f"{host}: expected the SHA-256 {sha256[:12]}..., got {got[:12]}...")
        except (OSError, http.client.HTTPException) as error:
            problems.append(f"{host}: {_reason(error)}")
    raise DownloadError(f"{path.name}: expected one of {len(mirrors)} mirrors to have it, got " + "; ".join(problems))


def _fetch_with_patience(address: str, part: Path, size: int, bar: "ByteBar") -> None:
    """Fetch the rest of a file, again after each dropped connection that transferred anything."""
    while (before := _size(part)) != size:
        try:
            _fetch_rest(address, part, size, bar)
        except urllib.error.URLError:  # a refusal, or nobody there
            raise
        except (OSError, http.client.HTTPException):
            if _size(part) <= before:
                raise


def _fetch_rest(address: str, part: Path, size: int, bar: "ByteBar") -> None:
    start = _size(part) if _size(part) < size else 0
    request = urllib.request.Request(address, headers={"Range": f"bytes={start}-"} if start else {})
    with urllib.request.urlopen(request, timeout=SECONDS_OF_SILENCE) as response:
        if response.status != 206:  # not all servers send a part
            start = 0
        with part.open("r+b" if start else "wb") as file:
            file.seek(start)
            done = start
            while done <= size and (block := response.read(BLOCK)):
                file.write(block)
                done += len(block)
                bar(done)
    if done != size:
        if done > size:
            part.unlink()
        raise ConnectionError(f"expected {size:,} bytes, got {'more' if done > size else f'{done:,}'}")


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0


def _reason(error: Exception) -> str:
    cause = getattr(error, "reason", error)  # urllib wraps what the system said
    return getattr(cause, "strerror", None) or str(cause) or type(error).__name__


class ByteBar:
    """Shows the progress of one file: in a terminal one line that is rewritten, in a log one line at the end."""

    def __init__(self, name: str, size: int, stream: TextIO) -> None:
        self._name, self._size, self._stream = name, size, stream

    def __call__(self, done: int) -> None:
        """Show the number of bytes so far."""
        whole = done >= self._size
        filled = BAR * min(done, self._size) // self._size
        line = f"{self._name}  [{'#' * filled:{BAR}}]  {done // 1024:,} of {self._size // 1024:,} KiB"
        if self._stream.isatty():
            self._stream.write(f"\r{line}\x1b[K" + "\n" * whole)
        elif whole:
            self._stream.write(line + "\n")
        self._stream.flush()
