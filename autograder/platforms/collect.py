"""Sorts a platform's download by student: `python -m autograder collect ASSIGNMENT [ZIP ...]`.

The zip is as Moodle or Canvas hands it out; without one, everything in classroom/downloaded/ASSIGNMENT/archive/ is
taken. Each student's work goes to classroom/submitted/STUDENT/ASSIGNMENT/. Doing it again is safe: the same work stays
as it is, newer work takes its place, and the older is kept in classroom/collected/ASSIGNMENT/replaced/. Work that is
nobody's is kept in classroom/collected/ASSIGNMENT/unmatched/ and named. `nbgrader zip_collect` does the same
(`Extractor`).
"""

import argparse
import os
import shutil
import sys
import tempfile
import zipfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path

from nbgrader.coursedir import CourseDirectory
from nbgrader.plugins import ExtractorPlugin

from autograder import course
from autograder.course import CourseError
from autograder.platforms import archives, class_list, downloads, roster, submission_times, tables
from autograder.platforms.archives import ArchivedFile, SubmissionStore, shown
from autograder.platforms.downloads import CANVAS, MOODLE, Owner, PathReading
from autograder.platforms.roster import Roster
from autograder.platforms.submission_times import HandedIn
from autograder.policy import collected, course_time, receipts
from autograder.policy.collected import Collected
from autograder.reports import results
from autograder.reports.results import Student

CLOCKS = 300.0  # seconds by which the platform's clock and this one may differ
MOODLE_NUMBERS = (
    "Moodle's numbers are a student's in one assignment only: the next one has others. Import a roster with names or "
    "e-mail addresses (nbgrader db student import), and give the grading worksheet with --worksheet."
)
OTHER_NAME = (
    "Canvas calls this work {}. If that is a group, it reaches one member only: give Canvas's table of groups (People, "
    "the set of groups, Export) with --groups."
)

KEPT = "What was collected from them earlier stays in place, and so do its points."

Files = list[tuple[ArchivedFile, tuple[str, ...]]]  # of one person: each file, and its path in their own folder


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    course.add_assignment(parser)
    where = "classroom/downloaded/ASSIGNMENT/archive/"
    parser.add_argument(
        "archives", nargs="*", type=Path, metavar="ZIP", help=f"as downloaded, or unpacked (default: all in {where})"
    )
    parser.add_argument(
        "--worksheet",
        type=Path,
        metavar="CSV",
        help="Moodle's grading worksheet of this assignment, or Canvas's gradebook",
    )
    parser.add_argument(
        "--times",
        type=Path,
        metavar="FILE",
        help="submission times: Canvas's submissions (JSON, CSV) or Gradescope's submission_metadata.yml",
    )
    parser.add_argument("--groups", type=Path, metavar="CSV", help="Canvas's table of the groups that hand in together")


def run(chosen: argparse.Namespace) -> int:
    """Collect and print a summary; 1 if a download or a submission could not be read."""
    root = course.find_root()
    given = chosen.archives or waiting(root, chosen.assignment)
    if tables_given := [path for path in (chosen.worksheet, chosen.groups) if path]:
        given = [path for path in given if not _is_table(path)] + tables_given
    summary = collect(results.directory(root), chosen.assignment, given, chosen.times)
    for line in summary.lines():
        print(line)
    for line in summary.troubles:
        print(line, file=sys.stderr)
    return 1 if summary.troubles else 0


def waiting(root: Path, assignment: str) -> list[Path]:
    """The content of the folder of downloads. Raises CourseError if it is empty."""
    folder = root / "classroom" / "downloaded" / assignment / "archive"
    found = sorted(path for path in folder.glob("*") if not path.name.startswith("."))
    if all(map(_is_table, found)):
        raise CourseError(f"There is nothing to collect: name the zip that you downloaded, or put it into {folder}.")
    return found


@dataclass
class Summary:
    """The result of collecting. `students`: status ("new", "changed", "same", "older") -> students. `remarks`: for the
    teacher; `troubles`: what could not be read."""

    assignment: str
    students: dict[str, list[Student]] = field(default_factory=lambda: defaultdict(list))
    remarks: list[str] = field(default_factory=list)
    troubles: list[str] = field(default_factory=list)

    def lines(self) -> list[str]:
        """The summary for the teacher."""
        kinds = {"new": "new", "changed": "changed", "same": "as before", "older": "left as they are, newer than this"}
        counts = ", ".join(f"{len(self.students[kind])} {kinds[kind]}" for kind in kinds if self.students[kind])
        lines = [f"{self.assignment}: {sum(map(len, self.students.values()))} students: {counts or 'nobody'}"]
        for kind in ("new", "changed", "older"):
            if self.students[kind]:
                lines.append(f"  {kind}: {roster.listed([student.name_and_id for student in self.students[kind]])}")
        if self.students["changed"]:
            lines.append(f"  what they handed in before is in classroom/collected/{self.assignment}/replaced/")
        return lines + [f"  {remark}" for remark in self.remarks]


