"""14.4: heads that each look at one neighbor, and together are a convolution."""

import torch
from torch import Tensor

from autograder.catalogue import families
from autograder.catalogue.ch14_vision.shared import counted, sections, wrong_pixel
from autograder.catalogue.exercise import Case, Evidence, Exercise, Law
from autograder.catalogue.families import Family, usual_mistakes
from autograder.catalogue.known_answers import answer, correct, mistake
from autograder.catalogue.probes import FAR, hidden, normal, usual_probes, visible
from transformer_ref.beyond import vision

SHIFTS, BORDERS = sections("shifts borders")
LIBRARY = ("conv2d",)


def conv_as_attention(x: Tensor, kernel: Tensor) -> tuple[Tensor, Tensor]:
    """The convolution of x with a kernel by k * k heads of attention, and their weights."""
    return tuple(vision.conv_as_attention(x, kernel))


def inputs(
    g: torch.Generator, B: int, C: int, out: int, H: int, W: int, k: int, dtype: torch.dtype = torch.float32
) -> Case:
    kernel = normal(g, out, C, k, k) / (k * C**0.5)
    return Case((normal(g, B, C, H, W, dtype=dtype), kernel.to(dtype)))


def far_away(g: torch.Generator) -> Case:
    x, kernel = inputs(g, 2, 3, 4, 3, 5, 3, dtype=torch.float64).arguments
    return Case((x + FAR, kernel))


def even(g: torch.Generator, k: int) -> Case:
    return Case((normal(g, 2, 3, 4, 5), normal(g, 2, 3, k, k)))


def one_cell(k: int, *cells: tuple[int, int, float]) -> Tensor:
    """A kernel of one channel in and out, 0 except in these cells."""
    kernel = torch.zeros(1, 1, k, k)
    for row, column, value in cells:
        kernel[0, 0, row, column] = value
    return kernel


def looks_somewhere_once(got: tuple) -> bool:
    """Whether every row of the weights is one-hot or all zero."""
    weights = got[1]
    return bool(((weights == 0) | (weights == 1)).all() and (weights.sum(-1) <= 1).all())


def looks(evidence: Evidence) -> str:
    """Where a pixel looks that should look elsewhere: the first head and pixel that differ."""
    got, wanted = evidence.got[1], evidence.expected[1]
    if not isinstance(got, Tensor) or got.shape != wanted.shape:
        return ""
    far = (got.double() - wanted.double()).abs() > 1e-4
    if not bool(far.any()):
        return wrong_pixel(evidence)
    head, pixel = map(int, far.any(-1).nonzero()[0])
    return (
        f"In head {head} pixel {pixel} looks at {_places(got[head, pixel])}; it should look at "
        f"{_places(wanted[head, pixel])}."
    )


def off_center(evidence: Evidence) -> bool:
    """Whether all heads look as if a cell that is not the middle one were on the pixel itself."""
    return _cell_on_the_pixel(evidence) is not None


def cell_on_the_pixel(evidence: Evidence) -> str:
    """Which cell is on the pixel itself, and which should be."""
    k, cell = evidence.arguments[1].shape[-1], _cell_on_the_pixel(evidence)
    if cell is None or not 0 <= cell < k:
        return f"With k = {k} no cell of your kernel is on the pixel itself; cell ({k // 2}, {k // 2}) should be."
    return f"With k = {k} cell ({cell}, {cell}) of your kernel is on the pixel itself; ({k // 2}, {k // 2}) should be."


