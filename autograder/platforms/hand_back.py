"""Feedback on its way to the class: `python -m autograder feedback ASSIGNMENT --format moodle`.

`nbgrader generate_feedback` has written a page for each student; this packs them as the system takes them.

moodle: a zip for the assignment's "Upload multiple feedback files in a zip". Its importer
(mod/assign/feedback/file/importziplib.php) finds the student by the number in `Name_NUMBER_assignsubmission_file_`;
with the last underscore every version of Moodle reads it.
canvas: a zip for the assignment's "Upload Submissions". Canvas (app/models/abstract_assignment.rb) reads the numbers of
the student and of the submitted file, and shows what comes back under that file's own name: so a notebook
comes back as a notebook, and a zip as a zip with the page in it.
mail: a folder with a page for each student, and a table for a mail merge: id, name, email, file, points, of.
"""

import argparse
import csv
import io
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import nbformat

from autograder import course
from autograder.address import book_address
from autograder.course import CourseError
from autograder.grade.older_rules import remarks as not_settled
from autograder.platforms import archives, roster, tables
from autograder.platforms.downloads import CANVAS, MOODLE
from autograder.platforms.roster import Roster
from autograder.policy import collected, course_time, late
from autograder.policy.collected import Register
from autograder.reports import feedback, fresh, results
from autograder.reports.csv_safety import safe
from autograder.reports.export import number
from autograder.reports.gradescope import zipped
from autograder.reports.results import Class, Graded
from transformer_ref.atomic_write import atomic_write


@dataclass
class Packed:
    """The packed feedback: path -> content. `remarks`: whose feedback is missing, and why; `remade`: students whose
    pages were out of date and have been rewritten."""

    files: dict[str, bytes] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)
    remade: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Batch:
    """One assignment's feedback. `pages`: student -> their pages; `numbers`: student -> the platform's number."""

    root: Path
    graded: Class
    pages: Mapping[str, list[Path]]
    register: Register
    numbers: Mapping[str, str]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    course.add_assignment(parser)
    parser.add_argument("--format", choices=FORMATS, required=True, help="system that the pages are for")
    parser.add_argument(
        "--worksheet",
        type=Path,
        metavar="CSV",
        help="Moodle's grading worksheet, for work that `collect` did not read",
    )
    parser.add_argument(
        "--output", type=Path, metavar="PATH", help="default: classroom/exports/ASSIGNMENT-feedback-..."
    )


def run(chosen: argparse.Namespace) -> int:
    """Pack the pages and print where they are; 1 if somebody's page is missing."""
    root = course.find_root()
    batch = read(root, chosen.assignment, chosen.worksheet)
    packed = FORMATS[chosen.format](batch)
    path = chosen.output or root / "classroom" / "exports" / f"{chosen.assignment}-feedback-{chosen.format}"
    if chosen.format != "mail" and not chosen.output:
        path = path.with_name(f"{path.name}.zip")
    path.parent.mkdir(parents=True, exist_ok=True)
    if chosen.format == "mail":
        _write_folder(path, packed.files)
    else:
        atomic_write(path, zipped(packed.files))
    print(path)
    if packed.remade:
        print(f"written anew, since the gradebook has changed: {', '.join(packed.remade)}")
    remarks = [*packed.remarks, *not_settled(root, chosen.assignment)]
    for remark in remarks:
        print(remark, file=sys.stderr)
    return 1 if remarks else 0


def read(root: Path, assignment: str, worksheet: Path | None = None) -> Batch:
    """All students' pages. Raises CourseError if there are none yet."""
    graded = results.read_class(root, results.find_any_assignment(root, assignment))
    places = results.directory(root)
    pages = {}
    for each in graded.graded:
        folder = Path(places.format_path(places.feedback_directory, each.student.id, assignment))
        found = sorted(folder.glob("*.html"))
        if found:
            pages[each.student.id] = found
    if not pages:
        raise CourseError(f"There is no feedback for {assignment} yet: nbgrader generate_feedback {assignment}")
    register = collected.register(root, assignment)
    numbers = {student: each.number for student, each in register.students.items() if each.system == MOODLE}
    numbers = {**register.numbers, **numbers}
    if worksheet is not None:
        system, people = tables.people(tables.read_table(worksheet))
        matched, _ = roster.match(Roster(results.read_roster(root), system, tuple(people)))
        numbers |= {student.id: number for number, student in matched.items()}
    return Batch(root, graded, pages, register, numbers)


def for_moodle(batch: Batch) -> Packed:
    """A folder for each student, with the name by which Moodle identifies the student."""
    packed = Packed()
    for each, pages in _with_pages(batch, packed):
        theirs = batch.numbers.get(each.student.id)
        if not theirs:
            reason = "has no number of Moodle's: give the grading worksheet with --worksheet"
            packed.remarks.append(f"{each.student.name_and_id} {reason}.")
            continue
        name = archives.fitted(each.student.name.replace("_", " ").replace("/", " "))
        for page in pages:
            packed.files[f"{name}_{theirs}_assignsubmission_file_/{page.name}"] = page.read_bytes()
    return packed


