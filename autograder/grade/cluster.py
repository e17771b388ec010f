"""The same class on a Dask cluster: tasks travel to its workers, results come back to the one writer.

Each thread of a Dask worker keeps one worker process of ours (see `pool`), so that a submission that kills its process
kills nothing of Dask's. When a whole Dask worker is lost, the scheduler gives what it held to another. A worker needs
this package, and the sandbox, on its own machine; the judge's secret travels to it, so the cluster must be one that you
trust (Dask can encrypt its connections: https://distributed.dask.org/en/stable/tls.html).
"""

import io
import pickle
import tarfile
import threading
import time
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from autograder import catalogue
from autograder.catalogue.exercise import Assignment
from autograder.course import CourseError
from autograder.grade import changes
from autograder.grade.fork_server import ForkServer
from autograder.grade.messages import Batch, Result, Submission
from autograder.grade.pool import MOST_ATTEMPTS, Refusal, Worker, WorkerDied, end_all
from autograder.intake import take_in

CONNECT_SECONDS = 30
IDLE_SECONDS = 30.0  # a worker process that waits longer has no run any more; the next one that comes starts another
AHEAD = 2  # submissions under way for each thread of the cluster, so that none waits for the next

try:
    import distributed
except ImportError:
    distributed = None


class Cluster:
    """The workers of a Dask scheduler, used like a `Pool`."""

    def __init__(self, batch: Batch, scheduler: str) -> None:
        self._batch, self._address = batch, scheduler
        self._entry = catalogue.find_assignment(batch.assignment)
        self._packed = zlib.compress(pickle.dumps(batch))

    def __enter__(self) -> "Cluster":
        """Connect. Raises CourseError when there is no cluster, or its workers run another version of this package."""
        if distributed is None:
            raise CourseError("--dask needs the package `distributed`: pip install 'attention-by-hand[cluster]'.")
        try:
            self._client = distributed.Client(self._address, timeout=CONNECT_SECONDS, set_as_default=False)
        except (OSError, ValueError) as error:
            raise CourseError(f"No Dask scheduler answers at {self._address!r}: {error}") from error
        try:
            self._client.wait_for_workers(1, timeout=CONNECT_SECONDS)
            self._compare_versions()
        except (TimeoutError, CourseError) as error:
            self._client.close()
            raise CourseError(str(error)) from error
        return self

    def __exit__(self, *_: object) -> None:
        if self._client.status == "running":
            self._client.run(end_workers)
        self._client.close()

    def grade(self, submissions: Iterable[Submission]) -> Iterator[Result]:
        """Yield a result for each submission, in the order in which they finish; see `Pool.grade`."""
        waiting, attempts = iter(submissions), Counter[str]()
        held: dict[distributed.Future, Submission] = {}  # pyright: ignore[reportInvalidTypeForm]  # not everywhere
        under_way = distributed.as_completed(loop=self._client.loop)

        def begin(submission: Submission) -> None:
            attempts[submission.student] += 1
            future = self._client.submit(grade_one, self._packed, self._batch.digest, submission, pure=False)
            held[future] = submission
            under_way.add(future)

        while True:
            while len(held) < AHEAD * max(1, sum(self._client.ncores().values())):
                submission = next(waiting, None)
                if submission is None:
                    break
                try:
                    archive = pack(submission.folder, self._entry)
                except OSError as error:  # it was removed, or cannot be read: only this submission fails
                    yield Result(submission.student, failure=f"{error.filename or submission.folder}: {error.strerror}")
                    continue
                begin(replace(submission, archive=archive))
            if not held:
                return
            future = next(under_way)
            submission = held.pop(future)
            result = self._result(future, submission)
            if result.failure and attempts[submission.student] < MOST_ATTEMPTS:
                begin(submission)
            else:
                yield replace(result, attempts=attempts[submission.student])

    def _result(self, future: Any, submission: Submission) -> Result:
        try:
            return future.result()
        except Refusal as refusal:
            raise CourseError(f"A worker of {self._address} cannot grade: {refusal}") from refusal
        except distributed.KilledWorker as killed:
            return Result(submission.student, failure=f"it took every worker with it that tried ({killed})", retry=True)
        except distributed.CancelledError as error:
            raise CourseError(
                f"The Dask scheduler at {self._address} is gone. Finished grades are kept; --resume goes on from here."
            ) from error

    def _compare_versions(self) -> None:
        here = changes.installed()
        for worker, there in self._client.run(changes.installed).items():
            other = [what for what, version in here.items() if there.get(what) != version]
            if other:
                raise CourseError(
                    f"The Dask worker {worker} has another version of {' and of '.join(other)} than this machine; "
                    "grades would depend on which machine gave them."
                )


def pack(folder: Path, assignment: Assignment | None) -> bytes:
    """The data of a folder that another machine needs. Raises OSError if it is missing or unreadable."""
    folder.stat()
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz", compresslevel=1) as archive:
        for name, content in take_in.copied(folder, assignment):
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


# --- on the cluster's workers ----------------------------------------------------------------------------------------

_lock = threading.Lock()
_stables: dict[str, "WorkerPool"] = {}  # digest of a batch -> its worker processes


class WorkerPool:
    """The worker processes of one batch on this machine; its methods are called while the lock is held."""

    def __init__(self, batch: Batch) -> None:
        self.batch, self.fork_server = batch, ForkServer(batch.environment, batch.assignment)
        self.idle: list[tuple[float, Worker]] = []  # (since when, who)
        self.busy = 0

    def end_idle(self, longer: float) -> None:
        """End the workers that have been idle for longer than this number of seconds, and with the last one the fork
        server."""
        until = time.monotonic() - longer
        end_all(worker for since, worker in self.idle if since <= until)
        self.idle = [(since, worker) for since, worker in self.idle if since > until]
        if not self.idle and not self.busy:
            self.fork_server.end()


def grade_one(packed: bytes, digest: str, submission: Submission) -> Result:
    """Grade in a worker process of this machine. If the process dies, the result says so."""
    with _lock:
        _end_idle(digest)
        if digest not in _stables:
            _stables[digest] = WorkerPool(pickle.loads(zlib.decompress(packed)))
            if len(_stables) == 1:
                threading.Thread(target=_tidy, daemon=True).start()
        stable = _stables[digest]
        worker = stable.idle.pop()[1] if stable.idle else None
        stable.busy += 1
    try:
        worker = worker or Worker(stable.fork_server).prepared(stable.batch)
        result = worker.grade(submission)
        if result.failure:
            worker.end()
    except WorkerDied as died:
        result = Result(submission.student, failure=str(died), retry=True)
    finally:
        with _lock:
            stable.busy -= 1
    if not result.failure:
        with _lock:
            stable.idle.append((time.monotonic(), worker))
    return result


def end_workers() -> None:
    """Stop the idle worker processes, and their fork servers."""
    with _lock:
        _end_idle("")


def _tidy() -> None:
    """End the workers that have been idle for long: a client that was killed does not say that its run is over."""
    while True:
        time.sleep(min(1.0, IDLE_SECONDS))
        with _lock:
            _end_idle("", IDLE_SECONDS)
            if not _stables:
                return


def _end_idle(but: str, longer: float = 0.0) -> None:
    """End the idle workers of all other batches, and forget batches without a busy worker."""
    for digest in [known for known in _stables if known != but]:
        _stables[digest].end_idle(longer)
        if not _stables[digest].idle and not _stables[digest].busy:
            del _stables[digest]
