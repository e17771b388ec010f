"""07.4: k places on is a turn of every hand."""

import math

import torch
from torch import Tensor

from autograder.catalogue import families
from autograder.catalogue.ch07_positional_encoding.shared import in_single_precision, off_row, sections
from autograder.catalogue.exercise import Case, Evidence, Exercise
from autograder.catalogue.known_answers import answer, correct, mistake
from autograder.catalogue.probes import PROMISED, hidden, second_call, visible
from autograder.catalogue.quotes import sizes
from transformer_ref.model.positional_encoding import sinusoidal_table

ROTATION, SPEEDS = sections("rotation speeds")


def shift_matrix(k: int, d: int) -> Tensor:
    """M with PE[t + k] = PE[t] @ M for every t, (d, d)."""
    M = torch.zeros(d, d, dtype=torch.float64)
    for i in range(0, d, 2):
        angle = k / 10_000 ** (i / d)
        cos, sin = math.cos(angle), math.sin(angle)
        M[i, i], M[i, i + 1], M[i + 1, i], M[i + 1, i + 1] = cos, -sin, sin, cos
    return M.float()


def some(g: torch.Generator, steps: tuple[int, int], halves: tuple[int, int]) -> Case:
    """A shift and an even width, drawn from ranges."""
    k, half = (int(torch.randint(*ends, (), generator=g)) for ends in (steps, halves))
    return Case((k, 2 * half))


def first_pair_only(evidence: Evidence) -> bool | None:
    """Whether the first pair is rotated as it should be, and all others are left unchanged or left out; the matrix may
    be that of the first pair."""
    _, d = evidence.arguments
    got, expected = evidence.got, evidence.expected
    if not isinstance(got, Tensor):
        return False
    if got.shape == (2, 2):
        return torch.allclose(got.double(), expected[:2, :2].double(), atol=1e-3)
    if got.shape != (d, d):
        return False
    first = torch.zeros(d, d, dtype=torch.float64)
    first[:2, :2] = expected[:2, :2]
    rest = torch.eye(d, dtype=torch.float64)
    rest[:2] = 0.0
    return any(torch.allclose(got.double(), first + other, atol=1e-3) for other in (rest, torch.zeros_like(rest)))


