"""Folders as a hostile program leaves them: of any depth, beyond any path's length, without rights to look inside.

Everything goes through open folders, never through long paths, and nothing recurses.
"""

import contextlib
import os
import secrets
import stat
from collections.abc import Iterator

DEEPEST = 100  # levels of folders that are counted; nobody's work needs as many
SMALLEST = 1024  # bytes that an entry takes at least, whatever it holds
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class TooDeep(Exception):
    """Folders are nested deeper than is counted."""


def remove(folder: str | os.PathLike[str]) -> None:
    """Remove a folder and its content, as far as this user's permissions allow.

    An inner folder is emptied by moving its folders up to the top, one after another.
    """
    try:
        top = _opened(os.fspath(folder))
    except OSError:
        return
    resisting: set[str] = set()
    try:
        while names := [name for name in os.listdir(top) if name not in resisting]:
            for name in names:
                if not _removed(top, name):
                    resisting.add(name)
    except OSError:  # no more files can be opened
        pass
    finally:
        os.close(top)
    with contextlib.suppress(OSError):
        os.rmdir(folder)


def size(folder: str, most: int) -> int:
    """Bytes on disk of the files below a folder; counting ends above `most`.

    Raises TooDeep for folders nested beyond `DEEPEST`. A concurrent change may be missed once.
    """
    total, seen = 0, set()
    for entry in _entries(folder):
        if entry.st_nlink > 1:
            if (entry.st_dev, entry.st_ino) in seen:
                continue
            seen.add((entry.st_dev, entry.st_ino))
        total += max(entry.st_blocks * 512, SMALLEST)
        if total > most:
            break
    return total


def _entries(folder: str) -> Iterator[os.stat_result]:
    """Yield the status of each entry below a folder. The number of open folders is the depth of nesting."""
    open_folders: list[tuple[int, list[str]]] = []
    try:
        with contextlib.suppress(OSError):
            opened = _opened(folder)
            open_folders.append((opened, os.listdir(opened)))
        while open_folders:
            opened, names = open_folders[-1]
            if not names:
                os.close(open_folders.pop()[0])
                continue
            name = names.pop()
            try:
                found = os.stat(name, dir_fd=opened, follow_symlinks=False)
                yield found
                if not stat.S_ISDIR(found.st_mode):
                    continue
                if len(open_folders) == DEEPEST:
                    raise TooDeep
                inside = _opened(name, opened)
                open_folders.append((inside, os.listdir(inside)))
            except OSError:  # it has been removed
                continue
    finally:
        for opened, _ in open_folders:
            os.close(opened)


def _removed(top: int, name: str) -> bool:
    """Remove one entry of the open folder `top`; False if that fails."""
    try:
        os.unlink(name, dir_fd=top)
        return True
    except OSError:  # a folder, or it resists
        pass
    try:
        inside = _opened(name, top)
        try:
            for inner in os.listdir(inside):
                _move_up(inside, inner, top)
        finally:
            os.close(inside)
        os.rmdir(name, dir_fd=top)
        return True
    except FileNotFoundError:
        return True
    except OSError:
        return False


def _move_up(inside: int, name: str, top: int) -> None:
    try:
        os.unlink(name, dir_fd=inside)
    except OSError:
        with contextlib.suppress(OSError):  # to move a folder is to write its "..", which takes rights to it
            _unlock(name, inside)
        os.rename(name, f"up-{secrets.token_hex(8)}", src_dir_fd=inside, dst_dir_fd=top)


def _opened(name: str, parent: int | None = None) -> int:
    """Open a folder by its name in an open one; missing permissions are added first."""
    try:
        found = os.open(name, FOLDER, dir_fd=parent)
        if os.fstat(found).st_mode & 0o300 == 0o300 or os.geteuid() == 0:
            return found
        os.close(found)
    except PermissionError:
        pass
    _unlock(name, parent)
    return os.open(name, FOLDER, dir_fd=parent)


def _unlock(name: str, parent: int | None) -> None:
    """Give a folder's owner all permissions. The path may be replaced meanwhile, so no link is followed."""
    found = os.open(name, getattr(os, "O_PATH", os.O_RDONLY) | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    try:
        if stat.S_ISDIR(os.fstat(found).st_mode):
            os.chmod(f"/proc/self/fd/{found}", 0o700)
    finally:
        os.close(found)
