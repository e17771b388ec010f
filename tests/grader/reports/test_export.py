"""Grades for Canvas, Moodle, Gradescope and spreadsheets, with names as people have them."""

import csv
import io
import json
import stat
import subprocess
import sys
import zipfile
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from autograder.course import CourseError
from autograder.prepare import sample_class
from autograder.prepare.sample_class import ASSIGNMENT
from autograder.reports import export, results
from autograder.reports.csv_safety import safe
from autograder.reports.results import Class, Graded, Result, Student

EXERCISES = ASSIGNMENT.exercises


def graded(student: Student, points: float, penalty: float = 0.0) -> Graded:
    """A submission that earned these points, all of them in the first exercises."""
    left, each = points, []
    for exercise in EXERCISES:
        each.append(Result(exercise, min(left, exercise.points), report=f"{exercise.id} report\n"))
        left -= each[-1].points
    return Graded(student, tuple(each), points, penalty, datetime(2026, 11, 2, 9, 30), False)


ADA = Student("ada", "Ada", "Lovelace", "ada@uni.example")
QUOTED = Student("s002", 'Bob "The Builder"', "O'Neill, Jr.", "bob.oneill@uni.example")
ACCENTS = Student("s003", "Зоя", "Ångström-李", "Zoya@uni.example")
COMMAND = Student("s004", "=cmd|' /C calc'!A0", "@SUM(1+1)", "s004@uni.example")
FORMULA_ID = Student("=1+1", "Mallory", "Id", "mallory@uni.example")
ABSENT = Student("s006", "Nobody", "Came", "s006@uni.example")
CLASS = Class(
    ASSIGNMENT,
    30.0,
    (graded(ADA, 30), graded(QUOTED, 21.666666), graded(ACCENTS, 11.5, 2.5), graded(COMMAND, 7), graded(FORMULA_ID, 1)),
    (ABSENT,),
)


def lines(made: export.Export, delimiter: str = ",") -> list[list[str]]:
    return list(csv.reader(io.StringIO(made.content.decode("utf-8-sig")), delimiter=delimiter))


def table(text: str, tmp_path) -> export.Table:
    path = tmp_path / "theirs.csv"
    path.write_text(text, encoding="utf-8")
    return export.read_table(path)


# -------------------------------------------------------------------------------------------------- spreadsheets


def test_a_plain_export_has_a_line_for_everyone_with_points_of_each_exercise():
    head, *rows = lines(export.plain(CLASS, None, "", False))
    by_id = {row[0]: dict(zip(head, row, strict=True)) for row in rows}
    assert len(rows) == 6
    assert by_id["s002"]["last_name"] == "O'Neill, Jr."
    assert by_id["s003"]["first_name"] == "Зоя"
    assert by_id["s003"]["raw_score"] == "11.5" and by_id["s003"]["score"] == "9"
    assert by_id["s002"]["score"] == "21.67"
    assert [by_id["ada"][exercise.number] for exercise in EXERCISES] == [
        f"{exercise.points:g}" for exercise in EXERCISES
    ]
    assert (by_id["s006"]["submitted"], by_id["s006"]["score"]) == ("no", "")


def test_the_time_of_a_submission_is_local_and_says_its_offset():
    options = export.Options(zone=ZoneInfo("America/Los_Angeles"))
    head, *rows = lines(export.plain(CLASS, None, "", False, options))
    assert {row[head.index("timestamp")] for row in rows} == {"2026-11-02 01:30:00-08:00", ""}


def test_who_handed_in_nothing_gets_a_zero_only_when_asked():
    rows = {row[0]: row for row in lines(export.plain(CLASS, None, "", True))}
    assert rows["s006"][-3] == "0"


@pytest.mark.parametrize("text", ["=cmd|' /C calc'!A0", "+1+1", "-2+3", "@SUM(1)", "\t=1", "＝1+1"])
def test_no_cell_is_computed_by_a_spreadsheet(text):
    assert safe(text) == f"'{text}"


@pytest.mark.parametrize("text", ["-2.5", "+39", "30", "", "-", "Anne-Marie", "a=b", "O'Neill, Jr."])
def test_numbers_and_ordinary_names_stay_as_they_are(text):
    assert safe(text) == text


@pytest.mark.parametrize("make", [export.plain, export.canvas, export.moodle])
def test_no_export_holds_a_cell_that_starts_a_formula(make):
    cells = [cell for line in lines(make(CLASS, None, "Homework 5", False)) for cell in line]
    assert not [cell for cell in cells if cell.startswith(("=", "@"))]
    assert any(cell.startswith("'@SUM") for cell in cells) or any("'@SUM" in cell for cell in cells)


# -------------------------------------------------------------------------------------------------- Canvas

