"""Limits for the functions that the judge calls for an answer: in its own process, with arguments of a learner's."""

import contextlib
from collections.abc import Iterator


@contextlib.contextmanager
def memory_limit(size: int) -> Iterator[None]:
    """Make allocations fail once this process has `size` more bytes than now; without effect where the system does not
    support it."""
    try:
        import resource

        with open("/proc/self/statm", "rb") as file:
            here = int(file.read().split()[0]) * resource.getpagesize()
        before = resource.getrlimit(resource.RLIMIT_AS)
        most = min([here + size, *(limit for limit in before if limit != resource.RLIM_INFINITY)])
        resource.setrlimit(resource.RLIMIT_AS, (most, before[1]))
    except (ImportError, OSError, ValueError):
        yield
        return
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
