"""06.1: each word's features cut into heads."""

import torch
from torch import Tensor

from autograder.catalogue import families
from autograder.catalogue.ch06_multi_head_attention.shared import THREE_WORDS, in_other_rows, labeled, sections, stands
from autograder.catalogue.exercise import Case, Evidence, Exercise
from autograder.catalogue.families import usual_mistakes
from autograder.catalogue.known_answers import answer, correct, mistake
from autograder.catalogue.probes import FAR, hidden, normal, turned, usual_probes, visible
from autograder.catalogue.quotes import sizes
from transformer_ref.model import multi_head_attention

(SPLIT,) = sections("split")


def split_heads(x: Tensor, h: int) -> Tensor:
    """The features of each word in h pieces, the head axis before the words."""
    return multi_head_attention.split_heads(x, h)


def inputs(g: torch.Generator, B: int, T: int, h: int, d_k: int, dtype: torch.dtype = torch.float32) -> Case:
    return Case((normal(g, B, T, h * d_k, dtype=dtype), h))


def far_away(g: torch.Generator) -> Case:
    return Case((normal(g, 2, 4, 15, dtype=torch.float64) + FAR, 3))


def indivisible(g: torch.Generator, T: int, D: int, h: int) -> Case:
    return Case((normal(g, 2, T, D), h))


def of_other_words(evidence: Evidence) -> bool | None:
    """Whether all numbers are there, and some are in rows of other words."""
    got, expected = evidence.got, evidence.expected
    if not isinstance(got, Tensor) or got.shape != expected.shape:
        return False
    return in_other_rows(*(each.transpose(1, 2).flatten(2) for each in (got, expected)))


def joined_axes(evidence: Evidence) -> bool | None:
    """Whether batch and heads, or heads and words, are along one axis; with an axis of length 1, it may be lost."""
    expected = evidence.expected
    joined = [at for at in (0, 1) if _is_one_of(evidence, expected.flatten(at, at + 1))]
    if joined and 1 in expected.shape[joined[0] : joined[0] + 2]:
        return None
    return bool(joined)


def one_head(evidence: Evidence) -> bool | None:
    """Whether the first head came back, or the last one, of several."""
    heads = evidence.expected.unbind(1)
    alone = _is_one_of(evidence, heads[0], heads[-1])
    return None if alone and len(heads) == 1 else alone


def _is_one_of(evidence: Evidence, *values: Tensor) -> bool:
    got = evidence.got
    return isinstance(got, Tensor) and any(torch.equal(got.to(value.dtype), value) for value in values)


RIGHT = answer("""
    def split_heads(x, h):
        B, T, D = x.shape
        if D % h != 0:
            raise ValueError("D must be a multiple of h")
        heads = x.reshape(B, T, h, D // h).transpose(1, 2)
        return heads
""")
SPLIT_LINE = "x.reshape(B, T, h, D // h).transpose(1, 2)"
SCRAMBLED = """The shape is right and the contents are scrambled: head 0 received pieces of *other words*. view and
    reshape only cut the strip. First cut the features into h pieces, then move the head axis."""
CHECK = 'if D % h != 0:\n        raise ValueError("D must be a multiple of h")\n    '

