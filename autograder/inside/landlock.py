"""Landlock: a process gives up files for itself and its children, forever and without being root.

See https://docs.kernel.org/userspace-api/landlock.html. Python has no names for it, so it is called through ctypes.
"""

import ctypes
import os
import struct
from collections.abc import Iterable

libc = ctypes.CDLL(None, use_errno=True)

PR_SET_NO_NEW_PRIVS = 38
CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446  # the same numbers on every architecture
EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
TRUNCATE, IOCTL_DEVICE = 1 << 14, 1 << 15
ON_A_FILE = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEVICE
FILE_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}  # version of the interface -> how many rights it knows
WITH_NETWORK, WITH_SCOPES = 4, 6  # versions from which TCP, and signals and abstract sockets, can be taken away


class Refused(Exception):
    """The kernel lacks a feature; the text says which."""


def call(name: str, *arguments: object) -> int:
    """Call a function of the C library. Raises Refused with its name and the kernel's reason."""
    result = getattr(libc, name)(*arguments)
    if result < 0:
        raise Refused(f"{name}: {os.strerror(ctypes.get_errno())}")
    return result


def _landlock(number: int, *arguments: object) -> int:
    try:
        return call("syscall", ctypes.c_long(number), *arguments)
    except Refused as error:
        raise Refused(f"Landlock {error}") from error


def version() -> int:
    """The version of Landlock that this kernel offers. Raises Refused when it offers none."""
    return _landlock(CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint(1))


def version_offers_scopes() -> bool:
    """Whether signals to processes outside are taken away too."""
    return version() >= WITH_SCOPES


def restrict_files(readable: Iterable[str], listed: Iterable[str], writable: Iterable[str]) -> None:
    """From here on only these files and folders can be opened; no TCP, no signal to a process outside.

    listed: folders below which all names can be read, but nothing else.
    """
    offered = version()
    every = (1 << FILE_RIGHTS.get(offered, max(FILE_RIGHTS.values()))) - 1
    network = 0b11 if offered >= WITH_NETWORK else 0
    scopes = 0b11 if offered >= WITH_SCOPES else 0
    known = 24 if offered >= WITH_SCOPES else 16 if offered >= WITH_NETWORK else 8
    rights = struct.pack("<QQQ", every, network, scopes)[:known]
    ruleset = _landlock(CREATE_RULESET, rights, ctypes.c_size_t(known), ctypes.c_uint(0))
    # What a process has written it cannot start as a program: one that nobody may read would hide what it uses.
    granted = (readable, EXECUTE | READ_FILE | READ_DIR), (listed, READ_DIR), (writable, every & ~EXECUTE)
    for paths, allowed in granted:
        for path in filter(os.path.exists, paths):
            opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
            allowed_here = allowed if os.path.isdir(path) else allowed & ON_A_FILE
            rule = struct.pack("<Qi", allowed_here & every, opened)
            _landlock(ADD_RULE, ctypes.c_int(ruleset), ctypes.c_int(1), rule, ctypes.c_uint(0))
            os.close(opened)
    no_new_privileges()
    _landlock(RESTRICT_SELF, ctypes.c_int(ruleset), ctypes.c_uint(0))
    os.close(ruleset)


def no_new_privileges() -> None:
    """Programs executed from here on gain no privileges."""
    call("prctl", PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
