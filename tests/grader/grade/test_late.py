"""What lateness costs: cases small enough to do by hand, through nbgrader's own step and a gradebook."""

import shutil
from datetime import datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import graded_class
import pytest
from graded_class import contents, grade
from nbformat.v4 import new_notebook
from nbgrader.api import Gradebook
from traitlets.config import Config

from autograder import course
from autograder.course import CourseError
from autograder.policy import late
from autograder.prepare import doctor, sample_class
from autograder.prepare.sample_class import ASSIGNMENT, ROOT

DUE = datetime(2026, 3, 2, 12)
UTC = ZoneInfo("UTC")
WORTH = 10.0  # points of an assignment


class Book:
    """A gradebook with assignments that are due a week after each other, and one student."""

    def __init__(self, folder: Path, empty: Path) -> None:
        self.folder, self.url = folder, f"sqlite:///{folder / 'gradebook.db'}"
        shutil.copy(ROOT / course.MARKER, folder)
        shutil.copy(empty, folder)
        with Gradebook(self.url) as book:
            book.add_student("ada")

    def hand_in(self, assignment: str = "a1", earned: float = WORTH, due: datetime | None = DUE, **late: float) -> None:
        """Hand in so much after the due date, as `timedelta` takes it."""
        with Gradebook(self.url) as book:
            book.add_assignment(assignment, duedate=due)
            book.add_notebook("work", assignment)
            book.add_grade_cell("cell", "work", assignment, max_score=WORTH, cell_type="code")
            submission = book.add_submission(assignment, "ada")
            submission.timestamp = (due or DUE) + timedelta(**late)
            book.find_grade("cell", "work", assignment, "ada").auto_score = earned
            book.db.commit()

    def penalty(self, assignment: str = "a1", **rules: object) -> float | None:
        """What nbgrader's step takes off."""
        place = {"notebook": "work", "assignment": assignment, "student": "ada", "db_url": self.url}
        late.LatePenalties(config=Config(LateRules=rules)).preprocess(new_notebook(), {"nbgrader": place})
        return self.taken(assignment)

    def taken(self, assignment: str) -> float | None:
        with Gradebook(self.url) as book:
            return book.find_submission_notebook("work", assignment, "ada").late_submission_penalty

    def extend(self, *lines: str) -> Path:
        path = self.folder / late.EXTENSIONS
        path.parent.mkdir(exist_ok=True)
        path.write_text("\n".join(["id,assignment,until,days", *lines]) + "\n", encoding="utf-8")
        return path


@pytest.fixture(scope="module")
def empty(tmp_path_factory) -> Path:
    """An empty gradebook, made once: nbgrader takes seconds to create it."""
    path = tmp_path_factory.mktemp("empty") / "gradebook.db"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", course.nbgrader_command()[1]["PATH"])  # it asks for a program by its name
        Gradebook(f"sqlite:///{path}").close()
    return path


@pytest.fixture
def book(empty, tmp_path, monkeypatch) -> Book:
    monkeypatch.chdir(tmp_path)
    return Book(tmp_path, empty)


@pytest.mark.parametrize(
    ("handed_in", "rules", "points"),
    [
        ({"hours": 1}, {"percent": 10}, 1.0),  # a day that has begun counts
        ({"hours": 24}, {"percent": 10}, 1.0),
        ({"hours": 25}, {"percent": 10}, 2.0),
        ({"hours": 1}, {"percent": 10, "earned": 8.0}, 0.8),  # of what was earned ...
        ({"hours": 1}, {"percent": 10, "earned": 8.0, "of": "possible"}, 1.0),  # ... or could have been
        ({"days": 2}, {"percent": 60, "earned": 3.0, "of": "possible"}, 3.0),  # never below zero
        ({"minutes": 150}, {"percent": 1, "every": "hour"}, 0.3),
        ({"minutes": 15}, {"percent": 10, "grace_minutes": 15}, 0.0),
        ({"minutes": 16}, {"percent": 10, "grace_minutes": 15}, 1.0),
        ({"hours": 24, "minutes": 15}, {"percent": 10, "grace_minutes": 15}, 1.0),
        ({"days": 9}, {"percent": 10, "most_percent": 40}, 4.0),
        ({"days": 30}, {"percent": 10}, 10.0),
        ({"days": 2}, {"percent": 10, "slip_days": 2}, 0.0),
        ({"days": 3}, {"percent": 10, "slip_days": 2}, 1.0),
        ({"hours": 50}, {"percent": 1, "every": "hour", "slip_days": 2}, 0.2),
        ({"days": 3}, {"percent": 0, "slip_days": 2}, None),  # no rule is set
        ({"days": -1}, {"percent": 10}, None),  # not late
        ({"days": 3}, {"percent": 10, "due": None}, None),  # no due date
        ({"days": 3}, {"penalty_method": "zero"}, 10.0),  # nbgrader's own rule
    ],
)
def test_each_rule_takes_what_it_says(book, handed_in, rules, points):
    where = {name: rules.pop(name) for name in ("earned", "due") if name in rules}
    book.hand_in(**where, **handed_in)
    assert book.penalty(**rules) == (points if points is None else pytest.approx(points))


