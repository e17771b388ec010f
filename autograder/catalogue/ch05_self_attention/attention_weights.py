"""05.2: who looks at whom, and how much."""

import math

import torch
from torch import Tensor

from autograder.catalogue import families
from autograder.catalogue.attention_scores import wrong_scores
from autograder.catalogue.ch05_self_attention.shared import EMBEDDINGS, FUSED, WORDS, sections
from autograder.catalogue.exercise import Case, Evidence, Exercise
from autograder.catalogue.families import Family, usual_mistakes
from autograder.catalogue.known_answers import answer, correct, formula, mistake
from autograder.catalogue.laws import ROWS_SUM_TO_ONE
from autograder.catalogue.probes import FAR, hidden, normal, usual_probes, visible
from autograder.catalogue.quotes import columns, row, row_sums, sizes
from transformer_ref.model import attention

DIVIDE, AXIS, SHAPES, STABLE, LEARN = sections("why-divide which-axis shapes stable parameters")


def attention_weights(Q: Tensor, K: Tensor) -> Tensor:
    """softmax(Q K^T / sqrt(d_k)), rows over the keys."""
    return attention.attention_weights(Q, K)


def inputs(g: torch.Generator, B: int, Tq: int, Tk: int, d_k: int, dtype: torch.dtype = torch.float32) -> Case:
    return Case((normal(g, B, Tq, d_k, dtype=dtype), normal(g, B, Tk, d_k, dtype=dtype)))


def far_away(g: torch.Generator) -> Case:
    """Every key is shifted by the same large amount, and so are each query's scores, which does not change the
    softmax."""
    Q, K = inputs(g, 2, 4, 7, 6, dtype=torch.float64).arguments
    return Case((Q, K + FAR))


def large_scores(g: torch.Generator) -> Case:
    """Integers and d_k = 4, so scores are exact in any order of operations, up to 1,800. One query is zero, another
    has two scores that clamping would make equal, and all scores of a third are below -800."""
    Q = torch.randint(-9, 10, (2, 3, 4), generator=g).float()
    K = torch.randint(-9, 10, (2, 6, 4), generator=g).float()
    K[0, :, 3] += 30.0
    Q[0, 2] = torch.tensor([0.0, 0.0, 0.0, -80.0])
    Q[0, 0], K[0, 2], Q[0, 1], K[1, 5], Q[1, 2] = 30.0, 30.0, 0.0, -30.0, -30.0
    K[0, 3] = 29.0
    # one query whose shares lie close together
    Q[1, 0], K[1, 0], K[1, 1] = torch.tensor([1.0, 0.0, 0.0, 0.0]), 9.0, 8.0
    return Case((Q, K))


def times_too_large(evidence: Evidence) -> str:
    ratio = math.sqrt(evidence.arguments[0].shape[-1])
    return (
        f"Your last row is {row(evidence.got.flatten(0, -2)[-1][:6])}: "
        f"your scores are {ratio:.2f} times too large here."
    )


RIGHT = answer("""
    def attention_weights(Q, K):
        scores = Q @ K.transpose(-2, -1)
        scores = scores / Q.shape[-1] ** 0.5
        weights = torch.softmax(scores, dim=-1)
        return weights
""")
SCORES, DIVISION = "scores = Q @ K.transpose(-2, -1)", "scores = scores / Q.shape[-1] ** 0.5"
SOFTMAX = "weights = torch.softmax(scores, dim=-1)"

# fmt: off
DISTANCE = Family("distance instead of dot product", """A key near the query, as points are near, got the most. A score
    is a dot product, which grows with the lengths, too.""")
CUT_OFF = Family("scores cut off at a limit", """Large scores came back with equal weights, as if they had been cut off
    at a limit. That is not needed: subtracting the largest score of a row changes no weight, and torch.softmax does
    so.""")
# fmt: on

