"""14.2: the encoder of chapter 09, reading an image."""

import torch

from autograder.catalogue import families
from autograder.catalogue.ch09_blocks.shared import HEADS, drawn
from autograder.catalogue.ch14_vision.shared import first_logit, sections
from autograder.catalogue.exercise import Block, Case, Evidence, Exercise
from autograder.catalogue.families import Family, usual_mistakes
from autograder.catalogue.known_answers import answer, correct, mistake
from autograder.catalogue.probes import FAR, hidden, normal, usual_probes, visible
from transformer_ref.beyond import vision

PATCHES, STRIPES, VIT, TOKEN = sections("patches stripes vit class-token")


class ViT(vision.ViT):
    """Patches as words, a class token in front, the encoder's layers, a head on the class token."""


def parts(
    image: int, patch: int, channels: int, d_model: int, h: int, layers: int, d_ff: int, classes: int,
    dropout: float = 0.0
) -> tuple[Block, ...]:
    """The parts of a ViT; norms in the order in which they are used."""
    blocks = [
        Block("patch projection", "projection", (channels * patch * patch, d_model)),
        Block("class token", "vector", (d_model,)),
        Block("positions", "rows", (1 + (image // patch) ** 2, d_model)),
    ]
    for layer in range(layers):
        name = f"layer {layer}"
        blocks += [Block(f"{name}, attention", "attention", (d_model, h)),
                   Block(f"{name}, feed-forward", "feed-forward", (d_model, d_ff))]
        blocks += [Block(f"{name}, norm {n}", "norm", (d_model,)) for n in (1, 2)]
    return (*blocks, Block("last norm", "norm", (d_model,)), Block("head", "projection", (d_model, classes)))


def inputs(
    g: torch.Generator, B: int, image: int, patch: int, channels: int, sizes: tuple = (9, 3, 2, 14, 4),
    dropout: float = 0.0, dtype: torch.dtype = torch.float32,
) -> Case:  # fmt: skip
    """sizes: d_model, h, layers, d_ff, classes."""
    made = (image, patch, channels, *sizes, *([dropout] if dropout else []))
    img = normal(g, B, channels, image, image, dtype=dtype)
    return Case((img,), construct=made, weights=drawn(g, parts(*made), dtype))


def far_away(g: torch.Generator) -> Case:
    """All pixels lie around 100,000,000, and each feature of a word is a sum of differences between them."""
    case = inputs(g, 2, 6, 2, 3, dtype=torch.float64)
    weights = dict(case.weights or {})
    weights["patch projection.weight"] -= weights["patch projection.weight"].mean(0)
    return Case((case.arguments[0] + FAR,), construct=case.construct, weights=weights)


def patches_exchanged(g: torch.Generator) -> Case:
    """The second image has the first one's patches in another order: only positions tell them apart."""
    case = inputs(g, 2, 6, 2, 3)
    img = case.arguments[0]
    img[1] = img[0].roll(2, dims=-1)
    return case


def hardly_spread(g: torch.Generator) -> Case:
    """Words whose numbers hardly differ as far as the last norm, so that every eps counts."""
    case = inputs(g, 2, 4, 2, 3)
    small = (".output", ".output bias", ".second", ".second bias")
    for role, weight in (case.weights or {}).items():
        if role.startswith(("patch projection", "class token", "positions")) or role.endswith(small):
            weight.mul_(0.002)
    return case


def something_is_left(evidence: Evidence) -> bool:
    """Whether all images should have come out alike, since everything was dropped, and did not."""
    expected, got = (bool(torch.allclose(each, each[:1].expand_as(each), atol=1e-6)) for each in (evidence.expected,
        evidence.got))
    return expected and not got and len(evidence.expected) > 1


RIGHT = answer(f"""{HEADS}

class Layer(nn.Module):
    def __init__(self, d, h, d_ff, dropout):
        super().__init__()
        self.own = Heads(d, h)
        self.widen, self.narrow = nn.Linear(d, d_ff), nn.Linear(d_ff, d)
        self.norm1, self.norm2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.drop = nn.Dropout(dropout)

    def forward(self, x):
        mask = None
        seen = self.norm1(x)
        x = x + self.drop(self.own(seen, seen, mask))
        return x + self.drop(self.narrow(torch.relu(self.widen(self.norm2(x)))))


class ViT(nn.Module):
    def __init__(self, image, patch, channels, d_model, h, layers, d_ff, classes, dropout=0.0):
        super().__init__()
        self.patch = patch
        N = (image // patch) ** 2
        self.project = nn.Linear(channels * patch * patch, d_model)
        self.class_token = nn.Parameter(torch.randn(1, 1, d_model))
        self.positions = nn.Parameter(torch.randn(1, 1 + N, d_model))
        self.drop = nn.Dropout(dropout)
        self.layers = nn.ModuleList([Layer(d_model, h, d_ff, dropout) for _ in range(layers)])
        self.norm = nn.LayerNorm(d_model)
        self.head = nn.Linear(d_model, classes)

    def cut(self, img):
        B, C, H, W = img.shape
        p = self.patch
        patches = img.reshape(B, C, H // p, p, W // p, p).permute(0, 2, 4, 1, 3, 5)
        return patches.reshape(B, -1, C * p * p)

    def forward(self, img):
        words = self.project(self.cut(img))
        first = self.class_token.expand(len(words), -1, -1)
        x = torch.cat([first, words], dim=1)
        x = x + self.positions
        x = self.drop(x)
        for layer in self.layers:
            x = layer(x)
        x = self.norm(x)
        return self.head(x[:, 0])
""")
CLASS = RIGHT.index("class ViT")
TOKEN_LINE, FIRST = (
    "self.class_token = nn.Parameter(torch.randn(1, 1, d_model))", "first = self.class_token.expand(len(words), -1, -1)"
)
PLACES, CAT, ADD = (
    "self.positions = nn.Parameter(torch.randn(1, 1 + N, d_model))", "x = torch.cat([first, words], dim=1)",
    "x = x + self.positions"
)
PROJECT, WORDS = "self.project = nn.Linear(channels * patch * patch, d_model)", "words = self.project(self.cut(img))"
LAYERS, LAYER, DROP = (
    "self.layers = nn.ModuleList([Layer(d_model, h, d_ff, dropout) for _ in range(layers)])", "x = layer(x)",
    "x = self.drop(x)"
)
NORM, LAST, HEAD = "x = self.norm(x)", "return self.head(x[:, 0])", "self.head = nn.Linear(d_model, classes)"
MOVE = "patches = img.reshape(B, C, H // p, p, W // p, p).permute(0, 2, 4, 1, 3, 5)"
READ = "x = x + self.drop(self.own(seen, seen, mask))"
THINK = "return x + self.drop(self.narrow(torch.relu(self.widen(self.norm2(x)))))"
BY_LIBRARY = """
    class ViT(nn.Module):
        def __init__(self, image, patch, channels, d_model, h, layers, d_ff, classes, dropout=0.0):
            super().__init__()
            self.patch_embed = nn.Conv2d(channels, d_model, patch, stride=patch)
            self.cls_token = nn.Parameter(torch.zeros(1, 1, d_model))
            self.pos_embed = nn.Parameter(torch.zeros(1, (image // patch) ** 2 + 1, d_model))
            layer = nn.TransformerEncoderLayer(d_model, h, d_ff, dropout, batch_first=True, norm_first=True)
            self.encoder = nn.TransformerEncoder(layer, layers, norm=nn.LayerNorm(d_model), enable_nested_tensor=False)
            self.mlp_head = nn.Linear(d_model, classes)
            self.dropout = nn.Dropout(dropout)

        def forward(self, img):
            x = self.patch_embed(img).flatten(2).transpose(1, 2)
            x = torch.cat((self.cls_token.repeat(x.shape[0], 1, 1), x), 1)
            return self.mlp_head(self.encoder(self.dropout(x + self.pos_embed))[:, 0])
"""

# fmt: off
EPS = Family("eps of 1e-6", """A norm adds too little to the variance: some libraries take 1e-6 for a ViT. Here eps is
    1e-5 in every norm, the last one too, as nn.LayerNorm has by default.""")
NOT_AS_MANY = Family("not as many positions as words", """The numbers of words and positions differ. Either the patches
    overlap, as those of a convolution without a stride do: patches are side by side. Or positions were counted along
    one side only: there are image / patch times image / patch patches, and one token more.""")
# fmt: on

EXERCISE = Exercise(
    id="vit", number="14.2", difficulty=3, minutes=40, visible_points=2, hidden_points=3,
    reference=ViT, roles=parts, section=VIT, quotes=first_logit,
    probes=(
        visible("2 images of 4 patches, drawn weights", inputs, 2, 4, 2, 3),
        visible("9 patches, one layer", inputs, 3, 6, 2, 3, (8, 4, 1, 7, 5)),
        visible("the same patches in a different order", patches_exchanged),
        visible("dropout 0.5, in evaluation", inputs, 1, 4, 2, 2, dropout=0.5),
        visible("one patch is the whole image", inputs, 3, 2, 2, 2),
        *usual_probes(inputs, other=(3, 8, 2, 2, (12, 4, 3, 10, 5)), smallest=(1, 2, 2, 1, (6, 1, 1, 5, 3)),
                      common=(2, 6, 2, 3), precise=far_away),
        hidden("one layer, one head", inputs, 2, 6, 3, 2, (7, 1, 1, 10, 3), announced_by="h, layers"),
        hidden("words that hardly differ", hardly_spread, announced_by="eps 1e-5"),
        hidden("in training, all dropped", inputs, 2, 4, 2, 3, dropout=1.0, checks="training",
               announced_by="every token is zero when it reaches the last norm"),
    ),
    mistakes=(
        mistake("class token not expanded", RIGHT.but(FIRST, "first = self.class_token"), TOKEN,
            """There is one class token, (1, 1, d_model), and a batch of images: torch.cat needs the same batch size for
            both. Every image gets the same token: expand it along the batch, which copies nothing."""),
        mistake("class token last",
                RIGHT.but(CAT, "x = torch.cat([words, first], dim=1)").but(LAST, "return self.head(x[:, -1])"), TOKEN,
            """The class token comes after the patches, or position 0 went to the first patch and the last one to the
            token, which is the same: every token has the position of a different token. The class token comes first,
            and position 0 is its own."""),
        mistake("a patch read in place of the class token", RIGHT.but(CAT, "x = torch.cat([words, first], dim=1)"),
                TOKEN,
            "The class token was put behind the patches, and the head reads the first *patch*. The token comes first, "
            "and the head reads it."),
        mistake("the last patch read", RIGHT.but("x[:, 0]", "x[:, -1]"), TOKEN,
            """The head reads the last patch. It reads the class token, which comes first: it has no content of its own,
            so it can gather information from all patches."""),
        mistake("the first patch read", RIGHT.but("x[:, 0]", "x[:, 1]"), TOKEN,
            "The head reads the first patch. The class token comes before it, at position 0."),
        mistake("the mean of all tokens", RIGHT.but("x[:, 0]", "x.mean(dim=1)"), TOKEN,
            "The head reads the mean of all tokens. Many models do that, with success; here the class token answers "
            "for the image."),
        mistake("the mean of the patches", RIGHT.but("x[:, 0]", "x[:, 1:].mean(dim=1)"), TOKEN,
            "The head reads the mean of the patches, so the class token is not used. Here the head must read it."),
        mistake("the mean of all tokens, before the norm", RIGHT.but(NORM, "x = self.norm(x.mean(1, keepdim=True))"),
                TOKEN,
            "The head reads the mean of all tokens, taken before the last norm. Many models average the tokens; here "
            "the head must read only the class token."),
        mistake("the mean of the patches, before the norm",
                RIGHT.but(NORM, "x = self.norm(x[:, 1:].mean(1, keepdim=True))"), TOKEN,
            "The head reads the mean of the patches, taken before the last norm, so the class token is not used. Here "
            "the head must read it."),
        mistake("the largest of all tokens", RIGHT.but("x[:, 0]", "x.max(dim=1).values"), TOKEN,
            "The head reads the largest number of each feature over all tokens. It reads only the class token."),
        mistake("the first image read", RIGHT.but("x[:, 0]", "x[0]"), TOKEN,
            "The head reads all tokens of the first *image*: x[0] counts along the batch. The class token of every "
            "image is x[:, 0]."),
        mistake("logits of every token", RIGHT.but("x[:, 0]", "x"), TOKEN,
            "Logits of every token came back. Return one row for each image, from the class token: (B, classes)."),
        mistake("one axis too many", RIGHT.but("x[:, 0]", "x[:, :1]"), TOKEN,
            "The axis of the tokens is still there, with length 1. Return one row for each image: (B, classes)."),
        mistake("no class token", RIGHT.without(TOKEN_LINE).without(FIRST).but(CAT, "x = words").but("1 + N", "N").but(
                  "x[:, 0]", "x.mean(dim=1)"), TOKEN,
            """There is no class token, and no position for it. One vector more, learned and the same for every image,
            goes in front of the patches; the head reads what became of it."""),
        mistake("a class token that cannot learn",
                RIGHT.but(TOKEN_LINE, 'self.register_buffer("class_token", torch.zeros(1, 1, d_model))'), TOKEN,
            """The check found no class token that `forward` uses: a parameter of d_model values, with axes of size 1
            in front if you like. A token for each image is too many, and a plain tensor or a buffer is not a
            parameter: it keeps its first values."""),
        mistake("a class token in a plain tensor",
                RIGHT.but(TOKEN_LINE, "self.class_token = torch.zeros(1, 1, d_model)"), TOKEN,
            "The class token is a plain tensor, which no optimizer sees: it stays as it was drawn. nn.Parameter makes "
            "it one that learns."),
        mistake("a class token for each patch",
                RIGHT.but(TOKEN_LINE, "self.class_token = nn.Parameter(torch.randn(1, N, d_model))").but(
                  "1 + N", "2 * N"), TOKEN,
            "There are as many class tokens as patches. One is enough for the whole image."),
        mistake("positions before the class token",
                RIGHT.but(PLACES, "self.positions = nn.Parameter(torch.randn(1, N, d_model))").but(
                  WORDS, "words = self.project(self.cut(img)) + self.positions").without(ADD), VIT,
            """There is one position too few: N for the patches and none for the class token. Put the token in front
            first, and then add positions to all 1 + N."""),
        mistake("no position for the class token",
                RIGHT.but(ADD, "x = torch.cat([x[:, :1], x[:, 1:] + self.positions[:, 1:]], dim=1)"), VIT,
            "The patches got their positions and the class token none. All 1 + N tokens get one: first "
            "join, then add."),
        mistake("no positions", RIGHT.without(PLACES).without(ADD), VIT,
            """The check found no learned positions: a parameter with 1 + N rows of d_model values, with axes of
            size 1 in front if you like. They are missing, or made and never added, or not parameters (sinusoids, a
            buffer, a plain tensor), or they have a different layout, such as (d_model, 1 + N) or one number for each
            position.
            Attention has no order (chapter 07): without positions the model cannot distinguish an image from the same
            patches in a different order."""),
        mistake("one position for all", RIGHT.but(ADD, "x = x + self.positions[:, :1]"), VIT,
            "Every token got the position of the first. Each position has its own row."),
        mistake("positions multiplied", RIGHT.but(ADD, "x = x * self.positions"), VIT,
            "Positions were multiplied into the tokens. They are added."),
        mistake("times the root of d_model",
                RIGHT.but(WORDS, "words = self.project(self.cut(img)) * self.head.in_features ** 0.5"), VIT,
            "The projected patches were multiplied by the root of d_model. Chapter 09 does that to embeddings; a ViT "
            "does not."),
        mistake("stripes", RIGHT.but(MOVE, "patches = img"), STRIPES,
            "The patches are stripes: the image was reshaped in memory order. Cut it as in 14.1 (your own patchify "
            "will do)."),
        mistake("channels last in a patch", RIGHT.but("(0, 2, 4, 1, 3, 5)", "(0, 2, 4, 3, 5, 1)"), PATCHES,
            "Inside a patch your numbers go pixel by pixel, all channels of the first one first. Here, as in 14.1, a "
            "patch is channel by channel."),
        mistake("patches column by column", RIGHT.but("(0, 2, 4, 1, 3, 5)", "(0, 4, 2, 1, 3, 5)"), PATCHES,
            "The patches are counted down the columns, so most of them get the position of a different patch. A page "
            "is read row by row."),
        mistake("pixels column by column", RIGHT.but("(0, 2, 4, 1, 3, 5)", "(0, 2, 4, 1, 5, 3)"), PATCHES,
            "The pixels inside a patch are read column by column. As in 14.1, they are read row by row."),
        mistake("height and width exchanged", RIGHT.but("(0, 2, 4, 1, 3, 5)", "(0, 4, 2, 1, 5, 3)"), PATCHES,
            "The image was read down its columns, as if it were transposed. Rows come first, in the order of patches "
            "and inside one."),
        mistake("causal mask left on",
                RIGHT.but("mask = None", "mask = torch.ones(x.shape[1], x.shape[1]).tril().bool()"), TOKEN,
            """The class token sees no patch, so your logits are the same for every image. There are two usual causes.
            A causal mask was left on. Or the library's layer was created without batch_first=True: then it takes the
            images for the sequence, and each token attends only to the token at its position in every image."""),
        mistake("no last norm", RIGHT.without(NORM), VIT,
            """A norm is missing, or was made and never used: there are two in each layer and one after all of them,
            before the head. Pre-norm layers only normalize what their sub-layers read, never the sum that they return.
            Without the last norm the head reads that sum as it is."""),
        mistake("the last norm before the layers", RIGHT.without(NORM).after(DROP, NORM), VIT,
            "The last norm comes before the layers. It comes after all of them, before the head: pre-norm layers "
            "only ever add to the stream."),
        mistake("post-norm",
                RIGHT.but("seen = self.norm1(x)", "seen = x").but(READ,
                    "x = self.norm1(x + self.drop(self.own(seen, seen, mask)))").but(
                  THINK, "return self.norm2(x + self.drop(self.narrow(torch.relu(self.widen(x)))))"), VIT,
            "The layers are post-norm. A ViT's are pre-norm: EncoderLayer has an argument for it, norm_first."),
        mistake("GELU", RIGHT.but("torch.relu(", "F.gelu("), VIT,
            "The feed-forward networks use GELU, as the paper's do. Here the layers are those of chapter "
            "09, with ReLU."),
        EPS(RIGHT.but("nn.LayerNorm(d), nn.LayerNorm(d)",
                          "nn.LayerNorm(d, eps=1e-6), nn.LayerNorm(d, eps=1e-6)").but(
                  "nn.LayerNorm(d_model)", "nn.LayerNorm(d_model, eps=1e-6)"), VIT),
        EPS(RIGHT.but("nn.LayerNorm(d_model)", "nn.LayerNorm(d_model, eps=1e-6)"), VIT, name="eps of 1e-6 at the end"),
        mistake("x added to a layer", RIGHT.but(LAYER, "x = x + layer(x)"), VIT,
            "x was added to what a layer returns. Its residuals are inside: what a layer returns is what the "
            "next one reads."),
        mistake("no residual", RIGHT.but(READ, READ.replace("x + ", "")).but(THINK, THINK.replace("x + ", "")), VIT,
            "The layers have no residuals: the output of a sub-layer is added to its input (09.3)."),
        families.SCORES_NOT_DIVIDED(RIGHT.but(" / q.shape[-1] ** 0.5", ""), VIT, part="model"),
        families.ONE_HEAD(RIGHT.but("Heads(d, h)", "Heads(d, 1)"), VIT),
        mistake("one layer used again", RIGHT.but(
                  "[Layer(d_model, h, d_ff, dropout) for _ in range(layers)]",
                  "[Layer(d_model, h, d_ff, dropout)] * layers"), VIT,
            "One layer is in the list several times: its weights are shared. Create a new layer for each."),
        mistake("one layer", RIGHT.but("range(layers)", "range(1)"), VIT,
            "There are fewer layers than `layers` says, perhaps always one."),
        mistake("the last layer alone",
                RIGHT.but("for layer in self.layers:\n            x = layer(x)",
                          "for layer in self.layers:\n            out = layer(x)\n        x = out"), VIT,
            """Only the last layer counts: every layer read the same x, and each result replaced the one before. A layer
            reads what the layer before it returned."""),
        families.LAYERS_IN_A_LIST(
            RIGHT.but(LAYERS, "self.layers = [Layer(d_model, h, d_ff, dropout) for _ in range(layers)]"),
            VIT, lists="nn.ModuleList or nn.Sequential"),
        mistake("no layers", RIGHT.but(LAYER, "pass"), VIT,
            "The layers were made and never used: the class token cannot have seen a single patch."),
        mistake("d_ff not used", RIGHT.but("d, d_ff), nn.Linear(d_ff, d)", "d, 4 * d), nn.Linear(4 * d, d)"), VIT,
            "The feed-forward networks are not d_ff wide inside. Four times d_model is usual, but here d_ff sets it."),
        mistake("an inner width of its own", RIGHT.but("d, d_ff), nn.Linear(d_ff, d)", "d, 2048), nn.Linear(2048, d)"),
                VIT,
            "The feed-forward networks are not d_ff wide inside: the library's layer takes 2,048 by default. Pass d_ff "
            "to it."),
        mistake("a head of two layers", RIGHT.but(
                  HEAD, "self.head = nn.Sequential(nn.Linear(d_model, d_model), nn.Tanh(), nn.Linear(d_model, "
                        "classes))"), TOKEN,
            "There is one projection too many, d_model to d_model: the head is a single one here, from d_model to "
            "classes."),
        NOT_AS_MANY(RIGHT.but(PROJECT, "self.project = nn.Conv2d(channels, d_model, patch)").but(
                  WORDS, "words = self.project(img).flatten(2).transpose(1, 2)"), PATCHES),
        NOT_AS_MANY(RIGHT.but("N = (image // patch) ** 2", "N = image // patch"), PATCHES,
                    name="positions along one side"),
        mistake("the convolution's channels left in front",
                RIGHT.but(PROJECT, "self.project = nn.Conv2d(channels, d_model, patch, stride=patch)").but(
                  WORDS, "words = self.project(img).flatten(2)").but(FIRST,
                      "first = self.class_token.expand(len(img), -1, -1)"), PATCHES,
            """After a convolution the features come first: (B, d_model, N). Words are rows, (B, N, d_model): the
            last two axes change places before the class token joins."""),
        mistake("the convolution's result cut by reshape",
                RIGHT.but(PROJECT, "self.project = nn.Conv2d(channels, d_model, patch, stride=patch)").but(
                  WORDS, "words = self.project(img).reshape(len(img), -1, self.head.in_features)"), PATCHES,
            """After a convolution the features come first, (B, d_model, rows, columns), and reshape does not move them:
            a word of yours holds one feature of several patches. Join rows and columns, then exchange the axes."""),
        mistake("no bias in the patch projection",
                RIGHT.but("patch * patch, d_model)", "patch * patch, d_model, bias=False)"), PATCHES,
            "The patch projection has no bias. It adds one, as nn.Linear and nn.Conv2d do by default."),
        mistake("no bias in the head", RIGHT.but("(d_model, classes)", "(d_model, classes, bias=False)"), TOKEN,
            "The head has no bias. It adds one, as nn.Linear does by default."),
        mistake("patches that overlap",
                RIGHT.but(PROJECT, "self.project = nn.Conv2d(channels, d_model, patch, padding=patch // 2)").but(
                  WORDS, "words = self.project(img)[:, :, :img.shape[2]:self.patch, "
                         ":img.shape[3]:self.patch].flatten(2).transpose(1, 2)"), PATCHES,
            """The convolution looks over the edge of the patches: it is padded, or its stride is not the size of a
            patch. Patches are side by side: kernel and stride are patch, and the padding is 0."""),
        families.DROPOUT_NEVER_OFF(RIGHT.but(
                  "self.drop = nn.Dropout(dropout)\n        self.layers",
                  "self.drop = lambda x: F.dropout(x, dropout)\n        self.layers"),
            VIT),
        mistake("no dropout on the words", RIGHT.without(DROP), VIT,
            """In training with dropout 1 the class token is not zero when it reaches the first layer. Either no dropout
            acts on the tokens, or it acts only on the patches, before the class token is joined. It acts on all 1 + N
            tokens, after their positions were added."""),
        mistake("dropout before the positions", RIGHT.but(ADD, "x = self.drop(x) + self.positions").without(DROP), VIT,
            "In training the tokens are dropped and their positions are not. Dropout acts on their sum."),
        mistake("dropout before the head", RIGHT.but(LAST, "return self.head(self.drop(x[:, 0]))"), VIT,
            "There is a dropout before the head, where none belongs. Dropout acts on the sum of tokens and positions "
            "(is it there, or did it get into the wrong place?), and in the layers on the output of each sub-layer."),
        mistake("no dropout in the layers",
                RIGHT.but("[Layer(d_model, h, d_ff, dropout)", "[Layer(d_model, h, d_ff, 0.0)"), VIT,
            "In training nothing is dropped in the layers. Pass `dropout` to them."),
        families.SOFTMAX_AT_THE_END(RIGHT.ending_in(".softmax(-1)"),
            TOKEN, name="a softmax at the end", instead="Return the logits as they are."),
        families.LOG_SOFTMAX_AT_THE_END(RIGHT.ending_in(".log_softmax(-1)"), TOKEN, name="a log_softmax at the end"),
        mistake("the class token's vector", RIGHT.but(LAST, "return x[:, 0]"), TOKEN,
            "The class token's vector came back, d_model numbers. The head makes one score for each class of it."),
        mistake("the class itself", RIGHT.ending_in(".argmax(-1)"), TOKEN,
            "The number of the best class came back. Return logits, one for each class: choosing comes later, and "
            "has no gradient."),
        families.TWO_RESULTS(RIGHT.but(LAST, "return self.head(x[:, 0]), x"), TOKEN, result="logits"),
        *usual_mistakes(RIGHT, detached=VIT, float32=VIT, squeezed=TOKEN),
        mistake("a dropout of another strength",
                RIGHT.but("[Layer(d_model, h, d_ff, dropout)", "[Layer(d_model, h, d_ff, 0.1)"), VIT,
            """In training with dropout 1 all tokens are 0 up to the last norm, so every image gets the same logits.
            Yours differ: a dropout is missing, or has a different rate, such as the .1 of the library's layer. All of
            them use `dropout`.""",
            shows=something_is_left),
    ),
    correct=(
        correct("written out", RIGHT),
        correct("a convolution and the library's encoder", BY_LIBRARY),
        correct("vectors and rows without axes of 1",
                RIGHT.but(TOKEN_LINE, "self.class_token = nn.Parameter(torch.zeros(d_model))").but(
            PLACES, "self.positions = nn.Parameter(torch.zeros(N + 1, d_model))").but(FIRST,
                "first = self.class_token.expand(len(words), 1, -1)")),
        correct("embeddings for token and positions",
                RIGHT.but(TOKEN_LINE, "self.class_token = nn.Embedding(1, d_model)").but(
            PLACES, "self.positions = nn.Embedding(1 + N, d_model)").but(FIRST,
                "first = self.class_token(torch.zeros(len(words), 1, dtype=torch.long))").but(
            ADD, "x = x + self.positions(torch.arange(x.shape[1]))")),
        correct("a position of its own for the token", RIGHT.but(PLACES,
                  "self.positions = nn.Parameter(torch.zeros(1, N, d_model))\n        self.first_position = "
                  "nn.Parameter(torch.zeros(1, 1, d_model))").but(
            ADD, "x = x + torch.cat([self.first_position, self.positions], dim=1)")),
        correct("ones to begin with", RIGHT.but("torch.randn(1, 1, d_model)", "torch.ones(1, d_model)").but(FIRST,
                  "first = self.class_token.repeat(len(words), 1, 1)")),
        correct("everything a bare parameter", RIGHT.but(PROJECT, """
            self.W = nn.Parameter(torch.randn(channels * patch * patch, d_model))
            self.b = nn.Parameter(torch.zeros(d_model))""").but(WORDS,
                "words = self.cut(img) @ self.W + self.b").but(HEAD, """
            self.W_head = nn.Parameter(torch.randn(d_model, classes))
            self.b_head = nn.Parameter(torch.zeros(classes))""").but(LAST,
                "return x[:, 0] @ self.W_head + self.b_head").but(
            "torch.randn(1, 1, d_model)", "torch.zeros(d_model)").but(FIRST,
                "first = self.class_token.expand(len(words), 1, -1)")),
        correct("positions added first, the token on its own", RIGHT.but(CAT,
                  "x = torch.cat([first + self.positions[:, :1], words + self.positions[:, 1:]], dim=1)").without(ADD)),
        correct("unfold, and the head normed alone",
                RIGHT.but(WORDS, "words = self.project(F.unfold(img, self.patch, stride=self.patch).mT)").without(
                    NORM).but(
            LAST, "return self.head(self.norm(x[:, 0]))")),
        correct("parts with modules of their own", RIGHT[:CLASS] + '''
class Words(nn.Module):
    def __init__(self, image, patch, channels, width):
        super().__init__()
        self.size = patch
        self.places = nn.Parameter(torch.randn((image // patch) ** 2 + 1, width) * 0.02)
        self.start = nn.Parameter(torch.randn(width))
        self.to_words = nn.Sequential(nn.Flatten(2), nn.Linear(channels * patch ** 2, width))

    def forward(self, img):
        rows = [strip.split(self.size, dim=3) for strip in img.split(self.size, dim=2)]
        words = self.to_words(torch.stack([patch for row in rows for patch in row], dim=1))
        start = self.start[None, None].expand(img.size(0), 1, -1)
        return torch.cat([start, words], dim=1) + self.places


class ViT(nn.Module):
    def __init__(self, image, patch, channels, d_model, h, layers, d_ff, classes, dropout=0.0):
        super().__init__()
        self.classify = nn.Sequential(nn.LayerNorm(d_model), nn.Linear(d_model, classes))
        self.body = nn.Sequential(nn.Dropout(dropout), *(Layer(d_model, h, d_ff, dropout) for _ in range(layers)))
        self.read = Words(image, patch, channels, d_model)

    def forward(self, img):
        return self.classify(self.body(self.read(img)).select(1, 0))
'''),
    ),
    hints=(
        "what is a word here, and what did chapter 09's encoder expect of words? Which learned vectors do not come "
        "from the image?",
        "img (B, C, image, image); patches (B, N, C * patch * patch); words (B, N, d_model); with the class token (B, "
        "1 + N, d_model), and so "
        "through all layers; "
        "(B, d_model) of the token; (B, classes).",
        "constructor: projection, class token, 1 + N positions, dropout, layers in pre-norm, last norm, head. "
        "forward: patches, project, token in "
        "front, add positions, "
        "dropout, layers, norm, head of token 0.",
    ),
)  # fmt: skip