CANVAS = '''\
Student,ID,SIS User ID,SIS Login ID,Section,Homework 4 (1001),Homework 5 (1002),Current Score,Final Score
    Points Possible,,,,,10.00,30.00,(read only),(read only)
"Lovelace, Ada",501,u-1,ADA,Lab 1,9.00,,90,90
"O'Neill, Jr., Bob ""The Builder""",502,s002,bob,"Lab 1, Lab 2",8.00,5.00,80,80
"Ångström-李, Зоя",503,,zoya@uni.example,Lab 2,,,,
"=cmd|' /C calc'!A0",504,s004,,Lab 2,,,,
"Stranger, A",505,x9,x9,Lab 2,1.00,,,
"Student, Test",506,,,Lab 1,,,,
'''


def test_canvas_gets_its_own_ids_and_this_column_alone(tmp_path):
    made = export.canvas(CLASS, table(CANVAS, tmp_path), "Homework 5", False)
    rows = lines(made)
    assert rows[0] == ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", "Homework 5 (1002)"]
    assert rows[1][0].strip() == "Points Possible" and rows[1][-1] == "30.00"
    assert {row[1]: row[-1] for row in rows[2:]} == {"501": "30", "502": "21.67", "503": "9", "504": "7"}
    assert {row[1]: row[0] for row in rows[2:]}["502"] == 'O\'Neill, Jr., Bob "The Builder"'


def test_a_name_from_canvas_that_is_a_formula_comes_back_as_text(tmp_path):
    rows = lines(export.canvas(CLASS, table(CANVAS, tmp_path), "Homework 5", False))
    assert {row[1]: row[0] for row in rows[2:]}["504"] == "'=cmd|' /C calc'!A0"


def test_who_is_graded_here_and_unknown_to_canvas_is_named(tmp_path):
    made = export.canvas(CLASS, table(CANVAS, tmp_path), "Homework 5", False)
    assert [remark for remark in made.remarks if "is not in theirs.csv" in remark] == [
        "Mallory Id (=1+1) is not in theirs.csv."
    ]


def test_a_column_that_canvas_does_not_have_is_said_to_be_new(tmp_path):
    made = export.canvas(CLASS, table(CANVAS, tmp_path), "Homework 6", False)
    assert lines(made)[0][-1] == "Homework 6"
    assert any("Canvas will offer to create it" in remark for remark in made.remarks)


def test_another_maximum_over_there_is_said(tmp_path):
    made = export.canvas(CLASS, table(CANVAS, tmp_path), "Homework 4", False)
    assert "Canvas counts this assignment out of 10.00, the gradebook out of 30." in made.remarks


def test_a_canvas_file_with_semicolons_comes_back_with_semicolons(tmp_path):
    german = "Student;ID;SIS Login ID;Section;Homework 5 (7)\nPoints Possible;;;;30,00\nLovelace, Ada;501;ada;Lab;\n"
    rows = lines(export.canvas(CLASS, table("\ufeff" + german, tmp_path), "Homework 5", False), ";")
    assert rows[2] == ["Lovelace, Ada", "501", "ada", "Lab", "30"]


def test_without_a_template_canvas_knows_students_by_their_login():
    rows = lines(export.canvas(CLASS, None, "Homework 5", False))
    assert rows[0] == ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", "Homework 5"]
    assert {row[3] for row in rows[2:]} == {"ada", "s002", "s003", "s004", "s006"}


def test_an_id_that_is_a_formula_is_left_out_and_named():
    made = export.canvas(CLASS, None, "Homework 5", False)
    assert made.remarks == ["1 for '=1+1' is left out: a spreadsheet would compute this id."]


def test_a_file_that_is_not_canvas_s_is_refused_by_name(tmp_path):
    with pytest.raises(CourseError, match="theirs.csv is not a gradebook of Canvas"):
        export.canvas(CLASS, table("name,grade\nAda,1\n", tmp_path), "Homework 5", False)


# -------------------------------------------------------------------------------------------------- Moodle

WORKSHEET = """\
Identifier,Full name,ID number,Email address,Status,Grade,Maximum Grade,Grade can be changed,Feedback comments
Participant 11,Ada Lovelace,ada,ada@uni.example,Submitted for grading,,30.00,Yes,
Participant 12,"Bob ""The Builder"" O'Neill, Jr.",s002,bob.oneill@uni.example,Submitted for grading,,30.00,Yes,see me
Participant 13,Zoya,,Zoya@uni.example,No submission,,30.00,Yes,
"""


def test_a_grading_worksheet_of_moodle_comes_back_filled_in_and_otherwise_unchanged(tmp_path):
    template = table(WORKSHEET, tmp_path)
    rows = lines(export.moodle(CLASS, template, "", False))
    assert rows[0] == template.header
    assert [row[5] for row in rows[1:]] == ["30", "21.67", "9"]
    assert [row[:5] + row[6:] for row in rows[1:]] == [row[:5] + row[6:] for row in template.rows]


