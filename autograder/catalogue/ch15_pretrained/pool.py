"""15.2: one vector for a sentence."""

import torch
from torch import Tensor

from autograder.catalogue import families
from autograder.catalogue.ch15_pretrained.shared import sections
from autograder.catalogue.exercise import Case, Evidence, Exercise
from autograder.catalogue.families import Family, in_place, usual_mistakes
from autograder.catalogue.known_answers import answer, correct, mistake
from autograder.catalogue.probes import (
    FAR,
    GRADIENTS,
    PROMISED,
    UNTOUCHED,
    hidden,
    normal,
    turned,
    usual_probes,
    visible,
)  # fmt: skip
from autograder.catalogue.quotes import row, sizes
from transformer_ref.beyond.pretrained import pool

(POOL,) = sections("pool")
BY_HAND = torch.tensor([
    [[1.0, -4.0, 3.0], [3.0, -2.0, 1.0], [2.0, -6.0, -1.0], [9.0, 9.0, 9.0]],
    [[4.0, -1.0, 0.0], [2.0, -3.0, -2.0], [9.0, -9.0, 9.0], [9.0, -9.0, 9.0]],
])  # fmt: skip
MASK = torch.tensor([[True, True, True, False], [True, True, False, False]])
WAYS = ("mean", "max", "cls")


def by_hand(how: str) -> Case:
    """Two sentences, of three tokens and of two."""
    return Case((BY_HAND.clone(), MASK.clone(), how), labels=("0", "1"))


def inputs(
    g: torch.Generator, B: int, T: int, D: int, how: str, dtype: torch.dtype = torch.float32, at: float = 0.0,
    holes: bool = False, empty: bool = False,
) -> Case:  # fmt: skip
    """Sentences of different lengths; the pads' vectors are larger than the others. Position 0 is a real token.

    holes: pads may be anywhere after it; empty: the first sentence has no real token.
    """
    h = normal(g, B, T, D, dtype=torch.float64)
    lengths = torch.randint(1, T + 1, (B,), generator=g)
    lengths[0] = max(T - 1, 1)
    mask = torch.arange(T) < lengths[:, None]  # (batch, length)
    if holes:
        mask = torch.rand(B, T, generator=g) < 0.5
    mask[:, 0] = True
    if empty:
        mask[0] = False
    h = torch.where(mask[..., None], h, 2.5 * h + 1.5)
    return Case(((h + at).to(dtype), mask, how))


def in_bfloat16(g: torch.Generator) -> Case:
    """Whole numbers and counts of 4, 2 and 1, so that every step of a mean is exact in bfloat16, in any order."""
    h = torch.randint(-8, 9, (3, 4, 5), generator=g).to(torch.bfloat16)
    mask = torch.arange(4) < torch.tensor([4, 2, 1])[:, None]  # (batch, length)
    return Case((h, mask, "mean"))


def far_and_turned(g: torch.Generator) -> Case:
    """Large numbers that lie in memory as after a transpose."""
    # one sentence has 3 tokens, and 1/3 is not a round number; float32 holds no sum of numbers around FAR + 5
    case = inputs(g, 3, 4, 5, "mean", torch.float64, FAR + 5)
    return Case((turned(case.arguments[0]), *case.arguments[1:]))


def zeros_missing(evidence: Evidence) -> bool:
    """Whether a sentence of only pads has no zeros, and all others are right."""
    only_pads = ~evidence.arguments[1].any(dim=1)
    got, wanted = evidence.got.double(), evidence.expected.double()
    missing = bool(only_pads.any()) and bool((got[only_pads] != 0).all())
    return missing and torch.allclose(got[~only_pads], wanted[~only_pads], rtol=1e-4)


def filled(evidence: Evidence) -> bool:
    """Whether all wrong numbers of a maximum are one and the same negative number, which no token has and which is
    above the right maximum, or is there for a sentence of only pads."""
    h, mask, how = evidence.arguments
    got, wanted = evidence.got.double(), evidence.expected.double()
    wrong = ~torch.isclose(got, wanted)
    fill = got[wrong][0]
    only_pads = ~mask.any(dim=1, keepdim=True)
    explained = (got == fill) & ((fill > wanted) | only_pads)
    return how == "max" and -float("inf") < fill < 0 and not (h == fill).any() and bool(explained[wrong].all())


