"""Grades in the forms that other systems read: `python -m autograder export ASSIGNMENT --format canvas`.

canvas, moodle: a CSV file for the gradebook's import. Both systems know students by ids of their own, so give them back
a file that they wrote (`--template`); without one, students are named by their nbgrader id and e-mail address.
gradescope: it imports no scores, so this is an "autograder" to upload: it runs nothing and hands out what is in it.
csv: everything, one line a student.

Canvas's rules are those of its gradebook importer; Moodle's those of "Grades > Import > CSV file" and of an
assignment's offline grading worksheet; Gradescope's are its autograder specification.
"""

import argparse
import csv
import io
import os
import re
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from autograder import course, gradescope, results
from autograder.course import CourseError
from autograder.results import Class, Graded, Student

FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")  # what a spreadsheet computes
CANVAS_NUMBER = re.compile(r"\s*\(\d+\)$")  # Canvas writes its own number behind an assignment's name
CANVAS = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section")
CANVAS_IDENTITY = ("ID", "SIS User ID", "SIS Login ID")
CANVAS_KEPT = ("Student", "LastName", "FirstName", *CANVAS_IDENTITY, "Integration ID", "Root Account", "Section")
MOODLE_IDENTITY = ("Identifier", "Email address", "ID number", "Username")
MOODLE_KEPT = ("Full name", "First name", "Last name", *MOODLE_IDENTITY)
WORKSHEET = {"Identifier", "Grade", "Maximum Grade"}  # the columns by which Moodle's grading worksheet is recognized


@dataclass
class Export:
    """What is written, and what a teacher has to know about it."""

    content: bytes
    suffix: str
    remarks: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Table:
    """A CSV file that another system wrote."""

    name: str
    header: list[str]
    rows: list[list[str]]
    delimiter: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("assignment", metavar="ASSIGNMENT", help="its folder's name, such as 05_self_attention")
    parser.add_argument("--format", choices=FORMATS, default="csv", help="for which system (default: csv)")
    parser.add_argument("--template", type=Path, metavar="FILE", help="a gradebook or worksheet of Canvas or Moodle")
    parser.add_argument("--column", metavar="NAME", help="the assignment's name over there (default: ASSIGNMENT)")
    parser.add_argument("--zero-for-absent", action="store_true", help="0 where nothing came (default: no grade)")
    parser.add_argument("--output", type=Path, metavar="FILE", help="default: classroom/exports/ASSIGNMENT-FORMAT...")


def run(chosen: argparse.Namespace) -> int:
    """Write the file and say where it is; 1 when there is something to look at, such as a grade without a place."""
    root = course.find_root()
    if chosen.template and chosen.format not in ("canvas", "moodle"):
        raise CourseError("--template: only Canvas and Moodle give out a file to be filled in.")
    assignment = results.find_assignment(chosen.assignment)
    graded = results.read_class(root, assignment)
    table = read_table(chosen.template) if chosen.template else None
    made = FORMATS[chosen.format](graded, table, chosen.column or assignment.id, chosen.zero_for_absent)
    path = chosen.output or root / "classroom" / "exports" / f"{assignment.id}-{chosen.format}{made.suffix}"
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
        file.write(made.content)
    os.replace(file.name, path)
    print(path)
    print("".join(f"{remark}\n" for remark in made.remarks), end="", file=sys.stderr)
    return 1 if made.remarks else 0