EXERCISE = Exercise(
    id="split-heads", number="06.1", difficulty=2, minutes=15, visible_points=2, hidden_points=4,
    reference=split_heads, section=SPLIT,
    probes=(
        visible("three words, two heads", Case((THREE_WORDS[None], 2))),
        # h is not d_k, and divides the words and the 4 features of the notebook's x. Transposed in memory, where a
        # single view raises an error and a single reshape does not.
        visible("numbers that say where they were", Case((turned(labeled(2, 8, 8)), 4))),
        visible("7 features, 2 heads", indivisible, 3, 7, 2),
        *usual_probes(inputs, other=(3, 5, 2, 4), smallest=(1, 1, 1, 3), common=(2, 4, 3, 5), precise=far_away),
        hidden("as many heads as features", inputs, 2, 3, 4, 1, announced_by="h: the number of heads"),
        hidden("as many words as heads", inputs, 2, 3, 3, 4, announced_by="h: the number of heads"),
        hidden("12 words, 10 features, 3 heads", indivisible, 12, 10, 3,
               announced_by="Raises ValueError when D is not a multiple of h"),
        hidden("more heads than features", indivisible, 3, 2, 4,
               announced_by="Raises ValueError when D is not a multiple of h"),
    ),
    mistakes=(
        mistake("view alone", RIGHT.but(SPLIT_LINE, "x.reshape(B, h, T, D // h)"), SPLIT, SCRAMBLED, quotes=stands),
        mistake("split by a single view", RIGHT.but(SPLIT_LINE, "x.view(B, h, T, D // h)"), SPLIT, SCRAMBLED,
            quotes=stands),
        mistake("batch and words exchanged",
                RIGHT.but("B, T, D = x.shape", "T, B, D = x.shape").but("x.reshape", "x.view"), SPLIT,
            """The batch and the words are exchanged, in the names for the lengths of x or in the new shape. x is (B, T,
            D): its first axis is the batch.""", quotes=sizes),
        mistake("interleaved features", RIGHT.but(SPLIT_LINE, "x.reshape(B, T, D // h, h).permute(0, 3, 1, 2)"), SPLIT,
            """The features of the heads are interleaved: head 0 got features 0, h, 2h and so on. It should get the
            *first d_k*, head 1 the next d_k.""", quotes=stands),
        mistake("heads behind the words", RIGHT.but(".transpose(1, 2)", ""), SPLIT,
            """The features are cut, but the head axis still comes after the words. Each head must hold a whole
            sentence: (B, h, T, d_k).""", quotes=sizes),
        mistake("heads before the batch", RIGHT.but(SPLIT_LINE, "torch.stack(x.chunk(h, dim=-1))"), SPLIT,
            "The heads came first, before the batch. The batch stays in front: (B, h, T, d_k).", quotes=sizes),
        mistake("the whole word for every head", RIGHT.but(SPLIT_LINE, "x[:, None].repeat(1, h, 1, 1)"), SPLIT,
            """Every head got a copy of all D features. The features are *divided among the heads*: each head gets D/h
            of them, so the work does not grow.""", quotes=sizes),
        mistake("the words shared out",
                RIGHT.but(SPLIT_LINE, "x.view(B, h, T // h, D)"), SPLIT,
            """You divided the *words* among the heads. Every head sees every word: the *features* are divided, D/h of
            them for each head.""", quotes=sizes),
        mistake("d_k and words exchanged", RIGHT.but(".transpose(1, 2)", ".permute(0, 2, 3, 1)"), SPLIT,
            """The heads are right, but each is transposed: d_k comes before the words. The features of a word come
            last: (B, h, T, d_k).""", quotes=sizes),
        mistake("pieces of h features", RIGHT.but("h, D // h).", "D // h, h)."), SPLIT,
            """There are D/h heads of h features instead of h heads of D/h features. In the new shape the number of
            heads comes first, then d_k.""", quotes=sizes),
        mistake("heads last", RIGHT.but(".transpose(1, 2)", ".transpose(2, 3)"), SPLIT,
            "The heads came last: (B, T, d_k, h). Axes count from 0: after cutting, the words are axis 1, "
            "the heads axis 2.",
            quotes=sizes),
        mistake("features before heads", RIGHT.but(".transpose(1, 2)", ".transpose(1, 3)"), SPLIT,
            """Axes 1 and 3 changed places: the words came last. Axes count from 0: after cutting, the words are axis 1,
            the heads axis 2.""", quotes=sizes),
        mistake("batch and heads exchanged", RIGHT.but(".transpose(1, 2)", ".transpose(0, 2)"), SPLIT,
            "The heads changed places with the *batch*. They change places with the words: axes 1 and 2, "
            "counted from 0.",
            quotes=sizes),
        mistake("batch and heads in one axis", RIGHT.ending_in(".reshape(B * h, T, -1)"), SPLIT,
            """Two axes are one now, end to end: batch and heads, or heads and words. Keep four axes:
            (B, h, T, d_k).""", quotes=sizes, shows=joined_axes),
        mistake("cut back into the old shape", RIGHT.ending_in(".reshape(B, T, D)"), SPLIT,
            """After the heads were moved, the strip was cut back into (B, T, D), which scrambles it. The result has
            four axes: (B, h, T, d_k).""", quotes=sizes),
        mistake("heads in the opposite order", RIGHT.ending_in(".flip(1)"), SPLIT,
            "The heads are in the opposite order: head 0 gets the first d_k features, not the last.", quotes=stands),
        mistake("first head only", RIGHT.ending_in("[:, 0]"), SPLIT,
            """Only one head came back: head 0, or the last one. Return all h of them, along an axis of their own. (If
            there is a loop, does it return in its first turn, or does each turn write over the one before?)""",
            quotes=sizes, shows=one_head),
        mistake("first sentence only", RIGHT.but(SPLIT_LINE, "x[0].reshape(T, h, D // h).transpose(0, 1)"), SPLIT,
            "Only the first sentence was split: the batch axis is gone.", quotes=sizes),
        mistake("divided by the number of heads", RIGHT.ending_in(" / h"), SPLIT,
            "Everything was divided by the number of heads. The numbers only move; none of them changes.",
            quotes=stands),
        families.A_SIZE_THAT_IS_A_FLOAT(RIGHT.but("D // h).", "D / h)."), SPLIT),
        mistake("a list of heads", RIGHT.but(SPLIT_LINE, "list(x.chunk(h, dim=-1))"), SPLIT,
            "A Python list of heads came back. Return one tensor; torch.stack makes it, and its dim says where the "
            "axis goes."),
        mistake("the rest cut off", RIGHT.but(CHECK + "heads = x.reshape", "heads = x[..., :D // h * h].reshape"),
                SPLIT,
            "7 features cannot be divided among 2 heads; you dropped those that were left over. Raise a ValueError "
            "instead."),
        mistake("no check of the sizes", RIGHT.but(CHECK, ""), SPLIT,
            """When D is not a multiple of h, torch stops with an error of its own. Check the sizes first, and raise a
            ValueError that says what was expected."""),
        families.SIZES_ASSERTED(RIGHT.but(CHECK, "assert D % h == 0\n    "), SPLIT),
        families.ANOTHER_ERROR(RIGHT.but("ValueError", "TypeError"), SPLIT, name="TypeError in place of ValueError"),
        mistake("the words checked", RIGHT.but("D % h", "T % h"), SPLIT,
            """Your code requires the number of *words* to be a multiple of h. Words are not divided among the heads,
            features are."""),
        mistake("divided the wrong way round", RIGHT.but("D % h", "h % D"), SPLIT,
            "ValueError comes even where the heads fit: D must be a multiple of h, and you checked the opposite."),
        mistake("an error that is returned", RIGHT.but("raise ValueError", "return ValueError"), SPLIT,
            "The ValueError is made and returned as if it were a result. Raise it, or the caller never notices."),
        mistake("None for sizes that do not fit",
                RIGHT.but('raise ValueError("D must be a multiple of h")', "return None"), SPLIT,
            "Where D is not a multiple of h you return None, which goes unnoticed. Raise a ValueError."),
        mistake("features turned forward, then cut",
                RIGHT.but(SPLIT_LINE, "x.transpose(1, 2).reshape(B, h, T, D // h)"), SPLIT,
            """Some rows hold numbers of other words now: axes were moved before the strip was cut, or the wrong axes
            were cut. Cut the feature axis first, and let reshape touch nothing else.""",
            quotes=stands, shows=of_other_words),
        *usual_mistakes(RIGHT, arguments="x", detached=SPLIT, float32=SPLIT, single=SPLIT, squeezed=SPLIT,
                        viewed=SPLIT, quotes_size=sizes),
    ),
    correct=(
        correct("reshape and transpose", RIGHT),
        correct("view, permute", RIGHT.but(SPLIT_LINE, "x.view(B, T, h, -1).permute(0, 2, 1, 3).contiguous()")),
        correct("unflatten", RIGHT.but(SPLIT_LINE, "x.unflatten(-1, (h, -1)).movedim(2, 1)")),
        correct("chunk and stack", RIGHT.but(SPLIT_LINE, "torch.stack(x.chunk(h, dim=-1), dim=1)")),
        correct("slices", RIGHT.but(SPLIT_LINE, "torch.stack([x[:, :, i * (D // h):(i + 1) * (D // h)] for i in "
                                                "range(h)], dim=1)")),
        correct("features forward, cut, back",
                RIGHT.but(SPLIT_LINE, "x.transpose(1, 2).reshape(B, h, D // h, T).transpose(2, 3)")),
        correct("einsum", RIGHT.but(SPLIT_LINE, 'torch.einsum("bthk->bhtk", x.reshape(B, T, h, D // h))')),
        correct("loops", """
            def split_heads(tokens, number):
                d_k, rest = divmod(tokens.size(2), number)
                if rest:
                    raise ValueError(f"{tokens.size(2)} features, {number} heads")
                sentences = []
                for sentence in tokens:
                    heads = []
                    for head in range(number):
                        heads.append(torch.stack([word[head * d_k:head * d_k + d_k] for word in sentence]))
                    sentences.append(torch.stack(heads))
                return torch.stack(sentences)
        """),
        correct("an empty tensor filled", """
            def split_heads(x, h):
                B, T, D = x.shape
                if D / h != D // h:
                    raise ValueError
                out = x.new_empty(B, h, T, D // h)
                for i in range(h):
                    out[:, i] = x[..., i * D // h:(i + 1) * D // h]
                return out
        """),
        correct("an error class of one's own",
                RIGHT.but('ValueError("D must be a multiple of h")', "Indivisible(D, h)").but(
            "def split_heads", "class Indivisible(ValueError):\n    pass\n\ndef split_heads")),
        correct("one-liner with a helper", """
            def check(D, h):
                if D % h:
                    raise ValueError("no")
                return D // h

            split_heads = lambda x, h: x.unfold(-1, check(x.shape[-1], h), x.shape[-1] // h).transpose(1, 2)
        """),
    ),
    hints=(
        "which axis is cut, and which axes stay as they are? Do that first; only then think about the "
        "order of the axes.",
        "(B, T, D) is cut into (B, T, h, D/h). Then heads and words change places: (B, h, T, D/h).",
        "if D is not a multiple of h: raise ValueError. Cut the last axis into h pieces of D/h. Exchange axis "
        "1 with axis 2.",
    ),
)
