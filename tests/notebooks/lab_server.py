"""JupyterLab in a process of its own, with settings, history and runtime files that are nobody else's."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 180_000  # milliseconds; a cold import of torch on a busy two-core machine takes most of a minute


@contextmanager
def serving(home: Path, work: Path) -> Iterator[tuple[str, str]]:
    """Serve the folder `work`, with everything else below `home`; yields the address and the token."""
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


def _wait_until_running(server: subprocess.Popen[bytes], home: Path) -> dict:
    """What the server writes about itself once it listens."""
    deadline = time.monotonic() + PATIENCE / 1000
    while time.monotonic() < deadline:
        described = sorted((home / "jupyter_runtime_dir").glob("jpserver-*.json"))
        if described:
            try:
                return json.loads(described[0].read_text(encoding="utf-8"))
            except json.JSONDecodeError:
                pass  # half written
        if server.poll() is not None:
            break
        time.sleep(0.2)
    raise RuntimeError("JupyterLab did not start:\n" + (home / "log").read_text(errors="replace")[-2000:])
