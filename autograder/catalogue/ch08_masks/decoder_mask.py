"""08.3: the causal mask and the padding mask in one."""

import torch
from torch import Tensor

from autograder.catalogue import families
from autograder.catalogue.ch08_masks.shared import PAD, SENTENCES, open_cells_of, sections, sentences, spread
from autograder.catalogue.exercise import Case, Exercise
from autograder.catalogue.known_answers import answer, correct, formula, mistake
from autograder.catalogue.probes import PROMISED, hidden, second_call, visible
from transformer_ref.model import masks

PADDING, BOTH, AXIS, CAUSAL, CONVENTION = sections("padding both axis causal convention")
open_rows = open_cells_of("the rows of words (not those of pads)")


def decoder_mask(ids: Tensor, pad: int) -> Tensor:
    """True where the key is a real token and not later than the query, (B, 1, T, T)."""
    return masks.decoder_mask(ids, pad)


def rows_of_words(case: Case, result):
    """The rows of the mask for words; those of pads may be blocked or not."""
    ids, pad = case.arguments
    B, T = ids.shape
    result = spread(result, B, 1, T, T)
    if not isinstance(result, Tensor) or result.shape != (B, 1, T, T):
        return result
    return result.masked_fill((ids == pad)[:, None, :, None], 0)


def inputs(g: torch.Generator, B: int, T: int, pad: int) -> Case:
    return Case((sentences(g, B, T, pad), pad))


def padded_in_front(g: torch.Generator, B: int, T: int, pad: int) -> Case:
    return Case((sentences(g, B, T, pad).flip(1), pad))


def padded_anywhere(g: torch.Generator, B: int, T: int, pad: int) -> Case:
    """The second token of every sentence is a pad between words; of the others every third is one."""
    ids = torch.randint(1, 30, (B, T), generator=g)
    ids = ids.where((ids != pad) & (torch.rand(B, T, generator=g) < 0.7), pad)
    ids[:, 0], ids[:, 1], ids[:, 2] = 31, pad, 32
    return Case((ids, pad))


RIGHT = answer("""
    def decoder_mask(ids, pad):
        T = ids.shape[1]
        real = (ids != pad)[:, None, None, :]
        past = torch.ones(T, T, dtype=torch.bool).tril()
        return real & past
""")
REAL, PAST = "real = (ids != pad)[:, None, None, :]", "past = torch.ones(T, T, dtype=torch.bool).tril()"

