"""What the teachers' pages compute: the syllabus, the machine for a class, the worked exercise, their pictures."""

import importlib.util
import json
import re
import sys
from itertools import pairwise
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from bs4 import BeautifulSoup
from hypothesis import given
from hypothesis import strategies as st

from autograder import catalogue
from autograder.diagnosis.explain import judge_and_explain
from autograder.diagnosis.known_mistakes import namespace_of
from autograder.judging.observe import LocalEndpoint
from autograder.policy import late
from book.tools import pictures

ROOT = Path(__file__).resolve().parents[2]
TEACH = ROOT / "book" / "teach"
sys.path.append(str(ROOT / "book" / "extension"))
import class_plans  # noqa: E402 (an extension of Sphinx, which finds it by its folder)

minutes = st.integers(10, 400)


def chapter(length: int) -> class_plans.Chapter:
    return class_plans.Chapter("page", "title", length, 0, 1.0)


@given(st.lists(minutes, min_size=1, max_size=8), st.data())
def test_every_week_has_a_chapter_and_no_other_cut_has_a_shorter_longest_week(lengths, data):
    planned = tuple(map(chapter, lengths))
    number = data.draw(st.integers(1, len(planned)))
    weeks = class_plans.weeks(planned, number)
    assert len(weeks) == number and all(weeks)
    assert [each for week in weeks for each in week] == list(planned)
    longest = max(sum(each.minutes for each in week) for week in weeks)
    assert longest >= max(max(lengths), sum(lengths) / number)
    places = st.sets(st.integers(1, len(planned) - 1), min_size=number - 1, max_size=number - 1)
    ends = [0, *sorted(data.draw(places) if number > 1 else ()), len(planned)]
    other = max(sum(lengths[begin:end]) for begin, end in pairwise(ends))
    assert longest <= other


@pytest.mark.parametrize("number", [0, 99])
def test_a_syllabus_of_no_weeks_or_of_more_weeks_than_chapters_is_refused(number):
    with pytest.raises(ValueError, match=f"weeks: expected 1 to {len(class_plans.chapters())},"):
        class_plans.weeks(class_plans.chapters(), number)


@pytest.mark.parametrize("number", [4, 8, 13])
def test_a_syllabus_holds_all_chapters_and_all_points(number):
    *weeks, total = class_plans.syllabus(number)[2:]
    assert len(weeks) == number
    course = [assignment for assignment in catalogue.ASSIGNMENTS if assignment.id <= "12_capstone"]
    assert re.findall(r"</(\w+)>", "".join(weeks)) == [assignment.id for assignment in course]
    points = sum(float(week.split("|")[-2]) for week in weeks)
    assert points == sum(assignment.points for assignment in course)
    assert f"**{points:g}**" in total


def test_what_no_syllabus_holds_is_a_bonus():
    planned = "".join(class_plans.syllabus(13)[2:]) + "".join(class_plans.bonus()[2:])
    assert re.findall(r"</(\w+)>", planned) == [assignment.id for assignment in catalogue.ASSIGNMENTS]
    assert [row.split("|")[-2].strip() for row in class_plans.bonus()[2:]] == ["20"] * 4


def test_minutes_are_rounded_up_to_a_quarter_of_an_hour():
    assert [class_plans.hours(each) for each in (1, 15, 16, 60, 61)] == ["0.25", "0.25", "0.5", "1", "1.25"]


def test_a_class_twice_as_large_needs_no_smaller_machine_and_each_is_graded_in_a_night():
    capstone = class_plans.costs().capstone
    cores = [class_plans.cores_for(size, capstone) for size in (30, 300, 3000)]
    assert cores == sorted(cores)
    for size, each in zip((30, 300, 3000), cores, strict=True):
        assert size * capstone / each / 3600 <= class_plans.NIGHT


def test_a_usual_submission_takes_what_the_recorded_run_took_on_all_of_its_cores():
    whole = json.loads(class_plans.WHOLE_CLASS.read_text(encoding="utf-8"))
    assert class_plans.costs().usual == pytest.approx(60 * whole["cores"] / whole["per_minute"]["ours"], rel=0.01)
    assert class_plans.costs().usual < class_plans.costs().dearest < class_plans.costs().capstone


