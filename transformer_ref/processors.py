"""How many processors this process may use. In a container that is often fewer than the machine has."""

import math
import os
from collections.abc import Iterator
from pathlib import Path

CGROUPS = Path("/sys/fs/cgroup")
MEMBERSHIP = Path("/proc/self/cgroup")  # a line for each hierarchy: number:controllers:path


def usable_processors(cgroups: Path = CGROUPS, membership: Path = MEMBERSHIP) -> int:
    """Return how many processors this process may keep busy, at least 1.

    The minimum of three: the processors of the machine, those the process may run on (`sched_setaffinity`, `taskset`),
    and the processor time that a container is allowed (cgroup v2 `cpu.max`, v1 `cpu.cfs_quota_us`), rounded up.
    cgroups, membership: Linux's files about control groups; on other systems they do not exist and set no limit.
    """
    present = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(min([present, *_quotas(cgroups, membership)]), 1)


def processors_in_words() -> str:
    """Return a sentence such as "2 of 64 processors may be used"."""
    return f"{usable_processors()} of {os.cpu_count()} processors may be used"


def _quotas(cgroups: Path, membership: Path) -> Iterator[int]:
    """Yield the limit of each group that this process belongs to, and of all its parent groups."""
    for line in _read(membership).splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if controllers and "cpu" not in controllers.split(","):
            continue
        inside = Path(path.lstrip("/"))
        for group in (inside, *inside.parents):  # a container may see itself as the root, whatever its path says
            quota, period = _quota(cgroups / controllers / group)
            if quota > 0 and period > 0:
                yield math.ceil(quota / period)


def _quota(group: Path) -> tuple[int, int]:
    """Return the microseconds of processor time that a group gets in each period, and the period; (0, 0): no limit."""
    words = _read(group / "cpu.max").split()  # "200000 100000" or "max 100000"
    words = words or (_read(group / "cpu.cfs_quota_us") + " " + _read(group / "cpu.cfs_period_us")).split()
    if len(words) != 2 or not all(word.isdecimal() for word in words):  # "max", or -1, sets no limit
        return 0, 0
    return int(words[0]), int(words[1])


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii")
    except OSError:
        return ""
