"""Small convolutional networks for chapter 14 to compare with: one that stays local, one that sees it all."""

from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer_ref.beyond.vision import pixel_attention, sagan_attention

SHRINK = 2  # queries and keys are this much narrower than the image; 8 in Zhang et al. 2019, with far more channels


class PixelAttention(nn.Module):
    """Self-attention between pixels, added with a learned factor that starts at 0 (Zhang et al. 2019, section 3).

    channels: of the input and the output; d_k: the width of queries and keys.
    """

    def __init__(self, channels: int, d_k: int) -> None:
        super().__init__()
        self.query = nn.Parameter(torch.randn(d_k, channels) / channels**0.5)  # Wq
        self.key = nn.Parameter(torch.randn(d_k, channels) / channels**0.5)  # Wk
        self.value = nn.Parameter(torch.randn(channels, channels) / channels**0.5)  # Wv
        self.gamma = nn.Parameter(torch.zeros(()))

    def forward(self, x: Tensor) -> Tensor:
        """Return x + gamma * attention, (batch, channels, height, width)."""
        return sagan_attention(x, self.query, self.key, self.value, self.gamma)

    def weights(self, x: Tensor) -> Tensor:
        """Return the attention weights, (batch, pixel, pixel)."""
        return pixel_attention(x, self.query, self.key, self.value).weights


class LocalCNN(nn.Module):
    """Two 3x3 convolutions, a mean over 3x3, one 1x1 convolution, the mean of all, a linear head.

    A value before the last mean has a receptive field of 7x7 pixels. With `attention`, pixels attend to each other
    before the 1x1 convolution. channels, width: of the image and of the hidden layers; classes: number of outputs.
    """

    def __init__(self, channels: int, width: int, classes: int, attention: bool = False) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels, width, 3, padding=1)
        self.second = nn.Conv2d(width, width, 3, padding=1)
        self.attention = PixelAttention(width, width // SHRINK) if attention else nn.Identity()
        self.third = nn.Conv2d(width, 2 * width, 1)
        self.head = nn.Linear(2 * width, classes)

    def local(self, images: Tensor) -> Tensor:
        """Return the local features of each position, (batch, width, height / 3, width / 3)."""
        return F.avg_pool2d(self.second(self.first(images).relu()).relu(), 3)

    def forward(self, images: Tensor) -> Tensor:
        """Return the logits, (batch, classes), of images (batch, channels, height, width)."""
        places = self.third(self.attention(self.local(images))).relu()  # (batch, 2 * width, height / 3, width / 3)
        return self.head(places.mean(dim=(2, 3)))


class DeepCNN(nn.Module):
    """Four 3x3 convolutions, the image halved after three of them, so that the last one sees nearly the whole image."""

    def __init__(self, channels: int, width: int, classes: int) -> None:
        super().__init__()
        sizes = [channels, width, width, 2 * width, 2 * width]
        self.layers = nn.ModuleList(nn.Conv2d(before, after, 3, padding=1) for before, after in pairwise(sizes))
        self.head = nn.Linear(sizes[-1], classes)

    def forward(self, images: Tensor) -> Tensor:
        """Return the logits, (batch, classes), of images (batch, channels, height, width)."""
        x = images
        for number, layer in enumerate(self.layers):
            x = layer(x).relu()
            x = F.max_pool2d(x, 2) if number < len(self.layers) - 1 else x
        return self.head(x.mean(dim=(2, 3)))
