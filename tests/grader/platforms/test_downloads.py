"""Collecting from Moodle and Canvas: whose work it is, what it holds, and that no student can cost another anything."""

import gzip
import json
import os
import shutil
import stat
import tarfile
import zipfile

import pytest
from downloads_class import (
    FOLDERS,
    GERMAN,
    HEADER,
    NOTEBOOK,
    ROSTER,
    course,
    submitted,
    tar_bytes,
    worksheet,
    zip_bytes,
    zipped,
)

from autograder import __main__ as command_line
from autograder.course import CourseError
from autograder.intake import take_in
from autograder.platforms import archives, collect, downloads
from autograder.policy import collected
from autograder.prepare import sample_class
from autograder.prepare.sample_class import ASSIGNMENT
from autograder.reports import results

PEOPLE = {
    11: ("Ada Lovelace", "ada", "ada@uni.example"),
    12: ("Bob O'Neill", "", "BOB@uni.example"),
    13: ("Зоя Ångström", "", ""),
    14: ("Eve Mallory", "eve", ""),
}
MOODLE = "{}_{}_assignsubmission_file/"
EVE = MOODLE.format("Eve Mallory", 14)
ADA = MOODLE.format("Ada Lovelace", 11)


@pytest.fixture(scope="module")
def course_with_roster(tmp_path_factory):
    return course(tmp_path_factory.mktemp("roster") / "course")


@pytest.fixture
def folder(course_with_roster, tmp_path):
    """A course with a roster and nobody's work; to make a gradebook takes seconds, to copy one does not."""
    return shutil.copytree(course_with_roster, tmp_path / "course")


def take(folder, files, *tables, moment=None):
    """Collect a zip with these files, and these tables."""
    archive = zipped(folder / "downloads" / f"{moment or 'submissions'}.zip", files, moment)
    return collect.collect(results.directory(folder), ASSIGNMENT.id, [archive, *tables])


def taken(folder, files, *tables):
    take(folder, files, *tables)
    return submitted(folder)


# -------------------------------------------------------------------------------------------------- whose it is


@pytest.mark.parametrize("version", FOLDERS)
@pytest.mark.parametrize("header", [HEADER, GERMAN], ids=["English", "German"])
def test_moodle_s_numbers_become_the_roster_s_ids_by_its_worksheet(folder, version, header):
    files = {FOLDERS[version].format(name=who[0], number=number) + NOTEBOOK: who[0] for number, who in PEOPLE.items()}
    found = taken(folder, files, worksheet(folder / "grades.csv", PEOPLE, header))
    assert found == {student: {NOTEBOOK: f"{first} {last}"} for student, first, last, _ in ROSTER}


def test_the_same_person_is_the_same_student_in_an_assignment_with_other_numbers(folder):
    other = {47: PEOPLE[11], 11: PEOPLE[12]}
    files = {MOODLE.format("Ada Lovelace", 47) + NOTEBOOK: "Ada", MOODLE.format("Bob ONeill", 11) + NOTEBOOK: "Bob"}
    assert taken(folder, files, worksheet(folder / "grades.csv", other)) == {
        "ada": {NOTEBOOK: "Ada"},
        "bob": {NOTEBOOK: "Bob"},
    }


def test_the_worksheet_of_another_assignment_makes_nobody_somebody_else(folder):
    other = {11: PEOPLE[12], 12: PEOPLE[11]}
    summary = take(folder, {ADA + NOTEBOOK: "Ada"}, worksheet(folder / "grades.csv", other))
    assert submitted(folder) == {}
    assert "may be the worksheet of another assignment" in " ".join(summary.troubles)


def test_work_of_a_group_goes_to_each_of_its_members(folder):
    rows = "Participant 11,Ada Lovelace,ada,,x,Team A,,30.00\nParticipant 12,Bob,bob,,x,Team A,,30.00\n"
    (folder / "g.csv").write_text(
        f"Identifier,Full name,ID number,Email address,Status,Group,Grade,Maximum Grade\n{rows}"
    )
    found = taken(folder, {"Team A_77_assignsubmission_file/" + NOTEBOOK: "ours"}, folder / "g.csv")
    assert found == {"ada": {NOTEBOOK: "ours"}, "bob": {NOTEBOOK: "ours"}}


