"""03.4 score_std."""

import torch

from autograder.catalogue.ch03_similarity.shared import _yours, sections
from autograder.catalogue.exercise import Case, Exercise, Probe
from autograder.catalogue.parts import known, right
from transformer_ref.model import similarity

(MEASURE,) = sections("measure")

PAIRS = 5_000


def score_std(d: int, n: int, generator: torch.Generator) -> float:
    """The standard deviation of n dot products of d standard normal numbers each."""
    query, key = torch.randn(2, n, d, generator=generator)  # (pair, d)
    return similarity.dot(query, key).std().item()


def _spread(d: int, seed: int, n: int = PAIRS) -> Case:
    return Case((d, n, torch.Generator().manual_seed(seed)))


def _draw(g: torch.Generator, low: int, high: int) -> int:
    return int(torch.randint(low, high, (), generator=g))


EXERCISE = Exercise(
    id="score-std",
    number="03.4",
    visible_points=1,
    hidden_points=2,
    section=MEASURE,
    reference=score_std,
    # A measured standard deviation is itself uncertain: its relative error is the root of (kurtosis - 1) / 4n, where the
    # kurtosis is 3 + 6/d. Two right answers differ by 1.4 times that: 1.4 percent for d = 64, 2.2 for d = 2, 2.8 for
    # d = 1. Each rtol is more than five times as large. n stays small enough for a table of all n times n pairs.
    probes=(
        Probe("64 numbers", lambda g: _spread(64, 3), hidden=False, also=frozenset({"generator"}), rtol=0.09),
        Probe("2 numbers", lambda g: _spread(2, 4), hidden=False, also=frozenset({"state"}), rtol=0.12),
        Probe("3 numbers", lambda g: _spread(3, _draw(g, 0, 1 << 30)), rtol=0.12),
        Probe("many numbers", lambda g: _spread(_draw(g, 150, 300), _draw(g, 0, 1 << 30), n=4_000), rtol=0.09),
        Probe("one number", lambda g: _spread(1, _draw(g, 0, 1 << 30)), rtol=0.15),
        Probe(
            "drawn from the generator it was given",
            lambda g: _spread(_draw(g, 8, 13), _draw(g, 0, 1 << 30)),
            also=frozenset({"generator"}),
            rtol=0.09,
        ),
        Probe(
            "the global random state stays as it is",
            lambda g: _spread(_draw(g, 15, 25), _draw(g, 0, 1 << 30)),
            also=frozenset({"state"}),
            rtol=0.09,
        ),
    ),
    wrong=(
        known(
            "no growth with d",
            """
            def score_std(d, n, generator):
                q, k = torch.randn(n, d, generator=generator), torch.randn(n, d, generator=generator)
                return ((q * k).sum(dim=-1) / d ** 0.5).std().item()
            """,
            """Your number stays near 1 whatever d is. Either the d products of each pair were not added up, or the
            sums were divided by the root of d. The plain dot product is to be measured, to see how it grows.""",
            MEASURE,
            _yours,
        ),
        known(
            "variance",
            """
            def score_std(d, n, generator):
                q, k = torch.randn(n, d, generator=generator), torch.randn(n, d, generator=generator)
                return (q * k).sum(dim=-1).var().item()
            """,
            "This is the variance: it grows like d. The standard deviation is its square root.",
            MEASURE,
            _yours,
        ),
        known(
            "scaled twice, or cosines",
            """
            def score_std(d, n, generator):
                q, k = torch.randn(n, d, generator=generator), torch.randn(n, d, generator=generator)
                return ((q * k).sum(dim=-1) / d).std().item()
            """,
            """Your number *shrinks* when d grows, like 1 over the root of d. The dot products were divided by d (the root
            twice), or the vectors were brought to length 1 first. The plain dot product is to be measured.""",
            MEASURE,
            _yours,
        ),
        known(
            "spread of the features",
            """
            def score_std(d, n, generator):
                q = torch.randn(n, d, generator=generator)
                return q.std(dim=-1).mean().item()
            """,
            "The spread within a vector was measured. Multiply two vectors into one number first; then take the standard deviation over the n *pairs*.",
            MEASURE,
            _yours,
        ),
        known(
            "the two sizes exchanged",
            """
            def score_std(d, n, generator):
                q, k = torch.randn(d, n, generator=generator), torch.randn(d, n, generator=generator)
                return (q * k).sum(dim=-1).std().item()
            """,
            "d and n are exchanged: your vectors have n numbers each, so you got the root of n. d is the length of a vector, n the number of pairs.",
            MEASURE,
            _yours,
        ),
        known(
            "uniform numbers from 0 to 1",
            """
            def score_std(d, n, generator):
                q, k = torch.rand(n, d, generator=generator), torch.rand(n, d, generator=generator)
                return (q * k).sum(dim=-1).std().item()
            """,
            "Too small: torch.rand draws from 0 to 1, with mean 1/2 and variance 1/12. Standard normal numbers have mean 0 and variance 1.",
            MEASURE,
            _yours,
        ),
        known(
            "uniform numbers from -1 to 1",
            """
            def score_std(d, n, generator):
                q, k = 2 * torch.rand(2, n, d, generator=generator) - 1
                return (q * k).sum(dim=-1).std().item()
            """,
            "Three times too small: numbers between -1 and 1 have variance 1/3. Standard normal numbers have variance 1.",
            MEASURE,
            _yours,
        ),
        known(
            "a vector with itself",
            """
            def score_std(d, n, generator):
                q = torch.randn(n, d, generator=generator)
                return (q * q).sum(dim=-1).std().item()
            """,
            "Too large by the root of 2: each vector met itself. A query and a key are two *different* random vectors.",
            MEASURE,
            _yours,
        ),
        known(
            "mean size instead of standard deviation",
            """
            def score_std(d, n, generator):
                q, k = torch.randn(n, d, generator=generator), torch.randn(n, d, generator=generator)
                return (q * k).sum(dim=-1).abs().mean().item()
            """,
            "This is the mean absolute value, about 0.8 of the standard deviation. Square, average, take the root.",
            MEASURE,
            _yours,
        ),
        known(
            "signs dropped first",
            """
            def score_std(d, n, generator):
                q, k = torch.randn(n, d, generator=generator), torch.randn(n, d, generator=generator)
                return (q * k).sum(dim=-1).abs().std().item()
            """,
            "The signs were dropped before the spread was measured, which makes it about 0.6 of what it is.",
            MEASURE,
            _yours,
        ),
        known(
            "standard error of the mean",
            """
            def score_std(d, n, generator):
                q, k = torch.randn(n, d, generator=generator), torch.randn(n, d, generator=generator)
                return ((q * k).sum(dim=-1).std() / n ** 0.5).item()
            """,
            "This was divided by the root of n, which is how uncertain the *mean* of the dot products is. Their own spread does not shrink when you draw more of them.",
            MEASURE,
            _yours,
        ),
        known(
            "pairs added up",
            """
            def score_std(d, n, generator):
                q, k = torch.randn(n, d, generator=generator), torch.randn(n, d, generator=generator)
                return (q * k).sum(dim=0).std().item()
            """,
            "The sum ran over the n pairs instead of the d numbers of each, so you got about the root of n.",
            MEASURE,
            _yours,
        ),
        known(
            "one query for all pairs",
            """
            def score_std(d, n, generator):
                q = torch.randn(d, generator=generator)
                k = torch.randn(n, d, generator=generator)
                return (k @ q).std().item()
            """,
            """One query met all the keys, so you measured the length of that one query: another draw, another result. Each
            of the n pairs needs a query of its own.""",
            MEASURE,
            _yours,
        ),
        known(
            "the global random numbers",
            """
            def score_std(d, n, generator):
                q, k = torch.randn(n, d), torch.randn(n, d)
                return (q * k).sum(dim=-1).std().item()
            """,
            """The size is right, but the numbers came from torch's global random state, and the generator you were given
            was not used. Every function that draws takes it as an argument; then a run can be repeated.""",
            MEASURE,
        ),
        known(
            "generator for one of the two only",
            """
            def score_std(d, n, generator):
                q, k = torch.randn(n, d, generator=generator), torch.randn(n, d)
                return (q * k).sum(dim=-1).std().item()
            """,
            "One of the two draws used the global random state. Hand the generator to both.",
            MEASURE,
        ),
        known(
            "nothing drawn from the generator",
            "def score_std(d, n, generator):\n    return d ** 0.5\n",
            """The size is right, but nothing was drawn from the generator: a formula, or another library's random numbers.
            This exercise is the measurement that the formula is about.""",
            MEASURE,
        ),
        known(
            "a tensor instead of a number",
            """
            def score_std(d, n, generator):
                q, k = torch.randn(n, d, generator=generator), torch.randn(n, d, generator=generator)
                return (q * k).sum(dim=-1).std()
            """,
            "A tensor without axes came back; a plain Python number is wanted. A tensor of one number can hand it over.",
            MEASURE,
        ),
        known(
            "all the dot products",
            """
            def score_std(d, n, generator):
                q, k = torch.randn(n, d, generator=generator), torch.randn(n, d, generator=generator)
                return (q * k).sum(dim=-1)
            """,
            "You returned the n dot products themselves. Their standard deviation, one plain number, is wanted.",
            MEASURE,
        ),
        known(
            "the generator seeded anew",
            """
            def score_std(d, n, generator):
                generator.manual_seed(0)
                q = torch.randn(n, d, generator=generator)
                k = torch.randn(n, d, generator=generator)
                return (q * k).sum(-1).std().item()
            """,
            "The size is right, but the generator was given a seed of your own. Whoever passes it in has chosen where it stands: draw from it as it comes, or every call repeats the same experiment.",
            MEASURE,
        ),
    ),
    right=(
        right(
            "two draws",
            """
            def score_std(d, n, generator):
                a = torch.randn(n, d, generator=generator)
                b = torch.randn(n, d, generator=generator)
                return float((a * b).sum(1).std())
            """,
        ),
        right(
            "other shape, no correction",
            'def score_std(d, n, rng):\n    x = torch.randn((2, d, n), generator=rng)\n    return torch.einsum("dn,dn->n", *x).std(correction=0).item()\n',
        ),
        right(
            "root of the mean square",
            """
            def score_std(d, n, generator):
                q = torch.empty(n, d).normal_(generator=generator)
                k = torch.empty(n, d).normal_(generator=generator)
                s = torch.bmm(q[:, None], k[:, :, None]).flatten()
                return math.sqrt((s ** 2).mean().item())
            """,
        ),
        right(
            "statistics of a list",
            """
            def score_std(d, n, generator):
                import statistics
                q = torch.normal(0.0, 1.0, (n, d), generator=generator)
                k = torch.normal(0.0, 1.0, (n, d), generator=generator)
                return statistics.stdev((q * k).sum(-1).tolist())
            """,
        ),
        right(
            "loop over the pairs",
            """
            def score_std(d, n, generator):
                total = squares = 0.0
                for q, k in torch.randn(n, 2, d, generator=generator):
                    s = torch.dot(q, k).item()
                    total, squares = total + s, squares + s * s
                return (squares / n - (total / n) ** 2) ** 0.5
            """,
        ),
        right(
            "signs are enough",
            """
            def score_std(d, n, generator):
                q, k = 2.0 * torch.randint(0, 2, (2, n, d), generator=generator) - 1
                return (q * k).sum(-1).std().item()
            """,
        ),
        right(
            "uniform of variance 1, in double",
            """
            def score_std(d, n, generator):
                q, k = (torch.rand(2, n, d, generator=generator, dtype=torch.float64) * 2 - 1) * 3 ** 0.5
                return (q * k).sum(-1).var().sqrt().item()
            """,
        ),
    ),
    hints=(
        "how many numbers do you have when the products of one pair are added up, and of how many is the spread taken?",
        "queries (n, d) and keys (n, d), both drawn with generator=generator; n dot products; one number.",
        "draw two tables of n rows and d standard normal numbers; row i with row i by a dot product; standard deviation of the n results, as a Python number.",
    ),
)
