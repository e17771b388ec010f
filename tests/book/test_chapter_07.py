"""Chapter 07: numbers come out of its own cells, widgets show what transformer_ref computes, its record holds."""

import math
import re

import pytest
import torch
from playwright.sync_api import expect

from book.recorded.positions import ASKED, CODES, LONGEST_TRAINED, Tagger, held_out, pairs
from transformer_ref.model.attention import explicit_attention
from transformer_ref.model.positional_encoding import sinusoidal_table
from transformer_ref.recording import recording

CHAPTER = "07_positional_encoding"
WORDS = {"I": [1.0, 0, 0, 0], "want": [1.0, 1, 0, 0], "to": [0, 1.0, 0, 0], "sleep": [2.0, 0, 0, 0]}

WORKED_EXAMPLES = {
    "05.6 again": [r"tensor\(\[1\.340, 0\.330\]\)\ntensor\(\[1\.340, 0\.330\]\)"],
    "the dog and the man": [r"the man bites the dog -> l' uomo morde il cane"],
    "option 2": [r"3 words: 1\.00\n4 words: 0\.67\n5 words: 0\.50\n6 words: 0\.40"],
    "the board": [r"1 position +✓ +✓ +✗ +✓ +✓", r"2 share +✓ +✗ +✓ +✓ +✓", r"sinusoids +✓ +✓ +✓ +✓ +✓"],
    "the table": [r"0\.841, +0\.540, +0\.010, +1\.000", r"0\.141, -0\.990, +0\.030, +1\.000"],
    "with positions": [r"1\.532, 0\.877.*\n.*1\.700, 0\.309"],
    "distances": [r"0 to 1: 0\.959\n0 to 2: 1\.683\n0 to 3: 1\.995\n0 to 4: 1\.819"],
    "d = 512": [r"gap 43: 15\.572\ngap 44: 15\.571"],
    "one step": [r"cos 1 = 0\.5403, sin 1 = 0\.8415", r"2 -> 3: \(\+0\.141, -0\.990\), off by \de-1[67]|off by 0e\+00"],
    "rotary": [r"100 positions on\? True"],
}


@pytest.mark.parametrize("example", WORKED_EXAMPLES)
def test_the_worked_numbers_come_out_of_the_cells(printed, example):
    for pattern in WORKED_EXAMPLES[example]:
        assert re.search(pattern, printed), f"{example}: {pattern} is nowhere in the outputs"


def test_what_is_said_of_the_trainings_is_what_was_recorded():
    record = recording("positions")
    at = {words: index for index, words in enumerate(record["lengths"])}
    assert tuple(record["lengths"]) == ASKED and record["trained_up_to"] == LONGEST_TRAINED
    before, reversed_ = record["accuracy"].values()
    for code in ("sinusoids", "learned"):
        assert all(min(row[: at[20] + 1]) > 0.93 for task in (before, reversed_) for row in task[code])
    new = {code: [(40 * row[at[40]] - 20) / 20 for row in before[code]] for code in ("sinusoids", "learned")}
    assert all(0.15 < share < 0.25 for share in new["sinusoids"]) and all(share < 0.08 for share in new["learned"])
    assert all(row[at[21]] < 0.1 for row in reversed_["learned"])
    assert all(row[at[21]] > 0.5 and row[at[24]] < 0.1 for row in reversed_["sinusoids"])
    assert all(right <= 0.5 for right in record["bites"]["none"]["right"])
    assert record["bites"]["sinusoids"]["right"] == [1.0, 1.0, 1.0]


def test_kept_sentences_are_kept_in_both_orders():
    kept = [source.split() for source, _ in pairs() if held_out(source)]
    assert ["the", "dog", "bites", "the", "man"] in kept
    assert all(["the", whom, verb, "the", who] in kept for _, who, verb, _, whom in kept)


@pytest.mark.parametrize("code", CODES)
def test_only_the_tagger_without_positions_moves_its_answers_with_the_words(code):
    torch.manual_seed(0)
    tagger, ids = Tagger(code).double(), torch.tensor([[3, 7, 11, 2, 5]])
    order = torch.tensor([4, 2, 0, 3, 1])
    gap = (tagger(ids)[:, order] - tagger(ids[:, order])).abs().max()
    assert (gap < 1e-9) == (code == "none")


def numbers(text: str) -> list[float]:
    return [float(number) for number in re.findall(r"-?\d+\.\d+", text.replace("−", "-"))]


@pytest.mark.browser
@pytest.mark.parametrize("places", ["off", "on"])
def test_the_shuffled_words_share_as_the_reference_does(chapter, places):
    widget = chapter.locator("#W07a")
    widget.get_by_role("radio", name=places, exact=True).check()
    widget.get_by_role("button", name="want, at position 1").press("Enter")
    assert widget.locator("tbody th").all_inner_texts() == ["want", "I", "to", "sleep"]
    for _ in range(2):
        order = widget.locator("tbody th").all_inner_texts()
        rows = torch.tensor([WORDS[word] for word in order]) + (sinusoidal_table(4, 4) if places == "on" else 0)
        output, weights = explicit_attention(rows, rows, rows)
        at = order.index("I")
        shown = [float(text) for text in widget.locator("td:last-child").all_inner_texts()]
        assert shown == pytest.approx(weights[at].tolist(), abs=6e-4)
        assert numbers(widget.locator("output").inner_text())[:4] == pytest.approx(output[at].tolist(), abs=6e-4)
        widget.get_by_role("button", name="sleep to I want", exact=True).click()
    expect(widget.locator("output")).to_contain_text("it is the same" if places == "off" else "it was (1.532")


@pytest.mark.browser
def test_the_clock_hands_stand_where_the_table_says(chapter):
    table = sinusoidal_table(80, 8)
    for position, step in ((0, 1), (60, 19), (20, -20)):
        chapter.locator("#W07b-position").fill(str(position))
        chapter.locator("#W07b-step").fill(str(step))
        cells = [numbers(row) for row in chapter.locator("#W07b tbody tr").all_inner_texts()]
        for hand, (sine, cosine, turn, new_sine, new_cosine) in enumerate(cells):
            pair = slice(2 * hand, 2 * hand + 2)
            assert [sine, cosine] == pytest.approx(table[position, pair].tolist(), abs=6e-4)
            assert [new_sine, new_cosine] == pytest.approx(table[position + step, pair].tolist(), abs=6e-4)
            assert turn == pytest.approx(step * 10**-hand, abs=6e-4)
    chapter.locator("#W07b-step").press("ArrowRight")
    expect(chapter.locator("#W07b output")).to_contain_text("From position 20 to 1,")


@pytest.mark.browser
def test_the_map_shows_the_table_of_the_chosen_size(chapter):
    chapter.locator("#W07c-length").select_option("10")
    chapter.locator("#W07c-d").select_option("4")
    cells = chapter.locator("#W07c rect")
    opacity = torch.tensor([float(cell.get_attribute("fill-opacity")) for cell in cells.all()]).view(10, 4)
    torch.testing.assert_close(opacity, sinusoidal_table(10, 4).abs(), rtol=0, atol=6e-3)
    chapter.locator("#W07c-base").select_option("100")
    expect(chapter.locator("#W07c output")).to_contain_text(f"the slowest of 2 in {20 * math.pi:.1f}")
