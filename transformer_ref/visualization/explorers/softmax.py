"""Chapter 04: a thermometer for the learner's `temperature`, next to their `softmax`."""

from collections.abc import Callable
from typing import Any

import torch
from ipywidgets import FloatSlider, VBox

from transformer_ref.visualization.bars import share_bars
from transformer_ref.visualization.drawing import Drawing
from transformer_ref.visualization.explorers.panel import WIDE, NotYet, panel, shares_from

WORDS = ("I", "closed", "the", "windows")
SAME = 1e-4  # two shares that differ by less look alike


def explorer(temperature: Callable[..., Any], softmax: Callable[..., Any]) -> VBox:
    """Return the panel: the temperature, and the score of *windows* with itself."""
    tau = FloatSlider(value=1.0, min=0.0, max=4.0, step=0.05, description="temperature τ", style=WIDE)
    score = FloatSlider(value=2.828, min=-4.0, max=12.0, step=0.1, description="score of windows", style=WIDE)

    def view(tau: float, score: float) -> Drawing:
        scores = torch.tensor([1.414, 1.414, 0.0, score])  # (word,)
        shares = shares_from(temperature, scores.clone(), tau, shape=scores.shape)
        told = ", ".join(f"{word} {share:.3f}" for word, share in zip(WORDS, shares.tolist(), strict=True))
        alt = f"At τ = {tau:.2f} your temperature gives: {told}; together {shares.sum().item():.3f}."
        return share_bars(WORDS, shares.tolist(), f"{alt} {_compared(softmax, scores, tau, shares)}".strip())

    return panel("Explorer: your temperature, and your softmax next to it", [tau, score], view)


def _compared(softmax: Callable[..., Any], scores: torch.Tensor, tau: float, shares: torch.Tensor) -> str:
    """Return a sentence about the learner's softmax of the scores divided by tau."""
    if tau == 0:
        return "All or nothing: the largest score takes everything."
    try:
        other = shares_from(softmax, scores / tau, -1, shape=scores.shape)
    except NotYet as reason:
        return str(reason)
    gap = (other - shares).abs().max().item()
    return f"Your softmax of the scores divided by τ {'says the same' if gap < SAME else f'differs by {gap:.3f}'}."
