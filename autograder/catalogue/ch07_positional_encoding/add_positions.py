"""07.2: words and their places, added."""

import torch
from torch import Tensor

from autograder.catalogue.ch07_positional_encoding.shared import sections
from autograder.catalogue.exercise import Case, Evidence, Exercise
from autograder.catalogue.families import in_place, usual_mistakes
from autograder.catalogue.known_answers import answer, correct, formula, mistake
from autograder.catalogue.probes import FAR, PROMISED, hidden, normal, usual_probes, visible
from autograder.catalogue.quotes import sizes
from transformer_ref.model.positional_encoding import sinusoidal_table

ADD, OFFSET = sections("add offset")


def add_positions(x: Tensor, pe: Tensor, offset: int = 0) -> Tensor:
    """x plus the rows of pe from `offset` on, (B, T, D)."""
    return x + pe[offset : offset + x.shape[1]]


WORDS = torch.tensor([[[1.0, 0.0, 0.0, 0.0], [1.0, 1.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0], [2.0, 0.0, 0.0, 0.0]]])


def inputs(g: torch.Generator, B: int, T: int, D: int, rows: int, offset: int,
           dtype: torch.dtype = torch.float32) -> Case:
    return Case((normal(g, B, T, D, dtype=dtype), normal(g, rows, D, dtype=dtype), offset))


def far(g: torch.Generator) -> Case:
    x, pe, offset = inputs(g, 2, 3, 4, 7, 1, dtype=torch.float64).arguments
    return Case((x + FAR, pe, offset))


def without_offset(g: torch.Generator) -> Case:
    return Case(inputs(g, 2, 4, 5, 7, 0).arguments[:2])


def same_row(evidence: Evidence) -> bool | None:
    """Whether the same row, whichever it is, was added to every word; a sentence of one word cannot show it."""
    x, got = evidence.arguments[0], evidence.got
    if not isinstance(got, Tensor) or got.shape != x.shape:
        return False
    if x.shape[1] < 2:
        return None
    added = got.double() - x.double()
    return torch.allclose(added, added[:1, :1].expand_as(added), atol=1e-5) and bool(added.abs().max() > 1e-3)


def called_with(evidence: Evidence) -> tuple[Tensor, Tensor, int]:
    """The arguments, with the offset that is left out."""
    x, pe, *offset = evidence.arguments
    return x, pe, offset[0] if offset else 0


def last_rows(evidence: Evidence) -> bool:
    """Whether the last rows of the table were added."""
    x, pe = evidence.arguments[:2]
    got = evidence.got
    if not isinstance(got, Tensor) or got.shape != x.shape:
        return False
    return torch.allclose(got.double(), x.double() + pe.double()[len(pe) - x.shape[1] :], atol=1e-5)


def by_sentence(evidence: Evidence) -> bool:
    """Whether sentence b got row offset + b for all of its words, or the rows from offset + b on."""
    x, pe, offset = called_with(evidence)
    got, (B, T, _) = evidence.got, x.shape
    if not isinstance(got, Tensor) or got.shape != x.shape or offset + B > len(pe):
        return False
    rows = [pe.double()[offset : offset + B, None]]
    if offset + B + T - 1 <= len(pe):
        rows.append(torch.stack([pe.double()[offset + b : offset + b + T] for b in range(B)]))
    return any(torch.allclose(got.double(), x.double() + added, atol=1e-5) for added in rows)


def shifted_back(evidence: Evidence) -> bool | None:
    """Whether row 0 was added at position `offset`, row 1 to the next one, and so on; a sentence that ends before that
    position cannot show it."""
    x, pe, offset = called_with(evidence)
    got, T = evidence.got, x.shape[1]
    if not isinstance(got, Tensor) or got.shape != x.shape:
        return False
    if T <= offset:
        return None
    return torch.allclose(got[:, offset:].double(), x[:, offset:].double() + pe[: T - offset].double(), atol=1e-5)


def first_row(evidence: Evidence) -> int | None:
    """The row of the table at which the added ones begin, if they follow one another."""
    x, pe = evidence.arguments[:2]
    got, T = evidence.got, x.shape[1]
    if not isinstance(got, Tensor) or got.shape != x.shape:
        return None
    starts = (at for at in range(len(pe) - T + 1)
              if torch.allclose(got.double(), x.double() + pe[at : at + T].double(), atol=1e-5))
    return next(starts, None)


