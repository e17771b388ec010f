"""01.4: what a layer costs, and where two kinds cost the same."""

import torch

from autograder.catalogue import families
from autograder.catalogue.ch01_why_attention.shared import drawn, sections
from autograder.catalogue.exercise import Case, Evidence, Exercise
from autograder.catalogue.known_answers import answer, correct, mistake
from autograder.catalogue.probes import hidden, second_call, visible

(COST,) = sections("cost")


def layer_cost(kind: str, n: int, d: int, k: int) -> int:
    """Multiplications in one layer over n words of width d."""
    return {"recurrent": n * d * d, "convolution": k * n * d * d, "attention": n * n * d}[kind]


def break_even(d: int) -> int:
    """The length at which attention and recurrence cost the same: n n d = n d d."""
    return d


def layer(g: torch.Generator, kind: str, k: int = 3) -> Case:
    return Case((kind, drawn(60, 900, g), 8 * drawn(5, 7, g) + 1, k))


def huge_layer(g: torch.Generator, kind: str, k: int) -> Case:
    """An odd cost of 17 or 18 digits, more than a float holds."""
    return Case((kind, 2 * drawn(10**6, 2 * 10**6, g) + 1, 2 * drawn(40_000, 80_000, g) + 1, k))


def wide_window(g: torch.Generator) -> Case:
    """A window of an even number of words, more than the sentence has."""
    return Case(("convolution", drawn(3, 5, g), drawn(20, 90, g), 8))


def one_word(g: torch.Generator) -> Case:
    return Case(("attention", 1, drawn(20, 90, g), 3))


def whole_book(g: torch.Generator) -> Case:
    return Case(("attention", 1000 * drawn(200, 400, g), 4_096, 9))


def beyond_floats(g: torch.Generator) -> Case:
    """A cost of more digits than a float holds, and fewer than 64 bits do."""
    return Case(("attention", 2 * drawn(10**6, 2 * 10**6, g) + 1, 2 * drawn(2_000, 3_000, g) + 1, 3))


def width(g: torch.Generator, low: int, high: int) -> Case:
    return Case((drawn(low, high, g),), function="break_even")


def priced(evidence: Evidence) -> str:
    if len(evidence.arguments) == 1:
        return f"For d = {evidence.arguments[0]} you said {evidence.got}."
    kind, n, d, k = evidence.arguments
    window = f", k = {k}" if kind == "convolution" else ""
    return f"For {kind} with n = {n}, d = {d}{window} you said {evidence.got:,}."


def is_xor(evidence: Evidence) -> bool:
    """Whether d ^ 2, or n ^ 2, was computed as Python reads it."""
    if len(evidence.arguments) == 1:
        return False
    kind, n, d, k = evidence.arguments
    forms = {"recurrent": (n * d ^ 2, n * (d ^ 2)), "attention": (n ^ 2 * d, (n ^ 2) * d, n * n ^ 2 * d),
             "convolution": (n * k * d ^ 2, k * n * (d ^ 2))}
    return evidence.got in forms[kind]


