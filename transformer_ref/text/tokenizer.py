"""A line of text becomes ids, and ids become the line again (chapter 02).

Two tokenizers share one interface: `WordTokenizer`, which a reader can follow word by word, and
`SubwordTokenizer`, for real corpora; `sentence_pieces` has a third, for models trained elsewhere. Runs of white space
count as one space, and a line of invisible characters is empty; apart from that, decoding what was encoded gives the
text back, in Unicode's form NFC. All are saved as JSON in a checkpoint; a tokenizer saved without a normalization keeps
doing without.
"""

import json
import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import chain
from typing import Protocol

import tokenizers

from transformer_ref.special_tokens import EOS, SPECIAL_TOKENS
from transformer_ref.text.lines import composed, expect_text, is_blank, list_of_lines, single_spaced
from transformer_ref.text.sentence_pieces import PieceTokenizer
from transformer_ref.text.vocabulary import Vocabulary

NFC = "NFC"
MOST_KNOWN = 2**22  # ids that a tokenizer keeps for known chunks of text, some 200 MB at most
OF_A_CHUNK = 6  # how many ids need about the memory of a chunk's text, list and entry
JOINER = "\uffed"  # a small black square, which is where two neighbors had no space between them


class Tokenizer(Protocol):
    """The interface of all tokenizers. The caller adds BOS and EOS."""

    @property
    def size(self) -> int:
        """The number of ids, the special ones included."""

    def encode(self, text: str) -> list[int]:
        """Return the ids of a line, without BOS and EOS."""

    def decode(self, ids: Sequence[int]) -> str:
        """Return the line, up to the first EOS and without special tokens."""

    def tokens(self, ids: Sequence[int]) -> list[str]:
        """Return the text of each id, special tokens by their names."""

    def to_json(self) -> str:
        """Return the text that `tokenizer_from_json` reads."""


class WordTokenizer:
    """One token per word or punctuation mark; an Italian elision ("l'") is a word of its own.

    A joiner marks where a token touched its neighbor: "l'amico." is "l'■", "amico", "■.". A word that is not in the
    vocabulary is spelled, character by character, and a character that is not in it is UNK.

    normalization: "NFC", which `build` chooses, or None for none.
    """

    def __init__(self, vocabulary: Vocabulary, normalization: str | None = None) -> None:
        if normalization not in (None, NFC):
            raise ValueError(f'normalization: expected "{NFC}" or None, got {normalization!r}')
        self.vocabulary, self.normalization = vocabulary, normalization
        self._known = _KnownChunks(self._ids_of)

    @classmethod
    def build(cls, lines: Iterable[str], minimum_count: int = 1) -> "WordTokenizer":
        """Return a tokenizer that knows each word seen `minimum_count` times, and every character seen.

        Raises TypeError for one string instead of lines.
        """
        sentences = [_words(composed(line)) for line in list_of_lines("lines", lines)]
        words = Vocabulary.build(sentences, minimum_count).tokens[len(SPECIAL_TOKENS) :]
        distinct = {word for sentence in sentences for word in sentence}
        characters = sorted({character for word in distinct for character in word} - {JOINER})
        spelling = [JOINER, *characters, *(character + JOINER for character in characters)]
        return cls(Vocabulary(list(dict.fromkeys([*words, *spelling]))), NFC)

    @property
    def size(self) -> int:
        """The number of ids, the special ones included."""
        return len(self.vocabulary)

    def encode(self, text: str) -> list[int]:
        """Return the ids of a line, without BOS and EOS."""
        text = composed(text) if self.normalization else text
        return self._known.joined(text.replace(JOINER, " "))

    def _ids_of(self, chunk: str) -> list[int]:
        pieces: list[str] = []
        for word in _words(chunk):
            pieces += [word] if word in self.vocabulary else _spelled(word)
        return self.vocabulary.encode(pieces)

    def decode(self, ids: Sequence[int]) -> str:
        """Return the line, up to the first EOS and without special tokens."""
        return re.sub(f" ?{JOINER} ?", "", " ".join(self.vocabulary.decode(ids)))

    def tokens(self, ids: Sequence[int]) -> list[str]:
        """Return the text of each id, special tokens by their names."""
        return [self.vocabulary.tokens[id] for id in ids]

    def to_json(self) -> str:
        """Return the vocabulary, and the normalization if there is one, as JSON."""
        normalization = {"normalization": self.normalization} if self.normalization else {}
        return json.dumps({"kind": "word", "tokens": self.vocabulary.tokens[len(SPECIAL_TOKENS) :], **normalization})


