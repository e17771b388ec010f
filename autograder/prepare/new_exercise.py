"""An exercise of your own to start from: `python -m autograder new-exercise NAME --assignment own_WEEK`.

It is complete and runs at once: entry, cells, tests. Its task is only an example; replace every line that says CHANGE.
"""

import argparse
import keyword
import re
from dataclasses import replace
from pathlib import Path

from autograder import catalogue, course
from autograder.catalogue import own
from autograder.catalogue.exercise import Assignment, Exercise
from autograder.course import CourseError
from autograder.prepare import own_notebook, task_cells
from autograder.prepare.starter.centered_rows import EXERCISE

STARTER = Path(__file__).resolve().parent / "starter"
EXAMPLE = "centered-rows"
ASSIGNMENT = re.compile(rf"{own.PREFIX}[a-z0-9]+(_[a-z0-9]+)*")
NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")

OF_THE_FOLDER = '"""Your own exercises: a folder an assignment. No update of the course touches them."""\n'
SETTINGS = '''"""{assignment}: what its notebook may use. Its exercises are the files next to this one."""

VISIBLE_MODULES = {modules}  # of transformer_ref, such as "transformer_ref.model.softmax": what may be imported
FILES = {files}  # names of files that students hand in with the notebook
COURSE_EXERCISES = {borrowed}  # ids of the course's exercises that the notebook holds too
'''


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("name", metavar="NAME", help='the exercise\'s id, such as "row-lengths"')
    parser.add_argument(
        "--assignment", required=True, metavar="OWN_NAME", help="such as own_week3; it is made if there is none"
    )
    parser.add_argument(
        "--copy-of", default="", metavar="CHAPTER", help="start the assignment as a copy of a chapter's notebook"
    )


def run(chosen: argparse.Namespace) -> int:
    """Write the files and list them. Raises CourseError for an invalid name; nothing is overwritten."""
    root = course.find_root()
    written = write(root, chosen.name, chosen.assignment, chosen.copy_of)
    print("Written, and ready to run:")
    for path in written:
        print(f"  {path.relative_to(root)}")
    print("Change what says CHANGE, in the entry and in the notebook. Then:")
    print(f"  python -m autograder release {chosen.assignment}")
    print(f"  python -m autograder doctor {chosen.name}")
    print("  python -m pytest own")
    return 0


def write(root: Path, name: str, assignment: str, chapter: str = "") -> list[Path]:
    """Write an exercise's entry, test and cells, and missing files around them; returns the paths."""
    source = _checked(name, assignment, chapter)
    place = root / own.FOLDER / assignment
    entry = place / f"{name.replace('-', '_')}.py"
    notebook_path = root / "solutions" / assignment / f"{assignment.removeprefix(own.PREFIX)}.ipynb"
    if entry.exists():
        raise CourseError(f"{entry.relative_to(root)} is there already.")
    if chapter and notebook_path.exists():
        raise CourseError(f"{notebook_path.relative_to(root)} is there already; --copy-of begins a new assignment.")
    notebook = own_notebook.beginning(assignment)
    if notebook_path.exists() or chapter:
        given = course.notebook_path(root, "solutions", source) if chapter else notebook_path
        notebook = course.read_notebook(given)
    known = catalogue.find_assignment(assignment)
    number = str(1 + len((source or known).exercises if source or known else ()))
    texts = {
        root / own.FOLDER / "__init__.py": OF_THE_FOLDER,
        place / "__init__.py": _settings(assignment, source),
        entry: _renamed(EXAMPLE, name).replace('number="1"', f'number="{number}"'),
        place / f"test_{entry.name}": _renamed(f"test-{EXAMPLE}", name),
    }
    written = []
    for path, text in texts.items():
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            written.append(path)
    task_cells.write(notebook_path, own_notebook.with_exercise(notebook, _example(name, number)))
    return [*written, notebook_path]


def _checked(name: str, assignment: str, chapter: str) -> Assignment | None:
    """The chapter to copy, if one is named. Raises CourseError naming the invalid argument."""
    if not NAME.fullmatch(name) or keyword.iskeyword(name.replace("-", "_")):
        raise CourseError(f'NAME: expected small letters joined by -, such as "row-lengths", got {name!r}.')
    if name.startswith("test-"):
        raise CourseError(f"NAME: expected a name that does not begin with test-, as tests do, got {name!r}.")
    if not ASSIGNMENT.fullmatch(assignment):
        raise CourseError(f"--assignment: expected a name such as {own.PREFIX}week3, got {assignment!r}.")
    catalogue.find_assignment(assignment)  # says what is wrong with it, if it cannot be read
    if catalogue.find(name) is not None:
        raise CourseError(f"NAME: {name!r} is the id of an exercise that exists; choose another.")
    found = next((each for each in catalogue.ASSIGNMENTS if each.id == chapter), None)
    if chapter and found is None:
        known = ", ".join(each.id for each in catalogue.ASSIGNMENTS)
        raise CourseError(f"--copy-of: expected a chapter's assignment ({known}), got {chapter!r}.")
    return found


def _renamed(file: str, name: str) -> str:
    text = (STARTER / f"{file.replace('-', '_')}.py").read_text(encoding="utf-8")
    return text.replace(EXAMPLE, name).replace(EXAMPLE.replace("-", "_"), name.replace("-", "_"))


def _settings(assignment: str, source: Assignment | None) -> str:
    return SETTINGS.format(
        assignment=assignment,
        modules=source.visible_modules if source else (),
        files=source.files if source else (),
        borrowed=tuple(exercise.id for exercise in source.exercises) if source else (),
    )


def _example(name: str, number: str) -> Exercise:
    """The starter's entry under another name, for the cells."""
    (right,) = EXERCISE.reference.values()
    return replace(EXERCISE, id=name, number=number, reference={name.replace("-", "_"): right})
