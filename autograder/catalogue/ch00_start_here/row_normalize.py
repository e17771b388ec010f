"""00.2 row_normalize."""

import torch
from torch import Tensor

from autograder.catalogue.ch00_start_here.shared import _positive, sections
from autograder.catalogue.exercise import Case, Evidence, Exercise, Law, Probe
from autograder.catalogue.parts import GRADIENTS, UNTOUCHED, known, right, row, sizes, turned

CONTRACT, SHAPE, SPREAD = sections("contract shape spread")


def row_normalize(x: Tensor) -> Tensor:
    """Each row divided by its own sum."""
    return x / x.sum(dim=1, keepdim=True)


_ROWS = torch.tensor([[1.0, 2.0, 1.0], [5.0, 2.0, 1.0]])


def _three_decimals(sums: Tensor) -> str:
    """Sums as a reader would write them, a rounding error as 0."""
    return " ".join(f"{round(value, 3) + 0.0:.3f}" for value in sums.tolist())


def _row_sums(evidence: Evidence) -> str:
    if tuple(evidence.got.shape) != tuple(evidence.expected.shape):
        return sizes(evidence)
    return f"Your rows sum to {_three_decimals(evidence.got.sum(1))}, your columns to {_three_decimals(evidence.got.sum(0))}."


def _largest(evidence: Evidence) -> str:
    return f"The largest entries of your rows are {row(evidence.got.amax(1))}, and your rows sum to {row(evidence.got.sum(1))}."


def _total(evidence: Evidence) -> str:
    return f"Your rows sum to {row(evidence.got.sum(1))}, all numbers together to {evidence.got.sum():.3f}."


