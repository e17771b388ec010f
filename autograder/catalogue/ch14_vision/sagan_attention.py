"""14.3: every pixel looks at every pixel, and a number that begins at 0 says how much of it counts."""

import math

import torch
from torch import Tensor

from autograder.catalogue.ch14_vision.shared import labeled, sections, wrong_pixel
from autograder.catalogue.exercise import Case, Exercise
from autograder.catalogue.families import in_place, usual_mistakes
from autograder.catalogue.known_answers import answer, correct, mistake
from autograder.catalogue.probes import FAR, hidden, normal, usual_probes, visible
from autograder.catalogue.quotes import sizes
from transformer_ref.beyond import vision

PIXELS, GAMMA = sections("pixels gamma")


def sagan_attention(x: Tensor, Wq: Tensor, Wk: Tensor, Wv: Tensor, gamma: Tensor) -> Tensor:
    """x + gamma * self-attention between pixels."""
    return vision.sagan_attention(x, Wq, Wk, Wv, gamma)


def inputs(
    g: torch.Generator, B: int, C: int, H: int, W: int, narrow: int, gamma: float | None = None,
    dtype: torch.dtype = torch.float32,
) -> Case:  # fmt: skip
    """narrow: how many numbers a query has. Scores come out around 1, so that no weight is nearly 0 or 1."""
    x, Wq, Wk, Wv = normal(g, B, C, H, W), normal(g, narrow, C), normal(g, narrow, C), normal(g, C, C)
    weight = torch.tensor(gamma) if gamma is not None else 0.5 + torch.rand((), generator=g)
    size = (C * C * narrow) ** -0.25
    return Case(tuple(each.to(dtype) for each in (x, size * Wq, size * Wk, Wv / C**0.5, weight)))


def far_away(g: torch.Generator) -> Case:
    """One channel lies around 100,000,000; no query and no key reads it, and no value."""
    x, Wq, Wk, Wv, gamma = inputs(g, 2, 3, 2, 4, 2, dtype=torch.float64).arguments
    x[:, 2] += FAR
    Wq[:, 2] = Wk[:, 2] = Wv[:, 2] = 0
    return Case((x, Wq, Wk, Wv, gamma))


def large_scores(g: torch.Generator) -> Case:
    x, Wq, Wk, Wv, gamma = inputs(g, 2, 3, 2, 4, 2).arguments
    return Case((x, 60 * Wq, 60 * Wk, Wv, gamma))


def alike(g: torch.Generator) -> Case:
    """An image of one color: whatever the weights are, each pixel gathers that color's value."""
    x, *rest = inputs(g, 2, 4, 3, 2, 2).arguments
    return Case((x[:, :, :1, :1].expand(2, 4, 3, 2).contiguous(), *rest))


def by_hand(gamma: float) -> Case:
    """Two pixels, (1, 0) and (0, 1); the first asks for itself three times as much as for the other."""
    x = torch.tensor([[[[1.0, 0.0]], [[0.0, 1.0]]]])
    Wq, Wk = torch.tensor([[math.log(3.0), 0.0]]), torch.tensor([[1.0, 0.0]])
    return Case((x, Wq, Wk, torch.tensor([[0.0, 4.0], [2.0, 0.0]]), torch.tensor(gamma)))


def said_where(g: torch.Generator) -> Case:
    """All scores 0 and values as they are: each pixel gathers the mean of each channel."""
    return Case((labeled(2, 3, 2, 4), torch.zeros(3, 3), torch.zeros(3, 3), torch.eye(3), torch.tensor(0.5)))


