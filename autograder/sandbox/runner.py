"""The trusted side of a sandbox: starts it, passes it one submission after another, and accounts for what each uses.

A budget is processor time plus time asleep, as the warm process measures it, never only time on the clock: a loaded
machine costs nobody anything. Data from a submission is checked before it is used.
"""

import atexit
import contextlib
import json
import os
import re
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from nbformat import NotebookNode
from nbformat.v4 import new_output

from autograder import course
from autograder.catalogue.exercise import Assignment
from autograder.inside import safe_rmtree, wire
from autograder.inside.cpu_time import ASLEEP, DISK, SIGNAL
from autograder.inside.escaping import escaped
from autograder.inside.limits import Limits
from autograder.inside.local_socket import short_address
from autograder.judging.observe import UNNAMED, EndpointGone
from autograder.sandbox import backends
from autograder.sandbox.backends import Backend, SandboxError
from autograder.sandbox.private_folder import PrivateFolder

START_SECONDS = 180.0  # on the clock: a loaded machine is slow at importing torch
REPLY_SECONDS = 60.0  # on the clock, for the warm process, which has nothing else to do
GRACE_SECONDS = 2.0  # between an interrupt and the end
CLOCK_FACTOR = 20.0  # a budget may last this much longer on the clock, however loaded the machine
LONGEST_SECONDS = 1500.0  # on the clock, of a notebook with at most 750 processor seconds; see `_longest`
MAX_FILE_BYTES, MAX_FILES = 16 << 20, 32  # of what may lie next to a notebook
MAX_REPLY_BYTES = 4096
FULL = "\n[the rest was too long]\n"
FULL_NOTEBOOK = "\n[the rest was too long: all outputs of a notebook together may take {:g} MiB]\n"
KEPT_TYPES = ("text/plain", "image/png", "image/jpeg")  # nothing that a browser would run
BASE64 = re.compile(r"[A-Za-z0-9+/=\s]*")
# Slow, so imported once, before a process is forked for each submission: module -> the word in the notebook that asks
# for it. torch imports the last one, and 800 modules with it, for the first optimizer of a process.
PRELOADED = {
    "numpy": "numpy",
    "matplotlib.pyplot": "matplotlib",
    "matplotlib_inline.backend_inline": "matplotlib",
    "torch._dynamo": "optimizer",
}


class Ended(EndpointGone):
    """A submission's process has ended; the text says how.

    killed: by a signal from outside, for example from the kernel when memory is short. A submission in its own
    namespaces cannot do this to itself.
    """

    def __init__(self, reason: str, killed: bool = False) -> None:
        super().__init__(reason)
        self.killed = killed


@dataclass(frozen=True)
class Ran:
    """The result of a cell: its outputs, and the description of the error that ended it, if any."""

    outputs: list[NotebookNode]
    error: dict[str, Any] | None


