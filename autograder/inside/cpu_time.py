"""Measures the processor time of a process's descendants, and sees whether they run, wait or sleep.

No process can make this time smaller: a child that nobody waits for keeps its account until somebody does
(`seccomp.IN_ARGUMENTS`).
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass

import psutil

RUNNING, DISK, ASLEEP = "running", "disk", "asleep"  # what a submission is doing
SIGNAL = "signal"  # an end that may have come from outside


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
            memory = process.memory_info()
            seconds = sum(process.cpu_times()[:4])
            return Process(process.pid, process.status(), seconds, memory.rss, memory.vms)
    except psutil.Error:
        return None
