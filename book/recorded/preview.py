"""Draw the picture that a link to the book shows: preview.png, 1200 by 630.

    python -m book.recorded.preview

Left the question, right the weights of *I closed the windows*, computed here by the course's own attention from the
four vectors of its running example.
"""

import io
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import torch
from matplotlib.colors import LinearSegmentedColormap
from PIL import Image

from transformer_ref.model.attention import attention_weights
from transformer_ref.visualization.palette import KEY, QUERY

PICTURE = Path(__file__).resolve().parents[1] / "assets" / "preview.png"
WORDS = ["I", "closed", "the", "windows"]
VECTORS = torch.tensor([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0], [2.0, 0.0]])
INK, PAPER, WIDE, HIGH, DPI, COLORS = "#111827", "#ffffff", 1200, 630, 100, 64


def draw() -> plt.Figure:
    """Return the figure."""
    weights = attention_weights(VECTORS, VECTORS)  # (query, key)
    figure = plt.figure(figsize=(WIDE / DPI, HIGH / DPI), dpi=DPI, facecolor=PAPER)
    title = dict(color=INK, family="DejaVu Sans", ha="left")
    figure.text(0.05, 0.67, "Attention\nby Hand", fontsize=50, weight="bold", va="center", linespacing=1.15, **title)
    figure.text(0.05, 0.40, "Build the Transformer,\none number at a time.", fontsize=23, va="center", **title)
    figure.text(0.05, 0.20, "Each step is yours.\nEach step is checked.", fontsize=23, va="center", **title)
    axes = figure.add_axes((0.535, 0.1, 0.42, 0.72))
    axes.imshow(weights, cmap=LinearSegmentedColormap.from_list("weight", ["#ffffff", QUERY]), vmin=0, vmax=1)
    for row in range(4):
        for column in range(4):
            share = float(weights[row, column])
            axes.text(column, row, f"{share:.3f}", ha="center", va="center", fontsize=20, color=INK)
    axes.set_xticks(range(4), WORDS, fontsize=20, color=INK)
    axes.set_yticks(range(4), WORDS, fontsize=20, color=INK)
    axes.xaxis.tick_top()
    axes.tick_params(length=0, pad=10)
    for side, color in (("left", QUERY), ("top", KEY), ("right", None), ("bottom", None)):
        axes.spines[side].set(visible=color is not None, color=color, linewidth=6)
    axes.set_xticks([at - 0.5 for at in range(1, 4)], minor=True)
    axes.set_yticks([at - 0.5 for at in range(1, 4)], minor=True)
    axes.grid(which="minor", color="#d1d5db", linewidth=1)
    axes.tick_params(which="minor", length=0)
    return figure


if __name__ == "__main__":
    drawn = io.BytesIO()
    draw().savefig(drawn, dpi=DPI)
    Image.open(drawn).convert("RGB").quantize(COLORS).save(PICTURE, optimize=True)
    print(f"{PICTURE}: {PICTURE.stat().st_size:,} bytes")