def for_canvas(batch: Batch) -> Packed:
    """A file for each student with the name and type of one that they submitted."""
    packed = Packed()
    for each, pages in _with_pages(batch, packed):
        collected = batch.register.students.get(each.student.id)
        files = collected.files if collected is not None and collected.system == CANVAS else {}
        uploaded = [name for name in files.values() if not name.endswith(("_text.html", "_link.html"))]
        if not uploaded:
            reason = (
                "has handed in no file at Canvas that `collect` brought, and so nothing that feedback can be put to"
            )
            packed.remarks.append(f"{each.student.name_and_id} {reason}.")
            continue
        wanted = [name for name in uploaded if name.endswith(".ipynb")] or uploaded
        best = next((name for here, name in files.items() if here == f"{pages[0].stem}.ipynb"), wanted[0])
        if Path(best).name not in packed.files:  # a group's, which Canvas shows to every member
            packed.files[Path(best).name] = _of_the_kind(batch, each, pages, best)
    return packed


def for_mail(batch: Batch) -> Packed:
    """A page for each student, and a table of their owners."""
    packed = Packed()
    lines = [["id", "name", "email", "file", "points", "of"]]
    for each, pages in _with_pages(batch, packed):
        student = each.student
        for page in pages:
            name = f"{student.id}.html" if len(pages) == 1 else f"{student.id}-{page.name}"
            packed.files[name] = page.read_bytes()
            points = [number(each.score), number(batch.graded.possible)]
            lines.append([*(safe(text) for text in (student.id, student.name, student.email, name)), *points])
        if not student.email:
            packed.remarks.append(f"{student.name_and_id} has no e-mail address in the gradebook.")
    text = io.StringIO(newline="")
    csv.writer(text).writerows(lines)
    packed.files["mail.csv"] = text.getvalue().encode("utf-8-sig")  # by which spreadsheets know that it is UTF-8
    return packed


FORMATS: dict[str, Callable[[Batch], Packed]] = {"moodle": for_moodle, "canvas": for_canvas, "mail": for_mail}


def _with_pages(batch: Batch, packed: Packed) -> list[tuple[Graded, list[Path]]]:
    """All students with pages. Pages that contradict the gradebook are rewritten; students without a page, or with an
    outdated one that cannot be rewritten, are named."""
    places, settings, found = results.directory(batch.root), results.configuration(batch.root), []
    again = f"nbgrader generate_feedback {batch.graded.assignment.id} --force"
    for each in batch.graded.graded:
        pages = batch.pages.get(each.student.id)
        if pages is None:
            packed.remarks.append(
                f"{each.student.name_and_id} has no feedback yet: {again} --student={each.student.id}"
            )
            continue
        if fresh.remake(places, settings, batch.graded.assignment.id, each.student.id):
            packed.remade.append(each.student.name_and_id)
        folder = places.format_path(places.autograded_directory, each.student.id, batch.graded.assignment.id)
        for page in pages:
            graded = Path(folder) / f"{page.stem}.ipynb"
            if graded.is_file() and graded.stat().st_mtime > page.stat().st_mtime:
                packed.remarks.append(f"{each.student.name_and_id} was graded after this feedback was written: {again}")
        found.append((each, pages))
    return found


def _of_the_kind(batch: Batch, each: Graded, pages: list[Path], name: str) -> bytes:
    """The feedback as a file of the type that this name says."""
    kind = Path(name).suffix.lower()
    if kind == ".zip":
        return zipped({page.name: page.read_bytes() for page in pages})
    if kind != ".ipynb":
        return pages[0].read_bytes()
    places, assignment = results.directory(batch.root), batch.graded.assignment.id
    folder = Path(places.format_path(places.autograded_directory, each.student.id, assignment))
    known = {"student": each.student.id, "assignment": assignment, "notebook": pages[0].stem, "db_url": places.db_url}
    graded = nbformat.read(folder / f"{pages[0].stem}.ipynb", as_version=4)
    graded, resources = fresh.with_grades(graded, known)
    settings = results.configuration(batch.root)
    book = book_address(settings.FeedbackPage.get("book", ""))
    zone = course_time.zone_of(settings)
    page = feedback.told(graded, resources["nbgrader"], book, zone, batch.root, late.cost_in_words(settings))
    return nbformat.writes(feedback.as_notebook(page)).encode()


def _write_folder(path: Path, files: Mapping[str, bytes]) -> None:
    """Earlier files are removed: they may belong to somebody who has left the class."""
    if path.exists() and not (path / "mail.csv").is_file() and any(path.iterdir()):
        raise CourseError(f"{path} holds something else: name an empty folder with --output.")
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir()
    for name, data in files.items():
        (path / name).write_bytes(data)
