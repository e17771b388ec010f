"""The ways to isolate, behind one interface: how the warm process is started, and how its children are confined."""

import functools
import json
import os
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from autograder.course import CourseError
from autograder.exercise import Assignment
from autograder.sandbox import visible
from autograder.sandbox.confine import NOBODY, Confinement
from autograder.sandbox.limits import Limits

SANDBOX = "ATTENTION_BY_HAND_SANDBOX"  # environment variable: which backend, for every command
IMAGE = "ATTENTION_BY_HAND_IMAGE"  # environment variable: the image for docker and podman
TRUST = "none"  # the backend that trusts submissions
PROBE_SECONDS = 60
INSIDE, MEETING, HOME = "/course", "/run/autograder", "/home/learner"  # as a sandbox with its own mounts sees them
ENGINES_HOME = "/tmp"  # docker gives what it mounts the rights that the image's folder has: here anybody may write
PRIVATE = ("/tmp", "/dev/shm")
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64")
OF_ETC = ("/etc/ld.so.cache", "/etc/localtime", "/etc/alternatives", "/etc/fonts")
OF_LEARNERS = {  # environment
    "LANG": "C.UTF-8",
    "USER": "learner",
    "HOME": "/nonexistent",
    "OMP_NUM_THREADS": "1",  # one thread, or the warm process could not fork
    "MKL_NUM_THREADS": "1",
    "MPLBACKEND": "module://matplotlib_inline.backend_inline",
    "PYTHONDONTWRITEBYTECODE": "1",
    "ATTENTION_BY_HAND_GRADED": "1",
}


class SandboxError(CourseError):
    """No sandbox: it cannot be started, or it broke. Never the fault of a submission."""


@dataclass(frozen=True)
class Place:
    """Folders of one sandbox: `packages`, the visible modules; `meeting`, with the control socket; `homes`."""

    packages: Path
    meeting: Path
    homes: Path


@dataclass(frozen=True)
class Backend:
    """One way to isolate.

    command: (place, program) -> the command line that runs Python with `program` as arguments inside.
    kind: how a child confines itself. own_mounts: whether inside, the folders of a place have the names above.
    by_engine: whether the command is a container engine's: it needs our environment and keeps it to itself.
    """

    name: str
    kind: str
    own_mounts: bool
    command: Callable[[Place, Sequence[str], Limits], list[str]]
    by_engine: bool = False

    def confinement(self, place: Place) -> Confinement:
        """What a child of this backend does to itself."""
        if self.own_mounts:
            # A Python that lies in /tmp must stay in sight; /tmp is then read-only.
            private = [folder for folder in PRIVATE if not any(path.startswith(f"{folder}/") for path in _prefixes())]
            home = ENGINES_HOME if self.by_engine else HOME
            return Confinement(self.kind, home, private=tuple(private), readable=(INSIDE, *_system()))
        readable = (str(place.packages), *_system(), *_prefixes())
        return Confinement(self.kind, str(place.homes), readable=readable, hidden=_installed_packages())

    def address(self, place: Place) -> str:
        """The control socket as the warm process finds it."""
        return f"{MEETING if self.own_mounts else place.meeting}/control"

    def environment(self) -> dict[str, str]:
        """The environment to start the command with: all of the environment inside, or a container engine's own."""
        if self.by_engine:
            return dict(os.environ)
        return {
            "PATH": os.pathsep.join([os.path.dirname(sys.executable), "/usr/bin", "/bin"]),
            **OF_LEARNERS,
            **({"TMPDIR": HOME} if self.own_mounts else {}),
        }

    def working_folder(self, place: Place) -> str | None:
        """Where the command is started, from which Python imports; None when the command says so itself."""
        return None if self.own_mounts else str(place.packages)


def _python(program: Sequence[str]) -> list[str]:
    return [sys.executable, "-s", "-m", *program]


def _bubblewrap(place: Place, program: Sequence[str], limits: Limits) -> list[str]:
    """Everything is absent but what is listed. Root keeps two capabilities, to become nobody inside."""
    as_root = os.geteuid() == 0
    command = ["bwrap", "--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"]
    command += ["--cap-drop", "ALL", "--new-session"]
    command += ["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"] if as_root else ["--unshare-user"]
    for path in SYSTEM:
        if os.path.islink(path):
            command += ["--symlink", os.readlink(path), path]
        elif os.path.exists(path):
            command += ["--ro-bind", path, path]
    command += ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--perms", "1777", "--tmpfs", HOME]
    for path in (*OF_ETC, *_prefixes()):  # a parent folder that is made unasked would be root's alone
        command += ["--dir", os.path.dirname(path), "--ro-bind-try", path, path]
    for path in _installed_packages():
        command += ["--tmpfs", path]
    command += ["--ro-bind", str(place.packages), INSIDE, "--ro-bind", str(place.meeting), MEETING]
    return [*command, "--remount-ro", "/tmp", "--remount-ro", "/", "--chdir", INSIDE, "--", *_python(program)]


