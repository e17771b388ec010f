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
    """The criteria whose answer is wrong: the answer, the truth, and for the first two the numbers that decide it."""
    (fn,), got, wanted = evidence.arguments, evidence.got, evidence.expected
    if not isinstance(got, dict):
        return ""
    off = [key for key in wanted if isinstance(got.get(key), bool) and got[key] != wanted[key]]
    told = [f"You said {key} = {got[key]}; it is {wanted[key]}: {FACTS[key](fn)}." for key in off[:2]]
    return " ".join([*told, *(f"{key} is wrong, too." for key in off[2:])])


def about_rows(fn: Encoding) -> str:
    table = fn(50, 8)
    same = (table[:, None] - table[None]).abs().amax(dim=-1).add(torch.eye(50)) <= 1e-6  # (pos, pos)
    if not same.any():
        return "no two of the first 50 rows agree"
    first, second = sorted(same.nonzero()[0].tolist())
    return f"rows {first} and {second} agree"


def about_distances(fn: Encoding) -> str:
    """A gap whose distances differ, or the distances of two gaps."""
    tables = [torch.cdist(*[fn(length, 8).double()[None]] * 2)[0] for length in (5, 10, 20, 40)]
    for gap in range(1, 20):
        seen = torch.cat([table.diagonal(gap) for table in tables])
        if seen.max() - seen.min() > 1e-3:
            return f"two rows {gap} apart can have the distance {_number(seen.min())} or {_number(seen.max())} (d = 8)"
    three, four = (_number(tables[0][0, gap]) for gap in (3, 4))
    return f"all rows 3 apart have the distance {three}, and all rows 4 apart {four} (d = 8)"


def about_size(fn: Encoding) -> str:
    small, large = (_number(fn(T, 8).abs().max()) for T in (10, 10_000))
    return f"the largest absolute value is {small} at T = 10 and {large} at T = 10,000"


def about_calls(fn: Encoding) -> str:
    return f"two calls return {'the same table' if torch.equal(fn(50, 8), fn(50, 8)) else 'different tables'}"


def _number(value: Tensor) -> str:
    return f"{value.item():,.4g}" if value < 1_000 else f"{value.item():,.0f}"


FACTS = {"unique": about_rows, "consistent": about_distances, "bounded": about_size, "deterministic": about_calls}


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


WIDTHS = (8, 2, 4, 6, 10, 12, 16, 32, 64)


def bounded_or_d_first(evidence: Evidence) -> bool:
    """Whether only "bounded" is wrong, or all is as where every call exchanges T and d, so that nothing grows."""
    return _only(evidence, "bounded") or _as_d_first(evidence)


def told_or_d_first(evidence: Evidence) -> str:
    if not _only(evidence, "bounded") and _as_d_first(evidence):
        return "Your result is that of calls with d first, such as fn(8, 50), which is a table of 8 rows."
    return as_told(evidence)


def _as_d_first(evidence: Evidence) -> bool:
    (fn,), got = evidence.arguments, evidence.got
    return isinstance(got, dict) and got.get("bounded") is True and any(_d_first(fn, d) == got for d in WIDTHS)


def _d_first(fn: Encoding, d: int) -> dict[str, bool]:
    """The result of a function that writes fn(d, T): its tables have d rows, and T columns."""
    tables = [torch.cdist(*[fn(d, length).double()[None]] * 2)[0] for length in (5, 10, 20)]
    of_gaps = [torch.cat([table.diagonal(gap) for table in tables]) for gap in range(1, d)]
    return {
        "unique": _unique(fn(d, 50)),
        "consistent": all(bool(seen.max() - seen.min() <= 1e-3) for seen in of_gaps),
        "bounded": bool(fn(d, 10_000).abs().max() <= 3 * fn(d, 10).abs().max()),
        "deterministic": torch.equal(fn(d, 50), fn(d, 50)),
    }


def wrongly_random(evidence: Evidence) -> bool:
    """Whether "deterministic" is wrong, and perhaps others."""
    got, wanted = evidence.got, evidence.expected
    return isinstance(got, dict) and got.get("deterministic") is (not wanted["deterministic"])


def repeats_missed(evidence: Evidence) -> bool:
    """Whether only "unique" is wrong, and is True."""
    return _only(evidence, "unique") and evidence.got["unique"]


def repeats_imagined(evidence: Evidence) -> bool | None:
    """Whether only "unique" is wrong, and is False; one that is wrongly True cannot show it."""
    return None if repeats_missed(evidence) else _only(evidence, "unique")


def wrongly_inconsistent(evidence: Evidence) -> bool | None:
    """Whether only "consistent" is wrong, and is False; one that is wrongly True cannot show it."""
    return None if _wrongly_consistent(evidence) else _only(evidence, "consistent")


def not_bools(evidence: Evidence) -> bool:
    """Whether one of the four values is neither True nor False."""
    got = evidence.got
    return isinstance(got, dict) and any(not isinstance(got.get(key, True), bool) for key in evidence.expected)


