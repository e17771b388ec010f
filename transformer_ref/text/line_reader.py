"""Lines as they arrive: what is there is read at once, and nobody waits for the end of a pipe."""

import os
import select
from collections.abc import Iterable, Iterator

AT_ONCE = 2**16  # bytes


def chunks_of_lines(stream: Iterable[str], most: int) -> Iterator[list[str]]:
    """Yield lists of up to `most` lines without their ends, as soon as no further line is waiting.

    stream: such as sys.stdin; a line ends at a newline, with or without a carriage return, and at the end.
    A byte order mark at the beginning is skipped. Raises ValueError for a line that is not UTF-8, by its number, after
    the lines before it.
    """
    first = True
    for lines in _chunks(stream, most):
        if first:
            lines[0], first = lines[0].removeprefix("\ufeff"), False
        yield lines


def _chunks(stream: Iterable[str], most: int) -> Iterator[list[str]]:
    binary = getattr(stream, "buffer", None)
    if binary is None:  # a text in memory
        yield from _in_groups((line.rstrip("\n").removesuffix("\r") for line in stream), most)
        return
    try:
        number = binary.fileno()
        _is_waiting(number)
    except (OSError, ValueError):  # bytes in memory, or a system whose pipes cannot be looked at
        lines = (_text(line.removesuffix(b"\n"), place) for place, line in enumerate(binary, 1))
        yield from _in_groups(lines, most if _in_memory(binary) else 1)
        return
    yield from _of_file(number, most)


def _of_file(number: int, most: int) -> Iterator[list[str]]:
    read = 0  # lines
    parts, ended = [b""], False  # of what was read and not yet yielded; only the last line of all may be incomplete
    while not ended:
        complete = 0
        while not ended and (complete == 0 or (complete < most and _is_waiting(number))):
            data = os.read(number, AT_ONCE)  # waits for the first byte
            ended = not data
            parts.append(data)
            complete += data.count(b"\n")
        *lines, rest = b"".join(parts).split(b"\n")
        if ended and rest:
            lines, rest = [*lines, rest], b""
        yield from _in_groups((_text(line, place) for place, line in enumerate(lines, read + 1)), most)
        read, parts = read + len(lines), [rest]


def _is_waiting(number: int) -> bool:
    """Return whether a read would return at once. Raises OSError or ValueError if that cannot be known."""
    return bool(select.select([number], [], [], 0)[0])


def _in_memory(binary) -> bool:
    try:
        return binary.fileno() < 0
    except OSError:
        return True


def _in_groups(lines: Iterator[str], most: int) -> Iterator[list[str]]:
    """Yield lists of `most` lines, the last one shorter. Before an error of `lines`, yield the lines that came."""
    group: list[str] = []
    try:
        for line in lines:
            group.append(line)
            if len(group) == most:
                yield group
                group = []
    except ValueError:
        if group:
            yield group
        raise
    if group:
        yield group


def _text(line: bytes, number: int) -> str:
    try:
        return line.removesuffix(b"\r").decode()
    except UnicodeDecodeError as error:
        raise ValueError(
            f"stdin: expected UTF-8 text, got {error.object[error.start : error.end]!r} in line {number:,}"
        ) from error
