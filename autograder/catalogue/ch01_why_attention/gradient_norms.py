"""01.2: what reaches each word."""

import math

import torch
from torch import Tensor

from autograder.catalogue.ch01_why_attention.shared import SMALL_PRINT, sections
from autograder.catalogue.exercise import Case, Evidence, Exercise
from autograder.catalogue.families import in_place, usual_mistakes
from autograder.catalogue.known_answers import answer, correct, formula, mistake
from autograder.catalogue.probes import hidden, normal, usual_probes, visible
from autograder.catalogue.quotes import row, sizes

(GRADIENT,) = sections("gradients")
ROTATION = 0.9 * torch.tensor([[math.cos(0.5), -math.sin(0.5)], [math.sin(0.5), math.cos(0.5)]])
SHEAR = torch.tensor([[1.0, 1.0], [0.0, 1.0]])


def gradient_norms(W: Tensor, T: int) -> Tensor:
    """The spectral norms of the powers of W, from the (T-1)th down to the 0th."""
    power, norms = torch.eye(W.shape[0], dtype=W.dtype), []
    for _ in range(T):
        norms.append(torch.linalg.matrix_norm(power, 2))
        power = power @ W  # (D, D)
    return torch.stack(norms[::-1])  # (T,)


def matrix(g: torch.Generator, D: int, T: int, dtype: torch.dtype = torch.float32) -> Case:
    return Case((normal(g, D, D, dtype=dtype) / D**0.5, T))


def large(g: torch.Generator) -> Case:
    """A matrix whose square is about 100,000,000, where float32 loses digits that float64 holds."""
    return Case((1e4 * normal(g, 4, 4, dtype=torch.float64), 3))


def one_number(g: torch.Generator) -> Case:
    """A number below 0."""
    return Case((-0.5 - 0.4 * torch.rand(1, 1, generator=g), 5))


def dying_out(g: torch.Generator) -> Case:
    """A matrix whose third power is 0."""
    return Case((normal(g, 3, 3).triu(1), 6))


def turning(g: torch.Generator, D: int, T: int, scale: float, dtype: torch.dtype = torch.float64) -> Case:
    """A rotation or reflection that also scales every vector alike."""
    return Case(((scale * torch.linalg.qr(normal(g, D, D, dtype=torch.float64))[0]).to(dtype), T))


def yours(evidence: Evidence) -> str:
    if not isinstance(evidence.got, Tensor) or evidence.got.dim() != 1:
        return ""
    return f"Yours are {row(evidence.got)}."


def is_largest_sum(evidence: Evidence) -> bool:
    """Whether these are the norms of order 1 or infinity, the largest sums of a column or a row."""
    W, T = evidence.arguments
    powers = torch.stack([torch.linalg.matrix_power(W, T - t) for t in range(1, T + 1)])
    return any(torch.allclose(evidence.got, torch.linalg.matrix_norm(powers, order)) for order in (1, math.inf))


def is_longest_line(evidence: Evidence) -> bool:
    """Whether these are the lengths of the longest columns, or of the longest rows."""
    W, T = evidence.arguments
    powers = torch.stack([torch.linalg.matrix_power(W, T - t) for t in range(1, T + 1)])
    return any(torch.allclose(evidence.got, powers.norm(dim=dim).amax(dim=1), atol=0.0) for dim in (1, 2))


def is_one_arrow(evidence: Evidence) -> bool | None:
    """Whether these are the lengths of a vector of ones, of the unit vector in its direction, or of an axis.

    None if all are 0 or 1, as those of the shear's first axis: the same comes from the powers of its eigenvalue.
    """
    if torch.allclose(evidence.got, evidence.got.round().clamp(0, 1), atol=1e-4):
        return None
    W, T = evidence.arguments
    powers = torch.stack([torch.linalg.matrix_power(W, T - t) for t in range(1, T + 1)])
    ones = torch.ones_like(W[0])
    arrows = (ones, ones / len(W) ** 0.5, *torch.eye(len(W), dtype=W.dtype)[[0, -1]])
    lengths = [(each @ arrow).norm(dim=1) for arrow in arrows for each in (powers, powers.mT)]
    return any(torch.allclose(evidence.got, length, atol=0.0) for length in lengths)


