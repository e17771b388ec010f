"""Mistakes of a class as entries for the catalogue: `python -m autograder known-mistakes --from-class`.

A teacher has commented on wrong answers that behave alike. For each comment a program is searched for that behaves as
they do, among one-change mutations of our own correct answers and known mistakes. So a mistake can be given to others
without any student's code. Every program runs in a process of its own, with limits on time and memory.
"""

import random
import sys
import time
from collections.abc import Iterator, Sequence

from autograder import course
from autograder.catalogue.exercise import Assignment, Exercise
from autograder.course import CourseError
from autograder.diagnosis.alike import are_alike, fingerprinted
from autograder.diagnosis.evidence import explained
from autograder.diagnosis.known_mistakes import namespace_of
from autograder.diagnosis.mutations import mutations
from autograder.judging.judge import JudgingSession
from autograder.judging.observe import LocalEndpoint
from autograder.judging.verdict import WRONG
from autograder.reports import shared_comments
from autograder.reports.shared_comments import Comment
from autograder.sandbox import limited_process

MEMORY, PROGRAM_SECONDS = 4 << 30, 20.0  # bytes and processor time, for one program
SEARCH_SECONDS = 180.0  # for all programs of one exercise


def found(assignments: Sequence[Assignment]) -> Iterator[tuple[Assignment, Exercise, Comment, str | None]]:
    """Each comment on these assignments, with a program of ours that behaves like the answers, or None if none was
    found.

    Raises CourseError if there is no comment.
    """
    root = course.find_root()
    comments = shared_comments.read(root)
    chosen = [
        (assignment, exercise, about)
        for assignment in assignments
        for exercise in assignment.exercises
        if (about := [comment for comment in comments if comment.exercise == exercise.id])
    ]
    if not chosen:
        raise CourseError("There is no comment on answers that behave alike: python -m autograder comment ASSIGNMENT")
    for assignment, exercise, about in chosen:
        print(f"{exercise.number}: looking for programs that behave alike ...", file=sys.stderr, flush=True)
        sources = programs(exercise, about, course.secret(root))
        for comment in about:
            yield assignment, exercise, comment, sources.get(comment)


def programs(
    exercise: Exercise, comments: Sequence[Comment], secret: bytes, seconds: float = SEARCH_SECONDS
) -> dict[Comment, str]:
    """For each comment a program that behaves like its answers, if one is found in that time."""
    sources: dict[Comment, str] = {}
    until = time.monotonic() + seconds
    for source in candidates(exercise):
        open_comments = [comment for comment in comments if comment not in sources]
        if not open_comments or time.monotonic() > until:
            break
        try:
            alike = limited_process.run(
                lambda source=source: _fingerprint(exercise, source, secret), PROGRAM_SECONDS, MEMORY, quiet=True
            )
        except limited_process.Stopped:  # it does not end, or cannot run: no answer that anybody gave
            continue
        sources |= {comment: source for comment in open_comments if are_alike(comment.alike, alike)}
    return sources


def candidates(exercise: Exercise) -> Iterator[str]:
    """Programs to try, each once: those of the catalogue with one change."""
    seen = set()
    for source in [*(known.source for known in exercise.correct), *(known.source for known in exercise.mistakes)]:
        for _, text in mutations(str(source), random.Random(0)):
            if text not in seen:
                seen.add(text)
                yield text


def _fingerprint(exercise: Exercise, source: str, secret: bytes) -> list[str]:
    session, endpoint = JudgingSession(exercise, secret), LocalEndpoint(namespace_of(source))
    for hidden in (False, True):
        session.ask(endpoint, hidden)
    verdict = explained(session.verdict())
    return list(fingerprinted(verdict, session, endpoint, secret).alike) if verdict.state == WRONG else []