GROUPS = (
    "name,canvas_user_id,user_id,login_id,sections,group_name,canvas_group_id,group_id\n"
    "Ada Lovelace,501,ada,ada@uni.example,A,Team_7: ünder,9,\n"
    "Bob O'Neill,502,bob,,A,Team_7: ünder,9,\n"
    "Zoya,503,zoya,,A,Alone,10,\n"
    "Eve,504,eve,,A,,,\n"
)
GRADEBOOK = 'Student,ID,SIS User ID,SIS Login ID,Section\n"Lovelace, Ada",501,ada,,A\n"O\'Neill, Bob",502,bob,,A\n'
OF_TEAM, OF_ADA = f"team_7ünder_LATE_502_98765_{NOTEBOOK}", f"lovelaceada_501_98760_{NOTEBOOK}"


@pytest.mark.parametrize("with_gradebook", [True, False])
def test_work_of_a_group_in_canvas_goes_to_each_member_under_their_own_number(folder, with_gradebook):
    (folder / "groups.csv").write_text(GROUPS)
    (folder / "gradebook.csv").write_text(GRADEBOOK)
    given = [folder / "groups.csv", *([folder / "gradebook.csv"] if with_gradebook else [])]
    files = {OF_TEAM: "ours", f"alone_503_98766_{NOTEBOOK}": "hers", f"malloryeve_504_98767_{NOTEBOOK}": "Eve's"}
    collect.collect(results.directory(folder), ASSIGNMENT.id, [zipped(folder / "group.zip", files), *given])
    wanted = {"ada": "ours", "bob": "ours", "zoya": "hers", "eve": "Eve's"}
    assert submitted(folder) == {student: {NOTEBOOK: text} for student, text in wanted.items()}
    students = collected.register(folder, ASSIGNMENT.id).students
    assert {name: students[name].number for name in ("ada", "bob")} == {"ada": "501", "bob": "502"}
    assert students["ada"].files == students["bob"].files == {NOTEBOOK: OF_TEAM}


def test_what_a_member_of_a_group_hands_in_alone_stays_theirs(folder):
    (folder / "groups.csv").write_text(GROUPS)
    assert taken(folder, {OF_ADA: "mine"}, folder / "groups.csv") == {"ada": {NOTEBOOK: "mine"}}


def test_without_the_table_of_groups_a_name_that_is_not_the_student_s_is_pointed_out(folder):
    (folder / "gradebook.csv").write_text(GRADEBOOK)
    team = OF_TEAM.replace("team_7", "team")
    said = take(folder, {team: "ours", OF_ADA: "mine"}, folder / "gradebook.csv").remarks
    assert [line for line in said if "--groups" in line and "teamünder" in line and "(bob)" in line]
    assert not [line for line in said if "--groups" in line and "(ada)" in line]


def test_two_people_of_one_name_are_told_apart_or_left_to_the_teacher(folder):
    twins = {11: ("Ada Lovelace", "", ""), 15: ("Ada Lovelace", "", "")}
    files = {ADA + NOTEBOOK: "one", MOODLE.format("Ada Lovelace", 15) + NOTEBOOK: "other"}
    summary = take(folder, files, worksheet(folder / "grades.csv", twins))
    assert submitted(folder) == {}
    assert len([line for line in summary.troubles if "is not collected" in line]) == 2


def test_whose_work_is_no_longer_in_a_download_is_named_and_keeps_it(folder):
    sheet = worksheet(folder / "grades.csv", PEOPLE)
    first = take(folder, {ADA + NOTEBOOK: "Ada", EVE + NOTEBOOK: "Eve"}, sheet)
    assert not [line for line in first.remarks if "not in this download" in line]
    later = take(folder, {ADA + NOTEBOOK: "Ada"}, sheet)
    (said,) = [line for line in later.remarks if "not in this download" in line]
    assert said == f"not in this download: Eve Mallory (eve). {collect.KEPT}"
    assert submitted(folder)["eve"] == {NOTEBOOK: "Eve"} and later.troubles == []


