"""Chapter 12: what it says of recorded training runs is what was recorded, and its widgets can be used by keyboard."""

import re
from pathlib import Path

import pytest
import torch
from playwright.sync_api import expect

from transformer_ref.recording import recording

ROOT = Path(__file__).resolve().parents[2]
CHAPTER = "12_capstone"
PAGE = (ROOT / "book" / f"{CHAPTER}.md").read_text(encoding="utf-8")
ROWS = recording("ablations")["ablations"]
STORIES = recording("stories")


def said(*numbers: float) -> bool:
    return all(f"{number:.3f}" in PAGE for number in numbers)


def held_out(name: str, score: str = "exact") -> list[float]:
    return [seed["held_out"][score] for seed in ROWS[name]]


def test_what_the_page_says_of_twelve_broken_parts_is_what_was_recorded():
    record = recording("broken_parts")
    parts, steps = record["parts"], record["about"]["steps"]
    for name, seen in parts.items():
        assert f"| {name} | {seen['loss']:.2f} | {seen['bleu']:.1f} | {seen['named'] or '–'} |" in PAGE
    assert f"trained for {steps} steps" in PAGE and record["about"]["sizes"]["d_model"] * 2 == 128
    lowest = sorted(parts, key=lambda name: parts[name]["loss"])[:2]
    assert {*lowest} == {"no causal mask", "targets not shifted"}
    assert max(parts[name]["bleu"] for name in lowest) < 1
    norm, residual = parts["norm over the words"], parts["no residual"]
    assert f"lower loss ({norm['loss']:.2f}) than a missing residual ({residual['loss']:.2f})" in PAGE
    assert f"{norm['bleu']:.1f} BLEU against {residual['bleu']:.1f}" in PAGE
    unmarked = [name for name in parts if name != "none" and not parts[name]["named"]]
    harmless = [name for name in unmarked if parts[name]["bleu"] > parts["none"]["bleu"] - 1]
    assert len(harmless) == 3 and {*unmarked} == {"no residual", *harmless}


def test_what_the_page_says_of_the_ablations_is_what_was_recorded():
    whole = held_out("nothing changed")
    assert said(round(max(whole) - min(whole), 3))
    assert said(min(held_out("no positions")), max(held_out("no positions"))) and max(held_out("no positions")) < 0.5
    assert said(min(held_out("no positions", "sense")))
    assert said(min(held_out("one head")), max(held_out("one head")))
    assert max(held_out("one head")) < min(held_out("two heads")) < min(whole)
    for name in ("four", "eight"):
        assert name in PAGE
    for name in ("eight heads", "learned positions", "no label smoothing", "no warm-up", "post-norm"):
        low, high = min(held_out(name)), max(held_out(name))
        assert low <= max(whole) and high >= min(whole), f"{name} lies beside the spread of nothing changed"


def test_what_the_page_says_of_the_pronoun_is_what_was_recorded():
    first, lost = STORIES["pronoun"][0], STORIES["without"][0]
    heads = {(layer, head): told for layer, row in enumerate(first) for head, told in enumerate(row)}
    assert all(told["meant"] > told["other"] for told in heads.values())
    leaning = {place: told["meant"] / told["other"] for place, told in heads.items()}
    assert max(leaning, key=leaning.__getitem__) == (0, 2) and 4.5 < leaning[0, 2] < 5
    assert lost[0][3] < lost[0][2] < STORIES["right"][0] and leaning[0, 3] < leaning[0, 2]
    assert min(lost[1]) > 0.99 and "In layer 1 hardly anything is lost" in PAGE
    costs = [head for head, right in enumerate(lost[0]) if right < STORIES["right"][0]]
    assert len(costs) == 3 and min(lost[0]) == lost[0][3], "three of four heads, and head 2 does not cost most"


def test_a_model_of_the_solutions_parts_comes_within_a_point_of_the_package_s():
    own, package = recording("own_translator"), recording("live_model")["scores"]
    assert set(own["about"]["parts"].values()) == {"yours"} and own["seeds"]
    for split in ("test", "held_out"):
        assert own["about"]["sentences"] == package[split]["sentences"]
        assert all(abs(seed[split]["exact"] - package[split]["exact"]) <= 0.01 for seed in own["seeds"].values())


def test_every_row_of_the_recorded_weights_sums_to_one():
    for kind in ("encoder", "decoder", "cross"):
        sums = torch.tensor(STORIES["opened"][kind]).sum(-1)
        assert torch.allclose(sums, torch.ones_like(sums), atol=0.01)  # three digits each


WORKED_EXAMPLES = {
    "the same letter twice": [r"5 6 False", r"True"],
    "the round trip": [r"The <unk> closed the windows\.", r"10 ids -> The zebra closed the windows\."],
    "own parts": [r"unseen sentences +0\.998 +0\.999", r"held-out combinations +1\.000 +1\.000"],
    "the signature": [r"case:mixed\|eff:no\|tok:13a"],
    "where it errs": [r"up to 6 words +0\.726", r"over 12 words +0\.482"],
    "who he is": [r"right, three seeds: 1\.0 1\.0 1\.0"],
    "the mean of what trembles": [r"their mean: +1\.00"],
    "what the cue gets": [r"0\.048 0\.409 0\.123 0\.008"],
    "the claim and its controls": [r"0\.000 0\.317 0\.000 0\.083 0\.000 0\.000 0\.000 0\.200"],
    "like torch": [r"largest difference of [\d,]+ logits: \d\.\de-0[56]"],
}


@pytest.mark.parametrize("example", WORKED_EXAMPLES)
def test_the_worked_numbers_come_out_of_the_cells(printed, example):
    for pattern in WORKED_EXAMPLES[example]:
        assert re.search(pattern, printed), f"{example}: {pattern} is nowhere in the outputs"


@pytest.mark.browser
def test_arrow_keys_go_from_head_to_head_and_from_layer_to_layer(chapter):
    view = chapter.locator("#W12a")
    chosen = view.locator(".ch12-heads button[aria-pressed=true]")
    expect(chosen).to_have_attribute("aria-label", "encoder, layer 1, head 0")
    chosen.focus()
    chosen.press("ArrowRight")
    view.locator(":focus").press("ArrowDown")
    expect(chosen).to_have_attribute("aria-label", "decoder, layer 0, head 1")
    expect(chosen).to_be_focused()
    expect(view.locator("table caption")).to_contain_text("decoder")
    shown = [float(text) for text in view.locator("tbody tr:nth-child(3) td").all_inner_texts()]
    assert shown == pytest.approx(STORIES["opened"]["decoder"][0][1][2], abs=0.006)


@pytest.mark.browser
def test_a_group_of_lines_shows_its_share_and_its_wrong_lines(chapter):
    board, errors = chapter.locator("#W12c"), recording("errors")
    example = errors["examples"][0]
    row, column = example["place"]
    cell = board.locator(f"tbody tr:nth-child({row + 1}) td:nth-child({column + 2}) button")
    cell.focus()
    cell.press("Enter")
    expect(cell).to_have_attribute("aria-pressed", "true")
    expect(board.locator("dt").first).to_have_text(example["source"])
