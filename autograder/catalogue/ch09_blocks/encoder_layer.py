"""09.3: an encoder layer: self-attention and a feed-forward network, each with a residual."""

import torch
from torch import Tensor

from autograder.catalogue import families
from autograder.catalogue.ch09_blocks.shared import (
    CAPPED_AT_6,
    FIXED_RATE,
    LIBRARY,
    RATE,
    ROOT_OF_D,
    WORKED,
    constant_sub_layers,
    drawn,
    dropped_by_element,
    sections,
    silent,
    with_heads,
    wrong_word,
)
from autograder.catalogue.exercise import Block, Case, Evidence, Exercise
from autograder.catalogue.families import usual_mistakes
from autograder.catalogue.known_answers import correct, mistake
from autograder.catalogue.probes import FAR, hidden, normal, usual_probes, visible
from transformer_ref.model import encoder

NORM, EPSILON, FEED, RESIDUAL, PLACEMENT, LAYER = sections("norm epsilon feed residual placement layer")


class EncoderLayer(encoder.EncoderLayer):
    """Self-attention and the feed-forward network, each with its residual and its norm."""

    def __init__(self, d: int, h: int, d_ff: int, dropout: float, norm_first: bool) -> None:
        super().__init__(d, h, d_ff, dropout, norm_first)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        return super().forward(x, mask).output


def parts(d: int, h: int, d_ff: int, dropout: float, norm_first: bool) -> tuple[Block, ...]:
    return (
        Block("attention", "attention", (d, h)),
        Block("feed-forward", "feed-forward", (d, d_ff)),
        Block("norm 1", "norm", (d,)),
        Block("norm 2", "norm", (d,)),
    )


def inputs(
    g: torch.Generator, B: int, T: int, D: int, h: int, d_ff: int, norm_first: bool = False, dropout: float = 0.0,
    dtype: torch.dtype = torch.float32, high: float = 0.0,
) -> Case:  # fmt: skip
    """high: added to every other hidden unit of the feed-forward network."""
    made = (D, h, d_ff, dropout, norm_first)
    x = 1.5 * normal(g, B, T, D, dtype=dtype) + 0.5
    weights = drawn(g, parts(*made), dtype)
    weights["feed-forward.first bias"][::2] += high
    return Case((x,), construct=made, weights=weights)


def before(g: torch.Generator, *sizes: int, dtype: torch.dtype = torch.float32) -> Case:
    return inputs(g, *sizes, norm_first=True, dtype=dtype)


def masked(g: torch.Generator, B: int, T: int, D: int, h: int, d_ff: int, norm_first: bool, *axes: str) -> Case:
    """axes: of the mask, by name; the others have size 1 or are omitted at the front. Every word may attend to at least
    one."""
    case = inputs(g, B, T, D, h, d_ff, norm_first)
    sizes = {"B": B, "h": h, "Tq": T, "Tk": T, "1": 1}
    mask = torch.rand([sizes[axis] for axis in axes], generator=g) < 0.6
    mask[..., 0], mask[..., -1] = True, False
    return Case((*case.arguments, mask), construct=case.construct, weights=case.weights)


def far_away(g: torch.Generator) -> Case:
    """One feature of every word is 100,000,000, so that additions need all digits."""
    case = before(g, 2, 3, 8, 4, 10, dtype=torch.float64)
    case.arguments[0][..., 0] += FAR
    return case


def hardly_spread(g: torch.Generator) -> Case:
    """Words whose numbers hardly differ, before both norms, so that eps counts."""
    case = before(g, 2, 4, 6, 3, 10)
    weights = {role: 0.002 * weight if role.startswith(("attention.output", "feed-forward.second")) else weight
               for role, weight in (case.weights or {}).items()}  # fmt: skip
    return Case((0.002 * case.arguments[0],), construct=case.construct, weights=weights)


def x_is_dropped(evidence: Evidence) -> bool | None:
    """Whether all words came out alike, though x comes through where all outputs are dropped; None where all words of x
    are alike."""

    def alike(words: Tensor) -> bool:
        return torch.allclose(words, words[:1, :1].expand_as(words), atol=1e-6)

    return None if alike(evidence.arguments[0]) else alike(evidence.got) and not alike(evidence.expected)


