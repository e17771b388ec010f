"""A worker: grades one submission after another as plain nbgrader does, each in a course that holds only that one.

Forked by `fork_server`, which hands it the end of a connection and an empty folder.
What it runs is nbgrader's own converter with the course's configuration, up to the step that executes and judges; the
steps after it belong to the gradebook's one writer.
"""

import contextlib
import io
import json
import logging
import os
import pickle
import queue
import tempfile
import threading
import time
from multiprocessing.connection import Connection
from pathlib import Path

import nbformat
import psutil
from nbgrader.apps import AutogradeApp
from nbgrader.converters import Autograde, NbGraderException
from nbgrader.coursedir import CourseDirectory

from autograder import catalogue, course
from autograder.grade import nbgrader_patches
from autograder.grade.messages import Batch, Received, Result, Submission
from autograder.inside.safe_rmtree import remove
from autograder.intake import take_in, untrusted_files
from autograder.judging.unusual import unusual
from autograder.judging.verdict import NOT_CHECKED
from autograder.reports import results
from autograder.sandbox import hiding

FOLDERS = {
    "source_directory": "solutions",
    "release_directory": "exercises",
    "submitted_directory": "classroom/received",
    "autograded_directory": "classroom/autograded",
    "directory_structure": os.path.join("{nbgrader_step}", "{student_id}", "{assignment_id}"),
}
KEPT = ("secret",)  # of a classroom, from one submission to the next
OWN = ("received", "autograded", "gradebook.db", *KEPT)  # whatever else appears in a classroom is a record to keep


class Gone(Exception):
    """The folder to be graded is missing."""

    def __str__(self) -> str:
        return "the folder is no longer there"


