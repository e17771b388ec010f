"""Chapter 16: what the learner's functions hold and how long they take, compared with the table of chapter 05."""

import math
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from ipywidgets import IntSlider, ToggleButtons, VBox
from torch import Tensor

from transformer_ref.beyond import efficient
from transformer_ref.beyond.measure import peak_bytes
from transformer_ref.model.attention import explicit_attention
from transformer_ref.model.masks import causal_mask
from transformer_ref.visualization.drawing import Drawing
from transformer_ref.visualization.explorers.panel import WIDE, NotYet, ask, panel
from transformer_ref.visualization.growth import said
from transformer_ref.visualization.palette import GRID, WEIGHT

D_HEAD, HEADS, GROUPS = 64, 8, 2
BLOCK = 64  # keys
TIMES = 3  # calls, of which the quickest counts
SEEN = {"every word": False, "earlier words": True}


class Row(NamedTuple):
    """One way to compute attention: name, input, peak memory in bytes, least time in seconds, largest error."""

    name: str
    asked: str
    most: int
    seconds: float
    gap: float | None


def explorer(
    linear_attention: Callable[..., Any], online_softmax: Callable[..., Any], grouped_query: Callable[..., Any]
) -> VBox:
    """Return the panel: the mask, and the number of words."""
    controls = [
        ToggleButtons(options=list(SEEN), description="a word sees", style=WIDE),
        IntSlider(value=256, min=64, max=1024, step=64, description="words", style=WIDE),
    ]

    def view(seen: str, n: int) -> Drawing:
        causal, g = SEEN[seen], torch.Generator().manual_seed(n)
        q, k, v = torch.randn(3, 1, n, D_HEAD, generator=g)  # (1, n, d_head)
        with torch.no_grad():
            table = explicit_attention(q, k, v, causal_mask(n) if causal else None).output
            rows = [
                _row("chapter 05", "one head, a table", lambda: explicit_attention(q, k, v).output, None),
                _row(
                    "linear_attention",
                    "one head, by features",
                    lambda: ask(linear_attention, q, k, v, causal),
                    efficient.linear_attention(q, k, v, causal),
                ),
                _row(
                    "online_softmax",
                    f"one head, {BLOCK} keys a time",
                    _online(online_softmax, q[0], k[0], v[0], causal),
                    table[0],
                ),
                _grouped(grouped_query, n, g),
            ]
        return _drawn(rows, n)

    return panel("Explorer: what your attention holds, and how long it takes", controls, view)


def _online(function: Callable[..., Any], q: Tensor, k: Tensor, v: Tensor, causal: bool) -> Callable[[], Any]:
    scores = q @ k.T / math.sqrt(D_HEAD)  # (n, n): made beforehand, and not counted
    if causal:
        scores = scores.masked_fill(~causal_mask(len(q)), -torch.inf)
    blocks = [(piece.clone(), values) for piece, values in zip(scores.split(BLOCK, 1), v.split(BLOCK), strict=True)]
    return lambda: ask(function, blocks)


def _grouped(function: Callable[..., Any], n: int, g: torch.Generator) -> Row:
    """Return the row for one more word, which attends to n cached ones."""
    q = torch.randn(1, HEADS, 1, D_HEAD, generator=g)  # (1, heads, 1, d_head)
    k, v = torch.randn(2, 1, GROUPS, n, D_HEAD, generator=g)  # (1, groups, n, d_head)
    right = efficient.grouped_query(q, k, v, GROUPS)
    return _row(
        "grouped_query", f"one more word, {HEADS} heads, {GROUPS} groups", lambda: ask(function, q, k, v, GROUPS), right
    )


def _row(name: str, asked: str, call: Callable[[], Any], right: Tensor | None) -> Row:
    """Call a function, compare its result with the correct one, if given, and measure it. Raises NotYet."""
    answer, gap = call(), None
    if right is not None:
        if not isinstance(answer, Tensor) or answer.shape != right.shape:
            got = f"the shape {tuple(answer.shape)}" if isinstance(answer, Tensor) else f"a {type(answer).__name__}"
            raise NotYet(f"Your {name} returned {got} where a tensor of shape {tuple(right.shape)} is needed.")
        if not bool(torch.isfinite(answer).all()):
            raise NotYet(f"Your {name} returned a number that is not finite.")
        gap = (answer - right).abs().max().item()
    seconds = []
    for _ in range(TIMES):
        began = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - began)
    return Row(name, asked, max(peak_bytes(call), 1), min(seconds), gap)


def _drawn(rows: Sequence[Row], n: int) -> Drawing:
    wrong = {row.name: f"differs by up to {row.gap:.2g}" for row in rows if row.gap is not None and row.gap > 1e-3}
    told = "; ".join(
        f"{row.name} ({row.asked}) held {said(row.most, 'bytes')} at most and took {said(row.seconds, 'seconds')}"
        + (f", and {wrong[row.name]} from what it should be" if row.name in wrong else "")
        for row in rows
    )
    drawing = Drawing(420, len(rows) * 58 + 4, f"{n:,} words. {told}. The bars count memory in powers of ten.")
    for place, row in enumerate(rows):
        y = 14 + 58 * place
        mark = "✗ " if row.name in wrong else ""
        drawing.text(2, y, f"{mark}{row.name}", anchor="start", bold=True, size=13)
        drawing.text(418, y, row.asked, anchor="end", size=12)
        full = min(max(math.log10(row.most / 1e3) / 5, 0.01), 1.0)  # from 1 kB to 100 MB
        drawing.rectangle(2, y + 14, 240, 16, "none", stroke=GRID, radius=2)
        drawing.rectangle(2, y + 14, 240 * full, 16, WEIGHT, radius=2)
        drawing.text(252, y + 22, f"{said(row.most, 'bytes')}, {said(row.seconds, 'seconds')}", anchor="start", size=13)
    return drawing
