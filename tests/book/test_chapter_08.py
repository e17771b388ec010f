"""Chapter 08: its worked numbers, and its moving parts show what transformer_ref computes."""

import re

import pytest
import torch
from playwright.sync_api import expect

from transformer_ref.faults.hiding import of_seeds
from transformer_ref.model.attention import explicit_attention
from transformer_ref.model.masks import causal_mask
from transformer_ref.recording import recording

CHAPTER = "08_masks"
X = torch.tensor([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0], [2.0, 0.0]])
WORKED = [
    r"closed +0\.330 +0\.670 +0\.000",
    r"the +0\.198 +0\.401 +0\.401",
    r"windows +0\.157 +0\.157 +0\.038 +0\.647",
    r"I +0\.221 +0\.000 +0\.000 +0\.000 +0\.221",
    r"0\.165 +0\.335 +0\.000 +0\.000 +0\.500",
    r"0\.335 +0\.335 +0\.000 +0\.835",
    r"I +0\.403 +0\.199 +0\.199 +0\.199",
    r"nan, nan, nan",
    r"0\.272 +0\.244 +0\.484",
]


@pytest.mark.parametrize("numbers", WORKED)
def test_the_worked_numbers_come_out_of_the_cells(printed, numbers):
    assert re.search(numbers, printed)


def test_the_text_gives_the_masks_losses_and_translations_of_the_record(printed):
    record = recording("laboratory")["faults"]
    for name in ("no causal mask", "mask after the softmax", "scores times mask", "no padding mask"):
        loss, right = (sum(of_seeds(record[name], what)) / 3 for what in ("loss", "right"))
        assert f"{loss:.3f}  {right:6.1%}  {name}" in printed
        assert (right < 0.05) == (name != "no padding mask")


@pytest.mark.browser
@pytest.mark.parametrize("preset", ["causal", "windows is a pad", "no key for I"])
def test_the_painted_mask_gives_the_weights_of_the_reference(chapter, preset):
    widget = chapter.locator("#W08a")
    widget.get_by_role("button", name=preset).click()
    truth = [text == "T" for text in widget.locator(".painter td button").all_inner_texts()]
    for polarity in ("may attend", "forbidden"):
        widget.get_by_label(polarity, exact=True).check()
        mask = torch.tensor(truth).view(4, 4)
        found = explicit_attention(X, X, X, mask=mask if polarity == "may attend" else ~mask)
        tables = [
            torch.tensor([float(text) for text in widget.locator(cells).all_inner_texts()]).view(4, -1)
            for cells in (".matrix:nth-of-type(2) tbody td:not(.total)", ".matrix.v tbody td")
        ]
        for shown, expected in zip(tables, (found.weights, found.output), strict=True):
            torch.testing.assert_close(shown, expected, rtol=0, atol=0.5e-3 + 1e-6)


@pytest.mark.browser
def test_the_two_wrong_ways_are_told_in_the_painter(chapter):
    widget = chapter.locator("#W08a")
    widget.get_by_label("weights × 0").check()
    expect(widget.locator("output")).to_contain_text("Row sums 0.221, 0.500, 0.835, 1.000")
    widget.get_by_label("scores × 0").check()
    expect(widget.locator("output")).to_contain_text("6 hidden cells get a weight, 0.199 at most")


@pytest.mark.browser
def test_arrow_keys_and_enter_paint_a_cell(chapter):
    cells = chapter.locator("#W08a .painter td button")
    cells.first.focus()
    chapter.keyboard.press("ArrowRight")
    chapter.keyboard.press("Enter")
    assert cells.nth(1).get_attribute("aria-pressed") == "true"
    assert cells.nth(1).get_attribute("aria-label") == "query I, key closed: True"


@pytest.mark.browser
def test_a_mask_is_stretched_as_torch_stretches_it_or_is_an_error(chapter):
    widget = chapter.locator("#W08b")
    real = torch.tensor([[True, True, True, False], [True, True, False, False]])
    masks = {
        "(B, 1, 1, T)": real[:, None, None, :],
        "(T, T)": causal_mask(4),
        "(B, 1, T, T)": real[:, None, None, :] & causal_mask(4),
        "(B, 1, T, 1)": real[:, None, :, None],
        "(B, 1, T)": real[:, None, :],
        "(B, T)": real,
    }
    for heads in (2, 3):
        widget.get_by_label(str(heads), exact=True).check()
        for shape, mask in masks.items():
            widget.get_by_label(shape, exact=True).check()
            shown = [text == "T" for text in widget.locator(".tables td").all_inner_texts()]
            try:
                expected = mask.expand(2, heads, 4, 4).flatten().tolist()
            except RuntimeError:
                expected = []
                expect(widget.locator("output")).to_contain_text("an error")
            assert shown == expected, (shape, heads)


@pytest.mark.browser
def test_the_detector_accuses_the_six_and_lets_the_sound_one_pass(chapter):
    widget = chapter.locator("#W08c")
    names = widget.locator("option").all_inner_texts()
    assert len(names) == 7
    for name in names:
        widget.locator("select").select_option(name)
        expect(widget.locator("output")).to_contain_text("No leak" if name == "sound" else "A leak")


@pytest.mark.browser
def test_one_of_the_six_curves_translates(chapter):
    widget = chapter.locator("#W08e")
    buttons = widget.get_by_role("button")
    assert buttons.count() == 6
    told = []
    for index in range(6):
        buttons.nth(index).click()
        told.append("It translates." in widget.locator("output").inner_text())
    assert told.count(True) == 1
