"""Which files a submission's process sees, and which are hidden from it everywhere.

Seen are programs and libraries: of the system and of this Python only the folders that hold those, so that whatever
else is next to them is absent. Hidden inside these are the course, its classroom, temporary folders, nbgrader's
exchange, and our own packages.
"""

import contextlib
import os
import sys
import sysconfig
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from autograder import course
from autograder.course import CourseError
from autograder.sandbox import visible

LINKED = ("/bin", "/sbin", "/lib", "/lib32", "/lib64")  # folders, or links into /usr
OF_SYSTEM = (
    *(f"/usr/{part}" for part in ("bin", "sbin", "lib", "lib32", "lib64", "libexec", "include", "share")),
    *(f"/usr/local/{part}" for part in ("bin", "sbin", "lib", "lib64", "include", "share/fonts")),
)
OF_ETC = ("/etc/ld.so.cache", "/etc/localtime", "/etc/alternatives", "/etc/fonts")
OF_PYTHON = ("bin", "lib", "lib32", "lib64", "include", "share", "etc", "pyvenv.cfg")  # below where Python is installed
TEMPORARY = ("/tmp", "/var/tmp", "/dev/shm")
LIBRARIES = ("stdlib", "platstdlib", "purelib", "platlib")  # as sysconfig names them
EXCHANGES = ("/usr/local/share/nbgrader", "/srv/nbgrader")  # nbgrader's, where nothing else is configured
OF_COURSE = ("root", *(f"{step}_directory" for step in ("source", "release", "submitted", "autograded", "feedback")))
SQLITE = "sqlite:///"
SEEN, HIDDEN = "seen", "hidden"


class SandboxError(CourseError):
    """The sandbox cannot be started, or it broke. Never the fault of a submission."""


class NotHiddenError(SandboxError):
    """A path that submissions must not see cannot be hidden from them."""


def arranged(private: Iterable[str | Path] = ()) -> list[tuple[str, str]]:
    """(SEEN or HIDDEN, path) of all paths to be arranged, inner ones after outer ones.

    private: folders to be hidden in addition to the usual ones. Raises NotHiddenError if one of them is itself a folder
    of programs or libraries.
    """
    kinds = dict.fromkeys(_seen(), SEEN)
    aliases = [(path, os.path.realpath(path)) for path in kinds]
    for path in hidden_places(private):
        for seen, real in aliases:
            if path == real:
                raise NotHiddenError(
                    f"{path} holds programs that every submission must be able to run, and is also a place that must "
                    "be hidden from them (the course, its classroom or a temporary folder), so nothing is graded: move "
                    "the course into a folder of its own, or set TMPDIR to one."
                )
            if path.startswith(f"{real}/"):
                kinds[seen + path.removeprefix(real)] = HIDDEN
        kinds[path] = HIDDEN
    kept: dict[str, str] = {}
    for path in sorted(kinds, key=lambda path: (path.count("/"), path)):
        around = next((kept[str(above)] for above in Path(path).parents if str(above) in kept), HIDDEN)
        if kinds[path] != around:
            kept[path] = kinds[path]
    return [(kind, path) for path, kind in kept.items()]


def hidden_places(private: Iterable[str | Path] = ()) -> list[str]:
    """The real paths of everything that is hidden."""
    places = [*map(str, private), *TEMPORARY, *EXCHANGES, tempfile.gettempdir(), os.environ.get("TMPDIR") or "/tmp"]
    with contextlib.suppress(CourseError):
        places.append(str(course.find_root()))
    installed = libraries()
    if str(visible.HERE) not in installed:  # a checkout, with its solutions
        places.append(str(visible.HERE))
    places += [os.path.join(library, package) for library in installed for package in visible.PACKAGES]
    return sorted(set(map(os.path.realpath, places)) - {"/"})


def places_of_course(configuration: Mapping[str, Any]) -> list[str]:
    """The folder of the current course, and those in nbgrader's configuration: steps of the class, the gradebook's, the
    exchange."""
    try:
        root = course.find_root()
    except CourseError:  # on another machine than the course's
        root = Path.cwd()
    course_directory, exchange = (dict(configuration.get(name, {})) for name in ("CourseDirectory", "Exchange"))
    named = [course_directory.get(name) for name in OF_COURSE] + [exchange.get("root")]
    database = course_directory.get("db_url")
    if isinstance(database, str) and database.startswith(SQLITE):
        named.append(os.path.dirname(database.removeprefix(SQLITE)))
    return [str(root), *(str(root / name) for name in named if isinstance(name, str) and name)]


def python_places() -> list[str]:
    """The folders of programs and libraries of this Python, as in its configuration."""
    prefixes = {sys.prefix, sys.exec_prefix, sys.base_prefix, os.path.realpath(sys.base_prefix)}
    places = {os.path.join(prefix, part) for prefix in prefixes for part in OF_PYTHON}
    places |= {sysconfig.get_path(kind) for kind in LIBRARIES}
    return sorted(path for path in places if os.path.exists(path))


def libraries() -> tuple[str, ...]:
    """The folders that this Python lists to find modules."""
    return tuple(sorted({os.path.realpath(sysconfig.get_path(kind)) for kind in LIBRARIES}))


def _seen() -> list[str]:
    folders = [path for path in LINKED if not os.path.islink(path)]
    return [path for path in (*folders, *OF_SYSTEM, *OF_ETC, *python_places()) if os.path.exists(path)]