def test_who_is_not_found_is_named_and_kept_aside(folder):
    stranger = MOODLE.format("A Stranger", 99) + NOTEBOOK
    summary = take(folder, {ADA + NOTEBOOK: "Ada", stranger: "x"}, worksheet(folder / "g.csv", PEOPLE))
    assert set(submitted(folder)) == {"ada"}
    assert any(line.startswith("A Stranger_99") for line in summary.troubles)
    aside = folder / "classroom" / "collected" / ASSIGNMENT.id / "unmatched" / "A Stranger_99_assignsubmission_file"
    assert (aside / NOTEBOOK).read_text() == "x"


def test_without_a_worksheet_a_roster_of_names_takes_nobody_by_moodle_s_number(folder):
    summary = take(folder, {ADA + NOTEBOOK: "Ada"})
    assert submitted(folder) == {}
    assert "--worksheet" in summary.troubles[0]


def test_without_a_roster_the_number_is_the_id_and_moodle_s_is_warned_of(tmp_path):
    summary = take(course(tmp_path, []), {ADA + NOTEBOOK: "Ada"})
    assert submitted(tmp_path) == {"11": {NOTEBOOK: "Ada"}}
    assert collect.MOODLE_NUMBERS in summary.remarks


CANVAS = """\
Student,ID,SIS User ID,SIS Login ID,Section,Homework 5 (1002)
    Points Possible,,,,,30.00
"Lovelace, Ada",501,ada,x1,Lab 1,
"O'Neill, Bob",502,,bob@uni.example,Lab 1,
"Ångström, Зоя",503,,,Lab 2,
"Mallory, Eve",504,eve,,Lab 2,
"""


@pytest.fixture
def gradebook(folder):
    path = folder / "canvas.csv"
    path.write_text(CANVAS, encoding="utf-8")
    return path


def test_canvas_s_numbers_become_the_roster_s_ids_by_its_gradebook_and_stay_known(folder, gradebook):
    files = {
        f"lovelaceada_501_98765_{NOTEBOOK}": "Ada",
        f"oneillbob_LATE_502_98766_{NOTEBOOK}": "Bob",
        "ångströmзоя_503_text.html": "text",
    }
    assert taken(folder, files, gradebook) == {
        "ada": {NOTEBOOK: "Ada"},
        "bob": {NOTEBOOK: "Bob"},
        "zoya": {"text.html": "text"},
    }
    again = take(folder, {f"lovelaceada_501_99999_{NOTEBOOK}": "Ada again"}, moment=4e9)
    assert [student.id for student in again.students["changed"]] == ["ada"]


def test_a_second_attempt_at_canvas_keeps_the_notebook_s_name(folder, gradebook):
    name = NOTEBOOK.replace(".ipynb", "-1.ipynb")
    assert taken(folder, {f"lovelaceada_501_98765_{name}": "x"}, gradebook) == {"ada": {NOTEBOOK: "x"}}


def test_a_number_before_a_file_s_own_name_is_no_other_student(folder, gradebook):
    found = taken(folder, {"lovelaceada_501_98765_5_attention.ipynb": "x"}, gradebook)
    assert found == {"ada": {"5_attention.ipynb": "x"}}


@pytest.mark.parametrize("others", [{}, {f"lovelaceada_501_98765_{NOTEBOOK}": "Ada"}], ids=["alone", "beside Ada"])
def test_a_name_that_ends_like_another_s_number_takes_nothing_from_them(folder, gradebook, others):
    """In Canvas Eve may be able to call herself eve_501."""
    expected = {"ada": {NOTEBOOK: "Ada"}} if others else {}
    for tables in ([], [gradebook]):
        summary = take(folder, {**others, f"eve_501_504_98766_{NOTEBOOK}": "Eve's"}, *tables)
        assert submitted(folder) == (expected if tables else {})
        assert any(line.startswith("eve_501_504") for line in summary.troubles)


def test_anonymous_grading_at_canvas_has_ids_of_its_own(tmp_path):
    files = {f"anon_Ab3dE_98765_{NOTEBOOK}": "x", f"LATE_anon_12345_98766_{NOTEBOOK}": "y"}
    assert taken(course(tmp_path, []), files) == {"anon_Ab3dE": {NOTEBOOK: "x"}, "anon_12345": {NOTEBOOK: "y"}}


