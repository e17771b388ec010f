"""Chapter 16: its worked numbers, its record, and what its widgets show."""

import re
from pathlib import Path

import pytest
import torch
from playwright.sync_api import expect

from transformer_ref.beyond.efficient import tiled_attention
from transformer_ref.beyond.measure import WAYS, ahead_from, fastest
from transformer_ref.recording import recording
from transformer_ref.visualization.growth import said

ROOT = Path(__file__).resolve().parents[2]
CHAPTER = "16_efficient"
TEXT = (ROOT / "book" / f"{CHAPTER}.md").read_text(encoding="utf-8")
RECORD = recording("efficient")
LENGTHS = RECORD["lengths"]
WORKED = [
    r"by hand: 128\nn = +50: +5,120,000\nn = 4,096: 34,359,738,368\ntorch counts 5,120,000",
    r"n = +3,072: +50\.0% of a layer",
    r"n = +50 +489,600 bytes",
    r"n = +256 +4,194,304 bytes, tables +50%",
    r"3\.00 tables",
    r"with the table tensor\(\[1\.167, 0\.433\]\)\nS = \[\[10\.0, 3\.0\], \[5\.0, 4\.0\]\]\nz = \[8\.0, 6\.0\]",
    r"without it +tensor\(\[1\.167, 0\.433\]\)",
    r"I +S \[\[2\.0, 0\.0\], \[1\.0, 0\.0\]\]\n +z \[2\.0, 1\.0\] out \(1\.000, 0\.000\)",
    r"1000 times: softmax 1\.000 +features 0\.375",
    r"rank by softmax +200\nrank by features 16",
    r"m 2\.828 +l 1\.545 +o \(2\.486, 0\.302\)\ndivided +tensor\(\[1\.609, 0\.196\]\)",
    r"largest gap below 0\.00001: True",
    r"forgotten +1\.000 \(1\.308, 0\.346\)",
    r"tensor\(nan\)",
    r"repeat_interleave +gap 0\.000",
    r"32 groups 2,147,483,648 bytes",
    r"4\. 0\.0474\n5\. 24,576,000",
]


@pytest.mark.parametrize("numbers", WORKED)
def test_the_worked_numbers_come_out_of_the_cells(printed, numbers):
    assert re.search(numbers, printed)


def test_the_record_says_how_and_where_it_was_made():
    assert RECORD["command"] == "python -m book.recorded.efficient"
    assert set(RECORD["machine"]) == {"name", "threads", "python", "torch"} and RECORD["machine"]["threads"] == 1
    assert LENGTHS == [64 * 2**power for power in range(7)]
    for read in ("all", "earlier"):
        assert tuple(RECORD[read]) == WAYS
        for found in RECORD[read].values():
            assert all(value and value > 0 for values in found.values() for value in values)


def test_what_the_page_says_of_time_is_what_was_recorded():
    """Compared loosely, so that another machine's record may replace this one."""
    times = {way: found["seconds"] for way, found in RECORD["all"].items()}
    for way in ("table", "tiles", "fused"):
        assert 3 < times[way][-1] / times[way][-2] < 6, "the square is real, in time for all that compute softmax"
    begin = LENGTHS.index(256)
    longer = LENGTHS[-1] / 256
    assert times["linear"][-1] / times["linear"][begin] < 3 * longer < longer**2 / 4
    for read in ("all", "earlier"):
        assert fastest(RECORD, read)[-1] == "linear", "linear attention is the fastest at length"
        assert ahead_from(RECORD, read, "fused", "tiles") == 64, "never write tiles yourself"
        assert ahead_from(RECORD, read, "fused", "table") <= 512


def test_what_the_page_says_of_memory_is_what_was_recorded():
    for read in ("all", "earlier"):
        held = {way: found["bytes"] for way, found in RECORD[read].items()}
        assert held["table"][-1] / held["table"][-2] == pytest.approx(4, rel=0.02)
        for way in ("tiles", "fused", "linear"):
            assert held[way][-1] / held[way][-2] < 2.1, "in memory for the table alone"
            assert all(held[way][place] >= held["fused"][place] for place in range(len(LENGTHS))), "less room"


def test_one_more_token_costs_more_after_a_longer_text_unless_a_state_holds_it():
    step = {name: found["seconds"] for name, found in RECORD["step"].items()}
    assert step["8 groups"][-1] > 5 * step["8 groups"][0] and step["8 groups"][-1] > 1.5 * step["1 group"][-1]
    assert max(step["linear"]) < 2 * min(step["linear"])
    assert [name for name in RECORD["step"]] == ["8 groups", "2 groups", "1 group", "linear"]


