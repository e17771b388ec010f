"""A learner's side on Windows, as far as this machine can tell: without the modules and calls that only POSIX has."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from autograder import catalogue

CHAPTER = "05_self_attention"
# Set-up that runs before anything is imported; torch and Python themselves may still ask for what they like.
BLOCKED = """
import os, signal, subprocess, sys
subprocess.Popen.kill = subprocess.Popen.terminate  # as on Windows
for name in ("fcntl", "resource", "pwd", "grp", "termios", "pty", "tty", "posix_ipc", "syslog", "spwd", "nis"):
    sys.modules[name] = None
for name in ("fork", "forkpty", "getuid", "geteuid", "setsid", "killpg", "mkfifo", "sched_getaffinity", "wait4"):
    delattr(os, name) if hasattr(os, name) else None
for name in ("SIGKILL", "SIGHUP", "SIGALRM", "SIGCHLD", "SIGUSR1", "setitimer", "alarm", "pthread_sigmask"):
    delattr(signal, name) if hasattr(signal, name) else None
"""
# What Windows does with files: texts in a code page and with its ends of lines where nobody says otherwise, names
# without some letters, and no file put in the place of one that is open or mapped.
FILES = """
import builtins, io
plain_open, plain_replace, plain_rename = io.open, os.replace, os.rename

def checked(path):
    name = os.path.basename(os.fsdecode(path)) if isinstance(path, (str, bytes, os.PathLike)) else ""
    if set(name) & set('<>:"|?*'):
        raise OSError(22, "Invalid argument", name)

def windows_open(file, mode="r", buffering=-1, encoding=None, errors=None, newline=None, *more, **named):
    checked(file)
    if "b" not in mode:
        encoding = "cp1252" if encoding in (None, "locale") else encoding
        newline = "\\r\\n" if newline is None and "r" not in mode else newline
    return plain_open(file, mode, buffering, encoding, errors, newline, *more, **named)

def in_use(path):
    path = os.path.realpath(os.fspath(path))
    held = {os.path.realpath(f"/proc/self/fd/{each}") for each in os.listdir("/proc/self/fd")}
    with plain_open("/proc/self/maps") as maps:
        held |= {line.split(maxsplit=5)[5].strip() for line in maps if len(line.split(maxsplit=5)) == 6}
    return any(each == path or each.startswith(path + os.sep) for each in held)

def guarded(move):
    def moved(source, target, **named):
        for path in (source, target):
            checked(path)
            if in_use(path):
                raise PermissionError(13, "The process cannot access the file because it is being used", str(path))
        return move(source, target, **named)
    return moved

def renamed(source, target, **named):
    if os.path.exists(target):
        raise FileExistsError(17, "File exists", str(target))
    return guarded(plain_rename)(source, target, **named)

builtins.open = io.open = windows_open
os.replace, os.rename = guarded(plain_replace), renamed
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
print("TRIED", main(["try", "5.1", "mine/self_attention.ipynb"]))
try:
    main(["learn", "--help"])
except SystemExit as ended:
    print("HELPED", ended.code)
from autograder.learn import notebooks
print("COPIED", len(notebooks.copy(notebooks.Path("desk"), "").new))
"""


TRAINED = """
from transformer_ref.__main__ import main
small = "--d-model 16 --heads 2 --encoder-layers 1 --decoder-layers 1 --d-ff 32 --num-validations 2".split()
texts = ["--corpus", "files", "--data-dir", "texts", "--target", "it", "--vocabulary", "280", "--cache-dir", "prepared"]
print("TRAINED", main(["train", *texts, *small, "--steps", "4", "--output", "run"]))
print("RESUMED", main(["train", *texts, *small, "--steps", "6", "--output", "run", "--resume"]))
print("AGAIN", main(["train", *texts, *small, "--steps", "2", "--output", "run", "--overwrite"]))
print("WRITTEN", main(["translate", "--checkpoint", "run", "il caff\\u00e8"]))
print("EXPORTED", main(["export", "--format", "page", "run", "-o", "pagina.html"]))
"""


def without_posix(program: str, folder: Path, root: Path) -> str:
    # A pipe on Windows takes the letters of one code page; what it cannot show must not end a command.
    environment = os.environ | {"PYTHONPATH": str(root), "PYTHONIOENCODING": "cp1252"}
    ran = subprocess.run(
        [sys.executable, "-c", BLOCKED + FILES + program], cwd=folder, env=environment, capture_output=True
    )
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
    assert "TRIED 0" in said and "4 of 4 points" in said
    assert "TypeError" in line(said, "05.4 project: ") and "SystemExit" in line(said, "05.3 soft_lookup: ")
    assert "assemble only notebooks that you wrote" in said
    assert "def attend(W, V):" in (tmp_path / "mine" / "my_transformer.py").read_text(encoding="utf-8")
    assert f"COPIED {len(catalogue.ASSIGNMENTS)}" in said


def test_a_model_is_trained_resumed_replaced_used_and_exported_without_posix(root: Path, tmp_path: Path) -> None:
    folder = tmp_path / "Zoë Müller, 学生" / ("a long name " * 14).strip()
    (folder / "texts").mkdir(parents=True)
    assert len(str(folder)) > 200
    for language, lines in {
        "en": "a cup of café\r\nthe naïve cat\r\n",
        "it": "una tazza di caffè\r\nil gatto è qui\r\n",
    }.items():
        for split in ("train", "val", "test"):
            (folder / "texts" / f"{split}.{language}").write_bytes((lines * 20).encode())
    said = without_posix(TRAINED, folder, root)
    assert re.findall(r"^([A-Z]+) (\d)", said, re.MULTILINE) == [
        (step, "0") for step in ("TRAINED", "RESUMED", "AGAIN", "WRITTEN", "EXPORTED")
    ]
    assert "</html>" in (folder / "pagina.html").read_text(encoding="utf-8")
    assert list(folder.glob("prepared/*")), "the corpus was not prepared on disk"


def test_what_windows_does_with_files_is_noticed(tmp_path: Path, root: Path) -> None:
    program = """
from pathlib import Path
Path("new").write_text("é"), Path("kept").write_text("x")
print(ascii(Path("new").read_bytes()))
Path("lines").write_text("1\\n2\\n")
print(ascii(Path("lines").read_bytes()))
for attempt in (lambda: Path("new").replace("kept"), lambda: Path("a:b").write_text("x")):
    with open("kept"):
        try:
            print("ALLOWED", attempt())
        except OSError as refused:
            print(type(refused).__name__)
"""
    said = without_posix(program, tmp_path, root).split()
    assert said == [r"b'\xe9'", r"b'1\r\n2\r\n'", "PermissionError", "OSError"]
