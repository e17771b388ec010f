"""04.4 temperature."""

import torch
from torch import Tensor

from autograder.catalogue.ch04_softmax.shared import (
    CUT_OFF,
    FLOAT32,
    IN_PLACE,
    ROWS_SUM_TO_ONE,
    THINGS,
    WINDOWS,
    _first_row,
    _sums,
    sections,
)
from autograder.catalogue.exercise import Case, Exercise, Probe
from autograder.catalogue.parts import GRADIENTS, UNTOUCHED, known, normal, right, turned
from transformer_ref.model import softmax as library

CONTRACT, STABLE, TEMPERATURE, WHICH_AXIS = sections("contract stable temperature which-axis")


def temperature(x: Tensor, tau: float) -> Tensor:
    """softmax(x / tau) along the last axis; all of it to the largest score when tau is 0."""
    if tau < 0:
        raise ValueError(f"tau: expected 0 or more, got {tau}")
    if tau == 0:
        return torch.nn.functional.one_hot(x.argmax(dim=-1), x.shape[-1]).to(x.dtype)
    return library.softmax(x / tau, dim=-1)


def _bitter_cold(g: torch.Generator) -> Case:
    """Scores over tau reach several hundred; a near tie keeps the answer from being a plain one-hot."""
    x = normal(g, 2, 5)
    x[0, 1], x[0, 3] = 6.0, 5.99
    x[1, 4], x[1, 0] = -7.0, 8.0
    return Case((x, 0.01))


