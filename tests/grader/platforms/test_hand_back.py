"""Feedback on its way back, and grades with it: in the forms that Moodle and Canvas read, by their own rules."""

import csv
import io
import json
import logging
import re
import shutil
import zipfile
from dataclasses import replace
from datetime import datetime

import judged_class
import nbformat
import pytest
from bs4 import BeautifulSoup
from downloads_class import GERMAN, NOTEBOOK, worksheet, zipped
from judged_class import Work, mistaken
from nbgrader.api import Gradebook
from traitlets.log import get_logger

from autograder import __main__ as command_line
from autograder import catalogue
from autograder.platforms import collect, hand_back
from autograder.prepare import sample_class
from autograder.prepare.sample_class import ASSIGNMENT
from autograder.reports import fresh, results, reteach

pytestmark = pytest.mark.xdist_group("hand_back")

ROSTER = [
    Work("ada", "Ada", "Lovelace", "ada@uni.example", comments={"attend": "Well done <b>indeed</b>"}),
    Work("ben", "Ben", "Ünal", answers=mistaken("attention-weights", "no scaling"), penalty=1.0),
    Work("cleo", "Cleo", "O'Hara", "cleo@uni.example", timestamp=datetime(2026, 11, 2, 9, 30)),
    Work("ida", "Ida", "Absent", answers=None),
]
PEOPLE = {11: ("Ada Lovelace", "ada", ""), 12: ("Ben Ünal", "ben", ""), 14: ("Ida Absent", "ida", "")}
PLAIN = "essay"


@pytest.fixture(scope="module")
def folder(tmp_path_factory, released):
    """A graded class with feedback, collected from Moodle (Ada, Ben); Cleo's work came by hand, Ida's not at all."""
    folder = tmp_path_factory.mktemp("hand_back") / "course"
    judged_class.lay_out(folder, ROSTER, released())
    done = sample_class.nbgrader(folder, "generate_feedback", ASSIGNMENT.id)
    assert done.returncode == 0, done.stdout
    files = {f"{PEOPLE[number][0]}_{number}_assignsubmission_file/{NOTEBOOK}": str(number) for number in (11, 12)}
    given = [zipped(folder / "submissions.zip", files), worksheet(folder / "grades.csv", PEOPLE)]
    collect.collect(results.directory(folder), ASSIGNMENT.id, given)
    add_plain(folder)
    return folder


def add_plain(folder):
    """An assignment outside the catalogue: one cell of 5 points, in which Ada has 4."""
    with Gradebook(f"sqlite:///{folder / 'classroom' / 'gradebook.db'}", "attention-by-hand") as gradebook:
        gradebook.add_assignment(PLAIN)
        gradebook.add_notebook("paper", PLAIN)
        gradebook.add_grade_cell("q1", "paper", PLAIN, max_score=5, cell_type="code")
        submission = gradebook.add_submission(PLAIN, "ada")
        (grade,) = submission.notebooks[0].grades
        grade.manual_score, grade.needs_manual_grade = 4, False
        gradebook.db.commit()


def moodle_reads(name):
    """The number that Moodle's importer finds in a path, by the steps of importziplib.php, and the file's name."""
    parts = name.split("/")
    while parts:
        info = parts.pop(0).split("_", 4)
        if len(info) >= 4 and info[1].isdigit() and info[2:4] == ["assignsubmission", "file"]:
            return int(info[1]), "/".join([*info[4:], *parts]).lstrip("/")
    return None


def canvas_reads(name):
    """(student, file) that Canvas finds in a name, by the steps of infer_comment_context_from_filename."""
    words = [word for word in name.split("/")[-1].split("_") if word != "LATE"]
    return tuple(words[1:3]) if words[0] == "anon" else tuple([word for word in words if word.isdigit()][:2])


def command(folder, monkeypatch, capsys, *arguments):
    monkeypatch.chdir(folder)
    code = command_line.main([*arguments])
    said = capsys.readouterr()
    return code, said.out.strip(), said.err


