"""03.4: everybody with everybody, in numbers of a usual size."""

import torch
from torch import Tensor

from autograder.catalogue.attention_scores import wrong_scores
from autograder.catalogue.ch03_similarity.shared import EMBEDDINGS, SMALL_PRINT, WORDS, sections, whole
from autograder.catalogue.exercise import Case, Evidence, Exercise, Law
from autograder.catalogue.families import in_place, usual_mistakes
from autograder.catalogue.known_answers import answer, correct, formula, mistake
from autograder.catalogue.probes import FAR, hidden, normal, usual_probes, visible
from autograder.catalogue.quotes import row, sizes
from transformer_ref.model import similarity

ROUNDED = 1.0  # scores of a million, rounded before they are summed, may cancel to a few
COSINE, MANY, ROOT, TABLE = sections("cosine many root table")


def scaled_scores(Q: Tensor, K: Tensor) -> Tensor:
    """Q K^T / sqrt(d)."""
    return similarity.scaled_dot_product_scores(Q, K)


def inputs(g: torch.Generator, Tq: int, Tk: int, d: int, dtype: torch.dtype = torch.float32) -> Case:
    return Case((normal(g, Tq, d, dtype=dtype), normal(g, Tk, d, dtype=dtype)))


def zero_and_large(g: torch.Generator) -> Case:
    Q, K = whole(g, 3, 6) * (torch.arange(3) != 1)[:, None], whole(g, 4, 6)
    Q[:, 2] = 0  # a feature that no query has, which counts in d all the same
    return Case((Q, K))


def far_away(g: torch.Generator) -> Case:
    Q, K = inputs(g, 4, 7, 6, dtype=torch.float64).arguments
    return Case((Q + FAR, K - K.mean(dim=-1, keepdim=True)))


def last_row(evidence: Evidence) -> str:
    if evidence.got.shape != evidence.expected.shape:
        return sizes(evidence)
    return f"Your last row is {row(evidence.got[-1][:8])} where {row(evidence.expected[-1][:8])} was expected."


def root_of_scores(evidence: Evidence) -> bool | None:
    """Whether the squares are the scores times one number, and NaN came back for negative ones; None where no score is
    large enough to show it."""
    got, expected = evidence.got, evidence.expected
    positive, negative = expected > 0.01, expected < -0.01
    if not positive.any():
        return None
    factors = got[positive] ** 2 / expected[positive]
    return bool(got[negative].isnan().all()) and torch.allclose(factors, factors[:1], rtol=1e-3)


MIRRORED = Law("the table is its own mirror image", lambda got: torch.allclose(got, got.T, atol=1e-4))

RIGHT = answer("""
    def scaled_scores(Q, K):
        scores = Q @ K.T
        scores = scores / Q.shape[-1] ** 0.5
        return scores
""")
DIVISION, ROOT_OF_D = "scores = scores / Q.shape[-1] ** 0.5", "Q.shape[-1] ** 0.5"