EXERCISE = Exercise(
    id="temperature",
    number="04.4",
    visible_points=1,
    hidden_points=2,
    section=TEMPERATURE,
    reference=temperature,
    probes=(
        Probe("windows, tau = 2", lambda g: Case((WINDOWS, 2.0)), hidden=False, laws=(ROWS_SUM_TO_ONE,)),
        Probe("two rows of three, tau = 0.5", lambda g: Case((THINGS, 0.5)), hidden=False),
        Probe("tau = 0", lambda g: Case((THINGS, 0)), hidden=False),
        Probe("tau = -1", lambda g: Case((THINGS, -1.0)), hidden=False),
        Probe("other sizes, tau = 3", lambda g: Case((normal(g, 2, 3, 5) * 3, 3.0))),
        Probe("tau = 0 for every row of a batch", lambda g: Case((normal(g, 3, 2, 6), 0.0))),
        Probe("tau = 0.01", _bitter_cold, rtol=1e-3),  # scores of 600 in float32
        Probe("a very hot tau", lambda g: Case((normal(g, 2, 7) * 5, 1e6))),
        Probe("a single score", lambda g: Case((normal(g, 3, 1), 0.7))),
        Probe("float64", lambda g: Case((turned(normal(g, 2, 4, 3, dtype=torch.float64)), 1.7))),
        Probe("float64, tau = 0", lambda g: Case((normal(g, 2, 3, dtype=torch.float64), 0))),
        Probe("gradients", lambda g: Case((normal(g, 3, 4, dtype=torch.float64), 0.6)), also=GRADIENTS),
        Probe("nothing else is touched", lambda g: Case((normal(g, 3, 4), 0.6)), also=UNTOUCHED),
    ),
    wrong=(
        known(
            "multiplied by tau",
            """
            def temperature(x, tau):
                if tau < 0:
                    raise ValueError("tau")
                if tau == 0:
                    return F.one_hot(x.argmax(-1), x.shape[-1]).to(x.dtype)
                return torch.softmax(x * tau, dim=-1)
            """,
            "Hotter should be *flatter*, and yours gets sharper: the scores were multiplied by tau. (That number is called beta, one over tau.)",
            TEMPERATURE,
            _first_row,
        ),
        known(
            "multiplied by tau, nothing special",
            "def temperature(x, tau):\n    return torch.softmax(x * tau, dim=-1)\n",
            """Hotter should be *flatter*, and yours gets sharper: the scores were multiplied by tau. And at tau = 0 all shares come
            out equal, where the coldest of all should give everything to the largest.""",
            TEMPERATURE,
            _first_row,
        ),
        known(
            "tau = 0 not thought of",
            "def temperature(x, tau):\n    if tau < 0:\n        raise ValueError('tau')\n    return torch.softmax(x / tau, dim=-1)\n",
            """At tau = 0 a score divided by 0 is infinite or NaN, and so are the shares. As tau falls toward 0 the largest score takes
            everything; define tau = 0 as that limit.""",
            TEMPERATURE,
        ),
        known(
            "tau = 0 and negative tau not thought of",
            "def temperature(x, tau):\n    return torch.softmax(x / tau, dim=-1)\n",
            """At tau = 0 a score divided by 0 is infinite or NaN; define it as the limit, where the largest score takes everything. And
            a negative tau, which would prefer the *worst* score, should raise ValueError.""",
            TEMPERATURE,
        ),
        known(
            "division by zero in Python",
            "def temperature(x, tau):\n    if tau < 0:\n        raise ValueError('tau')\n    return torch.softmax(x * (1 / tau), dim=-1)\n",
            "1 / tau stops with ZeroDivisionError at tau = 0. Define tau = 0 as the limit, where the largest score takes everything.",
            TEMPERATURE,
        ),
        known(
            "tau = 0 refused",
            "def temperature(x, tau):\n    if tau <= 0:\n        raise ValueError('tau')\n    return torch.softmax(x / tau, dim=-1)\n",
            """tau = 0 is refused. It has a meaning, though: as tau falls toward 0 the largest score takes everything, and greedy decoding
            in chapter 11 is just that.""",
            TEMPERATURE,
        ),
        known(
            "negative tau accepted",
            """
            def temperature(x, tau):
                if tau == 0:
                    return F.one_hot(x.argmax(-1), x.shape[-1]).to(x.dtype)
                return torch.softmax(x / tau, dim=-1)
            """,
            "A negative tau is accepted: then the *worst* score gets the largest share, and nobody is told. Raise ValueError.",
            TEMPERATURE,
        ),
        known(
            "sign of tau dropped",
            """
            def temperature(x, tau):
                tau = abs(tau)
                if tau == 0:
                    return F.one_hot(x.argmax(-1), x.shape[-1]).to(x.dtype)
                return torch.softmax(x / tau, dim=-1)
            """,
            "A negative tau was silently made positive. It is a mistake of the caller's, who should hear of it: raise ValueError.",
            TEMPERATURE,
        ),
        known(
            "negative tau taken for zero",
            """
            def temperature(x, tau):
                if tau <= 0:
                    return F.one_hot(x.argmax(-1), x.shape[-1]).to(x.dtype)
                return torch.softmax(x / tau, dim=-1)
            """,
            "A negative tau was treated like 0. It is a mistake of the caller's, who should hear of it: raise ValueError.",
            TEMPERATURE,
        ),
        known(
            "assert instead of ValueError",
            """
            def temperature(x, tau):
                assert tau >= 0
                if tau == 0:
                    return F.one_hot(x.argmax(-1), x.shape[-1]).to(x.dtype)
                return torch.softmax(x / tau, dim=-1)
            """,
            "A negative tau raises AssertionError. For an input that the caller can get wrong, ValueError is the word.",
            CONTRACT,
        ),
        known(
            "divided after the softmax",
            """
            def temperature(x, tau):
                if tau < 0:
                    raise ValueError("tau")
                if tau == 0:
                    return F.one_hot(x.argmax(-1), x.shape[-1]).to(x.dtype)
                return torch.softmax(x, dim=-1) / tau
            """,
            "The division came after the softmax, where it makes numbers that no longer sum to 1. It is the *scores* that tau divides.",
            TEMPERATURE,
            _sums,
        ),
        known(
            "power without a new sum",
            """
            def temperature(x, tau):
                if tau < 0:
                    raise ValueError("tau")
                if tau == 0:
                    return F.one_hot(x.argmax(-1), x.shape[-1]).to(x.dtype)
                return torch.softmax(x, dim=-1) ** (1 / tau)
            """,
            "Raising the shares to the power 1 / tau is one way to do it, but afterwards they no longer sum to 1: divide by their new sum.",
            TEMPERATURE,
            _sums,
        ),
        known(
            "tau ignored",
            """
            def temperature(x, tau):
                if tau < 0:
                    raise ValueError("tau")
                if tau == 0:
                    return F.one_hot(x.argmax(-1), x.shape[-1]).to(x.dtype)
                return torch.softmax(x, dim=-1)
            """,
            "Your shares are those of tau = 1: tau plays no part in them.",
            TEMPERATURE,
            _first_row,
        ),
        known(
            "divided by the square of tau",
            """
            def temperature(x, tau):
                if tau < 0:
                    raise ValueError("tau")
                if tau == 0:
                    return F.one_hot(x.argmax(-1), x.shape[-1]).to(x.dtype)
                return torch.softmax(x / tau ** 2, dim=-1)
            """,
            "The scores were divided by the square of tau. tau itself divides them.",
            TEMPERATURE,
            _first_row,
        ),
        known(
            "divided by the root of tau",
            """
            def temperature(x, tau):
                if tau < 0:
                    raise ValueError("tau")
                if tau == 0:
                    return F.one_hot(x.argmax(-1), x.shape[-1]).to(x.dtype)
                return torch.softmax(x / tau ** 0.5, dim=-1)
            """,
            "The scores were divided by the root of tau. The root belongs to d_k, in chapter 05; tau itself divides them.",
            TEMPERATURE,
            _first_row,
        ),
        known(
            "a little something added to tau",
            "def temperature(x, tau):\n    if tau < 0:\n        raise ValueError('tau')\n    return torch.softmax(x / (tau + 1e-3), dim=-1)\n",
            "A small number was added to tau to keep it from being 0. It changes all cold shares too: at tau = 0.01 it is a tenth of tau.",
            TEMPERATURE,
        ),
        known(
            "softmax along the first axis",
            """
            def temperature(x, tau):
                if tau < 0:
                    raise ValueError("tau")
                if tau == 0:
                    return F.one_hot(x.argmax(-1), x.shape[-1]).to(x.dtype)
                return torch.softmax(x / tau, dim=0)
            """,
            "The first axis shared out 1. Each *row* has its own: the last axis.",
            WHICH_AXIS,
            _sums,
        ),
        known(
            "one maximum for the whole tensor at tau = 0",
            """
            def temperature(x, tau):
                if tau < 0:
                    raise ValueError("tau")
                if tau == 0:
                    return (x == x.max()).to(x.dtype)
                return torch.softmax(x / tau, dim=-1)
            """,
            "At tau = 0 only the row that holds the largest score of the whole tensor got its 1. Every row has a largest score of its own.",
            WHICH_AXIS,
        ),
        known(
            "the position instead of the shares at tau = 0",
            "def temperature(x, tau):\n    if tau < 0:\n        raise ValueError('tau')\n    if tau == 0:\n        return x.argmax(dim=-1)\n    return torch.softmax(x / tau, dim=-1)\n",
            "At tau = 0 the *position* of the largest score came back. Shares are wanted there too: 1 at that position, 0 elsewhere.",
            TEMPERATURE,
        ),
        known(
            "whole numbers at tau = 0",
            "def temperature(x, tau):\n    if tau < 0:\n        raise ValueError('tau')\n    if tau == 0:\n        return F.one_hot(x.argmax(-1), x.shape[-1])\n    return torch.softmax(x / tau, dim=-1)\n",
            "At tau = 0 the shares are right, but integers. The result keeps the dtype of the input, or the next product fails.",
            CONTRACT,
        ),
        known(
            "equal shares at tau = 0",
            "def temperature(x, tau):\n    if tau < 0:\n        raise ValueError('tau')\n    if tau == 0:\n        return torch.full_like(x, 1 / x.shape[-1])\n    return torch.softmax(x / tau, dim=-1)\n",
            "At tau = 0 all shares came back equal. That is the other end, an infinite tau: hot melts differences, cold freezes the winner.",
            TEMPERATURE,
        ),
        known(
            "tau = 0 taken for no temperature",
            "def temperature(x, tau):\n    if tau < 0:\n        raise ValueError('tau')\n    return torch.softmax(x / tau if tau else x, dim=-1)\n",
            'At tau = 0 the plain softmax came back, as if 0 meant "no temperature". That would be tau = 1; 0 is the coldest of all.',
            TEMPERATURE,
        ),
        known(
            "the smallest at tau = 0",
            "def temperature(x, tau):\n    if tau < 0:\n        raise ValueError('tau')\n    if tau == 0:\n        return F.one_hot(x.argmin(-1), x.shape[-1]).to(x.dtype)\n    return torch.softmax(x / tau, dim=-1)\n",
            "At tau = 0 the *smallest* score took everything. Cold freezes the largest.",
            TEMPERATURE,
        ),
        known(
            "exponential without care",
            """
            def temperature(x, tau):
                if tau < 0:
                    raise ValueError("tau")
                if tau == 0:
                    return F.one_hot(x.argmax(-1), x.shape[-1]).to(x.dtype)
                e = torch.exp(x / tau)
                return e / e.sum(dim=-1, keepdim=True)
            """,
            "A small tau makes large scores: 8 / 0.01 is 800, and exp(800) is infinite. Take each row's maximum away before the exponential.",
            STABLE,
        ),
        known(
            "cut off from the gradient",
            """
            def temperature(x, tau):
                if tau < 0:
                    raise ValueError("tau")
                if tau == 0:
                    return F.one_hot(x.argmax(-1), x.shape[-1]).to(x.dtype)
                return torch.softmax(x.detach() / tau, dim=-1)
            """,
            CUT_OFF,
            CONTRACT,
        ),
        known(
            "always float32",
            """
            def temperature(x, tau):
                if tau < 0:
                    raise ValueError("tau")
                if tau == 0:
                    return F.one_hot(x.argmax(-1), x.shape[-1]).float()
                return torch.softmax(x.float() / tau, dim=-1)
            """,
            FLOAT32,
            CONTRACT,
        ),
        known(
            "x changed in place",
            """
            def temperature(x, tau):
                if tau < 0:
                    raise ValueError("tau")
                if tau == 0:
                    return F.one_hot(x.argmax(-1), x.shape[-1]).to(x.dtype)
                x /= tau
                return torch.softmax(x, dim=-1)
            """,
            IN_PLACE,
            CONTRACT,
        ),
        known(
            "float32 at tau = 0",
            """
            def temperature(x, tau):
                if tau < 0:
                    raise ValueError("tau")
                if tau == 0:
                    return F.one_hot(x.argmax(-1), x.shape[-1]).float()
                return torch.softmax(x / tau, -1)
            """,
            "At tau = 0 float64 went in and float32 came out. The result keeps the dtype of the input there, too.",
            TEMPERATURE,
        ),
        known(
            "softmax along axis 1",
            """
            def temperature(x, tau):
                if tau < 0:
                    raise ValueError("tau")
                if tau == 0:
                    return F.one_hot(x.argmax(-1), x.shape[-1]).to(x.dtype)
                return torch.softmax(x / tau, 1)
            """,
            "Axis 1 is the last one only when there are two. A single row has no axis 1, and in a deeper batch it counts something else. Count from the end.",
            TEMPERATURE,
        ),
        known(
            "whole rows set to 1 at tau = 0",
            """
            def temperature(x, tau):
                if tau < 0:
                    raise ValueError("tau")
                if tau == 0:
                    shares = torch.zeros_like(x)
                    shares[x.argmax(-1)] = 1
                    return shares
                return torch.softmax(x / tau, -1)
            """,
            "At tau = 0 the positions of the largest scores were used to choose *rows*. A position counts along the last axis, inside its own row.",
            TEMPERATURE,
        ),
    ),
    right=(
        right(
            "divide, then softmax",
            """
            def temperature(x, tau):
                if tau < 0:
                    raise ValueError(f"tau is {tau}")
                if tau == 0:
                    return F.one_hot(x.argmax(dim=-1), num_classes=x.size(-1)).to(x.dtype)
                return torch.softmax(x / tau, dim=-1)
            """,
        ),
        right(
            "power and a new sum",
            """
            def temperature(scores, t):
                if t < 0:
                    raise ValueError("t must not be negative")
                if t == 0:
                    top = scores.max(dim=-1, keepdim=True).values
                    return (scores == top).to(scores.dtype)
                logs = scores.log_softmax(-1) / t
                p = torch.exp(logs - logs.amax(-1, keepdim=True))
                return p / p.sum(-1, keepdim=True)
            """,
        ),
        right(
            "zeros and scatter",
            """
            def temperature(x, tau):
                if tau < 0:
                    raise ValueError
                if tau > 0:
                    return F.softmax(x.div(tau), -1)
                return torch.zeros_like(x).scatter_(-1, x.argmax(-1, keepdim=True), 1.0)
            """,
        ),
        right(
            "maximum first",
            """
            def temperature(x, tau):
                if not tau >= 0:
                    raise ValueError(tau)
                z = x - x.amax(-1, keepdim=True)
                e = torch.exp(z / tau) if tau else (z == 0).to(x.dtype)
                return e / e.sum(-1, keepdim=True)
            """,
        ),
        right(
            "a tau close to zero",
            "def temperature(x, tau):\n    if tau < 0:\n        raise ValueError('tau')\n    return nn.Softmax(dim=-1)(x / max(tau, 1e-12))\n",
        ),
        right(
            "rows one by one",
            """
            def temperature(x, tau):
                if tau < 0:
                    raise ValueError("negative temperature")
                out = []
                for r in x.reshape(-1, x.shape[-1]):
                    if tau == 0:
                        best = torch.zeros_like(r)
                        best[r.argmax()] = 1
                        out.append(best)
                    else:
                        out.append(((r - r.max()) / tau).exp() / ((r - r.max()) / tau).exp().sum())
                return torch.stack(out).reshape(x.shape)
            """,
        ),
        right(
            "double inside",
            """
            def temperature(x, tau):
                if tau < 0:
                    raise ValueError("tau")
                if tau == 0:
                    return torch.eye(x.shape[-1], dtype=x.dtype)[x.argmax(-1)]
                return torch.softmax(x.double() * (1 / tau), -1).to(x.dtype)
            """,
        ),
        right(
            "an error of its own kind",
            """
            class NegativeTemperature(ValueError):
                pass

            def temperature(x, tau):
                if tau < 0:
                    raise NegativeTemperature(f"tau: expected 0 or more, got {tau}")
                if tau == 0:
                    return F.one_hot(x.argmax(-1), x.shape[-1]).to(x.dtype)
                return torch.softmax(x / tau, dim=-1)
            """,
        ),
    ),
    hints=(
        "which way does a large tau push the shares: together or apart? And what is left when tau reaches 0?",
        "x is (..., n), tau one number; the shares run along the last axis. At tau = 0 each row is a single 1 among zeros.",
        "negative tau: ValueError; tau = 0: 1 at each row's largest score, 0 elsewhere; else softmax of x over tau, last axis.",
    ),
)
