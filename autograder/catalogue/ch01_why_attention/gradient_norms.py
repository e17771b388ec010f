"""01.2 gradient_norms."""

import math

import torch
from torch import Tensor

from autograder.catalogue.ch01_why_attention.shared import sections
from autograder.catalogue.exercise import Case, Evidence, Exercise, Probe
from autograder.catalogue.parts import UNTOUCHED, known, normal, right, row, sizes, turned

(GRADIENT,) = sections("gradients")


def gradient_norms(W: Tensor, T: int) -> Tensor:
    """The spectral norms of the powers of W, from the (T-1)th down to the 0th."""
    power, norms = torch.eye(W.shape[0], dtype=W.dtype), []
    for _ in range(T):
        norms.append(torch.linalg.matrix_norm(power, 2))
        power = power @ W  # (D, D)
    return torch.stack(norms[::-1])  # (T,)


def _norms(
    norm: str = "torch.linalg.matrix_norm(power, 2)",
    step: str = "power @ W",
    count: str = "T",
    result: str = "torch.stack(norms[::-1])",
) -> str:
    """An answer with one of its lines replaced; `n` counts the steps taken."""
    return (
        "def gradient_norms(W, T):\n    power, norms = torch.eye(W.shape[0], dtype=W.dtype), []\n"
        f"    for n in range({count}):\n        norms.append({norm})\n        power = {step}\n    return {result}\n"
    )


_ROTATION = 0.9 * torch.tensor([[math.cos(0.5), -math.sin(0.5)], [math.sin(0.5), math.cos(0.5)]])
_SHEAR = torch.tensor([[1.0, 1.0], [0.0, 1.0]])


def _rotation(g: torch.Generator, D: int, scale: float) -> Tensor:
    return scale * torch.linalg.qr(normal(g, D, D, dtype=torch.float64))[0]


def _yours(evidence: Evidence) -> str:
    if not isinstance(evidence.got, Tensor) or evidence.got.dim() != 1:
        return ""
    return f"Yours are {row(evidence.got)}."


