"""05.3 attend."""

import math

import torch
from torch import Tensor

from autograder.catalogue.ch05_self_attention.shared import EMBEDDINGS, WORDS, sections
from autograder.catalogue.exercise import Case, Evidence, Exercise, Probe
from autograder.catalogue.parts import (
    GRADIENTS,
    UNTOUCHED,
    known,
    normal,
    right,
    row,
    shares,
    sizes,
    turned,
)
from transformer_ref.model import attention

MIX, PARAMETERS, SHAPES, WHICH_AXIS = sections("mix parameters shapes which-axis")

_TABLE = torch.softmax(EMBEDDINGS @ EMBEDDINGS.T / math.sqrt(2), dim=-1)


def attend(W: Tensor, V: Tensor) -> Tensor:
    """A V: every query's mixture of the values."""
    return attention.attend(W, V)


def _one_hot(g: torch.Generator) -> Case:
    chosen = torch.randint(6, (2, 4), generator=g)
    return Case((torch.nn.functional.one_hot(chosen, 6).float(), normal(g, 2, 6, 7)))


def _constant(evidence: Evidence) -> str:
    return f"Row 0 came back as {row(evidence.got.flatten(0, -2)[0][:7])}; it should be {row(evidence.expected.flatten(0, -2)[0][:7])}."


EXERCISE = Exercise(
    id="attend",
    number="05.3",
    visible_points=1,
    hidden_points=3,
    section=MIX,
    reference=attend,
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
    wrong=(
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
    right=(
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
