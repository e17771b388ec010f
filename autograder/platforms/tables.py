"""CSV files that Moodle and Canvas write, and who is in them.

Moodle writes its grading worksheet in the language of the teacher. So a column is known by its English title or by what
is in it: Moodle's order of columns is fixed (mod/assign/gradingtable.php), and its first one says "Participant 11" in
every language.
"""

import csv
import io
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone, tzinfo
from pathlib import Path

from autograder.course import CourseError
from autograder.intake.decode import text_of
from autograder.platforms import dates
from autograder.platforms.downloads import CANVAS, MOODLE

LARGEST = 64 * 1024 * 1024  # bytes
MEMBERS = ("canvas_user_id", "group_name")  # columns of Canvas's table of groups (People, its set of groups, Export)
CANVAS_KEYS = ("SIS User ID", "SIS Login ID", "Integration ID")
GROUPS = ("Group", "Gruppe", "Groupe", "Grupo", "Gruppo", "Groep")
SUBMITTED = (  # "Last modified (submission)"; in other languages its dates tell
    *("Last modified (submission)", "Zuletzt geändert (Abgabe)", "Dernière modification (travail remis)"),
    *("Última modificación (entrega)", "Ultima modifica (consegna)", "Laatst gewijzigd (inzending)"),
)
COMMENTS = ("Feedback comments", "Feedback als Kommentar", "Comentarios de retroalimentación")

_PARTS = ("FirstName", "LastName")  # as Canvas exports names in two columns
_PARTICIPANT = re.compile(r"(?P<word>\D*?)(?P<number>\d+)")
_NUMBER = re.compile(r"\d+([.,]\d+)?")


@dataclass(frozen=True)
class Table:
    """A CSV file that another system wrote."""

    name: str
    header: list[str]
    rows: list[list[str]]
    delimiter: str
    lines: tuple[int, ...] = ()  # of each row, the line in the file on which it ends

    def column(self, place: int | None) -> list[str]:
        """A column's cells, one per row; empty ones if there is no such column."""
        return [cell(row, place).strip() for row in self.rows]

    def place(self, *titles: str) -> int | None:
        """The index of the first of these columns that the table has."""
        return next((self.header.index(title) for title in titles if title in self.header), None)


@dataclass(frozen=True)
class Worksheet:
    """The indices of the columns of Moodle's grading worksheet; None for a missing one."""

    identifier: int
    name: int | None
    email: int | None
    grade: int
    maximum: int
    comments: int | None
    group: int | None
    submitted: int | None


@dataclass(frozen=True)
class Person:
    """A person in a table. `number`: the platform's. `keys`: their other identifiers, in no order."""

    number: str
    name: str
    keys: tuple[str, ...]
    email: str = ""
    group: str = ""


def read_table(path: Path) -> Table:
    """A CSV file as spreadsheets save it: with commas, semicolons or tabs, in UTF-8, UTF-16 or Windows' letters, with
    or without a byte order mark, a line `sep=;` and empty lines. Raises CourseError naming the file when it is none."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise CourseError(f"{path} cannot be read: {error}.") from error
    if len(data) > LARGEST:
        raise CourseError(f"{path}: expected a table of at most {LARGEST >> 20} MB, got {len(data) >> 20} MB.")
    if data.startswith((b"PK", b"\xd0\xcf\x11\xe0")):
        raise CourseError(f"{path} is a spreadsheet. Save it as CSV (File, Save As), and give that.")
    text, _ = text_of(data)
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    in_file = text.count("\n")
    text = text.lstrip("\n")
    if text[:4].casefold() == "sep=" and text[5:6] in ("\n", ""):
        text = text[6:]
    before = in_file - text.count("\n")  # lines above what is read
    first = text.lstrip("\n").partition("\n")[0]
    delimiter = max(",;\t", key=first.count)
    try:
        rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
        kept = [(before + rows.line_num, row) for row in rows if any(map(str.strip, row))]
    except csv.Error as error:
        raise CourseError(f"{path} is not a table: {error}.") from error
    if not kept:
        raise CourseError(f"{path} is empty: expected a line of column names and a line for each student.")
    header, *others = kept
    lines = tuple(line for line, _ in others)
    return Table(path.name, [name.strip() for name in header[1]], [row for _, row in others], delimiter, lines)


def cell(row: Sequence[str], place: int | None) -> str:
    """The cell of a row at an index; "" past its end."""
    return row[place] if place is not None and place < len(row) else ""


def is_canvas(table: Table) -> bool:
    """Whether this is a gradebook exported from Canvas."""
    return {"ID", "Section"} <= set(table.header) and table.header[0] in ("Student", "LastName")


def is_canvas_groups(table: Table) -> bool:
    """Whether this is a table of groups exported from Canvas."""
    return set(MEMBERS) <= set(table.header)


def worksheet(table: Table) -> Worksheet | None:
    """The indices of the columns, if this is Moodle's grading worksheet, in any language."""
    identifier = table.place("Identifier")
    if identifier is None and _counts_participants(table):
        identifier = 0
    maximum = table.place("Maximum Grade")
    if maximum is None:
        maximum = _maximum(table)
    grade = table.place("Grade") if maximum is None or "Grade" in table.header else maximum - 1
    if identifier is None or maximum is None or grade is None:
        return None
    email = table.place("Email address")
    if email is None:
        email = next((place for place in range(len(table.header)) if _is_email(table.column(place))), None)
    name = table.place("Full name")
    if name is None and email != identifier + 1 and "Identifier" not in table.header:
        name = identifier + 1
    submitted = table.place(*SUBMITTED)
    if submitted is None:
        submitted = _of_dates(table, maximum)
    return Worksheet(identifier, name, email, grade, maximum, table.place(*COMMENTS), table.place(*GROUPS), submitted)


