"""Chapter 05, self-attention: six exercises, their probes, and the wrong answers that teachers know."""

import math
from textwrap import dedent

import torch
from torch import Tensor, nn

from autograder.catalogue.exercise import Assignment, Case, Evidence, Exercise, Law, Probe, Role, Section
from autograder.catalogue.parts import (
    GRADIENTS,
    UNTOUCHED,
    columns,
    first,
    known,
    normal,
    ragged,
    right,
    row,
    shares,
    sizes,
    turned,
)
from autograder.judging.compare import number
from transformer_ref.model import attention

# ------------------------------------------------------------------------------------------------ shared by the exercises

WORDS = ("I", "closed", "the", "windows")
EMBEDDINGS = torch.tensor([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0], [2.0, 0.0]])

PROJECT = Section("05", "Questions, keys and values", "sec-05-project")
WHY_DIVIDE = Section("05", "Why divide?", "sec-05-why-divide")
WHICH_AXIS = Section("05", "Who shares out what?", "sec-05-which-axis")
MIX = Section("05", "Mixing the values", "sec-05-mix")
PARAMETERS = Section("05", "Where is the learning?", "sec-05-parameters")
LOOKUP = Section("05", "A soft dictionary", "sec-05-lookup")
ORDER = Section("05", "Does order matter?", "sec-05-order")
SHAPES = Section("05", "Shapes, once", "sec-05-shapes")
STABLE = Section("05", "Large scores", "sec-05-stable")

FUSED = ("scaled_dot_product_attention", "MultiheadAttention", "flex_attention")  # what they mean: recorder.MEANINGS
SUMS_TO_ONE = Law("every query's weights sum to 1", lambda got: torch.allclose(got.sum(-1), torch.ones(()), atol=1e-4))
PAIR_SUMS_TO_ONE = Law(
    "every query's weights sum to 1", lambda got: torch.allclose(got[1].sum(-1), torch.ones(()), atol=1e-4)
)

# ------------------------------------------------------------------------------------------------ 05.1 project


def project(x: Tensor, W: Tensor, b: Tensor | None = None) -> Tensor:
    """Every position of every sentence through one and the same affine map."""
    return x @ W if b is None else x @ W + b


_W = torch.tensor([[1.0, 0.0, 2.0], [0.0, 1.0, -1.0]])
_SQUARE = torch.tensor([[[1.0, 2.0], [0.0, 3.0]], [[2.0, -1.0], [4.0, 1.0]]])

PROJECT_EXERCISE = Exercise(
    id="project",
    number="05.1",
    names=("project",),
    visible_points=1,
    hidden_points=2,
    section=PROJECT,
    reference={"project": project},
    probes=(
        Probe("four words", lambda g: Case((EMBEDDINGS[None], _W), WORDS), hidden=False),
        Probe(
            "four words and a bias",
            lambda g: Case((EMBEDDINGS[None], _W, torch.tensor([0.5, -1.0, 3.0])), WORDS),
            hidden=False,
        ),
        Probe(
            "two sentences, square W",
            lambda g: Case((_SQUARE, torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([0.0, 10.0]))),
            hidden=False,
        ),
        Probe("other sizes, b is None", lambda g: Case((normal(g, 2, 4, 6), normal(g, 6, 5), None))),
        Probe("other sizes and a bias", lambda g: Case((normal(g, 3, 4, 6), normal(g, 6, 5), normal(g, 5)))),
        Probe("one sentence of one word", lambda g: Case((normal(g, 1, 1, 6), normal(g, 6, 1), normal(g, 1)))),
        Probe(
            "float64, transposed in memory",
            lambda g: Case(
                (
                    turned(normal(g, 2, 4, 6, dtype=torch.float64)),
                    turned(normal(g, 6, 5, dtype=torch.float64)),
                )
            ),
        ),
        Probe(
            "gradients",
            lambda g: Case(tuple(normal(g, *shape, dtype=torch.float64) for shape in ((2, 4, 6), (6, 5), (5,)))),
            also=GRADIENTS,
        ),
        Probe(
            "nothing else is touched",
            lambda g: Case((normal(g, 1, 4, 5), normal(g, 5, 5), normal(g, 5))),
            also=UNTOUCHED,
        ),
    ),
    misconceptions=(
        known(
            "W on the left",
            """
            def project(x, W, b=None):
                out = W @ x
                return out if b is None else out + b
            """,
            """W @ x mixes the *words* of a sentence with each other, and its shapes agree only where the number of words
            happens to equal D. Each word's row of D numbers should meet the D rows of W.""",
            SHAPES,
        ),
        known(
            "W transposed",
            """
            def project(x, W, b=None):
                out = x @ W.T
                return out if b is None else out + b
            """,
            """You used W transposed. W is stored as (D, d), so it is applied as it stands; nn.Linear stores (d, D), which
            is where the habit of transposing comes from. With a square W no shape error warns you.""",
            SHAPES,
        ),
        known(
            "bias forgotten",
            """
            def project(x, W, b=None):
                return x @ W
            """,
            "The results with a bias equal those without: b is never added. It is one row of d numbers for every word.",
            PROJECT,
        ),
        known(
            "bias per position",
            """
            def project(x, W, b=None):
                out = x @ W
                return out if b is None else out + b[:, None]
            """,
            """b was spread along the words: word 0 got b[0] everywhere. b belongs to the *features*: every word gets the
            whole of b.""",
            SHAPES,
        ),
        known(
            "bias subtracted",
            """
            def project(x, W, b=None):
                out = x @ W
                return out if b is None else out - b
            """,
            "The bias arrives with the wrong sign: your numbers are below the product where they should be above it.",
            PROJECT,
        ),
        known(
            "bias before the product",
            """
            def project(x, W, b=None):
                return x @ W if b is None else (x + b) @ W
            """,
            "b was added to x before the product. It has d numbers, one per *output* feature, so it comes after.",
            PROJECT,
        ),
        known(
            "first sentence only",
            """
            def project(x, W, b=None):
                out = x[0] @ W
                return out if b is None else out + b
            """,
            "The batch axis is gone: only the first sentence was projected. The result has one row of d for every word of every sentence.",
            SHAPES,
            sizes,
        ),
        known(
            "first sentence for all",
            """
            def project(x, W, b=None):
                out = (x[0] @ W).expand(x.shape[0], -1, -1)
                return out if b is None else out + b
            """,
            "Sentence 1 came back as a copy of sentence 0. Every sentence of the batch is projected on its own.",
            SHAPES,
        ),
        known(
            "words averaged",
            """
            def project(x, W, b=None):
                out = x.mean(dim=1, keepdim=True).expand_as(x) @ W
                return out if b is None else out + b
            """,
            "Every word of a sentence came back the same: the words were mixed. A projection treats each word by itself; mixing is attention's job.",
            PROJECT,
        ),
        known(
            "another W per position",
            """
            def project(x, W, b=None):
                W = torch.stack([torch.roll(W, t, dims=0) for t in range(x.shape[1])])
                out = torch.einsum("btd,tdk->btk", x, W)
                return out if b is None else out + b
            """,
            "Word 0 is right and the next ones are not: the matrix changed from word to word. All words share one W.",
            PROJECT,
        ),
        known(
            "a new layer instead of W",
            """
            def project(x, W, b=None):
                return nn.Linear(W.shape[0], W.shape[1])(x)
            """,
            "Your result does not depend on W: a fresh layer with random numbers was made and used. Use the W and b that were passed in.",
            PARAMETERS,
        ),
        known(
            "ReLU added",
            """
            def project(x, W, b=None):
                out = x @ W if b is None else x @ W + b
                return torch.relu(out)
            """,
            "Every negative number became 0. A projection is a plain matrix product with a bias; no activation follows it.",
            PROJECT,
        ),
        known(
            "cut off from the gradient",
            """
            def project(x, W, b=None):
                out = x.detach() @ W.detach()
                return out if b is None else out + b.detach()
            """,
            "The values are right, but no gradient flows back: .detach(), .data or numpy cut the graph, and W could never be learned.",
            PARAMETERS,
        ),
        known(
            "always float32",
            """
            def project(x, W, b=None):
                out = x.float() @ W.float()
                return out if b is None else out + b.float()
            """,
            "float64 went in and float32 came out. The result keeps the dtype of the input.",
            SHAPES,
        ),
        known(
            "the truth of a tensor",
            """
            def project(x, W, b=None):
                out = x @ W
                if b:
                    out = out + b
                return out
            """,
            "`if b:` asks whether the whole tensor is true, and a tensor of several numbers is neither. Ask whether b is None.",
            PROJECT,
        ),
        known(
            "a bias that is always added",
            """
            def project(x, W, b=None):
                return x @ W + b
            """,
            "Your code stops when there is no bias: b is then None, and None cannot be added. Add it only when there is one.",
            PROJECT,
        ),
        known(
            "bias added twice",
            """
            def project(x, W, b=None):
                return x @ W if b is None else x @ W + 2 * b
            """,
            "Your numbers with a bias are off by exactly one more bias: it was added twice.",
            PROJECT,
        ),
        known(
            "the batch axis squeezed away",
            """
            def project(x, W, b=None):
                out = x @ W
                return (out if b is None else out + b).squeeze()
            """,
            "With one sentence the batch axis of size 1 vanished. squeeze() removes every axis of size 1; this one must stay.",
            SHAPES,
            sizes,
        ),
    ),
    variants=(
        right(
            "at",
            "def project(a, weight, bias=None):\n    y = a @ weight\n    return y if bias is None else y + bias\n",
        ),
        right(
            "einsum",
            'def project(x, W, b=None):\n    y = torch.einsum("btd,dk->btk", x, W)\n    return y + b if b is not None else y\n',
        ),
        right("F.linear", "def project(x, W, b=None):\n    return F.linear(x, W.T, b)\n"),
        right(
            "loops",
            """
            def project(x, W, b=None):
                rows = []
                for sentence in x:
                    words = []
                    for word in sentence:
                        total = sum(word[i] * W[i] for i in range(W.shape[0]))
                        words.append(total if b is None else total + b)
                    rows.append(torch.stack(words))
                return torch.stack(rows)
            """,
        ),
        right(
            "elementwise and sum",
            "def project(x, W, b=None):\n    y = (x[..., :, None] * W).sum(-2)\n    return y if b is None else b + y\n",
        ),
        right(
            "double inside",
            "def project(x, W, b=None):\n    y = x.double() @ W.double()\n    return (y if b is None else y + b.double()).to(x.dtype)\n",
        ),
        right(
            "flattened",
            "def project(x, W, b=0):\n    b = 0 if b is None else b\n    return (x.reshape(-1, x.size(-1)).mm(W) + b).view(*x.shape[:2], -1)\n",
        ),
    ),
    hints=(
        "which axis of x has the same size as the first axis of W?",
        "(B, T, D) times (D, d): the last axis of x meets the first of W, and (B, T) is carried along. b has shape (d,).",
        "out = x times W; if a bias was given, add it to every row; return out.",
    ),
)

