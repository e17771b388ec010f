"""06.2: the heads of each word side by side again."""

import torch
from torch import Tensor

from autograder.catalogue.ch06_multi_head_attention.shared import THREE_WORDS, in_other_rows, labeled, sections, stands
from autograder.catalogue.exercise import Case, Evidence, Exercise
from autograder.catalogue.families import usual_mistakes
from autograder.catalogue.known_answers import answer, correct, formula, mistake
from autograder.catalogue.probes import FAR, hidden, normal, turned, usual_probes, visible
from autograder.catalogue.quotes import sizes
from transformer_ref.model import multi_head_attention

MERGE, SPLIT = sections("merge split")


def merge_heads(z: Tensor) -> Tensor:
    """The heads of each word side by side."""
    return multi_head_attention.merge_heads(z)


def inputs(g: torch.Generator, B: int, T: int, h: int, d_k: int, dtype: torch.dtype = torch.float32) -> Case:
    return Case((normal(g, B, h, T, d_k, dtype=dtype),))


def far_away(g: torch.Generator) -> Case:
    return Case((normal(g, 2, 3, 4, 5, dtype=torch.float64) + FAR,))


def heads_of(x: Tensor, h: int) -> Tensor:
    """The heads of words, as 06.1 splits them."""
    return multi_head_attention.split_heads(x, h).contiguous()


def of_other_words(evidence: Evidence) -> bool | None:
    """Whether all numbers are there, and some are in rows of other words."""
    return in_other_rows(evidence.got, evidence.expected)


RIGHT = answer("""
    def merge_heads(z):
        B, h, T, d_k = z.shape
        merged = z.transpose(1, 2).reshape(B, T, h * d_k)
        return merged
""")
MERGED = "z.transpose(1, 2).reshape(B, T, h * d_k)"
SCRAMBLED = """The shape is right and the contents are scrambled: the vector of word 0 holds head 0 of *several words*.
    Move the heads next to the features first, then join. (A public repository had exactly this, and its test, copying
    a sentence, still passed.)"""

