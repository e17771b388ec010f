"""Keeping the memory that one step frees for the next, which needs as much again.

The C library gives large freed blocks back to the system and gets them back as new, zeroed pages, one page fault each.
A training step frees and asks for hundreds of megabytes, so that costs a tenth of its time and more; a decoder, whose
cache grows, loses as much.
"""

import contextlib
import ctypes
import sys
import threading
from collections.abc import Callable, Iterator

TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3  # glibc's names for the two settings, in malloc.h
KEPT = 2**31 - 1  # bytes freed at the end of the heap before any are given back
LARGEST_ON_HEAP = 2**25  # bytes; a larger block is always given back, and glibc allows no higher threshold
ADAPTED = 2**26  # what glibc's own adaptation arrives at by itself when large blocks come and go


_depth, _lock = 0, threading.Lock()  # how many of these contexts have been entered and not left


@contextlib.contextmanager
def freed_memory_kept() -> Iterator[None]:
    """Within this context the C library, if it is glibc, does not return freed memory to the system.

    These contexts may be nested or begin in another thread; memory is returned when the last one ends.
    """
    set_option = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if set_option is None:
        yield
        return
    _enter(set_option)
    try:
        yield
    finally:
        _leave(set_option)


def _enter(set_option: Callable[[int, int], int]) -> None:
    global _depth
    with _lock:
        _depth += 1
        set_option(MMAP_THRESHOLD, LARGEST_ON_HEAP)
        set_option(TRIM_THRESHOLD, KEPT)


def _leave(set_option: Callable[[int, int], int]) -> None:
    global _depth
    with _lock:
        _depth -= 1
        if _depth == 0:
            set_option(TRIM_THRESHOLD, ADAPTED)
