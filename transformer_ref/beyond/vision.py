"""Attention that looks at images (chapter 14): patches as words, pixels that look at pixels, convolution as attention.

An image is (batch, channels, height, width). Its pixels and its patches are read as a page is: row by row.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from transformer_ref.model.attention import AttentionResult, attend
from transformer_ref.model.encoder import EncoderLayer
from transformer_ref.model.positional_encoding import LearnedPositions
from transformer_ref.model.softmax import softmax
from transformer_ref.shapes import expect_shape

SPREAD = 0.02  # of the class token's first numbers


def patchify(img: Tensor, p: int) -> Tensor:
    """Return an image as a sentence of patches, row by row.

    img: (batch, channels, height, width); p: the side of a patch, which divides height and width.
    Returns (batch, patch, channels * p * p): inside a patch channel by channel, each of them row by row.
    Raises ValueError when p does not divide the height or the width (Dosovitskiy et al. 2021, section 3.1).
    """
    expect_shape("img", img, "batch", "channels", "height", "width")
    batch, channels, height, width = img.shape
    if p < 1 or height % p or width % p:
        raise ValueError(f"p: expected a divisor of height {height} and width {width}, got {p}")
    rows, columns = height // p, width // p
    cut = img.reshape(batch, channels, rows, p, columns, p)  # (batch, channels, row, p, column, p)
    together = cut.permute(0, 2, 4, 1, 3, 5)  # (batch, row, column, channels, p, p)
    return together.reshape(batch, rows * columns, channels * p * p)  # (batch, patch, channels * p * p)


def unpatchify(patches: Tensor, p: int, height: int, width: int) -> Tensor:
    """Return the image that `patchify` cut: (batch, patch, channels * p * p) to (batch, channels, height, width).

    Raises ValueError when the patches are not as many, or not as long, as such an image has.
    """
    if p < 1:
        raise ValueError(f"p: expected at least 1, got {p}")
    rows, columns = height // p, width // p
    expect_shape("patches", patches, "batch", rows * columns, "features")
    batch, _, features = patches.shape
    if features % (p * p) or (rows * p, columns * p) != (height, width):
        raise ValueError(f"patches: expected ({height}, {width}) cut by {p}, got patches of {features} numbers")
    together = patches.reshape(batch, rows, columns, -1, p, p)  # (batch, row, column, channels, p, p)
    return together.permute(0, 3, 1, 4, 2, 5).reshape(batch, -1, height, width)  # (batch, channels, height, width)


class ViTResult(NamedTuple):
    """A ViT's logits for each image, and the attention weights of each head."""

    logits: Tensor  # (batch, classes)
    weights: list[Tensor]  # one (batch, heads, 1 + patch, 1 + patch) a layer


