"""04.5: what one score does to all shares."""

import torch
from torch import Tensor

from autograder.catalogue.ch04_softmax.shared import first_row, sections
from autograder.catalogue.exercise import Case, Evidence, Exercise, Law
from autograder.catalogue.families import in_place, usual_mistakes
from autograder.catalogue.known_answers import answer, correct, formula, mistake
from autograder.catalogue.probes import hidden, normal, shares, usual_probes, visible
from autograder.catalogue.quotes import sizes, wrong_row

CONTRACT, SLOPE = sections("contract slope")

THREE, NAMES = torch.tensor([0.5, 0.3, 0.2]), ("first", "second", "third")
ROWS_SUM_TO_ZERO = Law("every row sums to 0", lambda got: got.sum(-1).abs().max().item() < 1e-4)


def softmax_jacobian(p: Tensor) -> Tensor:
    """The derivative of each probability (row) by each score (column), computed only from the probabilities."""
    return torch.diag(p) - torch.outer(p, p)


def inputs(g: torch.Generator, n: int, dtype: torch.dtype = torch.float32) -> Case:
    return Case((shares(g, n, dtype=dtype),))


def saturated(g: torch.Generator) -> Case:
    return Case((torch.softmax(normal(g, 4, dtype=torch.float64) * 6, dim=0).float(),))


def one_factor(evidence: Evidence) -> bool | None:
    """Whether each entry off the diagonal is minus one of the two probabilities, or minus the square of its row's; None
    where there is no such entry."""
    (p,) = evidence.arguments
    if len(p) < 2:
        return None
    off = ~torch.eye(len(p), dtype=torch.bool)
    table = p.expand(len(p), len(p))
    tables = (table, table.T, table.T**2)
    on = torch.allclose(evidence.got.diagonal(), evidence.expected.diagonal(), atol=1e-4)
    return on and any(torch.allclose(evidence.got[off], -factors[off], atol=1e-4) for factors in tables)


RIGHT = answer("""
    def softmax_jacobian(p):
        return torch.diag(p) - torch.outer(p, p)
""")
SLOPES = "torch.diag(p) - torch.outer(p, p)"

