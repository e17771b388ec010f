"""13.3: a whole GPT, from ids to the scores of what comes next."""

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from autograder.catalogue import families
from autograder.catalogue.ch09_blocks.shared import LIBRARY, drawn, first_number, silent
from autograder.catalogue.ch13_gpt.gpt_block import BENDS, CHANCE, bent, filled
from autograder.catalogue.ch13_gpt.gpt_block import parts as parts_of_block
from autograder.catalogue.ch13_gpt.shared import BLOCK, DIVIDED, HEADS, HIDE, are_steep, sections, steep, with_block
from autograder.catalogue.exercise import Block, Case, Evidence, Exercise, Remark
from autograder.catalogue.families import Family, usual_mistakes
from autograder.catalogue.known_answers import answer, correct, mistake
from autograder.catalogue.probes import GRADIENTS, PROMISED, hidden, second_call, visible
from autograder.catalogue.sections import section
from transformer_ref.beyond import gpt

MODEL, BLOCKS, COUNT = sections("model block count")
STACKING = section("sec-09-stack")
SIZES = (13, 6, 3, 2, 16, 9)  # vocabulary, d_model, h, layers, d_ff, max_length
EMBEDDED = 5.0
VALUES, OFTEN, TOGETHER = "the first logits", "fraction of each", "fraction that agrees with its neighbor"


class GPT(gpt.GPT):
    """Ids in, logits out; one table reads and writes (Radford et al. 2019)."""

    def __init__(
        self, vocabulary: int, d_model: int, h: int, layers: int, d_ff: int, max_length: int, dropout: float = 0.0
    ) -> None:
        super().__init__(vocabulary, d_model, h, layers, d_ff, max_length, dropout)

    def forward(self, ids: Tensor) -> Tensor:
        return super().forward(ids)


def parts(vocabulary: int, d_model: int, h: int, layers: int, d_ff: int, max_length: int,
          dropout: float = 0.0) -> tuple[Block, ...]:
    """The two tables, the blocks and the last norm, in the order in which they are used."""
    blocks = [Block("token table", "table", (vocabulary, d_model)),
              Block("position table", "table", (max_length, d_model))]
    for layer in range(layers):
        blocks += parts_of_block(d_model, h, d_ff, name=f"block {layer}, ")
    return (*blocks, Block("last norm", "norm", (d_model,)))


def inputs(
    g: torch.Generator, B: int, T: int, *sizes: int, dropout: float | None = None, dtype: torch.dtype = torch.float32,
    ordinary: bool = False,
) -> Case:  # fmt: skip
    """Ids of all kinds, 0 among them. ordinary: weights under which a ReLU and a GELU differ."""
    made = sizes or SIZES
    ids = torch.randint(made[0], (B, T), generator=g)
    ids[0, 0], ids[-1, -1] = 0, made[0] - 1
    weights = (drawn if ordinary else steep)(g, parts(*made), dtype)
    return Case((ids,), construct=made if dropout is None else (*made, dropout), weights=weights)


def hardly_spread(g: torch.Generator) -> Case:
    """A stream whose numbers hardly differ as far as the last norm, so that its eps counts."""
    case = inputs(g, 2, 4)
    for role, weight in (case.weights or {}).items():
        if role.endswith(("table.rows", ".output", ".output bias", ".second", ".second bias")):
            weight.mul_(0.002)
    return case


def half_dropped(g: torch.Generator) -> Case:
    """Three features that are the same everywhere, and blocks that add nothing. Of features of which half were dropped
    the last norm makes five different values, and the head reads one feature."""
    made = (7, 3, 1, 2, 5, 60, 0.5)
    weights = silent(parts(*made))
    for role in ("token table.rows", "position table.rows"):
        weights[role] += EMBEDDED
    weights["last norm.scale"][1:] = 0.0
    return Case((torch.randint(7, (60, 60), generator=g),), construct=made, weights=weights)


