"""Confines a process before it runs a learner's code. It imports little, so that a probe starts at once.

Two ways: namespaces (own users, processes, network, mounts: nothing outside can even be named), and where a system
forbids those, Landlock with a filter of system calls (what is outside can be named but not opened). Both end with
resource limits. Run as a program it tries one of them: that is how a backend finds out whether it can isolate.
"""

import contextlib
import ctypes
import errno
import json
import os
import resource
import struct
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from autograder.inside import landlock, seccomp
from autograder.inside.landlock import Refused, call
from autograder.inside.limits import Limits

NOBODY = 65534
PR_SET_DUMPABLE, PR_SET_KEEPCAPS, PR_CAPBSET_DROP, PR_SET_CHILD_SUBREAPER = 4, 8, 24, 36
CAPABILITY_VERSION = 0x20080522
READ_ANY_FILE = 1 << 2  # CAP_DAC_READ_SEARCH
LAST_CAPABILITY = 63
NEW_MOUNTS, NEW_HOST_NAME, NEW_IPC, NEW_USERS = 0x20000, 0x04000000, 0x08000000, 0x10000000
NEW_PROCESSES, NEW_NETWORK = 0x20000000, 0x40000000
NO_SETUID_NO_DEVICES = 0b110
MOUNT_SETATTR, READ_ONLY, BELOW_TOO, HERE = 442, 1, 0x8000, -100


@dataclass(frozen=True)
class Confinement:
    """The confinement of a child. kind: "namespaces", "landlock" or "none".

    home: its folder, empty and writable. private: other folders that are empty and writable in its namespaces.
    readable: paths that are readable under Landlock; hidden: paths below them that are not. listed: folders around a
    hidden path that Python must be able to list; all names below them can be read.
    """

    kind: str
    home: str
    private: tuple[str, ...] = ()
    readable: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    listed: tuple[str, ...] = ()


def drop_root(confinement: Confinement) -> None:
    """Become the user nobody if started as root, who is exempt from limits on processes.

    Without namespaces, keep reading what only root can read, as Python itself may be; Landlock restricts the files.
    """
    if os.geteuid() != 0 or confinement.kind == "none":
        return
    keep = READ_ANY_FILE if confinement.kind == "landlock" else 0
    if keep:
        call("prctl", PR_SET_KEEPCAPS, 1, 0, 0, 0)
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)
    _set_capabilities(keep)
    call("prctl", PR_SET_DUMPABLE, 1, 0, 0, 0)  # else its own /proc/self belongs to root


def adopt_orphans() -> None:
    """Adopt the orphans of children, so that no process escapes (on Linux)."""
    if hasattr(landlock.libc, "prctl"):
        call("prctl", PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def leave(confinement: Confinement) -> None:
    """First half, in a process that then forks: create new namespaces, of which the fork becomes process 1."""
    if confinement.kind == "namespaces":
        user, group = os.getuid(), os.getgid()
        every = NEW_MOUNTS | NEW_HOST_NAME | NEW_IPC | NEW_USERS | NEW_PROCESSES | NEW_NETWORK
        call("unshare", every)
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", f"{user} {user} 1")
        _write("/proc/self/gid_map", f"{group} {group} 1")


def enter(confinement: Confinement, limits: Limits) -> None:
    """Second half, in the fork: private folders, limits, and no way back."""
    if confinement.kind == "none":
        os.chdir(confinement.home)
        return
    _write("/proc/self/oom_score_adj", "1000")  # a machine out of memory ends this process first
    if confinement.kind == "namespaces":
        _make_everything_read_only()
        for folder in (*confinement.private, confinement.home):
            options = f"size={limits.disk_bytes},nr_inodes={limits.files},mode=700".encode()
            call("mount", b"tmpfs", folder.encode(), b"tmpfs", NO_SETUID_NO_DEVICES, options)
    _limit_resources(limits, own_users=confinement.kind == "namespaces")
    os.chdir(confinement.home)
    if confinement.kind == "namespaces":
        for capability in range(LAST_CAPABILITY + 1):
            landlock.libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)  # fails beyond the last one the kernel knows
        _set_capabilities(0)
        call("prctl", PR_SET_DUMPABLE, 1, 0, 0, 0)  # else the warm process may not see what it uses
        seccomp.deny_calls()
    elif confinement.kind == "landlock":
        writable = [confinement.home, "/dev/null", "/dev/zero", "/dev/urandom"]
        readable, around = _without(confinement.readable, confinement.hidden)
        landlock.restrict_files(readable, [path for path in around if path in confinement.listed], writable)
        scoped = landlock.version_offers_scopes()
        seccomp.deny_calls(
            [seccomp.SHARED_WITH_OTHERS, seccomp.OF_FILES_BY_NAME],
            [seccomp.ABOUT_A_PROCESS, *([] if scoped else [seccomp.SIGNALS])],
        )