def collect(places: CourseDirectory, assignment: str, given: Sequence[Path], timed: Path | None = None) -> Summary:
    """Sort what was downloaded by student.

    given: zips as downloaded, folders they were unpacked into, at most one table of Moodle or Canvas (.csv), and one of
    Canvas's groups. timed: a file with the submission times (see `submission_times`). Where somebody is in
    several downloads, the file that is newest on this disk counts. Raises CourseError for an unknown assignment and an
    invalid table.
    """
    _check(places, assignment)
    root, summary = Path(places.root), Summary(assignment)
    who, handed_in = _roster(root, assignment, list(filter(_is_table, given)), timed, summary)
    matched, why = roster.match(who)
    desk = _Desk(places, assignment, summary, who.system, roster.numbers_of(matched), handed_in)
    with ExitStack() as open_archives:
        found: dict[tuple[str, str, str], tuple[Owner, Files, Path]] = {}
        nobodys: list[tuple[str, Files, str]] = []
        unread = False
        for path in sorted((path for path in given if not _is_table(path)), key=_made):
            try:
                entries = open_archives.enter_context(archives.opened(path))
            except (OSError, zipfile.BadZipFile, NotImplementedError) as error:
                summary.troubles.append(f"{path} cannot be read: {error}. Download it again.")
                unread = True
                continue
            works, loose = _sorted(entries, who)
            found |= {_key(owner): (owner, files, path) for owner, files in works}
            nobodys += loose
        taken: dict[str, Owner] = {}
        for owner, files, path in found.values():
            students = roster.decide(who, owner, matched, why)
            if not isinstance(students, str):
                students = _unusable(students, owner, taken) or students
            if isinstance(students, str):
                nobodys.append((_label(files), files, students))
                continue
            taken |= {student.id: owner for student in students}
            if len(students) == 1 and roster.is_someone_elses(owner, students[0]):
                summary.remarks.append(f"{students[0].name_and_id}: {OTHER_NAME.format(shown(owner.name))}")
            for student in students:
                try:
                    desk.take(student, owner, files, path)
                except OSError as error:
                    summary.troubles.append(f"{student.name_and_id} is not collected: {error}.")
            desk.forget_aside(_label(files))
        for label, files, reason in nobodys:
            desk.put_aside(label, files, reason)
    try:
        desk.register.save()
    except OSError as error:
        raise CourseError(f"{desk.register.path} cannot be written: {error}.") from error
    gone = roster.gone(who, desk.register, [owner for owner, _, _ in found.values()], taken)
    if gone := [student.name_and_id for student in gone if desk.folder(student).is_dir()] if not unread else []:
        summary.remarks.append(f"not in this download: {roster.listed(gone)}. {KEPT}")
    summary.remarks += submission_times.untimed(places, assignment, desk.register)
    if any(owner.system == MOODLE for owner in taken.values()) and not who.is_real:
        summary.remarks.append(MOODLE_NUMBERS)
    return summary


class Extractor(ExtractorPlugin):
    """Replaces nbgrader's extractor in `nbgrader zip_collect`, with the same result as our own command.

    If a course has set its own pattern, `c.FileNameCollectorPlugin.named_regexp`, downloads are unpacked for that
    pattern, within the same limits, each archive in a folder of its name.
    """

    def extract(self, archive_path: str, extracted_path: str) -> None:
        """Collect the downloads in the first folder; for a pattern of the course's own, unpack them into the second."""
        if self.config.FileNameCollectorPlugin.get("named_regexp"):
            self._unpack(Path(archive_path), Path(extracted_path))
            return
        app = self.parent
        given = sorted(path for path in Path(archive_path).iterdir() if not path.name.startswith("."))
        try:
            summary = collect(app.coursedir, app.coursedir.assignment_id, given)
        except CourseError as error:
            app.fail(str(error))
            return
        for line in summary.lines():
            self.log.warning(line)
        for line in summary.troubles:
            self.log.error(line)
        self.log.warning("All of it is in place, so that nothing is left for nbgrader itself to sort:")

    def _unpack(self, downloaded: Path, extracted: Path) -> None:
        for path in sorted(downloaded.iterdir()):
            name = path.name if path.is_dir() else path.stem
            try:
                with archives.opened(path) as entries:
                    shelves: dict[str, SubmissionStore] = defaultdict(
                        lambda name=name: SubmissionStore(extracted / name)
                    )
                    for entry in entries:
                        shelves[entry.parts[0]].add(entry, entry.parts)
            except (OSError, zipfile.BadZipFile, NotImplementedError):
                if path.is_file():
                    shutil.copy(path, extracted / path.name)
                continue
            for remark in (remark for shelf in shelves.values() for remark in shelf.remarks):
                self.log.warning(remark)


