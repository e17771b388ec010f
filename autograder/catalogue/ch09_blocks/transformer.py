"""09.5: the whole model, from two rows of ids to logits."""

from typing import Any

import torch
from torch import Tensor

from autograder.catalogue import families
from autograder.catalogue.ch09_blocks.shared import FIXED_RATE, HEADS, LIBRARY, ROOT_OF_D, drawn, first_number, sections
from autograder.catalogue.exercise import Block, Case, Exercise
from autograder.catalogue.families import usual_mistakes
from autograder.catalogue.known_answers import Answer, answer, correct, mistake
from autograder.catalogue.probes import GRADIENTS, PROMISED, hidden, second_call, visible
from transformer_ref.config import ModelConfig
from transformer_ref.model import transformer

STACK, ENDS, WHOLE, THREE, PLACEMENT = sections("stack ends whole three placement")
NEARLY_ALL = 1 - 1e-12  # dropout that leaves nothing, of a config, which takes no 1
# Their product overflows in float32; each of the two may even be divided by 1 - NEARLY_ALL or by the root of eps.
LARGE, LESS_LARGE = 1e30, 1e12


class Transformer(transformer.Transformer):
    """The encoder-decoder of Vaswani et al. 2017."""

    def forward(self, src: Tensor, tgt_in: Tensor) -> Tensor:
        """The logits; the arguments have the names that the notebook gives them."""
        return super().forward(src, tgt_in)


def parts(cfg: ModelConfig) -> tuple[Block, ...]:
    """Tables, layers and last norms, norms in the order in which they are used."""
    D, vocabulary = cfg.d_model, cfg.target_vocabulary
    tables = [Block("shared table", "table", (vocabulary, D))]
    if not cfg.tie_embeddings:
        tables = [Block("source table", "table", (cfg.source_vocabulary, D)),
                  Block("target table", "table", (vocabulary, D)),
                  Block("output", "output", (D, vocabulary))]
    blocks = list(tables)
    for side, layers, attentions in (("encoder", cfg.encoder_layers, ("self",)),
                                     ("decoder", cfg.decoder_layers, ("self", "cross"))):
        for layer in range(layers):
            name = f"{side} layer {layer}"
            blocks += [Block(f"{name}, {which}-attention", "attention", (D, cfg.heads)) for which in attentions]
            blocks.append(Block(f"{name}, feed-forward", "feed-forward", (D, cfg.d_ff)))
            blocks += [Block(f"{name}, norm {n}", "norm", (D,)) for n in range(1, len(attentions) + 2)]
        if cfg.norm_first:
            blocks.append(Block(f"{side}, last norm", "norm", (D,)))
    return tuple(blocks)


def config(**changes: Any) -> ModelConfig:
    sizes = {"source_vocabulary": 11, "target_vocabulary": 13, "d_model": 6, "heads": 3, "encoder_layers": 2,
             "decoder_layers": 2,
             "d_ff": 10, "dropout": 0.0, "max_length": 17, "pad": 0, "bos": 1, "eos": 2}  # fmt: skip
    return ModelConfig(**sizes | changes)


def inputs(
    g: torch.Generator, B: int, Ts: int, Tt: int, pads: bool = True, dtype: torch.dtype = torch.float32,
    high: float = 0.0, **changes: Any
) -> Case:  # fmt: skip
    """Sentences of different lengths, or of one; the target's begin with bos. The first word of each is not a pad.

    high: added to every other hidden unit of the feed-forward networks.
    """
    cfg = config(**changes)
    rows = []
    for T, vocabulary in ((Ts, cfg.source_vocabulary), (Tt, cfg.target_vocabulary)):
        ids = torch.randint(0, vocabulary, (B, T), generator=g)
        ids = ids.where(ids != cfg.pad, vocabulary - 1)
        lengths = torch.randint(1, T + 1, (B,), generator=g) if pads else torch.full((B,), T)
        lengths[-1] = T
        if pads and B > 1:
            lengths[0] = max(T - 2, 1)
        rows.append(ids.masked_fill(torch.arange(T) >= lengths[:, None], cfg.pad))
    rows[1][:, 0] = cfg.bos
    weights = drawn(g, parts(cfg), dtype)
    for role, weight in weights.items():
        if role.endswith("feed-forward.first bias"):
            weight[::2] += high
    return Case(tuple(rows), construct=(cfg,), weights=weights)


def twice_the_same(g: torch.Generator) -> Case:
    """A batch in which a sentence occurs twice."""
    case = inputs(g, 3, 4, 5, norm_first=True)
    for ids in case.arguments:
        ids[2] = ids[0]
    return case