def test_free_days_are_used_up_in_the_order_of_due_dates(book):
    for week, name in enumerate(("third", "first", "second")):
        book.hand_in(name, due=DUE + timedelta(weeks={"first": 0, "second": 1, "third": 2}[name]), days=2, hours=-week)
    rules = {"percent": 10, "slip_days": 3}
    assert [book.penalty(name, **rules) for name in ("third", "second", "first")] == [2.0, 1.0, 0.0]


def test_a_first_assignment_that_is_graded_last_settles_the_later_ones(book):
    rules = {"percent": 10, "slip_days": 2}
    book.hand_in("second", due=DUE + timedelta(weeks=1), days=2)
    assert book.penalty("second", **rules) == 0.0
    book.hand_in("first", days=2)
    assert book.penalty("first", **rules) == 0.0
    assert book.taken("second") == 2.0
    book.extend("ada,first,,7")
    book.penalty("first", **rules)
    assert book.taken("second") == 0.0


@pytest.mark.parametrize(
    ("line", "points"),
    [
        ("ada,a1,,2", 1.0),
        ("ada,a1,,0.5", 3.0),
        ("ada,a1,2026-03-05 11:00,", 0.0),
        ("ada,a1,2026-03-05 10:59 UTC,", 1.0),
        ("ada,a1,2026-03-05 12:00 +0100,", 0.0),
        ("ada,a1,2026-03-05 11:59 +0100,", 1.0),
        ("ada,a1,2026-03-05 12:00 +01:00,", 0.0),
        ("ada,a1,2026-03-05 11:59+01:00,", 1.0),
        ("ada,a1,2026-03-05 03:00 -8,", 0.0),
        ("ada,a1,2026-03-05 02:59 -8,", 1.0),
        ("ada,a1,2026-03-05 12:00 Europe/Berlin,", 0.0),
        ("ada,a1,2026-03-04,", 1.0),  # all of that day
        ("ada,a1,2026-03-01,", 3.0),  # never earlier than for the others
        ("bob,a1,,9", 3.0),
        ("ada,a2,,9", 3.0),
    ],
)
def test_an_extension_moves_the_due_date_of_one_student(book, line, points):
    book.hand_in(days=2, hours=23)
    book.extend(line)
    assert (book.penalty(percent=10) or 0.0) == pytest.approx(points)


def test_an_extension_that_is_taken_back_counts_no_longer(book):
    book.hand_in(days=2)
    path = book.extend("ada,a1,,5")
    assert book.penalty(percent=10) is None
    book.extend()
    assert book.penalty(percent=10) == 2.0
    path.unlink()
    with Gradebook(book.url) as gradebook:
        gradebook.grant_extension("a1", "ada", days=1)
    assert book.penalty(percent=10) == 1.0  # without a file only the gradebook decides


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("ada,a1,tomorrow,", "line 3, column until: expected a time such as 2026-03-04"),
        ("ada,a1,04.03.2026,", "line 3, column until"),
        ("ada,a1,2026-03-04 12:00 CET,", "line 3, column until: expected an offset such as +01:00 or a zone such as"),
        ("ada,a1,2026-03-04 12:00 Nowhere,", "line 3, column until"),
        ("ada,a1,2026-02-30,", "line 3, column until"),
        ("ada,a1,,two", "line 3, column days: expected a number of days, got 'two'"),
        ("ada,a1,,-1", "line 3, column days"),
        ("ada,a1,,nan", "line 3, column days"),
        (",a1,,2", "line 3, column id: expected a name, got nothing"),
        ("ada,,,2", "line 3, column assignment"),
        ("ada,a1,,", "line 3, columns until and days: expected one of them, got neither"),
        ("ada,a1,2026-03-04,2", "line 3, columns until and days: expected one of them, got both"),
        ("bob,a1,,2", "line 3: bob has more time for a1 already, by line 2"),
    ],
)
def test_what_cannot_be_read_in_the_extensions_is_named_by_line_and_column(book, line, words):
    path = book.extend("bob,a1,,1", line)
    with pytest.raises(CourseError) as raised:
        late.check(book.folder, Config())
    assert str(raised.value).startswith(str(path)) and words in str(raised.value)


