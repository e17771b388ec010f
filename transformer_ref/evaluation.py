"""How good translations are: exact match, the right sense of a word, BLEU and chrF (chapters 11 and 12)."""

import math
import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from transformer_ref.data.meaning import english_plural
from transformer_ref.data.sentences import Pair, Sense

WINDOW = 4


class CorpusScore(NamedTuple):
    """A score from 0 to 100 with the signature that says how it was computed."""

    score: float
    signature: str


def exact_match(translations: Sequence[str], references: Sequence[str]) -> float:
    """Return the share, from 0 to 1, of translations equal to their reference; NaN for none."""
    _expect_as_many(translations, references)
    equal = sum(translation == reference for translation, reference in zip(translations, references, strict=True))
    return equal / len(references) if references else math.nan


def sense_accuracy(translations: Sequence[str], pairs: Sequence[Pair]) -> float:
    """Return the share, from 0 to 1, of ambiguous words whose translation has a form of the right sense.

    Pairs without an ambiguous word are left out; NaN if all are.
    """
    _expect_as_many(translations, pairs)
    right = [
        shows_sense(translation, pair.sense)
        for translation, pair in zip(translations, pairs, strict=True)
        if pair.sense
    ]
    return sum(right) / len(right) if right else math.nan


def shows_sense(translation: str, sense: Sense) -> bool:
    """Whether one of the sense's Italian forms is a word of the translation."""
    return not set(sense.forms).isdisjoint(re.findall(r"\w+", translation))


def window_baseline(train: Sequence[Pair], test: Sequence[Pair], width: int = WINDOW) -> float:
    """Return the sense accuracy of a reader who sees only `width` words on either side of the ambiguous one.

    It is naive Bayes over the words in the window, counted in `train`. Pairs without an ambiguous word are
    left out; NaN if all are.
    """
    senses: dict[str, Counter[str]] = {}
    counts: dict[tuple[str, str], Counter[str]] = {}
    for pair in (pair for pair in train if pair.sense):
        senses.setdefault(pair.sense.word, Counter())[pair.sense.group] += 1
        counts.setdefault((pair.sense.word, pair.sense.group), Counter()).update(_window(pair, width))
    vocabulary = len({word for counter in counts.values() for word in counter})

    def log_probability(pair: Pair, group: str) -> float:
        counter = counts[pair.sense.word, group]
        total = counter.total() + vocabulary
        return math.log(senses[pair.sense.word][group]) + sum(
            math.log((counter[word] + 1) / total) for word in _window(pair, width)
        )

    asked = [pair for pair in test if pair.sense]
    right = sum(
        max(senses[pair.sense.word], key=lambda group: log_probability(pair, group)) == pair.sense.group
        for pair in asked
    )
    return right / len(asked) if asked else math.nan


def _window(pair: Pair, width: int) -> list[str]:
    """Return the words around the ambiguous one, itself left out."""
    words = re.findall(r"\w+|[^\w\s]", pair.english.lower())
    ambiguous = {pair.sense.word, english_plural(pair.sense.word)}
    place = next(i for i, word in enumerate(words) if word in ambiguous)
    return words[max(place - width, 0) : place] + words[place + 1 : place + 1 + width]


def bleu(translations: Sequence[str], references: Sequence[str]) -> CorpusScore:
    """Return sacreBLEU's score (Papineni et al. 2002; Post 2018): cased, 13a tokens, one reference a line.

    Raises ValueError for no lines, of which there is no score.
    """
    import sacrebleu

    _expect_some(translations, references)
    metric = sacrebleu.BLEU()
    return CorpusScore(metric.corpus_score(list(translations), [list(references)]).score, str(metric.get_signature()))


def chrf(translations: Sequence[str], references: Sequence[str]) -> CorpusScore:
    """Return sacreBLEU's chrF2 score (Popovic 2015), one reference a line. Raises ValueError for no lines."""
    import sacrebleu

    _expect_some(translations, references)
    metric = sacrebleu.CHRF()
    return CorpusScore(metric.corpus_score(list(translations), [list(references)]).score, str(metric.get_signature()))


def _expect_as_many(translations: Sequence, references: Sequence) -> None:
    for name, lines in (("translations", translations), ("references", references)):
        if isinstance(lines, str):
            raise TypeError(f"{name}: expected a list of lines, got the string {lines[:40]!r}")
    if len(translations) != len(references):
        raise ValueError(
            f"translations: expected one for each of {len(references)} references, got {len(translations)}"
        )


def _expect_some(translations: Sequence, references: Sequence) -> None:
    _expect_as_many(translations, references)
    if not references:
        raise ValueError("references: expected at least one, got none")