def nan_unless_the_encoder_drops(g: torch.Generator) -> Case:
    """In training, all dropped, with weights under which the logits are NaN if the encoder drops too little.

    No finite value passes from the encoder to the logits, since cross-attention is dropped as well; but infinity times
    0 is NaN. If the encoder drops everything, its last norm reads zeros, and its large scale has no effect. Otherwise
    that scale and the large values of cross-attention overflow together.
    """
    case = inputs(g, 2, 3, 4, False, dropout=NEARLY_ALL, norm_first=True, encoder_layers=1, decoder_layers=1)
    factors = {"encoder, last norm.scale": LARGE, "decoder layer 0, cross-attention.value": LESS_LARGE}
    weights = {role: factors.get(role, 1.0) * weight for role, weight in (case.weights or {}).items()}
    return Case(case.arguments, construct=case.construct, weights=weights)


def of_real_words(case: Case, result: Any) -> Any:
    """Logits at the target's real tokens; those at pads are ignored."""
    pad, ids = case.construct[0].pad, case.arguments[1]
    if not isinstance(result, Tensor) or result.ndim != 3 or result.shape[:2] != ids.shape:
        return result
    return result.masked_fill((ids == pad)[..., None], 0)


LAYERS = """
    class Layer(nn.Module):
        def __init__(self, cfg, cross):
            super().__init__()
            self.before, d = cfg.norm_first, cfg.d_model
            self.own = Heads(d, cfg.heads)
            self.read = Heads(d, cfg.heads) if cross else None
            self.widen, self.narrow = nn.Linear(d, cfg.d_ff), nn.Linear(cfg.d_ff, d)
            self.norms = nn.ModuleList([nn.LayerNorm(d) for _ in range(3 if cross else 2)])
            self.drop = nn.Dropout(cfg.dropout)

        def step(self, norm, x, said):
            return x + self.drop(said(norm(x))) if self.before else norm(x + self.drop(said(x)))

        def forward(self, x, mask, memory=None, memory_mask=None):
            x = self.step(self.norms[0], x, lambda t: self.own(t, t, mask))
            if self.read is not None:
                x = self.step(self.norms[1], x, lambda t: self.read(t, memory, memory_mask))
            return self.step(self.norms[-1], x, lambda t: self.narrow(torch.relu(self.widen(t))))


    def positions(T, d):
        angle = torch.arange(T).float()[:, None] / 10000 ** (torch.arange(0, d, 2).float() / d)
        return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)[:, :d]


"""


def with_layers(source: str):
    """An answer that has layers of both kinds, and positions, next to its own class."""
    return answer(f"{HEADS}\n\n{answer(LAYERS)}\n\n{answer(source)}")


RIGHT = with_layers("""
    class Transformer(nn.Module):
        def __init__(self, cfg):
            super().__init__()
            self.cfg = cfg
            self.source = nn.Embedding(cfg.source_vocabulary, cfg.d_model)
            self.target = nn.Embedding(cfg.target_vocabulary, cfg.d_model)
            self.encoder = nn.ModuleList([Layer(cfg, False) for _ in range(cfg.encoder_layers)])
            self.decoder = nn.ModuleList([Layer(cfg, True) for _ in range(cfg.decoder_layers)])
            self.after_encoder = nn.LayerNorm(cfg.d_model) if cfg.norm_first else nn.Identity()
            self.after_decoder = nn.LayerNorm(cfg.d_model) if cfg.norm_first else nn.Identity()
            self.output = nn.Linear(cfg.d_model, cfg.target_vocabulary, bias=False)
            self.drop = nn.Dropout(cfg.dropout)
            if cfg.tie_embeddings:
                self.source.weight = self.target.weight
                self.output.weight = self.target.weight

        def embed(self, table, ids):
            x = table(ids) * self.cfg.d_model ** 0.5
            x = x + positions(ids.shape[1], self.cfg.d_model).to(x.dtype)
            return self.drop(x)

        def encode(self, src):
            seen = (src != self.cfg.pad)[:, None, None, :]
            x = self.embed(self.source, src)
            for layer in self.encoder:
                x = layer(x, seen)
            return self.after_encoder(x), seen

        def decode(self, memory, seen, tgt):
            said = (tgt != self.cfg.pad)[:, None, None, :]
            said = said & torch.ones(tgt.shape[1], tgt.shape[1], dtype=torch.bool).tril()
            y = self.embed(self.target, tgt)
            for layer in self.decoder:
                y = layer(y, said, memory, seen)
            return self.after_decoder(y)

        def forward(self, src, tgt_in):
            memory, seen = self.encode(src)
            y = self.decode(memory, seen, tgt_in)
            return self.output(y)
""")
TABLE, PLACES = (
    "x = table(ids) * self.cfg.d_model ** 0.5", "x = x + positions(ids.shape[1], self.cfg.d_model).to(x.dtype)"
)
ENCODER = "self.encoder = nn.ModuleList([Layer(cfg, False) for _ in range(cfg.encoder_layers)])"
DECODER = "self.decoder = nn.ModuleList([Layer(cfg, True) for _ in range(cfg.decoder_layers)])"
AFTER_ENCODER, AFTER_DECODER = "return self.after_encoder(x), seen", "return self.after_decoder(y)"
CAUSAL = "said = said & torch.ones(tgt.shape[1], tgt.shape[1], dtype=torch.bool).tril()"
LAST = "return self.output(y)"
TIED_SOURCE, TIED_OUTPUT = "self.source.weight = self.target.weight", "self.output.weight = self.target.weight"
TYING = f"if cfg.tie_embeddings:\n            {TIED_SOURCE}\n            {TIED_OUTPUT}"
SOURCE, TARGET = "self.embed(self.source, src)", "self.embed(self.target, tgt)"
NO_PLACES = "self.drop(self.{0}({1}) * self.cfg.d_model ** 0.5)"
DROP, DROPPED = "self.drop = nn.Dropout(cfg.dropout)", "return self.drop(x)"
IN_A_LAYER = f"{DROP}\n\n    def step"


