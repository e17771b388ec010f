"""The built-in English-Italian corpus: four lists of sentences without one in common.

Sixteen English words have two senses each, with different Italian words; what decides is elsewhere in
the sentence, often far away. One cue noun of each word and sense is held out: training never shows the two
together.
"""

from functools import cache, lru_cache

from transformer_ref.data.grammar import lexicon
from transformer_ref.data.grammar.meaning import nouns_of
from transformer_ref.data.grammar.pairs import Corpus, Pair, Sense
from transformer_ref.data.grammar.sentences import SentenceGenerator

VALIDATION_SHARE, TEST_SHARE = 0.02, 0.04


def build_corpus(
    train: int = 60_000, validation: int = 500, test: int = 1_000, held_out: int = 1_000, seed: int = 7
) -> Corpus:
    """Return a corpus with these numbers of pairs in its splits; it depends only on the arguments.

    Raises ValueError for a negative number of pairs.
    """
    wanted = dict(train=train, validation=validation, test=test, held_out=held_out)
    for name, size in wanted.items():
        if size < 0:
            raise ValueError(f"{name}: expected a number of sentences, at least 0, got {size}")
    return Corpus(*map(list, _splits(**wanted, seed=seed)))


@lru_cache(maxsize=1)  # training needs two splits, evaluation one split and the training sentences
def _splits(train: int, validation: int, test: int, held_out: int, seed: int) -> tuple[tuple[Pair, ...], ...]:
    """Return the splits in the order of `Corpus`."""
    wanted = dict(train=train, validation=validation, test=test, held_out=held_out)
    shares = dict(validation=VALIDATION_SHARE, test=TEST_SHARE, train=1 - VALIDATION_SHARE - TEST_SHARE)
    corpus, generator, seen = Corpus([], [], [], []), SentenceGenerator(seed), set()
    while any(len(getattr(corpus, name)) < size for name, size in wanted.items()):
        pair, drawn = generator.pair(), generator.pick_weighted(shares)
        split = "held_out" if is_held_out(pair.sense) else drawn
        if pair.english not in seen and len(getattr(corpus, split)) < wanted[split]:
            getattr(corpus, split).append(pair)
        seen.add(pair.english)
    return tuple(map(tuple, corpus))


def is_held_out(sense: Sense | None) -> bool:
    """Return whether this word and this cue must not occur together in training."""
    return sense is not None and sense.cue is not None and sense.cue == held_out_cue(sense.word, sense.group)


@cache
def held_out_cue(word: str, group: str) -> str:
    """Return the cue noun that never occurs with this word in training; no two words of a group share it."""
    sharing = [each for each, (*_, senses) in lexicon.AMBIGUOUS.items() if group in senses]
    return nouns_of(group)[sharing.index(word)].english