def what_counts(case: Case, result: Any) -> Any:
    """Where half is dropped in training, how often the first logit has each of its values; else the logits, with any of
    the bends."""
    ids, made = case.arguments[0], case.construct
    if ids.shape != (60, 60) or not isinstance(result, Tensor) or result.shape != (*ids.shape, made[0]):
        return by_last_positions(case, of_any_bend(case, result))
    values, kinds = result[..., 0].double().round(decimals=2).unique(return_inverse=True)
    if len(values) == 1:
        return Remark("all first logits are equal, though half of the embedded features should be dropped")
    if len(values) > 5:
        return Remark("more than five different values came out for an embedding that is the same everywhere")
    alike = [(kinds.diff(dim=axis) == 0).double().mean() for axis in range(2)]
    return {VALUES: values, OFTEN: torch.bincount(kinds.flatten()).double() / kinds.numel(),
            TOGETHER: torch.stack(alike)}  # fmt: skip


def shown(evidence: Evidence) -> str:
    """The first wrong number, where logits are compared."""
    return first_number(evidence) if isinstance(evidence.got, Tensor) else ""


def alike(g: torch.Generator) -> Case:
    """The same token everywhere, and a sentence twice: only positions tell its places apart."""
    case = inputs(g, 3, 5)
    case.arguments[0][0] = 4
    case.arguments[0][2] = case.arguments[0][1]
    return case


def of_any_bend(case: Case, result: Any) -> Any:
    """The same logits, whether there are GELUs, their approximations by tanh, or ReLUs in the blocks."""
    ids, made = case.arguments[0], case.construct
    weights = case.weights or {}
    dtype = next(iter(weights.values())).dtype
    if not isinstance(result, Tensor) or result.shape != (*ids.shape,
        made[0]) or result.dtype != dtype or are_steep(weights):
        return result
    wanted = [_computed(case, bend, dtype) for bend in BENDS]
    return wanted[0] if any(torch.allclose(result, one, rtol=1e-4, atol=1e-5) for one in wanted) else result


def by_last_positions(case: Case, result: Any) -> Any:
    """In words, a result for which the last rows of the table of positions were used; any other as it is."""
    T, weights = case.arguments[0].shape[-1], case.weights or {}
    first = case.construct[5] - T  # the row that the first token gets then
    rows = weights.get("position table.rows")
    if not 0 < first < 16 or T > 16 or rows is None or not isinstance(result, Tensor):
        return result
    shape = (*case.arguments[0].shape, case.construct[0])
    if result.shape != shape or result.dtype != rows.dtype:
        return result
    other = replace(case, weights={**weights, "position table.rows": rows.roll(-first, 0)})
    right, wrong = (_computed(each, "gelu", rows.dtype) for each in (case, other))
    if torch.allclose(result, right, rtol=1e-3, atol=1e-3) or not torch.allclose(result, wrong, rtol=1e-4, atol=1e-5):
        return result
    return Remark(
        f"the first of {T} tokens got row {first} of the table of positions, and the last token its last row; the "
        "first token is at position 0"
    )


def _computed(case: Case, bend: str, dtype: torch.dtype) -> Tensor:
    """What a model with this bend makes of a case, in evaluation."""
    with torch.random.fork_rng(devices=[]):
        model, weights = gpt.GPT(*case.construct).to(dtype).eval(), case.weights or {}
    with torch.no_grad():
        model.embedding.weight.copy_(weights["token table.rows"])
        model.positions.table.copy_(weights["position table.rows"])
        model.norm.weight.copy_(weights["last norm.scale"])
        model.norm.bias.copy_(weights["last norm.shift"])
        for layer, block in enumerate(model.blocks):
            filled(block, weights, f"block {layer}, ")
            block.feed_forward.activation = bent(bend)
        return model(case.arguments[0])