def is_less_at_the_edges(evidence: Evidence) -> bool:
    """Whether windows that reach beyond the sentence were left out or cut to the words that they hold."""
    if evidence.arguments[0] != "convolution":
        return False
    _, n, d, k = evidence.arguments
    sides = {(k // 2, k // 2), ((k - 1) // 2, (k - 1) // 2), (k // 2, (k - 1) // 2)}
    words = [sum(max(0, n - abs(step)) for step in range(-left, right + 1)) for left, right in sides]
    return evidence.got in {count * d * d for count in (k * (n - k + 1), *words)} - {evidence.expected}


RIGHT = answer("""
    def layer_cost(kind, n, d, k):
        if kind == "recurrent":
            return n * d * d
        if kind == "convolution":
            return k * n * d * d
        return n * n * d

    def break_even(d):
        return d
""")
RECURRENT, CONVOLUTION, ATTENTION, EVEN = "return n * d * d", "return k * n * d * d", "return n * n * d", "return d"
COSTS_AS_FLOAT = RIGHT.but(RECURRENT, "return n * d**2.0").but(CONVOLUTION, "return k * n * d**2.0").but(
    ATTENTION, "return n**2.0 * d")

EXERCISE = Exercise(
    id="layer-cost", number="01.4", difficulty=1, minutes=10, visible_points=1, hidden_points=1,
    reference=(layer_cost, break_even), section=COST,
    probes=(
        visible("attention, n = 50, d = 512", Case(("attention", 50, 512, 3))),
        visible("recurrent, n = 50, d = 512", Case(("recurrent", 50, 512, 3))),
        visible("convolution, n = 50, d = 512, k = 5", Case(("convolution", 50, 512, 5))),
        visible("break even at d = 512", Case((512,), function="break_even")),
        second_call(layer, "attention", announced_by="n: words"),
        hidden("recurrent, other sizes", huge_layer, "recurrent", 11, rtol=0.0, announced_by="not a float"),
        hidden("convolution, other sizes", huge_layer, "convolution", 7, rtol=0.0,
               announced_by="not a float"),
        hidden("a window wider than the sentence", wide_window, announced_by="possibly more than n"),
        hidden("one word", one_word, announced_by="at least 1"),
        hidden("a whole book", whole_book, announced_by="not a float"),
        hidden("a cost of seventeen digits", beyond_floats, rtol=0.0, announced_by="not a float"),
        hidden("break even at another width", width, 9_000, 10_000, announced_by="words of d features"),
        hidden("break even at width 1", width, 1, 1, announced_by="from 1 to 10,000"),
    ),
    omits={"a batch of one": "there is one layer",
           "precision": "sizes are whole numbers; a probe has a cost of more digits than a float holds",
           "a length of one": "numbers, no tensors: a probe has one word", "falsy values": "every size is at least 1",
           "repeated items": "the sizes of one layer"},
    mistakes=(
        mistake("attention as a recurrent step", RIGHT.but(ATTENTION, "return n * d * d"), COST,
            """Doubling n must quadruple attention: every word attends to every word. Yours only doubles. One pair of
            words costs one dot product of two vectors of d numbers; how many pairs are there?""", quotes=priced),
        mistake("pairs only", RIGHT.but(ATTENTION, "return n * n"), COST,
            """That is the number of pairs. Each pair costs a dot product, and a dot product of two vectors of d numbers
            takes d multiplications.""", quotes=priced),
        mistake("each word once", RIGHT.but(ATTENTION, "return n * d"), COST,
            "That is one dot product a word. Each of the n words attends to *all* n words.", quotes=priced),
        mistake("each pair once", RIGHT.but(ATTENTION, "return n * (n - 1) // 2 * d"), COST,
            """You counted each pair once and left out the word itself. A attending to B and B attending to A are two
            pairs, and each word attends to itself as well.""", quotes=priced),
        mistake("each pair once, and itself", RIGHT.but(ATTENTION, "return n * (n + 1) // 2 * d"), COST,
            "You counted each pair once. A attending to B and B attending to A are two pairs: n times n of "
            "them.", quotes=priced),
        mistake("no word asks itself", RIGHT.but(ATTENTION, "return n * (n - 1) * d"), COST,
            "You left out the pairs of a word with itself. Each word attends to every word, itself too: n times n.",
            quotes=priced),
        mistake("both squared", RIGHT.but(ATTENTION, "return n * n * d * d"), COST,
            "d times too many: for each of the n times n pairs there is a *dot product*, d multiplications, "
            "and no matrix.",
            quotes=priced),
        mistake("attention times heads", RIGHT.but(ATTENTION, "return 8 * n * n * d"), COST,
            """Eight times too many: heads divide the width among themselves, d / 8 each, so together they cost what one
            head of width d costs.""", quotes=priced),
        mistake("both products of attention", RIGHT.but(ATTENTION, "return 2 * n * n * d"), COST,
            """Twice the expected count: you counted the dot products and the weighted sum. A real layer does both, but
            as in the paper's table, factors like 2 are left out for all kinds: count the dot products.""",
            quotes=priced),
        mistake("projections counted as well", RIGHT.but(ATTENTION, "return n * n * d + 3 * n * d * d"), COST,
            """You added what it costs to make queries, keys and values. A real layer does that too (and for short
            sentences it is the larger part); here we count the dot products between words.""", quotes=priced),
        mistake("recurrent and attention exchanged", RIGHT.but("recurrent", "attention"), COST,
            """The two formulas are exchanged: for a recurrent layer you return the cost of attention, and the reverse.
            A recurrent step multiplies a d by d matrix for each word; attention compares each word with each word.""",
            quotes=priced),
        mistake("recurrent without the matrix", RIGHT.but(RECURRENT, "return n * d"), COST,
            "A recurrent step multiplies the state by a d by d *matrix*: every new number is a sum over "
            "all d old ones.",
            quotes=priced),
        mistake("one step fewer", RIGHT.but(RECURRENT, "return (n - 1) * d * d"), COST,
            "You counted the steps *between* the words. Each word costs a step, the first one as well: n in all.",
            quotes=priced),
        mistake("n steps for each word", RIGHT.but(RECURRENT, "return n * n * d * d"), COST,
            "n times too many: each word costs *one* step, in which its state meets the matrix once.", quotes=priced),
        mistake("both matrices of a recurrent step", RIGHT.but(RECURRENT, "return 2 * n * d * d"), COST,
            """Twice the expected count: one matrix for the state and one for the input. A real layer has both; factors
            like 2 are left out for all kinds here, so count one.""", quotes=priced),
        mistake("k forgotten", RIGHT.but(CONVOLUTION, "return n * d * d"), COST,
            """A convolution looks at k words around each position, and each of the k has a d by d matrix of its own.
            Your number does not depend on k.""", quotes=priced),
        mistake("k added", RIGHT.but(CONVOLUTION, "return k + n * d * d"), COST,
            "k was added. Each of the n words has k neighbors to multiply, so k is a *factor*.", quotes=priced),
        mistake("one window only", RIGHT.but(CONVOLUTION, "return k * d * d"), COST,
            "That is the cost of one window. There is a window around each of the n words.", quotes=priced),
        mistake("k squared", RIGHT.but(CONVOLUTION, "return k * k * n * d * d"), COST,
            "k by k is the window of an *image*. A sentence has one direction: k words a window.", quotes=priced),
        mistake("convolution without matrices", RIGHT.but(CONVOLUTION, "return k * n * d"), COST,
            "That is one weight for each of the k words and each feature. Here each of the k words meets a "
            "d by d matrix.",
            quotes=priced),
        mistake("one side of the window", RIGHT.but(CONVOLUTION, "return (k - 1) // 2 * n * d * d"), COST,
            "The reach to one side was counted. All k words of the window are multiplied, both sides and the middle.",
            quotes=priced),
        mistake("break even at d squared", RIGHT.but(EVEN, "return d * d"), COST,
            """Put it in: at n = d², attention costs d times as much as recurrence. Write both costs as an equation and
            cancel what is on both sides.""", quotes=priced),
        mistake("break even at the root", RIGHT.but(EVEN, "return int(d**0.5)"), COST,
            """Put it in: at the root of d attention is still the cheaper one by far. Write both costs as an equation
            and cancel what is on both sides.""", quotes=priced),
        mistake("break even with a convolution", RIGHT.but(EVEN, "return 3 * d"), COST,
            "That is where attention meets a *convolution* with windows of 3. Compare it with a recurrent layer.",
            quotes=priced),
        mistake("break even at half", RIGHT.but(EVEN, "return d // 2"), COST,
            """Half of d comes out when attention's two products are counted. With the costs of this exercise, write
            both as an equation and cancel.""", quotes=priced),
        mistake("break even at twice", RIGHT.but(EVEN, "return 2 * d"), COST,
            "Put it in: at n = 2d attention costs twice as much. Write both costs as an equation and cancel.",
            quotes=priced),
        mistake("^ taken for a power", RIGHT.but(RECURRENT, "return n * d ^ 2"), COST,
            "In Python ^ is not a power: it compares bits. ** is one, as in d ** 2.", quotes=priced, shows=is_xor),
        mistake("first length that is dearer", RIGHT.but(EVEN, "return d + 1"), COST,
            "That is the first length at which attention costs *more*. Return the one at which both cost the same.",
            quotes=priced),
        mistake("break even at 0", RIGHT.but(EVEN, "return 0"), COST,
            "At n = 0 both layers cost nothing, so a search that begins there ends at once. Find the length of a "
            "sentence that has words.", quotes=priced),
        mistake("always 512", RIGHT.but(EVEN, "return 512"), COST,
            "512 is the answer for d = 512. What is it for another width?"),
        mistake("break even as float", RIGHT.but(EVEN, "return d * d / d"), COST,
            "You returned a float, as /, math.sqrt and ** 0.5 do. A length is a whole number, a plain Python int."),
        mistake("costs as float", COSTS_AS_FLOAT, COST,
            "The numbers are right, but they are floats. Multiplications are counted with plain Python ints, exact at "
            "any size."),
        families.OVERFLOW_32_BITS(RIGHT.before('if kind == "recurrent":',
                                        "n = torch.tensor(n, dtype=torch.int32)").but(ATTENTION,
                                            "return int(n * n * d)").but(
                  RECURRENT, "return int(n) * d * d").but(CONVOLUTION, "return k * int(n) * d * d"),
            COST, count="cost", billions="2"),
        mistake("break even searched up to a limit",
                RIGHT.but(EVEN, "return next((n for n in range(1, 2000) if n * n * d >= n * d * d), 2000)"), COST,
            "Your search ends before it finds the length: for a large d it is beyond your limit."),
        mistake("everything counted twice",
                RIGHT.but(RECURRENT, "return 2 * n * d * d").but(CONVOLUTION, "return 2 * k * n * d * d").but(ATTENTION,
                    "return 2 * n * n * d"), COST,
            "Every number is twice the correct one: multiplications are counted, and the additions between them are "
            "not."),
        mistake("one step of the recurrence", RIGHT.but(RECURRENT, "return d * d"), COST,
            "For the recurrent layer you counted one step. Every one of the n words takes such a step."),
        mistake("no windows at the edges", RIGHT.but(CONVOLUTION, "return k * (n - k + 1) * d * d"), COST,
            """Near the edges you counted fewer than k words, or no window at all. Each of the n words has a window of
            its own, with k products, also at the edges and where the window is wider than the sentence.""",
            quotes=priced, shows=is_less_at_the_edges),
        mistake("floats on the way",
                RIGHT.but(RECURRENT, "return int(n * d**2.0)").but(CONVOLUTION, "return int(k * n * d**2.0)").but(
                  ATTENTION, "return int(float(n)**2 * d)"), COST,
            """Right until the cost has more digits than a float holds, about 16; the rest is lost. math.pow, / and 2.0
            count in floats: stay with whole numbers."""),
        mistake("floats", COSTS_AS_FLOAT.but(EVEN, "return d / 1"), COST,
            """The numbers are right and their type is not: multiplications are counted, with plain Python ints. A
            single / makes a float, even of 4 / 2."""),
    ),
    correct=(
        correct("products", RIGHT),
        correct("powers", RIGHT.but(RECURRENT, "return n * d**2").but(CONVOLUTION,
            "return k * layer_cost('recurrent', n, d, k)").but(
            ATTENTION, "return d * pow(n, 2)")),
        correct("table", """
            def layer_cost(kind, n, d, k):
                return dict(recurrent=n * d * d, convolution=n * k * d * d, attention=n * d * n)[kind]

            break_even = lambda d: d
        """),
        correct("one product", """
            def layer_cost(kind, words, width, window):
                factor = {"recurrent": width, "convolution": window * width, "attention": words}[kind]
                return words * width * factor

            def break_even(width):
                return int(width)
        """),
        correct("searched", """
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
        """),
        correct("divided", RIGHT.but(EVEN, "return (d * d) // d")),
    ),
    hints=(
        "for each kind ask: how many small products are there, and how many multiplications does one of them take?",
        "a vector times a (d, d) matrix takes d times d; a dot product of two vectors of d numbers takes d. "
        "n words; n times n pairs; k matrices a window.",
        '`"recurrent"`: n times d times d; `"convolution"`: k times that; `"attention"`: n times n times d. Set the '
        "first equal to the last and solve for n.",
    ),
)
