"""centered-rows: a right answer, the questions, and the mistakes that you expect. What says CHANGE is yours."""

import torch
from torch import Tensor

from autograder.catalogue.exercise import Case, Exercise, Probe, Section
from autograder.catalogue.parts import GRADIENTS, UNTOUCHED, known, normal, right

# CHANGE: where to reread. Section("05", "Why divide?", "sec-05-why-divide") becomes a link into this book.
REREAD = Section("your notes", "Means of rows", "")


def centered_rows(x: Tensor) -> Tensor:  # CHANGE: the right answer, with which every other is compared
    """Every row less its own mean."""
    return x - x.mean(dim=-1, keepdim=True)


def table(generator: torch.Generator, rows: int, columns: int) -> Case:  # CHANGE: what a question passes in
    """Drawn anew for each submission; rows and columns never alike, so that no axis passes for another."""
    return Case((normal(generator, rows, columns, dtype=torch.float64),))


BY_HAND = torch.tensor([[1.0, 2.0, 6.0], [0.0, 4.0, 8.0]])  # CHANGE: so small that it can be done on paper

EXERCISE = Exercise(
    id="centered-rows",
    number="1",
    names=("centered_rows",),
    visible_points=1,
    hidden_points=2,
    section=REREAD,
    reference={"centered_rows": centered_rows},
    probes=(  # CHANGE: the questions; a hidden one is not answered in a learner's own notebook
        Probe("two rows by hand", lambda g: Case((BY_HAND,)), hidden=False),
        Probe("4 rows of 6", lambda g: table(g, 4, 6)),
        Probe("a single column", lambda g: table(g, 5, 1)),
        Probe("gradients", lambda g: table(g, 2, 7), also=GRADIENTS),
        Probe("nothing else is touched", lambda g: table(g, 3, 5), also=UNTOUCHED),
    ),
    misconceptions=(  # CHANGE: wrong answers as students write them, and what each deserves to read
        known(
            "means of the columns",
            """
            def centered_rows(x):
                return x - x.mean(dim=0)
            """,
            "You took the mean down each *column*. A row's own mean runs along the last axis.",
            REREAD,
        ),
        known(
            "one mean for the whole table",
            """
            def centered_rows(x):
                return x - x.mean()
            """,
            "You took one mean of all numbers. Each row has a mean of its own.",
            REREAD,
        ),
    ),
    variants=(  # CHANGE: right answers in other styles, which must earn everything
        right(
            "row by row",
            """
            def centered_rows(x):
                return torch.stack([row - row.sum() / len(row) for row in x])
            """,
        ),
    ),
    hints=(  # CHANGE: a nudge, a plan of shapes, pseudocode
        "what should the numbers of a centered row sum to?",
        "(rows, columns) less (rows, 1) gives (rows, columns).",
        "result = x less the mean of x along its last axis, which is kept.",
    ),
)
