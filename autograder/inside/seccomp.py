"""A filter of system calls, by which a process gives up what the kernel offers beyond files.

See https://docs.kernel.org/userspace-api/seccomp_filter.html. What is denied is what programs in a notebook do not need
and what ways out of sandboxes, memory that nobody counts and time that nobody counts are made of.
"""

import ctypes
import errno
import os
import platform
import signal
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from autograder.inside.landlock import Refused, call, no_new_privileges

PR_SET_SECCOMP = 22

# System calls by name: numbers on x86_64 and aarch64; None where the architecture never had the call.
Table = Mapping[str, tuple[int | None, int | None]]
KERNEL_DOORS: Table = {  # rarely needed, often the way out of a sandbox
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "kcmp": (312, 272),
    "pidfd_getfd": (438, 438),
    "process_madvise": (440, 440),
    "unshare": (272, 97),
    "setns": (308, 268),
    "chroot": (161, 51),
    "pivot_root": (155, 41),
    "mount": (165, 40),
    "umount2": (166, 39),
    "move_mount": (429, 429),
    "open_tree": (428, 428),
    "open_tree_attr": (467, 467),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "statmount": (457, 457),
    "listmount": (458, 458),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "acct": (163, 89),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "fanotify_init": (300, 262),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "perf_event_open": (298, 241),
    "bpf": (321, 280),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "personality": (135, 92),
    "modify_ldt": (154, None),
    "uselib": (134, None),
    "iopl": (172, None),
    "ioperm": (173, None),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "reboot": (169, 142),
    "syslog": (103, 116),
    "lookup_dcookie": (212, 18),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "adjtimex": (159, 171),
    "clock_adjtime": (305, 266),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
}
UNCOUNTED: Table = {  # memory that no process shows as its own, a rank that makes waiting look like a busy machine
    "vmsplice": (278, 75),
    "shmget": (29, 194),
    "shmat": (30, 196),
    "semget": (64, 190),
    "msgget": (68, 186),
    "mq_open": (240, 180),
    "mbind": (237, 235),
    "set_mempolicy": (238, 237),
    "migrate_pages": (256, 238),
    "move_pages": (279, 239),
    "setpriority": (141, 140),
    "ioprio_set": (251, 30),
    "setrlimit": (160, 164),  # a limit of its own would have the kernel end it, as if somebody outside had
    "timer_create": (222, 107),  # the same by a timer that sends SIGKILL
    "sched_setscheduler": (144, 119),
    "sched_setparam": (142, 118),
    "sched_setattr": (314, 274),
}
UNKNOWN: Table = {  # said not to exist, so that the C library takes an older call, which a filter can look into
    "clone3": (435, 435),
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
}
OF_THE_MACHINE: Table = {"sync": (162, 81), "syncfs": (306, 267)}  # said to be done: all its disks would wait
SHARED_WITH_OTHERS: Table = {"socket": (41, 198), "connect": (42, 203)}  # which only a namespace makes private
OF_FILES_BY_NAME: Table = {  # Landlock lets these through for every file of the user's
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
ABOUT_A_PROCESS: Table = {"prlimit64": (302, 261), "sched_setaffinity": (203, 122)}
SIGNALS: Table = {
    "kill": (62, 129),
    "tkill": (200, 130),
    "tgkill": (234, 131),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "pidfd_send_signal": (424, 424),
}
ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}  # column above, and the kernel's own number
SECOND_X86_TABLE = 0x40000000  # x32: the same calls under other numbers

LOAD, IF_EQUAL, IF_AT_LEAST, IF_ANY_BIT, KEEP_BITS, RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
ALLOW, KILL, FAIL = 0x7FFF0000, 0x80000000, 0x00050000  # to FAIL an error number is added; without one: "done"
NUMBER, ARCHITECTURE, ARGUMENTS = 0, 4, 16  # offsets in what a filter sees; of an argument the lower half counts

