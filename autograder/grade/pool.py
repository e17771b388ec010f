"""Worker processes of this machine: each grades one submission at a time; one that dies is replaced."""

import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from dataclasses import replace
from multiprocessing import connection
from typing import IO

from autograder.grade.parcel import Batch, Result, Submission

MOST_ATTEMPTS = 2
LONGEST_SECONDS = 1800.0  # of one submission: twenty cells that each use up their time limit


class WorkerDied(Exception):
    """A worker ended while it held a submission; the text says how."""


class Worker:
    """One worker process and the line to it."""

    def __init__(self, batch: Batch) -> None:
        ours, theirs = socket.socketpair()
        self._errors: IO[bytes] = tempfile.TemporaryFile()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "autograder.grade.worker", str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=self._errors,
            stderr=self._errors,
            start_new_session=True,  # Ctrl-C is the writer's to handle
        )
        theirs.close()
        self.line = connection.Connection(ours.detach())
        self.holds: Submission | None = None
        self.since = 0.0
        self._send(batch)

    @property
    def pid(self) -> int:
        return self._process.pid

    def take(self, submission: Submission) -> None:
        """Begin a submission; its result arrives on `line`."""
        self.holds, self.since = submission, time.monotonic()
        self._send(submission)

    def result(self) -> Result:
        """The result that has arrived. Raises WorkerDied when the worker ended instead."""
        try:
            result = self.line.recv()
        except (EOFError, OSError):
            raise WorkerDied(self.end()) from None
        self.holds = None
        return result

    def end(self) -> str:
        """Stop the process; returns how it ended."""
        self.line.close()
        try:
            code = self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            code = self._process.wait()
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        self._errors.close()
        if code < 0:
            name = signal.Signals(-code).name
            return f"the worker was ended by {name}" + (", out of memory?" if name == "SIGKILL" else "")
        return f"the worker ended with code {code}" + (f": {lines[-1]}" if lines else "")

    def kill(self) -> str:
        """End a worker that does not come back."""
        self._process.kill()
        return self.end()

    def _send(self, message: object) -> None:
        try:
            self.line.send(message)
        except OSError:
            pass  # its end is noticed when its answer is awaited


class Pool:
    """Several workers that share a stream of submissions."""

    def __init__(self, batch: Batch, size: int) -> None:
        self._batch, self._size = batch, size
        self._workers: list[Worker] = []

    def __enter__(self) -> "Pool":
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers:
            worker.kill()

    def grade(self, submissions: Iterable[Submission]) -> Iterator[Result]:
        """A result for each submission, in the order in which they come to an end.

        A submission whose worker died is begun once more, in a fresh worker; then it is a failure with the reason.
        """
        waiting, again, attempts = iter(submissions), deque[Submission](), Counter[str]()
        while True:
            while (worker := self._free()) and (submission := again.popleft() if again else next(waiting, None)):
                attempts[submission.student] += 1
                worker.take(submission)
            busy = {worker.line: worker for worker in self._workers if worker.holds}
            if not busy:
                return
            answered = connection.wait(list(busy), timeout=5.0)
            for worker in busy.values():
                submission, overdue = worker.holds, time.monotonic() - worker.since > LONGEST_SECONDS
                if worker.line not in answered and not overdue:
                    continue
                try:
                    if overdue:
                        worker.kill()
                        raise WorkerDied(f"the worker did not come back within {LONGEST_SECONDS / 60:.0f} minutes")
                    yield replace(worker.result(), attempts=attempts[submission.student])
                except WorkerDied as died:
                    self._workers.remove(worker)
                    if attempts[submission.student] < MOST_ATTEMPTS:
                        again.append(submission)
                        continue
                    yield Result(submission.student, failure=f"{died}, twice", attempts=MOST_ATTEMPTS)

    def _free(self) -> Worker | None:
        """A worker that holds nothing, started if there may be one more."""
        for worker in self._workers:
            if not worker.holds:
                return worker
        if len(self._workers) == self._size:
            return None
        self._workers.append(Worker(self._batch))
        return self._workers[-1]
