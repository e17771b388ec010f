"""Grades in the forms that other systems read: `python -m autograder export ASSIGNMENT ... --format canvas`.

canvas, moodle: a CSV file for the gradebook's import. Both systems know students by ids of their own, so give them back
a file that they wrote (`--template`); without one, students are named by their nbgrader id and e-mail address. In it
they are found as `collect` found them, and as roster.py says.
gradescope: it imports no scores, so this is an "autograder" to upload: it runs nothing and hands out what is in it.
csv: everything, one line a student.

Canvas's rules are those of its gradebook importer; Moodle's those of "Grades > Import > CSV file" and of an
assignment's offline grading worksheet; Gradescope's are its autograder specification.
"""

import argparse
import codecs
import csv
import io
import re
import sys
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timezone, tzinfo
from html import escape
from pathlib import Path

from autograder import course
from autograder.course import CourseError
from autograder.grade.older_rules import remarks as not_settled
from autograder.platforms import roster, tables
from autograder.platforms.downloads import MOODLE as BY_MOODLE
from autograder.platforms.roster import Roster
from autograder.platforms.tables import Table, cell, read_table
from autograder.policy import course_time, times
from autograder.reports import gradescope, results
from autograder.reports.csv_safety import safe
from autograder.reports.feedback import seen
from autograder.reports.results import Class, Graded, Result, Student
from autograder.reports.sums import scaled, total
from transformer_ref.atomic_write import atomic_write

CANVAS_NUMBER = re.compile(r"\s*\(\d+\)$")  # Canvas writes its own number behind an assignment's name
CANVAS = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section")
CANVAS_IDENTITY = ("ID", "SIS User ID", "SIS Login ID")
CANVAS_KEPT = ("Student", "LastName", "FirstName", *CANVAS_IDENTITY, "Integration ID", "Root Account", "Section")
MOODLE_IDENTITY = ("Identifier", "Email address", "ID number", "Username")
MOODLE_KEPT = ("Full name", "First name", "Last name", *MOODLE_IDENTITY)
MOST_NAME = 100  # letters of a sum's file
THEIRS = "theirs"  # --scale-to: as many points as the template says


@dataclass
class Export:
    """The exported file, and remarks for the teacher."""

    content: bytes
    suffix: str
    remarks: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Options:
    """Further options of an export. `known`: (system, number there) -> student, from `collect`. `comments`: whether a
    grading worksheet gets feedback as text too. `zone`: in which times are shown."""

    known: Mapping[tuple[str, str], str] = field(default_factory=dict)
    comments: bool = False
    zone: tzinfo = timezone.utc


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument(
        "assignments",
        nargs="+",
        metavar="ASSIGNMENT",
        help="name of an assignment's folder, such as 05_self_attention; several are summed",
    )
    parser.add_argument(
        "--format", choices=FORMATS, default="csv", help="system that the grades are for (default: csv)"
    )
    parser.add_argument(
        "--template", type=Path, metavar="FILE", help="a gradebook of Canvas or a worksheet of Moodle to fill in"
    )
    parser.add_argument("--column", metavar="NAME", help="name of the assignment in that system (default: ASSIGNMENT)")
    parser.add_argument(
        "--scale-to",
        type=_points,
        metavar="POINTS",
        help=f"scale the sum to this number of points; {THEIRS!r}: as the template does",
    )
    parser.add_argument(
        "--comments", action="store_true", help="also write a short feedback into the worksheet's feedback column"
    )
    parser.add_argument(
        "--zero-for-absent",
        action="store_true",
        help="give 0 points to those who handed in nothing (default: no grade)",
    )
    parser.add_argument("--output", type=Path, metavar="FILE", help="default: classroom/exports/ASSIGNMENT-FORMAT...")


def run(chosen: argparse.Namespace) -> int:
    """Write the file and print its path; 1 if something needs attention, such as a grade without a row."""
    root = course.find_root()
    if chosen.template and chosen.format not in ("canvas", "moodle"):
        raise CourseError("--template: only Canvas and Moodle give out a file to be filled in.")
    classes = [results.read_class(root, results.find_any_assignment(root, each)) for each in chosen.assignments]
    graded = classes[0] if len(classes) == 1 else total(classes)
    table = read_table(chosen.template) if chosen.template else None
    column = chosen.column or graded.assignment.id
    if chosen.scale_to is not None:
        graded = scaled(graded, _wanted(chosen.scale_to, table, column))
    # A number of Moodle's is of one assignment, so for a sum only the template identifies students.
    earlier = roster.earlier(root, graded.assignment.id) if len(classes) == 1 else {}
    zone = course_time.zone_of(results.configuration(root))
    options = Options({key: student for key, (student, _) in earlier.items()}, chosen.comments, zone)
    made = FORMATS[chosen.format](graded, table, column, chosen.zero_for_absent, options)
    made.remarks += [line for each in classes for line in not_settled(root, each.assignment.id)]
    name = graded.assignment.id if len(classes) == 1 else _name_of_sum(chosen.assignments)
    path = chosen.output or root / "classroom" / "exports" / f"{name}-{chosen.format}{made.suffix}"
    atomic_write(path, made.content)
    print(path)
    print("".join(f"{remark}\n" for remark in made.remarks), end="", file=sys.stderr)
    return 1 if made.remarks else 0


