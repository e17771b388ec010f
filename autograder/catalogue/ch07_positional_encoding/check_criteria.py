"""07.3: what makes a good encoding of positions, measured."""

from collections.abc import Callable

import torch
from torch import Tensor

from autograder.catalogue.ch07_positional_encoding.encodings import (
    Encoding,
    constant,
    downward,
    far_and_late,
    laps,
    levels_off,
    logarithm,
    loud_weekdays,
    nearly_weekdays,
    numbered,
    one_number_grows,
    one_row_grows,
    random_table,
    root,
    share_beyond_ten,
    share_of_the_sentence,
    sinusoid,
    small_step,
    weekdays,
)
from autograder.catalogue.ch07_positional_encoding.shared import sections
from autograder.catalogue.exercise import Case, Evidence, Exercise
from autograder.catalogue.known_answers import answer, correct, mistake
from autograder.catalogue.normal_forms import bools
from autograder.catalogue.probes import PROMISED, SECOND_CALL, UNTOUCHED, hidden, visible

CRITERIA, OPTIONS = sections("criteria options")


def check_criteria(fn: Encoding) -> dict[str, bool]:
    """Which of the four criteria an encoding meets."""
    table = fn(50, 8)
    return {
        "unique": _unique(table),
        "consistent": _consistent(fn),
        "bounded": bool(fn(10_000, 8).abs().max() <= 3 * fn(10, 8).abs().max()),
        "deterministic": torch.equal(table, fn(50, 8)),
    }


def _unique(table: Tensor) -> bool:
    apart = (table[:, None] - table[None]).abs().amax(dim=-1)  # (pos, pos)
    return bool((apart + torch.eye(len(table)) > 1e-6).all())


def _consistent(fn: Encoding) -> bool:
    whole = torch.cdist(*[fn(40, 8).double()[None]] * 2)[0]
    tables = [torch.cdist(*[fn(length, 8).double()[None]] * 2)[0] for length in (5, 10, 20)]
    for gap in range(1, 20):
        of_gap = [table.diagonal(gap) for table in (whole, *tables)]
        seen = torch.cat(of_gap)
        if seen.max() - seen.min() > 1e-3:
            return False
    return True


def drawn(g: torch.Generator, make: Callable[[int], Encoding]) -> Case:
    return Case((make(int(torch.randint(1_000, (), generator=g))),))


def as_told(evidence: Evidence) -> str:
    """The criteria whose answer is wrong: the answer and the truth."""
    got, wanted = evidence.got, evidence.expected
    if not isinstance(got, dict):
        return ""
    off = [key for key in wanted if got.get(key) != wanted[key]]
    return (
        f"You said {', '.join(f'{key} = {got.get(key)}' for key in off)}; it is "
        f"{', '.join(str(wanted[key]) for key in off)}."
    )


def option_two_passes(evidence: Evidence) -> bool | None:
    """Whether only "consistent" is wrong, and is True; a function whose distances differ within one sentence too cannot
    show that lengths were not compared."""
    (fn,) = evidence.arguments
    if not _wrongly_consistent(evidence):
        return False
    return True if _consistent(lambda T, d: fn(40, d)[:T]) else None


def shrinking_passes(evidence: Evidence) -> bool:
    """Whether only "consistent" is wrong, and is True, although neighbors are closer from step to step."""
    (fn,) = evidence.arguments
    steps = fn(20, 8).double().diff(dim=0).norm(dim=-1)
    return _wrongly_consistent(evidence) and bool((steps.diff() < 0).all())


def _wrongly_consistent(evidence: Evidence) -> bool:
    got, wanted = evidence.got, evidence.expected
    return isinstance(got, dict) and not wanted["consistent"] and got == wanted | {"consistent": True}


def rows_grow(evidence: Evidence) -> bool | None:
    """Whether a consistent function whose rows get longer is called inconsistent; no other function can show it."""
    if _wrongly_consistent(evidence):
        return None
    return _only(evidence, "consistent") and bool((evidence.arguments[0](20, 8).norm(dim=-1).diff() > 1e-3).all())