def begins_elsewhere(evidence: Evidence) -> bool | None:
    """Whether the rows of another position were added; where they begin with row 0, next to the right row, or as many
    rows before the end, other mistakes look alike, unless it is twice the offset."""
    x, pe, offset = called_with(evidence)
    first, last = first_row(evidence), len(pe) - x.shape[1]
    if first in (None, offset):
        return False
    alike = first in (0, offset - 1, offset + 1, last, last - offset)
    return None if alike and first != 2 * offset else True


def where_rows_begin(evidence: Evidence) -> str:
    return f"With offset = {called_with(evidence)[2]} your rows begin at row {first_row(evidence)}."


RIGHT = answer("""
    def add_positions(x, pe, offset=0):
        T = x.shape[1]
        rows = pe[offset:offset + T]
        return x + rows
""")
ROWS = "rows = pe[offset:offset + T]"

EXERCISE = Exercise(
    id="add-positions", number="07.2", difficulty=1, minutes=10, visible_points=1, hidden_points=3,
    reference=add_positions, section=ADD,
    probes=(
        visible("four words, a table of six rows", Case((WORDS, sinusoidal_table(6, 4)))),
        visible("2 sentences of 3 words, from position 2 on", inputs, 2, 3, 5, 8, 2),
        hidden("no offset given", without_offset, announced_by="offset=0"),
        *usual_probes(inputs, other=(3, 4, 6, 9, 3), smallest=(1, 1, 1, 6, 4), common=(2, 3, 4, 7, 1), precise=far),
        hidden("the whole table", inputs, 2, 5, 4, 5, 0, announced_by="offset + T is at most L"),
        hidden("the table's last rows", inputs, 2, 3, 4, 48, 45, announced_by="offset + T is at most L"),
        hidden("more sentences than words", inputs, 5, 2, 3, 9, 1, announced_by=PROMISED),
        hidden("as many sentences as words", inputs, 4, 4, 3, 9, 2, announced_by=PROMISED),
    ),
    mistakes=(
        mistake("the whole table", RIGHT.but(ROWS, "rows = pe"), ADD,
            "The whole table was added, which fits only a sentence that is as long as the table. Take as many rows as "
            "there are words."),
        mistake("offset ignored", RIGHT.but(ROWS, "rows = pe[:T]"), OFFSET,
            """The rows always begin at position 0. While decoding, one word comes at a time, and the third one is at
            position 2: `offset` is the position of the first word of x."""),
        mistake("from the offset to the length", RIGHT.but(ROWS, "rows = pe[offset:T]"), OFFSET,
            "The rows end at T. They begin at `offset`, and T of them are needed."),
        mistake("offset from the end", RIGHT.but(ROWS, "rows = pe[len(pe) - offset - T:len(pe) - offset]"), OFFSET,
            "The rows were counted from the end of the table. Position 0 is its first row."),
        mistake("one too far", RIGHT.but(ROWS, "rows = pe[offset + 1:offset + T + 1]"), OFFSET,
            "The rows begin one too late: the word at position `offset` gets row `offset`."),
        mistake("one too early", RIGHT.but(ROWS, "rows = pe[max(offset - 1, 0):max(offset - 1, 0) + T]"), OFFSET,
            "The rows begin one too early: the word at position `offset` gets row `offset`; do not subtract anything "
            "from it."),
        mistake("the number itself added", RIGHT.but(ROWS, "rows = pe[:T] + offset"), OFFSET,
            "The number `offset` was added to the rows of position 0 and on. It says which rows to take: those that "
            "begin at `offset`."),
        mistake("rolled the wrong way", RIGHT.but(ROWS, "rows = pe.roll(offset, 0)[:T]"), OFFSET,
            """The table was rolled or shifted the wrong way: row 0 is at position `offset` now, and row `offset` should
            be at position 0.""", shows=shifted_back),
        mistake("as many rows as features", RIGHT.but("x.shape[1]", "x.shape[-1]"), ADD,
            """As many rows were taken as a word has *features*. The words are counted by the second axis, x.shape[1]
            (in the example both are 4)."""),
        mistake("the whole table without an offset", RIGHT.but(ROWS, "rows = pe[offset:offset + T] if offset else pe"),
                ADD,
            "With offset = 0 the whole table was added. 0 is an offset like any other: T rows, from row 0 on."),
        mistake("the last rows", RIGHT.but(ROWS, "rows = pe[len(pe) - T:]"), OFFSET,
            """The last rows of the table were added, perhaps only for some offsets. The first word of x is at position
            `offset`, which is 0 by default: take T rows, from row `offset` on.""", shows=last_rows),
        mistake("as many rows as sentences", RIGHT.but(ROWS, "rows = pe[offset:offset + x.shape[0]]"), ADD,
            """As many rows were taken as there are *sentences*: x.shape[0] counts those. Words are counted by the
            second axis, x.shape[1]."""),
        mistake("one row too few", RIGHT.but(ROWS, "rows = pe[offset:offset + T - 1]"), ADD,
            """One row is missing: T - 1 rows were taken for T words. The row at which a slice ends is not part of it,
            so nothing has to be subtracted."""),
        mistake("rows transposed", RIGHT.but(ROWS, "rows = pe[offset:offset + T].T"), ADD,
            """The rows were transposed, so features were counted as positions. T rows of the table are (T, D), as the
            words of a sentence are."""),
        mistake("one row for all words", RIGHT.but(ROWS, "rows = pe[offset]"), ADD,
            "The same row was added to every word, so all positions look alike. Each word gets the row of its own "
            "position.", shows=same_row),
        mistake("indexed by the sentence", RIGHT.but(ROWS, "rows = pe[offset:offset + x.shape[0], None]"), ADD,
            """The rows depend on the sentence: sentence b got row b for all of its words, or rows that begin b rows
            later. Positions run along the words, the second axis, and every sentence gets the same rows.""",
            shows=by_sentence),
        mistake("put beside instead of added",
                RIGHT.but("x + rows", "torch.cat([x, rows.expand(len(x), -1, -1)], dim=-1)"), ADD,
            "The rows were concatenated to the words, so D has doubled. They are added.", quotes=sizes),
        mistake("multiplied", RIGHT.but("x + rows", "x * rows"), ADD,
                "The rows were multiplied with the words. They are added."),
        mistake("subtracted", RIGHT.but("x + rows", "x - rows"), ADD, "The rows were subtracted. They are added."),
        mistake("scaled by the root of D", RIGHT.but("x + rows", "x * x.shape[-1] ** 0.5 + rows"), ADD,
            """The words were multiplied by the root of D first. That is part of the embedding (02.4): x has been scaled
            already."""),
        mistake("positions scaled", RIGHT.but("x + rows", "x + rows / x.shape[-1] ** 0.5"), ADD,
            "The rows were scaled. They are added as they are."),
        mistake("positions to be learned", RIGHT.but("x + rows", "x + nn.Parameter(rows.clone())"), ADD,
            """The result is right, but no gradient reaches the table that was passed in: a new nn.Parameter,
            .detach() or torch.tensor(...) cuts it off. Add the rows as they are. A table of sines is not learned, but
            another table may be."""),
        mistake("the words alone", RIGHT.but("x + rows", "x.clone()"), ADD,
                "The words came back as they were: nothing was added."),
        mistake("offset twice", RIGHT.but(ROWS, "rows = pe[2 * offset:][:T]"), OFFSET,
            """The rows that were added follow one another in the table, but they begin at the wrong one: the word at
            position `offset` gets row `offset`. Was the offset counted twice, or changed before it was used?""",
            quotes=where_rows_begin, shows=begins_elsewhere),
        in_place("x", RIGHT.but("x + rows", "x.add_(rows)"), ADD),
        *usual_mistakes(RIGHT, detached=ADD, float32=ADD, squeezed=ADD, quotes_size=sizes),
    ),
    correct=(
        correct("slice", RIGHT),
        correct("lookup", formula("add_positions(x, table, start=0)",
                                  "x + table[torch.arange(start, start + x.size(1))]")),
        correct("index_select",
                formula("add_positions(x, pe, o=0)", "x + pe.index_select(0, torch.arange(x.shape[1]) + o)[None]")),
        correct("embedding",
                formula("add_positions(x, pe, offset=0)",
                        "x + F.embedding(torch.arange(offset, offset + x.shape[1]), pe)")),
        correct("loops", """
            def add_positions(x, pe, offset=0):
                words = [x[:, t] + pe[offset + t] for t in range(x.shape[1])]
                return torch.stack(words, dim=1)
        """),
        correct("narrow", formula("add_positions(x, pe, offset=0)", "torch.add(x, pe.narrow(0, offset, x.shape[1]))")),
    ),
    hints=(
        "which row of the table belongs to the first word of x?",
        "x (B, T, D) plus (T, D): broadcasting adds the same rows to every sentence.",
        "take T rows of pe, beginning with row `offset`; add them to x.",
    ),
)  # fmt: skip
