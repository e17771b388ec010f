"""11.2: the next word drawn, by temperature, top-k and top-p."""

from typing import Any

import torch
from torch import Tensor

from autograder.catalogue import families
from autograder.catalogue.ch11_inference.shared import sections
from autograder.catalogue.exercise import Case, Evidence, Exercise
from autograder.catalogue.families import in_place
from autograder.catalogue.known_answers import answer, correct, mistake
from autograder.catalogue.normal_forms import InWords
from autograder.catalogue.probes import PROMISED, hidden, second_call, visible
from autograder.catalogue.quotes import row
from transformer_ref.decoding.sampling import sampling_probabilities

SAMPLE, TEMPERATURE, NUCLEUS = sections("sample temperature nucleus")
SHARES = torch.tensor([0.4, 0.25, 0.15, 0.1, 0.06, 0.04])  # no sum of the first few is near one of the top_p below
MANY, FEWER = 20_000, 4_000  # draws, of two kinds; a share near a half then differs by 0.007 and 0.016 by chance
# of which top_p = 0.93 keeps two tokens more, with tau = 0.16
FLATTER = torch.tensor([0.28, 0.24, 0.2, 0.14, 0.08, 0.06])
CHANCE = {MANY: 0.045, FEWER: 0.1}  # six times as much, which chance never does
SMALL = 1_000  # with fewer rows, the ids themselves are compared
EACH, DRAWN_AT_ALL = "how often each token was drawn", "whether it was drawn at all"


def sample(
    logits: Tensor, tau: float, top_k: int | None, top_p: float | None, g: torch.Generator
) -> Tensor:
    """One token for each row, drawn from what temperature, top-k and top-p leave: (B,)."""
    if tau == 0:
        return logits.argmax(dim=-1)
    shares = sampling_probabilities(logits, tau, top_k, top_p)
    return torch.multinomial(shares, 1, generator=g).squeeze(1)


def how_often(case: Case, result: Any) -> Any:
    """The frequency of each token for each kind of row, in words and as numbers, and the tokens drawn; few draws are
    unchanged."""
    logits = case.arguments[0]
    B, V = logits.shape
    usable = isinstance(result, Tensor) and result.shape == (B,) and result.dtype == torch.int64
    if B < SMALL or not usable or not bool(((result >= 0) & (result < V)).all()):
        return result
    counts = torch.bincount(torch.arange(B) % 2 * V + result, minlength=2 * V).view(2, V).double()  # kinds take turns
    found = counts / counts.sum(dim=1, keepdim=True)
    return {"in words": _in_words(case, found), EACH: found, DRAWN_AT_ALL: counts > 0}


def _in_words(case: Case, found: Tensor) -> str:
    """How often the kind of row that is furthest from right got each token, and the probabilities; "as expected" where
    both kinds are right."""
    logits, tau, top_k, top_p, _ = case.arguments
    exact = sampling_probabilities(logits[:2], tau, top_k, top_p)
    apart = (found - exact).abs().amax(dim=1)
    if bool((apart <= CHANCE[len(logits)]).all()) and torch.equal(found > 0, exact > 0):
        return "as expected"
    kind = int(apart.argmax())
    rows = ("0, 2, 4", "1, 3, 5")[kind]
    return InWords(
        f"rows {rows} and so on hold the same logits. In these {len(logits) // 2:,} draws your tokens came with "
        f"frequencies {row(found[kind])}; about {row(exact[kind])} would be correct{_likely_rule(case, found, kind)}"
    )


def _likely_rule(case: Case, found: Tensor, kind: int) -> str:
    """A different rule that gives these tokens, as the end of the sentence; "" where none is known to."""
    logits, tau, top_k, top_p, _ = case.arguments
    exact, drawn = sampling_probabilities(logits[:2], tau, top_k, top_p) > 0, found > 0
    if torch.equal(drawn, exact):
        return ""
    shares = sampling_probabilities(logits[:2], tau, top_k, None)
    some_left_out = bool((drawn.sum(dim=1) < (shares > 0).sum(dim=1)).all())
    if some_left_out and top_p and torch.equal(drawn, shares >= top_p * shares.amax(dim=1, keepdim=True)):
        return (f". You drew exactly the tokens with at least {top_p:g} times the largest probability. That rule is "
                "called min-p; top_p adds up the largest probabilities")  # fmt: skip
    if top_p is not None and top_k is not None and torch.equal(drawn, shares > 0):
        return ". You drew all tokens that top_k keeps: did top_p choose among them?"
    if top_k is not None and int(drawn[kind].sum()) > top_k and torch.equal(drawn[1 - kind], exact[1 - kind]):
        return (f". With top_k = {top_k}, {int(drawn[kind].sum())} different tokens came here, and in the rows between "
                "the correct ones: does each row have a threshold of its own?")  # fmt: skip
    return ""


