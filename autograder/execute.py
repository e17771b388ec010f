"""nbgrader's execution step: a submission runs in a sandbox, and the verdicts are reached here, outside.

Whatever a check cell of the submission prints or raises, its outputs are the judge's report and the plain number that
nbgrader reads as the score.
"""

from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from nbformat import NotebookNode
from nbformat.v4 import new_output
from nbgrader import utils
from nbgrader.preprocessors import NbGraderPreprocessor
from traitlets import Float, Int, List, Unicode

from autograder import catalogue, course, rules, runner, verdict_log
from autograder.course import CHECK_SUFFIX
from autograder.exercise import Assignment, Exercise
from autograder.judge import draw_key, judge
from autograder.observe import RemotePeer
from autograder.runner import Ended, Submission
from autograder.sandbox import backends, hiding
from autograder.sandbox.backends import TRUST, SandboxError
from autograder.sandbox.limits import Limits
from autograder.verdict import Verdict, as_record, render

TRIES = 2  # a sandbox that breaks is nobody's fault: the notebook runs once more in a new one


class JudgedExecute(NbGraderPreprocessor):
    """Runs a submission and writes the judge's verdict into each check cell."""

    sandbox = Unicode(
        "", help="bubblewrap, landlock, docker, podman, or none to trust submissions; by default the first that works"
    ).tag(config=True)
    cell_seconds = Float(Limits.cell_seconds, help="processor time of a cell").tag(config=True)
    notebook_seconds = Float(Limits.notebook_seconds, help="processor time of a notebook").tag(config=True)
    memory_bytes = Int(Limits.memory_bytes, help="memory of a notebook").tag(config=True)
    private = List(Unicode(), help="folders that no submission may see, beside the course's own").tag(config=True)

    def preprocess(self, nb: NotebookNode, resources: dict[str, Any]) -> tuple[NotebookNode, dict[str, Any]]:
        """Run the notebook's cells. A process that dies costs the checks it had not reached, not those before.

        Raises SystemExit when nothing here can isolate a submission, SandboxError when the sandbox broke twice.
        """
        try:
            private = [*self.private, *hiding.places_of_course(self.config)]
            backend = backends.choose(self.sandbox, private)
        except course.CourseError as error:
            raise SystemExit(str(error)) from error  # of the whole batch: the next submission would fare no better
        if backend.name == TRUST:
            self.log.warning("SUBMISSIONS ARE TRUSTED: they run with all of your rights and can change any grade.")
        assignment = catalogue.find_assignment(resources["nbgrader"]["assignment"])
        beside = Path(resources.get("metadata", {}).get("path") or ".")
        files = runner.files_beside(beside, assignment.files if assignment else ())
        limits = Limits(self.cell_seconds, self.notebook_seconds, self.memory_bytes)
        for attempt in range(1, TRIES + 1):
            warm = None
            try:
                warm = runner.runner_for(assignment, backend, limits, private)
                with warm.submission(files) as submission:
                    _Graded(nb, resources, assignment, submission, attempt == TRIES).run()
                return nb, resources
            except Ended:  # killed by a signal that nobody here has sent
                runner.discard(warm)
                self.log.warning("The notebook's process was killed from outside. Trying once more.")
            except SandboxError as error:
                if warm is not None:
                    runner.discard(warm)
                if attempt == TRIES:
                    raise
                self.log.warning("%s Trying once more.", error)
        raise AssertionError("unreachable")


class _Graded:
    """One notebook on its way through one submission's process."""

    def __init__(
        self,
        notebook: NotebookNode,
        resources: dict[str, Any],
        assignment: Assignment | None,
        submission: Submission,
        is_last_try: bool,
    ) -> None:
        self._is_last_try = is_last_try
        self._notebook, self._assignment, self._submission = notebook, assignment, submission
        self._student = str(resources["nbgrader"].get("student", ""))
        self._root = course.find_root()
        self._sources = [cell.source for cell in notebook.cells if cell.cell_type == "code" and not _exercise_of(cell)]
        self._over = ""

    def run(self) -> None:
        """Run every cell and judge every check. Raises Ended where the process was killed and there is another try."""
        count = 0
        for index, cell in enumerate(self._notebook.cells):
            if cell.cell_type != "code":
                continue
            count += 1
            began = datetime.now(timezone.utc)
            cell.outputs, cell.execution_count = [], count
            exercise = _exercise_of(cell)
            if exercise is None:
                self._run_cell(cell, index)
            else:
                _write(cell, self._judged(exercise))
            cell.metadata["execution"] = {
                "iopub.execute_input": began.isoformat(),
                "shell.execute_reply": datetime.now(timezone.utc).isoformat(),
            }

    def _run_cell(self, cell: NotebookNode, index: int) -> None:
        if self._over:
            return
        try:
            cell.outputs = self._submission.run(cell.source).outputs
            for output in cell.outputs:
                if output.output_type == "execute_result":
                    output.execution_count = cell.execution_count
        except Ended as ended:
            self._end(ended, f"in cell {index + 1}")

    def _judged(self, exercise: Exercise) -> Verdict:
        if self._over:
            return Verdict(exercise, True, message=f"Not checked: {self._over}.")
        findings = rules.findings(self._sources, exercise, self._assignment)
        key = draw_key(course.secret(self._root), self._assignment.id, exercise.id, "\n".join(self._sources))
        verdict = None
        try:
            with self._submission.questioned(exercise.seconds) as channel:
                verdict = judge(exercise, RemotePeer(channel), key, findings)
        except Ended as ended:
            self._end(ended, f"in the check of {exercise.id}")
        verdict = verdict or Verdict(exercise, True, message=f"Not checked: {self._over}.")
        verdict_log.record(self._root, self._student, self._assignment.id, key, verdict)
        return verdict

    def _end(self, ended: Ended, where: str) -> None:
        """Nothing more can be asked; a process that was killed from outside gets another try, if there is one left."""
        if ended.killed and not self._is_last_try:
            raise ended
        self._over = f"{ended} {where}"


def _exercise_of(cell: NotebookNode) -> Exercise | None:
    """The exercise that a check cell asks about, by its grade id."""
    if cell.cell_type != "code" or not utils.is_grade(cell):
        return None
    return catalogue.find(cell.metadata.nbgrader["grade_id"].removesuffix(CHECK_SUFFIX))


def _write(cell: NotebookNode, verdict: Verdict) -> None:
    """The report, and the number that nbgrader reads as the cell's score."""
    most = float(cell.metadata.nbgrader["points"])
    score = new_output(
        "execute_result",
        data={"text/plain": repr(min(most, float(verdict.points)))},
        metadata={"judged": as_record(verdict)},  # read by the feedback pages and the dashboard
    )
    cell.outputs = [new_output("stream", name="stdout", text=render(verdict) + "\n"), score]
