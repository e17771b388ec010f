"""03.2: direction only, with the lengths divided away."""

import math

import torch
from torch import Tensor

from autograder.catalogue import families
from autograder.catalogue.ch03_similarity.shared import EMBEDDINGS, SMALL_PRINT, WORDS, sections
from autograder.catalogue.exercise import Case, Evidence, Exercise, Law
from autograder.catalogue.families import in_place, usual_mistakes
from autograder.catalogue.known_answers import answer, correct, formula, mistake
from autograder.catalogue.probes import hidden, normal, usual_probes, visible
from autograder.catalogue.quotes import row, sizes
from transformer_ref.model import similarity

COSINE, MANY, TABLE = sections("cosine many table")


def cosine(A: Tensor, B: Tensor) -> Tensor:
    """The dot product of every direction in A with every direction in B. No gradient comes to a table with a zero
    vector, so that none is compared there: at such a vector any will do."""
    A, B = (table if table.any(dim=-1).all() else table.detach() for table in (A, B))
    return similarity.cosine(A, B)


def inputs(g: torch.Generator, n: int, m: int, d: int, dtype: torch.dtype = torch.float32) -> Case:
    return Case((normal(g, n, d, dtype=dtype), normal(g, m, d, dtype=dtype)))


def zero_in_A(g: torch.Generator, n: int, m: int, d: int) -> Case:
    A, B = inputs(g, n, m, d, dtype=torch.float64).arguments
    A[1] = 0
    return Case((A, B))


def of_lengths(g: torch.Generator, d: int, shortest: tuple[float, float], longest: tuple[float, float],
               *sizes: int) -> Case:
    """Vectors in random directions with lengths from the shortest to the longest, given for A and for B."""
    tables = []
    for count, low, high in zip(sizes, shortest, longest, strict=True):
        directions = torch.nn.functional.normalize(normal(g, count, d, dtype=torch.float64), dim=-1)
        lengths = torch.logspace(math.log10(low), math.log10(high), count, dtype=torch.float64)
        tables.append((directions * lengths[:, None]).float())
    return Case(tuple(tables))


def zero_vectors(g: torch.Generator) -> Case:
    A, B = normal(g, 4, 6), normal(g, 5, 6)
    A[2], B[0] = 0, 0
    A[1] = B[3] = torch.tensor([2.0, -1.0, 0.5, 1.0, -0.5, -2.0])  # their sum is 0, their length is not
    return Case((A, B))


def less_where_short(evidence: Evidence) -> bool:
    """Whether every cosine is too small, and more so for shorter vectors."""
    A, B = evidence.arguments
    if not evidence.got.any() and not (A.any(dim=-1).all() and B.any(dim=-1).all()):
        return False  # one vector of zeros made all of it 0
    rows, columns = A.norm(dim=-1).argsort(), B.norm(dim=-1).argsort()
    cosines = similarity.cosine(A, B)[rows][:, columns]
    telling = cosines.abs() > 1e-2
    ratio = torch.where(telling, evidence.got[rows][:, columns] / cosines, 0.0)
    grows = all(bool((ratio >= ratio.cummax(dim=axis).values - 1e-4)[telling].all()) for axis in (0, 1))
    slanted = telling & (cosines.abs() < 0.99)
    if bool(slanted.any()) and bool(ratio[slanted].min() > 1 - 1e-5):
        return False  # only those of parallel vectors are too small, as after a clamp
    ratio = ratio[telling]
    varied = ratio.numel() == 1 or bool(ratio.max() < 0.1) or bool(ratio.max() - ratio.min() > 1e-5)
    return grows and varied and bool(ratio.min() >= 0) and bool(ratio.max() < 1 + 1e-4)


