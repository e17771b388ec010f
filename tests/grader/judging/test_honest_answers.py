"""Right answers that name, compare with or resemble what is forbidden, and lose nothing by it."""

import pytest
from judged_cells import Notebook

from autograder import catalogue

WRITTEN = "def softmax(x, dim):\n    e = (x - x.amax(dim, True)).exp()\n    return e / e.sum(dim, True)\n"
LOGARITHM = "def log_softmax(x, dim):\n    return x - x.logsumexp(dim, keepdim=True)\n"
WEIGHTS = (
    "def attention_weights(Q, K):\n"
    "    q, k = Q, K\n"
    "    scores = q @ k.transpose(-2, -1) / Q.shape[-1] ** 0.5\n"
    "    weights = torch.softmax(scores, dim=-1)\n"
    "    out = weights\n"
    "    return out\n"
)
LIBRARY = "F.scaled_dot_product_attention(x, x, x)"
CLASS = (
    "class SelfAttention(nn.Module):\n"
    "    def __init__(self, d_model, d_k, d_v):\n"
    "        super().__init__()\n"
    "        self.W_q, self.W_k = nn.Linear(d_model, d_k), nn.Linear(d_model, d_k)\n"
    "        self.W_v = nn.Linear(d_model, d_v)\n"
    "    def forward(self, x):\n"
    "        Q, K, V = self.W_q(x), self.W_k(x), self.W_v(x)\n"
    "        {}\n"
    "        return weights @ V, weights\n"
)
BY_HAND = "weights = torch.softmax(Q @ K.mT / K.shape[-1] ** 0.5, dim=-1)"


@pytest.fixture(scope="module")
def notebook():
    return Notebook()


