"""One process that has imported everything and forks the workers: importing takes seconds, a fork milliseconds.

It runs nothing of a submission's, opens no gradebook and keeps to one thread, since only such a process forks safely.
A command line that has just been started forks it from itself, with what both need imported once; where somebody else's
threads may run (a Jupyter, a Dask worker, tests) it is a program of its own.
"""

import contextlib
import gc
import json
import os
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
from typing import IO, Any, NoReturn

import psutil

from autograder.course import CourseError
from autograder.grade.interrupt import SIGNALS

PROGRAM = (sys.executable, "-m", "autograder.grade.fork_server")
ONE_THREAD = {"OMP_NUM_THREADS": "1"}  # as many workers as cores do the rest
IMPORTED = ("autograder.grade.worker", "autograder.grade.execute", "autograder.grade.gradebook")
MAX_BYTES = 4096
GONE = 1  # for the exit code of a worker whose fork_server has ended before it


class ForkServerDied(OSError):
    """The fork server was killed while it was to start a worker; another one runs now. The worker may exist all the
    same, so what it was given (its connection, its folder) must not be given to another."""


class ForkServer:
    """The fork server's process and the connection to it; used by one thread at a time. Its workers outlive it.

    environment: variables that are set in each worker. assignment: whose exercises they judge. Raises CourseError if
    this machine cannot start another process.
    """

    def __init__(self, environment: Mapping[str, str], assignment: str = "") -> None:
        self._environment, self._assignment = environment, assignment
        self._lock = threading.Lock()
        try:
            self._start(forked=imports_first())
        except OSError as error:
            raise CourseError(no_process(error)) from error

    def __enter__(self) -> "ForkServer":
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def fork(self, line: int, lock: int, errors: int, folder: Path) -> int:
        """Start a worker; returns its process id. line: its end of the connection. errors: a file for its output.

        lock: of its folder. Raises ForkServerDied if it may be tried again, else OSError if it cannot be started.
        """
        with self._lock:
            try:
                reply = self._ask({"folder": str(folder)}, (line, lock, errors))
            except (OSError, EOFError) as error:  # it was killed; its workers go on
                complaint = self._complaint()
                self._end()
                self._start(forked=False)
                raise ForkServerDied(complaint) from error
        if "error" in reply:
            raise OSError(reply["error"])
        return reply["pid"]

    def ended(self, worker: int) -> int | None:
        """The exit code of a worker, as in subprocess, or None while it runs. Must be called until there is one."""
        with self._lock:
            with contextlib.suppress(OSError, EOFError):
                return self._ask({"wait": worker})["code"]
        return None if _runs(worker) else GONE

    def end(self) -> None:
        """End the fork server. Its workers end by themselves."""
        with self._lock:
            self._end()

    def _start(self, forked: bool) -> None:
        with contextlib.ExitStack() as unless_started:
            self._errors: IO[bytes] = unless_started.enter_context(tempfile.TemporaryFile())
            self._control, theirs = socket.socketpair()
            unless_started.callback(self._control.close)
            with theirs:
                start = self._forked if forked else self._spawned
                self._kill, self._wait = start(theirs.fileno())
            unless_started.pop_all()

    def _spawned(self, control: int) -> tuple[Callable[[], Any], Callable[[], Any]]:
        process = subprocess.Popen(
            [*PROGRAM, str(control), self._assignment],
            pass_fds=[control],
            env={**os.environ, **ONE_THREAD, **self._environment},  # a thread more, and it could not fork
            stdin=subprocess.DEVNULL,
            stdout=self._errors,
            stderr=self._errors,
            start_new_session=True,  # Ctrl-C is the writer's to handle
        )
        return process.kill, process.wait

    def _forked(self, control: int) -> tuple[Callable[[], Any], Callable[[], Any]]:
        prepare(self._assignment)
        if psutil.Process().num_threads() > 1:
            return self._spawned(control)
        for stream in (sys.stdout, sys.stderr):
            stream.flush()  # what waits to be written is written by one of the two
        pid = os.fork()
        if pid == 0:
            with _alone(control, errors=self._errors.fileno()):
                os.environ.update(self._environment)
                serve(control, import_module(IMPORTED[0]).main)
        return lambda: os.kill(pid, signal.SIGKILL), lambda: os.waitpid(pid, 0)

    def _ask(self, order: dict[str, Any], descriptors: Sequence[int] = ()) -> dict[str, Any]:
        socket.send_fds(self._control, [json.dumps(order).encode()], descriptors)
        reply = self._control.recv(MAX_BYTES)
        if not reply:
            raise EOFError
        return json.loads(reply)

    def _end(self) -> None:
        self._control.close()
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            self._kill()  # it may be at its imports still, and has nothing to tidy up
            self._wait()
        self._errors.close()

    def _complaint(self) -> str:
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else "it ended at once"


