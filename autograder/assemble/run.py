"""A learner's own code in one file: `python -m autograder assemble` gathers what passes into my_transformer.py.

Every answer is judged alone with what it needs, and once more in the file where it runs other code there.
"""

import argparse
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from autograder import catalogue, course
from autograder.assemble import gather, write
from autograder.assemble.gather import Piece, Unreadable
from autograder.catalogue.exercise import Assignment, Exercise
from autograder.judging.verdict import Verdict
from autograder.judging.words import explanation
from autograder.prepare.trial import Trials
from autograder.sandbox import backends
from autograder.sandbox.backends import SandboxError
from transformer_ref.mine import FILE

KEY = b"assemble"  # hidden inputs are drawn from it: nothing is graded here, and the same notebooks give the same file
LONGEST = 160  # letters of a reason


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument(
        "--from",
        dest="folder",
        type=Path,
        metavar="FOLDER",
        help="your notebooks (default: exercises/ where there is one, else this folder)",
    )
    parser.add_argument(
        "--output", type=Path, metavar="FILE", help=f"what to write (default: {FILE} in the folder of your notebooks)"
    )


def run(chosen: argparse.Namespace) -> int:
    """Gather, write, and say what is in; 0 when something could be written, else 1.

    Raises CourseError for a folder without notebooks, or a file that somebody else has written.
    """
    folder = chosen.folder or (Path("exercises") if Path("exercises").is_dir() else Path())
    output = chosen.output or folder / FILE
    assignments = catalogue.ASSIGNMENTS
    found = gather.notebooks(folder, assignments) if folder.is_dir() else {}
    if not found:
        raise course.CourseError(
            f"There is no notebook of this course in {folder.resolve()}. `--from FOLDER` names the folder of yours."
        )
    _refuse_foreign(output)
    _say_who_runs()
    with Trials(trust=True) as trials:
        entries = list(_entries(trials, assignments, found))
        text = _settle(trials, entries, sum(len(assignment.exercise_ids) for assignment in assignments))
    _report(assignments, found, entries)
    kept = [entry for entry in entries if entry.piece]
    if not kept:
        print("Nothing passes yet, so nothing was written.")
        return 1
    for exercise, names in text.renamed.items():
        for old, new in names.items():
            print(f"{exercise}: its {old} is called {new} in the file, where {old} is something else already.")
    _write(output, text.text)
    print(f"{output}: {len(kept)} exercises. In Python: from {output.stem} import {kept[-1].exercise.names[0]}")
    return 0


@dataclass
class Entry:
    """What became of an exercise. piece: None when it is not in the file, and `reason` says why."""

    assignment: Assignment
    exercise: Exercise
    piece: Piece | None = None
    reason: str = ""

    def refuse(self, reason: str) -> None:
        self.piece, self.reason = None, reason


def _entries(trials: Trials, assignments: Sequence[Assignment], found: dict[str, list[Path]]) -> Iterator[Entry]:
    """Each exercise of the notebooks found, judged by itself."""
    for assignment in assignments:
        if assignment.id not in found:
            continue
        cells = list(course.code_cells(course.read_notebook(found[assignment.id][0])))
        for exercise in assignment.exercises:
            entry = Entry(assignment, exercise)
            try:
                entry.piece = gather.piece(cells, assignment, exercise)
                verdict = _judged(trials, exercise, "\n\n".join(each.text for each in entry.piece.statements))
                if not verdict.passed:
                    entry.refuse(_reason(verdict))
            except Unreadable as error:
                entry.refuse(str(error))
            yield entry


def _settle(trials: Trials, entries: Sequence[Entry], of: int) -> write.Written:
    """The file of all that passes, once every part of it also passes there; refuses the others."""
    while True:
        in_file = {entry.exercise.id for entry in entries if entry.piece}
        for entry in entries:
            if entry.piece and (lacking := sorted(entry.piece.uses - in_file)):
                entry.refuse(f"it uses {', '.join(lacking)}, which is not in the file")
        kept = [entry for entry in entries if entry.piece]
        if len(kept) < len(in_file):
            continue
        text = write.as_file([entry.piece for entry in kept], of)
        refused = set()
        for entry in _to_ask_again(kept, text):
            if entry.piece.uses & refused:
                continue  # no wonder; the next round says so
            verdict = _judged(trials, entry.exercise, text.text)
            if not verdict.passed:
                entry.refuse(f"it passes by itself, and not beside your other code: {_reason(verdict)}")
                refused.add(entry.exercise.id)
        if not refused:
            return text


def _to_ask_again(kept: Sequence[Entry], text: write.Written) -> list[Entry]:
    """Those that run other code in the file than they did alone, and who depends on them; and one that shows that the
    whole file runs."""
    names = {name for entry in kept for name in entry.exercise.names}
    other = {entry.exercise.id for entry in kept if entry.piece.given & names} | set(text.renamed)
    for entry in kept:  # in the order of the notebook, so what is used stands before who uses it
        if entry.piece.uses & other:
            other.add(entry.exercise.id)
    return [entry for entry in kept if entry.exercise.id in other or entry is kept[-1]]


def _judged(trials: Trials, exercise: Exercise, source: str) -> Verdict:
    return trials.judge(exercise, [], source, FILE, KEY)


def _reason(verdict: Verdict) -> str:
    if verdict.blank:
        return "not written yet"
    said = " ".join(explanation(verdict).split())
    return said if len(said) <= LONGEST else f"{said[:LONGEST].rsplit(' ', 1)[0]} ..."


def _refuse_foreign(output: Path) -> None:
    try:
        foreign = write.WRITTEN not in output.read_text(encoding="utf-8")
    except FileNotFoundError:
        return
    except (OSError, UnicodeDecodeError):
        foreign = True
    if foreign:
        raise course.CourseError(f"{output} was not written by this command. `--output FILE` names another file.")


def _say_who_runs() -> None:
    try:
        backends.choose()
    except SandboxError:
        print("The cells run with all of your rights here, as in Jupyter: assemble only notebooks that you wrote.")


def _report(assignments: Sequence[Assignment], found: dict[str, list[Path]], entries: Sequence[Entry]) -> None:
    """One line for each exercise: whether it is in, and why not; where it stands on the package instead of own code."""
    in_file = {name for entry in entries if entry.piece for name in entry.exercise.names}
    for assignment in assignments:
        if assignment.id not in found:
            print(f"{assignment.id}: no notebook here")
            continue
        path, *others = found[assignment.id]
        print(f"{assignment.id}: {path}" + (f" (not {', '.join(map(str, others))})" if others else ""))
        for entry in entries:
            if entry.assignment is not assignment:
                continue
            name = f"{entry.exercise.number} {', '.join(entry.exercise.names)}"
            if entry.piece is None:
                print(f"  {'·' if entry.reason == 'not written yet' else '✗'} {name}: {entry.reason}")
                continue
            given = sorted(entry.piece.given)
            said = [f"{each}: {'yours' if each in in_file else 'the package’s'}" for each in given]
            print(f"  ✓ {name}" + (f" (with {', '.join(said)})" if said else ""))


def _write(path: Path, text: str) -> None:
    """Under a temporary name first, so that no half of it is ever read."""
    path.parent.mkdir(parents=True, exist_ok=True)
    half = path.with_name(f".{path.name}.{os.getpid()}")
    half.write_text(text, encoding="utf-8")
    half.replace(path)
