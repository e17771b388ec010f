"""06.4: how many numbers a multi-head attention learns."""

import torch

from autograder.catalogue import families
from autograder.catalogue.ch06_multi_head_attention.shared import sections
from autograder.catalogue.exercise import Case, Evidence, Exercise
from autograder.catalogue.known_answers import answer, correct, formula, mistake
from autograder.catalogue.probes import hidden, visible

COUNT, OUTPUT = sections("count output")


def mha_params(d: int, h: int, bias: bool) -> int:
    """Four square matrices, each with a bias of d numbers if there is one."""
    return 4 * (d * d + (d if bias else 0))


def of_the_paper(g: torch.Generator, bias: bool) -> Case:
    return Case((512, 8, bias))


def drawn(g: torch.Generator, bias: bool) -> Case:
    """Sizes unlike one another, with at least two heads of at least three features."""
    h, d_k = (int(torch.randint(low, low + 9, (), generator=g)) for low in (2, 12))
    return Case((h * d_k, h, bias))


def counted(evidence: Evidence) -> str:
    d, h, bias = evidence.arguments
    return f"For d = {d}, h = {h} and {'biases' if bias else 'no bias'} you counted {evidence.got:,}."


def shows_an_exclusive_or(evidence: Evidence) -> bool:
    """Whether a count is a spelling of the formula with ^ for **; ^ is computed after + and *."""
    d, _, bias = evidence.arguments
    weights = {4 * d ^ 2, 4 * (d ^ 2)}
    both = {4 * d ^ 2 + 4 * d, 4 * (d ^ 2 + d), *(count + 4 * d for count in weights)}
    return type(evidence.got) is int and evidence.got in (both if bias else weights)


def shows_three(evidence: Evidence) -> bool:
    """Whether a count is that of three matrices, with fewer biases than those of four projections."""
    d, _, bias = evidence.arguments
    return type(evidence.got) is int and 0 <= evidence.got - 3 * d * d < (4 * d if bias else 1)


def counted_beyond_three(evidence: Evidence) -> str:
    d, _, _ = evidence.arguments
    more = evidence.got - 3 * d * d
    return f"{counted(evidence)} That is 3 · d · d{f' and {more:,} more' if more else ''}."


def shows_less_without_biases(evidence: Evidence) -> bool:
    """Whether a count without biases is below that of the four matrices."""
    d, _, bias = evidence.arguments
    return not bias and type(evidence.got) is int and 0 <= evidence.got < 4 * d * d


def shows_no_width(evidence: Evidence) -> bool | None:
    """Whether a count is that of the example or of the tensors in a module; a width of 1 cannot show it."""
    d, _, bias = evidence.arguments
    if d == 1:
        return None
    return type(evidence.got) is int and evidence.got in (2, 4, 8, 1_050_624 if bias else 1_048_576)


RIGHT = answer("""
    def mha_params(d, h, bias):
        weights = 4 * d * d
        biases = 4 * d if bias else 0
        return weights + biases
""")
WEIGHTS, BIASES = "4 * d * d", "4 * d if bias else 0"