def other_names(evidence: Evidence) -> bool:
    """Whether a dictionary has other keys."""
    return isinstance(evidence.got, dict) and set(evidence.got) != set(evidence.expected)


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
            sentence, and your function calls it consistent. Did you compare only neighbors, only small gaps, only the
            first starts, or means, in which differences are lost? Compare the distances of *each* gap, two positions
            apart, three, and so on, at every start.""",
            quotes=as_told),
        mistake("from the first place only", RIGHT.but("for i in range(T):", "for i in range(1):"), CRITERIA,
            """Your function notices when distances change with the length, but not when they differ within one
            sentence. Perhaps it measures them from position 0 only, or compares the rows of two tables. Compare the
            distances of one gap at every start.""", quotes=as_told),
        mistake("all gaps alike", RIGHT.but("seen.setdefault(j - i, [])", "seen.setdefault(0, [])"), CRITERIA,
            """Distances that need not agree were compared. Did you compare those of different gaps, such as 1 and 3? Or
            is one distance computed from all pairs of a gap at once, instead of one for each pair? Only the distances
            of one gap must agree, pair by pair.""", quotes=as_told),
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
            numbers of the rows? A set compares tensors as objects, and every row is a separate object. Or is it enough
            that some two rows differ? All pairs must.""",
            quotes=as_told),
        mistake("bounded at ten", RIGHT.but("fn(10000, 8)", "fn(10, 8)"), CRITERIA,
            """Your function calls every encoding bounded. Does it compare tables for T = 10,000 and for T = 10? Nothing
            has grown by position 10, everything is finite everywhere, and a small number divided by a large one stays
            small. (T is the *first* argument of fn: fn(8, 10000) is a table of only 8 positions.)""", quotes=as_told),
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
        mistake("lengths in place of distances",
                RIGHT.but("float((rows[i] - rows[j]).norm())", "float(rows[i].norm())"),
            CRITERIA, """Your function calls an encoding inconsistent whose rows get longer from position to position.
            Does it compare the *lengths* of the rows, their dot products or the angles between them? Two rows can be
            equally long and far apart, and the other way round: compare the length of their difference.""",
            quotes=as_told, shows=rows_grow),
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
            """`deterministic` should be True where two equal calls return the same numbers. Is yours the opposite, or
            never True? Two calls return two objects, so compare the numbers in the tables.""",
            quotes=as_told, shows=wrongly_random),
        mistake("unique and repeated exchanged", RIGHT.but("not bool(same.any())", "bool(same.any())"), CRITERIA,
            "Your `unique` is the opposite: True should mean that no two positions share a row.", quotes=as_told),
        mistake("bounded and growing exchanged", RIGHT.but("<= 3 * fn", "> 3 * fn"), CRITERIA,
            "Your `bounded` is the opposite: True should mean that the numbers do *not* grow beyond three times those "
            "at T = 10.", quotes=as_told),
        mistake("consistent and inconsistent exchanged", RIGHT.but(CONSISTENT, f"not {CONSISTENT}"), CRITERIA,
            "Your `consistent` is the opposite: True should mean that all distances of each gap agree.",
            quotes=as_told),
        mistake("unique by the sum", RIGHT.but("(table[:, None] - table[None]).abs().amax(-1)",
                                             "(table.sum(-1)[:, None] - table.sum(-1)[None]).abs()"), CRITERIA,
            """Your function does not call an encoding unique whose first 50 rows all differ. Are whole rows compared,
            entry by entry? Different rows can have the same sum, the same length or some equal entries. And two rows
            that differ by 0.000001 or more in one entry are different.""",
            quotes=as_told, shows=repeats_imagined),
        mistake("neighbors compared for uniqueness",
                RIGHT.but("same = (apart < 1e-6) & ~torch.eye(50, dtype=torch.bool)",
                                                            "same = (apart < 1e-6).diagonal(1)"), CRITERIA,
            """Two of the first 50 rows agree, and your function does not notice. Were only neighbors compared, or only
            the first few rows? An encoding that repeats, as weekdays do, may do so later in the table. Or does a later
            comparison overwrite an earlier False?""", quotes=as_told, shows=repeats_missed),
        mistake("growing with the gap", RIGHT.but(CONSISTENT, CONSISTENT + """ and all(
                sum(seen[gap]) / len(seen[gap]) < sum(seen[gap + 1]) / len(seen[gap + 1]) for gap in range(1, 30))"""),
                CRITERIA,
            """Your function calls an encoding inconsistent in which all pairs of rows with the same gap are equally far
            apart. No more is required. Do you also require that distance grows with the gap, or in proportion to it?
            (That of the sinusoids does not: from position 0, position 4 is nearer than position 3.) Or do you compare
            something other than the Euclidean distance of two rows, such as its square, their dot product, their
            difference vector or the sum of its entries? Or distances of different gaps, or for different d?""",
            quotes=as_told, shows=wrongly_inconsistent),
        mistake("numbers instead of yes and no",
                RIGHT.but("bool(torch.allclose(table, again))", "float((table - again).abs().max() > 0)"), CRITERIA,
            """A value is neither True nor False. Each of the four must be one bool, not a number, a text, a tensor with
            many entries or None. (== compares two tensors entry by entry; a criterion needs one answer for all entries
            together. And a function that ends without `return` gives None.)""", shows=not_bools),
        mistake("another name", RIGHT.but("'unique'", "'uniqueness'"), CRITERIA,
            "The four keys are unique, consistent, bounded and deterministic.", shows=other_names),
        mistake("bounded at other lengths", RIGHT.but("fn(10000, 8)", "fn(100, 8)"), CRITERIA,
            """Does `bounded` compare the largest absolute values of the whole tables for T = 10,000 and T = 10? The
            limit is three times the value at T = 10: up to that counts as bounded, anything larger does not. (T is the
            first argument of fn: fn(8, 10000) has only 8 rows.)""", quotes=told_or_d_first, shows=bounded_or_d_first),
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
