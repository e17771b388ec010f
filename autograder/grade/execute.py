"""nbgrader's execution step: a submission runs in a sandbox, and the verdicts are reached here, outside.

Whatever a check cell of the submission prints or raises, its outputs are the judge's report and the plain number that
nbgrader reads as the score.
"""

import hashlib
import logging
import re
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from nbformat import NotebookNode
from nbformat.v4 import new_output
from nbgrader import utils
from nbgrader.preprocessors import NbGraderPreprocessor, SaveAutoGrades
from traitlets import Float, Int, List, Unicode

from autograder import catalogue, course
from autograder.catalogue.exercise import Assignment, Exercise
from autograder.course import CHECK_SUFFIX
from autograder.diagnosis.alike import fingerprinted, is_compared
from autograder.diagnosis.evidence import Explained
from autograder.diagnosis.explain import explain
from autograder.feedback.report import as_text
from autograder.feedback.verdict_log import add_to_log, as_record
from autograder.inside.limits import Limits
from autograder.judging import forbidden
from autograder.judging.judge import JudgingSession, draw_key
from autograder.judging.observation import Raised, raised_in_cell
from autograder.judging.observe import RemoteEndpoint
from autograder.judging.verdict import Verdict, not_checked
from autograder.prepare.release import answer_cells
from autograder.sandbox import backends, hiding, runner
from autograder.sandbox.backends import TRUST, SandboxError
from autograder.sandbox.notebook_limits import limits_of
from autograder.sandbox.runner import Ended, Submission

NOT_NEEDED = "Not run: no answer was written that needs what this cell trains.\n"
TRIES = 2  # what is not the notebook's fault, such as a sandbox that breaks, is tried once more
AGAIN_SECONDS = 250.0  # on the clock; no further process is started for a notebook that has taken longer
PROCESSES = 3  # for one notebook: a question that ends a process costs its own answer, this often at most


