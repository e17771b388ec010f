"""Chapter 10: the learner's learning rate over a training run, and what their loss makes of one answer."""

from collections.abc import Callable
from typing import Any

import torch
from ipywidgets import FloatSlider, IntSlider, VBox

from transformer_ref.visualization.curves import curves
from transformer_ref.visualization.drawing import Drawing
from transformer_ref.visualization.explorers.panel import WIDE, NotYet, number_from, panel, shares_from

STEPS, STRETCH = 20_000, 200  # of the training that is drawn: its length, and the steps from point to point
VOCABULARY, PAD, RIGHT = 6, 0, 3
SMALLEST = 1e-9  # a share whose logarithm is taken


def explorer(noam_lr: Callable[..., Any], smooth_targets: Callable[..., Any], masked_ce: Callable[..., Any]) -> VBox:
    """Return the panel: width and warm-up of the schedule, smoothing of a target, confidence of a prediction."""
    controls = [
        IntSlider(value=512, min=64, max=1024, step=64, description="d", style=WIDE),
        IntSlider(value=4_000, min=100, max=10_000, step=100, description="warm-up", style=WIDE),
        FloatSlider(value=0.1, min=0.0, max=0.5, step=0.05, description="smoothing ε", style=WIDE),
        FloatSlider(value=3.0, min=0.0, max=9.0, step=0.5, description="logit of the answer", style=WIDE),
    ]

    def view(d: int, warm_up: int, eps: float, logit: float) -> Drawing:
        steps = sorted({1, warm_up, *range(STRETCH, STEPS + 1, STRETCH)})
        rates = [(step, number_from(noam_lr, step, d, warm_up)) for step in steps]
        peak, highest = max((rate, step) for step, rate in rates)
        alt = (
            f"Your rate is {rates[0][1]:.2e} at step 1, largest at step {highest:,} with {peak:.2e}, and "
            f"{rates[-1][1]:.2e} at step {STEPS:,}. {_priced(smooth_targets, masked_ce, eps, logit)}"
        )
        return curves({"your noam_lr": rates}, alt, "step", "learning rate")

    return panel("Explorer: your noam_lr; below, your targets and your loss", controls, view)


def _priced(smooth_targets: Callable[..., Any], masked_ce: Callable[..., Any], eps: float, logit: float) -> str:
    """Return sentences about one prediction: the learner's target, their loss, and the effect of the target."""
    labels = torch.tensor([[RIGHT, PAD]])  # (1, place)
    logits = torch.zeros(1, 2, VOCABULARY)
    logits[..., 2], logits[..., RIGHT] = 1.0, logit
    said = f"The scores 0, 0, 1, {logit:g}, 0, 0 for token {RIGHT}, and a pad behind it: "
    try:
        said += f"your masked_ce is {number_from(masked_ce, logits.clone(), labels.clone(), PAD):.3f}"
        size = (*labels.shape, VOCABULARY)
        target = shares_from(smooth_targets, labels.clone(), VOCABULARY, eps, PAD, shape=size)[0, 0]  # (token,)
    except NotYet as reason:
        return str(reason)
    log_p = logits[0, 0].log_softmax(dim=-1)  # (token,)
    smooth = -(target * log_p).sum().item()
    lowest = -(target * target.clamp(min=SMALLEST).log()).sum().item()
    told = ", ".join(f"{share:.3f}" for share in target.tolist())
    return f"{said}; against your target ({told}) the loss is {smooth:.3f}, and {lowest:.3f} at the lowest."
