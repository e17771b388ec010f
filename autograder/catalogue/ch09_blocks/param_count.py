"""09.6: how many numbers a Transformer learns."""

import torch

from autograder.catalogue import families
from autograder.catalogue.ch09_blocks.shared import sections
from autograder.catalogue.exercise import Case, Evidence, Exercise
from autograder.catalogue.families import Family
from autograder.catalogue.known_answers import answer, correct, mistake
from autograder.catalogue.probes import hidden, visible
from transformer_ref.config import ModelConfig

COUNT, DECODER, ENDS = sections("count decoder ends")
PAPER = ModelConfig(37_000, 37_000, tie_embeddings=True)  # the base model of Vaswani et al. 2017, one table


def param_count(cfg: ModelConfig) -> int:
    """Layers, tables and, in pre-norm, two last norms."""
    D, F = cfg.d_model, cfg.d_ff
    attention, feed_forward, norm = 4 * (D * D + D), 2 * D * F + F + D, 2 * D
    encoder = cfg.encoder_layers * (attention + feed_forward + 2 * norm)
    decoder = cfg.decoder_layers * (2 * attention + feed_forward + 3 * norm)
    tables = cfg.target_vocabulary if cfg.tie_embeddings else cfg.source_vocabulary + 2 * cfg.target_vocabulary
    return encoder + decoder + (2 * norm if cfg.norm_first else 0) + tables * D


def drawn(g: torch.Generator, tied: bool, norm_first: bool, heads: int | None = None) -> Case:
    """Sizes unlike one another."""
    numbers = [int(torch.randint(0, 9, (), generator=g)) for _ in range(7)]
    heads = heads or 3 + numbers[0]
    source = 101 + numbers[1]
    return Case((ModelConfig(
        source, source if tied else 211 + numbers[2], d_model=heads * (13 + numbers[3]), heads=heads,
        encoder_layers=2 + numbers[4], decoder_layers=12 + numbers[5], d_ff=301 + numbers[6], norm_first=norm_first,
        tie_embeddings=tied, max_length=77,
    ),))  # fmt: skip


def counted(evidence: Evidence) -> str:
    return f"You counted {evidence.got:,} where there are {evidence.expected:,}."


def tied_the_wrong_way_round(evidence: Evidence) -> bool:
    """Whether three tables were counted for one, or one, of either vocabulary, for three."""
    cfg = evidence.arguments[0]
    source, target = cfg.source_vocabulary, cfg.target_vocabulary
    too_many = (evidence.got - evidence.expected) / cfg.d_model
    return too_many in ((source + target, 2 * target) if cfg.tie_embeddings else (-source - target, -2 * target))


def norms_left_out(evidence: Evidence) -> bool:
    """Whether no norm was counted, or only one in each layer."""
    cfg, missing = evidence.arguments[0], (evidence.expected - evidence.got) / (2 * evidence.arguments[0].d_model)
    encoder, decoder = cfg.encoder_layers, cfg.decoder_layers
    return missing in (2 * encoder + 3 * decoder + 2 * cfg.norm_first, encoder + 2 * decoder)


RIGHT = answer("""
    def param_count(cfg):
        D, F = cfg.d_model, cfg.d_ff
        attention = 4 * D * D + 4 * D
        feed_forward = D * F + F + F * D + D
        norm = 2 * D
        encoder = attention + feed_forward + 2 * norm
        decoder = 2 * attention + feed_forward + 3 * norm
        tables = cfg.target_vocabulary * D
        if not cfg.tie_embeddings:
            tables = cfg.source_vocabulary * D + 2 * cfg.target_vocabulary * D
        last = 2 * norm if cfg.norm_first else 0
        return cfg.encoder_layers * encoder + cfg.decoder_layers * decoder + tables + last
""")
ATTENTION, FF, NORM = "attention = 4 * D * D + 4 * D", "feed_forward = D * F + F + F * D + D", "norm = 2 * D"
ENCODER, DECODING = "encoder = attention + feed_forward + 2 * norm", "decoder = 2 * attention + feed_forward + 3 * norm"
UNTIED, LAST = (
    "tables = cfg.source_vocabulary * D + 2 * cfg.target_vocabulary * D", "last = 2 * norm if cfg.norm_first else 0"
)
SUM = "return cfg.encoder_layers * encoder + cfg.decoder_layers * decoder + tables + last"

