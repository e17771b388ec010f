"""`python -m autograder grade ASSIGNMENT`: a class graded by many workers and recorded by one writer."""

import argparse
import contextlib
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from autograder import course
from autograder.course import CourseError
from autograder.grade import workers
from autograder.grade.fork_server import ForkServer
from autograder.grade.interrupt import Interrupted, interruptible
from autograder.grade.journal import Journal, Journals, OneWriter
from autograder.grade.messages import Result, Stopped, Submission
from autograder.grade.options import Options
from autograder.grade.progress import Progress, say

if TYPE_CHECKING:
    from autograder.grade.changes import Change
    from autograder.grade.gradebook import Classroom

ATTENTION = 1  # the exit code that says: somebody has to be looked at


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    course.add_assignment(parser)
    workers.add_arguments(parser)
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--force", action="store_true", help="also grade those who have a grade already; points given by hand stay"
    )
    which.add_argument("--outdated", action="store_true", help="also grade those whose grades depend on older rules")
    which.add_argument("--resume", action="store_true", help="continue an interrupted run with its options")
    parser.add_argument(
        "--student", action="append", default=[], metavar="NAME", help='only this one or those like "a*"; repeatable'
    )
    parser.add_argument(
        "--trust-submissions", action="store_true", help="run students' code without a sandbox, with all of your rights"
    )


def run(chosen: argparse.Namespace) -> int:
    """Grade what the command line names.

    Returns 0 if everything is graded, 1 if somebody needs attention, 2 for wrong use, 128 plus the signal's number if
    interrupted.
    """
    if chosen.resume and chosen.student:
        raise CourseError("--resume goes on with the students of the interrupted run; --student cannot choose others.")
    options = Options(
        students=tuple(chosen.student),
        workers=chosen.workers,
        force=chosen.force,
        outdated=chosen.outdated,
        resume=chosen.resume,
        trust=chosen.trust_submissions,
        scheduler=chosen.dask,
    )
    return grade(course.find_root(), chosen.assignment, options)


def grade(root: Path, assignment: str, options: Options) -> int:
    """Grade a class and print a summary; returns the exit code.

    Raises CourseError if the course, the gradebook or the workers cannot be used.
    """
    journals = Journals(root, assignment)
    before = journals.latest()

    def continuation() -> str:
        """How to go on: --resume knows the options of a run only from its log."""
        if journals.latest() == before and not options.resume:
            return "Nothing was graded yet; give the same command again."
        return "Finished grades are kept; --resume goes on from here."

    with interruptible():
        try:
            return _run(root, assignment, options)
        except Interrupted as interrupted:
            say(f"\nInterrupted. {continuation()}")
            return interrupted.code
        except Stopped as stopped:
            say(f"\nStopped. {stopped} {continuation()}")
            return ATTENTION
        except OSError as error:
            # A full or read-only disk, too many open files: this machine's trouble, which no submission has made.
            where = f" {error.filename}" if error.filename else ""
            print(
                f"\nThis machine cannot go on: {error.strerror or error}{where}. Put that right first. "
                f"{continuation()}",
                file=sys.stderr,
            )
            return ATTENTION


def _run(root: Path, assignment: str, options: Options) -> int:
    with OneWriter(root), workers.fork_server_for(assignment, options) as fork_server:
        from autograder.grade.gradebook import Classroom  # seconds of imports, which the fork_server has begun
        from autograder.grade.older_rules import outdated_of
        from autograder.grade.plan import plan
        from autograder.grade.summary import of_older_rules, of_withdrawn, summary

        classroom = Classroom(root, assignment)
        journals = Journals(root, assignment)
        journal, students = plan(classroom, journals, options)
        if journal is not None:
            code = _graded(classroom, journals, journal, students, options, fork_server)
            if code:
                return code
            classroom.finish()
        older, names = outdated_of(root, assignment, classroom.graded()), classroom.names()
        gone = of_withdrawn([names.get(student, student) for student in classroom.withdrawn()])
        if journal is None:
            for line in [*gone, *of_older_rules(older, assignment, names)]:
                say(line)
            return 0
        for line in gone:
            say(line)
        say(summary(journal, classroom.most_points(), root, older, classroom.zone, names))
    if classroom.not_believed:
        say(
            f"  {classroom.not_believed} came with a timestamp.txt that was not believed. If nbgrader's exchange or "
            f"ngshare collected them, set c.Intake.trust_timestamps = True in {course.MARKER} and use --force."
        )
    attention = journal.of("failed") or any(event.get("unchecked") for event in journal.of("graded"))
    return ATTENTION if attention else 0


