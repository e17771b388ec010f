"""The messages of chapters 01 and 02 name slips that differ a little from the catalogue's own."""

import pytest

from autograder import catalogue
from autograder.diagnosis.explain import judge_and_explain
from autograder.diagnosis.known_mistakes import namespace_of
from autograder.feedback.report import as_text
from autograder.judging.judge import draw_key
from autograder.judging.observe import LocalEndpoint

KEY = draw_key(b"secret", "assignment", "exercise", ["submission"])

NO_WINDOWS = """
def path_length(kind, i, j, k=3):
    d = abs(i - j)
    if kind == "recurrent":
        return d
    if kind == "convolution":
        return math.ceil(d / (k // 2))
    if kind == "attention":
        return int(d > 0)
"""

LEARN = """
def bpe_train(corpus, n):
    words = [([*word, "</w>"], count) for word, count in corpus.items()]
    merges = []
    for _ in range(n):
        counts = {}
        for pieces, count in words:
            for pair in zip(pieces, pieces[1:]):
                counts[pair] = counts.get(pair, 0) + count
        if not counts:
            break
        best = min(counts, key=lambda pair: (-counts[pair], pair))
        merges.append(best)
        for pieces, _ in words:
            i = 0
            while i < len(pieces) - 1:
                if (pieces[i], pieces[i + 1]) == best:
                    pieces[i : i + 2] = ["".join(best)]
                i += 1
    return merges
"""

CUT = """
def bpe_encode(word, merges):
    pieces = [*word, "</w>"]
    first = set(zip(pieces, pieces[1:]))
    for pair in merges:
        i = 0
        while pair in first and i < len(pieces) - 1:
            if (pieces[i], pieces[i + 1]) == pair:
                pieces[i : i + 2] = ["".join(pair)]
            i += 1
    return pieces
"""
LONGEST_ONCE = CUT.replace("in merges", "in sorted(merges, key=lambda m: -len(m[0] + m[1]))").replace(
    "pair in first and ", ""
)


def learn(old: str, new: str) -> str:
    assert LEARN.count(old) == 1
    return LEARN.replace(old, new)


def report_on(exercise: str, source: str) -> str:
    """The report of a learner's own check, which shows the inputs of hidden checks too."""
    endpoint = LocalEndpoint(namespace_of(source))
    verdict = judge_and_explain(catalogue.find(exercise), endpoint, KEY, disclosed=True)
    assert not verdict.passed
    return " ".join(as_text(verdict).split())


@pytest.mark.parametrize(
    ("exercise", "source", "words"),
    [
        (
            "path-length",
            NO_WINDOWS,
            'Is the kind spelled as the description above the cell spells it? Here it is "window"',
        ),
        ("bpe-train", learn("counts.get(pair, 0) + count", "count"), "was written over that of the word before"),
        (
            "bpe-train",
            learn("*word,", "*word.lower(),"),
            "a small letter came back where the corpus has only the capital",
        ),
        ("bpe-train", learn("return merges", "return words"), "the words came back, cut into pieces"),
        (
            "bpe-train",
            learn("return merges", "return [pieces for pieces, _ in words]"),
            "the words came back, cut into",
        ),
        ("bpe-train", learn("pieces[i : i + 2] = [", "pieces[i : i + 1] = ["), "the second stayed in the list"),
        ("bpe-encode", CUT, "'lo' and 'w' are neighbors in it. Two neighbors in your result are a merge"),
        ("bpe-encode", LONGEST_ONCE, "Or were the longest merges tried first"),
    ],
)
def test_the_message_names_the_slip(exercise, source, words):
    report = report_on(exercise, source)
    assert words in report and "not one of the known mistakes" not in report


def test_pairs_that_are_lists_are_not_taken_for_words():
    report = report_on("bpe-train", learn("merges.append(best)", "merges.append(list(best))"))
    assert "the pairs that came back are lists" in report and "cut into pieces" not in report