# fmt: off
TIMES_THE_HEADS = Family("projections times the heads", """The projections were multiplied by the number of heads. The
    heads *share* them (06.4): together, all heads fill D by D in each.""")
BIASES_OF_ONE_SIZE = Family("feed-forward biases of one size", """Both biases of a feed-forward network were counted as
    {size} numbers. The first map ends in d_ff numbers, the second in D.""")
# fmt: on

EXERCISE = Exercise(
    id="param-count", number="09.6", difficulty=1, minutes=20, visible_points=1, hidden_points=2,
    reference=param_count, section=COUNT, quotes=counted,
    probes=(
        visible("the paper's base model, one table of 37,000", Case((PAPER,))),
        visible("small, pre-norm, three tables", Case((ModelConfig(
            11, 16, d_model=6, heads=3, encoder_layers=2, decoder_layers=3, d_ff=10, norm_first=True),))),
        hidden("post-norm, one table", drawn, True, False, announced_by="tie_embeddings: one table"),
        hidden("pre-norm, one table", drawn, True, True, announced_by="norm_first"),
        hidden("post-norm, three tables", drawn, False, False, announced_by="three tables"),
        hidden("one head", drawn, False, True, 1, announced_by="heads"),
        hidden("the smallest",
               Case((ModelConfig(3, 3, d_model=1, heads=1, encoder_layers=1, decoder_layers=1, d_ff=1),)),
               announced_by="three tables"),
    ),
    omits={"a batch of one": "there is no batch", "a length of one": "there is no sequence",
           "a second call": "the numbers of a config leave nothing to keep",
           "precision": "a config's sizes are small whole numbers", "falsy values": "a config is one value",
           "repeated items": "there is no list"},
    mistakes=(
        mistake("decoder layers as encoder layers", RIGHT.but(DECODING, "decoder = encoder"), DECODER,
            "Decoder layers were counted as encoder layers. A decoder layer has two attentions, and three norms."),
        mistake("two norms in a decoder layer", RIGHT.but("feed_forward + 3 * norm", "feed_forward + 2 * norm"),
                DECODER,
            "A decoder layer was given two norms. It has three sub-layers, each with its own."),
        mistake("the second attention forgotten", RIGHT.but("2 * attention +", "attention +"), DECODER,
            "A decoder layer was given one attention. It has two: one to itself and one to the source."),
        mistake("cross-attention without queries", RIGHT.but("2 * attention +", "2 * attention - D * D - D +"), DECODER,
            "The second attention of a decoder layer was given three projections. It has all four."),
        mistake("norms with a scale alone", RIGHT.but(NORM, "norm = D"), COUNT,
            "A norm was counted as D numbers. It has D scales and D shifts."),
        mistake("norms of two numbers", RIGHT.but(NORM, "norm = 2"), COUNT,
            "A norm was counted as two numbers. Every feature has a scale and a shift of its own."),
        mistake("no biases at all", RIGHT.but(ATTENTION, "attention = 4 * D * D").but(FF, "feed_forward = 2 * D * F"),
                COUNT,
            "The biases were left out, of attention and of the feed-forward networks."),
        mistake("no attention biases", RIGHT.but(ATTENTION, "attention = 4 * D * D"), COUNT,
            "The biases of attention were left out: D for each of the four projections."),
        mistake("no feed-forward biases", RIGHT.but(FF, "feed_forward = 2 * D * F"), COUNT,
            "The biases of the feed-forward networks were left out: d_ff after the first map, D after the second."),
        mistake("neither biases nor norms",
                RIGHT.but(ATTENTION, "attention = 4 * D * D").but(FF, "feed_forward = 2 * D * F").but(
                  NORM, "norm = 0"), COUNT,
            "You counted only the matrices. Biases and norms are learned as well."),
        BIASES_OF_ONE_SIZE(RIGHT.but(FF, "feed_forward = 2 * (D * F + F)"), COUNT, size="d_ff"),
        BIASES_OF_ONE_SIZE(RIGHT.but(FF, "feed_forward = 2 * (D * F + D)"), COUNT, size="D",
                           name="feed-forward biases of D numbers"),
        mistake("the second bias of a feed-forward network forgotten",
                RIGHT.but(FF, "feed_forward = D * F + F + F * D"), COUNT,
            "One bias of a feed-forward network was left out: D numbers, after the second map."),
        mistake("no bias at the end of attention", RIGHT.but(ATTENTION, "attention = 4 * D * D + 3 * D"), COUNT,
            "The fourth projection of attention, W_O, has a bias too."),
        mistake("one map in the feed-forward network", RIGHT.but(FF, "feed_forward = D * F + F"), COUNT,
            "A feed-forward network was counted as one map. There is one back to D as well."),
        mistake("three projections", RIGHT.but(ATTENTION, "attention = 3 * D * D + 3 * D"), COUNT,
            "An attention was given three projections. There is a fourth, W_O."),
        TIMES_THE_HEADS(RIGHT.but(ATTENTION, "attention = cfg.heads * (4 * D * D + 4 * D)"), COUNT),
        TIMES_THE_HEADS(RIGHT.but(ATTENTION, "attention = cfg.heads * 3 * (D * D + D) + D * D + D"), COUNT,
                        name="three projections times the heads"),
        mistake("one head's projections",
                RIGHT.but(ATTENTION, "attention = 4 * D * (D // cfg.heads) + 4 * (D // cfg.heads)"), COUNT,
            "Only one head's part of the projections was counted. All heads together fill D by D."),
        mistake("three tables though tied", RIGHT.but("if not cfg.tie_embeddings:", "if True:"), ENDS,
            "The table was counted three times though tie_embeddings is on: source, target and output are "
            "one and the same."),
        mistake("two tables though tied",
                RIGHT.but("tables = cfg.target_vocabulary * D\n", "tables = 2 * cfg.target_vocabulary * D\n"), ENDS,
            "With tie_embeddings there is one table, for source, target and output together. You counted two."),
        mistake("always tied", RIGHT.but("if not cfg.tie_embeddings:", "if False:"), ENDS,
            "tie_embeddings is off in this config: then source, target and output have a table each."),
        mistake("the output's matrix forgotten", RIGHT.but("+ 2 * cfg.target", "+ cfg.target"), ENDS,
            "Without tie_embeddings there are three tables: you left one of target and output out."),
        mistake("the output from the source's words", RIGHT.but(
                  "cfg.source_vocabulary * D + 2 * cfg.target_vocabulary",
                  "2 * cfg.source_vocabulary * D + cfg.target_vocabulary"), ENDS,
            "The output scores the *target* vocabulary; you gave it the source's."),
        mistake("the source's table as large as the target's",
                RIGHT.but(UNTIED, "tables = 3 * cfg.target_vocabulary * D"), ENDS,
            "All three tables were given the target's vocabulary. The source's table has source_vocabulary rows."),
        mistake("three tables as large as the source's",
                RIGHT.but(UNTIED, "tables = 3 * cfg.source_vocabulary * D"), ENDS,
            "All three tables were given the source's vocabulary. Those of target and output have target_vocabulary "
            "rows."),
        mistake("always one table, the source's", RIGHT.but(UNTIED, "tables = cfg.source_vocabulary * D"), ENDS,
            "You counted one table, of source_vocabulary rows, though tie_embeddings is off: then there are three."),
        mistake("tie_embeddings the wrong way round", RIGHT.but("if not cfg.tie", "if cfg.tie"), ENDS,
            "tie_embeddings is taken the wrong way round: one table where it is False and three where it is True. "
            "Tied means that source, target and output share one table.", shows=tied_the_wrong_way_round),
        mistake("an output bias where there are three tables", RIGHT.but(
                  UNTIED, f"{UNTIED} + cfg.target_vocabulary"), ENDS,
            "Where there are three tables, a bias was counted at the output: target_vocabulary numbers too many. "
            "The output has none."),
        mistake("no table where it is tied", RIGHT.but("tables = cfg.target_vocabulary * D\n", "tables = 0\n"), ENDS,
            "With tie_embeddings no table was counted. One is left, and it is learned."),
        mistake("no tables", RIGHT.but(" + tables + last", " + last"), ENDS,
            "The tables of embeddings were left out. They are learned."),
        mistake("positions counted", RIGHT.but(" + tables", " + tables + cfg.max_length * D"), ENDS,
            "The positions were counted. Sinusoids are computed, not learned."),
        mistake("positions counted on both sides", RIGHT.but(" + tables", " + tables + 2 * cfg.max_length * D"), ENDS,
            "The positions were counted, twice. Sinusoids are computed, not learned."),
        mistake("an output bias", RIGHT.but(" + tables", " + tables + cfg.target_vocabulary"), ENDS,
            "A bias was counted at the output. There is none there."),
        mistake("no last norms", RIGHT.but(LAST, "last = 0"), COUNT,
            "In pre-norm each of the two stacks ends in a norm of its own: 4 D numbers are missing."),
        mistake("one last norm", RIGHT.but(LAST, "last = norm if cfg.norm_first else 0"), COUNT,
            "One last norm was counted. In pre-norm both stacks end in one."),
        mistake("last norms always", RIGHT.but(LAST, "last = 2 * norm"), COUNT,
            "Last norms were counted in post-norm, whose layers end in a norm already."),
        mistake("a last norm for each layer",
                RIGHT.but(LAST, "last = (cfg.encoder_layers + cfg.decoder_layers) * norm if cfg.norm_first else 0"),
                COUNT,
            "In pre-norm one more norm was counted for every layer. There is one more for each of the two stacks, at "
            "its end."),
        mistake("one layer each", RIGHT.but(SUM, "return encoder + decoder + tables + last"), COUNT,
            "One layer of each kind was counted; there are encoder_layers and decoder_layers of them."),
        mistake("as many decoder layers as encoder layers",
                RIGHT.but("cfg.decoder_layers * decoder", "cfg.encoder_layers * decoder"), COUNT,
            "The decoder was given encoder_layers layers. It has decoder_layers."),
        mistake("layers of the other stack", RIGHT.but("cfg.encoder_layers * encoder + cfg.decoder_layers * decoder",
                                                    "cfg.decoder_layers * encoder + cfg.encoder_layers * decoder"),
                                                    COUNT,
            "encoder_layers and decoder_layers are exchanged."),
        mistake("the encoder alone",
                RIGHT.but("cfg.encoder_layers * encoder + cfg.decoder_layers * decoder",
                          "cfg.encoder_layers * encoder"), COUNT,
            "The decoder was left out."),
        mistake("d_ff taken as four times D", RIGHT.but("cfg.d_model, cfg.d_ff", "cfg.d_model, 4 * cfg.d_model"), COUNT,
            "Your feed-forward networks are 4 D wide inside, whatever d_ff says. In the paper's model it is the same."),
        mistake("no norms", RIGHT.but(NORM, "norm = 0"), COUNT,
            "Norms were left out. Each sub-layer has its own, two in an encoder layer and three in a decoder layer, "
            "and each norm has D scales and D shifts.", shows=norms_left_out),
        mistake("a float", RIGHT.ending_in(" / 1"), COUNT,
            "The number is right, but it came as a float. A count is a whole number."),
        families.A_TENSOR_FOR_A_COUNT(RIGHT.ending_in(" + torch.tensor(0)"), COUNT),
        families.A_TEXT(RIGHT.but(SUM, f'return f"{{{SUM.removeprefix("return ")}:,}}"'), COUNT),
    ),
    correct=(
        correct("part by part", RIGHT),
        correct("layers of the library on no device", """
            def param_count(cfg):
                count = lambda module: sum(p.numel() for p in module.parameters())
                with torch.device("meta"):
                    sizes = (cfg.d_model, cfg.heads, cfg.d_ff)
                    layers = cfg.encoder_layers * count(nn.TransformerEncoderLayer(*sizes))
                    layers += cfg.decoder_layers * count(nn.TransformerDecoderLayer(*sizes))
                    tables = [nn.Embedding(cfg.target_vocabulary, cfg.d_model)]
                    if not cfg.tie_embeddings:
                        tables += [nn.Embedding(cfg.source_vocabulary, cfg.d_model),
                            nn.Linear(cfg.d_model, cfg.target_vocabulary, bias=False)]
                    norms = [nn.LayerNorm(cfg.d_model) for _ in range(2 * cfg.norm_first)]
                return layers + sum(map(count, tables + norms))
        """),
        correct("linear by linear", """
            def param_count(cfg):
                linear = lambda i, o: i * o + o
                d, total = cfg.d_model, 0
                for attentions, layers in ((1, cfg.encoder_layers), (2, cfg.decoder_layers)):
                    for _ in range(layers):
                        total += attentions * 4 * linear(d, d) + linear(d, cfg.d_ff) + linear(cfg.d_ff,
                            d) + (attentions + 1) * 2 * d
                vocabularies = [cfg.source_vocabulary, cfg.target_vocabulary, cfg.target_vocabulary]
                total += d * (vocabularies[0] if cfg.tie_embeddings else sum(vocabularies))
                return total + int(cfg.norm_first) * 4 * d
        """),
        correct("head by head", """
            def param_count(cfg):
                D, d_head = cfg.d_model, cfg.d_head
                attention = cfg.heads * 3 * (D * d_head + d_head) + D * D + D
                thinking = 2 * D * cfg.d_ff + cfg.d_ff + D
                layers = cfg.encoder_layers * (attention + thinking + 4 * D) + cfg.decoder_layers * (2 * attention
                    + thinking + 6 * D)
                ends = {True: cfg.source_vocabulary, False: cfg.source_vocabulary
                    + cfg.target_vocabulary * 2}[cfg.tie_embeddings]
                return layers + ends * D + (4 * D if cfg.norm_first else 0)
        """),
        correct("the fields as a dictionary", """
            from dataclasses import asdict

            def param_count(cfg):
                c = asdict(cfg)
                D, F, N, M = c["d_model"], c["d_ff"], c["encoder_layers"], c["decoder_layers"]
                total = (N + 2 * M) * 4 * D * (D + 1) + (N + M) * (2 * D * F + F + D) + (2 * N + 3 * M) * 2 * D
                total += D * (c["target_vocabulary"] if c["tie_embeddings"] else c["source_vocabulary"]
                    + 2 * c["target_vocabulary"])
                return total + (c["norm_first"] and 4 * D)
        """),
    ),
    hints=(
        "write down every part that has a matrix, a bias, a scale or a shift, once for the encoder's layer and once "
        "for the decoder's.",
        "attention 4 (D D + D); feed-forward D d_ff + d_ff + d_ff D + D; norm 2 D. Encoder layer: 1, 1 and 2 of them; "
        "decoder layer: 2, 1 and 3.",
        "encoder_layers times the one, decoder_layers times the other; plus one table, or three; in pre-norm plus two "
        "last norms.",
    ),
)  # fmt: skip
