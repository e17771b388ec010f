"""Chapter 01: numbers come out of cells, widgets count as the exercises do, records fit their programs."""

import itertools
import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import Page

from autograder.catalogue import find_assignment
from autograder.catalogue.ch01_why_attention.path_length import path_length
from book.recorded import alignment, bottleneck
from transformer_ref import recording

RECORDED = recording.FOLDER
BOOK = Path(__file__).resolve().parents[2] / "book"
CHAPTER = "01_why_attention"

WORKED_EXAMPLES = {
    "the chain": [r"0\.9\^49 = 0\.0057", r"1\.1\^49 = 106\.7"],
    "the bottleneck": [r"one vector of 32 +1\.000", r"looks back, 32 +1\.000 +1\.000 +1\.000 +1\.000 +1\.000"],
    "the gradient norms": [r"T = 6: +0\.590 0\.656 0\.729 0\.810 0\.900 1\.000"],
    "looking back": [r"word 1 +1\.500 +1\.810 +6\.112 +0\.859", r"context = \(0\.859, 0\.281\)"],
    "the paths": [r" 1 and 50: +recurrent 49 +windows of 3 49 +of 7 17 +attention 1", r" 7 and +7: +recurrent +0"],
    "a nudge": [r"difference divided by nudge: 0\.729", r"nudge the second number: first moves 3\.00, second 1\.00"],
    "the longest arrow": [
        r"most stretched: the arrow at 58 degrees, to 1\.618",
        r"T = 4: +3\.303 2\.414 1\.618 1\.000",
    ],
    "the costs": [r"50 +0\.00128 +0\.01311", r"4,096 +8\.58993 +1\.07374"],
    "a whole layer": [r"50 +55\.0 +26\.2 +104\.9", r"1,024 +2,147\.5 +536\.9 +2,147\.5"],
    "a real RNN": [
        r"RNN +1e-18",
        r"RNN, orthogonal W +\de-07",
        r"gate near 0\.95 +4e-01 +3e-01 +4e-01",
        r"longest arrow 1e-12",
    ],
    "a score for pads": [
        r"score 0 +\[0\.753, 0\.123, 0\.123\]",
        r"score -inf \[0\.859, 0\.141, 0\.0\]",
        r"pads +\[nan",
    ],
}


@pytest.mark.parametrize("example", WORKED_EXAMPLES)
def test_the_worked_numbers_come_out_of_the_cells(printed, example):
    for pattern in WORKED_EXAMPLES[example]:
        assert re.search(pattern, printed), f"{example}: {pattern} is nowhere in the outputs"


def test_the_boxes_of_the_exercises_stand_in_the_order_of_their_numbers(book):
    titles = [node.get_text() for node in book.soup(CHAPTER).select(".your-turn .admonition-title")]
    numbers = [re.search(r"01\.\d", title)[0] for title in titles]
    assert numbers == [exercise.number for exercise in find_assignment(CHAPTER).exercises]


def test_the_reading_and_the_exercises_take_the_time_that_the_page_announces(book):
    told = re.search(r"(\d+) minutes to read, (\d+) for five exercises", book.soup(CHAPTER).get_text())
    assert int(told[2]) == sum(exercise.minutes for exercise in find_assignment(CHAPTER).exercises)


def test_what_the_page_says_of_the_bottleneck_is_in_the_record():
    page = (BOOK / f"{CHAPTER}.md").read_text(encoding="utf-8")
    accuracy = json.loads((RECORDED / "bottleneck.json").read_text(encoding="utf-8"))["accuracy"]
    narrow, wide, looks = accuracy.values()
    assert (
        f"{narrow[15]:.0%} arrive with 32".replace("%", " %") in page
        and f"{wide[15]:.0%} with 64".replace("%", " %") in page
    )
    assert wide[7] == pytest.approx(0.8, abs=0.03) and 0.5 < narrow[7] < 0.6  # "a fifth", "nearly half" is lost
    assert set(looks[:16]) == {1.0}
    half = [next(length for length, share in enumerate(row, 1) if share < 0.5) for row in (narrow, wide)]
    assert half[1] - half[0] == 3  # "three more words"


