"""14.1: an image cut into a sentence of patches."""

import torch
from torch import Tensor

from autograder.catalogue import families
from autograder.catalogue.ch14_vision.shared import counted, labeled, sections, wrong_patch
from autograder.catalogue.exercise import Case, Exercise
from autograder.catalogue.families import usual_mistakes
from autograder.catalogue.known_answers import answer, correct, mistake
from autograder.catalogue.probes import FAR, hidden, normal, usual_probes, visible
from autograder.catalogue.quotes import sizes
from transformer_ref.beyond import vision

PATCHES, STRIPES = sections("patches stripes")


def patchify(img: Tensor, p: int) -> Tensor:
    """An image as a sequence: one row for each patch of p times p pixels."""
    return vision.patchify(img, p)


def inputs(
    g: torch.Generator, B: int, C: int, rows: int, columns: int, p: int, dtype: torch.dtype = torch.float32
) -> Case:
    """An image of this many rows and columns of patches."""
    return Case((normal(g, B, C, rows * p, columns * p, dtype=dtype), p))


def far_away(g: torch.Generator) -> Case:
    return Case((normal(g, 2, 3, 4, 6, dtype=torch.float64) + FAR, 2))


def indivisible(g: torch.Generator, H: int, W: int, p: int) -> Case:
    return Case((normal(g, 2, 3, H, W), p))


RIGHT = answer("""
    def patchify(img, p):
        B, C, H, W = img.shape
        if H % p != 0 or W % p != 0:
            raise ValueError("p must divide the height and the width")
        cut = img.reshape(B, C, H // p, p, W // p, p)
        moved = cut.permute(0, 2, 4, 1, 3, 5)
        patches = moved.reshape(B, (H // p) * (W // p), C * p * p)
        return patches
""")
CUT, MOVE, JOIN = RIGHT.splitlines()[4:7]
CUT, MOVE, JOIN = CUT.strip(), MOVE.strip(), JOIN.strip()
CHECK = 'if H % p != 0 or W % p != 0:\n        raise ValueError("p must divide the height and the width")\n    '
ORDER = "(0, 2, 4, 1, 3, 5)"


def whole(line: str):
    """The answer that checks p and has one line for everything else."""
    return RIGHT.without(CUT).without(MOVE).but(JOIN, line)