def test_moodle_finds_the_student_of_every_page_and_who_has_no_number_is_named(folder, monkeypatch, capsys):
    code, path, said = command(folder, monkeypatch, capsys, "feedback", ASSIGNMENT.id, "--format", "moodle")
    with zipfile.ZipFile(path) as archive:
        found = {moodle_reads(name): archive.read(name).decode() for name in archive.namelist()}
    assert set(found) == {(11, "self_attention.html"), (12, "self_attention.html")}
    assert "Feedback for Ada Lovelace (ada)" in found[11, "self_attention.html"]
    assert (
        code == 1
        and said == "Cleo O'Hara (cleo) has no number of Moodle's: give the grading worksheet with --worksheet.\n"
    )


def test_packing_does_not_log_late_penalties_that_name_nobody(folder, monkeypatch, capsys):
    logged = []
    handler = logging.Handler()
    handler.emit = lambda record: logged.append(record.getMessage())
    get_logger().addHandler(handler)
    try:
        command(folder, monkeypatch, capsys, "feedback", ASSIGNMENT.id, "--format", "mail")
    finally:
        get_logger().removeHandler(handler)
    assert logged == []


def test_a_worksheet_brings_the_numbers_that_collecting_did_not(folder, monkeypatch, capsys):
    sheet = worksheet(folder / "more.csv", {**PEOPLE, 13: ("Cleo O'Hara", "", "cleo@uni.example")})
    arguments = ("feedback", ASSIGNMENT.id, "--format", "moodle", "--worksheet", str(sheet))
    code, path, said = command(folder, monkeypatch, capsys, *arguments)
    with zipfile.ZipFile(path) as archive:
        assert {moodle_reads(name)[0] for name in archive.namelist()} == {11, 12, 13}
    assert (code, said) == (0, "")


def test_canvas_finds_student_and_file_and_a_notebook_comes_back_as_a_notebook(folder):
    record = {"system": "canvas", "name": "x", "digest": "", "archive": "a.zip", "made": 0.0}
    files = {
        "ada": ("501", {NOTEBOOK: f"lovelaceada_501_98765_{NOTEBOOK}", "data.txt": "lovelaceada_501_98766_data.txt"}),
        "ben": ("502", {"work.zip": "ünalben_LATE_502_98767_work.zip"}),
    }
    students = {student: {**record, "number": number, "files": names} for student, (number, names) in files.items()}
    path = folder / "classroom" / "collected" / f"{ASSIGNMENT.id}.json"
    before = path.read_text()
    path.write_text(json.dumps({"students": students, "numbers": {}}))
    packed = hand_back.for_canvas(hand_back.read(folder, ASSIGNMENT.id))
    path.write_text(before)
    found = {canvas_reads(name): content for name, content in packed.files.items()}
    assert set(found) == {("501", "98765"), ("502", "98767")}
    notebook = nbformat.reads(found["501", "98765"].decode(), as_version=4)
    nbformat.validate(notebook)
    text = "\n".join(cell.source for cell in notebook.cells)
    assert "30 of 30 points" in text and "Well done <b>indeed</b>" in text and "def attend(" in text
    assert not any(cell.get("outputs") for cell in notebook.cells)
    with zipfile.ZipFile(io.BytesIO(found["502", "98767"])) as archive:
        assert archive.namelist() == ["self_attention.html"]
    assert [remark.split(" (")[0] for remark in packed.remarks] == ["Cleo O'Hara"]


