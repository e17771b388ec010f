"""13.1: windows of a text, and the same windows one token later."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from autograder.catalogue import families
from autograder.catalogue.ch13_gpt.shared import generator, sections
from autograder.catalogue.exercise import Case, Evidence, Exercise
from autograder.catalogue.families import Family
from autograder.catalogue.known_answers import answer, correct, mistake
from autograder.catalogue.normal_forms import InWords
from autograder.catalogue.numbers import number
from autograder.catalogue.probes import PROMISED, hidden, second_call, visible
from transformer_ref.beyond import gpt

(BATCH,) = sections("batch")
MANY = 4_000  # windows that are counted; at 12 places a share of 1/12 then differs by 0.0044 by chance
CHANCE = 0.03  # six times as much and more, which chance never does
X, Y = "x", "y"
PLACES = "fraction of windows that start at each position"
STEPS = "how far the next row's window begins from this one's"
ARE_WINDOWS, ARE_LATER = "windows of the text", "each token 1 position after that of x"
ELSEWHERE = "tokens of other positions in most rows"
OTHERS = "other tokens"
BY_TOKEN = (
    "after each token one that follows this token somewhere in the text, but not always at this position: y has to be "
    "taken by position, not by token"
)
FOREIGN = "numbers that do not occur in the text"
FILLED = "the next tokens, and at the end of each row a number that does not occur in the text"
FILLED_SOMETIMES = "the next tokens, but at the end of some rows a number that does not occur in the text"
AFTER_THE_END = "the next tokens, except after the last one of the text"


def lm_batch(ids: Tensor, T: int, g: torch.Generator, B: int) -> tuple[Tensor, Tensor]:
    """B windows of T tokens, and the same windows one token later."""
    return gpt.lm_batch(ids, T, g, B)


def with_words(case: Case, result: Any) -> Any:
    """What `what_they_are` finds, after a sentence about the first of it that is wrong."""
    found = what_they_are(case, result)
    return {"in words": _in_words(case, found), **found} if isinstance(found, dict) else found


def _in_words(case: Case, found: dict[str, Any]) -> str:
    ids, T, *_ = case.arguments
    for name, wanted in ((X, ARE_WINDOWS), (Y, ARE_LATER)):
        if found[name] != wanted:
            return InWords(f"{name} should hold {wanted}; yours holds {found[name]}")
    last = len(ids) - T
    for what, told in (
        (PLACES, "begin at position {}"), (STEPS, "begin {} positions after the one of the row before")
    ):  # fmt: skip
        if what in found:
            apart = found[what] - (torch.arange(len(ids)) < last) / last
            place = int(apart.abs().argmax())
            if abs(float(apart[place])) > CHANCE:
                return InWords(f"{float(found[what][place]):.1%} of the windows {told.format(place)}, where about "
                               f"{(place < last) / last:.1%} are expected")  # fmt: skip
    return "as expected"


def what_they_are(case: Case, result: Any) -> Any:
    """Of drawn windows: what x is and what y is, in words, and of many where they begin. Of a text with one window, and
    of other shapes, the numbers themselves."""
    ids, T, _, B = case.arguments
    if len(ids) == T + 1 or not isinstance(result, (tuple, list)) or len(result) != 2:
        return result
    if not all(isinstance(part, Tensor) and part.shape == (B, T) and part.dtype == torch.int64 for part in result):
        return result
    x, y = result
    if len(ids.unique()) < len(ids):
        fits = _stands(ids[:-1], x) & _stands(ids[1:], y)  # (batch, places)
        stand = _stands(ids, x).any(1)  # (batch,)
        found = ARE_WINDOWS if bool(stand.all()) else _but_one_row(stand)
        return {X: found or "no windows of the text",
                Y: ARE_LATER if bool(fits.any(1).all()) else BY_TOKEN if _follow(ids, x, y) else OTHERS}  # fmt: skip
    if not bool(torch.isin(x, ids).all() and torch.isin(y, ids).all()):
        return _of_foreign(ids, T, x, y)
    at, y_at = _places(ids, x), _places(ids, y)
    told = {X: _of_x(at, len(ids)), Y: _of_y(y_at - at, len(ids), at[:, -1] == len(ids) - 1)}
    if B >= 1_000:
        told |= _starts(at, len(ids), T)
    return told


def _stands(ids: Tensor, rows: Tensor) -> Tensor:
    """Whether a row occurs in the text at a position: (batch, places)."""
    return (ids.unfold(0, rows.shape[1], 1)[None] == rows[:, None]).all(-1)


def _follow(ids: Tensor, x: Tensor, y: Tensor) -> bool:
    """Whether every token of y follows that of x somewhere in the text."""
    pairs = torch.stack([ids[:-1], ids[1:]], dim=1)
    return bool((torch.stack([x, y], dim=-1)[..., None, :] == pairs).all(-1).any(-1).all())


def _of_foreign(ids: Tensor, T: int, x: Tensor, y: Tensor) -> dict[str, Any]:
    """What x and y are where one of them holds numbers that do not occur in the text."""
    foreign = ~torch.isin(y, ids)
    if not bool(torch.isin(x, ids).all()):
        return {X: FOREIGN, Y: FOREIGN}
    at, last = _places(ids, x), foreign[:, -1]
    told = {X: _of_x(at, len(ids)), Y: FOREIGN}
    if T > 1 and torch.equal(y[:, :-1], x[:, 1:]) and not bool(foreign[:, :-1].any()):
        told[Y] = FILLED if bool(last.all()) else FILLED_SOMETIMES
    return told | (_starts(at, len(ids), T) if len(x) >= 1_000 else {})


def _starts(at: Tensor, n: int, T: int) -> dict[str, Tensor]:
    """How often a row begins at each position of the text, and how far from the row before. at: as of `_of_x`."""
    starts = at[:, 0]
    return {
        PLACES: torch.bincount(starts, minlength=n).double() / len(at),
        STEPS: torch.bincount((starts[1:] - starts[:-1]) % (n - T), minlength=n).double() / (len(at) - 1),
    }


def _places(ids: Tensor, tokens: Tensor) -> Tensor:
    """Positions of tokens in a text that has each of them once."""
    order = ids.argsort()
    return order[torch.searchsorted(ids[order], tokens.contiguous())]


def _but_one_row(whole: Tensor) -> str:
    """Windows in most rows, and the first row that is none; empty if most rows are none. whole: (batch,)."""
    most = 2 * int(whole.sum()) > len(whole)
    return f"windows of the text in most rows, but not in row {int(whole.int().argmin())}" if most else ""


def _of_x(at: Tensor, n: int) -> str:
    """What x is. at: the position of each token in the text, (batch, tokens)."""
    steps, ahead = at - at[:, :1], torch.arange(at.shape[1])
    if bool((steps == ahead).all()):
        return ARE_WINDOWS
    if bool((steps == -ahead).all()):
        return "windows backwards"
    if bool((steps % n == ahead).all()):
        return "windows that go on at the beginning of the text where it ends"
    if bool((steps == steps[:1]).all()):
        return f"positions of the tokens, counted from the first of the row: {' '.join(map(str, steps[0].tolist()))}"
    if bool(((steps.diff(dim=1) == 1) | (steps.diff(dim=1) == 0)).all()):
        return "windows that repeat the last token of the text"
    whole = (steps == ahead).all(1)
    if found := _but_one_row(whole):
        return f"{found}, whose tokens have the positions {ids_of(at[int(whole.int().argmin())])}"
    return "no windows: its tokens do not follow each other in the text"


def _of_y(later: Tensor, n: int, to_the_end: Tensor) -> str:
    """What y is. later: how many positions after the one of x each token is, (batch, tokens). to_the_end: the rows
    whose x ends where the text does, (batch,)."""
    if bool((later == 1).all()):
        return ARE_LATER
    if bool((later % n == 1).all()):
        return "the next tokens, and after the last one of the text its first"
    around = (later + 1) % n - 1  # an index below 0 counts from the end of the text
    later = around if bool((around == around[0, 0]).all()) else later
    if bool((later == later[:1]).all()):
        each = " ".join(map(str, later[0].tolist()))
        return f"positions of the tokens, counted from those of x: {each}"
    wrong = (later != 1).any(1)
    if torch.equal(wrong, to_the_end) and bool((later[:, :-1] == 1).all()):
        return AFTER_THE_END
    return ELSEWHERE if int(wrong.sum()) >= 0.5 * len(later) else "tokens of other positions in some rows"


def windows(g: torch.Generator, n: int, T: int, B: int) -> Case:
    """A text of n tokens of which none occurs twice; 0 is one of them."""
    ids = torch.randperm(n + 5, generator=g)[:n]
    ids[int(torch.randint(n, (), generator=g))] = 0 if 0 not in ids.tolist() else ids[0]
    if len(ids.unique()) < n:
        ids = torch.randperm(n, generator=g)
    return Case((ids, T, generator(g), B))


def with_repeats(g: torch.Generator, n: int, T: int, B: int) -> Case:
    """A text in which tokens come again, as letters do."""
    ids = torch.cat([torch.randperm(9, generator=g), torch.randint(9, (n - 9,), generator=g)])
    return Case((ids, T, generator(g), B))


def shares(evidence: Evidence) -> list[float]:
    """How often windows begin at each place; nothing where they were not counted."""
    got = evidence.got.get(PLACES) if isinstance(evidence.got, dict) else None
    return got.tolist() if got is not None else []


def both(evidence: Evidence) -> str:
    """The first rows of x and y, where a text has one window."""
    if isinstance(evidence.got, dict):
        return (
            f"Here y holds {evidence.got[Y]}." if evidence.got[X] == ARE_WINDOWS else f"Here x holds {evidence.got[X]}."
        )
    x, y = evidence.got
    return f"Of the text {ids_of(evidence.arguments[0])} your x is {ids_of(x[0])} and your y is {ids_of(y[0])}."


def ids_of(ids: Tensor) -> str:
    return " ".join(map(str, ids.tolist()))


def counted(evidence: Evidence) -> str:
    """Where the windows began."""
    ids, T = evidence.arguments[:2]
    found = shares(evidence)
    beyond = [place for place in range(len(ids) - T, len(found)) if found[place]]  # where no window fits
    text = [number(share) for share in found[: max(len(ids) - T, *(place + 1 for place in beyond), 0)]]
    return (
        f"Of {evidence.arguments[3]:,} windows these fractions began at the positions 0, 1, 2 and so on: "
        f"{' '.join(text)}." if text else ""
    )


def one_place(evidence: Evidence) -> bool:
    return max(shares(evidence), default=0.0) > 0.999


def _steps(evidence: Evidence) -> list[float]:
    return evidence.got[STEPS].tolist() if shares(evidence) else []


def unlike_x(evidence: Evidence) -> bool | None:
    """Whether x is right and y is neither x nor x moved on by as many places in every row; None where tokens come
    again, so that y could be taken from the first place of each."""
    if isinstance(evidence.got, dict) and evidence.got[Y] in (OTHERS, BY_TOKEN):
        return None
    if isinstance(evidence.got, dict):
        return evidence.got[X] == ARE_WINDOWS and evidence.got[Y] == ELSEWHERE
    ids, (x, y) = evidence.arguments[0], evidence.got
    if not torch.equal(x, evidence.expected[0]) or y.shape != x.shape or not bool(torch.isin(y, ids).all()):
        return False
    return bool((_places(ids, y) != _places(ids, y)[:1]).any())


def scattered(evidence: Evidence) -> bool | None:
    """Whether the tokens of x do not follow each other in the text, neither forwards nor backwards; None where only one
    draw was possible, or where all rows agree by chance. Where most rows are windows it does not hold."""
    if isinstance(evidence.got, dict):
        return str(evidence.got[X]).startswith("no windows")
    ids, x = evidence.arguments[0], evidence.got[0]
    if x.shape != evidence.expected[0].shape or not bool(torch.isin(x, ids).all()):
        return False
    steps = _places(ids, x).diff(dim=1)
    onward = bool(((steps == 1) | (steps == 0)).all())  # as of a window that stops where the text does
    if onward or bool((steps == steps[:1]).all()):
        return None
    return bool((steps != -1).any())


def moved_by(places: int) -> Callable[[Evidence], bool | None]:
    """Whether each token of y is that many positions after that of x; None where tokens come again, so that places are
    not known."""

    def shows(evidence: Evidence) -> bool | None:
        ids, got = evidence.arguments[0], evidence.got
        if isinstance(got, dict):
            each = " ".join([str(places)] * evidence.arguments[1])
            told = f"positions of the tokens, counted from those of x: {each}"
            return None if got[Y] in (OTHERS, BY_TOKEN) else got[X] == ARE_WINDOWS and got[Y] == told
        x, y = got
        if not torch.equal(x, evidence.expected[0]) or y.shape != x.shape or not bool(torch.isin(y, ids).all()):
            return False
        return bool(((_places(ids, y) - _places(ids, x) - places) % len(ids) == 0).all())

    return shows


def same_distance(evidence: Evidence) -> bool:
    """Whether rows begin at places of one distance, and not all at one place."""
    steps = _steps(evidence)
    return bool(steps) and max(steps[1:]) > 0.95


def unequal(evidence: Evidence) -> bool:
    """Whether all places come, and some far more often than others."""
    ids, T = evidence.arguments[:2]
    found = shares(evidence)[: len(ids) - T]
    return bool(found) and min(found) > 0.002 and max(found) > 1.6 * min(found) and max(_steps(evidence)) < 0.5


def half_at_the_ends(evidence: Evidence) -> bool:
    """Whether the first and the last place come about half as often as each of the others."""
    ids, T = evidence.arguments[:2]
    first, *inner, last = shares(evidence)[: len(ids) - T] or (0.0, 0.0)
    mean = sum(inner) / max(len(inner), 1)
    return bool(inner) and min(inner) > 0.75 * mean and all(0.3 * mean < end < 0.7 * mean for end in (first, last))


def last_is_missing(evidence: Evidence) -> bool:
    """Whether all places come but the last."""
    ids, T = evidence.arguments[:2]
    found = shares(evidence)[: len(ids) - T]
    return bool(found) and found[-1] == 0 and min(found[:-1]) > 0.02


def some_are_missing(evidence: Evidence) -> bool:
    """Whether several places come, and some never."""
    ids, T = evidence.arguments[:2]
    found = shares(evidence)[: len(ids) - T]
    return bool(found) and min(found) == 0 and max(found) < 0.6 and sum(map(bool, found)) > 1


def made_up(evidence: Evidence) -> bool | None:
    """Whether windows begin at N - T, one too late, and their y ends in a token that does not come after the text; None
    where no window was drawn there, or where it cannot be seen."""
    ids, T = evidence.arguments[:2]
    if isinstance(evidence.got, dict):
        if not shares(evidence):
            return None if evidence.got[X] == ARE_WINDOWS else False
        late = shares(evidence)[len(ids) - T] > 0
        return late and evidence.got[Y] in (AFTER_THE_END, FILLED, FILLED_SOMETIMES)
    x, y = evidence.got
    if x.shape != evidence.expected[0].shape or y.shape != x.shape or x.dtype != ids.dtype:
        return False
    late = (x == ids[1:]).all(1)
    rolled = bool((y == ids.roll(-1)[1:]).all(1)[late].any())
    if not bool((late | (x == ids[:-1]).all(1)).all()) or rolled or not torch.equal(y[late, :-1], x[late, 1:]):
        return False
    return bool(y[late, -1].any()) if bool(late.any()) else None  # a mistake of its own ends in zeros


def in_rounds(evidence: Evidence) -> bool:
    """Whether no window comes again before all others came: there are fewer rows than B, all different, or of many rows
    the numbers of all windows are equal, and hardly one is the same as the row before."""
    ids, T, _, B = evidence.arguments
    if isinstance(evidence.got, dict):
        found = shares(evidence)[: len(ids) - T]
        return bool(found) and (max(found) - min(found)) * B < 1.5 and _steps(evidence)[0] < 0.3 / len(found)
    x, y = evidence.got
    fewer = x.shape == y.shape == (min(len(ids) - T, B), T) != (B, T)
    return fewer and len(x.unique(dim=0)) == len(x) and bool((_stands(ids[:-1], x) & _stands(ids[1:], y)).any(1).all())


def in_order(evidence: Evidence) -> bool:
    """Whether most rows begin where the one before began, though all places come."""
    found, steps = shares(evidence), _steps(evidence)
    return bool(found) and max(found) < 0.5 and steps[0] > 0.9


RIGHT = answer("""
    def lm_batch(ids, T, g, B):
        last = len(ids) - T
        starts = torch.randint(last, (B,), generator=g)
        places = starts[:, None] + torch.arange(T)
        x = ids[places]
        y = ids[places + 1]
        return x, y
