"""A limit on the lines that an answer executes: a number of lines, so that it is the same on every machine.

A loop inside of C is not counted.
"""

import sys
import sysconfig
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

MOST_LINES = 20_000  # that an answer executes for one input; usually below a thousand
PACKAGE = Path(__file__).resolve().parents[1]
LIBRARIES = [Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "purelib", "platlib")]


class TooManyLines(BaseException):
    """An answer has executed `MOST_LINES` lines. Not an Exception, since an answer may catch those."""


@contextmanager
def few_lines() -> Iterator[None]:
    """Within it, an answer that runs in this process stops with TooManyLines."""
    left, before = MOST_LINES, sys.gettrace()

    def count(frame: FrameType, event: str, argument: Any) -> Callable | None:
        nonlocal left
        if not _is_of_an_answer(frame.f_code.co_filename):
            return None
        left -= 1
        if left < 0:
            raise TooManyLines
        return count

    sys.settrace(count)
    try:
        yield
    finally:
        sys.settrace(before)


@cache
def _is_of_an_answer(filename: str) -> bool:
    """Whether a file holds answers: a notebook's cell, the catalogue or a teacher's entry, and no library."""
    path = Path(filename).resolve()
    if path.is_relative_to(PACKAGE):
        return path.is_relative_to(PACKAGE / "catalogue")
    return not any(path.is_relative_to(folder) for folder in LIBRARIES)
