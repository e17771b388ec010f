"""04.2: scores of any size as shares that sum to 1."""

import torch
from torch import Tensor

from autograder.catalogue import families
from autograder.catalogue.ch04_softmax import shared
from autograder.catalogue.ch04_softmax.shared import THINGS, WINDOWS, first_row, scores, sections, sums
from autograder.catalogue.exercise import Case, Evidence, Exercise
from autograder.catalogue.families import Family, in_place, usual_mistakes
from autograder.catalogue.known_answers import Answer, answer, correct, formula, mistake
from autograder.catalogue.probes import hidden, normal, usual_probes, visible
from autograder.catalogue.quotes import row
from transformer_ref.model import softmax as library

CONTRACT, LOGARITHM, POSITIVE, SLOPE, STABLE, WHICH_AXIS = sections("contract log exponential slope stable which-axis")


def softmax(x: Tensor, dim: int) -> Tensor:
    """exp(x) divided by its sum along dim, after subtracting the maximum."""
    return library.softmax(x, dim)


def far_apart(g: torch.Generator) -> Case:
    """Scores 120 apart within one row: the small probability is 0 in float32, the large one must still be correct. Two
    scores are about 200, half of which is still too much for an exponential; half of 120 is not."""
    x = normal(g, 2, 9, 5)
    x[0, 0, 1] += 120
    x[0, :, 3] += 80
    x[0, 7:, 3] += 120
    x[1, 2, 4] -= 120
    return Case((x, 1))


def around_1000(g: torch.Generator) -> Case:
    """Integers around +1000, -1000 and 0, a row with both of the first two, and a row with a single large score, whose
    mean is too far below it."""
    apart = torch.tensor([[1000.0, 995.5, -1000.0, 0.0], [300.0, 0.0, 0.0, 0.0]])
    more = torch.randint(-3, 4, (2, 4), generator=g) + apart
    x, dim = shared.around_1000(g).arguments
    return Case((torch.cat([x, more]), dim))


def columns(evidence: Evidence) -> str:
    return f"Your columns sum to {row(evidence.got.sum(0))}, your rows to {row(evidence.got.sum(-1))}."


def minus_infinity_counts(evidence: Evidence) -> bool | None:
    """Whether a score of minus infinity has a positive probability; None for results that are wrong by little."""
    infinite = evidence.arguments[0] == -torch.inf
    if bool(infinite.any()):
        return bool((evidence.got[infinite] > 0).any())
    apart = (evidence.got - evidence.expected).abs().max().item()
    return None if 1e-10 < apart < 1e-3 else False


def divided_by_the_largest(evidence: Evidence) -> bool:
    x, dim = evidence.arguments
    if evidence.got.shape != x.shape:
        return False
    units = (x.amax(dim=dim, keepdim=True), x.abs().amax(dim=dim, keepdim=True))
    flat = (library.softmax(x / unit, dim) for unit in units)
    return any(torch.allclose(evidence.got, each, rtol=1e-3, equal_nan=True) for each in flat)


RIGHT = answer("""
    def softmax(x, dim):
        largest = x.amax(dim=dim, keepdim=True)
        powers = torch.exp(x - largest)
        total = powers.sum(dim=dim, keepdim=True)
        return powers / total
""")
# Rows that overflow in float32, also with half of the maximum subtracted, and in float64; one that underflows, and one
# that does so with a common maximum.
LARGE = torch.tensor([100.0, 400.0, 1000.0, -1000.0, 0.0])[:, None] + torch.tensor([1.0, 0.0, 2.0])

LARGEST, SUM = "x.amax(dim=dim, keepdim=True)", "powers.sum(dim=dim, keepdim=True)"
NAIVE = RIGHT.without(f"largest = {LARGEST}").but("x - largest", "x")
ONE_LARGEST = RIGHT.but(LARGEST, "x.max()")


def always_along(axis: int) -> Answer:
    return RIGHT.but("amax(dim=dim", f"amax(dim={axis}").but("sum(dim=dim", f"sum(dim={axis}")


# fmt: off
ONE_SUM = Family("one sum for the whole tensor", """All entries together sum to 1. Each row (or column: dim says which)
    must sum to 1 separately.""")
ONE_MORE = Family("one more in the sum, after one maximum", """Every row sums to less than 1: there is an extra 1 in
    the denominator, as if a silent score took part.""")
# fmt: on