NEW_NAMESPACES = 0x7E020000  # every CLONE_NEW* that clone takes
SIGCHLD, DUMPABLE = 17, 4
SET_OWNER, SET_OWNER_BY_KIND, SET_SIGNAL = 8, 15, 10  # of fcntl: signals on somebody's account
LEASE, DELEGATION = 1024, 1040  # of fcntl: any process on the machine that opens the file then waits for its holder
TYPE_AHEAD, OF_CONSOLE, LINE_DISCIPLINE, OWNER, OWNER_OF_SOCKET = 0x5412, 0x541C, 0x5423, 0x8901, 0x8902  # of ioctl
BUFFERS = (7, 8, 32, 33)  # of setsockopt: SO_SNDBUF, SO_RCVBUF, and both by force
LOCAL, INTERNET, INTERNET_6, ROUTES = 1, 2, 10, 16  # kinds of sockets, all without a way out of the namespace


@dataclass(frozen=True)
class Only:
    """A system call that fails with `error` for some values of an argument: those given, or all others, or with these
    bits."""

    numbers: tuple[int | None, int | None]
    argument: int
    error: int
    values: tuple[int, ...] = ()
    others: bool = False
    bits: int = 0

    def program(self, number: int) -> Iterator[tuple[int, int, int, int]]:
        """The instructions of the filter."""
        found, passed = (RETURN, 0, 0, FAIL | self.error), (RETURN, 0, 0, ALLOW)
        first, second = (passed, found) if self.others else (found, passed)
        tests = [(IF_ANY_BIT, self.bits)] if self.bits else [(IF_EQUAL, value) for value in self.values]
        yield IF_EQUAL, 0, len(tests) + 3, number
        yield LOAD, 0, 0, ARGUMENTS + 8 * self.argument
        for place, (test, value) in enumerate(tests):
            yield test, len(tests) - place, 0, value
        yield second
        yield first


@dataclass(frozen=True)
class AllOf:
    """A system call that is denied if each of some arguments has one of its values. Other rules still apply.

    conditions: (offset of the relevant 32 bits, values) of each.
    """

    numbers: tuple[int | None, int | None]
    conditions: tuple[tuple[int, tuple[int, ...]], ...]

    def program(self, number: int) -> Iterator[tuple[int, int, int, int]]:
        """The instructions of the filter."""
        left = sum(1 + len(values) for _, values in self.conditions)
        yield IF_EQUAL, 0, left + 2, number
        for offset, values in self.conditions:
            left -= 1 + len(values)
            yield LOAD, 0, 0, offset
            for place, value in enumerate(values):
                others = len(values) - 1 - place
                yield IF_EQUAL, others, 0 if others else left + 1, value
        yield RETURN, 0, 0, FAIL | errno.EPERM
        yield LOAD, 0, 0, NUMBER


@dataclass(frozen=True)
class Byte:
    """A system call that is denied unless the lowest byte of an argument has one of some values. Other rules still
    apply."""

    numbers: tuple[int | None, int | None]
    argument: int
    values: tuple[int, ...]

    def program(self, number: int) -> Iterator[tuple[int, int, int, int]]:
        """The instructions of the filter."""
        yield IF_EQUAL, 0, len(self.values) + 4, number
        yield LOAD, 0, 0, _low(self.argument)
        yield KEEP_BITS, 0, 0, 0xFF
        for place, value in enumerate(self.values):
            yield IF_EQUAL, len(self.values) - place, 0, value
        yield RETURN, 0, 0, FAIL | errno.EPERM
        yield LOAD, 0, 0, NUMBER


@dataclass(frozen=True)
class LimitsOnlyRead:
    """prlimit64, which sets limits where its third argument points to some. Other rules for it still apply."""

    numbers: tuple[int | None, int | None]

    def program(self, number: int) -> Iterator[tuple[int, int, int, int]]:
        """The instructions of the filter: both halves of the address must be 0."""
        yield IF_EQUAL, 0, 6, number
        yield LOAD, 0, 0, _low(2)
        yield IF_EQUAL, 0, 2, 0
        yield LOAD, 0, 0, _low(2) + 4
        yield IF_EQUAL, 1, 0, 0
        yield RETURN, 0, 0, FAIL | errno.EPERM
        yield LOAD, 0, 0, NUMBER


def _low(argument: int) -> int:
    return ARGUMENTS + 8 * argument


def _cannot_end_itself(process: int) -> Iterator[AllOf]:
    """Rules that keep the children of this process from sending it a signal that looks like one from outside.

    process: its id. Signals to thread ids and process descriptors are denied altogether.
    """
    itself = tuple(number & 0xFFFFFFFF for number in (process, -process, 0, -1))  # by itself, its group, all of these
    for name, place in (("kill", 1), ("rt_sigqueueinfo", 1), ("tgkill", 2), ("rt_tgsigqueueinfo", 2)):
        yield AllOf(SIGNALS[name], ((_low(place), FROM_OUTSIDE), (_low(0), itself)))
    for name in ("tkill", "pidfd_send_signal"):
        yield AllOf(SIGNALS[name], ((_low(1), FROM_OUTSIDE),))


