"""Addresses of sockets in the file system, which the kernel limits to some hundred bytes."""

import contextlib
import os
from collections.abc import Iterator

LONGEST = 100  # bytes; Linux takes 107, other systems 103
DESCRIPTORS = "/proc/self/fd"


@contextlib.contextmanager
def short_address(address: str) -> Iterator[str]:
    """Another name for the same socket that `bind` and `connect` take, good within the context.

    Where the system has no /proc a long address stays as it is.
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
