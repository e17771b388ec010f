"""00.1 batch_matmul."""

import torch
from torch import Tensor

from autograder.catalogue.ch00_start_here.shared import sections
from autograder.catalogue.exercise import Case, Evidence, Exercise, Probe
from autograder.catalogue.numbers import number
from autograder.catalogue.parts import GRADIENTS, UNTOUCHED, known, normal, right, sizes, turned

CONTRACT, PRODUCT, SHAPE, STRIP = sections("contract product shape strip")


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


EXERCISE = Exercise(
    id="batch-matmul",
    number="00.1",
    visible_points=1,
    hidden_points=1,
    section=PRODUCT,
    reference=batch_matmul,
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
    wrong=(
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
    right=(
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
