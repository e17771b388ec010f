"""04.4: shares sharpened or flattened, down to a temperature of 0."""

import torch
from torch import Tensor

from autograder.catalogue import families
from autograder.catalogue.ch04_softmax.shared import ROWS_SUM_TO_ONE, THINGS, WINDOWS, first_row, sections, sums
from autograder.catalogue.exercise import Case, Evidence, Exercise
from autograder.catalogue.families import in_place, usual_mistakes
from autograder.catalogue.known_answers import answer, correct, mistake
from autograder.catalogue.probes import FAR, hidden, normal, usual_probes, visible
from transformer_ref.model import softmax as library

CONTRACT, STABLE, TEMPERATURE, WHICH_AXIS = sections("contract stable temperature which-axis")


def temperature(x: Tensor, tau: float) -> Tensor:
    """softmax(x / tau) along the last axis; one-hot at the largest score if tau is 0."""
    if tau < 0:
        raise ValueError(f"tau: expected 0 or more, got {tau}")
    if tau == 0:
        return torch.nn.functional.one_hot(x.argmax(dim=-1), x.shape[-1]).to(x.dtype)
    return library.softmax(x / tau, dim=-1)


def inputs(g: torch.Generator, shape: tuple, tau: float, times: float = 1.0,
           dtype: torch.dtype = torch.float32) -> Case:
    return Case((times * normal(g, *shape, dtype=dtype), tau))


def far_away(g: torch.Generator) -> Case:
    return Case((normal(g, 2, 4, 3, dtype=torch.float64) + FAR, 0.6))


def near_ties(g: torch.Generator) -> Case:
    """At tau = 0 the largest score takes everything, however little it exceeds the second largest, in a row of
    negative scores too."""
    x = normal(g, 3, 2, 6)
    x[..., 1], x[..., 4] = -10.0, -9.0  # the one is the largest without its sign, the other not the largest so far
    x[..., 4] = x.amax(dim=-1) + 1e-4
    x[0, 0] -= 20
    x[:, 1] = x[:, 1].roll(2, dims=-1)  # the largest of the other row of each pair is elsewhere
    x *= torch.tensor([1.0, 1e-5, 1e10])[:, None, None]  # a lead of 1e-9, and scores that overflow if divided by 1e-30
    return Case((x, 0.0))


def bitter_cold(g: torch.Generator) -> Case:
    """Scores divided by tau reach several hundred; a near tie keeps the result from being one-hot."""
    x = normal(g, 2, 5)
    x[0, 1], x[0, 3] = 6.0, 5.99
    x[1, 4], x[1, 0] = -7.0, 8.0
    return Case((x, 0.01))


def nearly_frozen(g: torch.Generator) -> Case:
    """Two scores of each row differ by about this small tau, which float32 cannot hold next to 100."""
    x = normal(g, 2, 5, dtype=torch.float64)
    x[:, 3] = -9.0  # so that the largest is another one
    x[:, 3] = x.amax(dim=-1) + 1.3e-4  # divided by tau it is 1.3, which float32 does not hold next to 1,000,000
    return Case((x + 100, 1e-4))


def nan_from_large_quotients(evidence: Evidence) -> bool | None:
    """Whether NaN comes back where a score divided by tau is too large for an exponential in float32; None for scores
    so far apart that probabilities are 0 before any power is taken."""
    x, tau = evidence.arguments
    if not evidence.got.isnan().any():
        return None if tau > 1 and bool(x.max() - x.min() > 80) else False
    return tau > 0 and bool((x / tau).abs().max() > 80)


def not_cold_enough(evidence: Evidence) -> bool:
    """Whether these are weights at a tau near 0, of which only the largest is too small."""
    top, wanted = evidence.got.amax(dim=-1), evidence.expected.amax(dim=-1)
    shared = torch.allclose(evidence.got.sum(dim=-1), torch.ones_like(top),
                            atol=1e-4) and bool((evidence.got >= 0).all())
    same = torch.equal(evidence.got.argmax(dim=-1), evidence.expected.argmax(dim=-1))
    smaller = bool((top <= wanted + 1e-5).all()) and bool((top < wanted - 1e-5).any())
    return evidence.arguments[1] < 0.1 and shared and same and smaller


RIGHT = answer("""
    def temperature(x, tau):
        if tau < 0:
            raise ValueError("tau: expected 0 or more")
        if tau == 0:
            return F.one_hot(x.argmax(dim=-1), x.shape[-1]).to(x.dtype)
        return torch.softmax(x / tau, dim=-1)
""")
IF_COLDEST, COLDEST = "if tau == 0:", "return F.one_hot(x.argmax(dim=-1), x.shape[-1]).to(x.dtype)"
ANY_SIGN = RIGHT.without("if tau < 0:").without('raise ValueError("tau: expected 0 or more")')
DIVIDED_BY_0 = RIGHT.without(IF_COLDEST).without(COLDEST)
UNCHECKED = ANY_SIGN.without(IF_COLDEST).without(COLDEST)

