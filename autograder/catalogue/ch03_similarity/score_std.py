"""03.3: how large dot products are, measured."""

import math
from typing import Any

import torch
from torch import Tensor

from autograder.catalogue import families
from autograder.catalogue.ch03_similarity.shared import sections
from autograder.catalogue.exercise import Case, Evidence, Exercise, Remark
from autograder.catalogue.families import Family
from autograder.catalogue.known_answers import answer, correct, mistake
from autograder.catalogue.numbers import number
from autograder.catalogue.probes import hidden, second_call, visible

(MEASURE,) = sections("measure")

PAIRS = 5_000
OTHER_SIZES = (1_000, 10_000, 20_000, 50_000, 100_000)  # constants that an answer may use instead of n
FIXED = (3, 4, 5)  # seeds that do not change from one submission to the next
EXACT = 3e-6  # relative; only spreads of the same numbers are so close to each other
EVERYBODY = Remark("it is the spread of n times n dot products, every query with every key")
WRITTEN_IN = Remark("it is not the spread of n pairs, but of a different number of pairs")
ROUNDED = Remark("the number was rounded")
FORMULA = Remark("it is exactly the root of d, which no measurement gives")
FEW = 10  # pairs whose spread may be anything


def score_std(d: int, n: int, generator: torch.Generator) -> float:
    """A measured standard deviation, since the true one, the root of d, is no answer; of a few pairs the true one."""
    q, k = torch.randn(2, n, d, generator=generator)
    return (q * k).sum(dim=-1).std().item() if n >= FEW else d**0.5


def as_measured(case: Case, result: Any) -> Any:
    """The result, or what was measured instead.

    The spread of other dot products is as close to the root of d, so they are drawn again, from an equal generator and
    in the usual order. That is done for fixed seeds only: with some other seed a correct result would match by chance.
    """
    d, n, generator = case.arguments
    if not isinstance(result, float) or not math.isfinite(result) or n < FEW:
        return result
    if result in (d**0.5, torch.tensor(float(d)).sqrt().item()):
        return FORMULA
    if generator.initial_seed() not in FIXED:
        return result
    if result == round(result, 3) and math.isclose(result, d**0.5, rel_tol=0.15):
        return ROUNDED

    def drawn(*shape: int) -> Tensor:
        equal = torch.Generator()
        equal.set_state(generator.get_state())
        return torch.randn(*shape, generator=equal)

    both = (drawn(2, n, d), drawn(n, 2, d).transpose(0, 1))
    if any(math.isclose(result, std_of_all(*pairs.double()), rel_tol=EXACT) for pairs in both):
        return EVERYBODY
    for pairs in OTHER_SIZES if d < 20 else ():
        q, k = drawn(2, pairs, d)
        if pairs != n and math.isclose(result, (q * k).sum(dim=-1).std().item(), rel_tol=EXACT):
            return WRITTEN_IN
    return result


def std_of_all(q: Tensor, k: Tensor) -> float:
    """The standard deviation of the dot products of every query with every key, without a table of them."""
    squares = ((q.T @ q) * (k.T @ k)).sum().item()
    total, count = q.sum(dim=0).dot(k.sum(dim=0)).item(), len(q) * len(k)
    return math.sqrt((squares - total**2 / count) / (count - 1))


def seeded(g: torch.Generator, d: int, seed: int, pairs: int = PAIRS) -> Case:
    return Case((d, pairs, torch.Generator().manual_seed(seed)))


def between(g: torch.Generator, low: int, high: int, pairs: int = PAIRS) -> Case:
    """A width from low to high - 1, and a generator at a drawn seed."""
    d = int(torch.randint(low, high, (), generator=g))
    return seeded(g, d, int(torch.randint(1 << 30, (), generator=g)), pairs)


def yours(evidence: Evidence) -> str:
    """The returned number, and the correct one."""
    if isinstance(evidence.got, Remark):
        return ""
    return f"You returned {number(evidence.got)} where about {number(evidence.expected)} was expected."


def a_formula(evidence: Evidence) -> bool:
    return evidence.got == FORMULA


def near_0(evidence: Evidence) -> bool:
    return not isinstance(evidence.got, Remark) and abs(evidence.got) < 0.06 * evidence.expected


