"""Chapter 04, softmax: five exercises, their probes, and the wrong answers that teachers know."""

import torch
from torch import Tensor

from autograder.catalogue.exercise import Assignment, Case, Evidence, Exercise, Law, Probe, Section
from autograder.catalogue.parts import GRADIENTS, UNTOUCHED, known, normal, right, row, shares, sizes, turned
from autograder.judging.compare import number
from transformer_ref.model import softmax as library

# ------------------------------------------------------------------------------------------------ shared by the exercises

THINGS = torch.tensor(
    [[1.0, 0.71, -1.0], [0.0, 2.0, 1.0]]
)  # orange against orange, apple, motorcycle; and plain numbers
WINDOWS = torch.tensor([1.414, 1.414, 0.0, 2.828])  # what windows scored in chapter 03
INFINITY = float("inf")

SUM = Section("04", "Dividing by the sum", "sec-04-linear")
POSITIVE = Section("04", "Make them positive", "sec-04-exponential")
WHICH_AXIS = Section("04", "Along which axis?", "sec-04-which-axis")
STABLE = Section("04", "Large scores", "sec-04-stable")
LOGARITHM = Section("04", "The logarithm of a share", "sec-04-log")
TEMPERATURE = Section("04", "Hot and cold", "sec-04-temperature")
SLOPE = Section("04", "What one score does to all shares", "sec-04-slope")
CONTRACT = Section("04", "What every function here keeps", "sec-04-contract")

# torch's own softmax, and what runs one for you. Modules and other spellings end in these (see recorder.MEANINGS).
LIBRARY_SOFTMAX = (
    "softmax",
    "log_softmax",
    "softmin",
    "gumbel_softmax",
    "cross_entropy",
    "Categorical",
    "scaled_dot_product_attention",
    "MultiheadAttention",
    "flex_attention",
)

ROWS_SUM_TO_ONE = Law("every row sums to 1", lambda got: torch.allclose(got.sum(-1), torch.ones(()), atol=1e-4))

CUT_OFF = "The values are right, but no gradient flows back to x: .detach(), .data, no_grad, numpy or a plain list cut the graph."
FLOAT32 = "float64 went in and float32 came out. The result keeps the dtype of the input."
IN_PLACE = """x was changed. An operation such as -=, /= or exp_ writes into the tensor that was passed in, and the caller still
needs it. Make a new one."""


def _sums(evidence: Evidence) -> str:
    """What each row, or the single row, sums to."""
    got = evidence.got
    if got.dim() == 1:
        return f"Your numbers sum to {number(got.sum())}."
    return f"Your rows sum to {row(got.sum(-1))}."


def _columns(evidence: Evidence) -> str:
    return f"Your columns sum to {row(evidence.got.sum(0))}, your rows to {row(evidence.got.sum(-1))}."


def _first_row(evidence: Evidence) -> str:
    """The first row as it is and as it should be."""
    got, expected = (value if value.dim() == 1 else value[0] for value in (evidence.got, evidence.expected))
    return f"You returned {row(got)}; by hand it is {row(expected)}."


# ------------------------------------------------------------------------------------------------ 04.1 linear_weights


def linear_weights(x: Tensor) -> Tensor:
    """x divided by its sum. Raises ValueError where that gives no shares."""
    if (x < 0).any():
        raise ValueError("x: expected no negative score")
    if x.sum() == 0:
        raise ValueError("x: expected a total above 0")
    return x / x.sum()


