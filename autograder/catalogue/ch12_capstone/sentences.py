"""Sentences that nobody has trained on, drawn from the built-in grammar by a probe's generator, with their
translations.

Each has a word of two senses with a noun that training never shows it with (`grammar.is_held_out`).
"""

import torch

from transformer_ref.data.grammar.corpora import is_held_out
from transformer_ref.data.grammar.sentences import SentenceGenerator

LINES = 120
# The grammar's analysis of every line that was drawn in this process: the reference needs it a moment later. Old ones
# are forgotten, except the very first ones: among them are the visible probes', which are drawn once for everybody.
ITALIAN: dict[str, str] = {"": ""}
KEPT, FIRST = 20_000, 1_000


def unseen(g: torch.Generator, lines: int = LINES) -> list[str]:
    """English lines, no two alike."""
    generator = SentenceGenerator(int(torch.randint(2**62, (), generator=g)))
    found: dict[str, str] = {}
    while len(found) < lines:
        pair = generator.pair()
        if is_held_out(pair.sense):
            found[pair.english] = pair.italian
    note(found)
    return list(found)


def note(pairs: dict[str, str]) -> None:
    """Keep what lines mean."""
    ITALIAN.update(pairs)
    for line in list(ITALIAN)[FIRST : FIRST + max(len(ITALIAN) - KEPT, 0)]:
        del ITALIAN[line]
