"""03.1: one number that says how well two vectors agree."""

import torch
from torch import Tensor

from autograder.catalogue.ch03_similarity.shared import EMBEDDINGS, SMALL_PRINT, sections, whole
from autograder.catalogue.exercise import Case, Evidence, Exercise
from autograder.catalogue.families import in_place, usual_mistakes
from autograder.catalogue.known_answers import answer, correct, formula, mistake
from autograder.catalogue.numbers import number
from autograder.catalogue.probes import FAR, GRADIENTS, PROMISED, hidden, normal, usual_probes, visible
from autograder.catalogue.quotes import row, sizes
from transformer_ref.model import similarity

COSINE, DOT, MANY, ROOT = sections("cosine dot many root")


def dot(a: Tensor, b: Tensor) -> Tensor:
    """The sum over the last axis of a * b."""
    return similarity.dot(a, b)


def inputs(g: torch.Generator, *shape: int, dtype: torch.dtype = torch.float32) -> Case:
    return Case((normal(g, *shape, dtype=dtype), normal(g, *shape, dtype=dtype)))


def spread(g: torch.Generator, d: int, *stack: int) -> Case:
    """One vector for a whole stack of them."""
    return Case((normal(g, d), normal(g, *stack, d)))


def both_ways(g: torch.Generator) -> Case:
    """Each of the two is broadcast along an axis of the other."""
    return Case((normal(g, 4, 1, 5), normal(g, 1, 3, 5)))


def zero_and_large(g: torch.Generator) -> Case:
    return Case((whole(g, 3, 6) * (torch.arange(3) > 0)[:, None], whole(g, 3, 6)))


def far_away(g: torch.Generator) -> Case:
    """Large numbers, for which a dot product computed from squared lengths is still accurate."""
    a, b = inputs(g, 2, 3, 5, dtype=torch.float64).arguments
    return Case((a + FAR**0.5, b - b.mean(dim=-1, keepdim=True)))


def single(evidence: Evidence) -> str:
    if evidence.got.dim() == 0:
        return f"(1, 4) and (0, 3) gave {number(evidence.got)}; by hand it is {number(evidence.expected)}."
    if evidence.got.dim() == 1:
        return f"You returned {row(evidence.got)}; by hand it is {row(evidence.expected.reshape(-1))}."
    return sizes(evidence)


def ends_early(evidence: Evidence) -> bool:
    """Whether these are the sums of all products but the last, or only the first products."""
    products = torch.mul(*evidence.arguments)
    parts = (products[..., :-1].sum(dim=-1), products[..., 0])
    if evidence.got.shape != parts[0].shape:
        return False
    return any(torch.allclose(evidence.got, part, rtol=1e-4, atol=1e-4) for part in parts)


THREE_PAIRS = Case((
    torch.tensor([[1.0, 4.0], [1.0, 0.0], [2.0, -3.0]]),
    torch.tensor([[3.0, 0.0], [-1.0, 0.0], [4.0, 2.0]]),
))

RIGHT = answer("""
    def dot(a, b):
        products = a * b
        return products.sum(dim=-1)
""")
PRODUCTS, SUM = "a * b", "products.sum(dim=-1)"

