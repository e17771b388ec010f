"""09.4: a decoder layer: masked self-attention, cross-attention and a feed-forward network."""

import torch
from torch import Tensor

from autograder.catalogue import families
from autograder.catalogue.ch09_blocks.shared import (
    CAPPED_AT_6,
    FIXED_RATE,
    LIBRARY,
    RATE,
    WORKED,
    constant_sub_layers,
    drawn,
    dropped_by_element,
    sections,
    silent,
    with_heads,
    wrong_word,
)
from autograder.catalogue.exercise import Block, Case, Exercise
from autograder.catalogue.families import Family, usual_mistakes
from autograder.catalogue.known_answers import correct, mistake
from autograder.catalogue.probes import FAR, hidden, normal, usual_probes, visible
from transformer_ref.model import decoder

NORM, RESIDUAL, PLACEMENT, DECODER, THREE, FEED = sections("norm residual placement decoder three feed")


class DecoderLayer(decoder.DecoderLayer):
    """Self-attention, cross-attention and the feed-forward network, each with its residual and its norm."""

    def __init__(self, d: int, h: int, d_ff: int, dropout: float, norm_first: bool) -> None:
        super().__init__(d, h, d_ff, dropout, norm_first)

    def forward(self, y: Tensor, memory: Tensor, tgt_mask: Tensor | None = None,
                src_mask: Tensor | None = None) -> Tensor:
        return super().forward(y, memory, tgt_mask, src_mask).output


def parts(d: int, h: int, d_ff: int, dropout: float, norm_first: bool) -> tuple[Block, ...]:
    return (
        Block("self-attention", "attention", (d, h)),
        Block("cross-attention", "attention", (d, h)),
        Block("feed-forward", "feed-forward", (d, d_ff)),
        *(Block(f"norm {n}", "norm", (d,)) for n in (1, 2, 3)),
    )


def causal(T: int) -> Tensor:
    return torch.ones(T, T, dtype=torch.bool).tril()


def inputs(
    g: torch.Generator, B: int, Tt: int, Ts: int, D: int, h: int, d_ff: int, norm_first: bool = False,
    dropout: float = 0.0, dtype: torch.dtype = torch.float32, high: float = 0.0,
) -> Case:  # fmt: skip
    """Two sentences without masks. high: added to every other hidden unit of the feed-forward network."""
    made = (D, h, d_ff, dropout, norm_first)
    read = tuple(1.5 * (normal(g, B, T, D, dtype=dtype) + 0.5) for T in (Tt, Ts))
    weights = drawn(g, parts(*made), dtype)
    weights["feed-forward.first bias"][::2] += high
    return Case(read, construct=made, weights=weights)


def before(g: torch.Generator, *sizes: int, dtype: torch.dtype = torch.float32) -> Case:
    return inputs(g, *sizes, norm_first=True, dtype=dtype)


def masked(
    g: torch.Generator, B: int, Tt: int, Ts: int, D: int, h: int, d_ff: int, norm_first: bool, by_head: bool = False
) -> Case:
    """The masks of chapter 08: the target's causal, the source's with pads at the end; or two drawn ones."""
    case = inputs(g, B, Tt, Ts, D, h, d_ff, norm_first)
    lengths = torch.randint(1, Ts, (B,), generator=g)
    tgt_mask, src_mask = causal(Tt), (torch.arange(Ts) < lengths[:, None])[:, None, None]
    if by_head:
        tgt_mask = causal(Tt) & (torch.rand(B, h, Tt, Tt, generator=g) < 0.7)
        tgt_mask[..., 0] = True
        src_mask = torch.rand(B, 1, Tt, Ts, generator=g) < 0.6
        src_mask[..., 1] = True
    return Case((*case.arguments, tgt_mask, src_mask), construct=case.construct, weights=case.weights)


