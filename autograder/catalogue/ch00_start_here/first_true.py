"""00.4 first_true."""

import torch
from torch import Tensor

from autograder.catalogue.ch00_start_here.shared import _plain, sections
from autograder.catalogue.exercise import Case, Evidence, Exercise, Probe
from autograder.catalogue.parts import UNTOUCHED, known, right, sizes, turned

CONTRACT, SHAPE, TRUE = sections("contract shape true")


def first_true(mask: Tensor) -> Tensor:
    """How many entries stand before the first True of each row: its index, or T when there is none."""
    return (mask.cumsum(dim=1) == 0).sum(dim=1)


_MASK = torch.tensor(
    [
        [False, False, True, False, True],
        [False, False, False, False, False],
        [True, True, False, True, False],
    ]
)


def _drawn_mask(g: torch.Generator, B: int, T: int, share: float = 0.3) -> Case:
    """Random truth values, with an empty row, a full row, and one row that is True in its last place only."""
    mask = torch.rand(B, T, generator=g) < share
    for i, line in enumerate((torch.zeros(T), torch.ones(T), torch.arange(T) == T - 1)[: max(B - 2, 0)]):
        mask[i] = line.bool()
    return Case((mask[torch.randperm(B, generator=g)],))


def _answers(evidence: Evidence) -> str:
    if not isinstance(evidence.got, Tensor):
        return ""
    if tuple(evidence.got.shape) != tuple(evidence.expected.shape):
        return sizes(evidence)
    return f"You returned {_plain(evidence.got)}; by hand it is {_plain(evidence.expected)}."


