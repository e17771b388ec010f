"""JupyterLab in a process of its own, with settings, history and runtime files that are nobody else's.

`serving` is plain JupyterLab on a folder, `desk` what a learner opens by `python -m autograder learn`.
"""

import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 180_000  # milliseconds; a cold import of torch on a busy two-core machine takes most of a minute


@contextmanager
def serving(home: Path, work: Path) -> Iterator[tuple[str, str]]:
    """Serve the folder `work`, with everything else below `home`; yields the address and the token."""
    environment, settings = _of_its_own(home)
    log = (home / "log").open("wb")
    options = {
        "ServerApp.ip": "127.0.0.1",
        "ServerApp.port": 0,
        "ServerApp.root_dir": work,
        "LabApp.user_settings_dir": settings,
    }
    server = subprocess.Popen(
        [sys.executable, "-m", "jupyter", "lab", "--no-browser", "--allow-root"]
        + [f"--{name}={value}" for name, value in options.items()],
        cwd=work,
        env=environment,
        stdout=log,
        stderr=log,
    )
    try:
        running = _wait_until_running(server, home)
        yield f"http://127.0.0.1:{running['port']}", running["token"]
    finally:
        server.terminate()
        server.wait(timeout=60)
        log.close()


@contextmanager
def desk(home: Path, folder: Path) -> Iterator[tuple[str, list[str]]]:
    """A learner's desk on their folder; yields the address that it prints for the notebook, and all that it prints."""
    environment, settings = _of_its_own(home)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    command = [sys.executable, "-m", "autograder", "learn", str(folder), "--no-browser", "--port", port]
    settings = {"JUPYTERLAB_SETTINGS_DIR": str(settings), "ATTENTION_BY_HAND_BOOK": "https://book.example"}
    with (home / "log").open("wb") as log:
        learning = subprocess.Popen(
            command, cwd=home, env=environment | settings, stdout=subprocess.PIPE, stderr=log, text=True
        )
    said: list[str] = []
    try:
        for line in learning.stdout:
            said.append(line)
            if line.startswith("Ctrl-C"):
                break
        _wait_until_running(learning, home)
        yield re.search(r"http://127\S+token=\w+", "".join(said))[0], said
    finally:
        learning.terminate()
        said += learning.stdout
        learning.wait(timeout=60)


def _of_its_own(home: Path) -> tuple[dict[str, str], Path]:
    """The environment of a server whose files all lie below `home`, and the folder of its settings."""
    settings = home / "settings"
    for name, values in {
        "notebook-extension/tracker": {"windowingMode": "none"},  # every cell is in the page, seen or not
        "apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
    }.items():
        file = settings / "@jupyterlab" / f"{name}.jupyterlab-settings"
        file.parent.mkdir(parents=True)
        file.write_text(json.dumps(values), encoding="utf-8")
    folders = ("HOME", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR")
    environment = os.environ | {name: str(home / name.lower()) for name in folders} | {"JUPYTER_PREFER_ENV_PATH": "1"}
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment["PATH"] = os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", "")])
    for name in folders:
        (home / name.lower()).mkdir()
    return environment, settings


def _wait_until_running(server: subprocess.Popen[bytes], home: Path) -> dict:
    """What the server writes about itself, once it listens: it writes the file a little earlier."""
    deadline = time.monotonic() + PATIENCE / 1000
    while time.monotonic() < deadline:
        described = sorted((home / "jupyter_runtime_dir").glob("jpserver-*.json"))
        if described:
            with suppress(json.JSONDecodeError, OSError):  # half written, or nobody listens yet
                running = json.loads(described[0].read_text(encoding="utf-8"))
                socket.create_connection(("127.0.0.1", running["port"]), timeout=5).close()
                return running
        if server.poll() is not None:
            break
        time.sleep(0.2)
    raise RuntimeError("JupyterLab did not start:\n" + (home / "log").read_text(errors="replace")[-2000:])
