"""00.2: rows that sum to 1."""

import torch
from torch import Tensor

from autograder.catalogue.ch00_start_here.shared import NEW_IS_FLOAT32, NO_NUMPY, is_list, sections
from autograder.catalogue.exercise import Case, Evidence, Exercise
from autograder.catalogue.families import Family, usual_mistakes
from autograder.catalogue.known_answers import answer, correct, formula, mistake
from autograder.catalogue.laws import sums_to_one
from autograder.catalogue.probes import GRADIENTS, hidden, usual_probes, visible
from autograder.catalogue.quotes import row, sizes, wrong_row

CONTRACT, SHAPE, SPREAD = sections("contract shape spread")
ROWS = torch.tensor([[1.0, 2.0, 1.0], [5.0, 2.0, 1.0]])


def row_normalize(x: Tensor) -> Tensor:
    """Each row divided by its own sum."""
    return x / x.sum(dim=1, keepdim=True)


def table(g: torch.Generator, n: int, m: int, dtype: torch.dtype = torch.float32) -> Case:
    """Numbers between 0.2 and 5.2, the same ones in every dtype up to rounding."""
    return Case(((torch.rand(n, m, generator=g, dtype=torch.float64) * 5 + 0.2).to(dtype),))


def uneven(g: torch.Generator) -> Case:
    """A row of large and a row of small numbers."""
    (x,) = table(g, 3, 5).arguments
    return Case((x * torch.tensor([[1000.0], [1.0], [1e-6]]),))


def normalized(g: torch.Generator) -> Case:
    """Rows of float64 whose sum is exactly 1, in more digits than float32 has."""
    x = torch.randint(1, 2**24, (10, 40), generator=g).double()
    x[:, -1] = 2**30 - x[:, :-1].sum(dim=1)
    return Case((x / 2**30,))


def three_decimals(sums: Tensor) -> str:
    """Sums with three decimals, a rounding error as 0."""
    return " ".join(f"{round(value, 3) + 0.0:.3f}" for value in sums.tolist())


def both_sums(evidence: Evidence) -> str:
    if tuple(evidence.got.shape) != tuple(evidence.expected.shape):
        return sizes(evidence)
    return (
        f"Your rows sum to {three_decimals(evidence.got.sum(1))}, your columns to "
        f"{three_decimals(evidence.got.sum(0))}."
    )


def largest(evidence: Evidence) -> str:
    return (
        f"The largest entries of your rows are {row(evidence.got.amax(1))}, and your rows sum to "
        f"{row(evidence.got.sum(1))}."
    )


def total(evidence: Evidence) -> str:
    return f"Your rows sum to {row(evidence.got.sum(1))}, all numbers together to {evidence.got.sum():.3f}."


def first_sum(evidence: Evidence) -> str:
    return f"Your first row sums to {evidence.got[0].sum():.6f}."


def is_rounded(evidence: Evidence) -> bool:
    got, expected = evidence.got, evidence.expected
    return got.shape == expected.shape and any(torch.allclose(got, expected.round(decimals=n)) for n in range(5))


def is_added_below(evidence: Evidence) -> bool:
    """Whether one small number was added to every sum, or small sums were raised to a lower limit, read off where it
    matters most."""
    (x,), got = evidence.arguments, evidence.got
    sums = x.sum(1, keepdim=True)
    smallest = int(sums.argmin())
    divisor = x[smallest, 0] / got[smallest, 0]
    added = divisor - sums[smallest]
    rtol = 1e-5 if got.dtype == torch.float32 else 1e-12  # rounding to float32 is another mistake
    larger = [sums + added] if added <= 0.1 else []
    larger += [sums.clamp(min=divisor.item())] if divisor <= 1.01 else []
    return bool(added > 0) and any(torch.allclose(got, x / each, rtol=rtol, atol=0.0) for each in larger)


RIGHT = answer("""
    def row_normalize(x):
        sums = x.sum(dim=1, keepdim=True)
        shares = x / sums
        return shares
""")
SUMS, DIVISION = "x.sum(dim=1, keepdim=True)", "shares = x / sums"

# fmt: off
ONLY_THE_SUMS = Family("only the sums", """The row sums came back. They are what to divide *by*; the result has the
    shape of x.""")
THREE_WRITTEN_IN = Family("3 written in", """Your rows sum to 1 only with 3 columns, as in the two rows by hand: a 3, or
    the indices of three columns, are hard-coded. A row has m numbers, and m can be any size from 1 on.""")
# fmt: on

