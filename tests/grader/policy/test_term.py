"""A term's deadlines through Moodle and Canvas: every student is as late as the platform shows, by its clocks."""

import csv
import json
import shutil
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from downloads_class import GERMAN, HEADER, NOTEBOOK, course, worksheet, zipped
from nbformat.v4 import new_notebook
from nbgrader.api import Gradebook
from nbgrader.utils import parse_utc

from autograder.course import CourseError
from autograder.grade import older_rules
from autograder.intake import take_in
from autograder.platforms import collect, dates, submission_times
from autograder.policy import arrival, course_time, late, times
from autograder.prepare.sample_class import ASSIGNMENT
from autograder.reports import results

PEOPLE = {11: ("Ada Lovelace", "ada", ""), 12: ("Bob O'Neill", "bob", ""), 13: ("Зоя Ångström", "zoya", "")}
MOODLE = "{}_{}_assignsubmission_file/" + NOTEBOOK
FILES = {MOODLE.format(who[0], number): who[0] for number, who in PEOPLE.items()}
GRADEBOOK = (
    'Student,ID,SIS User ID,SIS Login ID,Section\n"Lovelace, Ada",501,ada,,A\n"O\'Neill, Bob",502,bob,,A\n'
    '"Ångström, Зоя",503,zoya,,A\n'
)


class Term:
    """A course in one time zone, with a due date, ten percent a day, and a download three days later."""

    def __init__(self, folder: Path, zone: str, due: str) -> None:
        self.folder = folder
        with (folder / "nbgrader_config.py").open("a", encoding="utf-8") as file:
            file.write(f"c.CourseTime.zone = {zone!r}\nc.LateRules.percent = 10\n")
        self.settings = results.configuration(folder)
        self.zone, self.url = course_time.zone_of(self.settings), f"sqlite:///{folder / 'classroom' / 'gradebook.db'}"
        self.due(due)
        self.summary = None

    def due(self, text: str) -> None:
        """Move the due date, as nbgrader's commands and formgrader do."""
        with Gradebook(self.url, "attention-by-hand") as book:
            book.update_or_create_assignment(ASSIGNMENT.id, duedate=text)

    def collect(self, files: dict[str, str], *tables: Path, timed: Path | None = None, days: float = 3) -> None:
        with Gradebook(self.url, "attention-by-hand") as book:
            due = book.find_assignment(ASSIGNMENT.id).duedate
        made = (due + timedelta(days=days)).replace(tzinfo=timezone.utc).timestamp()
        archive = zipped(self.folder / f"{made}.zip", files, made)
        self.summary = collect.collect(results.directory(self.folder), ASSIGNMENT.id, [archive, *tables], timed)

    def grade(self) -> dict[str, float]:
        """Run nbgrader's steps; returns the seconds late of each student in the gradebook."""
        places = results.directory(self.folder)
        places.assignment_id = ASSIGNMENT.id
        take_in.take_in_class(places, lambda line: None)
        with Gradebook(self.url, "attention-by-hand") as book:
            book.update_or_create_notebook(ASSIGNMENT.notebook, ASSIGNMENT.id)
            book.update_or_create_grade_cell("cell", ASSIGNMENT.notebook, ASSIGNMENT.id, max_score=10, cell_type="code")
            for place in (self.folder / take_in.RECEIVED).glob(f"*/{ASSIGNMENT.id}"):
                stamp = parse_utc((place / "timestamp.txt").read_text(encoding="utf-8"))
                book.update_or_create_submission(ASSIGNMENT.id, place.parent.name, timestamp=stamp)
                book.find_grade("cell", ASSIGNMENT.notebook, ASSIGNMENT.id, place.parent.name).auto_score = 10.0
            book.db.commit()
            students = [each.student.id for each in book.assignment_submissions(ASSIGNMENT.id)]
        for student in students:
            place = {"notebook": ASSIGNMENT.notebook, "assignment": ASSIGNMENT.id, "student": student}
            late.LatePenalties(config=self.settings).preprocess(
                new_notebook(), {"nbgrader": {**place, "db_url": self.url}}
            )
        return self.seconds()

    def seconds(self) -> dict[str, float]:
        with Gradebook(self.url, "attention-by-hand") as book:
            return {each.student.id: each.total_seconds_late for each in book.assignment_submissions(ASSIGNMENT.id)}

    def stale(self) -> dict[str, tuple[float, float]]:
        found = older_rules.outdated_lateness(self.folder, ASSIGNMENT.id)
        return {student: (each.taken, each.due) for student, each in found.items()}