def test_a_table_of_another_kind_is_refused_by_name(folder):
    (folder / "list.csv").write_text("name,grade\nAda,1\n")
    with pytest.raises(CourseError, match="list.csv is neither a grading worksheet of Moodle"):
        take(folder, {}, folder / "list.csv")


# ------------------------------------------------------------------------------------------------ names inside a folder


OTHERS = {
    "a file": {EVE + f"x_11_assignsubmission_file_{NOTEBOOK}": "Eve's"},
    "Canvas's": {EVE + f"x_11_9_{NOTEBOOK}": "Eve's"},
    "a folder": {EVE + f"x_11_assignsubmission_file_/{NOTEBOOK}": "Eve's"},
    "a zip": {EVE + "more.zip": zip_bytes({f"Ada Lovelace_11_assignsubmission_file_/{NOTEBOOK}": "Eve's"})},
    "a tar": {EVE + "more.tar.gz": tar_bytes({f"Ada Lovelace_11_assignsubmission_file_/{NOTEBOOK}": b"Eve's"})},
    "flat": {f"Eve Mallory_14_assignsubmission_file_x_11_assignsubmission_file_{NOTEBOOK}": "Eve's"},
    "a path upward": {EVE + f"../Ada Lovelace_11_assignsubmission_file/{NOTEBOOK}": "Eve's"},
}


ADAS = {
    "nothing": {},
    "the same name": {ADA + NOTEBOOK: "Ada's"},
    "another name": {ADA + "self_attention (1).ipynb": "Ada's"},
}
OURS = [("ours", how, what) for how in OTHERS for what in ADAS]
THEIRS = [("nbgrader", "a file", "another name"), ("nbgrader", "a zip", "another name")]  # it takes seconds


@pytest.mark.parametrize(("command", "how", "what"), OURS + THEIRS)
def test_nothing_that_a_student_names_becomes_another_s_work(folder, command, how, what):
    adas = ADAS[what]
    files = {EVE + "own.txt": "Eve's", **OTHERS[how], **adas}
    if command == "ours":
        take(folder, files, worksheet(folder / "g.csv", PEOPLE))
    else:
        zip_collect(folder, files)
    found = submitted(folder)
    assert found.get("ada", {}) == {name.removeprefix(ADA): content for name, content in adas.items()}
    assert set(found) == ({"ada", "eve"} if adas else {"eve"})
    assert len(found["eve"]) == (1 if how == "a path upward" else 2) and set(found["eve"].values()) == {"Eve's"}


def zip_collect(folder, files):
    archive = folder / "classroom" / "downloaded" / ASSIGNMENT.id / "archive"
    zipped(archive / "submissions.zip", files)
    worksheet(archive / "grades.csv", PEOPLE)
    done = sample_class.nbgrader(folder, "zip_collect", ASSIGNMENT.id)
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_zip_collect_twice_is_as_safe_as_once(folder):
    zip_collect(folder, {ADA + NOTEBOOK: "Ada"})
    said = zip_collect(folder, {ADA + NOTEBOOK: "Ada", EVE + NOTEBOOK: "Eve", EVE + "data.gz": b"no archive"})
    assert "2 students: 1 new, 1 as before" in said
    assert submitted(folder) == {"ada": {NOTEBOOK: "Ada"}, "eve": {NOTEBOOK: "Eve", "data.gz": "no archive"}}


def test_a_course_s_own_pattern_is_still_nbgrader_s_to_sort_by(folder):
    pattern = r".*/(?P<student_id>\w+)-(?P<file_id>[^/]+)$"
    with (folder / "nbgrader_config.py").open("a") as file:
        file.write(f"\nc.FileNameCollectorPlugin.named_regexp = r'{pattern}'\n")
    zip_collect(folder, {f"ada-{NOTEBOOK}": "Ada", "eve-data.gz": "no archive"})
    assert submitted(folder) == {"ada": {NOTEBOOK: "Ada"}}


# -------------------------------------------------------------------------------------------------- hostile archives


def bomb():
    return zip_bytes({"zeros": bytes(archives.MOST_BYTES + 1)})


def damaged():
    whole = bytearray(zip_bytes({NOTEBOOK: os.urandom(2000)}))
    whole[100:120] = bytes(20)
    return bytes(whole)