def test_extensions_with_other_columns_semicolons_and_a_mark_of_their_encoding_are_read(book):
    path = book.extend()
    path.write_text("\ufeffNote;Days;ID;Assignment\nill;2,5;ada;a1\n;;;\n", encoding="utf-8")
    assert late.read_extensions(path, UTC) == {("ada", "a1"): late.Extension("ada", "a1", days=2.5)}
    path.write_text("name,assignment,days\n", encoding="utf-8")
    with pytest.raises(CourseError, match="line 1: expected the columns id, assignment and until or days"):
        late.read_extensions(path, UTC)


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        ({"percent": 110}, "percent: expected from 0 to 100, got 110"),
        ({"slip_days": -1}, "slip_days: expected 0 or more, got -1"),
        ({"every": "week"}, "every"),
        ({"percents": 10}, "no setting percents; it has every, extensions, grace_minutes"),
    ],
)
def test_settings_that_make_no_sense_are_named(book, rules, words):
    with pytest.raises(CourseError, match=words):
        late.check(book.folder, Config(LateRules=rules))


def test_the_doctor_names_an_extension_for_somebody_whom_nobody_knows(book):
    book.hand_in()
    shutil.move(book.folder / "gradebook.db", book.extend("ada,a1,,2", "eda,a1,,2", "ada,a7,,1").parent)
    (finding,) = [each for each in doctor.examine(book.folder) if each.about == "late work"]
    assert "no student eda and no assignment a7" in finding.seen and not finding.fatal
    book.extend("ada,a1,,soon")
    (finding,) = [each for each in doctor.examine(book.folder) if each.about == "late work"]
    assert "line 2, column days" in finding.seen and finding.fatal


# --- in a course -----------------------------------------------------------------------------------------------------


@pytest.fixture
def ten_percent(ours, tmp_path) -> Path:
    """The graded class, with other rules than it was graded by; einsum is a day late."""
    folder = graded_class.twin(tmp_path / "course", ours)
    with (folder / course.MARKER).open("a", encoding="utf-8") as file:
        file.write('c.LateSubmissionPlugin.penalty_method = "none"\nc.LateRules.percent = 10\n')
    return folder


@pytest.mark.xdist_group("grade")
def test_the_rules_hold_in_plain_nbgrader_and_in_grade_alike(ten_percent, tmp_path):
    other = graded_class.twin(tmp_path / "other", ten_percent)
    done = sample_class.nbgrader(other, "autograde", ASSIGNMENT.id, "--student=einsum", "--force")
    assert done.returncode == 0, done.stdout
    done = grade(ten_percent, "--student", "einsum", "--force", "--workers", "1")
    assert done.returncode == 0, done.stderr
    assert "einsum: 1.0 days, 3 points taken" in done.stdout
    assert contents(ten_percent)["einsum penalty"] == 3.0
    assert contents(ten_percent) == contents(other)


@pytest.mark.xdist_group("grade")
def test_neither_grades_while_the_extensions_cannot_be_read(ten_percent):
    (ten_percent / late.EXTENSIONS).write_text("id,assignment,days\neinsum,05_self_attention,x\n", encoding="utf-8")
    before = contents(ten_percent)
    done = sample_class.nbgrader(ten_percent, "autograde", ASSIGNMENT.id, "--student=einsum", "--force")
    assert done.returncode != 0
    assert "line 2, column days: expected a number of days, got 'x'" in done.stdout
    done = grade(ten_percent, "--student", "einsum", "--force", "--workers", "1")
    assert (done.returncode, "line 2, column days" in done.stderr) == (2, True)
    assert contents(ten_percent) == before
