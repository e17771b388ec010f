"""Chapter 13: its numbers, what it says of the recorded training, and a browser that computes what torch computes."""

import json
import re

import pytest
import torch
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from transformer_ref.beyond.gpt import generate, logit_lens, residual_trace
from transformer_ref.beyond.live_gpt import GPT_WEIGHTS, SIZES, pack, trained_gpt, unpack
from transformer_ref.beyond.tales import ALPHABET, HE, SHE, decode, encode, tales
from transformer_ref.recording import recording

CHAPTER = "13_gpt"
BUDGET = 300_000  # bytes of the weights, as the file lies on the disk
WORKED = [
    r"'Once' +7454 +12805\n' upon' +2402 +5304\n' a' +257 +264\n' time' +640 +892",
    r"all +124,439,808\ntable +38,597,376 31%\nuntied +163,037,184\nblocks +85,054,464",
    r"\[\[1, 2, 3, 4\], \[5, 6, 7, 8\], \[0, 1, 2, 3\]\]\n\[\[2, 3, 4, 5\], \[6, 7, 8, 9\], \[1, 2, 3, 4\]\]",
    r"begins: \[\d+, \d+, \d+, \d+, \d+, \d+, 0\]",
    r"tensor\(\[0\.000, 0\.000, 0\.000, 0\.[1-9]",
    r"gelu +tensor\(\[-0\.004, -0\.159, +0\.000, +0\.841",
    r"ValueError: ids: expected at most 8 positions, got 9",
    r"same: True\nhead among the weights: False",
    r"sums back: True",
    r"torch, transposed +\[1\.0, 2\.0\]\ntorch, not transposed +\[1\.0, 3\.0\]",
    r"\n1,000 +176,424 +158,208 +10%|1,000 176,424 158,208 +10%",
]


@pytest.fixture(scope="module")
def model():
    return trained_gpt()


@pytest.fixture(scope="module")
def record() -> dict:
    return recording("gpt")


def test_a_tale_keeps_to_what_it_said_and_every_letter_has_a_number():
    told = tales(400, seed=8)
    for tale in told:
        assert tale.text.endswith(".\n") and decode(encode(tale.text)) == tale.text
        assert re.findall(r"From then on (\w+)", tale.text) == [tale.name]
        assert tale.text.count(tale.thing) >= 4 and tale.text.count(f"{tale.place}") == 2
        assert re.search(r"\b(she|her)\b" if tale.name in HE else r"\b(he|his)\b", tale.text) is None
    assert {letter for tale in told for letter in tale.text} == set(ALPHABET)
    assert {tale.name for tale in told} == {*SHE, *HE}
    assert tales(5, seed=1) == tales(5, seed=1) != tales(5, seed=2)
    with pytest.raises(ValueError, match="text: expected letters of the tales, got 'Q' 'é'"):
        encode("Qué")


def test_the_weights_stay_within_their_budget_and_come_back_as_they_were_packed(model):
    data = GPT_WEIGHTS.read_bytes()
    assert len(data) < BUDGET and data.isascii()
    back = unpack(json.loads(json.dumps(pack(model))))
    ids = torch.tensor([encode("Once upon a time")])
    with torch.inference_mode():
        torch.testing.assert_close(back(ids), model(ids), rtol=1e-4, atol=1e-4)  # rounded once more


def test_the_record_is_of_these_weights(model, record):
    assert record["bytes"] == GPT_WEIGHTS.stat().st_size and record["sizes"] == SIZES
    assert record["parameters"] == sum(each.numel() for each in model.parameters())
    last = record["stages"][-1]["text"]
    ids = generate(model, torch.tensor([encode("Once upon a time")]), 60, SIZES["max_length"], 0.0)
    assert last.startswith(decode(ids[0].tolist()))


def test_what_the_page_says_of_the_training_is_what_was_recorded(record):
    losses = dict(record["losses"])
    assert losses[0] > 3.85 > record["bigram"] > record["loss"] and f"{record['loss']:.2f}" == "0.12"
    kept = record["kept"]
    assert kept["192"]["name"] == 0.3 and kept["192"]["thing"] == kept["192"]["place"] == 1
    assert kept["48"]["whole"] > 0.9 and kept["48"]["thing"] < 0.1
    texts = [stage["text"].removeprefix("Once upon a time") for stage in record["stages"]]
    assert set(texts[0]) == {"\n"} and texts[1].count(" ") > 100 and texts[2].count("the ") > 10
    assert all(any(name in text for name in SHE + HE) for text in texts[-2:])


@pytest.mark.parametrize("numbers", WORKED)
def test_the_worked_numbers_come_out_of_the_cells(printed, numbers):
    assert re.search(numbers, printed)