def another_length(evidence: Evidence) -> bool:
    """Whether only "deterministic" is wrong, for a function whose rows change with the length."""
    (fn,), got, wanted = evidence.arguments, evidence.got, evidence.expected
    if not isinstance(got, dict) or got != wanted | {"deterministic": False}:
        return False
    return any(not torch.equal(fn(T, 8), fn(T + 10, 8)[:T]) for T in (10, 50))


def only_bounded(evidence: Evidence) -> bool:
    """Whether only "bounded" is wrong."""
    return _only(evidence, "bounded")


def only_deterministic(evidence: Evidence) -> bool:
    """Whether only "deterministic" is wrong."""
    return _only(evidence, "deterministic")


def _only(evidence: Evidence, key: str) -> bool:
    got, wanted = evidence.got, evidence.expected
    return isinstance(got, dict) and isinstance(got.get(key), bool) and got == wanted | {key: not wanted[key]}


RIGHT = answer("""
    def check_criteria(fn):
        table = fn(50, 8)
        again = fn(50, 8)
        apart = (table[:, None] - table[None]).abs().amax(-1)
        same = (apart < 1e-6) & ~torch.eye(50, dtype=torch.bool)
        lengths = (5, 10, 20, 40)
        seen = {}
        for T in lengths:
            rows = fn(T, 8)
            for i in range(T):
                for j in range(i + 1, T):
                    seen.setdefault(j - i, []).append(float((rows[i] - rows[j]).norm()))
        return {
            'unique': not bool(same.any()),
            'consistent': all(max(found) - min(found) < 1e-3 for found in seen.values()),
            'bounded': bool(fn(10000, 8).abs().max() <= 3 * fn(10, 8).abs().max()),
            'deterministic': bool(torch.allclose(table, again)),
        }
""")
BOUNDED = "bool(fn(10000, 8).abs().max() <= 3 * fn(10, 8).abs().max())"
CONSISTENT = "all(max(found) - min(found) < 1e-3 for found in seen.values())"