@pytest.fixture(scope="module")
def empty(tmp_path_factory):
    return course(tmp_path_factory.mktemp("term") / "course")


@pytest.fixture
def term(empty, tmp_path, monkeypatch):
    def make(zone: str = "Europe/Berlin", due: str = "2025-11-02 23:59") -> Term:
        folder = shutil.copytree(empty, tmp_path / "course")
        monkeypatch.chdir(folder)
        return Term(folder, zone, due)

    return make


def english(moment: datetime) -> str:
    return f"{moment:%A}, {moment.day} {moment:%B} {moment:%Y}, {moment:%I}:{moment:%M} {moment:%p}".replace(" 0", " ")


@pytest.mark.parametrize(
    ("zone", "due"),
    [
        ("Europe/Berlin", "2025-11-02 23:59"),
        ("America/Los_Angeles", "2025-10-20 23:59"),
        # the nights in which clocks change, before and after the change
        ("Europe/Berlin", "2025-10-25 23:59"),
        ("Europe/Berlin", "2025-10-26 23:59"),
        ("Europe/Berlin", "2026-03-28 23:59"),
        ("Europe/Berlin", "2026-03-29 08:00"),
        ("America/Los_Angeles", "2025-11-01 23:59"),
        ("America/Los_Angeles", "2025-11-02 08:00"),
        ("America/Los_Angeles", "2026-03-07 23:59"),
        ("America/Los_Angeles", "2026-03-08 08:00"),
    ],
)
def test_everyone_is_as_late_as_moodle_shows(term, zone, due):
    term = term(zone, due)
    moments = {11: timedelta(hours=-2), 12: timedelta(minutes=90), 13: timedelta(days=1, hours=2)}
    local = datetime.fromisoformat(due)
    shown = {number: english(local + moment) for number, moment in moments.items()}
    term.collect(FILES, worksheet(term.folder / "grades.csv", PEOPLE, handed_in=shown))
    expected = {}
    for student, number in (("ada", 11), ("bob", 12), ("zoya", 13)):
        real = times.earliest(local + moments[number], term.zone) - times.parse(due, term.zone)
        expected[student] = max(0.0, real.total_seconds())
    assert term.grade() == expected and expected["ada"] == 0 and expected["zoya"] > expected["bob"] > 0
    assert not [remark for remark in term.summary.remarks if "time" in remark]


@pytest.mark.parametrize(
    ("header", "text"),
    [(HEADER, "Sunday, 2 November 2025, 9:41 PM"), (GERMAN, "Sonntag, 2. November 2025, 21:41")],
)
def test_handed_in_at_21_41_before_23_59_is_in_time_whenever_it_is_downloaded(term, header, text):
    term = term()
    term.collect(FILES, worksheet(term.folder / "grades.csv", PEOPLE, header, dict.fromkeys(PEOPLE, text)))
    assert term.grade() == {"ada": 0, "bob": 0, "zoya": 0}


def test_without_a_time_nobody_pays_and_the_teacher_is_told_at_both_steps(term, caplog):
    term = term()
    term.collect(FILES, worksheet(term.folder / "grades.csv", PEOPLE))
    said = " ".join(term.summary.remarks)
    assert "the due date is Sunday 2 November 2025, 23:59 CET (22:59 UTC)" in said
    assert "Ada Lovelace (ada), Bob O'Neill (bob), Зоя Ångström (zoya): downloaded after the due date" in said
    assert "--worksheet" in said
    assert term.grade() == {"ada": 0, "bob": 0, "zoya": 0}
    with Gradebook(term.url) as book:
        assert "the download has no submission time" in late.date(book, term.folder, "ada", ASSIGNMENT.id)
    times_come_later = {11: "Sunday, 2 November 2025, 9:41 PM", 12: "Tuesday, 4 November 2025, 12:59 AM"}
    term.collect(FILES, worksheet(term.folder / "grades.csv", PEOPLE, handed_in=times_come_later))
    assert term.grade() == {"ada": 0, "bob": 25 * 3600, "zoya": 0}