EXERCISE = Exercise(
    id="attention-weights", number="05.2", difficulty=2, minutes=20, visible_points=3, hidden_points=5,
    reference=attention_weights, section=DIVIDE, forbidden=FUSED,
    probes=(
        visible("four words", Case((EMBEDDINGS[None], EMBEDDINGS[None]), WORDS), laws=(ROWS_SUM_TO_ONE,)),
        visible("4 queries, 6 keys, d_k = 5", inputs, 2, 4, 6, 5),
        *usual_probes(inputs, other=(3, 5, 7, 90), smallest=(1, 1, 4, 6), common=(2, 5, 5, 6), precise=far_away),
        hidden("float64", inputs, 1, 3, 4, 5, dtype=torch.float64, rtol=0.0, atol=1e-8,
               announced_by="sum to 1 over the keys, up to rounding"),
        hidden("large scores", large_scores, announced_by="±1,000 must not give NaN"),
    ),
    mistakes=(
        mistake("no scaling", RIGHT.without(DIVISION), DIVIDE,
            """The division by the square root of d_k is missing. (Or it comes after the softmax, and dividing each row
            by its sum undoes it.) The softmax sharpens what is too large, so the biggest weight takes nearly
            everything.""", quotes=times_too_large),
        mistake("divided by d_k", RIGHT.but("Q.shape[-1] ** 0.5", "Q.shape[-1]"), DIVIDE,
            """Your weights are too flat: the scores were divided by d_k itself, or twice by its root, as when both Q
            and K are divided by it. Their typical size grows like the square *root* of d_k: one division by that
            brings them back to about 1."""),
        mistake("divided by the root of the number of keys", RIGHT.but("Q.shape[-1]", "K.shape[-2]"), DIVIDE,
            """The scores were divided by the root of the *number of words*. Your weights change when a word is appended
            that no query attends to. What makes scores large is the width d_k of a query, not the length of the
            sentence."""),
        mistake("divided by the root of the number of queries", RIGHT.but("Q.shape[-1]", "Q.shape[-2]"), DIVIDE,
            """The scores were divided by the root of the number of *queries*. A query's weights may not depend on how
            many other queries there are. The size to look at is the last axis."""),
        mistake("divided by the root of the batch size", RIGHT.but("Q.shape[-1]", "Q.shape[0]"), DIVIDE,
            "The scores were divided by the root of the *batch size*: shape[0] counts sentences. d_k is "
            "the last axis."),
        mistake("multiplied by the root of d_k", RIGHT.but("/ Q.shape", "* Q.shape"), DIVIDE,
            """The scores were multiplied by the root of d_k instead of divided, so they are d_k times too large and one
            word takes everything."""),
        mistake("divided after the softmax", RIGHT.without(DIVISION).but("dim=-1)", "dim=-1) / Q.shape[-1] ** 0.5"),
                DIVIDE,
            """The division came after the softmax, where it makes weights that no longer sum to 1. It is the *scores*
            that are too large.""", quotes=row_sums),
        families.SOFTMAX_OVER_THE_QUERIES(RIGHT.but("dim=-1", "dim=-2"), AXIS, quotes=columns),
        mistake("softmax over the batch", RIGHT.but("dim=-1", "dim=0"), AXIS,
            """Your weights sum to 1 over the sentences of the batch: axis 0 is the batch. The weights of each query
            should sum to 1 over its own keys. (F.softmax without a dim chooses an axis itself, and for tensors with
            three axes it is axis 0.)""", quotes=row_sums),
        mistake("one sum for the whole table", RIGHT.but(SOFTMAX, """
                  weights = torch.exp(scores - scores.amax(dim=(-2, -1), keepdim=True))
                  weights = weights / weights.sum(dim=(-2, -1), keepdim=True)"""), AXIS,
            "All cells of a sentence's table together sum to 1. Each *row* belongs to one query and sums to 1.",
            quotes=row_sums),
        mistake("one sum for everything", RIGHT.but(SOFTMAX, """
                  weights = torch.exp(scores - scores.max())
                  weights = weights / weights.sum()"""), AXIS,
            """All cells of the whole batch together sum to 1, so sentences compete with each other. Each row belongs to
            one query and sums to 1.""", quotes=row_sums),
        mistake("no softmax", RIGHT.but(SOFTMAX, "weights = scores"), AXIS,
            "These are the scores, scaled as they should be, but not yet weights: some are above 1 or below 0.",
            quotes=row_sums),
        mistake("scores neither divided nor shared out", RIGHT.without(DIVISION).but(SOFTMAX, "weights = scores"),
                DIVIDE,
            """These are the plain dot products. Two steps are still to come: scale them, then turn each row into
            weights by a softmax.""", quotes=row_sums),
        mistake("softmax before the product", RIGHT.without(DIVISION).but(
                  SCORES, "keys = torch.softmax(K.mT / Q.shape[-1] ** 0.5, dim=-1)").but(SOFTMAX, "weights = Q @ keys"),
                  AXIS,
            """The softmax was applied to K alone, before the product with Q; missing parentheses do that. First compute
            the scores of each query, then apply the softmax to them.""", quotes=row_sums),
        mistake("log of the weights", RIGHT.but("torch.softmax", "torch.log_softmax"), AXIS,
            """All your numbers are 0 or below: these are logarithms of the weights. log_softmax is for losses; here,
            return the weights themselves."""),
        mistake("no exponential", RIGHT.but(SOFTMAX, "weights = scores / scores.sum(dim=-1, keepdim=True)"), AXIS,
            """The rows sum to 1, but the scores were divided by their plain sum. That gives negative weights for
            negative scores, and breaks where they cancel. Chapter 04 makes scores positive first."""),
        mistake("sigmoid instead of softmax", RIGHT.but(SOFTMAX, "weights = torch.sigmoid(scores)"), AXIS,
            """A sigmoid was applied to every score separately, so the words do not compete. A row must sum to exactly
            1.""", quotes=row_sums),
        mistake("cosine instead of scaling", RIGHT.without(DIVISION).but(
                  "Q @ K.transpose(-2, -1)", "F.normalize(Q, dim=-1) @ F.normalize(K, dim=-1).transpose(-2, -1)"),
                  DIVIDE,
            """The scores were divided by the lengths of the vectors, which is cosine similarity. Then the length of a
            query or key no longer counts. The division is by one number, the same for every pair."""),
        mistake("cosine beside the scaling", RIGHT.but(
                  "Q @ K.transpose(-2, -1)", "F.normalize(Q, dim=-1) @ F.normalize(K, dim=-1).transpose(-2, -1)"),
                  DIVIDE,
            """Queries and keys were brought to length 1 before they met. Then the length of a query or key no longer
            counts. The only division is the one by the root of d_k."""),
        mistake("keys ask, queries answer", RIGHT.but("Q @ K.transpose", "K @ Q.transpose"), AXIS,
            "Rows and columns are exchanged: there should be one row for each query and one column for each key.",
            quotes=sizes),
        mistake("K reshaped instead of transposed", RIGHT.but(
                  "K.transpose(-2, -1)", "K.reshape(K.shape[0], K.shape[2], K.shape[1])"), SHAPES,
            """The shape is right and the pairs are wrong: reshape re-cuts the same strip of numbers, so a column is no
            longer one word's key."""),
        mistake("all axes of K turned", RIGHT.but("K.transpose(-2, -1)", "K.T"), SHAPES,
            ".T reverses *all* axes of K, including the batch. Exchange only the last two."),
        mistake("K not transposed", RIGHT.but("K.transpose(-2, -1)", "K"), SHAPES,
            """A query has d_k numbers and so has a key: to meet, the keys must be columns. Write the two shapes
            side by side."""),
        mistake("exponential without care", RIGHT.but(SOFTMAX, """
                  weights = torch.exp(scores)
                  weights = weights / weights.sum(dim=-1, keepdim=True)"""), STABLE,
            """With large scores you return NaN: exp(1000) is infinite, and infinity over infinity is NaN. The weights
            do not change when the same number is subtracted from every score of a row; chapter 04 says which number
            helps."""),
        mistake("one maximum for all rows", RIGHT.but(SOFTMAX, """
                  weights = torch.exp(scores - scores.max())
                  weights = weights / weights.sum(dim=-1, keepdim=True)"""), STABLE,
            "Rows far below the global maximum become 0 over 0. Subtract the maximum of *each row*."),
        mistake("one maximum for each sentence", RIGHT.but(SOFTMAX, """
                  weights = torch.exp(scores - scores.amax(dim=(-2, -1), keepdim=True))
                  weights = weights / weights.sum(dim=-1, keepdim=True)"""), STABLE,
            """Rows far below the largest score of their sentence become 0 over 0. Every row has a maximum of its own;
            subtract that one."""),
        mistake("NaN replaced by 0", RIGHT.but(SOFTMAX, """
                  weights = torch.exp(scores)
                  weights = torch.nan_to_num(weights / weights.sum(dim=-1, keepdim=True))"""), STABLE,
            """With large scores, rows came back that do not sum to 1: the exponentials were infinite, or all 0, and the
            resulting NaN was replaced by 0. Avoid the NaN instead: the weights do not change when the same number is
            subtracted from every score of a row."""),
        mistake("an input changed in place", RIGHT.without(DIVISION).before(SCORES, "Q /= Q.shape[-1] ** 0.5"), SHAPES,
            """Your function changed a tensor that it was given. An operation such as /= or mul_ writes into the
            caller's own numbers."""),
        mistake("softmax over the queries and no scaling", RIGHT.without(DIVISION).but("dim=-1", "dim=-2"), AXIS,
            """Two things at once: the weights of each key sum to 1 over the queries, where those of each *query* must
            sum to 1 over the keys, and the division by the square root of d_k is missing.""", quotes=columns),
        mistake("the table turned at the end", RIGHT.but("return weights", "return weights.transpose(-2, -1)"), AXIS,
            """These are the right weights with rows and columns exchanged: return one row for each query. (The table
            was transposed at the end; or the product was k times q, and the softmax ran along the queries' axis as
            well.)"""),
        mistake("queries with themselves", RIGHT.but("K.transpose", "Q.transpose"), AXIS,
            "The queries were compared with themselves; K has no effect in your result."),
        families.WORST_KEY_WINS(RIGHT.but(SCORES, SCORES.replace("= Q", "= -Q")), AXIS),
        mistake("divided by the root of two", RIGHT.but("Q.shape[-1] ** 0.5", "2 ** 0.5"), DIVIDE,
            """The scores were divided by the root of 2, whatever d_k is. That root belongs to the four words, which
            have d_k = 2. Take d_k from Q, at each call."""),
        *wrong_scores(RIGHT, DIVISION, DIVIDE),
        families.FUTURE_FORBIDDEN(RIGHT.before(SOFTMAX, """
                  later = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
                  scores = scores.masked_fill(later, float("-inf"))"""),
            AXIS, here="Here every query may attend to all keys."),
        CUT_OFF(RIGHT.before(SOFTMAX, "scores = scores.clamp(-50, 50)"), STABLE),
        CUT_OFF(RIGHT.before(SOFTMAX, "scores = scores.clamp(-1000, 1000)"), STABLE, name="scores cut off at 1,000"),
        DISTANCE(RIGHT.but(SCORES, "scores = -torch.cdist(Q, K)"), DIVIDE),
        DISTANCE(RIGHT.but(SCORES, "scores = -torch.cdist(Q, K) ** 2"),
            DIVIDE, name="squared distance instead of dot product"),
        mistake("the largest weight as the unit", RIGHT.ending_in(" / weights.amax(dim=-1, keepdim=True)"), AXIS,
            "The largest weight of each row is 1, so a row sums to more. The weights must sum to 1, and after the "
            "softmax they do.",
            quotes=row_sums),
        mistake("added instead of multiplied",
                RIGHT.but(SCORES, "scores = Q.sum(dim=-1)[..., None] + K.sum(dim=-1)[:, None]"), DIVIDE,
            """Query and key were added, not multiplied. What a query adds is the same for all keys, so it changes no
            weight: all rows are alike."""),
        families.OWN_WORD_HIDDEN(RIGHT.before(SOFTMAX, """
                  own = torch.eye(*scores.shape[-2:], dtype=torch.bool)
                  scores = scores.masked_fill(own & (scores.shape[-1] > 1), -1e9)"""),
            AXIS, here="Here every query may attend to all keys, including its own word."),
        mistake("keys centered", RIGHT.but("K.transpose", "(K - K.mean(dim=-1, keepdim=True)).transpose"), DIVIDE,
            "The mean of each key's features was subtracted from it first. Use the keys as they are."),
        mistake("queries and keys standardized", RIGHT.but(
                  "Q @ K", "F.layer_norm(Q, Q.shape[-1:]) @ F.layer_norm(K, K.shape[-1:])"), DIVIDE,
            """Queries and keys were brought to mean 0 and variance 1 before the product, so their lengths no longer
            count. One number divides all scores: the root of d_k."""),
        *usual_mistakes(RIGHT, arguments="Q K", detached=LEARN, float32=SHAPES, single=STABLE, squeezed=SHAPES,
                        viewed=SHAPES,
                        rounded=DIVIDE, root="Q.shape[-1] ** 0.5", quotes_size=sizes),
    ),
    correct=(
        correct("at", RIGHT),
        correct("Q scaled first", formula("attention_weights(q, k)", "(q * q.size(-1) ** -0.5 @ k.mT).softmax(-1)")),
        correct("both scaled", """
            def attention_weights(q, k):
                s = q.size(-1) ** -0.25
                return F.softmax((q * s).bmm((k * s).permute(0, 2, 1)), 2)
        """),
        correct("einsum, stable by hand", """
            def attention_weights(queries, keys):
                scores = torch.einsum("bqd,bkd->bqk", queries, keys) / queries.shape[-1] ** 0.5
                e = (scores - scores.amax(dim=-1, keepdim=True)).exp()
                return e / e.sum(-1, keepdim=True)
        """),
        correct("loops", """
            def attention_weights(Q, K):
                B, Tq, d = Q.shape
                rows = []
                for b in range(B):
                    for i in range(Tq):
                        scores = torch.stack([(Q[b, i] * K[b, j]).sum() / d ** 0.5 for j in range(K.shape[1])])
                        rows.append(torch.softmax(scores, dim=0))
                return torch.stack(rows).reshape(B, Tq, -1)
        """),
        correct("log and back", RIGHT.but(SOFTMAX, "weights = (scores - scores.logsumexp(-1, keepdim=True)).exp()")),
        correct("double inside",
                RIGHT.but("Q @ K.t", "Q.double() @ K.double().t").but("return weights", "return weights.to(Q.dtype)")),
        correct("baddbmm", """
            def attention_weights(Q, K):
                s = torch.baddbmm(Q.new_zeros(()), Q, K.mT, alpha=1 / math.sqrt(K.shape[-1]))
                return torch.nn.Softmax(dim=2)(s)
        """),
    ),
    hints=(
        "look at the size of the scores, and at which numbers sum to 1.",
        "(B, Tq, dk) times (B, dk, Tk) gives (B, Tq, Tk): one row for each query. The softmax runs along the last "
        "axis.",
        "scores = Q times K with its last two axes exchanged; divide by the root of d_k; softmax along the last axis.",
    ),
)