def test_linear_attention_translates_less_well_than_softmax_with_every_seed():
    softmaxed, linear = recording("heads"), recording("linear_translator")
    assert all(softmaxed[same] == linear[same] for same in ("sizes", "steps", "judged", "seeds"))
    rows = softmaxed["kinds"]["four heads"]
    assert len(rows) == len(linear["linear"]) == 3
    for what in ("exact", "sense"):
        best, worst = (max(row["test"][what] for row in linear["linear"]), min(row["test"][what] for row in rows))
        assert 0.5 < best < worst - 0.05, "it learns to translate, and it pays"
    assert all(row["test"]["sense"] == 1 for row in rows), "softmax has every sense right"


def test_the_command_on_the_page_is_the_one_that_the_program_has():
    command = re.search(r"^python -m (transformer_ref\.beyond\.measure)[\s\\]+(.*)$", TEXT, re.MULTILINE)
    program = (ROOT / "transformer_ref/beyond/measure.py").read_text(encoding="utf-8")
    options = re.findall(r"--[a-z-]+", command[2] + " ".join(re.findall(r"`(--[a-z -]+)`", TEXT)))
    assert {"--longest", "--output", "--device", "--room"} <= set(options)
    assert all(f'"{option}"' in program for option in options)


def test_the_tiles_of_the_page_are_those_of_the_package():
    made = []

    class Watched(torch.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, arguments=(), named=None):
            result = super().__torch_function__(function, types, arguments, named or {})
            if isinstance(result, torch.Tensor):
                made.append(tuple(result.shape[-2:]))
            return result

    q, k, v = (torch.randn(600, 5).as_subclass(Watched) for _ in range(3))
    tiled_attention(q, k, v)
    assert (256, 256) in made and max(width for _, width in made) <= 256


def test_the_words_of_a_widget_are_those_of_its_pictures(book):
    """The text twins name every number that the pictures of W16a and W16b have."""
    page = book.soup(CHAPTER)
    told = " ".join(page.select_one("article").get_text().split())
    for read in ("all", "earlier", "step"):
        for name, found in RECORD[read].items():
            for seconds, held in zip(found["seconds"], found["bytes"], strict=True):
                assert f"{name} {said(seconds, 'seconds')}, {said(held, 'bytes')}" in told


@pytest.mark.browser
def test_brackets_can_be_moved_by_keyboard(chapter):
    widget = chapter.locator("#W16b")
    widget.get_by_role("radio", name="(Q Kᵀ) V").check()
    expect(widget.locator("output")).to_contain_text(
        "16 × 16 numbers and takes 1,024 multiplications; both steps 2,048"
    )
    widget.get_by_role("radio", name="Q (Kᵀ V)").check()
    expect(widget.locator("output")).to_contain_text("4 × 4 numbers and takes 256 multiplications; both steps 512")
    widget.get_by_role("slider", name="tokens").press("ArrowRight")
    widget.get_by_role("slider", name="step").press("ArrowRight")
    expect(widget.locator("output")).to_contain_text("n = 32, step 2 of 2: Q · state gives 32 × 4 numbers")


@pytest.mark.browser
def test_the_bug_shows_in_one_order_and_hides_in_the_other(chapter):
    widget = chapter.locator("#W16c")
    widget.get_by_role("slider", name="words read").press("End")
    expect(widget.locator("output")).to_contain_text("windows is read, 0.243 of what was there, plus the new")
    expect(widget.locator("output")).to_contain_text("(1.609, 0.196), as softmax says")
    widget.get_by_role("radio", name="stays as it is").check()
    expect(widget.locator("output")).to_contain_text("✗ softmax says (1.609, 0.196)")
    widget.get_by_role("radio", name="the largest first").check()
    expect(widget.locator("output")).to_contain_text("(1.609, 0.196), as softmax says")


@pytest.mark.browser
def test_the_fastest_way_of_each_length_is_named(chapter):
    widget = chapter.locator("#W16a")
    for title, read in {
        "every token sees all": "all",
        "every token sees the earlier ones": "earlier",
        "one more token": "step",
    }.items():
        widget.get_by_role("radio", name=title).check()
        widget.get_by_role("slider", name="tokens").press("Home")
        for length, best in zip(LENGTHS, fastest(RECORD, read), strict=True):
            expect(widget.locator("output")).to_contain_text(f"{length:,} tokens: {best} is the fastest")
            widget.get_by_role("slider", name="tokens").press("ArrowRight")