def _name_of_sum(assignments: Sequence[str]) -> str:
    """The name of a sum's file; different sums have different names."""
    parts = [each[:2] if each[:2].isdigit() else each for each in assignments]
    name = f"total-{'+'.join(parts)}"
    return name if len(name) <= MOST_NAME else f"{name[:MOST_NAME]}-{zlib.crc32(name.encode()):08x}"


def plain(graded: Class, table: Table | None, column: str, zero: bool, options: Options = Options()) -> Export:
    """One line per student: id, points of each exercise, the sum, the late penalty, the score, the local time.

    Parts that a person grades have a column too; it is empty until then, and "waits" says so.
    """
    by_hand = graded.assignment.by_hand
    exercises = [*graded.assignment.exercises, *by_hand]
    who, sums = ["student_id", "last_name", "first_name", "email"], ["raw_score", "late_penalty", "score", "max_score"]
    waits = ["waits"] if by_hand else []
    lines = [[*who, "submitted", *(exercise.number for exercise in exercises), *sums, "timestamp", *waits]]
    for student, each in _everyone(graded):
        who = [student.id, student.last_name, student.first_name, student.email]
        if each is None:
            nothing = ["0" if zero else ""]
            unknown = [""] * (1 + len(waits))
            lines.append([*who, "no", *nothing * len(exercises), *nothing * 3, number(graded.possible), *unknown])
            continue
        points = [number(result.points) for result in each.results]
        given = [each.read_by_a_person.get(cell.id) for cell in by_hand]
        points += ["" if score is None else number(score) for score in given]
        sums = [number(each.raw_score), number(each.penalty), number(each.score), number(graded.possible)]
        moment = times.in_zone(each.timestamp, options.zone).isoformat(" ", "seconds") if each.timestamp else ""
        pending = ["yes" if each.needs_manual_grade else "no"] if by_hand else []
        lines.append([*who, "yes", *points, *sums, moment, *pending])
    made = _csv([[safe(cell) for cell in line] for line in lines])
    return Export(codecs.BOM_UTF8 + made, ".csv")  # for people to open: by it Excel reads names as UTF-8


def canvas(graded: Class, table: Table | None, column: str, zero: bool, options: Options = Options()) -> Export:
    """The columns by which Canvas identifies students, and this assignment's; no other grade is changed.

    Raises CourseError if the template is not a gradebook of Canvas.
    """
    if table is None:
        lines = [[*CANVAS, column], ["    Points Possible", "", "", "", "", number(graded.possible)]]
        scores = {student.id: _score(each, zero) for student, each in _everyone(graded)}
        lines += [
            [safe(_last_first(student)), "", "", student.id, "", scores[student.id]] for student, _ in _everyone(graded)
        ]
        return _checked(lines, CANVAS_IDENTITY, ",")
    if not tables.is_canvas(table):
        raise CourseError(f"{table.name} is not a gradebook of Canvas: its columns are {', '.join(table.header)}.")
    name = _column(table, column, _short_in_canvas)
    remarks = [] if name else [f'{table.name} has no "{column}": Canvas will offer to create it.']
    kept = [place for place, title in enumerate(table.header) if title in CANVAS_KEPT]
    at = table.header.index(name) if name else None
    lines = [[*(table.header[place] for place in kept), name or column]]
    students: list[list[str]] = []
    for row in table.rows:
        if "Points Possible" in row[0]:
            theirs = cell(row, at)
            remarks += _other_maximum("Canvas", theirs, graded.possible)
            lines.append([*(cell(row, place) for place in kept), theirs or number(graded.possible)])
        elif any(cell(row, table.header.index(title)) for title in CANVAS_IDENTITY if title in table.header):
            students.append(row)
    numbers = [cell(row, table.place("ID")).strip() for row in students]
    filled, unplaced = _place(graded, table, students, _by_number(graded, table, numbers, options))
    lines += [[*(cell(row, place) for place in kept), _score(each, zero)] for row, _, each in filled]
    return _checked(lines, CANVAS_IDENTITY, table.delimiter, remarks + unplaced)