def draws(
    g: torch.Generator, B: int, tau: float, top_k: int | None = None, top_p: float | None = None,
    dtype: torch.dtype = torch.float32, far: float = 0.0, second: Tensor = SHARES,
) -> Case:  # fmt: skip
    """Alternating rows of two kinds, with different probabilities; far: added to all logits of the second."""
    kinds = torch.stack([SHARES.double().log()[_order(g)] + 1.5, second.double().log()[_order(g)] - 0.5 + far])
    return Case((kinds[torch.arange(B) % 2].to(dtype), tau, top_k, top_p, _generator(g)))


def _order(g: torch.Generator) -> Tensor:
    """Places of the six tokens, of which neither the first nor the last is the likeliest."""
    order = torch.randperm(6, generator=g)
    while int(order[0]) == 0 or int(order[-1]) == 0 or bool((order.diff() > 0).all()):
        order = torch.randperm(6, generator=g)
    return order


def _generator(g: torch.Generator) -> torch.Generator:
    return torch.Generator().manual_seed(int(torch.randint(1 << 40, (), generator=g)))


def in_order() -> Case:
    """The shares as the task has them, for a row to be done by hand."""
    kinds = torch.stack([SHARES, SHARES.flip(0)]).log()
    return Case((kinds[torch.arange(MANY) % 2], 1.0, None, 0.55, torch.Generator().manual_seed(9)))


def nothing_to_draw(g: torch.Generator) -> Case:
    """One row of which one token is kept."""
    return Case((torch.randn(1, 7, generator=g), 0.8, 1, None, _generator(g)))


def largest(g: torch.Generator, B: int, top_k: int | None = None, top_p: float | None = None) -> Case:
    return Case((torch.randn(B, 7, generator=g), 0, top_k, top_p, _generator(g)))


def one_token(g: torch.Generator) -> Case:
    return Case((torch.randn(3, 1, generator=g), 0.7, 2, 0.9, _generator(g)))


def equal_rows_alike(evidence: Evidence) -> bool | None:
    """Whether equal rows always got one token of several; None where it is the likeliest, maybe the only one left."""
    got, expected = evidence.got, evidence.expected
    if not isinstance(got, dict) or not bool((got[EACH] == 1).any(dim=1).all()):
        return False
    if bool((got[EACH].argmax(dim=1) == expected[EACH].argmax(dim=1)).all()):
        return None
    return not bool((expected[EACH] == 1).any(dim=1).all())


RIGHT = answer("""
    def sample(logits, tau, top_k, top_p, g):
        if tau == 0:
            return logits.argmax(dim=-1)
        logits = logits / tau
        if top_k is not None:
            kept = min(top_k, logits.shape[-1])
            weakest = logits.topk(kept, dim=-1).values[:, -1:]
            logits = logits.masked_fill(logits < weakest, float('-inf'))
        shares = torch.softmax(logits, dim=-1)
        if top_p is not None:
            ordered, order = shares.sort(dim=-1, descending=True)
            before = ordered.cumsum(dim=-1) - ordered
            ordered = ordered.masked_fill(before >= top_p, 0.0)
            shares = torch.zeros_like(shares).scatter(1, order, ordered)
        drawn = torch.multinomial(shares, 1, generator=g)
        return drawn.squeeze(1)
""")
HOT, DRAWN = "logits = logits / tau", "drawn = torch.multinomial(shares, 1, generator=g)"
SORTED, BEFORE = "ordered, order = shares.sort(dim=-1, descending=True)", "before = ordered.cumsum(dim=-1) - ordered"
CROSSES, BACK = "before >= top_p", "shares = torch.zeros_like(shares).scatter(1, order, ordered)"
SHARED, ZERO = "shares = torch.softmax(logits, dim=-1)", "if tau == 0:"
INVERSE = """
    u = torch.rand(len(shares), 1, generator=g)
    drawn = (shares.cumsum(dim=-1) < u).sum(dim=-1, keepdim=True)
"""


