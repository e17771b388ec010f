"""01.1: the state after a sentence's own last word."""

import torch
from torch import Tensor

from autograder.catalogue.ch01_why_attention.shared import SMALL_PRINT, sections
from autograder.catalogue.exercise import Case, Evidence, Exercise
from autograder.catalogue.families import in_place, usual_mistakes
from autograder.catalogue.known_answers import answer, correct, formula, mistake
from autograder.catalogue.probes import FAR, UNTOUCHED, hidden, normal, usual_probes, visible
from autograder.catalogue.quotes import row, sizes

(PADDING,) = sections("padding")
STATES = torch.tensor([  # (sentence, word, D)
    [[1.1, 1.2, 1.3], [2.1, 2.2, 2.3], [3.1, 3.2, 3.3], [0.0, 0.0, 0.0]],
    [[5.1, 5.2, 5.3], [6.1, 6.2, 6.3], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]],
])


def last_state(H: Tensor, lengths: Tensor | list[int]) -> Tensor:
    """The state of each sentence at its last real word."""
    last = torch.as_tensor(lengths) - 1  # (B,)
    return H[torch.arange(H.shape[0]), last]  # (B, D)


def states(
    g: torch.Generator, lengths: list[int], T: int, D: int, dtype: torch.dtype = torch.float32, listed: bool = False
) -> Case:
    """Sentences of these lengths, passed as a tensor or as a list."""
    return Case((normal(g, len(lengths), T, D, dtype=dtype), list(lengths) if listed else torch.tensor(lengths)))


def zeros_within(g: torch.Generator) -> Case:
    """Words whose states are zero, and pads whose states are not."""
    return Case((normal(g, 2, 6, 5) * torch.tensor([1.0, 1.0, 1.0, 0.0, 1.0, 0.0])[:, None], [4, 2]))


def far_away(g: torch.Generator) -> Case:
    return Case((normal(g, 2, 5, 3, dtype=torch.float64) + FAR, torch.tensor([3, 5])))


def one_sentence(evidence: Evidence) -> str:
    """The state of a wrong sentence, of the second one if it is wrong."""
    got, expected = evidence.got, evidence.expected
    if got.shape != expected.shape:
        return ""
    wrong = (got != expected).any(dim=1).nonzero().flatten().tolist()
    if not wrong:
        return ""
    place = 1 if 1 in wrong else wrong[0]
    name = ("first", "second", "third")[place]
    return f"For the {name} sentence you return {row(got[place])}, where its last word has {row(expected[place])}."


def is_one_position(evidence: Evidence) -> bool:
    """Whether the states of one and the same position of all sentences came back."""
    H, got = evidence.arguments[0], evidence.got
    return got.shape == evidence.expected.shape and any(torch.equal(got, H[:, t]) for t in range(H.shape[1]))


RIGHT = answer("""
    def last_state(H, lengths):
        lengths = torch.as_tensor(lengths)
        rows = torch.arange(H.shape[0])
        last = lengths - 1
        states = H[rows, last]
        return states
""")
PICKED = "H[rows, last]"
GATHERED = RIGHT.but(PICKED, "H.gather(1, last.view(-1, 1, 1).expand(-1, 1, H.shape[2]))")

