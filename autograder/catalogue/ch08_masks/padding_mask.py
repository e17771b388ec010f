"""08.1: which tokens are words, and which are pads."""

import torch
from torch import Tensor

from autograder.catalogue import families
from autograder.catalogue.ch08_masks.shared import SENTENCES, open_cells_of, over_all_queries, sections, sentences
from autograder.catalogue.exercise import Case, Exercise
from autograder.catalogue.known_answers import answer, correct, formula, mistake
from autograder.catalogue.probes import PROMISED, UNTOUCHED, hidden, second_call, visible
from transformer_ref.model import masks

PADDING, AXIS, CONVENTION = sections("padding axis convention")
open_rows = open_cells_of("all sentences and queries")


def padding_mask(ids: Tensor, pad: int) -> Tensor:
    """True at every key that is a real token, (B, 1, 1, T)."""
    return masks.padding_mask(ids, pad)


def inputs(g: torch.Generator, B: int, T: int, pad: int) -> Case:
    return Case((sentences(g, B, T, pad), pad))


def all_padded(g: torch.Generator, B: int, T: int, pad: int) -> Case:
    """Sentences that all end in a pad."""
    ids = sentences(g, B, T, pad)
    ids[:, -1] = pad
    return Case((ids, pad))


def with_a_word_0(g: torch.Generator, B: int, T: int, pad: int) -> Case:
    """Sentences whose pad is not 0, so that the id 0 is a word: the last sentence's first."""
    ids = sentences(g, B, T, pad)
    ids[-1, 0] = 0
    return Case((ids, pad))


def turned(g: torch.Generator) -> Case:
    """Ids that lie in memory as after a transpose."""
    return Case((sentences(g, 3, 5).T.contiguous().T, 0))


RIGHT = answer("""
    def padding_mask(ids, pad):
        real = ids != pad
        return real[:, None, None, :]
""")
REAL, RETURNED = "real = ids != pad", "real[:, None, None, :]"

