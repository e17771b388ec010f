"""A check without Jupyter: `python -m autograder try EXERCISE FILE`, for people who work in an editor.

The answer is a Python file, or a notebook whose cell of that exercise is taken, after those earlier answers in it that
it uses. It is judged as grading does: in a sandbox where there is one, after the set-up cells of the exercise's
notebook, with hidden inputs. Outside grading all may be shown of those, as in a notebook's own check.
"""

import argparse
import json
import os
import re
import secrets
import sys
import time
import webbrowser
from collections.abc import Sequence
from pathlib import Path

from autograder import address, catalogue, course
from autograder.assemble import judges
from autograder.assemble.judges import Judge
from autograder.catalogue.exercise import Exercise
from autograder.diagnosis.evidence import explained
from autograder.feedback import render
from autograder.feedback.messages import explanation
from autograder.feedback.report import report
from autograder.judging.verdict import Verdict, not_checked
from autograder.learn import notebooks

LOOK_AGAIN = 0.3  # seconds between two looks at the files


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("exercise", help='its id or number, such as "attention-weights" or 5.2')
    parser.add_argument(
        "answers", nargs="+", type=Path, metavar="FILE", help="Python files with one answer each, or notebooks"
    )
    parser.add_argument("--watch", action="store_true", help="check again whenever a file is saved, until Ctrl-C")
    parser.add_argument("--open", action="store_true", help="open the section of the book that the report names")
    parser.add_argument(
        "--as-graded", action="store_true", help="report hidden checks only as far as a grade's feedback does"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object per line")
    parser.add_argument(
        "--trust-submissions", action="store_true", help="run the answers without a sandbox, with all of your rights"
    )


def run(chosen: argparse.Namespace) -> int:
    """Print each file's report; 0 if all of them are correct, else 1.

    Raises CourseError for an unknown exercise, one whose notebook is missing, and in a course without a sandbox, unless
    submissions are trusted.
    """
    exercise = find(chosen.exercise)
    set_up = _set_up(exercise)
    judge, apart = judges.chosen()
    if not (apart or chosen.trust_submissions or isinstance(judge, judges.InThisProcess)) and _is_in_a_course():
        from autograder.sandbox import backends

        backends.choose()  # raises: a teacher's files may be anybody's
    if not (apart or chosen.trust_submissions or chosen.json):
        print("The code runs with all of your rights here, as in Jupyter: check only files that you trust.")
    right = True
    with judge as trials:
        seen = {file: _stamp(file) for file in chosen.answers}
        for file in chosen.answers:
            right &= _check(trials, exercise, set_up, file, chosen)
        if chosen.watch:
            print(f"Watching {', '.join(map(str, seen))}. Ctrl-C ends.", flush=True)
        while chosen.watch:
            time.sleep(LOOK_AGAIN)
            for file, before in seen.items():
                if (now := _stamp(file)) != before and now is not None:  # an editor may remove and write it anew
                    seen[file] = now
                    print(f"\n{time.strftime('%H:%M:%S')}", flush=True)
                    _check(trials, exercise, set_up, file, chosen)
    return 0 if right else 1


def find(named: str) -> Exercise:
    """The exercise of this id or number. Raises CourseError that lists the ids where there is none."""
    exercise = catalogue.find(named)
    chapter, _, place = named.partition(".")
    if exercise is None and chapter.isdigit() and place.isdigit():
        number = f"{int(chapter):02d}.{int(place)}"
        begun = [each for each in catalogue.assignments() if each.id.startswith(number[:2])]
        exercise = next((each for chosen in begun for each in chosen.exercises if each.number == number), None)
    if exercise is None:
        raise course.CourseError(
            f"There is no exercise {named!r}. The exercises are: {', '.join(catalogue.exercise_ids())}."
        )
    return exercise


def _set_up(exercise: Exercise) -> list[str]:
    """The cells before the answer: of the course here, else of the notebooks in the package."""
    assignment = catalogue.assignment_of(exercise)
    if _is_in_a_course():
        return course.set_up_cells(course.find_root(), assignment, exercise, training=exercise.trained)
    packed = notebooks.source()
    return course.set_up_cells(packed.parent, assignment, exercise, packed.name, exercise.trained)


def _is_in_a_course() -> bool:
    try:
        return course.find_root().is_dir()
    except course.CourseError:
        return False


def _check(trials: Judge, exercise: Exercise, set_up: Sequence[str], file: Path, chosen: argparse.Namespace) -> bool:
    """Judge one file, print its report, and return whether it is correct."""
    try:
        *used, source = _answers(exercise, file)
    except (OSError, UnicodeDecodeError, course.CourseError) as error:
        said = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        judged: Verdict = not_checked(exercise, f"{file} cannot be read: {said}")
    else:
        # Inputs are drawn only for this check, so what a report shows of them does not help with a grade.
        key = secrets.token_bytes(32)
        judged = trials.judge(exercise, [*set_up, *used], source, file.name, key, disclosed=not chosen.as_graded)
    told = explained(judged)
    if chosen.json:
        print(json.dumps(as_json(file, told), ensure_ascii=False), flush=True)
    else:
        parts = report(told)
        print(f"{file}\n{render.as_terminal(parts) if _colored() else render.as_text(parts)}\n", flush=True)
    if chosen.open and not told.passed:
        section = told.misconception.reread if told.misconception else exercise.section
        if page := address.link(address.book_address(), section):
            webbrowser.open(page)
    return told.passed


def _answers(exercise: Exercise, file: Path) -> list[str]:
    """The text of a Python file; of a notebook the cell for this exercise, after the earlier answers that it uses."""
    if file.suffix != ".ipynb":
        return [file.read_text(encoding="utf-8-sig")]
    earlier: list[tuple[tuple[str, ...], str]] = []  # names, source
    for grade_id, source, _ in course.code_cells(course.read_notebook(file)):
        if grade_id == exercise.id:
            used = [source]
            for names, before in reversed(earlier):
                if any(re.search(rf"\b{name}\b", text) for name in names for text in used):
                    used.insert(0, before)
            return used
        if made := catalogue.find(grade_id or ""):
            earlier.append((made.names, source))
    raise course.CourseError(f"it has no cell for {exercise.id}")


def _stamp(file: Path) -> tuple[int, int] | None:
    """A value that changes when the file is saved; None if there is no file."""
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


def _colored() -> bool:
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def as_json(file: Path, judged: Verdict) -> dict:
    """A verdict as an object of JSON."""
    found = explained(judged).misconception
    return {
        "file": str(file),
        "exercise": judged.exercise.id,
        "points": judged.points,
        "max_points": judged.exercise.points,
        "misconception": found.name if found else None,
        "message": explanation(judged),
    }
