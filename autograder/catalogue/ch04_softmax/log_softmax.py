"""04.3 log_softmax."""

import torch
from torch import Tensor

from autograder.catalogue.ch04_softmax.shared import (
    CUT_OFF,
    FLOAT32,
    IN_PLACE,
    LIBRARY_SOFTMAX,
    THINGS,
    WINDOWS,
    _first_row,
    _forbidden_word,
    _large,
    sections,
)
from autograder.catalogue.exercise import Case, Exercise, Law, Probe
from autograder.catalogue.parts import GRADIENTS, UNTOUCHED, known, normal, right, sizes, turned

CONTRACT, LOGARITHM, SLOPE, STABLE, WHICH_AXIS = sections("contract log slope stable which-axis")


def log_softmax(x: Tensor, dim: int) -> Tensor:
    """x minus the logarithm of the sum of its exponentials along dim."""
    shifted = x - x.amax(dim=dim, keepdim=True)
    return shifted - torch.logsumexp(shifted, dim=dim, keepdim=True)


def _far_apart(g: torch.Generator) -> Case:
    """A gap of 200: in float32 the small share is 0, its logarithm is not."""
    x = normal(g, 3, 4)
    x[:, 2] -= 200
    x[1, 0] += 120  # too much for a power in float32, and not in float64
    return Case((x, -1))