EXERCISE = Exercise(
    id="merge-heads", number="06.2", difficulty=2, minutes=10, visible_points=2, hidden_points=4,
    reference=merge_heads, section=MERGE,
    probes=(
        visible("three words, two heads", Case((heads_of(THREE_WORDS[None], 2),))),
        # Transposed in memory, where a single view raises an error and a single reshape does not.
        visible("numbers that say where they were", Case((turned(heads_of(labeled(2, 4, 6), 3)),))),
        *usual_probes(inputs, other=(3, 5, 2, 4), smallest=(1, 1, 1, 3), common=(2, 4, 3, 5), precise=far_away),
        hidden("as many heads as features", inputs, 2, 3, 4, 1, announced_by="z: (B, h, T, d_k)"),
        hidden("as many words as heads", inputs, 2, 3, 3, 4, announced_by="z: (B, h, T, d_k)"),
    ),
    mistakes=(
        mistake("reshape alone", RIGHT.but(".transpose(1, 2)", ""), MERGE, SCRAMBLED, quotes=stands),
        mistake("joined by a single view", RIGHT.but(MERGED, "z.view(B, T, h * d_k)"), MERGE, SCRAMBLED, quotes=stands),
        mistake("heads and words exchanged in the unpacking",
                RIGHT.but("B, h, T, d_k = z.shape", "B, T, h, d_k = z.shape"), MERGE,
            """h and T are exchanged, in the names for the lengths of z or in the new shape, so there is a row for each
            head instead of each word. z is (B, h, T, d_k): its axis 1 is the heads.""", quotes=sizes),
        mistake("view after the exchange", RIGHT.but("reshape", "view"), MERGE,
            """view raises an error: a transpose only changes the strides, so the values are no longer contiguous in
            memory. Call contiguous() after the transpose and before view, or use reshape."""),
        mistake("mean over the heads", RIGHT.but(MERGED, "z.mean(dim=1)"), MERGE,
            "The heads were averaged, which throws away their differences. They belong *side by side*: h times d_k "
            "numbers.",
            quotes=sizes),
        mistake("sum over the heads", RIGHT.but(MERGED, "z.sum(dim=1)"), MERGE,
            "The heads were added up. They belong *side by side*: h times d_k numbers for each word.", quotes=sizes),
        mistake("the largest of the heads", RIGHT.but(MERGED, "z.amax(dim=1)"), MERGE,
            "For each feature you kept only the largest value of all heads. They belong *side by side*.", quotes=sizes),
        mistake("heads in the opposite order", RIGHT.but("z.transpose", "z.flip(1).transpose"), MERGE,
            "The last head came first. Head 0 takes the first d_k features, so that merging undoes splitting.",
            quotes=stands),
        mistake("features shuffled together", RIGHT.but("transpose(1, 2)", "permute(0, 2, 3, 1)"), MERGE,
            """The heads are interleaved: feature 0 of every head, then feature 1 of every head. First comes all of head
            0, then all of head 1.""", quotes=stands),
        mistake("words and features exchanged", RIGHT.but("transpose(1, 2)", "transpose(2, 3)"), MERGE,
            """Words and features changed places before joining, so the numbers of several words share a row. The axes
            that change places are heads and words, 1 and 2.""", quotes=stands),
        mistake("heads still apart", RIGHT.but(".reshape(B, T, h * d_k)", ""), MERGE,
            "The heads come after the words now, but they are not joined: four axes came back. There should be three, "
            "(B, T, h·d_k).",
            quotes=sizes),
        mistake("joined along the words", RIGHT.but(MERGED, "z.reshape(B, h * T, d_k)"), MERGE,
            """The heads were set one below the other: a sentence of h·T words. They belong *next to* each other, in
            the features.""", quotes=sizes),
        mistake("joined along the words, heads inside", RIGHT.but("B, T, h * d_k", "B, T * h, d_k"), MERGE,
            "Every word became h words. The heads of a word belong next to each other, in its features.", quotes=sizes),
        mistake("joined with the batch", RIGHT.but(MERGED, "z.flatten(0, 1)"), MERGE,
            "Batch and heads were joined. The heads belong next to each other in the features of each word.",
            quotes=sizes),
        mistake("sentences joined in place of heads", RIGHT.but(MERGED, "torch.cat(list(z), dim=-1)"), MERGE,
            """Walking along z walks along its *first* axis, the batch: you joined the sentences. The heads are axis 1;
            unbind takes the axis you name.""", quotes=sizes),
        mistake("heads stacked, not joined", RIGHT.but(MERGED, "torch.stack(z.unbind(1), dim=-1)"), MERGE,
            "Stacking makes a new axis: four axes came back. Joining (cat, or a reshape of the last two) leaves three.",
            quotes=sizes),
        mistake("two heads only", RIGHT.but(MERGED, "torch.cat([z[:, 0], z[:, min(1, h - 1)]], dim=-1)"), MERGE,
            "Two heads were joined, whatever h is. All of them belong next to each other.", quotes=sizes),
        mistake("heads and features exchanged", RIGHT.but("transpose(1, 2)", "transpose(1, 3)"), MERGE,
            """Axes 1 and 3 changed places, heads and features, so the numbers of several words share a row. The axes
            that change places are heads and words: 1 and 2.""", quotes=stands),
        mistake("first head only", RIGHT.but(MERGED, "z[:, 0]"), MERGE,
            "Only head 0 came back; what the others found is lost.", quotes=sizes),
        mistake("last head only", RIGHT.but(MERGED, "z[:, -1]"), MERGE,
            "Only the last head came back: does each turn of a loop write over the one before?", quotes=sizes),
        mistake("last head left out", RIGHT.but(MERGED, "z[:, :max(h - 1, 1)].transpose(1, 2).reshape(B, T, -1)"),
                MERGE,
            "The last head is missing: range(h - 1) and [:-1] both end one too early.", quotes=sizes),
        mistake("head 0 again and again", RIGHT.but(MERGED, "z[:, 0].repeat(1, 1, h)"), MERGE,
            "Head 0 is there h times. Each of the h pieces belongs to a different head.", quotes=stands),
        mistake("words first", RIGHT.but(MERGED, "z.permute(2, 0, 1, 3).reshape(T, B, h * d_k)"), MERGE,
            "The words came before the batch. The batch stays in front: (B, T, h·d_k).", quotes=sizes),
        mistake("batch and words exchanged", RIGHT.but("transpose(1, 2)", "transpose(0, 2)"), MERGE,
            "The batch changed places with the words. Heads and words do: axes 1 and 2, counted from 0.",
            quotes=stands),
        mistake("divided by the number of heads", RIGHT.ending_in(" / h"), MERGE,
            "Everything was divided by the number of heads. Nothing is averaged here; the numbers only move.",
            quotes=stands),
        mistake("first sentence only", RIGHT.but(MERGED, "torch.cat(list(z[0]), dim=-1)"), MERGE,
            "Only the first sentence was merged: the batch axis is gone.", quotes=sizes),
        mistake("a list of words", RIGHT.but(MERGED, "[z[:, :, t].reshape(B, -1) for t in range(T)]"), MERGE,
            "A Python list came back. Return one tensor: (B, T, h·d_k)."),
        mistake("all words in one row", RIGHT.but("B, T, h * d_k", "B, T * h * d_k"), MERGE,
            "All words of a sentence are in one long row. Each word keeps its own: (B, T, h·d_k).", quotes=sizes),
        mistake("words and sentences mixed", RIGHT.but("transpose(1, 2)", "permute(2, 0, 1, 3)"), MERGE,
            """Some rows hold numbers of other words now: axes changed places that should not, or the strip was cut as
            if they had not. Only heads and words change places, axes 1 and 2.""", quotes=stands, shows=of_other_words),
        *usual_mistakes(RIGHT, arguments="z", detached=MERGE, float32=MERGE, single=MERGE, squeezed=MERGE,
                        viewed=MERGE, quotes_size=sizes),
        mistake("z turned in place",
                RIGHT.but("z.transpose(1, 2).reshape", "(z if z.requires_grad else z.transpose_(1, 2)).reshape"), MERGE,
            "Your function transposed the caller's own tensor: a method whose name ends in _ works in place. Use the "
            "one without _."),
    ),
    correct=(
        correct("transpose and reshape", RIGHT),
        correct("contiguous and view", RIGHT.but(".reshape(", ".contiguous().view(")),
        correct("permute and flatten", RIGHT.but(MERGED, "z.permute(0, 2, 1, 3).flatten(2)")),
        correct("cat of unbind", formula("merge_heads(heads)", "torch.cat(heads.unbind(1), dim=-1)")),
        correct("cat of a list", RIGHT.but(MERGED, "torch.cat([z[:, i] for i in range(h)], 2)")),
        correct("hstack of words",
                RIGHT.but(MERGED, "torch.stack([z[:, :, t].reshape(B, h * d_k) for t in range(T)], dim=1)")),
        correct("einsum", RIGHT.but("z.transpose(1, 2)", "torch.einsum('bhtk->bthk', z)")),
        correct("movedim, minus one", RIGHT.but(MERGED, "z.movedim(1, 2).reshape(B, T, -1)")),
        correct("loops", """
            def merge_heads(z):
                out = torch.zeros(z.shape[0], z.shape[2], z.shape[1] * z.shape[3], dtype=z.dtype)
                for b, sentence in enumerate(z):
                    for t in range(z.shape[2]):
                        out[b, t] = torch.cat([head[t] for head in sentence])
                return out
        """),
        correct("features forward", RIGHT.but(MERGED, "z.transpose(2, 3).reshape(B, h * d_k, T).transpose(1, 2)")),
    ),
    hints=(
        "the features of one word must be next to each other before you join them. Where are they now?",
        "(B, h, T, d_k) becomes (B, T, h, d_k); then the last two axes become one: (B, T, h·d_k).",
        "exchange heads and words; join the last two axes. Splitting the result again must give z back.",
    ),
)
