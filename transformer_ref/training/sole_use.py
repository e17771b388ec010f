"""One training run at a time in a folder: a second one is refused while the first one runs, and only then."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None
try:
    import msvcrt
except ImportError:  # elsewhere
    msvcrt = None

LOCK = ".training"  # the system holds a lock on it for as long as the process lives, however that ends


@contextlib.contextmanager
def sole_use(folder: Path) -> Iterator[None]:
    """Lock the folder while the block runs. Raises ValueError if another training run has locked it.

    Does nothing for a folder that cannot be written or a file system without locks.
    """
    path = folder / LOCK
    with contextlib.ExitStack() as held:
        with contextlib.suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            file = held.enter_context(open(path, "ab"))
            try:
                _lock(file.fileno())
            except (BlockingIOError, PermissionError) as error:
                raise ValueError(
                    f"output: expected a folder in which nothing trains, got {folder}, where a training run goes on"
                ) from error
            held.callback(_remove, path)
        yield


def _lock(descriptor: int) -> None:
    """Lock an open file, or raise OSError at once. It is unlocked when the file is closed."""
    if fcntl:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    elif msvcrt:
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):  # Windows keeps a file that is open
        path.unlink()
