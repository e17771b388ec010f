"""A translator in one HTML file: it computes what torch computes with the rounded weights, and needs no network."""

import json
import math

import pytest
import torch
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from transformer_ref import __main__ as command_line
from transformer_ref import live_model
from transformer_ref.checkpoint import save_checkpoint
from transformer_ref.config import ModelConfig
from transformer_ref.data.grammar.corpora import build_corpus
from transformer_ref.interop.page import save_page
from transformer_ref.model.transformer import Transformer
from transformer_ref.text.tokenizer import SubwordTokenizer, WordTokenizer
from transformer_ref.translate import Translator

NOTES = {"corpus": "grammar", "source": "en", "target": "it"}
STRANGE = [
    "Hello, world!",
    "I can't  see l'amico\u2019s \u201cna\u00efve\u201d x_y 3.5 \U0001f642",
    "a\u00a0b \x85c",
    "we'll 123abc ...!? \u4f60\u597d </script><!--",
]
SIZES = dict(d_model=12, heads=3, encoder_layers=2, decoder_layers=3, d_ff=20, max_length=48)
VARIANTS = {
    "post-norm, three tables": {},
    "pre-norm, one table": dict(norm_first=True, tie_embeddings=True),
    "gelu, sinusoids apart": dict(activation="gelu", layout="concatenated", d_model=15),
    "all that others add": dict(activation="silu", scale_embedding=False, output_bias=True, last_norm=True),
}


def lines() -> list[str]:
    corpus = build_corpus(train=40, validation=0, test=1, held_out=0)
    return [line for pair in corpus.train for line in (pair.english, pair.italian)]


def model_of(size: int, **variant) -> Transformer:
    """A model with random weights, including biases and norms, so that a missing one is noticed."""
    model = Transformer(ModelConfig(size, size, **(SIZES | variant)), torch.Generator().manual_seed(4)).eval()
    draw = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for weight in model.parameters():
            weight += 0.2 * torch.randn(weight.shape, generator=draw)
    return model


def opened(browser, path, width: int = 1280, theme: str = "light") -> tuple[Page, list[str]]:
    """The page from the disk, without a network, with its requests and console errors."""
    context = browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme=theme, offline=True, reduced_motion="reduce"
    )
    page, seen = context.new_page(), []
    page.on("request", lambda request: seen.append(request.url))
    page.on("pageerror", lambda error: seen.append(str(error)))
    page.on("console", lambda message: seen.append(message.text))
    page.goto(path.as_uri())
    return page, seen


@pytest.fixture(scope="module")
def built_in(tmp_path_factory):
    """The page of the translator that travels with the package."""
    model, tokenizer = live_model.unpack(live_model.read_weights())
    path = tmp_path_factory.mktemp("page") / "translator.html"
    assert save_page(model, tokenizer, tokenizer, path, NOTES) == path.stat().st_size
    return path, model, tokenizer


@pytest.mark.parametrize("tokens", ["words", "subwords"])
def test_what_was_packed_comes_back_whatever_the_tokens_and_the_tables(tokens):
    tokenizer = WordTokenizer.build(lines()) if tokens == "words" else SubwordTokenizer.learn(lines(), 330)
    model = model_of(tokenizer.size)
    back = live_model.unpack(json.loads(json.dumps(live_model.pack(model, tokenizer))))
    assert back.model.config == model.config
    for text in (*STRANGE, *lines()):
        ids = tokenizer.encode(text)
        assert back.tokenizer.encode(text) == ids and back.tokenizer.decode(ids) == tokenizer.decode(ids)
    for name, weight in model.state_dict().items():
        step = weight.abs().amax(-1, keepdim=True) / 127 if weight.dim() == 2 else torch.zeros(())
        assert ((back.model.state_dict()[name] - weight).abs() <= step / 2 + 1e-7).all(), name


@pytest.mark.browser
@pytest.mark.parametrize("tokens", ["words", "subwords"])
@pytest.mark.parametrize("variant", VARIANTS)
def test_a_page_computes_what_torch_does_with_the_same_rounded_weights(browser, tmp_path, tokens, variant):
    tokenizer = WordTokenizer.build(lines()) if tokens == "words" else SubwordTokenizer.learn(lines(), 330)
    model = model_of(tokenizer.size, **VARIANTS[variant])
    save_page(model, tokenizer, tokenizer, tmp_path / "page.html", NOTES)
    back, _ = live_model.unpack(live_model.pack(model, tokenizer))
    page, _ = opened(browser, tmp_path / "page.html")
    texts = [*STRANGE, *lines()[:6]]
    said = page.evaluate(
        "async texts => { const model = await liveModel.load(); return texts.map(text => {"
        " const ids = model.tokenize(text).slice(0, model.config.max_length - 1).concat(model.config.eos);"
        " const state = model.encode(ids), logits = [1, 7, 9].map(id => [...model.step(id, state).logits]);"
        " return { ids, logits, ...model.translate(text) }; }); }",
        texts,
    )
    translator = Translator(back, tokenizer, tokenizer)
    for text, each in zip(texts, said, strict=True):
        assert each["ids"] == [*tokenizer.encode(text)[: back.config.max_length - 1], back.config.eos]
        expected = back(torch.tensor([each["ids"]]), torch.tensor([[1, 7, 9]]))[0]
        # both sides add up a few dozen float32 products, in another order
        torch.testing.assert_close(torch.tensor(each["logits"]), expected.detach(), rtol=1e-4, atol=1e-4)
        assert each["translation"] == translator.translate([text], beam_size=1)[0]
    page.context.close()


