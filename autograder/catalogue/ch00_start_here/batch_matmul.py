"""00.1: one matrix product for each pair of a batch."""

import torch
from torch import Tensor

from autograder.catalogue.ch00_start_here.shared import NEW_IS_FLOAT32, NO_NUMPY, is_list, sections
from autograder.catalogue.exercise import Case, Evidence, Exercise
from autograder.catalogue.families import Family, usual_mistakes
from autograder.catalogue.known_answers import answer, correct, formula, mistake
from autograder.catalogue.numbers import number
from autograder.catalogue.probes import FAR, UNTOUCHED, hidden, normal, usual_probes, visible
from autograder.catalogue.quotes import sizes

CONTRACT, PRODUCT, SHAPE, STRIP = sections("contract product shape strip")
PAIRS = (
    torch.tensor([[[1.0, 2.0], [3.0, 4.0]], [[1.0, 0.0], [0.0, 2.0]]]),
    torch.tensor([[[5.0, 6.0], [7.0, 8.0]], [[1.0, -1.0], [2.0, 0.0]]]),
)


def batch_matmul(a: Tensor, b: Tensor) -> Tensor:
    """The matrix product of a[i] and b[i], for every i."""
    return a @ b


def factors(g: torch.Generator, B: int, n: int, d: int, m: int, dtype: torch.dtype = torch.float32) -> Case:
    return Case((normal(g, B, n, d, dtype=dtype), normal(g, B, d, m, dtype=dtype)))


def far_away(g: torch.Generator) -> Case:
    """Numbers in a around 100,000,000, which cancel with every column of b."""
    a, b = factors(g, 2, 4, 3, 5, dtype=torch.float64).arguments
    return Case((a + FAR, b - b.mean(dim=1, keepdim=True)))


def cell(evidence: Evidence) -> str:
    """The first wrong number of the result, with the product that it should be."""
    got, expected = evidence.got, evidence.expected
    if tuple(got.shape) != tuple(expected.shape):
        return sizes(evidence)
    a, b = evidence.arguments
    i, r, c = (got - expected).abs().gt(1e-4).nonzero()[0].tolist()
    yours, wanted = number(got[i, r, c]), number(expected[i, r, c])
    if got.dtype != expected.dtype or a.shape[2] > 2:
        return f"At [{i}, {r}, {c}] you have {yours}, where {wanted} belongs."
    terms = " + ".join(f"{x:g}·{y:g}" for x, y in zip(a[i, r].tolist(), b[i, :, c].tolist(), strict=True))
    return f"At [{i}, {r}, {c}] you have {got[i, r, c]:g}; by hand it is {terms} = {expected[i, r, c]:g}."


RIGHT = answer("""
    def batch_matmul(a, b):
        product = a @ b
        return product
""")
LOOP = answer("""
    def batch_matmul(a, b):
        product = a.new_zeros(a.shape[0], a.shape[1], b.shape[2])
        for i in range(a.shape[0]):
            product[i] = a[i] @ b[i]
        return product
""")
LOOPS = answer("""
    def batch_matmul(a, b):
        B, n, d = a.shape
        m = b.shape[2]
        out = torch.zeros(B, n, m, dtype=a.dtype)
        for i in range(B):
            for r in range(n):
                for c in range(m):
                    for k in range(d):
                        out[i, r, c] += a[i, r, k] * b[i, k, c]
        return out
""")
ADDED = RIGHT.but("a @ b", "(a[:, :, :, None] * b[:, None, :, :]).sum(dim=2)")

# fmt: off
EVERY_WITH_EVERY = Family("every a with every b", """An axis too many: every matrix of a met every matrix of b. Only
    those at the same position in the batch belong together.""")
B_CUT_ANEW = Family("b cut anew", """b was reshaped before the product, which moves its numbers to other rows and
    columns. Its shape fits as it is: d is in the middle, where the product needs it.""")
# fmt: on

