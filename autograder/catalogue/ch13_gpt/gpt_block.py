"""13.2: one block of a GPT: what is left of a decoder layer when there is nothing to translate."""

from typing import Any

import torch
from torch import Tensor, nn

from autograder.catalogue import families
from autograder.catalogue.ch09_blocks.shared import LIBRARY, drawn, silent, wrong_word
from autograder.catalogue.ch13_gpt.shared import (
    BLOCK,
    DIVIDED,
    HIDE,
    OPEN,
    SAID,
    SHARES,
    are_steep,
    sections,
    steep,
    with_heads,
)
from autograder.catalogue.exercise import Block, Case, Evidence, Exercise, Remark
from autograder.catalogue.families import usual_mistakes
from autograder.catalogue.known_answers import correct, mistake
from autograder.catalogue.probes import FAR, hidden, normal, usual_probes, visible
from transformer_ref.beyond import gpt

DELETE, BLOCKS, STREAM = sections("delete block stream")
BENDS = ("gelu", "tanh gelu", "relu")


class GPTBlock(gpt.GPTBlock):
    """Causal self-attention and the feed-forward network, each with its norm before it."""

    def __init__(self, d_model: int, h: int, d_ff: int, dropout: float = 0.0) -> None:
        super().__init__(d_model, h, d_ff, dropout)

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x)


def parts(d_model: int, h: int, d_ff: int, dropout: float = 0.0, name: str = "") -> tuple[Block, ...]:
    """The parts of a block with parameters; name: what they begin with, where there are several blocks."""
    return (
        Block(f"{name}attention", "attention", (d_model, h)),
        Block(f"{name}feed-forward", "feed-forward", (d_model, d_ff)),
        Block(f"{name}norm 1", "norm", (d_model,)),
        Block(f"{name}norm 2", "norm", (d_model,)),
    )


def inputs(
    g: torch.Generator, B: int, T: int, D: int, h: int, d_ff: int, dropout: float | None = None,
    dtype: torch.dtype = torch.float32,
) -> Case:  # fmt: skip
    made = (D, h, d_ff) if dropout is None else (D, h, d_ff, dropout)
    return Case((1.5 * normal(g, B, T, D, dtype=dtype) + 0.5,), construct=made, weights=steep(g, parts(*made), dtype))


def ordinary(g: torch.Generator, B: int, T: int, D: int, h: int, d_ff: int) -> Case:
    """Weights of ordinary size, under which a ReLU, a GELU and other bends differ."""
    made = (D, h, d_ff)
    return Case((normal(g, B, T, D),), construct=made, weights=drawn(g, parts(*made)))


def nothing_added() -> Case:
    """Sub-layers that answer with zeros."""
    made = (4, 2, 6)
    x = torch.tensor([[2.0, 4.0, 4.0, 6.0], [9.0, 7.0, 7.0, 5.0], [1.0, 3.0, 0.0, 8.0]])
    return Case((x[None],), construct=made, weights=silent(parts(*made)))


def far_away(g: torch.Generator) -> Case:
    """One number of every token is 100,000,000: what is added to it needs all digits."""
    case = inputs(g, 2, 3, 8, 4, 10, dtype=torch.float64)
    case.arguments[0][..., 0] += FAR
    return case


def hardly_spread(g: torch.Generator) -> Case:
    """Tokens whose numbers hardly differ, so that eps counts."""
    case = inputs(g, 2, 4, 6, 3, 10)
    case.arguments[0].mul_(0.002)
    return case


FAR_FROM_0, ADDED = 10.0, (1.0, 3.0)  # x, and what attention and the feed-forward network add to it
VALUES, OFTEN, TOGETHER = "the values that are added", "fraction of each", "fraction that agrees with its neighbor"
# Of 6,000 numbers, two fractions near a quarter differ by 0.008 by chance, and never by six times as much.
CHANCE = {"rtol": 0.0, "atol": 0.05}


def half_dropped(g: torch.Generator) -> Case:
    """Sub-layers that add the same number everywhere, so that dropout shows in what is left of it."""
    made = (6, 2, 8, 0.5)
    weights = silent(parts(*made))
    weights["attention.output bias"] += ADDED[0]
    weights["feed-forward.second bias"] += ADDED[1]
    return Case((torch.full((20, 50, 6), FAR_FROM_0),), construct=made, weights=weights)


