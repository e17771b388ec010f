"""08.2: which words a query may attend to, by their order."""

import torch
from torch import Tensor

from autograder.catalogue import families
from autograder.catalogue.ch08_masks.shared import open_cells, sections
from autograder.catalogue.exercise import Case, Evidence, Exercise
from autograder.catalogue.known_answers import answer, correct, mistake
from autograder.catalogue.probes import PROMISED, hidden, second_call, visible
from transformer_ref.model import masks

CAUSAL, CACHE, CONVENTION = sections("causal cache convention")


def causal_mask(Tq: int, offset: int = 0) -> Tensor:
    """True where the key is not later than the query, (Tq, Tq + offset)."""
    return masks.causal_mask(Tq, offset)


def lengths(g: torch.Generator, new: tuple[int, int], cached: tuple[int, int]) -> Case:
    """Numbers of new and of cached words, each drawn from a half-open range."""
    return Case(tuple(int(torch.randint(*ends, (), generator=g)) for ends in (new, cached)))


def first_row(evidence: Evidence) -> str:
    """Row 0, and the correct one."""
    def cells(table: Tensor) -> str:
        return " ".join("True" if cell else "False" for cell in table[0].tolist())

    if not isinstance(evidence.got, Tensor) or evidence.got.ndim != 2:
        return ""
    return f"Your row 0 is {cells(evidence.got)}; it should be {cells(evidence.expected)}."


RIGHT = answer("""
    def causal_mask(Tq, offset=0):
        query = torch.arange(Tq)[:, None] + offset
        key = torch.arange(Tq + offset)[None, :]
        return key <= query
""")
QUERY, KEY, RULE = (
    "query = torch.arange(Tq)[:, None] + offset", "key = torch.arange(Tq + offset)[None, :]", "key <= query"
)

