"""Worker processes of this machine: each grades one submission at a time; one that dies is replaced."""

import contextlib
import os
import signal
import socket
import tempfile
import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from dataclasses import replace
from multiprocessing import connection
from typing import IO

from autograder.course import CourseError
from autograder.grade.fork_server import ForkServer, ForkServerDied, no_process
from autograder.grade.messages import Batch, Result, Submission
from autograder.sandbox.private_folder import PrivateFolder

MOST_ATTEMPTS = 2
TIDY_SECONDS = 5.0  # for a worker that has to stop
LOOK_SECONDS = 0.005  # how often to look whether it has gone
LONGEST_SECONDS = 1800.0  # of one submission, more than both tries of `execute` take with the default limits
TOO_LONG = f"the worker did not come back within {LONGEST_SECONDS / 60:.0f} minutes"


class WorkerDied(Exception):
    """A worker ended while it graded a submission; the text says how."""


class Refusal(Exception):
    """A worker that cannot grade anything, such as one without a sandbox; the text says why and what to do."""


class Worker:
    """One worker process and the connection to it; it can grade once it has its batch.

    Raises CourseError if this machine cannot start another process.
    """

    def __init__(self, fork_server: ForkServer) -> None:
        self._fork_server = fork_server
        try:
            try:
                self._start()
            except ForkServerDied:
                self._start()
        except OSError as error:
            raise CourseError(no_process(error)) from error
        self.holds: Submission | None = None
        self.since = 0.0
        self._ended = ""

    def _start(self) -> None:
        with contextlib.ExitStack() as unless_started:
            self._folder = PrivateFolder("grade")
            unless_started.callback(self._folder.remove)
            self._errors: IO[bytes] = unless_started.enter_context(tempfile.TemporaryFile())
            ours, theirs = socket.socketpair()
            unless_started.callback(ours.close)
            with theirs:
                place = self._folder
                self.pid = self._fork_server.fork(theirs.fileno(), place.lock, self._errors.fileno(), place.path)
            unless_started.pop_all()
        self.line = connection.Connection(ours.detach())

    def prepared(self, batch: Batch) -> "Worker":
        """Send it the batch; returns the worker."""
        self._send(batch)
        return self

    def take(self, submission: Submission) -> None:
        """Start a submission; its result arrives on `line`."""
        self.holds, self.since = submission, time.monotonic()
        self._send(submission)

    def result(self) -> Result:
        """The result that has arrived. Raises WorkerDied if the worker has ended, Refusal if it cannot grade
        anything."""
        try:
            result = self.line.recv()
        except (EOFError, OSError):
            raise WorkerDied(self.end()) from None
        if isinstance(result, str):
            self.end()
            raise Refusal(result)
        self.holds = None
        return result

    def grade(self, submission: Submission) -> Result:
        """Start a submission and wait for its result. Raises what `result` raises."""
        self.take(submission)
        if not self.line.poll(LONGEST_SECONDS):
            self.end()
            raise WorkerDied(TOO_LONG)
        return self.result()

    def dismiss(self) -> None:
        """Tell the worker to end, without waiting for it."""
        self.line.close()  # at the other end this is the sign to tidy up

    def end(self) -> str:
        """End the process, unless it has ended, and everything that it left running; returns how it ended."""
        if self._ended:
            return self._ended
        self.dismiss()
        until = time.monotonic() + TIDY_SECONDS
        while (code := self._fork_server.ended(self.pid)) is None:
            if time.monotonic() > until:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(self.pid, signal.SIGKILL)
            time.sleep(LOOK_SECONDS)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        self._errors.close()
        self._folder.remove()
        self._ended = f"the worker ended with code {code}" + (f": {lines[-1]}" if lines else "")
        if code < 0:
            name = signal.Signals(-code).name
            self._ended = f"the worker was ended by {name}" + (", out of memory?" if name == "SIGKILL" else "")
        return self._ended

    def _send(self, message: object) -> None:
        with contextlib.suppress(OSError):  # that it has ended is noticed when its answer is awaited
            self.line.send(message)


class Pool:
    """Several workers that share a stream of submissions. fork_server: starts them."""

    def __init__(self, batch: Batch, size: int, fork_server: ForkServer) -> None:
        self._batch, self._size, self._fork_server = batch, size, fork_server
        self._workers: list[Worker] = []

    def __enter__(self) -> "Pool":
        return self

    def __exit__(self, *_: object) -> None:
        end_all(self._workers)

    def grade(self, submissions: Iterable[Submission]) -> Iterator[Result]:
        """Yield a result for each submission, in the order in which they finish.

        A submission that fails is started once more in a new worker, so that an overloaded machine costs nobody a
        grade. If it fails again, the result has the reason. Raises CourseError if a worker cannot grade anything.
        """
        waiting, again, attempts = iter(submissions), deque[Submission](), Counter[str]()
        while True:
            while len(self._busy()) < self._size:
                submission = again.popleft() if again else next(waiting, None)
                if submission is None:
                    break
                attempts[submission.student] += 1
                self._free().take(submission)
            if not self._busy():
                return
            answered = connection.wait([worker.line for worker in self._busy()], timeout=min(5.0, LONGEST_SECONDS))
            for worker in self._busy():
                submission, begun = worker.holds, attempts[worker.holds.student]
                result = self._result(worker, worker.line in answered)
                if result is None:
                    continue
                if result.failure:
                    self._workers.remove(worker)
                    worker.end()
                    if begun < MOST_ATTEMPTS:
                        again.append(submission)
                        continue
                yield replace(result, attempts=begun)

    @staticmethod
    def _result(worker: Worker, answered: bool) -> Result | None:
        """The result of the worker's submission; None if it is not finished."""
        student = worker.holds.student
        try:
            if answered:
                return worker.result()
        except WorkerDied as died:
            return Result(student, failure=str(died), retry=True)
        except Refusal as refusal:
            raise CourseError(str(refusal)) from refusal
        too_long = time.monotonic() - worker.since > LONGEST_SECONDS
        return Result(student, failure=TOO_LONG, retry=True) if too_long else None

    def _busy(self) -> list[Worker]:
        return [worker for worker in self._workers if worker.holds]

    def _free(self) -> Worker:
        """An idle worker, a new one if necessary."""
        for worker in self._workers:
            if not worker.holds:
                return worker
        self._workers.append(Worker(self._fork_server).prepared(self._batch))
        return self._workers[-1]


def end_all(workers: Iterable[Worker]) -> None:
    """End the workers in parallel."""
    for worker in workers:
        worker.dismiss()
    for worker in workers:
        worker.end()
