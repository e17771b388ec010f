"""Chapter 09: the learner's encoder layers, stacked, and what the learner's `layer_norm` makes of the stream."""

from collections.abc import Callable
from typing import Any

import torch
from ipywidgets import Checkbox, IntSlider, VBox
from torch import nn

from transformer_ref.visualization.curves import curves
from transformer_ref.visualization.drawing import Drawing
from transformer_ref.visualization.explorers.panel import WIDE, NotYet, ask, panel, tensor_from

WORDS, D_MODEL, HEADS, D_FF = 6, 16, 4, 32
MOST = 12  # layers


def explorer(EncoderLayer: Callable[..., Any], layer_norm: Callable[..., Any]) -> VBox:
    """Return the panel: where the norm is, and how many of the learner's layers are stacked."""
    controls = [
        Checkbox(value=True, description="norm_first"),
        IntSlider(value=8, min=1, max=MOST, description="layers of yours", style=WIDE),
    ]

    def view(norm_first: bool, layers: int) -> Drawing:
        x = torch.randn(1, WORDS, D_MODEL, generator=torch.Generator().manual_seed(9))
        heights = [x]
        for number in range(layers):
            x = _through(EncoderLayer, x, norm_first, seed=number)
            heights.append(x)
        one, zero = torch.ones(D_MODEL), torch.zeros(D_MODEL)
        normed = tensor_from(layer_norm, x.clone(), one, zero, 1e-5, shape=x.shape)
        spreads = [[place, height.std(-1, correction=0).mean().item()] for place, height in enumerate(heights)]
        alike = _alike(x)
        alt = (
            f"The spread of a word's numbers goes from {spreads[0][1]:.2f} to {spreads[-1][1]:.2f} in {layers} layers "
            f"of yours. Two words are then alike by {alike:.2f} (1 means the same direction). Your layer_norm makes of "
            f"the last stream words of mean {abs(normed.mean(-1)).max().item():.3f} and spread "
            f"{normed.std(-1, correction=0).mean().item():.3f}."
        )
        return curves({"spread of a word": spreads}, alt, "layers of yours", "spread")

    return panel("Explorer: your layers, stacked, on words and weights drawn at random", controls, view)


def _through(EncoderLayer: Callable[..., Any], x: torch.Tensor, norm_first: bool, seed: int) -> torch.Tensor:
    """Return the output of a new layer of the learner's. Raises NotYet for another shape."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        layer = ask(EncoderLayer, D_MODEL, HEADS, D_FF, 0.0, norm_first)
    if not isinstance(layer, nn.Module):
        raise NotYet("Your EncoderLayer is not an nn.Module.")
    layer.eval()

    def encoder_layer(x: torch.Tensor) -> Any:
        with torch.no_grad():
            return layer(x, None)

    encoder_layer.__name__ = "EncoderLayer"
    return tensor_from(encoder_layer, x, shape=x.shape)


def _alike(x: torch.Tensor) -> float:
    """Return the mean cosine of two words of a sentence, (1, words, features)."""
    directions = nn.functional.normalize(x[0], dim=-1)  # (word, feature)
    return (directions @ directions.mT)[~torch.eye(len(directions), dtype=torch.bool)].mean().item()