def participant(text: str) -> str:
    """11 for "Participant 11", in any language; "" without a number at the end."""
    found = _PARTICIPANT.fullmatch(text.strip())
    return found["number"] if found else ""


def people(table: Table) -> tuple[str, list[Person]]:
    """The platform of a table, Moodle or Canvas, and everyone in it with a number.

    Raises CourseError unless it is a grading worksheet of Moodle, or a gradebook or a table of groups of Canvas.
    """
    if is_canvas_groups(table):
        return CANVAS, _in_groups(table)
    if is_canvas(table):
        return CANVAS, _in_gradebook(table)
    columns = worksheet(table)
    if columns is None:
        raise CourseError(
            f"{table.name} is neither a grading worksheet of Moodle (the assignment's Download grading worksheet) "
            "nor a gradebook of Canvas (Grades, Export) or its table of groups (People, the set of groups, Export): "
            f"its columns are {', '.join(table.header)}."
        )
    others = (columns.identifier, columns.name, columns.email, columns.group)
    keys = [place for place in range(columns.grade) if place not in others and _all_differ(table.column(place))]
    found = []
    for row in table.rows:
        number = participant(cell(row, columns.identifier))
        if number:
            found.append(
                Person(
                    number,
                    cell(row, columns.name).strip(),
                    tuple(key for place in keys if (key := cell(row, place).strip())),
                    cell(row, columns.email).strip(),
                    cell(row, columns.group).strip(),
                )
            )
    return MOODLE, found


def submission_times(table: Table, zone: tzinfo) -> tuple[dict[str, datetime], str]:
    """Number of a person -> submission time (UTC), from Moodle's worksheet or a table of Canvas's submissions; and a
    sentence about unreadable times, or "". zone: the platform's, for times without one."""
    columns = worksheet(table)
    if columns is None or columns.submitted is None:
        return {}, ""
    moments, unread = dates.read_column(table.column(columns.submitted), zone)
    numbers = [participant(cell(row, columns.identifier)) for row in table.rows]
    found = {number: moment for number, moment in zip(numbers, moments, strict=True) if number and moment}
    title = table.header[columns.submitted]
    return (
        found,
        f'{table.name}, column "{title}": {unread!r} cannot be read for certain as a date.' if unread else "",
    )


def folded(name: str) -> str:
    """A name for comparison: without case, accents and punctuation, its words sorted ("Lovelace, Ada")."""
    plain = unicodedata.normalize("NFKD", name.casefold())
    words = re.split(r"[\s,_]+", "".join(letter for letter in plain if letter.isalnum() or letter in " ,_\t\u00a0"))
    return " ".join(sorted(filter(None, words)))


def _in_gradebook(table: Table) -> list[Person]:
    place = {title: place for place, title in enumerate(table.header)}
    found = []
    for row in table.rows:
        number = cell(row, place["ID"]).strip()
        if number:
            name = cell(row, place.get("Student")) or " ".join(cell(row, place.get(part)) for part in _PARTS)
            keys = tuple(key for title in CANVAS_KEYS if (key := cell(row, place.get(title)).strip()))
            email = next((key for key in keys if "@" in key), "")
            found.append(Person(number, name.strip(), keys, email))
    return found


def _in_groups(table: Table) -> list[Person]:
    columns = [table.column(table.place(title)) for title in (*MEMBERS, "name", "user_id", "login_id")]
    found = []
    for number, group, name, *keys in zip(*columns, strict=True):
        if number:  # who is in no group is there too
            email = next((key for key in keys if "@" in key), "")
            found.append(Person(number, name, tuple(filter(None, keys)), email, group))
    return found


def _counts_participants(table: Table) -> bool:
    """Whether the first column says "Participant 11", "Participant 12" and so on, in one language."""
    found = [_PARTICIPANT.fullmatch(text) for text in table.column(0) if text]
    return bool(found) and all(found) and len({each["word"] for each in found}) == 1 and bool(found[0]["word"])


def _maximum(table: Table) -> int | None:
    """The column of the highest possible grade: the last one with the same number in every row."""
    same = [set(table.column(place)) for place in range(len(table.header))]
    found = [place for place, values in enumerate(same) if len(values) == 1 and _NUMBER.fullmatch(*values)]
    return found[-1] if found and found[-1] > 1 else None


def _of_dates(table: Table, maximum: int) -> int | None:
    """The first column after the highest grade whose cells are all dates: that of submissions is before that of grades.
    None if nobody handed in."""
    for place in range(maximum + 1, len(table.header)):
        given = [text for text in table.column(place) if text not in dates.NONE]
        if given:
            moments, _ = dates.read_column(given, timezone.utc)
            if all(moments):
                return place
    return None


def _is_email(texts: list[str]) -> bool:
    return any(texts) and all("@" in text for text in texts if text)


def _all_differ(texts: list[str]) -> bool:
    given = [text for text in texts if text]
    return len(set(given)) == len(given)
