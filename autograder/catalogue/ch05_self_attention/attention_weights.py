"""05.2 attention_weights."""

import math

import torch
from torch import Tensor

from autograder.catalogue.ch05_self_attention.shared import EMBEDDINGS, FUSED, SUMS_TO_ONE, WORDS, sections
from autograder.catalogue.exercise import Case, Evidence, Exercise, Probe
from autograder.catalogue.parts import (
    GRADIENTS,
    UNTOUCHED,
    columns,
    known,
    normal,
    ragged,
    right,
    row,
    sizes,
    turned,
)
from transformer_ref.model import attention

PARAMETERS, SHAPES, STABLE, WHICH_AXIS, WHY_DIVIDE = sections("parameters shapes stable which-axis why-divide")


def attention_weights(Q: Tensor, K: Tensor) -> Tensor:
    """softmax(Q K^T / sqrt(d_k)), rows over the keys."""
    return attention.attention_weights(Q, K)


def _large(g: torch.Generator) -> Case:
    """Whole numbers and d_k = 4, so scores are exact in any order of operations, up to 1,800. One query is zero."""
    Q = torch.randint(-9, 10, (2, 3, 4), generator=g).float()
    K = torch.randint(-9, 10, (2, 6, 4), generator=g).float()
    Q[0, 0], K[0, 2], Q[0, 1], K[1, 5], Q[1, 2] = 30.0, 30.0, 0.0, -30.0, -30.0
    Q[1, 0], K[1, 0], K[1, 1] = (
        torch.tensor([1.0, 0.0, 0.0, 0.0]),
        9.0,
        8.0,
    )  # one query whose shares lie close together
    return Case((Q, K))


def _times_too_large(evidence: Evidence) -> str:
    ratio = math.sqrt(evidence.arguments[0].shape[-1])
    return (
        f"Your last row is {row(evidence.got.flatten(0, -2)[-1][:6])}. This is what comes out when the division by the "
        f"square root of d_k is missing: your scores are {ratio:.2f} times too large here."
    )


