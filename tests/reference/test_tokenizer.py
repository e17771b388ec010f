"""Encoding then decoding a line gives the line."""

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer_ref.special_tokens import EOS, PAD, SPECIAL_TOKENS, UNK
from transformer_ref.text.lines import is_blank, one_line
from transformer_ref.text.tokenizer import JOINER, SubwordTokenizer, WordTokenizer, tokenizer_from_json

LINES = ["L'amico (bello) è qui.", "The boy's window isn't open: 3,50 euro...", "ciao  ciao , l' amico_x"]
LETTERS = sorted(set("".join(LINES)))
known_text = st.text(LETTERS, max_size=30)
any_text = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)

word_tokenizer = WordTokenizer.build(LINES)
subword_tokenizer = SubwordTokenizer.learn(LINES, size=300)
both = pytest.mark.parametrize("tokenizer", [word_tokenizer, subword_tokenizer], ids=["word", "subword"])


def single_spaced(text):
    return "" if is_blank(text) else unicodedata.normalize("NFC", " ".join(text.split()))


@both
@given(text=known_text)
def test_encode_then_decode_is_the_text(tokenizer, text):
    assert tokenizer.decode(tokenizer.encode(text)) == single_spaced(text)


@given(any_text)
def test_subwords_know_every_text(text):
    assert subword_tokenizer.decode(subword_tokenizer.encode(text)) == single_spaced(text)


chunks = st.sampled_from(["don't", "12ab", "_x_", "--a's", "'tis", "\u0301e", "e\u0301", "…", "\u3000", "a", "\x1f"])


@given(any_text | st.lists(chunks).map(" ".join) | st.lists(chunks).map("".join))
def test_cutting_at_white_space_first_gives_the_library_s_ids_of_the_whole_line(text):
    library = subword_tokenizer._library_tokenizer.encode(" ".join(text.split())).ids
    expected = [] if is_blank(text) else [id + len(SPECIAL_TOKENS) for id in library]
    assert subword_tokenizer.encode(text) == expected == subword_tokenizer.encode(text)  # kept from the first time


@both
def test_what_a_tokenizer_keeps_of_words_is_bounded(tokenizer, monkeypatch):
    monkeypatch.setattr("transformer_ref.text.tokenizer.MOST_KNOWN", 30)
    line = "uno due tre quattro cinque uno"
    assert tokenizer.encode(line) == tokenizer_from_json(tokenizer.to_json()).encode(line)
    assert 1 <= len(tokenizer._known) <= 3
    monkeypatch.setattr("transformer_ref.text.tokenizer.MOST_KNOWN", 100)
    for start in range(40):  # a line without spaces is a chunk of many ids
        chunk = "".join(chr(0x4E00 + start + place) for place in range(20))
        assert tokenizer.encode(chunk) == tokenizer_from_json(tokenizer.to_json()).encode(chunk)
        assert sum(map(len, tokenizer._known.values())) <= 100


@both
@given(text=any_text)
def test_no_text_spells_a_special_token_other_than_unk(tokenizer, text):
    for line in (text, "<pad> <bos> <eos> <unk>" + text):
        assert set(tokenizer.encode(line)) <= {UNK, *range(len(SPECIAL_TOKENS), tokenizer.size)}


@pytest.mark.parametrize("text", ["caf\udce9 nero", " \udcff", "\ud83d"])
def test_half_a_character_is_refused_in_words_by_the_subwords(text):
    with pytest.raises(ValueError, match=r"text: expected text that UTF-8 can hold, got '.u"):
        subword_tokenizer.encode(text)
    with pytest.raises(ValueError, match=r"lines: expected text that UTF-8 can hold, got '.u"):
        SubwordTokenizer.learn(["uno", text], 300)


@both
@pytest.mark.parametrize("line", LINES)
def test_json_brings_the_same_tokenizer_back(tokenizer, line):
    restored = tokenizer_from_json(tokenizer.to_json())
    assert restored.encode(line) == tokenizer.encode(line)
    assert (restored.size, restored.to_json()) == (tokenizer.size, tokenizer.to_json())


@both
def test_decoding_stops_at_eos_and_ignores_padding(tokenizer):
    ids = tokenizer.encode("ciao ciao")
    assert tokenizer.decode([*ids, EOS, *ids, PAD]) == "ciao ciao"
    assert tokenizer.decode([PAD, EOS]) == ""


