"""Measures the memory and the disk space of a process and its descendants, so that none of them can hide any.

Memory is read from the kernel page by page once it could be too much, and a file without a name is found through the
process that holds it open.
"""

import contextlib
import os
import re
import stat
from collections.abc import Sequence

import psutil

from autograder.inside import safe_rmtree
from autograder.inside.cpu_time import Process

OF_NO_FILE = re.compile(rb"^([0-9a-f]+)-([0-9a-f]+) \S{3}s \S+ \S+ (\d+) +/dev/zero", re.MULTILINE)  # shared memory
PER_PAGE = re.compile(rb"^(?:Pss_Anon|SwapPss): +(\d+) kB", re.MULTILINE)
WHOLE = re.compile(rb"^(?:Pss|SwapPss): +(\d+) kB", re.MULTILINE)
MANY_FILES = 16  # open in a process, from which on its sockets are counted
OF_A_SOCKET = 256 << 10  # bytes that may lie in one, of the size that it gets unless asked (`seccomp.BUFFERS`)


class Memory:
    """The memory of descendants that they do not share with this process; created while there are none."""

    def __init__(self) -> None:
        own = psutil.Process().memory_info()
        self._lent, self._virtual = _own_pages(os.getpid()), own.vms

    def used(self, processes: Sequence[Process], most: int) -> int:
        """Bytes used. Measured exactly, which takes milliseconds, only if they may exceed `most`."""
        alive = [process for process in processes if process.alive]
        resident = sum(process.resident for process in alive)
        mapped = sum(max(0, process.virtual - self._virtual) for process in alive)
        shared = (_shared_of_no_file(alive) if mapped > most else 0) + OF_A_SOCKET * _sockets(alive)
        if resident + shared <= most:
            return resident + shared
        return max(0, _own_pages(os.getpid()) + sum(map(_own_pages_of, alive)) - self._lent) + shared


def on_disk(folder: str, processes: Sequence[Process], most: int) -> int:
    """Bytes of files below the folder and of those without a name that a process holds open. Raises TooDeep."""
    total = safe_rmtree.size(folder, most)
    device, seen = os.stat(folder).st_dev, set()
    for process in processes:
        try:
            opened = process.read(_opened)
        except OSError:  # it has ended, or runs a program that nobody may read, which is then none of its own
            continue
        for found in opened:
            nameless = stat.S_ISREG(found.st_mode) and found.st_nlink == 0 and found.st_dev == device
            if nameless and found.st_ino not in seen:
                seen.add(found.st_ino)
                total += found.st_blocks * 512
    return total


def _sockets(processes: Sequence[Process]) -> int:
    """The number of sockets of processes with many open files; one inherited by a child counts once."""
    found = set()
    for process in processes:
        with contextlib.suppress(OSError):  # it has ended
            found |= process.read(_sockets_in)
    return len(found)


def _sockets_in(folder: str) -> set[str]:
    """The sockets that are open in a process with many open files, by their names in /proc."""
    found, names = set(), os.listdir(f"{folder}/fd")
    for name in names if len(names) > MANY_FILES else ():
        with contextlib.suppress(OSError):  # it has been closed
            link = os.readlink(f"{folder}/fd/{name}")
            found |= {link} if link.startswith("socket:") else set()
    return found


def _opened(folder: str) -> list[os.stat_result]:
    """What is known of each file that is open in a process."""
    found = []
    for name in os.listdir(f"{folder}/fd"):
        with contextlib.suppress(OSError):  # it has been closed
            found.append(os.stat(f"{folder}/fd/{name}"))
    return found


def _own_pages_of(process: Process) -> int:
    """As `_own_pages`; if the first thread has ended and no other can be read, all that the process has mapped in."""
    if process.thread == process.pid:
        return _own_pages(process.pid)
    try:
        return process.read(_rollup)
    except OSError:
        return process.resident


def _own_pages(pid: int) -> int:
    """Bytes of memory without a file, each page divided among the processes that share it; 0 if it has ended.

    So the sum over a process and its descendants is their total.
    """
    try:
        return _rollup(f"/proc/{pid}")
    except FileNotFoundError:
        return _resident(pid) if not os.path.exists("/proc/self/smaps_rollup") else 0
    except OSError:  # it has ended, or does not let us look
        return _resident(pid)


def _rollup(folder: str) -> int:
    """Bytes of memory without a file of a process. Raises OSError."""
    with open(f"{folder}/smaps_rollup", "rb") as file:
        text = file.read()
    found = PER_PAGE.findall(text) if b"Pss_Anon" in text else WHOLE.findall(text)
    return sum(map(int, found)) << 10


def _maps(folder: str) -> bytes:
    with open(f"{folder}/maps", "rb") as file:
        return file.read()


def _resident(pid: int) -> int:
    try:
        return psutil.Process(pid).memory_info().rss
    except psutil.Error:
        return 0


def _shared_of_no_file(processes: Sequence[Process]) -> int:
    """Bytes of mapped shared memory without a file, which may stay allocated without any process using its pages."""
    extents: dict[bytes, int] = {}
    for process in processes:
        try:
            text = process.read(_maps)
        except OSError:
            continue
        own: dict[bytes, int] = {}
        for begin, end, inode in OF_NO_FILE.findall(text):
            own[inode] = own.get(inode, 0) + int(end, 16) - int(begin, 16)
        for inode, extent in own.items():
            extents[inode] = max(extents.get(inode, 0), extent)
    return sum(extents.values())
