"""The live translator of chapter 00: what a browser computes is what torch computes with the same packed weights."""

import json
import math

import pytest
import torch
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from book.recorded import live_model
from transformer_ref import live_model as read_back
from transformer_ref.config import ModelConfig
from transformer_ref.data.grammar.corpora import build_corpus
from transformer_ref.model.transformer import Transformer
from transformer_ref.text.tokenizer import WordTokenizer

CHAPTER = "00_start_here"
BUDGET = 1_500_000  # bytes, as the file lies on the disk
STRANGE = ["Hello, world!", "WINDOWS?", "I can't  see l'amico\u2019s \u201cna\u00efve\u201d x_y 3.5 \U0001f642"]


@pytest.fixture(scope="module")
def packed() -> read_back.Packed:
    return read_back.unpack(read_back.read_weights())


@pytest.fixture(scope="module")
def record() -> dict:
    return json.loads(live_model.RECORD.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def texts() -> list[str]:
    """Sentences from the model's corpus, and some others."""
    return [pair.english for pair in build_corpus(train=0, validation=0, test=12, held_out=0).test] + STRANGE


def small_model(norm_first: bool = True) -> tuple[Transformer, WordTokenizer]:
    tokenizer = WordTokenizer.build(["the cat sees the dog.", "il gatto vede l'amico."])
    config = ModelConfig(
        tokenizer.size,
        tokenizer.size,
        d_model=12,
        heads=3,
        encoder_layers=2,
        decoder_layers=2,
        d_ff=20,
        norm_first=norm_first,
        tie_embeddings=True,
        max_length=64,
    )
    return Transformer(config, torch.Generator().manual_seed(4)).eval(), tokenizer


def test_a_packed_model_comes_back_within_half_a_step_of_rounding():
    model, tokenizer = small_model()
    described = json.loads(json.dumps(read_back.pack(model, tokenizer)))
    back = read_back.unpack(described)
    assert back.tokenizer.to_json() == tokenizer.to_json()
    assert back.model.config == model.config
    for name, weight in model.state_dict().items():
        step = weight.abs().amax(-1, keepdim=True) / 127 if weight.dim() == 2 else torch.zeros(())
        assert ((back.model.state_dict()[name] - weight).abs() <= step / 2 + 1e-7).all(), name


def test_the_weights_stay_within_their_budget_and_are_plain_ascii():
    data = read_back.WEIGHTS.read_bytes()
    assert len(data) < BUDGET
    assert data.isascii()


def test_the_record_shows_what_the_packed_model_writes(packed, record):
    assert record["bytes"] == read_back.WEIGHTS.stat().st_size
    assert record["tokens"] == packed.tokenizer.size
    for sentence in record["sentences"]:
        again = live_model.looked_at(packed, sentence["text"])
        assert again["translation"] == sentence["translation"]
        assert torch.allclose(torch.tensor(again["weights"]), torch.tensor(sentence["weights"]), atol=2e-3)
        for ours, theirs in zip(again["likeliest"], sentence["likeliest"], strict=True):
            assert ours[0][0] == theirs[0][0] and math.isclose(ours[0][1], theirs[0][1], abs_tol=2e-3)


def test_the_record_of_the_model_s_world_holds_for_sentences_it_never_saw(packed, record):
    corpus = build_corpus(train=0)
    texts = [pair.english for pair in (*corpus.test, *corpus.held_out)]
    assert record["world"]["sentences"] == len(texts)
    assert record["world"]["most_tokens"] == max(len(packed.tokenizer.encode(text)) for text in texts)
    assert min(live_model.sureness(packed, texts[::40])) >= record["world"]["lowest_mean_log"] - 2e-3
    alone = live_model.sureness(packed, texts[:1])
    assert math.isclose(live_model.sureness(packed, texts[:5])[0], alone[0], abs_tol=1e-5)  # pads count for nothing


def test_the_chapter_s_story_holds_for_this_model(record):
    glass, software = record["sentences"][:2]
    assert "finestre" in glass["translation"] and "Windows" in software["translation"]
    looked = dict(zip(glass["target"], glass["weights"], strict=True))
    windows = glass["source"].index("windows")
    assert looked["finestre"][windows] > 0.5
    assert looked["le"][windows] > 0.2
    assert min(score["exact"] for score in record["scores"].values()) > 0.99


@pytest.fixture(scope="module")
def live(browser, address):
    page = browser.new_page()
    page.goto(f"{address}/{CHAPTER}.html")
    page.evaluate("async () => { window.loaded = await liveModel.load(); }")
    yield page
    page.close()


@pytest.mark.browser
def test_the_browser_cuts_text_into_the_same_tokens(live, packed, texts):
    assert live.evaluate("texts => texts.map(text => loaded.tokenize(text))", texts) == [
        packed.tokenizer.encode(text) for text in texts
    ]


@pytest.mark.browser
def test_the_browser_s_logits_are_torch_s(live, packed, texts):
    for text in texts:
        source = [*packed.tokenizer.encode(text), packed.model.config.eos]
        target = [1, *packed.tokenizer.encode("Ho chiuso le finestre, l'amico.")]
        logits = live.evaluate(
            "([source, target]) => { const state = loaded.encode(source);"
            " return target.map(id => [...loaded.step(id, state).logits]); }",
            [source, target],
        )
        with torch.inference_mode():
            expected = packed.model(torch.tensor([source]), torch.tensor([target]))[0]
        # both sides add up a few hundred float32 products, in another order
        torch.testing.assert_close(torch.tensor(logits), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.browser
@pytest.mark.parametrize("norm_first", [True, False])
def test_the_browser_computes_deeper_stacks_and_both_placements_of_the_norm(live, norm_first):
    model, tokenizer = small_model(norm_first)
    described = read_back.pack(model, tokenizer)
    back = read_back.unpack(described).model
    source, target = [5, 9, 7, 2], [1, 8, 6]
    logits = live.evaluate(
        "([packed, source, target]) => { const model = new loaded.constructor(packed), state = model.encode(source);"
        " return target.map(id => [...model.step(id, state).logits]); }",
        [described, source, target],
    )
    with torch.inference_mode():
        expected = back(torch.tensor([source]), torch.tensor([target]))[0]
    torch.testing.assert_close(torch.tensor(logits), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.browser
def test_the_browser_writes_what_torch_writes_and_looks_where_torch_looks(live, packed, texts):
    for text in texts[:-1]:
        ours = live.evaluate("text => loaded.translate(text)", text)
        theirs = live_model.looked_at(packed, text)
        assert (ours["translation"], ours["target"]) == (theirs["translation"], theirs["target"])
        assert torch.allclose(torch.tensor(ours["weights"]), torch.tensor(theirs["weights"]), atol=2e-3)
        assert math.isclose(ours["meanLog"], live_model.sureness(packed, [text])[0], abs_tol=2e-3)
        for step, expected in zip(ours["likeliest"], theirs["likeliest"], strict=True):
            assert [share for _, share in step] == pytest.approx([share for _, share in expected], abs=2e-3)


# What a reader types, whether the page should call the answer outside the model's world, and a word of the reason.
TYPED = {
    "I closed the windows.": "",
    "i closed the windows": "",
    "I CLOSED THE WINDOWS.": "",
    "we met ANNA and marco near the river.": "",
    "closed windows the I": "",  # a fluent answer to no sentence: the page says that it cannot notice this
    "My name is Ada Lovelace.": "“Ada”",
    "She bought 12 keys.": "“12”",
    "\U0001f642\U0001f642": "“\U0001f642”",
    "...": "on average",
    "the the the the the": "on average",
    "Is the door open?": "on average",
    "I closed the windows. I bought new windows for my computer.": "more than one",
    " and ".join(["I closed the windows"] * 5): "never met",
}


@pytest.mark.browser
def test_what_is_outside_the_model_s_world_is_called_so_and_what_is_inside_is_not(live, texts):
    judge = "text => { const read = loaded.inKnownCase(text); return loaded.doubts(read, loaded.translate(read)); }"
    for text, reason in (TYPED | dict.fromkeys(texts[: -len(STRANGE)], "")).items():
        doubts = live.evaluate(judge, text)
        assert bool(doubts) == bool(reason) and reason in "; ".join(doubts), text


@pytest.mark.browser
def test_the_page_draws_its_lines_right_beyond_the_model_s_world(live, record):
    lines, world = live.evaluate("liveModel.WORLD"), record["world"]
    assert lines["mostTokens"] == world["most_tokens"]
    assert world["lowest_mean_log"] - 0.1 < lines["lowestMeanLog"] < world["lowest_mean_log"]


@pytest.mark.browser
def test_a_known_word_in_another_case_is_read_as_the_known_one(live):
    said = {"I CLOSED THE WINDOWS.": "I closed the windows.", "anna likes Windows": "Anna likes Windows", "Ada": "Ada"}
    assert {text: live.evaluate("text => loaded.inKnownCase(text)", text) for text in said} == said


@pytest.mark.browser
def test_nothing_is_fetched_before_the_first_click_and_nothing_twice(address, visit):
    seen = visit(f"{address}/{CHAPTER}.html")
    fetched = [url for url in seen.requests if "live_model_weights" in url]
    assert not fetched
    for example in range(2):
        seen.page.locator(".live-example").nth(example).click()
        expect(seen.page.locator(".live-note")).to_contain_text("ms, here, by this page")
    assert len([url for url in seen.requests if "live_model_weights" in url]) == 1
    assert not seen.failures


@pytest.mark.browser
def test_a_typed_sentence_is_translated_from_the_disk_as_well(book, visit, record):
    page = visit((book.site / f"{CHAPTER}.html").as_uri()).page
    sentence = record["sentences"][2]
    page.fill("#live-text", sentence["text"])
    page.locator("#live-text").press("Enter")
    expect(page.locator("#live-translator output")).to_have_text(sentence["translation"])
    shares = [float(share) for share in page.locator(".looked tbody td").all_inner_texts()]
    expected = [share for row in sentence["weights"] for share in row]
    assert all(math.isclose(one, other, abs_tol=0.006) for one, other in zip(shares, expected, strict=True))


def ask(page: Page, text: str) -> None:
    page.fill("#live-text", text)
    page.locator("#live-text").press("Enter")
    expect(page.locator(".live-form button")).to_be_enabled()
    expect(page.get_by_role("status").filter(has_text="ms, here, by this page")).to_be_visible()


@pytest.mark.browser
def test_an_answer_that_is_not_to_be_trusted_bears_a_seal_and_the_next_good_one_does_not(chapter):
    seal, note = chapter.locator(".live-seal"), chapter.locator("#live-translator [role=status]")
    expect(seal).to_be_hidden()
    ask(chapter, "Gwendolyn closed the windows.")
    expect(seal).to_contain_text("outside its world")
    expect(note).to_contain_text("Outside its world: it never saw “Gwendolyn”")
    ask(chapter, "I CLOSED THE WINDOWS.")
    expect(seal).to_be_hidden()
    expect(note).to_contain_text("Read as “I closed the windows.”")


@pytest.mark.browser
def test_an_emptied_field_takes_its_translation_with_it(chapter):
    ask(chapter, "My name is Ada.")
    chapter.fill("#live-text", " ")
    expect(chapter.locator("#live-translator output")).to_be_empty()
    for gone in (".live-seal", ".looked", ".likely"):
        expect(chapter.locator(gone)).to_be_hidden()


@pytest.mark.browser
def test_a_chosen_step_shows_the_words_that_could_have_stood_there(chapter, record):
    sentence = record["sentences"][1]
    ask(chapter, sentence["text"])
    windows = sentence["target"].index("Windows")
    chapter.locator(".looked tbody button").nth(windows).press("Enter")
    assert chapter.evaluate("document.activeElement.textContent") == "Windows"
    before = " ".join(sentence["target"][:windows])
    expect(chapter.locator(".likely p")).to_have_text(f"What could follow “{before}”?")
    (name, share), *_ = sentence["likeliest"][windows]
    expect(chapter.locator(".likely li").first).to_have_text(f"{name} {share:.1%}".replace("%", " %"))
    assert chapter.locator(".looked tr.chosen").count() == 1


@pytest.mark.browser
def test_at_first_the_least_sure_step_is_shown(chapter, record):
    sentence = record["sentences"][2]
    ask(chapter, sentence["text"])
    shares = [step[0][1] for step in sentence["likeliest"]]
    chosen = chapter.locator(".looked tbody tr").evaluate_all("rows => rows.findIndex(row => row.matches('.chosen'))")
    assert shares[chosen] == min(shares)


@pytest.mark.browser
def test_the_words_that_it_is_said_to_know_are_known(chapter, packed):
    ask(chapter, "I closed the windows.")
    words = " ".join(chapter.locator(".live-known dd").all_text_contents()).split()
    assert len(words) >= 30
    assert [word for word in words if word not in packed.tokenizer.vocabulary] == []


@pytest.mark.browser
@pytest.mark.parametrize(("width", "theme"), [(1280, "light"), (390, "dark")])
def test_axe_finds_nothing_after_use(address, visit, width, theme):
    page = visit(f"{address}/{CHAPTER}.html", width, theme).page
    for text in ("I bought new windows for my computer.", "My name is Ada Lovelace."):
        ask(page, text)
        page.evaluate("document.querySelectorAll('#live-translator details').forEach(fold => fold.open = true)")
        found = Axe().run(page, context="#live-translator").response["violations"]
        assert not [(rule["id"], [node["html"][:160] for node in rule["nodes"][:3]]) for rule in found]


@pytest.mark.browser
@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_below_the_translator_jumps_when_it_is_drawn(address, visit, width):
    page = visit(f"{address}/{CHAPTER}.html", width).page
    drawn = "document.querySelector('#live-translator').getBoundingClientRect().height"
    empty = "(document.querySelector('#live-translator').replaceChildren(), " + drawn + ")"
    assert abs(page.evaluate(drawn) - page.evaluate(empty)) < 24


@pytest.mark.browser
def test_weights_that_do_not_arrive_are_reported_and_asked_for_again(chapter):
    chapter.route("**/live_model_weights.js", lambda route: route.abort(), times=1)
    chapter.locator(".live-form button").click()
    expect(chapter.locator(".live-note")).to_contain_text("did not arrive")
    chapter.locator(".live-form button").click()
    expect(chapter.locator("#live-translator output")).to_contain_text("finestre")