def read_table(path: Path) -> Table:
    """A CSV file with commas or semicolons. Raises CourseError naming the file when it is none."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise CourseError(f"{path} cannot be read: {error}.") from error
    first = text.partition("\n")[0]
    delimiter = ";" if first.count(";") > first.count(",") else ","
    rows = [row for row in csv.reader(io.StringIO(text), delimiter=delimiter) if row]
    if not rows:
        raise CourseError(f"{path} is empty: expected a line of column names and a line for each student.")
    return Table(path.name, [name.strip() for name in rows[0]], rows[1:], delimiter)


def plain(graded: Class, table: Table | None, column: str, zero: bool) -> Export:
    """One line a student: who, points of each exercise, the sum, the late penalty, the score, when."""
    exercises = graded.assignment.exercises
    who, sums = ["student_id", "last_name", "first_name", "email"], ["raw_score", "late_penalty", "score", "max_score"]
    lines = [[*who, "submitted", *(exercise.number for exercise in exercises), *sums, "timestamp"]]
    for student, each in _everyone(graded):
        who = [student.id, student.last_name, student.first_name, student.email]
        if each is None:
            nothing = ["0" if zero else ""]
            lines.append([*who, "no", *nothing * len(exercises), *nothing * 3, _number(graded.possible), ""])
            continue
        points = [_number(result.points) for result in each.results]
        sums = [_number(each.raw_score), _number(each.penalty), _number(each.score), _number(graded.possible)]
        moment = each.timestamp.isoformat(sep=" ", timespec="seconds") if each.timestamp else ""
        lines.append([*who, "yes", *points, *sums, moment])
    return Export(_csv([[safe(cell) for cell in line] for line in lines]), ".csv")


def canvas(graded: Class, table: Table | None, column: str, zero: bool) -> Export:
    """The columns that tell Canvas who somebody is, and this assignment's; no other grade is touched.

    Raises CourseError when the template is not a gradebook of Canvas.
    """
    if table is None:
        lines = [[*CANVAS, column], ["    Points Possible", "", "", "", "", _number(graded.possible)]]
        scores = {student.id: _score(each, zero) for student, each in _everyone(graded)}
        lines += [
            [safe(_last_first(student)), "", "", student.id, "", scores[student.id]] for student, _ in _everyone(graded)
        ]
        return _checked(lines, (3,), ",")
    if "ID" not in table.header or "Section" not in table.header or table.header[0] not in ("Student", "LastName"):
        raise CourseError(f"{table.name} is not a gradebook of Canvas: its columns are {', '.join(table.header)}.")
    name = _column(table, column, lambda title: CANVAS_NUMBER.sub("", title))
    remarks = [] if name else [f'{table.name} has no "{column}": Canvas will offer to create it.']
    kept = [place for place, title in enumerate(table.header) if title in CANVAS_KEPT]
    at = table.header.index(name) if name else None
    lines = [[*(table.header[place] for place in kept), name or column]]
    students: list[list[str]] = []
    for row in table.rows:
        if "Points Possible" in row[0]:
            theirs = _cell(row, at)
            remarks += _other_maximum("Canvas", theirs, graded.possible)
            lines.append([*(_cell(row, place) for place in kept), theirs or _number(graded.possible)])
        elif any(_cell(row, table.header.index(title)) for title in CANVAS_IDENTITY if title in table.header):
            students.append(row)
    filled, unplaced = _place(graded, table, students, CANVAS_IDENTITY, zero)
    lines += [[*(_cell(row, place) for place in kept), score] for row, score in filled]
    identity = [place for place, title in enumerate(lines[0]) if title in CANVAS_IDENTITY]
    made = _checked(lines, identity, table.delimiter)
    return Export(made.content, made.suffix, remarks + unplaced + made.remarks)


def moodle(graded: Class, table: Table | None, column: str, zero: bool) -> Export:
    """For Moodle's grade import; a grading worksheet comes back with its Grade column filled in.

    Raises CourseError when the template holds none of the columns by which Moodle knows somebody.
    """
    if table is None:
        lines = [["Username", "Email address", "First name", "Last name", column]]
        for student, each in _everyone(graded):
            who = [student.id, student.email, safe(student.first_name), safe(student.last_name)]
            lines.append([*who, _score(each, zero)])
        return _checked(lines, (0, 1), ",")
    if not set(MOODLE_IDENTITY) & set(table.header):
        raise CourseError(f"{table.name} names nobody as Moodle does: expected one of {', '.join(MOODLE_IDENTITY)}.")
    remarks: list[str] = []
    worksheet = set(table.header) >= WORKSHEET
    filled, unplaced = _place(graded, table, table.rows, MOODLE_IDENTITY, zero)
    if worksheet:
        lines = [table.header]
        grade, maximum = table.header.index("Grade"), table.header.index("Maximum Grade")
        for row, score in filled:
            row = [*row, *[""] * (len(table.header) - len(row))]
            row[grade] = score
            remarks += [each for each in _other_maximum("Moodle", row[maximum], graded.possible) if each not in remarks]
            lines.append(row)
    else:
        kept = [place for place, title in enumerate(table.header) if title in MOODLE_KEPT]
        name = _column(table, column, lambda title: re.sub(r"^\w+: *| *\((Real|Percentage|Letter)\)$", "", title))
        lines = [[*(table.header[place] for place in kept), name or column]]
        lines += [[*(_cell(row, place) for place in kept), score] for row, score in filled]
    identity = [place for place, title in enumerate(lines[0]) if title in MOODLE_IDENTITY]
    made = _checked(lines, identity, table.delimiter)
    return Export(made.content, made.suffix, remarks + unplaced + made.remarks)


def for_gradescope(graded: Class, table: Table | None, column: str, zero: bool) -> Export:
    """An autograder for a programming assignment of Gradescope that hands out these grades, by e-mail address."""
    without = [each.student for each in graded.graded if not each.student.email]
    remarks = [f"{student.name} ({student.id}) has no e-mail address in the gradebook." for student in without]
    return Export(gradescope.archive(graded), ".zip", remarks)


FORMATS: dict[str, Callable[[Class, Table | None, str, bool], Export]] = {
    "csv": plain,
    "canvas": canvas,
    "moodle": moodle,
    "gradescope": for_gradescope,
}


def safe(text: str) -> str:
    """The text as a spreadsheet shows it: what would be computed gets an apostrophe before it; numbers stay."""
    if not text.startswith(FORMULA):
        return text
    try:
        float(text)
    except ValueError:
        return f"'{text}"
    return text


def _checked(lines: list[list[str]], identity: Sequence[int], delimiter: str) -> Export:
    """The table without the lines whose ids a spreadsheet would compute: changed, they would name nobody."""
    kept, remarks = [], []
    for line in lines:
        bad = next((line[place] for place in identity if safe(line[place]) != line[place]), None)
        if bad is not None:
            remarks.append(f"{line[-1] or 'no grade'} for {bad!r} is left out: a spreadsheet would compute this id.")
        else:
            kept.append([cell if place in identity else safe(cell) for place, cell in enumerate(line)])
    return Export(_csv(kept, delimiter), ".csv", remarks)


def _csv(lines: Sequence[Sequence[str]], delimiter: str = ",") -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=delimiter).writerows(lines)
    return text.getvalue().encode()


def _everyone(graded: Class) -> list[tuple[Student, Graded | None]]:
    """Everyone on the roster by name, with what they handed in."""
    everyone = [(each.student, each) for each in graded.graded] + [(student, None) for student in graded.absent]
    return sorted(everyone, key=lambda pair: (pair[0].last_name.casefold(), pair[0].first_name.casefold(), pair[0].id))


def _place(
    graded: Class, table: Table, rows: list[list[str]], identity: Sequence[str], zero: bool
) -> tuple[list[tuple[list[str], str]], list[str]]:
    """Each row with its student's score, in the table's order, and a remark for everyone who is in no row."""
    known: dict[str, Student] = {}
    for student, _ in _everyone(graded):
        known |= {key.casefold(): student for key in (student.id, student.email) if key}
    submissions = {each.student.id: each for each in graded.graded}
    columns = [table.header.index(title) for title in identity if title in table.header]
    filled, placed = [], set()
    for row in rows:
        # Moodle's worksheet says "Participant 11" where its files, and so the gradebook, say 11.
        names = [_cell(row, place).strip().casefold().removeprefix("participant ") for place in columns]
        student = next((known[name] for name in names if name in known), None)
        if student is not None and student.id not in placed:
            placed.add(student.id)
            filled.append((row, _score(submissions.get(student.id), zero)))
    lost = [each.student for each in graded.graded if each.student.id not in placed]
    return filled, [f"{student.name} ({student.id}) is not in {table.name}." for student in lost]


def _column(table: Table, wanted: str, short: Callable[[str], str]) -> str | None:
    """The column of that name, with or without what the system writes around it."""
    exact = [title for title in table.header if title == wanted]
    return next(iter(exact + [title for title in table.header if short(title) == wanted]), None)


def _other_maximum(system: str, theirs: str, ours: float) -> list[str]:
    try:
        same = not theirs or abs(float(theirs.replace(",", ".")) - ours) < 0.005
    except ValueError:
        same = True
    return [] if same else [f"{system} counts this assignment out of {theirs}, the gradebook out of {_number(ours)}."]


def _cell(row: Sequence[str], place: int | None) -> str:
    return row[place] if place is not None and place < len(row) else ""


def _score(each: Graded | None, zero: bool) -> str:
    return _number(each.score) if each is not None else "0" if zero else ""


def _number(value: float) -> str:
    """Two decimals at most, which is what gradebooks keep; never an exponent."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def _last_first(student: Student) -> str:
    return f"{student.last_name}, {student.first_name}" if student.last_name and student.first_name else student.name