def test_students_collected_by_moodle_s_own_number_are_found_by_it(tmp_path):
    numbered = Class(ASSIGNMENT, 30.0, (graded(Student("13"), 4),), ())
    rows = lines(export.moodle(numbered, table(WORKSHEET, tmp_path), "", False))
    assert [(row[1], row[5]) for row in rows[1:]] == [("Zoya", "4")]


def test_a_gradebook_of_moodle_comes_back_with_who_and_this_grade_alone(tmp_path):
    theirs = (
        "First name,Last name,ID number,Email address,Assignment: Homework 4 (Real),Assignment: Homework 5 (Real)\n"
        "Ada,Lovelace,,ADA@uni.example,9.00,-\n"
    )
    rows = lines(export.moodle(CLASS, table(theirs, tmp_path), "Homework 5", False))
    assert rows == [
        ["First name", "Last name", "ID number", "Email address", "Assignment: Homework 5 (Real)"],
        ["Ada", "Lovelace", "", "ADA@uni.example", "30"],
    ]


def test_without_a_template_moodle_can_map_the_user_name_or_the_address():
    head, *rows = lines(export.moodle(CLASS, None, "Homework 5", False))
    assert head[:2] == ["Username", "Email address"]
    assert {row[1]: row[-1] for row in rows}["Zoya@uni.example"] == "9"


# -------------------------------------------------------------------------------------------------- Gradescope


@pytest.fixture
def gradescope(tmp_path):
    """Runs the archive as Gradescope does, its folder moved; returns (exit code, results, errors) for an address."""
    with zipfile.ZipFile(io.BytesIO(export.for_gradescope(CLASS, None, "", False).content)) as archive:
        archive.extractall(tmp_path / "source")
        kinds = {entry.filename: entry.external_attr >> 16 for entry in archive.infolist()}
    assert {"setup.sh", "run_autograder"} <= set(kinds)
    assert all(stat.S_ISREG(kinds[name]) and kinds[name] & stat.S_IXUSR for name in ("setup.sh", "run_autograder"))
    (tmp_path / "results").mkdir()
    program = (tmp_path / "source" / "run_autograder").read_text(encoding="utf-8")
    assert program.count("/autograder/") == 3

    def run(email: str):
        (tmp_path / "submission_metadata.json").write_text(json.dumps({"users": [{"email": email, "id": 7}]}))
        script = program.replace("/autograder/", f"{tmp_path}/")
        done = subprocess.run([sys.executable, "-I", "-c", script], capture_output=True, text=True)
        written = tmp_path / "results" / "results.json"
        return done.returncode, json.loads(written.read_text()) if written.exists() else None, done.stderr

    return run


def test_gradescope_hands_each_student_their_own_grade(gradescope):
    code, result, _ = gradescope("ZOYA@uni.example")
    assert code == 0
    assert result["score"] == 9.0
    assert [test["max_score"] for test in result["tests"]] == [exercise.points for exercise in EXERCISES]
    assert result["tests"][0]["output"] == f"{EXERCISES[0].id} report\n"
    assert "late" in result["output"]


def test_gradescope_gives_a_stranger_no_grade_instead_of_a_zero(gradescope):
    code, result, errors = gradescope("stranger@uni.example")
    assert (code, result) == (1, None)
    assert "There is no grade for stranger@uni.example" in errors


def test_a_student_without_an_address_is_named_to_the_teacher():
    without = Class(ASSIGNMENT, 30.0, (graded(Student("s1", "A", "B"), 3),), ())
    assert export.for_gradescope(without, None, "", False).remarks == [
        "A B (s1) has no e-mail address in the gradebook."
    ]


# -------------------------------------------------------------------------------------------------- the command


def test_the_command_writes_into_the_classroom_and_keeps_the_exit_code_for_what_was_left_out(
    tmp_path, monkeypatch, capsys
):
    from autograder import __main__ as command_line

    sample_class.lay_out(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(results, "read_class", lambda root, assignment: CLASS)
    assert command_line.main(["export", ASSIGNMENT.id]) == 0
    path = tmp_path / "classroom" / "exports" / f"{ASSIGNMENT.id}-csv.csv"
    assert capsys.readouterr().out.strip() == str(path)
    assert path.read_bytes().startswith(b"\xef\xbb\xbfstudent_id,")
    assert command_line.main(["export", ASSIGNMENT.id, "--format", "canvas"]) == 1
    assert "is left out" in capsys.readouterr().err
    assert command_line.main(["export", ASSIGNMENT.id, "--format", "csv", "--template", str(path)]) == 2