def a_little_small(evidence: Evidence) -> bool | None:
    """Whether every number of a mean is nearer to 0 than it should be, by more than float32 rounds and by at most 2
    %. None where the dtype differs, since bfloat16 cannot show it."""
    if evidence.got.dtype != evidence.expected.dtype:
        return None
    ratio = evidence.got.double() / evidence.expected.double()
    return evidence.arguments[2] == "mean" and bool(((ratio > 0.98) & (ratio < 1 - 1.2e-7)).all())


def first_word(evidence: Evidence) -> str:
    """The first sentence's vector, as it is and as it should be; of another shape, both shapes."""
    got, wanted = evidence.got, evidence.expected
    if not isinstance(got, Tensor) or not isinstance(wanted, Tensor):
        return ""
    if got.shape != wanted.shape:
        return sizes(evidence)
    far = (~torch.isclose(got.to(wanted.dtype), wanted)).any(-1)
    place = int(far.int().argmax())
    return (
        f'With how = "{evidence.arguments[2]}", your vector of sentence {place} is {row(got[place])}; it should be '
        f'{row(wanted[place])}.'
    )


RIGHT = answer("""
    def pool(h, mask, how):
        real = mask.unsqueeze(-1)
        if how == "mean":
            total = (h * real).sum(dim=1)
            count = real.sum(dim=1).clamp(min=1)
            return total / count
        if how == "max":
            hidden = h.masked_fill(~real, float("-inf"))
            largest = hidden.max(dim=1).values
            return largest.masked_fill(~real.any(dim=1), 0.0)
        if how == "cls":
            return h[:, 0]
        raise ValueError("how: expected mean, cls or max")
""")
TOTAL, COUNT = "total = (h * real).sum(dim=1)", "count = real.sum(dim=1).clamp(min=1)"
MEAN = "return total / count"
HIDDEN, LARGEST = 'hidden = h.masked_fill(~real, float("-inf"))', "largest = hidden.max(dim=1).values"
BIGGEST, CLS = "return largest.masked_fill(~real.any(dim=1), 0.0)", "return h[:, 0]"
REAL, REFUSED = "real = mask.unsqueeze(-1)", 'raise ValueError("how: expected mean, cls or max")'

# fmt: off
AXIS_KEPT = Family("an axis kept", """An axis of size 1 was kept, where the tokens were. One vector for a sentence has
    the shape (D,), and a batch of them (B, D).""")
INVERTED = Family("the inverted mask", """The pads were kept and the words left out. True marks a *real* token; what
    is to be hidden is where the mask is False.""")
ANOTHER_WORD = Family("another word goes by", """A word that is none of the three was taken for one of them, so a
    misspelling goes unnoticed for as long as the training takes. It raises ValueError.""")
# fmt: on

