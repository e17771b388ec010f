"""Measures what a process and all its descendants use: processor time, memory, disk.

Each number is one that the processes themselves cannot make smaller: a child that nobody waits for keeps its account
until somebody does (`seccomp.IN_ARGUMENTS`), memory is read from the kernel page by page once it could be too much, and
a file without a name is found through the process that holds it open.
"""

import contextlib
import os
import re
import stat
from collections.abc import Sequence
from dataclasses import dataclass

import psutil

from autograder.inside import safe_rmtree

RUNNING, DISK, ASLEEP = "running", "disk", "asleep"  # what a submission is doing
SIGNAL = "signal"  # how an end is described that may have come from outside
OF_NO_FILE = re.compile(rb"^([0-9a-f]+)-([0-9a-f]+) \S{3}s \S+ \S+ (\d+) +/dev/zero", re.MULTILINE)  # shared memory
PER_PAGE = re.compile(rb"^(?:Pss_Anon|SwapPss): +(\d+) kB", re.MULTILINE)
WHOLE = re.compile(rb"^(?:Pss|SwapPss): +(\d+) kB", re.MULTILINE)


@dataclass(frozen=True)
class Process:
    """One process at one moment. Seconds: its own and those of children that it has waited for."""

    pid: int
    status: str
    seconds: float
    resident: int
    virtual: int

    @property
    def alive(self) -> bool:
        return self.status != psutil.STATUS_ZOMBIE


def descendants() -> list[psutil.Process]:
    """All descendants of this process, adopted orphans included; a parent comes before its children."""
    return psutil.Process().children(recursive=True)


def look() -> list[Process]:
    """All descendants, read in an order in which a child that ends meanwhile is missed rather than counted twice."""
    return [seen for seen in map(_looked_at, descendants()) if seen is not None]


def is_alone(child: int) -> bool:
    """Whether a child is the only descendant of this process, without a look at all processes; False if the system does
    not say."""
    try:
        return _children(os.getpid()) == {child} and not _children(child)
    except OSError:
        return False


def _children(pid: int) -> set[int]:
    """The children of a process, those that have ended and are not waited for included. Raises OSError."""
    found: set[int] = set()
    for thread in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{thread}/children") as file:
            found.update(map(int, file.read().split()))
    return found


def doing(processes: Sequence[Process]) -> str:
    """Whether any of them runs or waits for a processor, else whether any waits for a disk.

    A process in the state of waiting for a disk may only wait for a sleeping child (vfork), so this counts only for
    some time.
    """
    states = {process.status for process in processes}
    if psutil.STATUS_RUNNING in states:
        return RUNNING
    return DISK if psutil.STATUS_DISK_SLEEP in states else ASLEEP


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
        return max(0, _own_pages(os.getpid()) + sum(_own_pages(p.pid) for p in alive) - self._lent) + shared


def on_disk(folder: str, processes: Sequence[Process], most: int) -> int:
    """Bytes of files below the folder and of those without a name that a process holds open. Raises trees.TooDeep."""
    total = safe_rmtree.size(folder, most)
    device, seen = os.stat(folder).st_dev, set()
    for process in processes:
        place = f"/proc/{process.pid}/fd"
        try:
            names = os.listdir(place)
        except OSError:  # it has ended, or runs a program that nobody may read, which is then none of its own
            continue
        for name in names:
            try:
                found = os.stat(f"{place}/{name}")
            except OSError:
                continue
            nameless = stat.S_ISREG(found.st_mode) and found.st_nlink == 0 and found.st_dev == device
            if nameless and found.st_ino not in seen:
                seen.add(found.st_ino)
                total += found.st_blocks * 512
    return total


def _sockets(processes: Sequence[Process]) -> int:
    """The number of sockets of processes with many open files; one inherited by a child counts once."""
    found = set()
    for process in processes:
        place = f"/proc/{process.pid}/fd"
        try:
            names = os.listdir(place)
        except OSError:  # it has ended
            continue
        for name in names if len(names) > MANY_FILES else ():
            with contextlib.suppress(OSError):  # it has been closed
                link = os.readlink(f"{place}/{name}")
                found |= {link} if link.startswith("socket:") else set()
    return len(found)


def _looked_at(process: psutil.Process) -> Process | None:
    """One process; None when it has ended."""
    try:
        with process.oneshot():
            memory = process.memory_info()
            seconds = sum(process.cpu_times()[:4])
            return Process(process.pid, process.status(), seconds, memory.rss, memory.vms)
    except psutil.Error:
        return None


def _own_pages(pid: int) -> int:
    """Bytes of memory without a file, each page divided among the processes that share it; 0 if it has ended.

    So the sum over a process and its descendants is their total.
    """
    try:
        with open(f"/proc/{pid}/smaps_rollup", "rb") as file:
            text = file.read()
    except FileNotFoundError:
        return _resident(pid) if not os.path.exists("/proc/self/smaps_rollup") else 0
    except OSError:  # it has ended, or does not let us look
        return _resident(pid)
    found = PER_PAGE.findall(text) if b"Pss_Anon" in text else WHOLE.findall(text)
    return sum(map(int, found)) << 10


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
            with open(f"/proc/{process.pid}/maps", "rb") as file:
                text = file.read()
        except OSError:
            continue
        own: dict[bytes, int] = {}
        for begin, end, inode in OF_NO_FILE.findall(text):
            own[inode] = own.get(inode, 0) + int(end, 16) - int(begin, 16)
        for inode, extent in own.items():
            extents[inode] = max(extents.get(inode, 0), extent)
    return sum(extents.values())