# ------------------------------------------------------------------------------------------------ 05.2 attention_weights


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


WEIGHTS_EXERCISE = Exercise(
    id="attention-weights",
    number="05.2",
    names=("attention_weights",),
    visible_points=3,
    hidden_points=5,
    section=WHY_DIVIDE,
    reference={"attention_weights": attention_weights},
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
    misconceptions=(
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
    variants=(
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

# ------------------------------------------------------------------------------------------------ 05.3 attend

_TABLE = torch.softmax(EMBEDDINGS @ EMBEDDINGS.T / math.sqrt(2), dim=-1)


def attend(W: Tensor, V: Tensor) -> Tensor:
    """A V: every query's mixture of the values."""
    return attention.attend(W, V)


def _one_hot(g: torch.Generator) -> Case:
    chosen = torch.randint(6, (2, 4), generator=g)
    return Case((torch.nn.functional.one_hot(chosen, 6).float(), normal(g, 2, 6, 7)))


def _constant(evidence: Evidence) -> str:
    return f"Row 0 came back as {row(evidence.got.flatten(0, -2)[0][:7])}; it should be {row(evidence.expected.flatten(0, -2)[0][:7])}."


ATTEND_EXERCISE = Exercise(
    id="attend",
    number="05.3",
    names=("attend",),
    visible_points=1,
    hidden_points=3,
    section=MIX,
    reference={"attend": attend},
    probes=(
        Probe("four words", lambda g: Case((_TABLE[None], EMBEDDINGS[None]), WORDS), hidden=False),
        Probe(
            "4 queries, 6 keys, 7 features",
            lambda g: Case((shares(g, 2, 4, 6), normal(g, 2, 6, 7))),
            hidden=False,
        ),
        Probe("other sizes", lambda g: Case((shares(g, 3, 5, 4), normal(g, 3, 4, 6)))),
        Probe(
            "equal values come back",
            lambda g: Case((shares(g, 2, 4, 6), normal(g, 2, 1, 7).expand(2, 6, 7).contiguous())),
        ),
        Probe("a share of 1 copies a value", _one_hot),
        Probe("one query, one key", lambda g: Case((torch.ones(1, 1, 1), normal(g, 1, 1, 7)))),
        Probe(
            "float64, transposed in memory",
            lambda g: Case(
                (
                    turned(shares(g, 2, 4, 6, dtype=torch.float64)),
                    turned(normal(g, 2, 6, 7, dtype=torch.float64)),
                )
            ),
        ),
        Probe(
            "gradients",
            lambda g: Case((shares(g, 2, 4, 6, dtype=torch.float64), normal(g, 2, 6, 7, dtype=torch.float64))),
            also=GRADIENTS,
        ),
        Probe(
            "nothing else is touched",
            lambda g: Case((shares(g, 1, 5, 5), normal(g, 1, 5, 5))),
            also=UNTOUCHED,
        ),
    ),
    misconceptions=(
        known(
            "values on the left",
            "def attend(W, V):\n    return V @ W\n",
            "The values stand on the left of the weights. A row of weights has one number for each *word*; it must meet the word axis of V.",
            SHAPES,
        ),
        known(
            "weights transposed",
            "def attend(W, V):\n    return W.transpose(-2, -1) @ V\n",
            "Output 0 was mixed with the weights of *column* 0. Row i of the weights belongs to query i.",
            MIX,
            _constant,
        ),
        known(
            "both transposed",
            "def attend(W, V):\n    return V.transpose(-2, -1) @ W.transpose(-2, -1)\n",
            "The numbers are right and lie on their side: the result should have one row for each query and one column for each feature.",
            SHAPES,
            sizes,
        ),
        known(
            "normalized again",
            "def attend(W, V):\n    return W @ V / W.shape[-1]\n",
            """The mixture was divided once more by the number of words. The weights of a row already sum to 1, so a mixture
            of equal values must give back that value.""",
            MIX,
            _constant,
        ),
        known(
            "softmax a second time",
            "def attend(W, V):\n    return torch.softmax(W, dim=-1) @ V\n",
            "The weights went through a softmax again, which makes them nearly equal. They are shares already: use them as they come.",
            MIX,
            _constant,
        ),
        known(
            "rescaled so that columns sum to 1",
            "def attend(W, V):\n    return (W / W.sum(dim=-2, keepdim=True)) @ V\n",
            "The weights were made to sum to 1 down the *columns*. They come as shares along the rows and need nothing more.",
            WHICH_AXIS,
            _constant,
        ),
        known(
            "plain mean of the values",
            "def attend(W, V):\n    return V.mean(dim=-2, keepdim=True).expand(-1, W.shape[-2], -1)\n",
            "Every query got the plain mean of the values, so the weights play no part. The shares decide how much of each value enters.",
            MIX,
        ),
        known(
            "only the strongest word",
            "def attend(W, V):\n    best = W.argmax(dim=-1)\n    return torch.gather(V, 1, best[..., None].expand(-1, -1, V.shape[-1]))\n",
            "Each query copied the value of its strongest word. Attention mixes *all* values in the given shares; picking one cannot be learned by gradients.",
            MIX,
        ),
        known(
            "summed over the features",
            "def attend(W, V):\n    return W * V.sum(dim=-1)[..., None, :]\n",
            "The features of each value were added up, leaving one number per word. Sum over the *words*, and keep the features apart.",
            MIX,
        ),
        known(
            "summed over the queries",
            "def attend(W, V):\n    return torch.einsum('bqk,bkd->bkd', W, V)\n",
            "The shares were summed over the queries, giving one row for each key. Each query keeps its own mixture.",
            MIX,
        ),
        known(
            "elementwise product",
            "def attend(W, V):\n    return W * V\n",
            "Weights and values were multiplied cell by cell. Every output is a *sum over the words* of share times value.",
            MIX,
        ),
        known(
            "first sentence only",
            "def attend(W, V):\n    return W[0] @ V[0]\n",
            "The batch axis is gone: only the first sentence was mixed.",
            SHAPES,
            sizes,
        ),
        known(
            "first sentence's values for all",
            "def attend(W, V):\n    return W @ V[0]\n",
            "Sentence 1 was mixed from the values of sentence 0. Each sentence of the batch has its own.",
            SHAPES,
        ),
        known(
            "values added back",
            "def attend(W, V):\n    return W @ V + V\n",
            "The values were added to the mixture. That sum, the residual connection, comes in chapter 09 and outside of attention.",
            MIX,
        ),
        known(
            "cut off from the gradient",
            "def attend(W, V):\n    return W.detach() @ V.detach()\n",
            "The values are right, but no gradient flows back: .detach(), .data, no_grad or numpy cut the graph.",
            PARAMETERS,
        ),
        known(
            "always float32",
            "def attend(W, V):\n    return W.float() @ V.float()\n",
            "float64 went in and float32 came out. The result keeps the dtype of the input.",
            SHAPES,
        ),
        known(
            "only the last word",
            "def attend(W, V):\n    for k in range(V.shape[1]):\n        out = W[:, :, k, None] * V[:, None, k]\n    return out\n",
            "Only the last word's share arrived: each turn of the loop wrote over the one before. Add up instead.",
            MIX,
        ),
        known(
            "the first word left out",
            "def attend(W, V):\n    return W[..., 1:] @ V[:, 1:]\n",
            "The first word never entered the mixture: the sum runs over all words, from 0.",
            MIX,
        ),
        known(
            "the last word left out",
            "def attend(W, V):\n    return W[..., :-1] @ V[:, :-1]\n",
            "The last word never entered the mixture: the sum runs over all Tk words.",
            MIX,
        ),
        known(
            "the batch axis squeezed away",
            "def attend(W, V):\n    return (W @ V).squeeze()\n",
            "With one sentence the batch axis of size 1 vanished. squeeze() removes every axis of size 1; this one must stay.",
            SHAPES,
            sizes,
        ),
    ),
    variants=(
        right("at", "def attend(weights, values):\n    return weights @ values\n"),
        right("bmm", "def attend(W, V):\n    return torch.bmm(W, V)\n"),
        right("einsum", "def attend(W, V):\n    return torch.einsum('bqk,bkv->bqv', W, V)\n"),
        right("elementwise and sum", "def attend(W, V):\n    return (W[..., None] * V[:, None]).sum(dim=2)\n"),
        right(
            "loops",
            """
            def attend(W, V):
                out = []
                for weights, values in zip(W, V):
                    out.append(torch.stack([sum(share * value for share, value in zip(row, values)) for row in weights]))
                return torch.stack(out)
            """,
        ),
        right("transposed twice", "def attend(W, V):\n    return (V.mT @ W.mT).mT\n"),
        right("double inside", "def attend(W, V):\n    return (W.double() @ V.double()).to(V.dtype)\n"),
    ),
    hints=(
        "one output is a sum over the words; which axis of W and which of V run over the words?",
        "(B, Tq, Tk) times (B, Tk, dv) gives (B, Tq, dv): the Tk in the middle is summed away.",
        "for each query: add up share times value over the words. All at once, that is one matrix product.",
    ),
)

# ------------------------------------------------------------------------------------------------ 05.4 SelfAttention


class SelfAttention(nn.Module):
    """Queries, keys and values as three projections of x; roles are told by the names."""

    def __init__(self, d_model: int, d_k: int, d_v: int) -> None:
        super().__init__()
        self.query = nn.Linear(d_model, d_k, bias=False)
        self.key = nn.Linear(d_model, d_k, bias=False)
        self.value = nn.Linear(d_model, d_v, bias=False)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        result = attention.explicit_attention(self.query(x), self.key(x), self.value(x))
        return result.output, result.weights


def _projections(d_model: int, d_k: int, d_v: int) -> tuple[Role, ...]:
    return (
        Role("query", d_model, d_k, ("q", "wq", "query", "queries")),
        Role("key", d_model, d_k, ("k", "wk", "key", "keys")),
        Role("value", d_model, d_v, ("v", "wv", "value", "values")),
    )


def _self_case(
    g: torch.Generator,
    batch: int,
    length: int,
    widths: tuple[int, int, int],
    dtype: torch.dtype = torch.float32,
    scale: float = 1.0,
) -> Case:
    d_model = widths[0]
    weights = {role.name: normal(g, role.inputs, role.outputs, dtype=dtype) for role in _projections(*widths)}
    x = normal(g, batch, length, d_model, dtype=dtype)
    x[0] *= scale
    return Case((x,), construct=widths, weights=weights)


def _four_words_case(g: torch.Generator) -> Case:
    weights = {
        "query": torch.tensor([[1.0, 0.0, 1.0], [0.0, 1.0, 0.0]]),
        "key": torch.tensor([[0.0, 1.0, 0.0], [1.0, 0.0, 1.0]]),
        "value": torch.tensor([[1.0, 0.0, 2.0, 1.0], [0.0, 1.0, -1.0, 1.0]]),
    }
    return Case((EMBEDDINGS[None],), WORDS, construct=(2, 3, 4), weights=weights)


def _class(constructor: str, forward: str) -> str:
    """Source of a SelfAttention from the bodies of its two methods."""
    head = "class SelfAttention(nn.Module):\n    def __init__(self, d_model, d_k, d_v):\n        super().__init__()\n"
    body = "".join(f"        {line}\n" for line in dedent(constructor).strip().splitlines())
    steps = "".join(f"        {line}\n" for line in dedent(forward).strip().splitlines())
    return f"{head}{body}\n    def forward(self, x):\n{steps}"


_LAYERS = """
self.d_k = d_k
self.d_v = d_v
self.W_q = nn.Linear(d_model, d_k, bias=False)
self.W_k = nn.Linear(d_model, d_k, bias=False)
self.W_v = nn.Linear(d_model, d_v, bias=False)
"""


def _with_layers(forward: str) -> str:
    return _class(_LAYERS, forward)


SELF_EXERCISE = Exercise(
    id="self-attention",
    number="05.4",
    names=("SelfAttention",),
    visible_points=2,
    hidden_points=6,
    section=PARAMETERS,
    reference={"SelfAttention": SelfAttention},
    roles=_projections,
    forbidden=FUSED,
    probes=(
        Probe("four words, weights given", _four_words_case, hidden=False, laws=(PAIR_SUMS_TO_ONE,)),
        Probe("two sentences, d_model 6, d_k 5, d_v 7", lambda g: _self_case(g, 2, 4, (6, 5, 7)), hidden=False),
        Probe("other sizes", lambda g: _self_case(g, 3, 6, (8, 3, 4))),
        Probe("one sentence of two words", lambda g: _self_case(g, 1, 2, (4, 6, 5))),
        Probe("float64", lambda g: _self_case(g, 2, 4, (7, 4, 6), torch.float64)),
        Probe("large scores", lambda g: _self_case(g, 2, 5, (9, 4, 3), torch.float64, scale=30.0)),
        Probe(
            "gradients reach every projection",
            lambda g: _self_case(g, 2, 4, (6, 5, 7), torch.float64),
            also=GRADIENTS,
        ),
        Probe("the same in training", lambda g: _self_case(g, 2, 3, (5, 4, 8)), also=frozenset({"training"})),
        Probe("nothing else is touched", lambda g: _self_case(g, 1, 4, (8, 5, 6)), also=UNTOUCHED),
    ),
    misconceptions=(
        known(
            "one projection for queries and keys",
            _class(
                "self.d_k = d_k\nself.W_qk = nn.Linear(d_model, d_k, bias=False)\nself.W_v = nn.Linear(d_model, d_v, bias=False)",
                "q = k = self.W_qk(x)\nweights = torch.softmax(q @ k.transpose(-2, -1) / self.d_k ** 0.5, dim=-1)\nreturn weights @ self.W_v(x), weights",
            ),
            """Queries and keys come from one and the same projection, so the scores are symmetric: if a word finds another
            interesting, the other must find it so too. Asking and being found are two different jobs.""",
            PARAMETERS,
        ),
        known(
            "projections made in forward",
            _class(
                "self.d_model, self.d_k, self.d_v = d_model, d_k, d_v",
                """
                q = nn.Linear(self.d_model, self.d_k, bias=False)(x)
                k = nn.Linear(self.d_model, self.d_k, bias=False)(x)
                v = nn.Linear(self.d_model, self.d_v, bias=False)(x)
                weights = torch.softmax(q @ k.transpose(-2, -1) / self.d_k ** 0.5, dim=-1)
                return weights @ v, weights
                """,
            ),
            """0 parameters are registered, and each call gives another answer: the projections are made anew inside
            forward. Make them once, in the constructor, where an optimizer can find them.""",
            PARAMETERS,
        ),
        known(
            "plain tensors instead of parameters",
            _class(
                "self.d_k = d_k\nself.W_q = torch.randn(d_model, d_k)\nself.W_k = torch.randn(d_model, d_k)\nself.W_v = torch.randn(d_model, d_v)",
                "weights = torch.softmax((x @ self.W_q) @ (x @ self.W_k).transpose(-2, -1) / self.d_k ** 0.5, dim=-1)\nreturn weights @ (x @ self.W_v), weights",
            ),
            """0 parameters are registered: the matrices are plain tensors, so an optimizer would never see them and they
            would stay as random as they began. nn.Parameter or nn.Linear makes a tensor trainable.""",
            PARAMETERS,
        ),
        known(
            "projections kept in a plain list",
            _class(
                "self.d_k = d_k\nself.layers = [nn.Linear(d_model, d, bias=False) for d in (d_k, d_k, d_v)]",
                """
                q, k, v = (layer(x) for layer in self.layers)
                weights = torch.softmax(q @ k.transpose(-2, -1) / self.d_k ** 0.5, dim=-1)
                return weights @ v, weights
                """,
            ),
            "0 parameters are registered: a Python list hides its layers from the module. nn.ModuleList shows them.",
            PARAMETERS,
        ),
        known(
            "queries and keys exchanged",
            _with_layers(
                "q, k, v = self.W_k(x), self.W_q(x), self.W_v(x)\nweights = torch.softmax(q @ k.transpose(-2, -1) / self.d_k ** 0.5, dim=-1)\nreturn weights @ v, weights"
            ),
            "The projection named for the query makes your keys and the other way round, so rows and columns of the scores are exchanged.",
            PARAMETERS,
        ),
        known(
            "values not projected",
            _class(
                "self.d_k = d_k\nself.W_q = nn.Linear(d_model, d_k, bias=False)\nself.W_k = nn.Linear(d_model, d_k, bias=False)",
                "weights = torch.softmax(self.W_q(x) @ self.W_k(x).transpose(-2, -1) / self.d_k ** 0.5, dim=-1)\nreturn weights @ x, weights",
            ),
            """The words themselves were mixed: there is no projection to d_v. What a word *is found by* and what it *hands
            over* are different things; the value projection makes the second.""",
            PARAMETERS,
        ),
        known(
            "keys mixed instead of values",
            _with_layers(
                "q, k, v = self.W_q(x), self.W_k(x), self.W_v(x)\nweights = torch.softmax(q @ k.transpose(-2, -1) / self.d_k ** 0.5, dim=-1)\nreturn weights @ k, weights"
            ),
            "Your output is a mixture of the keys and has d_k numbers per word. Keys are for being found; the values are what is mixed.",
            MIX,
        ),
        known(
            "divided by the root of d_model",
            _with_layers(
                "q, k, v = self.W_q(x), self.W_k(x), self.W_v(x)\nweights = torch.softmax(q @ k.transpose(-2, -1) / x.shape[-1] ** 0.5, dim=-1)\nreturn weights @ v, weights"
            ),
            "The scores were divided by the root of d_model, the width of x. The dot product adds up d_k products, so its size grows with d_k.",
            WHY_DIVIDE,
        ),
        known(
            "divided by the root of d_v",
            _with_layers(
                "q, k, v = self.W_q(x), self.W_k(x), self.W_v(x)\nweights = torch.softmax(q @ k.transpose(-2, -1) / self.d_v ** 0.5, dim=-1)\nreturn weights @ v, weights"
            ),
            "The scores were divided by the root of d_v. Values take no part in a score; the dot product adds up d_k products.",
            WHY_DIVIDE,
        ),
        known(
            "divided by d_k",
            _with_layers(
                "q, k, v = self.W_q(x), self.W_k(x), self.W_v(x)\nweights = torch.softmax(q @ k.transpose(-2, -1) / self.d_k, dim=-1)\nreturn weights @ v, weights"
            ),
            "Your weights are too flat: the scores were divided by d_k itself instead of its square root.",
            WHY_DIVIDE,
        ),
        known(
            "no scaling",
            _with_layers(
                "q, k, v = self.W_q(x), self.W_k(x), self.W_v(x)\nweights = torch.softmax(q @ k.transpose(-2, -1), dim=-1)\nreturn weights @ v, weights"
            ),
            "Your weights are too sharp: the division by the square root of d_k is missing.",
            WHY_DIVIDE,
        ),
        known(
            "softmax over the queries",
            _with_layers(
                "q, k, v = self.W_q(x), self.W_k(x), self.W_v(x)\nweights = torch.softmax(q @ k.transpose(-2, -1) / self.d_k ** 0.5, dim=-2)\nreturn weights @ v, weights"
            ),
            "Each *query* must share out 1 among the keys. Here every key shares itself out among the queries.",
            WHICH_AXIS,
            columns,
        ),
        known(
            "softmax over the batch",
            _with_layers(
                "q, k, v = self.W_q(x), self.W_k(x), self.W_v(x)\nweights = torch.softmax(q @ k.transpose(-2, -1) / self.d_k ** 0.5, dim=0)\nreturn weights @ v, weights"
            ),
            "The sentences of the batch share 1 among themselves: axis 0 is the batch.",
            WHICH_AXIS,
            ragged,
        ),
        known(
            "scores returned instead of weights",
            _with_layers(
                "q, k, v = self.W_q(x), self.W_k(x), self.W_v(x)\nscores = q @ k.transpose(-2, -1) / self.d_k ** 0.5\nreturn torch.softmax(scores, dim=-1) @ v, scores"
            ),
            "The output is right, but the second result holds the scores before the softmax. Return the shares, so they can be drawn as a map.",
            WHICH_AXIS,
            ragged,
        ),
        known(
            "scores mixed without softmax",
            _with_layers(
                "q, k, v = self.W_q(x), self.W_k(x), self.W_v(x)\nweights = q @ k.transpose(-2, -1) / self.d_k ** 0.5\nreturn weights @ v, weights"
            ),
            "The values were mixed by the scores themselves. Scores are not shares: turn each row into shares first.",
            WHICH_AXIS,
            ragged,
        ),
        known(
            "a look at the future forbidden",
            _with_layers(
                """
                q, k, v = self.W_q(x), self.W_k(x), self.W_v(x)
                scores = q @ k.transpose(-2, -1) / self.d_k ** 0.5
                hidden = torch.ones(scores.shape[-2:], dtype=torch.bool, device=x.device).triu(1)
                weights = torch.softmax(scores.masked_fill(hidden, float("-inf")), dim=-1)
                return weights @ v, weights
                """
            ),
            "Later words get weight 0: that is the causal mask of chapter 08. Here every word may look at the whole sentence.",
            PARAMETERS,
        ),
        known(
            "only the output returned",
            _with_layers(
                "q, k, v = self.W_q(x), self.W_k(x), self.W_v(x)\nweights = torch.softmax(q @ k.transpose(-2, -1) / self.d_k ** 0.5, dim=-1)\nreturn weights @ v"
            ),
            "One tensor came back. Two are wanted: the output and then the weights.",
            PARAMETERS,
        ),
        known(
            "weights first",
            _with_layers(
                "q, k, v = self.W_q(x), self.W_k(x), self.W_v(x)\nweights = torch.softmax(q @ k.transpose(-2, -1) / self.d_k ** 0.5, dim=-1)\nreturn weights, weights @ v"
            ),
            "The two results are exchanged: first the output, then the weights.",
            PARAMETERS,
        ),
        known(
            "x added to the output",
            _class(
                _LAYERS + "self.out = nn.Linear(d_v, d_model, bias=False)",
                "q, k, v = self.W_q(x), self.W_k(x), self.W_v(x)\nweights = torch.softmax(q @ k.transpose(-2, -1) / self.d_k ** 0.5, dim=-1)\nreturn x + self.out(weights @ v), weights",
            ),
            "The output was projected back and added to x. An output projection comes in chapter 06 and the residual in chapter 09; here the mixture of values is the result.",
            PARAMETERS,
        ),
        known(
            "dropout that never sleeps",
            _with_layers(
                "q, k, v = self.W_q(x), self.W_k(x), self.W_v(x)\nweights = torch.softmax(q @ k.transpose(-2, -1) / self.d_k ** 0.5, dim=-1)\nweights = F.dropout(weights, 0.5)\nreturn weights @ v, weights"
            ),
            "Some weights are 0 and the others doubled, in evaluation too: F.dropout is active unless it is told that training is off. This exercise has no dropout.",
            PARAMETERS,
        ),
        known(
            "dropout in training",
            _class(
                _LAYERS + "self.drop = nn.Dropout(0.5)",
                "q, k, v = self.W_q(x), self.W_k(x), self.W_v(x)\nweights = self.drop(torch.softmax(q @ k.transpose(-2, -1) / self.d_k ** 0.5, dim=-1))\nreturn weights @ v, weights",
            ),
            "Evaluation is right, training is not: a dropout layer is at work. This exercise has none.",
            PARAMETERS,
        ),
        known(
            "frozen projections",
            _class(
                _LAYERS + "for parameter in self.parameters():\n    parameter.requires_grad = False",
                "q, k, v = self.W_q(x), self.W_k(x), self.W_v(x)\nweights = torch.softmax(q @ k.transpose(-2, -1) / self.d_k ** 0.5, dim=-1)\nreturn weights @ v, weights",
            ),
            "The values are right, but no gradient reaches the projections: they are frozen, so nothing can be learned.",
            PARAMETERS,
        ),
        known(
            "weights cut off from the gradient",
            _with_layers(
                "q, k, v = self.W_q(x), self.W_k(x), self.W_v(x)\nweights = torch.softmax(q @ k.transpose(-2, -1) / self.d_k ** 0.5, dim=-1).detach()\nreturn weights @ v, weights"
            ),
            "The values are right, but the weights were detached: no gradient reaches the query and key projections.",
            PARAMETERS,
        ),
        known(
            "exponential without care",
            _with_layers(
                "q, k, v = self.W_q(x), self.W_k(x), self.W_v(x)\nweights = torch.exp(q @ k.transpose(-2, -1) / self.d_k ** 0.5)\nweights = weights / weights.sum(dim=-1, keepdim=True)\nreturn weights @ v, weights"
            ),
            "With large scores you return NaN: the exponential overflows. Subtract the largest score of each row first, or use chapter 04's softmax.",
            STABLE,
        ),
        known(
            "a value projection that nobody uses",
            _with_layers(
                "q, k = self.W_q(x), self.W_k(x)\nweights = torch.softmax(q @ k.transpose(-2, -1) / self.d_k ** 0.5, dim=-1)\nreturn weights @ x, weights"
            ),
            "You mixed the words themselves, so the output has d_model numbers per word. Mix what the value projection makes of them.",
            MIX,
        ),
        known(
            "queries with themselves",
            _with_layers(
                "q, k, v = self.W_q(x), self.W_k(x), self.W_v(x)\nweights = torch.softmax(q @ q.transpose(-2, -1) / self.d_k ** 0.5, dim=-1)\nreturn weights @ v, weights"
            ),
            "The queries were compared with themselves: the keys are made and never used.",
            PARAMETERS,
        ),
        known(
            "divided by the root of the number of words",
            _with_layers(
                "q, k, v = self.W_q(x), self.W_k(x), self.W_v(x)\nweights = torch.softmax(q @ k.transpose(-2, -1) / x.shape[1] ** 0.5, dim=-1)\nreturn weights @ v, weights"
            ),
            "The scores were divided by the root of the number of words. What makes them large is the width d_k of a query.",
            WHY_DIVIDE,
        ),
        known(
            "divided after the softmax",
            _with_layers(
                "q, k, v = self.W_q(x), self.W_k(x), self.W_v(x)\nweights = torch.softmax(q @ k.transpose(-2, -1), dim=-1) / self.d_k ** 0.5\nreturn weights @ v, weights"
            ),
            "The division came after the softmax, so the shares no longer sum to 1. It is the *scores* that are too large.",
            WHY_DIVIDE,
            ragged,
        ),
        known(
            "softmax over the queries and no scaling",
            _with_layers(
                "q, k, v = self.W_q(x), self.W_k(x), self.W_v(x)\nweights = torch.softmax(q @ k.transpose(-2, -1), dim=-2)\nreturn weights @ v, weights"
            ),
            "Two things at once: every key shares itself out among the queries, and the division by the square root of d_k is missing.",
            WHICH_AXIS,
            columns,
        ),
        known(
            "the batch axis squeezed away",
            _with_layers(
                "q, k, v = self.W_q(x), self.W_k(x), self.W_v(x)\nweights = torch.softmax(q @ k.transpose(-2, -1) / self.d_k ** 0.5, dim=-1)\nreturn (weights @ v).squeeze(), weights.squeeze()"
            ),
            "With one sentence the batch axis of size 1 vanished. squeeze() removes every axis of size 1; this one must stay.",
            SHAPES,
        ),
    ),
    variants=(
        right(
            "three Linears",
            _with_layers(
                "q, k, v = self.W_q(x), self.W_k(x), self.W_v(x)\nweights = torch.softmax(q @ k.transpose(-2, -1) / self.d_k ** 0.5, dim=-1)\nreturn weights @ v, weights"
            ),
        ),
        right(
            "biases, other names, another order",
            _class(
                "self.values = nn.Linear(d_model, d_v)\nself.toKey = nn.Linear(d_model, d_k)\nself.toQuery = nn.Linear(d_model, d_k)",
                "q, k = self.toQuery(x), self.toKey(x)\nw = F.softmax(torch.einsum('btd,bsd->bts', q, k) / math.sqrt(q.size(-1)), -1)\nreturn torch.einsum('bts,bsv->btv', w, self.values(x)), w",
            ),
        ),
        right(
            "one fused Linear",
            _class(
                "self.sizes = (d_k, d_k, d_v)\nself.qkv = nn.Linear(d_model, 2 * d_k + d_v)",
                "q, k, v = self.qkv(x).split(self.sizes, dim=-1)\nw = (q @ k.mT * q.shape[-1] ** -0.5).softmax(-1)\nreturn [w @ v, w]",
            ),
        ),
        right(
            "bare parameters",
            _class(
                "self.A = nn.Parameter(torch.randn(d_model, d_k))\nself.B = nn.Parameter(torch.randn(d_model, d_k))\nself.C = nn.Parameter(torch.randn(d_v, d_model))",
                "q, k, v = x @ self.A, x @ self.B, x @ self.C.T\nw = torch.softmax(q @ k.mT / q.shape[-1] ** 0.5, -1)\nreturn w @ v, w",
            ),
        ),
        right(
            "ModuleDict and a mask nobody asked for",
            "class SelfAttention(nn.Module):\n    def __init__(self, d_model, d_k, d_v):\n        super().__init__()\n"
            "        self.maps = nn.ModuleDict({'v': nn.Linear(d_model, d_v), 'q': nn.Linear(d_model, d_k), 'k': nn.Linear(d_model, d_k)})\n"
            "    def forward(self, x, mask=None):\n        q, k, v = (self.maps[name](x) for name in 'qkv')\n"
            "        scores = q @ k.mT / math.sqrt(k.shape[-1])\n        if mask is not None:\n            scores = scores.masked_fill(~mask, float('-inf'))\n"
            "        w = scores.softmax(-1)\n        return w @ v, w\n",
        ),
        right(
            "keys and values fused",
            _class(
                "self.d_k = d_k\nself.kv = nn.Linear(d_model, d_k + d_v, bias=False)\nself.q = nn.Linear(d_model, d_k, bias=False)",
                "k, v = self.kv(x)[..., :self.d_k], self.kv(x)[..., self.d_k:]\nw = torch.softmax(self.q(x) @ k.mT / self.d_k ** 0.5, -1)\nreturn w @ v, w",
            ),
        ),
        right(
            "unnamed list, keys first",
            _class(
                "self.layers = nn.ModuleList([nn.Linear(d_model, d_k), nn.Linear(d_model, d_k), nn.Linear(d_model, d_v)])",
                "k, q, v = [layer(x) for layer in self.layers]\nw = torch.softmax(q @ k.mT / q.shape[-1] ** 0.5, -1)\nreturn w @ v, w",
            ),
        ),
        right(
            "roles said in the class",
            "class SelfAttention(nn.Module):\n    roles = {'query': 'first.weight', 'key': 'second.weight', 'value': 'third.weight'}\n"
            "    def __init__(self, d_model, d_k, d_v):\n        super().__init__()\n        self.second = nn.Linear(d_model, d_k)\n"
            "        self.first = nn.Linear(d_model, d_k)\n        self.third = nn.Linear(d_model, d_v)\n"
            "    def forward(self, x):\n        q, k = self.first(x), self.second(x)\n        w = torch.softmax(q @ k.mT / q.shape[-1] ** 0.5, -1)\n"
            "        return w @ self.third(x), w\n",
        ),
        right(
            "lazy layers",
            _class(
                "self.q, self.k, self.v = nn.LazyLinear(d_k), nn.LazyLinear(d_k), nn.LazyLinear(d_v)",
                "q, k, v = self.q(x), self.k(x), self.v(x)\nw = torch.softmax(q @ k.mT / q.shape[-1] ** 0.5, -1)\nreturn w @ v, w",
            ),
        ),
    ),
    hints=(
        "what must exist before the first sentence arrives, and what is computed from each sentence?",
        "x (B, T, D) gives q and k of (B, T, d_k) and v of (B, T, d_v); weights are (B, T, T), the output (B, T, d_v).",
        "constructor: three projections. forward: q, k, v from x; weights from q and k as in 05.2; output from weights and v as in 05.3; return both.",
    ),
)

# ------------------------------------------------------------------------------------------------ 05.5 soft_lookup


def soft_lookup(q: Tensor, keys: Tensor, values: Tensor, beta: float) -> Tensor:
    """A dictionary that returns a mixture of its values, by how well each key fits the query."""
    return torch.softmax(beta * (keys @ q), dim=-1) @ values


def _apart(g: torch.Generator, beta: float) -> Case:
    """Keys whose fits to the query lie apart, so that a large beta singles one out."""
    q = normal(g, 5)
    fits = (torch.arange(6.0) + 0.1 * torch.rand(6, generator=g))[torch.randperm(6, generator=g)]
    keys = normal(g, 6, 5)
    keys = keys + ((fits - keys @ q) / q.dot(q))[:, None] * q
    return Case((q, keys, normal(g, 6, 7), beta))


def _entries(g: torch.Generator, n: int, d: int, d_v: int, beta: float, dtype: torch.dtype = torch.float32) -> Case:
    return Case((normal(g, d, dtype=dtype), normal(g, n, d, dtype=dtype), normal(g, n, d_v, dtype=dtype), beta))


LOOKUP_EXERCISE = Exercise(
    id="soft-lookup",
    number="05.5",
    names=("soft_lookup",),
    visible_points=1,
    hidden_points=2,
    section=LOOKUP,
    reference={"soft_lookup": soft_lookup},
    probes=(
        Probe(
            "three entries, beta 2",
            lambda g: Case(
                (
                    torch.tensor([1.0, 0.5]),
                    torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]),
                    torch.tensor([[10.0, 0.0, 1.0, 5.0], [0.0, 20.0, 1.0, 5.0], [30.0, 30.0, 1.0, 5.0]]),
                    2.0,
                )
            ),
            hidden=False,
        ),
        Probe("six entries, beta 0.7", lambda g: _entries(g, 6, 5, 7, 0.7), hidden=False),
        Probe("other sizes", lambda g: _entries(g, 4, 6, 3, 1.3)),
        Probe("beta 0 gives the mean", lambda g: _entries(g, 6, 5, 7, 0.0)),
        Probe("a large beta is a dictionary", lambda g: _apart(g, 1000.0)),
        Probe("one entry", lambda g: _entries(g, 1, 5, 7, 0.9)),
        Probe("float64", lambda g: _entries(g, 6, 5, 7, 1.1, torch.float64)),
        Probe("gradients", lambda g: _entries(g, 6, 5, 7, 0.8, torch.float64), also=GRADIENTS),
        Probe("nothing else is touched", lambda g: _entries(g, 5, 5, 5, 0.6), also=UNTOUCHED),
    ),
    misconceptions=(
        known(
            "beta after the softmax",
            "def soft_lookup(q, keys, values, beta):\n    return beta * torch.softmax(keys @ q, dim=-1) @ values\n",
            "beta only made the answer longer, not the choice sharper. It belongs to the *scores*, before the softmax.",
            LOOKUP,
            first,
        ),
        known(
            "beta forgotten",
            "def soft_lookup(q, keys, values, beta):\n    return torch.softmax(keys @ q, dim=-1) @ values\n",
            "Your answer is the one for beta = 1, whatever beta is. (Adding beta to every score changes nothing: only differences count.)",
            LOOKUP,
            first,
        ),
        known(
            "divided by beta",
            "def soft_lookup(q, keys, values, beta):\n    return torch.softmax((keys @ q) / beta, dim=-1) @ values\n",
            "You divided by beta. Here beta is a sharpness, not a temperature: large means choosy, 0 means that all count alike.",
            LOOKUP,
            first,
        ),
        known(
            "only the best entry",
            "def soft_lookup(q, keys, values, beta):\n    return values[torch.argmax(keys @ q)]\n",
            "The value of the best key came back alone: a hard dictionary. Its gradient is 0 nearly everywhere, so no query could ever be learned. Mix all values.",
            LOOKUP,
            first,
        ),
        known(
            "scaled by the root of d as well",
            "def soft_lookup(q, keys, values, beta):\n    return torch.softmax(beta * (keys @ q) / q.shape[-1] ** 0.5, dim=-1) @ values\n",
            "The scores were divided by the root of d as well. Here beta alone sets the scale; attention is the case beta = 1/root of d_k.",
            LOOKUP,
        ),
        known(
            "keys returned",
            "def soft_lookup(q, keys, values, beta):\n    return torch.softmax(beta * (keys @ q), dim=-1) @ keys\n",
            "You mixed the keys. A lookup finds by key and returns the *value*.",
            LOOKUP,
            sizes,
        ),
        known(
            "weights returned",
            "def soft_lookup(q, keys, values, beta):\n    return torch.softmax(beta * (keys @ q), dim=-1)\n",
            "These are the shares of the entries. The last step is missing: mix the values in these shares.",
            LOOKUP,
            sizes,
        ),
        known(
            "softmax over the features",
            "def soft_lookup(q, keys, values, beta):\n    return torch.softmax(beta * keys * q, dim=-1).sum(-1) @ values\n",
            "The softmax ran over the d features of a key. The *entries* compete with each other, one score each.",
            LOOKUP,
        ),
        known(
            "no softmax",
            "def soft_lookup(q, keys, values, beta):\n    return (beta * (keys @ q)) @ values\n",
            "The values were weighted by the scores themselves, which do not sum to 1.",
            LOOKUP,
            first,
        ),
        known(
            "divided by the plain sum",
            "def soft_lookup(q, keys, values, beta):\n    scores = beta * (keys @ q)\n    return (scores / scores.sum()) @ values\n",
            "The scores were divided by their plain sum, so beta cancels out and negative scores give negative shares.",
            LOOKUP,
        ),
        known(
            "distance instead of dot product",
            "def soft_lookup(q, keys, values, beta):\n    return torch.softmax(-beta * (keys - q).pow(2).sum(-1), dim=-1) @ values\n",
            "The keys were compared by their squared distance to the query. That is a fine lookup too, but not this one: here the score is the dot product.",
            LOOKUP,
        ),
        known(
            "cosine instead of dot product",
            "def soft_lookup(q, keys, values, beta):\n    return torch.softmax(beta * F.cosine_similarity(keys, q[None], dim=-1), dim=-1) @ values\n",
            "The keys were compared by cosine, so a long key cannot call louder. Here the score is the plain dot product.",
            LOOKUP,
        ),
        known(
            "exponential without care",
            "def soft_lookup(q, keys, values, beta):\n    w = torch.exp(beta * (keys @ q))\n    return (w / w.sum()) @ values\n",
            "For a large beta you return NaN: the exponential overflows. Subtract the largest score first, or use chapter 04's softmax.",
            STABLE,
        ),
        known(
            "divided by the number of entries",
            "def soft_lookup(q, keys, values, beta):\n    return torch.softmax(beta * (keys @ q), dim=-1) @ values / len(keys)\n",
            "The mixture was divided by the number of entries. The shares already sum to 1.",
            LOOKUP,
            first,
        ),
        known(
            "cut off from the gradient",
            "def soft_lookup(q, keys, values, beta):\n    return torch.softmax(beta * (keys @ q).detach(), dim=-1) @ values\n",
            "The values are right, but no gradient reaches the query and the keys: something cut the graph on the way.",
            PARAMETERS,
        ),
        known(
            "always float32",
            "def soft_lookup(q, keys, values, beta):\n    return torch.softmax(beta * (keys.float() @ q.float()), dim=-1) @ values.float()\n",
            "float64 went in and float32 came out. The result keeps the dtype of the input.",
            SHAPES,
        ),
        known(
            "the worst key wins",
            "def soft_lookup(q, keys, values, beta):\n    return torch.softmax(-beta * (keys @ q), dim=-1) @ values\n",
            "The key that fits *worst* got the largest share: the sign of the scores is turned. A large dot product is a good fit.",
            LOOKUP,
            first,
        ),
        known(
            "beta squared",
            "def soft_lookup(q, keys, values, beta):\n    return torch.softmax(beta * ((beta * keys) @ q), dim=-1) @ values\n",
            "beta entered twice: your answer is the one for beta squared.",
            LOOKUP,
            first,
        ),
    ),
    variants=(
        right(
            "at",
            "def soft_lookup(query, k, v, sharpness):\n    return torch.softmax(sharpness * (k @ query), dim=0) @ v\n",
        ),
        right(
            "query scaled",
            "def soft_lookup(q, keys, values, beta):\n    return values.T @ F.softmax(keys @ (beta * q), dim=-1)\n",
        ),
        right(
            "einsum",
            "def soft_lookup(q, keys, values, beta):\n    w = (beta * torch.einsum('d,nd->n', q, keys)).softmax(0)\n    return torch.einsum('n,nv->v', w, values)\n",
        ),
        right(
            "loops",
            """
            def soft_lookup(q, keys, values, beta):
                scores = [beta * sum(a * b for a, b in zip(q, key)) for key in keys]
                top = max(scores)
                e = [torch.exp(score - top) for score in scores]
                return sum(x / sum(e) * value for x, value in zip(e, values))
            """,
        ),
        right(
            "double inside",
            "def soft_lookup(q, keys, values, beta):\n    w = torch.softmax(beta * (keys.double() @ q.double()), -1)\n    return (w @ values.double()).to(values.dtype)\n",
        ),
        right(
            "row vector",
            "def soft_lookup(q, keys, values, beta):\n    return (torch.softmax(beta * q[None] @ keys.T, dim=-1) @ values)[0]\n",
        ),
    ),
    hints=(
        "what would a very large beta do to the shares, and what would beta = 0 do?",
        "keys (n, d) with q (d,) gives n scores; n shares with values (n, dv) give (dv,).",
        "score of each key: dot product with q, times beta; softmax over the entries; mix the values.",
    ),
)

# ------------------------------------------------------------------------------------------------ 05.6 equivariance_gap


def equivariance_gap(f, x: Tensor, perm: Tensor) -> float:
    """How far f(permuted x) is from permuted f(x): the largest absolute difference."""
    permuted, plain = f(x[..., perm, :]), f(x)
    permuted, plain = (y[0] if isinstance(y, tuple) else y for y in (permuted, plain))
    return (permuted - plain[..., perm, :]).abs().max().item()


CYCLE = torch.tensor([2, 0, 3, 1])  # not its own inverse


def _attention_without_order(g: torch.Generator, d_model: int):
    query, key, value = (normal(g, d_model, d_model) for _ in range(3))

    def f(x: Tensor) -> Tensor:
        return attention.explicit_attention(x @ query, x @ key, x @ value).output

    return f


def _position_aware(table: Tensor):
    def f(x: Tensor) -> Tensor:
        return x + table[: x.shape[-2], None]

    return f


def _running_total(x: Tensor) -> Tensor:
    return x.cumsum(dim=-2)


def _running_total_and_more(x: Tensor) -> tuple[Tensor, Tensor]:
    return x.cumsum(dim=-2), x


def _moved(g: torch.Generator, length: int) -> Tensor:
    """A permutation that is not its own inverse."""
    while True:
        perm = torch.randperm(length, generator=g)
        if not torch.equal(perm[perm], torch.arange(length)):
            return perm


def _one_sided(g: torch.Generator, sign: float, dtype: torch.dtype = torch.float32) -> Case:
    """Positions of which one stands far out, moved so that the largest gap has the given sign."""
    table = torch.cat([torch.rand(4, generator=g), torch.tensor([9.0])])
    perm = torch.tensor([3, 4, 1, 0, 2])  # the far one comes to place 1: 9 less its number is below 9 less nothing
    return Case((_position_aware((sign * table).to(dtype)), normal(g, 2, 5, 6, dtype=dtype), perm))


def _gap_case(g: torch.Generator, f, batch: int, length: int, d_model: int) -> Case:
    x = normal(g, batch, length, d_model)
    x[0] *= 0.1 if batch > 1 else 1.0  # so that the largest gap never lies in the first sentence alone
    return Case((f, x, _moved(g, length)))


GAP_EXERCISE = Exercise(
    id="equivariance-gap",
    number="05.6",
    names=("equivariance_gap",),
    visible_points=1,
    hidden_points=3,
    section=ORDER,
    reference={"equivariance_gap": equivariance_gap},
    probes=(
        Probe(
            "attention does not know the order",
            lambda g: Case((_attention_without_order(g, 6), normal(g, 2, 4, 6), CYCLE)),
            hidden=False,
        ),
        Probe(
            "a function that adds a number to each position",
            lambda g: Case((_position_aware(torch.tensor([0.0, 1.0, 2.0, 9.0])), EMBEDDINGS[None], CYCLE)),
            hidden=False,
        ),
        Probe("other sizes", lambda g: _gap_case(g, _running_total, 3, 5, 7)),
        Probe("more sentences than words", lambda g: _gap_case(g, _running_total, 5, 4, 6)),
        Probe("f returns a tuple", lambda g: _gap_case(g, _running_total_and_more, 2, 6, 5)),
        Probe("one sentence, nothing moved", lambda g: Case((_running_total, normal(g, 1, 4, 3), torch.arange(4)))),
        Probe("the largest gap is negative", lambda g: _one_sided(g, -1.0)),
        Probe("float64", lambda g: _one_sided(g, 1.0, torch.float64)),
        Probe("nothing else is touched", lambda g: _gap_case(g, _running_total, 2, 5, 4), also=UNTOUCHED),
    ),
    misconceptions=(
        known(
            "compared without permuting the outputs",
            "def equivariance_gap(f, x, perm):\n    a, b = f(x), f(x[..., perm, :])\n    a, b = (y[0] if isinstance(y, tuple) else y for y in (a, b))\n    return (a - b).abs().max().item()\n",
            """That is a gap for a *correct* attention: the two results hold the same rows in another order. Permute the
            outputs as well before comparing; that is what equivariance means.""",
            ORDER,
            lambda evidence: f"Your gap is {number(evidence.got)}.",
        ),
        known(
            "only the outputs permuted",
            "def equivariance_gap(f, x, perm):\n    a = f(x)\n    a = a[0] if isinstance(a, tuple) else a\n    return (a - a[..., perm, :]).abs().max().item()\n",
            "f was asked only about the words in their own order. Ask it about the permuted words too, and compare with the permuted answer.",
            ORDER,
            lambda evidence: f"Your gap is {number(evidence.got)}.",
        ),
        known(
            "permuted the wrong way back",
            "def equivariance_gap(f, x, perm):\n    a, b = f(x), f(x[..., perm, :])\n    a, b = (y[0] if isinstance(y, tuple) else y for y in (a, b))\n    return (a - b[..., perm, :]).abs().max().item()\n",
            """The rows were brought back the wrong way round. Permuting again does not undo a permutation, unless it only swaps
            pairs; its inverse does, or permuting the *other* result the same way.""",
            ORDER,
            lambda evidence: f"Your gap is {number(evidence.got)}.",
        ),
        known(
            "features permuted",
            "def equivariance_gap(f, x, perm):\n    a, b = f(x), f(x[..., perm])\n    a, b = (y[0] if isinstance(y, tuple) else y for y in (a, b))\n    return (a[..., perm] - b).abs().max().item()\n",
            "The *features* were permuted: the words lie along the second-to-last axis.",
            SHAPES,
        ),
        known(
            "sentences permuted",
            "def equivariance_gap(f, x, perm):\n    a, b = f(x), f(x[perm])\n    a, b = (y[0] if isinstance(y, tuple) else y for y in (a, b))\n    return (a[perm] - b).abs().max().item()\n",
            "The *sentences* of the batch were permuted: axis 0 is the batch, the words lie along the second-to-last axis.",
            SHAPES,
        ),
        known(
            "mean instead of largest",
            "def equivariance_gap(f, x, perm):\n    a, b = f(x), f(x[..., perm, :])\n    a, b = (y[0] if isinstance(y, tuple) else y for y in (a, b))\n    return (a[..., perm, :] - b).abs().mean().item()\n",
            "You returned the mean difference. The largest one is wanted: one wrong row among many must not be averaged away.",
            ORDER,
            lambda evidence: f"Your gap is {number(evidence.got)}.",
        ),
        known(
            "sum instead of largest",
            "def equivariance_gap(f, x, perm):\n    a, b = f(x), f(x[..., perm, :])\n    a, b = (y[0] if isinstance(y, tuple) else y for y in (a, b))\n    return (a[..., perm, :] - b).abs().sum().item()\n",
            "You returned the sum of all differences, which grows with the sentence. The largest one is wanted.",
            ORDER,
            lambda evidence: f"Your gap is {number(evidence.got)}.",
        ),
        known(
            "norm instead of largest",
            "def equivariance_gap(f, x, perm):\n    a, b = f(x), f(x[..., perm, :])\n    a, b = (y[0] if isinstance(y, tuple) else y for y in (a, b))\n    return torch.linalg.vector_norm(a[..., perm, :] - b).item()\n",
            "You returned the length of the difference, which grows with the sentence. The largest absolute difference is wanted.",
            ORDER,
            lambda evidence: f"Your gap is {number(evidence.got)}.",
        ),
        known(
            "sign kept",
            "def equivariance_gap(f, x, perm):\n    a, b = f(x), f(x[..., perm, :])\n    a, b = (y[0] if isinstance(y, tuple) else y for y in (a, b))\n    return (a[..., perm, :] - b).max().item()\n",
            "The largest *signed* difference came back, so a large negative one went unseen. Take absolute values first.",
            ORDER,
            lambda evidence: f"Your gap is {number(evidence.got)}.",
        ),
        known(
            "always zero",
            "def equivariance_gap(f, x, perm):\n    a, b = f(x), f(x)\n    a, b = (y[0] if isinstance(y, tuple) else y for y in (a, b))\n    return (a - b).abs().max().item()\n",
            "Your gap is always 0: f was not asked, or asked twice about the same words. A test that cannot fail tests nothing.",
            ORDER,
        ),
        known(
            "x left out of the permutation",
            "def equivariance_gap(f, x, perm):\n    y = f(x[..., perm, :])\n    y = y[0] if isinstance(y, tuple) else y\n    return (y - x[..., perm, :]).abs().max().item()\n",
            "You compared f's answer with its own input. Compare two answers of f: for the permuted words, and for the words in their own order.",
            ORDER,
            lambda evidence: f"Your gap is {number(evidence.got)}.",
        ),
        known(
            "a tensor instead of a number",
            "def equivariance_gap(f, x, perm):\n    a, b = f(x), f(x[..., perm, :])\n    a, b = (y[0] if isinstance(y, tuple) else y for y in (a, b))\n    return (a[..., perm, :] - b).abs().max()\n",
            "The gap is a tensor without axes; a plain Python number is wanted. A tensor of one number can hand it over.",
            ORDER,
        ),
        known(
            "yes or no",
            "def equivariance_gap(f, x, perm):\n    a, b = f(x), f(x[..., perm, :])\n    a, b = (y[0] if isinstance(y, tuple) else y for y in (a, b))\n    return torch.allclose(a[..., perm, :], b, atol=1e-5)\n",
            "You returned True or False. A size is wanted: how large the largest difference is.",
            ORDER,
        ),
        known(
            "tuple not unpacked",
            "def equivariance_gap(f, x, perm):\n    return (f(x)[..., perm, :] - f(x[..., perm, :])).abs().max().item()\n",
            "Your code stops when f returns a tuple, as SelfAttention does. Then its first item counts.",
            ORDER,
        ),
        known(
            "first item taken always",
            "def equivariance_gap(f, x, perm):\n    return (f(x)[0][..., perm, :] - f(x[..., perm, :])[0]).abs().max().item()\n",
            "When f returns a plain tensor, [0] picks its first sentence. Take the first item only when f returns a tuple.",
            ORDER,
        ),
        known(
            "squared difference",
            "def equivariance_gap(f, x, perm):\n    a, b = f(x), f(x[..., perm, :])\n    a, b = (y[0] if isinstance(y, tuple) else y for y in (a, b))\n    return (a[..., perm, :] - b).pow(2).max().item()\n",
            "The differences were squared, so your gap is the square of the right one. Absolute values keep the scale.",
            ORDER,
            lambda evidence: f"Your gap is {number(evidence.got)}.",
        ),
        known(
            "only the first sentence",
            "def equivariance_gap(f, x, perm):\n    a, b = f(x), f(x[..., perm, :])\n    a, b = (y[0] if isinstance(y, tuple) else y for y in (a, b))\n    return (a[0][perm] - b[0]).abs().max().item()\n",
            "Only the first sentence of the batch was compared; the largest gap may lie in another.",
            SHAPES,
        ),
        known(
            "inverse permutation on both sides",
            "def equivariance_gap(f, x, perm):\n    back = torch.argsort(perm)\n    a, b = f(x), f(x[..., back, :])\n    a, b = (y[0] if isinstance(y, tuple) else y for y in (a, b))\n    return (a[..., back, :] - b).abs().max().item()\n",
            "Both sides were moved by the inverse of perm. For some functions that gives the same gap, for others not: use perm itself.",
            ORDER,
        ),
    ),
    variants=(
        right(
            "permute the answer",
            "def equivariance_gap(f, x, perm):\n    def run(z):\n        y = f(z)\n        return y[0] if isinstance(y, (tuple, list)) else y\n    return float((run(x)[:, perm] - run(x[:, perm])).abs().max())\n",
        ),
        right(
            "undo the permutation",
            "def equivariance_gap(f, x, perm):\n    take = lambda y: y[0] if isinstance(y, tuple) else y\n    a, b = take(f(x)), take(f(x.index_select(-2, perm)))\n    return torch.amax(torch.abs(a - b.index_select(-2, torch.argsort(perm)))).item()\n",
        ),
        right(
            "gather",
            """
            def equivariance_gap(f, x, perm):
                def run(z):
                    y = f(z)
                    return y if torch.is_tensor(y) else y[0]
                def move(z):
                    return torch.gather(z, -2, perm[:, None].expand_as(z))
                return (move(run(x)) - run(move(x))).abs().max().item()
            """,
        ),
        right(
            "loops",
            """
            def equivariance_gap(f, x, perm):
                plain, moved = f(x), f(torch.stack([x[..., p, :] for p in perm.tolist()], dim=-2))
                if isinstance(plain, tuple):
                    plain, moved = plain[0], moved[0]
                worst = 0.0
                for i, p in enumerate(perm.tolist()):
                    worst = max(worst, (plain[..., p, :] - moved[..., i, :]).abs().max().item())
                return worst
            """,
        ),
        right(
            "permutation matrix",
            """
            def equivariance_gap(f, x, perm):
                P = torch.eye(len(perm), dtype=x.dtype)[perm]
                a, b = f(x), f(P @ x)
                if isinstance(a, tuple):
                    a, b = a[0], b[0]
                return (P @ a - b).abs().max().item()
            """,
        ),
    ),
    hints=(
        "for a correct attention the gap is 0, up to rounding. What must move besides the words?",
        "x, f(x) and f(permuted x) are (B, T, D); perm moves the axis of T, the second-to-last.",
        "a = f(x); b = f(x with its words permuted); first item if a tuple; permute a the same way; largest absolute difference, as a number.",
    ),
)

ASSIGNMENT = Assignment(
    id="05_self_attention",
    notebook="self_attention",
    exercises=(
        PROJECT_EXERCISE,
        WEIGHTS_EXERCISE,
        ATTEND_EXERCISE,
        SELF_EXERCISE,
        LOOKUP_EXERCISE,
        GAP_EXERCISE,
    ),
    visible_modules=("transformer_ref.model.softmax",),
)
