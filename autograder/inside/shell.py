"""The confined child: an IPython shell that runs cells as a notebook would and answers the judge's questions.

No kernel, no message queue: a cell's source comes in over one socket, its outputs go back as a notebook stores them.
Nothing here is trusted by the other side.
"""

import contextlib
import io
import json
import os
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from IPython.core.compilerop import CachingCompiler
from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import DisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from autograder.inside import recorder, responder, wire
from autograder.inside.namespace_snapshots import Snapshots


class CellOutputs:
    """The outputs of one cell, in order, in nbformat; a notice replaces those beyond the limit."""

    def __init__(self) -> None:
        self._outputs: list[dict[str, Any]] = []
        self._parts: list[str] = []  # of the stream that is being written
        self._left, self._full = 0, ""

    def begin(self, limit: int, full: str) -> None:
        """Start a new cell. limit: bytes of its outputs that are kept; full: replaces the rest."""
        self._outputs, self._parts, self._left, self._full = [], [], limit, full

    def outputs(self) -> list[dict[str, Any]]:
        """The outputs so far."""
        if self._parts:
            self._outputs[-1]["text"] += "".join(self._parts)
            self._parts = []
        return self._outputs

    def add(self, output: dict[str, Any]) -> None:
        """Record an output, up to the limit."""
        if self._left < 0:
            return
        self._left -= len(json.dumps(output))
        kept = output if self._left >= 0 else {"output_type": "stream", "name": "stderr", "text": self._full}
        self.outputs().append(kept)

    def write(self, name: str, text: str) -> None:
        """Add text to stdout or stderr; consecutive texts are one output."""
        if self._left < 0:  # said so already: a million lines more cost nothing
            return
        if self._outputs and self._outputs[-1].get("name") == name and self._left >= len(text):
            self._parts.append(text)
            self._left -= len(text)
        else:
            self.add({"output_type": "stream", "name": name, "text": text})


class Stream(io.TextIOBase):
    """Replaces sys.stdout or sys.stderr."""

    def __init__(self, name: str, recorder: CellOutputs) -> None:
        self.name, self._recorder = name, recorder

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self._recorder.write(self.name, str(text))
        return len(text)


class Published(DisplayPublisher):
    """Records the output of display()."""

    def publish(self, data: dict, metadata: dict | None = None, **_: Any) -> None:
        self.shell.recorder.add({"output_type": "display_data", "data": data, "metadata": {}})


class Shown(DisplayHook):
    """Records the value of a cell's last line."""

    def write_output_prompt(self) -> None: ...

    def write_format_data(self, format_dict: dict, md_dict: dict | None = None) -> None:
        count = self.prompt_count
        self.shell.recorder.add(
            {"output_type": "execute_result", "data": format_dict, "metadata": {}, "execution_count": count}
        )

    def finish_displayhook(self) -> None: ...


class Named(CachingCompiler):
    """Compiles code under the name of its file, if it has one."""

    file = ""

    def get_code_name(self, raw_code: str, transformed_code: str, number: int) -> str:
        return self.file or super().get_code_name(raw_code, transformed_code, number)


class Shell(InteractiveShell):
    """An IPython shell whose outputs are recorded."""

    recorder: CellOutputs

    def enable_gui(self, gui: str | None = None) -> None:
        """Do nothing: there is no window, and without this method `%matplotlib inline` would raise an exception."""

    def _showtraceback(self, kind: type, value: BaseException, lines: list[str]) -> None:
        try:
            text = str(value)
        except Exception:
            text = "(its message could not be printed)"
        self.recorder.add({"output_type": "error", "ename": kind.__name__, "evalue": text, "traceback": list(lines)})


def make() -> Shell:
    """A shell without a history file and without threads, so that the process may fork."""
    Shell.recorder = CellOutputs()
    Shell.displayhook_class, Shell.display_pub_class, Shell.compiler_class = Shown, Published, Named
    config = Config()
    config.HistoryManager.enabled = False
    return Shell.instance(config=config)


def serve(shell: Shell, connection: socket.socket) -> None:
    """Execute requests of the trusted side until the connection is closed: write files, run a cell, or answer a check's
    probes."""
    channel = wire.Channel(connection)
    error: dict | None = None
    moments = Snapshots()
    recorder.follow_threads()
    recorder.follow_operators()
    with contextlib.suppress(EOFError, OSError, wire.WireError):
        channel.send({"ready": True})
        while True:
            request = channel.receive()
            if "cell" in request:
                error = _run(shell, request)
                outputs = json.dumps(shell.recorder.outputs(), default=repr).encode()
                channel.send({"outputs": outputs, "error": error})
            elif "files" in request:
                for name, content in request["files"].items():
                    Path(name).write_bytes(content)
                channel.send({"written": True})
            else:
                _, (questions,), _, _ = socket.recv_fds(connection, 1, 1)
                with moments.at(shell.user_global_ns, request):
                    _answer(shell, socket.socket(fileno=questions))
                channel.send({"answered": True})


def _run(shell: Shell, request: dict[str, Any]) -> dict | None:
    """Run a cell, or a file under its name; returns the description of the error that ended it, if any."""
    source, name = request["cell"], request["name"]
    shell.recorder.begin(request["room"], request["full"])
    shell.compile.file = name
    sys.path_importer_cache.pop(os.getcwd(), None)  # a module that the cell before has written is found
    streams = [Stream(stream, shell.recorder) for stream in ("stdout", "stderr")]
    with _interruptible(), contextlib.redirect_stdout(streams[0]), contextlib.redirect_stderr(streams[1]):
        result = shell.run_cell(source, store_history=not name)
    error = result.error_before_exec or result.error_in_exec
    return None if error is None else responder.describe(error, shell.user_global_ns)


def _answer(shell: Shell, connection: socket.socket) -> None:
    """Answer the judge's requests; what the learner's code prints meanwhile could contain hidden inputs and is
    discarded."""
    silence = io.StringIO()
    with connection, contextlib.suppress(KeyboardInterrupt, EOFError, OSError, wire.WireError), _interruptible():
        with contextlib.redirect_stdout(silence), contextlib.redirect_stderr(silence):
            responder.serve(wire.Channel(connection), shell.user_global_ns)


@contextlib.contextmanager
def _interruptible() -> Iterator[None]:
    """Allow interrupts only in a learner's code, never while a message is sent."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
