"""The warm process inside a sandbox: it has torch imported and forks a confined child for each submission.

It never runs a learner's code, so the next child finds it as it was. It stays single-threaded, since only such a
process forks safely. It obeys its control socket: start a child, say what the child and everything
that it started use, interrupt it, end it.
"""

import contextlib
import gc
import importlib
import json
import os
import random
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NoReturn

import psutil

from autograder.inside import confine, cpu_time, memory_and_disk, safe_rmtree, seccomp
from autograder.inside.confine import Confinement
from autograder.inside.landlock import Refused
from autograder.inside.limits import Limits
from autograder.inside.local_socket import short_address

MAX_CONTROL_BYTES = 4096
MOST_SECONDS_ALONE = 2.0  # until everything but the child has ended; a disk may hold a process up
REST = 2  # two counts of the files on a disk are apart by at least this multiple of what one takes


class Zygote:
    """Serves the control socket until the trusted side closes it."""

    def __init__(self, control: socket.socket, confinement: Confinement, limits: Limits) -> None:
        from autograder.inside import shell

        self._control, self._confinement, self._limits = control, confinement, limits
        self._shell_module, self._shell = shell, shell.make()
        self._child: int | None = None
        self._home: str | None = None
        self._ended = ""

    def serve(self) -> NoReturn:
        """Execute commands, one child at a time. Ends the process."""
        self._memory = memory_and_disk.Memory()  # once: children leave the pages of this process as they were
        self._begin()
        self._control.sendall(_line({"ready": psutil.Process().num_threads()}))
        while True:
            message, descriptors, _, _ = socket.recv_fds(self._control, MAX_CONTROL_BYTES, 1)
            if not message:
                self._stop()
                os._exit(0)
            self._control.sendall(_line(self._obey(json.loads(message)["do"], descriptors)))

    def _obey(self, order: str, descriptors: Sequence[int]) -> dict[str, Any]:
        """Execute an order; returns the child's usage, whether it runs, and how it ended, if it did."""
        if order == "start":
            self._stop()
            self._start(descriptors[0])
        elif order == "interrupt" and self._child:
            _kill(self._child, signal.SIGINT)
        elif order == "alone":
            self._end_others()
        elif order == "stop":
            self._stop()
        return self._used() if order == "usage" else {"ended": self._ended}

    def _start(self, connection: int) -> None:
        """Fork a child that serves the connection."""
        self._ended = ""
        self._begin()
        namespaced = self._confinement.kind == "namespaces"
        self._home = None if namespaced else tempfile.mkdtemp(dir=self._confinement.home)
        confinement = replace(self._confinement, home=self._home or self._confinement.home)
        try:
            fork = partial(_fork_elsewhere, confinement) if namespaced else os.fork
            self._child = fork()
            if self._child == 0:
                self._be_a_child(confinement, connection)
        except (OSError, Refused) as error:
            self._child, self._ended = None, f"no child could be forked: {error}"
        os.close(connection)

    def _be_a_child(self, confinement: Confinement, connection: int) -> NoReturn:
        """Confine this process and run what the connection asks for."""
        try:
            nowhere = os.open(os.devnull, os.O_RDWR)
            os.dup2(nowhere, 0)
            os.dup2(nowhere, 1)
            os.dup2(connection, 3)
            os.closerange(4, 256)
            channel = socket.socket(fileno=3)
            os.environ.update(HOME=confinement.home, TMPDIR=confinement.home)
            tempfile.tempdir = None  # asked for anew
            # Files next to the notebook can be imported, as in Jupyter; last, so that none hides a module of a package.
            sys.path.append("")
            _seed()
            os.setsid()
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            confine.enter(confinement, self._limits)
            os.dup2(0, 2)  # until here the trusted side learns what went wrong
            self._shell_module.serve(self._shell, channel)
        except BaseException as error:
            print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
        finally:
            os._exit(0)

    def _begin(self) -> None:
        """Open the accounts of a new child, while there is none."""
        self._seconds, self._disk, self._next_count = 0.0, 0, 0.0

    def _used(self) -> dict[str, Any]:
        """The usage of the child and its descendants: processor seconds, bytes, and their states."""
        processes = cpu_time.look()
        # A subprocess that was waited for counts with its parent; one that nobody waits for must not be forgotten.
        self._seconds = max(self._seconds, sum(process.seconds for process in processes))
        lives = any(process.pid == self._child and process.alive for process in processes)
        return {
            "seconds": self._seconds,
            "memory": self._memory.used(processes, self._limits.memory_bytes),
            "disk": self._on_disk(processes),
            "doing": cpu_time.doing(processes),
            "ended": "" if lives else self._how_it_ended(),
        }

    def _how_it_ended(self) -> str:
        """How the child ended: "exit", or "signal N" for one that may have come from outside."""
        if self._child is None:
            return self._ended or "exit"
        try:
            found = os.waitid(os.P_PID, self._child, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return "exit"
        if found is None:  # it ends just now
            return ""
        killed = found.si_code != os.CLD_EXITED and found.si_status in seccomp.FROM_OUTSIDE
        return f"{cpu_time.SIGNAL} {found.si_status}" if killed else "exit"

    def _on_disk(self, processes: Sequence[cpu_time.Process]) -> int:
        """Bytes in the home folder; in namespaces its own file system limits them."""
        began = time.monotonic()
        if self._home and began >= self._next_count:
            try:
                self._disk = memory_and_disk.on_disk(self._home, processes, self._limits.disk_bytes)
            except safe_rmtree.TooDeep:
                self._disk = self._limits.disk_bytes + 1
            except OSError:  # it could not be looked at now
                return self._disk
            now = time.monotonic()
            self._next_count = now + REST * (now - began)
        return self._disk

    def _end_others(self) -> None:
        """End what the child has started: before a question, since it could answer out of the watch's sight.

        The child is stopped meanwhile, so that it starts nothing new.
        """
        if self._child is None or cpu_time.is_alone(self._child) or not self._others():
            return
        _kill(self._child, signal.SIGSTOP)
        until = time.monotonic() + MOST_SECONDS_ALONE
        while (left := self._others()) and time.monotonic() < until:
            _end(left)
            for process in left:  # an orphan is this process's own child; others are the child's
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(process, os.WNOHANG)
            time.sleep(0.001)
        _kill(self._child, signal.SIGCONT)

    def _others(self) -> list[int]:
        """All living descendants except the child."""
        return [process.pid for process in cpu_time.look() if process.alive and process.pid != self._child]

    def _stop(self) -> None:
        """End the child and its descendants."""
        if self._child is None:
            return
        while left := cpu_time.descendants():
            _end([process.pid for process in left])
            _reap()
        self._child = None
        if self._home:
            safe_rmtree.remove(self._home)


def _fork_elsewhere(confinement: Confinement) -> int:
    """Fork a child that is process 1 of new namespaces; returns its id, as os.fork does."""
    told, tells = os.pipe()
    helper = os.fork()
    if helper:
        os.close(tells)
        os.waitpid(helper, 0)
        with os.fdopen(told) as file:
            child, _, reason = file.read().partition(" ")
        if not child.isdigit():
            raise Refused(reason)
        return int(child)
    try:
        confine.leave(confinement)
        child = os.fork()
        if child == 0:
            return 0
        os.write(tells, str(child).encode())
    except Exception as error:
        os.write(tells, f"- {error}".encode())
    os._exit(0)


def _line(message: dict[str, Any]) -> bytes:
    return json.dumps(message).encode() + b"\n"


def _kill(process: int, signal_number: int) -> None:
    try:
        os.kill(process, signal_number)
    except ProcessLookupError:
        return


def _end(processes: Sequence[int]) -> None:
    for signal_number in (signal.SIGSTOP, signal.SIGKILL):  # what is stopped starts nothing new
        for process in processes:
            _kill(process, signal_number)


def _reap() -> None:
    """Reap every child that has ended."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            continue
        time.sleep(0.001)
    except ChildProcessError:
        return


def _seed() -> None:
    """Seed the random numbers of a child, which would else be those of its siblings."""
    import numpy
    import torch

    random.seed()
    numpy.random.seed()
    torch.default_generator.seed()


def main(address: str, settings: str) -> NoReturn:
    """Connect to the trusted side, give up root, import, and serve."""
    chosen = json.loads(settings)
    control = socket.socket(socket.AF_UNIX)
    with short_address(address) as short:
        control.connect(short)
    confinement = Confinement(**chosen["confinement"])
    confine.drop_root(confinement)
    confine.adopt_orphans()
    import torch

    torch.set_num_threads(1)
    for module in chosen["preload"]:
        try:
            importlib.import_module(module)
        except Exception as error:  # the notebook will say so itself, in its own cell
            print(f"{module}: {error}", file=sys.stderr)
    zygote = Zygote(control, confinement, Limits(**chosen["limits"]))
    gc.collect()
    gc.freeze()
    zygote.serve()


if __name__ == "__main__":
    main(*sys.argv[1:])