def long_headed():
    first, last = tarfile.TarInfo("x"), tarfile.TarInfo("y")
    first.type, first.size = tarfile.XHDTYPE, 200 * 512
    return first.tobuf(tarfile.GNU_FORMAT) + b"1" * first.size + last.tobuf(tarfile.GNU_FORMAT) + bytes(1024)


def linked(kind):
    member = tarfile.TarInfo("link")
    member.type, member.linkname = kind, "/etc/passwd"
    return tar_bytes({NOTEBOOK: b"Eve's"}, members=[member])


def encrypted():
    content = bytearray(zip_bytes({NOTEBOOK: "x"}))
    content[6] |= 1
    content[content.rindex(b"PK\x01\x02") + 8] |= 1
    return bytes(content)


def russian(depth):
    content = zip_bytes({"deep.txt": "x"})
    for _ in range(depth):
        content = zip_bytes({"next.zip": content})
    return content


LEFT = {  # what stays one file, as submitted
    "no archive": ("data.gz", b"no archive"),
    "no zip": ("data.zip", b"no archive"),
    "a gzip that breaks off": ("data.gz", gzip.compress(os.urandom(5000))[:2000]),
    "a zip that breaks off": ("data.zip", zip_bytes({NOTEBOOK: os.urandom(5000)})[:2000]),
    "a damaged zip": ("data.zip", damaged()),
    "a tar that breaks off": ("data.tar.gz", tar_bytes({"x": os.urandom(5000)})[:2000]),
    "a tar that is none": ("data.tar", b"no archive"),
    "a tar with a header that is searched for hours": ("data.tar", None),
    "a document": ("essay.docx", zip_bytes({"word/document.xml": "x"})),
    "a zip bomb": ("data.zip", None),
    "a gzip bomb": ("data.gz", None),
    "too many names": ("data.zip", None),
}


@pytest.fixture(scope="module")
def large():
    return {
        "a zip bomb": bomb(),
        "a gzip bomb": gzip.compress(bytes(archives.MOST_BYTES + 1), 1),
        "too many names": zip_bytes({f"{number:050}": "" for number in range(45_000)}),
        "a tar with a header that is searched for hours": long_headed(),
    }


@pytest.mark.parametrize("what", LEFT)
def test_an_archive_that_cannot_be_unpacked_stays_a_file_and_the_rest_is_collected(folder, what, large):
    name, content = LEFT[what]
    content = large[what] if content is None else content
    take(
        folder, {EVE + name: content, EVE + NOTEBOOK: "Eve", ADA + NOTEBOOK: "Ada"}, worksheet(folder / "g.csv", PEOPLE)
    )
    found = submitted(folder)
    assert found["ada"] == {NOTEBOOK: "Ada"}
    assert set(found["eve"]) == {NOTEBOOK, name}
    path = folder / "classroom" / "submitted" / "eve" / ASSIGNMENT.id / name
    assert path.read_bytes() == content


UNPACKED = {
    "a zip": ("work.zip", zip_bytes({NOTEBOOK: "Eve's"}), {f"work/{NOTEBOOK}"}),
    "a notebook in a zip": (f"{NOTEBOOK}.zip", zip_bytes({NOTEBOOK: "Eve's"}), {f"self_attention/{NOTEBOOK}"}),
    "a tar": ("work.tgz", tar_bytes({f"a/{NOTEBOOK}": b"Eve's"}), {f"work/a/{NOTEBOOK}"}),
    "a compressed notebook": (f"{NOTEBOOK}.gz", gzip.compress(b"Eve's"), {NOTEBOOK}),
    "a zip in a zip": ("a.zip", zip_bytes({"b.zip": zip_bytes({NOTEBOOK: "Eve's"})}), {f"a/b/{NOTEBOOK}"}),
    "a symbolic link": ("a.tar.gz", linked(tarfile.SYMTYPE), {f"a/{NOTEBOOK}"}),
    "a hard link": ("a.tar.gz", linked(tarfile.LNKTYPE), {f"a/{NOTEBOOK}"}),
    "a device": ("a.tar.gz", linked(tarfile.CHRTYPE), {f"a/{NOTEBOOK}"}),
    "a FIFO": ("a.tar.gz", linked(tarfile.FIFOTYPE), {f"a/{NOTEBOOK}"}),
    "a path upward": ("a.zip", zip_bytes({"../../x": "no", NOTEBOOK: "Eve's"}), {f"a/{NOTEBOOK}"}),
    "an absolute path": ("a.zip", zip_bytes({"/tmp/x": "no", NOTEBOOK: "Eve's"}), {f"a/{NOTEBOOK}"}),
    "a path of another system": ("a.zip", zip_bytes({"b\\c.txt": "Eve's", "..\\x": "no"}), {"a/b/c.txt"}),
    "hidden files": ("a.zip", zip_bytes({"__MACOSX/._x": "no", ".git/x": "no", "y": "Eve's"}), {"a/y"}),
    "something encrypted": ("a.zip", encrypted(), set()),
    "many archives in each other": ("a.zip", russian(5), {"a/next/next/next.zip"}),
}


