"""Downloads as Moodle and Canvas make them, for the tests: a course that can collect, and zips with what students
send."""

import io
import os
import tarfile
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from nbgrader.api import Gradebook

from autograder.prepare import sample_class
from autograder.prepare.sample_class import ASSIGNMENT

NOTEBOOK = f"{ASSIGNMENT.notebook}.ipynb"
FOLDERS = {  # Moodle's version -> the folder of one student
    "3.1": "{name}_{number}_assignsubmission_file_/",
    "4.1": "{name}_{number}_assignsubmission_file/",
    "without folders": "{name}_{number}_assignsubmission_file_",
}
ROSTER = [  # id, first name, last name, e-mail address
    ("ada", "Ada", "Lovelace", "ada@uni.example"),
    ("bob", "Bob", "O'Neill", "bob@uni.example"),
    ("zoya", "Зоя", "Ångström", "zoya@uni.example"),
    ("eve", "Eve", "Mallory", "eve@uni.example"),
]
HEADER = (
    "Identifier,Full name,ID number,Email address,Status,Grade,Maximum Grade,Grade can be changed,"
    "Last modified (submission),Last modified (grade),Feedback comments"
)
GERMAN = (
    "ID,Vollständiger Name,ID-Nummer,E-Mail-Adresse,Status,Bewertung,Bestwertung,Bewertung kann geändert werden,"
    "Zuletzt geändert (Abgabe),Zuletzt geändert (Bewertung),Feedback als Kommentar"
)


def course(folder: Path, roster: Sequence[tuple[str, str, str, str]] = ROSTER) -> Path:
    """A course with a roster and no submissions."""
    sample_class.lay_out(folder)
    if roster:
        (folder / "classroom").mkdir()
        with Gradebook(f"sqlite:///{folder / 'classroom' / 'gradebook.db'}", "attention-by-hand") as gradebook:
            for student, first, last, email in roster:
                gradebook.add_student(student, first_name=first, last_name=last, email=email)
    return folder


def zipped(path: Path, files: Mapping[str, bytes | str], moment: float | None = None) -> Path:
    """A zip with these files; downloaded at that moment."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(zip_bytes(files))
    if moment is not None:
        os.utime(path, (moment, moment))
    return path


def zip_bytes(files: Mapping[str, bytes | str]) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return content.getvalue()


def tar_bytes(files: Mapping[str, bytes], kind: str = "w:gz", members: Sequence[tarfile.TarInfo] = ()) -> bytes:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode=kind) as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
        for member in members:
            archive.addfile(member)
    return content.getvalue()


def worksheet(
    path: Path, people: Mapping[int, tuple[str, str, str]], header: str = HEADER, handed_in: Mapping[int, str] = {}
) -> Path:
    """Moodle's grading worksheet: number -> (full name, ID number, e-mail address). handed_in: number -> the date."""
    word, maximum = ("Teilnehmer/in", '"30,00"') if header == GERMAN else ("Participant ", "30.00")
    rows = [
        f'{word}{number},"{name}",{key},{email},Submitted for grading,,{maximum},Yes,"{handed_in.get(number, "-")}",-,'
        for number, (name, key, email) in people.items()
    ]
    path.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8-sig")
    return path


def submitted(folder: Path) -> dict[str, dict[str, str]]:
    """Student -> file -> content, for all that was collected."""
    found: dict[str, dict[str, str]] = {}
    for place in sorted((folder / "classroom" / "submitted").glob(f"*/{ASSIGNMENT.id}")):
        files = (path for path in sorted(place.rglob("*")) if path.is_file())
        found[place.parent.name] = {
            path.relative_to(place).as_posix(): path.read_bytes().decode(errors="replace") for path in files
        }
    return found