def what_was_dropped(case: Case, result: Any) -> Any:
    """For `half_dropped`: which values were added, and how often; or a remark that says what is wrong.

    The neighbors are those along each axis: where tokens or features are dropped together, they agree too often.
    """
    x = case.arguments[0]
    if not isinstance(result, Tensor) or result.shape != x.shape or not result.is_floating_point():
        return result
    added = (result.double() - x).round(decimals=3)
    values, kinds = added.unique(return_inverse=True)
    if len(values) > 9:
        return Remark("more than nine different values are added to an x that is the same everywhere")
    if len(values) == 1:
        return Remark("the same value is added everywhere, though dropout should drop half of the values")
    if torch.equal(values, torch.tensor([0, ADDED[0], ADDED[1], sum(ADDED)]).double()):
        return Remark("what dropout keeps is not divided by 1 - dropout")
    alike = [(kinds.diff(dim=axis) == 0).double().mean() for axis in range(3)]
    if max(alike) > 0.9:
        return Remark("whole tokens, features or texts are dropped together, and not each value independently")
    return {VALUES: values, OFTEN: torch.bincount(kinds.flatten()).double() / kinds.numel(),
            TOGETHER: torch.stack(alike)}  # fmt: skip


def shown(evidence: Evidence) -> str:
    """A wrong row, where rows are compared."""
    return wrong_word(evidence) if isinstance(evidence.got, Tensor) else ""


def what_counts(case: Case, result: Any) -> Any:
    """Where half is dropped in training, what is left; else the result, with any of the bends."""
    same_everywhere = bool((case.arguments[0] == FAR_FROM_0).all())
    return what_was_dropped(case, result) if same_everywhere else of_any_bend(case, result)


def of_any_bend(case: Case, result: Any) -> Any:
    """The same numbers, whether there is a GELU, its approximation by tanh, or a ReLU between the two linear layers."""
    x = case.arguments[0]
    if not isinstance(result, Tensor) or result.shape != x.shape or result.dtype != x.dtype or are_steep(case.weights
        or {}):
        return result
    wanted = [_computed(case, bend) for bend in BENDS]
    return wanted[0] if any(torch.allclose(result, one, rtol=1e-4, atol=1e-5) for one in wanted) else result


def _computed(case: Case, bend: str) -> Tensor:
    """What a block with this bend makes of a case."""
    block = gpt.GPTBlock(*case.construct).to(case.arguments[0].dtype)
    filled(block, case.weights or {})
    block.feed_forward.activation = bent(bend)
    with torch.no_grad():
        return block(case.arguments[0])


def bent(bend: str):
    """The function of that name."""
    functions = {"gelu": nn.GELU(), "tanh gelu": nn.GELU(approximate="tanh"), "relu": nn.ReLU()}
    return functions[bend]


def filled(block: gpt.GPTBlock, weights: Any, name: str = "") -> None:
    """Give a block of ours the weights of a case."""
    attention, feed_forward = block.self_attention, block.feed_forward
    layers = {"attention.query": attention.q_proj, "attention.key": attention.k_proj,
              "attention.value": attention.v_proj, "attention.output": attention.out_proj,
              "feed-forward.first": feed_forward.fc1, "feed-forward.second": feed_forward.fc2}
    norms = {"norm 1": block.self_attention_residual.norm, "norm 2": block.feed_forward_residual.norm}
    with torch.no_grad():
        for role, layer in layers.items():
            layer.weight.copy_(weights[f"{name}{role}"].T)
            layer.bias.copy_(weights[f"{name}{role} bias"])
        for role, norm in norms.items():
            norm.weight.copy_(weights[f"{name}{role}.scale"])
            norm.bias.copy_(weights[f"{name}{role}.shift"])


RIGHT = with_heads(BLOCK)
SEEN_1, SEEN_2 = "seen = self.norm1(x)", "seen = self.norm2(x)"
ADD_1, ADD_2 = "x = x + self.drop(self.attention(seen))", "x = x + self.drop(self.think(seen))"
NORMS, DROP = "self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)", "self.drop = nn.Dropout(dropout)"
MAPS, THINK = (
    "self.widen, self.narrow = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)",
    "return self.narrow(F.gelu(self.widen(x)))"
)
BODY, END = f"{ADD_1}\n        {SEEN_2}\n        {ADD_2}", f"{ADD_2}\n        return x"
POST = RIGHT.without(SEEN_1).without(SEEN_2).but(ADD_1, "x = self.norm1(x + self.drop(self.attention(x)))").but(
    ADD_2, "x = self.norm2(x + self.drop(self.think(x)))")  # fmt: skip
