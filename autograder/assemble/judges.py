"""Judges for assembled answers: the sandbox of `try`, or, where it cannot run (Windows), this process itself.

The second is what a notebook's own check does: a learner's cells run with all of a learner's rights.
"""

import linecache
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

from autograder import catalogue
from autograder.catalogue.exercise import Assignment, Exercise
from autograder.diagnosis.explain import judge_and_explain
from autograder.inside import responder
from autograder.judging import forbidden
from autograder.judging.judge import draw_key
from autograder.judging.observation import Raised, raised_in_cell
from autograder.judging.observe import LocalEndpoint
from autograder.judging.verdict import Verdict

if TYPE_CHECKING:
    from autograder.prepare.trial import Trials

Judge: TypeAlias = "Trials | InThisProcess"  # judges one answer after another
POSIX = ("fcntl", "resource")  # modules that a sandbox needs and Windows does not have


def chosen() -> tuple[Judge, bool]:
    """The judge for this machine, and whether it runs answers in a sandbox.

    Without a sandbox a learner's own code runs with all of the learner's rights, as in Jupyter.
    """
    try:
        from autograder.prepare.trial import Trials
        from autograder.sandbox import backends
    except ModuleNotFoundError as missing:
        if missing.name not in POSIX:
            raise
        return InThisProcess(), False
    try:
        backends.choose()
    except backends.SandboxError:
        return Trials(trust=True), False
    return Trials(trust=True), True


class InThisProcess:
    """Runs and judges an answer in this process, as a notebook's kernel would."""

    def __enter__(self) -> "InThisProcess":
        return self

    def __exit__(self, *_: object) -> None: ...

    def judge(
        self,
        exercise: Exercise,
        set_up: Sequence[str],
        source: str,
        name: str,
        secret: bytes,
        assignment: Assignment | None = None,
        disclosed: bool = False,
    ) -> Verdict:
        """The verdict on one answer; the arguments are those of `Trials.judge`."""
        assignment = assignment or catalogue.assignment_of(exercise)
        findings = forbidden.findings([*set_up, source], exercise, assignment)
        key = draw_key(secret, assignment.id, exercise.id, [source])
        namespace: dict = {"__name__": "__main__"}
        stopped = _run([*set_up, source], f"<{exercise.id} in {name}>", namespace)
        return judge_and_explain(exercise, LocalEndpoint(namespace), key, findings, stopped, disclosed, source)


def _run(sources: Sequence[str], name: str, namespace: dict) -> tuple[Raised, ...]:
    """Run sources one after the other until one raises an exception; returns its description."""
    for source in sources:
        linecache.cache[name] = len(source), None, source.splitlines(keepends=True), name
        try:
            exec(compile(source, name, "exec"), namespace)
        except (Exception, SystemExit) as error:  # a learner's cell may do anything
            return (raised_in_cell(responder.describe(error, namespace)),)
    return ()
