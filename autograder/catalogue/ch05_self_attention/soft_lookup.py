"""05.5 soft_lookup."""

import torch
from torch import Tensor

from autograder.catalogue.ch05_self_attention.shared import sections
from autograder.catalogue.exercise import Case, Exercise, Probe
from autograder.catalogue.parts import (
    GRADIENTS,
    UNTOUCHED,
    first,
    known,
    normal,
    right,
    sizes,
)

LOOKUP, PARAMETERS, SHAPES, STABLE = sections("lookup parameters shapes stable")


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


EXERCISE = Exercise(
    id="soft-lookup",
    number="05.5",
    visible_points=1,
    hidden_points=2,
    section=LOOKUP,
    reference=soft_lookup,
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
    wrong=(
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
    right=(
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
