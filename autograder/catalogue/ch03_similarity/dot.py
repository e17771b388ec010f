"""03.1 dot."""

import torch
from torch import Tensor

from autograder.catalogue.ch03_similarity.shared import EMBEDDINGS, _whole, sections
from autograder.catalogue.exercise import Case, Evidence, Exercise, Probe
from autograder.catalogue.numbers import number
from autograder.catalogue.parts import GRADIENTS, UNTOUCHED, known, normal, right, row, sizes, turned
from transformer_ref.model import similarity

COSINE, DOT, MANY, ROOT = sections("cosine dot many root")


def dot(a: Tensor, b: Tensor) -> Tensor:
    """The sum over the last axis of a * b."""
    return similarity.dot(a, b)


def _single(evidence: Evidence) -> str:
    if evidence.got.dim() == 0:
        return f"(1, 4) and (0, 3) gave {number(evidence.got)}; by hand it is {number(evidence.expected)}."
    if evidence.got.dim() == 1:
        return f"You returned {row(evidence.got)}; by hand it is {row(evidence.expected.reshape(-1))}."
    return sizes(evidence)


EXERCISE = Exercise(
    id="dot",
    number="03.1",
    visible_points=1,
    hidden_points=1,
    section=DOT,
    reference=dot,
    probes=(
        Probe(
            "(1, 4) and (0, 3)",
            lambda g: Case((torch.tensor([1.0, 4.0]), torch.tensor([0.0, 3.0]))),
            hidden=False,
        ),
        Probe(
            "three pairs",
            lambda g: Case(
                (
                    torch.tensor([[1.0, 4.0], [1.0, 0.0], [2.0, -3.0]]),
                    torch.tensor([[3.0, 0.0], [-1.0, 0.0], [4.0, 2.0]]),
                )
            ),
            hidden=False,
        ),
        Probe(
            "four words, each with windows",
            lambda g: Case((EMBEDDINGS, EMBEDDINGS[3])),
            hidden=False,
        ),
        Probe("other sizes", lambda g: Case((normal(g, 2, 4, 6), normal(g, 2, 4, 6)))),
        Probe("spread against each other", lambda g: Case((normal(g, 5), normal(g, 3, 4, 5)))),
        Probe("vectors of one number", lambda g: Case((normal(g, 3, 1), normal(g, 3, 1)))),
        Probe(
            "a zero vector, and large numbers",
            lambda g: Case((_whole(g, 3, 6) * (torch.arange(3) > 0)[:, None], _whole(g, 3, 6))),
        ),
        Probe(
            "float64, transposed in memory",
            lambda g: Case(
                (turned(normal(g, 2, 4, 6, dtype=torch.float64)), turned(normal(g, 2, 4, 6, dtype=torch.float64)))
            ),
        ),
        Probe(
            "gradients",
            lambda g: Case((normal(g, 3, 5, dtype=torch.float64), normal(g, 3, 5, dtype=torch.float64))),
            also=GRADIENTS,
        ),
        Probe("nothing else is touched", lambda g: Case((normal(g, 4, 5), normal(g, 4, 5))), also=UNTOUCHED),
    ),
    wrong=(
        known(
            "products not added",
            "def dot(a, b):\n    return a * b\n",
            "You returned the d products one by one. A dot product is one number for a pair: add them.",
            DOT,
            sizes,
        ),
        known(
            "every product of every pair of numbers",
            "def dot(a, b):\n    return a[..., :, None] * b[..., None, :]\n",
            "Every number of a met every number of b: that is the outer product. Only numbers at the *same place* meet, and then they are added.",
            DOT,
            sizes,
        ),
        known(
            "torch.outer",
            "def dot(a, b):\n    return torch.outer(a, b)\n",
            "The outer product makes every number of a meet every number of b. Only numbers at the *same place* meet, and then they are added.",
            DOT,
            sizes,
        ),
        known(
            "all axes summed",
            "def dot(a, b):\n    return (a * b).sum()\n",
            "One number came back for the whole batch: the pairs were added together. Each pair keeps a number of its own; only the last axis is summed.",
            MANY,
            sizes,
        ),
        known(
            "first axis summed",
            "def dot(a, b):\n    return (a * b).sum(dim=0)\n",
            "The first axis was summed. With one pair it holds the numbers of a vector; with several pairs it counts the *pairs*. The numbers of a vector are always last.",
            MANY,
            sizes,
        ),
        known(
            "axis 1 summed",
            "def dot(a, b):\n    return (a * b).sum(dim=1)\n",
            "Axis 1 is the last axis only when there are two. A single vector has no axis 1, and in a deeper batch it counts something else. Count from the end.",
            MANY,
        ),
        known(
            "axis counted on a",
            "def dot(a, b):\n    return (a * b).sum(dim=a.dim() - 1)\n",
            "The axis was counted on one argument, but the other may have more axes. After multiplying, the numbers of a vector are last: count from the end.",
            MANY,
        ),
        known(
            "one pair only",
            "def dot(a, b):\n    return torch.dot(a, b)\n",
            "torch.dot takes exactly two vectors and refuses a stack of them. Write the two steps, multiply and add, along the last axis.",
            MANY,
        ),
        known(
            "matrix product of two stacks",
            "def dot(a, b):\n    return a @ b\n",
            "For two single vectors @ is the dot product; for two stacks it is a matrix product, whose inner sizes do not agree here. Row i of a should meet row i of b only.",
            MANY,
        ),
        known(
            "every pair of rows",
            "def dot(a, b):\n    return a @ b.T\n",
            "Every row of a met every row of b. Here row i of a meets row i of b, so three pairs give three numbers. (The full table is exercise 03.3.)",
            MANY,
            sizes,
        ),
        known(
            "last two axes exchanged",
            "def dot(a, b):\n    return a @ b.transpose(-1, -2)\n",
            "A single vector has no two axes to exchange, and for stacks every row of a would meet every row of b. Row i of a meets row i of b only; multiply and add along the last axis.",
            MANY,
        ),
        known(
            "mean instead of sum",
            "def dot(a, b):\n    return (a * b).mean(dim=-1)\n",
            "The products were averaged, which divides by d. A dot product adds them.",
            DOT,
            _single,
        ),
        known(
            "absolute values",
            "def dot(a, b):\n    return (a * b).abs().sum(dim=-1)\n",
            "Signs were lost on the way: (1, 0) and (-1, 0) point away from each other, and their dot product is -1. A negative number is an answer, too.",
            DOT,
            _single,
        ),
        known(
            "negative results cut off",
            "def dot(a, b):\n    return (a * b).sum(dim=-1).clamp(min=0)\n",
            "Negative results became 0. Opposite directions have a negative dot product; that is how the number tells them from unrelated ones.",
            DOT,
            _single,
        ),
        known(
            "cosine",
            "def dot(a, b):\n    return F.cosine_similarity(a, b, dim=-1)\n",
            "Your result never leaves -1 to 1: the lengths were divided away, which is cosine similarity (03.2). The dot product keeps them.",
            COSINE,
            _single,
        ),
        known(
            "scaled already",
            "def dot(a, b):\n    return (a * b).sum(dim=-1) / a.shape[-1] ** 0.5\n",
            "Your number was divided by the root of d. That is the scaled dot product of 03.3; here the plain sum is wanted.",
            ROOT,
            _single,
        ),
        known(
            "sums multiplied",
            "def dot(a, b):\n    return a.sum(dim=-1) * b.sum(dim=-1)\n",
            "The numbers were added before they were multiplied, so every number of a met every number of b. Multiply place by place first.",
            DOT,
            _single,
        ),
        known(
            "added instead of multiplied",
            "def dot(a, b):\n    return (a + b).sum(dim=-1)\n",
            "The vectors were added, and their sum summed. Place by place they are *multiplied*.",
            DOT,
            _single,
        ),
        known(
            "squared distance",
            "def dot(a, b):\n    return ((a - b) ** 2).sum(dim=-1)\n",
            "This is the squared distance between the two points: 0 for equal vectors, and large for unlike ones. The dot product goes the other way.",
            DOT,
            _single,
        ),
        known(
            "an axis of one left over",
            "def dot(a, b):\n    return (a * b).sum(dim=-1, keepdim=True)\n",
            "The numbers are right, but the summed axis is still there with length 1. It should be gone.",
            MANY,
            sizes,
        ),
        known(
            "a Python number",
            "def dot(a, b):\n    return (a * b).sum(dim=-1).item()\n",
            ".item() hands over a plain number: it fails for more than one pair, and no gradient flows through it. Return a tensor, even for one pair.",
            MANY,
        ),
        known(
            "cut off from the gradient",
            "def dot(a, b):\n    return (a.detach() * b.detach()).sum(dim=-1)\n",
            "The values are right, but no gradient flows back: .detach(), .data, no_grad or numpy cut the graph, and nothing before it could learn.",
            MANY,
        ),
        known(
            "always float32",
            "def dot(a, b):\n    return (a.float() * b.float()).sum(dim=-1)\n",
            "float64 went in and float32 came out. The result keeps the dtype of the input.",
            MANY,
        ),
        known(
            "a changed in place",
            "def dot(a, b):\n    a *= b\n    return a.sum(dim=-1)\n",
            "Your function changed the caller's a. An operation such as *= or mul_ writes into the tensor that was passed in, and fails where a is smaller than the result.",
            MANY,
        ),
        known(
            "a loop over the first axis",
            """
            def dot(a, b):
                return torch.stack([(a[i] * b[i]).sum() for i in range(a.shape[0])])
            """,
            "Your loop takes the first axis for the pairs. A single pair has no such axis: there it holds the numbers of the vector. The numbers are always last, and what stands before them may be nothing, one axis or several.",
            DOT,
        ),
    ),
    right=(
        right("multiply and sum", "def dot(u, v):\n    return (u * v).sum(-1)\n"),
        right("einsum", 'def dot(a, b):\n    return torch.einsum("...d,...d->...", a, b)\n'),
        right("vecdot", "def dot(a, b):\n    return torch.linalg.vecdot(a, b)\n"),
        right("row times column", "def dot(a, b):\n    return (a[..., None, :] @ b[..., :, None])[..., 0, 0]\n"),
        right(
            "loop over the places",
            """
            def dot(a, b):
                total = 0
                for i in range(a.shape[-1]):
                    total = total + a[..., i] * b[..., i]
                return total
            """,
        ),
        right(
            "loop over the pairs",
            """
            def dot(a, b):
                a, b = torch.broadcast_tensors(a, b)
                flat = [torch.dot(u, v) for u, v in zip(a.reshape(-1, a.shape[-1]), b.reshape(-1, b.shape[-1]))]
                return torch.stack(flat).reshape(a.shape[:-1])
            """,
        ),
        right(
            "double inside", "def dot(a, b):\n    return torch.mul(a.double(), b.double()).sum(dim=-1).to(a.dtype)\n"
        ),
        right(
            "from three lengths",
            "def dot(a, b):\n    return ((a + b).pow(2).sum(-1) - a.pow(2).sum(-1) - b.pow(2).sum(-1)) / 2\n",
        ),
        right(
            "recursion",
            """
            def dot(a, b):
                if a.dim() == b.dim() == 1:
                    return sum(x * y for x, y in zip(a, b))
                a, b = torch.broadcast_tensors(a, b)
                return torch.stack([dot(u, v) for u, v in zip(a, b)])
            """,
        ),
    ),
    hints=(
        "one pair of vectors gives one number. Which axis has to disappear?",
        "a and b of (..., d) are spread against each other by themselves; the product has shape (..., d), the result (...).",
        "multiply a and b place by place; add along the last axis; return that.",
    ),
)
