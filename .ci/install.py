"""Installs packages into the environment whose Python runs this: by uv, which is fast, else by pip.

    .venv/bin/python .ci/install.py -r requirements.txt
    .venv/bin/python .ci/install.py torch==2.13.0

uv reads none of pip's settings, so those that say where packages come from are handed on. torch is taken from
TORCH_INDEX where it is set; else, on Linux without an NVIDIA GPU, from the index of small CPU builds if that answers.
"""

import os
import re
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterable, Sequence
from pathlib import Path

CPU_BUILDS = "https://download.pytorch.org/whl/cpu"
SECONDS_TO_REACH_IT = 5
LOCK = Path(__file__).resolve().parent.parent / "requirements.txt"
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
# The first words of the lines with which uv reports progress; the others are warnings and one line for each package.
PROGRESS = [[word] for word in ("Resolved", "Downloading", "Building", "Prepared", "Installed", "Bytecode")]
SETTING = re.compile(r"(?:global|install|:env:)\.(index-url|extra-index-url|find-links|no-index)=(['\"])(.*)\2")


def pip_settings() -> dict[str, list[str]]:
    """Where pip is told to look, each option with its values: those of its files, then those of the environment."""
    listed = subprocess.run([*PIP, "config", "list"], capture_output=True, text=True).stdout
    found = [match.groups() for match in map(SETTING.fullmatch, listed.splitlines()) if match]
    return {name: values.replace(r"\n", " ").split() for name, _, values in found}


def as_uv_options(settings: dict[str, list[str]]) -> list[str]:
    """The same settings in uv's words. Like pip, take the best version that any of the indexes has."""
    options = ["--index-strategy", "unsafe-best-match"]
    for name, values in settings.items():
        if name == "no-index":
            options += ["--no-index"] if values[-1:] in (["1"], ["true"], ["yes"], ["on"]) else []
        else:
            options += [word for value in values for word in (f"--{name}", value)]
    return options


def has_nvidia_gpu() -> bool:
    return Path("/proc/driver/nvidia").exists() or shutil.which("nvidia-smi") is not None


def can_be_reached(index: str) -> bool:
    try:
        with urllib.request.urlopen(f"{index}/torch/", timeout=SECONDS_TO_REACH_IT):
            return True
    except (OSError, urllib.error.URLError):
        return False


def torch_index() -> str | None:
    """The index to take torch from, or None for the usual one."""
    named = os.environ.get("TORCH_INDEX")
    if named or sys.platform != "linux" or has_nvidia_gpu():
        return named or None
    return CPU_BUILDS if can_be_reached(CPU_BUILDS) else None


def by_uv(what: Sequence[str], settings: dict[str, list[str]]) -> bool:
    """Whether uv could be had and installed everything."""
    pinned = re.search(r"^uv==\S+", LOCK.read_text(encoding="utf-8"), flags=re.MULTILINE)
    if pinned is None or subprocess.run([*PIP, "install", "-q", pinned.group()], capture_output=True).returncode:
        return False
    uv = [sys.executable, "-m", "uv", "pip", "install", "--python", sys.executable, "--compile-bytecode"]
    command, plain = [*uv, *as_uv_options(settings), *what], {**os.environ, "NO_COLOR": "1"}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, encoding="utf-8", env=plain) as installing:
        others = show_progress(installing.stderr)
    if installing.returncode:
        print("".join(others), end="", file=sys.stderr)
    return not installing.returncode


def show_progress(lines: Iterable[str]) -> list[str]:
    """Show how far uv is, as it says so; return its other lines, which matter only if it fails."""
    others = []
    for line in lines:
        if line.split(maxsplit=1)[:1] in PROGRESS:
            print(f"  {line.strip()}", flush=True)
        else:
            others.append(line)
    return others


def main(what: Sequence[str]) -> int:
    settings = pip_settings()
    index = torch_index() if any(word.startswith("torch==") for word in what) else None
    if index:
        print(f"  torch from {index}", flush=True)
        settings = {**settings, "index-url": [index]}
    if by_uv(what, settings):
        return 0
    print("  uv cannot do it here; pip does, in about two minutes", flush=True)
    return subprocess.run([*PIP, "install", "-q", *(["--index-url", index] if index else []), *what]).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
