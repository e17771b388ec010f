"""Chapter 06: its numbers come out of its own cells and of its record, and its widgets can be followed by keyboard."""

import re
from pathlib import Path

import pytest
import torch
from playwright.sync_api import expect

from transformer_ref.recording import recording

ROOT = Path(__file__).resolve().parents[2]
CHAPTER = "06_multi_head_attention"
PAGE = (ROOT / "book" / f"{CHAPTER}.md").read_text(encoding="utf-8")
RECORD = recording("heads")
OPENED = RECORD["opened"]


def said(number: float) -> bool:
    return f"{number:.3f}" in PAGE


def test_every_row_of_recorded_weights_sums_to_one():
    for weights in [OPENED["pair"]["weights"], *(sentence["weights"] for sentence in OPENED["sentences"])]:
        sums = torch.tensor(weights).sum(-1)
        assert torch.allclose(sums, torch.ones_like(sums), atol=0.006)  # three digits each


def test_the_pair_has_more_tokens_on_the_side_that_asks():
    weights = torch.tensor(OPENED["pair"]["weights"])
    assert weights.shape == (4, len(OPENED["pair"]["target"]), len(OPENED["pair"]["source"])) == (4, 11, 9)


def test_what_the_page_says_of_an_ablation_is_what_was_recorded():
    without, alone = OPENED["without"], OPENED["alone"]
    assert min(without, key=lambda row: row["sense"]) is without[3] and said(without[3]["sense"])
    assert without[2]["sense"] == OPENED["whole"]["sense"] == 1
    assert all(map(said, (OPENED["none"]["sense"], alone[3]["sense"], without[0]["exact"], without[0]["sense"])))
    single = [row["test"]["sense"] for row in RECORD["kinds"]["one head"]]
    assert max(single) <= alone[3]["sense"] and said(min(single)) and said(max(single))


def test_what_the_page_says_of_the_cue_is_what_was_recorded():
    heads = OPENED["heads"]
    assert max(heads, key=lambda head: head["cue"]) is heads[3] and said(heads[3]["cue"]) and said(heads[2]["cue"])
    assert min(heads, key=lambda head: head["entropy"]) is heads[0]
    assert round(heads[3]["cue"] / heads[3]["even"]) == 7


def test_the_means_with_and_without_the_output_projection_are_those_of_the_record():
    for kind in ("four heads", "four heads, no W_O"):
        exact = [row["test"]["exact"] for row in RECORD["kinds"][kind]]
        assert said(sum(exact) / len(exact))


WORKED_EXAMPLES = {
    "one average": [r"\[0\.5, 0\.5\]", r"\[1\.0, 0\.0, 0\.0, 1\.0\]", r"\[0\.0, 1\.0, 1\.0, 0\.0\]"],
    "head 0": [r"first +0\.401 +0\.198 +0\.401"],
    "head 1": [r"first +0\.503 +0\.248 +0\.248"],
    "the count": [r"h = +8 +d_k = +64 +1,050,624"],
    "a head's row": [r"entropy +tensor\(1\.040\)", r"distance tensor\(0\.750\)"],
    "like torch": [r"a millionth apart: True"],
}


@pytest.mark.parametrize("example", WORKED_EXAMPLES)
def test_the_worked_numbers_come_out_of_the_cells(printed, example):
    for pattern in WORKED_EXAMPLES[example]:
        assert re.search(pattern, printed), f"{example}: {pattern} is nowhere in the outputs"


@pytest.mark.browser
def test_the_split_machine_scrambles_by_view_alone_and_nowhere_else(chapter):
    machine = chapter.locator("#W06a")
    for size, wrong in (("3 words, 2 heads", 8), ("2 words, 3 heads", 8)):
        machine.get_by_role("radio", name=size).check()
        machine.get_by_role("radio", name="view alone").check()
        expect(machine.locator(".scrambled")).to_have_count(wrong)
        machine.get_by_role("radio", name="view, then transpose").check()
        expect(machine.locator(".scrambled")).to_have_count(0)


@pytest.mark.browser
def test_a_cell_of_a_head_is_followed_into_the_strip_by_keyboard_and_keeps_the_focus(chapter):
    machine = chapter.locator("#W06a")
    cell = machine.get_by_role("group", name="head 0").get_by_role("button").nth(2)  # word 1, first number
    cell.focus()
    cell.press("Enter")
    expect(machine.locator(".ch06-strip button[aria-pressed=true]")).to_have_attribute("data-place", "2")
    expect(machine.locator("output")).to_contain_text("Feature 2 of word 0 lies in head 0, word 1")
    expect(machine.get_by_role("group", name="head 0").get_by_role("button").nth(2)).to_be_focused()


@pytest.mark.browser
def test_the_head_view_shows_the_recorded_shares(chapter):
    view = chapter.locator("#W06d")
    view.get_by_role("radio", name="I closed the windows.").check()
    view.get_by_label("Which query?").select_option(label="windows")
    shown = [float(text) for text in view.locator("tbody tr:nth-child(2) td").all_inner_texts()]
    assert shown == [head[3][1] for head in OPENED["sentences"][0]["weights"]]