def test_the_record_of_the_bottleneck_is_one_its_program_would_write():
    record = json.loads((RECORDED / "bottleneck.json").read_text(encoding="utf-8"))
    assert list(record["accuracy"]) == list(bottleneck.MODELS)
    assert record["lengths"] == list(range(1, bottleneck.LONGEST_ASKED + 1))
    assert (record["words"], record["trained_up_to"], record["steps"]) == (
        bottleneck.WORDS,
        bottleneck.LONGEST_TRAINED,
        bottleneck.STEPS,
    )


def test_what_the_page_says_of_the_alignment_is_in_the_record():
    page = (BOOK / f"{CHAPTER}.md").read_text(encoding="utf-8")
    sentences = json.loads((RECORDED / "alignment.json").read_text(encoding="utf-8"))["sentences"]
    for number, written, read, share in (
        (3, "smartphone", "smartphones", "0.97"),
        (3, "pratici", "practical", "0.90"),
        (3, "installerai", "will", "0.87"),
        (1, "gestirà", "manage", "0.93"),
        (2, "messaggio", "zeppelin", "0.99"),
    ):
        shown = sentences[number]
        row = shown["weights"][shown["target"].index(written)]
        assert f"{row[shown['source'].index(read)]:.2f}" == share
        assert f"*{written}*" in page and f"*{read}*" in page and share in page


def test_the_record_of_the_alignment_shows_the_sentences_of_its_program_as_shares():
    record = json.loads((RECORDED / "alignment.json").read_text(encoding="utf-8"))
    assert [tuple(each["source"]) for each in record["sentences"]] == list(map(alignment.words_of, alignment.SHOWN))
    for sentence in record["sentences"]:
        assert len(sentence["weights"]) == len(sentence["target"])
        for row in sentence["weights"]:
            assert len(row) == len(sentence["source"])
            assert sum(row) == pytest.approx(1, abs=1e-3 * len(row))  # each is rounded to three digits


def choose(page: Page, widget: str, label: str) -> None:
    page.locator(f"#{widget} label.choice", has_text=label).click()


@pytest.mark.browser
def test_the_path_explorer_counts_as_the_exercise_does(chapter):
    for text, width in itertools.product(("person", "boy", "Wicked"), (3, 5, 7)):
        choose(chapter, "W01a", text)
        choose(chapter, "W01a", str(width))
        told = chapter.locator("#W01a output").inner_text()
        apart = int(re.search(r"are (\d+) words? apart", told)[1])
        for kind, name in (("recurrent", "recurrent"), ("window", f"windows of {width}"), ("attention", "attention")):
            steps = path_length(kind, 0, apart, width)
            assert f"{name}: {steps} " in told, (text, width)
            assert chapter.locator(f"#W01a .hop.{name.split()[0]}").count() == steps, (text, width)


@pytest.mark.browser
def test_a_word_that_is_clicked_becomes_an_end_of_the_path(chapter):
    chapter.locator("#W01a .path-words span").nth(6).click()
    assert "are 7 words apart" in chapter.locator("#W01a output").inner_text()


@pytest.mark.browser
def test_the_gradient_meter_computes_powers(chapter):
    for weight, length in ((0.9, 50), (1.1, 50), (0.8, 2), (1.0, 100)):
        chapter.locator("#W01b input[aria-label='Weight w =']").fill(str(weight))
        chapter.locator("#W01b input[aria-label='Words T =']").fill(str(length))
        told = re.search(r"= (\d+\.?\d*)", chapter.locator("#W01b output").inner_text().split("T − 1 =")[1])[1]
        assert float(told) == pytest.approx(weight ** (length - 1), rel=5e-3), (weight, length)


@pytest.mark.browser
def test_every_written_word_shows_where_it_looked(chapter):
    sentence = json.loads((RECORDED / "alignment.json").read_text(encoding="utf-8"))["sentences"][3]
    for word, row in zip(sentence["target"], sentence["weights"], strict=True):
        chapter.locator("#W01c").get_by_label(word, exact=True).check()
        label = chapter.locator("#W01c svg").get_attribute("aria-label")
        assert label.startswith(f"{word} looks at: ") and f"{max(row):.2f}" in label