def test_a_mail_merge_has_a_page_for_everyone_and_names_who_has_no_address(folder, monkeypatch, capsys):
    code, path, said = command(folder, monkeypatch, capsys, "feedback", ASSIGNMENT.id, "--format", "mail")
    place = folder / "classroom" / "exports" / f"{ASSIGNMENT.id}-feedback-mail"
    assert path == str(place)
    with (place / "mail.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = {row["id"]: row for row in csv.DictReader(file)}
    assert {name: (row["file"], row["points"], row["of"]) for name, row in rows.items()} == {
        "ada": ("ada.html", "30", "30"),
        "ben": ("ben.html", "21", "30"),
        "cleo": ("cleo.html", "30", "30"),
    }
    assert {each.name for each in place.iterdir()} == {"mail.csv", "ada.html", "ben.html", "cleo.html"}
    assert (code, said) == (1, "Ben Ünal (ben) has no e-mail address in the gradebook.\n")
    assert command(folder, monkeypatch, capsys, "feedback", ASSIGNMENT.id, "--format", "mail")[0] == 1


def test_a_folder_with_something_else_in_it_is_left_alone(folder, monkeypatch, capsys, tmp_path):
    (tmp_path / "thesis.tex").write_text("x")
    arguments = ("feedback", ASSIGNMENT.id, "--format", "mail", "--output", str(tmp_path))
    assert command(folder, monkeypatch, capsys, *arguments)[0] == 2
    assert (tmp_path / "thesis.tex").read_text() == "x"


def test_no_feedback_at_all_is_a_sentence_that_says_what_makes_it(folder, monkeypatch, capsys):
    code, _, said = command(folder, monkeypatch, capsys, "feedback", PLAIN, "--format", "moodle")
    assert code == 2 and said == f"There is no feedback for {PLAIN} yet: nbgrader generate_feedback {PLAIN}\n"


def test_the_page_opens_what_is_wrong_and_folds_what_is_right(folder):
    path = folder / "classroom" / "feedback" / "ben" / ASSIGNMENT.id / "self_attention.html"
    page = BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")
    opened = {section["id"]: section.details.has_attr("open") for section in page.select("section.card")}
    assert opened["attention-weights"] and not opened["project"]
    assert "1 point was taken off because it came late." in page.get_text()


# -------------------------------------------------------------------------------------------------- grades


def exported(folder, monkeypatch, capsys, *arguments):
    code, path, said = command(folder, monkeypatch, capsys, "export", *arguments)
    with open(path, encoding="utf-8", newline="") as file:
        return code, list(csv.reader(file)), said


def test_a_worksheet_is_filled_in_by_the_numbers_that_were_collected(folder, monkeypatch, capsys):
    """No name, address or ID number is in it, as in blind marking."""
    sheet = folder / "blind.csv"
    header = "Identifier,Status,Grade,Maximum Grade,Grade can be changed,Last modified (grade),Feedback comments"
    rows = [
        f"Participant {number},Submitted for grading,,30.00,Yes,-,{text}" for number, text in ((12, ""), (11, "mine"))
    ]
    sheet.write_text("\n".join([header, *rows]) + "\n")
    arguments = (ASSIGNMENT.id, "--format", "moodle", "--template", str(sheet), "--comments")
    code, lines, said = exported(folder, monkeypatch, capsys, *arguments)
    assert [(row[0], row[2], row[5]) for row in lines[1:]] == [
        ("Participant 12", "21", "-"),
        ("Participant 11", "30", "-"),
    ]
    assert lines[2][6] == "mine"
    assert lines[1][6].startswith("21 of 30 points<br>1 of them taken off because it came late<br>05.1 attend: 4")
    assert "a known mistake: no scaling" in lines[1][6]
    assert code == 1 and said == "Cleo O'Hara (cleo) is not in blind.csv.\n"


def test_a_worksheet_in_german_is_filled_in_with_commas(folder, monkeypatch, capsys):
    sheet = worksheet(folder / "de.csv", {47: PEOPLE[12], 48: ("Cleo O'Hara", "", "CLEO@uni.example")}, GERMAN)
    arguments = (ASSIGNMENT.id, "--format", "moodle", "--template", str(sheet), "--scale-to", "10")
    _, lines, said = exported(folder, monkeypatch, capsys, *arguments)
    assert [(row[0], row[5]) for row in lines[1:]] == [("Teilnehmer/in47", "7"), ("Teilnehmer/in48", "10")]
    assert "Moodle counts this assignment out of 30,00, the gradebook out of 10." in said


@pytest.mark.parametrize(("to", "points"), [("100", ["100", "70", "100"]), ("theirs", ["50", "35", "50"])])
def test_grades_can_be_counted_out_of_another_maximum(folder, monkeypatch, capsys, to, points):
    sheet = folder / "canvas.csv"
    sheet.write_text(
        "Student,ID,SIS Login ID,Section,Homework 5 (7)\n    Points Possible,,,,50.00\n"
        "Ada,501,ada,L,\nBen,502,ben,L,\nCleo,503,cleo@uni.example,L,\n"
    )
    arguments = ("--format", "canvas", "--template", str(sheet), "--column", "Homework 5", "--scale-to", to)
    _, lines, _ = exported(folder, monkeypatch, capsys, ASSIGNMENT.id, *arguments)
    assert [row[-1] for row in lines[2:]] == points


@pytest.mark.parametrize("to", ["0", "-3", "nan", "inf", "many"])
def test_a_maximum_that_is_none_is_refused(folder, monkeypatch, capsys, to):
    monkeypatch.chdir(folder)
    with pytest.raises(SystemExit) as stopped:
        command_line.main(["export", ASSIGNMENT.id, f"--scale-to={to}"])
    assert stopped.value.code == 2
    assert "expected a number of points" in capsys.readouterr().err


def test_an_assignment_outside_the_catalogue_is_exported(folder, monkeypatch, capsys):
    code, lines, _ = exported(folder, monkeypatch, capsys, PLAIN)
    rows = {row[0]: dict(zip(lines[0], row, strict=True)) for row in lines[1:]}
    assert code == 0
    assert (rows["ada"]["q1"], rows["ada"]["score"], rows["ada"]["max_score"]) == ("4", "4", "5")
    assert rows["ben"]["submitted"] == "no"


def test_several_assignments_are_summed_up(folder, monkeypatch, capsys):
    _, lines, _ = exported(folder, monkeypatch, capsys, ASSIGNMENT.id, PLAIN)
    rows = {row[0]: dict(zip(lines[0], row, strict=True)) for row in lines[1:]}
    sums = {name: (row[ASSIGNMENT.id], row[PLAIN], row["score"]) for name, row in rows.items()}
    assert sums == {"ada": ("30", "4", "34"), "ben": ("21", "0", "21"), "cleo": ("30", "0", "30"), "ida": ("", "", "")}
    assert {row["max_score"] for row in rows.values()} == {"35"}
    assert (rows["ben"]["raw_score"], rows["ben"]["late_penalty"]) == ("22", "1")  # 8 of 30 are lost to a mistake


@pytest.mark.parametrize("name", ["dashboard", "similar"])
def test_what_is_read_from_verdicts_says_that_a_plain_assignment_has_none(folder, monkeypatch, capsys, name):
    code, _, said = command(folder, monkeypatch, capsys, name, PLAIN)
    assert code == 2
    assert f"The catalogue has no assignment '{PLAIN}'" in said and "export and feedback take every assignment" in said


def test_a_formula_in_a_name_stays_text_in_the_table_for_mail(folder):
    batch = hand_back.read(folder, ASSIGNMENT.id)
    graded = batch.graded.graded[0]
    evil = replace(graded, student=results.Student(graded.student.id, "=cmd|' /C calc'!A0", "", "@SUM(1)"))
    packed = hand_back.for_mail(replace(batch, graded=replace(batch.graded, graded=(evil,))))
    (row,) = list(csv.reader(io.StringIO(packed.files["mail.csv"].decode("utf-8-sig"))))[1:]
    assert row[1:3] == ["'=cmd|' /C calc'!A0", "'@SUM(1)"]


def test_a_class_that_does_not_hold_its_projections_has_a_card_with_the_right_result():
    exercise = catalogue.find("self-attention")
    misconception = next(each for each in exercise.mistakes if each.name == "values not projected")
    example = reteach.card(exercise, misconception).example
    assert "not the ones that it should hold" in example.mistaken
    assert re.search(r"\d\.\d\d\d", example.right)


@pytest.mark.parametrize(
    ("hint", "sentence"),
    [
        ("a = f(x); b = f(x)", "a = f(x); b = f(x)"),
        ("a and b of (..., d) are spread", "a and b of (..., d) are spread"),
        ("x is (n,), its sum is one number", "x is (n,), its sum is one number"),
        ("ids (B, T) choose rows", "ids (B, T) choose rows"),
        ("a vector times a matrix", "A vector times a matrix"),
        ("which axis has it?", "Which axis has it?"),
    ],
)
def test_a_hint_is_capitalized_unless_it_begins_with_a_name(hint, sentence):
    assert reteach.sentence(hint) == sentence


def test_points_and_words_given_after_the_pages_were_written_are_on_what_goes_out(
    folder, tmp_path, monkeypatch, capsys
):
    course = shutil.copytree(folder, tmp_path / "course")
    monkeypatch.chdir(course)
    with Gradebook(f"sqlite:///{course / 'classroom' / 'gradebook.db'}", "attention-by-hand") as gradebook:
        place = (ASSIGNMENT.notebook, ASSIGNMENT.id, "cleo")
        gradebook.find_comment("attend", *place).manual_comment = "Come and see me."
        gradebook.find_grade("attend-check", *place).manual_score = 0.5
        gradebook.db.commit()
    assert command_line.main(["feedback", ASSIGNMENT.id, "--format", "mail"]) == 1  # Ben has no address
    said = capsys.readouterr()
    assert "written anew, since the gradebook has changed: Cleo O'Hara (cleo)\n" in said.out
    page = (course / "classroom" / "exports" / f"{ASSIGNMENT.id}-feedback-mail" / "cleo.html").read_text(
        encoding="utf-8"
    )
    assert "Come and see me." in page and "A teacher set these points by hand." in page
    command_line.main(["feedback", ASSIGNMENT.id, "--format", "mail"])
    assert "written anew" not in capsys.readouterr().out


def test_plain_generate_feedback_writes_a_page_again_that_the_gradebook_no_longer_bears_out(folder, tmp_path):
    course = shutil.copytree(folder, tmp_path / "course")
    pages = {path: path.stat().st_mtime_ns for path in (course / "classroom" / "feedback").rglob("*.html")}
    with Gradebook(f"sqlite:///{course / 'classroom' / 'gradebook.db'}", "attention-by-hand") as gradebook:
        gradebook.find_comment("attend", ASSIGNMENT.notebook, ASSIGNMENT.id, "cleo").manual_comment = "Late."
        gradebook.db.commit()
    done = sample_class.nbgrader(course, "generate_feedback", ASSIGNMENT.id)
    assert done.returncode == 0, done.stdout
    again = [path for path, before in pages.items() if path.stat().st_mtime_ns != before]
    assert [path.parents[1].name for path in again] == ["cleo"] and "Late." in again[0].read_text(encoding="utf-8")


def test_what_nbgrader_writes_by_itself_is_not_said_to_be_the_teacher_s(folder, tmp_path):
    course = shutil.copytree(folder, tmp_path / "course")
    with Gradebook(f"sqlite:///{course / 'classroom' / 'gradebook.db'}", "attention-by-hand") as gradebook:
        gradebook.find_comment("attend", ASSIGNMENT.notebook, ASSIGNMENT.id, "cleo").auto_comment = "No response."
        gradebook.db.commit()
    found = fresh.stale_pages(results.directory(course), results.configuration(course), ASSIGNMENT.id, "cleo")
    assert found == {}