def of_two_axes(g: torch.Generator) -> Case:
    """Masks without a batch and without heads, of which each word has a row of its own."""
    case = inputs(g, 2, 4, 5, 6, 3, 10, True)
    src_mask = torch.rand(4, 5, generator=g) < 0.5
    src_mask[:, 2], src_mask[1:, 0] = True, False
    return Case((*case.arguments, causal(4), src_mask), construct=case.construct, weights=case.weights)


def one_mask(g: torch.Generator, which: int) -> Case:
    case = masked(g, 2, 4, 5, 6, 3, 10, True)
    masks = [None, None]
    masks[which] = case.arguments[2 + which]
    return Case((*case.arguments[:2], *masks), construct=case.construct, weights=case.weights)


def far_away(g: torch.Generator) -> Case:
    """One feature of every word is 100,000,000, so that additions need all digits."""
    case = before(g, 2, 3, 5, 8, 4, 10, dtype=torch.float64)
    case.arguments[0][..., 0] += FAR
    return case


OUTPUTS = {"self-attention.output bias": 1.0, "cross-attention.output bias": 4.0, "feed-forward.second bias": 16.0}


def some_dropped(g: torch.Generator) -> Case:
    made = (16, 4, 20, RATE, True)
    case = constant_sub_layers(made, parts(*made), OUTPUTS)
    return Case((*case.arguments, normal(g, 2, 5, 16)), construct=made, weights=case.weights)


def nothing_added(g: torch.Generator, norm_first: bool) -> Case:
    made = (4, 2, 6, 0.0, norm_first)
    y = torch.stack([WORKED, WORKED.flip(0) + 3])[None]
    return Case((y, normal(g, 1, 3, 4)), construct=made, weights=silent(parts(*made)))


RIGHT = with_heads("""
    class DecoderLayer(nn.Module):
        def __init__(self, d, h, d_ff, dropout, norm_first):
            super().__init__()
            self.norm_first = norm_first
            self.own, self.cross = Heads(d, h), Heads(d, h)
            self.widen, self.narrow = nn.Linear(d, d_ff), nn.Linear(d_ff, d)
            self.norm1, self.norm2, self.norm3 = nn.LayerNorm(d), nn.LayerNorm(d), nn.LayerNorm(d)
            self.drop = nn.Dropout(dropout)

        def think(self, x):
            return self.narrow(torch.relu(self.widen(x)))

        def forward(self, y, memory, tgt_mask=None, src_mask=None):
            if self.norm_first:
                seen = self.norm1(y)
                y = y + self.drop(self.own(seen, seen, tgt_mask))
                seen = self.norm2(y)
                y = y + self.drop(self.cross(seen, memory, src_mask))
                seen = self.norm3(y)
                y = y + self.drop(self.think(seen))
            else:
                y = self.norm1(y + self.drop(self.own(y, y, tgt_mask)))
                y = self.norm2(y + self.drop(self.cross(y, memory, src_mask)))
                y = self.norm3(y + self.drop(self.think(y)))
            return y
""")
OWN, CROSS, THINK = "self.own(seen, seen, tgt_mask)", "self.cross(seen, memory, src_mask)", "self.think(seen)"
PRE = tuple(f"y = y + self.drop({said})" for said in (OWN, CROSS, THINK))
POST_SAID = tuple(said.replace("seen", "y") for said in (OWN, CROSS, THINK))
POST = tuple(f"y = self.norm{n}(y + self.drop({said}))" for n, said in zip((1, 2, 3), POST_SAID, strict=True))
SEEN = tuple(f"seen = self.norm{n}(y)" for n in (1, 2, 3))
NORMS = "self.norm1, self.norm2, self.norm3 = nn.LayerNorm(d), nn.LayerNorm(d), nn.LayerNorm(d)"
ATTENTIONS, DROP = "self.own, self.cross = Heads(d, h), Heads(d, h)", "self.drop = nn.Dropout(dropout)"
FORWARD = RIGHT[RIGHT.index("        if self.norm_first:") :].strip()


