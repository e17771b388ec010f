"""00.4: where a sentence ends."""

from dataclasses import replace

import torch
from torch import Tensor

from autograder.catalogue.ch00_start_here.shared import is_list, plain, sections
from autograder.catalogue.exercise import Case, Evidence, Exercise
from autograder.catalogue.families import usual_mistakes
from autograder.catalogue.known_answers import answer, correct, mistake
from autograder.catalogue.probes import hidden, turned, usual_probes, visible
from autograder.catalogue.quotes import sizes

CONTRACT, SHAPE, TRUE = sections("contract shape true")
MASK = torch.tensor([
    [False, False, True, False, True],
    [False, False, False, False, False],
    [True, True, False, True, False],
])


def first_true(mask: Tensor) -> Tensor:
    """How many entries are before the first True of each row: its index, or T when there is none."""
    return (mask.cumsum(dim=1) == 0).sum(dim=1)


def masks(g: torch.Generator, B: int, T: int, transposed: bool = False) -> Case:
    """Random booleans, with a row without any True, a row of True, and a row with True only at the end."""
    mask = torch.rand(B, T, generator=g) < 0.3
    for i, line in enumerate((torch.zeros(T), torch.ones(T), torch.arange(T) == T - 1)[: max(B - 2, 0)]):
        mask[i] = line.bool()
    mask = mask[torch.randperm(B, generator=g)]
    return Case((turned(mask) if transposed else mask,))


def one_row(g: torch.Generator) -> Case:
    return Case((torch.arange(7)[None] >= torch.randint(1, 6, (), generator=g),))


def one_column(g: torch.Generator) -> Case:
    return Case((torch.tensor([[True], [False], [True]])[torch.randperm(3, generator=g)],))


def as_many_before(g: torch.Generator, B: int, T: int) -> Case:
    """A call after one with as many Trues elsewhere: the same rows, reversed."""
    case = masks(g, B, T)
    return replace(case, before=(case.arguments[0].flip(1),))


def answers(evidence: Evidence) -> str:
    if not isinstance(evidence.got, Tensor):
        return ""
    if tuple(evidence.got.shape) != tuple(evidence.expected.shape):
        return sizes(evidence)
    return f"You returned {plain(evidence.got)}; by hand it is {plain(evidence.expected)}."


def gives_0_for_none(evidence: Evidence) -> bool:
    """Whether all is right except that rows without a True give 0, wherever that comes from."""
    (mask,) = evidence.arguments
    return torch.equal(evidence.got, evidence.expected * mask.any(dim=1))


def is_half_down_the_columns(evidence: Evidence) -> bool:
    """Whether one of the two steps, the running count or the sum after it, goes along axis 0. For some masks that gives
    the correct result, which shows nothing."""
    (mask,) = evidence.arguments
    halves = (mask.cumsum(dim=1) == 0).sum(dim=0), (mask.cumsum(dim=0) == 0).sum(dim=1)
    is_correct = torch.equal(evidence.got, evidence.expected)
    return not is_correct and any(torch.equal(evidence.got, each) for each in halves)


RIGHT = answer("""
    def first_true(mask):
        not_yet = mask.cumsum(dim=1) == 0
        found = not_yet.sum(dim=1)
        return found
""")
COUNT = "not_yet.sum(dim=1)"
CHOSEN = answer("""
    def first_true(mask):
        found = mask.int().argmax(dim=1)
        none = mask.shape[1]
        return torch.where(mask.any(dim=1), found, none)
""")
CHOICE = "torch.where(mask.any(dim=1), found, none)"
LAST = CHOSEN.but("mask.int().argmax(dim=1)", "mask.shape[1] - 1 - mask.flip(1).int().argmax(dim=1)")

