"""Measures the processor time of a process's descendants, and sees whether they run, wait or sleep.

No process can make this time smaller: a child that nobody waits for keeps its account until somebody does
(`seccomp.IN_ARGUMENTS`). A process whose first thread has ended looks like a zombie while its other threads run, so it
is measured through one of those.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import psutil

RUNNING, DISK, ASLEEP = "running", "disk", "asleep"  # what a submission is doing
SIGNAL = "signal"  # an end that may have come from outside
ENDED = (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
TRIES = 20  # at reading a thread, each time of a new list: threads may end while they are looked at
UNREADABLE = 1 << 50  # bytes that a process counts as if its threads end faster than they can be read
STATES = {
    "R": psutil.STATUS_RUNNING,
    "D": psutil.STATUS_DISK_SLEEP,
    "Z": psutil.STATUS_ZOMBIE,
    "X": psutil.STATUS_DEAD,
}
PAGE = os.sysconf("SC_PAGE_SIZE")

T = TypeVar("T")


@dataclass(frozen=True)
class Process:
    """One process at one moment. Seconds: its own and those of children that it has waited for.

    thread: the one through which it is measured: the first, or if that has ended, another one that lives.
    """

    pid: int
    status: str
    seconds: float
    resident: int
    virtual: int
    thread: int

    @property
    def alive(self) -> bool:
        return self.status not in ENDED

    def read(self, reader: Callable[[str], T]) -> T:
        """What `reader` returns for the process's folder in /proc. Raises OSError if the process has ended."""
        if self.thread == self.pid:
            return reader(f"/proc/{self.pid}")
        for _ in range(TRIES):
            for thread in _later_threads(self.pid):
                try:
                    return reader(f"/proc/{self.pid}/task/{thread}")
                except OSError:  # this thread has ended
                    continue
        raise ProcessLookupError(self.pid)


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
    """The children of a process, including those that ended and are not waited for. Raises OSError."""
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


def _looked_at(process: psutil.Process) -> Process | None:
    """One process; None when it has ended."""
    try:
        with process.oneshot():
            pid, status, memory = process.pid, process.status(), process.memory_info()
            seconds = sum(process.cpu_times()[:4])
    except psutil.Error:
        return None
    if status in ENDED:
        return _without_first_thread(pid, seconds) or Process(pid, status, seconds, 0, 0, pid)
    return Process(pid, status, seconds, memory.rss, memory.vms, pid)


def _without_first_thread(pid: int, seconds: float) -> Process | None:
    """A process whose first thread has ended, by its other threads; None if none of them lives.

    A thread that just ends has no memory any more, so the largest is that of the process.
    """
    for _ in range(TRIES):
        threads = _later_threads(pid)
        seen = [found for found in (_thread(pid, thread) for thread in threads) if found is not None]
        living = [found for found in seen if found[0] not in ENDED]
        if living:
            states = [state for state, *_ in living]
            state = next(
                (each for each in (psutil.STATUS_RUNNING, psutil.STATUS_DISK_SLEEP) if each in states), states[0]
            )
            _, virtual, resident, thread = max(living, key=lambda found: found[1:])
            return Process(pid, state, seconds, resident, virtual, thread)
        if len(seen) == len(threads):
            return None
    return Process(pid, psutil.STATUS_RUNNING, seconds, UNREADABLE, UNREADABLE, 0)


def _later_threads(pid: int) -> list[int]:
    """All threads of a process except its first."""
    try:
        return [int(thread) for thread in os.listdir(f"/proc/{pid}/task") if int(thread) != pid]
    except OSError:
        return []


def _thread(pid: int, thread: int) -> tuple[str, int, int, int] | None:
    """State, virtual and resident bytes, and id of a thread; None when it has gone."""
    try:
        with open(f"/proc/{pid}/task/{thread}/stat", "rb") as file:
            letter = file.read().rpartition(b")")[2].split()[0].decode()
        with open(f"/proc/{pid}/task/{thread}/statm", "rb") as file:
            virtual, resident, *_ = map(int, file.read().split())
    except (OSError, ValueError, IndexError):
        return None
    return STATES.get(letter, psutil.STATUS_SLEEPING), virtual * PAGE, resident * PAGE, thread