@pytest.mark.parametrize("what", UNPACKED)
def test_what_an_archive_holds_comes_out_in_a_student_s_own_folder_and_nowhere_else(folder, what):
    name, content, expected = UNPACKED[what]
    before = set(folder.parent.iterdir())
    take(folder, {EVE + name: content, ADA + NOTEBOOK: "Ada"}, worksheet(folder / "g.csv", PEOPLE))
    found = submitted(folder)
    assert found["ada"] == {NOTEBOOK: "Ada"}
    assert set(found.get("eve", {})) == expected
    assert "no" not in found.get("eve", {}).values()
    assert set(folder.parent.iterdir()) == before and not list(folder.rglob("link"))


def test_names_that_a_file_system_refuses_become_names_that_it_takes(folder):
    names = {f"{'ä' * 300}.ipynb": "a", "a\nb?.txt": "b", "con:1.txt": "c", "d" * 240: "d"}
    take(folder, {EVE + "a.zip": zip_bytes(names)}, worksheet(folder / "g.csv", PEOPLE))
    found = submitted(folder)["eve"]
    assert sorted(found.values()) == ["a", "b", "c", "d"]
    assert all(len(name.encode()) < 220 and name.isprintable() for name in found)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_of_two_files_with_one_name_neither_is_lost(folder):
    path = folder / "twice.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for content in ("first", "second"):
            archive.writestr(EVE + NOTEBOOK, content)
    collect.collect(results.directory(folder), ASSIGNMENT.id, [path, worksheet(folder / "g.csv", PEOPLE)])
    assert submitted(folder)["eve"] == {NOTEBOOK: "first", "self_attention (2).ipynb": "second"}


def test_deep_folders_and_too_many_files_are_their_author_s_alone(folder):
    files = {EVE + "d/" * 1500 + "x": "x", ADA + NOTEBOOK: "Ada"}
    files |= {EVE + f"{number}.txt": "x" for number in range(archives.MOST_FILES + 20)}
    summary = take(folder, files, worksheet(folder / "g.csv", PEOPLE))
    assert submitted(folder)["ada"] == {NOTEBOOK: "Ada"}
    assert len(submitted(folder)["eve"]) == archives.MOST_FILES
    assert "lies in more than" in summary.remarks[0] and len(summary.remarks[:-1]) == archives.MOST_REMARKS


def test_a_student_s_timestamp_is_not_taken_for_the_collector_s(folder):
    take(folder, {EVE + "timestamp.txt": "2020-01-01 00:00:00 UTC"}, worksheet(folder / "g.csv", PEOPLE))
    assert set(submitted(folder)["eve"]) == {"timestamp.txt.handed-in"}


def test_a_download_that_is_no_zip_is_named_and_the_others_are_collected(folder):
    broken = folder / "broken.zip"
    broken.write_bytes(b"<html>please log in</html>")
    good = zipped(folder / "good.zip", {ADA + NOTEBOOK: "Ada"})
    given = [broken, folder / "missing.zip", good, worksheet(folder / "g.csv", PEOPLE)]
    summary = collect.collect(results.directory(folder), ASSIGNMENT.id, given)
    assert set(submitted(folder)) == {"ada"}
    assert [line.split()[0].split("/")[-1] for line in summary.troubles] == ["missing.zip", "broken.zip"]


