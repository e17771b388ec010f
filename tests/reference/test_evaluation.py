"""Scores by hand where a hand can compute them, and sacreBLEU with its signature for the rest."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer_ref.data.grammar import build_corpus
from transformer_ref.data.sentences import Pair, Sense
from transformer_ref.evaluation import bleu, chrf, exact_match, sense_accuracy, shows_sense, window_baseline

HOUSE = Sense("windows", "building", ("finestra", "finestre"), "house")
COMPUTER = Sense("windows", "device", ("Windows",), "computer")


@given(st.lists(st.booleans(), min_size=1, max_size=30))
def test_exact_match_is_the_share_of_equal_lines(equal):
    references = [f"frase {i}" for i in range(len(equal))]
    translations = [line if same else line + "." for line, same in zip(references, equal, strict=True)]
    assert exact_match(translations, references) == pytest.approx(sum(equal) / len(equal))


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