EXERCISE = Exercise(
    id="decoder-mask", number="08.3", difficulty=1, minutes=10, visible_points=1, hidden_points=2,
    reference=decoder_mask, normalize=rows_of_words, section=BOTH,
    omits={"precision": "a mask holds truth values"},
    probes=(
        visible("two sentences, pad 0", Case((SENTENCES, PAD))),
        visible("padded in front", Case((torch.tensor([[0, 0, 7, 8], [9, 5, 6, 4], [0, 3, 2, 8]]), PAD))),
        hidden("other sizes, pad 0", inputs, 3, 7, 0, announced_by=PROMISED),
        hidden("another pad, in front", padded_in_front, 4, 5, 17,
               announced_by="pads may be anywhere, also in front."),
        hidden("pads between words", padded_anywhere, 3, 6, 5, announced_by="pads may be anywhere, also in front."),
        hidden("one sentence of one token", inputs, 1, 1, 0, announced_by=PROMISED),
        hidden("more sentences than tokens", inputs, 5, 3, 2, announced_by=PROMISED),
        second_call(inputs, 2, 4, 9),
    ),
    mistakes=(
        mistake("padding only", RIGHT.but("real & past", "real.expand(-1, 1, T, T)"), BOTH,
            """The future is open: your mask closes pads and nothing else. (Is there a comparison without brackets next
            to an &? Python then computes the & first.)""", quotes=open_rows),
        mistake("added", RIGHT.but("real & past", "real.long() + past.long()"), BOTH,
            "The sum of two masks holds 0, 1 and 2. Both conditions must hold: True where both are True."),
        mistake("exclusive or", RIGHT.but("real & past", "real ^ past"), BOTH,
            """Words see what comes after them. Perhaps your cells are open where exactly one condition holds; perhaps
            the causal mask is the wrong way round (triu shows what must be hidden). A key must be a real token *and*
            not later than the query.""", quotes=open_rows),
        mistake("pads on the query axis", RIGHT.but("[:, None, None, :]", "[:, None, :, None]"), AXIS,
            """Words still attend to pads that came before them. Perhaps you hid the pads as queries; perhaps your
            mask closes only the future. Hide the pads of each sentence as *keys*, on the last axis.""",
            quotes=open_rows),
        mistake("counted from the front", RIGHT.but("real = (ids != pad)[:, None, None, :]",
                  "real = (torch.arange(T) < (ids != pad).sum(dim=1, keepdim=True))[:, None, None, :]"), BOTH,
            """The words of a sentence were counted, and as many tokens opened from its beginning. Pads may come first:
            check each token separately.""", quotes=open_rows),
        mistake("ends at the first pad", RIGHT.but(REAL, "real = (ids != pad).cumprod(dim=1).bool()[:, None, None, :]"),
                BOTH,
            "Everything after the first pad is closed. Pads may come first, and words after them: check each token "
            "separately.",
            quotes=open_rows),
        mistake("everything open", RIGHT.but("real & past", "torch.ones(len(ids), 1, T, T, dtype=torch.bool)"), BOTH,
            "Every cell is open: words attend to pads and to the future.", quotes=open_rows),
        mistake("the first sentence's for all", RIGHT.but("real & past", "(real[:1] & past).expand(len(ids), 1, T, T)"),
                BOTH,
            "Every sentence got the mask of the first. Each has its own pads.", quotes=open_rows),
        mistake("the first key always open", RIGHT.but("real & past", "(real & past) | (torch.arange(T) == 0)"), BOTH,
            """Key 0 is open in every row, even where it is a pad. A row without any key is fine: attention gives it
            zeros (08.4).""", quotes=open_rows),
        mistake("no batch axis", RIGHT.but("real & past", "(ids != pad).all(dim=0) & past"), BOTH,
            "One table for the whole batch came back. Each sentence has its own pads, so B tables are needed.",
            quotes=open_rows),
        mistake("no head axis", RIGHT.but("real & past", "(ids != pad)[:, None, :] & past"), PADDING,
            """The shape is (B, T, T). Against the scores (B, h, T, T) the sentences would meet the heads: an axis of
            size 1 belongs between.""", quotes=open_rows),
        mistake("pads the wrong way round", RIGHT.but("!=", "=="), CONVENTION,
            "Words may only attend to pads: the padding mask is inverted.", quotes=open_rows),
        mistake("the future instead of the past", RIGHT.but("tril", "triu"), CAUSAL,
            "Words see what comes after them: the causal mask is the wrong way round.", quotes=open_rows),
        mistake("both the wrong way round", RIGHT.but("real & past", "~(real & past)"), CONVENTION,
            "The mask is True where looking is forbidden. In this course True means *may attend*.", quotes=open_rows),
        mistake("or instead of and", RIGHT.but("real & past", "real | past"), BOTH,
            """A pad is visible when it is in the past, and the future is visible where it contains words. Both
            conditions must hold at once.""", quotes=open_rows),
        mistake("the diagonal blocked", RIGHT.but("tril()", "tril(-1)"), CAUSAL,
            "A word cannot see itself, so the first word of each sentence has no key to attend to.", quotes=open_rows),
        mistake("one word of the future open", RIGHT.but("tril()", "tril(1)"), CAUSAL,
            "Each word sees exactly the word that it should predict.", quotes=open_rows),
        mistake("& before the comparison", RIGHT.but(PAST, "places = torch.arange(T)").but(
                  "real & past", "real & places <= places[:, None]"), BOTH,
            """From the second query on every key is open, pads and the future among them. Is there a comparison next to
            an & without brackets around it? & binds more strongly than !=, == and <=, so Python computes it first.""",
            quotes=open_rows),
        families.PAD_0_WRITTEN_IN(RIGHT.but("!= pad", "!= 0"), BOTH, function="mask looks for", which="second"),
        families.ONES_AND_ZEROS(RIGHT.but("real & past", "(real & past).float()"), CONVENTION),
    ),
    correct=(
        correct("multiplied",
                formula("decoder_mask(y, p)",
                        "(y != p)[:, None, None] * torch.ones(y.shape[1], y.shape[1]).tril().bool()")),
        correct("logical and", """
            def decoder_mask(ids, pad):
                places = torch.arange(ids.shape[1])
                causal = places[None, :] <= places[:, None]
                return torch.logical_and(causal[None, None], ids.ne(pad).unsqueeze(1).unsqueeze(1))
        """),
        correct("pad queries blocked too", """
            def decoder_mask(ids, pad):
                real = ids != pad
                T = ids.shape[1]
                causal = torch.tril(torch.ones(T, T, dtype=torch.bool))
                return (real[:, None, :] & real[:, :, None] & causal)[:, None]
        """),
        correct("loops", """
            def decoder_mask(ids, pad):
                B, T = ids.shape
                mask = torch.zeros(B, 1, T, T, dtype=torch.bool)
                for b in range(B):
                    for query in range(T):
                        for key in range(query + 1):
                            mask[b, 0, query, key] = ids[b, key] != pad
                return mask
        """),
        correct("masked_fill", """
            def decoder_mask(ids, pad):
                B, T = ids.shape
                mask = torch.ones(B, 1, T, T, dtype=torch.bool).tril()
                return mask.masked_fill((ids == pad)[:, None, None, :], False)
        """),
    ),
    hints=(
        "two conditions. Must both hold, or is one enough?",
        "(B, 1, 1, T) from the pads, (T, T) from the order: together (B, 1, T, T).",
        "real keys, as in 08.1; not later than the query, as in 08.2; True where both are True.",
    ),
)  # fmt: skip
