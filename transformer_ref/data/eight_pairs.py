"""Eight pairs of the built-in corpus, and one batch of them: what a sound model can learn by heart (chapter 10)."""

from typing import NamedTuple

import torch
from torch import Tensor

from transformer_ref.special_tokens import BOS, EOS, PAD, SPECIAL_TOKENS

PAIRS = (
    ("My lamp was new.", "La mia lampada era nuova."),
    ("The toy was new.", "Il giocattolo era nuovo."),
    ("My book is long.", "Il mio libro è lungo."),
    ("The bridge is not big.", "Il ponte non è grande."),
    ("My grandmothers will be rich.", "Le mie nonne saranno ricche."),
    ("They bought the umbrellas.", "Hanno comprato gli ombrelli."),
    ("They ate your peach.", "Hanno mangiato la tua pesca."),
    ("I drank some wine.", "Ho bevuto del vino."),
)


class EightPairs(NamedTuple):
    """The pairs as one batch, and the tokens of both languages by id, special ones first."""

    source: Tensor  # (8, source), ending in eos, filled up with pads
    target_input: Tensor  # (8, target), beginning with bos
    labels: Tensor  # (8, target), ending in eos
    english: list[str]
    italian: list[str]


def eight_pairs() -> EightPairs:
    """Return the batch, the same at every call; words and the full stop are tokens, capitals are small letters."""
    english, italian = ([_words(pair[side]) for pair in PAIRS] for side in (0, 1))
    tables = [[*SPECIAL_TOKENS, *sorted({word for words in side for word in words})] for side in (english, italian)]
    source, labels = (
        [[table.index(word) for word in words] + [EOS] for words in side]
        for side, table in zip((english, italian), tables, strict=True)
    )
    inputs = [[BOS, *row[:-1]] for row in labels]
    return EightPairs(_batch(source), _batch(inputs), _batch(labels), *tables)


def _words(sentence: str) -> list[str]:
    return sentence.lower().replace(".", " .").split()


def _batch(rows: list[list[int]]) -> Tensor:
    longest = max(map(len, rows))
    return torch.tensor([row + [PAD] * (longest - len(row)) for row in rows])  # (8, longest)
