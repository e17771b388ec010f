"""Private folders in TMPDIR: known by their name, removed however deep they are, swept away when their owner is gone.

A folder is held by a lock on it, which its owner and the worker share; the system lets go of it when both have ended,
however they ended. A folder without an owner is removed at the next start: it may hold the class secret and a student's
work.
"""

import contextlib
import fcntl
import functools
import os
import tempfile
import time
from pathlib import Path

from autograder.inside import safe_rmtree

PREFIX = "attention-by-hand-"
HELD = ".held"  # is there once the folder has been locked, so that one which is being made is not taken for a left one
YOUNG = 60  # seconds; an older folder without it was being removed, or made, when its owner was killed


class PrivateFolder:
    """A folder in TMPDIR, locked until `remove` or the end of a `with`.

    Raises OSError, and leaves no folder, if none can be created.

    kind: a word of its name, such as "grade".
    """

    def __init__(self, kind: str) -> None:
        _sweep_once()
        self.path = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{kind}-"))
        try:
            self.lock = -1
            self.path.chmod(0o711)  # another user's sandbox may pass through it; only we can read it
            self.lock = os.open(self.path, os.O_RDONLY)
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            (self.path / HELD).touch(mode=0o600)
        except OSError:
            self.remove()
            raise

    def __enter__(self) -> Path:
        return self.path

    def __exit__(self, *_: object) -> None:
        self.remove()

    def remove(self) -> None:
        """Remove the folder with its content, and release its lock."""
        safe_rmtree.remove(self.path)
        with contextlib.suppress(OSError):  # an empty one also where no more files can be opened
            (self.path / HELD).unlink(missing_ok=True)
            self.path.rmdir()
        with contextlib.suppress(OSError):
            os.close(self.lock)


def sweep() -> None:
    """Remove the folders of killed graders in TMPDIR."""
    with contextlib.suppress(OSError):
        for path in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
            with contextlib.suppress(OSError):
                _remove_unless_held(path)


@functools.cache
def _sweep_once() -> None:
    """Sweep once per process."""
    sweep()


def _remove_unless_held(path: Path) -> None:
    lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        found = os.fstat(lock)
        being_made = not (path / HELD).exists() and time.time() - found.st_mtime < YOUNG
        if found.st_uid != os.getuid() or being_made:
            return
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # BlockingIOError, an OSError, where somebody holds it
        safe_rmtree.remove(path)
    finally:
        os.close(lock)