EXERCISE = Exercise(
    id="pool", number="15.2", difficulty=1, minutes=25, visible_points=1, hidden_points=4,
    reference=pool, section=POOL, quotes=first_word,
    probes=(
        visible("by hand: mean", by_hand("mean")),
        visible("by hand: max", by_hand("max")),
        visible("by hand: cls", by_hand("cls")),
        visible("another word", by_hand("sum")),
        *usual_probes(inputs, other=(4, 6, 5, "mean"), smallest=(1, 1, 1, "mean"), common=(3, 5, 4, "mean"),
                      floats=False),
        # a count of 1 + 1e-8 is right too
        hidden("float64, transposed in memory", far_and_turned, rtol=1.2e-8, announced_by=PROMISED),
        hidden("max of other sizes", inputs, 3, 7, 4, "max", checks=UNTOUCHED, announced_by=PROMISED),
        hidden("cls of other sizes", inputs, 4, 3, 5, "cls", announced_by=PROMISED),
        hidden("max, float64 far below zero", inputs, 3, 5, 4, "max", torch.float64, -FAR, rtol=0.0,
               announced_by=PROMISED),
        hidden("max of one token", inputs, 1, 1, 3, "max", announced_by=PROMISED),
        hidden("cls of one token", inputs, 1, 1, 3, "cls", announced_by=PROMISED),
        hidden("gradients of max", inputs, 3, 5, 4, "max", torch.float64, checks=GRADIENTS, announced_by=PROMISED),
        hidden("gradients of cls", inputs, 3, 5, 4, "cls", torch.float64, checks=GRADIENTS, announced_by=PROMISED),
        hidden("mean, pads anywhere", inputs, 3, 8, 4, "mean", holes=True,
               announced_by="Pads may be anywhere after position 0"),
        hidden("max, pads anywhere", inputs, 3, 8, 4, "max", holes=True, checks=UNTOUCHED,
               announced_by="Pads may be anywhere after position 0"),
        hidden("mean of a sentence without a real token", inputs, 3, 4, 5, "mean", empty=True,
               announced_by="A sentence of nothing but pads gives zeros"),
        hidden("max of a sentence without a real token", inputs, 3, 4, 5, "max", empty=True,
               announced_by="A sentence of nothing but pads gives zeros"),
        hidden("cls of a sentence without a real token", inputs, 3, 4, 5, "cls", empty=True,
               announced_by="whatever the mask is"),
        hidden("a word in capitals", inputs, 2, 3, 4, "MAX", announced_by="Any other word raises ValueError"),
        hidden("an empty word", inputs, 2, 3, 4, "", announced_by="Any other word raises ValueError"),
        hidden("a word that begins like one of them", inputs, 2, 3, 4, "clsmean",
               announced_by="Any other word raises ValueError"),
        # the last, since a report is about the first failure, and other mistakes matter more
        hidden("mean in bfloat16", in_bfloat16, announced_by="of the dtype of h"),
    ),
    mistakes=(
        mistake("pads averaged", RIGHT.but(TOTAL, "total = h.sum(dim=1)").but(COUNT, "count = h.shape[1]"), POOL,
            """The pads went into the mean, so a sentence's vector depends on how long the longest sentence of its batch
            is. Only real tokens count."""),
        mistake("divided by the whole length", RIGHT.but(COUNT, "count = h.shape[1]"), POOL,
            """The pads were left out of the sum and still counted when it was divided, so short sentences have short
            vectors. Divide by how many tokens are real."""),
        mistake("pads in the sum", RIGHT.but("(h * real).sum", "h.sum"), POOL,
            "The pads' vectors are in the sum, though only the real tokens were counted. Their vectors are not zero: "
            "hide them first."),
        mistake("divided by the real tokens of the batch", RIGHT.but(COUNT, "count = real.sum().clamp(min=1)"), POOL,
            "Each sum was divided by the real tokens of *all* sentences. Every sentence is divided by its own count."),
        mistake("the mean of the batch", RIGHT.but(MEAN, "return (total.sum(0) / count.sum(0)).expand(len(h), -1)"),
                POOL,
            "All sentences got one and the same vector, the mean over the batch. Each sentence has its own."),
        mistake("not divided", RIGHT.but(MEAN, "return total"), POOL,
            "This is the sum of the real tokens, not their mean: longer sentences have longer vectors."),
        mistake("one too many in the count", RIGHT.but("clamp(min=1)", "clamp(min=1) + 1"), POOL,
            """The count is one too large. If the 1 is there to keep the count from being 0, it makes all other counts
            wrong: only a count of 0 needs to change."""),
        mistake("the first token left out", RIGHT.but(TOTAL, "total = (h * real)[:, 1:].sum(dim=1)").but(
                  COUNT, "count = real[:, 1:].sum(dim=1).clamp(min=1)"), POOL,
            "The token at position 0 is missing from the mean. It is a real token like the others."),
        INVERTED(RIGHT.but(REAL, "real = ~mask.unsqueeze(-1)"), POOL),
        INVERTED(RIGHT.but(TOTAL, "total = (h * ~real).sum(dim=1)").but(
                     "masked_fill(~real, float", "masked_fill(real, float"), POOL,
                 name="the inverted mask, the real tokens counted"),
        mistake("pads in the max", RIGHT.but(HIDDEN, "hidden = h"), POOL,
            "A pad won: its vector took part in the maximum. Pads must lose against everything."),
        mistake("pads as zeros in the max", RIGHT.but(HIDDEN, "hidden = h * real"), POOL,
            """Where all words are negative, 0 came out as the maximum. Either the pads were set to 0: their value must
            be below every real value. Or negative results were cut off at 0 afterwards: only a sentence of nothing but
            pads gets zeros."""),
        mistake("pads not low enough", RIGHT.but('float("-inf")', "-1e4"), POOL,
            """The pads were set to a number that is low, but not below everything: your fill wins where the words'
            numbers are lower still. Minus infinity loses against all."""),
        mistake("the max over features",
                RIGHT.but(LARGEST, "largest = hidden.max(dim=-1).values").but(BIGGEST, "return largest"), POOL,
            "The largest feature of each *token* was taken. One vector for the sentence: each feature by itself, over "
            "the tokens."),
        mistake("the mean over features",
                RIGHT.but(TOTAL, "total = (h * real).sum(dim=-1)").but(COUNT, "count = h.shape[-1]"), POOL,
            "The features of each *token* were averaged. One vector for the sentence: each feature by itself, over "
            "the tokens."),
        mistake("places instead of values",
                RIGHT.but("hidden.max(dim=1).values", "hidden.max(dim=1).indices").but(BIGGEST, "return largest"), POOL,
            "These are the *indices* of the largest numbers, not the numbers.", quotes=first_word),
        mistake("values and places",
                RIGHT.but("hidden.max(dim=1).values", "hidden.max(dim=1)").but(BIGGEST, "return largest"), POOL,
            "Two tensors came back for max: torch's max along an axis gives values and their indices. Return the "
            "values."),
        mistake("the largest size", RIGHT.but(LARGEST, """
                  where = h.abs().masked_fill(~real, -1.0).argmax(dim=1, keepdim=True)
                  largest = h.gather(1, where).squeeze(1)"""), POOL,
            "The number that is farthest from 0 was taken, whatever its sign. -6 is less than -2."),
        mistake("the largest token", RIGHT.but(LARGEST, """
                  where = h.norm(dim=-1).masked_fill(~mask, -1.0).argmax(dim=1)
                  largest = h[torch.arange(len(h)), where]"""), POOL,
            "One token was chosen, the longest vector, with all its features. Each feature has a maximum of its own."),
        mistake("the least", RIGHT.but('float("-inf")', 'float("inf")').but("hidden.max", "hidden.min"), POOL,
            "These are the smallest numbers, not the largest."),
        mistake("the first token left out of the max",
                RIGHT.but("hidden.max(dim=1)", "hidden[:, min(1, h.shape[1] - 1):].max(dim=1)").but(
                  BIGGEST, "return torch.where(largest.isinf(), h[:, 0], largest).masked_fill(~real.any(dim=1), 0.0)"),
                  POOL,
            "The token at position 0 is missing from the maximum. It is a real token like the others."),
        mistake("cls is the last", RIGHT.but("h[:, 0]", "h[:, -1]"), POOL,
            "The last position was taken, which in most sentences is a pad. The class token comes first, "
            "at position 0."),
        mistake("cls is the last real token", RIGHT.but("h[:, 0]", "h[torch.arange(len(h)), mask.sum(dim=1) - 1]"),
                POOL,
            """The last real token was taken: that is how a decoder is read: only its last word has seen all the
            others. Here the class token comes first, at position 0."""),
        mistake("cls is hidden", RIGHT.but("h[:, 0]", "h[:, 0] * mask[:, :1]"), POOL,
            "For cls the mask was used. The class token is at position 0, whatever the mask is."),
        mistake("cls is the first sentence", RIGHT.but("h[:, 0]", "h[0]"), POOL,
            "All tokens of sentence 0 came back. The first axis counts sentences; the class token is the first along "
            "the second."),
        mistake("cls is the first feature", RIGHT.but("h[:, 0]", "h[..., 0]"), POOL,
            "The first *feature* of every token came back. The class token is the first along the second axis, with "
            "all its features."),
        mistake("cls is the second", RIGHT.but("h[:, 0]", "h[:, min(1, h.shape[1] - 1)]"), POOL,
            "Position 1 was taken. Python counts from 0, and the class token comes first."),
        AXIS_KEPT(RIGHT.but(MEAN, "return (total / count).unsqueeze(1)"), POOL, name="an axis kept, mean"),
        AXIS_KEPT(RIGHT.but(BIGGEST, "return largest.masked_fill(~real.any(dim=1), 0.0).unsqueeze(1)"),
            POOL, name="an axis kept, max"),
        mistake("an axis kept, cls", RIGHT.but("h[:, 0]", "h[:, :1]"), POOL,
            """An axis of size 1 was kept, where the tokens were: a slice keeps its axis, an index removes it. A batch
            of vectors has the shape (B, D)."""),
        AXIS_KEPT(RIGHT.but(MEAN, "return (total / count).unsqueeze(1)").but(
                  BIGGEST, "return largest.masked_fill(~real.any(dim=1), 0.0).unsqueeze(1)").but("h[:, 0]", "h[:, :1]"),
            POOL),
        mistake("brought to length 1", RIGHT.but(MEAN, "return F.normalize(total / count, dim=-1)").but(
                  BIGGEST, "return F.normalize(largest.masked_fill(~real.any(dim=1), 0.0), dim=-1)").but(CLS,
                      "return F.normalize(h[:, 0], dim=-1)"), POOL,
            "The vectors were normalized to length 1. That helps where cosines are taken later; here they come back as "
            "they are."),
        mistake("the mean brought to length 1", RIGHT.but(MEAN, "return F.normalize(total / count, dim=-1)"), POOL,
            "The mean was normalized to length 1. That helps where cosines are taken later; here it comes back as it "
            "is."),
        mistake("NaN for pads alone", RIGHT.but(".clamp(min=1)", ""), POOL,
            """A sentence without a real token ended in 0 divided by 0, and one NaN spoils the loss of the whole batch.
            Its vector is zeros: keep the count from being 0."""),
        mistake("minus infinity for pads alone", RIGHT.but(BIGGEST, "return largest"), POOL,
            """The maximum over nothing came out as minus infinity, or as what you filled the pads with. A sentence
            without a real token has zeros.""",
            shows=lambda evidence: evidence.arguments[2] == "max" and zeros_missing(evidence)),
        mistake("pads not low enough, and no zeros",
                RIGHT.but('float("-inf")', "-1e4").but(BIGGEST, "return largest"), POOL,
            """The pads were set to a low number, and where the real values are lower still, that number is the maximum.
            Minus infinity is below every value. A sentence of nothing but pads needs zeros, whatever the pads are set
            to.""",
            shows=filled),
        mistake("no zeros for pads alone", RIGHT.but(".clamp(min=1)", "").but(BIGGEST, "return largest"), POOL,
            """A sentence without a real token ended in 0 divided by 0, or in what the pads were filled with. One such
            number spoils the loss of the whole batch. Its vector is zeros.""", shows=zeros_missing),
        mistake("0 times infinity", RIGHT.but(HIDDEN, 'hidden = h + (1 - real.to(h.dtype)) * float("-inf")'), POOL,
            """The real tokens became NaN: their value in the mask was multiplied by infinity, and 0 times infinity is
            not a number. Put the fill where the pads are, without a product."""),
        mistake("the real tokens taken to stand in front", RIGHT.but(REAL, """
                  real = (torch.arange(h.shape[1]) < mask.sum(dim=1, keepdim=True)).unsqueeze(-1)"""), POOL,
            """You took the first n tokens, where n is the number of real ones. They need not come first: pads may be
            anywhere. The mask says which ones are real."""),
        mistake("words that begin alike",
                RIGHT.but('how == "mean"', 'how.startswith("mean")').but('how == "max"', 'how.startswith("max")').but(
                  'how == "cls"', 'how.startswith("cls")'), POOL,
            "A word that only begins like one of the three was taken for it. Compare whole words; any other raises "
            "ValueError."),
        mistake("capitals go by", RIGHT.before(REAL, "how = how.lower()"), POOL,
            "A word in capitals was taken for one of the three. Any word but these three raises ValueError."),
        mistake("an empty word goes by", RIGHT.but('if how == "cls":', 'if how in "cls":'), POOL,
            """An empty word was taken for one of the three. If you look for `how` inside a text, such as "mean max
            cls", the empty text is found in every text. Compare whole words."""),
        ANOTHER_WORD(RIGHT.but('if how == "cls":', "if True:"), POOL),
        ANOTHER_WORD(RIGHT.but('how == "mean"', 'how not in ("max", "cls")'),
            POOL, name="another word taken for the mean"),
        ANOTHER_WORD(RIGHT.but('how == "max"', 'how not in ("mean", "cls")'), POOL, name="another word taken for max"),
        mistake("nothing for another word", RIGHT.but(REFUSED, "return None"), POOL,
            "For a `how` that is none of the three, nothing came back. Raise a ValueError, so that the caller "
            "notices."),
        families.ASSERTED(RIGHT.but(REFUSED, "assert False"), POOL),
        mistake("a dictionary of three", """
            def pool(h, mask, how):
                real = mask.unsqueeze(-1)
                ways = {
                    "mean": (h * real).sum(1) / real.sum(1).clamp(min=1),
                    "max": h.masked_fill(~real, float("-inf")).amax(1).masked_fill(~real.any(1), 0.0),
                    "cls": h[:, 0],
                }
                return ways[how]
        """, POOL,
            "For a word that is none of the three your code stops with a KeyError, as looking it up in a dictionary "
            "does. Raise a ValueError."),
        mistake("the mean as well", RIGHT.but(BIGGEST, "return (total / count + largest) / 2").but(
                  HIDDEN, f"{TOTAL}\n        {COUNT}\n        {HIDDEN}"), POOL,
            "Mean and max were mixed for max. One of the three at a time, as how says."),
        *usual_mistakes(RIGHT, arguments="h", detached=POOL, float32=POOL, single=POOL, squeezed=POOL),
        in_place("h", RIGHT.before(REAL, "h[~mask] = 0.0"), POOL),
        mistake("shares in float32", RIGHT.but(MEAN, "return ((real / count.unsqueeze(1)).to(h.dtype) * h).sum(dim=1)"),
                POOL,
            """The quotients lost digits: mask and count are not floats, and dividing them gives float32, seven digits,
            whatever h is. Give one of them the dtype of h first."""),
        mistake("the mask in float32", RIGHT.but(TOTAL, "total = (h * real.float()).sum(dim=1)"), POOL,
            """Something in your mean is float32, such as a mask after .float(), so the mean of an h in bfloat16 is
            float32 too. It should have the dtype of h: give the mask that dtype."""),
        mistake("something added to the count", RIGHT.but(COUNT, "count = real.sum(dim=1) + 1e-6"), POOL,
            """What was added to the count, to keep it from being 0, makes every mean a little too small. Only a count
            of 0 needs to change.""", shows=a_little_small),
        mistake("always float64", RIGHT.ending_in(".double()"), POOL,
            "float64 came back for every input. The result keeps the dtype of h."),
    ),
    correct=(
        correct("a product and a fill", RIGHT),
        correct("sentence by sentence", """
            def pool(h, mask, how):
                if how not in ("mean", "cls", "max"):
                    raise ValueError(f"how = {how}")
                rows = []
                for tokens, real in zip(h, mask):
                    kept = tokens[real]
                    if how == "cls":
                        rows.append(tokens[0])
                    elif len(kept) == 0:
                        rows.append(torch.zeros_like(tokens[0]))
                    elif how == "mean":
                        rows.append(kept.mean(dim=0))
                    else:
                        rows.append(kept.max(dim=0).values)
                return torch.stack(rows)
        """),
        correct("shares of attention", """
            def pool(x, m, kind):
                m = m.to(x.dtype)
                def mean():
                    shares = m / m.sum(1, keepdim=True).clamp(min=1)
                    return torch.einsum("bt,btd->bd", shares, x)
                def largest():
                    low = torch.finfo(x.dtype).min
                    top = torch.where(m.bool()[:, :, None], x, torch.full_like(x, low)).amax(1)
                    return torch.where(m.any(1)[:, None], top, torch.zeros_like(top))
                def first():
                    return x.select(1, 0)
                if kind == "mean": return mean()
                if kind == "max": return largest()
                if kind == "cls": return first()
                raise ValueError(kind)
        """),
        correct("nan_to_num at the end", """
            class UnknownPooling(ValueError):
                pass

            def pool(h, mask, how):
                match how:
                    case "cls":
                        return h[:, 0, :].clone()
                    case "mean":
                        n = mask.sum(-1, keepdim=True)
                        return torch.nan_to_num(torch.where(mask[..., None], h, 0.0).sum(-2) / torch.where(n == 0, 1,
                            n))
                    case "max":
                        out = h.masked_fill(mask.logical_not().unsqueeze(2), -torch.inf).max(1)[0]
                        return torch.where(torch.isneginf(out), torch.zeros_like(out), out)
                    case _:
                        raise UnknownPooling(how)
        """),
        correct("sorted", """
            def pool(h, mask, how):
                B, T, D = h.shape
                lengths = mask.sum(1)
                if how == "max":
                    ordered = h.masked_fill(~mask[:, :, None], float("-inf")).sort(dim=1, descending=True).values
                    return torch.where((lengths > 0)[:, None], ordered[:, 0], 0.0)
                elif how == "mean":
                    weights = mask.type_as(h).view(B, 1, T)
                    return torch.bmm(weights, h).view(B, D) / lengths.clamp_min(1).view(B, 1)
                elif how == "cls":
                    return h.narrow(1, 0, 1).squeeze(1)
                raise ValueError("one of mean, max, cls")
        """),
    ),
    hints=(
        "which vectors of a short sentence belong to no word? And what must such a vector be so that it can never win "
        "a maximum?",
        "mask (B, T) becomes (B, T, 1) for h (B, T, D); the sum over the tokens is (B, D), the count (B, 1).",
        "for mean: pads times 0, sum over the tokens, divided by the count, which is at least 1. For max: pads minus "
        "infinity, the largest over the tokens, zeros where no token is real. For cls: position 0. Anything else: "
        "ValueError.",
    ),
)  # fmt: skip
