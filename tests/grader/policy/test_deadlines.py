"""A notebook says when it is due, before anybody grades: in its head, to `progress()`, at the desk, in local time."""

import copy
import json
from datetime import datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import nbformat
import pytest

from autograder import course
from autograder.grade import changes
from autograder.intake.rebuild import rebuild
from autograder.learn import notebooks
from autograder.notebook import progress_overview
from autograder.policy import deadlines
from autograder.prepare import sample_class
from autograder.prepare.sample_class import ASSIGNMENT, ROOT

BERLIN = ZoneInfo("Europe/Berlin")
DUE = datetime(2026, 11, 2, 22, 59)
SHOWN = "Monday 2 November 2026, 23:59 CET (22:59 UTC)"


@pytest.fixture
def released():
    return course.read_notebook(course.notebook_path(ROOT, "exercises", ASSIGNMENT))


def put(folder, notebook):
    path = folder / ASSIGNMENT.id / f"{ASSIGNMENT.notebook}.ipynb"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(notebook), encoding="utf-8")
    return path


def test_the_head_says_it_once_and_taking_it_away_leaves_the_notebook_as_it_was(released, tmp_path):
    before = copy.deepcopy(released)
    assert not deadlines.write(released, None, BERLIN) and released == before
    assert deadlines.write(released, DUE, BERLIN) and not deadlines.write(released, DUE, BERLIN)
    assert f"**Due {SHOWN}.**" in "".join(released["cells"][1]["source"])
    assert deadlines.read(put(tmp_path, released)) == (DUE, BERLIN)
    assert deadlines.write(released, DUE + timedelta(days=1), BERLIN)
    assert [cell["id"] for cell in released["cells"]].count(deadlines.CELL) == 1
    assert deadlines.write(released, None, BERLIN) and released == before


@pytest.mark.parametrize(
    ("before", "words"),
    [
        (timedelta(days=3, hours=5), "in 3 days"),
        (timedelta(days=1), "in 1 day"),
        (timedelta(hours=5), "in 5 hours"),
        (timedelta(minutes=2), "in 2 minutes"),
        (timedelta(seconds=20), "in less than a minute"),
        (-timedelta(seconds=1), "which has passed"),
    ],
)
def test_progress_says_when_it_is_due_and_how_long_that_is(released, tmp_path, monkeypatch, before, words):
    deadlines.write(released, DUE, BERLIN)
    monkeypatch.chdir(put(tmp_path, released).parent)

    class Now(datetime):
        @classmethod
        def now(cls, tz=None):
            return (DUE - before).replace(tzinfo=timezone.utc)

    monkeypatch.setattr(progress_overview, "datetime", Now)
    shown = progress_overview.standing({ASSIGNMENT.exercises[0].id: (1.0, 1.0)}, {})
    assert f"due {SHOWN}, {words}" in shown["text"] and f"due {SHOWN}, {words}" in shown["html"]


@pytest.mark.parametrize(
    "metadata", [None, 5, {}, {"due": "soon"}, {"due": "2026-11-02T22:59:00Z"}, {"due": 5, "zone": 5}]
)
def test_a_notebook_that_says_nothing_or_nonsense_is_due_at_no_time(released, tmp_path, monkeypatch, metadata):
    released["metadata"][deadlines.KEY] = metadata
    monkeypatch.chdir(put(tmp_path, released).parent)
    assert "due" not in progress_overview.standing({ASSIGNMENT.exercises[0].id: (1.0, 1.0)}, {})["text"].split("\n")[1]


def test_the_desk_lists_what_is_due_the_first_first(released, tmp_path):
    later = copy.deepcopy(released)
    deadlines.write(released, DUE, BERLIN)
    deadlines.write(later, DUE - timedelta(days=1), BERLIN)
    put(tmp_path, released)
    (tmp_path / "06_x").mkdir()
    (tmp_path / "06_x" / "x.ipynb").write_text(json.dumps(later), encoding="utf-8")
    found = notebooks.due(tmp_path, DUE - timedelta(days=2))
    assert [name for name, _ in found] == ["06_x/x.ipynb", f"{ASSIGNMENT.id}/{ASSIGNMENT.notebook}.ipynb"]
    assert found[1][1] == f"due {SHOWN}, in 2 days"


def test_no_grade_is_outdated_because_a_due_date_was_moved(released, tmp_path):
    def digest(notebook):
        put(tmp_path, {}).write_text(nbformat.writes(nbformat.from_dict(notebook)) + "\n", encoding="utf-8")
        return changes.versions(ASSIGNMENT.id, tmp_path / ASSIGNMENT.id)["the released notebook"]

    plain = digest(released)
    deadlines.write(released, DUE, BERLIN)
    assert digest(released) == plain
    released["cells"][2]["source"] = "x = 1"
    assert digest(released) != plain


def test_what_was_handed_out_under_an_earlier_date_is_handed_in_under_a_later_one(released):
    handed_in, now = copy.deepcopy(released), copy.deepcopy(released)
    deadlines.write(handed_in, DUE, BERLIN)
    deadlines.write(now, DUE + timedelta(days=7), BERLIN)
    rebuilt = rebuild(json.dumps(handed_in).encode(), nbformat.reads(json.dumps(now), as_version=4))
    assert rebuilt.reasons == () and rebuilt.belongs


def test_generate_assignment_writes_the_gradebook_s_date_into_the_notebook(tmp_path):
    folder = tmp_path / "course"
    sample_class.lay_out(folder)
    with (folder / "nbgrader_config.py").open("a", encoding="utf-8") as file:
        file.write('c.CourseTime.zone = "Europe/Berlin"\n')
    path = course.notebook_path(folder, "exercises", ASSIGNMENT)
    done = sample_class.nbgrader(folder, "db", "assignment", "add", ASSIGNMENT.id, "--duedate", "2026-11-02 23:59")
    assert done.returncode == 0, done.stdout
    done = sample_class.nbgrader(folder, "generate_assignment", ASSIGNMENT.id)
    assert done.returncode == 0, done.stdout
    assert deadlines.read(path) == (DUE, BERLIN)
    nbformat.validate(nbformat.read(path, as_version=4))
