"""Chapter 00, start here: five exercises, their probes, and the wrong answers that teachers know."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from autograder.catalogue.exercise import Assignment, Case, Evidence, Exercise, Law, Misconception, Probe, Section
from autograder.catalogue.parts import GRADIENTS, UNTOUCHED, known, normal, right, row, sizes, turned
from autograder.judging.compare import number

SHAPE = Section("00", "Reading a shape", "sec-00-shape")
PRODUCT = Section("00", "A product for each sentence", "sec-00-product")
SPREAD = Section("00", "When shapes meet", "sec-00-spread")
STRIP = Section("00", "One strip of numbers", "sec-00-strip")
TURN = Section("00", "Cutting or turning?", "sec-00-turn")
TRUE = Section("00", "Where is the first True?", "sec-00-true")
CONTRACT = Section("00", "The small print", "sec-00-contract")
PREDICT = Section("00", "Predict first", "sec-00-predict")


def _positive(g: torch.Generator, *shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """Numbers between 0.2 and 5.2, the same ones in every dtype up to rounding."""
    return (torch.rand(*shape, generator=g, dtype=torch.float64) * 5 + 0.2).to(dtype)


def _plain(tensor: Tensor) -> str:
    """The numbers of a row, whole ones without a point."""
    return " ".join(f"{value:g}" for value in tensor.tolist())


# ------------------------------------------------------------------------------------------------ 00.1 batch_matmul


def batch_matmul(a: Tensor, b: Tensor) -> Tensor:
    """The matrix product of a[i] and b[i], for every i."""
    return a @ b


_LEFT = torch.tensor([[[1.0, 2.0], [3.0, 4.0]], [[1.0, 0.0], [0.0, 2.0]]])
_RIGHT = torch.tensor([[[5.0, 6.0], [7.0, 8.0]], [[1.0, -1.0], [2.0, 0.0]]])


def _factors(g: torch.Generator, B: int, n: int, d: int, m: int, dtype: torch.dtype = torch.float32) -> Case:
    return Case((normal(g, B, n, d, dtype=dtype), normal(g, B, d, m, dtype=dtype)))


def _cell(evidence: Evidence) -> str:
    """The first number of the result that is wrong, with the product that should have made it."""
    got, expected = evidence.got, evidence.expected
    if tuple(got.shape) != tuple(expected.shape):
        return sizes(evidence)
    a, b = evidence.arguments
    i, r, c = (got - expected).abs().gt(1e-4).nonzero()[0].tolist()
    yours, wanted = number(got[i, r, c]), number(expected[i, r, c])
    if got.dtype != expected.dtype or a.shape[2] > 2:
        return f"At [{i}, {r}, {c}] you have {yours}, where {wanted} belongs."
    terms = " + ".join(f"{x:g}·{y:g}" for x, y in zip(a[i, r].tolist(), b[i, :, c].tolist(), strict=True))
    return f"At [{i}, {r}, {c}] you have {got[i, r, c]:g}; by hand it is {terms} = {expected[i, r, c]:g}."


MATMUL_EXERCISE = Exercise(
    id="batch-matmul",
    number="00.1",
    names=("batch_matmul",),
    visible_points=1,
    hidden_points=1,
    section=PRODUCT,
    reference={"batch_matmul": batch_matmul},
    probes=(
        Probe("two products by hand", lambda g: Case((_LEFT, _RIGHT)), hidden=False),
        Probe("(2, 3, 4) times (2, 4, 5)", lambda g: _factors(g, 2, 3, 4, 5), hidden=False),
        Probe("other sizes", lambda g: _factors(g, 3, 6, 2, 4)),
        Probe("a batch of one", lambda g: _factors(g, 1, 3, 4, 2)),
        Probe("d = 1", lambda g: _factors(g, 2, 3, 1, 4)),
        Probe(
            "float64, transposed in memory",
            lambda g: Case(tuple(turned(factor) for factor in _factors(g, 2, 3, 5, 4, torch.float64).arguments)),
        ),
        Probe("nothing else is touched", lambda g: _factors(g, 3, 2, 2, 2), also=UNTOUCHED),
        Probe("gradients", lambda g: _factors(g, 2, 4, 3, 5, torch.float64), also=GRADIENTS),
    ),
    misconceptions=(
        known(
            "cell by cell",
            "def batch_matmul(a, b):\n    return a * b\n",
            """You multiplied cell by cell: `*` lets each number meet the one at its own place. In a matrix product a whole
            *row* of a meets a whole *column* of b, and the products are added over the shared size d.""",
            PRODUCT,
            _cell,
        ),
        known(
            "b.T",
            "def batch_matmul(a, b):\n    return a @ b.T\n",
            """b already has d in the middle, so nothing has to be turned around. And .T turns *all three* axes around: it
            exchanges the batch with the columns.""",
            PRODUCT,
            _cell,
        ),
        known(
            "b with its last two axes exchanged",
            "def batch_matmul(a, b):\n    return a @ b.transpose(1, 2)\n",
            """b was turned around before the product, so rows of a met *rows* of b. b has shape (B, d, m): its d stands in the
            middle already, where the product wants it.""",
            PRODUCT,
            _cell,
        ),
        known(
            "a with its last two axes exchanged",
            "def batch_matmul(a, b):\n    return a.transpose(1, 2) @ b\n",
            "a was turned around before the product, so *columns* of a met columns of b. a has shape (B, n, d): its d is last already, where the product wants it.",
            PRODUCT,
            _cell,
        ),
        known(
            "b times a",
            "def batch_matmul(a, b):\n    return b @ a\n",
            "The two factors are exchanged. b @ a is another product than a @ b; here the rows of *a* meet the columns of b.",
            PRODUCT,
            _cell,
        ),
        known(
            "the other way round",
            "def batch_matmul(a, b):\n    return (a @ b).transpose(1, 2)\n",
            "The right numbers, with rows and columns exchanged: your result is (B, m, n). A row for each row of a is wanted, (B, n, m).",
            SHAPE,
            _cell,
        ),
        known(
            "first pair only",
            "def batch_matmul(a, b):\n    return a[0] @ b[0]\n",
            "One axis is missing: only the first matrix of the batch was multiplied. The result holds one product for *each* of the B pairs.",
            PRODUCT,
            sizes,
        ),
        known(
            "first product for all",
            "def batch_matmul(a, b):\n    return (a[0] @ b[0]).expand(a.shape[0], -1, -1)\n",
            "Matrix 1 of your result is a copy of matrix 0. Each pair of the batch has a product of its own.",
            PRODUCT,
        ),
        known(
            "loop left too early",
            """
            def batch_matmul(a, b):
                out = torch.zeros(a.shape[0], a.shape[1], b.shape[2], dtype=a.dtype)
                for i in range(a.shape[0]):
                    out[i] = a[i] @ b[i]
                    return out
            """,
            "Matrix 0 is right and what follows is all zeros: the loop was left too early. Is the `return` indented too far, or does the range end one short?",
            PRODUCT,
        ),
        known(
            "first pair forgotten",
            """
            def batch_matmul(a, b):
                out = torch.zeros(a.shape[0], a.shape[1], b.shape[2], dtype=a.dtype)
                for i in range(1, a.shape[0]):
                    out[i] = a[i] @ b[i]
                return out
            """,
            "Matrix 0 is all zeros and the rest is right: the loop begins with 1. The first pair has the index 0.",
            PRODUCT,
        ),
        known(
            "b cut anew",
            "def batch_matmul(a, b):\n    return a @ b.reshape(b.shape[0], b.shape[2], b.shape[1])\n",
            "b was cut into another shape before the product, and its shape fits as it is: its d stands in the middle, where the product wants it.",
            PRODUCT,
        ),
        known(
            "one a for every b",
            "def batch_matmul(a, b):\n    return a[0] @ b\n",
            "Every b met the *first* a. Pair i is a[i] with b[i].",
            PRODUCT,
        ),
        known(
            "one b for every a",
            "def batch_matmul(a, b):\n    return a @ b[0]\n",
            "Every a met the *first* b. Pair i is a[i] with b[i].",
            PRODUCT,
        ),
        known(
            "batch summed away",
            'def batch_matmul(a, b):\n    return torch.einsum("bnd,bdm->nm", a, b)\n',
            "The batch size vanished from your shape: the products of the pairs were added together. Each pair keeps a product of its own.",
            PRODUCT,
            sizes,
        ),
        known(
            "every a with every b",
            'def batch_matmul(a, b):\n    return torch.einsum("bnd,cdm->bcnm", a, b)\n',
            "An axis too many: every matrix of a met every matrix of b. Only those at the same place in the batch belong together.",
            PRODUCT,
            sizes,
        ),
        known(
            "every a with every b, as tensordot lays it out",
            "def batch_matmul(a, b):\n    return torch.tensordot(a, b, dims=([2], [1]))\n",
            "An axis too many: every matrix of a met every matrix of b. Only those at the same place in the batch belong together.",
            PRODUCT,
            sizes,
        ),
        known(
            "batch laid flat",
            "def batch_matmul(a, b):\n    return a.reshape(-1, a.shape[2]) @ b.reshape(b.shape[1], -1)\n",
            "The batch was poured into one big matrix, so rows met columns of *other* pairs, and cutting b anew scrambled it.",
            STRIP,
            sizes,
        ),
        known(
            "products not added",
            "def batch_matmul(a, b):\n    return a[:, :, :, None] * b[:, None, :, :]\n",
            "The products are all there, but nobody added them: your result still has the axis d. Each cell is a *sum* over d.",
            PRODUCT,
            sizes,
        ),
        known(
            "added along the wrong axis",
            "def batch_matmul(a, b):\n    return (a[:, :, :, None] * b[:, None, :, :]).sum(dim=-1)\n",
            "The sum ran over the columns m, and d is still there. d is the size that a and b share; it is the one to disappear.",
            PRODUCT,
            _cell,
        ),
        known(
            "mean instead of sum",
            "def batch_matmul(a, b):\n    return (a[:, :, :, None] * b[:, None, :, :]).mean(dim=2)\n",
            "Your numbers are the right ones divided by d: the products were averaged. A matrix product adds them.",
            PRODUCT,
            _cell,
        ),
        known(
            "two-dimensional product",
            "def batch_matmul(a, b):\n    return torch.mm(a, b)\n",
            "torch.mm takes two matrices and nothing else; yours have a batch axis in front. Another product of torch carries such an axis along.",
            PRODUCT,
        ),
        known(
            "torch.dot",
            "def batch_matmul(a, b):\n    return torch.dot(a, b)\n",
            "torch.dot takes two single vectors. Here whole batches of matrices meet: another product of torch does that.",
            PRODUCT,
        ),
        known(
            "rounded",
            "def batch_matmul(a, b):\n    return (a @ b).round()\n",
            "Your numbers were rounded to whole ones. The pair by hand holds only whole numbers, so it could not show.",
            CONTRACT,
        ),
        known(
            "whole numbers",
            "def batch_matmul(a, b):\n    return a.long() @ b.long()\n",
            "The dtype changed: floats went in and integers came out, and every fraction was cut off.",
            CONTRACT,
            shows=lambda evidence: not evidence.got.is_floating_point(),
        ),
        known(
            "always float32",
            "def batch_matmul(a, b):\n    return a.float() @ b.float()\n",
            "float64 went in and float32 came out. A result keeps the dtype of its input; a new tensor is float32 unless told otherwise.",
            CONTRACT,
        ),
        known(
            "cut off from the gradient",
            "def batch_matmul(a, b):\n    return a.detach() @ b.detach()\n",
            "The values are right, but no gradient flows back: .detach(), .data, .item() or numpy cut the way, and nothing behind it could ever learn.",
            CONTRACT,
        ),
        known(
            "through numpy",
            "def batch_matmul(a, b):\n    return torch.from_numpy(a.numpy() @ b.numpy())\n",
            "The values are right, and your code stops where a gradient is asked for: NumPy knows nothing of gradients. Stay in torch from beginning to end.",
            CONTRACT,
        ),
        known(
            "a list of matrices",
            "def batch_matmul(a, b):\n    return [x @ y for x, y in zip(a, b)]\n",
            "A Python list of B matrices came back. One tensor of shape (B, n, m) is wanted; torch can stack the list.",
            PRODUCT,
            shows=lambda evidence: isinstance(evidence.got, list),
        ),
        known(
            "side by side instead of stacked",
            "def batch_matmul(a, b):\n    return torch.cat([x @ y for x, y in zip(a, b)])\n",
            "The products were put end to end into one long matrix, so the batch axis is gone. A *new* axis is wanted: stacking makes one, joining does not.",
            PRODUCT,
            sizes,
        ),
        known(
            "batch of one squeezed away",
            "def batch_matmul(a, b):\n    return (a @ b).squeeze()\n",
            "With one pair the batch axis of size 1 vanished. squeeze() removes every axis of size 1; this one must stay.",
            SHAPE,
        ),
        known(
            "written into a",
            """
            def batch_matmul(a, b):
                if a.shape[2] != b.shape[2] or a.requires_grad:
                    return a @ b
                for i in range(len(a)):
                    a[i] = a[i] @ b[i]
                return a
            """,
            "The products were written into a, so the caller's tensor is lost. Write into a new one.",
            CONTRACT,
        ),
    ),
    variants=(
        right("at", "def batch_matmul(a, b):\n    return a @ b\n"),
        right("matmul, other names", "def batch_matmul(left, right):\n    return torch.matmul(left, right)\n"),
        right("bmm", "def batch_matmul(a, b):\n    return torch.bmm(a, b)\n"),
        right("einsum", 'def batch_matmul(x, y):\n    return torch.einsum("bij,bjk->bik", x, y)\n'),
        right("elementwise and sum", "def batch_matmul(a, b):\n    return (a.unsqueeze(3) * b.unsqueeze(1)).sum(2)\n"),
        right(
            "a list, stacked",
            "def batch_matmul(a, b):\n    return torch.stack([one @ other for one, other in zip(a, b)])\n",
        ),
        right(
            "three loops",
            """
            def batch_matmul(a, b):
                B, n, d = a.shape
                m = b.shape[2]
                out = torch.zeros(B, n, m, dtype=a.dtype)
                for i in range(B):
                    for r in range(n):
                        for c in range(m):
                            for k in range(d):
                                out[i, r, c] += a[i, r, k] * b[i, k, c]
                return out
            """,
        ),
        right(
            "one matrix at a time",
            """
            def batch_matmul(a, b):
                out = a.new_empty(a.size(0), a.size(1), b.size(2))
                for i in range(a.size(0)):
                    out[i] = torch.mm(a[i], b[i])
                return out
            """,
        ),
        right(
            "through double",
            "def batch_matmul(a, b):\n    return (a.double() @ b.double()).to(a.dtype)\n",
        ),
        right(
            "rows met by columns",
            """
            def batch_matmul(a, b):
                columns = [torch.sum(a * b[:, :, c].unsqueeze(1), dim=-1) for c in range(b.shape[-1])]
                return torch.stack(columns, dim=-1)
            """,
        ),
        right("baddbmm", "def batch_matmul(a, b):\n    return torch.baddbmm(torch.zeros((), dtype=a.dtype), a, b)\n"),
        right(
            "vmap",
            "def batch_matmul(a, b):\n    return torch.vmap(torch.mm)(a, b)\n",
        ),
    ),
    hints=(
        "do one pair on paper first. Which size do a and b share, and is it still there in the result?",
        "(B, n, d) and (B, d, m): B is carried along, d is summed away, (B, n, m) is left.",
        "for each i in the batch, the matrix product of a[i] and b[i]; stack the products. (torch has a sign that does all of them at once.)",
    ),
)

# ------------------------------------------------------------------------------------------------ 00.2 row_normalize


def row_normalize(x: Tensor) -> Tensor:
    """Each row divided by its own sum."""
    return x / x.sum(dim=1, keepdim=True)


_ROWS = torch.tensor([[1.0, 2.0, 1.0], [5.0, 2.0, 1.0]])


def _three_decimals(sums: Tensor) -> str:
    """Sums as a reader would write them, a rounding error as 0."""
    return " ".join(f"{round(value, 3) + 0.0:.3f}" for value in sums.tolist())


def _row_sums(evidence: Evidence) -> str:
    if tuple(evidence.got.shape) != tuple(evidence.expected.shape):
        return sizes(evidence)
    return f"Your rows sum to {_three_decimals(evidence.got.sum(1))}, your columns to {_three_decimals(evidence.got.sum(0))}."


def _largest(evidence: Evidence) -> str:
    return f"The largest entries of your rows are {row(evidence.got.amax(1))}, and your rows sum to {row(evidence.got.sum(1))}."


def _total(evidence: Evidence) -> str:
    return f"Your rows sum to {row(evidence.got.sum(1))}, all numbers together to {evidence.got.sum():.3f}."


NORMALIZE_EXERCISE = Exercise(
    id="row-normalize",
    number="00.2",
    names=("row_normalize",),
    visible_points=1,
    hidden_points=1,
    section=SPREAD,
    reference={"row_normalize": row_normalize},
    probes=(
        Probe(
            "two rows by hand",
            lambda g: Case((_ROWS,)),
            hidden=False,
            laws=(Law("every row sums to 1", lambda got: torch.allclose(got.sum(1), torch.ones(()), atol=1e-4)),),
        ),
        Probe("three rows of three", lambda g: Case((_positive(g, 3, 3),))),
        Probe("one row of four", lambda g: Case((_positive(g, 1, 4),))),
        Probe("four rows of one", lambda g: Case((_positive(g, 4, 1),))),
        Probe("other sizes", lambda g: Case((_positive(g, 4, 6),))),
        Probe(
            "a row of large and a row of small numbers",
            lambda g: Case((_positive(g, 3, 5) * torch.tensor([[1000.0], [1.0], [0.1]]),)),
        ),
        Probe(
            "float64, transposed in memory",
            lambda g: Case((turned(_positive(g, 5, 4, dtype=torch.float64)),)),
        ),
        Probe("nothing else is touched", lambda g: Case((_positive(g, 4, 5),)), also=UNTOUCHED),
        Probe("gradients", lambda g: Case((_positive(g, 3, 4, dtype=torch.float64),)), also=GRADIENTS),
    ),
    misconceptions=(
        known(
            "row sums that lie flat",
            "def row_normalize(x):\n    return x / x.sum(dim=1)\n",
            """The row sums came out as a flat (n), and shapes are laid over each other from the *right*: (n) looks like a row,
            so it meets the columns. With 2 rows of 3 that stops with an error; with 3 rows of 3 it silently divides
            *columns* by row sums. The sums must stand upright, as (n, 1).""",
            SPREAD,
        ),
        known(
            "column sums",
            "def row_normalize(x):\n    return x / x.sum(dim=0)\n",
            "Each *column* was divided by its sum. `dim` names the axis that disappears: to add up along a row, the axis of the columns has to go.",
            SPREAD,
            _row_sums,
        ),
        known(
            "sum of everything",
            "def row_normalize(x):\n    return x / x.sum()\n",
            "The whole table sums to 1, not each row: without an axis, sum() adds up everything there is.",
            SPREAD,
            _total,
        ),
        known(
            "in place",
            "def row_normalize(x):\n    x /= x.sum(dim=1, keepdim=True)\n    return x\n",
            """Your function changed the caller's tensor: `/=`, x[i] = ..., and methods that end in _ write into what was
            handed in. Whoever called it has lost the original numbers. Divide into a new tensor.""",
            CONTRACT,
        ),
        known(
            "largest instead of sum",
            "def row_normalize(x):\n    return x / x.amax(dim=1, keepdim=True)\n",
            "The largest entry of each row is 1: you divided by the maximum. The *sum* of each row should be 1.",
            SPREAD,
            _largest,
        ),
        known(
            "mean instead of sum",
            "def row_normalize(x):\n    return x / x.mean(dim=1, keepdim=True)\n",
            "You divided by the mean of each row, so a row of m numbers sums to m. Divide by its sum.",
            SPREAD,
            _row_sums,
        ),
        known(
            "length instead of sum",
            "def row_normalize(x):\n    return x / x.norm(dim=1, keepdim=True)\n",
            "You divided by the length of each row as an arrow, the root of the sum of squares (as F.normalize does). Here the numbers themselves should sum to 1.",
            SPREAD,
            _row_sums,
        ),
        known(
            "divided by the number of columns",
            "def row_normalize(x):\n    return x / x.shape[1]\n",
            "Every number was divided by how many there are in a row. Divide by how much they *add up to*, which differs from row to row.",
            SPREAD,
            _row_sums,
        ),
        known(
            "softmax",
            "def row_normalize(x):\n    return torch.softmax(x, dim=1)\n",
            "Your rows do sum to 1, but the shares are others: softmax takes powers first, and that is chapter 04. Here 2 gets twice the share of 1.",
            SPREAD,
            lambda evidence: f"Your first row is {row(evidence.got[0])}; by hand it is {row(evidence.expected[0])}.",
        ),
        known(
            "mean taken away",
            "def row_normalize(x):\n    return x - x.mean(dim=1, keepdim=True)\n",
            "The mean was taken away from each row, so each row sums to 0. Dividing keeps proportions; taking away does not.",
            SPREAD,
            _row_sums,
        ),
        known(
            "sum taken away",
            "def row_normalize(x):\n    return x - x.sum(dim=1, keepdim=True)\n",
            "The sum of each row was taken away. To make shares of it, *divide* by the sum.",
            SPREAD,
            _row_sums,
        ),
        known(
            "from 0 to 1",
            """
            def row_normalize(x):
                low, high = x.amin(dim=1, keepdim=True), x.amax(dim=1, keepdim=True)
                return (x - low) / (high - low)
            """,
            "The smallest of each row became 0 and the largest 1. That is another way to normalize; here each row should *sum* to 1.",
            SPREAD,
            _largest,
        ),
        known(
            "mean 0 and spread 1",
            "def row_normalize(x):\n    return (x - x.mean(dim=1, keepdim=True)) / x.std(dim=1, keepdim=True)\n",
            "Each row now has mean 0 and standard deviation 1. That kind of normalizing comes in chapter 09; here each row should sum to 1.",
            SPREAD,
            _row_sums,
        ),
        known(
            "upside down",
            "def row_normalize(x):\n    return x.sum(dim=1, keepdim=True) / x\n",
            "The fraction stands on its head: you divided the sum by the numbers.",
            SPREAD,
            lambda evidence: f"Your first row is {row(evidence.got[0])}; by hand it is {row(evidence.expected[0])}.",
        ),
        known(
            "largest of all",
            "def row_normalize(x):\n    return x / x.max()\n",
            "Everything was divided by the one largest number of the table. Each row should be divided by its own *sum*.",
            SPREAD,
            _row_sums,
        ),
        known(
            "both things that max returns",
            "def row_normalize(x):\n    return x / x.max(dim=1, keepdim=True)\n",
            "With a `dim`, max returns two things, the values and their places, and a pair cannot divide. But the largest number is not what is wanted here: divide by the *sum*.",
            SPREAD,
        ),
        known(
            "divided by the number of rows",
            "def row_normalize(x):\n    return x / len(x)\n",
            "len(x) is the number of rows, the same for every number of the table. Divide each row by what it adds up to.",
            SPREAD,
            _row_sums,
        ),
        known(
            "nothing done",
            "def row_normalize(x):\n    for line in x:\n        line = line / line.sum()\n    return x\n",
            "x came back as it was. In a loop, `line = ...` gives a *new* tensor that name and leaves x alone; collect the new rows.",
            SPREAD,
            _row_sums,
        ),
        known(
            "only the sums",
            "def row_normalize(x):\n    return x.sum(dim=1)\n",
            "The row sums came back. They are what to divide *by*; the result has the shape of x.",
            SPREAD,
            sizes,
        ),
        known(
            "only the sums, upright",
            "def row_normalize(x):\n    return x.sum(dim=1, keepdim=True)\n",
            "The row sums came back. They are what to divide *by*; the result has the shape of x.",
            SPREAD,
            sizes,
        ),
        known(
            "turned and not turned back",
            "def row_normalize(x):\n    return x.T / x.sum(dim=1)\n",
            "The numbers are right and lie on their side: x was turned so that the sums would fit, and never turned back. The result has the shape of x.",
            SPREAD,
            sizes,
        ),
        known(
            "first row only",
            "def row_normalize(x):\n    for line in x:\n        return line / line.sum()\n",
            "One row came back: the loop was left in its first round. Collect the rows, and return after the loop.",
            SPREAD,
            sizes,
        ),
        known(
            "first row's sum for all",
            "def row_normalize(x):\n    return x / x[0].sum()\n",
            "Every row was divided by the sum of row 0. Each row has a sum of its own.",
            SPREAD,
            _row_sums,
        ),
        known(
            "last row's sum for all",
            "def row_normalize(x):\n    for line in x:\n        total = line.sum()\n    return x / total\n",
            "Every row was divided by the sum of the *last* row: the loop kept only its latest total. Each row has a sum of its own.",
            SPREAD,
            _row_sums,
        ),
        known(
            "rows put end to end",
            "def row_normalize(x):\n    return torch.cat([line / line.sum() for line in x])\n",
            "The right numbers in one long row: joining puts the rows end to end. A *new* axis is wanted: stacking makes one.",
            SPREAD,
            sizes,
        ),
        known(
            "a list of rows",
            "def row_normalize(x):\n    return [line / line.sum() for line in x]\n",
            "A Python list of rows came back. One tensor of the shape of x is wanted; torch can stack the list.",
            SPREAD,
            shows=lambda evidence: isinstance(evidence.got, list),
        ),
        known(
            "whole-number division",
            "def row_normalize(x):\n    return x // x.sum(dim=1, keepdim=True)\n",
            "Everything is 0: `//` divides and throws the fraction away.",
            CONTRACT,
        ),
        known(
            "rounded",
            "def row_normalize(x):\n    return (x / x.sum(dim=1, keepdim=True)).round(decimals=3)\n",
            "Your shares are rounded to a few digits, so rows no longer sum to 1 exactly. Round when you print, never when you compute.",
            CONTRACT,
            shows=lambda evidence: any(
                torch.allclose(evidence.got, evidence.expected.round(decimals=digits)) for digits in range(5)
            ),
        ),
        known(
            "percent",
            "def row_normalize(x):\n    return 100 * x / x.sum(dim=1, keepdim=True)\n",
            "Those are percentages: each row sums to 100. Here the shares are fractions of 1.",
            SPREAD,
            _row_sums,
        ),
        known(
            "something added below",
            "def row_normalize(x):\n    return x / (x.sum(dim=1, keepdim=True) + 1e-3)\n",
            """The sum was made a little larger before dividing, against a division by 0. These numbers are positive, so their
            sum never is 0, and in a row of small numbers the shares come out too small.""",
            SPREAD,
            lambda evidence: f"Your first row sums to {evidence.got[0].sum():.6f}.",
        ),
        known(
            "always float32",
            "def row_normalize(x):\n    return x.float() / x.float().sum(dim=1, keepdim=True)\n",
            "float64 went in and float32 came out. A result keeps the dtype of its input; a new tensor is float32 unless told otherwise.",
            CONTRACT,
        ),
        known(
            "cut off from the gradient",
            "def row_normalize(x):\n    x = x.detach()\n    return x / x.sum(dim=1, keepdim=True)\n",
            "The values are right, but no gradient flows back: .detach(), .data, .item() or numpy cut the way, and nothing behind it could ever learn.",
            CONTRACT,
        ),
        known(
            "sums as plain numbers",
            "def row_normalize(x):\n    return torch.stack([line / line.sum().item() for line in x])\n",
            "The values are right, but the gradient is not: .item() turns the sum into a plain number, and the way back through it is cut.",
            CONTRACT,
        ),
        known(
            "through numpy",
            "def row_normalize(x):\n    return torch.from_numpy(x.numpy() / x.numpy().sum(axis=1, keepdims=True))\n",
            "The values are right, and your code stops where a gradient is asked for: NumPy knows nothing of gradients. Stay in torch from beginning to end.",
            CONTRACT,
        ),
        known(
            "one row squeezed",
            "def row_normalize(x):\n    return (x / x.sum(dim=1, keepdim=True)).squeeze()\n",
            "With a single row (or a single column) an axis of size 1 vanished. squeeze() removes every such axis; the result has the shape of x.",
            SHAPE,
        ),
    ),
    variants=(
        right("keepdim", "def row_normalize(x):\n    return x / x.sum(dim=1, keepdim=True)\n"),
        right("last axis", "def row_normalize(table):\n    return table / table.sum(-1, keepdim=True)\n"),
        right("a new axis by None", "def row_normalize(x):\n    return x / x.sum(1)[:, None]\n"),
        right(
            "unsqueeze", "def row_normalize(x):\n    s = torch.sum(x, dim=1)\n    return torch.div(x, s.unsqueeze(1))\n"
        ),
        right("einsum", 'def row_normalize(x):\n    return torch.einsum("nm,n->nm", x, 1 / x.sum(dim=1))\n'),
        right("turned twice", "def row_normalize(x):\n    return (x.T / x.sum(axis=1)).T\n"),
        right("F.normalize with p=1", "def row_normalize(x):\n    return F.normalize(x, p=1, dim=1)\n"),
        right("rows, stacked", "def row_normalize(x):\n    return torch.stack([r / r.sum() for r in x])\n"),
        right(
            "loops",
            """
            def row_normalize(x):
                out = torch.zeros_like(x)
                for i in range(x.shape[0]):
                    total = 0
                    for j in range(x.shape[1]):
                        total = total + x[i, j]
                    for j in range(x.shape[1]):
                        out[i, j] = x[i, j] / total
                return out
            """,
        ),
        right(
            "a copy, then in place",
            "def row_normalize(x):\n    y = x.clone()\n    y /= y.sum(dim=1, keepdim=True)\n    return y\n",
        ),
        right(
            "times a column of ones",
            "def row_normalize(x):\n    ones = torch.ones(x.shape[1], 1, dtype=x.dtype)\n    return x / (x @ ones)\n",
        ),
        right("softmax of logarithms", "def row_normalize(x):\n    return torch.softmax(x.log(), dim=1)\n"),
        right(
            "sums written out in full",
            "def row_normalize(x):\n    s = x.sum(dim=1).view(-1, 1).expand(x.shape)\n    return x / s\n",
        ),
    ),
    hints=(
        "print the shape of the sums before you divide. Which way do they lie?",
        "x is (n, m); one sum for each row is n numbers, and to meet the rows they must stand as (n, 1).",
        "add along each row, keeping the axis that was added up as an axis of size 1; divide x by that; return a new tensor.",
    ),
)

# ------------------------------------------------------------------------------------------------ 00.3 swap_batch_time


def swap_batch_time(x: Tensor) -> Tensor:
    """The first two axes exchanged: place [t, b] holds what was at [b, t]."""
    return x.transpose(0, 1)


def _labeled(B: int, T: int, D: int) -> Tensor:
    """Numbers that say where they were: 123 is sentence 1, word 2, feature 3."""
    return (
        100.0 * torch.arange(B)[:, None, None] + 10.0 * torch.arange(T)[:, None] + torch.arange(D, dtype=torch.float32)
    )


def _stands(evidence: Evidence) -> str:
    """The first row that is not where it belongs, told by its numbers, which say where they were."""
    got, expected = evidence.got, evidence.expected
    if tuple(got.shape) != tuple(expected.shape):
        return sizes(evidence)
    off = (got != expected).any(-1).nonzero()
    t, b = off[0].tolist()
    return f"At [{t}, {b}] word {t} of sentence {b} belongs: {_plain(expected[t, b])}. Yours holds {_plain(got[t, b])}."


SWAP_EXERCISE = Exercise(
    id="swap-batch-time",
    number="00.3",
    names=("swap_batch_time",),
    visible_points=1,
    hidden_points=1,
    section=TURN,
    reference={"swap_batch_time": swap_batch_time},
    probes=(
        Probe("2 sentences of 3 words", lambda g: Case((_labeled(2, 3, 4),)), hidden=False),
        Probe("other sizes", lambda g: Case((normal(g, 5, 3, 2),))),
        Probe("as many sentences as words", lambda g: Case((normal(g, 4, 4, 3),))),
        Probe("one sentence", lambda g: Case((normal(g, 1, 5, 3),))),
        Probe("one word", lambda g: Case((normal(g, 4, 1, 3),))),
        Probe("whole numbers", lambda g: Case((torch.randint(-90, 90, (3, 4, 2), generator=g),))),
        Probe("float64, transposed in memory", lambda g: Case((turned(normal(g, 3, 5, 4, dtype=torch.float64)),))),
        Probe("nothing else is touched", lambda g: Case((normal(g, 3, 3, 3),)), also=UNTOUCHED),
        Probe("gradients", lambda g: Case((normal(g, 3, 2, 4, dtype=torch.float64),)), also=GRADIENTS),
    ),
    misconceptions=(
        known(
            "view or reshape",
            "def swap_batch_time(x):\n    return x.reshape(x.shape[1], x.shape[0], x.shape[2])\n",
            """The shape is right and the contents are scrambled: view and reshape never move a number, they cut the same strip
            anew. Nothing was turned.""",
            TURN,
            _stands,
        ),
        known(
            ".T",
            "def swap_batch_time(x):\n    return x.T\n",
            "The features came first and the sentences last: that is what .T does with three axes, or an exchange of axes 0 and 2. Only the first two axes, 0 and 1, change places.",
            TURN,
            sizes,
        ),
        known(
            "nothing done",
            "def swap_batch_time(x):\n    return x\n",
            "x came back as it was (or was taken apart and put together the same way). The first axis should count words now, the second sentences.",
            TURN,
            sizes,
        ),
        known(
            "nothing done when B equals T",
            "def swap_batch_time(x):\n    if x.shape[0] == x.shape[1]:\n        return x\n    return x.transpose(0, 1)\n",
            "When there are as many sentences as words, x came back as it was. The *shape* is the same then, but every word still has to change places.",
            TURN,
        ),
        known(
            "words and features exchanged",
            "def swap_batch_time(x):\n    return x.transpose(1, 2)\n",
            "You swapped words and features, the last two axes. Axes count from 0: the batch is 0, the words are 1, the features 2.",
            TURN,
            sizes,
        ),
        known(
            "axes moved round, features first",
            "def swap_batch_time(x):\n    return x.permute(2, 0, 1)\n",
            "All three axes moved, and the features came first. Read the list of permute as: which *old* axis comes here? The last one stays where it is.",
            TURN,
            sizes,
        ),
        known(
            "axes moved round, sentences last",
            "def swap_batch_time(x):\n    return x.permute(1, 2, 0)\n",
            "All three axes moved, and the sentences came last. Read the list of permute as: which *old* axis comes here? The last one stays where it is.",
            TURN,
            sizes,
        ),
        known(
            "only two axes named",
            "def swap_batch_time(x):\n    return x.permute(1, 0)\n",
            "permute wants to hear about *every* axis, also about those that stay: three axes, three numbers.",
            TURN,
        ),
        known(
            "torch.t",
            "def swap_batch_time(x):\n    return x.t()\n",
            "t() is for tables with two axes; yours has three. There is another word for exchanging two axes of many.",
            TURN,
        ),
        known(
            "mirrored instead of turned",
            "def swap_batch_time(x):\n    return x.flip(0, 1)\n",
            "flip reverses the order along an axis; the axes themselves stay where they are. They have to change places.",
            TURN,
            sizes,
        ),
        known(
            "transpose with every axis",
            "def swap_batch_time(x):\n    return x.transpose(1, 0, 2)\n",
            "In torch, transpose takes the two axes that change places and nothing more. (NumPy's takes all of them; torch calls that permute.)",
            TURN,
        ),
        known(
            "room of the old shape",
            """
            def swap_batch_time(x):
                out = torch.zeros_like(x)
                for b in range(x.shape[0]):
                    for t in range(x.shape[1]):
                        out[t, b] = x[b, t]
                return out
            """,
            "The new tensor was made with the shape of x, (B, T, D), so there is no place [t, b] for every word. It needs the shape (T, B, D).",
            TURN,
        ),
        known(
            "time backward",
            "def swap_batch_time(x):\n    return x.transpose(0, 1).flip(0)\n",
            "Time runs backward: the last word stands first. Exchanging two axes changes no order along either.",
            TURN,
            _stands,
        ),
        known(
            "batch backward",
            "def swap_batch_time(x):\n    return x.transpose(0, 1).flip(1)\n",
            "The sentences stand in the opposite order. Exchanging two axes changes no order along either.",
            TURN,
            _stands,
        ),
        known(
            "exchanged, then cut again",
            "def swap_batch_time(x):\n    return x.transpose(0, 1).reshape(x.shape)\n",
            "The axes were exchanged and then the strip was cut back into the *old* shape, which scrambles the words. The shape changes: that is the point.",
            TURN,
            sizes,
        ),
        known(
            "laid flat",
            "def swap_batch_time(x):\n    return x.transpose(0, 1).reshape(-1, x.shape[2])\n",
            "Words and sentences lie along one axis now, end to end. The result still has three: (T, B, D). Stacking pieces makes a new axis, joining them does not.",
            SHAPE,
            sizes,
        ),
        known(
            "first sentence only",
            "def swap_batch_time(x):\n    return x[0]\n",
            "Only the first sentence came back, and an axis is missing. The result is (T, B, D), all sentences side by side.",
            SHAPE,
            sizes,
        ),
        known(
            "a list",
            "def swap_batch_time(x):\n    return [x[:, t] for t in range(x.shape[1])]\n",
            "A Python list came back. One tensor of shape (T, B, D) is wanted; torch can stack a list of tensors.",
            TURN,
            shows=lambda evidence: isinstance(evidence.got, list),
        ),
        known(
            "always float32",
            """
            def swap_batch_time(x):
                B, T, D = x.shape
                out = torch.zeros(T, B, D)
                for b in range(B):
                    for t in range(T):
                        out[t, b] = x[b, t]
                return out
            """,
            "The dtype changed to float32. A new tensor is float32 unless told otherwise; the result keeps the dtype of its input.",
            CONTRACT,
        ),
        known(
            "cut off from the gradient",
            "def swap_batch_time(x):\n    return x.detach().transpose(0, 1)\n",
            "The values are right, but no gradient flows back: .detach(), .data or numpy cut the way, and nothing behind it could ever learn.",
            CONTRACT,
        ),
        known(
            "caller's tensor turned",
            "def swap_batch_time(x):\n    if x.requires_grad:\n        return x.transpose(0, 1)\n    return x.transpose_(0, 1)\n",
            "Your function turned the caller's own tensor: a method that ends in _ works in place. Whoever called it now holds another shape.",
            CONTRACT,
        ),
        known(
            "through numpy",
            "def swap_batch_time(x):\n    return torch.from_numpy(x.numpy().transpose(1, 0, 2))\n",
            "The values are right, and your code stops where a gradient is asked for: NumPy knows nothing of gradients. Stay in torch from beginning to end.",
            CONTRACT,
        ),
        known(
            "one sentence squeezed",
            "def swap_batch_time(x):\n    return x.transpose(0, 1).squeeze()\n",
            "With one sentence, or one word, an axis of size 1 vanished. squeeze() removes every such axis; these must stay.",
            SHAPE,
        ),
        known(
            "one word squeezed",
            "def swap_batch_time(x):\n    return x.transpose(0, 1).squeeze(0)\n",
            "With one word, the axis of size 1 that counts words vanished. squeeze() takes it away; it must stay.",
            SHAPE,
        ),
        known(
            "view after turning",
            "def swap_batch_time(x):\n    return x.transpose(0, 1).view(x.shape[1], x.shape[0], -1).view(-1).view(x.shape[1], x.shape[0], -1)\n",
            """view refuses here, and for a good reason: after an exchange of axes the numbers no longer lie one after the other
            on the strip. The exchange alone is the whole answer; no view has to follow.""",
            TURN,
        ),
    ),
    variants=(
        right("transpose", "def swap_batch_time(x):\n    return x.transpose(0, 1)\n"),
        right("transpose, other names", "def swap_batch_time(batch):\n    return torch.transpose(batch, 1, 0)\n"),
        right("permute", "def swap_batch_time(x):\n    return x.permute(1, 0, 2)\n"),
        right("movedim", "def swap_batch_time(x):\n    return x.movedim(0, 1)\n"),
        right("swapaxes, contiguous", "def swap_batch_time(x):\n    return x.swapaxes(-3, -2).contiguous()\n"),
        right("einsum", 'def swap_batch_time(x):\n    return torch.einsum("btd->tbd", x)\n'),
        right("stack", "def swap_batch_time(x):\n    return torch.stack([x[:, t] for t in range(x.size(1))])\n"),
        right("stack of sentences", "def swap_batch_time(x):\n    return torch.stack(list(x), dim=1)\n"),
        right("unbind", "def swap_batch_time(x):\n    return torch.stack(x.unbind(1), 0)\n"),
        right(
            "loops",
            """
            def swap_batch_time(x):
                B, T, D = x.shape
                out = torch.empty(T, B, D, dtype=x.dtype)
                for b in range(B):
                    for t in range(T):
                        for d in range(D):
                            out[t, b, d] = x[b, t, d]
                return out
            """,
        ),
        right(
            "by index",
            """
            def swap_batch_time(x):
                t = torch.arange(x.shape[1])[:, None]
                b = torch.arange(x.shape[0])[None, :]
                return x[b, t]
            """,
        ),
        right(
            "strip cut by hand",
            """
            def swap_batch_time(x):
                B, T, D = x.shape
                order = torch.arange(B * T).view(B, T).T.reshape(-1)
                return x.reshape(B * T, D)[order].view(T, B, D)
            """,
        ),
    ),
    hints=(
        "123 is sentence 1, word 2, feature 3. At which place should it stand afterward?",
        "(B, T, D) becomes (T, B, D); the number at [b, t, d] moves to [t, b, d]. Cutting the strip anew moves nothing.",
        "exchange axis 0 with axis 1, leave the last axis alone, and return that.",
    ),
)

# ------------------------------------------------------------------------------------------------ 00.4 first_true


def first_true(mask: Tensor) -> Tensor:
    """How many entries stand before the first True of each row: its index, or T when there is none."""
    return (mask.cumsum(dim=1) == 0).sum(dim=1)


_MASK = torch.tensor(
    [
        [False, False, True, False, True],
        [False, False, False, False, False],
        [True, True, False, True, False],
    ]
)


def _drawn_mask(g: torch.Generator, B: int, T: int, share: float = 0.3) -> Case:
    """Random truth values, with an empty row, a full row, and one row that is True in its last place only."""
    mask = torch.rand(B, T, generator=g) < share
    for i, line in enumerate((torch.zeros(T), torch.ones(T), torch.arange(T) == T - 1)[: max(B - 2, 0)]):
        mask[i] = line.bool()
    return Case((mask[torch.randperm(B, generator=g)],))


def _answers(evidence: Evidence) -> str:
    if not isinstance(evidence.got, Tensor):
        return ""
    if tuple(evidence.got.shape) != tuple(evidence.expected.shape):
        return sizes(evidence)
    return f"You returned {_plain(evidence.got)}; by hand it is {_plain(evidence.expected)}."


FIRST_TRUE_EXERCISE = Exercise(
    id="first-true",
    number="00.4",
    names=("first_true",),
    visible_points=1,
    hidden_points=1,
    section=TRUE,
    reference={"first_true": first_true},
    probes=(
        Probe("three rows by hand", lambda g: Case((_MASK,)), hidden=False),
        Probe("other sizes", lambda g: _drawn_mask(g, 6, 9)),
        Probe("more rows than columns", lambda g: _drawn_mask(g, 9, 4)),
        Probe("as many rows as columns", lambda g: _drawn_mask(g, 6, 6)),
        Probe("one row", lambda g: Case((torch.arange(7)[None] >= torch.randint(1, 6, (), generator=g),))),
        Probe("one column", lambda g: Case((torch.tensor([[True], [False], [True]])[torch.randperm(3, generator=g)],))),
        Probe("nothing True at all", lambda g: Case((torch.zeros(3, 5, dtype=torch.bool),))),
        Probe("transposed in memory", lambda g: Case((turned(_drawn_mask(g, 5, 8).arguments[0]),))),
        Probe("nothing else is touched", lambda g: _drawn_mask(g, 5, 6), also=UNTOUCHED),
    ),
    misconceptions=(
        known(
            "argmax alone",
            "def first_true(mask):\n    return mask.int().argmax(dim=1)\n",
            "A row without any True gives 0, the same as a row that begins with True: argmax has to return *some* place. Such a row should give T.",
            TRUE,
            _answers,
        ),
        known(
            "argmax of truth values",
            "def first_true(mask):\n    return mask.argmax(dim=1)\n",
            "argmax compares numbers, and True and False are none. Turn them into 1 and 0 first. (And mind the row without any True.)",
            TRUE,
        ),
        known(
            "last True",
            """
            def first_true(mask):
                T = mask.shape[1]
                last = T - 1 - mask.flip(1).int().argmax(dim=1)
                return torch.where(mask.any(dim=1), last, T)
            """,
            "You returned the place of the *last* True of each row. (A loop that goes on after a hit does that: later hits overwrite the first.)",
            TRUE,
            _answers,
        ),
        known(
            "last True, and T - 1 for none",
            "def first_true(mask):\n    return mask.shape[1] - 1 - mask.flip(1).int().argmax(dim=1)\n",
            "You returned the place of the *last* True of each row, and T - 1 for a row that has none. The first one is wanted, and T for none.",
            TRUE,
            _answers,
        ),
        known(
            "last True, and 0 for none",
            "def first_true(mask):\n    return (mask * torch.arange(mask.shape[1])).amax(dim=1)\n",
            "You returned the place of the *last* True of each row, and 0 for a row that has none: the largest place that was True. The first one is wanted, and T for none.",
            TRUE,
            _answers,
        ),
        known(
            "smallest of places and zeros",
            "def first_true(mask):\n    return (mask * torch.arange(mask.shape[1])).amin(dim=1)\n",
            "Nearly everything is 0: a place that is False became 0 in the product, and 0 wins every minimum. Give the Falses a number that can never win.",
            TRUE,
            _answers,
        ),
        known(
            "0 taken for none",
            """
            def first_true(mask):
                found = mask.int().argmax(dim=1)
                found[found == 0] = mask.shape[1]
                return found
            """,
            "A row that *begins* with True gives T: you took its 0 for *none*. 0 is a place like any other; ask the row itself whether it has a True.",
            TRUE,
            _answers,
        ),
        known(
            "not yet counted",
            "def first_true(mask):\n    return mask.cumsum(dim=1) == 0\n",
            "A mask of the shape of the first one came back, True up to the first True. One step is missing: a number for each row.",
            TRUE,
            sizes,
        ),
        known(
            "all places",
            "def first_true(mask):\n    return mask.nonzero()\n",
            "You returned the places of *all* Trues, as pairs of row and column. One answer for each row, please.",
            TRUE,
            sizes,
        ),
        known(
            "all columns",
            "def first_true(mask):\n    return mask.nonzero()[:, 1]\n",
            "You returned the columns of *all* Trues, one after another. One answer for each row is wanted, also for a row that has none.",
            TRUE,
            sizes,
        ),
        known(
            "counts Trues",
            "def first_true(mask):\n    return mask.sum(dim=1)\n",
            "You counted how many Trues a row has. Wanted is where the first one stands, counted from 0.",
            TRUE,
            _answers,
        ),
        known(
            "counts Falses",
            "def first_true(mask):\n    return (~mask).sum(dim=1)\n",
            "You counted every False of a row. Only those *before* the first True count.",
            TRUE,
            _answers,
        ),
        known(
            "counted from 1",
            "def first_true(mask):\n    return (mask.cumsum(dim=1) == 0).sum(dim=1) + 1\n",
            "One too many: places are counted from 0.",
            TRUE,
            _answers,
        ),
        known(
            "counted from 1, none at T",
            """
            def first_true(mask):
                T = mask.shape[1]
                return torch.where(mask.any(dim=1), mask.int().argmax(dim=1) + 1, T)
            """,
            "One too many where there is a True: places are counted from 0.",
            TRUE,
            _answers,
        ),
        known(
            "counted from the first True on",
            "def first_true(mask):\n    return (mask.cumsum(dim=1) > 0).sum(dim=1)\n",
            "You counted the places from the first True *on*. Those before it are wanted: their number is its index.",
            TRUE,
            _answers,
        ),
        known(
            "-1 for none",
            "def first_true(mask):\n    return torch.where(mask.any(dim=1), mask.int().argmax(dim=1), -1)\n",
            "A row without True gives -1. As an index, -1 means the last place, which is easily taken for an answer; T is wanted, one beyond the end.",
            TRUE,
            _answers,
        ),
        known(
            "T - 1 for none",
            "def first_true(mask):\n    T = mask.shape[1]\n    return torch.where(mask.any(dim=1), mask.int().argmax(dim=1), T - 1)\n",
            "A row without True gives T - 1, as if its last place were True. (A loop that keeps the last place it looked at does that.) T is wanted, one beyond the end.",
            TRUE,
            _answers,
        ),
        known(
            "number of rows for none",
            "def first_true(mask):\n    return torch.where(mask.any(dim=1), mask.int().argmax(dim=1), mask.shape[0])\n",
            "A row without True gives B, the number of rows. T is wanted, the number of columns: shape is (B, T), and axes count from 0.",
            TRUE,
            _answers,
        ),
        known(
            "down the columns",
            "def first_true(mask):\n    return (mask.cumsum(dim=0) == 0).sum(dim=0)\n",
            "You went down the *columns*: one answer for each of them, and rows were counted. A row is a sentence; go along axis 1.",
            TRUE,
            sizes,
        ),
        known(
            "first False",
            "def first_true(mask):\n    return ((~mask).cumsum(dim=1) == 0).sum(dim=1)\n",
            "You looked for the first *False*.",
            TRUE,
            _answers,
        ),
        known(
            "is there any, as a number",
            "def first_true(mask):\n    return mask.any(dim=1).long()\n",
            "You answered *whether* there is a True, with 1 and 0. Wanted is where the first one stands.",
            TRUE,
            _answers,
        ),
        known(
            "is there any",
            "def first_true(mask):\n    return mask.any(dim=1)\n",
            "You answered *whether* there is a True. Wanted is where the first one stands.",
            TRUE,
        ),
        known(
            "one number for all rows",
            "def first_true(mask):\n    return (mask.any(dim=0).cumsum(dim=0) == 0).sum()\n",
            "One number came back for the whole batch. Every row has an answer of its own: the shape is (B).",
            TRUE,
            sizes,
        ),
        known(
            "an axis left over",
            "def first_true(mask):\n    return (mask.cumsum(dim=1) == 0).sum(dim=1, keepdim=True)\n",
            "The numbers are right, but each sits in a row of its own: (B, 1). The shape is (B).",
            SHAPE,
            sizes,
        ),
        known(
            "other integers",
            "def first_true(mask):\n    return (mask.cumsum(dim=1) == 0).sum(dim=1).int()\n",
            "The numbers are right, the dtype is int32. Places and ids are torch.long (int64) everywhere in the course, since indexing wants them so.",
            CONTRACT,
        ),
        known(
            "floats",
            "def first_true(mask):\n    return (mask.cumsum(dim=1) == 0).float().sum(dim=1)\n",
            "The dtype is that of a float, and a place is a whole number, torch.long: a float cannot be used as an index.",
            CONTRACT,
            shows=lambda evidence: evidence.got.is_floating_point(),
        ),
        known(
            "a list of numbers",
            "def first_true(mask):\n    return (mask.cumsum(dim=1) == 0).sum(dim=1).tolist()\n",
            "A Python list came back. A tensor of shape (B) and dtype torch.long is wanted.",
            CONTRACT,
            shows=lambda evidence: isinstance(evidence.got, list),
        ),
        known(
            "stops at an empty row",
            "def first_true(mask):\n    return torch.tensor([line.tolist().index(True) for line in mask])\n",
            "Your code stopped at a row without any True: index(True) has nothing to find there. Such a row should give T.",
            TRUE,
        ),
        known(
            "stops at an empty row, looking for 1",
            "def first_true(mask):\n    return torch.tensor([line.tolist().index(1) for line in mask])\n",
            "Your code stopped at a row without any True: index(1) has nothing to find there. Such a row should give T.",
            TRUE,
        ),
        known(
            "first hit of an empty row",
            "def first_true(mask):\n    return torch.stack([line.nonzero()[0, 0] for line in mask])\n",
            "Your code stopped at a row without any True: there is no first hit to pick. Such a row should give T.",
            TRUE,
        ),
        known(
            "answer written into the mask",
            "def first_true(mask):\n    found = (mask.cumsum(dim=1) == 0).sum(dim=1)\n    mask[:] = True\n    return found\n",
            "Your function changed the caller's mask. Work on a copy, or write nothing into it.",
            CONTRACT,
        ),
        known(
            "empty rows left out",
            "def first_true(mask):\n    return mask[mask.any(dim=1)].int().argmax(dim=1)\n",
            "Rows without True were left out, so there are fewer answers than rows, and later ones moved up. Such a row should give T.",
            TRUE,
            sizes,
        ),
    ),
    variants=(
        right("cumsum", "def first_true(mask):\n    return (mask.cumsum(dim=1) == 0).sum(dim=1)\n"),
        right(
            "argmax and where",
            """
            def first_true(mask):
                found = mask.long().argmax(dim=1)
                return torch.where(mask.any(dim=1), found, torch.full_like(found, mask.shape[1]))
            """,
        ),
        right(
            "places and min",
            """
            def first_true(mask):
                B, T = mask.shape
                places = torch.arange(T).expand(B, T)
                return torch.where(mask, places, T).min(dim=1).values
            """,
        ),
        right(
            "masked_fill and amin",
            """
            def first_true(finished):
                steps = torch.arange(finished.size(1)).repeat(finished.size(0), 1)
                return steps.masked_fill(~finished, finished.size(1)).amin(1)
            """,
        ),
        right(
            "a column of True at the end",
            """
            def first_true(mask):
                stop = torch.ones(mask.shape[0], 1, dtype=torch.bool)
                return torch.cat([mask, stop], dim=1).float().argmax(dim=1)
            """,
        ),
        right(
            "loops with break",
            """
            def first_true(mask):
                answers = []
                for line in mask:
                    answer = len(line)
                    for j, value in enumerate(line):
                        if value:
                            answer = j
                            break
                    answers.append(answer)
                return torch.tensor(answers)
            """,
        ),
        right(
            "next over a list",
            """
            def first_true(mask):
                rows = mask.tolist()
                return torch.tensor([next((j for j, v in enumerate(r) if v), len(r)) for r in rows], dtype=torch.long)
            """,
        ),
        right(
            "backward loop",
            """
            def first_true(mask):
                out = torch.full((mask.shape[0],), mask.shape[1], dtype=torch.int64)
                for j in reversed(range(mask.shape[1])):
                    out[mask[:, j]] = j
                return out
            """,
        ),
        right("cumprod", "def first_true(mask):\n    return (~mask).long().cumprod(dim=1).sum(dim=1)\n"),
        right(
            "nonzero of each row",
            """
            def first_true(mask):
                out = []
                for line in mask:
                    hits = line.nonzero().flatten().tolist()
                    out.append(hits[0] if hits else line.numel())
                return torch.tensor(out)
            """,
        ),
        right(
            "corrected afterward",
            """
            def first_true(mask):
                places = torch.argmax(mask.int(), dim=1)
                places[~mask.any(dim=1)] = mask.shape[1]
                return places
            """,
        ),
    ),
    hints=(
        "how many Falses stand before the first True? And what does your answer say about a row that has none?",
        "mask is (B, T), the answer (B): axis 1 disappears. Whatever you use, a row of Falses must come out as T.",
        "in each row, count the places up to which no True has been seen yet; that count is the index, and T when it never comes.",
    ),
)

# ------------------------------------------------------------------------------------------------ 00.5 predict_shapes

LINES = {
    "swap": (3, 2, 4),
    "cut": (4, 6),
    "product": (2, 3, 5),
    "sum": (2, 4),
    "spread": (3, 4),
}


def predict_shapes() -> dict[str, tuple[int, ...]]:
    """The shapes of the five lines."""
    return dict(LINES)


def _predicted(**changed: Any) -> str:
    """An answer with some of its lines replaced."""
    return f"def predict_shapes():\n    return {LINES | changed!r}\n"


def _shape(value: Any) -> tuple[int, ...] | None:
    """A predicted shape, whatever it was written as; None for what is no shape."""
    if isinstance(value, (list, tuple)) and all(type(size) is int for size in value):
        return tuple(value)
    return None


def _line(
    name: str, why: str, message: str, wrong: tuple[int, ...], section: Section, *others: tuple[int, ...]
) -> Misconception:
    """One line predicted as `wrong` (or as one of the others), in an answer whose other lines may be wrong as well."""
    return known(
        f"{name}: {why}",
        _predicted(**{name: wrong}),
        message,
        section,
        lambda evidence: f'In the line "{name}" you predicted {_shape(evidence.got[name])}.',
        lambda evidence: set(evidence.got) == set(LINES) and _shape(evidence.got[name]) in (wrong, *others),
    )


def _any_other(name: str, message: str, section: Section, wrong: tuple[int, ...]) -> Misconception:
    """One line predicted as any wrong shape that nobody foresaw."""
    return known(
        f"{name}: another shape",
        _predicted(**{name: wrong}),
        message,
        section,
        lambda evidence: f'In the line "{name}" you predicted {_shape(evidence.got[name])}.',
        lambda evidence: set(evidence.got) == set(LINES) and _shape(evidence.got[name]) not in (None, LINES[name]),
    )


def _of_kind(name: str, source: str, message: str, kind: Callable[[Any], bool]) -> Misconception:
    """A value that is no shape at all, in some line."""
    return known(
        name, source, message, SHAPE, None, lambda evidence: any(kind(value) for value in evidence.got.values())
    )


SHAPES_EXERCISE = Exercise(
    id="predict-shapes",
    number="00.5",
    names=("predict_shapes",),
    visible_points=2,
    hidden_points=0,
    section=PREDICT,
    reference={"predict_shapes": predict_shapes},
    probes=(Probe("five lines", lambda g: Case(()), hidden=False, quiz=True),),
    misconceptions=(
        _of_kind(
            "shapes as text",
            _predicted(swap="(3, 2, 4)"),
            "A shape in quotes is a text. Leave the quotes away: a shape is a tuple of whole numbers, such as (7, 2).",
            lambda value: isinstance(value, str),
        ),
        _of_kind(
            "tensors instead of shapes",
            "def predict_shapes():\n"
            "    x, w = torch.zeros(2, 3, 4), torch.zeros(4, 5)\n"
            "    u, v = torch.zeros(3, 1), torch.zeros(4)\n"
            '    return {"swap": x.transpose(0, 1), "cut": x.view(4, -1), "product": x @ w, "sum": x.sum(1), "spread": u + v}\n',
            "Tensors came back. Their *shapes* are wanted, as tuples of whole numbers.",
            lambda value: isinstance(value, Tensor),
        ),
        _of_kind(
            "a count instead of a shape",
            _predicted(swap=24, cut=24, product=30, sum=8, spread=12),
            "A single number tells how many numbers there are, not how they are arranged. A shape has one size for each axis, as a tuple such as (7, 2).",
            lambda value: isinstance(value, int),
        ),
        _of_kind(
            "lines left open",
            "def predict_shapes():\n    return dict.fromkeys(('swap', 'cut', 'product', 'sum', 'spread'), ...)\n",
            "Not every line has a shape yet. Replace each ... with a tuple of whole numbers, such as (7, 2).",
            lambda value: value is None or not isinstance(value, (str, Tensor, int, list, tuple, dict)),
        ),
        known(
            "a list of shapes",
            f"def predict_shapes():\n    return {list(LINES.values())!r}\n",
            "A list came back. A dictionary is wanted, which says for each of the five names what its shape is.",
            SHAPE,
            None,
            lambda evidence: isinstance(evidence.got, (list, tuple)),
        ),
        _line(
            "swap",
            "nothing moved",
            "That is the shape of x itself. transpose(0, 1) exchanges the sizes at places 0 and 1.",
            (2, 3, 4),
            TURN,
        ),
        _line(
            "swap",
            "all axes turned",
            "All three sizes changed places, as .T would do it. transpose(0, 1) exchanges the sizes at places 0 and 1 and leaves the rest alone.",
            (4, 3, 2),
            TURN,
            (4, 2, 3),
            (3, 4, 2),
        ),
        _line(
            "swap",
            "last two axes",
            "The last two sizes were exchanged. Axes count from 0, so 0 and 1 are the *first* two.",
            (2, 4, 3),
            TURN,
        ),
        _any_other(
            "swap",
            "transpose(0, 1) keeps every size that x has, 2 and 3 and 4, and exchanges the first two. Nothing is added, joined or lost.",
            TURN,
            (6, 4),
        ),
        _line(
            "cut",
            "the -1 kept",
            "-1 is no size: it says “whatever is left over”. x has 24 numbers on its strip. Cut into 4 rows, how many are in each?",
            (4, -1),
            STRIP,
        ),
        _line(
            "cut",
            "an axis kept",
            "view(4, -1) names two axes, so the result has two, whatever x had. The strip of 24 numbers is cut into 4 rows: 0 1 2 … | 6 7 8 … | 12 13 14 … | 18 19 20 …",
            (4, 2, 3),
            STRIP,
            (4, 3, 2),
            (2, 3, 4),
        ),
        _line(
            "cut",
            "one size dropped",
            "Some numbers got lost: x has 24 on its strip, and view must use every one. The strip is cut like this: 0 1 2 … | 6 7 8 … | 12 13 14 … | 18 19 20 …",
            (4, 3),
            STRIP,
            (4, 4),
            (4, 2),
        ),
        _line(
            "cut",
            "6 rows of 4",
            "Rows and columns are exchanged: the first number given to view is the number of *rows*. The strip is cut like this: 0 1 2 … | 6 7 8 … | 12 13 14 … | 18 19 20 …",
            (6, 4),
            STRIP,
        ),
        _any_other(
            "cut",
            "x has 2·3·4 = 24 numbers on its strip, and view(4, -1) cuts it into 4 rows: 0 1 2 … | 6 7 8 … | 12 13 14 … | 18 19 20 … How many are in each?",
            STRIP,
            (4, 24),
        ),
        _line(
            "product",
            "the shared size kept",
            "The 4 is the size that x and w share: it is summed over, so it disappears.",
            (2, 3, 4, 5),
            PRODUCT,
            (2, 3, 4, 4, 5),
        ),
        _line(
            "product",
            "shape of x",
            "The last axis of x meets the first of w and is replaced: what w makes of 4 numbers has another size.",
            (2, 3, 4),
            PRODUCT,
        ),
        _line(
            "product",
            "batch lost",
            "The axes in front of the product are carried along: every word of *every* sentence is multiplied.",
            (3, 5),
            PRODUCT,
            (2, 5),
            (5,),
        ),
        _line(
            "product",
            "w on the left",
            "The sizes are those of w first. In x @ w the axes of x come first, and the size that w adds stands last.",
            (5, 2, 3),
            PRODUCT,
            (2, 5, 3),
        ),
        _any_other(
            "product",
            "(2, 3, 4) @ (4, 5): the two 4s meet and disappear. What is left of x stands in front, what is left of w behind.",
            PRODUCT,
            (6, 5),
        ),
        _line(
            "sum",
            "the wrong axis",
            "That is what is left when another axis goes. dim=1 names the axis that *disappears*, counted from 0.",
            (3, 4),
            SPREAD,
            (2, 3),
        ),
        _line(
            "sum",
            "the axis kept",
            "A sum removes its axis, unless keepdim=True keeps it as a 1. Here nothing asks for that.",
            (2, 1, 4),
            SPREAD,
        ),
        _line(
            "sum",
            "only the axis",
            "3 is the size of the axis that is summed over. It is the one that disappears; the others stay.",
            (3,),
            SPREAD,
        ),
        _line(
            "sum",
            "everything summed",
            "Without an axis, sum() would leave a single number, shape (). With dim=1 only that one axis goes.",
            (),
            SPREAD,
            (1,),
        ),
        _line(
            "sum",
            "nothing summed",
            "That is the shape of x itself. A sum makes one number of many: the axis it runs along disappears.",
            (2, 3, 4),
            SPREAD,
        ),
        _any_other(
            "sum",
            "x is (2, 3, 4), and dim=1 is the place of the 3. That size disappears, the others keep their order.",
            SPREAD,
            (8,),
        ),
        _line(
            "spread",
            "no spreading",
            "u has 3 rows of 1, v has 4 numbers. Laid over each other from the right, the 1 meets the 4 and is repeated; v has no second axis, so it is repeated for every row.",
            (3, 1),
            SPREAD,
            (4,),
            (3,),
        ),
        _line(
            "spread",
            "sizes put in a row",
            "The shapes were written one after the other. They are laid *over* each other, from the right: the last size of u meets the last of v.",
            (3, 1, 4),
            SPREAD,
            (1, 3, 4),
        ),
        _line(
            "spread",
            "rows and columns exchanged",
            "Rows and columns are exchanged: u has 3 *rows*, and v lies along them with its 4 numbers.",
            (4, 3),
            SPREAD,
        ),
        _line(
            "spread",
            "sizes added",
            "Adding two tensors adds their numbers, not their sizes. Lay the shapes over each other from the right: 1 stretches, a missing axis counts as 1.",
            (7, 1),
            SPREAD,
            (3, 5),
            (7,),
        ),
        _any_other(
            "spread",
            "Lay (3, 1) and (4) over each other from the right: equal sizes agree, a 1 or a missing axis stretches to the other's size.",
            SPREAD,
            (12,),
        ),
    ),
    variants=(
        right("by hand", _predicted()),
        right(
            "lists",
            "def predict_shapes():\n    return {'swap': [3, 2, 4], 'cut': [4, 6], 'product': [2, 3, 5], 'sum': [2, 4], 'spread': [3, 4]}\n",
        ),
        right(
            "another order, built by dict",
            "def predict_shapes():\n    return dict(spread=(3, 4), sum=(2, 4), product=(2, 3, 5), cut=(4, 6), swap=(3, 2, 4))\n",
        ),
        right(
            "asked of torch",
            """
            def predict_shapes():
                x, w = torch.zeros(2, 3, 4), torch.zeros(4, 5)
                u, v = torch.zeros(3, 1), torch.zeros(4)
                return {
                    "swap": x.transpose(0, 1).shape,
                    "cut": x.view(4, -1).shape,
                    "product": (x @ w).shape,
                    "sum": x.sum(dim=1).shape,
                    "spread": (u + v).shape,
                }
            """,
        ),
        right(
            "worked out",
            """
            def predict_shapes():
                B, T, D, m = 2, 3, 4, 5
                shapes = {}
                shapes["swap"] = (T, B, D)
                shapes["cut"] = (4, B * T * D // 4)
                shapes["product"] = (B, T, m)
                shapes["sum"] = (B, D)
                shapes["spread"] = (3, 4)
                return shapes
            """,
        ),
        right(
            "torch.Size",
            "def predict_shapes():\n    S = torch.Size\n    return {'swap': S([3, 2, 4]), 'cut': S([4, 6]), 'product': S([2, 3, 5]), 'sum': S([2, 4]), 'spread': S([3, 4])}\n",
        ),
    ),
    hints=(
        "take the lines one at a time, and write the shape of x above each axis before you answer.",
        "transpose exchanges two sizes; view keeps 24 numbers; a product and a sum make a size disappear; shapes that meet are laid over each other from the right.",
        "swap: places 0 and 1 change. Cut: 24 numbers in 4 rows. Product: the two 4s vanish. Sum: the size at place 1 vanishes. Spread: 1 stretches, a missing axis is added in front.",
    ),
)

ASSIGNMENT = Assignment(
    id="00_start_here",
    notebook="start_here",
    exercises=(MATMUL_EXERCISE, NORMALIZE_EXERCISE, SWAP_EXERCISE, FIRST_TRUE_EXERCISE, SHAPES_EXERCISE),
    visible_modules=(),
)