RIGHT = answer("""
    def sagan_attention(x, Wq, Wk, Wv, gamma):
        B, C, H, W = x.shape
        pixels = x.reshape(B, C, H * W).transpose(1, 2)
        q = pixels @ Wq.T
        k = pixels @ Wk.T
        v = pixels @ Wv.T
        scores = q @ k.transpose(1, 2)
        weights = torch.softmax(scores, dim=-1)
        gathered = weights @ v
        gathered = gathered.transpose(1, 2).reshape(B, C, H, W)
        return x + gamma * gathered
""")
PIXEL, BACK = (
    "pixels = x.reshape(B, C, H * W).transpose(1, 2)", "gathered = gathered.transpose(1, 2).reshape(B, C, H, W)"
)
LAST, MIX, SHARES = "x + gamma * gathered", "gathered = weights @ v", "weights = torch.softmax(scores, dim=-1)"
SCORES = "scores = q @ k.transpose(1, 2)"

EXERCISE = Exercise(
    id="sagan-attention", number="14.3", difficulty=2, minutes=25, visible_points=2, hidden_points=3,
    reference=sagan_attention, section=PIXELS, quotes=wrong_pixel,
    probes=(
        visible("two pixels, by hand", by_hand(0.5)),
        visible("equal weights, numbers that say where they were", said_where),
        visible("2 images of 3 by 4 pixels", inputs, 2, 5, 3, 4, 2),
        visible("gamma is 0", by_hand(0.0)),
        *usual_probes(inputs, other=(3, 4, 5, 2, 3), smallest=(1, 1, 1, 1, 1), common=(2, 4, 2, 3, 2),
                      precise=far_away),
        hidden("as wide as the image", inputs, 2, 3, 2, 4, 3, announced_by="C' may be any number"),
        hidden("wider than the image", inputs, 2, 2, 4, 3, 5, announced_by="C' may be any number"),
        hidden("a gamma below 0", inputs, 2, 4, 3, 2, 2, -0.7, announced_by="gamma: any number"),
        hidden("gradients where gamma is 0", inputs, 2, 4, 3, 2, 2, 0.0, dtype=torch.float64, checks="gradients",
               announced_by="gamma learns from its first step on"),
        hidden("large scores", large_scores, announced_by="also where scores are large"),
        hidden("an image of one color", alike, announced_by="sum to 1 over all H * W pixels"),
    ),
    mistakes=(
        mistake("cut into pixels by reshape alone", RIGHT.but(PIXEL, "pixels = x.reshape(B, H * W, C)"), PIXELS,
            """A row that should be one pixel's channels holds several pixels of one channel: reshape keeps the order in
            memory, channel after channel. Join height and width first, then move the channels last."""),
        mistake("put back by reshape alone", RIGHT.but(BACK, "gathered = gathered.reshape(B, C, H, W)"), PIXELS,
            """The gathered values are right, (B, H * W, C), but reshape put them back, which mixes channels and
            pixels. The channels move in front of the pixels first."""),
        mistake("both by reshape alone", RIGHT.but(PIXEL, "pixels = x.reshape(B, H * W, C)").but(
                  BACK, "gathered = gathered.reshape(B, C, H, W)"), PIXELS,
            """Rows that should be pixels were cut from the image by reshape, and put back in the same way. It fits in
            shape; but such a row holds several pixels of *one* channel. The channels have to move behind, and in front
            again at the end."""),
        mistake("height and width exchanged at the end",
                RIGHT.but("reshape(B, C, H, W)", "reshape(B, C, W, H).transpose(2, 3)"), PIXELS,
            "Height and width changed places when the pixels were put back into an image. They were read row by row: "
            "H rows of W."),
        mistake("H and W taken for each other", RIGHT.but("B, C, H, W = x.shape", "B, C, W, H = x.shape"), PIXELS,
            "Height and width were read from the shape in the wrong order: an image is (B, C, H, W), rows before "
            "columns."),
        mistake("pixels column by column",
                RIGHT.but(PIXEL, "pixels = x.transpose(2, 3).reshape(B, C, H * W).transpose(1, 2)"), PIXELS,
            """The pixels were read down the columns of the image and put back row by row, so they end at different
            positions. Read them row by row too."""),
        mistake("channels attend to channels", RIGHT.but(SCORES, "scores = q.transpose(1, 2) @ k"), PIXELS,
            """The product of queries and keys compares their *features*, (C', C'), and then it does not fit the values.
            It is pixels that look at pixels: the table of scores is (B, H * W, H * W)."""),
        mistake("kernels on their side", RIGHT.but("pixels @ Wq.T", "pixels @ Wq").but("pixels @ Wk.T", "pixels @ Wk"),
                PIXELS,
            """Wq and Wk were not transposed. Like 1x1 kernels they are (out, in) = (C', C): with pixels as rows, their
            C must meet the pixels' C. It fits by accident where C' = C."""),
        mistake("kernels on the last axis",
                RIGHT.without("q = pixels @ Wq.T").without("k = pixels @ Wk.T").without("v = pixels @ Wv.T").without(
                    BACK).but(
                  PIXEL, "q, k, v = x @ Wq.T, x @ Wk.T, x @ Wv.T").but(SCORES, "scores = q @ k.transpose(-2, -1)"),
                  PIXELS,
            """The kernels met the last axis of the image, which is its width. They change the *channels* of each pixel:
            bring the channels behind first, with H and W joined."""),
        mistake("a softmax for each row of pixels", RIGHT.but(
                  SHARES, "weights = torch.softmax(scores.reshape(B, H * W, H, W), dim=-1).reshape(scores.shape)"),
                  PIXELS,
            """The softmax ran over one row of the image at a time, so the weights of a pixel sum to 1 over *each* row,
            H in all. Join height and width: they sum to 1 over all H * W pixels."""),
        mistake("softmax over the queries", RIGHT.but("dim=-1", "dim=1"), PIXELS,
            """The softmax ran over the *queries*. The weights of each query sum to 1 over the keys: with the table
            (query, key), the last axis."""),
        mistake("softmax over everything",
                RIGHT.but(SHARES, "weights = torch.softmax(scores.flatten(1), dim=-1).reshape(scores.shape)"), PIXELS,
            "One softmax ran over the whole table: all weights of an image sum to 1. Each *row* has to."),
        mistake("the batch in the softmax", RIGHT.but("dim=-1", "dim=0"), PIXELS,
            "The softmax ran over the images of the batch. The weights of each query sum to 1 over the pixels of its "
            "own image."),
        mistake("no softmax", RIGHT.but(SHARES, "weights = scores"), PIXELS,
            "The scores were used as weights as they are. A softmax makes weights of them, which are positive and sum "
            "to 1."),
        mistake("divided by the number of pixels", RIGHT.but(SHARES, "weights = scores / scores.shape[-1]"), PIXELS,
            """The scores were divided by the number of pixels: that is a different layer, the non-local block with a
            dot product. Here a softmax makes the weights."""),
        mistake("divided by the root", RIGHT.but(SCORES, SCORES + " / q.shape[-1] ** 0.5"), PIXELS,
            "The scores were divided by the root of C'. That is chapter 05; SAGAN leaves it out, and so does this "
            "exercise."),
        mistake("divided by the root of C", RIGHT.but(SCORES, SCORES + " / C ** 0.5"), PIXELS,
            "The scores were divided by the root of the number of channels. SAGAN divides by nothing, and so does "
            "this exercise."),
        mistake("queries and keys exchanged",
                RIGHT.but("pixels @ Wq.T", "pixels @ Wk.T").but("k = pixels @ Wk.T", "k = pixels @ Wq.T"), PIXELS,
            "Wq and Wk changed places: Wq is applied to the pixel that looks, Wk to those it looks at."),
        mistake("keys made with Wq", RIGHT.but("pixels @ Wk.T", "pixels @ Wq.T"), PIXELS,
            "Keys and queries were both made with Wq, so Wk has no effect."),
        mistake("queries made with Wk", RIGHT.but("pixels @ Wq.T", "pixels @ Wk.T"), PIXELS,
            "Queries and keys were both made with Wk, so Wq has no effect."),
        mistake("weights transposed", RIGHT.but(MIX, "gathered = weights.transpose(1, 2) @ v"), PIXELS,
            """Pixel i was mixed with the weights of *column* i. Its own weights are row i of the table. (Where the
            values are (B, C, H * W), they multiply the weights from the left, and then the table has to be
            transposed.)"""),
        mistake("the values as they are", RIGHT.but("pixels @ Wv.T", "pixels"), PIXELS,
            "The pixels themselves were mixed: Wv was not used. What is gathered are their values, Wv times each."),
        mistake("Wv transposed", RIGHT.but("pixels @ Wv.T", "pixels @ Wv"), PIXELS,
            """Rows and columns of Wv are exchanged: a transpose is missing, or one too many. Like a 1x1 kernel Wv is
            (out, in): its *row* o times a pixel's channels gives number o. For Wq and Wk a wrong shape would reveal
            this; Wv is square."""),
        mistake("Wv twice", RIGHT.but("weights @ v", "weights @ v @ Wv.T"), PIXELS,
            "Wv was applied to the values and once more to what was gathered. Once is enough."),
        mistake("no residual", RIGHT.but(LAST, "gamma * gathered"), GAMMA,
            """x is missing: only what was gathered came back, so with gamma = 0, where training begins, the image is
            gone. The sum is x + gamma times it."""),
        mistake("gamma on the image", RIGHT.but(LAST, "gamma * x + gathered"), GAMMA,
            "gamma multiplies x. It is what was *gathered* that enters through it: at gamma = 0 the image comes back "
            "as it was."),
        mistake("gamma on the scores",
                RIGHT.but(SCORES, "scores = gamma * (q @ k.transpose(1, 2))").but(LAST, "x + gathered"), GAMMA,
            """gamma multiplies the scores, inside the softmax: at gamma = 0 all weights are equal, and something is
            still added to x. gamma should multiply what was *gathered*, after the softmax."""),
        mistake("gamma on both", RIGHT.but(LAST, "gamma * (x + gathered)"), GAMMA,
            "gamma multiplies the whole sum. It is what was *gathered* that enters through it: at gamma = 0 the image "
            "comes back as it was."),
        mistake("gamma not used", RIGHT.but(LAST, "x + gathered"), GAMMA,
            "gamma was not used: what was gathered counts in full, also where gamma is 0 and x should come back "
            "unchanged."),
        mistake("a share of each", RIGHT.but(LAST, "(1 - gamma) * x + gamma * gathered"), GAMMA,
            "x was multiplied by 1 - gamma. It enters in full, whatever gamma is: x + gamma times what was gathered."),
        mistake("gamma through a sigmoid", RIGHT.but("gamma * gathered", "torch.sigmoid(gamma) * gathered"), GAMMA,
            "gamma went through a sigmoid, so 0 became one half. It is used as it is."),
        mistake("gamma through a tanh", RIGHT.but("gamma * gathered", "torch.tanh(gamma) * gathered"), GAMMA,
            "gamma went through a tanh, which makes large ones smaller. It is used as it is."),
        mistake("gamma without its sign", RIGHT.but("gamma * gathered", "gamma.clamp(min=0) * gathered"), GAMMA,
            "A gamma below 0 was taken for 0. It is learned, and may be any number."),
        mistake("subtracted", RIGHT.but(LAST, "x - gamma * gathered"), GAMMA,
            "What was gathered was subtracted. It is added."),
        mistake("multiplied into the image", RIGHT.but(LAST, "x + gamma * gathered * x"), GAMMA,
            "What was gathered was multiplied by x. It is added as it is: x + gamma times it."),
        mistake("the values in place of the image",
                RIGHT.but(LAST, "v.transpose(1, 2).reshape(x.shape) + gamma * gathered"), GAMMA,
            "The values were added, Wv times x, where x itself belongs: with gamma = 0 the image should come "
            "back as it was."),
        mistake("a gamma of its own", RIGHT.beginning_with("gamma = torch.zeros((), dtype=x.dtype)"), GAMMA,
            "x always came back, as if gamma were 0. Use the gamma that is passed in: it begins at 0 and is learned."),
        mistake("gamma as a plain number", RIGHT.but("gamma * gathered", "gamma.item() * gathered"), GAMMA,
            """The values are right, but no gradient reaches gamma: .item() or float(...) made a plain number of it. It
            begins at 0; without a gradient it stays there."""),
        mistake("skipped where gamma is 0", RIGHT.beginning_with("if gamma == 0:", "    return x + 0 * gamma"), GAMMA,
            """Where gamma is 0 the attention is skipped, which gives the right image, but then gamma has no gradient
            and stays 0 for ever. Compute the sum in any case."""),
        mistake("x returned where gamma is 0", RIGHT.beginning_with("if gamma == 0:", "    return x"), GAMMA,
            """Where gamma is 0 you return x at once: the right image, but no gradient reaches gamma, which stays 0 for
            ever. Compute the sum in any case."""),
        mistake("the first image looked at by all", RIGHT.but(MIX, "gathered = weights @ v[:1]"), PIXELS,
            "All images gathered from the pixels of the first one. Each looks only at itself."),
        mistake("all images as one", RIGHT.but(PIXEL, "pixels = x.movedim(1, -1).reshape(1, B * H * W, C)").but(
                  BACK, "gathered = gathered.reshape(B, H, W, C).movedim(-1, 1)"), PIXELS,
            "The pixels of all images were put into one long row, so they look at each other across images. Each "
            "image is by itself."),
        mistake("rows alone", RIGHT.but(PIXEL, "pixels = x.permute(0, 2, 3, 1).reshape(B * H, W, C)").but(
                  BACK, "gathered = gathered.reshape(B, H, W, C).permute(0, 3, 1, 2)"), PIXELS,
            "Each pixel looked only at its own row. It looks at all H * W pixels of the image."),
        mistake("columns alone", RIGHT.but(PIXEL, "pixels = x.permute(0, 3, 2, 1).reshape(B * W, H, C)").but(
                  BACK, "gathered = gathered.reshape(B, W, H, C).permute(0, 3, 2, 1)"), PIXELS,
            "Each pixel looked only at its own column. It looks at all H * W pixels of the image."),
        mistake("the pixels as a sentence", RIGHT.but(BACK, "x = pixels"), PIXELS,
            "A sentence of pixels came back, (B, H * W, C). Put it back into an image, (B, C, H, W)."),
        mistake("the weights too", RIGHT.but("return " + LAST, "return x + gamma * gathered, weights"), PIXELS,
            "Two things came back. Return only the image."),
        mistake("no pixel looks at itself", RIGHT.but(
                  SCORES, SCORES + "\n    scores = scores - 1e9 * torch.eye(H * W, dtype=x.dtype) * (H * W > 1)"),
                  PIXELS,
            "A pixel does not look at itself: the diagonal was hidden. Nothing is hidden here."),
        mistake("causal", RIGHT.but(
                  SCORES, SCORES + "\n    scores = scores.masked_fill(torch.ones(H * W, H * W).triu(1).bool(), "
                                   "float('-inf'))"), PIXELS,
            "A causal mask is left on: pixels look only at earlier ones. An image has no past; nothing "
            "is hidden here."),
        mistake("exponentials as they are",
                RIGHT.but(SHARES, "e = torch.exp(scores)\n    weights = e / e.sum(dim=-1, keepdim=True)"), PIXELS,
            """Where scores are large their exponentials overflow and NaN comes out. torch's softmax, or your own of
            chapter 04, subtracts the largest first."""),
        in_place("x", RIGHT.but("return " + LAST, "x += gamma * gathered\n    return x"), GAMMA,
                 "Write x + ..., which makes a new one."),
        *usual_mistakes(RIGHT, arguments="x Wq Wk Wv", detached=PIXELS, float32=PIXELS, single=PIXELS, squeezed=PIXELS,
                        viewed=PIXELS, quotes_size=sizes),
    ),
    correct=(
        correct("pixels as rows", RIGHT),
        correct("channels first throughout", """
            def sagan_attention(x, Wq, Wk, Wv, gamma):
                B, C, H, W = x.shape
                flat = x.flatten(2)
                f, g, h = Wk @ flat, Wq @ flat, Wv @ flat
                attention = F.softmax(torch.bmm(g.permute(0, 2, 1), f), dim=-1)
                o = torch.bmm(h, attention.permute(0, 2, 1))
                return gamma * o.view(B, C, H, W) + x
        """),
        correct("convolutions of 1 by 1", """
            def sagan_attention(x, Wq, Wk, Wv, gamma):
                q, k, v = (F.conv2d(x, weight[:, :, None, None]).flatten(2) for weight in (Wq, Wk, Wv))
                beta = (k.mT @ q).softmax(dim=1)
                return x + gamma * (v @ beta).reshape(x.shape)
        """),
        correct("einsum on the image itself", """
            def sagan_attention(x, Wq, Wk, Wv, gamma):
                q = torch.einsum('oc,bchw->bohw', Wq, x)
                k = torch.einsum('oc,bchw->bohw', Wk, x)
                v = torch.einsum('oc,bchw->bohw', Wv, x)
                scores = torch.einsum('bohw,boyx->bhwyx', q, k)
                weights = scores.flatten(3).softmax(-1).reshape(scores.shape)
                return x + gamma * torch.einsum('bhwyx,bcyx->bchw', weights, v)
        """),
        correct("the library's kernel, without its root", RIGHT.without(SCORES).without(SHARES).but(
            MIX, "gathered = F.scaled_dot_product_attention(q, k, v, scale=1.0)")),
        correct("values mixed last", RIGHT.but("pixels @ Wv.T", "pixels").but("weights @ v", "(weights @ v) @ Wv.T")),
        correct("scores by one matrix in the middle",
                RIGHT.but("pixels @ Wq.T", "pixels @ (Wq.T @ Wk)").but("pixels @ Wk.T", "pixels")),
        correct("F.linear", RIGHT.but("pixels @ Wq.T", "F.linear(pixels, Wq)").but("pixels @ Wk.T",
            "F.linear(pixels, Wk)")),
        correct("loops over images and pixels", """
            def sagan_attention(x, Wq, Wk, Wv, gamma):
                images = []
                for image in x:
                    C, H, W = image.shape
                    pixels = [image[:, i, j] for i in range(H) for j in range(W)]
                    keys = torch.stack([Wk @ pixel for pixel in pixels])
                    values = torch.stack([Wv @ pixel for pixel in pixels])
                    out = []
                    for pixel in pixels:
                        shares = torch.softmax(keys @ (Wq @ pixel), dim=0)
                        out.append(pixel + gamma * (shares @ values))
                    images.append(torch.stack(out, dim=1).reshape(C, H, W))
                return torch.stack(images)
        """),
        correct("a softmax of one's own", RIGHT.but(SHARES, """e = (scores - scores.max(-1, keepdim=True).values).exp()
    weights = e / e.sum(-1, keepdim=True)""")),
    ),
    hints=(
        "it is chapter 05 with pixels for words. What is the sentence here, how long is it, and how wide is a word?",
        "x (B, C, H, W) becomes pixels (B, H * W, C); q, k (B, H * W, C'), v (B, H * W, C); weights (B, H * W, H * "
        "W); then back to (B, C, H, W).",
        "join H and W, channels last; q, k, v by the three kernels, which are (out, in); softmax of q times k "
        "transposed over the keys; mix the values; "
        "channels first, cut into H and W; x plus gamma times that.",
    ),
)  # fmt: skip
