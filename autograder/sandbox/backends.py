"""The ways to isolate, behind one interface: how the warm process is started, and how its children are confined."""

import functools
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from autograder.catalogue.exercise import Assignment
from autograder.course import CourseError
from autograder.inside.confine import NOBODY, Confinement
from autograder.inside.limits import Limits
from autograder.sandbox import hiding, visible
from autograder.sandbox.hiding import HIDDEN, SEEN, SandboxError
from autograder.sandbox.private_folder import PrivateFolder

SANDBOX = "ATTENTION_BY_HAND_SANDBOX"  # environment variable: which backend, for every command
IMAGE = "ATTENTION_BY_HAND_IMAGE"  # environment variable: the image for docker and podman
TRUST = "none"  # the backend that trusts submissions
PROBE_SECONDS = 60
INSIDE, MEETING, HOME = "/course", "/run/autograder", "/home/learner"  # as a sandbox with its own mounts sees them
ENGINES_HOME = "/tmp"  # docker gives what it mounts the rights that the image's folder has: here anybody may write
PRIVATE = ("/tmp", "/dev/shm")
OF_KERNEL = ("/proc/self", "/proc/meminfo", "/proc/cpuinfo", "/dev/random")
OF_IMAGE = ("/usr", *hiding.LINKED, "/opt", *hiding.OF_ETC, *OF_KERNEL)  # a container's image holds nothing of ours
OF_LEARNERS = {  # environment
    "LANG": "C.UTF-8",
    "USER": "learner",
    "HOME": "/nonexistent",
    "OMP_NUM_THREADS": "1",  # one thread, or the warm process could not fork
    "MKL_NUM_THREADS": "1",
    "MPLBACKEND": "module://matplotlib_inline.backend_inline",
    "PYTHONDONTWRITEBYTECODE": "1",
    "ATTENTION_BY_HAND_GRADED": "1",
    # Nobody waits for a network that is not there.
    "PIP_NO_INDEX": "1",
    "PIP_RETRIES": "0",
    "PIP_NO_INPUT": "1",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "UV_OFFLINE": "1",
    "CONDA_OFFLINE": "1",
    "HF_HUB_OFFLINE": "1",
}


@dataclass(frozen=True)
class Place:
    """Folders of one sandbox: `packages`, the visible modules; `meeting`, with the control socket; `homes`.

    arranged: the visible and hidden paths of this machine (`hiding.arranged`).
    """

    packages: Path
    meeting: Path
    homes: Path
    arranged: tuple[tuple[str, str], ...] = ()

    def of_kind(self, wanted: str) -> tuple[str, ...]:
        return tuple(path for kind, path in self.arranged if kind == wanted)


@dataclass(frozen=True)
class Backend:
    """One method of isolation.

    command: (place, program) -> the command line that runs Python with `program` as arguments inside.
    kind: how a child confines itself. own_mounts: whether the folders of a place have the names above inside.
    by_engine: whether the command is a container engine's, which needs our environment and does not pass it on.
    """

    name: str
    kind: str
    own_mounts: bool
    command: Callable[[Place, Sequence[str], Limits], list[str]]
    by_engine: bool = False

    @property
    def hides(self) -> bool:
        """Whether this machine's own folders are visible inside, so that some must be hidden."""
        return not self.by_engine and self.kind != "none"

    def confinement(self, place: Place) -> Confinement:
        """The confinement of a child of this backend."""
        if self.own_mounts:
            # A Python that lies in /tmp must stay in sight; /tmp is then read-only.
            seen = place.of_kind(SEEN)
            private = [folder for folder in PRIVATE if not any(path.startswith(f"{folder}/") for path in seen)]
            home = ENGINES_HOME if self.by_engine else HOME
            return Confinement(self.kind, home, private=tuple(private), readable=(INSIDE, *OF_IMAGE))
        seen = dict.fromkeys(map(os.path.realpath, place.of_kind(SEEN)))  # Landlock goes by folders, not by their names
        readable = (str(place.packages), *OF_KERNEL, *seen)
        hidden, home = place.of_kind(HIDDEN), str(place.homes)
        return Confinement(self.kind, home, readable=readable, hidden=hidden, listed=hiding.libraries())

    def address(self, place: Place) -> str:
        """The path of the control socket in the warm process."""
        return f"{MEETING if self.own_mounts else place.meeting}/control"

    def environment(self) -> dict[str, str]:
        """The environment to start the command with: that of the sandbox, or a container engine's own."""
        if self.by_engine:
            return dict(os.environ)
        return {
            "PATH": os.pathsep.join([os.path.dirname(sys.executable), "/usr/bin", "/bin"]),
            **OF_LEARNERS,
            **({"TMPDIR": HOME} if self.own_mounts else {}),
        }

    def working_folder(self, place: Place) -> str | None:
        """The folder in which the command is started, from which Python imports; None if the command sets it."""
        return None if self.own_mounts else str(place.packages)