def test_what_the_prose_says_of_the_model_is_what_its_cells_print(printed):
    """Sentences without a decimal number, which no other test compares with the cells."""
    inside, of = map(int, re.search(r"name in the window: +(\d+) of (\d+)", printed).groups())
    outside, among = map(int, re.search(r"name not in the window: (\d+) of (\d+)", printed).groups())
    animal, asked = map(int, re.search(r"the animal, in view: +(\d+) of (\d+)", printed).groups())
    assert inside == of > 50 and outside < among / 4 and animal < asked / 2
    lens = [tuple(map(float, row)) for row in re.findall(r"h_\d +(0\.\d+) +([01]\.\d+) +(0\.\d+)\n", printed)]
    assert len(lens) == 5 and lens[0][1] == 1 and 0.4 < lens[1][1] < 0.6 and max(lens[2][:2]) < 0.25
    assert 0.6 < lens[3][0] < 0.75 and lens[4][0] > 0.9
    gone, new, stay = (int(re.search(rf"{kind} +(\d+) words of code", printed)[1]) for kind in ("gone", "new", "stay"))
    assert 0.4 < gone / (gone + stay) < 0.5 and new < gone / 2
    arrows = re.search(r"Once upon a t….*?sum +\+(\d+\.\d)", printed, re.S)
    assert re.search(r"network 4 +\+10\.7", arrows[0]) and arrows[1] == "15.1"
    assert re.search(r"From then on.*?attention 4 +-1\.6", printed, re.S)
    hot = re.search(r"τ 1\.5: (.*?)(?=\n\S|\Z)", printed, re.S)[1]
    names = {name for name in SHE + HE if re.search(rf"\b{name}\b", hot)}
    assert "hout" in hot and len(names) == 2


def test_two_heads_fetch_the_name_and_without_them_it_is_a_guess(printed):
    rows = re.findall(r"block (\d)" + r"\s+(0\.\d{3})" * 4, printed.partition("first letter of the name, mean")[2])
    weights = {(int(block), head): float(share) for block, *row in rows for head, share in enumerate(row, 1)}
    fetching = {place for place, share in weights.items() if share > 0.5}
    assert len(weights) == 16 and fetching == {(4, 1), (4, 3)}
    assert max(share for place, share in weights.items() if place not in fetching) < 0.02
    right, of = map(int, re.search(r"all heads +(\d+) of (\d+)", printed).groups())
    cut = {name: int(count) for name, count in re.findall(r"without (\d\.\d and \d\.\d) +(\d+) of", printed)}
    guessed = of * 2 / len(SHE + HE)  # twice what guessing one of the names would get
    assert right == of > 50 and cut["4.1 and 4.3"] < guessed and cut["4.2 and 4.4"] == of
    assert of / 2 < cut["3.1 and 3.3"] < of


def test_the_comparison_with_chapter_09_is_of_the_code_that_runs(book):
    shown = book.soup(CHAPTER).select_one("pre.ch13-diff")
    gone = " ".join(node.get_text() for node in shown.select("del"))
    for part in ("cross_attention", "memory", "source_mask", "source_cache"):
        assert part in gone
    for node in shown.select("del"):
        node.decompose()
    left = shown.get_text()
    assert "class GPTBlock(nn.Module)" in left and "cross" not in left and "causal_mask(" in left
    compile(left, "what is left", "exec")


@pytest.fixture(scope="module")
def live(browser, address):
    page = browser.new_page()
    page.goto(f"{address}/{CHAPTER}.html")
    page.evaluate("async () => { window.loaded = await liveModel.loadGPT(); }")
    yield page
    page.close()


@pytest.mark.browser
def test_the_browser_s_stream_and_scores_are_torch_s(live, model):
    text = tales(1, seed=4)[0].text[:120]
    streams, logits = live.evaluate(
        "text => { const cache = loaded.begin(), ids = loaded.encode(text), cuts = [0, 1, 2, 40, ids.length];"
        " const traces = cuts.slice(1).map((end, i) => loaded.stream(ids.slice(cuts[i], end), cache));"
        " const flat = (depth) => traces.flatMap(trace => [...trace.at(depth)]);"
        " return [[0, 1, 2, 3, 4].map(flat), traces.flatMap(trace => [...loaded.head(trace.at(-1))])]; }",
        text,
    )
    ids = torch.tensor([encode(text)])
    with torch.inference_mode():
        trace = torch.stack(residual_trace(model, ids))[:, 0]  # (depth, letter, d_model)
        # both sides add up a few hundred float32 products, in another order
        torch.testing.assert_close(torch.tensor(streams), trace.flatten(1), rtol=1e-3, atol=1e-3)
        torch.testing.assert_close(torch.tensor(logits), model(ids)[0].flatten(), rtol=1e-3, atol=1e-3)
    assert live.evaluate("() => loaded.decode(loaded.encode('Once upon'))") == "Once upon"


