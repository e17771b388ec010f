"""A report that a person reads: formgrader shows it with its rubric, and the points given there outlive a regrade."""

import csv
import json
import shutil
import urllib.request

import graded_class
import pytest
from lab_server import serving
from nbgrader.api import Gradebook

from autograder import __main__ as command_line
from autograder import catalogue
from autograder.prepare import sample_class

CAPSTONE = catalogue.find_assignment("12_capstone")
(REPORT,) = CAPSTONE.by_hand
TEXT = "*Question.* Does any head matter?"
POINTS = 13.0
REGRADES = (["--force"], ["--resume"], ["--outdated"])


@pytest.fixture(scope="module")
def course(tmp_path_factory, released):
    """A graded capstone of one student who has written a report and nothing else."""
    sample_class.trust_where_nothing_isolates()
    folder = tmp_path_factory.mktemp("by_hand") / "course"
    shutil.copytree(released(CAPSTONE), folder)
    path = sample_class.submit(folder, "ada", dict.fromkeys(CAPSTONE.trains, "pass"), CAPSTONE)
    notebook = json.loads(path.read_text(encoding="utf-8"))
    (cell,) = (cell for cell in notebook["cells"] if cell["id"] == REPORT.id)
    cell["source"] = TEXT
    path.write_text(json.dumps(notebook), encoding="utf-8")
    grade(folder)
    return folder


def grade(folder, *arguments):
    done = graded_class.grade(folder, "--workers", "1", *arguments, assignment=CAPSTONE.id)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def book(folder):
    return Gradebook(f"sqlite:///{folder / 'classroom' / 'gradebook.db'}", "attention-by-hand")


def row(folder, monkeypatch):
    """The line of `export` of the one student, by column."""
    monkeypatch.chdir(folder)
    assert command_line.main(["export", CAPSTONE.id, "--format", "csv", "--output", "grades.csv"]) == 0
    with open(folder / "grades.csv", encoding="utf-8-sig", newline="") as file:
        return next(csv.DictReader(file))


@pytest.mark.slow
def test_points_given_in_formgrader_outlive_every_regrade_and_reach_export_and_feedback(course, tmp_path, monkeypatch):
    assert row(course, monkeypatch)[REPORT.number] == "" and row(course, monkeypatch)["waits"] == "yes"
    with book(course) as gradebook:
        (submission,) = gradebook.assignment_submissions(CAPSTONE.id)
        (notebook,) = submission.notebooks
        (grade_id,) = (each.id for each in notebook.grades if each.name == REPORT.id)
        asked, most = notebook.id, submission.max_score
    assert most == CAPSTONE.points
    with serving(tmp_path / "lab", course) as (address, token):

        def ask(path, body=None):
            data = None if body is None else json.dumps(body).encode()
            request = urllib.request.Request(f"{address}/formgrader/{path}", data, method="PUT" if data else "GET")
            request.add_header("Authorization", f"token {token}")
            with urllib.request.urlopen(request, timeout=120) as reply:
                return reply.read().decode()

        page = ask(f"submissions/{asked}/")
        assert "Does any head matter?" in page and "what this does not show" in page  # the text and its rubric
        shown = next(each for each in json.loads(ask(f"api/grades?submission_id={asked}")) if each["id"] == grade_id)
        assert (shown["max_score"], shown["needs_manual_grade"]) == (REPORT.points, True)
        ask(f"api/grade/{grade_id}", {"manual_score": POINTS, "extra_credit": None})
    for arguments in ([], *REGRADES):
        if arguments:
            grade(course, *arguments)
        line = row(course, monkeypatch)
        assert (float(line[REPORT.number]), float(line["raw_score"])) == (POINTS, POINTS), arguments
    done = sample_class.nbgrader(course, "generate_feedback", CAPSTONE.id)
    assert done.returncode == 0, done.stdout
    feedback = course / "classroom" / "feedback" / "ada" / CAPSTONE.id / f"{CAPSTONE.notebook}.html"
    text = feedback.read_text(encoding="utf-8")
    assert "read by a person" in text and "still to come" not in text and "Does any head matter?" in text