# -------------------------------------------------------------------------------------------------- again, and again


def test_newer_work_takes_the_place_of_older_which_is_kept(folder):
    sheet = worksheet(folder / "g.csv", PEOPLE)
    take(folder, {ADA + NOTEBOOK: "first", EVE + NOTEBOOK: "Eve"}, sheet, moment=1e9)
    summary = take(folder, {ADA + NOTEBOOK: "second", EVE + NOTEBOOK: "Eve"}, sheet, moment=2e9)
    assert {kind: [student.id for student in who] for kind, who in summary.students.items()} == {
        "changed": ["ada"],
        "same": ["eve"],
    }
    assert submitted(folder)["ada"] == {NOTEBOOK: "second"}
    (kept,) = (folder / "classroom" / "collected" / ASSIGNMENT.id / "replaced").rglob(NOTEBOOK)
    assert kept.read_text() == "first" and "ada" in kept.parts


def test_an_older_download_does_not_take_the_place_of_newer_work(folder):
    sheet = worksheet(folder / "g.csv", PEOPLE)
    take(folder, {ADA + NOTEBOOK: "second"}, sheet, moment=2e9)
    summary = take(folder, {ADA + NOTEBOOK: "first"}, sheet, moment=1e9)
    assert [student.id for student in summary.students["older"]] == ["ada"]
    assert submitted(folder)["ada"] == {NOTEBOOK: "second"}


def test_of_several_downloads_the_newest_counts_for_each_student(folder):
    older = zipped(folder / "b.zip", {ADA + NOTEBOOK: "first", EVE + NOTEBOOK: "Eve"}, 1e9)
    newer = zipped(folder / "a.zip", {ADA + NOTEBOOK: "second"}, 2e9)
    collect.collect(results.directory(folder), ASSIGNMENT.id, [older, newer, worksheet(folder / "g.csv", PEOPLE)])
    assert submitted(folder) == {"ada": {NOTEBOOK: "second"}, "eve": {NOTEBOOK: "Eve"}}


def test_the_same_work_is_left_alone_with_all_that_was_written_beside_it(folder):
    sheet = worksheet(folder / "g.csv", PEOPLE)
    take(folder, {ADA + NOTEBOOK: "Ada"}, sheet)
    place = folder / "classroom" / "submitted" / "ada" / ASSIGNMENT.id
    (place / "timestamp.txt").write_text("2026-11-02 09:00:00 UTC")
    (folder / "classroom" / "collected" / f"{ASSIGNMENT.id}.json").unlink()  # as after an interruption
    summary = take(folder, {ADA + NOTEBOOK: "Ada"}, sheet)
    assert list(summary.students) == ["same"]
    assert (place / "timestamp.txt").exists()


def test_a_download_that_the_browser_unpacked_is_collected_too(folder):
    place = folder / "downloads" / "Course-Homework-77"
    (place / ADA).mkdir(parents=True)
    (place / ADA / NOTEBOOK).write_text("Ada")
    (place / ADA / "link").symlink_to("/etc/passwd")
    collect.collect(results.directory(folder), ASSIGNMENT.id, [place, worksheet(folder / "g.csv", PEOPLE)])
    assert submitted(folder) == {"ada": {NOTEBOOK: "Ada"}}


def test_a_folder_around_everything_is_seen_through(folder):
    files = {f"Downloads/submissions/{ADA}{NOTEBOOK}": "Ada", f"Downloads/submissions/{EVE}{NOTEBOOK}": "Eve"}
    assert set(taken(folder, files, worksheet(folder / "g.csv", PEOPLE))) == {"ada", "eve"}


def test_what_was_collected_can_be_found_on_the_platform_again(folder):
    take(folder, {ADA + NOTEBOOK: "Ada"}, worksheet(folder / "g.csv", PEOPLE))
    kept = json.loads((folder / "classroom" / "collected" / f"{ASSIGNMENT.id}.json").read_text())
    assert kept["students"]["ada"]["number"] == "11"
    assert kept["numbers"] == {"ada": "11", "bob": "12", "zoya": "13", "eve": "14"}


