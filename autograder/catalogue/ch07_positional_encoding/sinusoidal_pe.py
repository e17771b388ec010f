"""07.1: the position of a word, as clock hands of many speeds."""

import torch
from torch import Tensor

from autograder.catalogue import families
from autograder.catalogue.ch07_positional_encoding.shared import in_single_precision, off_row, row_zero, sections
from autograder.catalogue.exercise import Case, Evidence, Exercise
from autograder.catalogue.known_answers import answer, correct, mistake
from autograder.catalogue.probes import PROMISED, hidden, second_call, visible
from transformer_ref.model.positional_encoding import sinusoidal_table

TABLE, SPEEDS, DISTANCE = sections("table speeds distance")


def sinusoidal_pe(T: int, d: int) -> Tensor:
    """Sine and cosine of pos / 10000^(2i/d), interleaved, (T, d)."""
    return sinusoidal_table(T, d)


def some(g: torch.Generator, lengths: tuple[int, int], halves: tuple[int, int], odd: int = 0) -> Case:
    """A table whose length and width are drawn from ranges; the width is twice a number, and one more if `odd`."""
    length, half = (int(torch.randint(*ends, (), generator=g)) for ends in (lengths, halves))
    return Case((length, 2 * half + odd))


RIGHT = answer("""
    def sinusoidal_pe(T, d):
        pos = torch.arange(T).float()[:, None]
        two_i = torch.arange(0, d, 2).float()
        angle = pos / 10000 ** (two_i / d)
        table = torch.zeros(T, d)
        table[:, 0::2] = torch.sin(angle)
        table[:, 1::2] = torch.cos(angle)[:, : d // 2]
        return table
""")
PAIRS, ANGLE = "two_i = torch.arange(0, d, 2).float()", "pos / 10000 ** (two_i / d)"
SINE, COSINE = "table[:, 0::2] = torch.sin(angle)", "table[:, 1::2] = torch.cos(angle)[:, : d // 2]"
EACH = "torch.arange(d)"


def column_by_column(exponent: str) -> str:
    """The table with a different angle for every column j."""
    return RIGHT.but(PAIRS, "j = torch.arange(d).float()").but(ANGLE, f"pos / 10000 ** ({exponent})").but(
        SINE, "table[:, 0::2] = torch.sin(angle[:, 0::2])").but(COSINE, "table[:, 1::2] = torch.cos(angle[:, 1::2])")


