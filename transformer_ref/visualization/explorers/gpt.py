"""Chapter 13: a trained GPT of letters, written with by the learner's `generate`, opened by their `residual_trace`."""

import textwrap
from collections.abc import Callable
from typing import Any

import torch
from ipywidgets import FloatSlider, IntSlider, Text, VBox
from torch import Tensor

from transformer_ref.beyond.gpt import GPT
from transformer_ref.beyond.live_gpt import trained_gpt
from transformer_ref.beyond.tales import ALPHABET, decode, encode
from transformer_ref.visualization.depths import depth_names, sign
from transformer_ref.visualization.drawing import Drawing
from transformer_ref.visualization.explorers.panel import WIDE, NotYet, ask, panel
from transformer_ref.visualization.palette import GRID, INK, WEIGHT

LINE, WIDTH = 56, 470.0  # letters in a line of the tale; pixels
SEED = 13


def explorer(generate: Callable[..., Any], residual_trace: Callable[..., Any]) -> VBox:
    """Return the panel: a prompt, the number of generated letters, the temperature and the context."""
    model = trained_gpt()
    controls = [
        Text(value="Once upon a time, in a ", description="the prompt", style=WIDE),
        IntSlider(value=120, min=1, max=300, description="letters", style=WIDE, continuous_update=False),
        FloatSlider(value=0.7, min=0.0, max=1.5, step=0.1, description="tau", style=WIDE, continuous_update=False),
        IntSlider(value=192, min=1, max=192, step=1, description="context", style=WIDE, continuous_update=False),
    ]

    def view(prompt: str, letters: int, tau: float, context: int) -> Drawing:
        strange = sorted(set(prompt) - set(ALPHABET))
        if strange or not prompt:
            raise NotYet(
                f"The model never saw {' '.join(strange)}. Leave it out." if strange else "Type a prompt above."
            )
        ids = torch.tensor([encode(prompt)])  # (1, letter)
        with torch.no_grad():
            return _drawn(model, _written(generate, model, ids, letters, tau, context), ids, residual_trace)

    return panel("Explorer: your functions write with a trained GPT, and open it", controls, view)


def _written(
    generate: Callable[..., Any], model: GPT, ids: Tensor, letters: int, tau: float, context: int
) -> list[int]:
    answer = ask(generate, model, ids.clone(), letters, context, tau, torch.Generator().manual_seed(SEED))
    shape = (1, ids.shape[1] + letters)
    if not isinstance(answer, Tensor) or tuple(answer.shape) != shape or answer.is_floating_point():
        raise NotYet(f"Your generate should return a tensor of ids of shape {shape}: the prompt and {letters} letters.")
    found = answer[0].tolist()
    if not all(isinstance(id, int) and 0 <= id < len(ALPHABET) for id in found):
        raise NotYet(f"Your generate returned ids beyond the {len(ALPHABET)} letters, 0 to {len(ALPHABET) - 1}.")
    if found[: ids.shape[1]] != ids[0].tolist():
        raise NotYet(f"Your generate should return the prompt in front; it begins {decode(found[: ids.shape[1]])!r}.")
    return found


def _guesses(model: GPT, ids: Tensor, residual_trace: Callable[..., Any]) -> list[tuple[str, float]]:
    """Return the most probable next letter at each depth of the learner's trace, at the end of the prompt."""
    trace = ask(residual_trace, model, ids.clone())
    depths = len(model.blocks) + 1
    if not isinstance(trace, list | tuple) or len(trace) != depths:
        raise NotYet(
            f"Your residual_trace should return a list of {depths} tensors: the start, and one after each block."
        )
    shape = (*ids.shape, model.embedding.weight.shape[1])
    found = []
    for place, h in enumerate(trace):
        if not isinstance(h, Tensor) or tuple(h.shape) != shape or not bool(torch.isfinite(h).all()):
            raise NotYet(f"Entry {place} of your residual_trace should be a tensor of numbers, of shape {shape}.")
        share, id = model.head(model.norm(h))[0, -1].softmax(-1).max(-1)
        found.append((decode([int(id)]), share.item()))
    return found


def _drawn(model: GPT, written: list[int], ids: Tensor, residual_trace: Callable[..., Any]) -> Drawing:
    prompt = ids[:, -model.max_length :]
    guesses = _guesses(model, prompt, residual_trace)
    text = decode(written).replace("\n", "↵ ")
    lines = textwrap.wrap(text, LINE)
    names = depth_names(len(model.blocks))
    told = ", ".join(f"{name} {sign(letter)} {share:.2f}" for name, (letter, share) in zip(names, guesses, strict=True))
    alt = f"Your generate wrote: {text} At the end of the prompt your residual_trace says what would come next: {told}."
    top = 24 * len(lines) + 36
    drawing = Drawing(WIDTH, top + 30 * len(names) + 4, alt)
    for row, line in enumerate(lines):
        drawing.text(4, 14 + 24 * row, line, anchor="start")
    drawing.text(4, top - 14, "next after the prompt, by your residual_trace", anchor="start", bold=True, size=13)
    for row, (name, (letter, share)) in enumerate(zip(names, guesses, strict=True)):
        y = top + 30 * row + 14
        drawing.text(4, y, name, anchor="start", size=13)
        drawing.text(86, y, sign(letter), bold=True)
        drawing.rectangle(106, y - 9, 200, 18, "none", stroke=GRID, radius=2)
        drawing.rectangle(106, y - 9, max(1.0, 200 * share), 18, WEIGHT, radius=2)
        drawing.text(314, y, f"{share:.2f}", anchor="start", size=13, fill=INK)
    return drawing
