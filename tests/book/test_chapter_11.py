"""Chapter 11: its worked numbers, and its moving parts show what transformer_ref computes."""

import json
import re

import pytest
import torch
from playwright.sync_api import expect

from transformer_ref.decoding.beam_search import beam_search
from transformer_ref.decoding.greedy import greedy_decode
from transformer_ref.decoding.sampling import sampling_probabilities
from transformer_ref.live_model import read_weights, unpack

CHAPTER = "11_inference"
WORKED = [
    r"a a end +log p -1\.833 +p 0\.16",
    r"k = 2\n +b end +log p -1\.022 +p 0\.36",
    r"tau 0\.5: 0\.734 0\.183 0\.066",
    r"'top_p': 0\.6\} 0\.667 0\.333 0\.000",
    r"'top_p': 0\.4\} 1\.000",
    r"from cache: tensor\(\[0\.157, 0\.157, 0\.038, 0\.647\]\)",
    r"largest gap below 1e-9: True",
    r"5/5 missing:\n3/4 missing: on mat\n2/3 missing: sat on mat\n1/2",
    r"\n57\.9\n",
    r"sacreBLEU 73\.6\nour formula 73\.6\nmean of two 78\.9",
    r"short +-1\.204 +-0\.\d+ +-0\.602",
    r"long +-1\.386 +-0\.\d+ +-0\.347",
    r"tok:13a \| smooth:exp \| version:",
]


@pytest.fixture(scope="module")
def translator():
    return unpack(read_weights())


@pytest.fixture
def written(book) -> dict:
    """The data that the page's cells have written for its widgets."""
    return json.loads(book.soup(CHAPTER).select_one("#inference-data").get_text())


@pytest.mark.parametrize("numbers", WORKED)
def test_the_worked_numbers_come_out_of_the_cells(printed, numbers):
    assert re.search(numbers, printed)


def test_what_the_prose_says_of_the_trained_model_is_what_its_cells_print(printed):
    """Sentences without a decimal number, which no other test compares with the cells."""
    drawn = {float(tau): int(many) for tau, many in re.findall(r"tau ([\d.]+): (\d+) of 200", printed)}
    assert drawn[0.7] > drawn[1.0] > 100 > 20 > drawn[1.2]
    cut = [int(many) for many in re.findall(r"top-[pk] [\d.]+: +(\d+)\n", printed)]
    assert len(cut) == 2 and min(cut) > 190
    places = dict(re.findall(r"(its own position|always 0|one too late) +(\d+) of 200", printed))
    assert int(places["its own position"]) == int(places["one too late"]) == 200 and 50 < int(places["always 0"]) < 80
    scores = [float(score) for score in re.findall(r"^ *(\d+\.\d)  \w.*\n +nrefs", printed, re.M)]
    assert len(scores) == 5 and min(scores) < 30 and max(scores) > 45
    assert "beam of 5 = greedy: 200 of 200" in printed and "greedy 200 of 200" in printed
    assert re.search(r"no mask +\d+\.\d+ +\d+\.\d+ +0\.000 +0\.000 +\d+\.\d+ +0\.000", printed)


def test_the_beams_of_the_widget_are_those_of_the_package(written, translator):
    model, tokenizer = translator
    for sentence in ("I want to sleep.", "I like the fan."):
        source = torch.tensor([[*tokenizer.encode(sentence), model.config.eos]])
        for k, told in written["beam"][sentence].items():
            (found,) = beam_search(model, source, int(k), 12, 0.0)
            ended = [one for one in found if one.ids[-1] == model.config.eos]
            names = [
                ["end" if id == model.config.eos else tokenizer.vocabulary.tokens[id] for id in one.ids[1:]]
                for one in ended
            ]
            assert [one["words"] for one in told["finished"]] == names
            assert [one["log"] for one in told["finished"]] == pytest.approx([one.score for one in ended], abs=1e-3)


@pytest.mark.browser
def test_finished_rows_wait_while_the_others_write(chapter, written):
    widget = chapter.locator("#W11a")
    rows = widget.locator(".ch11-rows > li")
    for step in range(1, 10):
        widget.get_by_role("button", name="step →").press("Enter")
        for index, row in enumerate(written["batch"]):
            chips = rows.nth(index).locator(".ch11-chip").all_inner_texts()
            pads = max(0, step - len(row["written"]))
            assert chips == ["<bos>", *row["written"][:step], *["<pad>"] * pads]
            assert ("finished" in rows.nth(index).get_attribute("class")) == (step >= len(row["written"]))
    expect(widget.locator("output")).to_contain_text("0 of 3 rows go on")
    expect(widget.get_by_role("button", name="step →")).to_be_disabled()


