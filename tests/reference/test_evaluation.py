"""Scores by hand where a hand can compute them, and sacreBLEU with its signature for the rest."""

import importlib.util
import math
import unicodedata
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer_ref.data.grammar.corpora import build_corpus
from transformer_ref.data.grammar.pairs import Pair, Sense
from transformer_ref.evaluation import (
    OF_LANGUAGE,
    TOKENIZE,
    bleu,
    chrf,
    exact_match,
    samples,
    sense_accuracy,
    shows_sense,
    tokenize_of,
    window_baseline,
    with_differences,
)

HOUSE = Sense("windows", "building", ("finestra", "finestre"), "house")
COMPUTER = Sense("windows", "device", ("Windows",), "computer")


@given(st.lists(st.booleans(), min_size=1, max_size=30))
def test_exact_match_is_the_share_of_equal_lines(equal):
    references = [f"frase {i}" for i in range(len(equal))]
    translations = [line if same else line + "." for line, same in zip(references, equal, strict=True)]
    assert exact_match(translations, references) == pytest.approx(sum(equal) / len(equal))


def test_exact_match_ignores_white_space_that_no_translation_can_have():
    assert exact_match(["Quoi ?", "a b", " c", "d e"], ["Quoi\u00a0?", "a  b ", "c", "de"]) == 0.75


def test_a_sense_is_shown_by_a_whole_word_with_its_capital():
    assert shows_sense("Ho chiuso le finestre.", HOUSE) and shows_sense("L'ho aperta: la finestra", HOUSE)
    assert shows_sense("Ho installato Windows.", COMPUTER)
    assert not shows_sense("Ho chiuso le finestrelle.", HOUSE) and not shows_sense("Ho installato windows.", COMPUTER)


def test_sense_accuracy_leaves_out_sentences_without_an_ambiguous_word():
    pairs = [Pair("a", "b", HOUSE), Pair("c", "d"), Pair("e", "f", COMPUTER), Pair("g", "h", HOUSE)]
    assert sense_accuracy(["le finestre", "niente", "il nuovo Windows", "Windows"], pairs) == pytest.approx(2 / 3)
    assert math.isnan(sense_accuracy(["niente"], [Pair("c", "d")]))


def test_the_window_baseline_reads_what_is_near():
    train = [Pair("For my computer I bought windows.", "", COMPUTER), Pair("I closed the windows.", "", HOUSE)]
    near = [Pair("They closed windows.", "", HOUSE), Pair("For her computer they bought windows.", "", COMPUTER)]
    assert window_baseline(train, near, width=4) == 1.0


def test_the_window_baseline_is_blind_to_what_is_far():
    far = "The {} , said a very old friend of mine , needs new windows ."
    train = [Pair(far.format(cue), "", sense) for cue, sense in (("computer", COMPUTER), ("house", HOUSE)) * 3]
    test = [Pair(far.format("computer"), "", COMPUTER), Pair(far.format("house"), "", HOUSE)]
    assert window_baseline(train, test, width=4) == 0.5
    assert window_baseline(train, test, width=20) == 1.0


def test_four_words_on_either_side_do_not_settle_the_senses_of_the_corpus():
    corpus = build_corpus(train=8_000, validation=0, test=300, held_out=300)
    assert window_baseline(corpus.train, corpus.test) < 0.8
    assert window_baseline(corpus.train, corpus.held_out) < 0.7
    assert window_baseline(corpus.train, corpus.test, width=40) > 0.9


def test_bleu_of_the_chapters_example():
    assert bleu(["the cat sat on mat"], ["the cat sat on the mat"]).score == pytest.approx(57.9, abs=0.05)


def test_scores_come_with_the_signature_that_says_how_they_were_computed():
    lines = ["Ho chiuso le finestre.", "Vedo una riva vicino al fiume."]
    for metric in (bleu, chrf):
        result = metric(lines, lines)
        assert result.score == pytest.approx(100) and "version:" in result.signature
    assert "tok:13a" in bleu(lines, lines).signature and "case:mixed" in bleu(lines, lines).signature


@pytest.mark.parametrize("metric", [exact_match, bleu, chrf, sense_accuracy])
def test_a_missing_translation_is_refused(metric):
    with pytest.raises(ValueError, match="translations: expected one for each of 2 references, got 1"):
        metric(["one"], ["one", "two"])


