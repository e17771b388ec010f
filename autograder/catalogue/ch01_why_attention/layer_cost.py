"""01.3 layer_cost."""

import torch

from autograder.catalogue.ch01_why_attention.shared import _drawn, sections
from autograder.catalogue.exercise import Case, Evidence, Exercise, Probe
from autograder.catalogue.parts import known, right

(COST,) = sections("cost")


def layer_cost(kind: str, n: int, d: int, k: int) -> int:
    """Multiplications in one layer over n words of width d."""
    return {"recurrent": n * d * d, "convolution": k * n * d * d, "attention": n * n * d}[kind]


def break_even(d: int) -> int:
    """The length at which attention and recurrence cost the same: n n d = n d d."""
    return d


def _cost(
    recurrent: str = "n * d * d", convolution: str = "k * n * d * d", attention: str = "n * n * d", even: str = "d"
) -> str:
    """An answer with one of its lines replaced."""
    return (
        "def layer_cost(kind, n, d, k):\n    if kind == 'recurrent':\n"
        f"        return {recurrent}\n    if kind == 'convolution':\n        return {convolution}\n    return {attention}\n"
        f"\ndef break_even(d):\n    return {even}\n"
    )


def _priced(evidence: Evidence) -> str:
    if len(evidence.arguments) == 1:
        return f"For d = {evidence.arguments[0]} you said {evidence.got}."
    kind, n, d, k = evidence.arguments
    window = f", k = {k}" if kind == "convolution" else ""
    return f"For {kind} with n = {n}, d = {d}{window} you said {evidence.got:,}."


def _layer(kind: str, g: torch.Generator, k: int = 3) -> Case:
    return Case((kind, _drawn(60, 900, g), 8 * _drawn(5, 7, g) + 1, k))


