"""What a class believes: saved answers to the inventory are read with suspicion, counted, and shown to the teacher."""

import json
import os

import accessibility_tree
import pytest
from bs4 import BeautifulSoup

from autograder import __main__ as command_line
from autograder import catalogue
from autograder.catalogue import inventory
from autograder.prepare import sample_class
from autograder.reports import beliefs

INVENTORY = inventory.read()
COLUMNS = "softmax over the queries"  # a wrong choice of "row-sums"


def answers(otherwise="unknown", **given):
    """A round: `otherwise` everywhere, except for the questions given by name."""
    return {question.id: given.get(question.id.replace("-", "_"), otherwise) for question in INVENTORY.questions}


def saved(before, after=None, **changed):
    """What the page saves."""
    rounds = [noted and {"day": "2026-11-23", "answers": noted} for noted in (before, after)]
    held = {"inventory": INVENTORY.id, "version": INVENTORY.version, "before": rounds[0], "after": rounds[1]}
    return json.dumps(held | changed)


ANA = saved(answers(row_sums=COLUMNS), answers("right", row_sums=COLUMNS))
BEN = saved(answers(row_sums=COLUMNS), answers("right"))
CLEO = saved(answers("right"))


@pytest.fixture
def course(tmp_path, monkeypatch):
    sample_class.lay_out(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def put(folder, **files):
    paths = []
    for name, text in files.items():
        path = folder / f"{name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        paths.append(path)
    return paths


def test_those_who_answered_twice_are_counted_and_the_gain_is_of_what_could_be_gained(tmp_path):
    found, refused = beliefs.read_records(put(tmp_path, ana=ANA, ben=BEN, cleo=CLEO))
    counted = beliefs.count(found, "https://book.example")
    assert (refused, counted.once, counted.twice) == ([], 3, 2)
    (asked,) = [each for each in counted.asked if each.question.id == "row-sums"]
    assert (asked.count("right", "before"), asked.count("right", "after")) == (0, 1)
    assert (asked.strongest("before").before, asked.strongest("after").after) == (2, 1)
    assert asked.strongest("after").belief.mistake == COLUMNS
    assert counted.means["right"] == (0, 23.5) and counted.means["unknown"] == (23, 0)
    assert counted.gain == pytest.approx(23.5 / 24)


def test_before_the_course_ends_the_first_round_is_counted_alone(tmp_path):
    found, _ = beliefs.read_records(put(tmp_path, cleo=CLEO))
    counted = beliefs.count(found, "")
    assert (counted.people, counted.twice, counted.gain) == (1, 0, None)
    assert "before" in beliefs.page(counted) and "after</th>" not in beliefs.page(counted)


REFUSED = {
    "no JSON": ("{", "not the page's JSON"),
    "a list": ("[]", "holds no answers"),
    "another inventory": (saved(answers(), inventory="other"), "holds no answers"),
    "another version": (saved(answers(), version=99), "expected version 1 of the inventory, got 99"),
    "no first round": (saved(None), "no first round"),
    "a choice that is none": (saved(answers(row_sums="<script>")), "before, row-sums: expected one of"),
    "a question left out": (saved({"row-sums": "right"}), "before, how-far: expected one of"),
    "a number for a round": (saved(answers(), after=3), "after, how-far: expected one of"),
    "nested without end": ("[" * 60_000, "not the page's JSON"),
    "too large": (CLEO + " " * beliefs.LARGEST_FILE, "larger than 64 KiB"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_a_file_that_is_no_record_is_left_out_and_says_why(tmp_path, kind):
    text, reason = REFUSED[kind]
    found, refused = beliefs.read_records(put(tmp_path, file=text))
    assert found == [] and reason in refused[0]


def test_people_who_answer_alike_are_as_many_as_they_are(tmp_path):
    nothing = saved(answers())
    found, _ = beliefs.read_records(put(tmp_path, ana=nothing, ben=nothing, cleo=nothing))
    assert len(found) == 3
    numbers = {name: saved(answers(), person=digit * 32) for name, digit in (("dan", "a"), ("eve", "b"))}
    assert len(beliefs.read_records(put(tmp_path, **numbers))[0]) == 2


def test_one_file_in_two_places_and_a_later_one_of_the_same_person_are_one(tmp_path):
    first, both = (saved(answers(), after, person="c" * 32) for after in (None, answers("right")))
    for files in ({"one": both, "two": both, "three": first}, {"one": first, "two": both}):
        found, _ = beliefs.read_records(put(tmp_path, **files).copy())
        assert [record.after is not None for record in found] == [True]


def test_files_beside_submissions_are_found_and_each_persons_newest_counts(course, capsys):
    submitted = course / "classroom" / "submitted" / "501"
    put(submitted / "00_start_here", **{INVENTORY.name: saved(answers(row_sums=COLUMNS))})
    (later,) = put(submitted / "12_capstone", **{f"{INVENTORY.name} (1)": ANA})
    put(course / "classroom" / "inventory", somebody=BEN, broken="{")
    assert later in beliefs.files_of(course) and len(beliefs.files_of(course)) == 3
    assert command_line.main(["inventory"]) == 0
    said = capsys.readouterr().out
    assert "2 answered, 2 of them twice" in said and "of what could be gained: 98 %" in said
    assert "1 of 2 believe: Those of each column.  (05.2, softmax over the queries)" in said
    assert "broken.json: not the page's JSON" in said
    page = BeautifulSoup((course / "classroom" / "dashboard" / "inventory.html").read_text("utf-8"), "html.parser")
    assert page.select_one("section.card h3").get_text().startswith("Attention over I closed the windows")
    assert page.select("script") == [] and "501" not in page.get_text()


def test_without_answers_the_command_says_where_it_looked(course, capsys):
    assert command_line.main(["inventory"]) == 2
    assert "classroom/inventory/ or as attention-inventory-1.json" in capsys.readouterr().err


def test_a_chapters_dashboard_shows_the_questions_of_its_chapter(tmp_path):
    found, _ = beliefs.read_records(put(tmp_path, ana=ANA))
    asked = beliefs.of_assignment(beliefs.count(found, ""), catalogue.find_assignment("05_self_attention"))
    names = {each.question.id for each in asked}
    assert {"row-sums", "why-root", "shuffled"} <= names and not names & {"beam", "temperature", "layer-norm"}


def test_what_is_no_file_beside_a_submission_stops_nobody(course, capsys):
    """A pipe would block its reader for ever; a link to nowhere has no time of change."""
    name, submitted = INVENTORY.name, course / "classroom" / "submitted"
    for student in ("ana", "ben", "cleo", "dan"):
        (submitted / student / "05_self_attention").mkdir(parents=True)
    put(submitted / "ana" / "05_self_attention", **{name: ANA})
    put(submitted / "ben" / "05_self_attention", **{name: BEN})
    os.mkfifo(submitted / "ben" / "05_self_attention" / f"{name} (1).json")
    (submitted / "cleo" / "05_self_attention" / f"{name}.json").symlink_to("/nowhere")
    (submitted / "dan" / "05_self_attention" / f"{name}.json").symlink_to("/dev/zero")
    assert command_line.main(["inventory"]) == 0
    printed = capsys.readouterr().out
    assert "2 answered" in printed
    assert printed.count("left out") == 2 and "a link" in printed


@pytest.mark.browser
def test_by_ear_nothing_of_the_page_of_beliefs_is_missed(tmp_path, browser):
    records, _ = beliefs.read_records(put(tmp_path, ana=ANA, ben=BEN))
    page = browser.new_page()
    page.set_content(beliefs.page(beliefs.count(records, "https://book.example")))
    page.evaluate("document.querySelectorAll('details').forEach(details => details.open = true)")
    assert accessibility_tree.faults(page) == []
    page.close()