def test_among_the_costs_recorded_is_that_of_the_chapter_whose_exercise_trains():
    recorded = json.loads(class_plans.EACH_CHAPTER.read_text(encoding="utf-8"))
    assert set(recorded) <= {each.id for each in catalogue.ASSIGNMENTS if not each.trains}
    dearest = max(recorded, key=lambda chapter: recorded[chapter]["processor_seconds"])
    assert dearest == "10_training" and len({noted["submissions"] for noted in recorded.values()}) == 1


def test_the_syllabus_and_the_machines_stand_on_their_pages(book):
    weeks = book.soup("teach/weeks").select("article table")
    assert [len(table.select("tbody tr")) for table in weeks] == [14, 9, 5, 4]
    assert weeks[0].select_one("tbody a")["href"] == "../00_start_here.html"
    (machines,) = book.soup("teach/first_class").select("article table")
    assert [row.td.get_text() for row in machines.select("tbody tr")] == ["30", "300", "3,000"]
    counted = sum(len(each.mistakes) for assignment in catalogue.ASSIGNMENTS for each in assignment.exercises)
    assert f"{counted:,} lines" in book.soup("teach/beliefs").get_text()


# --- the worked exercise ---

PAGE = (TEACH / "worked_exercise.md").read_text(encoding="utf-8")
ENTRY, ANSWER, MET = re.findall(r"^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


def entry(source: str, tmp_path: Path):
    """The exercise defined by a file with this source."""
    path = tmp_path / "strongest_share.py"
    path.write_text(source, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("strongest_share", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.EXERCISE


def verdict(exercise, source: str):
    return judge_and_explain(exercise, LocalEndpoint(namespace_of(source)), b"any")


def test_the_worked_exercise_knows_its_mistakes_and_the_one_met_in_class_once_it_is_added(tmp_path):
    before = entry(ENTRY, tmp_path)
    assert all(verdict(before, each.source).passed for each in before.correct)
    assert all(verdict(before, each.source).misconception == each for each in before.mistakes)
    told = verdict(before, ANSWER)
    assert not told.passed and told.misconception is None

    line = "        *usual_mistakes("
    assert ENTRY.count(line) == 1
    after = entry(ENTRY.replace(line, MET + line), tmp_path)
    assert verdict(after, ANSWER).misconception.name == "the mean over the queries"
    assert verdict(after, ANSWER).points == told.points
    assert all(verdict(after, each.source).misconception == each for each in after.mistakes)


def test_the_extensions_shown_are_read_as_the_page_says(tmp_path):
    page = (TEACH / "fairness.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"```text\n(id,assignment.*?)```", page, re.DOTALL)
    path = tmp_path / "extensions.csv"
    path.write_text(shown, encoding="utf-8")
    granted = late.read_extensions(path, ZoneInfo("UTC"))
    assert set(granted) == {("501", "05_self_attention"), ("502", "05_self_attention")}


# --- pictures ---


def test_no_picture_is_older_than_the_bones_of_its_page():
    """When this fails: make sample-class, then python -m book.tools.pictures."""
    recorded = json.loads((pictures.PICTURES / "outline.json").read_text(encoding="utf-8"))
    assert recorded == pictures.outline()
    assert len(recorded["dashboard.html.j2"]) > 15


def test_every_picture_is_small_is_shown_and_is_described():
    taken = {path.name: path.stat().st_size for path in pictures.PICTURES.glob("*.webp")}
    assert set(taken) == {"feedback.webp", "dashboard.webp", "card.webp", "formgrader.webp"}
    assert max(taken.values()) < pictures.LARGEST
    text = "".join(path.read_text(encoding="utf-8") for path in TEACH.glob("*.md"))
    shown = dict(re.findall(r"!\[([^\]]+)\]\(pictures/([\w.]+)\)", text))
    assert set(shown.values()) == set(taken)
    assert all(len(words.split()) > 12 for words in shown)


def test_words_do_not_change_the_bones_of_a_page_and_a_new_table_does(monkeypatch):
    page = BeautifulSoup(pictures._text("feedback.html.j2"), "html.parser")
    assert page.h1 is not None
    before = pictures.outline()
    text = pictures._text
    monkeypatch.setattr(pictures, "_text", lambda name: text(name).replace("At a glance", "All of it"))
    assert pictures.outline() == before
    monkeypatch.setattr(pictures, "_text", lambda name: text(name) + "<table>")
    assert pictures.outline() != before
