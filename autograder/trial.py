"""Judging answer files as grading does: `python -m autograder try EXERCISE ANSWER.py...`.

One warm process holds torch and forks a child for each file; the judge stays here.
"""

import argparse
import json
import multiprocessing
import os
import socket
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from autograder import catalogue, course, kernel, rules, wire
from autograder.exercise import Exercise
from autograder.judge import draw_key, judge_remote
from autograder.verdict import Verdict, render

START_SECONDS = 60.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("exercise", help='the exercise\'s id, such as "attention-weights"')
    parser.add_argument("answers", nargs="+", type=Path, metavar="ANSWER.py", help="files that hold one answer each")
    parser.add_argument("--json", action="store_true", help="one JSON object a line")


def run(chosen: argparse.Namespace) -> int:
    """Print each file's verdict as it comes. Raises CourseError for an exercise that does not exist."""
    exercise = catalogue.find(chosen.exercise)
    if exercise is None:
        raise course.CourseError(
            f"There is no exercise {chosen.exercise!r}. The exercises are: {', '.join(catalogue.exercises())}."
        )
    for file, judged in try_files(exercise, chosen.answers, course.find_root()):
        if chosen.json:
            print(json.dumps(_as_json(file, judged), ensure_ascii=False), flush=True)
        else:
            print(f"{file}\n{render(judged)}\n", flush=True)
    return 0


def try_files(exercise: Exercise, files: Sequence[Path], root: Path) -> Iterator[tuple[Path, Verdict]]:
    """Each file's verdict, in order. Raises CourseError when the released notebook is missing."""
    set_up = course.set_up_cells(root, catalogue.assignment_of(exercise), exercise)
    sources = [(file, _read(file)) for file in files]
    with Trials() as trials:
        for file, source in sources:
            if isinstance(source, OSError | UnicodeDecodeError):
                yield file, Verdict(exercise, True, message=f"{file} cannot be read: {source}")
            else:
                yield file, trials.judge(exercise, set_up, source, file.name, course.secret(root))


class Trials:
    """A warm process, and the judge of the answers that it holds one after another."""

    def __enter__(self) -> "Trials":
        os.environ["OMP_NUM_THREADS"] = "1"  # inherited by the warm process, which must stay single-threaded to fork
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(["torch", "autograder.kernel"])
        self._folder = tempfile.TemporaryDirectory(prefix="judge-")
        return self

    def __exit__(self, *_: object) -> None:
        self._folder.cleanup()

    def judge(self, exercise: Exercise, set_up: Sequence[str], source: str, name: str, secret: bytes) -> Verdict:
        """The verdict on one answer, with hidden inputs drawn for this source."""
        assignment = catalogue.assignment_of(exercise)
        findings = rules.findings([*set_up, source], exercise, assignment)
        key = draw_key(secret, assignment.id, exercise.id, source)
        path = os.path.join(self._folder.name, "socket")
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(path)
            listener.listen(1)
            listener.settimeout(START_SECONDS)
            process = self._context.Process(
                target=kernel.hold_answer, args=(path, exercise.id, tuple(set_up), source, name), daemon=True
            )
            process.start()
            try:
                return self._converse(listener, exercise, key, findings)
            finally:
                process.kill()
                process.join()
                os.unlink(path)

    @staticmethod
    def _converse(listener: socket.socket, exercise: Exercise, key: bytes, findings: Sequence[str]) -> Verdict:
        connection, _ = listener.accept()
        channel = wire.Channel(connection)
        channel.set_timeout(exercise.seconds)
        try:
            hello = channel.receive()
        except TimeoutError:
            return Verdict(
                exercise,
                True,
                message=f"The file did not finish running within {exercise.seconds:g} seconds.",
            )
        except (EOFError, OSError, wire.WireError) as error:
            return Verdict(exercise, True, message=f"The file's process ended before it could be checked ({error}).")
        finally:
            channel.set_timeout(None)
        error = hello.get("error") if isinstance(hello, dict) else None
        try:
            return judge_remote(channel, exercise, key, findings, error)
        finally:
            channel.close()


def _read(file: Path) -> str | OSError | UnicodeDecodeError:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        return error


def _as_json(file: Path, judged: Verdict) -> dict:
    return {
        "file": str(file),
        "exercise": judged.exercise.id,
        "points": judged.points,
        "max_points": judged.exercise.points,
        "misconception": judged.misconception.name if judged.misconception else None,
        "message": judged.explanation(),
    }