EXERCISE = Exercise(
    id="padding-mask", number="08.1", difficulty=1, minutes=10, visible_points=1, hidden_points=3,
    reference=padding_mask, normalize=over_all_queries, section=PADDING,
    omits={"precision": "a mask holds truth values"},
    probes=(
        visible("two sentences, pad 0", Case((SENTENCES, 0))),
        visible("pad 3, no sentence without it", Case((torch.tensor([[7, 3, 3], [9, 8, 3], [4, 5, 3], [6, 3, 3]]), 3))),
        visible("a sentence without a pad", Case((torch.tensor([[7, 8, 5], [4, 0, 0]]), 0))),
        hidden("other sizes, pad 0", all_padded, 3, 7, 0, announced_by=PROMISED),
        hidden("another pad", with_a_word_0, 4, 6, 29, checks=UNTOUCHED, announced_by="it is not always 0"),
        hidden("one sentence of one token", inputs, 1, 1, 0, announced_by=PROMISED),
        hidden("more sentences than tokens", inputs, 5, 3, 1, announced_by=PROMISED),
        hidden("transposed in memory", turned, announced_by=PROMISED),
        second_call(inputs, 2, 5, 0),
    ),
    mistakes=(
        mistake("on the query axis", RIGHT.but(RETURNED, "real[:, None, :, None]"), AXIS,
            """Your mask hides the *queries* that are pads; every word still attends to the pads. No query may attend to
            a pad: the mask belongs on the axis of the keys, the last one.""", quotes=open_rows),
        mistake("on both axes", RIGHT.but(RETURNED, "real[:, None, None, :] & real[:, None, :, None]"), AXIS,
            """Pads are hidden as keys and as queries. Then a pad's own row has no key to attend to, and its softmax is
            NaN. Hide the keys only: what a pad gathers is never read.""", quotes=open_rows),
        mistake("the wrong way round", RIGHT.but("!=", "=="), CONVENTION,
            """The mask is True at the pads, so words may attend to pads and to nothing else. In this course True means
            *may attend*.""",
            quotes=open_rows),
        mistake("no axis for heads and queries", RIGHT.but(RETURNED, "real"), PADDING,
            """The shape (B, T) broadcasts against (B, h, Tq, T) from the right: its first axis meets the queries, not
            the sentences. Give it an axis of size 1 for the heads and one for the queries."""),
        mistake("one axis too few", RIGHT.but(RETURNED, "real[:, None, :]"), PADDING,
            """With three axes the sentences meet the *heads* when it is broadcast against (B, h, Tq, T): head 1 would
            get sentence 1's mask. Two axes of size 1 belong between B and T."""),
        mistake("axes at the front", RIGHT.but(RETURNED, "real[None, None]"), PADDING,
            """The two axes of size 1 come first, so B is where the queries are: query 1 would get sentence 1's
            mask. They belong between B and T."""),
        mistake("axes at the end", RIGHT.but(RETURNED, "real[:, :, None, None]"), PADDING,
            "The two axes of size 1 come after T, so the tokens are where the heads are. They belong "
            "between B and T."),
        mistake("the first sentence's for all",
                RIGHT.but(RETURNED, "real[:1, None, None, :].expand(len(ids), -1, -1, -1)"), PADDING,
            "Every sentence got the mask of the first. Each has its own length.", quotes=open_rows),
        families.PAD_0_WRITTEN_IN(RIGHT.but("pad\n", "0\n"), PADDING, function="mask looks for", which="second"),
        mistake("up to the first pad", RIGHT.but(
                  REAL, "real = torch.arange(ids.shape[1]) < (ids == pad).int().argmax(dim=1, keepdim=True)"), PADDING,
            """A sentence without a pad comes out all hidden: where there is no first pad, argmax returns 0. Compare
            each token with the pad."""),
        mistake("words counted over the batch",
                RIGHT.but(REAL, "real = torch.arange(ids.shape[1]).expand_as(ids) < (ids != pad).sum()"),
            PADDING,
            """Nothing is hidden. Compare each token with the pad; or, if you count words, count each sentence's own,
            not those of the whole batch.""", quotes=open_rows),
        mistake("as long as the longest sentence", RIGHT.but(
                  REAL, "lengths = (ids != pad).sum(dim=1)\n"
                        "    real = torch.arange(int(lengths.max())) < lengths[:, None]"), PADDING,
            """The last axis of your mask is only as long as the longest sentence without its pads. It must be T, even
            if every sentence ends in pads."""),
        mistake("everything above the pad", RIGHT.but("!=", ">"), PADDING,
            """Ids below pad count as pads too. Only the id that equals pad is one: ids have an order, but it means
            nothing."""),
        mistake("compared as objects", RIGHT.but("ids != pad", "ids is not pad"), PADDING,
            """Your comparison gave a single True or False, not one for each token. `is` and `is not` do that: they
            check whether two names refer to one object. Compare the entries, as in chapter 00."""),
        mistake("ones and zeros", RIGHT.but(RETURNED, "real[:, None, None, :].float()"), CONVENTION,
            """The mask holds ones and zeros. It should be boolean: a float mask is *added* to the scores by torch's
            functions, which hides nothing."""),
        mistake("whole numbers", RIGHT.but(RETURNED, "real[:, None, None, :].long()"), CONVENTION,
            "The mask holds whole numbers. It should be boolean: `~1` is -2, and an index of ones and "
            "zeros picks rows."),
        families.MINUS_INFINITY(
            RIGHT.but(RETURNED, "torch.zeros(ids.shape).masked_fill(~real, float('-inf'))[:, None, None, :]"),
            CONVENTION),
        mistake("the first pad stays", RIGHT.but(
                  REAL, "real = torch.cat([torch.ones_like(ids[:, :1], dtype=torch.bool), ids[:, :-1] != pad], dim=1)"),
                  PADDING,
            "One pad of each sentence stays visible: the mask is shifted by one position.", quotes=open_rows),
        mistake("longest sentence only", RIGHT.but(REAL, "real = (ids != pad).any(dim=0).expand(len(ids), -1)"),
                PADDING,
            "A position counts as real as soon as *some* sentence has a word there. Each sentence has its own length.",
            quotes=open_rows),
        mistake("one axis for the batch squeezed", RIGHT.but(RETURNED, "real.squeeze()[:, None, None, :]"),
                PADDING,
            "With one sentence the batch axis vanished. squeeze() removes every axis of size 1; this one must stay."),
    ),
    correct=(
        correct("view", formula("padding_mask(tokens, p)", "(tokens != p).view(tokens.shape[0], 1, 1, -1)").but(".view",
            ".reshape")),
        correct("unsqueeze", formula("padding_mask(ids, pad)", "ids.ne(pad).unsqueeze(1).unsqueeze(2)")),
        correct("spread over the queries", """
            def padding_mask(ids, pad):
                B, T = ids.shape
                return ids.ne(pad)[:, None, None].expand(B, 1, T, T).clone()
        """),
        correct("not equal", formula("padding_mask(ids, pad)", "~(ids == pad)[:, None, None]")),
        correct("loops", """
            def padding_mask(ids, pad):
                rows = [[token != pad for token in sentence] for sentence in ids.tolist()]
                return torch.tensor(rows, dtype=torch.bool).unsqueeze(1).unsqueeze(1)
        """),
    ),
    hints=(
        "which axis of the scores runs over the keys?",
        "ids (B, T) gives (B, T) booleans; the scores are (B, h, Tq, T): two axes of size 1 go in between.",
        "real = where ids differ from pad; return it with an axis for the heads and one for the queries "
        "after the first.",
    ),
)  # fmt: skip