class ViT(nn.Module):
    """Patches, a class token in front, learned positions, the encoder's layers, a head on the class token.

    image, patch: sides of the square image and its patches, in pixels; classes: number of outputs.
    Layers are those of chapter 09 in pre-norm, with a last norm (Dosovitskiy et al. 2021, equations 1 to 4; GELU
    there, ReLU here). Raises ValueError when `patch` does not divide `image` or d_model is not a multiple of h.
    """

    def __init__(
        self,
        image: int,
        patch: int,
        channels: int,
        d_model: int,
        h: int,
        layers: int,
        d_ff: int,
        classes: int,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if patch < 1 or image % patch:
            raise ValueError(f"patch: expected a divisor of image ({image}), got {patch}")
        self.image, self.patch, self.channels = image, patch, channels
        self.project = nn.Linear(channels * patch * patch, d_model)  # a patch becomes a word
        self.class_token = nn.Parameter(torch.randn(d_model) * SPREAD)
        self.positions = LearnedPositions(1 + (image // patch) ** 2, d_model)
        self.dropout = nn.Dropout(dropout)
        self.layers = nn.ModuleList(EncoderLayer(d_model, h, d_ff, dropout, norm_first=True) for _ in range(layers))
        self.norm = nn.LayerNorm(d_model)
        self.head = nn.Linear(d_model, classes)

    def forward(self, images: Tensor) -> Tensor:
        """Return the logits, (batch, classes), of images (batch, channels, image, image)."""
        return self._run(images, need_weights=False).logits

    def look(self, images: Tensor) -> ViTResult:
        """Return the logits and the weights of every layer; token 0 is the class token."""
        return self._run(images, need_weights=True)

    def _run(self, images: Tensor, need_weights: bool) -> ViTResult:
        expect_shape("images", images, "batch", self.channels, self.image, self.image)
        words = self.project(patchify(images, self.patch))  # (batch, patch, d_model)
        first = self.class_token.expand(len(words), 1, -1)  # (batch, 1, d_model)
        x = self.positions(torch.cat([first, words], dim=1))  # (batch, 1 + patch, d_model)
        x = self.dropout(x)
        looked = []
        for layer in self.layers:
            x, weights = layer(x, need_weights=need_weights)
            if need_weights:
                looked.append(weights)  # (batch, heads, 1 + patch, 1 + patch)
        return ViTResult(self.head(self.norm(x[:, 0])), looked)


def pixel_attention(x: Tensor, Wq: Tensor, Wk: Tensor, Wv: Tensor) -> AttentionResult:
    """Return the attention output of each pixel over all pixels, and the weights.

    x: (batch, channels, height, width); Wq, Wk: (C', channels) and Wv: (channels, channels), kernels of size 1x1.
    Returns an image shaped like x and weights (batch, pixel, pixel), one row per query. The scores are not divided by a
    root (Zhang et al. 2019, section 3).
    """
    expect_shape("x", x, "batch", "channels", "height", "width")
    channels = x.shape[1]
    expect_shape("Wq", Wq, "features", channels)
    expect_shape("Wk", Wk, Wq.shape[0], channels)
    expect_shape("Wv", Wv, channels, channels)
    pixels = x.flatten(start_dim=2).transpose(1, 2)  # (batch, pixel, channels)
    query, key, value = pixels @ Wq.T, pixels @ Wk.T, pixels @ Wv.T  # (batch, pixel, C' or channels)
    weights = softmax(query @ key.transpose(1, 2), dim=-1)  # (batch, pixel, pixel)
    gathered = attend(weights, value)  # (batch, pixel, channels)
    return AttentionResult(gathered.transpose(1, 2).reshape(x.shape), weights)


def sagan_attention(x: Tensor, Wq: Tensor, Wk: Tensor, Wv: Tensor, gamma: Tensor | float) -> Tensor:
    """Return x + gamma * self-attention between pixels: (batch, channels, height, width), as x.

    x, Wq, Wk, Wv: as in `pixel_attention`; gamma: one number, learned, 0 when training begins
    (Zhang et al. 2019, equation 3).
    """
    return x + gamma * pixel_attention(x, Wq, Wk, Wv).output  # (batch, channels, height, width)


def shift_weights(height: int, width: int, k: int) -> Tensor:
    """Return the weights of k * k heads, each of which attends to one neighbor: (k * k, pixel, pixel), one-hot.

    Head (a, b), counted row by row, attends a - k // 2 rows down and b - k // 2 columns to the right. Where that lies
    outside the image a row is all zero. Raises ValueError when k is not an odd number.
    """
    if k < 1 or k % 2 == 0:
        raise ValueError(f"k: expected an odd number, got {k}")
    reach = k // 2
    place = torch.arange(height * width)
    row, column = place // width, place % width  # (pixel,)
    weights = torch.zeros(k * k, height * width, height * width)
    for head in range(k * k):
        to_row, to_column = row + head // k - reach, column + head % k - reach  # (pixel,)
        inside = (to_row >= 0) & (to_row < height) & (to_column >= 0) & (to_column < width)  # (pixel,)
        weights[head, place[inside], (to_row * width + to_column)[inside]] = 1
    return weights


def conv_as_attention(x: Tensor, kernel: Tensor) -> AttentionResult:
    """Return the convolution of x, computed by attention heads that each attend to one neighbor, and the weights.

    x: (batch, channels, height, width); kernel: (out, channels, k, k), k odd, as `torch.nn.functional.conv2d` reads it
    with zeros around the image. Returns (batch, out, height, width) and weights (k * k, pixel, pixel), from
    `shift_weights`. Each cell of the kernel is the value matrix of one head (Cordonnier et al. 2020, theorem 1).
    Raises ValueError when the kernel is not square, or k is even.
    """
    expect_shape("x", x, "batch", "channels", "height", "width")
    batch, channels, height, width = x.shape
    expect_shape("kernel", kernel, "out", channels, "k", "k")
    out, _, k, _ = kernel.shape
    expect_shape("kernel", kernel, out, channels, k, k)
    weights = shift_weights(height, width, k).to(x)  # (head, pixel, pixel)
    pixels = x.flatten(start_dim=2).transpose(1, 2)  # (batch, pixel, channels)
    cells = kernel.flatten(start_dim=2).permute(2, 1, 0)  # (head, channels, out)
    heads = weights @ (pixels[:, None] @ cells)  # (batch, head, pixel, out)
    together = heads.sum(dim=1)  # (batch, pixel, out)
    return AttentionResult(together.transpose(1, 2).reshape(batch, out, height, width), weights)
