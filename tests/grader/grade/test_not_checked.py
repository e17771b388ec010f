"""Work that could not be checked, through no fault of the student's, is reported and waits for a person; no zero is
final."""

import json

import pytest
from nbformat.v4 import new_code_cell
from nbgrader.api import Gradebook

from autograder import catalogue, course
from autograder.prepare import sample_class
from autograder.prepare.sample_class import ASSIGNMENT
from autograder.reports import results

OURS = """
from autograder.judging import forbidden
from autograder.judging.judge import JudgingSession
from autograder.sandbox.runner import Ended


def unread(findings):
    def reads(cells, exercise, assignment):
        if exercise.id == "project" and any("# not to be read" in cell for cell in cells):
            raise IndexError("a text that we cannot read")
        return findings(cells, exercise, assignment)

    return reads


def stopping(ask):
    def stops(self, endpoint, hidden):
        if self.exercise.id == "attend" and not hidden:
            tries.append(endpoint)
            if {stops}:
                raise ZeroDivisionError("one of ours")
        return ask(self, endpoint, hidden)

    tries = []
    return stops


if JudgingSession.ask.__name__ == "ask":  # this file is read more than once
    JudgingSession.ask = stopping(JudgingSession.ask)
    forbidden.findings = unread(forbidden.findings)
    Ended.killed = property(lambda ended: True, lambda ended, said: None)  # as if each had been killed from outside
"""
ENDS = "import os\n_whole = attend\ndef attend(*arguments):\n    os._exit(0)\n"


@pytest.fixture(scope="module")
def stopped(empty_course):
    """A course whose judge stops in one exercise, each time that it comes there."""
    made = empty_course("judge-stops")
    with (made.folder / course.MARKER).open("a", encoding="utf-8") as file:
        file.write(OURS.format(stops="True"))
    sample_class.submit(made.folder, "a-honest", sample_class.solved())
    with_own_cell(made, "b-unread", "# not to be read")
    made.autograde()
    return made


@pytest.fixture(scope="module")
def killed(empty_course):
    """A course in which the judge stops once, and somebody kills a process each time that it is in a certain check."""
    made = empty_course("process-killed")
    with (made.folder / course.MARKER).open("a", encoding="utf-8") as file:
        file.write(OURS.format(stops="len(tries) == 1"))
    solved = sample_class.solved()
    sample_class.submit(made.folder, "a-honest", solved)
    sample_class.submit(made.folder, "b-killed", {**solved, "attend": f"{solved['attend']}\n{ENDS}"})
    with_own_cell(made, "c-odd", "x =%'''")
    made.autograde()
    return made


def with_own_cell(made, student: str, source: str) -> None:
    """Submit the right answers, and a code cell of the student's own before them."""
    path = sample_class.submit(made.folder, student, sample_class.solved())
    notebook = json.loads(path.read_text(encoding="utf-8"))
    notebook["cells"].insert(2, new_code_cell(source))
    path.write_text(json.dumps(notebook), encoding="utf-8")


def waits(made, student: str) -> set[str]:
    """The exercises that wait for points by hand."""
    with Gradebook(f"sqlite:///{made.folder / 'classroom' / 'gradebook.db'}") as book:
        notebook = book.find_submission_notebook(ASSIGNMENT.notebook, ASSIGNMENT.id, student)
        return {grade.name.removesuffix(course.CHECK_SUFFIX) for grade in notebook.grades if grade.needs_manual_grade}


def record(made, student: str, exercise: str) -> dict:
    path = made.folder / "classroom" / "autograded" / student / ASSIGNMENT.id / f"{ASSIGNMENT.notebook}.ipynb"
    cells = results.check_cells(results.nbformat.read(path, as_version=4))
    return next(output.metadata.judged for output in cells[exercise].outputs if "judged" in output.get("metadata", {}))


def others(scores: dict[str, float]) -> dict[str, float]:
    return {name: points for name, points in scores.items() if name != "attend"}


EVERYTHING = {exercise.id: exercise.points for exercise in ASSIGNMENT.exercises}


def test_an_exception_of_ours_costs_no_other_exercise_and_ends_no_batch(stopped):
    assert stopped.code == 0, stopped.log[-3000:]
    assert others(stopped.scores("a-honest")) == others(EVERYTHING)


def test_an_exception_of_ours_is_no_final_zero(stopped):
    assert waits(stopped, "a-honest") == {"attend"}
    assert record(stopped, "a-honest", "attend")["state"] == "not checked"


def test_the_report_says_that_it_is_no_fault_of_the_students(stopped):
    report = " ".join(stopped.report("a-honest", "attend").split())
    assert "Not checked: the judge stopped with ZeroDivisionError" in report
    assert "Your answer is not at fault" in report and "Reread" not in report


def test_what_breaks_once_costs_nothing(killed):
    assert killed.code == 0, killed.log[-3000:]
    assert killed.scores("a-honest") == EVERYTHING
    assert waits(killed, "a-honest") == set()
    assert "Trying once more" in killed.log


def test_a_cell_at_which_ipython_fails_costs_no_exercise(killed):
    assert killed.scores("c-odd") == EVERYTHING


def test_a_text_that_the_judge_cannot_read_costs_one_exercise_which_waits_for_a_person(stopped):
    both = {"attend", "project"}
    expected = {name: points for name, points in EVERYTHING.items() if name not in both}
    assert {name: points for name, points in stopped.scores("b-unread").items() if name not in both} == expected
    assert waits(stopped, "b-unread") == both and waits(stopped, "a-honest") == {"attend"}
    assert "the judge stopped with IndexError" in " ".join(stopped.report("b-unread", "project").split())
    assert "project: not checked, since the judge stopped." in stopped.log


def test_a_process_killed_twice_is_not_checked_and_waits_for_a_person(killed):
    assert others(killed.scores("b-killed")) == others(EVERYTHING)
    assert waits(killed, "b-killed") == {"attend"}
    assert record(killed, "b-killed", "attend")["excused"] is True
    assert "killed from outside" in killed.report("b-killed", "attend")


def test_a_verdict_that_was_reached_excuses_nothing(killed):
    known = record(killed, "a-honest", "project")
    assert (known["state"], known["excused"], known["checked"]) == ("passed", False, True)
    assert catalogue.find("project").points == known["points"]