RIGHT = with_block("""
    class GPT(nn.Module):
        def __init__(self, vocabulary, d_model, h, layers, d_ff, max_length, dropout=0.0):
            super().__init__()
            self.max_length = max_length
            self.tokens = nn.Embedding(vocabulary, d_model)
            self.places = nn.Embedding(max_length, d_model)
            self.drop = nn.Dropout(dropout)
            self.blocks = nn.ModuleList([GPTBlock(d_model, h, d_ff, dropout) for _ in range(layers)])
            self.norm = nn.LayerNorm(d_model)
            self.head = nn.Linear(d_model, vocabulary, bias=False)
            self.head.weight = self.tokens.weight

        def forward(self, ids):
            T = ids.shape[1]
            if T > self.max_length:
                raise ValueError(f"at most {self.max_length} tokens, got {T}")
            x = self.tokens(ids)
            x = x + self.places(torch.arange(T))
            x = self.drop(x)
            for block in self.blocks:
                x = block(x)
            x = self.norm(x)
            return self.head(x)
""")
CHECK = "if T > self.max_length:"
WHOLE_CHECK = CHECK + '\n            raise ValueError(f"at most {self.max_length} tokens, got {T}")'
WORDS, PLACED, DROPPED = "x = self.tokens(ids)", "x = x + self.places(torch.arange(T))", "x = self.drop(x)"
TABLE, STACK = (
    "self.places = nn.Embedding(max_length, d_model)",
    "self.blocks = nn.ModuleList([GPTBlock(d_model, h, d_ff, dropout) for _ in range(layers)])"
)
LOOP, NORMED, LAST = "x = block(x)", "x = self.norm(x)", "return self.head(x)"
HEAD, TIED = "self.head = nn.Linear(d_model, vocabulary, bias=False)", "self.head.weight = self.tokens.weight"

# fmt: off
LAST_TOKEN = Family("the last token alone", """Only the logits of the last token came back. Training needs those of
    every position: (B, T, vocabulary). Generation looks at the last one.""")
# fmt: on