COMPARED = {
    f"a cell of one's own that binds {name}": [f"{name} = {LIBRARY}", WEIGHTS]
    for name in ("weights", "scores", "Q", "K", "q", "k", "out", "x", "attention", "result", "W", "A")
}
ATTENTION = COMPARED | {
    "comparing after the answer": [WEIGHTS, f"weights = {LIBRARY}\nscores = weights\n"],
    "asserting below the answer": [
        WEIGHTS
        + "eye = torch.eye(4)[None]\n"
        + "assert torch.allclose(F.scaled_dot_product_attention(x, x, eye), attention_weights(x, x))\n"
    ],
    "asserting above the answer": [f"weights = {LIBRARY}\n" + WEIGHTS],
    "comparing in a function": [
        WEIGHTS,
        f"def compare():\n    weights = {LIBRARY}\n    return attention_weights(x, x) @ x - weights\n",
        "compare()",
    ],
    "comparing with a table of methods": [
        WEIGHTS,
        "methods = {'mine': attention_weights, 'attention_weights': F.scaled_dot_product_attention}\n",
    ],
    "timing both": [WEIGHTS, f"%timeit -n 1 -r 1 {LIBRARY}", "%time weights = attention_weights(x, x)"],
    "many heads in a cell of one's own": [WEIGHTS, "m = nn.MultiheadAttention(2, 1, batch_first=True)\nm(x, x, x)"],
    "a magic in the answer's cell": ["%precision 3\n_ = %pwd\n" + WEIGHTS],
    "a comment": [WEIGHTS.replace("    out", "    # like F.scaled_dot_product_attention\n    out", 1)],
    "a docstring": [
        WEIGHTS.replace("K):\n", "K):\n    '''What F.scaled_dot_product_attention weighs by.'''\n"),
    ],
    "a printed text": [WEIGHTS.replace("K):\n", "K):\n    print('as scaled_dot_product_attention does')\n")],
    "an error's text": [
        WEIGHTS.replace("K):\n", "K):\n    if Q.dim() < 2:\n        raise ValueError('scaled_dot_product_attention')\n")
    ],
    "a branch that is off": [
        WEIGHTS.replace("(Q, K)", "(Q, K, fast=False)").replace(
            "    q, k", "    if fast:\n        return F.scaled_dot_product_attention(Q, K, K)\n    q, k"
        )
    ],
    "a function of one's own by that name": [
        WEIGHTS.replace("attention_weights", "scaled_dot_product_attention"),
        "def attention_weights(Q, K):\n    return scaled_dot_product_attention(Q, K)\n",
    ],
    "a name that holds it": ["def my_scaled_dot_product_attention(x):\n    return x\n", WEIGHTS],
    "the course's softmax": [
        "from transformer_ref.model.softmax import softmax",
        "def attention_weights(Q, K):\n    return softmax(Q @ K.mT / Q.shape[-1] ** 0.5, dim=-1)\n",
    ],
    "its check": ["from autograder.check import check\n" + WEIGHTS + "check('attention-weights')\n"],
    "a cell that is no Python": ["this is not python", WEIGHTS],
    "its own earlier answer": [
        WRITTEN,
        "def attention_weights(Q, K):\n    return softmax(Q @ K.mT / Q.shape[-1] ** 0.5, dim=-1)\n",
    ],
    "another exercise's shortcut": [
        "def attend(W, V):\n    return F.scaled_dot_product_attention(W, V, V)\n",
        WEIGHTS,
    ],
    "scripted": ["@torch.jit.script\n" + WEIGHTS],
    "each of a batch": [
        "one = lambda q, k: torch.softmax(q @ k.mT / q.shape[-1] ** 0.5, -1)",
        "def attention_weights(Q, K):\n    return torch.func.vmap(one)(Q, K)\n",
    ],
    "rows in threads": [
        "from concurrent.futures import ThreadPoolExecutor",
        "def attention_weights(Q, K):\n    with ThreadPoolExecutor(2) as pool:\n"
        "        return torch.stack(list(pool.map(lambda q, k: torch.softmax(q @ k.mT / q.shape[-1] ** 0.5, "
        "-1), Q, K)))\n",
    ],
    "compiled whole": ["@torch.compile(backend='eager', fullgraph=True)\n" + WEIGHTS],
    "einops": [
        "from einops import einsum",
        "def attention_weights(Q, K):\n"
        "    return (einsum(Q, K, 'b q d, b k d -> b q k') / Q.shape[-1] ** 0.5).softmax(-1)\n",
    ],
}
SHARES = {
    "plainly": [WRITTEN],
    "logsumexp": ["softmax = lambda x, dim: (x - x.logsumexp(dim, keepdim=True)).exp()"],
    "the gradient of logsumexp": [
        "def softmax(x, dim):\n    return torch.func.grad(lambda y: torch.logsumexp(y, dim).sum())(x)\n"
    ],
    "recursion": [
        "def softmax(x, dim):\n    y = x.transpose(0, dim)\n    e = (y - y.amax(0)).exp()\n"
        "    if y.dim() == 1:\n        return e / e.sum()\n"
        "    return torch.stack([softmax(r, 0) for r in y.flatten(1).T]).T.reshape(y.shape).transpose(0, dim)\n"
    ],
    "a method": [
        "class S:\n    def softmax(self, x, dim):\n        e = (x - x.amax(dim, True)).exp()\n"
        "        return e / e.sum(dim, True)\n",
        "def softmax(x, dim):\n    return S().softmax(x, dim)\n",
    ],
    "a module of one's own": [
        "class Softmax(nn.Module):\n    def __init__(self, dim):\n        super().__init__()\n        self.dim = dim\n"
        "    def forward(self, x):\n        e = (x - x.amax(self.dim, True)).exp()\n"
        "        return e / e.sum(self.dim, True)\n",
        "def softmax(x, dim):\n    return Softmax(dim)(x)\n",
    ],
    "a function of one's own derivative": [
        "class Softmax(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x, dim):\n"
        "        e = (x - x.amax(dim, True)).exp()\n        p = e / e.sum(dim, True)\n"
        "        ctx.save_for_backward(p)\n        ctx.dim = dim\n        return p\n"
        "    @staticmethod\n    def backward(ctx, g):\n        (p,) = ctx.saved_tensors\n"
        "        return p * (g - (g * p).sum(ctx.dim, True)), None\n",
        "softmax = Softmax.apply",
    ],
    "a local variable": [
        WRITTEN.replace("    return e / e.sum(dim, True)", "    softmax = e / e.sum(dim, True)\n    return softmax")
    ],
    "a parameter": [
        "def apply(softmax, x, dim):\n    return softmax(x, dim)\n",
        WRITTEN.replace("softmax", "shares"),
        "def softmax(x, dim):\n    return apply(shares, x, dim)\n",
    ],
    "comparing below": [WRITTEN + "assert torch.allclose(softmax(x, -1), torch.softmax(x, dim=-1))"],
    "comparing before": ["e = torch.softmax(x, -1)\nexpected = F.softmax(x, dim=0)", WRITTEN],
    "the library's first, then one's own": ["from torch.nn.functional import softmax", "softmax(x, 0)", WRITTEN],
    "a warning": ["import warnings\n" + WRITTEN.replace("dim):\n", "dim):\n    warnings.warn('softmax')\n")],
    "an error's text": [
        WRITTEN.replace("dim):\n", "dim):\n    if x.dim() == 0:\n        raise ValueError('use softmax')\n")
    ],
    "a check that is off": [
        WRITTEN.replace("dim):", "dim, debug=False):").replace(
            "    return", "    if debug:\n        assert torch.allclose(e, torch.softmax(x, dim))\n    return"
        )
    ],
    "a table of names": ["names = {'softmax': 'shares', 'log_softmax': 'logs'}", WRITTEN],
    "its check": [WRITTEN, 'check("softmax")'],
    "loops": [
        "def softmax(x, dim):\n    rows = x.movedim(dim, -1)\n    flat = rows.reshape(-1, rows.shape[-1])\n"
        "    out = []\n"
        "    for row in flat:\n        e = torch.stack([torch.exp(v - row.max()) for v in row])\n"
        "        out.append(e / e.sum())\n"
        "    return torch.stack(out).reshape(rows.shape).movedim(-1, dim)\n"
    ],
    "a subclass of tensors": [
        "class T(torch.Tensor):\n    pass\n",
        "def softmax(x, dim):\n    e = (x.as_subclass(T) - x.amax(dim, True)).exp()\n"
        "    return (e / e.sum(dim, True)).as_subclass(torch.Tensor)\n",
    ],
    "a difference of logarithms": [
        "def softmax(x, dim):\n    m = x.amax(dim, keepdim=True)\n"
        "    return torch.exp(x - m - torch.log(torch.exp(x - m).sum(dim, keepdim=True)))\n"
    ],
}
OTHERS = [
    ("log-softmax", [WRITTEN, LOGARITHM]),
    ("log-softmax", ["expected = F.log_softmax(x, -1)\nlog = torch.nn.LogSoftmax(-1)(x)", LOGARITHM]),
    (
        "temperature",
        [
            "def temperature(x, tau):\n    if tau < 0:\n        raise ValueError\n    if tau == 0:\n"
            "        return F.one_hot(x.argmax(-1), x.shape[-1]).to(x.dtype)\n    return torch.softmax(x / tau, -1)\n"
        ],
    ),
    ("self-attention", [f"Q = K = V = weights = {LIBRARY}", CLASS.format(BY_HAND)]),
    ("self-attention", [WEIGHTS, CLASS.format("weights = attention_weights(Q, K)")]),
    (
        "self-attention",
        [CLASS.format(BY_HAND), "m = nn.MultiheadAttention(2, 1, batch_first=True)\nout, weights = m(x, x, x)"],
    ),
    (
        "self-attention",
        [CLASS.format("# not F.scaled_dot_product_attention\n        " + BY_HAND), "SelfAttention(2, 3, 4)(x)"],
    ),
]
CASES = {f"attention-weights: {name}": ("attention-weights", cells) for name, cells in ATTENTION.items()}
CASES |= {f"softmax: {name}": ("softmax", cells) for name, cells in SHARES.items()}
CASES |= {f"{exercise} {number}": (exercise, cells) for number, (exercise, cells) in enumerate(OTHERS)}


@pytest.mark.parametrize(("exercise", "cells"), CASES.values(), ids=CASES)
def test_an_honest_answer_earns_everything(notebook, exercise, cells):
    judged = notebook.judged(exercise, *cells)
    assert (judged["points"], judged["message"]) == (catalogue.find(exercise).points, "")
