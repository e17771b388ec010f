"""Cells run as a notebook's, then judged as in grading, in a process of their own: a cell may change anything."""

import json
import os
import sys
import traceback
from collections.abc import Sequence
from dataclasses import replace

import torch

from autograder import catalogue
from autograder.diagnosis.explain import judge_and_explain
from autograder.feedback.messages import explanation
from autograder.inside import recorder, shell
from autograder.judging import forbidden
from autograder.judging.judge import draw_key
from autograder.judging.observe import LocalEndpoint
from autograder.notebook.own_check import judge_in_notebook

SET_UP = (
    "import math\nimport torch\nimport torch.nn.functional as F\nfrom torch import nn\n"
    "from autograder.check import check, progress\n"
    "x = torch.tensor([[[1.0, 0.0], [1.0, 1.0], [0.0, 1.0], [2.0, 0.0]]])\n"
)
KEY = draw_key(b"secret", "assignment", "exercise", "source")


class Notebook:
    """A shell that is made once; every list of cells runs in a fork of it."""

    def __init__(self) -> None:
        before = sys.modules["__main__"]
        self._shell = shell.make()
        sys.modules["__main__"], self._main = before, self._shell.user_module  # the shell is one for all notebooks

    def judged(self, exercise_id: str, *cells: str) -> dict:
        """The points of the answer in the cells, its points if nothing were forbidden, and the report."""
        exercise = catalogue.find(exercise_id)
        cells = (SET_UP, *cells)

        def run() -> dict:
            recorder.follow_threads()  # as the shell does in a sandbox
            recorder.follow_operators()
            self._run(cells)
            endpoint = LocalEndpoint(self._shell.user_global_ns)
            findings = forbidden.findings(cells, exercise, catalogue.assignment_of(exercise))
            verdict = judge_and_explain(exercise, endpoint, KEY, findings)
            free = judge_and_explain(replace(exercise, forbidden=()), endpoint, KEY)
            return {
                "points": verdict.points,
                "of": exercise.points,
                "forbidden": verdict.forbidden,
                "message": explanation(verdict),
                "free": free.points,
            }

        return _in_a_fork(run)

    def checked(self, exercise_id: str, *cells: str) -> dict:
        """The report of the learner's own check after these cells."""

        def run() -> dict:
            self._run((SET_UP, *cells))
            return judge_in_notebook(exercise_id, self._shell.user_global_ns)

        return _in_a_fork(run)

    def _run(self, cells: Sequence[str]) -> None:
        sys.modules["__main__"] = self._main
        torch.set_num_threads(1)
        for cell in cells:
            self._shell.recorder.begin(1 << 16, "")
            self._shell.run_cell(cell, store_history=True)


def _in_a_fork(run) -> dict:
    told, tells = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            message = {"result": run()}
        except BaseException:
            message = {"error": traceback.format_exc()}
        os.write(tells, json.dumps(message).encode())
        os._exit(0)
    os.close(tells)
    with os.fdopen(told, encoding="utf-8") as file:
        message = json.loads(file.read() or '{"error": "the process ended"}')
    os.waitpid(child, 0)
    assert "error" not in message, message["error"]
    return message["result"]