def moodle(graded: Class, table: Table | None, column: str, zero: bool, options: Options = Options()) -> Export:
    """For Moodle's grade import; a grading worksheet is returned with its Grade column filled in.

    Raises CourseError if the template has no column by which Moodle identifies students.
    """
    if table is None:
        lines = [["Username", "Email address", "First name", "Last name", column]]
        for student, each in _everyone(graded):
            who = [student.id, student.email, safe(student.first_name), safe(student.last_name)]
            lines.append([*who, _score(each, zero)])
        return _checked(lines, MOODLE_IDENTITY, ",")
    columns = tables.worksheet(table)
    if columns is None and not set(MOODLE_IDENTITY) & set(table.header):
        raise CourseError(f"{table.name} names nobody as Moodle does: expected one of {', '.join(MOODLE_IDENTITY)}.")
    remarks: list[str] = []
    if columns is not None:
        numbers = [tables.participant(cell(row, columns.identifier)) for row in table.rows]
        filled, unplaced = _place(graded, table, table.rows, _by_number(graded, table, numbers, options))
        lines = [table.header]
        if options.comments and columns.comments is None:
            remarks.append(f'{table.name} has no "{tables.COMMENTS[0]}": turn feedback comments on in the assignment.')
        for row, _, each in filled:
            row = [*row, *[""] * (len(table.header) - len(row))]
            theirs = row[columns.maximum]
            score = _score(each, zero)
            row[columns.grade] = score.replace(".", ",") if "," in theirs else score
            if (
                options.comments
                and columns.comments is not None
                and each is not None
                and not row[columns.comments].strip()
            ):
                row[columns.comments] = comment(each, graded)
            remarks += [each for each in _other_maximum("Moodle", theirs, graded.possible) if each not in remarks]
            lines.append(row)
    else:
        filled, unplaced = _place(graded, table, table.rows, _by_identity(graded, table, MOODLE_IDENTITY))
        kept = [place for place, title in enumerate(table.header) if title in MOODLE_KEPT]
        name = _column(table, column, _short_in_moodle)
        lines = [[*(table.header[place] for place in kept), name or column]]
        lines += [[*(cell(row, place) for place in kept), _score(each, zero)] for row, _, each in filled]
    return _checked(lines, MOODLE_IDENTITY, table.delimiter, remarks + unplaced)


def for_gradescope(graded: Class, table: Table | None, column: str, zero: bool, options: Options = Options()) -> Export:
    """An autograder for a programming assignment of Gradescope that hands out these grades, by e-mail address."""
    without = [each.student for each in graded.graded if not each.student.email]
    remarks = [f"{student.name_and_id} has no e-mail address in the gradebook." for student in without]
    return Export(gradescope.archive(graded), ".zip", remarks)


FORMATS: dict[str, Callable[[Class, Table | None, str, bool, Options], Export]] = {
    "csv": plain,
    "canvas": canvas,
    "moodle": moodle,
    "gradescope": for_gradescope,
}


def comment(each: Graded, graded: Class) -> str:
    """The result of each exercise, and the teacher's comments, as HTML, which Moodle uses for comments."""
    lines = [f"{number(each.score)} of {number(graded.possible)} points"]
    if each.penalty:
        lines.append(f"{number(each.penalty)} of them taken off because it came late")
    for result in each.results:
        name = (
            f"{result.exercise.number} {result.exercise.names[0]}" if _has_verdict(result) else result.exercise.number
        )
        what = f": {seen(result)}" if _has_verdict(result) else ""
        lines.append(f"{name}: {number(result.points)}{what}")
    lines += [text for _, text in each.comments]
    return "<br>".join(escape(line).replace("\n", "<br>") for line in lines)


def _checked(lines: list[list[str]], titles: Sequence[str], delimiter: str, remarks: Sequence[str] = ()) -> Export:
    """The table without the lines whose ids a spreadsheet would compute, since an escaped id names nobody.

    titles: of the columns with ids.
    """
    identity = [place for place, title in enumerate(lines[0]) if title in titles]
    kept, remarks = [], [*remarks]
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
    """Everyone on the roster, sorted by name, with their submission."""
    everyone = [(each.student, each) for each in graded.graded] + [(student, None) for student in graded.absent]
    return sorted(everyone, key=lambda pair: (pair[0].last_name.casefold(), pair[0].first_name.casefold(), pair[0].id))


