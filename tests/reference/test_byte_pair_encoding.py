"""Merges are learned by count and applied in the order they were learned."""

from hypothesis import given
from hypothesis import strategies as st

from transformer_ref.text.byte_pair_encoding import END_OF_WORD, encode_word, learn_merges

CORPUS = {"low": 5, "lower": 2, "newest": 6, "widest": 3}
words = st.text("abc", min_size=1, max_size=6)
corpora = st.dictionaries(words, st.integers(1, 9), min_size=1, max_size=5)


@given(corpora, st.integers(0, 12), words)
def test_the_pieces_of_a_word_spell_the_word(corpus, merges, word):
    assert "".join(encode_word(word, learn_merges(corpus, merges))) == word + END_OF_WORD


@given(corpora, st.integers(0, 12))
def test_fewer_merges_are_the_beginning_of_more(corpus, merges):
    assert learn_merges(corpus, merges + 1)[:merges] == learn_merges(corpus, merges)


@given(corpora)
def test_with_merges_enough_each_word_of_the_corpus_is_one_piece(corpus):
    learned = learn_merges(corpus, 10_000)
    assert all(encode_word(word, learned) == [word + END_OF_WORD] for word in corpus)


@given(corpora, st.integers(2, 5))
def test_counting_the_corpus_several_times_changes_nothing(corpus, times):
    assert learn_merges({word: times * count for word, count in corpus.items()}, 8) == learn_merges(corpus, 8)


def test_the_ten_merges_of_the_worked_example():
    assert ["".join(pair) for pair in learn_merges(CORPUS, 10)] == [
        "es",
        "est",
        "est</w>",
        "lo",
        "low",
        "ew",
        "ewest</w>",
        "newest</w>",
        "low</w>",
        "dest</w>",
    ]


def test_of_equally_frequent_pairs_the_smaller_comes_first():
    assert learn_merges({"dc": 1, "ba": 1}, 2) == [("a", "</w>"), ("b", "a</w>")]


def test_repeated_letters_count_three_times_and_merge_twice():
    assert learn_merges({"aaaa": 1, "b": 2}, 1) == [("a", "a")]
    assert encode_word("aaaa", [("a", "a")]) == ["aa", "aa", "</w>"]
    assert encode_word("aaa", [("a", "a")]) == ["aa", "a", "</w>"]


def test_learning_stops_when_no_pair_is_left():
    assert learn_merges({"ab": 1}, 99) == [("a", "b"), ("ab", "</w>")]


def test_an_earlier_merge_comes_before_a_longer_piece():
    merges = [("b", "c"), ("a", "b"), ("ab", "c")]
    assert encode_word("abc", merges) == ["a", "bc", "</w>"]


def test_an_unseen_character_stays_a_piece_of_its_own():
    assert encode_word("lowx", learn_merges(CORPUS, 10)) == ["low", "x", "</w>"]
