"""The built-in corpus as a graded notebook has it: its sentences, without the grammar that writes and translates them.

`visible.build` puts this file in the place of `transformer_ref.data.grammar.corpora`, next to the sentences (CORPUS).
"""

import json
from functools import cache
from pathlib import Path

from transformer_ref.data.grammar.pairs import Corpus, Pair, Sense

CORPUS = "corpus.json"


def build_corpus(
    train: int = 60_000, validation: int = 500, test: int = 1_000, held_out: int = 1_000, seed: int = 7
) -> Corpus:
    """Return what the original function returns, from recorded sentences; raises ValueError for more."""
    wanted = dict(train=train, validation=validation, test=test, held_out=held_out)
    for name, size in wanted.items():
        most = len(getattr(_recorded(), name))
        if not 0 <= size <= most:
            raise ValueError(f"{name}: expected 0 to {most:,} sentences while a notebook is graded, got {size:,}")
    if seed != 7:
        raise ValueError(f"seed: expected 7 while a notebook is graded, got {seed}")
    return Corpus(*(getattr(_recorded(), name)[:size] for name, size in wanted.items()))


@cache
def _recorded() -> Corpus:
    splits = json.loads(Path(__file__).with_name(CORPUS).read_text(encoding="utf-8"))
    return Corpus(*([_pair(*pair) for pair in split] for split in splits))


def _pair(english: str, italian: str, sense: list | None) -> Pair:
    if sense is None:
        return Pair(english, italian)
    word, group, forms, cue = sense
    return Pair(english, italian, Sense(word, group, tuple(forms), cue))