def test_the_command_collects_what_lies_in_the_folder_of_downloads(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    assert command_line.main(["collect", ASSIGNMENT.id]) == 2
    assert "There is nothing to collect" in capsys.readouterr().err
    archive = folder / "classroom" / "downloaded" / ASSIGNMENT.id / "archive"
    zipped(archive / "submissions.zip", {ADA + NOTEBOOK: "Ada", EVE + "a.zip": encrypted()})
    worksheet(archive / "grades.csv", PEOPLE)
    assert command_line.main(["collect", ASSIGNMENT.id]) == 0
    said = capsys.readouterr().out
    assert f"{ASSIGNMENT.id}: 2 students: 2 new" in said
    assert "Eve Mallory (eve): self_attention.ipynb is left out: it is encrypted." in said
    assert command_line.main(["collect", "05_self_atention", str(archive)]) == 2
    assert "There is no assignment '05_self_atention'" in capsys.readouterr().err


def test_nothing_but_plain_files_is_ever_laid_down(folder):
    files = {EVE + name: content for name, content, _ in UNPACKED.values()}
    take(folder, files, worksheet(folder / "g.csv", PEOPLE))
    modes = [path.lstat().st_mode for path in (folder / "classroom" / "submitted").rglob("*")]
    assert modes and all(stat.S_ISREG(mode) or stat.S_ISDIR(mode) for mode in modes)


@pytest.mark.parametrize(
    ("path", "number", "parts"),
    [
        ("Ada Lovelace_11_assignsubmission_file_/part/x.ipynb", "11", ("part", "x.ipynb")),
        ("Ada Lovelace_11_assignsubmission_onlinetext/onlinetext.html", "11", ("onlinetext.html",)),
        ("Participant_11_assignsubmission_file/x.ipynb", "11", ("x.ipynb",)),
        ("lovelaceada_LATE_501_98765_my_work.ipynb", "501", ("my_work.ipynb",)),
        ("lovelaceada_501_98765_05_self_attention.ipynb", "501", ("05_self_attention.ipynb",)),
        ("lovelaceada_501_link.html", "501", ("link.html",)),
    ],
)
def test_a_name_of_the_platform_s_making_has_one_reading(path, number, parts):
    (reading,) = downloads.readings(tuple(path.split("/")))
    assert (reading.owner.number, reading.parts) == (number, parts)


@pytest.mark.parametrize("path", ["notes.txt", "501_98765.ipynb", "Ada/x_11_assignsubmission_file_y.ipynb", "a_1_b/x"])
def test_a_name_of_nobody_s_making_has_none(path):
    assert downloads.readings(tuple(path.split("/"))) == []


# ---------------------------------------------------------------------------------------------- when it arrived


def receipt(folder, student="ada"):
    """(how it is known, when) of the latest version of a work, once the class has been taken in."""
    places = results.directory(folder)
    places.assignment_id = ASSIGNMENT.id
    take_in.take_in_class(places, lambda line: None)
    path = folder / "classroom" / "receipts" / ASSIGNMENT.id / f"{student}.json"
    latest = json.loads(path.read_text(encoding="utf-8"))["versions"][-1]
    return latest["by"], latest["received"]


def test_a_downloaded_work_arrived_when_the_first_download_with_it_was_made(folder):
    who, files = worksheet(folder / "grades.csv", PEOPLE), {ADA + NOTEBOOK: "Ada"}
    take(folder, files, who, moment=1_700_000_000)
    take(folder, files, who, moment=1_700_086_400)  # the same work, downloaded again on the next day
    assert receipt(folder) == ("download", "2023-11-14 22:13:20.000000 UTC")
    take(folder, {ADA + NOTEBOOK: "better"}, who, moment=1_700_172_800)
    assert receipt(folder) == ("download", "2023-11-16 22:13:20.000000 UTC")


def test_a_work_that_was_changed_here_after_its_download_arrives_when_it_is_seen(folder):
    take(folder, {ADA + NOTEBOOK: "Ada"}, worksheet(folder / "grades.csv", PEOPLE), moment=1_700_000_000)
    (folder / "classroom" / "submitted" / "ada" / ASSIGNMENT.id / NOTEBOOK).write_text("by hand", encoding="utf-8")
    how, when = receipt(folder)
    assert how == "arrival" and when > "2026"