def both(place: int, old: str, new: str, answer=RIGHT):
    """The answer with a change in one sub-layer's line of either order."""
    pre, post = PRE[place], POST[place]
    return answer.but(pre, pre.replace(old, new)).but(post, post.replace(old.replace("seen", "y"),
        new.replace("seen", "y")))


def forward(source: str):
    """The answer with another body of forward."""
    return RIGHT.but(FORWARD, "\n" + source)


def no_residual(*places: int):
    changed = RIGHT
    for place in places:
        changed = both(place, "y + self", "self", changed)
    return changed


# fmt: off
MASKS_INVERTED = Family("masks the wrong way round", """The masks were inverted on their way. True = *may* attend, here
    and in your attention (nn.MultiheadAttention means the opposite).""")
# fmt: on

EXERCISE = Exercise(
    id="decoder-layer", number="09.4", difficulty=3, minutes=35, visible_points=2, hidden_points=6,
    reference=DecoderLayer, roles=parts, normalize=dropped_by_element(*OUTPUTS.values()), section=DECODER,
    quotes=wrong_word, forbidden=LIBRARY,
    probes=(
        visible("nothing is added, pre-norm", nothing_added, True),
        visible("4 target words, 4 source words", masked, 2, 4, 4, 6, 3, 10, False),
        visible("4 target words, 5 source words, post-norm", masked, 2, 4, 5, 6, 3, 10, False),
        visible("4 target words, 5 source words, pre-norm", masked, 2, 4, 5, 6, 3, 10, True),
        visible("dropout 0.5, in evaluation", inputs, 2, 3, 4, 6, 2, 8, dropout=0.5),
        *usual_probes(before, other=(3, 5, 4, 8, 2, 10), smallest=(1, 1, 1, 6, 1, 4), common=(2, 4, 5, 6, 3, 10),
                      precise=far_away),
        hidden("gradients, post-norm", inputs, 2, 3, 4, 6, 2, 8, dtype=torch.float64, checks="gradients",
               announced_by="post-norm, as in the paper"),
        hidden("other sizes, post-norm", inputs, 3, 4, 6, 8, 2, 10, high=30.0,
               announced_by="post-norm, as in the paper"),
        hidden("the target's mask alone", one_mask, 0, announced_by="either may be left out"),
        hidden("the source's mask alone", one_mask, 1, announced_by="either may be left out"),
        hidden("masks for each head and each word", masked, 3, 4, 5, 6, 2, 10, False, True,
               announced_by="broadcasts to (B, h, Tt, Tt)"),
        hidden("masks of two axes, pre-norm", of_two_axes, announced_by="The masks broadcast"),
        hidden("more target words than source words", masked, 2, 6, 3, 8, 4, 10, True,
               announced_by="Tt and Ts usually differ"),
        hidden("in training, all dropped, pre-norm", inputs, 2, 4, 5, 6, 3, 10, True, 1.0, checks="training",
               announced_by="With dropout 1 nothing is added in training"),
        hidden("in training, all dropped, post-norm", inputs, 2, 4, 5, 6, 3, 10, False, 1.0, checks="training",
                  announced_by="With dropout 1 nothing is added in training"),
        hidden("in training, dropout 0.4", some_dropped, checks="training",
               announced_by="each with residual, dropout and a norm of its own, exactly as in 09.3"),
    ),
    mistakes=(
        mistake("keys and values from the target", both(1, "memory", "seen"), THREE,
            """The second attention never reads memory: your output does not change when the source does. Queries come
            from the target's words, keys and values from *memory*."""),
        mistake("keys and values from the target, no source mask", both(1, "memory, src_mask", "seen, tgt_mask"), THREE,
            """Both attentions read the target: the source has no effect. The second one takes its keys and values from
            memory, with the source's mask."""),
        mistake("queries from the memory", both(1, "seen, memory", "memory, seen"), THREE,
            "In the second attention the queries come from the source, keys and values from the target, so Ts words "
            "come out. The queries come from the target, keys and values from memory."),
        mistake("memory asks itself", both(1, "seen, memory", "memory, memory"), THREE,
            "In the second attention queries, keys and values all come from memory, so Ts words come out. The queries "
            "come from the target."),
        mistake("masks exchanged", both(0, "tgt_mask", "src_mask", both(1, "src_mask", "tgt_mask")), THREE,
            """The two masks are exchanged. Their last axis shows what they hide: tgt_mask (…, Tt) words of the target,
            src_mask (…, Ts) words of the source. torch raises an error only where Ts and Tt differ."""),
        mistake("the target's mask on the source", both(1, "src_mask", "tgt_mask"), THREE,
            """The second attention was given the target's mask: word 0 would see only word 0 of the source. The source
            is there whole; its mask hides only pads."""),
        mistake("causal on the source", RIGHT.beginning_with(
                  "early = torch.ones(y.shape[1], memory.shape[1], dtype=torch.bool).tril()",
                  "src_mask = early if src_mask is None else early & src_mask"), THREE,
            """Word i sees only the source up to word i: a causal mask was put on the second attention. The whole
            source is read before the first word is generated."""),
        mistake("a causal mask of its own", RIGHT.beginning_with(
                  "early = torch.ones(y.shape[1], y.shape[1], dtype=torch.bool).tril()",
                  "tgt_mask = early if tgt_mask is None else early & tgt_mask"), DECODER,
            """Your layer makes a causal mask of its own. A layer uses only the masks that it is given; with None, every
            word attends to all words."""),
        mistake("the target's mask ignored", both(0, "tgt_mask", "None"), DECODER,
            "tgt_mask was not passed to the first attention: every word sees the words after it."),
        mistake("the source's mask ignored", both(1, "src_mask", "None"), DECODER,
            "src_mask was not passed to the second attention: the source's pads are read as if they were words."),
        mistake("both masks ignored", both(0, "tgt_mask", "None", both(1, "src_mask", "None")), DECODER,
            "Neither mask was passed on: later words and the source's pads are seen."),
        MASKS_INVERTED(RIGHT.beginning_with(
                  "tgt_mask = None if tgt_mask is None else ~tgt_mask",
                  "src_mask = None if src_mask is None else ~src_mask"),
            DECODER),
        MASKS_INVERTED(RIGHT.but(
                  "torch.softmax(scores, dim=-1)", "torch.softmax(scores, dim=-1).nan_to_num()").beginning_with(
                  "tgt_mask = None if tgt_mask is None else ~tgt_mask",
                  "src_mask = None if src_mask is None else ~src_mask"),
            DECODER, name="masks the wrong way round, zeros where none is left"),
        mistake("the source asked before the first sum", RIGHT.but(SEEN[1], "seen = self.norm2(seen)"), PLACEMENT,
            "In pre-norm the queries of the second attention come from the *input* of the first one. They come from "
            "the norm of y as it is after the first sum."),
        mistake("normed once more at the end", RIGHT.but("        return y\n", "        return self.norm3(y)\n"),
                PLACEMENT,
            "A norm was used once more at the end of the layer. In post-norm the last sum is normed already; in "
            "pre-norm it is left as it is."),
        mistake("no attention to the source", RIGHT.without(PRE[1]).without(POST[1]).without(SEEN[1]), THREE,
            """There are two sub-layers instead of three, and one attention instead of two: the target attends to
            itself, and then to the source. Most often it is the source that is forgotten, so memory has no effect."""),
        mistake("no feed-forward network", RIGHT.without(PRE[2]).without(POST[2]).without(SEEN[2]), DECODER,
            "There are two sub-layers instead of three: the feed-forward network is missing."),
        mistake("one attention for both",
                RIGHT.but(ATTENTIONS, "self.own = Heads(d, h)\n        self.cross = self.own"), THREE,
            "One attention module serves twice, with the same four matrices. Each of the two has its own."),
        mistake("the source first", forward("""
            if self.norm_first:
                seen = self.norm1(y)
                y = y + self.drop(self.cross(seen, memory, src_mask))
                seen = self.norm2(y)
                y = y + self.drop(self.own(seen, seen, tgt_mask))
                return y + self.drop(self.think(self.norm3(y)))
            y = self.norm1(y + self.drop(self.cross(y, memory, src_mask)))
            y = self.norm2(y + self.drop(self.own(y, y, tgt_mask)))
            return self.norm3(y + self.drop(self.think(y)))"""), DECODER,
            "The attentions are in the wrong order: the target attends to itself first, then to the source."),
        mistake("the feed-forward network between", forward("""
            if self.norm_first:
                seen = self.norm1(y)
                y = y + self.drop(self.own(seen, seen, tgt_mask))
                y = y + self.drop(self.think(self.norm2(y)))
                return y + self.drop(self.cross(self.norm3(y), memory, src_mask))
            y = self.norm1(y + self.drop(self.own(y, y, tgt_mask)))
            y = self.norm2(y + self.drop(self.think(y)))
            return self.norm3(y + self.drop(self.cross(y, memory, src_mask)))"""), DECODER,
            "The feed-forward network is between the two attentions. It comes last."),
        mistake("memory normed again", RIGHT.but(CROSS, CROSS.replace("memory", "self.norm2(memory)")), PLACEMENT,
            "In pre-norm you normalized memory as well. Use the encoder's output as it is: only y is normalized "
            "here."),
        mistake("memory normed again, in both orders", both(1, "memory", "self.norm2(memory)"), PLACEMENT,
            "You normalized memory. Use the encoder's output as it is: only y is normalized here."),
        mistake("queries not normed", RIGHT.but(CROSS, CROSS.replace("seen", "y")), PLACEMENT,
            "In pre-norm the queries to the source come from a y that was not normed. Every sub-layer reads a normed "
            "y."),
        mistake("values from the target",
                RIGHT.but("def forward(self, asking, asked, mask):",
                          "def forward(self, asking, asked, mask, mixed=None):").but(
                  "self.cut(self.W_v(asked))", "self.cut(self.W_v(asked if mixed is None else mixed))").but(
                  CROSS, "self.cross(seen, memory, src_mask, seen[:, :1].expand_as(memory))").but(
                  POST_SAID[1], "self.cross(y, memory, src_mask, y[:, :1].expand_as(memory))"), THREE,
            "In the second attention the values do not come from memory. Keys *and* values do."),
        mistake("the source added to the words", both(1, "y + self", "memory[:, :1] + self"), RESIDUAL,
            "The output of the second attention was added to memory. It is added to the target's words."),
        mistake("the source cut to the target's length", RIGHT.beginning_with("memory = memory[:, : y.shape[1]]",
                  "src_mask = src_mask if src_mask is None else src_mask[..., : y.shape[1]]"), THREE,
            "The source was cut to the length of the target. Attention has no trouble with Ts and Tt that differ: "
            "read it whole."),
        mistake("no residual", no_residual(0, 1, 2), RESIDUAL,
            "The residual is missing: the output of a sub-layer *replaced* the words. When all three output zeros, y "
            "has to come through."),
        mistake("no residual around the first attention", no_residual(0), RESIDUAL,
            "y is not added to the output of the first attention. All three sub-layers have a residual."),
        mistake("no residual around the second attention", no_residual(1), RESIDUAL,
            "y is not added to the output of the second attention, so the target's words are lost there. All three "
            "have a residual."),
        mistake("no residual around the feed-forward network", no_residual(2), RESIDUAL,
            "y is not added to the output of the feed-forward network. All three sub-layers have a residual."),
        mistake("residual from the normed y",
                RIGHT.but(PRE[0], PRE[0].replace("y + ", "seen + ")).but(PRE[1], PRE[1].replace("y + ", "seen + ")).but(
                  PRE[2], PRE[2].replace("y + ", "seen + ")), RESIDUAL,
            "In pre-norm you added to the *normed* y. When the sub-layers output zeros, y itself must come back; yours "
            "came back normed."),
        mistake("the second sum made with the y that came",
                RIGHT.beginning_with("came = y").but(PRE[1], PRE[1].replace("y + ", "came + ")).but(
                  POST[1], POST[1].replace("y + self", "came + self")), RESIDUAL,
            "The second sum was made with the y that came into the layer, so what the first attention added is lost."),
        mistake("the words ask as they came",
                RIGHT.beginning_with("came = y").but(POST_SAID[1], "self.cross(came, memory, src_mask)").but(
                  SEEN[1], "seen = self.norm2(came)"), DECODER,
            "The queries to the source were computed from the input of the layer. They are computed from the result of "
            "the first attention."),
        families.NORM_BEFORE_THE_SUM(RIGHT.but(POST[0], f"y = y + self.norm1(self.drop({POST_SAID[0]}))").but(
                  POST[1], f"y = y + self.norm2(self.drop({POST_SAID[1]}))").but(POST[2],
                      f"y = y + self.norm3(self.drop({POST_SAID[2]}))"),
            PLACEMENT, x="y"),
        *(
            mistake(f"norm before the sum, around {which}",
                    RIGHT.but(POST[place], f"y = y + self.norm{place + 1}(self.drop({POST_SAID[place]}))"), PLACEMENT,
                f"In post-norm the norm around {which} is on the wrong side of the sum: y + norm(f(y)). The paper's is "
                "norm(y + f(y)), for all three sub-layers.")
            for place, which in enumerate(("the first attention", "the second attention", "the feed-forward network"))
        ),
        families.ALWAYS_PRE_NORM(RIGHT.but("if self.norm_first:", "if True:"), PLACEMENT, x="y"),
        mistake("always post-norm", RIGHT.but("if self.norm_first:", "if False:"), PLACEMENT,
            "norm_first=True means y + f(norm(y)). Yours is post-norm whatever the flag says."),
        families.NORM_FIRST_INVERTED(RIGHT.but("if self.norm_first:", "if not self.norm_first:"), PLACEMENT),
        mistake("one norm for all",
                RIGHT.but(NORMS, "self.norm1 = nn.LayerNorm(d)\n        self.norm2 = self.norm3 = self.norm1"), DECODER,
            "One norm serves all three sub-layers. Each has its own, with its own scale and shift."),
        mistake("one norm for both attentions", RIGHT.but(
                  NORMS, "self.norm1, self.norm3 = nn.LayerNorm(d), nn.LayerNorm(d)\n        self.norm2 = self.norm1"),
                  DECODER,
            "There are two norms, one of which serves twice. Each of the three sub-layers has its own."),
        mistake("no third norm",
                RIGHT.but(NORMS, "self.norm1, self.norm2, self.norm3 = nn.LayerNorm(d), nn.LayerNorm(d), "
                                 "nn.Identity()"), NORM,
            "Only two norms are used. There should be three: one for each sub-layer. In pre-norm each sub-layer reads "
            "y through its own norm; in post-norm each sum goes through its own."),
        families.DROPOUT_NEVER_OFF(RIGHT.but(DROP, "self.drop = lambda x: F.dropout(x, dropout)"), DECODER),
        families.NO_DROPOUT(RIGHT.but(DROP, "self.drop = nn.Identity()"), DECODER),
        FIXED_RATE(RIGHT.but(DROP, "self.drop = nn.Dropout(0.1)"), DECODER, rate="the argument dropout"),
        FIXED_RATE(RIGHT.but(DROP, "self.drop = nn.Dropout()"), DECODER, name="a fixed dropout rate of one half",
                   rate="the argument dropout"),
        mistake("dropout missing on the second attention", both(1, "self.drop(self.cross(seen, memory, src_mask))",
                  "self.cross(seen, memory, src_mask)"), DECODER,
            "In training the output of the second attention is not dropped. The outputs of all three sub-layers are, "
            "before they are added."),
        families.NO_ACTIVATION(RIGHT.but("torch.relu(self.widen(x))", "self.widen(x)"), FEED, activation="A ReLU"),
        families.GELU(RIGHT.but("torch.relu(", "F.gelu("), FEED),
        CAPPED_AT_6(RIGHT.but("torch.relu(", "F.relu6("), FEED),
        families.TWO_RESULTS(RIGHT.ending_in(", None"),
            DECODER, name="the weights returned too", result="words, (B, Tt, D)"),
        mistake("masks always needed", RIGHT.but("tgt_mask=None, src_mask=None", "tgt_mask, src_mask"), DECODER,
            "The masks may be left out: then nothing is hidden. Give both the default None."),
        mistake("attentions in a plain list", RIGHT.but(ATTENTIONS, "self.both = [Heads(d, h), Heads(d, h)]").but(
                  OWN, "self.both[0](seen, seen, tgt_mask)").but(CROSS, "self.both[1](seen, memory, src_mask)").but(
                  POST_SAID[0], "self.both[0](y, y, tgt_mask)").but(POST_SAID[1], "self.both[1](y, memory, src_mask)"),
                  DECODER,
            "A Python list hides its layers from the module, so no optimizer trains them. nn.ModuleList shows them."),
        *usual_mistakes(RIGHT, arguments="y memory", detached=DECODER, float32=DECODER, squeezed=DECODER,
                        viewed=DECODER),
    ),
    correct=(
        correct("written out", RIGHT),
        correct("the library's attention, batch first", """
            class DecoderLayer(nn.Module):
                def __init__(self, d, h, d_ff, dropout, norm_first):
                    super().__init__()
                    self.h, self.pre = h, norm_first
                    self.self_attn = nn.MultiheadAttention(d, h, batch_first=True)
                    self.multihead_attn = nn.MultiheadAttention(d, h, batch_first=True)
                    self.linear1, self.linear2 = nn.Linear(d, d_ff), nn.Linear(d_ff, d)
                    for n in (1, 2, 3):
                        setattr(self, f"norm{n}", nn.LayerNorm(d))
                        setattr(self, f"dropout{n}", nn.Dropout(dropout))

                def look(self, attention, x, other, mask):
                    if mask is not None:
                        mask = ~mask.broadcast_to(len(x), self.h, x.shape[1], other.shape[1]).flatten(0, 1)
                    return attention(x, other, other, attn_mask=mask, need_weights=False)[0]

                def forward(self, y, memory, tgt_mask=None, src_mask=None):
                    steps = [
                        (self.norm1, self.dropout1, lambda t: self.look(self.self_attn, t, t, tgt_mask)),
                        (self.norm2, self.dropout2, lambda t: self.look(self.multihead_attn, t, memory, src_mask)),
                        (self.norm3, self.dropout3, lambda t: self.linear2(self.linear1(t).relu())),
                    ]
                    for norm, drop, step in steps:
                        y = y + drop(step(norm(y))) if self.pre else norm(y + drop(step(y)))
                    return y
        """),
        correct("a residual as a module, keys and values fused", """
            class Residual(nn.Module):
                def __init__(self, d, p, pre):
                    super().__init__()
                    self.norm, self.drop, self.pre = nn.LayerNorm(d), nn.Dropout(p), pre

                def forward(self, x, f):
                    return x + self.drop(f(self.norm(x))) if self.pre else self.norm(x + self.drop(f(x)))

            class Look(nn.Module):
                def __init__(self, d, h):
                    super().__init__()
                    self.h = h
                    self.to_q, self.to_kv, self.to_out = nn.Linear(d, d), nn.Linear(d, 2 * d), nn.Linear(d, d)

                def forward(self, a, b, mask):
                    q, k, v = (x.unflatten(-1, (self.h, -1)).transpose(1, 2)
                        for x in (self.to_q(a), *self.to_kv(b).chunk(2, -1)))
                    return self.to_out(F.scaled_dot_product_attention(q, k, v, attn_mask=mask).transpose(1,
                        2).flatten(2))

            class DecoderLayer(nn.Module):
                def __init__(self, d, h, d_ff, dropout, norm_first):
                    super().__init__()
                    self.ways = nn.ModuleList(Residual(d, dropout, norm_first) for _ in range(3))
                    self.looks = nn.ModuleList([Look(d, h), Look(d, h)])
                    self.ff = nn.Sequential(nn.Linear(d, d_ff), nn.ReLU(), nn.Linear(d_ff, d))

                def forward(self, y, memory, tgt_mask=None, src_mask=None):
                    y = self.ways[0](y, lambda t: self.looks[0](t, t, tgt_mask))
                    y = self.ways[1](y, lambda t: self.looks[1](t, memory, src_mask))
                    return self.ways[2](y, self.ff)
        """),
        correct("cross made before self", RIGHT.but(ATTENTIONS, "self.cross, self.own = Heads(d, h), Heads(d, h)")),
        correct("bare parameters for everything", """
            class DecoderLayer(nn.Module):
                def __init__(self, d, h, d_ff, dropout, norm_first):
                    super().__init__()
                    self.h, self.p, self.first = h, dropout, norm_first
                    for which in ("self", "cross"):
                        for name in "qkvo":
                            self.register_parameter(f"W{name}_{which}", nn.Parameter(torch.randn(d, d) / d ** 0.5))
                            self.register_parameter(f"b{name}_{which}", nn.Parameter(torch.zeros(d)))
                    self.W1, self.b1 = nn.Parameter(torch.randn(d, d_ff)), nn.Parameter(torch.zeros(d_ff))
                    self.W2, self.b2 = nn.Parameter(torch.randn(d_ff, d)), nn.Parameter(torch.zeros(d))
                    self.gains = nn.ParameterList([nn.Parameter(torch.ones(d)) for _ in range(3)])
                    self.shifts = nn.ParameterList([nn.Parameter(torch.zeros(d)) for _ in range(3)])

                def norm(self, x, n):
                    c = x - x.mean(-1, keepdim=True)
                    return c / (c.pow(2).mean(-1, keepdim=True) + 1e-5).sqrt() * self.gains[n] + self.shifts[n]

                def look(self, which, x, other, mask):
                    W = lambda name: (getattr(self, f"W{name}_{which}"), getattr(self, f"b{name}_{which}"))
                    project = lambda z, name: z @ W(name)[0] + W(name)[1]
                    parts = [project(z, name).chunk(self.h, -1) for z, name in ((x, "q"), (other, "k"), (other, "v"))]
                    said = []
                    for i, (q, k, v) in enumerate(zip(*parts)):
                        s = q @ k.mT / q.shape[-1] ** 0.5
                        if mask is not None:
                            full = mask.expand(x.shape[0], self.h, x.shape[1], other.shape[1])
                            s = s.masked_fill(~full[:, i], -torch.inf)
                        said.append(s.softmax(-1) @ v)
                    return project(torch.cat(said, -1), "o")

                def step(self, y, n, f):
                    drop = lambda z: F.dropout(z, self.p, self.training)
                    return y + drop(f(self.norm(y, n))) if self.first else self.norm(y + drop(f(y)), n)

                def forward(self, y, memory, tgt_mask=None, src_mask=None):
                    y = self.step(y, 0, lambda t: self.look("self", t, t, tgt_mask))
                    y = self.step(y, 1, lambda t: self.look("cross", t, memory, src_mask))
                    return self.step(y, 2, lambda t: (t @ self.W1 + self.b1).clamp(min=0) @ self.W2 + self.b2)
        """),
        correct("masked by a large number", RIGHT.but('float("-inf")', "-1e30")),
    ),
    hints=(
        "for each of the three sub-layers: what gives the queries, what gives the keys, and which mask hides what?",
        "y (B, Tt, D) stays (B, Tt, D) throughout; memory is (B, Ts, D): the second attention's scores are "
        "(B, h, Tt, Ts).",
        "y to y with tgt_mask; y to memory with src_mask; feed-forward. Around each, as in 09.3, residual, dropout "
        "and a norm of its own.",
    ),
)  # fmt: skip