def multiplied(evidence: Evidence) -> bool:
    """Whether the position was multiplied by the power: seen at small angles, since large ones are noise in float32."""
    T, d = evidence.arguments
    if not isinstance(evidence.got, Tensor) or evidence.got.shape != (T, d):
        return False
    column = torch.arange(d)
    angle = torch.arange(T).double()[:, None] * 10_000 ** (column // 2 * 2 / d).double()
    far, sure = torch.where(column % 2 == 0, angle.sin(), angle.cos()), angle < 1_000
    got, expected = (table.double() for table in (evidence.got, evidence.expected))
    return torch.allclose(got[sure], far[sure], atol=1e-2) and not torch.allclose(got[sure], expected[sure], atol=1e-2)


def power_first(evidence: Evidence) -> bool:
    """Whether the exponent lost its second part: pos / (10000 ** 2 * i / d) or pos / (10000 ** i / d), with or without
    these brackets, where i counts pairs or columns."""
    T, d = evidence.arguments
    if not isinstance(evidence.got, Tensor) or evidence.got.shape != (T, d):
        return False
    pos, column = torch.arange(T).double()[:, None], torch.arange(d)
    pair = (column // 2).double()
    angles = []
    for i in (pair, 2 * pair):
        angles += [pos / (1e8 * i / d), pos / 1e8 * i / d, pos / (10_000.0**i / d), pos / 10_000.0**i / d]
    for angle in angles:
        table = torch.where(column % 2 == 0, angle.sin(), angle.cos())
        near = (evidence.got.double() - table).abs() <= 1e-5 * angle.abs() + 1e-6
        if bool((near | (evidence.got.isnan() & table.isnan())).all()):
            return True
    return False


def rounded(evidence: Evidence) -> bool | None:
    """Whether each angle is right to two or three digits, and some are not right to five."""
    T, d = evidence.arguments
    if not isinstance(evidence.got, Tensor) or evidence.got.shape != (T, d):
        return False
    apart = (evidence.got.double() - evidence.expected.double()).abs()
    angle = torch.arange(T)[:, None] / 10_000 ** (torch.arange(d) // 2 * 2 / d)
    return bool((apart <= angle / 128 + 1e-6).all())


def without_last_sine(evidence: Evidence) -> bool:
    """Whether the last column of an odd d is left out or holds zeros."""
    (T, d), got, expected = evidence.arguments, evidence.got, evidence.expected
    if not isinstance(got, Tensor) or d % 2 == 0 or got.shape not in ((T, d), (T, d - 1)):
        return False
    before = torch.allclose(got[:, : d - 1].double(), expected[:, : d - 1].double(), atol=2e-3)
    return before and not got[:, d - 1 :].any()


def over_length(evidence: Evidence) -> bool:
    """Whether the positions were divided by the length, or by one less."""
    T, d = evidence.arguments
    if not isinstance(evidence.got, Tensor) or evidence.got.shape != (T, d):
        return False
    column = torch.arange(d)
    for length in (T, max(T - 1, 1)):
        angle = torch.arange(T).double()[:, None] / length / 10_000 ** (column // 2 * 2 / d)
        if torch.allclose(evidence.got.double(), torch.where(column % 2 == 0, angle.sin(), angle.cos()), atol=1e-4):
            return True
    return False


EXERCISE = Exercise(
    id="sinusoidal-pe", number="07.1", difficulty=2, minutes=25, visible_points=2, hidden_points=5,
    reference=sinusoidal_pe, normalize=in_single_precision, section=TABLE,
    probes=(
        visible("three positions, d = 4", Case((3, 4))),
        visible("six positions, d = 10", Case((6, 10))),
        hidden("50 positions, d = 16", Case((50, 16)), announced_by=PROMISED),
        hidden("other sizes", some, (7, 30), (2, 12), announced_by=PROMISED),
        hidden("an odd d", Case((5, 7)), announced_by="even or odd"),
        hidden("an odd d, drawn", some, (4, 20), (2, 9), odd=1, announced_by="even or odd"),
        # Longer than the usual limits of 1,000 and 2,048. float32 angles near 2,000 are known to about 0.0002, in some
        # spellings less exactly.
        hidden("a long table", some, (2_050, 2_400), (2, 5), atol=2e-3, announced_by="there may be thousands"),
        hidden("d = 1", Case((6, 1)), announced_by="number of columns, 1 or more"),
        hidden("d = 2", Case((6, 2)), announced_by="number of columns, 1 or more"),
        hidden("one position", Case((1, 7)), announced_by="number of positions, 1 or more"),
        second_call(some, (4, 9), (2, 9)),
    ),
    omits={
        "a batch of one": "there is no batch",
        "a length of one": "asked as a number: one position, one column",
        "precision": "no numbers with a fraction go in",
        "falsy values": "both numbers are 1 at least",
        "repeated items": "there are no items",
    },
    mistakes=(
        mistake("sines first, cosines after", RIGHT.but(SINE, "table[:, : (d + 1) // 2] = torch.sin(angle)").but(
                  COSINE, "table[:, (d + 1) // 2 :] = torch.cos(angle)[:, : d // 2]"), TABLE,
            """All sines come first and all cosines after them. They should take turns: a sine and a cosine of the
            first speed, then of the second. (Some libraries store it your way; it is the same information in another
            order.)""", quotes=row_zero),
        mistake("positions from 1", RIGHT.but("torch.arange(T)", "torch.arange(1, T + 1)"), TABLE,
            "Positions begin at 0 here, as everything in Python. Yours begin at 1.", quotes=row_zero),
        mistake("sine and cosine exchanged",
                RIGHT.but("torch.sin", "torch.cos").but(COSINE, "table[:, 1::2] = torch.sin(angle)[:, : d // 2]"),
            TABLE, "Sine and cosine are exchanged: the even columns hold the sines.", quotes=row_zero),
        mistake("a speed for every column", column_by_column("j / d"), SPEEDS,
            """Every column has a speed of its own. Columns 2i and 2i + 1 are the two numbers of *one* hand, so they
            share one speed: i counts pairs, not columns.""", quotes=off_row),
        mistake("twice the column", column_by_column("2 * j / d"), SPEEDS,
            """The exponent is twice the column's number over d. But 2i *is* the even column's number: i counts pairs.
            Column 1 turns far too slowly.""", quotes=off_row),
        mistake("twice the even column", RIGHT.but("(two_i / d)", "(2 * two_i / d)"), SPEEDS,
            """The exponent is doubled once too often: if your i runs over 0, 2, 4, ..., it is the 2i of the formula
            already.""",
            quotes=off_row),
        mistake("whole division", RIGHT.but("(two_i / d)", "(two_i // d)"), SPEEDS,
            """All hands have the same speed, 1. Each pair has a speed of its own. (// cuts the exponent to a whole
            number, which is 0 in every column: divide with /.)""",
            quotes=off_row),
        mistake("i instead of 2i", RIGHT.but("(two_i / d)", "(two_i / 2 / d)"), SPEEDS,
            """The exponent is i / d where it should be 2i / d, so the slowest hands are far too fast: they run only to
            the root of 10,000.""", quotes=off_row),
        mistake("i over d - 1 pairs", RIGHT.but("(two_i / d)", "(two_i / max(d - 2, 1))"), SPEEDS,
            """Your slowest speed is exactly 1/10,000: the exponents reach 1. By the paper's formula they run up to (d -
            2)/d, just short of it.""", quotes=off_row),
        families.BASE_1000(RIGHT.but("10000", "1000"), SPEEDS, quotes=off_row),
        mistake("base 100,000", RIGHT.but("10000", "100000"), SPEEDS, "The base is 10,000; yours is 100,000.",
                quotes=off_row),
        mistake("multiplied instead of divided", RIGHT.but("pos / 10000", "pos * 10000"), SPEEDS,
            """Positions are multiplied by the power, so the later hands spin thousands of times between two words, and
            what is left of them is noise. Divide.""", quotes=off_row, shows=multiplied),
        mistake("the power before the product", RIGHT.but(ANGLE, "pos / (10000 ** 2 * (two_i / 2) / d)"), SPEEDS,
            """Python computes the power first: in 10000 ** i / d only i is the exponent, and in 10000 ** 2 * i / d only
            2; what follows then multiplies or divides the power. Put the whole exponent in brackets.""",
            quotes=off_row, shows=power_first),
        mistake("pairs from 1", RIGHT.but(PAIRS, "two_i = torch.arange(0, d, 2).float() + 2"), SPEEDS,
            "The pairs are counted from 1. The first hand has i = 0 and the speed 1: sin 1 and cos 1 are in row 1.",
            quotes=off_row),
        mistake("an odd d rounded up", RIGHT.but("(two_i / d)", "(two_i / (d + d % 2))"), SPEEDS,
            "For an odd d the exponent divides by d + 1 in your table. The formula divides by d, odd or even."),
        mistake("whole positions over the power", RIGHT.but("pos / 10000", "pos // 10000"), SPEEDS,
            "// cuts the angles to whole numbers, so the slow hands do not move. Divide with /.", quotes=off_row),
        mistake("angles in half precision", RIGHT.but("torch.sin(angle)", "torch.sin(angle.half().float())").but(
            "torch.cos(angle)", "torch.cos(angle.half().float())"), TABLE,
            """Your angles are only roughly right. Half precision (float16 or bfloat16) keeps about three digits, too
            few for the angles of later positions. Compute them in float32 or float64.""",
            quotes=off_row, shows=rounded),
        mistake("power of e", RIGHT.but(ANGLE, "pos * torch.exp(-two_i / d)"), SPEEDS,
            "The base 10,000 is missing: your speeds are powers of e. In log space it is exp(-(2i/d) * log(10000)).",
            quotes=off_row),
        mistake("logarithm to base 10", RIGHT.but(ANGLE, "pos * torch.exp(-two_i / d * math.log10(10000))"), SPEEDS,
            "The exponential belongs to the natural logarithm; yours is that to base 10, so the speeds come out wrong.",
            quotes=off_row),
        mistake("odd d stops", RIGHT.but("torch.cos(angle)[:, : d // 2]", "torch.cos(angle)"), TABLE,
            "For an odd d your code stops: there is one sine more than cosines."),
        mistake("a cosine for the last sine of an odd d", """
            def sinusoidal_pe(T, d):
                table = torch.zeros(T, d)
                for pos in range(T):
                    for j in range(0, d, 2):
                        angle = pos / 10000 ** (j / d)
                        table[pos, j] = math.sin(angle)
                        table[pos, j + 1] = math.cos(angle)
                return table
        """, TABLE,
            """For an odd d your code stops: the last column holds a sine, and there is no column after it for a
            cosine."""),
        mistake("as many pairs as columns", """
            def sinusoidal_pe(T, d):
                table = torch.zeros(T, d)
                pos = torch.arange(T)
                for i in range(d):
                    angle = pos / 10000 ** (2 * i / d)
                    table[:, 2 * i] = torch.sin(angle)
                    table[:, 2 * i + 1] = torch.cos(angle)
                return table
        """, SPEEDS,
            """Your code stops at a column that the table does not have. If i counts pairs, its columns are 2i and
            2i + 1, so there are only half as many pairs as columns; for an odd d the last pair has only a sine."""),
        mistake("position and pair exchanged", """
            def sinusoidal_pe(T, d):
                table = torch.zeros(T, d)
                for i in range(T):
                    for pos in range(d):
                        angle = pos / 10000 ** (2 * i / d)
                        table[i, pos] = math.sin(angle) if pos % 2 == 0 else math.cos(angle)
                return table
        """, TABLE,
            """Position and pair are exchanged: each of your angles is the number of the column, divided by a power that
            has the number of the row in its exponent. The position is the row; i counts the pairs of columns.""",
            quotes=row_zero),
        mistake("odd d loses a column",
                RIGHT.but("table = torch.zeros(T, d)", "d = d // 2 * 2\n").but(PAIRS,
                    "two_i = torch.arange(0, d // 2 * 2, 2).float()").but(
                  SINE, "table = torch.zeros(T, d)").but(COSINE, """
                  table[:, 0::2] = torch.sin(angle)
                  table[:, 1::2] = torch.cos(angle)
            """), TABLE, "For an odd d the last column is missing, or it was never filled: it holds a sine, and has no "
                         "cosine after it.", shows=without_last_sine),
        mistake("degrees", RIGHT.but("torch.sin(angle)", "torch.sin(torch.deg2rad(angle))").but("torch.cos(angle)",
            "torch.cos(torch.deg2rad(angle))"),
            TABLE, "The angles were taken for degrees. torch.sin and torch.cos take radians: position 1 turns the "
                   "first hand by 1, not by 1/57.",
            quotes=off_row),
        mistake("turns", RIGHT.but("pos / 10000", "2 * math.pi * pos / 10000"), SPEEDS,
            """The angles are 2 pi times too large: the first hand makes a whole turn between two words, so it never
            seems to move.""",
            quotes=off_row),
        mistake("position over the length",
                RIGHT.but("torch.arange(T).float()", "(torch.arange(T).float() / max(T - 1, 1))"), DISTANCE,
            """Positions were divided by the length, so position 2 gets a different row in each length. The position
            itself turns the hands.""", quotes=off_row, shows=over_length),
        mistake("sines alone", RIGHT.but(COSINE, "table[:, 1::2] = torch.sin(angle)[:, : d // 2]"), TABLE,
            "Both columns of a pair hold the sine. A hand needs two numbers, or its direction is unknown.",
            quotes=row_zero),
        mistake("rows and columns exchanged", RIGHT.but("return table", "return table.T"), TABLE,
            "The table is transposed: one row a position, (T, d)."),
        mistake("a batch axis", RIGHT.but("return table", "return table[None]"), TABLE,
            "There is an axis too many. The table is the same for every sentence: (T, d)."),
        mistake("whole numbers", RIGHT.but("10000 ** (two_i / d)", "(10000 ** (two_i / d)).long()"), SPEEDS,
            "The speeds' divisors were cut to whole numbers.", quotes=off_row),
        mistake("fast hands last", RIGHT.but("(two_i / d)", "((d - 2 + d % 2 - two_i) / d)"), SPEEDS,
            "The order of the speeds is reversed: the first pair turns fastest, by 1 from word to word.",
            quotes=off_row),
    ),
    correct=(
        correct("interleaved", RIGHT),
        correct("log space", """
            def sinusoidal_pe(T, d):
                speed = torch.exp(torch.arange(0, d, 2) * (-math.log(10000.0) / d))
                angle = torch.outer(torch.arange(T, dtype=torch.float32), speed)
                return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)[:, :d]
        """),
        correct("double loop", """
            def sinusoidal_pe(T, d):
                rows = []
                for pos in range(T):
                    row = []
                    for column in range(d):
                        angle = pos / math.pow(10000, (column - column % 2) / d)
                        row.append(math.sin(angle) if column % 2 == 0 else math.cos(angle))
                    rows.append(row)
                return torch.tensor(rows)
        """),
        correct("complex numbers, float64", """
            def sinusoidal_pe(T, d):
                i = torch.arange((d + 1) // 2, dtype=torch.float64)
                pos = torch.arange(T, dtype=torch.float64)
                hand = torch.polar(torch.ones(T, len(i), dtype=torch.float64), pos[:, None] * 10000 ** (-2 * i / d))
                return torch.stack([hand.imag, hand.real], dim=2).reshape(T, -1)[:, :d]
        """),
        correct("where", """
            def sinusoidal_pe(T, d):
                column = torch.arange(d)
                angle = torch.arange(T)[:, None] / torch.pow(10000.0, (column - column % 2) / d)
                return torch.where(column % 2 == 0, angle.sin(), angle.cos())
        """),
    ),
    hints=(
        "how many speeds are there for d columns? And which columns share one?",
        "positions (T, 1) and speeds (pairs,) give angles (T, pairs); sines go to the even columns, cosines to the "
        "odd ones.",
        "for each pair i: angle = position / 10000 to the power 2i/d; column 2i its sine, column 2i + 1 its cosine, "
        "if there is one.",
    ),
)  # fmt: skip