EXERCISE = Exercise(
    id="layer-cost",
    number="01.3",
    visible_points=1,
    hidden_points=1,
    section=COST,
    reference={"layer_cost": layer_cost, "break_even": break_even},
    probes=(
        Probe("attention, n = 50, d = 512", lambda g: Case(("attention", 50, 512, 3)), hidden=False),
        Probe("recurrent, n = 50, d = 512", lambda g: Case(("recurrent", 50, 512, 3)), hidden=False),
        Probe("convolution, n = 50, d = 512, k = 5", lambda g: Case(("convolution", 50, 512, 5)), hidden=False),
        Probe("break even at d = 512", lambda g: Case((512,), function="break_even"), hidden=False),
        Probe("attention, other sizes", lambda g: _layer("attention", g)),
        Probe("recurrent, other sizes", lambda g: _layer("recurrent", g, 5)),
        Probe("convolution, other sizes", lambda g: _layer("convolution", g, 7)),
        Probe("one word", lambda g: Case(("attention", 1, _drawn(20, 90, g), 3))),
        Probe("a whole book", lambda g: Case(("attention", 1000 * _drawn(200, 400, g), 4_096, 3))),
        Probe("break even at another width", lambda g: Case((_drawn(60, 400, g),), function="break_even")),
        Probe("break even at width 1", lambda g: Case((1,), function="break_even")),
    ),
    wrong=(
        known(
            "attention as a recurrent step",
            _cost(attention="n * d * d"),
            """Doubling n must quadruple attention: every word asks every word. Yours only doubles. One pair of words costs one
            dot product of d numbers; how many pairs are there?""",
            COST,
            _priced,
        ),
        known(
            "pairs only",
            _cost(attention="n * n"),
            "That is the number of pairs. Each pair costs a dot product, and a dot product of two vectors of d numbers takes d multiplications.",
            COST,
            _priced,
        ),
        known(
            "each word once",
            _cost(attention="n * d"),
            "That is one dot product a word. Each of the n words asks *all* n words.",
            COST,
            _priced,
        ),
        known(
            "each pair once",
            _cost(attention="n * (n - 1) // 2 * d"),
            "You counted each pair once and left out the word itself. A asks B and B asks A are two questions, and each word asks itself as well.",
            COST,
            _priced,
        ),
        known(
            "no word asks itself",
            _cost(attention="n * (n - 1) * d"),
            "You left out the pairs of a word with itself. Each word asks every word, itself too: n times n.",
            COST,
            _priced,
        ),
        known(
            "both squared",
            _cost(attention="n * n * d * d"),
            "d times too many: for each of the n times n pairs there is a *dot product*, d multiplications, and no matrix.",
            COST,
            _priced,
        ),
        known(
            "attention times heads",
            _cost(attention="8 * n * n * d"),
            "Eight times too many: heads divide the width among themselves, d / 8 each, so together they cost what one head of width d costs.",
            COST,
            _priced,
        ),
        known(
            "both products of attention",
            _cost(attention="2 * n * n * d"),
            """Twice ours: you counted the dot products and the weighted sum. True of the machine, but as in the paper's table
            factors like 2 are left out for all kinds: count the dot products.""",
            COST,
            _priced,
        ),
        known(
            "projections counted as well",
            _cost(attention="n * n * d + 3 * n * d * d"),
            """You added what it costs to make queries, keys and values. True of the machine (and for short sentences it is the larger
            part); here we count the dot products between words.""",
            COST,
            _priced,
        ),
        known(
            "recurrent and attention exchanged",
            _cost(recurrent="n * n * d", attention="n * d * d"),
            "The two are exchanged. A recurrent step multiplies a d by d matrix for each word; attention compares each word with each word.",
            COST,
            _priced,
        ),
        known(
            "recurrent without the matrix",
            _cost(recurrent="n * d"),
            "A recurrent step multiplies the state by a d by d *matrix*: every new number is a sum over all d old ones.",
            COST,
            _priced,
        ),
        known(
            "one step fewer",
            _cost(recurrent="(n - 1) * d * d"),
            "You counted the steps *between* the words. Each word costs a step, the first one as well: n in all.",
            COST,
            _priced,
        ),
        known(
            "both matrices of a recurrent step",
            _cost(recurrent="2 * n * d * d"),
            "Twice ours: one matrix for the state and one for the input. True of the machine; we leave factors like 2 out for all kinds and count one.",
            COST,
            _priced,
        ),
        known(
            "k forgotten",
            _cost(convolution="n * d * d"),
            "A convolution looks at k words around each place, and each of the k has a d by d matrix of its own. Your number does not depend on k.",
            COST,
            _priced,
        ),
        known(
            "one window only",
            _cost(convolution="k * d * d"),
            "That is the cost of one window. There is a window around each of the n words.",
            COST,
            _priced,
        ),
        known(
            "k squared",
            _cost(convolution="k * k * n * d * d"),
            "k by k is the window of an *image*. A sentence has one direction: k words a window.",
            COST,
            _priced,
        ),
        known(
            "convolution without matrices",
            _cost(convolution="k * n * d"),
            "That is one weight for each of the k words and each feature. Here each of the k words meets a d by d matrix.",
            COST,
            _priced,
        ),
        known(
            "one side of the window",
            _cost(convolution="(k - 1) // 2 * n * d * d"),
            "The reach to one side was counted. All k words of the window are multiplied, both sides and the middle.",
            COST,
            _priced,
        ),
        known(
            "break even at d squared",
            _cost(even="d * d"),
            "Put it in: at n = d², attention costs d times as much as recurrence. Write both costs as an equation and cancel what stands on both sides.",
            COST,
            _priced,
        ),
        known(
            "break even at the root",
            _cost(even="int(d**0.5)"),
            "Put it in: at the root of d attention is still the cheaper one by far. Write both costs as an equation and cancel what stands on both sides.",
            COST,
            _priced,
        ),
        known(
            "break even with a convolution",
            _cost(even="3 * d"),
            "That is where attention meets a *convolution* with windows of 3. Compare it with a recurrent layer.",
            COST,
            _priced,
        ),
        known(
            "break even at half",
            _cost(even="d // 2"),
            "Half of d comes out when attention's two products are counted. With the costs of this exercise, write both as an equation and cancel.",
            COST,
            _priced,
        ),
        known(
            "first length that is dearer",
            _cost(even="d + 1"),
            "That is the first length at which attention costs *more*. The one at which both cost the same is wanted.",
            COST,
            _priced,
        ),
        known(
            "always 512",
            _cost(even="512"),
            "512 is the answer for d = 512. What is it for another width?",
            COST,
        ),
        known(
            "break even as float",
            _cost(even="d * d / d"),
            "The number is right, but / makes a float of it. A length is a whole number: a plain Python int.",
            COST,
        ),
        known(
            "costs as float",
            _cost("n * d**2.0", "k * n * d**2.0", "n**2.0 * d"),
            "The numbers are right, but they are floats. Multiplications are counted with plain Python ints, exact at any size.",
            COST,
        ),
        known(
            "one step of the recurrence",
            """
            def layer_cost(kind, n, d, k):
                if kind == "recurrent":
                    return d * d
                return k * n * d * d if kind == "convolution" else n * n * d

            def break_even(d):
                return d
            """,
            "For the recurrent layer you counted one step. Every one of the n words takes such a step.",
            COST,
        ),
        known(
            "no windows at the edges",
            """
            def layer_cost(kind, n, d, k):
                if kind == "convolution":
                    return k * (n - k + 1) * d * d
                return n * d * d if kind == "recurrent" else n * n * d

            def break_even(d):
                return d
            """,
            "You counted only the windows that fit inside the sentence. Each of the n words has a window of its own, at the edges too.",
            COST,
        ),
        known(
            "floats",
            """
            def layer_cost(kind, n, d, k):
                if kind == "convolution":
                    return float(k * n * d * d)
                return float(n * d * d if kind == "recurrent" else n * n * d)

            def break_even(d):
                return d / 1
            """,
            "The numbers are right and their type is not: multiplications are counted, with plain Python ints. A single / makes a float, even of 4 / 2.",
            COST,
        ),
    ),
    right=(
        right("products", _cost()),
        right("powers", _cost("n * d**2", "k * layer_cost('recurrent', n, d, k)", "d * pow(n, 2)")),
        right(
            "table",
            "def layer_cost(kind, n, d, k):\n    return dict(recurrent=n * d * d, convolution=n * k * d * d, attention=n * d * n)[kind]\n\nbreak_even = lambda d: d\n",
        ),
        right(
            "one product",
            """
            def layer_cost(kind, words, width, window):
                factor = {"recurrent": width, "convolution": window * width, "attention": words}[kind]
                return words * width * factor

            def break_even(width):
                return int(width)
            """,
        ),
        right(
            "searched",
            """
            def layer_cost(kind, n, d, k):
                match kind:
                    case "recurrent":
                        return n * (d * d)
                    case "convolution":
                        return sum(n * d * d for _ in range(k))
                    case "attention":
                        return (n * n) * d

            def break_even(d):
                n = 1
                while layer_cost("attention", n, d, 3) < layer_cost("recurrent", n, d, 3):
                    n += 1
                return n
            """,
        ),
        right("divided", _cost(even="(d * d) // d")),
    ),
    hints=(
        "for each kind ask: how many small products are there, and how many multiplications does one of them take?",
        "a vector times a (d, d) matrix takes d times d; a dot product of d numbers takes d. n words; n times n pairs; k matrices a window.",
        "recurrent: n times d times d. convolution: k times that. attention: n times n times d. Set the first equal to the last and solve for n.",
    ),
)
