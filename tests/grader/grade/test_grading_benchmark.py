"""What `python -m autograder benchmark` measures, and that the book shows what was recorded."""

import argparse
import json
from pathlib import Path

import pytest

from autograder import catalogue, course
from autograder.course import CourseError
from autograder.grade import benchmark

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "book" / "measured.md"


def test_the_book_shows_the_recorded_result_and_readme_its_ratio():
    page = PAGE.read_text(encoding="utf-8")
    assert benchmark.with_result(page) == page
    assert "times the submissions per minute" in page
    ratio = json.loads(benchmark.RECORDED.read_text(encoding="utf-8"))["ratio"]
    assert f"graded {ratio:.1f} times as fast" in " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())


def test_recording_keeps_the_result_and_writes_it_between_the_marks(tmp_path, monkeypatch):
    found = json.loads(benchmark.RECORDED.read_text(encoding="utf-8")) | {"ratio": 12.34}
    monkeypatch.setattr(benchmark, "RECORDED", tmp_path / "recorded.json")
    result, page = tmp_path / "grading.json", tmp_path / "README.md"
    result.write_text(json.dumps(found))
    page.write_text("before\n<!-- grading: begin -->\nold\n<!-- grading: end -->\nafter\n")
    benchmark.record(result, page)
    text = page.read_text()
    assert "12.3 times" in text and text.startswith("before\n") and text.endswith("after\n") and "old" not in text


def test_a_result_without_the_other_side_is_not_recorded(tmp_path):
    with pytest.raises(CourseError, match="run the benchmark first"):
        benchmark.record(tmp_path / "grading.json", PAGE)
    (tmp_path / "grading.json").write_text('{"assignment": "05_self_attention"}')
    with pytest.raises(CourseError, match="includes plain nbgrader"):
        benchmark.record(tmp_path / "grading.json", PAGE)


def test_growth_is_the_slope_of_the_second_half_and_one_jump_does_not_move_it():
    assert benchmark._growth([9, 9, 9, 0, 5, 10, 15, 20]) == 5
    assert benchmark._growth([0] * 20 + [0, 0, 0, 70, 0, 0, 0, 0, 0, 0]) == 0


def test_it_grades_a_class_of_its_own(tmp_path, monkeypatch):
    root = course.find_root()
    for name in ("solutions", "exercises", course.MARKER):
        (tmp_path / name).symlink_to(root / name)
    monkeypatch.chdir(tmp_path)
    parser = argparse.ArgumentParser()
    benchmark.add_arguments(parser)
    assert benchmark.run(parser.parse_args(["--submissions", "2", "--workers", "1", "--only-ours"])) == 0
    found = json.loads((tmp_path / "build" / "benchmark" / "grading.json").read_text())
    assert found["submissions"] == 2 and found["failed"] == [] and found["seconds"].keys() == {"ours"}
    assert not (tmp_path / "classroom").exists()


def test_the_class_answers_each_exercise_as_classes_do():
    root = course.find_root()
    assignment = catalogue.find_assignment("05_self_attention")
    released = course.read_notebook(course.notebook_path(root, "exercises", assignment))
    blank = {cell["id"]: "".join(cell["source"]) for cell in released["cells"]}
    solutions = {exercise.id: f"# the solution of {exercise.id}" for exercise in assignment.exercises}
    works = [benchmark._work(released, solutions, assignment, number) for number in range(400)]
    for exercise in assignment.exercises:
        right = [solutions[exercise.id], *(each.source for each in exercise.correct)]
        sources = ["".join(cell["source"]) for work in works for cell in work["cells"] if cell["id"] == exercise.id]
        share = {
            "right": sum(source.rpartition("\n# ")[0] in right for source in sources) / 400,
            "blank": sum(source == blank[exercise.id] for source in sources) / 400,
        }
        assert share == pytest.approx({"right": 0.65, "blank": 0.1}, abs=0.08)
    assert len({json.dumps(work["cells"]) for work in works}) > 390  # except those that are blank as a whole
