"""Tokens and their ids."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer_ref.special_tokens import BOS, EOS, PAD, SPECIAL_TOKENS, UNK
from transformer_ref.text.vocabulary import Vocabulary

sentences = st.lists(st.lists(st.text("abxyz", min_size=1, max_size=3), max_size=7), max_size=6)


@given(sentences)
def test_encode_then_decode_is_the_sentence(drawn):
    vocabulary = Vocabulary.build(drawn)
    for sentence in drawn:
        assert vocabulary.decode(vocabulary.encode(sentence)) == sentence


@given(sentences, st.randoms())
def test_the_order_of_the_sentences_changes_no_id(drawn, random):
    shuffled = list(drawn)
    random.shuffle(shuffled)
    assert Vocabulary.build(shuffled).tokens == Vocabulary.build(drawn).tokens


def test_the_special_tokens_have_the_first_ids():
    assert Vocabulary(["windows"]).tokens == ("<pad>", "<bos>", "<eos>", "<unk>", "windows")
    assert [SPECIAL_TOKENS[id] for id in (PAD, BOS, EOS, UNK)] == list(SPECIAL_TOKENS)


def test_frequent_tokens_come_first_and_ties_by_alphabet():
    assert Vocabulary.build([["b", "c", "b"], ["a", "c", "d"]]).tokens[4:] == ("b", "c", "a", "d")


def test_a_token_needs_the_minimum_count_and_no_more():
    assert Vocabulary.build([["a", "b", "a"], ["b", "c"]], minimum_count=2).tokens[4:] == ("a", "b")


def test_a_special_token_in_the_text_is_not_added_again():
    assert len(Vocabulary.build([["<eos>", "a"]])) == 5


def test_an_unknown_token_becomes_unk():
    assert Vocabulary(["a"]).encode(["a", "zebra"]) == [4, UNK]


def test_decoding_stops_at_eos_and_drops_special_tokens():
    assert Vocabulary(["a", "b"]).decode([BOS, 4, UNK, 5, EOS, 4, PAD]) == ["a", "b"]


def test_a_repeated_token_is_refused():
    with pytest.raises(ValueError, match="tokens: expected each token once, got 'a' more than once"):
        Vocabulary(["a", "b", "a"])
