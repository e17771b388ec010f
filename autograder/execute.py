"""nbgrader's execution step with the verdict taken out of the learner's kernel.

The kernel runs the notebook; whenever a check cell asks, a judge in this process draws the inputs and decides. Whatever
the kernel wrote into a check cell is then replaced by the judge's report and the plain number that nbgrader reads as
the score.
"""

import os
import shutil
import socket
import tempfile
import threading
from typing import Any

from nbclient.exceptions import CellTimeoutError, DeadKernelError
from nbformat import NotebookNode
from nbformat.v4 import new_output
from nbgrader import utils
from nbgrader.preprocessors import Execute

from autograder import catalogue, course, rules, wire
from autograder.check import JUDGE_SOCKET
from autograder.course import CHECK_SUFFIX
from autograder.exercise import Assignment, Exercise
from autograder.judge import draw_key, judge_remote
from autograder.verdict import Verdict, as_record, render


class JudgedExecute(Execute):
    """Runs a submission and writes the judge's verdict into each check cell."""

    def preprocess(
        self, nb: NotebookNode, resources: dict[str, Any], km: Any = None
    ) -> tuple[NotebookNode, dict[str, Any]]:
        """Execute the notebook. A kernel that dies costs the checks it had not reached, not those before."""
        assignment = catalogue.find_assignment(resources["nbgrader"]["assignment"])
        self._over: str | None = None
        with Judge(course.secret(course.find_root()), assignment, nb) as self._judge:
            try:
                return super().preprocess(nb, resources, km)
            except DeadKernelError:
                self._over = "the notebook's process ended"
                for index, cell in enumerate(nb.cells):
                    if not _is_decided(cell):
                        self.preprocess_cell(cell, resources, index)
                return nb, resources

    def preprocess_cell(
        self, cell: NotebookNode, resources: dict[str, Any], index: int
    ) -> tuple[NotebookNode, dict[str, Any]]:
        """Run one cell; a check cell is judged, whatever its cell prints."""
        exercise = _exercise_of(cell)
        if exercise is None:
            return (cell, resources) if self._over else self._run(cell, resources, index)
        if not self._over:
            source = cell.source
            # The learner may have used the name `check` for something else; the question is asked all the same.
            cell.source = f'__import__("autograder.check").check.check({exercise.id!r})'
            with self._judge.expecting(exercise):
                cell, resources = self._run(cell, resources, index)
            cell.source = source
        verdict = self._judge.verdicts.get(exercise.id)
        if verdict is None:
            why = self._over or "the check did not come to an end"
            verdict = Verdict(exercise, True, message=f"Not checked: {why}.")
        _write(cell, verdict)
        return cell, resources

    def _run(self, cell: NotebookNode, resources: dict[str, Any], index: int) -> tuple[NotebookNode, dict[str, Any]]:
        try:
            return super().preprocess_cell(cell, resources, index)
        except DeadKernelError:
            self._over = f"the notebook's process ended in cell {index + 1}"
        except CellTimeoutError:
            self._over = f"cell {index + 1} ran too long and could not be interrupted"
        return cell, resources


class Judge:
    """Listens at a socket for the check cells of one submission."""

    def __init__(self, secret: bytes, assignment: Assignment | None, notebook: NotebookNode) -> None:
        self.verdicts: dict[str, Verdict] = {}
        self._secret, self._assignment = secret, assignment
        self._cells = [cell.source for cell in notebook.cells if cell.cell_type == "code" and not _exercise_of(cell)]
        self._expected: Exercise | None = None
        self._done = threading.Event()

    def __enter__(self) -> "Judge":
        self._folder = tempfile.mkdtemp(prefix="judge-")
        path = os.path.join(self._folder, "socket")
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(path)
        self._listener.listen(4)
        os.environ[JUDGE_SOCKET] = path  # inherited by the kernel
        threading.Thread(target=self._serve, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()
        os.environ.pop(JUDGE_SOCKET, None)
        shutil.rmtree(self._folder, ignore_errors=True)

    def expecting(self, exercise: Exercise) -> "_Expecting":
        """While this lasts, the exercise's check is answered, once."""
        return _Expecting(self, exercise)

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        channel = wire.Channel(connection)
        try:
            channel.set_timeout(10)
            hello = channel.receive()
            exercise, self._expected = self._expected, None
            if exercise is None or not isinstance(hello, dict) or hello.get("check") != exercise.id:
                text = "This check belongs to its own cell; it is not counted here."
                channel.send({"outcome": {"text": text, "earned": 0.0, "possible": 0.0, "passed": False}})
                return
            self._done.clear()
            findings = rules.findings(self._cells, exercise, self._assignment)
            key = draw_key(self._secret, self._assignment.id, exercise.id, "\n".join(self._cells))
            self.verdicts[exercise.id] = judge_remote(channel, exercise, key, findings, None)
        except (EOFError, OSError, wire.WireError):
            return  # no verdict: the cell is reported as not checked
        finally:
            self._done.set()
            channel.close()


class _Expecting:
    def __init__(self, judge: Judge, exercise: Exercise) -> None:
        self._judge, self._exercise = judge, exercise

    def __enter__(self) -> None:
        self._judge._expected = self._exercise
        self._judge._done.set()

    def __exit__(self, *_: object) -> None:
        self._judge._expected = None
        self._judge._done.wait(self._exercise.seconds)  # a verdict may be ready a moment after its cell


def _exercise_of(cell: NotebookNode) -> Exercise | None:
    """The exercise that a check cell asks about, by its grade id."""
    if cell.cell_type != "code" or not utils.is_grade(cell):
        return None
    return catalogue.find(cell.metadata.nbgrader["grade_id"].removesuffix(CHECK_SUFFIX))


def _is_decided(cell: NotebookNode) -> bool:
    return any(output.get("metadata", {}).get("judged") for output in cell.get("outputs", []))


def _write(cell: NotebookNode, verdict: Verdict) -> None:
    """Replace everything in the cell by the report and the number that nbgrader reads as its score."""
    most = float(cell.metadata.nbgrader["points"])
    score = new_output(
        "execute_result",
        data={"text/plain": repr(min(most, float(verdict.points)))},
        metadata={"judged": as_record(verdict)},  # read by the feedback pages and the dashboard
    )
    cell.outputs = [new_output("stream", name="stdout", text=render(verdict) + "\n"), score]