class Bench:
    """A course in a private folder, in which one submission after another is graded."""

    def __init__(self, batch: Batch, folder: Path) -> None:
        self._folder, self._root, self._classroom = folder, folder / "course", folder / "course" / "classroom"
        nbgrader_patches.install()
        self._root.mkdir(mode=0o700)
        for name, content in batch.files.items():
            path = self._root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch(mode=0o600)
            path.write_bytes(content)
        self._classroom.mkdir(exist_ok=True)
        os.chdir(self._root)  # the course is found from here, and own exercises with it
        self._gradebook, self._entry = batch.gradebook, catalogue.find_assignment(batch.assignment)
        self._released = take_in.released_notebook(self._root, self._entry) if self._entry else None
        self._app = AutogradeApp(config=pickle.loads(batch.configuration))
        self._app.coursedir = coursedir = CourseDirectory(parent=self._app)
        settings = self._app.config.JudgedExecute  # of the real course, in which this process was started
        settings.private = [*settings.get("private", []), *hiding.places_of_course(self._app.config)]
        coursedir.root, coursedir.db_url = str(self._root), f"sqlite:///{self._classroom / 'gradebook.db'}"
        coursedir.assignment_id = batch.assignment
        self._app.config.Exporter.optimistic_validation = True  # the notebook, only after the last step
        for name, value in FOLDERS.items():
            setattr(coursedir, name, value)

    def grade(self, submission: Submission) -> Result:
        """Take in, run and judge one submission. Any problem with it becomes the result's failure.

        Raises SystemExit if this machine cannot grade anything; its text says why.
        """
        started = time.monotonic()
        notes, printed, failure, retry, received = _Notes(), io.StringIO(), "", False, None
        self._app.log.handlers, self._app.log.propagate = [notes], False
        with contextlib.redirect_stdout(printed):
            try:
                self._clear()
                received = self._take_in(submission)
                self._convert(submission.student)
            except NbGraderException as error:
                failure, retry = notes.reason or str(error), notes.raised
            except take_in.NotKept as error:
                failure, retry = f"not checked: {error}", True
            except Gone as error:
                failure = str(error)
            except Exception as error:  # one submission's trouble is one submission's failure
                failure, retry = f"{type(error).__name__}: {error}", True
        notebooks = {} if failure else self._notebooks(submission.student)
        contents = [nbformat.from_dict(json.loads(text)) for text in notebooks.values()]
        return Result(
            student=submission.student,
            notebooks=notebooks,
            received=received,
            failure=failure,
            retry=retry,
            seconds=time.monotonic() - started,
            cells=tuple(timed for notebook in contents for timed in _cell_seconds(notebook)),
            notes=(*printed.getvalue().splitlines(), *notes.lines),
            unchecked=tuple(found for notebook in contents for found in unchecked(notebook)),
            unusual=tuple(unusual(cell[1] for notebook in contents for cell in course.code_cells(notebook))),
            records=self._records(),
            memory=psutil.Process().memory_info().rss,
        )

    def _take_in(self, submission: Submission) -> Received | None:
        """Put the submission where nbgrader expects it; None for an assignment that is not in the catalogue."""
        assignment = self._app.coursedir.assignment_id
        folder = submission.unpacked(self._folder / "work")
        if not folder.is_dir():
            raise Gone
        place = self._classroom / "received" / submission.student / assignment
        if self._entry is None:
            untrusted_files.copy_tree(folder, place)
            return None
        taken = take_in.take_in(self._released, self._entry, folder)
        if taken.failure:
            raise take_in.NotKept(taken.failure)
        if not folder.is_dir():  # what was read of it may have been half of it
            raise Gone
        place.mkdir(parents=True)
        text = nbformat.writes(taken.notebook) + "\n"
        (place / f"{self._entry.notebook}.ipynb").write_text(text, encoding="utf-8")
        take_in.copy_files(taken.files, place)
        return Received(text, taken.reasons, taken.digest, tuple(str(path.relative_to(folder)) for path in taken.files))

    def _convert(self, student: str) -> None:
        self._app.coursedir.student_id = student
        converter = Autograde(coursedir=self._app.coursedir, parent=self._app)
        converter.autograde_preprocessors = split(converter.autograde_preprocessors)[0]
        where = self._app.coursedir
        with nbgrader_patches.one_gradebook(where.db_url, where.course_id, keep=False):  # the writer has the real one
            converter.start()

    def _notebooks(self, student: str) -> dict[str, str]:
        folder = self._classroom / "autograded" / student / self._app.coursedir.assignment_id
        return {path.stem: path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.ipynb"))}

    def _records(self) -> dict[str, bytes]:
        return {
            str(path.relative_to(self._classroom)): path.read_bytes()
            for path in sorted(self._classroom.rglob("*"))
            if path.is_file() and path.relative_to(self._classroom).parts[0] not in OWN
        }

    def _clear(self) -> None:
        remove(self._folder / "work")
        for path in self._classroom.iterdir():
            if path.name not in KEPT:
                remove(path) if path.is_dir() else path.unlink()
        (self._classroom / "gradebook.db").write_bytes(self._gradebook)


def split(steps: list) -> tuple[list, list]:
    """nbgrader's autograding steps: those up to the execution, and those after it.

    Raises CourseError if no step executes.
    """
    names = [step.rpartition(".")[2] if isinstance(step, str) else getattr(step, "__name__", "") for step in steps]
    places = [place for place, name in enumerate(names) if name.endswith("Execute")]
    if not places:
        raise course.CourseError(f"Autograde.autograde_preprocessors: expected a step that executes, got {names}.")
    return steps[: places[0] + 1], steps[places[0] + 1 :]


class _Notes(logging.Handler):
    """Collects nbgrader's warnings; `reason` is the last line of the first traceback, `raised` whether there was
    one."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []
        self.reason, self.raised = "", False

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage().strip()
        if text.startswith("Traceback"):
            self.raised = True
            self.reason = self.reason or text.splitlines()[-1]
        elif record.levelno < logging.ERROR:
            self.lines.append(text)


def _cell_seconds(notebook: nbformat.NotebookNode) -> list[tuple[str, float]]:
    """(cell id, seconds) of each cell that ran."""
    timed = ((cell, results.seconds_of(cell)) for cell in notebook.cells)
    return [(cell.get("id", ""), round(seconds, 4)) for cell, seconds in timed if seconds is not None]


def unchecked(notebook: dict) -> list[tuple[str, str]]:
    """(exercise, reason) of each without a verdict, from its check cell."""
    found = []
    for cell in notebook["cells"]:
        if not cell.get("metadata", {}).get("nbgrader", {}).get("grade"):
            continue  # what other cells show is a student's
        for output in cell.get("outputs", ()):
            record = output.get("metadata", {}).get("judged")
            if isinstance(record, dict) and record.get("state") == NOT_CHECKED:
                found.append((str(record.get("exercise", "")), str(record.get("reason", ""))))
    return found


def main(descriptor: int, folder: Path) -> None:
    """Receive a batch, then submissions, and send back a result for each, until the other end closes."""
    connection = Connection(descriptor)
    received: queue.Queue = queue.Queue()
    tempfile.tempdir = str(folder)  # so that nothing is left elsewhere, however this ends

    def listen() -> None:
        with contextlib.suppress(EOFError, OSError):
            while True:
                received.put(connection.recv())
        # The writer is gone: what runs now is of use to nobody.
        remove(folder)
        os._exit(1)

    threading.Thread(target=listen, daemon=True).start()
    bench = Bench(received.get(), folder)
    while True:
        try:
            connection.send(bench.grade(received.get()))
        except SystemExit as refusal:
            connection.send(str(refusal))