EXERCISE = Exercise(
    id="first-true", number="00.4", difficulty=3, minutes=8, visible_points=1, hidden_points=1,
    reference=first_true, section=TRUE,
    probes=(
        visible("three rows by hand", Case((MASK,))),
        *usual_probes(masks, other=(6, 9), common=(5, 6), floats=False, gradients=False),
        hidden("more rows than columns", masks, 9, 4, announced_by="(B, T)"),
        hidden("as many rows as columns", as_many_before, 6, 6, announced_by="(B, T)"),
        hidden("one row", one_row, announced_by="(B, T)"),
        hidden("one column", one_column, announced_by="(B, T)"),
        hidden("nothing True at all", Case((torch.zeros(3, 5, dtype=torch.bool),)),
               announced_by="or T when the row has none"),
        hidden("one False", Case((torch.zeros(1, 1, dtype=torch.bool),)), announced_by="all sizes at least 1"),
        hidden("transposed in memory", masks, 5, 8, transposed=True, announced_by="(B, T)"),
        # long enough for a count to overflow 8 bits
        hidden("long rows", masks, 5, 300, announced_by="all sizes at least 1"),
    ),
    omits={"precision": "a mask holds truth values", "falsy values": "a mask holds truth values"},
    mistakes=(
        mistake("argmax alone", CHOSEN.but(CHOICE, "found"), TRUE,
            """A row without any True gives 0, the same as a row that begins with True; it should give T. Three things
            do that. argmax has to return *some* index. A loop that finds nothing leaves a 0 that was written before. A
            check of the whole mask misses single rows.""", quotes=answers, shows=gives_0_for_none),
        mistake("argmax of truth values", CHOSEN.but(CHOICE, "found").but("mask.int()", "mask"), TRUE,
            """argmax compares numbers, and True and False are not numbers. Turn them into 1 and 0 first. (And mind the
            row without any True.)"""),
        mistake("last True", LAST, TRUE,
            """You returned the index of the *last* True of each row. (A loop that goes on after a hit does that: later
            hits overwrite the first.)""", quotes=answers),
        mistake("last True, and T - 1 for none", LAST.but(CHOICE, "found"), TRUE,
            """You returned the index of the *last* True of each row, and T - 1 for a row that has none. Return the
            first one, and T if there is none.""", quotes=answers),
        mistake("last True, and 0 for none", RIGHT.but(COUNT, "(mask * torch.arange(mask.shape[1])).amax(dim=1)"), TRUE,
            """You returned the index of the *last* True of each row, and 0 for a row that has none: the largest index
            that was True. Return the first one, and T if there is none.""", quotes=answers),
        mistake("smallest of places and zeros", RIGHT.but(COUNT, "(mask * torch.arange(mask.shape[1])).amin(dim=1)"),
                TRUE,
            """Every index is 0, whatever is in the mask. Is there something in front of the mask that is always found
            first? Or are the indices multiplied by the mask? Then each False gives 0, and 0 is the smallest of all:
            give the Falses a number that can never be the smallest.""", quotes=answers),
        mistake("0 taken for none", CHOSEN.but("mask.any(dim=1)", "found != 0"), TRUE,
            """A row that *begins* with True gives T: you took its 0 for *none*. 0 is an index like any other; check
            whether the row has a True.""", quotes=answers),
        mistake("not yet counted", RIGHT.but(COUNT, "not_yet"), TRUE,
            """You returned a mask of the same shape as `mask`, with True before the first True of each row. One step is
            missing: a number for each row.""", quotes=sizes),
        mistake("running counts", RIGHT.but(COUNT, "mask.cumsum(dim=1)"), TRUE,
            """The running counts of the Trues came back, one for each position. One step is missing: what is that count
            before the first True?""", quotes=sizes),
        mistake("counted while the running count is 1", RIGHT.but("== 0", "== 1"), TRUE,
            """You counted the columns from the first True on, up to the second True, which was not counted. Count the
            columns before the first True.""", quotes=answers),
        mistake("all places", RIGHT.but(COUNT, "mask.nonzero()"), TRUE,
            "You returned the indices of *all* Trues, as pairs of row and column. One answer for each row, please.",
            quotes=sizes),
        mistake("all columns", RIGHT.but(COUNT, "mask.nonzero()[:, 1]"), TRUE,
            """You returned the columns of *all* Trues, one after another. Return one answer for each row, also for a
            row without any.""", quotes=sizes),
        mistake("counts Trues", RIGHT.but(COUNT, "mask.sum(dim=1)"), TRUE,
            "You counted how many Trues a row has. Return where the first one is, counted from 0.",
            quotes=answers),
        mistake("counts Falses", RIGHT.but(COUNT, "(~mask).sum(dim=1)"), TRUE,
            "You counted every False of a row. Only those *before* the first True count.", quotes=answers),
        mistake("counted from 1", RIGHT.but(COUNT, "not_yet.sum(dim=1) + 1"), TRUE,
            "One too many: indices are counted from 0.", quotes=answers),
        mistake("counted from 1, and 0 for none", CHOSEN.but(CHOICE, "found + mask.any(dim=1)"), TRUE,
            """Your indices are counted from 1, so that 0 is left for a row without True. They are counted from 0, and
            such a row gives T.""", quotes=answers),
        mistake("first False where there is a True", CHOSEN.but("argmax", "argmin"), TRUE,
            "You looked for the smallest value of each row, and that is a False. True counts as 1: look for the "
            "largest.", quotes=answers),
        mistake("counted from 1, none at T", CHOSEN.but("found, none", "found + 1, none"), TRUE,
            "One too many where there is a True: indices are counted from 0.", quotes=answers),
        mistake("counted from the first True on", RIGHT.but("== 0", "> 0"), TRUE,
            "You counted the columns from the first True *on*. Count those before it: their number is its index.",
            quotes=answers),
        mistake("-1 for none", CHOSEN.but("mask.shape[1]", "-1"), TRUE,
            """A row without True gives -1. As an index, -1 means the last column, which is easily taken for an answer.
            Return T, one beyond the end.""", quotes=answers),
        mistake("T + 1 for none", CHOSEN.but("mask.shape[1]", "mask.shape[1] + 1"), TRUE,
            "A row without True gives T + 1. The last index is T - 1, so T is one beyond the end already.",
            quotes=answers),
        mistake("T - 1 for none", CHOSEN.but("mask.shape[1]", "mask.shape[1] - 1"), TRUE,
            """A row without True gives T - 1, as if its last column were True. (A loop that keeps the last index it
            looked at does that.) Return T, one beyond the end.""", quotes=answers),
        mistake("number of rows for none", CHOSEN.but("mask.shape[1]", "mask.shape[0]"), TRUE,
            """A row without True gives B, the number of rows. Return T, the number of columns: shape is (B, T), and
            axes count from 0.""", quotes=answers),
        mistake("down the columns",
                RIGHT.but("mask.cumsum(dim=1)", "mask.cumsum(dim=0)").but(COUNT, "not_yet.sum(dim=0)"), TRUE,
            """You went down the *columns*: one answer for each of them, and rows were counted. A row is a sentence; go
            along axis 1.""", quotes=sizes),
        mistake("counted down the columns", RIGHT.but(COUNT, "not_yet.sum(dim=0)"), TRUE,
            """You counted down the *columns* in one of two steps: in the running count of the Trues, or in the sum
            after it. A row is a sentence: both steps go along it, on axis 1.""", quotes=answers,
            shows=is_half_down_the_columns),
        mistake("first False", RIGHT.but("mask.cumsum", "(~mask).cumsum"), TRUE,
            "You looked for the first *False*.", quotes=answers),
        mistake("is there any, as a number", RIGHT.but(COUNT, "mask.any(dim=1).long()"), TRUE,
            "You answered *whether* there is a True, with 1 and 0. Return where the first one is.",
            quotes=answers),
        mistake("is there any", RIGHT.but(COUNT, "mask.any(dim=1)"), TRUE,
            "You answered *whether* there is a True. Return where the first one is."),
        mistake("one number for all rows",
                RIGHT.but("mask.cumsum(dim=1)", "mask.any(0).cumsum(0)").but(COUNT, "not_yet.sum()"), TRUE,
            "One number came back for the whole batch. Every row has its own answer: the shape is (B,).",
            quotes=sizes),
        mistake("an axis left over", RIGHT.but(COUNT, "not_yet.sum(dim=1, keepdim=True)"), SHAPE,
            "The numbers are right, but each sits in a row of its own: (B, 1). The shape is (B,).", quotes=sizes),
        mistake("other integers", RIGHT.ending_in(".int()"), CONTRACT,
            """The values are correct, but the dtype is int32. Positions and ids are torch.long (int64) everywhere in
            the course, since indexing needs that."""),
        mistake("floats", RIGHT.ending_in(".float()"), CONTRACT,
            "Your result has a float dtype. Indices are whole numbers, of dtype torch.long: a float cannot be used as "
            "an index.",
            shows=lambda evidence: evidence.got.is_floating_point()),
        mistake("a list of numbers", RIGHT.ending_in(".tolist()"), CONTRACT,
            "A Python list came back. Return a tensor of shape (B,) and dtype torch.long.", shows=is_list),
        mistake("stops at an empty row", RIGHT.but(COUNT, "torch.tensor([row.tolist().index(True) for row in mask])"),
                TRUE,
            "Your code stopped at a row without any True: index(True) has nothing to find there. Such a row "
            "should give T."),
        mistake("stops at an empty row, looking for 1",
                RIGHT.but(COUNT, "torch.tensor([row.tolist().index(1) for row in mask])"), TRUE,
            "Your code stopped at a row without any True: index(1) has nothing to find there. Such a row "
            "should give T."),
        mistake("first hit of an empty row", RIGHT.but(COUNT, "torch.stack([line.nonzero()[0, 0] for line in mask])"),
                TRUE,
            "Your code stopped at a row without any True: there is no first hit to pick. Such a row should give T."),
        mistake("answer written into the mask", RIGHT.before("return found", "mask[:] = True"), CONTRACT,
            "Your function changed the caller's mask. Work on a copy, or write nothing into it."),
        mistake("walks on past an empty row",
                RIGHT.but(COUNT, "torch.tensor([next(t for t in range(10**9) if row[t]) for row in mask])"), TRUE,
            """Your loop walks on until it meets a True, and a row without any has an end: it stops there with an error.
            Look whether the row is over before you look into it."""),
        mistake("empty rows left out", RIGHT.but(COUNT, "mask[mask.any(dim=1)].int().argmax(dim=1)"), TRUE,
            """Rows without True were left out, so there are fewer answers than rows, and later ones moved up. Such a
            row should give T.""", quotes=sizes),
        mistake("largest place",
                RIGHT.but(COUNT, "torch.where(mask, torch.arange(mask.shape[1]), mask.shape[1]).amax(dim=1)"), TRUE,
            "Of the indices of the Trues, and T for the others, the *largest* was taken. The first True has the "
            "smallest."),
        mistake("the two cases exchanged", CHOSEN.but("found, none", "none, found"), TRUE,
            """The two cases are exchanged: a row with a True gives T, and a row without any gives 0.""",
            quotes=answers),
        mistake("both things that max returns", RIGHT.but(COUNT, "mask.int().max(dim=1)"), TRUE,
            """With a `dim`, max returns two things, the largest values and their indices. Return only the indices, and
            mind the row without any True: its index would be 0.""", quotes=None),
        *usual_mistakes(RIGHT, squeezed=SHAPE),
        mistake("second True", RIGHT.but("== 0", "<= 1"), TRUE,
            "You returned the index of the *second* True (T where there is only one). The first one counts.",
            quotes=answers),
        mistake("counted from the end", CHOSEN.but("any(dim=1), found", "any(dim=1), none - 1 - found"), TRUE,
            "Your indices are counted from the *end* of the row. They are counted from its beginning, from 0.",
            quotes=answers),
        mistake("place in the whole table", CHOSEN.but("found = mask.int().argmax(dim=1)", """
                  found = mask.int().argmax(dim=1)
                  begins = torch.arange(len(mask)) * mask.shape[1]""").but(CHOICE, "begins + " + CHOICE), TRUE,
            """Your indices go on counting from row to row, as on the strip in memory. In each row they begin at 0
            again.""", quotes=answers),
        mistake("number of Trues, T for none", CHOSEN.but("mask.int().argmax(dim=1)", "mask.sum(dim=1)"), TRUE,
            "You counted the Trues of a row. Return where the *first* one is, however many follow.",
            quotes=answers),
    ),
    correct=(
        correct("cumsum", RIGHT),
        correct("argmax and where", """
            def first_true(mask):
                found = mask.long().argmax(dim=1)
                return torch.where(mask.any(dim=1), found, torch.full_like(found, mask.shape[1]))
        """),
        correct("places and min", """
            def first_true(mask):
                B, T = mask.shape
                places = torch.arange(T).expand(B, T)
                return torch.where(mask, places, T).min(dim=1).values
        """),
        correct("masked_fill and amin", """
            def first_true(finished):
                steps = torch.arange(finished.size(1)).repeat(finished.size(0), 1)
                return steps.masked_fill(~finished, finished.size(1)).amin(1)
        """),
        correct("a column of True at the end", """
            def first_true(mask):
                stop = torch.ones(mask.shape[0], 1, dtype=torch.bool)
                return torch.cat([mask, stop], dim=1).float().argmax(dim=1)
        """),
        correct("loops with break", """
            def first_true(mask):
                answers = []
                for line in mask:
                    answer = len(line)
                    for j, value in enumerate(line):
                        if value:
                            answer = j
                            break
                    answers.append(answer)
                return torch.tensor(answers)
        """),
        correct("next over a list", """
            def first_true(mask):
                rows = mask.tolist()
                return torch.tensor([next((j for j, v in enumerate(r) if v), len(r)) for r in rows], dtype=torch.long)
        """),
        correct("backward loop", """
            def first_true(mask):
                out = torch.full((mask.shape[0],), mask.shape[1], dtype=torch.int64)
                for j in reversed(range(mask.shape[1])):
                    out[mask[:, j]] = j
                return out
        """),
        correct("cumprod", RIGHT.but(COUNT, "(~mask).long().cumprod(dim=1).sum(dim=1)")),
        correct("nonzero of each row", """
            def first_true(mask):
                out = []
                for line in mask:
                    hits = line.nonzero().flatten().tolist()
                    out.append(hits[0] if hits else line.numel())
                return torch.tensor(out)
        """),
        correct("corrected afterward", """
            def first_true(mask):
                places = torch.argmax(mask.int(), dim=1)
                places[~mask.any(dim=1)] = mask.shape[1]
                return places
        """),
    ),
    hints=(
        "how many Falses come before the first True? And what does your answer say about a row that has none?",
        "mask is (B, T), the answer (B,): axis 1 disappears. Whatever you use, a row of Falses must come out as T.",
        "in each row, count how many columns come before the first True. In a row without a True this counts all T.",
    ),
)