def by_one_square(evidence: Evidence) -> bool:
    """Whether each dot product is divided by the squared length of its vector in A, or of the one in B; where that
    length is 0, the result may be anything."""
    A, B = evidence.arguments
    squares = (A.pow(2).sum(dim=-1)[:, None].expand_as(evidence.got), B.pow(2).sum(dim=-1).expand_as(evidence.got))
    if all(torch.allclose(each, torch.ones(()), rtol=1e-3) for each in squares):
        return False  # the lengths are 1 already
    divided = [torch.where(each > 0, A @ B.T / each, evidence.got) for each in squares]
    return any(torch.allclose(evidence.got, each, rtol=1e-4, atol=1e-5, equal_nan=True) for each in divided)


def angles(evidence: Evidence) -> bool:
    """Whether these are the angles; where two vectors are parallel, rounding may have left NaN in their place."""
    cosines = evidence.expected
    near = torch.isclose(evidence.got, cosines.clamp(-1, 1).acos(), rtol=1e-4, atol=2e-3)
    return bool((near | (evidence.got.isnan() & (cosines.abs() > 0.999))).all())


def own_similarity_is_one(got: Tensor) -> bool:
    return torch.allclose(got.diagonal(), torch.ones(()), atol=1e-4)


def first_row(evidence: Evidence) -> str:
    """The first row of the result, and the correct one."""
    if not isinstance(evidence.got, Tensor) or evidence.got.dim() != 2:
        return "The result is not a table with a row for each vector of the first argument."
    got, expected = evidence.got[0][:8], evidence.expected[0][:8]
    return f"Your first row is {row(got)}; by hand it is {row(expected)}."


ARROWS = Case((torch.tensor([[1.0, 4.0]]), torch.tensor([[0.0, 3.0], [3.0, 0.0], [-2.0, -8.0]])))
WITH_ZERO = Case((
    torch.tensor([[3.0, 4.0, 0.0], [0.0, 0.0, 0.0]]),
    torch.tensor([[4.0, 3.0, 0.0], [0.0, 5.0, 12.0], [0.0, 0.0, 0.0], [1.0, 2.0, 2.0]]),
))

RIGHT = answer("""
    def cosine(A, B):
        a = F.normalize(A, dim=-1)
        b = F.normalize(B, dim=-1)
        return a @ b.T
""")
A, B = "F.normalize(A, dim=-1)", "F.normalize(B, dim=-1)"
UNGUARDED_A, UNGUARDED_B = "A / A.norm(dim=-1, keepdim=True)", "B / B.norm(dim=-1, keepdim=True)"
UNGUARDED = RIGHT.but(A, UNGUARDED_A).but(B, UNGUARDED_B)

OUTSIDE = answer("""
    def cosine(A, B):
        lengths = A.norm(dim=1)[:, None] * B.norm(dim=1)[None, :]
        return A @ B.T / lengths.clamp(min=1e-12)
""")
LENGTHS = "A.norm(dim=1)[:, None] * B.norm(dim=1)[None, :]"