class JudgedExecute(NbGraderPreprocessor):
    """Runs a submission and writes the judge's verdict into each check cell."""

    sandbox = Unicode(
        "", help="bubblewrap, landlock, docker, podman, or none to trust submissions; by default the first that works"
    ).tag(config=True)
    cell_seconds = Float(Limits.cell_seconds, help="processor seconds for each cell").tag(config=True)
    notebook_seconds = Float(Limits.notebook_seconds, help="processor seconds for a whole notebook").tag(config=True)
    memory_bytes = Int(Limits.memory_bytes, help="memory limit of a notebook").tag(config=True)
    private = List(Unicode(), help="folders that no submission may see, besides the course's own").tag(config=True)

    def preprocess(self, nb: NotebookNode, resources: dict[str, Any]) -> tuple[NotebookNode, dict[str, Any]]:
        """Run the notebook's cells. If the process dies, the checks before that keep their verdicts.

        Raises SystemExit if no sandbox is available, SandboxError if the sandbox broke twice.
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
        limits = limits_of(assignment, Limits(self.cell_seconds, self.notebook_seconds, self.memory_bytes))
        for attempt in range(1, TRIES + 1):
            warm = None
            try:
                warm = runner.runner_for(assignment, backend, limits, private)
                _Graded(nb, resources, assignment, files, self.log, last_try=attempt == TRIES).run(warm.submission)
                return nb, resources
            except RunAgain as reason:
                self.log.warning("%s. Trying once more.", reason)
            except SandboxError as error:
                if warm is not None:
                    runner.discard(warm)
                if attempt == TRIES:
                    raise
                self.log.warning("%s Trying once more.", error)
        raise AssertionError("unreachable")


class RunAgain(Exception):
    """No verdict could be reached, for a reason outside the notebook; the text says which."""


class _Graded:
    """The grading of one notebook.

    The visible probes run at each check's cell, the hidden ones after the last cell (see `judging.judge`).
    If a probe ends the process, the cells before it are run again in a new one, for the remaining answers.

    files: name -> content of the files next to it. last_try: a reason outside the notebook becomes part of the verdict,
    instead of raising RunAgain.
    """

    def __init__(
        self,
        notebook: NotebookNode,
        resources: dict[str, Any],
        assignment: Assignment | None,
        files: Mapping[str, bytes],
        log: logging.Logger,
        last_try: bool,
    ) -> None:
        self._files, self._log = files, log
        self._notebook, self._assignment, self._last_try = notebook, assignment, last_try
        self._student = str(resources["nbgrader"].get("student", ""))
        self._root = course.find_root()
        self._code = [(place, cell) for place, cell in enumerate(notebook.cells) if cell.cell_type == "code"]
        self._sources = [cell.source for _, cell in self._code if not _exercise_of(cell)]
        self._not_needed = _not_needed(notebook, assignment, self._root)
        self._reached = 0  # how many of the code cells have been run, or asked about
        self._errors: list[tuple[NotebookNode, dict[str, Any]]] = []
        self._sessions: dict[str, JudgingSession] = {}
        self._over, self._excused = "", False  # why no more cells are run, and whether that is the notebook's doing
        self._last = ""  # how the last process ended, where one did
        self._broken: dict[str, str] = {}  # exercise id -> what went wrong on this side
        self._explained: dict[str, Explained] = {}  # exercise id -> its verdict, explained while its process still ran

    def run(self, submission: Callable[[Mapping[str, bytes]], AbstractContextManager[Submission]]) -> None:
        """Run every cell and every probe, and write every verdict. submission: starts a process for the notebook."""
        began = time.monotonic()
        for count, (_, cell) in enumerate(self._code, 1):
            cell.outputs, cell.execution_count = [], count
        for _ in range(PROCESSES):
            if not self._left() or (self._last and time.monotonic() - began > AGAIN_SECONDS):
                break
            try:
                with submission(self._files) as process:
                    self._again(process)
                    self._cells(process)
                    self._hidden(process)
                    self._fingerprints(process)
            except Ended as ended:
                self._last = str(ended)
        for session in self._sessions.values():
            if session.waits:
                session.lose(self._over or self._last)
        decided = [(cell, *self._decided(exercise)) for _, cell in self._code if (exercise := _exercise_of(cell))]
        for cell, verdict, report in decided:
            _write(cell, verdict, report)
            key = self._key(verdict.exercise)
            add_to_log(self._root, self._student, self._assignment.id, key, verdict)

    def _left(self) -> bool:
        """Whether a cell or a probe is left to run."""
        cells = self._reached < len(self._code) and not self._over
        return cells or any(session.waits for session in self._sessions.values())

    def _again(self, process: Submission) -> None:
        """Run the earlier cells again in a second process; their outputs are not shown."""
        for _, cell in self._code[: self._reached]:
            exercise = _exercise_of(cell)
            if exercise is None:
                process.run(cell.source)
            elif self._sessions[exercise.id].waits:
                with process.questioned(exercise.seconds, exercise.id):
                    pass

    def _cells(self, process: Submission) -> None:
        while self._reached < len(self._code) and not self._over:
            place, cell = self._code[self._reached]
            exercise = _exercise_of(cell)
            began = _now()
            try:
                if exercise is None:
                    self._run_cell(process, cell)
                else:
                    self._ask(process, self._hearing(exercise), hidden=False)
                self._reached += 1
            except Ended as ended:
                self._lost(ended, exercise)
                if exercise is None:  # what came before it is still asked about
                    self._over, self._excused = f"{ended} in cell {place + 1}", ended.killed
                else:
                    self._reached += 1
                raise
            finally:
                cell.metadata["execution"] = {"iopub.execute_input": began, "shell.execute_reply": _now()}

    def _run_cell(self, process: Submission, cell: NotebookNode) -> None:
        if cell.get("id") in self._not_needed:
            cell.outputs = [new_output("stream", name="stdout", text=NOT_NEEDED)]
            return
        ran = process.run(cell.source)
        cell.outputs = ran.outputs
        for output in cell.outputs:
            if output.output_type == "execute_result":
                output.execution_count = cell.execution_count
        if ran.error is not None:
            self._errors.append((cell, ran.error))

    def _hidden(self, process: Submission) -> None:
        for session in self._sessions.values():
            if session.waits:
                try:
                    self._ask(process, session, hidden=True)
                except Ended as ended:
                    self._lost(ended, session.exercise)
                    raise

    def _fingerprints(self, process: Submission) -> None:
        """Compute the fingerprints that show which wrong answers of a class behave alike. All verdicts are final by
        now.

        Nothing is done in a second process, where names may have other values than at their checks.
        """
        for session in self._sessions.values() if not self._last else ():
            exercise = session.exercise
            try:
                verdict = explain(session.verdict())
                if is_compared(verdict):
                    with process.questioned(exercise.seconds, exercise.id) as channel:
                        verdict = fingerprinted(verdict, session, RemoteEndpoint(channel), course.secret(self._root))
            except Ended:
                return
            except SandboxError:
                raise
            except Exception:
                self._log.warning("%s: not compared with other answers.", exercise.id, exc_info=True)
            else:
                self._explained[exercise.id] = verdict

    def _hearing(self, exercise: Exercise) -> JudgingSession:
        """The session of an exercise, which is lost if the notebook's text cannot be read."""
        findings: Sequence[str] = ()
        stopped: tuple[Raised, ...] = ()
        failure = None
        try:
            findings = forbidden.findings(self._sources, exercise, self._assignment)
            stopped = self._why_missing(exercise)
        except Exception as error:
            failure = error
        session = JudgingSession(exercise, self._key(exercise), findings, stopped)
        self._sessions[exercise.id] = session
        if failure is not None:
            self._judge_stopped(session, failure)
        return session

    def _ask(self, process: Submission, session: JudgingSession, hidden: bool) -> None:
        exercise = session.exercise
        with process.questioned(exercise.seconds, exercise.id) as channel:
            try:
                session.ask(RemoteEndpoint(channel), hidden)
            except (Ended, SandboxError):
                raise
            except Exception as error:
                self._judge_stopped(session, error)

    def _judge_stopped(self, session: JudgingSession, error: Exception) -> None:
        """Note that the judge itself failed in an exercise, which costs no points: it waits for a person."""
        self._fail(session.exercise, f"the judge stopped with {type(error).__name__}", error)
        self._log.warning("%s: not checked, since the judge stopped.", session.exercise.id, exc_info=error)
        session.lose("the judge stopped")

    def _key(self, exercise: Exercise) -> bytes:
        """A digest of everything that has an effect: all cells that were run, the positions of the checks, the files
        next to the notebook."""
        cells = [None if _exercise_of(cell) else cell.source for _, cell in self._code]
        beside = [f"{name} {hashlib.sha256(content).hexdigest()}" for name, content in sorted(self._files.items())]
        return draw_key(course.secret(self._root), self._assignment.id, exercise.id, [*cells, *beside])

    def _decided(self, exercise: Exercise) -> tuple[Verdict, str]:
        """The verdict and its report."""
        session = self._sessions.get(exercise.id)
        verdict = not_checked(exercise, self._over or self._last, self._excused)
        if session is not None and exercise.id not in self._broken:
            try:
                verdict = self._explained.get(exercise.id) or explain(session.verdict())
                report = as_text(verdict)
            except Exception as error:
                self._fail(exercise, f"the judge stopped with {type(error).__name__}", error)
            else:
                if verdict.failed_explanation:
                    self._log.warning(
                        "%s: no explanation. The points are unchanged.\n%s", exercise.id, verdict.failed_explanation
                    )
                return verdict, report
        if exercise.id in self._broken:
            verdict = not_checked(exercise, self._broken[exercise.id], excused=True)
        return verdict, as_text(verdict)

    def _lost(self, ended: Ended, exercise: Exercise | None) -> None:
        """Note that a process has ended, in a cell or in the check of an exercise."""
        if exercise is not None:
            self._sessions[exercise.id].lose(str(ended))
        if ended.killed:
            self._fail(exercise, f"{ended}, killed from outside", ended)

    def _fail(self, exercise: Exercise | None, reason: str, error: Exception) -> None:
        """Record a failure outside the notebook, which must not cost any points."""
        if not self._last_try:
            raise RunAgain(f"{reason}: {error}") from error
        if exercise is not None:
            self._broken[exercise.id] = reason

    def _why_missing(self, exercise: Exercise) -> tuple[Raised, ...]:
        """The error in the cell that should have defined the exercise's names, and the first error of all if it is in
        another cell."""
        for cell, error in self._errors:
            own = cell.metadata.get("nbgrader", {}).get("grade_id") == exercise.id
            bound = rf"(?m)\b(def|class) +({'|'.join(exercise.names)})\b|^({'|'.join(exercise.names)}) *="
            if own or re.search(bound, cell.source):
                first = self._errors[0]
                return tuple(map(raised_in_cell, [error] if first[0] is cell else [error, first[1]]))
        return ()


