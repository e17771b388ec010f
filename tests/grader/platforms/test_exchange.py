"""nbgrader's exchange there and back with five students: everyone finds their own page, and who gets none is named."""

import json
import logging
import shutil

import pytest
from nbgrader.auth import Authenticator
from nbgrader.coursedir import CourseDirectory
from nbgrader.exchange import default
from nbgrader.exchange.default import Exchange
from traitlets.config import Config

from autograder import course
from autograder.intake import take_in
from autograder.platforms import exchange
from autograder.prepare import sample_class
from autograder.prepare.sample_class import ASSIGNMENT
from autograder.reports import results

NAME = f"{ASSIGNMENT.notebook}.ipynb"


class Class:
    """A course and its exchange in one folder; every student has a home of their own."""

    def __init__(self, folder):
        self.folder = folder
        sample_class.lay_out(folder / "course")
        self.course = folder / "course"
        self.outbound = folder / "exchange" / "attention-by-hand" / "outbound" / ASSIGNMENT.id
        shutil.copytree(self.course / "exercises" / ASSIGNMENT.id, self.outbound)
        (folder / "exchange" / "attention-by-hand" / "inbound").mkdir()
        (folder / "exchange" / "attention-by-hand" / "inbound").chmod(0o733)

    def run(self, step, student="", **settings):
        """One of nbgrader's steps, as this student or as the teacher."""
        settings = results.configuration(self.course)
        settings.merge(Config(Exchange={"root": str(self.folder / "exchange"), "path_includes_course": False}))
        if student:
            home = self.folder / "homes" / student
            settings.merge(Config(Exchange={"cache": str(home / "cache"), "assignment_dir": str(home)}))
        places = CourseDirectory(config=settings)
        places.assignment_id = ASSIGNMENT.id
        if student:
            places.student_id = student
        getattr(default, step)(coursedir=places, authenticator=Authenticator(config=settings), config=settings).start()

    def submit(self, student, cells=(), name=NAME, text=""):
        home = self.folder / "homes" / student / ASSIGNMENT.id
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir(parents=True)
        notebook = course.read_notebook(self.outbound / NAME)
        notebook["cells"] += [cell for cell in notebook["cells"] if cell["id"] in cells]
        notebook["cells"].append({"cell_type": "markdown", "id": "mine", "metadata": {}, "source": text})
        (home / name).write_text(json.dumps(notebook), encoding="utf-8")
        self.run("ExchangeSubmit", student)

    def grade(self):
        """The result of grading and generate_feedback: a page for every submission, and the files that the intake
        stored."""
        places = CourseDirectory(config=results.configuration(self.course))
        places.assignment_id = ASSIGNMENT.id
        take_in.take_in_class(places, lambda line: None)
        for kept in (self.course / take_in.RECEIVED).glob(f"*/{ASSIGNMENT.id}"):
            page = self.course / "classroom" / "feedback" / kept.parent.name / ASSIGNMENT.id
            page.mkdir(parents=True, exist_ok=True)
            for path in (path for path in kept.iterdir() if path.suffix != ".ipynb"):
                shutil.copy(path, page)
            (page / f"{ASSIGNMENT.notebook}.html").write_text(f"the page of {kept.parent.name}", encoding="utf-8")

    def fetched(self, student):
        self.run("ExchangeFetchFeedback", student)
        there = self.folder / "homes" / student / ASSIGNMENT.id / "feedback"
        return {path.read_text(encoding="utf-8") for path in there.rglob("*.html")}


@pytest.fixture
def five(tmp_path, monkeypatch):
    class_ = Class(tmp_path)
    monkeypatch.chdir(class_.course)
    monkeypatch.setattr(Exchange, "course_id", "attention-by-hand", raising=False)
    exchange.install()
    (class_.course / "classroom").mkdir(exist_ok=True)
    return class_


def test_everyone_finds_their_own_page_and_release_says_who_gets_none(five, caplog):
    five.submit("ada", text="first")
    five.submit("ada", text="second")  # within a second
    five.submit("bob", name="My work (final).ipynb")
    five.submit("cleo", cells=("attention-weights",))
    five.submit("dan", text="late")
    five.run("ExchangeCollect")
    (five.course / "classroom" / "submitted" / "eve" / ASSIGNMENT.id).mkdir(parents=True)  # nothing
    five.grade()
    shutil.rmtree(five.course / "classroom" / "feedback" / "dan")
    caplog.set_level(logging.ERROR)
    five.run("ExchangeReleaseFeedback")
    assert "dan gets no feedback: no feedback page" in caplog.text
    assert "eve gets no feedback: no submission_secret.txt of the exchange came with the work" in caplog.text
    found = {student: five.fetched(student) for student in ("ada", "bob", "cleo", "dan")}
    assert found == {
        "ada": {"the page of ada"},
        "bob": {"the page of bob"},
        "cleo": {"the page of cleo"},
        "dan": set(),
    }
