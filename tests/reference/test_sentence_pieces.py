"""A line is cut into the likeliest pieces, as SentencePiece cuts it; they become ids and the line again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sentence_piece_file import field, sentence_piece_model

from transformer_ref.text.sentence_pieces import PieceTokenizer
from transformer_ref.text.tokenizer import tokenizer_from_json

SCORES = {"▁": -3.0, "a": -2.5, "b": -2.75, "▁a": -3.5, "ab": -4.0, "▁ab": -5.75, "ba": -5.5, "aab": -6.125, "c": -9.0}
IDS = {"</s>": 0, "<unk>": 1, **{piece: place for place, piece in enumerate(SCORES, 2)}, ">>ita<<": 11, "<pad>": 12}
known_text = st.text("aabbc ", max_size=9)


def tokenizer(tmp_path_factory, scores=SCORES, ids=IDS, **settings):
    path = tmp_path_factory.mktemp("pieces") / "source.spm"
    path.write_bytes(sentence_piece_model([("<unk>", 0.0), ("</s>", 0.0), *scores.items()], **settings))
    return PieceTokenizer.read(path, ids)


@pytest.fixture(scope="module")
def pieces(tmp_path_factory):
    return tokenizer(tmp_path_factory)


def every_cut(text):
    """Yield each way to cut a text into pieces that are known."""
    if not text:
        yield []
    for length in range(1, len(text) + 1):
        if text[:length] in SCORES:
            yield from ([text[:length], *rest] for rest in every_cut(text[length:]))


@given(text=known_text)
def test_of_all_cuts_the_likeliest_is_taken(text, pieces):
    found = [piece.replace(" ", "▁") for piece in pieces.tokens(pieces.encode(text))]
    cuts = list(every_cut("▁" + "▁".join(text.split()))) if text.strip() else [[]]
    assert "".join(found) == "".join(cuts[0])
    assert sum(map(SCORES.get, found)) == max(sum(map(SCORES.get, cut)) for cut in cuts)


@given(text=known_text)
def test_encode_then_decode_is_the_text(text, pieces):
    assert pieces.decode([*pieces.encode(text), 0, 2, 3]) == " ".join(text.split())
    assert pieces.decode([12, *pieces.encode(text), 12]) == " ".join(text.split())


@given(text=st.text(max_size=12))
def test_no_text_spells_a_special_token_other_than_unk(text, pieces):
    for line in (text, "<pad></s><unk>" + text, "</s> \uffff" + text):
        assert not {0, 12} & set(pieces.encode(line))


def test_letters_that_no_piece_has_are_one_unknown_and_a_piece_without_an_id_is_another(pieces, tmp_path_factory):
    assert pieces.encode("a窓窓b") == [IDS["▁a"], 1, IDS["b"]]
    fewer = {"</s>": 0, "<unk>": 1, "▁": 2, "a": 3, "<pad>": 4}
    assert tokenizer(tmp_path_factory, ids=fewer).encode("ab") == [1]  # "▁ab", which the list lacks


def test_a_language_that_the_list_knows_is_a_token_of_its_own(pieces):
    assert pieces.encode(">>ita<< ab") == [11, *pieces.encode("ab")]
    assert pieces.encode(">>deu<< ab")[0] != 11


@given(text=known_text)
def test_json_brings_the_same_tokenizer_back(text, pieces):
    restored = tokenizer_from_json(pieces.to_json())
    assert (restored.encode(text), restored.size, restored.to_json()) == (pieces.encode(text), 13, pieces.to_json())


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"kind": 2}, "source.spm: expected a unigram model"),
        ({"trainer": field(35, 1)}, "source.spm: expected a unigram model without bytes"),
        ({"ids": {"a": 0}}, "ids: expected one for <pad>, got none"),
        ({"ids": {"</s>": 0, "<unk>": 1, "<pad>": 7}}, "ids: expected 0 to 2, each once, got others"),
    ],
)
def test_what_we_cannot_cut_as_its_library_does_is_refused(settings, words, tmp_path_factory):
    with pytest.raises(ValueError, match=words):
        tokenizer(tmp_path_factory, **settings)


@pytest.mark.parametrize("content", [b"", b"no model at all", sentence_piece_model([("<unk>", 0.0)])[:-3], b"\xff" * 9])
def test_a_file_of_something_else_is_one_sentence(content, tmp_path):
    (tmp_path / "source.spm").write_bytes(content)
    with pytest.raises(
        ValueError, match=r"source.spm: expected a SentencePiece model, got .*source.spm, which is none"
    ):
        PieceTokenizer.read(tmp_path / "source.spm", IDS)