EXERCISE = Exercise(
    id="first-true",
    number="00.4",
    visible_points=1,
    hidden_points=1,
    section=TRUE,
    reference=first_true,
    probes=(
        Probe("three rows by hand", lambda g: Case((_MASK,)), hidden=False),
        Probe("other sizes", lambda g: _drawn_mask(g, 6, 9)),
        Probe("more rows than columns", lambda g: _drawn_mask(g, 9, 4)),
        Probe("as many rows as columns", lambda g: _drawn_mask(g, 6, 6)),
        Probe("one row", lambda g: Case((torch.arange(7)[None] >= torch.randint(1, 6, (), generator=g),))),
        Probe("one column", lambda g: Case((torch.tensor([[True], [False], [True]])[torch.randperm(3, generator=g)],))),
        Probe("nothing True at all", lambda g: Case((torch.zeros(3, 5, dtype=torch.bool),))),
        Probe("transposed in memory", lambda g: Case((turned(_drawn_mask(g, 5, 8).arguments[0]),))),
        Probe("nothing else is touched", lambda g: _drawn_mask(g, 5, 6), also=UNTOUCHED),
    ),
    wrong=(
        known(
            "argmax alone",
            "def first_true(mask):\n    return mask.int().argmax(dim=1)\n",
            "A row without any True gives 0, the same as a row that begins with True: argmax has to return *some* place. Such a row should give T.",
            TRUE,
            _answers,
        ),
        known(
            "argmax of truth values",
            "def first_true(mask):\n    return mask.argmax(dim=1)\n",
            "argmax compares numbers, and True and False are none. Turn them into 1 and 0 first. (And mind the row without any True.)",
            TRUE,
        ),
        known(
            "last True",
            """
            def first_true(mask):
                T = mask.shape[1]
                last = T - 1 - mask.flip(1).int().argmax(dim=1)
                return torch.where(mask.any(dim=1), last, T)
            """,
            "You returned the place of the *last* True of each row. (A loop that goes on after a hit does that: later hits overwrite the first.)",
            TRUE,
            _answers,
        ),
        known(
            "last True, and T - 1 for none",
            "def first_true(mask):\n    return mask.shape[1] - 1 - mask.flip(1).int().argmax(dim=1)\n",
            "You returned the place of the *last* True of each row, and T - 1 for a row that has none. The first one is wanted, and T for none.",
            TRUE,
            _answers,
        ),
        known(
            "last True, and 0 for none",
            "def first_true(mask):\n    return (mask * torch.arange(mask.shape[1])).amax(dim=1)\n",
            "You returned the place of the *last* True of each row, and 0 for a row that has none: the largest place that was True. The first one is wanted, and T for none.",
            TRUE,
            _answers,
        ),
        known(
            "smallest of places and zeros",
            "def first_true(mask):\n    return (mask * torch.arange(mask.shape[1])).amin(dim=1)\n",
            "Nearly everything is 0: a place that is False became 0 in the product, and 0 wins every minimum. Give the Falses a number that can never win.",
            TRUE,
            _answers,
        ),
        known(
            "0 taken for none",
            """
            def first_true(mask):
                found = mask.int().argmax(dim=1)
                found[found == 0] = mask.shape[1]
                return found
            """,
            "A row that *begins* with True gives T: you took its 0 for *none*. 0 is a place like any other; ask the row itself whether it has a True.",
            TRUE,
            _answers,
        ),
        known(
            "not yet counted",
            "def first_true(mask):\n    return mask.cumsum(dim=1) == 0\n",
            "A mask of the shape of the first one came back, True up to the first True. One step is missing: a number for each row.",
            TRUE,
            sizes,
        ),
        known(
            "all places",
            "def first_true(mask):\n    return mask.nonzero()\n",
            "You returned the places of *all* Trues, as pairs of row and column. One answer for each row, please.",
            TRUE,
            sizes,
        ),
        known(
            "all columns",
            "def first_true(mask):\n    return mask.nonzero()[:, 1]\n",
            "You returned the columns of *all* Trues, one after another. One answer for each row is wanted, also for a row that has none.",
            TRUE,
            sizes,
        ),
        known(
            "counts Trues",
            "def first_true(mask):\n    return mask.sum(dim=1)\n",
            "You counted how many Trues a row has. Wanted is where the first one stands, counted from 0.",
            TRUE,
            _answers,
        ),
        known(
            "counts Falses",
            "def first_true(mask):\n    return (~mask).sum(dim=1)\n",
            "You counted every False of a row. Only those *before* the first True count.",
            TRUE,
            _answers,
        ),
        known(
            "counted from 1",
            "def first_true(mask):\n    return (mask.cumsum(dim=1) == 0).sum(dim=1) + 1\n",
            "One too many: places are counted from 0.",
            TRUE,
            _answers,
        ),
        known(
            "counted from 1, none at T",
            """
            def first_true(mask):
                T = mask.shape[1]
                return torch.where(mask.any(dim=1), mask.int().argmax(dim=1) + 1, T)
            """,
            "One too many where there is a True: places are counted from 0.",
            TRUE,
            _answers,
        ),
        known(
            "counted from the first True on",
            "def first_true(mask):\n    return (mask.cumsum(dim=1) > 0).sum(dim=1)\n",
            "You counted the places from the first True *on*. Those before it are wanted: their number is its index.",
            TRUE,
            _answers,
        ),
        known(
            "-1 for none",
            "def first_true(mask):\n    return torch.where(mask.any(dim=1), mask.int().argmax(dim=1), -1)\n",
            "A row without True gives -1. As an index, -1 means the last place, which is easily taken for an answer; T is wanted, one beyond the end.",
            TRUE,
            _answers,
        ),
        known(
            "T - 1 for none",
            "def first_true(mask):\n    T = mask.shape[1]\n    return torch.where(mask.any(dim=1), mask.int().argmax(dim=1), T - 1)\n",
            "A row without True gives T - 1, as if its last place were True. (A loop that keeps the last place it looked at does that.) T is wanted, one beyond the end.",
            TRUE,
            _answers,
        ),
        known(
            "number of rows for none",
            "def first_true(mask):\n    return torch.where(mask.any(dim=1), mask.int().argmax(dim=1), mask.shape[0])\n",
            "A row without True gives B, the number of rows. T is wanted, the number of columns: shape is (B, T), and axes count from 0.",
            TRUE,
            _answers,
        ),
        known(
            "down the columns",
            "def first_true(mask):\n    return (mask.cumsum(dim=0) == 0).sum(dim=0)\n",
            "You went down the *columns*: one answer for each of them, and rows were counted. A row is a sentence; go along axis 1.",
            TRUE,
            sizes,
        ),
        known(
            "first False",
            "def first_true(mask):\n    return ((~mask).cumsum(dim=1) == 0).sum(dim=1)\n",
            "You looked for the first *False*.",
            TRUE,
            _answers,
        ),
        known(
            "is there any, as a number",
            "def first_true(mask):\n    return mask.any(dim=1).long()\n",
            "You answered *whether* there is a True, with 1 and 0. Wanted is where the first one stands.",
            TRUE,
            _answers,
        ),
        known(
            "is there any",
            "def first_true(mask):\n    return mask.any(dim=1)\n",
            "You answered *whether* there is a True. Wanted is where the first one stands.",
            TRUE,
        ),
        known(
            "one number for all rows",
            "def first_true(mask):\n    return (mask.any(dim=0).cumsum(dim=0) == 0).sum()\n",
            "One number came back for the whole batch. Every row has an answer of its own: the shape is (B).",
            TRUE,
            sizes,
        ),
        known(
            "an axis left over",
            "def first_true(mask):\n    return (mask.cumsum(dim=1) == 0).sum(dim=1, keepdim=True)\n",
            "The numbers are right, but each sits in a row of its own: (B, 1). The shape is (B).",
            SHAPE,
            sizes,
        ),
        known(
            "other integers",
            "def first_true(mask):\n    return (mask.cumsum(dim=1) == 0).sum(dim=1).int()\n",
            "The numbers are right, the dtype is int32. Places and ids are torch.long (int64) everywhere in the course, since indexing wants them so.",
            CONTRACT,
        ),
        known(
            "floats",
            "def first_true(mask):\n    return (mask.cumsum(dim=1) == 0).float().sum(dim=1)\n",
            "The dtype is that of a float, and a place is a whole number, torch.long: a float cannot be used as an index.",
            CONTRACT,
            shows=lambda evidence: evidence.got.is_floating_point(),
        ),
        known(
            "a list of numbers",
            "def first_true(mask):\n    return (mask.cumsum(dim=1) == 0).sum(dim=1).tolist()\n",
            "A Python list came back. A tensor of shape (B) and dtype torch.long is wanted.",
            CONTRACT,
            shows=lambda evidence: isinstance(evidence.got, list),
        ),
        known(
            "stops at an empty row",
            "def first_true(mask):\n    return torch.tensor([line.tolist().index(True) for line in mask])\n",
            "Your code stopped at a row without any True: index(True) has nothing to find there. Such a row should give T.",
            TRUE,
        ),
        known(
            "stops at an empty row, looking for 1",
            "def first_true(mask):\n    return torch.tensor([line.tolist().index(1) for line in mask])\n",
            "Your code stopped at a row without any True: index(1) has nothing to find there. Such a row should give T.",
            TRUE,
        ),
        known(
            "first hit of an empty row",
            "def first_true(mask):\n    return torch.stack([line.nonzero()[0, 0] for line in mask])\n",
            "Your code stopped at a row without any True: there is no first hit to pick. Such a row should give T.",
            TRUE,
        ),
        known(
            "answer written into the mask",
            "def first_true(mask):\n    found = (mask.cumsum(dim=1) == 0).sum(dim=1)\n    mask[:] = True\n    return found\n",
            "Your function changed the caller's mask. Work on a copy, or write nothing into it.",
            CONTRACT,
        ),
        known(
            "empty rows left out",
            "def first_true(mask):\n    return mask[mask.any(dim=1)].int().argmax(dim=1)\n",
            "Rows without True were left out, so there are fewer answers than rows, and later ones moved up. Such a row should give T.",
            TRUE,
            sizes,
        ),
    ),
    right=(
        right("cumsum", "def first_true(mask):\n    return (mask.cumsum(dim=1) == 0).sum(dim=1)\n"),
        right(
            "argmax and where",
            """
            def first_true(mask):
                found = mask.long().argmax(dim=1)
                return torch.where(mask.any(dim=1), found, torch.full_like(found, mask.shape[1]))
            """,
        ),
        right(
            "places and min",
            """
            def first_true(mask):
                B, T = mask.shape
                places = torch.arange(T).expand(B, T)
                return torch.where(mask, places, T).min(dim=1).values
            """,
        ),
        right(
            "masked_fill and amin",
            """
            def first_true(finished):
                steps = torch.arange(finished.size(1)).repeat(finished.size(0), 1)
                return steps.masked_fill(~finished, finished.size(1)).amin(1)
            """,
        ),
        right(
            "a column of True at the end",
            """
            def first_true(mask):
                stop = torch.ones(mask.shape[0], 1, dtype=torch.bool)
                return torch.cat([mask, stop], dim=1).float().argmax(dim=1)
            """,
        ),
        right(
            "loops with break",
            """
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
            """,
        ),
        right(
            "next over a list",
            """
            def first_true(mask):
                rows = mask.tolist()
                return torch.tensor([next((j for j, v in enumerate(r) if v), len(r)) for r in rows], dtype=torch.long)
            """,
        ),
        right(
            "backward loop",
            """
            def first_true(mask):
                out = torch.full((mask.shape[0],), mask.shape[1], dtype=torch.int64)
                for j in reversed(range(mask.shape[1])):
                    out[mask[:, j]] = j
                return out
            """,
        ),
        right("cumprod", "def first_true(mask):\n    return (~mask).long().cumprod(dim=1).sum(dim=1)\n"),
        right(
            "nonzero of each row",
            """
            def first_true(mask):
                out = []
                for line in mask:
                    hits = line.nonzero().flatten().tolist()
                    out.append(hits[0] if hits else line.numel())
                return torch.tensor(out)
            """,
        ),
        right(
            "corrected afterward",
            """
            def first_true(mask):
                places = torch.argmax(mask.int(), dim=1)
                places[~mask.any(dim=1)] = mask.shape[1]
                return places
            """,
        ),
    ),
    hints=(
        "how many Falses stand before the first True? And what does your answer say about a row that has none?",
        "mask is (B, T), the answer (B): axis 1 disappears. Whatever you use, a row of Falses must come out as T.",
        "in each row, count the places up to which no True has been seen yet; that count is the index, and T when it never comes.",
    ),
)