EXERCISE = Exercise(
    id="causal-mask", number="08.2", difficulty=2, minutes=15, visible_points=1, hidden_points=4,
    reference=causal_mask, section=CAUSAL,
    omits={"a batch of one": "the mask is the same for every sentence",
           "a length of one": "two numbers are given, no tensor",
           "precision": "a mask holds truth values", "repeated items": "two numbers are given, no tensor"},
    probes=(
        visible("four words", Case((4,))),
        visible("two new words after three cached ones", Case((2, 3))),
        hidden("six words: 15 cells blocked", Case((6,)), announced_by=PROMISED),
        hidden("one word", Case((1,)), announced_by=PROMISED),
        hidden("one new word, several cached", lengths, (1, 2), (17, 29),
               announced_by="number of words before them"),
        hidden("more new words than cached", lengths, (17, 25), (1, 5), announced_by="number of words before them"),
        hidden("an offset of 0, passed", lengths, (3, 9), (0, 1), announced_by="(an int, 0 or more)"),
        second_call(lengths, (2, 7), (1, 7)),
    ),
    mistakes=(
        mistake("the upper triangle", RIGHT.but(RULE, "key >= query"), CAUSAL,
            "Word 0 may see the whole future, and the last word only itself: this is the mask the wrong way round.",
            quotes=first_row),
        mistake("only the future", RIGHT.but(RULE, "key > query"), CONVENTION,
            """The mask is True exactly at the later words, which must be hidden. In this course True means *may
            attend*; some libraries mean the opposite.""", quotes=first_row),
        mistake("the diagonal blocked", RIGHT.but(RULE, "key < query"), CAUSAL,
            """A word cannot see itself, and row 0 has no key at all. The word at position i is known when position i +
            1 is predicted, so it may attend to itself.""", quotes=first_row),
        mistake("one word of the future open", RIGHT.but(RULE, "key <= query + 1"), CAUSAL,
            "Each word sees one word too many: exactly the one that it should predict.", quotes=first_row),
        mistake("offset ignored",
                RIGHT.but(QUERY, "query = torch.arange(Tq)[:, None]").but(KEY, "key = torch.arange(Tq)[None, :]"),
            CACHE, """The shape is (Tq, Tq) whatever the offset is. Keys of earlier steps come first: there are offset +
            Tq of them."""),
        mistake("one key for one query", RIGHT.but(RULE, "key <= query if Tq > 1 else key[:, :1] == 0"), CACHE,
            "With one query your mask has one column. It needs offset + Tq columns, also for one query."),
        mistake("new words cannot see the cached ones", RIGHT.but(QUERY, "query = torch.arange(Tq)[:, None]"), CACHE,
            """Your code takes query i to be at position i. With an offset it is at position offset + i, and sees
            everything before.""", quotes=first_row),
        mistake("the offset the wrong way", RIGHT.but(QUERY, "query = torch.arange(Tq)[:, None] - offset"), CACHE,
            """The offset was subtracted where it should be added: query i is at position offset + i, after all earlier
            words.""", quotes=first_row),
        mistake("one too few with an offset", RIGHT.but(QUERY, QUERY + " - min(offset, 1)"), CACHE,
            "With an offset each row is closed one position too early: row i is at position offset + i, and sees "
            "itself.",
            quotes=first_row),
        mistake("the whole square",
                RIGHT.but("torch.arange(Tq)[:, None] + offset", "torch.arange(Tq + offset)[:, None]"), CACHE,
            """Your mask has a row for every word so far. Only the Tq new words are queries: rows offset to offset + Tq
            - 1 of that square."""),
        mistake("cached keys at the end", RIGHT.but(RULE, "(key - offset <= query - 2 * offset) | (key >= Tq)"), CACHE,
            """The open columns for the cached words are at the end. Those words came first, so their columns come
            first. If you loop over the columns: does the loop reach all offset + Tq of them?""", quotes=first_row),
        mistake("cached keys hidden", RIGHT.but(RULE, "(key <= query) & (key >= offset)"), CACHE,
            "The keys of earlier steps are hidden: row 0 must see the cached words.", quotes=first_row),
        mistake("everything open with an offset", RIGHT.but(RULE, "(key <= query) | (offset > 0)"), CACHE,
            """With an offset every cell is open. Among the new words the order still holds: the first of them may not
            see the second.""", quotes=open_cells),
        mistake("rows and columns exchanged", RIGHT.but(RULE, "(key <= query).T"), CAUSAL,
            "Rows and columns are exchanged. A row belongs to the query, a column to the key.",
            quotes=first_row),
        mistake("no axes for rows and columns",
                RIGHT.but(QUERY, "query = torch.arange(Tq) + offset").but(KEY, "key = torch.arange(Tq + offset)"),
            CAUSAL, """Two lists of positions were compared entry by entry: query i met only key i, and lists of
            different lengths do not fit. To compare every query with every key, give each list an axis of size 1:
            the queries run down, (Tq, 1), and the keys run across, (1, offset + Tq)."""),
        families.ONES_AND_ZEROS(RIGHT.but(RULE, "(key <= query).float()"), CONVENTION),
        mistake("whole numbers", RIGHT.but(RULE, "(key <= query).long()"), CONVENTION,
            "The mask holds whole numbers. Return a boolean one."),
        families.MINUS_INFINITY(RIGHT.but(RULE, "torch.zeros(Tq, Tq + offset).masked_fill(key > query, float('-inf'))"),
            CONVENTION),
        mistake("everything open", RIGHT.but(RULE, "torch.ones(Tq, Tq + offset, dtype=torch.bool)"), CAUSAL,
            "Every cell is open, so every word sees the whole sentence, the answer included.", quotes=open_cells),
        mistake("only the word itself", RIGHT.but(RULE, "key == query"), CAUSAL,
            "Each word sees only itself. It may see all words before it too.", quotes=open_cells),
        mistake("only the word before", RIGHT.but(RULE, "(key <= query) & (key >= query - 1)"), CAUSAL,
            "Each word sees itself and one word before it. It may see all of them.", quotes=open_cells),
        mistake("a batch axis", RIGHT.but(RULE, "(key <= query)[None]"), CAUSAL,
            "There is an axis too many: the mask is the same for every sentence and head, so (Tq, Tq + "
            "offset) is enough."),
    ),
    correct=(
        correct("tril", """
            def causal_mask(n, past=0):
                return torch.ones(n, n + past, dtype=torch.bool).tril(past)
        """),
        correct("not triu", """
            def causal_mask(Tq, offset=0):
                return ~torch.triu(torch.ones(Tq, Tq + offset), diagonal=offset + 1).bool()
        """),
        correct("loops", """
            def causal_mask(Tq, offset=0):
                return torch.tensor([[k <= q + offset for k in range(Tq + offset)] for q in range(Tq)])
        """),
        correct("a square, cut", """
            def causal_mask(Tq, offset=0):
                whole = torch.tril(torch.ones((Tq + offset, Tq + offset), dtype=torch.bool))
                return whole[offset:]
        """),
        correct("two blocks", """
            def causal_mask(Tq, offset=0):
                past = torch.ones(Tq, offset, dtype=torch.bool)
                return torch.cat([past, torch.tril(torch.ones(Tq, Tq)) == 1], dim=1)
        """),
    ),
    hints=(
        "a word predicts the next one. Which words does it know by then? Is it among them?",
        "Tq rows, offset + Tq columns; row i is at position offset + i of all words so far.",
        "True where the position of the column is not greater than the position of the row.",
    ),
)  # fmt: skip
