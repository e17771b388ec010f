"""04.3: the logarithms of the shares, where the shares themselves underflow."""

import torch
from torch import Tensor

from autograder.catalogue import families
from autograder.catalogue.ch04_softmax import shared
from autograder.catalogue.ch04_softmax.shared import THINGS, WINDOWS, first_row, scores, sections
from autograder.catalogue.exercise import Case, Evidence, Exercise, Law
from autograder.catalogue.families import in_place, usual_mistakes
from autograder.catalogue.known_answers import answer, correct, mistake
from autograder.catalogue.probes import hidden, normal, usual_probes, visible
from autograder.catalogue.quotes import sizes

CONTRACT, LOGARITHM, SLOPE, STABLE, WHICH_AXIS = sections("contract log slope stable which-axis")


def log_softmax(x: Tensor, dim: int) -> Tensor:
    """x minus the logarithm of the sum of its exponentials along dim."""
    shifted = x - x.amax(dim=dim, keepdim=True)
    return shifted - torch.logsumexp(shifted, dim=dim, keepdim=True)


def far_apart(g: torch.Generator) -> Case:
    """A gap of 200: in float32 the small probability is 0, its logarithm is not. In the last row a gap of 1,000, for
    which the probability is 0 in float64 too, and one of 200,000."""
    x = normal(g, 3, 4)
    x[:, 2] -= 200
    x[2, 0], x[2, 3] = -1000, -200_000
    x[1, 0] += 120  # too much for a power in float32, and not in float64
    return Case((x, -1))


def raised_to_a_limit(evidence: Evidence) -> bool | None:
    """Whether only values far below 0 are wrong, and too large; None where only minus infinity could show it."""
    got, expected = evidence.got, evidence.expected
    wrong = ~torch.isclose(got, expected, rtol=1e-4, atol=3e-3)
    if bool((expected[wrong] == -torch.inf).all()):
        return None
    between = (got[wrong] < -45) & (got[wrong] > expected[wrong])
    return bool(between.all())


def minus_infinity_replaced(evidence: Evidence) -> bool:
    """Whether the result is finite where it should be minus infinity, and correct elsewhere."""
    infinite = evidence.expected == -torch.inf
    replaced = bool(infinite.any()) and bool(evidence.got[infinite].isfinite().all())
    return replaced and torch.allclose(evidence.got[~infinite], evidence.expected[~infinite], rtol=1e-4, atol=3e-3)


POWERS_SUM_TO_ONE = Law("exp of every row sums to 1",
                        lambda got: torch.allclose(got.exp().sum(-1), torch.ones(()), atol=1e-4))

FAR_APART = torch.tensor([[0.5, -200.0, 1.5], [100.0, 99.0, 101.0], [1000.0, 999.0, 1001.0]])

RIGHT = answer("""
    def log_softmax(x, dim):
        shifted = x - x.amax(dim=dim, keepdim=True)
        total = torch.exp(shifted).sum(dim=dim, keepdim=True)
        return shifted - torch.log(total)
""")
SHORT = answer("""
    def log_softmax(x, dim):
        total = torch.logsumexp(x, dim=dim, keepdim=True)
        return x - total
""")
DIFFERENCE, LOG_OF_SUM = "shifted - torch.log(total)", "torch.logsumexp(x, dim=dim, keepdim=True)"
NAIVE = RIGHT.but("x - x.amax(dim=dim, keepdim=True)", "x")
LOG_OF_SHARES = RIGHT.but(DIFFERENCE, "torch.log(torch.exp(shifted) / total)")