@pytest.mark.browser
def test_beyond_its_places_the_browser_s_model_stops_too(live):
    assert live.evaluate(
        "() => { try { loaded.read(Array(193).fill(1), loaded.begin()); } catch (error) { return error.message; } }"
    ).startswith("the model has 192 places")


@pytest.mark.browser
def test_the_page_writes_what_torch_writes_and_counts_what_it_read(chapter, model):
    widget = chapter.locator("#W13d")
    widget.get_by_label("temperature τ").fill("0")
    tale = tales(1, seed=6)[0].text
    end = tale.index("From then on ") + 13
    prompt = tale[end - 185 : end]
    expected = decode(generate(model, torch.tensor([encode(prompt)]), 40, 192, 0.0)[0].tolist())
    expected = expected[: expected.index("\n") + 1]
    written = len(expected) - len(prompt)
    lengths = range(len(prompt), len(expected))
    inside = sum(n <= 192 for n in lengths)
    for label, reads in (
        ("kept", len(prompt) + inside - 1 + 192 * (written - inside)),
        ("computed anew", sum(min(n, 192) for n in lengths)),
    ):
        widget.get_by_label(label, exact=True).check()
        widget.get_by_label("The tale begins").fill(prompt)
        widget.get_by_role("button", name="go on").click()
        expect(widget.locator("output")).to_contain_text(
            f"The end. {written} letters written, {reads:,} read for it", timeout=180_000
        )
        assert widget.locator(".ch13-paper").text_content() == expected
        assert len(widget.locator(".ch13-old").text_content()) == len(expected) - 192


@pytest.mark.browser
def test_a_letter_that_it_never_saw_is_named_and_nothing_is_written(chapter):
    for number, label, button in (("W13d", "The tale begins", "go on"), ("W13c", "A text of your own", "ask")):
        widget = chapter.locator(f"#{number}")
        widget.get_by_label(label).fill("Once ü and 7")
        widget.get_by_role("button", name=button).click()
        expect(widget.locator(".ch11-note")).to_contain_text("It never saw “ü”, “7” in a tale")


@pytest.mark.browser
def test_the_guesses_in_the_page_are_those_of_the_package(chapter, model):
    widget = chapter.locator("#W13c")
    for text in ("Once upon a time, in a town by the s", "From then on the old fox slept w"):
        widget.get_by_label("A text of your own").fill(text)
        if text[0] == "F":
            widget.get_by_role("button", name="ask").press("Enter")
            expect(widget.locator(".ch11-note")).to_contain_text("Computed here")
        with torch.inference_mode():
            shares = logit_lens(model, torch.tensor([encode(text)]))[:, 0, -12:].softmax(-1).max(-1)
        shown = widget.locator("tbody td small").all_inner_texts()
        assert [float(share) for share in shown] == pytest.approx(shares.values.flatten().tolist(), abs=0.006)
        letters = [letter.replace("␣", " ") for letter in widget.locator("tbody td b").all_inner_texts()]
        assert "".join(letters) == decode(shares.indices.flatten().tolist())


@pytest.mark.browser
def test_weights_are_fetched_on_the_first_click_only(address, visit):
    seen = visit(f"{address}/{CHAPTER}.html")
    assert not [url for url in seen.requests if "weights" in url]
    for _ in range(2):
        seen.page.locator("#W13c").get_by_role("button", name="ask").click()
        expect(seen.page.locator("#W13c [role=status]")).to_contain_text("Computed here")
    assert len([url for url in seen.requests if "gpt_weights" in url]) == 1
    assert not [url for url in seen.requests if "live_model_weights" in url] and not seen.failures


@pytest.mark.browser
@pytest.mark.parametrize(("width", "theme"), [(1280, "light"), (360, "dark")])
def test_axe_finds_nothing_after_use_and_nothing_is_wider_than_the_page(address, visit, width, theme):
    page = visit(f"{address}/{CHAPTER}.html", width, theme).page
    page.locator("#W13d").get_by_label("temperature τ").fill("0")
    page.locator("#W13d").get_by_role("button", name="go on").click()
    expect(page.locator("#W13d output")).to_contain_text("The end.", timeout=180_000)
    for context in ("#W13a", "#W13b", "#W13c", "#W13d", "#W13e"):
        found = Axe().run(page, context=context).response["violations"]
        assert not [(rule["id"], [node["html"][:160] for node in rule["nodes"][:3]]) for rule in found]
    assert page.evaluate("document.documentElement.scrollWidth") <= width