FROM_OUTSIDE = (signal.SIGKILL, signal.SIGTERM, signal.SIGHUP)  # what ends a process that has done nothing itself
IN_ARGUMENTS = (
    # At its end a child sends its parent the signal in this byte: SIGKILL would end the parent as if from outside.
    Byte((56, 220), 0, (0, SIGCHLD)),  # clone
    Only((56, 220), 0, errno.EPERM, bits=NEW_NAMESPACES),  # clone
    # Installing a SIGCHLD handler silently has no effect: children that nobody has to wait for leave no account of
    # their processor time. Said to be done, since torch's DataLoader asks for a handler and can do without.
    Only((13, 134), 0, 0, values=(SIGCHLD,)),  # rt_sigaction
    Only((157, 167), 0, errno.EPERM, values=(DUMPABLE,)),  # prctl: what it uses could no longer be looked up
    Only((16, 29), 1, errno.EPERM, values=(TYPE_AHEAD, OF_CONSOLE, LINE_DISCIPLINE, OWNER, OWNER_OF_SOCKET)),  # ioctl
    Only((72, 25), 1, errno.EPERM, values=(SET_OWNER, SET_OWNER_BY_KIND, SET_SIGNAL, LEASE, DELEGATION)),  # fcntl
    # What lies in a socket's buffer is not a process's memory: it keeps its usual size, and sockets are counted
    # (`memory_and_disk`).
    Only((54, 208), 2, 0, values=BUFFERS),  # setsockopt
    Only((41, 198), 0, errno.EAFNOSUPPORT, values=(LOCAL, INTERNET, INTERNET_6, ROUTES), others=True),  # socket
)


def deny_calls(denied: Sequence[Table] = (), only_on_itself: Sequence[Table] = ()) -> None:
    """From here on system calls that no notebook needs fail, as do the calls `denied` if their first argument is
    another process. Raises Refused if the kernel or the architecture does not support it."""
    if platform.machine() not in ARCHITECTURES:
        raise Refused(f"seccomp: no table of system calls for {platform.machine()}")
    column, architecture = ARCHITECTURES[platform.machine()]
    program = [(LOAD, 0, 0, ARCHITECTURE), (IF_EQUAL, 1, 0, architecture), (RETURN, 0, 0, KILL), (LOAD, 0, 0, NUMBER)]
    if column == 0:
        program += [(IF_AT_LEAST, 0, 1, SECOND_X86_TABLE), (RETURN, 0, 0, FAIL | errno.EPERM)]
    for error, tables in (
        (errno.EPERM, [KERNEL_DOORS, UNCOUNTED, *denied]),
        (errno.ENOSYS, [UNKNOWN]),
        (0, [OF_THE_MACHINE]),
    ):
        for number in _numbers(tables, column):
            program += [(IF_EQUAL, 0, 1, number), (RETURN, 0, 0, FAIL | error)]
    itself = [Only(numbers, 0, errno.EPERM, (0, os.getpid()), others=True) for numbers in _rows(only_on_itself)]
    limits = LimitsOnlyRead(ABOUT_A_PROCESS["prlimit64"])
    for rule in (limits, *_cannot_end_itself(os.getpid()), *IN_ARGUMENTS, *itself):
        if rule.numbers[column] is not None:
            program += rule.program(rule.numbers[column])
    program.append((RETURN, 0, 0, ALLOW))
    code = ctypes.create_string_buffer(b"".join(struct.pack("<HBBI", *step) for step in program))
    header = struct.pack("<H6xQ", len(program), ctypes.addressof(code))
    no_new_privileges()
    call("prctl", PR_SET_SECCOMP, 2, header, 0, 0)


def _rows(tables: Sequence[Table]) -> Iterator[tuple[int | None, int | None]]:
    for table in tables:
        yield from table.values()


def _numbers(tables: Sequence[Table], column: int) -> list[int]:
    return [numbers[column] for numbers in _rows(tables) if numbers[column] is not None]