class SubwordTokenizer:
    """Byte-level byte-pair encoding by the `tokenizers` library: any text, any script, nothing unknown.

    The library's ids are shifted by the four special ones, so no text can spell a special token.
    """

    SMALLEST = len(SPECIAL_TOKENS) + 256  # ids: the special tokens and the bytes

    def __init__(self, library_tokenizer: tokenizers.Tokenizer) -> None:
        self._library_tokenizer = library_tokenizer
        self._known = _KnownChunks(self._ids_of)

    @classmethod
    def learn(cls, lines: Iterable[str], size: int) -> "SubwordTokenizer":
        """Return a tokenizer with at most `size` ids, learned from the lines.

        Raises ValueError when `size` has no room for the special tokens and the 256 bytes.
        """
        alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
        if size < cls.SMALLEST:
            raise ValueError(f"size: expected at least {cls.SMALLEST} (special tokens and bytes), got {size}")
        library_tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
        library_tokenizer.normalizer = tokenizers.normalizers.NFC()
        library_tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=True)
        library_tokenizer.decoder = tokenizers.decoders.ByteLevel()
        trainer = tokenizers.trainers.BpeTrainer(
            vocab_size=size - len(SPECIAL_TOKENS), initial_alphabet=alphabet, show_progress=False
        )
        library_tokenizer.train_from_iterator(map(single_spaced, list_of_lines("lines", lines)), trainer)
        return cls(library_tokenizer)

    @property
    def size(self) -> int:
        """The number of ids, the special ones included."""
        return len(SPECIAL_TOKENS) + self._library_tokenizer.get_vocab_size()

    def encode(self, text: str) -> list[int]:
        """Return the ids of a line, without BOS and EOS."""
        expect_text("text", text)
        return self._known.joined(text)

    def _ids_of(self, chunk: str) -> list[int]:
        return [id + len(SPECIAL_TOKENS) for id in self._library_tokenizer.encode(chunk).ids]

    def decode(self, ids: Sequence[int]) -> str:
        """Return the line, up to the first EOS and without special tokens."""
        ids = list(ids)
        ordinary = ids[: ids.index(EOS)] if EOS in ids else ids
        shifted = [id - len(SPECIAL_TOKENS) for id in ordinary if id >= len(SPECIAL_TOKENS)]
        return self._library_tokenizer.decode(shifted).removeprefix(" ")

    def tokens(self, ids: Sequence[int]) -> list[str]:
        """Return the text of each id, special tokens by their names. A part of a letter has no text of its own."""
        special = len(SPECIAL_TOKENS)
        return [SPECIAL_TOKENS[id] if id < special else self._library_tokenizer.decode([id - special]) for id in ids]

    def to_json(self) -> str:
        """Return the library's own description as JSON."""
        return json.dumps({"kind": "subword", "library": json.loads(self._library_tokenizer.to_str())})


def tokenizer_from_json(text: str) -> Tokenizer:
    """Return the tokenizer that `to_json` described; raises ValueError for a kind that does not exist."""
    description = json.loads(text)
    if description["kind"] == "word":
        return WordTokenizer(Vocabulary(description["tokens"]), description.get("normalization"))
    if description["kind"] == "subword":
        return SubwordTokenizer(tokenizers.Tokenizer.from_str(json.dumps(description["library"])))
    if description["kind"] == "pieces":
        return PieceTokenizer(tokenizers.Tokenizer.from_str(json.dumps(description["library"])), description["ids"])
    raise ValueError(f'kind: expected "word", "subword" or "pieces", got "{description["kind"]}"')


class _KnownChunks(dict[str, list[int]]):
    """A cache of the ids of chunks between white space; most chunks of a text were seen before."""

    def __init__(self, ids_of: Callable[[str], list[int]]) -> None:
        super().__init__()
        self._ids_of, self._kept = ids_of, 0  # in ids

    def __missing__(self, chunk: str) -> list[int]:
        ids = self._ids_of(chunk)
        size = OF_A_CHUNK + len(ids)
        if self._kept + size > MOST_KNOWN:
            self.clear()
            self._kept = 0
        if size <= MOST_KNOWN:
            self[chunk] = ids
            self._kept += size
        return ids

    def joined(self, text: str) -> list[int]:
        """Return the ids of all chunks of a text, since no token crosses white space; none if blank."""
        return [] if is_blank(text) else list(chain.from_iterable(map(self.__getitem__, text.split())))


def _words(text: str) -> list[str]:
    """Return words and punctuation marks; a joiner shows where a mark, or an elided word, touched its neighbor."""
    return [word for chunk in text.replace(JOINER, " ").split() for word in _words_of_chunk(chunk)]


@lru_cache(maxsize=2**16)  # most text consists of few chunks that occur again and again
def _words_of_chunk(chunk: str) -> tuple[str, ...]:
    """Return the words and punctuation marks of a text without white space."""
    words: list[str] = []
    for position, word in enumerate(re.findall(r"\w+['’]?|[^\w]", chunk)):
        if position and not word[0].isalnum():
            words.append(JOINER + word)
        elif position:
            words[-1] += JOINER
            words.append(word)
        else:
            words.append(word)
    return tuple(words)


def _spelled(word: str) -> list[str]:
    """Return the characters of a word, joined to each other, with the word's own joiners at its ends."""
    characters = word.strip(JOINER)
    spelled = [character + JOINER for character in characters]
    if not word.endswith(JOINER):
        spelled[-1] = characters[-1]
    return [JOINER, *spelled] if word.startswith(JOINER) else spelled