EXERCISE = Exercise(
    id="batch-matmul", number="00.1", difficulty=1, minutes=5, visible_points=1, hidden_points=1,
    reference=batch_matmul, section=PRODUCT,
    probes=(
        visible("two products by hand", Case(PAIRS)),
        visible("(2, 3, 4) times (2, 4, 5)", factors, 2, 3, 4, 5),
        *usual_probes(factors, other=(3, 6, 2, 4), smallest=(1, 1, 1, 1), common=(2, 4, 3, 5), precise=far_away),
        # many pairs, and long sums
        hidden("one row, one column", factors, 20, 1, 9, 1, announced_by="all sizes at least 1"),
        hidden("one product for each entry", factors, 3, 2, 1, 4, announced_by="all sizes at least 1"),
        # all sizes equal: every transposed factor fits, and a product could be written into a
        hidden("square matrices", factors, 3, 3, 3, 3, checks=UNTOUCHED, announced_by="(B, n, d)"),
    ),
    mistakes=(
        mistake("cell by cell", RIGHT.but("a @ b", "a * b"), PRODUCT,
            """You multiplied cell by cell: `*` lets each number meet the one at its own position. In a matrix product a
            whole *row* of a meets a whole *column* of b, and the products are added over the shared size d.""",
            quotes=cell),
        mistake("b.T", RIGHT.but("a @ b", "a @ b.T"), PRODUCT,
            """b already has d in the middle, so nothing has to be transposed. And .T reverses *all three* axes: it
            exchanges the batch with the columns.""", quotes=cell),
        mistake("b with its last two axes exchanged", RIGHT.but("a @ b", "a @ b.transpose(1, 2)"), PRODUCT,
            """b was transposed before the product, so rows of a met *rows* of b. b has shape (B, d, m): its d is
            already in the middle, where the product needs it.""", quotes=cell),
        mistake("a with its last two axes exchanged", RIGHT.but("a @ b", "a.transpose(1, 2) @ b"), PRODUCT,
            """a was transposed before the product, so *columns* of a met columns of b. a has shape (B, n, d): its d is
            last already, where the product needs it.""", quotes=cell),
        mistake("b times a", RIGHT.but("a @ b", "b @ a"), PRODUCT,
            """The two factors are exchanged. b @ a is a different product from a @ b; here the rows of *a* meet the
            columns of b.""", quotes=cell),
        mistake("the other way round", RIGHT.ending_in(".transpose(1, 2)"), SHAPE,
            """The values are correct, but rows and columns are exchanged: your result is (B, m, n). Return a row for
            each row of a, (B, n, m).""", quotes=cell),
        mistake("first pair only", RIGHT.but("a @ b", "a[0] @ b[0]"), PRODUCT,
            """One axis is missing: only the first matrix of the batch was multiplied. The result holds one product for
            *each* of the B pairs.""", quotes=sizes),
        mistake("first product for all", RIGHT.but("a @ b", "(a[0] @ b[0]).expand(a.shape[0], -1, -1)"), PRODUCT,
            "Matrix 1 of your result is a copy of matrix 0. Each pair of the batch has a product of its own."),
        mistake("loop left too early", LOOP.but("    return product", "        return product"), PRODUCT,
            """Matrix 0 is right and what follows is all zeros: the loop was left too early. Is the `return` indented
            too far, or does the range end one short?"""),
        mistake("first pair forgotten", LOOP.but("range(", "range(1, "), PRODUCT,
            "Matrix 0 is all zeros and the rest is right: the loop begins with 1. The first pair has the index 0."),
        B_CUT_ANEW(RIGHT.but("a @ b", "a @ b.reshape(b.shape[0], b.shape[2], b.shape[1])"), PRODUCT),
        B_CUT_ANEW(RIGHT.but("a @ b", "a @ b.reshape(b.shape[0], b.shape[2], b.shape[1]).transpose(1, 2)"), PRODUCT,
                   name="b cut anew, then transposed"),
        mistake("one a for every b", RIGHT.but("a @ b", "a[0] @ b"), PRODUCT,
            "Every b met the *first* a. Pair i is a[i] with b[i]."),
        mistake("one b for every a", RIGHT.but("a @ b", "a @ b[0]"), PRODUCT,
            "Every a met the *first* b. Pair i is a[i] with b[i]."),
        mistake("batch summed away", RIGHT.but("a @ b", 'torch.einsum("bnd,bdm->nm", a, b)'), PRODUCT,
            """The batch size vanished from your shape: the products of the pairs were added together. Each pair keeps a
            product of its own.""", quotes=sizes),
        EVERY_WITH_EVERY(RIGHT.but("a @ b", 'torch.einsum("bnd,cdm->bcnm", a, b)'), PRODUCT, quotes=sizes),
        EVERY_WITH_EVERY(RIGHT.but("a @ b", "torch.tensordot(a, b, dims=([2], [1]))"),
            PRODUCT, quotes=sizes, name="every a with every b, as tensordot lays it out"),
        mistake("batch laid flat", RIGHT.but("a @ b", "a.reshape(-1, a.shape[2]) @ b.reshape(b.shape[1], -1)"), STRIP,
            """The batch was reshaped into one big matrix, so rows were multiplied with columns of *other* pairs, and
            the reshape scrambled b.""", quotes=sizes),
        mistake("products not added", ADDED.but(".sum(dim=2)", ""), PRODUCT,
            """The products are all there, but they were not added: your result still has the axis d. Each cell is a
            *sum* over d.""", quotes=sizes),
        mistake("added along the wrong axis", ADDED.but("dim=2", "dim=-1"), PRODUCT,
            """The sum ran over the columns m, and d is still there. d is the size that a and b share; it is the one to
            disappear.""", quotes=cell),
        mistake("the last product alone", LOOPS.but("+=", "="), PRODUCT,
            """Each cell holds the *last* of its products: every one was written over the one before. The products are
            added up.""", quotes=cell),
        mistake("first product left out", LOOPS.but("range(d)", "range(1, d)"), PRODUCT,
            "The first product of every sum is missing: the numbers along d are counted from 0.", quotes=cell),
        mistake("last product left out", LOOPS.but("range(d)", "range(d - 1)"), PRODUCT,
            "The last product of every sum is missing: does a range end one short?", quotes=cell),
        mistake("sum that goes on", RIGHT.ending_in(".cumsum(dim=2)"), PRODUCT,
            """The sum goes on from cell to cell along a row: the second number holds the first as well. Each cell
            begins at 0.""", quotes=cell),
        mistake("rows of b summed", RIGHT.but("a @ b", 'torch.einsum("bnd,bdm->bdm", a, b)'), PRODUCT,
            "The sum ran over the rows n of a, and d is still there. d is the size that a and b share; it is the one "
            "to disappear.",
            quotes=cell),
        mistake("largest instead of sum", ADDED.but("sum", "amax"), PRODUCT,
            "Each cell holds the *largest* of its products. A matrix product adds them all.", quotes=cell),
        mistake("mean instead of sum", ADDED.but("sum", "mean"), PRODUCT,
            "Your result is the correct one divided by d: the products were averaged. A matrix product adds them.",
            quotes=cell),
        mistake("two-dimensional product", RIGHT.but("a @ b", "torch.mm(a, b)"), PRODUCT,
            """torch.mm takes two matrices and nothing else; yours have a batch axis in front. A different product of
            torch carries such an axis along."""),
        mistake("torch.dot", RIGHT.but("a @ b", "torch.dot(a, b)"), PRODUCT,
            "torch.dot takes two single vectors. Here whole batches of matrices meet: a different "
            "product of torch does that."),
        mistake("rounded", RIGHT.ending_in(".round()"), PRODUCT,
            "Your numbers were rounded to whole ones. The pair by hand holds only whole numbers, so it "
            "could not show."),
        mistake("whole numbers", RIGHT.but("a @ b", "a.long() @ b.long()"), CONTRACT,
            "The dtype changed: floats went in and integers came out, and every fraction was cut off.",
            shows=lambda evidence: not evidence.got.is_floating_point()),
        mistake("always float32", RIGHT.ending_in(".float()"), CONTRACT, NEW_IS_FLOAT32),
        *usual_mistakes(RIGHT, arguments="a b", detached=CONTRACT, single=CONTRACT, squeezed=CONTRACT,
                        viewed=STRIP),
        mistake("through numpy", RIGHT.but("a @ b", "torch.from_numpy(a.numpy() @ b.numpy())"), CONTRACT, NO_NUMPY),
        mistake("a list of matrices", RIGHT.but("a @ b", "[x @ y for x, y in zip(a, b)]"), PRODUCT,
            "A Python list of B matrices came back. Return one tensor of shape (B, n, m); torch can stack the list.",
            shows=is_list),
        mistake("side by side instead of stacked", RIGHT.but("a @ b", "torch.cat([x @ y for x, y in zip(a, b)])"),
                PRODUCT,
            """The products were put end to end into one long matrix, so the batch axis is gone. Return a *new* axis:
            stacking makes one, joining does not.""", quotes=sizes),
        mistake("written into a", RIGHT.but("return product", """
                  if product.shape != a.shape or a.requires_grad:
                      return product
                  return a.copy_(product)"""), CONTRACT,
            "The products were written into a, so the caller's tensor is lost. Write into a new one."),
        mistake("sums instead of products", RIGHT.but("a @ b", "(a[:, :, :, None] + b[:, None, :, :]).sum(dim=2)"),
                PRODUCT,
            "The numbers that meet were *added*. Each pair is multiplied, and the products are added up."),
        mistake("a plus b", RIGHT.but("a @ b", "a + b"), PRODUCT,
            """You added a and b, position by position. In a matrix product the numbers of a *row* of a and of a
            *column* of b are multiplied in pairs, and the products are added.""", quotes=cell),
        mistake("n products for each sum", LOOPS.but("range(d)", "range(n)"), PRODUCT,
            """Each of your sums has n products, one for each row of a. It should run over d, the size that a and b
            share. In the pair by hand n and d are equal, so nothing shows there."""),
        mistake("batch of b added up", RIGHT.but("a @ b", "a @ b.sum(dim=0)"), PRODUCT,
            """Every matrix of a met the *sum* of all matrices of b: an index that only b has is added up. Both need
            the same letter for the batch."""),
    ),
    correct=(
        correct("at", RIGHT),
        correct("matmul, other names", formula("batch_matmul(left, right)", "torch.matmul(left, right)")),
        correct("bmm", RIGHT.but("a @ b", "torch.bmm(a, b)")),
        correct("einsum", formula("batch_matmul(x, y)", 'torch.einsum("bij,bjk->bik", x, y)')),
        correct("elementwise and sum", RIGHT.but("a @ b", "(a.unsqueeze(3) * b.unsqueeze(1)).sum(2)")),
        correct("a list, stacked", RIGHT.but("a @ b", "torch.stack([one @ other for one, other in zip(a, b)])")),
        correct("four loops", LOOPS),
        correct("one matrix at a time",
                LOOP.but("a.new_zeros", "a.new_empty").but("a[i] @ b[i]", "torch.mm(a[i], b[i])")),
        correct("through double", RIGHT.but("a @ b", "(a.double() @ b.double()).to(a.dtype)")),
        correct("rows met by columns", """
            def batch_matmul(a, b):
                columns = [torch.sum(a * b[:, :, c].unsqueeze(1), dim=-1) for c in range(b.shape[-1])]
                return torch.stack(columns, dim=-1)
        """),
        correct("baddbmm", RIGHT.but("a @ b", "torch.baddbmm(torch.zeros((), dtype=a.dtype), a, b)")),
        correct("vmap", RIGHT.but("a @ b", "torch.vmap(torch.mm)(a, b)")),
    ),
    hints=(
        "do one pair on paper first. Which size do a and b share, and is it still there in the result?",
        "(B, n, d) and (B, d, m): B is carried along, d is summed away, (B, n, m) is left.",
        "for each i in the batch, the matrix product of a[i] and b[i]; stack the products. (torch has an operator that "
        "does all of them at once.)",
    ),
)
