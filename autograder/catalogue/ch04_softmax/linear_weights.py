"""04.1: scores as shares, by dividing through their sum."""

import torch
from torch import Tensor

from autograder.catalogue.ch04_softmax.shared import sections, sums
from autograder.catalogue.exercise import Case, Evidence, Exercise
from autograder.catalogue.families import in_place, usual_mistakes
from autograder.catalogue.known_answers import answer, correct, mistake
from autograder.catalogue.laws import sums_to_one
from autograder.catalogue.probes import hidden, normal, usual_probes, visible

CONTRACT, SUM = sections("contract linear")


def linear_weights(x: Tensor) -> Tensor:
    """x divided by its sum. Raises ValueError if a score is negative or all are 0."""
    if (x < 0).any():
        raise ValueError("x: expected no negative score")
    if x.sum() == 0:
        raise ValueError("x: expected a total above 0")
    return x / x.sum()


def positive(g: torch.Generator, n: int, dtype: torch.dtype = torch.float32) -> Case:
    return Case((normal(g, n, dtype=dtype).abs() + 0.1,))


def one_negative(g: torch.Generator) -> Case:
    """Scores with one barely negative and a large sum, so that only the sign is a reason to refuse."""
    x = normal(g, 5).abs() + 1.1
    x[3] = -1e-7
    return Case((x,))


def with_zeros(g: torch.Generator) -> Case:
    """Two scores of 0, and a sum that is small but not 0."""
    x = (normal(g, 6).abs() + 0.1) * 1e-11
    x[0], x[4] = 0.0, 0.0
    return Case((x,))


def sum_too_large(evidence: Evidence) -> bool | None:
    """Whether the scores were divided by a number a little larger than their sum; None where it is hardly larger."""
    x, positive = evidence.arguments[0], evidence.expected > 0
    divisors = x[positive] / evidence.got[positive]
    added = divisors.mean().item() - x.sum().item()
    if evidence.got.dtype == x.dtype and 0 <= added < 1e-5 * x.sum().item():
        return None
    return evidence.got.dtype == x.dtype and 0 < added < 0.05 and torch.allclose(divisors, divisors[:1], rtol=1e-3)


RIGHT = answer("""
    def linear_weights(x):
        total = x.sum()
        if (x < 0).any() or total == 0:
            raise ValueError("x: expected scores of 0 or more, not all 0")
        return x / total
""")
REASONS, REFUSE = "(x < 0).any() or total == 0", 'raise ValueError("x: expected scores of 0 or more, not all 0")'
UNCHECKED = RIGHT.without(f"if {REASONS}:").without(REFUSE)