def _python(program: Sequence[str]) -> list[str]:
    return [sys.executable, "-s", "-m", *program]


def _bubblewrap(place: Place, program: Sequence[str], limits: Limits) -> list[str]:
    """Only the listed paths exist inside. Root keeps two capabilities, to become the user nobody inside."""
    as_root = os.geteuid() == 0
    command = ["bwrap", "--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"]
    command += ["--cap-drop", "ALL", "--new-session"]
    command += ["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"] if as_root else ["--unshare-user"]
    for path in filter(os.path.islink, hiding.LINKED):
        command += ["--symlink", os.readlink(path), path]
    command += ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--perms", "1777", "--tmpfs", HOME]
    covered = [path for path in place.of_kind(HIDDEN) if os.path.isdir(path)]
    for kind, path in place.arranged:
        if kind == SEEN:  # a parent folder that is made automatically would belong to root only
            command += ["--dir", os.path.dirname(path), "--ro-bind-try", path, path]
        elif path in covered:
            command += ["--tmpfs", path]
    command += ["--ro-bind", str(place.packages), INSIDE, "--ro-bind", str(place.meeting), MEETING]
    for path in (*covered, "/tmp", "/dev", "/"):
        command += ["--remount-ro", path]
    return [*command, "--chdir", INSIDE, "--", *_python(program)]


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


def choose(name: str = "", private: Iterable[str | Path] = ()) -> Backend:
    """The backend that the environment names, else the one of that name, else the first that works here.

    private: folders that it must be able to hide, in addition to the usual ones. Raises SandboxError saying why each
    does not work, and how to override this, or which folder cannot be hidden; CourseError for an unknown name.
    """
    name = os.environ.get(SANDBOX) or name
    if name and name not in BACKENDS:
        raise CourseError(f"There is no sandbox {name!r}. The sandboxes are: {', '.join(BACKENDS)}.")
    reasons = []
    for candidate in [name] if name else [each for each in BACKENDS if each != TRUST]:
        reason = why_not(candidate)
        if not reason:
            if BACKENDS[candidate].hides:
                hiding.arranged(private)
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
    """Why a backend does not work here, or ""; found by confining a child once."""
    backend = BACKENDS[name]
    if name == TRUST:
        return ""
    try:
        with PrivateFolder("sandbox") as folder:
            place = lay_out(folder, backend)
            program = ["autograder.inside.confine", json.dumps(asdict(backend.confinement(place)))]
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


def lay_out(
    folder: Path, backend: Backend, assignment: Assignment | None = None, private: Iterable[str | Path] = ()
) -> Place:
    """Create the folders of a sandbox, readable by the user that the warm process becomes.

    private: folders of this machine to hide inside, in addition to the usual ones. Raises SandboxError if that is
    impossible.
    """
    arranged = tuple(hiding.arranged(private)) if backend.hides else ()
    place = Place(folder / "packages", folder / "meeting", folder / "homes", arranged)
    for part in (folder, place.packages, place.meeting, place.homes):
        part.mkdir(exist_ok=True)
        part.chmod(0o711 if part == folder else 0o755)
    visible.build(place.packages, assignment)
    if os.geteuid() == 0:
        os.chown(place.homes, NOBODY, NOBODY)
    return place
