"""Symptoms of wrong translations: each symptom is a mark that most of the lines bear."""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise

from autograder.catalogue.exercise import Evidence

MOST = 0.6  # of the lines must bear a mark
SPECIALS = ("<pad>", "<bos>", "<eos>", "<unk>", "\uffed")
READ = 2_000  # letters of a text; a right one has a tenth of them, and one that never ends costs no time
Mark = Callable[[str, str, str], bool]  # of a source, its translation, and what came back


def most(mark: Mark, share: float = MOST, wrong_ones: bool = False) -> Callable[[Evidence], bool]:
    """Whether most of the lines have a property. share: a smaller share for a property that no correct translation has.
    wrong_ones: only of wrong lines, for mistakes that affect some lines; at least three, since one may be anything.
    """

    def shown(evidence: Evidence) -> bool:
        lines = [line for line in _lines(evidence) if line[1] and (line[1] != line[2] or not wrong_ones)]
        enough = len(lines) >= min(3, len(evidence.expected)) if wrong_ones else bool(lines)
        return enough and sum(mark(*line) for line in lines) >= share * len(lines)

    return shown


def copied(source: str, wanted: str, got: str) -> bool:
    own = set(words(source))
    return bool(words(got)) and sum(word in own
                                    for word in words(got)) >= 0.6 * len(words(got)) and not own <= set(words(wanted))


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
    """Begins well; later two neighbors occur a second time, which they do not in the right translation."""
    a, b = words(wanted), words(got)
    right, said = Counter(pairwise(a)), Counter(pairwise(b))
    return len(b) > 2 and a[:2] == b[:2] and any(times > max(right[pair], 1) for pair, times in said.items())


def special(source: str, wanted: str, got: str) -> bool:
    return any(sign in got for sign in SPECIALS)


def small(source: str, wanted: str, got: str) -> bool:
    return got != wanted and got.lower() == wanted.lower()


def backwards(source: str, wanted: str, got: str) -> bool:
    """The words in reverse, nearly all of them; a word with an apostrophe may have stayed in one piece."""
    a, b = (text[:READ].lower().replace(".", "").replace(",", "").replace("?", "").split() for text in (wanted, got))
    return len(a) == len(b) > 1 and a != b and _alike(a, b[::-1])


def mixed(source: str, wanted: str, got: str) -> bool:
    """The right words, or nearly, in another order, whatever their endings; words that occur twice have no position."""
    a, b = ([word[:-1] if len(word) > 4 else word for word in words(text)] for text in (wanted, got))
    once = {word for word in a if a.count(word) == b.count(word) == 1}
    moved = [word for word in a if word in once] != [word for word in b if word in once]
    return moved and _shared(a, b) >= 0.7 and len(b) <= len(a) + 2


def unrelated(source: str, wanted: str, got: str) -> bool:
    return bool(got.strip()) and _shared(words(wanted), words(got)) <= 0.25


def all_the_same(evidence: Evidence) -> bool:
    """One sentence for all, whatever the lines are."""
    lines = [line for line in _lines(evidence) if line[1]]
    got = [each for _, _, each in lines]
    if len(lines) == 1:  # which may be the one
        return unrelated(*lines[0])
    return len(got) > 2 and Counter(got).most_common(1)[0][1] >= MOST * len(got) and bool(max(got,
        key=got.count).strip())


def fewer(evidence: Evidence) -> bool:
    """As many translations as there are lines that hold something, where some hold nothing."""
    lines = evidence.arguments[0]
    asked = len(evidence.expected) // len(lines)  # how often
    return len(evidence.got) == asked * sum(bool(line.strip()) for line in lines) < asked * len(lines)


def by_chance(evidence: Evidence) -> bool | None:
    """All lines together were translated twice, with different results; None where they were translated once."""
    if not _three_times(evidence):
        return None
    together, _, again = _thrice(evidence)
    return together != again


def otherwise_alone(evidence: Evidence) -> bool | None:
    """Lines become something else where they stand alone, and nothing differs from time to time; None as above.

    Of 300 lines of a sound translator none does; where padding is read, one in ten.
    """
    if not _three_times(evidence):
        return None
    together, alone, again = _thrice(evidence)
    return together == again != alone


def cut_in_a_batch(evidence: Evidence) -> bool | None:
    """Nearly all lines that become something else separately are its beginning among others; None as above."""
    if not (otherwise := otherwise_alone(evidence)):
        return otherwise
    together, alone, _ = _thrice(evidence)
    changed = [(one, other) for one, other in zip(together, alone, strict=True) if one != other]
    return sum(other.startswith(one) for one, other in changed) >= 0.8 * len(changed)


def quoted_alone(evidence: Evidence) -> str:
    """A line, what it became among others, and what by itself."""
    together, alone, _ = _thrice(evidence)
    for line, one, other in zip(evidence.arguments[0], together, alone, strict=True):
        if one != other:
            return f"*{line}* became {one[:120]!r} among other lines, and {other[:120]!r} by itself."
    return ""


def quoted_again(evidence: Evidence) -> str:
    """A line, and what it became when it was translated twice."""
    together, _, again = _thrice(evidence)
    for line, one, other in zip(evidence.arguments[0], together, again, strict=True):
        if one != other:
            return f"*{line}* became {one[:120]!r}, and the second time {other[:120]!r}."
    return ""


def other_order(evidence: Evidence) -> bool:
    """The right translations, at other lines."""
    lines = [(wanted, got) for _, wanted, got in _lines(evidence) if wanted]
    wanted, got = Counter(a for a, _ in lines), Counter(b for _, b in lines)
    in_place = sum(a == b for a, b in lines)
    return (wanted & got).total() >= 0.8 * len(lines) and in_place <= 0.4 * len(lines) and len(lines) > 2


def quoted(evidence: Evidence) -> str:
    """A line, what came back, and what is right."""
    for source, wanted, got in _lines(evidence):
        if wanted and got != wanted:
            return f"*{source}* became {got[:120]!r}."
    return ""


def words(text: str) -> list[str]:
    """In small letters, without marks."""
    return re.findall(r"\w+", text[:READ].lower())


def _lines(evidence: Evidence) -> list[tuple[str, str, str]]:
    """Source, right translation and what came back, of all lines together."""
    lines = evidence.arguments[0]
    if len(evidence.got) != len(evidence.expected):
        raise ValueError(f"expected {len(evidence.expected)} translations, got {len(evidence.got)}")
    return list(zip(lines, evidence.expected[: len(lines)], evidence.got[: len(lines)], strict=True))


def _three_times(evidence: Evidence) -> bool:
    return 3 * len(evidence.arguments[0]) == len(evidence.expected) == len(evidence.got)


def _thrice(evidence: Evidence) -> tuple[Sequence[str], Sequence[str], Sequence[str]]:
    """What came back for all lines together, for each separately, for all again (see `inside.stages.Company`)."""
    lines, got = len(evidence.arguments[0]), evidence.got
    return got[:lines], got[lines : 2 * lines], got[2 * lines :]


def _alike(wanted: Sequence[str], got: Sequence[str]) -> bool:
    return bool(wanted) and sum(a == b for a, b in zip(wanted, got, strict=True)) >= 0.8 * len(wanted)


def _shared(wanted: Sequence[str], got: Sequence[str]) -> float:
    """Which share of the right words came back."""
    return (Counter(wanted) & Counter(got)).total() / max(len(wanted), 1)


