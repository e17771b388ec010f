"""Tokens and their ids (chapter 02)."""

from collections import Counter
from collections.abc import Iterable, Sequence

from transformer_ref.special_tokens import EOS, SPECIAL_TOKENS, UNK


class Vocabulary:
    """A fixed list of tokens; a token's id is its index. The special tokens come first.

    tokens: the ordinary tokens in the order of their ids, each once. Raises ValueError for a repeated one.
    """

    def __init__(self, tokens: Sequence[str]) -> None:
        self.tokens = (*SPECIAL_TOKENS, *tokens)
        self._ids = {token: id for id, token in enumerate(self.tokens)}
        if len(self._ids) < len(self.tokens):
            repeated = [token for token, count in Counter(self.tokens).items() if count > 1]
            raise ValueError(f"tokens: expected each token once, got {repeated[0]!r} more than once")

    @classmethod
    def build(cls, sentences: Iterable[Sequence[str]], minimum_count: int = 1) -> "Vocabulary":
        """Return the tokens seen at least `minimum_count` times: the most frequent first, ties by alphabet.

        sentences: each one a sequence of tokens.
        """
        counts = Counter(token for sentence in sentences for token in sentence)
        frequent = [token for token, count in counts.items() if count >= minimum_count and token not in SPECIAL_TOKENS]
        return cls(sorted(frequent, key=lambda token: (-counts[token], token)))

    def __len__(self) -> int:
        return len(self.tokens)

    def __contains__(self, token: str) -> bool:
        return token in self._ids

    def encode(self, tokens: Iterable[str]) -> list[int]:
        """Return one id a token; an unknown token becomes UNK."""
        return [self._ids.get(token, UNK) for token in tokens]

    def decode(self, ids: Iterable[int]) -> list[str]:
        """Return the ordinary tokens before the first EOS. An id beyond the vocabulary raises IndexError."""
        tokens = []
        for id in ids:
            if id == EOS:
                break
            if id >= len(SPECIAL_TOKENS):
                tokens.append(self.tokens[id])
        return tokens
