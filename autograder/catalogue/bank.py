"""The bank of known mistakes as data: `python -m autograder known-mistakes [ASSIGNMENT ...]` writes one JSON object
a line.

For research on feedback, and for courses that want the mistakes without the grader. The order is that of the course
and of each entry, and every exercise is written as soon as it is read. A teacher's own exercises are not in it: they
are not ours to publish.
"""

import argparse
import json
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TextIO

from autograder import catalogue
from autograder.catalogue import inventory
from autograder.catalogue.exercise import Assignment, Exercise, Section
from autograder.course import CourseError

LICENSE = "Apache-2.0 AND CC-BY-4.0"  # the code, and the words


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument(
        "assignments", nargs="*", metavar="ASSIGNMENT", help="such as 05_self_attention (default: all of the course)"
    )
    parser.add_argument(
        "--from-class",
        action="store_true",
        help="instead, the mistakes that you commented on in class, each with a program of ours that behaves alike",
    )
    parser.add_argument(
        "--benchmark",
        action="store_true",
        help="instead, count how many of the mistakes a score, unit tests and the judge of this course identify",
    )
    parser.add_argument(
        "--score",
        type=Path,
        metavar="FILE",
        help="instead, count how many another program identified: JSON lines with the id of a mistake and the name",
    )
    parser.add_argument("--output", type=Path, metavar="FILE", help="default: the terminal")


def run(chosen: argparse.Namespace) -> int:
    """Write the lines. Raises CourseError, which names the assignments, for an unknown one."""
    assignments = _chosen(chosen.assignments)
    if chosen.benchmark or chosen.score:
        return _identified(assignments, chosen)
    found = _from_class(assignments) if chosen.from_class else records(assignments)
    if chosen.output is None:
        try:
            _write(found, sys.stdout)
            sys.stdout.flush()
        except BrokenPipeError:  # the reader stopped, as `head` does; Python flushes once more when it ends
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    with chosen.output.open("w", encoding="utf-8", newline="\n") as file:
        count = _write(found, file)
    print(f"{count:,} known mistakes: {chosen.output}")
    return 0


def records(assignments: Sequence[Assignment] = catalogue.ASSIGNMENTS) -> Iterator[dict[str, Any]]:
    """One mapping for each known mistake, in the order of the course. Its keys are explained in
    book/teach/beliefs.md."""
    asked = {
        (belief.exercise, belief.mistake): question.id
        for question in inventory.read().questions
        for belief in question.wrong
    }
    for assignment in assignments:
        for exercise in assignment.exercises:
            yield from _of(assignment, exercise, asked)


def _of(assignment: Assignment, exercise: Exercise, asked: dict[tuple[str, str], str]) -> Iterator[dict[str, Any]]:
    for mistake in exercise.mistakes:
        yield record(
            assignment,
            exercise,
            name=mistake.name,
            source=str(mistake.source),
            message=mistake.message,
            section=mistake.reread,
            told_by="symptom" if mistake.shows else "values",
            asked_in=asked.get((exercise.id, mistake.name)),
        )


def _from_class(assignments: Sequence[Assignment]) -> Iterator[dict[str, Any]]:
    """The records of mistakes that a teacher has commented on."""
    from autograder.prepare import class_mistakes  # needs a class, and a system that forks

    for assignment, exercise, comment, source in class_mistakes.found(assignments):
        name = f"met in class, {comment.alike[0][:4]}"
        yield record(
            assignment,
            exercise,
            name=name,
            source=source,
            message=comment.text,
            section=exercise.section,
            license=None,
        )


def _identified(assignments: Sequence[Assignment], chosen: argparse.Namespace) -> int:
    """Count how many mistakes are identified, by the course and by unit tests."""
    from autograder.prepare import identification  # needs torch, and some minutes

    if chosen.score:
        identification.print_scores(identification.score(chosen.score, assignments))
        return 0
    counts = identification.benchmark(assignments)
    identification.print_benchmark(counts)
    if chosen.output:
        identification.write(counts, chosen.output)
    return 0


def record(
    assignment: Assignment,
    exercise: Exercise,
    name: str,
    source: str | None,
    message: str,
    section: Section,
    told_by: str = "values",
    asked_in: str | None = None,
    license: str | None = LICENSE,
) -> dict[str, Any]:
    """One line of the data set."""
    return {
        "id": f"{exercise.id}/{name}",
        "chapter": assignment.id,
        "exercise": exercise.id,
        "number": exercise.number,
        "defines": list(exercise.names),
        "name": name,
        "source": source,
        "right": str(exercise.correct[0].source),
        "message": message,
        "told_by": told_by,
        "section": section.label,
        "section_title": section.title,
        "asked_in": asked_in,
        "license": license,
    }


def _write(found: Iterable[dict[str, Any]], file: TextIO) -> int:
    written = 0
    for line in found:
        file.write(json.dumps(line, ensure_ascii=False) + "\n")
        file.flush()
        written += 1
    return written


def _chosen(names: Sequence[str]) -> Sequence[Assignment]:
    known = {assignment.id: assignment for assignment in catalogue.ASSIGNMENTS}
    for name in names:
        if name not in known:
            raise CourseError(f"ASSIGNMENT: expected some of {', '.join(known)}, got {name!r}")
    return [known[name] for name in names] or catalogue.ASSIGNMENTS
