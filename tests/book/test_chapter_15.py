"""Chapter 15: its worked numbers, what was recorded and what the prose makes of it, its widgets and its pipelines."""

import json
import re

import pytest
from playwright.sync_api import expect

from book.recorded import pretrained

CHAPTER = "15_pretrained"
RECORD = json.loads(pretrained.RECORD.read_text(encoding="utf-8"))
WORKED = [
    r"BERT: I, closed, the, windows\nGPT: windows\nT5 as one stack: windows",
    r"0\.693 2\.079 mean 1\.386",
    r"read off: 0\.354",
    r"mean +tensor\(\[-2\., +3\.\]\)",
    r"max +tensor\(\[-1\., +4\.\]\)\n.*tensor\(\[9\., 4\.\]\)",
    r"\['head\.weight', 'head\.bias'\]",
    r"grad kept: 0\.8\ngrad None: 1\.0",
    r"package: gap < 1e-4: True\nyours: gap < 1e-4: True",
    r"ONLINE is off",
    r"BERT large MNLI twice 82\.1",
    r"36 21 10 24",
    r"27 labels, 21\.6 covered",
    r"\[\[3\.0, -2\.0\], \[4\.0, -1\.0\]\]\n\[\[1\.5, -1\.0\], \[4\.0, 0\.0\]\]",
]


def scores(kind: str, words: str, learns: str = "all", labels: int | None = None) -> list[float]:
    return [
        run[words]
        for run in RECORD["runs"]
        if (run["from"], run["learns"]) == (kind, learns) and labels in (None, run["labels"])
    ]


@pytest.mark.parametrize("numbers", WORKED)
def test_the_worked_numbers_come_out_of_the_cells(printed, numbers):
    assert re.search(numbers, printed)


def test_what_the_prose_says_of_pretraining_is_what_was_recorded():
    """Words without a label: a coin for a new encoder and for one of other English, nearly all for one of reviews."""
    assert 0.3 < min(scores("new", "other words")) and max(scores("new", "other words")) < 0.7
    assert max(scores("built-in", "other words")) < 0.7
    assert min(scores("reviews", "other words", labels=32)) > 0.85
    assert min(scores("new", "labeled words", labels=128)) > 0.9
    assert all(max(scores("new", "other words", labels=many)) < 0.5 for many in (32, 128))
    assert all(len(scores(kind, "other words", labels=32)) == 3 for kind in ("new", "built-in", "reviews"))


def test_cls_is_nearly_as_good_as_the_mean_under_a_frozen_encoder_and_the_worst_of_three_after_one_seed_of_tuning():
    found = {
        (how, learns): [run["other words"] for run in RECORD["pooling"] if (run["how"], run["learns"]) == (how, learns)]
        for how in ("mean", "max", "cls")
        for learns in ("head", "all")
    }
    means = {kind: sum(scores) / len(scores) for kind, scores in found.items()}
    assert means["max", "head"] < means["mean", "head"] - 0.05 and means["cls", "head"] > means["mean", "head"] - 0.015
    assert means["cls", "all"] == min(means[how, "all"] for how in ("mean", "max", "cls"))
    lowest, *others = sorted(found["cls", "all"])
    assert lowest < 0.8 and min(others) > 0.96


def test_one_word_at_the_other_end_turns_the_guesses_over():
    nice, rude = (
        {word for word, _ in RECORD["guesses"]["reviews"][f"the soup was <mask> and the staff was {other} ."][:3]}
        for other in ("friendly", "rude")
    )
    assert nice <= set(pretrained.PRAISE) and rude <= set(pretrained.BLAME)


def test_the_pipelines_on_the_page_judge_its_own_world_rightly(printed):
    for verdict in ("POSITIVE", "NEGATIVE"):  # trained on this machine: how sure it is differs with the processor
        text = {"POSITIVE": "the soup was lovely and fresh", "NEGATIVE": "noisy and stale"}[verdict]
        assert re.search(rf"{verdict} (?:0\.\d\d|1\.00)  {text}", printed)
    assert re.search(r"greedy: I closed the \w+", printed)


@pytest.mark.browser
def test_the_picker_says_what_a_guess_may_see(chapter):
    widget = chapter.locator("#W15a")
    expect(widget.locator("output")).to_contain_text("BERT guesses the from 3 of 4 words")
    widget.get_by_label("write on", exact=True).check(force=True)
    expect(widget.locator("output")).to_contain_text("GPT guesses the from 2 of 4 words (I, closed)")
    widget.get_by_label("read two words, write the rest").check(force=True)
    widget.get_by_label("closed", exact=True).check(force=True)
    expect(widget.locator("output")).to_contain_text("closed is not asked for")


@pytest.mark.browser
def test_the_axis_of_the_benchmark_can_begin_at_zero(chapter):
    widget = chapter.locator("#W15d")
    widget.get_by_label("0", exact=True).check(force=True)
    expect(widget.locator("output")).to_contain_text("begins at 0")
