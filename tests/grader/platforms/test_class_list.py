"""Lists of a class as spreadsheets save them: everyone in one is in the gradebook afterward, or nobody is."""

import shutil

import pytest
from downloads_class import course

from autograder import __main__ as command_line
from autograder.course import CourseError
from autograder.platforms import class_list, tables
from autograder.prepare import doctor
from autograder.reports import results

TWO = [("ada", "Ada", "Lovelace", "ada@uni.example"), ("zoe", "Zoë", "Ünal", "zoe@uni.example")]
PLAIN = "id,first_name,last_name,email\nada,Ada,Lovelace,ada@uni.example\nzoe,Zoë,Ünal,zoe@uni.example\n"
FORMS = {
    "as it should be": PLAIN.encode(),
    "with a byte order mark": PLAIN.encode("utf-8-sig"),
    "with semicolons": PLAIN.replace(",", ";").encode(),
    "with tabs": PLAIN.replace(",", "\t").encode("utf-16"),
    "in capitals, with blanks": PLAIN.replace(
        "id,first_name,last_name,email", "ID, First Name ,Last_Name,EMail"
    ).encode(),
    "in Windows' letters": PLAIN.replace(",", ";").replace("\n", "\r\n").encode("cp1252"),
    "of an old Macintosh": PLAIN.replace("\n", "\r").encode(),
    "with empty lines": PLAIN.replace("\n", "\n\n,,,\n").encode(),
    "with a line for Excel": b"sep=;\r\n" + PLAIN.replace(",", ";").encode(),
    "with a column more": PLAIN.replace("\n", ",x\n").encode(),
}


@pytest.fixture(scope="module")
def empty(tmp_path_factory):
    return course(tmp_path_factory.mktemp("list") / "course", [("old", "Old", "Timer", "")])


@pytest.fixture
def folder(empty, tmp_path, monkeypatch):
    folder = shutil.copytree(empty, tmp_path / "course")
    monkeypatch.chdir(folder)
    return folder


@pytest.mark.parametrize("form", FORMS)
def test_every_form_in_which_a_list_is_saved_is_read_whole(tmp_path, form):
    path = tmp_path / "list.csv"
    path.write_bytes(FORMS[form])
    assert [(each.id, each.first_name, each.last_name, each.email) for each in class_list.read(path)] == TWO
    assert len(tables.read_table(path).rows) == 2  # worksheets are read by the same reader


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("ada,x", "line 4: ada is there already, on line 2"),
        ("Ada,x", "the ids Ada and ada differ only in case"),
        ("x[1],x", "line 4: the id 'x[1]' holds [ ], which a folder's name or a pattern cannot"),
        ("a*,x", "line 4: the id 'a*' holds *"),
        (".hidden,x", "line 4: the id '.hidden' begins with a full stop"),
        ("../ada,x", "line 4: the id '../ada' begins"),
        ("a/b,x", "line 4: the id 'a/b' holds /"),
        (",Nameless", "line 4: expected an id, got nothing"),
        ("x" * 300 + ",x", "is longer than 200 bytes"),
    ],
)
def test_an_id_that_cannot_work_is_named_by_line_and_nobody_is_written(folder, line, words, capsys):
    path = folder / "list.csv"
    path.write_text(f"id,first_name\nada,Ada\nbob,Bob\n{line}\n", encoding="utf-8")
    assert command_line.main(["roster", str(path)]) == 2
    said = capsys.readouterr().err
    assert "nothing is written" in said and words in said
    assert [student.id for student in results.read_roster(folder)] == ["old"]


def test_the_command_says_who_is_new_and_who_is_not_in_the_list(folder, capsys):
    path = folder / "list.csv"
    path.write_bytes(FORMS["in Windows' letters"])
    assert command_line.main(["roster", str(path)]) == 0
    said = capsys.readouterr().out
    assert "2 students" in said and "2 new, 0 known before" in said and "left as they are: old" in said
    assert {student.id: student.name for student in results.read_roster(folder)}["zoe"] == "Zoë Ünal"
    assert command_line.main(["roster", str(path)]) == 0
    assert "0 new, 2 known before" in capsys.readouterr().out
    path.write_text("id\nOLD\n", encoding="utf-8")
    assert command_line.main(["roster", str(path)]) == 2
    assert "the ids OLD and old differ only in case" in capsys.readouterr().err


def test_a_workbook_and_a_table_without_ids_are_refused_by_name(tmp_path):
    path = tmp_path / "list.xlsx"
    path.write_bytes(b"PK\x03\x04")
    with pytest.raises(CourseError, match="is a spreadsheet. Save it as CSV"):
        class_list.read(path)
    path.write_text("matriculation,name\n1,Ada\n")
    with pytest.raises(CourseError, match="expected a column id, got the columns matriculation, name"):
        class_list.read(path)


def test_the_doctor_names_ids_that_cannot_work(folder):
    for name in ("x[1]", ".hidden", "Old"):
        (folder / "classroom" / "submitted" / name).mkdir(parents=True)
    (finding,) = [each for each in doctor.examine(folder) if each.about == "students"]
    assert all(words in finding.seen for words in ("'x[1]' holds [ ]", "'.hidden' begins", "Old and old differ"))
