"""04.1 linear_weights."""

import torch
from torch import Tensor

from autograder.catalogue.ch04_softmax.shared import CUT_OFF, FLOAT32, IN_PLACE, _sums, sections
from autograder.catalogue.exercise import Case, Exercise, Law, Probe
from autograder.catalogue.parts import GRADIENTS, UNTOUCHED, known, normal, right

CONTRACT, SUM = sections("contract linear")


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


EXERCISE = Exercise(
    id="linear-weights",
    number="04.1",
    visible_points=1,
    hidden_points=1,
    section=SUM,
    reference=linear_weights,
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
    wrong=(
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
    right=(
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
