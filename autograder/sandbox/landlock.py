"""The Linux calls by which a process gives up rights for itself and its children, forever and without being root.

Landlock (https://docs.kernel.org/userspace-api/landlock.html) takes away files, a seccomp filter
(https://docs.kernel.org/userspace-api/seccomp_filter.html) system calls. Python has no names for either, so both are
called through ctypes.
"""

import ctypes
import os
import platform
import struct
from collections.abc import Iterable, Sequence

libc = ctypes.CDLL(None, use_errno=True)

PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS = 22, 38
CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446  # the same numbers on every architecture
EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
TRUNCATE, IOCTL_DEVICE = 1 << 14, 1 << 15
ON_A_FILE = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEVICE
FILE_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}  # version of the interface -> how many rights it knows
WITH_NETWORK, WITH_SCOPES = 4, 6  # versions from which TCP, and signals and abstract sockets, can be taken away


class Refused(Exception):
    """The kernel does not offer what is asked for; the text says what."""


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

    listed: folders whose names can be read, but not what lies in them.
    """
    offered = version()
    every = (1 << FILE_RIGHTS.get(offered, max(FILE_RIGHTS.values()))) - 1
    network = 0b11 if offered >= WITH_NETWORK else 0
    scopes = 0b11 if offered >= WITH_SCOPES else 0
    known = 24 if offered >= WITH_SCOPES else 16 if offered >= WITH_NETWORK else 8
    rights = struct.pack("<QQQ", every, network, scopes)[:known]
    ruleset = _landlock(CREATE_RULESET, rights, ctypes.c_size_t(known), ctypes.c_uint(0))
    for paths, allowed in ((readable, EXECUTE | READ_FILE | READ_DIR), (listed, READ_DIR), (writable, every)):
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
    """No program that is executed from here on gains rights."""
    call("prctl", PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)


# System calls by name: numbers on x86_64 and aarch64; None where the architecture never had the call.
KERNEL_DOORS = {  # rarely needed, often the way out of a sandbox
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "unshare": (272, 97),
    "setns": (308, 268),
    "mount": (165, 40),
    "move_mount": (429, 429),
    "open_by_handle_at": (304, 265),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "perf_event_open": (298, 241),
    "bpf": (321, 280),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "pidfd_getfd": (438, 438),
}
SHARED_WITH_OTHERS = {  # sockets and shared memory, which only a namespace makes private
    "socket": (41, 198),
    "connect": (42, 203),
    "shmget": (29, 194),
    "semget": (64, 190),
    "msgget": (68, 186),
    "mq_open": (240, 180),
    "setpriority": (141, 140),
    "ioprio_set": (251, 30),
}
OF_FILES_BY_NAME = {  # Landlock lets these through for every file of the user's
    "chmod": (90, None),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "chown": (92, None),
    "fchown": (93, 55),
    "lchown": (94, None),
    "fchownat": (260, 54),
    "utime": (132, None),
    "utimes": (235, None),
    "futimesat": (261, None),
    "utimensat": (280, 88),
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    "removexattr": (197, 14),
    "lremovexattr": (198, 15),
    "fremovexattr": (199, 16),
    "setxattrat": (463, 463),
    "removexattrat": (466, 466),
}
ABOUT_A_PROCESS = {"prlimit64": (302, 261), "sched_setaffinity": (203, 122), "sched_setscheduler": (144, 119)}
SIGNALS = {
    "kill": (62, 129),
    "tkill": (200, 130),
    "tgkill": (234, 131),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "pidfd_send_signal": (424, 424),
}
ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}  # column above, and the kernel's own number
SECOND_X86_TABLE = 0x40000000  # x32: the same calls under other numbers

LOAD, IF_EQUAL, IF_AT_LEAST, RETURN = 0x20, 0x15, 0x35, 0x06
ALLOW, KILL, DENY = 0x7FFF0000, 0x80000000, 0x00050000 | 1  # deny with EPERM
NUMBER, ARCHITECTURE, FIRST_ARGUMENT = 0, 4, 16  # offsets in what a filter sees


def deny_calls(denied: Sequence[dict], only_on_itself: Sequence[dict] = ()) -> None:
    """From here on these calls fail with EPERM; the second kind when its first argument is another process."""
    if platform.machine() not in ARCHITECTURES:
        raise Refused(f"seccomp: no table of system calls for {platform.machine()}")
    column, architecture = ARCHITECTURES[platform.machine()]
    program = [(LOAD, 0, 0, ARCHITECTURE), (IF_EQUAL, 1, 0, architecture), (RETURN, 0, 0, KILL), (LOAD, 0, 0, NUMBER)]
    if column == 0:
        program += [(IF_AT_LEAST, 0, 1, SECOND_X86_TABLE), (RETURN, 0, 0, DENY)]
    for number in _numbers(denied, column):
        program += [(IF_EQUAL, 0, 1, number), (RETURN, 0, 0, DENY)]
    for number in _numbers(only_on_itself, column):
        program += [
            (IF_EQUAL, 0, 5, number),
            (LOAD, 0, 0, FIRST_ARGUMENT),
            (IF_EQUAL, 2, 0, 0),
            (IF_EQUAL, 1, 0, os.getpid()),
            (RETURN, 0, 0, DENY),
            (RETURN, 0, 0, ALLOW),
        ]
    program.append((RETURN, 0, 0, ALLOW))
    code = ctypes.create_string_buffer(b"".join(struct.pack("<HBBI", *step) for step in program))
    header = struct.pack("<H6xQ", len(program), ctypes.addressof(code))
    no_new_privileges()
    call("prctl", PR_SET_SECCOMP, 2, header, 0, 0)


def _numbers(tables: Sequence[dict], column: int) -> list[int]:
    return [numbers[column] for table in tables for numbers in table.values() if numbers[column] is not None]
