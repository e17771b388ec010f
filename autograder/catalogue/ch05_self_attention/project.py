"""05.1 project."""

import torch
from torch import Tensor

from autograder.catalogue.ch05_self_attention.shared import EMBEDDINGS, WORDS, sections
from autograder.catalogue.exercise import Case, Exercise, Probe
from autograder.catalogue.parts import (
    GRADIENTS,
    UNTOUCHED,
    known,
    normal,
    right,
    sizes,
    turned,
)

PARAMETERS, PROJECT, SHAPES = sections("parameters project shapes")


def project(x: Tensor, W: Tensor, b: Tensor | None = None) -> Tensor:
    """Every position of every sentence through one and the same affine map."""
    return x @ W if b is None else x @ W + b


_W = torch.tensor([[1.0, 0.0, 2.0], [0.0, 1.0, -1.0]])
_SQUARE = torch.tensor([[[1.0, 2.0], [0.0, 3.0]], [[2.0, -1.0], [4.0, 1.0]]])

EXERCISE = Exercise(
    id="project",
    number="05.1",
    visible_points=1,
    hidden_points=2,
    section=PROJECT,
    reference=project,
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
    wrong=(
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
    right=(
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