def is_sum_of_all(evidence: Evidence) -> bool | None:
    """Whether the singular values were added up.

    None if all of each power are the same, as for a rotation: D times the largest has other causes, too.
    """
    W, T = evidence.arguments
    powers = torch.stack([torch.linalg.matrix_power(W, T - t) for t in range(1, T + 1)])
    values = torch.linalg.svdvals(powers)  # (T, D)
    if torch.allclose(values.amin(dim=1), values.amax(dim=1), rtol=1e-3, atol=0.0):
        return None
    return torch.allclose(evidence.got, values.sum(dim=1), rtol=1e-3, atol=0.0)


RIGHT = answer("""
    def gradient_norms(W, T):
        power = torch.eye(W.shape[0], dtype=W.dtype)
        norms = []
        for n in range(T):
            norms.append(torch.linalg.matrix_norm(power, 2))
            power = power @ W
        return torch.stack(norms[::-1])
""")
EYE = "torch.eye(W.shape[0], dtype=W.dtype)"
NORM, STEP, RESULT = "torch.linalg.matrix_norm(power, 2)", "power @ W", "torch.stack(norms[::-1])"

EXERCISE = Exercise(
    id="gradient-norms", number="01.2", difficulty=2, minutes=15, visible_points=1, hidden_points=2,
    reference=gradient_norms, section=GRADIENT,
    probes=(
        visible("a rotation that shrinks by 0.9, T = 6", Case((ROTATION, 6))),
        visible("a shear, T = 4", Case((SHEAR, 4))),
        *usual_probes(matrix, other=(5, 24), smallest=(3, 1), common=(4, 6), precise=large, gradients=False),
        hidden("one state, in float64", matrix, 3, 1, dtype=torch.float64, announced_by="at least 1"),
        hidden("one number, below 0", one_number, announced_by="(D, D)"),
        hidden("a matrix whose powers die out", dying_out, announced_by="(D, D), any numbers"),
        hidden("vanishing", turning, 3, 80, 0.5, rtol=1e-3, atol=0.0, announced_by="(D, D), any numbers"),
        hidden("exploding", turning, 4, 30, 2.5, dtype=torch.float32, rtol=1e-3, announced_by="(D, D), any numbers"),
    ),
    mistakes=(
        mistake("elementwise power", RIGHT.but(EYE, "torch.ones_like(W)").but(STEP, "power * W"), GRADIENT,
            """** raises each *number* of W to the power. Walking back k steps multiplies k *matrices*; for a rotation
            the difference is plain: two rotations make a rotation, but its squared numbers do not.""", quotes=yours),
        mistake("elementwise power, the identity last", RIGHT.but(STEP, "W ** (n + 1)"), GRADIENT,
            """** raises each *number* of W to the power; your last value is right, the others are not. Walking back k
            steps multiplies k *matrices*.""", quotes=yours),
        mistake("elementwise product", RIGHT.but(STEP, "power * W"), GRADIENT,
            """* multiplies number by number, and with the identity that leaves only the diagonal. Walking back a
            step is a *matrix* product.""", quotes=yours),
        mistake("Frobenius norm", RIGHT.but("(power, 2)", "(power)"), GRADIENT,
            """Your value at t = T is the root of D instead of 1: this is the Frobenius norm, the root of the sum of
            all squares. The spectral norm is how much the matrix can stretch *one* vector.""", quotes=yours),
        mistake("Frobenius norm divided by the root of D", RIGHT.but("(power, 2)", "(power) / W.shape[0] ** 0.5"),
                GRADIENT,
            """That is the Frobenius norm divided by the root of D, so it is a mean over all directions: the root of the
            mean of the squared singular values. The spectral norm is only the largest singular value.""",
            quotes=yours),
        mistake("longest column", RIGHT.but(NORM, "power.norm(dim=0).max()"), GRADIENT,
            """That is the length of the longest column (or row). A column is where the arrow along one axis ends up,
            and an arrow between two axes may be stretched more. The spectral norm is the largest stretch of all.""",
            quotes=yours, shows=is_longest_line),
        mistake("nuclear norm", RIGHT.but("norm(power, 2)", "norm(power, 'nuc')"), GRADIENT,
            "The singular values were added up: that is the nuclear norm. The spectral norm is only the "
            "largest of them.", shows=is_sum_of_all),
        mistake("reversed", RIGHT.but("norms[::-1]", "norms"), GRADIENT,
            """The numbers are right, in reverse order. Entry t is about the state at time t; at t = T there is no step,
            so the *last* one is exactly 1.""", quotes=yours),
        mistake("reversed, from the first power", RIGHT.but(EYE, "W").but("norms[::-1]", "norms"), GRADIENT,
            """Your entry t holds the t-th power. From state t to state T there are T - t steps: many for the first
            state, none for the last.""", quotes=yours),
        mistake("one step too many", RIGHT.but(EYE, "W"), GRADIENT,
            """At t = T there is no step between a state and itself, so the last value is exactly 1. Yours are all one
            step further.""", quotes=yours),
        mistake("one value too many", RIGHT.but("range(T)", "range(T + 1)"), GRADIENT,
            "There are T states, from 1 to T, so return T values. From the first to the last there "
            "are T - 1 steps.",
            quotes=sizes),
        mistake("the last state left out", RIGHT.but(RESULT, "torch.stack(norms[:0:-1]) if T > 1 else W.new_zeros(0)"),
                GRADIENT,
            """One value is missing: t runs up to T itself, where the derivative of the last state with respect to
            itself is the identity.""", quotes=sizes),
        mistake("power of the norm", RIGHT.but(NORM, "torch.linalg.matrix_norm(W, 2) ** n"), GRADIENT,
            """This is the norm of one step, raised to a power, or W and its transpose take turns, which gives the same
            numbers. Such a power is only an upper bound: two steps need not stretch the same direction. Multiply the
            same W each time, take the norm last.""", quotes=yours),
        mistake("power of the largest eigenvalue", RIGHT.but(NORM, "torch.linalg.eigvals(W).abs().max() ** n"),
                GRADIENT,
            """Your numbers are the largest absolute eigenvalues of the powers of W. They give the growth rate over many
            steps, but W can stretch a vector more at first: the shear has eigenvalues of 1, and its powers grow.""",
            quotes=yours),
        mistake("squared at each step", RIGHT.but(STEP, "power @ power if n else W"), GRADIENT,
            """The matrix was multiplied by *itself* at each step, so the powers double: 1, 2, 4, 8. A step back is one
            more factor W.""", quotes=yours),
        mistake("one arrow of ones", RIGHT.but(NORM, "(power @ torch.ones_like(W[0])).norm()"), GRADIENT,
            """Your numbers are the lengths of one vector, such as (1, 1, ...) or the first axis, after each step. The
            spectral norm is the length of the unit vector that is stretched *most*.""", quotes=yours,
            shows=is_one_arrow),
        mistake("the transpose taken along", RIGHT.but(STEP, "W.T @ W @ power"), GRADIENT,
            """Each step multiplied by the transpose of W as well as by W. One step is one factor W; the transpose
            belongs to a singular value only, after all the steps.""", quotes=yours),
        mistake("largest row sum", RIGHT.but(NORM, "power.abs().sum(dim=1).max()"), GRADIENT,
            """The largest sum of a row, or of a column, is a norm too, but a different one. The spectral norm is how
            far the most stretched arrow is stretched.""", quotes=yours, shows=is_largest_sum),
        mistake("largest number", RIGHT.but(NORM, "power.abs().max()"), GRADIENT,
            """The largest number in the matrix is not how far it stretches a vector. The spectral norm is the length of
            the longest arrow that comes out when arrows of length 1 go in.""", quotes=yours),
        mistake("smallest singular value", RIGHT.but("(power, 2)", "(power, -2)"), GRADIENT,
            "That is the *smallest* singular value: the direction that is squeezed most. The spectral norm is the "
            "largest.",
            quotes=yours),
        mistake("root forgotten", RIGHT.but(NORM, "torch.linalg.eigvalsh(power.T @ power)[-1]"), GRADIENT,
            """Your values are the squares of the correct ones: the eigenvalues of a matrix times its transpose are
            *squared* singular values.""", quotes=yours),
        mistake("determinant", RIGHT.but(NORM, "torch.linalg.det(power).abs()"), GRADIENT,
            """The determinant says how a volume changes, and a stretch one way can hide a squeeze another way. Here,
            use the largest stretch.""", quotes=yours),
        mistake("a list", RIGHT.but(RESULT, "[float(norm) for norm in norms[::-1]]"), GRADIENT,
            "You returned a list of Python numbers. Return a tensor of shape (T,), with the dtype of W."),
        *usual_mistakes(RIGHT, float32=SMALL_PRINT),
        mistake("the identity in another dtype", RIGHT.but(", dtype=W.dtype", ""), SMALL_PRINT,
            """A float64 matrix W meets a float32 tensor of yours: torch makes float32 by default. Make it
            with the dtype of W."""),
        in_place("W", RIGHT.but("norms = []", "norms, step = [], W.clone()").but(STEP, "W.copy_(power @ step)"),
                 SMALL_PRINT,
                 "Keep the running product in a tensor of its own."),
        mistake("trace", RIGHT.but(NORM, "power.trace().abs()"), GRADIENT,
            """Your value at t = T is D: the numbers on the diagonal were added, the trace. The spectral norm is the
            length of the longest arrow that comes out when arrows of length 1 go in.""", quotes=yours),
        mistake("mean singular value", RIGHT.but(NORM, "torch.linalg.svdvals(power).mean()"), GRADIENT,
            "That is the *mean* of the singular values. The spectral norm is only the largest of them.", quotes=yours),
        mistake("times instead of to the power", RIGHT.but(NORM, "torch.linalg.matrix_norm(n * W, 2)"), GRADIENT,
            "W was *multiplied* by the number of steps. A step is one more product with W: a power of the matrix.",
            quotes=yours),
    ),
    correct=(
        correct("running product", RIGHT),
        correct("matrix_power", formula("gradient_norms(W, T)",
            "torch.stack([torch.linalg.matrix_norm(torch.linalg.matrix_power(W, T - t), ord=2) for t in "
            "range(1, T + 1)])")),
        correct("autograd", """
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
        """),
        correct("backward, in place", """
            def gradient_norms(weight, length):
                out = torch.ones(length, dtype=weight.dtype)
                J = torch.eye(weight.size(0), dtype=weight.dtype)
                for t in range(length - 2, -1, -1):
                    J = weight.T.mm(J)
                    out[t] = torch.linalg.svd(J)[1].max()
                return out
        """),
        correct("a batch of powers", """
            def gradient_norms(W, T):
                powers = [torch.eye(len(W), dtype=W.dtype)]
                while len(powers) < T:
                    powers.insert(0, W @ powers[0])
                return torch.linalg.norm(torch.stack(powers), ord=2, dim=(-2, -1))
        """),
        correct("root of an eigenvalue", RIGHT.but(
            NORM, "torch.linalg.eigvalsh(power.T.double() @ power.double())[-1].clamp(min=0).sqrt().to(W.dtype)")),
    ),
    hints=(
        "what is the derivative of the last state with respect to itself? And to the state one step before it?",
        "each power of W is (D, D) and gives one number; the powers run from T - 1 down to 0, so the result is (T,).",
        "power = identity; T times: note its largest singular value, then power = power times W. Reverse "
        "what you noted.",
    ),
)
