"""05.4 SelfAttention."""

from textwrap import dedent

import torch
from torch import Tensor, nn

from autograder.catalogue.ch05_self_attention.shared import EMBEDDINGS, FUSED, PAIR_SUMS_TO_ONE, WORDS, sections
from autograder.catalogue.exercise import Case, Exercise, Probe, Role
from autograder.catalogue.parts import (
    GRADIENTS,
    UNTOUCHED,
    columns,
    known,
    normal,
    ragged,
    right,
)
from transformer_ref.model import attention

MIX, PARAMETERS, SHAPES, STABLE, WHICH_AXIS, WHY_DIVIDE = sections("mix parameters shapes stable which-axis why-divide")


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


EXERCISE = Exercise(
    id="self-attention",
    number="05.4",
    visible_points=2,
    hidden_points=6,
    section=PARAMETERS,
    reference=SelfAttention,
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
    wrong=(
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
    right=(
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
