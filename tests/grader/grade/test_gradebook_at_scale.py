"""A gradebook with many students: what is asked of it does not read everyone's rows to answer about one."""

import sqlite3
from pathlib import Path

import pytest
import sqlalchemy
from nbgrader import api

from autograder import catalogue, course
from autograder.grade import gradebook_benchmark
from autograder.grade.gradebook import Classroom
from autograder.policy import gradebook_indexes, late
from autograder.reports import results

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "book" / "measured.md"
STUDENTS = 30


@pytest.fixture(scope="module")
def measured(tmp_path_factory) -> tuple[Path, dict]:
    folder = tmp_path_factory.mktemp("scale")
    return folder, gradebook_benchmark.measure(ROOT, folder, STUDENTS)


def plan(folder: Path, column: sqlalchemy.ColumnElement, row: str) -> str:
    """How SQLite finds one submission's column."""
    asked = sqlalchemy.select(column).where(api.SubmittedAssignment.id == row)
    query = str(asked.compile(compile_kwargs={"literal_binds": True}))
    database = sqlite3.connect(results.directory(folder).db_url.removeprefix("sqlite:///"))
    return "\n".join(line[-1] for line in database.execute(f"EXPLAIN QUERY PLAN {query}"))


def test_a_submission_s_points_are_found_by_an_index(measured):
    folder, _ = measured
    places = results.directory(folder)
    with api.Gradebook(places.db_url, places.course_id) as gradebook:
        row = gradebook.find_submission("05_self_attention", "student-0007").id
    for column in (api.SubmittedAssignment.score, api.SubmittedAssignment.needs_manual_grade):
        said = plan(folder, column, row)
        assert "SEARCH grade USING" in said and "SCAN" not in said, said


def test_grading_gives_the_indexes_to_a_gradebook_that_has_none(tmp_path):
    for step in ("exercises", "solutions"):
        (tmp_path / step).symlink_to(ROOT / step)
    (tmp_path / course.MARKER).write_text((ROOT / course.MARKER).read_text())
    address = results.directory(tmp_path).db_url
    with api.Gradebook(address, "attention-by-hand") as gradebook:
        gradebook_benchmark.fill(gradebook, ROOT, catalogue.assignments()[:1], 2)
        for index in gradebook_indexes.INDEXES:
            index.drop(gradebook.engine, checkfirst=True)
    Classroom(tmp_path, catalogue.assignments()[0].id)
    with api.Gradebook(address, "attention-by-hand") as gradebook:
        inspected = sqlalchemy.inspect(gradebook.engine)
        for index in gradebook_indexes.INDEXES:
            assert index.name in {found["name"] for found in inspected.get_indexes(index.table.name)}


def test_a_gradebook_that_cannot_be_written_stays_as_it_is(tmp_path):
    with api.Gradebook(f"sqlite:///{tmp_path / 'gradebook.db'}") as gradebook:
        for index in gradebook_indexes.INDEXES:
            index.drop(gradebook.engine, checkfirst=True)
    held = api.Gradebook(f"sqlite:///{tmp_path / 'gradebook.db'}")
    sqlalchemy.event.listen(held.engine, "connect", lambda connection, _: connection.execute("PRAGMA query_only = 1"))
    held.engine.dispose()
    gradebook_indexes.create(held)
    gradebook_indexes.count_rows(held)
    assert not sqlalchemy.inspect(held.engine).get_indexes("grade")
    held.close()


def test_without_free_days_nobody_s_other_submissions_are_read(measured):
    folder, found = measured
    places = results.directory(folder)
    with api.Gradebook(places.db_url, places.course_id) as gradebook, gradebook_benchmark.queries() as seconds:
        assert late._free_days(gradebook, "student-0007", late.Rules(percent=10))["05_self_attention"] == 0
        assert seconds == []
        shared = late._free_days(gradebook, "student-0007", late.Rules(percent=10, slip_days=3))
        assert shared["00_start_here"] == 3 and len(seconds) > 1
    # a few queries a student, and not one for each of a student's assignments
    assert found["answered"]["grade: whose lateness is out of date"]["queries"] < 5 * STUDENTS


def test_every_question_of_the_benchmark_was_asked(measured):
    _, found = measured
    assert found["assignments"] == 17 and all(each["queries"] > 0 for each in found["answered"].values())


def test_the_book_shows_the_recorded_table():
    page = PAGE.read_text(encoding="utf-8")
    assert gradebook_benchmark.with_result(page) == page and "1,000 students x 17 assignments" in page
