"""05.6 equivariance_gap."""

import torch
from torch import Tensor

from autograder.catalogue.ch05_self_attention.shared import EMBEDDINGS, sections
from autograder.catalogue.exercise import Case, Exercise, Probe
from autograder.catalogue.numbers import number
from autograder.catalogue.parts import (
    UNTOUCHED,
    known,
    normal,
    right,
)
from transformer_ref.model import attention

ORDER, SHAPES = sections("order shapes")


def equivariance_gap(f, x: Tensor, perm: Tensor) -> float:
    """How far f(permuted x) is from permuted f(x): the largest absolute difference."""
    permuted, plain = f(x[..., perm, :]), f(x)
    permuted, plain = (y[0] if isinstance(y, tuple) else y for y in (permuted, plain))
    return (permuted - plain[..., perm, :]).abs().max().item()


CYCLE = torch.tensor([2, 0, 3, 1])  # not its own inverse


def _attention_without_order(g: torch.Generator, d_model: int):
    query, key, value = (normal(g, d_model, d_model) for _ in range(3))

    def f(x: Tensor) -> Tensor:
        return attention.explicit_attention(x @ query, x @ key, x @ value).output

    return f


def _position_aware(table: Tensor):
    def f(x: Tensor) -> Tensor:
        return x + table[: x.shape[-2], None]

    return f


def _running_total(x: Tensor) -> Tensor:
    return x.cumsum(dim=-2)


def _running_total_and_more(x: Tensor) -> tuple[Tensor, Tensor]:
    return x.cumsum(dim=-2), x


def _moved(g: torch.Generator, length: int) -> Tensor:
    """A permutation that is not its own inverse."""
    while True:
        perm = torch.randperm(length, generator=g)
        if not torch.equal(perm[perm], torch.arange(length)):
            return perm


def _one_sided(g: torch.Generator, sign: float, dtype: torch.dtype = torch.float32) -> Case:
    """Positions of which one stands far out, moved so that the largest gap has the given sign."""
    table = torch.cat([torch.rand(4, generator=g), torch.tensor([9.0])])
    perm = torch.tensor([3, 4, 1, 0, 2])  # the far one comes to place 1: 9 less its number is below 9 less nothing
    return Case((_position_aware((sign * table).to(dtype)), normal(g, 2, 5, 6, dtype=dtype), perm))


def _gap_case(g: torch.Generator, f, batch: int, length: int, d_model: int) -> Case:
    x = normal(g, batch, length, d_model)
    x[0] *= 0.1 if batch > 1 else 1.0  # so that the largest gap never lies in the first sentence alone
    return Case((f, x, _moved(g, length)))


