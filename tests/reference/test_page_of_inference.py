"""Page 11's step-by-step code agrees with the package's fast code and with sacreBLEU."""

import math
import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest
import sacrebleu
import torch
from drawn import seeds, tiny_config, tiny_model
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted_model import ScriptedModel, random_script

from transformer_ref.data.batching import pad_sequences
from transformer_ref.data.grammar.corpora import build_corpus
from transformer_ref.decoding.beam_search import beam_search
from transformer_ref.live_model import read_weights, unpack

PAGE = (Path(__file__).resolve().parents[2] / "book" / "11_inference.md").read_text(encoding="utf-8")
PAD, BOS, EOS, VOCABULARY = 0, 1, 2, 5
exponents = st.sampled_from([0.0, 0.6, 1.0, 1.4])


def of_the_page(*names: str) -> dict:
    """Run only the cells of the page that define these names."""
    space = {"math": math, "Counter": Counter}
    for name in names:
        (cell,) = [
            cell
            for cell in re.findall(r"^```{code-cell} python\n(.*?)^```$", PAGE, re.M | re.S)
            if f"def {name}(" in cell
        ]
        exec(re.sub(r"^(?:print|for|mine|missing|ours|reference|written)\b.*\Z", "", cell, flags=re.M | re.S), space)
    return space


PAGE_SAYS = of_the_page("search", "grams", "bleu")
search, END = PAGE_SAYS["search"], PAGE_SAYS["END"]


def assert_same(found, short):
    assert [one.ids for one in found] == [
        [BOS, *(EOS if word == END else word for word in words)] for _, words in short
    ]
    assert [one.score for one in found] == pytest.approx([score for score, _ in short], rel=1e-4)


def next_logs_of(model, source):
    """Log-probabilities for the page's search, from a model of the package: token ids, `END` for the last one."""
    encoded = model.encode(source)

    @cache
    def row(ids):
        hidden = model.decode(torch.tensor([[BOS, *ids]]), encoded).hidden[:, -1]
        logits = model.logits(hidden)[0]
        precise = torch.promote_types(logits.dtype, torch.float32)
        logs = logits.log_softmax(-1, dtype=precise).tolist()
        return [(END if id == EOS else id, log) for id, log in enumerate(logs) if id != PAD]

    return lambda words: row(tuple(words))


@given(seeds, exponents, st.integers(1, 6), st.integers(1, 7))
def test_the_fast_search_finds_on_scripted_models_what_the_page_s_short_one_finds(seed, exponent, k, limit):
    model = ScriptedModel(random_script(seed, VOCABULARY), tiny_config(target_vocabulary=VOCABULARY))
    source = torch.tensor([[4, 7]])
    (found,) = beam_search(model, source, k, limit, exponent)
    assert_same(found, search(next_logs_of(model, source), k, limit, exponent))


@settings(max_examples=8)
@given(seeds, exponents, st.integers(1, 4), st.booleans())
@torch.no_grad()
def test_the_fast_search_finds_on_transformers_what_the_page_s_short_one_finds(seed, exponent, k, norm_first):
    model = tiny_model(seed, norm_first=norm_first, target_vocabulary=7, decoder_layers=2)
    source = torch.tensor([[3, 5, 4]])
    (found,) = beam_search(model, source, k, 6, exponent)
    assert_same(found, search(next_logs_of(model, source), k, 6, exponent))


@torch.no_grad()
def test_the_fast_search_finds_on_the_trained_model_what_the_page_s_short_one_finds():
    model, tokenizer = unpack(read_weights())
    for sentence, exponent in [("I want to sleep.", 0.0), ("She does not know.", 1.0)]:
        source = torch.tensor([[*tokenizer.encode(sentence), EOS]])
        (found,) = beam_search(model, source, 3, 6, exponent)
        assert_same(found, search(next_logs_of(model, source), 3, 6, exponent))


def bleu_of_the_page(written: list[list[str]], references: list[list[str]]) -> float:
    """The page's counts of each pair, added up, in the page's formula."""
    matches, totals = [0] * 4, [0] * 4
    for ours, theirs in zip(written, references, strict=True):
        for n in range(1, 5):
            mine = PAGE_SAYS["grams"](ours, n)
            totals[n - 1] += mine.total()
            matches[n - 1] += mine.total() - (mine - PAGE_SAYS["grams"](theirs, n)).total()
    return PAGE_SAYS["bleu"](matches, totals, sum(map(len, written)), sum(map(len, references)))


words = st.lists(st.sampled_from("the cat sat on a mat".split()), min_size=1, max_size=12)


@given(st.lists(st.tuples(words, words), min_size=1, max_size=9))
def test_the_page_s_bleu_is_sacrebleu_s_on_any_corpus(pairs):
    written, references = ([list(side) for side in sides] for sides in zip(*pairs, strict=True))
    metric = sacrebleu.BLEU(tokenize="none", smooth_method="none")
    expected = metric.corpus_score([" ".join(one) for one in written], [[" ".join(one) for one in references]]).score
    assert bleu_of_the_page(written, references) == pytest.approx(expected)


@torch.no_grad()
def test_the_page_s_bleu_is_sacrebleu_s_on_translations_of_the_test_set():
    model, tokenizer = unpack(read_weights())
    pairs = build_corpus(train=0).test[:60]
    sources = pad_sequences([[*tokenizer.encode(pair.english), EOS] for pair in pairs], PAD)
    found = beam_search(model, sources, 2, 7, 0.0)  # seven tokens at most, so that there is something to fine
    written = [tokenizer.decode(hypotheses[-1].ids) for hypotheses in found]
    references = [pair.italian for pair in pairs]
    expected = sacrebleu.BLEU(tokenize="none", smooth_method="none").corpus_score(written, [references]).score
    assert 1 < expected < 99
    assert bleu_of_the_page([one.split() for one in written], [one.split() for one in references]) == pytest.approx(
        expected
    )
