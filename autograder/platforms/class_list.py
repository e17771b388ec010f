"""Who is in the class: `python -m autograder roster FILE` brings a list into the gradebook.

The file is a CSV table as spreadsheets save it. `nbgrader db student import` reads only one form of it, and loses
everybody below an empty line. An id becomes the name of a folder and part of patterns, so not every text will do: what
cannot work is refused by line before anything is written.
"""

import argparse
import unicodedata
from collections import defaultdict
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from pathlib import Path

from nbgrader.api import Gradebook

from autograder import course
from autograder.course import CourseError
from autograder.grade import nbgrader_patches
from autograder.platforms import tables
from autograder.platforms.roster import listed
from autograder.platforms.tables import Table, cell, read_table
from autograder.reports import results
from autograder.reports.results import Student

COLUMNS = {  # field of the gradebook -> what lists call it, in small letters
    "id": ("id", "student id", "student_id", "username", "user name", "login", "kennung", "benutzername"),
    "first_name": ("first_name", "first name", "firstname", "given name", "vorname", "prénom", "nombre", "nome"),
    "last_name": ("last_name", "last name", "lastname", "surname", "nachname", "name", "nom", "apellidos", "cognome"),
    "email": ("email", "e-mail", "email address", "e-mail address", "mail", "e-mail-adresse", "courriel", "correo"),
    "lms_user_id": ("lms_user_id", "canvas id", "canvas_user_id"),
}
MOST_BYTES = 200  # of an id, as the name of a folder
NOT_IN_NAMES = '/\\*?[]:,;|<>"'  # of folders here or elsewhere, of patterns, or of lists of ids


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument(
        "file",
        type=Path,
        metavar="CSV",
        help="class list with a column id; first_name, last_name and email are optional",
    )


def run(chosen: argparse.Namespace) -> int:
    """Read the list, add everyone to the gradebook and print who is new. Raises CourseError for invalid ids."""
    places = results.directory(course.find_root())
    students = read(chosen.file)
    given = {student.id for student in students}
    nbgrader_patches.make_gradebooks_here()
    with Gradebook(places.db_url, places.course_id) as gradebook:
        there = {row.id for row in gradebook.students}
        if wrong := only_in_case([*there, *given], given):
            raise CourseError(f"{chosen.file}: nothing is written. {'; '.join(wrong)}.")
        for student in students:
            known = {name: value for name, value in vars(student).items() if name != "id" and value}
            gradebook.update_or_create_student(student.id, **known)
    new = given - there
    print(f"{len(students)} students in {chosen.file}: {len(new)} new, {len(given) - len(new)} known before")
    left = sorted(there - given)
    if left:
        print(f"  in the gradebook and not in this list, left as they are: {listed(left)}")
    return 0


def read(path: Path) -> list[Student]:
    """Everyone in a list. Raises CourseError naming every invalid line."""
    table = read_table(path)
    places = _places(table)
    if places["id"] is None:
        raise CourseError(f"{path}: expected a column id, got the columns {', '.join(table.header)}.")
    found: dict[str, int] = {}
    students, wrong = [], []
    for line, row in zip(table.lines, table.rows, strict=True):
        student = Student(**{name: cell(row, place).strip() for name, place in places.items()})
        if not student.id:
            wrong.append(f"line {line}: expected an id, got nothing")
        elif student.id in found:
            wrong.append(f"line {line}: {student.id} is there already, on line {found[student.id]}")
        elif reason := why_not(student.id):
            wrong.append(f"line {line}: {reason}")
        else:
            found[student.id] = line
            students.append(student)
    wrong += only_in_case(found, set(found))
    if wrong:
        raise CourseError(f"{path}: nothing is written. {'; '.join(wrong)}.")
    return students


def why_not(name: str) -> str:
    """Why an id is invalid, or ""."""
    if not name:
        return "the id '' cannot be the name of a folder"
    if name.startswith("."):
        return f"the id {name!r} begins with a full stop, and folders of such names are passed over"
    bad = sorted({sign for sign in name if sign in NOT_IN_NAMES or not sign.isprintable()})
    if bad:
        return f"the id {name!r} holds {' '.join(bad)}, which a folder's name or a pattern cannot"
    if name != name.strip() or name.endswith("."):
        return f"the id {name!r} begins or ends with a blank or a full stop"
    if len(name.encode(errors="replace")) > MOST_BYTES:
        return f"the id {name[:20]!r}... is longer than {MOST_BYTES} bytes"
    return ""


def only_in_case(names: Iterable[str], of: AbstractSet[str]) -> list[str]:
    """Ids that differ only in case, which are the same folder on many machines. of: only groups with one of these."""
    alike = defaultdict(set)
    for name in names:
        alike[unicodedata.normalize("NFC", name).casefold()].add(name)
    groups = [group for group in alike.values() if len(group) > 1 and group & of]
    return [f"the ids {' and '.join(sorted(group))} differ only in case" for group in groups]


def _places(table: Table) -> dict[str, int | None]:
    titles = [" ".join(title.casefold().split()) for title in table.header]
    if tables.is_canvas(table):  # whose column ID holds Canvas's own number
        titles = ["canvas id" if title == "id" else "id" if title == "sis login id" else title for title in titles]
    return {
        name: next((titles.index(word) for word in words if word in titles), None) for name, words in COLUMNS.items()
    }
