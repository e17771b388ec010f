"""Judging answer files as grading does: `python -m autograder try EXERCISE ANSWER.py...`.

Each file runs in a sandbox, in a child of one warm process; the judge stays here.
"""

import argparse
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from autograder import catalogue, course
from autograder.catalogue.exercise import Assignment, Exercise
from autograder.diagnosis.evidence import Explained, explained
from autograder.diagnosis.explain import judge_and_explain
from autograder.feedback.messages import explanation
from autograder.feedback.report import as_text
from autograder.inside.limits import Limits
from autograder.judging import forbidden
from autograder.judging.judge import draw_key
from autograder.judging.observation import Raised, raised_in_cell
from autograder.judging.observe import RemoteEndpoint
from autograder.judging.verdict import Verdict, not_checked
from autograder.sandbox import backends, runner
from autograder.sandbox.backends import BACKENDS, TRUST, SandboxError
from autograder.sandbox.budget import limits_of
from autograder.sandbox.runner import Ended, Submission


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("exercise", help='the exercise\'s id, such as "attention-weights"')
    parser.add_argument("answers", nargs="+", type=Path, metavar="ANSWER.py", help="files that hold one answer each")
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    parser.add_argument(
        "--trust-submissions", action="store_true", help="run answers unconfined: they can do whatever you can"
    )


def run(chosen: argparse.Namespace) -> int:
    """Print each file's verdict as it comes. Raises CourseError for an exercise that does not exist."""
    exercise = catalogue.find(chosen.exercise)
    if exercise is None:
        raise course.CourseError(
            f"There is no exercise {chosen.exercise!r}. The exercises are: {', '.join(catalogue.exercise_ids())}."
        )
    for file, judged in try_files(exercise, chosen.answers, course.find_root(), chosen.trust_submissions):
        if chosen.json:
            print(json.dumps(_as_json(file, judged), ensure_ascii=False), flush=True)
        else:
            print(f"{file}\n{as_text(judged)}\n", flush=True)
    return 0


def try_files(
    exercise: Exercise, files: Sequence[Path], root: Path, trust: bool = False
) -> Iterator[tuple[Path, Explained]]:
    """Each file's verdict, in order. Raises CourseError when the released notebook, or a sandbox, is missing.

    trust: whether the answers may run without a sandbox.
    """
    set_up = course.set_up_cells(root, catalogue.assignment_of(exercise), exercise, training=exercise.trained)
    sources = [(file, _read(file)) for file in files]
    with Trials(trust) as trials:
        for file, source in sources:
            if isinstance(source, OSError | UnicodeDecodeError):
                yield file, explained(not_checked(exercise, f"{file} cannot be read: {source}"))
            else:
                yield file, trials.judge(exercise, set_up, source, file.name, course.secret(root))


class Trials:
    """The judge of one answer after another.

    trust: whether they run without a sandbox where nothing can isolate them. Raises SandboxError where they may not.
    """

    def __init__(self, trust: bool = False) -> None:
        self._trust = trust

    def __enter__(self) -> "Trials":
        try:
            self._backend = backends.choose()
        except SandboxError:
            if not self._trust:
                raise
            self._backend = BACKENDS[TRUST]
        return self

    def __exit__(self, *_: object) -> None:
        runner.close_all()

    def judge(
        self,
        exercise: Exercise,
        set_up: Sequence[str],
        source: str,
        name: str,
        secret: bytes,
        assignment: Assignment | None = None,
    ) -> Explained:
        """The verdict on one answer, with hidden inputs drawn for this source.

        assignment: what may be imported; that of the exercise where none is given.
        """
        assignment = assignment or catalogue.assignment_of(exercise)
        findings = forbidden.findings([*set_up, source], exercise, assignment)
        key = draw_key(secret, assignment.id, exercise.id, [source])
        limits = Limits(cell_seconds=exercise.seconds)
        if exercise.trained:
            limits = limits_of(assignment)
        verdict = None
        with runner.runner_for(assignment, self._backend, limits).submission() as submission:
            try:
                stopped = _run(submission, [(cell, "") for cell in set_up] + [(source, name)])
                with submission.questioned(exercise.seconds) as channel:
                    verdict = judge_and_explain(exercise, RemoteEndpoint(channel), key, findings, stopped)
            except Ended as ended:
                verdict = verdict or explained(not_checked(exercise, str(ended)))
        return verdict


def _run(submission: Submission, sources: Sequence[tuple[str, str]]) -> tuple[Raised, ...]:
    """Run sources under their names until one stops with an error; returns that error."""
    for source, name in sources:
        error = submission.run(source, name).error
        if error is not None:
            return (raised_in_cell(error),)
    return ()


def _read(file: Path) -> str | OSError | UnicodeDecodeError:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        return error


def _as_json(file: Path, judged: Verdict) -> dict:
    found = explained(judged).misconception
    return {
        "file": str(file),
        "exercise": judged.exercise.id,
        "points": judged.points,
        "max_points": judged.exercise.points,
        "misconception": found.name if found else None,
        "message": explanation(judged),
    }