EXERCISE = Exercise(
    id="equivariance-gap",
    number="05.6",
    visible_points=1,
    hidden_points=3,
    section=ORDER,
    reference=equivariance_gap,
    probes=(
        Probe(
            "attention does not know the order",
            lambda g: Case((_attention_without_order(g, 6), normal(g, 2, 4, 6), CYCLE)),
            hidden=False,
        ),
        Probe(
            "a function that adds a number to each position",
            lambda g: Case((_position_aware(torch.tensor([0.0, 1.0, 2.0, 9.0])), EMBEDDINGS[None], CYCLE)),
            hidden=False,
        ),
        Probe("other sizes", lambda g: _gap_case(g, _running_total, 3, 5, 7)),
        Probe("more sentences than words", lambda g: _gap_case(g, _running_total, 5, 4, 6)),
        Probe("f returns a tuple", lambda g: _gap_case(g, _running_total_and_more, 2, 6, 5)),
        Probe("one sentence, nothing moved", lambda g: Case((_running_total, normal(g, 1, 4, 3), torch.arange(4)))),
        Probe("the largest gap is negative", lambda g: _one_sided(g, -1.0)),
        Probe("float64", lambda g: _one_sided(g, 1.0, torch.float64)),
        Probe("nothing else is touched", lambda g: _gap_case(g, _running_total, 2, 5, 4), also=UNTOUCHED),
    ),
    wrong=(
        known(
            "compared without permuting the outputs",
            "def equivariance_gap(f, x, perm):\n    a, b = f(x), f(x[..., perm, :])\n    a, b = (y[0] if isinstance(y, tuple) else y for y in (a, b))\n    return (a - b).abs().max().item()\n",
            """That is a gap for a *correct* attention: the two results hold the same rows in another order. Permute the
            outputs as well before comparing; that is what equivariance means.""",
            ORDER,
            lambda evidence: f"Your gap is {number(evidence.got)}.",
        ),
        known(
            "only the outputs permuted",
            "def equivariance_gap(f, x, perm):\n    a = f(x)\n    a = a[0] if isinstance(a, tuple) else a\n    return (a - a[..., perm, :]).abs().max().item()\n",
            "f was asked only about the words in their own order. Ask it about the permuted words too, and compare with the permuted answer.",
            ORDER,
            lambda evidence: f"Your gap is {number(evidence.got)}.",
        ),
        known(
            "permuted the wrong way back",
            "def equivariance_gap(f, x, perm):\n    a, b = f(x), f(x[..., perm, :])\n    a, b = (y[0] if isinstance(y, tuple) else y for y in (a, b))\n    return (a - b[..., perm, :]).abs().max().item()\n",
            """The rows were brought back the wrong way round. Permuting again does not undo a permutation, unless it only swaps
            pairs; its inverse does, or permuting the *other* result the same way.""",
            ORDER,
            lambda evidence: f"Your gap is {number(evidence.got)}.",
        ),
        known(
            "features permuted",
            "def equivariance_gap(f, x, perm):\n    a, b = f(x), f(x[..., perm])\n    a, b = (y[0] if isinstance(y, tuple) else y for y in (a, b))\n    return (a[..., perm] - b).abs().max().item()\n",
            "The *features* were permuted: the words lie along the second-to-last axis.",
            SHAPES,
        ),
        known(
            "sentences permuted",
            "def equivariance_gap(f, x, perm):\n    a, b = f(x), f(x[perm])\n    a, b = (y[0] if isinstance(y, tuple) else y for y in (a, b))\n    return (a[perm] - b).abs().max().item()\n",
            "The *sentences* of the batch were permuted: axis 0 is the batch, the words lie along the second-to-last axis.",
            SHAPES,
        ),
        known(
            "mean instead of largest",
            "def equivariance_gap(f, x, perm):\n    a, b = f(x), f(x[..., perm, :])\n    a, b = (y[0] if isinstance(y, tuple) else y for y in (a, b))\n    return (a[..., perm, :] - b).abs().mean().item()\n",
            "You returned the mean difference. The largest one is wanted: one wrong row among many must not be averaged away.",
            ORDER,
            lambda evidence: f"Your gap is {number(evidence.got)}.",
        ),
        known(
            "sum instead of largest",
            "def equivariance_gap(f, x, perm):\n    a, b = f(x), f(x[..., perm, :])\n    a, b = (y[0] if isinstance(y, tuple) else y for y in (a, b))\n    return (a[..., perm, :] - b).abs().sum().item()\n",
            "You returned the sum of all differences, which grows with the sentence. The largest one is wanted.",
            ORDER,
            lambda evidence: f"Your gap is {number(evidence.got)}.",
        ),
        known(
            "norm instead of largest",
            "def equivariance_gap(f, x, perm):\n    a, b = f(x), f(x[..., perm, :])\n    a, b = (y[0] if isinstance(y, tuple) else y for y in (a, b))\n    return torch.linalg.vector_norm(a[..., perm, :] - b).item()\n",
            "You returned the length of the difference, which grows with the sentence. The largest absolute difference is wanted.",
            ORDER,
            lambda evidence: f"Your gap is {number(evidence.got)}.",
        ),
        known(
            "sign kept",
            "def equivariance_gap(f, x, perm):\n    a, b = f(x), f(x[..., perm, :])\n    a, b = (y[0] if isinstance(y, tuple) else y for y in (a, b))\n    return (a[..., perm, :] - b).max().item()\n",
            "The largest *signed* difference came back, so a large negative one went unseen. Take absolute values first.",
            ORDER,
            lambda evidence: f"Your gap is {number(evidence.got)}.",
        ),
        known(
            "always zero",
            "def equivariance_gap(f, x, perm):\n    a, b = f(x), f(x)\n    a, b = (y[0] if isinstance(y, tuple) else y for y in (a, b))\n    return (a - b).abs().max().item()\n",
            "Your gap is always 0: f was not asked, or asked twice about the same words. A test that cannot fail tests nothing.",
            ORDER,
        ),
        known(
            "x left out of the permutation",
            "def equivariance_gap(f, x, perm):\n    y = f(x[..., perm, :])\n    y = y[0] if isinstance(y, tuple) else y\n    return (y - x[..., perm, :]).abs().max().item()\n",
            "You compared f's answer with its own input. Compare two answers of f: for the permuted words, and for the words in their own order.",
            ORDER,
            lambda evidence: f"Your gap is {number(evidence.got)}.",
        ),
        known(
            "a tensor instead of a number",
            "def equivariance_gap(f, x, perm):\n    a, b = f(x), f(x[..., perm, :])\n    a, b = (y[0] if isinstance(y, tuple) else y for y in (a, b))\n    return (a[..., perm, :] - b).abs().max()\n",
            "The gap is a tensor without axes; a plain Python number is wanted. A tensor of one number can hand it over.",
            ORDER,
        ),
        known(
            "yes or no",
            "def equivariance_gap(f, x, perm):\n    a, b = f(x), f(x[..., perm, :])\n    a, b = (y[0] if isinstance(y, tuple) else y for y in (a, b))\n    return torch.allclose(a[..., perm, :], b, atol=1e-5)\n",
            "You returned True or False. A size is wanted: how large the largest difference is.",
            ORDER,
        ),
        known(
            "tuple not unpacked",
            "def equivariance_gap(f, x, perm):\n    return (f(x)[..., perm, :] - f(x[..., perm, :])).abs().max().item()\n",
            "Your code stops when f returns a tuple, as SelfAttention does. Then its first item counts.",
            ORDER,
        ),
        known(
            "first item taken always",
            "def equivariance_gap(f, x, perm):\n    return (f(x)[0][..., perm, :] - f(x[..., perm, :])[0]).abs().max().item()\n",
            "When f returns a plain tensor, [0] picks its first sentence. Take the first item only when f returns a tuple.",
            ORDER,
        ),
        known(
            "squared difference",
            "def equivariance_gap(f, x, perm):\n    a, b = f(x), f(x[..., perm, :])\n    a, b = (y[0] if isinstance(y, tuple) else y for y in (a, b))\n    return (a[..., perm, :] - b).pow(2).max().item()\n",
            "The differences were squared, so your gap is the square of the right one. Absolute values keep the scale.",
            ORDER,
            lambda evidence: f"Your gap is {number(evidence.got)}.",
        ),
        known(
            "only the first sentence",
            "def equivariance_gap(f, x, perm):\n    a, b = f(x), f(x[..., perm, :])\n    a, b = (y[0] if isinstance(y, tuple) else y for y in (a, b))\n    return (a[0][perm] - b[0]).abs().max().item()\n",
            "Only the first sentence of the batch was compared; the largest gap may lie in another.",
            SHAPES,
        ),
        known(
            "inverse permutation on both sides",
            "def equivariance_gap(f, x, perm):\n    back = torch.argsort(perm)\n    a, b = f(x), f(x[..., back, :])\n    a, b = (y[0] if isinstance(y, tuple) else y for y in (a, b))\n    return (a[..., back, :] - b).abs().max().item()\n",
            "Both sides were moved by the inverse of perm. For some functions that gives the same gap, for others not: use perm itself.",
            ORDER,
        ),
    ),
    right=(
        right(
            "permute the answer",
            "def equivariance_gap(f, x, perm):\n    def run(z):\n        y = f(z)\n        return y[0] if isinstance(y, (tuple, list)) else y\n    return float((run(x)[:, perm] - run(x[:, perm])).abs().max())\n",
        ),
        right(
            "undo the permutation",
            "def equivariance_gap(f, x, perm):\n    take = lambda y: y[0] if isinstance(y, tuple) else y\n    a, b = take(f(x)), take(f(x.index_select(-2, perm)))\n    return torch.amax(torch.abs(a - b.index_select(-2, torch.argsort(perm)))).item()\n",
        ),
        right(
            "gather",
            """
            def equivariance_gap(f, x, perm):
                def run(z):
                    y = f(z)
                    return y if torch.is_tensor(y) else y[0]
                def move(z):
                    return torch.gather(z, -2, perm[:, None].expand_as(z))
                return (move(run(x)) - run(move(x))).abs().max().item()
            """,
        ),
        right(
            "loops",
            """
            def equivariance_gap(f, x, perm):
                plain, moved = f(x), f(torch.stack([x[..., p, :] for p in perm.tolist()], dim=-2))
                if isinstance(plain, tuple):
                    plain, moved = plain[0], moved[0]
                worst = 0.0
                for i, p in enumerate(perm.tolist()):
                    worst = max(worst, (plain[..., p, :] - moved[..., i, :]).abs().max().item())
                return worst
            """,
        ),
        right(
            "permutation matrix",
            """
            def equivariance_gap(f, x, perm):
                P = torch.eye(len(perm), dtype=x.dtype)[perm]
                a, b = f(x), f(P @ x)
                if isinstance(a, tuple):
                    a, b = a[0], b[0]
                return (P @ a - b).abs().max().item()
            """,
        ),
    ),
    hints=(
        "for a correct attention the gap is 0, up to rounding. What must move besides the words?",
        "x, f(x) and f(permuted x) are (B, T, D); perm moves the axis of T, the second-to-last.",
        "a = f(x); b = f(x with its words permuted); first item if a tuple; permute a the same way; largest absolute difference, as a number.",
    ),
)
