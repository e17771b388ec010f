"""Chapter 03, dot products and similarity: five exercises, their probes, and the wrong answers that teachers know."""

import math

import torch
from torch import Tensor

from autograder.catalogue.exercise import Assignment, Case, Evidence, Exercise, Law, Probe, Section
from autograder.catalogue.parts import GRADIENTS, UNTOUCHED, known, normal, right, row, sizes, turned
from autograder.judging.compare import number
from transformer_ref.model import similarity

# ------------------------------------------------------------------------------------------------ shared by the exercises

WORDS = ("I", "closed", "the", "windows")
EMBEDDINGS = torch.tensor([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0], [2.0, 0.0]])

DOT = Section("03", "Multiply, then add", "sec-03-dot")
MANY = Section("03", "Many pairs at once", "sec-03-many")
COSINE = Section("03", "Angle or length?", "sec-03-cosine")
TABLE = Section("03", "Everybody with everybody", "sec-03-table")
ROOT = Section("03", "Why the root?", "sec-03-root")
MEASURE = Section("03", "Measure it", "sec-03-measure")
NEAREST = Section("03", "Who is nearest?", "sec-03-nearest")


def _whole(g: torch.Generator, *shape: int) -> Tensor:
    """Whole numbers up to 900 in size, whose sums of products are exact in float32."""
    return torch.randint(-900, 901, shape, generator=g).float()


def _first_row(evidence: Evidence) -> str:
    """The first row of the result, as it is and as it should be."""
    if not isinstance(evidence.got, Tensor) or evidence.got.dim() != 2:
        return "The result is not a table with a row for each vector of the first argument."
    got, expected = evidence.got[0][:8], evidence.expected[0][:8]
    return f"Your first row is {row(got)}; by hand it is {row(expected)}."


def _yours(evidence: Evidence) -> str:
    """A number that came back, and the one that should have."""
    return f"You returned {number(evidence.got)} where {number(evidence.expected)} was expected."


# ------------------------------------------------------------------------------------------------ 03.1 dot


def dot(a: Tensor, b: Tensor) -> Tensor:
    """The sum over the last axis of a * b."""
    return similarity.dot(a, b)


def _single(evidence: Evidence) -> str:
    if evidence.got.dim() == 0:
        return f"(1, 4) and (0, 3) gave {number(evidence.got)}; by hand it is {number(evidence.expected)}."
    if evidence.got.dim() == 1:
        return f"You returned {row(evidence.got)}; by hand it is {row(evidence.expected.reshape(-1))}."
    return sizes(evidence)


