"""centered-rows: a right answer, the questions, and the mistakes that you expect. Replace every line that says
CHANGE."""

import torch
from torch import Tensor

from autograder.catalogue.exercise import Case, Exercise, Section
from autograder.catalogue.families import usual_mistakes
from autograder.catalogue.known_answers import answer, correct, mistake
from autograder.catalogue.probes import normal, usual_probes, visible

# CHANGE: where to reread. section("sec-05-why-divide") of autograder.catalogue.sections becomes a link into this book.
REREAD = Section("your notes", "Means of rows", "")


def centered_rows(x: Tensor) -> Tensor:  # CHANGE: the right answer, with which every other is compared
    """Every row minus its own mean."""
    return x - x.mean(dim=-1, keepdim=True)


def table(g: torch.Generator, rows: int, columns: int, dtype: torch.dtype = torch.float32) -> Case:
    """CHANGE: the arguments of a probe, drawn again for each submission."""
    return Case((normal(g, rows, columns, dtype=dtype),))


BY_HAND = Case((torch.tensor([[1.0, 2.0, 6.0], [0.0, 4.0, 8.0]]),))  # CHANGE: so small that it can be done on paper

RIGHT = answer("""
    def centered_rows(x):
        means = x.mean(dim=-1, keepdim=True)
        return x - means
""")  # CHANGE: the right answer as a student writes it; mistakes are changes of it

EXERCISE = Exercise(
    id="centered-rows",
    number="1",
    reference=centered_rows,
    visible_points=1,
    hidden_points=2,
    difficulty=1,
    minutes=10,
    section=REREAD,
    probes=(  # CHANGE: the questions; a hidden one is not answered in a learner's own notebook
        visible("two rows by hand", BY_HAND),
        # other sizes, sizes of 1, float64, gradients, nothing else is touched; never two sizes alike
        *usual_probes(table, other=(4, 6), smallest=(5, 1), common=(2, 7)),
    ),
    mistakes=(  # CHANGE: wrong answers as students write them, where to reread, and what each deserves to read
        mistake(
            "means of the columns",
            RIGHT.but("dim=-1", "dim=0"),
            REREAD,
            "You took the mean down each *column*. A row's own mean runs along the last axis.",
        ),
        mistake(
            "one mean for the whole table",
            RIGHT.but("x.mean(dim=-1, keepdim=True)", "x.mean()"),
            REREAD,
            "You took one mean of all numbers. Each row has a mean of its own.",
        ),
        *usual_mistakes(RIGHT, detached=REREAD, float32=REREAD),
    ),
    correct=(  # CHANGE: right answers in other styles, which must earn everything
        correct(
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
