"""A learner's side on Windows, as far as this machine can tell: without the modules and calls that only POSIX has."""

import json
import os
import subprocess
import sys
from pathlib import Path

from autograder import catalogue

CHAPTER = "05_self_attention"
# Set-up that runs before anything is imported; torch and Python themselves may still ask for what they like.
BLOCKED = """
import os, signal, sys
for name in ("fcntl", "resource", "pwd", "grp", "termios", "pty", "tty", "posix_ipc", "syslog", "spwd", "nis"):
    sys.modules[name] = None
for name in ("fork", "forkpty", "getuid", "geteuid", "setsid", "killpg", "mkfifo", "sched_getaffinity", "wait4"):
    delattr(os, name) if hasattr(os, name) else None
for name in ("SIGKILL", "SIGHUP", "SIGALRM", "SIGCHLD", "SIGUSR1", "setitimer", "alarm", "pthread_sigmask"):
    delattr(signal, name) if hasattr(signal, name) else None
"""
CHECKED = """
import torch
from autograder.check import check, progress
import transformer_ref.translate, transformer_ref.capstone, transformer_ref.learner.mine, autograder.transplant
from transformer_ref.visualization.explore import explore

def attend(W, V):
    return W @ V

print("RETURNED", check("attend"))
progress()
explore("self_attention")
"""
COMMANDS = """
from autograder.__main__ import main
code = main(["assemble", "--from", "mine"])
print("ASSEMBLED", code)
try:
    main(["learn", "--help"])
except SystemExit as ended:
    print("HELPED", ended.code)
from autograder.learn import notebooks
print("COPIED", len(notebooks.copy(notebooks.Path("desk"), "").new))
"""


def without_posix(program: str, folder: Path, root: Path) -> str:
    # A pipe on Windows takes the letters of one code page; what it cannot show must not end a command.
    environment = os.environ | {"PYTHONPATH": str(root), "PYTHONIOENCODING": "cp1252"}
    ran = subprocess.run([sys.executable, "-c", BLOCKED + program], cwd=folder, env=environment, capture_output=True)
    assert ran.returncode == 0, ran.stderr.decode("cp1252")[-3000:]
    return ran.stdout.decode("cp1252")


def line(said: str, begin: str) -> str:
    return next(each for each in said.splitlines() if begin in each)


def test_a_notebook_s_check_progress_and_explorer_need_nothing_of_posix(root: Path, tmp_path: Path) -> None:
    said = without_posix(CHECKED, tmp_path, root)
    assert "4 of 4 points" in said and "RETURNED None" in said and "Next: 05.2 attention-weights." in said


def test_assemble_and_learn_need_nothing_of_posix(root: Path, tmp_path: Path) -> None:
    notebook = json.loads((root / "exercises" / CHAPTER / "self_attention.ipynb").read_text(encoding="utf-8"))
    answers = {
        "attend": "def attend(W, V):\n    return W @ V",
        "project": "def project(x, W):\n    return x / 0 @ W(1)",
    }
    answers["soft-lookup"] = "import sys\nsoft_lookup = sys.exit(1)"
    for cell in notebook["cells"]:
        cell["source"] = answers.get(cell["id"], cell["source"])
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "self_attention.ipynb").write_text(json.dumps(notebook), encoding="utf-8")
    said = without_posix(COMMANDS, tmp_path, root)
    assert "05.1 attend\n" in said.replace("\r", "") and "ASSEMBLED 0" in said and "HELPED 0" in said
    assert "TypeError" in line(said, "05.4 project: ") and "SystemExit" in line(said, "05.3 soft_lookup: ")
    assert "assemble only notebooks that you wrote" in said
    assert "def attend(W, V):" in (tmp_path / "mine" / "my_transformer.py").read_text(encoding="utf-8")
    assert f"COPIED {len(catalogue.ASSIGNMENTS)}" in said