def _not_needed(notebook: NotebookNode, assignment: Assignment | None, root: Path) -> frozenset[str]:
    """Ids of cells that train for minutes, if no written answer depends on them."""
    trained = [exercise.id for exercise in assignment.exercises if exercise.trained] if assignment else []
    if assignment is None or not trained:
        return frozenset()
    blank = answer_cells(root, "exercises", assignment)
    written = {cell.metadata.get("nbgrader", {}).get("grade_id"): cell.source for cell in notebook.cells}
    unwritten = all(written.get(name, "").strip() == blank[name].strip() for name in trained)
    return frozenset(assignment.trains) if unwritten else frozenset()


def _now() -> str:
    return datetime.now(timezone.utc).isoformat()


def _exercise_of(cell: NotebookNode) -> Exercise | None:
    """The exercise of a check cell, by its grade id."""
    if cell.cell_type != "code" or not utils.is_grade(cell):
        return None
    return catalogue.find(cell.metadata.nbgrader["grade_id"].removesuffix(CHECK_SUFFIX))


def _write(cell: NotebookNode, verdict: Verdict, report: str) -> None:
    """Write the report, and the number that nbgrader reads as the cell's score."""
    score = new_output(
        "execute_result",
        data={"text/plain": repr(float(verdict.points))},
        metadata={"judged": as_record(verdict)},  # read by the feedback pages and the dashboard
    )
    cell.outputs = [new_output("stream", name="stdout", text=report + "\n"), score]


class SaveJudgedGrades(SaveAutoGrades):
    """nbgrader's step that stores the scores; an answer that could not be checked, through no fault of its own, waits
    for a person."""

    def _add_score(self, cell: NotebookNode, resources: dict[str, Any]) -> None:
        super()._add_score(cell, resources)
        if any(output.get("metadata", {}).get("judged", {}).get("excused") for output in cell.get("outputs", [])):
            name, known = cell.metadata.nbgrader["grade_id"], resources["nbgrader"]
            grade = self.gradebook.find_grade(name, known["notebook"], known["assignment"], known["student"])
            grade.auto_score, grade.needs_manual_grade = None, True
            self.gradebook.db.commit()