def _directly(place: Place, program: Sequence[str], limits: Limits) -> list[str]:
    """The warm process itself is trusted; only its children are confined."""
    return _python(program)


def _container(engine: str) -> Callable[[Place, Sequence[str], Limits], list[str]]:
    """docker or podman with an image that holds Python, torch and IPython."""

    def command(place: Place, program: Sequence[str], limits: Limits) -> list[str]:
        image = os.environ.get(IMAGE)
        if not image:
            raise SandboxError(f"{IMAGE} does not name an image")
        return [
            *(engine, "run", "--rm", "--network=none", "--read-only", "--cap-drop=ALL"),
            *("--security-opt=no-new-privileges", f"--user={NOBODY}:{NOBODY}", f"--pids-limit={4 * limits.processes}"),
            *(f"--memory={4 * limits.memory_bytes}", f"--tmpfs={ENGINES_HOME}:size={limits.disk_bytes},mode=1777"),
            *(f"--volume={place.packages}:{INSIDE}:ro", f"--volume={place.meeting}:{MEETING}", f"--workdir={INSIDE}"),
            *(f"--env={name}={value}" for name, value in OF_LEARNERS.items()),
            *(image, "python3", "-s", "-B", "-m", *program),
        ]

    return command


BACKENDS = {
    "bubblewrap": Backend("bubblewrap", "namespaces", True, _bubblewrap),
    "landlock": Backend("landlock", "landlock", False, _directly),
    "docker": Backend("docker", "landlock", True, _container("docker"), by_engine=True),
    "podman": Backend("podman", "landlock", True, _container("podman"), by_engine=True),
    TRUST: Backend(TRUST, "none", False, _directly),
}


def choose(name: str = "") -> Backend:
    """The backend that the environment names, else the one of that name, else the first that can isolate here.

    Raises SandboxError saying why each cannot, and what overrides; CourseError for an unknown name.
    """
    name = os.environ.get(SANDBOX) or name
    if name and name not in BACKENDS:
        raise CourseError(f"There is no sandbox {name!r}. The sandboxes are: {', '.join(BACKENDS)}.")
    reasons = []
    for candidate in [name] if name else [each for each in BACKENDS if each != TRUST]:
        reason = why_not(candidate)
        if not reason:
            return BACKENDS[candidate]
        reasons.append(f"  {candidate}: {reason}")
    raise SandboxError(
        "Submissions cannot be isolated on this machine, so nothing is graded:\n"
        + "\n".join(reasons)
        + "\nInstall bubblewrap, or allow it user namespaces. To run submissions with all of your own rights "
        f"instead, say --trust-submissions, or {SANDBOX}={TRUST} for nbgrader's own commands."
    )


@functools.cache
def why_not(name: str) -> str:
    """Why a backend cannot isolate here; "" when it can. Found out by confining a child once."""
    backend = BACKENDS[name]
    if name == TRUST:
        return ""
    with tempfile.TemporaryDirectory(prefix="sandbox-") as folder:
        place = lay_out(Path(folder), backend)
        program = ["autograder.sandbox.confine", json.dumps(asdict(backend.confinement(place)))]
        try:
            done = subprocess.run(
                backend.command(place, program, Limits()),
                cwd=backend.working_folder(place),
                env=backend.environment(),
                text=True,
                capture_output=True,
                timeout=PROBE_SECONDS,
                check=False,
            )
        except (OSError, SandboxError, subprocess.TimeoutExpired) as error:
            return str(error)
    return "" if done.returncode == 0 else (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]


def lay_out(folder: Path, backend: Backend, assignment: Assignment | None = None) -> Place:
    """Make the folders of a sandbox, readable by the user that the warm process becomes."""
    place = Place(folder / "packages", folder / "meeting", folder / "homes")
    for part in (folder, *vars(place).values()):
        part.mkdir(exist_ok=True)
        part.chmod(0o711 if part == folder else 0o755)
    visible.build(place.packages, assignment)
    if os.geteuid() == 0:
        os.chown(place.homes, NOBODY, NOBODY)
    return place


def _prefixes() -> tuple[str, ...]:
    """Where this Python and its packages lie, outside the system's folders."""
    places = {os.path.realpath(sys.base_prefix), sys.base_prefix, sys.prefix}
    return tuple(sorted(place for place in places if not f"{place}/".startswith("/usr/")))


def _installed_packages() -> tuple[str, ...]:
    """Copies of our own packages among the installed ones, which would show everything."""
    places = {sysconfig.get_path(kind) for kind in ("purelib", "platlib")}
    paths = (os.path.join(place, package) for place in places for package in visible.PACKAGES)
    return tuple(sorted(filter(os.path.isdir, paths)))


def _system() -> tuple[str, ...]:
    return (*SYSTEM, *OF_ETC, "/opt", "/proc/self", "/proc/meminfo", "/proc/cpuinfo", "/dev/random")