def _graded(
    classroom: "Classroom",
    journals: Journals,
    journal: Journal,
    students: Sequence[str],
    options: Options,
    fork_server: ForkServer | None,
) -> int:
    """Grade them; returns 0, or the exit code of a run that was interrupted."""
    try:
        _grade(classroom, journals, journal, students, options, fork_server)
    except Interrupted as interrupted:
        say(f"\nInterrupted. Finished grades are kept; --resume goes on with the {len(journal.left())} others.")
        return interrupted.code
    finally:
        _end(journal)
    return 0


def _end(journal: Journal) -> None:
    if not journal.left():
        graded, failed = (len(journal.of(event)) for event in ("graded", "failed"))
        with contextlib.suppress(OSError):  # then the next --resume finds nothing left and writes it
            journal.write("end", graded=graded, failed=failed)
    journal.close()


def _grade(
    classroom: "Classroom",
    journals: Journals,
    journal: Journal,
    students: Sequence[str],
    options: Options,
    fork_server: ForkServer | None,
) -> None:
    last, folders = journals.last_grades(), classroom.handed_in()
    progress = Progress(classroom.assignment, len(students))
    present = [Submission(student, folders[student]) for student in students if student in folders]
    gone = [Result(student, failure="the folder is no longer there") for student in students if student not in folders]
    batch = classroom.batch(options.environment)
    with workers.workers_for(batch, options, len(students), fork_server) as working:
        progress.show()
        for result in chain(gone, working.grade(present)):
            failure, retry = result.failure, result.retry
            if not failure:
                failure, retry = _record(classroom, journal, result, folders.get(result.student), last), True
            if failure:
                journal.write("failed", student=result.student, reason=failure, attempts=result.attempts, retry=retry)
            progress.step(f"{result.student}: {failure}" if failure else "")
    progress.end()


def _record(classroom: "Classroom", journal: Journal, result: Result, folder: Path, last: dict[str, dict]) -> str:
    """Record one result in the gradebook and in the log; returns why that failed, or ""."""
    from autograder.grade import changes  # with torch and nbgrader, which the classroom has imported by now
    from autograder.intake.take_in import NotKept

    student, now = result.student, journal.versions
    before = classroom.recorded(student)
    journal.write("writing", student=student)
    try:
        kept = classroom.record(result, folder)
        classroom.keep(result.records)
    except Stopped:
        raise
    except OSError as error:
        return f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}"
    except CourseError as error:
        return str(error)
    except NotKept as error:
        return f"not checked: {error}"
    except Exception as error:  # nbgrader raises many kinds; none of them may cost another student the grade
        return f"{type(error).__name__}: {error}"
    digest = result.received.digest if result.received else ""
    found = changes.changed(student, before.points if before else {}, kept.points, last.get(student), digest, now)
    journal.write(
        "graded",
        student=student,
        submission=digest,
        seconds=round(result.seconds, 3),
        attempts=result.attempts,
        cells=result.cells,
        **asdict(kept),
        changes=[_beside_a_person(change, kept.by_person)[1:] for change in found],
        penalty_before=before.penalty if before else kept.penalty,
        score_before=before.score if before else None,
        score=kept.score,
        unchecked=result.unchecked,
        unusual=result.unusual,
        notes=[*(result.received.reasons if result.received else ()), *result.notes, *kept.settled],
        memory=result.memory,
        writer_memory=psutil.Process().memory_info().rss,
    )
    return ""


def _beside_a_person(change: "Change", by_person: Mapping[str, float]) -> "Change":
    """The grade, with the points that a person gave, which override the grader's."""
    if change.cell not in by_person:
        return change
    stays = f"{change.why}; the grade stays {by_person[change.cell]:g}, which a person gave"
    return change._replace(why=stays)
