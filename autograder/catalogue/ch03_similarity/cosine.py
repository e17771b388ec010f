"""03.2 cosine."""

import math

import torch
from torch import Tensor

from autograder.catalogue.ch03_similarity.shared import EMBEDDINGS, WORDS, _first_row, sections
from autograder.catalogue.exercise import Case, Exercise, Law, Probe
from autograder.catalogue.parts import GRADIENTS, UNTOUCHED, known, normal, right, sizes, turned
from transformer_ref.model import similarity

COSINE, MANY, TABLE = sections("cosine many table")

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


EXERCISE = Exercise(
    id="cosine",
    number="03.2",
    visible_points=1,
    hidden_points=2,
    section=COSINE,
    reference=cosine,
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
    wrong=(
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
    right=(
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