EXERCISE = Exercise(
    id="cosine", number="03.2", difficulty=2, minutes=8, visible_points=1, hidden_points=2,
    reference=cosine, section=COSINE,
    probes=(
        visible("one arrow and three others", ARROWS),
        visible("four words with each other", Case((EMBEDDINGS, EMBEDDINGS), WORDS), rtol=3e-5,
                laws=(Law("every word's similarity to itself is 1", own_similarity_is_one),)),
        visible("a zero vector is similar to nothing", WITH_ZERO),
        *usual_probes(inputs, other=(4, 6, 5), smallest=(1, 1, 3), common=(4, 5, 6)),
        hidden("as many vectors as numbers", zero_in_A, 4, 4, 4, checks="gradients", announced_by="a zero vector"),
        hidden("very different lengths", of_lengths, 4, (0.3, 0.3), (3000, 3000), 5, 7,
               announced_by="from 0.02 to 3,000 long"),
        hidden("short arrows", of_lengths, 4, (0.02, 0.02), (0.03, 0.03), 3, 5, atol=5e-4,
               announced_by="from 0.02 to 3,000 long"),
        hidden("zero vectors on both sides", zero_vectors, checks="inputs", announced_by="a zero vector"),
    ),
    omits={"precision": "a cosine has the same seven digits in either precision",
           "a length of one": "a vector of one number has no angle"},
    mistakes=(
        mistake("lengths kept", RIGHT.but(A, "A").but(B, "B"), COSINE,
            """These are the plain dot products. They grow with the lengths of the vectors; a cosine depends on
            directions only and stays between -1 and 1.""", quotes=first_row),
        mistake("norm of the whole table", RIGHT.but(A, "A / A.norm()").but(B, "B / B.norm()"), COSINE,
            """One length was taken for the whole table, so a word's similarity to itself is not 1. Each *row* has a
            length of its own.""", quotes=first_row),
        mistake("length along the wrong axis", RIGHT.but("A, dim=-1", "A, dim=0").but("B, dim=-1", "B, dim=0"), COSINE,
            "Columns were brought to length 1, not rows: a column holds one feature of all vectors. Each "
            "*row* is a vector.",
            quotes=first_row),
        mistake("sum of absolute values as length", RIGHT.but("A, dim", "A, p=1, dim").but("B, dim", "B, p=1, dim"),
                COSINE,
            "The length was taken as the sum of absolute values. The length of an arrow is the root of the sum of "
            "*squares*.",
            quotes=first_row),
        mistake("largest number as length",
                RIGHT.but("A, dim", "A, p=math.inf, dim").but("B, dim", "B, p=math.inf, dim"), COSINE,
            "The length was taken as the largest number of a vector. The length of an arrow is the root of the sum of "
            "squares.",
            quotes=first_row),
        mistake("root forgotten", RIGHT.but(A, "A / A.pow(2).sum(-1, keepdim=True).clamp(min=1e-12)").but(
                  B, "B / B.pow(2).sum(-1, keepdim=True).clamp(min=1e-12)"), COSINE,
            """Each vector was divided by the *square* of its length, so long vectors count too little. Take the root of
            the sum of squares.""", quotes=first_row),
        mistake("only A brought to length 1", RIGHT.but(B, "B"), COSINE,
            "Your numbers still grow with the vectors of B: only A was brought to length 1.", quotes=first_row),
        mistake("only B brought to length 1", RIGHT.but(A, "A"), COSINE,
            "Your numbers still grow with the vectors of A: only B was brought to length 1.", quotes=first_row),
        mistake("zero divided by zero", UNGUARDED, COSINE,
            """A vector of zeros has no direction: its length is 0, and 0 divided by 0 is NaN. We define its similarity
            as 0, so guard that division."""),
        mistake("zero vector guarded in A only", RIGHT.but(B, UNGUARDED_B), COSINE,
            "A zero vector in A is safe, one in B still gives NaN. Guard both divisions."),
        mistake("zero vector guarded in B only", RIGHT.but(A, UNGUARDED_A), COSINE,
            "A zero vector in B is safe, one in A still gives NaN. Guard both divisions."),
        mistake("guard too large", RIGHT.but(A, "A / (A.norm(dim=-1, keepdim=True) + 0.1)").but(
                  B, "B / (B.norm(dim=-1, keepdim=True) + 0.1)"), COSINE,
            """Every similarity came out a little too small: the small number that prevents division by 0 is too
            large. Make it tiny, or act only where the length is 0.""", quotes=first_row),
        mistake("zero vector similar to all", UNGUARDED.ending_in(".nan_to_num(nan=1.0)"), COSINE,
            "A zero vector came out with similarity 1. It points nowhere, so it is similar to nothing: 0."),
        mistake("NaN replaced in the result", UNGUARDED.ending_in(".nan_to_num(nan=0.0)"), COSINE,
            """The values are right, but one zero vector makes gradients NaN, also those of other vectors: 0 was divided
            by 0, and NaN was replaced only in the result. Guard the division itself."""),
        mistake("one axis for two lists of lengths", OUTSIDE.but(LENGTHS, "A.norm(dim=1) * B.norm(dim=1)"), TABLE,
            """There are n lengths in A and m in B, and the table is (n, m): n lengths go down its rows, m along its
            columns. Multiplied with each other like this they only fit when n = m, and then wrongly."""),
        mistake("lengths on the wrong axis", OUTSIDE.but(LENGTHS, "A.norm(dim=1)[None, :] * B.norm(dim=1)[:, None]"),
                TABLE,
            """The lengths of A were laid along the columns of the table and those of B down its rows. Row i belongs to
            vector i of A."""),
        mistake("lengths as two columns", OUTSIDE.but("[None, :]", "[:, None]"), TABLE,
            """Both lists of lengths are columns. Those of A belong to the rows of the table and may; those of B belong
            to its columns, so they have to form a row."""),
        mistake("similarity over the wrong axis", RIGHT.but("a @ b.T", "F.cosine_similarity(A[:, None], B[None])"),
                MANY,
            """F.cosine_similarity sums over axis 1 unless told otherwise. With every row of A broadcast against every
            row of B, the d numbers of a vector are on the *last* axis.""", quotes=sizes),
        mistake("B reshaped instead of transposed", RIGHT.but("b.T", "b.reshape(b.shape[1], b.shape[0])"), TABLE,
            """The shape is right, but the pairs are wrong: reshape and view keep the entries of B in their order and
            only cut them differently, so a column no longer holds one vector. Transpose B instead.""",
            quotes=first_row),
        mistake("number of components as length",
                RIGHT.but(A, "A").but(B, "B").ending_in(" / A.shape[-1] ** 2"), COSINE,
            """The dot products were divided by d twice: the number of entries was taken for the length. The length of
            an arrow is the root of the sum of its squares.""", quotes=first_row),
        mistake("A with itself", RIGHT.but(B, A), TABLE,
            """The vectors of A were compared with each other, and B was not used. A column of the table belongs to a
            vector of B.""", quotes=sizes),
        mistake("pair by pair", RIGHT.but("a @ b.T", "(a * b).sum(dim=-1)"), TABLE,
            "Row i of A met row i of B only. Return a table: every row of A with every row of B, shape (n, m)."),
        mistake("rows and columns exchanged", RIGHT.but("a @ b.T", "b @ a.T"), TABLE,
            "Rows and columns are exchanged: one row for each vector of A, one column for each of B.", quotes=sizes),
        mistake("the angle itself", RIGHT.ending_in(".clamp(-1, 1).acos()"), COSINE,
            """These are angles: 0 for the same direction, and larger for less alike. Return the *cosine* of the angle,
            1 for the same direction. (If there is a NaN, it comes from acos, which is not defined beyond 1 and -1:
            rounding can bring a cosine a little beyond them.)""", quotes=first_row, shows=angles),
        mistake("distance instead of similarity", RIGHT.but("a @ b.T", "1 - a @ b.T"), COSINE,
            "You returned one minus the similarity: 0 for the same direction. That is a distance.", quotes=first_row),
        mistake("sign dropped", RIGHT.ending_in(".abs()"), COSINE,
            "Opposite arrows came out as alike: their cosine is -1, and the sign is gone in yours.", quotes=first_row),
        mistake("negative similarities cut off", RIGHT.ending_in(".clamp(min=0)"), COSINE,
            "Negative cosines became 0, so opposite looks the same as unrelated. Keep the sign.", quotes=first_row),
        mistake("scaled dot product", RIGHT.but(A, "A").but(B, "B").ending_in(" / A.shape[-1] ** 0.5"), COSINE,
            """The dot products were divided by the root of d, one number for all pairs. A cosine divides by the two
            lengths of each pair.""", quotes=first_row),
        families.MEAN_TAKEN_AWAY(RIGHT.but(A, "F.normalize(A - A.mean(-1, keepdim=True), dim=-1)").but(
                  B, "F.normalize(B - B.mean(-1, keepdim=True), dim=-1)"),
            COSINE, quotes=first_row, vector="vector"),
        mistake("divided by the mean of the lengths",
                OUTSIDE.but(LENGTHS, "(A.norm(dim=1)[:, None] + B.norm(dim=1)[None, :]) / 2"), COSINE,
            "The two lengths were added, and half their sum divided. Each vector is divided by its own length: they "
            "are *multiplied*.",
            quotes=first_row),
        mistake("divided by the sum of the lengths",
                OUTSIDE.but(LENGTHS, "A.norm(dim=1)[:, None] + B.norm(dim=1)[None, :]"), COSINE,
            "The two lengths were added. Each vector is divided by its own length, so both together by their "
            "*product*.",
            quotes=first_row),
        mistake("divided by the larger length",
                OUTSIDE.but(LENGTHS, "torch.maximum(A.norm(dim=1)[:, None], B.norm(dim=1)[None, :])"), COSINE,
            "Each pair was divided only by the longer of its two lengths. Both lengths divide: by their product.",
            quotes=first_row),
        mistake("divided by the larger squared length", OUTSIDE.but(
                  LENGTHS, "torch.maximum(A.norm(dim=1)[:, None], B.norm(dim=1)[None, :]) ** 2"), COSINE,
            "Each pair was divided by its longer length twice. Each of the two vectors has a length of its own.",
            quotes=first_row),
        mistake("root of the product of the lengths", OUTSIDE.but(LENGTHS, f"({LENGTHS}) ** 0.5"), COSINE,
            """The root was taken once too often: a length is a root already, and the two lengths are multiplied as
            they are.""",
            quotes=first_row),
        mistake("one length for all of B", OUTSIDE.but("B.norm(dim=1)[None, :]", "B.norm()"), COSINE,
            "One length was taken for the whole table B. Each *row* of it has a length of its own.", quotes=first_row),
        mistake("one length for all of A", OUTSIDE.but("A.norm(dim=1)[:, None]", "A.norm()"), COSINE,
            "One length was taken for the whole table A. Each *row* of it has a length of its own.", quotes=first_row),
        mistake("divided by the squared lengths of B alone", RIGHT.but(A, "A").but(
                  B, "B / B.pow(2).sum(-1, keepdim=True).clamp(min=1e-12)"), COSINE,
            """Each pair was divided by the squared length of one of its two vectors, and not by the length of the other
            one. Each of the two vectors has a length of its own, which is a root.""",
            quotes=first_row, shows=by_one_square),
        mistake("mean of squares in the length", RIGHT.ending_in(" * A.shape[-1]"), COSINE,
            """Your numbers are d times too large, as if a length held the *mean* of the squares. The length of an arrow
            is the root of their sum.""", quotes=first_row),
        mistake("softmax on top", RIGHT.ending_in(".softmax(dim=-1)"), COSINE,
            "Your rows sum to 1: a softmax was applied, which makes weights. Each cosine is between -1 and 1, whatever "
            "the others are.",
            quotes=first_row),
        mistake("zeros replaced by ones", RIGHT.before(f"a = {A}", """
                  A = torch.where(A.norm(dim=1, keepdim=True) == 0, torch.ones_like(A), A)
                  B = torch.where(B.norm(dim=1, keepdim=True) == 0, torch.ones_like(B), B)"""), COSINE,
            "A vector of zeros was replaced by another one, which has a direction. It points nowhere, so its "
            "similarity is 0 to all."),
        mistake("moved to between 0 and 1", RIGHT.ending_in(".add(1).div(2)"), COSINE,
            """Your results are between 0 and 1: the cosine was shifted and halved. A cosine runs from -1 to 1, and 0
            means a right angle.""", quotes=first_row),
        mistake("squared", RIGHT.ending_in(".square()"), COSINE,
            "The cosines were squared, so opposite looks like alike. Return the cosine itself.", quotes=first_row),
        mistake("lengths cut off from the gradient", OUTSIDE.but("lengths.clamp", "lengths.detach().clamp"),
                SMALL_PRINT,
            """The values are right, but the gradient treats the lengths as constants: they were detached. A length
            changes with its vector."""),
        in_place("A", RIGHT.before("a = " + A, "A /= A.norm(dim=-1, keepdim=True).clamp(min=1e-12)"), SMALL_PRINT),
        mistake("short arrows taken for zero", OUTSIDE.but("1e-12", "1e-3"), COSINE,
            """Your guard against 0 is too large: short arrows have a direction too, and came out as hardly alike. Only
            a length of exactly 0 needs a guard; something like 1e-12 is enough."""),
        mistake("a guard that shows", OUTSIDE.but("lengths.clamp(min=1e-12)", "(lengths + 1e-2)"), COSINE,
            """Cosines came out too small, most of all those of short arrows: the small number that prevents
            division by 0 is too large. Something like 1e-12 is enough, or a guard that acts only where the length is
            0.""", shows=less_where_short),
        mistake("one zero vector empties the table", OUTSIDE.but("A @ B.T / lengths.clamp(min=1e-12)",
                  "A @ B.T / lengths if (lengths > 0).all() else torch.zeros_like(lengths)"), COSINE,
            """One zero vector made the whole table 0. Only its own row or column is 0: all other pairs have their
            cosines.""", quotes=first_row),
        mistake("zero vectors thrown away", RIGHT.but(A, "F.normalize(A[A.norm(dim=1) > 0], dim=-1)").but(
                  B, "F.normalize(B[B.norm(dim=1) > 0], dim=-1)"), COSINE,
            "Vectors of zeros were thrown away, and with them their rows and columns. They stay in the "
            "table, as zeros."),
        mistake("divided by the root of d as well", RIGHT.but("a @ b.T", "a @ b.T / A.shape[-1] ** 0.5"), COSINE,
            """A vector's similarity to itself should be 1. The two lengths were divided away, and the root of d on top
            of them; that belongs to 03.4."""),
        *usual_mistakes(RIGHT, arguments="A B", detached=SMALL_PRINT, float32=SMALL_PRINT, squeezed=TABLE,
                        viewed=TABLE),
    ),
    correct=(
        correct("F.normalize", RIGHT),
        correct("F.cosine_similarity, spread",
                formula("cosine(A, B)", "F.cosine_similarity(A[:, None, :], B[None, :, :], dim=-1)")),
        correct("lengths outside", OUTSIDE),
        correct("a tiny number added",
                formula("cosine(A, B)", "(A @ B.mT) / (torch.outer(A.norm(dim=-1), B.norm(dim=-1)) + 1e-8)")),
        correct("where", """
            def cosine(A, B):
                def direction(v):
                    length = (v ** 2).sum(-1, keepdim=True).sqrt()
                    return v / torch.where(length == 0, torch.ones_like(length), length)
                return torch.einsum("nd,md->nm", direction(A), direction(B))
        """),
        correct("loops", """
            def cosine(A, B):
                rows = []
                for a in A:
                    cells = []
                    for b in B:
                        lengths = a.norm() * b.norm()
                        cells.append((a * b).sum() / lengths if lengths > 0 else (a * b).sum())
                    rows.append(torch.stack(cells))
                return torch.stack(rows)
        """),
        correct("double inside, clamped", """
            def cosine(A, B):
                a, b = A.double(), B.double()
                table = a @ b.T / (a.norm(dim=-1, keepdim=True).clamp(min=1e-30) * b.norm(dim=-1).clamp(min=1e-30))
                return table.clamp(-1, 1).to(A.dtype)
        """),
    ),
    hints=(
        "look at the diagonal of the four words, and at the row of the zero vector.",
        "A (n, d) has n lengths and B (m, d) has m, one for each row; the table is (n, m).",
        "divide each row of A by its length, unless that is 0; the same for B; then every row of one with every row "
        "of the other.",
    ),
)
