"""The pieces of a SentencePiece model, by the `tokenizers` library: OPUS-MT's way from a line to ids and back.

A unigram model knows a log probability of each piece and cuts a line into the likeliest ones (Kudo 2018, section 3.2);
a low line is where a word began. Its file is a Protocol Buffers message, of which a few fields are used here:
https://github.com/google/sentencepiece/blob/master/src/sentencepiece_model.proto numbers them.
"""

import json
import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tokenizers import Regex, Tokenizer, models, normalizers

from transformer_ref.text.lines import expect_text, is_blank

LOW_LINE = "\u2581"  # stands for a space
PAD_PIECE, EOS_PIECE, UNK_PIECE = "<pad>", "</s>", "<unk>"  # as OPUS-MT calls them
PIECES, TRAINER, NORMALIZER = 1, 2, 3  # fields of the whole model
TEXT, SCORE, KIND = 1, 2, 3  # of a piece
NORMAL, UNKNOWN, OF_THE_USER = 1, 2, 4  # kinds of pieces
MODEL_TYPE, UNIGRAM, BYTE_FALLBACK = 3, 1, 35  # of the trainer
CHARACTERS, PREFIX, FEW_SPACES = 2, 3, 4  # of the normalizer
NO_TEXT = "\uffff"  # what the unknown piece is called, so that no text is taken for it
LANGUAGE = re.compile(r">>[^<>]+<<")  # a target language, which a model of several wants first


class PieceTokenizer:
    """Subwords of a SentencePiece model, with ids from a list, which languages with other subwords may share."""

    def __init__(self, library_tokenizer: Tokenizer, ids: Mapping[str, int]) -> None:
        for piece in (PAD_PIECE, EOS_PIECE, UNK_PIECE):
            if piece not in ids:
                raise ValueError(f"ids: expected one for {piece}, got none")
        if sorted(ids.values()) != list(range(len(ids))):
            raise ValueError(f"ids: expected 0 to {len(ids) - 1}, each once, got others")
        self._library_tokenizer, self._ids = library_tokenizer, dict(ids)
        self._pieces = sorted(ids, key=ids.__getitem__)
        self._special = {ids[piece] for piece in (PAD_PIECE, EOS_PIECE, UNK_PIECE)}

    @classmethod
    def read(cls, path: str | Path, ids: Mapping[str, int]) -> "PieceTokenizer":
        """Return the tokenizer of a SentencePiece file with these ids; raises ValueError for another type of model."""
        return cls(_unigram(Path(path)), ids)

    @property
    def size(self) -> int:
        """The number of ids, the special ones included."""
        return len(self._pieces)

    def encode(self, text: str) -> list[int]:
        """Return the ids of a line, without EOS; a piece without an id is UNK."""
        expect_text("text", text)
        language = LANGUAGE.match(text)
        if language and language[0] in self._ids:
            return [self._ids[language[0]], *self.encode(text[language.end() :])]
        pieces = self._library_tokenizer.encode(text).tokens if not is_blank(text) else []
        unknown = self._ids[UNK_PIECE]
        found = (self._ids.get(piece, unknown) for piece in pieces)
        return [unknown if id in self._special else id for id in found]  # no text spells a special token

    def decode(self, ids: Sequence[int]) -> str:
        """Return the line, up to the first EOS and without special tokens."""
        ids, eos = list(ids), self._ids[EOS_PIECE]
        ordinary = ids[: ids.index(eos)] if eos in ids else ids
        pieces = [self._pieces[id] for id in ordinary if id not in self._special]
        return "".join(pieces).replace(LOW_LINE, " ").removeprefix(" ")

    def tokens(self, ids: Sequence[int]) -> list[str]:
        """Return the text of each id, special tokens by their names."""
        return [self._pieces[id].replace(LOW_LINE, " ") for id in ids]

    def to_json(self) -> str:
        """Return the library's own description and the ids as JSON."""
        return json.dumps({"kind": "pieces", "library": json.loads(self._library_tokenizer.to_str()), "ids": self._ids})


def _unigram(path: Path) -> Tokenizer:
    """Return the library's tokenizer with the pieces of the SentencePiece model in a file."""
    try:
        whole = list(_fields(path.read_bytes()))
        pieces = [dict(_fields(value)) for number, value in whole if number == PIECES]
        trainer, normalizer = (
            {number: value for part, message in whole if part == wanted for number, value in _fields(message)}
            for wanted in (TRAINER, NORMALIZER)
        )
        kinds = [piece.get(KIND, NORMAL) for piece in pieces]
        scores = [struct.unpack("<f", piece.get(SCORE, bytes(4)))[0] for piece in pieces]
        scored = [
            (NO_TEXT if kind == UNKNOWN else piece[TEXT].decode(), score)
            for kind, piece, score in zip(kinds, pieces, scores, strict=True)
            if kind in (NORMAL, UNKNOWN)
        ]
        (unknown,) = (place for place, (text, _) in enumerate(scored) if text == NO_TEXT)
    except (ValueError, KeyError, IndexError, struct.error, AttributeError, TypeError) as error:
        raise ValueError(f"{path.name}: expected a SentencePiece model, got {path}, which is none") from error
    if trainer.get(MODEL_TYPE, UNIGRAM) != UNIGRAM or trainer.get(BYTE_FALLBACK) or OF_THE_USER in kinds:
        raise ValueError(
            f"{path.name}: expected a unigram model without bytes for unknown letters and without pieces "
            f"of a user's own, got another one in {path}"
        )
    tokenizer = Tokenizer(models.Unigram(scored, unk_id=unknown, byte_fallback=False))
    steps = [normalizers.Precompiled(normalizer[CHARACTERS])] if normalizer.get(CHARACTERS) else []
    if normalizer.get(FEW_SPACES, True):
        steps += [normalizers.Replace(Regex("^ +| +$"), ""), normalizers.Replace(Regex(" {2,}"), " ")]
    steps += [normalizers.Replace(" ", LOW_LINE)]
    if normalizer.get(PREFIX, True):
        steps += [normalizers.Prepend(LOW_LINE)]
    tokenizer.normalizer = normalizers.Sequence(steps)
    return tokenizer


def _fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield number and value of each field: an integer or bytes; raises IndexError for a truncated message."""
    place = 0

    def whole_number() -> int:
        nonlocal place
        total, shift = 0, 0
        while True:
            byte = message[place]
            place, total, shift = place + 1, total | (byte & 127) << shift, shift + 7
            if byte < 128:
                return total

    while place < len(message):
        number, form = divmod(whole_number(), 8)
        if form == 0:
            yield number, whole_number()
            continue
        length = {1: 8, 5: 4}[form] if form != 2 else whole_number()
        if place + length > len(message):
            raise IndexError(place)
        yield number, message[place : place + length]
        place += length