@pytest.mark.browser
def test_two_hundred_sentences_get_the_same_words_and_the_same_looks(browser, built_in):
    path, model, tokenizer = built_in
    texts = [pair.english for pair in build_corpus(train=0, validation=0, test=200, held_out=0).test]
    page, seen = opened(browser, path)
    said = page.evaluate(
        "async texts => { const model = await liveModel.load(); return texts.map(text => model.translate(text)); }",
        texts,
    )
    translator = Translator(model, tokenizer, tokenizer)
    assert [each["translation"] for each in said] == translator.translate(texts, beam_size=1)
    looks = translator.attention(texts[0])
    for kind in ("encoder", "cross"):
        ours = torch.tensor(said[0]["looks"][kind], dtype=torch.float32)  # (layers, heads, query, key)
        torch.testing.assert_close(ours, getattr(looks, kind), rtol=0, atol=1e-4)
    for row, keys in enumerate(said[0]["looks"]["decoder"][0][2]):
        torch.testing.assert_close(
            torch.tensor(keys, dtype=torch.float32), looks.decoder[0, 2, row, : row + 1], rtol=0, atol=1e-4
        )
    assert seen == [path.as_uri()]  # not one request, error or complaint
    page.context.close()


@pytest.mark.browser
@pytest.mark.parametrize(("width", "theme"), [(1280, "light"), (390, "dark")])
def test_the_page_is_used_by_keyboard_and_axe_finds_nothing(browser, built_in, width, theme):
    path, model, tokenizer = built_in
    page, _ = opened(browser, path, width, theme)
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    translation = Translator(model, tokenizer, tokenizer).translate(["I closed the windows."], beam_size=1)[0]
    expect(page.locator("output")).to_have_text(translation)
    page.focus("#step")
    expect(page.locator(".read b")).to_have_text("begin")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    expect(page.locator(".read b")).to_have_text("begin Ho chiuso")
    expect(page.locator("ol.likely li").first).to_contain_text("le")
    expect(page.locator("tr.chosen th")).to_have_text("le")
    page.focus("#kind")
    page.keyboard.press("ArrowDown")
    page.focus("#head")
    page.keyboard.press("ArrowDown")
    expect(page.locator("caption")).to_have_text("The decoder at itself, layer 1, head 1")
    rows = page.locator(".map tbody tr").evaluate_all(
        "rows => rows.map(row => [...row.cells].map(cell => cell.textContent))"
    )
    assert [sum(bool(cell) for cell in row[1:]) for row in rows] == list(range(1, len(rows) + 1))
    assert all(math.isclose(sum(float(cell or 0) for cell in row[1:]), 1, abs_tol=0.05) for row in rows)
    page.locator("summary").click()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    found = Axe().run(page).response["violations"]
    assert not [(rule["id"], [node["html"][:160] for node in rule["nodes"][:3]]) for rule in found]
    page.fill("#sentence", "")
    page.locator("#sentence").press("Enter")
    expect(page.locator("p[role=status]")).to_have_text("Write a sentence first.")
    page.context.close()


def test_the_page_of_the_built_in_translator_is_small_enough_to_send(built_in):
    assert built_in[0].stat().st_size < 2_000_000


def test_a_checkpoint_becomes_a_page_on_the_command_line_and_a_wrong_name_is_said(tmp_path, capsys):
    tokenizer = WordTokenizer.build(lines())
    save_checkpoint(tmp_path, model_of(tokenizer.size), tokenizer, tokenizer, NOTES)
    command = ["export", "--format", "page", str(tmp_path), "-o"]
    assert command_line.main([*command, str(tmp_path / "page.html")]) == 0
    assert "window.liveModelWeights" in (tmp_path / "page.html").read_text("utf-8")
    assert command_line.main([*command, str(tmp_path / "folder")]) == 2
    assert "output: expected a file such as translator.html" in capsys.readouterr().err


def test_two_tokenizers_are_refused_by_name(tmp_path):
    tokenizer, other = WordTokenizer.build(lines()), WordTokenizer.build(["the cat"])
    with pytest.raises(ValueError, match="tokenizer: expected one for both languages"):
        save_page(model_of(tokenizer.size), tokenizer, other, tmp_path / "page.html", NOTES)
