"""A panel of controls above a picture, and below it the same in words; the numbers are those of a learner's functions.

What a learner's function does wrong becomes a sentence in the place of the picture.
"""

import math
from collections.abc import Callable, Sequence
from html import escape
from typing import Any, Protocol

import torch
from ipywidgets import HTML, Layout, VBox, Widget

from transformer_ref.visualization.palette import INK

WIDE = {"description_width": "9em"}  # style of a control whose description is some words long


class Picture(Protocol):
    """The content of a panel: a `Drawing`, or any other SVG with an `alt`."""

    alt: str

    def to_svg(self) -> str: ...


class NotYet(Exception):
    """A learner's function cannot be shown yet; the text says why."""


def panel(title: str, controls: Sequence[Widget], view: Callable[..., Picture]) -> VBox:
    """Return the controls with the picture that `view` draws of their values, now and at every change.

    The picture's `alt` is shown below it.
    """
    picture, words = HTML(), HTML(layout=Layout(max_width="40em"))

    def update(_: Any = None) -> None:
        try:
            drawn = view(*(control.value for control in controls))
            picture.value, words.value = drawn.to_svg(), _line(drawn.alt)
        except NotYet as reason:
            picture.value, words.value = "", _line(f"✗ {reason}")
        except Exception as error:  # no check has passed this function, so it may return anything
            reason = f"What your function returned cannot be drawn ({type(error).__name__}: {error})."
            picture.value, words.value = "", _line(f"✗ {reason} Its check may say why.")

    for control in controls:
        control.observe(update, names="value")
    update()
    heading = HTML(f"<b style='color:{INK}'>{escape(title)}</b>")
    return VBox([heading, *controls, picture, words], layout=Layout(max_width="44em"))


def _line(words: str) -> str:
    return f"<p role='status' style='color:{INK};line-height:1.4'>{escape(words)}</p>"


def ask(function: Callable[..., Any], *arguments: Any) -> Any:
    """Return the result of a learner's function. Raises NotYet with a sentence if it raises an exception."""
    name = getattr(function, "__name__", type(function).__name__)  # a module is called too, and has none
    try:
        return function(*arguments)
    except NotYet:
        raise
    except NotImplementedError as error:
        raise NotYet(f"{name} is not written yet. Write it, run its cell, and move a control here.") from error
    except Exception as error:
        raise NotYet(f"Your {name} stopped with {type(error).__name__}: {error}") from error


def tensor_from(function: Callable[..., Any], *arguments: Any, shape: Sequence[int]) -> torch.Tensor:
    """Return the tensor of a learner's function, detached. Raises NotYet unless it is finite and of that shape."""
    answer, name = ask(function, *arguments), function.__name__
    if not isinstance(answer, torch.Tensor):
        raise NotYet(f"Your {name} returned {_kind(answer)} where a tensor of shape {tuple(shape)} is needed.")
    if tuple(answer.shape) != tuple(shape):
        raise NotYet(f"Your {name} returned the shape {tuple(answer.shape)} where {tuple(shape)} is needed.")
    answer = answer.detach()
    if answer.is_floating_point() and not bool(torch.isfinite(answer).all()):
        raise NotYet(f"Your {name} returned a number that is not finite: {answer.flatten().tolist()}.")
    return answer


def shares_from(function: Callable[..., Any], *arguments: Any, shape: Sequence[int]) -> torch.Tensor:
    """Return the probabilities that a learner's function returns. Raises NotYet unless they are numbers from 0 to 1."""
    answer = tensor_from(function, *arguments, shape=shape)
    low, high = answer.min().item(), answer.max().item()
    if low < -1e-6 or high > 1 + 1e-6:
        outside = low if low < 0 else high
        raise NotYet(f"Your {function.__name__} returned {outside:.3f}. A probability is between 0 and 1.")
    return answer


def number_from(function: Callable[..., Any], *arguments: Any) -> float:
    """Return the finite number of a learner's function, a Python number or a tensor with one element."""
    answer, name = ask(function, *arguments), function.__name__
    if isinstance(answer, torch.Tensor) and answer.numel() == 1:
        answer = answer.item()
    if isinstance(answer, bool) or not isinstance(answer, int | float) or not math.isfinite(answer):
        raise NotYet(f"Your {name} returned {_kind(answer)} where one finite number is needed.")
    return float(answer)


def _kind(answer: Any) -> str:
    if answer is None:
        return "nothing"
    if isinstance(answer, torch.Tensor):
        return f"a tensor of shape {tuple(answer.shape)}"
    return repr(answer) if isinstance(answer, int | float) else f"a {type(answer).__name__}"