EXERCISE = Exercise(
    id="row-normalize",
    number="00.2",
    visible_points=1,
    hidden_points=1,
    section=SPREAD,
    reference=row_normalize,
    probes=(
        Probe(
            "two rows by hand",
            lambda g: Case((_ROWS,)),
            hidden=False,
            laws=(Law("every row sums to 1", lambda got: torch.allclose(got.sum(1), torch.ones(()), atol=1e-4)),),
        ),
        Probe("three rows of three", lambda g: Case((_positive(g, 3, 3),))),
        Probe("one row of four", lambda g: Case((_positive(g, 1, 4),))),
        Probe("four rows of one", lambda g: Case((_positive(g, 4, 1),))),
        Probe("other sizes", lambda g: Case((_positive(g, 4, 6),))),
        Probe(
            "a row of large and a row of small numbers",
            lambda g: Case((_positive(g, 3, 5) * torch.tensor([[1000.0], [1.0], [0.1]]),)),
        ),
        Probe(
            "float64, transposed in memory",
            lambda g: Case((turned(_positive(g, 5, 4, dtype=torch.float64)),)),
        ),
        Probe("nothing else is touched", lambda g: Case((_positive(g, 4, 5),)), also=UNTOUCHED),
        Probe("gradients", lambda g: Case((_positive(g, 3, 4, dtype=torch.float64),)), also=GRADIENTS),
    ),
    wrong=(
        known(
            "row sums that lie flat",
            "def row_normalize(x):\n    return x / x.sum(dim=1)\n",
            """The row sums came out as a flat (n), and shapes are laid over each other from the *right*: (n) looks like a row,
            so it meets the columns. With 2 rows of 3 that stops with an error; with 3 rows of 3 it silently divides
            *columns* by row sums. The sums must stand upright, as (n, 1).""",
            SPREAD,
        ),
        known(
            "column sums",
            "def row_normalize(x):\n    return x / x.sum(dim=0)\n",
            "Each *column* was divided by its sum. `dim` names the axis that disappears: to add up along a row, the axis of the columns has to go.",
            SPREAD,
            _row_sums,
        ),
        known(
            "sum of everything",
            "def row_normalize(x):\n    return x / x.sum()\n",
            "The whole table sums to 1, not each row: without an axis, sum() adds up everything there is.",
            SPREAD,
            _total,
        ),
        known(
            "in place",
            "def row_normalize(x):\n    x /= x.sum(dim=1, keepdim=True)\n    return x\n",
            """Your function changed the caller's tensor: `/=`, x[i] = ..., and methods that end in _ write into what was
            handed in. Whoever called it has lost the original numbers. Divide into a new tensor.""",
            CONTRACT,
        ),
        known(
            "largest instead of sum",
            "def row_normalize(x):\n    return x / x.amax(dim=1, keepdim=True)\n",
            "The largest entry of each row is 1: you divided by the maximum. The *sum* of each row should be 1.",
            SPREAD,
            _largest,
        ),
        known(
            "mean instead of sum",
            "def row_normalize(x):\n    return x / x.mean(dim=1, keepdim=True)\n",
            "You divided by the mean of each row, so a row of m numbers sums to m. Divide by its sum.",
            SPREAD,
            _row_sums,
        ),
        known(
            "length instead of sum",
            "def row_normalize(x):\n    return x / x.norm(dim=1, keepdim=True)\n",
            "You divided by the length of each row as an arrow, the root of the sum of squares (as F.normalize does). Here the numbers themselves should sum to 1.",
            SPREAD,
            _row_sums,
        ),
        known(
            "divided by the number of columns",
            "def row_normalize(x):\n    return x / x.shape[1]\n",
            "Every number was divided by how many there are in a row. Divide by how much they *add up to*, which differs from row to row.",
            SPREAD,
            _row_sums,
        ),
        known(
            "softmax",
            "def row_normalize(x):\n    return torch.softmax(x, dim=1)\n",
            "Your rows do sum to 1, but the shares are others: softmax takes powers first, and that is chapter 04. Here 2 gets twice the share of 1.",
            SPREAD,
            lambda evidence: f"Your first row is {row(evidence.got[0])}; by hand it is {row(evidence.expected[0])}.",
        ),
        known(
            "mean taken away",
            "def row_normalize(x):\n    return x - x.mean(dim=1, keepdim=True)\n",
            "The mean was taken away from each row, so each row sums to 0. Dividing keeps proportions; taking away does not.",
            SPREAD,
            _row_sums,
        ),
        known(
            "sum taken away",
            "def row_normalize(x):\n    return x - x.sum(dim=1, keepdim=True)\n",
            "The sum of each row was taken away. To make shares of it, *divide* by the sum.",
            SPREAD,
            _row_sums,
        ),
        known(
            "from 0 to 1",
            """
            def row_normalize(x):
                low, high = x.amin(dim=1, keepdim=True), x.amax(dim=1, keepdim=True)
                return (x - low) / (high - low)
            """,
            "The smallest of each row became 0 and the largest 1. That is another way to normalize; here each row should *sum* to 1.",
            SPREAD,
            _largest,
        ),
        known(
            "mean 0 and spread 1",
            "def row_normalize(x):\n    return (x - x.mean(dim=1, keepdim=True)) / x.std(dim=1, keepdim=True)\n",
            "Each row now has mean 0 and standard deviation 1. That kind of normalizing comes in chapter 09; here each row should sum to 1.",
            SPREAD,
            _row_sums,
        ),
        known(
            "upside down",
            "def row_normalize(x):\n    return x.sum(dim=1, keepdim=True) / x\n",
            "The fraction stands on its head: you divided the sum by the numbers.",
            SPREAD,
            lambda evidence: f"Your first row is {row(evidence.got[0])}; by hand it is {row(evidence.expected[0])}.",
        ),
        known(
            "largest of all",
            "def row_normalize(x):\n    return x / x.max()\n",
            "Everything was divided by the one largest number of the table. Each row should be divided by its own *sum*.",
            SPREAD,
            _row_sums,
        ),
        known(
            "both things that max returns",
            "def row_normalize(x):\n    return x / x.max(dim=1, keepdim=True)\n",
            "With a `dim`, max returns two things, the values and their places, and a pair cannot divide. But the largest number is not what is wanted here: divide by the *sum*.",
            SPREAD,
        ),
        known(
            "divided by the number of rows",
            "def row_normalize(x):\n    return x / len(x)\n",
            "len(x) is the number of rows, the same for every number of the table. Divide each row by what it adds up to.",
            SPREAD,
            _row_sums,
        ),
        known(
            "nothing done",
            "def row_normalize(x):\n    for line in x:\n        line = line / line.sum()\n    return x\n",
            "x came back as it was. In a loop, `line = ...` gives a *new* tensor that name and leaves x alone; collect the new rows.",
            SPREAD,
            _row_sums,
        ),
        known(
            "only the sums",
            "def row_normalize(x):\n    return x.sum(dim=1)\n",
            "The row sums came back. They are what to divide *by*; the result has the shape of x.",
            SPREAD,
            sizes,
        ),
        known(
            "only the sums, upright",
            "def row_normalize(x):\n    return x.sum(dim=1, keepdim=True)\n",
            "The row sums came back. They are what to divide *by*; the result has the shape of x.",
            SPREAD,
            sizes,
        ),
        known(
            "turned and not turned back",
            "def row_normalize(x):\n    return x.T / x.sum(dim=1)\n",
            "The numbers are right and lie on their side: x was turned so that the sums would fit, and never turned back. The result has the shape of x.",
            SPREAD,
            sizes,
        ),
        known(
            "first row only",
            "def row_normalize(x):\n    for line in x:\n        return line / line.sum()\n",
            "One row came back: the loop was left in its first round. Collect the rows, and return after the loop.",
            SPREAD,
            sizes,
        ),
        known(
            "first row's sum for all",
            "def row_normalize(x):\n    return x / x[0].sum()\n",
            "Every row was divided by the sum of row 0. Each row has a sum of its own.",
            SPREAD,
            _row_sums,
        ),
        known(
            "last row's sum for all",
            "def row_normalize(x):\n    for line in x:\n        total = line.sum()\n    return x / total\n",
            "Every row was divided by the sum of the *last* row: the loop kept only its latest total. Each row has a sum of its own.",
            SPREAD,
            _row_sums,
        ),
        known(
            "rows put end to end",
            "def row_normalize(x):\n    return torch.cat([line / line.sum() for line in x])\n",
            "The right numbers in one long row: joining puts the rows end to end. A *new* axis is wanted: stacking makes one.",
            SPREAD,
            sizes,
        ),
        known(
            "a list of rows",
            "def row_normalize(x):\n    return [line / line.sum() for line in x]\n",
            "A Python list of rows came back. One tensor of the shape of x is wanted; torch can stack the list.",
            SPREAD,
            shows=lambda evidence: isinstance(evidence.got, list),
        ),
        known(
            "whole-number division",
            "def row_normalize(x):\n    return x // x.sum(dim=1, keepdim=True)\n",
            "Everything is 0: `//` divides and throws the fraction away.",
            CONTRACT,
        ),
        known(
            "rounded",
            "def row_normalize(x):\n    return (x / x.sum(dim=1, keepdim=True)).round(decimals=3)\n",
            "Your shares are rounded to a few digits, so rows no longer sum to 1 exactly. Round when you print, never when you compute.",
            CONTRACT,
            shows=lambda evidence: any(
                torch.allclose(evidence.got, evidence.expected.round(decimals=digits)) for digits in range(5)
            ),
        ),
        known(
            "percent",
            "def row_normalize(x):\n    return 100 * x / x.sum(dim=1, keepdim=True)\n",
            "Those are percentages: each row sums to 100. Here the shares are fractions of 1.",
            SPREAD,
            _row_sums,
        ),
        known(
            "something added below",
            "def row_normalize(x):\n    return x / (x.sum(dim=1, keepdim=True) + 1e-3)\n",
            """The sum was made a little larger before dividing, against a division by 0. These numbers are positive, so their
            sum never is 0, and in a row of small numbers the shares come out too small.""",
            SPREAD,
            lambda evidence: f"Your first row sums to {evidence.got[0].sum():.6f}.",
        ),
        known(
            "always float32",
            "def row_normalize(x):\n    return x.float() / x.float().sum(dim=1, keepdim=True)\n",
            "float64 went in and float32 came out. A result keeps the dtype of its input; a new tensor is float32 unless told otherwise.",
            CONTRACT,
        ),
        known(
            "cut off from the gradient",
            "def row_normalize(x):\n    x = x.detach()\n    return x / x.sum(dim=1, keepdim=True)\n",
            "The values are right, but no gradient flows back: .detach(), .data, .item() or numpy cut the way, and nothing behind it could ever learn.",
            CONTRACT,
        ),
        known(
            "sums as plain numbers",
            "def row_normalize(x):\n    return torch.stack([line / line.sum().item() for line in x])\n",
            "The values are right, but the gradient is not: .item() turns the sum into a plain number, and the way back through it is cut.",
            CONTRACT,
        ),
        known(
            "through numpy",
            "def row_normalize(x):\n    return torch.from_numpy(x.numpy() / x.numpy().sum(axis=1, keepdims=True))\n",
            "The values are right, and your code stops where a gradient is asked for: NumPy knows nothing of gradients. Stay in torch from beginning to end.",
            CONTRACT,
        ),
        known(
            "one row squeezed",
            "def row_normalize(x):\n    return (x / x.sum(dim=1, keepdim=True)).squeeze()\n",
            "With a single row (or a single column) an axis of size 1 vanished. squeeze() removes every such axis; the result has the shape of x.",
            SHAPE,
        ),
    ),
    right=(
        right("keepdim", "def row_normalize(x):\n    return x / x.sum(dim=1, keepdim=True)\n"),
        right("last axis", "def row_normalize(table):\n    return table / table.sum(-1, keepdim=True)\n"),
        right("a new axis by None", "def row_normalize(x):\n    return x / x.sum(1)[:, None]\n"),
        right(
            "unsqueeze", "def row_normalize(x):\n    s = torch.sum(x, dim=1)\n    return torch.div(x, s.unsqueeze(1))\n"
        ),
        right("einsum", 'def row_normalize(x):\n    return torch.einsum("nm,n->nm", x, 1 / x.sum(dim=1))\n'),
        right("turned twice", "def row_normalize(x):\n    return (x.T / x.sum(axis=1)).T\n"),
        right("F.normalize with p=1", "def row_normalize(x):\n    return F.normalize(x, p=1, dim=1)\n"),
        right("rows, stacked", "def row_normalize(x):\n    return torch.stack([r / r.sum() for r in x])\n"),
        right(
            "loops",
            """
            def row_normalize(x):
                out = torch.zeros_like(x)
                for i in range(x.shape[0]):
                    total = 0
                    for j in range(x.shape[1]):
                        total = total + x[i, j]
                    for j in range(x.shape[1]):
                        out[i, j] = x[i, j] / total
                return out
            """,
        ),
        right(
            "a copy, then in place",
            "def row_normalize(x):\n    y = x.clone()\n    y /= y.sum(dim=1, keepdim=True)\n    return y\n",
        ),
        right(
            "times a column of ones",
            "def row_normalize(x):\n    ones = torch.ones(x.shape[1], 1, dtype=x.dtype)\n    return x / (x @ ones)\n",
        ),
        right("softmax of logarithms", "def row_normalize(x):\n    return torch.softmax(x.log(), dim=1)\n"),
        right(
            "sums written out in full",
            "def row_normalize(x):\n    s = x.sum(dim=1).view(-1, 1).expand(x.shape)\n    return x / s\n",
        ),
    ),
    hints=(
        "print the shape of the sums before you divide. Which way do they lie?",
        "x is (n, m); one sum for each row is n numbers, and to meet the rows they must stand as (n, 1).",
        "add along each row, keeping the axis that was added up as an axis of size 1; divide x by that; return a new tensor.",
    ),
)