""")
LAST, DRAW = "last = len(ids) - T", "starts = torch.randint(last, (B,), generator=g)"
WHERE, LATER, BOTH = "places = starts[:, None] + torch.arange(T)", "y = ids[places + 1]", "return x, y"
SLICES = answer("""
    def lm_batch(ids, T, g, B):
        starts = torch.randint(len(ids) - T, (B,), generator=g).tolist()
        x = torch.stack([ids[i:i + T] for i in starts])
        y = torch.stack([ids[i + 1:i + T + 1] for i in starts])
        return x, y
""")

# fmt: off
ONE_WINDOW_TOO_MANY = Family("one window too many", """Your last window leaves y without its last token: the text ends
    before it. A window may begin at 0, 1 and so on up to N - T - 1, since y reaches one token further than x.""")
AN_END_MADE_UP = Family("one window too many, its end made up", """Some of your windows begin at N - T, one
    position too late: they reach the end of the text, so the last token of y is made up there. The last position at
    which a window may begin is N - T - 1.""")
BEGINNING_ANYWHERE = Family("beginning anywhere", """In your code a window may begin at any token of the text, so
    those near its end reach beyond it. The last position at which one may begin is N - T - 1: T tokens for x, and y
    reaches one further.""")
# fmt: on

EXERCISE = Exercise(
    id="lm-batch", number="13.1", difficulty=1, minutes=15, visible_points=1, hidden_points=2,
    reference=lm_batch, normalize=with_words, section=BATCH, quotes=both,
    omits={
        "precision": "ids are small whole numbers, which are copied",
        "a batch of one": "B is a number, and one of the probes asks for 1",
        "a length of one": "T is a number, and one of the probes asks for 1; the text has more tokens",
    },
    probes=(
        visible("a text of 6 tokens, T = 5",
                Case((torch.tensor([17, 4, 9, 0, 12, 8]), 5, torch.Generator().manual_seed(3555), 3))),
        visible("windows of a longer text", windows, 40, 6, 5),
        visible("4,000 windows", windows, 17, 5, MANY, rtol=0.0, atol=CHANCE),
        hidden("4,000 windows, by the generator g", windows, 11, 4, MANY, rtol=0.0, atol=CHANCE, checks={"generator"},
               announced_by="drawn only with g"),
        hidden("other sizes", windows, 60, 9, 7, announced_by=PROMISED),
        hidden("tokens that come again", with_repeats, 30, 4, 6, announced_by=PROMISED),
        hidden("one window of one token", windows, 8, 1, 1, announced_by="T: at least 1"),
        hidden("windows as long as the text allows", windows, 9, 8, 4, announced_by="N is at least T + 1"),
        second_call(windows, 30, 5, 6),
    ),
    mistakes=(
        mistake("y is x", RIGHT.but(LATER, "y = ids[places]"), BATCH,
            """y is x itself: the model would have to predict the token that it was just shown, and it would learn to
            copy. The token to predict is one position later."""),
        mistake("y two tokens later", RIGHT.but(LATER, "y = ids.roll(-2)[places]"), BATCH,
            "y is two tokens later than x, so a token is skipped between input and target. Return the *next* token.",
            shows=moved_by(2)),
        mistake("y one token earlier", RIGHT.but(LATER, "y = ids[places - 1]"), BATCH,
            "y is one token *earlier* than x: the model would have to predict what comes before a token. The next "
            "token is one position later.",
            shows=moved_by(-1)),
        mistake("x and y exchanged", RIGHT.but(BOTH, "return y, x"), BATCH,
            "x and y are exchanged: first comes the model's input, then the same window one token later."),
        mistake("y rolled inside of its window", RIGHT.but(LATER, "y = x.roll(-1, dims=1)"), BATCH,
            """The last token of y is the first one of its window: the window was rolled around. What follows its last
            token is in the text, one position further on."""),
        mistake("y rolled the wrong way", RIGHT.but(LATER, "y = x.roll(1, dims=1)"), BATCH,
            "y is x rolled around, and one token *earlier*: its first token is the last of the window. y is the text "
            "one position further on."),
        mistake("1 added to the ids", RIGHT.but(LATER, "y = x + 1"), BATCH,
            "You added 1 to the *ids*, which makes other tokens of them. It is the *position* in the text that goes on "
            "by 1."),
        mistake("only the token after the window", RIGHT.but(LATER, "y = ids[starts + T]"), BATCH,
            "y holds one token a row, the one after the window. Every token of x has one that follows it: y is (B, "
            "T), as x is."),
        mistake("rows joined end to end", RIGHT.but(BOTH, "return x.flatten(), y.flatten()"), BATCH,
            "The rows are joined end to end. Each window has a row of its own: (B, T)."),
        mistake("y filled up with 0 at its end", RIGHT.but(LATER, "y = F.pad(x[:, 1:], (0, 1))"), BATCH,
            """The last token of y is a 0 that is not in the text. The token after the window is in the text: y is cut
            from there, and not out of x."""),
        mistake("y one token short", RIGHT.but(BOTH, "return x, y[:, :-1]"), BATCH,
            "y has T - 1 tokens. To every token of x belongs the one that follows, so both have T; the last one "
            "follows the window."),
        mistake("both cut from a window of T", RIGHT.but(BOTH, "return x[:, :-1], x[:, 1:]"), BATCH,
            """x and y have T - 1 tokens each: both were cut from a window of T. For T tokens and the one after each you
            need T + 1 tokens of the text."""),
        mistake("y drawn for itself", RIGHT.but(
                  LATER, "others = torch.randint(last, (B,), generator=g)\n    y = ids[others[:, None] + "
                         "torch.arange(T) + 1]"), BATCH,
            """y does not belong to the x of its row: its windows begin elsewhere, for example because they are drawn a
            second time or taken from a different row. Use one draw for both.""",
            shows=lambda evidence: unlike_x(evidence) if isinstance(evidence.got, dict) else False),
        mistake("y of random tokens", RIGHT.but(LATER, "y = ids[torch.randint(len(ids), (B, T), generator=g)]"), BATCH,
            "y holds tokens from anywhere in the text. It is x moved on by one token.", shows=unlike_x),
        mistake("always the first window", RIGHT.but(DRAW, "starts = torch.zeros(B, dtype=torch.long)"), BATCH,
            "Every window begins at position 0: the rest of the text is never read. Where a window begins is drawn, "
            "for every row.", quotes=counted),
        mistake("one window for all rows", RIGHT.but("(B,), generator=g)", "(1,), generator=g).expand(B)"), BATCH,
            """All windows of the batch begin at one and the same position, so B rows teach no more than one. Every row
            has a draw of its own.""",
            quotes=counted, shows=one_place),
        mistake("one window after another",
                RIGHT.but(DRAW, "starts = (torch.randint(last, (1,), generator=g) + torch.arange(B)) % last"), BATCH,
            """Each row's window begins at the same distance from that of the row before, so the rows of a batch always
            have the same distances. Draw the start of a window for *every* row.""", quotes=None, shows=same_distance),
        mistake("sorted", RIGHT.but("(B,), generator=g)", "(B,), generator=g).sort().values"), BATCH,
            """The positions were sorted after they were drawn: the first row is always near the beginning of the text.
            Each row's window is drawn independently and stays in its row.""", quotes=None, shows=in_order),
        mistake("without replacement", RIGHT.but(DRAW, "starts = torch.randperm(last, generator=g)[:B]"), BATCH,
            """No window comes again before all the others have come, so each row depends on those before it. (If each
            comes only once, there are not enough for a large B.) Every row draws among all windows, also those that
            others have drawn: that is *with replacement*.""", quotes=None, shows=in_rounds),
        mistake("the last window never comes", RIGHT.but(LAST, "last = len(ids) - T - 1"), BATCH,
            """The last window never comes. With N tokens a window may begin at 0, 1 and so on up to N - T - 1: N - T
            positions, since y reaches one token further than x. An upper end such as that of range or torch.randint is
            itself left out.""", quotes=counted),
        mistake("the first window never comes", RIGHT.but(DRAW, "starts = torch.randint(1, last, (B,), generator=g)"),
                BATCH,
            "No window begins at position 0: your draws begin at 1. With N tokens a window may begin at 0, 1 and so on "
            "up to N - T - 1.", quotes=counted),
        mistake("cut into pieces",
                RIGHT.but(DRAW, "starts = torch.randint((len(ids) - 1) // T, (B,), generator=g) * T"), BATCH,
            """Your windows begin only at multiples of T: the text was cut into pieces. A window may begin at any
            position from 0 to N - T - 1.""",
            quotes=counted),
        mistake("the last window comes only where it is the only one",
                RIGHT.but(LAST, "last = max(len(ids) - T - 1, 1)"), BATCH,
            """The last window never comes. With N tokens a window may begin at 0, 1 and so on up to N - T - 1: N - T
            positions, since y reaches one token further than x.""", quotes=counted, shows=last_is_missing),
        mistake("some windows never come",
                RIGHT.but("(B,), generator=g)", "(B,), generator=g).clamp(min=min(1, last - 1))"), BATCH,
            """At some positions no window ever begins. All N - T of them come, equally often: 0, 1 and so on up to N -
            T - 1.""",
            quotes=counted, shows=some_are_missing),
        ONE_WINDOW_TOO_MANY(RIGHT.but(LAST, "last = len(ids) - T + 1"), BATCH),
        ONE_WINDOW_TOO_MANY(SLICES.but("len(ids) - T, ", "len(ids) - T + 1, "),
            BATCH, name="one window too many, in slices"),
        AN_END_MADE_UP(RIGHT.but(LAST, "last = len(ids) - T + 1").but(
                  LATER, "y = ids[(places + 1).clamp(max=len(ids) - 1)]"), BATCH, shows=made_up),
        AN_END_MADE_UP(RIGHT.but(LAST, "last = len(ids) - T + 1").but(LATER, "y = F.pad(ids, (0, 1))[places + 1]"),
            BATCH, name="one window too many, its end a 0"),
        BEGINNING_ANYWHERE(RIGHT.but(LAST, "last = len(ids)"), BATCH),
        BEGINNING_ANYWHERE(SLICES.but("len(ids) - T, ", "len(ids), "), BATCH, name="beginning anywhere, in slices"),
        mistake("going on at the beginning",
                RIGHT.but(LAST, "last = len(ids)").but("x = ids[places]", "x = ids[places % len(ids)]").but(
                  LATER, "y = ids[(places + 1) % len(ids)]"), BATCH,
            """Windows near the end of your text go on at its beginning. The text does not: a window begins early enough
            for all of it, and the token after it, to be there."""),
        mistake("the last token again and again",
                RIGHT.but(LAST, "last = len(ids)").but("ids[places]", "ids[places.clamp(max=len(ids) - 1)]").but(
                  LATER, "y = ids[(places + 1).clamp(max=len(ids) - 1)]"), BATCH,
            """Near the end of the text your windows repeat its last token, so that they fit. A window begins early
            enough for all of it, and the token after it, to be there."""),
        mistake("y rolled over the text",
                RIGHT.but(LAST, "last = len(ids) - T + 1").but(LATER, "y = ids.roll(-1)[places]"), BATCH,
            """After the last token of the text you put its first one, as if the text were a circle. The last window
            begins one position earlier.""",
            quotes=counted),
        mistake("fractions rounded",
                RIGHT.but(DRAW, "starts = (torch.rand(B, generator=g) * (last - 1)).round().long()"), BATCH,
            """The first and the last start come half as often as the others: were fractions rounded? All N - T starts
            have to come equally often.""", quotes=counted, shows=half_at_the_ends),
        mistake("some places more often",
                RIGHT.but(DRAW, "starts = (torch.rand(B, generator=g) * torch.rand(B, generator=g) * last).long()"),
                BATCH,
            """Some positions come more often than others. Each of the N - T positions at which a window may begin has
            to come equally often: draw among these only. If you draw among more and then move what is too late, as a
            clamp or a remainder does, the positions to which it is moved come too often.""",
            quotes=counted, shows=unequal),
        mistake("the tokens' places instead of the tokens",
                RIGHT.but("x = ids[places]", "x = places").but(LATER, "y = places + 1"), BATCH,
            "x and y hold *positions* in the text. Return the ids at those positions."),
        mistake("scattered tokens", RIGHT.but(WHERE, "places = torch.randint(last, (B, T), generator=g)"), BATCH,
            """Every token of x was drawn separately, so no row is a piece of the text. One draw a row says where its
            window begins; the T tokens follow each other.""", shows=scattered),
        mistake("backwards", RIGHT.but(WHERE, "places = starts[:, None] + torch.arange(T).flip(0)"), BATCH,
            "The windows are reversed: a text is read from the front."),
        mistake("tokens before rows", RIGHT.but(BOTH, "return x.T, y.T"), BATCH,
            "Your shapes are (T, B). Batch first: (B, T)."),
        mistake("one row", RIGHT.but(BOTH, "return x[0], y[0]"), BATCH,
            "One window came back. Return B of them, as rows: (B, T)."),
        mistake("T and B exchanged", RIGHT.but("def lm_batch(ids, T, g, B):", "def lm_batch(ids, B, g, T):"), BATCH,
            "T and B are exchanged: T is how many tokens a window has, and B how many windows there are."),
        mistake("stuck together", RIGHT.but(BOTH, "return torch.stack([x, y], dim=1)"), BATCH,
            "One tensor came back. Return two tensors, x and y, each (B, T)."),
        mistake("floats", RIGHT.but(BOTH, "return x.float(), y.float()"), BATCH,
            "Your tokens are floats. An embedding looks up whole numbers: they stay long, as they came."),
        mistake("lists", RIGHT.but(BOTH, "return x.tolist(), y.tolist()"), BATCH,
            "Lists came back. A model takes tensors: x and y, each (B, T)."),
        families.G_NOT_USED(RIGHT.but(", generator=g", ""), BATCH),
        families.G_SEEDED(RIGHT.but("generator=g", "generator=g.manual_seed(0)"), BATCH, same="batch is the same"),
        mistake("a copy of g", RIGHT.but(DRAW, """
                  own = torch.Generator()
                  own.set_state(g.get_state())
                  starts = torch.randint(last, (B,), generator=own)"""), BATCH,
            """g did not advance, so the windows were not drawn from it. A copy of g draws the same windows in every
            call; the module random or numpy draws windows that the same g does not reproduce. Draw from g itself."""),
        mistake("the text changed", RIGHT.but(BOTH, "ids += 0 * ids[0]\n    ids[0] += 1\n    return x, y"), BATCH,
            "Your function changed the caller's text. The next batch is cut from it as well: leave it as it is."),
    ),
    correct=(
        correct("places in a table", RIGHT),
        correct("slices", SLICES),
        correct("all windows first", """
            def lm_batch(ids, T, g, B):
                table = ids.unfold(0, T + 1, 1)
                rows = table[torch.randint(table.shape[0], (B,), generator=g)]
                return rows[:, :-1], rows[:, 1:]
        """),
        correct("a loop, one draw at a time", """
            def lm_batch(text, length, rng, rows):
                x = torch.empty(rows, length, dtype=torch.long)
                y = x.clone()
                for r in range(rows):
                    i = int(torch.randint(0, text.numel() - length, (1,), generator=rng))
                    for t in range(length):
                        x[r, t], y[r, t] = text[i + t], text[i + t + 1]
                return x, y
        """),
        correct("rand, cut to whole numbers",
                RIGHT.but(DRAW, "starts = (torch.rand(B, generator=g, dtype=torch.float64) * last).long()")),
        correct("multinomial, gather", """
            def lm_batch(ids, T, g, B):
                n = ids.size(0) - T
                start = torch.multinomial(torch.ones(n), B, replacement=True, generator=g)
                at = (start.view(-1, 1) + torch.arange(T + 1)).flatten()
                both = torch.gather(ids, 0, at).view(B, T + 1)
                return [both[:, :T].contiguous(), both[:, 1:].contiguous()]
        """),
    ),
    hints=(
        "which tokens does the model see, and which one must it predict after each of them? How many positions are "
        "there for a window to begin?",
        "ids (N,), starts (B,), positions (B, T) = a start for each row plus 0, 1 and so on; ids at the positions are "
        "x (B, T), at the positions + 1 y.",
        "draw B starts below N - T with g; add 0 to T - 1 to each; look up x there and y one position later.",
    ),
)  # fmt: skip