NO_HEADS = RIGHT.but("self.attention = Heads(d_model, h)",
                     "self.attention = nn.MultiheadAttention(d_model, h, batch_first=True)")
TORCHS = "x = x + self.drop(self.attention(seen, seen, seen, attn_mask={0}, need_weights=False)[0])"
LATER = "torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu({0})"

EXERCISE = Exercise(
    id="gpt-block", number="13.2", difficulty=2, minutes=30, visible_points=2, hidden_points=3,
    reference=GPTBlock, roles=parts, normalize=what_counts, section=BLOCKS, quotes=shown, forbidden=LIBRARY,
    probes=(
        visible("nothing is added", nothing_added()),
        visible("2 sentences of 4 tokens", inputs, 2, 4, 6, 3, 10),
        visible("5 tokens, another size", inputs, 3, 5, 8, 2, 12),
        visible("dropout 0.5, in evaluation", inputs, 2, 3, 6, 2, 8, 0.5),
        *usual_probes(inputs, other=(3, 5, 8, 4, 14), smallest=(1, 1, 6, 1, 4), common=(2, 4, 6, 3, 10),
                      precise=far_away),
        hidden("a ReLU or a GELU between the maps", ordinary, 2, 4, 6, 2, 11,
               announced_by="a ReLU or a GELU, in either form"),
        hidden("in training, all dropped", inputs, 2, 4, 6, 3, 10, 1.0, checks="training",
               announced_by="With dropout 1 nothing is added in training"),
        hidden("in training, dropout 0.5", half_dropped, checks="training",
               announced_by="to the output of each sub-layer, before it is added, and only in training", **CHANCE),
        hidden("numbers that hardly differ", hardly_spread, announced_by="eps 0.00001"),
        hidden("many tokens", inputs, 1, 1100, 6, 3, 10, announced_by="T may be anything"),
    ),
    mistakes=(
        mistake("no causal mask", RIGHT.without(HIDE), BLOCKS,
            """Every token sees those after it: nothing hides them. While it learns, the model then reads the answer one
            position further on, and when it writes there is nothing to read. A block makes the causal mask itself."""),
        mistake("the past hidden", RIGHT.but(".tril()", ".triu()"), BLOCKS,
            "Your tokens see themselves and the tokens *after* them; the past is hidden. A token may attend to itself "
            "and to earlier tokens."),
        mistake("the mask the wrong way round", RIGHT.but(HIDE, HIDE.replace("~open_", "open_")), BLOCKS,
            """The mask hides just what should be open: a token sees only those *after* it, and the last sees nothing at
            all, which gives NaN. A token may attend to itself and to earlier tokens."""),
        mistake("queries and keys exchanged", RIGHT.but("q @ k.transpose(-2, -1)", "k @ q.transpose(-2, -1)"), BLOCKS,
            """The scores are transposed: row i holds the products of *key* i with all queries. Each row belongs to a
            query, and its columns to the keys (chapter 05). The first token sees only itself, so its row is correct
            nevertheless."""),
        mistake("a token blind to itself", RIGHT.but(".tril()", ".tril(-1)"), BLOCKS,
            """A token sees those before it and not itself, and the first sees nothing at all: the diagonal is hidden
            too. triu marks it as well, unless it begins one position later."""),
        mistake("a token blind to itself, and zeros for the first", RIGHT.but(".tril()", ".tril(-1)").but(
                  SHARES, SHARES.replace("dim=-1)", "dim=-1).nan_to_num()")), BLOCKS,
            """A token sees those before it and not itself: the diagonal of the mask is hidden too. triu marks it as
            well, unless it begins one position later."""),
        families.ONE_TOKEN_OF_THE_FUTURE(RIGHT.but(".tril()", ".tril(1)"), BLOCKS),
        mistake("a causal mask of one size", RIGHT.but(OPEN, "open_ = torch.ones(4, 4, dtype=torch.bool).tril()"),
                BLOCKS,
            "Your mask fits only 4 tokens. T may be anything: make the mask for as many tokens as x has, or cut it "
            "to them."),
        mistake("a causal mask that ends", RIGHT.but(OPEN, "open_ = torch.ones(64, 64, dtype=torch.bool).tril()"
                                                           "[:x.shape[1], :x.shape[1]]"), BLOCKS,
            "The mask has a fixed size, 64; T may be anything. Make the mask for as many tokens as x has."),
        mistake("the future set to 0", RIGHT.but('float("-inf")', "0.0"), BLOCKS,
            """The scores of the future were set to 0, and exp(0) is 1: it gets a weight all the same. Only minus
            infinity becomes a weight of exactly 0 (chapter 08)."""),
        mistake("the future taken away after the softmax",
                RIGHT.without(HIDE).after(SHARES, "shares = shares.masked_fill(~open_, 0.0)"), BLOCKS,
            """The future was hidden after the softmax, so the weights of a row no longer sum to 1: the part of the
            future is missing. Hide *scores* (chapter 08)."""),
        mistake("softmax over the queries", RIGHT.but("softmax(scores, dim=-1)", "softmax(scores, dim=-2)"), BLOCKS,
            """The softmax runs over the queries, not over the keys of each query (chapter 05). With a causal mask,
            later tokens then even change the weights of earlier ones."""),
        families.SCORES_NOT_DIVIDED(RIGHT.but(DIVIDED, ""), BLOCKS, part="block"),
        mistake("divided by the root of d_model", RIGHT.but("q.shape[-1] ** 0.5", "x.shape[-1] ** 0.5"), BLOCKS,
            "The scores were divided by the root of d_model. Each head's queries have d_model / h numbers: it is "
            "their root (chapter 06)."),
        mistake("divided by d_k", RIGHT.but(DIVIDED, " / q.shape[-1]"), BLOCKS,
            "The scores were divided by d_k itself. It is the root of d_k that they are divided by (chapter 05)."),
        mistake("one head", RIGHT.but("self.heads = heads", "self.heads = 1"), BLOCKS,
            "There is one head of the whole width, whatever h is (chapter 06)."),
        mistake("heads cut by a view", RIGHT.but(
                  "x.reshape(x.shape[0], x.shape[1], self.heads, -1).transpose(1, 2)",
                  "x.reshape(x.shape[0], self.heads, x.shape[1], -1)"), BLOCKS,
            """The heads were cut across the tokens: a head got pieces of other tokens (06.1), of later ones too. First
            cut the features, then move the axis of the heads."""),
        mistake("heads merged without moving them back", RIGHT.but(
                  "(shares @ v).transpose(1, 2).reshape(x.shape)", "(shares @ v).reshape(x.shape)"), BLOCKS,
            "The heads were merged without moving their axis back, so a token's vector holds pieces of other "
            "tokens (06.2)."),
        mistake("post-norm", POST, BLOCKS,
            """Your norms come after the sums, as in the paper of 2017. GPT-2 puts them before: a sub-layer reads
            norm(x), and the sum is left as it is. When both sub-layers output zeros, x itself has to come back."""),
        mistake("pre-norm, then post-norm",
                RIGHT.without(SEEN_2).but(ADD_2, "x = self.norm2(x + self.drop(self.think(x)))"), BLOCKS,
            "Attention has its norm before it and the feed-forward network after the sum. Both read norm(x), and both "
            "sums are left as they are."),
        mistake("post-norm, then pre-norm",
                RIGHT.without(SEEN_1).but(ADD_1, "x = self.norm1(x + self.drop(self.attention(x)))"), BLOCKS,
            "The feed-forward network has its norm before it, and attention after the sum. Both read norm(x), and "
            "both sums are left as they are."),
        mistake("norms on what is said",
                RIGHT.without(SEEN_1).without(SEEN_2).but(ADD_1,
                    "x = x + self.norm1(self.drop(self.attention(x)))").but(
                  ADD_2, "x = x + self.norm2(self.drop(self.think(x)))"), BLOCKS,
            """You normalized the *output* of a sub-layer. Normalize its *input*: norm first, then the sub-layer, then
            the sum with x."""),
        mistake("a norm at the end", RIGHT.but(END, f"{ADD_2}\n        return self.norm2(x)"), BLOCKS,
            "The block ends in an additional norm. It returns the stream as it is; the one last norm comes after "
            "*all* blocks, in the model."),
        mistake("a norm of its own at the end",
                RIGHT.but(NORMS, f"{NORMS}\n        self.last = nn.LayerNorm(d_model)").but(
                  END, f"{ADD_2}\n        return self.last(x)"), BLOCKS,
            "There are three norms. A block has two, one before each sub-layer; the one last norm comes after *all* "
            "blocks, in the model."),
        mistake("residual from the normed x",
                RIGHT.but(ADD_1, ADD_1.replace("x + ", "seen + ")).but(ADD_2, ADD_2.replace("x + ", "seen + ")), STREAM,
            "You added to the *normed* x, so the stream is normalized away. The sub-layer reads norm(x); the sum is "
            "made with x."),
        mistake("residual from the normed x, around attention", RIGHT.but(ADD_1, ADD_1.replace("x + ", "seen + ")),
                STREAM,
            "Around attention you added to the *normed* x. The sub-layer reads norm(x); the sum is made with x."),
        mistake("residual from the normed x, around the feed-forward network",
                RIGHT.but(ADD_2, ADD_2.replace("x + ", "seen + ")), STREAM,
            "Around the feed-forward network you added to the *normed* x. The sub-layer reads norm(x); the sum is "
            "made with x."),
        mistake("keys and values not normed",
                RIGHT.but("def forward(self, x):\n        q, k, v", "def forward(self, x, y):\n        q, k, v").but(
                  "self.cut(self.W_k(x)), self.cut(self.W_v(x))", "self.cut(self.W_k(y)), self.cut(self.W_v(y))").but(
                  "self.attention(seen)", "self.attention(seen, x)"), BLOCKS,
            "Only the queries come from norm(x); keys and values were made from x as it is. Self-attention reads one "
            "thing, the normed x."),
        mistake("no residual", RIGHT.but(ADD_1, ADD_1.replace("x + ", "")).but(ADD_2, ADD_2.replace("x + ", "")),
                STREAM,
            "The output of a sub-layer *replaced* x. It is added to x: when both output zeros, x has to come through."),
        mistake("no residual around attention", RIGHT.but(ADD_1, ADD_1.replace("x + ", "")), STREAM,
            "x is not added to the output of attention, so the token's own vector is lost."),
        mistake("no residual around the feed-forward network", RIGHT.but(ADD_2, ADD_2.replace("x + ", "")), STREAM,
            "x is not added to the output of the feed-forward network."),
        families.IN_PARALLEL(RIGHT.but(ADD_1, "heard = self.drop(self.attention(seen))").but(
                  ADD_2, "x = x + heard + self.drop(self.think(seen))"),
            BLOCKS, part="block", words="tokens",
            more=" (Some later models do run them side by side. This one does not.)"),
        families.INPUT_ADDED_AT_THE_END(RIGHT.but(SEEN_1, f"came = x\n        {SEEN_1}").but(
                  ADD_2, "x = came + self.drop(self.think(seen))"),
            STREAM, part="block"),
        mistake("only one norm used", RIGHT.without(SEEN_2), BLOCKS,
            """Only one of the two norms is used. Is there a sub-layer without one, or does the feed-forward network
            read what attention read? Attention reads a norm of x, and the feed-forward network reads the other norm, of
            x as it is *after* attention."""),
        families.FEED_FORWARD_FIRST(RIGHT.but(BODY, f"{ADD_2}\n        {SEEN_2}\n        {ADD_1}"),
            BLOCKS, words="tokens"),
        mistake("a cross-attention left in", RIGHT.but("self.attention = Heads(d_model, h)",
                  "self.attention, self.cross = Heads(d_model, h), Heads(d_model, h)").but(
                  NORMS, "self.norm1, self.norm2, self.norm3 = nn.LayerNorm(d_model), nn.LayerNorm(d_model), "
                         "nn.LayerNorm(d_model)").but(
                  SEEN_2, "x = x + self.drop(self.cross(self.norm3(x)))\n        seen = self.norm2(x)"), DELETE,
            """There are two attentions and three norms: the cross-attention of a decoder layer is still there. There is
            no source to look at, so it goes, and its norm with it."""),
        mistake("a memory asked for",
                RIGHT.but(f"def forward(self, x):\n        {SEEN_1}",
                          f"def forward(self, x, memory):\n        {SEEN_1}"), DELETE,
            "forward requires more arguments than x. There is no source and no memory any more: a block takes only x, "
            "and makes its mask itself."),
        families.ONE_NORM_FOR_BOTH(
            RIGHT.but(NORMS, "self.norm1 = nn.LayerNorm(d_model)\n        self.norm2 = self.norm1"),
            BLOCKS),
        families.NO_NORM(RIGHT.but(NORMS, "self.norm1, self.norm2 = nn.Identity(), nn.Identity()"),
            BLOCKS, where=", before it"),
        families.RMS_NORMS(
            RIGHT.but("nn.LayerNorm(d_model), nn.LayerNorm(d_model)", "nn.RMSNorm(d_model), nn.RMSNorm(d_model)"),
            BLOCKS),
        mistake("another epsilon", RIGHT.but(
                  "nn.LayerNorm(d_model), nn.LayerNorm(d_model)",
                  "nn.LayerNorm(d_model, eps=1e-3), nn.LayerNorm(d_model, eps=1e-3)"), BLOCKS,
            "Your norms add too much to the variance. eps is 0.00001, the default of nn.LayerNorm."),
        mistake("eps of 1e-6", RIGHT.but(
                  "nn.LayerNorm(d_model), nn.LayerNorm(d_model)",
                  "nn.LayerNorm(d_model, eps=1e-6), nn.LayerNorm(d_model, eps=1e-6)"), BLOCKS,
            "Your norms add too little to the variance, as the 1e-6 of some libraries. eps is 0.00001, the "
            "default of nn.LayerNorm."),
        families.NO_ACTIVATION(RIGHT.but("F.gelu(self.widen(x))", "self.widen(x)"),
            BLOCKS, name="no activation", activation="A ReLU or a GELU"),
        mistake("the activation at the end", RIGHT.but(THINK, "return F.gelu(self.narrow(self.widen(x)))"), BLOCKS,
            "The activation comes after the second linear layer, so nothing is ever lowered. It belongs between the "
            "two."),
        families.ANOTHER_ACTIVATION(RIGHT.but("F.gelu(", "F.silu("), BLOCKS, where="Between the two linear layers"),
        mistake("a quick GELU",
                RIGHT.but(THINK, "wide = self.widen(x)\n        return self.narrow(wide * "
                                 "torch.sigmoid(1.702 * wide))"), BLOCKS,
            """Between the two linear layers there is x times the sigmoid of 1.702 x, which some call a quick GELU. It
            is off by up to 0.02; the two forms meant here are the exact one and that with tanh."""),
        mistake("a sigmoid or a tanh", RIGHT.but("F.gelu(", "torch.sigmoid("), BLOCKS,
            """Between the two linear layers there is a sigmoid or a tanh, whose values never exceed 1. A ReLU or a
            GELU belongs there. (The *approximation* of a GELU has a tanh inside, and is more than that.)"""),
        mistake("a leaky ReLU", RIGHT.but("F.gelu(", "F.leaky_relu("), BLOCKS,
            "Between the two linear layers there is a leaky ReLU: it lets a hundredth of what is negative through. A "
            "ReLU or a GELU belongs there."),
        families.NO_FEED_FORWARD(RIGHT.without(ADD_2).without(SEEN_2), BLOCKS, name="no feed-forward network"),
        mistake("no attention", RIGHT.without(ADD_1).without(SEEN_1), BLOCKS,
            "Attention was left out, and with it the first norm: no token receives anything from the others."),
        mistake("no output projection",
                RIGHT.but("self.W_o = nn.Linear(width, width)", "pass").but(SAID, "return mixed"), BLOCKS,
            "The last of attention's four projections is missing, the one that mixes the outputs of the heads (chapter "
            "06)."),
        mistake("attention without biases",
                RIGHT.but("self.W_q = nn.Linear(width, width)", "self.W_q = nn.Linear(width, width, bias=False)").but(
                  "self.W_k = nn.Linear(width, width)", "self.W_k = nn.Linear(width, width, bias=False)").but(
                  "self.W_v = nn.Linear(width, width)", "self.W_v = nn.Linear(width, width, bias=False)"), BLOCKS,
            "Not all of attention's projections have a bias. All four need one."),
        mistake("a feed-forward network without biases", RIGHT.but(
                  MAPS, "self.widen, self.narrow = nn.Linear(d_model, d_ff, bias=False), nn.Linear(d_ff, d_model, "
                        "bias=False)"), BLOCKS,
            "The two linear layers of the feed-forward network have no biases. Both need one."),
        mistake("the inner width made up", RIGHT.but(
                  MAPS, "self.widen, self.narrow = nn.Linear(d_model, 4 * d_model), nn.Linear(4 * d_model, d_model)"),
                  BLOCKS,
            "The feed-forward network is 4 times as wide as the model. That is what GPT-2 takes; here d_ff says how "
            "wide it is."),
        families.DROPOUT_NEVER_OFF(RIGHT.but(DROP, "self.drop = lambda x: F.dropout(x, dropout)"), BLOCKS),
        families.NO_DROPOUT(RIGHT.but(DROP, "self.drop = nn.Identity()"), BLOCKS),
        families.DROPOUT_ON_THE_SUM(RIGHT.but(ADD_1, "x = self.drop(x + self.attention(seen))").but(
                  ADD_2, "x = self.drop(x + self.think(seen))"),
            STREAM),
        families.FEED_FORWARD_NOT_DROPPED(RIGHT.but(ADD_2, "x = x + self.think(seen)"), BLOCKS),
        mistake("dropout on the feed-forward network alone", RIGHT.but(ADD_1, "x = x + self.attention(seen)"), BLOCKS,
            "In training no dropout acts on the output of attention. Both sub-layers have one; dropout on the "
            "attention weights does not replace it."),
        mistake("dropout inside of the feed-forward network alone", RIGHT.but(ADD_2, "x = x + self.think(seen)").but(
                  "self.narrow(F.gelu(self.widen(x)))", "self.narrow(self.drop(F.gelu(self.widen(x))))"), BLOCKS,
            "Dropout is only between the two linear layers. It belongs on the *output* of the feed-forward network, "
            "before the sum."),
        mistake("d_model and h exchanged", RIGHT.but(
                  "def __init__(self, d_model, h, d_ff, dropout=0.0):",
                  "def __init__(self, h, d_model, d_ff, dropout=0.0):"), BLOCKS,
            "d_model and h are exchanged: GPTBlock(d_model, h, d_ff, dropout). So the width cannot be divided among "
            "the heads."),
        mistake("a pair came back", RIGHT.but(END, f"{ADD_2}\n        return x, seen"), BLOCKS,
            "Two things came back. A block returns only the stream, so that the next block can take it."),
        mistake("the library's attention across the texts",
                NO_HEADS.but(", batch_first=True", "").but(
                    ADD_1, TORCHS.format(LATER.replace("x.shape[1]", "len(x)").format(1))), BLOCKS,
            """Attention ran across the *texts* of the batch. `nn.MultiheadAttention` expects (T, B, D) by default, and
            x is (B, T, D)."""),
        mistake("the library's mask the wrong way round", NO_HEADS.but(ADD_1, TORCHS.format("~" + LATER.format(1))),
                BLOCKS,
            """The mask reads the wrong way round: in nn.MultiheadAttention True means *forbidden* (08.6), so your
            tokens see only what comes after them, and the last sees nothing."""),
        *usual_mistakes(RIGHT, detached=BLOCKS, float32=BLOCKS, squeezed=BLOCKS),
    ),
    correct=(
        correct("written out, with a GELU", RIGHT),
        correct("a ReLU, the library's attention",
                NO_HEADS.but(ADD_1, TORCHS.format(LATER.format(1))).but("F.gelu(", "torch.relu(")),
        correct("as nanoGPT writes it", """
            class CausalSelfAttention(nn.Module):
                def __init__(self, n_embd, n_head, dropout):
                    super().__init__()
                    self.c_attn = nn.Linear(n_embd, 3 * n_embd)
                    self.c_proj = nn.Linear(n_embd, n_embd)
                    self.n_head, self.n_embd, self.p = n_head, n_embd, dropout

                def forward(self, x):
                    B, T, C = x.size()
                    q, k, v = self.c_attn(x).split(self.n_embd, dim=2)
                    k = k.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
                    q = q.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
                    v = v.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
                    y = F.scaled_dot_product_attention(q, k, v, dropout_p=self.p if self.training else 0,
                        is_causal=True)
                    return self.c_proj(y.transpose(1, 2).contiguous().view(B, T, C))


            class MLP(nn.Module):
                def __init__(self, n_embd, inner, dropout):
                    super().__init__()
                    self.c_fc, self.gelu = nn.Linear(n_embd, inner), nn.GELU(approximate="tanh")
                    self.c_proj, self.dropout = nn.Linear(inner, n_embd), nn.Dropout(dropout)

                def forward(self, x):
                    return self.dropout(self.c_proj(self.gelu(self.c_fc(x))))


            class GPTBlock(nn.Module):
                def __init__(self, d_model, h, d_ff, dropout=0.0):
                    super().__init__()
                    self.ln_1, self.attn = nn.LayerNorm(d_model), CausalSelfAttention(d_model, h, dropout)
                    self.ln_2, self.mlp = nn.LayerNorm(d_model), MLP(d_model, d_ff, dropout)
                    self.resid = nn.Dropout(dropout)

                def forward(self, x):
                    x = x + self.resid(self.attn(self.ln_1(x)))
                    return x + self.mlp(self.ln_2(x))
        """),
        correct("a module for each head", """
            class Head(nn.Module):
                def __init__(self, width, size):
                    super().__init__()
                    self.key, self.query, self.value = nn.Linear(width, size), nn.Linear(width, size), nn.Linear(width,
                        size)

                def forward(self, x):
                    k, q = self.key(x), self.query(x)
                    T = x.size(1)
                    wei = q @ k.transpose(-2, -1) * k.size(-1) ** -0.5
                    wei = wei.masked_fill(torch.tril(torch.ones(T, T)) == 0, float("-inf"))
                    return wei.softmax(-1) @ self.value(x)


            class GPTBlock(nn.Module):
                def __init__(self, d_model, h, d_ff, dropout=0.0):
                    super().__init__()
                    self.heads = nn.ModuleList([Head(d_model, d_model // h) for _ in range(h)])
                    self.proj = nn.Linear(d_model, d_model)
                    self.ff = nn.Sequential(nn.Linear(d_model, d_ff), nn.GELU(), nn.Linear(d_ff, d_model),
                        nn.Dropout(dropout))
                    self.ln1, self.ln2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
                    self.dropout = nn.Dropout(dropout)

                def forward(self, x):
                    z = self.ln1(x)
                    x = x + self.dropout(self.proj(torch.cat([head(z) for head in self.heads], dim=-1)))
                    x = x + self.ff(self.ln2(x))
                    return x
        """),
        correct("bare parameters and einsum", """
            class GPTBlock(nn.Module):
                def __init__(self, D, H, inner, p=0.0):
                    super().__init__()
                    make = lambda *size: nn.Parameter(torch.randn(*size) * 0.1)
                    self.h, self.p = H, p
                    self.g1, self.s1 = nn.Parameter(torch.ones(D)), nn.Parameter(torch.zeros(D))
                    self.q, self.bq = make(D, D), make(D)
                    self.k, self.bk = make(D, D), make(D)
                    self.v, self.bv = make(D, D), make(D)
                    self.o, self.bo = make(D, D), make(D)
                    self.g2, self.s2 = nn.Parameter(torch.ones(D)), nn.Parameter(torch.zeros(D))
                    self.w1, self.b1 = make(D, inner), make(inner)
                    self.w2, self.b2 = make(inner, D), make(D)

                def normed(self, x, g, s):
                    mean = x.mean(-1, keepdim=True)
                    return (x - mean) / ((x - mean).square().mean(-1, keepdim=True) + 1e-5).sqrt() * g + s

                def forward(self, x):
                    z = self.normed(x, self.g1, self.s1)
                    cut = lambda t: t.unflatten(-1, (self.h, -1))
                    q, k, v = cut(z @ self.q + self.bq), cut(z @ self.k + self.bk), cut(z @ self.v + self.bv)
                    s = torch.einsum("bihd,bjhd->bhij", q, k) / math.sqrt(q.shape[-1])
                    i = torch.arange(x.shape[1])
                    s = torch.where(i[:, None] >= i, s, -torch.inf)
                    said = torch.einsum("bhij,bjhd->bihd", s.softmax(-1), v).flatten(2) @ self.o + self.bo
                    x = x + F.dropout(said, self.p, self.training)
                    z = self.normed(x, self.g2, self.s2)
                    u = z @ self.w1 + self.b1
                    u = u * 0.5 * (1 + torch.erf(u / 2 ** 0.5))
                    return x + F.dropout(u @ self.w2 + self.b2, self.p, self.training)
        """),
    ),
    hints=(
        "take a decoder layer of chapter 09 in pre-norm. Which parts read memory? What is left without them, and who "
        "makes the mask now?",
        "everything stays (B, T, D); the mask is (T, T), True at and below the diagonal; the feed-forward network is "
        "d_ff wide inside.",
        "seen = norm1(x); x = x + dropout(causal attention of seen); seen = norm2(x); x = x + dropout(second "
        "linear layer(GELU(first linear layer(seen)))).",
    ),
)  # fmt: skip