EXERCISE = Exercise(
    id="last-state", number="01.1", difficulty=2, minutes=6, visible_points=1, hidden_points=2,
    reference=last_state, section=PADDING,
    probes=(
        visible("two sentences, of 3 and 2 words", Case((STATES, torch.tensor([3, 2])), ("first", "second"))),
        visible("lengths in a list, one sentence without pads", states, [2, 5, 1], 5, 2, listed=True),
        *usual_probes(states, other=([7, 2, 5, 3], 7, 3), smallest=([1], 1, 4), common=([5, 1, 3], 6, 2),
                      precise=far_away),
        hidden("all end before the end", states, [4, 76, 1], 80, 4, announced_by="from 1 to T"),
        hidden("states with zeros in them", zeros_within, announced_by="those at pads are any finite numbers"),
        hidden("float64, lengths in a list", states, [3, 6], 6, 5, dtype=torch.float64, listed=True,
               checks=UNTOUCHED, announced_by="a tensor or a list"),
    ),
    mistakes=(
        mistake("the last column", RIGHT.but(PICKED, "H[:, -1]"), PADDING,
            """That is the state at the last *position* of the batch, which for a shorter sentence is a pad. Each
            sentence ends at its own position.""", quotes=one_sentence),
        mistake("length used as index", RIGHT.but(PICKED, "H[rows, lengths]"), PADDING,
            "One position too far: counting starts at 0, so the last of 3 words is at index 2.", quotes=one_sentence),
        mistake("length used as index, cut to the last",
                RIGHT.but(PICKED, "H[rows, lengths.clamp(max=H.shape[1] - 1)]"), PADDING,
            """You used the length as an index, cut to the last position, so only full sentences are correct. Counting
            starts at 0: the last of 3 words is at index 2.""", quotes=one_sentence),
        mistake("counted from the end", RIGHT.but(PICKED, "H[rows, -lengths]"), PADDING,
            "You counted from the end of the row, where the pads are. The words are at the beginning.",
            quotes=one_sentence),
        mistake("the longest sentence's end for all", RIGHT.but(PICKED, "H[:, last.max()]"), PADDING,
            """One and the same position was read in every row: the end of the *longest* sentence. In the shorter ones
            there is a pad.""", quotes=one_sentence),
        mistake("the first sentence's end for all", RIGHT.but(PICKED, "H[:, last[0]]"), PADDING,
            """One and the same position was read in every row: the end of the *first* sentence. Each sentence ends at
            its own position.""", quotes=one_sentence),
        mistake("the first state", RIGHT.but(PICKED, "H[:, 0]"), PADDING,
            "That is the state after the *first* word: it has read nothing of the rest.", quotes=one_sentence),
        mistake("the first sentence alone", RIGHT.but(PICKED, "H[0, last[0]]"), PADDING,
            """Only the state of the first sentence came back. Is there a `return` inside a loop? It ends the function
            in the first round. Return one state for each sentence of the batch.""", quotes=sizes),
        mistake("mean over everything", RIGHT.but(PICKED, "H.mean(dim=1)"), PADDING,
            "That is a mean over all positions, pads included. Return one state: the one after the last real word.",
            quotes=one_sentence),
        mistake("mean over the words",
                RIGHT.but(PICKED, "torch.stack([h[:n].mean(dim=0) for h, n in zip(H, lengths)])"), PADDING,
            """The pads are out, good; but this is the mean of the words' states. Return one state: the one after the
            last real word.""", quotes=one_sentence),
        mistake("sum over the words", RIGHT.but(PICKED, "torch.stack([h[:n].sum(dim=0) for h, n in zip(H, lengths)])"),
                PADDING,
            """That is the sum of the words' states. A recurrent state has already gathered what came before: take the
            last one.""", quotes=one_sentence),
        mistake("maximum over the words",
                RIGHT.but(PICKED, "torch.stack([h[:n].amax(dim=0) for h, n in zip(H, lengths)])"), PADDING,
            """The pads are out, good; but for each feature you took the largest number of all words. Return one state,
            that of the last word.""", quotes=one_sentence),
        mistake("sentence and place exchanged", RIGHT.but(PICKED, "H[last, rows]"), PADDING,
            "Position and sentence are exchanged: the first index of H counts sentences, the second counts positions."),
        mistake("maximum over time", RIGHT.but(PICKED, "H.amax(dim=1)"), PADDING,
            """For each feature you took the largest number of all positions. Return one state, that of the last real
            word.""", quotes=one_sentence),
        mistake("pads blanked, the last column", RIGHT.but(
                  PICKED, "(H * (torch.arange(H.shape[1]) < lengths[:, None])[:, :, None])[:, -1]"), PADDING,
            "You set the pads to 0 and then read the last position, where a pad is. Blanking does not move the words.",
            quotes=one_sentence),
        mistake("lengths sorted", RIGHT.but("lengths - 1", "lengths.sort(descending=True).values - 1"), PADDING,
            "The lengths were sorted, but the sentences were not: row 1 was read with the length of a different row."),
        mistake("all rows at all ends", RIGHT.but(PICKED, "H[:, last]"), PADDING,
            """For every sentence the ends of *all* sentences came back. Rows and positions must go in pairs: row 0 with
            its end, row 1 with its own.""", quotes=sizes),
        mistake("length indexes the batch", RIGHT.but(PICKED, "H[lengths.clamp(max=H.shape[0]) - 1, -1]"), PADDING,
            "The lengths picked *sentences*: the first axis of H is the batch. They should pick positions, along the "
            "second.",
            quotes=one_sentence),
        mistake("time before batch", RIGHT.but(
                  PICKED, "H.transpose(0, 1)[rows.clamp(max=H.shape[1] - 1), last.clamp(max=H.shape[0] - 1)]"), PADDING,
            "Axes exchanged: H is (B, T, D), sentences first, positions second."),
        mistake("an axis kept", GATHERED, PADDING,
            "The states are correct, but an axis of length 1 is left where the positions were.", quotes=sizes),
        mistake("pads recognized by zeros",
                RIGHT.but(PICKED, "torch.stack([h[h.abs().sum(-1).nonzero()[-1, 0]] for h in H])"), PADDING,
            "You looked for states that are not zero. Pads need not be zero, and words may be; that is why the "
            "lengths are given."),
        mistake("lists not accepted", RIGHT.without("lengths = torch.as_tensor(lengths)"), PADDING,
            "Right for a tensor of lengths, but they may come as a plain list too, and a list has no arithmetic."),
        mistake("cut off from the gradient", RIGHT.ending_in(".detach()"), SMALL_PRINT,
            """The values are right, but no gradient flows back into H: .detach(), .data, .item(), numpy or
            torch.tensor(...) cut the graph."""),
        *usual_mistakes(RIGHT, arguments="H", float32=SMALL_PRINT, single=SMALL_PRINT, squeezed=SMALL_PRINT,
                        viewed=PADDING),
        mistake("one feature for all",
                GATHERED.but(".expand(-1, 1, H.shape[2])", "").ending_in("[:, 0].expand(-1, H.shape[2])"), PADDING,
            "Every number of a row is the state's first: gather takes one number for each index. The index needs all "
            "D features."),
        in_place("lengths", RIGHT.but("last = lengths - 1", "last = lengths.sub_(1)"), SMALL_PRINT),
        mistake("the middle", RIGHT.but("lengths - 1", "lengths // 2"), PADDING,
            "That is the state in the *middle* of the sentence. The last word is lengths - 1 positions from the first.",
            quotes=one_sentence),
        mistake("mean over the words, divided by all places",
                RIGHT.but(PICKED, "torch.stack([h[:n].sum(dim=0) / len(h) for h, n in zip(H, lengths)])"), PADDING,
            "The words' states were added and divided by T. Return one state, that of the last word."),
        mistake("the last column but one", RIGHT.but(PICKED, "H[:, max(H.shape[1] - 2, 0)]"), PADDING,
            """One and the same position was read in every row, such as the last but one, or the end of the shortest
            sentence. Each sentence ends at its own position.""", quotes=one_sentence, shows=is_one_position),
    ),
    correct=(
        correct("pairs of indices", RIGHT),
        correct("gather", GATHERED.ending_in(".squeeze(1)")),
        correct("loop", formula("last_state(H, lengths)",
                                "torch.stack([H[b, int(n) - 1] for b, n in enumerate(lengths)])")),
        correct("slices", formula("last_state(H, lengths)",
                                  "torch.cat([h[n - 1 : n] for h, n in zip(H, list(lengths))], dim=0)")),
        correct("one-hot", RIGHT.but(PICKED, "torch.einsum('bt,btd->bd', F.one_hot(last, H.shape[1]).to(H.dtype), H)")),
        correct("mask", RIGHT.but(PICKED, "H[torch.arange(H.shape[1]) == last[:, None]]")),
        correct("take_along_dim", RIGHT.but(PICKED, "torch.take_along_dim(H, last[:, None, None], dim=1)[:, 0]")),
    ),
    hints=(
        "which index has the last of 3 words? And does every sentence of the batch end at the same position?",
        "H is (B, T, D). One position for each of the B rows, D numbers from each: (B, D).",
        "for each sentence b: take H at row b and position length minus 1; stack the rows. Lengths may be a list: make "
        "a tensor of it first.",
    ),
)
