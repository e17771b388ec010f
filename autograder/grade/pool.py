"""Worker processes of this machine: each grades one submission at a time; one that dies is replaced."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from multiprocessing import connection
from typing import IO

from autograder.course import CourseError
from autograder.grade.parcel import Batch, Result, Submission
from autograder.sandbox.private_folder import PrivateFolder

PROGRAM = (sys.executable, "-m", "autograder.grade.worker")
MOST_ATTEMPTS = 2
TIDY_SECONDS = 5.0  # for a worker that was told to go
LONGEST_SECONDS = 1800.0  # of one submission: twenty cells that each use up their time limit
TOO_LONG = f"the worker did not come back within {LONGEST_SECONDS / 60:.0f} minutes"


class WorkerDied(Exception):
    """A worker ended while it held a submission; the text says how."""


class Refusal(Exception):
    """A worker that cannot grade anything, such as one without a sandbox; the text says why and what to do."""


class Worker:
    """One worker process and the line to it. It begins to import at once, and grades when it has got its batch.

    environment: variables that are set in it. Raises CourseError when this machine cannot start another process.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        try:
            self._start(environment)
        except OSError as error:
            raise CourseError(
                f"No worker can be started ({error.strerror or error}). It needs a little room in "
                f"{tempfile.tempdir or 'the folder for temporary files'}; TMPDIR names another place."
            ) from error
        self.holds: Submission | None = None
        self.since = 0.0
        self._ended = ""
        self._is_prepared = False

    def _start(self, environment: Mapping[str, str]) -> None:
        with contextlib.ExitStack() as unless_started:
            self._folder = PrivateFolder("grade")
            unless_started.callback(self._folder.remove)
            self._errors: IO[bytes] = unless_started.enter_context(tempfile.TemporaryFile())
            ours, theirs = socket.socketpair()
            unless_started.callback(ours.close)
            with theirs:
                self._process = subprocess.Popen(
                    [*PROGRAM, str(theirs.fileno()), str(self._folder.path)],
                    pass_fds=[theirs.fileno(), self._folder.lock],
                    env={"OMP_NUM_THREADS": "1", **os.environ, **environment},  # as many workers as cores do the rest
                    stdin=subprocess.DEVNULL,
                    stdout=self._errors,
                    stderr=self._errors,
                    start_new_session=True,  # Ctrl-C is the writer's to handle
                )
            unless_started.pop_all()
        self.line = connection.Connection(ours.detach())

    def prepared(self, batch: Batch) -> "Worker":
        """Send it what all of its submissions need; returns it."""
        self._send(batch)
        self._is_prepared = True
        return self

    @property
    def pid(self) -> int:
        return self._process.pid

    def take(self, submission: Submission) -> None:
        """Begin a submission; its result arrives on `line`."""
        self.holds, self.since = submission, time.monotonic()
        self._send(submission)

    def result(self) -> Result:
        """The result that has arrived. Raises WorkerDied when there is none to come, Refusal when there never is."""
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
        """Begin a submission and wait for its result. Raises like `result`."""
        self.take(submission)
        if not self.line.poll(LONGEST_SECONDS):
            self.end()
            raise WorkerDied(TOO_LONG)
        return self.result()

    def dismiss(self) -> None:
        """Tell it to go, without waiting for it."""
        self.line.close()  # at the other end this is the sign to tidy up
        if not self._is_prepared:  # it has nothing to tidy up, and may be at its imports still
            self._process.kill()

    def end(self) -> str:
        """End the process, unless it has ended, and whatever it left running; returns how it ended."""
        if self._ended:
            return self._ended
        self.dismiss()
        try:
            code = self._process.wait(TIDY_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            code = self._process.wait()
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


class Spares(contextlib.ExitStack):
    """Workers that were started before it was known what they are for; those that nobody took end with the context.

    A worker imports for seconds, and so does the writer: this way they do it at the same time.
    """

    def __init__(self, environment: Mapping[str, str], count: int) -> None:
        super().__init__()
        self._environment = environment
        self._workers: deque[Worker] = deque()
        try:
            for _ in range(count):
                self._workers.append(Worker(environment))
        except BaseException:  # an interrupt too: what has been started must end
            self._end()
            raise
        self.callback(self._end)

    def take(self, batch: Batch) -> Worker:
        """A worker for the batch, one that was begun before if there is one left."""
        worker = self._workers.popleft() if self._workers else Worker(self._environment)
        return worker.prepared(batch)

    def _end(self) -> None:
        end_all(self._workers)


class Pool:
    """Several workers that share a stream of submissions.

    spares: where they come from; without them each is started when it is needed.
    """

    def __init__(self, batch: Batch, size: int, spares: Spares | None = None) -> None:
        self._batch, self._size, self._spares = batch, size, spares or Spares(batch.environment, 0)
        self._workers: list[Worker] = []

    def __enter__(self) -> "Pool":
        return self

    def __exit__(self, *_: object) -> None:
        end_all(self._workers)

    def grade(self, submissions: Iterable[Submission]) -> Iterator[Result]:
        """A result for each submission, in the order in which they come to an end.

        What fails, whether its worker died or not, is begun once more in a fresh one: an overloaded machine must cost
        nobody a grade. Then it is a failure with the reason. Raises CourseError when a worker can grade nobody.
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
        """What came of the worker's submission; None when it is still at it."""
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
        """A worker that holds nothing, a new one if need be."""
        for worker in self._workers:
            if not worker.holds:
                return worker
        self._workers.append(self._spares.take(self._batch))
        return self._workers[-1]


def end_all(workers: Iterable[Worker]) -> None:
    """End them, all at once where each needs a moment."""
    for worker in workers:
        worker.dismiss()
    for worker in workers:
        worker.end()
