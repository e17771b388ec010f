"""Forks commands of nbgrader and of ours, and the workers of gradings, from one process that has made their imports.

Each import takes seconds; a command of the grader forks its workers for the same reason (`grade.fork_server`).
Tests about starting a process, about `python -m autograder grade` and about the command line start their own.
"""

import atexit
import contextlib
import gc
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import IO

MAX_BYTES = 1 << 16
DESCRIPTORS = 3


class Warm:
    """A process with everything imported, started with the first order and ended with this process."""

    def __init__(self) -> None:
        self._line: socket.socket | None = None
        self._lock = threading.Lock()

    def nbgrader(self, folder: Path, *arguments: str) -> subprocess.CompletedProcess:
        """As `sample_class.nbgrader`: one nbgrader command in a course, with its output."""
        from autograder import course

        command, environment = course.nbgrader_command(*arguments)
        with tempfile.TemporaryFile() as output:
            code = self._run(folder, ["nbgrader", *arguments], environment, output)
            return subprocess.CompletedProcess(command, code, said(output))

    def command(self, folder: Path, words: Sequence[str], environment: Mapping[str, str]) -> tuple[int, str, str]:
        """One command as a shell would run it, `nbgrader ...` or `python -m autograder ...`: its exit code, its output,
        its errors."""
        with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
            code = self._run(folder, words, environment, output, errors)
            return code, said(output), said(errors)

    def _run(self, folder: Path, words: Sequence[str], environment: Mapping[str, str], *outputs: IO[bytes]) -> int:
        order = {"do": "command", "folder": str(folder), "environment": dict(environment), "words": words}
        return self._wait(self._ask(order, [output.fileno() for output in outputs])["pid"])

    def spawned(self, fork_server, control: int):
        """As `ForkServer._spawned`: how to end it, and how to wait for its end."""
        environment = {**os.environ, "OMP_NUM_THREADS": "1", **fork_server._environment}
        order = {
            "do": "serve",
            "folder": os.getcwd(),
            "environment": environment,
            "assignment": fork_server._assignment,
        }
        pid = self._ask(order, [control, fork_server._errors.fileno()])["pid"]
        return lambda: os.kill(pid, signal.SIGKILL), lambda: self._wait(pid)

    def _wait(self, pid: int) -> int:
        return os.waitstatus_to_exitcode(self._ask({"do": "wait", "pid": pid})["status"])

    def _ask(self, order: dict, descriptors: Sequence[int] = ()) -> dict:
        with self._lock:
            if self._line is None:
                self._line, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                with theirs:
                    subprocess.Popen(
                        [sys.executable, __file__, str(theirs.fileno())],
                        pass_fds=[theirs.fileno()],
                        env={**os.environ, "OMP_NUM_THREADS": "1"},
                        stdin=subprocess.DEVNULL,
                        start_new_session=True,
                    )
            socket.send_fds(self._line, [json.dumps(order).encode()], descriptors)
            return json.loads(self._line.recv(MAX_BYTES))


def said(output: IO[bytes]) -> str:
    """What a command wrote into a file."""
    output.seek(0)
    return output.read().decode()


def serve(line: socket.socket) -> None:
    """Fork a process for each order, until the connection is closed."""
    while True:
        message, descriptors, _, _ = socket.recv_fds(line, MAX_BYTES, DESCRIPTORS)
        if not message:
            return
        order = json.loads(message)
        if order["do"] == "wait":
            reply = {"status": os.waitpid(order["pid"], 0)[1]}
        else:
            reply = {"pid": os.fork()}
            if reply["pid"] == 0:
                line.close()
                become(order, descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
        line.send(json.dumps(reply).encode())


def become(order: dict, descriptors: Sequence[int]) -> None:
    """In a fork: set the folder and the environment of a new process."""
    code = 1
    try:
        os.environ.clear()
        os.environ.update(order["environment"])
        os.chdir(order["folder"])
        tempfile.tempdir = None
        outputs = descriptors[1:] if order["do"] == "serve" else descriptors
        os.dup2(outputs[0], 1)
        os.dup2(outputs[-1], 2)
        for output in outputs:
            os.close(output)
        if order["do"] == "serve":
            fork_server(order, descriptors[0])
        words = order["words"]
        code = code_of(run_nbgrader if words[0] == "nbgrader" else run_autograder, words)
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            atexit._run_exitfuncs()
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def code_of(run: Callable[[Sequence[str]], None], words: Sequence[str]) -> int:
    """Run a command line; returns its exit code."""
    try:
        run(words)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    return 0


def run_nbgrader(words: Sequence[str]) -> None:
    """The command line `nbgrader ...`."""
    sys.argv[:] = words
    import_module("nbgrader.apps.nbgraderapp").main()


def run_autograder(words: Sequence[str]) -> None:
    """The command line `python -m autograder ...`."""
    sys.argv[:] = words[2:]
    runpy.run_module("autograder", run_name="__main__", alter_sys=True)


def fork_server(order: dict, control: int) -> None:
    """The program autograder.grade.fork_server, which ends the process."""
    from autograder.grade import fork_server, worker

    os.setsid()
    fork_server.prepare(order["assignment"])
    fork_server.serve(control, worker.main)


if __name__ == "__main__":
    sys.path[0] = ""  # where a command starts, not where this file is
    import autograder.grade  # noqa: F401 (first: it saves nbgrader a second)

    import_module("nbgrader.apps.nbgraderapp")
    from autograder.grade.fork_server import prepare

    prepare("05_self_attention")
    gc.freeze()
    serve(socket.socket(fileno=int(sys.argv[1])))