EXERCISE = Exercise(
    id="check-criteria", number="07.3", difficulty=3, minutes=45, visible_points=2, hidden_points=3,
    reference=check_criteria, normalize=bools, section=CRITERIA,
    probes=(
        visible("the sinusoids", Case((sinusoid,))),
        visible("option 1: the position itself", Case((numbered,))),
        visible("option 2: the fraction of the sentence", Case((share_of_the_sentence,))),
        visible("the same row everywhere", Case((constant,))),
        hidden("another table at each call", drawn, random_table, checks=UNTOUCHED,
               announced_by="two calls with the same T and d agree"),
        hidden("seven positions, then the first again", Case((weekdays,)),
               announced_by="no two of the first 50 rows agree"),
        hidden("the first again, but for the last digits", Case((nearly_weekdays,)),
               announced_by="rows that differ by less than 0.000001 do"),
        hidden("only the 50th row is the first again", Case((laps,)), announced_by="no two of the first 50 rows agree"),
        hidden("the fraction of the sentence, beyond ten words", Case((share_beyond_ten,)),
               announced_by="in sentences of every length, such as 5, 10 and 20"),
        hidden("rows and distances that differ by little", Case((small_step,)), announced_by="up to 0.001"),
        hidden("neighbors alike, others not", Case((far_and_late,)), announced_by="each gap, small or large"),
        hidden("bounded, far from 1", Case((loud_weekdays,)), announced_by="no more than three times that at T = 10"),
        hidden("the position with a minus", Case((downward,)), announced_by="the largest absolute value"),
        hidden("only the last row grows", Case((one_row_grows,)),
               announced_by="the largest absolute value in the table at T = 10,000"),
        hidden("only one number in the middle grows", Case((one_number_grows,)),
               announced_by="the largest absolute value in the table at T = 10,000"),
        hidden("the root of the position", Case((root,)), announced_by="no more than three times that at T = 10"),
        hidden("3.8 times as large in the end", Case((logarithm,)),
               announced_by="no more than three times that at T = 10"),
        hidden("2.7 times as large in the end", Case((levels_off,)),
               announced_by="no more than three times that at T = 10"),
        hidden(SECOND_CALL, Case((far_and_late,), before=(numbered,)), checks=UNTOUCHED, announced_by=PROMISED),
    ),
    omits={
        "a batch of one": "there is no batch",
        "a length of one": "a function goes in, and the answer chooses the lengths",
        "precision": "no numbers go in",
        "falsy values": "no values go in",
        "repeated items": "rows that repeat are what some of the functions return",
    },
    mistakes=(
        mistake("one length only", RIGHT.but("(5, 10, 20, 40)", "(40,)"), OPTIONS,
            """Your function calls an encoding consistent whose steps are all alike in one sentence, and smaller in a
            longer one. (Option 2 is one of these.) Does it compare lengths 5, 10 *and* 20 with each other? If it does,
            perhaps a difference keeps its sign, or a later comparison overwrites an earlier False.""",
            quotes=as_told, shows=option_two_passes),
        mistake("the sign of the difference not taken away",
                RIGHT.but("(5, 10, 20, 40)", "(40, 20, 10, 5)").but("max(found) - min(found)", "max(found) - found[0]"),
                CRITERIA,
            """Your function calls an encoding consistent if its distances shrink, and inconsistent if they grow. Does
            it compare a difference of two distances with its sign? Use the absolute value.""",
            shows=shrinking_passes),
        mistake("the neighbors only", RIGHT.but("range(i + 1, T)", "range(i + 1, min(i + 2, T))"), CRITERIA,
            """One of the encodings keeps the distances of small gaps, but not those of larger gaps later in the
            sentence, and your function calls it consistent. Did you compare only neighbors, only small gaps, or only
            the first starts? Compare the distances of *each* gap, two positions apart, three, and so on, at every
            start.""",
            quotes=as_told),
        mistake("from the first place only", RIGHT.but("for i in range(T):", "for i in range(1):"), CRITERIA,
            """Your function notices when distances change with the length, but not when they differ within one
            sentence. Perhaps it measures them from position 0 only, or compares the rows of two tables. Compare the
            distances of one gap at every start.""", quotes=as_told),
        mistake("all gaps alike", RIGHT.but("seen.setdefault(j - i, [])", "seen.setdefault(0, [])"), CRITERIA,
            """Distances that need not agree were compared. Did you compare those of different gaps, such as 1 and 3? Or
            is one distance computed from all pairs of a gap at once, instead of one for each pair? Only the distances
            of one gap must agree, pair by pair.""", quotes=as_told),
        mistake("growing with the gap", RIGHT.but(CONSISTENT, CONSISTENT + """ and all(
                sum(seen[gap]) / len(seen[gap]) < sum(seen[gap + 1]) / len(seen[gap + 1]) for gap in range(1, 30))"""),
                CRITERIA,
            """You test whether distance grows with the gap. That is a different property, which the sinusoids do not
            have: from position 0, position 4 is nearer than position 3.""", quotes=as_told),
        mistake("equal to the last digit", RIGHT.but("apart < 1e-6", "apart == 0"), CRITERIA,
            "Rows that differ by less than a millionth count as the same. Yours must be equal to the last digit."),
        mistake("distances equal to the last digit",
                RIGHT.but("max(found) - min(found) < 1e-3", "max(found) == min(found)"), CRITERIA,
            """Here the distances of each gap agree to a thousandth, and your code does not accept that. Either it
            requires them to agree to the last digit, which rounding prevents, or it compares something other than
            Euclidean distances of one gap, such as sums of differences (the Manhattan distance), difference vectors, or
            distances in proportion to the gap.""", quotes=as_told),
        mistake("a row compared with itself", RIGHT.but(" & ~torch.eye(50, dtype=torch.bool)", ""), CRITERIA,
            """Your function calls no encoding unique. Perhaps it compares every row with itself too, and finds it
            equal: compare each row with the *others*. Or does it compare single numbers instead of whole rows?""",
            quotes=as_told),
        mistake("rows compared as objects",
                RIGHT.but("not bool(same.any())", "len(set(table)) == len(table)"), CRITERIA,
            """Your function calls every encoding unique, even one whose rows are all the same. Does it compare the
            numbers of the rows? A set compares tensors as objects, and every row is a separate object.""",
            quotes=as_told),
        mistake("neighbors compared for uniqueness",
                RIGHT.but("same = (apart < 1e-6) & ~torch.eye(50, dtype=torch.bool)",
                                                            "same = (apart < 1e-6).diagonal(1)"), CRITERIA,
            """A row that occurs twice was not found. Were only neighbors compared, or only the first few rows? An
            encoding that repeats, as weekdays do, may do so later in the table. Or does a later comparison overwrite an
            earlier False?"""),
        mistake("bounded at ten", RIGHT.but("fn(10000, 8)", "fn(10, 8)"), CRITERIA,
            """Your function calls every encoding bounded. Does it compare tables for T = 10,000 and for T = 10? Nothing
            has grown by position 10, and everything is finite everywhere. (T is the *first* argument of fn: fn(8,
            10000) is a table of only 8 positions.)""", quotes=as_told),
        mistake("bounded by one", RIGHT.but(BOUNDED, "bool(fn(10000, 8).abs().max() <= 1.0 + 1e-6)"), CRITERIA,
            """Bounded was taken for *at most 1*. The numbers of an encoding may be larger and still not grow: compare T
            = 10,000 with T = 10."""),
        mistake("bounded by a large number", RIGHT.but(BOUNDED, "bool(fn(10000, 8).abs().max() <= 1000.0)"), CRITERIA,
            """Bounded was taken for *below some large number*. An encoding that grows slowly passes that: compare T =
            10,000 with T = 10."""),
        mistake("the sign not taken away", RIGHT.but(BOUNDED, BOUNDED.replace(".abs()", "")), CRITERIA,
            """You compared the largest numbers with their signs. An encoding can grow downward, to -9,999, and its
            largest number is 0: compare the largest *absolute* values."""),
        mistake("bounded in the mean", RIGHT.but(BOUNDED, BOUNDED.replace(".max()", ".mean()")), CRITERIA,
            "You compared means, in which one row that grows is lost among ten thousand. Compare the largest absolute "
            "values."),
        mistake("no larger than at ten", RIGHT.but("<= 3 * fn", "<= fn"), CRITERIA,
            """Bounded was taken for *no larger at all than at T = 10*. Random numbers find a slightly larger one among
            ten thousand rows; three times the size at 10 is allowed."""),
        mistake("unique in every column", RIGHT.but("amax(-1)", "amin(-1)"), CRITERIA,
            "Two rows count as the same as soon as one column agrees. They agree when *all* columns do: look at the "
            "largest difference.",
            quotes=as_told),
        mistake("unique by the sum", RIGHT.but("(table[:, None] - table[None]).abs().amax(-1)",
                                             "(table.sum(-1)[:, None] - table.sum(-1)[None]).abs()"), CRITERIA,
            "Only the sums of the rows were compared. Different rows can have the same sum.", quotes=as_told),
        mistake("lengths in place of distances",
                RIGHT.but("float((rows[i] - rows[j]).norm())", "float(rows[i].norm())"),
            CRITERIA, """Your function calls an encoding inconsistent whose rows get longer from position to position.
            Does it compare the *lengths* of the rows, or their dot products? Two rows can be equally long and far
            apart, and the other way round: compare the length of their difference.""", quotes=as_told,
            shows=rows_grow),
        mistake("asked once", RIGHT.but("again = fn(50, 8)", "again = table"), CRITERIA,
            """Two calls return different tables, and your code does not notice. Was a table compared with itself, or
            only a single row? Or is one equal number enough? Call the function twice with the same T and d, and compare
            whole tables: all numbers must agree."""),
        mistake("torch's random state seeded", RIGHT.before("again = fn(50, 8)", "torch.manual_seed(0)"), CRITERIA,
            """All four results are right, but torch's global random state has changed, which all other code uses too: a
            seed was set, or a random number drawn. With a seed before each call, torch.randn would look deterministic.
            Compare two calls without setting a seed."""),
        mistake("asked for other lengths", RIGHT.but("again = fn(50, 8)", "again = fn(60, 8)[:50]"), CRITERIA,
            """Deterministic was taken for *the same in every length*. It means that two equal calls agree; what changes
            with the length is a matter of consistency.""", quotes=as_told, shows=another_length),
        mistake("deterministic and random exchanged",
                RIGHT.but("bool(torch.allclose(table, again))", "not bool(torch.allclose(table, again))"),
                CRITERIA,
            """Only `deterministic` is wrong: True should mean that two equal calls return the same numbers. Is yours
            the opposite, or never True? Two calls return two objects, so compare the numbers in the tables.""",
            quotes=as_told, shows=only_deterministic),
        mistake("unique and repeated exchanged", RIGHT.but("not bool(same.any())", "bool(same.any())"), CRITERIA,
            "Your `unique` is the opposite: True should mean that no two positions share a row.", quotes=as_told),
        mistake("bounded and growing exchanged", RIGHT.but("<= 3 * fn", "> 3 * fn"), CRITERIA,
            "Your `bounded` is the opposite: True should mean that the numbers do *not* grow beyond three times those "
            "at T = 10.", quotes=as_told),
        mistake("consistent and inconsistent exchanged", RIGHT.but(CONSISTENT, f"not {CONSISTENT}"), CRITERIA,
            "Your `consistent` is the opposite: True should mean that all distances of each gap agree.",
            quotes=as_told),
        mistake("numbers instead of yes and no",
                RIGHT.but("bool(torch.allclose(table, again))", "float((table - again).abs().max() > 0)"), CRITERIA,
            "A number came back. Each of the four is True or False."),
        mistake("another name", RIGHT.but("'unique'", "'uniqueness'"), CRITERIA,
            "The four keys are unique, consistent, bounded and deterministic."),
        mistake("bounded at other lengths", RIGHT.but("fn(10000, 8)", "fn(100, 8)"), CRITERIA,
            """Only `bounded` is wrong. Does it compare exactly T = 10,000 with T = 10, and the largest absolute values
            of the whole tables? Up to three times the value at T = 10 counts as bounded; anything larger does
            not.""",
            shows=only_bounded),
    ),
    correct=(
        correct("loops", RIGHT),
        correct("tensors of one bool", RIGHT.but("not bool(same.any())", "~same.any()").but(
            CONSISTENT, f"torch.tensor({CONSISTENT})").but(BOUNDED, BOUNDED.removeprefix("bool(").removesuffix(")"))),
        correct("cdist", """
            def check_criteria(fn):
                def distances(T):
                    rows = fn(T, 16).double()
                    return (rows[:, None] - rows[None]).pow(2).sum(-1).sqrt()

                base = distances(50)
                consistent = True
                for T in (6, 11, 50):
                    table = distances(T)
                    for gap in range(1, T):
                        line = torch.diagonal(table, gap)
                        consistent &= bool(((line - base[0, gap]).abs() < 1e-3).all())
                close = (base < 1e-6) & ~torch.eye(50, dtype=torch.bool)
                small, large = fn(10, 16).abs().max().item(), fn(10_000, 16).abs().max().item()
                return dict(unique=not close.any().item(), consistent=consistent, bounded=large <= 3 * small,
                            deterministic=torch.equal(fn(12, 16), fn(12, 16)))
        """),
        correct("rows rounded", """
            def check_criteria(fn):
                rows = fn(60, 6)
                keys = {tuple(round(v, 5) for v in row) for row in rows.tolist()}
                result = {'unique': len(keys) == len(rows)}
                result['deterministic'] = (fn(60, 6) - rows).abs().max().item() == 0
                result['bounded'] = fn(10000, 6).abs().max().item() <= 3 * fn(10, 6).abs().max().item()
                gaps = {}
                for T in (5, 10, 60):
                    p = fn(T, 6).tolist()
                    for i in range(T):
                        for g in range(1, T - i):
                            gaps.setdefault(g, set()).add(round(math.dist(p[i], p[i + g]), 5))
                result['consistent'] = all(max(s) - min(s) < 0.001 for s in gaps.values())
                return result
        """),
    ),
    hints=(
        "what would have to happen for each of the four to be False? Make the function show it.",
        "fn(T, d) is (T, d): compare its rows with each other, with those of another T, and with a second call.",
        "unique: all pairs of rows; consistent: for each gap, the distances at every start and in lengths 5, 10 and "
        "20; bounded: T = 10,000 against 10; deterministic: twice.",
    ),
)  # fmt: skip