@both
def test_an_empty_line_has_no_ids(tokenizer):
    assert tokenizer.encode("  ") == []


def tokens_of(text):
    return [word_tokenizer.vocabulary.tokens[id] for id in word_tokenizer.encode(text)]


def test_elision_and_punctuation_detach_and_leave_the_words_alone():
    assert tokens_of("L'amico qui") == ["L'" + JOINER, "amico", "qui"]
    assert tokens_of("(bello) qui.") == ["(" + JOINER, "bello", JOINER + ")", "qui", JOINER + "."]


def test_a_word_the_vocabulary_lacks_is_spelled():
    assert tokens_of("bel") == ["b" + JOINER, "e" + JOINER, "l"]


def test_a_joiner_in_the_text_counts_as_white_space():
    assert tokens_of(f"bello{JOINER}qui {JOINER}") == ["bello", "qui"]


def test_the_first_word_of_a_line_is_cut_like_any_other():
    assert subword_tokenizer.encode("ciao ciao") == 2 * subword_tokenizer.encode("ciao")


def test_case_is_kept():
    assert word_tokenizer.decode(word_tokenizer.encode("Ciao ciao")) != "ciao ciao"


def test_a_rare_word_is_spelled_from_characters_that_are_all_known():
    tokenizer = WordTokenizer.build(["uno due due"], minimum_count=2)
    assert UNK not in tokenizer.encode("uno")
    assert tokenizer.decode(tokenizer.encode("uno due")) == "uno due"


def test_a_character_the_vocabulary_lacks_is_unk():
    assert word_tokenizer.encode("☃") == [UNK]


def test_too_small_a_size_is_refused():
    with pytest.raises(ValueError, match="size: expected at least 260"):
        SubwordTokenizer.learn(LINES, size=259)


def test_the_size_counts_every_id_and_is_not_exceeded():
    tokenizer = SubwordTokenizer.learn(["ab ab ab abc abcd"] * 9, size=262)
    assert tokenizer.size == 262
    assert max(tokenizer.encode("abcd ab ☃")) < 262


def test_an_unknown_kind_is_refused():
    with pytest.raises(ValueError, match='kind: expected "word", "subword" or "pieces", got "letters"'):
        tokenizer_from_json('{"kind": "letters"}')


INVISIBLE = ["\u200b", "\ufeff", "\u00ad", "\u00a0", "\x00\x07", "\u200e \u2060", "\ufe0f\u034f", "\u3164", "\u2800"]


@both
@pytest.mark.parametrize("line", INVISIBLE)
def test_a_line_of_invisible_characters_is_empty(tokenizer, line):
    assert is_blank(line) and tokenizer.encode(line) == []
    assert not is_blank(line + "a") and tokenizer.encode(line + "a")


@pytest.mark.parametrize("learned_in", ["NFC", "NFD"])
@pytest.mark.parametrize("kind", [WordTokenizer.build, lambda lines: SubwordTokenizer.learn(lines, 300)])
def test_composed_and_decomposed_letters_are_the_same_text(kind, learned_in):
    tokenizer = kind([unicodedata.normalize(learned_in, "perché è così però") for _ in range(9)])
    for line in ("perché", "è così", "però sì"):
        composed, decomposed = (unicodedata.normalize(form, line) for form in ("NFC", "NFD"))
        assert tokenizer.encode(composed) == tokenizer.encode(decomposed)
    assert tokenizer.decode(tokenizer.encode(unicodedata.normalize("NFD", "perché"))) == "perché"


def test_a_tokenizer_saved_without_normalization_reads_as_it_did():
    for tokenizer in (word_tokenizer, subword_tokenizer):
        old = json.loads(tokenizer.to_json())
        old.pop("normalization", None)
        old.get("library", {})["normalizer"] = None
        restored = tokenizer_from_json(json.dumps(old))
        assert restored.encode("perche\u0301") != tokenizer.encode("perche\u0301")
        assert restored.encode("L'amico è qui.") == tokenizer.encode("L'amico è qui.")
        assert tokenizer_from_json(restored.to_json()).encode("e\u0301") == restored.encode("e\u0301")


@given(any_text)
def test_a_text_on_one_line_has_no_line_end(text):
    assert len(one_line(text).splitlines()) <= 1
    assert one_line(one_line(text)) == one_line(text)