RIGHT = answer("""
    def score_std(d, n, generator):
        q, k = torch.randn(2, n, d, generator=generator)
        products = (q * k).sum(dim=-1)
        return products.std().item()
""")
NORMAL = "torch.randn(2, n, d, generator=generator)"

# fmt: off
ONE_FOR_ALL = Family("one {one} for all pairs", """One {one} met all the {others}, so you measured the length of that
    one {one}: another draw, another result. Each of the n pairs needs a {one} of its own.""")
# fmt: on

EXERCISE = Exercise(
    id="score-std", number="03.3", difficulty=2, minutes=8, visible_points=1, hidden_points=2,
    reference=score_std, normalize=as_measured, section=MEASURE,
    # A measured standard deviation is itself uncertain: its relative error is the root of (kurtosis - 1) / 4n, where
    # the kurtosis is 3 + 6/d: 1.0 percent for d = 64, 1.6 for d = 2, 2.0 for d = 1. Two answers differ by 1.4 times
    # that, and each rtol is more than five times as large. n stays small enough for a table of all n times n pairs.
    probes=(
        visible("64 numbers", seeded, 64, seed=3, checks="generator", rtol=0.09),
        visible("2 numbers", seeded, 2, seed=4, checks="state", rtol=0.12),
        hidden("3 numbers", between, 3, 4, rtol=0.12, announced_by="how many standard normal numbers"),
        hidden("many numbers", between, 150, 300, pairs=4_000, rtol=0.09,
               announced_by="how many standard normal numbers"),
        hidden("one number", between, 1, 2, rtol=0.15, announced_by="how many standard normal numbers"),
        # One query for all pairs comes as near by chance to what is right, in one of six draws; so three are made.
        hidden("2 other numbers", between, 2, 3, rtol=0.12, announced_by="how many standard normal numbers"),
        hidden("one number, drawn by another generator", between, 1, 2, rtol=0.15,
               announced_by="how many standard normal numbers"),
        hidden("its own query and its own key", seeded, 16, seed=5, rtol=0.09,
               announced_by="each pair has its own query and its own key"),
        # Of two pairs the spread may be anything, but it is a number.
        hidden("two pairs", between, 5, 8, pairs=2, rtol=9.0, announced_by="at least 2"),
        second_call(between, 10, 11, checks="generator", rtol=0.09,
                    name="a second call draws from the generator it was given",
                    announced_by="Draw every random number"),
        hidden("the global random state stays as it is", between, 15, 25, checks="state", rtol=0.09,
               announced_by="no other code's random numbers change"),
    ),
    omits={"a batch of one": "one pair has no standard deviation",
           "a length of one": "numbers, no tensors: a probe has a vector of one number",
           "precision": "a measured spread is uncertain by percents", "falsy values": "d is at least 1, n at least 2",
           "repeated items": "the numbers are drawn by the answer"},
    mistakes=(
        mistake("no growth with d", RIGHT.but("dim=-1)", "dim=-1) / d ** 0.5"), MEASURE,
            """Your number stays near 1 whatever d is. Either the d products of each pair were not added up, or the sums
            were divided by the root of d. Measure the plain dot product, to see how it grows.""",
            quotes=yours),
        mistake("variance", RIGHT.but("products.std", "products.var"), MEASURE,
            "Your number is about d. That is the variance of the dot products: their standard deviation is its square "
            "root.", quotes=yours),
        mistake("scaled twice, or cosines", RIGHT.but("dim=-1)", "dim=-1) / d"), MEASURE,
            """Your number *shrinks* when d grows, like 1 over the root of d. The dot products were divided by d (the
            root twice), or the vectors were brought to length 1 first. Measure the plain dot product.""",
            quotes=yours),
        mistake("spread of the features", RIGHT.but(".sum(dim=-1)", "").but("std()", "std(dim=-1).mean()"), MEASURE,
            """The spread within a vector was measured. Multiply two vectors into one number first, their sum of
            products; then take the standard deviation over the n *pairs*.""", quotes=yours),
        mistake("the two sizes exchanged", RIGHT.but("n, d, generator=", "d, n, generator="), MEASURE,
            """d and n are exchanged: your vectors have n numbers each, so you got the root of n. d is the length of a
            vector, n the number of pairs.""", quotes=yours),
        mistake("uniform numbers from 0 to 1", RIGHT.but("randn", "rand"), MEASURE,
            """Too small: torch.rand draws from 0 to 1, with mean 1/2 and variance 1/12. Standard normal numbers have
            mean 0 and variance 1.""", quotes=yours),
        mistake("uniform numbers from -1 to 1", RIGHT.but(NORMAL, "2 * torch.rand(2, n, d, generator=generator) - 1"),
                MEASURE,
            "Three times too small: numbers between -1 and 1 have variance 1/3. Standard normal numbers "
            "have variance 1.",
            quotes=yours),
        mistake("a vector with itself", RIGHT.but("q * k", "q * q"), MEASURE,
            """Too large by the root of 2: each vector met itself, or two were added where a dot product multiplies. A
            query and a key are two *different* random vectors.""",
            quotes=yours),
        mistake("mean size instead of standard deviation", RIGHT.but("std()", "abs().mean()"), MEASURE,
            "This is the mean absolute value, about 0.8 of the standard deviation. Square, average, take the root.",
            quotes=yours),
        mistake("signs dropped first", RIGHT.but("std()", "abs().std()"), MEASURE,
            """Your number is about six tenths of the correct one, as it is when the signs are dropped before the spread
            is measured.""",
            quotes=yours),
        mistake("standard error of the mean", RIGHT.but("products.std()", "(products.std() / n ** 0.5)"), MEASURE,
            """This was divided by the root of n, which is how uncertain the *mean* of the dot products is. Their own
            spread does not shrink when you draw more of them.""", quotes=yours),
        mistake("pairs added up", RIGHT.but("dim=-1", "dim=0"), MEASURE,
            "The sum ran over the n pairs instead of the d numbers of each, so you got about the root of n.",
            quotes=yours),
        ONE_FOR_ALL(RIGHT.but("q * k", "q[0] * k"), MEASURE, quotes=yours, one="query", others="keys"),
        ONE_FOR_ALL(RIGHT.but(
                  NORMAL, "torch.randn(d, generator=generator), torch.randn(n, d, generator=generator)"),
            MEASURE, quotes=yours, name="one query for all pairs, drawn first", one="query", others="keys"),
        ONE_FOR_ALL(RIGHT.but(
                  NORMAL, "torch.randn(n, d, generator=generator), torch.randn(d, generator=generator)"),
            MEASURE, quotes=yours, one="key", others="queries"),
        mistake("one of the two uniform", RIGHT.but(
                  NORMAL, "torch.randn(n, d, generator=generator), torch.rand(n, d, generator=generator)"), MEASURE,
            """Your number is 0.58 times the correct one, as if one of the two vectors were drawn from 0 to 1.
            torch.rand is uniform, torch.randn is normal; both vectors should be standard normal.""", quotes=yours),
        mistake("every query with every key", RIGHT.but("(q * k).sum(dim=-1)", "q @ k.T"), MEASURE,
            """The size is right, but every query met every key: that makes n times n numbers, and each query is used n
            times. Draw n pairs, and let query i meet only key i: n numbers."""),
        mistake("another number of pairs", RIGHT.before(f"q, k = {NORMAL}", "n = 20_000"), MEASURE,
            """The size is right, but your result is not that of n pairs: a number of pairs is written into your code.
            Draw as many as the caller asks for."""),
        mistake("one pair too few", RIGHT.but("2, n, d", "2, n - 1, d"), MEASURE,
            """For n = 2 you return NaN: a spread needs at least two dot products. Are there only n - 1 in your code?
            range(n - 1), for example, runs from 0 to n - 2."""),
        mistake("rounded", RIGHT.but("products.std().item()", "round(products.std().item(), 1)"), MEASURE,
            "The size is right, but the number was rounded. Return what you measured, and round only what you print."),
        mistake("largest instead of spread", RIGHT.but("std()", "abs().max()"), MEASURE,
            "You returned the largest dot product. The task asks for their standard deviation.",
            quotes=yours),
        mistake("from the smallest to the largest", RIGHT.but("products.std()", "(products.max() - products.min())"),
                MEASURE,
            """Your number is the distance from the smallest to the largest dot product, which grows with the number of
            pairs. The standard deviation does not.""", quotes=yours),
        mistake("the global random numbers", RIGHT.but(", generator=generator", ""), MEASURE,
            """The size is right, but the numbers came from torch's global random state, and the generator you were
            given was not used. Every function that draws takes it as an argument; then a run can be repeated."""),
        mistake("generator for one of the two only", RIGHT.but(
                  NORMAL, "torch.randn(n, d, generator=generator), torch.randn(n, d)"), MEASURE,
            """Some numbers were drawn from torch's global random state: not every function that draws was given the
            generator. Pass it to each of them, and draw nothing else."""),
        mistake("a formula instead of a measurement", "def score_std(d, n, generator): return d ** 0.5", MEASURE,
            """You returned exactly the root of d. That formula is correct, but the task is to *measure*: draw n pairs,
            and take the standard deviation of their dot products.""",
            shows=a_formula),
        mistake("nothing drawn from the generator", RIGHT.but(
                  "generator=generator", "generator=torch.Generator().manual_seed(0)"), MEASURE,
            """The size is right, but nothing was drawn from the generator you were given: it is in the same state as
            before the call. Your numbers come from somewhere else, such as a generator that you made yourself, a copy
            of this one, or numpy. Pass this one to each of torch's functions that draw."""),
        families.A_TENSOR_FOR_A_NUMBER(RIGHT.but(".item()", ""), MEASURE),
        mistake("all the dot products", RIGHT.but(".std().item()", ""), MEASURE,
            "You returned the n dot products themselves. Return their standard deviation, one plain number."),
        mistake("the generator seeded anew", RIGHT.before(f"q, k = {NORMAL}", "generator.manual_seed(0)"), MEASURE,
            """The size is right, but the generator was given a seed of your own. The caller has chosen its state: draw
            from it without seeding, or every call repeats the same experiment."""),
        mistake("a mean that is nearly 0", RIGHT.but("std()", "mean()"), MEASURE,
            """Your number is near 0, so it cannot be a spread of plain dot products. Either a mean was taken over the
            pairs, where positive and negative ones cancel, or the numbers were made small before they were
            measured.""", quotes=yours, shows=near_0),
    ),
    correct=(
        correct("two draws", """
            def score_std(d, n, generator):
                a = torch.randn(n, d, generator=generator)
                b = torch.randn(n, d, generator=generator)
                return float((a * b).sum(1).std())
        """),
        correct("other shape, no correction", """
            def score_std(d, n, rng):
                x = torch.randn((2, d, n), generator=rng)
                return torch.einsum("dn,dn->n", *x).std(correction=0).item()
        """),
        correct("root of the mean square", """
            def score_std(d, n, generator):
                q = torch.empty(n, d).normal_(generator=generator)
                k = torch.empty(n, d).normal_(generator=generator)
                s = torch.bmm(q[:, None], k[:, :, None]).flatten()
                return math.sqrt((s ** 2).mean().item())
        """),
        correct("statistics of a list", """
            def score_std(d, n, generator):
                import statistics
                q = torch.normal(0.0, 1.0, (n, d), generator=generator)
                k = torch.normal(0.0, 1.0, (n, d), generator=generator)
                return statistics.stdev((q * k).sum(-1).tolist())
        """),
        correct("loop over the pairs", """
            def score_std(d, n, generator):
                total = squares = 0.0
                for q, k in torch.randn(n, 2, d, generator=generator):
                    s = torch.dot(q, k).item()
                    total, squares = total + s, squares + s * s
                return (squares / n - (total / n) ** 2) ** 0.5
        """),
        correct("signs are enough", RIGHT.but(NORMAL, "2.0 * torch.randint(0, 2, (2, n, d), generator=generator) - 1")),
        correct("uniform of variance 1, in double", RIGHT.but(
            NORMAL, "(torch.rand(2, n, d, generator=generator, dtype=torch.float64) * 2 - 1) * 3 ** 0.5"
        ).but("std()", "var().sqrt()")),
    ),
    hints=(
        "one pair gives how many dot products? And of how many do you take the standard deviation?",
        "queries (n, d) and keys (n, d), both drawn with generator=generator; n dot products; one number.",
        "draw two tables of n rows and d standard normal numbers; row i with row i by a dot product; standard "
        "deviation of the n "
        "results, as a Python number.",
    ),
)