def _positive(g: torch.Generator, *shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return normal(g, *shape, dtype=dtype).abs() + 0.1


def _one_negative(g: torch.Generator) -> Case:
    """Its total is far above 0, so only the sign can be the reason to refuse."""
    x = _positive(g, 5) + 1
    x[3] = -0.5
    return Case((x,))


def _with_zeros(g: torch.Generator) -> Case:
    x = _positive(g, 6)
    x[0], x[4] = 0.0, 0.0
    return Case((x,))


LINEAR_EXERCISE = Exercise(
    id="linear-weights",
    number="04.1",
    names=("linear_weights",),
    visible_points=1,
    hidden_points=1,
    section=SUM,
    reference={"linear_weights": linear_weights},
    probes=(
        Probe(
            "orange and apple",
            lambda g: Case((torch.tensor([1.0, 0.71]),)),
            hidden=False,
            laws=(Law("they sum to 1", lambda got: abs(got.sum().item() - 1) < 1e-4),),
        ),
        Probe("orange and motorcycle", lambda g: Case((torch.tensor([1.0, -1.0]),)), hidden=False),
        Probe("five positive scores", lambda g: Case((_positive(g, 5),))),
        Probe("a negative score and a positive sum", _one_negative),
        Probe("some scores are 0", _with_zeros),
        Probe("all scores are 0", lambda g: Case((torch.zeros(3),))),
        Probe("a single score", lambda g: Case((_positive(g, 1) + 1,))),
        Probe("float64", lambda g: Case((_positive(g, 7, dtype=torch.float64),))),
        Probe("gradients", lambda g: Case((_positive(g, 4, dtype=torch.float64),)), also=GRADIENTS),
        Probe("nothing else is touched", lambda g: Case((_positive(g, 4),)), also=UNTOUCHED),
    ),
    misconceptions=(
        known(
            "nothing is refused",
            "def linear_weights(x):\n    return x / x.sum()\n",
            """For (1, -1) the sum is 0, and 1 divided by 0 is infinite. Dividing by the sum makes shares only of scores that
            are not negative and not all 0; anything else should raise ValueError.""",
            SUM,
        ),
        known(
            "only a sum of zero is refused",
            "def linear_weights(x):\n    if x.sum() == 0:\n        raise ValueError('sum is 0')\n    return x / x.sum()\n",
            """A sum of 0 is refused, but a negative score with a positive sum passes and comes back as a negative share.
            Nobody can take less than nothing of a word: refuse any negative score.""",
            SUM,
        ),
        known(
            "only negative scores are refused",
            "def linear_weights(x):\n    if (x < 0).any():\n        raise ValueError('negative')\n    return x / x.sum()\n",
            "Negative scores are refused, but scores that are all 0 come back as NaN: their sum is 0 as well.",
            SUM,
        ),
        known(
            "a score of zero is refused",
            "def linear_weights(x):\n    if (x <= 0).any():\n        raise ValueError('not positive')\n    return x / x.sum()\n",
            "A score of 0 among positive ones is no reason to refuse: its share is 0. Only negative scores, or a sum of 0, are.",
            SUM,
        ),
        known(
            "signs dropped",
            "def linear_weights(x):\n    x = x.abs()\n    if x.sum() == 0:\n        raise ValueError('sum is 0')\n    return x / x.sum()\n",
            "-1 became as attractive as +1: taking absolute values turns the opposite of an orange into an orange.",
            SUM,
        ),
        known(
            "signs dropped in the sum only",
            "def linear_weights(x):\n    if x.abs().sum() == 0:\n        raise ValueError('sum is 0')\n    return x / x.abs().sum()\n",
            """The sum was taken of absolute values, so (1, -1) comes back as 0.5 and -0.5: a negative share, and a total of 0.
            Refuse negative scores instead.""",
            SUM,
        ),
        known(
            "negative scores cut to zero",
            "def linear_weights(x):\n    x = x.clamp(min=0)\n    if x.sum() == 0:\n        raise ValueError('sum is 0')\n    return x / x.sum()\n",
            """Negative scores were silently replaced by 0. The caller asked for shares of *these* scores and gets those of others,
            without a word. Say ValueError.""",
            SUM,
        ),
        known(
            "smallest score moved to zero",
            "def linear_weights(x):\n    x = x - x.min()\n    if x.sum() == 0:\n        raise ValueError('sum is 0')\n    return x / x.sum()\n",
            "The smallest score was subtracted from all, so the least similar word always gets exactly nothing, however similar it is.",
            SUM,
        ),
        known(
            "divided by the largest",
            "def linear_weights(x):\n    if (x < 0).any() or x.sum() == 0:\n        raise ValueError('x')\n    return x / x.max()\n",
            "You divided by the largest score, so the largest share is 1 and there is nothing left for the others. Divide by the sum.",
            SUM,
            _sums,
        ),
        known(
            "divided by how many there are",
            "def linear_weights(x):\n    if (x < 0).any() or x.sum() == 0:\n        raise ValueError('x')\n    return x / len(x)\n",
            "You divided by the *number* of scores. Shares must sum to 1 whatever the scores are, so divide by their sum.",
            SUM,
            _sums,
        ),
        known(
            "divided by the length of the vector",
            "def linear_weights(x):\n    if (x < 0).any() or x.sum() == 0:\n        raise ValueError('x')\n    return x / x.norm()\n",
            "You divided by the length of the vector, so the *squares* sum to 1. Shares themselves must: divide by the sum.",
            SUM,
            _sums,
        ),
        known(
            "softmax already",
            "def linear_weights(x):\n    return torch.softmax(x, dim=0)\n",
            "This is softmax, which comes next. It never refuses anything. Here try the plain division first, and see where it breaks.",
            SUM,
        ),
        known(
            "zeros instead of an error",
            "def linear_weights(x):\n    if (x < 0).any() or x.sum() == 0:\n        return torch.zeros_like(x)\n    return x / x.sum()\n",
            """Scores that have no shares come back as zeros, which look like an answer and sum to 0. An error at the place where
            it happens saves hours: raise ValueError.""",
            SUM,
        ),
        known(
            "None instead of an error",
            "def linear_weights(x):\n    if (x < 0).any() or x.sum() == 0:\n        return None\n    return x / x.sum()\n",
            "Scores that have no shares come back as None. Whoever calls will stumble over it later, elsewhere. Raise ValueError here.",
            SUM,
        ),
        known(
            "assert instead of ValueError",
            "def linear_weights(x):\n    assert (x >= 0).all() and x.sum() > 0\n    return x / x.sum()\n",
            """You refuse, by assert, and that raises AssertionError. It vanishes when Python runs with -O; for an input that
            the caller can get wrong, ValueError is the word.""",
            CONTRACT,
        ),
        known(
            "another error than ValueError",
            "def linear_weights(x):\n    if (x < 0).any() or x.sum() == 0:\n        raise ZeroDivisionError('x')\n    return x / x.sum()\n",
            "You refuse the right scores with ZeroDivisionError. The contract says ValueError, so that a caller can catch one name for both reasons.",
            CONTRACT,
        ),
        known(
            "cut off from the gradient",
            """
            def linear_weights(x):
                numbers = x.tolist()
                if min(numbers) < 0 or sum(numbers) == 0:
                    raise ValueError("x")
                return torch.tensor([number / sum(numbers) for number in numbers], dtype=x.dtype)
            """,
            CUT_OFF,
            CONTRACT,
        ),
        known(
            "sum cut off from the gradient",
            """
            def linear_weights(x):
                total = x.sum().item()
                if (x < 0).any() or total == 0:
                    raise ValueError("x")
                return x / total
            """,
            """The values are right, but the gradient does not pass through the sum: .item(), or adding up plain numbers, cut it. Then
            raising one score seems to leave the other shares alone.""",
            CONTRACT,
        ),
        known(
            "always float32",
            "def linear_weights(x):\n    if (x < 0).any() or x.sum() == 0:\n        raise ValueError('x')\n    return (x / x.sum()).float()\n",
            FLOAT32,
            CONTRACT,
        ),
        known(
            "x changed in place",
            "def linear_weights(x):\n    if (x < 0).any() or x.sum() == 0:\n        raise ValueError('x')\n    x /= x.sum()\n    return x\n",
            IN_PLACE,
            CONTRACT,
        ),
    ),
    variants=(
        right(
            "two checks",
            "def linear_weights(scores):\n    if (scores < 0).any():\n        raise ValueError('negative')\n    if scores.sum() == 0:\n        raise ValueError('no total')\n    return scores / scores.sum()\n",
        ),
        right(
            "one check",
            "def linear_weights(x):\n    total = x.sum()\n    if x.min() < 0 or total <= 0:\n        raise ValueError(f'x: expected shares, got {x}')\n    return x.div(total)\n",
        ),
        right(
            "loops",
            """
            def linear_weights(x):
                total = 0
                for score in x:
                    if score < 0:
                        raise ValueError("negative score")
                    total = total + score
                if total == 0:
                    raise ValueError("all scores are zero")
                return torch.stack([score / total for score in x])
            """,
        ),
        right(
            "checked afterwards",
            "def linear_weights(x):\n    w = x / x.sum()\n    if not torch.isfinite(w).all() or x.lt(0).any():\n        raise ValueError('no shares')\n    return w\n",
        ),
        right(
            "normalize",
            "def linear_weights(x):\n    if torch.any(x < 0) or not torch.any(x > 0):\n        raise ValueError\n    return F.normalize(x, p=1, dim=0)\n",
        ),
        right(
            "double inside",
            "def linear_weights(x):\n    y = x.double()\n    if bool((y < 0).sum()) or float(y.sum()) == 0.0:\n        raise ValueError('x')\n    return (y / y.sum()).to(x.dtype)\n",
        ),
    ),
    hints=(
        "which two kinds of scores have no shares at all?",
        "x is (n,), its sum is one number, the result is (n,). A negative score, or a sum of 0, has no result.",
        "if any score is below 0, raise ValueError; if the sum is 0, raise ValueError; else every score over the sum.",
    ),
)

# ------------------------------------------------------------------------------------------------ 04.2 softmax


def softmax(x: Tensor, dim: int) -> Tensor:
    """exp(x) over its sum along dim, with the maximum taken away first."""
    return library.softmax(x, dim)


def _large(g: torch.Generator) -> Case:
    """Whole numbers around +1000, -1000 and 0: exact in float32, far beyond what an exponential can hold."""
    x = torch.randint(-3, 4, (3, 4), generator=g).float() + torch.tensor([1000.0, -1000.0, 0.0])[:, None]
    x[:, 1] += 4.5  # so that no row is all equal
    return Case((x, 1))


def _forbidden_word(g: torch.Generator, rows: int, columns: int) -> Case:
    x = normal(g, rows, columns)
    x[1, 2], x[0, 0] = -INFINITY, -INFINITY
    return Case((x, -1))


def _both_ends(g: torch.Generator) -> Case:
    """Scores 120 apart within one row: the small share is 0 in float32, the large one must not suffer for it."""
    x = normal(g, 2, 3, 5)
    x[0, 0, 1] += 120
    x[1, 2, 4] -= 120
    return Case((x, 1))


SOFTMAX_EXERCISE = Exercise(
    id="softmax",
    number="04.2",
    names=("softmax",),
    visible_points=3,
    hidden_points=4,
    section=POSITIVE,
    reference={"softmax": softmax},
    forbidden=LIBRARY_SOFTMAX,
    probes=(
        Probe("two rows of three", lambda g: Case((THINGS, -1)), hidden=False, laws=(ROWS_SUM_TO_ONE,)),
        Probe("one row of four, dim=0", lambda g: Case((WINDOWS, 0)), hidden=False),
        Probe("down the columns: dim=0", lambda g: Case((normal(g, 3, 5) * 2, 0))),
        Probe("three axes, dim=1", lambda g: Case((normal(g, 2, 3, 5) * 2, 1))),
        Probe("three axes, dim=-2", lambda g: Case((normal(g, 2, 4, 3) * 2, -2))),
        Probe("scores around 1000 and -1000", _large, rtol=1e-3),  # float32 holds four decimals of 1000
        Probe("scores 120 apart", _both_ends),
        Probe("a score of minus infinity", lambda g: _forbidden_word(g, 2, 4)),
        Probe("a single score to share among", lambda g: Case((normal(g, 3, 1, 2), 1))),
        Probe(
            "float64, transposed in memory",
            lambda g: Case((turned(normal(g, 2, 5, 3, dtype=torch.float64)), 2)),
        ),
        Probe("gradients", lambda g: Case((normal(g, 4, 3, dtype=torch.float64), 0)), also=GRADIENTS),
        Probe("nothing else is touched", lambda g: Case((normal(g, 3, 4), -1)), also=UNTOUCHED),
    ),
    misconceptions=(
        known(
            "no maximum subtracted",
            "def softmax(x, dim):\n    e = torch.exp(x)\n    return e / e.sum(dim=dim, keepdim=True)\n",
            """exp(1001) is infinite in float32, and infinite over infinite is NaN. The shares do not change when one number
            is taken away from every score: softmax(x) = softmax(x - c). Which c keeps every power at 1 or below?""",
            STABLE,
        ),
        known(
            "float64 instead of a maximum",
            "def softmax(x, dim):\n    e = torch.exp(x.double())\n    return (e / e.sum(dim=dim, keepdim=True)).to(x.dtype)\n",
            """Computing in float64 moves the limit from 88 to 709 and does not remove it: a score of 1001 still overflows, and one of -1001
            underflows to 0 over 0. Taking the maximum away costs less and never fails.""",
            STABLE,
        ),
        known(
            "one maximum for the whole tensor",
            "def softmax(x, dim):\n    e = torch.exp(x - x.max())\n    return e / e.sum(dim=dim, keepdim=True)\n",
            """A row around -1000 beside a row around +1000 underflowed to 0 over 0: one maximum was taken for the whole
            tensor. Take the maximum of *each* row, along the axis that shares.""",
            STABLE,
        ),
        known(
            "largest absolute value subtracted",
            "def softmax(x, dim):\n    e = torch.exp(x - x.abs().amax(dim=dim, keepdim=True))\n    return e / e.sum(dim=dim, keepdim=True)\n",
            """The largest *absolute* value was subtracted. A row around -1000 then falls to -2000 and underflows to 0 over 0.
            The largest value itself is what must land on 0.""",
            STABLE,
        ),
        known(
            "mean subtracted",
            "def softmax(x, dim):\n    e = torch.exp(x - x.mean(dim=dim, keepdim=True))\n    return e / e.sum(dim=dim, keepdim=True)\n",
            """The mean was subtracted. That is a fair number, but a score far above the mean still overflows, and one of
            minus infinity makes the mean infinite. The maximum is the number that never fails.""",
            STABLE,
        ),
        known(
            "minimum subtracted",
            "def softmax(x, dim):\n    e = torch.exp(x - x.amin(dim=dim, keepdim=True))\n    return e / e.sum(dim=dim, keepdim=True)\n",
            "The *smallest* score was subtracted, so everything grew upward and overflows when scores lie far apart. Push everything below 0.",
            STABLE,
        ),
        known(
            "NaN painted over",
            "def softmax(x, dim):\n    e = torch.exp(x)\n    return torch.nan_to_num(e / e.sum(dim=dim, keepdim=True))\n",
            """The overflow is still there, only its NaN was replaced by 0: rows with large scores do not sum to 1. Stop it
            from arising, by making the scores smaller first.""",
            STABLE,
        ),
        known(
            "scores cut off",
            "def softmax(x, dim):\n    e = torch.exp(x.clamp(-50, 50))\n    return e / e.sum(dim=dim, keepdim=True)\n",
            """Scores were cut off at a limit, so 1000 and 997 became equals. There is no need to lose anything: the shares
            do not change when every score moves by the same amount.""",
            STABLE,
        ),
        known(
            "a little something in the denominator",
            "def softmax(x, dim):\n    e = torch.exp(x - x.max())\n    return e / (e.sum(dim=dim, keepdim=True) + 1e-9)\n",
            """Rows far below the largest score of the tensor came back as zeros: their powers underflowed, and a small number
            in the denominator hid it. With each row's own maximum the sum is never below 1.""",
            STABLE,
        ),
        known(
            "always along the last axis",
            "def softmax(x, dim):\n    e = torch.exp(x - x.amax(dim=-1, keepdim=True))\n    return e / e.sum(dim=-1, keepdim=True)\n",
            "Asked for dim=0, your rows sum to 1 and not your columns: dim is ignored, the last axis is always used.",
            WHICH_AXIS,
        ),
        known(
            "always along the first axis",
            "def softmax(x, dim):\n    e = torch.exp(x - x.amax(dim=0, keepdim=True))\n    return e / e.sum(dim=0, keepdim=True)\n",
            "The first axis is always used, whatever dim says. With dim=-1 each *row* should share out 1.",
            WHICH_AXIS,
            _columns,
        ),
        known(
            "always along axis 1",
            "def softmax(x, dim):\n    e = torch.exp(x - x.amax(dim=1, keepdim=True))\n    return e / e.sum(dim=1, keepdim=True)\n",
            "Axis 1 is always used, whatever dim says. A single row of four has no axis 1 at all.",
            WHICH_AXIS,
        ),
        known(
            "maximum along the wrong axis",
            "def softmax(x, dim):\n    e = torch.exp(x - x.amax(dim=0, keepdim=True))\n    return e / e.sum(dim=dim, keepdim=True)\n",
            """The maximum was taken along another axis than the sum. Then each score of a row loses a different number, and
            the shares change. The same number must leave every score that shares.""",
            STABLE,
            _first_row,
        ),
        known(
            "one sum for the whole tensor",
            "def softmax(x, dim):\n    e = torch.exp(x - x.max())\n    return e / e.sum()\n",
            "All entries together sum to 1. Each row (or column: dim says which) shares out 1 of its own.",
            WHICH_AXIS,
            _sums,
        ),
        known(
            "an axis lost",
            "def softmax(x, dim):\n    e = torch.exp(x)\n    return e / e.sum(dim=dim)\n",
            """A sum (or maximum) along dim drops that axis: (2, 3) became (2,), which cannot meet (2, 3) again. On a square
            table it would meet it, along the wrong axis and without a word. Keep the axis, with length 1.""",
            WHICH_AXIS,
        ),
        known(
            "maxima with their positions",
            "def softmax(x, dim):\n    e = torch.exp(x - x.max(dim=dim, keepdim=True))\n    return e / e.sum(dim=dim, keepdim=True)\n",
            """The maximum along an axis comes as a pair: the values, and the positions where they stand. Only the values can be
            taken away from the scores.""",
            STABLE,
        ),
        known(
            "the lost axis put back at the end",
            "def softmax(x, dim):\n    e = torch.exp(x - x.amax(dim=dim).unsqueeze(-1))\n    return e / e.sum(dim=dim).unsqueeze(-1)\n",
            """The axis that a sum drops was put back as the *last* one, whatever dim says. That fits only where dim is the last
            axis. It belongs where it was.""",
            WHICH_AXIS,
        ),
        known(
            "row by row, whatever dim says",
            """
            def softmax(x, dim):
                rows = []
                for scores in x:
                    e = torch.exp(scores - scores.max())
                    rows.append(e / e.sum())
                return torch.stack(rows)
            """,
            """The first axis was walked through and each piece shared out 1 by itself. That is right for a table and dim=-1 only; a
            single row fell apart into single numbers, which all got 1.""",
            WHICH_AXIS,
        ),
        known(
            "math.exp for a whole tensor",
            "def softmax(x, dim):\n    e = math.exp(x)\n    return e / e.sum(dim=dim, keepdim=True)\n",
            "math.exp takes one plain number. For all numbers of a tensor at once there is an exponential in torch.",
            POSITIVE,
        ),
        known(
            "minus infinity replaced",
            """
            def softmax(x, dim):
                x = torch.nan_to_num(x, neginf=0.0)
                e = torch.exp(x - x.amax(dim=dim, keepdim=True))
                return e / e.sum(dim=dim, keepdim=True)
            """,
            """A score of minus infinity was replaced by 0, whose power is 1. It means "nothing at all", and needs no special care: its
            power is exactly 0.""",
            POSITIVE,
        ),
        known(
            "the logarithm of the shares",
            "def softmax(x, dim):\n    return x - torch.logsumexp(x, dim=dim, keepdim=True)\n",
            "Negative numbers: you returned the logarithms of the shares. That is exercise 04.3; one step is missing here.",
            LOGARITHM,
            _first_row,
        ),
        known(
            "no exponential",
            "def softmax(x, dim):\n    return x / x.sum(dim=dim, keepdim=True)\n",
            "There is no exponential: the scores were divided by their sum, so a negative score became a negative share.",
            POSITIVE,
            _first_row,
        ),
        known(
            "not divided",
            "def softmax(x, dim):\n    return torch.exp(x - x.amax(dim=dim, keepdim=True))\n",
            "The largest of each row is 1, so nothing is left for the others: these are powers, not yet shares. Divide by what they sum to.",
            POSITIVE,
            _sums,
        ),
        known(
            "plain powers",
            "def softmax(x, dim):\n    return torch.exp(x)\n",
            "These are the powers, all positive, but not yet shares: divide them by what they sum to.",
            POSITIVE,
            _sums,
        ),
        known(
            "divided by the mean",
            "def softmax(x, dim):\n    e = torch.exp(x - x.amax(dim=dim, keepdim=True))\n    return e / e.mean(dim=dim, keepdim=True)\n",
            "You divided by the mean of the powers, so a row sums to the number of its entries. Divide by the sum.",
            POSITIVE,
            _sums,
        ),
        known(
            "divided by the sum of the scores",
            "def softmax(x, dim):\n    return torch.exp(x) / x.sum(dim=dim, keepdim=True)\n",
            "The powers were divided by the sum of the *scores*. Parts and whole must be of one kind: divide by the sum of the powers.",
            POSITIVE,
            _sums,
        ),
        known(
            "base 2",
            "def softmax(x, dim):\n    e = 2 ** (x - x.amax(dim=dim, keepdim=True))\n    return e / e.sum(dim=dim, keepdim=True)\n",
            "Your shares are those of powers of 2. They sum to 1, but are flatter than with e, as if every score were 0.69 times as large.",
            POSITIVE,
            _first_row,
        ),
        known(
            "base 10",
            "def softmax(x, dim):\n    e = 10 ** (x - x.amax(dim=dim, keepdim=True))\n    return e / e.sum(dim=dim, keepdim=True)\n",
            "Your shares are those of powers of 10. They sum to 1, but are sharper than with e, as if every score were 2.3 times as large.",
            POSITIVE,
            _first_row,
        ),
        known(
            "sigmoid",
            "def softmax(x, dim):\n    return torch.sigmoid(x)\n",
            "Every score was squeezed between 0 and 1 by itself, so the scores do not compete. Along dim they must share out exactly 1.",
            POSITIVE,
            _sums,
        ),
        known(
            "sigmoid, then divided",
            "def softmax(x, dim):\n    e = torch.sigmoid(x)\n    return e / e.sum(dim=dim, keepdim=True)\n",
            """The scores went through a sigmoid before the division. It flattens large scores, so 5 and 10 come out nearly
            alike. The exponential turns *differences* of scores into *ratios* of shares.""",
            POSITIVE,
            _first_row,
        ),
        known(
            "squares",
            "def softmax(x, dim):\n    e = x ** 2\n    return e / e.sum(dim=dim, keepdim=True)\n",
            "Squaring makes scores positive, but -1 becomes as attractive as +1. The power of a larger score must be larger.",
            POSITIVE,
            _first_row,
        ),
        known(
            "the smallest score wins",
            "def softmax(x, dim):\n    e = torch.exp(x.amin(dim=dim, keepdim=True) - x)\n    return e / e.sum(dim=dim, keepdim=True)\n",
            "The *smallest* score got the largest share: a minus sign too many in the exponent.",
            POSITIVE,
            _first_row,
        ),
        known(
            "one more in the sum",
            "def softmax(x, dim):\n    e = torch.exp(x)\n    return e / (1 + e.sum(dim=dim, keepdim=True))\n",
            "Every row sums to less than 1: there is an extra 1 in the denominator, as if a silent score of 0 took part.",
            POSITIVE,
            _sums,
        ),
        known(
            "only the largest",
            """
            def softmax(x, dim):
                top = (x == x.amax(dim=dim, keepdim=True)).to(x.dtype)
                return top / top.sum(dim=dim, keepdim=True)
            """,
            "The largest score got everything. That is the *hard* maximum; softmax is soft, it leaves every score a share.",
            POSITIVE,
            _first_row,
        ),
        known(
            "applied twice",
            """
            def softmax(x, dim):
                for _ in range(2):
                    x = torch.exp(x - x.amax(dim=dim, keepdim=True))
                    x = x / x.sum(dim=dim, keepdim=True)
                return x
            """,
            "The shares went through softmax once more, which makes them nearly equal: they all lie between 0 and 1 already.",
            POSITIVE,
            _first_row,
        ),
        known(
            "cut off from the gradient",
            "def softmax(x, dim):\n    x = x.detach()\n    e = torch.exp(x - x.amax(dim=dim, keepdim=True))\n    return e / e.sum(dim=dim, keepdim=True)\n",
            CUT_OFF,
            CONTRACT,
        ),
        known(
            "sum cut off from the gradient",
            "def softmax(x, dim):\n    e = torch.exp(x - x.amax(dim=dim, keepdim=True))\n    return e / e.sum(dim=dim, keepdim=True).detach()\n",
            """The values are right, but the gradient does not pass through the sum. Then raising one score seems to leave the
            others alone. (Detaching the *maximum* would do no harm.)""",
            SLOPE,
        ),
        known(
            "always float32",
            "def softmax(x, dim):\n    e = torch.exp((x - x.amax(dim=dim, keepdim=True)).float())\n    return e / e.sum(dim=dim, keepdim=True)\n",
            FLOAT32,
            CONTRACT,
        ),
        known(
            "x changed in place",
            "def softmax(x, dim):\n    x -= x.amax(dim=dim, keepdim=True)\n    e = torch.exp(x)\n    return e / e.sum(dim=dim, keepdim=True)\n",
            IN_PLACE,
            CONTRACT,
        ),
        known(
            "maximum always along the last axis",
            """
            def softmax(x, dim):
                e = torch.exp(x - x.amax(-1, keepdim=True))
                return e / e.sum(dim, keepdim=True)
            """,
            "The maximum was taken along the last axis and the sum along dim. What is taken away must be the same number for all scores that share 1, or their proportions change: both go along dim.",
            WHICH_AXIS,
        ),
    ),
    variants=(
        right(
            "each row's maximum",
            "def softmax(x, dim):\n    e = torch.exp(x - x.max(dim=dim, keepdim=True).values)\n    return e / e.sum(dim=dim, keepdim=True)\n",
        ),
        right(
            "through the logarithm",
            "def softmax(scores, dim):\n    return (scores - scores.logsumexp(dim, keepdim=True)).exp()\n",
        ),
        right(
            "maximum detached",
            "def softmax(x, dim=-1):\n    e = (x - x.detach().amax(dim, True)).exp()\n    return e.div(e.sum(dim, True))\n",
        ),
        right(
            "axis moved to the end",
            """
            def softmax(x, dim):
                x = x.movedim(dim, -1)
                e = torch.exp(x - x.amax(-1)[..., None])
                return (e / e.sum(-1).unsqueeze(-1)).movedim(-1, dim)
            """,
        ),
        right(
            "loops",
            """
            def softmax(x, dim):
                def one(scores):
                    top = max(scores.tolist())
                    powers = [torch.exp(score - top) for score in scores]
                    total = sum(powers)
                    return torch.stack([power / total for power in powers])
                last = x.transpose(dim, -1)
                rows = [one(r) for r in last.reshape(-1, last.shape[-1])]
                return torch.stack(rows).reshape(last.shape).transpose(dim, -1)
            """,
        ),
        right(
            "slices along dim",
            """
            def softmax(x, dim):
                slices = x.unbind(dim)
                top = slices[0]
                for s in slices[1:]:
                    top = torch.maximum(top, s)
                powers = [(s - top).exp() for s in slices]
                return torch.stack([p / sum(powers) for p in powers], dim)
            """,
        ),
        right(
            "double inside",
            "def softmax(x, dim):\n    y = x.double()\n    e = torch.exp(y - y.amax(dim, keepdim=True))\n    return (e / e.sum(dim, keepdim=True)).to(x.dtype)\n",
        ),
        right(
            "one over the sum of ratios",
            """
            def softmax(x, dim):
                m = torch.amax(x, dim, keepdim=True)
                return torch.reciprocal(torch.sum(torch.exp(x - m), dim, keepdim=True)) * torch.exp(x - m)
            """,
        ),
        right(
            "sum by einsum",
            """
            def softmax(x, dim):
                x = torch.swapaxes(x, dim, -1)
                e = math.e ** (x - x.amax(-1, keepdim=True))
                return torch.swapaxes(e / torch.einsum("...k->...", e)[..., None], dim, -1)
            """,
        ),
    ),
    hints=(
        "what does exp(1000) give you, and along which axis should the numbers sum to 1?",
        "maximum and sum run along dim and keep that axis with length 1: (2, 3) minus (2, 1), then (2, 3) over (2, 1).",
        "take each slice's maximum along dim away; exp; divide by the sum along the same dim.",
    ),
)

# ------------------------------------------------------------------------------------------------ 04.3 log_softmax


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


LOG_EXERCISE = Exercise(
    id="log-softmax",
    number="04.3",
    names=("log_softmax",),
    visible_points=1,
    hidden_points=3,
    section=LOGARITHM,
    reference={"log_softmax": log_softmax},
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
    misconceptions=(
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
    variants=(
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

# ------------------------------------------------------------------------------------------------ 04.4 temperature


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


TEMPERATURE_EXERCISE = Exercise(
    id="temperature",
    number="04.4",
    names=("temperature",),
    visible_points=1,
    hidden_points=2,
    section=TEMPERATURE,
    reference={"temperature": temperature},
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
    misconceptions=(
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
    variants=(
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

# ------------------------------------------------------------------------------------------------ 04.5 softmax_jacobian


def softmax_jacobian(p: Tensor) -> Tensor:
    """How each share (row) answers to each score (column), from the shares alone."""
    return torch.diag(p) - torch.outer(p, p)


_SHARES = torch.tensor([0.5, 0.3, 0.2])


def _diagonal(evidence: Evidence) -> str:
    return f"Your first row is {row(evidence.got[0])}; by hand it is {row(evidence.expected[0])}."


def _saturated(g: torch.Generator) -> Case:
    return Case((torch.softmax(normal(g, 4, dtype=torch.float64) * 6, dim=0).float(),))


# No probe asks for the gradient of the Jacobian: it is a derivative already, and one taken by autograd arrives detached.
JACOBIAN_EXERCISE = Exercise(
    id="softmax-jacobian",
    number="04.5",
    names=("softmax_jacobian",),
    visible_points=1,
    hidden_points=3,
    section=SLOPE,
    reference={"softmax_jacobian": softmax_jacobian},
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
    misconceptions=(
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
    variants=(
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

ASSIGNMENT = Assignment(
    id="04_softmax",
    notebook="softmax",
    exercises=(LINEAR_EXERCISE, SOFTMAX_EXERCISE, LOG_EXERCISE, TEMPERATURE_EXERCISE, JACOBIAN_EXERCISE),
    visible_modules=(),
)