EXERCISE = Exercise(
    id="gradient-norms",
    number="01.2",
    visible_points=1,
    hidden_points=2,
    section=GRADIENT,
    reference=gradient_norms,
    probes=(
        Probe("a rotation that shrinks by 0.9, T = 6", lambda g: Case((_ROTATION, 6)), hidden=False),
        Probe("a shear, T = 4", lambda g: Case((_SHEAR, 4)), hidden=False),
        Probe("other sizes", lambda g: Case((normal(g, 5, 5) / 5**0.5, 7))),
        Probe("one number, below 0", lambda g: Case((-0.5 - 0.4 * torch.rand(1, 1, generator=g), 5))),
        Probe("the last state alone", lambda g: Case((normal(g, 3, 3), 1))),
        Probe("a matrix whose powers die out", lambda g: Case((normal(g, 3, 3).triu(1), 6))),
        Probe("vanishing", lambda g: Case((_rotation(g, 3, 0.5), 40)), rtol=1e-3, atol=0.0),
        Probe("exploding", lambda g: Case((_rotation(g, 4, 2.5).float(), 30)), rtol=1e-3),
        Probe("float64, transposed in memory", lambda g: Case((turned(normal(g, 4, 4, dtype=torch.float64)) / 2, 6))),
        Probe("nothing else is touched", lambda g: Case((normal(g, 3, 3), 5)), also=UNTOUCHED),
    ),
    wrong=(
        known(
            "elementwise power",
            _norms("torch.linalg.matrix_norm(W**n, 2)"),
            """** raises each *number* of W to the power. Walking back k steps multiplies k *matrices*; for a rotation the
            difference is plain: turned twice is still a rotation, its squared numbers are not.""",
            GRADIENT,
            _yours,
        ),
        known(
            "elementwise power, the identity last",
            _norms("torch.linalg.matrix_norm(W**n if n else power, 2)"),
            """** raises each *number* of W to the power; your last value is right, the others are not. Walking back k steps multiplies
            k *matrices*.""",
            GRADIENT,
            _yours,
        ),
        known(
            "elementwise product",
            _norms(step="power * W"),
            "* multiplies number by number, and with the identity that leaves only the diagonal. Walking back a step is a *matrix* product.",
            GRADIENT,
            _yours,
        ),
        known(
            "Frobenius norm",
            _norms("torch.linalg.matrix_norm(power)"),
            """Your value at t = T is the root of D instead of 1: this is the Frobenius norm, all numbers squared and added.
            The spectral norm asks how much the matrix can stretch *one* vector.""",
            GRADIENT,
            _yours,
        ),
        known(
            "reversed",
            _norms(result="torch.stack(norms)"),
            """The numbers are right and stand in reverse. Entry t is about the state at time t; at t = T nothing lies
            between, so the *last* one is exactly 1.""",
            GRADIENT,
            _yours,
        ),
        known(
            "reversed, from the first power",
            _norms(
                result="torch.stack([torch.linalg.matrix_norm(torch.linalg.matrix_power(W, t), 2) for t in range(1, T + 1)])"
            ),
            """Your entry t holds the t-th power. From state t to state T there are T - t steps: many for the first state, none for the
            last.""",
            GRADIENT,
            _yours,
        ),
        known(
            "one step too many",
            _norms(
                result="torch.stack([torch.linalg.matrix_norm(p @ W, 2) for p in [torch.linalg.matrix_power(W, n) for n in range(T)]][::-1])"
            ),
            "At t = T no step lies between a state and itself, so the last value is exactly 1. Yours are all one step further.",
            GRADIENT,
            _yours,
        ),
        known(
            "one value too many",
            _norms(count="T + 1"),
            "There are T states, from 1 to T, so T values are wanted. From the first to the last there are T - 1 steps.",
            GRADIENT,
            sizes,
        ),
        known(
            "the last state left out",
            _norms(count="T", result="torch.stack(norms[:0:-1]) if T > 1 else torch.zeros(0, dtype=W.dtype)"),
            "One value is missing: t runs up to T itself, where the derivative of the last state by itself is the identity.",
            GRADIENT,
            sizes,
        ),
        known(
            "power of the norm",
            _norms("torch.linalg.matrix_norm(W, 2) ** n"),
            """This is the norm of one step, raised to a power, which is only an upper bound: two steps need not stretch the same
            direction. (The same numbers come out when W and its transpose take turns.) Multiply the same W each time, take the
            norm last.""",
            GRADIENT,
            _yours,
        ),
        known(
            "power of the largest eigenvalue",
            _norms("torch.linalg.eigvals(W).abs().max() ** n"),
            """That is the largest eigenvalue to the power. It tells the story in the long run, but a matrix can
            stretch first: the shear has eigenvalues of 1 and its powers grow.""",
            GRADIENT,
            _yours,
        ),
        known(
            "largest row sum",
            _norms("power.abs().sum(dim=1).max()"),
            "The largest row sum is a norm too, but another one. The spectral norm is the largest singular value.",
            GRADIENT,
            _yours,
        ),
        known(
            "largest number",
            _norms("power.abs().max()"),
            "The largest number in the matrix is not how far it stretches a vector. The spectral norm is the largest singular value.",
            GRADIENT,
            _yours,
        ),
        known(
            "smallest singular value",
            _norms("torch.linalg.matrix_norm(power, -2)"),
            "That is the *smallest* singular value: the direction that is squeezed most. The spectral norm is the largest.",
            GRADIENT,
            _yours,
        ),
        known(
            "root forgotten",
            _norms("torch.linalg.eigvalsh(power.T @ power)[-1]"),
            "Your values are the squares of the right ones: the eigenvalues of a matrix times its transpose are *squared* singular values.",
            GRADIENT,
            _yours,
        ),
        known(
            "determinant",
            _norms("torch.linalg.det(power).abs()"),
            "The determinant says how a volume changes, and a stretch one way can hide a squeeze another way. Here the largest stretch is wanted.",
            GRADIENT,
            _yours,
        ),
        known(
            "a list",
            _norms(result="[float(n) for n in norms[::-1]]"),
            "You returned a list of Python numbers. A tensor of shape (T,) is wanted, with the dtype of W.",
            GRADIENT,
        ),
        known(
            "always float32",
            _norms(result="torch.stack(norms[::-1]).float()"),
            "float64 went in and float32 came out. The result keeps the dtype of W.",
            GRADIENT,
        ),
        known(
            "the identity in another dtype",
            """
            def gradient_norms(W, T):
                power, norms = torch.eye(W.shape[0]), []
                for _ in range(T):
                    norms.append(torch.linalg.matrix_norm(power, 2))
                    power = power @ W
                return torch.stack(norms[::-1])
            """,
            "A float64 matrix W meets a float32 identity: torch makes float32 unless it is told otherwise. Make it with the dtype of W.",
            GRADIENT,
        ),
        known(
            "W changed in place",
            """
            def gradient_norms(W, T):
                step, norms = W.clone(), [torch.ones((), dtype=W.dtype)]
                for _ in range(T - 1):
                    norms.append(torch.linalg.matrix_norm(W, 2))
                    W.copy_(W @ step)
                return torch.stack(norms[::-1])
            """,
            "Your function changed the caller's W. Keep the running product in a tensor of its own.",
            GRADIENT,
        ),
    ),
    right=(
        right("running product", _norms()),
        right(
            "matrix_power",
            "def gradient_norms(W, T):\n    return torch.stack([torch.linalg.matrix_norm(torch.linalg.matrix_power(W, T - t), ord=2) for t in range(1, T + 1)])\n",
        ),
        right(
            "autograd",
            """
            def gradient_norms(W, T):
                def run(h, steps):
                    for _ in range(steps):
                        h = W @ h
                    return h
                start = torch.zeros(W.shape[0], dtype=W.dtype)
                norms = []
                for t in range(1, T + 1):
                    J = torch.autograd.functional.jacobian(lambda h: run(h, T - t), start)
                    norms.append(torch.linalg.svdvals(J)[0])
                return torch.stack(norms).detach()
            """,
        ),
        right(
            "backward, in place",
            """
            def gradient_norms(weight, length):
                out = torch.ones(length, dtype=weight.dtype)
                J = torch.eye(weight.size(0), dtype=weight.dtype)
                for t in range(length - 2, -1, -1):
                    J = weight.T.mm(J)
                    out[t] = torch.linalg.svd(J)[1].max()
                return out
            """,
        ),
        right(
            "a batch of powers",
            """
            def gradient_norms(W, T):
                powers = [torch.eye(len(W), dtype=W.dtype)]
                while len(powers) < T:
                    powers.insert(0, W @ powers[0])
                return torch.linalg.norm(torch.stack(powers), ord=2, dim=(-2, -1))
            """,
        ),
        right(
            "root of an eigenvalue",
            _norms("torch.linalg.eigvalsh(power.T.double() @ power.double())[-1].clamp(min=0).sqrt().to(W.dtype)"),
        ),
    ),
    hints=(
        "what is the derivative of the last state by itself? And by the state one step before it?",
        "each power of W is (D, D) and gives one number; the powers run from T - 1 down to 0, so the result is (T,).",
        "power = identity; T times: note its largest singular value, then power = power times W. Reverse what you noted.",
    ),
)