def test_a_download_made_before_the_due_date_is_in_time_without_a_word(term):
    term = term()
    term.collect(FILES, worksheet(term.folder / "grades.csv", PEOPLE), days=-1)
    assert term.grade() == {"ada": 0, "bob": 0, "zoya": 0}
    assert term.summary.remarks == []


CANVAS = {
    f"lovelaceada_501_98760_{NOTEBOOK}": "Ada",
    f"oneillbob_LATE_502_98761_{NOTEBOOK}": "Bob",
    f"ångströmзоя_503_98762_{NOTEBOOK}": "Zoya",
}


def test_canvas_s_mark_decides_who_is_late_and_its_table_how_much(term):
    term = term("America/Los_Angeles", "2025-11-02 23:59")
    (term.folder / "gradebook.csv").write_text(GRADEBOOK)
    term.collect(CANVAS, term.folder / "gradebook.csv")
    found = term.grade()
    assert found == {"ada": 0, "bob": arrival.JUST_LATE.total_seconds(), "zoya": 0}
    assert "Bob O'Neill (bob): Canvas says LATE, and not by how much" in " ".join(term.summary.remarks)
    table = term.folder / "submissions.json"
    rows = [
        {"id": 9, "user_id": 501, "submitted_at": "2025-11-03T06:00:00Z"},
        {"id": 10, "user_id": 502, "submitted_at": "2025-11-03T10:59:00Z"},
        {"id": 501, "user_id": 503, "submitted_at": None},
    ]
    table.write_text(json.dumps(rows))
    with (table := table.with_suffix(".csv")).open("w", encoding="utf-8", newline="") as file:
        written = csv.DictWriter(file, list(rows[0]))
        written.writeheader()
        written.writerows(rows)
    read = submission_times.read(table, term.zone)
    assert read == submission_times.read(table.with_suffix(".json"), term.zone) and set(read) == {"501", "502"}
    term.collect(CANVAS, term.folder / "gradebook.csv", timed=table)
    assert term.grade() == {"ada": 0, "bob": 3 * 3600, "zoya": 0}


@pytest.mark.parametrize(
    ("above", "line"),
    [
        ("email,submitted_at\n", 2),
        ("\nemail,submitted_at\n\n", 4),
        ("sep=,\nemail,submitted_at\n", 3),
        ("\n\nsep=,\nemail,submitted_at\n,\n", 6),
        ('email,submitted_at\n"a\nb@x.org",2025-11-02 20:41\n', 4),
        ("email,submitted_at\r\n\r\n", 3),
    ],
)
def test_a_bad_time_is_reported_with_its_line_in_the_file(tmp_path, above, line):
    path = tmp_path / "times.csv"
    path.write_text(f"{above}ada@x.org,not a time\n", newline="")
    with pytest.raises(CourseError, match=rf"times\.csv, line {line}: expected a time"):
        submission_times.read(path, timezone.utc)


def test_gradescope_s_metadata_is_read(term, tmp_path):
    path = tmp_path / "submission_metadata.yml"
    path.write_text(
        "submission_1:\n  :submitters:\n  - :name: Ada\n    :sid: '77'\n    :email: ada@uni.example\n"
        "  :created_at: 2025-11-02 20:41:00.000000000 Z\n  :score: 3.0\n"
    )
    moment = datetime(2025, 11, 2, 20, 41)
    assert submission_times.read(path, times.ZoneInfo("UTC")) == {"77": moment, "ada@uni.example": moment}