class _Desk:
    """The folder and the register of an assignment's submissions."""

    def __init__(
        self,
        places: CourseDirectory,
        assignment: str,
        summary: Summary,
        system: str,
        numbers: Mapping[str, str],
        handed_in: HandedIn,
    ) -> None:
        self._places, self._assignment, self._summary, self._handed_in = places, assignment, summary, handed_in
        self._in_table = (system, numbers)
        self._own = Path(places.root) / "classroom" / "collected" / assignment
        released = places.format_path(places.release_directory, ".", assignment)
        self._released = [path.name for path in Path(released).glob("*.ipynb")]
        for left in self._own.glob(".arriving-*"):  # by a collection that was interrupted
            shutil.rmtree(left, ignore_errors=True)
        self.register = collected.register(Path(places.root), assignment)
        self.register.numbers |= numbers

    def folder(self, student: Student) -> Path:
        """The student's submission."""
        return Path(self._places.format_path(self._places.submitted_directory, student.id, self._assignment))

    def take(self, student: Student, owner: Owner, files: Files, archive: Path) -> None:
        """Store one student's submission, unless it is there already."""
        folder = self.folder(student)
        before = self.register.students.get(student.id)
        self._own.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=self._own, prefix=".arriving-") as arriving:
            staged, remarks, names = self._stage(Path(arriving) / "work", files)
            digest, made = collected.digest_of(staged), _made(archive)
            there = folder.is_dir() and any(folder.iterdir())
            if there and digest == (before.digest if before else collected.digest_of(folder)):
                how = "same"
            elif there and before and made < before.made:
                self._summary.students["older"].append(student)
                return
            else:
                how = "changed" if there else "new"
                self._put(staged, folder, student, keep=there)
        first = made
        number = self._number(student, owner)
        submitted, is_late = self._submitted(student, owner, number, made), _mark(owner, files)
        if before and how == "same":
            first, made = min(made, before.arrived or before.made), max(made, before.made)
            submitted = min(filter(None, (submitted, before.submitted)), default=0.0)
            is_late = before.is_late if before.is_late is False or is_late is None else is_late
        record = Collected(
            owner.system, number, owner.name, digest, names, archive.name, made, first, submitted, is_late
        )
        self.register.students[student.id] = record
        self._summary.students[how].append(student)
        self._summary.remarks += [f"{student.name_and_id}: {remark}" for remark in remarks if how != "same"]

    def _number(self, student: Student, owner: Owner) -> str:
        """The platform's number of this student, if a submission has that of a group or of another member."""
        system, numbers = self._in_table
        known = self.register.numbers if owner.system == MOODLE else numbers if owner.system == system else {}
        return known.get(student.id, owner.number)

    def _submitted(self, student: Student, owner: Owner, number: str, made: float) -> float:
        """The platform's submission time of this student; 0 if unknown, or if it is that of a later version."""
        moment = self._handed_in.of(student, owner.system, number)
        if moment is None:
            return 0.0
        seconds = moment.replace(tzinfo=timezone.utc).timestamp()
        if made and seconds > made + CLOCKS:
            self._summary.remarks.append(
                f"{student.name_and_id} handed in once more after this download: download it again."
            )
            return 0.0
        return seconds

    def put_aside(self, label: str, files: Files, reason: str) -> None:
        """Store files without an owner where a teacher can look at them."""
        self.forget_aside(label)
        _, remarks, _ = self._stage(self._own / "unmatched" / label, files)
        self._summary.troubles.append(f"{shown(label)} is not collected: {reason}.")
        self._summary.troubles += [f"  {remark}" for remark in remarks]

    def forget_aside(self, label: str) -> None:
        """Remove stored files without an owner whose owner is known now, or that are collected again."""
        shutil.rmtree(self._own / "unmatched" / label, ignore_errors=True)

    def _stage(self, folder: Path, files: Files) -> tuple[Path, list[str], dict[str, str]]:
        """Store the files; returns the folder, what was left out, and path -> its name in the download."""
        folder.mkdir(parents=True)
        shelf, names = SubmissionStore(folder), {}
        given = {parts for _, parts in files}
        for entry, parts in files:
            first = (downloads.resubmitted(parts[-1], self._released),)
            here = first if len(parts) == 1 and first not in given else parts
            if here == (receipts.STAMP,):  # nbgrader would believe it
                here = (receipts.ASIDE,)
            shelf.add(entry, here)
            names["/".join(here)] = "/".join(entry.parts)
        return folder, shelf.remarks, names

    def _put(self, staged: Path, folder: Path, student: Student, keep: bool) -> None:
        folder.parent.mkdir(parents=True, exist_ok=True)
        if keep:
            moment = datetime.now().strftime("%Y-%m-%dT%H-%M-%S.%f")
            aside = self._own / "replaced" / student.id / moment
            aside.parent.mkdir(parents=True, exist_ok=True)
            os.replace(folder, aside)
        elif folder.is_dir():
            folder.rmdir()
        os.replace(staged, folder)


