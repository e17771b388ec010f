"""Addresses of sockets in the file system, which the kernel limits to some hundred bytes."""

import contextlib
import os
from collections.abc import Iterator

LONGEST = 100  # bytes; Linux takes 107, other systems 103
DESCRIPTORS = "/proc/self/fd"


@contextlib.contextmanager
def short_address(address: str) -> Iterator[str]:
    """A shorter name for the same socket that `bind` and `connect` accept, valid within the context.

    Without /proc a long address stays unchanged.
    """
    if len(os.fsencode(address)) <= LONGEST or not os.path.isdir(DESCRIPTORS):
        yield address
        return
    folder, name = os.path.split(address)
    descriptor = os.open(folder, os.O_PATH | os.O_DIRECTORY)
    try:
        yield f"{DESCRIPTORS}/{descriptor}/{name}"
    finally:
        os.close(descriptor)
