"""Words become pieces: byte-pair encoding, readably (chapter 02; Sennrich et al. 2016, algorithm 1).

A word starts as its characters and an end mark. The pair of neighbors that is seen most often is merged into
one piece, again and again; the merges, in the order they were learned, cut every later word.
Real corpora use the `tokenizers` library, see `transformer_ref.text.tokenizer`.
"""

from collections import Counter
from itertools import pairwise

END_OF_WORD = "</w>"

Pair = tuple[str, str]


def learn_merges(word_counts: dict[str, int], merges: int) -> list[Pair]:
    """Return the pairs merged, in the order in which they were learned.

    word_counts: how often each word occurs; merges: how many pairs to learn at most.
    Of equally frequent pairs the alphabetically smaller comes first. Learning stops early when every word
    is one piece.
    """
    pieces = {word: [*word, END_OF_WORD] for word in word_counts}
    learned: list[Pair] = []
    while len(learned) < merges:
        pair_counts: Counter[Pair] = Counter()
        for word, count in word_counts.items():
            for pair in pairwise(pieces[word]):
                pair_counts[pair] += count
        if not pair_counts:
            break
        best = min(pair_counts, key=lambda pair: (-pair_counts[pair], pair))
        pieces = {word: _merged(old, best) for word, old in pieces.items()}
        learned.append(best)
    return learned


def encode_word(word: str, merges: list[Pair]) -> list[str]:
    """Return the pieces of a word: of the pairs present, the one learned first is merged first.

    word: without an end mark, which is added here; merges: as `learn_merges` returns them.
    A character that was never seen stays a piece of its own.
    """
    rank = {pair: order for order, pair in enumerate(merges)}
    pieces = [*word, END_OF_WORD]
    while present := [pair for pair in pairwise(pieces) if pair in rank]:
        pieces = _merged(pieces, min(present, key=rank.__getitem__))
    return pieces


def _merged(pieces: list[str], pair: Pair) -> list[str]:
    """Return the pieces with each occurrence of the pair joined, from left to right, without overlap."""
    result: list[str] = []
    position = 0
    while position < len(pieces):
        if tuple(pieces[position : position + 2]) == pair:
            result.append(pair[0] + pair[1])
            position += 2
        else:
            result.append(pieces[position])
            position += 1
    return result
