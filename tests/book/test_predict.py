"""Predictions: the answer is hidden until one is made, and shown to a reader without scripts and on paper."""

import pytest
from playwright.sync_api import Locator, Page, expect

CHAPTER = "00_start_here"


def test_without_scripts_every_prediction_is_a_question_with_its_answer_in_a_fold(book):
    boxes = book.soup(CHAPTER).select(".predict")
    assert len(boxes) >= 6
    for box in boxes:
        choices = box.select(".predict-choices li")
        assert box.select_one(".predict-question").get_text(strip=True)
        assert not choices or choices[int(box["data-right"])].get_text(strip=True)
        assert box.select_one("details.predict-answer:not([open]) p").get_text(strip=True)


def box_about(page: Page, code: str) -> Locator:
    return page.locator(".predict", has=page.locator(".predict-question", has_text=code))


@pytest.mark.browser
def test_an_answer_is_out_of_sight_until_a_choice_is_made(chapter):
    box = box_about(chapter, "x.view(10, -1)")
    answer = box.locator(".predict-answer")
    expect(answer).to_be_hidden()
    assert "70 numbers" not in box.inner_text()
    box.get_by_role("button", name="(10, 7)", exact=True).press("Enter")
    expect(answer).to_contain_text("70 numbers")
    expect(box.get_by_role("status")).to_have_text("✓ Yes.")


@pytest.mark.browser
def test_a_wrong_choice_is_told_which_one_is_right_and_cannot_be_taken_back(chapter):
    box = box_about(chapter, "x.view(10, -1)")
    box.get_by_role("button", name="(7, 10)", exact=True).click()
    box.get_by_role("button", name="(10, 7)").dispatch_event("click")
    expect(box.get_by_role("status")).to_have_text("✗ Not this one. It is (10, 7).")
    assert box.locator("button[aria-pressed=true]").inner_text().startswith("(7, 10)")


@pytest.mark.browser
def test_what_was_not_predicted_is_printed_all_the_same(chapter):
    chapter.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    for answer in chapter.locator(".predict-answer").all():
        expect(answer.locator("p").first).to_be_visible()


FIELD = """<div class="predict" data-right=""><p class="predict-question">Which?</p>
<details class="predict-answer"><summary>Answer</summary><p>Twelve.</p></details></div>
<div class="cell tag_hide-output"><details><summary>out</summary><p class="shown">12</p></details></div>"""


@pytest.mark.browser
def test_a_written_prediction_opens_the_answer_and_the_output_right_below(book, visit):
    page = visit((book.site / f"{CHAPTER}.html").as_uri()).page
    script = (book.site / "_static" / "predict.js").as_uri()
    page.set_content(f'{FIELD}<script src="{script}"></script>')
    page.wait_for_function("document.querySelector('.predict input')")
    assert not page.locator(".shown").is_visible()
    page.get_by_role("button").click()  # nothing written, nothing shown
    assert page.locator(".predict-answer").is_hidden()
    page.get_by_role("textbox", name="Which?").fill("eleven")
    page.keyboard.press("Enter")
    expect(page.locator(".predict-answer")).to_contain_text("Twelve.")
    expect(page.locator(".shown")).to_be_visible()
    assert page.get_by_role("status").inner_text() == "You wrote: eleven. Compare:"