def by_itself(source: str) -> Answer:
    """The answer as if it were written out. Mistakes that are a change of `RIGHT` are also tried in pairs, of which a
    grade's report tries at most 1,400 (`known_mistakes.MOST_PAIRS`), and the others make 1,315."""
    return answer(source)


def layers_dropping(rate: str) -> Answer:
    """The answer whose layers have another rate of dropout."""
    return by_itself(RIGHT.but(IN_A_LAYER, IN_A_LAYER.replace("cfg.dropout", rate)))


EXERCISE = Exercise(
    id="transformer", number="09.5", difficulty=3, minutes=75, visible_points=3, hidden_points=6,
    reference=Transformer, roles=parts, normalize=of_real_words, section=WHOLE, quotes=first_number, forbidden=LIBRARY,
    probes=(
        visible("post-norm, three tables", inputs, 2, 4, 5, False),
        visible("pre-norm, with pads", inputs, 2, 5, 4, norm_first=True),
        visible("post-norm, one table", inputs, 2, 5, 4, source_vocabulary=13, tie_embeddings=True),
        visible("1 encoder layer, 2 decoder layers", inputs, 2, 4, 3, encoder_layers=1, norm_first=True),
        hidden("other sizes", inputs, 3, 5, 6, d_model=8, heads=2, d_ff=14, encoder_layers=1, decoder_layers=2,
               high=30.0, announced_by=PROMISED),
        hidden("one sentence, one word", inputs, 1, 1, 1, encoder_layers=1, decoder_layers=1, norm_first=True,
               announced_by=PROMISED),
        hidden("a sentence twice", twice_the_same, announced_by=PROMISED),
        hidden("another pad", inputs, 3, 5, 4, pad=7, announced_by="cfg.pad, which is not always 0"),
        hidden("many pads", inputs, 3, 9, 8, encoder_layers=1, decoder_layers=1, norm_first=True,
               announced_by="No word attends to a pad"),
        # Where there are as many positions as words in a vocabulary, a parameter of positions is one table too many.
        hidden("vocabularies of one size, three tables", inputs, 2, 4, 5, source_vocabulary=13, encoder_layers=1,
               max_length=13, announced_by="Without it, source, target and output have one each"),
        hidden("one table, pre-norm", inputs, 2, 4, 5, False, torch.float64, source_vocabulary=13, tie_embeddings=True,
               norm_first=True, decoder_layers=1, checks=GRADIENTS,
               announced_by="one table serves source, target and output"),
        hidden("2 encoder layers, 1 decoder layer", inputs, 2, 3, 4, decoder_layers=1, max_length=13,
               announced_by="cfg.encoder_layers and cfg.decoder_layers"),
        hidden("float64, gradients", inputs, 2, 3, 4, False, torch.float64, encoder_layers=1, decoder_layers=1,
               max_length=13, checks=GRADIENTS, announced_by=PROMISED),
        hidden("dropout 0.5, in evaluation", inputs, 2, 4, 3, dropout=0.5, encoder_layers=1, decoder_layers=1,
               announced_by="**Dropout** as in the layers"),
        hidden("in training, everything dropped", inputs, 2, 3, 4, dropout=NEARLY_ALL, norm_first=True,
               encoder_layers=1, decoder_layers=1, checks="training",
               announced_by="dropout on the embedded words and on the output of every sub-layer"),
        hidden("in training, everything dropped in the encoder", nan_unless_the_encoder_drops, checks="training",
               announced_by="dropout on the embedded words and on the output of every sub-layer"),
        second_call(inputs, 2, 4, 5, encoder_layers=1, decoder_layers=1),
    ),
    omits={"precision": "ids go in, which are small whole numbers"},
    mistakes=(
        mistake("no positions for the target", RIGHT.but(SOURCE, SOURCE).but(TARGET, NO_PLACES.format("target", "tgt")),
                ENDS,
            "The target's words got no positions, so all word orders look alike. Both sides get them."),
        mistake("no positions for the source", RIGHT.but(SOURCE, NO_PLACES.format("source", "src")), ENDS,
            "The source's words got no positions: *dog bites man* and *man bites dog* are one sentence. Both sides "
            "get them."),
        mistake("no positions", RIGHT.without(PLACES), ENDS,
            "No word got a position. Without positions attention ignores the order (05.6), so both sides need them."),
        mistake("positions from 1", RIGHT.but("torch.arange(T).float()", "torch.arange(1, T + 1).float()"), ENDS,
            "Positions begin at 1 in your model. The first word is at position 0, as in 07.1."),
        mistake("sines before cosines", RIGHT.but(
                  "torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)[:, :d]",
                  "torch.cat([angle.sin(), angle.cos()], dim=-1)[:, :d]"), ENDS,
            "The positions have all sines first and all cosines after. As in 07.1, they take turns."),
        mistake("no root of d_model", RIGHT.but(TABLE, "x = table(ids)"), ENDS,
            """The embeddings were not multiplied by the root of d_model. Their numbers are small, and the positions,
            added to them, drown the words."""),
        mistake("positions multiplied too", RIGHT.but(TABLE, "x = table(ids)").but(
                  "return self.drop(x)", "return self.drop(x * self.cfg.d_model ** 0.5)"), ENDS,
            "Words *and* positions were multiplied by the root of d_model. Only the words are; then the "
            "positions are added."),
        mistake("multiplied by d_model", RIGHT.but(TABLE, "x = table(ids) * self.cfg.d_model"), ENDS,
            "The embeddings were multiplied by d_model itself. Multiply them by its root."),
        mistake("divided by the root of d_model", RIGHT.but(TABLE, "x = table(ids) / self.cfg.d_model ** 0.5"), ENDS,
            "The embeddings were divided by the root of d_model. They are multiplied by it."),
        mistake("the source alone multiplied", RIGHT.but(
                  TABLE, "x = table(ids) * (self.cfg.d_model ** 0.5 if table is self.source and not "
                         "self.cfg.tie_embeddings else 1.0)"), ENDS,
            "The target's embeddings were not multiplied by the root of d_model. Those of both sides are."),
        mistake("one encoder layer again and again", RIGHT.but(
                  ENCODER, "self.encoder = nn.ModuleList([Layer(cfg, False)] * cfg.encoder_layers)"), STACK,
            """Your encoder layers are one object: however many there are, they have one set of parameters. A list times
            a number repeats the same object. Make a new layer each time."""),
        mistake("one decoder layer again and again",
                RIGHT.but(DECODER, "self.decoder = nn.ModuleList([Layer(cfg, True)] * cfg.decoder_layers)"), STACK,
            """Your decoder layers are one object: however many there are, they have one set of parameters. A list times
            a number repeats the same object. Make a new layer each time."""),
        mistake("one layer of each kind again and again",
                RIGHT.but(ENCODER, "self.encoder = nn.ModuleList([Layer(cfg, False)] * cfg.encoder_layers)").but(
                  DECODER, "self.decoder = nn.ModuleList([Layer(cfg, True)] * cfg.decoder_layers)"), STACK,
            """Your layers are one object of each kind: however many there are, they have one set of parameters. A list
            times a number repeats the same object. Make a new layer each time."""),
        families.LAYERS_IN_A_LIST(RIGHT.but(ENCODER, ENCODER.replace("nn.ModuleList([", "list([")).but(
                  DECODER, DECODER.replace("nn.ModuleList([", "list([")),
            STACK, lists="nn.ModuleList"),
        mistake("the encoder in a plain list", RIGHT.but(ENCODER, ENCODER.replace("nn.ModuleList([", "list([")), STACK,
            "The encoder's layers are in a Python list, which hides them: their parameters are not registered. "
            "nn.ModuleList shows them."),
        families.SOFTMAX_AT_THE_END(RIGHT.but(LAST, "return torch.softmax(self.output(y), dim=-1)"),
            ENDS, instead="The loss of chapter 10 expects logits and makes the softmax itself."),
        families.LOG_SOFTMAX_AT_THE_END(RIGHT.but(LAST, "return torch.log_softmax(self.output(y), dim=-1)"), ENDS),
        mistake("no last norms",
                RIGHT.but("nn.LayerNorm(cfg.d_model) if cfg.norm_first else nn.Identity()\n            "
                          "self.after_decoder".replace(
                  "            ", "        "),
                  "nn.Identity()\n        self.after_decoder").but(
                  "self.after_decoder = nn.LayerNorm(cfg.d_model) if cfg.norm_first else nn.Identity()",
                  "self.after_decoder = nn.Identity()"), PLACEMENT,
            "In pre-norm both stacks end with one more norm, since nothing else normalizes the stream after the last "
            "layer. Yours have none."),
        mistake("one last norm", RIGHT.but(
                  "self.after_encoder = nn.LayerNorm(cfg.d_model) if cfg.norm_first else nn.Identity()",
                  "self.after_encoder = nn.Identity()"), PLACEMENT,
            "In pre-norm *both* stacks end in a norm of their own: the encoder and the decoder. One is missing, or "
            "was made and never used."),
        mistake("last norms in post-norm too",
                RIGHT.but("self.after_encoder = nn.LayerNorm(cfg.d_model) if cfg.norm_first else nn.Identity()",
                  "self.after_encoder = nn.LayerNorm(cfg.d_model)").but(
                  "self.after_decoder = nn.LayerNorm(cfg.d_model) if cfg.norm_first else nn.Identity()",
                  "self.after_decoder = nn.LayerNorm(cfg.d_model)"), PLACEMENT,
            "In post-norm every layer ends in a norm already. You added a last one: that belongs only to pre-norm."),
        mistake("one norm for both stacks", RIGHT.but(
                  "self.after_decoder = nn.LayerNorm(cfg.d_model) if cfg.norm_first else nn.Identity()",
                  "self.after_decoder = self.after_encoder"), PLACEMENT,
            "One last norm serves encoder and decoder. Each stack has its own."),
        mistake("the source's mask not given to the decoder",
                RIGHT.but("layer(y, said, memory, seen)", "layer(y, said, memory)"), THREE,
            """The decoder reads the source's pads: appending pads to the source changed your logits. Its second
            attention needs the source's mask too."""),
        mistake("pads of the source seen", RIGHT.but("x = layer(x, seen)", "x = layer(x, None)").but(
                  "layer(y, said, memory, seen)", "layer(y, said, memory)"), THREE,
            "The source's pads are seen everywhere: appending pads to the source changed your logits. Encoder and "
            "second attention need its mask."),
        mistake("pads seen in the encoder", RIGHT.but("x = layer(x, seen)", "x = layer(x, None)"), THREE,
            "In the encoder the source's pads are seen: its attention needs the source's mask."),
        mistake("no causal mask", RIGHT.without(CAUSAL), THREE,
            """The decoder sees words that come later: changing word 3 changed the logits of word 1. Its first attention
            needs the causal mask."""),
        mistake("no mask on the target",
                by_itself(RIGHT.but("layer(y, said, memory, seen)", "layer(y, None, memory, seen)")), THREE,
            """Nothing is hidden in the decoder's first attention: later words and pads of the target changed the
            logits of word 1. That attention needs the causal mask."""),
        mistake("no mask at all", by_itself(RIGHT.but("x = layer(x, seen)", "x = layer(x, None)").but(
                  "layer(y, said, memory, seen)", "layer(y, None, memory)")), THREE,
            """No attention has a mask: later words of the target changed the logits of word 1, and pads at the end of
            the source changed all of them. The decoder's first attention needs the causal mask, the other two the
            source's padding mask."""),
        mistake("causal in the encoder", RIGHT.but(
                  "x = layer(x, seen)",
                  "x = layer(x, seen & torch.ones(src.shape[1], src.shape[1], dtype=torch.bool).tril())"), THREE,
            "The encoder reads the source through a causal mask. The source is there whole: its words see each other "
            "in both directions."),
        mistake("causal by one place too far", RIGHT.but(".tril()", ".tril(1)"), THREE,
            "Every word sees the one after it: the causal mask is open by one position."),
        mistake("a word blind to itself", RIGHT.but(".tril()", ".tril(-1)"), THREE,
            """Every word sees those before it and not itself, and the first sees nothing at all: the causal mask leaves
            out its diagonal. torch.triu marks the diagonal too, unless you pass diagonal=1."""),
        mistake("a word blind to itself, and zeros for the first", RIGHT.but(".tril()", ".tril(-1)").but(
                  "shares = torch.softmax(scores, dim=-1)", "shares = torch.softmax(scores, dim=-1).nan_to_num()"),
                  THREE,
            """Every word sees those before it and not itself: the causal mask leaves out its diagonal. torch.triu
            marks the diagonal too, unless you pass diagonal=1."""),
        mistake("cross-attention reads the decoder",
                RIGHT.but("self.read(t, memory, memory_mask)", "self.read(t, t, mask)"), THREE,
            """The second attention never reads memory: a different source gives the same logits. Queries come from the
            target's words, keys and values from the encoder's output."""),
        mistake("pad is always 0",
                RIGHT.but("(src != self.cfg.pad)", "(src != 0)").but("(tgt != self.cfg.pad)", "(tgt != 0)"), THREE,
            "You wrote 0 where cfg.pad belongs: it is wrong as soon as a config has a different pad."),
        mistake("the masks the wrong way round", RIGHT.but("(src != self.cfg.pad)", "(src == self.cfg.pad)"), THREE,
            "The source's mask is True at its pads. True = may attend: it is True at real words."),
        mistake("the masks the wrong way round, zeros where none is left",
                by_itself(RIGHT.but("(src != self.cfg.pad)", "(src == self.cfg.pad)").but(
                  "shares = torch.softmax(scores, dim=-1)", "shares = torch.softmax(scores, dim=-1).nan_to_num()")),
                  THREE,
            "The source's mask is True at its pads and False at its words, so where there are no pads, nothing is "
            "read. True = may attend: it is True at real words."),
        mistake("tying ignored", RIGHT.but(TYING, "pass"), ENDS,
            """With cfg.tie_embeddings there is *one* table for source, target and output; yours has three. Let all
            three be the same parameter. A copy of the values leaves three parameters, each with its own gradient and
            optimizer state."""),
        mistake("the tied table detached at the output",
                by_itself(RIGHT.but(LAST, "return y @ self.output.weight.detach().T if self.cfg.tie_embeddings "
                                          "else self.output(y)")), ENDS,
            """With cfg.tie_embeddings the values are correct, but the gradient of the table is not: the output uses the
            table's values without their gradient. All three uses of the table contribute to its gradient."""),
        mistake("the source not tied", RIGHT.without(TIED_SOURCE), ENDS,
            """With cfg.tie_embeddings there is *one* table for source, target and output; yours has two. The third has
            to be the same parameter as well."""),
        mistake("always tied", RIGHT.but(TYING, TIED_OUTPUT), ENDS,
            "Target and output share a table though cfg.tie_embeddings is off: then each has its own."),
        mistake("an output bias", RIGHT.but("cfg.target_vocabulary, bias=False)", "cfg.target_vocabulary)"), ENDS,
            "The output adds a bias to the logits. It has none in this model: switch it off where the map is made."),
        mistake("the target embedded as the source",
                RIGHT.but(TARGET, "self.embed(self.source, tgt % self.cfg.source_vocabulary)"), ENDS,
            """Without cfg.tie_embeddings, source, target and output have three separate tables. In your model two of
            them share one: the target's ids are looked up in the source's table, or the output uses the parameters of
            an embedding."""),
        mistake("each decoder layer reads its own encoder layer",
                by_itself(RIGHT.but("x = layer(x, seen)", "x = layer(x, seen)\n            states.append(x)").but(
                  "x = self.embed(self.source, src)", "x, states = self.embed(self.source, src), []").but(
                  AFTER_ENCODER, "return [*states[:-1], self.after_encoder(x)], seen").but(
                  "for layer in self.decoder:", "for layer, memory in zip(self.decoder, memory):")), STACK,
            "Your decoder layers read different encoder layers. All of them read the output of the last one."),
        mistake("no encoder", RIGHT.but("x = layer(x, seen)", "pass"), WHOLE,
            "The decoder reads the source's embeddings: the encoder's layers were made and never used."),
        mistake("as many decoder layers as encoder layers",
                RIGHT.but("range(cfg.decoder_layers)", "range(cfg.encoder_layers)"), STACK,
            "The decoder was given cfg.encoder_layers layers. It has cfg.decoder_layers."),
        mistake("one layer each",
                RIGHT.but("range(cfg.encoder_layers)", "range(1)").but("range(cfg.decoder_layers)", "range(1)"), STACK,
            "There is one layer of each kind. The config says how many: cfg.encoder_layers and cfg.decoder_layers."),
        mistake("post-norm whatever the config says", RIGHT.but(
                  "self.before, d = cfg.norm_first, cfg.d_model", "self.before, d = False, cfg.d_model"), PLACEMENT,
            "The layers are post-norm whatever cfg.norm_first is. Pass it on to them."),
        mistake("the last word alone", RIGHT.but(LAST, "return self.output(y[:, -1])"), WHOLE,
            "Only the logits of the last word came back. Training needs them for every word: (B, Tt, V)."),
        mistake("the target shifted inside",
                RIGHT.but("self.decode(memory, seen, tgt_in)", "self.decode(memory, seen, tgt_in[:, :-1])"), WHOLE,
            "You cut the last word off tgt_in. It comes shifted already: one row of logits for each of its words."),
        mistake("vocabulary before words", RIGHT.but(LAST, "return self.output(y).transpose(1, 2)"), WHOLE,
            "The logits are (B, V, Tt). They should be (B, Tt, V): a row of scores for each word."),
        mistake("hidden vectors came back", RIGHT.but(LAST, "return y"), ENDS,
            "The decoder's vectors came back, D numbers for each word. The output turns them into V scores."),
        families.TWO_RESULTS(RIGHT.but(LAST, "return self.output(y), memory"), WHOLE, result="logits"),
        families.EMBEDDINGS_NOT_DROPPED(RIGHT.but(DROPPED, "return x"), ENDS, words="words"),
        mistake("no dropout on the target's embeddings",
                by_itself(RIGHT.but(DROPPED, "return x if table is self.target else self.drop(x)")), ENDS,
            "In training the embedded words of the target are not dropped. Those of both sides are, after the "
            "positions are added."),
        mistake("the encoder not dropped",
                by_itself(RIGHT.but(DROPPED, "return x if table is self.source else self.drop(x)")), ENDS,
            """In training something is not dropped on the encoder's side: the embedded words of the source, or the
            output of a sub-layer. The check gives some parameters values so large that what is not dropped there
            overflows, and the logits become NaN."""),
        mistake("no dropout in the decoder's layers", layers_dropping("0.0 if cross else cfg.dropout"), WHOLE,
            "In training the outputs of the decoder's sub-layers are not dropped. Those of both stacks are, before "
            "they are added."),
        mistake("no dropout in the layers", layers_dropping("0.0"), WHOLE,
            "In training the embedded words are dropped, and no output of a sub-layer is, neither in the encoder nor "
            "in the decoder."),
        mistake("no dropout", by_itself(RIGHT.replace("nn.Dropout(cfg.dropout)", "nn.Identity()")), WHOLE,
            "In training nothing is dropped where cfg.dropout is almost 1. Dropout acts on the embedded words and on "
            "the output of every sub-layer, in both stacks."),
        mistake("dropout before the positions",
                by_itself(RIGHT.but(TABLE, TABLE.replace("table(ids)", "self.drop(table(ids))")).but(
                  DROPPED, "return x")), ENDS,
            "In training the positions are never dropped: dropout came before they were added. It acts on the sum of "
            "words and positions."),
        FIXED_RATE(by_itself(RIGHT.replace("nn.Dropout(cfg.dropout)", "nn.Dropout(0.1)")), WHOLE, rate="cfg.dropout"),
        FIXED_RATE(by_itself(RIGHT.but(f"{DROP}\n        if cfg", "self.drop = nn.Dropout(0.1)\n        if cfg")), ENDS,
                   name="a fixed dropout rate on the embeddings", rate="cfg.dropout"),
        mistake("sentences exchanged", RIGHT.but(
                  "memory, seen = self.encode(src)",
                  "src, tgt_in = tgt_in, src\n        memory, seen = self.encode(src)"), WHOLE,
            "Source and target are exchanged: src goes into the encoder, tgt_in into the decoder."),
        families.SCORES_NOT_DIVIDED(RIGHT.but(" / q.shape[-1] ** 0.5", ""), WHOLE, part="model"),
        ROOT_OF_D(by_itself(RIGHT.but("q.shape[-1] ** 0.5", "asking.shape[-1] ** 0.5")), WHOLE, part="model"),
        mistake("no ReLU", RIGHT.but("torch.relu(self.widen(t))", "self.widen(t)"), WHOLE,
            "The feed-forward networks of your model have no ReLU (09.2)."),
        mistake("no residual", RIGHT.but("x + self.drop(said(norm(x)))", "self.drop(said(norm(x)))").but(
                  "norm(x + self.drop(said(x)))", "norm(self.drop(said(x)))"), WHOLE,
            "The layers of your model have no residuals (09.3)."),
        *usual_mistakes(RIGHT, detached=WHOLE, float32=WHOLE, squeezed=WHOLE),
    ),
    correct=(
        correct("written out", RIGHT),
        correct("logits by the table itself",
                RIGHT.but("self.output = nn.Linear(cfg.d_model, cfg.target_vocabulary, bias=False)",
            "self.output = None if cfg.tie_embeddings else nn.Linear(cfg.d_model, cfg.target_vocabulary, "
            "bias=False)").but(
            TYING, "if cfg.tie_embeddings:\n            self.source = self.target").but(
            LAST, "return y @ self.target.weight.T if self.output is None else self.output(y)")),
        correct("positions kept in a buffer, last norms always made",
                RIGHT.but("self.drop = nn.Dropout(cfg.dropout)\n        if cfg",
                  '''self.drop = nn.Dropout(cfg.dropout)
        self.register_buffer("places", positions(cfg.max_length, cfg.d_model), persistent=False)
        if cfg''').but(PLACES, "x = x + self.places[: ids.shape[1]]").but(
            "self.after_encoder = nn.LayerNorm(cfg.d_model) if cfg.norm_first else nn.Identity()",
            "self.after_encoder = nn.LayerNorm(cfg.d_model)").but(
            "self.after_decoder = nn.LayerNorm(cfg.d_model) if cfg.norm_first else nn.Identity()",
            "self.after_decoder = nn.LayerNorm(cfg.d_model)").but(
            AFTER_ENCODER, "return (self.after_encoder(x) if self.cfg.norm_first else x), seen").but(
            AFTER_DECODER, "return self.after_decoder(y) if self.cfg.norm_first else y")),
        correct("a causal mask alone on the target",
                RIGHT.but(CAUSAL, "said = torch.ones(tgt.shape[1], tgt.shape[1], dtype=torch.bool).tril()")),
        correct("padding rows of zeros, made in another order", RIGHT.but(
            "nn.Embedding(cfg.source_vocabulary, cfg.d_model)",
            "nn.Embedding(cfg.source_vocabulary, cfg.d_model, padding_idx=cfg.pad)").but(
            DECODER, "pass").but(ENCODER, f"{DECODER}\n        {ENCODER}")),
        correct("the library's attention inside",
                answer(LAYERS.replace("self.own = Heads(d, cfg.heads)", "self.own = Own(d, cfg.heads)").replace(
            "self.read = Heads(d, cfg.heads) if cross else None",
            "self.read = Own(d, cfg.heads) if cross else None")).join([answer('''
    class Own(nn.Module):
        def __init__(self, d, h):
            super().__init__()
            self.h = h
            self.inner = nn.MultiheadAttention(d, h, batch_first=True)

        def forward(self, x, other, mask):
            B, T, S = len(x), x.shape[1], other.shape[1]
            closed = None if mask is None else ~mask.expand(B, self.h, T, S).reshape(-1, T, S)
            return self.inner(x, other, other, attn_mask=closed, need_weights=False)[0]


    '''), RIGHT[RIGHT.index("class Transformer(") :]])),
        correct("parts with modules of their own", with_layers("""
            class Side(nn.Module):
                def __init__(self, cfg, table, layers, cross):
                    super().__init__()
                    self.table, self.root = table, math.sqrt(cfg.d_model)
                    self.layers = nn.ModuleList(Layer(cfg, cross) for _ in range(layers))
                    self.norm = nn.LayerNorm(cfg.d_model) if cfg.norm_first else None
                    self.drop = nn.Dropout(cfg.dropout)

                def forward(self, ids, *rest):
                    x = F.embedding(ids, self.table) * self.root
                    x = self.drop(x + positions(ids.shape[1], x.shape[-1]).type_as(x))
                    for layer in self.layers:
                        x = layer(x, *rest)
                    return x if self.norm is None else self.norm(x)

            class Transformer(nn.Module):
                def __init__(self, cfg):
                    super().__init__()
                    self.pad, D = cfg.pad, cfg.d_model
                    table = lambda words: nn.Parameter(torch.randn(words, D) * D ** -0.5)
                    target = table(cfg.target_vocabulary)
                    source = target if cfg.tie_embeddings else table(cfg.source_vocabulary)
                    self.reader = Side(cfg, source, cfg.encoder_layers, False)
                    self.writer = Side(cfg, target, cfg.decoder_layers, True)
                    self.scores = target if cfg.tie_embeddings else table(cfg.target_vocabulary)

                def forward(self, src, tgt_in):
                    seen = (src != self.pad)[:, None, None]
                    T = tgt_in.size(1)
                    said = (tgt_in != self.pad)[:, None, None] & (torch.arange(T) <= torch.arange(T)[:, None])
                    return torch.einsum("btd,vd->btv", self.writer(tgt_in, said, self.reader(src, seen), seen),
                        self.scores)
        """)),
    ),
    hints=(
        "which parts have you built already, and what goes from one to the next? Draw the two stacks, and write a "
        "mask on each of the three attentions.",
        "src (B, Ts) becomes memory (B, Ts, D); tgt_in (B, Tt) becomes (B, Tt, D) and then logits (B, Tt, V). Masks: "
        "(B, 1, 1, Ts) and (Tt, Tt), or (B, 1, Tt, Tt) where the target's pads are hidden too.",
        "embed: table times the root of D, plus positions, dropout. Encoder layers with the source's mask. Decoder "
        "layers with memory and both masks. "
        "In pre-norm a last norm each. One matrix to the vocabulary.",
    ),
)  # fmt: skip
