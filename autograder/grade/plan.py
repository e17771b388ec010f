"""Plans a run: a new one or a resumed one, and which students it grades, such as one with a newer submission."""

import fnmatch
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from autograder.course import CourseError
from autograder.grade import changes
from autograder.grade.journal import Journal, Journals
from autograder.grade.older_rules import outdated_of
from autograder.grade.options import Options
from autograder.grade.progress import say
from autograder.policy import times

if TYPE_CHECKING:
    from autograder.grade.gradebook import Classroom


def plan(classroom: "Classroom", journals: Journals, options: Options) -> tuple[Journal | None, list[str]]:
    """The run's log and its students; None if there is nothing to do.

    Raises CourseError if nobody handed in the assignment.
    """
    for sentence in journals.damage():
        say(sentence)
    now = changes.versions(classroom.assignment, classroom.root / "exercises" / classroom.assignment)
    if options.resume:
        interrupted = journals.interrupted()
        if interrupted:
            return _resumed(interrupted, classroom, journals, options, now)
        say("No run was interrupted: grading everyone who has no grade yet.")
    waiting = _waiting(classroom, journals, options)
    _say_what_is_left(classroom, journals, waiting)
    return (journals.new(waiting, _kept(options), now), waiting) if waiting else (None, [])


def _say_what_is_left(classroom: "Classroom", journals: Journals, waiting: Sequence[str]) -> None:
    """Report an interrupted run if this one does not grade all of its students, such as the rest of a forced one."""
    interrupted = journals.interrupted()
    if interrupted is None:
        return
    interrupted.close()
    left = [student for student in interrupted.left() if student not in waiting]
    if left:
        how = "they are not part of this run" if waiting else "--resume goes on with them"
        begun = _begun(interrupted, classroom)
        say(f"The run of {begun} was interrupted before {len(left)} of {len(interrupted.students)} were graded; {how}.")


def _begun(journal: Journal, classroom: "Classroom") -> str:
    return times.short(datetime.fromisoformat(journal.events[0]["time"]), classroom.zone)


def _resumed(
    interrupted: Journal, classroom: "Classroom", journals: Journals, options: Options, now: dict[str, str]
) -> tuple[Journal, list[str]]:
    """The rest of the run, or all of it if the rules have changed since, so that one run has one set of rules."""
    begun = _begun(interrupted, classroom)
    moved = changes.rules_changed(interrupted.events[0].get("versions", {}), now)
    left, everyone = interrupted.left(), interrupted.students
    if not moved or len(left) == len(everyone):
        say(f"Going on with the run of {begun}: {len(left)} of {len(everyone)} are left.")
        interrupted.write("resume", workers=options.workers, versions=now)
        return interrupted, left
    say(
        f"Since the run of {begun} was begun, {' and '.join(moved)} changed. One run measures everyone alike: its "
        f"{len(everyone)} submissions are graded by the rules of now, the {len(everyone) - len(left)} that were graded "
        "already too."
    )
    interrupted.write("end", graded=len(everyone) - len(left), failed=0)
    interrupted.close()
    return journals.new(everyone, _kept(options), now), list(everyone)


def _waiting(classroom: "Classroom", journals: Journals, options: Options) -> list[str]:
    half, last = journals.half_written(), journals.last_grades()
    present = classroom.handed_in()
    chosen = [name for name in present if _is_chosen(name, options.students)]
    if not chosen:
        wanted = f" that match {' or '.join(options.students)}" if options.students else ""
        raise CourseError(
            f"There are no submissions{wanted} for {classroom.assignment}; {len(present)} students have one."
        )
    if options.outdated:
        older = outdated_of(classroom.root, classroom.assignment, classroom.graded())
        waiting = [name for name in chosen if name in older]
        say(f"{len(waiting)} of {len(chosen)} were graded by older rules or dates.")
        return waiting
    waiting = [
        name
        for name in chosen
        if options.force or name in half or _is_new(classroom, name, present[name], last.get(name))
    ]
    if not waiting:
        say(f"All {len(chosen)} submissions are graded already; --force grades them again.")
    elif len(waiting) < len(chosen):
        say(f"{len(chosen) - len(waiting)} are graded already; grading the other {len(waiting)}.")
    return waiting


def _is_new(classroom: "Classroom", student: str, folder: Path, last: Mapping[str, Any] | None) -> bool:
    """Whether a submission is graded, for the first time or again: it has no result, or it is newer work.

    last: the log's line about the student's last grading, or None.
    """
    return not (classroom.has_result(student, last) and classroom.is_same_work(student, folder, last))


def _kept(options: Options) -> dict[str, object]:
    return {key: value for key, value in asdict(options).items() if key in ("force", "trust", "students", "outdated")}


def _is_chosen(name: str, patterns: Sequence[str]) -> bool:
    return not patterns or any(name == pattern or fnmatch.fnmatchcase(name, pattern) for pattern in patterns)