EXERCISE = Exercise(
    id="log-softmax",
    number="04.3",
    visible_points=1,
    hidden_points=3,
    section=LOGARITHM,
    reference=log_softmax,
    forbidden=LIBRARY_SOFTMAX,
    probes=(
        Probe(
            "two rows of three",
            lambda g: Case((THINGS, -1)),
            hidden=False,
            laws=(
                Law(
                    "exp of every row sums to 1",
                    lambda got: torch.allclose(got.exp().sum(-1), torch.ones(()), atol=1e-4),
                ),
            ),
        ),
        Probe("one row of four, dim=0", lambda g: Case((WINDOWS, 0)), hidden=False),
        Probe("down the columns: dim=0", lambda g: Case((normal(g, 3, 5) * 2, 0))),
        Probe("three axes, dim=1", lambda g: Case((normal(g, 2, 3, 5) * 2, 1))),
        Probe("scores 200 apart", _far_apart),
        Probe("scores around 1000 and -1000", _large, atol=1e-3),  # float32 holds four decimals of 1000
        Probe("a score of minus infinity", lambda g: _forbidden_word(g, 2, 4)),
        Probe("a single score to share among", lambda g: Case((normal(g, 3, 1, 2), -2))),
        Probe(
            "float64, transposed in memory",
            lambda g: Case((turned(normal(g, 2, 5, 3, dtype=torch.float64)), 2)),
        ),
        Probe("gradients", lambda g: Case((normal(g, 4, 3, dtype=torch.float64), 0)), also=GRADIENTS),
        Probe("nothing else is touched", lambda g: Case((normal(g, 3, 4), -1)), also=UNTOUCHED),
    ),
    wrong=(
        known(
            "logarithm of the softmax",
            """
            def log_softmax(x, dim):
                e = torch.exp(x - x.amax(dim=dim, keepdim=True))
                return torch.log(e / e.sum(dim=dim, keepdim=True))
            """,
            """Minus infinity came back where scores lie 200 apart: the small share underflowed to 0 *before* the logarithm was
            taken. Its logarithm, about -200, is an ordinary number. Write log(a / b) as a difference first.""",
            LOGARITHM,
        ),
        known(
            "logarithm of the softmax, without the maximum",
            "def log_softmax(x, dim):\n    e = torch.exp(x)\n    return torch.log(e / e.sum(dim=dim, keepdim=True))\n",
            """Two things break: exp(1001) overflows before the division, and a small share underflows to 0 before the logarithm.
            Write log(a / b) as a difference, and take the maximum away.""",
            LOGARITHM,
        ),
        known(
            "a little something inside the logarithm",
            """
            def log_softmax(x, dim):
                e = torch.exp(x - x.amax(dim=dim, keepdim=True))
                return torch.log(e / e.sum(dim=dim, keepdim=True) + 1e-9)
            """,
            """A tiny number inside the logarithm hides the underflow: everything below -20.7 comes back as -20.7, and an error of
            that size teaches nothing. The true value, -200, needs no division at all.""",
            LOGARITHM,
        ),
        known(
            "no maximum subtracted",
            "def log_softmax(x, dim):\n    return x - torch.log(torch.exp(x).sum(dim=dim, keepdim=True))\n",
            """exp(1001) overflows, so the logarithm of the sum is infinite. log(sum of exp(x)) = c + log(sum of exp(x - c)) for
            every c; choose the one that keeps all powers at 1 or below.""",
            STABLE,
        ),
        known(
            "float64 instead of a maximum",
            "def log_softmax(x, dim):\n    y = x.double()\n    return (y - torch.log(torch.exp(y).sum(dim=dim, keepdim=True))).to(x.dtype)\n",
            """Computing in float64 moves the limit from 88 to 709 and does not remove it: a score of 1001 still overflows. Taking the maximum
            away costs less and never fails.""",
            STABLE,
        ),
        known(
            "maximum not added back",
            """
            def log_softmax(x, dim):
                m = x.amax(dim=dim, keepdim=True)
                return x - torch.log(torch.exp(x - m).sum(dim=dim, keepdim=True))
            """,
            "The maximum was taken away inside the sum only, so every result is too large by it. Take it from the score too, or add it back.",
            LOGARITHM,
            _first_row,
        ),
        known(
            "only the maximum subtracted",
            "def log_softmax(x, dim):\n    return x - x.amax(dim=dim, keepdim=True)\n",
            "The largest result is 0, a share of 1. After the maximum, the logarithm of the sum of the powers must go as well.",
            LOGARITHM,
            _first_row,
        ),
        known(
            "one maximum for the whole tensor",
            "def log_softmax(x, dim):\n    z = x - x.max()\n    return z - torch.log(torch.exp(z).sum(dim=dim, keepdim=True))\n",
            "Rows far below the largest score of the tensor underflow: the logarithm of a sum of 0 is minus infinity. Use each row's own maximum.",
            STABLE,
        ),
        known(
            "always along the last axis",
            "def log_softmax(x, dim):\n    return x - torch.logsumexp(x, dim=-1, keepdim=True)\n",
            "Asked for dim=0, your rows are shared out and not your columns: dim is ignored, the last axis is always used.",
            WHICH_AXIS,
        ),
        known(
            "always along the first axis",
            "def log_softmax(x, dim):\n    return x - torch.logsumexp(x, dim=0, keepdim=True)\n",
            "The first axis is always used, whatever dim says. With dim=-1 each *row* is shared out.",
            WHICH_AXIS,
            _first_row,
        ),
        known(
            "one sum for the whole tensor",
            "def log_softmax(x, dim):\n    return x - torch.logsumexp(x.flatten(), dim=0)\n",
            "One sum was taken over the whole tensor. Each row (or column: dim says which) has a sum of its own.",
            WHICH_AXIS,
            _first_row,
        ),
        known(
            "an axis lost",
            "def log_softmax(x, dim):\n    return x - torch.logsumexp(x, dim=dim)\n",
            """A sum (or maximum) along dim drops that axis: (2, 3) became (2,), which cannot meet (2, 3) again. On a square
            table it would meet it, along the wrong axis and without a word. Keep the axis, with length 1.""",
            WHICH_AXIS,
        ),
        known(
            "shares instead of their logarithms",
            "def log_softmax(x, dim):\n    return torch.exp(x - torch.logsumexp(x, dim=dim, keepdim=True))\n",
            "These are the shares themselves, between 0 and 1. Their logarithms, all 0 or below, are wanted.",
            LOGARITHM,
            _first_row,
        ),
        known(
            "sign turned",
            "def log_softmax(x, dim):\n    return torch.logsumexp(x, dim=dim, keepdim=True) - x\n",
            "Positive numbers: the sign is turned. A share is at most 1, so its logarithm is at most 0. (The turned one is a loss.)",
            LOGARITHM,
            _first_row,
        ),
        known(
            "base 10",
            "def log_softmax(x, dim):\n    return (x - torch.logsumexp(x, dim=dim, keepdim=True)) / math.log(10)\n",
            "The logarithm has base 10. The exponential has base e, and only the natural logarithm undoes it.",
            LOGARITHM,
            _first_row,
        ),
        known(
            "base 2",
            "def log_softmax(x, dim):\n    return (x - torch.logsumexp(x, dim=dim, keepdim=True)) / math.log(2)\n",
            "The logarithm has base 2. The exponential has base e, and only the natural logarithm undoes it.",
            LOGARITHM,
            _first_row,
        ),
        known(
            "logarithm of the sum added",
            "def log_softmax(x, dim):\n    z = x - x.amax(dim=dim, keepdim=True)\n    return z + torch.log(torch.exp(z).sum(dim=dim, keepdim=True))\n",
            "The logarithm of the sum was added. log(a / b) is log a *minus* log b.",
            LOGARITHM,
            _first_row,
        ),
        known(
            "divided by the logarithm of the sum",
            "def log_softmax(x, dim):\n    return x / torch.logsumexp(x, dim=dim, keepdim=True)\n",
            "The scores were divided by the logarithm of the sum. The logarithm of a quotient is a *difference*.",
            LOGARITHM,
            _first_row,
        ),
        known(
            "only the logarithm of the sum",
            "def log_softmax(x, dim):\n    return torch.logsumexp(x, dim=dim, keepdim=True)\n",
            "One number for each row came back: the logarithm of its sum. It must still be taken away from every score.",
            LOGARITHM,
            sizes,
        ),
        known(
            "small shares cut off",
            """
            def log_softmax(x, dim):
                e = torch.exp(x - x.amax(dim=dim, keepdim=True))
                return torch.log((e / e.sum(dim=dim, keepdim=True)).clamp(min=1e-12))
            """,
            """Shares below a limit were lifted to it before the logarithm, so everything small comes back as the same number and has no
            gradient. The true value, -200, needs no division at all.""",
            LOGARITHM,
        ),
        known(
            "logarithm of x divided by its sum",
            "def log_softmax(x, dim):\n    return torch.log(x / x.sum(dim=dim, keepdim=True))\n",
            "The scores were divided by their sum and no exponential was taken; the logarithm of a negative number is NaN.",
            LOGARITHM,
        ),
        known(
            "mean instead of sum",
            "def log_softmax(x, dim):\n    m = x.amax(dim=dim, keepdim=True)\n    return x - m - torch.log(torch.exp(x - m).mean(dim=dim, keepdim=True))\n",
            "The logarithm of the *mean* of the powers was subtracted, so every result is too large by log n. Use the sum.",
            LOGARITHM,
            _first_row,
        ),
        known(
            "one more inside the logarithm",
            "def log_softmax(x, dim):\n    m = x.amax(dim=dim, keepdim=True)\n    return x - m - torch.log1p(torch.exp(x - m).sum(dim=dim, keepdim=True))\n",
            "There is an extra 1 inside the logarithm (log1p does that): the exponentials of a row sum to less than 1.",
            LOGARITHM,
            _first_row,
        ),
        known(
            "cut off from the gradient",
            "def log_softmax(x, dim):\n    x = x.detach()\n    return x - torch.logsumexp(x, dim=dim, keepdim=True)\n",
            CUT_OFF,
            CONTRACT,
        ),
        known(
            "sum cut off from the gradient",
            "def log_softmax(x, dim):\n    return x - torch.logsumexp(x.detach(), dim=dim, keepdim=True)\n",
            "The values are right, but the gradient does not pass through the sum, so raising one score seems to leave the others alone.",
            SLOPE,
        ),
        known(
            "always float32",
            "def log_softmax(x, dim):\n    x = x.float()\n    return x - torch.logsumexp(x, dim=dim, keepdim=True)\n",
            FLOAT32,
            CONTRACT,
        ),
        known(
            "x changed in place",
            "def log_softmax(x, dim):\n    x -= torch.logsumexp(x, dim=dim, keepdim=True)\n    return x\n",
            IN_PLACE,
            CONTRACT,
        ),
        known(
            "maximum taken away twice",
            """
            def log_softmax(x, dim):
                m = x.amax(dim, keepdim=True)
                return x - m - (m + (x - m).exp().sum(dim, keepdim=True).log())
            """,
            "The maximum was taken away twice: from the score and again with the logarithm of the sum. One of the two is enough.",
            LOGARITHM,
        ),
        known(
            "base 2 for the sum alone",
            """
            def log_softmax(x, dim):
                m = x.amax(dim, keepdim=True)
                return x - m - (x - m).exp().sum(dim, keepdim=True).log2()
            """,
            "The logarithm of the sum is one to base 2, beside powers of e. The natural logarithm undoes the exponential.",
            LOGARITHM,
        ),
        known(
            "logarithm of the sum of the scores",
            """
            def log_softmax(x, dim):
                return x - torch.log(x.sum(dim, keepdim=True))
            """,
            "The scores themselves were added up. It is their powers, e to each score, whose sum has its logarithm taken.",
            LOGARITHM,
        ),
        known(
            "sum added instead of taken away",
            """
            def log_softmax(x, dim):
                return x + torch.logsumexp(x, dim, keepdim=True)
            """,
            "The logarithm of the sum was added. A share is a quotient, and the logarithm of a quotient is a difference.",
            LOGARITHM,
        ),
    ),
    right=(
        right("logsumexp", "def log_softmax(x, dim):\n    return x - torch.logsumexp(x, dim=dim, keepdim=True)\n"),
        right(
            "each row's maximum",
            "def log_softmax(scores, dim):\n    z = scores - scores.amax(dim, keepdim=True)\n    return z - z.exp().sum(dim, keepdim=True).log()\n",
        ),
        right(
            "maximum added back",
            "def log_softmax(x, dim):\n    m = x.max(dim, keepdim=True).values\n    total = m + torch.log(torch.sum(torch.exp(x - m), dim, keepdim=True))\n    return x - total\n",
        ),
        right(
            "logaddexp",
            """
            def log_softmax(x, dim):
                total = None
                for s in x.unbind(dim):
                    total = s if total is None else torch.logaddexp(total, s)
                return torch.stack([s - total for s in x.unbind(dim)], dim)
            """,
        ),
        right(
            "loops",
            """
            def log_softmax(x, dim):
                def one(scores):
                    top = max(scores.tolist())
                    total = sum(torch.exp(score - top) for score in scores)
                    return torch.stack([score - top - torch.log(total) for score in scores])
                last = x.movedim(dim, -1)
                rows = [one(r) for r in last.reshape(-1, last.shape[-1])]
                return torch.stack(rows).reshape(last.shape).movedim(-1, dim)
            """,
        ),
        right(
            "double inside",
            "def log_softmax(x, dim):\n    y = x.to(torch.float64)\n    return (y - y.logsumexp(dim, True)).to(x.dtype)\n",
        ),
        right(
            "ratios to each score",
            "def log_softmax(x, dim):\n    m = x.detach().amax(dim, keepdim=True)\n    return torch.sub(x - m, torch.log((x - m).exp().sum(dim, keepdim=True)))\n",
        ),
    ),
    hints=(
        "log(a / b) = log a - log b. What is log(exp(x))?",
        "the logarithm of the sum runs along dim and keeps that axis with length 1: (2, 3) minus (2, 1).",
        "z = x minus its maximum along dim; z minus the log of the sum of exp(z) along dim. No division.",
    ),
)
