"""Which submissions say the same thing in the same words, where neither the task nor the usual answers explain it.

`python -m autograder similar ASSIGNMENT` compares every two submissions by copydetect (winnowing: Schleimer, Wilkerson
and Aiken, SIGMOD 2003), which looks through other names and comments. Given code, the solutions and every answer that
the catalogue knows, right or wrong, are left out. The remaining similarity is a reason to look, never a proof.
"""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from itertools import combinations
from pathlib import Path

import numpy as np
from copydetect import CodeFingerprint
from copydetect.detector import compare_files
from markupsafe import Markup
from nbformat import NotebookNode

from autograder import course
from autograder.catalogue.exercise import Assignment
from autograder.intake import take_in
from autograder.reports import pages, results
from transformer_ref.atomic_write import atomic_write

PASSAGE = 25  # characters of code, with every name as one letter, that a passage must have: copydetect's default
LEAST = 3 * PASSAGE  # characters in all: a line or two say nothing
SHARE = 0.3  # of what is a student's own; less is shown only on request
MOST = 100  # pairs on the page
OWN = "cells of their own"

Work = Mapping[str, str]  # exercise's id, or OWN -> code


@dataclass(frozen=True)
class Pair:
    """Two submissions. `share`: the larger share, 0 to 1, of one student's own lines that are in the other's.
    `passages`: part of the work -> for each of the two, (start, end) of common text."""

    students: tuple[str, str]
    share: float
    passages: Mapping[str, tuple[list[tuple[int, int]], ...]]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    course.add_assignment(parser)
    parser.add_argument(
        "--share",
        type=_fraction,
        default=SHARE,
        metavar="FRACTION",
        help=f"show pairs that share at least this much (default: {SHARE})",
    )
    parser.add_argument("--output", type=Path, metavar="FILE", help="default: classroom/similar/ASSIGNMENT.html")


def run(chosen: argparse.Namespace) -> int:
    """Write the page and print its path. Raises CourseError without submissions."""
    root = course.find_root()
    assignment = results.find_assignment(chosen.assignment)
    path = chosen.output or root / "classroom" / "similar" / f"{assignment.id}.html"
    works = read_works(root, assignment)
    found = pairs(works, known_code(root, assignment), chosen.share)
    atomic_write(path, page(assignment, works, found, chosen.share))
    print(path)
    return 0


def read_works(root: Path, assignment: Assignment) -> dict[str, Work]:
    """Student -> their submitted code, without released cells. Raises CourseError if nobody submitted any."""
    submitted = root / results.directory(root).submitted_directory
    released = take_in.released_notebook(root, assignment)
    works = {}
    for student, folder in take_in.submissions(submitted, assignment).items():
        if work := _work(take_in.take_in(released, assignment, folder).notebook, released):
            works[student] = work
    if not works:
        raise course.CourseError(f"Nobody has handed in an answer to {assignment.id}: {submitted} holds none.")
    return works


def known_code(root: Path, assignment: Assignment) -> list[str]:
    """Code that two students may share without copying."""
    sources = [
        source
        for step in ("exercises", "solutions")
        for _, source, _ in course.code_cells(course.read_notebook(course.notebook_path(root, step, assignment)))
    ]
    answers = [answer.source for each in assignment.exercises for answer in (*each.correct, *each.mistakes)]
    return sources + answers


def pairs(works: Mapping[str, Work], known: Sequence[str], share: float = SHARE) -> list[Pair]:
    """The pairs that share at least this much of their own code, the most similar first.

    works: student -> work. known: code that does not count.
    """
    common = np.unique([hashed for source in known for hashed in _fingerprint(source, []).hashes])
    prints = {
        student: {place: _fingerprint(code, common) for place, code in work.items()} for student, work in works.items()
    }
    compared = (_pair(students, *map(prints.get, students)) for students in combinations(sorted(prints), 2))
    found = [pair for pair in compared if pair is not None and pair.share >= share]
    return sorted(found, key=lambda pair: (-pair.share, pair.students))


def page(assignment: Assignment, works: Mapping[str, Work], found: Sequence[Pair], share: float) -> str:
    """The report as one self-contained file."""
    names = {exercise.id: f"{exercise.number} {exercise.names[0]}" for exercise in assignment.exercises}
    return pages.page(
        "similar.html.j2",
        title=pages.title(assignment.id, assignment.notebook),
        compared=len(works),
        share=round(100 * share),
        left_out=max(0, len(found) - MOST),
        pairs=[
            {
                "share": round(100 * pair.share),
                "students": pair.students,
                "places": [
                    (names.get(place, place), [*map(_marked, (works[who][place] for who in pair.students), spans)])
                    for place, spans in pair.passages.items()
                ],
            }
            for pair in found[:MOST]
        ],
    )


def _work(notebook: NotebookNode, released: NotebookNode) -> Work:
    """The student's own code in a notebook, by exercise."""
    given = {cell.source for cell in released.cells}
    work: dict[str, str] = {}
    for cell in notebook.cells:
        if cell.cell_type == "code" and cell.source not in given:
            place = cell.metadata.get("nbgrader", {}).get("grade_id", OWN)
            work[place] = f"{work[place]}\n\n{cell.source}" if place in work else cell.source
    return work


def _pair(students: tuple[str, str], one: Mapping, other: Mapping) -> Pair | None:
    """The similarity of two works; None if it is below the limit."""
    passages, shared = {}, [0.0, 0.0]
    for place in one.keys() & other.keys():
        if one[place].hashes.isdisjoint(other[place].hashes):
            continue
        _, shares, found = compare_files(one[place], other[place])
        passages[place] = tuple(map(_spans, found))
        for side, prints in enumerate((one, other)):
            shared[side] += shares[side] * prints[place].token_coverage
    if max(shared) < LEAST:
        return None
    wholes = [sum(each.token_coverage for each in prints.values()) for prints in (one, other)]
    share = max(part / whole for part, whole in zip(shared, wholes, strict=True))
    return Pair(students, min(1.0, float(share)), {place: passages[place] for place in one if place in passages})


def _fingerprint(source: str, known: Sequence[int]) -> CodeFingerprint:
    return CodeFingerprint("answer.py", PASSAGE, 1, known, language="python", fp=StringIO(source))


def _spans(slices: np.ndarray) -> list[tuple[int, int]]:
    return [(int(start), int(end)) for start, end in zip(*slices, strict=True)]


def _marked(source: str, spans: Sequence[tuple[int, int]]) -> Markup:
    """The text with the passages marked."""
    text, done = Markup(), 0
    for start, end in sorted(spans):
        start, end = max(start, done), min(end, len(source))
        if start < end:
            text += Markup("{}<mark>{}</mark>").format(source[done:start], source[start:end])
            done = end
    return text + source[done:]


def _fraction(text: str) -> float:
    if not 0 < float(text) <= 1:
        raise argparse.ArgumentTypeError(f"expected a number above 0 and up to 1, got {text}")
    return float(text)
