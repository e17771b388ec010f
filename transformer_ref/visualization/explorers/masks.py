"""Chapter 08: who may look at whom, by the learner's masks and `masked_attention`, with pads and earlier words."""

from collections.abc import Callable
from typing import Any

import torch
from ipywidgets import Checkbox, IntSlider, VBox

from transformer_ref.visualization.drawing import Drawing
from transformer_ref.visualization.explorers.panel import WIDE, NotYet, ask, panel
from transformer_ref.visualization.heat_map import heat_map

PAD, WORD = 0, 5  # ids
MOST = 8  # words that ask


def explorer(
    padding_mask: Callable[..., Any], causal_mask: Callable[..., Any], masked_attention: Callable[..., Any]
) -> VBox:
    """Return the panel: the masks that are on, the number of queries, of earlier tokens, and of pads at the end."""
    controls = [
        Checkbox(value=True, description="your causal_mask"),
        Checkbox(value=True, description="your padding_mask"),
        IntSlider(value=4, min=1, max=MOST, description="words that ask", style=WIDE),
        IntSlider(value=0, min=0, max=4, description="said before (offset)", style=WIDE),
        IntSlider(value=1, min=0, max=MOST, description="pads among them", style=WIDE),
    ]

    def view(causal: bool, padding: bool, asking: int, before: int, pads: int) -> Drawing:
        length, pads = before + asking, min(pads, asking)
        ids = torch.tensor([[WORD + place for place in range(length - pads)] + [PAD] * pads])  # (1, key)
        mask = torch.ones(1, 1, asking, length, dtype=torch.bool)
        if causal:
            mask = mask & _mask(causal_mask, asking, before, size=(1, 1, asking, length))
        if padding:
            mask = mask & _mask(padding_mask, ids, PAD, size=(1, 1, asking, length))
        g = torch.Generator().manual_seed(8)
        words = torch.randn(1, 1, length, 4, generator=g)  # (1, 1, key, d_k)
        answer = ask(masked_attention, words[:, :, before:], words, words, mask)
        if not isinstance(answer, tuple | list) or len(answer) != 2:
            raise NotYet("Your masked_attention should return a pair (out, weights).")
        weights = answer[1].detach().expand(1, 1, asking, length)[0, 0]  # (query, key)
        if not bool(torch.isfinite(weights).all()):
            raise NotYet("Your masked_attention returned a weight that is not finite. Which row has nobody to look at?")
        names = [f"{place}" if token != PAD else "pad" for place, token in enumerate(ids[0].tolist())]
        closed = ~mask[0, 0] & (weights.abs() < 1e-6)  # what is hidden and yet gets a share is drawn with its share
        leaking = int((~mask[0, 0] & ~closed).sum())
        sums = ", ".join(f"{total:.2f}" for total in weights.sum(dim=-1).tolist())
        alt = f"{int(mask.sum())} of {mask.numel()} cells are open in your mask. Your rows sum to {sums}." + (
            f" {leaking} closed cells get a weight." if leaking else ""
        )
        return heat_map(weights, names[before:], names, alt, hidden=closed, digits=2)

    return panel("Explorer: your masks and your masked_attention, on words drawn at random", controls, view)


def _mask(function: Callable[..., Any], *arguments: Any, size: tuple[int, ...]) -> torch.Tensor:
    """Return the mask of a learner's function, broadcast to a size. Raises NotYet unless it is boolean."""
    answer, name = ask(function, *arguments), function.__name__
    if not isinstance(answer, torch.Tensor) or answer.dtype != torch.bool:
        raise NotYet(f"Your {name} should return a boolean tensor.")
    try:
        return answer.expand(size)
    except RuntimeError as error:
        raise NotYet(f"Your {name} returned the shape {tuple(answer.shape)}, which does not fit {size}.") from error
