"""The moving parts of chapter 05: they move, by mouse, key and touch, and their numbers are transformer_ref's."""

import pytest
import torch
from playwright.sync_api import Locator, Page, expect

from transformer_ref.model.attention import attention_weights, explicit_attention

CHAPTER = "05_self_attention"
HOUSE = torch.tensor([[0.2, 0.2], [0.0, 3.0], [0.2, 0.2], [1.0, 1.0]], dtype=torch.float64)
SIX = torch.tensor([[1, 0], [1, 1], [0, 1], [2, 0], [0, 0], [2, 1]], dtype=torch.float64)

pytestmark = pytest.mark.browser


def numbers(cells: Locator) -> torch.Tensor:
    return torch.tensor([float(text) for text in cells.all_inner_texts()], dtype=torch.float64)


def assert_printed(shown: torch.Tensor, expected: torch.Tensor, digits: int = 3) -> None:
    """Compare numbers printed with this many digits: half a unit of the last one is rounding."""
    torch.testing.assert_close(shown, expected.flatten(), rtol=0, atol=0.5 * 10**-digits + 1e-9)


def test_the_context_mixer_computes_what_the_reference_computes(chapter):
    weights = attention_weights(HOUSE, HOUSE)
    for asks in range(4):
        chapter.select_option("#W05a-asks", str(asks))
        assert_printed(numbers(chapter.locator("#W05a td.takes")), weights[asks])
        assert_printed(numbers(chapter.locator("#W05a td.back")), weights[:, asks])


def test_arrow_keys_move_a_word_and_the_weights_follow(chapter):
    moved = HOUSE.clone()
    moved[1] += torch.tensor([0.2, -0.1])
    for key in ("ArrowRight", "ArrowRight", "ArrowDown"):
        chapter.locator("#W05a .handle[data-index='1']").press(key)
    assert chapter.evaluate("document.activeElement.dataset.index") == "1"
    assert_printed(numbers(chapter.locator("#W05a td.takes")), attention_weights(moved, moved)[3])


def test_a_typed_coordinate_moves_a_word(chapter):
    chapter.fill("#W05a [data-field='1-1']", "1.5")
    chapter.locator("#W05a [data-field='1-1']").press("Tab")
    moved = HOUSE.clone()
    moved[1, 1] = 1.5
    assert_printed(numbers(chapter.locator("#W05a td.takes")), attention_weights(moved, moved)[3])


def drag(page: Page, word: int, right: float, down: float, *, kind: str) -> None:
    handle = page.locator(f"#W05a .handle[data-index='{word}']")
    handle.scroll_into_view_if_needed()
    box = handle.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    if kind == "mouse":
        page.mouse.move(x, y)
        page.mouse.down()
        page.mouse.move(x + right, y + down, steps=4)
        page.mouse.up()
        return
    finger = page.context.new_cdp_session(page)
    finger.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": [{"x": x, "y": y}]})
    for part in (0.25, 0.5, 0.75, 1.0):
        point = {"x": x + part * right, "y": y + part * down}
        finger.send("Input.dispatchTouchEvent", {"type": "touchMove", "touchPoints": [point]})
    finger.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})


@pytest.mark.parametrize(("kind", "width"), [("mouse", 1280), ("touch", 390)])
def test_dragging_a_word_away_weakens_its_pull(address, visit, kind, width):
    page = visit(f"{address}/{CHAPTER}.html", width).page
    pull = page.locator("#W05a .pull[data-word='1']")
    before, result = float(pull.get_attribute("stroke-width")), page.locator("#W05a output").inner_text()
    drag(page, 1, 20, 150, kind=kind)
    assert float(pull.get_attribute("stroke-width")) < before - 2
    assert page.locator("#W05a output").inner_text() != result


def test_the_second_sentence_moves_windows_toward_technology(chapter):
    chapter.locator("#W05a").get_by_label("I bought new windows for my computer").check()
    expect(chapter.locator("#W05a output")).to_have_text("new windows = (1.60, 0.28), nearer to technology")


@pytest.mark.parametrize("swapped", [False, True])
def test_the_matrix_stepper_computes_what_the_reference_computes(chapter, swapped):
    chapter.locator("#W05b input[type=checkbox]").set_checked(swapped)
    for count in range(2, 7):
        X = SIX[:count]
        output, weights = explicit_attention(X, X.flip(-1) if swapped else X, X)
        chapter.locator("#W05b input[type=range]").fill(str(count))
        for step, expected in [("softmax", weights), ("mix V", output)]:
            chapter.locator("#W05b").get_by_label(step, exact=True).check()
            assert_printed(numbers(chapter.locator("#W05b [role=gridcell]")), expected)


def test_six_words_fit_a_phone_at_every_step(address, visit):
    page = visit(f"{address}/{CHAPTER}.html", 390).page
    page.locator("#W05b input[type=range]").fill("6")
    for step in ("Q, K, V", "Q·Kᵀ", "÷ √2", "softmax", "mix V"):
        page.locator("#W05b").get_by_label(step, exact=True).check()
        edge = page.evaluate("document.querySelector('#W05b').getBoundingClientRect().right")
        for table in page.locator("#W05b table").all():
            assert table.bounding_box()["x"] + table.bounding_box()["width"] <= edge, step


def test_the_matrix_stepper_explains_the_chosen_cell(chapter):
    chapter.locator("#W05b [data-cell='3-1']").press("ArrowLeft")
    expect(chapter.locator("#W05b output")).to_have_text("query windows, key I: 2·1 + 0·0 = 2")
    chapter.locator("#W05b").get_by_label("softmax", exact=True).check()
    expect(chapter.locator("#W05b output")).to_contain_text("total is 26.145; weight 0.157")


def test_the_slider_turns_the_keys_frame_by_frame(chapter):
    widget, slider = chapter.locator("#W05c"), chapter.get_by_label("turn the keys")
    caption = widget.locator("output")
    pictures = [widget.locator("svg").first.inner_html()]
    expect(caption).to_contain_text("keys rotated by 0°")
    for _ in range(6):
        slider.press("ArrowRight")
        pictures.append(widget.locator("svg").first.inner_html())
    expect(caption).to_contain_text("keys rotated by 90°")
    assert slider.get_attribute("aria-valuetext") == "90 degrees"
    assert len(set(pictures)) == 7
    assert "closed 0.402" in widget.locator("svg").last.get_attribute("aria-label")


def test_the_scale_switch_shows_its_three_frames(chapter):
    widget = chapter.locator("#W05d")
    assert widget.get_by_role("group", name="scores").count() == 1
    for label, first in [("÷ 1", "1.0000"), ("÷ 8 = √64", "0.8808"), ("÷ 64", "0.5622")]:
        widget.get_by_label(label, exact=True).check()
        expect(widget.locator("svg")).to_contain_text(first)