EXERCISE = Exercise(
    id="patchify", number="14.1", difficulty=2, minutes=20, visible_points=2, hidden_points=3,
    reference=patchify, section=PATCHES, quotes=wrong_patch,
    probes=(
        visible("16 pixels, 4 patches", Case((counted(4, 4), 2))),
        visible("numbers that say where they were", Case((labeled(2, 3, 4, 6), 2))),
        visible("patches of 3 pixels, drawn numbers", inputs, 2, 2, 1, 4, 3),
        visible("5 rows, patches of 2", indivisible, 5, 4, 2),
        visible("7 columns, patches of 3", indivisible, 6, 7, 3),
        visible("4 rows, 9 columns, patches of 6", indivisible, 4, 9, 6),
        *usual_probes(inputs, other=(3, 2, 4, 2, 3), smallest=(1, 1, 1, 1, 1), common=(2, 3, 3, 2, 4),
                      precise=far_away),
        hidden("a patch is one pixel", inputs, 2, 3, 4, 5, 1, announced_by="p: the side of a patch, 1 or more"),
        hidden("one patch is the whole image", inputs, 2, 5, 1, 1, 16,
               announced_by="p: the side of a patch, 1 or more"),
        hidden("as many channels as pixels in a side", inputs, 2, 4, 3, 2, 4, announced_by="channel by channel"),
        hidden("8 rows, 6 columns, patches of 4", indivisible, 8, 6, 4,
               announced_by="Raises ValueError when p does not divide both H and W"),
    ),
    mistakes=(
        mistake("view alone", whole("patches = img.reshape(B, (H // p) * (W // p), C * p * p)"), STRIPES,
            """The shape is correct, but the patches are *stripes*: reshape keeps the order of the values in memory, one
            row of pixels after the other, channel after channel. Split height and width in two axes each; then
            *permute* the axes, so that the values of one patch are next to each other; then join them."""),
        mistake("channels last", RIGHT.but(ORDER, "(0, 2, 4, 3, 5, 1)"), PATCHES,
            """Inside a patch your numbers go pixel by pixel, all channels of the first one first. Here a patch is
            channel by channel: all pixels of channel 0, then all of channel 1."""),
        mistake("pixels inside a patch column by column", RIGHT.but(ORDER, "(0, 2, 4, 1, 5, 3)"), PATCHES,
            """The patches are right and the pixels inside are read column by column: a patch came out reflected along
            its diagonal. Read it as a page is: row by row."""),
        mistake("patches column by column", RIGHT.but(ORDER, "(0, 4, 2, 1, 3, 5)"), PATCHES,
            """Each patch is right, and they are counted down the columns: your second patch is *below* the first. Count
            row by row: the second patch is to the right of the first."""),
        mistake("height and width exchanged", RIGHT.but(ORDER, "(0, 4, 2, 1, 5, 3)"), PATCHES,
            "The image was read down its columns, the patches and the pixels inside them: as if it had been "
            "transposed. Rows come first in both."),
        mistake("places inside before places of patches", RIGHT.but(ORDER, "(0, 3, 5, 1, 2, 4)"), STRIPES,
            """Every p-th pixel was taken: a row of yours holds one pixel of *each* patch. After cutting H into (H/p, p)
            the first of the two counts patches, the second counts pixels inside one."""),
        mistake("cut into p pieces", RIGHT.but("B, C, H // p, p, W // p, p)", "B, C, p, H // p, p, W // p)").but(
                  ORDER, "(0, 3, 5, 1, 2, 4)"), STRIPES,
            """Every (H/p)-th pixel was taken, from all over the image: H was cut into p pieces instead of pieces of p.
            Neighbors belong together: (H/p, p), in this order."""),
        mistake("batch and patches mixed", RIGHT.but(MOVE, "moved = cut.permute(2, 4, 0, 1, 3, 5)"), PATCHES,
            "The patches came before the images, so a sentence of yours holds patches of *several images*. The batch "
            "axis stays in front."),
        mistake("batch behind the patches",
                RIGHT.but(JOIN, "patches = moved.reshape(B, (H // p) * (W // p), C * p * p).transpose(0, 1)"), PATCHES,
            "The patches came first and the images second. The batch stays in front: (B, N, C * p * p)."),
        mistake("channels beside the batch", RIGHT.but(ORDER, "(0, 1, 2, 4, 3, 5)"), STRIPES,
            """The channels were left in front of the patches, so one patch of yours holds pixels of one channel from
            several places. A patch takes its pixels from *every* channel: the channels belong inside it."""),
        mistake("a patch for each channel", RIGHT.but(ORDER, "(0, 1, 2, 4, 3, 5)").but(
                  "(H // p) * (W // p), C * p * p", "C * (H // p) * (W // p), p * p"), PATCHES,
            "Each channel gave patches of its own: C times as many, of p * p numbers. One patch holds all channels of "
            "its place."),
        mistake("features before patches", RIGHT.ending_in(".transpose(1, 2)"), PATCHES,
            """The numbers of a patch came before the patches: (B, C * p * p, N), which is also how torch's unfold
            answers. A sentence is (B, N, features): one row for each patch."""),
        mistake("what unfold answers, cut anew",
                whole("patches = F.unfold(img, p, stride=p).reshape(B, -1, C * p * p)"), PATCHES,
            """unfold returns (B, C * p * p, N), and you reshaped that: a row of yours holds one position of several
            patches. Exchange the last two axes; reshape moves nothing."""),
        mistake("patches as a grid", RIGHT.but(JOIN, "patches = moved.reshape(B, H // p, W // p, C * p * p)"), PATCHES,
            "The patches are still in a grid of rows and columns. A sentence has one axis of words: (B, N, C * p * "
            "p)."),
        mistake("patches as small images", RIGHT.but(JOIN, "patches = moved.reshape(B, (H // p) * (W // p), C, p, p)"),
                PATCHES,
            "The patches are still small images (C, p, p). A word is one row of numbers: join these three axes."),
        mistake("p patches a side", RIGHT.before(CUT, "p = H // p"), PATCHES,
            "p was taken for the *number* of patches in a row. It is the side of a patch in pixels; the number is H "
            "divided by it."),
        mistake("width taken for height", RIGHT.but(CUT, "W = H\n    img = img[:, :, :, :H]\n    " + CUT), PATCHES,
            "You count as many patches to the right as down, H/p both times: right only for a square image. Here H "
            "and W differ."),
        mistake("the first image alone", RIGHT.but(JOIN, "patches = moved[0].reshape((H // p) * (W // p), C * p * p)"),
                PATCHES,
            "One image came back: the batch axis is gone."),
        mistake("the first channel alone",
                RIGHT.but(JOIN, "patches = moved[:, :, :, 0].reshape(B, (H // p) * (W // p), p * p)"), PATCHES,
            "Only channel 0 came back. A patch holds all channels, one after the other."),
        mistake("the mean of each patch", RIGHT.ending_in(".mean(-1, keepdim=True)"), PATCHES,
            "A patch became one number, its mean. All of its C * p * p numbers are kept; a projection comes later."),
        mistake("patches that overlap",
                RIGHT.without(CUT).without(MOVE).but(JOIN, "patches = F.unfold(img, p).transpose(1, 2)"), PATCHES,
            """The patches overlap: each begins one pixel after the one before. Patches are side by side: the next
            begins p pixels further. (unfold takes a stride.)"""),
        mistake("steps of one pixel",
                whole("patches = torch.stack([img[:, :, i:i + p, j:j + p].flatten(1) for i in range(H // p) for j in "
                      "range(W // "
                                          "p)], dim=1)"), PATCHES,
            """There are as many patches as there should be, and all come from the upper left corner: each begins one
            pixel after the one before. The next begins p pixels further."""),
        mistake("the last patches missing",
                whole("patches = torch.stack([img[:, :, i:i + p, j:j + p].flatten(1) for i in range(0, "
                      "max(H - p, 1), p) "
                                                "for j in range(0, max(W - p, 1), p)], dim=1)"), PATCHES,
            "The last patches of each row and column are missing: your loop stops one patch too early. They begin at "
            "H - p and W - p."),
        mistake("images among the numbers of a patch",
                whole("patches = torch.stack([img[:, :, i:i + p, j:j + p].flatten() for i in range(0, H, p) "
                                                           "for j in range(0, W, p)])"), PATCHES,
            """A row holds the patches of *all* images at once: flattening took the batch axis too. Flatten from the
            channels on, and keep (B, N, C * p * p)."""),
        mistake("p pieces a side",
                whole("patches = torch.stack([q.flatten(1) for r in img.chunk(p, 2) for q in r.chunk(p, 3)], dim=1)"),
                PATCHES,
            """The image was cut into p pieces a side. p is the side of one *piece*, in pixels: there are H / p of them
            down and W / p to the right. (chunk takes how many, split takes how long.)"""),
        mistake("channels moved behind, then cut",
                whole("patches = img.permute(0, 2, 3, 1).reshape(B, (H // p) * (W // p), C * p * p)"), STRIPES,
            """The channels were moved, height and width were not cut: your patches are *stripes*, pixel after pixel
            along a row of the image. Cut height and width in two each first."""),
        mistake("channels last, and down the columns", RIGHT.but(ORDER, "(0, 4, 2, 3, 5, 1)"), PATCHES,
            """Two things. Inside a patch your numbers go pixel by pixel, and should go channel by channel. And patches
            are counted down the columns, and should be counted row by row."""),
        mistake("H and W taken for each other", RIGHT.but("B, C, H, W = img.shape", "B, C, W, H = img.shape"), PATCHES,
            """Height and width were read from the shape in the wrong order: an image is (B, C, H, W), rows before
            columns. For a square image both are the same."""),
        mistake("as many columns as rows", RIGHT.but(CUT, CUT.replace("W // p", "H // p")), PATCHES,
            "You cut the width into as many pieces as the height: right only for a square image. There "
            "are W/p of them."),
        mistake("through NumPy", RIGHT.but("return patches", "return torch.from_numpy(patches.numpy().copy())"),
                PATCHES,
            """The values are right, and nothing can be learned through them: NumPy knows no gradients, and refuses a
            tensor that needs one. torch has the same operations."""),
        mistake("patches in the opposite order", RIGHT.ending_in(".flip(1)"), PATCHES,
            "The patches are in the opposite order: the first is the one in the upper left corner."),
        mistake("divided by 255", RIGHT.ending_in(" / 255"), PATCHES,
            "The numbers were divided by 255. They only move; none of them changes."),
        families.A_SIZE_THAT_IS_A_FLOAT(RIGHT.but("H // p, p, W // p, p)", "H / p, p, W / p, p)"), PATCHES),
        mistake("a list of patches", RIGHT.but("return patches", "return list(patches.unbind(1))"), PATCHES,
            "A Python list of patches came back. Return one tensor; torch.stack makes it, and its dim says where "
            "the axis goes."),
        mistake("a list of sentences", RIGHT.but("return patches", "return list(patches)"), PATCHES,
            "A Python list came back, one entry for each image. Return one tensor: (B, N, C * p * p)."),
        mistake("unfold without a check", RIGHT.but(CHECK, "return F.unfold(img, p, stride=p).transpose(1, 2)\n    "),
                PATCHES,
            """Your code does not check whether p divides the image: unfold silently drops the rows and columns that are
            left over. Check first, and raise a ValueError."""),
        mistake("the rest cut off",
                RIGHT.but(CHECK, "H, W = H // p * p, W // p * p\n    img = img[:, :, :H, :W]\n    "), PATCHES,
            """5 rows cannot be cut into patches of 2; you dropped the row that was left over. Raise a ValueError
            instead: pixels do not vanish quietly."""),
        mistake("filled up with zeros",
                RIGHT.but(CHECK, "img = F.pad(img, (0, -W % p, 0, -H % p))\n    H, W = img.shape[2:]\n    "), PATCHES,
            """5 rows cannot be cut into patches of 2; you added a row of zeros. Raise a ValueError instead: do not add
            pixels that the image does not have."""),
        mistake("no check of the sizes", RIGHT.but(CHECK, ""), PATCHES,
            """A p that does not divide both sides was not refused, so torch stopped with an error of its own. Check H
            and W separately, before anything is cut, and raise a ValueError that says what was expected."""),
        mistake("only the height checked", RIGHT.but("H % p != 0 or W % p != 0", "H % p != 0"), PATCHES,
            "Only one side was checked: p must divide the height *and* the width. Raise a ValueError for either."),
        mistake("only the width checked", RIGHT.but("H % p != 0 or W % p != 0", "W % p != 0"), PATCHES,
            "Only the width was checked: 5 rows and patches of 2 went through. p must divide both sides."),
        mistake("both must fail", RIGHT.but("H % p != 0 or W % p != 0", "H % p != 0 and W % p != 0"), PATCHES,
            "A ValueError comes only when p divides *neither* side. Raise it as soon as one of them does not fit."),
        mistake("all pixels checked", RIGHT.but("H % p != 0 or W % p != 0", "(H * W) % (p * p) != 0"), PATCHES,
            """The number of pixels was checked instead of the two sides. 3 rows of 4 pixels are 12, which 2 * 2
            divides, and still no patch of 2 fits into 3 rows."""),
        mistake("all pixels checked, and the rest cut off",
                RIGHT.but("H % p != 0 or W % p != 0", "(H * W) % (p * p) != 0").but(
                  CUT, "img = img[:, :, :H // p * p, :W // p * p]\n    " + CUT), PATCHES,
            """The number of pixels was checked instead of the two sides, and what does not fit into a side was dropped.
            p must divide the height *and* the width."""),
        families.SIZES_ASSERTED(RIGHT.but(CHECK, "assert H % p == 0 and W % p == 0\n    "), PATCHES),
        families.ANOTHER_ERROR(RIGHT.but("ValueError", "TypeError"), PATCHES),
        mistake("None for sizes that do not fit",
                RIGHT.but('raise ValueError("p must divide the height and the width")', "return None"), PATCHES,
            "Where p does not divide the image you return None, which a caller easily overlooks. Raise a ValueError."),
        mistake("a square image asked for", RIGHT.but("H % p != 0 or W % p != 0", "H != W or H % p != 0 or W % p != 0"),
                PATCHES,
            "A ValueError comes for an image that is not square. Height and width may differ; p has to divide both."),
        *usual_mistakes(RIGHT, arguments="img", detached=PATCHES, float32=PATCHES, single=PATCHES, squeezed=PATCHES,
                        viewed=PATCHES, quotes_size=sizes),
    ),
    correct=(
        correct("reshape, permute, reshape", RIGHT),
        correct("unfold of the library", whole("patches = F.unfold(img, p, stride=p).transpose(1, 2)")),
        correct("unfold of tensors", whole(
            "patches = img.unfold(2, p, p).unfold(3, p, p).permute(0, 2, 3, 1, 4, 5).reshape(B, -1, C * p * p)")),
        correct("einsum and flatten", RIGHT.but(MOVE, "moved = torch.einsum('bchpwq->bhwcpq', cut)").but(
            JOIN, "patches = moved.flatten(3).flatten(1, 2)")),
        correct("two transposes", RIGHT.but(MOVE, "moved = cut.transpose(3, 4).transpose(1, 2).transpose(2, 3)")),
        correct("chunks and stack", whole(
            "patches = torch.stack([q.flatten(1) for r in img.split(p, 2) for q in r.split(p, 3)], dim=1)")),
        correct("loops", """
            def patchify(image, side):
                batch, channels, height, width = image.size()
                if height % side or width % side:
                    raise ValueError(f"{height} x {width} cannot be cut by {side}")
                sentences = []
                for picture in image:
                    words = []
                    for top in range(0, height, side):
                        for left in range(0, width, side):
                            words.append(picture[:, top:top + side, left:left + side].flatten())
                    sentences.append(torch.stack(words))
                return torch.stack(sentences)
        """),
        correct("an empty tensor filled", """
            def patchify(img, p):
                B, C, H, W = img.shape
                if (H // p) * p != H or (W // p) * p != W:
                    raise ValueError
                out = img.new_zeros(B, H // p * (W // p), C * p * p)
                n = 0
                for i in range(H // p):
                    for j in range(W // p):
                        out[:, n] = img[:, :, i * p:(i + 1) * p, j * p:(j + 1) * p].reshape(B, -1)
                        n += 1
                return out
        """),
        correct("a convolution with kernels that copy", whole(
            "patches = F.conv2d(img, torch.eye(C * p * p, dtype=img.dtype).reshape(-1, C, p, p), "
            "stride=p).flatten(2).mT")),
        correct("indices gathered",
                whole("""rows = torch.arange(0, H, p)[:, None, None, None] + torch.arange(p)[:, None]
    columns = torch.arange(0, W, p)[:, None, None] + torch.arange(p)
    patches = img[:, :, rows, columns].permute(0, 2, 3, 1, 4, 5).reshape(B, -1, C * p * p)""")),
    ),
    hints=(
        "which pixels are the neighbors of pixel 1 in the first patch? How far apart are they in memory?",
        "(B, C, H, W) is cut into (B, C, H/p, p, W/p, p). Then the two that count patches come to the front: (B, H/p, "
        "W/p, C, p, p). Then (B, N, C * p * p).",
        "if p does not divide both H and W: raise ValueError. Cut both sides in two, move the axes in the order batch, "
        "row, column, "
        "channel, row inside, column inside, and join row with column (axes 1 and 2), and the last three axes.",
    ),
)  # fmt: skip