@pytest.mark.browser
def test_a_sentence_of_the_reader_s_own_is_written_by_the_model_in_the_page(chapter, translator):
    model, tokenizer = translator
    widget = chapter.locator("#W11a")
    widget.get_by_label("A sentence of your own").fill("The cat sleeps.")
    widget.get_by_role("button", name="add it").click()
    expect(widget.locator(".ch11-rows > li")).to_have_count(4)
    widget.get_by_role("button", name="to the end").click()
    chips = widget.locator(".ch11-rows > li").nth(3).locator(".ch11-chip:not(.hidden-cell)").all_inner_texts()
    ids = greedy_decode(model, torch.tensor([[*tokenizer.encode("The cat sleeps."), model.config.eos]]), 20)[0].tolist()
    names = [
        "end" if id == model.config.eos else tokenizer.vocabulary.tokens[id].replace("\uffed", "") for id in ids[1:]
    ]
    assert chips == ["<bos>", *names]


@pytest.mark.browser
def test_the_tree_ends_with_the_search_s_answer_and_alpha_ranks_it_anew(chapter, translator):
    widget = chapter.locator("#W11b")
    widget.get_by_role("button", name="to the end").click()
    expect(widget.locator("output")).to_contain_text("Best with alpha 0.0: b end.")
    assert widget.locator(".ch11-tree li.finished").count() == 3  # of two, two ended in the same step
    model, tokenizer = translator
    widget.get_by_label("what is translated").select_option("I like the fan.")
    widget.get_by_label("5", exact=True).check()
    widget.get_by_role("button", name="to the end").click()
    source = torch.tensor([[*tokenizer.encode("I like the fan."), model.config.eos]])
    best = []
    for alpha in (0.0, 1.0):
        widget.get_by_label("α").fill(str(alpha))
        (found,) = beam_search(model, source, 5, 12, alpha)
        ids = found[0].ids[1:-1]
        names = [tokenizer.vocabulary.tokens[id].replace("\uffed", "") for id in ids]
        expect(widget.locator("output")).to_contain_text(f"Best with alpha {alpha}: {' '.join(names)} end.")
        assert float(widget.locator("td.score").first.inner_text().replace("−", "-")) == pytest.approx(
            found[0].score, abs=1e-3
        )
        best.append(names)
    assert best[0] != best[1]


@pytest.mark.browser
def test_the_meter_counts_the_cells_that_are_computed(chapter):
    widget = chapter.locator("#W11c")
    for n in (1, 8, 12):
        widget.get_by_label("words written").fill(str(n))
        for label, cells in [
            ("computes all anew", sum(t * t for t in range(1, n + 1))),
            ("keeps keys and values", n * (n + 1) // 2),
        ]:
            widget.get_by_label(label).check()
            counted = sum(int(text) for text in widget.locator("td").all_inner_texts() if text)
            assert counted == cells
            expect(widget.locator("output")).to_contain_text(f": {cells} cells.")


@pytest.mark.browser
def test_the_sampler_leaves_what_the_package_leaves(chapter, written):
    widget = chapter.locator("#W11d")
    settings = [
        ("1", "off", "off"),
        ("0.5", "off", "0.6"),
        ("1.5", "5", "off"),
        ("1.5", "20", "0.8"),
        ("0.1", "off", "0.95"),
    ]
    for place in written["places"]:
        widget.get_by_label(place["name"], exact=True).check()
        logits = torch.tensor(place["logits"], dtype=torch.float64)
        for tau, k, p in settings:
            widget.get_by_label("temperature τ").fill(tau)
            widget.locator("fieldset", has_text="top-k").get_by_label(k, exact=True).check()
            widget.locator("fieldset", has_text="top-p").get_by_label(p, exact=True).check()
            expected = sampling_probabilities(
                logits, float(tau), None if k == "off" else int(k), None if p == "off" else float(p)
            )
            kept = int((expected > 0).sum())
            expect(widget.locator("output")).to_contain_text(f"{kept:,} of 2,686 tokens are left")
            shown = [float(text) for text in widget.locator(".ch11-bars b").all_inner_texts()][: min(6, kept)]
            assert shown == pytest.approx(expected.topk(min(6, kept)).values.tolist(), abs=0.5e-3 + 1e-6)
    widget.get_by_role("button", name="draw 20").press("Enter")
    expect(widget.locator(".ch11-note")).to_contain_text("Drawn 20 times")
