"""The process that holds an answer outside a notebook: set-up cells, then the answer, then the judge's questions.

Like `check`, this module imports nothing that an answer could profit from.
"""

import contextlib
import linecache
import os
import socket
import sys
from collections.abc import Sequence

import torch

from autograder import check, wire


def hold_answer(socket_path: str, exercise_id: str, set_up: Sequence[str], answer: str, file_name: str) -> None:
    """Run the sources in one namespace and answer the judge at the socket. What the answer prints goes nowhere."""
    torch.set_num_threads(1)
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(socket_path)
    channel = wire.Channel(connection)
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        os.dup2(nowhere.fileno(), 1)
        os.dup2(nowhere.fileno(), 2)
    sys.stdin = None
    namespace: dict = {"__name__": "__main__"}
    error = None
    for name, source in [
        *((f"<set-up cell {number}>", cell) for number, cell in enumerate(set_up, 1)),
        (file_name, answer),
    ]:
        error = error or _run(source, name, namespace)
    with contextlib.suppress(EOFError, OSError, wire.WireError):  # the judge may have given up
        check.serve(channel, exercise_id, namespace, error)


def _run(source: str, name: str, namespace: dict) -> dict | None:
    """Run one source; returns the description of the error that ended it, if any."""
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    try:
        exec(compile(source, name, "exec"), namespace)
    except BaseException as error:  # an answer may raise anything, SystemExit too
        return check.describe(error, namespace)
    return None
