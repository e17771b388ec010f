"""A function's result from a child process that may use only so much time and memory.

For work on files that strangers wrote, and for programs that may not end: neither may hold up or fill the process that
needs the result. The child is a fork, so it can read what the parent has read; its result travels as JSON. On a system
without fork the function runs here, without limits.
"""

import contextlib
import faulthandler
import json
import os
import select
import signal
import time
from collections.abc import Callable
from typing import Any

LARGEST = 512 << 20  # bytes of a result
CLOCK_FACTOR, CLOCK_SECONDS = 5, 10.0  # how much longer than its processor time work may take on a loaded machine


class Stopped(Exception):
    """The work had no result within its limits; the text says which limit was reached."""


def run(work: Callable[[], Any], seconds: float, memory: int, quiet: bool = False, clock: float = 0.0) -> Any:
    """The function's result, passed as JSON.

    seconds: of processor time. memory: bytes in addition to this process's. quiet: discard its output, and that of a
    crash. clock: seconds on the clock; by default several times the processor time. Raises Stopped at a limit, and,
    with the text of the error, if the function raises.
    """
    if not hasattr(os, "fork"):
        return work()
    longest = clock or CLOCK_FACTOR * seconds + CLOCK_SECONDS
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        _child(work, reader, writer, seconds, memory, quiet)
    os.close(writer)
    try:
        content = _received(reader, time.monotonic() + longest)
    finally:
        os.close(reader)
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
    if content is None:
        raise Stopped(f"took more than {longest:g} s on the clock, or made more than {LARGEST >> 20} MiB")
    try:
        found = json.loads(content)
    except ValueError as error:
        ended = signal.Signals(status & 0x7F).name if status & 0x7F else f"exit code {status >> 8}"
        limit = f"took more than {seconds:g} s of processor time" if ended == "SIGXCPU" else f"ended ({ended})"
        raise Stopped(limit) from error
    if "error" in found:
        raise Stopped(found["error"])
    return found["result"]


def _child(work: Callable[[], Any], reader: int, writer: int, seconds: float, memory: int, quiet: bool) -> None:
    """Run the function in the child. Never returns, since the parent's open files must not be closed or flushed
    here."""
    try:
        os.close(reader)
        if quiet:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            faulthandler.disable()
        try:
            _limit(seconds, memory)
            content = json.dumps({"result": work()})
        except MemoryError:
            content = json.dumps({"error": f"needed more than {memory >> 20} MiB"})
        except BaseException as error:
            content = json.dumps({"error": f"{type(error).__name__}: {error}"[:500]})
        left = memoryview(content.encode())
        while left:
            left = left[os.write(writer, left) :]
    finally:
        os._exit(0)


def _limit(seconds: float, memory: int) -> None:
    import resource

    used = time.process_time()  # a fork begins at 0 on Linux, and may not elsewhere
    allowed = int(seconds + used) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (allowed, allowed + 1))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGXCPU, signal.SIG_DFL)
    with contextlib.suppress(OSError):  # only Linux has the file, and not for a process that has changed its user
        with open("/proc/self/statm", "rb") as file:
            here = int(file.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (here + memory, here + memory))


def _received(reader: int, until: float) -> bytes | None:
    """The output of the child; None if it is too long or takes too long."""
    parts, size = [], 0
    while (left := until - time.monotonic()) > 0 and select.select([reader], [], [], left)[0]:
        part = os.read(reader, 1 << 20)
        if not part:
            return b"".join(parts)
        parts.append(part)
        size += len(part)
        if size > LARGEST:
            return None
    return None