EXERCISE = Exercise(
    id="attention-weights",
    number="05.2",
    visible_points=3,
    hidden_points=5,
    section=WHY_DIVIDE,
    reference=attention_weights,
    forbidden=FUSED,
    probes=(
        Probe(
            "four words",
            lambda g: Case((EMBEDDINGS[None], EMBEDDINGS[None]), WORDS),
            hidden=False,
            laws=(SUMS_TO_ONE,),
        ),
        Probe(
            "4 queries, 6 keys, d_k = 5",
            lambda g: Case((normal(g, 2, 4, 5), normal(g, 2, 6, 5))),
            hidden=False,
        ),
        Probe("other sizes", lambda g: Case((normal(g, 3, 5, 10), normal(g, 3, 7, 10)))),
        Probe("one sentence, one query", lambda g: Case((normal(g, 1, 1, 6), normal(g, 1, 4, 6)))),
        Probe(
            "float64, transposed in memory",
            lambda g: Case(
                (
                    turned(normal(g, 2, 4, 6, dtype=torch.float64)),
                    turned(normal(g, 2, 7, 6, dtype=torch.float64)),
                )
            ),
        ),
        Probe("large scores", _large),
        Probe(
            "gradients",
            lambda g: Case((normal(g, 2, 4, 5, dtype=torch.float64), normal(g, 2, 6, 5, dtype=torch.float64))),
            also=GRADIENTS,
        ),
        Probe(
            "nothing else is touched",
            lambda g: Case((normal(g, 1, 4, 5), normal(g, 1, 6, 5))),
            also=UNTOUCHED,
        ),
    ),
    wrong=(
        known(
            "no scaling",
            """
            def attention_weights(Q, K):
                return torch.softmax(Q @ K.transpose(-2, -1), dim=-1)
            """,
            "The softmax sharpens what is too large, so the biggest weight takes nearly everything and little is left to learn from.",
            WHY_DIVIDE,
            _times_too_large,
        ),
        known(
            "divided by d_k",
            """
            def attention_weights(Q, K):
                return torch.softmax(Q @ K.transpose(-2, -1) / Q.shape[-1], dim=-1)
            """,
            """Your weights are too flat: the scores were divided by d_k itself. Their typical size grows like the square
            *root* of d_k, so that is what brings them back to about 1.""",
            WHY_DIVIDE,
        ),
        known(
            "divided by the root of the number of keys",
            """
            def attention_weights(Q, K):
                return torch.softmax(Q @ K.transpose(-2, -1) / K.shape[-2] ** 0.5, dim=-1)
            """,
            """The scores were divided by the root of the *number of words*. Your weights change when a word is appended
            that nobody attends to. What makes scores large is the width d_k of a query, not the length of the sentence.""",
            WHY_DIVIDE,
        ),
        known(
            "divided by the root of the number of queries",
            """
            def attention_weights(Q, K):
                return torch.softmax(Q @ K.transpose(-2, -1) / Q.shape[-2] ** 0.5, dim=-1)
            """,
            """The scores were divided by the root of the number of *queries*. A query's weights may not depend on how
            many other queries are asked. The size to look at is the last axis.""",
            WHY_DIVIDE,
        ),
        known(
            "divided by the root of the batch size",
            """
            def attention_weights(Q, K):
                return torch.softmax(Q @ K.transpose(-2, -1) / Q.shape[0] ** 0.5, dim=-1)
            """,
            "The scores were divided by the root of the *batch size*: shape[0] counts sentences. d_k is the last axis.",
            WHY_DIVIDE,
        ),
        known(
            "multiplied by the root of d_k",
            """
            def attention_weights(Q, K):
                return torch.softmax(Q @ K.transpose(-2, -1) * Q.shape[-1] ** 0.5, dim=-1)
            """,
            "The scores were multiplied by the root of d_k instead of divided, so they are d_k times too large and one word takes everything.",
            WHY_DIVIDE,
        ),
        known(
            "divided after the softmax",
            """
            def attention_weights(Q, K):
                return torch.softmax(Q @ K.transpose(-2, -1), dim=-1) / Q.shape[-1] ** 0.5
            """,
            "The division came after the softmax, where it makes shares that no longer sum to 1. It is the *scores* that are too large.",
            WHY_DIVIDE,
            ragged,
        ),
        known(
            "softmax over the queries",
            """
            def attention_weights(Q, K):
                return torch.softmax(Q @ K.transpose(-2, -1) / Q.shape[-1] ** 0.5, dim=-2)
            """,
            "Each *query* must share out 1 among the keys. Here every key shares itself out among the queries.",
            WHICH_AXIS,
            columns,
        ),
        known(
            "softmax over the batch",
            """
            def attention_weights(Q, K):
                return torch.softmax(Q @ K.transpose(-2, -1) / Q.shape[-1] ** 0.5, dim=0)
            """,
            "The sentences of the batch share 1 among themselves: axis 0 is the batch. Each query shares out 1 among its own keys.",
            WHICH_AXIS,
            ragged,
        ),
        known(
            "one sum for the whole table",
            """
            def attention_weights(Q, K):
                scores = Q @ K.transpose(-2, -1) / Q.shape[-1] ** 0.5
                weights = torch.exp(scores - scores.amax(dim=(-2, -1), keepdim=True))
                return weights / weights.sum(dim=(-2, -1), keepdim=True)
            """,
            "All cells of a sentence's table together sum to 1. Each *row* is one query's own 1 to share out.",
            WHICH_AXIS,
            ragged,
        ),
        known(
            "one sum for everything",
            """
            def attention_weights(Q, K):
                scores = Q @ K.transpose(-2, -1) / Q.shape[-1] ** 0.5
                weights = torch.exp(scores - scores.max())
                return weights / weights.sum()
            """,
            "All cells of the whole batch together sum to 1, so sentences compete with each other. Each row is one query's own 1 to share out.",
            WHICH_AXIS,
            ragged,
        ),
        known(
            "no softmax",
            """
            def attention_weights(Q, K):
                return Q @ K.transpose(-2, -1) / Q.shape[-1] ** 0.5
            """,
            "These are the scores, scaled as they should be, but not yet shares: some are above 1 or below 0.",
            WHICH_AXIS,
            ragged,
        ),
        known(
            "scores neither divided nor shared out",
            """
            def attention_weights(Q, K):
                return Q @ K.transpose(-2, -1)
            """,
            "These are the plain dot products. Two steps are still to come: bring them to a usual size, then turn each row into shares.",
            WHY_DIVIDE,
            ragged,
        ),
        known(
            "log of the weights",
            """
            def attention_weights(Q, K):
                return torch.log_softmax(Q @ K.transpose(-2, -1) / Q.shape[-1] ** 0.5, dim=-1)
            """,
            "All your numbers are 0 or below: these are logarithms of the weights. log_softmax is for losses; here shares are wanted.",
            WHICH_AXIS,
        ),
        known(
            "no exponential",
            """
            def attention_weights(Q, K):
                scores = Q @ K.transpose(-2, -1) / Q.shape[-1] ** 0.5
                return scores / scores.sum(dim=-1, keepdim=True)
            """,
            """The rows sum to 1, but the scores were divided by their plain sum. That gives negative shares for negative
            scores, and breaks where they cancel. Chapter 04 makes scores positive first.""",
            WHICH_AXIS,
        ),
        known(
            "sigmoid instead of softmax",
            """
            def attention_weights(Q, K):
                return torch.sigmoid(Q @ K.transpose(-2, -1) / Q.shape[-1] ** 0.5)
            """,
            "Every cell was squeezed between 0 and 1 by itself, so the words do not compete. A row must share out exactly 1.",
            WHICH_AXIS,
            ragged,
        ),
        known(
            "cosine instead of scaling",
            """
            def attention_weights(Q, K):
                scores = F.normalize(Q, dim=-1) @ F.normalize(K, dim=-1).transpose(-2, -1)
                return torch.softmax(scores, dim=-1)
            """,
            """The scores were divided by the lengths of the vectors, which is cosine similarity. Then a longer query or
            key could not ask louder. The division is by one number, the same for every pair.""",
            WHY_DIVIDE,
        ),
        known(
            "keys ask, queries answer",
            """
            def attention_weights(Q, K):
                return torch.softmax(K @ Q.transpose(-2, -1) / Q.shape[-1] ** 0.5, dim=-1)
            """,
            "Rows and columns are exchanged: there should be one row for each query and one column for each key.",
            WHICH_AXIS,
            sizes,
        ),
        known(
            "K reshaped instead of transposed",
            """
            def attention_weights(Q, K):
                scores = Q @ K.reshape(K.shape[0], K.shape[2], K.shape[1]) / Q.shape[-1] ** 0.5
                return torch.softmax(scores, dim=-1)
            """,
            "The shape is right and the pairs are wrong: reshape re-cuts the same strip of numbers, so a column is no longer one word's key.",
            SHAPES,
        ),
        known(
            "all axes of K turned",
            """
            def attention_weights(Q, K):
                return torch.softmax(Q @ K.T / Q.shape[-1] ** 0.5, dim=-1)
            """,
            ".T turns *all* axes of K, the batch too. Only the last two change places.",
            SHAPES,
        ),
        known(
            "K not transposed",
            """
            def attention_weights(Q, K):
                return torch.softmax(Q @ K / Q.shape[-1] ** 0.5, dim=-1)
            """,
            "A query has d_k numbers and so has a key: to meet, the keys must stand as columns. Write the two shapes side by side.",
            SHAPES,
        ),
        known(
            "exponential without care",
            """
            def attention_weights(Q, K):
                weights = torch.exp(Q @ K.transpose(-2, -1) / Q.shape[-1] ** 0.5)
                return weights / weights.sum(dim=-1, keepdim=True)
            """,
            """With large scores you return NaN: exp(1000) is infinite and infinite over infinite is nothing. Shares do not
            change when the same number is subtracted from every score of a row; chapter 04 says which number helps.""",
            STABLE,
        ),
        known(
            "one maximum for all rows",
            """
            def attention_weights(Q, K):
                scores = Q @ K.transpose(-2, -1) / Q.shape[-1] ** 0.5
                weights = torch.exp(scores - scores.max())
                return weights / weights.sum(dim=-1, keepdim=True)
            """,
            "Rows far below the global maximum become 0 over 0. Subtract the maximum of *each row*.",
            STABLE,
        ),
        known(
            "cut off from the gradient",
            """
            def attention_weights(Q, K):
                return torch.softmax(Q.detach() @ K.detach().transpose(-2, -1) / Q.shape[-1] ** 0.5, dim=-1)
            """,
            "The values are right, but no gradient flows back to Q and K: .detach(), .data, no_grad or numpy cut the graph.",
            PARAMETERS,
        ),
        known(
            "always float32",
            """
            def attention_weights(Q, K):
                return torch.softmax(Q.float() @ K.float().transpose(-2, -1) / Q.shape[-1] ** 0.5, dim=-1)
            """,
            "float64 went in and float32 came out. The result keeps the dtype of the input.",
            SHAPES,
        ),
        known(
            "an input changed in place",
            """
            def attention_weights(Q, K):
                Q /= Q.shape[-1] ** 0.5
                return torch.softmax(Q @ K.transpose(-2, -1), dim=-1)
            """,
            "Your function changed a tensor that it was given. An operation such as /= or mul_ writes into the caller's own numbers.",
            SHAPES,
        ),
        known(
            "softmax over the queries and no scaling",
            """
            def attention_weights(Q, K):
                return torch.softmax(Q @ K.transpose(-2, -1), dim=-2)
            """,
            """Two things at once: every key shares itself out among the queries, where each *query* must share out 1 among
            the keys, and the division by the square root of d_k is missing.""",
            WHICH_AXIS,
            columns,
        ),
        known(
            "the table turned at the end",
            """
            def attention_weights(Q, K):
                return torch.softmax(Q @ K.transpose(-2, -1) / Q.shape[-1] ** 0.5, dim=-1).transpose(-2, -1)
            """,
            "The shares were right, and then rows and columns changed places. One row for each query: leave the table as it is.",
            WHICH_AXIS,
        ),
        known(
            "queries with themselves",
            """
            def attention_weights(Q, K):
                return torch.softmax(Q @ Q.transpose(-2, -1) / Q.shape[-1] ** 0.5, dim=-1)
            """,
            "The queries were compared with themselves; K plays no part in your result.",
            WHICH_AXIS,
        ),
        known(
            "the batch axis squeezed away",
            """
            def attention_weights(Q, K):
                return torch.softmax(Q @ K.transpose(-2, -1) / Q.shape[-1] ** 0.5, dim=-1).squeeze()
            """,
            "With one sentence the batch axis of size 1 vanished. squeeze() removes every axis of size 1; this one must stay.",
            SHAPES,
            sizes,
        ),
    ),
    right=(
        right(
            "at",
            "def attention_weights(Q, K):\n    return torch.softmax(Q @ K.transpose(1, 2) / math.sqrt(Q.shape[-1]), dim=-1)\n",
        ),
        right(
            "Q scaled first",
            "def attention_weights(q, k):\n    return (q * q.size(-1) ** -0.5 @ k.mT).softmax(-1)\n",
        ),
        right(
            "both scaled",
            "def attention_weights(q, k):\n    s = q.size(-1) ** -0.25\n    return F.softmax((q * s).bmm((k * s).permute(0, 2, 1)), 2)\n",
        ),
        right(
            "einsum, stable by hand",
            """
            def attention_weights(queries, keys):
                scores = torch.einsum("bqd,bkd->bqk", queries, keys) / queries.shape[-1] ** 0.5
                scores = scores - scores.amax(dim=-1, keepdim=True)
                e = scores.exp()
                return e / e.sum(-1, keepdim=True)
            """,
        ),
        right(
            "loops",
            """
            def attention_weights(Q, K):
                B, Tq, d = Q.shape
                rows = []
                for b in range(B):
                    for i in range(Tq):
                        scores = torch.stack([(Q[b, i] * K[b, j]).sum() / d ** 0.5 for j in range(K.shape[1])])
                        rows.append(torch.softmax(scores, dim=0))
                return torch.stack(rows).reshape(B, Tq, -1)
            """,
        ),
        right(
            "log and back",
            "def attention_weights(Q, K):\n    s = Q @ K.swapaxes(-1, -2) / Q.shape[2] ** 0.5\n    return (s - s.logsumexp(-1, keepdim=True)).exp()\n",
        ),
        right(
            "double inside",
            "def attention_weights(Q, K):\n    s = Q.double() @ K.double().mT / Q.shape[2] ** 0.5\n    return s.softmax(-1).to(Q.dtype)\n",
        ),
        right(
            "baddbmm",
            "def attention_weights(Q, K):\n    s = torch.baddbmm(Q.new_zeros(()), Q, K.mT, alpha=1 / math.sqrt(K.shape[-1]))\n    return torch.nn.Softmax(dim=2)(s)\n",
        ),
    ),
    hints=(
        "look at the size of the scores, and at which numbers sum to 1.",
        "(B, Tq, dk) times (B, dk, Tk) gives (B, Tq, Tk): one row for each query. The shares run along the last axis.",
        "scores = Q times K with its last two axes exchanged; divide by the root of d_k; softmax along the last axis.",
    ),
)