def among(rows: int) -> dict:
    """The tolerance of frequencies for this many draws."""
    return {"atol": CHANCE[rows], "rtol": 0.0}


EXERCISE = Exercise(
    id="sample", number="11.2", difficulty=3, minutes=35, visible_points=1, hidden_points=5,
    reference=sample, normalize=how_often, section=SAMPLE, seconds=40.0,
    probes=(
        visible("20,000 draws, top_p = 0.55", in_order(), **among(MANY)),
        visible("tau = 0.5", draws, FEWER, 0.5, **among(FEWER)),
        visible("top_p = 0.3, which the likeliest token crosses", draws, FEWER, 1.0, None, 0.3, **among(FEWER)),
        visible("tau = 0", largest, 4),
        hidden("20,000 draws from all tokens", draws, MANY, 1.0, checks={"generator"},
               announced_by="use only g as the source of randomness", **among(MANY)),
        hidden("tau = 2", draws, FEWER, 2.0, announced_by="tau: 0 or more", **among(FEWER)),
        hidden("top_k = 3", draws, FEWER, 1.0, 3, announced_by="only the top_k likeliest stay", **among(FEWER)),
        hidden("top_k of more than all tokens", draws, FEWER, 1.0, 10, announced_by="may be more than V",
               **among(FEWER)),
        hidden("a top_p that the first token crosses", draws, FEWER, 1.5, None, 0.05,
               announced_by="The token with which the sum reaches p stays too", **among(FEWER)),
        hidden("top_p = 1", draws, FEWER, 1.0, None, 1.0, announced_by="above 0 and at most 1", **among(FEWER)),
        hidden("tau, then top_p", draws, FEWER, 0.16, None, 0.93, second=FLATTER,
               announced_by="First tau, then top_k, then top_p", **among(FEWER)),
        hidden("top_k, then top_p", draws, FEWER, 1.0, 3, 0.45,
               announced_by="the probabilities of the tokens that top_k keeps", **among(FEWER)),
        hidden("float64, far from 0", draws, FEWER, 1.0, dtype=torch.float64, far=1e8, announced_by=PROMISED,
               **among(FEWER)),
        hidden("one row, one token kept", nothing_to_draw, announced_by="logits: (B, V)"),
        hidden("a vocabulary of one token", one_token, announced_by=PROMISED),
        hidden("tau = 0 with top_k and top_p", largest, 3, 2, 0.5, announced_by="0 takes the likeliest token"),
        second_call(draws, FEWER, 0.7, 4, 0.9, **among(FEWER)),
    ),
    mistakes=(
        mistake("the token that crosses p left out", RIGHT.but(CROSSES, "ordered.cumsum(dim=-1) > top_p"), NUCLEUS,
            """The token whose probability carries the sum over p was left out. Even the first token may exceed it, and
            then nothing is left to draw from. Add up only the *likelier* ones, without it."""),
        mistake("the token that crosses p left out, but for the first",
                RIGHT.but("before >= top_p", "ordered.cumsum(dim=-1) > top_p").after(
                  "ordered = ordered.masked_fill(ordered.cumsum(dim=-1) > top_p, 0.0)",
                  "ordered[:, 0] = shares.max(dim=-1).values"), NUCLEUS,
            """The token whose probability carries the sum over p was left out; only the first always stays. What is
            kept reaches p, so the one that crosses it stays."""),
        mistake("one token more than p", RIGHT.but(
                  CROSSES, "before - ordered.roll(1, dims=-1) * (torch.arange(ordered.shape[-1]) > 0) >= top_p"),
                  NUCLEUS,
            "One token too many was kept: p had been crossed already by the one before."),
        mistake("not put back in order", RIGHT.but(BACK, "shares = ordered"), NUCLEUS,
            """The token ids are permuted: after sorting, position 0 is the *likeliest* token and no longer token 0. Put
            the probabilities back to the tokens that they belong to."""),
        mistake("put back the wrong way", RIGHT.but(BACK, "shares = ordered.gather(1, order)"), NUCLEUS,
            """The probabilities went back to the wrong tokens: `order` says which position a sorted one came from.
            Reading by it sorts a second time; writing by it (or sorting `order` itself) undoes the sorting."""),
        mistake("sorted from the least", RIGHT.but("descending=True", "descending=False"), NUCLEUS,
            "The probabilities were added up from the smallest: the unlikely tokens stayed, and the likely ones were "
            "cut off."),
        mistake("not sorted at all",
                RIGHT.but(SORTED, "ordered, order = shares, torch.arange(shares.shape[-1]).expand(shares.shape)"),
                NUCLEUS,
            "The probabilities were added up in the order of the vocabulary. The fewest tokens that reach p are the "
            "likeliest: sort first."),
        mistake("a threshold for each token", RIGHT.but(CROSSES, "ordered < 1 - top_p"), NUCLEUS,
            "Each probability was compared separately with a number. top_p looks at what the likeliest tokens reach "
            "*together*."),
        mistake("top_p not used", RIGHT.but("if top_p is not None:", "if False:"), NUCLEUS,
            "top_p has no effect: tokens of the tail are drawn."),
        mistake("left out, but not shared out anew", RIGHT.but(DRAWN, INVERSE), NUCLEUS,
            """What was left out has left a gap: your probabilities sum to less than 1, and a number drawn beyond their
            sum belongs to no token. Divide by the sum of what is left."""),
        mistake("the gap goes to the last token", RIGHT.but(DRAWN, INVERSE).but("return drawn.squeeze(1)",
                  "return drawn.squeeze(1).clamp(max=shares.shape[-1] - 1)"), NUCLEUS,
            """The last token is drawn far too often: what was left out has left a gap in the probabilities, and all
            that falls into it goes there. Divide by the sum of what is left."""),
        mistake("top_p before top_k",
                RIGHT.but("if top_k is not None:",
                          "full = torch.softmax(logits, dim=-1)\n    if top_k is not None:").but(
                  BEFORE, "ordered_full = full.sort(dim=-1, descending=True).values\n        before = "
                          "ordered_full.cumsum(dim=-1) - ordered_full"), NUCLEUS,
            """With both, top_p counted the probabilities that the tokens had before top_k. Those that top_k leaves are
            renormalized first, so the likeliest token alone may reach p."""),
        mistake("tau after the filters",
                RIGHT.without(HOT).but(DRAWN, "drawn = torch.multinomial(shares ** (1 / tau), 1, generator=g)"),
                TEMPERATURE,
            """The temperature came last, after top_p had chosen by the old probabilities. A sharper distribution
            reaches p with fewer tokens: first tau, then the filters."""),
        mistake("tau on the shares", RIGHT.without(HOT).but(SHARED, "shares = torch.softmax(logits, dim=-1) / tau"),
                TEMPERATURE,
            """tau has no effect. If you divided the probabilities by it: a common factor changes nothing in the draw.
            It is the *logits*, before the softmax, that a temperature divides."""),
        mistake("multiplied by tau", RIGHT.but("logits / tau", "logits * tau"), TEMPERATURE,
            "Small tau made your probabilities flatter, and large tau sharper: divide by it."),
        families.ROOT_OF_TAU(RIGHT.but("logits / tau", "logits / tau ** 0.5"), TEMPERATURE),
        families.DIVIDED_BY_TAU_0(RIGHT.but(ZERO, "if False:"), TEMPERATURE),
        mistake("tau = 0 as if it were 1", RIGHT.but(ZERO, "if False:").but("logits / tau", "logits / (tau or 1)"),
                TEMPERATURE,
            """With tau = 0 you returned tokens other than the likeliest. If you still draw at random, 0 was replaced by
            a different number (`tau or 1` does that). 0 is a temperature: the likeliest token takes
            everything, whatever top_k and top_p are.""",
            shows=lambda evidence: evidence.arguments[1] == 0 and evidence.got.shape == evidence.expected.shape),
        mistake("always the likeliest", RIGHT.but(DRAWN, "drawn = shares.argmax(dim=-1, keepdim=True)"), SAMPLE,
            "Always the same token came: the likeliest. That is greedy. Here it is *drawn*, with its probability."),
        mistake("all tokens alike",
                RIGHT.but(DRAWN, "drawn = torch.multinomial((shares > 0).double(), 1, generator=g)"), SAMPLE,
            "All tokens that are left come equally often. A likely one comes more often, with its probability."),
        mistake("softmax over the batch", RIGHT.but("torch.softmax(logits, dim=-1)", "torch.softmax(logits, dim=0)"),
                SAMPLE,
            """Your probabilities sum to 1 for each *token*, over all rows of the batch. Each row needs its own
            distribution, which sums to 1 over the vocabulary, the last axis."""),
        mistake("logits taken for shares", RIGHT.but(SHARED, "shares = logits.clamp(min=1e-9)"), SAMPLE,
            "You drew by the logits themselves. Probabilities come out of the softmax."),
        mistake("one number for all rows", RIGHT.but(DRAWN, """
                  u = torch.rand((), generator=g)
                  drawn = (shares.cumsum(dim=-1) / shares.sum(dim=-1, keepdim=True) < u).sum(dim=-1,
                      keepdim=True).clamp(max=shares.shape[-1] - 1)
            """), SAMPLE,
            """One random number decided for all rows, so equal rows got equal tokens. Each row draws for itself.""",
            shows=equal_rows_alike),
        families.FIRST_ROW_FOR_ALL(RIGHT.but(
                  DRAWN, "drawn = torch.multinomial(shares[0], len(shares), replacement=True, generator=g)[:, None]"),
            SAMPLE),
        families.G_NOT_USED(RIGHT.but(", generator=g", ""), SAMPLE),
        mistake("a generator of its own", RIGHT.but("generator=g", "generator=torch.Generator().manual_seed(0)"),
                SAMPLE,
            "The generator g was not used: you create a new one at each call with the same seed, so every call draws "
            "the same. Draw from g."),
        families.G_SEEDED(RIGHT.but(DRAWN, "drawn = torch.multinomial(shares, 1, generator=g.manual_seed(0))"),
            SAMPLE, same="call draws the same numbers"),
        mistake("top_k not used", RIGHT.but("if top_k is not None:", "if False:"), NUCLEUS,
            "top_k has no effect: tokens beyond the likeliest k are drawn."),
        mistake("one more than top_k", RIGHT.but("min(top_k, ", "min(top_k + 1, "), NUCLEUS,
            "One token more than top_k was kept."),
        mistake("one fewer than top_k",
                RIGHT.but("logits < weakest", "logits <= weakest"), NUCLEUS,
            """The last of the top_k tokens was left out: with top_k = 3 only two are ever drawn, and with top_k = 1
            there is none. The weakest token that stays equals the threshold, so it is not below it."""),
        mistake("the unlikeliest k", RIGHT.but("topk(kept, dim=-1)", "topk(kept, dim=-1, largest=False)").but(
                  "logits < weakest", "logits > weakest"), NUCLEUS,
            "The k *un*likeliest tokens were kept."),
        mistake("top_p by the first row", RIGHT.but("masked_fill(before >= top_p", "masked_fill((before >= top_p)[:1]"),
                NUCLEUS,
            "How many tokens row 0 keeps was taken for all rows. Each row reaches p with as many as it needs."),
        mistake("top_k by the first row", RIGHT.but("values[:, -1:]", "values[:1, -1:]"), NUCLEUS,
            "The threshold of row 0 was used for all rows. Each row has its own k likeliest tokens."),
        mistake("a zero instead of minus infinity", RIGHT.but("float('-inf')", "0.0"), NUCLEUS,
            "Tokens outside of top_k got the logit 0, and exp(0) is 1, so they are still drawn. Only minus infinity "
            "becomes a probability of exactly 0."),
        mistake("top_k beyond the vocabulary", RIGHT.but("min(top_k, logits.shape[-1])", "top_k"), NUCLEUS,
            "Your code stops where top_k is more than there are tokens. Then all of them stay."),
        mistake("an axis too many", RIGHT.but("drawn.squeeze(1)", "drawn"), SAMPLE,
            "The shape is (B, 1). Return one token for each row, (B,)."),
        mistake("all axes of size 1 squeezed", RIGHT.but("drawn.squeeze(1)", "drawn.squeeze()"), SAMPLE,
            "With a batch of one row the axis of the batch vanished: squeeze() removes every axis of size 1. "
            "Name the axis."),
        mistake("single precision", RIGHT.but(HOT, "logits = logits.float() / tau"), SAMPLE,
            """float64 logits became float32 on the way, which holds seven digits: 100,000,000 and 100,000,001 become
            one number there, and two tokens get one probability."""),
        mistake("exponential without care",
                RIGHT.but("torch.softmax(logits, dim=-1)", "logits.exp() / logits.exp().sum(dim=-1, keepdim=True)"),
                SAMPLE,
            "Large logits became infinite, and infinity over infinity is NaN. Chapter 04's softmax subtracts the "
            "largest first."),
        in_place("logits", RIGHT.but(HOT, "logits /= tau"), TEMPERATURE),
    ),
    correct=(
        correct("multinomial", RIGHT),
        correct("Gumbel", RIGHT.but(DRAWN, """
            noise = -torch.log(-torch.log(torch.rand(shares.shape, generator=g, dtype=torch.float64)))
            drawn = (shares.log() + noise).argmax(dim=-1, keepdim=True)""")),
        correct("exponential race", RIGHT.but(DRAWN, """
            waits = torch.empty_like(shares).exponential_(generator=g)
            drawn = (shares / waits).argmax(dim=-1, keepdim=True)""")),
        correct("inverse of the running sum", RIGHT.but(DRAWN, """
            shares = shares / shares.sum(dim=-1, keepdim=True)
            u = torch.rand(len(shares), 1, generator=g)
            drawn = (shares.cumsum(dim=-1) <= u).sum(dim=-1, keepdim=True).clamp(max=shares.shape[-1] - 1)
            drawn = torch.where(shares.gather(1, drawn) > 0, drawn, shares.argmax(dim=-1, keepdim=True))""")),
        correct("logits masked throughout", """
            def sample(logits, tau, top_k, top_p, g):
                if tau == 0:
                    return torch.max(logits, 1)[1]
                z = logits / tau
                if top_k:
                    keep = torch.zeros_like(z, dtype=torch.bool)
                    keep.scatter_(1, z.topk(min(top_k, z.size(1)), 1).indices, True)
                    z = torch.where(keep, z, -torch.inf)
                if top_p:
                    s, i = torch.sort(z, descending=True)
                    c = s.softmax(-1).cumsum(-1)
                    drop = c > top_p
                    drop[:, 1:] = drop[:, :-1].clone()
                    drop[:, 0] = False
                    z = z.masked_fill(torch.zeros_like(drop).scatter(1, i, drop), -torch.inf)
                return torch.multinomial(z.softmax(-1), 1, generator=g)[:, 0]
        """),
        correct("row by row", """
            def sample(logits, tau, top_k, top_p, g):
                V = logits.shape[1]
                chosen = []
                for scores in logits:
                    if tau == 0:
                        chosen.append(int(scores.argmax()))
                        continue
                    p = (scores / tau).softmax(0)
                    ids = sorted(range(V), key=p.tolist().__getitem__, reverse=True)[:top_k]
                    kept, total = [], 0.0
                    whole = float(p[ids].sum())
                    for i in ids:
                        kept.append(i)
                        total += float(p[i]) / whole
                        if top_p is not None and total >= top_p:
                            break
                    chosen.append(kept[int(torch.multinomial(p[kept], 1, generator=g))])
                return torch.tensor(chosen)
        """),
    ),
    hints=(
        "which of the three settings works on logits, and which needs probabilities? For top-p, look at one token: "
        "what is the sum of the probabilities that are larger than its own?",
        "logits (B, V) stay (B, V) until the last line; sorting gives two (B, V), probabilities and the tokens they "
        "belong to; one draw a row, (B,).",
        "tau 0: argmax. Else divide by tau; below the k-th largest: minus infinity; softmax; sort from the largest; "
        "keep a token if the probabilities before it sum to less than p; put the probabilities back in order; draw "
        "with g.",
    ),
)  # fmt: skip
