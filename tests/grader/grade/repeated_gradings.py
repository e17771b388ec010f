"""Is a verdict steady where an answer trains, or uses what was trained? The solution is graded again and again.

    python tests/grader/grade/repeated_gradings.py overfit-one-batch translate --times 50 --threads 1 2 --asked 10

Each grading runs the released set-up and the solution in a sandbox, as grading does, and asks hidden questions that
are drawn from a secret of its own. A grading that does not earn everything is a flip; exit code 1 says that there was
one. Grading computes with one thread; a learner's own check may have more.
"""

import argparse
import hashlib
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from autograder import catalogue, course
from autograder.catalogue.exercise import Exercise
from autograder.diagnosis.explain import judge_and_explain
from autograder.feedback.messages import explanation
from autograder.inside.limits import Limits
from autograder.judging.judge import draw_key
from autograder.judging.observe import RemoteEndpoint
from autograder.judging.verdict import Verdict
from autograder.prepare import sample_class
from autograder.sandbox import backends, runner
from autograder.sandbox.notebook_limits import limits_of

TRAIN = ("overfit-one-batch", "translate")  # the exercises whose grading trains


class Grading(NamedTuple):
    """One verdict, and the processor seconds that the process has used by then."""

    verdict: Verdict
    threads: int
    seconds: float

    @property
    def score(self) -> float | None:
        """On the scale of the last probe, if it has one."""
        last = self.verdict.outcomes[-1] if self.verdict.outcomes else None
        if last is None or last.probe.scale is None or last.got is None:
            return None
        return last.probe.scale.measure(last.expected.result, last.got.result)

    @property
    def said(self) -> str:
        """What came back from the visible probes, which ask everybody the same: equal where training runs end equal."""
        results = [outcome.got.result for outcome in self.verdict.outcomes if not outcome.probe.hidden]
        return hashlib.sha256(repr(results).encode()).hexdigest()


def gradings(exercise: Exercise, times: int, threads: Sequence[int] = (1,), asked: int = 1) -> Iterator[Grading]:
    """Grade the solution this many times, each with a different secret. threads: torch's numbers of threads,
    alternating between processes. asked: number of gradings of the same process, which has trained once.
    """
    assignment = catalogue.assignment_of(exercise)
    cells = course.set_up_cells(sample_class.ROOT, assignment, exercise, training=exercise.trained)
    source = sample_class.solved(assignment)[exercise.id]
    limits = Limits(cell_seconds=exercise.seconds)
    if exercise.trained:
        limits = limits_of(assignment, limits_of(assignment) if asked == 1 else Limits(notebook_seconds=3_000))
    warm = runner.runner_for(assignment, backends.choose(), limits)
    for first in range(0, times, asked):
        count = threads[first // asked % len(threads)]
        with warm.submission() as submission:
            for cell in (f"import torch\ntorch.set_num_threads({count})", *cells, source):
                error = submission.run(cell).error
                assert error is None, error
            for number in range(first, min(first + asked, times)):
                secret = hashlib.sha256(str(number).encode()).digest()
                key = draw_key(secret, assignment.id, exercise.id, [source])
                with submission.questioned(exercise.seconds) as channel:
                    verdict = judge_and_explain(exercise, RemoteEndpoint(channel), key)
                yield Grading(verdict, count, submission.spent())


def main(arguments: Sequence[str] | None = None) -> int:
    """Grade, print each changed verdict and the count; 1 if there was one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("exercises", nargs="*", default=TRAIN, metavar="EXERCISE")
    parser.add_argument("--times", type=int, default=50, metavar="N")
    parser.add_argument("--threads", type=int, nargs="+", default=[1], metavar="N")
    parser.add_argument("--asked", type=int, default=1, metavar="N", help="gradings that share one training run")
    chosen = parser.parse_args(arguments)
    flips = 0
    for exercise in map(catalogue.find, chosen.exercises):
        done, began = [], time.monotonic()
        for grading in gradings(exercise, chosen.times, chosen.threads, chosen.asked):
            done.append(grading)
            if grading.verdict.points < exercise.points:
                flips += 1
                print(f"{exercise.id}, {len(done)}: {grading.verdict.points:g} points\n{explanation(grading.verdict)}")
            if grading.score is not None:
                print(
                    f"{len(done)}, {grading.threads} threads: {grading.score:.2f}, {grading.seconds:.1f} s", flush=True
                )
        lost = sum(grading.verdict.points < exercise.points for grading in done)
        seconds = [grading.seconds for grading in done]
        scores = [grading.score for grading in done if grading.score is not None]
        alike = len({(grading.threads, grading.said) for grading in done})
        told = f", scores from {min(scores):.2f} to {max(scores):.2f}" if scores else ""
        print(
            f"{exercise.number} {exercise.id}: {lost} flips in {len(done)} gradings{told}; {alike} different "
            f"results of the visible checks under {len(chosen.threads)} numbers of threads; processor seconds "
            f"{statistics.mean(seconds):.1f} on average, {max(seconds):.1f} at most; {time.monotonic() - began:.0f} s",
            flush=True,
        )
    return int(flips > 0)


if __name__ == "__main__":
    code = main()
    runner.close_all()
    sys.exit(code)