EXERCISE = Exercise(
    id="log-softmax", number="04.3", difficulty=2, minutes=10, visible_points=1, hidden_points=3,
    reference=log_softmax, section=LOGARITHM, forbidden=shared.LIBRARY_SOFTMAX,
    probes=(
        visible("two rows of three", Case((THINGS, -1)), laws=(POWERS_SUM_TO_ONE,)),
        visible("one row of four, dim=0", Case((WINDOWS, 0))),
        visible("a score 200 below the others, and large scores", Case((FAR_APART, -1))),
        *usual_probes(scores, other=((2, 3, 4, 5), 1), smallest=((1, 1, 2), -2), common=((2, 5, 3), 2),
                      precise=shared.far_away),
        hidden("down the columns: dim=0", scores, (3, 5), 0, below=200.0, announced_by="from the front or the back"),
        hidden("three axes, dim=-2", scores, (2, 4, 3), -2, below=300.0, announced_by="from the front or the back"),
        hidden("scores 200 apart", far_apart, announced_by="200 below the others"),
        # float32 holds four decimals of 1000
        hidden("scores around 1000 and -1000", shared.around_1000, atol=1e-3, announced_by="any size"),
        hidden("a score of minus infinity", shared.with_minus_infinity, 2, 4, atol=3e-3,
               announced_by="-inf among others"),
        hidden("gradients down the columns", scores, (4, 3), 0, below=1000.0, dtype=torch.float64, checks="gradients",
               announced_by="from the front or the back"),
    ),
    mistakes=(
        mistake("logarithm of the softmax", LOG_OF_SHARES, LOGARITHM,
            """Minus infinity came back where scores are 200 apart: the small probability underflowed to 0 *before* the
            logarithm was taken. Its logarithm, about -200, is an ordinary number. Write log(a / b) as a difference
            first."""),
        mistake("logarithm of the softmax, without the maximum", NAIVE.but(
                  DIFFERENCE, "torch.log(torch.exp(shifted) / total)"), LOGARITHM,
            """Two things break: exp(1001) overflows before the division, and a small probability underflows to 0 before
            the logarithm. Write log(a / b) as a difference, and subtract the maximum."""),
        mistake("a little something inside the logarithm", LOG_OF_SHARES.but("/ total", "/ total + 1e-9"), LOGARITHM,
            """A tiny number inside the logarithm hides the underflow: everything below -20.7 comes back as -20.7, and
            an error of that size teaches nothing. The true logarithm is an ordinary number, such as -200:
            compute it without a division."""),
        mistake("no maximum subtracted", NAIVE, STABLE,
            """exp(1001) overflows, so the logarithm of the sum is infinite. log(sum of exp(x)) = c + log(sum of exp(x -
            c)) for every c; choose the one that keeps all exponentials at 1 or below."""),
        mistake("float64 instead of a maximum", NAIVE.but("shifted = x", "shifted = x.double()").but(
                  DIFFERENCE, f"({DIFFERENCE}).to(x.dtype)"), STABLE,
            """Computing in float64 moves the limit from 88 to 709 and does not remove it: a score of 1001 still
            overflows. Taking the maximum away costs less and never fails."""),
        mistake("maximum not added back", RIGHT.but("return shifted", "return x"), LOGARITHM,
            """The maximum was subtracted only inside the sum, so every result is too large by it. Subtract it from the
            score too, or add it back.""", quotes=first_row),
        mistake("only the maximum subtracted", RIGHT.but(DIFFERENCE, "shifted"), LOGARITHM,
            """The largest result is 0, a probability of 1. After the maximum, subtract the logarithm of the sum of the
            exponentials as well.""", quotes=first_row),
        mistake("one maximum for the whole tensor", RIGHT.but("x.amax(dim=dim, keepdim=True)", "x.max()"), STABLE,
            """Rows far below the largest score of the tensor underflow: the logarithm of a sum of 0 is minus infinity.
            Use each row's own maximum."""),
        mistake("always along the last axis", SHORT.but("dim=dim", "dim=-1"), WHICH_AXIS,
            "With dim=0 the probabilities of a column should sum to 1; yours sum to 1 in each row: dim is ignored, the "
            "last axis is always used."),
        mistake("always along the first axis", SHORT.but("dim=dim", "dim=0"), WHICH_AXIS,
            "The first axis is always used, whatever dim says. With dim=-1 the probabilities of each *row* should sum "
            "to 1.",
            quotes=first_row),
        mistake("one sum for the whole tensor", SHORT.but("x, dim=dim, keepdim=True", "x.flatten(), dim=0"), WHICH_AXIS,
            "One sum was taken over the whole tensor. Each row (or column: dim says which) has a sum of its own.",
            quotes=first_row),
        families.AXIS_LOST(SHORT.but(", keepdim=True", ""), WHICH_AXIS),
        mistake("shares instead of their logarithms", SHORT.but("x - total", "torch.exp(x - total)"), LOGARITHM,
            "These are the probabilities themselves, between 0 and 1. Return their logarithms, all 0 or below.",
            quotes=first_row),
        mistake("sign turned", SHORT.but("x - total", "total - x"), LOGARITHM,
            """Positive numbers: the sign is flipped. A probability is at most 1, so its logarithm is at most 0. (Its
            negative is a loss.)""", quotes=first_row),
        mistake("base 10", SHORT.but("x - total", "(x - total) / math.log(10)"), LOGARITHM,
            "The logarithm has base 10. The exponential has base e, and only the natural logarithm undoes it.",
            quotes=first_row),
        mistake("base 2", SHORT.but("x - total", "(x - total) / math.log(2)"), LOGARITHM,
            "The logarithm has base 2. The exponential has base e, and only the natural logarithm undoes it.",
            quotes=first_row),
        mistake("logarithm of the sum added", RIGHT.but("shifted - torch", "shifted + torch"), LOGARITHM,
            "The logarithm of the sum was added. log(a / b) is log a *minus* log b.", quotes=first_row),
        mistake("divided by the logarithm of the sum", SHORT.but("x - total", "x / total"), LOGARITHM,
            "The scores were divided by the logarithm of the sum. The logarithm of a quotient is a *difference*.",
            quotes=first_row),
        mistake("only the logarithm of the sum", SHORT.but("x - total", "total"), LOGARITHM,
            "You returned one number for each row: the logarithm of its sum. Subtract it from every score.",
            quotes=sizes),
        mistake("small shares cut off",
                RIGHT.but(DIFFERENCE, "torch.log((torch.exp(shifted) / total).clamp(min=1e-12))"), LOGARITHM,
            """Small probabilities were raised to a limit before the logarithm, or a small number was added to all, so
            everything small comes back as the same number and its gradient is lost. The true value, -200, needs no
            division at all."""),
        mistake("logarithm of x divided by its sum", SHORT.but(LOG_OF_SUM, "x.sum(dim=dim, keepdim=True)").but(
                  "x - total", "torch.log(x / total)"), LOGARITHM,
            "The scores were divided by their sum and no exponential was taken; the logarithm of a negative "
            "number is NaN."),
        mistake("mean instead of sum", RIGHT.but(".sum(", ".mean("), LOGARITHM,
            "The logarithm of the *mean* of the exponentials was subtracted, so every result is too large by log n. "
            "Use the sum.",
            quotes=first_row),
        mistake("one more inside the logarithm", RIGHT.but("torch.log(", "torch.log1p("), LOGARITHM,
            "There is an extra 1 inside the logarithm (log1p does that), so the exponentials of your results sum to "
            "less than 1 in each row.",
            quotes=first_row),
        mistake("sum cut off from the gradient", SHORT.but("x - total", "x - total.detach()"), SLOPE,
            """The values are right, but the gradient does not pass through the sum, so raising one score seems to
            leave the others unchanged."""),
        in_place("x", SHORT.but("return x - total", "x -= total\n    return x"), CONTRACT),
        mistake("maximum taken away twice",
                RIGHT.but("return shifted", "return shifted - x.amax(dim=dim, keepdim=True)"), LOGARITHM,
            """The maximum was subtracted once too often. Subtracting it from every score changes nothing if the sum is
            that of the *shifted* exponentials: is yours that of the unshifted ones, or is the maximum subtracted a
            second time?"""),
        mistake("base 2 for the sum alone", RIGHT.but("torch.log(", "torch.log2("), LOGARITHM,
            "The logarithm of the sum has base 2, but the exponentials have base e. The natural logarithm undoes the "
            "exponential."),
        mistake("no exponential before the logarithm", RIGHT.but("torch.exp(shifted).sum", "shifted.sum"), LOGARITHM,
            """NaN: the logarithm of a negative number. The scores less their maximum are 0 or below, and so is their
            sum. The exponential of each is missing before the sum."""),
        mistake("logarithm of the sum of the scores", SHORT.but(LOG_OF_SUM, "torch.log(x.sum(dim=dim, keepdim=True))"),
                LOGARITHM,
            "You took the logarithm of the sum of the scores. Take the logarithm of the sum of their exponentials."),
        mistake("the sum of the scores taken away", SHORT.but(LOG_OF_SUM, "x.sum(dim=dim, keepdim=True)"), LOGARITHM,
            """The sum of the scores was subtracted. Subtract the *logarithm* of the sum of their *exponentials*.""",
            quotes=first_row),
        mistake("sum added instead of taken away", SHORT.but("x - total", "x + total"), LOGARITHM,
            "The logarithm of the sum was added. A probability is a quotient, and the logarithm of a quotient is a "
            "difference."),
        mistake("divided by the logarithm of the sum, after the maximum",
                RIGHT.but("shifted - torch", "shifted / torch"), LOGARITHM,
            """The maximum was subtracted, and the rest was divided by the logarithm of the sum. The logarithm of a
            quotient is a *difference*.""", quotes=first_row),
        mistake("base 10 for the sum alone", RIGHT.but("torch.log(", "torch.log10("), LOGARITHM,
            "The logarithm of the sum has base 10, but the exponentials have base e. The natural logarithm undoes the "
            "exponential."),
        mistake("logarithms added up",
                RIGHT.but("torch.log(total)", "torch.log(torch.exp(shifted)).sum(dim=dim, keepdim=True)"), LOGARITHM,
            """The logarithm came before the sum, where it only undoes the exponential. First add all exponentials, then
            take *one* logarithm of the sum.""", quotes=first_row),
        mistake("the sum without its logarithm", RIGHT.but("torch.log(total)", "total"), LOGARITHM,
            "The sum of the exponentials was subtracted as it is. Subtract its *logarithm*.", quotes=first_row),
        mistake("far scores cut off",
                RIGHT.but("x - x.amax(dim=dim, keepdim=True)", "(x - x.amax(dim=dim, keepdim=True)).clamp(min=-50)"),
                LOGARITHM,
            """Results far below 0 were raised to a limit, or replaced by a number, so they are larger than they should
            be. Nothing needs a limit here: the exponential of a very low score is 0 in the sum, and the score itself is
            an ordinary number.""", shows=raised_to_a_limit),
        mistake("minus infinity replaced", SHORT.but("x - total", "torch.nan_to_num(x - total, neginf=0.0)"), LOGARITHM,
            """Minus infinity was replaced by a number. Keep it where a score is minus infinity: the probability is 0,
            and the logarithm of 0 is minus infinity.""", shows=minus_infinity_replaced),
        mistake("mean of the scores taken away", SHORT.but(LOG_OF_SUM, "x.mean(dim=dim, keepdim=True)"), LOGARITHM,
            """The mean of the scores was subtracted. Subtract the logarithm of the sum of their *exponentials*.""",
            quotes=first_row),
        mistake("logarithm of the sum taken away twice", SHORT.but("x - total", "x - 2 * total"), LOGARITHM,
            "The logarithm of the sum was subtracted twice. Once makes the exponentials of the results sum to "
            "1.", quotes=first_row),
        *usual_mistakes(RIGHT, arguments="x", detached=CONTRACT, float32=CONTRACT, single=CONTRACT, squeezed=CONTRACT,
                        viewed=CONTRACT),
        mistake("logarithm of the softmax in float64",
                LOG_OF_SHARES.but("= x - x", "= x.double() - x").but("/ total)", "/ total).to(x.dtype)"), LOGARITHM,
            """Minus infinity came back where scores are 1,000 apart: float64 only moves the limit. Below about 10 to
            the power -324 a probability underflows to 0 there too, *before* the logarithm is taken. Write log(a / b) as
            a difference first."""),
        mistake("logarithm of the softmax in float64, without the maximum", NAIVE.but("= x\n", "= x.double()\n").but(
                  DIFFERENCE, "torch.log(torch.exp(shifted) / total).to(x.dtype)"), LOGARITHM,
            """Computing in float64 moves the limits and does not remove them: exp(1001) still overflows before the
            division, and the probability of a score 1,000 below the others still underflows to 0 before the logarithm.
            Write log(a / b) as a difference, and subtract the maximum."""),
        shared.ANOTHER_AXIS(SHORT.before(f"total = {LOG_OF_SUM}", "dim = max(dim, -1)"), WHICH_AXIS,
                            shows=shared.takes_another_axis(log_softmax)),
    ),
    correct=(
        correct("logsumexp", SHORT),
        correct("each row's maximum", RIGHT),
        correct("maximum added back", """
            def log_softmax(x, dim):
                m = x.max(dim, keepdim=True).values
                total = m + torch.log(torch.sum(torch.exp(x - m), dim, keepdim=True))
                return x - total
        """),
        correct("logaddexp", """
            def log_softmax(x, dim):
                total = None
                for s in x.unbind(dim):
                    total = s if total is None else torch.logaddexp(total, s)
                return torch.stack([s - total for s in x.unbind(dim)], dim)
        """),
        correct("loops", """
            def log_softmax(x, dim):
                def one(scores):
                    top = max(scores.tolist())
                    total = sum(torch.exp(score - top) for score in scores)
                    return torch.stack([score - top - torch.log(total) for score in scores])
                last = x.movedim(dim, -1)
                rows = [one(r) for r in last.reshape(-1, last.shape[-1])]
                return torch.stack(rows).reshape(last.shape).movedim(-1, dim)
        """),
        correct("double inside",
                SHORT.but("sumexp(x", "sumexp(x.double()").but("x - total", "(x - total).to(x.dtype)")),
        correct("ratios to each score", """
            def log_softmax(x, dim):
                m = x.detach().amax(dim, keepdim=True)
                return torch.sub(x - m, torch.log((x - m).exp().sum(dim, keepdim=True)))
        """),
    ),
    hints=(
        "log(a / b) = log a - log b. What is log(exp(x))?",
        "the logarithm of the sum runs along dim and keeps that axis with length 1: (2, 3) minus (2, 1).",
        "z = x minus its maximum along dim; z minus the log of the sum of exp(z) along dim. No division.",
    ),
)