def _mark(owner: Owner, files: Files) -> bool | None:
    """Whether the names of a student's files say LATE; None for a platform that does not mark late files."""
    marks = {
        reading.is_late for entry, _ in files for reading in downloads.readings(entry.parts) if reading.owner == owner
    }
    return True if True in marks else False if False in marks else None


def _check(places: CourseDirectory, assignment: str) -> None:
    known = [places.release_directory, places.source_directory]
    if not assignment or not any(Path(places.format_path(step, ".", assignment)).is_dir() for step in known):
        raise CourseError(f"There is no assignment {assignment!r}: neither {known[0]}/ nor {known[1]}/ holds one.")


def _roster(
    root: Path, assignment: str, given: Sequence[Path], timed: Path | None, summary: Summary
) -> tuple[Roster, HandedIn]:
    """The identities and the submission times, from the given tables."""
    read = [tables.read_table(path) for path in given]
    groups = [table for table in read if tables.is_canvas_groups(table)]
    others = [table for table in read if table not in groups]
    if len(others) > 1 or len(groups) > 1:
        names = ", ".join(table.name for table in (others if len(others) > 1 else groups))
        raise CourseError(f"Expected one table of who is who, and one of groups, got {names}.")
    system, people = tables.people(others[0]) if others else ("", [])
    if groups:
        if system == MOODLE:
            raise CourseError(f"{groups[0].name} is Canvas's table of groups, and {others[0].name} is Moodle's.")
        system, members = tables.people(groups[0])
        people = roster.with_groups(people, members)
    zone = course_time.zone_of(results.configuration(root))
    by_number, unread = tables.submission_times(others[0], zone) if others else ({}, "")
    if unread:
        summary.remarks.append(unread)
    handed_in = HandedIn(MOODLE, by_number, submission_times.read(timed, zone) if timed else {})
    return Roster(results.read_roster(root), system, tuple(people), roster.earlier(root, assignment)), handed_in


def _sorted(
    entries: Sequence[ArchivedFile], who: Roster
) -> tuple[list[tuple[Owner, Files]], list[tuple[str, Files, str]]]:
    """The files of a download by owner; and those whose owner cannot be determined, with the reason."""
    works: dict[tuple[str, str, str], tuple[Owner, Files]] = {}
    nobodys: dict[str, tuple[str, Files, str]] = {}
    doubtful: list[tuple[ArchivedFile, list[PathReading]]] = []

    def give(entry: ArchivedFile, reading: PathReading) -> None:
        works.setdefault(_key(reading.owner), (reading.owner, []))[1].append((entry, reading.parts))

    for entry in downloads.unwrapped(entries):
        understood = downloads.readings(entry.parts)
        if len(understood) == 1:
            give(entry, understood[0])
        elif understood:
            doubtful.append((entry, understood))
        else:
            label = archives.fitted(entry.parts[0])
            reason = "its name is neither Moodle's nor Canvas's"
            nobodys.setdefault(label, (label, [], reason))[1].append((entry, entry.parts))
    sure = {owner.number: owner.name for owner, _ in works.values() if owner.system == CANVAS}
    for entry, understood in doubtful:
        fitting = [reading for reading in understood if who.confirms(reading.owner, sure)]
        if len(fitting) == 1:
            give(entry, fitting[0])
        else:
            numbers = " or ".join(reading.owner.number for reading in understood)
            reason = f"it can be {numbers}'s, by its name: Canvas's gradebook, given with --worksheet, decides"
            label = archives.fitted(entry.parts[0])
            nobodys[label] = (label, [(entry, entry.parts)], reason)
    return list(works.values()), list(nobodys.values())


def _key(owner: Owner) -> tuple[str, str, str]:
    return owner.system, owner.number, "" if owner.number else owner.name


def _unusable(students: Sequence[Student], owner: Owner, taken: Mapping[str, Owner]) -> str:
    """Why these ids cannot be used here, or ""."""
    for student in students:
        if student.id in taken:
            return f"it would be {student.name_and_id}'s, as {taken[student.id].name or taken[student.id].number} is"
        if reason := class_list.why_not(student.id):
            return reason
    return ""


def _label(files: Files) -> str:
    """The name of a submission in a download: its folder, or its first file."""
    return archives.fitted(files[0][0].parts[0])


def _is_table(path: Path) -> bool:
    return path.suffix.lower() == ".csv" and not path.is_dir()


def _made(path: Path) -> float:
    """The time at which this file was downloaded, from its date; 0 if it is missing."""
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
