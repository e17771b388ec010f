"""The live translator of chapter 00: what a browser computes is what torch computes with the same packed weights."""

import json
import math

import pytest
import torch
from playwright.sync_api import Page, expect

from book.recorded import live_model
from transformer_ref import live_model as read_back
from transformer_ref.config import ModelConfig
from transformer_ref.data.grammar import build_corpus
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
    """Sentences of the model's world, and some that are not."""
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


def test_a_model_with_three_tables_is_refused_by_name():
    model, tokenizer = small_model()
    untied = Transformer(ModelConfig.from_dict(model.config.to_dict() | {"tie_embeddings": False}))
    with pytest.raises(ValueError, match="tied embeddings"):
        read_back.pack(untied, tokenizer)


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


@pytest.fixture
def chapter(address, visit) -> Page:
    return visit(f"{address}/{CHAPTER}.html").page


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


@pytest.mark.browser
def test_a_word_it_never_saw_is_named(chapter):
    chapter.fill("#live-text", "Gwendolyn closed the windows.")
    chapter.locator(".live-form button").click()
    expect(chapter.locator(".live-note")).to_contain_text("It has never seen \u201cGwendolyn\u201d")


@pytest.mark.browser
def test_weights_that_do_not_arrive_are_reported_and_asked_for_again(chapter):
    chapter.route("**/live_model_weights.js", lambda route: route.abort(), times=1)
    chapter.locator(".live-form button").click()
    expect(chapter.locator(".live-note")).to_contain_text("did not arrive")
    chapter.locator(".live-form button").click()
    expect(chapter.locator("#live-translator output")).to_contain_text("finestre")