EXERCISE = Exercise(
    id="dot", number="03.1", difficulty=1, minutes=5, visible_points=1, hidden_points=1,
    reference=dot, section=DOT,
    probes=(
        visible("(1, 4) and (0, 3)", Case((torch.tensor([1.0, 4.0]), torch.tensor([0.0, 3.0])))),
        visible("three pairs", THREE_PAIRS),
        visible("four words, each with windows", Case((EMBEDDINGS, EMBEDDINGS[3]))),
        *usual_probes(inputs, other=(2, 4, 6), smallest=(1, 3, 1), common=(2, 3, 5), precise=far_away),
        hidden("one vector for a whole stack", spread, 5, 2, 3, 4, announced_by="broadcast"),
        hidden("each broadcast along an axis of the other", both_ways, announced_by="broadcast"),
        hidden("gradients of one pair", inputs, 4, dtype=torch.float64, checks=GRADIENTS, announced_by=PROMISED),
        hidden("a zero vector, and large numbers", zero_and_large, announced_by="any numbers"),
    ),
    mistakes=(
        mistake("products not added", RIGHT.but(SUM, "products"), DOT,
            "You returned the d products one by one. A dot product is one number for a pair: add them.", quotes=sizes),
        mistake("every product of every pair of numbers", RIGHT.but(
                  PRODUCTS, "a[..., :, None] * b[..., None, :]").but(SUM, "products"), DOT,
            """Every number of a met every number of b: that is the outer product. Only numbers at the *same position*
            meet, and then they are added.""", quotes=sizes),
        mistake("torch.outer", RIGHT.but(PRODUCTS, "torch.outer(a, b)").but(SUM, "products"), DOT,
            """The outer product makes every number of a meet every number of b. Only numbers at the *same position*
            meet, and then they are added.""", quotes=sizes),
        mistake("all axes summed", RIGHT.but("dim=-1", ""), MANY,
            """One number came back for the whole batch: the pairs were added together. Each pair keeps a number of its
            own; only the last axis is summed.""", quotes=sizes),
        mistake("first axis summed", RIGHT.but("dim=-1", "dim=0"), MANY,
            """The first axis was summed. With one pair it holds the numbers of a vector; with several pairs it counts
            the *pairs*. The numbers of a vector are always last.""", quotes=sizes),
        mistake("axis 1 summed", RIGHT.but("dim=-1", "dim=1"), MANY,
            """Axis 1 is the last axis only when there are two. A single vector has no axis 1, and in a deeper batch it
            counts something else. Count from the end."""),
        mistake("axis counted on a", RIGHT.but("dim=-1", "dim=a.dim() - 1"), MANY,
            """The axis was counted on one argument, but the other may have more axes. After multiplying, the numbers of
            a vector are last: count from the end."""),
        mistake("one pair only", RIGHT.but(PRODUCTS, "torch.dot(a, b)").but(SUM, "products"), MANY,
            """torch.dot takes exactly two vectors and refuses a stack of them. Write the two steps, multiply and add,
            along the last axis."""),
        mistake("matrix product of two stacks", RIGHT.but(PRODUCTS, "a @ b").but(SUM, "products"), MANY,
            """For two single vectors @ is the dot product; for two stacks it is a matrix product, whose inner sizes do
            not agree here. Row i of a should meet row i of b only."""),
        mistake("every pair of rows", RIGHT.but(PRODUCTS, "a @ b.T").but(SUM, "products"), MANY,
            """Every row of a met every row of b. Here row i of a meets row i of b, so three pairs give three numbers.
            (The full table is exercise 03.4.)""", quotes=sizes),
        mistake("last two axes exchanged", RIGHT.but(PRODUCTS, "a @ b.transpose(-1, -2)").but(SUM, "products"), MANY,
            """A single vector has no two axes to exchange, and for stacks every row of a would meet every row of b. Row
            i of a meets row i of b only; multiply and add along the last axis."""),
        mistake("mean instead of sum", RIGHT.but("sum", "mean"), DOT,
            "The products were averaged, which divides by d. A dot product adds them.", quotes=single),
        mistake("absolute values", RIGHT.but(PRODUCTS, "(a * b).abs()"), DOT,
            """Signs were lost on the way: (1, 0) and (-1, 0) point away from each other, and their dot product is -1. A
            negative number is an answer, too.""", quotes=single),
        mistake("negative results cut off", RIGHT.ending_in(".clamp(min=0)"), DOT,
            """Negative results became 0. Opposite directions have a negative dot product; that is how the number tells
            them from unrelated ones.""", quotes=single),
        mistake("cosine", RIGHT.but(PRODUCTS, "F.normalize(a, dim=-1) * F.normalize(b, dim=-1)"), COSINE,
            """Your result never leaves -1 to 1: the lengths were divided away, which is cosine similarity (03.2). The
            dot product keeps them.""", quotes=single),
        mistake("scaled already", RIGHT.but(SUM, SUM + " / a.shape[-1] ** 0.5"), ROOT,
            "Your number was divided by the root of d. That is the scaled dot product of 03.4; here, return "
            "the plain sum.",
            quotes=single),
        mistake("sums multiplied", RIGHT.but(SUM, "a.sum(dim=-1) * b.sum(dim=-1)"), DOT,
            """The numbers were added before they were multiplied, so every number of a met every number of b. Multiply
            element by element first.""", quotes=single),
        mistake("added instead of multiplied", RIGHT.but("a * b", "a + b"), DOT,
            "The vectors were added, and their sum summed. Element by element they are *multiplied*.", quotes=single),
        mistake("squared distance", RIGHT.but(PRODUCTS, "(a - b) ** 2"), DOT,
            """This is the squared distance between the two points: 0 for equal vectors, and large for unlike ones. The
            dot product goes the other way.""", quotes=single),
        mistake("an axis of one left over", RIGHT.but("dim=-1", "dim=-1, keepdim=True"), MANY,
            "The numbers are right, but the summed axis is still there with length 1. It should be gone.",
            quotes=sizes),
        mistake("a Python number", RIGHT.ending_in(".item()"), MANY,
            """.item() hands over a plain number: it fails for more than one pair, and no gradient flows through it.
            Return a tensor, even for one pair."""),
        in_place("a", RIGHT.but("products = a * b", "a *= b").but("products.sum", "a.sum"), SMALL_PRINT,
                 "It also fails where a is smaller than the result."),
        mistake("a loop over the first axis",
                RIGHT.but(SUM, "torch.stack([products[i].sum() for i in range(a.shape[0])])"), DOT,
            """Your loop takes the first axis for the pairs. A single pair has no such axis: there it holds the numbers
            of the vector. The numbers are always last, and before them there may be no axis, one or several."""),
        mistake("negative products cut off", RIGHT.but(PRODUCTS, "(a * b).clamp(min=0)"), DOT,
            """Negative products were left out of the sum. Where two numbers have opposite signs they speak against
            likeness, and that counts.""", quotes=single),
        mistake("divided by one of the two lengths", RIGHT.ending_in(" / a.norm(dim=-1)"), COSINE,
            """Your number was divided by the length of a: how long the shadow of b is on a. The plain dot product
            divides by nothing.""", quotes=single),
        mistake("distance between the points", RIGHT.but(PRODUCTS, "(a - b) ** 2").ending_in(".sqrt()"), DOT,
            """This is the distance between the two points: 0 for equal vectors, and large for unlike ones. The dot
            product goes the other way.""", quotes=single),
        mistake("the last places left out", RIGHT.but(PRODUCTS, "a[..., :-1] * b[..., :-1]"), DOT,
            """The sum ends too early: the last number of each vector was left out, or all but the first. It should
            run over all d positions, from 0 to d - 1. If you use a loop: does it stop one position early, or is the
            `return` inside it, so that it ends in the first iteration?""", quotes=single, shows=ends_early),
        mistake("the first places left out", RIGHT.but(PRODUCTS, "a[..., 1:] * b[..., 1:]"), DOT,
            "The first number of each vector was left out: positions are counted from 0.", quotes=single),
        mistake("two numbers a vector", RIGHT.but(PRODUCTS, "a[..., :2] * b[..., :2]"), DOT,
            "Only the first two numbers of each vector were used. The examples have two; a vector may have any number "
            "of them.",
            quotes=single),
        mistake("lengths multiplied", RIGHT.but(PRODUCTS, "a.norm(dim=-1) * b.norm(dim=-1)").but(SUM, "products"),
                COSINE,
            """The two lengths were multiplied, and the angle between the arrows left out: vectors at a right angle have
            the dot product 0, however long they are.""", quotes=single),
        mistake("products multiplied", RIGHT.but("sum", "prod"), DOT,
            "The products were multiplied with each other, so a single 0 makes all of it 0. A dot product *adds* them.",
            quotes=single),
        mistake("running sums", RIGHT.but("sum", "cumsum"), DOT,
            "The running sums came back, one for each position. A dot product is the last of them, one number for a "
            "pair.",
            quotes=sizes),
        mistake("b read backward", RIGHT.but(PRODUCTS, "a * b.flip(-1)"), DOT,
            "The first number of a met the last one of b, and so on. Numbers at the *same position* are multiplied.",
            quotes=single),
        mistake("only b summed", RIGHT.but(PRODUCTS, "a * b.sum(dim=-1)").but(SUM, "products"), DOT,
            """Only b was summed, and a was multiplied by its sums. A method binds more tightly than *: it belongs
            only to b unless the product is in brackets. Multiply element by element, then add up the products.""",
            quotes=sizes),
        mistake("subtracted instead of multiplied", RIGHT.but("a * b", "a - b"), DOT,
            "The vectors were subtracted, and their difference summed. Element by element they are *multiplied*.",
            quotes=single),
        mistake("axis 1 summed, all of a single pair", RIGHT.but("dim=-1", "dim=1 if products.dim() > 1 else 0"), MANY,
            "Axis 1 is the last axis only when there are two; in a deeper batch it counts something else. Count from "
            "the end.",
            quotes=single),
        *usual_mistakes(RIGHT, arguments="a b", detached=SMALL_PRINT, float32=SMALL_PRINT, single=SMALL_PRINT,
                        squeezed=DOT, viewed=MANY),
    ),
    correct=(
        correct("multiply and sum", RIGHT),
        correct("einsum", formula("dot(a, b)", 'torch.einsum("...d,...d->...", a, b)')),
        correct("vecdot", formula("dot(a, b)", "torch.linalg.vecdot(a, b)")),
        correct("row times column", formula("dot(a, b)", "(a[..., None, :] @ b[..., :, None])[..., 0, 0]")),
        correct("loop over the places", """
            def dot(a, b):
                total = 0
                for i in range(a.shape[-1]):
                    total = total + a[..., i] * b[..., i]
                return total
        """),
        correct("loop over the pairs", """
            def dot(a, b):
                a, b = torch.broadcast_tensors(a, b)
                flat = [torch.dot(u, v) for u, v in zip(a.reshape(-1, a.shape[-1]), b.reshape(-1, b.shape[-1]))]
                return torch.stack(flat).reshape(a.shape[:-1])
        """),
        correct("double inside", RIGHT.but(PRODUCTS, "a.double() * b.double()").ending_in(".to(a.dtype)")),
        correct("from three lengths",
                formula("dot(a, b)", "((a + b).pow(2).sum(-1) - a.pow(2).sum(-1) - b.pow(2).sum(-1)) / 2")),
        correct("recursion", """
            def dot(a, b):
                if a.dim() == b.dim() == 1:
                    return sum(x * y for x, y in zip(a, b))
                a, b = torch.broadcast_tensors(a, b)
                return torch.stack([dot(u, v) for u, v in zip(a, b)])
        """),
    ),
    hints=(
        "one pair of vectors gives one number. Which axis has to disappear?",
        "a and b of (..., d) broadcast automatically; the product has shape (..., d), the result (...).",
        "multiply a and b element by element; add along the last axis; return that.",
    ),
)