DOT_EXERCISE = Exercise(
    id="dot",
    number="03.1",
    names=("dot",),
    visible_points=1,
    hidden_points=1,
    section=DOT,
    reference={"dot": dot},
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
    misconceptions=(
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
    variants=(
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

# ------------------------------------------------------------------------------------------------ 03.2 cosine

_ARROWS = torch.tensor([[0.0, 3.0], [3.0, 0.0], [-2.0, -8.0]])


def cosine(A: Tensor, B: Tensor) -> Tensor:
    """The dot product of every direction in A with every direction in B."""
    return similarity.cosine(A, B)


def _of_lengths(g: torch.Generator, n: int, d: int) -> Tensor:
    """Vectors in drawn directions whose lengths run from 0.3 to 3,000."""
    directions = torch.nn.functional.normalize(normal(g, n, d, dtype=torch.float64), dim=-1)
    return (directions * torch.logspace(math.log10(0.3), math.log10(3000), n, dtype=torch.float64)[:, None]).float()


def _with_zero(g: torch.Generator, n: int, d: int, place: int) -> Tensor:
    vectors = normal(g, n, d)
    vectors[place] = 0
    return vectors


COSINE_EXERCISE = Exercise(
    id="cosine",
    number="03.2",
    names=("cosine",),
    visible_points=1,
    hidden_points=2,
    section=COSINE,
    reference={"cosine": cosine},
    probes=(
        Probe("one arrow and three others", lambda g: Case((torch.tensor([[1.0, 4.0]]), _ARROWS)), hidden=False),
        Probe(
            "four words with each other",
            lambda g: Case((EMBEDDINGS, EMBEDDINGS), WORDS),
            hidden=False,
            laws=(
                Law(
                    "every word's similarity to itself is 1",
                    lambda got: torch.allclose(got.diagonal(), torch.ones(()), atol=1e-4),
                ),
            ),
        ),
        Probe(
            "a zero vector is similar to nothing",
            lambda g: Case(
                (
                    torch.tensor([[3.0, 4.0, 0.0], [0.0, 0.0, 0.0]]),
                    torch.tensor([[4.0, 3.0, 0.0], [0.0, 5.0, 12.0], [0.0, 0.0, 0.0], [1.0, 2.0, 2.0]]),
                )
            ),
            hidden=False,
        ),
        Probe("other sizes", lambda g: Case((normal(g, 4, 5), normal(g, 6, 5)))),
        Probe("as many vectors as numbers", lambda g: Case((normal(g, 4, 4), normal(g, 4, 4)))),
        Probe("one vector each", lambda g: Case((normal(g, 1, 3), normal(g, 1, 3)))),
        Probe("very different lengths", lambda g: Case((_of_lengths(g, 5, 4), _of_lengths(g, 7, 4)))),
        Probe(
            "short arrows",
            lambda g: Case(
                (
                    0.02 * torch.nn.functional.normalize(normal(g, 3, 4), dim=1),
                    0.03 * torch.nn.functional.normalize(normal(g, 5, 4), dim=1),
                )
            ),
            atol=5e-3,
        ),
        Probe("zero vectors on both sides", lambda g: Case((_with_zero(g, 4, 6, 2), _with_zero(g, 5, 6, 0)))),
        Probe(
            "float64, transposed in memory",
            lambda g: Case(
                (turned(normal(g, 4, 6, dtype=torch.float64)), turned(normal(g, 5, 6, dtype=torch.float64)))
            ),
        ),
        Probe(
            "gradients",
            lambda g: Case((normal(g, 4, 6, dtype=torch.float64), normal(g, 5, 6, dtype=torch.float64))),
            also=GRADIENTS,
        ),
        Probe("nothing else is touched", lambda g: Case((normal(g, 4, 5), normal(g, 3, 5))), also=UNTOUCHED),
    ),
    misconceptions=(
        known(
            "lengths kept",
            "def cosine(A, B):\n    return A @ B.T\n",
            "These are the plain dot products. They grow with the lengths of the vectors; a cosine depends on directions only and stays between -1 and 1.",
            COSINE,
            _first_row,
        ),
        known(
            "norm of the whole table",
            "def cosine(A, B):\n    return (A / A.norm()) @ (B / B.norm()).T\n",
            "One length was taken for the whole table, so a word's similarity to itself is not 1. Each *row* has a length of its own.",
            COSINE,
            _first_row,
        ),
        known(
            "length along the wrong axis",
            """
            def cosine(A, B):
                return F.normalize(A, dim=0) @ F.normalize(B, dim=0).T
            """,
            "Columns were brought to length 1, not rows: a column holds one feature of all vectors. Each *row* is a vector.",
            COSINE,
            _first_row,
        ),
        known(
            "sum of absolute values as length",
            "def cosine(A, B):\n    return F.normalize(A, p=1, dim=-1) @ F.normalize(B, p=1, dim=-1).T\n",
            "The length was taken as the sum of absolute values. The length of an arrow is the root of the sum of *squares*.",
            COSINE,
            _first_row,
        ),
        known(
            "largest number as length",
            "def cosine(A, B):\n    return F.normalize(A, p=math.inf, dim=-1) @ F.normalize(B, p=math.inf, dim=-1).T\n",
            "The length was taken as the largest number of a vector. The length of an arrow is the root of the sum of squares.",
            COSINE,
            _first_row,
        ),
        known(
            "root forgotten",
            """
            def cosine(A, B):
                squares_a, squares_b = (A * A).sum(-1, keepdim=True), (B * B).sum(-1, keepdim=True)
                return (A / squares_a.where(squares_a > 0, 1)) @ (B / squares_b.where(squares_b > 0, 1)).T
            """,
            "Each vector was divided by the *square* of its length, so long vectors count too little. Take the root of the sum of squares.",
            COSINE,
            _first_row,
        ),
        known(
            "only A brought to length 1",
            "def cosine(A, B):\n    return F.normalize(A, dim=-1) @ B.T\n",
            "Your numbers still grow with the vectors of B: only A was brought to length 1.",
            COSINE,
            _first_row,
        ),
        known(
            "only B brought to length 1",
            "def cosine(A, B):\n    return A @ F.normalize(B, dim=-1).T\n",
            "Your numbers still grow with the vectors of A: only B was brought to length 1.",
            COSINE,
            _first_row,
        ),
        known(
            "zero divided by zero",
            "def cosine(A, B):\n    return (A / A.norm(dim=-1, keepdim=True)) @ (B / B.norm(dim=-1, keepdim=True)).T\n",
            "A vector of zeros has no direction: its length is 0, and 0 divided by 0 is NaN. We define its similarity as 0, so guard that division.",
            COSINE,
        ),
        known(
            "zero vector guarded in A only",
            "def cosine(A, B):\n    return F.normalize(A, dim=-1) @ (B / B.norm(dim=-1, keepdim=True)).T\n",
            "A zero vector in A is safe, one in B still gives NaN. Guard both divisions.",
            COSINE,
        ),
        known(
            "zero vector guarded in B only",
            "def cosine(A, B):\n    return (A / A.norm(dim=-1, keepdim=True)) @ F.normalize(B, dim=-1).T\n",
            "A zero vector in B is safe, one in A still gives NaN. Guard both divisions.",
            COSINE,
        ),
        known(
            "guard too large",
            "def cosine(A, B):\n    return (A / (A.norm(dim=-1, keepdim=True) + 0.1)) @ (B / (B.norm(dim=-1, keepdim=True) + 0.1)).T\n",
            "Every similarity came out a little too small: the number added to the length against division by zero is large enough to show. Make it tiny, or act only where the length is 0.",
            COSINE,
            _first_row,
        ),
        known(
            "zero vector similar to all",
            """
            def cosine(A, B):
                table = (A / A.norm(dim=-1, keepdim=True)) @ (B / B.norm(dim=-1, keepdim=True)).T
                return table.nan_to_num(nan=1.0)
            """,
            "A zero vector came out with similarity 1. It points nowhere, so it is similar to nothing: 0.",
            COSINE,
        ),
        known(
            "one axis for two lists of lengths",
            "def cosine(A, B):\n    return A @ B.T / (A.norm(dim=-1) * B.norm(dim=-1)).clamp(min=1e-12)\n",
            "There are n lengths in A and m in B, and the table is (n, m): n lengths go down its rows, m along its columns. Multiplied with each other like this they only fit when n = m, and then wrongly.",
            TABLE,
        ),
        known(
            "lengths on the wrong axis",
            "def cosine(A, B):\n    return A @ B.T / (A.norm(dim=-1) * B.norm(dim=-1)[:, None]).clamp(min=1e-12)\n",
            "The lengths of A were laid along the columns of the table and those of B down its rows. Row i belongs to vector i of A.",
            TABLE,
        ),
        known(
            "lengths as two columns",
            "def cosine(A, B):\n    return A @ B.T / (A.norm(dim=-1, keepdim=True) * B.norm(dim=-1, keepdim=True)).clamp(min=1e-12)\n",
            "Both lists of lengths stand as columns. Those of A belong to the rows of the table and may; those of B belong to its columns, so they have to lie down.",
            TABLE,
        ),
        known(
            "similarity over the wrong axis",
            "def cosine(A, B):\n    return F.cosine_similarity(A[:, None], B[None])\n",
            "F.cosine_similarity sums over axis 1 unless told otherwise. With every row of A spread against every row of B, the d numbers of a vector are on the *last* axis.",
            MANY,
            sizes,
        ),
        known(
            "pair by pair",
            "def cosine(A, B):\n    return F.cosine_similarity(A, B, dim=-1)\n",
            "Row i of A met row i of B only. A table is wanted: every row of A with every row of B, shape (n, m).",
            TABLE,
        ),
        known(
            "rows and columns exchanged",
            "def cosine(A, B):\n    return F.normalize(B, dim=-1) @ F.normalize(A, dim=-1).T\n",
            "Rows and columns are exchanged: one row for each vector of A, one column for each of B.",
            TABLE,
            sizes,
        ),
        known(
            "the angle itself",
            "def cosine(A, B):\n    return torch.acos((F.normalize(A, dim=-1) @ F.normalize(B, dim=-1).T).clamp(-1, 1))\n",
            "These are angles: 0 for the same direction, and larger for less alike. The *cosine* of the angle is wanted, 1 for the same direction.",
            COSINE,
            _first_row,
        ),
        known(
            "distance instead of similarity",
            "def cosine(A, B):\n    return 1 - F.normalize(A, dim=-1) @ F.normalize(B, dim=-1).T\n",
            "You returned one minus the similarity: 0 for the same direction. That is a distance.",
            COSINE,
            _first_row,
        ),
        known(
            "sign dropped",
            "def cosine(A, B):\n    return (F.normalize(A, dim=-1) @ F.normalize(B, dim=-1).T).abs()\n",
            "Opposite arrows came out as alike: their cosine is -1, and the sign is gone in yours.",
            COSINE,
            _first_row,
        ),
        known(
            "negative similarities cut off",
            "def cosine(A, B):\n    return (F.normalize(A, dim=-1) @ F.normalize(B, dim=-1).T).clamp(min=0)\n",
            "Negative cosines became 0, so opposite looks the same as unrelated. Keep the sign.",
            COSINE,
            _first_row,
        ),
        known(
            "scaled dot product",
            "def cosine(A, B):\n    return A @ B.T / A.shape[-1] ** 0.5\n",
            "The dot products were divided by the root of d, one number for all pairs. A cosine divides by the two lengths of each pair.",
            COSINE,
            _first_row,
        ),
        known(
            "mean taken away first",
            """
            def cosine(A, B):
                A, B = A - A.mean(-1, keepdim=True), B - B.mean(-1, keepdim=True)
                return F.normalize(A, dim=-1) @ F.normalize(B, dim=-1).T
            """,
            "The mean of each vector was taken away first. That is a correlation; the cosine compares the arrows as they are.",
            COSINE,
            _first_row,
        ),
        known(
            "cut off from the gradient",
            "def cosine(A, B):\n    return F.normalize(A.detach(), dim=-1) @ F.normalize(B.detach(), dim=-1).T\n",
            "The values are right, but no gradient flows back: .detach(), .data, no_grad or numpy cut the graph.",
            MANY,
        ),
        known(
            "lengths cut off from the gradient",
            """
            def cosine(A, B):
                a, b = A.detach().norm(dim=-1, keepdim=True), B.detach().norm(dim=-1, keepdim=True)
                return (A / a.clamp(min=1e-12)) @ (B / b.clamp(min=1e-12)).T
            """,
            "The values are right, but the gradient treats the lengths as constants: they were detached. A length changes with its vector.",
            MANY,
        ),
        known(
            "always float32",
            "def cosine(A, B):\n    return F.normalize(A.float(), dim=-1) @ F.normalize(B.float(), dim=-1).T\n",
            "float64 went in and float32 came out. The result keeps the dtype of the input.",
            MANY,
        ),
        known(
            "A changed in place",
            "def cosine(A, B):\n    A /= A.norm(dim=-1, keepdim=True).clamp(min=1e-12)\n    return A @ F.normalize(B, dim=-1).T\n",
            "Your function changed the caller's A: /= and div_ write into the tensor that was passed in.",
            MANY,
        ),
        known(
            "short arrows taken for zero",
            """
            def cosine(A, B):
                return A @ B.T / (A.norm(dim=1)[:, None] * B.norm(dim=1)).clamp_min(1e-3)
            """,
            "Your guard against 0 is too large: short arrows have a direction too, and came out as hardly alike. Only a length of exactly 0 needs a guard; something like 1e-12 is enough.",
            COSINE,
        ),
        known(
            "a rather large number added below",
            """
            def cosine(A, B):
                return A @ B.T / (A.norm(dim=1)[:, None] * B.norm(dim=1) + 1e-2)
            """,
            "The number that you add against 0 is too large: every cosine came out a little too small. Something like 1e-12 is enough.",
            COSINE,
        ),
        known(
            "zero vectors thrown away",
            """
            def cosine(A, B):
                A, B = A[A.norm(dim=1) > 0], B[B.norm(dim=1) > 0]
                return F.normalize(A, dim=1) @ F.normalize(B, dim=1).T
            """,
            "Vectors of zeros were thrown away, and with them their rows and columns. They stay in the table, as zeros.",
            COSINE,
        ),
        known(
            "divided by the root of d as well",
            """
            def cosine(A, B):
                return F.normalize(A, dim=1) @ F.normalize(B, dim=1).T / A.shape[1] ** 0.5
            """,
            "A vector's similarity to itself should be 1. The two lengths were divided away, and the root of d on top of them; that belongs to 03.3.",
            COSINE,
        ),
    ),
    variants=(
        right("F.normalize", "def cosine(X, Y):\n    return F.normalize(X, dim=-1) @ F.normalize(Y, dim=-1).T\n"),
        right(
            "F.cosine_similarity, spread",
            "def cosine(A, B):\n    return F.cosine_similarity(A[:, None, :], B[None, :, :], dim=-1)\n",
        ),
        right(
            "lengths outside",
            "def cosine(A, B):\n    return A @ B.T / (A.norm(dim=1)[:, None] * B.norm(dim=1)[None, :]).clamp(min=1e-12)\n",
        ),
        right(
            "a tiny number added",
            "def cosine(A, B):\n    return (A @ B.mT) / (torch.outer(A.norm(dim=-1), B.norm(dim=-1)) + 1e-8)\n",
        ),
        right(
            "where",
            """
            def cosine(A, B):
                def direction(v):
                    length = (v ** 2).sum(-1, keepdim=True).sqrt()
                    return v / torch.where(length == 0, torch.ones_like(length), length)
                return torch.einsum("nd,md->nm", direction(A), direction(B))
            """,
        ),
        right(
            "loops",
            """
            def cosine(A, B):
                rows = []
                for a in A:
                    cells = []
                    for b in B:
                        lengths = a.norm() * b.norm()
                        cells.append((a * b).sum() / lengths if lengths > 0 else (a * b).sum())
                    rows.append(torch.stack(cells))
                return torch.stack(rows)
            """,
        ),
        right(
            "NaN mended afterwards",
            "def cosine(A, B):\n    return ((A / A.norm(dim=-1, keepdim=True)) @ (B / B.norm(dim=-1, keepdim=True)).T).nan_to_num(nan=0.0)\n",
        ),
        right(
            "double inside, clamped",
            """
            def cosine(A, B):
                a, b = A.double(), B.double()
                table = a @ b.T / (a.norm(dim=-1, keepdim=True).clamp(min=1e-30) * b.norm(dim=-1).clamp(min=1e-30))
                return table.clamp(-1, 1).to(A.dtype)
            """,
        ),
    ),
    hints=(
        "look at the diagonal of the four words, and at the row of the zero vector.",
        "A (n, d) has n lengths and B (m, d) has m, one for each row; the table is (n, m).",
        "divide each row of A by its length, unless that is 0; the same for B; then every row of one with every row of the other.",
    ),
)

# ------------------------------------------------------------------------------------------------ 03.3 scaled_scores


def scaled_scores(Q: Tensor, K: Tensor) -> Tensor:
    """Q K^T / sqrt(d)."""
    return similarity.scaled_dot_product_scores(Q, K)


def _last_row(evidence: Evidence) -> str:
    if evidence.got.shape != evidence.expected.shape:
        return sizes(evidence)
    got, expected = evidence.got[-1][:8], evidence.expected[-1][:8]
    return f"Your last row is {row(got)} where {row(expected)} was expected."


SCORES_EXERCISE = Exercise(
    id="scaled-scores",
    number="03.3",
    names=("scaled_scores",),
    visible_points=2,
    hidden_points=2,
    section=ROOT,
    reference={"scaled_scores": scaled_scores},
    probes=(
        Probe(
            "four words",
            lambda g: Case((EMBEDDINGS, EMBEDDINGS), WORDS),
            hidden=False,
            laws=(
                Law(
                    "the table is its own mirror image",
                    lambda got: torch.allclose(got, got.T, atol=1e-4),
                ),
            ),
        ),
        Probe("4 queries, 6 keys, d = 5", lambda g: Case((normal(g, 4, 5), normal(g, 6, 5))), hidden=False),
        Probe("other sizes", lambda g: Case((normal(g, 5, 10), normal(g, 7, 10)))),
        Probe("d = 64", lambda g: Case((normal(g, 9, 64), normal(g, 11, 64)))),
        Probe("one query, vectors of one number", lambda g: Case((normal(g, 1, 1), normal(g, 3, 1)))),
        Probe(
            "a zero query, and large numbers",
            lambda g: Case((_whole(g, 3, 6) * (torch.arange(3) != 1)[:, None], _whole(g, 4, 6))),
        ),
        Probe(
            "float64, transposed in memory",
            lambda g: Case(
                (turned(normal(g, 4, 6, dtype=torch.float64)), turned(normal(g, 7, 6, dtype=torch.float64)))
            ),
        ),
        Probe(
            "gradients",
            lambda g: Case((normal(g, 4, 5, dtype=torch.float64), normal(g, 6, 5, dtype=torch.float64))),
            also=GRADIENTS,
        ),
        Probe("nothing else is touched", lambda g: Case((normal(g, 4, 5), normal(g, 6, 5))), also=UNTOUCHED),
    ),
    misconceptions=(
        known(
            "not scaled",
            "def scaled_scores(Q, K):\n    return Q @ K.T\n",
            "These are the plain dot products. At d = 64 their standard deviation is 8; divided by the right number it is about 1, for every d.",
            ROOT,
            _last_row,
        ),
        known(
            "divided by d",
            "def scaled_scores(Q, K):\n    return Q @ K.T / Q.shape[-1]\n",
            "Over-scaled: at d = 64 your scores have a standard deviation of 0.125, and all weights made from them will look alike. Dot products grow like the *root* of d, not like d.",
            ROOT,
            _last_row,
        ),
        known(
            "divided by the square of d",
            "def scaled_scores(Q, K):\n    return Q @ K.T / Q.shape[-1] ** 2\n",
            "Your scores nearly vanish: they were divided by d times d. There is a lecture slide that says 'square'; it means the square *root*.",
            ROOT,
            _last_row,
        ),
        known(
            "divided by the two lengths",
            "def scaled_scores(Q, K):\n    return F.normalize(Q, dim=-1) @ F.normalize(K, dim=-1).T\n",
            "That is cosine: each pair was divided by its own two lengths. Here one number divides all scores alike, so a longer vector still scores more.",
            COSINE,
            _last_row,
        ),
        known(
            "divided by the query's length",
            "def scaled_scores(Q, K):\n    return F.normalize(Q, dim=-1) @ K.T\n",
            "Each row was divided by the length of its query. 'Length of the embedding' here means how *many* numbers it has, not how long the arrow is.",
            ROOT,
            _last_row,
        ),
        known(
            "divided by the key's length",
            "def scaled_scores(Q, K):\n    return Q @ F.normalize(K, dim=-1).T\n",
            "Each column was divided by the length of its key. 'Length of the embedding' here means how *many* numbers it has, not how long the arrow is.",
            ROOT,
            _last_row,
        ),
        known(
            "divided by the root of the number of keys",
            "def scaled_scores(Q, K):\n    return Q @ K.T / K.shape[0] ** 0.5\n",
            "The scores were divided by the root of the number of *keys*, so they change when a word is added to the sentence. A dot product grows with the width d of the vectors.",
            ROOT,
            _last_row,
        ),
        known(
            "divided by the root of the number of queries",
            "def scaled_scores(Q, K):\n    return Q @ K.T / Q.shape[0] ** 0.5\n",
            "The scores were divided by the root of the number of *queries*: shape[0] counts vectors. What makes dot products large is how many numbers each vector has.",
            ROOT,
            _last_row,
        ),
        known(
            "divided by the root of two",
            "def scaled_scores(Q, K):\n    return Q @ K.T / 2 ** 0.5\n",
            "The table of the four words is right, since d is 2 there. With another width the divisor must be another number.",
            ROOT,
        ),
        known(
            "divided by eight",
            "def scaled_scores(Q, K):\n    return Q @ K.T / 8\n",
            "8 is the root of 64, the width in the paper. Another width has another root; take d from the vectors you are given.",
            ROOT,
            _last_row,
        ),
        known(
            "divided by half of d",
            "def scaled_scores(Q, K):\n    return Q @ K.T / (Q.shape[-1] ** 1 / 2)\n",
            "The scores were divided by d/2. Python takes powers before it divides, so d ** 1/2 is (d ** 1)/2. Brackets help, or math.sqrt.",
            ROOT,
            _last_row,
        ),
        known(
            "divided by the size of the whole table",
            "def scaled_scores(Q, K):\n    return Q @ K.T / Q.norm()\n",
            "The scores were divided by the norm of all of Q. Then they change when a query is added. The divisor is known beforehand, from d alone.",
            ROOT,
            _last_row,
        ),
        known(
            "multiplied by the root of d",
            "def scaled_scores(Q, K):\n    return Q @ K.T * Q.shape[-1] ** 0.5\n",
            "The scores were multiplied by the root of d. They are too large already; divide.",
            ROOT,
            _last_row,
        ),
        known(
            "rounded down",
            "def scaled_scores(Q, K):\n    return Q @ K.T // Q.shape[-1] ** 0.5\n",
            "Your scores are whole numbers: // rounds down. A plain division is wanted.",
            ROOT,
            _last_row,
        ),
        known(
            "divided by the measured spread",
            "def scaled_scores(Q, K):\n    scores = Q @ K.T\n    return scores / scores.std()\n",
            "The scores were divided by their own standard deviation. Then a pair's score depends on all the other pairs. The divisor is known beforehand, from d alone.",
            ROOT,
            _last_row,
        ),
        known(
            "divided by the largest",
            "def scaled_scores(Q, K):\n    scores = Q @ K.T\n    return scores / scores.max()\n",
            "The scores were divided by the largest of them. Then a pair's score depends on all the other pairs. The divisor is known beforehand, from d alone.",
            ROOT,
            _last_row,
        ),
        known(
            "softmax already",
            "def scaled_scores(Q, K):\n    return torch.softmax(Q @ K.T / Q.shape[-1] ** 0.5, dim=-1)\n",
            "Your rows sum to 1: these are weights. The scores are wanted, before any softmax; that is chapter 04.",
            TABLE,
            _last_row,
        ),
        known(
            "keys ask, queries answer",
            "def scaled_scores(Q, K):\n    return K @ Q.T / Q.shape[-1] ** 0.5\n",
            "Rows and columns are exchanged: one row for each query, one column for each key. With the four words you cannot see it, because there Q = K.",
            TABLE,
        ),
        known(
            "K reshaped instead of transposed",
            "def scaled_scores(Q, K):\n    return Q @ K.reshape(K.shape[1], K.shape[0]) / Q.shape[-1] ** 0.5\n",
            "The shape is right and the pairs are wrong: reshape and view re-cut the same strip of numbers, so a column is no longer one word's vector. Turn the table around instead.",
            TABLE,
            _last_row,
        ),
        known(
            "K not transposed",
            "def scaled_scores(Q, K):\n    return Q @ K / Q.shape[-1] ** 0.5\n",
            "The inner sizes of the product do not agree. A query has d numbers and so has a key: to meet, the keys must stand as columns.",
            TABLE,
        ),
        known(
            "Q transposed instead of K",
            "def scaled_scores(Q, K):\n    return Q.T @ K / Q.shape[-1] ** 0.5\n",
            "Q was turned around instead of K, so features met features: the sum ran over the words. It should run over the d numbers of a vector.",
            TABLE,
        ),
        known(
            "row by row",
            "def scaled_scores(Q, K):\n    return (Q * K).sum(dim=-1) / Q.shape[-1] ** 0.5\n",
            "Row i of Q met row i of K only. Every query meets every key: the result is a table.",
            TABLE,
        ),
        known(
            "products not added",
            "def scaled_scores(Q, K):\n    return Q * K / Q.shape[-1] ** 0.5\n",
            "The numbers were multiplied cell by cell, and nothing was added. Each cell of the result is a whole dot product, of one query with one key.",
            TABLE,
        ),
        known(
            "cut off from the gradient",
            "def scaled_scores(Q, K):\n    return Q.detach() @ K.detach().T / Q.shape[-1] ** 0.5\n",
            "The values are right, but no gradient flows back: .detach(), .data, no_grad or numpy cut the graph.",
            MANY,
        ),
        known(
            "always float32",
            "def scaled_scores(Q, K):\n    return Q.float() @ K.float().T / Q.shape[-1] ** 0.5\n",
            "float64 went in and float32 came out. The result keeps the dtype of the input.",
            MANY,
        ),
        known(
            "Q changed in place",
            "def scaled_scores(Q, K):\n    Q /= Q.shape[-1] ** 0.5\n    return Q @ K.T\n",
            "Your function changed the caller's Q: /= and div_ write into the tensor that was passed in. (When K is the same tensor, it even changes under your hands.)",
            MANY,
        ),
        known(
            "divided by twice d",
            """
            def scaled_scores(Q, K):
                return Q @ K.T / Q.shape[-1] ** 1 / 2
            """,
            "Your divisor is twice d: Python reads d ** 1 / 2 from the left, and the power comes before the division. The root is d to the power of one half, with brackets or as 0.5.",
            ROOT,
        ),
        known(
            "root rounded",
            """
            def scaled_scores(Q, K):
                return Q @ K.T / int(math.sqrt(Q.shape[-1]))
            """,
            "The root of d was cut to a whole number. That is right when d is a square, such as 4 or 64, and not otherwise.",
            ROOT,
        ),
        known(
            "divided by the root of all numbers in Q",
            """
            def scaled_scores(Q, K):
                return Q @ K.T / math.sqrt(Q.numel())
            """,
            "You divided by the root of how many numbers Q holds altogether, which grows with every word. What counts is d, how many numbers *one* vector has.",
            ROOT,
        ),
        known(
            "as many keys as queries",
            """
            def scaled_scores(Q, K):
                T = Q.shape[0]
                scores = torch.stack([torch.stack([(Q[i] * K[j]).sum() for j in range(T)]) for i in range(T)])
                return scores / math.sqrt(Q.shape[-1])
            """,
            "Both loops run over the number of queries. There may be more keys than queries, or fewer: the columns belong to K.",
            ROOT,
        ),
    ),
    variants=(
        right("matrix product", "def scaled_scores(q, k):\n    return q @ k.T / math.sqrt(q.shape[-1])\n"),
        right("Q scaled first", "def scaled_scores(Q, K):\n    return (Q * Q.size(-1) ** -0.5) @ K.mT\n"),
        right(
            "half on each side",
            "def scaled_scores(Q, K):\n    s = K.shape[1] ** -0.25\n    return torch.mm(Q * s, (K * s).t())\n",
        ),
        right("einsum", 'def scaled_scores(Q, K):\n    return torch.einsum("qd,kd->qk", Q, K) / Q.shape[-1] ** 0.5\n'),
        right(
            "loops",
            """
            def scaled_scores(Q, K):
                d = len(Q[0])
                return torch.stack([torch.stack([torch.dot(q, k) / d ** 0.5 for k in K]) for q in Q])
            """,
        ),
        right(
            "spread and sum",
            "def scaled_scores(Q, K):\n    return (Q[:, None] * K[None]).sum(-1).div(Q.new_tensor(Q.shape[-1]).sqrt())\n",
        ),
        right(
            "F.linear",
            "def scaled_scores(Q, K):\n    return F.linear(Q, K) / Q.shape[-1] ** 0.5\n",
        ),
        right(
            "double inside",
            "def scaled_scores(Q, K):\n    s = torch.inner(Q.double(), K.double())\n    return (s / math.sqrt(Q.shape[1])).to(Q.dtype)\n",
        ),
    ),
    hints=(
        "how many terms does one dot product add up here, and how fast does such a sum grow?",
        "Q (Tq, d) times K turned around (d, Tk) gives (Tq, Tk); the divisor is one number, the same for all cells.",
        "every query with every key as one matrix product; divide by the square root of the last axis' size.",
    ),
)

# ------------------------------------------------------------------------------------------------ 03.4 score_std

PAIRS = 5_000


def score_std(d: int, n: int, generator: torch.Generator) -> float:
    """The standard deviation of n dot products of d standard normal numbers each."""
    query, key = torch.randn(2, n, d, generator=generator)  # (pair, d)
    return similarity.dot(query, key).std().item()


def _spread(d: int, seed: int, n: int = PAIRS) -> Case:
    return Case((d, n, torch.Generator().manual_seed(seed)))


def _draw(g: torch.Generator, low: int, high: int) -> int:
    return int(torch.randint(low, high, (), generator=g))


STD_EXERCISE = Exercise(
    id="score-std",
    number="03.4",
    names=("score_std",),
    visible_points=1,
    hidden_points=2,
    section=MEASURE,
    reference={"score_std": score_std},
    # A measured standard deviation is itself uncertain: its relative error is the root of (kurtosis - 1) / 4n, where the
    # kurtosis is 3 + 6/d. Two right answers differ by 1.4 times that: 1.4 percent for d = 64, 2.2 for d = 2, 2.8 for
    # d = 1. Each rtol is more than five times as large. n stays small enough for a table of all n times n pairs.
    probes=(
        Probe("64 numbers", lambda g: _spread(64, 3), hidden=False, also=frozenset({"generator"}), rtol=0.09),
        Probe("2 numbers", lambda g: _spread(2, 4), hidden=False, also=frozenset({"state"}), rtol=0.12),
        Probe("3 numbers", lambda g: _spread(3, _draw(g, 0, 1 << 30)), rtol=0.12),
        Probe("many numbers", lambda g: _spread(_draw(g, 150, 300), _draw(g, 0, 1 << 30), n=4_000), rtol=0.09),
        Probe("one number", lambda g: _spread(1, _draw(g, 0, 1 << 30)), rtol=0.15),
        Probe(
            "drawn from the generator it was given",
            lambda g: _spread(_draw(g, 8, 13), _draw(g, 0, 1 << 30)),
            also=frozenset({"generator"}),
            rtol=0.09,
        ),
        Probe(
            "the global random state stays as it is",
            lambda g: _spread(_draw(g, 15, 25), _draw(g, 0, 1 << 30)),
            also=frozenset({"state"}),
            rtol=0.09,
        ),
    ),
    misconceptions=(
        known(
            "no growth with d",
            """
            def score_std(d, n, generator):
                q, k = torch.randn(n, d, generator=generator), torch.randn(n, d, generator=generator)
                return ((q * k).sum(dim=-1) / d ** 0.5).std().item()
            """,
            """Your number stays near 1 whatever d is. Either the d products of each pair were not added up, or the
            sums were divided by the root of d. The plain dot product is to be measured, to see how it grows.""",
            MEASURE,
            _yours,
        ),
        known(
            "variance",
            """
            def score_std(d, n, generator):
                q, k = torch.randn(n, d, generator=generator), torch.randn(n, d, generator=generator)
                return (q * k).sum(dim=-1).var().item()
            """,
            "This is the variance: it grows like d. The standard deviation is its square root.",
            MEASURE,
            _yours,
        ),
        known(
            "scaled twice, or cosines",
            """
            def score_std(d, n, generator):
                q, k = torch.randn(n, d, generator=generator), torch.randn(n, d, generator=generator)
                return ((q * k).sum(dim=-1) / d).std().item()
            """,
            """Your number *shrinks* when d grows, like 1 over the root of d. The dot products were divided by d (the root
            twice), or the vectors were brought to length 1 first. The plain dot product is to be measured.""",
            MEASURE,
            _yours,
        ),
        known(
            "spread of the features",
            """
            def score_std(d, n, generator):
                q = torch.randn(n, d, generator=generator)
                return q.std(dim=-1).mean().item()
            """,
            "The spread within a vector was measured. Multiply two vectors into one number first; then take the standard deviation over the n *pairs*.",
            MEASURE,
            _yours,
        ),
        known(
            "the two sizes exchanged",
            """
            def score_std(d, n, generator):
                q, k = torch.randn(d, n, generator=generator), torch.randn(d, n, generator=generator)
                return (q * k).sum(dim=-1).std().item()
            """,
            "d and n are exchanged: your vectors have n numbers each, so you got the root of n. d is the length of a vector, n the number of pairs.",
            MEASURE,
            _yours,
        ),
        known(
            "uniform numbers from 0 to 1",
            """
            def score_std(d, n, generator):
                q, k = torch.rand(n, d, generator=generator), torch.rand(n, d, generator=generator)
                return (q * k).sum(dim=-1).std().item()
            """,
            "Too small: torch.rand draws from 0 to 1, with mean 1/2 and variance 1/12. Standard normal numbers have mean 0 and variance 1.",
            MEASURE,
            _yours,
        ),
        known(
            "uniform numbers from -1 to 1",
            """
            def score_std(d, n, generator):
                q, k = 2 * torch.rand(2, n, d, generator=generator) - 1
                return (q * k).sum(dim=-1).std().item()
            """,
            "Three times too small: numbers between -1 and 1 have variance 1/3. Standard normal numbers have variance 1.",
            MEASURE,
            _yours,
        ),
        known(
            "a vector with itself",
            """
            def score_std(d, n, generator):
                q = torch.randn(n, d, generator=generator)
                return (q * q).sum(dim=-1).std().item()
            """,
            "Too large by the root of 2: each vector met itself. A query and a key are two *different* random vectors.",
            MEASURE,
            _yours,
        ),
        known(
            "mean size instead of standard deviation",
            """
            def score_std(d, n, generator):
                q, k = torch.randn(n, d, generator=generator), torch.randn(n, d, generator=generator)
                return (q * k).sum(dim=-1).abs().mean().item()
            """,
            "This is the mean absolute value, about 0.8 of the standard deviation. Square, average, take the root.",
            MEASURE,
            _yours,
        ),
        known(
            "signs dropped first",
            """
            def score_std(d, n, generator):
                q, k = torch.randn(n, d, generator=generator), torch.randn(n, d, generator=generator)
                return (q * k).sum(dim=-1).abs().std().item()
            """,
            "The signs were dropped before the spread was measured, which makes it about 0.6 of what it is.",
            MEASURE,
            _yours,
        ),
        known(
            "standard error of the mean",
            """
            def score_std(d, n, generator):
                q, k = torch.randn(n, d, generator=generator), torch.randn(n, d, generator=generator)
                return ((q * k).sum(dim=-1).std() / n ** 0.5).item()
            """,
            "This was divided by the root of n, which is how uncertain the *mean* of the dot products is. Their own spread does not shrink when you draw more of them.",
            MEASURE,
            _yours,
        ),
        known(
            "pairs added up",
            """
            def score_std(d, n, generator):
                q, k = torch.randn(n, d, generator=generator), torch.randn(n, d, generator=generator)
                return (q * k).sum(dim=0).std().item()
            """,
            "The sum ran over the n pairs instead of the d numbers of each, so you got about the root of n.",
            MEASURE,
            _yours,
        ),
        known(
            "one query for all pairs",
            """
            def score_std(d, n, generator):
                q = torch.randn(d, generator=generator)
                k = torch.randn(n, d, generator=generator)
                return (k @ q).std().item()
            """,
            """One query met all the keys, so you measured the length of that one query: another draw, another result. Each
            of the n pairs needs a query of its own.""",
            MEASURE,
            _yours,
        ),
        known(
            "the global random numbers",
            """
            def score_std(d, n, generator):
                q, k = torch.randn(n, d), torch.randn(n, d)
                return (q * k).sum(dim=-1).std().item()
            """,
            """The size is right, but the numbers came from torch's global random state, and the generator you were given
            was not used. Every function that draws takes it as an argument; then a run can be repeated.""",
            MEASURE,
        ),
        known(
            "generator for one of the two only",
            """
            def score_std(d, n, generator):
                q, k = torch.randn(n, d, generator=generator), torch.randn(n, d)
                return (q * k).sum(dim=-1).std().item()
            """,
            "One of the two draws used the global random state. Hand the generator to both.",
            MEASURE,
        ),
        known(
            "nothing drawn from the generator",
            "def score_std(d, n, generator):\n    return d ** 0.5\n",
            """The size is right, but nothing was drawn from the generator: a formula, or another library's random numbers.
            This exercise is the measurement that the formula is about.""",
            MEASURE,
        ),
        known(
            "a tensor instead of a number",
            """
            def score_std(d, n, generator):
                q, k = torch.randn(n, d, generator=generator), torch.randn(n, d, generator=generator)
                return (q * k).sum(dim=-1).std()
            """,
            "A tensor without axes came back; a plain Python number is wanted. A tensor of one number can hand it over.",
            MEASURE,
        ),
        known(
            "all the dot products",
            """
            def score_std(d, n, generator):
                q, k = torch.randn(n, d, generator=generator), torch.randn(n, d, generator=generator)
                return (q * k).sum(dim=-1)
            """,
            "You returned the n dot products themselves. Their standard deviation, one plain number, is wanted.",
            MEASURE,
        ),
        known(
            "the generator seeded anew",
            """
            def score_std(d, n, generator):
                generator.manual_seed(0)
                q = torch.randn(n, d, generator=generator)
                k = torch.randn(n, d, generator=generator)
                return (q * k).sum(-1).std().item()
            """,
            "The size is right, but the generator was given a seed of your own. Whoever passes it in has chosen where it stands: draw from it as it comes, or every call repeats the same experiment.",
            MEASURE,
        ),
    ),
    variants=(
        right(
            "two draws",
            """
            def score_std(d, n, generator):
                a = torch.randn(n, d, generator=generator)
                b = torch.randn(n, d, generator=generator)
                return float((a * b).sum(1).std())
            """,
        ),
        right(
            "other shape, no correction",
            'def score_std(d, n, rng):\n    x = torch.randn((2, d, n), generator=rng)\n    return torch.einsum("dn,dn->n", *x).std(correction=0).item()\n',
        ),
        right(
            "root of the mean square",
            """
            def score_std(d, n, generator):
                q = torch.empty(n, d).normal_(generator=generator)
                k = torch.empty(n, d).normal_(generator=generator)
                s = torch.bmm(q[:, None], k[:, :, None]).flatten()
                return math.sqrt((s ** 2).mean().item())
            """,
        ),
        right(
            "statistics of a list",
            """
            def score_std(d, n, generator):
                import statistics
                q = torch.normal(0.0, 1.0, (n, d), generator=generator)
                k = torch.normal(0.0, 1.0, (n, d), generator=generator)
                return statistics.stdev((q * k).sum(-1).tolist())
            """,
        ),
        right(
            "loop over the pairs",
            """
            def score_std(d, n, generator):
                total = squares = 0.0
                for q, k in torch.randn(n, 2, d, generator=generator):
                    s = torch.dot(q, k).item()
                    total, squares = total + s, squares + s * s
                return (squares / n - (total / n) ** 2) ** 0.5
            """,
        ),
        right(
            "signs are enough",
            """
            def score_std(d, n, generator):
                q, k = 2.0 * torch.randint(0, 2, (2, n, d), generator=generator) - 1
                return (q * k).sum(-1).std().item()
            """,
        ),
        right(
            "uniform of variance 1, in double",
            """
            def score_std(d, n, generator):
                q, k = (torch.rand(2, n, d, generator=generator, dtype=torch.float64) * 2 - 1) * 3 ** 0.5
                return (q * k).sum(-1).var().sqrt().item()
            """,
        ),
    ),
    hints=(
        "how many numbers do you have when the products of one pair are added up, and of how many is the spread taken?",
        "queries (n, d) and keys (n, d), both drawn with generator=generator; n dot products; one number.",
        "draw two tables of n rows and d standard normal numbers; row i with row i by a dot product; standard deviation of the n results, as a Python number.",
    ),
)

# ------------------------------------------------------------------------------------------------ 03.5 nearest

NAMES = ("door", "glass", "roof", "screen", "mouse", "keyboard", "garden", "cable", "curtain", "balcony", "wall")
_PLACES = {
    "windows": (1.0, 1.0),
    "screen": (2.2, 0.5),
    "computer": (3.0, 0.0),
    "the": (6.0, -1.0),
    "door": (1.0, 1.8),
    "rain": (-2.0, -2.2),
    "glass": (0.4, 2.0),
}


def nearest(word: str, vocab: dict[str, int], W: Tensor, k: int) -> list[str]:
    """The k other words whose vectors have the largest cosine with the word's own, best first."""
    own = vocab[word]
    similarities = similarity.cosine(W[own][None], W)[0]  # (V,)
    words = {row: name for name, row in vocab.items()}
    return [words[row] for row in similarities.argsort(descending=True).tolist() if row != own][:k]


def _map() -> tuple[dict[str, int], Tensor]:
    rows = (3, 0, 5, 1, 6, 2, 4)  # which row of W each word has
    W = torch.empty(7, 2)
    for row_number, place in zip(rows, _PLACES.values(), strict=True):
        W[row_number] = torch.tensor(place)
    return dict(zip(_PLACES, rows, strict=True)), W


def _search(
    g: torch.Generator,
    k: int,
    d: int,
    cosines: tuple[float, ...] = (0.9, 0.72, 0.5, 0.25, 0.1, -0.2, -0.5, -0.95),
    *,
    twin: float = 0.0,
    zero: bool = False,
    dtype: torch.dtype = torch.float32,
) -> Case:
    """A word and others at given cosines from it; the nearer in angle, the shorter, so that lengths mislead.

    twin: another word points the same way and is so many times as long; 0 for none. zero: another word has a vector of zeros.
    """
    own = torch.nn.functional.normalize(normal(g, d, dtype=torch.float64), dim=0)
    vectors = [own]
    for length, cosine_ in enumerate(cosines, start=1):
        across = normal(g, d, dtype=torch.float64)
        across = torch.nn.functional.normalize(across - (across @ own) * own, dim=0)
        vectors.append(0.8 * length * (cosine_ * own + math.sqrt(1 - cosine_**2) * across))
    vectors += [twin * own] if twin else []
    vectors += [0 * own] if zero else []
    order = torch.randperm(len(vectors), generator=g).tolist()
    if twin and order.index(0) < order.index(len(vectors) - 1):  # the twin stands in an earlier row
        place, other = order.index(0), order.index(len(vectors) - 1)
        order[place], order[other] = order[other], order[place]
    names = [NAMES[i] for i in torch.randperm(len(NAMES), generator=g).tolist()][: len(vectors)]
    listed = torch.randperm(len(names), generator=g).tolist()  # the dictionary lists its words in another order
    if listed == sorted(listed):
        listed = listed[::-1]
    W = torch.stack([vectors[i] for i in order]).to(dtype)
    return Case((names[order.index(0)], {names[i]: i for i in listed}, W, k))


def _list_of(evidence: Evidence) -> str:
    return f"You returned {', '.join(map(str, evidence.got[:4]))}; expected {', '.join(evidence.expected)}."


NEAREST_EXERCISE = Exercise(
    id="nearest",
    number="03.5",
    names=("nearest",),
    visible_points=1,
    hidden_points=2,
    section=NEAREST,
    reference={"nearest": nearest},
    probes=(
        Probe("three words near windows", lambda g: Case(("windows", *_map(), 3)), hidden=False),
        Probe(
            "four words, ten asked for",
            lambda g: Case(("windows", {name: i for i, name in enumerate(WORDS)}, EMBEDDINGS, 10)),
            hidden=False,
        ),
        Probe("other words, other sizes", lambda g: _search(g, 4, 5)),
        Probe("one word asked for", lambda g: _search(g, 1, 3)),
        Probe("as many as there are", lambda g: _search(g, 9, 6)),
        Probe("another word in the same direction", lambda g: _search(g, 2, 5, (0.8, 0.4, -0.3), twin=8.0)),
        Probe("another word with the very same vector", lambda g: _search(g, 3, 4, (0.7, 0.2, -0.6), twin=1.0)),
        Probe("a vector of zeros", lambda g: _search(g, 4, 5, (0.9, 0.6, 0.3, -0.4, -0.8), zero=True)),
        Probe("float64", lambda g: _search(g, 3, 7, dtype=torch.float64)),
        Probe("nothing else is touched", lambda g: _search(g, 3, 5), also=UNTOUCHED),
    ),
    misconceptions=(
        known(
            "itself included",
            """
            def nearest(word, vocab, W, k):
                sims = F.normalize(W, dim=-1) @ F.normalize(W[vocab[word]], dim=0)
                names = {i: w for w, i in vocab.items()}
                return [names[i] for i in sims.argsort(descending=True).tolist()][:k]
            """,
            "Nobody is nearer to a word than the word itself, so it came back as well. Leave it out; the k *others* are wanted.",
            NEAREST,
            _list_of,
        ),
        known(
            "itself counted among the k",
            """
            def nearest(word, vocab, W, k):
                sims = F.normalize(W, dim=-1) @ F.normalize(W[vocab[word]], dim=0)
                names = {i: w for w, i in vocab.items()}
                return [names[i] for i in sims.argsort(descending=True).tolist()[:k] if i != vocab[word]]
            """,
            "One word too few: the word itself was taken among the k and then dropped. Drop it first.",
            NEAREST,
            _list_of,
        ),
        known(
            "one too many",
            """
            def nearest(word, vocab, W, k):
                sims = F.normalize(W, dim=-1) @ F.normalize(W[vocab[word]], dim=0)
                names = {i: w for w, i in vocab.items()}
                return [names[i] for i in sims.argsort(descending=True).tolist() if i != vocab[word]][:k + 1]
            """,
            "One word too many came back. Room was made for the word itself, but it had been left out already.",
            NEAREST,
            _list_of,
        ),
        known(
            "first hit dropped, whoever it is",
            """
            def nearest(word, vocab, W, k):
                own = W[vocab[word]]
                sims = F.normalize(W, dim=-1) @ F.normalize(own, dim=0)
                sims = torch.where((sims - 1).abs() < 1e-5, 1.0, sims)
                names = {i: w for w, i in vocab.items()}
                return [names[i] for i in sims.argsort(descending=True, stable=True).tolist()][1:k + 1]
            """,
            """The first hit was dropped on the belief that it is the word itself. Another word may point exactly the same
            way (I and windows do), and then the wrong one goes. Leave the word out by its id.""",
            NEAREST,
            _list_of,
        ),
        known(
            "dot product instead of cosine",
            """
            def nearest(word, vocab, W, k):
                sims = W @ W[vocab[word]]
                names = {i: w for w, i in vocab.items()}
                return [names[i] for i in sims.argsort(descending=True, stable=True).tolist() if i != vocab[word]][:k]
            """,
            "The plain dot product was compared, so a long vector wins every search, whatever its direction. Compare by cosine.",
            COSINE,
            _list_of,
        ),
        known(
            "smallest distance instead of cosine",
            """
            def nearest(word, vocab, W, k):
                distances = (W - W[vocab[word]]).norm(dim=-1)
                names = {i: w for w, i in vocab.items()}
                return [names[i] for i in distances.argsort(stable=True).tolist() if i != vocab[word]][:k]
            """,
            "The words were sorted by the distance between their points. A long vector in the same direction is then far away; by cosine it is near.",
            COSINE,
            _list_of,
        ),
        known(
            "least similar first",
            """
            def nearest(word, vocab, W, k):
                sims = F.normalize(W, dim=-1) @ F.normalize(W[vocab[word]], dim=0)
                names = {i: w for w, i in vocab.items()}
                return [names[i] for i in sims.argsort().tolist() if i != vocab[word]][:k]
            """,
            "These are the *least* similar words: sorting puts the smallest number first.",
            NEAREST,
            _list_of,
        ),
        known(
            "right words, worst first",
            """
            def nearest(word, vocab, W, k):
                sims = F.normalize(W, dim=-1) @ F.normalize(W[vocab[word]], dim=0)
                names = {i: w for w, i in vocab.items()}
                return [names[i] for i in sims.argsort(descending=True).tolist() if i != vocab[word]][:k][::-1]
            """,
            "The right words in the wrong order: the nearest comes first.",
            NEAREST,
            _list_of,
        ),
        known(
            "in the order of the vocabulary",
            """
            def nearest(word, vocab, W, k):
                sims = F.normalize(W, dim=-1) @ F.normalize(W[vocab[word]], dim=0)
                best = [i for i in sims.argsort(descending=True).tolist() if i != vocab[word]][:k]
                return [w for w, i in vocab.items() if i in best]
            """,
            "The right words, but in the order in which the vocabulary lists them. The nearest comes first.",
            NEAREST,
            _list_of,
        ),
        known(
            "opposite counts as near",
            """
            def nearest(word, vocab, W, k):
                sims = (F.normalize(W, dim=-1) @ F.normalize(W[vocab[word]], dim=0)).abs()
                names = {i: w for w, i in vocab.items()}
                return [names[i] for i in sims.argsort(descending=True, stable=True).tolist() if i != vocab[word]][:k]
            """,
            "A word in the *opposite* direction came out as near: the sign of the cosine was dropped.",
            COSINE,
            _list_of,
        ),
        known(
            "ids instead of words",
            """
            def nearest(word, vocab, W, k):
                sims = F.normalize(W, dim=-1) @ F.normalize(W[vocab[word]], dim=0)
                return [i for i in sims.argsort(descending=True).tolist() if i != vocab[word]][:k]
            """,
            "You returned ids. Words are wanted; the vocabulary leads from words to ids, so you need it the other way round.",
            NEAREST,
            _list_of,
        ),
        known(
            "a tensor of ids",
            """
            def nearest(word, vocab, W, k):
                sims = F.normalize(W, dim=-1) @ F.normalize(W[vocab[word]], dim=0)
                sims[vocab[word]] = -2
                return sims.topk(min(k, len(vocab) - 1)).indices
            """,
            "You returned a tensor of ids. A list of words is wanted; the vocabulary leads from words to ids, so you need it the other way round.",
            NEAREST,
        ),
        known(
            "words with their similarities",
            """
            def nearest(word, vocab, W, k):
                sims = F.normalize(W, dim=-1) @ F.normalize(W[vocab[word]], dim=0)
                names = {i: w for w, i in vocab.items()}
                return [(names[i], sims[i].item()) for i in sims.argsort(descending=True).tolist() if i != vocab[word]][:k]
            """,
            "Pairs of a word and a number came back. Only the words are wanted.",
            NEAREST,
        ),
        known(
            "the place in the dictionary taken as the id",
            """
            def nearest(word, vocab, W, k):
                sims = F.normalize(W, dim=-1) @ F.normalize(W[vocab[word]], dim=0)
                names = list(vocab)
                return [names[i] for i in sims.argsort(descending=True).tolist() if i != vocab[word]][:k]
            """,
            "A word's place in the dictionary was taken for its id. The two agree only by luck: the id is the number *stored* with the word.",
            NEAREST,
            _list_of,
        ),
        known(
            "stops when k is too large",
            """
            def nearest(word, vocab, W, k):
                sims = F.normalize(W, dim=-1) @ F.normalize(W[vocab[word]], dim=0)
                sims[vocab[word]] = -2
                names = {i: w for w, i in vocab.items()}
                return [names[i] for i in sims.topk(k).indices.tolist()]
            """,
            "More words were asked for than there are, and your code stopped. Then all the others are wanted, sorted.",
            NEAREST,
        ),
        known(
            "itself last when k is large",
            """
            def nearest(word, vocab, W, k):
                sims = F.normalize(W, dim=-1) @ F.normalize(W[vocab[word]], dim=0)
                sims[vocab[word]] = -2
                names = {i: w for w, i in vocab.items()}
                return [names[i] for i in sims.argsort(descending=True).tolist()][:k]
            """,
            "The word itself was sent to the end of the list, and came back from there when many words were asked for. There are V - 1 others.",
            NEAREST,
        ),
        known(
            "own similarity set to 0",
            """
            def nearest(word, vocab, W, k):
                sims = F.normalize(W, dim=-1) @ F.normalize(W[vocab[word]], dim=0)
                sims[vocab[word]] = 0
                names = {i: w for w, i in vocab.items()}
                return [names[i] for i in sims.topk(min(k, len(vocab) - 1)).indices.tolist()]
            """,
            "The word's own similarity was set to 0, but others may be 0 or less, and then the word itself is listed before them. Leave it out, or make it smaller than any cosine.",
            NEAREST,
            _list_of,
        ),
        known(
            "a zero vector in front",
            """
            def nearest(word, vocab, W, k):
                D = W / W.norm(dim=-1, keepdim=True)
                sims = D @ D[vocab[word]]
                names = {i: w for w, i in vocab.items()}
                return [names[i] for i in sims.argsort(descending=True).tolist() if i != vocab[word]][:k]
            """,
            "A vector of zeros gave 0 over 0, which is NaN, and NaN has no place in an order: torch sorts it above every number. A word without any direction has similarity 0.",
            COSINE,
        ),
        known(
            "W changed in place",
            """
            def nearest(word, vocab, W, k):
                W /= W.norm(dim=-1, keepdim=True).clamp(min=1e-12)
                sims = W @ W[vocab[word]]
                names = {i: w for w, i in vocab.items()}
                return [names[i] for i in sims.argsort(descending=True).tolist() if i != vocab[word]][:k]
            """,
            "Your function changed the caller's W: after one search every word has length 1, and the embeddings are lost.",
            MANY,
        ),
        known(
            "everything with the same vector left out",
            """
            def nearest(word, vocab, W, k):
                own = W[vocab[word]]
                others = [other for other, row in vocab.items() if not torch.equal(W[row], own)]
                return sorted(others, key=lambda other: -F.cosine_similarity(own, W[vocab[other]], dim=0).item())[:k]
            """,
            "You left out every word whose vector equals the word's own. Another word may have the very same vector, and then nobody is nearer: leave out the word by its name or its id.",
            NEAREST,
        ),
        known(
            "everything in the same direction left out",
            """
            def nearest(word, vocab, W, k):
                own = W[vocab[word]]
                cosines = {other: F.cosine_similarity(own, W[row], dim=0).item() for other, row in vocab.items()}
                return [other for other in sorted(cosines, key=lambda o: -cosines[o]) if cosines[other] < 0.9999][:k]
            """,
            "You left out every word with a cosine of 1. Another word may point the same way, and then nobody is nearer: leave out the word by its name or its id.",
            NEAREST,
        ),
        known(
            "the caller's vocabulary changed",
            """
            def nearest(word, vocab, W, k):
                own = W[vocab[word]]
                del vocab[word]
                return sorted(vocab, key=lambda other: -F.cosine_similarity(own, W[vocab[other]], dim=0).item())[:k]
            """,
            "Your function took the word out of the caller's vocabulary (del, pop). The next search would not find it.",
            NEAREST,
        ),
    ),
    variants=(
        right(
            "argsort",
            """
            def nearest(word, vocab, W, k):
                D = F.normalize(W, dim=-1)
                order = torch.argsort(D @ D[vocab[word]], descending=True)
                names = {i: w for w, i in vocab.items()}
                return [names[int(i)] for i in order if int(i) != vocab[word]][:k]
            """,
        ),
        right(
            "topk",
            """
            def nearest(w, vocabulary, table, count):
                i = vocabulary[w]
                sims = F.cosine_similarity(table, table[i][None], dim=-1)
                sims[i] = -math.inf
                best = sims.topk(min(count, len(vocabulary) - 1)).indices.tolist()
                words = sorted(vocabulary, key=vocabulary.get)
                return [words[j] for j in best]
            """,
        ),
        right(
            "sorted words",
            """
            def nearest(word, vocab, W, k):
                def likeness(other):
                    a, b = W[vocab[word]], W[vocab[other]]
                    return (torch.dot(a, b) / (a.norm() * b.norm() + 1e-12)).item()
                return sorted((w for w in vocab if w != word), key=likeness, reverse=True)[:k]
            """,
        ),
        right(
            "heap",
            """
            def nearest(word, vocab, W, k):
                import heapq
                sims = F.normalize(W, dim=1) @ F.normalize(W[vocab[word]], dim=0)
                others = [w for w in vocab if w != word]
                return tuple(heapq.nlargest(k, others, key=lambda w: sims[vocab[w]]))
            """,
        ),
        right(
            "best one, again and again",
            """
            def nearest(word, vocab, W, k):
                left = {w: i for w, i in vocab.items() if w != word}
                found = []
                while left and len(found) < k:
                    best = max(left, key=lambda w: float(F.cosine_similarity(W[left[w]], W[vocab[word]], dim=0)))
                    found.append(best)
                    del left[best]
                return found
            """,
        ),
        right(
            "only the others' lengths matter",
            """
            def nearest(word, vocab, W, k):
                keep = [(w, i) for w, i in vocab.items() if w != word]
                V = W[[i for _, i in keep]]
                s = V @ W[vocab[word]] / V.norm(dim=-1).clamp(min=1e-9)
                return [keep[j][0] for j in s.sort(descending=True).indices[:k]]
            """,
        ),
        right(
            "angles, smallest first",
            """
            def nearest(word, vocab, W, k):
                D = F.normalize(W.double(), dim=-1)
                angles = torch.acos((D @ D[vocab[word]]).clamp(-1, 1))
                pairs = sorted((angles[i].item(), w) for w, i in vocab.items() if w != word)
                return [w for _, w in pairs[:k]]
            """,
        ),
    ),
    hints=(
        "who is always nearest to a word, and what does a long vector do to a dot product?",
        "W is (V, D), the word's own row (D); one similarity for each of the V rows; V - 1 of them are others.",
        "cosine of the word's row with every row; ids sorted by it, largest first; the word's own id left out; the first k; back from ids to words.",
    ),
)

ASSIGNMENT = Assignment(
    id="03_similarity",
    notebook="similarity",
    exercises=(DOT_EXERCISE, COSINE_EXERCISE, SCORES_EXERCISE, STD_EXERCISE, NEAREST_EXERCISE),
    visible_modules=(),
)
