"""Chapter 00: its numbers come out of its cells, its reports are the judge's own, its strip reads as torch reads."""

import inspect
import itertools
import re

import pytest
import torch
from playwright.sync_api import Page, expect

from autograder import catalogue
from autograder.diagnosis.explain import judge_and_explain
from autograder.diagnosis.known_mistakes import namespace_of
from autograder.feedback.report import as_text
from autograder.judging.judge import draw_key
from autograder.judging.observe import LocalEndpoint
from transformer_ref.data.grammar.corpora import build_corpus

CHAPTER = "00_start_here"

WORKED_EXAMPLES = {
    "a product": [r"\[19\., 22\.\],\s+\[43\., 50\.\]"],
    "cell by cell": [r"\[ 5\., 12\.\],\s+\[21\., 32\.\]"],
    "rows that sum to 1": [r"\[0\.250, 0\.500, 0\.250\],\s+\[0\.625, 0\.250, 0\.125\]"],
    "flat sums on a square": [r"flat   : rows now sum to tensor\(\[0\.600, 1\.600, 1\.175\]\)"],
    "view": [r"x\.view\(3, 2\)\s+tensor\(\[\[0, 1\],\s+\[2, 3\],\s+\[4, 5\]\]\)"],
    "transpose": [r"x\.transpose\(0, 1\)\s+tensor\(\[\[0, 3\],\s+\[1, 4\],\s+\[2, 5\]\]\)"],
    "argmax alone": [r"tensor\(\[2, 0, 0\]\)"],
    "shapes predicted": [r"\(5, 7, 2\) \(10, 7\) \(5, 2, 3\) \(2, 7\) \(6, 2\) \(5, 7\)"],
}
STRIPS = {
    "2 × 3": (torch.arange(6).view(2, 3), ["x", "x.view(3, 2)", "x.transpose(0, 1)", "x.view(6)"]),
    "2 × 3 × 2": (
        torch.arange(12).view(2, 3, 2),
        ["x", "x.view(3, 2, 2)", "x.transpose(0, 1)", "x.permute(2, 0, 1)", "x.view(3, 4)"],
    ),
}
BROKEN = {
    "wrong axis": "x / x.sum(dim=0)",
    "flat sums": "x / x.sum(dim=1)",
    "unknown": "x / x.sum(dim=1, keepdim=True) ** 1.1",
}


@pytest.mark.parametrize("example", WORKED_EXAMPLES)
def test_the_worked_numbers_come_out_of_the_cells(printed, example):
    for pattern in WORKED_EXAMPLES[example]:
        assert re.search(pattern, printed), f"{example}: {pattern} is nowhere in the outputs"


def test_the_road_names_the_twelve_chapters_and_links_those_that_are_published(book):
    stops = book.soup(CHAPTER).select(".course-road li")
    assert [stop.find("b").get_text() for stop in stops] == [f"{number:02d}" for number in range(1, 13)]
    published = {page[:2]: f"{page}.html" for page in book.pages()}
    linked = {stop.find("b").get_text(): stop.find("a")["href"] for stop in stops if stop.find("a")}
    assert linked == {number: page for number, page in published.items() if "01" <= number <= "12"}


def test_the_number_of_known_mistakes_is_the_one_the_page_names(book):
    exercises = catalogue.find_assignment(CHAPTER).exercises
    known = sum(len(exercise.mistakes) for exercise in exercises)
    named = re.search(r"about (\d+) of them", " ".join(book.soup(CHAPTER).get_text().split()))
    assert abs(known - int(named[1])) <= 10


@pytest.mark.parametrize("name", BROKEN)
def test_the_reports_on_the_page_are_what_the_check_prints_today(book, name):
    source = f"def row_normalize(x):\n    return {BROKEN[name]}\n"
    key = draw_key(b"numbers for this page", CHAPTER, "row-normalize", [source])
    report = as_text(
        judge_and_explain(catalogue.find("row-normalize"), LocalEndpoint(namespace_of(source)), key, disclosed=True)
    )
    printed = [node.get_text() for node in book.soup(CHAPTER).select(".cell_output pre")]
    assert any(report in text for text in printed)


def strip(page: Page, strip_name: str, way: str) -> None:
    page.locator("#W00a label.choice", has_text=re.compile(f"^{re.escape(strip_name)}$")).click()
    page.locator("#W00a label.choice", has_text=re.compile(f"^{re.escape(way)}$")).click()


@pytest.mark.browser
@pytest.mark.parametrize("strip_name", STRIPS)
def test_the_strip_shows_what_torch_shows(chapter, strip_name):
    x, ways = STRIPS[strip_name]
    for way in ways:
        strip(chapter, strip_name, way)
        expected = eval(way, {"x": x})
        cells = chapter.locator("#W00a [role=gridcell]")
        assert [int(text) for text in cells.all_inner_texts()] == expected.flatten().tolist()
        output = chapter.locator("#W00a output").inner_text()
        assert f"shape {tuple(expected.shape)} and strides {expected.stride()}." in output


@pytest.mark.browser
def test_a_chosen_cell_is_marked_on_the_strip_and_its_place_computed(chapter):
    strip(chapter, "2 × 3 × 2", "x.permute(2, 0, 1)")
    x = torch.arange(12).view(2, 3, 2).permute(2, 0, 1)
    for place in itertools.product(range(2), range(2), range(3)):
        chapter.locator(f"#W00a [data-place='{','.join(map(str, place))}']").click()
        number = x[place].item()
        assert chapter.locator("#W00a .slot.chosen").inner_text() == str(number)
        terms = " + ".join(f"{at}·{stride}" for at, stride in zip(place, x.stride(), strict=True))
        expect(chapter.locator("#W00a output")).to_contain_text(f"number {terms} = {number} of the strip")


@pytest.mark.browser
def test_arrow_keys_walk_over_the_table_and_stop_at_its_edge(chapter):
    strip(chapter, "2 × 3", "x.transpose(0, 1)")
    chapter.locator("#W00a [data-place='0,0']").press("ArrowRight")
    assert chapter.evaluate("document.activeElement.dataset.place") == "0,1"
    for key in ("ArrowDown", "ArrowDown", "ArrowDown", "ArrowRight"):
        chapter.locator("#W00a [aria-selected=true]").press(key)
    assert chapter.evaluate("document.activeElement.dataset.place") == "2,1"
    assert chapter.locator("#W00a .slot.chosen").inner_text() == "5"


@pytest.mark.browser
def test_each_broken_answer_has_its_own_report(chapter):
    widget = chapter.locator("#W00b")
    for name, said in {
        "flat sums": "must match the size of tensor b",
        "no return": "a function without `return` gives None",
        "unknown": "axis all numbers are the correct ones times one number",
        "in place": "Not these: ",
        "wrong axis": "Each *column* was divided",
    }.items():
        widget.get_by_label(name, exact=True).check()
        expect(widget.locator("pre.report")).to_contain_text(said)


def test_the_page_says_how_many_sentences_the_translator_learned_from(book):
    learned_from = inspect.signature(build_corpus).parameters["train"].default
    assert f"trained on {learned_from:,} sentences" in " ".join(book.soup(CHAPTER).get_text().split())
