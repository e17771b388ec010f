"""Chapter 14: what the learner's functions make of a small drawn image."""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from ipywidgets import FloatSlider, IntSlider, SelectionSlider, ToggleButtons, VBox
from torch import Tensor

from transformer_ref.beyond import questions
from transformer_ref.beyond.vision import patchify as cut
from transformer_ref.visualization.drawing import Drawing
from transformer_ref.visualization.explorers.panel import WIDE, NotYet, ask, panel, tensor_from
from transformer_ref.visualization.palette import GRID, INK, signed_fill, weight_fill
from transformer_ref.visualization.pixels import paint

SMALL = 7  # pixels of the small image, in both directions
KERNELS = {
    "edges": ((1, 2, 1), (0, 0, 0), (-1, -2, -1)),
    "blur": ((1, 2, 1), (2, 4, 2), (1, 2, 1)),
    "the pixel below": ((0, 0, 0), (0, 0, 0), (0, 1, 0)),
}
IMAGES = {
    "ring and dot": (".......", "###....", "#.#....", "###....", ".....##", ".....##", "......."),
    "two bars": (".......", ".#...#.", ".#...#.", ".#...#.", ".#...#.", ".#...#.", "......."),
}
SHOWN_SCENE = questions.Scenes(torch.tensor([[4, 0, 2, 6]]), torch.tensor([[0, 1, 2, 3]]), torch.tensor([[0, 1, 2, 1]]))


def explorer(
    patchify: Callable[..., Any], sagan_attention: Callable[..., Any], conv_as_attention: Callable[..., Any]
) -> VBox:
    """Return the panel: the function, and its input."""
    functions = {"patchify": patchify, "sagan_attention": sagan_attention, "conv_as_attention": conv_as_attention}
    controls = [
        ToggleButtons(options=list(functions), description="yours", style=WIDE),
        ToggleButtons(options=list(IMAGES), description="small image", style=WIDE),
        SelectionSlider(options=[2, 3, 4, 6, 8, 12], value=8, description="p of patchify", style=WIDE),
        FloatSlider(value=1.0, min=0.0, max=1.0, step=0.1, description="gamma", style=WIDE),
        ToggleButtons(options=list(KERNELS), description="kernel", style=WIDE),
        IntSlider(value=3, min=1, max=SMALL, description="row that asks", style=WIDE),
        IntSlider(value=1, min=1, max=SMALL, description="column that asks", style=WIDE),
    ]

    def view(which: str, image: str, p: int, gamma: float, kernel: str, row: int, column: int) -> Drawing:
        if which == "patchify":
            return _patches(patchify, p)
        if which == "sagan_attention":
            return _gathered(sagan_attention, small_image(image), (row - 1, column - 1), gamma)
        return _convolved(conv_as_attention, small_image(image), (row - 1, column - 1), kernel)

    return panel("Explorer: your attention, on images", controls, view)


def small_image(name: str) -> Tensor:
    """One of IMAGES as (SMALL, SMALL), ink 1 on paper 0."""
    return torch.tensor([[float(cell == "#") for cell in row] for row in IMAGES[name]])