def fitted(evidence: Evidence) -> bool | None:
    """Whether the matrix is wrong, moves the first d/2 rows as it should, and mixes the hands, as no rotation does. A
    single hand cannot show it."""
    (k, d), got = evidence.arguments, evidence.got
    if not isinstance(got, Tensor) or got.shape != (d, d) or got.dtype not in (torch.float32, torch.float64):
        return False
    if d == 2:
        return None
    table = sinusoidal_table(d // 2 + abs(k), d).double()
    first, later = (table[start : start + d // 2] for start in (max(-k, 0), max(k, 0)))
    pair = torch.arange(d) // 2
    mixed = got[pair[:, None] != pair].abs().max() > 1e-3
    return bool(mixed and ((first @ got.double() - later).abs() < 1e-2).all())


def blocks_elsewhere(evidence: Evidence) -> bool:
    """Whether the blocks are right and not along the diagonal of one matrix: each begins one row and column after the
    one before, or they are stacked, or set side by side or one below the other."""
    (_, d), got, expected = evidence.arguments, evidence.got, evidence.expected
    if not isinstance(got, Tensor):
        return False
    blocks = torch.stack([expected[i : i + 2, i : i + 2] for i in range(0, d, 2)])
    overlapping = torch.zeros_like(expected)
    for i, block in enumerate(blocks):
        overlapping[i : i + 2, i : i + 2] = block
    apart = (blocks, blocks.permute(1, 2, 0), blocks.permute(1, 0, 2), blocks.flatten(0, 1), torch.cat(list(blocks), 1))
    return any(
        got.shape == found.shape and torch.allclose(got.to(found.dtype), found, atol=1e-3)
        for found in (overlapping, *apart)
    )


def where_blocks_are(evidence: Evidence) -> str:
    """Where the blocks are that are not along the diagonal."""
    if evidence.got.shape == evidence.expected.shape:
        return "The blocks overlap: each begins one row and column after the one before, and the last rows stay empty."
    return f"{sizes(evidence)} These are the blocks, stacked or set next to each other."


def of_rank_one(evidence: Evidence) -> bool:
    """Whether all rows of the matrix are multiples of one row."""
    (_, d), got = evidence.arguments, evidence.got
    if not isinstance(got, Tensor) or got.shape != (d, d) or not got.is_floating_point():
        return False
    sizes_of = torch.linalg.svdvals(got.double())
    return bool(sizes_of[0] > 1e-3 and sizes_of[1] < 1e-4 * sizes_of[0])


def zeros_and_ones(evidence: Evidence) -> bool | None:
    """Whether each row holds one 1 and zeros, so that numbers move without changing. A negative k cannot show it: where
    steps are counted, it is none at all."""
    (k, d), got = evidence.arguments, evidence.got
    if not isinstance(got, Tensor) or got.shape != (d, d):
        return False
    return None if k < 0 else bool(((got == 0) | (got == 1)).all() and (got.sum(-1) == 1).all())


RIGHT = answer("""
    def shift_matrix(k, d):
        M = torch.zeros(d, d)
        for i in range(0, d, 2):
            angle = k / 10000 ** (i / d)
            cos, sin = math.cos(angle), math.sin(angle)
            M[i, i], M[i, i + 1] = cos, -sin
            M[i + 1, i], M[i + 1, i + 1] = sin, cos
        return M
""")
ANGLE, TOP, BOTTOM = (
    "k / 10000 ** (i / d)", "M[i, i], M[i, i + 1] = cos, -sin", "M[i + 1, i], M[i + 1, i + 1] = sin, cos"
)

EXERCISE = Exercise(
    id="shift-matrix", number="07.4", difficulty=3, minutes=20, visible_points=1, hidden_points=3,
    reference=shift_matrix, normalize=in_single_precision, section=ROTATION,
    probes=(
        visible("one position later, d = 4", Case((1, 4)), atol=1e-3),
        visible("three positions later, d = 6", Case((3, 6)), atol=1e-3),
        hidden("one hand", Case((2, 2)), atol=1e-3, announced_by="d: even, 2 or more"),
        hidden("no shift", Case((0, 4)), atol=1e-3, announced_by="0 and negative ones too"),
        hidden("other shifts and widths", some, (2, 9), (2, 7), atol=1e-3, announced_by=PROMISED),
        # Wide enough for an error in the hands after the fourth; "least squares" finds M up to about d = 20.
        hidden("eight hands", Case((7, 16)), atol=1e-3, announced_by="d: even, 2 or more"),
        hidden("a long way", some, (40, 90), (2, 5), atol=1e-3, announced_by=PROMISED),
        hidden("backwards", Case((-2, 6)), atol=1e-3, announced_by="0 and negative ones too"),
        second_call(some, (2, 6), (2, 5), atol=1e-3),
    ),
    omits={
        "a batch of one": "there is no batch",
        "a length of one": "asked as a number: one hand",
        "precision": "no numbers with a fraction go in",
        "repeated items": "there are no items",
    },
    mistakes=(
        mistake("the other way round", RIGHT.but("cos, -sin", "cos, sin").but("= sin, cos", "= -sin, cos"), ROTATION,
            """Your matrix moves *backwards*: it takes the row of t to that of t - k. Either the sign of the sine is
            flipped, or the matrix is meant for the left side (then it is the transpose of the one for the right).""",
            quotes=off_row),
        mistake("one speed for all pairs", RIGHT.but(ANGLE, "k"), SPEEDS,
            """Every pair is rotated by the same angle. Each hand has a speed of its own. (Where // computes the
            exponent, it is 0 for all.)""", quotes=off_row),
        mistake("a speed for every column pair by j", RIGHT.but("(i / d)", "(i / 2 / d)"), SPEEDS,
            "The speeds are those of i / d where 2i / d belongs: i counts pairs, and the even column's number is 2i.",
            quotes=off_row),
        mistake("twice the speeds' exponent", RIGHT.but("(i / d)", "(2 * i / d)"), SPEEDS,
            "The exponent is twice too large: the even column's number *is* 2i.", quotes=off_row),
        mistake("multiplied instead of divided", RIGHT.but("k / 10000", "k * 10000"), SPEEDS,
            "The shift is multiplied by the power of 10,000. Later hands are slower: divide.", quotes=off_row),
        mistake("a mirror", RIGHT.but("cos, -sin", "cos, sin").but("= sin, cos", "= sin, -cos"), ROTATION,
            "Each block mirrors instead of turning: one of its signs is off. A turn by 0 must be the identity.",
            quotes=off_row),
        mistake("both sines positive", RIGHT.but("-sin", "sin"), ROTATION,
            "Both sines have the same sign, so the blocks are not rotations: the lengths of the rows change.",
            quotes=off_row),
        mistake("sine and cosine exchanged", RIGHT.but("cos, sin = math.cos(angle), math.sin(angle)",
                                                    "sin, cos = math.cos(angle), math.sin(angle)"), ROTATION,
            "Sine and cosine are exchanged: with k = 0 nothing may move, so the cosines are on the diagonal.",
            quotes=off_row),
        mistake("halves instead of pairs",
                RIGHT.but(TOP, "j, half = i // 2, d // 2\n        M[j, j], M[j, half + j] = cos, -sin").but(
                    BOTTOM, "M[half + j, j], M[half + j, half + j] = sin, cos"), ROTATION,
            """The blocks connect column i with column i + d/2, as if all sines came first. Here the two of a pair are
            side by side, in columns 2i and 2i + 1.""", quotes=off_row),
        mistake("blocks that overlap", RIGHT.but(TOP, "j = i // 2\n        M[j, j], M[j, j + 1] = cos, -sin").but(
                  BOTTOM, "M[j + 1, j], M[j + 1, j + 1] = sin, cos"), ROTATION,
            """The blocks themselves are right, but not where they are. Pair i takes two rows and two columns of one
            (d, d) matrix, 2i and 2i + 1, so the blocks follow one another along the diagonal, and the rest is 0.""",
            quotes=where_blocks_are, shows=blocks_elsewhere),
        mistake("ones between the pairs", RIGHT.but("torch.zeros(d, d)", "torch.ones(d, d)"), ROTATION,
            "There are ones outside of the blocks, so hands of different speeds are mixed. Outside of the "
            "blocks all is 0.", quotes=off_row),
        mistake("the table's row on the diagonal", RIGHT.but(TOP, "M[i, i] = sin").but(BOTTOM, "M[i + 1, i + 1] = cos"),
                ROTATION,
            """The diagonal holds row k of the table. Multiplied with a row it stretches sines and cosines; to turn a
            hand, each of its two numbers takes from both.""", quotes=off_row),
        mistake("only the diagonal", RIGHT.but("cos, -sin", "cos, 0.0").but("= sin, cos", "= 0.0, cos"), ROTATION,
            "Only the diagonal is filled. A hand that turns mixes its sine and its cosine.", quotes=off_row),
        mistake("one step whatever k", RIGHT.but(ANGLE, "1 / 10000 ** (i / d)"), ROTATION,
            "The matrix is that of one step, whatever k is.", quotes=off_row),
        mistake("forward whatever the sign", RIGHT.but(ANGLE, "abs(k) / 10000 ** (i / d)"), ROTATION,
            "The sign of k is lost: for a negative k your matrix moves *forward*, not back. A negative angle turns "
            "backward by itself.",
            quotes=off_row),
        mistake("the step's matrix times k", RIGHT.but(ANGLE, "1 / 10000 ** (i / d)").but("return M", "return k * M"),
                ROTATION,
            "The matrix of one step was multiplied by k. Going k steps means applying it k times: a power by "
            "matrix products, or one rotation by k times the angle.",
            quotes=off_row),
        mistake("a power of each entry", RIGHT.but(ANGLE, "1 / 10000 ** (i / d)").but("return M", "return M ** k"),
                ROTATION,
            """Each entry of the matrix of one step was raised to the power of k. Going k steps takes a *matrix* power,
            in which rows meet columns: that matrix times itself, again and again. Or use k times the angle at once.""",
            quotes=off_row),
        mistake("only the first pair", RIGHT.but("torch.zeros(d, d)", "torch.eye(d)").but("range(0, d, 2)", "range(1)"),
                ROTATION,
            """Only the first pair is rotated. Each of the d/2 pairs has its own block, with an angle of its own, on the
            diagonal of a (d, d) matrix. (Does a loop over the pairs return too early, or does // cut the slower pairs'
            angles to 0?)""",
            quotes=off_row, shows=first_pair_only),
        mistake("a speed for every column", """
            def shift_matrix(k, d):
                M = torch.zeros(d, d)
                for j in range(d):
                    angle = k / 10000 ** (j / d)
                    M[j, j] = math.cos(angle)
                    if j % 2 == 0:
                        M[j, j + 1] = -math.sin(angle)
                    else:
                        M[j, j - 1] = math.sin(angle)
                return M
        """, SPEEDS,
            """The two rows of a block have different speeds. Columns 2i and 2i + 1 are the two numbers of *one* hand,
            so all four entries of a block share one angle, with the exponent 2i / d.""", quotes=off_row),
        families.BASE_1000(RIGHT.but("10000", "1000"), SPEEDS, quotes=off_row),
        mistake("degrees", RIGHT.but(ANGLE, "math.radians(k / 10000 ** (i / d))"), ROTATION,
            "The angles were taken for degrees; sine and cosine take radians.", quotes=off_row),
        mistake("the identity", RIGHT.but(ANGLE, "0.0"), ROTATION,
            """Where it is wrong, your matrix holds only zeros and ones: it is the identity, or it moves the numbers of
            a row to other columns. The row of t + k holds different numbers, because every hand has turned.""",
            quotes=off_row, shows=zeros_and_ones),
        mistake("fitted to one place", """
            def shift_matrix(k, d):
                speed = 10000 ** (-torch.arange(0, d, 2).double() / d)
                def row(t):
                    return torch.stack([torch.sin(t * speed), torch.cos(t * speed)], -1).flatten()
                a, b = row(0), row(k)
                return torch.outer(a, b / (a @ a)).float()
        """, ROTATION, """Your matrix takes *every* row of the table to a multiple of one and the same row. Was it made
            from one pair of rows, such as those of positions 0 and k? One matrix must take each position t to t +
            k.""", quotes=off_row, shows=of_rank_one),
        mistake("fitted in single precision", """
            def shift_matrix(k, d):
                speed = 10000.0 ** (-torch.arange(0, d, 2) / d)
                def rows(first):
                    angle = (torch.arange(d + 1.0) + first)[:, None] * speed
                    return torch.stack([angle.sin(), angle.cos()], -1).flatten(1)
                return torch.linalg.pinv(rows(0)) @ rows(k)
        """, ROTATION, """Your matrix moves the first rows of a table, but it is not the rotation: it mixes different
            hands. Was it fitted to rows of the table? Fewer than d rows do not determine it, and in single precision
            rounding decides about the blocks of the slow hands, which hardly move. Compute the blocks from the
            angles.""", quotes=off_row, shows=fitted),
    ),
    correct=(
        correct("blocks", RIGHT),
        correct("block_diag", """
            def shift_matrix(k, d):
                blocks = []
                for i in range(d // 2):
                    a = torch.tensor(k / 10000 ** (2 * i / d))
                    blocks.append(torch.stack([torch.stack([a.cos(), -a.sin()]), torch.stack([a.sin(), a.cos()])]))
                return torch.block_diag(*blocks)
        """),
        correct("least squares", """
            def shift_matrix(k, d):
                pos = torch.arange(-200, 400, dtype=torch.float64)[:, None]
                angle = pos / 10000 ** (torch.arange(0, d, 2, dtype=torch.float64) / d)
                pe = torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)
                first = max(0, -k)
                last = len(pe) - max(0, k)
                return torch.linalg.pinv(pe[first:last]) @ pe[first + k:last + k]
        """),
        correct("a power of one step", """
            def shift_matrix(k, d):
                one = torch.zeros(d, d, dtype=torch.float64)
                i = torch.arange(0, d, 2)
                a = (10000.0 ** (-i.double() / d))
                one[i, i] = one[i + 1, i + 1] = a.cos()
                one[i, i + 1], one[i + 1, i] = -a.sin(), a.sin()
                return torch.linalg.matrix_power(one, k).float()
        """),
    ),
    hints=(
        "what does a hand of one speed do when k more words go by?",
        "a (d, d) matrix of d/2 blocks of 2 by 2 along the diagonal, one for each pair of columns.",
        "block i turns by k times the speed of pair i: (cos, -sin) in the sine's row, (sin, cos) in the cosine's row.",
    ),
)  # fmt: skip