OUTPUTS = {"attention.output bias": 1.0, "feed-forward.second bias": 4.0}


def some_dropped(g: torch.Generator) -> Case:
    made = (16, 4, 20, RATE, True)
    return constant_sub_layers(made, parts(*made), OUTPUTS)


def nothing_added(norm_first: bool) -> Case:
    """Sub-layers that return zeros, for an example computed by hand."""
    made = (4, 2, 6, 0.0, norm_first)
    return Case((torch.stack([WORKED, WORKED.flip(0) + 3])[None],), construct=made, weights=silent(parts(*made)))


RIGHT = with_heads("""
    class EncoderLayer(nn.Module):
        def __init__(self, d, h, d_ff, dropout, norm_first):
            super().__init__()
            self.norm_first = norm_first
            self.attention = Heads(d, h)
            self.widen, self.narrow = nn.Linear(d, d_ff), nn.Linear(d_ff, d)
            self.norm1, self.norm2 = nn.LayerNorm(d), nn.LayerNorm(d)
            self.drop = nn.Dropout(dropout)

        def think(self, x):
            return self.narrow(torch.relu(self.widen(x)))

        def forward(self, x, mask=None):
            if self.norm_first:
                seen = self.norm1(x)
                x = x + self.drop(self.attention(seen, seen, mask))
                seen = self.norm2(x)
                x = x + self.drop(self.think(seen))
            else:
                x = self.norm1(x + self.drop(self.attention(x, x, mask)))
                x = self.norm2(x + self.drop(self.think(x)))
            return x
""")
PRE_1, PRE_2 = "x = x + self.drop(self.attention(seen, seen, mask))", "x = x + self.drop(self.think(seen))"
POST_1, POST_2 = (
    "x = self.norm1(x + self.drop(self.attention(x, x, mask)))", "x = self.norm2(x + self.drop(self.think(x)))"
)
SEEN_1, SEEN_2 = "seen = self.norm1(x)", "seen = self.norm2(x)"
NORMS, DROP = "self.norm1, self.norm2 = nn.LayerNorm(d), nn.LayerNorm(d)", "self.drop = nn.Dropout(dropout)"
MAPS = "self.widen, self.narrow = nn.Linear(d, d_ff), nn.Linear(d_ff, d)"
THINK = "return self.narrow(torch.relu(self.widen(x)))"
FORWARD = RIGHT[RIGHT.index("        if self.norm_first:") :].rstrip("\n")


def forward(source: str):
    """The answer with another body of forward."""
    return RIGHT.but(FORWARD.lstrip(), "\n" + source)


