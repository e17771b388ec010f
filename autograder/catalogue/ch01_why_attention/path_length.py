"""01.1 path_length."""

import math

import torch

from autograder.catalogue.ch01_why_attention.shared import _drawn, sections
from autograder.catalogue.exercise import Case, Evidence, Exercise, Probe
from autograder.catalogue.parts import known, right

COST, PATHS = sections("cost paths")


def path_length(kind: str, i: int, j: int, k: int = 3) -> int:
    """Steps from word i to word j: along the chain, up a stack of windows, or directly."""
    distance = abs(i - j)
    if kind == "recurrent":
        return distance
    if kind == "window":
        return math.ceil(distance / ((k - 1) // 2))
    return min(distance, 1)


def _path(
    recurrent: str = "d",
    window: str = "math.ceil(d / ((k - 1) // 2))",
    attention: str = "min(d, 1)",
    distance: str = "abs(i - j)",
) -> str:
    """An answer with one of its lines replaced."""
    return (
        f"def path_length(kind, i, j, k=3):\n    d = {distance}\n    if kind == 'recurrent':\n        return {recurrent}\n"
        f"    if kind == 'window':\n        return {window}\n    return {attention}\n"
    )


def _said(evidence: Evidence) -> str:
    kind, i, j, *rest = evidence.arguments
    window = f" with windows of {rest[0]}" if kind == "window" and rest else ""
    return f"For words {i} and {j}{window} you said {evidence.got}."


def _apart(kind: str, g: torch.Generator, distance: int, *k: int, back: bool = False) -> Case:
    """Two words that many places apart, somewhere in the sentence."""
    start = _drawn(2, 9, g)
    words = (start + distance, start) if back else (start, start + distance)
    return Case((kind, *words, *k))


EXERCISE = Exercise(
    id="path-length",
    number="01.1",
    visible_points=1,
    hidden_points=2,
    section=PATHS,
    reference=path_length,
    probes=(
        Probe("recurrent, words 1 and 50", lambda g: Case(("recurrent", 1, 50)), hidden=False),
        Probe("recurrent, neighbors", lambda g: Case(("recurrent", 4, 5)), hidden=False),
        Probe("windows of 3, words 1 and 50", lambda g: Case(("window", 1, 50, 3)), hidden=False),
        Probe("windows of 7, words 1 and 50", lambda g: Case(("window", 1, 50, 7)), hidden=False),
        Probe("windows of 7, words 2 and 10", lambda g: Case(("window", 2, 10, 7)), hidden=False),
        Probe("attention, words 1 and 50", lambda g: Case(("attention", 1, 50)), hidden=False),
        Probe("recurrent, the later word first", lambda g: _apart("recurrent", g, _drawn(12, 40, g), back=True)),
        Probe("windows of 5", lambda g: _apart("window", g, 2 * _drawn(5, 20, g) + 1, 5)),
        Probe(
            "windows of 7, the later word first", lambda g: _apart("window", g, 3 * _drawn(4, 14, g) + 1, 7, back=True)
        ),
        Probe("windows of 9 that end exactly on the word", lambda g: _apart("window", g, 4 * _drawn(3, 11, g), 9)),
        Probe("windows without a given k", lambda g: _apart("window", g, _drawn(11, 40, g))),
        Probe("a far word in windows of 101", lambda g: _apart("window", g, 50 * _drawn(300, 700, g) + 13, 101)),
        Probe("attention, the later word first", lambda g: _apart("attention", g, _drawn(12, 40, g), back=True)),
        Probe("a word and itself, recurrent", lambda g: _apart("recurrent", g, 0)),
        Probe("a word and itself, windows", lambda g: _apart("window", g, 0, 5)),
        Probe("a word and itself, attention", lambda g: _apart("attention", g, 0)),
    ),
    wrong=(
        known(
            "words counted instead of steps",
            _path(distance="abs(i - j) + 1"),
            "Both words were counted. Between neighbors there is 1 step: count the moves, as on a board game, not the squares.",
            PATHS,
            _said,
        ),
        known(
            "words counted in a chain only",
            _path("d + 1"),
            "In the chain you counted both words. Between neighbors there is 1 step: count the moves, not the squares.",
            PATHS,
            _said,
        ),
        known(
            "words in between counted",
            _path(distance="max(abs(i - j) - 1, 0)"),
            "Those are the words that lie *between* the two. The step that arrives counts as well: neighbors are 1 step apart.",
            PATHS,
            _said,
        ),
        known(
            "reach of a whole window",
            _path(window="math.ceil(d / k)"),
            """That is a reach of k words to one side. A window of k stands *around* its word, so only a part of it
            lies on the side you want to go: draw a window of 3 and count.""",
            PATHS,
            _said,
        ),
        known(
            "reach of both sides",
            _path(window="math.ceil(d / (k - 1))"),
            """The word itself was taken off the window, but both of its sides were added together. A step goes to one side.""",
            PATHS,
            _said,
        ),
        known(
            "half of k",
            _path(window="math.ceil(d / (k / 2))"),
            """Half of k counts half of the word in the middle too. The window stands around its word: take that one off first,
            then halve.""",
            PATHS,
            _said,
        ),
        known(
            "the word itself in the reach",
            _path(window="math.ceil(d / ((k + 1) // 2))"),
            "You counted the word in the middle as reached. It is where you stand; only its neighbors to one side bring you on.",
            PATHS,
            _said,
        ),
        known(
            "rounded down",
            _path(window="d // ((k - 1) // 2)"),
            "49 words at 3 a layer: after 16 layers one word is still missing. A layer that is used in part is still a layer.",
            PATHS,
            _said,
        ),
        known(
            "rounded to the nearest",
            _path(window="round(d / ((k - 1) // 2))"),
            "Rounding to the nearest drops a small remainder. One word beyond the last full layer still needs a layer.",
            PATHS,
            _said,
        ),
        known(
            "one layer more, always",
            _path(window="d // ((k - 1) // 2) + 1"),
            "Right where a remainder is left, and one layer too many where the windows end exactly on the word.",
            PATHS,
        ),
        known(
            "not rounded",
            _path(window="d / ((k - 1) // 2)"),
            "There is no part of a layer: a whole number is wanted, the first that is enough.",
            PATHS,
            _said,
        ),
        known(
            "a whole number as float",
            _path(window="float(math.ceil(d / ((k - 1) // 2)))"),
            "The number is right and its type is not: layers are counted with a plain Python int, 17 and not 17.0.",
            PATHS,
        ),
        known(
            "k ignored",
            _path(window="d"),
            "The same number for every k: your windows always reach 1 word to each side. Wider ones reach further.",
            PATHS,
            _said,
        ),
        known(
            "windows that grow by a factor",
            _path(window="0 if d == 0 else max(1, math.ceil(math.log(d, k)))"),
            """A logarithm: that is the path through *dilated* windows, which skip more words in each layer. Here every
            layer has the same plain windows, so each adds the same number of words.""",
            PATHS,
            _said,
        ),
        known(
            "windows taken for attention",
            "def path_length(kind, i, j, k=3):\n    d = abs(i - j)\n    if kind == 'recurrent':\n        return d\n    if kind == 'convolution':\n        return math.ceil(d / ((k - 1) // 2))\n    return min(d, 1)\n",
            """For windows you answered as for attention. Is the kind spelled as the description above the cell spells it? Here it
            is "window".""",
            PATHS,
            _said,
        ),
        known(
            "attention squared",
            _path(attention="d * d"),
            "n squared is what attention *costs*, counted in pairs. The way from one word to another is a single step.",
            COST,
            _said,
        ),
        known(
            "attention walks as well",
            _path(attention="d"),
            "In attention every word asks every other word directly. How far apart they stand makes no difference.",
            PATHS,
            _said,
        ),
        known(
            "attention passes every word",
            _path(attention="max(i, j)"),
            "That counts words of the sentence. Attention may *look at* all of them, but from one to another it is a single step.",
            PATHS,
            _said,
        ),
        known(
            "attention for nothing",
            _path(attention="0"),
            "No path is free: attention carries something from word to word in 1 step. 0 is the distance of a word to itself.",
            PATHS,
            _said,
        ),
        known(
            "attention to itself",
            _path(attention="1"),
            "From a word to itself nothing has to travel: 0 steps, for every kind, attention too.",
            PATHS,
        ),
        known(
            "yes or no",
            _path(attention="d > 0"),
            "For attention you returned True or False. A number of steps is wanted.",
            PATHS,
        ),
        known(
            "at least one layer",
            _path(window="max(1, math.ceil(d / ((k - 1) // 2)))"),
            "From a word to itself nothing has to travel: 0 layers, for windows too.",
            PATHS,
        ),
        known(
            "at least one step",
            _path("max(d, 1)", "max(1, math.ceil(d / ((k - 1) // 2)))", "1"),
            "From a word to itself nothing has to travel: 0 steps, for every kind.",
            PATHS,
        ),
        known(
            "sign kept",
            _path(distance="j - i"),
            "When the later word comes first, your number is negative. A distance has no direction.",
            PATHS,
        ),
        known(
            "forward only",
            _path(distance="max(j - i, 0)"),
            "When the later word comes first, you say 0. We ask how far apart they are, whichever stands first.",
            PATHS,
        ),
        known(
            "negative steps, rounded up",
            """
            def path_length(kind, i, j, k=3):
                d = j - i
                if kind == "recurrent":
                    return d
                if kind == "window":
                    return math.ceil(d / ((k - 1) // 2))
                return 1 if d else 0
            """,
            "Where the later word comes first your number is negative. The way back is as long as the way there.",
            PATHS,
        ),
    ),
    right=(
        right("ceil", _path()),
        right("integer arithmetic", _path(window="-(-d // (k // 2))", attention="int(d != 0)")),
        right(
            "loop",
            """
            def path_length(kind, first, second, width=3):
                if kind == "attention":
                    return 0 if first == second else 1
                reach = 1 if kind == "recurrent" else (width - 1) // 2
                low, high = min(first, second), max(first, second)
                steps = 0
                while low < high:
                    low += reach
                    steps += 1
                return steps
            """,
        ),
        right(
            "table",
            """
            def path_length(kind, i, j, k=3):
                d = max(i, j) - min(i, j)
                reach = {"recurrent": 1, "window": (k - 1) // 2, "attention": max(d, 1)}[kind]
                return (d + reach - 1) // reach
            """,
        ),
        right(
            "divmod",
            """
            def path_length(kind, i, j, k=3):
                d = i - j if i > j else j - i
                if kind == "recurrent":
                    return d
                if kind == "attention":
                    return 1 if d else 0
                full, rest = divmod(d, k // 2)
                return full + (rest > 0)
            """,
        ),
        right(
            "recursion by match",
            """
            def path_length(kind, i, j, k=3):
                match kind:
                    case "recurrent":
                        return abs(j - i)
                    case "window":
                        return int(math.ceil(2 * abs(j - i) / (k - 1)))
                    case "attention":
                        return int(i != j)
            """,
        ),
    ),
    hints=(
        "write words 1 to 5 in a row and count the moves from 1 to 5: along the row, with windows of 3, with windows of 5.",
        "d = how far apart the words are, 0 or more. A window of k reaches (k - 1) / 2 words to each side in one layer.",
        "recurrent: d. window: d divided by the reach, rounded up. attention: 1, but 0 when the words are the same.",
    ),
)