def _make_everything_read_only() -> None:
    """Make all mounts read-only, so that nothing is left for the next child; also /proc, where a process sets its own
    OOM score.

    Kernels before 5.12 cannot do it at once; there only the sandbox's own read-only mounts are.
    """
    attributes = struct.pack("<4Q", READ_ONLY, 0, 0, 0)
    size = ctypes.c_size_t(len(attributes))
    try:
        call("syscall", ctypes.c_long(MOUNT_SETATTR), HERE, b"/", ctypes.c_uint(BELOW_TOO), attributes, size)
    except Refused:
        if ctypes.get_errno() != errno.ENOSYS:
            raise


def _limit_resources(limits: Limits, own_users: bool) -> None:
    """Set the limits of each process; what all of them use together is measured by the warm process."""
    with open("/proc/self/statm", encoding="ascii") as file:
        mapped = int(file.read().split()[0]) * resource.getpagesize()
    # Outside a user namespace the kernel counts all of the user's tasks, those of other programs too.
    others = 0 if own_users else _tasks_of(os.getuid())
    for kind, most in (
        (resource.RLIMIT_AS, mapped + limits.memory_bytes),
        (resource.RLIMIT_NPROC, others + limits.processes),
        (resource.RLIMIT_FSIZE, limits.file_bytes),
        (resource.RLIMIT_NOFILE, 256),
        # 1, unlike 0, also stops cores that the kernel would pipe into a program of the machine, which nobody counts.
        (resource.RLIMIT_CORE, 1),
    ):
        allowed = resource.getrlimit(kind)[1]  # by the machine, which may be stricter
        least = most if allowed == resource.RLIM_INFINITY else min(most, allowed)
        resource.setrlimit(kind, (least, least))


def _without(folders: Sequence[str], hidden: Sequence[str]) -> tuple[list[str], list[str]]:
    """The paths that cover the folders without the hidden ones, and the folders in between."""
    readable: list[str] = []
    between: list[str] = []
    waiting = list(folders)
    while waiting:
        path = waiting.pop()
        if path in hidden:
            continue
        if any(one.startswith(f"{path}/") for one in hidden):
            between.append(path)
            # A link to a folder would open all of it; what it points to is found under its own name.
            with contextlib.suppress(PermissionError):  # what cannot be listed is not opened either
                waiting += [entry.path for entry in os.scandir(path) if not entry.is_symlink()]
        else:
            readable.append(path)
    return readable, between


def _tasks_of(user: int) -> int:
    tasks = 0
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.stat(f"/proc/{name}").st_uid == user:
                tasks += len(os.listdir(f"/proc/{name}/task"))
        except OSError:  # it has ended
            continue
    return tasks


def _set_capabilities(kept: int) -> None:
    header = struct.pack("<II", CAPABILITY_VERSION, 0)
    call("capset", header, struct.pack("<6I", kept, kept, 0, 0, 0, 0))


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def try_out(arguments: Sequence[str]) -> int:
    """Confine a child; returns 0 on success, else prints the reason."""
    confinement = Confinement(**json.loads(arguments[0]))
    try:
        drop_root(confinement)
        leave(confinement)
        child = os.fork()
        if child:
            return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        enter(confinement, Limits())
        return 0
    except (Refused, OSError) as error:
        print(error, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(try_out(sys.argv[1:]))
