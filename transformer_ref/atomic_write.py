"""Writes a file so that a reader sees the old one or the new one, never a part."""

import os
from pathlib import Path


def atomic_write(path: Path, content: str | bytes) -> None:
    """Write under a name of this process, then rename; missing folders are created. A text becomes UTF-8."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        partial.write_bytes(content.encode() if isinstance(content, str) else content)
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)
