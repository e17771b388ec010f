"""Judging one answer after another as grading does.

Each runs in a sandbox, in a child of one warm process; the judge stays here.
"""

from collections.abc import Sequence

from autograder import catalogue
from autograder.catalogue.exercise import Assignment, Exercise
from autograder.diagnosis.evidence import Explained, explained
from autograder.diagnosis.explain import judge_and_explain
from autograder.inside.limits import Limits
from autograder.judging import forbidden
from autograder.judging.judge import draw_key
from autograder.judging.observation import Raised, raised_in_cell
from autograder.judging.observe import RemoteEndpoint
from autograder.judging.verdict import not_checked
from autograder.sandbox import backends, runner
from autograder.sandbox.backends import BACKENDS, TRUST, SandboxError
from autograder.sandbox.notebook_limits import limits_of
from autograder.sandbox.runner import Ended, Submission


class Trials:
    """Judges one answer after another.

    trust: whether they may run without a sandbox if there is none. Raises SandboxError if they may not.
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
        disclosed: bool = False,
    ) -> Explained:
        """The verdict on one answer, with hidden inputs drawn for this source.

        assignment: decides what may be imported; by default that of the exercise. disclosed: whether a report may show
        hidden probes.
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
                    endpoint = RemoteEndpoint(channel)
                    verdict = judge_and_explain(exercise, endpoint, key, findings, stopped, disclosed, source)
            except Ended as ended:
                verdict = verdict or explained(not_checked(exercise, str(ended)))
        return verdict


def _run(submission: Submission, sources: Sequence[tuple[str, str]]) -> tuple[Raised, ...]:
    """Run sources under their names until one raises an exception; returns its description."""
    for source, name in sources:
        error = submission.run(source, name).error
        if error is not None:
            return (raised_in_cell(error),)
    return ()
