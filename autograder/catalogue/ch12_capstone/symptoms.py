"""What can be seen in translations that are wrong: each symptom is a mark that most of the lines bear."""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise

from autograder.catalogue.exercise import Evidence

MOST = 0.6  # of the lines must bear a mark
SPECIALS = ("<pad>", "<bos>", "<eos>", "<unk>", "\uffed")
Mark = Callable[[str, str, str], bool]  # of a source, its translation, and what came back


def most(mark: Mark, share: float = MOST, wrong_ones: bool = False) -> Callable[[Evidence], bool]:
    """Whether most of the lines bear a mark.

    share: less of them for a mark that no sound translation bears. wrong_ones: of the lines that are not right, for what
    spoils some lines only; three of them at least, since one may be anything.
    """

    def shown(evidence: Evidence) -> bool:
        lines = [line for line in _lines(evidence) if line[1] and (line[1] != line[2] or not wrong_ones)]
        enough = len(lines) >= min(3, len(evidence.expected)) if wrong_ones else bool(lines)
        return enough and sum(mark(*line) for line in lines) >= share * len(lines)

    return shown


def copied(source: str, wanted: str, got: str) -> bool:
    own = set(words(source))
    return bool(words(got)) and sum(word in own for word in words(got)) >= 0.6 * len(words(got)) and not own <= set(words(wanted))


def empty(source: str, wanted: str, got: str) -> bool:
    return not got.strip()


def ends_early(source: str, wanted: str, got: str) -> bool:
    """Begins well and stops more than one word before the end."""
    a, b = words(wanted), words(got)
    return 0 < len(b) < len(a) - 1 and _alike(a[: len(b)], b)


def last_lost(source: str, wanted: str, got: str) -> bool:
    return bool(got) and got != wanted and got.split() in (wanted.split()[:-1], wanted.rstrip(".?").split())


def first_lost(source: str, wanted: str, got: str) -> bool:
    return len(wanted.split()) > 1 and got.split() == wanted.split()[1:]


def words_lost(source: str, wanted: str, got: str) -> bool:
    """The right words in their order, and some of the middle are missing."""
    a, b = words(wanted), words(got)
    rest = iter(a)
    inside = 1 < len(b) < len(a) and b != a[: len(b)] and b != a[-len(b) :]
    return inside and all(word in rest for word in b)  # `in` goes on from the last word found


def doubled(source: str, wanted: str, got: str) -> bool:
    found = words(got)
    return bool(found) and found[::2] == found[1::2] == words(wanted)


def spaces(source: str, wanted: str, got: str) -> bool:
    """The right letters, with other spaces between them."""
    return got != wanted and "".join(got.split()) == "".join(wanted.split())


def runs_on(source: str, wanted: str, got: str) -> bool:
    """All that is right, and then more."""
    a, b = words(wanted), words(got)
    return len(b) > len(a) and _alike(a, b[: len(a)])


def repeats(source: str, wanted: str, got: str) -> bool:
    """A word, or two or three in turn, four times in a row."""
    found = words(got)
    return any(
        found[place : place + size] * 4 == found[place : place + 4 * size]
        for size in (1, 2, 3)
        for place in range(len(found) - 4 * size + 1)
    )


def comes_again(source: str, wanted: str, got: str) -> bool:
    """Begins well; later two neighbors stand there a second time, as they do not in what is right."""
    a, b = words(wanted), words(got)
    right, said = Counter(pairwise(a)), Counter(pairwise(b))
    return len(b) > 2 and a[:2] == b[:2] and any(times > max(right[pair], 1) for pair, times in said.items())


def special(source: str, wanted: str, got: str) -> bool:
    return any(sign in got for sign in SPECIALS)


def small(source: str, wanted: str, got: str) -> bool:
    return got != wanted and got.lower() == wanted.lower()


def backwards(source: str, wanted: str, got: str) -> bool:
    return words(got) == words(wanted)[::-1] and len(words(wanted)) > 1


def mixed(source: str, wanted: str, got: str) -> bool:
    """The right words, or nearly, in another order, whatever their endings; what stands there twice has no place."""
    a, b = ([word[:-1] if len(word) > 4 else word for word in words(text)] for text in (wanted, got))
    once = {word for word in a if a.count(word) == b.count(word) == 1}
    moved = [word for word in a if word in once] != [word for word in b if word in once]
    return moved and _shared(a, b) >= 0.7 and len(b) <= len(a) + 2


def unrelated(source: str, wanted: str, got: str) -> bool:
    return bool(got.strip()) and _shared(words(wanted), words(got)) <= 0.25


def all_the_same(evidence: Evidence) -> bool:
    """One sentence for all, whatever stands in the lines."""
    lines = [line for line in _lines(evidence) if line[1]]
    got = [each for _, _, each in lines]
    if len(lines) == 1:  # which may be the one
        return unrelated(*lines[0])
    return len(got) > 2 and Counter(got).most_common(1)[0][1] >= MOST * len(got) and bool(max(got, key=got.count).strip())


def fewer(evidence: Evidence) -> bool:
    """As many translations as there are lines that hold something, where some hold nothing."""
    lines = evidence.arguments[0]
    return len(evidence.got) == sum(bool(line.strip()) for line in lines) < len(lines)


def other_order(evidence: Evidence) -> bool:
    """The right translations, at other lines."""
    lines = [(wanted, got) for _, wanted, got in _lines(evidence) if wanted]
    wanted, got = Counter(a for a, _ in lines), Counter(b for _, b in lines)
    in_place = sum(a == b for a, b in lines)
    return (wanted & got).total() >= 0.8 * len(lines) and in_place <= 0.4 * len(lines) and len(lines) > 2


def short_ones_wrong(evidence: Evidence) -> bool:
    """The longest sources of the batch are right and the short ones are not, as where padding is read."""
    lines = sorted((line for line in _lines(evidence) if line[1]), key=lambda line: len(words(line[0])))
    part = max(len(lines) // 4, 1)
    short, long = lines[: 2 * part], lines[-part:]
    if len(lines) < 6 or len(words(short[-1][0])) >= len(words(long[0][0])):
        return False
    right = [sum(_shared(words(wanted), words(got)) > 0.9 for _, wanted, got in each) / len(each) for each in (short, long)]
    return right[1] >= 0.6 and right[0] <= 0.5 * right[1]


def quoted(evidence: Evidence) -> str:
    """A line, what came back, and what is right."""
    for source, wanted, got in _lines(evidence):
        if wanted and got != wanted:
            return f"*{source}* became {got[:120]!r}."
    return ""


def words(text: str) -> list[str]:
    """In small letters, without marks."""
    return re.findall(r"\w+", text.lower())


def _lines(evidence: Evidence) -> list[tuple[str, str, str]]:
    return list(zip(evidence.arguments[0], evidence.expected, evidence.got, strict=True))


def _alike(wanted: Sequence[str], got: Sequence[str]) -> bool:
    return bool(wanted) and sum(a == b for a, b in zip(wanted, got, strict=True)) >= 0.8 * len(wanted)


def _shared(wanted: Sequence[str], got: Sequence[str]) -> float:
    """Which share of the right words came back."""
    return (Counter(wanted) & Counter(got)).total() / max(len(wanted), 1)


