"""The moving parts of chapter 04 show what transformer_ref computes, by mouse and by key."""

import itertools
import math

import pytest
import torch
from playwright.sync_api import Page, expect

from transformer_ref.model.softmax import softmax

CHAPTER = "04_softmax"

pytestmark = pytest.mark.browser


def numbers(page: Page, place: str) -> torch.Tensor:
    return torch.tensor([float(text) for text in page.locator(place).all_inner_texts()], dtype=torch.float64)


def test_the_three_scores_share_as_the_reference_does(chapter):
    for scores, tau_exponent in itertools.product(([1.0, 0.71, -1.0], [-5.0, 5.0, 0.25]), (-2.0, 0.0, 3.0)):
        shares_as_the_reference_does(chapter, scores, tau_exponent)


def shares_as_the_reference_does(chapter, scores, tau_exponent):
    for thing, score in zip(("orange", "apple", "motorcycle"), scores, strict=True):
        chapter.locator(f"#W04a-{thing}").fill(str(score))
    chapter.locator("#W04a-temperature").fill(str(tau_exponent))
    tau = 2**tau_exponent
    shares = softmax(torch.tensor(scores, dtype=torch.float64) / tau)
    half_a_digit = dict(rtol=0, atol=0.5e-3 + 1e-9)
    torch.testing.assert_close(numbers(chapter, "#W04a td.share"), shares, **half_a_digit)
    torch.testing.assert_close(numbers(chapter, "#W04a td.slope"), shares * (1 - shares) / tau, **half_a_digit)
    entropy = torch.special.entr(shares).sum().item()
    undecided = f"as undecided as {math.exp(entropy):.2f} equally likely words"
    expect(chapter.locator("#W04a output")).to_contain_text(undecided)


def test_arrow_keys_move_a_score_and_start_again_puts_it_back(chapter):
    slider = chapter.locator("#W04a-motorcycle")
    before = chapter.locator("#W04a output").inner_text()
    slider.press("ArrowLeft")
    assert slider.get_attribute("aria-valuetext") == "−1.01"
    assert chapter.locator("#W04a td.share").last.inner_text() == f"{softmax(torch.tensor([1, 0.71, -1.01]))[2]:.3f}"
    chapter.locator("#W04a button").click()
    expect(chapter.locator("#W04a output")).to_have_text(before)


def test_the_overflow_meter_says_infinite_where_the_format_ends(chapter):
    widget = chapter.locator("#W04b")
    picture = widget.locator("svg")
    expect(picture).to_contain_text("naive ✗ 0.000")  # float16 at 11: the power fits, the sum does not
    widget.locator("input[type=range]").press("ArrowRight")
    expect(widget.locator("output")).to_contain_text("scores 12 and 11")
    assert picture.get_attribute("aria-label").count("infinity") == 1


def test_the_saturation_switch_and_slider_work_together(chapter):
    widget = chapter.locator("#W04c")
    expect(widget.locator("output")).to_contain_text("d = 64, not divided")
    widget.locator("input[type=range]").press("ArrowRight")
    expect(widget.locator("output")).to_contain_text("d = 256, not divided")
    widget.get_by_label("÷ √d", exact=True).check()
    expect(widget.locator("output")).to_contain_text("d = 256, ÷ √256")
