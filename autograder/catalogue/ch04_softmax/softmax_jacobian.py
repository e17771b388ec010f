"""04.5 softmax_jacobian."""

import torch
from torch import Tensor

from autograder.catalogue.ch04_softmax.shared import FLOAT32, _first_row, sections
from autograder.catalogue.exercise import Case, Evidence, Exercise, Law, Probe
from autograder.catalogue.parts import UNTOUCHED, known, normal, right, row, shares, sizes

CONTRACT, SLOPE = sections("contract slope")


def softmax_jacobian(p: Tensor) -> Tensor:
    """How each share (row) answers to each score (column), from the shares alone."""
    return torch.diag(p) - torch.outer(p, p)


_SHARES = torch.tensor([0.5, 0.3, 0.2])


def _diagonal(evidence: Evidence) -> str:
    return f"Your first row is {row(evidence.got[0])}; by hand it is {row(evidence.expected[0])}."


def _saturated(g: torch.Generator) -> Case:
    return Case((torch.softmax(normal(g, 4, dtype=torch.float64) * 6, dim=0).float(),))


# No probe asks for the gradient of the Jacobian: it is a derivative already, and one taken by autograd arrives detached.
EXERCISE = Exercise(
    id="softmax-jacobian",
    number="04.5",
    visible_points=1,
    hidden_points=3,
    section=SLOPE,
    reference=softmax_jacobian,
    probes=(
        Probe(
            "shares 0.5, 0.3, 0.2",
            lambda g: Case((_SHARES,), ("first", "second", "third")),
            hidden=False,
            laws=(Law("every row sums to 0", lambda got: got.sum(-1).abs().max().item() < 1e-4),),
        ),
        Probe("six shares", lambda g: Case((shares(g, 6),))),
        Probe("two shares", lambda g: Case((shares(g, 2),))),
        Probe("a single share", lambda g: Case((torch.ones(1),))),
        Probe("one share is all but everything", _saturated),
        Probe("one share is everything", lambda g: Case((torch.nn.functional.one_hot(torch.tensor(2), 4).float(),))),
        Probe("float64", lambda g: Case((shares(g, 5, dtype=torch.float64),))),
        Probe("nothing else is touched", lambda g: Case((shares(g, 4),)), also=UNTOUCHED),
    ),
    wrong=(
        known(
            "only the diagonal",
            "def softmax_jacobian(p):\n    return torch.diag(p * (1 - p))\n",
            "Off the diagonal you have 0: raising one score would leave the other shares alone. But they share 1, so it must lower them.",
            SLOPE,
            _diagonal,
        ),
        known(
            "one slope for each share",
            "def softmax_jacobian(p):\n    return p * (1 - p)\n",
            "These are the n slopes of each share with its *own* score. Every share also answers to every other score: n times n slopes.",
            SLOPE,
            sizes,
        ),
        known(
            "sign turned",
            "def softmax_jacobian(p):\n    return torch.outer(p, p) - torch.diag(p)\n",
            "All signs are turned: raising a score raises its own share and lowers the others.",
            SLOPE,
            _diagonal,
        ),
        known(
            "sign turned off the diagonal",
            "def softmax_jacobian(p):\n    J = torch.outer(p, p)\n    return J + torch.diag(p * (1 - p) - p * p)\n",
            "Off the diagonal your slopes are positive: raising one score would raise all shares. They share 1, so the others must fall.",
            SLOPE,
            _diagonal,
        ),
        known(
            "p subtracted instead of the product",
            "def softmax_jacobian(p):\n    return torch.diag(p) - p\n",
            """Not symmetric: a whole row of p was subtracted. What one score does to another share depends on *both* shares, so
            entry (i, j) needs the product of the two.""",
            SLOPE,
            _diagonal,
        ),
        known(
            "p subtracted as a column",
            "def softmax_jacobian(p):\n    return torch.diag(p) - p[:, None]\n",
            """Not symmetric: p was subtracted along each row. What one score does to another share depends on *both* shares, so
            entry (i, j) needs the product of the two.""",
            SLOPE,
            _diagonal,
        ),
        known(
            "p (1 - p) everywhere",
            "def softmax_jacobian(p):\n    return (p * (1 - p)).expand(len(p), len(p))\n",
            "p (1 - p) stands in every row. It is right on the diagonal only; elsewhere two different shares meet.",
            SLOPE,
            _diagonal,
        ),
        known(
            "p_i times (1 - p_j)",
            "def softmax_jacobian(p):\n    return torch.outer(p, 1 - p)\n",
            "Every entry is p_i (1 - p_j). The 1 belongs to the diagonal alone: off it, the share answers with -p_i p_j.",
            SLOPE,
            _diagonal,
        ),
        known(
            "diagonal forgotten",
            "def softmax_jacobian(p):\n    return -torch.outer(p, p)\n",
            "All slopes are negative, even a share's slope with its own score. On the diagonal the share itself must be added.",
            SLOPE,
            _diagonal,
        ),
        known(
            "one on the diagonal",
            "def softmax_jacobian(p):\n    return torch.eye(len(p), dtype=p.dtype) - torch.outer(p, p)\n",
            "1 stands on the diagonal before the product is subtracted; it should be the share itself. Your rows do not sum to 0.",
            SLOPE,
            _diagonal,
        ),
        known(
            "Jacobian of the logarithm",
            "def softmax_jacobian(p):\n    return torch.eye(len(p), dtype=p.dtype) - p\n",
            "This is the Jacobian of *log* softmax: 1 on the diagonal, minus p. Softmax itself has one factor more.",
            SLOPE,
            _diagonal,
        ),
        known(
            "softmax of the shares first",
            "def softmax_jacobian(p):\n    p = torch.softmax(p, dim=-1)\n    return torch.diag(p) - torch.outer(p, p)\n",
            "p went through softmax again. It holds the shares already, not the scores: use it as it comes.",
            SLOPE,
            _diagonal,
        ),
        known(
            "the inner product subtracted",
            "def softmax_jacobian(p):\n    return torch.diag(p) - p @ p\n",
            "One and the same number, the sum of the squares, was subtracted everywhere: p times p gave an inner product. An outer one is needed.",
            SLOPE,
            _diagonal,
        ),
        known(
            "divided by the number of shares",
            "def softmax_jacobian(p):\n    return (torch.diag(p) - torch.outer(p, p)) / len(p)\n",
            "Every slope is too small by the number of shares: a mean was taken. Each entry is one derivative, nothing is averaged.",
            SLOPE,
            _diagonal,
        ),
        known(
            "outer product added",
            "def softmax_jacobian(p):\n    return torch.diag(p) + torch.outer(p, p)\n",
            "The products were added: all slopes are positive, and a row sums to twice its share. The shares sum to 1, so a row of slopes sums to 0.",
            SLOPE,
            _diagonal,
        ),
        known(
            "always float32",
            "def softmax_jacobian(p):\n    p = p.float()\n    return torch.diag(p) - torch.outer(p, p)\n",
            FLOAT32,
            CONTRACT,
        ),
        known(
            "p changed in place",
            "def softmax_jacobian(p):\n    J = -torch.outer(p, p)\n    J.diagonal().add_(p)\n    p.mul_(1 - p)\n    return J\n",
            "Your function changed the caller's p. An operation whose name ends in _ , or -=, writes into the tensor that was passed in.",
            CONTRACT,
        ),
        known(
            "p.T of a single axis",
            """
            def softmax_jacobian(p):
                return torch.diag(p) - p * p.T
            """,
            "p * p.T is p times p, place by place: a tensor of one axis has nothing to transpose. A table of all products is needed, each share with each share.",
            SLOPE,
            _first_row,
        ),
        known(
            "diagonal squared",
            """
            def softmax_jacobian(p):
                return torch.diag(p ** 2) - torch.outer(p, p)
            """,
            "Your diagonal is 0: its squares cancel. A share's slope with its own score is the share itself, less its square.",
            SLOPE,
        ),
        known(
            "what is left on the diagonal",
            """
            def softmax_jacobian(p):
                return torch.diag(1 - p) - torch.outer(p, p)
            """,
            "On the diagonal stands 1 less the share, where the share itself belongs before its square is taken away. Your rows do not sum to 0.",
            SLOPE,
        ),
    ),
    right=(
        right("diagonal minus outer", "def softmax_jacobian(p):\n    return torch.diag(p) - torch.outer(p, p)\n"),
        right(
            "p_i (delta - p_j)",
            "def softmax_jacobian(shares):\n    eye = torch.eye(len(shares), dtype=shares.dtype)\n    return shares[:, None] * (eye - shares[None, :])\n",
        ),
        right(
            "loops",
            """
            def softmax_jacobian(p):
                n = len(p)
                J = torch.zeros(n, n, dtype=p.dtype)
                for i in range(n):
                    for j in range(n):
                        J[i, j] = p[i] * (1 - p[i]) if i == j else -p[i] * p[j]
                return J
            """,
        ),
        right(
            "autograd",
            "def softmax_jacobian(p):\n    return torch.autograd.functional.jacobian(lambda x: torch.softmax(x, -1), p.log())\n",
        ),
        right(
            "one row of autograd at a time",
            """
            def softmax_jacobian(p):
                x = p.detach().log().requires_grad_()
                y = x.softmax(0)
                return torch.stack([torch.autograd.grad(y[i], x, retain_graph=True)[0] for i in range(len(p))])
            """,
        ),
        right(
            "jacrev",
            "def softmax_jacobian(p):\n    return torch.func.jacrev(lambda x: F.softmax(x, dim=0))(torch.log(p))\n",
        ),
        right("einsum", 'def softmax_jacobian(p):\n    return p.diag_embed() - torch.einsum("i,j->ij", p, p)\n'),
        right(
            "double inside",
            "def softmax_jacobian(p):\n    q = p.double()\n    return (torch.diag(q) - q[:, None] @ q[None, :]).to(p.dtype)\n",
        ),
    ),
    hints=(
        "raise one score a little: what happens to its own share, and what to the others? Their changes cancel.",
        "p is (n,), the result (n, n): entry (i, j) says how share i answers to score j. It needs p_i and p_j.",
        "on the diagonal p_i (1 - p_i); off it -p_i p_j. Both at once: p on a diagonal, minus all products of two shares.",
    ),
)
