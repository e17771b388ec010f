"""03.3 scaled_scores."""

import torch
from torch import Tensor

from autograder.catalogue.ch03_similarity.shared import EMBEDDINGS, WORDS, _whole, sections
from autograder.catalogue.exercise import Case, Evidence, Exercise, Law, Probe
from autograder.catalogue.parts import GRADIENTS, UNTOUCHED, known, normal, right, row, sizes, turned
from transformer_ref.model import similarity

COSINE, MANY, ROOT, TABLE = sections("cosine many root table")


def scaled_scores(Q: Tensor, K: Tensor) -> Tensor:
    """Q K^T / sqrt(d)."""
    return similarity.scaled_dot_product_scores(Q, K)


def _last_row(evidence: Evidence) -> str:
    if evidence.got.shape != evidence.expected.shape:
        return sizes(evidence)
    got, expected = evidence.got[-1][:8], evidence.expected[-1][:8]
    return f"Your last row is {row(got)} where {row(expected)} was expected."


EXERCISE = Exercise(
    id="scaled-scores",
    number="03.3",
    visible_points=2,
    hidden_points=2,
    section=ROOT,
    reference=scaled_scores,
    probes=(
        Probe(
            "four words",
            lambda g: Case((EMBEDDINGS, EMBEDDINGS), WORDS),
            hidden=False,
            laws=(
                Law(
                    "the table is its own mirror image",
                    lambda got: torch.allclose(got, got.T, atol=1e-4),
                ),
            ),
        ),
        Probe("4 queries, 6 keys, d = 5", lambda g: Case((normal(g, 4, 5), normal(g, 6, 5))), hidden=False),
        Probe("other sizes", lambda g: Case((normal(g, 5, 10), normal(g, 7, 10)))),
        Probe("d = 64", lambda g: Case((normal(g, 9, 64), normal(g, 11, 64)))),
        Probe("one query, vectors of one number", lambda g: Case((normal(g, 1, 1), normal(g, 3, 1)))),
        Probe(
            "a zero query, and large numbers",
            lambda g: Case((_whole(g, 3, 6) * (torch.arange(3) != 1)[:, None], _whole(g, 4, 6))),
        ),
        Probe(
            "float64, transposed in memory",
            lambda g: Case(
                (turned(normal(g, 4, 6, dtype=torch.float64)), turned(normal(g, 7, 6, dtype=torch.float64)))
            ),
        ),
        Probe(
            "gradients",
            lambda g: Case((normal(g, 4, 5, dtype=torch.float64), normal(g, 6, 5, dtype=torch.float64))),
            also=GRADIENTS,
        ),
        Probe("nothing else is touched", lambda g: Case((normal(g, 4, 5), normal(g, 6, 5))), also=UNTOUCHED),
    ),
    wrong=(
        known(
            "not scaled",
            "def scaled_scores(Q, K):\n    return Q @ K.T\n",
            "These are the plain dot products. At d = 64 their standard deviation is 8; divided by the right number it is about 1, for every d.",
            ROOT,
            _last_row,
        ),
        known(
            "divided by d",
            "def scaled_scores(Q, K):\n    return Q @ K.T / Q.shape[-1]\n",
            "Over-scaled: at d = 64 your scores have a standard deviation of 0.125, and all weights made from them will look alike. Dot products grow like the *root* of d, not like d.",
            ROOT,
            _last_row,
        ),
        known(
            "divided by the square of d",
            "def scaled_scores(Q, K):\n    return Q @ K.T / Q.shape[-1] ** 2\n",
            "Your scores nearly vanish: they were divided by d times d. There is a lecture slide that says 'square'; it means the square *root*.",
            ROOT,
            _last_row,
        ),
        known(
            "divided by the two lengths",
            "def scaled_scores(Q, K):\n    return F.normalize(Q, dim=-1) @ F.normalize(K, dim=-1).T\n",
            "That is cosine: each pair was divided by its own two lengths. Here one number divides all scores alike, so a longer vector still scores more.",
            COSINE,
            _last_row,
        ),
        known(
            "divided by the query's length",
            "def scaled_scores(Q, K):\n    return F.normalize(Q, dim=-1) @ K.T\n",
            "Each row was divided by the length of its query. 'Length of the embedding' here means how *many* numbers it has, not how long the arrow is.",
            ROOT,
            _last_row,
        ),
        known(
            "divided by the key's length",
            "def scaled_scores(Q, K):\n    return Q @ F.normalize(K, dim=-1).T\n",
            "Each column was divided by the length of its key. 'Length of the embedding' here means how *many* numbers it has, not how long the arrow is.",
            ROOT,
            _last_row,
        ),
        known(
            "divided by the root of the number of keys",
            "def scaled_scores(Q, K):\n    return Q @ K.T / K.shape[0] ** 0.5\n",
            "The scores were divided by the root of the number of *keys*, so they change when a word is added to the sentence. A dot product grows with the width d of the vectors.",
            ROOT,
            _last_row,
        ),
        known(
            "divided by the root of the number of queries",
            "def scaled_scores(Q, K):\n    return Q @ K.T / Q.shape[0] ** 0.5\n",
            "The scores were divided by the root of the number of *queries*: shape[0] counts vectors. What makes dot products large is how many numbers each vector has.",
            ROOT,
            _last_row,
        ),
        known(
            "divided by the root of two",
            "def scaled_scores(Q, K):\n    return Q @ K.T / 2 ** 0.5\n",
            "The table of the four words is right, since d is 2 there. With another width the divisor must be another number.",
            ROOT,
        ),
        known(
            "divided by eight",
            "def scaled_scores(Q, K):\n    return Q @ K.T / 8\n",
            "8 is the root of 64, the width in the paper. Another width has another root; take d from the vectors you are given.",
            ROOT,
            _last_row,
        ),
        known(
            "divided by half of d",
            "def scaled_scores(Q, K):\n    return Q @ K.T / (Q.shape[-1] ** 1 / 2)\n",
            "The scores were divided by d/2. Python takes powers before it divides, so d ** 1/2 is (d ** 1)/2. Brackets help, or math.sqrt.",
            ROOT,
            _last_row,
        ),
        known(
            "divided by the size of the whole table",
            "def scaled_scores(Q, K):\n    return Q @ K.T / Q.norm()\n",
            "The scores were divided by the norm of all of Q. Then they change when a query is added. The divisor is known beforehand, from d alone.",
            ROOT,
            _last_row,
        ),
        known(
            "multiplied by the root of d",
            "def scaled_scores(Q, K):\n    return Q @ K.T * Q.shape[-1] ** 0.5\n",
            "The scores were multiplied by the root of d. They are too large already; divide.",
            ROOT,
            _last_row,
        ),
        known(
            "rounded down",
            "def scaled_scores(Q, K):\n    return Q @ K.T // Q.shape[-1] ** 0.5\n",
            "Your scores are whole numbers: // rounds down. A plain division is wanted.",
            ROOT,
            _last_row,
        ),
        known(
            "divided by the measured spread",
            "def scaled_scores(Q, K):\n    scores = Q @ K.T\n    return scores / scores.std()\n",
            "The scores were divided by their own standard deviation. Then a pair's score depends on all the other pairs. The divisor is known beforehand, from d alone.",
            ROOT,
            _last_row,
        ),
        known(
            "divided by the largest",
            "def scaled_scores(Q, K):\n    scores = Q @ K.T\n    return scores / scores.max()\n",
            "The scores were divided by the largest of them. Then a pair's score depends on all the other pairs. The divisor is known beforehand, from d alone.",
            ROOT,
            _last_row,
        ),
        known(
            "softmax already",
            "def scaled_scores(Q, K):\n    return torch.softmax(Q @ K.T / Q.shape[-1] ** 0.5, dim=-1)\n",
            "Your rows sum to 1: these are weights. The scores are wanted, before any softmax; that is chapter 04.",
            TABLE,
            _last_row,
        ),
        known(
            "keys ask, queries answer",
            "def scaled_scores(Q, K):\n    return K @ Q.T / Q.shape[-1] ** 0.5\n",
            "Rows and columns are exchanged: one row for each query, one column for each key. With the four words you cannot see it, because there Q = K.",
            TABLE,
        ),
        known(
            "K reshaped instead of transposed",
            "def scaled_scores(Q, K):\n    return Q @ K.reshape(K.shape[1], K.shape[0]) / Q.shape[-1] ** 0.5\n",
            "The shape is right and the pairs are wrong: reshape and view re-cut the same strip of numbers, so a column is no longer one word's vector. Turn the table around instead.",
            TABLE,
            _last_row,
        ),
        known(
            "K not transposed",
            "def scaled_scores(Q, K):\n    return Q @ K / Q.shape[-1] ** 0.5\n",
            "The inner sizes of the product do not agree. A query has d numbers and so has a key: to meet, the keys must stand as columns.",
            TABLE,
        ),
        known(
            "Q transposed instead of K",
            "def scaled_scores(Q, K):\n    return Q.T @ K / Q.shape[-1] ** 0.5\n",
            "Q was turned around instead of K, so features met features: the sum ran over the words. It should run over the d numbers of a vector.",
            TABLE,
        ),
        known(
            "row by row",
            "def scaled_scores(Q, K):\n    return (Q * K).sum(dim=-1) / Q.shape[-1] ** 0.5\n",
            "Row i of Q met row i of K only. Every query meets every key: the result is a table.",
            TABLE,
        ),
        known(
            "products not added",
            "def scaled_scores(Q, K):\n    return Q * K / Q.shape[-1] ** 0.5\n",
            "The numbers were multiplied cell by cell, and nothing was added. Each cell of the result is a whole dot product, of one query with one key.",
            TABLE,
        ),
        known(
            "cut off from the gradient",
            "def scaled_scores(Q, K):\n    return Q.detach() @ K.detach().T / Q.shape[-1] ** 0.5\n",
            "The values are right, but no gradient flows back: .detach(), .data, no_grad or numpy cut the graph.",
            MANY,
        ),
        known(
            "always float32",
            "def scaled_scores(Q, K):\n    return Q.float() @ K.float().T / Q.shape[-1] ** 0.5\n",
            "float64 went in and float32 came out. The result keeps the dtype of the input.",
            MANY,
        ),
        known(
            "Q changed in place",
            "def scaled_scores(Q, K):\n    Q /= Q.shape[-1] ** 0.5\n    return Q @ K.T\n",
            "Your function changed the caller's Q: /= and div_ write into the tensor that was passed in. (When K is the same tensor, it even changes under your hands.)",
            MANY,
        ),
        known(
            "divided by twice d",
            """
            def scaled_scores(Q, K):
                return Q @ K.T / Q.shape[-1] ** 1 / 2
            """,
            "Your divisor is twice d: Python reads d ** 1 / 2 from the left, and the power comes before the division. The root is d to the power of one half, with brackets or as 0.5.",
            ROOT,
        ),
        known(
            "root rounded",
            """
            def scaled_scores(Q, K):
                return Q @ K.T / int(math.sqrt(Q.shape[-1]))
            """,
            "The root of d was cut to a whole number. That is right when d is a square, such as 4 or 64, and not otherwise.",
            ROOT,
        ),
        known(
            "divided by the root of all numbers in Q",
            """
            def scaled_scores(Q, K):
                return Q @ K.T / math.sqrt(Q.numel())
            """,
            "You divided by the root of how many numbers Q holds altogether, which grows with every word. What counts is d, how many numbers *one* vector has.",
            ROOT,
        ),
        known(
            "as many keys as queries",
            """
            def scaled_scores(Q, K):
                T = Q.shape[0]
                scores = torch.stack([torch.stack([(Q[i] * K[j]).sum() for j in range(T)]) for i in range(T)])
                return scores / math.sqrt(Q.shape[-1])
            """,
            "Both loops run over the number of queries. There may be more keys than queries, or fewer: the columns belong to K.",
            ROOT,
        ),
    ),
    right=(
        right("matrix product", "def scaled_scores(q, k):\n    return q @ k.T / math.sqrt(q.shape[-1])\n"),
        right("Q scaled first", "def scaled_scores(Q, K):\n    return (Q * Q.size(-1) ** -0.5) @ K.mT\n"),
        right(
            "half on each side",
            "def scaled_scores(Q, K):\n    s = K.shape[1] ** -0.25\n    return torch.mm(Q * s, (K * s).t())\n",
        ),
        right("einsum", 'def scaled_scores(Q, K):\n    return torch.einsum("qd,kd->qk", Q, K) / Q.shape[-1] ** 0.5\n'),
        right(
            "loops",
            """
            def scaled_scores(Q, K):
                d = len(Q[0])
                return torch.stack([torch.stack([torch.dot(q, k) / d ** 0.5 for k in K]) for q in Q])
            """,
        ),
        right(
            "spread and sum",
            "def scaled_scores(Q, K):\n    return (Q[:, None] * K[None]).sum(-1).div(Q.new_tensor(Q.shape[-1]).sqrt())\n",
        ),
        right(
            "F.linear",
            "def scaled_scores(Q, K):\n    return F.linear(Q, K) / Q.shape[-1] ** 0.5\n",
        ),
        right(
            "double inside",
            "def scaled_scores(Q, K):\n    s = torch.inner(Q.double(), K.double())\n    return (s / math.sqrt(Q.shape[1])).to(Q.dtype)\n",
        ),
    ),
    hints=(
        "how many terms does one dot product add up here, and how fast does such a sum grow?",
        "Q (Tq, d) times K turned around (d, Tk) gives (Tq, Tk); the divisor is one number, the same for all cells.",
        "every query with every key as one matrix product; divide by the square root of the last axis' size.",
    ),
)