# No probe asks for the gradient of the Jacobian: it is a derivative already, and one taken by autograd arrives
# detached.
EXERCISE = Exercise(
    id="softmax-jacobian", number="04.5", difficulty=3, minutes=15, visible_points=1, hidden_points=3,
    reference=softmax_jacobian, section=SLOPE,
    probes=(
        visible("probabilities 0.5, 0.3, 0.2", Case((THREE,), NAMES), laws=(ROWS_SUM_TO_ZERO,)),
        *usual_probes(inputs, other=(6,), smallest=(1,), common=(4,), floats=False, gradients=False, zero=False,
                      equal_rows=False),
        hidden("two probabilities", inputs, 2, announced_by="(n,)"),
        hidden("one probability is almost 1", saturated, announced_by="perhaps 0 and 1 among them"),
        hidden("one probability is 1", Case((torch.tensor([0.0, 0.0, 1.0, 0.0]),)), rtol=0.0, atol=1e-9,
               announced_by="perhaps 0 and 1 among them"),
        hidden("float64", inputs, 5, dtype=torch.float64, rtol=0.0, atol=1e-9, announced_by="(n,)"),
    ),
    omits={"precision": "a probability is at most 1; the probe in float64 compares nine decimals",
           "a batch of one": "there is one list of shares; a probe has a list of one share"},
    mistakes=(
        mistake("only the diagonal", RIGHT.but(SLOPES, "torch.diag(p * (1 - p))"), SLOPE,
            """Off the diagonal you have 0: raising one score would leave the other probabilities unchanged. But they
            sum to 1, so it must lower them.""", quotes=wrong_row),
        mistake("one factor missing off the diagonal", RIGHT.but(
                  SLOPES, "torch.diag(2 * p - p * p) - p.expand(len(p), len(p))"), SLOPE,
            """The diagonal is right, but off it a factor is missing, or one probability is multiplied by itself: how
            much probability i falls when score j rises depends on both probabilities.""", quotes=wrong_row,
            shows=one_factor),
        mistake("one slope for each share", RIGHT.but(SLOPES, "p * (1 - p)"), SLOPE,
            """These are the n derivatives of each probability with respect to its *own* score. Every probability also
            depends on every other score: n times n derivatives.""", quotes=sizes),
        mistake("sign turned", RIGHT.but(SLOPES, "torch.outer(p, p) - torch.diag(p)"), SLOPE,
            "All signs are flipped: raising a score raises its own probability and lowers the "
            "others.", quotes=wrong_row),
        mistake("sign turned off the diagonal",
                RIGHT.but(SLOPES, "torch.outer(p, p) + torch.diag(p * (1 - p) - p * p)"), SLOPE,
            """Off the diagonal your derivatives are positive: raising one score would raise all probabilities. They sum
            to 1, so the others must fall.""", quotes=wrong_row),
        mistake("p subtracted instead of the product", RIGHT.but("torch.outer(p, p)", "p"), SLOPE,
            """Not symmetric: a whole row of p was subtracted. How one score changes a different probability depends on
            *both* probabilities, so entry (i, j) needs the product of the two.""", quotes=wrong_row),
        mistake("p subtracted as a column", RIGHT.but("torch.outer(p, p)", "p[:, None]"), SLOPE,
            """Not symmetric: p was subtracted along each row. How one score changes a different probability depends on
            *both* probabilities, so entry (i, j) needs the product of the two.""", quotes=wrong_row),
        mistake("p (1 - p) everywhere", RIGHT.but(SLOPES, "(p * (1 - p)).expand(len(p), len(p))"), SLOPE,
            "p (1 - p) is in every row. It is correct only on the diagonal; elsewhere two different probabilities are "
            "multiplied.",
            quotes=wrong_row),
        mistake("p_i times (1 - p_j)", RIGHT.but(SLOPES, "torch.outer(p, 1 - p)"), SLOPE,
            "Every entry is p_i (1 - p_j). The 1 belongs only on the diagonal: off it, the derivative is -p_i p_j.",
            quotes=wrong_row),
        mistake("diagonal forgotten", RIGHT.but("torch.diag(p) ", ""), SLOPE,
            """All derivatives are negative, even that of a probability with respect to its own score. On the diagonal
            the probability itself must be added.""", quotes=wrong_row),
        mistake("one on the diagonal", RIGHT.but("torch.diag(p)", "torch.eye(len(p), dtype=p.dtype)"), SLOPE,
            """The diagonal holds 1 before the product is subtracted; it should hold the probability itself. Your rows
            do not sum to 0.""", quotes=wrong_row),
        mistake("Jacobian of the logarithm", RIGHT.but(SLOPES, "torch.eye(len(p), dtype=p.dtype) - p"), SLOPE,
            "This is the Jacobian of *log* softmax: 1 on the diagonal, minus p. Softmax itself has one factor more.",
            quotes=wrong_row),
        mistake("softmax of the shares first", RIGHT.before("return " + SLOPES, "p = torch.softmax(p, dim=-1)"), SLOPE,
            "p went through softmax again. It already holds the probabilities, not the scores: use it as it is.",
            quotes=wrong_row),
        mistake("the inner product subtracted", RIGHT.but("torch.outer(p, p)", "p @ p"), SLOPE,
            """One and the same number, the sum of the squares, was subtracted everywhere: p times p gave an inner
            product. An outer one is needed.""", quotes=wrong_row),
        mistake("divided by the number of shares", RIGHT.but(SLOPES, f"({SLOPES}) / len(p)"), SLOPE,
            """Every derivative is too small by a factor of n: a mean was taken. Each entry is one derivative, nothing
            is averaged.""", quotes=wrong_row),
        mistake("outer product added", RIGHT.but(" - ", " + "), SLOPE,
            """The products were added: all derivatives are positive, and a row sums to twice its probability. The
            probabilities sum to 1, so a row of derivatives sums to 0.""", quotes=wrong_row),
        in_place("p", RIGHT.but("return", "slopes =") + "    p.mul_(1 - p)\n    return slopes\n", CONTRACT),
        mistake("p.T of a single axis", RIGHT.but("torch.outer(p, p)", "p * p.T"), SLOPE,
            """The squares of p were subtracted in every row: p met itself element by element, because a tensor of one
            axis has nothing to transpose. You need a table of all products, each probability with each
            probability.""", quotes=first_row),
        mistake("diagonal squared", RIGHT.but("torch.diag(p)", "torch.diag(p ** 2)"), SLOPE,
            """Your diagonal is 0: its squares cancel. The derivative of a probability with respect to its own score is
            the probability itself minus its square."""),
        mistake("products added, the share alone on the diagonal",
                RIGHT.but(SLOPES, "torch.diag(p - p * p) + torch.outer(p, p)"), SLOPE,
            """Two things at once: off the diagonal the products are added, and must be subtracted; the diagonal holds
            the probability, from which you must subtract its square. Your rows do not sum to 0.""", quotes=wrong_row),
        mistake("the share alone on the diagonal", RIGHT.but("torch.diag(p)", "torch.diag(p + p * p)"), SLOPE,
            """The diagonal holds only the probability. Subtract its square there too: the products are subtracted
            everywhere.""", quotes=wrong_row),
        mistake("what is left on the diagonal", RIGHT.but("torch.diag(p)", "torch.diag(1 - p)"), SLOPE,
            """The diagonal holds 1 minus the probability, where the probability itself belongs before its square is
            subtracted. Your rows do not sum to 0."""),
        mistake("1 - p on the diagonal", RIGHT.but("torch.diag(p)", "torch.diag(1 - p + p * p)"), SLOPE,
            """Off the diagonal your entries are correct. The diagonal holds 1 minus the probability, where a factor is
            missing: the probability itself. Your rows do not sum to 0.""", quotes=wrong_row),
        *usual_mistakes(RIGHT, arguments="p", float32=CONTRACT, single=CONTRACT, squeezed=CONTRACT),
    ),
    correct=(
        correct("diagonal minus outer", RIGHT),
        correct("p_i (delta - p_j)", """
            def softmax_jacobian(shares):
                eye = torch.eye(len(shares), dtype=shares.dtype)
                return shares[:, None] * (eye - shares[None, :])
        """),
        correct("loops", """
            def softmax_jacobian(p):
                n = len(p)
                J = torch.zeros(n, n, dtype=p.dtype)
                for i in range(n):
                    for j in range(n):
                        J[i, j] = p[i] * (1 - p[i]) if i == j else -p[i] * p[j]
                return J
        """),
        correct("autograd", formula("softmax_jacobian(p)",
            "torch.autograd.functional.jacobian(lambda x: torch.softmax(x, -1), p.log())")),
        correct("one row of autograd at a time", """
            def softmax_jacobian(p):
                x = p.detach().log().requires_grad_()
                y = x.softmax(0)
                return torch.stack([torch.autograd.grad(y[i], x, retain_graph=True)[0] for i in range(len(p))])
        """),
        correct("jacrev", formula("softmax_jacobian(p)",
                                  "torch.func.jacrev(lambda x: F.softmax(x, dim=0))(torch.log(p))")),
        correct("einsum", formula("softmax_jacobian(p)", 'p.diag_embed() - torch.einsum("i,j->ij", p, p)')),
        correct("double inside", """
            def softmax_jacobian(p):
                q = p.double()
                return (torch.diag(q) - q[:, None] @ q[None, :]).to(p.dtype)
        """),
    ),
    hints=(
        "raise one score a little: what happens to its own probability, and to the others? Their changes cancel.",
        "p is (n,), the result (n, n): entry (i, j) says how probability i changes with score j. It needs p_i and "
        "p_j.",
        "on the diagonal p_i (1 - p_i); off it -p_i p_j. Both at once: p on a diagonal, minus all products of two "
        "probabilities.",
    ),
)