def _patches(patchify: Callable[..., Any], p: int) -> Drawing:
    pixels = questions.draw(SHOWN_SCENE)  # (1, 3, 24, 24)
    wanted = cut(pixels, p)  # (1, patch, 3 * p * p)
    found = tensor_from(patchify, pixels.clone(), p, shape=wanted.shape).to(wanted)
    same = int((found == wanted).all(dim=-1).sum())
    alt = (
        f"Your patchify cut a scene into {found.shape[1]} patches of {found.shape[2]} numbers, drawn here where they "
        f"belong. {same} of them hold the right pixels in the right order."
    )
    drawing = Drawing(300, 300, alt)
    across, step = questions.SIDE // p, 300 / (questions.SIDE // p)
    for number, patch in enumerate(found[0]):
        x, y = step * (number % across), step * (number // across)
        paint(drawing, patch.reshape(3, p, p), x, y, (step - min(6, step / 5)) / p)
    return drawing


def _gathered(sagan_attention: Callable[..., Any], image: Tensor, asks: tuple[int, int], gamma: float) -> Drawing:
    """Return the weights of a pixel: how much it changes when the value of each pixel changes by 1."""
    row, column = asks
    # the first channel asks and answers: ink looks for ink; the second carries the value
    x = torch.stack([2 * image, torch.zeros_like(image)])[None].double()  # (1, 2, SMALL, SMALL)
    Wq, Wk = (torch.tensor([[1.0, 0.0]]).double() for _ in range(2))
    Wv = torch.tensor([[0.0, 0.0], [0.0, 1.0]]).double()
    takes = torch.zeros(SMALL, SMALL)
    for place in range(SMALL * SMALL):
        one = x.clone()
        one[0, 1, place // SMALL, place % SMALL] = 1
        out = tensor_from(sagan_attention, one, Wq, Wk, Wv, torch.tensor(gamma).double(), shape=x.shape)
        own = 1.0 if place == row * SMALL + column else 0.0  # what the residual brings
        takes[place // SMALL, place % SMALL] = out[0, 1, row, column] - own
    if takes.min() < -1e-6 or takes.max() > 1 + 1e-6:
        raise NotYet(
            f"The attention weights of a pixel should be from 0 to 1; with your sagan_attention they are "
            f"{takes.min():.2f} to {takes.max():.2f}."
        )
    alt = (
        f"The pixel in row {row + 1}, column {column + 1} {'is ink' if image[row, column] else 'is paper'}. With your "
        f"sagan_attention it takes {takes[image.bool()].sum():.2f} of its value from ink and "
        f"{takes[~image.bool()].sum():.2f} from paper, {takes.sum():.2f} in all; gamma is {gamma:g}. "
        "Ink looks for ink, paper for nothing."
    )
    drawing = Drawing(300, 300, alt)
    largest = takes.max().item() or 1.0
    _grid(drawing, 0, 42, image, (row, column), lambda r, c: weight_fill(takes[r, c].item() / largest))
    return drawing


def _convolved(conv_as_attention: Callable[..., Any], image: Tensor, asks: tuple[int, int], name: str) -> Drawing:
    row, column = asks
    kernel = torch.tensor(KERNELS[name]).float()[None, None]  # (1, 1, 3, 3)
    answer = ask(conv_as_attention, image[None, None], kernel)
    if not isinstance(answer, list | tuple) or len(answer) != 2 or not all(isinstance(a, Tensor) for a in answer):
        raise NotYet("Your conv_as_attention should return two tensors, (out, weights).")
    out, weights = (each.detach().float() for each in answer)
    count = SMALL * SMALL
    if tuple(out.shape) != (1, 1, SMALL, SMALL) or tuple(weights.shape) != (9, count, count):
        raise NotYet(
            f"Your conv_as_attention returned the shapes {tuple(out.shape)} and {tuple(weights.shape)} where "
            f"{(1, 1, SMALL, SMALL)} and {(9, count, count)} are needed."
        )
    gap = (out - F.conv2d(image[None, None], kernel, padding=1)).abs().max().item()
    looked = weights[:, row * SMALL + column]  # (head, pixel)
    heads = [
        f"{head} at row {place // SMALL + 1}, column {place % SMALL + 1}"
        for head, places in enumerate(looked)
        for place in places.nonzero().flatten().tolist()
    ]
    alt = (
        f"From row {row + 1}, column {column + 1} {len(heads)} places are looked at, by head "
        f"{'; '.join(heads) or 'none'}. Your sum there is {out[0, 0, row, column]:g}. "
        f"Largest difference to the convolution: {gap:g}."
    )
    drawing = Drawing(430, 240, alt)
    drawing.text(0, 12, "where your heads look", anchor="start", size=12)
    drawing.text(222, 12, "your sum of heads", anchor="start", size=12)
    seen = looked.sum(dim=0).reshape(SMALL, SMALL).clamp(0, 1)
    _grid(drawing, 26, 29, image, (row, column), lambda r, c: weight_fill(seen[r, c].item()))
    largest = out.abs().max().item() or 1.0
    for place in range(count):
        r, c = place // SMALL, place % SMALL
        fill, opacity = signed_fill(out[0, 0, r, c].item(), largest)
        drawing.rectangle(222 + 29 * c, 26 + 29 * r, 28, 28, fill, opacity=opacity, stroke=GRID)
        drawing.text(222 + 29 * c + 14, 26 + 29 * r + 14, f"{out[0, 0, r, c]:g}".replace("-", "−"), size=11)
    return drawing


def _grid(
    drawing: Drawing,
    y: float,
    cell: float,
    image: Tensor,
    asks: tuple[int, int],
    look: Callable[[int, int], tuple[str, float]],
) -> None:
    """Draw the small image, ink as squares in the cells; the query's cell has a frame."""
    for row in range(SMALL):
        for column in range(SMALL):
            left, top = cell * column, y + cell * row
            fill, opacity = look(row, column)
            drawing.rectangle(left, top, cell - 1, cell - 1, fill, opacity=opacity, stroke=GRID)
            if image[row, column]:
                drawing.rectangle(left + cell / 3, top + cell / 3, cell / 3, cell / 3, INK)
    drawing.rectangle(cell * asks[1] + 1, y + cell * asks[0] + 1, cell - 3, cell - 3, "none", stroke=INK, radius=3)
