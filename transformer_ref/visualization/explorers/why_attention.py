"""Chapter 01: how long the way is, and what is left of a gradient on it, by the learner's functions."""

import io
import re
from collections.abc import Callable
from typing import Any

import torch
from ipywidgets import FloatSlider, IntSlider, VBox
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from transformer_ref.visualization.explorers.panel import WIDE, number_from, panel, tensor_from
from transformer_ref.visualization.palette import KEY, MISTAKE, QUERY, VALUE

KINDS = {"recurrent": (MISTAKE, ":"), "window": (KEY, "--"), "attention": (QUERY, "-")}
POINTS = 30  # of a curve, at most
QUARTER = torch.tensor([[0.0, -1.0], [1.0, 0.0]])  # turns, and changes no length


class Plot:
    """A figure of matplotlib on a light card, with its text alternative."""

    def __init__(self, alt: str) -> None:
        self.alt = alt
        self.figure = Figure(figsize=(7.2, 3.0), layout="constrained", facecolor="white")
        FigureCanvasSVG(self.figure)

    def to_svg(self) -> str:
        """Return the picture as one SVG element."""
        with io.StringIO() as text:
            self.figure.savefig(text, format="svg")
            svg = text.getvalue()
        own_size = re.compile(r'width="[\d.]+pt" height="[\d.]+pt"')  # it fits its column instead
        svg = own_size.sub('style="display:block;width:100%;height:auto" role="img"', svg[svg.index("<svg") :], count=1)
        return f'<div style="max-width:560px;border-radius:8px;overflow:hidden">{svg}</div>'


def explorer(path_length: Callable[..., Any], gradient_norms: Callable[..., Any]) -> VBox:
    """Return the panel: the length of the sentence, the width of a window, the factor per step."""
    words = IntSlider(value=50, min=2, max=200, description="words T", style=WIDE)
    window = IntSlider(value=7, min=3, max=31, step=2, description="window k", style=WIDE)
    factor = FloatSlider(value=0.9, min=0.5, max=1.1, step=0.01, description="each step times", style=WIDE)

    def view(words: int, window: int, factor: float) -> Plot:
        ends = sorted({1 + round(step * (words - 1) / POINTS) for step in range(POINTS + 1)})
        ways = {kind: [number_from(path_length, kind, 1, end, window) for end in ends] for kind in KINDS}
        norms = tensor_from(gradient_norms, factor * QUARTER, words, shape=(words,)).tolist()
        last = ", ".join(f"{kind} {steps[-1]:g}" for kind, steps in ways.items())
        plot = Plot(
            f"Left, steps from word 1 to each other word by your path_length; to word {words}: {last}. Right, what "
            f"reaches each state by your gradient_norms if a step multiplies by {factor:.2f}: the first {norms[0]:.3g}."
        )
        left, right = plot.figure.subplots(1, 2)
        for kind, steps in ways.items():
            color, line = KINDS[kind]
            left.plot(ends, steps, line, color=color, label=kind)
        left.set(xlabel="to word", ylabel="steps", title="your path_length")
        left.legend(frameon=False)
        right.plot(range(1, words + 1), norms, color=VALUE)
        right.set(xlabel="state t", ylabel="norm", title="your gradient_norms")
        if min(norms) > 0:
            right.set_yscale("log")
        for axes in (left, right):
            axes.spines[["top", "right"]].set_visible(False)
        return plot

    return panel("Explorer: how far, and how much arrives?", [words, window, factor], view)