EXERCISE = Exercise(
    id="linear-weights", number="04.1", difficulty=1, minutes=10, visible_points=1, hidden_points=1,
    reference=linear_weights, section=SUM,
    probes=(
        visible("orange and apple", Case((torch.tensor([1.0, 0.71]),)), laws=(sums_to_one("they sum to 1"),)),
        visible("orange and motorcycle", Case((torch.tensor([1.0, -1.0]),))),
        visible("a negative score and a sum of 1", Case((torch.tensor([2.0, -1.0]),))),
        *usual_probes(positive, other=(5,), smallest=(1,), common=(4,), floats=False),
        hidden("float64", positive, 7, dtype=torch.float64, rtol=0.0, atol=1e-9, announced_by="(n,)"),
        hidden("a negative score and a positive sum", one_negative, announced_by="one of them is negative"),
        hidden("some scores are 0, the others small", with_zeros,
               announced_by="their sum may be as small as 1e-11"),
        hidden("all scores are 0", Case((torch.zeros(1),)), announced_by="when the sum is 0"),
    ),
    omits={"precision": "the scores may be small; the probe in float64 compares nine decimals",
           "a batch of one": "there is one list of scores; a probe has a list of one score"},
    mistakes=(
        mistake("nothing is refused", UNCHECKED, SUM,
            """For (1, -1) the sum is 0, and 1 divided by 0 is infinite. Dividing by the sum gives proportions only if
            no score is negative and not all are 0; anything else should raise ValueError. (An error that is only
            printed stops nothing: it has to be raised.)"""),
        mistake("only a sum of zero is refused", RIGHT.but(REASONS, "total == 0"), SUM,
            """A negative score passes where the sum is not 0. Its proportion would be negative, and without its sign
            it would be a different score. Check every score, and reject any that is negative, whatever the sum is;
            a sum of 0 is a second reason. (If you check for both: does one of them suffice in your code, or does it
            need both?)"""),
        mistake("only negative scores are refused", RIGHT.but(REASONS, "(x < 0).any()"), SUM,
            "Negative scores are refused, but scores that are all 0 come back as NaN: their sum is 0 as well."),
        mistake("a score of zero is refused", RIGHT.but("x < 0", "x <= 0"), SUM,
            """A score of 0 among positive ones is allowed: its result is 0. Only negative scores, or a sum of 0, are
            not."""),
        mistake("signs dropped", RIGHT.before("total = x.sum()", "x = x.abs()"), SUM,
            "-1 counts as much as +1: the absolute value of the score makes the opposite of an orange an orange."),
        mistake("signs dropped in the sum only", RIGHT.but("x.sum()", "x.abs().sum()").but(REASONS, "total == 0"), SUM,
            """The sum was taken of absolute values, so (1, -1) gives 0.5 and -0.5: a negative proportion, and a total
            of 0. Refuse negative scores instead."""),
        mistake("negative scores cut to zero", RIGHT.before("total = x.sum()", "x = x.clamp(min=0)"), SUM,
            """Negative scores were silently replaced by 0. The caller wants the result for *these* scores and silently
            gets that of different ones. Raise a ValueError."""),
        mistake("smallest score moved to zero", RIGHT.before("total = x.sum()", "x = x - x.min()"), SUM,
            """The smallest score was subtracted from all, so the least similar word always gets exactly nothing,
            however similar it is."""),
        mistake("divided by the largest", RIGHT.but("/ total", "/ x.max()"), SUM,
            """You divided by the largest score, so the largest result alone is 1, and the others come on top. Divide
            by the sum.""", quotes=sums),
        mistake("divided by how many there are", RIGHT.but("/ total", "/ len(x)"), SUM,
            "You divided by the *number* of scores. The results must sum to 1 whatever the scores are, so divide by "
            "their sum.",
            quotes=sums),
        mistake("divided by the length of the vector", RIGHT.but("/ total", "/ x.norm()"), SUM,
            "You divided by the length of the vector, so the *squares* of your results sum to 1. The results "
            "themselves must: divide by the sum.",
            quotes=sums),
        mistake("something small in the denominator", RIGHT.but("/ total", "/ (total + 1e-3)"), SUM,
            """Your results sum to less than 1: something was added to the sum that you divide by, and next to a sum
            of 1e-11 even a tiny number is large. Nothing has to be added, since a sum of 0 raises an error.""",
            quotes=sums, shows=sum_too_large),
        mistake("divided by the mean", RIGHT.but("/ total", "/ x.mean()"), SUM,
            "You divided by the mean of the scores, so your results sum to the number of scores. Divide by the sum.",
            quotes=sums),
        mistake("softmax in place of the division", RIGHT.but("x / total", "torch.softmax(x, dim=0)"), SUM,
            "This is softmax, which comes next. Here each score is divided by the plain sum of all."),
        mistake("softmax already", UNCHECKED.but("x / total", "torch.softmax(x, dim=0)"), SUM,
            """This is softmax, which comes next. It never refuses anything. Here try the plain division first, and see
            where it breaks."""),
        mistake("zeros instead of an error", RIGHT.but(REFUSE, "return torch.zeros_like(x)"), SUM,
            """For scores that have no valid result you return zeros, which look like a result and sum to 0. An error at
            the place where it happens saves hours: raise ValueError."""),
        mistake("None instead of an error", RIGHT.but(REFUSE, "return None"), SUM,
            """For scores that have no valid result you return None. The caller will fail later, somewhere else. Raise
            ValueError here."""),
        mistake("assert instead of ValueError", UNCHECKED.but(
                  "return", "assert (x >= 0).all() and total > 0\n    return"), CONTRACT,
            """You reject such scores by assert, which raises AssertionError. An assert vanishes when Python runs with
            -O; for an input that the caller can get wrong, raise ValueError."""),
        mistake("another error than ValueError", RIGHT.but("ValueError", "ZeroDivisionError"), CONTRACT,
            """You refuse the right scores with ZeroDivisionError. The contract says ValueError, so that a caller can
            catch one name for both reasons."""),
        mistake("sum cut off from the gradient", RIGHT.but("x.sum()", "x.sum().item()"), CONTRACT,
            """The values are right, but the gradient does not pass through the sum: .item(), or adding up plain
            numbers, cut it. Then raising one score seems to leave the other results unchanged."""),
        in_place("x", RIGHT.but("return x / total", "x /= total\n    return x"), CONTRACT),
        *usual_mistakes(RIGHT, arguments="x", detached=CONTRACT, float32=CONTRACT, single=CONTRACT, squeezed=CONTRACT),
        mistake("compared with a tolerance", RIGHT.but(REASONS, "(x < -1e-6).any() or total < 1e-8"), SUM,
            """A score just below 0 passes, and scores with a tiny sum above 0 are refused: is there a tolerance in your
            comparisons? Compare with 0 itself."""),
        mistake("a small sum refused", RIGHT.but("total == 0", "total < 0.01"), SUM,
            "Small scores were refused, but their proportions are as valid as those of large ones. Only a sum of "
            "exactly 0 has none."),
    ),
    correct=(
        correct("two checks", """
            def linear_weights(scores):
                if (scores < 0).any():
                    raise ValueError('negative')
                if scores.sum() == 0:
                    raise ValueError('no total')
                return scores / scores.sum()
        """),
        correct("one check", """
            def linear_weights(x):
                total = x.sum()
                if x.min() < 0 or total <= 0:
                    raise ValueError(f'x: expected shares, got {x}')
                return x.div(total)
        """),
        correct("loops", """
            def linear_weights(x):
                total = 0
                for score in x:
                    if score < 0:
                        raise ValueError("negative score")
                    total = total + score
                if total == 0:
                    raise ValueError("all scores are zero")
                return torch.stack([score / total for score in x])
        """),
        correct("checked afterwards", """
            def linear_weights(x):
                w = x / x.sum()
                if not torch.isfinite(w).all() or x.lt(0).any():
                    raise ValueError('no shares')
                return w
        """),
        correct("normalize", """
            def linear_weights(x):
                if torch.any(x < 0) or not torch.any(x > 0):
                    raise ValueError
                return F.normalize(x, p=1, dim=0)
        """),
        correct("double inside", """
            def linear_weights(x):
                y = x.double()
                if bool((y < 0).sum()) or float(y.sum()) == 0.0:
                    raise ValueError('x')
                return (y / y.sum()).to(x.dtype)
        """),
    ),
    hints=(
        "which two kinds of scores have no valid result?",
        "x is (n,), its sum is one number, the result is (n,). A negative score, or a sum of 0, has no result.",
        "if any score is below 0, raise ValueError; if the sum is 0, raise ValueError; otherwise divide "
        "every score by the sum.",
    ),
)