EXERCISE = Exercise(
    id="row-normalize", number="00.2", difficulty=2, minutes=6, visible_points=1, hidden_points=1,
    reference=row_normalize, section=SPREAD,
    probes=(
        visible("two rows by hand", Case((ROWS,)), laws=(sums_to_one("every row sums to 1"),)),
        hidden("three rows of three", table, 3, 3, announced_by="(n, m)"),
        *usual_probes(table, other=(4, 6), smallest=(1, 1), common=(5, 4), zero=False),
        # x divided by itself: a sum of another precision shows
        hidden("four rows of one", table, 4, 1, dtype=torch.float64, rtol=1e-9, atol=0.0, announced_by="(n, m)"),
        hidden("a row of large and a row of small numbers", uneven, announced_by="all numbers positive"),
        # x itself has the right values here, and the wrong gradient
        hidden("rows that sum to 1 already", normalized, checks=GRADIENTS, rtol=1e-10, atol=1e-12,
               announced_by="a new tensor"),
    ),
    omits={"precision": "positive numbers do not cancel; smaller ones are compared in more digits",
           "falsy values": "all numbers are positive"},
    mistakes=(
        mistake("row sums that lie flat", RIGHT.but(", keepdim=True", ""), SPREAD,
            """The row sums have the shape (n,), or (1, n). Broadcasting aligns shapes from the *right*, so they are
            taken for a row and meet the columns. With 2 rows of 3 that stops with an error; with 3 rows of 3 it
            silently divides *columns* by row sums. The sums need the shape (n, 1)."""),
        mistake("column sums", RIGHT.but("dim=1, keepdim=True", "dim=0"), SPREAD,
            """Each *column* was divided by its sum. `dim` names the axis that disappears: to add up along a row, the
            axis of the columns has to go.""", quotes=both_sums),
        mistake("sum of everything", RIGHT.but("dim=1, keepdim=True", ""), SPREAD,
            "The whole table sums to 1, not each row: without an axis, sum() adds up everything there is.",
            quotes=total),
        mistake("in place", RIGHT.but(DIVISION, "shares = x.div_(sums)"), CONTRACT,
            """Your function changed the caller's tensor: `/=`, x[i] = ..., and methods that end in _ write into the
            argument itself. The caller has lost the original numbers. Divide into a new tensor."""),
        mistake("largest instead of sum", RIGHT.but("x.sum", "x.amax"), SPREAD,
            "The largest entry of each row is 1: you divided by the maximum. The *sum* of each row should be 1.",
            quotes=largest),
        mistake("mean instead of sum", RIGHT.but("x.sum", "x.mean"), SPREAD,
            "You divided by the mean of each row, so a row of m numbers sums to m. Divide by its sum.",
            quotes=both_sums),
        mistake("length instead of sum", RIGHT.but("x.sum", "x.norm"), SPREAD,
            """You divided by the length of each row as an arrow, the root of the sum of squares (as F.normalize does).
            Here the numbers themselves should sum to 1.""", quotes=both_sums),
        mistake("divided by the number of columns", RIGHT.but(SUMS, "x.shape[1]"), SPREAD,
            """Every number was divided by how many there are in a row. Divide by how much they *add up to*, which
            differs from row to row.""", quotes=both_sums),
        mistake("softmax", RIGHT.but("x / sums", "torch.softmax(x, dim=1)"), SPREAD,
            """Your rows sum to 1, but the fractions are wrong: softmax takes exponentials first, and that is chapter
            04. Plain fractions give a 2 twice as much as a 1.""", quotes=wrong_row),
        mistake("mean taken away", RIGHT.but("x.sum", "x.mean").but("x / sums", "x - sums"), SPREAD,
            """The mean was subtracted from each row, so each row sums to 0. Dividing keeps proportions; subtracting
            does not.""", quotes=both_sums),
        mistake("sum taken away", RIGHT.but("x / sums", "x - sums"), SPREAD,
            "The sum of each row was subtracted. To make fractions of it, *divide* by the sum.", quotes=both_sums),
        mistake("from 0 to 1", RIGHT.but("x / sums", "(x - x.amin(1, True)) / (x.amax(1, True) - x.amin(1, True))"),
                SPREAD,
            """The smallest of each row became 0 and the largest 1. That is a different way to normalize; here each row
            should *sum* to 1.""", quotes=largest),
        mistake("mean 0 and spread 1", RIGHT.but("x / sums", "(x - x.mean(1, True)) / x.std(1, keepdim=True)"), SPREAD,
            """Each row now has mean 0 and standard deviation 1. That kind of normalizing comes in chapter 09; here each
            row should sum to 1.""", quotes=both_sums),
        mistake("sum up to here", RIGHT.but(SUMS, "x.cumsum(dim=1)"), SPREAD,
            """The sum was still growing when you divided: each number met the sum *up to itself*. Add up the whole row
            first.""", quotes=both_sums),
        mistake("last number left out of the sum", RIGHT.but(SUMS, "(x.sum(dim=1, keepdim=True) - x[:, -1:])"), SPREAD,
            "The last number of each row is missing from its sum: does a range end one short?", quotes=both_sums),
        mistake("sum of the others", RIGHT.but("x / sums", "x / (sums - x)"), SPREAD,
            "Each number was divided by the sum of the *others* in its row. It is a part of its row too: the "
            "sum is of all."),
        mistake("squares", RIGHT.but("x / sums", "x**2 / (x**2).sum(dim=1, keepdim=True)"), SPREAD,
            "These are the fractions of the *squared* numbers. Divide the numbers as they are by their sum.",
            quotes=both_sums),
        mistake("rows, then columns", RIGHT.but("return shares", "return shares / shares.sum(dim=0)"), SPREAD,
            """Rows were divided, and then columns, which changes the rows again. Only the rows should sum to 1.""",
            quotes=both_sums),
        mistake("columns, then rows", RIGHT.beginning_with("x = x / x.sum(dim=0)"), SPREAD,
            """Your rows sum to 1, but the columns were divided before, so the fractions within a row changed. Divide
            once, by the row's own sum."""),
        mistake("upside down", RIGHT.but("x / sums", "sums / x"), SPREAD,
            "The fraction is upside down: you divided the sum by the numbers.", quotes=wrong_row),
        mistake("largest of all", RIGHT.but(SUMS, "x.max()"), SPREAD,
            "Everything was divided by the one largest number of the table. Each row should be divided by "
            "its own *sum*.",
            quotes=both_sums),
        mistake("both things that max returns", RIGHT.but("x.sum", "x.max"), SPREAD,
            """With a `dim`, max returns two things, the values and their indices, and a pair cannot divide. But the
            task does not ask for the largest number: divide by the *sum*."""),
        mistake("divided by the number of rows", RIGHT.but(SUMS, "len(x)"), SPREAD,
            "len(x) is the number of rows, the same for every number of the table. Divide each row by what "
            "it adds up to.",
            quotes=both_sums),
        mistake("nothing done", RIGHT.but(DIVISION, """
                  shares = x
                  for line in x:
                      line = line / line.sum()"""), SPREAD,
            """x came back as it was. A division makes a *new* tensor: alone on a line, its result is lost. In a loop,
            `line = ...` only gives the new tensor the name `line` and leaves x unchanged. Return what you
            computed.""", quotes=both_sums),
        ONLY_THE_SUMS(RIGHT.but(", keepdim=True", "").but("x / sums", "sums"), SPREAD, quotes=sizes),
        ONLY_THE_SUMS(RIGHT.but("x / sums", "sums"), SPREAD, quotes=sizes, name="only the sums, upright"),
        mistake("turned and not turned back", RIGHT.but(", keepdim=True", "").but("x / sums", "x.T / sums"), SPREAD,
            """The values are right but transposed: x was transposed so that the sums would fit, and never transposed
            back. The result has the shape of x.""", quotes=sizes),
        mistake("first row only", RIGHT.but("return shares", "return shares[0]"), SPREAD,
            "One row came back: the loop was left in its first round. Collect the rows, and return after the loop.",
            quotes=sizes),
        mistake("first row's sum for all", RIGHT.but(SUMS, "x[0].sum()"), SPREAD,
            "Every row was divided by the sum of row 0. Each row has a sum of its own.", quotes=both_sums),
        mistake("last row's sum for all", RIGHT.but(SUMS, "x[-1].sum()"), SPREAD,
            """Every row was divided by the sum of the *last* row: the loop kept only its latest total. Each row has a
            sum of its own.""", quotes=both_sums),
        mistake("rows put end to end", RIGHT.but("x / sums", "torch.cat([line / line.sum() for line in x])"), SPREAD,
            """The values are correct, but in one long row: cat puts the rows end to end. You need a *new* axis: stack
            makes one.""", quotes=sizes),
        mistake("a list of rows", RIGHT.but("x / sums", "[line / line.sum() for line in x]"), SPREAD,
            "A Python list of rows came back. Return one tensor of the shape of x; torch can stack the list.",
            shows=is_list),
        mistake("whole-number division", RIGHT.but("x / sums", "x // sums"), CONTRACT,
            "Everything is 0. `//` does that: it divides and throws the fraction away."),
        mistake("rounded", RIGHT.ending_in(".round(decimals=3)"), SPREAD,
            """Your results are rounded to a few digits, so rows no longer sum to 1 exactly. Round when you print, never
            when you compute.""", shows=is_rounded),
        mistake("percent", RIGHT.but("x / sums", "100 * x / sums"), SPREAD,
            "Those are percentages: each row sums to 100. Here each row should sum to 1.", quotes=both_sums),
        mistake("something added below", RIGHT.but("x / sums", "x / (sums + 1e-3)"), SPREAD,
            """The sum was made larger before dividing, by a small number that was added or by a lower limit. That
            prevents a division by 0, but these numbers are positive, so their sum is never 0. In a row of small numbers
            the results come out too small.""", quotes=first_sum,
            shows=is_added_below),
        mistake("always float32", RIGHT.ending_in(".float()"), CONTRACT, NEW_IS_FLOAT32),
        *usual_mistakes(RIGHT, arguments="x", detached=CONTRACT, single=CONTRACT, squeezed=CONTRACT, viewed=SHAPE),
        mistake("sums as plain numbers", RIGHT.but("x / sums", "torch.stack([line / line.sum().item() for line in x])"),
                CONTRACT,
            """The values are correct, but the gradient is not: no gradient flows through the sums. .item(), .detach(),
            .data and no_grad cut it off."""),
        mistake("through numpy", RIGHT.but("x / sums", "torch.from_numpy(x.numpy() / sums.numpy())"), CONTRACT,
                NO_NUMPY),
        mistake("multiplied by the sum", RIGHT.but("x / sums", "x * sums"), SPREAD,
            "Each number was multiplied by the sum of its row. To make fractions of it, *divide* by the sum.",
            quotes=both_sums),
        THREE_WRITTEN_IN(RIGHT.but(SUMS, "(x[:, 0] + x[:, 1] + x[:, 2])[:, None]"), SPREAD),
        THREE_WRITTEN_IN(RIGHT.but("x.sum", "3 * x.mean"), SPREAD, name="3 written in, times the mean"),
        mistake("sum of a row that is half divided", """
            def row_normalize(x):
                shares = x.clone()
                for i in range(x.shape[0]):
                    for j in range(x.shape[1]):
                        shares[i, j] = shares[i, j] / shares[i].sum()
                return shares
            """, SPREAD,
            """Only the first number of each row is right: the sum was computed again for every number, after those
            before it had been divided. Add up a row once, before you write into it.""", quotes=both_sums),
        mistake("logarithm of a softmax", RIGHT.but("x / sums", "torch.log_softmax(x, dim=1)"), SPREAD,
            "The results are logarithms, all below 0, and logarithms of a softmax at that. Divide each row by its "
            "sum."),
    ),
    correct=(
        correct("keepdim", RIGHT),
        correct("last axis", formula("row_normalize(table)", "table / table.sum(-1, keepdim=True)")),
        correct("a new axis by None", RIGHT.but(SUMS, "x.sum(1)[:, None]")),
        correct("unsqueeze", RIGHT.but(SUMS, "torch.sum(x, dim=1)").but("x / sums", "torch.div(x, sums.unsqueeze(1))")),
        correct("einsum", RIGHT.but("x / sums", 'torch.einsum("nm,n->nm", x, 1 / x.sum(dim=1))')),
        correct("turned twice", RIGHT.but("x / sums", "(x.T / x.sum(axis=1)).T")),
        correct("F.normalize with p=1", RIGHT.but("x / sums", "F.normalize(x, p=1, dim=1)")),
        correct("rows, stacked", RIGHT.but("x / sums", "torch.stack([r / r.sum() for r in x])")),
        correct("loops", """
            def row_normalize(x):
                out = torch.zeros_like(x)
                for i in range(x.shape[0]):
                    total = 0
                    for j in range(x.shape[1]):
                        total = total + x[i, j]
                    for j in range(x.shape[1]):
                        out[i, j] = x[i, j] / total
                return out
        """),
        correct("a copy, then in place", """
            def row_normalize(x):
                y = x.clone()
                y /= y.sum(dim=1, keepdim=True)
                return y
        """),
        correct("times a column of ones", RIGHT.but(SUMS, "x @ torch.ones(x.shape[1], 1, dtype=x.dtype)")),
        correct("softmax of logarithms", RIGHT.but("x / sums", "torch.softmax(x.log(), dim=1)")),
        correct("sums written out in full", RIGHT.but(SUMS, "x.sum(dim=1).view(-1, 1).expand(x.shape)")),
    ),
    hints=(
        "print the shape of the sums before you divide. Is it (n,) or (n, 1)?",
        "x is (n, m); one sum for each row is n numbers, and to meet the rows they must be (n, 1).",
        "add along each row, keeping the axis that was added up as an axis of size 1; divide x by that; "
        "return a new tensor.",
    ),
)