EXERCISE = Exercise(
    id="softmax", number="04.2", difficulty=2, minutes=15, visible_points=3, hidden_points=4,
    reference=softmax, section=POSITIVE, forbidden=shared.LIBRARY_SOFTMAX,
    probes=(
        visible("two rows of three", Case((THINGS, -1)), laws=(shared.ROWS_SUM_TO_ONE,)),
        visible("one row of four, dim=0", Case((WINDOWS, 0))),
        visible("large scores", Case((LARGE, -1))),
        *usual_probes(scores, other=((2, 3, 4, 5), 1), smallest=((1, 1, 2), 1), common=((2, 5, 3), 2),
                      precise=shared.far_away),
        hidden("down the columns: dim=0", scores, (3, 5), 0, announced_by="from the front or the back"),
        hidden("three axes, dim=-2", scores, (2, 4, 3), -2, announced_by="from the front or the back"),
        # float32 holds four decimals of 1000
        hidden("scores around 1000 and -1000", around_1000, rtol=1e-3,
               announced_by="1,000 or −1,000 must not give NaN"),
        hidden("scores 120 apart", far_apart, announced_by="any size"),
        # the probability of minus infinity is compared exactly
        hidden("a score of minus infinity", shared.with_minus_infinity, 2, 4, rtol=3e-3, atol=0.0,
               announced_by="A score of -inf gets 0"),
        hidden("gradients down the columns", scores, (4, 3), 0, dtype=torch.float64, checks="gradients", rtol=0.0,
               atol=1e-9, announced_by="from the front or the back"),
    ),
    mistakes=(
        mistake("no maximum subtracted", NAIVE, STABLE,
            """exp(1001) is infinite in float32, and infinite over infinite is NaN. The probabilities do not change when
            the same number is subtracted from every score: softmax(x) = softmax(x - c). Which c keeps every exponential
            at 1 or below?"""),
        mistake("float64 instead of a maximum", NAIVE.but("exp(x)", "exp(x.double())").but(
                  "powers / total", "(powers / total).to(x.dtype)"), STABLE,
            """Computing in float64 moves the limit from 88 to 709 and does not remove it: a score of 1001 still
            overflows, and one of -1001 underflows to 0 over 0. Taking the maximum away costs less and never fails."""),
        mistake("one maximum for the whole tensor", ONE_LARGEST, STABLE,
            """A row around -1000 next to a row around +1000 underflowed to 0 over 0: one maximum was taken for the
            whole tensor. Take the maximum of *each* row, along dim."""),
        mistake("largest absolute value subtracted", RIGHT.but("x.amax", "x.abs().amax"), STABLE,
            """The largest *absolute* value was subtracted. A row around -1000 then falls to -2000 and underflows to 0
            over 0. The largest value itself is what must land on 0."""),
        mistake("mean subtracted", RIGHT.but("x.amax", "x.mean"), STABLE,
            """You subtracted a number below the maximum, such as the row's mean. A score far above that still
            overflows, and one of minus infinity makes it infinite. The maximum is the number that never fails."""),
        mistake("minimum subtracted", RIGHT.but("x.amax", "x.amin"), STABLE,
            """The *smallest* score was subtracted, so everything grew upward and overflows when scores are far apart.
            Move everything below 0."""),
        mistake("NaN painted over", NAIVE.but("powers / total", "torch.nan_to_num(powers / total)"), STABLE,
            """The overflow is still there, only its NaN was replaced by 0: rows with large scores do not sum to 1. Stop
            it from arising, by making the scores smaller first."""),
        mistake("scores cut off", NAIVE.but("exp(x)", "exp(x.clamp(-50, 50))"), STABLE,
            """Large scores all got equal probabilities: either the scores were cut off at a limit, or the NaN of an
            overflow was replaced. You do not have to lose anything: the probabilities do not change when the same
            number is subtracted from every score."""),
        mistake("a little something in the denominator", ONE_LARGEST.but("/ total", "/ (total + 1e-9)"), STABLE,
            """Rows far below the largest score of the tensor came back as zeros: their exponentials underflowed, and a
            small number in the denominator hid it. With each row's own maximum the sum is never below 1."""),
        mistake("always along the last axis", always_along(-1), WHICH_AXIS,
            "Asked for dim=0, your rows sum to 1 and not your columns: dim is ignored, the last axis is always used."),
        mistake("always along the first axis", always_along(0), WHICH_AXIS,
            "The first axis is always used, whatever dim says. With dim=-1 each *row* should sum to 1.",
            quotes=columns),
        mistake("always along axis 1", always_along(1), WHICH_AXIS,
            "Axis 1 is always used, whatever dim says. A single row of four has no axis 1 at all."),
        mistake("maximum along the wrong axis", RIGHT.but("amax(dim=dim", "amax(dim=0"), STABLE,
            """The maximum was taken along another axis than the sum. Then a different number is subtracted from each
            score of a row, and the probabilities change. Subtract the same number from all scores that belong
            together.""", quotes=first_row),
        ONE_SUM(ONE_LARGEST.but(SUM, "powers.sum()"), WHICH_AXIS, quotes=sums),
        families.AXIS_LOST(NAIVE.but(", keepdim=True", ""), WHICH_AXIS),
        mistake("maxima with their positions", RIGHT.but("x.amax", "x.max"), STABLE,
            """The maximum along an axis is returned as a pair: the values, and their positions. Only the values can be
            subtracted from the scores."""),
        mistake("the lost axis put back at the end", RIGHT.but(LARGEST, "x.amax(dim=dim).unsqueeze(-1)").but(
                  SUM, "powers.sum(dim=dim).unsqueeze(-1)"), WHICH_AXIS,
            """The axis that a sum drops was put back as the *last* one, whatever dim says. That fits only where dim is
            the last axis. It belongs where it was."""),
        mistake("row by row, whatever dim says", """
            def softmax(x, dim):
                rows = []
                for scores in x:
                    e = torch.exp(scores - scores.max())
                    rows.append(e / e.sum())
                return torch.stack(rows)
        """, WHICH_AXIS,
            """Your loop normalizes each item along the first axis separately. That is only correct for a table and
            dim=-1; a single row is split into single numbers, which all get 1."""),
        mistake("math.exp for a whole tensor", NAIVE.but("torch.exp", "math.exp"), POSITIVE,
            "math.exp takes one plain number. For all numbers of a tensor at once there is an exponential in torch."),
        mistake("minus infinity replaced", RIGHT.before(f"largest = {LARGEST}", "x = torch.nan_to_num(x, neginf=0.0)"),
                POSITIVE,
            """A score of minus infinity got a probability above 0: it was replaced by a number, such as 0, whose
            exponential is 1, or all scores are held above a limit, or something small is added to the exponentials.
            Minus infinity needs no special care: its exponential is exactly 0.""",
            shows=minus_infinity_counts),
        mistake("the logarithm of the shares", RIGHT.but("powers / total", "x - largest - total.log()"), LOGARITHM,
            "Negative numbers: you returned the logarithms of the probabilities. That is exercise 04.3; one step is "
            "missing here.",
            quotes=first_row),
        mistake("no exponential", NAIVE.but("torch.exp(x)", "x"), POSITIVE,
            "There is no exponential: the scores were divided by their sum, so a negative score became a negative "
            "probability.",
            quotes=first_row),
        mistake("not divided", RIGHT.but("powers / total", "powers"), POSITIVE,
            """The largest of each row alone is 1, and the others come on top: these are exponentials, not yet
            probabilities, or exponentials divided by the largest of them. Divide by their sum.""", quotes=sums),
        mistake("plain powers", NAIVE.but("powers / total", "powers"), POSITIVE,
            "These are the exponentials, all positive, but not yet probabilities: divide them by their "
            "sum.", quotes=sums),
        mistake("divided by the mean", RIGHT.but("powers.sum", "powers.mean"), POSITIVE,
            "You divided by the mean of the exponentials, so a row sums to the number of its entries. Divide by the "
            "sum.",
            quotes=sums),
        mistake("divided by the sum of the scores", NAIVE.but("powers.sum", "x.sum"), POSITIVE,
            """The exponentials were divided by the sum of the *scores*. Divide by the sum of the exponentials
            instead.""", quotes=sums),
        mistake("base 2", RIGHT.but("torch.exp(x - largest)", "2 ** (x - largest)"), POSITIVE,
            """Your probabilities come from powers of 2. They sum to 1, but are flatter than with e, as if every score
            were 0.69 times as large.""", quotes=first_row),
        mistake("base 10", RIGHT.but("torch.exp(x - largest)", "10 ** (x - largest)"), POSITIVE,
            """Your probabilities come from powers of 10. They sum to 1, but are sharper than with e, as if every score
            were 2.3 times as large.""", quotes=first_row),
        mistake("sigmoid", NAIVE.but("torch.exp", "torch.sigmoid").but("powers / total", "powers"), POSITIVE,
            """A sigmoid maps every score to a number between 0 and 1 separately, so the scores do not compete. Along
            dim the results must sum to exactly 1.""", quotes=sums),
        mistake("sigmoid, then divided", NAIVE.but("torch.exp", "torch.sigmoid"), POSITIVE,
            """The scores went through a sigmoid before the division. It flattens large scores, so 5 and 10 come out
            nearly alike. The exponential turns *differences* of scores into *ratios* of
            probabilities.""", quotes=first_row),
        mistake("squares", NAIVE.but("torch.exp(x)", "x ** 2"), POSITIVE,
            "Squaring makes scores positive, but -1 gets the same result as +1. A larger score must give a larger "
            "number.",
            quotes=first_row),
        mistake("the smallest score wins", RIGHT.but("x.amax", "x.amin").but("x - largest", "largest - x"), POSITIVE,
            "The *smallest* score got the largest probability: a minus sign too many in the "
            "exponent.", quotes=first_row),
        mistake("one more in the sum", NAIVE.but("/ total", "/ (1 + total)"), POSITIVE,
            "Every row sums to less than 1: there is an extra 1 in the denominator, as if a silent score "
            "of 0 took part.",
            quotes=sums),
        mistake("only the largest", RIGHT.but("torch.exp(x - largest)", "(x == largest).to(x.dtype)"), POSITIVE,
            "The largest score got everything. That is the *hard* maximum; softmax is soft: it leaves every score some "
            "probability.",
            quotes=first_row),
        mistake("applied twice", RIGHT.but("return powers / total", """
                  again = torch.exp(powers / total)
                  return again / again.sum(dim=dim, keepdim=True)"""), POSITIVE,
            "The probabilities went through softmax once more, which makes them nearly equal: they are all between 0 "
            "and 1 already.",
            quotes=first_row),
        mistake("sum cut off from the gradient", RIGHT.but("/ total", "/ total.detach()"), SLOPE,
            """The values are right, but the gradient does not pass through the sum. Then raising one score seems to
            leave the others unchanged. (Detaching the *maximum* would do no harm.)"""),
        in_place("x", RIGHT.but("powers = torch.exp(x - largest)", "x -= largest\n    powers = torch.exp(x)"),
                 CONTRACT),
        mistake("maximum always along the last axis", RIGHT.but("amax(dim=dim", "amax(dim=-1"), WHICH_AXIS,
            """The maximum was taken along the last axis and the sum along dim. Subtract the same number from all scores
            that belong together, or their proportions change: both go along dim."""),
        ONE_SUM(RIGHT.but(SUM, "powers.sum()"),
            WHICH_AXIS, quotes=sums, name="one sum for the whole tensor, each row's maximum"),
        mistake("largest score as the unit", NAIVE.but("exp(x)", "exp(x / x.abs().amax(dim=dim, keepdim=True))"),
                STABLE,
            """The scores were *divided* by the largest, which makes them all alike. Subtracting the same number from
            each changes no probability; dividing does.""", quotes=first_row, shows=divided_by_the_largest),
        mistake("divided by the length of the powers", RIGHT.but(SUM, "powers.norm(dim=dim, keepdim=True)"), POSITIVE,
            "You divided by the length of the row of exponentials, so the *squares* sum to 1. Divide by the plain "
            "sum.",
            quotes=sums),
        mistake("only the others in the sum", RIGHT.but("/ total", "/ (total - powers)"), POSITIVE,
            """Each exponential was divided by the sum of the *others*. A probability is a part of the whole, and the
            whole includes the part itself.""", quotes=sums),
        mistake("exp(x) - 1", NAIVE.but("torch.exp(x)", "torch.expm1(x)"), POSITIVE,
            "1 was subtracted from every exponential, so negative scores get negative probabilities. The exponential "
            "itself is positive, and 1 at 0.",
            quotes=first_row),
        mistake("maximum taken away above only", RIGHT.but(SUM, "torch.exp(x).sum(dim=dim, keepdim=True)"), STABLE,
            """The maximum was subtracted in the numerator and not in the denominator, so a row does not sum to 1.
            Subtract the same number from every score, in the exponentials and in their sum.""", quotes=sums),
        mistake("maximum taken away below only", RIGHT.but("powers / total", "torch.exp(x) / total"), STABLE,
            """The maximum was subtracted in the denominator and not in the numerator, so a row does not sum to 1.
            Subtract the same number from every score, in the exponentials and in their sum.""", quotes=sums),
        mistake("scores divided by how many there are", RIGHT.but("x - largest", "(x - largest) / x.shape[dim]"),
                POSITIVE,
            "The scores were divided by their number, so the probabilities are too flat. Take the exponentials of the "
            "scores as they are.",
            quotes=first_row),
        mistake("scores divided by the root of how many there are",
                RIGHT.but("x - largest", "(x - largest) / x.shape[dim] ** 0.5"), POSITIVE,
            "The scores were divided by a root. That division belongs to dot products; softmax uses the scores as they "
            "are.",
            quotes=first_row),
        mistake("no exponential, the maximum taken away", RIGHT.but("torch.exp(x - largest)", "x - largest"), POSITIVE,
            "There is no exponential: scores, less their maximum, were divided by their sum. The largest score gets "
            "nothing then.",
            quotes=first_row),
        ONE_MORE(ONE_LARGEST.but("/ total", "/ (1 + total)"), POSITIVE, quotes=sums),
        ONE_MORE(RIGHT.but("/ total", "/ (1 + total)"),
            POSITIVE, quotes=sums, name="one more in the sum, after each maximum"),
        *usual_mistakes(RIGHT, arguments="x", detached=CONTRACT, float32=CONTRACT, single=CONTRACT, squeezed=CONTRACT,
                        viewed=CONTRACT),
        mistake("half of the maximum subtracted", RIGHT.but("x - largest", "x - largest / 2"), STABLE,
            """Only a part of the maximum was subtracted, such as half of it. A score of 1001 then leaves 500, whose
            exponential is infinite, and one of -1001 leaves -500, where all exponentials underflow to 0. The whole
            maximum must be subtracted: then the largest exponential is 1."""),
        mistake("the last axis unless dim is 0", RIGHT.before(f"largest = {LARGEST}", "dim = 0 if dim == 0 else -1"),
                WHICH_AXIS,
            """Along the first and the last axis your results are correct, along an axis between them they are not: the
            last axis is used there. dim may be any axis of x."""),
        shared.ANOTHER_AXIS(RIGHT.before(f"largest = {LARGEST}", "dim = max(dim, -1)"), WHICH_AXIS,
                            shows=shared.takes_another_axis(softmax)),
    ),
    correct=(
        correct("each row's maximum", RIGHT.but(LARGEST, "x.max(dim=dim, keepdim=True).values")),
        correct("through the logarithm",
                formula("softmax(scores, dim)", "(scores - scores.logsumexp(dim, keepdim=True)).exp()")),
        correct("maximum detached", RIGHT.but("x.amax", "x.detach().amax").but("dim):", "dim=-1):")),
        correct("axis moved to the end", """
            def softmax(x, dim):
                x = x.movedim(dim, -1)
                e = torch.exp(x - x.amax(-1)[..., None])
                return (e / e.sum(-1).unsqueeze(-1)).movedim(-1, dim)
        """),
        correct("loops", """
            def softmax(x, dim):
                def one(scores):
                    top = max(scores.tolist())
                    powers = [torch.exp(score - top) for score in scores]
                    total = sum(powers)
                    return torch.stack([power / total for power in powers])
                last = x.transpose(dim, -1)
                rows = [one(r) for r in last.reshape(-1, last.shape[-1])]
                return torch.stack(rows).reshape(last.shape).transpose(dim, -1)
        """),
        correct("slices along dim", """
            def softmax(x, dim):
                slices = x.unbind(dim)
                top = slices[0]
                for s in slices[1:]:
                    top = torch.maximum(top, s)
                powers = [(s - top).exp() for s in slices]
                return torch.stack([p / sum(powers) for p in powers], dim)
        """),
        correct("double inside",
                RIGHT.but("x - la", "x.double() - la").but("powers / total", "(powers / total).to(x.dtype)")),
        correct("one over the sum of ratios", """
            def softmax(x, dim):
                m = torch.amax(x, dim, keepdim=True)
                return torch.reciprocal(torch.sum(torch.exp(x - m), dim, keepdim=True)) * torch.exp(x - m)
        """),
        correct("sum by einsum", """
            def softmax(x, dim):
                x = torch.swapaxes(x, dim, -1)
                e = math.e ** (x - x.amax(-1, keepdim=True))
                return torch.swapaxes(e / torch.einsum("...k->...", e)[..., None], dim, -1)
        """),
    ),
    hints=(
        "what does exp(1000) give you, and along which axis should the numbers sum to 1?",
        "maximum and sum run along dim and keep that axis with length 1: (2, 3) minus (2, 1), then (2, 3) over (2, 1).",
        "subtract each slice's maximum along dim; exp; divide by the sum along the same dim.",
    ),
)