EXERCISE = Exercise(
    id="gpt", number="13.3", difficulty=3, minutes=35, visible_points=2, hidden_points=3,
    reference=GPT, roles=parts, normalize=what_counts, section=MODEL, quotes=shown, forbidden=LIBRARY,
    probes=(
        visible("2 texts of 5 tokens", inputs, 2, 5),
        visible("as many tokens as there are positions", inputs, 2, 9),
        visible("30 tokens, and 9 positions", inputs, 2, 30),
        visible("3 blocks, another size", inputs, 3, 4, 17, 8, 2, 3, 12, 7),
        # More tokens than a table of positions or a mask of a fixed size, such as 64, would have room for.
        hidden("other sizes", inputs, 2, 300, 19, 8, 4, 1, 14, 310, announced_by=PROMISED),
        hidden("one text of one token", inputs, 1, 1, 13, 6, 3, 1, 10, 9, announced_by=PROMISED),
        hidden("one token everywhere, and a text twice", alike, announced_by=PROMISED),
        hidden("one token more than there are positions", inputs, 2, 10,
               announced_by="Raises ValueError for more than max_length tokens"),
        hidden("a ReLU or a GELU between the maps", inputs, 2, 4, ordinary=True,
               announced_by="a ReLU or a GELU, in either form"),
        hidden("float64, gradients", inputs, 2, 3, 13, 6, 3, 1, 10, 9, dtype=torch.float64, checks=GRADIENTS,
               announced_by=PROMISED),
        hidden("numbers that hardly differ", hardly_spread,
               announced_by="The blocks have the norms and biases of 13.2"),
        hidden("dropout 0.5, in evaluation", inputs, 2, 4, dropout=0.5, announced_by="dropout: as in GPTBlock"),
        hidden("in training, everything dropped", inputs, 2, 4, dropout=1.0, checks="training",
               announced_by="dropout on the sum of both"),
        hidden("in training, dropout 0.5", half_dropped, checks="training", announced_by="dropout on the sum of both",
               **CHANCE),
        second_call(inputs, 2, 5),
    ),
    omits={"precision": "ids go in, which are small whole numbers"},
    mistakes=(
        mistake("the head not tied", RIGHT.but(TIED, "pass"), MODEL,
            """The head has a table of its own. In a GPT one table does both: its row for a token is added when the
            token is read, and compared with the stream when it is guessed. Let both be one parameter; a copy is equal
            once and then goes its own way."""),
        mistake("the head not tied, with a bias", RIGHT.but(TIED, "pass").but("vocabulary, bias=False)", "vocabulary)"),
                MODEL,
            """The head has a table of its own, and a bias. Here the table of tokens is the head as well, one and the
            same parameter, and nothing is added to the scores."""),
        mistake("a bias in the tied head", RIGHT.but("vocabulary, bias=False)", "vocabulary)"), MODEL,
            "The head is tied, but it adds a bias to the scores: one value per token of the vocabulary. Here the head "
            "has no bias."),
        mistake("no learned positions", RIGHT.without(PLACED), MODEL,
            """forward uses no learned table of positions: it adds none, or one that is not a parameter, such as
            a buffer or the sinusoids of chapter 07. Attention does not know the order by itself. A GPT learns its
            positions, in a table with max_length rows."""),
        mistake("positions looked up and not added", RIGHT.but(PLACED, "places = self.places(torch.arange(T))"), MODEL,
            """The rows of the table of positions were looked up and not added, so all orders of a text look alike. The
            input of the first block is token plus position."""),
        mistake("a position too many",
                RIGHT.but("nn.Embedding(max_length, d_model)", "nn.Embedding(max_length + 1, d_model)"), MODEL,
            "The table of positions does not have max_length rows. It needs one for each position, from 0 to "
            "max_length - 1."),
        mistake("positions from 1",
                RIGHT.but("torch.arange(T)", "torch.arange(1, T + 1).clamp(max=self.max_length - 1)"), MODEL,
            "Your positions begin at 1. The first token is at position 0."),
        mistake("positions from 1, without an end", RIGHT.but("torch.arange(T)", "torch.arange(1, T + 1)"), MODEL,
            """Your positions begin at 1, so the last one falls out of the table when a text is as long as it may be.
            The first token is at position 0."""),
        mistake("positions backwards", RIGHT.but("torch.arange(T)", "torch.arange(T - 1, -1, -1)"), MODEL,
            "Your positions count backwards, so a token's position changes with every token that comes. The first "
            "token is at position 0."),
        mistake("position 0 for all", RIGHT.but("torch.arange(T)", "torch.zeros(T, dtype=torch.long)"), MODEL,
            "All tokens got the position of the first one, so their order is lost."),
        mistake("positions counted along the batch", RIGHT.but("self.places(torch.arange(T))",
                  "self.places(torch.arange(len(ids)) % self.max_length)[:, None]"), MODEL,
            "All tokens of a text got the same position: the number of their text in the *batch*. Positions are "
            "counted along the text, axis 1."),
        mistake("positions looked up by the ids",
                RIGHT.but("self.places(torch.arange(T))", "self.places(ids % self.max_length)"), MODEL,
            "The rows of the table of positions were chosen by the ids. They are chosen by a token's position: 0, "
            "1, 2 and so on."),
        mistake("tokens times the root of d_model",
                RIGHT.but(WORDS, "x = self.tokens(ids) * self.tokens.embedding_dim ** 0.5"), MODEL,
            """The tokens were multiplied by the root of d_model, as in chapter 09. GPT does not: its positions are
            learned, and find a size that fits."""),
        mistake("scores divided by the root of d_model",
                RIGHT.but(LAST, "return self.head(x) * self.tokens.embedding_dim ** -0.5"), MODEL,
            """The scores were divided by the root of d_model, as some models with a tied head do. Here they are the
            products with the table as they are."""),
        mistake("no last norm", RIGHT.without(NORMED), MODEL,
            """The last norm is missing, was never used, or has no scale and shift to learn: each block normalizes what
            it reads and not what it writes, so the stream has grown when the head meets it. There is one norm between
            the last block and the head."""),
        mistake("the norm's result not kept", RIGHT.but(NORMED, "self.norm(x)"), MODEL,
            """The last norm is called, and what it returns is not kept: the head reads the stream as it was. A module
            does not change its input; it returns a new tensor."""),
        mistake("the norm before the blocks", RIGHT.without(NORMED).but(DROPPED, f"{DROPPED}\n        {NORMED}"), MODEL,
            "The model's own norm comes before the blocks. It belongs after the last one, between the "
            "stream and the head."),
        mistake("a norm after every block", RIGHT.but(LOOP, "x = self.norm(block(x))").without(NORMED), MODEL,
            "The last norm was applied after every block. The stream is not normalized between blocks; it is "
            "normalized "
            "once, after the last one."),
        mistake("norms of its own after every block", RIGHT.but("self.norm = nn.LayerNorm(d_model)",
                  "self.norm = nn.ModuleList([nn.LayerNorm(d_model) for _ in range(layers)])").but(
                  "for block in self.blocks:", "for norm, block in zip(self.norm, self.blocks):").but(LOOP,
                      "x = norm(block(x))").without(NORMED), MODEL,
            "There is a norm after every block. The stream is not normalized between blocks; there is one "
            "more norm, after "
            "the last one."),
        mistake("a norm for the embedding", RIGHT.but("self.norm = nn.LayerNorm(d_model)",
                  "self.norm, self.first = nn.LayerNorm(d_model), nn.LayerNorm(d_model)").but(
                  DROPPED, "x = self.drop(self.first(x))"), MODEL,
            """There is one norm too many, before the blocks perhaps. Each block has two of its own, and there is one
            after the last block: no others."""),
        families.SOFTMAX_AT_THE_END(RIGHT.but(LAST, "return torch.softmax(self.head(x), dim=-1)"),
            MODEL, instead="The loss expects logits and makes the softmax itself."),
        families.LOG_SOFTMAX_AT_THE_END(RIGHT.but(LAST, "return torch.log_softmax(self.head(x), dim=-1)"), MODEL),
        LAST_TOKEN(RIGHT.but(LAST, "return self.head(x[:, -1])"), MODEL),
        LAST_TOKEN(RIGHT.but(LAST, "return self.head(x[:, -1:])"), MODEL, name="the last token alone, with its axis"),
        mistake("the last token cut off", RIGHT.but(LAST, "return self.head(x[:, :-1])"), MODEL,
            "The logits of the last token are missing. There is a row for every token that went in."),
        mistake("vocabulary before tokens", RIGHT.but(LAST, "return self.head(x).transpose(1, 2)"), MODEL,
            "The logits are (B, vocabulary, T). Return (B, T, vocabulary): a row of scores for each token."),
        mistake("the stream came back", RIGHT.but(LAST, "return x"), MODEL,
            "The vectors of the stream came back, d_model values per token. The head turns each into a score for every "
            "token of the vocabulary."),
        mistake("a pair came back", RIGHT.but(LAST, "return self.head(x), None"), MODEL,
            "Two things came back, as where a model computes its loss as well. forward returns only the logits."),
        mistake("no check of the length", RIGHT.but(WHOLE_CHECK, "pass"), MODEL,
            """For a text longer than the table of positions your model raises a different error from the one that the
            task asks for, perhaps the table's own. Check the length, and raise a ValueError that says how many tokens
            are allowed."""),
        mistake("no check of the length, rows cut", RIGHT.but(WHOLE_CHECK, "pass").but(
                  "self.places(torch.arange(T))", "self.places.weight[:T]"), MODEL,
            """A text that is longer than the table of positions stops your model with an error about shapes. Check the
            length, and raise a ValueError that says how many tokens are allowed."""),
        mistake("an assertion", RIGHT.but(WHOLE_CHECK, "assert T <= self.max_length"), MODEL,
            """For a text that is too long an AssertionError came. The task asks for a ValueError; assertions are for
            what can never happen, and vanish under python -O."""),
        mistake("another error", RIGHT.but("raise ValueError(", "raise OverflowError("), MODEL,
            "For a text that is too long another kind of error came. The task asks for a ValueError."),
        mistake("as long as the table refused", RIGHT.but("T > self.max_length", "T >= self.max_length"), MODEL,
            """A text with exactly as many tokens as there are positions was refused. There is a position for each of
            them: only more than max_length are too many."""),
        mistake("one token too many allowed", RIGHT.but("T > self.max_length", "T > self.max_length + 1"), MODEL,
            "One token more than there are positions is let through, and the table has no row for it."),
        mistake("what is too long cut off in front",
                RIGHT.but(WHOLE_CHECK, "ids = ids[:, -self.max_length:]\n        T = ids.shape[1]"), MODEL,
            """Of a text that is too long you silently read the last tokens, and a row is missing for each of the
            others. The model raises a ValueError; generate decides what to show it (13.4)."""),
        mistake("what is too long cut off behind",
                RIGHT.but(WHOLE_CHECK, "ids = ids[:, :self.max_length]\n        T = ids.shape[1]"), MODEL,
            """Of a text that is too long you silently read the beginning. The model raises a ValueError; generate
            decides what to show it (13.4)."""),
        mistake("positions that begin anew",
                RIGHT.but(WHOLE_CHECK, "pass").but("torch.arange(T)", "torch.arange(T) % self.max_length"), MODEL,
            """Beyond the table your positions begin again at 0, or stay at the last row, so two tokens share a
            position. The table ends there, and a ValueError says so."""),
        mistake("the last position again and again", RIGHT.but(WHOLE_CHECK, "pass").but(
                  "torch.arange(T)", "torch.arange(T).clamp(max=self.max_length - 1)"), MODEL,
            "Beyond the table all your tokens are at the last position. The table ends there, and a "
            "ValueError says so."),
        mistake("one block again and again",
                RIGHT.but(STACK, "self.blocks = nn.ModuleList([GPTBlock(d_model, h, d_ff, dropout)] * layers)"),
                STACKING,
            """Your blocks are one object: however many there are, they have one set of parameters. [block] * layers
            repeats the same one. Make a new one each time."""),
        mistake("blocks in a plain list", RIGHT.but(STACK, STACK.replace("nn.ModuleList([", "list([")), STACKING,
            """A Python list hides its blocks from the module: their parameters are not registered, so they are not
            trained. Use nn.ModuleList."""),
        mistake("one block", RIGHT.but("range(layers)", "range(1)"), BLOCKS,
            """Your model applies only one block. If __init__ makes `layers` of them, look at the loop in forward: does
            a `return` inside it end it early? Each block reads what the one before it returned."""),
        mistake("every block reads the embedding", RIGHT.but(LOOP, "y = block(x)").but(NORMED, "x = self.norm(y)"),
                BLOCKS,
            """Every block reads the embedding, so the model returns what its last block makes of it, and the other
            blocks are lost. Each block reads what the one before it returned."""),
        mistake("the blocks' results not kept", RIGHT.but(LOOP, "block(x)"), BLOCKS,
            """Your blocks are called, and what they return is not kept: the last norm reads the embedding. A module
            does not change its input; it returns a new tensor."""),
        mistake("a block too few", RIGHT.but("range(layers)", "range(layers - 1)"), MODEL,
            "Your model has layers - 1 blocks: 2 where layers is 3."),
        mistake("a block too many", RIGHT.but("range(layers)", "range(layers + 1)"), BLOCKS,
            "There is one block too many: `layers` is the number of blocks."),
        mistake("no causal mask", RIGHT.without(HIDE), BLOCKS,
            "Every token sees those after it: the blocks hide nothing. So the row of a token contains the token that "
            "it should predict."),
        families.ONE_TOKEN_OF_THE_FUTURE(RIGHT.but(".tril()", ".tril(1)"), BLOCKS),
        mistake("a mask of the last length",
                RIGHT.but("open_ = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril()",
                  "open_ = torch.ones(5, 5, dtype=torch.bool).tril()"), BLOCKS,
            "Your causal mask has a fixed size. T differs from call to call: make it for as many tokens as there are, "
            "or cut it to them."),
        families.SCORES_NOT_DIVIDED(RIGHT.but(DIVIDED, ""), BLOCKS, part="model"),
        mistake("scores divided by the wrong root", RIGHT.but("q.shape[-1] ** 0.5", "x.shape[-1] ** 0.5"), BLOCKS,
            """Your model's attention divides the scores by the root of d_model. Each head's queries have d_model / h
            numbers: it is their root (chapter 06)."""),
        mistake("post-norm blocks", RIGHT.without("seen = self.norm1(x)").without("seen = self.norm2(x)").but(
                  "x = x + self.drop(self.attention(seen))", "x = self.norm1(x + self.drop(self.attention(x)))").but(
                  "x = x + self.drop(self.think(seen))", "x = self.norm2(x + self.drop(self.think(x)))"), BLOCKS,
            "Your blocks are post-norm, as in the paper of 2017. A GPT-2's norms come before the sub-layers (13.2)."),
        mistake("no residual",
                RIGHT.but("x = x + self.drop(self.attention(seen))", "x = self.drop(self.attention(seen))").but(
                  "x = x + self.drop(self.think(seen))", "x = self.drop(self.think(seen))"), BLOCKS,
            "The blocks have no residuals: the output of a sub-layer replaced the stream (13.2)."),
        mistake("shown a token twice", RIGHT.but(LOOP, "x = block(x) + x"), BLOCKS,
            "You added x to what a block returns. A block has its residual inside: what it returns is the stream "
            "already."),
        families.ANOTHER_ACTIVATION(RIGHT.but("F.gelu(", "F.silu("),
            BLOCKS, where="In the blocks, between the two linear layers,"),
        mistake("no activation", RIGHT.but("F.gelu(self.widen(x))", "self.widen(x)"), BLOCKS,
            "There is nothing between the two linear layers of your feed-forward networks (13.2)."),
        families.EMBEDDINGS_NOT_DROPPED(RIGHT.without(DROPPED), MODEL, words="tokens"),
        mistake("positions not dropped", RIGHT.but(f"{PLACED}\n        {DROPPED}", f"{DROPPED}\n        {PLACED}"),
                MODEL,
            "In training the positions are not dropped: dropout came before they were added. It is put on "
            "the sum of both."),
        mistake("no dropout in the blocks",
                RIGHT.but("GPTBlock(d_model, h, d_ff, dropout)", "GPTBlock(d_model, h, d_ff)"), MODEL,
            "In training the blocks drop nothing: `dropout` was not passed on to them.", quotes=None),
        mistake("ids shifted inside",
                RIGHT.but("T = ids.shape[1]", "ids = ids.roll(1, dims=1)\n        T = ids.shape[1]"), MODEL,
            """You moved the ids by one position. lm_batch (13.1) has done that already: row t of the logits belongs to
            token t, and scores the one after it."""),
        mistake("d_ff and max_length exchanged", RIGHT.but(
                  "h, layers, d_ff, max_length, dropout=0.0):", "h, layers, max_length, d_ff, dropout=0.0):"), MODEL,
            "d_ff and max_length are exchanged: GPT(vocabulary, d_model, h, layers, d_ff, max_length, dropout)."),
        mistake("h and layers exchanged", RIGHT.but(
                  "d_model, h, layers, d_ff, max_length, dropout=0.0):",
                  "d_model, layers, h, d_ff, max_length, dropout=0.0):"), MODEL,
            "h and layers are exchanged: GPT(vocabulary, d_model, h, layers, d_ff, max_length, dropout)."),
        *usual_mistakes(RIGHT, detached=MODEL, float32=MODEL, squeezed=MODEL),
    ),
    correct=(
        correct("written out", RIGHT),
        correct("scores by the table itself, positions a bare parameter",
                RIGHT.but(TABLE, "self.places = nn.Parameter(torch.zeros(1, max_length, d_model))").but(
            HEAD, "pass").without(TIED).but(PLACED, "x = x + self.places[:, :T]").but(LAST,
                "return x @ self.tokens.weight.T")),
        correct("tied from the other side, ReLUs",
                RIGHT.but(TIED, "self.tokens.weight = self.head.weight").but("F.gelu(", "torch.relu(")),
        correct("F.linear, blocks in a Sequential, made in another order",
                RIGHT.but(HEAD, "pass").without(TIED).but(LAST,
                  "return F.linear(x, self.tokens.weight)").but(
            STACK, "self.stack = nn.Sequential(*(GPTBlock(d_model, h, d_ff, dropout) for _ in range(layers)))").but(
            "for block in self.blocks:\n            x = block(x)",
            "x = self.stack(x)").but("self.tokens = nn.Embedding(vocabulary, d_model)", "pass").but(
            "self.norm = nn.LayerNorm(d_model)",
            "self.norm = nn.LayerNorm(d_model)\n        self.tokens = nn.Embedding(vocabulary, d_model)")),
        correct("one module for everything, as minGPT writes it", answer(f"{HEADS}\n\n{BLOCK}\n\n" + answer("""
            class GPT(nn.Module):
                def __init__(self, vocabulary, d_model, h, layers, d_ff, max_length, dropout=0.0):
                    super().__init__()
                    self.block_size = max_length
                    self.transformer = nn.ModuleDict(dict(
                        wte=nn.Embedding(vocabulary, d_model),
                        wpe=nn.Embedding(max_length, d_model),
                        drop=nn.Dropout(dropout),
                        h=nn.ModuleList([GPTBlock(d_model, h, d_ff, dropout) for _ in range(layers)]),
                        ln_f=nn.LayerNorm(d_model),
                    ))
                    self.lm_head = nn.Linear(d_model, vocabulary, bias=False)
                    self.transformer.wte.weight = self.lm_head.weight
                    self.apply(self._init_weights)

                def _init_weights(self, module):
                    if isinstance(module, (nn.Linear, nn.Embedding)):
                        torch.nn.init.normal_(module.weight, mean=0.0, std=0.02)
                    if isinstance(module, nn.Linear) and module.bias is not None:
                        torch.nn.init.zeros_(module.bias)

                def forward(self, idx, targets=None):
                    b, t = idx.size()
                    if not t <= self.block_size:
                        raise ValueError("too long")
                    pos = torch.arange(0, t, dtype=torch.long, device=idx.device).unsqueeze(0)
                    x = self.transformer.drop(self.transformer.wte(idx) + self.transformer.wpe(pos))
                    for block in self.transformer.h:
                        x = block(x)
                    return self.lm_head(self.transformer.ln_f(x))
        """))),
        correct("one-hot times the table, the library's attention", answer("""
            class Layer(nn.Module):
                def __init__(self, d, h, inner, p):
                    super().__init__()
                    self.attend = nn.MultiheadAttention(d, h, dropout=p, batch_first=True)
                    self.before = nn.ModuleList([nn.LayerNorm(d), nn.LayerNorm(d)])
                    self.think = nn.Sequential(nn.Linear(d, inner), nn.ReLU(), nn.Linear(inner, d))
                    self.p = nn.Dropout(p)

                def forward(self, x, closed):
                    z = self.before[0](x)
                    x = x + self.p(self.attend(z, z, z, attn_mask=closed, need_weights=False)[0])
                    return x + self.p(self.think(self.before[1](x)))

            class GPT(nn.Module):
                def __init__(self, V, D, h, L, inner, longest, p=0.0):
                    super().__init__()
                    self.E = nn.Parameter(torch.randn(V, D))
                    self.P = nn.Parameter(torch.randn(longest, D))
                    self.register_buffer("closed", torch.ones(longest, longest).triu(1).bool())
                    self.layers = nn.ModuleList(Layer(D, h, inner, p) for _ in range(L))
                    self.last, self.p = nn.LayerNorm(D), nn.Dropout(p)

                def forward(self, ids):
                    T = ids.size(1)
                    if T > len(self.P):
                        raise ValueError(T)
                    x = self.p(F.one_hot(ids, self.E.shape[0]).to(self.E.dtype) @ self.E + self.P[:T])
                    for layer in self.layers:
                        x = layer(x, self.closed[:T, :T])
                    return torch.einsum("btd,vd->btv", self.last(x), self.E)
        """)),
    ),
    hints=(
        "which two tables are added at the bottom, and which one of them is used again at the top? What happens to a "
        "text that has no position left?",
        "ids (B, T): rows of the token table plus the first T rows of the position table, (B, T, D); through the "
        "blocks (B, T, D); last norm; times the token "
        "table, (B, T, vocabulary).",
        "more than max_length tokens: ValueError. x = dropout(token rows + position rows 0 to T - 1); every block in "
        "turn; the last norm; scores by dot products with the rows of the token table, over the axis D.",
    ),
)  # fmt: skip
