"""Temporary folders that say whose they are, so that what a killed process left is removed by the next one."""

import contextlib
import os
import re
import socket
import tempfile
from pathlib import Path

from autograder.sandbox import trees

PREFIX = "attention-by-hand"
NAME = re.compile(rf"{PREFIX}-(?P<kind>[a-z]+)-(?P<host>[^ ]*)-(?P<process>\d+)-(?P<began>\d+)-[^-]+")


def make(kind: str) -> Path:
    """A new folder of this process, which only its owner reads; `kind` is a word of small letters.

    What processes of this user that ended on this machine have left beside it is removed first.
    """
    remove_left()
    process = os.getpid()
    return Path(tempfile.mkdtemp(prefix=f"{PREFIX}-{kind}-{_host()}-{process}-{_began(process)}-"))


def remove_left() -> None:
    """Remove the folders of processes that no longer exist. Those of other users and machines are left alone."""
    parent = tempfile.gettempdir()
    with contextlib.suppress(OSError):
        for name in os.listdir(parent):
            of = NAME.fullmatch(name)
            if of is None or of["host"] != _host():
                continue
            path = os.path.join(parent, name)
            with contextlib.suppress(OSError):
                if os.lstat(path).st_uid == os.geteuid() and _began(int(of["process"])) != int(of["began"]):
                    trees.remove(path)


def _host() -> str:
    return re.sub(r"[^A-Za-z0-9.]", "_", socket.gethostname())


def _began(process: int) -> int:
    """When a process began, in the kernel's ticks since it was started, which no clock that is set changes.

    -1 for one that does not exist; 0 where the system does not tell.
    """
    try:
        with open(f"/proc/{process}/stat", encoding="ascii", errors="replace") as file:
            return int(file.read().rpartition(")")[2].split()[19])
    except FileNotFoundError:
        return 0 if not os.path.exists("/proc/self/stat") and _exists(process) else -1


def _exists(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass
    return True