class Runner:
    """One sandbox with a warm process, for the submissions of one assignment.

    private: folders of this machine to be hidden in addition to the usual ones. Raises SandboxError if the sandbox
    cannot be started or breaks.
    """

    def __init__(
        self, assignment: Assignment | None, backend: Backend, limits: Limits, private: Iterable[str] = ()
    ) -> None:
        self.limits = limits
        try:
            self._folder = PrivateFolder("sandbox")
        except OSError as error:
            raise SandboxError(f"A sandbox needs a folder in {tempfile.gettempdir()}: {error.strerror}") from error
        try:
            place = backends.lay_out(self._folder.path, backend, assignment, private)
        except SandboxError:
            self._folder.remove()
            raise
        settings = {
            "confinement": asdict(backend.confinement(place)),
            "limits": asdict(limits),
            "preload": _preloaded(assignment),
        }
        program = ["autograder.inside.zygote", backend.address(place), json.dumps(settings)]
        self._complaints = tempfile.TemporaryFile()
        with socket.socket(socket.AF_UNIX) as listener:
            address = str(place.meeting / "control")
            try:
                with short_address(address) as short:
                    listener.bind(short)
            except OSError as error:
                self._folder.remove()
                where = tempfile.gettempdir()
                raise SandboxError(f"TMPDIR: expected a folder for a socket, got {where} ({error})") from error
            os.chmod(address, 0o666)  # the folder above it is this user's, or is mounted into one container
            listener.listen(1)
            listener.settimeout(wire.PATIENCE)
            try:
                self._process = subprocess.Popen(
                    backend.command(place, program, limits),
                    cwd=backend.working_folder(place),
                    env=backend.environment(),
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=self._complaints,
                )
            except OSError as error:
                raise SandboxError(f"The sandbox {backend.name} cannot be started: {error}") from error
            self._control = self._met(listener)
        try:
            self._control.settimeout(START_SECONDS)
            threads = self._received()["ready"]
            if threads != 1:
                raise SandboxError(f"The sandbox's warm process has {threads} threads; only one that has 1 can fork.")
            self._control.settimeout(REPLY_SECONDS)
        except SandboxError:
            self.close()
            raise

    @contextlib.contextmanager
    def submission(self, files: Mapping[str, bytes] | None = None) -> Iterator["Submission"]:
        """A confined process for one submission; it and everything it started end with the context.

        files: name -> content of what lies next to the notebook.
        """
        ours, theirs = socket.socketpair()
        with ours:
            with theirs:
                used = self.order("start", theirs.fileno())
            if used["ended"]:
                raise SandboxError(used["ended"])
            try:
                submission = Submission(self, ours)
                if files:
                    submission.write(files)
                yield submission
            finally:
                self.order("stop")

    def order(self, what: str, *descriptors: int) -> dict[str, Any]:
        """Send an order to the warm process; returns the submission's usage and how it ended, if it did."""
        try:
            socket.send_fds(self._control, [json.dumps({"do": what}).encode()], descriptors)
        except OSError as error:
            raise SandboxError(f"The sandbox broke: {self.complaint() or error}") from error
        return self._received()

    def close(self) -> None:
        """End the sandbox and everything in it."""
        self._control.close()  # the warm process sees this, and with it ends every other
        try:
            self._process.wait(REPLY_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._complaints.close()
        self._folder.remove()

    def _met(self, listener: socket.socket) -> socket.socket:
        until = time.monotonic() + START_SECONDS
        while time.monotonic() < until and self._process.poll() is None:
            with contextlib.suppress(TimeoutError):
                return listener.accept()[0]
        self._process.kill()
        raise SandboxError(f"The sandbox did not start: {self.complaint() or 'no reason given'}")

    def _received(self) -> dict[str, Any]:
        try:
            message = b""
            while not message.endswith(b"\n"):
                part = self._control.recv(MAX_REPLY_BYTES)
                if not part:
                    raise SandboxError(f"The sandbox ended: {self.complaint() or 'no reason given'}")
                message += part
        except OSError as error:
            raise SandboxError(f"The sandbox does not answer: {error}") from error
        return json.loads(message)

    def complaint(self) -> str:
        """The last line that the sandbox wrote about itself."""
        self._complaints.seek(0)
        lines = self._complaints.read().decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else ""


class Submission:
    """One submission's process. Its methods always return or raise Ended."""

    def __init__(self, runner: Runner, connection: socket.socket) -> None:
        self._runner, self._connection, self._asleep, self._at_disk = runner, connection, 0.0, 0.0
        self._began = self._looked = time.monotonic()
        self._spent, self._room = 0.0, runner.limits.notebook_output_bytes
        self._reason = "the notebook's process ended"  # said when it is gone
        try:
            self._receive(_Patience(self, START_SECONDS, "Starting", None), "ready")
        except Ended as ended:  # before anything of the learner's has run
            raise SandboxError(f"No child could be confined: {runner.complaint() or ended}") from ended

    def write(self, files: Mapping[str, bytes]) -> None:
        """Write files into the folder in which the notebook runs."""
        for name, content in files.items():
            self._send({"files": {name: content}})
            self._receive(_Patience(self, START_SECONDS, "Writing files", None), "written")

    def run(self, source: str, name: str = "") -> Ran:
        """Run a cell, or a file's source under its name. One that takes too long is interrupted."""
        limits = self._runner.limits
        patience, room, full = _Patience(self, limits.cell_seconds, "A cell", None), limits.output_bytes, FULL
        if self._room < room:
            room, full = self._room, FULL_NOTEBOOK.format(limits.notebook_output_bytes / (1 << 20))
        self._send({"cell": source, "name": name, "room": room, "full": full})
        reply = self._receive(patience, "outputs")
        outputs = _cleaned(reply["outputs"], room)
        self._room = max(0, self._room - (len(reply["outputs"]) if isinstance(reply["outputs"], bytes) else 0))
        if patience.interrupted:
            text = f"\nInterrupted: a cell may take {limits.cell_seconds:g} seconds.\n"
            outputs.append(new_output("stream", name="stderr", text=text))
        return Ran(outputs, _described(reply.get("error")))

    @contextlib.contextmanager
    def questioned(self, seconds: float, moment: str = "") -> Iterator[wire.Channel]:
        """A channel for judging one exercise; all of its probes may take `seconds` together. Processes that earlier
        cells have started end first.

        moment: a name for a snapshot of the namespace; a second use of the name restores it.
        """
        self._runner.order("alone")
        ours, theirs = socket.socketpair()
        too_long = EndpointGone(f"your code did not finish within {seconds:g} seconds")
        channel = wire.Channel(ours, _Patience(self, seconds, "A check", too_long))
        with theirs:
            self._send({"check": True, "moment": moment})
            with contextlib.suppress(OSError):  # a dead endpoint is found out by the first question
                socket.send_fds(self._connection, [b"."], [theirs.fileno()])
        try:
            yield channel
        finally:
            channel.close()
            self._receive(_Patience(self, wire.PATIENCE, "A check", None), "answered")

    def spent(self, waited: float = 0.0) -> float:
        """Seconds used so far. Raises Ended if the process has ended or exceeded a limit.

        waited: seconds that this side has waited since the last request; they count if all processes slept meanwhile.
        """
        used, limits = self._runner.order("usage"), self._runner.limits
        if used["doing"] == DISK:  # or a parent that a sleeping child holds up, so not for ever
            self._at_disk += waited
        if used["doing"] == ASLEEP or (used["doing"] == DISK and self._at_disk > limits.cell_seconds):
            self._asleep += waited
        seconds = used["seconds"] + self._asleep
        if used["ended"]:
            raise self._gone(used["ended"])
        if used["memory"] > limits.memory_bytes:
            self.end(f"the notebook used more than {limits.memory_bytes / (1 << 30):g} GiB of memory")
        if used["disk"] > limits.disk_bytes:
            most = f"more than {limits.disk_bytes >> 20} MiB, or folders nested more than {safe_rmtree.DEEPEST} deep,"
            self.end(f"the notebook wrote {most} to the disk")
        if seconds > limits.notebook_seconds:
            self.end(f"the notebook took more than {limits.notebook_seconds:g} seconds")
        self._looked, self._spent = time.monotonic(), seconds
        if self._looked - self._began > _longest(limits):
            self.end(f"the notebook took more than {_longest(limits) / 60:g} minutes on the clock")
        return seconds

    def spent_lately(self) -> float:
        """The last result of `spent`, if it is recent; else a new one.

        A measurement at every request took a tenth of a fast notebook's time.
        """
        return self._spent if time.monotonic() - self._looked < wire.PATIENCE else self.spent()

    def interrupt(self) -> None:
        """Raise KeyboardInterrupt in the code that runs now."""
        self._runner.order("interrupt")

    def end(self, reason: str) -> None:
        """End the process. Raises Ended."""
        self._runner.order("stop")
        self._reason = reason
        raise Ended(reason)

    def _send(self, request: dict[str, Any]) -> None:
        patience = _Patience(self, GRACE_SECONDS, "Reading a request", None)
        try:
            wire.Channel(self._connection, patience).send(request)
        except OSError as error:
            raise self._gone() from error

    def _gone(self, how: str = "") -> Ended:
        """The exception for a process that has ended; finds out how, if unknown."""
        until = time.monotonic() + GRACE_SECONDS
        while not how and time.monotonic() < until:  # its end of the connection is closed a moment before it is gone
            how = self._runner.order("usage")["ended"] or time.sleep(0.01) or ""
        return Ended(self._reason, killed=how.startswith(SIGNAL))

    def _receive(self, patience: "_Patience", wanted: str) -> dict[str, Any]:
        try:
            reply = wire.Channel(self._connection, patience).receive()
        except (EOFError, OSError) as error:
            raise self._gone() from error
        except wire.WireError as error:
            raise Ended(f"the notebook's process sent what cannot be read ({error})") from error
        if not isinstance(reply, dict) or wanted not in reply:
            raise Ended("the notebook's process sent something else than an answer")
        return reply


class _Patience:
    """Called while the trusted side waits for a submission.

    too_long: raised at the time limit; without it the code is interrupted, and ended if that does not help.
    """

    def __init__(self, submission: Submission, seconds: float, what: str, too_long: Exception | None) -> None:
        self._submission, self._allowed, self._seconds = submission, seconds, seconds
        self._what, self._too_long, self.interrupted = what, too_long, False
        self._began, self._began_on_clock = submission.spent_lately(), time.monotonic()

    def __call__(self) -> None:
        on_clock = (time.monotonic() - self._began_on_clock) / CLOCK_FACTOR
        if max(self._submission.spent(wire.PATIENCE) - self._began, on_clock) <= self._allowed:
            return
        if self._too_long is not None:
            raise self._too_long
        if self.interrupted:
            self._submission.end(f"{self._what.lower()} took too long and could not be interrupted")
        self._submission.interrupt()
        self.interrupted = True
        self._allowed += GRACE_SECONDS


_runners: dict[tuple, Runner] = {}


def runner_for(assignment: Assignment | None, backend: Backend, limits: Limits, private: Sequence[str] = ()) -> Runner:
    """The warm sandbox of an assignment in this process, started on first use and ended with the process."""
    key = (os.getpid(), assignment.id if assignment else "", backend.name, limits, tuple(private))
    if key not in _runners:
        _runners[key] = Runner(assignment, backend, limits, private)
    return _runners[key]


def discard(runner: Runner) -> None:
    """Close a sandbox that broke, so that the next submission gets a new one."""
    for key in [key for key, known in _runners.items() if known is runner]:
        del _runners[key]
    runner.close()


@atexit.register
def close_all() -> None:
    """Close every sandbox that this process has started."""
    for key in [key for key in _runners if key[0] == os.getpid()]:
        _runners.pop(key).close()


def files_beside(folder: Path, names: Iterable[str]) -> dict[str, bytes]:
    """Name -> content of the named files in a folder that are regular files and not too large."""
    found = {}
    for name in list(names)[:MAX_FILES]:
        path = folder / name
        with contextlib.suppress(OSError):
            if Path(name).name == name and not path.is_symlink() and path.is_file():
                if path.stat().st_size <= MAX_FILE_BYTES:
                    found[name] = path.read_bytes()
    return found


def _longest(limits: Limits) -> float:
    """The seconds on the clock that a notebook may take on the slowest machine.

    With the default limits they are `LONGEST_SECONDS`, less than `grade` waits for a worker (`pool.LONGEST_SECONDS`).
    """
    return max(2 * limits.notebook_seconds, min(CLOCK_FACTOR * limits.notebook_seconds, LONGEST_SECONDS))


def _preloaded(assignment: Assignment | None) -> list[str]:
    """The slow imports that the released notebook needs, and the modules of our packages that it may import."""
    if assignment is None:
        return []
    own = sorted(name for name in assignment.visible_modules if name.startswith("transformer_ref."))
    try:
        path = course.notebook_path(course.find_root(), "exercises", assignment)
        text = "\n".join(source for _, source, _ in course.code_cells(course.read_notebook(path)))
    except course.CourseError:
        return own
    return [*(module for module, word in PRELOADED.items() if word in text), *own]


def _cleaned(content: Any, limit: int) -> list[NotebookNode]:
    """A submission's outputs, rebuilt from the allowed fields."""
    try:
        if not isinstance(content, bytes) or len(content) > 2 * limit + MAX_REPLY_BYTES:
            raise ValueError("too much")
        return [made for made in map(_output, json.loads(content)) if made is not None]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return [new_output("stream", name="stderr", text="[the outputs of this cell could not be read]\n")]


def _output(sent: dict[str, Any]) -> NotebookNode | None:
    kind = sent["output_type"]
    if kind == "stream":
        return new_output("stream", name="stderr" if sent["name"] == "stderr" else "stdout", text=_text(sent["text"]))
    if kind == "error":
        lines = [_text(line) for line in sent["traceback"]]
        return new_output("error", ename=_text(sent["ename"]), evalue=_text(sent["evalue"]), traceback=lines)
    if kind in ("display_data", "execute_result"):
        data = {name: _text(sent["data"][name]) for name in KEPT_TYPES if name in sent["data"]}
        data = {name: text for name, text in data.items() if name == "text/plain" or BASE64.fullmatch(text)}
        return new_output(kind, data=data) if data else None
    return None


def _text(value: Any) -> str:
    return wire.printable(str(value))


def _described(error: Any) -> dict[str, Any] | None:
    if not isinstance(error, dict):
        return None
    texts: Sequence[str] = [escaped(_text(error.get(name, ""))[:400]) for name in ("type", "message", "source")]
    line = error.get("line")
    return {
        "type": texts[0] if texts[0].isidentifier() else UNNAMED,
        "message": texts[1],
        "source": texts[2],
        "line": line if type(line) is int else 0,
    }
