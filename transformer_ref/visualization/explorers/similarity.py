"""Chapter 03: two arrows to turn and stretch, measured by the learner's functions."""

import math
from collections.abc import Callable
from typing import Any

import torch
from ipywidgets import FloatSlider, IntSlider, VBox

from transformer_ref.visualization.drawing import Drawing
from transformer_ref.visualization.explorers.panel import WIDE, number_from, panel, tensor_from
from transformer_ref.visualization.palette import KEY, QUERY
from transformer_ref.visualization.plane import Plane

REACH = 3  # of the longest arrow


def explorer(dot: Callable[..., Any], cosine: Callable[..., Any]) -> VBox:
    """Return the panel: direction and length of two vectors."""
    controls = [
        control
        for name, degrees, length in (("a", 0, 2.0), ("b", 45, 1.4))
        for control in (
            IntSlider(value=degrees, min=-180, max=180, step=5, description=f"{name}: degrees", style=WIDE),
            FloatSlider(value=length, min=0, max=REACH, step=0.1, description=f"{name}: length", style=WIDE),
        )
    ]

    def view(degrees_a: int, length_a: float, degrees_b: int, length_b: float) -> Drawing:
        a, b = _arrow(degrees_a, length_a), _arrow(degrees_b, length_b)
        product = number_from(dot, a.clone(), b.clone())
        angle = tensor_from(cosine, a[None], b[None], shape=(1, 1)).item()
        alt = (
            f"a = ({a[0]:.2f}, {a[1]:.2f}) and b = ({b[0]:.2f}, {b[1]:.2f}). Your dot says {product:.3f}, "
            f"your cosine {angle:.3f}."
        )
        plane = Plane((-REACH, REACH), (-REACH, REACH), alt, unit=52)
        for name, end, color in (("a", a.tolist(), QUERY), ("b", b.tolist(), KEY)):
            plane.arrow((0, 0), end, color, width=3)
            plane.label(end, name, right=8, up=8, bold=True)
        return plane.drawing

    return panel("Explorer: two arrows, your dot and your cosine", controls, view)


def _arrow(degrees: float, length: float) -> torch.Tensor:
    angle = math.radians(degrees)
    return torch.tensor([length * math.cos(angle), length * math.sin(angle)])  # (2,)