EXERCISE = Exercise(
    id="encoder-layer", number="09.3", difficulty=3, minutes=35, visible_points=2, hidden_points=5,
    reference=EncoderLayer, roles=parts, normalize=dropped_by_element(*OUTPUTS.values()), section=LAYER,
    quotes=wrong_word, forbidden=LIBRARY,
    probes=(
        visible("nothing is added, pre-norm", nothing_added(True)),
        visible("nothing is added, post-norm", nothing_added(False)),
        visible("post-norm, 2 sentences of 4 words", inputs, 2, 4, 6, 3, 10),
        visible("pre-norm, 2 sentences of 4 words", before, 2, 4, 6, 3, 10),
        visible("a mask", masked, 2, 4, 6, 3, 10, False, "B", "1", "1", "Tk"),
        visible("dropout 0.5, in evaluation", inputs, 2, 3, 6, 2, 8, dropout=0.5),
        hidden("numbers that hardly differ", hardly_spread, announced_by="eps 0.00001"),
        *usual_probes(before, other=(3, 5, 8, 2, 10), smallest=(1, 1, 6, 1, 4), common=(2, 4, 6, 3, 10),
                      precise=far_away),
        hidden("gradients, post-norm", inputs, 2, 3, 6, 2, 8, dtype=torch.float64, checks="gradients",
               announced_by="post-norm, as in the paper"),
        hidden("other sizes, post-norm", inputs, 3, 5, 8, 2, 10, high=30.0,
               announced_by="post-norm, as in the paper"),
        hidden("a mask for each head, pre-norm", masked, 2, 4, 6, 3, 10, True, "B", "h", "Tq", "Tk",
               announced_by="broadcasts to (B, h, T, T)"),
        hidden("a mask for each head, post-norm", masked, 2, 4, 6, 3, 10, False, "B", "h", "Tq", "Tk",
               announced_by="broadcasts to (B, h, T, T)"),
        hidden("a mask of two axes", masked, 2, 4, 6, 3, 10, True, "Tq", "Tk",
               announced_by="broadcasts to (B, h, T, T)"),
        hidden("in training, all dropped, pre-norm", inputs, 2, 4, 6, 3, 10, True, 1.0, checks="training",
               announced_by="With dropout 1 nothing is added in training"),
        hidden("in training, all dropped, post-norm", inputs, 2, 4, 6, 3, 10, False, 1.0, checks="training",
               announced_by="With dropout 1 nothing is added in training"),
        hidden("in training, dropout 0.4", some_dropped, checks="training",
               announced_by="applied to the output of each sub-layer, before it is added, and only in training"),
    ),
    mistakes=(
        mistake("no residual", RIGHT.but(PRE_1, PRE_1.replace("x + ", "")).but(PRE_2, PRE_2.replace("x + ", "")).but(
                  POST_1, POST_1.replace("x + ", "")).but(POST_2, POST_2.replace("x + ", "")), RESIDUAL,
            """The residual is missing: the output of a sub-layer *replaced* the word. A sub-layer computes a
            correction, which is added to x. When its output is zero, x has to come through."""),
        mistake("no residual around attention",
                RIGHT.but(PRE_1, PRE_1.replace("x + ", "")).but(POST_1, POST_1.replace("x + ", "")), RESIDUAL,
            "x is not added to the output of attention, so the word's own vector is lost. Both sub-layers have a "
            "residual."),
        mistake("no residual around the feed-forward network", RIGHT.but(PRE_2, PRE_2.replace("x + ", "")).but(
                  POST_2, POST_2.replace("x + ", "")), RESIDUAL,
            "x is not added to the output of the feed-forward network. Both sub-layers have a residual."),
        mistake("residual from the normed x",
                RIGHT.but(PRE_1, PRE_1.replace("x + ", "seen + ")).but(PRE_2, PRE_2.replace("x + ", "seen + ")),
                RESIDUAL,
            """In pre-norm you added to the *normed* x. When both sub-layers output zeros, x itself must come back;
            yours came back normed. The sub-layer reads the normed x, the sum is made with x."""),
        families.NORM_BEFORE_THE_SUM(RIGHT.but(POST_1, "x = x + self.norm1(self.drop(self.attention(x, x, mask)))").but(
                  POST_2, "x = x + self.norm2(self.drop(self.think(x)))"),
            PLACEMENT, x="x"),
        mistake("norm after the sum in pre-norm", RIGHT.but(PRE_1,
                  "x = self.norm1(x + self.drop(self.attention(x, x, mask)))\n            seen = x").without(
                      SEEN_1).without(SEEN_2).but(
                  PRE_2, "x = self.norm2(x + self.drop(self.think(seen)))"), PLACEMENT,
            "With norm_first=True you normalize after the sum all the same. There the sub-layer reads norm(x), and "
            "the sum is left as it is."),
        families.ALWAYS_PRE_NORM(RIGHT.but("if self.norm_first:", "if True:"), PLACEMENT, x="x"),
        families.NORM_FIRST_INVERTED(RIGHT.but("if self.norm_first:", "if not self.norm_first:"), PLACEMENT),
        mistake("norm of what is said",
                RIGHT.but(PRE_1, PRE_1.replace("self.drop(", "self.drop(self.norm1(").replace("mask))", "mask)))")).but(
                  PRE_2, PRE_2.replace("self.drop(", "self.drop(self.norm2(") + ")").but(SEEN_1, "seen = x").but(SEEN_2,
                      "seen = x"), PLACEMENT,
            "In pre-norm you computed x + norm(f(x)): the norm comes before the sub-layer, x + f(norm(x))."),
        mistake("one norm in front of both", RIGHT.but(SEEN_2, "seen = seen + 0 * self.norm2(x)"), PLACEMENT,
            "In pre-norm the feed-forward network reads what attention read. It reads a norm of the x that the first "
            "sum left."),
        mistake("one residual from the normed x", RIGHT.but(PRE_1, PRE_1.replace("x + ", "seen + ")), RESIDUAL,
            "In pre-norm the first sum was made with the *normed* x. The sub-layer reads that; the sum "
            "is made with x."),
        mistake("normed once more at the end", RIGHT.but(
                  "        return x\n", "        return self.norm2(x) if self.norm_first else x\n"), PLACEMENT,
            "In pre-norm a norm was used once more at the end of the layer. The last sum is left as it is."),
        mistake("norms on both sides",
                RIGHT.but(PRE_1, "x = self.norm1(x + self.drop(self.attention(seen, seen, mask)))").but(
                  PRE_2, "x = self.norm2(x + self.drop(self.think(seen)))"), PLACEMENT,
            "In pre-norm you normalize before the sub-layer and once more after the sum. The sum is left as it is."),
        families.ONE_NORM_FOR_BOTH(RIGHT.but(NORMS, "self.norm1 = nn.LayerNorm(d)\n        self.norm2 = self.norm1"),
            LAYER, quotes=None),
        mistake("only one norm", RIGHT.but(NORMS, "self.norm1, self.norm2 = nn.LayerNorm(d), nn.Identity()"), LAYER,
            """Your layer owns only one norm. There should be two: each of the two sub-layers has its own. A norm
            that is made in forward is new at each call and learns nothing, so make both in the constructor."""),
        families.NO_NORM(RIGHT.but(NORMS, "self.norm1, self.norm2 = nn.Identity(), nn.Identity()"), NORM, where=""),
        families.RMS_NORMS(RIGHT.but("nn.LayerNorm(d), nn.LayerNorm(d)", "nn.RMSNorm(d), nn.RMSNorm(d)"), NORM),
        mistake("mask ignored",
                RIGHT.but(PRE_1, PRE_1.replace("mask", "None")).but(POST_1, POST_1.replace("mask", "None")), LAYER,
            "The mask was not passed to attention: pads are read as if they were words."),
        mistake("mask the wrong way round", RIGHT.beginning_with("mask = None if mask is None else ~mask"), LAYER,
            """The mask was inverted on its way to attention. True = *may* attend, here and in your attention
            (nn.MultiheadAttention means the opposite)."""),
        mistake("mask always needed", RIGHT.but("mask=None", "mask"), LAYER,
            "mask may be left out: then every word may attend to every word. Give it the default None."),
        families.DROPOUT_NEVER_OFF(RIGHT.but(DROP, "self.drop = lambda x: F.dropout(x, dropout)"), LAYER),
        mistake("no dropout", RIGHT.but(DROP, "self.drop = nn.Identity()"), LAYER,
            """Evaluation is right, but in training with dropout 1 nothing is dropped. Is there no dropout, or does it
            get the probability to *keep* a value? nn.Dropout takes the probability to drop one. Dropout acts on the
            output of each sub-layer, before the sum."""),
        FIXED_RATE(RIGHT.but(DROP, "self.drop = nn.Dropout(0.1)"), LAYER, rate="the argument dropout"),
        FIXED_RATE(RIGHT.but(DROP, "self.drop = nn.Dropout()"), LAYER, name="a fixed dropout rate of one half",
                   rate="the argument dropout"),
        mistake("dropout after the norm",
                RIGHT.but(POST_1, "x = self.drop(self.norm1(x + self.attention(x, x, mask)))").but(
                  POST_2, "x = self.drop(self.norm2(x + self.think(x)))"), RESIDUAL,
            "In post-norm dropout was put on the normed sum, so x is dropped with it. It belongs on the output of the "
            "sub-layer, before the sum."),
        families.DROPOUT_ON_THE_SUM(RIGHT.but(PRE_1, "x = self.drop(x + self.attention(seen, seen, mask))").but(PRE_2,
                  "x = self.drop(x + self.think(seen))").but(
                  POST_1, "x = self.norm1(self.drop(x + self.attention(x, x, mask)))").but(POST_2,
                      "x = self.norm2(self.drop(x + self.think(x)))"),
            RESIDUAL, shows=x_is_dropped),
        families.FEED_FORWARD_NOT_DROPPED(
                RIGHT.but(PRE_2, PRE_2.replace("self.drop(self.think(seen))", "self.think(seen)")).but(
                  POST_2, POST_2.replace("self.drop(self.think(x))", "self.think(x)")), LAYER),
        mistake("dropout on the feed-forward network alone",
                RIGHT.but(PRE_1, "x = x + self.attention(seen, seen, mask)").but(
                  POST_1, "x = self.norm1(x + self.attention(x, x, mask))"), LAYER,
            "In training no dropout acts on the output of attention. Both sub-layers have one."),
        families.FEED_FORWARD_FIRST(forward("""
            if self.norm_first:
                x = x + self.drop(self.think(self.norm1(x)))
                seen = self.norm2(x)
                return x + self.drop(self.attention(seen, seen, mask))
            x = self.norm1(x + self.drop(self.think(x)))
            return self.norm2(x + self.drop(self.attention(x, x, mask)))"""),
            LAYER, words="words"),
        families.IN_PARALLEL(forward("""
            if self.norm_first:
                seen, again = self.norm1(x), self.norm2(x)
                return x + self.drop(self.attention(seen, seen, mask)) + self.drop(self.think(again))
            heard = self.norm1(x + self.drop(self.attention(x, x, mask)))
            return self.norm2(heard + self.drop(self.think(x)))"""),
            LAYER, part="layer", words="words", more=""),
        families.INPUT_ADDED_AT_THE_END(RIGHT.but(PRE_1, "came = x\n            " + PRE_1).but(PRE_2,
                    "x = came + self.drop(self.think(seen))").but(
                  POST_1, "came = x\n            " + POST_1).but(POST_2,
                      "x = self.norm2(came + self.drop(self.think(x)))"),
            RESIDUAL, part="layer"),
        families.NO_FEED_FORWARD(RIGHT.without(PRE_2).without(POST_2).without(SEEN_2), LAYER),
        mistake("the feed-forward network alone", RIGHT.without(PRE_1).without(POST_1).without(SEEN_1), LAYER,
            "Attention was left out, and with it a norm. Attention mixes the words before the feed-forward network "
            "transforms each of them."),
        families.NO_ACTIVATION(RIGHT.but("torch.relu(self.widen(x))", "self.widen(x)"), FEED, activation="A ReLU"),
        families.GELU(RIGHT.but("torch.relu(", "F.gelu("), FEED),
        CAPPED_AT_6(RIGHT.but("torch.relu(", "F.relu6("), FEED),
        mistake("a second ReLU", RIGHT.but(THINK, "return torch.relu(self.narrow(torch.relu(self.widen(x))))"), FEED,
            "There is a second ReLU, after the second map, so nothing is ever lowered. There is one between the two."),
        mistake("ReLU at the end", RIGHT.but(THINK, "return torch.relu(self.narrow(self.widen(x)))"), FEED,
            "The ReLU comes after the second map, so nothing is ever lowered. It belongs between the two."),
        mistake("keys and values not normed", RIGHT.but(PRE_1, PRE_1.replace("seen, seen", "seen, x")), PLACEMENT,
            "In pre-norm only the queries come from the normed x. Keys and values should come from it as well: "
            "self-attention reads one x."),
        mistake("the second norm forgotten in pre-norm", RIGHT.but(SEEN_2, "seen = x"), PLACEMENT,
            "In pre-norm the feed-forward network read x as it is. It reads a normed x, as attention does."),
        families.SCORES_NOT_DIVIDED(RIGHT.but(" / q.shape[-1] ** 0.5", ""), LAYER, part="layer"),
        ROOT_OF_D(RIGHT.but("q.shape[-1] ** 0.5", "asking.shape[-1] ** 0.5"), LAYER, part="layer"),
        mistake("heads merged without the transpose",
                RIGHT.but("(shares @ v).transpose(1, 2).reshape(asking.shape)", "(shares @ v).reshape(asking.shape)"),
                LAYER,
            """The heads were put together in the wrong order. They are (B, h, T, d_k): if you reshape that, a row
            gets pieces of several words. Exchange heads and words first (chapter 06)."""),
        mistake("the output projection not used",
                RIGHT.but("return self.W_o((shares @ v).transpose(1, 2).reshape(asking.shape))",
                          "return (shares @ v).transpose(1, 2).reshape(asking.shape)"), LAYER,
            """Attention uses three of its four projections. The output projection W_O is missing, or it was made and
            forward never uses it: the merged heads go through it at the end."""),
        families.ONE_HEAD(RIGHT.but("Heads(d, h)", "Heads(d, 1)"), LAYER),
        mistake("heads and their width exchanged", RIGHT.but("Heads(d, h)", "Heads(d, d // h)"), LAYER,
            "Attention has d / h heads of width h. It has h heads, each d / h wide."),
        mistake("the batch taken for the words", RIGHT.but(PRE_1, PRE_1.replace("self.attention(seen, seen, mask)",
                  "self.attention(seen.transpose(0, 1), seen.transpose(0, 1), None).transpose(0, 1)")).but(
                  POST_1, POST_1.replace("self.attention(x, x, mask)",
                                         "self.attention(x.transpose(0, 1), x.transpose(0, 1), None).transpose(0, 1)")),
                                         LAYER,
            "Attention ran over the sentences of the batch. nn.MultiheadAttention expects the words on axis 0 unless "
            "you pass batch_first=True."),
        mistake("the first sentence's attention for all",
                RIGHT.but(PRE_1, PRE_1.replace("seen, mask)", "seen, mask)[0]")).but(
                  POST_1, POST_1.replace("x, mask)", "x, mask)[0]")), LAYER,
            """All sentences got what attention returned for the *first* one. Where attention returns a tensor,
            (B, T, D), and not a pair, an index [0] after the call selects the first sentence."""),
        mistake("eps of 1e-6",
                RIGHT.but("nn.LayerNorm(d), nn.LayerNorm(d)", "nn.LayerNorm(d, eps=1e-6), nn.LayerNorm(d, eps=1e-6)"),
                EPSILON,
            "A word with hardly any spread comes out too large: the eps of your norms is not 0.00001."),
        mistake("divided by D - 1",
                RIGHT.but("nn.LayerNorm(d), nn.LayerNorm(d)", "Norm(d), Norm(d)").but("class EncoderLayer",
                    '''class Norm(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.g, self.b = nn.Parameter(torch.ones(d)), nn.Parameter(torch.zeros(d))

    def forward(self, x):
        return (x - x.mean(-1, keepdim=True)) / (x.var(-1, keepdim=True) + 1e-5).sqrt() * self.g + self.b


class EncoderLayer'''), NORM,
            "Your layer's norms divide the squares by D - 1. Layer norm divides by D (09.1)."),
        mistake("attention without biases", RIGHT.but(
                  "self.attention = Heads(d, h)",
                  "self.attention = Heads(d, h)\n        self.attention.W_q.bias = self.attention.W_k.bias = "
                  "self.attention.W_v.bias = "
                  "self.attention.W_o.bias = None"), LAYER,
            "The projections of attention have no biases. Here they have, as those of the feed-forward network."),
        mistake("feed-forward without biases", RIGHT.but(
                  "nn.Linear(d, d_ff), nn.Linear(d_ff, d)",
                  "nn.Linear(d, d_ff, bias=False), nn.Linear(d_ff, d, bias=False)"), FEED,
            "The maps of the feed-forward network have no biases. Here they have: b1 and b2 of 09.2."),
        families.TWO_RESULTS(RIGHT.ending_in(", None"),
            LAYER, name="the weights returned too", result="words, (B, T, D)"),
        families.LAYERS_IN_A_LIST(RIGHT.but(MAPS, "self.maps = [nn.Linear(d, d_ff), nn.Linear(d_ff, d)]").but(
                  THINK, "return self.maps[1](torch.relu(self.maps[0](x)))"),
            LAYER, lists="nn.ModuleList or nn.Sequential"),
        mistake("maps made in forward", RIGHT.without(MAPS).but(
                  THINK, "return nn.Linear(4 * x.shape[-1], x.shape[-1])(torch.relu(nn.Linear(x.shape[-1], 4 * "
                         "x.shape[-1])(x)))"), LAYER,
            """The feed-forward network has no parameters of its own: layers that are made in forward are new at each
            call. Make them once, in the constructor."""),
        mistake("d_ff not used", RIGHT.but(MAPS, "self.widen, self.narrow = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)"),
                FEED,
            "The feed-forward network is not d_ff wide inside. Four times d is usual, but here d_ff sets it."),
        *usual_mistakes(RIGHT, arguments="x", detached=LAYER, float32=LAYER, squeezed=LAYER, viewed=LAYER),
    ),
    correct=(
        correct("written out", RIGHT),
        correct("the library's attention, batch first", """
            class EncoderLayer(nn.Module):
                def __init__(self, d, h, d_ff, dropout, norm_first):
                    super().__init__()
                    self.mha = nn.MultiheadAttention(d, h, batch_first=True)
                    self.ff = nn.Sequential(nn.Linear(d, d_ff), nn.ReLU(), nn.Linear(d_ff, d))
                    self.norms = nn.ModuleList([nn.LayerNorm(d), nn.LayerNorm(d)])
                    self.p, self.pre, self.h = dropout, norm_first, h

                def attend(self, x, mask):
                    B, T, _ = x.shape
                    if mask is not None:
                        mask = ~mask.expand(B, self.h, T, T).reshape(B * self.h, T, T)
                    return self.mha(x, x, x, attn_mask=mask, need_weights=False)[0]

                def forward(self, x, mask=None):
                    for norm, f in zip(self.norms, (lambda y: self.attend(y, mask), self.ff)):
                        drop = lambda y: F.dropout(y, self.p, self.training)
                        x = x + drop(f(norm(x))) if self.pre else norm(x + drop(f(x)))
                    return x
        """),
        correct("a residual as a module", """
            class Residual(nn.Module):
                def __init__(self, size, dropout, before):
                    super().__init__()
                    self.norm, self.dropout, self.before = nn.LayerNorm(size), nn.Dropout(dropout), before

                def forward(self, x, sublayer):
                    if self.before:
                        return x + self.dropout(sublayer(self.norm(x)))
                    return self.norm(x + self.dropout(sublayer(x)))

            class Attention(nn.Module):
                def __init__(self, d, h):
                    super().__init__()
                    self.h = h
                    self.qkv = nn.Linear(d, 3 * d)
                    self.out = nn.Linear(d, d)

                def forward(self, x, mask):
                    B, T, D = x.shape
                    q, k, v = self.qkv(x).view(B, T, 3, self.h, D // self.h).permute(2, 0, 3, 1, 4)
                    z = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
                    return self.out(z.transpose(1, 2).reshape(B, T, D))

            class EncoderLayer(nn.Module):
                def __init__(self, d, h, d_ff, dropout, norm_first):
                    super().__init__()
                    self.one, self.two = Residual(d, dropout, norm_first), Residual(d, dropout, norm_first)
                    self.attention = Attention(d, h)
                    self.thinking = nn.Sequential(nn.Linear(d, d_ff), nn.ReLU(), nn.Linear(d_ff, d))

                def forward(self, x, mask=None):
                    x = self.one(x, lambda y: self.attention(y, mask))
                    return self.two(x, self.thinking)
        """),
        correct("bare parameters and functions of 09.1 and 09.2", RIGHT.but(MAPS, """
            self.W1 = nn.Parameter(torch.randn(d, d_ff) / d ** 0.5)
            self.b1 = nn.Parameter(torch.zeros(d_ff))
            self.W2 = nn.Parameter(torch.randn(d_ff, d) / d_ff ** 0.5)
            self.b2 = nn.Parameter(torch.zeros(d))""").but(NORMS, """
            self.g_one = nn.Parameter(torch.ones(d))
            self.s_one = nn.Parameter(torch.zeros(d))
            self.g_two = nn.Parameter(torch.ones(d))
            self.s_two = nn.Parameter(torch.zeros(d))""").but(THINK,
                "return torch.relu(x @ self.W1 + self.b1) @ self.W2 + self.b2").but(
            "def think(self, x):", '''def norm(self, x, g, b):
        m = x.mean(-1, keepdim=True)
        v = x.var(-1, keepdim=True, unbiased=False)
        return (x - m) / (v + 1e-5).sqrt() * g + b

    def norm1(self, x):
        return self.norm(x, self.g_one, self.s_one)

    def norm2(self, x):
        return self.norm(x, self.g_two, self.s_two)

    def think(self, x):''')),
        correct("every head a module", """
            class Head(nn.Module):
                def __init__(self, d, d_k):
                    super().__init__()
                    self.q, self.k, self.v = nn.Linear(d, d_k), nn.Linear(d, d_k), nn.Linear(d, d_k)

                def forward(self, x, mask):
                    s = self.q(x) @ self.k(x).mT / self.k.out_features ** 0.5
                    s = s if mask is None else s.masked_fill(mask.logical_not(), -1e9)
                    return s.softmax(-1) @ self.v(x)

            class EncoderLayer(nn.Module):
                def __init__(self, d, h, d_ff, dropout, norm_first):
                    super().__init__()
                    self.heads = nn.ModuleList(Head(d, d // h) for _ in range(h))
                    self.join = nn.Linear(d, d)
                    self.up, self.down = nn.Linear(d, d_ff), nn.Linear(d_ff, d)
                    self.ln_a, self.ln_b = nn.LayerNorm(d), nn.LayerNorm(d)
                    self.drop_a, self.drop_b = nn.Dropout(dropout), nn.Dropout(dropout)
                    self.pre = norm_first

                def listen(self, x, mask):
                    full = None if mask is None else mask.expand(x.shape[0], len(self.heads), x.shape[1], x.shape[1])
                    said = [head(x, None if full is None else full[:, i]) for i, head in enumerate(self.heads)]
                    return self.join(torch.cat(said, dim=-1))

                def forward(self, x, mask=None):
                    if not self.pre:
                        x = self.ln_a(x + self.drop_a(self.listen(x, mask)))
                        return self.ln_b(x + self.drop_b(self.down(self.up(x).clamp(min=0))))
                    x = x + self.drop_a(self.listen(self.ln_a(x), mask))
                    return x + self.drop_b(self.down(self.up(self.ln_b(x)).clamp(min=0)))
        """),
        correct("norms made second, used first",
                RIGHT.but(NORMS, "self.norm2, self.norm1 = nn.LayerNorm(d), nn.LayerNorm(d)")),
        correct("dropout inside as well",
                RIGHT.but("torch.relu(self.widen(x))", "self.drop(torch.relu(self.widen(x)))")),
        correct("bare square matrices", RIGHT.but(MAPS, MAPS).but("self.W_q = nn.Linear(width, width)", """
            self.W_q = nn.Parameter(torch.randn(width, width))
            self.b_q = nn.Parameter(torch.zeros(width))""").but("self.W_q(asking)", "asking @ self.W_q + self.b_q")),
    ),
    hints=(
        "which two sub-layers are there, and what does each of them read? Where does x itself go?",
        "everything stays (B, T, D): attention reads (B, T, D) and returns (B, T, D); the feed-forward network is d_ff "
        "wide inside.",
        "post-norm: x = norm(x + dropout(sub-layer(x))), twice, attention first. Pre-norm: x = x + "
        "dropout(sub-layer(norm(x))).",
    ),
)  # fmt: skip
