"""What people do once a class is graded: it is seen by the next `grade`, `export` and `feedback`, and never passed
over."""

import json
import shutil
from pathlib import Path

import graded_class
import pytest
from graded_class import contents, grade

from autograder import __main__ as command_line
from autograder.grade import older_rules
from autograder.policy import late
from autograder.prepare import release, sample_class
from autograder.prepare.sample_class import ASSIGNMENT

pytestmark = pytest.mark.xdist_group("grade")


@pytest.fixture
def copy(ours, tmp_path) -> Path:
    return graded_class.twin(tmp_path / "course", ours)


def regrade(folder: Path, *arguments: str) -> str:
    done = grade(folder, "--workers", "1", *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_gradebook_that_lost_somebody_is_filled_again_though_the_graded_folder_is_there(copy):
    before = contents(copy)
    with graded_class.gradebook(copy) as book:
        book.remove_submission(ASSIGNMENT.id, "perfect")
    assert older_rules.not_in_gradebook(copy, ASSIGNMENT.id) == ["perfect"]
    assert "5 are graded already; grading the other 1" in regrade(copy)
    assert contents(copy) == before and older_rules.not_in_gradebook(copy, ASSIGNMENT.id) == []


def test_a_gradebook_that_was_put_back_to_earlier_points_is_set_right(copy):
    before = contents(copy)
    with graded_class.gradebook(copy) as book:
        (notebook,) = book.find_submission(ASSIGNMENT.id, "perfect").notebooks
        notebook.grades[0].auto_score = 0.5
        book.db.commit()
    regrade(copy)
    assert contents(copy) == before


def test_plain_autograde_asks_the_gradebook_too(copy):
    before = contents(copy)
    with graded_class.gradebook(copy) as book:
        book.remove_submission(ASSIGNMENT.id, "blank")
    done = sample_class.nbgrader(copy, "autograde", ASSIGNMENT.id, "--student=blank")
    assert done.returncode == 0 and "the gradebook has nothing of it: graded again" in done.stdout
    assert contents(copy) == before


def test_whose_folder_is_gone_is_named_and_keeps_the_points(copy):
    shutil.rmtree(copy / "classroom" / "submitted" / "perfect")
    said = regrade(copy)
    assert "have points in the gradebook, and their folder is gone: 1\n    perfect" in said
    assert "perfect" in contents(copy)


def test_points_that_a_person_gave_stay_and_the_summary_says_so(copy):
    cell = f"{ASSIGNMENT.exercises[0].id}-check"
    with graded_class.gradebook(copy) as book:
        book.find_grade(cell, ASSIGNMENT.notebook, ASSIGNMENT.id, "blank").manual_score = 1.5
        book.db.commit()
    answers = sample_class.answers()
    path = sample_class.submit(copy, "blank", answers["perfect"])
    (path.parent / "timestamp.txt").write_text("2026-03-01 13:00:00 UTC", encoding="utf-8")
    said = regrade(copy)
    assert "a new submission; the grade stays 1.5, which a person gave" in said


def test_a_late_resubmission_with_fewer_points_is_named(copy):
    path = sample_class.submit(copy, "perfect", sample_class.answers()["no-scaling"])
    (path.parent / "timestamp.txt").write_text("2026-03-04 12:00:00 UTC", encoding="utf-8")
    said = regrade(copy)
    assert "fewer points than before, after lateness: 1\n    perfect: 30 -> 0 points" in said


def test_a_due_date_that_is_moved_brings_points_back_and_the_regrade_lists_them(copy):
    held = contents(copy)["einsum penalty"]
    assert held > 0
    with graded_class.gradebook(copy) as book:
        book.update_or_create_assignment(ASSIGNMENT.id, duedate="2026-03-05 12:00:00 UTC")
    said = grade(copy).stdout
    assert f"einsum: lateness is out of date: {held:g} points taken, 0 by the points, dates and rules of now" in said
    said = regrade(copy, "--outdated")
    assert "1 of 6 were graded by older rules or dates" in said
    assert f"einsum: {held:g} -> 0 points taken, {held:g} come back" in said
    assert not contents(copy)["einsum penalty"] and older_rules.remarks(copy, ASSIGNMENT.id) == []


def test_grades_by_other_points_are_named_by_export_feedback_and_release(copy, monkeypatch, capsys):
    path = copy / "classroom" / "autograded" / "perfect" / ASSIGNMENT.id / f"{ASSIGNMENT.notebook}.ipynb"
    notebook = json.loads(path.read_text(encoding="utf-8"))
    (check,) = [cell for cell in notebook["cells"] if cell["id"] == "project-check"]
    check["metadata"]["nbgrader"]["points"] = 6
    path.write_text(json.dumps(notebook), encoding="utf-8")
    words = f"{ASSIGNMENT.id}, perfect: project was worth 6 points when it was graded, now it is worth 3."
    monkeypatch.chdir(copy)
    assert command_line.main(["export", ASSIGNMENT.id]) == 1
    assert f"{words}\npython -m autograder grade {ASSIGNMENT.id} --outdated settles it." in capsys.readouterr().err
    done = sample_class.nbgrader(copy, "generate_feedback", ASSIGNMENT.id)
    assert done.returncode == 0 and words in done.stdout
    assert release.release([ASSIGNMENT.id], copy) == 0
    assert f"{ASSIGNMENT.id}: 1 graded by other points than now; `python -m" in capsys.readouterr().out


def test_the_summary_says_when_late_work_came_and_was_due_in_local_time(copy):
    with (copy / "nbgrader_config.py").open("a", encoding="utf-8") as file:
        file.write('c.CourseTime.zone = "America/Los_Angeles"\n')
    said = regrade(copy, "--force", "--student", "einsum")
    assert "handed in 2026-03-03 04:00 PST (12:00 UTC), due 2026-03-02 04:00 PST (12:00 UTC)" in said


def test_release_refuses_another_cell_before_it_touches_anything(copy):
    path = copy / "solutions" / ASSIGNMENT.id / f"{ASSIGNMENT.notebook}.ipynb"
    notebook = json.loads(path.read_text(encoding="utf-8"))
    more = json.loads(json.dumps(next(cell for cell in notebook["cells"] if cell["metadata"].get("nbgrader"))))
    more["metadata"]["nbgrader"]["grade_id"] = more["id"] = "one-more"
    notebook["cells"].append(more)
    path.write_text(json.dumps(notebook), encoding="utf-8")
    before = {each: each.read_bytes() for each in copy.glob("*/*/*.ipynb")}
    with pytest.raises(late.CourseError, match="6 students have handed in.*new: one-more.*Nothing is touched"):
        release.release([ASSIGNMENT.id], copy)
    assert before == {each: each.read_bytes() for each in copy.glob("*/*/*.ipynb")}
