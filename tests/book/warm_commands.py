"""Commands as a shell would run them, in forks of one process that has imported torch and nbgrader already.

A command of Python spends most of its time on these imports. So `python -m autograder` and `nbgrader` are forked, in
the folder, with the environment and the search path that they would have; anything else is given to bash.
"""

import json
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
AUTOGRADER = ["python", "-m", "autograder"]

WARM = """
import importlib, json, os, runpy, sys
import torch
import nbgrader.apps.nbgraderapp
from autograder import __main__ as commands
for module, _ in commands.COMMANDS.values():
    importlib.import_module(f"autograder.{module}")
del sys.modules["autograder.__main__"]

def run(folder, words, said):
    os.chdir(folder)
    for number, name in ((0, os.devnull), (1, f"{said}/out"), (2, f"{said}/err")):
        file = os.open(name, os.O_RDWR | os.O_CREAT)
        os.dup2(file, number)
        os.close(file)
    sys.argv = words
    if words[0] == "nbgrader":
        return nbgrader.apps.nbgraderapp.main()
    sys.argv, sys.path[0] = words[2:], folder
    runpy.run_module("autograder", run_name="__main__", alter_sys=True)

for line in sys.stdin:
    folder, words, said = json.loads(line)
    child = os.fork()
    if not child:
        run(folder, words, said)
        break  # and end as a program does
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


class Commands:
    """Runs the commands; a context manager."""

    def __init__(self) -> None:
        self._environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
        self._environment["PATH"] = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])
        self._warm = subprocess.Popen(
            [sys.executable, "-c", WARM],
            cwd=ROOT,
            env=self._environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> "Commands":
        return self

    def __exit__(self, *_: object) -> None:
        self._warm.communicate()

    def say(self, folder: Path, command: str) -> str:
        """Run one command in a folder and return what it printed. It must succeed; `try` may find a wrong answer."""
        words = shlex.split(command)
        if words[0] == "nbgrader" or words[:3] == AUTOGRADER:
            code, out, err = self._forked(folder, words)
        else:
            done = subprocess.run(
                ["bash", "-c", command], cwd=folder, env=self._environment, text=True, capture_output=True
            )
            code, out, err = done.returncode, done.stdout, done.stderr
        assert code == 0 or (code == 1 and words[:4] == [*AUTOGRADER, "try"]), f"{command}\n{out}\n{err}"
        return out + err

    def _forked(self, folder: Path, words: list[str]) -> tuple[int, str, str]:
        with tempfile.TemporaryDirectory() as said:
            self._warm.stdin.write(json.dumps([str(folder), words, said]) + "\n")
            self._warm.stdin.flush()
            code = int(self._warm.stdout.readline())
            return code, *(Path(said, name).read_text(encoding="utf-8") for name in ("out", "err"))