def _place(
    graded: Class, table: Table, rows: list[list[str]], found: Sequence[Student | None]
) -> tuple[list[tuple[list[str], Student, Graded | None]], list[str]]:
    """Each row with its student and submission, in the table's order; and remarks about students without a row."""
    submissions = {each.student.id: each for each in graded.graded}
    filled, placed = [], set()
    for row, student in zip(rows, found, strict=True):
        if student is not None and student.id not in placed:
            placed.add(student.id)
            filled.append((row, student, submissions.get(student.id)))
    lost = [each.student for each in graded.graded if each.student.id not in placed]
    return filled, [f"{student.name_and_id} is not in {table.name}." for student in lost]


def _by_number(graded: Class, table: Table, numbers: Sequence[str], options: Options) -> list[Student | None]:
    """The student of each row, by the platform's number as in collecting, else by an id equal to the number."""
    system, people = tables.people(table)
    everyone = {student.id: student for student, _ in _everyone(graded)}
    matched, _ = roster.match(Roster(tuple(everyone.values()), system, tuple(people)))
    collected = {
        theirs: everyone[student]
        for (where, theirs), student in options.known.items()
        if where == system and student in everyone
    }
    taken = {student.id for student in (*matched.values(), *collected.values())}
    bare = (
        {}
        if system == BY_MOODLE and collected
        else {key: student for key, student in everyone.items() if key not in taken}
    )
    return [collected.get(theirs) or matched.get(theirs) or bare.get(theirs) for theirs in numbers]


def _by_identity(graded: Class, table: Table, identity: Sequence[str]) -> list[Student | None]:
    """The student of each row, by id or e-mail address."""
    known: dict[str, Student] = {}
    for student, _ in _everyone(graded):
        known |= {key.casefold(): student for key in (student.id, student.email) if key}
    columns = [table.header.index(title) for title in identity if title in table.header]
    every = [[cell(row, place).strip().casefold() for place in columns] for row in table.rows]
    return [next((known[name] for name in names if name in known), None) for names in every]


def _wanted(given: str, table: Table | None, column: str) -> float:
    """The number of points to scale to."""
    if given != THEIRS:
        return float(given)
    if table is None:
        raise CourseError(f"--scale-to {THEIRS}: give the file that says how many points, with --template.")
    columns = None if tables.is_canvas(table) else tables.worksheet(table)
    if columns is not None:
        texts = table.column(columns.maximum)
    else:
        name = _column(table, column, _short_in_canvas) if tables.is_canvas(table) else None
        place = table.header.index(name) if name else None
        texts = [cell(row, place) for row in table.rows if "Points Possible" in row[0]]
    found = {text.replace(",", ".") for text in texts if text}
    try:
        return _positive(*found)
    except (ValueError, TypeError):
        raise CourseError(f"{table.name} does not say how many points {column} is worth: give a number.") from None


def _points(text: str) -> str:
    if text != THEIRS:
        try:
            _positive(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"expected a number of points or {THEIRS!r}, got {text!r}") from None
    return text


def _positive(text: str) -> float:
    value = float(text)
    if not 0 < value < 1e6:
        raise ValueError(text)
    return value


def _has_verdict(result: Result) -> bool:
    return hasattr(result.exercise, "mistakes")


def _short_in_canvas(title: str) -> str:
    return CANVAS_NUMBER.sub("", title)


def _short_in_moodle(title: str) -> str:
    return re.sub(r"^\w+: *| *\((Real|Percentage|Letter)\)$", "", title)


def _column(table: Table, wanted: str, short: Callable[[str], str]) -> str | None:
    """The column of that name, with or without the system's additions."""
    exact = [title for title in table.header if title == wanted]
    return next(iter(exact + [title for title in table.header if short(title) == wanted]), None)


def _other_maximum(system: str, theirs: str, ours: float) -> list[str]:
    try:
        same = not theirs or abs(float(theirs.replace(",", ".")) - ours) < 0.005
    except ValueError:
        same = True
    return [] if same else [f"{system} counts this assignment out of {theirs}, the gradebook out of {number(ours)}."]


def _score(each: Graded | None, zero: bool) -> str:
    return number(each.score) if each is not None else "0" if zero else ""


def number(value: float) -> str:
    """Two decimals at most, which is what gradebooks keep; never an exponent."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def _last_first(student: Student) -> str:
    return f"{student.last_name}, {student.first_name}" if student.last_name and student.first_name else student.name