@pytest.mark.parametrize(
    "text",
    [
        *("Monday, 2 November 2026, 9:41 PM", "Monday, November 2, 2026, 9:41 PM", "Montag, 2. November 2026, 21:41"),
        *("lundi 2 novembre 2026, 21:41", "lunes, 2 de noviembre de 2026, 21:41", "lunedì, 2 novembre 2026, 21:41"),
        *("maandag, 2 november 2026, 21:41", "segunda-feira, 2 de novembro de 2026 às 21:41"),
        *(
            "poniedziałek, 2 listopada 2026, 21:41",
            "pondělí, 2. listopadu 2026, 21.41",
            "måndag, 2 november 2026, 21:41",
        ),
        *("понедельник, 2 ноября 2026, 21:41", "maanantai, 2. marraskuuta 2026, 21.41", "2.11.2026, 21:41"),
        *("2026年 11月 2日(月曜日) 21:41", "2026年11月2日 星期一 21:41", "2026년 11월 2일 (월) 오후 9:41"),
        *("Pazartesi, 2 Kasım 2026, 21:41", "Δευτέρα, 2 Νοεμβρίου 2026, 9:41 μμ", "dilluns, 2 de novembre 2026, 21:41"),
        *(
            "lunes, 2 de noviembre de 2026, 9:41\u202fp.\u00a0m.",
            "2026-11-02 21:41",
            "ponedjeljak, 2. studenoga 2026., 21:41",
        ),
    ],
)
def test_a_date_is_read_in_many_languages(text):
    zone = times.ZoneInfo("Europe/Berlin")
    assert dates.read_column(["-", text], zone) == ([None, datetime(2026, 11, 2, 20, 41)], "")


@pytest.mark.parametrize(
    "texts",
    [
        ["2/11/2026 21:41"],  # November or February
        ["2 listopada 2026, 21:41"],  # Polish or Croatian
        ["Monday, 2 November 2026"],
        ["Tuesday, 2 November 2026, 9:41 PM"],  # it was a Monday
        ["Monday, 31 November 2026, 9:41 PM"],
        ["Monday, 2 November 2026, 9:41 PM", "whenever"],
    ],
)
def test_a_date_that_can_mean_two_moments_or_none_is_not_read(texts):
    found, unread = dates.read_column(texts, times.ZoneInfo("UTC"))
    assert set(found) == {None} and unread


def test_a_column_tells_the_order_of_its_numbers():
    found, unread = dates.read_column(["2/11/2026 21:41", "13/11/2026 21:41"], times.ZoneInfo("UTC"))
    assert (found, unread) == ([datetime(2026, 11, 2, 21, 41), datetime(2026, 11, 13, 21, 41)], "")


# ------------------------------------------------------------------------------------------ what is changed afterward


def test_a_due_date_an_extension_or_a_rule_that_is_changed_after_grading_names_whose_penalty_is_out_of_date(term):
    term = term()
    shown = {11: "Sunday, 2 November 2025, 9:41 PM", 12: "Tuesday, 4 November 2025, 12:59 AM"}
    term.collect(FILES, worksheet(term.folder / "grades.csv", PEOPLE, handed_in=shown))
    assert term.grade()["bob"] == 25 * 3600 and term.stale() == {}
    extensions = term.folder / late.EXTENSIONS
    extensions.write_text("id,assignment,days\nbob,05_self_attention,1\n")
    assert term.stale() == {"bob": (2.0, 1.0)}
    lines = older_rules.remarks(term.folder, ASSIGNMENT.id)
    words = "lateness is out of date: 2 points taken, 1 by the points, dates and rules of now."
    assert lines[0] == f"{ASSIGNMENT.id}, Bob O'Neill (bob): {words}"
    extensions.unlink()
    assert term.stale() == {}
    term.due("2025-11-04 23:59")
    assert term.stale() == {"bob": (2.0, 0.0)}
    term.due("2025-11-02 12:00")
    assert term.stale() == {"ada": (0.0, 1.0)}
    term.grade()
    assert term.stale() == {}
    with (term.folder / "nbgrader_config.py").open("a") as file:
        file.write("c.LateRules.percent = 20\n")
    assert term.stale() == {"ada": (1.0, 2.0), "bob": (2.0, 4.0)}


def test_an_earlier_version_that_is_put_back_keeps_the_time_of_its_receipt(term):
    term = term()
    first, second = ({MOODLE.format("Ada Lovelace", 11): text} for text in ("first", "second"))
    term.collect(first, worksheet(term.folder / "grades.csv", PEOPLE), days=-1)
    in_time = term.grade()
    who = worksheet(term.folder / "grades.csv", PEOPLE, handed_in={11: "Tuesday, 4 November 2025, 12:59 AM"})
    term.collect(second, who)
    assert (in_time, term.grade()) == ({"ada": 0}, {"ada": 25 * 3600})
    (term.folder / "classroom" / "submitted" / "ada" / ASSIGNMENT.id / NOTEBOOK).write_text("first")
    assert term.grade() == {"ada": 0}