EXERCISE = Exercise(
    id="scaled-scores", number="03.4", difficulty=2, minutes=8, visible_points=2, hidden_points=2,
    reference=scaled_scores, section=ROOT,
    probes=(
        visible("four words", Case((EMBEDDINGS, EMBEDDINGS), WORDS), laws=(MIRRORED,)),
        visible("4 queries, 6 keys, d = 5", inputs, 4, 6, 5),
        *usual_probes(inputs, other=(5, 7, 90), smallest=(1, 3, 1), common=(4, 7, 6), precise=far_away),
        hidden("d = 64", inputs, 9, 11, 64, announced_by="the root of d"),
        hidden("a zero query, and large numbers", zero_and_large, announced_by="any numbers", atol=ROUNDED),
    ),
    mistakes=(
        mistake("not scaled", RIGHT.without(DIVISION), ROOT,
            """These are the plain dot products. At d = 64 their standard deviation is 8; divided by the correct number
            it is about 1, for every d. (If your code does divide: is the quotient what you return?)""",
            quotes=last_row),
        mistake("divided by d", RIGHT.but("** 0.5", ""), ROOT,
            """Over-scaled: at d = 64 your scores have a standard deviation of 0.125, and all weights made from them
            will look alike. Dot products grow like the *root* of d, not like d: divide by the root once, not twice
            (as when both Q and K are divided by it).""", quotes=last_row),
        mistake("divided by the square of d", RIGHT.but("** 0.5", "** 2"), ROOT,
            """Your scores nearly vanish: they were divided by d times d. There is a lecture slide that says 'square';
            it means the square *root*.""", quotes=last_row),
        mistake("divided by the two lengths", RIGHT.without(DIVISION).but(
                  "Q @ K.T", "F.normalize(Q, dim=-1) @ F.normalize(K, dim=-1).T"), COSINE,
            """That is cosine: each pair was divided by its own two lengths. Here one number divides all scores alike,
            so a longer vector still scores more.""", quotes=last_row),
        mistake("divided by the query's length", RIGHT.without(DIVISION).but("Q @", "F.normalize(Q, dim=-1) @"), ROOT,
            """Each row was divided by the length of its query. 'Length of the embedding' here means how *many* numbers
            it has, not how long the arrow is.""", quotes=last_row),
        mistake("divided by the key's length", RIGHT.without(DIVISION).but("@ K", "@ F.normalize(K, dim=-1)"), ROOT,
            """Each column was divided by the length of its key. 'Length of the embedding' here means how *many* numbers
            it has, not how long the arrow is.""", quotes=last_row),
        mistake("divided by the root of the number of keys", RIGHT.but("Q.shape[-1]", "K.shape[0]"), ROOT,
            """The scores were divided by the root of the number of *keys*, so they change when a word is added to the
            sentence. A dot product grows with the width d of the vectors.""", quotes=last_row),
        mistake("divided by the root of the number of queries", RIGHT.but("Q.shape[-1]", "Q.shape[0]"), ROOT,
            """The scores were divided by the root of the number of *queries*: shape[0] counts vectors. What makes dot
            products large is how many numbers each vector has.""", quotes=last_row),
        mistake("divided by the root of two", RIGHT.but("Q.shape[-1]", "2"), ROOT,
            """The table of the four words is right, since d is 2 there. With another width the divisor must be another
            number."""),
        mistake("divided by 1.414", RIGHT.but(ROOT_OF_D, "1.414"), ROOT,
            """1.414 is the root of 2, cut to four digits, and 2 is the width of the four words. Another width has
            another root; compute it from the vectors you are given.""", quotes=last_row),
        mistake("divided by eight", RIGHT.but(ROOT_OF_D, "8"), ROOT,
            """8 is the root of 64, the width in the paper. Another width has another root; take d from the vectors you
            are given.""", quotes=last_row),
        mistake("divided by half of d", RIGHT.but(ROOT_OF_D, "(Q.shape[-1] ** 1 / 2)"), ROOT,
            """The scores were divided by d/2. Python takes powers before it divides, so d ** 1/2 is (d ** 1)/2.
            Brackets help, or math.sqrt.""", quotes=last_row),
        mistake("divided by the size of the whole table", RIGHT.but(ROOT_OF_D, "Q.norm()"), ROOT,
            """The scores were divided by the norm of all of Q. Then they change when a query is added. The divisor
            depends only on d.""", quotes=last_row),
        mistake("multiplied by the root of d", RIGHT.but("scores / Q", "scores * Q"), ROOT,
            "The scores were multiplied by the root of d. They are too large already; divide.", quotes=last_row),
        mistake("rounded down", RIGHT.but("scores / Q", "scores // Q"), ROOT,
            "Your scores are whole numbers: // rounds down. Return a plain division.", quotes=last_row),
        mistake("divided by the measured spread", RIGHT.but(ROOT_OF_D, "scores.std()"), ROOT,
            """The scores were divided by their own standard deviation. Then a pair's score depends on all the other
            pairs. The divisor depends only on d.""", quotes=last_row),
        mistake("divided by the largest", RIGHT.but(ROOT_OF_D, "scores.max()"), ROOT,
            """The scores were divided by the largest of them. Then a pair's score depends on all the other pairs. The
            divisor depends only on d.""", quotes=last_row),
        mistake("softmax already", RIGHT.but("return scores", "return torch.softmax(scores, dim=-1)"), TABLE,
            "Your rows sum to 1: these are weights. Return the scores, before any softmax; that is chapter 04.",
            quotes=last_row),
        mistake("keys ask, queries answer", RIGHT.but("Q @ K.T", "K @ Q.T"), TABLE,
            """Rows and columns are exchanged: one row for each query, one column for each key. With the four words you
            cannot see it, because there Q = K."""),
        mistake("K reshaped instead of transposed", RIGHT.but("K.T", "K.reshape(K.shape[1], K.shape[0])"), TABLE,
            """The shape is right and the pairs are wrong: reshape and view re-cut the same strip of numbers, so a
            column is no longer one word's vector. Turn the table around instead.""", quotes=last_row),
        mistake("rows and columns exchanged, then reshaped",
                RIGHT.but("Q @ K.T", "(K @ Q.T).reshape(Q.shape[0], K.shape[0])"), TABLE,
            """The shape is right and the pairs are wrong: your product has one row for each *key*, and reshape only
            cuts its entries into other rows. Make the product with one row for each query.""", quotes=last_row),
        mistake("K not transposed", RIGHT.but("K.T", "K"), TABLE,
            """The inner sizes of the product do not agree. A query has d numbers and so has a key: to meet, the keys
            must be columns."""),
        mistake("Q transposed instead of K", RIGHT.but("Q @ K.T", "Q.T @ K"), TABLE,
            """Q was transposed instead of K, so features met features: the sum ran over the words. It should run
            over the d numbers of a vector."""),
        mistake("row by row", RIGHT.but("Q @ K.T", "(Q * K).sum(dim=-1)"), TABLE,
            "Row i of Q met row i of K only. Every query meets every key: the result is a table."),
        mistake("products not added", RIGHT.but("Q @ K.T", "Q * K"), TABLE,
            """The numbers were multiplied cell by cell, and nothing was added. Each cell of the result is a whole dot
            product, of one query with one key."""),
        in_place("Q", RIGHT.without(DIVISION).before("scores = Q @ K.T", "Q /= Q.shape[-1] ** 0.5"), SMALL_PRINT,
                 "(When K is the same tensor, it changes as well.)"),
        in_place("K", RIGHT.without(DIVISION).before("scores = Q @ K.T", "K /= K.shape[-1] ** 0.5"), SMALL_PRINT,
                 "(When Q is the same tensor, it changes as well.)"),
        mistake("divided by twice d", RIGHT.but("** 0.5", "** 1 / 2"), ROOT,
            """Your divisor is twice d. Python computes a power first, and then goes from left to right: x / d ** 1 / 2
            is x / d / 2, and so is x / d * 0.5. The root is d to the power of one half, with brackets or as 0.5."""),
        mistake("divided by the root of all numbers in Q", RIGHT.but("Q.shape[-1]", "Q.numel()"), ROOT,
            """You divided by the root of how many numbers Q holds altogether, which grows with every word. What counts
            is d, how many numbers *one* vector has."""),
        mistake("as many keys as queries", RIGHT.but("scores = Q @ K.T", """
                  T = Q.shape[0]
                  scores = torch.stack([torch.stack([(Q[i] * K[j]).sum() for j in range(T)]) for i in range(T)])"""),
                  ROOT,
            """Both loops run over the number of queries. There may be more keys than queries, or fewer: the columns
            belong to K."""),
        *wrong_scores(RIGHT, DIVISION, ROOT, quotes=last_row),
        mistake("root of the scores, not of d", RIGHT.but(DIVISION, "scores = scores ** 0.5"), ROOT,
            """The root was taken of the scores, or of the whole quotient, so negative scores give NaN. Take
            the root only of d, and divide the score by it.""", quotes=last_row, shows=root_of_scores),
        mistake("scores divided by their own root", RIGHT.but(ROOT_OF_D, "scores.abs() ** 0.5"), ROOT,
            """Each score was divided by a root of its own size. One number divides all scores alike: the root of d,
            which is known before any score is.""", quotes=last_row),
        mistake("squared distance instead of dot product", RIGHT.but("Q @ K.T", "-torch.cdist(Q, K) ** 2"), MANY,
            """Your scores are 0 for equal vectors and below for all others: squared distances. A score is a dot
            product: multiply element by element, then add.""", quotes=last_row),
        mistake("distance instead of dot product", RIGHT.but("Q @ K.T", "torch.cdist(Q, K)"), MANY,
            """Your scores are distances: 0 for equal vectors, and largest for the most unlike. A score is a dot
            product: multiply element by element, then add.""", quotes=last_row),
        mistake("largest score taken away",
                RIGHT.but(DIVISION, f"{DIVISION}\n    scores = scores - scores.amax(dim=-1, keepdim=True)"), TABLE,
            """The largest score of each row was subtracted, so all are 0 or below. That is a step inside a softmax;
            return the scores themselves.""", quotes=last_row),
        mistake("mean score taken away",
                RIGHT.but(DIVISION, f"{DIVISION}\n    scores = scores - scores.mean(dim=-1, keepdim=True)"), TABLE,
            "The mean of each row was subtracted. A score depends only on one query and one key.", quotes=last_row),
        mistake("half of the root", RIGHT.but("** 0.5", "** 0.25"), ROOT,
            """The scores were divided by the *fourth* root of d: a root was taken once too often, or only one side was
            scaled.""", quotes=last_row),
        mistake("the root of d taken away", RIGHT.but("scores / Q", "scores - Q"), ROOT,
            "The root of d was subtracted from the scores. They are *divided* by it.", quotes=last_row),
        *usual_mistakes(RIGHT, arguments="Q K", detached=SMALL_PRINT, float32=SMALL_PRINT, single=SMALL_PRINT,
                        squeezed=TABLE, viewed=TABLE, rounded=ROOT, root=ROOT_OF_D),
    ),
    correct=(
        correct("matrix product", formula("scaled_scores(q, k)", "q @ k.T / math.sqrt(q.shape[-1])")),
        correct("Q scaled first", formula("scaled_scores(Q, K)", "(Q * Q.size(-1) ** -0.5) @ K.mT")),
        correct("half on each side", """
            def scaled_scores(Q, K):
                s = K.shape[1] ** -0.25
                return torch.mm(Q * s, (K * s).t())
        """),
        correct("einsum", RIGHT.but("Q @ K.T", 'torch.einsum("qd,kd->qk", Q, K)')),
        correct("loops", """
            def scaled_scores(Q, K):
                d = len(Q[0])
                return torch.stack([torch.stack([torch.dot(q, k) / d ** 0.5 for k in K]) for q in Q])
        """),
        correct("spread and sum", formula("scaled_scores(Q, K)",
            "(Q[:, None] * K[None]).sum(-1).div(Q.new_tensor(Q.shape[-1]).sqrt())")),
        correct("F.linear", RIGHT.but("Q @ K.T", "F.linear(Q, K)")),
        correct("double inside", """
            def scaled_scores(Q, K):
                s = torch.inner(Q.double(), K.double())
                return (s / math.sqrt(Q.shape[1])).to(Q.dtype)
        """),
    ),
    hints=(
        "how many terms does one dot product add up here, and how fast does such a sum grow?",
        "Q (Tq, d) times K transposed (d, Tk) gives (Tq, Tk); the divisor is one number, the same for all cells.",
        "every query with every key as one matrix product; divide by the square root of the last axis' size.",
    ),
)