ALMOST = {  # translations that share half of their characters with their references, in scripts without spaces
    "zh": ("我关上了窗户。她去了河边的银行。", "我打开了窗户。她去了河边的学校。"),
    "ja": ("私は窓を閉めました。彼女は銀行へ行きました。", "私は窓を開けました。彼女は学校へ行きました。"),
    "th": ("ฉันปิดหน้าต่าง", "ฉันเปิดหน้าต่าง"),
}


@pytest.mark.parametrize("language", ALMOST)
def test_bleu_of_a_language_without_spaces_is_computed_by_its_own_words(language):
    translation, reference = ALMOST[language]
    name, _ = tokenize_of(language)
    result = bleu([translation], [reference], name)
    assert result.score > 30 and f"tok:{name}" in result.signature
    with pytest.warns(UserWarning, match="BLEU: expected references with spaces between words for tokenize '13a'"):
        assert bleu([translation], [reference]).score < 10


def test_a_language_with_spaces_is_scored_as_before_and_without_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for language, line in {
            "de": "Ein Mann läuft.",
            "el": "Ένας άντρας τρέχει.",
            "ru": "Он идёт.",
            "": "a b",
        }.items():
            assert tokenize_of(language) == ("13a", None)
            assert "tok:13a" in bleu([line], [line]).signature


@pytest.mark.parametrize("written", ["zh", "zh-Hans", "zh_TW", "ZH"])
def test_a_language_is_known_however_its_code_is_written(written):
    assert tokenize_of(written) == ("zh", None)


@pytest.mark.parametrize("language", ["ja", "ko"])
def test_where_a_library_is_missing_characters_are_counted_and_the_user_is_told(language, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    name, said = tokenize_of(language)
    assert name == "char" and f"sacrebleu[{language}]" in said and "--tokenize" in said
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: name)
    assert tokenize_of(language) == (OF_LANGUAGE[language], None)


def test_every_way_to_cut_is_one_that_sacrebleu_has():
    from sacrebleu.metrics.bleu import BLEU

    assert set(TOKENIZE) <= set(BLEU.TOKENIZERS) and set(OF_LANGUAGE.values()) <= set(TOKENIZE)
    with pytest.raises(ValueError, match="tokenize: expected one of 13a, .*, got 'words'"):
        bleu(["a"], ["a"], "words")


@pytest.mark.parametrize("metric", [exact_match, bleu, chrf])
def test_composed_and_decomposed_references_score_alike(metric):
    translations, references = ["Perché è così?"], ["Perché è così, però?"]
    decomposed = [unicodedata.normalize("NFD", line) for line in references]
    one, other = metric(translations, references), metric(translations, decomposed)
    if metric is exact_match:
        assert metric(references, decomposed) == 1
        return
    assert one.score == other.score
    assert "norm:NFC" not in one.signature and other.signature == one.signature + "|norm:NFC"


def test_words_that_only_one_text_has_are_in_brackets():
    reference, translation = "Ein Mann in einem blauen Hemd .", "Ein Mann mit blauen Hemd steht ."
    assert with_differences(reference, translation) == (
        "Ein Mann [in einem] blauen Hemd .",
        "Ein Mann [mit] blauen Hemd [steht] .",
    )
    assert with_differences("the same", "the same") == ("the same", "the same")
    assert with_differences("", "more words") == ("", "[more words]")


words = st.lists(st.sampled_from("a b c d".split()), max_size=8).map(" ".join)


@given(words, words)
def test_without_the_brackets_both_texts_are_as_they_were(one, other):
    shown = with_differences(one, other)
    assert tuple(text.replace("[", "").replace("]", "") for text in shown) == (one, other)


def test_samples_go_from_the_worst_to_the_best_line():
    references = [f"line number {n} is here" for n in range(30)]
    translations = [" ".join(text.split()[: n // 6 + 1]) for n, text in enumerate(references)]
    found = samples(references, translations, references, 4)
    assert len(found) == 4 and [each.chrf for each in found] == sorted(each.chrf for each in found)
    assert found[0].line == 1 and found[-1].translation == found[-1].reference == references[found[-1].line - 1]
    assert len(samples(references[:2], translations[:2], references[:2], 10)) == 2
    assert samples(references, translations, references, 1)[0].line == 1
    with pytest.raises(ValueError, match="count: expected at least 1, got 0"):
        samples(references, translations, references, 0)
