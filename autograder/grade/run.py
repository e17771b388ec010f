"""`python -m autograder grade ASSIGNMENT`: a class graded by many workers and recorded by one writer."""

import argparse
import fnmatch
import os
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from autograder import course
from autograder.course import CourseError
from autograder.grade import changes
from autograder.grade.journal import Journal, Journals, OneWriter
from autograder.grade.parcel import Batch, Result, Submission
from autograder.grade.pool import Pool, Spares
from autograder.grade.progress import Progress
from autograder.grade.summary import summary

if TYPE_CHECKING:
    from autograder.grade.gradebook import Classroom

SANDBOX = "ATTENTION_BY_HAND_SANDBOX"  # the environment variable that names a way to isolate
INTERRUPTED = 130  # the exit code of a program that Ctrl-C ended


@dataclass(frozen=True)
class Options:
    """How a class is to be graded.

    students: names or patterns such as "a*"; none means everyone. workers: processes of this machine. force: grade
    again what is graded. resume: go on with the run that was interrupted, as it was begun. trust: without a sandbox.
    scheduler: address of a Dask scheduler whose workers are used instead of this machine's.
    """

    students: tuple[str, ...] = ()
    workers: int = 1
    force: bool = False
    resume: bool = False
    trust: bool = False
    scheduler: str = ""

    @property
    def environment(self) -> dict[str, str]:
        """Variables that are set in each worker."""
        return {SANDBOX: "none"} if self.trust else {}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("assignment", metavar="ASSIGNMENT", help="such as 05_self_attention")
    parser.add_argument("--workers", type=_positive, default=_cores(), metavar="N", help="processes (default: cores)")
    parser.add_argument("--dask", default="", metavar="SCHEDULER", help="use a Dask cluster, such as tcp://host:8786")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--force", action="store_true", help="grade again what is graded; points given by hand stay")
    which.add_argument("--resume", action="store_true", help="go on with a run that was interrupted, as it was begun")
    parser.add_argument(
        "--student", action="append", default=[], metavar="NAME", help='only this one or those like "a*"; repeatable'
    )
    parser.add_argument(
        "--trust-submissions", action="store_true", help="run students' code unconfined: it can do whatever you can"
    )


def run(chosen: argparse.Namespace) -> int:
    """Grade what the command line names: 0 all graded, 1 some could not be, 2 wrong use, 130 interrupted."""
    if chosen.resume and chosen.student:
        raise CourseError("--resume goes on with the students of the interrupted run; --student cannot choose others.")
    options = Options(
        students=tuple(chosen.student),
        workers=chosen.workers,
        force=chosen.force,
        resume=chosen.resume,
        trust=chosen.trust_submissions,
        scheduler=chosen.dask,
    )
    return grade(course.find_root(), chosen.assignment, options)


def grade(root: Path, assignment: str, options: Options) -> int:
    """Grade a class and print what a teacher wants to know; returns the exit code.

    Raises CourseError when the course, the gradebook or the workers are not fit for it.
    """
    with OneWriter(root), _begun(root, assignment, options) as spares:
        from autograder.grade.gradebook import Classroom  # seconds of imports, which the workers make meanwhile too

        classroom = Classroom(root, assignment)
        journals = Journals(root, assignment)
        journal, students = _plan(classroom, journals, options)
        if journal is None:
            return 0
        try:
            _grade(classroom, journals, journal, students, options, spares)
        except KeyboardInterrupt:
            print(f"\nInterrupted. What is graded is kept; --resume goes on with the {len(journal.left())} others.")
            return INTERRUPTED
        finally:
            _end(journal)
    print(summary(journal, classroom.most_points(), root))
    if classroom.not_believed:
        print(
            f"  {classroom.not_believed} came with a timestamp.txt that was not believed. If nbgrader's exchange or "
            f"ngshare collected them, set c.Intake.trust_timestamps = True in {course.MARKER} and use --force."
        )
    return 1 if journal.of("failed") else 0


def _end(journal: Journal) -> None:
    if not journal.left():
        graded, failed = (len(journal.of(event)) for event in ("graded", "failed"))
        journal.write("end", graded=graded, failed=failed)
    journal.close()


