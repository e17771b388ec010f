"""Files that are whole or not there, with the rights that any new file gets."""

import contextlib
import os
import re
import tempfile
from pathlib import Path


def atomic_write(path: Path, content: str | bytes) -> None:
    """Write a file under a temporary name, then rename it; after a failure nothing is left next to it.

    Its folder is made where it is missing. A new file has mode 0666 without the umask, so that a colleague or a web
    server can read it; an existing file keeps its mode.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    data = content.encode() if isinstance(content, str) else content
    mode = usual_mode(path)
    descriptor, partial = tempfile.mkstemp(prefix=f".{path.name[:100]}-", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        os.chmod(partial, mode)
        os.replace(partial, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(partial)
        raise


def usual_mode(path: Path) -> int:
    """Return the mode of an existing file, or 0666 without the umask, which any new file gets."""
    try:
        return path.stat().st_mode & 0o777
    except OSError:
        return 0o666 & ~_umask()


def _umask() -> int:
    """The process's umask. Where Linux does not tell it, it can only be read by setting it, for all threads at once."""
    with contextlib.suppress(OSError):
        if found := re.search(r"^Umask:\s*([0-7]+)$", Path("/proc/self/status").read_text(), re.MULTILINE):
            return int(found[1], 8)
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