EXERCISE = Exercise(
    id="temperature", number="04.4", difficulty=1, minutes=10, visible_points=1, hidden_points=2,
    reference=temperature, section=TEMPERATURE,
    probes=(
        visible("windows, tau = 2", Case((WINDOWS, 2.0)), laws=(ROWS_SUM_TO_ONE,)),
        visible("two rows of three, tau = 0.5", Case((THINGS, 0.5))),
        visible("tau = 0", Case((THINGS, 0))),
        visible("tau = -1", Case((THINGS, -1.0))),
        hidden("a tau just below 0", inputs, (2, 3), -1e-4, announced_by="Raises ValueError if it is negative"),
        *usual_probes(inputs, other=((2, 3, 5), 3.0, 3.0), smallest=((1, 3, 1), 0.7), common=((2, 4, 3), 0.6),
                      precise=far_away),
        hidden("tau = 0 for every row of a batch", near_ties, announced_by="each row's largest score"),
        hidden("tau = 0.01", bitter_cold, rtol=1e-3, announced_by="0 or more"),  # scores of 600 in float32
        hidden("tau = 0.0001", nearly_frozen, announced_by="0 or more"),
        hidden("a hot tau, and large scores", inputs, (2, 7), 1e3, times=500.0, announced_by="0 or more"),
        hidden("float64, tau = 0", inputs, (1, 2, 1), 0, dtype=torch.float64, checks="inputs",
               announced_by="tau = 0 gives"),
    ),
    mistakes=(
        mistake("multiplied by tau", RIGHT.but("x / tau", "x * tau"), TEMPERATURE,
            """Hotter should be *flatter*, and yours gets sharper: the scores were multiplied by tau, or the
            probabilities raised to the power tau, which is the same. (A number that multiplies scores is called beta;
            it is one over tau.)""", quotes=first_row),
        mistake("multiplied by tau, nothing special", UNCHECKED.but("x / tau", "x * tau"), TEMPERATURE,
            """Hotter should be *flatter*, and yours gets sharper: the scores were multiplied by tau. And at tau = 0 all
            probabilities come out equal, where the coldest temperature should give everything to the largest score.""",
            quotes=first_row),
        mistake("no softmax", RIGHT.but("torch.softmax(x / tau, dim=-1)", "x / tau"), TEMPERATURE,
            """These are the scores divided by tau, not yet probabilities: the softmax is missing.""", quotes=sums),
        mistake("the largest of NaN at tau = 0", """
            def temperature(x, tau):
                if tau < 0:
                    raise ValueError
                shares = torch.softmax(x / tau, dim=-1)
                if tau == 0:
                    return F.one_hot(shares.argmax(dim=-1), x.shape[-1]).to(x.dtype)
                return shares
        """, TEMPERATURE,
            """At tau = 0 the scores were divided by 0 before you looked for the largest: by then the probabilities are
            NaN, and the position of the largest means nothing. Look for the largest of the scores themselves."""),
        mistake("tau = 0 not thought of", DIVIDED_BY_0, TEMPERATURE,
            """At tau = 0 a score divided by 0 is infinite or NaN, and so are the probabilities. As tau falls toward 0
            the largest score takes everything; define tau = 0 as that limit."""),
        mistake("tau = 0 and negative tau not thought of", UNCHECKED, TEMPERATURE,
            """At tau = 0 a score divided by 0 is infinite or NaN; define it as the limit, where the largest score takes
            everything. And a negative tau, which would prefer the *worst* score, should raise ValueError."""),
        mistake("division by zero in Python", DIVIDED_BY_0.but("x / tau", "x * (1 / tau)"), TEMPERATURE,
            """1 / tau stops with ZeroDivisionError at tau = 0. Define tau = 0 as the limit, where the largest score
            takes everything."""),
        mistake("tau = 0 refused", DIVIDED_BY_0.but("tau < 0", "tau <= 0"), TEMPERATURE,
            """tau = 0 is refused. It has a meaning, though: as tau falls toward 0 the largest score takes
            everything, and greedy decoding in chapter 11 is just that."""),
        mistake("negative tau accepted", ANY_SIGN, TEMPERATURE,
            """A negative tau is accepted: then the *worst* score gets the largest probability, without any warning.
            Raise ValueError."""),
        mistake("sign of tau dropped", ANY_SIGN.before(IF_COLDEST, "tau = abs(tau)"), TEMPERATURE,
            """A negative tau was silently made positive. That is the caller's mistake, and an error should say so:
            raise ValueError."""),
        mistake("negative tau taken for zero", ANY_SIGN.but("tau == 0", "tau <= 0"), TEMPERATURE,
            "A negative tau was treated like 0. That is the caller's mistake, and an error should say so: raise "
            "ValueError."),
        mistake("assert instead of ValueError", ANY_SIGN.before(IF_COLDEST, "assert tau >= 0"), CONTRACT,
            "A negative tau raises AssertionError. For an input that the caller can get wrong, raise ValueError."),
        mistake("another error than ValueError", RIGHT.but("ValueError", "TypeError"), CONTRACT,
            "A negative tau raises a different error. For a value that is not allowed, raise ValueError."),
        mistake("divided after the softmax", RIGHT.but("x / tau, dim=-1)", "x, dim=-1) / tau"), TEMPERATURE,
            """The division came after the softmax, where it makes numbers that no longer sum to 1. It is the *scores*
            that tau divides.""", quotes=sums),
        families.SHARES_TO_A_POWER(RIGHT.but("x / tau, dim=-1)", "x, dim=-1) ** (1 / tau)"),
            TEMPERATURE, quotes=sums, power="1 / tau"),
        mistake("tau ignored", RIGHT.but("x / tau", "x"), TEMPERATURE,
            "Your probabilities are those of tau = 1: tau has no effect. (Adding it to every score, or subtracting it, "
            "changes nothing.)", quotes=first_row),
        mistake("softmax before tau", RIGHT.but("x / tau", "torch.softmax(x, dim=-1) / tau"), TEMPERATURE,
            """tau divided probabilities: there was a softmax before the division, and a second one after it. Divide the
            scores themselves.""", quotes=first_row),
        mistake("divided by the square of tau", RIGHT.but("x / tau", "x / tau ** 2"), TEMPERATURE,
            "The scores were divided by the square of tau. tau itself divides them.", quotes=first_row),
        mistake("divided by the root of tau", RIGHT.but("x / tau", "x / tau ** 0.5"), TEMPERATURE,
            "The scores were divided by the root of tau. The root belongs to d_k, in chapter 05; tau "
            "itself divides them.",
            quotes=first_row),
        mistake("a little something added to tau", DIVIDED_BY_0.but("x / tau", "x / (tau + 1e-3)"), TEMPERATURE,
            """A small number was added to tau to keep it from being 0. It also changes the probabilities at small tau:
            at tau = 0.01 it is a tenth of tau."""),
        mistake("softmax along the first axis", RIGHT.but("tau, dim=-1", "tau, dim=0"), WHICH_AXIS,
            "The softmax runs along the first axis, so that each column sums to 1. Each *row* should: use the last "
            "axis.", quotes=sums),
        mistake("one maximum for the whole tensor at tau = 0", RIGHT.but(COLDEST, "return (x == x.max()).to(x.dtype)"),
                WHICH_AXIS,
            """At tau = 0 only the row that holds the largest score of the whole tensor got its 1. Every row has a
            largest score of its own."""),
        mistake("the position instead of the shares at tau = 0", RIGHT.but(COLDEST, "return x.argmax(dim=-1)"),
                TEMPERATURE,
            """At tau = 0 you returned the *position* of the largest score. Return probabilities there too: 1 at that
            position, 0 elsewhere."""),
        mistake("whole numbers at tau = 0", RIGHT.but(".to(x.dtype)", ""), CONTRACT,
            """At tau = 0 the probabilities are correct, but integers. The result keeps the dtype of the input, or the
            next product fails."""),
        mistake("equal shares at tau = 0", RIGHT.but(COLDEST, "return torch.full_like(x, 1 / x.shape[-1])"),
                TEMPERATURE,
            """At tau = 0 all probabilities are equal. That is the other extreme, an infinite tau: a high temperature
            makes all equal, a low one gives everything to the largest score."""),
        mistake("tau = 0 taken for no temperature", DIVIDED_BY_0.but("x / tau", "x / tau if tau else x"), TEMPERATURE,
            """At tau = 0 the plain softmax came back, as if 0 meant "no temperature". That would be tau = 1; 0 is the
            coldest of all."""),
        mistake("the smallest at tau = 0", RIGHT.but("argmax", "argmin"), TEMPERATURE,
            "At tau = 0 the *smallest* score took everything. Cold freezes the largest."),
        mistake("exponential without care", RIGHT.but("return torch.softmax(x / tau, dim=-1)", """
                  powers = torch.exp(x / tau)
                  return powers / powers.sum(dim=-1, keepdim=True)"""), STABLE,
            """NaN comes back at a small tau: exp(8 / 0.01) is infinite, and probabilities raised to the power of 100
            can all become 0, so that 0 is divided by 0. Divide the scores by tau, and subtract each row's maximum
            before the exponential.""", shows=nan_from_large_quotients),
        in_place("x", RIGHT.but("return torch.softmax(x / tau", "x /= tau\n    return torch.softmax(x"), CONTRACT),
        mistake("float32 at tau = 0", RIGHT.but(".to(x.dtype)", ".float()"), TEMPERATURE,
            "At tau = 0 float64 went in and float32 came out. The result keeps the dtype of the input there, too."),
        mistake("softmax along axis 1", RIGHT.but("tau, dim=-1", "tau, dim=1"), TEMPERATURE,
            """Axis 1 is the last one only when there are two. A single row has no axis 1, and in a deeper batch it
            counts something else. Count from the end."""),
        mistake("softmax along axis 1, of a single row along its own",
                RIGHT.but("tau, dim=-1", "tau, dim=min(1, x.ndim - 1)"), TEMPERATURE,
            """Your results are correct for a single row and for a table. With more axes the softmax runs along axis 1,
            which is not the last one there. Count from the end."""),
        mistake("tau ignored, also at tau = 0", DIVIDED_BY_0.but("x / tau", "x"), TEMPERATURE,
            """Your probabilities are those of tau = 1, whatever tau is: it has no effect, also at tau = 0, where
            everything should go to the largest score.""", quotes=first_row),
        mistake("the largest absolute value at tau = 0", RIGHT.but("x.argmax", "x.abs().argmax"), TEMPERATURE,
            """At tau = 0 the score with the largest *absolute* value got the 1. A score of -10 is lower than one of 1,
            so the signs must stay."""),
        mistake("quotients rounded down", RIGHT.but("x / tau", "x // tau"), TEMPERATURE,
            """The scores divided by tau were rounded to whole numbers before the softmax, so close scores become equal.
            Use the ordinary division.""", quotes=first_row),
        mistake("whole rows set to 1 at tau = 0", RIGHT.but(COLDEST, """
                  shares = torch.zeros_like(x)
                  shares[x.argmax(dim=-1)] = 1
                  return shares"""), TEMPERATURE,
            """At tau = 0 the positions of the largest scores were used to choose *rows*. A position counts along the
            last axis, inside its own row."""),
        *usual_mistakes(RIGHT, arguments="x", detached=CONTRACT, float32=CONTRACT, single=CONTRACT, squeezed=CONTRACT,
                        viewed=CONTRACT),
        mistake("a tau near 0 raised to a limit", DIVIDED_BY_0.but("x / tau", "x / max(tau, 0.05)"), TEMPERATURE,
            """A small tau was raised to a limit, or something was added to it. So the probabilities at small tau, and
            at tau = 0, are not sharp enough: where two scores are close together, both get some probability.""",
            shows=not_cold_enough),
    ),
    correct=(
        correct("divide, then softmax", RIGHT),
        correct("power and a new sum", """
            def temperature(scores, t):
                if t < 0:
                    raise ValueError("t must not be negative")
                if t == 0:
                    top = scores.max(dim=-1, keepdim=True).values
                    return (scores == top).to(scores.dtype)
                logs = scores.log_softmax(-1) / t
                p = torch.exp(logs - logs.amax(-1, keepdim=True))
                return p / p.sum(-1, keepdim=True)
        """),
        correct("zeros and scatter", """
            def temperature(x, tau):
                if tau < 0:
                    raise ValueError
                if tau > 0:
                    return F.softmax(x.div(tau), -1)
                return torch.zeros_like(x).scatter_(-1, x.argmax(-1, keepdim=True), 1.0)
        """),
        correct("maximum first", """
            def temperature(x, tau):
                if not tau >= 0:
                    raise ValueError(tau)
                z = x - x.amax(-1, keepdim=True)
                e = torch.exp(z / tau) if tau else (z == 0).to(x.dtype)
                return e / e.sum(-1, keepdim=True)
        """),
        correct("a tau close to zero", DIVIDED_BY_0.but("x / tau", "x / max(tau, 1e-12)")),
        correct("rows one by one", """
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
        """),
        correct("double inside", RIGHT.but("x / tau, dim=-1)", "x.double() * (1 / tau), dim=-1).to(x.dtype)")),
        correct("an error of its own kind",
                "class Negative(ValueError):\n    pass\n\n\n" + RIGHT.but("ValueError", "Negative")),
    ),
    hints=(
        "does a large tau make the probabilities more equal or less? And what is left when tau reaches 0?",
        "x is (..., n), tau one number; the softmax runs along the last axis. At tau = 0 each row is a single 1 among "
        "zeros.",
        "negative tau: ValueError; tau = 0: 1 at each row's largest score, 0 elsewhere; else softmax of x over tau, "
        "last axis.",
    ),
)
