"""01.3: how far apart two words are."""

import math

import torch

from autograder.catalogue.ch01_why_attention.shared import drawn, sections
from autograder.catalogue.exercise import Case, Evidence, Exercise
from autograder.catalogue.known_answers import answer, correct, mistake
from autograder.catalogue.probes import hidden, second_call, visible

COST, PATHS = sections("cost paths")


def path_length(kind: str, i: int, j: int, k: int = 3) -> int:
    """Steps from word i to word j: along the chain, up a stack of windows, or directly."""
    distance = abs(i - j)
    if kind == "recurrent":
        return distance
    if kind == "window":
        return math.ceil(distance / ((k - 1) // 2))
    return min(distance, 1)


def same(g: torch.Generator, kind: str, *k: int) -> Case:
    """A word and itself, far into a text: two equal numbers above 256, which Python keeps as two objects."""
    place = drawn(300, 900, g)
    return Case((kind, place, int(str(place)), *k))


def apart(
    g: torch.Generator, kind: str, low: int, high: int, *k: int, times: int = 1, more: int = 0, back: bool = False,
    first: bool = False,
) -> Case:
    """Two words, times * n + more positions apart, where n is drawn from low to high; first: one of them is word 0."""
    distance = times * drawn(low, high, g) + more
    start = 0 if first else drawn(2, 9, g)
    words = (start + distance, start) if back else (start, start + distance)
    return Case((kind, *words, *k))


def said(evidence: Evidence) -> str:
    kind, i, j, *rest = evidence.arguments
    window = f" with windows of {rest[0]}" if kind == "window" and rest else ""
    return f"For words {i} and {j}{window} you said {evidence.got}."


def one_layer_more(evidence: Evidence) -> bool:
    """Whether the result has one layer too many where windows end exactly on the word."""
    kind, i, j, *rest = evidence.arguments
    reach = ((rest[0] if rest else 3) - 1) // 2
    return kind == "window" and abs(i - j) % reach == 0 and evidence.got == evidence.expected + 1


def window_not_met(evidence: Evidence) -> bool:
    """Whether windows get the answer of attention, or none at all."""
    kind, i, j, *_ = evidence.arguments
    return kind == "window" and (evidence.got is None or evidence.got == min(abs(i - j), 1))


def one_step_more(evidence: Evidence) -> bool:
    """Whether a recurrent result is one step too large."""
    return evidence.arguments[0] == "recurrent" and evidence.got == evidence.expected + 1


RIGHT = answer("""
    def path_length(kind, i, j, k=3):
        distance = abs(i - j)
        if kind == "recurrent":
            steps = distance
        elif kind == "window":
            reach = (k - 1) // 2
            steps = math.ceil(distance / reach)
        else:
            steps = min(distance, 1)
        return steps
""")
DISTANCE, REACH, ROUNDED = "abs(i - j)", "(k - 1) // 2", "math.ceil(distance / reach)"
CHAIN, DIRECT = "steps = distance", "min(distance, 1)"

EXERCISE = Exercise(
    id="path-length", number="01.3", difficulty=1, minutes=10, visible_points=1, hidden_points=2,
    reference=path_length, section=PATHS,
    probes=(
        visible("recurrent, words 1 and 50", Case(("recurrent", 1, 50))),
        visible("recurrent, neighbors", Case(("recurrent", 4, 5))),
        visible("windows of 3, words 1 and 50", Case(("window", 1, 50, 3))),
        visible("windows of 7, words 1 and 50", Case(("window", 1, 50, 7))),
        visible("windows of 7, words 2 and 10", Case(("window", 2, 10, 7))),
        visible("attention, words 1 and 50", Case(("attention", 1, 50))),
        second_call(apart, "recurrent", 12, 40, back=True, announced_by="in any order"),
        hidden("windows of 5", apart, "window", 5, 20, 5, times=2, more=1, announced_by="odd and at least 3"),
        hidden("windows of 7, the later word first", apart, "window", 4, 14, 7, times=3, more=1, back=True,
               announced_by="in any order"),
        hidden("windows of 9 that end exactly on the word", apart, "window", 3, 11, 9, times=4,
               announced_by="odd and at least 3"),
        hidden("windows without a given k", apart, "window", 11, 40, first=True, announced_by="k=3"),
        hidden("a far word in windows of 3001", apart, "window", 30, 60, 3001, times=1500, more=1,
               announced_by="from 0 to 100,000"),
        hidden("attention, the later word first", apart, "attention", 200, 2_000, 1, back=True, first=True,
               announced_by="in any order"),
        hidden("recurrent, whatever k is", apart, "recurrent", 100_000, 100_000, 2, first=True,
               announced_by="the other kinds ignore it"),
        hidden("a word within the window", apart, "window", 2, 6, 13, announced_by="odd and at least 3"),
        hidden("word 0 and itself, recurrent", Case(("recurrent", 0, 0)), announced_by="0 when i == j"),
        hidden("a word and itself, windows", same, "window", 5, announced_by="0 when i == j"),
        hidden("a word and itself, attention", same, "attention", announced_by="0 when i == j"),
    ),
    omits={"a batch of one": "there is one pair of words", "a length of one": "there is one pair of words",
           "precision": "places are whole numbers, exact in either precision",
           "repeated items": "a probe takes a word and itself, by their positions"},
    mistakes=(
        # before what also returns 1 for every pair of words
        mistake("attention to itself", RIGHT.but(DIRECT, "1"), PATHS,
            """From a word to itself nothing moves: you returned 1, and 0 is expected, for attention too. Does your
            code treat that case, and does it compare the numbers? (`is` compares objects, and two equal numbers can be
            two different objects.)"""),
        mistake("words counted instead of steps", RIGHT.but(DISTANCE, "abs(i - j) + 1"), PATHS,
            """Both words were counted. Between neighbors there is 1 step: count the moves, as on a board game, not the
            squares.""", quotes=said),
        mistake("words counted in a chain only", RIGHT.but(CHAIN, "steps = distance + 1"), PATHS,
            "In the chain you counted both words. Between neighbors there is 1 step: count the moves, not the squares.",
            quotes=said, shows=one_step_more),
        mistake("words in between counted", RIGHT.but(DISTANCE, "max(abs(i - j) - 1, 0)"), PATHS,
            """Those are the words *between* the two. The step that arrives counts as well: neighbors are 1 step
            apart.""", quotes=said),
        mistake("reach of a whole window", RIGHT.but(REACH, "k"), PATHS,
            """That is a reach of k words to one side. A window of k is *centered* on its word, so only a part of it is
            on the side you want to go: draw a window of 3 and count.""", quotes=said),
        mistake("reach of both sides", RIGHT.but(REACH, "k - 1"), PATHS,
            "The word itself was taken off the window, but both of its sides were added together. A step "
            "goes to one side.",
            quotes=said),
        mistake("half of k", RIGHT.but(REACH, "k / 2"), PATHS,
            """Half of k counts half of the word in the middle too. The window is centered on its word: subtract that
            one first, then halve.""", quotes=said),
        mistake("the word itself in the reach", RIGHT.but(REACH, "(k + 1) // 2"), PATHS,
            """You counted the word in the middle as reached. It is where you are; only its neighbors to one side
            bring you on.""", quotes=said),
        mistake("rounded down", RIGHT.but(ROUNDED, "distance // reach"), PATHS,
            """Words 49 apart, 3 a layer: after 16 layers one step is still missing. A layer that is used in part is
            still a layer.""", quotes=said),
        mistake("rounded to the nearest", RIGHT.but("math.ceil", "round"), PATHS,
            "Rounding to the nearest drops a small remainder. One word beyond the last full layer still needs a layer.",
            quotes=said),
        mistake("not rounded", RIGHT.but(ROUNDED, "distance / reach"), PATHS,
            "There is no part of a layer: return a whole number, the first that is enough.", quotes=said),
        mistake("a whole number as float", RIGHT.but(ROUNDED, "float(math.ceil(distance / reach))"), PATHS,
            "The number is right and its type is not: layers are counted with a plain Python int, 17 and not 17.0."),
        mistake("multiplied by the reach", RIGHT.but(ROUNDED, "distance * reach"), PATHS,
            """You multiplied by the reach, so wider windows make the way *longer*. One layer carries something as far
            as the window reaches; how many layers does the distance need?""", quotes=said),
        mistake("k ignored", RIGHT.but(REACH, "1"), PATHS,
            "The same number for every k: your windows always reach 1 word to each side. Wider ones reach further.",
            quotes=said),
        mistake("windows that grow by a factor", RIGHT.but(
                  ROUNDED, "max(1, math.ceil(math.log(distance, k))) if distance else 0"), PATHS,
            """A logarithm: that is the path through *dilated* windows, which skip more words in each layer. Here every
            layer has the same plain windows, so each adds the same number of words.""", quotes=said),
        mistake("windows that double", RIGHT.but(ROUNDED, "math.ceil(math.log2(distance / reach + 1))"), PATHS,
            """In your stack each layer reaches twice as far as the one below it: such windows are *dilated*. Here every
            layer has the same plain windows, so each adds the same number of words.""", quotes=said),
        mistake("windows taken for attention", RIGHT.but("window", "convolution"), PATHS,
            """For windows you answered as for attention, or with nothing: is the condition of that branch never true,
            or does the branch end without a `return`? Is the kind spelled as the description above the cell spells it?
            Here it is "window".""", quotes=said, shows=window_not_met),
        mistake("one number for every kind", RIGHT.but('kind == "recurrent"', 'kind == "recurrent" or "window"'), PATHS,
            """Every kind gets the same number, how far the words are apart. Is the condition of your first `if` always
            true? (`kind == "a" or "b"` is: a string that is not empty counts as true.)""", quotes=said),
        mistake("kinds with a capital letter", RIGHT.but('"recurrent"', '"Recurrent"').but('"window"', '"Window"').but(
                  DIRECT, "0"), PATHS,
            """You returned 0 every time: perhaps none of your conditions was met. Are the kinds spelled as the
            description above the cell spells them? They are "recurrent", "window" and "attention", in small
            letters.""",
            quotes=said),
        mistake("attention squared", RIGHT.but(DIRECT, "distance * distance"), COST,
            "n squared is what attention *costs*, counted in pairs. The way from one word to another is a single step.",
            quotes=said),
        mistake("attention walks as well", RIGHT.but(DIRECT, "distance"), PATHS,
            "In attention every word attends to every other word directly. Distance makes no difference.",
            quotes=said),
        mistake("attention passes every word", RIGHT.but(DIRECT, "max(i, j)"), PATHS,
            """That counts words of the sentence. Attention may *look at* all of them, but from one to another it is a
            single step.""", quotes=said),
        mistake("attention for nothing", RIGHT.but(DIRECT, "0"), PATHS,
            """No path is free: attention carries something from word to word in 1 step. 0 is the distance of a word to
            itself.""", quotes=said),
        mistake("yes or no", RIGHT.but(DIRECT, "distance > 0"), PATHS,
            "For attention you returned True or False. Return a number of steps."),
        mistake("at least one layer", RIGHT.but(ROUNDED, "max(1, math.ceil(distance / reach))"), PATHS,
            "From a word to itself nothing has to travel: 0 layers, for windows too."),
        mistake("at least one step", RIGHT.but("return steps", "return max(1, steps)"), PATHS,
            "From a word to itself nothing has to travel: 0 steps, for every kind."),
        mistake("sign kept", RIGHT.but(DISTANCE, "j - i"), PATHS,
            "When the later word comes first, your number is negative. A distance has no direction."),
        mistake("forward only", RIGHT.but(DISTANCE, "max(j - i, 0)"), PATHS,
            "When the later word comes first, you say 0. The task asks how far apart they are, whichever comes first."),
        mistake("negative steps, rounded up", RIGHT.but(DISTANCE, "j - i").but(DIRECT, "1 if distance else 0"), PATHS,
            "Where the later word comes first, your number for a recurrent network and for windows is not positive. "
            "The way back is as long as the way there."),
        mistake("one layer more, always", RIGHT.but(ROUNDED, "distance // reach + 1"), PATHS,
            """You round down and add 1, which is right where a remainder is left. Where the distance is a multiple of
            the reach (49 words, 1 a layer), no layer must be added.""",
            shows=one_layer_more),
    ),
    correct=(
        correct("ceil", RIGHT),
        correct("integer arithmetic", RIGHT.but(REACH, "k // 2").but(ROUNDED, "-(-distance // reach)").but(
            DIRECT, "int(distance != 0)")),
        correct("loop", """
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
        """),
        correct("table", """
            def path_length(kind, i, j, k=3):
                d = max(i, j) - min(i, j)
                reach = {"recurrent": 1, "window": (k - 1) // 2, "attention": max(d, 1)}[kind]
                return (d + reach - 1) // reach
        """),
        correct("divmod", """
            def path_length(kind, i, j, k=3):
                d = i - j if i > j else j - i
                if kind == "recurrent":
                    return d
                if kind == "attention":
                    return 1 if d else 0
                full, rest = divmod(d, k // 2)
                return full + (rest > 0)
        """),
        correct("recursion by match", """
            def path_length(kind, i, j, k=3):
                match kind:
                    case "recurrent":
                        return abs(j - i)
                    case "window":
                        return int(math.ceil(2 * abs(j - i) / (k - 1)))
                    case "attention":
                        return int(i != j)
        """),
    ),
    hints=(
        "write words 1 to 5 in a row and count the moves from 1 to 5: along the row, with windows of 3, "
        "with windows of 5.",
        "d = how far apart the words are, 0 or more. A window of k reaches (k - 1) / 2 words to each "
        "side in one layer.",
        '`"recurrent"`: d; `"window"`: d divided by the reach, rounded up; `"attention"`: 1, but 0 when the words are '
        "the same.",
    ),
)