def no_process(error: OSError) -> str:
    """The sentence for a machine that cannot start a process."""
    return (
        f"No worker can be started ({error.strerror or error}). It needs a little room in "
        f"{tempfile.tempdir or 'the folder for temporary files'}; TMPDIR names another place."
    )


def imports_first() -> bool:
    """Whether this process was started for this purpose, and has not imported torch yet; then it uses one thread."""
    if "torch" in sys.modules or "numpy" in sys.modules or threading.active_count() > 1 or not hasattr(os, "fork"):
        return False
    for name, value in ONE_THREAD.items():
        os.environ.setdefault(name, value)
    return sys.platform == "linux"  # elsewhere the system's own libraries do not survive a fork


def prepare(assignment: str) -> None:
    """Import everything that a worker needs, and exclude it from garbage collection, so that its memory stays
    shared."""
    for module in IMPORTED:
        import_module(module)
    catalogue = import_module("autograder.catalogue")
    known = [each for each in catalogue.ASSIGNMENTS if each.id == assignment]
    for each in known:  # a teacher's own are read by each worker, from the course that it is given
        each.exercises  # noqa: B018 (an entry is read on first use)
    gc.collect()
    gc.freeze()


def serve(control: int, work: Callable[[int, Path], None]) -> NoReturn:
    """Fork workers, and report how they ended, on request, until the connection is closed. Ends the process.

    work: the worker's function: (its end of the connection, its folder).
    """
    _try_sandbox()
    channel = socket.socket(fileno=control)
    while True:
        message, descriptors, _, _ = socket.recv_fds(channel, MAX_BYTES, 3)
        if not message:
            os._exit(0)
        order = json.loads(message)
        try:
            reply = _waited(order["wait"]) if "wait" in order else _born(order["folder"], descriptors, work)
        except OSError as error:
            reply = {"error": error.strerror or str(error)}
        for descriptor in descriptors:
            os.close(descriptor)
        channel.sendall(json.dumps(reply).encode())


def _try_sandbox() -> None:
    """Find out once for all workers whether the usual sandbox works here, while the client reads its course."""
    backends = sys.modules.get("autograder.sandbox.backends")  # with the other imports
    if backends:
        name = os.environ.get(backends.SANDBOX) or next(iter(backends.BACKENDS))
        if name in backends.BACKENDS:
            backends.why_not(name)


def _waited(worker: int) -> dict[str, Any]:
    try:
        found, status = os.waitpid(worker, os.WNOHANG)
    except ChildProcessError:  # born of a fork_server before this one
        return {"code": None if _runs(worker) else GONE}
    return {"code": os.waitstatus_to_exitcode(status) if found else None}


def _runs(process: int) -> bool:
    try:
        return psutil.Process(process).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _born(folder: str, descriptors: Sequence[int], work: Callable[[int, Path], None]) -> dict[str, Any]:
    line, lock, errors = descriptors
    pid = os.fork()
    if pid == 0:
        with _alone(line, lock, errors=errors):
            work(line, Path(folder))
    return {"pid": pid}


@contextlib.contextmanager
def _alone(*kept: int, errors: int) -> Any:
    """Run a function in a fork: with a session of its own and only the given file descriptors, then end the process."""
    code = 0
    try:
        os.setsid()
        for number in SIGNALS:
            if callable(signal.getsignal(number)):  # the writer's; what is ignored stays ignored
                signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
        nowhere = os.open(os.devnull, os.O_RDONLY)
        for descriptor, standard in ((nowhere, 0), (errors, 1), (errors, 2)):
            os.dup2(descriptor, standard)
        opened = [int(name) for name in os.listdir("/dev/fd")]
        for descriptor in opened:
            if descriptor > 2 and descriptor not in kept:
                with contextlib.suppress(OSError):
                    os.close(descriptor)
        yield
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
    except BaseException:
        code = 1
        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    prepare(sys.argv[2])
    serve(int(sys.argv[1]), import_module(IMPORTED[0]).main)