EXERCISE = Exercise(
    id="mha-params", number="06.4", difficulty=1, minutes=6, visible_points=1, hidden_points=2,
    reference=mha_params, section=COUNT,
    probes=(
        visible("the paper's size, with biases", of_the_paper, True),
        visible("the same without biases", of_the_paper, False),
        visible("4 features, 2 heads", Case((4, 2, True))),
        hidden("other sizes, with biases", drawn, True, announced_by="d_model, a multiple of h"),
        hidden("other sizes, without biases", drawn, False,
               announced_by="whether each of the four projections adds one"),
        hidden("one head", Case((9, 1, True)), announced_by="d_model, a multiple of h"),
        hidden("one feature", Case((1, 1, True)), announced_by="d_model, a multiple of h"),
    ),
    omits={"a batch of one": "there is one module", "a length of one": "there is one module",
           "a second call": "three plain values leave nothing to keep", "precision": "widths are small whole numbers",
           "repeated items": "there is no list"},
    mistakes=(
        mistake("times the heads", RIGHT.ending_in(" * h"), COUNT,
            "You multiplied by the number of heads. The heads *share* the matrices: each takes d/h of the columns.",
            counted),
        mistake("the weights times the heads", RIGHT.but(WEIGHTS, "4 * h * d * d"), COUNT,
            "The matrices were counted once for each head. A head's own matrix has only d/h columns; all of them make "
            "one square.",
            counted),
        mistake("three heads' matrices and one output", RIGHT.but(WEIGHTS, "3 * h * d * d + d * d"), COUNT,
            "Every head was given three full matrices. A head's own matrix has only d/h columns; all of them "
            "make one square.",
            counted),
        mistake("three matrices", RIGHT.but(WEIGHTS, "3 * d * d").but("4 * d if", "3 * d if"), OUTPUT,
            """You counted three matrices. There is a fourth: W_O, once the heads are side by side. (Where there are
            biases, each of the four has d numbers.)""", counted_beyond_three, shows_three),
        mistake("three matrices, four biases", RIGHT.but(WEIGHTS, "3 * d * d"), OUTPUT,
            "You counted three matrices and four biases. W_O is a matrix too.", counted),
        mistake("four matrices, three biases", RIGHT.but("4 * d if", "3 * d if"), COUNT,
            "Four matrices, but only three biases: W_O has one as well.", counted),
        mistake("no bias ever", RIGHT.but(BIASES, "0"), COUNT,
            """The biases are missing: where there are any, each of the four projections adds d numbers. (If you do add
            them, is your condition ever true? `bias` is True or False, not a text.)""", counted),
        mistake("biases always", RIGHT.but(" if bias else 0", ""), COUNT,
            "The biases were counted although bias is False.", counted),
        mistake("bias the wrong way round", RIGHT.but("if bias", "if not bias"), COUNT,
            "Biases were counted where there are none, and left out where there are.", counted),
        mistake("one head only", RIGHT.but(WEIGHTS, "4 * d * (d // h)").but("4 * d if", "4 * (d // h) if"), COUNT,
            "That is the part of one head, and there are h of them side by side.", counted),
        mistake("one head's three matrices, a whole output", RIGHT.but(WEIGHTS, "3 * d * (d // h) + d * d").but(
                  "4 * d if", "3 * (d // h) + d if"), COUNT,
            "Queries, keys and values were counted for one head only, W_O in full. There are h heads.", counted),
        mistake("squares of d_k", RIGHT.but(WEIGHTS, "4 * h * (d // h) ** 2"), COUNT,
            """You counted d times d/h numbers for each matrix: one head's d by d/h, or a small square, d/h by d/h,
            for each head. Each of the h heads reads *all* d features of a word and makes d/h numbers of them, so the
            matrix of all heads is d by d.""", counted),
        mistake("small squares and a whole output", RIGHT.but(WEIGHTS, "3 * h * (d // h) ** 2 + d * d"), COUNT,
            """W_O was counted in full, and the matrices for queries, keys and values with d times d/h numbers each:
            one head's d by d/h, or a small square, d/h by d/h, for each head. Each of the h heads reads all d features
            of a word, so these three are d by d as well.""", counted),
        mistake("one bias for all", RIGHT.but("4 * d if", "d if"), COUNT,
            "One bias was counted. Each of the four projections has its own d numbers.", counted),
        mistake("a bias of one number", RIGHT.but("4 * d if", "4 if"), COUNT,
            "A bias was counted as a single number. It has one for each feature that comes out: d.", counted),
        mistake("a bias for each head", RIGHT.but("4 * d if", "4 * d * h if"), COUNT,
            "The biases were counted once a head. The heads share them as they share the matrices: d numbers a "
            "projection.", counted),
        mistake("a whole bias for each head's matrices", RIGHT.but("4 * d if", "3 * h * d + d if"), COUNT,
            "Every head was given biases of d numbers for queries, keys and values. A head's own have only d/h; those "
            "of all heads together have d.", counted),
        mistake("one number for all biases", RIGHT.but("4 * d if", "1 if"), COUNT,
            "All biases together were counted as a single number. Each of the four has one for each feature: d.",
            counted),
        mistake("two matrices", RIGHT.but(WEIGHTS, "2 * d * d").but("4 * d if", "2 * d if"), COUNT,
            "You counted two projections. There are four: queries, keys, values and output.", counted),
        mistake("the output once a head", RIGHT.but(WEIGHTS, "3 * d * d + h * d * d"), COUNT,
            "W_O was counted once for each head. It is one matrix, behind all of them.", counted),
        mistake("W_O of one head", RIGHT.but(WEIGHTS, "3 * d * d + d * (d // h)"), COUNT,
            """W_O was counted with d times d/h numbers: as d by d/h, for one head, or as a small square, d/h by d/h,
            for each head. It reads all heads side by side, h times d/h numbers: d by d.""", counted),
        mistake("2 d instead of d squared", RIGHT.but(WEIGHTS, "4 * 2 * d"), COUNT,
            "A matrix of d by d has d times d numbers.", counted),
        mistake("matrices of d by h", RIGHT.but(WEIGHTS, "4 * d * h"), COUNT,
            "The matrices were counted as d by h. All heads together are d wide, so each matrix is d by d.", counted),
        mistake("a single matrix", RIGHT.but(WEIGHTS, "d * d").but("4 * d if", "d if"), COUNT,
            "You counted one projection. There are four: queries, keys, values and output.", counted),
        mistake("the condition for the whole sum",
                formula("mha_params(d, h, bias)", "4 * d * d + 4 * d if bias else 0"), COUNT,
            """Without biases you count too little: `bias` decides about more than the biases. In
            `a + b if bias else c`, it chooses between the whole sum a + b and c. It should decide about the biases
            only.""", counted, shows_less_without_biases),
        mistake("the numbers of the example",
                RIGHT.but("return weights + biases", "return 1_050_624 if bias else 1_048_576"), COUNT,
            """Your count does not depend on d: it is written into the code, as that of the example may be, or the
            *tensors* were counted, such as four matrices and four biases. Count the numbers in them, and compute the
            count from d.""", counted, shows_no_width),
        mistake("^ for a power", RIGHT.but(WEIGHTS, "4 * (d ^ 2)"), COUNT,
            "In Python ^ is not a power: it compares the digits of binary numbers. d squared is d times d.", counted),
        mistake("^ for a power, without brackets", RIGHT.but(WEIGHTS, "4 * d ^ 2"), COUNT,
            """In Python ^ is not a power but exclusive or, on binary digits, and it is computed after + and *. A
            power is written **, and d squared is also d times d.""", counted, shows_an_exclusive_or),
        mistake("the square of d + 1",
                RIGHT.but("return weights + biases", "return 4 * (d + 1) ** 2 if bias else weights"), COUNT,
            """You counted squares of d + 1. A bias adds one number to each *output*: d rows of d + 1 numbers, not d +
            1 rows.""", counted),
        mistake("a bias of d_k numbers", RIGHT.but("4 * d if", "4 * (d // h) if"), COUNT,
            "Each bias was counted with d/h numbers, those of one head. A projection makes d features and adds d "
            "numbers.", counted),
        mistake("a float", RIGHT.ending_in(" / 1"), COUNT,
            """The number is right, but it came as a float. A count is a whole number. A single /, a factor such as 1.0
            and functions such as math.pow and math.sqrt give floats; //, * and ** stay within the integers."""),
        families.A_TEXT(RIGHT.but("return weights + biases", 'return f"{weights + biases:,}"'), COUNT),
        families.A_TENSOR_FOR_A_COUNT(RIGHT.but("return weights + biases", "return torch.tensor(weights + biases)"),
            COUNT),
    ),
    correct=(
        correct("sum", RIGHT),
        correct("one formula", formula("mha_params(d, h, bias)", "4 * d * (d + bool(bias))")),
        correct("head by head", """
            def mha_params(d, h, bias):
                d_k = d // h
                one_head = 3 * (d * d_k + (d_k if bias else 0))
                return h * one_head + h * d_k * d + (d if bias else 0)
        """),
        correct("asking the library", """
            def mha_params(d, h, bias):
                return sum(p.numel() for p in nn.MultiheadAttention(d, h, bias=bias).parameters())
        """),
        correct("a loop", """
            def mha_params(d, h, bias):
                total = 0
                for name in ("query", "key", "value", "output"):
                    total += d ** 2
                    if bias:
                        total += d
                return total
        """),
        correct("counting layers on no device", """
            def mha_params(d, h, bias):
                with torch.device("meta"):
                    layers = [nn.Linear(d, d, bias=bias) for _ in range(4)]
                return sum(p.numel() for layer in layers for p in layer.parameters())
        """),
        correct("counting layers", """
            def mha_params(d, h, bias):
                return sum(p.numel() for _ in range(4) for p in nn.Linear(d, d, bias).parameters())
        """),
        correct("integer from a float", formula("mha_params(d, h, bias)", "int(4 * d ** 2.0 + 4 * d * int(bias))")),
    ),
    hints=(
        "how many projections are there, and what is the shape of each? Does h change any of them?",
        "W_Q, W_K, W_V: (d, d) each, all heads side by side; W_O: (d, d). A bias has d numbers.",
        "four times d times d; with biases, four times d more.",
    ),
)