def _cell_on_the_pixel(evidence: Evidence) -> int | None:
    """The row, and column, of the cell that is on the pixel itself; None if it is the middle one, or none explains
    the weights."""
    x, kernel = evidence.arguments
    (H, W), k, got = x.shape[-2:], kernel.shape[-1], evidence.got[1]
    if got.shape != evidence.expected[1].shape:
        return None
    cells = [cell for cell in range(-1, k + 2) if cell != k // 2]
    return next((cell for cell in cells if torch.equal(got.double(), _weights(H, W, k, cell))), None)


def _weights(H: int, W: int, k: int, cell: int) -> Tensor:
    """The weights of all heads if this cell, of as many rows as columns, is on the pixel itself."""
    weights = torch.zeros(k * k, H * W, H * W, dtype=torch.float64)
    for head in range(k * k):
        for pixel in range(H * W):
            row, column = pixel // W + head // k - cell, pixel % W + head % k - cell
            if 0 <= row < H and 0 <= column < W:
                weights[head, pixel, row * W + column] = 1
    return weights


def _places(row: Tensor) -> str:
    places = row.nonzero().flatten().tolist()
    if not places:
        return "nothing"
    return f"pixel {places[0]}" if len(places) == 1 else f"{len(places)} pixels"


RIGHT = answer("""
    def conv_as_attention(x, kernel):
        B, C, H, W = x.shape
        out_channels, k = kernel.shape[0], kernel.shape[-1]
        if k % 2 == 0:
            raise ValueError("k must be odd")
        r = k // 2
        weights = torch.zeros(k * k, H * W, H * W, dtype=x.dtype)
        pixel = torch.arange(H * W)
        i, j = pixel // W, pixel % W
        for a in range(k):
            for b in range(k):
                row, column = i + a - r, j + b - r
                inside = (row >= 0) & (row < H) & (column >= 0) & (column < W)
                weights[a * k + b, pixel[inside], (row * W + column)[inside]] = 1
        pixels = x.reshape(B, C, H * W).transpose(1, 2)
        total = 0
        for a in range(k):
            for b in range(k):
                values = pixels @ kernel[:, :, a, b].T
                total = total + weights[a * k + b] @ values
        out = total.transpose(1, 2).reshape(B, out_channels, H, W)
        return out, weights
""")
CHECK = 'if k % 2 == 0:\n        raise ValueError("k must be odd")\n    '
PLACE = "row, column = i + a - r, j + b - r"
INSIDE = "inside = (row >= 0) & (row < H) & (column >= 0) & (column < W)"
ONE = "weights[a * k + b, pixel[inside], (row * W + column)[inside]] = 1"
ANYWHERE = "inside = row == row"
VALUES, HEAD = "values = pixels @ kernel[:, :, a, b].T", "total = total + weights[a * k + b] @ values"
PIXEL, BACK = (
    "pixels = x.reshape(B, C, H * W).transpose(1, 2)", "out = total.transpose(1, 2).reshape(B, out_channels, H, W)"
)
MIXING = RIGHT[RIGHT.index("    for a in range(k):\n        for b in range(k):\n            values") : RIGHT.index(
    "    out = total")]

# fmt: off
KERNEL_IN_WEIGHTS = Family("weights that hold the kernel", """The weights hold the kernel's numbers. Weights say
    *where* a head looks, 1 or 0; what it takes from there is the value.""")
# fmt: on

EXERCISE = Exercise(
    id="conv-as-attention", number="14.4", difficulty=3, minutes=45, visible_points=2, hidden_points=3,
    reference=conv_as_attention, section=SHIFTS, quotes=looks, forbidden=LIBRARY,
    probes=(
        visible("9 pixels, by hand", Case((counted(3, 3), one_cell(3, (1, 1, 1.0), (1, 2, 2.0)))),
                laws=(Law("every row of the weights is one-hot or all zero", looks_somewhere_once),)),
        visible("one cell, up and left, 2 by 4 pixels", Case((counted(2, 4), one_cell(3, (0, 0, 1.0))))),
        visible("2 images of 3 by 4 pixels", inputs, 2, 3, 2, 3, 4, 3),
        visible("a kernel of 5 by 5", inputs, 1, 2, 3, 4, 3, 5),
        visible("a kernel of 2 by 2", even, 2),
        *usual_probes(inputs, other=(3, 2, 4, 5, 3, 3), smallest=(1, 1, 1, 1, 1, 1), common=(2, 3, 4, 3, 5, 3),
                      precise=far_away),
        hidden("a kernel of one cell", inputs, 2, 3, 4, 3, 2, 1, announced_by="k: odd, 1 or more"),
        hidden("a kernel larger than the image", inputs, 2, 2, 3, 2, 3, 7,
               announced_by="k may be larger than the image"),
        hidden("as many channels out as in", inputs, 2, 3, 3, 4, 2, 3, announced_by="kernel: (O, C, k, k)"),
        hidden("a kernel of 4 by 4", even, 4, announced_by="Raises ValueError when k is even"),
    ),
    mistakes=(
        mistake("shifted the other way", RIGHT.but(PLACE, "row, column = i - a + r, j - b + r"), SHIFTS,
            """Your heads look the opposite way: the one for the upper left cell looks down and right. Either the offset
            has the wrong sign: cell (a, b) of the kernel is a - k//2 rows *below* the middle and b - k//2 columns to
            the *right* of it. Or rows and columns of the weights are exchanged: the row belongs to the pixel that
            looks, the column to the one it looks at."""),
        mistake("rows shifted the other way", RIGHT.but(PLACE, "row, column = i - a + r, j + b - r"), SHIFTS,
            "Up and down are exchanged: the heads of the kernel's first row should look *up*, to the row before."),
        mistake("columns shifted the other way", RIGHT.but(PLACE, "row, column = i + a - r, j - b + r"), SHIFTS,
            "Left and right are exchanged: the heads of the kernel's first column should look *left*, to the "
            "column before."),
        mistake("kernel flipped", RIGHT.but("kernel[:, :, a, b].T", "kernel[:, :, k - 1 - a, k - 1 - b].T"), SHIFTS,
            """The weights are right, and each head met the cell of the *opposite* head: the kernel was rotated by 180
            degrees, as in a mathematical convolution, or the weights were transposed when the values were mixed. Row i
            says where pixel i looks.""", quotes=wrong_pixel),
        mistake("kernel transposed", RIGHT.but("kernel[:, :, a, b].T", "kernel[:, :, b, a].T"), SHIFTS,
            "The weights are right, and rows and columns of the kernel are exchanged: head (a, b) takes cell (a, b).",
            quotes=wrong_pixel),
        mistake("heads column by column", RIGHT.but("weights[a * k + b, pixel", "weights[b * k + a, pixel").but(
                  "weights[a * k + b] @", "weights[b * k + a] @"), SHIFTS,
            """The output is right, and the heads are counted down the kernel's columns. They are counted row by row:
            head 1 belongs to cell (0, 1)."""),
        mistake("rows and columns exchanged", RIGHT.but(PLACE, "row, column = i + b - r, j + a - r"), SHIFTS,
            """In your weights the first index of a cell moves the column and the second the row. The first counts the
            kernel's *rows*: it says how far up or down."""),
        mistake("rows and columns exchanged, and the other way", RIGHT.but(PLACE, "row, column = i - b + r, j - a + r"),
                SHIFTS,
            """Two things. The first index of a cell moves the column in your weights, and should move the row. And the
            heads look the opposite way: the first cell is up and to the left."""),
        mistake("every head looks at the pixel itself", RIGHT.but(PLACE, "row, column = i, j"), SHIFTS,
            "All heads have the same weights: each pixel looks at itself. Head (a, b) looks at the neighbor under its "
            "cell."),
        mistake("heads in the opposite order", RIGHT.but("return out, weights", "return out, weights.flip(0)"), SHIFTS,
            """The output is right, but the heads are in the opposite order, or each is transposed, which for shifts is
            the same. Head 0 belongs to the kernel's upper left cell; rows belong to the pixels that look, columns to
            those looked at."""),
        mistake("not centered", RIGHT.but("r = k // 2", "r = 0"), SHIFTS,
            """Your heads are not centered on the pixel that looks: the kernel's *middle* cell should be on it, whatever
            k is, so that half of the heads look up or left.""", quotes=cell_on_the_pixel, shows=off_center),
        mistake("round the border", RIGHT.but(INSIDE, "row, column = row % H, column % W\n            " + ANYWHERE),
                BORDERS,
            """Beyond the border your heads look at the other side of the image, as torch.roll does. Outside there is
            nothing: such a row of the weights is all zero."""),
        mistake("no question whether it is inside", RIGHT.but(INSIDE, ANYWHERE), BORDERS,
            """A neighbor beyond the border has no number, and your code stops there, or takes the number of a different
            pixel. Check whether its row and its column are inside the image."""),
        mistake("below 0 not asked", RIGHT.but(INSIDE, "inside = (row < H) & (column < W)"), BORDERS,
            """The lower and the right border are checked, the upper and the left one are not: a number below 0 counts
            from the end, so these heads look at the wrong pixels of the image."""),
        mistake("the first row and column left out",
                RIGHT.but(INSIDE, "inside = (row > 0) & (row < H) & (column > 0) & (column < W)"), BORDERS,
            "Nobody looks at the first row and the first column: they have number 0, and that is inside."),
        mistake("the last row and column left out", RIGHT.but(
                  INSIDE, "inside = (row >= 0) & (row < H - 1) & (column >= 0) & (column < W - 1)"), BORDERS,
            "Nobody looks at the last row and the last column: they have the numbers H - 1 and W - 1, and "
            "those are inside."),
        mistake("the padding counted as pixels", RIGHT.but("weights = torch.zeros(k * k, H * W, H * W, dtype=x.dtype)",
                  "P = W + 2 * r\n    weights = torch.zeros(k * k, H * W, (H + 2 * r) * P, dtype=x.dtype)").but(
                  INSIDE, ANYWHERE).but("(row * W + column)[inside]", "((row + r) * P + column + r)[inside]").but(PIXEL,
                  "pixels = F.pad(x, (r, r, r, r)).flatten(2).transpose(1, 2)"), BORDERS,
            """The weights count the zeros around the image as pixels. Outside there is nothing to look at: columns are
            the H * W pixels of the image, and a row is all zero where the neighbor is not among them."""),
        mistake("into the next row", RIGHT.but(INSIDE, "inside = (row * W + column >= 0) & (row * W + column < H * W)"),
                BORDERS,
            """Your heads walk over the left and right borders. In memory the pixel after the last of a row is the first
            of the next; in the image the two are not neighbors. Check whether row *and* column are inside."""),
        mistake("the border again",
                RIGHT.but(INSIDE, "row, column = row.clamp(0, H - 1), column.clamp(0, W - 1)\n            " + ANYWHERE),
                BORDERS,
            """Beyond the border your heads look at the nearest pixel of the border. Outside there is nothing: such a
            row of the weights is all zero."""),
        mistake("reflected at the border", RIGHT.but(
                  INSIDE, "row, column = H - 1 - (H - 1 - row.abs()).abs(), W - 1 - (W - 1 - column.abs()).abs()\n    "
                          "        " + INSIDE), BORDERS,
            """Beyond the border your heads look back into the image, as in a mirror. Outside there is nothing: such a
            row of the weights is all zero."""),
        mistake("nobody to look at shared out", RIGHT.but(
                  PIXEL, "weights = torch.where(weights.sum(-1, keepdim=True) > 0, weights, torch.full_like(weights, "
                         "1 / (H * W)))\n    " + PIXEL), BORDERS,
            """A head that would look outside weights all pixels equally: a softmax does that when every score is minus
            infinity. Such a row is all zero (chapter 08)."""),
        mistake("itself where there is no neighbor", RIGHT.but(
                  ONE, ONE + "\n            weights[a * k + b, pixel[~inside], pixel[~inside]] = 1"), BORDERS,
            "A head that would look outside looks at the pixel itself instead. Outside there is nothing: such a row "
            "is all zero."),
        mistake("a softmax at the end", RIGHT.but(PIXEL, "weights = torch.softmax(weights, dim=-1)\n    " + PIXEL),
                SHIFTS,
            "The weights went through a softmax: every pixel looks a little at all. These heads look at *one* pixel "
            "each: their rows are one-hot."),
        mistake("only inside", RIGHT.but(INSIDE, "inside = (i >= r) & (i < H - r) & (j >= r) & (j < W - r)"), BORDERS,
            "Pixels near the border got nothing at all. Only the heads that would look outside are empty there; the "
            "others see what there is."),
        mistake("rows checked, columns not",
                RIGHT.but(INSIDE, "column = column % W\n            inside = (row >= 0) & (row < H)"), BORDERS,
            "Above and below the border is respected; to the left and right your heads come back in on the other "
            "side. Check both."),
        mistake("columns checked, rows not",
                RIGHT.but(INSIDE, "row = row % H\n            inside = (column >= 0) & (column < W)"), BORDERS,
            "To the left and right the border is respected; above and below your heads come back in on the other "
            "side. Check both, the rows too."),
        mistake("H taken for W, where a 1 is put",
                RIGHT.but(ONE, ONE.replace("pixel", "(i * H + j)").replace("row * W", "row * H")), SHIFTS,
            "i * H + j is not the number of a pixel. A row has W pixels: pixel (i, j) is number i * W + j. For a "
            "square image "
            "both are the same."),
        mistake("H taken for W", RIGHT.but("i, j = pixel // W, pixel % W", "i, j = pixel // H, pixel % H").but(
                  "(row * W + column)[inside]", "(row * H + column)[inside].clamp(max=H * W - 1)"), SHIFTS,
            "The pixels of a row were counted by H. A row has W pixels: pixel (i, j) is number i * W + j. For a "
            "square image both are the same."),
        mistake("H and W taken for each other", RIGHT.but("B, C, H, W = x.shape", "B, C, W, H = x.shape"), SHIFTS,
            """Height and width were read from the shape in the wrong order: an image is (B, C, H, W), rows before
            columns, and so is the output. For a square image both are the same."""),
        mistake("the mean of the heads", RIGHT.but(BACK, "total = total / (k * k)\n    " + BACK), SHIFTS,
            "The mean of the heads came back. A convolution *adds* what its cells contribute.", quotes=wrong_pixel),
        mistake("the last head alone", RIGHT.but(HEAD, "total = weights[a * k + b] @ values"), SHIFTS,
            "Only the last head arrived: each turn of the loop wrote over the one before. Add up instead.",
            quotes=wrong_pixel),
        mistake("the middle cell alone", RIGHT.but(HEAD, HEAD + " * (a == r and b == r)"), SHIFTS,
            "Only the middle cell counts: each pixel was given what it is itself. Every head adds what "
            "its neighbor has.", quotes=wrong_pixel),
        mistake("the values as they are", RIGHT.but(
                  VALUES, "values = pixels.sum(-1, keepdim=True) @ kernel[:, :, a, b].mean(1, keepdim=True).T"), SHIFTS,
            """The channels were added up before they met the kernel. Each cell is a matrix (O, C): every channel has
            its own number for every channel that comes out.""", quotes=wrong_pixel),
        mistake("the first channel alone", RIGHT.but(VALUES, "values = pixels[..., :1] @ kernel[:, :1, a, b].T"),
                SHIFTS,
            "Only channel 0 of the image was used. A cell of the kernel sums over all C channels.", quotes=wrong_pixel),
        mistake("kernel's channels exchanged", RIGHT.but("kernel[:, :, a, b].T", "kernel[:, :, a, b]"), SHIFTS,
            "A cell of the kernel is (O, C): out first, as in torch's conv2d. It met the pixels the wrong way round, "
            "which fits only where O = C."),
        mistake("pixels cut by reshape alone", RIGHT.but(PIXEL, "pixels = x.reshape(B, H * W, C)"), SHIFTS,
            """A row that should be one pixel's channels holds several pixels of one channel. Join height and width
            first, then move the channels behind.""", quotes=wrong_pixel),
        mistake("put back by reshape alone", RIGHT.but(BACK, "out = total.reshape(B, out_channels, H, W)"), SHIFTS,
            """The sum of the heads is (B, H * W, O), but reshape put it back. Channels move in front of
            the pixels first.""",
            quotes=wrong_pixel),
        mistake("a sentence of pixels", RIGHT.but(BACK, "out = total"), SHIFTS,
            "The output is still a sentence of pixels, (B, H * W, O). Put it back into an image, (B, O, H, W)."),
        mistake("the first image alone",
                RIGHT.but(BACK, "out = total[:1].expand(B, -1, -1).transpose(1, 2).reshape(B, out_channels, H, W)"),
                SHIFTS,
            "All images came out as the first one. Each image of the batch has its own pixels.", quotes=wrong_pixel),
        mistake("the image made smaller",
                RIGHT.but("return out, weights", "return out[:, :, r:H - r, r:W - r], weights"), BORDERS,
            "The border was cut off, as a convolution without padding does. The output is as large as the image; "
            "outside counts as 0."),
        mistake("weights as a grid of heads",
                RIGHT.but("return out, weights", "return out, weights.reshape(k, k, H * W, H * W)"), SHIFTS,
            "The heads are still in a grid (k, k). Return one axis: (k * k, H * W, H * W), row by row."),
        mistake("weights of images", RIGHT.but("return out, weights", "return out, weights.reshape(k * k, H, W, H, W)"),
                SHIFTS,
            "Pixels of the weights are still (H, W) twice. Count them row by row: (k * k, H * W, H * W)."),
        mistake("weights for each image", RIGHT.but("return out, weights", "return out, weights.expand(B, -1, -1, -1)"),
                SHIFTS,
            "The weights have a batch axis. They are the same for every image: (k * k, H * W, H * W)."),
        mistake("weights in float32", RIGHT.but(", dtype=x.dtype", "").but(
                  "weights[a * k + b] @ values", "weights[a * k + b].to(x.dtype) @ values"), SHIFTS,
            "The weights are float32 whatever x is. They have the dtype of x, like the output."),
        mistake("weights as truth values", RIGHT.but("return out, weights", "return out, weights.bool()"), SHIFTS,
            "The weights came back as True and False. Return numbers, 0 and 1, of the dtype of x."),
        KERNEL_IN_WEIGHTS(RIGHT.but("return out, weights", "return out, weights * kernel[0, 0].reshape(-1, 1, 1)"),
            SHIFTS),
        KERNEL_IN_WEIGHTS(RIGHT.but(VALUES, "values = pixels @ kernel[:, :, a, b].T / kernel[0, 0, a, b]").but(
                  PIXEL, "weights = weights * kernel[0, 0].reshape(-1, 1, 1)\n    " + PIXEL),
            SHIFTS, name="the kernel in the weights, for both"),
        families.WEIGHTS_NOT_RETURNED(RIGHT.but("return out, weights", "return out"), SHIFTS, result="output"),
        mistake("weights first", RIGHT.but("return out, weights", "return weights, out"), SHIFTS,
            "The pair is the wrong way round: the output comes first, then the weights."),
        mistake("no check of k", RIGHT.but(CHECK, ""), SHIFTS,
            "A 2 by 2 kernel was accepted. It has no middle cell to place on the pixel: raise a ValueError."),
        mistake("an assert in place of ValueError", RIGHT.but(CHECK, "assert k % 2 == 1\n    "), SHIFTS,
            "k is checked, but by assert, which raises AssertionError (and is skipped with python -O). "
            "The task asks for a ValueError."),
        mistake("always 3 by 3", RIGHT.but("kernel.shape[0], kernel.shape[-1]", "kernel.shape[0], 3").but(
                  CHECK, 'if kernel.shape[-1] % 2 == 0:\n        raise ValueError("k must be odd")\n    '), SHIFTS,
            "k was taken for 3, whatever the kernel is. Its last axis says it."),
        mistake("a kernel larger than the image refused",
                RIGHT.but("if k % 2 == 0:", "if k % 2 == 0 or k > 2 * H + 1 or k > 2 * W + 1:"), BORDERS,
            "A ValueError comes for a kernel that is larger than the image. Its far cells look outside, where there "
            "is nothing; the others work."),
        mistake("weights written while they are used", RIGHT.but(ONE, ONE + """
            seen = x.reshape(B, C, H * W).transpose(1, 2) @ kernel[:, :, a, b].T
            parts = (weights[a * k + b] @ seen) + (parts if a + b else 0)""").but(PIXEL,
                "total = parts").without("total = 0").but(MIXING, ""), SHIFTS,
            """The numbers are right, but the way back stops: a head's weights were used in a product, and then the same
            tensor was written into, for the next head. Fill all of the weights first and mix afterwards, or stack one
            tensor for each head."""),
        *usual_mistakes(RIGHT, arguments="x kernel", detached=SHIFTS, float32=SHIFTS, single=SHIFTS, squeezed=SHIFTS,
                        viewed=SHIFTS),
    ),
    correct=(
        correct("each head by an index", RIGHT),
        correct("loops over pixels", """
            def conv_as_attention(x, kernel):
                B, C, H, W = x.shape
                out_channels, k = kernel.shape[0], kernel.shape[-1]
                if k % 2 == 0:
                    raise ValueError("k must be odd")
                r = k // 2
                weights = torch.zeros(k * k, H * W, H * W, dtype=x.dtype)
                for a in range(k):
                    for b in range(k):
                        for i in range(H):
                            for j in range(W):
                                row, column = i + a - r, j + b - r
                                if 0 <= row < H and 0 <= column < W:
                                    weights[a * k + b, i * W + j, row * W + column] = 1
                pixels = x.reshape(B, C, H * W).transpose(1, 2)
                total = 0
                for a in range(k):
                    for b in range(k):
                        values = pixels @ kernel[:, :, a, b].T
                        total = total + weights[a * k + b] @ values
                out = total.transpose(1, 2).reshape(B, out_channels, H, W)
                return out, weights
        """),
        correct("shifted diagonals", """
            def conv_as_attention(x, kernel):
                B, C, H, W = x.shape
                O, _, k, _ = kernel.shape
                if k % 2 != 1:
                    raise ValueError(f"k: expected an odd number, got {k}")
                r = k // 2
                index = torch.arange(H * W)
                i, j = index // W, index % W
                heads = []
                for a in range(-r, r + 1):
                    for b in range(-r, r + 1):
                        same = (i[None, :] == i[:, None] + a) & (j[None, :] == j[:, None] + b)
                        heads.append(same.to(x.dtype))
                weights = torch.stack(heads)
                cells = kernel.flatten(2)
                out = torch.einsum('hqk,bck,och->boq', weights, x.flatten(2), cells)
                return out.reshape(B, O, H, W), weights
        """),
        correct("rows and columns apart, by kron", """
            def conv_as_attention(x, kernel):
                B, C, H, W = x.shape
                k = kernel.shape[2]
                if not k % 2:
                    raise ValueError
                shift = lambda n, d: torch.diag(torch.ones(max(n - abs(d), 0), dtype=x.dtype),
                    d) if abs(d) < n else torch.zeros(n, n, dtype=x.dtype)
                weights = torch.stack([torch.kron(shift(H, a - k // 2), shift(W, b - k // 2)) for a in range(k)
                    for b in range(k)])
                gathered = weights @ x.flatten(2).mT[:, None]
                out = torch.einsum('bhpc,och->bop', gathered, kernel.flatten(2))
                return out.reshape(B, -1, H, W), weights
        """),
        correct("unfold for the output, one-hot for the weights", """
            def conv_as_attention(x, kernel):
                B, C, H, W = x.shape
                k = kernel.size(-1)
                if k % 2 == 0:
                    raise ValueError("even")
                r = k // 2
                numbers = torch.arange(1, H * W + 1, dtype=torch.float64).reshape(1, 1, H, W)
                looked = F.unfold(numbers, k, padding=r)[0].long()
                weights = F.one_hot(looked, H * W + 1)[..., 1:].to(x.dtype)
                columns = F.unfold(x, k, padding=r)
                out = kernel.reshape(kernel.size(0), -1) @ columns
                return out.reshape(B, -1, H, W), weights
        """),
        correct("a padded grid of numbers, and a pair as a list", """
            def conv_as_attention(x, kernel):
                B, C, H, W = x.shape
                k = kernel.shape[3]
                if k % 2 == 0:
                    raise ValueError("a middle cell is needed")
                r = k // 2
                grid = torch.full((H + 2 * r, W + 2 * r), H * W)
                grid[r:r + H, r:r + W] = torch.arange(H * W).reshape(H, W)
                eye = torch.cat([torch.eye(H * W, dtype=x.dtype), torch.zeros(1, H * W, dtype=x.dtype)])
                weights = torch.stack([eye[grid[a:a + H, b:b + W].flatten()] for a in range(k) for b in range(k)])
                flat = x.permute(0, 2, 3, 1).reshape(B, H * W, C)
                out = sum(weights[n] @ flat @ kernel[:, :, n // k, n % k].T for n in range(k * k))
                return out.permute(0, 2, 1).reshape(B, -1, H, W), weights
        """),
        correct("all loops, numbers one by one", """
            def conv_as_attention(x, kernel):
                B, C, H, W = x.shape
                O, k = kernel.shape[0], kernel.shape[2]
                if k // 2 * 2 == k:
                    raise ValueError("odd, please")
                weights = x.new_zeros(k * k, H * W, H * W)
                out = []
                for p in range(H * W):
                    here = torch.zeros(B, O, dtype=x.dtype)
                    for head in range(k * k):
                        row, column = p // W + head // k - k // 2, p % W + head % k - k // 2
                        if row in range(H) and column in range(W):
                            weights[head, p, row * W + column] = 1.0
                            here = here + x[:, :, row, column] @ kernel[:, :, head // k, head % k].T
                    out.append(here)
                return torch.stack(out, dim=-1).reshape(B, O, H, W), weights
        """),
        correct("weights by a softmax of large scores, emptied outside", """
            def conv_as_attention(x, kernel):
                B, C, H, W = x.shape
                k = kernel.shape[-1]
                if k % 2 == 0:
                    raise ValueError("k must be odd")
                rows, columns = torch.meshgrid(torch.arange(H), torch.arange(W), indexing='ij')
                places = torch.stack([rows.flatten(), columns.flatten()], -1).to(x.dtype)
                weights = []
                for a in range(k):
                    for b in range(k):
                        wanted = places + torch.tensor([a - k // 2, b - k // 2], dtype=x.dtype)
                        far = ((wanted[:, None] - places[None]) ** 2).sum(-1)
                        weights.append(torch.softmax(-1000 * far, -1) * (far.min(-1, keepdim=True).values == 0))
                weights = torch.stack(weights)
                values = torch.einsum('bcp,ocn->bnpo', x.flatten(2), kernel.flatten(2))
                return (weights @ values).sum(1).mT.reshape(B, -1, H, W), weights
        """),
    ),
    hints=(
        "which pixel does the upper left cell of the kernel multiply, seen from the pixel in the middle? And what "
        "is that pixel's number, when pixels are counted row by row?",
        "weights (k * k, H * W, H * W); pixels (B, H * W, C); a cell of the kernel (O, C) turns them into values (B, "
        "H * W, O); a head's weights "
        "times values keep that shape.",
        "for every cell (a, b) and every pixel (i, j): the neighbor is (i + a - k//2, j + b - k//2); if it is inside, "
        "put a 1 there. "
        "Then add up, over the cells, the head's weights times the pixels times the cell transposed; channels first, "
        "cut into H and W.",
    ),
)  # fmt: skip