def _plan(classroom: "Classroom", journals: Journals, options: Options) -> tuple[Journal | None, list[str]]:
    """The run's log and who is to be graded in it; None when there is nothing to do."""
    interrupted = journals.interrupted()
    if options.resume and interrupted:
        left = interrupted.left()
        begun = interrupted.events[0]["time"][:16].replace("T", " ")
        print(f"Going on with the run of {begun} UTC: {len(left)} of {len(interrupted.students)} are left.")
        interrupted.write("resume", workers=options.workers)
        return interrupted, left
    if options.resume:
        print("No run was interrupted: grading whoever has no grade yet.")
    half = journals.half_written()
    present = classroom.handed_in()
    chosen = [name for name in present if _is_chosen(name, options.students)]
    if not chosen:
        wanted = f" that match {' or '.join(options.students)}" if options.students else ""
        raise CourseError(
            f"There are no submissions{wanted} for {classroom.assignment}; {len(present)} students have one."
        )
    waiting = [name for name in chosen if options.force or name in half or not classroom.is_graded(name, present[name])]
    if not waiting:
        print(f"All {len(chosen)} submissions are graded already; --force grades them again.")
        return None, []
    if len(waiting) < len(chosen):
        print(f"{len(chosen) - len(waiting)} are graded already; grading the other {len(waiting)}.")
    released = classroom.root / "exercises" / classroom.assignment
    kept = {key: value for key, value in asdict(options).items() if key in ("force", "trust", "students")}
    return journals.new(waiting, kept, changes.versions(classroom.assignment, released)), waiting


def _grade(
    classroom: "Classroom",
    journals: Journals,
    journal: Journal,
    students: Sequence[str],
    options: Options,
    spares: Spares,
) -> None:
    last, folders = journals.last_grades(), classroom.handed_in()
    progress = Progress(classroom.assignment, len(students))
    present = [Submission(student, folders[student]) for student in students if student in folders]
    gone = [Result(student, failure="the folder is no longer there") for student in students if student not in folders]
    with _workers(classroom.batch(options.environment), options, len(students), spares) as workers:
        progress.show()
        for result in chain(gone, workers.grade(present)):
            failure = result.failure or _record(classroom, journal, result, folders.get(result.student), last)
            if failure:
                journal.write("failed", student=result.student, reason=failure, attempts=result.attempts)
            progress.step(f"{result.student}: {failure}" if failure else "")
    progress.end()


def _record(classroom: "Classroom", journal: Journal, result: Result, folder: Path, last: dict[str, dict]) -> str:
    """Write one result down, in the gradebook and in the log; returns why it could not be, or ""."""
    student, now = result.student, journal.events[0]["versions"]
    before = classroom.recorded(student)
    journal.write("writing", student=student)
    try:
        kept = classroom.record(result, folder)
    except CourseError:
        raise
    except Exception as error:  # nbgrader raises many kinds; none of them may cost another student the grade
        return f"{type(error).__name__}: {error}"
    classroom.keep(result.records)
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
        changes=[change[1:] for change in found],
        notes=[*(result.received.reasons if result.received else ()), *result.notes],
        memory=result.memory,
        writer_memory=psutil.Process().memory_info().rss,
    )
    return ""


def _begun(root: Path, assignment: str, options: Options) -> Spares:
    """As many workers as will probably be needed: those of a usual course that this machine grades."""
    present = len(list((root / "classroom" / "submitted").glob(f"*/{assignment}")))
    return Spares(options.environment, 0 if options.scheduler else min(options.workers, present))


def _workers(batch: Batch, options: Options, students: int, spares: Spares) -> AbstractContextManager:
    if options.scheduler:
        from autograder.grade.cluster import Cluster

        return Cluster(batch, options.scheduler)
    return Pool(batch, min(options.workers, students), spares)


def _is_chosen(name: str, patterns: Sequence[str]) -> bool:
    return not patterns or any(name == pattern or fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"expected at least 1, got {number}")
    return number


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
